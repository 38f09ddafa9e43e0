//! What can go wrong while grafting. Every message says what to do, since it is read in a failing build.

use std::fmt;
use std::path::PathBuf;

/// `Result` with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a graft could not be made.
#[non_exhaustive]
#[derive(Debug)]
pub enum Error {
    /// The pristine source was found nowhere.
    SourceNotFound {
        /// The crate.
        name: String,
        /// Its version.
        version: String,
        /// The variable that would say where it is.
        variable: String,
        /// What was tried, in order, and how it ended.
        tried: Vec<String>,
    },
    /// A file could not be read or written.
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file of the source is not the one that was pinned.
    Tampered {
        /// Where the source was found.
        origin: PathBuf,
        /// The file in it (or the archive itself).
        file: String,
        /// SHA-256 that was pinned.
        pinned: String,
        /// SHA-256 of what was found.
        found: String,
    },
    /// The list of pinned files has a line that is not `<sha-256>  <path>`.
    BadPin {
        /// Number of the line, from 1.
        line: usize,
    },
    /// Digests were printed instead of checked: nothing may be built from such a source.
    Blessed,
    /// A graft names a file that is not among the pinned ones.
    NotPinned {
        /// The file.
        file: String,
    },
    /// A file is not Rust that `syn` can read: the original, or what the grafts made of it.
    Syntax {
        /// The file.
        file: String,
        /// Before or after grafting.
        when: &'static str,
        /// What the parser said.
        message: String,
    },
    /// No item has this path.
    NoSuchItem {
        /// The file.
        file: String,
        /// The path.
        item: String,
    },
    /// More than one item has this path; name its `#[cfg(..)]`, if it has one.
    AmbiguousItem {
        /// The file.
        file: String,
        /// The path.
        item: String,
        /// How many there are.
        count: usize,
    },
    /// The item is not the one that the graft was written for.
    Drift {
        /// The file.
        file: String,
        /// The path of the item.
        item: String,
        /// Digest in the graft.
        pinned: String,
        /// Digest of the item as it is.
        found: String,
    },
    /// The operation does not fit the item (the body of a struct, a field that is not there, ...).
    Misfit {
        /// The file.
        file: String,
        /// The path of the item.
        item: String,
        /// What does not fit.
        why: String,
    },
    /// Two grafts of one file want the same bytes.
    Overlap {
        /// The file.
        file: String,
        /// The two items' paths.
        items: [String; 2],
    },
    /// All that went wrong, so that one build shows everything that drifted.
    Several(Vec<Error>),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SourceNotFound {
                name,
                version,
                variable,
                tried,
            } => {
                writeln!(f, "the source of {name} {version} was not found. Tried:")?;
                for attempt in tried {
                    writeln!(f, "  - {attempt}")?;
                }
                write!(
                    f,
                    "With a network, a build gets it by itself. For builds without one, get the file once:\n    \
                     curl -LO https://static.crates.io/crates/{name}/{name}-{version}.crate\n\
                     or take it from the folder registry/cache of a cargo that has built this; `cargo vendor` and `cargo fetch` leave it out, \
                     since the patch stands in its place. Then name the file, with its whole path, in {variable}, or for all builds in \
                     .cargo/config.toml:\n    \
                     [env]\n    \
                     {variable} = {{ value = \"{name}-{version}.crate\", relative = true }}"
                )
            }
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Tampered {
                origin,
                file,
                pinned,
                found,
            } => write!(
                f,
                "{}: {file} is not the one that was pinned (SHA-256 {pinned}, found {found}): remove this copy, so that \
                 cargo unpacks it again",
                origin.display()
            ),
            Self::BadPin { line } => write!(f, "line {line} of the pinned files is not `<SHA-256>  <path>`"),
            Self::NotPinned { file } => write!(f, "{file}: not among the pinned files"),
            Self::Syntax { file, when, message } => write!(f, "{file} {when} grafting: {message}"),
            Self::NoSuchItem { file, item } => write!(f, "{file}: there is no `{item}`"),
            Self::AmbiguousItem { file, item, count } => {
                write!(
                    f,
                    "{file}: {count} items are called `{item}`: name the one meant by its #[cfg(..)]"
                )
            }
            Self::Drift {
                file,
                item,
                pinned,
                found,
            } => write!(
                f,
                "{file}: `{item}` has changed upstream: pinned {pinned}, found {found}. Read the new one, adapt the \
                 graft, then pin the new digest (set {} to have all of them printed)",
                crate::BLESS_VARIABLE
            ),
            Self::Blessed => write!(
                f,
                "{} is set: digests were printed, and none was checked, so this build fails. Read what has changed, pin the digests, and \
                 unset the variable",
                crate::BLESS_VARIABLE
            ),
            Self::Misfit { file, item, why } => write!(f, "{file}: `{item}`: {why}"),
            Self::Overlap {
                file,
                items: [first, second],
            } => {
                write!(f, "{file}: the grafts of `{first}` and `{second}` overlap")
            }
            Self::Several(errors) => {
                for (index, error) in errors.iter().enumerate() {
                    let end = if index + 1 == errors.len() { "" } else { "\n" };
                    write!(f, "{error}{end}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. } => Some(source),
            _ => None,
        }
    }
}
