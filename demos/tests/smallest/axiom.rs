//! The circuit over the drop-in for halo2-axiom.

pub use halo2_axiom as halo2;
pub use spillproof_circuits::axiom::dropin::dialect;

macro_rules! parameters {
    () => {
        type Params = ();
    };
}
#[path = "circuit.rs"]
mod circuit;

use circuit::{Extreme, set_shape};
use halo2::halo2curves::bn256::{Bn256, G1Affine};
use halo2::plonk::{Circuit, ConstraintSystem, keygen_pk, keygen_vk};
use halo2::poly::kzg::commitment::{KZGCommitmentScheme, ParamsKZG};
use halo2::poly::kzg::multiopen::ProverSHPLONK;
use halo2::spillproof::{OpeningScheme, create_proof_half};
use halo2::transcript::{Blake2bWrite, Challenge255, TranscriptWriterBuffer};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_engine::plan::{Plan, Rates};

use super::{ENOUGH_BYTES, Shape, THREADS};

/// The plan of keys and a proof.
pub fn plan(shape: Shape) -> Plan {
    set_shape(shape);
    let mut cs = ConstraintSystem::default();
    Extreme::configure(&mut cs);
    let shape = halo2::spillproof::shape(&cs, shape.k, 1, OpeningScheme::Shplonk);
    let plan = shape.plan(ENOUGH_BYTES, THREADS, &Rates::default());
    plan.expect("a plan")
}

/// Parameters, keys and a proof in the current session; a refusal of the keys.
pub fn make(shape: Shape) -> Result<(), String> {
    set_shape(shape);
    let params = ParamsKZG::<Bn256>::setup(shape.k, ChaCha20Rng::seed_from_u64(1));
    let key = keygen_vk(&params, &Extreme::new()).map_err(|error| error.to_string())?;
    let key = keygen_pk(&params, key, &Extreme::new()).expect("a key");
    let instances = Extreme::instances();
    let instances: Vec<_> = instances.iter().map(Vec::as_slice).collect();
    let mut transcript = Blake2bWrite::<Vec<u8>, G1Affine, Challenge255<_>>::init(Vec::new());
    create_proof_half::<true, KZGCommitmentScheme<Bn256>, ProverSHPLONK<'_, _>, _, _, _, _>(
        &params,
        &key,
        &[Extreme::new()],
        &[&instances],
        ChaCha20Rng::seed_from_u64(2),
        &mut transcript,
    )
    .expect("a proof");
    Ok(())
}
