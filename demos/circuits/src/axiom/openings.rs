//! Both multi-opening arguments as one type, so that a prover and a verifier are compiled once for both.
//! halo2 makes them of parameters alone, on its caller's thread: within [`scope`] the thread says which one
//! it is.

use std::cell::Cell;
use std::io;

use super::halo2::halo2curves::bn256::{Bn256, G1Affine};
use super::halo2::poly::commitment::{Prover, Verifier};
use super::halo2::poly::kzg::commitment::ParamsKZG;
use super::halo2::poly::kzg::msm::{DualMSM, MSMKZG};
use super::halo2::poly::kzg::multiopen::{ProverGWC, ProverSHPLONK, VerifierGWC, VerifierSHPLONK};
use super::halo2::poly::kzg::strategy::GuardKZG;
use super::halo2::poly::{Error, ProverQuery, VerifierQuery};
use super::halo2::transcript::{EncodedChallenge, TranscriptRead, TranscriptWrite};
use super::proof::Scheme256;
use crate::Scheme;

thread_local! {
    /// What [`AnyProver::new`] and [`AnyVerifier::new`] make.
    static SCHEME: Cell<Scheme> = const { Cell::new(Scheme::Shplonk) };
}

/// Runs `work`, in which provers and verifiers that are made on this thread are of `scheme`.
pub fn scope<T>(scheme: Scheme, work: impl FnOnce() -> T) -> T {
    /// Restores the scheme before, also after a panic.
    struct Restore(Scheme);

    impl Drop for Restore {
        fn drop(&mut self) {
            SCHEME.set(self.0);
        }
    }

    let _restore = Restore(SCHEME.replace(scheme));
    work()
}

/// A prover.
pub enum AnyProver<'p> {
    /// Of [`Scheme::Shplonk`].
    Shplonk(ProverSHPLONK<'p, Bn256>),
    /// Of [`Scheme::Gwc`].
    Gwc(ProverGWC<'p, Bn256>),
}

impl<'p> Prover<'p, Scheme256> for AnyProver<'p> {
    const QUERY_INSTANCE: bool = false;

    fn new(params: &'p ParamsKZG<Bn256>) -> Self {
        match SCHEME.get() {
            Scheme::Shplonk => Self::Shplonk(ProverSHPLONK::new(params)),
            Scheme::Gwc => Self::Gwc(ProverGWC::new(params)),
        }
    }

    fn create_proof<'com, E, T, R, I>(&self, rng: R, transcript: &mut T, queries: I) -> io::Result<()>
    where
        E: EncodedChallenge<G1Affine>,
        T: TranscriptWrite<G1Affine, E>,
        I: IntoIterator<Item = ProverQuery<'com, G1Affine>> + Clone,
        R: rand_chacha::rand_core::RngCore,
    {
        match self {
            Self::Shplonk(prover) => prover.create_proof(rng, transcript, queries),
            Self::Gwc(prover) => prover.create_proof(rng, transcript, queries),
        }
    }
}

/// A verifier.
pub enum AnyVerifier<'p> {
    /// Of [`Scheme::Shplonk`].
    Shplonk(VerifierSHPLONK<'p, Bn256>),
    /// Of [`Scheme::Gwc`].
    Gwc(VerifierGWC<'p, Bn256>),
}

impl<'p> Verifier<'p, Scheme256> for AnyVerifier<'p> {
    type Guard = GuardKZG<'p, Bn256>;
    type MSMAccumulator = DualMSM<'p, Bn256>;

    const QUERY_INSTANCE: bool = false;

    fn new(params: &'p ParamsKZG<Bn256>) -> Self {
        match SCHEME.get() {
            Scheme::Shplonk => Self::Shplonk(VerifierSHPLONK::new(params)),
            Scheme::Gwc => Self::Gwc(VerifierGWC::new(params)),
        }
    }

    fn verify_proof<'com, E, T, I>(
        &self,
        transcript: &mut T,
        queries: I,
        msm: DualMSM<'p, Bn256>,
    ) -> Result<Self::Guard, Error>
    where
        'p: 'com,
        E: EncodedChallenge<G1Affine>,
        T: TranscriptRead<G1Affine, E>,
        I: IntoIterator<Item = VerifierQuery<'com, G1Affine, MSMKZG<Bn256>>> + Clone,
    {
        match self {
            Self::Shplonk(verifier) => verifier.verify_proof(transcript, queries, msm),
            Self::Gwc(verifier) => verifier.verify_proof(transcript, queries, msm),
        }
    }
}
