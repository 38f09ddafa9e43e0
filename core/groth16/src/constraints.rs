//! The linear combinations of all constraints, for one witness: the first stage of a proof.
//!
//! Algorithm: coefficients are in the order of their constraints, so one pass over them gives the values `a`
//! and `b` of both matrices in the order of rows. A chunk of coefficients is cut where a row ends, and the
//! parts are added up side by side. The third matrix of a rank-1 constraint system does not stand in a key:
//! where the witness satisfies the constraints, its values are `c = a * b`.
//!
//! The witness is read in any order ([`Lookup`]): circuits name neighbouring signals in neighbouring
//! constraints. While a piece of a chunk is added up, coefficients and signals of the next one are read.
//!
//! Memory: the distinct values of coefficients (circuits have a few to some thousands); two chunks of
//! coefficients and their reader; a tile of rows for each of `a`, `b` and `c`, and their writers; the
//! witness, or what of it there is room for.

use std::sync::atomic::{AtomicBool, Ordering};

use spillproof_format::FormatError;

use super::{Coefficient, Shape};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::budget::{LeasedVec, PAGE_BYTES};
use spillproof_engine::column::{
    Column, Draft, Lookup, Placement, Reader, SCRATCH_FRAME_BYTES, Share as LookupShare, Workspace, Writer,
    writer_bytes,
};
use spillproof_engine::dry::Work;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;
use spillproof_kernels::vector;

/// Coefficients, and rows, that are in memory at a time: the largest and the smallest number.
const CHUNK_MAX: u64 = 1 << 16;
const CHUNK_MIN: u64 = 1 << 10;
/// Coefficients that one thread adds up at a time.
const JOB_COEFFICIENTS: usize = 1 << 11;
/// Rows that one thread multiplies at a time.
const JOB_ROWS: usize = 1 << 12;

/// The coefficients of both matrices of a rank-1 constraint system, in the order of their constraints.
#[derive(Clone, Debug)]
pub struct Constraints<F> {
    values: Column<F>,
    coefficients: Column<Coefficient>,
}

impl<F: KernelField> Constraints<F> {
    /// Coefficients, each with the index of its value among the distinct `values`.
    pub fn new(values: Column<F>, coefficients: Column<Coefficient>) -> Self {
        Self { values, coefficients }
    }

    /// Number of coefficients.
    pub fn len(&self) -> u64 {
        self.coefficients.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The distinct values.
    pub fn values(&self) -> &Column<F> {
        &self.values
    }

    /// The coefficients.
    pub fn coefficients(&self) -> &Column<Coefficient> {
        &self.coefficients
    }

    /// The values of both matrices in some rows of the domain, and the products of both, placed as `placement`
    /// says.
    ///
    /// # Errors
    /// [`Error::Format`] for a coefficient outside of the matrices, or out of order;
    /// [`Error::BudgetTooSmall`], [`Error::OverBudget`]; what reading and writing columns may give.
    pub(super) fn evaluate(
        &self,
        witness: &Column<F>,
        shape: &Shape,
        share: Share,
        placement: Placement,
    ) -> Result<[Column<F>; 3]> {
        let (workspace, rows) = (witness.workspace(), share.len());
        let draft =
            |what| Draft::<F>::scratch_with_frames(workspace, what, rows, placement, share.frame_bytes);
        let drafts = [
            draft("values of A")?,
            draft("values of B")?,
            draft("values of C")?,
        ];
        let cut = self.cut(witness, rows)?;
        tracing::debug!(?cut, "values of constraints");
        if workspace.is_dry() {
            return self.rehearse(witness, drafts, &cut);
        }
        let values = load(&self.values, workspace, "values of coefficients")?;
        let tile = || workspace.budget.vec(cut.chunk as usize, F::ZERO, TILE);
        let mut pass = Pass {
            rows,
            ones: [F::ONE, -F::ONE].map(|one| {
                let place = values.iter().position(|value| *value == one);
                place.map_or(u32::MAX, |place| place as u32)
            }),
            values,
            base: 0,
            tiles: [tile()?, tile()?, tile()?],
            writers: drafts.map(|draft| Writer::in_chunks(draft, cut.chunk)),
        };
        let mut source = Source {
            constraints: self,
            shape,
            share,
            reader: self.coefficients.read_ascending(cut.chunk)?,
            next: 0,
            last_row: 0,
        };
        let chunk = || {
            workspace
                .budget
                .vec(cut.chunk as usize, Coefficient::default(), TILE)
        };
        let (mut chunk, mut next_chunk) = (chunk()?, chunk()?);
        let (mut lookup, mut seeker) = Lookup::new(witness, &cut.signals, "witness")?;
        // Of the chunk, where the piece begins that is on its way, and the end.
        let (mut start, mut end) = (0, source.fill(&mut chunk)?);
        let mut sought = seeker.seek(&lookup, signals_of(&chunk[..end]));
        while start < end {
            let middle = start + sought.elements;
            lookup.land(&mut seeker, sought)?;
            let (now, later) = (&chunk[start..middle], &chunk[middle..end]);
            let next = || -> Result<_> {
                let (mut from, mut filled) = (later, 0);
                if from.is_empty() {
                    filled = source.fill(&mut next_chunk)?;
                    from = &next_chunk[..filled];
                }
                Ok((seeker.seek(&lookup, signals_of(from)), filled))
            };
            let (next, added) = rayon::join(next, || pass.add(now, &lookup));
            added?;
            let filled;
            (sought, filled) = next?;
            start = middle;
            if middle == end {
                std::mem::swap(&mut chunk, &mut next_chunk);
                (start, end) = (0, filled);
            }
        }
        pass.finish()
    }

    /// Checks the coefficients from `first` on, of which the one before has this row.
    fn check(&self, chunk: &[Coefficient], first: u64, row_before: u32, shape: &Shape) -> Result<()> {
        let all_fit = AtomicBool::new(true);
        (chunk.chunks(JOB_COEFFICIENTS).enumerate())
            .parallel()
            .for_each(|(job, part)| {
                let start = job * JOB_COEFFICIENTS;
                let mut row_before = start.checked_sub(1).map_or(row_before, |last| chunk[last].row);
                let fits = |coefficient: &Coefficient| {
                    let ascends = coefficient.row >= row_before;
                    row_before = coefficient.row;
                    ascends && coefficient.check(0, 0, shape).is_ok()
                };
                if !part.iter().all(fits) {
                    all_fit.store(false, Ordering::Relaxed);
                }
            });
        match all_fit.into_inner() {
            true => Ok(()),
            false => self.refuse(chunk, first, row_before, shape),
        }
    }

    /// Refuses the first of the coefficients that does not fit, as [`Self::check`] has them.
    fn refuse(&self, chunk: &[Coefficient], first: u64, mut row_before: u32, shape: &Shape) -> Result<()> {
        let refuse = |source| Error::Format {
            file: self.coefficients.name().into(),
            source,
        };
        for (index, coefficient) in (first..).zip(chunk) {
            let offset = self.coefficients.file_offset(index);
            coefficient.check(index, offset, shape).map_err(refuse)?;
            if coefficient.row < row_before {
                return Err(refuse(FormatError::Field {
                    what: "the row of a coefficient",
                    offset,
                    value: coefficient.row.to_string(),
                    remedy: "it is below the row of the coefficient before it, and rows ascend; import the key again",
                }));
            }
            row_before = coefficient.row;
        }
        Ok(())
    }

    /// What is held at one time, of what the budget has left.
    fn cut(&self, witness: &Column<F>, rows: u64) -> Result<Cut> {
        let budget = &witness.workspace().budget;
        let available_bytes = budget.available_bytes();
        let chunks = std::iter::successors(Some(CHUNK_MAX), |chunk| (*chunk > CHUNK_MIN).then(|| chunk / 4));
        let mut needed_bytes = u64::MAX;
        for chunk in chunks {
            let beside_bytes = self.beside_witness_bytes(rows, chunk);
            let left_bytes = available_bytes.saturating_sub(beside_bytes);
            let signals = LookupShare::within(witness, left_bytes);
            // Room for signals pays more than a larger chunk.
            let wanted_bytes = if chunk > CHUNK_MIN { available_bytes / 2 } else { 0 };
            let is_enough = signals.is_whole(witness) || left_bytes >= wanted_bytes;
            if signals.bytes <= left_bytes && is_enough {
                return Ok(Cut { chunk, signals });
            }
            needed_bytes = needed_bytes.min(beside_bytes + LookupShare::within(witness, 0).bytes);
        }
        Err(Error::BudgetTooSmall {
            what: format!(
                "values of {} coefficients beside {} bytes held",
                self.len(),
                budget.held_bytes()
            ),
            needed_bytes: needed_bytes.saturating_add(budget.held_bytes()),
            limit_bytes: budget.limit_bytes(),
        })
    }

    /// What is held beside the witness.
    fn beside_witness_bytes(&self, rows: u64, chunk: u64) -> u64 {
        let scalar_bytes = F::BYTES as u64;
        let writer_bytes = writer_bytes(
            rows * scalar_bytes,
            chunk * scalar_bytes,
            SCRATCH_FRAME_BYTES as u64,
        );
        3 * (writer_bytes + vec_bytes::<F>(chunk))
            + 2 * vec_bytes::<Coefficient>(chunk)
            + self.reader_bytes(chunk)
            + vec_bytes::<F>(self.values.len())
    }

    /// What a reader of coefficients holds. Where frames have no power of two of them, a chunk begins inside
    /// of a frame.
    fn reader_bytes(&self, chunk: u64) -> u64 {
        let frame_elements = self.coefficients.frame_elements();
        let whole_frames = chunk.next_multiple_of(frame_elements);
        let reach = if whole_frames == chunk {
            chunk
        } else {
            whole_frames + frame_elements
        };
        self.coefficients.reader_bytes(reach, 2)
    }

    fn rehearse(&self, witness: &Column<F>, drafts: [Draft<F>; 3], cut: &Cut) -> Result<[Column<F>; 3]> {
        let workspace = witness.workspace();
        let _signals = workspace.hold(cut.signals.bytes, "witness")?;
        let [a, b, c] = &drafts;
        let rows = a.len();
        let _beside = workspace.hold(self.beside_witness_bytes(rows, cut.chunk), TILE)?;
        witness.count_read();
        self.values.count_read();
        self.coefficients.count_read();
        debug_assert!(b.len() == rows && c.len() == rows);
        workspace.passed(1, Work::products((self.len() + rows) as f64));
        let [a, b, c] = drafts.map(Draft::finish);
        Ok([a?, b?, c?])
    }
}

const TILE: &str = "coefficients and rows";

/// What is evaluated: rows of the domain, which are those of some neighbouring columns of a matrix of rows of
/// `row_len`, in ascending order; and of them, the part of some signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// All rows of the domain.
    pub domain: u64,
    /// A power of two.
    pub row_len: u64,
    /// The first column.
    pub first_column: u64,
    /// The number of columns.
    pub columns: u64,
    /// The first signal, and the one behind the last.
    pub signals: [u64; 2],
    /// Bytes of a frame of the columns of values.
    pub frame_bytes: usize,
}

impl Share {
    /// All of a domain.
    pub fn all(shape: &Shape) -> Self {
        Self {
            domain: 1 << shape.log_domain,
            row_len: 1,
            first_column: 0,
            columns: 1,
            signals: [0, shape.signals],
            frame_bytes: SCRATCH_FRAME_BYTES,
        }
    }

    /// Neighbouring rows.
    pub fn rows(shape: &Shape, start: u64, end: u64) -> Self {
        Self {
            row_len: 1 << shape.log_domain,
            first_column: start,
            columns: end - start,
            ..Self::all(shape)
        }
    }

    /// How many.
    pub fn len(&self) -> u64 {
        self.domain / self.row_len * self.columns
    }

    /// The number of a coefficient's row in the share; `None` for a coefficient that is not of it.
    #[inline]
    pub fn row_of(&self, row: u32, signal: u32) -> Option<u32> {
        let (row, signal) = (u64::from(row), u64::from(signal));
        let column = (row & (self.row_len - 1)).wrapping_sub(self.first_column);
        let is_kept = column < self.columns && (self.signals[0]..self.signals[1]).contains(&signal);
        // Not above the row itself.
        is_kept.then(|| ((row >> self.row_len.ilog2()) * self.columns + column) as u32)
    }

    /// Moves the coefficients of the share to the front, with the numbers of their rows in it; how many there
    /// are.
    fn keep(&self, coefficients: &mut [Coefficient], shape: &Shape) -> usize {
        if self.columns == self.row_len && self.signals == [0, shape.signals] {
            return coefficients.len();
        }
        let mut kept = 0;
        for index in 0..coefficients.len() {
            let coefficient = coefficients[index];
            if let Some(row) = self.row_of(coefficient.row, coefficient.signal) {
                coefficients[kept] = Coefficient { row, ..coefficient };
                kept += 1;
            }
        }
        kept
    }
}

/// What is held at one time.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// Coefficients, and rows.
    chunk: u64,
    /// For the witness.
    signals: LookupShare,
}

/// Bytes of so many values in memory.
fn vec_bytes<T>(len: u64) -> u64 {
    (len * size_of::<T>() as u64).next_multiple_of(PAGE_BYTES as u64)
}

/// A whole column in memory.
fn load<F: KernelField>(
    column: &Column<F>,
    workspace: &Workspace,
    what: &'static str,
) -> Result<LeasedVec<F>> {
    let mut values = workspace.budget.vec(column.len() as usize, F::ZERO, what)?;
    let chunk = column.sequential_chunk();
    let mut reader = column.read_ascending(chunk)?;
    for part in values.chunks_mut(chunk as usize) {
        reader.next_into(part)?;
    }
    Ok(values)
}

/// The coefficients, chunk after chunk.
struct Source<'a, F> {
    constraints: &'a Constraints<F>,
    shape: &'a Shape,
    share: Share,
    reader: Reader<Coefficient>,
    /// The index of the next one, and the row of the one before.
    next: u64,
    last_row: u32,
}

impl<F: KernelField> Source<'_, F> {
    /// Reads and checks the next ones, and keeps those of the share, whose rows are numbered anew; how many, 0
    /// at the end.
    fn fill(&mut self, chunk: &mut [Coefficient]) -> Result<usize> {
        while let Some(region) = self.reader.next_into(chunk)? {
            let chunk = &mut chunk[..region.len() as usize];
            (self.constraints).check(chunk, self.next, self.last_row, self.shape)?;
            self.next += region.len();
            self.last_row = chunk.last().map_or(self.last_row, |last| last.row);
            match self.share.keep(chunk, self.shape) {
                0 => {}
                kept => return Ok(kept),
            }
        }
        Ok(0)
    }
}

fn signals_of(coefficients: &[Coefficient]) -> impl Iterator<Item = u64> {
    coefficients
        .iter()
        .map(|coefficient| u64::from(coefficient.signal))
}

/// The pass over the coefficients.
struct Pass<F: KernelField> {
    rows: u64,
    /// The distinct values of coefficients.
    values: LeasedVec<F>,
    /// The places of one and of minus one there.
    ones: [u32; 2],
    /// The first row in the tiles.
    base: u64,
    tiles: [LeasedVec<F>; 3],
    writers: [Writer<F>; 3],
}

impl<F: KernelField> Pass<F> {
    /// Adds checked coefficients, which go on where the last ones ended, and whose signals are there.
    fn add(&mut self, mut coefficients: &[Coefficient], signals: &Lookup<F>) -> Result<()> {
        while let Some(next) = coefficients.first() {
            let tile_rows = self.tiles[0].len() as u64;
            while u64::from(next.row) >= self.base + tile_rows {
                self.flush(tile_rows)?;
            }
            let end = self.base + tile_rows;
            let here = coefficients.partition_point(|coefficient| u64::from(coefficient.row) < end);
            let (now, later) = coefficients.split_at(here);
            let [a, b, _] = &mut self.tiles;
            let factors = Factors {
                signals,
                values: &self.values,
                ones: self.ones,
            };
            add_side_by_side((now, self.base as u32), factors, (a, b));
            coefficients = later;
        }
        Ok(())
    }

    /// Writes the first `rows` rows of the tiles, and goes on behind them.
    fn flush(&mut self, rows: u64) -> Result<()> {
        let [a, b, c] = &mut self.tiles;
        let rows = rows as usize;
        (c[..rows].chunks_mut(JOB_ROWS))
            .zip(a[..rows].chunks(JOB_ROWS))
            .zip(b[..rows].chunks(JOB_ROWS))
            .parallel()
            .for_each(|((c, a), b)| vector::product(c, a, b));
        for (writer, tile) in self.writers.iter_mut().zip(&mut self.tiles) {
            writer.push(&tile[..rows])?;
            tile.chunks_mut(JOB_ROWS)
                .parallel()
                .for_each(|tile| tile.fill(F::ZERO));
        }
        self.base += rows as u64;
        Ok(())
    }

    fn finish(mut self) -> Result<[Column<F>; 3]> {
        while self.base < self.rows {
            self.flush((self.tiles[0].len() as u64).min(self.rows - self.base))?;
        }
        let [a, b, c] = self.writers;
        Ok([a.finish()?, b.finish()?, c.finish()?])
    }
}

/// What coefficients name.
#[derive(Clone, Copy)]
struct Factors<'a, F: KernelField> {
    signals: &'a Lookup<F>,
    /// The distinct values of coefficients, and the places of one and of minus one among them.
    values: &'a [F],
    ones: [u32; 2],
}

/// Adds a run of coefficients, whose rows begin at `base` or later, cut between rows, on all threads.
fn add_side_by_side<F: KernelField>(
    (now, base): (&[Coefficient], u32),
    factors: Factors<'_, F>,
    (a, b): (&mut [F], &mut [F]),
) {
    let middle = (now.len() > JOB_COEFFICIENTS)
        .then(|| row_start_near(now, now.len() / 2))
        .flatten();
    let Some(middle) = middle else {
        return add((now, base), factors, (a, b));
    };
    let row = now[middle].row;
    let at = (row - base) as usize;
    let (first, second) = now.split_at(middle);
    let ((a_first, a_second), (b_first, b_second)) = (a.split_at_mut(at), b.split_at_mut(at));
    rayon::join(
        || add_side_by_side((first, base), factors, (a_first, b_first)),
        || add_side_by_side((second, row), factors, (a_second, b_second)),
    );
}

/// The index of the first coefficient of a row, not the first of all, near `index`; none if all are of one
/// row.
fn row_start_near(coefficients: &[Coefficient], index: usize) -> Option<usize> {
    let row = coefficients.get(index)?.row;
    let start = coefficients.partition_point(|coefficient| coefficient.row < row);
    if start > 0 {
        return Some(start);
    }
    let next = coefficients.partition_point(|coefficient| coefficient.row <= row);
    (next < coefficients.len()).then_some(next)
}

fn add<F: KernelField>(
    (now, base): (&[Coefficient], u32),
    factors: Factors<'_, F>,
    (a, b): (&mut [F], &mut [F]),
) {
    let [one, minus_one] = factors.ones;
    for coefficient in now {
        let signal = factors.signals.get(u64::from(coefficient.signal));
        if signal.is_zero() {
            continue;
        }
        let sums = if coefficient.matrix == 1 { &mut *b } else { &mut *a };
        let sum = &mut sums[(coefficient.row - base) as usize];
        *sum = match coefficient.value {
            value if value == one => sum.plus(signal),
            value if value == minus_one => sum.minus(signal),
            value => sum.plus(&factors.values[value as usize].times(signal)),
        };
    }
}
