//! What grand products are made of: factors from values, names of cells and challenges. In place or into the
//! caller's slices; memory: none.

use crate::backend::{Backend, Kernel, Lanes};
use crate::field::KernelField;

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
/// `denominators *= values + beta * sigmas + gamma`, and `names *= delta`, which makes them the next column's
/// (they have beta in them). All slices have one length. One thread.
pub fn multiply_permutation_factors<F: KernelField>(
    challenges: &PermutationChallenges<F>,
    values: &[F],
    sigmas: &[F],
    names: &mut [F],
    numerators: &mut [F],
    denominators: &mut [F],
) {
    F::run_permutation_factors(
        Backend::detect(),
        PermutationFactors {
            challenges,
            values,
            sigmas,
            names,
            numerators,
            denominators,
        },
    );
}

pub struct PermutationFactors<'a, F> {
    challenges: &'a PermutationChallenges<F>,
    values: &'a [F],
    sigmas: &'a [F],
    names: &'a mut [F],
    numerators: &'a mut [F],
    denominators: &'a mut [F],
}

impl<F: KernelField> Kernel<F> for PermutationFactors<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) {
        let PermutationChallenges { beta, gamma, delta } = self.challenges;
        let (beta, delta) = (
            lanes.splat(&lanes.shifted(beta)),
            lanes.splat(&lanes.shifted(delta)),
        );
        let gamma = lanes.splat(gamma);
        let read = self.values.chunks(W).zip(self.sigmas.chunks(W));
        let products = self.numerators.chunks_mut(W).zip(self.denominators.chunks_mut(W));
        let written = self.names.chunks_mut(W).zip(products);
        for ((values, sigmas), (names, (numerators, denominators))) in read.zip(written) {
            let name = lanes.load(names);
            let shifted = lanes.sum(&lanes.load(values), &gamma);
            let numerator = lanes.load_shifted(numerators);
            let factor = lanes.carried(lanes.sum(&shifted, &name));
            lanes.store(&lanes.canonical(lanes.product(&numerator, &factor)), numerators);
            let image = lanes.product(&lanes.load(sigmas), &beta);
            let denominator = lanes.load_shifted(denominators);
            let factor = lanes.carried(lanes.sum(&shifted, &image));
            lanes.store(
                &lanes.canonical(lanes.product(&denominator, &factor)),
                denominators,
            );
            lanes.store(&lanes.canonical(lanes.product(&name, &delta)), names);
        }
    }
}

/// `out[i] = (left[i] + beta) * (right[i] + gamma)`, of slices of one length. One thread.
pub fn multiply_shifted<F: KernelField>(left: (&[F], &F), right: (&[F], &F), out: &mut [F]) {
    let to = out;
    F::run_shifted(Backend::detect(), Shifted { left, right, to });
}

pub struct Shifted<'a, F> {
    left: (&'a [F], &'a F),
    right: (&'a [F], &'a F),
    to: &'a mut [F],
}

impl<F: KernelField> Kernel<F> for Shifted<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) {
        // The left sum is shifted: below 32 p, and the right one below 2 p.
        let beta = lanes.unpack_shifted(&lanes.gather([self.left.1; W]));
        let gamma = lanes.splat(self.right.1);
        let operands = self.left.0.chunks(W).zip(self.right.0.chunks(W));
        for (to, (left, right)) in self.to.chunks_mut(W).zip(operands) {
            let left = lanes.sum(&lanes.load_shifted(left), &beta);
            let right = lanes.sum(&lanes.load(right), &gamma);
            let product = lanes.product(&lanes.carried(left), &lanes.carried(right));
            lanes.store(&lanes.canonical(product), to);
        }
    }
}

/// `out[i] = a * b`, or `a * b * c`, of what `factors(i)` points at. One thread.
pub fn gathered_products<'a, F: KernelField>(
    out: &mut [F],
    factors: impl Fn(usize) -> (&'a F, &'a F, Option<&'a F>),
) {
    F::run_gathered(
        Backend::detect(),
        Gathered {
            to: out,
            factors: &factors,
        },
    );
}

pub struct Gathered<'a, 'f, F> {
    to: &'a mut [F],
    factors: &'a dyn Fn(usize) -> (&'f F, &'f F, Option<&'f F>),
}

impl<F: KernelField> Kernel<F> for Gathered<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) {
        let one = F::ONE;
        for (i, to) in self.to.chunks_mut(W).enumerate() {
            // Lanes beyond the last repeat it.
            let last = to.len() - 1;
            let factors: [_; W] = std::array::from_fn(|lane| (self.factors)(i * W + lane.min(last)));
            let a = lanes.unpack_shifted(&lanes.gather(factors.map(|(a, _, _)| a)));
            let b = lanes.unpack(&lanes.gather(factors.map(|(_, b, _)| b)));
            let mut product = lanes.product(&a, &b);
            if factors.iter().any(|(_, _, c)| c.is_some()) {
                let c = lanes.gather(factors.map(|(_, _, c)| c.unwrap_or(&one)));
                product = lanes.product(&product, &lanes.unpack_shifted(&c));
            }
            lanes.store(&lanes.canonical(product), to);
        }
    }
}
