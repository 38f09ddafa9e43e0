//! `VerifyingKey`'s selectors: `Vec<Vec<bool>>` as stock, a byte a row and selector, or in a session a column of bits.
//!
//! A key with compressed selectors keeps them only to write them, and reads them to find out which of them share a fixed
//! column. Which do depends on their degrees and on which pairs meet in some row ([`SelectorBits::conflicts`]), so stock's
//! own compression is asked with one row for each such pair instead of `n` rows.
//!
//! Shapes: a selector is `n / 8` bytes, eight rows a byte, the first in the lowest bit, in whole words of [`WORD_BYTES`].
//! Memory: [`TILE_BYTES`] and a word for each selector, leased; `count^2` flags.

use std::io;
use std::ops::Range;

use ::spillproof::column::{Column, Placement, Region, Workspace, Writer};
use ::spillproof::{Error, Result};
use ff::Field;

use super::bases::or_panic;
use super::engine::session;
use crate::helpers::pack;
use crate::plonk::ConstraintSystem;

/// Bytes of a column's element.
const WORD_BYTES: usize = 32;
/// Bytes in work, of all selectors together. Few in unit tests, so that small circuits have several tiles.
const TILE_BYTES: usize = if cfg!(test) { 256 } else { 512 << 10 };

type Word = [u8; WORD_BYTES];

/// Where each selector of a circuit is on; and, since it is the one field of a verifying key that is ours, what is to be known of the
/// making of the key.
#[derive(Clone, Debug)]
pub struct SelectorBits {
    bits: Inner,
    /// Jobs of the key's making that were an accelerator's.
    accelerator_jobs: u64,
}

#[derive(Clone, Debug)]
enum Inner {
    Memory(Vec<Vec<bool>>),
    Disk {
        words: Column<Word>,
        count: usize,
        rows: usize,
    },
}

impl SelectorBits {
    fn of(bits: Inner) -> Self {
        Self {
            bits,
            accelerator_jobs: 0,
        }
    }

    /// How many jobs of the key's making were an accelerator's. It does not survive a file.
    pub(crate) fn accelerator_jobs(&self) -> u64 {
        self.accelerator_jobs
    }

    /// More of the key was made.
    pub(crate) fn add_accelerator_jobs(&mut self, jobs: u64) {
        self.accelerator_jobs += jobs;
    }

    /// How many selectors there are.
    pub fn len(&self) -> usize {
        match &self.bits {
            Inner::Memory(selectors) => selectors.len(),
            Inner::Disk { count, .. } => *count,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows of a selector.
    pub(crate) fn get(&self, selector: usize) -> Option<Range<usize>> {
        match &self.bits {
            Inner::Memory(selectors) => selectors.get(selector).map(|rows| 0..rows.len()),
            Inner::Disk { count, rows, .. } => (selector < *count).then_some(0..*rows),
        }
    }

    /// For the loop in stock's `write`, which [`Self::write`] is called after: nothing.
    pub(crate) fn written_after() -> [Vec<bool>; 0] {
        []
    }

    /// Writes each selector in turn, `n / 8` bytes.
    ///
    /// # Errors
    /// Those of the writer, and of reading the column.
    pub(crate) fn write<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        let (words, count, rows) = match &self.bits {
            Inner::Memory(selectors) => {
                let bytes = selectors.iter().flat_map(|rows| rows.chunks(8)).map(pack);
                return bytes.into_iter().try_for_each(|byte| writer.write_all(&[byte]));
            }
            Inner::Disk { words, count, rows } => (words, *count, *rows),
        };
        let (bytes, each) = (rows.div_ceil(8), words_of(rows));
        let chunk = (TILE_BYTES / WORD_BYTES).min(each);
        let tile = words
            .workspace()
            .budget
            .vec(chunk, [0; WORD_BYTES], "selectors being written");
        let mut tile = tile.map_err(io::Error::other)?;
        for selector in 0..count {
            for first in (0..each).step_by(chunk) {
                let tile = &mut tile[..chunk.min(each - first)];
                read_words(words, selector * each + first, tile)?;
                let left = bytes - first * WORD_BYTES;
                writer.write_all(&tile.as_flattened()[..left.min(tile.len() * WORD_BYTES)])?;
            }
        }
        Ok(())
    }

    /// The pairs of selectors `(i, j)`, `i < j`, that are both on in some row, in order.
    ///
    /// # Errors
    /// If the column can't be read, or the budget has no room.
    fn conflicts(&self) -> io::Result<Vec<(usize, usize)>> {
        let Inner::Disk { words, count, rows } = &self.bits else {
            return Err(io::Error::other("selectors in memory are for stock to compress"));
        };
        let (count, each) = (*count, words_of(*rows));
        let chunk = (TILE_BYTES / WORD_BYTES / count.max(1)).clamp(1, each);
        let tile = words
            .workspace()
            .budget
            .vec(chunk * count, [0; WORD_BYTES], "selectors being compared");
        let mut tile = tile.map_err(io::Error::other)?;
        let mut together = vec![false; count * count];
        for first in (0..each).step_by(chunk) {
            let len = chunk.min(each - first);
            for (selector, tile) in tile.chunks_mut(chunk).enumerate() {
                read_words(words, selector * each + first, &mut tile[..len])?;
            }
            let selectors: Vec<&[u8]> = tile
                .chunks(chunk)
                .map(|tile| tile[..len].as_flattened())
                .collect();
            for (i, one) in selectors.iter().enumerate() {
                for (j, other) in selectors.iter().enumerate().skip(i + 1) {
                    let meet = &mut together[i * count + j];
                    *meet = *meet || one.iter().zip(*other).any(|(one, other)| one & other != 0);
                }
            }
        }
        let pairs = (0..count).flat_map(|i| (i + 1..count).map(move |j| (i, j)));
        Ok(pairs.filter(|(i, j)| together[i * count + j]).collect())
    }
}

/// None, for a key whose selectors are not compressed.
impl Default for SelectorBits {
    fn default() -> Self {
        Self::of(Inner::Memory(Vec::new()))
    }
}

impl From<Vec<Vec<bool>>> for SelectorBits {
    /// In a session they go to disk.
    ///
    /// Panics where its disk or budget has no room.
    fn from(selectors: Vec<Vec<bool>>) -> Self {
        let (false, Some(session)) = (selectors.is_empty(), or_panic(session())) else {
            return Self::of(Inner::Memory(selectors));
        };
        let rows = selectors.first().map_or(0, Vec::len);
        let writer = SelectorWriter::new(session.workspace(), selectors.len(), rows);
        let mut writer = or_panic(writer.map_err(io::Error::other));
        let mut bytes = Vec::with_capacity(rows.div_ceil(8));
        for selector in selectors {
            bytes.clear();
            bytes.extend(selector.chunks(8).map(pack));
            or_panic(writer.push(&bytes).map_err(io::Error::other));
        }
        or_panic(writer.finish().map_err(io::Error::other))
    }
}

/// Selectors on their way to disk, one after the other.
pub(crate) struct SelectorWriter {
    writer: Writer<Word>,
    count: usize,
    rows: usize,
    /// Bytes of the selector that is being written.
    bytes: usize,
    begun: Vec<u8>,
}

impl SelectorWriter {
    /// Room for `count` selectors over `rows` rows.
    ///
    /// # Errors
    /// Where the disk or the budget has no room.
    pub(crate) fn new(workspace: &Workspace, count: usize, rows: usize) -> Result<Self> {
        let words = (count * words_of(rows)) as u64;
        Ok(Self {
            writer: Writer::scratch(workspace, "selectors", words, Placement::Auto)?,
            count,
            rows,
            bytes: 0,
            begun: Vec::with_capacity(WORD_BYTES),
        })
    }

    /// The next bytes of the selector in turn, eight rows in each, the first in the lowest bit. What ends a selector must
    /// not begin the next one.
    ///
    /// # Errors
    /// If more comes than there are selectors, or than one has rows; where the disk or the budget has no room.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        let whole = self.rows.div_ceil(8);
        if self.bytes + bytes.len() > whole {
            return Err(Error::Invalid {
                what: "selector",
                details: format!("{} bytes for {} rows", self.bytes + bytes.len(), self.rows),
            });
        }
        self.bytes += bytes.len();
        let at_end = self.bytes == whole;
        if !self.begun.is_empty() {
            let (end, rest) = bytes.split_at((WORD_BYTES - self.begun.len()).min(bytes.len()));
            self.begun.extend_from_slice(end);
            bytes = rest;
        }
        if self.begun.len() == WORD_BYTES {
            let (words, _) = self.begun.as_chunks();
            self.writer.push(words)?;
            self.begun.clear();
        }
        let (words, rest) = bytes.as_chunks();
        self.writer.push(words)?;
        self.begun.extend_from_slice(rest);
        if at_end {
            if !self.begun.is_empty() {
                let mut last = [0; WORD_BYTES];
                last[..self.begun.len()].copy_from_slice(&self.begun);
                self.writer.push(&[last])?;
                self.begun.clear();
            }
            self.bytes = 0;
        }
        Ok(())
    }

    /// The selectors.
    ///
    /// # Errors
    /// If some are missing, or where the disk has no room.
    pub(crate) fn finish(self) -> Result<SelectorBits> {
        Ok(SelectorBits::of(Inner::Disk {
            words: self.writer.finish()?,
            count: self.count,
            rows: self.rows,
        }))
    }
}

/// In a session, reads the selectors of a key with compressed ones, and compresses those of its constraint system; `None`,
/// with nothing read, where that is for stock to do.
///
/// # Errors
/// Those of the reader; where the session's disk or budget has no room.
pub(crate) fn read<F: Field, R: io::Read>(
    reader: &mut R,
    k: u32,
    compressed: bool,
    cs: &ConstraintSystem<F>,
) -> io::Result<Option<(ConstraintSystem<F>, SelectorBits)>> {
    let (true, Some(session)) = (compressed, session()?) else {
        return Ok(None);
    };
    let (count, rows) = (cs.num_selectors, 1usize << k);
    let workspace = session.workspace();
    let mut writer = SelectorWriter::new(workspace, count, rows).map_err(io::Error::other)?;
    let chunk = rows.div_ceil(8).min(TILE_BYTES);
    let tile = workspace.budget.vec(chunk, 0u8, "selectors being read");
    let mut tile = tile.map_err(io::Error::other)?;
    for _ in 0..count {
        let mut left = rows.div_ceil(8);
        while left > 0 {
            let bytes = &mut tile[..left.min(chunk)];
            reader.read_exact(bytes)?;
            writer.push(bytes).map_err(io::Error::other)?;
            left -= bytes.len();
        }
    }
    let selectors = writer.finish().map_err(io::Error::other)?;
    let conflicts = selectors.conflicts()?;
    let mut activations = vec![vec![false; conflicts.len()]; count];
    for (row, (one, other)) in conflicts.into_iter().enumerate() {
        activations[one][row] = true;
        activations[other][row] = true;
    }
    let (cs, _) = cs.clone().compress_selectors(activations);
    Ok(Some((cs, selectors)))
}

fn words_of(rows: usize) -> usize {
    rows.div_ceil(8 * WORD_BYTES).max(1)
}

fn read_words(words: &Column<Word>, start: usize, out: &mut [Word]) -> io::Result<()> {
    let (start, len) = (start as u64, out.len() as u64);
    words
        .read(Region::Span { start, len }, out)
        .map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::spillproof::{ByteSize, Session};

    proptest! {
        #[test]
        fn bits_are_stocks_bytes(
            rows in 1..3000usize,
            on in prop::collection::vec(prop::collection::vec(0..3000usize, 0..40), 0..7),
            piece in 1..400usize,
        ) {
            let dir = tempfile::tempdir().unwrap();
            let session = Session::builder().memory(ByteSize::Bytes(1 << 20)).dir(dir.path()).build().unwrap();
            let mut selectors = vec![vec![false; rows]; on.len()];
            for (selector, on) in selectors.iter_mut().zip(&on) {
                on.iter().for_each(|row| selector[row % rows] = true);
            }
            let bytes = selectors.iter().map(|rows| rows.chunks(8).map(pack).collect::<Vec<u8>>());
            let bytes: Vec<Vec<u8>> = bytes.collect();
            let mut writer = SelectorWriter::new(session.workspace(), on.len(), rows).unwrap();
            for selector in &bytes {
                selector.chunks(piece).for_each(|piece| writer.push(piece).unwrap());
            }
            let bits = writer.finish().unwrap();
            prop_assert_eq!((bits.len(), bits.get(on.len())), (on.len(), None));
            prop_assert!((0..on.len()).all(|selector| bits.get(selector) == Some(0..rows)));
            let (mut written, mut memory) = (Vec::new(), Vec::new());
            bits.write(&mut written).unwrap();
            prop_assert_eq!(&written, &bytes.concat());
            SelectorBits::of(Inner::Memory(selectors.clone())).write(&mut memory).unwrap();
            prop_assert_eq!(&memory, &written);
            let meet = |i: usize, j: usize| selectors[i].iter().zip(&selectors[j]).any(|(one, other)| one & other);
            let pairs = (0..on.len()).flat_map(|i| (i + 1..on.len()).map(move |j| (i, j)));
            prop_assert_eq!(bits.conflicts().unwrap(), pairs.filter(|(i, j)| meet(*i, *j)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn more_than_a_selector_has_rows_is_refused() {
        let session = Session::builder()
            .memory(ByteSize::Bytes(1 << 20))
            .build()
            .unwrap();
        let mut writer = SelectorWriter::new(session.workspace(), 1, 9).unwrap();
        assert!(writer.push(&[0; 3]).is_err());
        assert!(writer.finish().is_err(), "the selector is missing");
    }
}
