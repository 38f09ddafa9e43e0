//! The opening of one polynomial by an inner-product argument, and the book's opening with it at its end.

use std::io;

use ark_ec::short_weierstrass::{Affine, Projective};
use spillproof_commit::CommitCurve;
use spillproof_commit::ipa::{Broken, Conversation, Params};
use spillproof_engine::column::{Column, Placement};
use spillproof_engine::stream::linear_combination;
use spillproof_kernels::curve::Curve;
use spillproof_kernels::field::KernelField;

use crate::book::{self, Last, OpenLast};
use crate::curve::{ScalarOf, stored};
use crate::error::Result;
use crate::openings::Opening;
use crate::outside::{Randomness, Transcript};
use crate::protocol::Book;

/// Columns that are added up in one pass: each takes a reader.
const SUMMED_TOGETHER: usize = 32;

/// Writes the proof of an opening by the book.
///
/// # Errors
/// Those of [`book::open`].
pub(crate) fn open<C: CommitCurve>(
    params: &Params<C>,
    book: Book,
    opening: &Opening<'_, ScalarOf<C>>,
    transcript: &mut dyn Transcript<C>,
    randomness: &mut dyn Randomness<ScalarOf<C>>,
) -> Result<()> {
    let bases = (params.g.workspace(), &params.g);
    book::open(
        bases,
        book,
        opening,
        transcript,
        InnerProduct { params, randomness },
    )
}

/// Writes the proof of one polynomial's value at a point, which the transcript has absorbed.
///
/// # Errors
/// As [`Params::open`].
pub(crate) fn open_one<C: CommitCurve>(
    params: &Params<C>,
    polynomial: &Column<ScalarOf<C>>,
    blind: ScalarOf<C>,
    point: ScalarOf<C>,
    transcript: &mut dyn Transcript<C>,
    randomness: &mut dyn Randomness<ScalarOf<C>>,
) -> Result<()> {
    let mut talk = Talk {
        transcript,
        randomness,
    };
    Ok(C::open(params, polynomial, blind, point, &mut talk)?)
}

/// An inner-product argument for the last polynomial, which is added up first.
struct InnerProduct<'e, C: Curve> {
    params: &'e Params<C>,
    randomness: &'e mut dyn Randomness<ScalarOf<C>>,
}

impl<C: CommitCurve> OpenLast<C> for InnerProduct<'_, C> {
    fn blind(&mut self) -> (ScalarOf<C>, Projective<C>) {
        let blind = self.randomness.scalar();
        (blind, self.params.w * blind)
    }

    fn open(
        self,
        polynomial: Last<ScalarOf<C>>,
        point: ScalarOf<C>,
        transcript: &mut dyn Transcript<C>,
    ) -> Result<()> {
        let Self { params, randomness } = self;
        let (sum, blind) = (total(&polynomial.terms(), params.g.len())?, polynomial.blind);
        drop(polynomial);
        open_one(params, &sum, blind, point, transcript, randomness)
    }
}

/// The sum of all terms, of `len` coefficients, of so many columns at a time.
fn total<F: KernelField>(terms: &[(F, &Column<F>)], len: u64) -> Result<Column<F>> {
    let mut sum: Option<Column<F>> = None;
    for terms in terms.chunks(SUMMED_TOGETHER - 1) {
        let mut terms = terms.to_vec();
        terms.extend(sum.as_ref().map(|sum| (F::ONE, sum)));
        let next = linear_combination(&terms, Placement::Auto)?;
        sum = Some(next);
    }
    let sum = sum.ok_or_else(|| io::Error::other("an opening without queries"))?;
    debug_assert_eq!(sum.len(), len);
    Ok(sum)
}

/// A proof's transcript and its draws.
struct Talk<'t, C: Curve> {
    transcript: &'t mut dyn Transcript<C>,
    randomness: &'t mut dyn Randomness<ScalarOf<C>>,
}

impl<C: Curve> Conversation<C> for Talk<'_, C> {
    type Error = Broken;

    fn random(&mut self) -> ScalarOf<C> {
        self.randomness.scalar()
    }

    fn write_point(&mut self, point: &Affine<C>) -> std::result::Result<(), Broken> {
        Ok(self.transcript.write_point(&stored::<C>(point))?)
    }

    fn write_scalar(&mut self, scalar: ScalarOf<C>) -> std::result::Result<(), Broken> {
        Ok(self.transcript.write_scalar(scalar)?)
    }

    fn challenge(&mut self) -> ScalarOf<C> {
        self.transcript.challenge()
    }
}
