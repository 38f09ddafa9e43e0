//! The matrix of a quotient's transforms: its tables, and what is leased and written in its shape.

use super::plan::QuotientPlan;
use spillproof_engine::Result;
use spillproof_engine::budget::LeasedVec;
use spillproof_engine::column::{Draft, Element, Placement, Workspace};
use spillproof_engine::stream::invert;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::ntt::{NttElement, RowTables, Twiddles};

/// The matrix of a quotient's transforms, and their tables. [`super::coset`] takes columns through it.
pub(super) struct Matrix<'a, F> {
    pub workspace: &'a Workspace,
    pub plan: &'a QuotientPlan,
    pub omega: F,
    pub omega_inverse: F,
    /// n1 points, to the coset and back.
    pub down: [Twiddles<F>; 2],
    /// n2 points, to the coset.
    pub along: Twiddles<F>,
    /// n2 points, for a tile's rows on their way back.
    pub along_back: RowTables<F>,
}

impl<'a, F: KernelField + NttElement<F> + Element> Matrix<'a, F> {
    /// The tables for a primitive n-th root.
    pub fn new(workspace: &'a Workspace, plan: &'a QuotientPlan, omega: F) -> Result<Self> {
        let omega_inverse = inverse(omega)?;
        let (n1, n2) = (plan.rows(), plan.row_len());
        Ok(Self {
            workspace,
            plan,
            omega,
            omega_inverse,
            down: [
                Twiddles::new(plan.log_n1, omega.pow([n2]))?,
                Twiddles::new(plan.log_n1, omega_inverse.pow([n2]))?,
            ],
            along: Twiddles::new(plan.log_n2, omega.pow([n1]))?,
            along_back: RowTables::new(plan.log_n2, omega_inverse.pow([n1]), plan.tile_rows)?,
        })
    }

    /// A leased vector of zeros.
    pub fn vec(&self, len: u64, what: &'static str) -> Result<LeasedVec<F>> {
        self.workspace.budget.vec(len as usize, F::ZERO, what)
    }

    /// A column between the passes.
    pub fn draft(&self, what: &str, placement: Placement) -> Result<Draft<F>> {
        let n = self.plan.rows() * self.plan.row_len();
        let frame_bytes = self.plan.frame_bytes() as usize;
        Draft::scratch_with_frames(self.workspace, what, n, placement, frame_bytes)
    }
}

/// The inverse of a root or a shift.
pub(super) fn inverse<F: KernelField>(value: F) -> Result<F> {
    invert("a root of unity, or the shift of a coset,", value)
}
