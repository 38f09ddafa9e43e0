//! The file of the page: found to be writable before the work, and there under its name when it is whole.

use std::path::{Path, PathBuf};

use spillproof_engine::Result;
use spillproof_engine::budget::Budget;
use spillproof_engine::storage::{Append, Backend, Publish, Storage};

/// The file.
#[derive(Debug)]
pub struct Page {
    /// From the root: the program may go to another folder.
    path: PathBuf,
    folder: PathBuf,
}

impl Page {
    /// The page at `path`, in a folder that exists and takes files.
    ///
    /// # Errors
    /// The reason, with the path.
    pub fn new(path: &Path) -> Result<Self, String> {
        let refused = |reason: &dyn std::fmt::Display| format!("`{}`: {reason}", path.display());
        let full = std::path::absolute(path).map_err(|error| refused(&error))?;
        if full.is_dir() {
            return Err(refused(&"is a folder: name a file in it"));
        }
        let folder = full.parent().unwrap_or(Path::new("/")).to_owned();
        if !folder.is_dir() {
            let missing = format!(
                "the folder {} does not exist: make it, or name a file in another one",
                folder.display()
            );
            return Err(refused(&missing));
        }
        let page = Self { path: full, folder };
        page.publish().map_err(|error| refused(&error))?;
        Ok(page)
    }

    /// Writes all of it, and gives the file its name.
    ///
    /// # Errors
    /// Those of the file; a file that had the name keeps it then.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        const BUFFER_BYTES: usize = 1 << 16;
        let mut file = Append::new(self.publish()?, &Budget::new(BUFFER_BYTES as u64), BUFFER_BYTES)?;
        file.push(bytes)?;
        file.finish()
    }

    fn publish(&self) -> Result<Publish> {
        let storage = Storage::builder()
            .dir(&self.folder)
            .backend(Backend::Inline)
            .build()?;
        storage.publish(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.html");
        let page = Page::new(&path).unwrap();
        let long = vec![b'x'; 100_000];
        for bytes in [b"first".as_slice(), &long, b"last"] {
            page.write(bytes).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
        assert_eq!(dir.path().read_dir().unwrap().count(), 1);
    }
}
