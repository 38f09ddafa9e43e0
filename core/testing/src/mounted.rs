//! File systems that a test mounts, and unmounts though a process used them that has just ended.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long the kernel may take to close the files of a ring.
const PATIENCE: Duration = Duration::from_secs(30);

/// A file system, unmounted when it goes.
#[derive(Debug)]
pub struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    /// `mount` with these arguments, and the folder behind them; `None` where it fails.
    pub fn new(arguments: &str, place: &'a Path) -> Option<Self> {
        let mut command = Command::new("mount");
        command
            .args(arguments.split(' '))
            .arg(place)
            .stderr(Stdio::null());
        command
            .status()
            .is_ok_and(|status| status.success())
            .then_some(Self(place))
    }

    /// A new file system of `bytes` bytes in the file `image`, made by `mkfs`; `None` where that fails.
    pub fn image(mkfs: &str, image: &Path, bytes: u64, place: &'a Path) -> Option<Self> {
        let file = std::fs::File::create(image).expect("an image");
        file.set_len(bytes).expect("a sparse file");
        let mut words = mkfs.split(' ');
        let mut command = Command::new(words.next()?);
        command.args(words).arg(image);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let is_made = command.status().is_ok_and(|status| status.success());
        let arguments = format!("-o loop {}", image.display());
        is_made.then(|| Self::new(&arguments, place)).flatten()
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let unmounted = unmount_within_patience(self.0);
        assert!(std::thread::panicking() || unmounted, "umount");
    }
}

/// Unmounts what is at `place`; `false` if that fails for half a minute. The kernel closes the files that an
/// `io_uring` had in flight a moment after the process has ended, and until then the file system is busy.
fn unmount_within_patience(place: &Path) -> bool {
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
