//! Selectors while a circuit is synthesised, and the columns that they become.
//!
//! Shapes: `count` selectors over `rows` rows, one bit each, in [`Cells`]: 64 rows of one selector are a
//! word, and the words of all selectors for the same rows are neighbours, so that one pass sees them
//! together. Memory: the share of the cells; `count` words; the writers of [`COLUMNS_PER_PASS`] columns.
//!
//! Selectors that are never on in the same row may share a column (halo2's selector compression, see the
//! halo2 book, *Selector combining*): each adds its own value where it is on. Which ones do is for the caller
//! to say, from [`Selectors::conflicts`].

use spillproof_engine::Result;
use spillproof_engine::column::{Cells, Column, Element, Placement, Workspace, Writer};
use spillproof_engine::error::Invalid;
use spillproof_kernels::field::KernelField;

/// Columns that are written in one pass.
const COLUMNS_PER_PASS: usize = 4;

/// Bytes of a selector that are handed on at a time; whole words.
const PIECE_BYTES: usize = 4096;

/// Rows in a word.
const WORD: u64 = u64::BITS as u64;

/// Where each of a circuit's selectors is on.
pub struct Selectors {
    workspace: Workspace,
    rows: u64,
    count: usize,
    words: Cells<u64>,
}

impl Selectors {
    /// `count` selectors over `rows` rows, all off, in [`Cells::default_share_bytes`].
    ///
    /// # Errors
    /// [`spillproof_engine::Error::File`], [`spillproof_engine::Error::OverBudget`].
    pub fn new(workspace: &Workspace, count: usize, rows: u64) -> Result<Self> {
        let (share_bytes, len) = (
            Cells::<u64>::default_share_bytes(workspace, 1),
            rows.div_ceil(WORD) * count as u64,
        );
        let mut words = Cells::zeroed(workspace, "selectors", share_bytes, (1, len))?;
        words.assume_written();
        Ok(Self {
            workspace: workspace.clone(),
            rows,
            count,
            words,
        })
    }

    /// How many selectors there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Turns a selector on in a row.
    ///
    /// # Errors
    /// [`spillproof_engine::Error::Invalid`] for a selector or a row that is not there;
    /// [`spillproof_engine::Error::File`].
    pub fn enable(&mut self, selector: usize, row: u64) -> Result<()> {
        Invalid::unless_below("selector", selector as u64, self.count as u64)?;
        Invalid::unless_below("row", row, self.rows)?;
        let word = row / WORD * self.count as u64 + selector as u64;
        let bits = self.words.get(0, word)?;
        self.words.set(0, word, bits | 1 << (row % WORD))
    }

    /// The pairs of selectors `(i, j)`, `i < j`, that are both on in some row, in order; in a dry run, none.
    ///
    /// # Errors
    /// [`spillproof_engine::Error::File`].
    pub fn conflicts(&mut self) -> Result<Vec<(usize, usize)>> {
        let workspace = self.workspace.clone();
        workspace.run(|| self.conflicts_in_turn())
    }

    fn conflicts_in_turn(&mut self) -> Result<Vec<(usize, usize)>> {
        let count = self.count;
        if self.workspace.is_dry() {
            self.rehearse_pass()?;
            return Ok(Vec::new());
        }
        let mut together = vec![false; count * count];
        let mut on = Vec::with_capacity(count);
        self.for_each_word(|words| {
            on.clear();
            on.extend(words.iter().copied().enumerate().filter(|(_, bits)| *bits != 0));
            for (at, &(j, bits)) in on.iter().enumerate() {
                for &(i, before) in &on[..at] {
                    together[i * count + j] |= before & bits != 0;
                }
            }
            Ok(())
        })?;
        let pairs = (0..count).flat_map(|i| (i + 1..count).map(move |j| (i, j)));
        Ok(pairs.filter(|(i, j)| together[i * count + j]).collect())
    }

    /// A column for each group of selectors, with their values: row by row, the sum of the values of those
    /// that are on.
    ///
    /// # Errors
    /// [`spillproof_engine::Error::File`], [`spillproof_engine::Error::OverBudget`].
    pub fn columns<F: KernelField + Element>(
        &mut self,
        groups: &[Vec<(usize, F)>],
    ) -> Result<Vec<Column<F>>> {
        let workspace = self.workspace.clone();
        workspace.run(|| self.columns_in_turn(groups))
    }

    fn columns_in_turn<F: KernelField + Element>(
        &mut self,
        groups: &[Vec<(usize, F)>],
    ) -> Result<Vec<Column<F>>> {
        let mut columns = Vec::with_capacity(groups.len());
        for groups in groups.chunks(COLUMNS_PER_PASS) {
            let (workspace, rows) = (self.workspace.clone(), self.rows);
            let mut writers = groups
                .iter()
                .map(|_| Writer::scratch(&workspace, "selector column", rows, Placement::Auto))
                .collect::<Result<Vec<_>>>()?;
            if workspace.is_dry() {
                let buffers = writers.iter().map(Writer::buffers_bytes).sum();
                let _buffers = workspace.hold(buffers, "selector columns")?;
                self.rehearse_pass()?;
                for writer in writers {
                    columns.push(writer.finish_held()?);
                }
                continue;
            }
            let mut left = rows;
            let mut values = [F::ZERO; WORD as usize];
            self.for_each_word(|words| {
                let here = left.min(WORD);
                left -= here;
                for (group, writer) in groups.iter().zip(&mut writers) {
                    values.fill(F::ZERO);
                    for (selector, value) in group {
                        let mut bits = words[*selector];
                        while bits != 0 {
                            let row = bits.trailing_zeros() as usize;
                            values[row] = values[row].plus(value);
                            bits &= bits - 1;
                        }
                    }
                    writer.push(&values[..here as usize])?;
                }
                Ok(())
            })?;
            for writer in writers {
                columns.push(writer.finish()?);
            }
        }
        Ok(columns)
    }

    /// Hands `take` one selector as bytes, piece by piece: eight rows in each byte, the first in the lowest
    /// bit, `rows / 8` bytes in all.
    ///
    /// # Errors
    /// Those of `take`; [`spillproof_engine::Error::File`].
    pub fn packed(&mut self, selector: usize, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if self.workspace.is_dry() {
            return self.rehearse_pass();
        }
        let mut left = self.rows.div_ceil(8) as usize;
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        self.for_each_word(|words| {
            let bytes = words[selector].to_le_bytes();
            let now = left.min(bytes.len());
            piece.extend_from_slice(&bytes[..now]);
            left -= now;
            if left == 0 || piece.len() == PIECE_BYTES {
                take(&piece)?;
                piece.clear();
            }
            Ok(())
        })
    }

    /// The dry run of [`Self::for_each_word`].
    fn rehearse_pass(&mut self) -> Result<()> {
        self.words.read(0, 0..self.words.len(), |_, _| Ok(()))
    }

    /// Hands `take` the words of all selectors for 64 rows, for all rows in order.
    fn for_each_word(&mut self, mut take: impl FnMut(&[u64]) -> Result<()>) -> Result<()> {
        if self.count == 0 {
            return (0..self.rows.div_ceil(WORD)).try_for_each(|_| take(&[]));
        }
        let count = self.count;
        // Blocks of the map end anywhere.
        let mut begun = Vec::with_capacity(count);
        let len = self.words.len();
        self.words.read(0, 0..len, |_, mut words| {
            if !begun.is_empty() {
                let (end, rest) = words.split_at((count - begun.len()).min(words.len()));
                begun.extend_from_slice(end);
                words = rest;
                if begun.len() < count {
                    return Ok(());
                }
                take(&begun)?;
                begun.clear();
            }
            let mut whole = words.chunks_exact(count);
            whole.by_ref().try_for_each(&mut take)?;
            begun.extend_from_slice(whole.remainder());
            Ok(())
        })
    }
}
