//! Mithril's certificate circuit: keys, a proof and its verification by mithril-stm's own environment for
//! benches.
//!
//! ```text
//! mithril prove  DEGREE QUORUM PROOF
//! mithril verify DEGREE QUORUM PROOF
//! ```
//!
//! The circuit has 2^DEGREE rows: 13 are enough for a quorum of 3, 16 for 32; the benches of the library say
//! which it takes in production. Parameters are made once, by the library, and kept in its own folder; all
//! random values are seeded.
//!
//! Nothing here is written for spillproof, except for the two places that name it. To prove within a budget:
//!
//! ```text
//! SPILLPROOF_MEMORY=64MiB SPILLPROOF_DIR=/path/on/nvme mithril prove 16 32 proof
//! ```

use std::error::Error;

use mithril_stm::circuits::halo2::bench::helpers::BenchEnv;

#[path = "../../common/measure.rs"]
mod measure;

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
    let [command @ ("prove" | "verify"), degree, quorum, file] = arguments[..] else {
        return Err("usage: mithril prove|verify DEGREE QUORUM PROOF".into());
    };
    let (degree, quorum): (u32, u32) = (degree.parse()?, quorum.parse()?);
    #[cfg(not(feature = "unmodified"))]
    println!("spillproof session: {}", midnight_proofs::spillproof::active());

    let environment = phase("parameters and keys", || {
        BenchEnv::new(degree, quorum, LOTTERIES * quorum)
    })?;
    let witness = phase("statement", || environment.build_witness())?;
    if command == "prove" {
        let proof = phase("proof", || environment.prove(&witness))?;
        std::fs::write(file, &proof)?;
        let digest = blake2b_simd::Params::new().hash_length(16).hash(&proof);
        println!("proved: {} bytes, BLAKE2b-128 {}", proof.len(), digest.to_hex());
    }
    let proof = std::fs::read(file)?;
    phase("verification", || environment.verify(&proof, &witness))?;
    println!("verified");
    Ok(())
}
