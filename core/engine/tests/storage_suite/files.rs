//! Names of files, on all backends: scratch files have none, results appear under theirs when they are whole,
//! whatever crashes, and what is no file is refused.

use std::path::Path;

use spillproof_engine::Error;
use spillproof_engine::budget::Budget;
use spillproof_engine::error::Invalid;
use spillproof_engine::storage::{Fault, FaultPlan, Segment, Storage};
use tempfile::TempDir;

use super::storage_cases::{PAGE, cases, entries};

/// Also where files have a name while they are written.
#[test]
fn private_files_are_private_from_their_making_on() {
    use std::os::unix::fs::PermissionsExt;
    for case in cases() {
        for fault in [None, Some(Fault::Unsupported)] {
            let plan = fault.map_or_else(FaultPlan::none, |fault| FaultPlan::at(0, fault));
            let storage = case.storage(plan);
            let path = case.dir.path().join("secret");
            let modes = || {
                let modes = case
                    .entries()
                    .into_iter()
                    .map(|path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777);
                modes.collect::<Vec<_>>()
            };
            let publish = storage.publish_private(&path).unwrap();
            let named = usize::from(fault.is_some());
            assert_eq!(modes(), vec![0o600; named], "{}", case.name);
            publish.commit().unwrap();
            assert_eq!(modes(), [0o600], "{}", case.name);
            std::fs::remove_file(&path).unwrap();
        }
    }
}

/// The name of a partial file has room for its own parts, and a name that is too long is refused at once.
#[test]
fn long_names_are_published() {
    for case in cases() {
        let storage = case.storage(FaultPlan::at(0, Fault::Unsupported));
        let long = ["n".repeat(255), "é".repeat(127)].map(|name| case.dir.path().join(name));
        for path in long {
            storage.publish(&path).unwrap().commit().unwrap();
            assert_eq!(case.entries(), std::slice::from_ref(&path), "{}", case.name);
            std::fs::remove_file(&path).unwrap();
        }
        let too_long = storage.publish(case.dir.path().join("n".repeat(256)));
        let refused = too_long.map(drop).unwrap_err().to_string();
        assert!(refused.contains("name too long"), "{refused}");
        assert!(case.entries().is_empty());
    }
}

/// Bytes of a pipe or a device come once and in one order. A pipe that no program writes to does not make the
/// open wait.
#[test]
fn pipes_and_devices_are_no_files_to_read() {
    let case = &cases()[0];
    let storage = case.storage(FaultPlan::none());
    let pipe = case.dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let cases = [(pipe.as_path(), "a pipe"), (Path::new("/dev/zero"), "a device")];
    for (path, expected) in cases {
        for opened in [storage.open(path), storage.open_unaligned(path)] {
            match opened.map(drop) {
                Err(Error::Invalid(Invalid::NotReadable { kind, .. })) => assert_eq!(kind, expected),
                other => panic!("{other:?}"),
            }
        }
    }
    let folder = storage.open(case.dir.path()).map(drop).unwrap_err().to_string();
    assert!(folder.contains("Is a directory"), "{folder}");
}

/// A folder that is missing is not made: it may be a disk that is not mounted.
#[test]
fn a_missing_folder_is_refused() {
    for case in cases() {
        let dir = case.dir.path().join("not/there");
        let refused = Storage::builder().dir(&dir).backend(case.backend).build();
        assert!(
            matches!(refused, Err(Error::Invalid(Invalid::NoFolder { .. }))),
            "{refused:?}"
        );
        assert!(case.entries().is_empty());
    }
}

#[test]
fn scratch_has_no_name() {
    for case in cases() {
        let dir = case.dir.path().join("here");
        std::fs::create_dir(&dir).unwrap();
        let storage = Storage::builder()
            .dir(&dir)
            .backend(case.backend)
            .direct(case.direct)
            .build()
            .unwrap();
        let file = storage.scratch("s", 1 << 20).unwrap();
        assert!(entries(&dir).is_empty());
        let panicked = std::thread::spawn({
            let storage = storage.clone();
            move || {
                let _file = storage.scratch("p", 0).unwrap();
                panic!("as asked: part of a test");
            }
        });
        assert!(panicked.join().is_err());
        assert!(entries(&dir).is_empty());
        drop(file);
        drop(storage);
        assert!(entries(&dir).is_empty(), "{}", case.name);
        std::fs::remove_dir(&dir).unwrap();
    }
}

#[test]
fn published_files_appear_whole() {
    for case in cases() {
        let storage = case.storage(FaultPlan::none());
        let budget = Budget::new(1 << 20);
        let path = case.dir.path().join("x.srs");
        let write = |byte: u8| {
            let publish = storage.publish(&path).unwrap();
            let mut buffer = budget.buffer(PAGE, "b").unwrap();
            buffer.fill(byte);
            drop(
                publish
                    .file()
                    .write(buffer, [Segment::new(0, 0, PAGE)])
                    .wait()
                    .unwrap(),
            );
            publish
        };
        drop(write(1));
        assert!(case.entries().is_empty(), "{}: dropped without commit", case.name);
        let pending = write(2);
        assert!(!path.exists());
        pending.commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [2; PAGE]);
        write(3).commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [3; PAGE]);
        // A partial file of a process that is gone is removed; one of a running process stays, and so does a file
        // with such a beginning of its name that is no partial file.
        let [stale, held, other] = ["partial-999999-0", "partial-1-1", "partial-of-mine"]
            .map(|end| case.dir.path().join(format!(".x.srs.spillproof-{end}")));
        for leftover in [&stale, &held, &other] {
            std::fs::write(leftover, b"left").unwrap();
        }
        let lock = std::fs::File::open(&held).unwrap();
        lock.lock().unwrap();
        drop(write(4));
        assert!(
            !stale.exists() && held.exists() && other.exists(),
            "{}",
            case.name
        );
        drop(lock);
        drop(write(4));
        assert!(!held.exists());
        std::fs::remove_file(other).unwrap();
        assert_eq!(case.entries(), std::slice::from_ref(&path));
        let link = case.dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for no_file in [Path::new("/"), Path::new("/dev/null"), case.dir.path(), &link] {
            let refused = storage.publish(no_file);
            assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
        }
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        std::fs::remove_file(link).unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}

/// Each publication sweeps what crashes left of its name, and no file of another one that is on its way.
#[test]
fn publishers_of_one_name_leave_each_other_alone() {
    for case in cases() {
        let path = case.dir.path().join("x.srs");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let (storage, path) = (case.storage(FaultPlan::none()), &path);
                scope.spawn(move || {
                    for _ in 0..300 {
                        storage.publish(path).unwrap().commit().unwrap();
                    }
                });
            }
        });
        assert_eq!(case.entries(), [path]);
    }
}

const CHILD_DIR: &str = "SPILLPROOF_TEST_PUBLISH_CHILD";

/// Not a test: what the killed child of the next test does.
#[test]
fn publish_until_killed() {
    let Some(dir) = std::env::var_os(CHILD_DIR) else {
        return;
    };
    let storage = Storage::builder().dir(&dir).build().unwrap();
    let budget = Budget::new(1 << 20);
    for stamp in 0u64.. {
        let publish = storage.publish(Path::new(&dir).join("target")).unwrap();
        let mut buffer = budget.buffer(16 * PAGE, "b").unwrap();
        buffer.fill(stamp as u8);
        drop(
            publish
                .file()
                .write(buffer, [Segment::new(0, 0, 16 * PAGE)])
                .wait()
                .unwrap(),
        );
        publish.commit().unwrap();
    }
}

#[test]
fn kill_leaves_the_old_file_or_the_new_one() {
    let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("target");
    let mut whole = 0;
    for round in 0..12 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "files::publish_until_killed", "--test-threads=1"])
            .env(CHILD_DIR, dir.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(60 + 13 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        if let Ok(bytes) = std::fs::read(&path) {
            whole += 1;
            assert_eq!(bytes.len(), 16 * PAGE);
            assert!(bytes.iter().all(|byte| *byte == bytes[0]));
        }
    }
    assert!(whole > 0, "no child came as far as its first file: vacuous");
    let storage = Storage::builder().dir(dir.path()).build().unwrap();
    drop(storage.publish(&path).unwrap());
    assert_eq!(entries(dir.path()), [path], "partial files are swept");
}
