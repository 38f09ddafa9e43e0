//! Files that appear under their name whole, or not at all.
//!
//! The bytes go to a nameless file in the target's folder (O_TMPFILE), or where the file system or `/proc`
//! has none, to `.NAME.spillproof-partial-PID-N` beside it. Commit: fsync the file, link it to such a name if
//! it has none, rename it over the target, fsync the folder. A crash at any point leaves the old file or the
//! new one under the name, and at most a partial file beside it, which the next publication of that name
//! sweeps away: no process owns it when its lock is free. A partial file is locked before it has a name. What
//! is no file under the target's name (a symbolic link, a device) is refused.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, fchmod, flock, fstat, fsync, linkat, rename, unlink,
};
use rustix::io::Errno;

use super::file::File;
use super::handle::{self, Access, Room};
use super::{FaultPlan, Storage, scratch};
use crate::error::{Invalid, Result};

/// How often a partial file that a sweep of another process took away is made anew.
const PARTIAL_ATTEMPTS_MAX: usize = 16;

const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);

/// Who may read a file, from its making on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Readers {
    /// Whom the umask allows.
    Umask,
    /// Its owner alone.
    Owner,
}

/// Bytes of a target's name that the name of its partial file has. With the rest (19 for the word, 32 for
/// process and number, 17 for the digest) it is below the 255 that file systems allow.
const NAME_BYTES_KEPT: usize = 160;
/// Digits of the digest that stands for the rest of a long name.
const DIGEST_DIGITS: usize = 16;

/// Where the kernel shows open files.
const DESCRIPTORS: &str = "/proc/self/fd";

/// A file on its way to its name. Dropped without [`Publish::commit`], it never gets it, and nothing is left.
pub struct Publish {
    file: File,
    path: PathBuf,
    dir: PathBuf,
    prefix: String,
    /// The name beside the target, while it has one.
    partial: Option<PathBuf>,
}

impl Publish {
    pub(super) fn new(storage: &Storage, path: &Path, readers: Readers) -> Result<Self> {
        let shown = path.display().to_string();
        let Some(name) = path.file_name() else {
            return Err(Invalid::NotAFileName { path: shown }.into());
        };
        let dir = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        if let Some(kind) = not_a_file(path) {
            return Err(Invalid::NotAFile { path: shown, kind }.into());
        }
        if let Some(name_bytes_max) = name_bytes_max(&dir)
            && name.len() > name_bytes_max
        {
            return Err(handle::error("create", shown, Errno::NAMETOOLONG));
        }
        let prefix = prefix_of(&name.to_string_lossy());
        scratch::sweep(&dir, &prefix);
        let faults = &storage.inner.faults;
        let mode = match readers {
            Readers::Umask => Mode::from_raw_mode(0o666),
            Readers::Owner => OWNER_ONLY,
        };
        let in_place =
            || create_partial(&dir, &prefix, mode, faults).map(|(fd, partial)| (fd, Some(partial)));
        // A nameless file gets its name through /proc.
        let created = match Path::new(DESCRIPTORS).exists() {
            false => in_place(),
            true => match scratch::nameless(&dir, mode, faults) {
                Ok(fd) => Ok((fd, None)),
                Err(errno) if scratch::is_unsupported(errno) => in_place(),
                Err(errno) => Err(errno),
            },
        };
        let (fd, partial) = created.map_err(|errno| handle::error("create", shown.clone(), errno))?;
        // A file that stays may need the room.
        storage.inner.recycler.forget();
        let file = File::new(storage, Arc::new(fd), shown.clone(), Access::Aligned, Room::Own)?;
        let publish = Self {
            file,
            path: path.to_owned(),
            dir,
            prefix,
            partial,
        };
        if readers == Readers::Owner {
            // Refused where files have the permissions of the mount.
            fchmod(publish.file.fd(), OWNER_ONLY).map_err(|errno| handle::error("restrict", shown, errno))?;
        }
        Ok(publish)
    }

    /// The file to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Where it will appear.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, operation: &'static str, errno: Errno) -> crate::Error {
        handle::error(operation, self.path.display().to_string(), errno)
    }

    /// Makes the file durable under a name beside its own, so that [`Self::commit`] has only to rename it: of
    /// several files that belong together, each is prepared before the first is committed. All writes must
    /// have been waited for.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn prepare(&mut self) -> Result<()> {
        self.file.sync()?;
        if self.partial.is_some() {
            return Ok(());
        }
        let partial = scratch::fresh_name(&self.dir, &self.prefix);
        // A sweep that finds the name finds the lock too.
        flock(self.file.fd(), FlockOperation::NonBlockingLockExclusive)
            .map_err(|errno| self.failed("lock", errno))?;
        let source = format!("{DESCRIPTORS}/{}", self.file.fd().as_raw_fd());
        let faults = &self.file.storage().inner.faults;
        faults
            .run(|| linkat(CWD, &source, CWD, &partial, AtFlags::SYMLINK_FOLLOW))
            .map_err(|errno| self.failed("link", errno))?;
        self.partial = Some(partial);
        Ok(())
    }

    /// Makes the file durable and gives it its name. All writes must have been waited for. The file stays
    /// open.
    ///
    /// # Errors
    /// [`crate::Error::File`]: the name then still means what it meant before, except if only the last step,
    /// the fsync of the folder, failed: then the file is there, and may be gone after a power failure.
    pub fn commit(mut self) -> Result<File> {
        self.prepare()?;
        let faults = self.file.storage().inner.faults.clone();
        if let Some(partial) = self.partial.take()
            && let Err(errno) = faults.run(|| rename(&partial, &self.path))
        {
            let error = self.failed("rename", errno);
            self.partial = Some(partial);
            return Err(error);
        }
        // Its name is no partial file's any more.
        let _still_locked = flock(self.file.fd(), FlockOperation::Unlock);
        sync_folder(&self.dir, &faults)?;
        Ok(self.file.clone())
    }
}

impl Drop for Publish {
    fn drop(&mut self) {
        if let Some(partial) = self.partial.take()
            && let Err(errno) = unlink(&partial)
        {
            tracing::warn!(file = %partial.display(), %errno, "a partial file could not be removed");
        }
    }
}

impl std::fmt::Debug for Publish {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publish")
            .field("path", &self.path)
            .field("partial", &self.partial)
            .finish_non_exhaustive()
    }
}

/// What names of partial files of a target begin with. A long name is cut, so that the rest has room.
fn prefix_of(name: &str) -> String {
    let name = match name.len() > NAME_BYTES_KEPT {
        false => name.to_owned(),
        true => {
            let digest = blake3::hash(name.as_bytes()).to_hex();
            let end = (0..=NAME_BYTES_KEPT)
                .rev()
                .find(|end| name.is_char_boundary(*end));
            format!("{}-{}", &name[..end.unwrap_or(0)], &digest[..DIGEST_DIGITS])
        }
    };
    format!(".{name}.spillproof-partial")
}

/// The longest name in a folder; `None` where the file system does not tell.
fn name_bytes_max(dir: &Path) -> Option<usize> {
    let bytes = rustix::fs::statvfs(dir).ok()?.f_namemax;
    usize::try_from(bytes).ok().filter(|bytes| *bytes > 0)
}

/// Takes a name away, durably; one that is gone is none.
pub(super) fn remove(path: &Path, faults: &FaultPlan) -> Result<()> {
    match faults.run(|| unlink(path)) {
        Ok(()) => sync_folder(path.parent().unwrap_or(Path::new("")), faults),
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(handle::error("remove", path.display().to_string(), errno)),
    }
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(dir: &Path, faults: &FaultPlan) -> Result<()> {
    // A relative name of one part stands in the current folder.
    let dir = match dir.as_os_str().is_empty() {
        true => Path::new("."),
        false => dir,
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    faults
        .run(|| fsync(rustix::fs::open(dir, flags, Mode::empty())?))
        .map_err(|errno| handle::error("fsync", dir.display().to_string(), errno))
}

/// The kind of what has this name and is no file; `None` if it is one, or if there is nothing.
fn not_a_file(path: &Path) -> Option<&'static str> {
    let kind = std::fs::symlink_metadata(path).ok()?.file_type();
    if kind.is_file() {
        None
    } else if kind.is_dir() {
        Some("a folder")
    } else if kind.is_symlink() {
        Some("a symbolic link")
    } else {
        Some("a device, a pipe or a socket")
    }
}

/// A named partial file, locked, so that sweeps leave it alone.
fn create_partial(
    dir: &Path,
    prefix: &str,
    mode: Mode,
    faults: &FaultPlan,
) -> Result<(std::os::fd::OwnedFd, PathBuf), Errno> {
    for _ in 0..PARTIAL_ATTEMPTS_MAX {
        let (fd, partial) = scratch::named(dir, prefix, mode, faults)?;
        let locked = flock(&fd, FlockOperation::NonBlockingLockExclusive);
        // A sweep may have come between creation and lock: it holds the lock, or the name is gone already.
        if locked.is_ok() && fstat(&fd)?.st_nlink == 1 {
            return Ok((fd, partial));
        }
    }
    Err(Errno::AGAIN)
}
