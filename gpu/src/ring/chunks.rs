//! How a job is cut: chunks of whole elements, all equal but for the first few, which may grow, and the last,
//! which may be short.
//!
//! A pipeline starts when its first chunk has arrived, so a short first copy is worth a few more chunks:
//! `first`, twice `first`, and so on up to the full length.
//!
//! A chunk is what kernels are launched for, and may be longer than a slot: it then travels in parts.

use crate::error::{Invalid, Result};

/// Lengths of chunks, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunking {
    chunk_bytes: u64,
    first_bytes: u64,
    part_bytes: u64,
    element_bytes: u64,
}

/// One chunk of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Its number, from 0.
    pub index: u64,
    /// Its offset in the job, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// What of a chunk is in one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The chunk.
    pub chunk: Piece,
    /// Where the part begins in the chunk, in bytes.
    pub at: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

impl Part {
    /// Its offset in the job, in bytes.
    pub fn offset(&self) -> u64 {
        self.chunk.offset + self.at
    }

    /// Whether its chunk begins with it.
    pub fn is_first(&self) -> bool {
        self.at == 0
    }

    /// Whether its chunk ends with it.
    pub fn is_last(&self) -> bool {
        self.at + self.bytes == self.chunk.bytes
    }
}

impl Chunking {
    /// Equal chunks of `chunk_bytes`, in elements of `element_bytes`.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if a chunk is empty or not a multiple of an element.
    pub fn new(chunk_bytes: u64, element_bytes: u64) -> Result<Self> {
        Self {
            chunk_bytes,
            first_bytes: chunk_bytes,
            part_bytes: chunk_bytes,
            element_bytes,
        }
        .checked()
    }

    /// The same, with chunks that travel in parts of `part_bytes` at most.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if a part is empty or not a multiple of an element.
    pub fn in_parts(self, part_bytes: u64) -> Result<Self> {
        let part_bytes = part_bytes.min(self.chunk_bytes);
        Self { part_bytes, ..self }.checked()
    }

    /// The same with a first chunk of `first_bytes`, a second of twice as many, up to the full length.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if that is more than a chunk, or not a multiple of an element.
    pub fn growing_from(self, first_bytes: u64) -> Result<Self> {
        Self { first_bytes, ..self }.checked()
    }

    /// Bytes of a full chunk: the least that a buffer must have.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// Bytes of the longest part: the least that a slot must have.
    pub fn part_bytes(&self) -> u64 {
        self.part_bytes
    }

    /// Bytes of an element.
    pub fn element_bytes(&self) -> u64 {
        self.element_bytes
    }

    /// The parts of a job of `total_bytes`, in order.
    ///
    /// # Errors
    /// As [`Self::pieces`].
    pub fn parts(&self, total_bytes: u64) -> Result<Parts> {
        Ok(Parts {
            pieces: self.pieces(total_bytes)?,
            part_bytes: self.part_bytes,
            last: None,
        })
    }

    /// The chunks of a job of `total_bytes`.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if that is not a multiple of an element.
    pub fn pieces(&self, total_bytes: u64) -> Result<Pieces> {
        if !total_bytes.is_multiple_of(self.element_bytes) {
            return Err(Invalid::part_of_an_element("a job", total_bytes, self.element_bytes).into());
        }
        Ok(Pieces {
            chunk_bytes: self.chunk_bytes,
            next_bytes: self.first_bytes,
            total_bytes,
            next: Piece {
                index: 0,
                offset: 0,
                bytes: 0,
            },
        })
    }

    fn checked(self) -> Result<Self> {
        let whole = |bytes: u64| bytes > 0 && bytes.checked_rem(self.element_bytes) == Some(0);
        let lengths = [self.chunk_bytes, self.first_bytes, self.part_bytes];
        if lengths.into_iter().all(whole) && self.first_bytes <= self.chunk_bytes {
            Ok(self)
        } else {
            Err(Invalid::Size {
                what: "chunks of a job",
                reason: format!(
                    "{} bytes, the first {}, in parts of {}, with elements of {}: all must be positive multiples of an \
                     element, and the first no longer than the others",
                    self.chunk_bytes, self.first_bytes, self.part_bytes, self.element_bytes
                ),
            }
            .into())
        }
    }
}

/// The chunks of one job, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces {
    chunk_bytes: u64,
    next_bytes: u64,
    total_bytes: u64,
    next: Piece,
}

impl Iterator for Pieces {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let left_bytes = self.total_bytes - self.next.offset;
        if left_bytes == 0 {
            return None;
        }
        let piece = Piece {
            bytes: self.next_bytes.min(left_bytes),
            ..self.next
        };
        self.next.index += 1;
        self.next.offset += piece.bytes;
        self.next_bytes = self.next_bytes.saturating_mul(2).min(self.chunk_bytes);
        Some(piece)
    }
}

/// The parts of one job, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    pieces: Pieces,
    part_bytes: u64,
    last: Option<Part>,
}

impl Iterator for Parts {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        let (chunk, at) = match self.last.filter(|last| !last.is_last()) {
            Some(last) => (last.chunk, last.at + last.bytes),
            None => (self.pieces.next()?, 0),
        };
        let bytes = self.part_bytes.min(chunk.bytes - at);
        self.last = Some(Part { chunk, at, bytes });
        self.last
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_that_cannot_be_are_refused() {
        for (chunk, first, element) in [
            (0, 0, 8),
            (12, 12, 8),
            (16, 4, 8),
            (16, 24, 8),
            (16, 0, 8),
            (16, 16, 0),
        ] {
            let chunking = Chunking::new(chunk, element).and_then(|chunking| chunking.growing_from(first));
            assert!(
                matches!(chunking, Err(crate::Error::Invalid(_))),
                "{chunk} {first} {element}"
            );
        }
        assert!(Chunking::new(16, 8).unwrap().pieces(17).is_err());
    }

    #[test]
    fn chunks_grow_to_their_length() {
        let chunking = Chunking::new(40, 8).unwrap().growing_from(8).unwrap();
        let lengths: Vec<u64> = chunking.pieces(152).unwrap().map(|piece| piece.bytes).collect();
        assert_eq!(lengths, [8, 16, 32, 40, 40, 16]);
        assert_eq!(chunking.pieces(0).unwrap().count(), 0);
    }

    proptest! {
        #[test]
        fn pieces_cover_the_job(element in 1u64..9, chunk in 1u64..9, first in 1u64..9, total in 0u64..200) {
            let first = first.min(chunk);
            let chunking = Chunking::new(chunk * element, element).unwrap().growing_from(first * element).unwrap();
            let mut offset = 0;
            for (index, piece) in chunking.pieces(total * element).unwrap().enumerate() {
                prop_assert_eq!((piece.index, piece.offset), (index as u64, offset));
                prop_assert!(piece.bytes > 0 && piece.bytes <= chunk * element);
                prop_assert_eq!(piece.bytes % element, 0);
                offset += piece.bytes;
            }
            prop_assert_eq!(offset, total * element);
        }

        #[test]
        fn parts_cover_their_chunks(element in 1u64..9, chunk in 1u64..9, first in 1u64..9, part in 1u64..12, total in 0u64..200) {
            let first = first.min(chunk);
            let chunking = Chunking::new(chunk * element, element).unwrap().growing_from(first * element).unwrap();
            let chunking = chunking.in_parts(part * element).unwrap();
            let mut parts = chunking.parts(total * element).unwrap();
            for piece in chunking.pieces(total * element).unwrap() {
                let mut at = 0;
                while at < piece.bytes {
                    let part = parts.next().unwrap();
                    prop_assert_eq!((part.chunk, part.at, part.is_first()), (piece, at, at == 0));
                    prop_assert!(part.bytes > 0 && part.bytes <= chunking.part_bytes());
                    at += part.bytes;
                    prop_assert_eq!(part.is_last(), at == piece.bytes);
                }
                prop_assert_eq!(at, piece.bytes);
            }
            prop_assert_eq!(parts.next(), None);
        }
    }
}
