//! A process that was forked off without exec has the session's memory and none of its threads: a call is an
//! error there, and ends.

#![allow(clippy::expect_used, clippy::unwrap_used, unsafe_code)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use ark_bn254::Fr;
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::checkpoint::{CheckpointKey, Checkpoints, Terms};
use spillproof_engine::column::{Placement, Writer};
use spillproof_engine::session::Participation;
use spillproof_engine::storage::Backend;
use spillproof_engine::stream;

fn is_refused<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Forked { maker }) if maker != std::process::id())
}

/// What the child tries. Each call has to end; the number of the first that is not refused.
fn child(session: &Arc<Session>, column: &spillproof_engine::column::Column<Fr>) -> i32 {
    let calls: [&dyn Fn() -> bool; 5] = [
        &|| is_refused(session.budget().lease(1, "bytes")),
        &|| {
            is_refused(Writer::<Fr>::scratch(
                session.workspace(),
                "column",
                8,
                Placement::Disk,
            ))
        },
        &|| is_refused(stream::evaluate(column, Fr::from(3u64))),
        &|| is_refused(session.admit(Participation::TakesNoPart, || Ok(1))),
        &|| is_refused(session.run(|| stream::evaluate(column, Fr::from(3u64)))),
    ];
    calls
        .iter()
        .position(|call| !call())
        .map_or(0, |at| at as i32 + 1)
}

/// Whether the child ends with 0, in time.
fn ends_well(pid: libc::pid_t, what: &str) {
    let since = Instant::now();
    let mut status = 0;
    // SAFETY: a child of the caller's, and a place for its status.
    while unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } == 0 {
        if since.elapsed() > Duration::from_secs(20) {
            // SAFETY: the child of above, which was not waited for.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            panic!("{what}: a call in the child hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(libc::WIFEXITED(status), "{what}: {status:#x}");
    assert_eq!(libc::WEXITSTATUS(status), 0, "{what}: this call was not refused");
}

/// A key that was read before the fork is zeros in the child, or a copy: the child keeps no checkpoint under
/// it, in a session of its own.
#[test]
fn a_checkpoint_key_of_before_a_fork_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    let checkpoints = Checkpoints::new(&kept, CheckpointKey::from_hex(&"5a".repeat(32)).unwrap());
    let terms = Terms {
        statement: [3; 32],
        draws_are_the_callers: false,
    };
    // SAFETY: the child calls nothing but the functions under test, and leaves by `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let builder = Session::builder().memory(ByteSize::Bytes(4 << 20));
        let code = match builder.dir(dir.path()).threads(1).build() {
            Ok(session) => i32::from(!is_refused(checkpoints.begin(
                session.workspace(),
                &terms,
                |_| (),
            ))),
            Err(_) => 2,
        };
        // SAFETY: ends the child, without what the test harness does at its end.
        unsafe { libc::_exit(code) };
    }
    ends_well(pid, "checkpoints");
    let mut logs = std::fs::read_dir(&kept).into_iter().flatten().flatten();
    let has_log = |folder: std::fs::DirEntry| folder.path().join("log").exists();
    assert!(!logs.any(has_log), "sealed with another key");
}

#[test]
fn after_a_fork_calls_are_refused() {
    for backend in [Backend::Auto, Backend::Pread] {
        let dir = tempfile::tempdir().unwrap();
        let builder = Session::builder()
            .memory(ByteSize::Bytes(4 << 20))
            .dir(dir.path());
        let session = Arc::new(builder.backend(backend).build().unwrap());
        let mut writer = Writer::scratch(session.workspace(), "column", 1 << 14, Placement::Disk).unwrap();
        writer.push(&vec![Fr::from(2u64); 1 << 14]).unwrap();
        let column = writer.finish().unwrap();
        let value = stream::evaluate(&column, Fr::from(1u64)).unwrap();

        // SAFETY: the child calls nothing but the functions under test, and leaves by `_exit`.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            let code = child(&session, &column);
            drop((column, session));
            // SAFETY: ends the child, without what the test harness does at its end.
            unsafe { libc::_exit(code) };
        }
        ends_well(pid, &format!("{backend:?}"));
        // The parent goes on.
        assert_eq!(stream::evaluate(&column, Fr::from(1u64)).unwrap(), value);
    }
}
