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
//! - [`plonkish`]: the arithmetic of a PLONK prover: constraint programs over columns, the quotient, the arguments.
//! - [`plan`]: what keys and a proof will take, before any work.
//! - [`session`]: a budget, a directory and threads, put together.
//!
//! ```
//! use spillproof::Session;
//! use spillproof::budget::ByteSize;
//! use spillproof::column::{Placement, Writer};
//! use spillproof::commit::{Scalar, generate_scratch, kzg};
//! use spillproof::stream::Scalars;
//!
//! // 8 MiB for everything that follows; the rest is in nameless files under `dir`.
//! let session = Session::builder()
//!     .memory(ByteSize::Bytes(8 << 20))
//!     .dir(std::env::temp_dir())
//!     .build()?;
//! let workspace = session.workspace();
//!
//! // 2^8 points in both bases. INSECURE: here everybody knows the secret.
//! let srs = generate_scratch(workspace, 8, Scalar::from(5u64), |_points| ())?;
//!
//! let coefficients: Vec<Scalar> = (0..256u64).map(|i| Scalar::from(i * i + 1)).collect();
//! let mut writer = Writer::scratch(workspace, "polynomial", 256, Placement::Disk)?;
//! writer.push(&coefficients)?;
//! let polynomial = writer.finish()?;
//!
//! // From disk and from memory: the same point.
//! let commitment = kzg::commit(&srs, &[Scalars::Column(&polynomial)])?;
//! assert_eq!(commitment, kzg::commit(&srs, &[Scalars::Slice(&coefficients)])?);
//!
//! let z = Scalar::from(3u64);
//! let opening = kzg::open(&srs, &polynomial, z)?;
//! let horner = coefficients.iter().rev().fold(Scalar::from(0u64), |sum, c| sum * z + c);
//! assert_eq!(opening.value, horner);
//! assert!(session.budget().peak_bytes() <= 8 << 20);
//! # Ok::<(), spillproof::Error>(())
//! ```

pub mod budget;
pub mod column;
pub mod commit;
pub mod dry;
pub mod error;
pub mod kernels;
pub mod plan;
pub mod plonkish;
pub mod session;
pub mod storage;
pub mod stream;
pub mod tier;

pub use error::{Error, Result};
pub use session::Session;
