//! Unmounting what a process used that has just ended.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long the kernel may take to close the files of a ring.
const PATIENCE: Duration = Duration::from_secs(30);

/// Unmounts what is at `place`; `false` if that fails for half a minute. The kernel closes the files that an `io_uring` had in flight a moment
/// after the process has ended, and until then the file system is busy.
pub fn within_patience(place: &Path) -> bool {
    let since = Instant::now();
    loop {
        let last = since.elapsed() > PATIENCE;
        let mut command = Command::new("umount");
        command.arg(place);
        if !last {
            command.stderr(Stdio::null());
        }
        if command.status().is_ok_and(|status| status.success()) {
            return true;
        }
        if last {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
