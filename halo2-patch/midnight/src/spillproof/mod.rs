//! What this drop-in has and stock midnight-proofs has not: a session that holds a memory budget, and a
//! switch that makes proofs reproducible.
//!
//! ```text
//!   mod.rs        who is asking: is there a session
//!   verify.rs     a proof is verified before it is returned
//!   (switch.rs)   the switches of a process: halo2-axiom's drop-in has the file
//!   params.rs     ParamsKZG in a session: made, read and written through fixed buffers
//!   srs.rs        ParamsKZG from a file that is opened in place, and a check of it
//!   bases.rs      its points: a vector, or a column on disk
//!   projective.rs upstream's points by the engine's type of them, and back
//!   key.rs        the columns of a proving key
//!   bundle.rs     a proving key in a file that is opened in place
//!   (describe.rs) a circuit as a description, for such a file: halo2-axiom's drop-in has the file
//!   (witness.rs)  a witness in a file: halo2-axiom's drop-in has the file
//!   from_witness.rs  a proof from it
//!   names.rs      upstream's types, for those files
//!   circuit.rs    upstream's constraint system, for spillproof-plonk, which has the rounds
//!   protocol.rs   upstream's protocol as a value; its transcripts and generators, for those rounds
//!   bridge.rs     which scheme of upstream's the engine knows
//!   convert.rs    values and points between midnight-curves' types and the engine's
//!   plan.rs       what keys and a proof will take
//!   engine.rs     the current session
//! ```
//!
//! ```no_run
//! use std::sync::Arc;
//! use midnight_proofs::spillproof::{ByteSize, Session};
//!
//! let session = Session::builder().memory(ByteSize::Bytes(2 << 30)).dir("/nvme/scratch").build()?;
//! let _current = Arc::new(session).install();
//! // Parameters and keys that are made from here on live on disk, until `_current` is dropped.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same without a change to the program: `SPILLPROOF_MEMORY=2GiB SPILLPROOF_DIR=/nvme/scratch`. A proving
//! key that a session made or read is on its disk, and is refused where there is no session; one that is in
//! memory may be used in a session. Sessions are for KZG over BLS12-381; over other curves all is stock's.
//!
//! Proofs are stock's, byte for byte, for the same generator and the same number of threads of the rayon pool
//! that the prover is called in: it divides the random polynomial's coefficients by them. Only where a lookup
//! leaves several values of its table, stock's proof is not determined: they are placed in the iteration order
//! of a `HashMap`. With [`set_reproducible`], and in a session always, it is ascending order. Verifiers can't
//! tell. A session verifies its proofs before it returns them ([`set_self_verification`], [`Unverified`]).
//!
//! With `SPILLPROOF_CHECKPOINT=DIR`, and a key in `SPILLPROOF_CHECKPOINT_KEY_FILE` or
//! `SPILLPROOF_CHECKPOINT_KEY`, a proof keeps its rounds in DIR, and after a crash the same call, in a pool of
//! as many threads, goes on from there ([`Checkpoints`]). Its random values then come from the checkpoint,
//! unless proofs are reproducible.
//!
//! With `SPILLPROOF_PROGRESS=1` (or `json`) a session shows its phases and steps on standard error, with
//! `SPILLPROOF_REPORT=run.html` it writes a page of them, and with either a table after each proof. A program
//! that has a tracing subscriber adds [`layer`] to it.
//!
//! The trap of `[patch.crates-io]` is silence: if the patch doesn't apply (another version is locked, say),
//! cargo only warns, or says nothing, and stock is built. Name something from this module, and that is a
//! compile error instead; name it through the library that proves, if that hands its midnight-proofs on,
//! since there may be two copies:
//!
//! ```
//! const _: () = midnight_proofs::spillproof::IS_HERE;
//! ```

#![warn(clippy::all, clippy::unwrap_used, clippy::expect_used, deprecated, unused)]
#![warn(missing_docs)]
#![deny(unsafe_code)]

pub(crate) mod bases;
pub(crate) mod bridge;
mod bundle;
pub(crate) mod circuit;
pub(crate) mod convert;
#[path = "../../../axiom/src/spillproof/describe.rs"]
mod describe;
pub(crate) mod engine;
mod from_witness;
pub(crate) mod key;
mod names;
pub(crate) mod params;
pub(crate) mod plan;
mod projective;
pub(crate) mod protocol;
mod srs;
#[path = "../../../axiom/src/spillproof/switch.rs"]
mod switch;
pub(crate) mod verify;
#[path = "../../../axiom/src/spillproof/witness.rs"]
mod witness;

use std::io;
use std::sync::{Arc, Once};

use ::spillproof_report::environment;

pub use ::spillproof_plonk::{description, CircuitDescription, SavedError};
pub use ::spillproof_report::environment::{PANICS, PROGRESS_VARIABLE, REPORT_VARIABLE};
pub use ::spillproof_report::steps::layer;
#[doc(hidden)]
pub use bridge::Bridge;
pub use bundle::{open_proving_key, save_described_key, save_proving_key, KeyFile};
pub use from_witness::{commit_instances, create_proof_from_witness};
pub use plan::{plan, Plan, Rates, Shape};
pub use spillproof_commit::SrsProgress;
pub use spillproof_engine::budget::ByteSize;
pub use spillproof_engine::checkpoint::{
    CheckpointKey, Checkpoints, CHECKPOINT_KEY_FILE_VARIABLE, CHECKPOINT_KEY_VARIABLE, CHECKPOINT_VARIABLE,
};
pub use spillproof_engine::column::Scratch;
pub use spillproof_engine::session::{
    Session, SessionBuilder, SessionGuard, DIR_VARIABLE, LIMIT_VARIABLE, MEMORY_VARIABLE, SCRATCH_VARIABLE,
};
pub use srs::{check_params, open_params};
pub use switch::{
    reproducible, self_verification, set_reproducible, set_self_verification, REPRODUCIBLE_VARIABLE,
    SELF_VERIFICATION_VARIABLE,
};
pub use verify::Unverified;
pub use witness::{save_witness, SavedWitness, SentWitness};

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
            "spillproof: midnight-proofs {} proves within a session",
            crate::spillproof_release::VERSION
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
#[path = "../../../zcash/tests/common/again.rs"]
mod again;
#[cfg(test)]
use self as session_variables;

#[cfg(test)]
mod tests {
    /// Upstream's unit tests.
    #[test]
    fn upstreams_tests_pass_in_a_session() {
        let tests = [
            "test_commit_lagrange",
            "test_parameter_serialisation_roundtrip",
            "test_roundtrip_gwc",
        ];
        super::again::in_a_session("upstreams_tests_pass_in_a_session", &tests);
    }
}
