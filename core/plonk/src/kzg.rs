//! The book's opening over an SRS: its last polynomial is opened by a commitment to a quotient.

use ark_ec::short_weierstrass::Projective;
use ark_ff::{AdditiveGroup, Field};
use spillproof_commit::{Combination, CommitCurve, Keep};
use spillproof_engine::column::{Column, Workspace};

use crate::book::{self, Last, OpenLast};
use crate::curve::{PointOf, ScalarOf, stored};
use crate::error::Result;
use crate::openings::Opening;
use crate::outside::Transcript;
use crate::protocol::Book;

/// Writes the proof of an opening by the book.
///
/// # Errors
/// Those of [`book::open`].
pub(crate) fn open<C: CommitCurve>(
    workspace: &Workspace,
    bases: &Column<PointOf<C>>,
    book: Book,
    opening: &Opening<'_, ScalarOf<C>>,
    transcript: &mut dyn Transcript<C>,
) -> Result<()> {
    let quotient = Quotient { workspace, bases };
    book::open((workspace, bases), book, opening, transcript, quotient)
}

/// The commitment to `(p(X) - p(x)) / (X - x)`.
struct Quotient<'e, C: CommitCurve> {
    workspace: &'e Workspace,
    bases: &'e Column<PointOf<C>>,
}

impl<C: CommitCurve> OpenLast<C> for Quotient<'_, C> {
    fn blind(&mut self) -> (ScalarOf<C>, Projective<C>) {
        (ScalarOf::<C>::ZERO, Projective::ZERO)
    }

    fn open(
        self,
        polynomial: Last<ScalarOf<C>>,
        point: ScalarOf<C>,
        transcript: &mut dyn Transcript<C>,
    ) -> Result<()> {
        let quotient = Combination {
            terms: polynomial.terms(),
            // The value is the remainder.
            low: Vec::new(),
            roots: vec![point],
            scale: ScalarOf::<C>::ONE,
        };
        let opened = C::divide_and_commit(self.workspace, self.bases, &[quotient], Keep::Nothing)?;
        transcript.write_point(&stored::<C>(&opened.commitment))?;
        Ok(())
    }
}
