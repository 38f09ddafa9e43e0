//! Proves circuits of halo2-ecc's own chips, and verifies proofs from files.
//!
//! ```text
//! ecc prove  sum|pairing|ecdsa K DIRECTORY
//! ecc verify sum|pairing|ecdsa K DIRECTORY
//! ```
//!
//! `prove` leaves the circuit's shape, its keys and the proof in the directory. Blinding factors come from a
//! seeded rng (that of halo2-base's testing utilities); the random points that halo2-ecc starts sums from
//! come from the system's entropy, so that no two proofs are equal, unless that is, too (`../compare.sh`).
//! Parameters are halo2-base's: read from `$PARAMS_DIR`, and made there if need be.
//!
//! Nothing here is written for spillproof, but for the two places that name it. Run it within a budget:
//!
//! ```text
//! SPILLPROOF_MEMORY=256MiB SPILLPROOF_DIR=/path/on/nvme cargo run --release -- prove pairing 15 /tmp/pairing
//! ```

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use halo2_base::gates::circuit::builder::BaseCircuitBuilder;
use halo2_base::gates::circuit::{BaseCircuitParams, CircuitBuilderStage};
use halo2_base::halo2_proofs::halo2curves::bn256::{Fr, G1Affine};
use halo2_base::halo2_proofs::plonk::{keygen_pk, keygen_vk, VerifyingKey};
use halo2_base::halo2_proofs::SerdeFormat;
use halo2_base::utils::fs::gen_srs;
use halo2_base::utils::testing::{check_proof, gen_proof};

mod circuits;
mod nothing;
#[path = "../../common/measure.rs"]
mod measure;

use circuits::Circuit;
use measure::phase;

/// Doesn't compile over stock: a patch that silently doesn't apply is the trap of `[patch.crates-io]`.
#[cfg(not(feature = "unmodified"))]
const _: () = halo2_base::halo2_proofs::spillproof::IS_HERE;

/// Rows that halo2-base leaves for blinding factors.
const BLINDED_ROWS: usize = 9;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    tracing_subscriber::fmt().init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [command, circuit, k, directory] = arguments.as_slice() else {
        return Err("usage: ecc prove|verify sum|pairing|ecdsa K DIRECTORY".into());
    };
    let (circuit, k, directory) = (Circuit::named(circuit)?, k.parse()?, Path::new(directory));
    match command.as_str() {
        "prove" => prove(circuit, k, directory),
        "verify" => verify(k, directory),
        other => Err(format!("there is no command `{other}`").into()),
    }
}

fn prove(circuit: Circuit, k: u32, directory: &Path) -> Result<()> {
    #[cfg(not(feature = "unmodified"))]
    println!("spillproof session: {}", halo2_base::halo2_proofs::spillproof::active());
    fs::create_dir_all(directory)?;
    let params = phase("parameters", || gen_srs(k));

    let mut builder = BaseCircuitBuilder::from_stage(CircuitBuilderStage::Keygen)
        .use_k(k as usize)
        .use_lookup_bits(k as usize - 1);
    phase("circuit, for its keys", || circuit.build(&mut builder, 1));
    let shape = builder.calculate_params(Some(BLINDED_ROWS));
    println!("{shape:?}");
    // halo2-base keeps where each of its cells went, from the first synthesis on: not a matter of keys.
    phase("synthesis into nothing", || nothing::synthesize(&builder)).map_err(|error| format!("{error:?}"))?;
    let pk = phase("keys", || {
        let vk = keygen_vk(&params, &builder)?;
        keygen_pk(&params, vk, &builder)
    })
    .map_err(|error| format!("{error:?}"))?;
    let break_points = builder.break_points();
    drop(builder);

    let mut builder = BaseCircuitBuilder::prover(shape.clone(), break_points);
    phase("circuit, with its witness", || circuit.build(&mut builder, 2));
    let proof = phase("proof", || gen_proof(&params, &pk, builder));

    fs::write(directory.join("shape.json"), serde_json::to_vec(&shape)?)?;
    fs::write(directory.join("proof.bin"), &proof)?;
    fs::write(
        directory.join("vk.bin"),
        pk.get_vk().to_bytes(SerdeFormat::RawBytes),
    )?;
    let mut file = BufWriter::new(File::create(directory.join("pk.bin"))?);
    pk.write(&mut file, SerdeFormat::RawBytes)?;
    file.flush()?;
    check_proof(&params, pk.get_vk(), &proof, true);
    println!("proved and verified: k = {k}, a proof of {} bytes", proof.len());
    Ok(())
}

/// From files alone.
fn verify(k: u32, directory: &Path) -> Result<()> {
    let shape: BaseCircuitParams = serde_json::from_slice(&fs::read(directory.join("shape.json"))?)?;
    let mut file = BufReader::new(File::open(directory.join("vk.bin"))?);
    let vk: VerifyingKey<G1Affine> =
        VerifyingKey::read::<_, BaseCircuitBuilder<Fr>>(&mut file, SerdeFormat::RawBytes, shape)?;
    let proof = fs::read(directory.join("proof.bin"))?;
    check_proof(&gen_srs(k), &vk, &proof, true);
    println!("the proof in {} is accepted", directory.display());
    Ok(())
}
