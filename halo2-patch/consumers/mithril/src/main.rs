//! Mithril's certificate circuit: keys, a proof and its verification by mithril-stm's own environment for
//! benches.
//!
//! ```text
//! mithril prove  DEGREE QUORUM PROOF
//! mithril verify DEGREE QUORUM PROOF
//! mithril key    DEGREE QUORUM KEY
//! mithril check  KEY PARAMETERS PROOF
//! ```
//!
//! The circuit has 2^DEGREE rows: 13 are enough for a quorum of 3, 16 for 32, 22 for the 1944 of production.
//! Parameters are made once, by the library, and kept in its own folder; all random values are seeded.
//! `verify` makes the keys anew, so it needs what `prove` needs; `check` takes the verifying key that `key`
//! wrote, and needs next to nothing.
//!
//! Nothing here is written for spillproof, except for the two places that name it. To prove within a budget:
//!
//! ```text
//! SPILLPROOF_MEMORY=64MiB SPILLPROOF_DIR=/path/on/nvme mithril prove 16 32 proof
//! ```

use std::error::Error;
use std::fs::File;
use std::io::{Seek, SeekFrom};

use midnight_circuits::hash::poseidon::PoseidonState;
use midnight_curves::Fq as Scalar;
use midnight_proofs::poly::kzg::params::ParamsVerifierKZG;
use midnight_proofs::utils::SerdeFormat;
use midnight_zk_stdlib::{batch_verify, MidnightVK};
use mithril_stm::circuits::halo2::bench::helpers::BenchEnv;

#[path = "../../common/measure.rs"]
mod measure;
mod statement;

use measure::phase;

/// Doesn't compile over stock: a patch that silently doesn't apply is the trap of `[patch.crates-io]`.
#[cfg(not(feature = "unmodified"))]
const _: () = midnight_proofs::spillproof::IS_HERE;

/// Lottery indices for each signature that is needed.
const LOTTERIES: u32 = 10;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    #[cfg(not(feature = "unmodified"))]
    println!("spillproof session: {}", midnight_proofs::spillproof::active());
    match arguments[..] {
        ["prove", degree, quorum, proof] => {
            let environment = environment(degree, quorum)?;
            let witness = phase("statement", || environment.build_witness())?;
            let bytes = phase("proof", || environment.prove(&witness))?;
            std::fs::write(proof, &bytes)?;
            let digest = blake2b_simd::Params::new().hash_length(16).hash(&bytes);
            println!("proved: {} bytes, BLAKE2b-128 {}", bytes.len(), digest.to_hex());
            phase("verification", || environment.verify(&bytes, &witness))?;
        }
        ["verify", degree, quorum, proof] => {
            let environment = environment(degree, quorum)?;
            let witness = phase("statement", || environment.build_witness())?;
            let bytes = std::fs::read(proof)?;
            phase("verification", || environment.verify(&bytes, &witness))?;
        }
        ["key", degree, quorum, key] => {
            let environment = environment(degree, quorum)?;
            // The environment does not give its own keys away.
            let (verifying, _) = phase("keys", || environment.setup_keys_for_bench());
            let mut bytes = Vec::new();
            verifying.write(&mut bytes, SerdeFormat::RawBytes)?;
            std::fs::write(key, bytes)?;
            return Ok(());
        }
        ["check", key, parameters, proof] => {
            let statement = phase("statement", statement::public_inputs)?;
            phase("verification", || check(key, parameters, proof, statement))?;
        }
        _ => {
            return Err(
                "usage: mithril prove|verify|key DEGREE QUORUM FILE | check KEY PARAMETERS PROOF".into(),
            )
        }
    }
    println!("verified");
    Ok(())
}

fn environment(degree: &str, quorum: &str) -> Result<BenchEnv> {
    let (degree, quorum): (u32, u32) = (degree.parse()?, quorum.parse()?);
    Ok(phase("parameters and keys", || {
        BenchEnv::new(degree, quorum, LOTTERIES * quorum)
    })?)
}

/// Verifies by the verifying key and the last point of the parameters alone.
fn check(key: &str, parameters: &str, proof: &str, statement: Vec<Scalar>) -> Result<()> {
    let key = MidnightVK::read(&mut File::open(key)?, SerdeFormat::RawBytes)?;
    let mut parameters = File::open(parameters)?;
    // s G2, two coordinates of 96 bytes, ends a file of parameters.
    parameters.seek(SeekFrom::End(-192))?;
    let parameters = ParamsVerifierKZG::read(&mut parameters, SerdeFormat::RawBytes)?;
    let proof = std::fs::read(proof)?;
    Ok(batch_verify::<PoseidonState<Scalar>>(
        &parameters,
        &[key],
        &[statement],
        &[proof],
    )?)
}
