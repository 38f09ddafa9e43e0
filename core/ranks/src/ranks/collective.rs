//! Collectives over bytes in memory: the same call on every rank, in the same order.
//!
//! In: bytes of this rank. Out: bytes of the others, or their sum. Values of [`Ranks::gather`] and
//! [`Ranks::scatter`] may have any length up to [`VALUE_BYTES_MAX`], another one on each rank; what is
//! broadcast or reduced has one length on all. Memory: the values, and two buffers of at most 256 KiB and an
//! envelope. Streams of any length are in `stream.rs`.

use super::Ranks;
use super::call::Ends;
use crate::envelope::Kind;
use crate::error::RankError;
use crate::traffic::PhaseTraffic;

/// The longest value of a gather or a scatter.
pub const VALUE_BYTES_MAX: usize = 4 << 20;

impl Ranks {
    /// The root's bytes to all ranks. One message of each rank if they fit in 256 KiB, else a chain of ranks,
    /// in which each sends every byte once at most.
    ///
    /// # Errors
    ///
    /// The first error of this rank; `Damaged` where ranks broadcast other lengths.
    pub fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<(), RankError> {
        let mut call = self.call()?;
        self.check_root(root)?;
        let turns = self
            .seat()
            .broadcast(root, bytes.len() as u64, self.small_piece_bytes());
        call.run_small(Kind::Broadcast, turns, &mut Copies { bytes })
    }

    /// Every rank's bytes to the root, by rank; `None` on the others. In a dry run, values of other ranks are
    /// zeros and as long as this one's.
    ///
    /// # Errors
    ///
    /// The first error of this rank; `TooLong` for a value past [`VALUE_BYTES_MAX`].
    pub fn gather(&self, root: usize, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, RankError> {
        self.gather_of(root, bytes, |_| bytes.len())
    }

    /// The same, where the root knows the lengths: only a dry run asks for them.
    ///
    /// # Errors
    ///
    /// As [`Self::gather`].
    pub fn gather_of(
        &self,
        root: usize,
        bytes: &[u8],
        dry_bytes: impl Fn(usize) -> usize,
    ) -> Result<Option<Vec<Vec<u8>>>, RankError> {
        let mut call = self.call()?;
        self.check_root(root)?;
        self.check_value(bytes)?;
        let (rank, size) = (self.rank(), self.size());
        if rank != root {
            call.send_value(Kind::Gather, root, bytes)?;
            return Ok(None);
        }
        let mut values = vec![Vec::new(); size];
        for peer in (1..size).map(|step| (root + step) % size) {
            values[peer] = call.receive_value(Kind::Gather, peer, VALUE_BYTES_MAX, dry_bytes(peer))?;
        }
        values[rank] = bytes.to_vec();
        Ok(Some(values))
    }

    /// A value of the root to each rank; `parts` is the root's, one for each rank. In a dry run, other ranks
    /// get an empty value and count one: see [`Self::scatter_of`].
    ///
    /// # Errors
    ///
    /// The first error of this rank; `TooLong` for a value past [`VALUE_BYTES_MAX`]; `Invalid` if the root
    /// has no parts, or not one for each rank.
    pub fn scatter(&self, root: usize, parts: Option<&[Vec<u8>]>) -> Result<Vec<u8>, RankError> {
        self.scatter_of(root, parts, 0)
    }

    /// The same, where a rank knows the length of its part: only a dry run asks for it.
    ///
    /// # Errors
    ///
    /// As [`Self::scatter`].
    pub fn scatter_of(
        &self,
        root: usize,
        parts: Option<&[Vec<u8>]>,
        dry_bytes: usize,
    ) -> Result<Vec<u8>, RankError> {
        let mut call = self.call()?;
        self.check_root(root)?;
        let (rank, size) = (self.rank(), self.size());
        if rank != root {
            return call.receive_value(Kind::Scatter, root, VALUE_BYTES_MAX, dry_bytes);
        }
        let Some(parts) = parts.filter(|parts| parts.len() == size) else {
            let count = parts.map_or(0, <[_]>::len);
            let what = format!("a scatter to {size} ranks was given {count} parts");
            return Err(self.fail(self.invalid(what)));
        };
        for peer in (1..size).map(|step| (root + step) % size) {
            self.check_value(&parts[peer])?;
            call.send_value(Kind::Scatter, peer, &parts[peer])?;
        }
        Ok(parts[rank].clone())
    }

    /// Adds up the bytes of all ranks, which have one length: `add(sum, more)` gets whole lengths. The sum is
    /// the root's; on the other ranks the bytes are part of it. The order of additions depends on the number
    /// of ranks. Memory: the bytes once more.
    ///
    /// # Errors
    ///
    /// The first error of this rank; `Damaged` where ranks have other lengths.
    pub fn reduce(
        &self,
        root: usize,
        bytes: &mut [u8],
        add: &mut dyn FnMut(&mut [u8], &[u8]),
    ) -> Result<(), RankError> {
        let mut call = self.call()?;
        self.check_root(root)?;
        let turns = self
            .seat()
            .reduce(root, bytes.len() as u64, self.small_piece_bytes());
        let mut sums = Sums {
            bytes,
            more: Vec::new(),
            add,
        };
        call.run_small(Kind::Reduce, turns, &mut sums)
    }

    /// Returns when every rank has called it.
    ///
    /// # Errors
    ///
    /// The first error of this rank.
    pub fn barrier(&self) -> Result<(), RankError> {
        let mut call = self.call()?;
        call.run_small(
            Kind::Barrier,
            self.seat().barrier(),
            &mut Copies { bytes: &mut [] },
        )
    }

    /// An empty message between the first two ranks, there and back.
    pub(crate) fn to_and_fro(&self) -> Result<(), RankError> {
        let mut call = self.call()?;
        let turns = self.seat().to_and_fro();
        call.run_small(Kind::Barrier, turns, &mut Copies { bytes: &mut [] })
    }

    /// The [`Self::traffic`] of every rank at the root, as it was before this call: which rank each phase
    /// waited for is the one that waited least. Ranks have the same phases, in the same order.
    ///
    /// # Errors
    ///
    /// The first error of this rank; `Damaged` if a rank has other phases.
    pub fn gather_traffic(&self, root: usize) -> Result<Option<Vec<Vec<PhaseTraffic>>>, RankError> {
        let own = self.traffic();
        let lines: Vec<u8> = own.iter().flat_map(PhaseTraffic::encode).collect();
        let Some(values) = self.gather(root, &lines)? else {
            return Ok(None);
        };
        let tables = values.iter().enumerate().map(|(peer, value)| {
            if value.len() != lines.len() {
                return Err(self.fail(RankError::Damaged {
                    rank: self.rank(),
                    phase: self.current_phase(),
                    peer,
                    field: "number of phases",
                    expected: own.len().to_string(),
                    found: (value.len() / PhaseTraffic::BYTES).to_string(),
                }));
            }
            let (rows, _) = value.as_chunks::<{ PhaseTraffic::BYTES }>();
            let rows = own.iter().zip(rows);
            Ok(rows
                .map(|(line, row)| PhaseTraffic::decode(line.name, row))
                .collect())
        });
        tables.collect::<Result<_, _>>().map(Some)
    }

    pub(super) fn check_root(&self, root: usize) -> Result<(), RankError> {
        if root < self.size() {
            return Ok(());
        }
        let what = format!("rank {root} is the root of a call among {} ranks", self.size());
        Err(self.fail(self.invalid(what)))
    }

    fn check_value(&self, value: &[u8]) -> Result<(), RankError> {
        if value.len() <= VALUE_BYTES_MAX {
            return Ok(());
        }
        Err(self.fail(RankError::TooLong {
            rank: self.rank(),
            phase: self.current_phase(),
            peer: self.rank(),
            bytes: value.len() as u64,
            limit_bytes: VALUE_BYTES_MAX as u64,
        }))
    }
}

/// Bytes that come and go at the same places.
struct Copies<'a> {
    bytes: &'a mut [u8],
}

impl Ends<RankError> for Copies<'_> {
    fn fill(&mut self, _to: usize, offset: u64, piece: &mut [u8]) -> Result<(), RankError> {
        let at = offset as usize;
        piece.copy_from_slice(&self.bytes[at..at + piece.len()]);
        Ok(())
    }

    fn take(&mut self, _from: usize, offset: u64, piece: &[u8]) -> Result<(), RankError> {
        let at = offset as usize;
        self.bytes[at..at + piece.len()].copy_from_slice(piece);
        Ok(())
    }
}

/// Bytes to which others are added, when all of a rank's have come.
struct Sums<'a> {
    bytes: &'a mut [u8],
    more: Vec<u8>,
    add: &'a mut dyn FnMut(&mut [u8], &[u8]),
}

impl Ends<RankError> for Sums<'_> {
    fn fill(&mut self, _to: usize, offset: u64, piece: &mut [u8]) -> Result<(), RankError> {
        let at = offset as usize;
        piece.copy_from_slice(&self.bytes[at..at + piece.len()]);
        Ok(())
    }

    fn take(&mut self, _from: usize, offset: u64, piece: &[u8]) -> Result<(), RankError> {
        if offset == 0 {
            self.more.clear();
        }
        self.more.extend_from_slice(piece);
        if self.more.len() == self.bytes.len() {
            (self.add)(self.bytes, &self.more);
        }
        Ok(())
    }
}
