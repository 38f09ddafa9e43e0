//! Where halo2-axiom differs from other releases of halo2: the field, and assignments without annotations and
//! errors.

use super::halo2::circuit::{Cell, Layouter, Region, Value};
pub use super::halo2::halo2curves::bn256::Fr;
pub use super::halo2::halo2curves::ff::{Field, FromUniformBytes, PrimeField};
pub use super::halo2::plonk::Assigned;
use super::halo2::plonk::{
    Advice, Circuit, Column, ConstraintSystem, Error, Expression, Fixed, Instance, Selector, TableColumn,
    VirtualCells,
};
pub use halo2_axiom::spillproof::description;

/// What to do about constraints of another degree.
pub const OTHER_DEGREE: &str = "set MAX_DEGREE as it was there";

/// A circuit that `configure` makes without parameters.
pub trait Plain: Circuit<Fr, Params = ()> {}

impl<C: Circuit<Fr, Params = ()>> Plain for C {}

/// The associated types of a circuit besides its columns.
macro_rules! associated_types {
    () => {
        type FloorPlanner = super::halo2::circuit::SimpleFloorPlanner;
        type Params = ();
    };
}
pub(super) use associated_types;

/// The error of a synthesis with columns of another circuit, as near as halo2 has one.
pub fn mixed_up() -> Error {
    Error::Synthesis
}

/// Assigns a cell of the witness.
///
/// # Errors
/// None here; other releases have some.
pub fn assign_advice(
    region: &mut Region<'_, Fr>,
    column: Column<Advice>,
    row: usize,
    value: Value<Assigned<Fr>>,
) -> Result<Cell, Error> {
    Ok(region.assign_advice(column, row, value).cell())
}

/// Assigns a cell of the circuit.
///
/// # Errors
/// As [`assign_advice`].
pub fn assign_fixed(
    region: &mut Region<'_, Fr>,
    column: Column<Fixed>,
    row: usize,
    value: Fr,
) -> Result<(), Error> {
    region.assign_fixed(column, row, value);
    Ok(())
}

/// Copies one cell to another.
///
/// # Errors
/// As [`assign_advice`].
pub fn constrain_equal(region: &mut Region<'_, Fr>, left: Cell, right: Cell) -> Result<(), Error> {
    region.constrain_equal(left, right);
    Ok(())
}

/// Makes a cell public.
///
/// # Errors
/// As [`assign_advice`].
pub fn constrain_instance(
    layouter: &mut impl Layouter<Fr>,
    cell: Cell,
    column: Column<Instance>,
    row: usize,
) -> Result<(), Error> {
    layouter.constrain_instance(cell, column, row);
    Ok(())
}

/// Adds a gate, whose expressions are zero in all rows.
pub fn gate(
    cs: &mut ConstraintSystem<Fr>,
    name: &'static str,
    constraints: impl FnOnce(&mut VirtualCells<'_, Fr>) -> Vec<Expression<Fr>>,
) {
    cs.create_gate(name, constraints);
}

/// Makes an advice column; all are blinded.
pub fn advice_column(cs: &mut ConstraintSystem<Fr>, _is_blinded: bool) -> Column<Advice> {
    cs.advice_column()
}

/// Would add a gate under an additive selector, with names of its expressions: there are none.
pub fn additive_gate(
    _cs: &mut ConstraintSystem<Fr>,
    _selector: Selector,
    _constraints: impl FnOnce(&mut VirtualCells<'_, Fr>) -> Vec<(String, Expression<Fr>)>,
) {
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
