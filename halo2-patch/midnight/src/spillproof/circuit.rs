//! Upstream's constraint system in the types of `spillproof-plonk`.

use ff::{PrimeField, WithSmallOrderMulGroup};
use spillproof_plonk::{
    Cell, ColumnId, ConstraintSystem, Domain, Expression, FieldConstants, Kind, Lookup, Trash,
};

use super::convert::{scalar, Scalar};
use crate::plonk::{self, Any, Column};
use crate::poly::Rotation;

/// The constraint system with what it says of its degree, which a key remembers.
///
/// Panics for selectors: keygen has replaced them.
pub(crate) fn constraint_system<F: PrimeField>(
    cs: &plonk::ConstraintSystem<F>,
    degree: usize,
) -> ConstraintSystem<Scalar> {
    ConstraintSystem {
        fixed_columns: cs.num_fixed_columns,
        instance_columns: cs.num_instance_columns,
        advice_phases: phases(&cs.advice_column_phase()),
        unblinded_advice: cs.unblinded_advice_columns.clone(),
        challenge_phases: phases(&cs.challenge_phase()),
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
        trash: cs.trashcans.iter().map(trash).collect(),
        permuted: permuted(cs),
        fixed_queries: queries(&cs.fixed_queries),
        advice_queries: queries(&cs.advice_queries),
        instance_queries: queries(&cs.instance_queries),
        degree,
        blinding_factors: cs.blinding_factors(),
    }
}

fn phases(phases: &[u8]) -> Vec<usize> {
    phases.iter().copied().map(usize::from).collect()
}

fn trash<F: PrimeField>(argument: &plonk::trash::Argument<F>) -> Trash<Scalar> {
    let plonk::Expression::Fixed(selector) = argument.selector() else {
        panic!("virtual selectors are removed during optimization");
    };
    Trash {
        selector: selector.column_index(),
        constraints: expressions(argument.constraint_expressions()),
    }
}

/// Columns under the permutation.
pub(crate) fn permuted<F: PrimeField>(cs: &plonk::ConstraintSystem<F>) -> Vec<ColumnId> {
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

/// The domain of `2^k` rows and constraints of this degree.
pub(crate) fn domain<F: WithSmallOrderMulGroup<3>>(k: u32, degree: usize) -> Domain<Scalar> {
    let constants = FieldConstants {
        root_of_unity: scalar(&F::ROOT_OF_UNITY),
        two_adicity: F::S,
        delta: scalar(&F::DELTA),
        coset_shift: scalar(&F::ZETA),
    };
    Domain::new(&constants, k, degree)
}

/// Cells that are opened.
pub(crate) fn queries<K: plonk::ColumnType>(queries: &[(Column<K>, Rotation)]) -> Vec<Cell> {
    queries
        .iter()
        .map(|(column, rotation)| (column.index(), rotation.0))
        .collect()
}

fn expressions<F: PrimeField>(all: &[plonk::Expression<F>]) -> Vec<Expression<Scalar>> {
    all.iter().map(expression).collect()
}

fn expression<F: PrimeField>(of: &plonk::Expression<F>) -> Expression<Scalar> {
    let query = |kind, index, rotation: Rotation| Expression::Query(ColumnId { kind, index }, rotation.0);
    let boxed = |of: &plonk::Expression<F>| Box::new(expression(of));
    match of {
        plonk::Expression::Constant(value) => Expression::Constant(scalar(value)),
        plonk::Expression::Fixed(of) => query(Kind::Fixed, of.column_index(), of.rotation()),
        plonk::Expression::Advice(of) => query(Kind::Advice, of.column_index(), of.rotation()),
        plonk::Expression::Instance(of) => query(Kind::Instance, of.column_index(), of.rotation()),
        plonk::Expression::Challenge(of) => Expression::Challenge(of.index()),
        plonk::Expression::Negated(a) => Expression::Negated(boxed(a)),
        plonk::Expression::Sum(a, b) => Expression::Sum(boxed(a), boxed(b)),
        plonk::Expression::Product(a, b) => Expression::Product(boxed(a), boxed(b)),
        plonk::Expression::Scaled(a, factor) => Expression::Scaled(boxed(a), scalar(factor)),
        plonk::Expression::Selector(_) => panic!("virtual selectors are removed during optimization"),
    }
}
