//! What this drop-in has and stock halo2-axiom has not: a session that holds a memory budget, and a switch
//! that makes proofs reproducible.
//!
//! ```text
//!   mod.rs      who is asking: is there a session, is the switch on
//!   switch.rs   the switches of a process
//!   params.rs   ParamsKZG in a session: made, read and written through fixed buffers
//!   bases.rs    its points: a vector, or a column on disk
//!   values.rs   values of a Polynomial: a vector, a column on disk, or one value n times
//!   serde.rs    a Polynomial's bytes, through fixed buffers
//!   domain.rs   EvaluationDomain: transforms of what is on disk, twiddles when asked for
//!   cells.rs    advice cells in mapped scratch
//!   circuit.rs  upstream's constraint system, for spillproof-plonk, which has the protocol
//!   protocol.rs upstream's transcripts, generators and schemes, for its rounds
//!   convert.rs  values and points between halo2curves' types and the engine's
//!   openings.rs SHPLONK and GWC for queries of columns
//!   selectors.rs  selectors of a verifying key, a bit each
//!   bundle.rs   a proving key in a file that is opened in place
//!   describe.rs a circuit as a description, for such a file
//!   witness.rs  a witness in a file
//!   from_witness.rs  a proof from it
//!   names.rs    upstream's types, for files that drop-ins share
//!   srs.rs      parameters in a file that is opened in place, and their check
//!   plan.rs     what keys and a proof will take
//!   gpu.rs      a device for a session
//!   verify.rs   what a device took part in is verified before it is returned
//!   engine.rs   the current session, and points of an SRS on its disk
//!   stored.rs   values on its disk, or nowhere
//! ```
//!
//! ```no_run
//! use std::sync::Arc;
//! use halo2_axiom::spillproof::{ByteSize, Session};
//!
//! let session = Session::builder().memory(ByteSize::Bytes(2 << 30)).dir("/nvme/scratch").build()?;
//! let _current = Arc::new(session).install();
//! // Parameters that are read or made from here on live on disk, until `_current` is dropped.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same without a change to the program: `SPILLPROOF_MEMORY=2GiB SPILLPROOF_DIR=/nvme/scratch`. With the
//! feature `gpu` a device takes part where `SPILLPROOF_GPU` (`auto`, `off`, `all`, numbers),
//! `SPILLPROOF_VRAM`, `SPILLPROOF_PINNED` and `SPILLPROOF_OFFLOAD` (`measured`, `always`) say so, or
//! [`UseGpu`]; proofs are the same bytes, and are verified before they are returned ([`verify`]).
//!
//! With `SPILLPROOF_CHECKPOINT=DIR`, and a key in `SPILLPROOF_CHECKPOINT_KEY_FILE` or
//! `SPILLPROOF_CHECKPOINT_KEY`, a proof keeps its rounds in DIR, and after a crash the same call goes on from
//! there ([`Checkpoints`]).
//!
//! Stock leaves two things to chance. The random polynomial of the vanishing argument is drawn from
//! `thread_rng` by as many threads as there are; and values of a lookup are permuted in the iteration order of a
//! `HashMap`. With [`set_reproducible`] the polynomial's coefficients are drawn from the caller's rng, in order,
//! where stock draws that polynomial's blinding factor right after; and lookup values are in ascending order.
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
//! const _: () = halo2_axiom::spillproof::IS_HERE;
//! ```

#![warn(clippy::all, clippy::unwrap_used, clippy::expect_used, deprecated, unused)]
#![warn(missing_docs)]
#![deny(unsafe_code)]

pub(crate) mod bases;
mod bundle;
pub(crate) mod cells;
pub(crate) mod circuit;
pub(crate) mod convert;
mod describe;
pub(crate) mod domain;
pub(crate) mod engine;
mod from_witness;
#[cfg(feature = "gpu")]
mod gpu;
mod names;
pub(crate) mod openings;
pub(crate) mod params;
pub(crate) mod plan;
pub(crate) mod protocol;
pub(crate) mod selectors;
pub(crate) mod serde;
mod srs;
mod stored;
mod switch;
pub(crate) mod values;
pub mod verify;
mod witness;

use std::cell::Cell;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Once};

use ::spillproof_report::environment;

pub use ::spillproof_plonk::{description, CircuitDescription, SavedError};
pub use ::spillproof_report::environment::{PANICS, PROGRESS_VARIABLE, REPORT_VARIABLE};
pub use ::spillproof_report::steps::layer;
pub use bundle::{open_proving_key, save_described_key, save_proving_key, KeyFile};
pub use circuit::DegreeTooHigh;
pub use domain::FftDataMap;
pub use from_witness::create_proof_from_witness;
#[cfg(feature = "gpu")]
pub use gpu::{Caching, Choice, GpuAccelerator, GpuRequest, Offload, UseGpu};
pub use plan::{plan, shape, Numerator, OpeningScheme, Plan, Rates, Shape};
pub use selectors::SelectorBits;
pub use spillproof_commit::SrsProgress;
pub use spillproof_engine::accelerator;
pub use spillproof_engine::budget::ByteSize;
pub use spillproof_engine::checkpoint::{
    CheckpointKey, Checkpoints, CHECKPOINT_KEY_FILE_VARIABLE, CHECKPOINT_KEY_VARIABLE, CHECKPOINT_VARIABLE,
};
pub use spillproof_engine::column::Scratch;
pub use spillproof_engine::session::{
    Session, SessionBuilder, SessionGuard, DIR_VARIABLE, GPU_VARIABLE, LIMIT_VARIABLE, MEMORY_VARIABLE,
    OFFLOAD_VARIABLE, SCRATCH_VARIABLE, VRAM_VARIABLE,
};
pub use srs::{check_params, open_params};
pub use switch::{
    reproducible, self_verification, set_reproducible, set_self_verification, REPRODUCIBLE_VARIABLE,
    SELF_VERIFICATION_VARIABLE,
};
pub use values::Values;
pub use verify::Unverified;
pub use witness::{save_witness, SavedWitness, SentWitness};

pub use crate::plonk::spillproof_prover::create_proof_half;
use crate::plonk::Error;

/// Name this in a program that must not be built without the drop-in.
pub const IS_HERE: () = ();

/// Is there a session, installed or by environment variables? Without one the drop-in is stock.
///
/// `false` also if the variables ask for a session that can't be made; proving then panics with the reason,
/// since a budget is never silently ignored.
pub fn active() -> bool {
    let session = engine::session();
    if let Ok(Some(session)) = &session {
        announce(session);
    }
    matches!(session, Ok(Some(_)))
}

/// Says once, at level info, that the engine is on.
fn announce(session: &Arc<Session>) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        tracing::info!(
            budget_bytes = session.budget().limit_bytes(),
            dir = %session.dir().display(),
            reproducible = reproducible(),
            "spillproof: halo2-axiom 0.5.3 proves within a session"
        );
    });
}

thread_local! {
    /// Whether this thread is inside of [`error_of`].
    static GIVES_ERROR: Cell<bool> = const { Cell::new(false) };
}

/// The payload that carries an error from [`or_panic`] to [`error_of`].
struct Failed(io::Error);

/// Runs keygen or a proof, whose signatures have an error to give: an error of the engine that comes up where
/// a signature between has none, as in an assignment or a commitment, is given back as that error, and is no
/// panic. On other threads it is one. Programs that abort on panics get one, too.
pub(crate) fn error_of<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    if cfg!(not(panic = "unwind")) {
        return work();
    }
    let before = GIVES_ERROR.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    GIVES_ERROR.set(before);
    let payload = match result {
        Ok(result) => return result,
        Err(payload) => payload,
    };
    match payload.downcast::<Failed>() {
        Ok(failed) => Err(failed.0.into()),
        Err(payload) => panic::resume_unwind(payload),
    }
}

/// The value, where a signature of stock's has no error to report one of the engine. Inside of [`error_of`]
/// the error goes there. Elsewhere there is no other way than a panic, whose payload is that error, a
/// [`spillproof::Error`](spillproof_engine::Error); its text is said before.
pub(crate) fn or_panic<T>(result: io::Result<T>) -> T {
    let error = match result {
        Ok(value) => return value,
        Err(error) if GIVES_ERROR.get() => panic::resume_unwind(Box::new(Failed(error))),
        Err(error) => error,
    };
    match error.downcast::<spillproof_engine::Error>() {
        Ok(error) => environment::raise(error),
        Err(error) => panic!("spillproof: {error}"),
    }
}

/// Is upstream's prover to draw the random polynomial of the vanishing argument by one thread, in order?
/// Within a session always; the reproducible switch moreover draws it from the caller's rng.
pub(crate) fn draws_in_order() -> bool {
    reproducible() || active()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// Set for the second run, so that it doesn't start a third.
    const SECOND: &str = "SPILLPROOF_TEST_SECOND_RUN";

    /// Runs this test binary, upstream's unit tests and all, once more within a session.
    #[test]
    fn upstreams_tests_pass_in_a_session() {
        if std::env::var_os(SECOND).is_some() {
            assert!(super::active());
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            // They measure, and take longer than everything else.
            .args(["--skip", "domain::bench_"])
            .env(SECOND, "1")
            .env(super::MEMORY_VARIABLE, "16MiB")
            .env(super::DIR_VARIABLE, dir.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        for test in [
            "test_parameter_serialisation_roundtrip",
            "openings_over_columns_are_stocks",
        ] {
            assert!(text.contains(&format!("{test} ... ok")), "{text}");
        }
        assert_eq!(
            std::fs::read_dir(dir.path()).unwrap().count(),
            0,
            "something is left on disk"
        );
    }
}
