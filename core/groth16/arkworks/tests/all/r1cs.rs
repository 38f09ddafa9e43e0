//! Circuits of `ark-relations` 0.4 and 0.5.

use super::ark_ff::PrimeField;
use super::relations::{
    ConstraintMatrices, ConstraintSystemRef, LinearCombination, SynthesisError, Variable,
};

/// A variable for a combination, which the prover inlines.
pub fn new_lc<F: PrimeField>(
    system: &ConstraintSystemRef<F>,
    combination: LinearCombination<F>,
) -> Result<Variable, SynthesisError> {
    system.new_lc(combination)
}

pub fn enforce<F: PrimeField>(
    system: &ConstraintSystemRef<F>,
    [a, b, c]: [LinearCombination<F>; 3],
) -> Result<(), SynthesisError> {
    system.enforce_constraint(a, b, c)
}

/// Two matrices, of a circuit with so many public variables, the constant one included.
pub fn matrices<F: PrimeField>([a, b]: [Vec<Vec<(F, usize)>>; 2], public: usize) -> ConstraintMatrices<F> {
    ConstraintMatrices {
        num_instance_variables: public,
        num_witness_variables: 0,
        num_constraints: a.len(),
        a_num_non_zero: 0,
        b_num_non_zero: 0,
        c_num_non_zero: 0,
        a,
        b,
        c: Vec::new(),
    }
}
