//! Keys and proofs of circuits that midnight-zk-stdlib publishes, by the library's own functions, from file
//! to file.
//!
//! ```text
//! midnight params K PARAMS
//! midnight keys   CIRCUIT PARAMS VK PK
//! midnight prove  CIRCUIT PARAMS PK PROOF
//! midnight verify CIRCUIT PARAMS VK PROOF
//! ```
//!
//! Circuits: `sha` (13 bits of rows, or more), `zswap` (14), `credential` (17). They have as many rows as there
//! are parameters. All random values come from seeded generators, so that a proof is a function of circuit,
//! parameters and number of threads (`RAYON_NUM_THREADS`), but for the order of a lookup's left-over values.
//!
//! Nothing here is written for spillproof, except for the two places that name it. To prove within a budget:
//!
//! ```text
//! SPILLPROOF_MEMORY=256MiB SPILLPROOF_DIR=/path/on/nvme midnight prove credential params pk proof
//! ```

use std::error::Error;
use std::fmt::{Debug, Display};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};

use blake2b_simd::State;
use midnight_curves::Bls12;
use midnight_proofs::poly::kzg::params::ParamsKZG;
use midnight_proofs::utils::SerdeFormat;
use midnight_zk_stdlib::{MidnightPK, MidnightVK, Relation};
use rand_chacha::rand_core::SeedableRng as _;
use rand_chacha::ChaCha20Rng;

#[path = "../../common/measure.rs"]
mod measure;

/// The library's circuits.
#[allow(unused, unexpected_cfgs, dead_code)]
mod circuits {
    include!(concat!(env!("OUT_DIR"), "/circuits.rs"));
}

use circuits::credential::FullCredential;
use circuits::sha::ShaPreImageCircuit;
use circuits::zswap::ZSwapOutputCircuit;
use measure::phase;

/// Doesn't compile over stock: a patch that silently doesn't apply is the trap of `[patch.crates-io]`.
#[cfg(not(feature = "unmodified"))]
const _: () = midnight_proofs::spillproof::IS_HERE;

const PARAMS_SEED: u64 = 1;
const PROOF_SEED: u64 = 2;
/// As Midnight's proof server has its keys and parameters.
const FORMAT: SerdeFormat = SerdeFormat::RawBytesUnchecked;

type Result<T> = std::result::Result<T, Box<dyn Error>>;
type Params = ParamsKZG<Bls12>;

/// A circuit with something to prove.
trait Sample: Relation<Instance: Clone, Error: Debug> + Default {
    fn sample() -> Sampled<Self>;
}

/// A statement of a circuit.
struct Sampled<R: Relation> {
    instance: R::Instance,
    witness: R::Witness,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    #[cfg(not(feature = "unmodified"))]
    println!("spillproof session: {}", midnight_proofs::spillproof::active());
    match arguments[..] {
        ["params", k, params] => make_params(k.parse()?, params),
        [command, "sha", ref files @ ..] => run::<ShaPreImageCircuit>(command, files),
        [command, "zswap", ref files @ ..] => run::<ZSwapOutputCircuit>(command, files),
        [command, "credential", ref files @ ..] => run::<FullCredential>(command, files),
        _ => usage(),
    }
}

fn usage() -> Result<()> {
    Err("usage: midnight params K PARAMS\n       midnight keys|prove|verify sha|zswap|credential PARAMS KEY FILE".into())
}

fn run<R: Sample>(command: &str, files: &[&str]) -> Result<()> {
    match (command, files) {
        ("keys", [params, vk, pk]) => keys::<R>(params, vk, pk),
        ("prove", [params, pk, proof]) => prove::<R>(params, pk, proof),
        ("verify", [params, vk, proof]) => verify::<R>(params, vk, proof),
        _ => usage(),
    }
}

/// Insecure: the secret is known.
fn make_params(k: u32, file: &str) -> Result<()> {
    let rng = ChaCha20Rng::seed_from_u64(PARAMS_SEED);
    let params = phase("parameters", || Params::unsafe_setup(k, rng));
    let mut writer = BufWriter::new(File::create(file)?);
    phase("writing them", || params.write_custom(&mut writer, FORMAT))?;
    Ok(writer.flush()?)
}

fn read_params(file: &str) -> Result<Params> {
    let mut reader = BufReader::new(File::open(file)?);
    phase("reading parameters", || Params::read_custom(&mut reader, FORMAT)).map_err(named(file))
}

fn keys<R: Sample>(params: &str, vk_file: &str, pk_file: &str) -> Result<()> {
    let params = read_params(params)?;
    let relation = R::default();
    let vk = phase("verifying key", || {
        midnight_zk_stdlib::setup_vk(&params, &relation)
    });
    let pk = phase("proving key", || midnight_zk_stdlib::setup_pk(&relation, &vk));
    phase("writing them", || {
        let mut writer = BufWriter::new(File::create(vk_file)?);
        vk.write(&mut writer, FORMAT)?;
        writer.flush()?;
        let mut writer = BufWriter::new(File::create(pk_file)?);
        pk.write(&mut writer, FORMAT)?;
        writer.flush()
    })?;
    Ok(())
}

fn prove<R: Sample>(params: &str, pk: &str, file: &str) -> Result<()> {
    let params = read_params(params)?;
    let mut reader = BufReader::new(File::open(pk)?);
    let pk = phase("reading the key", || MidnightPK::<R>::read(&mut reader, FORMAT)).map_err(named(pk))?;
    let Sampled { instance, witness } = phase("statement", R::sample);
    let rng = ChaCha20Rng::seed_from_u64(PROOF_SEED);
    let proof = phase("proof", || {
        midnight_zk_stdlib::prove::<R, State>(&params, &pk, &R::default(), &instance, witness, rng)
    });
    let proof = proof.map_err(|error| format!("{error:?}"))?;
    std::fs::write(file, &proof)?;
    let digest = blake2b_simd::Params::new().hash_length(16).hash(&proof);
    println!("proved: {} bytes, BLAKE2b-128 {}", proof.len(), digest.to_hex());
    Ok(())
}

fn verify<R: Sample>(params: &str, vk: &str, file: &str) -> Result<()> {
    let params = read_params(params)?.verifier_params();
    let vk = MidnightVK::read(&mut BufReader::new(File::open(vk)?), FORMAT).map_err(named(vk))?;
    let Sampled { instance, .. } = R::sample();
    let proof = std::fs::read(file).map_err(named(file))?;
    let verified = phase("verification", || {
        midnight_zk_stdlib::verify::<R, State>(&params, &vk, &instance, None, &proof)
    });
    verified.map_err(|error| format!("{file}: {error:?}"))?;
    println!("verified");
    Ok(())
}

/// An error with the file that it is about.
fn named<E: Display>(file: &str) -> impl Fn(E) -> Box<dyn Error> + '_ {
    move |error| format!("{file}: {error}").into()
}
