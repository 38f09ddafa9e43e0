//! Commitments over an SRS that stays on disk.
//!
//! [`Srs`] is the SRS: columns of G1 points in monomial and Lagrange form and the pair in G2; it is opened
//! from a container, generated, or taken from columns. [`kzg`] commits to polynomials and opens them,
//! [`multiopen`] many of them in one pass; [`ipa`] does so over points of any curve, without a setup, and has
//! containers of its own. Points and scalars are arkworks', and, with the features `halo2curves` and
//! `halo2curves-axiom`, columns hold those libraries' types as well: the bytes are the same.
//!
//! What is over any curve is compiled in this crate for those of [`CommitCurve`].
//!
//! Architecture invariant: nothing in here knows a proof system.

mod compiled;
mod generate;
pub mod ipa;
mod ipa_file;
pub mod kzg;
pub mod multiopen;
mod reading;
mod srs;
mod srs_check;
mod srs_export;
mod srs_import;
mod srs_lagrange;
mod weigh;

pub use compiled::{Basis, CommitCurve};
pub use generate::{generate, generate_scratch};
pub use multiopen::{Combination, Keep, Opened, divide_and_commit};
pub use reading::PointsInFlight;
pub use spillproof_format::params_kzg::ROOT_OF_UNITY as HALO2_ROOT_OF_UNITY;
pub use srs::{Engine, G1, RAW_G2_BYTES, Scalar, Srs, lagrange_from_monomial, omega};
pub use srs_check::{SrsProgress, check_srs, verify_srs};
pub use srs_export::export_params_kzg;
pub use srs_import::{ImportedSrs, import_params_kzg};
pub use srs_lagrange::add_lagrange;
pub use srs_lagrange::add_lagrange_to;
pub use weigh::Challenge;

/// Bytes of a frame of an SRS, in containers and in scratch.
pub const SRS_FRAME_BYTES: usize = spillproof_format::SRS_FRAME_BYTES_DEFAULT as usize;
