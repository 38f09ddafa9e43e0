//! What jobs do: proofs, checks and sizes of circuits, with parameters and keys that are held as handles.
//!
//! What takes much memory is a task of the session, and waits until others leave it room: proofs by
//! themselves, and here the reading of keys, the check of parameters, and large circuits.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use midnight_ledger::structure::{ProofPreimageVersioned, ProofVersioned, INITIAL_PARAMETERS};
use midnight_proofs::poly::commitment::Params as _;
use midnight_proofs::spillproof::{check_params, open_params, Session};
use midnight_serialize::tagged_deserialize;
use midnight_transient_crypto::curve::Fr;
use midnight_transient_crypto::proofs::{
    KeyLocation, ParamsProver, ParamsProverProvider, Proof, ProofPreimage, ProvingProvider, VerifierKey,
    Zkir as _, PARAMS_VERIFIER,
};
use midnight_zkir::IrSource;
use rand::rngs::OsRng;
use spillproof_engine::budget::Lease;
use spillproof_engine::session::{Participation, Task};

use crate::body::Room;
use crate::failure::{Failure, Result};
use crate::keys::{self, Key, Keys, K_MAX};
use crate::material::{Folder, KeySource, Material};
use crate::now::now;
use crate::request::{self, Check, Prove, ProveTransaction, Read};

/// What a task works in beside others that reads a key or checks parameters: buffers of a column, tiles of a
/// transform or a sum.
const TASK_BYTES: u64 = 16 << 20;
/// Bytes of a circuit in memory for each of its bytes in a request, at most: an instruction of two bytes is
/// a value of 56 in a vector that may be half empty.
const CIRCUIT_BYTES_PER_BYTE: u64 = 64;
/// Circuits that take no more than that are not counted: a megabyte for a worker.
const SMALL_CIRCUIT_BYTES: u64 = 1 << 20;
/// The part of the budget that one circuit may take.
const CIRCUIT_SHARE: u64 = 16;

/// Parameters, keys, and the session that they are in.
pub struct Prover {
    session: Arc<Session>,
    folder: Folder,
    /// By k; locked while they are opened and checked.
    params: [Mutex<Option<ParamsProver>>; K_MAX as usize + 1],
    keys: Keys,
    circuit_bytes_max: u64,
}

/// A proof that is to be made.
pub struct ProofJob {
    preimage: Arc<ProofPreimage>,
    material: Material<'static>,
    _room: Room,
}

/// A circuit in memory.
struct Circuit {
    ir: IrSource,
    _lease: Option<Lease>,
}

impl Prover {
    /// With parameters and built-in keys in the folder `dir`, and `keys_max` keys held at most.
    pub fn new(session: Arc<Session>, dir: PathBuf, keys_max: usize) -> Self {
        // What proofs are verified with: the ceremony's parameters, as the crate has them. They are few
        // megabytes for a moment, which a small budget need not have.
        let suspended = Session::suspend();
        let _read = &*PARAMS_VERIFIER;
        drop(suspended);
        Self {
            circuit_bytes_max: session.budget().limit_bytes() / CIRCUIT_SHARE / CIRCUIT_BYTES_PER_BYTE,
            session,
            folder: Folder::new(dir),
            params: Default::default(),
            keys: Keys::new(keys_max),
        }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Its keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The k of parameters that are open.
    pub fn opened(&self) -> Vec<usize> {
        let is_open = |slot: &Mutex<Option<_>>| slot.try_lock().is_ok_and(|params| params.is_some());
        let all = (0..).zip(&self.params);
        all.filter(|(_, slot)| is_open(slot)).map(|(k, _)| k).collect()
    }

    /// Whether there are parameters for this k.
    ///
    /// # Errors
    /// [`Failure::NoParameters`].
    pub fn find_params(&self, k: u8) -> Result<()> {
        match k <= K_MAX && self.folder.params(k).is_file() {
            true => Ok(()),
            false => Err(Failure::NoParameters { k }),
        }
    }

    /// `/k`: the logarithm of the rows that a circuit needs, in decimal.
    pub fn k(&self, request: Read<Vec<u8>>) -> Result<Vec<u8>> {
        let circuit = self.circuit(&request.what)?;
        Ok(circuit.ir.k().to_string().into_bytes())
    }

    /// `/check`: which public inputs are skipped.
    pub fn check(&self, request: Read<Check>) -> Result<Vec<u8>> {
        let Read { what, room: _room } = request;
        let preimage = preimage_of(what.preimage)?;
        let circuit = match what.ir {
            Some(ir) => ir.0,
            None => self.folder.circuit(&preimage.key_location)?,
        };
        let skips = checked(&self.circuit(&circuit)?.ir, &preimage)?.into_iter();
        let skips: Vec<Option<u64>> = skips.map(|skip| skip.map(|count| count as u64)).collect();
        request::answer(&skips)
    }

    /// What `/prove` needs, in as little memory as it can wait in.
    pub fn prepare(&self, request: Read<Prove>) -> Result<ProofJob> {
        let Read { what, mut room } = request;
        let mut preimage = preimage_of(what.preimage)?;
        if let Some(binding_input) = what.binding_input {
            Arc::make_mut(&mut preimage).binding_input = binding_input;
        }
        let material = match what.material {
            Some(material) => Material::of_request(material, &self.keys),
            None => self.folder.material(&preimage.key_location, &self.keys)?,
        };
        room.shrink_to(preimage_bytes(&preimage) + material.bytes());
        Ok(ProofJob {
            preimage,
            material,
            _room: room,
        })
    }

    /// `/prove`.
    pub fn prove(&self, job: ProofJob) -> Result<Vec<u8>> {
        let ProofJob {
            preimage,
            material,
            _room,
        } = job;
        request::answer(&ProofVersioned::V2(self.proof(&preimage, material)?))
    }

    /// `/prove-tx`.
    pub fn prove_transaction(&self, request: Read<ProveTransaction>) -> Result<Vec<u8>> {
        let Read { what, room: _room } = request;
        let failure = Mutex::new(None);
        let provider = Provider {
            prover: self,
            request: &what,
            failure: &failure,
        };
        let cost_model = &INITIAL_PARAMETERS.cost_model.runtime_cost_model;
        let proven = now(what.transaction.prove(provider, cost_model));
        let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        match (proven, failure) {
            (_, Some(failure)) => Err(failure),
            (Ok(proven), None) => request::answer(&proven),
            (Err(_), None) => Err(Failure::Unsatisfied),
        }
    }

    /// Proves, and verifies the proof with the parameters of the ceremony.
    fn proof(&self, preimage: &ProofPreimage, material: Material<'_>) -> Result<Proof> {
        let circuit = self.circuit(&material.circuit)?;
        let ir = &circuit.ir;
        let reason = "the verifying key is of another format";
        let verifier = tagged_deserialize::<VerifierKey>(&mut &material.verifier[..]);
        let verifier = verifier.map_err(|_| Failure::Key { reason })?;
        // It says more clearly than a proof what is wrong, and sooner.
        checked(ir, preimage)?;
        let key = self.key(material.key, ir)?;
        let params = Given(self.params(key.k)?);
        let proved = now(ir.prove(OsRng, &params, key.prover, preimage));
        let (proof, statement, _) = proved.map_err(|error| Failure::of_error(error.as_ref()))?;
        let verified = verifier.verify(&PARAMS_VERIFIER, &proof, statement.into_iter());
        verified.map_err(|_| Failure::NotVerified)?;
        Ok(proof)
    }

    /// Parameters, opened in place and checked at their first use.
    fn params(&self, k: u8) -> Result<ParamsProver> {
        let slot = self
            .params
            .get(usize::from(k))
            .ok_or(Failure::NoParameters { k })?;
        let mut params = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(params) = &*params {
            return Ok(params.clone());
        }
        self.find_params(k)?;
        let _task = self.task(0)?;
        let opened = open_checked(&self.folder.params(k), k);
        let opened = opened.map_err(|error| Failure::of_error(&error))?;
        Ok(params.insert(opened).clone())
    }

    fn key(&self, source: KeySource<'_>, ir: &IrSource) -> Result<Key> {
        let read = |bytes: &[u8]| keys::read(bytes, ir, |k| self.find_params(k));
        match source {
            KeySource::Held(key) => Ok(key),
            KeySource::Bytes(id, bytes) => self.keys.get(&id, || {
                let _task = self.task(0)?;
                read(&bytes)
            }),
            KeySource::File(id, file) => self.keys.get(&id, || {
                let file_bytes = self.folder.file_bytes(file);
                let _task = self.task(file_bytes)?;
                let _lease = self.session.budget().lease(file_bytes, "a built-in key")?;
                read(&self.folder.read(file)?)
            }),
        }
    }

    fn circuit(&self, tagged: &[u8]) -> Result<Circuit> {
        let bytes = tagged.len() as u64;
        if bytes > self.circuit_bytes_max {
            let limit_bytes = self.circuit_bytes_max;
            return Err(Failure::CircuitTooLarge { limit_bytes });
        }
        let bytes = bytes * CIRCUIT_BYTES_PER_BYTE;
        let lease = match bytes <= SMALL_CIRCUIT_BYTES {
            true => None,
            false => {
                let _task = self.task(bytes)?;
                Some(self.session.budget().lease(bytes, "circuits of requests")?)
            }
        };
        let reason = "the circuit is of another format";
        let ir = tagged_deserialize(&mut &tagged[..]).map_err(|_| Failure::Key { reason })?;
        Ok(Circuit { ir, _lease: lease })
    }

    /// A task that needs so much beside its buffers, when there is room for it.
    fn task(&self, bytes: u64) -> Result<Task> {
        let minimum_bytes = move || Ok(TASK_BYTES.saturating_add(bytes));
        Ok(self.session.admit(Participation::TakesNoPart, minimum_bytes)?)
    }
}

fn open_checked(path: &Path, k: u8) -> io::Result<ParamsProver> {
    let params = open_params(path)?;
    let found = params.max_k();
    if found != u32::from(k) {
        let place = path.display();
        let error = format!("{place}: parameters for k = {found}, and its name says {k}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, error));
    }
    check_params(&params, &mut |_| ())?;
    Ok(ParamsProver(Arc::new(params)))
}

/// Parameters that are open already.
struct Given(ParamsProver);

impl ParamsProverProvider for Given {
    async fn get_params(&self, _k: u8) -> io::Result<ParamsProver> {
        Ok(self.0.clone())
    }
}

/// Proves for the ledger, which walks through a transaction.
#[derive(Clone, Copy)]
struct Provider<'p> {
    prover: &'p Prover,
    request: &'p ProveTransaction,
    /// The first failure: the ledger's own error has no place for it.
    failure: &'p Mutex<Option<Failure>>,
}

impl Provider<'_> {
    fn material(&self, location: &KeyLocation) -> Result<Material<'_>> {
        match self.request.materials.get(location) {
            Some(material) => Ok(Material::within_request(material)),
            None => self.prover.folder.material(location, &self.prover.keys),
        }
    }

    fn kept<T>(&self, result: Result<T>) -> anyhow::Result<T> {
        result.map_err(|failure| {
            let error = anyhow::Error::msg(failure.word());
            let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(failure);
            error
        })
    }
}

impl ProvingProvider for Provider<'_> {
    async fn check(&self, preimage: &ProofPreimage) -> anyhow::Result<Vec<Option<usize>>> {
        let material = self.material(&preimage.key_location);
        let circuit = material.and_then(|material| self.prover.circuit(&material.circuit));
        self.kept(circuit.and_then(|circuit| checked(&circuit.ir, preimage)))
    }

    async fn prove(self, preimage: &ProofPreimage, binding_input: Option<Fr>) -> anyhow::Result<Proof> {
        let mut preimage = preimage.clone();
        if let Some(binding_input) = binding_input {
            preimage.binding_input = binding_input;
        }
        let material = self.material(&preimage.key_location);
        self.kept(material.and_then(|material| self.prover.proof(&preimage, material)))
    }

    fn split(&mut self) -> Self {
        *self
    }
}

fn preimage_of(versioned: ProofPreimageVersioned) -> Result<Arc<ProofPreimage>> {
    match versioned {
        ProofPreimageVersioned::V2(preimage) => Ok(preimage),
        _ => Err(Failure::Body {
            expected: "a preimage of version 2",
        }),
    }
}

/// What the values of a preimage take.
fn preimage_bytes(preimage: &ProofPreimage) -> usize {
    let values = [
        &preimage.inputs,
        &preimage.private_transcript,
        &preimage.public_transcript_inputs,
        &preimage.public_transcript_outputs,
    ];
    let values: usize = values.iter().map(|values| values.len()).sum();
    size_of::<ProofPreimage>() + size_of::<Fr>() * values
}

/// The interpreter's own text is not handed on: it quotes the witness.
fn checked(ir: &IrSource, preimage: &ProofPreimage) -> Result<Vec<Option<usize>>> {
    preimage.check(ir).map_err(|_| Failure::Unsatisfied)
}
