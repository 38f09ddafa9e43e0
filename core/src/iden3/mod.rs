//! Files of circom, snarkjs and their relatives: proving keys (`.zkey`) and witnesses (`.wtns`) become columns.
//!
//! In: a file in the iden3 container format ([`spillproof_format::iden3`]). Out: columns on disk, every value checked (range, curve equation) while
//! it is copied. Points in these files do not begin where a disk's sectors do, so files are read through the page cache in runs of a mebibyte at
//! most, two on their way.
//!
//! Memory: three runs, what writers take, and the distinct values of a key's coefficients; none of it grows with the circuit but the last.

mod key;
mod source;
mod subgroup;
mod witness;

pub use key::{ImportedKey, import_zkey, read_zkey, shape_of_zkey};
pub use source::{Progress, curve_of};
pub use witness::read_wtns;
