//! Constraint systems of `ark-relations` 0.6, whose constraints are of several kinds.

use super::ark_ff::PrimeField;
use super::relations::{
    ConstraintSynthesizer, ConstraintSystem, ConstraintSystemRef, OptimizationGoal, R1CS_PREDICATE_LABEL,
    SynthesisMode,
};
use crate::{Matrix, Synthesis};
use ark_relations::utils::error::SynthesisError;
use spillproof_engine::Result;
use spillproof_engine::error::Invalid;

/// The matrices that a circuit's owner may have.
pub type Matrices<F> = [Matrix<F>];

/// The left and right ones.
pub fn sides<F: PrimeField>(matrices: &Matrices<F>) -> Result<[&Matrix<F>; 2]> {
    match matrices {
        [left, right, ..] => Ok([left, right]),
        _ => Err(no_circuit("there are fewer than two matrices".into())),
    }
}

/// A circuit that is synthesised.
pub struct System<F: PrimeField>(ConstraintSystemRef<F>);

fn no_circuit(reason: String) -> spillproof_engine::Error {
    Invalid::ProofSystem {
        what: "synthesis of the circuit",
        reason,
    }
    .into()
}

fn refused(error: SynthesisError) -> spillproof_engine::Error {
    no_circuit(error.to_string())
}

impl<F: PrimeField> System<F> {
    /// # Errors
    /// [`Invalid::ProofSystem`] if the circuit cannot be synthesised.
    pub fn of(circuit: impl ConstraintSynthesizer<F>, what: Synthesis) -> Result<Self> {
        let system = ConstraintSystem::new_ref();
        system.set_optimization_goal(OptimizationGoal::Constraints);
        system.set_mode(match what {
            Synthesis::Constraints => SynthesisMode::Setup,
            _ => SynthesisMode::Prove {
                construct_matrices: what == Synthesis::Both,
                generate_lc_assignments: false,
            },
        });
        circuit.generate_constraints(system.clone()).map_err(refused)?;
        system.finalize();
        Ok(Self(system))
    }

    /// Public variables, the constant one included.
    pub fn public(&self) -> usize {
        self.0.num_instance_variables()
    }

    /// All variables.
    pub fn signals(&self) -> usize {
        self.0.num_variables()
    }

    /// The left and right matrices.
    ///
    /// # Errors
    /// [`Invalid::ProofSystem`] for a circuit with constraints of another kind than rank-1.
    pub fn matrices(&self) -> Result<[Matrix<F>; 2]> {
        let mut matrices = self.0.to_matrices().map_err(refused)?;
        let rank_1 = matrices.remove(R1CS_PREDICATE_LABEL).unwrap_or_default();
        let constraints = self.0.num_constraints();
        let Ok([left, right, _]) = <[Matrix<F>; 3]>::try_from(rank_1) else {
            return Err(no_circuit("the circuit has no rank-1 constraints".into()));
        };
        if left.len() != constraints {
            return Err(no_circuit(format!(
                "{} of {constraints} constraints are rank-1; a proof takes no others",
                left.len()
            )));
        }
        Ok([left, right])
    }

    /// Calls `work` with the public and the private values.
    ///
    /// # Errors
    /// Those of `work`; [`Invalid::ProofSystem`] for a circuit without an assignment.
    pub fn with_assignment<T>(&self, work: impl FnOnce(&[F], &[F]) -> Result<T>) -> Result<T> {
        let system = self.0.borrow();
        let system = system.ok_or_else(|| refused(SynthesisError::MissingCS))?;
        let public = system.instance_assignment().map_err(refused)?;
        let private = system.witness_assignment().map_err(refused)?;
        work(public, private)
    }
}
