//! What this drop-in has and stock halo2_proofs has not: a session that holds a memory budget.
//!
//! ```text
//!   mod.rs      who is asking: is there a session
//!   params.rs   Params in a session: made, read and written through fixed buffers
//!   bases.rs    its points: a vector, or a column on disk
//!   key.rs      the columns of a proving key
//!   msm.rs      the scalars of a verifier's sum
//!   circuit.rs  upstream's constraint system, for spillproof-plonk, which has the protocol
//!   protocol.rs upstream's transcripts and generators, for its rounds
//!   convert.rs  values and points between pasta_curves' types and the engine's
//!   openings.rs the two public openings
//!   plan.rs     what keys and a proof will take
//!   engine.rs   the current session
//! ```
//!
//! ```no_run
//! use std::sync::Arc;
//! use halo2_proofs::spillproof::{ByteSize, Session};
//!
//! let session = Session::builder().memory(ByteSize::Bytes(2 << 30)).dir("/nvme/scratch").build()?;
//! let _current = Arc::new(session).install();
//! // Parameters and keys that are made from here on live on disk, until `_current` is dropped.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same without a change to the program: `SPILLPROOF_MEMORY=2GiB SPILLPROOF_DIR=/nvme/scratch`. Proofs
//! are stock's, byte for byte, for the same generator. A proving key that a session made is on its disk, and
//! is refused where there is no session; one that is in memory may be used in a session.
//!
//! With `SPILLPROOF_PROGRESS=1` (or `json`) a session shows its phases and steps on standard error, with
//! `SPILLPROOF_REPORT=run.html` it writes a page of them, and with either a table after each proof. A program
//! that has a tracing subscriber adds [`layer`] to it.
//!
//! The trap of `[patch.crates-io]` is silence: if the patch doesn't apply (another version is locked, say),
//! cargo only warns, or says nothing, and stock is built. Name something from this module, and that is a
//! compile error instead; name it through the library that proves, if that hands its halo2 on, since there
//! may be two copies:
//!
//! ```
//! const _: () = halo2_proofs::spillproof::IS_HERE;
//! ```

#![warn(clippy::all, clippy::unwrap_used, clippy::expect_used, deprecated, unused)]
#![warn(missing_docs)]
#![deny(unsafe_code)]

pub(crate) mod bases;
pub(crate) mod circuit;
pub(crate) mod convert;
pub(crate) mod engine;
pub(crate) mod key;
pub(crate) mod msm;
pub(crate) mod openings;
pub(crate) mod params;
pub(crate) mod plan;
pub(crate) mod protocol;

use std::io;
use std::sync::{Arc, Once};

use ::spillproof_report::environment;

pub use ::spillproof_report::environment::{PANICS, PROGRESS_VARIABLE, REPORT_VARIABLE};
pub use ::spillproof_report::steps::layer;
pub use params::{open_params, save_params, verify_params, SrsProgress};
pub use plan::{plan, Plan, Rates, Shape};
pub use spillproof_engine::budget::ByteSize;
pub use spillproof_engine::column::Scratch;
pub use spillproof_engine::session::{
    Session, SessionBuilder, SessionGuard, DIR_VARIABLE, LIMIT_VARIABLE, MEMORY_VARIABLE, SCRATCH_VARIABLE,
};

/// Name this in a program that must not be built without the drop-in.
pub const IS_HERE: () = ();

/// Is there a session, installed or by environment variables? Without one the drop-in is stock.
///
/// `false` also if the variables ask for a session that can't be made; proving then fails with the reason,
/// since a budget is never silently ignored.
pub fn active() -> bool {
    matches!(engine::session(), Ok(Some(_)))
}

/// Says once, at level info, that the engine is on.
fn announce(session: &Arc<Session>) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        tracing::info!(
            budget_bytes = session.budget().limit_bytes(),
            dir = %session.dir().display(),
            "spillproof: halo2_proofs 0.4.1 proves within a session"
        );
    });
}

/// The value, where stock's signature leaves no other way than a panic to report an error of the engine. The
/// panic's payload is that error, a [`spillproof::Error`](spillproof_engine::Error); its text is said before.
pub(crate) fn or_panic<T>(result: io::Result<T>) -> T {
    let error = match result {
        Ok(value) => return value,
        Err(error) => error,
    };
    match error.downcast::<spillproof_engine::Error>() {
        Ok(error) => environment::raise(error),
        Err(error) => panic!("spillproof: {error}"),
    }
}

#[cfg(test)]
#[path = "../../tests/common/again.rs"]
mod again;
#[cfg(test)]
use self as session_variables;

#[cfg(test)]
mod tests {
    /// Upstream's unit tests.
    #[test]
    fn upstreams_tests_pass_in_a_session() {
        let tests = [
            "test_opening_proof",
            "test_commit_lagrange_eqaffine",
            "test_commit_instance",
        ];
        super::again::in_a_session("upstreams_tests_pass_in_a_session", &tests);
    }
}
