//! A test that may hang fails instead.

use std::sync::mpsc;
use std::time::Duration;

/// Runs `work` on a thread of its own, and panics if it has not ended after `seconds`. A thread that hangs
/// ends with the process.
pub fn within<T: Send + 'static>(seconds: u64, what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let result = work();
        // The receiver has given up.
        let _ = sender.send(());
        result
    });
    match receiver.recv_timeout(Duration::from_secs(seconds)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what}: not done after {seconds} s"),
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        },
    }
}
