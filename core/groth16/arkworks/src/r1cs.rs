//! Constraint systems of `ark-relations` 0.4 and 0.5.

use super::ark_ff::PrimeField;
use super::relations::{
    ConstraintSynthesizer, ConstraintSystem, ConstraintSystemRef, OptimizationGoal, SynthesisError,
    SynthesisMode,
};
use crate::{Matrix, Synthesis};
use spillproof_engine::Result;
use spillproof_engine::error::Invalid;

/// The matrices that a circuit's owner may have.
pub type Matrices<F> = super::relations::ConstraintMatrices<F>;

/// The left and right ones.
pub fn sides<F: PrimeField>(matrices: &Matrices<F>) -> Result<[&Matrix<F>; 2]> {
    Ok([&matrices.a, &matrices.b])
}

/// A circuit that is synthesised.
pub struct System<F: PrimeField>(ConstraintSystemRef<F>);

fn refused(error: SynthesisError) -> spillproof_engine::Error {
    Invalid::ProofSystem {
        what: "synthesis of the circuit",
        reason: error.to_string(),
    }
    .into()
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
        self.public() + self.0.num_witness_variables()
    }

    /// The left and right matrices.
    ///
    /// # Errors
    /// [`Invalid::ProofSystem`] for a circuit that was synthesised without constraints.
    pub fn matrices(&self) -> Result<[Matrix<F>; 2]> {
        let matrices = self.0.to_matrices();
        let matrices = matrices.ok_or_else(|| refused(SynthesisError::MissingCS))?;
        Ok([matrices.a, matrices.b])
    }

    /// Calls `work` with the public and the private values.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn with_assignment<T>(&self, work: impl FnOnce(&[F], &[F]) -> Result<T>) -> Result<T> {
        let system = self.0.borrow();
        let system = system.ok_or_else(|| refused(SynthesisError::MissingCS))?;
        work(&system.instance_assignment, &system.witness_assignment)
    }
}
