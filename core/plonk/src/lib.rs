//! A PLONK prover over columns on disk, without a type of any halo2.
//!
//! The forks of halo2 have types, traits and random number generators of their own; the protocol is one. It
//! is stated here, once, over the engine's columns; a drop-in for a fork converts its constraint system,
//! says which [`Protocol`] it is, implements [`Outside`] over its transcript, generator and parameters, and
//! takes the assignments of circuits.
//!
//! ```text
//!   stages/       arithmetic over columns: constraint programs, arguments, the quotient, assigned cells
//!   circuit.rs    columns, expressions, queries: a constraint system
//!   domain.rs     rows and cosets
//!   protocol.rs   what differs between the forks, as a value
//!   outside.rs    transcript, randomness, commitment scheme
//!   draws.rs      what a round draws (random.rs: the random polynomial)
//!   keygen.rs     fixed columns, selectors, copies: what both keys begin with, and their columns
//!   selectors.rs  selectors of a verifying key, a bit each
//!   witness.rs    instance columns; advice, phase by phase
//!   rounds.rs     what rounds have in common: they are committed to, and may be kept
//!   prover.rs     the rounds of a proof
//!   order.rs      which polynomial is opened where
//!   numerator.rs  all constraints as one program (lower.rs: an expression as a value of it)
//!   openings.rs   multi-openings: shplonk.rs, gwc.rs, and book.rs with an ending: ipa.rs, kzg.rs
//!   input.rs      values of another library
//!   assignment.rs what forks' `Assignment` does alike
//!   bases.rs      points of an SRS on disk, as points of another library
//!   values.rs     values of a polynomial on disk, as values of another library
//!   description/  a constraint system as bytes
//!   saved/        keys and witnesses in files of their own
//!   plan.rs       what keys and a proof will take
//!   curve.rs      the curve
//!   compiled.rs   the curves that all of it is compiled for
//! ```
//!
//! All of it is over any curve that the kernels take, and nothing is generic over a circuit, a scheme or a
//! transcript: it is compiled here, once for each curve, and a drop-in calls it by [`ProverCurve`].
//!
//! Architecture invariant: no type of a halo2, and of no crate that one of them brings along.

mod assignment;
mod bases;
mod book;
mod circuit;
mod compiled;
pub mod curve;
pub mod description;
mod domain;
mod draws;
mod error;
mod gwc;
mod input;
mod ipa;
pub mod keygen;
mod kzg;
mod lower;
mod numerator;
mod once;
mod openings;
mod order;
mod outside;
pub mod plan;
mod protocol;
mod prover;
mod random;
mod rounds;
pub mod saved;
pub mod selectors;
mod shplonk;
pub mod stages;
mod values;
mod witness;

pub use bases::{StoredBasis, StoredSrs, check_parts};
pub use circuit::{ColumnId, ConstraintSystem, Expression, Kind, Lookup, Query as Cell, Trash};
pub use compiled::{ProverCurve, ProverField};
pub use curve::{Point, Scalar};
pub use description::CircuitDescription;
pub use domain::{Domain, FieldConstants};
pub use error::{Error, Result};
pub use input::Values;
pub use once::once;
pub use openings::{Opening, Query, Sum};
pub use outside::{Blinded, Chunk, Outside, RandomPolynomial, Randomness, Seed, Transcript};
pub use protocol::{
    Book, Ending, Instances, Lookups, OpeningScheme, Part, Pieces, Powers, Protocol, Sets, Width,
};
pub use prover::{Committed, KeyColumns, Prover};
pub use rounds::{Rounds, statement};
pub use saved::SavedError;
pub use spillproof_commit::{Basis, CommitCurve, RAW_G2_BYTES};
pub use values::{StoredValues, spill};
pub use witness::{AdviceCells, AdviceSource, InstanceColumns, LimbCell, StoredAdvice, Witness};
