//! The transport: one message out and one in, polled until the deadline.
//!
//! In: messages of [`Ranks`](spillproof_ranks::Ranks), at most 16 MiB and an envelope each. Out: the same at
//! the other end. A message that is due is looked for first (`MPI_Iprobe`), and received when it is there and
//! its length is known; so a message that never comes leaves nothing behind, and none is ever cut by MPI.
//! Between looks the thread spins, then yields, then sleeps for up to a millisecond.
//!
//! Memory: a copy of each of the two messages, `2 * (piece + 128)` bytes, which the caller's buffers do not
//! replace: MPI may be at work on a message when the deadline passes, and then the copy is left to it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use ferrompi::{Communicator, Source, Tag};
use spillproof_ranks::{Direction, Transport, TransportFault};

use crate::control::{GivenUp, Heard, Word, say};
use crate::request::Request;

/// The tag of messages.
const TAG: i32 = 1;

/// How long [`Transport::give_up`] waits for an exchange of another thread.
const PATIENCE: Duration = Duration::from_millis(100);

/// The ranks of `MPI_COMM_WORLD`.
pub(crate) struct MpiTransport {
    rank: usize,
    size: usize,
    state: Mutex<State>,
    /// What an exchange of another thread is to tell the peers.
    asked: Mutex<Option<String>>,
    has_asked: AtomicBool,
}

/// Under one lock, since MPI takes one call at a time.
struct State {
    world: Communicator,
    heard: Heard,
    /// Vectors of earlier messages.
    spare: [Vec<u8>; 2],
    /// A message was left to MPI before its end.
    has_leftovers: bool,
    gave_up: bool,
}

/// An exchange under way.
struct Exchange {
    to: Option<i32>,
    from: Option<i32>,
    sending: Option<Request>,
    receiving: Option<Request>,
    /// The length of the message that is being received.
    bytes: usize,
}

impl MpiTransport {
    pub(crate) fn new(world: Communicator) -> Self {
        let of = |number: i32| usize::try_from(number).unwrap_or_default();
        let (rank, size) = (of(world.rank()), of(world.size()));
        Self {
            rank,
            size,
            state: Mutex::new(State {
                world,
                heard: Heard::new(size),
                spare: [Vec::new(), Vec::new()],
                has_leftovers: false,
                gave_up: false,
            }),
            asked: Mutex::new(None),
            has_asked: AtomicBool::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why MPI cannot be ended in order, if there is a reason.
    pub(crate) fn unfinished(&self) -> Option<String> {
        let mut state = self.state();
        // A word that comes too late for this look makes MPI_Finalize no worse.
        let _ = state.listen();
        if let Some(given_up) = &state.heard.given_up {
            return Some(format!("rank {} gave up: {}", given_up.peer, given_up.reason));
        }
        if state.gave_up {
            return Some("this rank gave up".to_owned());
        }
        let leftovers = "a message is still under way".to_owned();
        state.has_leftovers.then_some(leftovers)
    }

    /// Says farewell, and waits until all peers have, or for so long. Ranks that have not.
    pub(crate) fn part(&self, grace: Duration) -> Vec<usize> {
        let deadline = Instant::now() + grace;
        say(&self.state().world, &Word::Farewell);
        let mut pause = Pause::new();
        loop {
            let mut state = self.state();
            let failed = state.listen().is_err();
            let silent = |peer: &usize| *peer != self.rank && !state.heard.farewells[*peer];
            let missing: Vec<usize> = (0..self.size).filter(silent).collect();
            drop(state);
            if missing.is_empty() || failed || Instant::now() >= deadline {
                return missing;
            }
            pause.take(false);
        }
    }

    /// Tells the peers that this rank gives up, unless it has, or a peer has.
    pub(crate) fn give_up_once(&self, reason: &str) {
        let told = self.soon(|state| {
            let _ = state.listen();
            if !state.gave_up && state.heard.given_up.is_none() {
                state.give_up(reason);
            }
        });
        if told.is_none() {
            self.ask(reason);
        }
    }

    /// Does this under the lock, unless another thread keeps it too long.
    fn soon<T>(&self, f: impl FnOnce(&mut State) -> T) -> Option<T> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.state.try_lock() {
                Ok(mut state) => return Some(f(&mut state)),
                Err(TryLockError::Poisoned(poisoned)) => return Some(f(&mut poisoned.into_inner())),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return None,
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
    }

    /// Leaves it to the thread that is in an exchange, which looks here.
    fn ask(&self, reason: &str) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_owned());
        self.has_asked.store(true, Relaxed);
    }

    /// Ends all ranks.
    pub(crate) fn abort(&self, status: i32) -> ! {
        self.state().world.abort(status)
    }

    /// A reason that another thread left here, since this one has the lock.
    fn asked(&self) -> Option<String> {
        if !self.has_asked.load(Relaxed) {
            return None;
        }
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Polls both halves until they are over. The vector with the message that came.
    fn run(
        &self,
        state: &mut State,
        exchange: &mut Exchange,
        limit_bytes: usize,
        deadline: Instant,
    ) -> Result<Option<Vec<u8>>, TransportFault> {
        let mut pause = Pause::new();
        let mut came = None;
        let only_looks = exchange.to.is_none() && exchange.from.is_none();
        loop {
            let mut has_moved = false;
            if let Some(request) = &mut exchange.sending
                && let Some(bytes) = request
                    .test()
                    .map_err(|error| failed(exchange.to, "send", &error))?
            {
                state.spare[0] = bytes;
                (exchange.sending, exchange.to) = (None, None);
                has_moved = true;
            }
            if let Some(from) = exchange.from {
                if exchange.receiving.is_none() && state.receives(exchange, from, limit_bytes)? {
                    has_moved = true;
                }
                if let Some(request) = &mut exchange.receiving
                    && let Some(bytes) = request
                        .test()
                        .map_err(|error| failed(Some(from), "receive", &error))?
                {
                    came = Some(bytes);
                    (exchange.receiving, exchange.from) = (None, None);
                    has_moved = true;
                }
            }
            // Messages that have come and gone are good, whatever others say.
            let is_over = exchange.to.is_none() && exchange.from.is_none();
            if is_over && !only_looks {
                return Ok(came);
            }
            state.listen()?;
            if let Some(GivenUp { peer, reason }) = state.heard.given_up.clone() {
                return Err(TransportFault::GaveUp {
                    peer,
                    reason,
                    waits_for: exchange.waits_for(),
                });
            }
            if let Some(reason) = self.asked() {
                state.give_up(&reason);
                return Err(TransportFault::GaveUp {
                    peer: self.rank,
                    reason,
                    waits_for: exchange.waits_for(),
                });
            }
            if is_over {
                return Ok(None);
            }
            if has_moved {
                pause = Pause::new();
                continue;
            }
            if Instant::now() >= deadline {
                return Err(exchange.late());
            }
            pause.take(exchange.receiving.is_some());
        }
    }
}

impl Transport for MpiTransport {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(
        &self,
        send: Option<(usize, &[u8])>,
        receive: Option<(usize, &mut [u8])>,
        deadline: Instant,
    ) -> Result<usize, TransportFault> {
        let mut state = self.state();
        let state = &mut *state;
        let mut exchange = Exchange {
            to: None,
            from: None,
            sending: None,
            receiving: None,
            bytes: 0,
        };
        if let Some((to, bytes)) = send {
            let to = i32::try_from(to).unwrap_or(-1);
            let mut message = std::mem::take(&mut state.spare[0]);
            message.clear();
            message.extend_from_slice(bytes);
            let request = Request::send(&state.world, message, to, TAG);
            exchange.sending = Some(request.map_err(|error| failed(Some(to), "send", &error))?);
            exchange.to = Some(to);
        }
        exchange.from = receive
            .as_ref()
            .map(|(from, _)| i32::try_from(*from).unwrap_or(-1));
        let limit_bytes = receive.as_ref().map_or(0, |(_, buffer)| buffer.len());
        let result = self.run(state, &mut exchange, limit_bytes, deadline);
        // Requests that are not over are left to MPI when they are dropped.
        state.has_leftovers |= exchange.sending.is_some() || exchange.receiving.is_some();
        let message = result?;
        match (message, receive) {
            (Some(message), Some((_, buffer))) => {
                buffer[..exchange.bytes].copy_from_slice(&message[..exchange.bytes]);
                state.spare[1] = message;
                Ok(exchange.bytes)
            }
            _ => Ok(0),
        }
    }

    fn give_up(&self, reason: &str) {
        if self.soon(|state| state.give_up(reason)).is_none() {
            self.ask(reason);
        }
    }

    fn held_bytes(&self, message_bytes: usize) -> usize {
        2 * message_bytes
    }
}

impl State {
    fn listen(&mut self) -> Result<(), TransportFault> {
        let listened = self.heard.listen(&self.world);
        listened.map_err(|error| failed(None, "listen to other ranks", &error))
    }

    fn give_up(&mut self, reason: &str) {
        self.gave_up = true;
        self.has_leftovers |= !say(&self.world, &Word::GiveUp(reason));
    }

    /// Begins to receive the message that is due, if it is there.
    fn receives(
        &mut self,
        exchange: &mut Exchange,
        from: i32,
        limit_bytes: usize,
    ) -> Result<bool, TransportFault> {
        let probed = self.world.iprobe::<u8>(Source::Rank(from), Tag::Value(TAG));
        let Some(status) = probed.map_err(|error| failed(Some(from), "look for a message", &error))? else {
            return Ok(false);
        };
        let bytes = status.count.unwrap_or(usize::MAX);
        if bytes > limit_bytes {
            return Err(TransportFault::TooLong {
                peer: usize::try_from(from).unwrap_or_default(),
                bytes: bytes as u64,
                limit_bytes: limit_bytes as u64,
            });
        }
        let mut room = std::mem::take(&mut self.spare[1]);
        if room.len() < bytes {
            room.resize(bytes, 0);
        }
        let request = Request::receive(&self.world, room, from, TAG);
        exchange.receiving = Some(request.map_err(|error| failed(Some(from), "receive", &error))?);
        exchange.bytes = bytes;
        Ok(true)
    }
}

impl Exchange {
    fn waits_for(&self) -> Option<usize> {
        let peer = self.from.or(self.to)?;
        usize::try_from(peer).ok()
    }

    /// What comes is named before what goes, as in `one_process`.
    fn late(&self) -> TransportFault {
        let of = |rank: i32| usize::try_from(rank).unwrap_or_default();
        match (self.from, self.to) {
            (Some(from), _) => TransportFault::Late {
                peer: of(from),
                direction: Direction::Receiving,
            },
            (None, to) => TransportFault::Late {
                peer: of(to.unwrap_or_default()),
                direction: Direction::Sending,
            },
        }
    }
}

fn failed(peer: Option<i32>, operation: &str, error: &ferrompi::Error) -> TransportFault {
    TransportFault::Failed {
        peer: peer.and_then(|peer| usize::try_from(peer).ok()),
        what: format!("MPI cannot {operation}: {error}"),
    }
}

/// How a thread waits between two looks.
struct Pause {
    begun: Instant,
}

impl Pause {
    const SPIN: Duration = Duration::from_micros(20);
    const YIELD: Duration = Duration::from_millis(2);
    /// MPI moves a message on inside of looks: while one is coming, looks are close together for longer.
    const YIELD_WHILE_COMING: Duration = Duration::from_secs(1);
    const SLEEP_MAX: Duration = Duration::from_millis(1);

    fn new() -> Self {
        Self {
            begun: Instant::now(),
        }
    }

    fn take(&mut self, is_coming: bool) {
        let waited = self.begun.elapsed();
        let yields = if is_coming {
            Self::YIELD_WHILE_COMING
        } else {
            Self::YIELD
        };
        if waited < Self::SPIN {
            std::hint::spin_loop();
        } else if waited < yields {
            std::thread::yield_now();
        } else {
            std::thread::sleep((waited / 20).min(Self::SLEEP_MAX));
        }
    }
}

impl fmt::Debug for MpiTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MpiTransport")
            .field("rank", &self.rank)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}
