//! Makes a snark of a small circuit with snark-verifier-sdk, and one of the circuit that verifies it.
//!
//! ```text
//! snark prove  application|aggregation K DIRECTORY
//! snark verify application|aggregation K DIRECTORY
//! ```
//!
//! `aggregation` reads the application's snark from the directory. Keys and snarks are the SDK's own, from
//! `gen_pk` and `gen_snark_shplonk`, which verifies what it makes. It draws blinding factors from the
//! system's entropy, so no two of its proofs are equal; `../compare.sh` gives it the same entropy each time.
//! Parameters are halo2-base's: read from `$PARAMS_DIR`, and made there if need be.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use halo2_base::gates::circuit::builder::BaseCircuitBuilder;
use halo2_base::gates::circuit::CircuitBuilderStage;
use halo2_base::gates::{GateInstructions, RangeInstructions};
use halo2_base::halo2_proofs::halo2curves::bn256::{Bn256, Fr, G1Affine};
use halo2_base::halo2_proofs::plonk::{verify_proof, Circuit, ProvingKey, VerifyingKey};
use halo2_base::halo2_proofs::poly::commitment::ParamsProver;
use halo2_base::halo2_proofs::poly::kzg::commitment::ParamsKZG;
use halo2_base::halo2_proofs::poly::kzg::multiopen::VerifierSHPLONK;
use halo2_base::halo2_proofs::poly::kzg::strategy::AccumulatorStrategy;
use halo2_base::halo2_proofs::poly::VerificationStrategy;
use halo2_base::halo2_proofs::SerdeFormat;
use halo2_base::utils::fs::gen_srs;
use snark_verifier_sdk::halo2::aggregation::{
    AggregationCircuit, AggregationConfigParams, VerifierUniversality,
};
use snark_verifier_sdk::halo2::{gen_snark_shplonk, read_snark, PoseidonTranscript, POSEIDON_SPEC};
use snark_verifier_sdk::{gen_pk, CircuitExt, NativeLoader, Snark, SHPLONK};

#[path = "../../common/measure.rs"]
mod measure;

use measure::phase;

/// Doesn't compile over stock: a patch that silently doesn't apply is the trap of `[patch.crates-io]`.
#[cfg(not(feature = "unmodified"))]
const _: () = halo2_base::halo2_proofs::spillproof::IS_HERE;

/// Rows that are left for blinding factors.
const BLINDED_ROWS: usize = 10;
/// Terms of the application's sum.
const TERMS: u64 = 1000;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Where a command reads and writes.
struct Files<'a> {
    directory: &'a Path,
    circuit: &'a str,
}

impl Files<'_> {
    fn named(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{}-{name}", self.circuit))
    }
}

fn main() -> Result<()> {
    tracing_subscriber::fmt().init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [command, circuit, k, directory] = arguments.as_slice() else {
        return Err("usage: snark prove|verify application|aggregation K DIRECTORY".into());
    };
    let (k, directory) = (k.parse()?, Path::new(directory));
    let files = Files { directory, circuit };
    #[cfg(not(feature = "unmodified"))]
    println!("spillproof session: {}", halo2_base::halo2_proofs::spillproof::active());
    match (command.as_str(), circuit.as_str()) {
        ("prove", "application") => prove_application(k, &files),
        ("prove", "aggregation") => prove_aggregation(k, &files),
        ("verify", "application") => verify::<BaseCircuitBuilder<Fr>>(k, &files),
        ("verify", "aggregation") => verify::<AggregationCircuit>(k, &files),
        _ => Err(format!("there is no command `{command} {circuit}`").into()),
    }
}

/// A sum of squares is what it is said to be, and its terms are small.
fn application(builder: &mut BaseCircuitBuilder<Fr>, seed: u64) {
    let range = builder.range_chip();
    let context = builder.main(0);
    let terms = context.assign_witnesses((0..TERMS).map(|i| Fr::from(seed + i)));
    for term in &terms {
        range.range_check(context, *term, 16);
    }
    let sum = range
        .gate()
        .inner_product(context, terms.clone(), terms.iter().map(|term| (*term).into()));
    builder.assigned_instances[0].push(sum);
}

fn prove_application(k: u32, files: &Files<'_>) -> Result<()> {
    let params = phase("parameters", || gen_srs(k));
    let mut builder = BaseCircuitBuilder::from_stage(CircuitBuilderStage::Keygen)
        .use_k(k as usize)
        .use_lookup_bits(k as usize - 1)
        .use_instance_columns(1);
    application(&mut builder, 1);
    let shape = builder.calculate_params(Some(BLINDED_ROWS));
    println!("{shape:?}");
    let pk = phase("keys", || gen_pk(&params, &builder, None));
    let break_points = builder.break_points();
    let circuit = || {
        let mut builder = BaseCircuitBuilder::prover(shape.clone(), break_points.clone());
        application(&mut builder, 2);
        builder
    };
    keep(&params, &pk, circuit, files)
}

fn prove_aggregation(k: u32, files: &Files<'_>) -> Result<()> {
    let params = phase("parameters", || gen_srs(k));
    let snark = read_snark(files.directory.join("application-snark.bin"))?;
    let shape = AggregationConfigParams {
        degree: k,
        lookup_bits: k as usize - 1,
        ..Default::default()
    };
    let circuit = |stage, shape| {
        let snarks = [snark.clone()];
        AggregationCircuit::new::<SHPLONK>(stage, shape, &params, snarks, VerifierUniversality::Full)
    };
    let mut for_keys = phase("circuit, for its keys", || {
        circuit(CircuitBuilderStage::Keygen, shape)
    });
    let shape = for_keys.calculate_params(Some(BLINDED_ROWS));
    println!("{shape:?}");
    let pk = phase("keys", || gen_pk(&params, &for_keys, None));
    let break_points = for_keys.break_points();
    drop(for_keys);
    let circuit = || circuit(CircuitBuilderStage::Prover, shape).use_break_points(break_points.clone());
    keep(&params, &pk, circuit, files)
}

/// Makes the snark; writes it, and the keys.
fn keep<C: CircuitExt<Fr>>(
    params: &ParamsKZG<Bn256>,
    pk: &ProvingKey<G1Affine>,
    circuit: impl FnOnce() -> C,
    files: &Files<'_>,
) -> Result<()>
where
    C::Params: serde::Serialize,
{
    fs::create_dir_all(files.directory)?;
    let built = phase("circuit, with its witness", circuit);
    let shape = built.params();
    let snark = phase("snark", || gen_snark_shplonk(params, pk, built, None::<&str>));
    bincode::serialize_into(File::create(files.named("snark.bin"))?, &snark)?;
    fs::write(files.named("shape.json"), serde_json::to_vec(&shape)?)?;
    fs::write(files.named("vk.bin"), pk.get_vk().to_bytes(SerdeFormat::RawBytes))?;
    let mut file = BufWriter::new(File::create(files.named("pk.bin"))?);
    pk.write(&mut file, SerdeFormat::RawBytes)?;
    file.flush()?;
    println!("proved and verified: a proof of {} bytes", snark.proof.len());
    Ok(())
}

fn accept(params: &ParamsKZG<Bn256>, vk: &VerifyingKey<G1Affine>, snark: &Snark) -> Result<()> {
    let columns: Vec<&[Fr]> = snark.instances.iter().map(Vec::as_slice).collect();
    let mut transcript =
        PoseidonTranscript::<NativeLoader, &[u8]>::from_spec(snark.proof(), POSEIDON_SPEC.clone());
    let strategy = verify_proof::<_, VerifierSHPLONK<'_, Bn256>, _, _, _>(
        params.verifier_params(),
        vk,
        AccumulatorStrategy::new(params.verifier_params()),
        &[&columns],
        &mut transcript,
    )
    .map_err(|error| format!("{error:?}"))?;
    match VerificationStrategy::<_, VerifierSHPLONK<'_, Bn256>>::finalize(strategy) {
        true => Ok(()),
        false => Err("the snark is rejected".into()),
    }
}

/// From files alone.
fn verify<C: Circuit<Fr>>(k: u32, files: &Files<'_>) -> Result<()>
where
    C::Params: serde::de::DeserializeOwned,
{
    let shape: C::Params = serde_json::from_slice(&fs::read(files.named("shape.json"))?)?;
    let mut file = BufReader::new(File::open(files.named("vk.bin"))?);
    let vk: VerifyingKey<G1Affine> = VerifyingKey::read::<_, C>(&mut file, SerdeFormat::RawBytes, shape)?;
    accept(&gen_srs(k), &vk, &read_snark(files.named("snark.bin"))?)?;
    println!("the snark in {} is accepted", files.directory.display());
    Ok(())
}
