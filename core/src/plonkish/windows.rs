//! A program over columns of values, row by row: compressed lookup expressions, the parts of a permutation's product.
//!
//! Shapes: columns of `rows` values; row i of a query with rotation r is row `i + r` modulo `rows`. Rows come in chunks.
//! For each column that the program reads, a window of a chunk and the column's own halo (from its smallest to its
//! largest rotation) is read, the next one on its way meanwhile; blocks of rows are evaluated on all threads; each output
//! is written behind. Where a window would be longer than the column, it goes round again in memory.
//!
//! Memory, with chunk c, h the halo, and pages rounded up:
//!
//! ```text
//! per column read:  (c + h) * 32 decoded, and the frames of as many on the way
//! per output:       c * 32 and twice as much being written, digests
//! registers:        threads * registers * 256 * 40
//! ```

use super::evaluate::register_scalars;
use super::program::Program;
use crate::budget::{LeasedVec, PAGE_BYTES};
use crate::column::{Column, Draft, Element, Placement, Reader, Region, SCRATCH_FRAME_BYTES, Workspace};
use crate::kernels::field::KernelField;
use crate::{Error, Result};

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
        let plan = Windows::new(columns, program, rows, chunk)?;
        let needed = plan.leased_bytes(placement, available);
        if needed <= available {
            return plan.run(workspace, placement);
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

/// What the choice of a chunk has to know.
pub(crate) struct WindowsShape {
    /// Rows of each column.
    pub rows: u64,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// Halo and elements in a frame of each column that is read.
    pub windows: Vec<(u64, u64)>,
    /// Registers of the program.
    pub registers: usize,
    /// Its outputs.
    pub outputs: usize,
}

impl WindowsShape {
    /// Chunks that are tried, the largest first.
    pub fn chunks(&self) -> impl Iterator<Item = u64> + use<> {
        let chunk_min = FRAME_BYTES_MIN / self.element_bytes;
        let chunk = CHUNK_ROWS_MAX.min(self.rows.next_power_of_two()).max(chunk_min);
        std::iter::successors(Some(chunk), move |chunk| {
            (*chunk > chunk_min).then_some(chunk / 2)
        })
    }

    /// Bytes of a frame of the outputs.
    pub fn frame_bytes(&self, chunk: u64) -> u64 {
        (chunk * self.element_bytes).min(SCRATCH_FRAME_BYTES as u64)
    }

    /// Bytes that are leased with chunks of `chunk` rows, at most.
    pub fn leased_bytes(&self, chunk: u64, placement: Placement, available: u64) -> u64 {
        let pages = |bytes: u64| bytes.next_multiple_of(PAGE_BYTES as u64);
        let element_bytes = self.element_bytes;
        let window = |(halo, frame): &(u64, u64)| {
            let len = chunk + halo;
            // A window may begin and end within a frame, and so may its other part when it wraps around.
            let frames = len.min(self.rows).div_ceil(*frame) + 3;
            pages(len * element_bytes) + pages(frames * frame * element_bytes)
        };
        let windows: u64 = self.windows.iter().map(window).sum();
        let frames = (self.rows * element_bytes).div_ceil(self.frame_bytes(chunk));
        let column_bytes = frames * self.frame_bytes(chunk);
        let in_memory = match placement {
            Placement::Disk => 0,
            Placement::Memory => column_bytes,
            Placement::Auto if column_bytes <= available / 32 => column_bytes,
            Placement::Auto => 0,
        };
        let output = pages(chunk * element_bytes)
            + WRITE_BUFFERS * pages(chunk * element_bytes)
            + pages(frames * 32)
            + in_memory;
        let (registers, _) = register_scalars(self.registers, rayon::current_num_threads());
        windows + output * self.outputs as u64 + pages(registers as u64 * element_bytes)
    }
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

impl<F: Element> Window<'_, F> {
    /// Reads a window for each chunk, no row twice in one.
    fn reader(&self, rows: u64, chunk: u64) -> Result<Reader<F>> {
        let (first, halo) = (self.first, self.halo);
        let regions = (0..rows)
            .step_by(chunk as usize)
            .map(move |start| Region::Wrapped {
                start: (start as i64 + first).rem_euclid(rows as i64) as u64,
                len: (chunk.min(rows - start) + halo).min(rows),
                modulus: rows,
            });
        self.column.reader(regions, 1)
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
                return Err(Error::Invalid {
                    what: "columns of a program",
                    details: format!("it reads column {index} of {rows} rows, which has {held}"),
                });
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

    fn leased_bytes(&self, placement: Placement, available: u64) -> u64 {
        let shape = WindowsShape {
            rows: self.rows,
            element_bytes: F::BYTES as u64,
            windows: (self.windows.iter())
                .map(|window| (window.halo, window.column.frame_elements()))
                .collect(),
            registers: self.program.registers(),
            outputs: self.program.outputs(),
        };
        shape.leased_bytes(self.chunk, placement, available)
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
        let mut drafts = Vec::new();
        let mut tiles: Vec<LeasedVec<F>> = Vec::new();
        for _ in 0..self.program.outputs() {
            let frame_bytes = self.frame_bytes() as usize;
            drafts.push(Draft::scratch_with_frames(
                workspace,
                "evaluated rows",
                rows,
                placement,
                frame_bytes,
            )?);
            tiles.push(vec(chunk, "evaluated rows")?);
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
