//! Sums of scaled vectors and geometric sequences. In place or into the caller's slices; memory: none.

use super::PIECE;
use crate::backend::{Backend, Kernel, Lanes};
use crate::field::KernelField;
use crate::parallel::Parallel;

/// Products that are added up before they are reduced.
const TERMS: usize = 64;

/// `values[i] += factor * other[i]` for every i of the shorter slice.
pub fn add_scaled<F: KernelField>(values: &mut [F], factor: &F, other: &[F]) {
    add_linear_combination(values, &[(*factor, other)]);
}

/// `output[i] = sum over the terms of factor * values[i]`. A term shorter than `output` counts as padded with
/// zeros; the rest of a longer one is ignored. No terms give zeros.
pub fn linear_combination<F: KernelField>(output: &mut [F], terms: &[(F, &[F])]) {
    output
        .chunks_mut(PIECE)
        .parallel()
        .for_each(|output| output.fill(F::ZERO));
    add_linear_combination(output, terms);
}

/// `output[i] += sum over the terms of factor * values[i]`, lengths as in [`linear_combination`].
pub fn add_linear_combination<'a, F: KernelField>(output: &mut [F], terms: &[(F, &'a [F])]) {
    output
        .chunks_mut(PIECE)
        .enumerate()
        .parallel()
        .for_each(|(piece, output)| {
            let start = piece * PIECE;
            let term = |(factor, values): &(F, &'a [F])| (*factor, values.get(start..).unwrap_or(&[]));
            let is_whole = |(_, values): &(F, &[F])| values.len() >= output.len();
            let (whole, shorter): (Vec<_>, Vec<_>) = terms.iter().map(term).partition(is_whole);
            for terms in whole.chunks(TERMS) {
                F::run_add_scaled(Backend::detect(), AddScaled { to: output, terms });
            }
            for term in &shorter {
                F::run_add_scaled(
                    Backend::detect(),
                    AddScaled {
                        to: &mut output[..term.1.len()],
                        terms: std::slice::from_ref(term),
                    },
                );
            }
        });
}

/// `to += sum of factor * values`, for at most [`TERMS`] terms, none of them shorter than `to`.
pub struct AddScaled<'a, F> {
    to: &'a mut [F],
    terms: &'a [(F, &'a [F])],
}

impl<F: KernelField> Kernel<F> for AddScaled<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) {
        let shifted = |(factor, values): &(F, _)| (lanes.shifted(factor), *values);
        let terms: Vec<(F, &[F])> = self.terms.iter().map(shifted).collect();
        for (i, to) in self.to.chunks_mut(W).enumerate() {
            let mut columns = lanes.no_columns();
            for (factor, values) in &terms {
                let value = lanes.load(&values[i * W..]);
                lanes.add_product(&mut columns, &value, &lanes.splat(factor));
            }
            let sum = lanes.sum(&lanes.reduced(&columns), &lanes.load(to));
            lanes.store(&lanes.canonical(sum), to);
        }
    }
}

/// `values[i] *= base^(start + i)`: the shift to or from a coset, for a chunk that begins at index `start`.
pub fn scale_powers<F: KernelField>(values: &mut [F], start: u64, base: &F) {
    values
        .chunks_mut(PIECE)
        .enumerate()
        .parallel()
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
        .chunks_mut(PART)
        .enumerate()
        .parallel()
        .for_each(|(part, to)| {
            let first = first.times(&base.pow([(part * PART) as u64]));
            powers_on_one_thread(to, first, base);
        });
}

/// The same, on the thread that calls.
pub fn powers_on_one_thread<F: KernelField>(to: &mut [F], first: F, base: &F) {
    F::run_powers(Backend::detect(), Powers { to, first, base });
}

pub struct Powers<'a, F> {
    to: &'a mut [F],
    first: F,
    base: &'a F,
}

impl<F: KernelField> Kernel<F> for Powers<'_, F> {
    type Output = ();

    /// Two vectors of powers side by side hide a product's latency.
    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) {
        let mut start = [[self.first; W]; 2];
        let mut power = self.first;
        for value in start.as_flattened_mut() {
            *value = power;
            power = power.times(self.base);
        }
        let step = self.base.pow([2 * W as u64]);
        let step = lanes.splat(&lanes.shifted(&step));
        let mut powers = [lanes.load(&start[0]), lanes.load(&start[1])];
        for to in self.to.chunks_mut(2 * W) {
            for (power, to) in powers.iter_mut().zip(to.chunks_mut(W)) {
                lanes.store(&lanes.canonical(*power), to);
                *power = lanes.product(power, &step);
            }
        }
    }
}
