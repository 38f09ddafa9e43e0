//! Circuits of programs' own, over halo2-axiom: a program over the drop-in saved the key with a description
//! of its circuit, and the witness with its public inputs. The drop-in proves within the current session; the
//! unmodified crate reads the same key by the same description, and verifies.

use std::path::Path;

use halo2_axiom::halo2curves::bn256::Fr;
use halo2_axiom::halo2curves::ff::PrimeField;
use halo2_axiom::spillproof::{self as of_dropin, SavedWitness, Unverified};
pub use spillproof_circuits::axiom::dropin::saved::shape;
use spillproof_circuits::axiom::dropin::saved::{SavedKey, prove as prove_saved, public_digits};
use spillproof_circuits::axiom::{dropin, stock};
use spillproof_engine::Session;
use spillproof_engine::plan::{Plan, Rates};

use super::axiom::{DropIn, Stock, verifier_params_for};
use super::kzg::params_for;
use super::{PARAMETERS, Verifier};
use crate::args::{OfProgram, PublicInputs};
use crate::failure::Failure;
use crate::read_once::read_whole;
use crate::report::Recorder;
use crate::run::Result;

/// The key of a file, opened in the current session.
///
/// # Errors
/// [`Failure::Saved`], [`Failure::File`], [`Failure::Engine`] for a file that is no key, is damaged, or has
/// no description of its circuit.
pub fn open_key(recorder: &mut Recorder, path: &Path) -> Result<SavedKey> {
    recorder.phase("open key", |_| {
        SavedKey::open(path).map_err(|error| Failure::of_file(path, error))
    })
}

/// The plan of a proof within a budget with a key, and a witness in a file, with the seconds of a usual
/// machine.
///
/// # Errors
/// The engine's: a budget that is too small, with the smallest that works.
pub fn plan(session: &Session, shape: &of_dropin::Shape, budget_bytes: u64) -> Result<Plan> {
    let shape = shape.clone().in_session(session);
    Ok(shape.plan(budget_bytes, session.threads(), &Rates::default())?)
}

/// The public inputs of a proof as JSON: a list for each instance column, of 64 hexadecimal digits each, most
/// significant first.
pub type PublicJson = Vec<Vec<String>>;

/// The phases of a proof after its key is opened, in the current session, and its public inputs. No proof is
/// returned that does not verify.
///
/// # Errors
/// [`Failure::Saved`] for a witness of another key, or one that is damaged; [`Failure::DoesNotVerify`] for
/// one that does not satisfy the circuit; the engine's and halo2's.
pub fn prove(
    recorder: &mut Recorder,
    of: &OfProgram,
    witness: &Path,
    key: &SavedKey,
) -> Result<(Vec<u8>, PublicJson)> {
    let vk = key.key.get_vk();
    let witness = recorder.phase("open witness", |_| open_witness(witness))?;
    // Before the parameters are read.
    witness.belongs_to(vk)?;
    let params = recorder.phase(PARAMETERS, |_| params_for::<DropIn>(&of.parameters, key.k()))?;
    let proof = recorder.phase("prove", |_| {
        prove_saved(&params, key, &witness, of.scheme, of.seed)
            .map_err(|error| DropIn::failure("the proof", error))
    })?;
    // The session's own verification can be turned off, and needs room for a copy of the public inputs.
    recorder.phase("verify", |_| {
        let verified = dropin::proof::verify_columns(&params, vk, &witness.instances(), &proof, of.scheme);
        verified.map_err(|error| Failure::DoesNotVerify(Unverified::by_processor(vk, error)))
    })?;
    let public = public_digits(&witness.instances());
    Ok((proof, public))
}

/// The phases of verifying a proof with the unmodified crate. The session opens the files.
///
/// # Errors
/// As [`prove`]; [`Failure::Refused`] for a proof that does not hold.
pub fn verify(recorder: &mut Recorder, of: &OfProgram, inputs: &PublicInputs, proof: &[u8]) -> Result<u32> {
    let key = open_key(recorder, &of.key)?;
    match inputs {
        PublicInputs::Witness(path) => {
            let witness = recorder.phase("open witness", |_| open_witness(path))?;
            witness.belongs_to(key.key.get_vk())?;
            verify_with(recorder, of, &key, &witness.instances(), proof)?;
        }
        PublicInputs::Json(path) => {
            let public = read_public(path, key.description.instance_columns)?;
            let columns: Vec<&[Fr]> = public.iter().map(Vec::as_slice).collect();
            verify_with(recorder, of, &key, &columns, proof)?;
        }
    }
    Ok(key.k())
}

/// The public inputs of a file.
fn read_public(path: &Path, columns: usize) -> Result<Vec<Vec<Fr>>> {
    let refused = |details: String| Failure::Content {
        file: path.to_owned(),
        details,
    };
    let bytes = read_whole(path)?;
    let json: PublicJson = serde_json::from_slice(&bytes)
        .map_err(|error| refused(format!("no file of prove --public: {error}")))?;
    if json.len() != columns {
        return Err(refused(format!(
            "{} instance columns, and the key's circuit has {columns}",
            json.len()
        )));
    }
    let value = |digits: &String| {
        let mut repr = <Fr as PrimeField>::Repr::default();
        let decoded = hex::decode_to_slice(digits, &mut repr).ok();
        repr.reverse();
        let value: Option<Fr> = decoded.and_then(|()| Fr::from_repr(repr).into());
        value.ok_or_else(|| {
            refused(format!(
                "{digits} is no public input: expected 64 hexadecimal digits of a number below the modulus"
            ))
        })
    };
    json.iter()
        .map(|values| values.iter().map(value).collect())
        .collect()
}

fn verify_with(
    recorder: &mut Recorder,
    of: &OfProgram,
    key: &SavedKey,
    public: &[&[Fr]],
    proof: &[u8],
) -> Result<()> {
    let (params, vk) = recorder.phase("stock: setup", |_| {
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
        stock::proof::verify_columns(&params, &vk, public, proof, of.scheme)
            .map_err(|error| Stock::failure("the unmodified verifier refuses the proof", error))
    })
}

fn open_witness(path: &Path) -> Result<SavedWitness> {
    SavedWitness::open(path).map_err(|error| Failure::of_file(path, error))
}
