//! An open device: its context, its streams, its turn.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cudarc::driver::sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;

use crate::Device;
use crate::driver;
use crate::error::{Error, Result};
use crate::raw::{Context, Event, RawStream};
use crate::trace::{Detail, Kind, Trace};
use crate::vram::DeviceBuffer;

/// An open device. Clones are the same device; the context is given back with the last of them, and of what was made from them.
#[derive(Debug, Clone)]
pub struct Gpu {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    // Before the context: it may hold events of it.
    trace: Trace,
    description: Device,
    context: Arc<Context>,
    turn: Arc<Mutex<()>>,
}

/// The right to use a device's memory and kernels, for one job at a time in this process. Two jobs that share a device's memory
/// each see half of it gone, and fail in turn.
#[derive(Debug)]
pub struct Turn<'gpu> {
    _held: MutexGuard<'gpu, ()>,
}

impl Gpu {
    /// Opens device `ordinal` (from 0, in the driver's order).
    ///
    /// # Errors
    /// [`Error::NoGpu`] without a driver, [`Error::NoSuchDevice`], [`Error::Driver`] if the driver fails.
    pub fn open(ordinal: usize, detail: Detail) -> Result<Self> {
        let context = Context::retain(ordinal)?;
        let description = driver::describe_device(ordinal)?;
        let trace = Trace::new(detail);
        trace.start(&context)?;
        Ok(Self {
            shared: Arc::new(Shared {
                trace,
                description,
                context,
                turn: turn_of(ordinal),
            }),
        })
    }

    /// What it is.
    pub fn description(&self) -> &Device {
        &self.shared.description
    }

    /// What was done with it.
    pub fn trace(&self) -> &Trace {
        &self.shared.trace
    }

    /// Free and total device memory in bytes, as the driver sees it now, all programs together.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn memory_bytes(&self) -> Result<(u64, u64)> {
        self.shared.context.memory_bytes()
    }

    /// The most shared memory that a block of a kernel may ask for, in bytes.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn shared_bytes_max(&self) -> Result<u32> {
        let bytes = self
            .shared
            .context
            .attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        Ok(bytes.unsigned_abs())
    }

    /// Lets copies on this device's streams reach `other`'s memory directly. `false` if the two cannot: [`Stream::copy`] then goes
    /// through the host's memory, and is right all the same.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn enable_peer(&self, other: &Gpu) -> Result<bool> {
        self.shared.context.enable_peer(&other.shared.context)
    }

    /// Waits for the device's turn. What does not need the device (reading from disk into pinned slots) is done before.
    pub fn take_turn(&self) -> Turn<'_> {
        Turn {
            // A job that panicked has given its memory back; the next one may go on.
            _held: self.shared.turn.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// A new stream.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn stream(&self) -> Result<Stream> {
        Ok(Stream {
            raw: RawStream::new(&self.shared.context)?,
            trace: self.shared.trace.clone(),
        })
    }

    /// Waits for all that was given to the device; a hard synchronisation.
    ///
    /// # Errors
    /// [`Error::Driver`], also for what earlier asynchronous work failed with.
    pub fn synchronize(&self) -> Result<()> {
        let trace = self.trace();
        trace.host(Kind::HardSync, 0, || self.shared.context.synchronize())?;
        trace.read_events()
    }

    /// What went wrong when handles were released, since the last time this was asked: destructors have nobody to tell.
    pub fn release_failures(&self) -> Vec<Error> {
        self.shared.context.failures()
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.shared.context
    }
}

/// One lock for each device of the process, however often it is opened.
fn turn_of(ordinal: usize) -> Arc<Mutex<()>> {
    static TURNS: OnceLock<Mutex<BTreeMap<usize, Arc<Mutex<()>>>>> = OnceLock::new();
    let turns = TURNS.get_or_init(Mutex::default);
    let mut turns = turns.lock().unwrap_or_else(PoisonError::into_inner);
    turns.entry(ordinal).or_default().clone()
}

/// A queue of the device: what is given to it runs in that order, some time later.
#[derive(Debug)]
pub struct Stream {
    raw: RawStream,
    trace: Trace,
}

impl Stream {
    /// Blocks until all that was queued is done; a hard synchronisation.
    ///
    /// # Errors
    /// [`Error::Driver`], also for what earlier asynchronous work failed with.
    pub fn synchronize(&self) -> Result<()> {
        self.trace.host(Kind::HardSync, 0, || self.raw.synchronize())?;
        self.trace.read_events()
    }

    /// Fills a buffer with one byte.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn fill(&self, buffer: &DeviceBuffer, value: u8) -> Result<()> {
        let bytes = buffer.bytes();
        self.trace.device(Kind::OnDevice, bytes, &self.raw, || {
            self.raw.fill(buffer.memory(), 0, bytes, value)
        })
    }

    /// Copies `bytes` between two buffers: of this stream's device, or to it from another one. The other device's work on `from` must
    /// have been waited for ([`Stream::wait_for`]).
    ///
    /// # Errors
    /// [`Error::Invalid`] for a range outside a buffer, [`Error::Driver`].
    pub fn copy(&self, to: (&DeviceBuffer, u64), from: (&DeviceBuffer, u64), bytes: u64) -> Result<()> {
        let kind = if Arc::ptr_eq(to.0.memory().context(), from.0.memory().context()) {
            Kind::OnDevice
        } else {
            Kind::Peer
        };
        self.trace.device(kind, bytes, &self.raw, || {
            self.raw
                .copy((to.0.memory(), to.1), (from.0.memory(), from.1), bytes)
        })
    }

    /// What is queued here from now on waits, on the device, for what is queued on `other` now. Streams of two devices too.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn wait_for(&self, other: &Stream) -> Result<()> {
        self.wait_for_mark(&other.mark()?)
    }

    /// Where this stream's work ends now.
    pub(crate) fn mark(&self) -> Result<Event> {
        let event = Event::between_streams(self.raw.context())?;
        event.record(&self.raw)?;
        Ok(event)
    }

    /// What is queued here from now on waits for that.
    pub(crate) fn wait_for_mark(&self, mark: &Event) -> Result<()> {
        self.raw.wait_for(mark)
    }

    pub(crate) fn raw(&self) -> &RawStream {
        &self.raw
    }

    pub(crate) fn trace(&self) -> &Trace {
        &self.trace
    }
}
