//! Saved keys of halo2-axiom and midnight-proofs: the key and the witness are what a program saved of a circuit of its
//! own.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use spillproof_circom::json::curve_name;
use spillproof_circuits::saved::{Saved, public_digits};
use spillproof_circuits::{Scheme, System};
use spillproof_engine::Session;
use spillproof_engine::budget::Budget;
use spillproof_engine::plan::Plan;
use spillproof_format::hex;

use crate::parameters::Parameters;
use crate::problem::{Code, Problem, WITNESS};
use crate::settings::{Error, Result};

/// A key that is open, with the parameters of its size.
pub(crate) struct Halo2Key<S: Saved> {
    key: S::Key,
    params: S::Params,
    is_insecure: bool,
}

impl<S: Saved> Halo2Key<S> {
    /// Opens the key of a file.
    ///
    /// # Errors
    /// [`Error::Key`], [`Error::NoParameters`], [`Error::FewParameters`].
    pub fn open(session: &Arc<Session>, file: &Path, parameters: Option<&Parameters<S>>) -> Result<Self> {
        let _pinned = session.pin();
        let key = S::open_key(file).map_err(|error| Error::key(file, error))?;
        let Some(parameters) = parameters else {
            return Err(Error::NoParameters {
                file: file.to_owned(),
                curve: S::description(&key).proofs.curve(),
            });
        };
        Ok(Self {
            params: parameters.of_rows(file, S::k(&key))?,
            is_insecure: parameters.is_insecure,
            key,
        })
    }

    /// What proofs take in a budget, by each scheme.
    ///
    /// # Errors
    /// The engine's: a budget that is too small, with the smallest that works.
    pub fn plans(&self, session: &Session, budget_bytes: u64) -> Vec<spillproof_engine::Result<Plan>> {
        let plan = |scheme| S::plan(&self.key, scheme, session.threads(), budget_bytes);
        match S::SCHEMES {
            [] => vec![plan(None)],
            schemes => schemes.iter().map(|scheme| plan(Some(*scheme))).collect(),
        }
    }

    /// The most bytes that a saved witness of the key has.
    pub fn witness_bytes_max(&self) -> u64 {
        S::witness_bytes_max(&self.key)
    }

    /// Reads a saved witness that comes.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn witness_of_stream(
        &self,
        session: &Arc<Session>,
        ledger: Budget,
        source: &mut dyn io::Read,
    ) -> std::result::Result<S::Sent, Problem> {
        let _pinned = session.pin();
        let read = S::read_witness(Path::new(WITNESS), &self.key, ledger, source);
        read.map_err(|error| Problem::of_sent(error, session.budget().limit_bytes()))
    }

    /// A proof with random values of the system, which is verified; with its public inputs, as JSON text.
    ///
    /// # Errors
    /// What is wrong with the witness, or the machine.
    pub fn prove(
        &self,
        session: &Arc<Session>,
        witness: &S::Sent,
        scheme: Option<Scheme>,
    ) -> std::result::Result<Bytes, Problem> {
        let _pinned = session.pin();
        let limit_bytes = session.budget().limit_bytes();
        let opened = session.workspace().run(|| {
            let _pinned = session.pin();
            Ok(S::open_sent(witness))
        });
        let witness = opened
            .map_err(|error| Problem::of_engine(&error, limit_bytes))?
            .map_err(|error| Problem::of_saved(error, limit_bytes))?;
        let made = S::prove(&self.params, &self.key, &witness, scheme, None);
        let proof = made.map_err(|error| Problem::of_halo2(S::cause(error), limit_bytes))?;
        // The session's own verification can be turned off.
        let instances = S::instances(&witness);
        if let Err(error) = S::verify(&self.params, &self.key, &instances, &proof, scheme) {
            return Err(Problem::new(
                Code::Unsatisfied,
                format!("the proof does not verify: {error}"),
            ));
        }
        let result = json!({"proof": hex(&proof), "publicInputs": public_digits::<S>(&instances)});
        Ok(result.to_string().into())
    }

    /// What is said of it.
    pub fn summary(&self) -> Value {
        let description = S::description(&self.key);
        let system = match S::SYSTEM {
            System::Midnight => "halo2-midnight",
            System::Axiom | System::Zcash => "halo2-axiom",
        };
        json!({
            "system": system,
            "curve": curve_name(description.proofs.curve()),
            "schemes": S::SCHEMES,
            "logRows": S::k(&self.key),
            "adviceColumns": description.advice_columns,
            "instanceColumns": description.instance_columns,
            "keyHash": hex(&description.key),
            "insecure": self.is_insecure,
        })
    }
}
