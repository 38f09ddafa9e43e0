//! Batch inversion (Montgomery's trick), one inversion per piece of 1024. Memory: one piece of scalars per
//! thread.

use super::scan::{carries_down, carries_up};
use super::{PIECE, blocks};
use crate::backend::Backend;
use crate::field::KernelField;
use crate::parallel::Parallel;

/// Replaces every non-zero value by its inverse; zeros stay zero.
pub fn invert_chunk<F: KernelField>(values: &mut [F]) {
    values.chunks_mut(PIECE).parallel().for_each_init(
        || Vec::with_capacity(PIECE),
        |before, values| invert_piece(values, before),
    );
}

/// [`invert_chunk`] on one thread, with one inversion; `before` is room for as many products.
pub(super) fn invert_piece<F: KernelField>(values: &mut [F], before: &mut Vec<F>) {
    if Backend::detect().pays_for_extra_products() && invert_in_lanes(values, before) {
        return;
    }
    before.clear();
    let mut product = F::ONE;
    for value in values.iter() {
        before.push(product);
        if !value.is_zero() {
            product = product.times(value);
        }
    }
    // A product of non-zero values is not zero.
    let mut inverse = product.inverted().unwrap_or(F::ZERO);
    for (value, before) in values.iter_mut().zip(before.iter()).rev() {
        if !value.is_zero() {
            let inverted = inverse.times(before);
            inverse = inverse.times(value);
            *value = inverted;
        }
    }
}

/// [`invert_piece`] in lanes, if the length suits them: an inverse is the product of all before, of all
/// behind, and of the inverse of all. That is a multiplication more than in one chain.
fn invert_in_lanes<F: KernelField>(values: &mut [F], behind: &mut Vec<F>) -> bool {
    let zeros: Vec<usize> = (0..values.len()).filter(|&i| values[i].is_zero()).collect();
    zeros.iter().for_each(|&i| values[i] = F::ONE);
    let done = match blocks::block_products(values) {
        Some(products) => {
            let all = products.iter().fold(F::ONE, |all, product| all.times(product));
            behind.clear();
            behind.extend_from_slice(values);
            blocks::suffix_products(behind, &carries_down(&products, F::ONE), true);
            let inverse = all.inverted().unwrap_or(F::ZERO);
            blocks::prefix_products(values, &carries_up(&products, inverse), behind);
            true
        }
        None => false,
    };
    zeros.iter().for_each(|&i| values[i] = F::ZERO);
    done
}
