//! The numerator of the quotient as one program, in the order of halo2's `evaluate_h`: for each circuit its
//! gates, its permutation, its lookups and its trash arguments, all folded by Horner's rule in `y`, the first constraint on top.
//!
//! Columns, by number: fixed columns, sigmas, then for each circuit its advice, its instances, its products,
//! for each lookup the permuted input, the permuted table and the product, and its trash columns; then X
//! itself, and `l_0`. The other indicators are `l_0`, rotated: row `n - t` is where the first row is `t` rows on.
//!
//! The quotient is linear in the numerator, so that of many circuits is made in groups of
//! [`circuits_together`], by one program, and added up with powers of `y`: neither the program nor the
//! columns that are read at a time grow with the circuits of a proof.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::stages::arguments::{
    Lookup as LookupColumns, PermutationFactors, PermutationSet, RowSelectors, Trash as TrashColumn, lookup,
    permutation, trash,
};
use crate::stages::{Builder, Constraints, Program};
use spillproof_kernels::field::KernelField;

use crate::circuit::ConstraintSystem;
use crate::lower::Lowering;

/// What the transcript gives before the quotient.
#[derive(Clone, Debug)]
pub(crate) struct Challenges<F> {
    /// The circuit's own.
    pub circuit: Vec<F>,
    pub theta: F,
    pub beta: F,
    pub gamma: F,
    /// Any, without trash arguments.
    pub trash: F,
    pub y: F,
}

impl<F: KernelField> Challenges<F> {
    /// Challenges before there is a transcript. Any values but 0 and 1 give the same program.
    pub fn unknown(count: usize) -> Self {
        let any = |index: u64| F::from(0x9e37_79b9_7f4a_7c15 + index);
        Self {
            circuit: vec![any(1); count],
            theta: any(2),
            beta: any(3),
            gamma: any(4),
            y: any(5),
            trash: any(6),
        }
    }
}

/// Where each kind of a circuit's columns begins.
struct CircuitColumns {
    advice: usize,
    instance: usize,
    products: usize,
    /// Three for each lookup.
    lookups: usize,
    trash: usize,
}

/// The numerator of a group of circuits.
pub(crate) struct Numerator<F> {
    pub program: Program<F>,
    /// Columns without X and `l_0`, whose numbers follow.
    pub columns: usize,
    /// What is folded: a group of circuits before this one is multiplied by as many `y`.
    pub constraints: Constraints<F>,
}

/// The numerators of dry runs, whose challenges are any, so that those of one circuit have the same: by how many circuits they are of.
pub(crate) struct Numerators<F>(Mutex<BTreeMap<usize, Arc<Numerator<F>>>>);

impl<F> Default for Numerators<F> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<F> Numerators<F> {
    /// That of so many circuits, which `make` makes once.
    pub fn get(&self, circuits: usize, make: impl FnOnce() -> Numerator<F>) -> Arc<Numerator<F>> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(made.entry(circuits).or_insert_with(|| Arc::new(make())))
    }
}

/// In groups of how many circuits the quotient of `circuits` of them is made: what all groups read anew,
/// fixed columns and sigmas, is at most a fifth of what a whole group reads.
pub(crate) fn circuits_together<F>(cs: &ConstraintSystem<F>, circuits: usize) -> usize {
    const OWN_PER_SHARED: usize = 4;
    let shared = cs.fixed_columns + cs.permuted.len();
    let arguments = cs.permutation_products() + 3 * cs.lookups.len() + cs.trash.len();
    let own = cs.advice_columns() + cs.instance_columns + arguments;
    (OWN_PER_SHARED * shared)
        .div_ceil(own.max(1))
        .clamp(1, circuits.max(1))
}

/// That of a group of `circuits` circuits.
pub(crate) fn numerator<F: KernelField>(
    cs: &ConstraintSystem<F>,
    delta: F,
    circuits: usize,
    challenges: &Challenges<F>,
) -> Numerator<F> {
    let sigmas = cs.fixed_columns;
    let mut columns = sigmas + cs.permuted.len();
    let mut take = |count: usize| {
        columns += count;
        columns - count
    };
    let circuits: Vec<CircuitColumns> = (0..circuits)
        .map(|_| CircuitColumns {
            advice: take(cs.advice_columns()),
            instance: take(cs.instance_columns),
            products: take(cs.permutation_products()),
            lookups: take(3 * cs.lookups.len()),
            trash: take(cs.trash.len()),
        })
        .collect();

    let (theta, beta, gamma) = (challenges.theta, challenges.beta, challenges.gamma);
    let factors = PermutationFactors { beta, gamma, delta };
    let mut builder = Builder::new();
    let identity = builder.query(columns, 0);
    let rows = RowSelectors::computed(&mut builder, columns + 1, cs.blinding_factors as u32);
    let mut constraints = Vec::new();
    for at in &circuits {
        let lowering = Lowering {
            fixed: 0,
            advice: at.advice,
            instance: at.instance,
            challenges: &challenges.circuit,
        };
        constraints.extend(cs.gates.iter().map(|gate| lowering.value(&mut builder, gate)));

        let mut sigmas = sigmas..;
        let sets: Vec<PermutationSet> = (cs.permuted.chunks(cs.permutation_chunk()).enumerate())
            .map(|(set, columns)| PermutationSet {
                product: at.products + set,
                values: columns
                    .iter()
                    .map(|column| builder.query(lowering.column(*column), 0))
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
                input: lowering.compressed(&mut builder, &argument.input, theta),
                table: lowering.compressed(&mut builder, &argument.table, theta),
            };
            constraints.extend(lookup(&mut builder, &rows, &columns, beta, gamma));
        }

        for (argument, column) in cs.trash.iter().zip(at.trash..) {
            let column = TrashColumn {
                column,
                selector: builder.query(argument.selector, 0),
                constraints: lowering.compressed(&mut builder, &argument.constraints, challenges.trash),
            };
            constraints.push(trash(&mut builder, &column));
        }
    }
    let constraints = Constraints::new(builder, constraints, challenges.y);
    Numerator {
        program: constraints.program(),
        columns,
        constraints,
    }
}
