//! Real file systems, in files: with too little room, with enough, and with room that goes while a proof is
//! made. Either the proof is the one that an empty disk gives, or an error says that there is no room, and
//! nothing is left; with room again, the proof goes on from its checkpoint.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::{BINARY, Mounted, skipped};

const IMAGE_BYTES: u64 = 64 << 20;
/// Room that is left, from far too little to all of it.
const ROOMS_BYTES: [u64; 5] = [64 << 10, 1 << 20, 3 << 20, 6 << 20, u64::MAX];

/// A proof with scratch files in `place`, and its checkpoint beside it.
fn proof(dir: &Path, place: &Path) -> Command {
    let mut command = Command::new(BINARY);
    command.args("prove --circuit lookups --k 12 --seed 7 --memory 4MiB --out proof --checkpoint kept --checkpoint-key key".split(' '));
    command
        .args(["--dir".as_ref(), place.as_os_str()])
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

fn free_bytes(place: &Path) -> u64 {
    let stat = rustix::fs::statvfs(place).expect("a file system");
    stat.f_bfree * stat.f_frsize
}

/// Fills the file system until so much is left, or nothing more goes.
fn fill(place: &Path, left_bytes: u64) {
    let mut file = File::create(place.join("ballast")).expect("a file");
    let block = vec![0x5a; 1 << 20];
    while let Some(more) = free_bytes(place)
        .checked_sub(left_bytes)
        .filter(|more| *more >= 4096)
    {
        let bytes = more.min(block.len() as u64) as usize;
        if file.write_all(&block[..bytes]).is_err() || file.sync_data().is_err() {
            return;
        }
    }
}

/// Empties it. Some file systems have the room again when that is on the disk.
fn empty(place: &Path) {
    fs::remove_file(place.join("ballast")).expect("the ballast");
    let folder = File::open(place).expect("a folder");
    rustix::fs::syncfs(folder).expect("a file system");
}

fn names(place: &Path) -> Vec<String> {
    let entries = fs::read_dir(place).expect("a directory").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| name != "lost+found" && name != "ballast")
        .collect()
}

/// A proof that fails says that there is no room, and leaves nothing.
fn is_refused_well(output: &Output, place: &Path, label: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1),
        "{label}: {:?}: {said}",
        output.status
    );
    let has_reason = ["No space left", "bytes of disk"];
    assert!(
        has_reason.iter().any(|reason| said.contains(reason)),
        "{label}: {said}"
    );
    assert!(!said.contains("panicked"), "{label}: {said}");
    // What the kernel still closes goes a moment after the end.
    let since = Instant::now();
    while !names(place).is_empty() && since.elapsed() < Duration::from_secs(10) {
        std::thread::yield_now();
    }
    assert_eq!(names(place), [""; 0], "{label}");
}

fn on_disk(name: &str, expected: &[u8], place: &Path) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let dir = dir.path();
    fs::write(dir.join("key"), [0x5a; 32]).expect("a key");
    let mut refused = Vec::new();
    for room_bytes in ROOMS_BYTES {
        let label = format!("{name}, {room_bytes} bytes left");
        fill(place, room_bytes);
        let output = proof(dir, place).output().expect("the binary runs");
        refused.push(!output.status.success());
        if output.status.success() {
            assert!(
                fs::read(dir.join("proof")).expect("a proof") == expected,
                "{label}"
            );
            assert_eq!(names(place), [""; 0], "{label}");
        } else {
            is_refused_well(&output, place, &label);
        }
        fs::remove_file(dir.join("proof")).ok();
        empty(place);
    }
    assert!(
        refused[0] && !refused[ROOMS_BYTES.len() - 1],
        "{name}: {refused:?}"
    );

    for wait in [200, 700].map(Duration::from_millis) {
        let label = format!("{name}, filled after {wait:?}");
        let run = proof(dir, place).spawn().expect("the binary runs");
        std::thread::sleep(wait);
        fill(place, 0);
        let output = run.wait_with_output().expect("an end");
        if !output.status.success() {
            is_refused_well(&output, place, &label);
        }
        empty(place);
        let output = proof(dir, place).output().expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{label}: {said}");
        assert!(
            fs::read(dir.join("proof")).expect("a proof") == expected,
            "{label}"
        );
        fs::remove_file(dir.join("proof")).expect("the proof");
    }
}

#[test]
fn disks_that_are_full_or_fill_up_make_no_wrong_proof() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let dir = dir.path();
    fs::write(dir.join("key"), [0x5a; 32]).expect("a key");
    let output = proof(dir, dir).output().expect("the binary runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let expected = fs::read(dir.join("proof")).expect("a proof");
    let (image, place, over) = (dir.join("image"), dir.join("place"), dir.join("over"));
    fs::create_dir(&place).expect("a folder");
    fs::create_dir(&over).expect("a folder");

    let mut mounted = 0;
    // The last two make no smaller ones.
    for (name, mkfs, bytes) in [
        ("ext4", "mkfs.ext4 -q -F", IMAGE_BYTES),
        ("ext2", "mkfs.ext2 -q -F", IMAGE_BYTES),
        ("xfs", "mkfs.xfs -q -f", 300 << 20),
        ("btrfs", "mkfs.btrfs -q -f", 128 << 20),
    ] {
        match Mounted::image(mkfs, &image, bytes, &place) {
            Some(_mounted) => on_disk(name, &expected, &place),
            None => {
                skipped(format_args!(
                    "{name}: no such file system can be made or mounted here (needs root, loop devices and its mkfs)"
                ));
                continue;
            }
        }
        mounted += 1;
        println!("{name}: done");
    }
    match Mounted::new("-t tmpfs -o size=64m none", &place) {
        Some(_mounted) => on_disk("tmpfs", &expected, &place),
        None => skipped("tmpfs: cannot be mounted here (needs root)"),
    }
    let Some(_under) = Mounted::image("mkfs.ext4 -q -F", &image, IMAGE_BYTES, &over) else {
        assert_eq!(mounted, 0, "ext4 could be mounted before");
        return;
    };
    for part in ["lower", "upper", "work"] {
        fs::create_dir(over.join(part)).expect("a folder");
    }
    let part = |part: &str| over.join(part).display().to_string();
    let arguments = format!(
        "-t overlay overlay -o lowerdir={},upperdir={},workdir={}",
        part("lower"),
        part("upper"),
        part("work")
    );
    match Mounted::new(&arguments, &place) {
        Some(_mounted) => on_disk("overlay", &expected, &place),
        None => skipped("overlay: cannot be mounted here"),
    }
}
