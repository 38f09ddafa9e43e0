//! The panels of a transform's first pass.

use crate::Result;
use crate::column::{Column, Element, Reader, Region};

/// The matrix of a first pass.
#[derive(Clone, Copy)]
pub(super) struct PanelShape {
    /// Rows and columns of the matrix.
    pub lengths: [u64; 2],
    /// Columns of a panel.
    pub width: u64,
    /// Rows of a slice.
    pub slice_rows: u64,
}

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
    /// `zero` stands where the input has no element; `ahead` regions are read ahead.
    pub(super) fn new(shape: PanelShape, zero: E, input: &'a Column<E>, ahead: usize) -> Result<Self> {
        let PanelShape {
            lengths: [n1, n2],
            width,
            slice_rows,
        } = shape;
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
            zero,
            input,
            reader: input.reader(regions, ahead)?,
            row_len: n2,
            width,
            slice_rows,
            rows_per_read,
        })
    }

    /// Rows of a panel that are read at a time: a run shorter than the input's frame brings the whole frame
    /// along, and then a slice of so many elements comes in several reads.
    fn rows_per_read(slice: u64, width: u64, input: &Column<E>) -> u64 {
        (slice / width.max(input.frame_elements())).max(1)
    }

    /// Bytes of the frames of the largest read, and of all reads, of an input of full length.
    pub(super) fn bytes(shape: PanelShape, input: &Column<E>) -> (u64, u64) {
        let PanelShape {
            lengths: [n1, n2],
            width,
            slice_rows,
        } = shape;
        let frame = input.frame_elements();
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
            slice * (n1 / slice_rows) * (n2 / width) * frame_bytes,
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
