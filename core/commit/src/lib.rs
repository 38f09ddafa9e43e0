//! Commitments over an SRS that stays on disk.
//!
//! [`Srs`] is the SRS: columns of G1 points in monomial and Lagrange form and the pair in G2, over BN254 or
//! BLS12-381; it is opened from a container or, in place, from a `ParamsKZG` file, generated, or taken from
//! columns. [`kzg`] commits to polynomials and opens them,
//! [`multiopen`] many of them in one pass; [`ipa`] does so over points of any curve, without a setup, and has
//! containers of its own. Points and scalars are arkworks', and, with the features `halo2curves` and
//! `halo2curves-axiom`, columns hold those libraries' types as well: the bytes are the same.
//!
//! What is over any curve is compiled in this crate for those of [`CommitCurve`] and [`KzgCurve`].
//!
//! Architecture invariant: nothing in here knows a proof system.

mod chunks;
mod compiled;
mod generate;
pub mod ipa;
mod ipa_file;
mod jacobian;
pub mod kzg;
pub mod multiopen;
mod reading;
mod srs;
mod srs_check;
mod srs_export;
mod srs_import;
mod srs_in_place;
mod srs_lagrange;
mod srs_stream;
mod subgroup;
mod weigh;
mod weights;

pub use chunks::points_frame_bytes;
pub use compiled::{Basis, CommitCurve, CoordinateOf, KzgCurve};
pub use generate::{generate, generate_scratch};
pub use jacobian::{from_jacobian, map_jacobian};
pub use multiopen::{Combination, Keep, Opened, divide_and_commit};
pub use reading::PointsInFlight;
pub use spillproof_format::params_kzg::ROOT_OF_UNITY as HALO2_ROOT_OF_UNITY;
pub use srs::{Engine, G1, RAW_G2_BYTES, Scalar, Srs, lagrange_from_monomial, omega};
pub use srs_check::{SrsProgress, check_srs, verify_srs};
pub use srs_export::export_params_kzg;
pub use srs_import::{ImportedSrs, import_params_kzg};
pub use srs_lagrange::add_lagrange;
pub use srs_lagrange::add_lagrange_to;
pub use subgroup::{PointsOf, check_subgroup};
pub use weigh::Challenge;
pub use weights::Weights;

/// Bytes of a frame of an SRS over BN254, in containers and in scratch; [`points_frame_bytes`] has them for any
/// curve.
pub const SRS_FRAME_BYTES: usize = spillproof_format::SRS_FRAME_BYTES_DEFAULT as usize;
