//! Upstream's protocol as a value, and its transcripts, generators and parameters, for the rounds of
//! `spillproof-plonk`.

use std::io;

use ff::{Field as _, PrimeField};
use midnight_curves::{Bls12, Fq};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng as _};
use spillproof_engine::error::Invalid;
use spillproof_engine::stream::Scalars;
use spillproof_engine::Session;
use spillproof_plonk::stages::lookup::LeftOvers;
use spillproof_plonk::{
    Basis, Blinded, Book, Ending, Instances, Lookups, Opening, OpeningScheme, Outside, Pieces, Powers,
    Protocol, ProverCurve as _, RandomPolynomial, Randomness, Result, Transcript, Width,
};

use super::bridge::Bridge;
use super::convert::{foreign, foreign_point, scalar, Point, Scalar, P};
use super::params::Columns;
use super::verify::Record;
use crate::plonk;
use crate::poly::commitment::PolynomialCommitmentScheme;
use crate::poly::kzg::params::ParamsKZG;
use crate::spillproof_release::{QUERIES, SETS, VERSION};
use crate::transcript::{self, Hashable, Sampleable};

/// The multi-opening of the halo2 Book, in upstream's version.
pub(super) const BOOK: Book = Book {
    powers: Powers::Ascending,
    sets: SETS,
    width: match cfg!(feature = "truncated-challenges") {
        true => Width::Half,
        false => Width::Whole,
    },
};

/// Of proofs whose first `committed` instance columns the verifier has as commitments.
pub(crate) fn protocol(committed: usize) -> Protocol {
    Protocol {
        blinds: false,
        instances: Instances::CommittedFirst { columns: committed },
        lookups: Lookups::Permuted(LeftOvers::Descending),
        trash: true,
        pieces: Pieces::OneShort,
        queries: QUERIES,
        opening: OpeningScheme::Book {
            book: BOOK,
            ending: Ending::Quotient,
        },
    }
}

/// What makes a proof another one beside key and instances: the release, how many instance columns are
/// committed, and the threads of the caller's pool, each of which has a part of the random polynomial.
pub(crate) fn name(committed: usize, threads: usize) -> String {
    format!(
        "midnight_proofs {VERSION}, challenges {:?}, {committed} committed, {threads} threads",
        BOOK.width
    )
}

/// A transcript.
struct Written<'t, F: PrimeField, CS: PolynomialCommitmentScheme<F>, T> {
    inner: &'t mut T,
    bridge: Bridge<F, CS>,
    /// For the verifier.
    record: Record<CS::Commitment>,
}

impl<F, CS, T> Transcript<P> for Written<'_, F, CS, T>
where
    F: PrimeField + Hashable<T::Hash> + Sampleable<T::Hash>,
    CS: PolynomialCommitmentScheme<F, Commitment: Hashable<T::Hash>>,
    T: transcript::Transcript,
{
    fn write_point(&mut self, point: &Point) -> io::Result<()> {
        let commitment = (self.bridge.commitment)(foreign_point(point));
        self.record.bytes.extend(commitment.to_bytes());
        self.inner.write(&commitment)
    }

    fn write_scalar(&mut self, scalar: Scalar) -> io::Result<()> {
        let scalar = foreign::<F>(scalar);
        self.record.bytes.extend(scalar.to_bytes());
        self.inner.write(&scalar)
    }

    fn common_point(&mut self, point: &Point) -> io::Result<()> {
        let commitment = (self.bridge.commitment)(foreign_point(point));
        self.inner.common(&commitment)?;
        self.record.committed.push(commitment);
        Ok(())
    }

    fn common_scalar(&mut self, scalar: Scalar) -> io::Result<()> {
        self.inner.common(&foreign::<F>(scalar))
    }

    fn challenge(&mut self) -> Scalar {
        scalar(&self.inner.squeeze_challenge::<F>())
    }
}

/// A caller's transcript, generator and parameters: all that a proof talks to.
pub(crate) struct Caller<'c, F: PrimeField, CS: PolynomialCommitmentScheme<F>, T> {
    session: &'c Session,
    params: Columns,
    rng: &'c mut dyn RngCore,
    /// Of the pool that the prover was called in.
    threads: usize,
    transcript: Written<'c, F, CS, T>,
}

impl<'c, F: PrimeField, CS: PolynomialCommitmentScheme<F>, T> Caller<'c, F, CS, T> {
    /// `threads` are those of the pool in which the prover was called.
    ///
    /// # Errors
    /// Where points in memory have to be written and the disk or the budget has no room.
    pub(crate) fn new(
        session: &'c Session,
        bridge: Bridge<F, CS>,
        params: &ParamsKZG<Bls12>,
        rng: &'c mut dyn RngCore,
        threads: usize,
        transcript: &'c mut T,
    ) -> io::Result<Self> {
        Ok(Self {
            session,
            params: Columns::of(session, params)?,
            rng,
            threads,
            transcript: Written {
                inner: transcript,
                bridge,
                record: Record::default(),
            },
        })
    }
}

impl<F: PrimeField, CS: PolynomialCommitmentScheme<F>, T> Caller<'_, F, CS, T> {
    /// What was written, and the commitments that were absorbed: those of instances.
    pub(crate) fn into_record(self) -> Record<CS::Commitment> {
        self.transcript.record
    }
}

impl<F, CS, T> Randomness<Scalar> for Caller<'_, F, CS, T>
where
    F: PrimeField,
    CS: PolynomialCommitmentScheme<F>,
{
    fn scalar(&mut self) -> Scalar {
        scalar(&Fq::random(&mut *self.rng))
    }

    /// A chunk for each thread of the caller's pool, and a generator for each chunk.
    fn random_polynomial(&mut self, coefficients: u64) -> RandomPolynomial<Scalar> {
        let chunks = coefficients.min(self.threads as u64);
        let mut seed = || {
            let mut seed = [0; 32];
            self.rng.fill_bytes(&mut seed);
            seed
        };
        RandomPolynomial::Chunks {
            seeds: (0..chunks).map(|_| seed()).collect(),
            generator: |seed| {
                let mut rng = ChaCha20Rng::from_seed(*seed);
                Box::new(move |out| {
                    out.iter_mut()
                        .for_each(|coefficient| *coefficient = scalar(&Fq::random(&mut rng)));
                })
            },
        }
    }
}

impl<F, CS, T> Outside<P> for Caller<'_, F, CS, T>
where
    F: PrimeField + Hashable<T::Hash> + Sampleable<T::Hash>,
    CS: PolynomialCommitmentScheme<F, Commitment: Hashable<T::Hash>>,
    T: transcript::Transcript,
{
    fn transcript(&mut self) -> &mut dyn Transcript<P> {
        &mut self.transcript
    }

    fn commit(&mut self, basis: Basis, columns: &[Blinded<Scalar>]) -> Result<Vec<Point>> {
        let rows = columns.first().map_or(0, |blinded| blinded.column.len());
        let columns = columns.iter().map(|blinded| Scalars::Column(&blinded.column));
        self.params.commit(basis, &columns.collect::<Vec<_>>(), rows)
    }

    fn open(&mut self, opening: &Opening<'_, Scalar>) -> io::Result<()> {
        let Self {
            session,
            params,
            transcript,
            ..
        } = self;
        P::open_book(session.workspace(), &params.g, BOOK, opening, transcript)?;
        Ok(())
    }
}

/// As in stock, a lookup of what the table lacks is a failure of the constraint system, and so is whatever
/// goes wrong in an opening. Errors of the engine say what they are.
impl From<spillproof_plonk::Error> for plonk::Error {
    fn from(error: spillproof_plonk::Error) -> Self {
        match error {
            spillproof_plonk::Error::Engine(spillproof_engine::Error::Invalid(Invalid::NotInTable)) => {
                Self::ConstraintSystemFailure
            }
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
