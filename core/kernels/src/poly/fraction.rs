//! Fractions to field elements: batch inversion of the denominators that are there, one inversion per piece
//! of 1024. Memory: one piece of scalars and of indices per thread.

use super::PIECE;
use super::invert::invert_piece;
use crate::field::KernelField;
use crate::parallel::Parallel;

/// `output[i]` = numerator / denominator of `fraction(&cells[i])`, for every i of the shorter slice. Without
/// a denominator it is the numerator; with a denominator of 0 it is 0.
pub fn quotients<F: KernelField, T: Sync>(
    cells: &[T],
    fraction: impl Fn(&T) -> (F, Option<F>) + Sync,
    output: &mut [F],
) {
    output
        .chunks_mut(PIECE)
        .zip(cells.chunks(PIECE))
        .parallel()
        .for_each_init(
            || {
                (
                    Vec::with_capacity(PIECE),
                    Vec::with_capacity(PIECE),
                    Vec::with_capacity(PIECE),
                )
            },
            |(places, denominators, before), (output, cells)| {
                places.clear();
                denominators.clear();
                for (place, (output, cell)) in output.iter_mut().zip(cells).enumerate() {
                    let (numerator, denominator) = fraction(cell);
                    *output = numerator;
                    if let Some(denominator) = denominator {
                        places.push(place);
                        denominators.push(denominator);
                    }
                }
                if places.is_empty() {
                    return;
                }
                invert_piece(denominators, before);
                for (&place, inverse) in places.iter().zip(denominators.iter()) {
                    output[place] = output[place].times(inverse);
                }
            },
        );
}
