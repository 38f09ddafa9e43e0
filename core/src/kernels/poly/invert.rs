//! Batch inversion (Montgomery's trick), one inversion per piece of 1024. Memory: one piece of scalars per thread.

use rayon::prelude::*;

use super::PIECE;
use crate::kernels::field::KernelField;

/// Replaces every non-zero value by its inverse; zeros stay zero.
pub fn invert_chunk<F: KernelField>(values: &mut [F]) {
    values.par_chunks_mut(PIECE).for_each_init(
        || Vec::with_capacity(PIECE),
        |before, values| invert_piece(values, before),
    );
}

/// [`invert_chunk`] on one thread, with one inversion; `before` is room for as many products.
pub(super) fn invert_piece<F: KernelField>(values: &mut [F], before: &mut Vec<F>) {
    before.clear();
    let mut product = F::ONE;
    for value in values.iter() {
        before.push(product);
        if !value.is_zero() {
            product = product.times(value);
        }
    }
    // A product of non-zero values is not zero.
    let mut inverse = product.inverse().unwrap_or(F::ZERO);
    for (value, before) in values.iter_mut().zip(before.iter()).rev() {
        if !value.is_zero() {
            let inverted = inverse.times(before);
            inverse = inverse.times(value);
            *value = inverted;
        }
    }
}
