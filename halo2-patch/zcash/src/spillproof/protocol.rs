//! Upstream's transcripts, generators and parameters, for the rounds of `spillproof-plonk`.

use std::io;
use std::marker::PhantomData;

use ff::Field;
use pasta_curves::arithmetic::CurveAffine;
use rand_core::Rng;
use spillproof_commit::ipa::Params;
use spillproof_engine::error::Invalid;
use spillproof_engine::stream::Scalars;
use spillproof_kernels::curve::Point;
use spillproof_plonk::stages::lookup::LeftOvers;
use spillproof_plonk::{
    Basis, Blinded, Book, Ending, Instances, Lookups, Opening, OpeningScheme, Outside, Part, Pieces, Powers,
    Protocol, Randomness, Result, Sets, Transcript, Width,
};

use super::convert::{foreign, foreign_point, scalar, Engine};
use crate::plonk;
use crate::transcript::{EncodedChallenge, TranscriptWrite};

/// Upstream's opening, before its end.
pub(crate) const BOOK: Book = Book {
    powers: Powers::Descending,
    sets: Sets::AsNamed,
    width: Width::Whole,
};

/// Upstream's protocol.
pub(crate) const PROTOCOL: Protocol = Protocol {
    blinds: true,
    instances: Instances::Commitments,
    lookups: Lookups::Permuted(LeftOvers::Descending),
    trash: false,
    pieces: Pieces::OfRows,
    queries: &Part::INSTANCES_FIRST,
    opening: OpeningScheme::Book {
        book: BOOK,
        ending: Ending::InnerProduct,
    },
};

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

impl<C: CurveAffine, P: Engine, E: EncodedChallenge<C>, T: TranscriptWrite<C, E>> Transcript<P>
    for Written<'_, C, E, T>
{
    fn write_point(&mut self, point: &Point<P>) -> io::Result<()> {
        self.inner.write_point(foreign_point::<P, C>(point))
    }

    fn write_scalar(&mut self, scalar: P::ScalarField) -> io::Result<()> {
        self.inner.write_scalar(foreign(scalar))
    }

    fn common_point(&mut self, point: &Point<P>) -> io::Result<()> {
        self.inner.common_point(foreign_point::<P, C>(point))
    }

    fn common_scalar(&mut self, scalar: P::ScalarField) -> io::Result<()> {
        self.inner.common_scalar(foreign(scalar))
    }

    fn challenge(&mut self) -> P::ScalarField {
        scalar(&*self.inner.squeeze_challenge_scalar::<()>())
    }
}

/// The caller's generator: all draws are its.
pub(crate) struct Draws<'r, F, R> {
    rng: &'r mut R,
    _marker: PhantomData<F>,
}

impl<'r, F, R> Draws<'r, F, R> {
    pub(crate) fn new(rng: &'r mut R) -> Self {
        let _marker = PhantomData;
        Self { rng, _marker }
    }
}

impl<F: Field, G: spillproof_kernels::field::KernelField, R: Rng> Randomness<G> for Draws<'_, F, R> {
    fn scalar(&mut self) -> G {
        scalar(&F::random(self.rng))
    }
}

/// The caller's parameters, generator and transcript: all that a proof talks to.
pub(crate) struct Callers<'o, P: Engine, C: CurveAffine, E, R, T> {
    params: Params<P>,
    draws: Draws<'o, C::Scalar, R>,
    transcript: Written<'o, C, E, T>,
}

impl<'o, P: Engine, C: CurveAffine, E, R, T> Callers<'o, P, C, E, R, T> {
    pub(crate) fn new(params: Params<P>, rng: &'o mut R, transcript: &'o mut T) -> Self {
        Self {
            params,
            draws: Draws::new(rng),
            transcript: Written::new(transcript),
        }
    }
}

impl<P: Engine, C: CurveAffine, E, R: Rng, T> Randomness<P::ScalarField> for Callers<'_, P, C, E, R, T> {
    fn scalar(&mut self) -> P::ScalarField {
        self.draws.scalar()
    }
}

impl<P, C, E, R, T> Outside<P> for Callers<'_, P, C, E, R, T>
where
    P: Engine,
    C: CurveAffine,
    E: EncodedChallenge<C>,
    R: Rng,
    T: TranscriptWrite<C, E>,
{
    fn transcript(&mut self) -> &mut dyn Transcript<P> {
        &mut self.transcript
    }

    fn commit(&mut self, basis: Basis, columns: &[Blinded<P::ScalarField>]) -> Result<Vec<Point<P>>> {
        commit(&self.params, basis, columns)
    }

    fn open(&mut self, opening: &Opening<'_, P::ScalarField>) -> io::Result<()> {
        P::open_ipa(&self.params, BOOK, opening, &mut self.transcript, &mut self.draws)?;
        Ok(())
    }
}

/// Commitments by one of the two bases.
pub(crate) fn commit<P: Engine>(
    params: &Params<P>,
    basis: Basis,
    columns: &[Blinded<P::ScalarField>],
) -> Result<Vec<Point<P>>> {
    let scalars: Vec<_> = columns
        .iter()
        .map(|blinded| Scalars::Column(&blinded.column))
        .collect();
    let blinds: Vec<_> = columns.iter().map(|blinded| blinded.blind).collect();
    Ok(P::commit(params, basis, &scalars, &blinds)?)
}

/// As in stock, a lookup of what the table lacks is a failure of the constraint system. Other errors of the
/// engine say what they are.
impl From<spillproof_plonk::Error> for plonk::Error {
    fn from(error: spillproof_plonk::Error) -> Self {
        match error {
            spillproof_plonk::Error::Engine(spillproof_engine::Error::Invalid(Invalid::NotInTable)) => {
                Self::ConstraintSystemFailure
            }
            spillproof_plonk::Error::Opening(error) if !is_engines(&error) => Self::Opening,
            other => io::Error::from(other).into(),
        }
    }
}

fn is_engines(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.is::<spillproof_engine::Error>())
}
