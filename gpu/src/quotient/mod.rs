//! A quotient on one coset: rows of all columns go to the device once, and one column of rows comes back.
//!
//! ```text
//! rows of an input -> ring up -> row transforms -> its window -+
//!                                 computed rows -> windows ----+-> program -> row transforms back, factors -> ring back
//! ```
//!
//! The mathematics is that of [`spillproof::tier::Coset`]. Of each input the device has a window: a tile's rows and those around it that
//! rotations reach. A chunk of the ring is rows in the order of [`spillproof::tier::Order`], whatever inputs and tiles they belong to;
//! each goes to its window through the row transform. With the last row of a tile the program runs over the windows, whose elements lie
//! one after the other: a rotation by s rows is s n2 elements further, and nothing wraps. The result is transformed back in place and
//! waits in one of two places for its way back, while the windows slide on and the next tile arrives. A row that is reached by going
//! round is rotated after its transform.
//!
//! Device memory: [`CosetPlan`]. One hard synchronisation for each of the two rings, and one for the tables.

mod launcher;
mod plan;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use plan::{CosetPlan, Shape};
pub(crate) use tables::Numbers;

use crate::error::{BoxedError, Result};
use crate::kernels::Kernels;
use crate::ntt::ELEMENT_BYTES;
use crate::program::Engine;
use crate::ring::{Chunking, Download, Ring, RingJob, Sink, Source, Upload};
use crate::vram::Vram;
use launcher::CosetLauncher;

/// Everything that a coset needs on a device.
#[derive(Debug)]
pub(crate) struct DeviceCoset {
    // First: when they are dropped they wait for their kernels and copies, and only then may buffers go.
    up: Ring,
    back: Ring,
    launcher: CosetLauncher,
}

impl DeviceCoset {
    /// Leases what the plan says, and makes the tables.
    ///
    /// # Errors
    /// [`crate::Error::OverBudget`], [`crate::Error::OutOfMemory`], [`crate::Error::NoKernel`], [`crate::Error::Driver`];
    /// [`crate::Error::Invalid`] for numbers of no coset.
    pub fn new(
        vram: &Vram,
        kernels: &Kernels,
        engine: Engine,
        plan: CosetPlan,
        numbers: Numbers,
    ) -> Result<Self> {
        let buffers = plan.ring_buffers();
        let chunks = |rows: u64| Chunking::new(rows * plan.row_bytes(), plan.row_bytes());
        let up = Ring::new(vram, chunks(plan.chunk_rows())?, buffers)?;
        let back = Ring::new(vram, chunks(plan.back_rows())?, buffers)?;
        let launcher = CosetLauncher::new(vram, kernels, (engine, plan), numbers, up.stream())?;
        Ok(Self { up, back, launcher })
    }

    /// How what comes is cut, and its bytes: for staging.
    pub fn chunking(plan: &CosetPlan) -> Result<(Chunking, u64)> {
        let chunking = Chunking::new(plan.slot_bytes(), plan.row_bytes())?;
        Ok((chunking, plan.total_rows() * plan.row_bytes()))
    }

    /// Runs it: `source` gives rows in their order, `sink` gets the quotient's.
    ///
    /// # Errors
    /// [`crate::Error::Source`], [`crate::Error::Sink`], [`crate::Error::Driver`], [`crate::Error::Invalid`] for slots that are too
    /// short. Nothing is in flight afterwards; what the sink has then got is void.
    pub fn run(
        &mut self,
        (upload, download): (&mut Upload, &mut Download),
        source: &mut dyn Source,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let (launcher, back) = (&mut self.launcher, &mut self.back);
        let job = RingJob {
            total_bytes: launcher.plan().total_rows() * launcher.plan().row_bytes(),
            upload: Some((upload, source)),
            download: None,
        };
        self.up.run(job, &mut |chunk| {
            let mut done = 0;
            while let Some(part) = launcher.part(&chunk, done) {
                launcher.arrive(&chunk, done, part)?;
                done += part.rows;
                if let Some(tile) = part.completes {
                    launcher.compute(chunk.stream, tile)?;
                    // The one before has been computed meanwhile.
                    if let Some(before) = tile.checked_sub(1) {
                        bring(back, launcher, download, sink, before)?;
                    }
                }
            }
            Ok(())
        })?;
        let last = launcher.tiles() - 1;
        bring(back, launcher, download, sink, last)?;
        self.up.finish()?;
        self.back.finish()
    }
}

/// A tile's rows of the quotient to the host.
fn bring(
    back: &mut Ring,
    launcher: &CosetLauncher,
    download: &mut Download,
    sink: &mut dyn Sink,
    tile: u64,
) -> Result<()> {
    let (rows, first, ready) = launcher.result(tile);
    back.stream().raw().wait_for(ready)?;
    let tile_bytes = launcher.plan().tile_rows() * launcher.plan().row_bytes();
    let mut to = |offset: u64, bytes: &[u8]| -> Result<(), BoxedError> {
        sink.take(tile * tile_bytes + offset, bytes)
    };
    back.drain_buffer((rows, first), tile_bytes, (download, &mut to))
}

/// The element that bytes begin with.
pub(crate) fn element_at(offset: u64) -> u64 {
    offset / ELEMENT_BYTES
}
