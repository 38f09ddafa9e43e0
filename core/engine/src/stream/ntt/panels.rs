//! The panels of a transform's first pass.

use super::Tiles;
use super::four_step::FourStep;
use super::plan::Slices;
use crate::Result;
use crate::column::{Column, Element, Reader, Region};
use spillproof_kernels::field::KernelField;

/// The panels of pass 1, slice by slice: what the input is too short for is zero.
pub(super) struct Panels<'a, E> {
    zero: E,
    input: &'a Column<E>,
    reader: Reader<E>,
    row_len: u64,
    width: u64,
    slice_rows: u64,
    rows_per_read: u64,
}

impl<'a, E: Element> Panels<'a, E> {
    pub(super) fn new<F: KernelField, T: Tiles<F, Element = E>>(
        shape: &FourStep<'_, F, T>,
        input: &'a Column<E>,
        slice_rows: u64,
        ahead: usize,
    ) -> Result<Self> {
        let ([n1, n2], width) = (shape.lengths(), shape.columns1());
        let slices = n1 / slice_rows;
        // Rows that the input has whole.
        let rows = input.len() / n2;
        let rows_per_read = Self::rows_per_read(slice_rows * width, width, input);
        let regions = (0..n2 / width * slices).flat_map(move |slice| {
            let panel = slice / slices;
            let first = (slice % slices * slice_rows).min(rows);
            let end = (first + slice_rows).min(rows);
            (first..end)
                .step_by(rows_per_read as usize)
                .map(move |first_row| Region::Panel {
                    row_len: n2,
                    first_row,
                    rows: rows_per_read.min(end - first_row),
                    first_column: panel * width,
                    columns: width,
                })
        });
        Ok(Self {
            zero: T::ZERO,
            input,
            reader: input.reader(regions, ahead)?,
            row_len: n2,
            width,
            slice_rows,
            rows_per_read,
        })
    }

    /// Rows of a panel that are read at a time: a run shorter than the input's frame brings the whole frame along, and then a slice of
    /// so many elements comes in several reads.
    fn rows_per_read(slice: u64, width: u64, input: &Column<E>) -> u64 {
        (slice / width.max(input.frame_elements())).max(1)
    }

    /// Bytes of the frames of the largest read, and of all reads, of an input of full length.
    pub(super) fn bytes<F: KernelField, T: Tiles<F, Element = E>>(
        shape: &FourStep<'_, F, T>,
        input: &Column<E>,
        slices: &Slices,
    ) -> (u64, u64) {
        let ([n1, n2], width) = (shape.lengths(), shape.columns1());
        let (frame, slice_rows) = (input.frame_elements(), n1 / slices.count);
        let per_read = Self::rows_per_read(slice_rows * width, width, input);
        let frames = |rows: u64| match width < n2 && n2 >= frame {
            true => rows * (width / frame).max(1),
            false => (rows * n2).div_ceil(frame),
        };
        let rest = slice_rows % per_read;
        let slice = (slice_rows / per_read) * frames(per_read) + if rest > 0 { frames(rest) } else { 0 };
        let frame_bytes = input.transfer_bytes(1);
        (
            frames(per_read) * frame_bytes,
            slice * slices.count * (n2 / width) * frame_bytes,
        )
    }

    /// The slice of a panel; slices come in order. After the last panel there is nothing to do.
    pub(super) fn next_into(&mut self, panel: u64, slice: u64, values: &mut [E]) -> Result<()> {
        let (row_len, width) = (self.row_len, self.width);
        let first_column = panel * width;
        if first_column >= row_len {
            return Ok(());
        }
        let (rows, ragged) = (self.input.len() / row_len, self.input.len() % row_len);
        let first_row = slice * self.slice_rows;
        let whole = rows.saturating_sub(first_row).min(self.slice_rows);
        let (present, absent) = values.split_at_mut((whole * width) as usize);
        for part in present.chunks_mut((self.rows_per_read * width) as usize) {
            self.reader.next_into(part)?;
        }
        absent.fill(self.zero);
        // What the input has of one more row is read apart.
        let holds_ragged = (first_row..first_row + self.slice_rows).contains(&rows);
        if holds_ragged && ragged > first_column {
            let region = Region::Span {
                start: rows * row_len + first_column,
                len: (ragged - first_column).min(width),
            };
            self.input.read(region, absent)?;
        }
        Ok(())
    }
}
