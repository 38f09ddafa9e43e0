//! A panel in memory, of a transform that is dealt to ranks: it is read and written where it is.

use std::any::Any;
use std::cell::{Cell, RefCell};

use ark_bn254::Fr;

use super::{beyond, declined};
use crate::Result;
use crate::accelerator::{Answer, Half, Lines, Panel, ReadElements, SCALAR_BYTES, WriteElements};
use crate::column::{Element, Workspace};
use crate::dry::Job;
use crate::stream::deal::Group;
use crate::stream::transform::Transform;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;

/// Elements that one thread copies at a time, at least.
const COPIED_AT_A_TIME: usize = 1 << 11;

/// What became of a panel that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    /// It is transformed.
    Done,
    /// It is as it was.
    Declined,
    /// It is declined, and some of it was written before.
    Void,
}

/// A half of a transform as an accelerator makes it; `None` for one that none can make.
pub fn half_of<F: 'static>(transform: &Transform<F>, is_second: bool) -> Option<Half> {
    let transform = (transform as &dyn Any).downcast_ref::<Transform<Fr>>()?;
    let Transform {
        log_n,
        omega,
        before,
        after,
        scale,
    } = *transform;
    Some(Half {
        log_n,
        omega,
        before,
        after,
        scale,
        is_second,
    })
}

/// For a dry run: a panel of `2^log_rows` rows and so many columns is offered.
pub fn offer_panel(workspace: &Workspace, log_rows: u32, columns: u64, halves: &[Half]) {
    let (Some(dry_run), Some(first)) = (workspace.dry_run(), halves.first()) else {
        return;
    };
    let job = Job::Panel {
        log_n: first.log_n,
        log_rows,
        log_columns: columns.ilog2(),
        halves: halves.len() as u32,
    };
    dry_run.offered(job, 0);
}

/// Offers a panel of columns, a power of two of them, for all these halves.
///
/// # Errors
/// Of the budget.
pub fn panel<F: KernelField + Element>(
    workspace: &Workspace,
    elements: &mut [F],
    columns: Group,
    halves: &[Half],
) -> Result<Tried> {
    let accelerator = workspace.accelerator.as_deref().filter(|_| !halves.is_empty());
    let Some(accelerator) = accelerator else {
        return Ok(Tried::Declined);
    };
    let log_rows = (elements.len() as u64 / columns.width).ilog2();
    let (elements, is_written) = (RefCell::new(elements), Cell::new(false));
    let end = || End {
        elements: &elements,
        is_written: &is_written,
        workspace,
    };
    let mut job = Panel {
        log_rows,
        log_columns: columns.width.ilog2(),
        first_column: columns.start,
        halves: halves.to_vec(),
        input: Box::new(end()),
        output: Box::new(end()),
    };
    let answer = accelerator.panel(&mut job, &workspace.budget)?;
    drop(job);
    Ok(match answer {
        Answer::Done(()) => Tried::Done,
        Answer::Declined(why) => {
            declined::<()>("panel of a transform", &why);
            match is_written.get() {
                true => Tried::Void,
                false => Tried::Declined,
            }
        }
    })
}

/// Either end of a panel's job.
struct End<'a, F> {
    elements: &'a RefCell<&'a mut [F]>,
    is_written: &'a Cell<bool>,
    workspace: &'a Workspace,
}

/// The elements of a line, and of which it is one of so many of a slice that begins with the first.
fn in_lines(lines: Lines, bytes: usize, all: usize) -> Result<(usize, usize, std::ops::Range<usize>)> {
    let count = (lines.count as usize).max(1);
    let len = bytes / SCALAR_BYTES / count;
    let step = (lines.step as usize).max(len).max(1);
    let first = lines.first as usize;
    let end = first
        .saturating_add((count - 1).saturating_mul(step))
        .saturating_add(len);
    match end <= all {
        true => Ok((len, step, first..end)),
        false => Err(beyond(lines.first, len)),
    }
}

impl<F: KernelField + Element> ReadElements for End<'_, F> {
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<()> {
        self.read_lines(
            Lines {
                first,
                step: 0,
                count: 1,
            },
            into,
        )
    }

    fn read_lines(&mut self, lines: Lines, into: &mut [u8]) -> Result<()> {
        let elements = self.elements.borrow();
        let (len, step, range) = in_lines(lines, into.len(), elements.len())?;
        let each = elements[range]
            .chunks(step)
            .zip(into.chunks_exact_mut(len * SCALAR_BYTES));
        self.workspace.spread(|| {
            let runs = each.parallel().in_runs_of(COPIED_AT_A_TIME / len.max(1));
            runs.for_each(|(line, into): (&[F], &mut [u8])| {
                for (value, into) in line.iter().zip(into.chunks_exact_mut(SCALAR_BYTES)) {
                    value.encode(into);
                }
            });
        })
    }
}

impl<F: KernelField + Element> WriteElements for End<'_, F> {
    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<()> {
        self.write_lines(
            Lines {
                first,
                step: 0,
                count: 1,
            },
            bytes,
        )
    }

    fn write_lines(&mut self, lines: Lines, bytes: &[u8]) -> Result<()> {
        self.is_written.set(true);
        let mut elements = self.elements.borrow_mut();
        let (len, step, range) = in_lines(lines, bytes.len(), elements.len())?;
        let each = elements[range]
            .chunks_mut(step)
            .zip(bytes.chunks_exact(len * SCALAR_BYTES));
        self.workspace.spread(|| {
            let runs = each.parallel().in_runs_of(COPIED_AT_A_TIME / len.max(1));
            runs.for_each(|(line, from): (&mut [F], &[u8])| {
                for (value, from) in line.iter_mut().zip(from.chunks_exact(SCALAR_BYTES)) {
                    *value = F::decode(from);
                }
            });
        })
    }
}
