//! NTTs by passes of the kernel, for every way to split them, against arkworks and Plonky3.
#![allow(unsafe_code, clippy::unwrap_used)]

mod kernels_support;

use ark_ff::{AdditiveGroup, FftField, Field, UniformRand};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use kernels_support::Kernels;
use kernels_support::rng;
use p3_dft::{Radix2Dit, TwoAdicSubgroupDft};
use p3_field::{Field as _, PrimeCharacteristicRing, PrimeField64, TwoAdicField};
use p3_goldilocks::Goldilocks;
use rand::{Rng, RngCore};

/// What the tables and the comparison need. In memory an element is what the kernels have.
trait Element: Copy + PartialEq + std::fmt::Debug + std::ops::Mul<Output = Self> {
    const NAME: &'static str;
    const ONE: Self;
    const ZERO: Self;
    fn random(rng: &mut impl RngCore) -> Self;
    fn inverted(self) -> Self;
    fn root(log_order: u32) -> Self;
    fn small(value: u64) -> Self;
    /// As it has to be in memory.
    fn reduced(self) -> Self {
        self
    }
}

macro_rules! arkworks_element {
    ($field:ty, $name:literal) => {
        impl Element for $field {
            const NAME: &'static str = $name;
            const ONE: Self = <$field as Field>::ONE;
            const ZERO: Self = <$field as AdditiveGroup>::ZERO;
            fn random(rng: &mut impl RngCore) -> Self {
                <$field>::rand(rng)
            }
            fn inverted(self) -> Self {
                self.inverse().unwrap()
            }
            fn root(log_order: u32) -> Self {
                <$field>::get_root_of_unity(1 << log_order).unwrap()
            }
            fn small(value: u64) -> Self {
                <$field>::from(value)
            }
        }
    };
}
arkworks_element!(ark_bn254::Fr, "bn254_fr");
arkworks_element!(ark_vesta::Fr, "pasta_fp");
arkworks_element!(ark_pallas::Fr, "pasta_fq");

impl Element for Goldilocks {
    const NAME: &'static str = "goldilocks";
    const ONE: Self = <Goldilocks as PrimeCharacteristicRing>::ONE;
    const ZERO: Self = <Goldilocks as PrimeCharacteristicRing>::ZERO;
    fn random(rng: &mut impl RngCore) -> Self {
        Goldilocks::new(rng.gen_range(0..0xffff_ffff_0000_0001))
    }
    fn inverted(self) -> Self {
        self.inverse()
    }
    fn root(log_order: u32) -> Self {
        Goldilocks::two_adic_generator(log_order as usize)
    }
    fn small(value: u64) -> Self {
        Goldilocks::from_u64(value)
    }
    fn reduced(self) -> Self {
        Goldilocks::new(self.as_canonical_u64())
    }
}

/// `count` powers of `base`, times `first`.
fn powers<T: Element>(base: T, count: usize, first: T) -> Vec<T> {
    std::iter::successors(Some(first), |last| Some(*last * base))
        .take(count)
        .map(T::reduced)
        .collect()
}

fn raised<T: Element>(base: T, exponent: u64) -> T {
    let mut result = T::ONE;
    for bit in (0..64).rev() {
        result = result * result;
        if exponent >> bit & 1 == 1 {
            result = result * base;
        }
    }
    result
}

/// Powers of `base` below 2^log_count in two tables, all of them times `factor`.
struct Tables<T> {
    low: Vec<T>,
    high: Vec<T>,
    log_low: u32,
}

impl<T: Element> Tables<T> {
    fn new(base: T, log_count: u32, factor: T) -> Self {
        let log_low = log_count.div_ceil(2);
        let high = 1 << (log_count - log_low);
        Self {
            low: powers(base, 1 << log_low, T::ONE),
            high: powers(raised(base, 1 << log_low), high, factor),
            log_low,
        }
    }

    /// With the exponent `(a + b y) i + (c + d y)`.
    fn scale(&self, a: u64, b: u64, c: u64, d: u64) -> Scale<T> {
        Scale {
            low: self.low.as_ptr(),
            high: self.high.as_ptr(),
            a,
            b,
            c,
            d,
            log_low: self.log_low.into(),
        }
    }
}

/// As in ntt.cuh.
#[repr(C)]
struct Scale<T> {
    low: *const T,
    high: *const T,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    log_low: u64,
}

impl<T> Clone for Scale<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Scale<T> {}

impl<T> Scale<T> {
    const NONE: Self = Self {
        low: std::ptr::null(),
        high: std::ptr::null(),
        a: 0,
        b: 0,
        c: 0,
        d: 0,
        log_low: 0,
    };
}

/// As in ntt.cuh.
#[repr(C)]
struct NttPass<T> {
    input: *const T,
    output: *mut T,
    in_stride: u64,
    in_batch: u64,
    out_stride: u64,
    out_batch: u64,
    log_n: u64,
    log_before: u64,
    log_radix: u64,
    log_columns: u64,
    roots: *const T,
    log_roots: u64,
    twiddle_low: *const T,
    twiddle_high: *const T,
    log_twiddle_low: u64,
    load: Scale<T>,
    store: Scale<T>,
}

/// Where the rows of a batch are: element i of row y at `i * stride + y * batch`.
#[derive(Clone, Copy)]
struct Layout {
    rows: usize,
    stride: usize,
    batch: usize,
}

/// Transforms every row: all passes, in the layout both of the input and of the output.
fn transform<T: Element>(
    kernels: &Kernels,
    values: &mut Vec<T>,
    root: T,
    log_radices: &[u32],
    columns: u32,
    layout: Layout,
    (load, store): (Scale<T>, Scale<T>),
) {
    let log_n: u32 = log_radices.iter().sum();
    let log_roots = log_radices.iter().copied().max().unwrap_or(0);
    let roots = powers(
        raised(root, 1 << (log_n - log_roots)),
        1 << log_roots >> 1,
        T::ONE,
    );
    let twiddles = Tables::new(root, log_n, T::ONE);
    let mut from = std::mem::take(values);
    let mut to = vec![T::ZERO; from.len()];
    let mut log_before = 0;
    for (i, &log_radix) in log_radices.iter().enumerate() {
        let log_columns = columns.min(log_n - log_radix);
        let pass = NttPass {
            input: from.as_ptr(),
            output: to.as_mut_ptr(),
            in_stride: layout.stride as u64,
            in_batch: layout.batch as u64,
            out_stride: layout.stride as u64,
            out_batch: layout.batch as u64,
            log_n: log_n.into(),
            log_before,
            log_radix: log_radix.into(),
            log_columns: log_columns.into(),
            roots: roots.as_ptr(),
            log_roots: log_roots.into(),
            twiddle_low: twiddles.low.as_ptr(),
            twiddle_high: twiddles.high.as_ptr(),
            log_twiddle_low: twiddles.log_low.into(),
            load: if i == 0 { load } else { Scale::NONE },
            store: if i + 1 == log_radices.len() {
                store
            } else {
                Scale::NONE
            },
        };
        let tile = 1 << (log_radix + log_columns);
        let grid = (1 << (log_n - log_radix - log_columns), layout.rows);
        let threads = (tile / 2).clamp(1, 64);
        let name = format!("spk_ntt_pass_{}", T::NAME);
        launch!(kernels, &name, grid, threads, tile * size_of::<T>(); pass);
        log_before += u64::from(log_radix);
        std::mem::swap(&mut from, &mut to);
    }
    *values = from;
}

/// One row, as it lies.
const fn one_row(n: usize) -> Layout {
    Layout {
        rows: 1,
        stride: 1,
        batch: n,
    }
}

/// Ways to split 2^k: radices and columns of a tile, as logarithms.
fn splits(k: u32) -> Vec<(Vec<u32>, u32)> {
    let mut all = vec![];
    if k <= 10 {
        all.push((vec![k], 0));
    }
    for radix in [1, 3, 4, 8, 10] {
        if radix < k && (radix > 1 || k < 6) {
            let mut radices = vec![radix; (k / radix) as usize];
            if !k.is_multiple_of(radix) {
                radices.push(k % radix);
            }
            let reversed = radices.iter().rev().copied().collect();
            all.push((radices, 2.min(10 - radix)));
            all.push((reversed, 3.min(11 - radix)));
        }
    }
    all
}

/// Forward and inverse, plain and on a coset; `expected` is the oracle's forward transform.
fn equal_in_every_way<T: Element>(
    sizes: std::ops::RangeInclusive<u32>,
    expected: impl Fn(&[T], T) -> Vec<T>,
) {
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng(T::NAME);
    for k in sizes {
        let n = 1usize << k;
        let values: Vec<T> = (0..n).map(|_| T::random(&mut rng)).collect();
        let root = T::root(k);
        let shift = T::random(&mut rng);
        let on_subgroup: Vec<T> = expected(&values, T::ONE).into_iter().map(T::reduced).collect();
        let on_coset: Vec<T> = expected(&values, shift).into_iter().map(T::reduced).collect();
        let per_n = T::small(n as u64).inverted();
        for (radices, columns) in splits(k) {
            let what = format!("{}: 2^{k} as {radices:?}, tiles of 2^{columns}", T::NAME);
            let run = |values: &[T], root, scales| {
                let mut values = values.to_vec();
                transform(&kernels, &mut values, root, &radices, columns, one_row(n), scales);
                values
            };
            assert_eq!(
                run(&values, root, (Scale::NONE, Scale::NONE)),
                on_subgroup,
                "{what}"
            );
            let coset = Tables::new(shift, k, T::ONE);
            assert_eq!(
                run(&values, root, (coset.scale(1, 0, 0, 0), Scale::NONE)),
                on_coset,
                "{what}, coset"
            );
            let by_n = [per_n.reduced()];
            let divide = Scale {
                low: by_n.as_ptr(),
                ..Scale::NONE
            };
            assert_eq!(
                run(&on_subgroup, root.inverted(), (Scale::NONE, divide)),
                values,
                "{what}, inverse"
            );
            let back = Tables::new(shift.inverted(), k, per_n);
            assert_eq!(
                run(&on_coset, root.inverted(), (Scale::NONE, back.scale(1, 0, 0, 0))),
                values,
                "{what}, inverse on a coset"
            );
        }
    }
}

macro_rules! by_arkworks {
    ($test:ident, $field:ty, $sizes:expr) => {
        #[test]
        fn $test() {
            equal_in_every_way::<$field>($sizes, |values, shift| {
                let domain = Radix2EvaluationDomain::<$field>::new(values.len()).unwrap();
                domain.get_coset(shift).unwrap().fft(values)
            });
        }
    };
}
by_arkworks!(bn254, ark_bn254::Fr, 1..=14);
by_arkworks!(pallas_scalars, ark_pallas::Fr, 1..=9);
by_arkworks!(vesta_scalars, ark_vesta::Fr, 1..=9);

/// 2^18 in two passes and in three.
#[test]
#[ignore = "a minute"]
fn large() {
    equal_in_every_way::<Goldilocks>(18..=18, |values, shift| {
        Radix2Dit::default().coset_dft(values.to_vec(), shift)
    });
}

#[test]
fn goldilocks() {
    equal_in_every_way::<Goldilocks>(1..=14, |values, shift| {
        Radix2Dit::default().coset_dft(values.to_vec(), shift)
    });
}

/// Columns, factors, rows: a transform too large for one piece, on a coset, its columns in pieces of the batch.
fn equal_in_two_steps<T: Element>(log_rows: u32, log_row_len: u32, expected: impl Fn(&[T], T) -> Vec<T>) {
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng(T::NAME);
    let (rows, row_len) = (1usize << log_rows, 1usize << log_row_len);
    let n = rows * row_len;
    let root = T::root(log_rows + log_row_len);
    let shift = T::random(&mut rng);
    let values: Vec<T> = (0..n).map(|_| T::random(&mut rng)).collect();
    let twiddles = Tables::new(root, log_rows + log_row_len, T::ONE);
    let coset = Tables::new(shift, log_rows + log_row_len, T::ONE);

    // Columns i2 of the matrix, a few at a time as a piece of their own; then out[k1][i2] gets w^(i2 k1).
    let piece = 8.min(row_len);
    let mut matrix = values.clone();
    for first in (0..row_len).step_by(piece) {
        let mut columns: Vec<T> = (0..rows)
            .flat_map(|row| matrix[row * row_len + first..][..piece].to_vec())
            .collect();
        let layout = Layout {
            rows: piece,
            stride: piece,
            batch: 1,
        };
        let (first64, row_len64) = (first as u64, row_len as u64);
        let scales = (
            coset.scale(row_len64, 0, first64, 1),
            twiddles.scale(first64, 1, 0, 0),
        );
        let radices = [log_rows - 2, 2];
        transform(
            &kernels,
            &mut columns,
            raised(root, row_len64),
            &radices,
            2,
            layout,
            scales,
        );
        for row in 0..rows {
            matrix[row * row_len + first..][..piece].copy_from_slice(&columns[row * piece..][..piece]);
        }
    }
    let layout = Layout {
        rows,
        stride: 1,
        batch: row_len,
    };
    let radices = [2, log_row_len - 2];
    let root_of_rows = raised(root, rows as u64);
    transform(
        &kernels,
        &mut matrix,
        root_of_rows,
        &radices,
        3,
        layout,
        (Scale::NONE, Scale::NONE),
    );
    // X[k1 + rows * k2] is at [k1][k2].
    let found: Vec<T> = (0..n).map(|k| matrix[k % rows * row_len + k / rows]).collect();
    assert_eq!(found, expected(&values, shift), "{}: {rows} x {row_len}", T::NAME);
}

#[test]
fn two_steps() {
    for (log_rows, log_row_len) in [(3, 3), (4, 6), (6, 4)] {
        equal_in_two_steps::<ark_bn254::Fr>(log_rows, log_row_len, |values, shift| {
            let domain = Radix2EvaluationDomain::<ark_bn254::Fr>::new(values.len()).unwrap();
            domain.get_coset(shift).unwrap().fft(values)
        });
        equal_in_two_steps::<Goldilocks>(log_rows, log_row_len, |values, shift| {
            Radix2Dit::default().coset_dft(values.to_vec(), shift)
        });
    }
}
