//! A rank among others: settings, the handshake, phases, the first error, and one checked exchange.
//!
//! In: a [`Transport`] and [`Settings`], or nothing ([`Ranks::alone`], [`Ranks::dry`]). Out: a [`Ranks`],
//! whose collectives are in `collective.rs` and `stream.rs`; both make their exchanges by `call.rs`. Memory:
//! two buffers of at most 256 KiB and an envelope, made when a collective that brings none first needs them,
//! 16 bytes a rank, and what the transport holds ([`Ranks::held_bytes`]).

mod call;
mod collective;
mod handshake;
mod stream;

use std::fmt::{self, Display};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use call::{Call, Wire};
pub use collective::VALUE_BYTES_MAX;
pub use stream::{Asked, Sink, Source};

use crate::envelope::ENVELOPE_BYTES;
use crate::error::{RankError, TransportFault};
use crate::schedule::Seat;
use crate::traffic::{PhaseTraffic, Traffic};
use crate::transport::{Transport, bounded_reason};

/// The longest piece.
pub const PIECE_BYTES_MAX: usize = 16 << 20;

/// Pieces of collectives that bring no buffers.
const SMALL_PIECE_BYTES_MAX: usize = 256 << 10;

/// A longer timeout is taken as this one, which a clock can add.
const TIMEOUT_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// What all ranks of a job agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long one exchange may wait for its peers. Longer than the longest stage between two exchanges.
    pub timeout: Duration,
    /// The payload of the longest message, 1 byte to [`PIECE_BYTES_MAX`].
    pub piece_bytes: usize,
    /// What is proved, and the run: ranks with another job are refused. It keys the digests of messages.
    pub job: [u8; 32],
}

impl Default for Settings {
    /// Five minutes, 4 MiB, no job.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(300),
            piece_bytes: 4 << 20,
            job: [0; 32],
        }
    }
}

/// One rank among all. Clones share it. Calls come from one thread at a time: a second one is refused.
///
/// After the first error each call returns that error, and the other ranks are told of it.
#[derive(Clone)]
pub struct Ranks {
    inner: Arc<Inner>,
}

struct Inner {
    seat: Seat,
    settings: Settings,
    carrier: Carrier,
    wire: Mutex<Wire>,
    is_in_call: AtomicBool,
    traffic: Mutex<Traffic>,
    first_error: OnceLock<RankError>,
}

/// What moves the bytes.
enum Carrier {
    /// One rank: there is no message.
    Alone,
    /// Messages are counted, and none is sent.
    Dry,
    Transport(Arc<dyn Transport>),
}

/// A phase; it ends when this is dropped.
#[must_use = "the phase ends when this is dropped"]
pub struct Phase {
    ranks: Ranks,
    name: &'static str,
    before: &'static str,
    begun: Instant,
}

impl Ranks {
    /// One rank: every collective is the identity, and nothing is sent.
    pub fn alone() -> Self {
        Self::with_carrier(Seat::new(0, 1), Settings::default(), Carrier::Alone)
    }

    /// The ranks at the other ends of a transport. Each rank greets every other one first.
    ///
    /// # Errors
    ///
    /// [`RankError::Different`] if a peer has another version, number of ranks, piece or job;
    /// [`RankError::Invalid`] for a piece out of bounds; any other error of a message.
    pub fn new(transport: Arc<dyn Transport>, settings: Settings) -> Result<Self, RankError> {
        let seat = Seat::new(transport.rank(), transport.size());
        let piece_bytes = settings.piece_bytes;
        let ranks = Self::with_carrier(seat, settings, Carrier::Transport(transport));
        if !(1..=PIECE_BYTES_MAX).contains(&piece_bytes) {
            let what = format!("a piece has 1 to {PIECE_BYTES_MAX} bytes, and {piece_bytes} were asked for");
            return Err(ranks.fail(ranks.invalid(what)));
        }
        if seat.rank >= seat.size || u32::try_from(seat.size).is_err() {
            let what = format!("the transport says rank {} of {}", seat.rank, seat.size);
            return Err(ranks.fail(ranks.invalid(what)));
        }
        {
            let _phase = ranks.phase("handshake");
            ranks.handshake()?;
        }
        *lock(&ranks.inner.traffic) = Traffic::new();
        Ok(ranks)
    }

    /// A rank that sends nothing and counts everything, with pieces of the usual length: for plans.
    pub fn dry(rank: usize, size: usize) -> Self {
        Self::dry_with(rank, size, Settings::default())
    }

    /// The same with these settings, of which the piece counts. A rank out of bounds is taken as the last
    /// one.
    pub fn dry_with(rank: usize, size: usize, settings: Settings) -> Self {
        let size = size.max(1);
        let settings = Settings {
            piece_bytes: settings.piece_bytes.clamp(1, PIECE_BYTES_MAX),
            ..settings
        };
        Self::with_carrier(Seat::new(rank.min(size - 1), size), settings, Carrier::Dry)
    }

    /// A dry twin: the same rank, size and piece.
    #[must_use]
    pub fn rehearsal(&self) -> Self {
        Self::dry_with(self.rank(), self.size(), self.inner.settings.clone())
    }

    fn with_carrier(seat: Seat, settings: Settings, carrier: Carrier) -> Self {
        Self {
            inner: Arc::new(Inner {
                seat,
                settings,
                carrier,
                wire: Mutex::new(Wire::new(seat.size)),
                is_in_call: AtomicBool::new(false),
                traffic: Mutex::new(Traffic::new()),
                first_error: OnceLock::new(),
            }),
        }
    }

    /// Whether messages are counted only.
    pub fn is_dry(&self) -> bool {
        matches!(self.inner.carrier, Carrier::Dry)
    }

    /// This rank, below [`Self::size`].
    pub fn rank(&self) -> usize {
        self.inner.seat.rank
    }

    /// How many ranks there are.
    pub fn size(&self) -> usize {
        self.inner.seat.size
    }

    /// The payload of the longest message.
    pub fn piece_bytes(&self) -> usize {
        self.inner.settings.piece_bytes
    }

    /// The length of a caller's buffer: a piece and its envelope.
    pub fn buffer_bytes(&self) -> usize {
        self.piece_bytes() + ENVELOPE_BYTES
    }

    /// The most memory that is held beside callers' buffers: by the transport, and for small collectives. A
    /// dry run takes the transport to hold two messages, as MPI's does.
    pub fn held_bytes(&self) -> usize {
        let small = 2 * (self.small_piece_bytes() + ENVELOPE_BYTES);
        match &self.inner.carrier {
            Carrier::Alone => 0,
            Carrier::Dry if self.size() == 1 => 0,
            Carrier::Dry => small + 2 * self.buffer_bytes(),
            Carrier::Transport(transport) => small + transport.held_bytes(self.buffer_bytes()),
        }
    }

    /// Names the phase, until the guard is dropped: in errors, in envelopes and in [`Self::traffic`]. All
    /// ranks name their phases alike.
    pub fn phase(&self, name: &'static str) -> Phase {
        tracing::debug!(rank = self.rank(), phase = name, "phase begins");
        let before = lock(&self.inner.traffic).begin(name);
        Phase {
            ranks: self.clone(),
            name,
            before,
            begun: Instant::now(),
        }
    }

    /// What was sent and received so far, by phase.
    pub fn traffic(&self) -> Vec<PhaseTraffic> {
        lock(&self.inner.traffic).phases().to_vec()
    }

    /// Tells all other ranks that this one gives up. Later calls return [`RankError::Stopped`].
    pub fn give_up(&self, reason: &dyn Display) {
        let reason = reason.to_string();
        self.fail(RankError::Stopped {
            rank: self.rank(),
            phase: self.current_phase(),
            reason: bounded_reason(&reason).to_owned(),
        });
    }

    /// Looks whether a rank has given up, without waiting: for the middle of long work. While another thread
    /// is in a call, which looks by itself, it only tells what that found.
    ///
    /// # Errors
    ///
    /// The first error of this rank, or [`RankError::GaveUp`].
    pub fn check(&self) -> Result<(), RankError> {
        if let Some(error) = self.first_error() {
            return Err(error);
        }
        let (Carrier::Transport(transport), Ok(_wire)) = (&self.inner.carrier, self.inner.wire.try_lock())
        else {
            return Ok(());
        };
        let now = Instant::now();
        match transport.exchange(None, None, now) {
            Ok(_) => Ok(()),
            Err(fault) => Err(self.fail(self.transport_error(fault, self.current_phase(), now))),
        }
    }

    /// The first error, if there was one.
    pub fn first_error(&self) -> Option<RankError> {
        self.inner.first_error.get().cloned()
    }

    fn seat(&self) -> Seat {
        self.inner.seat
    }

    fn small_piece_bytes(&self) -> usize {
        self.piece_bytes().min(SMALL_PIECE_BYTES_MAX)
    }

    fn current_phase(&self) -> &'static str {
        lock(&self.inner.traffic).current()
    }

    fn invalid(&self, what: impl Into<String>) -> RankError {
        RankError::Invalid {
            rank: self.rank(),
            phase: self.current_phase(),
            what: what.into(),
        }
    }

    /// Keeps the first error, tells the other ranks of it, and returns it.
    fn fail(&self, error: RankError) -> RankError {
        let mut is_first = false;
        let first = self.inner.first_error.get_or_init(|| {
            is_first = true;
            error
        });
        if is_first && let Carrier::Transport(transport) = &self.inner.carrier {
            tracing::debug!(rank = self.rank(), error = %first, "a rank gives up");
            transport.give_up(bounded_reason(&first.reason()));
        }
        first.clone()
    }

    /// Begins a call: no error so far, and no other call under way.
    fn call(&self) -> Result<Call<'_>, RankError> {
        if let Some(error) = self.first_error() {
            return Err(error);
        }
        if self.inner.is_in_call.swap(true, Ordering::Acquire) {
            return Err(self.fail(self.invalid(
                "two calls of this rank at one time: the order of messages would depend on chance",
            )));
        }
        Ok(Call::new(self, lock(&self.inner.wire)))
    }

    fn transport_error(&self, fault: TransportFault, phase: &'static str, begun: Instant) -> RankError {
        let rank = self.rank();
        match fault {
            TransportFault::GaveUp {
                peer,
                reason,
                waits_for,
            } => RankError::GaveUp {
                rank,
                phase,
                peer,
                reason,
                waits_for: waits_for.filter(|waits_for| *waits_for != peer),
                waited: begun.elapsed(),
            },
            TransportFault::Gone { peer } => RankError::Gone { rank, phase, peer },
            TransportFault::Late { peer, direction } => RankError::Late {
                rank,
                phase,
                peer,
                direction,
                waited: begun.elapsed(),
                timeout: self.inner.settings.timeout,
            },
            TransportFault::TooLong {
                peer,
                bytes,
                limit_bytes,
            } => RankError::TooLong {
                rank,
                phase,
                peer,
                bytes,
                limit_bytes,
            },
            TransportFault::Failed { peer, what } => RankError::Transport {
                rank,
                phase,
                peer,
                what,
            },
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Phase {
    fn drop(&mut self) {
        lock(&self.ranks.inner.traffic).end(self.name, self.before, self.begun);
        tracing::debug!(
            rank = self.ranks.rank(),
            phase = self.name,
            seconds = self.begun.elapsed().as_secs_f64(),
            "phase ends"
        );
    }
}

impl fmt::Debug for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let carrier: &dyn fmt::Debug = match &self.inner.carrier {
            Carrier::Alone => &"alone",
            Carrier::Dry => &"dry",
            Carrier::Transport(transport) => transport,
        };
        f.debug_struct("Ranks")
            .field("rank", &self.rank())
            .field("size", &self.size())
            .field("carrier", carrier)
            .field("first_error", &self.inner.first_error.get())
            .finish()
    }
}

impl fmt::Debug for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Phase").field(&self.name).finish()
    }
}
