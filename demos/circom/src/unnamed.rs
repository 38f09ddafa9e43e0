//! Files without a name, for what comes as bytes and is public: keys.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use spillproof_engine::Session;
use spillproof_format::iden3::FileKind;

use crate::{Error, Result, content};

/// A file in a session's folder that has no name: it is gone when this is dropped, and when the process ends, however
/// it ends.
#[derive(Debug)]
pub struct Unnamed {
    file: File,
    dir: PathBuf,
    is_empty: bool,
}

impl Unnamed {
    /// An empty one.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn new(session: &Session) -> Result<Self> {
        let dir = session.dir().to_owned();
        match tempfile::tempfile_in(&dir) {
            Ok(file) => Ok(Self {
                file,
                dir,
                is_empty: true,
            }),
            Err(source) => Err(Error::File { file: dir, source }),
        }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::Content`] for a witness, which is not written in plain.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let magic = bytes.first_chunk().copied().map(FileKind::detect);
        if self.is_empty && magic.flatten() == Some(FileKind::Wtns) {
            return Err(content(
                Path::new("the key"),
                "these are the bytes of a witness (.wtns): give those of a key (.zkey)",
            ));
        }
        self.is_empty &= bytes.is_empty();
        self.file.write_all(bytes).map_err(|source| Error::File {
            file: self.dir.clone(),
            source,
        })
    }

    /// A path to it, which this process has while it lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }
}
