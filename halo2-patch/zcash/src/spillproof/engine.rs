//! The current session.

use std::io;
use std::sync::Arc;

use spillproof_engine::Session;
use spillproof_report::environment;

use super::convert::is_known;

/// The current session: a proof's own, while one is made on this thread.
///
/// # Errors
/// If one was asked for by environment variables and can't be made: a budget is never silently ignored. If
/// its reports are asked for and can't be made.
pub(super) fn session() -> io::Result<Option<Arc<Session>>> {
    let session = Session::current().map_err(io::Error::other)?;
    environment::found(session.as_ref(), "halo2_proofs").map_err(io::Error::other)?;
    Ok(session)
}

/// The current session, if the engine has the curve.
///
/// # Errors
/// As for [`session`].
pub(crate) fn session_over<C: 'static>() -> io::Result<Option<Arc<Session>>> {
    if !is_known::<C>() {
        return Ok(None);
    }
    environment::asked();
    let session = session()?;
    if let Some(session) = &session {
        super::announce(session);
    }
    Ok(session)
}
