//! A transform's ends in two steps, for an accelerator that has no room for the whole.
//!
//! Chunks of columns stand in the column between the steps as they come, so what the second step needs of
//! each is one run. Input and output pass through a tile: it takes more columns, or rows, than a chunk has,
//! so that their lines on disk are as long as memory allows, and of whole frames where they are written.
//! (Bailey, *FFTs in external or hierarchical memory*, 1990; the processor's two passes in
//! [`crate::stream::ntt`] are cut alike.)
//!
//! Memory: the tile, of sqrt(n) lines of 4096 bytes at least, and a third of what the budget has left where
//! that is more; bands of it, [`BANDS`] in all, two on their way; a run of `chunk^2 / n` elements,
//! [`RUNS_AHEAD`] on their way; a [`Writer`].

use std::cell::RefCell;
use std::ops::Range;

use ark_bn254::Fr;

use super::{beyond, wrong_answer};
use crate::Result;
use crate::accelerator::{
    InSteps, LINE_BYTES_MIN, Matrix, ReadElements, SCALAR_BYTES, StepEnds, WriteElements,
};
use crate::budget::{Budget, LeasedVec};
use crate::column::{Column, Draft, Placement, Reader, Region, SCRATCH_FRAME_BYTES, Writer};

type Scalar = [u8; SCALAR_BYTES];

/// Runs between the steps that are read ahead.
const RUNS_AHEAD: usize = 4;
/// A tile leaves in so many bands, or fewer.
const BANDS: u64 = 32;

/// The ends of one transform, if they are asked for.
pub(super) struct Steps {
    input: Column<Scalar>,
    log_n: u32,
    placement: Placement,
    pub parts: Option<Parts>,
}

impl Steps {
    pub fn new(input: Column<Scalar>, log_n: u32, placement: Placement) -> Self {
        Self {
            input,
            log_n,
            placement,
            parts: None,
        }
    }
}

/// What both steps hold.
pub(super) struct Parts {
    /// The input's in the first step, the output's in the second.
    tile: RefCell<LeasedVec<Scalar>>,
    columns: Option<Reader<Scalar>>,
    between: Between,
    output: Draft<Scalar>,
}

impl InSteps for &mut Steps {
    fn ends(&mut self, matrix: Matrix) -> Result<StepEnds<'_>> {
        if let Some(void) = self.parts.take() {
            void.abandon();
        }
        let parts = self
            .parts
            .insert(Parts::new(&self.input, (self.log_n, matrix), self.placement)?);
        Ok(StepEnds {
            input: Box::new(ColumnsOf {
                column: &self.input,
                matrix,
                tile: &parts.tile,
                reader: &mut parts.columns,
                held: 0..0,
            }),
            between: Box::new(&mut parts.between),
            output: Box::new(RowsOf {
                draft: &mut parts.output,
                matrix,
                tile: &parts.tile,
            }),
        })
    }
}

impl Parts {
    fn new(input: &Column<Scalar>, (log_n, matrix): (u32, Matrix), placement: Placement) -> Result<Self> {
        let Matrix {
            log_rows,
            log_columns,
            log_chunk,
        } = matrix;
        let whole = log_rows.checked_add(log_columns) == Some(log_n);
        if !whole || log_chunk > log_n || log_chunk < log_rows.max(log_columns) {
            return Err(wrong_answer(format!("{matrix:?} of 2^{log_n} elements")));
        }
        let (n, workspace) = (1u64 << log_n, input.workspace());
        let bytes = SCALAR_BYTES as u64;
        let len = matrix.tile_elements(workspace.budget.available_bytes());
        let tile = workspace
            .budget
            .vec(len as usize, [0; SCALAR_BYTES], "tile for a compute accelerator")?;
        let frame_bytes =
            |elements: u64| (elements * bytes).clamp(LINE_BYTES_MIN, SCRATCH_FRAME_BYTES as u64) as usize;
        let draft = |what, placement, line| {
            Draft::<Fr>::scratch_with_frames(workspace, what, n, placement, frame_bytes(line))?.cast()
        };
        let run = 1u64 << (2 * log_chunk - log_n);
        Ok(Self {
            tile: RefCell::new(tile),
            columns: None,
            between: Between {
                matrix,
                budget: workspace.budget.clone(),
                writer: Some(Writer::new(draft("between two steps", Placement::Disk, run)?)),
                reader: None,
                run: None,
            },
            output: draft("transform", placement, len >> log_columns)?,
        })
    }

    /// The output, if all of it was written.
    pub fn finish(mut self) -> Result<Column<Scalar>> {
        self.release();
        self.output.finish()
    }

    /// Waits for what is on its way, and lets all of it go.
    pub fn abandon(mut self) {
        self.release();
        self.output.abandon();
    }

    /// What is on its way holds its leases.
    fn release(&mut self) {
        let readers = [self.columns.take(), self.between.reader.take()];
        readers.into_iter().flatten().for_each(Reader::abandon);
        if let Some(writer) = self.between.writer.take() {
            writer.abandon();
        }
    }
}

/// The input by columns, zeros behind its end.
struct ColumnsOf<'a> {
    column: &'a Column<Scalar>,
    matrix: Matrix,
    tile: &'a RefCell<LeasedVec<Scalar>>,
    reader: &'a mut Option<Reader<Scalar>>,
    /// Columns in the tile.
    held: Range<u64>,
}

impl ColumnsOf<'_> {
    /// Fills the tile with as many columns as it has room for, from `first` on.
    fn load(&mut self, first: u64) -> Result<()> {
        let (len, log_columns) = (self.column.len(), self.matrix.log_columns);
        let mut tile = self.tile.borrow_mut();
        let width = tile.len() as u64 >> self.matrix.log_rows;
        self.held = first..first + width;
        // As many rows at a time as a transfer has, whether lines are shorter than frames or frames than
        // lines.
        let shared = self.column.frame_elements().min(1 << log_columns);
        let slice = (self.column.sequential_chunk() / width.max(shared)).max(1);
        let rows = len >> log_columns;
        let slices = (0..rows.div_ceil(slice)).map(move |i| Region::Panel {
            row_len: 1 << log_columns,
            first_row: i * slice,
            rows: slice.min(rows - i * slice),
            first_column: first,
            columns: width,
        });
        // What is left of the last row.
        let end = (len.saturating_sub((rows << log_columns) + first)).min(width);
        let last = (end > 0).then_some(Region::Span {
            start: (rows << log_columns) + first,
            len: end,
        });
        let reader = self.reader.insert(self.column.reader(slices.chain(last), 2)?);
        let mut at = 0;
        while let Some(region) = reader.next_into(&mut tile[at..])? {
            at += region.len() as usize;
        }
        *self.reader = None;
        tile[at..].fill([0; SCALAR_BYTES]);
        Ok(())
    }
}

impl ReadElements for ColumnsOf<'_> {
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<()> {
        let (into, _) = into.as_chunks_mut::<SCALAR_BYTES>();
        let (row, column) = (
            first >> self.matrix.log_columns,
            first & ((1 << self.matrix.log_columns) - 1),
        );
        if !self.held.contains(&column) {
            let width = self.tile.borrow().len() as u64 >> self.matrix.log_rows;
            self.load(column / width * width)?;
        }
        let width = self.held.end - self.held.start;
        let start = row * width + (column - self.held.start);
        let tile = self.tile.borrow();
        let from = tile.get(start as usize..).and_then(|from| from.get(..into.len()));
        into.copy_from_slice(from.ok_or_else(|| beyond(first, into.len()))?);
        Ok(())
    }
}

/// Chunks of columns, one after the other as they were written.
struct Between {
    matrix: Matrix,
    budget: Budget,
    writer: Option<Writer<Scalar>>,
    reader: Option<Reader<Scalar>>,
    run: Option<LeasedVec<Scalar>>,
}

impl WriteElements for &mut Between {
    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<()> {
        let (elements, _) = bytes.as_chunks::<SCALAR_BYTES>();
        match &mut self.writer {
            Some(writer) => writer.push(elements),
            None => Err(beyond(first, elements.len())),
        }
    }
}

impl ReadElements for &mut Between {
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<()> {
        let Matrix {
            log_rows,
            log_columns,
            log_chunk,
        } = self.matrix;
        let (into, _) = into.as_chunks_mut::<SCALAR_BYTES>();
        let count = into.len();
        // Of each chunk of columns a run: as many rows as a chunk has, of as many columns.
        let (width, height) = (
            1usize << (log_chunk - log_rows),
            1u64 << (log_chunk - log_columns),
        );
        let (chunks, run) = (
            1u64 << (log_rows + log_columns - log_chunk),
            width as u64 * height,
        );
        if let Some(writer) = self.writer.take() {
            let column = writer.finish()?;
            let runs = (0..chunks).flat_map(move |rows| {
                (0..chunks).map(move |columns| Region::Span {
                    start: (columns << log_chunk) + rows * run,
                    len: run,
                })
            });
            self.reader = Some(column.reader(runs, RUNS_AHEAD)?);
            let what = "run between two steps";
            self.run = Some(self.budget.vec(run as usize, [0; SCALAR_BYTES], what)?);
        }
        let (Some(reader), Some(run), true) = (&mut self.reader, &mut self.run, count == 1 << log_chunk)
        else {
            return Err(beyond(first, count));
        };
        for columns in 0..chunks as usize {
            reader.next_into(run)?;
            let lines = into
                .chunks_exact_mut(1 << log_columns)
                .zip(run.chunks_exact(width));
            lines.for_each(|(row, line)| row[columns * width..][..width].copy_from_slice(line));
        }
        Ok(())
    }
}

/// The output by its columns, which are rows of the second step.
struct RowsOf<'a> {
    draft: &'a mut Draft<Scalar>,
    matrix: Matrix,
    tile: &'a RefCell<LeasedVec<Scalar>>,
}

impl WriteElements for RowsOf<'_> {
    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<()> {
        let Matrix {
            log_rows,
            log_columns,
            ..
        } = self.matrix;
        let (line, _) = bytes.as_chunks::<SCALAR_BYTES>();
        let mut tile = self.tile.borrow_mut();
        let width = tile.len() as u64 >> log_columns;
        let (row, column) = (first >> log_rows, first & ((1 << log_rows) - 1));
        let start = (row * width + column % width) as usize;
        let to = tile.get_mut(start..).and_then(|to| to.get_mut(..line.len()));
        to.ok_or_else(|| beyond(first, line.len()))?.copy_from_slice(line);
        let end = column + line.len() as u64;
        if row + 1 < 1 << log_columns || !end.is_multiple_of(width) {
            return Ok(());
        }
        // The tile is full. Bands of it leave, of whole frames.
        let rows = 1u64 << log_columns;
        let whole_frames = self.draft.frame_elements() / width;
        let band = whole_frames.max(rows / BANDS).clamp(1, rows);
        for first_row in (0..rows).step_by(band as usize) {
            let region = Region::Panel {
                row_len: 1 << log_rows,
                first_row,
                rows: band,
                first_column: end - width,
                columns: width,
            };
            self.draft.write(region, &tile[(first_row * width) as usize..])?;
        }
        Ok(())
    }
}
