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
use std::io;
use std::marker::PhantomData;

use ::spillproof::column::{Cell, Column, Mapped, Residency, Workspace};
use ::spillproof::commit::Scalar;
use ::spillproof::plonkish::witness_column;
use ff::Field;
use halo2curves::bn256::Fr;

use super::bases::or_panic;
use super::values::scalar;
use crate::plonk::Assigned;

/// A cell of an advice column.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct AdviceCell(Assigned<Fr>);

// SAFETY: `Assigned` is `repr(u8)`, and a tag of 0 is its first variant `Zero`, which has no fields. Its padding is never
// read. It is `Copy`, so there is nothing to drop.
unsafe impl Cell for AdviceCell {}

/// The advice cells of one circuit.
pub(crate) struct AdviceCells<F> {
    columns: Vec<Mapped<AdviceCell>>,
    share: Residency,
    /// What of the share stays when cells are only read.
    reading_bytes: u64,
    rows: usize,
    field: PhantomData<F>,
}

impl<F: Field> AdviceCells<F> {
    /// `columns` columns of `rows` cells, all `Assigned::Zero`, to be assigned in so many phases.
    ///
    /// # Errors
    /// If there is no room for them.
    pub(crate) fn new(workspace: &Workspace, columns: usize, rows: usize, phases: usize) -> io::Result<Self> {
        let make = || {
            let reading_bytes = Residency::default_share_bytes(workspace, columns);
            let share_bytes = match phases {
                1 => Residency::writing_share_bytes(workspace, columns),
                // Other columns are committed to between.
                _ => reading_bytes,
            };
            let share = Residency::new(workspace, "advice cells", share_bytes, columns)?;
            let columns = (0..columns)
                .map(|_| Mapped::zeroed_in(&share, "advice cells", rows as u64))
                .collect::<::spillproof::Result<_>>()?;
            Ok(Self {
                columns,
                share,
                reading_bytes,
                rows,
                field: PhantomData,
            })
        };
        workspace.run_here(make).map_err(io::Error::other)
    }

    /// Makes room in memory: cells are read now, column by column.
    ///
    /// # Errors
    /// If the disk fails.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        let kept = self.share.keep_for_reading(self.reading_bytes);
        kept.map_err(io::Error::other)
    }

    /// Assigns a cell, and gives its address.
    ///
    /// Panics for a cell that is not there, in stock's words, and where the disk fails.
    #[inline]
    pub(crate) fn assign<'v>(&mut self, column: usize, row: usize, value: Assigned<F>) -> &'v Assigned<F> {
        let Some(value) = (&value as &dyn Any).downcast_ref::<Assigned<Fr>>() else {
            panic!("spillproof: advice cells hold elements of bn256::Fr only");
        };
        let Some(column) = self.columns.get_mut(column) else {
            panic!("Not enough advice columns");
        };
        if row >= self.rows {
            panic!("Not enough rows");
        }
        let address = or_panic(
            column
                .set(row as u64, AdviceCell(*value))
                .map_err(io::Error::other),
        );
        let address = address.cast::<Assigned<F>>();
        // SAFETY: `F` is `Fr`, or the downcast had failed, and `AdviceCell` is a transparent `Assigned<Fr>`. The map stays
        // where it is while it lives, and holds a value here. That nobody reads through the reference after the map is gone,
        // or while the cell is assigned once more, is the caller's bargain as it is stock's: synthesis has then returned.
        unsafe { &*address }
    }

    /// A column's values, once its fractions are inverted, and `tail` in its last rows.
    ///
    /// # Errors
    /// If there is no room, or the disk fails.
    pub(crate) fn column(
        &mut self,
        workspace: &Workspace,
        column: usize,
        tail: &[Scalar],
    ) -> ::spillproof::Result<Column<Scalar>> {
        let fraction = |cell: &AdviceCell| {
            (
                scalar(&cell.0.numerator()),
                cell.0.denominator().as_ref().map(scalar),
            )
        };
        witness_column(workspace, &mut self.columns[column], fraction, tail)
    }
}
