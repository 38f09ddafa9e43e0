//! An open device: its context, its streams, its turn.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use cudarc::driver::sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;

use crate::driver;
use crate::error::{Error, Result};
use crate::lock::locked;
use crate::probed::Device;
use crate::raw::{Context, failed};
use crate::stream::Stream;
use crate::trace::{Detail, Kind, Trace};

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
        let description = driver::describe_device(ordinal).map_err(failed("describe a device"))?;
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
            _held: locked(&self.shared.turn),
        }
    }

    /// A new stream.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(&self.shared.context, &self.shared.trace)
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
    let mut turns = locked(turns);
    turns.entry(ordinal).or_default().clone()
}
