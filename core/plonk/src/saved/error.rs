//! Why a key or a witness is not saved, or the one of a file is not used.

use std::path::PathBuf;

use crate::description::FieldError;

/// Why a key or a witness cannot be saved, or the one of a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    /// A witness that depends on the transcript.
    #[error(
        "the circuit has {phases} phases and {challenges} challenges, so its witness depends on the transcript of a proof and can't be \
         saved: prove it in the program, with create_proof"
    )]
    Challenges {
        /// Phases.
        phases: usize,
        /// Challenges.
        challenges: usize,
    },
    /// A circuit that cannot be described.
    #[error("the circuit can't be described: {0}")]
    Indescribable(#[source] FieldError),
    /// A key of another circuit than the one beside it.
    #[error(
        "the key is not of this circuit: its columns, gates or queries differ; give the circuit that keygen had, with its params"
    )]
    NotOfThisCircuit,
    /// A key that was saved without its circuit.
    #[error(
        "{}: the proving key of a program's circuit, without a description of it: save it with spillproof::save_described_key of the drop-in",
        file.display()
    )]
    NoDescription {
        /// The file.
        file: PathBuf,
    },
    /// A part of a file.
    #[error("{}, section \"{section}\": {source}", file.display())]
    Field {
        /// The file.
        file: PathBuf,
        /// The section.
        section: &'static str,
        /// The part.
        source: FieldError,
    },
    /// A description of another circuit than the key's.
    #[error(
        "{}: the circuit of the description has a key with the hash {found}, and the file's is {expected}: save the key again; or, with \
         halo2-axiom, set MAX_DEGREE as it was when the key was made",
        file.display()
    )]
    AnotherCircuit {
        /// The file.
        file: PathBuf,
        /// The hash that the description gives, in hexadecimal digits.
        found: String,
        /// The one in the file.
        expected: String,
    },
    /// A witness of another key.
    #[error(
        "{}: the witness of the key with the hash {found}, and this key's is {expected}: name the key that it was saved with, or save the \
         witness with this key",
        file.display()
    )]
    AnotherKey {
        /// The file of the witness.
        file: PathBuf,
        /// The hash of the witness' key, in hexadecimal digits.
        found: String,
        /// That of the key.
        expected: String,
    },
    /// Columns or values in another number than the key's circuit has.
    #[error("{whose}: {found} {what}, and the key's circuit has {expected}: save it again")]
    Shape {
        /// The witness, or its file.
        whose: String,
        /// What there is another number of.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many there should be, at most for values.
        expected: u64,
    },
    /// A circuit that fails.
    #[error("the circuit can't be synthesised: {reason}")]
    Synthesis {
        /// Its error.
        reason: String,
    },
}

impl From<SavedError> for std::io::Error {
    fn from(error: SavedError) -> Self {
        Self::other(error)
    }
}

/// Why a cell of an advice column is not saved: it has no value, or is in a row that a circuit may not assign.
pub fn refused_cell(column: usize, row: usize, has_value: bool) -> String {
    match has_value {
        true => format!(
            "advice column {column} is assigned in row {row}, which is not there or belongs to the prover"
        ),
        false => format!(
            "advice column {column} has no value in row {row}: the circuit was given without its witness"
        ),
    }
}
