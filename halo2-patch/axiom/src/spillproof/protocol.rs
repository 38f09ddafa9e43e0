//! Upstream's transcripts, generators and schemes, for the rounds of `spillproof-plonk`.

use std::io;
use std::marker::PhantomData;

use ff::Field;
use group::Curve;
use halo2curves::CurveAffine;
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};
use spillproof_engine::checkpoint::Checkpoint;
use spillproof_plonk::stages::lookup::LeftOvers;
use spillproof_plonk::{
    Basis, Blinded, Instances, Lookups, Opening, OpeningScheme, Outside, Part, Pieces, Point, Protocol,
    RandomPolynomial, Randomness, Result, Scalar, Sum, Transcript,
};

use super::convert::{foreign, foreign_point, point, scalar};
use super::reproducible;
use super::values::{evaluated, from_column};
use crate::plonk;
use crate::poly::commitment::{Blind, CommitmentScheme, Params, ParamsProver, Prover};
use crate::poly::{Coeff, LagrangeCoeff, Polynomial, ProverQuery};
use crate::transcript::{EncodedChallenge, TranscriptWrite};

/// Upstream's protocol, with this multi-opening. An opening of the caller's is planned as if it was SHPLONK.
pub(crate) const fn protocol(opening: OpeningScheme, opens_instances: bool) -> Protocol {
    Protocol {
        blinds: true,
        instances: match opens_instances {
            true => Instances::Commitments,
            false => Instances::Values,
        },
        lookups: Lookups::Permuted(LeftOvers::Ascending),
        trash: false,
        pieces: Pieces::OfRows,
        queries: &Part::INSTANCES_FIRST,
        opening,
    }
}

/// The protocol of proofs that `P` opens.
pub(crate) fn protocol_of<'params, Scheme: CommitmentScheme, P: Prover<'params, Scheme>>() -> Protocol {
    protocol(OpeningScheme::Shplonk, P::QUERY_INSTANCE)
}

/// A transcript.
pub(crate) struct Written<'t, C, E, T> {
    inner: &'t mut T,
    _marker: PhantomData<(C, E)>,
}

impl<'t, C, E, T> Written<'t, C, E, T> {
    pub(crate) fn new(inner: &'t mut T) -> Self {
        let _marker = PhantomData;
        Self { inner, _marker }
    }
}

impl<C: CurveAffine, E: EncodedChallenge<C>, T: TranscriptWrite<C, E>> Transcript for Written<'_, C, E, T> {
    fn write_point(&mut self, point: &Point) -> io::Result<()> {
        self.inner.write_point(foreign_point(point))
    }

    fn write_scalar(&mut self, scalar: Scalar) -> io::Result<()> {
        self.inner.write_scalar(foreign(scalar))
    }

    fn common_point(&mut self, point: &Point) -> io::Result<()> {
        self.inner.common_point(foreign_point(point))
    }

    fn common_scalar(&mut self, scalar: Scalar) -> io::Result<()> {
        self.inner.common_scalar(foreign(scalar))
    }

    fn challenge(&mut self) -> Scalar {
        scalar(&*self.inner.squeeze_challenge_scalar::<()>())
    }
}

/// Where a proof's random values come from.
pub(crate) enum Generator<'r, R> {
    /// The caller's.
    Callers(&'r mut R),
    /// ChaCha20 from the seed of a checkpoint: a second run draws the same values.
    Seeded(Box<ChaCha20Rng>),
}

impl<'r, R: RngCore> Generator<'r, R> {
    /// That of a proof with this checkpoint.
    pub(crate) fn of(callers: &'r mut R, checkpoint: Option<&Checkpoint>) -> Self {
        match checkpoint.and_then(Checkpoint::seed) {
            Some(seed) => Self::Seeded(Box::new(ChaCha20Rng::from_seed(*seed))),
            None => Self::Callers(callers),
        }
    }
}

impl<R: RngCore> RngCore for Generator<'_, R> {
    fn next_u32(&mut self) -> u32 {
        match self {
            Self::Callers(rng) => rng.next_u32(),
            Self::Seeded(rng) => rng.next_u32(),
        }
    }

    fn next_u64(&mut self) -> u64 {
        match self {
            Self::Callers(rng) => rng.next_u64(),
            Self::Seeded(rng) => rng.next_u64(),
        }
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        match self {
            Self::Callers(rng) => rng.fill_bytes(bytes),
            Self::Seeded(rng) => rng.fill_bytes(bytes),
        }
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> std::result::Result<(), rand_core::Error> {
        match self {
            Self::Callers(rng) => rng.try_fill_bytes(bytes),
            Self::Seeded(rng) => rng.try_fill_bytes(bytes),
        }
    }
}

/// All that a proof talks to: the caller's generator and transcript, and `P`, which opens over the scheme's
/// parameters.
pub(crate) struct Callers<'o, 'params, Scheme: CommitmentScheme, P, E, R, T> {
    params: &'params Scheme::ParamsProver,
    rng: Generator<'o, R>,
    transcript: Written<'o, Scheme::Curve, E, T>,
    _marker: PhantomData<P>,
}

impl<'o, 'params, Scheme: CommitmentScheme, P, E, R, T> Callers<'o, 'params, Scheme, P, E, R, T> {
    pub(crate) fn new(
        params: &'params Scheme::ParamsProver,
        rng: Generator<'o, R>,
        transcript: &'o mut T,
    ) -> Self {
        Self {
            params,
            rng,
            transcript: Written::new(transcript),
            _marker: PhantomData,
        }
    }
}

impl<Scheme: CommitmentScheme, P, E, R: RngCore, T> Randomness for Callers<'_, '_, Scheme, P, E, R, T> {
    fn scalar(&mut self) -> Scalar {
        scalar(&Scheme::Scalar::random(&mut self.rng))
    }

    /// From the caller's generator if the reproducible switch is on, else from a checkpoint's, else from the
    /// thread's.
    fn random_polynomial(&mut self, _: u64) -> RandomPolynomial {
        match reproducible() || matches!(self.rng, Generator::Seeded(_)) {
            true => RandomPolynomial::Scalars,
            false => RandomPolynomial::OnAnyThread(draw::<Scheme::Scalar>),
        }
    }
}

fn draw<F: Field>(coefficients: &mut [Scalar]) {
    let mut rng = rand::thread_rng();
    for coefficient in coefficients {
        *coefficient = scalar(&F::random(&mut rng));
    }
}

impl<'params, Scheme, P, E, R, T> Outside for Callers<'_, 'params, Scheme, P, E, R, T>
where
    Scheme: CommitmentScheme,
    P: Prover<'params, Scheme>,
    E: EncodedChallenge<Scheme::Curve>,
    R: RngCore,
    T: TranscriptWrite<Scheme::Curve, E>,
{
    fn transcript(&mut self) -> &mut dyn Transcript {
        &mut self.transcript
    }

    fn commit(&mut self, basis: Basis, columns: &[Blinded]) -> Result<Vec<Point>> {
        Ok(match basis {
            Basis::Lagrange => {
                let polys: Vec<_> = columns.iter().map(blinded::<_, LagrangeCoeff>).collect();
                let polys: Vec<_> = polys.iter().map(|(poly, blind)| (poly, *blind)).collect();
                affine(&self.params.commit_lagrange_many(&polys))
            }
            Basis::Monomial => {
                let polys: Vec<_> = columns.iter().map(blinded::<_, Coeff>).collect();
                let polys: Vec<_> = polys.iter().map(|(poly, blind)| (poly, *blind)).collect();
                affine(&self.params.commit_many(&polys))
            }
        })
    }

    fn open(&mut self, opening: &Opening<'_>) -> io::Result<()> {
        // A constant, so that upstream's own code is compiled for other openings only.
        if const { P::SPILLPROOF_OPEN.is_some() } {
            if let Some(open) = P::SPILLPROOF_OPEN {
                return open(self.params, opening, &mut self.transcript);
            }
        }
        let polynomial = |(place, sum): (usize, &Sum<'_>)| {
            // The rounds above open no sums of columns by this protocol.
            let column = match sum[..] {
                [] => None,
                [(factor, column)] if factor == Scalar::from(1u64) => Some(column),
                _ => {
                    return Err(io::Error::other(
                        "a sum of columns is opened by SHPLONK or GWC only",
                    ))
                }
            };
            let here = opening.queries.iter().filter(|query| query.polynomial == place);
            Ok(evaluated(
                column,
                here.map(|query| (query.point, query.evaluation)),
            ))
        };
        let polys: Vec<Polynomial<_, Coeff>> = opening
            .polynomials
            .iter()
            .enumerate()
            .map(polynomial)
            .collect::<io::Result<_>>()?;
        let queries = opening.queries.iter().map(|query| ProverQuery {
            point: foreign(query.point),
            poly: &polys[query.polynomial],
            blind: Blind(foreign(query.blind)),
        });
        let queries: Vec<_> = queries.collect();
        P::new(self.params).create_proof(&mut self.rng, &mut *self.transcript.inner, queries)
    }
}

fn blinded<F: Field, B>(column: &Blinded) -> (Polynomial<F, B>, Blind<F>) {
    (from_column(column.column.clone()), Blind(foreign(column.blind)))
}

/// As in stock, an opening that a scheme of the caller fails at is a failure of the constraint system. The
/// engine's errors say what they are.
impl From<spillproof_plonk::Error> for plonk::Error {
    fn from(error: spillproof_plonk::Error) -> Self {
        match error {
            spillproof_plonk::Error::Opening(error) if !is_engines(&error) => Self::ConstraintSystemFailure,
            other => io::Error::from(other).into(),
        }
    }
}

fn is_engines(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.is::<spillproof_engine::Error>())
}

/// Commitments, as the engine has points.
pub(crate) fn affine<C: Curve>(points: &[C]) -> Vec<Point>
where
    C::AffineRepr: 'static,
{
    points.iter().map(|sum| point(&sum.to_affine())).collect()
}
