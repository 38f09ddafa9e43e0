//! Keys and witnesses in files of their own: what the witness of a circuit says beside its columns, and
//! errors.
//!
//! The section `statement` of a witness, little-endian: version (`u32`), key (32 bytes, as in
//! [`CircuitDescription`](crate::CircuitDescription)), k, numbers of advice and of instance columns (`u32`
//! each), the number of values of each instance column (`u64` each), then these values (32 bytes each,
//! canonical).

use std::path::PathBuf;

use crate::description::{Element, FieldError};

const VERSION: u32 = 1;
/// Bytes before the lengths of instance columns.
pub const STATEMENT_HEAD_BYTES: usize = 4 + 32 + 3 * 4;
/// Bytes of an instance column's length.
pub const LENGTH_BYTES: usize = 8;
/// Bytes of a value.
pub const VALUE_BYTES: usize = 32;
const K_MAX: u32 = 28;

/// What a witness belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementHead {
    /// The key, as in its description.
    pub key: Element,
    /// `2^k` rows.
    pub k: u32,
    /// Advice columns.
    pub advice_columns: u32,
    /// Instance columns.
    pub instance_columns: u32,
}

impl StatementHead {
    /// As bytes.
    pub fn encode(&self) -> [u8; STATEMENT_HEAD_BYTES] {
        let mut bytes = [0; STATEMENT_HEAD_BYTES];
        bytes[..4].copy_from_slice(&VERSION.to_le_bytes());
        bytes[4..36].copy_from_slice(&self.key);
        let numbers = [self.k, self.advice_columns, self.instance_columns];
        for (to, number) in bytes[36..].chunks_exact_mut(4).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// From bytes.
    ///
    /// # Errors
    /// [`FieldError`] for another version, and for rows that no circuit has.
    pub fn decode(bytes: &[u8; STATEMENT_HEAD_BYTES]) -> Result<Self, FieldError> {
        let number = |at: usize| {
            let mut number = [0; 4];
            number.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(number)
        };
        let refused = |what, offset: u64, value: u32, remedy| {
            let value = value.to_string();
            Err(FieldError {
                what,
                offset,
                value,
                remedy,
            })
        };
        let (version, k) = (number(0), number(36));
        if version != VERSION {
            return refused(
                "version",
                0,
                version,
                "1 is known: read the file with a newer spillproof",
            );
        }
        if k > K_MAX {
            return refused(
                "k",
                36,
                k,
                "a circuit over BN254 has at most 2^28 rows: save the witness again",
            );
        }
        let mut key = [0; 32];
        key.copy_from_slice(&bytes[4..36]);
        Ok(Self {
            key,
            k,
            advice_columns: number(40),
            instance_columns: number(44),
        })
    }
}

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
        "{}: the proving key of a program's circuit, without a description of it: save it with \
         halo2_axiom::spillproof::save_described_key",
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
        "{}: the circuit of the description has a key with the hash {found}, and the file's is {expected}: save the key again; or set \
         MAX_DEGREE as it was when the key was made",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let head = StatementHead {
            key: [7; 32],
            k: 12,
            advice_columns: 3,
            instance_columns: 1,
        };
        let bytes = head.encode();
        assert_eq!(StatementHead::decode(&bytes), Ok(head));
        for (at, what) in [(0, "version"), (36, "k at offset 36")] {
            let mut bytes = bytes;
            bytes[at] = 200;
            let refused = StatementHead::decode(&bytes).unwrap_err().to_string();
            assert!(refused.contains(what), "{refused}");
        }
    }
}
