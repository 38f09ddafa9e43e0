use ark_bls12_381_0_5 as ark_bls12_381;
use ark_bn254_0_5 as ark_bn254;
use ark_ff_0_5 as ark_ff;
use ark_groth16_0_5 as ark_groth16;
use ark_relations_0_5::r1cs as relations;
use ark_serialize_0_5 as ark_serialize;
use ark_snark_0_5 as ark_snark;
use relations::{ConstraintMatrices, ConstraintSystemRef, LinearCombination, SynthesisError, Variable};
use spillproof_arkworks::v0_5 as ours;

#[path = "version.rs"]
mod version;

/// A variable for a combination, which the prover inlines.
fn new_lc<F: ark_ff::PrimeField>(
    system: &ConstraintSystemRef<F>,
    combination: LinearCombination<F>,
) -> Result<Variable, SynthesisError> {
    system.new_lc(combination)
}

fn enforce<F: ark_ff::PrimeField>(
    system: &ConstraintSystemRef<F>,
    [a, b, c]: [LinearCombination<F>; 3],
) -> Result<(), SynthesisError> {
    system.enforce_constraint(a, b, c)
}

/// Two matrices, of a circuit with so many public variables, the constant one included.
fn matrices<F: ark_ff::PrimeField>(
    [a, b]: [Vec<Vec<(F, usize)>>; 2],
    public: usize,
) -> ConstraintMatrices<F> {
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
