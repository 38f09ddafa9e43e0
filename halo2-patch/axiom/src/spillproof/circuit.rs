//! Upstream's constraint system in the types of `spillproof-plonk`.

use std::fmt;

use ff::{Field, WithSmallOrderMulGroup};
use spillproof_plonk::{Cell, ColumnId, ConstraintSystem, Domain, Expression, FieldConstants, Kind, Lookup};

use super::convert::scalar;
use crate::plonk::{self, Any, Column};
use crate::poly::{EvaluationDomain, Rotation};

/// The constraint system with what it says of its degree, which a key remembers.
///
/// Panics for selectors: keygen has replaced them.
pub(crate) fn constraint_system<F: Field>(
    cs: &plonk::ConstraintSystem<F>,
    degree: usize,
) -> ConstraintSystem {
    let phases = |phases: Vec<u8>| phases.into_iter().map(usize::from).collect();
    ConstraintSystem {
        fixed_columns: cs.num_fixed_columns,
        instance_columns: cs.num_instance_columns,
        advice_phases: phases(cs.advice_column_phase()),
        unblinded_advice: Vec::new(),
        challenge_phases: phases(cs.challenge_phase()),
        gates: cs
            .gates
            .iter()
            .flat_map(|gate| expressions(gate.polynomials()))
            .collect(),
        lookups: cs
            .lookups
            .iter()
            .map(|argument| Lookup {
                input: expressions(&argument.input_expressions),
                table: expressions(&argument.table_expressions),
            })
            .collect(),
        trash: Vec::new(),
        permuted: permuted(cs),
        fixed_queries: queries(&cs.fixed_queries),
        advice_queries: queries(&cs.advice_queries),
        instance_queries: queries(&cs.instance_queries),
        degree,
        blinding_factors: cs.blinding_factors(),
    }
}

/// Upstream makes keys for constraints of degree 5 at most, or of the degree in its variable `MAX_DEGREE`. No
/// proof of a circuit with constraints of a higher degree verifies, and upstream says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DegreeTooHigh {
    /// The degree of the circuit's constraints.
    pub constraints: usize,
    /// The degree that its keys are made for.
    pub keys: usize,
}

impl DegreeTooHigh {
    /// Of a constraint system, if it is.
    pub(crate) fn of<F: Field>(cs: &plonk::ConstraintSystem<F>) -> Option<Self> {
        let gates = cs
            .gates
            .iter()
            .flat_map(|gate| gate.polynomials())
            .map(|poly| poly.degree());
        let lookups = cs.lookups.iter().map(|lookup| lookup.required_degree());
        let constraints = gates.chain(lookups).max().unwrap_or(0);
        let keys = cs.degree();
        (constraints > keys).then_some(Self { constraints, keys })
    }
}

impl fmt::Display for DegreeTooHigh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { constraints, keys } = self;
        write!(
            f,
            "the circuit has constraints of degree {constraints}, and halo2-axiom makes keys for degree {keys}: no proof verifies. Set \
             MAX_DEGREE={constraints} where keys are made, where proofs are made and where they are verified, or split the constraints"
        )
    }
}

/// Columns under the permutation.
pub(crate) fn permuted<F: Field>(cs: &plonk::ConstraintSystem<F>) -> Vec<ColumnId> {
    cs.permutation.get_columns().iter().map(column_id).collect()
}

/// A column of any kind.
pub(crate) fn column_id(column: &Column<Any>) -> ColumnId {
    let kind = match column.column_type() {
        Any::Fixed => Kind::Fixed,
        Any::Advice(_) => Kind::Advice,
        Any::Instance => Kind::Instance,
    };
    ColumnId {
        kind,
        index: column.index(),
    }
}

/// A key's domain.
pub(crate) fn domain<F: WithSmallOrderMulGroup<3>>(domain: &EvaluationDomain<F>) -> Domain {
    domain_of::<F>(domain.k(), domain.quotient_poly_degree as usize + 1)
}

/// The domain of `2^k` rows and constraints of this degree.
pub(crate) fn domain_of<F: WithSmallOrderMulGroup<3>>(k: u32, degree: usize) -> Domain {
    let constants = FieldConstants {
        root_of_unity: scalar(&F::ROOT_OF_UNITY),
        two_adicity: F::S,
        delta: scalar(&F::DELTA),
        coset_shift: scalar(&F::ZETA),
    };
    Domain::new(&constants, k, degree)
}

/// Cells that are opened, in the order of the proof.
pub(crate) fn queries<K: plonk::ColumnType>(queries: &[(Column<K>, Rotation)]) -> Vec<Cell> {
    queries
        .iter()
        .map(|(column, rotation)| (column.index(), rotation.0))
        .collect()
}

fn expressions<F: Field>(all: &[plonk::Expression<F>]) -> Vec<Expression> {
    all.iter().map(expression).collect()
}

fn expression<F: Field>(of: &plonk::Expression<F>) -> Expression {
    let query = |kind, index, rotation: Rotation| Expression::Query(ColumnId { kind, index }, rotation.0);
    let boxed = |of: &plonk::Expression<F>| Box::new(expression(of));
    match of {
        plonk::Expression::Constant(value) => Expression::Constant(scalar(value)),
        plonk::Expression::Fixed(of) => query(Kind::Fixed, of.column_index(), of.rotation()),
        plonk::Expression::Advice(of) => query(Kind::Advice, of.column_index(), of.rotation()),
        plonk::Expression::Instance(of) => query(Kind::Instance, of.column_index(), of.rotation()),
        plonk::Expression::Challenge(challenge) => Expression::Challenge(challenge.index()),
        plonk::Expression::Negated(a) => Expression::Negated(boxed(a)),
        plonk::Expression::Sum(a, b) => Expression::Sum(boxed(a), boxed(b)),
        plonk::Expression::Product(a, b) => Expression::Product(boxed(a), boxed(b)),
        plonk::Expression::Scaled(a, factor) => Expression::Scaled(boxed(a), scalar(factor)),
        plonk::Expression::Selector(_) => panic!("virtual selectors are removed during optimization"),
    }
}
