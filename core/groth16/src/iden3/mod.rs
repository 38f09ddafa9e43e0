//! Files of circom, snarkjs and their relatives: proving keys (`.zkey`) and witnesses (`.wtns`) become
//! columns; circuits (`.r1cs`) and first phases (`.ptau`) become keys, which others contribute to.
//!
//! In: a file in the iden3 container format ([`spillproof_format::iden3`]). Out: columns, or a new file.
//! Every value that is copied is checked (range, curve equation). Points of a key that stay in its file are
//! checked for their range whenever they are read, those of a first phase for the curve, too. Arrays in these
//! files do not begin where a disk's sectors do, so files are read through the page cache.
//!
//! Memory: a few runs of a mebibyte at most, what writers take, and the distinct values of a circuit's
//! coefficients; none of it grows with the circuit but the last.
//!
//! What is made of files alone is over the curve that the file names: the first of several, or the key.

mod coefficients;
mod contribute;
mod deal;
mod history;
mod key;
mod new_file;
mod overrun;
mod plan;
mod powers;
mod prepare;
mod resumed;
mod setup;
mod source;
mod subgroup;
mod terms;
mod transcript;
mod truncate;
mod verify;
mod verify_ptau;
mod weights;
mod witness;

pub use contribute::{Contributed, Origin, contribute};
pub use deal::{DealtImport, deal_zkey};
pub(crate) use key::ToContainer;
pub use key::{ImportedKey, import_zkey, read_verifying_key, read_zkey, read_zkey_of_rank};
pub(crate) use key::{read_verifying_key_over, read_zkey_of_rank_over, read_zkey_over};
pub use plan::{KeyFile, plan_of_files, plan_of_files_over_ranks};
pub(crate) use plan::{plan_of_files_of_rank, plan_of_files_over};
pub use prepare::{import_ptau, open_ptau, prepare_ptau};
pub use setup::{NewKey, setup};
pub use source::curve_of;
pub use spillproof_engine::column::runs::Progress;
pub use truncate::{Truncated, truncate_ptau};
pub use verify::{Contributor, VerifiedKey, verify_zkey};
pub use verify_ptau::{VerifiedPtau, verify_ptau};
pub use witness::{
    STREAM_BYTES, WitnessBytes, read_wtns, read_wtns_bytes, read_wtns_from, read_wtns_stream, wtns_bytes,
};
pub(crate) use witness::{read_wtns_from_over, read_wtns_over, read_wtns_stream_over};
