//! A call under way: turns in, checked exchanges out.
//!
//! In: [`Turn`]s and an [`Ends`] that fills pieces and takes them, or a value. Out: messages through the
//! transport, each sealed and opened here, and a line in the traffic. A dry run ends here.

use std::fmt::Display;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Carrier, Ranks, Settings, TIMEOUT_MAX, lock};
use crate::envelope::{ENVELOPE_BYTES, Envelope, Kind, Opened};
use crate::error::RankError;
use crate::schedule::{Part, Turn};

/// What belongs to the call that is under way.
pub(super) struct Wire {
    /// Messages sent to each rank.
    sent: Vec<u64>,
    /// Messages received from each rank.
    received: Vec<u64>,
    buffers: [Vec<u8>; 2],
}

/// A message to send: room for the envelope, then the payload.
pub(super) struct Outgoing<'a> {
    pub peer: usize,
    pub message: &'a mut [u8],
    pub remaining_bytes: u64,
}

/// Room for a message.
pub(super) struct Incoming<'a> {
    pub peer: usize,
    pub buffer: &'a mut [u8],
}

/// Where the bytes of a call come from and go to.
pub(super) trait Ends<E> {
    /// Fills a piece for `to`, which begins at `offset` of the bytes for that rank.
    fn fill(&mut self, to: usize, offset: u64, piece: &mut [u8]) -> Result<(), E>;
    /// Takes a piece from `from`, which begins at `offset` of the bytes from that rank.
    fn take(&mut self, from: usize, offset: u64, piece: &[u8]) -> Result<(), E>;
}

/// A call under way: it has the sequence numbers and the buffers of small collectives.
pub(super) struct Call<'a> {
    ranks: &'a Ranks,
    /// The one in which it began: another thread may begin its own meanwhile.
    phase: &'static str,
    wire: MutexGuard<'a, Wire>,
}

impl Wire {
    pub(super) fn new(size: usize) -> Self {
        Self {
            sent: vec![0; size],
            received: vec![0; size],
            buffers: [Vec::new(), Vec::new()],
        }
    }
}

impl<'a> Call<'a> {
    pub(super) fn new(ranks: &'a Ranks, wire: MutexGuard<'a, Wire>) -> Self {
        Self {
            ranks,
            phase: ranks.current_phase(),
            wire,
        }
    }

    /// Makes the exchanges of all turns, in buffers of a piece and an envelope each. A dry run counts them
    /// and asks neither end.
    pub(super) fn run<E: From<RankError> + Display>(
        &mut self,
        kind: Kind,
        turns: impl Iterator<Item = Turn>,
        buffers: [&mut [u8]; 2],
        ends: &mut dyn Ends<E>,
    ) -> Result<(), E> {
        let ranks = self.ranks;
        let [out, into] = buffers;
        let own = ranks.rank();
        for turn in turns {
            if let Carrier::Dry = ranks.inner.carrier {
                let bytes = |part: Option<Part>| part.filter(|part| part.peer != own).map(|part| part.bytes);
                self.count(bytes(turn.send), bytes(turn.receive), Duration::ZERO);
                continue;
            }
            if let Some(part) = turn.send {
                let piece = &mut out[ENVELOPE_BYTES..ENVELOPE_BYTES + part.bytes];
                ends.fill(part.peer, part.offset, piece)
                    .map_err(|e| self.ranks.end_failed(e))?;
                if part.peer == own {
                    ends.take(own, part.offset, piece)
                        .map_err(|e| self.ranks.end_failed(e))?;
                    continue;
                }
            }
            let sent = turn.send.map(|part| Outgoing {
                peer: part.peer,
                message: &mut out[..ENVELOPE_BYTES + part.bytes],
                remaining_bytes: part.remaining_bytes,
            });
            let received = turn.receive.map(|part| Incoming {
                peer: part.peer,
                buffer: &mut *into,
            });
            let opened = self.exchange(kind, sent, received)?;
            if let (Some(part), Some(opened)) = (turn.receive, opened) {
                self.check_length(part, opened)?;
                let piece = &into[ENVELOPE_BYTES..ENVELOPE_BYTES + part.bytes];
                ends.take(part.peer, part.offset, piece)
                    .map_err(|e| self.ranks.end_failed(e))?;
            }
        }
        Ok(())
    }

    /// The same in buffers of this rank, for pieces of [`Ranks::small_piece_bytes`].
    pub(super) fn run_small<E: From<RankError> + Display>(
        &mut self,
        kind: Kind,
        turns: impl Iterator<Item = Turn>,
        ends: &mut dyn Ends<E>,
    ) -> Result<(), E> {
        self.with_buffers(|call, [out, into]| call.run(kind, turns, [out, into], ends))
    }

    /// Lends the buffers of small collectives, which are always of one length, so that a message of another
    /// call has room and is named.
    fn with_buffers<T>(&mut self, f: impl FnOnce(&mut Self, [&mut [u8]; 2]) -> T) -> T {
        let [mut out, mut into] = std::mem::take(&mut self.wire.buffers);
        let room = ENVELOPE_BYTES + self.ranks.small_piece_bytes();
        for buffer in [&mut out, &mut into] {
            if buffer.len() < room && !self.ranks.is_dry() {
                buffer.resize(room, 0);
            }
        }
        let result = f(self, [&mut out, &mut into]);
        self.wire.buffers = [out, into];
        result
    }

    /// Sends a value whose length the receiver does not know.
    pub(super) fn send_value(&mut self, kind: Kind, peer: usize, value: &[u8]) -> Result<(), RankError> {
        let piece_bytes = self.ranks.small_piece_bytes();
        // An empty value is one empty message.
        let empty: &[u8] = &[];
        let pieces = value.chunks(piece_bytes).chain(value.is_empty().then_some(empty));
        self.with_buffers(|call, [out, _]| {
            let mut remaining = value.len();
            for piece in pieces {
                remaining -= piece.len();
                if call.ranks.is_dry() {
                    call.count(Some(piece.len()), None, Duration::ZERO);
                    continue;
                }
                let message = &mut out[..ENVELOPE_BYTES + piece.len()];
                message[ENVELOPE_BYTES..].copy_from_slice(piece);
                let sent = Outgoing {
                    peer,
                    message,
                    remaining_bytes: remaining as u64,
                };
                call.exchange(kind, Some(sent), None)?;
            }
            Ok(())
        })
    }

    /// Receives such a value. A dry run counts one of `dry_bytes`, and returns that many zeros.
    pub(super) fn receive_value(
        &mut self,
        kind: Kind,
        peer: usize,
        limit_bytes: usize,
        dry_bytes: usize,
    ) -> Result<Vec<u8>, RankError> {
        let ranks = self.ranks;
        if ranks.is_dry() {
            let piece_bytes = ranks.small_piece_bytes();
            let mut rest = dry_bytes;
            loop {
                let piece = rest.min(piece_bytes);
                self.count(None, Some(piece), Duration::ZERO);
                rest -= piece;
                if rest == 0 {
                    return Ok(vec![0; dry_bytes]);
                }
            }
        }
        self.with_buffers(|call, [_, into]| {
            let mut value = Vec::new();
            let mut due = None;
            loop {
                let received = Incoming {
                    peer,
                    buffer: &mut *into,
                };
                let Some(opened) = call.exchange(kind, None, Some(received))? else {
                    return Ok(value);
                };
                let piece = opened.payload_bytes;
                let total = opened
                    .remaining_bytes
                    .saturating_add((value.len() + piece) as u64);
                if total > limit_bytes as u64 {
                    return Err(ranks.fail(RankError::TooLong {
                        rank: ranks.rank(),
                        phase: call.phase,
                        peer,
                        bytes: total,
                        limit_bytes: limit_bytes as u64,
                    }));
                }
                let expected = *due.get_or_insert(total);
                if total != expected || (piece == 0 && opened.remaining_bytes > 0) {
                    return Err(ranks.fail(call.damaged(peer, "length of a value", expected, total)));
                }
                value.extend_from_slice(&into[ENVELOPE_BYTES..ENVELOPE_BYTES + piece]);
                if opened.remaining_bytes == 0 {
                    return Ok(value);
                }
            }
        })
    }

    /// One message out, one in, both checked. The payload that came stands behind the envelope.
    pub(super) fn exchange(
        &mut self,
        kind: Kind,
        sent: Option<Outgoing<'_>>,
        received: Option<Incoming<'_>>,
    ) -> Result<Option<Opened>, RankError> {
        let ranks = self.ranks;
        let Carrier::Transport(transport) = &ranks.inner.carrier else {
            return Ok(None);
        };
        let (rank, phase) = (ranks.rank(), self.phase);
        let Settings { timeout, job, .. } = &ranks.inner.settings;
        let envelope = |from: usize, to: usize, sequence: u64| Envelope {
            kind,
            from,
            to,
            sequence,
            phase,
        };
        let sent_bytes = sent.as_ref().map(|sent| sent.message.len() - ENVELOPE_BYTES);
        let sent = sent.map(|sent| {
            let sequence = next(&mut self.wire.sent, sent.peer);
            let message = sent.message;
            envelope(rank, sent.peer, sequence).seal(job, sent.remaining_bytes, message);
            (sent.peer, &*message)
        });
        let (from, buffer) = received.map_or((None, &mut [][..]), |received| {
            (Some(received.peer), received.buffer)
        });
        let begun = Instant::now();
        let deadline = begun + (*timeout).min(TIMEOUT_MAX);
        let came = transport.exchange(sent, from.map(|peer| (peer, &mut *buffer)), deadline);
        let waited = begun.elapsed();
        let came_bytes = came.map_err(|fault| ranks.fail(ranks.transport_error(fault, phase, begun)))?;
        let opened = from
            .map(|peer| {
                let sequence = next(&mut self.wire.received, peer);
                let message = buffer.get(..came_bytes).unwrap_or(buffer);
                let opened = envelope(peer, rank, sequence).open(job, message);
                opened.map_err(|difference| ranks.fail(difference.error(rank, phase, peer)))
            })
            .transpose()?;
        let received_bytes = opened.map(|opened| opened.payload_bytes);
        self.count(sent_bytes, received_bytes, waited);
        Ok(opened)
    }

    /// One exchange, by the payloads of its messages, in the phase of the call.
    fn count(&self, sent: Option<usize>, received: Option<usize>, waited: Duration) {
        if sent.is_some() || received.is_some() {
            lock(&self.ranks.inner.traffic).exchange(self.phase, sent, received, waited);
        }
    }

    pub(super) fn damaged(&self, peer: usize, field: &'static str, expected: u64, found: u64) -> RankError {
        RankError::Damaged {
            rank: self.ranks.rank(),
            phase: self.phase,
            peer,
            field,
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    fn check_length(&self, part: Part, opened: Opened) -> Result<(), RankError> {
        let ranks = self.ranks;
        let found = [opened.payload_bytes as u64, opened.remaining_bytes];
        let fields = ["length", "rest"];
        let due = [part.bytes as u64, part.remaining_bytes];
        let differs = (0..2).find(|at| due[*at] != found[*at]);
        match differs {
            None => Ok(()),
            Some(at) => Err(ranks.fail(self.damaged(part.peer, fields[at], due[at], found[at]))),
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.ranks.inner.is_in_call.store(false, Ordering::Release);
    }
}

impl Ranks {
    /// The caller's own end of a stream failed: the others are told, and the caller gets its error back.
    fn end_failed<E: Display>(&self, error: E) -> E {
        self.give_up(&error);
        error
    }
}

/// Counts a message of a pair; its sequence number.
fn next(counts: &mut [u64], peer: usize) -> u64 {
    let sequence = counts[peer];
    counts[peer] += 1;
    sequence
}
