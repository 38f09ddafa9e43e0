//! The native half of the Node.js package `spillproof`: what `lib/*.js` wraps in snarkjs' functions.
//!
//! In: a key, a witness and settings, each a path or a number of bytes that the program has. Out: a `Call`, which
//! can be stopped, and `Event`s to one function of the program's: steps, questions for bytes, and the outcome, which
//! is the last one. Each call works on a thread of its own, neither the program's nor one of libuv's, which files and
//! names of hosts wait for. Values of a witness cross in pieces, and are written sealed as they come.
//!
//! | module | content |
//! |---|---|
//! | `call` | the thread of a call, and how it ends |
//! | `event` | what it says, and asks for |
//! | `work` | proofs, verifications, verification keys |
//! | `keys` | keys that stay open for further proofs |
//! | `sessions` | the session of calls with the same settings |
//! | `pieces` | bytes that the program is asked for |
//! | `outcome` | results and errors, as the program gets them |

mod call;
mod event;
mod keys;
mod outcome;
mod pieces;
mod sessions;
mod work;

use napi::Env;
use napi_derive::napi;

use call::{Call, Running};
use event::OnEvent;
use sessions::Settings;
use work::{Given, Proof, Verification, VerificationKey};

/// The package in one environment of Node: the program's, or that of a worker.
#[napi]
pub struct Native {
    running: Running,
}

#[napi]
impl Native {
    /// Calls that still run when the environment ends are stopped.
    #[napi(constructor)]
    pub fn new(env: Env) -> napi::Result<Self> {
        let running = Running::default();
        env.add_env_cleanup_hook(running.clone(), |running| running.stop())?;
        Ok(Self { running })
    }

    /// Proves.
    #[napi]
    pub fn prove(
        &self,
        settings: Settings,
        key: Given,
        witness: Given,
        on_event: OnEvent,
    ) -> napi::Result<Call> {
        let proof = Proof { key, witness };
        self.running
            .begin(on_event, move |asks| proof.make(&settings, asks))
    }

    /// Verifies texts in JSON.
    #[napi]
    pub fn verify(&self, settings: Settings, texts: Verification, on_event: OnEvent) -> napi::Result<Call> {
        self.running.begin(on_event, move |_| texts.verify(&settings))
    }

    /// Exports a verification key.
    #[napi]
    pub fn export_verification_key(
        &self,
        settings: Settings,
        key: Given,
        on_event: OnEvent,
    ) -> napi::Result<Call> {
        let key = VerificationKey { key };
        self.running
            .begin(on_event, move |asks| key.export(&settings, asks))
    }
}
