//! Streams between ranks: any number of bytes, in pieces, from the caller's source to the caller's sink.
//!
//! In: how many bytes go to, and come from, each rank; two buffers of [`Ranks::buffer_bytes`]. For each peer,
//! the source is asked for pieces in order of their offsets, and the sink gets them in order. What a rank
//! keeps goes from source to sink first, and makes no message. Both are asked on the caller's thread, and
//! must not call this rank.
//!
//! Bytes sent by a rank of an all-to-all = the sum of `send_lengths` but its own; messages = the sum of
//! `ceil(length / piece)`. Memory: the two buffers.

use std::fmt::Display;

use super::Ranks;
use super::call::Ends;
use crate::envelope::Kind;
use crate::error::RankError;
use crate::schedule::Turn;

/// Fills a piece for a rank: the rank, the offset, the piece.
pub type Source<'a, E> = &'a mut dyn FnMut(usize, u64, &mut [u8]) -> Result<(), E>;
/// Takes a piece from a rank: the rank, the offset, the piece.
pub type Sink<'a, E> = &'a mut dyn FnMut(usize, u64, &[u8]) -> Result<(), E>;

/// A piece that a source is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The rank that it is for.
    pub rank: usize,
    /// Where it begins in the bytes for that rank.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: usize,
}

impl Ranks {
    /// Streams `send_lengths[q]` bytes to each rank q, and `receive_lengths[r]` from each rank r. In step s =
    /// 0, 1, .., d - 1 this rank sends to `(rank + s) mod d` and receives from `(rank - s) mod d`, both at
    /// one time, so that no rank is the target of all.
    ///
    /// # Errors
    ///
    /// The source's or the sink's error, of which the other ranks are told; `Damaged` where two ranks
    /// disagree about a length; `Invalid` for lists that have no entry for each rank, or buffers that are too
    /// short; else the first error of this rank.
    pub fn all_to_all<E: From<RankError> + Display>(
        &self,
        send_lengths: &[u64],
        receive_lengths: &[u64],
        buffers: [&mut [u8]; 2],
        source: Source<'_, E>,
        sink: Sink<'_, E>,
    ) -> Result<(), E> {
        self.check_lengths(&[send_lengths, receive_lengths])?;
        if send_lengths[self.rank()] != receive_lengths[self.rank()] {
            let what = "this rank keeps another number of bytes than it gets from itself";
            return Err(self.fail(self.invalid(what)).into());
        }
        let turns = self
            .seat()
            .all_to_all(send_lengths, receive_lengths, self.piece_bytes());
        self.stream(Kind::AllToAll, turns, buffers, source, sink)
    }

    /// The pieces that [`Self::all_to_all`] will ask its source for, in their order.
    ///
    /// # Errors
    ///
    /// `Invalid` for lists that have no entry for each rank.
    pub fn all_to_all_order<'a>(
        &self,
        send_lengths: &'a [u64],
        receive_lengths: &'a [u64],
    ) -> Result<impl Iterator<Item = Asked> + use<'a>, RankError> {
        self.check_lengths(&[send_lengths, receive_lengths])?;
        let turns = self
            .seat()
            .all_to_all(send_lengths, receive_lengths, self.piece_bytes());
        Ok(turns.filter_map(|turn| turn.send).map(|part| Asked {
            rank: part.peer,
            offset: part.offset,
            bytes: part.bytes,
        }))
    }

    /// Streams `lengths[r]` bytes from each rank r to the root, whose sink gets all of them; other ranks need
    /// their own entry only, and their sinks get nothing. A piece of each rank in turn.
    ///
    /// # Errors
    ///
    /// As [`Self::all_to_all`].
    pub fn gather_stream<E: From<RankError> + Display>(
        &self,
        root: usize,
        lengths: &[u64],
        buffers: [&mut [u8]; 2],
        source: Source<'_, E>,
        sink: Sink<'_, E>,
    ) -> Result<(), E> {
        self.check_root(root)?;
        self.check_lengths(&[lengths])?;
        let turns = self.seat().gather(root, lengths, self.piece_bytes());
        self.stream(Kind::GatherStream, turns, buffers, source, sink)
    }

    /// Streams `lengths[r]` bytes of the root's source to each rank r; other ranks need their own entry only,
    /// and their sources are not asked. A piece for each rank in turn.
    ///
    /// # Errors
    ///
    /// As [`Self::all_to_all`].
    pub fn scatter_stream<E: From<RankError> + Display>(
        &self,
        root: usize,
        lengths: &[u64],
        buffers: [&mut [u8]; 2],
        source: Source<'_, E>,
        sink: Sink<'_, E>,
    ) -> Result<(), E> {
        self.check_root(root)?;
        self.check_lengths(&[lengths])?;
        let turns = self.seat().scatter(root, lengths, self.piece_bytes());
        self.stream(Kind::ScatterStream, turns, buffers, source, sink)
    }

    fn stream<E: From<RankError> + Display>(
        &self,
        kind: Kind,
        turns: impl Iterator<Item = Turn>,
        buffers: [&mut [u8]; 2],
        source: Source<'_, E>,
        sink: Sink<'_, E>,
    ) -> Result<(), E> {
        let mut call = self.call()?;
        let shortest = buffers.iter().map(|buffer| buffer.len()).min().unwrap_or(0);
        if shortest < self.buffer_bytes() && !self.is_dry() {
            let what = format!(
                "a stream needs two buffers of {} bytes, and one has {shortest}",
                self.buffer_bytes()
            );
            return Err(self.fail(self.invalid(what)).into());
        }
        call.run(kind, turns, buffers, &mut Closures { source, sink })
    }

    fn check_lengths(&self, lists: &[&[u64]]) -> Result<(), RankError> {
        match lists.iter().find(|list| list.len() != self.size()) {
            None => Ok(()),
            Some(list) => {
                let what = format!("{} lengths were given for {} ranks", list.len(), self.size());
                Err(self.fail(self.invalid(what)))
            }
        }
    }
}

struct Closures<'a, E> {
    source: Source<'a, E>,
    sink: Sink<'a, E>,
}

impl<E> Ends<E> for Closures<'_, E> {
    fn fill(&mut self, to: usize, offset: u64, piece: &mut [u8]) -> Result<(), E> {
        (self.source)(to, offset, piece)
    }

    fn take(&mut self, from: usize, offset: u64, piece: &[u8]) -> Result<(), E> {
        (self.sink)(from, offset, piece)
    }
}
