//! The model: seconds of a collective over a [`Link`], for any number of ranks, without running it.
//!
//! In: bytes by rank, the piece. Out: seconds until the last rank is done, if all begin at once. The turns
//! are those of `schedule.rs`, and the times those of `link.rs`, so a run on simulated clocks takes as long
//! to the bit (without a switch, at which chance decides who comes first). Ranks compute nothing meanwhile,
//! and a sender never waits for room. Time: one step a message. Memory: 100 bytes a rank, 40 a message under
//! way.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use crate::envelope::ENVELOPE_BYTES;
use crate::link::{Link, Ports, Switch};
use crate::schedule::{Part, Seat, Turn};

impl Link {
    /// Seconds for one message with so many bytes between two ranks that do nothing else.
    pub fn message_seconds(&self, bytes: usize) -> f64 {
        let bytes = bytes + ENVELOPE_BYTES;
        let mut ends = [Ports::default(); 2];
        let left = ends[0].send(self, Some(&Switch::new()), 0.0, bytes);
        ends[1].receive(self, left, bytes)
    }

    /// Seconds of an all-to-all: `bytes[r][q]` go from r to q.
    pub fn all_to_all_seconds(&self, bytes: &[Vec<u64>], piece_bytes: usize) -> f64 {
        let size = bytes.len();
        let at = |from: usize, to: usize| bytes[from].get(to).copied().unwrap_or(0);
        let lengths: Vec<[Vec<u64>; 2]> = (0..size)
            .map(|rank| {
                let sent = (0..size).map(|to| at(rank, to)).collect();
                let received = (0..size).map(|from| at(from, rank)).collect();
                [sent, received]
            })
            .collect();
        let turns = |rank: usize| {
            let [sent, received] = &lengths[rank];
            Seat::new(rank, size).all_to_all(sent, received, piece_bytes.max(1))
        };
        self.seconds(size, turns)
    }

    /// Seconds of an all-to-all among `size` ranks in which each rank sends `bytes` to each.
    pub fn even_all_to_all_seconds(&self, size: usize, bytes: u64, piece_bytes: usize) -> f64 {
        let lengths = vec![bytes; size];
        let turns = |rank: usize| Seat::new(rank, size).all_to_all(&lengths, &lengths, piece_bytes.max(1));
        self.seconds(size, turns)
    }

    /// Seconds of a streamed gather: `bytes[r]` go from r to the root.
    pub fn gather_seconds(&self, root: usize, bytes: &[u64], piece_bytes: usize) -> f64 {
        let size = bytes.len();
        let turns = |rank: usize| Seat::new(rank, size).gather(root % size, bytes, piece_bytes.max(1));
        self.seconds(size, turns)
    }

    /// Seconds of a streamed scatter: `bytes[r]` go from the root to r.
    pub fn scatter_seconds(&self, root: usize, bytes: &[u64], piece_bytes: usize) -> f64 {
        let size = bytes.len();
        let turns = |rank: usize| Seat::new(rank, size).scatter(root % size, bytes, piece_bytes.max(1));
        self.seconds(size, turns)
    }

    /// Seconds of a broadcast of so many bytes from rank 0.
    pub fn broadcast_seconds(&self, size: usize, bytes: u64, piece_bytes: usize) -> f64 {
        self.seconds(size, |rank| {
            Seat::new(rank, size).broadcast(0, bytes, piece_bytes.max(1))
        })
    }

    /// Seconds of a reduction of so many bytes to rank 0, without the additions.
    pub fn reduce_seconds(&self, size: usize, bytes: u64, piece_bytes: usize) -> f64 {
        self.seconds(size, |rank| {
            Seat::new(rank, size).reduce(0, bytes, piece_bytes.max(1))
        })
    }

    /// Seconds of a barrier.
    pub fn barrier_seconds(&self, size: usize) -> f64 {
        self.seconds(size, |rank| Seat::new(rank, size).barrier())
    }

    fn seconds<T: Iterator<Item = Turn>>(&self, size: usize, turns: impl Fn(usize) -> T) -> f64 {
        let ranks = (0..size).map(|rank| Rank {
            turns: turns(rank),
            clock: 0.0,
            ports: Ports::default(),
            waits: None,
        });
        let mut simulation = Simulation {
            link: *self,
            switch: self.switch_bytes_per_second.map(|_| Switch::new()),
            ranks: ranks.collect(),
            under_way: BTreeMap::new(),
            ready: (0..size).map(|rank| Ready { at: 0.0, rank }).collect(),
        };
        simulation.run();
        let clocks = simulation.ranks.iter().map(|rank| rank.clock);
        clocks.fold(0.0, f64::max)
    }
}

struct Rank<T> {
    turns: T,
    clock: f64,
    ports: Ports,
    waits: Option<Wait>,
}

/// The half of an exchange that is not over.
#[derive(Clone, Copy)]
struct Wait {
    from: usize,
    bytes: usize,
}

/// A rank that can go on, and when.
#[derive(Clone, Copy)]
struct Ready {
    at: f64,
    rank: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    from: usize,
    to: usize,
}

struct Simulation<T> {
    link: Link,
    switch: Option<Switch>,
    ranks: Vec<Rank<T>>,
    /// When the messages of a pair left.
    under_way: BTreeMap<Pair, VecDeque<f64>>,
    /// The earliest first, so that messages pass the switch in the order of time.
    ready: BinaryHeap<Ready>,
}

impl<T: Iterator<Item = Turn>> Simulation<T> {
    fn run(&mut self) {
        while let Some(Ready { rank, .. }) = self.ready.pop() {
            if self.arrives(rank) && self.begins(rank) {
                let at = self.ranks[rank].clock;
                self.ready.push(Ready { at, rank });
            }
        }
    }

    /// Ends the exchange that the rank is in; whether the message was there.
    fn arrives(&mut self, rank: usize) -> bool {
        let Some(wait) = self.ranks[rank].waits else {
            return true;
        };
        let pair = Pair {
            from: wait.from,
            to: rank,
        };
        let Some(left) = self.under_way.get_mut(&pair).and_then(VecDeque::pop_front) else {
            return false;
        };
        let state = &mut self.ranks[rank];
        let arrived = state.ports.receive(&self.link, left, wait.bytes);
        state.clock = state.clock.max(arrived);
        state.waits = None;
        true
    }

    /// Begins the next exchange; whether there was one.
    fn begins(&mut self, rank: usize) -> bool {
        let state = &mut self.ranks[rank];
        let is_message = |part: &Part| part.peer != rank;
        let Some(turn) = state.turns.next() else {
            return false;
        };
        if let Some(part) = turn.send.filter(is_message) {
            let bytes = part.bytes + ENVELOPE_BYTES;
            let left = state
                .ports
                .send(&self.link, self.switch.as_ref(), state.clock, bytes);
            state.clock = left;
            let pair = Pair {
                from: rank,
                to: part.peer,
            };
            self.under_way.entry(pair).or_default().push_back(left);
            // A rank that waits for this message goes on.
            let peer = &self.ranks[part.peer];
            if peer.waits.is_some_and(|wait| wait.from == rank) {
                self.ready.push(Ready {
                    at: peer.clock.max(left),
                    rank: part.peer,
                });
            }
        }
        self.ranks[rank].waits = turn.receive.filter(is_message).map(|part| Wait {
            from: part.peer,
            bytes: part.bytes + ENVELOPE_BYTES,
        });
        true
    }
}

impl Ord for Ready {
    /// The heap gives the largest: the earliest, and of those the lowest rank.
    fn cmp(&self, other: &Self) -> Ordering {
        other
            .at
            .total_cmp(&self.at)
            .then_with(|| other.rank.cmp(&self.rank))
    }
}

impl PartialOrd for Ready {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ready {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ready {}
