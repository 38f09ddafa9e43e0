//! How the rows of a program are cut, and the bytes that it leases.
//!
//! ```text
//! device:  tables + ring * (tile of columns + tile of outputs) + scratch         pinned: tile of columns, tile of outputs
//! tile of columns = sum over columns of (tile_rows + rows that rotations reach beyond) elements; none if columns are resident
//! scratch         = strip_rows * slots elements (compiled), strip_rows * registers (interpreted, not in shared memory)
//! ```
//!
//! A launch runs over a strip of rows, so scratch does not grow with the tile.

use super::engine::{Engine, Way};
use super::instructions::Program;
use crate::buffer::leased_bytes;
use crate::error::{Invalid, Result};
use crate::fit::{JobMemory, largest};
use crate::kernels::Grid;
use crate::ring::Chunking;

/// Rows in flight that keep a device busy: five hundred for each of 132 multiprocessors.
const STRIP_ROWS_WANTED: u64 = 1 << 16;
/// A copy of this many bytes reaches the full rate of the bus.
const TILE_BYTES_ENOUGH: u64 = 32 << 20;
/// Threads of a block; a strip is rounded up to a multiple of it.
const THREADS: u64 = 128;
/// Shared memory that every device has by default.
const SHARED_BYTES: u64 = 48 << 10;
const ADDRESS_BYTES: u64 = 8;
const QUERY_BYTES: u64 = 16;
const INSTRUCTION_BYTES: u64 = 16;

/// Where the columns are while a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// On the host: tiles of them stream through the ring.
    Streamed,
    /// On the device, all rows of them: [`super::Resident`].
    Resident,
}

/// A column in a tile: its number, and the reach of its rotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Halo {
    pub column: u32,
    pub first: i64,
    pub last: i64,
}

/// The plan of a program over a number of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramPlan {
    rows: u64,
    columns: Columns,
    halos: Vec<Halo>,
    tile_rows: u64,
    ring_buffers: usize,
    element_bytes: u64,
    outputs: u64,
    scratch: Scratch,
    fixed_bytes: u64,
    place_bytes: u64,
}

/// Memory of a row or a thread beside the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scratch {
    /// Elements in device memory for each row of a strip; a compiled program may need none.
    Rows(u64),
    /// Registers of the interpreter in device memory, for each thread.
    Threads(u64),
    /// Registers of the interpreter in shared memory, for this many threads of a block.
    Shared { registers: u64, threads: u64 },
}

impl ProgramPlan {
    /// The plan with the longest tiles that fit `vram_bytes` of device memory and pinned slots of
    /// `slot_bytes`.
    ///
    /// # Errors
    /// [`crate::Error::TooSmall`] with the smallest budget that works; [`crate::Error::Invalid`] for no rows, or a rotation
    /// that is not less than their number.
    pub fn new(
        engine: &Engine,
        columns: Columns,
        rows: u64,
        vram_bytes: u64,
        slot_bytes: u64,
    ) -> Result<Self> {
        let least = Self::of_tiles(engine, columns, rows, 1, 1)?;
        for ring_buffers in [2, 1] {
            let with = |tile_rows| Self {
                tile_rows,
                ring_buffers,
                ..least.clone()
            };
            let fits = |plan: &Self| plan.vram_bytes() <= vram_bytes && plan.slot_bytes() <= slot_bytes;
            let best = largest(0, least.tile_rows_enough() + 1, |tile_rows| {
                fits(&with(tile_rows))
            });
            if best > 0 {
                // The same number of tiles, with even lengths.
                return Ok(with(rows.div_ceil(rows.div_ceil(best))));
            }
        }
        let needed = JobMemory {
            slot_bytes: least.slot_bytes(),
            vram_bytes: least.vram_bytes(),
        };
        let given = JobMemory {
            slot_bytes,
            vram_bytes,
        };
        let what = format!("a constraint program over {} columns", least.halos.len());
        Err(needed.too_small(what, given))
    }

    /// The plan with tiles of `tile_rows` rows, whatever its bytes.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for a number out of range.
    pub fn of_tiles(
        engine: &Engine,
        columns: Columns,
        rows: u64,
        tile_rows: u64,
        ring_buffers: usize,
    ) -> Result<Self> {
        let program = engine.program();
        let turned = program
            .queries()
            .iter()
            .find(|query| u64::from(query.rotation.unsigned_abs()) >= rows);
        if rows == 0 || rows > u64::from(u32::MAX) || tile_rows == 0 || tile_rows > rows || ring_buffers == 0
        {
            return Err(Invalid::ProgramTiles {
                rows,
                tile_rows,
                ring_buffers,
            }
            .into());
        }
        if let Some(query) = turned {
            return Err(Invalid::Rotation {
                column: query.column,
                rotation: query.rotation,
                rows,
            }
            .into());
        }
        let element_bytes = program.field().element_bytes();
        let (scratch, instructions) = match engine.way() {
            Way::Compiled { slots, .. } => (Scratch::Rows(u64::from(*slots)), 0),
            Way::Interpreted { .. } => (
                interpreters(u64::from(program.registers()), element_bytes),
                program.instructions().len() as u64,
            ),
        };
        let constants = (program.constants().len() as u64).next_multiple_of(INSTRUCTION_BYTES);
        let outputs = u64::from(program.outputs());
        Ok(Self {
            rows,
            columns,
            halos: halos(program),
            tile_rows,
            ring_buffers,
            element_bytes,
            outputs,
            scratch,
            fixed_bytes: constants + instructions * INSTRUCTION_BYTES,
            place_bytes: program.queries().len() as u64 * QUERY_BYTES
                + (outputs * ADDRESS_BYTES).next_multiple_of(QUERY_BYTES),
        })
    }

    /// Rows of a column.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Where the columns are.
    pub fn columns(&self) -> Columns {
        self.columns
    }

    /// Rows of a full tile.
    pub fn tile_rows(&self) -> u64 {
        self.tile_rows
    }

    /// The number of tiles.
    pub fn tiles(&self) -> u64 {
        self.rows.div_ceil(self.tile_rows)
    }

    /// Bytes of device memory that the job leases, without resident columns.
    pub fn vram_bytes(&self) -> u64 {
        let tile = match self.input_bytes() {
            0 => 0,
            bytes => leased_bytes(bytes),
        };
        leased_bytes(self.table_bytes())
            + self.ring_buffers as u64 * (tile + leased_bytes(self.output_bytes()))
            + leased_bytes(self.scratch_bytes())
    }

    /// Bytes that a pinned slot of the upload must have; 0 without an upload.
    pub fn upload_slot_bytes(&self) -> u64 {
        self.input_bytes()
    }

    /// Bytes that a pinned slot of the download must have.
    pub fn download_slot_bytes(&self) -> u64 {
        self.output_bytes()
    }

    pub(super) fn halos(&self) -> &[Halo] {
        &self.halos
    }

    pub(super) fn ring_buffers(&self) -> usize {
        self.ring_buffers
    }

    pub(super) fn element_bytes(&self) -> u64 {
        self.element_bytes
    }

    /// Whether columns stream to the device.
    pub(super) fn is_streamed(&self) -> bool {
        self.columns == Columns::Streamed && !self.halos.is_empty()
    }

    /// Bytes of a column in a tile.
    pub(super) fn halo_bytes(&self, halo: &Halo) -> u64 {
        (self.tile_rows + (halo.last - halo.first).unsigned_abs()) * self.element_bytes
    }

    pub(super) fn input_bytes(&self) -> u64 {
        match self.columns {
            Columns::Streamed => self.halos.iter().map(|halo| self.halo_bytes(halo)).sum(),
            Columns::Resident => 0,
        }
    }

    pub(super) fn output_bytes(&self) -> u64 {
        self.outputs * self.tile_rows * self.element_bytes
    }

    /// Rows of a launch, for which the scratch memory is.
    pub(super) fn strip_rows(&self) -> u64 {
        match self.scratch {
            Scratch::Rows(0) | Scratch::Shared { .. } => self.tile_rows,
            Scratch::Rows(_) => self.tile_rows.min(STRIP_ROWS_WANTED),
            Scratch::Threads(_) => self.tile_rows.min(STRIP_ROWS_WANTED).next_multiple_of(THREADS),
        }
    }

    pub(super) fn scratch_bytes(&self) -> u64 {
        match self.scratch {
            Scratch::Rows(elements) | Scratch::Threads(elements) => {
                elements * self.strip_rows() * self.element_bytes
            }
            Scratch::Shared { .. } => 0,
        }
    }

    /// The blocks for `count` rows, and the value of `registers` in rows.cuh.
    pub(super) fn grid(&self, count: u64) -> Result<(Grid, u64)> {
        let strip_rows = self.strip_rows();
        Ok(match self.scratch {
            Scratch::Rows(_) => (Grid::for_threads(count, THREADS as u32)?, strip_rows),
            Scratch::Threads(registers) => (
                Grid::for_threads(count.min(strip_rows), THREADS as u32)?,
                registers,
            ),
            Scratch::Shared { registers, threads } => {
                let mut grid = Grid::for_threads(count, threads as u32)?;
                grid.shared_bytes = (registers * threads * self.element_bytes) as u32;
                (grid, registers)
            }
        })
    }

    /// Bytes of constants and instructions, and of the addresses of queries and outputs for each buffer of
    /// the ring.
    pub(super) fn table_bytes(&self) -> u64 {
        (self.fixed_bytes + self.ring_buffers as u64 * self.place_bytes).max(1)
    }

    /// The chunks of the upload: a chunk is a tile.
    pub(super) fn input_chunking(&self) -> Result<Chunking> {
        Chunking::new(self.input_bytes(), self.input_bytes())
    }

    pub(super) fn output_chunking(&self) -> Result<Chunking> {
        Chunking::new(self.output_bytes(), self.output_bytes())
    }

    fn slot_bytes(&self) -> u64 {
        self.input_bytes().max(self.output_bytes())
    }

    fn tile_rows_enough(&self) -> u64 {
        let elements = self.outputs.max(self.halos.len() as u64).max(1);
        let enough = TILE_BYTES_ENOUGH / (elements * self.element_bytes);
        enough.max(STRIP_ROWS_WANTED).min(self.rows)
    }
}

/// The columns that the program reads, by number, each once.
fn halos(program: &Program) -> Vec<Halo> {
    let mut halos = std::collections::BTreeMap::new();
    for query in program.queries() {
        let rotation = i64::from(query.rotation);
        let halo = halos.entry(query.column).or_insert(Halo {
            column: query.column,
            first: rotation,
            last: rotation,
        });
        halo.first = halo.first.min(rotation);
        halo.last = halo.last.max(rotation);
    }
    halos.into_values().collect()
}

/// Registers are in shared memory if those of a warp at least fit.
fn interpreters(registers: u64, element_bytes: u64) -> Scratch {
    let fits = |threads: &u64| registers * element_bytes * threads <= SHARED_BYTES;
    match [THREADS, 64, 32].into_iter().find(fits) {
        Some(threads) => Scratch::Shared { registers, threads },
        None => Scratch::Threads(registers),
    }
}
