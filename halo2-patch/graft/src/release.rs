//! A pinned release: which one, where it may be, and what every file of it must hash to.

/// A release of a crate on crates.io, and everything about it that is pinned.
#[derive(Clone, Copy, Debug)]
pub struct Upstream<'a> {
    /// Name of the crate.
    pub name: &'a str,
    /// Version, exactly.
    pub version: &'a str,
    /// SHA-256 of the `.crate` file, which is the checksum that the registry states.
    pub archive_digest: &'a str,
    /// The files that are used, one line each: `<SHA-256>  <path>`, as `sha256sum` writes them. Others are not read.
    pub files: &'a str,
    /// Environment variable that names the source: a `.crate` file, a directory with the unpacked source, or
    /// a directory with either in it.
    pub source_variable: &'a str,
}
