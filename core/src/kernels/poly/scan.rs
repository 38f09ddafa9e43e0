//! Scans with a carry: evaluation and division from the top, prefix products from the bottom.
//!
//! Each is a two-level scan: every piece's own contribution in parallel, a short serial pass over the pieces' carries, then
//! every piece again, in parallel, with its carry. Memory: one or two scalars per piece.

use rayon::prelude::*;

use super::PIECE;
use crate::kernels::field::KernelField;

/// The chunk's own value at `point`. Four chains hide the multiplier's latency.
fn evaluate_piece<F: KernelField>(coefficients: &[F], point: &F) -> F {
    let point_4 = point.squared().squared();
    let mut lanes = [F::ZERO; 4];
    let quads = coefficients.chunks_exact(4);
    let rest = quads.remainder();
    let tail = rest
        .iter()
        .rev()
        .fold(F::ZERO, |sum, value| sum.times(point).plus(value));
    for quad in quads.rev() {
        for (lane, value) in lanes.iter_mut().zip(quad) {
            *lane = lane.times(&point_4).plus(value);
        }
    }
    let head = lanes
        .iter()
        .rev()
        .fold(F::ZERO, |sum, lane| sum.times(point).plus(lane));
    let above = point.pow([(coefficients.len() - rest.len()) as u64]);
    head.plus(&tail.times(&above))
}

/// Horner's carry: `carry * point^len + chunk(point)`. Chunks come from the top, the first with carry 0; after the lowest,
/// the carry is the polynomial's value.
pub fn evaluate_chunk<F: KernelField>(coefficients: &[F], point: &F, carry: F) -> F {
    let values: Vec<F> = coefficients
        .par_chunks(PIECE)
        .map(|piece| evaluate_piece(piece, point))
        .collect();
    fold_pieces(&values, coefficients.len(), point, carry, |_, _| {})
}

/// [`evaluate_chunk`] at several points, with one pass over the coefficients. `carries` holds one carry per point.
pub fn evaluate_chunk_many<F: KernelField>(coefficients: &[F], points: &[F], carries: &mut [F]) {
    let values: Vec<Vec<F>> = coefficients
        .par_chunks(PIECE)
        .map(|piece| points.iter().map(|point| evaluate_piece(piece, point)).collect())
        .collect();
    for (i, (point, carry)) in points.iter().zip(carries).enumerate() {
        let values: Vec<F> = values.iter().map(|values| values[i]).collect();
        *carry = fold_pieces(&values, coefficients.len(), point, *carry, |_, _| {});
    }
}

/// Runs a Horner carry down over the pieces' values, telling `visit` each piece's incoming carry.
fn fold_pieces<F: KernelField>(
    values: &[F],
    len: usize,
    point: &F,
    mut carry: F,
    mut visit: impl FnMut(usize, F),
) -> F {
    let full = point.pow([PIECE as u64]);
    let last_len = len - values.len().saturating_sub(1) * PIECE;
    for (i, value) in values.iter().enumerate().rev() {
        visit(i, carry);
        let power = if i + 1 == values.len() {
            point.pow([last_len as u64])
        } else {
            full
        };
        carry = carry.times(&power).plus(value);
    }
    carry
}

/// Divides by `X - point`, in place: coefficient i of the chunk becomes coefficient i of the quotient (whose degree is one
/// less: the topmost becomes 0). Chunks come from the top, the first with carry 0; the carry that the lowest chunk gives is
/// the remainder, the polynomial's value at `point`.
pub fn divide_chunk<F: KernelField>(coefficients: &mut [F], point: &F, carry: F) -> F {
    let values: Vec<F> = coefficients
        .par_chunks(PIECE)
        .map(|piece| evaluate_piece(piece, point))
        .collect();
    let mut carries = vec![F::ZERO; values.len()];
    let carry = fold_pieces(&values, coefficients.len(), point, carry, |i, carry| {
        carries[i] = carry
    });
    coefficients
        .par_chunks_mut(PIECE)
        .zip(carries)
        .for_each(|(piece, mut carry)| {
            for value in piece.iter_mut().rev() {
                let next = carry.times(point).plus(value);
                *value = carry;
                carry = next;
            }
        });
    carry
}

/// Exclusive prefix product, in place: value i becomes `carry * values[0] * ... * values[i - 1]`. Chunks come from the bottom;
/// the first carry is the first value wanted (1 for a grand product), the result is the next chunk's carry.
pub fn prefix_product_chunk<F: KernelField>(values: &mut [F], mut carry: F) -> F {
    let products: Vec<F> = values
        .par_chunks(PIECE)
        .map(|piece| piece.iter().fold(F::ONE, |product, value| product.times(value)))
        .collect();
    let carries: Vec<F> = products
        .iter()
        .map(|product| {
            let incoming = carry;
            carry = carry.times(product);
            incoming
        })
        .collect();
    values
        .par_chunks_mut(PIECE)
        .zip(carries)
        .for_each(|(piece, mut carry)| {
            for value in piece {
                let next = carry.times(value);
                *value = carry;
                carry = next;
            }
        });
    carry
}
