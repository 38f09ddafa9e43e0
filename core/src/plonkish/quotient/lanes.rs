//! Several columns on their way to the cosets at a time, each in a lane of its own.
//!
//! A lane reads a panel, transforms it for each coset, writes it in bands, and takes the next column when its last panel is read. The
//! transform of a panel has all threads; a wait for the disk, and a band that one thread encodes and hashes, keep one lane from
//! going on, and others go on meanwhile. All columns and all that the lanes hold are there before the first of several lanes starts: what
//! is leased at most does not depend on which lane is ahead. One lane alone leases its buffers as it needs them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use super::coset::Matrix;
use super::plan::BANDS_BEHIND;
use crate::budget::{Buffer, LeasedVec};
use crate::column::{Column, Draft, Element, Reader};
use crate::kernels::field::KernelField;
use crate::kernels::ntt::{NttElement, Twist, columns};
use crate::{Error, Result};

/// Elements that one core copies at a time.
const COPY_ELEMENTS: usize = 8192;

/// See [`Matrix::coset_rows`].
pub(super) fn coset_rows<F: KernelField + NttElement<F> + Element>(
    matrix: &Matrix<F>,
    inputs: &[&Column<F>],
    shifts: &[F],
) -> Result<Vec<Vec<Column<F>>>> {
    let mut waiting = Vec::with_capacity(inputs.len());
    for (index, &input) in inputs.iter().enumerate() {
        let draft = |_| {
            let draft = matrix.draft("columns on a coset", matrix.plan.scratch)?;
            Ok(draft.with_writes_behind(BANDS_BEHIND))
        };
        let drafts = shifts.iter().map(draft).collect::<Result<_>>()?;
        waiting.push((index, input, drafts));
    }
    let pass = Pass {
        matrix,
        shifts,
        waiting: Mutex::new(waiting.into_iter()),
        finished: Mutex::new(Vec::with_capacity(inputs.len())),
        failure: Mutex::new(None),
        stopped: AtomicBool::new(false),
    };
    let mut lanes = Vec::new();
    for _ in 0..matrix.plan.in_flight().min(inputs.len() as u64) {
        lanes.push(pass.lane()?);
    }
    if lanes.len() > 1 {
        rayon::scope(|scope| {
            for lane in lanes {
                let pass = &pass;
                scope.spawn(move |_| pass.run(lane));
            }
        });
    } else {
        lanes.into_iter().for_each(|lane| pass.run(lane));
    }
    pass.outputs()
}

/// A column that no lane has begun: its place among the inputs, and what becomes of it.
type Waiting<'a, F> = (usize, &'a Column<F>, Vec<Draft<F>>);

/// All columns to one set of cosets.
struct Pass<'a, F> {
    matrix: &'a Matrix<'a, F>,
    shifts: &'a [F],
    waiting: Mutex<std::vec::IntoIter<Waiting<'a, F>>>,
    /// Places among the inputs, and a column for each shift.
    finished: Mutex<Vec<(usize, Vec<Column<F>>)>>,
    /// The first error.
    failure: Mutex<Option<Error>>,
    stopped: AtomicBool,
}

/// Memory that one column after the other passes.
struct Lane<'a, F: Copy> {
    tile: LeasedVec<F>,
    /// All shifts but the last take a copy.
    copy: Option<LeasedVec<F>>,
    /// For the bands of each shift's column.
    buffers: Vec<Vec<Buffer>>,
    first: Option<Begun<'a, F>>,
}

/// A column whose first panel is on its way.
struct Begun<'a, F> {
    index: usize,
    input: &'a Column<F>,
    reader: Reader<F>,
    drafts: Vec<Draft<F>>,
}

impl<'a, F: KernelField + NttElement<F> + Element> Pass<'a, F> {
    /// A lane that has begun a column.
    fn lane(&self) -> Result<Lane<'a, F>> {
        let (matrix, plan) = (self.matrix, self.matrix.plan);
        let panel = plan.rows() * plan.panel_width();
        let budget = &matrix.workspace.budget;
        let buffer = |_| budget.buffer_to_fill(plan.band_bytes() as usize, "column writer");
        let bands = match plan.in_flight() {
            1 => 0,
            _ => plan.bands_behind(),
        };
        Ok(Lane {
            tile: matrix.vec(panel, "coset panel")?,
            copy: match self.shifts.len() {
                0 | 1 => None,
                _ => Some(matrix.vec(panel, "coset panel, again")?),
            },
            buffers: self
                .shifts
                .iter()
                .map(|_| (0..bands).map(buffer).collect())
                .collect::<Result<_>>()?,
            first: self.begin_next()?,
        })
    }

    /// The next column, if one is left.
    fn begin_next(&self) -> Result<Option<Begun<'a, F>>> {
        let Some((index, input, drafts)) = locked(&self.waiting).next() else {
            return Ok(None);
        };
        Ok(Some(Begun {
            index,
            input,
            reader: self.matrix.panels(input)?,
            drafts,
        }))
    }

    /// Takes columns to the cosets until none is left, or a lane has failed.
    fn run(&self, mut lane: Lane<'a, F>) {
        let mut begun = lane.first.take();
        while let Some(column) = begun {
            begun = match self.column(&mut lane, column) {
                Ok(next) => next,
                Err(error) => {
                    self.stopped.store(true, Relaxed);
                    locked(&self.failure).get_or_insert(error);
                    None
                }
            };
        }
    }

    /// Takes a column to the cosets, and gives the next one.
    fn column(&self, lane: &mut Lane<'a, F>, column: Begun<'a, F>) -> Result<Option<Begun<'a, F>>> {
        let (matrix, shifts) = (self.matrix, self.shifts);
        let (n2, width) = (matrix.plan.row_len(), matrix.plan.panel_width());
        let mut drafts: Vec<Draft<F>> = (column.drafts.into_iter())
            .zip(&mut lane.buffers)
            .map(|(draft, buffers)| draft.with_buffers(std::mem::take(buffers)))
            .collect();
        let (mut reader, mut next) = (Some(column.reader), None);
        for first_column in (0..n2).step_by(width as usize) {
            if self.stopped.load(Relaxed) {
                return Ok(None);
            }
            if let Some(reader) = &mut reader {
                matrix.read_panel(reader, column.input, &mut lane.tile)?;
            }
            if first_column + width == n2 {
                // The next column's first panel is on its way while this one's last is transformed.
                drop(reader.take());
                next = self.begin_next()?;
            }
            for (i, (shift, draft)) in shifts.iter().zip(&mut drafts).enumerate() {
                let panel = match &mut lane.copy {
                    Some(copy) if i + 1 < shifts.len() => {
                        let pieces = lane.tile.par_chunks(COPY_ELEMENTS);
                        let to = copy.par_chunks_mut(COPY_ELEMENTS);
                        to.zip(pieces).for_each(|(to, piece)| to.copy_from_slice(piece));
                        copy
                    }
                    _ => &mut lane.tile,
                };
                let twist = Twist {
                    root: matrix.omega,
                    first_row: 0,
                    first_column,
                    scale: F::ONE,
                    base: *shift,
                    row: F::ONE,
                };
                let before = shift.pow([n2]);
                columns(panel, width as usize, &matrix.down[0], &before, Some(&twist));
                matrix.write_panel(draft, panel, first_column)?;
            }
        }
        let mut finished = Vec::with_capacity(shifts.len());
        for (draft, buffers) in drafts.into_iter().zip(&mut lane.buffers) {
            let (column, free) = draft.finish_with_buffers()?;
            finished.push(column);
            *buffers = free;
        }
        locked(&self.finished).push((column.index, finished));
        Ok(next)
    }

    /// A list of columns for each shift, in the order of the inputs.
    fn outputs(self) -> Result<Vec<Vec<Column<F>>>> {
        if let Some(error) = unlocked(self.failure) {
            return Err(error);
        }
        let mut finished = unlocked(self.finished);
        finished.sort_unstable_by_key(|(index, _)| *index);
        let mut outputs: Vec<Vec<Column<F>>> = self.shifts.iter().map(|_| Vec::new()).collect();
        for (_, columns) in finished {
            for (outputs, column) in outputs.iter_mut().zip(columns) {
                outputs.push(column);
            }
        }
        Ok(outputs)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unlocked<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
