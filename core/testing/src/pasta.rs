//! zcash's halo2 as an oracle: its curves, transcript and parameters beside ours, with one generator for
//! both.

use std::convert::Infallible;
use std::io;

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::Affine;
use ark_ff::{BigInteger, PrimeField};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use spillproof_commit::ipa::{Conversation, Params};
use spillproof_engine::Error;
use spillproof_engine::column::{Element, Placement, Workspace, Writer};
use spillproof_kernels::curve::{Curve, Point};
use stock_halo2_proofs::arithmetic::{Coordinates, CurveAffine, CurveExt};
use stock_halo2_proofs::pasta::group::ff as stock_ff;
use stock_halo2_proofs::poly::commitment as stock;
use stock_halo2_proofs::poly::{Coeff, EvaluationDomain, Polynomial};
use stock_halo2_proofs::transcript::{Blake2bWrite, Challenge255, Transcript as _, TranscriptWrite as _};
use stock_rand::TryRng;

/// A curve of halo2_proofs whose scalars can be challenges.
pub trait Stock: CurveAffine<ScalarExt: stock_ff::FromUniformBytes<64>> {}

impl<S: CurveAffine<ScalarExt: stock_ff::FromUniformBytes<64>>> Stock for S {}

/// The same generator for both provers, as the release of rand_core that halo2_proofs takes.
pub struct Draws(pub ChaCha20Rng);

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

pub fn ours<S: stock_ff::PrimeField, F: PrimeField>(value: &S) -> F {
    F::from_le_bytes_mod_order(value.to_repr().as_ref())
}

pub fn theirs<F: PrimeField, S: stock_ff::PrimeField>(value: &F) -> S {
    let mut repr = S::Repr::default();
    repr.as_mut().copy_from_slice(&value.into_bigint().to_bytes_le());
    S::from_repr(repr).expect("below the modulus")
}

pub fn our_point<S: Stock, P: Curve>(point: &S) -> Affine<P>
where
    P::BaseField: PrimeField,
{
    let coordinates = Option::<Coordinates<S>>::from(point.coordinates());
    coordinates.map_or_else(Affine::identity, |both| {
        Affine::new(ours(both.x()), ours(both.y()))
    })
}

pub fn their_point<P: Curve, S: Stock>(point: &Affine<P>) -> S
where
    P::BaseField: PrimeField,
{
    match point.xy() {
        Some((x, y)) => S::from_xy(theirs(&x), theirs(&y)).expect("on the curve"),
        None => S::identity(),
    }
}

/// A transcript of halo2_proofs, and the generator of its prover.
pub struct Talk<S: Stock> {
    pub transcript: Blake2bWrite<Vec<u8>, S, Challenge255<S>>,
    pub draws: Draws,
}

impl<S: Stock> Talk<S> {
    pub fn new(seed: u64) -> Self {
        Self {
            transcript: Blake2bWrite::init(Vec::new()),
            draws: Draws(ChaCha20Rng::seed_from_u64(seed)),
        }
    }
}

/// Why a conversation broke off.
#[derive(Debug)]
pub enum Failure {
    Engine(Error),
    Transcript(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Transcript(error)
    }
}

impl<P: Curve, S: Stock> Conversation<P> for Talk<S>
where
    P::BaseField: PrimeField,
{
    type Error = Failure;

    fn random(&mut self) -> P::ScalarField {
        ours(&<S::ScalarExt as stock_ff::Field>::random(&mut self.draws))
    }

    fn write_point(&mut self, point: &Affine<P>) -> Result<(), Failure> {
        Ok(self.transcript.write_point(their_point(point))?)
    }

    fn write_scalar(&mut self, scalar: P::ScalarField) -> Result<(), Failure> {
        Ok(self.transcript.write_scalar(theirs(&scalar))?)
    }

    fn challenge(&mut self) -> P::ScalarField {
        ours(&*self.transcript.squeeze_challenge_scalar::<()>())
    }
}

/// `n` points for coefficients, one for blinds and one for inner products: hashes of their numbers.
pub struct Points<S: Stock> {
    pub g: Vec<S>,
    pub w: S,
    pub u: S,
}

impl<S: Stock> Points<S> {
    pub fn new(n: usize) -> Self {
        let hash = S::CurveExt::hash_to_curve("test of spillproof");
        let point = |index: usize| hash(&index.to_le_bytes()).to_affine_vartime();
        Self {
            g: (0..n).map(point).collect(),
            w: point(n),
            u: point(n + 1),
        }
    }

    /// Parameters of halo2_proofs over these points. The points stand in for the Lagrange form, which
    /// openings do not use.
    pub fn params(&self) -> stock::Params<S> {
        let mut bytes = self.g.len().ilog2().to_le_bytes().to_vec();
        let all = self.g.iter().chain(&self.g).chain([&self.w, &self.u]);
        for point in all {
            bytes.extend_from_slice(point.to_bytes().as_ref());
        }
        stock::Params::read(&mut &bytes[..]).expect("parameters")
    }

    /// Parameters of spillproof over the same points, as columns in `placement`.
    pub fn ours<P>(&self, workspace: &Workspace, placement: Placement) -> Params<P>
    where
        P: Curve<BaseField: PrimeField>,
        Point<P>: Element,
    {
        let g: Vec<Point<P>> = self
            .g
            .iter()
            .map(|point| Point::<P>::from_affine::<P>(&our_point(point)))
            .collect();
        let mut writer = Writer::scratch(workspace, "points", g.len() as u64, placement).expect("a column");
        writer.push(&g).expect("room");
        let g = writer.finish().expect("written");
        Params {
            g_lagrange: g.clone(),
            g,
            w: our_point(&self.w),
            u: our_point(&self.u),
        }
    }
}

pub fn polynomial_of_stock<S: Stock, P: Curve>(
    k: u32,
    coefficients: &[P::ScalarField],
) -> Polynomial<S::ScalarExt, Coeff> {
    let mut polynomial = EvaluationDomain::<S::ScalarExt>::new(1, k).empty_coeff();
    for (coefficient, value) in polynomial.iter_mut().zip(coefficients) {
        *coefficient = theirs(value);
    }
    polynomial
}
