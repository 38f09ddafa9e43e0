//! The proof systems of the binary: what a command asks of each, and the phases of keys, proof and
//! verification, which are the same for all.
//!
//! A [`Verifier`] has parameters, verifying keys and verification; a [`Prover`] also proving keys and proofs.
//! [`axiom`], [`midnight`] and [`zcash`] have two types each: `DropIn`, which proves within the current
//! session, and `Stock`, the unmodified crate, which verifies (and, with the feature `stock-prover`, proves).

use std::fmt::Display;
use std::path::Path;

use spillproof_circuits::System;
use spillproof_engine::Session;
use spillproof_engine::plan::Plan;

use crate::args::{Shape, Statement};
use crate::failure::Failure;
use crate::report::Recorder;
use crate::run::{Result, start_global_threads};

/// Items of [`Verifier`] that are calls of `$circuits::proof`; `$scheme` is the method of [`Shape`] with an
/// argument that this system has besides.
macro_rules! verifier_of {
    ($circuits:ident $(, $scheme:ident)?) => {
        type Params = $circuits::proof::Params;
        type VerifierKey = $circuits::proof::VerifierKey;

        fn verifying_key(params: &Self::Params, shape: &Shape) -> Result<Self::VerifierKey, Self::Error> {
            $circuits::proof::verifying_key(params, shape.circuit, shape.k)
        }

        fn verify(
            params: &Self::Params,
            key: &Self::VerifierKey,
            statement: &Statement,
            proofs: &[&[u8]],
        ) -> Result<(), Self::Error> {
            let shape = &statement.shape;
            let instances = $circuits::proof::instances(shape.circuit, shape.k, statement.seed);
            proofs.iter().try_for_each(|proof| {
                $circuits::proof::verify(params, key, &instances, proof $(, shape.$scheme())?)
            })
        }
    };
}

/// All items of [`Prover`], calls of `$circuits::prover`; `$scheme` as for `verifier_of`.
macro_rules! prover_of {
    ($circuits:ident $(, $scheme:ident)?) => {
        type ProverKey = $circuits::prover::ProverKey;

        fn proving_key(
            params: &Self::Params,
            key: Self::VerifierKey,
            shape: &Shape,
        ) -> Result<Self::ProverKey, Self::Error> {
            $circuits::prover::proving_key(params, key, shape.circuit, shape.k)
        }

        fn verifying(key: &Self::ProverKey) -> &Self::VerifierKey {
            key.get_vk()
        }

        fn prove(
            params: &Self::Params,
            key: &Self::ProverKey,
            statement: &Statement,
        ) -> Result<Vec<u8>, Self::Error> {
            let shape = &statement.shape;
            $circuits::prover::prove(params, key, shape.circuit, shape.k, statement.seed $(, shape.$scheme())?)
        }
    };
}

/// All items of [`kzg::Kzg`] over a curve, calls of `$circuits::proof`; `$format` is the crate's type of
/// formats.
macro_rules! kzg_of {
    ($circuits:ident, $curve:ty, $format:ty) => {
        type Curve = $curve;

        fn made(k: u32, seed: u64) -> Self::Params {
            $circuits::proof::insecure_params(k, seed)
        }

        fn read(
            reader: &mut dyn io::Read,
            format: spillproof_format::params_kzg::SerdeFormat,
        ) -> io::Result<Self::Params> {
            use spillproof_format::params_kzg::SerdeFormat as OfFile;
            let format = match format {
                OfFile::Processed => <$format>::Processed,
                OfFile::RawBytes => <$format>::RawBytes,
                OfFile::RawBytesUnchecked => <$format>::RawBytesUnchecked,
            };
            $circuits::proof::read_params(reader, format)
        }

        fn rows(params: &Self::Params) -> u32 {
            $circuits::proof::rows_of(params)
        }

        fn downsize(params: &mut Self::Params, k: u32) {
            $circuits::proof::downsize(params, k);
        }
    };
}

/// A verifier's error in words; `$error` is the crate's type of errors.
macro_rules! refusal {
    ($doing:ident, $value:ident, $error:ident) => {
        match $value {
            $error::Transcript(reason) => $crate::failure::Failure::Refused {
                doing: $doing,
                reason: reason.to_string(),
            },
            $error::ConstraintSystemFailure | $error::Opening => $crate::failure::Failure::Refused {
                doing: $doing,
                reason: "it does not hold for this circuit, k, seed, opening and these parameters".into(),
            },
            other => $crate::failure::Failure::halo2($doing)(other),
        }
    };
}

pub mod axiom;
pub mod kzg;
pub mod midnight;
pub mod of_program;
pub mod params;
pub mod zcash;

/// The phase in which parameters are read or made.
pub const PARAMETERS: &str = "parameters";

/// One crate's verification of the built-in circuits.
pub trait Verifier {
    /// The crate and its version, as reports name it.
    const NAME: &'static str;
    /// Its parameters.
    type Params;
    /// Its verifying key.
    type VerifierKey;
    /// Its errors.
    type Error: Display;

    /// The parameters of a statement, from its file or made anew.
    ///
    /// # Errors
    /// [`Failure::File`] and [`Failure::Content`] for a file that is not theirs; the engine's.
    fn params(statement: &Statement) -> Result<Self::Params>;
    /// As much of them as verification takes.
    ///
    /// # Errors
    /// As [`Self::params`].
    fn verifier_params(statement: &Statement) -> Result<Self::Params> {
        Self::params(statement)
    }
    /// The verifying key of a circuit, from a file.
    ///
    /// # Errors
    /// [`Failure::File`] and [`Failure::Content`] for a file that has none; [`Failure::Usage`] for a system
    /// without such files.
    fn open_verifying_key(_path: &Path, _shape: &Shape) -> Result<Self::VerifierKey> {
        Err(no_key_files())
    }
    /// The verifying key of a circuit.
    ///
    /// # Errors
    /// The crate's.
    fn verifying_key(params: &Self::Params, shape: &Shape) -> Result<Self::VerifierKey, Self::Error>;
    /// Checks proofs of a statement.
    ///
    /// # Errors
    /// The crate's, for a proof that does not hold.
    fn verify(
        params: &Self::Params,
        key: &Self::VerifierKey,
        statement: &Statement,
        proofs: &[&[u8]],
    ) -> Result<(), Self::Error>;
    /// The failure of a run that such an error ends.
    fn failure(doing: &'static str, error: Self::Error) -> Failure {
        Failure::halo2(doing)(error)
    }
}

/// One crate's proofs of the built-in circuits.
pub trait Prover: Verifier {
    /// Its proving key.
    type ProverKey;

    /// The proving key that goes with a verifying key.
    ///
    /// # Errors
    /// The crate's.
    fn proving_key(
        params: &Self::Params,
        key: Self::VerifierKey,
        shape: &Shape,
    ) -> Result<Self::ProverKey, Self::Error>;
    /// The proving key of a circuit, from a file.
    ///
    /// # Errors
    /// As [`Verifier::open_verifying_key`]; the engine's.
    fn open_proving_key(_path: &Path, _shape: &Shape) -> Result<Self::ProverKey> {
        Err(no_key_files())
    }
    /// The verifying key of a proving key.
    fn verifying(key: &Self::ProverKey) -> &Self::VerifierKey;
    /// A proof of a statement.
    ///
    /// # Errors
    /// The crate's.
    fn prove(
        params: &Self::Params,
        key: &Self::ProverKey,
        statement: &Statement,
    ) -> Result<Vec<u8>, Self::Error>;
}

/// A drop-in with files of keys.
pub trait KeyFiles: Prover {
    /// Writes a proving key, as [`Prover::open_proving_key`] opens it; the root of the file, if it is a
    /// container.
    ///
    /// # Errors
    /// The engine's; of a file that cannot be written.
    fn save_key(
        session: &Session,
        key: &Self::ProverKey,
        shape: &Shape,
        path: &Path,
    ) -> Result<Option<[u8; 32]>>;
    /// The bytes of its verifying key, as [`Verifier::open_verifying_key`] of the unmodified crate reads them.
    fn verifying_key_bytes(key: &Self::ProverKey) -> Vec<u8>;
}

fn no_key_files() -> Failure {
    Failure::Usage(
        "files of keys are for --system axiom and midnight: halo2_proofs has no format for them".into(),
    )
}

/// Names of phases: something before, something after.
#[derive(Debug, Clone, Copy, Default)]
pub struct Named<'n> {
    /// Before each name.
    pub prefix: &'n str,
    /// After each name.
    pub suffix: &'n str,
}

/// The phases of a proof. If a device took part, in the keys or in the proof, the proof is verified before it
/// is returned.
///
/// # Errors
/// Those of `P`; [`Failure::Unverified`].
pub fn prove_phases<P: Prover>(
    recorder: &mut Recorder,
    statement: &Statement,
    key_file: Option<&Path>,
    named: Named<'_>,
    a_device_took_part: &dyn Fn() -> bool,
) -> Result<Vec<u8>> {
    let name = |phase: &str| format!("{}{phase}{}", named.prefix, named.suffix);
    let shape = &statement.shape;
    let params = recorder.phase(&name(PARAMETERS), |_| P::params(statement))?;
    let key = match key_file {
        Some(path) => recorder.phase(&name("open key"), |_| P::open_proving_key(path, shape))?,
        None => keys::<P>(recorder, &params, shape, &name)?,
    };
    let proof = recorder.phase(&name("prove"), |_| {
        P::prove(&params, &key, statement).map_err(|error| P::failure("the proof", error))
    })?;
    if a_device_took_part() {
        recorder.phase(&name("verify"), |_| {
            P::verify(&params, P::verifying(&key), statement, &[&proof])
                .map_err(|reason| Failure::Unverified(reason.to_string()))
        })?;
    }
    Ok(proof)
}

/// The phases of keys.
fn keys<P: Prover>(
    recorder: &mut Recorder,
    params: &P::Params,
    shape: &Shape,
    name: &dyn Fn(&str) -> String,
) -> Result<P::ProverKey> {
    let key = recorder.phase(&name("verifying key"), |_| {
        P::verifying_key(params, shape).map_err(|error| P::failure("the verifying key", error))
    })?;
    recorder.phase(&name("proving key"), |_| {
        P::proving_key(params, key, shape).map_err(|error| P::failure("the proving key", error))
    })
}

/// The phases of keys alone, in the current session.
///
/// # Errors
/// Those of `P`.
pub fn make_keys<P: Prover>(recorder: &mut Recorder, statement: &Statement) -> Result<P::ProverKey> {
    let params = recorder.phase(PARAMETERS, |_| P::params(statement))?;
    keys::<P>(recorder, &params, &statement.shape, &str::to_owned)
}

/// The phases of a proof by the drop-in of the statement's system, in the current session. `key_file` has its
/// proving key, if it is not made.
///
/// # Errors
/// As [`prove_phases`].
pub fn prove(
    recorder: &mut Recorder,
    statement: &Statement,
    key_file: Option<&Path>,
    suffix: &str,
    a_device_took_part: &dyn Fn() -> bool,
) -> Result<Vec<u8>> {
    let phases = match statement.shape.system {
        System::Axiom => prove_phases::<axiom::DropIn>,
        System::Midnight => {
            // Its proofs depend on how many they are, in a session, too.
            start_global_threads()?;
            prove_phases::<midnight::DropIn>
        }
        System::Zcash => prove_phases::<zcash::DropIn>,
    };
    let named = Named { prefix: "", suffix };
    phases(recorder, statement, key_file, named, a_device_took_part)
}

/// The phases of a proof by the unmodified crate of the statement's system, in memory.
///
/// # Errors
/// As [`prove_phases`].
#[cfg(feature = "stock-prover")]
pub fn prove_by_stock(recorder: &mut Recorder, statement: &Statement) -> Result<Vec<u8>> {
    let phases = match statement.shape.system {
        System::Axiom => prove_phases::<axiom::Stock>,
        System::Midnight => prove_phases::<midnight::Stock>,
        System::Zcash => prove_phases::<zcash::Stock>,
    };
    let named = Named {
        prefix: "stock: ",
        suffix: "",
    };
    phases(recorder, statement, None, named, &|| false)
}

/// The phases of verifying proofs of one statement with the unmodified crate: its own parameters, and its own
/// key unless `key_file` has it.
///
/// # Errors
/// The crate's, for a proof that does not hold.
pub fn verify_by_stock(
    recorder: &mut Recorder,
    statement: &Statement,
    key_file: Option<&Path>,
    proofs: &[&[u8]],
) -> Result<()> {
    match statement.shape.system {
        System::Axiom => verify_phases::<axiom::Stock>(recorder, statement, key_file, proofs),
        System::Midnight => verify_phases::<midnight::Stock>(recorder, statement, key_file, proofs),
        System::Zcash => verify_phases::<zcash::Stock>(recorder, statement, key_file, proofs),
    }
}

fn verify_phases<V: Verifier>(
    recorder: &mut Recorder,
    statement: &Statement,
    key_file: Option<&Path>,
    proofs: &[&[u8]],
) -> Result<()> {
    let (params, key) = recorder.phase("stock: setup", |_| match key_file {
        Some(path) => {
            let key = V::open_verifying_key(path, &statement.shape)?;
            Ok::<_, Failure>((V::verifier_params(statement)?, key))
        }
        None => {
            let params = V::params(statement)?;
            let key = V::verifying_key(&params, &statement.shape)
                .map_err(|error| V::failure("stock's verifying key", error))?;
            Ok((params, key))
        }
    })?;
    recorder.phase("stock: verify", |_| {
        V::verify(&params, &key, statement, proofs)
            .map_err(|error| V::failure("the unmodified verifier refuses the proof", error))
    })
}

/// Name and version of the unmodified crate.
pub fn stock_name(system: System) -> &'static str {
    match system {
        System::Axiom => axiom::Stock::NAME,
        System::Midnight => midnight::Stock::NAME,
        System::Zcash => zcash::Stock::NAME,
    }
}

/// The plan of keys and a proof of a built-in circuit within a budget, as a session makes them, with the
/// seconds of a usual machine.
///
/// # Errors
/// The engine's: a budget that is too small, with the smallest that works.
pub fn plan(session: &Session, shape: &Shape, budget_bytes: u64) -> Result<Plan> {
    match shape.system {
        System::Axiom => axiom::plan(session, shape, budget_bytes),
        System::Midnight => midnight::plan(session, shape, budget_bytes),
        System::Zcash => zcash::plan(session, shape, budget_bytes),
    }
}
