//! The ring: streams bytes from a source through pinned slots into device buffers, runs kernels on them, and
//! streams them back through pinned slots to a sink.
//!
//! ```text
//! host            copy stream            compute stream          copy stream back        host
//! Source -> slot ------------> buffer -----> kernel -----> buffer ---------------> slot -> Sink
//!             ^      `slot.event`  `loaded`         `computed`      `slot.event`      |
//!             '- refilled when its     buffer reused when `free`       read when its -'
//!                event has happened                                    event has happened
//! ```
//!
//! Ownership over time (chunk `i`, `s` slots at an end, `b` buffers):
//!
//! - A slot of the upload belongs to the host, which lends it to the source, until its copy is queued, then to
//!   the device until `slot.event`. The host waits for that event before it fills in chunk `i + s`.
//! - A buffer belongs to the upload until `loaded`, for which the compute stream waits; to the kernel until
//!   `computed`, for which the stream back waits; to the copy back until `free`. The copy of chunk `i + b`
//!   waits for `free`. Without a copy back `free` is `computed`.
//! - A slot of the download belongs to the device until `slot.event`. The host waits for it before the sink
//!   reads, and before it uses the slot again.
//!
//! All waits between streams happen on the device. The host waits for single slots only, so a job has no hard
//! synchronisation; [`Ring::finish`] makes one. A source that reads ahead has begun to fill chunk `i + 1` when it
//! settles `i`; chunk `i - 1` is copied then, a kernel works on `i - 2`, and `i - 3` is on its way back.
//!
//! A chunk that is longer than a slot of the upload comes in parts, each in a slot of its own; its kernels
//! start when the last part is there ([`Chunking::in_parts`]).
//!
//! Memory: device `b * chunk_bytes`; pinned `s * part_bytes` for the upload, `s * chunk_bytes` for the download. One slot and one buffer are
//! correct, two of each overlap copies with kernels, and with three slots the source reads ahead.

mod chunks;
mod ends;
mod fault;
#[cfg(test)]
mod tests;

pub use chunks::{Chunking, Part, Parts, Piece, Pieces};
pub use ends::{Download, Sink, Source, Upload};

use crate::buffer::DeviceBuffer;
use crate::device::Gpu;
use crate::error::{Result, Values};
use crate::raw::{Event, RawStream};
use crate::stream::Stream;
use crate::trace::SpanKind;
use crate::vram::Vram;
use fault::Fault;

/// One chunk, for which a kernel is launched.
#[derive(Debug)]
pub struct Chunk<'ring> {
    /// Its place in the job.
    pub piece: Piece,
    /// The buffer with its bytes, from offset 0. The kernel may change them; the content after it is copied
    /// back.
    pub buffer: &'ring DeviceBuffer,
    /// The stream for the kernel. The caller must not wait for the stream on the host.
    pub stream: &'ring Stream,
}

/// One job of a ring: its length and its ends, of which at least one is given.
pub struct RingJob<'job> {
    /// Length in bytes, the same at both ends.
    pub total_bytes: u64,
    /// Slots to send from, and the source that fills them.
    pub upload: Option<(&'job mut Upload, &'job mut dyn Source)>,
    /// Bytes of an element in each of the arrays that a chunk has one behind the other: `&[]` for one array.
    pub arrays: &'job [u64],
    /// Slots to receive in, and the sink that takes their bytes.
    pub download: Option<(&'job mut Download, &'job mut dyn Sink)>,
}

/// Device buffers that chunks use in turn, and three streams. Jobs run through a ring one after the other.
#[derive(Debug)]
pub struct Ring {
    gpu: Gpu,
    // The streams before the buffers: see `Drop`.
    up: RawStream,
    compute: Stream,
    back: RawStream,
    buffers: Vec<Place>,
    next: usize,
    chunking: Chunking,
    in_flight: bool,
    fault: Fault,
}

/// A buffer, and the events that mark the ends of its three uses.
#[derive(Debug)]
struct Place {
    buffer: DeviceBuffer,
    loaded: Event,
    computed: Event,
    free: Event,
}

impl Ring {
    /// A ring of `buffers` device buffers, each as long as a chunk.
    ///
    /// # Errors
    /// [`crate::Error::OverBudget`], [`crate::Error::OutOfMemory`]; [`crate::Error::Invalid`] without
    /// buffers; [`crate::Error::Driver`].
    pub fn new(vram: &Vram, chunking: Chunking, buffers: usize) -> Result<Self> {
        if buffers == 0 {
            return Err(Values::Empty {
                what: "device buffers of a ring",
            }
            .into());
        }
        let gpu = vram.gpu();
        let place = |_| {
            Ok(Place {
                buffer: vram.buffer(chunking.chunk_bytes(), "ring")?,
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
            in_flight: false,
            fault: Fault::None,
        })
    }

    /// How the ring cuts jobs.
    pub fn chunking(&self) -> &Chunking {
        &self.chunking
    }

    /// The stream of the kernels, for work before the first chunk of a job, such as tables, or after the
    /// last.
    pub fn stream(&self) -> &Stream {
        &self.compute
    }

    /// The same, for work that no job of the ring comes before: dropped before [`Ring::finish`], the ring waits for it.
    pub fn busy_stream(&mut self) -> &Stream {
        self.in_flight = true;
        &self.compute
    }

    /// Runs a job: calls `kernel` once for each chunk, in order, to queue its work. When this returns, the
    /// source has given and the sink has taken all bytes. Kernels of a job without a sink may still run: see
    /// [`Ring::finish`].
    ///
    /// # Errors
    /// [`crate::Error::Source`], [`crate::Error::Sink`], [`crate::Error::Driver`], errors of `kernel`,
    /// [`crate::Error::Invalid`] for a job that does not fit. After an error nothing is in flight, and the
    /// ring can be used again unless the device is lost.
    pub fn run_job(
        &mut self,
        mut job: RingJob<'_>,
        kernel: &mut dyn FnMut(Chunk<'_>) -> Result<()>,
    ) -> Result<()> {
        if job.upload.is_none() && job.download.is_none() {
            return Err(Values::Empty {
                what: "ends of a job (a source or a sink)",
            }
            .into());
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

    /// Runs a job that copies bytes of a buffer, from an offset on, to the sink.
    ///
    /// # Errors
    /// As [`Ring::run_job`].
    pub fn drain_buffer(
        &mut self,
        (from, offset): (&DeviceBuffer, u64),
        total_bytes: u64,
        download: &mut Download,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let job = RingJob {
            total_bytes,
            upload: None,
            arrays: &[],
            download: Some((download, sink)),
        };
        self.run_job(job, &mut |chunk| {
            let piece = chunk.piece;
            chunk
                .stream
                .copy((chunk.buffer, 0), (from, offset + piece.offset), piece.bytes)
        })
    }

    /// Waits until all kernels are done: the one hard synchronisation, after any number of jobs.
    ///
    /// # Errors
    /// [`crate::Error::Driver`], also of a kernel.
    pub fn finish(&mut self) -> Result<()> {
        // Each copy to the device is before a kernel, each copy back before `free`.
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
            download.begin(&self.chunking)?;
        }
        loop {
            // The host's slow part comes first, before any work of this chunk is queued.
            let filled = match &mut job.upload {
                Some((upload, source)) => match upload.next_filled(*source, self.fault)? {
                    Some(filled) => Some(filled),
                    None => break,
                },
                None => None,
            };
            let piece = filled.map_or_else(|| pieces.next(), |filled| Some(filled.part.chunk));
            let Some(piece) = piece else {
                break;
            };
            self.in_flight = true;
            let count = self.buffers.len();
            let place = &self.buffers[self.next];
            match (filled, &mut job.upload) {
                (Some(filled), Some((upload, _))) => {
                    if filled.part.is_first() {
                        self.wait_until_free(place, &self.up)?;
                    }
                    upload.send(filled, &self.up, job.arrays, place.buffer.memory())?;
                    if !filled.part.is_last() {
                        continue;
                    }
                    self.up.record(&place.loaded)?;
                    if !self.has(EventWait::Loaded) {
                        self.compute.raw().wait_for(&place.loaded)?;
                    }
                }
                _ => self.wait_until_free(place, self.compute.raw())?,
            }
            self.next = (self.next + 1) % count;
            kernel(Chunk {
                piece,
                buffer: &place.buffer,
                stream: &self.compute,
            })?;
            self.compute.raw().record(&place.computed)?;
            if let Some((download, sink)) = &mut job.download {
                if !self.has(EventWait::Computed) {
                    self.back.wait_for(&place.computed)?;
                }
                download.receive(piece, &self.back, place.buffer.memory(), *sink, self.fault)?;
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

    /// Makes a stream wait until the last use of the buffer is over.
    fn wait_until_free(&self, place: &Place, stream: &RawStream) -> Result<()> {
        if self.has(EventWait::FreeAltogether) {
            Ok(())
        } else if self.has(EventWait::FreeAfterCopyBack) {
            stream.wait_for(&place.computed)
        } else {
            stream.wait_for(&place.free)
        }
    }

    /// Waits for all streams and ignores errors: after a failure nothing may be in flight.
    pub(crate) fn wait_for_all(&mut self) {
        let trace = self.gpu.trace();
        for stream in [&self.up, self.compute.raw(), &self.back] {
            let _ = trace.host(SpanKind::HardSync, 0, || stream.synchronize());
        }
        self.in_flight = false;
    }

    fn has(&self, forgotten: EventWait) -> bool {
        match (self.fault, forgotten) {
            #[cfg(test)]
            (Fault::KernelStartsEarly, EventWait::Loaded)
            | (Fault::CopyBackStartsEarly, EventWait::Computed)
            | (Fault::BufferOverwrittenEarly, EventWait::FreeAltogether)
            | (Fault::BufferOverwrittenBeforeCopyBack, EventWait::FreeAfterCopyBack) => true,
            _ => false,
        }
    }
}

/// An event that a faulty ring does not wait for: see [`Fault`].
#[derive(Clone, Copy)]
enum EventWait {
    Loaded,
    Computed,
    FreeAltogether,
    FreeAfterCopyBack,
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Buffers must not be freed while a kernel uses them.
        if self.in_flight {
            self.wait_for_all();
        }
    }
}
