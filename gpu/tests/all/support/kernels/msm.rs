//! The launches of an MSM, in their order: what a host does with the kernels of msm.cuh.

use std::marker::PhantomData;

use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, One, PrimeField};

use super::curves::{
    AffineWords, Base, Coordinate, Curve, Fp, Point, Sum, XyzzWords, affine_words, point_of,
};
use super::{Kernels, Words, input, none, output, word, words};

const BLOCK: usize = 64;
/// Sums of ones.
const LANES: usize = 8;
/// Bits that are sorted in shared memory at a time, of digits of twice as many.
const SPLIT_BITS: u32 = 4;
const DIGIT_BITS: u32 = 2 * SPLIT_BITS;
const SORT_RUN: usize = 8;

/// Buckets that stay while chunks pass.
pub struct Msm<'a, C: Curve> {
    kernels: &'a Kernels,
    window_bits: u32,
    windows: usize,
    buckets: usize,
    /// Longest run of a thread.
    split: usize,
    /// Of buckets, then of lanes.
    sums: Vec<XyzzWords<C>>,
    /// How many digits of each window were sorted, and how many ones were listed, of all chunks.
    pub others: usize,
    pub ones: usize,
    curve: PhantomData<C>,
}

impl<'a, C: Curve> Msm<'a, C> {
    pub fn new(kernels: &'a Kernels, window_bits: u32, split: usize) -> Self {
        // The scalar's bits and the sign: no window more than that takes.
        let windows = (Fp::<C::Scalar>::MODULUS_BIT_SIZE + 1).div_ceil(window_bits) as usize;
        let buckets = 1 << (window_bits - 1);
        Self {
            kernels,
            window_bits,
            windows,
            buckets,
            split,
            sums: vec![[Base::<C>::ZEROS; 4]; windows * buckets + LANES],
            others: 0,
            ones: 0,
            curve: PhantomData,
        }
    }

    /// Adds the products of a chunk.
    pub fn add(&mut self, points: &[Point<C>], scalars: &[Fp<C::Scalar>]) {
        let points: Vec<AffineWords<C>> = points.iter().map(affine_words::<C>).collect();
        let scalars: Vec<Words> = scalars.iter().map(words).collect();
        let (kernels, curve) = (self.kernels, C::NAME);
        let (n, windows, buckets) = (points.len(), self.windows, self.buckets);
        let (n32, buckets32, split32) = (n as u32, buckets as u32, self.split as u32);
        let items = windows * buckets;
        let items32 = items as u32;
        let blocks = n.div_ceil(BLOCK).min(7);

        let mut listed = Pairs::new(n);
        let kinds = format!("spk_msm_kinds_{}", C::DIGITS);
        kernels.launch(
            &kinds,
            (blocks, 1),
            BLOCK,
            0,
            vec![
                input(&scalars),
                word(n32),
                output(&mut listed.keys),
                output(&mut listed.values),
            ],
        );
        listed.sort(kernels, n, 1, 2);
        let mut bounds = vec![u32::MAX; 2];
        kernels.launch(
            "spk_msm_starts",
            (1, 1),
            BLOCK,
            0,
            vec![
                input(&listed.keys),
                word(n32),
                none(),
                word(1),
                output(&mut bounds),
            ],
        );
        self.others += bounds[0] as usize;
        self.ones += (bounds[1] - bounds[0]) as usize;
        let length = &bounds[..1];

        let mut pairs = Pairs::new(n * windows);
        let mut ones = vec![u32::MAX; n];
        let digits = format!("spk_msm_digits_{}", C::DIGITS);
        kernels.launch(
            &digits,
            (blocks, 1),
            BLOCK,
            0,
            vec![
                input(&scalars),
                input(&listed.values),
                input(&bounds),
                word(n32),
                word(self.window_bits),
                word(windows as u32),
                output(&mut pairs.keys),
                output(&mut pairs.values),
                output(&mut ones),
            ],
        );
        let written = pairs.keys.iter().filter(|key| **key != u32::MAX).count();
        assert_eq!(written, windows * bounds[0] as usize, "digits of zeros and ones");
        pairs.sort_some(kernels, n, Some(length), windows, self.window_bits);

        let mut starts = vec![u32::MAX; windows * (buckets + 1)];
        kernels.launch(
            "spk_msm_starts",
            ((buckets + 1).div_ceil(BLOCK), windows),
            BLOCK,
            0,
            vec![
                input(&pairs.keys),
                word(n32),
                input(length),
                word(buckets32),
                output(&mut starts),
            ],
        );
        let mut order = Pairs::new(items);
        kernels.launch(
            "spk_msm_lengths",
            (items.div_ceil(BLOCK), 1),
            BLOCK,
            0,
            vec![
                input(&starts),
                word(buckets32),
                word(items32),
                word(split32),
                output(&mut order.keys),
                output(&mut order.values),
            ],
        );
        order.sort(kernels, items, 1, split32.ilog2() + 1);
        assert!(order.keys.is_sorted());

        let accumulate = format!("spk_msm_accumulate_{curve}");
        kernels.launch(
            &accumulate,
            (items.div_ceil(BLOCK), 1),
            BLOCK,
            0,
            vec![
                input(&points),
                input(&pairs.values),
                input(&starts),
                input(&order.values),
                word(n32),
                word(buckets32),
                word(items32),
                word(split32),
                output(&mut self.sums),
            ],
        );
        let (mut lane_starts, mut lane_order) = (vec![u32::MAX; LANES + 1], vec![u32::MAX; LANES]);
        let lanes = LANES as u32;
        kernels.launch(
            "spk_msm_lanes",
            (1, 1),
            BLOCK,
            0,
            vec![
                input(&bounds),
                word(lanes),
                output(&mut lane_starts),
                output(&mut lane_order),
            ],
        );
        kernels.launch(
            &accumulate,
            (1, 1),
            BLOCK,
            0,
            vec![
                input(&points),
                input(&ones),
                input(&lane_starts),
                input(&lane_order),
                word(n32),
                word(lanes),
                word(lanes),
                word(u32::MAX),
                output(&mut self.sums[items..]),
            ],
        );

        let slots = n.div_ceil(self.split);
        let (slots32, slot_grid) = (slots as u32, (slots.div_ceil(BLOCK), windows));
        // Like device memory, its initial content is arbitrary.
        let mut partials = arbitrary::<C>(windows * slots);
        let extras = format!("spk_msm_extras_{curve}");
        kernels.launch(
            &extras,
            slot_grid,
            BLOCK,
            0,
            vec![
                input(&points),
                input(&pairs.keys),
                input(&pairs.values),
                input(&starts),
                word(n32),
                word(buckets32),
                word(split32),
                word(slots32),
                output(&mut partials),
            ],
        );
        let fold = format!("spk_msm_fold_{curve}");
        let mut stride = 1;
        while stride < slots {
            kernels.launch(
                &fold,
                slot_grid,
                BLOCK,
                0,
                vec![
                    input(&pairs.keys),
                    input(&starts),
                    word(n32),
                    word(buckets32),
                    word(split32),
                    word(slots32),
                    word(stride as u32),
                    output(&mut partials),
                ],
            );
            stride *= 2;
        }
        let merge = format!("spk_msm_merge_{curve}");
        kernels.launch(
            &merge,
            (items.div_ceil(BLOCK), 1),
            BLOCK,
            0,
            vec![
                input(&starts),
                word(buckets32),
                word(items32),
                word(split32),
                word(slots32),
                input(&partials),
                output(&mut self.sums),
            ],
        );
    }

    /// The sum of all products so far; `segment` buckets are summed by a thread.
    pub fn finish(self, segment: usize) -> Point<C> {
        let segments = self.buckets.div_ceil(segment);
        let shared_bytes = size_of::<XyzzWords<C>>() + 16;
        let mut parts = arbitrary::<C>(self.windows * segments);
        let reduce = format!("spk_msm_reduce_{}", C::NAME);
        self.kernels.launch(
            &reduce,
            (segments.div_ceil(BLOCK), self.windows),
            BLOCK,
            2 * BLOCK * shared_bytes,
            vec![
                input(&self.sums),
                word(self.buckets as u32),
                word(segment as u32),
                word(segments as u32),
                output(&mut parts),
            ],
        );
        let mut totals = arbitrary::<C>(self.windows);
        let total = format!("spk_msm_total_{}", C::NAME);
        let block = 16;
        let summed_up = |rows, from: &[XyzzWords<C>], to: &mut [XyzzWords<C>]| {
            self.kernels.launch(
                &total,
                (1, rows),
                block,
                block * shared_bytes,
                vec![input(from), word((from.len() / rows) as u32), output(to)],
            );
        };
        summed_up(self.windows, &parts, &mut totals);
        let lanes = &self.sums[self.windows * self.buckets..];
        let (mut rows, mut of_ones) = (arbitrary::<C>(LANES / 4), arbitrary::<C>(1));
        summed_up(LANES / 4, lanes, &mut rows);
        summed_up(1, &rows, &mut of_ones);
        let mut sum = Sum::<C>::ZERO;
        for total in totals.iter().rev() {
            for _ in 0..self.window_bits {
                sum.double_in_place();
            }
            sum += point_of::<C>(total);
        }
        sum += point_of::<C>(&of_ones[0]);
        sum.into_affine()
    }
}

/// Points of a buffer that nothing has been written to.
fn arbitrary<C: Curve>(count: usize) -> Vec<XyzzWords<C>> {
    vec![[Base::<C>::one().to_words(); 4]; count]
}

/// Rows of keys and values.
pub struct Pairs {
    pub keys: Vec<u32>,
    pub values: Vec<u32>,
}

impl Pairs {
    pub fn new(len: usize) -> Self {
        Self {
            keys: vec![u32::MAX; len],
            values: vec![u32::MAX; len],
        }
    }

    /// Sorts each of `rows` rows of `n` pairs by keys of `bits` bits.
    pub fn sort(&mut self, kernels: &Kernels, n: usize, rows: usize, bits: u32) {
        self.sort_some(kernels, n, None, rows, bits);
    }

    /// The same of the first pairs of each row, as many as a word says.
    pub fn sort_some(&mut self, kernels: &Kernels, n: usize, length: Option<&[u32]>, rows: usize, bits: u32) {
        let block = 32;
        // A tile of two blocks of pairs and a part of one.
        let tile = 5 * block * SORT_RUN / 2;
        let tiles = n.div_ceil(tile);
        let mut to = Self::new(n * rows);
        let mut counts = vec![u32::MAX; (tiles * rows) << DIGIT_BITS];
        for shift in (0..bits).step_by(DIGIT_BITS as usize) {
            let digit_bits = DIGIT_BITS.min(bits - shift);
            let numbers = || {
                let length = input(length.unwrap_or_default());
                [
                    word(n as u32),
                    length,
                    word(shift),
                    word(digit_bits),
                    word(tile as u32),
                ]
            };
            let mut counted = vec![input(&self.keys)];
            counted.extend(numbers());
            counted.push(output(&mut counts));
            kernels.launch("spk_sort_count", (tiles, rows), block, 4 << digit_bits, counted);
            kernels.launch(
                "spk_scan",
                (1, rows),
                64,
                4 * 64,
                vec![output(&mut counts), word((tiles << digit_bits) as u32)],
            );
            let mut scattered = vec![input(&self.keys), input(&self.values)];
            scattered.extend(numbers());
            scattered.extend([input(&counts), output(&mut to.keys), output(&mut to.values)]);
            let pairs = block * SORT_RUN;
            let words = 2 * (pairs + pairs / 32) + ((1 << SPLIT_BITS) + 1) * block + (2 << DIGIT_BITS);
            kernels.launch("spk_sort_scatter", (tiles, rows), block, 4 * words, scattered);
            std::mem::swap(self, &mut to);
        }
    }
}
