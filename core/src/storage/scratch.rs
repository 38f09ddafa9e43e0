//! Scratch files without a name: O_TMPFILE in the user's folder, else a file that is unlinked as soon as it is made. The
//! kernel frees them with their last handle, however the process ends, so there is nothing to clean up.
//!
//! The folder itself is made with mode 0700 if it is missing, and removed at the end if it was made here and is empty.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, ftruncate};
use rustix::io::Errno;

use super::file::{self, Access, File};
use super::{FaultPlan, Storage};
use crate::error::Result;

/// Makes names differ within a process.
static NAMES: AtomicU64 = AtomicU64::new(0);

/// How often a name that is taken is tried with another number.
const NAME_ATTEMPTS_MAX: usize = 1000;

/// Where scratch files are made.
pub(super) struct ScratchDir {
    path: PathBuf,
    /// Folders that were made here, outermost first.
    made: Vec<PathBuf>,
}

impl ScratchDir {
    pub(super) fn new(path: &Path, faults: &FaultPlan) -> Result<Self> {
        let mut missing: Vec<&Path> = path
            .ancestors()
            .take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists())
            .collect();
        missing.reverse();
        let mut dir = Self {
            path: path.to_owned(),
            made: Vec::new(),
        };
        for folder in missing {
            match faults.run(|| rustix::fs::mkdir(folder, Mode::RWXU)) {
                Ok(()) => dir.made.push(folder.to_owned()),
                Err(Errno::EXIST) => {}
                Err(errno) => {
                    return Err(file::error(
                        "create the folder",
                        folder.display().to_string(),
                        errno,
                    ));
                }
            }
        }
        Ok(dir)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn create(&self, storage: &Storage, what: String, bytes_hint: u64) -> Result<File> {
        let faults = &storage.inner.faults;
        let name = format!("scratch file `{what}` in {}", self.path.display());
        let mode = Mode::RUSR | Mode::WUSR;
        let fd = match nameless(&self.path, mode, faults) {
            Err(errno) if is_unsupported(errno) => {
                let (fd, path) = named(&self.path, ".spillproof-scratch", mode, faults)
                    .map_err(|errno| file::error("create", name.clone(), errno))?;
                faults
                    .run(|| rustix::fs::unlink(&path))
                    .or_else(|errno| match rustix::fs::unlink(&path) {
                        Ok(()) => Ok(()),
                        Err(_) => Err(errno),
                    })
                    .map_err(|errno| file::error("unlink", path.display().to_string(), errno))?;
                Ok(fd)
            }
            result => result,
        }
        .map_err(|errno| file::error("create", name.clone(), errno))?;
        if bytes_hint > 0 {
            faults
                .run(|| match fallocate(&fd, FallocateFlags::empty(), 0, bytes_hint) {
                    Err(errno) if is_unsupported(errno) => ftruncate(&fd, bytes_hint),
                    result => result,
                })
                .map_err(|errno| {
                    file::error("reserve room for", format!("{name}, {bytes_hint} bytes"), errno)
                })?;
        }
        File::new(storage, fd, name, Access::Aligned)
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        for dir in self.made.iter().rev() {
            // Somebody else may have put something there; then it stays.
            if rustix::fs::rmdir(dir).is_err() {
                break;
            }
        }
    }
}

/// Whether the file system cannot do this at all (rather than: not now).
pub(super) fn is_unsupported(errno: Errno) -> bool {
    // EISDIR is what kernels before O_TMPFILE say, and file systems that forward flags they do not know.
    [
        Errno::OPNOTSUPP,
        Errno::ISDIR,
        Errno::INVAL,
        Errno::NOSYS,
        Errno::NOENT,
    ]
    .contains(&errno)
}

/// A file without a name in `dir`.
pub(super) fn nameless(dir: &Path, mode: Mode, faults: &FaultPlan) -> Result<OwnedFd, Errno> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    faults.run(|| rustix::fs::open(dir, flags, mode))
}

/// A new file `PREFIX-PID-N` in `dir`.
pub(super) fn named(
    dir: &Path,
    prefix: &str,
    mode: Mode,
    faults: &FaultPlan,
) -> Result<(OwnedFd, PathBuf), Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    for _ in 0..NAME_ATTEMPTS_MAX {
        let path = fresh_name(dir, prefix);
        match faults.run(|| rustix::fs::open(&path, flags, mode)) {
            Err(Errno::EXIST) => {}
            Ok(fd) => return Ok((fd, path)),
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::EXIST)
}

/// `dir/PREFIX-PID-N`, another one at each call.
pub(super) fn fresh_name(dir: &Path, prefix: &str) -> PathBuf {
    dir.join(format!(
        "{prefix}-{}-{}",
        std::process::id(),
        NAMES.fetch_add(1, Relaxed)
    ))
}
