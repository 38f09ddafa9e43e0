//! Where pristine source may be: what cargo has unpacked or downloaded already, what cargo can get.
//!
//! Cargo's own folders are looked at first, since that works without a network and without resolving
//! anything; the source is trusted for its digests, never for its place.

use std::env;
use std::path::{Path, PathBuf};

use crate::release::Upstream;
use crate::{Error, Result, cargo};

/// A place with the source of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// An unpacked source.
    Directory(PathBuf),
    /// A `.crate` file.
    Archive(PathBuf),
}

impl Source {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Directory(path) | Self::Archive(path) => path,
        }
    }

    /// A file whose change means that the build script has to run again.
    pub(crate) fn watched(&self) -> PathBuf {
        match self {
            Self::Directory(path) => path.join("Cargo.toml"),
            Self::Archive(path) => path.clone(),
        }
    }

    fn at(path: PathBuf) -> Option<Self> {
        if path.is_file() {
            return Some(Self::Archive(path));
        }
        path.join("Cargo.toml").is_file().then_some(Self::Directory(path))
    }

    /// At a place that the user names: a `.crate` file, an unpacked source, or a folder with either under the
    /// name that cargo gives it (in its cache, or among vendored sources).
    pub(crate) fn named(place: &Path, name: &str, version: &str) -> Option<Self> {
        let below = [
            format!("{name}-{version}.crate"),
            format!("{name}-{version}"),
            name.to_owned(),
        ];
        // The folder itself comes last: it may be the user's own package.
        let mut places = below
            .map(|file| place.join(file))
            .into_iter()
            .chain([place.to_owned()]);
        places.find_map(Self::at)
    }
}

/// The first place that has it, unless the user named one.
pub(crate) fn locate(upstream: &Upstream<'_>, out_dir: &Path) -> Result<Source> {
    let Upstream { name, version, .. } = upstream;
    let mut tried = Vec::new();
    match cargo_home() {
        Some(home) => match in_cargo_home(&home, name, version) {
            Some(source) => return Ok(source),
            None => tried.push(format!(
                "{}: not in cargo's cache",
                home.join("registry").display()
            )),
        },
        None => tried.push("cargo's home: neither CARGO_HOME nor HOME is set".to_owned()),
    }
    for offline in [true, false] {
        if let (false, Some(by)) = (offline, cargo::network_forbidden_by()) {
            tried.push(format!("a download: {by} forbids it"));
            continue;
        }
        match cargo::source_directory(name, version, out_dir, offline) {
            Ok(path) => return Ok(Source::Directory(path)),
            Err(why) => tried.push(why),
        }
    }
    Err(not_found(upstream, tried))
}

pub(crate) fn not_found(upstream: &Upstream<'_>, tried: Vec<String>) -> Error {
    Error::SourceNotFound {
        name: upstream.name.to_owned(),
        version: upstream.version.to_owned(),
        variable: upstream.source_variable.to_owned(),
        tried,
    }
}

fn cargo_home() -> Option<PathBuf> {
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home)
}

/// Unpacked or downloaded, from whichever registry.
fn in_cargo_home(home: &Path, name: &str, version: &str) -> Option<Source> {
    let registries = |folder: &str| {
        let entries = std::fs::read_dir(home.join("registry").join(folder))
            .into_iter()
            .flatten()
            .flatten();
        entries.map(|entry| entry.path())
    };
    let unpacked = registries("src").map(|registry| registry.join(format!("{name}-{version}")));
    let downloaded = registries("cache").map(|registry| registry.join(format!("{name}-{version}.crate")));
    unpacked.chain(downloaded).find_map(Source::at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_home_is_searched_for_directories_then_archives() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(in_cargo_home(home.path(), "a", "1.0.0"), None);
        let cache = home.path().join("registry/cache/somewhere");
        std::fs::create_dir_all(&cache).unwrap();
        std::fs::write(cache.join("a-1.0.0.crate"), "").unwrap();
        let archive = Source::Archive(cache.join("a-1.0.0.crate"));
        assert_eq!(in_cargo_home(home.path(), "a", "1.0.0"), Some(archive));
        let unpacked = home.path().join("registry/src/somewhere/a-1.0.0");
        std::fs::create_dir_all(&unpacked).unwrap();
        std::fs::write(unpacked.join("Cargo.toml"), "").unwrap();
        assert_eq!(
            in_cargo_home(home.path(), "a", "1.0.0"),
            Some(Source::Directory(unpacked))
        );
        assert_eq!(in_cargo_home(home.path(), "a", "1.0.1"), None);
    }

    #[test]
    fn a_named_place_is_a_source_or_a_folder_with_one() {
        let place = tempfile::tempdir().unwrap();
        let find = |path: &Path| Source::named(path, "a", "1.0.0");
        let unpacked = |name: &str| {
            let folder = place.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("Cargo.toml"), "").unwrap();
            folder
        };
        assert_eq!(find(place.path()), None);
        assert_eq!(find(&place.path().join("nowhere")), None);
        // As `cargo vendor` names the only version, and one of several.
        let only = unpacked("a");
        assert_eq!(find(place.path()), Some(Source::Directory(only.clone())));
        assert_eq!(find(&only), Some(Source::Directory(only)));
        let one = unpacked("a-1.0.0");
        assert_eq!(find(place.path()), Some(Source::Directory(one)));
        let archive = place.path().join("a-1.0.0.crate");
        std::fs::write(&archive, "").unwrap();
        assert_eq!(find(place.path()), Some(Source::Archive(archive.clone())));
        assert_eq!(find(&archive), Some(Source::Archive(archive.clone())));
        std::fs::write(place.path().join("Cargo.toml"), "").unwrap();
        assert_eq!(find(place.path()), Some(Source::Archive(archive)));
    }
}
