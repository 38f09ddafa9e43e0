//! Where zcash's halo2_proofs differs from other releases of halo2: the field, and names of gates and lookups.

pub use super::assign::*;
pub use super::halo2::pasta::Fp as Fr;
pub use super::halo2::pasta::group::ff::{Field, FromUniformBytes};
pub use super::halo2::plonk::Assigned;
use super::halo2::plonk::{
    Circuit, Column, ConstraintSystem, Error, Expression, Fixed, TableColumn, VirtualCells,
};

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

/// The error of a synthesis with columns of another circuit, as near as halo2 has one.
pub fn mixed_up() -> Error {
    Error::Synthesis
}

/// Adds a gate, whose expressions are zero in all rows.
pub fn gate(
    cs: &mut ConstraintSystem<Fr>,
    name: &'static str,
    constraints: impl FnOnce(&mut VirtualCells<'_, Fr>) -> Vec<Expression<Fr>>,
) {
    cs.create_gate(name, constraints);
}

/// Adds a lookup.
pub fn lookup(
    cs: &mut ConstraintSystem<Fr>,
    _name: &'static str,
    table_map: impl FnOnce(&mut VirtualCells<'_, Fr>) -> Vec<(Expression<Fr>, TableColumn)>,
) {
    cs.lookup(table_map);
}

/// A fixed column at the current row.
pub fn query_fixed(cells: &mut VirtualCells<'_, Fr>, column: Column<Fixed>) -> Expression<Fr> {
    cells.query_fixed(column)
}
