//! Advice cells in mapped scratch, with addresses: a circuit keeps a reference to each value that it assigns.
//!
//! Stock hands out references into its vectors of `Assigned` values, for as long as the caller likes; so do we, into maps.
//! They live until [`AdviceCells`] is dropped, which its owner does when the circuit's synthesis has returned.
//!
//! Shapes: `columns` times `rows` cells of `size_of::<Assigned<Fr>>()` = 72 bytes. A cell that is never assigned is
//! `Assigned::Zero` (`Assigned` is `repr(u8)` by a graft, and its first variant's tag is 0) and takes no space. Memory: what
//! the maps keep resident.
#![allow(unsafe_code)]

use std::any::Any;
use std::marker::PhantomData;

use ::spillproof::column::{Cell, Workspace};
use ff::Field;
use halo2curves::bn256::Fr;
use spillproof_halo2::{ConstraintSystem, Domain, Scalar};

use super::convert::scalar;
use super::or_panic;
use crate::plonk::Assigned;

/// A cell of an advice column.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct AdviceCell(Assigned<Fr>);

// SAFETY: `Assigned` is `repr(u8)`, and a tag of 0 is its first variant `Zero`, which has no fields. Its padding is never
// read. It is `Copy`, so there is nothing to drop.
unsafe impl Cell for AdviceCell {}

/// A cell's numerator and denominator.
fn fraction(AdviceCell(value): &AdviceCell) -> (Scalar, Option<Scalar>) {
    (
        scalar(&value.numerator()),
        value.denominator().as_ref().map(scalar),
    )
}

/// The advice cells of one circuit, all `Assigned::Zero` at first.
pub(crate) struct AdviceCells<F> {
    pub(crate) cells: spillproof_halo2::AdviceCells<AdviceCell>,
    field: PhantomData<F>,
}

impl<F: Field> AdviceCells<F> {
    /// # Errors
    /// If there is no room for them.
    pub(crate) fn new(
        workspace: &Workspace,
        cs: &ConstraintSystem,
        domain: &Domain,
    ) -> spillproof_halo2::Result<Self> {
        Ok(Self {
            cells: spillproof_halo2::AdviceCells::new(workspace, cs, domain, fraction)?,
            field: PhantomData,
        })
    }

    /// Assigns a cell, and gives its address.
    ///
    /// Panics for a cell that is not there, and where the disk fails.
    #[inline]
    pub(crate) fn assign<'v>(&mut self, column: usize, row: usize, value: Assigned<F>) -> &'v Assigned<F> {
        let Some(value) = (&value as &dyn Any).downcast_ref::<Assigned<Fr>>() else {
            panic!("spillproof: advice cells hold elements of bn256::Fr only");
        };
        let assigned = self.cells.assign(column, row, AdviceCell(*value));
        let Some(address) = or_panic(assigned.map_err(Into::into)) else {
            panic!("Not enough advice columns or rows: column {column}, row {row}");
        };
        let address = address.cast::<Assigned<F>>();
        // SAFETY: `F` is `Fr`, or the downcast had failed, and `AdviceCell` is a transparent `Assigned<Fr>`. The map stays
        // where it is while it lives, and holds a value here. That no code reads through the reference after the map is gone,
        // or while the cell is assigned once more, is the caller's bargain as it is stock's: synthesis has then returned.
        unsafe { &*address }
    }
}
