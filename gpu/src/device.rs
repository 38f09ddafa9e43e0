//! An open device: its context, its streams, the exclusive right to use it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use crate::driver;
use crate::error::{Error, Result};
use crate::lock::locked;
use crate::probed::Device;
use crate::raw::{Context, failed};
use crate::stream::Stream;
use crate::trace::{Detail, SpanKind, Trace};

/// An open device. Clones share it; the context is released with the last clone and the last object that was
/// made from one.
#[derive(Debug, Clone)]
pub struct Gpu {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    // Before the context, since it may hold events of it.
    trace: Trace,
    description: Device,
    context: Arc<Context>,
    turn: Arc<Mutex<()>>,
}

/// The right to use the memory and the kernels of a device, for one job at a time in this process. Two jobs
/// at once would each find half of the memory gone and fail.
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

    /// Its name and properties.
    pub fn description(&self) -> &Device {
        &self.shared.description
    }

    /// The record of its transfers and waits.
    pub fn trace(&self) -> &Trace {
        &self.shared.trace
    }

    /// Free and total device memory in bytes, as the driver sees it now, with all programs on the device.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn memory_bytes(&self) -> Result<(u64, u64)> {
        self.shared.context.memory_bytes()
    }

    /// Waits until no other job of the process uses the device. Work without the device, such as reading from
    /// disk into pinned slots, comes before this call.
    pub fn take_turn(&self) -> Turn<'_> {
        Turn {
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

    /// Waits for all work of the device; a hard synchronisation.
    ///
    /// # Errors
    /// [`Error::Driver`], also of earlier asynchronous work.
    pub fn synchronize(&self) -> Result<()> {
        let trace = self.trace();
        trace.host(SpanKind::HardSync, 0, || self.shared.context.synchronize())?;
        trace.read_events()
    }

    /// The errors of destructors since the last call: a destructor cannot return one.
    pub fn release_failures(&self) -> Vec<Error> {
        self.shared.context.failures()
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.shared.context
    }
}

/// One lock for each device of the process, shared by all [`Gpu`]s that are open on it.
fn turn_of(ordinal: usize) -> Arc<Mutex<()>> {
    static TURNS: OnceLock<Mutex<BTreeMap<usize, Arc<Mutex<()>>>>> = OnceLock::new();
    let turns = TURNS.get_or_init(Mutex::default);
    let mut turns = locked(turns);
    turns.entry(ordinal).or_default().clone()
}
