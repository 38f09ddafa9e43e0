//! The twiddle table of one small transform, and that transform itself.
//!
//! Table: omega^bitrev(j) for j < n/2, where bitrev reverses k - 1 bits: group g of any layer uses entry g,
//! and the prefix of length m/2 is the table of the m-point transform. Memory: 32 * n/2 bytes, and 80 * n/2
//! where there are wide lanes.

use crate::backend::Factor;
use crate::error::{Result, RootOfUnityError};
use crate::field::KernelField;
use crate::ntt::{NttElement, strips};

/// Below this many values a block is transformed layer by layer, above it by halves, so that it comes to fit
/// the cache.
const BLOCK: usize = 1024;

/// Runs below this length are not worth a call.
const SHORT: usize = 8;

/// Twiddles for transforms of 2^`log_n` values.
#[derive(Clone, Debug)]
pub struct Twiddles<F> {
    log_n: u32,
    omega: F,
    /// omega^bitrev(j).
    table: Vec<F>,
    /// The same for lanes, where there are any; else empty.
    factors: Vec<Factor>,
}

impl<F: KernelField> Twiddles<F> {
    /// The table for n = 2^`log_n` and a primitive n-th root `omega`.
    ///
    /// Errors: [`RootOfUnityError`] if `omega` is not a primitive n-th root of unity.
    pub fn new(log_n: u32, omega: F) -> Result<Self> {
        check_root(log_n, &omega)?;
        let half = 1usize << log_n.saturating_sub(1);
        let mut table = Vec::with_capacity(half);
        table.push(F::ONE);
        // Entry j + 2^i is entry j times omega^(n / 2^(i + 2)).
        let mut roots = Vec::new();
        let mut root = omega;
        for _ in 1..log_n {
            roots.push(root);
            root = root.squared();
        }
        for root in roots.iter().rev() {
            for j in 0..table.len() {
                table.push(table[j].times(root));
            }
        }
        Ok(Self {
            log_n,
            omega,
            factors: strips::factors(&table),
            table,
        })
    }

    /// The number of values of a transform.
    pub fn size(&self) -> usize {
        1 << self.log_n
    }

    /// log2 of [`size`](Self::size).
    pub fn log_size(&self) -> u32 {
        self.log_n
    }

    /// The root of unity.
    pub fn omega(&self) -> F {
        self.omega
    }

    /// Bytes that the table holds.
    pub fn table_bytes(&self) -> u64 {
        (self.table.len() * size_of::<F>() + self.factors.len() * size_of::<Factor>()) as u64
    }

    /// The table for lanes; empty where there are none.
    pub(super) fn factors(&self) -> &[Factor] {
        &self.factors
    }

    /// The factor of a group of butterflies, in any layer.
    pub(super) fn factor(&self, group: usize) -> &F {
        &self.table[group]
    }

    /// Index `i` with its bits reversed.
    #[inline(always)]
    pub(super) fn reverse(&self, i: usize) -> usize {
        if self.log_n == 0 {
            0
        } else {
            i.reverse_bits() >> (usize::BITS - self.log_n)
        }
    }

    /// Transforms `values` in place, natural order to natural order, on this thread. Panics if the length is
    /// not [`size`](Self::size).
    pub fn transform<E: NttElement<F>>(&self, values: &mut [E]) {
        assert_eq!(values.len(), self.size(), "a transform's length is its table's");
        self.layers(values, 0);
        for i in 0..values.len() {
            let j = self.reverse(i);
            if i < j {
                values.swap(i, j);
            }
            // The value at i now stays there.
            values[i].reduce();
        }
    }

    /// All layers of the block with index `group`; bit-reversed output, lazy.
    fn layers<E: NttElement<F>>(&self, values: &mut [E], group: usize) {
        if values.len() > BLOCK {
            let (low, high) = values.split_at_mut(values.len() / 2);
            self.butterflies(low, high, group);
            self.layers(low, 2 * group);
            self.layers(high, 2 * group + 1);
            return;
        }
        let mut group = group;
        let mut half = values.len() / 2;
        while half >= 1 {
            for (i, block) in values.chunks_exact_mut(2 * half).enumerate() {
                let (low, high) = block.split_at_mut(half);
                self.butterflies(low, high, group + i);
            }
            group *= 2;
            half /= 2;
        }
    }

    /// One layer on the columns of a panel: rows of `width` values, transformed down the columns; output rows
    /// bit-reversed, lazy.
    pub(super) fn column_layers<E: NttElement<F>>(&self, panel: &mut [E], width: usize) {
        let mut half = self.size() / 2;
        while half >= 1 {
            for (group, block) in panel.chunks_exact_mut(2 * half * width).enumerate() {
                let (low, high) = block.split_at_mut(half * width);
                self.butterflies(low, high, group);
            }
            half /= 2;
        }
    }

    /// The butterflies of one group: they share a twiddle.
    #[inline(always)]
    fn butterflies<E: NttElement<F>>(&self, low: &mut [E], high: &mut [E], group: usize) {
        if group == 0 {
            for (low, high) in low.iter_mut().zip(high) {
                E::butterfly_one(low, high);
            }
        } else {
            let factor = self.table[group];
            if low.len() < SHORT {
                for (low, high) in low.iter_mut().zip(high) {
                    E::butterfly(low, high, &factor);
                }
            } else {
                E::butterflies(low, high, &factor);
            }
        }
    }
}

/// Refuses what is not a primitive 2^`log_n`-th root.
pub(super) fn check_root<F: KernelField>(log_n: u32, omega: &F) -> Result<()> {
    let primitive = match log_n {
        0 => omega.is_one(),
        1..=47 => omega.pow([1u64 << (log_n - 1)]) == -F::ONE,
        _ => false,
    };
    if primitive {
        Ok(())
    } else {
        Err(RootOfUnityError {
            omega: omega.to_string(),
            log_n,
        })
    }
}
