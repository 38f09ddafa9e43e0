//! A record of transfers and waits: counts, bytes, seconds.
//!
//! Counts are always kept: transfers by direction and by page-locked or pageable memory of the host, waits of
//! the host, launches, bytes. A hard synchronisation (of a stream or a device) stops the pipeline, so a job
//! must not have one per chunk; a wait for the event of one slot does not. [`Detail::Timeline`] also keeps
//! spans: of the host by its clock, of the device by pairs of timed events, which are read after a hard
//! synchronisation that the job makes anyway. The two clocks are related once, when the device is opened.

mod render;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use crate::error::Result;
use crate::lock::locked;
use crate::raw::{Context, Event, RawStream};

/// A kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpanKind {
    /// A source filled a pinned slot, or began to read into it; host time.
    Fill,
    /// The host waited for what is read into a pinned slot, and checked it; host time.
    Arrival,
    /// Host to device, from page-locked memory.
    ToDevicePinned,
    /// Host to device, from pageable memory: slower, and the host waits.
    ToDevicePageable,
    /// A kernel.
    Kernel,
    /// Device memory filled or copied on the device.
    OnDevice,
    /// Device to host, to page-locked memory.
    FromDevicePinned,
    /// Device to host, to pageable memory.
    FromDevicePageable,
    /// A sink took a pinned slot's bytes; host time.
    Drain,
    /// The host waited for one slot's event; host time.
    EventWait,
    /// The host waited for a whole stream or device; host time.
    HardSync,
}

impl SpanKind {
    /// All kinds, in the order in which data flows.
    pub const ALL: [SpanKind; 11] = [
        SpanKind::Fill,
        SpanKind::Arrival,
        SpanKind::ToDevicePinned,
        SpanKind::ToDevicePageable,
        SpanKind::Kernel,
        SpanKind::OnDevice,
        SpanKind::FromDevicePinned,
        SpanKind::FromDevicePageable,
        SpanKind::Drain,
        SpanKind::EventWait,
        SpanKind::HardSync,
    ];

    /// Its name in a table or beside a lane.
    pub fn name(self) -> &'static str {
        match self {
            SpanKind::Fill => "fill (host)",
            SpanKind::Arrival => "arrival (host)",
            SpanKind::ToDevicePinned => "to device, pinned",
            SpanKind::ToDevicePageable => "to device, pageable",
            SpanKind::Kernel => "kernel",
            SpanKind::OnDevice => "on device",
            SpanKind::FromDevicePinned => "from device, pinned",
            SpanKind::FromDevicePageable => "from device, pageable",
            SpanKind::Drain => "drain (host)",
            SpanKind::EventWait => "event wait (host)",
            SpanKind::HardSync => "hard sync (host)",
        }
    }
}

/// How much a trace keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Counts and bytes; seconds of the host only.
    #[default]
    Counts,
    /// Spans too, up to a limit; further ones are only counted.
    Timeline {
        /// The limit. A span of the device costs two events until it is read.
        spans_max: usize,
    },
}

/// The sum over one kind.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Total {
    /// Number of events.
    pub count: u64,
    /// Bytes of all events.
    pub bytes: u64,
    /// Seconds of timed events.
    pub seconds: f64,
    /// Number of timed events.
    pub timed: u64,
    /// Bytes of timed events.
    pub timed_bytes: u64,
}

impl Total {
    fn count(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }

    fn time(&mut self, bytes: u64, seconds: f64) {
        self.seconds += seconds;
        self.timed += 1;
        self.timed_bytes += bytes;
    }
}

/// The time in which a device was busy: see [`Trace::busy`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Busy {
    /// With kernels, and with fills and copies of its own memory.
    pub device_seconds: f64,
    /// With copies to and from the device.
    pub transfer_seconds: f64,
    /// With any of these; overlapping time counts once.
    pub with_transfer_seconds: f64,
}

impl Busy {
    /// The busy time of these spans; `None` if there is no span of the device.
    pub fn of(mut spans: Vec<Span>) -> Option<Self> {
        spans.sort_by(|a, b| a.start_seconds.total_cmp(&b.start_seconds));
        render::busy(&spans)
    }

    /// The time in which copies and kernels ran at once.
    pub fn overlap_seconds(&self) -> f64 {
        (self.device_seconds + self.transfer_seconds - self.with_transfer_seconds).max(0.0)
    }
}

/// An event with its time, in seconds since the device was opened.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// A kind of event.
    pub kind: SpanKind,
    /// The kernel, if it is one.
    pub kernel: Option<Arc<str>>,
    /// Its start.
    pub start_seconds: f64,
    /// Its duration.
    pub seconds: f64,
    /// The bytes that it moved.
    pub bytes: u64,
}

/// The record of one device. Clones share it.
#[derive(Clone)]
pub struct Trace {
    shared: Arc<Shared>,
}

struct Shared {
    opened: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    spans_max: usize,
    totals: [Total; SpanKind::ALL.len()],
    kernels: BTreeMap<Arc<str>, Total>,
    spans: Vec<Span>,
    /// The event at time zero of the device.
    origin: Option<Event>,
    /// The time of the host at that event.
    origin_seconds: f64,
    pending: Vec<Pending>,
}

/// A span of the device whose events are not read yet.
struct Pending {
    kind: SpanKind,
    kernel: Option<Arc<str>>,
    bytes: u64,
    begin: Event,
    end: Event,
}

impl Trace {
    pub(crate) fn new(detail: Detail) -> Self {
        let spans_max = match detail {
            Detail::Counts => 0,
            Detail::Timeline { spans_max } => spans_max,
        };
        Self {
            shared: Arc::new(Shared {
                opened: Instant::now(),
                state: Mutex::new(State {
                    spans_max,
                    ..State::default()
                }),
            }),
        }
    }

    /// Relates the two clocks; one hard synchronisation, and only if spans are kept.
    pub(crate) fn start(&self, context: &Arc<Context>) -> Result<()> {
        if self.shared.state().spans_max == 0 {
            return Ok(());
        }
        let stream = RawStream::new(context)?;
        let origin = Event::timed(context)?;
        stream.record(&origin)?;
        self.host(SpanKind::HardSync, 0, || stream.synchronize())?;
        let mut state = self.shared.state();
        state.origin_seconds = self.shared.opened.elapsed().as_secs_f64();
        state.origin = Some(origin);
        Ok(())
    }

    /// Runs work on the host and records its time, also if it fails.
    pub(crate) fn host<T>(&self, kind: SpanKind, bytes: u64, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        let seconds = start.elapsed().as_secs_f64();
        let mut state = self.shared.state();
        state.totals[kind as usize].count(bytes);
        state.totals[kind as usize].time(bytes, seconds);
        if state.has_room() {
            let start_seconds = start.duration_since(self.shared.opened).as_secs_f64();
            state.spans.push(Span {
                kind,
                kernel: None,
                start_seconds,
                seconds,
                bytes,
            });
        }
        done
    }

    /// Queues a copy or a fill on a stream, between two events if spans are kept.
    pub(crate) fn device(
        &self,
        kind: SpanKind,
        bytes: u64,
        stream: &RawStream,
        queue: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.queued(kind, None, bytes, stream, queue)
    }

    /// Queues a kernel on a stream, between two events if spans are kept.
    pub(crate) fn kernel(
        &self,
        name: &Arc<str>,
        stream: &RawStream,
        queue: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.queued(SpanKind::Kernel, Some(name), 0, stream, queue)
    }

    fn queued(
        &self,
        kind: SpanKind,
        kernel: Option<&Arc<str>>,
        bytes: u64,
        stream: &RawStream,
        queue: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let events = if self.shared.state().has_room() {
            let (begin, end) = (Event::timed(stream.context())?, Event::timed(stream.context())?);
            stream.record(&begin)?;
            Some((begin, end))
        } else {
            None
        };
        queue()?;
        if let Some((_, end)) = &events {
            stream.record(end)?;
        }
        let mut state = self.shared.state();
        state.totals[kind as usize].count(bytes);
        if let Some(name) = kernel {
            state.kernels.entry(name.clone()).or_default().count(bytes);
        }
        if let Some((begin, end)) = events {
            state.pending.push(Pending {
                kind,
                kernel: kernel.cloned(),
                bytes,
                begin,
                end,
            });
        }
        Ok(())
    }

    /// Reads the events of spans that have ended. Called after a hard synchronisation.
    pub(crate) fn read_events(&self) -> Result<()> {
        let mut state = self.shared.state();
        let Some(origin) = state.origin.take() else {
            return Ok(());
        };
        let read = state.read_events(&origin);
        state.origin = Some(origin);
        read
    }

    /// The sum over one kind.
    pub fn total(&self, kind: SpanKind) -> Total {
        self.shared.state().totals[kind as usize]
    }

    /// The sums over each kernel, by name.
    pub fn kernels(&self) -> Vec<(Arc<str>, Total)> {
        let state = self.shared.state();
        let kernels = state.kernels.iter();
        kernels.map(|(name, total)| (name.clone(), *total)).collect()
    }

    /// Hard synchronisations so far.
    pub fn hard_syncs(&self) -> u64 {
        self.total(SpanKind::HardSync).count
    }

    /// The spans so far, by start. Empty without [`Detail::Timeline`]; spans of the device appear after a
    /// hard synchronisation.
    pub fn spans(&self) -> Vec<Span> {
        let mut spans = self.shared.state().spans.clone();
        spans.sort_by(|a, b| a.start_seconds.total_cmp(&b.start_seconds));
        spans
    }

    /// Takes the spans so far, in no order, which makes room for new ones.
    pub fn take_spans(&self) -> Vec<Span> {
        std::mem::take(&mut self.shared.state().spans)
    }

    /// Limits the spans from now on: 0 while a measurement runs that events would slow down. No effect unless
    /// the device was opened with [`Detail::Timeline`].
    pub fn limit_spans(&self, spans_max: usize) {
        let mut state = self.shared.state();
        if state.origin.is_some() {
            state.spans_max = spans_max;
        }
    }

    /// The time in which the device was busy, with and without transfers; overlapping time counts once.
    /// `None` without [`Detail::Timeline`].
    pub fn busy(&self) -> Option<Busy> {
        render::busy(&self.spans())
    }

    /// A table of counts, bytes, seconds and rates, by kind and by kernel.
    pub fn table(&self) -> String {
        let totals = self.shared.state().totals;
        let kernels = self.kernels();
        let kinds = SpanKind::ALL
            .iter()
            .map(|&kind| (kind.name(), totals[kind as usize]));
        let mut table = render::table(kinds.chain(kernels.iter().map(|(name, total)| (&**name, *total))));
        if let Some(busy) = self.busy() {
            table += &render::busy_lines(busy);
        }
        table
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table())
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

impl State {
    fn has_room(&self) -> bool {
        self.spans.len() + self.pending.len() < self.spans_max
    }

    fn read_events(&mut self, origin: &Event) -> Result<()> {
        for pending in std::mem::take(&mut self.pending) {
            if !pending.end.is_done()? {
                self.pending.push(pending);
                continue;
            }
            let seconds = pending.end.seconds_since(&pending.begin)?;
            let start_seconds = self.origin_seconds + pending.begin.seconds_since(origin)?;
            self.totals[pending.kind as usize].time(pending.bytes, seconds);
            if let Some(total) = pending
                .kernel
                .as_ref()
                .and_then(|name| self.kernels.get_mut(name))
            {
                total.time(pending.bytes, seconds);
            }
            self.spans.push(Span {
                kind: pending.kind,
                kernel: pending.kernel,
                start_seconds,
                seconds,
                bytes: pending.bytes,
            });
        }
        Ok(())
    }
}
