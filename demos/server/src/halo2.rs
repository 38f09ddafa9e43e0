//! Saved keys of halo2-axiom: the key and the witness are what a program saved of a circuit of its own.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use spillproof_circuits::Scheme;
use spillproof_circuits::axiom::dropin::proof::{Params, verify_columns};
use spillproof_circuits::axiom::dropin::saved::{SavedKey, SentWitness, prove, public_digits, shape};
use spillproof_engine::Session;
use spillproof_engine::budget::Budget;
use spillproof_engine::plan::{Plan, Rates};
use spillproof_format::hex;

use crate::parameters::Parameters;
use crate::problem::{Code, Problem, WITNESS};
use crate::settings::{self, Error};

/// The multi-opening arguments of proofs. The first is taken where none is asked for.
pub(crate) const SCHEMES: [Scheme; 2] = [Scheme::Shplonk, Scheme::Gwc];

/// A key that is open, with the parameters of its size.
pub(crate) struct Halo2Key {
    key: SavedKey,
    params: Params,
    is_insecure: bool,
}

impl Halo2Key {
    /// Opens the key of a file.
    ///
    /// # Errors
    /// [`Error::Key`], [`Error::NoParameters`], [`Error::FewParameters`].
    pub fn open(
        session: &Arc<Session>,
        file: &Path,
        parameters: Option<&Parameters>,
    ) -> settings::Result<Self> {
        let _pinned = session.pin();
        let Some(parameters) = parameters else {
            return Err(Error::NoParameters {
                file: file.to_owned(),
            });
        };
        let key = SavedKey::open(file).map_err(|error| Error::key(file, error))?;
        Ok(Self {
            params: parameters.of_rows(file, key.k())?,
            is_insecure: parameters.is_insecure,
            key,
        })
    }

    /// What a proof takes in a budget.
    ///
    /// # Errors
    /// The engine's: a budget that is too small, with the smallest that works.
    pub fn plan(
        &self,
        session: &Session,
        budget_bytes: u64,
        scheme: Scheme,
    ) -> spillproof_engine::Result<Plan> {
        shape(&self.key, scheme).plan(budget_bytes, session.threads(), &Rates::default())
    }

    /// The most bytes that a saved witness of the key has.
    pub fn witness_bytes_max(&self) -> u64 {
        SentWitness::bytes_max(self.key.key.get_vk())
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
    ) -> Result<SentWitness, Problem> {
        let _pinned = session.pin();
        let read = SentWitness::read(Path::new(WITNESS), self.key.key.get_vk(), ledger, source);
        read.map_err(|error| Problem::of_sent(error, session.budget().limit_bytes()))
    }

    /// A proof with random values of the system, which is verified; with its public inputs, as JSON text.
    ///
    /// # Errors
    /// What is wrong with the witness, or the machine.
    pub fn prove(
        &self,
        session: &Arc<Session>,
        witness: &SentWitness,
        scheme: Option<Scheme>,
    ) -> Result<Bytes, Problem> {
        let [default, _] = SCHEMES;
        let scheme = scheme.unwrap_or(default);
        let _pinned = session.pin();
        let limit_bytes = session.budget().limit_bytes();
        let opened = session.workspace().run(|| {
            let _pinned = session.pin();
            Ok(witness.open())
        });
        let witness = opened
            .map_err(|error| Problem::of_engine(&error, limit_bytes))?
            .map_err(|error| Problem::of_saved(error, limit_bytes))?;
        let made = prove(&self.params, &self.key, &witness, scheme, None);
        let proof = made.map_err(|error| Problem::of_halo2(error, limit_bytes))?;
        // The session's own verification can be turned off.
        let (vk, instances) = (self.key.key.get_vk(), witness.instances());
        if let Err(error) = verify_columns(&self.params, vk, &instances, &proof, scheme) {
            return Err(Problem::new(
                Code::Unsatisfied,
                format!("the proof does not verify: {error}"),
            ));
        }
        let result = json!({"proof": hex(&proof), "publicInputs": public_digits(&instances)});
        Ok(result.to_string().into())
    }

    /// What is said of it.
    pub fn summary(&self) -> Value {
        let description = &self.key.description;
        json!({
            "system": "halo2-axiom",
            "curve": "bn128",
            "schemes": SCHEMES,
            "logRows": self.key.k(),
            "adviceColumns": description.advice_columns,
            "instanceColumns": description.instance_columns,
            "keyHash": hex(&description.key),
            "insecure": self.is_insecure,
        })
    }
}
