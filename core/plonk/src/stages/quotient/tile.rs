//! The rows of one column on a coset, as a window that slides over the matrix: a tile's rows and the rows
//! around it that the column's rotations reach.
//!
//! Row r of the window's walk is row `r mod n1` of the matrix. Where r leaves `0 .. n1`, going round once,
//! the point after the last of row r's is in the next column of row 0: the row is rotated by `floor(r / n1)`
//! places. Every row is read and transformed once, and once more those few around the ends of a stretch: what
//! two neighbouring tiles share stays.

use std::ops::Range;

use super::domain::CosetDomain;
use super::matrix::Matrix;
use super::shape::halo;
use spillproof_engine::Result;
use spillproof_engine::accelerator::RowSource;
use spillproof_engine::budget::LeasedVec;
use spillproof_engine::column::{Column, Element, Reader, Region};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::ntt::{NttElement, Twiddles, each_row};
use spillproof_kernels::parallel::Parallel;
use spillproof_kernels::poly;

/// What all windows over a coset share.
pub(super) struct Coset<'a, F> {
    pub shift: F,
    pub omega: F,
    /// `(shift^n - 1) / n`: l_0(x) is this over `x - 1`.
    pub first_lagrange: F,
    pub along: &'a Twiddles<F>,
    /// `omega^(n1 * k2)`; empty if nothing is computed.
    pub powers: &'a [F],
    pub rows: u64,
}

impl<'a, F: KernelField> Coset<'a, F> {
    /// The coset of `shift`, over `rows` rows of the matrix.
    pub fn new(
        domain: &CosetDomain<F>,
        shift: F,
        rows: u64,
        (along, powers): (&'a Twiddles<F>, &'a [F]),
    ) -> Result<Self> {
        Ok(Self {
            shift,
            omega: domain.omega,
            first_lagrange: domain.first_lagrange(shift)?,
            along,
            powers,
            rows,
        })
    }
}

pub(super) struct Window<F: Copy> {
    /// The program's name for it.
    pub column: usize,
    /// Its smallest rotation.
    first: i64,
    halo: u64,
    row_len: usize,
    source: RowSource,
    /// Of a column that [`Matrix::coset_rows`] made, if rows are read.
    reader: Option<Reader<F>>,
    values: LeasedVec<F>,
    /// Row of the walk that comes next.
    next: i64,
    /// Rows that `values` holds.
    held: usize,
}

/// A row that has come, and has to be made values.
pub(super) struct NewRow<'a, F> {
    pub values: &'a mut [F],
    pub row: i64,
    pub source: RowSource,
}

impl<F: KernelField + NttElement<F> + Element> Window<F> {
    /// A window for the rotations `(smallest, largest)` before the first tile of a stretch of `rows`: on the
    /// rows of `read`, or on rows that are computed.
    pub fn new(
        matrix: &Matrix<F>,
        column: usize,
        (source, read): (RowSource, Option<&Column<F>>),
        rotations: (i32, i32),
        rows: Range<u64>,
    ) -> Result<Self> {
        let (tile_rows, n1, n2) = (matrix.plan.tile_rows, matrix.plan.rows(), matrix.plan.row_len());
        let (first, halo) = (i64::from(rotations.0), halo(rotations));
        let next = rows.start as i64 + first;
        let regions =
            pieces(halo, rows.end - rows.start, tile_rows).map(move |(start, len)| Region::Wrapped {
                start: (next + start as i64).rem_euclid(n1 as i64) as u64 * n2,
                len: len * n2,
                modulus: n1 * n2,
            });
        let reader = read.map(|column| column.reader(regions, 1)).transpose()?;
        Ok(Self {
            column,
            first,
            halo,
            row_len: n2 as usize,
            source,
            reader,
            values: matrix.vec((tile_rows + halo) * n2, "rows on a coset")?,
            next,
            held: 0,
        })
    }

    /// Goes on to the next tile, of `rows` rows (all but the last have `tile_rows`): reads what is missing,
    /// and gives it to be made values.
    pub fn slide(&mut self, tile_rows: u64, rows: u64) -> Result<Vec<NewRow<'_, F>>> {
        let (row_len, halo) = (self.row_len, self.halo as usize);
        let mut first_new = self.held;
        if first_new > halo {
            // The halo of the next tile is the end of what is held.
            self.values
                .copy_within((first_new - halo) * row_len..first_new * row_len, 0);
            first_new = halo;
        }
        // Before the first tile comes the halo, in pieces that the reader's buffers hold.
        let mut held = first_new;
        let target = halo + rows as usize;
        let first_row = self.next;
        while held < target {
            let missing = if held < halo { halo - held } else { target - held };
            let len = missing.min(tile_rows as usize);
            if let Some(reader) = &mut self.reader {
                reader.next_into(&mut self.values[held * row_len..(held + len) * row_len])?;
            }
            held += len;
        }
        self.held = held;
        self.next += (held - first_new) as i64;
        let source = self.source;
        let new = self.values[first_new * row_len..held * row_len].chunks_exact_mut(row_len);
        Ok(new
            .zip(first_row..)
            .map(|(values, row)| NewRow { values, row, source })
            .collect())
    }

    /// The values of `rows` rows of the tile, rotated.
    pub fn rotated(&self, rotation: i32, rows: u64) -> &[F] {
        let first = (i64::from(rotation) - self.first) as usize;
        &self.values[first * self.row_len..(first + rows as usize) * self.row_len]
    }
}

/// Start and length of the pieces of a walk of `halo + rows` rows.
fn pieces(halo: u64, rows: u64, tile_rows: u64) -> impl Iterator<Item = (u64, u64)> + Clone + Send {
    let cut = move |from: u64, to: u64| {
        (from..to)
            .step_by(tile_rows as usize)
            .map(move |start| (start, tile_rows.min(to - start)))
    };
    cut(0, halo).chain(cut(halo, halo + rows))
}

/// All windows go on to the next tile, side by side: each waits for its own transfer.
pub(super) fn slide_all<'a, F: KernelField + NttElement<F> + Element>(
    windows: &'a mut [Window<F>],
    tile_rows: u64,
    rows: u64,
    coset: &Coset<F>,
) -> Result<()> {
    let new: Vec<Vec<NewRow<'a, F>>> = windows
        .iter_mut()
        .parallel()
        .try_map(|window| window.slide(tile_rows, rows))?;
    make_values(new.into_iter().flatten().collect(), coset);
    Ok(())
}

/// Makes row values, on the rayon pool.
fn make_values<F: KernelField + NttElement<F>>(rows: Vec<NewRow<F>>, coset: &Coset<F>) {
    let (mut read, computed): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|row| row.source == RowSource::Read);
    computed.into_iter().parallel().for_each(|row| row.compute(coset));
    let transformed = read.iter_mut().map(|row| &mut *row.values).collect();
    each_row(transformed, coset.along);
    for row in read {
        let around = row.row.div_euclid(coset.rows as i64);
        let around = around.rem_euclid(row.values.len() as i64) as usize;
        if around > 0 {
            row.values.rotate_left(around);
        }
    }
}

impl<F: KernelField + NttElement<F>> NewRow<'_, F> {
    /// Makes the row values of a column that is computed, on this thread.
    pub fn compute(mut self, coset: &Coset<F>) {
        match self.source {
            RowSource::Read => {}
            RowSource::Identity => self.points(coset, F::ZERO),
            RowSource::FirstLagrange => {
                self.points(coset, F::ONE);
                // No point of a coset is 1, or the vanishing polynomial would be zero on it.
                poly::invert_chunk(self.values);
                for value in self.values.iter_mut() {
                    *value = value.times(&coset.first_lagrange);
                }
            }
        }
    }

    /// The row's points, less `subtracted`. Going round the matrix is going round the roots: nothing is
    /// rotated.
    fn points(&mut self, coset: &Coset<F>, subtracted: F) {
        let n = coset.rows * self.values.len() as u64;
        let first = coset
            .omega
            .pow([self.row.rem_euclid(n as i64) as u64])
            .times(&coset.shift);
        for (value, power) in self.values.iter_mut().zip(coset.powers) {
            *value = power.times(&first).minus(&subtracted);
        }
    }
}
