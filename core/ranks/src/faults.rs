//! Faults for tests: the i-th message of a rank is lost, late, doubled or changed, or the rank stops at its
//! i-th call.
//!
//! [`Faulty`] stands above any [`Transport`], so all of them meet the same faults. Messages that this rank
//! sends, and calls of [`Transport::exchange`], are counted from 0, those of the handshake included. A test
//! runs once without faults, asks the [`FaultPlan`] how many there were, and then tries each.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Direction, TransportFault};
use crate::transport::Transport;

/// How long a doubled message waits for its receiver.
const DOUBLE_WAIT: Duration = Duration::from_millis(20);

/// What happens to a message, or to the rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The message is not sent, and counts as sent.
    Lost,
    /// The call waits so long before it begins, or until its deadline.
    Late(Duration),
    /// The message is sent twice.
    Doubled,
    /// The message changes places with the next one to the same rank.
    Swapped,
    /// The message ends after so many bytes, or one byte early if it is not longer.
    Cut(usize),
    /// One bit of the message is changed: this one, modulo the length in bits.
    Flipped(usize),
    /// From this call on the rank does nothing: each call waits for its deadline, and no peer is told.
    Stops,
    /// The rank gives up at this call.
    GivesUp,
}

impl Fault {
    /// Whether calls are counted for it, and not messages.
    fn is_of_calls(self) -> bool {
        matches!(self, Self::Stops | Self::GivesUp)
    }
}

/// Which message, or which call, of one rank meets which fault. Clones share the plan and its counters.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    fault: Option<Planned>,
    messages: AtomicU64,
    calls: AtomicU64,
    was_met: AtomicBool,
    has_stopped: AtomicBool,
    /// A message that waits for the next one to the same rank.
    held: Mutex<Option<Held>>,
}

#[derive(Debug)]
struct Planned {
    index: u64,
    fault: Fault,
}

#[derive(Debug)]
struct Held {
    to: usize,
    bytes: Vec<u8>,
}

impl FaultPlan {
    /// No fault; only counts.
    pub fn none() -> Self {
        Self::default()
    }

    /// Message or call `index` meets `fault`.
    pub fn at(index: u64, fault: Fault) -> Self {
        Self {
            shared: Arc::new(Shared {
                fault: Some(Planned { index, fault }),
                ..Shared::default()
            }),
        }
    }

    /// How many messages this rank has sent.
    pub fn messages(&self) -> u64 {
        self.shared.messages.load(Relaxed)
    }

    /// How many exchanges this rank has begun.
    pub fn calls(&self) -> u64 {
        self.shared.calls.load(Relaxed)
    }

    /// Whether the fault has happened.
    pub fn was_met(&self) -> bool {
        self.shared.was_met.load(Relaxed)
    }

    /// Counts a call; the fault that it meets.
    fn next(&self, sends: bool) -> Option<Fault> {
        let call = self.shared.calls.fetch_add(1, Relaxed);
        let message = sends.then(|| self.shared.messages.fetch_add(1, Relaxed));
        let planned = self.shared.fault.as_ref()?;
        let index = if planned.fault.is_of_calls() {
            Some(call)
        } else {
            message
        };
        if index != Some(planned.index) {
            return None;
        }
        self.shared.was_met.store(true, Relaxed);
        Some(planned.fault)
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Option<Held>> {
        self.shared.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The message that was held back for this rank.
    fn take_held(&self, to: usize) -> Option<Vec<u8>> {
        let mut held = self.held();
        if held.as_ref().is_some_and(|held| held.to == to) {
            held.take().map(|held| held.bytes)
        } else {
            None
        }
    }
}

/// A transport whose messages meet the faults of a plan.
#[derive(Debug)]
pub struct Faulty<T> {
    inner: T,
    plan: FaultPlan,
}

impl<T: Transport> Faulty<T> {
    /// `inner` with faults.
    pub fn new(inner: T, plan: FaultPlan) -> Self {
        Self { inner, plan }
    }

    /// Does nothing until the deadline, like a process that hangs.
    fn hang(&self, peer: usize, direction: Direction, deadline: Instant) -> TransportFault {
        std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
        TransportFault::Late { peer, direction }
    }
}

impl<T: Transport> Transport for Faulty<T> {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn exchange(
        &self,
        send: Option<(usize, &[u8])>,
        receive: Option<(usize, &mut [u8])>,
        deadline: Instant,
    ) -> Result<usize, TransportFault> {
        let fault = self.plan.next(send.is_some());
        let (peer, direction) = match (&send, &receive) {
            (_, Some((from, _))) => (*from, Direction::Receiving),
            (Some((to, _)), None) => (*to, Direction::Sending),
            (None, None) => (self.inner.rank(), Direction::Receiving),
        };
        if fault == Some(Fault::Stops) {
            self.plan.shared.has_stopped.store(true, Relaxed);
        }
        if self.plan.shared.has_stopped.load(Relaxed) {
            return Err(self.hang(peer, direction, deadline));
        }
        match fault {
            Some(Fault::GivesUp) => {
                let reason = "a fault of a test".to_owned();
                self.inner.give_up(&reason);
                return Err(TransportFault::Failed {
                    peer: None,
                    what: reason,
                });
            }
            Some(Fault::Late(wait)) => {
                let rest = deadline.saturating_duration_since(Instant::now());
                if wait >= rest {
                    return Err(self.hang(peer, direction, deadline));
                }
                std::thread::sleep(wait);
            }
            _ => {}
        }
        let Some((to, bytes)) = send else {
            return self.inner.exchange(None, receive, deadline);
        };
        if let Some(held) = self.plan.take_held(to) {
            let came = self.inner.exchange(Some((to, bytes)), receive, deadline)?;
            self.inner.exchange(Some((to, &held)), None, deadline)?;
            return Ok(came);
        }
        match fault {
            Some(Fault::Lost) => self.inner.exchange(None, receive, deadline),
            Some(Fault::Swapped) => {
                *self.plan.held() = Some(Held {
                    to,
                    bytes: bytes.to_vec(),
                });
                self.inner.exchange(None, receive, deadline)
            }
            Some(Fault::Doubled) => {
                let came = self.inner.exchange(Some((to, bytes)), receive, deadline)?;
                // No receiver may want it: then it stays where it is.
                let soon = deadline.min(Instant::now() + DOUBLE_WAIT);
                let _ = self.inner.exchange(Some((to, bytes)), None, soon);
                Ok(came)
            }
            Some(Fault::Cut(length)) => {
                let length = length.min(bytes.len().saturating_sub(1));
                self.inner
                    .exchange(Some((to, &bytes[..length])), receive, deadline)
            }
            Some(Fault::Flipped(bit)) if !bytes.is_empty() => {
                let mut flipped = bytes.to_vec();
                let bit = bit % (flipped.len() * 8);
                flipped[bit / 8] ^= 1 << (bit % 8);
                self.inner.exchange(Some((to, &flipped)), receive, deadline)
            }
            _ => self.inner.exchange(Some((to, bytes)), receive, deadline),
        }
    }

    fn give_up(&self, reason: &str) {
        if !self.plan.shared.has_stopped.load(Relaxed) {
            self.inner.give_up(reason);
        }
    }

    fn held_bytes(&self, message_bytes: usize) -> usize {
        self.inner.held_bytes(message_bytes)
    }
}
