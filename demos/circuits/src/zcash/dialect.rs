//! Where zcash's halo2_proofs differs from other releases of halo2: the field, and assignments with
//! annotations and errors.

use super::halo2::circuit::{Cell, Layouter, Region, Value};
pub use super::halo2::pasta::Fp as Fr;
pub use super::halo2::pasta::group::ff::FromUniformBytes;
use super::halo2::plonk::{
    Advice, Assigned, Circuit, Column, ConstraintSystem, Error, Expression, Fixed, Instance, TableColumn,
    VirtualCells,
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

/// Assigns a cell of the witness.
///
/// # Errors
/// halo2's.
pub fn assign_advice(
    region: &mut Region<'_, Fr>,
    column: Column<Advice>,
    row: usize,
    value: Value<Assigned<Fr>>,
) -> Result<Cell, Error> {
    Ok(region.assign_advice(|| "", column, row, || value)?.cell())
}

/// Assigns a cell of the circuit.
///
/// # Errors
/// halo2's.
pub fn assign_fixed(
    region: &mut Region<'_, Fr>,
    column: Column<Fixed>,
    row: usize,
    value: Fr,
) -> Result<(), Error> {
    region.assign_fixed(|| "", column, row, || Value::known(value))?;
    Ok(())
}

/// Copies one cell to another.
///
/// # Errors
/// halo2's.
pub fn constrain_equal(region: &mut Region<'_, Fr>, left: Cell, right: Cell) -> Result<(), Error> {
    region.constrain_equal(left, right)
}

/// Makes a cell public.
///
/// # Errors
/// halo2's.
pub fn constrain_instance(
    layouter: &mut impl Layouter<Fr>,
    cell: Cell,
    column: Column<Instance>,
    row: usize,
) -> Result<(), Error> {
    layouter.constrain_instance(cell, column, row)
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
