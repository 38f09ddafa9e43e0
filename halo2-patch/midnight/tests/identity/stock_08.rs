//! The circuits and the prover over the unmodified 0.8.3 from the registry.

pub use midnight_curves as curves;
pub use stock_midnight_proofs as midnight;
pub use stock_midnight_proofs as halo2;

// A circuit by its description; formatted where it lives.
#[allow(dead_code, unused_imports)]
#[rustfmt::skip]
#[path = "../../../../demos/circuits/src/assign.rs"]
mod assign;
#[allow(dead_code)]
#[rustfmt::skip]
#[path = "../../../../demos/circuits/src/midnight/described.rs"]
pub mod described;
#[allow(dead_code, unused_imports, unused_macros)]
#[rustfmt::skip]
#[path = "../../../../demos/circuits/src/midnight/dialect.rs"]
pub mod dialect;
#[path = "prove.rs"]
pub mod prove;
#[allow(dead_code)]
#[rustfmt::skip]
#[path = "../../../../demos/circuits/src/rebuilt.rs"]
pub mod rebuilt;

/// The key's type, by its name in the demos.
pub mod proof {
    pub use super::prove::VerifyingKey as VerifierKey;
}
#[path = "random.rs"]
pub mod random;

/// What releases and features call differently.
pub mod release {
    use rand_chacha::ChaCha20Rng;

    use super::curves::{Bls12, Fq, G1Projective};
    use super::midnight::plonk::{self, Error};
    use super::midnight::poly::kzg::msm::DualMSM;
    use super::prove::{Params, ProvingKey, Scheme, Transcript, VerifyingKey};
    use super::random::Random;

    pub fn create_proof(
        params: &Params,
        pk: &ProvingKey,
        circuits: &[Random],
        committed: usize,
        instances: &[&[&[Fq]]],
        rng: ChaCha20Rng,
        transcript: &mut Transcript,
    ) -> Result<(), Error> {
        plonk::create_proof::<Fq, Scheme, _, _>(params, pk, circuits, committed, instances, transcript, rng)
    }

    pub fn prepare(
        vk: &VerifyingKey,
        committed: &[&[G1Projective]],
        instances: &[&[&[Fq]]],
        transcript: &mut Transcript,
    ) -> Result<DualMSM<Bls12>, Error> {
        plonk::prepare::<Fq, Scheme, _>(vk, committed, instances, transcript)
    }
}
