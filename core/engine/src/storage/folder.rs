//! A folder of files that outlive the process: whole files of frames, and journals that grow by notes.
//!
//! What such a file holds is its writer's to check; here it is only made durable: a file by [`File::sync`],
//! its name by [`Folder::sync`], a note of a journal when [`Journal::append`] returns.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, Mode, OFlags, fdatasync, flock, fstat, ftruncate, unlink};
use rustix::io::Errno;

use super::file::File;
use super::handle::{self, Access, Room};
use super::{FaultPlan, Storage, publish, scratch};
use crate::error::Result;

/// A folder, and the lock on it where that was asked for.
pub(crate) struct Folder {
    path: PathBuf,
    storage: Storage,
    lock: Option<OwnedFd>,
}

/// A file that grows by notes.
pub(crate) struct Journal {
    fd: OwnedFd,
    name: String,
    end: u64,
    faults: FaultPlan,
}

impl Storage {
    /// The folder at `path`, made with mode 0700 if it is missing.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub(crate) fn folder(&self, path: &Path) -> Result<Folder> {
        let folder = Folder {
            path: path.to_owned(),
            storage: self.clone(),
            lock: None,
        };
        let mut made = Vec::new();
        scratch::make_folders(path, folder.faults(), &mut made)?;
        // The name of each is in the one around it.
        for parent in made.iter().filter_map(|folder| folder.parent()) {
            publish::sync_folder(parent, folder.faults())?;
        }
        Ok(folder)
    }
}

impl Folder {
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn faults(&self) -> &FaultPlan {
        &self.storage.inner.faults
    }

    /// Takes the lock, which goes with this value; `false` while another has it.
    pub fn lock(&mut self) -> Result<bool> {
        let failed = |operation, errno| handle::error(operation, self.path.display().to_string(), errno);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = self
            .faults()
            .run(|| rustix::fs::open(&self.path, flags, Mode::empty()))
            .map_err(|errno| failed("open", errno))?;
        match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
            // Removed between its making and its lock.
            Ok(()) if fstat(&fd).is_ok_and(|stat| stat.st_nlink == 0) => Ok(false),
            Ok(()) => {
                self.lock = Some(fd);
                Ok(true)
            }
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(errno) => Err(failed("lock", errno)),
        }
    }

    /// A new file of frames; one that has the name is emptied.
    pub fn create(&self, name: &str) -> Result<File> {
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        self.open_with(name, "create", flags)
    }

    /// A file of frames, to read.
    pub fn open(&self, name: &str) -> Result<File> {
        self.open_with(name, "open", OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW)
    }

    fn open_with(&self, name: &str, operation: &'static str, flags: OFlags) -> Result<File> {
        let fd = self.open_fd(name, operation, flags)?;
        let shown = self.path.join(name).display().to_string();
        File::new(&self.storage, Arc::new(fd), shown, Access::Aligned, Room::Own)
    }

    fn open_fd(&self, name: &str, operation: &'static str, flags: OFlags) -> Result<OwnedFd> {
        let (path, mode) = (self.path.join(name), Mode::RUSR | Mode::WUSR);
        self.faults()
            .run(|| rustix::fs::open(&path, flags, mode))
            .map_err(|errno| handle::error(operation, path.display().to_string(), errno))
    }

    /// Whether it has a file of this name.
    pub fn has(&self, name: &str) -> bool {
        self.path.join(name).exists()
    }

    /// What a small file holds; nothing if there is none. One that has more than `bytes_max` bytes is an
    /// error.
    pub fn read(&self, name: &str, bytes_max: u64) -> Result<Vec<u8>> {
        let path = self.path.join(name);
        let failed = |source| handle::error("read", path.display().to_string(), source);
        self.faults()
            .run(|| Ok(()))
            .map_err(|errno| failed(errno.into()))?;
        match read_start(&path, bytes_max + 1) {
            Ok(bytes) if bytes.len() as u64 > bytes_max => Err(failed(std::io::Error::other(format!(
                "it has more than {bytes_max} bytes, and was not written by this program: remove it"
            )))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            read => read.map_err(failed),
        }
    }

    /// A journal that goes on behind its first `end` bytes; what stands behind them goes.
    pub fn journal(&self, name: &str, end: u64) -> Result<Journal> {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = self.open_fd(name, "open", flags)?;
        let name = self.path.join(name).display().to_string();
        self.faults()
            .run(|| ftruncate(&fd, end))
            .map_err(|errno| handle::error("resize", name.clone(), errno))?;
        self.sync()?;
        Ok(Journal {
            fd,
            name,
            end,
            faults: self.faults().clone(),
        })
    }

    /// Appends to a file that several processes may append to, and makes that durable.
    pub fn append(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let flags = OFlags::CREATE | OFlags::APPEND | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = self.open_fd(name, "open", flags)?;
        let failed =
            |operation, errno| handle::error(operation, self.path.join(name).display().to_string(), errno);
        let write = || match rustix::io::write(&fd, bytes)? {
            written if written == bytes.len() => Ok(()),
            _ => Err(Errno::NOSPC),
        };
        self.faults().run(write).map_err(|errno| failed("write", errno))?;
        self.faults()
            .run(|| fdatasync(&fd))
            .map_err(|errno| failed("fsync", errno))?;
        self.sync()
    }

    /// Makes names durable.
    pub fn sync(&self) -> Result<()> {
        publish::sync_folder(&self.path, self.faults())
    }

    /// Removes all files in the folder, those of `first` before the others, and the folder itself. What is no
    /// file stays, and the folder too.
    pub fn remove(self, first: &str) -> Result<()> {
        let failed =
            |operation, path: &Path, source| handle::error(operation, path.display().to_string(), source);
        let path = &self.path;
        let removed = |path: &Path| match self.faults().run(|| unlink(path)) {
            Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => Ok(()),
            Err(errno) => Err(failed("remove", path, errno.into())),
        };
        removed(&path.join(first))?;
        let entries = std::fs::read_dir(path).map_err(|source| failed("read", path, source))?;
        for entry in entries {
            let entry = entry.map_err(|source| failed("read", path, source))?;
            removed(&entry.path())?;
        }
        match self.faults().run(|| rustix::fs::rmdir(path)) {
            Ok(()) | Err(Errno::NOTEMPTY) => Ok(()),
            Err(errno) => Err(failed("remove", path, errno.into())),
        }
    }
}

impl Journal {
    /// Appends a note; when this returns, it is on the disk. After an error its bytes may be there in part:
    /// the next note overwrites them.
    pub fn append(&mut self, note: &[u8]) -> Result<()> {
        let failed = |operation, errno| handle::error(operation, self.name.clone(), errno);
        let write = || {
            let mut done = 0;
            while done < note.len() {
                match rustix::io::pwrite(&self.fd, &note[done..], self.end + done as u64) {
                    Ok(0) => return Err(Errno::IO),
                    Ok(written) => done += written,
                    Err(Errno::INTR) => {}
                    Err(errno) => return Err(errno),
                }
            }
            Ok(())
        };
        self.faults.run(write).map_err(|errno| failed("write", errno))?;
        self.faults
            .run(|| fdatasync(&self.fd))
            .map_err(|errno| failed("fsync", errno))?;
        self.end += note.len() as u64;
        Ok(())
    }
}

/// The first bytes of a file, of a pipe or of a device, `bytes_max` at most.
pub(crate) fn read_start(path: &Path, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(bytes_max)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a file is in a folder, or in one of its folders. One that does not exist is not.
pub(crate) fn is_inside(path: &Path, folder: &Path) -> bool {
    match (path.canonicalize(), folder.canonicalize()) {
        (Ok(path), Ok(folder)) => path.starts_with(folder),
        _ => false,
    }
}
