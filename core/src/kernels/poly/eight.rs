//! The scans' loops in eight lanes ([`crate::kernels::lanes`]), on native limbs.
//!
//! Lanes divide a product by 2^260, native form asks for 2^256: one operand is taken 16 times, by shifting limbs on the way
//! in, or a constant is multiplied by 16 once. Sequences are cut into [`CHAINS`] blocks of one length, a lane for each, so that
//! what carries from value to value within a block runs side by side.
//!
//! Bounds, in multiples of p < 2^255: a product of a and b is below `a b / 32 + 2` (`lanes::field`). Horner's sums: a value
//! below 4 times a point below 1, and a coefficient, 2.2 + 1. Running products: x times 16 is below `x / 2 + 2`, so below 4
//! throughout. A sum of [`TERMS`] products of values below 1 that is reduced once: below `TERMS / 32 + 2` = 4; its columns hold
//! at most `10 TERMS` terms below 2^52 before the reduction, below 2^62. A permutation's factors: 1 + 1 + 1 and 2.1 + 1 + 1, each
//! times 16, below 4.1. All of that is in reach of `settled` (7).
//!
//! Every function says whether it has done its work, or how much; not at all if the machine or the field has no lanes.

/// Coefficients that [`evaluate`] takes at a time.
pub(super) const GROUP: usize = 32;
/// Blocks of a sequence that carries.
pub(super) const CHAINS: usize = 16;

#[cfg(target_arch = "x86_64")]
pub(super) use lanes::*;
#[cfg(not(target_arch = "x86_64"))]
pub(super) use none::*;

#[cfg(target_arch = "x86_64")]
mod lanes {
    use super::super::PermutationChallenges;
    use super::{CHAINS, GROUP};
    use crate::kernels::field::KernelField;
    use crate::kernels::lanes::field::{Eight, Lanes};
    use crate::kernels::lanes::{Ifma, Kernel};
    use crate::kernels::platform::Platform;

    const LANES: usize = 8;
    const PAIR: usize = CHAINS / LANES;
    /// Products that are added up before they are reduced.
    const TERMS: usize = 64;

    fn lanes<F: KernelField>() -> Option<(Ifma, Lanes<F>)> {
        if Platform::detect() != Platform::Avx512Ifma {
            return None;
        }
        let ifma = Ifma::detect()?;
        Some((ifma, Lanes::new(ifma)?))
    }

    fn sixteenfold<F: KernelField>(value: &F) -> F {
        value.times(&F::from(16u64))
    }

    struct Evaluate<'a, F> {
        lanes: Lanes<F>,
        coefficients: &'a [F],
        /// 16 times the point's 8th and 32nd powers.
        eighth: F,
        step: F,
        values: &'a mut [F; LANES],
    }

    impl<F: KernelField> Kernel for Evaluate<'_, F> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let lanes = self.lanes;
            let step = lanes.splat(&self.step);
            let mut sums = [lanes.splat(&F::ZERO); GROUP / LANES];
            for group in self.coefficients.chunks_exact(GROUP).rev() {
                for (sum, eight) in sums.iter_mut().zip(group.chunks_exact(LANES)) {
                    let eight = lanes.unpack(&lanes.gather_run(eight));
                    *sum = lanes.carried(lanes.sum(&lanes.product(sum, &step), &eight));
                }
            }
            let eighth = lanes.splat(&self.eighth);
            let mut all = sums[GROUP / LANES - 1];
            for sum in sums[..GROUP / LANES - 1].iter().rev() {
                all = lanes.carried(lanes.sum(&lanes.product(&all, &eighth), sum));
            }
            lanes.store_run(&lanes.settled(all), self.values);
        }
    }

    /// The value at `point` of the polynomial with these coefficients, a multiple of [`GROUP`].
    pub(in super::super) fn evaluate<F: KernelField>(coefficients: &[F], point: &F) -> Option<F> {
        let (ifma, lanes) = lanes()?;
        let mut values = [F::ZERO; LANES];
        let eighth = point.squared().squared().squared();
        ifma.run(Evaluate {
            lanes,
            coefficients,
            eighth: sixteenfold(&eighth),
            step: sixteenfold(&eighth.squared().squared()),
            values: &mut values,
        });
        let horner = |sum: F, value: &F| sum.times(point).plus(value);
        Some(values.iter().rev().fold(F::ZERO, horner))
    }

    struct AddScaled<'a, F> {
        lanes: Lanes<F>,
        to: &'a mut [F],
        /// Factors 16 times, and values as long as `to`.
        terms: &'a [(F, &'a [F])],
    }

    impl<F: KernelField> Kernel for AddScaled<'_, F> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let lanes = self.lanes;
            for (i, to) in self.to.chunks_exact_mut(LANES).enumerate() {
                let mut columns = lanes.no_columns();
                for (factor, values) in self.terms {
                    let value = lanes.unpack(&lanes.gather_run(&values[i * LANES..]));
                    lanes.add_product(&mut columns, &value, &lanes.splat(factor));
                }
                let sum = lanes.sum(&lanes.reduced(columns), &lanes.unpack(&lanes.gather_run(to)));
                lanes.store_run(&lanes.settled(sum), to);
            }
        }
    }

    /// `to += sum of factor * values`, for values as long as `to`; gives how many elements are done.
    pub(in super::super) fn add_scaled<F: KernelField>(to: &mut [F], terms: &[(F, &[F])]) -> usize {
        let Some((ifma, lanes)) = lanes() else { return 0 };
        let done = to.len() - to.len() % LANES;
        for terms in terms.chunks(TERMS) {
            let terms: Vec<(F, &[F])> = terms
                .iter()
                .map(|(factor, values)| (sixteenfold(factor), &values[..done]))
                .collect();
            let to = &mut to[..done];
            ifma.run(AddScaled {
                lanes,
                to,
                terms: &terms,
            });
        }
        done
    }

    struct Powers<'a, F> {
        lanes: Lanes<F>,
        to: &'a mut [F],
        first: &'a [F; CHAINS],
        /// 16 times the base's [`CHAINS`]th power.
        step: F,
    }

    impl<F: KernelField> Kernel for Powers<'_, F> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let lanes = self.lanes;
            let step = lanes.splat(&self.step);
            let mut powers = lanes.chains(self.first);
            for to in self.to.chunks_exact_mut(CHAINS) {
                for (power, to) in powers.iter_mut().zip(to.chunks_exact_mut(LANES)) {
                    lanes.store_run(&lanes.settled(*power), to);
                    *power = lanes.product(power, &step);
                }
            }
        }
    }

    /// `to[i] = first * base^i`; gives how many are done.
    pub(in super::super) fn powers<F: KernelField>(to: &mut [F], first: &F, base: &F) -> usize {
        let Some((ifma, lanes)) = lanes() else { return 0 };
        let done = to.len() - to.len() % CHAINS;
        let mut start = [*first; CHAINS];
        for i in 1..CHAINS {
            start[i] = start[i - 1].times(base);
        }
        let step = &base.pow([CHAINS as u64]);
        ifma.run(Powers {
            lanes,
            to: &mut to[..done],
            first: &start,
            step: sixteenfold(step),
        });
        done
    }

    impl<F: KernelField> Lanes<F> {
        /// A value for each chain.
        #[inline(always)]
        fn chains(self, values: &[F; CHAINS]) -> [Eight; PAIR] {
            std::array::from_fn(|pair| self.unpack(&self.gather_run(&values[pair * LANES..])))
        }

        /// The reverse of [`Self::chains`], of values from 0 to 7p.
        #[inline(always)]
        fn store_chains(self, values: &[Eight; PAIR], to: &mut [F; CHAINS]) {
            for (value, to) in values.iter().zip(to.chunks_exact_mut(LANES)) {
                self.store_run(&self.settled(*value), to);
            }
        }

        /// Value `at` of eight blocks.
        #[inline(always)]
        fn across(self, blocks: &[&[F]; LANES], at: usize) -> Eight {
            self.unpack(&self.gather(std::array::from_fn(|lane| &blocks[lane][at])))
        }

        /// The same, 16 times.
        #[inline(always)]
        fn across_sixteenfold(self, blocks: &[&[F]; LANES], at: usize) -> Eight {
            self.unpack_sixteenfold(&self.gather(std::array::from_fn(|lane| &blocks[lane][at])))
        }
    }

    /// The blocks of a sequence, eight and eight.
    #[inline(always)]
    fn blocks<F>(values: &[F]) -> [[&[F]; LANES]; PAIR] {
        let len = values.len() / CHAINS;
        std::array::from_fn(|pair| {
            std::array::from_fn(|lane| {
                let start = (pair * LANES + lane) * len;
                &values[start..start + len]
            })
        })
    }

    #[inline(always)]
    fn blocks_mut<F>(values: &mut [F]) -> [[&mut [F]; LANES]; PAIR] {
        let mut blocks = values.chunks_exact_mut(values.len() / CHAINS);
        std::array::from_fn(|_| std::array::from_fn(|_| blocks.next().unwrap_or_default()))
    }

    /// Whether a sequence falls into blocks of one length.
    fn in_blocks(len: usize) -> bool {
        len > 0 && len.is_multiple_of(CHAINS)
    }

    struct BlockValues<'a, F> {
        lanes: Lanes<F>,
        coefficients: &'a [F],
        point: F,
        values: &'a mut [F; CHAINS],
    }

    impl<F: KernelField> Kernel for BlockValues<'_, F> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let lanes = self.lanes;
            let point = lanes.splat(&self.point);
            let blocks = blocks(self.coefficients);
            let mut sums = [lanes.splat(&F::ZERO); PAIR];
            for at in (0..blocks[0][0].len()).rev() {
                for (sum, blocks) in sums.iter_mut().zip(&blocks) {
                    let value = lanes.across(blocks, at);
                    *sum = lanes.carried(lanes.sum(&lanes.product(sum, &point), &value));
                }
            }
            lanes.store_chains(&sums, self.values);
        }
    }

    /// Each block's own value at `point`.
    pub(in super::super) fn block_values<F: KernelField>(
        coefficients: &[F],
        point: &F,
    ) -> Option<[F; CHAINS]> {
        let (ifma, lanes) = lanes()?;
        let mut values = [F::ZERO; CHAINS];
        in_blocks(coefficients.len()).then(|| {
            ifma.run(BlockValues {
                lanes,
                coefficients,
                point: sixteenfold(point),
                values: &mut values,
            });
            values
        })
    }

    struct Divide<'a, F> {
        lanes: Lanes<F>,
        coefficients: &'a mut [F],
        point: F,
        carries: &'a [F; CHAINS],
    }

    impl<F: KernelField> Kernel for Divide<'_, F> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let lanes = self.lanes;
            let point = lanes.splat(&self.point);
            let len = self.coefficients.len() / CHAINS;
            let mut blocks = blocks_mut(self.coefficients);
            let mut carries = lanes.chains(self.carries);
            for at in (0..len).rev() {
                for (carry, blocks) in carries.iter_mut().zip(&mut blocks) {
                    let places = blocks.each_mut().map(|block| &mut block[at]);
                    let value = lanes.unpack(&lanes.gather(std::array::from_fn(|lane| &*places[lane])));
                    lanes.scatter_to(&lanes.pack(&lanes.settled(*carry)), places);
                    *carry = lanes.carried(lanes.sum(&lanes.product(carry, &point), &value));
                }
            }
        }
    }

    /// Divides by `X - point`, each block with what is carried into it; for a length that [`block_values`] has taken.
    pub(in super::super) fn divide<F: KernelField>(coefficients: &mut [F], point: &F, carries: &[F; CHAINS]) {
        if let Some((ifma, lanes)) = lanes() {
            ifma.run(Divide {
                lanes,
                coefficients,
                point: sixteenfold(point),
                carries,
            });
        }
    }

    struct BlockProducts<'a, F> {
        lanes: Lanes<F>,
        values: &'a [F],
        products: &'a mut [F; CHAINS],
    }

    impl<F: KernelField> Kernel for BlockProducts<'_, F> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let lanes = self.lanes;
            let blocks = blocks(self.values);
            let mut products = [lanes.splat(&F::ONE); PAIR];
            for at in 0..blocks[0][0].len() {
                for (product, blocks) in products.iter_mut().zip(&blocks) {
                    *product = lanes.product(product, &lanes.across_sixteenfold(blocks, at));
                }
            }
            lanes.store_chains(&products, self.products);
        }
    }

    /// Each block's product.
    pub(in super::super) fn block_products<F: KernelField>(values: &[F]) -> Option<[F; CHAINS]> {
        let (ifma, lanes) = lanes()?;
        let mut products = [F::ONE; CHAINS];
        in_blocks(values.len()).then(|| {
            ifma.run(BlockProducts {
                lanes,
                values,
                products: &mut products,
            });
            products
        })
    }

    struct PrefixProducts<'a, F> {
        lanes: Lanes<F>,
        values: &'a mut [F],
        carries: &'a [F; CHAINS],
        /// Multiplied with every product.
        factors: Option<&'a [F]>,
    }

    impl<F: KernelField> Kernel for PrefixProducts<'_, F> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let lanes = self.lanes;
            let len = self.values.len() / CHAINS;
            let factors = self.factors.map(blocks);
            let mut blocks = blocks_mut(self.values);
            let mut carries = lanes.chains(self.carries);
            for at in 0..len {
                for (pair, (carry, blocks)) in carries.iter_mut().zip(&mut blocks).enumerate() {
                    let places = blocks.each_mut().map(|block| &mut block[at]);
                    let value = lanes.gather(std::array::from_fn(|lane| &*places[lane]));
                    let mut product = *carry;
                    if let Some(factors) = &factors {
                        product = lanes.product(&product, &lanes.across_sixteenfold(&factors[pair], at));
                    }
                    lanes.scatter_to(&lanes.pack(&lanes.settled(product)), places);
                    *carry = lanes.product(carry, &lanes.unpack_sixteenfold(&value));
                }
            }
        }
    }

    /// Exclusive prefix products, each block from its carry, times `factors`; for a length that [`block_products`] has taken.
    pub(in super::super) fn prefix_products<F: KernelField>(
        values: &mut [F],
        carries: &[F; CHAINS],
        factors: Option<&[F]>,
    ) {
        if let Some((ifma, lanes)) = lanes() {
            ifma.run(PrefixProducts {
                lanes,
                values,
                carries,
                factors,
            });
        }
    }

    struct SuffixProducts<'a, F> {
        lanes: Lanes<F>,
        values: &'a mut [F],
        carries: &'a [F; CHAINS],
        exclusive: bool,
    }

    impl<F: KernelField> Kernel for SuffixProducts<'_, F> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let lanes = self.lanes;
            let len = self.values.len() / CHAINS;
            let mut blocks = blocks_mut(self.values);
            let mut carries = lanes.chains(self.carries);
            for at in (0..len).rev() {
                for (carry, blocks) in carries.iter_mut().zip(&mut blocks) {
                    let places = blocks.each_mut().map(|block| &mut block[at]);
                    let value = lanes.gather(std::array::from_fn(|lane| &*places[lane]));
                    let before = *carry;
                    *carry = lanes.product(carry, &lanes.unpack_sixteenfold(&value));
                    let product = if self.exclusive { before } else { *carry };
                    lanes.scatter_to(&lanes.pack(&lanes.settled(product)), places);
                }
            }
        }
    }

    /// Suffix products, with or without the value itself, each block from what is carried into it from above; lengths as in
    /// [`prefix_products`].
    pub(in super::super) fn suffix_products<F: KernelField>(
        values: &mut [F],
        carries: &[F; CHAINS],
        exclusive: bool,
    ) {
        if let Some((ifma, lanes)) = lanes() {
            ifma.run(SuffixProducts {
                lanes,
                values,
                carries,
                exclusive,
            });
        }
    }

    struct PermutationFactors<'a, F> {
        lanes: Lanes<F>,
        /// 16 times beta, gamma, 16 times delta.
        constants: [F; 3],
        values: &'a [F],
        sigmas: &'a [F],
        names: &'a mut [F],
        numerators: &'a mut [F],
        denominators: &'a mut [F],
    }

    impl<F: KernelField> Kernel for PermutationFactors<'_, F> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let lanes = self.lanes;
            let [beta, gamma, delta] = self.constants.each_ref().map(|constant| lanes.splat(constant));
            let read = self
                .values
                .chunks_exact(LANES)
                .zip(self.sigmas.chunks_exact(LANES));
            let products = self.numerators.chunks_exact_mut(LANES);
            let products = products.zip(self.denominators.chunks_exact_mut(LANES));
            let written = self.names.chunks_exact_mut(LANES).zip(products);
            for ((values, sigmas), (names, (numerators, denominators))) in read.zip(written) {
                let name = lanes.unpack(&lanes.gather_run(names));
                let shifted = lanes.sum(&lanes.unpack(&lanes.gather_run(values)), &gamma);
                let numerator = lanes.unpack_sixteenfold(&lanes.gather_run(numerators));
                let factor = lanes.carried(lanes.sum(&shifted, &name));
                lanes.store_run(&lanes.settled(lanes.product(&numerator, &factor)), numerators);
                let image = lanes.product(&lanes.unpack(&lanes.gather_run(sigmas)), &beta);
                let denominator = lanes.unpack_sixteenfold(&lanes.gather_run(denominators));
                let factor = lanes.carried(lanes.sum(&shifted, &image));
                lanes.store_run(&lanes.settled(lanes.product(&denominator, &factor)), denominators);
                lanes.store_run(&lanes.settled(lanes.product(&name, &delta)), names);
            }
        }
    }

    /// [`super::super::multiply_permutation_factors`] on one thread; gives how many are done.
    pub(in super::super) fn multiply_permutation_factors<F: KernelField>(
        challenges: &PermutationChallenges<F>,
        values: &[F],
        sigmas: &[F],
        names: &mut [F],
        numerators: &mut [F],
        denominators: &mut [F],
    ) -> usize {
        let Some((ifma, lanes)) = lanes() else { return 0 };
        let PermutationChallenges { beta, gamma, delta } = challenges;
        ifma.run(PermutationFactors {
            lanes,
            constants: [sixteenfold(beta), *gamma, sixteenfold(delta)],
            values,
            sigmas,
            names,
            numerators,
            denominators,
        });
        values.len() - values.len() % LANES
    }

    struct Shifted<'a, F> {
        lanes: Lanes<F>,
        left: (&'a [F], &'a F),
        right: (&'a [F], &'a F),
        to: &'a mut [F],
    }

    impl<F: KernelField> Kernel for Shifted<'_, F> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let lanes = self.lanes;
            // The sum is taken 16 times: below 32, and the other below 2.
            let beta = lanes.unpack_sixteenfold(&lanes.gather([self.left.1; LANES]));
            let gamma = lanes.splat(self.right.1);
            let operands = self
                .left
                .0
                .chunks_exact(LANES)
                .zip(self.right.0.chunks_exact(LANES));
            for (to, (left, right)) in self.to.chunks_exact_mut(LANES).zip(operands) {
                let left = lanes.sum(&lanes.unpack_sixteenfold(&lanes.gather_run(left)), &beta);
                let right = lanes.sum(&lanes.unpack(&lanes.gather_run(right)), &gamma);
                let product = lanes.product(&lanes.carried(left), &lanes.carried(right));
                lanes.store_run(&lanes.settled(product), to);
            }
        }
    }

    /// [`super::super::multiply_shifted`] on one thread; gives how many are done.
    pub(in super::super) fn multiply_shifted<F: KernelField>(
        left: (&[F], &F),
        right: (&[F], &F),
        to: &mut [F],
    ) -> usize {
        let Some((ifma, lanes)) = lanes() else { return 0 };
        let done = to.len() - to.len() % LANES;
        ifma.run(Shifted {
            lanes,
            left,
            right,
            to,
        });
        done
    }

    struct Gathered<'a, F, G> {
        lanes: Lanes<F>,
        to: &'a mut [F],
        factors: &'a G,
    }

    impl<'f, F: KernelField, G: Fn(usize) -> (&'f F, &'f F, Option<&'f F>)> Kernel for Gathered<'_, F, G> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let lanes = self.lanes;
            let one = F::ONE;
            for (i, to) in self.to.chunks_exact_mut(LANES).enumerate() {
                let factors: [_; LANES] = std::array::from_fn(|lane| (self.factors)(i * LANES + lane));
                let a = lanes.unpack_sixteenfold(&lanes.gather(factors.map(|(a, _, _)| a)));
                let b = lanes.unpack(&lanes.gather(factors.map(|(_, b, _)| b)));
                let mut product = lanes.product(&a, &b);
                if factors.iter().any(|(_, _, c)| c.is_some()) {
                    let c = lanes.gather(std::array::from_fn(|lane| factors[lane].2.unwrap_or(&one)));
                    product = lanes.product(&product, &lanes.unpack_sixteenfold(&c));
                }
                lanes.store_run(&lanes.settled(product), to);
            }
        }
    }

    /// [`super::super::gathered_products`]; gives how many are done.
    pub(in super::super) fn gathered_products<'f, F: KernelField>(
        to: &mut [F],
        factors: &impl Fn(usize) -> (&'f F, &'f F, Option<&'f F>),
    ) -> usize {
        let Some((ifma, lanes)) = lanes() else { return 0 };
        let done = to.len() - to.len() % LANES;
        ifma.run(Gathered { lanes, to, factors });
        done
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod none {
    use super::super::PermutationChallenges;
    use super::CHAINS;
    use crate::kernels::field::KernelField;

    pub(in super::super) fn evaluate<F: KernelField>(_: &[F], _: &F) -> Option<F> {
        None
    }

    pub(in super::super) fn add_scaled<F: KernelField>(_: &mut [F], _: &[(F, &[F])]) -> usize {
        0
    }

    pub(in super::super) fn powers<F: KernelField>(_: &mut [F], _: &F, _: &F) -> usize {
        0
    }

    pub(in super::super) fn block_values<F: KernelField>(_: &[F], _: &F) -> Option<[F; CHAINS]> {
        None
    }

    pub(in super::super) fn divide<F: KernelField>(_: &mut [F], _: &F, _: &[F; CHAINS]) {}

    pub(in super::super) fn block_products<F: KernelField>(_: &[F]) -> Option<[F; CHAINS]> {
        None
    }

    pub(in super::super) fn prefix_products<F: KernelField>(_: &mut [F], _: &[F; CHAINS], _: Option<&[F]>) {}

    pub(in super::super) fn suffix_products<F: KernelField>(_: &mut [F], _: &[F; CHAINS], _: bool) {}

    pub(in super::super) fn multiply_permutation_factors<F: KernelField>(
        _: &PermutationChallenges<F>,
        _: &[F],
        _: &[F],
        _: &mut [F],
        _: &mut [F],
        _: &mut [F],
    ) -> usize {
        0
    }

    pub(in super::super) fn multiply_shifted<F: KernelField>(
        _: (&[F], &F),
        _: (&[F], &F),
        _: &mut [F],
    ) -> usize {
        0
    }

    pub(in super::super) fn gathered_products<'f, F: KernelField>(
        _: &mut [F],
        _: &impl Fn(usize) -> (&'f F, &'f F, Option<&'f F>),
    ) -> usize {
        0
    }
}
