//! Sums of scaled vectors and geometric sequences. In place or into the caller's slices; memory: none.

use rayon::prelude::*;

use super::PIECE;
use crate::kernels::field::KernelField;

/// `values[i] += factor * other[i]` for every i of the shorter slice.
pub fn add_scaled<F: KernelField>(values: &mut [F], factor: &F, other: &[F]) {
    values
        .par_chunks_mut(PIECE)
        .zip(other.par_chunks(PIECE))
        .for_each(|(values, other)| {
            for (value, other) in values.iter_mut().zip(other) {
                *value = value.plus(&other.times(factor));
            }
        });
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
pub fn add_linear_combination<F: KernelField>(output: &mut [F], terms: &[(F, &[F])]) {
    output
        .par_chunks_mut(PIECE)
        .enumerate()
        .for_each(|(piece, output)| {
            let start = piece * PIECE;
            for (factor, values) in terms {
                let values = values.get(start..).unwrap_or(&[]);
                for (output, value) in output.iter_mut().zip(values) {
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
    output
        .par_chunks_mut(PIECE)
        .enumerate()
        .for_each(|(piece, output)| {
            let mut power = first.times(&base.pow([(piece * PIECE) as u64]));
            for output in output {
                *output = power;
                power = power.times(base);
            }
        });
}
