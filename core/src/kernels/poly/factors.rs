//! What grand products are made of: factors from values, names of cells and challenges. In place or into the caller's slices;
//! memory: none.

use rayon::prelude::*;

use super::{PIECE, eight};
use crate::kernels::field::KernelField;

/// The constants of a permutation argument's factors.
#[derive(Clone, Copy, Debug)]
pub struct PermutationChallenges<F> {
    /// Multiplies names.
    pub beta: F,
    /// Is added.
    pub gamma: F,
    /// The factor between the names of neighbouring columns.
    pub delta: F,
}

/// One column's part in a permutation's product: `numerators *= values + names + gamma`,
/// `denominators *= values + beta * sigmas + gamma`, and `names *= delta`, which makes them the next column's (they have beta in
/// them). All slices have one length.
pub fn multiply_permutation_factors<F: KernelField>(
    challenges: &PermutationChallenges<F>,
    values: &[F],
    sigmas: &[F],
    names: &mut [F],
    numerators: &mut [F],
    denominators: &mut [F],
) {
    let PermutationChallenges { beta, gamma, delta } = challenges;
    values
        .par_chunks(PIECE)
        .zip(sigmas.par_chunks(PIECE))
        .zip(names.par_chunks_mut(PIECE))
        .zip(numerators.par_chunks_mut(PIECE))
        .zip(denominators.par_chunks_mut(PIECE))
        .for_each(|((((values, sigmas), names), numerators), denominators)| {
            let done = eight::multiply_permutation_factors(
                challenges,
                values,
                sigmas,
                names,
                numerators,
                denominators,
            );
            for i in done..values.len() {
                let shifted = values[i].plus(gamma);
                numerators[i] = numerators[i].times(&shifted.plus(&names[i]));
                denominators[i] = denominators[i].times(&shifted.plus(&sigmas[i].times(beta)));
                names[i] = names[i].times(delta);
            }
        });
}

/// `out[i] = (left[i] + beta) * (right[i] + gamma)`, of slices of one length.
pub fn multiply_shifted<F: KernelField>((left, beta): (&[F], &F), (right, gamma): (&[F], &F), out: &mut [F]) {
    left.par_chunks(PIECE)
        .zip(right.par_chunks(PIECE))
        .zip(out.par_chunks_mut(PIECE))
        .for_each(|((left, right), out)| {
            let done = eight::multiply_shifted((left, beta), (right, gamma), out);
            let operands = left[done..].iter().zip(&right[done..]);
            for ((left, right), out) in operands.zip(&mut out[done..]) {
                *out = left.plus(beta).times(&right.plus(gamma));
            }
        });
}

/// `out[i] = a * b`, or `a * b * c`, of what `factors(i)` points at. One thread.
pub fn gathered_products<'a, F: KernelField>(
    out: &mut [F],
    factors: impl Fn(usize) -> (&'a F, &'a F, Option<&'a F>),
) {
    let done = eight::gathered_products(out, &factors);
    for (i, out) in out.iter_mut().enumerate().skip(done) {
        let (a, b, c) = factors(i);
        *out = a.times(b);
        if let Some(c) = c {
            *out = out.times(c);
        }
    }
}
