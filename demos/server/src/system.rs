//! What keys of all proof systems do here: a witness comes, a proof goes, and a plan says what that takes.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use spillproof_circom::json::curve_name;
use spillproof_circom::prove::{Key, Witness};
use spillproof_circuits::Scheme;
use spillproof_circuits::axiom::dropin::saved::Axiom;
use spillproof_circuits::midnight::dropin::saved::Midnight;
use spillproof_circuits::saved::Saved;
use spillproof_engine::Session;
use spillproof_engine::budget::Budget;
use spillproof_engine::plan::Plan;

use crate::halo2::Halo2Key;
use crate::problem::{Problem, WITNESS};

/// An open key of a proof system.
pub(crate) enum SystemKey {
    Groth16 {
        key: Box<Key>,
        /// In JSON.
        verification_key: Vec<u8>,
    },
    Axiom(Box<Halo2Key<Axiom>>),
    Midnight(Box<Halo2Key<Midnight>>),
}

/// A witness that came, for the key that it came for.
pub(crate) enum SystemWitness {
    Groth16(Witness),
    Axiom(<Axiom as Saved>::Sent),
    Midnight(<Midnight as Saved>::Sent),
}

/// How long a witness is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WitnessLength {
    pub bytes_max: u64,
    /// No witness of the key is shorter.
    pub is_exact: bool,
}

/// What a proof takes.
pub(crate) struct Need {
    /// Of a budget, at least.
    pub minimum_bytes: u64,
    /// How long, as planned for a usual machine; nothing, if it never fits.
    pub work: Duration,
}

impl SystemKey {
    /// The multi-opening arguments that its proofs may have.
    pub fn schemes(&self) -> &'static [Scheme] {
        match self {
            Self::Groth16 { .. } => &[],
            Self::Midnight(_) => Midnight::SCHEMES,
            Self::Axiom(_) => Axiom::SCHEMES,
        }
    }

    /// What a proof takes, in what the session's budget has left, with whichever scheme takes more.
    ///
    /// # Errors
    /// The engine's.
    pub fn need(&self, session: &Session) -> spillproof_circom::Result<Need> {
        const NOTHING: u64 = 1;
        let budget = session.budget();
        let left_bytes = budget.limit_bytes().saturating_sub(budget.held_bytes());
        let minimum_bytes = match self.plan(session, NOTHING)? {
            Ok(_) => NOTHING,
            Err(needed_bytes) => needed_bytes,
        };
        let work = match self.plan(session, left_bytes)? {
            Ok(seconds) => Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
            Err(_) => Duration::ZERO,
        };
        Ok(Need { minimum_bytes, work })
    }

    /// The planned seconds in a budget, or as `Err` the smallest one that works.
    fn plan(&self, session: &Session, budget_bytes: u64) -> spillproof_circom::Result<Result<f64, u64>> {
        use spillproof_circom::Error;
        let of_engine = |plans: Vec<spillproof_engine::Result<Plan>>| -> Vec<_> {
            plans.into_iter().map(|plan| plan.map_err(Error::from)).collect()
        };
        let plans = match self {
            Self::Groth16 { key, .. } => vec![key.plan(session, budget_bytes)],
            Self::Axiom(key) => of_engine(key.plans(session, budget_bytes)),
            Self::Midnight(key) => of_engine(key.plans(session, budget_bytes)),
        };
        let (mut seconds, mut needed_bytes) = (0.0, None);
        for plan in plans {
            match plan {
                Ok(plan) => seconds = plan.of(None).seconds.max(seconds),
                Err(Error::Engine(spillproof_engine::Error::BudgetTooSmall {
                    needed_bytes: bytes, ..
                })) => {
                    needed_bytes = needed_bytes.max(Some(bytes));
                }
                Err(other) => return Err(other),
            }
        }
        Ok(needed_bytes.map_or(Ok(seconds), Err))
    }

    pub fn witness_length(&self) -> WitnessLength {
        let (bytes_max, is_exact) = match self {
            Self::Groth16 { key, .. } => (key.witness_bytes(), true),
            Self::Axiom(key) => (key.witness_bytes_max(), false),
            Self::Midnight(key) => (key.witness_bytes_max(), false),
        };
        WitnessLength { bytes_max, is_exact }
    }

    /// Takes a witness that comes to sealed scratch. What is leased meanwhile is on `ledger`.
    ///
    /// # Errors
    /// What is wrong with it, or the machine.
    pub fn witness_of_stream(
        &self,
        session: &Arc<Session>,
        ledger: Budget,
        source: &mut (dyn Read + Send),
    ) -> Result<SystemWitness, Problem> {
        match self {
            Self::Groth16 { key, .. } => key
                .witness_of_stream(session, ledger, Path::new(WITNESS), source)
                .map(SystemWitness::Groth16)
                .map_err(|error| Problem::of_job(&error, session.budget().limit_bytes())),
            Self::Axiom(key) => key
                .witness_of_stream(session, ledger, source)
                .map(SystemWitness::Axiom),
            Self::Midnight(key) => key
                .witness_of_stream(session, ledger, source)
                .map(SystemWitness::Midnight),
        }
    }

    /// A proof that is verified, as the JSON text of its result.
    ///
    /// # Errors
    /// What is wrong with the witness, or the machine.
    pub fn prove(
        &self,
        session: &Arc<Session>,
        witness: &SystemWitness,
        scheme: Option<Scheme>,
    ) -> Result<Bytes, Problem> {
        match (self, witness) {
            (Self::Groth16 { key, .. }, SystemWitness::Groth16(witness)) => {
                let proved = key
                    .prove(session, witness)
                    .map_err(|error| Problem::of_job(&error, session.budget().limit_bytes()))?;
                let (proof, public) = (proved.proof.trim_ascii(), proved.public.trim_ascii());
                let text = [b"{\"proof\":", proof, b",\"publicSignals\":", public, b"}"];
                Ok(text.concat().into())
            }
            (Self::Axiom(key), SystemWitness::Axiom(witness)) => key.prove(session, witness, scheme),
            (Self::Midnight(key), SystemWitness::Midnight(witness)) => key.prove(session, witness, scheme),
            // A job has its witness from its own key.
            _ => Err(Problem::internal(&spillproof_engine::Error::from(
                spillproof_engine::error::Invalid::ProofSystem {
                    what: "a job",
                    reason: "its witness is of another proof system than its key".into(),
                },
            ))),
        }
    }

    /// What is said of it in a list.
    pub fn summary(&self) -> Value {
        match self {
            Self::Groth16 { key, .. } => {
                let (summary, shape) = (key.summary(), key.shape());
                json!({
                    "system": "groth16",
                    "curve": curve_name(summary.curve),
                    "signals": shape.signals,
                    "publicSignals": shape.public,
                    "logDomain": shape.log_domain,
                    "coefficients": shape.coefficients,
                    "insecure": summary.is_without_contribution,
                })
            }
            Self::Axiom(key) => key.summary(),
            Self::Midnight(key) => key.summary(),
        }
    }

    /// The verification key, in JSON, where there is such a form.
    pub fn verification_key(&self) -> Option<&[u8]> {
        match self {
            Self::Groth16 { verification_key, .. } => Some(verification_key),
            Self::Axiom(_) | Self::Midnight(_) => None,
        }
    }
}
