//! The launches of a program over rows on the device, strip by strip, since the scratch memory is for one
//! strip.

use super::engine::{Engine, Way};
use super::launch::launch;
use super::plan::{Columns, ProgramPlan};
use crate::error::Result;
use crate::stream::Stream;

/// A number of rows that no column has: no rotation wraps.
pub(super) const NEVER_WRAPS: u64 = 1 << 40;
/// The number of rows for the plan of [`Strips`], which does not depend on it.
const ROWS_ENOUGH: u64 = u32::MAX as u64;

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

/// Queues `count` rows: row i is row `first + i` of columns of `rows` rows, and element i of the outputs.
pub(super) fn run_strips(
    (engine, plan): (&Engine, &ProgramPlan),
    stream: &Stream,
    addresses: Addresses,
    (rows, first): (u64, u64),
    count: u64,
) -> Result<()> {
    let strip_rows = match engine.way() {
        Way::Compiled { .. } => plan.strip_rows(),
        // The interpreter loops over further rows by itself.
        Way::Interpreted { .. } => count,
    };
    let mut done = 0;
    while done < count {
        let here = strip_rows.min(count - done);
        let (grid, registers) = plan.grid(here)?;
        let words = [
            addresses.instructions,
            addresses.constants,
            addresses.queries,
            addresses.outputs,
            addresses.scratch,
            engine.program().instructions().len() as u64,
            registers,
            rows,
            first + done,
            here,
            done,
        ];
        for kernel in engine.kernels() {
            launch(kernel, stream, grid, words)?;
        }
        done += here;
    }
    Ok(())
}

/// A program over a fixed number of rows at a time, in windows that hold all rows that its rotations reach.
#[derive(Debug)]
pub(crate) struct Strips {
    plan: ProgramPlan,
}

impl Strips {
    /// A program over `count` rows at a time.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for 0 rows, or 2^32.
    pub fn new(engine: &Engine, count: u64) -> Result<Self> {
        let plan = ProgramPlan::of_tiles(engine, Columns::Streamed, ROWS_ENOUGH, count, 1)?;
        Ok(Self { plan })
    }

    /// Bytes of scratch memory on the device; may be 0.
    pub fn scratch_bytes(&self) -> u64 {
        self.plan.scratch_bytes()
    }

    /// The constants and instructions as a launch reads them, and the place of the instructions, a multiple
    /// of 16.
    pub fn code(engine: &Engine) -> (Vec<u8>, u64) {
        let mut bytes = engine.program().constants().to_vec();
        bytes.resize(bytes.len().next_multiple_of(16), 0);
        let instructions = bytes.len() as u64;
        if matches!(engine.way(), Way::Interpreted { .. }) {
            let words = engine.program().words();
            bytes.extend(words.iter().flatten().flat_map(|word| word.to_le_bytes()));
        }
        (bytes, instructions)
    }

    /// Queues the rows: a query with rotation s reads, for row i, element i + s of its window. Nothing wraps.
    pub fn run(&self, engine: &Engine, stream: &Stream, addresses: Addresses) -> Result<()> {
        let count = self.plan.tile_rows();
        run_strips((engine, &self.plan), stream, addresses, (NEVER_WRAPS, 0), count)
    }
}
