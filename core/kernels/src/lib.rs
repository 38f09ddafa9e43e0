//! The arithmetic: pure functions on slices, no files, no transcript; no unsafe code outside [`backend`].
//!
//! In: slices of scalars and points in native form (Montgomery, as they lie on disk). Out: the same, bit for
//! bit the result of an in-memory library. The caller holds the slices and decides what is read next: every
//! kernel takes its operand in chunks and keeps a state between them, so that a chunk's work can run on the
//! rayon pool while another thread reads the next chunk. Every kernel that holds memory says how much, in
//! bytes, before it allocates.
//!
//! - [`field`]: branchless arithmetic on arkworks' types.
//! - [`backend`]: the same several elements at a time, with the instructions that the processor has.
//! - [`curve`]: affine points.
//! - [`compiled`]: the fields and curves that kernels are compiled for.
//! - [`pairing`]: the groups of curves with a pairing.
//! - [`points`]: multiples of many points, sums and differences.
//! - [`msm`]: streamed multi-scalar multiplication.
//! - [`ntt`]: number-theoretic transforms of tiles, of their columns and rows; over scalars or group
//!   elements.
//! - [`poly`]: streamed evaluation, division, products, inversion, combination.
//! - [`vector`]: sums, products and the like, element by element.

pub mod backend;
pub mod compiled;
pub mod curve;
pub mod error;
pub mod field;
pub mod msm;
pub mod ntt;
pub mod pairing;
pub mod parallel;
pub mod points;
pub mod poly;
#[cfg(test)]
mod testing;
pub mod vector;
