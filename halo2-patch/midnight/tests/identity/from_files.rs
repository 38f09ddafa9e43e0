//! Keys and witnesses in files, over one of the drop-ins.

use std::io;
use std::path::Path;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;

use super::curves::Fq;
use super::midnight::plonk::Error;
use super::midnight::spillproof::{
    create_proof_from_witness, open_proving_key, save_described_key, save_witness, SavedError, SavedWitness,
    SentWitness,
};
use super::midnight::transcript::Transcript as _;
use super::prove::{Params, ProvingKey, Transcript};
use super::random::Random;
use crate::shape::Shape;
use crate::Case;

pub fn save_key(pk: &ProvingKey, circuit: &Random, path: &Path) -> io::Result<[u8; 32]> {
    save_described_key(
        pk,
        circuit,
        #[cfg(feature = "committed-instances")]
        Shape::current().committed,
        path,
    )
}

pub fn open_key(path: &Path) -> io::Result<ProvingKey> {
    open_proving_key::<Random>(
        path,
        #[cfg(feature = "circuit-params")]
        (),
    )
}

pub fn save(pk: &ProvingKey, circuit: &Random, instances: &[Vec<Fq>], path: &Path) -> io::Result<[u8; 32]> {
    let columns: Vec<&[Fq]> = instances.iter().map(Vec::as_slice).collect();
    save_witness(pk.get_vk(), circuit, &columns, path)
}

/// The proof from a witness.
pub fn prove(params: &Params, pk: &ProvingKey, witness: &SavedWitness, case: Case) -> Result<Vec<u8>, Error> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(case.threads).build();
    pool.unwrap().install(|| {
        let mut transcript = Transcript::init();
        let rng = ChaCha20Rng::seed_from_u64(case.seed);
        create_proof_from_witness(
            params,
            pk,
            #[cfg(feature = "committed-instances")]
            Shape::current().committed,
            witness,
            rng,
            &mut transcript,
        )?;
        Ok(transcript.finalize())
    })
}

/// The proof from a witness in a file.
pub fn prove_file(params: &Params, pk: &ProvingKey, path: &Path, case: Case) -> Result<Vec<u8>, Error> {
    prove(params, pk, &SavedWitness::open(path)?, case)
}

/// The witness of a file, as it is sent.
pub fn sent(pk: &ProvingKey, bytes: &[u8]) -> io::Result<SavedWitness> {
    use spillproof_engine::budget::Budget;
    let ledger = Budget::new(SentWitness::STREAM_BYTES);
    assert!(bytes.len() as u64 <= SentWitness::bytes_max(pk.get_vk()));
    SentWitness::read(Path::new("sent"), pk.get_vk(), ledger, &mut &bytes[..])?.open()
}

pub fn saved(error: &io::Error) -> &SavedError {
    error.get_ref().and_then(|error| error.downcast_ref()).unwrap()
}

/// What a proof is refused for.
pub fn of_proof(error: Error) -> io::Error {
    match error {
        Error::Transcript(error) => error,
        other => panic!("{other}"),
    }
}
