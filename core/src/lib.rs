//! A proving engine for circuits larger than the machine.
//!
//! The user sets a number of bytes; everything larger lives on disk and streams through leased buffers;
//! results are, bit for bit, those of the in-memory libraries. In: an iterator of arkworks' scalars, an SRS
//! on disk. Out: commitments, openings, transforms. Proofs are made by the drop-ins for halo2 and by the
//! binary; what all of them stand on is in [`engine`] and [`commit`].
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

mod session;
mod vector;

pub use session::{Session, SessionBuilder, Srs};
pub use spillproof_commit as commit;
pub use spillproof_commit::kzg::Opening;
pub use spillproof_engine as engine;
pub use spillproof_engine::budget::ByteSize;
pub use spillproof_engine::column::Scratch;
pub use spillproof_engine::{Error, Result};
pub use vector::{Chunks, Vector};
