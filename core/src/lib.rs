//! A proving engine for circuits larger than the machine.
//!
//! The user sets a number of bytes; everything larger lives on disk and streams through leased buffers; results are, bit
//! for bit, those of the in-memory libraries. Data flows one way through the modules:
//!
//! - [`budget`]: one ledger of bytes; every large buffer is a lease on it.
//! - [`storage`]: the one owner of system calls.
//! - [`dry`]: the record of a run that is only planned.
//! - [`tier`]: the seam to a second compute tier: whole jobs that a device may do.
//! - [`mod@column`]: typed sequences on disk, in checked frames.
//! - [`kernels`]: pure arithmetic on slices.
//! - [`stream`]: kernels over columns.
//! - [`commit`]: KZG over an SRS on disk.
//! - [`groth16`]: Groth16 proofs with keys and witnesses on disk.
//! - [`iden3`]: keys and witnesses of circom and snarkjs.
//! - `arkworks`: keys and circuits of `ark-groth16` (the feature of this name).
//! - [`plonkish`]: the arithmetic of a PLONK prover: constraint programs over columns, the quotient, the arguments.
//! - [`plan`]: what keys and a proof will take, before any work.
//! - [`session`]: a budget, a directory and threads, put together.
//! - [`Vector`]: the shortest way: vectors on disk, with arkworks' types at both ends.
//!
//! ```no_run
//! use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
//! # use ark_bn254::Fr;
//! # let (coefficients, z) = (vec![Fr::from(1u64); 256], Fr::from(3u64));
//! # fn consume(_: impl std::ops::Deref<Target = [Fr]>) {}
//!
//! let session = spillproof::Session::builder().memory("2GiB").dir("/nvme").build()?;
//! let srs = session.open_srs("ceremony.srs")?;
//! let p = session.column(coefficients)?;            // any iterator of ark_bn254::Fr
//! let commitment = srs.commit(&p)?;                 // ark_bn254::G1Affine
//! let opening = srs.open(&p, z)?;
//! let evals = p.ntt(&Radix2EvaluationDomain::new(p.len()).unwrap())?;    // intt, coset_ntt
//! for chunk in evals.chunks()? { consume(chunk?); }
//! # Ok::<(), spillproof::Error>(())
//! ```

#[cfg(feature = "ark-groth16")]
pub mod arkworks;
pub mod budget;
pub mod checkpoint;
pub mod column;
pub mod commit;
pub mod dry;
pub mod error;
pub mod groth16;
pub mod iden3;
pub mod kernels;
mod parallel;
pub mod plan;
pub mod plonkish;
pub mod session;
pub mod storage;
pub mod stream;
#[cfg(test)]
mod testing;
pub mod tier;
mod vector;

pub use error::{Error, Result};
pub use session::{Session, SessionBuilder};
pub use vector::{Chunks, Vector};
