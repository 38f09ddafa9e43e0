//! Scratch files without a name: O_TMPFILE in the user's folder, else a file that is unlinked as soon as it
//! is made. The kernel frees them with their last handle, however the process ends. Only a crash between
//! making and unlinking leaves an empty file, which the next storage over the folder removes. One that has
//! gone may come again under another name in errors, with what it held:
//! [`Recycler`](super::recycler::Recycler) keeps some.
//!
//! The folder itself is made with mode 0700 if it is missing, and removed at the end if it was made here and
//! is empty.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::{FallocateFlags, FlockOperation, Mode, OFlags, fallocate, flock, ftruncate, unlink};
use rustix::io::Errno;

use super::file::File;
use super::handle::{self, Access, Room};
use super::recycler::Extent;
use super::{FaultPlan, Storage};
use crate::error::{Error, Result};

/// Of names that files have for a moment, where the file system has no files without one.
const PREFIX: &str = ".spillproof-scratch";
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
        let mut dir = Self {
            path: path.to_owned(),
            made: Vec::new(),
        };
        make_folders(path, faults, &mut dir.made)?;
        // Where files have a name for a moment, a crash may have come in that moment.
        sweep(path, PREFIX);
        Ok(dir)
    }

    /// No folder: nothing can be made in it.
    pub(super) fn none() -> Self {
        Self {
            path: PathBuf::from("(no folder)"),
            made: Vec::new(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A file of `bytes_hint`; [`Room::ClosedBehind`] if `is_closed_behind`, and it has no such length.
    pub(super) fn create(
        &self,
        storage: &Storage,
        what: String,
        bytes_hint: u64,
        is_closed_behind: bool,
    ) -> Result<File> {
        let (faults, recycler) = (&storage.inner.faults, &storage.inner.recycler);
        let name = format!("scratch file `{what}` in {}", self.path.display());
        let mut extent = (bytes_hint > 0).then(|| recycler.take(bytes_hint));
        let room = |extent: Option<Extent>| match extent {
            Some(extent) => Room::Kept(extent),
            None if is_closed_behind => Room::ClosedBehind(Arc::clone(recycler)),
            None => Room::Own,
        };
        let counters = &storage.inner.counters;
        // For faults, taking one that was kept is what making one is.
        if let Some(fd) = extent.as_mut().and_then(Extent::take_file) {
            faults
                .run(|| Ok(()))
                .map_err(|errno| handle::error("create", name.clone(), errno))?;
            faults
                .run(|| Ok(()))
                .map_err(|errno| reserve_error(&name, bytes_hint, errno))?;
            counters.scratch_reused.fetch_add(1, Relaxed);
            return File::new(storage, fd, name, Access::Aligned, room(extent));
        }
        let fd = self.make(&name, faults)?;
        if bytes_hint > 0 {
            let reserve = || match fallocate(&fd, FallocateFlags::empty(), 0, bytes_hint) {
                Err(errno) if is_unsupported(errno) => ftruncate(&fd, bytes_hint),
                result => result,
            };
            faults
                .run(|| match reserve() {
                    Err(Errno::NOSPC | Errno::DQUOT) if recycler.forget() => reserve(),
                    result => result,
                })
                .map_err(|errno| reserve_error(&name, bytes_hint, errno))?;
        }
        counters.scratch_made.fetch_add(1, Relaxed);
        File::new(storage, Arc::new(fd), name, Access::Aligned, room(extent))
    }

    /// A new file without a name in the folder, called `name` in errors.
    fn make(&self, name: &str, faults: &FaultPlan) -> Result<OwnedFd> {
        let mode = Mode::RUSR | Mode::WUSR;
        let failed = |errno| handle::error("create", name, errno);
        match nameless(&self.path, mode, faults) {
            Err(errno) if is_unsupported(errno) => {}
            result => return result.map_err(failed),
        }
        let (fd, path) = named(&self.path, PREFIX, mode, faults).map_err(failed)?;
        faults
            .run(|| unlink(&path))
            .or_else(|errno| match unlink(&path) {
                // Gone: the sweep of another process took the name away.
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(_) => Err(errno),
            })
            .map_err(|errno| handle::error("unlink", path.display().to_string(), errno))?;
        Ok(fd)
    }
}

/// Makes `path` and the folders around it that are missing, with mode 0700, and enters them in `made`,
/// outermost first.
pub(super) fn make_folders(path: &Path, faults: &FaultPlan, made: &mut Vec<PathBuf>) -> Result<()> {
    for folder in missing_folders(path) {
        match faults.run(|| rustix::fs::mkdir(&folder, Mode::RWXU)) {
            Ok(()) => made.push(folder),
            Err(Errno::EXIST) => {}
            Err(errno) => {
                let shown = folder.display().to_string();
                return Err(handle::error("create the folder", shown, errno));
            }
        }
    }
    Ok(())
}

/// The folders that have to be made for `path` to be one, outermost first.
fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let ancestors = path.ancestors();
    let missing = ancestors.take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists());
    let mut missing: Vec<_> = missing.map(Path::to_owned).collect();
    missing.reverse();
    missing
}

fn reserve_error(name: &str, bytes: u64, errno: Errno) -> Error {
    handle::error("reserve room for", format!("{name}, {bytes} bytes"), errno)
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

/// `dir/PREFIX-PID-N` with a random N: processes of other namespaces may have the same number.
pub(super) fn fresh_name(dir: &Path, prefix: &str) -> PathBuf {
    dir.join(format!(
        "{prefix}-{}-{}",
        std::process::id(),
        rand::random::<u64>()
    ))
}

/// Removes what crashes have left of files `PREFIX-PID-N`. What cannot be removed is no obstacle.
pub(super) fn sweep(dir: &Path, prefix: &str) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_partial = name
            .to_str()
            .and_then(|name| name.strip_prefix(prefix))
            .and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'));
        if !is_partial {
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let Ok(fd) = rustix::fs::open(entry.path(), flags, Mode::empty()) else {
            continue;
        };
        if flock(fd.as_fd(), FlockOperation::NonBlockingLockExclusive).is_ok() && unlink(entry.path()).is_ok()
        {
            tracing::info!(file = %entry.path().display(), "removed a file that a crash had left");
        }
    }
}
