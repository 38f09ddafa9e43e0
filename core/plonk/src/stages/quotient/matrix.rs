//! The matrix of a quotient's transforms: its tables, and what is leased and written in its shape.

use super::domain::inverse;
use super::plan::QuotientPlan;
use spillproof_engine::Result;
use spillproof_engine::budget::LeasedVec;
use spillproof_engine::column::{Draft, Element, Placement, Workspace};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::ntt::{NttElement, RowTables, Twiddles, Twist};

/// The tables of transforms over a matrix of n1 rows of n2 values.
pub(super) struct Tables<F> {
    pub omega: F,
    pub omega_inverse: F,
    /// n1 points, to the coset and back.
    pub down: [Twiddles<F>; 2],
    /// n2 points, to the coset.
    pub along: Twiddles<F>,
    /// n2 points, for rows on their way back.
    pub along_back: RowTables<F>,
    row_len: u64,
}

/// The factors of a transform of the matrix's columns.
pub(super) struct Leg<F> {
    /// Row r is multiplied by its r-th power before.
    pub before: F,
    /// Of the whole matrix.
    pub twist: Twist<F>,
}

impl<F: KernelField> Tables<F> {
    /// For a primitive n-th root, and tiles of `tile_rows` rows on their way back.
    pub fn new((log_n1, log_n2): (u32, u32), tile_rows: u64, omega: F) -> Result<Self> {
        let omega_inverse = inverse(omega)?;
        let (n1, n2) = (1 << log_n1, 1 << log_n2);
        Ok(Self {
            omega,
            omega_inverse,
            down: [
                Twiddles::new(log_n1, omega.pow([n2]))?,
                Twiddles::new(log_n1, omega_inverse.pow([n2]))?,
            ],
            along: Twiddles::new(log_n2, omega.pow([n1]))?,
            along_back: RowTables::new(log_n2, omega_inverse.pow([n1]), tile_rows)?,
            row_len: n2,
        })
    }

    /// From coefficients to rows on the coset of `shift`.
    pub fn to_coset(&self, shift: &F) -> Leg<F> {
        Leg {
            before: shift.pow([self.row_len]),
            twist: Twist {
                root: self.omega,
                first_row: 0,
                first_column: 0,
                scale: F::ONE,
                base: *shift,
                row: F::ONE,
            },
        }
    }

    /// The twist that takes rows `first_row ..` back: after the n2-point transforms of the rows, before
    /// [`Self::to_coefficients`]. It multiplies by `scale`, too.
    pub fn twist_back(&self, shift_inverse: F, first_row: u64, scale: F) -> Twist<F> {
        Twist {
            root: self.omega_inverse,
            first_row,
            first_column: 0,
            scale,
            base: shift_inverse,
            row: F::ONE,
        }
    }

    /// From twisted rows to coefficients (times what the twist did not divide by).
    pub fn to_coefficients(&self, shift_inverse: F) -> Leg<F> {
        Leg {
            before: F::ONE,
            twist: Twist {
                root: F::ONE,
                first_row: 0,
                first_column: 0,
                scale: F::ONE,
                base: F::ONE,
                row: shift_inverse.pow([self.row_len]),
            },
        }
    }
}

/// The matrix of a quotient's transforms, and their tables. [`super::coset`] takes columns through it.
pub(super) struct Matrix<'a, F> {
    pub workspace: &'a Workspace,
    pub plan: &'a QuotientPlan,
    pub tables: Tables<F>,
}

impl<'a, F: KernelField + NttElement<F> + Element> Matrix<'a, F> {
    /// With the tables for a primitive n-th root.
    pub fn new(workspace: &'a Workspace, plan: &'a QuotientPlan, omega: F) -> Result<Self> {
        Ok(Self {
            workspace,
            plan,
            tables: Tables::new((plan.log_n1, plan.log_n2), plan.tile_rows, omega)?,
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
