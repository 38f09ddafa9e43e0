//! Files that a command writes: found to be writable before its work, and under their names when they are whole.

use std::fs;
use std::path::{Path, PathBuf};

use spillproof::budget::{Budget, PAGE_BYTES};
use spillproof::storage::{Backend, Publish, Segment, Storage};

use crate::failure::Failure;
use crate::run::Result;

/// A file that is to be written.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    to: To,
}

#[derive(Debug)]
enum To {
    File(Publish),
    /// A pipe, a terminal or another device, which is written to as it is.
    Stream,
}

impl Output {
    /// For the file `path`, or for the one that a symbolic link of this name leads to.
    ///
    /// # Errors
    /// [`Failure::File`] where no file can be made, [`Failure::Engine`] for a folder.
    pub fn create(path: &Path) -> Result<Self> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let is_stream = fs::metadata(&path).is_ok_and(|found| !found.is_file() && !found.is_dir());
        let to = match is_stream {
            true => To::Stream,
            false => To::File(publish(&path).map_err(of(&path))?),
        };
        Ok(Self { path, to })
    }

    /// Writes all of it, and gives the file its name.
    ///
    /// # Errors
    /// [`Failure::File`]; a file that had the name keeps it then.
    pub fn write(self, bytes: impl AsRef<[u8]>) -> Result<()> {
        let bytes = bytes.as_ref();
        match self.to {
            To::File(file) => write(file, bytes).map_err(of(&self.path)),
            To::Stream => fs::write(&self.path, bytes).map_err(Failure::file(self.path)),
        }
    }
}

fn publish(path: &Path) -> spillproof::Result<Publish> {
    // No scratch is made here: any folder does.
    let storage = Storage::builder().dir(".").backend(Backend::Pread).build()?;
    storage.publish(path)
}

fn write(file: Publish, bytes: &[u8]) -> spillproof::Result<()> {
    if !bytes.is_empty() {
        let whole_bytes = bytes.len().next_multiple_of(PAGE_BYTES);
        let mut buffer = Budget::new(whole_bytes as u64).buffer(whole_bytes, "output")?;
        buffer[..bytes.len()].copy_from_slice(bytes);
        let all = Segment {
            file_offset: 0,
            buffer_offset: 0,
            bytes: whole_bytes,
        };
        file.file().write(buffer, [all]).wait()?;
    }
    file.file().set_len(bytes.len() as u64)?;
    file.commit()?;
    Ok(())
}

/// The system's error, with the file's name alone.
fn of(path: &Path) -> impl FnOnce(spillproof::Error) -> Failure {
    let path = path.to_owned();
    move |error| match error {
        spillproof::Error::File { source, .. } | spillproof::Error::Io { source, .. } => {
            Failure::File { file: path, source }
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A file stays as it was until the new one is whole; one that cannot be made is refused before any work.
    #[test]
    fn outputs_are_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("proof"), dir.path().join("link"));
        fs::write(&path, "old").unwrap();
        symlink(&path, &link).unwrap();
        let output = Output::create(&link).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(Output::create(&path).unwrap());
        for bytes in [&b"new"[..], &[7; 5000], b""] {
            Output::create(&link).unwrap().write(bytes).unwrap();
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
        output.write("last").unwrap();
        assert_eq!(fs::read(&link).unwrap(), b"last");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        Output::create(Path::new("/dev/null"))
            .unwrap()
            .write("gone")
            .unwrap();
        for nowhere in [
            dir.path(),
            &path.join("x"),
            &dir.path().join("nowhere/x"),
            Path::new("/"),
        ] {
            let refused = Output::create(nowhere).unwrap_err().explain();
            assert!(refused.contains(&nowhere.display().to_string()), "{refused}");
        }
    }
}
