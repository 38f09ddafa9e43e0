//! The current session.

use std::io;
use std::sync::Arc;

use ::spillproof::Session;

use super::convert::is_known;

/// The current session: a proof's own, while one is made on this thread.
///
/// # Errors
/// If one was asked for by environment variables and can't be made: a budget is never silently ignored.
pub(super) fn session() -> io::Result<Option<Arc<Session>>> {
    Session::current().map_err(io::Error::other)
}

/// The current session, if the engine has the curve.
///
/// # Errors
/// As for [`session`].
pub(crate) fn session_over<C: 'static>() -> io::Result<Option<Arc<Session>>> {
    if !is_known::<C>() {
        return Ok(None);
    }
    let session = session()?;
    if let Some(session) = &session {
        super::announce(session);
    }
    Ok(session)
}
