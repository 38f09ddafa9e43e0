//! Scans of one piece in lanes: the piece is cut into [`Blocks`] of one length, a lane for each and two
//! vectors of them, so that the serial chains of all blocks run side by side. One thread; memory: none.

use std::ops::{Deref, DerefMut};

use crate::backend::{Backend, Kernel, Lanes};
use crate::field::KernelField;

/// Vectors of blocks.
const PAIR: usize = 2;
/// The most blocks that a backend has.
const BLOCKS_MAX: usize = 16;
/// Vectors of coefficients that an evaluation takes at a time.
const GROUP: usize = 4;

/// One value for each block of a piece.
#[derive(Clone, Copy)]
pub struct Blocks<F> {
    values: [F; BLOCKS_MAX],
    len: usize,
}

impl<F: Copy> Blocks<F> {
    pub(super) fn filled(value: F, len: usize) -> Self {
        Self {
            values: [value; BLOCKS_MAX],
            len,
        }
    }
}

impl<F> Deref for Blocks<F> {
    type Target = [F];

    fn deref(&self) -> &[F] {
        &self.values[..self.len]
    }
}

impl<F> DerefMut for Blocks<F> {
    fn deref_mut(&mut self) -> &mut [F] {
        &mut self.values[..self.len]
    }
}

/// A piece in blocks, if it falls into blocks of one length.
#[inline(always)]
fn blocks<F, const W: usize>(values: &[F]) -> Option<[[&[F]; W]; PAIR]> {
    let len = values.len() / (PAIR * W);
    let fits = len > 0 && values.len().is_multiple_of(PAIR * W);
    fits.then(|| {
        std::array::from_fn(|pair| {
            std::array::from_fn(|lane| {
                let start = (pair * W + lane) * len;
                &values[start..start + len]
            })
        })
    })
}

/// A piece in blocks.
#[inline(always)]
fn blocks_mut<F, const W: usize>(values: &mut [F]) -> [[&mut [F]; W]; PAIR] {
    let mut blocks = values.chunks_exact_mut((values.len() / (PAIR * W)).max(1));
    std::array::from_fn(|_| std::array::from_fn(|_| blocks.next().unwrap_or_default()))
}

#[inline(always)]
fn load_blocks<F: KernelField, const W: usize, L: Lanes<F, W>>(
    lanes: L,
    blocks: &Blocks<F>,
) -> [L::Value; PAIR] {
    [lanes.load(&blocks[..W]), lanes.load(&blocks[W..])]
}

/// Of values from 0 to 7p.
#[inline(always)]
fn store_blocks<F: KernelField, const W: usize, L: Lanes<F, W>>(
    lanes: L,
    values: &[L::Value; PAIR],
) -> Blocks<F> {
    let mut blocks = Blocks::filled(F::ZERO, PAIR * W);
    for (value, to) in values.iter().zip(blocks.chunks_exact_mut(W)) {
        lanes.store(&lanes.canonical(*value), to);
    }
    blocks
}

/// Value `at` of each block.
#[inline(always)]
fn across<'a, F, const W: usize>(blocks: &[&'a [F]; W], at: usize) -> [&'a F; W] {
    std::array::from_fn(|lane| &blocks[lane][at])
}

/// The value at `point` of the polynomial with these coefficients.
pub(super) fn evaluate<F: KernelField>(coefficients: &[F], point: &F) -> F {
    let horner = |sum: F, value: &F| sum.times(point).plus(value);
    let (head, done) = F::run_evaluate(Backend::detect(), Evaluate { coefficients, point });
    match &coefficients[done..] {
        [] => head,
        rest => {
            let tail = rest.iter().rev().fold(F::ZERO, horner);
            head.plus(&tail.times(&point.pow([done as u64])))
        }
    }
}

/// The value of as many coefficients as fall into groups, and how many they are.
pub struct Evaluate<'a, F> {
    coefficients: &'a [F],
    point: &'a F,
}

impl<F: KernelField> Kernel<F> for Evaluate<'_, F> {
    type Output = (F, usize);

    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) -> (F, usize) {
        let groups = self.coefficients.chunks_exact(GROUP * W);
        let done = groups.len() * GROUP * W;
        if done == 0 {
            return (F::ZERO, 0);
        }
        let vector = (0..W.ilog2()).fold(*self.point, |power, _| power.squared());
        let group = vector.squared().squared();
        let step = lanes.splat(&lanes.shifted(&group));
        let mut sums = [lanes.splat(&F::ZERO); GROUP];
        for group in groups.rev() {
            for (sum, values) in sums.iter_mut().zip(group.chunks_exact(W)) {
                *sum = lanes.carried(lanes.sum(&lanes.product(sum, &step), &lanes.load(values)));
            }
        }
        let vector = lanes.splat(&lanes.shifted(&vector));
        let mut all = sums[GROUP - 1];
        for sum in sums[..GROUP - 1].iter().rev() {
            all = lanes.carried(lanes.sum(&lanes.product(&all, &vector), sum));
        }
        let mut values = [F::ZERO; W];
        lanes.store(&lanes.canonical(all), &mut values);
        let horner = |sum: F, value: &F| sum.times(self.point).plus(value);
        (values.iter().rev().fold(F::ZERO, horner), done)
    }
}

pub struct BlockValues<'a, F> {
    coefficients: &'a [F],
    point: &'a F,
}

impl<F: KernelField> Kernel<F> for BlockValues<'_, F> {
    type Output = Option<Blocks<F>>;

    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) -> Option<Blocks<F>> {
        let point = lanes.splat(&lanes.shifted(self.point));
        let blocks = blocks::<F, W>(self.coefficients)?;
        let mut sums = [lanes.splat(&F::ZERO); PAIR];
        for at in (0..blocks[0][0].len()).rev() {
            for (sum, blocks) in sums.iter_mut().zip(&blocks) {
                let value = lanes.unpack(&lanes.gather(across(blocks, at)));
                *sum = lanes.carried(lanes.sum(&lanes.product(sum, &point), &value));
            }
        }
        Some(store_blocks(lanes, &sums))
    }
}

/// Each block's own value at `point`.
pub(super) fn block_values<F: KernelField>(coefficients: &[F], point: &F) -> Option<Blocks<F>> {
    F::run_block_values(Backend::detect(), BlockValues { coefficients, point })
}

pub struct Divide<'a, F> {
    coefficients: &'a mut [F],
    point: &'a F,
    carries: &'a Blocks<F>,
}

impl<F: KernelField> Kernel<F> for Divide<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) {
        let point = lanes.splat(&lanes.shifted(self.point));
        let len = self.coefficients.len() / (PAIR * W);
        let mut blocks = blocks_mut::<F, W>(self.coefficients);
        let mut carries = load_blocks(lanes, self.carries);
        for at in (0..len).rev() {
            for (carry, blocks) in carries.iter_mut().zip(&mut blocks) {
                let places = blocks.each_mut().map(|block| &mut block[at]);
                let value = lanes.unpack(&lanes.gather(places.each_ref().map(|place| &**place)));
                lanes.scatter(&lanes.canonical(*carry), places);
                *carry = lanes.carried(lanes.sum(&lanes.product(carry, &point), &value));
            }
        }
    }
}

/// Divides by `X - point`, each block with the carry into it; for a length that [`block_values`] has taken.
pub(super) fn divide<F: KernelField>(coefficients: &mut [F], point: &F, carries: &Blocks<F>) {
    F::run_divide(
        Backend::detect(),
        Divide {
            coefficients,
            point,
            carries,
        },
    );
}

pub struct BlockProducts<'a, F>(&'a [F]);

impl<F: KernelField> Kernel<F> for BlockProducts<'_, F> {
    type Output = Option<Blocks<F>>;

    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) -> Option<Blocks<F>> {
        let blocks = blocks::<F, W>(self.0)?;
        let mut products = [lanes.splat(&F::ONE); PAIR];
        for at in 0..blocks[0][0].len() {
            for (product, blocks) in products.iter_mut().zip(&blocks) {
                let value = lanes.unpack_shifted(&lanes.gather(across(blocks, at)));
                *product = lanes.product(product, &value);
            }
        }
        Some(store_blocks(lanes, &products))
    }
}

/// Each block's product.
pub(super) fn block_products<F: KernelField>(values: &[F]) -> Option<Blocks<F>> {
    F::run_block_products(Backend::detect(), BlockProducts(values))
}

pub struct PrefixProducts<'a, F> {
    values: &'a mut [F],
    carries: &'a Blocks<F>,
    /// Multiplied with every product.
    factors: &'a [F],
}

impl<F: KernelField> Kernel<F> for PrefixProducts<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) {
        let len = self.values.len() / (PAIR * W);
        let Some(factors) = blocks::<F, W>(self.factors) else {
            return;
        };
        let mut blocks = blocks_mut::<F, W>(self.values);
        let mut carries = load_blocks(lanes, self.carries);
        for at in 0..len {
            for (pair, (carry, blocks)) in carries.iter_mut().zip(&mut blocks).enumerate() {
                let places = blocks.each_mut().map(|block| &mut block[at]);
                let value = lanes.gather(places.each_ref().map(|place| &**place));
                let factor = lanes.unpack_shifted(&lanes.gather(across(&factors[pair], at)));
                let product = lanes.product(carry, &factor);
                lanes.scatter(&lanes.canonical(product), places);
                *carry = lanes.product(carry, &lanes.unpack_shifted(&value));
            }
        }
    }
}

/// Exclusive prefix products, each block from its carry, times `factors`; for a length that
/// [`block_products`] has taken.
pub(super) fn prefix_products<F: KernelField>(values: &mut [F], carries: &Blocks<F>, factors: &[F]) {
    F::run_prefix_products(
        Backend::detect(),
        PrefixProducts {
            values,
            carries,
            factors,
        },
    );
}

pub struct SuffixProducts<'a, F> {
    values: &'a mut [F],
    carries: &'a Blocks<F>,
    exclusive: bool,
}

impl<F: KernelField> Kernel<F> for SuffixProducts<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) {
        let len = self.values.len() / (PAIR * W);
        let mut blocks = blocks_mut::<F, W>(self.values);
        let mut carries = load_blocks(lanes, self.carries);
        for at in (0..len).rev() {
            for (carry, blocks) in carries.iter_mut().zip(&mut blocks) {
                let places = blocks.each_mut().map(|block| &mut block[at]);
                let value = lanes.gather(places.each_ref().map(|place| &**place));
                let before = *carry;
                *carry = lanes.product(carry, &lanes.unpack_shifted(&value));
                let product = if self.exclusive { before } else { *carry };
                lanes.scatter(&lanes.canonical(product), places);
            }
        }
    }
}

/// Suffix products, with or without the value itself, each block from the carry into it from above; lengths
/// as in [`prefix_products`].
pub(super) fn suffix_products<F: KernelField>(values: &mut [F], carries: &Blocks<F>, exclusive: bool) {
    F::run_suffix_products(
        Backend::detect(),
        SuffixProducts {
            values,
            carries,
            exclusive,
        },
    );
}
