//! A program over columns of values, row by row: compressed lookup expressions, the parts of a permutation's
//! product.
//!
//! Shapes: columns of `rows` values; row i of a query with rotation r is row `i + r` modulo `rows`. Rows come
//! in chunks. For each column that the program reads, a window of a chunk and the column's own halo (from its
//! smallest to its largest rotation) is read, the next one on its way meanwhile; blocks of rows are evaluated
//! on all threads; each output is written behind. Where a window would be longer than the column, it goes
//! round again in memory.
//!
//! Memory, with chunk c, h the halo, and pages rounded up:
//!
//! ```text
//! per column read:  (c + h) * 32 decoded, and the frames of as many on the way
//! per output:       c * 32 and twice as much being written
//! registers:        threads * registers * 256 * 40
//! ```

use super::evaluate::register_scalars;
use super::program::Program;
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::budget::{Budget, LeasedVec, PAGE_BYTES};
use spillproof_engine::column::{
    Column, Draft, Element, Placement, Reader, Region, SCRATCH_FRAME_BYTES, Workspace, digests_bytes,
    memory_bytes,
};
use spillproof_engine::dry::Work;
use spillproof_engine::error::Invalid;
use spillproof_kernels::field::KernelField;

const WHAT: &str = "evaluated rows";
/// Rows of a chunk, at most: a mebibyte of scalars.
const CHUNK_ROWS_MAX: u64 = 1 << 15;
/// Bytes of the smallest frame, and so of the smallest chunk.
const FRAME_BYTES_MIN: u64 = 4096;
/// Buffers that a draft has at most: what is behind.
const WRITE_BUFFERS: u64 = 2;

/// Evaluates `program` in every row and writes each output as a column.
///
/// # Errors
/// [`Error::Invalid`] if the program reads a column that is not there or does not have `rows` values;
/// [`Error::BudgetTooSmall`] before anything is read; [`Error::Io`], [`Error::Damaged`].
pub fn evaluate_rows<F: KernelField + Element>(
    workspace: &Workspace,
    columns: &[&Column<F>],
    program: &Program<F>,
    rows: u64,
    placement: Placement,
) -> Result<Vec<Column<F>>> {
    workspace.run(|| evaluate_in_turn(workspace, columns, program, rows, placement))
}

fn evaluate_in_turn<F: KernelField + Element>(
    workspace: &Workspace,
    columns: &[&Column<F>],
    program: &Program<F>,
    rows: u64,
    placement: Placement,
) -> Result<Vec<Column<F>>> {
    let available = workspace.budget.available_bytes();
    let chunk_min = FRAME_BYTES_MIN / F::BYTES as u64;
    let mut chunk = CHUNK_ROWS_MAX.min(rows.next_power_of_two()).max(chunk_min);
    let needed = loop {
        let windows = Windows::new(columns, program, rows, chunk)?;
        let needed = windows.leased_bytes(placement, &workspace.budget);
        if needed <= available {
            return match workspace.is_dry() {
                true => windows.rehearse(workspace, placement),
                false => windows.run(workspace, placement),
            };
        }
        if chunk == chunk_min {
            break needed;
        }
        chunk /= 2;
    };
    let held = workspace.budget.held_bytes();
    Err(Error::BudgetTooSmall {
        what: format!("the evaluation of a program over {rows} rows beside {held} bytes held"),
        needed_bytes: needed + held,
        limit_bytes: workspace.budget.limit_bytes(),
    })
}

/// In whole pages.
pub(super) fn pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE_BYTES as u64)
}

/// A column that the program reads.
struct Window<'a, F> {
    column: &'a Column<F>,
    index: usize,
    /// Smallest rotation.
    first: i64,
    /// Largest rotation, less the smallest.
    halo: u64,
}

/// The rows of a column that the chunk at `start` reads, no row twice.
fn region(rows: u64, chunk: u64, start: u64, (first, halo): (i64, u64)) -> Region {
    Region::Wrapped {
        start: (start as i64 + first).rem_euclid(rows as i64) as u64,
        len: (chunk.min(rows - start) + halo).min(rows),
        modulus: rows,
    }
}

impl<F: Element> Window<'_, F> {
    /// Reads a window for each chunk.
    fn reader(&self, rows: u64, chunk: u64) -> Result<Reader<F>> {
        let rotations = (self.first, self.halo);
        let starts = (0..rows).step_by(chunk as usize);
        self.column
            .reader(starts.map(move |start| region(rows, chunk, start, rotations)), 1)
    }

    /// Bytes of the frames that the largest window reads, and all of them.
    fn bytes(&self, rows: u64, chunk: u64) -> (u64, u64) {
        let chunks = rows.div_ceil(chunk);
        let bytes = |at: u64| {
            let region = region(rows, chunk, at * chunk, (self.first, self.halo));
            self.column.region_bytes(region)
        };
        // All but the first and the last stand alike in their frames, since chunks are whole frames or whole
        // parts of one.
        let (seen, all) = if chunks <= 64 {
            let seen: Vec<u64> = (0..chunks).map(bytes).collect();
            let all = seen.iter().sum();
            (seen, all)
        } else {
            let [first, middle, last] = [0, chunks / 2, chunks - 1].map(bytes);
            (vec![first, middle, last], first + (chunks - 2) * middle + last)
        };
        (seen.into_iter().max().unwrap_or(0), all)
    }
}

struct Windows<'a, F> {
    program: &'a Program<F>,
    windows: Vec<Window<'a, F>>,
    rows: u64,
    chunk: u64,
}

impl<'a, F: KernelField + Element> Windows<'a, F> {
    fn new(columns: &[&'a Column<F>], program: &'a Program<F>, rows: u64, chunk: u64) -> Result<Self> {
        let mut windows = Vec::new();
        for index in 0..program.columns() {
            let Some((first, last)) = program.rotations(index) else {
                continue;
            };
            let column = columns.get(index).filter(|column| column.len() == rows);
            let Some(column) = column else {
                let held = columns.get(index).map_or(0, |column| column.len());
                return Err(Invalid::Length {
                    what: format!("rows of column {index} of a program"),
                    given: held,
                    expected: rows,
                }
                .into());
            };
            windows.push(Window {
                column,
                index,
                first: i64::from(first),
                halo: (i64::from(last) - i64::from(first)) as u64,
            });
        }
        Ok(Self {
            program,
            windows,
            rows,
            chunk,
        })
    }

    fn frame_bytes(&self) -> u64 {
        (self.chunk * F::BYTES as u64).min(SCRATCH_FRAME_BYTES as u64)
    }

    /// Bytes that are leased, at most.
    fn leased_bytes(&self, placement: Placement, budget: &Budget) -> u64 {
        let element_bytes = F::BYTES as u64;
        let window = |window: &Window<'_, F>| {
            let (len, frame) = (self.chunk + window.halo, window.column.frame_elements());
            // A window may begin and end within a frame, and so may its other part when it wraps around.
            let frames = len.min(self.rows).div_ceil(frame) + 3;
            pages(len * element_bytes) + pages(frames * frame * element_bytes)
        };
        let windows: u64 = self.windows.iter().map(window).sum();
        let frames = (self.rows * element_bytes).div_ceil(self.frame_bytes());
        let column_bytes = frames * self.frame_bytes();
        let in_memory = match placement.now(budget, column_bytes) {
            Placement::Memory => memory_bytes(frames, self.frame_bytes()),
            _ => digests_bytes::<F>(column_bytes, self.frame_bytes()),
        };
        let tile = pages(self.chunk * element_bytes);
        let output = (1 + WRITE_BUFFERS) * tile + in_memory;
        windows + output * self.program.outputs() as u64 + self.registers_bytes()
    }

    fn registers_bytes(&self) -> u64 {
        let (registers, _) = register_scalars(self.program.registers(), rayon::current_num_threads());
        pages((registers * F::BYTES) as u64)
    }

    fn drafts(&self, workspace: &Workspace, placement: Placement) -> Result<Vec<Draft<F>>> {
        let frame_bytes = self.frame_bytes() as usize;
        let draft = |_| Draft::scratch_with_frames(workspace, WHAT, self.rows, placement, frame_bytes);
        (0..self.program.outputs()).map(draft).collect()
    }

    /// The dry run of [`Self::run`].
    fn rehearse(&self, workspace: &Workspace, placement: Placement) -> Result<Vec<Column<F>>> {
        let (rows, chunk, element_bytes) = (self.rows, self.chunk, F::BYTES as u64);
        let mut held = Vec::new();
        for window in &self.windows {
            let (largest, all) = window.bytes(rows, chunk);
            held.push(workspace.hold(largest, WHAT)?);
            held.push(workspace.hold((chunk + window.halo) * element_bytes, WHAT)?);
            window.column.count_read_bytes(all);
        }
        let drafts = self.drafts(workspace, placement)?;
        for _ in &drafts {
            held.push(workspace.hold(chunk * element_bytes, WHAT)?);
        }
        held.push(workspace.hold(self.registers_bytes(), WHAT)?);
        let buffers = drafts.iter().map(|draft| draft.writer_bytes(chunk)).sum();
        held.push(workspace.hold(buffers, WHAT)?);
        workspace.passed(
            1,
            Work::products(self.program.instructions() as f64 * rows as f64),
        );
        drafts.into_iter().map(Draft::finish).collect()
    }

    fn run(&self, workspace: &Workspace, placement: Placement) -> Result<Vec<Column<F>>> {
        let budget = &workspace.budget;
        let (rows, chunk) = (self.rows, self.chunk);
        let vec = |len: u64, what: &'static str| budget.vec(len as usize, F::ZERO, what);
        let mut readers = Vec::new();
        let mut windows: Vec<LeasedVec<F>> = Vec::new();
        for window in &self.windows {
            readers.push(window.reader(rows, chunk)?);
            windows.push(vec(chunk + window.halo, "rows of a column")?);
        }
        let mut drafts = self.drafts(workspace, placement)?;
        let mut tiles: Vec<LeasedVec<F>> = Vec::new();
        for _ in &drafts {
            tiles.push(vec(chunk, WHAT)?);
        }
        let (registers, part) = register_scalars(self.program.registers(), rayon::current_num_threads());
        let mut registers = vec(registers as u64, "program registers")?;
        for start in (0..rows).step_by(chunk as usize) {
            let len = chunk.min(rows - start);
            for ((reader, values), window) in readers.iter_mut().zip(&mut windows).zip(&self.windows) {
                reader.next_into(values)?;
                // Round again, where the column is shorter than the window.
                for i in rows as usize..(len + window.halo) as usize {
                    values[i] = values[i - rows as usize];
                }
            }
            let inputs: Vec<&[F]> = self
                .program
                .queries()
                .iter()
                .filter_map(|&(column, rotation)| {
                    let at = self.windows.iter().position(|window| window.index == column)?;
                    let first = (i64::from(rotation) - self.windows[at].first) as usize;
                    Some(&windows[at][first..first + len as usize])
                })
                .collect();
            let mut outputs: Vec<&mut [F]> = tiles.iter_mut().map(|tile| &mut tile[..len as usize]).collect();
            self.program
                .evaluate_parallel(&inputs, &mut outputs, &mut registers, part);
            for (draft, tile) in drafts.iter_mut().zip(&tiles) {
                draft.write(Region::Span { start, len }, tile)?;
            }
        }
        drafts.into_iter().map(Draft::finish).collect()
    }
}
