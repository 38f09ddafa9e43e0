//! The launches of a program over the rows of windows on the device, strip by strip: the scratch memory is
//! for one strip.
//!
//! ```text
//! scratch = strip_rows * slots elements (compiled), strip_rows * registers (interpreted, not in shared memory)
//! ```

use super::instructions::ELEMENT_BYTES;
use super::kernels::{ProgramKernels, ProgramMethod};
use super::launch::launch;
use crate::error::Result;
use crate::kernels::Grid;
use crate::stream::Stream;

/// Rows in flight that keep a device busy: five hundred for each of 132 multiprocessors.
const STRIP_ROWS_WANTED: u64 = 1 << 16;
/// Threads of a block; a strip is rounded up to a multiple of it.
const THREADS: u64 = 128;
/// Shared memory that every device has by default.
const SHARED_BYTES: u64 = 48 << 10;
/// A number of rows that no window has: no rotation wraps.
const NEVER_WRAPS: u64 = 1 << 40;

/// The addresses that a launch reads and writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addresses {
    pub constants: u64,
    pub instructions: u64,
    pub queries: u64,
    pub outputs: u64,
    /// 0 if there is no scratch memory.
    pub scratch: u64,
}

/// A program over a fixed number of rows at a time, in windows that hold all rows that its rotations reach.
#[derive(Debug)]
pub(crate) struct Strips {
    rows: u64,
    scratch: Scratch,
}

/// Memory of a row or a thread beside the windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scratch {
    /// Elements in device memory for each row of a strip; a compiled program may need none.
    Rows(u64),
    /// Registers of the interpreter in device memory, for each thread.
    Threads(u64),
    /// Registers of the interpreter in shared memory, for this many threads of a block.
    Shared { registers: u64, threads: u64 },
}

impl Strips {
    /// A program over `rows` rows at a time.
    pub fn new(kernels: &ProgramKernels, rows: u64) -> Self {
        let scratch = match kernels.method() {
            ProgramMethod::Compiled { slots, .. } => Scratch::Rows(u64::from(*slots)),
            ProgramMethod::Interpreted { .. } => {
                Scratch::of_the_interpreter(kernels.program().registers().into())
            }
        };
        Self { rows, scratch }
    }

    /// Bytes of scratch memory on the device; may be 0.
    pub fn scratch_bytes(&self) -> u64 {
        match self.scratch {
            Scratch::Rows(elements) | Scratch::Threads(elements) => {
                elements * self.strip_rows() * ELEMENT_BYTES
            }
            Scratch::Shared { .. } => 0,
        }
    }

    /// The constants and instructions as a launch reads them, and the place of the instructions, a multiple
    /// of 16.
    pub fn code(kernels: &ProgramKernels) -> (Vec<u8>, u64) {
        let mut bytes = kernels.program().constants().to_vec();
        bytes.resize(bytes.len().next_multiple_of(16), 0);
        let instructions = bytes.len() as u64;
        if matches!(kernels.method(), ProgramMethod::Interpreted { .. }) {
            let words = kernels.program().words();
            bytes.extend(words.iter().flatten().flat_map(|word| word.to_le_bytes()));
        }
        (bytes, instructions)
    }

    /// Queues the rows: a query with rotation s reads, for row i, element i + s of its window. Nothing wraps.
    pub fn queue(&self, kernels: &ProgramKernels, stream: &Stream, addresses: Addresses) -> Result<()> {
        let strip_rows = match kernels.method() {
            ProgramMethod::Compiled { .. } => self.strip_rows(),
            // The interpreter loops over further rows by itself.
            ProgramMethod::Interpreted { .. } => self.rows,
        };
        for first in (0..self.rows).step_by(strip_rows as usize) {
            let count = strip_rows.min(self.rows - first);
            let (grid, registers) = self.grid(count)?;
            let words = [
                addresses.instructions,
                addresses.constants,
                addresses.queries,
                addresses.outputs,
                addresses.scratch,
                kernels.program().instructions().len() as u64,
                registers,
                NEVER_WRAPS,
                first,
                count,
                first,
            ];
            for kernel in kernels.list() {
                launch(kernel, stream, grid, words)?;
            }
        }
        Ok(())
    }

    /// Rows of a launch, for which the scratch memory is.
    fn strip_rows(&self) -> u64 {
        match self.scratch {
            Scratch::Rows(0) | Scratch::Shared { .. } => self.rows,
            Scratch::Rows(_) => self.rows.min(STRIP_ROWS_WANTED),
            Scratch::Threads(_) => self.rows.min(STRIP_ROWS_WANTED).next_multiple_of(THREADS),
        }
    }

    /// The blocks for `count` rows, and the value of `registers` in rows.cuh.
    fn grid(&self, count: u64) -> Result<(Grid, u64)> {
        let strip_rows = self.strip_rows();
        Ok(match self.scratch {
            Scratch::Rows(_) => (Grid::for_threads(count, THREADS as u32)?, strip_rows),
            Scratch::Threads(registers) => (
                Grid::for_threads(count.min(strip_rows), THREADS as u32)?,
                registers,
            ),
            Scratch::Shared { registers, threads } => {
                let mut grid = Grid::for_threads(count, threads as u32)?;
                grid.shared_bytes = (registers * threads * ELEMENT_BYTES) as u32;
                (grid, registers)
            }
        })
    }
}

impl Scratch {
    /// Registers are in shared memory if those of a warp at least fit.
    fn of_the_interpreter(registers: u64) -> Self {
        let fits = |threads: &u64| registers * ELEMENT_BYTES * threads <= SHARED_BYTES;
        match [THREADS, 64, 32].into_iter().find(fits) {
            Some(threads) => Self::Shared { registers, threads },
            None => Self::Threads(registers),
        }
    }
}
