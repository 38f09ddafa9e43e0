//! Panels of columns on their way to the cosets and back, several at a time, each in a lane of its own.
//!
//! A lane reads a panel, transforms it for each leg, writes it in bands, and takes the next panel that no
//! lane has begun, of this column or the next one. All columns and all that the lanes hold are there before
//! the first lane starts: what is leased at most does not depend on which lane is ahead.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::matrix::{Leg, Matrix};
use crate::stages::side_by_side::{Stopped, side_by_side};
use spillproof_engine::Result;
use spillproof_engine::budget::LeasedVec;
use spillproof_engine::column::{Behind, Column, Element, Placement, Reader, SharedDraft};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::ntt::{NttElement, Twiddles, Twist, columns};
use spillproof_kernels::parallel::Parallel;

/// Elements that one core copies at a time.
const COPY_ELEMENTS: usize = 8192;

/// What becomes of each column: one column for each leg.
pub(super) struct Way<'a, F> {
    pub twiddles: &'a Twiddles<F>,
    pub legs: Vec<Leg<F>>,
    pub what: &'static str,
    /// Where the columns that come of an input are put, by the input's index.
    pub placement: &'a (dyn Fn(usize) -> Placement + Sync),
}

impl<'a, F: KernelField + NttElement<F> + Element> Way<'a, F> {
    /// Takes `inputs` that way: for each leg a list of columns, in the order of the inputs.
    pub fn take(self, matrix: &'a Matrix<'a, F>, inputs: &'a [&'a Column<F>]) -> Result<Vec<Vec<Column<F>>>> {
        let plan = matrix.plan;
        let drafts = |index: usize| {
            let draft = |_| Ok(matrix.draft(self.what, (self.placement)(index))?.share());
            self.legs.iter().map(draft).collect::<Result<Vec<_>>>()
        };
        let pass = Pass {
            matrix,
            inputs,
            outputs: (0..inputs.len()).parallel().try_map(drafts)?,
            way: self,
            next: AtomicU64::new(0),
        };
        let panels = inputs.len() as u64 * plan.panels();
        // Side by side, too: fresh memory is slow.
        let lanes = (0..plan.in_flight().min(panels) as usize).parallel();
        let lanes = lanes.try_map(|_| pass.lane())?;
        side_by_side(lanes, |lane, stopped| pass.run(lane, stopped))?;
        let mut columns: Vec<Vec<Column<F>>> = pass.way.legs.iter().map(|_| Vec::new()).collect();
        for outputs in pass.outputs {
            for (columns, output) in columns.iter_mut().zip(outputs) {
                columns.push(output.finish());
            }
        }
        Ok(columns)
    }
}

/// All columns on one way.
struct Pass<'a, F: Copy> {
    matrix: &'a Matrix<'a, F>,
    way: Way<'a, F>,
    inputs: &'a [&'a Column<F>],
    /// Of each input, a column for each leg.
    outputs: Vec<Vec<SharedDraft<F>>>,
    /// The panel that no lane has begun, counted through all inputs.
    next: AtomicU64,
}

/// Memory that one panel after the other passes.
struct Lane<F: Copy> {
    tile: LeasedVec<F>,
    /// All legs but the last take a copy.
    copy: Option<LeasedVec<F>>,
    /// Bands that are being written.
    behind: Behind,
    first: Option<Begun<F>>,
}

/// A panel that is on its way from the disk.
struct Begun<F> {
    input: usize,
    first_column: u64,
    reader: Reader<F>,
}

impl<F: KernelField + NttElement<F> + Element> Pass<'_, F> {
    /// A lane that has begun a panel.
    fn lane(&self) -> Result<Lane<F>> {
        let (matrix, plan) = (self.matrix, self.matrix.plan);
        let panel = plan.rows() * plan.panel_width();
        let bands = plan.bands_behind(self.inputs.len() as u64, self.way.legs.len() as u64);
        let budget = &matrix.workspace.budget;
        let buffer = |_| budget.buffer_to_fill(plan.band_bytes() as usize, "column writer");
        Ok(Lane {
            tile: matrix.vec(panel, "coset panel")?,
            copy: match self.way.legs.len() {
                0 | 1 => None,
                _ => Some(matrix.vec(panel, "coset panel, again")?),
            },
            behind: Behind::with_buffers((0..bands).map(buffer).collect::<Result<_>>()?, bands as usize),
            first: self.begin_next()?,
        })
    }

    /// The next panel, if one is left.
    fn begin_next(&self) -> Result<Option<Begun<F>>> {
        let (panels, width) = (self.matrix.plan.panels(), self.matrix.plan.panel_width());
        let next = self.next.fetch_add(1, Relaxed);
        let (input, first_column) = ((next / panels) as usize, next % panels * width);
        let Some(column) = self.inputs.get(input) else {
            return Ok(None);
        };
        Ok(Some(Begun {
            input,
            first_column,
            reader: self.matrix.panel(column, first_column)?,
        }))
    }

    /// Takes panels until none is left.
    fn run(&self, mut lane: Lane<F>, stopped: &Stopped) -> Result<()> {
        let mut begun = lane.first.take();
        while let Some(panel) = begun.take().filter(|_| !stopped.is_set()) {
            begun = self.pass(&mut lane, panel)?;
        }
        lane.behind.landed()
    }

    /// Takes a panel its way, and begins the next one.
    fn pass(&self, lane: &mut Lane<F>, panel: Begun<F>) -> Result<Option<Begun<F>>> {
        let (matrix, width) = (self.matrix, self.matrix.plan.panel_width());
        let Begun {
            input,
            first_column,
            mut reader,
        } = panel;
        matrix.read_panel(&mut reader, self.inputs[input], &mut lane.tile)?;
        // The next one is on its way while this one is transformed.
        drop(reader);
        let next = self.begin_next()?;
        let legs = &self.way.legs;
        for (i, (leg, output)) in legs.iter().zip(&self.outputs[input]).enumerate() {
            let panel = match &mut lane.copy {
                Some(copy) if i + 1 < legs.len() => {
                    let pieces = lane.tile.chunks(COPY_ELEMENTS);
                    let to = copy.chunks_mut(COPY_ELEMENTS);
                    to.zip(pieces)
                        .parallel()
                        .for_each(|(to, piece)| to.copy_from_slice(piece));
                    copy
                }
                _ => &mut lane.tile,
            };
            let twist = Twist {
                first_column,
                ..leg.twist
            };
            columns(
                panel,
                width as usize,
                self.way.twiddles,
                &leg.before,
                Some(&twist),
            );
            let behind = std::mem::replace(&mut lane.behind, Behind::new(1));
            let mut part = output.part(behind);
            matrix.write_panel(&mut part, panel, first_column)?;
            lane.behind = part.into_behind();
        }
        Ok(next)
    }
}
