//! Transforms by passes: tables and launches, what a host does with the kernel of ntt.cuh.

use std::mem::offset_of;

use ark_ff::{AdditiveGroup, FftField, Field, UniformRand};
use p3_field::{Field as _, PrimeCharacteristicRing, PrimeField64, TwoAdicField};
use p3_goldilocks::Goldilocks;
use rand::{Rng, RngCore};

use super::{Kernels, input, output, structure};

/// What the tables and the comparison need. In memory an element is what the kernels have.
pub trait Element: Copy + PartialEq + std::fmt::Debug + std::ops::Mul<Output = Self> {
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
pub fn powers<T: Element>(base: T, count: usize, first: T) -> Vec<T> {
    std::iter::successors(Some(first), |last| Some(*last * base))
        .take(count)
        .map(T::reduced)
        .collect()
}

pub fn raised<T: Element>(base: T, exponent: u64) -> T {
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
pub struct Tables<T> {
    pub low: Vec<T>,
    pub high: Vec<T>,
    pub log_low: u32,
}

impl<T: Element> Tables<T> {
    pub fn new(base: T, log_count: u32, factor: T) -> Self {
        let log_low = log_count.div_ceil(2);
        let high = 1 << (log_count - log_low);
        Self {
            low: powers(base, 1 << log_low, T::ONE),
            high: powers(raised(base, 1 << log_low), high, factor),
            log_low,
        }
    }

    /// With the exponent `(a + b y) i + (c + d y)`.
    pub fn scale(&self, a: u64, b: u64, c: u64, d: u64) -> Scale<'_, T> {
        Scale {
            low: &self.low,
            high: &self.high,
            exponent: [a, b, c, d],
            log_low: self.log_low,
        }
    }
}

/// By what power elements are multiplied: tables, and the exponent `(a + b y) i + (c + d y)`.
#[derive(Clone, Copy)]
pub struct Scale<'a, T> {
    pub low: &'a [T],
    pub high: &'a [T],
    pub exponent: [u64; 4],
    pub log_low: u32,
}

impl<T> Scale<'_, T> {
    /// By nothing.
    pub const NONE: Self = Self {
        low: &[],
        high: &[],
        exponent: [0; 4],
        log_low: 0,
    };
}

/// As in ntt.cuh; addresses are filled in by the launch.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct DeviceScale {
    low: u64,
    high: u64,
    exponent: [u64; 4],
    log_low: u64,
}

/// As in ntt.cuh.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct NttPass {
    input: u64,
    output: u64,
    in_stride: u64,
    in_batch: u64,
    out_stride: u64,
    out_batch: u64,
    log_n: u64,
    log_before: u64,
    log_radix: u64,
    log_columns: u64,
    roots: u64,
    log_roots: u64,
    twiddle_low: u64,
    twiddle_high: u64,
    log_twiddle_low: u64,
    load: DeviceScale,
    store: DeviceScale,
}

/// Where the rows of a batch are: element i of row y at `i * stride + y * batch`.
#[derive(Clone, Copy)]
pub struct Layout {
    pub rows: usize,
    pub stride: usize,
    pub batch: usize,
}

/// Transforms every row: all passes, in the layout both of the input and of the output.
pub fn transform<T: Element>(
    kernels: &Kernels,
    values: &mut Vec<T>,
    root: T,
    log_radices: &[u32],
    columns: u32,
    layout: Layout,
    (load, store): (Scale<'_, T>, Scale<'_, T>),
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
        let load = if i == 0 { load } else { Scale::NONE };
        let store = if i + 1 == log_radices.len() {
            store
        } else {
            Scale::NONE
        };
        let scale = |by: Scale<'_, T>| DeviceScale {
            exponent: by.exponent,
            log_low: by.log_low.into(),
            ..DeviceScale::default()
        };
        let pass = NttPass {
            in_stride: layout.stride as u64,
            in_batch: layout.batch as u64,
            out_stride: layout.stride as u64,
            out_batch: layout.batch as u64,
            log_n: log_n.into(),
            log_before,
            log_radix: log_radix.into(),
            log_columns: log_columns.into(),
            log_roots: log_roots.into(),
            log_twiddle_low: twiddles.log_low.into(),
            load: scale(load),
            store: scale(store),
            ..NttPass::default()
        };
        let (load_at, store_at) = (offset_of!(NttPass, load), offset_of!(NttPass, store));
        let (low_at, high_at) = (offset_of!(DeviceScale, low), offset_of!(DeviceScale, high));
        let tile = 1 << (log_radix + log_columns);
        let grid = (1 << (log_n - log_radix - log_columns), layout.rows);
        let threads = (tile / 2).clamp(1, 64);
        let name = format!("spk_ntt_pass_{}", T::NAME);
        let fields = vec![
            (offset_of!(NttPass, input), input(&from)),
            (offset_of!(NttPass, output), output(&mut to)),
            (offset_of!(NttPass, roots), input(&roots)),
            (offset_of!(NttPass, twiddle_low), input(&twiddles.low)),
            (offset_of!(NttPass, twiddle_high), input(&twiddles.high)),
            (load_at + low_at, input(load.low)),
            (load_at + high_at, input(load.high)),
            (store_at + low_at, input(store.low)),
            (store_at + high_at, input(store.high)),
        ];
        kernels.launch(
            &name,
            grid,
            threads,
            tile * size_of::<T>(),
            vec![structure(&pass, fields)],
        );
        log_before += u64::from(log_radix);
        std::mem::swap(&mut from, &mut to);
    }
    *values = from;
}
