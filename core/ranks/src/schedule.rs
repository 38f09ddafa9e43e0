//! Who sends what to whom, and when: each collective as the list of turns of one rank.
//!
//! In: a seat (rank and size), lengths, the piece. Out: an iterator of [`Turn`]s. A run makes the exchanges
//! of its turns, a dry run counts them, and the model times those of all ranks; so the three cannot disagree.
//!
//! With `d` ranks and position `p = (rank - root) mod d`:
//!
//! | call | turns | bytes sent by a rank |
//! |---|---|---|
//! | all to all | for s = 0..d: to `rank + s`, from `rank - s`, piece by piece | those for the others |
//! | gather, scatter | piece by piece, the other ranks in turn | own part; the root's sum |
//! | broadcast, one piece | binomial tree | at most `ceil(log2 d)` times the bytes |
//! | broadcast, more pieces | a chain `p -> p + 1`: a piece goes on while the next one comes | the bytes |
//! | reduce | binomial tree, child by child, piece by piece | the bytes; the root none |
//! | barrier | dissemination: for k = 1, 2, 4, .. < d: to `rank + k`, from `rank - k` | empty messages |

/// A rank's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub rank: usize,
    pub size: usize,
}

/// One piece of what goes to a peer or comes from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub peer: usize,
    /// Where the piece begins in the bytes for, or from, that peer.
    pub offset: u64,
    pub bytes: usize,
    /// Bytes for, or from, that peer that follow the piece.
    pub remaining_bytes: u64,
}

/// One exchange. If both parts name the rank itself, its bytes go from source to sink without a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub send: Option<Part>,
    pub receive: Option<Part>,
}

/// A stream of bytes for, or from, a peer, cut into pieces.
#[derive(Clone, Copy)]
struct Pieces {
    peer: usize,
    bytes: u64,
    piece_bytes: usize,
}

impl Pieces {
    fn count(self) -> u64 {
        self.bytes.div_ceil(self.piece_bytes as u64)
    }

    fn get(self, index: u64) -> Option<Part> {
        let offset = index * self.piece_bytes as u64;
        let rest = self.bytes.checked_sub(offset).filter(|rest| *rest > 0)?;
        let bytes = rest.min(self.piece_bytes as u64);
        Some(Part {
            peer: self.peer,
            offset,
            bytes: bytes as usize,
            remaining_bytes: rest - bytes,
        })
    }
}

impl Seat {
    pub(crate) fn new(rank: usize, size: usize) -> Self {
        Self { rank, size }
    }

    fn after(self, steps: usize) -> usize {
        (self.rank + steps) % self.size
    }

    fn before(self, steps: usize) -> usize {
        (self.rank + self.size - steps) % self.size
    }

    /// Distance from the root.
    fn position(self, root: usize) -> usize {
        (self.rank + self.size - root) % self.size
    }

    /// The rank itself, from source to sink.
    fn own(self, bytes: u64, piece_bytes: usize) -> impl Iterator<Item = Turn> {
        let own = Pieces {
            peer: self.rank,
            bytes,
            piece_bytes,
        };
        (0..own.count()).map(move |index| Turn {
            send: own.get(index),
            receive: own.get(index),
        })
    }

    /// `send_bytes[q]` bytes go to each q, `receive_bytes[r]` come from each r.
    pub(crate) fn all_to_all<'a>(
        self,
        send_bytes: &'a [u64],
        receive_bytes: &'a [u64],
        piece_bytes: usize,
    ) -> impl Iterator<Item = Turn> + 'a {
        let others = (1..self.size).flat_map(move |step| {
            let (to, from) = (self.after(step), self.before(step));
            let sent = Pieces {
                peer: to,
                bytes: send_bytes[to],
                piece_bytes,
            };
            let received = Pieces {
                peer: from,
                bytes: receive_bytes[from],
                piece_bytes,
            };
            (0..sent.count().max(received.count())).map(move |index| Turn {
                send: sent.get(index),
                receive: received.get(index),
            })
        });
        self.own(send_bytes[self.rank], piece_bytes).chain(others)
    }

    /// `bytes[r]` come from each r to the root; other ranks need their own entry only.
    pub(crate) fn gather<'a>(
        self,
        root: usize,
        bytes: &'a [u64],
        piece_bytes: usize,
    ) -> impl Iterator<Item = Turn> + 'a {
        self.with_root(root, bytes, piece_bytes).map(move |part| Turn {
            send: Some(part).filter(|part| self.rank != root || part.peer == root),
            receive: Some(part).filter(|_| self.rank == root),
        })
    }

    /// `bytes[r]` go to each r from the root; other ranks need their own entry only.
    pub(crate) fn scatter<'a>(
        self,
        root: usize,
        bytes: &'a [u64],
        piece_bytes: usize,
    ) -> impl Iterator<Item = Turn> + 'a {
        self.with_root(root, bytes, piece_bytes).map(move |part| Turn {
            send: Some(part).filter(|_| self.rank == root),
            receive: Some(part).filter(|part| self.rank != root || part.peer == root),
        })
    }

    /// The pieces between the root and the others, as one rank sees them: the root its own first, then the
    /// first piece of each other rank, then the second. So no rank waits for the whole stream of another one.
    fn with_root<'a>(
        self,
        root: usize,
        bytes: &'a [u64],
        piece_bytes: usize,
    ) -> impl Iterator<Item = Part> + 'a {
        let is_root = self.rank == root;
        let pieces = move |step: usize| Pieces {
            peer: if is_root { self.after(step) } else { root },
            bytes: bytes[if is_root { self.after(step) } else { self.rank }],
            piece_bytes,
        };
        let own = is_root.then(|| (0..pieces(0).count()).filter_map(move |index| pieces(0).get(index)));
        let steps = if is_root { 1..self.size } else { 0..1 };
        let count = steps.clone().map(|step| pieces(step).count()).max().unwrap_or(0);
        let others = (0..count).flat_map(move |index| {
            let steps = steps.clone();
            steps.filter_map(move |step| pieces(step).get(index))
        });
        own.into_iter().flatten().chain(others)
    }

    /// The root's bytes to all: a tree for one piece, a chain for more.
    pub(crate) fn broadcast(
        self,
        root: usize,
        bytes: u64,
        piece_bytes: usize,
    ) -> Box<dyn Iterator<Item = Turn>> {
        let whole = Pieces {
            peer: root,
            bytes,
            piece_bytes,
        };
        match whole.count() {
            0 => Box::new(std::iter::empty()),
            1 => Box::new(self.broadcast_tree(root, whole)),
            _ => Box::new(self.broadcast_chain(root, whole)),
        }
    }

    fn broadcast_tree(self, root: usize, whole: Pieces) -> impl Iterator<Item = Turn> {
        let position = self.position(root);
        let parent = lowest_bit(position);
        let part = move |steps: usize, is_forward: bool| {
            let peer = if is_forward {
                self.after(steps)
            } else {
                self.before(steps)
            };
            Pieces { peer, ..whole }.get(0)
        };
        let received = (position > 0).then(|| Turn {
            send: None,
            receive: part(parent, false),
        });
        let below = if position == 0 {
            self.size.next_power_of_two()
        } else {
            parent
        };
        let children = masks_below(below)
            .rev()
            .filter(move |mask| position + mask < self.size);
        received.into_iter().chain(children.map(move |mask| Turn {
            send: part(mask, true),
            receive: None,
        }))
    }

    fn broadcast_chain(self, root: usize, whole: Pieces) -> impl Iterator<Item = Turn> {
        let position = self.position(root);
        let (is_first, is_last) = (position == 0, position + 1 == self.size);
        let (from, to) = (self.before(1 % self.size), self.after(1 % self.size));
        // The first rank has all pieces from the start: it need not wait a turn for the one that it sends.
        let lag = u64::from(!is_first);
        (0..whole.count() + lag)
            .map(move |index| Turn {
                send: index
                    .checked_sub(lag)
                    .filter(|_| !is_last)
                    .and_then(|index| Pieces { peer: to, ..whole }.get(index)),
                receive: Pieces { peer: from, ..whole }.get(index).filter(|_| !is_first),
            })
            .filter(|turn| turn.send.is_some() || turn.receive.is_some())
    }

    /// Bytes of all ranks, added up on their way to the root.
    pub(crate) fn reduce(self, root: usize, bytes: u64, piece_bytes: usize) -> impl Iterator<Item = Turn> {
        let position = self.position(root);
        let whole = Pieces {
            peer: root,
            bytes,
            piece_bytes,
        };
        let parent = lowest_bit(position);
        let below = if position == 0 {
            self.size.next_power_of_two()
        } else {
            parent
        };
        let children = masks_below(below).filter(move |mask| position + mask < self.size);
        let pieces = move |peer: usize| {
            (0..whole.count()).filter_map(move |index| Pieces { peer, ..whole }.get(index))
        };
        let sums = children.flat_map(move |mask| pieces(self.after(mask)));
        let own = (position > 0).then(|| pieces(self.before(parent)));
        let received = sums.map(|part| Turn {
            send: None,
            receive: Some(part),
        });
        let sent = own.into_iter().flatten().map(|part| Turn {
            send: Some(part),
            receive: None,
        });
        received.chain(sent)
    }

    /// An empty message from rank 0 to rank 1, and one back; other ranks do nothing.
    pub(crate) fn to_and_fro(self) -> impl Iterator<Item = Turn> {
        let (send, receive) = (
            Turn {
                send: Some(empty(1 - self.rank.min(1))),
                receive: None,
            },
            Turn {
                send: None,
                receive: Some(empty(1 - self.rank.min(1))),
            },
        );
        let turns = if self.rank == 0 {
            [send, receive]
        } else {
            [receive, send]
        };
        turns.into_iter().filter(move |_| self.rank < 2 && self.size > 1)
    }

    /// Empty messages after which every rank has heard of every other one.
    pub(crate) fn barrier(self) -> impl Iterator<Item = Turn> {
        masks_below(self.size.next_power_of_two()).map(move |mask| Turn {
            send: Some(empty(self.after(mask))),
            receive: Some(empty(self.before(mask))),
        })
    }
}

/// A message without a payload.
fn empty(peer: usize) -> Part {
    Part {
        peer,
        offset: 0,
        bytes: 0,
        remaining_bytes: 0,
    }
}

/// The lowest bit that is set; 0 has none.
fn lowest_bit(position: usize) -> usize {
    position & position.wrapping_neg()
}

/// 1, 2, 4, .. below a power of two.
fn masks_below(power: usize) -> impl DoubleEndedIterator<Item = usize> + Clone {
    (0..power.max(1).ilog2()).map(|bit| 1 << bit)
}
