//! The numerator of h as one program, in the order of stock's `evaluate_h`: for each circuit its gates, its permutation and
//! its lookups, all folded by Horner's rule in `y`, the first constraint on top.
//!
//! Sources, by number: fixed columns, sigmas, then for each circuit its advice, its instances, its products, and for each
//! lookup the permuted input, the permuted table and the product; then X itself, and `l_0`. The other indicators are `l_0`,
//! rotated: row `n - t` is where the first row is `t` rows on. The prover asks for it with its challenges, the planner with
//! any: what is read, and how much is computed, is the same.

use ::spillproof::commit::Scalar;
use ::spillproof::plonkish::arguments::{
    lookup, permutation, Lookup as LookupColumns, PermutationFactors, PermutationSet, RowSelectors,
};
use ::spillproof::plonkish::{Builder, Program};
use ff::PrimeField;

use super::lower::Lowering;
use super::values::scalar;
use crate::plonk::ConstraintSystem;

/// What the transcript gives before the quotient.
pub(crate) struct Challenges<'a> {
    pub(crate) challenges: &'a [Scalar],
    pub(crate) theta: Scalar,
    pub(crate) beta: Scalar,
    pub(crate) gamma: Scalar,
    pub(crate) y: Scalar,
}

/// Numbers of the sources.
pub(crate) struct Places {
    sigmas: usize,
    circuits: Vec<CircuitPlaces>,
    /// How many there are, without X and `l_0`.
    pub(crate) columns: usize,
}

/// Where each kind of a circuit's columns begins.
struct CircuitPlaces {
    advice: usize,
    instance: usize,
    products: usize,
    /// Three for each lookup.
    lookups: usize,
}

/// Columns of a permutation product.
pub(crate) fn set_len(degree: usize) -> usize {
    degree - 2
}

impl Places {
    /// Those of a proof of so many circuits.
    pub(crate) fn new<F: PrimeField>(cs: &ConstraintSystem<F>, degree: usize, circuits: usize) -> Self {
        let permuted = cs.permutation.get_columns().len();
        let sigmas = cs.num_fixed_columns;
        let mut next = sigmas + permuted;
        let mut take = |columns: usize| {
            next += columns;
            next - columns
        };
        let circuits = (0..circuits)
            .map(|_| CircuitPlaces {
                advice: take(cs.num_advice_columns),
                instance: take(cs.num_instance_columns),
                products: take(permuted.div_ceil(set_len(degree))),
                lookups: take(3 * cs.lookups.len()),
            })
            .collect();
        Self {
            sigmas,
            circuits,
            columns: next,
        }
    }
}

/// The program. X and `l_0` have the two numbers that follow those of the columns.
pub(crate) fn numerator<F: PrimeField>(
    cs: &ConstraintSystem<F>,
    degree: usize,
    places: &Places,
    challenges: &Challenges<'_>,
) -> Program<Scalar> {
    let Challenges {
        theta,
        beta,
        gamma,
        y,
        ..
    } = *challenges;
    let factors = PermutationFactors {
        beta,
        gamma,
        delta: scalar(&F::DELTA),
    };
    let permuted = cs.permutation.get_columns();

    let mut builder = Builder::new();
    let identity = builder.query(places.columns, 0);
    let rows = RowSelectors::computed(&mut builder, places.columns + 1, cs.blinding_factors() as u32);
    let mut constraints = Vec::new();
    for at in &places.circuits {
        let lowering = Lowering {
            fixed: 0,
            advice: at.advice,
            instance: at.instance,
            challenges: challenges.challenges,
        };
        let gates = cs.gates.iter().flat_map(|gate| gate.polynomials());
        constraints.extend(gates.map(|gate| lowering.value(&mut builder, gate)));

        let mut sigmas = places.sigmas..;
        let sets: Vec<PermutationSet> = (permuted.chunks(set_len(degree)).enumerate())
            .map(|(set, columns)| PermutationSet {
                product: at.products + set,
                values: columns
                    .iter()
                    .map(|column| builder.query(lowering.column(column), 0))
                    .collect(),
                sigmas: columns
                    .iter()
                    .zip(&mut sigmas)
                    .map(|(_, sigma)| builder.query(sigma, 0))
                    .collect(),
            })
            .collect();
        constraints.extend(permutation(&mut builder, &rows, &sets, identity, &factors));

        for (argument, first) in cs.lookups.iter().zip((at.lookups..).step_by(3)) {
            let columns = LookupColumns {
                permuted_input: first,
                permuted_table: first + 1,
                product: first + 2,
                input: lowering.compressed(&mut builder, &argument.input_expressions, theta),
                table: lowering.compressed(&mut builder, &argument.table_expressions, theta),
            };
            constraints.extend(lookup(&mut builder, &rows, &columns, beta, gamma));
        }
    }
    let folded = builder.fold(&constraints, y);
    builder.finish(&[folded])
}
