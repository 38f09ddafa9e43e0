//! Ranks as threads of one process: for tests, and for several devices of one machine.
//!
//! In: a number of ranks. Out: a [`Transport`] for each, to be moved to its thread. A pair of ranks has one
//! place for a message under way in each direction; the sender of the next one waits until the receiver has
//! taken it. Memory: at most one message for each ordered pair, `d * (d - 1) * (piece + 128)` bytes for `d`
//! ranks; an all-to-all has about `2 * d` messages under way.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::error::{Direction, TransportFault};
use crate::transport::{Transport, bounded_reason};

/// One of the ranks of [`one_process`]. When it is dropped, its peers find it gone.
#[derive(Debug)]
pub struct OneProcess {
    rank: usize,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// One for each rank: something changed that it may wait for.
    changed: Vec<Condvar>,
}

#[derive(Debug, Default)]
struct State {
    /// Messages under way, by sender and receiver.
    messages: BTreeMap<Pair, Vec<u8>>,
    /// Ranks that gave up, the first one first.
    given_up: Vec<GivenUp>,
    gone: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    from: usize,
    to: usize,
}

#[derive(Debug)]
struct GivenUp {
    rank: usize,
    reason: String,
}

/// So many ranks in this process.
pub fn one_process(size: usize) -> Vec<OneProcess> {
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            gone: vec![false; size],
            ..State::default()
        }),
        changed: (0..size).map(|_| Condvar::new()).collect(),
    });
    (0..size)
        .map(|rank| OneProcess {
            rank,
            shared: shared.clone(),
        })
        .collect()
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_all(&self) {
        self.changed.iter().for_each(Condvar::notify_all);
    }
}

impl State {
    /// Why a wait for these peers is in vain. A rank that gave up ends every wait, since it may be the one
    /// for which a peer waits.
    fn vain(&self, sends_to: Option<usize>, receives_from: Option<usize>) -> Option<TransportFault> {
        if let Some(given_up) = self.given_up.first() {
            return Some(TransportFault::GaveUp {
                peer: given_up.rank,
                reason: given_up.reason.clone(),
                waits_for: receives_from.or(sends_to),
            });
        }
        let mut peers = receives_from.into_iter().chain(sends_to);
        let gone = peers.find(|peer| self.gone[*peer])?;
        Some(TransportFault::Gone { peer: gone })
    }
}

impl Transport for OneProcess {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.changed.len()
    }

    fn exchange(
        &self,
        send: Option<(usize, &[u8])>,
        receive: Option<(usize, &mut [u8])>,
        deadline: Instant,
    ) -> Result<usize, TransportFault> {
        let size = self.size();
        let peers = [send.as_ref().map(|to| to.0), receive.as_ref().map(|from| from.0)];
        if let Some(peer) = peers
            .into_iter()
            .flatten()
            .find(|peer| *peer >= size || *peer == self.rank)
        {
            let what = format!("rank {} has no peer of rank {peer} among {size}", self.rank);
            return Err(TransportFault::Failed {
                peer: Some(peer),
                what,
            });
        }
        // Copied before the lock is taken, and after it is given back.
        let mut message = send.map(|(to, bytes)| (to, bytes.to_vec()));
        let mut awaited = receive.as_ref().map(|from| from.0);
        let mut came = None;
        let mut state = self.shared.state();
        loop {
            if let Some((to, bytes)) = message.take() {
                let pair = Pair { from: self.rank, to };
                match state.messages.entry(pair) {
                    Entry::Occupied(_) => message = Some((to, bytes)),
                    Entry::Vacant(place) => {
                        place.insert(bytes);
                        self.shared.changed[to].notify_all();
                    }
                }
            }
            if let Some(from) = awaited {
                let pair = Pair { from, to: self.rank };
                if let Some(bytes) = state.messages.remove(&pair) {
                    (came, awaited) = (Some(bytes), None);
                    self.shared.changed[from].notify_all();
                }
            }
            let sends_to = message.as_ref().map(|(to, _)| *to);
            let only_looks = peers == [None, None];
            if sends_to.is_none() && awaited.is_none() && !only_looks {
                break;
            }
            if let Some(fault) = state.vain(sends_to, awaited) {
                return Err(fault);
            }
            if only_looks {
                break;
            }
            let now = Instant::now();
            if now >= deadline {
                return Err(late(sends_to, awaited));
            }
            let changed = &self.shared.changed[self.rank];
            let waited = changed.wait_timeout(state, deadline - now);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        match (came, receive) {
            (Some(bytes), Some((from, buffer))) => {
                let limit_bytes = buffer.len() as u64;
                let Some(place) = buffer.get_mut(..bytes.len()) else {
                    return Err(TransportFault::TooLong {
                        peer: from,
                        bytes: bytes.len() as u64,
                        limit_bytes,
                    });
                };
                place.copy_from_slice(&bytes);
                Ok(bytes.len())
            }
            _ => Ok(0),
        }
    }

    fn give_up(&self, reason: &str) {
        self.shared.state().given_up.push(GivenUp {
            rank: self.rank,
            reason: bounded_reason(reason).to_owned(),
        });
        self.shared.wake_all();
    }

    /// A message for each peer.
    fn held_bytes(&self, message_bytes: usize) -> usize {
        message_bytes * (self.size() - 1)
    }
}

/// What comes is named before what goes: a peer that takes nothing often waits for the rank that sends
/// nothing.
fn late(sends_to: Option<usize>, receives_from: Option<usize>) -> TransportFault {
    let (peer, direction) = match (receives_from, sends_to) {
        (Some(peer), _) => (peer, Direction::Receiving),
        (None, peer) => (peer.unwrap_or_default(), Direction::Sending),
    };
    TransportFault::Late { peer, direction }
}

impl Drop for OneProcess {
    fn drop(&mut self) {
        self.shared.state().gone[self.rank] = true;
        self.shared.wake_all();
    }
}
