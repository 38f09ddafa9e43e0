//! Selectors of a verifying key, a bit each, in a column on disk.
//!
//! A key with compressed selectors keeps them only to write them, and reads them to find out which of them
//! share a fixed column. Which do depends on their degrees and on which pairs meet in some row
//! ([`SelectorBits::conflicts`]), so a halo2's own compression is asked with a few rows ([`activations`])
//! instead of `n`.
//!
//! Shapes: a selector is `n / 8` bytes, eight rows a byte, the first in the lowest bit, in whole words of
//! `WORD_BYTES`. Memory: `TILE_BYTES` and a word for each selector, leased; `count^2` flags.

use std::io;

use spillproof_engine::Result;
use spillproof_engine::column::{Column, Placement, Region, Workspace, Writer};
use spillproof_engine::error::Invalid;

/// Bytes of a column's element.
const WORD_BYTES: usize = 32;
/// Bytes in work, of all selectors together. Few in unit tests, so that small circuits have several tiles.
const TILE_BYTES: usize = if cfg!(test) { 256 } else { 512 << 10 };

type Word = [u8; WORD_BYTES];

/// Where each selector of a circuit is on.
#[derive(Clone, Debug)]
pub struct SelectorBits {
    words: Column<Word>,
    count: usize,
    rows: usize,
}

impl SelectorBits {
    /// How many selectors there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many rows each has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Reads what [`Self::write`] writes.
    ///
    /// # Errors
    /// Those of the reader; where the disk or the budget has no room.
    pub fn read(
        workspace: &Workspace,
        count: usize,
        rows: usize,
        reader: &mut dyn io::Read,
    ) -> io::Result<Self> {
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
        writer.finish().map_err(io::Error::other)
    }

    /// Writes each selector in turn, `n / 8` bytes.
    ///
    /// # Errors
    /// Those of the writer, and of reading the column.
    pub fn write(&self, writer: &mut dyn io::Write) -> io::Result<()> {
        let (bytes, each) = (self.rows.div_ceil(8), words_of(self.rows));
        let chunk = (TILE_BYTES / WORD_BYTES).min(each);
        let tile = self.tile(chunk, "selectors being written");
        let mut tile = tile.map_err(io::Error::other)?;
        for selector in 0..self.count {
            for first in (0..each).step_by(chunk) {
                let tile = &mut tile[..chunk.min(each - first)];
                self.read_words(selector * each + first, tile)
                    .map_err(io::Error::other)?;
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
    pub fn conflicts(&self) -> Result<Vec<(usize, usize)>> {
        let (count, each) = (self.count, words_of(self.rows));
        let chunk = (TILE_BYTES / WORD_BYTES / count.max(1)).clamp(1, each);
        let mut tile = self.tile(chunk * count, "selectors being compared")?;
        let mut together = vec![false; count * count];
        for first in (0..each).step_by(chunk) {
            let len = chunk.min(each - first);
            for (selector, tile) in tile.chunks_mut(chunk).enumerate() {
                self.read_words(selector * each + first, &mut tile[..len])?;
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

    fn tile(&self, words: usize, what: &'static str) -> Result<spillproof_engine::budget::LeasedVec<Word>> {
        self.words.workspace().budget.vec(words, [0; WORD_BYTES], what)
    }

    fn read_words(&self, start: usize, out: &mut [Word]) -> Result<()> {
        let (start, len) = (start as u64, out.len() as u64);
        self.words.read(Region::Span { start, len }, out)
    }
}

/// Selectors on their way to disk, one after the other.
pub struct SelectorWriter {
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
    pub fn new(workspace: &Workspace, count: usize, rows: usize) -> Result<Self> {
        let words = (count * words_of(rows)) as u64;
        Ok(Self {
            writer: Writer::scratch(workspace, "selectors", words, Placement::Auto)?,
            count,
            rows,
            bytes: 0,
            begun: Vec::with_capacity(WORD_BYTES),
        })
    }

    /// The next bytes of the selector in turn, eight rows in each, the first in the lowest bit. What ends a
    /// selector must not begin the next one.
    ///
    /// # Errors
    /// If more comes than there are selectors, or than one has rows; where the disk or the budget has no
    /// room.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        let whole = self.rows.div_ceil(8);
        if self.bytes + bytes.len() > whole {
            return Err(Invalid::TooLong {
                what: "bytes of a selector".into(),
                given: (self.bytes + bytes.len()) as u64,
                limit: whole as u64,
            }
            .into());
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
    pub fn finish(self) -> Result<SelectorBits> {
        Ok(SelectorBits {
            words: self.writer.finish()?,
            count: self.count,
            rows: self.rows,
        })
    }
}

/// Rows that tell a halo2's compression of `count` selectors all that it asks of `n` rows: one for each
/// selector, in which it alone is on, then one for each pair that meets.
pub fn activations(count: usize, conflicts: &[(usize, usize)]) -> Vec<Vec<bool>> {
    let mut activations = vec![vec![false; count + conflicts.len()]; count];
    for (selector, rows) in activations.iter_mut().enumerate() {
        rows[selector] = true;
    }
    for (row, (one, other)) in conflicts.iter().enumerate() {
        activations[*one][count + row] = true;
        activations[*other][count + row] = true;
    }
    activations
}

fn words_of(rows: usize) -> usize {
    rows.div_ceil(8 * WORD_BYTES).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use spillproof_engine::Session;
    use spillproof_engine::budget::ByteSize;

    use super::*;

    fn session(dir: &std::path::Path) -> Session {
        let builder = Session::builder().memory(ByteSize::Bytes(1 << 20)).dir(dir);
        builder.build().unwrap()
    }

    proptest! {
        #[test]
        fn bits_are_the_bytes_that_were_pushed(
            rows in 1..3000usize,
            on in prop::collection::vec(prop::collection::vec(0..3000usize, 0..40), 0..7),
            piece in 1..400usize,
        ) {
            let dir = tempfile::tempdir().unwrap();
            let session = session(dir.path());
            let mut selectors = vec![vec![0u8; rows.div_ceil(8)]; on.len()];
            for (selector, on) in selectors.iter_mut().zip(&on) {
                on.iter().map(|row| row % rows).for_each(|row| selector[row / 8] |= 1 << (row % 8));
            }
            let mut writer = SelectorWriter::new(session.workspace(), on.len(), rows).unwrap();
            for selector in &selectors {
                selector.chunks(piece).for_each(|piece| writer.push(piece).unwrap());
            }
            let bits = writer.finish().unwrap();
            prop_assert_eq!((bits.count(), bits.rows()), (on.len(), rows));
            let mut written = Vec::new();
            bits.write(&mut written).unwrap();
            prop_assert_eq!(&written, &selectors.concat());
            let read = SelectorBits::read(session.workspace(), on.len(), rows, &mut &written[..]).unwrap();
            let meet = |i: usize, j: usize| selectors[i].iter().zip(&selectors[j]).any(|(one, other)| one & other != 0);
            let pairs = (0..on.len()).flat_map(|i| (i + 1..on.len()).map(move |j| (i, j)));
            let pairs: Vec<_> = pairs.filter(|(i, j)| meet(*i, *j)).collect();
            prop_assert_eq!(read.conflicts().unwrap(), pairs);
        }
    }

    #[test]
    fn more_than_a_selector_has_rows_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = SelectorWriter::new(session(dir.path()).workspace(), 1, 9).unwrap();
        assert!(writer.push(&[0; 3]).is_err());
        assert!(writer.finish().is_err(), "the selector is missing");
    }
}
