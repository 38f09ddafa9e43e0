//! The circuits and the prover over the drop-in of 0.7.3.

pub use midnight_curves_07 as curves;
pub use midnight_proofs_07 as midnight;

#[path = "from_files.rs"]
pub mod from_files;
#[path = "prove.rs"]
pub mod prove;
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
        plonk::create_proof::<Fq, Scheme, _, _>(params, pk, circuits, committed, instances, rng, transcript)
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
