//! GWC over columns.
//!
//! For each point `z` in turn, the proof commits to `(sum over j of v^j * (p_j(X) - p_j(z))) / (X - z)` over the polynomials
//! that are opened there (Gabizon, Williamson and Ciobotaru 2019, section 3): one pass over those polynomials each, and none
//! is stored. Points stand in the order in which queries first name them.

use spillproof::column::{Column, Workspace};
use spillproof::commit::multiopen::Combination;

use crate::curve::{Point, Scalar};
use crate::error::Result;
use crate::openings::{Opening, divide_and_commit, powers};
use crate::protocol::Transcript;

/// Writes the proof of an opening.
///
/// # Errors
/// For two queries of one polynomial at one point; the engine's, and the transcript's.
pub fn open(
    workspace: &Workspace,
    bases: &Column<Point>,
    opening: &Opening<'_>,
    transcript: &mut dyn Transcript,
) -> Result<()> {
    let v = transcript.challenge();
    opening.check()?;
    let mut points: Vec<Scalar> = Vec::new();
    for query in &opening.queries {
        if !points.contains(&query.point) {
            points.push(query.point);
        }
    }
    for point in points {
        let (mut terms, mut value) = (Vec::new(), Scalar::from(0u64));
        let here = opening.queries.iter().filter(|query| query.point == point);
        for (query, factor) in here.zip(powers(v)) {
            terms.extend(opening.term(factor, query.polynomial));
            value += factor * query.evaluation;
        }
        let quotient = Combination {
            terms,
            low: vec![value],
            roots: vec![point],
            scale: Scalar::from(1u64),
        };
        let (commitment, _) = divide_and_commit(workspace, bases, &[quotient], false)?;
        transcript.write_point(&commitment)?;
    }
    Ok(())
}
