//! Upstream's types, by the names that files which drop-ins share have for them.

pub(crate) use halo2curves::bn256::Fr;
use halo2curves::bn256::G1Affine;
use spillproof_engine::column::Curve;
pub(crate) use spillproof_plonk::Scalar;

pub(super) use super::engine::session_for;

pub(crate) type VerifyingKey = crate::plonk::VerifyingKey<G1Affine>;

/// The curve of keys and witnesses in files.
pub(crate) const CURVE: Curve = Curve::Bn254;
