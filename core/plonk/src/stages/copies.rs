//! The permutation that a circuit's copy constraints make, assembled one copy at a time, in files.
//!
//! Algorithm: cells that must be equal form cycles. A copy between cells of two cycles exchanges their
//! images, which makes one cycle of two; a copy within a cycle changes nothing (*The halo2 Book*, section
//! 4.1.2, "Permutation argument"). So the permutation depends on the order of the copies, which is the
//! caller's, and on which cells are in one cycle already. halo2 knows that from a distinguished cell that it
//! writes to every cell of a cycle, the smaller cycle's first; here it comes from trees, joined by size, with
//! paths halved on the way (Tarjan and van Leeuwen, *Worst-case analysis of set union algorithms*, 1984): a
//! few accesses a copy instead of a walk through a cycle, and the same permutation.
//!
//! Two arrays of [`Cells`], where zero means "untouched", so that nothing has to be written for cells without
//! copies:
//!
//! - `images`: the cell's image under the permutation, XOR the cell's own index.
//! - `links`: for the root of a tree twice (its cycle's size, less one); else twice a cell nearer to the
//!   root, plus one.
//!
//! Shapes: cell (column, row) has index `column * rows + row`; indices are 32 bits wide where they fit,
//! else 64. Peak memory: a share of a quarter of what the budget has left, or twice both arrays where that is
//! less (8 or 16 bytes a cell), and digests of blocks; for a sigma column a tile and its writer, and the
//! powers of omega, in two levels of `O(sqrt(rows))`.

use super::product::chunk_elements;
use spillproof_engine::Result;
use spillproof_engine::budget::LeasedVec;
use spillproof_engine::column::{Cells, Column, Draft, Element, Placement, Workspace, Writer};
use spillproof_engine::dry::Work;
use spillproof_engine::error::Invalid;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;
use spillproof_kernels::poly::{PIECE, gathered_products, powers};

const WHAT: &str = "copies";
const COLUMN: &str = "column of a permutation";
const SIGMA: &str = "sigma column";
/// The two arrays.
const IMAGES: usize = 0;
const LINKS: usize = 1;

/// What is known of the permutation so far: the identity, and every copy since.
pub struct Copies {
    workspace: Workspace,
    columns: usize,
    rows: u64,
    numbers: Numbers,
    /// Columns that a dry run has made.
    dry_sigmas: u64,
}

/// A cycle: the root of its tree, and how many cells it has.
#[derive(Clone, Copy)]
struct Cycle {
    root: u64,
    size: u64,
}

/// The share of both arrays. Nothing else needs much while a circuit is synthesized, and copies may go from
/// anywhere to anywhere.
fn share_bytes(workspace: &Workspace, arrays_bytes: u64) -> u64 {
    let available_bytes = workspace.budget.available_bytes();
    let share_bytes = (available_bytes / 4).min(arrays_bytes.saturating_mul(2));
    share_bytes.max(Cells::<u64>::default_share_bytes(workspace, 2))
}

impl Copies {
    /// The identity on `columns` columns of `rows` rows. Takes no time: the files are sparse.
    ///
    /// # Errors
    /// [`Invalid::TooLong`] for more than 2^62 cells; [`spillproof_engine::Error::BudgetTooSmall`],
    /// [`spillproof_engine::Error::OverBudget`], [`spillproof_engine::Error::File`],
    /// [`spillproof_engine::Error::Memory`].
    pub fn new(workspace: &Workspace, columns: usize, rows: u64) -> Result<Self> {
        let cells = rows.checked_mul(columns as u64).filter(|cells| *cells <= 1 << 62);
        let Some(cells) = cells else {
            return Err(Invalid::TooLong {
                what: "cells of a permutation".into(),
                given: rows.saturating_mul(columns as u64),
                limit: 1 << 62,
            }
            .into());
        };
        // Links are below twice the number of cells.
        Self::in_cells(workspace, columns, rows, cells > 1 << 31)
    }

    fn in_cells(workspace: &Workspace, columns: usize, rows: u64, wide: bool) -> Result<Self> {
        let cells = columns as u64 * rows;
        let arrays_bytes = cells.saturating_mul(if wide { 16 } else { 8 });
        let (share_bytes, shape) = (share_bytes(workspace, arrays_bytes), (2, cells));
        Ok(Self {
            workspace: workspace.clone(),
            columns,
            rows,
            numbers: match wide {
                true => Numbers::Wide(Cells::zeroed(workspace, WHAT, share_bytes, shape)?),
                false => Numbers::Narrow(Cells::zeroed(workspace, WHAT, share_bytes, shape)?),
            },
            dry_sigmas: 0,
        })
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Rows of each column.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Constrains two cells, (column, row) each, to be equal.
    ///
    /// # Errors
    /// [`Invalid::Index`] for a cell outside; [`spillproof_engine::Error::File`]. After an error of a file
    /// the permutation is not to be used.
    pub fn copy(&mut self, left: (usize, u64), right: (usize, u64)) -> Result<()> {
        let (left, right) = (self.index(left)?, self.index(right)?);
        let (kept, joined) = (self.cycle(left)?, self.cycle(right)?);
        if kept.root == joined.root {
            return Ok(());
        }
        let (kept, joined) = if kept.size < joined.size {
            (joined, kept)
        } else {
            (kept, joined)
        };
        self.numbers.set(LINKS, joined.root, kept.root << 1 | 1)?;
        (self.numbers).set(LINKS, kept.root, (kept.size + joined.size - 1) << 1)?;
        let (left_image, right_image) = (self.image(left)?, self.image(right)?);
        self.numbers.set(IMAGES, left, right_image ^ left)?;
        self.numbers.set(IMAGES, right, left_image ^ right)
    }

    /// The image of a cell: itself, if nothing was copied from or to it.
    ///
    /// # Errors
    /// [`Invalid::Index`] for a cell outside; [`spillproof_engine::Error::File`].
    pub fn mapping(&mut self, column: usize, row: u64) -> Result<(usize, u64)> {
        let image = self.image(self.index((column, row))?)?;
        Ok(((image / self.rows) as usize, image % self.rows))
    }

    /// The column of names of the images of one column's cells: `delta^c * omega^r` for the image (c, r). The
    /// first call gives back most of the memory; copies that come later are slower.
    ///
    /// # Errors
    /// [`Invalid::Index`] for a column that there is not; [`spillproof_engine::Error::BudgetTooSmall`],
    /// [`spillproof_engine::Error::OverBudget`], [`spillproof_engine::Error::File`],
    /// [`spillproof_engine::Error::Io`].
    pub fn sigma<F: KernelField + Element>(
        &mut self,
        column: usize,
        omega: F,
        delta: F,
    ) -> Result<Column<F>> {
        let workspace = self.workspace.clone();
        workspace.run(|| self.sigma_in_turn(column, omega, delta))
    }

    fn sigma_in_turn<F: KernelField + Element>(
        &mut self,
        column: usize,
        omega: F,
        delta: F,
    ) -> Result<Column<F>> {
        Invalid::unless_below(COLUMN, column as u64, self.columns as u64)?;
        // From here on images are read, one after the other, and links are not: others may have the memory.
        let cached_bytes = self.numbers.cached_bytes();
        self.numbers.keep_images(&self.workspace)?;
        if self.workspace.is_dry() {
            return self.rehearse_sigma(cached_bytes);
        }
        let names = Names::new(&self.workspace, (self.columns, self.rows), column, omega, delta)?;
        let chunk = chunk_elements::<F>(&self.workspace, SIGMA, &[], 1)?;
        let draft = Draft::scratch(&self.workspace, SIGMA, self.rows, Placement::Passing)?;
        let mut writer = Writer::in_chunks(draft, chunk);
        let tile_len = chunk.min(self.rows) as usize;
        let mut tile = self.workspace.budget.vec(tile_len, F::ZERO, SIGMA)?;
        let start = column as u64 * self.rows;
        let cells = start..start + self.rows;
        match &mut self.numbers {
            Numbers::Narrow(numbers) => numbers.read(IMAGES, cells, |first, images| {
                names.push(first, images, &mut tile, &mut writer)
            })?,
            Numbers::Wide(numbers) => numbers.read(IMAGES, cells, |first, images| {
                names.push(first, images, &mut tile, &mut writer)
            })?,
        }
        writer.finish()
    }

    /// The dry run of a sigma column, where all cells are copied, once and in order; the cache had
    /// `cached_bytes` of both arrays before.
    fn rehearse_sigma<F: KernelField + Element>(&mut self, cached_bytes: u64) -> Result<Column<F>> {
        let (workspace, rows) = (&self.workspace, self.rows);
        let cell_bytes = self.numbers.cell_bytes();
        let images_bytes = self.numbers.array_bytes(IMAGES);
        let kept_bytes = images_bytes
            .min(cached_bytes / 2)
            .min(self.numbers.cached_bytes());
        let stored_bytes = images_bytes - kept_bytes;
        if let Some(dry_run) = workspace.dry_run() {
            if self.dry_sigmas == 0 {
                // Links go out whole, and those images that find no room in the cache.
                dry_run.moved(stored_bytes, self.numbers.array_bytes(LINKS) + stored_bytes);
            }
            // A block that two columns share is read for both.
            let is_shared = !(self.dry_sigmas * rows * cell_bytes).is_multiple_of(self.numbers.block_bytes());
            if is_shared && stored_bytes > 0 {
                dry_run.moved(self.numbers.block_bytes(), 0);
            }
        }
        self.dry_sigmas += 1;
        let (low_len, high_len) = Names::<F>::table_lens(rows);
        let table = |len: u64| workspace.hold(len * F::BYTES as u64, SIGMA);
        let _tables = (table(low_len)?, table(high_len)?, table(high_len)?);
        let chunk = chunk_elements::<F>(workspace, SIGMA, &[], 1)?;
        let draft = Draft::scratch(workspace, SIGMA, rows, Placement::Passing)?;
        let _tile = table(chunk.min(rows))?;
        workspace.passed(1, Work::products(rows as f64));
        Writer::in_chunks(draft, chunk).finish()
    }

    fn index(&self, (column, row): (usize, u64)) -> Result<u64> {
        Invalid::unless_below(COLUMN, column as u64, self.columns as u64)?;
        Invalid::unless_below("row", row, self.rows)?;
        Ok(column as u64 * self.rows + row)
    }

    fn image(&mut self, cell: u64) -> Result<u64> {
        Ok(self.numbers.get(IMAGES, cell)? ^ cell)
    }

    fn cycle(&mut self, mut cell: u64) -> Result<Cycle> {
        let found = |root: u64, link: u64| Cycle {
            root,
            size: (link >> 1) + 1,
        };
        loop {
            let link = self.numbers.get(LINKS, cell)?;
            if link & 1 == 0 {
                return Ok(found(cell, link));
            }
            let parent = link >> 1;
            let above = self.numbers.get(LINKS, parent)?;
            if above & 1 == 0 {
                return Ok(found(parent, above));
            }
            self.numbers.set(LINKS, cell, above)?;
            cell = above >> 1;
        }
    }
}

impl std::fmt::Debug for Copies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Copies")
            .field("columns", &self.columns)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

/// Both arrays, of numbers in four bytes or in eight.
enum Numbers {
    Narrow(Cells<u32>),
    Wide(Cells<u64>),
}

impl Numbers {
    fn cell_bytes(&self) -> u64 {
        match self {
            Self::Narrow(_) => 4,
            Self::Wide(_) => 8,
        }
    }

    fn get(&mut self, array: usize, cell: u64) -> Result<u64> {
        match self {
            Self::Narrow(cells) => cells.get(array, cell).map(u64::from),
            Self::Wide(cells) => cells.get(array, cell),
        }
    }

    fn set(&mut self, array: usize, cell: u64, value: u64) -> Result<()> {
        match self {
            // No value is as large as twice the number of cells, for which 32 bits were found enough.
            Self::Narrow(cells) => cells.set(array, cell, value as u32),
            Self::Wide(cells) => cells.set(array, cell, value),
        }
    }

    /// Gives back most of the memory, links' first.
    fn keep_images(&mut self, workspace: &Workspace) -> Result<()> {
        match self {
            Self::Narrow(cells) => {
                cells.release(LINKS)?;
                cells.shrink_to(Cells::<u32>::default_share_bytes(workspace, 2))
            }
            Self::Wide(cells) => {
                cells.release(LINKS)?;
                cells.shrink_to(Cells::<u64>::default_share_bytes(workspace, 2))
            }
        }
    }

    fn cached_bytes(&self) -> u64 {
        match self {
            Self::Narrow(cells) => cells.cached_bytes(),
            Self::Wide(cells) => cells.cached_bytes(),
        }
    }

    fn array_bytes(&self, array: usize) -> u64 {
        match self {
            Self::Narrow(cells) => cells.array_bytes(array),
            Self::Wide(cells) => cells.array_bytes(array),
        }
    }

    fn block_bytes(&self) -> u64 {
        match self {
            Self::Narrow(cells) => cells.block_bytes(),
            Self::Wide(cells) => cells.block_bytes(),
        }
    }
}

/// Names of cells, `delta^c * omega^r`, as they are seen from one column: most images are in the column
/// itself.
struct Names<F: Copy> {
    rows: u64,
    /// Index of the column's first cell.
    start: u64,
    low_bits: u32,
    /// `omega^i` below `2^low_bits`.
    low: LeasedVec<F>,
    /// `omega^(i * 2^low_bits)`.
    high: LeasedVec<F>,
    /// The same, times the column's `delta^c`: names in the column itself take one multiplication.
    own_high: LeasedVec<F>,
    deltas: Vec<F>,
}

impl<F: KernelField + Element> Names<F> {
    /// Lengths of the tables of low powers, and of high ones.
    fn table_lens(rows: u64) -> (u64, u64) {
        let row_bits = u64::BITS - rows.saturating_sub(1).leading_zeros();
        let low_len = 1 << row_bits.div_ceil(2);
        (low_len, rows.div_ceil(low_len))
    }

    fn new(
        workspace: &Workspace,
        (columns, rows): (usize, u64),
        column: usize,
        omega: F,
        delta: F,
    ) -> Result<Self> {
        let (low_len, high_len) = Self::table_lens(rows);
        let low_bits = low_len.ilog2();
        let table = |len: u64| workspace.budget.vec(len as usize, F::ZERO, "powers of omega");
        let mut deltas = vec![F::ONE; columns];
        powers(&mut deltas, &F::ONE, &delta);
        let mut low = table(low_len)?;
        let (mut high, mut own_high) = (table(high_len)?, table(high_len)?);
        let step = omega.pow([1u64 << low_bits]);
        powers(&mut low, &F::ONE, &omega);
        powers(&mut high, &F::ONE, &step);
        powers(&mut own_high, &deltas[column], &step);
        Ok(Self {
            rows,
            start: column as u64 * rows,
            low_bits,
            low,
            high,
            own_high,
            deltas,
        })
    }

    /// Appends the names of images that stand, XOR their own index, at `first` and behind.
    fn push<T: Copy + Into<u64> + Sync>(
        &self,
        first: u64,
        images: &[T],
        tile: &mut [F],
        writer: &mut Writer<F>,
    ) -> Result<()> {
        let tile_len = tile.len().max(1);
        for (i, images) in images.chunks(tile_len).enumerate() {
            let tile = &mut tile[..images.len()];
            let first = first + (i * tile_len) as u64;
            tile.chunks_mut(PIECE)
                .zip(images.chunks(PIECE))
                .enumerate()
                .parallel()
                .for_each(|(piece, (out, images))| {
                    let first = first + (piece * PIECE) as u64;
                    gathered_products(out, |i| self.factors(images[i].into() ^ (first + i as u64)));
                });
            writer.push(tile)?;
        }
        Ok(())
    }

    /// What a cell's name is the product of.
    #[inline]
    fn factors(&self, cell: u64) -> (&F, &F, Option<&F>) {
        let low = |row: u64| &self.low[(row & ((1 << self.low_bits) - 1)) as usize];
        let high = |row: u64| (row >> self.low_bits) as usize;
        let own_row = cell.wrapping_sub(self.start);
        if own_row < self.rows {
            return (low(own_row), &self.own_high[high(own_row)], None);
        }
        let (column, row) = (cell / self.rows, cell % self.rows);
        (
            low(row),
            &self.high[high(row)],
            Some(&self.deltas[column as usize]),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bn254::Fr;
    use spillproof_engine::budget::Budget;
    use spillproof_engine::storage::Storage;

    #[test]
    fn wide_indices_make_the_same_columns_as_narrow_ones() {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::builder().dir(dir.path()).build().unwrap();
        let budget = Budget::new(1 << 20);
        let workspace = Workspace::new(storage, budget);
        let (columns, rows) = (3, 5000);
        let [narrow, wide] = [false, true].map(|wide| {
            let mut copies = Copies::in_cells(&workspace, columns, rows, wide).unwrap();
            for i in 0..4000u64 {
                let cell = |i: u64| ((i % 3) as usize, i * i % rows);
                copies.copy(cell(i), cell(7 * i + 1)).unwrap();
            }
            let sigma = |column| copies.sigma(column, Fr::from(3u64), Fr::from(5u64)).unwrap();
            (0..columns)
                .map(sigma)
                .map(|sigma| sigma.to_vec().unwrap())
                .collect::<Vec<_>>()
        });
        assert!(narrow == wide);
    }
}
