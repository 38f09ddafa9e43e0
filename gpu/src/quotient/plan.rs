//! How a coset is cut, and the bytes that it leases.
//!
//! n1 rows of n2 elements, `32 n2` bytes a row; T rows a tile, K rows a chunk, b buffers in each of two
//! rings:
//!
//! ```text
//! device:  tables + row * (sum over inputs of (T + halo) + min(2, tiles) T + through + b (K + min(K, T))) + scratch of the program
//! through: 1, or T where a row takes two passes
//! tables:  about 32 * (n2 + 6 sqrt(n2) + 4 sqrt(n)), with the first Lagrange polynomial 32 n1 more; the program's code
//! pinned:  slots of K rows
//! of coefficients, the device has all rows: 32 n a column that is read, and 32 n between passes if n1 > 2^10
//! ```
//!
//! Tiles of 2^18 elements keep a device busy, and there are enough of them to copy one while another is
//! computed.

use spillproof_engine::accelerator::{Input, RowSource};

use crate::buffer::leased_bytes;
use crate::error::{Invalid, Result, Values};
use crate::fit::JobMemory;
use crate::ntt::{ELEMENT_BYTES, LOG_TILE, log_radices, power_elements, step_elements};
use crate::program::{ProgramKernels, Strips};

/// log2 of the most elements of a tile.
const LOG_TILE_ENOUGH: u32 = 18;
/// log2 of the most rows of a launch: a grid has at most 2^16 - 1.
pub(super) const LOG_BATCH_MAX: u32 = 15;
/// log2 of the longest row: a longer one would take three passes.
const LOG_COLUMNS_MAX: u32 = 2 * LOG_TILE;

/// The matrix of a coset, and its inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CosetShape {
    /// log2 of n1.
    pub log_rows: u32,
    /// log2 of n2.
    pub log_columns: u32,
    /// Each column that the program reads, once.
    pub inputs: Vec<Input>,
    /// Whether the device gets the coefficients of inputs, and makes their rows.
    pub of_coefficients: bool,
}

impl CosetShape {
    /// Columns that are read.
    pub fn columns_read(&self) -> u64 {
        let is_read = |input: &&Input| input.rows == RowSource::Read;
        self.inputs.iter().filter(is_read).count() as u64
    }

    /// Bytes of the columns that are read, if the device gets their coefficients: as much as all of their rows.
    pub fn columns_bytes(&self) -> u64 {
        match self.of_coefficients {
            true => self.columns_read() * (ELEMENT_BYTES << (self.log_rows + self.log_columns)),
            false => 0,
        }
    }
}

/// The plan of a coset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CosetPlan {
    shape: CosetShape,
    log_tile_rows: u32,
    chunk_rows: u64,
    ring_buffers: usize,
    code_bytes: u64,
    scratch_bytes: u64,
}

/// The rows beyond a tile that the rotations of an input reach.
pub(super) fn halo(input: &Input) -> u64 {
    let (first, last) = input.rotations;
    (i64::from(last) - i64::from(first)).unsigned_abs()
}

impl CosetPlan {
    /// The plan with the longest tiles, then the longest chunks, that fit `vram_bytes` of device memory and
    /// pinned slots of `slot_bytes`.
    ///
    /// # Errors
    /// [`crate::Error::TooSmall`] with the smallest budget that works; [`crate::Error::Invalid`] for a shape
    /// out of range.
    pub fn new(
        shape: &CosetShape,
        program: &ProgramKernels,
        vram_bytes: u64,
        slot_bytes: u64,
    ) -> Result<Self> {
        check(shape, program)?;
        let longest = shape
            .log_rows
            .min(LOG_TILE_ENOUGH.saturating_sub(shape.log_columns))
            .min(LOG_BATCH_MAX);
        let slot_rows = slot_bytes / (ELEMENT_BYTES << shape.log_columns);
        // First plans whose chunks fill a tile of an input, with two buffers; then any that fits.
        for (ring_buffers, whole) in [(2, true), (2, false), (1, false)] {
            for log_tile_rows in (0..=longest).rev() {
                let least = Self::of(shape, program, log_tile_rows, 1, ring_buffers);
                let Some(left_bytes) = vram_bytes.checked_sub(least.vram_bytes()) else {
                    continue;
                };
                let per_row = ring_buffers as u64 * 2 * least.row_bytes();
                let fits = |rows: u64| least.with_chunk(rows).vram_bytes() <= vram_bytes;
                let mut chunk_rows = (1 + left_bytes / per_row).min(slot_rows);
                // Rows shorter than a granule do not grow linearly in leased bytes.
                while chunk_rows > 1 && !fits(chunk_rows) {
                    chunk_rows /= 2;
                }
                // Beyond a tile only the ring of the upload grows.
                while chunk_rows >= 1 << log_tile_rows && 2 * chunk_rows <= slot_rows && fits(2 * chunk_rows)
                {
                    chunk_rows *= 2;
                }
                let enough = if whole {
                    slot_rows.min(1 << log_tile_rows)
                } else {
                    1
                };
                if chunk_rows >= enough.max(1) && fits(chunk_rows) {
                    let rows = least.total_rows();
                    return Ok(least.with_chunk(chunk_rows.min(rows)));
                }
            }
        }
        let least = Self::of(shape, program, 0, 1, 1);
        let needed = JobMemory {
            slot_bytes: least.slot_bytes(),
            vram_bytes: least.vram_bytes(),
        };
        let given = JobMemory {
            slot_bytes,
            vram_bytes,
        };
        let (columns, row) = (shape.inputs.len(), 1u64 << shape.log_columns);
        let what = format!("a quotient of {columns} columns in rows of {row} elements");
        Err(needed.too_small(what, given))
    }

    fn of(
        shape: &CosetShape,
        program: &ProgramKernels,
        log_tile_rows: u32,
        chunk_rows: u64,
        ring_buffers: usize,
    ) -> Self {
        let strips = Strips::new(program, 1 << (log_tile_rows + shape.log_columns));
        let queries = program.program().queries().len() as u64;
        Self {
            shape: shape.clone(),
            log_tile_rows,
            chunk_rows,
            ring_buffers,
            // Queries and outputs for each of two buffers of results.
            code_bytes: Strips::code(program).0.len() as u64 + 16 * queries + 2 * 16,
            scratch_bytes: strips.scratch_bytes(),
        }
    }

    fn with_chunk(&self, chunk_rows: u64) -> Self {
        Self {
            chunk_rows,
            ..self.clone()
        }
    }

    /// The matrix and the inputs.
    pub fn shape(&self) -> &CosetShape {
        &self.shape
    }

    /// log2 of a tile's rows.
    pub fn log_tile_rows(&self) -> u32 {
        self.log_tile_rows
    }

    /// Rows of a chunk.
    pub fn chunk_rows(&self) -> u64 {
        self.chunk_rows
    }

    /// Bytes of device memory that the job leases.
    pub fn vram_bytes(&self) -> u64 {
        let rows = |rows: u64| leased_bytes(rows * self.row_bytes());
        leased_bytes(self.table_bytes())
            + rows(self.window_rows())
            + rows(self.result_rows())
            + rows(self.through_rows())
            + self.ring_buffers as u64 * (rows(self.chunk_rows) + rows(self.back_rows()))
            + leased_bytes(self.scratch_bytes)
            + leased_bytes(self.shape.columns_bytes())
            + leased_bytes(self.between_bytes())
    }

    /// Bytes of a column.
    pub fn column_bytes(&self) -> u64 {
        self.row_bytes() << self.shape.log_rows
    }

    /// Bytes between the passes that make the rows of a column, if there are several.
    pub(super) fn between_bytes(&self) -> u64 {
        match self.shape.of_coefficients && self.shape.log_rows > LOG_TILE {
            true => self.column_bytes(),
            false => 0,
        }
    }

    /// Bytes that a pinned slot must have, at either end.
    pub fn slot_bytes(&self) -> u64 {
        self.chunk_rows * self.row_bytes()
    }

    /// Rows that cross to the device.
    pub fn total_rows(&self) -> u64 {
        let read = self
            .shape
            .inputs
            .iter()
            .filter(|input| input.rows == RowSource::Read);
        read.map(|input| (1 << self.shape.log_rows) + halo(input)).sum()
    }

    pub(super) fn ring_buffers(&self) -> usize {
        self.ring_buffers
    }

    pub(super) fn row_bytes(&self) -> u64 {
        ELEMENT_BYTES << self.shape.log_columns
    }

    pub(super) fn tile_rows(&self) -> u64 {
        1 << self.log_tile_rows
    }

    /// Rows of all windows.
    pub(super) fn window_rows(&self) -> u64 {
        self.shape
            .inputs
            .iter()
            .map(|input| self.tile_rows() + halo(input))
            .sum()
    }

    /// The number of buffers for the quotient's rows of a tile.
    pub(super) fn results(&self) -> u64 {
        (1u64 << (self.shape.log_rows - self.log_tile_rows)).min(2)
    }

    pub(super) fn result_rows(&self) -> u64 {
        self.results() * self.tile_rows()
    }

    /// Rows of a chunk of the download.
    pub(super) fn back_rows(&self) -> u64 {
        self.chunk_rows.min(self.tile_rows())
    }

    /// Rows of the buffer between two passes; one, for rotations, if there is one pass.
    pub(super) fn through_rows(&self) -> u64 {
        match log_radices(self.shape.log_columns, LOG_TILE).len() {
            1 => 1,
            _ => self.tile_rows(),
        }
    }

    /// The most rows of a launch of the row transform.
    pub(super) fn batch_rows(&self) -> u64 {
        match log_radices(self.shape.log_columns, LOG_TILE).len() {
            1 => 1 << LOG_BATCH_MAX,
            _ => self.tile_rows(),
        }
    }

    pub(super) fn has(&self, rows: RowSource) -> bool {
        self.shape.inputs.iter().any(|input| input.rows == rows)
    }

    /// Whether the tables have the powers of the root.
    pub(super) fn has_points(&self) -> bool {
        self.has(RowSource::Identity) || self.has(RowSource::FirstLagrange) || self.shape.of_coefficients
    }

    /// Elements of the tables that [`super::tables`] makes.
    pub(super) fn table_elements(&self) -> u64 {
        let CosetShape {
            log_rows,
            log_columns,
            ..
        } = self.shape;
        let log_n = log_rows + log_columns;
        let if_has = |rows, elements: u64| if self.has(rows) { elements } else { 0 };
        let points = match self.has_points() {
            true => power_elements(log_n + 1),
            false => 0,
        };
        let to_rows = match self.shape.of_coefficients {
            true => step_elements(log_rows, LOG_TILE) + power_elements(log_n),
            false => 0,
        };
        2 * step_elements(log_columns, LOG_TILE)
            + power_elements(log_n)
            + power_elements(log_columns)
            + points
            + to_rows
            + if_has(RowSource::Identity, 1)
            + if_has(RowSource::FirstLagrange, (1 << log_columns) + (1 << log_rows))
    }

    /// Bytes of the tables and of the program's code behind them.
    pub(super) fn table_bytes(&self) -> u64 {
        self.table_elements() * ELEMENT_BYTES + self.code_bytes
    }

    pub(super) fn scratch_bytes(&self) -> u64 {
        self.scratch_bytes
    }
}

fn check(shape: &CosetShape, program: &ProgramKernels) -> Result<()> {
    // Those of a column are passed over twice at most, in place.
    let log_rows_max = if shape.of_coefficients { 2 * LOG_TILE } else { 28 };
    if shape.log_columns > LOG_COLUMNS_MAX
        || shape.log_rows > log_rows_max
        || shape.log_rows + shape.log_columns > 28
    {
        return Err(Invalid::Size {
            what: "a coset",
            reason: format!(
                "2^{} rows of 2^{} elements are too many",
                shape.log_rows, shape.log_columns
            ),
        }
        .into());
    }
    if program.program().outputs() != 1 {
        return Err(Values::Length {
            what: "outputs of a numerator".into(),
            given: program.program().outputs().into(),
            expected: 1,
        }
        .into());
    }
    for query in program.program().queries() {
        let has = |input: &&Input| input.column == query.column as usize;
        let reached = |input: &Input| (input.rotations.0..=input.rotations.1).contains(&query.rotation);
        if !shape.inputs.iter().find(has).is_some_and(reached) {
            return Err(Invalid::Program {
                place: format!("rotation {} of column {}", query.rotation, query.column),
                fault: "is in no input of the quotient".into(),
            }
            .into());
        }
    }
    match shape.inputs.iter().any(|input| input.rows == RowSource::Read) {
        true => Ok(()),
        false => Err(Values::Empty {
            what: "columns that a quotient reads",
        }
        .into()),
    }
}
