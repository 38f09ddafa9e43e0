//! Where midnight-proofs differs from other releases of halo2: the field, names of fractions, and gates that
//! say whether they have a selector.

use midnight_curves::pairing::group::ff;

pub use self::ff::{Field, FromUniformBytes, PrimeField};
pub use super::assign::*;
use super::halo2::plonk::{
    Advice, Circuit, Column, ConstraintSystem, Constraints, Error, Expression, Fixed, Selector, TableColumn,
    VirtualCells,
};
pub use super::halo2::utils::rational::Rational as Assigned;
pub use midnight_curves::Fq as Fr;
pub use midnight_proofs::spillproof::description;

/// What to do about constraints of another degree.
pub const OTHER_DEGREE: &str = "save the key again";

/// A circuit that `configure` makes without parameters.
pub trait Plain: Circuit<Fr> {}

impl<C: Circuit<Fr>> Plain for C {}

/// The associated types of a circuit besides its columns.
macro_rules! associated_types {
    () => {
        type FloorPlanner = super::halo2::circuit::SimpleFloorPlanner;
    };
}
pub(super) use associated_types;

/// The error of a synthesis with columns of another circuit.
pub fn mixed_up() -> Error {
    Error::Synthesis("columns of another circuit".to_owned())
}

/// Adds a gate, whose expressions are zero in all rows.
pub fn gate(
    cs: &mut ConstraintSystem<Fr>,
    name: &'static str,
    constraints: impl FnOnce(&mut VirtualCells<'_, Fr>) -> Vec<Expression<Fr>>,
) {
    cs.create_gate(name, |cells| Constraints::without_selector(constraints(cells)));
}

/// Makes an advice column.
pub fn advice_column(cs: &mut ConstraintSystem<Fr>, is_blinded: bool) -> Column<Advice> {
    match is_blinded {
        true => cs.advice_column(),
        false => cs.unblinded_advice_column(),
    }
}

/// Adds a gate under an additive selector, with names of its expressions.
pub fn additive_gate(
    cs: &mut ConstraintSystem<Fr>,
    selector: Selector,
    constraints: impl FnOnce(&mut VirtualCells<'_, Fr>) -> Vec<(String, Expression<Fr>)>,
) {
    cs.create_gate("", |cells| {
        Constraints::with_additive_selector(selector, constraints(cells))
    });
}

/// Adds a lookup.
pub fn lookup(
    cs: &mut ConstraintSystem<Fr>,
    name: &'static str,
    table_map: impl FnOnce(&mut VirtualCells<'_, Fr>) -> Vec<(Expression<Fr>, TableColumn)>,
) {
    cs.lookup(name, table_map);
}

/// A fixed column at the current row.
pub fn query_fixed(cells: &mut VirtualCells<'_, Fr>, column: Column<Fixed>) -> Expression<Fr> {
    cells.query_fixed(column, super::halo2::poly::Rotation::cur())
}
