//! The constraints that arkworks holds, copied to scratch columns.
//!
//! Memory within the budget: up to 256 bytes for each distinct value of the coefficients, and two buffers of
//! a writer.

use std::hash::{BuildHasher, RandomState};

use ark_relations::gr1cs::{ConstraintSystemRef, R1CS_PREDICATE_LABEL};
use ark_relations::utils::matrix::Matrix;

use super::{CHUNK, refused};
use crate::dictionary::{Dictionary, Form};
use crate::distinct::DistinctHashes;
use crate::{Coefficient, Constraints};
use spillproof_engine::column::{Placement, Workspace, Writer};
use spillproof_engine::error::Invalid;
use spillproof_engine::plan::smallest_budget_bytes;
use spillproof_engine::{Error, Result};
use spillproof_kernels::field::KernelField;

/// Names of leases and columns.
const COEFFICIENTS: &str = "coefficients";
const VALUES: &str = "values of coefficients";

/// The left and right matrices of a circuit, and how many signals are public, the constant one included.
pub(super) struct Matrices<F> {
    left: Matrix<F>,
    right: Matrix<F>,
    public: usize,
}

impl<F: KernelField> Matrices<F> {
    /// # Errors
    /// [`Invalid::ProofSystem`] for a circuit with constraints of another kind than rank-1.
    pub fn of(system: &ConstraintSystemRef<F>) -> Result<Self> {
        let no_circuit = |reason| Invalid::ProofSystem {
            what: "synthesis of the circuit",
            reason,
        };
        let mut matrices = system.to_matrices().map_err(refused)?;
        let rank_1 = matrices.remove(R1CS_PREDICATE_LABEL).unwrap_or_default();
        let constraints = system.num_constraints();
        let Ok([left, right, _]) = <[Matrix<F>; 3]>::try_from(rank_1) else {
            return Err(no_circuit("the circuit has no rank-1 constraints".to_owned()).into());
        };
        if left.len() != constraints {
            let reason = format!(
                "{} of {constraints} constraints are rank-1; a proof takes no others",
                left.len()
            );
            return Err(no_circuit(reason).into());
        }
        Ok(Self {
            left,
            right,
            public: system.num_instance_variables(),
        })
    }

    /// [`Self::constraints`]. Where the budget is too small for them, the error names the smallest in which
    /// they are copied.
    pub fn constraints_or_smallest(&self, workspace: &Workspace) -> Result<Constraints<F>> {
        let refusal = match self.constraints(workspace) {
            Err(refusal @ Error::OverBudget { .. }) => refusal,
            ended => return ended,
        };
        let Ok(values) = self.count_values(workspace) else {
            return Err(refusal);
        };
        let limit_bytes = workspace.budget.limit_bytes();
        let dry_run = |workspace: &Workspace| self.rehearse(workspace, values);
        match smallest_budget_bytes(&dry_run, workspace.threads())? {
            // Others hold what is missing.
            needed_bytes if needed_bytes <= limit_bytes => Err(refusal),
            needed_bytes => Err(Error::BudgetTooSmall {
                what: format!(
                    "a circuit with {} coefficients of {values} distinct values",
                    self.coefficients()
                ),
                needed_bytes,
                limit_bytes,
            }),
        }
    }

    fn coefficients(&self) -> u64 {
        let terms = self.left.iter().chain(&self.right).map(Vec::len);
        (terms.sum::<usize>() + self.public) as u64
    }

    /// The coefficients of both matrices, with the rows that bind the public signals.
    fn constraints(&self, workspace: &Workspace) -> Result<Constraints<F>> {
        let mut dictionary = Dictionary::<F>::new(&workspace.budget, Form::AsInMemory)?;
        let mut writer = Writer::scratch(workspace, COEFFICIENTS, self.coefficients(), Placement::Disk)?;
        let mut row_terms = Vec::new();
        let mut bytes = [0; 32];
        let mut coefficient =
            |(row, matrix): (usize, u32), value: &F, signal: usize| -> Result<Coefficient> {
                value.encode(&mut bytes);
                Ok(Coefficient {
                    row: row as u32,
                    signal: signal as u32,
                    value: dictionary.enter(&bytes)?,
                    matrix,
                })
            };
        for (row, sides) in self.left.iter().zip(&self.right).enumerate() {
            for (matrix, terms) in [(0, sides.0), (1, sides.1)] {
                for (value, signal) in terms {
                    row_terms.push(coefficient((row, matrix), value, *signal)?);
                }
            }
            if row_terms.len() >= CHUNK {
                writer.push(&row_terms)?;
                row_terms.clear();
            }
        }
        for signal in 0..self.public {
            row_terms.push(coefficient((self.left.len() + signal, 0), &F::ONE, signal)?);
        }
        writer.push(&row_terms)?;
        let coefficients = writer.finish()?;
        let len = dictionary.values.len() as u64;
        let mut values = Writer::scratch(workspace, VALUES, len, Placement::Disk)?;
        values.push(&dictionary.values)?;
        Ok(Constraints::new(values.finish()?, coefficients))
    }

    /// A dry run of [`Self::constraints`], with so many distinct values.
    fn rehearse(&self, workspace: &Workspace, values: u64) -> Result<()> {
        let _dictionary = workspace.hold(Dictionary::<F>::bytes(values), VALUES)?;
        let len = self.coefficients();
        Writer::<Coefficient>::scratch(workspace, COEFFICIENTS, len, Placement::Disk)?.finish()?;
        Writer::<F>::scratch(workspace, VALUES, values, Placement::Disk)?.finish()?;
        Ok(())
    }

    /// How many distinct values the coefficients have.
    fn count_values(&self, workspace: &Workspace) -> Result<u64> {
        let mut hashes = DistinctHashes::new(&workspace.budget)?;
        let hasher = RandomState::new();
        let mut bytes = [0; 32];
        loop {
            let terms = self.left.iter().chain(&self.right).flatten();
            for value in terms.map(|(value, _)| value).chain([&F::ONE]) {
                value.encode(&mut bytes);
                hashes.push(hasher.hash_one(bytes));
            }
            if hashes.end_pass() {
                return Ok(hashes.counted());
            }
        }
    }
}
