//! Circuits of programs' own: a program over a drop-in saved the key with a description of its circuit, and
//! the witness with its public inputs. The drop-in proves within the current session; the unmodified crate
//! reads the same key by the same description, and verifies. The curve of the key's file says whose it is.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use halo2_axiom::spillproof::Numerator;
use spillproof_circuits::axiom::dropin::saved as axiom_saved;
use spillproof_circuits::axiom::stock as axiom_stock;
use spillproof_circuits::midnight::dropin::saved as midnight_saved;
use spillproof_circuits::midnight::stock as midnight_stock;
use spillproof_circuits::saved::{Saved, public_digits};
use spillproof_circuits::{Scheme, System};
use spillproof_engine::Session;
use spillproof_engine::plan::{Plan, Rates};
use spillproof_format::{Curve, HEADER_BYTES, Header};

use super::kzg::{InSession, params_for};
use super::{PARAMETERS, Verifier, axiom, midnight};
use crate::args::{OfProgram, Parameters, PublicInputs, opening};
use crate::failure::Failure;
use crate::read_once::read_whole;
use crate::report::Recorder;
use crate::run::{Result, start_global_threads};

/// A drop-in whose programs save keys, and the unmodified crate beside it.
trait InFiles: Saved {
    /// The drop-in's parameters, from files of all kinds.
    type DropIn: InSession<Params = Self::Params, Error = <Self as Saved>::Error>;
    /// What the unmodified crate takes to verify.
    type Stock;

    /// The verifying key and the parameters of the unmodified crate.
    ///
    /// # Errors
    /// Of a key that it reads otherwise, and of files of parameters.
    fn stock(key: &Self::Key, parameters: &Parameters) -> std::io::Result<Result<Self::Stock>>;
    /// Checks a proof by the unmodified crate.
    ///
    /// # Errors
    /// [`Failure::Refused`].
    fn verify_by_stock(
        stock: &Self::Stock,
        of: &OfProgram,
        instances: &[&[Self::Value]],
        proof: &[u8],
    ) -> Result<()>;
}

/// What is said where the unmodified crate refuses a proof.
const REFUSED: &str = "the unmodified verifier refuses the proof";

impl InFiles for axiom_saved::Axiom {
    type DropIn = axiom::DropIn;
    type Stock = (axiom_stock::proof::Params, axiom_stock::proof::VerifierKey);

    fn stock(key: &Self::Key, parameters: &Parameters) -> std::io::Result<Result<Self::Stock>> {
        let bytes = key.verifying_key_bytes()?;
        let vk = axiom_stock::described::read_verifying_key(&bytes, &key.description)?;
        if axiom_stock::described::hash_of(&vk) != key.description.key {
            return Ok(Err(another_hash()));
        }
        Ok(axiom::verifier_params_for(parameters, key.k()).map(|params| (params, vk)))
    }

    fn verify_by_stock(
        (params, vk): &Self::Stock,
        of: &OfProgram,
        instances: &[&[Self::Value]],
        proof: &[u8],
    ) -> Result<()> {
        let scheme = of.scheme.unwrap_or(Scheme::Shplonk);
        axiom_stock::proof::verify_columns(params, vk, instances, proof, scheme)
            .map_err(|error| axiom::Stock::failure(REFUSED, error))
    }
}

/// What the unmodified midnight-proofs takes; of a key with committed instances, also the drop-in's parameters,
/// over which they are committed to.
struct MidnightStock {
    params: midnight_stock::proof::Params,
    vk: midnight_stock::proof::VerifierKey,
    committed: Option<(<midnight_saved::Midnight as Saved>::Params, usize)>,
}

impl InFiles for midnight_saved::Midnight {
    type DropIn = midnight::DropIn;
    type Stock = MidnightStock;

    fn stock(key: &Self::Key, parameters: &Parameters) -> std::io::Result<Result<Self::Stock>> {
        let bytes = key.verifying_key_bytes()?;
        let vk = midnight_stock::described::read_verifying_key(&bytes, &key.description)?;
        if midnight_stock::described::hash_of(&vk) != key.description.key {
            return Ok(Err(another_hash()));
        }
        let stock = || {
            let committed = match key.committed_instances {
                0 => None,
                columns => Some((params_for::<Self::DropIn>(parameters, key.k())?, columns)),
            };
            let params = midnight::verifier_params_for(parameters, key.k())?;
            Ok(MidnightStock {
                params,
                vk,
                committed,
            })
        };
        Ok(stock())
    }

    fn verify_by_stock(
        stock: &Self::Stock,
        _of: &OfProgram,
        instances: &[&[Self::Value]],
        proof: &[u8],
    ) -> Result<()> {
        let (commitments, plain) = match &stock.committed {
            None => (Vec::new(), instances),
            Some((params, columns)) => {
                let (committed, plain) = instances.split_at((*columns).min(instances.len()));
                let commitments = midnight_proofs::spillproof::commit_instances(params, committed);
                (
                    commitments.map_err(|error| Failure::drop_in(REFUSED, error))?,
                    plain,
                )
            }
        };
        midnight_stock::proof::verify_columns(&stock.params, &stock.vk, &commitments, plain, proof)
            .map_err(|error| midnight::Stock::failure(REFUSED, error))
    }
}

fn another_hash() -> Failure {
    Failure::Different("the hash of a verifying key".to_owned())
}

/// A key of a file, opened.
pub enum Key {
    /// Of halo2-axiom.
    Axiom(Box<axiom_saved::SavedKey>),
    /// Of midnight-proofs.
    Midnight(Box<midnight_saved::SavedKey>),
}

impl Key {
    /// The proof system.
    pub fn system(&self) -> System {
        match self {
            Self::Axiom(_) => System::Axiom,
            Self::Midnight(_) => System::Midnight,
        }
    }

    /// `2^k` rows.
    pub fn k(&self) -> u32 {
        match self {
            Self::Axiom(key) => key.k(),
            Self::Midnight(key) => key.k(),
        }
    }

    /// The name of the opening of its proofs.
    pub fn opening(&self, scheme: Option<Scheme>) -> &'static str {
        match self {
            Self::Axiom(_) => opening(scheme.unwrap_or(Scheme::Shplonk)),
            Self::Midnight(_) => "kzg",
        }
    }

    /// The plan of a proof within a budget with the key, and a witness in a file, with the seconds of a usual
    /// machine.
    ///
    /// # Errors
    /// The engine's: a budget that is too small, with the smallest that works.
    pub fn plan(&self, session: &Session, scheme: Option<Scheme>, budget_bytes: u64) -> Result<Plan> {
        let (threads, rates) = (session.threads(), Rates::default());
        let plan = match self {
            Self::Axiom(key) => {
                let shape = axiom_saved::shape(key, scheme.unwrap_or(Scheme::Shplonk));
                shape.in_session(session).plan(budget_bytes, threads, &rates)
            }
            Self::Midnight(key) => {
                let shape = midnight_saved::shape(key).keeping_rounds(session.checkpoints().is_some());
                shape.plan(budget_bytes, threads, &rates)
            }
        };
        Ok(plan?)
    }

    /// The numerator that a proof offers to a device; none of a system whose proofs ask no device.
    pub fn numerator(&self, scheme: Option<Scheme>) -> Option<Numerator> {
        match self {
            Self::Axiom(key) => Some(axiom_saved::shape(key, scheme.unwrap_or(Scheme::Shplonk)).numerator()),
            Self::Midnight(_) => None,
        }
    }
}

/// The key of a file, opened in the current session.
///
/// # Errors
/// [`Failure::Saved`], [`Failure::File`], [`Failure::Engine`] for a file that is no key, is damaged, or has
/// no description of its circuit; [`Failure::Usage`] for an opening that its system has not.
pub fn open_key(recorder: &mut Recorder, path: &Path, scheme: Option<Scheme>) -> Result<Key> {
    recorder.phase("open key", |_| {
        let of_key = |error| Failure::of_file(path, error);
        let key = match system_of(path)? {
            System::Midnight => {
                Key::Midnight(Box::new(midnight_saved::SavedKey::open(path).map_err(of_key)?))
            }
            _ => Key::Axiom(Box::new(axiom_saved::SavedKey::open(path).map_err(of_key)?)),
        };
        match (&key, scheme) {
            (Key::Midnight(_), Some(_)) => Err(Failure::Usage(format!(
                "--scheme is for keys of halo2-axiom: leave it out, {} is a key of midnight-proofs",
                path.display()
            ))),
            _ => Ok(key),
        }
    })
}

/// The system of a container by its curve; whoever opens it says what is wrong with it.
fn system_of(path: &Path) -> Result<System> {
    let mut bytes = [0; HEADER_BYTES];
    let mut file = File::open(path).map_err(Failure::file(path))?;
    let is_whole = file.read_exact(&mut bytes).is_ok();
    match Header::decode(&bytes) {
        Ok(header) if is_whole && header.curve() == Curve::Bls12381 => Ok(System::Midnight),
        _ => Ok(System::Axiom),
    }
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
    key: &Key,
) -> Result<(Vec<u8>, PublicJson)> {
    match key {
        Key::Axiom(key) => prove_with::<axiom_saved::Axiom>(recorder, of, witness, key),
        Key::Midnight(key) => {
            // Its proofs depend on how many they are.
            start_global_threads()?;
            prove_with::<midnight_saved::Midnight>(recorder, of, witness, key)
        }
    }
}

fn prove_with<S: InFiles>(
    recorder: &mut Recorder,
    of: &OfProgram,
    witness: &Path,
    key: &S::Key,
) -> Result<(Vec<u8>, PublicJson)> {
    let witness = recorder.phase("open witness", |_| open_witness::<S>(witness))?;
    // Before the parameters are read.
    S::belongs_to(&witness, key)?;
    let params = recorder.phase(PARAMETERS, |_| params_for::<S::DropIn>(&of.parameters, S::k(key)))?;
    let proof = recorder.phase("prove", |_| {
        S::prove(&params, key, &witness, of.scheme, of.seed)
            .map_err(|error| S::DropIn::failure("the proof", error))
    })?;
    let instances = S::instances(&witness);
    // The session's own verification can be turned off, and needs room for a copy of the public inputs.
    recorder.phase("verify", |_| {
        let verified = S::verify(&params, key, &instances, &proof, of.scheme);
        verified.map_err(|error| Failure::DoesNotVerify(S::does_not_verify(key, &error)))
    })?;
    Ok((proof, public_digits::<S>(&instances)))
}

/// The phases of verifying a proof with the unmodified crate. The session opens the files.
///
/// # Errors
/// As [`prove`]; [`Failure::Refused`] for a proof that does not hold.
pub fn verify(recorder: &mut Recorder, of: &OfProgram, inputs: &PublicInputs, proof: &[u8]) -> Result<Key> {
    let key = open_key(recorder, &of.key, of.scheme)?;
    match &key {
        Key::Axiom(key) => verify_with::<axiom_saved::Axiom>(recorder, of, key, inputs, proof)?,
        Key::Midnight(key) => verify_with::<midnight_saved::Midnight>(recorder, of, key, inputs, proof)?,
    }
    Ok(key)
}

fn verify_with<S: InFiles>(
    recorder: &mut Recorder,
    of: &OfProgram,
    key: &S::Key,
    inputs: &PublicInputs,
    proof: &[u8],
) -> Result<()> {
    let check = |recorder: &mut Recorder, instances: &[&[S::Value]]| {
        let stock = recorder.phase("stock: setup", |_| {
            let stock = S::stock(key, &of.parameters);
            stock.map_err(|error| Failure::of_file(&of.key, error))?
        })?;
        recorder.phase("stock: verify", |_| {
            S::verify_by_stock(&stock, of, instances, proof)
        })
    };
    match inputs {
        PublicInputs::Witness(path) => {
            let witness = recorder.phase("open witness", |_| open_witness::<S>(path))?;
            S::belongs_to(&witness, key)?;
            check(recorder, &S::instances(&witness))
        }
        PublicInputs::Json(path) => {
            let public = read_public::<S>(path, S::description(key).instance_columns)?;
            let columns: Vec<&[S::Value]> = public.iter().map(Vec::as_slice).collect();
            check(recorder, &columns)
        }
    }
}

/// The public inputs of a file.
fn read_public<S: Saved>(path: &Path, columns: usize) -> Result<Vec<Vec<S::Value>>> {
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
        let mut bytes = [0; 32];
        let decoded = hex::decode_to_slice(digits, &mut bytes).ok();
        bytes.reverse();
        decoded.and_then(|()| S::value(bytes)).ok_or_else(|| {
            refused(format!(
                "{digits} is no public input: expected 64 hexadecimal digits of a number below the modulus"
            ))
        })
    };
    json.iter()
        .map(|values| values.iter().map(value).collect())
        .collect()
}

fn open_witness<S: Saved>(path: &Path) -> Result<S::Witness> {
    S::open_witness(path).map_err(|error| Failure::of_file(path, error))
}
