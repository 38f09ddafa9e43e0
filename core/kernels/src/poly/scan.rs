//! Scans with a carry: evaluation and division from the top, prefix products from the bottom.
//!
//! Each is a two-level scan: every piece's own contribution in parallel, a short serial pass over the pieces'
//! carries, then every piece again, in parallel, with its carry. In lanes ([`super::blocks`]), a piece is cut
//! once more, into a block for each lane. Memory: 18 scalars per piece.

use super::PIECE;
use super::blocks::{self, Blocks, evaluate};
use crate::field::KernelField;
use crate::parallel::Parallel;

/// Horner's carries, `carry * point^len + chunk(point)`, at several points with one pass over the
/// coefficients. Chunks come from the top, the first with carry 0; after the lowest, a carry is the
/// polynomial's value at its point.
pub fn evaluate_chunk_many<F: KernelField>(coefficients: &[F], points: &[F], carries: &mut [F]) {
    let values: Vec<Vec<F>> = coefficients
        .chunks(PIECE)
        .parallel()
        .map(|piece| points.iter().map(|point| evaluate(piece, point)).collect());
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

/// Divides by `X - point`, in place: coefficient i of the chunk becomes coefficient i of the quotient (whose
/// degree is one less: the topmost becomes 0). Chunks come from the top, the first with carry 0; the carry
/// that the lowest chunk gives is the remainder, the polynomial's value at `point`.
pub fn divide_chunk<F: KernelField>(coefficients: &mut [F], point: &F, carry: F) -> F {
    let parts: Vec<Parts<F>> = coefficients
        .chunks(PIECE)
        .parallel()
        .map(|piece| match blocks::block_values(piece, point) {
            Some(blocks) => {
                let above = point.pow([(piece.len() / blocks.len()) as u64]);
                let horner = |sum: F, value: &F| sum.times(&above).plus(value);
                Parts {
                    whole: blocks.iter().rev().fold(F::ZERO, horner),
                    blocks: Some((blocks, above)),
                }
            }
            None => Parts {
                whole: evaluate(piece, point),
                blocks: None,
            },
        });
    let values: Vec<F> = parts.iter().map(|parts| parts.whole).collect();
    let mut carries = vec![F::ZERO; values.len()];
    let carry = fold_pieces(&values, coefficients.len(), point, carry, |i, carry| {
        carries[i] = carry
    });
    coefficients
        .chunks_mut(PIECE)
        .zip(parts)
        .zip(carries)
        .parallel()
        .for_each(|((piece, parts), mut carry)| match parts.blocks {
            Some((blocks, above)) => {
                let mut carries = Blocks::filled(F::ZERO, blocks.len());
                for (incoming, value) in carries.iter_mut().zip(blocks.iter()).rev() {
                    *incoming = carry;
                    carry = carry.times(&above).plus(value);
                }
                blocks::divide(piece, point, &carries);
            }
            None => {
                for value in piece.iter_mut().rev() {
                    let next = carry.times(point).plus(value);
                    *value = carry;
                    carry = next;
                }
            }
        });
    carry
}

/// A piece's own contribution to a scan: its value, and those of its blocks in lanes with the factor of a
/// carry over a block.
struct Parts<F> {
    whole: F,
    blocks: Option<(Blocks<F>, F)>,
}

/// Multiplies the carry, and gives its value before that.
fn advance<F: KernelField>(carry: &mut F, factor: &F) -> F {
    let next = carry.times(factor);
    std::mem::replace(carry, next)
}

/// The carry into each block, upwards.
pub(super) fn carries_up<F: KernelField>(blocks: &Blocks<F>, mut carry: F) -> Blocks<F> {
    let mut carries = Blocks::filled(F::ONE, blocks.len());
    for (incoming, product) in carries.iter_mut().zip(blocks.iter()) {
        *incoming = advance(&mut carry, product);
    }
    carries
}

/// The same, downwards.
pub(super) fn carries_down<F: KernelField>(blocks: &Blocks<F>, mut carry: F) -> Blocks<F> {
    let mut carries = Blocks::filled(F::ONE, blocks.len());
    for (incoming, product) in carries.iter_mut().zip(blocks.iter()).rev() {
        *incoming = advance(&mut carry, product);
    }
    carries
}

/// The products of a piece and of its blocks.
struct Products<F> {
    whole: F,
    blocks: Option<Blocks<F>>,
}

impl<F: KernelField> Products<F> {
    fn of(piece: &[F]) -> Self {
        let product = |values: &[F]| values.iter().fold(F::ONE, |product, value| product.times(value));
        let blocks = blocks::block_products(piece);
        Self {
            whole: product(blocks.as_deref().unwrap_or(piece)),
            blocks,
        }
    }
}

/// Exclusive prefix products of a piece, in place: value i becomes `carry * values[0] * ... * values[i - 1]`
/// times its factor.
fn prefix_products<F: KernelField>(piece: &mut [F], products: &Products<F>, mut carry: F, factors: &[F]) {
    if let Some(blocks) = &products.blocks {
        return blocks::prefix_products(piece, &carries_up(blocks, carry), factors);
    }
    for (value, factor) in piece.iter_mut().zip(factors) {
        *value = advance(&mut carry, value).times(factor);
    }
}

/// Inclusive suffix products of a piece, in place: value i becomes `values[i] * ... * values[n - 1] * carry`.
fn suffix_products<F: KernelField>(piece: &mut [F], products: &Products<F>, mut carry: F) {
    if let Some(blocks) = &products.blocks {
        return blocks::suffix_products(piece, &carries_down(blocks, carry), false);
    }
    for value in piece.iter_mut().rev() {
        carry = carry.times(value);
        *value = carry;
    }
}

/// The running product of fractions, exclusive: numerator i becomes `carry` times the fractions before i.
/// Chunks come from the bottom; the first carry is the first value wanted (1 for a grand product), the result
/// is the next chunk's carry. A fraction over zero counts as zero. The denominators are used up. `make` makes
/// the numerators and denominators of piece i, of [`PIECE`] values.
///
/// With N_i the product of the numerators before i, S_i that of the denominators from i on, and D that of
/// all: value i is `(carry / D) N_i S_i`. So there is one inversion a chunk, and five multiplications a
/// value.
pub fn fraction_product_chunk<F: KernelField>(
    numerators: &mut [F],
    denominators: &mut [F],
    carry: F,
    make: impl Fn(usize, &mut [F], &mut [F]) + Sync,
) -> F {
    let pieces = numerators.chunks_mut(PIECE).zip(denominators.chunks_mut(PIECE));
    let products: Vec<[Products<F>; 2]> =
        pieces
            .enumerate()
            .parallel()
            .map(|(i, (numerators, denominators))| {
                make(i, numerators, denominators);
                for (numerator, denominator) in numerators.iter_mut().zip(&mut *denominators) {
                    if denominator.is_zero() {
                        (*numerator, *denominator) = (F::ZERO, F::ONE);
                    }
                }
                [Products::of(numerators), Products::of(denominators)]
            });
    // Carries of the denominators, from the top.
    let mut all = F::ONE;
    let mut carries: Vec<[F; 2]> = vec![[F::ONE; 2]; products.len()];
    for ([_, denominators], [_, above]) in products.iter().zip(&mut carries).rev() {
        *above = advance(&mut all, &denominators.whole);
    }
    // No denominator is zero any more.
    let mut carry = carry.times(&all.inverted().unwrap_or(F::ZERO));
    for ([numerators, _], [below, _]) in products.iter().zip(&mut carries) {
        *below = advance(&mut carry, &numerators.whole);
    }
    let pieces = numerators.chunks_mut(PIECE).zip(denominators.chunks_mut(PIECE));
    let pieces = pieces.zip(products.iter().zip(&carries));
    pieces
        .parallel()
        .for_each(|((numerators, denominators), (products, carries))| {
            let ([of_numerators, of_denominators], [below, above]) = (products, *carries);
            suffix_products(denominators, of_denominators, above);
            prefix_products(numerators, of_numerators, below, denominators);
        });
    carry
}
