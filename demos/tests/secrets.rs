//! What can be read of a witness after a run: from the raw image of the scratch disk, and from what the
//! program writes. A control with plain scratch has to find it. Rounds are kept in checkpoints on that disk
//! too.

use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use spillproof_circuits::axiom::dropin::halo2::halo2curves::bn256::Fr;
use spillproof_circuits::axiom::dropin::halo2::halo2curves::ff::PrimeField;
use spillproof_circuits::axiom::dropin::halo2::halo2curves::serde::SerdeObject;
use spillproof_circuits::axiom::dropin::rows::Values;

use crate::{BINARY, Mounted, skipped};

const K: u32 = 13;
const SEED: u64 = 0x5ec1_2e70;
const IMAGE_BYTES: u64 = 96 << 20;

/// The values of `chain`'s column `b` in even rows, which are its witness: in Montgomery and in canonical
/// form.
fn witness() -> HashSet<[u8; 32]> {
    let values = Values::new(SEED);
    let of_row = |row: usize| {
        let value: Fr = values.field(row, 1);
        let mut montgomery = [0; 32];
        montgomery.copy_from_slice(&value.to_raw_bytes());
        [montgomery, value.to_repr()]
    };
    (0..(1 << K) - 16).step_by(2).flat_map(of_row).collect()
}

/// How many of `values` stand in `bytes`, where numbers of 64 bits do.
fn found(bytes: &[u8], values: &HashSet<[u8; 32]>) -> usize {
    let heads: HashSet<u64> = values
        .iter()
        .map(|value| u64::from_le_bytes(value[..8].try_into().expect("eight bytes")))
        .collect();
    let mut hits = HashSet::new();
    for at in (0..bytes.len().saturating_sub(31)).step_by(8) {
        let head = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if heads.contains(&head) && values.contains(&bytes[at..at + 32]) {
            hits.insert(bytes[at..at + 32].to_vec());
        }
    }
    hits.len()
}

#[test]
fn nothing_of_a_witness_can_be_read_from_the_disk() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let (image, place) = (dir.path().join("image"), dir.path().join("place"));
    let (proof, report) = (dir.path().join("proof"), dir.path().join("report.html"));
    let key = dir.path().join("key");
    std::fs::create_dir(&place).expect("a folder");
    std::fs::write(&key, [0x77; 32]).expect("a key");
    let values = witness();
    for (scratch, is_killed) in [("plain", false), ("sealed", false), ("sealed", true)] {
        let mounted = Mounted::image("mkfs.ext4 -q -F", &image, IMAGE_BYTES, &place);
        if mounted.is_none() {
            skipped("a file system in a file cannot be mounted here (needs root and loop devices)");
            return;
        }
        let mut command = Command::new("sh");
        command
            .args(["-c", "ulimit -c unlimited && exec \"$0\" \"$@\"", BINARY])
            .args([
                "prove",
                "--circuit",
                "chain",
                "--memory",
                "4MiB",
                "--scratch",
                scratch,
                "--json",
            ])
            .args(["--k", &K.to_string(), "--seed", &SEED.to_string()])
            .args([
                "--dir".as_ref(),
                place.as_os_str(),
                "--out".as_ref(),
                proof.as_os_str(),
            ])
            .args(["--report".as_ref(), report.as_os_str()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if scratch == "sealed" {
            // In the control, what it writes would take the place of what is to be found.
            command
                .args(["--checkpoint".as_ref(), place.join("kept").as_os_str()])
                .args(["--checkpoint-key".as_ref(), key.as_os_str()]);
        }
        let mut child = command.spawn().expect("the binary runs");
        if is_killed {
            std::thread::sleep(Duration::from_millis(300));
            let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).expect("a process");
            let core = limits.lines().find(|line| line.starts_with("Max core file size"));
            assert_eq!(
                core.and_then(|line| line.split_whitespace().nth(4)),
                Some("0"),
                "{limits}"
            );
            std::thread::sleep(Duration::from_millis(500));
            child.kill().expect("a child");
        }
        let output = child.wait_with_output().expect("the binary ends");
        assert!(is_killed || output.status.success(), "{output:?}");
        drop(mounted);
        let read = |path: &Path| std::fs::read(path).unwrap_or_default();
        let hits = found(&read(&image), &values);
        match scratch {
            "plain" => assert!(
                hits > values.len() / 4,
                "the control finds {hits} of {}",
                values.len()
            ),
            _ => assert_eq!(hits, 0, "of {} values in the image", values.len()),
        }
        for (name, bytes) in [
            ("standard output", output.stdout),
            ("standard error", output.stderr),
            ("report", read(&report)),
            ("proof", read(&proof)),
        ] {
            assert_eq!(found(&bytes, &values), 0, "{name}");
            let text = String::from_utf8_lossy(&bytes);
            let hex = |value: &[u8; 32]| {
                value
                    .iter()
                    .rev()
                    .map(|byte| format!("{byte:02x}"))
                    .collect::<String>()
            };
            assert!(
                values.iter().take(100).all(|value| !text.contains(&hex(value))),
                "{name}"
            );
        }
    }
}
