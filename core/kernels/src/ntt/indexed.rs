//! The steps of a transform in pieces that know where in the whole they stand. Memory: none.

use crate::field::KernelField;
use crate::ntt::NttElement;
use crate::parallel::Parallel;

/// Multiplies element (r, c) of a panel of `width` columns by `base^(first + r * row_step + c)`: the shift to
/// or from a coset.
pub fn scale_indexed<F: KernelField, E: NttElement<F>>(
    panel: &mut [E],
    width: usize,
    base: &F,
    first: u64,
    row_step: u64,
) {
    if width == 0 {
        return;
    }
    // Long rows are cut, so that one row is work for all cores.
    let piece = width.min(4096);
    panel
        .chunks_mut(width)
        .enumerate()
        .parallel()
        .for_each(|(row, values)| {
            let row_first = first + row as u64 * row_step;
            values
                .chunks_mut(piece)
                .enumerate()
                .parallel()
                .for_each(|(i, values)| {
                    let mut power = base.pow([row_first + (i * piece) as u64]);
                    for value in values {
                        value.scale(&power);
                        power = power.times(base);
                    }
                });
        });
}

/// Transposes a block of a larger matrix: `source` starts at the block's first element and has rows of
/// `source_width` values, of which the block takes `width`, in `height` rows; `target` becomes `width` rows
/// of `height` values.
pub fn transpose_block<E: Copy + Send + Sync>(
    source: &[E],
    source_width: usize,
    height: usize,
    width: usize,
    target: &mut [E],
) {
    /// Values on one side of a tile that is copied at a time.
    const TILE: usize = 16;
    target[..width * height]
        .chunks_mut(TILE * height)
        .enumerate()
        .parallel()
        .for_each(|(band, target)| {
            let first = band * TILE;
            for block in (0..height).step_by(TILE) {
                for (c, row) in target.chunks_exact_mut(height).enumerate() {
                    for r in block..(block + TILE).min(height) {
                        row[r] = source[r * source_width + first + c];
                    }
                }
            }
        });
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bn254::Fr;
    use ark_ff::Field;

    use crate::ntt::{Twist, twist};

    #[test]
    fn powers_follow_the_index() {
        let base = Fr::from(3u64);
        for width in [1usize, 3, 5000] {
            let mut panel = vec![Fr::ONE; 2 * width];
            scale_indexed(&mut panel, width, &base, 7, 100);
            for (i, value) in panel.iter().enumerate() {
                let (row, column) = (i / width, i % width);
                assert_eq!(*value, base.pow([7 + 100 * row as u64 + column as u64]));
            }
        }
    }

    #[test]
    fn rows_and_columns_share_a_shift() {
        let (base, root) = (Fr::from(3u64), Fr::from(7u64));
        let (rows, width, row_len) = (5usize, 6usize, 40u64);
        let mut panel = vec![Fr::ONE; rows * width];
        let factors = Twist {
            root,
            first_row: 2,
            first_column: 9,
            scale: Fr::from(11u64),
            base,
            row: base.pow([row_len]),
        };
        twist(&mut panel, width, &factors);
        for (i, value) in panel.iter().enumerate() {
            let (row, column) = (2 + (i / width) as u64, 9 + (i % width) as u64);
            let wanted = base.pow([row * row_len + column]) * root.pow([row * column]);
            assert_eq!(*value, wanted * Fr::from(11u64));
        }
    }

    #[test]
    fn a_block_is_transposed_where_it_stands() {
        let (rows, columns) = (40usize, 50usize);
        let source: Vec<u32> = (0..(rows * columns) as u32).collect();
        let (height, width, first_row, first_column) = (33, 18, 2, 5);
        let mut target = vec![0; height * width];
        transpose_block(
            &source[first_row * columns + first_column..],
            columns,
            height,
            width,
            &mut target,
        );
        for c in 0..width {
            for r in 0..height {
                assert_eq!(
                    target[c * height + r],
                    source[(first_row + r) * columns + first_column + c]
                );
            }
        }
    }
}
