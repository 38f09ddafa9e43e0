//! What a server is told, and what it cannot start with.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use spillproof_format::Curve;

/// What a server is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Key files, and folders of them.
    pub keys: Vec<PathBuf>,
    /// The containers of the parameters (SRS) that saved halo2 keys belong to, one for each curve.
    pub parameters: Vec<PathBuf>,
    /// Where it listens; port 0 is any that is free.
    pub listen: SocketAddr,
    /// Whether everyone who reaches another address than this machine's own may prove without a token.
    pub allows_anyone: bool,
    /// The file of the bearer token.
    pub token_file: Option<PathBuf>,
    /// Proofs at a time. One computes while it has the session's turn, from its beginning to its end: more of them are
    /// not done sooner, and share the budget.
    pub proofs: usize,
    /// Jobs that wait, those whose witness is on its way included.
    pub queue: usize,
    /// Witnesses on their way at a time.
    pub uploads: usize,
    /// How long a proof may take from its beginning.
    pub job_timeout: Duration,
    /// How long the result of a job is kept.
    pub keep: Duration,
    /// How long jobs may go on after a signal to end.
    pub drain: Duration,
    /// Connections at a time.
    pub connections: usize,
    /// How long a connection may take for the head of a request, or be idle.
    pub head_timeout: Duration,
    /// How long a body may stand still.
    pub body_timeout: Duration,
}

impl Settings {
    /// The usual ones, with these keys.
    pub fn new(keys: Vec<PathBuf>) -> Self {
        Self {
            keys,
            parameters: Vec::new(),
            listen: (Ipv4Addr::LOCALHOST, 8080).into(),
            allows_anyone: false,
            token_file: None,
            proofs: 1,
            queue: 64,
            uploads: 4,
            job_timeout: Duration::from_secs(3600),
            keep: Duration::from_secs(600),
            drain: Duration::from_secs(60),
            connections: 256,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(15),
        }
    }

    /// Refuses what cannot be.
    pub(crate) fn check(&self) -> Result<()> {
        let counts = [
            ("proofs at a time", self.proofs, 64),
            ("jobs in the queue", self.queue, 1 << 16),
            ("witnesses on their way", self.uploads, 1024),
            ("connections", self.connections, 1 << 16),
        ];
        for (what, given, most) in counts {
            if given == 0 || given > most {
                return Err(Error::Count { what, given, most });
            }
        }
        if self.token_file.is_none() && !self.listen.ip().is_loopback() && !self.allows_anyone {
            return Err(Error::Open { listen: self.listen });
        }
        Ok(())
    }
}

impl Error {
    /// For a key that does not open.
    pub(crate) fn key(file: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Key {
            file: file.to_owned(),
            source: source.into(),
        }
    }

    /// For parameters that do not open.
    pub(crate) fn parameters(file: &Path, source: io::Error) -> Self {
        Self::Parameters {
            file: file.to_owned(),
            source,
        }
    }
}

/// With [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What keeps a server from starting, or ends it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine's own errors.
    #[error(transparent)]
    Engine(#[from] spillproof_engine::Error),
    /// A key that does not open.
    #[error("the key {}", file.display())]
    Key {
        /// Its file.
        file: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A saved halo2 key without parameters.
    #[error(
        "{}: a saved halo2 key over {curve:?}, and no parameters over that curve are named: name the container of the SRS that it was made over",
        file.display()
    )]
    NoParameters {
        /// The key's file.
        file: PathBuf,
        /// Its curve.
        curve: Curve,
    },
    /// Two containers of parameters over one curve.
    #[error("{} and {} are parameters over one curve: name the longer ones alone, which are for all its keys", files[0].display(), files[1].display())]
    SameCurve {
        /// Their files.
        files: [PathBuf; 2],
    },
    /// Parameters for fewer rows than a key has.
    #[error(
        "{}: parameters for 2^{found} rows, and the key {} has 2^{k}: name those that it was made over",
        file.display(), key.display()
    )]
    FewParameters {
        /// The parameters' file.
        file: PathBuf,
        /// log2 of their rows.
        found: u32,
        /// The key's file.
        key: PathBuf,
        /// log2 of its rows.
        k: u32,
    },
    /// Parameters that do not open.
    #[error(
        "the parameters {}: they are a container over BN254 (for keys of halo2-axiom) or BLS12-381 (of midnight-proofs), as `spillproof srs \
         import` makes it of other files",
        file.display()
    )]
    Parameters {
        /// Their file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file or folder that cannot be read.
    #[error("{}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No key at all.
    #[error(
        "{}: no key in this folder: it takes .zkey files, the containers that an import of them makes, and saved halo2 keys",
        folder.display()
    )]
    NoKeys {
        /// The folder.
        folder: PathBuf,
    },
    /// Two keys of one name.
    #[error("{} and {} both have the name \"{name}\": rename one of them", files[0].display(), files[1].display())]
    SameName {
        /// The name.
        name: String,
        /// Their files.
        files: [PathBuf; 2],
    },
    /// A file whose name cannot be part of a URL as it is.
    #[error(
        "{}: the name of a key has letters, digits, `.`, `_` and `-`, 128 at most, and begins with a letter or a digit: rename the file",
        file.display()
    )]
    Name {
        /// The file.
        file: PathBuf,
    },
    /// A token file that others can read.
    #[error(
        "{}: everyone on this machine can read or change the token (mode {mode:03o}): take that away (chmod o-rwx)",
        file.display()
    )]
    TokenForAll {
        /// The file.
        file: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A file without a token.
    #[error(
        "{}: a token is one line of {least} to {most} visible characters of ASCII, without spaces; make one with: openssl rand -hex 32",
        file.display()
    )]
    Token {
        /// The file.
        file: PathBuf,
        /// The fewest characters.
        least: usize,
        /// The most.
        most: usize,
    },
    /// Open to everyone.
    #[error(
        "{listen} can be reached from other machines, and no token is asked for: name a file with a token, or say that anyone may prove"
    )]
    Open {
        /// The address.
        listen: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {listen}")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A number that is none.
    #[error("{what}: {given}, and it is 1 to {most}")]
    Count {
        /// Of what.
        what: &'static str,
        /// The given number.
        given: usize,
        /// The largest.
        most: usize,
    },
    /// The system gives no thread or event queue.
    #[error(
        "the system gives the server no thread or queue of events: processes (ulimit -u) or files (ulimit -n) may be limited"
    )]
    System {
        /// The system's error.
        source: io::Error,
    },
}
