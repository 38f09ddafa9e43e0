//! What a transform can be taken of: scalars. Memory: none.

use crate::backend::{Backend, Factor, Kernel, Lanes};
use crate::field::KernelField;
use crate::ntt::{Twiddles, Twist, strips};

/// A value that butterflies with factors in `F` can be taken of.
///
/// Between butterflies values may be lazy (see [`crate::field`]); [`reduce`](Self::reduce) and
/// [`scale`](Self::scale) end that.
pub trait NttElement<F>: Sized + Copy + Send + Sync {
    /// Fills buffers before use.
    const FILL: Self;
    /// `(low, high) <- (low + factor * high, low - factor * high)`.
    fn butterfly(low: &mut Self, high: &mut Self, factor: &F);
    /// [`butterfly`](Self::butterfly) of each pair of two runs of one length, with one factor.
    #[inline]
    fn butterflies(low: &mut [Self], high: &mut [Self], factor: &F) {
        for (low, high) in low.iter_mut().zip(high) {
            Self::butterfly(low, high, factor);
        }
    }
    /// The butterfly with factor 1.
    fn butterfly_one(low: &mut Self, high: &mut Self);
    /// Multiplies by `factor`; the result is canonical.
    fn scale(&mut self, factor: &F);
    /// [`scale`](Self::scale) of each value with the same factor.
    #[inline]
    fn scale_run(values: &mut [Self], factor: &F) {
        values.iter_mut().for_each(|value| value.scale(factor));
    }
    /// [`scale`](Self::scale) of each value with its own factor.
    #[inline]
    fn scale_each(values: &mut [Self], factors: &[F]) {
        for (value, factor) in values.iter_mut().zip(factors) {
            value.scale(factor);
        }
    }
    /// Makes the value canonical again.
    fn reduce(&mut self);
    /// Multiplies row r of a strip of columns by `before^r`, transforms its columns, and multiplies by the
    /// twist, for a strip that begins at column `first_column` of its panel: all in wide lanes, if there are
    /// any for this type. Says whether that is done; if not, nothing is.
    #[doc(hidden)]
    fn columns_in_lanes(
        strip: &mut [&mut [Self]],
        first_column: usize,
        twiddles: &Twiddles<F>,
        before: &[Factor],
        twist: Option<&Twist<F>>,
    ) -> bool {
        let _ = (strip, first_column, twiddles, before, twist);
        false
    }
    /// Transforms up to eight rows, in lanes as above. With `middle`, of one factor for each value of a
    /// transform, rows have two parts: they become sum and difference, the latter times `middle`, and each is
    /// transformed.
    #[doc(hidden)]
    fn rows_in_lanes(rows: &mut [&mut [Self]], twiddles: &Twiddles<F>, middle: &[Factor]) -> bool {
        let _ = (rows, twiddles, middle);
        false
    }
}

impl<F: KernelField> NttElement<F> for F {
    const FILL: Self = Self::ZERO;

    #[inline(always)]
    fn butterfly(low: &mut Self, high: &mut Self, factor: &F) {
        let product = high.lazy_product(factor);
        F::lazy_sum_and_difference(low, high, &product);
    }

    #[inline(always)]
    fn butterfly_one(low: &mut Self, high: &mut Self) {
        let second = high.below_two_p();
        F::lazy_sum_and_difference(low, high, &second);
    }

    #[inline(always)]
    fn scale(&mut self, factor: &F) {
        // Lazy values are below 4p only where that is below 2^256, and then 4p * p / 2^256 + p < 2p.
        *self = self.times(factor);
    }

    fn scale_run(values: &mut [Self], factor: &F) {
        F::run_scale(Backend::detect(), Scale { values, factor });
    }

    fn scale_each(values: &mut [Self], factors: &[F]) {
        F::run_scale_each(Backend::detect(), ScaleEach { values, factors });
    }

    #[inline(always)]
    fn reduce(&mut self) {
        *self = self.canonical();
    }

    fn columns_in_lanes(
        strip: &mut [&mut [Self]],
        first_column: usize,
        twiddles: &Twiddles<F>,
        before: &[Factor],
        twist: Option<&Twist<F>>,
    ) -> bool {
        strips::columns(strip, first_column, twiddles, before, twist)
    }

    fn rows_in_lanes(rows: &mut [&mut [Self]], twiddles: &Twiddles<F>, middle: &[Factor]) -> bool {
        strips::rows(rows, twiddles, middle)
    }
}

/// Products of a run with one factor. Lazy values are below 4 p, shifted below 64 p, where p < R / 64, and
/// else below 16 p: the product is below 3 p.
pub struct Scale<'a, F> {
    values: &'a mut [F],
    factor: &'a F,
}

impl<F: KernelField> Kernel<F> for Scale<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) {
        let factor = lanes.splat(self.factor);
        for values in self.values.chunks_mut(W) {
            let product = lanes.product(&lanes.load_shifted(values), &factor);
            lanes.store(&lanes.canonical(product), values);
        }
    }
}

/// The same with a factor for each value.
pub struct ScaleEach<'a, F> {
    values: &'a mut [F],
    factors: &'a [F],
}

impl<F: KernelField> Kernel<F> for ScaleEach<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) {
        for (values, factors) in self.values.chunks_mut(W).zip(self.factors.chunks(W)) {
            let product = lanes.product(&lanes.load_shifted(values), &lanes.load(factors));
            lanes.store(&lanes.canonical(product), values);
        }
    }
}
