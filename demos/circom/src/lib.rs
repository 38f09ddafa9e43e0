//! Groth16 over the files of circom and snarkjs, within a memory budget.
//!
//! | module | content |
//! |---|---|
//! | [`prove`] | a key's file, and proofs with it |
//! | [`json`] | proofs, public signals and verification keys in snarkjs' JSON |
//! | [`unnamed`] | files without a name, for keys that come as bytes |
//! | [`c`] | the functions of rapidsnark, for programs in other languages |
//! | [`example`] | a circuit of any size, with an INSECURE key |
//!
//! ```no_run
//! use std::sync::Arc;
//! use spillproof_circom::prove::prove;
//!
//! let session = Arc::new(spillproof_engine::Session::builder().memory("128MiB").dir("/nvme").build()?);
//! let proved = prove(&session, "circuit.zkey".as_ref(), "witness.wtns".as_ref(), &mut |_| ())?;
//! std::fs::write("proof.json", proved.proof)?;
//! std::fs::write("public.json", proved.public)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod c;
pub mod example;
mod held;
pub mod json;
pub mod prove;
pub mod unnamed;

use std::io;
use std::path::{Path, PathBuf};

/// What keeps a proof from being made, read or verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine's own errors.
    #[error(transparent)]
    Engine(#[from] spillproof_engine::Error),
    /// A file that cannot be read or written.
    #[error("{}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file with the wrong content.
    #[error("{}: {details}", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// The content that was found, and the expected one.
        details: String,
    },
    /// The result cannot be written as JSON.
    #[error("the result as JSON")]
    Json(#[from] serde_json::Error),
}

/// With [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

fn content(file: &Path, details: impl Into<String>) -> Error {
    Error::Content {
        file: file.to_owned(),
        details: details.into(),
    }
}
