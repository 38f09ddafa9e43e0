//! The circuit over the drop-in for halo2_proofs.

pub use halo2_proofs as halo2;
pub use spillproof_circuits::zcash::dropin::dialect;

macro_rules! parameters {
    () => {};
}
#[path = "circuit.rs"]
mod circuit;

use std::convert::Infallible;

use circuit::{Extreme, set_shape};
use halo2::plonk::{Circuit, ConstraintSystem, create_proof, keygen_pk, keygen_vk};
use halo2::transcript::{Blake2bWrite, Challenge255};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use spillproof_circuits::zcash::dropin::proof::{Curve, Params};
use spillproof_engine::plan::{Plan, Rates};
use stock_rand::TryRng;

use super::{ENOUGH_BYTES, Shape, THREADS};

/// The plan of keys and a proof.
pub fn plan(shape: Shape) -> Plan {
    set_shape(shape);
    let mut cs = ConstraintSystem::default();
    Extreme::configure(&mut cs);
    let shape = halo2::spillproof::Shape::<Curve>::new(&cs, shape.k, 1);
    let plan = shape.plan(ENOUGH_BYTES, THREADS, &Rates::default());
    plan.expect("a plan")
}

/// Parameters, keys and a proof in the current session; a refusal of the keys.
pub fn make(shape: Shape) -> Result<(), String> {
    set_shape(shape);
    let params = Params::new(shape.k);
    let key = keygen_vk(&params, &Extreme::new()).map_err(|error| error.to_string())?;
    let key = keygen_pk(&params, key, &Extreme::new()).expect("a key");
    let instances = Extreme::instances();
    let instances: Vec<_> = instances.iter().map(Vec::as_slice).collect();
    let mut transcript = Blake2bWrite::<_, Curve, Challenge255<_>>::init(Vec::new());
    let draws = Draws(ChaCha20Rng::seed_from_u64(2));
    create_proof(
        &params,
        &key,
        &[Extreme::new()],
        &[&instances],
        draws,
        &mut transcript,
    )
    .expect("a proof");
    Ok(())
}

/// The generator of the other systems, as halo2_proofs takes one.
struct Draws(ChaCha20Rng);

impl TryRng for Draws {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill_bytes(bytes);
        Ok(())
    }
}
