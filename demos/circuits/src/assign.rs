//! Assignments with annotations and errors, as zcash's halo2_proofs and midnight-proofs have them.

use super::dialect::{Assigned, Fr};
use super::halo2::circuit::{Cell, Layouter, Region, Value};
use super::halo2::plonk::{Advice, Column, Error, Fixed, Instance};

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
