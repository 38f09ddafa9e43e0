//! The current session.

use std::io;
use std::sync::Arc;

use ff::PrimeField;
use midnight_curves::pairing::Engine;
use spillproof_engine::Session;
use spillproof_report::environment;

use super::bridge::{is_known, Bridge};
use crate::poly::commitment::PolynomialCommitmentScheme;

/// The current session: a proof's own, while one is made on this thread.
///
/// # Errors
/// If one was asked for by environment variables and can't be made: a budget is never silently ignored. If
/// its reports are asked for and can't be made.
pub(super) fn session() -> io::Result<Option<Arc<Session>>> {
    let session = Session::current().map_err(io::Error::other)?;
    environment::found(session.as_ref(), "midnight_proofs").map_err(io::Error::other)?;
    Ok(session)
}

fn announced() -> io::Result<Option<Arc<Session>>> {
    environment::asked();
    let session = session()?;
    if let Some(session) = &session {
        super::announce(session);
    }
    Ok(session)
}

/// The current session, if the engine has the pairing.
///
/// # Errors
/// As for [`session`].
pub(crate) fn session_over<E: Engine>() -> io::Result<Option<Arc<Session>>> {
    match is_known::<E>() {
        true => announced(),
        false => Ok(None),
    }
}

/// The current session with the bridge to a scheme, if the engine has the scheme.
///
/// # Errors
/// As for [`session`].
#[allow(clippy::type_complexity)] // Both, or neither.
pub(crate) fn session_for<F: PrimeField, CS: PolynomialCommitmentScheme<F>>(
) -> io::Result<Option<(Arc<Session>, Bridge<F, CS>)>> {
    let Some(bridge) = CS::spillproof() else {
        return Ok(None);
    };
    Ok(announced()?.map(|session| (session, bridge)))
}
