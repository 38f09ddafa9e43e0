//! The multi-point opening of the halo2 book over columns, up to its last polynomial, which
//! [its ending](crate::Ending) opens.
//!
//! With the sets `i` of polynomials `p_ij` that are opened at the same points `S_i`, `Z_i` zero on `S_i`, and
//! powers of challenges as [`Book`] says, the proof commits to
//!
//! ```text
//! f(X) = sum over i of x_2^i * (q_i(X) / Z_i(X)),  q_i = sum over j of x_1^j * p_ij,  without remainders
//! ```
//!
//! gives each `q_i(x_3)`, and opens `x_4^s * f + sum over i of x_4^i * q_i` at `x_3` (The halo2 Book,
//! *Multipoint opening argument*). One pass over all polynomials divides, and keeps `f` and each `q_i`, of
//! which one more pass evaluates and one adds up or divides. The polynomials of a set stand in the order in
//! which queries first name them, as in [`shplonk`](crate::shplonk).

use std::io;

use ark_ec::short_weierstrass::Projective;
use ark_ff::{AdditiveGroup, Field};
use spillproof_commit::{Combination, CommitCurve, Keep};
use spillproof_engine::column::{Column, Workspace};
use spillproof_engine::stream::evaluate_all;
use spillproof_kernels::curve::Curve;
use spillproof_kernels::field::KernelField;

use crate::curve::{PointOf, ScalarOf, stored};
use crate::error::Result;
use crate::openings::{Opening, RotationSet, Sum, powers, rotation_sets, scaled};
use crate::outside::Transcript;
use crate::protocol::{Book, Powers, Sets, Width};

impl Width {
    fn of<F: KernelField>(self, challenge: F) -> F {
        match self {
            Self::Whole => challenge,
            Self::Half => {
                let integer = challenge.into_bigint();
                let [low, high] = [0, 1].map(|limb| integer.as_ref().get(limb).copied().unwrap_or(0));
                F::from(u128::from(high) << 64 | u128::from(low))
            }
        }
    }
}

impl Book {
    /// The powers of a challenge for so many polynomials, the first one's first.
    fn weights<F: KernelField>(self, challenge: F, width: Width, count: usize) -> Vec<F> {
        // A power of the whole challenge, of which then a part may count.
        let powers = powers(challenge).map(|power| width.of(power));
        let mut all: Vec<F> = powers.take(count).collect();
        match self.powers {
            Powers::Descending => all.reverse(),
            Powers::Ascending => {}
        }
        all
    }

    /// Puts the sets in order.
    fn sort<F>(self, sets: &mut [RotationSet<F>]) {
        match self.sets {
            Sets::AsNamed => {}
            Sets::BySize => sets.sort_by_key(|set| set.points.len()),
        }
    }
}

/// What opens the last polynomial.
pub(crate) trait OpenLast<C: Curve> {
    /// The blind of `f`, and the point that it adds to the commitment.
    fn blind(&mut self) -> (ScalarOf<C>, Projective<C>);
    /// Opens `polynomial` at `point`.
    ///
    /// # Errors
    /// The engine's, and the transcript's.
    fn open(
        self,
        polynomial: Last<ScalarOf<C>>,
        point: ScalarOf<C>,
        transcript: &mut dyn Transcript<C>,
    ) -> Result<()>;
}

/// The last polynomial of an opening: a sum of columns, which go with it.
pub(crate) struct Last<F> {
    pub terms: Vec<(F, Column<F>)>,
    pub blind: F,
}

impl<F: Copy> Last<F> {
    /// Its terms, as stages take them.
    pub fn terms(&self) -> Sum<'_, F> {
        self.terms
            .iter()
            .map(|(factor, column)| (*factor, column))
            .collect()
    }
}

/// The polynomials of a set, folded.
struct Folded<'o, F> {
    terms: Sum<'o, F>,
    blind: F,
}

/// Writes the proof of an opening.
///
/// # Errors
/// For two queries of one polynomial at one point, or none at all; the engine's, and the transcript's.
pub(crate) fn open<C: CommitCurve>(
    (workspace, bases): (&Workspace, &Column<PointOf<C>>),
    book: Book,
    opening: &Opening<'_, ScalarOf<C>>,
    transcript: &mut dyn Transcript<C>,
    mut ending: impl OpenLast<C>,
) -> Result<()> {
    let (x1, x2) = (transcript.challenge(), transcript.challenge());
    opening.check()?;
    let (mut sets, _) = rotation_sets(opening);
    book.sort(&mut sets);
    let (zero, one) = (ScalarOf::<C>::ZERO, ScalarOf::<C>::ONE);
    // Each polynomial of a set with its power of x_1, and the blind of their sum.
    let folded: Vec<Folded<'_, ScalarOf<C>>> = sets
        .iter()
        .map(|set| {
            let weights = book.weights(x1, book.width, set.members.len());
            let (mut terms, mut blind) = (Vec::with_capacity(weights.len()), zero);
            for (weight, (polynomial, _)) in weights.iter().zip(&set.members) {
                terms.extend(opening.terms(*weight, *polynomial));
                blind += *weight * opening.blind(*polynomial);
            }
            Folded { terms, blind }
        })
        .collect();
    let quotients: Vec<_> = (sets.iter().zip(&folded))
        .zip(book.weights(x2, Width::Whole, sets.len()))
        .map(|((set, folded), scale)| Combination {
            terms: folded.terms.clone(),
            low: Vec::new(),
            roots: set.points.clone(),
            scale,
        })
        .collect();
    let (blind, hiding) = ending.blind();
    let opened = C::divide_and_commit(workspace, bases, &quotients, Keep::SumAndNumerators)?;
    drop(quotients);
    let quotient = opened
        .sum
        .ok_or_else(|| io::Error::other("an opening without queries"))?;
    transcript.write_point(&stored::<C>(&(hiding + opened.commitment).into()))?;

    let folded: Vec<Folded<'_, ScalarOf<C>>> = (folded.into_iter().zip(&opened.numerators))
        .map(|(folded, sum)| Folded {
            terms: scaled(one, &folded.terms, sum.as_ref()),
            ..folded
        })
        .collect();
    let x3 = book.width.of(transcript.challenge());
    for folded in &folded {
        let queries: Vec<_> = folded
            .terms
            .iter()
            .map(|(_, column)| (*column, vec![x3]))
            .collect();
        let values = evaluate_all(&queries)?;
        let terms = folded.terms.iter().zip(values.iter().flatten());
        transcript.write_scalar(terms.fold(zero, |sum, ((factor, _), value)| sum + *factor * *value))?;
    }

    let x4 = transcript.challenge();
    let mut weights = book.weights(x4, book.width, folded.len() + 1);
    let of_quotient = match book.powers {
        Powers::Descending => weights.remove(0),
        Powers::Ascending => weights.remove(folded.len()),
    };
    let mut terms = vec![(of_quotient, quotient)];
    let mut last_blind = of_quotient * blind;
    for (folded, weight) in folded.iter().zip(&weights) {
        let scaled = scaled(*weight, &folded.terms, None);
        terms.extend(
            scaled
                .into_iter()
                .map(|(factor, column)| (factor, column.clone())),
        );
        last_blind += *weight * folded.blind;
    }
    // Only the last polynomial keeps them.
    drop(folded);
    drop(opened.numerators);
    let last = Last {
        terms,
        blind: last_blind,
    };
    ending.open(last, x3, transcript)
}
