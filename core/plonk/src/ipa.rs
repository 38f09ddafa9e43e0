//! zcash's multi-point opening over columns, with an inner-product opening at its end.
//!
//! With the sets `i` of polynomials `p_ij` that are opened at the same points `S_i`,
//! `q_i = sum over j of x_1^(m_i - 1 - j) * p_ij`, and `Z_i` zero on `S_i`, the proof commits to
//!
//! ```text
//! q'(X) = sum over i of x_2^(s - 1 - i) * (q_i(X) / Z_i(X)),  without remainders
//! ```
//!
//! gives each `q_i(x_3)`, and opens `x_4^s * q' + sum over i of x_4^(s - 1 - i) * q_i` at `x_3` (The halo2
//! Book, *Multipoint opening argument*). One pass over all polynomials divides, and keeps `q'` and each
//! `q_i`, of which one more pass evaluates and one adds up. Sets, and the polynomials of a set, stand in the
//! order in which queries first name them, as in [`shplonk`](crate::shplonk).

use std::io;

use ark_ec::short_weierstrass::Affine;
use spillproof_commit::ipa::{Broken, Conversation, Params};
use spillproof_commit::{Combination, CommitCurve, Keep};
use spillproof_engine::column::{Column, Placement};
use spillproof_engine::stream::{evaluate_all, linear_combination};
use spillproof_kernels::curve::Curve;
use spillproof_kernels::field::KernelField;

use crate::curve::{ScalarOf, stored};
use crate::error::Result;
use crate::openings::{Opening, powers, rotation_sets, scaled};
use crate::outside::{Randomness, Transcript};

/// Columns that are added up in one pass: each takes a reader.
const SUMMED_TOGETHER: usize = 32;

/// Writes the proof of an opening.
///
/// # Errors
/// For two queries of one polynomial at one point, or none at all; the engine's, and the transcript's.
pub(crate) fn open<C: CommitCurve>(
    params: &Params<C>,
    opening: &Opening<'_, ScalarOf<C>>,
    transcript: &mut dyn Transcript<C>,
    randomness: &mut dyn Randomness<ScalarOf<C>>,
) -> Result<()> {
    let mut talk = Talk {
        transcript,
        randomness,
    };
    let (x1, x2) = (talk.transcript.challenge(), talk.transcript.challenge());
    opening.check()?;
    let (sets, _) = rotation_sets(opening);
    let zero = ScalarOf::<C>::from(0u64);
    // Each polynomial of a set with its power of x_1, and the blind of their sum.
    let folded: Vec<Folded<'_, C>> = sets
        .iter()
        .map(|set| {
            let factors = descending(x1, set.members.len());
            let members = factors.iter().zip(&set.members);
            let blinds = set
                .members
                .iter()
                .map(|(polynomial, _)| opening.blind(*polynomial));
            Folded {
                terms: members
                    .filter_map(|(factor, (polynomial, _))| opening.term(*factor, *polynomial))
                    .collect(),
                blind: blinds.fold(zero, |sum, blind| sum * x1 + blind),
            }
        })
        .collect();
    let quotients: Vec<_> = (sets.iter().zip(&folded))
        .zip(descending(x2, sets.len()))
        .map(|((set, folded), scale)| Combination {
            terms: folded.terms.clone(),
            low: Vec::new(),
            roots: set.points.clone(),
            scale,
        })
        .collect();
    let workspace = params.g.workspace();
    let blind = talk.randomness.scalar();
    let opened = C::divide_and_commit(workspace, &params.g, &quotients, Keep::SumAndNumerators)?;
    drop(quotients);
    let quotient = opened
        .sum
        .ok_or_else(|| io::Error::other("an opening without queries"))?;
    let commitment = opened.commitment + params.w * blind;
    talk.write_point(&commitment.into())?;

    let one = ScalarOf::<C>::from(1u64);
    let folded: Vec<Folded<'_, C>> = (folded.into_iter().zip(&opened.numerators))
        .map(|(folded, sum)| Folded {
            terms: scaled(one, &folded.terms, sum.as_ref()),
            ..folded
        })
        .collect();
    let x3 = talk.transcript.challenge();
    for folded in &folded {
        let queries: Vec<_> = folded
            .terms
            .iter()
            .map(|(_, column)| (*column, vec![x3]))
            .collect();
        let values = evaluate_all(&queries)?;
        let terms = folded.terms.iter().zip(values.iter().flatten());
        talk.transcript
            .write_scalar(terms.fold(zero, |sum, ((factor, _), value)| sum + *factor * *value))?;
    }

    let x4 = talk.transcript.challenge();
    let factors = descending(x4, folded.len() + 1);
    let mut terms = vec![(factors[0], &quotient)];
    let mut opened_blind = blind;
    for (folded, factor) in folded.iter().zip(&factors[1..]) {
        terms.extend(scaled(*factor, &folded.terms, None));
        opened_blind = opened_blind * x4 + folded.blind;
    }
    let sum = total(&terms, params.g.len())?;
    drop(terms);
    drop(folded);
    drop((quotient, opened.numerators));
    Ok(C::open(params, &sum, opened_blind, x3, &mut talk)?)
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

/// The polynomials of a set, folded.
struct Folded<'o, C: Curve> {
    terms: Vec<(ScalarOf<C>, &'o Column<ScalarOf<C>>)>,
    blind: ScalarOf<C>,
}

/// `count` powers of a challenge, the highest one first.
fn descending<F: KernelField>(base: F, count: usize) -> Vec<F> {
    let mut all: Vec<F> = powers(base).take(count).collect();
    all.reverse();
    all
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
