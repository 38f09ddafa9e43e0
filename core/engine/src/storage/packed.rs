//! Bytes of any lengths, one after the other, as aligned transfers; the padding of the last one is cut off at
//! the end.
//!
//! Memory, leased: three buffers of 1 MiB at most.

use std::collections::VecDeque;
use std::io;

use super::{File, Pending, Segment};
use crate::budget::{Budget, Buffer, PAGE_BYTES};
use crate::error::Result;

/// Bytes of a buffer.
const WRITE_BYTES: usize = 1 << 20;
/// Transfers behind the writer.
const WRITES_BEHIND: usize = 2;

/// Writes a file from its start to its end.
pub struct Packed {
    budget: Budget,
    file: File,
    buffer: Buffer,
    filled: usize,
    offset: u64,
    flying: VecDeque<Pending>,
}

impl Packed {
    /// From the start of `file` on.
    ///
    /// # Errors
    /// [`Error::OverBudget`](crate::Error::OverBudget).
    pub fn new(budget: &Budget, file: File) -> Result<Self> {
        Ok(Self {
            buffer: Self::leased(budget)?,
            budget: budget.clone(),
            file,
            filled: 0,
            offset: 0,
            flying: VecDeque::new(),
        })
    }

    fn leased(budget: &Budget) -> Result<Buffer> {
        budget.buffer(WRITE_BYTES, "export")
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) of an earlier transfer,
    /// [`Error::OverBudget`](crate::Error::OverBudget).
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let take = bytes.len().min(WRITE_BYTES - self.filled);
            let (now, later) = bytes.split_at(take);
            self.buffer[self.filled..self.filled + take].copy_from_slice(now);
            self.filled += take;
            bytes = later;
            if self.filled == WRITE_BYTES {
                let free = match self.flying.len() {
                    WRITES_BEHIND.. => match self.flying.pop_front() {
                        Some(oldest) => oldest.wait()?,
                        None => Self::leased(&self.budget)?,
                    },
                    _ => Self::leased(&self.budget)?,
                };
                let full = std::mem::replace(&mut self.buffer, free);
                let segment = Segment::new(self.offset, 0, WRITE_BYTES);
                self.flying.push_back(self.file.write(full, [segment]));
                self.offset += WRITE_BYTES as u64;
                self.filled = 0;
            }
        }
        Ok(())
    }

    /// Writes the rest, waits for all transfers, and gives the file the length of its bytes.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn finish(mut self) -> Result<()> {
        let padded = self.filled.next_multiple_of(PAGE_BYTES);
        self.buffer[self.filled..padded].fill(0);
        let last = Segment::new(self.offset, 0, padded);
        let last = (padded > 0).then(|| self.file.write(self.buffer, [last]));
        for pending in self.flying.into_iter().chain(last) {
            pending.wait()?;
        }
        self.file.set_len(self.offset + self.filled as u64)
    }
}

impl io::Write for Packed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    /// Nothing: [`Self::finish`] writes the rest.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
