//! Where midnight-proofs differs from other releases of halo2: the field, names of fractions, and gates that
//! say whether they have a selector.

use midnight_curves::pairing::group::ff;

pub use self::ff::{Field, FromUniformBytes};
pub use super::assign::*;
use super::halo2::plonk::{
    Circuit, Column, ConstraintSystem, Constraints, Error, Expression, Fixed, TableColumn, VirtualCells,
};
pub use super::halo2::utils::rational::Rational as Assigned;
pub use midnight_curves::Fq as Fr;

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
