//! Parameters, keys and proofs over one of the crates.

use std::io;

use blake2b_simd::State;
use ff::Field as _;
use group::GroupEncoding as _;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;

use super::curves::{Bls12, Fq, G1Projective};
use super::midnight::plonk::{keygen_pk, keygen_vk_with_k, Error};
use super::midnight::poly::commitment::{Guard as _, PolynomialCommitmentScheme as _};
use super::midnight::poly::kzg::params::ParamsKZG;
use super::midnight::poly::kzg::KZGCommitmentScheme;
use super::midnight::transcript::{self, CircuitTranscript, Transcript as _};
use super::midnight::utils::SerdeFormat;
use super::midnight::{plonk, poly};
use super::random::Random;
use super::release;
use crate::shape::{Shape, Wrong};
use crate::{Case, KeyBytes, Made};

/// The only scheme.
pub type Scheme = KZGCommitmentScheme<Bls12>;
/// Its parameters.
pub type Params = ParamsKZG<Bls12>;
/// Its proving keys.
pub type ProvingKey = plonk::ProvingKey<Fq, Scheme>;
/// Its verifying keys.
pub type VerifyingKey = plonk::VerifyingKey<Fq, Scheme>;
/// Upstream's transcript, which fails after so many points and scalars of a proof.
#[derive(Clone)]
pub struct Transcript {
    inner: CircuitTranscript<State>,
    entries: usize,
}

impl transcript::Transcript for Transcript {
    type Hash = State;

    fn init() -> Self {
        let inner = CircuitTranscript::init();
        let entries = usize::MAX;
        Self { inner, entries }
    }

    fn init_from_bytes(bytes: &[u8]) -> Self {
        let inner = CircuitTranscript::init_from_bytes(bytes);
        Self {
            inner,
            ..Self::init()
        }
    }

    fn squeeze_challenge<V: transcript::Sampleable<State>>(&mut self) -> V {
        self.inner.squeeze_challenge()
    }

    fn common<V: transcript::Hashable<State>>(&mut self, input: &V) -> io::Result<()> {
        self.inner.common(input)
    }

    fn read<V: transcript::Hashable<State>>(&mut self) -> io::Result<V> {
        self.inner.read()
    }

    fn write<V: transcript::Hashable<State>>(&mut self, input: &V) -> io::Result<()> {
        let cut_off = || io::Error::other("cut off");
        self.entries = self.entries.checked_sub(1).ok_or_else(cut_off)?;
        self.inner.write(input)
    }

    fn finalize(self) -> Vec<u8> {
        self.inner.finalize()
    }

    fn assert_empty(&mut self) -> io::Result<()> {
        self.inner.assert_empty()
    }
}

/// All formats of keys and parameters.
pub const FORMATS: [SerdeFormat; 3] = [
    SerdeFormat::Processed,
    SerdeFormat::RawBytes,
    SerdeFormat::RawBytesUnchecked,
];

pub fn params(k: u32, seed: u64) -> Params {
    Params::unsafe_setup(k, ChaCha20Rng::seed_from_u64(seed))
}

/// In all formats.
pub fn written(params: &Params) -> [Vec<u8>; 3] {
    FORMATS.map(|format| {
        let mut bytes = Vec::new();
        params.write_custom(&mut bytes, format).unwrap();
        bytes
    })
}

/// From all formats, in which they must be the same.
pub fn read(bytes: &[Vec<u8>; 3]) -> Params {
    let read = |which: usize| {
        let mut rest = &bytes[which][..];
        let params = Params::read_custom(&mut rest, FORMATS[which]).unwrap();
        assert!(rest.is_empty());
        params
    };
    let [first, second, third] = [0, 1, 2].map(read);
    assert!(written(&first) == written(&second) && written(&first) == written(&third));
    first
}

pub fn keys(params: &Params, circuit: &Random, k: u32) -> Result<ProvingKey, Error> {
    let circuit = plonk::Circuit::without_witnesses(circuit);
    let vk = keygen_vk_with_k(params, &circuit, k)?;
    keygen_pk(vk, &circuit)
}

pub fn key_bytes(pk: &ProvingKey) -> KeyBytes {
    KeyBytes {
        vk: FORMATS.map(|format| pk.get_vk().to_bytes(format)),
        pk: FORMATS.map(|format| pk.to_bytes(format)),
        // Not the commitments: their projective coordinates differ from one sum to the next.
        pinned: format!(
            "{:?}{:?}",
            pk.get_vk().cs().pinned(),
            pk.get_vk().transcript_repr()
        ),
        lengths: [
            pk.get_vk().bytes_length(FORMATS[0]),
            pk.get_vk().bytes_length(FORMATS[1]),
            pk.get_vk().bytes_length(FORMATS[2]),
            pk.bytes_length(FORMATS[0]),
            pk.bytes_length(FORMATS[1]),
            pk.bytes_length(FORMATS[2]),
        ],
    }
}

/// A proving key, and what it says of its circuit, from bytes of any of the crates.
pub fn read_key(bytes: &[u8], format: usize) -> ProvingKey {
    ProvingKey::from_bytes::<Random>(
        bytes,
        FORMATS[format],
        #[cfg(feature = "circuit-params")]
        (),
    )
    .unwrap()
}

/// The circuits of a case.
pub fn circuits(case: Case) -> Vec<Random> {
    let rows = Random::rows(case.k);
    (1..=case.circuits as u64)
        .map(|seed| Random::new(rows, seed))
        .collect()
}

/// From parameters to the proof.
pub fn made(case: Case) -> Made {
    let (k, circuits) = (case.k, circuits(case));
    let params = params(k, case.seed);
    let pk = keys(&params, &circuits[0], k).unwrap();
    Made {
        params: written(&params),
        commitments: commitments(&params, k, case.seed),
        keys: key_bytes(&pk),
        proof: prove(&params, &pk, case),
    }
}

/// Whether this crate reads what was made, by any of the crates, writes the same, proves with what it read,
/// and its verifier accepts the proof.
pub fn takes(case: Case, made: &Made, is_proof_determined: bool) -> bool {
    let circuits = circuits(case);
    let params = read(&made.params);
    let written_again = |format: usize| {
        let pk = read_key(&made.keys.pk[format], format);
        let is_same = key_bytes(&pk) == made.keys;
        let proves = || !is_proof_determined || prove(&params, &pk, case) == made.proof;
        let accepts = || !crate::is_verifiable(case) || accepts(&params, pk.get_vk(), &circuits, &made.proof);
        is_same && proves() && accepts()
    };
    written(&params) == made.params && (0..FORMATS.len()).all(written_again)
}

/// What this crate says of a proof that can't be made.
pub fn refusal(case: Case, wrong: Wrong) -> String {
    let mut circuits = circuits(case);
    let params = params(case.k, case.seed);
    let pk = keys(&params, &circuits[0], case.k).unwrap();
    let mut instances = vec![circuits[0].instances()];
    match wrong {
        Wrong::Witness(broken) => circuits[0].broken = broken,
        Wrong::NoInstances => instances.clear(),
        Wrong::NoColumns => instances[0].clear(),
        Wrong::TooLong => instances[0][0].resize(1 << case.k, Fq::ONE),
    }
    let refused = prove_with(&params, &pk, &circuits, &instances, case);
    format!("{:?}", refused.unwrap_err())
}

/// What this crate says of keys of a circuit that has too many rows.
pub fn key_refusal(case: Case) -> String {
    let circuit = Random::new(1 << case.k, case.seed);
    let refused = keys(&params(case.k, case.seed), &circuit, case.k);
    format!("{:?}", refused.unwrap_err())
}

pub fn prove(params: &Params, pk: &ProvingKey, case: Case) -> Vec<u8> {
    let circuits = circuits(case);
    let instances: Vec<_> = circuits.iter().map(Random::instances).collect();
    prove_with(params, pk, &circuits, &instances, case).unwrap()
}

pub fn prove_with(
    params: &Params,
    pk: &ProvingKey,
    circuits: &[Random],
    instances: &[Vec<Vec<Fq>>],
    case: Case,
) -> Result<Vec<u8>, Error> {
    let (proof, made) = prove_begun(params, pk, circuits, instances, case, usize::MAX);
    made.map(|()| proof)
}

/// As many points and scalars of a proof as are taken.
pub fn prove_begun(
    params: &Params,
    pk: &ProvingKey,
    circuits: &[Random],
    instances: &[Vec<Vec<Fq>>],
    case: Case,
    entries: usize,
) -> (Vec<u8>, Result<(), Error>) {
    let columns: Vec<Vec<&[Fq]>> = instances
        .iter()
        .map(|of| of.iter().map(|column| &column[..]).collect())
        .collect();
    let instances: Vec<&[&[Fq]]> = columns.iter().map(|columns| &columns[..]).collect();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(case.threads)
        .build()
        .unwrap();
    pool.install(|| {
        let mut transcript = Transcript {
            entries,
            ..Transcript::init()
        };
        let rng = ChaCha20Rng::seed_from_u64(case.seed);
        let committed = Shape::current().committed;
        let made = release::create_proof(params, pk, circuits, committed, &instances, rng, &mut transcript);
        (transcript.finalize(), made)
    })
}

/// Whether this crate's verifier accepts a proof.
pub fn accepts(params: &Params, vk: &VerifyingKey, circuits: &[Random], proof: &[u8]) -> bool {
    let committed = Shape::current().committed;
    let instances: Vec<_> = circuits.iter().map(Random::instances).collect();
    let commit = |values: &Vec<Fq>| {
        let mut padded = vk.get_domain().empty_lagrange();
        padded
            .iter_mut()
            .zip(values)
            .for_each(|(padded, value)| *padded = *value);
        Scheme::commit_lagrange(params, &padded)
    };
    let commitments: Vec<Vec<G1Projective>> = instances
        .iter()
        .map(|of| of[..committed].iter().map(commit).collect())
        .collect();
    let commitments: Vec<&[G1Projective]> = commitments.iter().map(|of| &of[..]).collect();
    let plain: Vec<Vec<&[Fq]>> = instances
        .iter()
        .map(|of| of[committed..].iter().map(|column| &column[..]).collect())
        .collect();
    let plain: Vec<&[&[Fq]]> = plain.iter().map(|of| &of[..]).collect();
    let mut transcript = Transcript::init_from_bytes(proof);
    match release::prepare(vk, &commitments, &plain, &mut transcript) {
        Err(_) => false,
        Ok(guard) => guard.verify(&params.verifier_params()).is_ok() && transcript.assert_empty().is_ok(),
    }
}

/// What else there is to parameters, as bytes: points as a slice, fewer rows, made from parts.
pub fn derived(k: u32, seed: u64) -> Vec<u8> {
    let params = params(k, seed);
    let mut bytes = Vec::new();
    let mut add = |params: &Params| {
        written(params)
            .iter()
            .for_each(|written| bytes.extend_from_slice(written))
    };
    for fewer in 0..=2.min(k) {
        let mut downsized = params.clone();
        downsized.downsize(k - fewer);
        assert_eq!(poly::commitment::Params::max_k(&downsized), k - fewer);
        add(&downsized);
    }
    let points = params.g_lagrange().to_vec();
    assert_eq!(points.len(), 1 << k);
    add(&Params::from_parts(
        k,
        points.clone(),
        None,
        params.g2(),
        params.s_g2(),
    ));
    let both = (points.clone(), Some(points.clone()));
    add(&Params::from_parts(k, both.0, both.1, params.g2(), params.s_g2()));
    let points = points.iter().map(|point| point.to_bytes());
    points.for_each(|point| bytes.extend_from_slice(point.as_ref()));
    bytes
}

/// A commitment of each kind, as bytes.
pub fn commitments(params: &Params, k: u32, seed: u64) -> Vec<u8> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let domain = poly::EvaluationDomain::<Fq>::new(3, k);
    let mut values = domain.empty_lagrange();
    values
        .iter_mut()
        .skip(seed as usize % 3)
        .for_each(|value| *value = Fq::random(&mut rng));
    let of_values = Scheme::commit_lagrange(params, &values);
    let polynomial = domain.lagrange_to_coeff(values);
    assert_eq!(Scheme::commit(params, &polynomial), of_values);
    let mut bytes = of_values.to_bytes().as_ref().to_vec();
    bytes.extend_from_slice(
        Scheme::commit_lagrange(params, &domain.empty_lagrange())
            .to_bytes()
            .as_ref(),
    );
    bytes
}
