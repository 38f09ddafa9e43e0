//! GWC over columns.
//!
//! For each point `z` in turn, the proof commits to `(sum over j of v^j * (p_j(X) - p_j(z))) / (X - z)` over
//! the polynomials that are opened there (Gabizon, Williamson and Ciobotaru 2019, section 3): one pass over
//! those polynomials each, and none is stored. Points stand in the order in which queries first name them.

use ark_ff::{AdditiveGroup, Field};
use spillproof_commit::{Combination, CommitCurve, Keep};
use spillproof_engine::column::{Column, Workspace};

use crate::curve::{PointOf, ScalarOf, stored};
use crate::error::Result;
use crate::openings::{Opening, powers};
use crate::outside::Transcript;

/// Writes the proof of an opening.
///
/// # Errors
/// For two queries of one polynomial at one point; the engine's, and the transcript's.
pub(crate) fn open<C: CommitCurve>(
    workspace: &Workspace,
    bases: &Column<PointOf<C>>,
    opening: &Opening<'_, ScalarOf<C>>,
    transcript: &mut dyn Transcript<C>,
) -> Result<()> {
    let v = transcript.challenge();
    opening.check()?;
    let mut points: Vec<ScalarOf<C>> = Vec::new();
    for query in &opening.queries {
        if !points.contains(&query.point) {
            points.push(query.point);
        }
    }
    for point in points {
        let (mut terms, mut value) = (Vec::new(), ScalarOf::<C>::ZERO);
        let here = opening.queries.iter().filter(|query| query.point == point);
        for (query, factor) in here.zip(powers(v)) {
            terms.extend(opening.terms(factor, query.polynomial));
            value += factor * query.evaluation;
        }
        let quotient = Combination {
            terms,
            low: vec![value],
            roots: vec![point],
            scale: ScalarOf::<C>::ONE,
        };
        let opened = C::divide_and_commit(workspace, bases, &[quotient], Keep::Nothing)?;
        transcript.write_point(&stored::<C>(&opened.commitment))?;
    }
    Ok(())
}
