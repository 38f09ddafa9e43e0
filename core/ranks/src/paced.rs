//! A transport that is slowed down to a link: to compare the model with runs on one machine.
//!
//! In: a [`Transport`], a [`Link`], a [`Clock`], and a [`Switch`] if all ranks share one. Out: the same
//! messages, each with 8 bytes behind it that say when it left; an exchange ends when its message has left
//! and the other one has arrived. With [`SystemClock`] the thread sleeps so long; with a [`SimulatedClock`]
//! for each rank no thread sleeps, and the clocks say what a run would have taken. Memory: a copy of each of
//! the two messages.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::error::{Direction, TransportFault};
use crate::link::{Link, Ports, Switch};
use crate::transport::Transport;

/// What a rank takes for the time.
pub trait Clock: Send + Sync + Debug {
    /// Seconds since a start that all ranks share.
    fn now(&self) -> f64;

    /// Returns at `seconds`, or at the deadline; whether the time had come.
    fn wait_until(&self, seconds: f64, deadline: Instant) -> bool;
}

/// Seconds since the machine started: one clock for all of its processes, which no one sets. Threads sleep.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> f64 {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
    }

    fn wait_until(&self, seconds: f64, deadline: Instant) -> bool {
        let left = Duration::try_from_secs_f64(seconds - self.now()).unwrap_or_default();
        let allowed = deadline.saturating_duration_since(Instant::now());
        std::thread::sleep(left.min(allowed));
        left <= allowed
    }
}

/// A rank's own time, which only its exchanges, and [`Self::work`], move on.
#[derive(Debug, Default)]
pub struct SimulatedClock {
    seconds: Mutex<f64>,
}

impl SimulatedClock {
    /// A clock at 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// The rank works for so many seconds.
    pub fn work(&self, seconds: f64) {
        *self.lock() += seconds;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, f64> {
        self.seconds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> f64 {
        *self.lock()
    }

    fn wait_until(&self, seconds: f64, _deadline: Instant) -> bool {
        let mut now = self.lock();
        *now = now.max(seconds);
        true
    }
}

/// A transport at the pace of a link.
#[derive(Debug)]
pub struct Paced<T> {
    inner: T,
    link: Link,
    clock: Arc<dyn Clock>,
    switch: Option<Arc<Switch>>,
    ports: Mutex<Ports>,
}

/// Bytes behind a message: when it left, as the bits of an f64.
const STAMP_BYTES: usize = 8;

impl<T: Transport> Paced<T> {
    /// `inner` at the pace of `link`, on the machine's clock and without a switch.
    pub fn new(inner: T, link: Link) -> Self {
        Self::with(inner, link, Arc::new(SystemClock), None)
    }

    /// The same on another clock, through a switch that ranks of this process share.
    pub fn with(inner: T, link: Link, clock: Arc<dyn Clock>, switch: Option<Arc<Switch>>) -> Self {
        Self {
            inner,
            link,
            clock,
            switch,
            ports: Mutex::default(),
        }
    }

    fn ports(&self) -> std::sync::MutexGuard<'_, Ports> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Transport> Transport for Paced<T> {
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
        let mut until = self.clock.now();
        let stamped = send.map(|(to, bytes)| {
            let left = self
                .ports()
                .send(&self.link, self.switch.as_deref(), until, bytes.len());
            until = left;
            let mut message = Vec::with_capacity(bytes.len() + STAMP_BYTES);
            message.extend_from_slice(bytes);
            message.extend_from_slice(&left.to_le_bytes());
            (to, message)
        });
        let sent = stamped.as_ref().map(|(to, message)| (*to, &message[..]));
        let Some((from, buffer)) = receive else {
            self.inner.exchange(sent, None, deadline)?;
            return match sent {
                Some((to, _)) if !self.clock.wait_until(until, deadline) => Err(TransportFault::Late {
                    peer: to,
                    direction: Direction::Sending,
                }),
                _ => Ok(0),
            };
        };
        let mut message = vec![0; buffer.len() + STAMP_BYTES];
        let came = self.inner.exchange(sent, Some((from, &mut message)), deadline)?;
        let message = &message[..came];
        let (bytes, stamp) = message
            .split_last_chunk::<STAMP_BYTES>()
            .unwrap_or((message, &[0; 8]));
        let arrived = self
            .ports()
            .receive(&self.link, f64::from_le_bytes(*stamp), bytes.len());
        let Some(place) = buffer.get_mut(..bytes.len()) else {
            return Err(TransportFault::TooLong {
                peer: from,
                bytes: bytes.len() as u64,
                limit_bytes: buffer.len() as u64,
            });
        };
        place.copy_from_slice(bytes);
        if !self.clock.wait_until(until.max(arrived), deadline) {
            return Err(TransportFault::Late {
                peer: from,
                direction: Direction::Receiving,
            });
        }
        Ok(bytes.len())
    }

    fn give_up(&self, reason: &str) {
        self.inner.give_up(reason);
    }

    fn held_bytes(&self, message_bytes: usize) -> usize {
        2 * (message_bytes + STAMP_BYTES) + self.inner.held_bytes(message_bytes + STAMP_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_waits_no_longer_than_the_deadline() {
        let begun = Instant::now();
        let now = SystemClock.now();
        assert!(SystemClock.wait_until(now + 1e-3, begun + Duration::from_secs(60)));
        assert!(SystemClock.now() >= now + 1e-3);
        assert!(!SystemClock.wait_until(now + 1e6, Instant::now() + Duration::from_millis(1)));
    }
}
