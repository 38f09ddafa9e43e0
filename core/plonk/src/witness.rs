//! The witness: instance columns, and advice columns phase by phase.
//!
//! Advice cells go to arrays with addresses. At the end of a phase its columns are inverted and written one
//! by one, with random last rows, and committed to together. The transcript takes the instances before the
//! first phase's commitments, and gives challenges after each phase's.
//!
//! Memory: what the engine leases, and the last rows of each column of a phase; nothing that grows with
//! `n = 2^k`.

use std::io;
use std::sync::Once;

use crate::stages::{stored_witness_column, witness_column};
use spillproof_commit::Basis;
use spillproof_engine::column::{Addressed, Cell, Column, Placement, Workspace};
use spillproof_engine::step;
use spillproof_engine::stream::ntt;
use spillproof_kernels::curve::Curve;
use spillproof_kernels::field::KernelField;

use crate::circuit::ConstraintSystem;
use crate::curve::{Scalar, ScalarOf};
use crate::domain::Domain;
use crate::draws::Tail;
use crate::error::Result;
use crate::input::{Values, padded_column};
use crate::outside::Blinded;
use crate::rounds::Rounds;

/// That cells are neither encrypted nor checked is said once.
static WARNED: Once = Once::new();

/// The instance columns of a circuit.
#[derive(Clone, Debug)]
pub struct InstanceColumns<F = Scalar> {
    /// Their values.
    pub values: Vec<Column<F>>,
    /// Their coefficients.
    pub polynomials: Vec<Column<F>>,
}

/// The instance columns of each circuit of a proof.
///
/// # Errors
/// The engine's.
pub(crate) fn instance_columns<F: KernelField>(
    workspace: &Workspace,
    domain: &Domain<F>,
    circuits: &[Vec<Box<dyn Values<F> + '_>>],
) -> Result<Vec<InstanceColumns<F>>> {
    let _step = step!(workspace, "instances");
    let inverse = domain.to_coefficients()?;
    let of_circuit = |instances: &Vec<Box<dyn Values<F> + '_>>| {
        let columns = instances
            .iter()
            .map(|values| padded_column(workspace, domain.rows(), &**values, &[]));
        let values = columns.collect::<spillproof_engine::Result<Vec<_>>>()?;
        let polynomials = values.iter().map(|column| ntt(column, &inverse, Placement::Auto));
        let polynomials = polynomials.collect::<spillproof_engine::Result<_>>()?;
        Ok(InstanceColumns { values, polynomials })
    };
    circuits.iter().map(of_circuit).collect()
}

/// Where the values of advice columns come from.
pub trait AdviceSource<F = Scalar> {
    /// Nothing more is assigned before the columns of a phase are made.
    ///
    /// # Errors
    /// The engine's.
    fn assigned(&mut self) -> Result<()>;
    /// How many cells of a column are read from the disk, if its cells go when it is made. Columns with the fewest are made
    /// first: they make room in memory for the others.
    fn stored_cells(&mut self, _index: usize) -> u64 {
        0
    }
    /// A column with `tail` in its last rows. `then` is the column that is made next, if there is one: its cells are on their way
    /// meanwhile.
    ///
    /// # Errors
    /// The engine's.
    fn column(
        &mut self,
        workspace: &Workspace,
        index: usize,
        then: Option<usize>,
        tail: &[F],
    ) -> Result<Column<F>>;
}

/// Advice of phases that were kept: no column is asked for.
struct Kept;

impl<F> AdviceSource<F> for Kept {
    fn assigned(&mut self) -> Result<()> {
        Err(not_kept())
    }

    fn column(&mut self, _: &Workspace, _: usize, _: Option<usize>, _: &[F]) -> Result<Column<F>> {
        Err(not_kept())
    }
}

fn not_kept() -> crate::Error {
    io::Error::other("a phase of the witness that was not kept").into()
}

/// The advice of one circuit, committed to phase by phase.
pub struct Witness<'a, F = Scalar> {
    workspace: &'a Workspace,
    cs: &'a ConstraintSystem<F>,
    domain: &'a Domain<F>,
    public: &'a [Box<dyn Values<F> + 'a>],
    instance: &'a InstanceColumns<F>,
    phase: usize,
    /// Of the phases that have ended.
    committed: Vec<Option<Blinded<F>>>,
}

impl<'a, F: KernelField> Witness<'a, F> {
    /// Before the first phase. `public` are the values of the instance columns.
    pub fn new(
        workspace: &'a Workspace,
        cs: &'a ConstraintSystem<F>,
        domain: &'a Domain<F>,
        public: &'a [Box<dyn Values<F> + 'a>],
        instance: &'a InstanceColumns<F>,
    ) -> Self {
        Self {
            workspace,
            cs,
            domain,
            public,
            instance,
            phase: 0,
            committed: vec![None; cs.advice_columns()],
        }
    }

    /// The phase that is being assigned.
    pub fn phase(&self) -> usize {
        self.phase
    }

    /// Absorbs the instances, as the protocol says. Some forks do so for each circuit before its first phase,
    /// some for all circuits before the first one's.
    ///
    /// # Errors
    /// The engine's, and the protocol's.
    pub(crate) fn absorb_instances<C: Curve<ScalarField = F>>(
        &self,
        rounds: &mut Rounds<'_, C>,
    ) -> Result<()> {
        let (instances, outside) = (rounds.protocol.instances, &mut *rounds.outside);
        let committed = |column: &usize| instances.are_committed(*column);
        let columns: Vec<usize> = (0..self.public.len()).collect();
        for run in columns.chunk_by(|a, b| committed(a) == committed(b)) {
            if run.first().is_some_and(committed) {
                // Committed to together.
                let columns = run.iter().map(|&column| self.instance.values[column].clone());
                let columns: Vec<_> = columns.map(Blinded::unhidden).collect();
                for commitment in outside.commit(Basis::Lagrange, &columns)? {
                    outside.transcript().common_point(&commitment)?;
                }
                continue;
            }
            for &column in run {
                if instances.have_lengths() {
                    let len = F::from(self.public[column].len() as u64);
                    outside.transcript().common_scalar(len)?;
                }
                self.public[column].for_each_tile(|tile| {
                    tile.iter()
                        .try_for_each(|value| outside.transcript().common_scalar(*value))
                })?;
            }
        }
        Ok(())
    }

    /// Ends a phase: commits to its columns.
    ///
    /// # Errors
    /// The engine's, and the protocol's.
    pub(crate) fn commit_columns<C: Curve<ScalarField = F>>(
        &mut self,
        advice: &mut dyn AdviceSource<F>,
        rounds: &mut Rounds<'_, C>,
    ) -> Result<()> {
        let (phase, rows) = (self.phase, self.domain.rows());
        let columns = of_phase(&self.cs.advice_phases, phase);
        let _step = step!(
            self.workspace,
            "commit advice",
            phase = phase,
            columns = columns.len()
        );
        let mut kept = rounds.kept(self.workspace, columns.len(), rows)?;
        let tail = |column: &usize| match self.cs.unblinded_advice.contains(column) {
            true => Tail::Zeros(self.cs.unusable_rows()),
            false => Tail::Random(self.cs.unusable_rows()),
        };
        let drawn = rounds.draw(columns.iter().map(tail).collect(), columns.len());
        let made = match &mut kept {
            Some(kept) => kept.take_columns(),
            None if columns.is_empty() => Vec::new(),
            None => {
                advice.assigned()?;
                let mut places: Vec<usize> = (0..columns.len()).collect();
                places.sort_by_cached_key(|&place| advice.stored_cells(columns[place]));
                let mut made = vec![None; columns.len()];
                for (at, &place) in places.iter().enumerate() {
                    let then = places.get(at + 1).map(|&next| columns[next]);
                    let column = advice.column(self.workspace, columns[place], then, &drawn.tails[place])?;
                    made[place] = Some(column);
                }
                made.into_iter().flatten().collect()
            }
        };
        debug_assert!(made.iter().all(|column| column.len() == rows));
        let made = rounds.commit(self.workspace, Basis::Lagrange, made, &drawn, kept)?;
        for (&index, column) in columns.iter().zip(made) {
            self.committed[index] = Some(column);
        }
        self.phase += 1;
        Ok(())
    }

    /// Ends a phase of the only circuit that has challenges: commits to its columns, and draws its
    /// challenges, which have a place each.
    ///
    /// # Errors
    /// The engine's, and the protocol's.
    pub(crate) fn commit_phase<C: Curve<ScalarField = F>>(
        &mut self,
        advice: &mut dyn AdviceSource<F>,
        challenges: &mut [Option<F>],
        rounds: &mut Rounds<'_, C>,
    ) -> Result<()> {
        let phase = self.phase;
        self.commit_columns(advice, rounds)?;
        draw_challenges(self.cs, phase, challenges, rounds)
    }

    /// Ends all phases without a circuit, if an earlier run has kept them; `false` if it has not.
    ///
    /// # Errors
    /// As [`Self::commit_phase`].
    pub(crate) fn take_kept<C: Curve<ScalarField = F>>(
        &mut self,
        challenges: &mut [Option<F>],
        rounds: &mut Rounds<'_, C>,
    ) -> Result<bool> {
        if rounds.left() < self.cs.phases() {
            return Ok(false);
        }
        while self.phase < self.cs.phases() {
            self.commit_phase(&mut Kept, challenges, rounds)?;
        }
        Ok(true)
    }

    /// Ends a phase without a circuit, if an earlier run has kept it; `false` if it has not. For forks whose
    /// circuits are synthesised anew in each phase.
    ///
    /// # Errors
    /// As [`Self::commit_columns`].
    pub(crate) fn take_kept_phase<C: Curve<ScalarField = F>>(
        &mut self,
        rounds: &mut Rounds<'_, C>,
    ) -> Result<bool> {
        let is_kept = rounds.left() > 0;
        if is_kept {
            self.commit_columns(&mut Kept, rounds)?;
        }
        Ok(is_kept)
    }

    /// The advice columns, after the last phase.
    pub fn into_columns(self) -> Vec<Blinded<F>> {
        self.committed.into_iter().flatten().collect()
    }
}

/// Draws the challenges of a phase, which have a place each, when all circuits have ended it.
///
/// # Errors
/// For a challenge that is drawn already; the engine's, and the protocol's.
pub(crate) fn draw_challenges<C: Curve>(
    cs: &ConstraintSystem<ScalarOf<C>>,
    phase: usize,
    challenges: &mut [Option<ScalarOf<C>>],
    rounds: &mut Rounds<'_, C>,
) -> Result<()> {
    for index in of_phase(&cs.challenge_phases, phase) {
        if challenges[index].replace(rounds.challenge()?).is_some() {
            let message =
                "a challenge of a phase that several circuits have: it would be drawn once for each";
            return Err(io::Error::other(message).into());
        }
    }
    Ok(())
}

/// The numbers of what is of a phase.
fn of_phase(phases: &[usize], phase: usize) -> Vec<usize> {
    let numbered = phases.iter().enumerate();
    numbered
        .filter(|(_, of)| **of == phase)
        .map(|(index, _)| index)
        .collect()
}

/// Advice cells with addresses: a circuit keeps a reference to each value that it assigns. They live until
/// this is dropped, or, once no address is read any more ([`Self::end_reading`]), until their column is made.
/// A cell that is never assigned is all zero bytes, and takes no space.
///
/// Memory: the share of the cells.
pub struct AdviceCells<T: Cell, F = Scalar> {
    cells: Addressed<T>,
    /// Bytes of the share that stay when columns are made, of all phases or of the only one.
    reading_bytes: u64,
    /// Whether a column's cells go when the column is made.
    are_removed: bool,
    has_one_phase: bool,
    fraction: fn(&T) -> (F, Option<F>),
}

/// An advice cell as limbs in Montgomery form: numerator, and denominator. Without a denominator those are 0.
pub type LimbCell = [[u64; 4]; 2];

/// The numerator of a cell, and its denominator if it has one.
pub(crate) fn fraction<F: KernelField>(cell: &LimbCell) -> (F, Option<F>) {
    let value = |limbs: &[u64; 4]| {
        let mut value = F::ZERO;
        *value.montgomery_limbs_mut() = *limbs;
        value
    };
    let [numerator, denominator] = cell;
    (
        value(numerator),
        (*denominator != [0; 4]).then(|| value(denominator)),
    )
}

impl<T: Cell, F: KernelField> AdviceCells<T, F> {
    /// Cells for a circuit's advice columns. `fraction` gives a cell's numerator, and its denominator if that
    /// is not 1.
    ///
    /// # Errors
    /// If there is no room for them.
    pub fn new(
        workspace: &Workspace,
        cs: &ConstraintSystem<F>,
        domain: &Domain<F>,
        fraction: fn(&T) -> (F, Option<F>),
    ) -> Result<Self> {
        let columns = cs.advice_columns();
        let make = || {
            let (shape, has_one_phase) = ((columns, domain.rows()), cs.phases() == 1);
            let reading_bytes = Addressed::<T>::reading_share_bytes(workspace, shape, has_one_phase);
            let share_bytes = match has_one_phase {
                true => Addressed::<T>::writing_share_bytes(workspace, shape, true),
                // Other columns are committed to between.
                false => reading_bytes,
            };
            let mut cells = Addressed::zeroed(workspace, "advice cells", share_bytes, shape)?;
            if !cells.is_checked() {
                WARNED.call_once(|| {
                    tracing::warn!(
                        "advice cells are NOT ENCRYPTED on the disk, and a disk that changes bytes is not noticed: this kernel, or the \
                         container's filter, allows neither userfaultfd nor memfd_create, and the memory budget has no room for all \
                         cells; allow one of the system calls, or raise the budget"
                    );
                });
            }
            cells.assume_written(reading_bytes);
            Ok(Self {
                cells,
                reading_bytes,
                are_removed: false,
                has_one_phase,
                fraction,
            })
        };
        Ok(workspace.run_here(make)?)
    }

    /// No thread reads a cell by its address any more, since synthesis has returned or gives out no addresses.
    /// Without effect where a later phase may read cells of an earlier one.
    pub fn end_reading(&mut self) {
        self.are_removed = self.has_one_phase;
    }

    /// Assigns a cell, and gives its address; none if there is no such cell.
    ///
    /// # Errors
    /// If the disk fails.
    #[inline]
    pub fn assign(&mut self, column: usize, row: usize, value: T) -> Result<Option<*const T>> {
        if column < self.cells.arrays() && (row as u64) < self.cells.len() {
            return Ok(Some(self.cells.set(column, row as u64, value)?));
        }
        Ok(None)
    }
}

impl<T: Cell, F: KernelField> AdviceSource<F> for AdviceCells<T, F> {
    /// Makes room in memory: cells are read now, column by column.
    fn assigned(&mut self) -> Result<()> {
        let reading_bytes = match self.has_one_phase && !self.are_removed {
            // The circuit has ended its only phase itself, which no plan counts: so the least share.
            true => 0,
            false => self.reading_bytes,
        };
        Ok(self.cells.keep_for_reading(reading_bytes)?)
    }

    fn stored_cells(&mut self, index: usize) -> u64 {
        match self.are_removed {
            true => self.cells.stored_cells(index),
            false => 0,
        }
    }

    fn column(
        &mut self,
        workspace: &Workspace,
        index: usize,
        then: Option<usize>,
        tail: &[F],
    ) -> Result<Column<F>> {
        let column = witness_column(workspace, (&mut self.cells, index, then), self.fraction, tail)?;
        if self.are_removed {
            self.cells.remove(index)?;
        }
        Ok(column)
    }
}

/// Advice columns whose values were stored: but for their last rows, the columns of a proof.
///
/// Memory: a tile, and the buffers of a reader and a writer.
#[derive(Clone, Debug)]
pub struct StoredAdvice<F = Scalar> {
    columns: Vec<Column<F>>,
}

impl<F: KernelField> StoredAdvice<F> {
    /// One column for each advice column of the circuit, with all its rows.
    pub fn new(columns: Vec<Column<F>>) -> Self {
        Self { columns }
    }
}

impl<F: KernelField> AdviceSource<F> for StoredAdvice<F> {
    fn assigned(&mut self) -> Result<()> {
        Ok(())
    }

    fn column(
        &mut self,
        workspace: &Workspace,
        index: usize,
        _then: Option<usize>,
        tail: &[F],
    ) -> Result<Column<F>> {
        let Some(values) = self.columns.get(index) else {
            return Err(io::Error::other(format!("advice column {index} was not stored")).into());
        };
        Ok(stored_witness_column(workspace, &values.in_task(), tail)?)
    }
}
