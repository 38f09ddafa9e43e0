//! A pinned release, found, checked and read.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::locate::{Source, locate, not_found};
use crate::release::Upstream;
use crate::{BLESS_VARIABLE, Error, Result, Tree, digest};

/// Files by their path within the crate.
type Files<T> = BTreeMap<String, T>;

impl Upstream<'_> {
    /// Finds the source, checks it, and reads it. For build scripts: also tells cargo when to run again.
    /// `out_dir` is where a throw-away manifest may be put.
    ///
    /// # Errors
    /// [`Error::SourceNotFound`], [`Error::Tampered`], or a file that can't be read.
    pub fn open(&self, out_dir: &Path) -> Result<Tree> {
        println!("cargo::rerun-if-env-changed={}", self.source_variable);
        println!("cargo::rerun-if-env-changed={BLESS_VARIABLE}");
        if let Some(place) = std::env::var_os(self.source_variable).filter(|place| !place.is_empty()) {
            // What the user says is final: nothing else is tried behind their back.
            return self.open_at(Path::new(&place));
        }
        self.tree(&locate(self, out_dir)?)
    }

    /// As [`Upstream::open`], from this `.crate` file or directory.
    ///
    /// # Errors
    /// As for [`Upstream::open`].
    pub fn open_at(&self, place: &Path) -> Result<Tree> {
        let Self { name, version, .. } = self;
        let tried = || {
            format!(
                "{}: neither a .crate file nor a source directory, nor a folder with {name}-{version}.crate, {name}-{version} or {name} in it",
                place.display()
            )
        };
        let source = Source::named(place, name, version).ok_or_else(|| not_found(self, vec![tried()]))?;
        self.tree(&source)
    }

    fn tree(&self, source: &Source) -> Result<Tree> {
        println!("cargo::rerun-if-changed={}", source.watched().display());
        let bless = std::env::var_os(BLESS_VARIABLE).is_some_and(|value| !value.is_empty());
        let (texts, others) = self.read(source, bless)?;
        Ok(Tree::new(texts, bless).copying(others))
    }

    /// The pinned files of a source, checked against their digests unless `bless`: those that are text, and
    /// the others.
    fn read(&self, source: &Source, bless: bool) -> Result<(Files<String>, Files<Vec<u8>>)> {
        let pins = self.pins()?;
        let mut files = match source {
            Source::Directory(root) => directory_files(root, &pins)?,
            Source::Archive(path) => self.archive_files(path, &pins, bless)?,
        };
        let origin = source.path();
        let (mut texts, mut others) = (Files::new(), Files::new());
        for (file, pinned) in pins {
            let bytes = files.remove(file).unwrap_or_default();
            let found = digest(&bytes);
            let tampered = |found| Error::Tampered {
                origin: origin.into(),
                file: file.into(),
                pinned: pinned.into(),
                found,
            };
            match (found == pinned, bless) {
                (true, _) => {}
                (false, true) => println!("cargo::warning=bless {found}  {file}"),
                (false, false) => return Err(tampered(found)),
            }
            match String::from_utf8(bytes) {
                Ok(text) => drop(texts.insert(file.to_owned(), text)),
                Err(error) => drop(others.insert(file.to_owned(), error.into_bytes())),
            }
        }
        Ok((texts, others))
    }

    fn pins(&self) -> Result<Vec<(&str, &str)>> {
        let pin = |(index, line): (usize, &'_ str)| match line.split_once("  ") {
            // A path that climbs would let the list write outside of OUT_DIR.
            Some((pinned, file)) if pinned.len() == 64 && !file.split('/').any(|part| part == "..") => Ok(()),
            _ => Err(Error::BadPin { line: index + 1 }),
        };
        self.files.lines().enumerate().try_for_each(pin)?;
        Ok(self
            .files
            .lines()
            .filter_map(|line| line.split_once("  "))
            .map(|(pinned, file)| (file, pinned))
            .collect())
    }

    fn archive_files(
        &self,
        path: &Path,
        pins: &[(&str, &str)],
        bless: bool,
    ) -> Result<BTreeMap<String, Vec<u8>>> {
        let failed = |source| Error::File {
            path: path.into(),
            source,
        };
        let bytes = fs::read(path).map_err(failed)?;
        let found = digest(&bytes);
        if bless {
            println!("cargo::warning=bless {found}  {}", path.display());
        } else if found != self.archive_digest {
            let (file, pinned) = ("the archive".to_owned(), self.archive_digest.to_owned());
            return Err(Error::Tampered {
                origin: path.into(),
                file,
                pinned,
                found,
            });
        }
        let prefix = format!("{}-{}/", self.name, self.version);
        let mut files = BTreeMap::new();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
        for entry in archive.entries().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            let name = entry.path().map_err(failed)?.to_string_lossy().into_owned();
            let Some(file) = name.strip_prefix(&prefix) else {
                continue;
            };
            if pins.iter().any(|(pinned, _)| *pinned == file) {
                let mut content = Vec::new();
                entry.read_to_end(&mut content).map_err(failed)?;
                files.insert(file.to_owned(), content);
            }
        }
        Ok(files)
    }
}

fn directory_files(root: &Path, pins: &[(&str, &str)]) -> Result<BTreeMap<String, Vec<u8>>> {
    let read = |(file, _): &(&str, &str)| {
        let path: PathBuf = root.join(file);
        let bytes = fs::read(&path).map_err(|source| Error::File { path, source })?;
        Ok(((*file).to_owned(), bytes))
    };
    pins.iter().map(read).collect()
}
