use ark_relations::gr1cs as relations;
use ark_relations::utils::error::SynthesisError;
use relations::{ConstraintSystemRef, LinearCombination, Variable};
use spillproof_arkworks::v0_6 as ours;
use {ark_bls12_381, ark_bn254, ark_ff, ark_groth16, ark_serialize, ark_snark};

#[path = "version.rs"]
mod version;

/// A variable for a combination, which the prover inlines.
fn new_lc<F: ark_ff::PrimeField>(
    system: &ConstraintSystemRef<F>,
    combination: LinearCombination<F>,
) -> Result<Variable, SynthesisError> {
    system.new_lc(|| combination.clone())
}

fn enforce<F: ark_ff::PrimeField>(
    system: &ConstraintSystemRef<F>,
    [a, b, c]: [LinearCombination<F>; 3],
) -> Result<(), SynthesisError> {
    system.enforce_r1cs_constraint(|| a.clone(), || b.clone(), || c.clone())
}

/// Two matrices, of a circuit with so many public variables, the constant one included.
fn matrices<F: ark_ff::PrimeField>(
    [a, b]: [Vec<Vec<(F, usize)>>; 2],
    _public: usize,
) -> [Vec<Vec<(F, usize)>>; 2] {
    [a, b]
}
