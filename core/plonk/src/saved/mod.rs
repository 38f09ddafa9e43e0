//! Keys and witnesses in files of their own, whichever drop-in saves them: containers, see
//! `disk-format/FORMAT.md`. A drop-in brings its halo2's types and the bytes of its verifying keys.
//!
//! ```text
//!   error.rs      why a key or a witness is not saved, or not used
//!   bytes.rs      sections of bytes, as readers and writers
//!   key.rs        a proving key: halo2's bytes, perhaps a description of the circuit, polynomials
//!   statement.rs  what a witness says beside its columns, and what a key asks of it
//!   witness.rs    a witness: its statement, its advice columns
//! ```

mod bytes;
mod error;
mod key;
mod statement;
mod witness;

pub use bytes::ColumnReader;
pub use error::{SavedError, refused_cell};
pub use key::{
    FIXED_POLYS, FIXED_VALUES, KeyFile, KeyGroup, NewKeyFile, SIGMA_POLYS, SIGMA_VALUES, digests_bytes,
    of_outside,
};
pub use statement::{Foreign, StatementHead, WitnessShape};
pub use witness::{SentWitness, StoredWitness, save_witness};

use crate::description::FieldError;

/// log2 of the most rows of a circuit whose key or witness is read.
const K_MAX: u32 = 28;

/// Refuses more rows than are read.
///
/// # Errors
/// [`FieldError`] with the offset of the field.
fn check_k(k: u32, offset: u64) -> Result<u32, FieldError> {
    match k <= K_MAX {
        true => Ok(k),
        false => Err(FieldError {
            what: "k",
            offset,
            value: k.to_string(),
            remedy: "a circuit has at most 2^28 rows: save the file again",
        }),
    }
}
