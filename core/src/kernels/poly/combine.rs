//! Sums of scaled vectors and geometric sequences. In place or into the caller's slices; memory: none.

use rayon::prelude::*;

use super::{PIECE, eight};
use crate::kernels::field::KernelField;

/// `values[i] += factor * other[i]` for every i of the shorter slice.
pub fn add_scaled<F: KernelField>(values: &mut [F], factor: &F, other: &[F]) {
    add_linear_combination(values, &[(*factor, other)]);
}

/// `output[i] = sum over the terms of factor * values[i]`. A term shorter than `output` counts as padded with zeros;
/// what a longer one has beyond is ignored. No terms give zeros.
pub fn linear_combination<F: KernelField>(output: &mut [F], terms: &[(F, &[F])]) {
    output
        .par_chunks_mut(PIECE)
        .for_each(|output| output.fill(F::ZERO));
    add_linear_combination(output, terms);
}

/// `output[i] += sum over the terms of factor * values[i]`, lengths as in [`linear_combination`].
pub fn add_linear_combination<'a, F: KernelField>(output: &mut [F], terms: &[(F, &'a [F])]) {
    output
        .par_chunks_mut(PIECE)
        .enumerate()
        .for_each(|(piece, output)| {
            let start = piece * PIECE;
            let term = |(factor, values): &(F, &'a [F])| (*factor, values.get(start..).unwrap_or(&[]));
            let is_whole = |(_, values): &(F, &[F])| values.len() >= output.len();
            let (whole, shorter): (Vec<_>, Vec<_>) = terms.iter().map(term).partition(is_whole);
            let done = eight::add_scaled(output, &whole);
            let whole = whole.iter().map(|(factor, values)| (factor, done, *values));
            let shorter = shorter.iter().map(|(factor, values)| (factor, 0, *values));
            for (factor, from, values) in whole.chain(shorter) {
                let values = values.get(from..).unwrap_or(&[]);
                for (output, value) in output[from..].iter_mut().zip(values) {
                    *output = output.plus(&value.times(factor));
                }
            }
        });
}

/// `values[i] *= base^(start + i)`: the shift to or from a coset, for a chunk that begins at index `start`.
pub fn scale_powers<F: KernelField>(values: &mut [F], start: u64, base: &F) {
    values
        .par_chunks_mut(PIECE)
        .enumerate()
        .for_each(|(piece, values)| {
            let mut power = base.pow([start + (piece * PIECE) as u64]);
            for value in values {
                *value = value.times(&power);
                power = power.times(base);
            }
        });
}

/// `output[i] = first * base^i`.
pub fn powers<F: KernelField>(output: &mut [F], first: &F, base: &F) {
    const PART: usize = 4 * PIECE;
    output
        .par_chunks_mut(PART)
        .enumerate()
        .for_each(|(part, output)| {
            let first = first.times(&base.pow([(part * PART) as u64]));
            let done = eight::powers(output, &first, base);
            let mut power = match output[..done].last() {
                Some(last) => last.times(base),
                None => first,
            };
            for output in &mut output[done..] {
                *output = power;
                power = power.times(base);
            }
        });
}
