//! Circuits of programs' own, over halo2-axiom: a program over the drop-in saved the key with a description of its circuit, and the witness with its
//! public inputs. The drop-in proves within the current session; the unmodified crate reads the same key by the same description, and verifies.

use std::path::Path;

use halo2_axiom::spillproof::{self as of_dropin, SavedWitness, Unverified};
use spillproof::Session;
use spillproof::plan::{Plan, Rates};
use spillproof_circuits::Scheme;
use spillproof_circuits::axiom::dropin::saved::{SavedKey, prove as prove_saved};
use spillproof_circuits::axiom::{dropin, stock};

use super::Verifier;
use super::axiom::{DropIn, Stock, opening, params_for, verifier_params_for};
use crate::args::OfProgram;
use crate::failure::Failure;
use crate::report::Recorder;
use crate::run::Result;

/// The key of a file, opened in the current session.
///
/// # Errors
/// [`Failure::Saved`], [`Failure::File`], [`Failure::Engine`] for a file that is no key, is damaged, or has no description of its circuit.
pub fn open_key(recorder: &mut Recorder, path: &Path) -> Result<SavedKey> {
    recorder.phase("open key", |_| {
        SavedKey::open(path).map_err(|error| Failure::of_file(path, error))
    })
}

/// What a proof with a key will take, for a plan.
pub fn shape(key: &SavedKey, scheme: Scheme) -> of_dropin::Shape {
    of_dropin::shape(key.key.get_vk().cs(), key.k(), 1, opening(scheme)).from_files()
}

/// The plan of a proof with a key, and a witness in a file.
///
/// # Errors
/// The engine's: a budget that is too small, with the smallest that works.
pub fn plan(session: &Session, shape: &of_dropin::Shape, rates: &Rates) -> Result<Plan> {
    let shape = shape.clone().keeping_rounds(session.checkpoints().is_some());
    Ok(shape.plan(session.budget().limit_bytes(), session.threads(), rates)?)
}

/// The phases of a proof after its key is opened, in the current session. No proof is returned that does not verify.
///
/// # Errors
/// [`Failure::Saved`] for a witness of another key, or one that is damaged; [`Failure::DoesNotVerify`] for one that does not satisfy the circuit;
/// the engine's and halo2's.
pub fn prove(recorder: &mut Recorder, of: &OfProgram, key: &SavedKey) -> Result<Vec<u8>> {
    let vk = key.key.get_vk();
    let witness = recorder.phase("open witness", |_| open_witness(&of.witness))?;
    // Before the parameters are read.
    witness.belongs_to(vk)?;
    let params = recorder.phase("parameters", |_| params_for(&of.parameters, key.k()))?;
    let proof = recorder.phase("prove", |_| {
        prove_saved(&params, key, &witness, of.scheme, of.seed)
            .map_err(|error| DropIn::failure("the proof", error))
    })?;
    // The session's own verification can be turned off, and needs room for a copy of the public inputs.
    recorder.phase("verify", |_| {
        let verified = dropin::proof::verify_columns(&params, vk, &witness.instances(), &proof, of.scheme);
        verified.map_err(|error| {
            Failure::DoesNotVerify(Unverified {
                jobs: 0,
                jobs_before: 0,
                reason: error.to_string(),
            })
        })
    })?;
    Ok(proof)
}

/// The phases of verifying a proof with the unmodified crate. The session opens the files.
///
/// # Errors
/// As [`prove`]; [`Failure::Refused`] for a proof that does not hold.
pub fn verify(recorder: &mut Recorder, of: &OfProgram, proof: &[u8]) -> Result<u32> {
    let key = open_key(recorder, &of.key)?;
    let witness = recorder.phase("open witness", |_| open_witness(&of.witness))?;
    witness.belongs_to(key.key.get_vk())?;
    let (params, vk) = recorder.phase("stock: parameters and key", |_| {
        let of_key = |error| Failure::of_file(&of.key, error);
        let bytes = key.verifying_key_bytes().map_err(of_key)?;
        let vk = stock::described::read_verifying_key(&bytes, &key.description).map_err(of_key)?;
        if stock::described::hash_of(&vk) != key.description.key {
            return Err(Failure::Different(format!(
                "{}: the hash of the verifying key",
                of.key.display()
            )));
        }
        Ok::<_, Failure>((verifier_params_for(&of.parameters, key.k())?, vk))
    })?;
    recorder.phase("stock: verify", |_| {
        stock::proof::verify_columns(&params, &vk, &witness.instances(), proof, of.scheme)
            .map_err(|error| Stock::failure("the unmodified verifier refuses the proof", error))
    })?;
    Ok(key.k())
}

fn open_witness(path: &Path) -> Result<SavedWitness> {
    SavedWitness::open(path).map_err(|error| Failure::of_file(path, error))
}
