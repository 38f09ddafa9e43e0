//! The circuit over the drop-in for midnight-proofs.

pub use midnight_proofs as halo2;
pub use spillproof_circuits::midnight::dropin::dialect;

macro_rules! parameters {
    () => {};
}
#[path = "circuit.rs"]
mod circuit;

use circuit::{Extreme, set_shape};
use halo2::plonk::{Circuit, ConstraintSystem, create_proof, keygen_pk, keygen_vk_with_k};
use halo2::transcript::{CircuitTranscript, Transcript as _};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_circuits::midnight::dropin::proof::{Hash, Scheme, insecure_params};
use spillproof_engine::plan::{Plan, Rates};

use super::{ENOUGH_BYTES, Shape, THREADS};

/// The plan of keys and a proof.
pub fn plan(shape: Shape) -> Plan {
    set_shape(shape);
    let mut cs = ConstraintSystem::default();
    Extreme::configure(&mut cs);
    let shape = halo2::spillproof::Shape::new(&cs, shape.k);
    let plan = shape.plan(ENOUGH_BYTES, THREADS, &Rates::default());
    plan.expect("a plan")
}

/// Parameters, keys and a proof in the current session; a refusal of the keys.
pub fn make(shape: Shape) -> Result<(), String> {
    set_shape(shape);
    let params = insecure_params(shape.k, 1);
    let key = keygen_vk_with_k::<_, Scheme, _>(&params, &Extreme::new(), shape.k)
        .map_err(|error| error.to_string())?;
    let key = keygen_pk(key, &Extreme::new()).expect("a key");
    let instances = Extreme::instances();
    let instances: Vec<_> = instances.iter().map(Vec::as_slice).collect();
    let mut transcript = CircuitTranscript::<Hash>::init();
    create_proof(
        &params,
        &key,
        &[Extreme::new()],
        0,
        &[&instances],
        &mut transcript,
        ChaCha20Rng::seed_from_u64(2),
    )
    .expect("a proof");
    Ok(())
}
