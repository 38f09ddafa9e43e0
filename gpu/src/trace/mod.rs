//! What went over the bus, who waited for whom, and for how long.
//!
//! Counts are always kept: transfers by direction and by whether the host's side was page-locked, host waits, launches, bytes. A hard
//! synchronisation (of a stream or a device) stops the pipeline and must not be one per chunk; a wait for one slot's event is part of
//! it. With [`Detail::Timeline`], spans are kept too: the host's by its clock, the device's by pairs of timed events, which are read
//! after a hard synchronisation that the job makes anyway. The two clocks are tied together once, when the device is opened.

mod render;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::error::Result;
use crate::raw::{Context, Event, RawStream};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A source filled a pinned slot; host time.
    Fill,
    /// Host to device, from page-locked memory.
    ToDevicePinned,
    /// Host to device, from pageable memory: slower, and the host waits.
    ToDevicePageable,
    /// A kernel.
    Kernel,
    /// Device memory filled or copied on the device.
    OnDevice,
    /// From one device to another.
    Peer,
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

impl Kind {
    /// All of them, in the order in which data flows.
    pub const ALL: [Kind; 11] = [
        Kind::Fill,
        Kind::ToDevicePinned,
        Kind::ToDevicePageable,
        Kind::Kernel,
        Kind::OnDevice,
        Kind::Peer,
        Kind::FromDevicePinned,
        Kind::FromDevicePageable,
        Kind::Drain,
        Kind::EventWait,
        Kind::HardSync,
    ];

    /// In a table or at the side of a lane.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Fill => "fill (host)",
            Kind::ToDevicePinned => "to device, pinned",
            Kind::ToDevicePageable => "to device, pageable",
            Kind::Kernel => "kernel",
            Kind::OnDevice => "on device",
            Kind::Peer => "between devices",
            Kind::FromDevicePinned => "from device, pinned",
            Kind::FromDevicePageable => "from device, pageable",
            Kind::Drain => "drain (host)",
            Kind::EventWait => "event wait (host)",
            Kind::HardSync => "hard sync (host)",
        }
    }
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Counts and bytes; seconds of the host only.
    #[default]
    Counts,
    /// Spans too, so many at most; the rest is only counted.
    Timeline {
        /// The limit. A span of the device costs two events until it is read.
        spans_max: usize,
    },
}

/// The sum over one kind.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Total {
    /// How many.
    pub count: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Seconds of those that were timed.
    pub seconds: f64,
    /// How many were timed.
    pub timed: u64,
    /// Bytes of those that were timed.
    pub timed_bytes: u64,
}

/// One stretch of time, in seconds since the device was opened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// What happened.
    pub kind: Kind,
    /// When it began.
    pub start_seconds: f64,
    /// How long it took.
    pub seconds: f64,
    /// How many bytes it moved.
    pub bytes: u64,
}

/// The record of one device. Clones share it.
#[derive(Clone)]
pub struct Trace {
    shared: Arc<Shared>,
}

struct Shared {
    spans_max: usize,
    opened: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    totals: [Total; Kind::ALL.len()],
    spans: Vec<Span>,
    /// The device's zero.
    origin: Option<Event>,
    /// Host seconds at the device's zero.
    origin_seconds: f64,
    pending: Vec<Pending>,
}

/// A span of the device whose events have not been read.
struct Pending {
    kind: Kind,
    bytes: u64,
    begin: Event,
    end: Event,
}

impl Trace {
    pub(crate) fn new(detail: Detail) -> Self {
        Self {
            shared: Arc::new(Shared {
                spans_max: match detail {
                    Detail::Counts => 0,
                    Detail::Timeline { spans_max } => spans_max,
                },
                opened: Instant::now(),
                state: Mutex::default(),
            }),
        }
    }

    /// Ties the two clocks together; costs one hard synchronisation, and only if spans are kept.
    pub(crate) fn start(&self, context: &Arc<Context>) -> Result<()> {
        if self.shared.spans_max == 0 {
            return Ok(());
        }
        let stream = RawStream::new(context)?;
        let origin = Event::timed(context)?;
        origin.record(&stream)?;
        self.host(Kind::HardSync, 0, || stream.synchronize())?;
        let mut state = self.shared.state();
        state.origin_seconds = self.shared.opened.elapsed().as_secs_f64();
        state.origin = Some(origin);
        Ok(())
    }

    /// Does something on the host and takes its time; failures count too, since the time was spent.
    pub(crate) fn host<T>(&self, kind: Kind, bytes: u64, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        let seconds = start.elapsed().as_secs_f64();
        let mut state = self.shared.state();
        state.add(kind, bytes, Some(seconds));
        if state.has_room(self.shared.spans_max) {
            let start_seconds = start.duration_since(self.shared.opened).as_secs_f64();
            state.spans.push(Span {
                kind,
                start_seconds,
                seconds,
                bytes,
            });
        }
        done
    }

    /// Queues something on a stream, between two events if spans are kept.
    pub(crate) fn device<T>(
        &self,
        kind: Kind,
        bytes: u64,
        stream: &RawStream,
        queue: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let timed = self.shared.spans_max > 0 && self.shared.state().has_room(self.shared.spans_max);
        if !timed {
            let queued = queue()?;
            self.shared.state().add(kind, bytes, None);
            return Ok(queued);
        }
        let (begin, end) = (Event::timed(stream.context())?, Event::timed(stream.context())?);
        begin.record(stream)?;
        let queued = queue()?;
        end.record(stream)?;
        let mut state = self.shared.state();
        state.add(kind, bytes, None);
        state.pending.push(Pending {
            kind,
            bytes,
            begin,
            end,
        });
        Ok(queued)
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
    pub fn total(&self, kind: Kind) -> Total {
        self.shared.state().totals[kind as usize]
    }

    /// Hard synchronisations so far.
    pub fn hard_syncs(&self) -> u64 {
        self.total(Kind::HardSync).count
    }

    /// The spans so far, by start. Empty without [`Detail::Timeline`]; the device's appear after a hard synchronisation.
    pub fn spans(&self) -> Vec<Span> {
        let mut spans = self.shared.state().spans.clone();
        spans.sort_by(|a, b| a.start_seconds.total_cmp(&b.start_seconds));
        spans
    }

    /// A table: how many, bytes, seconds, rate.
    pub fn table(&self) -> String {
        let totals = self.shared.state().totals;
        render::table(Kind::ALL.iter().map(|&kind| (kind, totals[kind as usize])))
    }

    /// One line of text for each kind, `columns` characters wide: busy where it is not a dot.
    pub fn timeline_text(&self, columns: usize) -> String {
        render::text(&self.spans(), columns)
    }

    /// The same as an SVG.
    pub fn timeline_svg(&self) -> String {
        render::svg(&self.spans())
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table())
    }
}

impl Shared {
    /// A panic of another thread cannot leave the state half changed, so poison is no matter.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn has_room(&self, spans_max: usize) -> bool {
        self.spans.len() + self.pending.len() < spans_max
    }

    fn add(&mut self, kind: Kind, bytes: u64, seconds: Option<f64>) {
        let total = &mut self.totals[kind as usize];
        total.count += 1;
        total.bytes += bytes;
        if let Some(seconds) = seconds {
            total.seconds += seconds;
            total.timed += 1;
            total.timed_bytes += bytes;
        }
    }

    fn read_events(&mut self, origin: &Event) -> Result<()> {
        for pending in std::mem::take(&mut self.pending) {
            if !pending.end.is_done()? {
                self.pending.push(pending);
                continue;
            }
            let seconds = pending.end.seconds_since(&pending.begin)?;
            let start_seconds = self.origin_seconds + pending.begin.seconds_since(origin)?;
            let total = &mut self.totals[pending.kind as usize];
            total.seconds += seconds;
            total.timed += 1;
            total.timed_bytes += pending.bytes;
            self.spans.push(Span {
                kind: pending.kind,
                start_seconds,
                seconds,
                bytes: pending.bytes,
            });
        }
        Ok(())
    }
}
