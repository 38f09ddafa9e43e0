//! The steps of a transform whose data is a matrix: columns, twist, rows, transposition.
//!
//! Shapes: row-major, `width` values a row. A four-step transform of n = n1 * n2 values lays them out as n1
//! rows of n2: transform the columns (n1-point), multiply element (r, c) by omega_n^(r * c), transform the
//! rows (n2-point), and read the matrix by columns: value k1 + n1 * k2 is at row k1, column k2. Memory: one
//! strip of columns per thread.

use crate::error::Result;
use crate::field::KernelField;
use crate::ntt::{Domain, NttElement, Twiddles, strips};
use crate::parallel::Parallel;
use crate::poly::powers;

/// A strip of columns is copied to a buffer of this size (or of eight columns, if that is more) to be
/// transformed: it stays in the second-level cache.
pub const STRIP_BYTES: usize = 256 << 10;

/// Columns or rows that are transformed side by side.
pub(super) const SIDE_BY_SIDE: usize = 8;

/// log2 of the row from where on all threads can share one.
const LONG_ROW_LOG_MIN: u32 = 9;

/// Values on one side of a tile that is swapped at a time.
const TILE: usize = 16;

/// Factors `scale * base^C * row^R * root^(R * C)` with `R = first_row + r`, `C = first_column + c`, for
/// element (r, c) of a panel.
#[derive(Clone, Copy, Debug)]
pub struct Twist<F> {
    /// The n-th root of unity of the whole transform.
    pub root: F,
    /// Row of the panel's first row in the whole matrix.
    pub first_row: u64,
    /// Column of the panel's first column in the whole matrix.
    pub first_column: u64,
    /// A factor common to all (1, or 1/n of an inverse transform).
    pub scale: F,
    /// Goes to the power of the column: a column's part of a coset's shift, or 1.
    pub base: F,
    /// Goes to the power of the row: a row's part of a coset's shift, or 1.
    pub row: F,
}

/// Running factors for a strip of columns: one row's, and the step to the next row's.
struct Factors<F> {
    row: Vec<F>,
    step: Vec<F>,
}

impl<F: KernelField> Factors<F> {
    fn new() -> Self {
        Self {
            row: Vec::new(),
            step: Vec::new(),
        }
    }

    /// Starts at the panel's row `row`, for `width` columns from the panel's column `column`.
    fn start(&mut self, twist: &Twist<F>, row: usize, column: usize, width: usize) {
        let row = twist.first_row + row as u64;
        let mut step = twist
            .root
            .pow([twist.first_column + column as u64])
            .times(&twist.row);
        let per_column = twist.root.pow([row]).times(&twist.base);
        let mut value = per_column
            .pow([twist.first_column + column as u64])
            .times(&twist.row.pow([row]))
            .times(&twist.scale);
        self.row.clear();
        self.step.clear();
        for _ in 0..width {
            self.step.push(step);
            self.row.push(value);
            step = step.times(&twist.root);
            value = value.times(&per_column);
        }
    }

    /// Multiplies one row, and steps to the next.
    #[inline(always)]
    fn apply<E: NttElement<F>>(&mut self, values: &mut [E]) {
        E::scale_each(values, &self.row);
        F::scale_each(&mut self.row, &self.step);
    }
}

/// Multiplies row r of a panel by `before^r`, transforms every column (of `twiddles.size()` rows, `width`
/// columns), in place, and multiplies by the twist if there is one. Panics if the panel's length is not their
/// product.
pub fn columns<F: KernelField, E: NttElement<F>>(
    panel: &mut [E],
    width: usize,
    twiddles: &Twiddles<F>,
    before: &F,
    twist: Option<&Twist<F>>,
) {
    let height = twiddles.size();
    assert_eq!(
        panel.len(),
        height * width,
        "a panel has one row per point of the transform"
    );
    if panel.is_empty() {
        return;
    }
    let mut shifts = Vec::new();
    if !before.is_one() {
        shifts.resize(height, F::ZERO);
        powers(&mut shifts, &F::ONE, before);
    }
    let factors_before = strips::factors(&shifts);
    let strip_width = strip_width::<E>(height, width);
    let strips = split_columns(panel, width, strip_width);
    strips.into_iter().enumerate().parallel().for_each_init(
        || (Vec::new(), Factors::new()),
        |(buffer, factors), (index, mut strip)| {
            let first_column = index * strip_width;
            if E::columns_in_lanes(&mut strip, first_column, twiddles, &factors_before, twist) {
                return;
            }
            let width = strip[0].len();
            buffer.resize(height * strip_width, E::FILL);
            let buffer = &mut buffer[..height * width];
            for (r, (row, values)) in strip.iter().zip(buffer.chunks_exact_mut(width)).enumerate() {
                values.copy_from_slice(row);
                if let Some(shift) = shifts.get(r) {
                    E::scale_run(values, shift);
                }
            }
            twiddles.column_layers(buffer, width);
            if let Some(twist) = twist {
                factors.start(twist, 0, first_column, width);
            }
            for (i, row) in strip.iter_mut().enumerate() {
                let source = twiddles.reverse(i) * width;
                row.copy_from_slice(&buffer[source..source + width]);
                match twist {
                    Some(_) => factors.apply(row),
                    None => row.iter_mut().for_each(E::reduce),
                }
            }
        },
    );
}

/// Columns per strip: about [`STRIP_BYTES`], at least a vector of eight, and enough strips for every thread.
fn strip_width<E>(height: usize, width: usize) -> usize {
    let fit = STRIP_BYTES / (height * size_of::<E>()).max(1);
    let share = width.div_ceil(2 * rayon::current_num_threads());
    let vectors = fit.min(share) / SIDE_BY_SIDE * SIDE_BY_SIDE;
    vectors.clamp(SIDE_BY_SIDE.min(width), width)
}

/// The pieces of every row that make up each strip of columns.
fn split_columns<E>(panel: &mut [E], width: usize, strip_width: usize) -> Vec<Vec<&mut [E]>> {
    let height = panel.len() / width;
    let mut strips: Vec<Vec<&mut [E]>> = (0..width.div_ceil(strip_width))
        .map(|_| Vec::with_capacity(height))
        .collect();
    for row in panel.chunks_exact_mut(width) {
        for (strip, piece) in strips.iter_mut().zip(row.chunks_mut(strip_width)) {
            strip.push(piece);
        }
    }
    strips
}

/// Transforms every row (of `twiddles.size()` values) of a tile, in place. Panics if the tile is not a whole
/// number of rows.
pub fn rows<F: KernelField, E: NttElement<F>>(tile: &mut [E], twiddles: &Twiddles<F>) {
    assert_eq!(
        tile.len() % twiddles.size(),
        0,
        "a tile is a whole number of rows"
    );
    each_row(tile.chunks_exact_mut(twiddles.size()).collect(), twiddles);
}

/// Tables for the rows of tiles of one height.
pub enum RowTables<F> {
    /// Rows are transformed side by side.
    Together(Twiddles<F>),
    /// They are few and long: all threads share each one.
    Alone(Domain<F>),
}

impl<F: KernelField> RowTables<F> {
    /// For tiles of up to `rows` rows of `2^log_len` values, and a primitive root of that order.
    ///
    /// Errors: [`crate::error::RootOfUnityError`] if `omega` is not one.
    pub fn new(log_len: u32, omega: F, rows: u64) -> Result<Self> {
        Ok(match rows < SIDE_BY_SIDE as u64 && log_len > LONG_ROW_LOG_MIN {
            true => Self::Alone(Domain::new(log_len, omega)?),
            false => Self::Together(Twiddles::new(log_len, omega)?),
        })
    }

    /// Transforms every row of a tile, in place. Panics as [`rows`] does.
    pub fn transform<E: NttElement<F>>(&self, tile: &mut [E]) {
        match self {
            Self::Together(twiddles) => rows(tile, twiddles),
            Self::Alone(row) => {
                assert_eq!(tile.len() % row.size(), 0, "a tile is a whole number of rows");
                tile.chunks_exact_mut(row.size())
                    .for_each(|values| row.forward(values));
            }
        }
    }
}

/// Transforms rows of `twiddles.size()` values, wherever they are, in place. Panics if one has another
/// length.
pub fn each_row<F: KernelField, E: NttElement<F>>(mut rows: Vec<&mut [E]>, twiddles: &Twiddles<F>) {
    assert!(
        rows.iter().all(|row| row.len() == twiddles.size()),
        "a transform's length is its table's"
    );
    rows.chunks_mut(SIDE_BY_SIDE).parallel().for_each(|rows| {
        if !E::rows_in_lanes(rows, twiddles, &[]) {
            rows.iter_mut().for_each(|row| twiddles.transform(row));
        }
    });
}

/// Multiplies element (r, c) of a panel by its twist, in place.
pub fn twist<F: KernelField, E: NttElement<F>>(panel: &mut [E], width: usize, twist: &Twist<F>) {
    if width == 0 {
        return;
    }
    // Factors are begun for every piece, so pieces are tall; a low panel is cut into columns, that all
    // threads have some.
    let height = (4096 / width).max(16);
    let piece_width = match panel.len() / width < height * rayon::current_num_threads() {
        true => width.div_ceil(2 * rayon::current_num_threads()).max(256),
        false => width,
    };
    let pieces = panel.chunks_mut(height * width).enumerate();
    let pieces: Vec<(usize, usize, Vec<&mut [E]>)> = pieces
        .flat_map(|(i, rows)| {
            let strips = split_columns(rows, width, piece_width).into_iter().enumerate();
            strips.map(move |(j, strip)| (i * height, j * piece_width, strip))
        })
        .collect();
    pieces.into_iter().parallel().for_each_init(
        Factors::new,
        |factors, (first_row, first_column, mut strip)| {
            factors.start(twist, first_row, first_column, strip[0].len());
            strip.iter_mut().for_each(|row| factors.apply(row));
        },
    );
}

/// Swaps the outer digits of an index (a, b, c) of a cube of side x middle x side values, in place.
pub(super) fn reverse_digits<E: Send>(values: &mut [E], side: usize, middle: usize) {
    let tile = TILE.min(side);
    let tiles = side / tile;
    // grid[b][i][j]: the rows of the tile with row block i and column block j of slice b.
    let mut grid: Vec<Vec<&mut [E]>> = (0..middle * tiles * tiles)
        .map(|_| Vec::with_capacity(tile))
        .collect();
    for (a, rows) in values.chunks_exact_mut(middle * side).enumerate() {
        for (b, row) in rows.chunks_exact_mut(side).enumerate() {
            for (j, piece) in row.chunks_exact_mut(tile).enumerate() {
                grid[(b * tiles + a / tile) * tiles + j].push(piece);
            }
        }
    }
    let mut grid: Vec<Option<Vec<&mut [E]>>> = grid.into_iter().map(Some).collect();
    let mut pairs = Vec::with_capacity(grid.len());
    for b in 0..middle {
        for i in 0..tiles {
            for j in i..tiles {
                let upper = grid[(b * tiles + i) * tiles + j].take();
                let lower = grid[(b * tiles + j) * tiles + i].take();
                pairs.push((upper, lower));
            }
        }
    }
    pairs
        .into_iter()
        .parallel()
        .in_runs_of(8)
        .for_each(|(upper, lower)| match (upper, lower) {
            (Some(mut upper), Some(mut lower)) => {
                for (r, upper) in upper.iter_mut().enumerate() {
                    for (upper, lower) in upper.iter_mut().zip(&mut lower) {
                        std::mem::swap(upper, &mut lower[r]);
                    }
                }
            }
            (Some(mut diagonal), None) => {
                for r in 1..diagonal.len() {
                    let (above, below) = diagonal.split_at_mut(r);
                    for (c, above) in above.iter_mut().enumerate() {
                        std::mem::swap(&mut above[r], &mut below[0][c]);
                    }
                }
            }
            (None, _) => {}
        });
}
