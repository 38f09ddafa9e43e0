//! Compiled images on disk, so that a machine compiles the kernels once.
//!
//! File `<digest>.image`. The digest is BLAKE3 of everything that the image depends on, each part with its
//! length:
//!
//! ```text
//! bytes 0..8     "SPKIMG01"
//! bytes 8..40    BLAKE3 of the image
//! bytes 40..     the image
//! ```
//!
//! A file appears whole, by a rename. A damaged file is compiled again and replaced. No error of the disk
//! fails a job, since the compiler can replace any file; a folder that cannot be written to costs time only.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Compiler, Text};
use crate::error::{Error, Result};

const MAGIC: &[u8; 8] = b"SPKIMG01";
const HEADER_BYTES: usize = 40;

/// A folder of images.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The cache in this folder, which is created with the first image.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// The image of `text`, from the cache or from the compiler; then the cache keeps it.
    ///
    /// # Errors
    /// Those of the compiler.
    pub fn image(
        &self,
        text: &Text,
        compute_capability: (i32, i32),
        compiler: &dyn Compiler,
    ) -> Result<Vec<u8>> {
        let file = self.file(text, compute_capability, &compiler.version()?);
        if let Some(image) = fs::read(&file).ok().and_then(checked) {
            return Ok(image);
        }
        let image = compiler.compile(text, compute_capability)?;
        // If it cannot be kept, the next start compiles again.
        let _ = self.keep(&file, &image);
        Ok(image)
    }

    /// The file of an image.
    pub fn file(&self, text: &Text, (major, minor): (i32, i32), version: &str) -> PathBuf {
        let mut hasher = blake3::Hasher::new();
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        };
        part(MAGIC);
        part(version.as_bytes());
        part(format!("sm_{major}{minor}").as_bytes());
        part(text.name.as_bytes());
        part(text.main.as_bytes());
        part(&(text.headers.len() as u64).to_le_bytes());
        for (name, content) in &text.headers {
            part(name.as_bytes());
            part(content.as_bytes());
        }
        text.options.iter().for_each(|option| part(option.as_bytes()));
        self.folder.join(format!("{}.image", hasher.finalize().to_hex()))
    }

    /// Writes an image to its file; [`Cache::image`] calls this.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn keep(&self, file: &Path, image: &[u8]) -> Result<()> {
        let failed = |source: io::Error| Error::File {
            operation: "write",
            file: file.to_owned(),
            source,
        };
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let mut partial = tempfile::NamedTempFile::new_in(&self.folder).map_err(failed)?;
        partial.write_all(MAGIC).map_err(failed)?;
        partial
            .write_all(blake3::hash(image).as_bytes())
            .map_err(failed)?;
        partial.write_all(image).map_err(failed)?;
        partial.as_file().sync_all().map_err(failed)?;
        partial.persist(file).map_err(|e| failed(e.error))?;
        Ok(())
    }
}

/// The image in the bytes of a file, if the file is whole.
fn checked(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let header = bytes.get(..HEADER_BYTES)?;
    let (magic, digest) = header.split_at(MAGIC.len());
    let image = bytes.get(HEADER_BYTES..)?;
    if magic != MAGIC || digest != blake3::hash(image).as_bytes() {
        return None;
    }
    Some(bytes.split_off(HEADER_BYTES))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Counts its compilations; its image is the text, the architecture and the version.
    struct Counting {
        version: &'static str,
        compiled: Cell<u32>,
    }

    impl Compiler for Counting {
        fn version(&self) -> Result<String> {
            Ok(self.version.to_owned())
        }

        fn compile(&self, text: &Text, arch: (i32, i32)) -> Result<Vec<u8>> {
            self.compiled.set(self.compiled.get() + 1);
            if text.main == "bad" {
                let (arch, log) = (format!("{arch:?}"), "no".to_owned());
                return Err(Error::Compile { arch, log });
            }
            Ok(format!("{} {arch:?} {}", text.main, self.version).into_bytes())
        }
    }

    fn counting(version: &'static str) -> Counting {
        Counting {
            version,
            compiled: Cell::new(0),
        }
    }

    fn text(main: &str) -> Text {
        Text {
            name: "all.cu".into(),
            main: main.into(),
            ..Text::default()
        }
    }

    #[test]
    fn the_same_is_compiled_once_and_a_change_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().join("new"));
        let compiler = counting("1");
        let mut headers = text("a");
        headers.headers.push(("h".into(), "x".into()));
        let mut other_header = headers.clone();
        other_header.headers[0].1 = "y".into();
        let mut options = text("a");
        options.options.push("-O0".into());
        let cases = [
            (text("a"), (9, 0)),
            (text("b"), (9, 0)),
            (text("a"), (8, 0)),
            (headers, (9, 0)),
            (other_header, (9, 0)),
            (options, (9, 0)),
        ];
        for round in 0..2 {
            for (text, arch) in &cases {
                let image = cache.image(text, *arch, &compiler).unwrap();
                assert_eq!(
                    image,
                    format!("{} {arch:?} 1", text.main).into_bytes(),
                    "round {round}"
                );
            }
            assert_eq!(compiler.compiled.get(), cases.len() as u32, "round {round}");
        }
        let newer = counting("2");
        assert_eq!(cache.image(&text("a"), (9, 0), &newer).unwrap(), b"a (9, 0) 2");
        assert_eq!(newer.compiled.get(), 1);
    }

    #[test]
    fn a_damaged_file_is_compiled_anew_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path());
        let compiler = counting("1");
        let file = cache.file(&text("a"), (9, 0), "1");
        cache.image(&text("a"), (9, 0), &compiler).unwrap();
        let whole = fs::read(&file).unwrap();
        for length in 0..whole.len() {
            fs::write(&file, &whole[..length]).unwrap();
            assert_eq!(cache.image(&text("a"), (9, 0), &compiler).unwrap(), b"a (9, 0) 1");
            assert_eq!(fs::read(&file).unwrap(), whole);
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&file, &damaged).unwrap();
            assert_eq!(cache.image(&text("a"), (9, 0), &compiler).unwrap(), b"a (9, 0) 1");
        }
        assert_eq!(compiler.compiled.get() as usize, 1 + 2 * whole.len());
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "no partial file is left"
        );
    }

    #[test]
    fn what_does_not_compile_is_not_kept_and_no_folder_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path());
        assert!(matches!(
            cache.image(&text("bad"), (9, 0), &counting("1")),
            Err(Error::Compile { .. })
        ));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let not_a_folder = folder.path().join("file");
        fs::write(&not_a_folder, b"").unwrap();
        let cache = Cache::new(not_a_folder);
        assert_eq!(
            cache.image(&text("a"), (9, 0), &counting("1")).unwrap(),
            b"a (9, 0) 1"
        );
    }
}
