//! Where pristine source may be: what cargo has unpacked or downloaded already, what cargo can get.
//!
//! Cargo's own folders are looked at first, since that works without a network and without resolving anything; the
//! source is trusted for its digests, never for its place.

use std::env;
use std::path::{Path, PathBuf};

use crate::{Error, Result, Upstream, cargo};

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

    pub(crate) fn at(path: PathBuf) -> Option<Self> {
        if path.is_file() {
            return Some(Self::Archive(path));
        }
        path.join("Cargo.toml").is_file().then_some(Self::Directory(path))
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
        if !offline && cargo::network_forbidden() {
            tried.push("a download: CARGO_NET_OFFLINE forbids it".to_owned());
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
        release: format!("{} {}", upstream.name, upstream.version),
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
}
