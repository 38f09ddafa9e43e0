//! Proves a bundle of Orchard actions and verifies it, with orchard's own types alone.
//!
//! ```text
//! actions ACTIONS [FILE]
//! ```
//!
//! Each action has one output and a dummy spend, and is one circuit of the bundle's proof. All random values
//! come from seeded generators, so that the proof is a function of the number of actions. Its bytes go to the
//! file, if one is named.
//!
//! Nothing here is written for spillproof, except for the two places that name it. To prove within a budget:
//!
//! ```text
//! SPILLPROOF_MEMORY=64MiB SPILLPROOF_DIR=/path/on/nvme cargo run --release -- 2
//! ```

use std::error::Error;
use std::time::Instant;

use orchard::builder::{Builder, BundleType, InProgress, Unauthorized, Unproven};
use orchard::bundle::{BundleVersion, Flags};
use orchard::circuit::ProvingKey;
use orchard::keys::{FullViewingKey, Scope, SpendingKey};
use orchard::value::NoteValue;
use orchard::{Anchor, Bundle};
use rand::rngs::ChaCha20Rng;
use rand::SeedableRng;

#[path = "../../common/measure.rs"]
mod measure;

use measure::phase;

/// Doesn't compile over stock: a patch that silently doesn't apply is the trap of `[patch.crates-io]`.
#[cfg(not(feature = "unmodified"))]
const _: () = halo2_proofs::spillproof::IS_HERE;

const VERSION: BundleVersion = BundleVersion::ironwood_v3();
const SPENDING_KEY: [u8; 32] = [7; 32];
const MEMO: [u8; 512] = [0; 512];
/// Stands for the digest of a transaction, which signatures are over.
const SIGHASH: [u8; 32] = [9; 32];
const BUNDLE_SEED: u64 = 1;
const PROOF_SEED: u64 = 2;
const SIGNATURES_SEED: u64 = 3;

type Result<T> = std::result::Result<T, Box<dyn Error>>;
type UnprovenBundle = Bundle<InProgress<Unproven, Unauthorized>, i64>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (actions, file) = match arguments.as_slice() {
        [actions] => (actions.parse()?, None),
        [actions, file] => (actions.parse()?, Some(file)),
        _ => return Err("usage: actions ACTIONS [FILE]".into()),
    };
    #[cfg(not(feature = "unmodified"))]
    println!("spillproof session: {}", halo2_proofs::spillproof::active());

    let pk = phase("keys", || ProvingKey::build(VERSION.circuit_version()));
    let bundle = phase("bundle", || outputs(actions))?;
    let (proved, seconds) = phase("proof", || {
        let start = Instant::now();
        let proved = bundle.create_proof(&pk, ChaCha20Rng::seed_from_u64(PROOF_SEED));
        (proved, start.elapsed().as_secs_f64())
    });
    let proved = proved?.apply_signatures(ChaCha20Rng::seed_from_u64(SIGNATURES_SEED), SIGHASH, &[])?;
    let vk = pk.verifying_key();
    phase("verification", || proved.verify_proof(&vk)).map_err(|error| format!("{error:?}"))?;

    let proof: &[u8] = proved.authorization().proof().as_ref();
    if let Some(file) = file {
        std::fs::write(file, proof)?;
    }
    let digest = blake2b_simd::Params::new().hash_length(32).hash(proof);
    println!(
        "proved in {seconds:.3} s: {actions} actions, {} bytes, BLAKE2b-256 {}",
        proof.len(),
        digest.to_hex()
    );
    Ok(())
}

/// A bundle of outputs to one address, each with a dummy spend beside it.
fn outputs(actions: usize) -> Result<UnprovenBundle> {
    let key: Option<SpendingKey> = SpendingKey::from_bytes(SPENDING_KEY).into();
    let key = key.ok_or("the bytes are no spending key")?;
    let recipient = FullViewingKey::from(&key).address_at(0u32, Scope::External);
    let anchor = Anchor::empty_tree();
    let mut builder = Builder::new(BundleType::UNPADDED, VERSION, Flags::SPENDS_DISABLED, anchor)?;
    for value in 1..=actions as u64 {
        builder.add_output(None, recipient, NoteValue::from_raw(value), MEMO)?;
    }
    let built = builder.build(ChaCha20Rng::seed_from_u64(BUNDLE_SEED))?;
    let (bundle, _) = built.ok_or("a bundle needs at least one action")?;
    Ok(bundle)
}
