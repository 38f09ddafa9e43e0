//! Surroundings that have less than usual: pipes and devices in the place of files, long names, few
//! processes, little memory, a full folder of checkpoints. Each command works, or says what is missing, with
//! the right file and flag.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use rustix::mm::{MlockAllFlags, mlockall};
use spillproof_cgroup_tests::group_or_skip;
use spillproof_circuits::axiom::dropin::{proof, prover};
use spillproof_circuits::{Kind, Scheme};
use spillproof_engine::Session;
use spillproof_testing::watchdog;

use crate::{BINARY, Mounted, skipped};

const MIB: u64 = 1 << 20;
const PATIENCE_SECONDS: u64 = 120;

fn run(dir: &Path, line: &str) -> Output {
    let mut command = Command::new(BINARY);
    command.args(line.split_whitespace()).current_dir(dir);
    for name in ["MEMORY", "LIMIT", "DIR"] {
        command.env_remove(format!("SPILLPROOF_{name}"));
    }
    command.output().expect("the binary runs")
}

fn works(dir: &Path, line: &str) {
    let output = run(dir, line);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {errors}");
}

/// What a run says that fails with exit code 1.
fn refused(dir: &Path, line: &str) -> String {
    let output = run(dir, line);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{line}: {errors}");
    errors
}

fn says(said: &str, words: &[&str]) {
    let missing: Vec<_> = words.iter().filter(|word| !said.contains(**word)).collect();
    assert!(missing.is_empty(), "{said} does not say {missing:?}");
}

#[test]
fn pipes_and_devices_are_refused_by_name() {
    watchdog::within(PATIENCE_SECONDS, "pipes and devices", || {
        let dir = tempfile::tempdir().expect("a folder");
        let dir = dir.path();
        works(dir, "groth16 example c.zkey c.wtns --k 6");
        works(dir, "groth16 prove c.zkey c.wtns proof.json public.json");
        works(dir, "groth16 vkey c.zkey vkey.json");
        // No program writes to it: a command that opened it would wait.
        let made = Command::new("mkfifo")
            .arg(dir.join("pipe"))
            .status()
            .expect("mkfifo");
        assert!(made.success());
        let saved = "bytes are read in any order: save them to a file";
        for (line, named) in [
            (
                "groth16 prove c.zkey pipe proof.json public.json",
                "pipe: WITNESS is a pipe",
            ),
            (
                "groth16 prove pipe c.wtns proof.json public.json",
                "pipe: KEY is a pipe",
            ),
            ("groth16 plan pipe", "pipe: KEY is a pipe"),
            ("groth16 inspect /dev/zero", "/dev/zero: FILE is a device"),
            ("prove --k 6 --srs pipe --out proof", "pipe: --srs is a pipe"),
            (
                "prove --k 6 --srs /dev/zero --out proof",
                "/dev/zero: --srs is a device",
            ),
            ("srs inspect pipe", "pipe: FILE is a pipe"),
        ] {
            says(&refused(dir, line), &[named, saved]);
        }
        // What is read once has an end.
        says(
            &refused(dir, "verify --k 6 /dev/zero"),
            &["/dev/zero: more than 67108864 bytes"],
        );
        let verify = "groth16 verify vkey.json public.json /dev/zero";
        says(&refused(dir, verify), &["/dev/zero: more than 268435456 bytes"]);
        let piped = format!("cat proof.json | {BINARY} groth16 verify vkey.json public.json /dev/stdin");
        let piped = Command::new("sh").args(["-c", &piped]).current_dir(dir).output();
        let piped = piped.expect("a shell");
        assert!(
            piped.status.success(),
            "{}",
            String::from_utf8_lossy(&piped.stderr)
        );
    });
}

#[test]
fn names_are_as_long_as_the_file_system_allows() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    for bytes in [200, 250, 255] {
        let name = "n".repeat(bytes);
        works(dir, &format!("srs gen --k 4 --out {name}"));
        works(dir, &format!("srs export {name} --out {}", "x".repeat(bytes)));
        assert!(dir.join(&name).is_file());
    }
    let long = "n".repeat(256);
    says(
        &refused(dir, &format!("srs gen --k 4 --out {long}")),
        &[&long, "name too long"],
    );
    let left = fs::read_dir(dir).expect("a folder").count();
    assert_eq!(left, 6);
}

/// A group of so many processes; `None`, and a line that says so, where there cannot be one.
struct FewProcesses(PathBuf);

impl FewProcesses {
    fn new(processes: u32) -> Option<Self> {
        let folders = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new);
        let name = format!("spillproof-test-{}", std::process::id());
        for folder in folders.into_iter().map(|folder| folder.join(&name)) {
            if fs::create_dir(&folder).is_err() {
                continue;
            }
            let group = Self(folder);
            if fs::write(group.0.join("pids.max"), processes.to_string()).is_ok() {
                return Some(group);
            }
        }
        skipped("the number of processes cannot be limited here (needs root and the pids controller)");
        None
    }
}

impl Drop for FewProcesses {
    fn drop(&mut self) {
        // A process that has just ended is there for a moment.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_limit_on_processes_is_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let Some(group) = FewProcesses::new(3) else { return };
    let script = format!(
        "echo $$ > {}/cgroup.procs && exec \"$0\" prove --k 6 --memory 16MiB --threads 8 --out p.proof",
        group.0.display()
    );
    let mut command = Command::new("sh");
    let output = command
        .args(["-c", &script, BINARY])
        .current_dir(dir.path())
        .output();
    let output = output.expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    says(&said, &["cannot start a thread", "pids.max", "--pids-limit"]);
    assert!(!said.contains("p.proof"), "{said}");
    assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 0);
}

/// What takes little memory works in a group of little; what takes more is refused with the budget that it
/// needs.
#[test]
fn auto_works_in_a_small_container() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &str| dir.path().join(name).display().to_string();
    works(dir.path(), "groth16 example c.zkey c.wtns --k 6");
    works(dir.path(), "groth16 prove c.zkey c.wtns proof.json public.json");
    works(dir.path(), "groth16 vkey c.zkey vkey.json");
    let Some(group) = group_or_skip(60 * MIB) else {
        return;
    };
    let files = ["vkey.json", "public.json", "proof.json"].map(path);
    let verify = ["groth16", "verify"]
        .into_iter()
        .chain(files.iter().map(String::as_str));
    let inspect = ["groth16".to_owned(), "inspect".to_owned(), path("c.zkey")];
    for arguments in [verify.map(str::to_owned).collect::<Vec<_>>(), inspect.to_vec()] {
        let outcome = group.run(BINARY, &arguments, &[], Duration::from_secs(PATIENCE_SECONDS));
        let outcome = outcome.expect("the binary runs");
        assert!(outcome.status.success(), "{arguments:?}: {outcome:?}");
    }
}

#[test]
fn a_full_folder_of_checkpoints_is_named() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("kept")).expect("a folder");
    fs::write(dir.path().join("key"), [0x5a; 32]).expect("a key");
    let place = dir.path().join("kept");
    let Some(_mounted) = Mounted::new("-t tmpfs -o size=512k none", &place) else {
        skipped("a small tmpfs cannot be mounted here (needs root)");
        return;
    };
    let prove = "prove --circuit chain --k 13 --seed 7 --memory 32MiB --dir . --out proof --checkpoint kept --checkpoint-key key";
    let said = refused(dir.path(), prove);
    says(
        &said,
        &[
            "the disk of this folder of checkpoints is full",
            "flag: --checkpoint (SPILLPROOF_CHECKPOINT)",
        ],
    );
    assert!(!said.contains("--dir"), "{said}");
    assert!(!dir.path().join("proof").exists());
}

/// Set for a child process that locks its memory.
const LOCKED: &str = "SPILLPROOF_TEST_LOCKED";

/// Not a test of its own: keys and a proof in a process that has locked all its memory, now and later.
#[test]
fn locked_child() {
    if std::env::var_os(LOCKED).is_none() {
        return;
    }
    let all = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE;
    if let Err(errno) = mlockall(all) {
        println!("cannot lock: {errno}");
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let builder = Session::builder().memory("16MiB").dir(dir.path()).threads(2);
    let session = Arc::new(builder.build().expect("a session"));
    let _current = session.install();
    let (kind, k) = (Kind::Chain, 10);
    let params = proof::insecure_params(k, 1);
    let key = proof::verifying_key(&params, kind, k).expect("a key");
    let key = prover::proving_key(&params, key, kind, k).expect("a key");
    prover::prove(&params, &key, kind, k, 7, Scheme::Shplonk).expect("a proof");
    println!("proved");
}

/// A program that keeps keys in memory locks all of it (`mlockall`): the kernel then gives new maps their
/// pages at once.
#[test]
fn a_process_that_locks_its_memory_proves() {
    let program = std::env::current_exe().expect("this test has a path");
    let mut command = Command::new(program);
    let child = command
        .args(["surroundings::locked_child", "--exact", "--nocapture"])
        .env(LOCKED, "1")
        .output()
        .expect("this test runs");
    let said = String::from_utf8_lossy(&child.stdout);
    if said.contains("cannot lock") {
        skipped("memory cannot be locked here (needs root, or ulimit -l)");
        return;
    }
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(
        child.status.success() && said.contains("proved"),
        "{said}{errors}"
    );
}

/// A file without a one in front is no witness, and the error names the file and not its copy.
#[test]
fn the_first_value_of_a_witness_is_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    works(dir, "groth16 example c.zkey c.wtns --k 6");
    let mut bytes = fs::read(dir.join("c.wtns")).expect("a file");
    // Behind the prefixes of two sections and the header.
    const FIRST: usize = 76;
    assert_eq!(bytes[FIRST..FIRST + 2], [1, 0]);
    bytes[FIRST] = 2;
    fs::write(dir.join("two.wtns"), bytes).expect("a file");
    let said = refused(dir, "groth16 prove c.zkey two.wtns proof.json public.json");
    says(
        &said,
        &[
            "two.wtns: the first value at offset 76 is 02",
            "the first value of a witness is one",
        ],
    );
    assert!(!said.contains("scratch file"), "{said}");
}
