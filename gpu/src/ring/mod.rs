//! The ring: bytes from a source through pinned slots into device buffers, past a kernel, and back through pinned slots to a sink.
//!
//! ```text
//! host            copy stream            compute stream          copy stream back        host
//! Source -> slot ------------> buffer -----> kernel -----> buffer ---------------> slot -> Sink
//!             ^      `slot.event`  `loaded`         `computed`      `slot.event`      |
//!             '- refilled when its     buffer reused when `free`       read when its -'
//!                event has happened                                    event has happened
//! ```
//!
//! Who may touch what, and when (chunk `i`, `s` slots at an end, `b` buffers):
//!
//! - A slot of the upload is the host's until its copy is queued, then the device's until `slot.event`; the host waits for that event
//!   before chunk `i + s` is filled in.
//! - A buffer is the upload's until `loaded`, which the compute stream waits for; the kernel's until `computed`, which the stream back
//!   waits for; then the copy back's until `free`. The copy of chunk `i + b` waits for `free`. Without a copy back `free` is `computed`.
//! - A slot of the download is the device's until `slot.event`; the host waits for it before the sink reads, and before it is reused.
//!
//! All waits between streams are on the device. The host waits for single slots only: a job has no hard synchronisation; [`Ring::finish`]
//! makes one. While the source fills chunk `i`, chunk `i - 1` is copied, a kernel works on `i - 2`, and `i - 3` is on its way back.
//!
//! Memory: device `b * chunk_bytes`; pinned `s * chunk_bytes` at each end. One slot and one buffer are enough to be right, two of each to
//! overlap copies with kernels, three slots if the source's speed varies.

mod chunks;
mod ends;
mod fault;
#[cfg(test)]
mod tests;

pub use chunks::{Chunking, Piece, Pieces};
pub use ends::{Download, Sink, Source, Upload};

use crate::buffer::DeviceBuffer;
use crate::device::Gpu;
use crate::error::{Error, Result};
use crate::raw::{Event, RawStream};
use crate::stream::Stream;
use crate::trace::Kind;
use crate::vram::Vram;
use fault::Fault;

/// What a kernel is launched for.
#[derive(Debug)]
pub struct Chunk<'ring> {
    /// Which part of the job.
    pub piece: Piece,
    /// Its bytes, from the buffer's start. The kernel may change them; what is there afterwards is what goes back.
    pub buffer: &'ring DeviceBuffer,
    /// Where to launch it. Nothing else may be waited for on the host.
    pub stream: &'ring Stream,
    /// What goes back, if that is another buffer: see [`Ring::with_results`].
    pub results: &'ring DeviceBuffer,
    /// Which of the ring's buffers it is, from 0.
    pub place: usize,
}

/// The ends of one job. At least one of them is there.
pub struct RingJob<'job> {
    /// Length in bytes, the same at both ends.
    pub total_bytes: u64,
    /// Slots to send from, and what fills them.
    pub upload: Option<(&'job mut Upload, &'job mut dyn Source)>,
    /// Slots to receive in, and what empties them.
    pub download: Option<(&'job mut Download, &'job mut dyn Sink)>,
}

/// Device buffers in turn, and the three streams. Made once for a phase; jobs run through it one after the other.
#[derive(Debug)]
pub struct Ring {
    gpu: Gpu,
    // Streams before what they use: see `Drop`.
    up: RawStream,
    compute: Stream,
    back: RawStream,
    buffers: Vec<Place>,
    next: usize,
    chunking: Chunking,
    /// Of what goes back, if that is not the same.
    results: Option<Chunking>,
    in_flight: bool,
    fault: Fault,
}

/// A buffer and the events that hand it on.
#[derive(Debug)]
struct Place {
    buffer: DeviceBuffer,
    results: Option<DeviceBuffer>,
    loaded: Event,
    computed: Event,
    free: Event,
}

impl Ring {
    /// A ring of `buffers` device buffers of a chunk each.
    ///
    /// # Errors
    /// [`Error::OverBudget`], [`Error::OutOfMemory`]; [`Error::Invalid`] without buffers; [`Error::Driver`].
    pub fn new(vram: &Vram, chunking: Chunking, buffers: usize) -> Result<Self> {
        Self::made(vram, chunking, None, buffers)
    }

    /// A ring whose chunks come back as something else: from each, whatever its own length, `result_bytes` of a buffer beside its own,
    /// [`Chunk::results`]. Of the download's offsets and lengths these are the units. Device memory: `b * (chunk_bytes + result_bytes)`.
    ///
    /// # Errors
    /// As [`Ring::new`]; [`Error::Invalid`] for 0 bytes.
    pub fn with_results(vram: &Vram, chunking: Chunking, result_bytes: u64, buffers: usize) -> Result<Self> {
        let results = Chunking::new(result_bytes, result_bytes)?;
        Self::made(vram, chunking, Some(results), buffers)
    }

    fn made(vram: &Vram, chunking: Chunking, results: Option<Chunking>, buffers: usize) -> Result<Self> {
        if buffers == 0 {
            return Err(Error::Invalid {
                what: "a ring",
                details: "it needs at least one device buffer".into(),
            });
        }
        let gpu = vram.gpu();
        let place = |_| {
            Ok(Place {
                buffer: vram.buffer(chunking.chunk_bytes(), "ring")?,
                results: results
                    .map(|results| vram.buffer(results.chunk_bytes(), "ring of results"))
                    .transpose()?,
                loaded: Event::between_streams(gpu.context())?,
                computed: Event::between_streams(gpu.context())?,
                free: Event::between_streams(gpu.context())?,
            })
        };
        let buffers = (0..buffers).map(place).collect::<Result<Vec<_>>>()?;
        Ok(Self {
            gpu: gpu.clone(),
            up: RawStream::new(gpu.context())?,
            compute: gpu.stream()?,
            back: RawStream::new(gpu.context())?,
            buffers,
            next: 0,
            chunking,
            results,
            in_flight: false,
            fault: Fault::None,
        })
    }

    /// How jobs are cut.
    pub fn chunking(&self) -> &Chunking {
        &self.chunking
    }

    /// The addresses of its buffers and of those of results, in the order of [`Chunk::place`].
    pub(crate) fn addresses(&self) -> impl Iterator<Item = [u64; 2]> {
        self.buffers.iter().map(|place| {
            let results = place.results.as_ref().unwrap_or(&place.buffer);
            [place.buffer.address(), results.address()]
        })
    }

    /// The stream of the kernels: for what must come before a job's first chunk, such as tables, or after its last.
    pub fn stream(&self) -> &Stream {
        &self.compute
    }

    /// Runs a job: `kernel` is called once for each chunk, in order, and queues what is to be done with it. When this returns, the source
    /// has given and the sink has got all bytes; kernels of a job without a sink may still run, see [`Ring::finish`].
    ///
    /// # Errors
    /// [`Error::Source`], [`Error::Sink`], [`Error::Driver`], those of `kernel`, [`Error::Invalid`] for a job that does not fit. Then
    /// nothing is in flight any more, and the ring can be used again unless the device is lost.
    pub fn run(
        &mut self,
        mut job: RingJob<'_>,
        kernel: &mut dyn FnMut(Chunk<'_>) -> Result<()>,
    ) -> Result<()> {
        if job.upload.is_none() && job.download.is_none() {
            return Err(Error::Invalid {
                what: "a job",
                details: "it has neither a source nor a sink".into(),
            });
        }
        let done = self.run_chunks(&mut job, kernel);
        if let Some((upload, _)) = &mut job.upload {
            upload.end();
        }
        if done.is_err() {
            self.wait_for_all();
        }
        done
    }

    /// Runs a job that copies all bytes of the source to the start of `to`.
    ///
    /// # Errors
    /// As [`Ring::run`].
    pub fn fill_buffer(
        &mut self,
        to: &DeviceBuffer,
        total_bytes: u64,
        (upload, source): (&mut Upload, &mut dyn Source),
    ) -> Result<()> {
        let job = RingJob {
            total_bytes,
            upload: Some((upload, source)),
            download: None,
        };
        self.run(job, &mut |chunk| {
            let piece = chunk.piece;
            chunk
                .stream
                .copy((to, piece.offset), (chunk.buffer, 0), piece.bytes)
        })
    }

    /// Runs a job that copies bytes of a buffer, from an offset on, to the sink.
    ///
    /// # Errors
    /// As [`Ring::run`].
    pub fn drain_buffer(
        &mut self,
        (from, offset): (&DeviceBuffer, u64),
        total_bytes: u64,
        (download, sink): (&mut Download, &mut dyn Sink),
    ) -> Result<()> {
        let job = RingJob {
            total_bytes,
            upload: None,
            download: Some((download, sink)),
        };
        self.run(job, &mut |chunk| {
            let piece = chunk.piece;
            chunk
                .stream
                .copy((chunk.buffer, 0), (from, offset + piece.offset), piece.bytes)
        })
    }

    /// Waits until all kernels are done: the one hard synchronisation, after any number of jobs.
    ///
    /// # Errors
    /// [`Error::Driver`], also for what a kernel failed with.
    pub fn finish(&mut self) -> Result<()> {
        // Every copy to the device comes before a kernel. The copies back come before `free`.
        for place in &self.buffers {
            self.compute.raw().wait_for(&place.free)?;
        }
        self.compute.synchronize()?;
        self.in_flight = false;
        Ok(())
    }

    fn run_chunks(
        &mut self,
        job: &mut RingJob<'_>,
        kernel: &mut dyn FnMut(Chunk<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut pieces = self.chunking.pieces(job.total_bytes)?;
        if let Some((upload, _)) = &mut job.upload {
            upload.begin(&self.chunking, job.total_bytes)?;
        }
        if let Some((download, _)) = &mut job.download {
            download.begin(self.results.as_ref().unwrap_or(&self.chunking))?;
        }
        loop {
            // The host's slow part comes before anything of this chunk is queued.
            let filled = match &mut job.upload {
                Some((upload, source)) => match upload.next_filled(*source, self.fault)? {
                    Some(filled) => Some(filled),
                    None => break,
                },
                None => None,
            };
            let Some(piece) = filled.map_or_else(|| pieces.next(), |(piece, _)| Some(piece)) else {
                break;
            };
            self.in_flight = true;
            let count = self.buffers.len();
            let number = self.next;
            let place = &self.buffers[number];
            let results = place.results.as_ref().unwrap_or(&place.buffer);
            self.next = (self.next + 1) % count;
            match (filled, &mut job.upload) {
                (Some(filled), Some((upload, _))) => {
                    self.wait_until_free(place, &self.up)?;
                    upload.send(filled, &self.up, place.buffer.memory())?;
                    self.up.record(&place.loaded)?;
                    if !self.has(Forgotten::Loaded) {
                        self.compute.raw().wait_for(&place.loaded)?;
                    }
                }
                _ => self.wait_until_free(place, self.compute.raw())?,
            }
            kernel(Chunk {
                piece,
                buffer: &place.buffer,
                stream: &self.compute,
                results,
                place: number,
            })?;
            self.compute.raw().record(&place.computed)?;
            if let Some((download, sink)) = &mut job.download {
                if !self.has(Forgotten::Computed) {
                    self.back.wait_for(&place.computed)?;
                }
                let back = self.results.map_or(piece, |results| Piece {
                    index: piece.index,
                    offset: piece.index * results.chunk_bytes(),
                    bytes: results.chunk_bytes(),
                });
                download.receive(back, &self.back, results.memory(), *sink, self.fault)?;
                self.back.record(&place.free)?;
            } else {
                self.compute.raw().record(&place.free)?;
            }
        }
        if let Some((download, sink)) = &mut job.download {
            download.drain(*sink, self.fault)?;
        }
        Ok(())
    }

    /// Makes a stream wait until the buffer's last user is done with it.
    fn wait_until_free(&self, place: &Place, stream: &RawStream) -> Result<()> {
        if self.has(Forgotten::FreeAltogether) {
            Ok(())
        } else if self.has(Forgotten::FreeAfterCopyBack) {
            stream.wait_for(&place.computed)
        } else {
            stream.wait_for(&place.free)
        }
    }

    /// Waits for everything, whatever it says: after a failure nothing may be in flight.
    fn wait_for_all(&mut self) {
        let trace = self.gpu.trace();
        for stream in [&self.up, self.compute.raw(), &self.back] {
            let _ = trace.host(Kind::HardSync, 0, || stream.synchronize());
        }
        self.in_flight = false;
    }

    fn has(&self, forgotten: Forgotten) -> bool {
        match (self.fault, forgotten) {
            #[cfg(test)]
            (Fault::KernelStartsEarly, Forgotten::Loaded)
            | (Fault::CopyBackStartsEarly, Forgotten::Computed)
            | (Fault::BufferOverwrittenEarly, Forgotten::FreeAltogether)
            | (Fault::BufferOverwrittenBeforeCopyBack, Forgotten::FreeAfterCopyBack) => true,
            _ => false,
        }
    }
}

/// An event that a faulty ring does not wait for.
#[derive(Clone, Copy)]
enum Forgotten {
    Loaded,
    Computed,
    FreeAltogether,
    FreeAfterCopyBack,
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Buffers may not be given back under a kernel.
        if self.in_flight {
            self.wait_for_all();
        }
    }
}
