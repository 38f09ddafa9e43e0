//! A transform's ends in two steps, for an accelerator that has no room for the whole.
//!
//! Chunks of columns stand in the column between the steps as they come, so what the second step needs of
//! each is one run. Input and output pass through a tile: it takes more columns, or rows, than a chunk has,
//! so that their lines on disk are as long as memory allows, and of whole frames where they are written.
//! (Bailey, *FFTs in external or hierarchical memory*, 1990; the processor's two passes in
//! [`crate::stream::ntt`] are cut alike.)
//!
//! What the device has not asked for yet is read meanwhile, across the ends of tiles and chunks; lines are gathered
//! and scattered by all threads of the session.
//!
//! Memory: the tile, of sqrt(n) lines of 4096 bytes at least, and a third of what the budget has left where
//! that is more; slices of the next tiles, or runs of `chunk^2 / n` elements between the steps, on their way: see
//! [`ahead`]; bands of the tile, [`BANDS`] in all, two on their way; a [`Writer`].

use std::cell::RefCell;
use std::ops::Range;

use ark_bn254::Fr;

use super::{beyond, wrong_answer};
use crate::Result;
use crate::accelerator::{
    InSteps, LINE_BYTES_MIN, Lines, Matrix, ReadElements, SCALAR_BYTES, StepEnds, WriteElements,
};
use crate::budget::LeasedVec;
use crate::column::{Column, Draft, Placement, Reader, Region, SCRATCH_FRAME_BYTES, Workspace, Writer};
use spillproof_kernels::parallel::Parallel;

type Scalar = [u8; SCALAR_BYTES];

/// What is read ahead takes this part of what the budget has left, beside the tile, or [`AHEAD_MIN`] buffers.
const AHEAD_PART: u64 = 4;
const AHEAD_MIN: u64 = 2;
/// The disk needs no more.
const AHEAD_MAX: u64 = 32;
/// Bytes of lines that one thread copies at a time.
const COPIED_BYTES: usize = 64 << 10;
/// A tile leaves in so many bands, or fewer.
const BANDS: u64 = 32;

/// The ends of one transform, if they are asked for.
pub(super) struct Steps {
    input: Column<Scalar>,
    log_n: u32,
    placement: Placement,
    moved: Moved,
    pub parts: Option<Parts>,
}

/// What goes to the disk and comes from there.
#[derive(Clone, Copy)]
pub(super) struct Moved {
    /// Bytes of the output that do.
    pub written_bytes: u64,
    /// Passes of the processor's own transform.
    pub passes: u64,
}

impl Steps {
    pub fn new(input: Column<Scalar>, log_n: u32, placement: Placement, moved: Moved) -> Self {
        Self {
            input,
            log_n,
            placement,
            moved,
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
                workspace: self.input.workspace(),
                written_bytes: self.moved.written_bytes,
                matrix,
                tile: &parts.tile,
            }),
        })
    }

    fn disk_seconds(&self) -> f64 {
        let bytes = SCALAR_BYTES as u64;
        let between_bytes = (self.moved.passes - 1) * (bytes << self.log_n);
        let read_bytes = match self.input.on_disk() {
            true => self.input.len() * bytes,
            false => 0,
        };
        let workspace = self.input.workspace();
        workspace.disk_seconds(
            read_bytes + between_bytes,
            self.moved.written_bytes + between_bytes,
        )
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
                workspace: workspace.clone(),
                writer: Some(Writer::new(draft("between two steps", Placement::Disk, run)?)),
                reader: None,
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

/// How many regions of a column are read ahead, in buffers of so many bytes.
fn ahead(column: &Column<Scalar>, buffer_bytes: u64) -> usize {
    let left_bytes = column.workspace().budget.available_bytes();
    let most = match column.on_disk() {
        true => AHEAD_MAX,
        // It is copied when it is read ahead.
        false => AHEAD_MIN,
    };
    (left_bytes / AHEAD_PART / buffer_bytes.max(1)).clamp(AHEAD_MIN, most) as usize
}

/// Lines that one thread copies at a time.
fn lines_together(line: &[Scalar]) -> usize {
    COPIED_BYTES / size_of_val(line).max(1)
}

/// The input by columns, zeros behind its end.
struct ColumnsOf<'a> {
    column: &'a Column<Scalar>,
    matrix: Matrix,
    tile: &'a RefCell<LeasedVec<Scalar>>,
    /// Of all tiles, from the one that is read next on.
    reader: &'a mut Option<Reader<Scalar>>,
    /// Columns in the tile.
    held: Range<u64>,
}

/// How tiles of columns are read.
#[derive(Clone, Copy)]
struct Slices {
    len: u64,
    log_columns: u32,
    /// Columns of a tile.
    width: u64,
    /// Rows that are read at a time.
    rows: u64,
}

impl Slices {
    /// The regions of the tile whose first column is `first`.
    fn of_tile(self, first: u64) -> impl Iterator<Item = Region> + Clone + Send {
        let rows = self.len >> self.log_columns;
        let slices = (0..rows.div_ceil(self.rows)).map(move |slice| Region::Panel {
            row_len: 1 << self.log_columns,
            first_row: slice * self.rows,
            rows: self.rows.min(rows - slice * self.rows),
            first_column: first,
            columns: self.width,
        });
        // What is left of the last row.
        let start = (rows << self.log_columns) + first;
        let len = self.len.saturating_sub(start).min(self.width);
        slices.chain((len > 0).then_some(Region::Span { start, len }))
    }

    /// Those of all tiles from that one on.
    fn from(self, first: u64) -> impl Iterator<Item = Region> + Clone + Send {
        let tiles = first / self.width..(1u64 << self.log_columns).div_ceil(self.width);
        tiles.flat_map(move |tile| self.of_tile(tile * self.width))
    }
}

impl ColumnsOf<'_> {
    /// Fills the tile with as many columns as it has room for, from `first` on.
    fn load(&mut self, first: u64) -> Result<()> {
        let log_columns = self.matrix.log_columns;
        let mut tile = self.tile.borrow_mut();
        let width = tile.len() as u64 >> self.matrix.log_rows;
        self.held = first..first + width;
        // As many rows at a time as a transfer has, whether lines are shorter than frames or frames than
        // lines.
        let shared = self.column.frame_elements().min(1 << log_columns);
        let slices = Slices {
            len: self.column.len(),
            log_columns,
            width,
            rows: (self.column.sequential_chunk() / width.max(shared)).max(1),
        };
        let reader = match &mut *self.reader {
            Some(reader) if first > 0 => reader,
            none => {
                let buffer_bytes = slices.of_tile(first).map(|slice| self.column.region_bytes(slice));
                let depth = ahead(self.column, buffer_bytes.max().unwrap_or(0));
                none.insert(self.column.reader(slices.from(first), depth)?)
            }
        };
        let mut at = 0;
        for _ in slices.of_tile(first) {
            if let Some(region) = reader.next_into(&mut tile[at..])? {
                at += region.len() as usize;
            }
        }
        tile[at..].fill([0; SCALAR_BYTES]);
        if self.held.end >> log_columns > 0 {
            *self.reader = None;
        }
        Ok(())
    }
}

impl ReadElements for ColumnsOf<'_> {
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<()> {
        let (step, count) = (0, 1);
        self.read_lines(Lines { first, step, count }, into)
    }

    fn read_lines(&mut self, lines: Lines, into: &mut [u8]) -> Result<()> {
        let log_columns = self.matrix.log_columns;
        let column = lines.first & ((1 << log_columns) - 1);
        if !self.held.contains(&column) {
            let width = self.tile.borrow().len() as u64 >> self.matrix.log_rows;
            self.load(column / width * width)?;
        }
        let (width, within) = (self.held.end - self.held.start, column - self.held.start);
        let tile: &[Scalar] = &self.tile.borrow();
        let (into, _) = into.as_chunks_mut::<SCALAR_BYTES>();
        let len = into.len() / lines.count.max(1) as usize;
        let copy = |(line, to): (u64, &mut [Scalar])| {
            let start = ((lines.first + line * lines.step) >> log_columns) * width + within;
            let from = tile.get(start as usize..).and_then(|from| from.get(..to.len()));
            to.copy_from_slice(from.ok_or_else(|| beyond(lines.first, to.len()))?);
            Ok(())
        };
        let together = lines_together(&into[..len]);
        let mut each = (0..lines.count).zip(into.chunks_exact_mut(len.max(1)));
        match lines.count as usize <= together {
            true => each.try_for_each(copy),
            false => {
                let workspace = self.column.workspace();
                workspace.spread(|| each.parallel().in_runs_of(together).try_for_each(copy))?
            }
        }
    }
}

/// Chunks of columns, one after the other as they were written.
struct Between {
    matrix: Matrix,
    workspace: Workspace,
    writer: Option<Writer<Scalar>>,
    reader: Option<Reader<Scalar>>,
}

impl WriteElements for &mut Between {
    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<()> {
        let (elements, _) = bytes.as_chunks::<SCALAR_BYTES>();
        match &mut self.writer {
            Some(writer) => writer.push(elements),
            None => Err(beyond(first, elements.len())),
        }
    }

    /// They are written as they come.
    fn write_lines(&mut self, lines: Lines, bytes: &[u8]) -> Result<()> {
        self.write(lines.first, bytes)
    }

    fn disk_seconds_to_write(&self) -> f64 {
        let elements = 1u64 << (self.matrix.log_rows + self.matrix.log_columns);
        self.workspace.disk_seconds(0, elements * SCALAR_BYTES as u64)
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
            let depth = ahead(&column, column.transfer_bytes(run));
            self.reader = Some(column.reader(runs, depth)?);
        }
        let (Some(reader), true) = (&mut self.reader, count == 1 << log_chunk) else {
            return Err(beyond(first, count));
        };
        for columns in 0..chunks as usize {
            let rows = into.chunks_exact_mut(1 << log_columns);
            reader.next_into_lines(rows.map(|row| &mut row[columns * width..][..width]))?;
        }
        Ok(())
    }
}

/// The output by its columns, which are rows of the second step.
struct RowsOf<'a> {
    draft: &'a mut Draft<Scalar>,
    workspace: &'a Workspace,
    written_bytes: u64,
    matrix: Matrix,
    tile: &'a RefCell<LeasedVec<Scalar>>,
}

impl WriteElements for RowsOf<'_> {
    fn disk_seconds_to_write(&self) -> f64 {
        self.workspace.disk_seconds(0, self.written_bytes)
    }

    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<()> {
        let (step, count) = (0, 1);
        self.write_lines(Lines { first, step, count }, bytes)
    }

    fn write_lines(&mut self, lines: Lines, bytes: &[u8]) -> Result<()> {
        let Matrix {
            log_rows,
            log_columns,
            ..
        } = self.matrix;
        let (from, _) = bytes.as_chunks::<SCALAR_BYTES>();
        let len = from.len() / lines.count.max(1) as usize;
        let mut tile = self.tile.borrow_mut();
        let width = tile.len() >> log_columns;
        let (first_row, column) = (lines.first >> log_rows, lines.first & ((1 << log_rows) - 1));
        let (within, next_row) = (column as usize % width, first_row + lines.count);
        let fits = lines.step == 1 << log_rows || lines.count == 1;
        if !fits || len == 0 || within + len > width || next_row > 1 << log_columns {
            return Err(beyond(lines.first, from.len()));
        }
        let to = tile.chunks_exact_mut(width).skip(first_row as usize);
        let each = to.zip(from.chunks_exact(len));
        let copy = |(to, line): (&mut [Scalar], &[Scalar])| to[within..][..len].copy_from_slice(line);
        let together = lines_together(&from[..len]);
        match lines.count as usize <= together {
            true => each.for_each(copy),
            false => {
                (self.workspace).spread(|| each.parallel().in_runs_of(together).for_each(copy))?;
            }
        }
        let end = column + len as u64;
        if next_row < 1 << log_columns || !end.is_multiple_of(width as u64) {
            return Ok(());
        }
        // The tile is full. Bands of it leave, of whole frames.
        let (rows, width) = (1u64 << log_columns, width as u64);
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
