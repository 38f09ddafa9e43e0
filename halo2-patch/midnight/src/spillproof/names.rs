//! Upstream's types, by the names that files which drop-ins share have for them.

use std::io;
use std::sync::Arc;

use midnight_curves::Bls12;
pub(crate) use midnight_curves::Fq as Fr;
use spillproof_engine::column::Curve;
use spillproof_engine::Session;

pub(crate) use super::convert::Scalar;
use super::engine::session_over;
use crate::plonk;
use crate::poly::kzg::KZGCommitmentScheme;

/// The scheme of keys and witnesses in files.
pub(crate) type Scheme = KZGCommitmentScheme<Bls12>;
pub(crate) type VerifyingKey = plonk::VerifyingKey<Fr, Scheme>;
pub(crate) type ProvingKey = plonk::ProvingKey<Fr, Scheme>;

/// Their curve.
pub(crate) const CURVE: Curve = Curve::Bls12381;

/// The current session, which `what` takes.
///
/// # Errors
/// As for [`session_over`]; if there is none.
pub(crate) fn session_for(what: &str) -> io::Result<Arc<Session>> {
    session_over::<Bls12>()?.ok_or_else(|| {
        io::Error::other(format!(
            "{what} needs a session: set SPILLPROOF_MEMORY, or install one"
        ))
    })
}
