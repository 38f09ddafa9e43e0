//! What a transform can be taken of: scalars ([`crate::kernels::field`] has that impl). Memory: none.

use crate::kernels::lanes::Factor;
use crate::kernels::ntt::{Twiddles, Twist};

/// A value that butterflies with factors in `F` can be taken of.
///
/// Between butterflies values may be relaxed (see [`crate::kernels::field`]); [`settle`](Self::settle) and
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
    /// Multiplies by `factor`; the result is settled.
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
    fn settle(&mut self);
    /// Multiplies row r of a strip of columns by `before^r`, transforms its columns, and multiplies by the twist, for a strip
    /// that begins at column `first_column` of its panel: all in eight lanes, if there are any for this type. Says whether
    /// that is done; if not, nothing is.
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
    /// Transforms up to eight rows, in lanes as above. With `middle`, of one factor for each value of a transform, rows have
    /// two parts: they become sum and difference, the latter times `middle`, and each is transformed.
    #[doc(hidden)]
    fn rows_in_lanes(rows: &mut [&mut [Self]], twiddles: &Twiddles<F>, middle: &[Factor]) -> bool {
        let _ = (rows, twiddles, middle);
        false
    }
}
