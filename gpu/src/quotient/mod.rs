//! A quotient on one coset: the rows of all columns go to the device once, and the rows of one column come
//! back.
//!
//! ```text
//! rows of an input -> ring up -> row transforms -> its window -+
//!                                 computed rows -> windows ----+-> program -> row transforms back, factors -> ring back
//! ```
//!
//! The mathematics is in [`spillproof_engine::accelerator::Coset`]. The device has a window of each input:
//! the rows of a tile, and the rows around it that rotations reach. A chunk of the ring is rows in the order
//! of [`spillproof_engine::accelerator::Order`], of any inputs and tiles; each row goes through the row
//! transform into its window. With the last row of a tile the program runs over the windows, whose elements
//! are contiguous: a rotation by s rows is s n2 elements further, and nothing wraps. The result is
//! transformed back in place and waits in one of two buffers for its copy to the host, while the windows
//! slide and the next tile arrives. A row beyond the end of the matrix is a rotated row of its start.
//!
//! Of coefficients the device makes all rows first, in place, and keeps them for the coset; rows then come from there:
//!
//! ```text
//! coefficients -> ring up, or a copy that stayed -> transforms of columns -> all rows -> row transforms -> windows -> ..
//! ```
//!
//! Device memory: see [`CosetPlan`]. One hard synchronisation for each of the two rings, and one for the
//! tables.

mod launcher;
mod plan;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use plan::{CosetPlan, CosetShape};
pub(crate) use tables::CosetConstants;

use crate::buffer::DeviceBuffer;
use crate::error::{BoxedError, Result};
use crate::kernels::Kernels;
use crate::ntt::ELEMENT_BYTES;
use crate::program::ProgramKernels;
use crate::ring::{Chunking, Download, Ring, RingJob, Sink, Source, Upload};
use crate::vram::Vram;
use launcher::CosetLauncher;

/// The device memory and kernels of a coset.
#[derive(Debug)]
pub(crate) struct DeviceCoset {
    // The first fields: their drop waits for kernels and copies, and only then may buffers be freed.
    up: Ring,
    back: Ring,
    launcher: CosetLauncher,
}

impl DeviceCoset {
    /// Leases the device memory of the plan, and makes the tables.
    ///
    /// # Errors
    /// [`crate::Error::OverBudget`], [`crate::Error::OutOfMemory`], [`crate::Error::NoKernel`],
    /// [`crate::Error::Driver`]; [`crate::Error::Invalid`] for a root or a shift of 0, or a shift in the
    /// subgroup.
    pub fn new(
        vram: &Vram,
        kernels: &Kernels,
        program: ProgramKernels,
        plan: CosetPlan,
        constants: CosetConstants,
    ) -> Result<Self> {
        let buffers = plan.ring_buffers();
        let chunks = |rows: u64| Chunking::new(rows * plan.row_bytes(), plan.row_bytes());
        let up = Ring::new(vram, chunks(plan.chunk_rows())?, buffers)?;
        let back = Ring::new(vram, chunks(plan.back_rows())?, buffers)?;
        let launcher = CosetLauncher::new(vram, kernels, program, plan, constants, up.stream())?;
        Ok(Self { up, back, launcher })
    }

    /// The chunks of the upload and its length in bytes, for staging.
    pub fn chunking(plan: &CosetPlan) -> Result<(Chunking, u64)> {
        let chunking = Chunking::new(plan.slot_bytes(), plan.row_bytes())?;
        Ok((chunking, plan.total_rows() * plan.row_bytes()))
    }

    /// Computes the coset of a plan of coefficients: `source` gives those of the inputs that come, one input after the
    /// other.
    ///
    /// # Errors
    /// As [`Self::compute`].
    pub fn compute_of(
        &mut self,
        upload: &mut Upload,
        download: &mut Download,
        (inputs, source): (&[InputColumn<'_>], &mut dyn Source),
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let (launcher, back, up) = (&self.launcher, &mut self.back, &mut self.up);
        let column_bytes = launcher.plan().column_bytes();
        let mut come = Vec::new();
        for (column, input) in (0..).zip(inputs) {
            match *input {
                InputColumn::There(there) => launcher.to_rows(up.busy_stream(), column, Some(there))?,
                InputColumn::Comes(kept) => come.push((column, kept)),
            }
        }
        if !come.is_empty() {
            let job = RingJob {
                total_bytes: come.len() as u64 * column_bytes,
                upload: Some((upload, source)),
                arrays: &[],
                download: None,
            };
            up.run_job(job, &mut |chunk| {
                let mut done = 0;
                while done < chunk.piece.bytes {
                    let offset = chunk.piece.offset + done;
                    let (nth, at) = (offset / column_bytes, offset % column_bytes);
                    let bytes = (column_bytes - at).min(chunk.piece.bytes - done);
                    let (column, kept) = come[nth as usize];
                    launcher.receive(chunk.stream, (column, at), (chunk.buffer, done), bytes)?;
                    done += bytes;
                    if at + bytes == column_bytes {
                        if let Some(kept) = kept {
                            launcher.keep(chunk.stream, column, kept)?;
                        }
                        launcher.to_rows(chunk.stream, column, None)?;
                    }
                }
                Ok(())
            })?;
        }
        let stream = up.busy_stream();
        for run in launcher.runs() {
            launcher.arrive_from_all(stream, run)?;
            if run.input + 1 == inputs.len() {
                launcher.compute(stream, run.tile)?;
                if let Some(before) = run.tile.checked_sub(1) {
                    bring(back, launcher, download, sink, before)?;
                }
            }
        }
        bring(back, launcher, download, sink, launcher.tiles() - 1)?;
        self.up.finish()?;
        self.back.finish()
    }

    /// Computes the coset: `source` gives rows in their order, `sink` takes the rows of the quotient.
    ///
    /// # Errors
    /// [`crate::Error::Source`], [`crate::Error::Sink`], [`crate::Error::Driver`], [`crate::Error::Invalid`]
    /// for slots that are too short. After an error nothing is in flight, and the rows that the sink took are
    /// void.
    pub fn compute(
        &mut self,
        upload: &mut Upload,
        download: &mut Download,
        source: &mut dyn Source,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let (launcher, back) = (&mut self.launcher, &mut self.back);
        let job = RingJob {
            total_bytes: launcher.plan().total_rows() * launcher.plan().row_bytes(),
            upload: Some((upload, source)),
            arrays: &[],
            download: None,
        };
        self.up.run_job(job, &mut |chunk| {
            let mut done = 0;
            while let Some(part) = launcher.part(&chunk, done) {
                launcher.arrive(&chunk, done, part)?;
                done += part.rows;
                if let Some(tile) = part.completes {
                    launcher.compute(chunk.stream, tile)?;
                    // The tile before is computed by now.
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

/// The coefficients of an input.
#[derive(Debug, Clone, Copy)]
pub(crate) enum InputColumn<'b> {
    /// They are in a buffer of the device.
    There(&'b DeviceBuffer),
    /// They come from the host, and may be kept in a buffer.
    Comes(Option<&'b DeviceBuffer>),
}

/// Copies the quotient's rows of a tile to the host.
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
    back.drain_buffer((rows, first), tile_bytes, download, &mut to)
}

/// The number of the element at an offset in bytes.
pub(crate) fn element_at(offset: u64) -> u64 {
    offset / ELEMENT_BYTES
}
