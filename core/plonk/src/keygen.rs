//! Keygen: what a circuit assigns, and the columns and commitments that become of it.
//!
//! The circuit is synthesised into arrays of cells: fixed cells, selectors (a bit each) and copies. Then, as
//! streams: fixed columns, columns of selectors (combined or not), sigma columns, commitments, coefficients.
//!
//! Which selectors share a column depends on which pairs are on in one row, and on degrees; so a halo2's own
//! function is asked with the rows of [`activations`]. What it puts in the first of these rows is what each
//! selector adds to each column.
//!
//! Memory: what the engine leases; nothing that grows with `n = 2^k`.

use crate::stages::{Copies, FixedCells, Selectors, indicator};
use spillproof_engine::column::{Column, Element, Placement, Workspace};
use spillproof_engine::step;
use spillproof_engine::stream::ntt;
use spillproof_kernels::field::KernelField;

use crate::circuit::ColumnId;
use crate::curve::{Point, Scalar};
use crate::domain::Domain;
use crate::error::Result;
use crate::prover::KeyColumns;
use crate::selectors::{SelectorBits, SelectorWriter, activations};

/// Sigma columns that are on disk at a time while they are committed to.
const SIGMAS_TOGETHER: usize = 8;

/// Says for each column that takes the place of selectors what each of them adds to it. It gets the rows of
/// [`activations`], with the pairs that meet if selectors are to be compressed.
pub type Replacements<'r, F = Scalar> = dyn FnMut(Vec<Vec<bool>>) -> Vec<Vec<F>> + 'r;

/// What a circuit assigns for its keys.
pub struct Assembly<F: Element = Scalar> {
    /// Cells of fixed columns.
    pub fixed: FixedCells<F>,
    /// Rows in which selectors are on.
    pub selectors: Selectors,
    /// Cells that are equal, in columns numbered as in `permuted`.
    pub copies: Copies,
    permuted: Vec<ColumnId>,
}

impl<F: KernelField> Assembly<F> {
    /// Nothing assigned yet, in `rows` rows.
    ///
    /// # Errors
    /// The engine's.
    pub(crate) fn new(
        workspace: &Workspace,
        rows: u64,
        fixed_columns: usize,
        selectors: usize,
        permuted: Vec<ColumnId>,
    ) -> Result<Self> {
        let columns = permuted.len();
        let make = || {
            Ok(Self {
                fixed: FixedCells::new(workspace, fixed_columns, rows)?,
                selectors: Selectors::new(workspace, selectors, rows)?,
                copies: Copies::new(workspace, columns, rows)?,
                permuted,
            })
        };
        Ok(workspace.run_here(make)?)
    }

    /// The number of a permuted column.
    pub fn permuted(&self, column: ColumnId) -> Option<usize> {
        self.permuted.iter().position(|permuted| *permuted == column)
    }

    /// Makes the fixed columns. Selectors that are compressed are kept.
    ///
    /// # Errors
    /// The engine's.
    pub(crate) fn finish<'s>(
        self,
        workspace: &'s Workspace,
        domain: Domain<F>,
        blinding_factors: usize,
        compress_selectors: bool,
        columns_of: &mut Replacements<'_, F>,
    ) -> Result<(Keygen<'s, F>, Option<SelectorBits>)> {
        let Self {
            fixed,
            mut selectors,
            copies,
            ..
        } = self;
        let _step = step!(workspace, "fixed columns");
        let mut columns = fixed.into_columns()?;
        let conflicts = match compress_selectors {
            true => selectors.conflicts()?,
            false => Vec::new(),
        };
        let values = columns_of(activations(selectors.count(), &conflicts));
        let group = |values: Vec<F>| -> Vec<(usize, F)> {
            let values = values.into_iter().enumerate();
            values.filter(|(_, value)| *value != F::ZERO).collect()
        };
        let groups: Vec<_> = values.into_iter().map(group).collect();
        columns.extend(selectors.columns(&groups)?);
        let kept = match compress_selectors {
            true => Some(kept(workspace, selectors, domain.rows())?),
            false => None,
        };
        let keygen = Keygen {
            workspace,
            domain,
            blinding_factors,
            fixed: columns,
            copies,
        };
        Ok((keygen, kept))
    }
}

/// The selectors as a key keeps them.
fn kept(
    workspace: &Workspace,
    mut selectors: Selectors,
    rows: u64,
) -> spillproof_engine::Result<SelectorBits> {
    workspace.run(|| {
        let mut writer = SelectorWriter::new(workspace, selectors.count(), rows as usize)?;
        for selector in 0..selectors.count() {
            selectors.packed(selector, |bytes| writer.push(bytes))?;
        }
        writer.finish()
    })
}

/// What both keys begin with.
pub struct Keygen<'s, F = Scalar> {
    workspace: &'s Workspace,
    domain: Domain<F>,
    blinding_factors: usize,
    /// Selectors' columns are last.
    fixed: Vec<Column<F>>,
    copies: Copies,
}

/// Commitments of a verifying key.
#[derive(Clone, Debug)]
pub struct KeyCommitments<P = Point> {
    /// To fixed columns.
    pub fixed: Vec<P>,
    /// To sigma columns.
    pub sigmas: Vec<P>,
}

/// Columns of a proving key.
#[derive(Clone, Debug)]
pub struct ProvingColumns<F = Scalar> {
    /// Fixed columns, as values.
    pub fixed_values: Vec<Column<F>>,
    /// As coefficients.
    pub fixed_polynomials: Vec<Column<F>>,
    /// Sigma columns, as values.
    pub sigma_values: Vec<Column<F>>,
    /// As coefficients.
    pub sigma_polynomials: Vec<Column<F>>,
    /// The polynomials that are 1 on the first row, on the last usable one, and on all that are usable.
    pub rows: [Column<F>; 3],
}

/// What a proving key is made of, and the commitments of its verifying key if they were asked for.
pub type ProvingParts<F = Scalar, P = Point> = (ProvingColumns<F>, Option<KeyCommitments<P>>);

/// Commits to columns of values.
pub type Commit<'c, F = Scalar, P = Point> = dyn FnMut(&[Column<F>]) -> Result<Vec<P>> + 'c;

impl<F: KernelField> Keygen<'_, F> {
    /// Commits to what a verifying key holds.
    ///
    /// # Errors
    /// The engine's.
    pub(crate) fn verifying_key<P>(mut self, commit: &mut Commit<'_, F, P>) -> Result<KeyCommitments<P>> {
        let mut sigmas = Vec::with_capacity(self.copies.columns());
        {
            let _step = step!(self.workspace, "sigma");
            let columns: Vec<usize> = (0..self.copies.columns()).collect();
            for columns in columns.chunks(SIGMAS_TOGETHER) {
                let made = columns.iter().map(|column| self.sigma(*column));
                sigmas.extend(commit(&made.collect::<Result<Vec<_>>>()?)?);
            }
        }
        self.commitments(sigmas, commit)
    }

    /// Makes the columns of a proving key, and commits to what the verifying key holds if there is none yet.
    ///
    /// # Errors
    /// The engine's.
    pub(crate) fn proving_key<P>(
        mut self,
        mut commit: Option<&mut Commit<'_, F, P>>,
    ) -> Result<ProvingParts<F, P>> {
        let inverse = self.domain.to_coefficients()?;
        let (mut sigma_values, mut sigma_polynomials, mut commitments) = (Vec::new(), Vec::new(), Vec::new());
        {
            let _step = step!(self.workspace, "sigma");
            for column in 0..self.copies.columns() {
                let sigma = self.sigma(column)?;
                if let Some(commit) = &mut commit {
                    commitments.extend(commit(std::slice::from_ref(&sigma))?);
                }
                sigma_polynomials.push(ntt(&sigma, &inverse, Placement::Auto)?);
                sigma_values.push(sigma);
            }
        }
        // The columns are handles: a clone has no values of its own.
        let fixed_values = self.fixed.clone();
        let (workspace, domain, blinding_factors) =
            (self.workspace, self.domain, self.blinding_factors as u64);
        let commitments = match commit {
            Some(commit) => Some(self.commitments(commitments, commit)?),
            None => {
                drop(self);
                None
            }
        };
        let _step = step!(workspace, "fixed polynomials");
        let polynomials = fixed_values
            .iter()
            .map(|column| ntt(column, &inverse, Placement::Auto));
        let fixed_polynomials = polynomials.collect::<spillproof_engine::Result<_>>()?;
        let last = domain.rows() - blinding_factors - 1;
        let (zero, one) = (F::ZERO, F::ONE);
        let indicator =
            |rows, constant, factor| indicator(workspace, domain.log_n, domain.omega, rows, constant, factor);
        let rows = [
            indicator(0..1, zero, one)?,
            indicator(last..last + 1, zero, one)?,
            indicator(last..domain.rows(), one, -one)?,
        ];
        let columns = ProvingColumns {
            fixed_values,
            fixed_polynomials,
            sigma_values,
            sigma_polynomials,
            rows,
        };
        Ok((columns, commitments))
    }

    fn sigma(&mut self, column: usize) -> Result<Column<F>> {
        let (omega, delta) = (self.domain.omega, self.domain.delta);
        Ok(self.copies.sigma(column, omega, delta)?)
    }

    fn commitments<P>(self, sigmas: Vec<P>, commit: &mut Commit<'_, F, P>) -> Result<KeyCommitments<P>> {
        let _step = step!(self.workspace, "commit fixed columns");
        let fixed = commit(&self.fixed)?;
        Ok(KeyCommitments { fixed, sigmas })
    }
}

/// The columns for the task that this thread is inside of.
fn in_task<F: KernelField>(columns: &[Column<F>]) -> Vec<Column<F>> {
    columns.iter().map(Column::in_task).collect()
}

impl<F: KernelField> KeyColumns<F> for ProvingColumns<F> {
    fn fixed_values(&self) -> Result<Vec<Column<F>>> {
        Ok(in_task(&self.fixed_values))
    }

    fn fixed_polynomials(&self) -> Result<Vec<Column<F>>> {
        Ok(in_task(&self.fixed_polynomials))
    }

    fn sigma_values(&self) -> Result<Vec<Column<F>>> {
        Ok(in_task(&self.sigma_values))
    }

    fn sigma_polynomials(&self) -> Result<Vec<Column<F>>> {
        Ok(in_task(&self.sigma_polynomials))
    }
}
