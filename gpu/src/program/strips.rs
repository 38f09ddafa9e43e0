//! A program's launches over rows that are on the device, wherever they are: strip by strip, since scratch is for one strip.

use super::engine::{Engine, Way};
use super::launch::launch;
use super::plan::{Columns, ProgramPlan};
use crate::error::Result;
use crate::stream::Stream;

/// Rows that no column has: where nothing wraps.
pub(super) const NEVER_WRAPS: u64 = 1 << 40;
/// More rows than a plan of [`Strips`] needs to know of.
const ROWS_ENOUGH: u64 = u32::MAX as u64;

/// Where on the device a launch finds what it reads and writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addresses {
    pub constants: u64,
    pub instructions: u64,
    pub queries: u64,
    pub outputs: u64,
    /// 0 if there is none.
    pub scratch: u64,
}

/// Queues `count` rows: row i of them is row `first + i` of columns of `rows` rows, and goes to place i of the outputs.
pub(super) fn run_strips(
    (engine, plan): (&Engine, &ProgramPlan),
    stream: &Stream,
    addresses: Addresses,
    (rows, first): (u64, u64),
    count: u64,
) -> Result<()> {
    let strip_rows = match engine.way() {
        Way::Compiled { .. } => plan.strip_rows(),
        // Its threads go on to further rows by themselves.
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

/// A program over so many rows at a time, out of windows that have all that its rotations reach.
#[derive(Debug)]
pub(crate) struct Strips {
    plan: ProgramPlan,
}

impl Strips {
    /// For `count` rows at a time.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for none, or 2^32.
    pub fn new(engine: &Engine, count: u64) -> Result<Self> {
        let plan = ProgramPlan::of_tiles(engine, Columns::Streamed, ROWS_ENOUGH, count, 1)?;
        Ok(Self { plan })
    }

    /// Bytes of scratch on the device; there may be none.
    pub fn scratch_bytes(&self) -> u64 {
        self.plan.scratch_bytes()
    }

    /// Constants and instructions as a launch reads them, and where the latter begin: at a multiple of 16, as the former must.
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

    /// Queues the rows: what a query with rotation s reads in row i is at place i + s of its window, and nothing wraps.
    pub fn run(&self, engine: &Engine, stream: &Stream, addresses: Addresses) -> Result<()> {
        let count = self.plan.tile_rows();
        run_strips((engine, &self.plan), stream, addresses, (NEVER_WRAPS, 0), count)
    }
}
