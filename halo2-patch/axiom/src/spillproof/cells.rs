//! Advice cells with addresses: a circuit keeps a reference to each value that it assigns.
//!
//! Stock hands out references into its vectors of `Assigned` values, for as long as the caller likes; so do
//! we, into [`Addressed`](spillproof_engine::column::Addressed) cells. They live until [`AdviceCells`] is
//! dropped, or until their columns are made after [`AdviceCells::end_reading`]: its owner does both when the
//! circuit's synthesis has returned, not when a circuit ends its phase itself.
//!
//! Shapes: `columns` times `rows` cells of nine words: the variant's number, and the limbs of numerator and
//! denominator, which is how `Assigned<Fr>` is laid out (it is `repr(u8)` by a graft). Words that a variant
//! does not use are zero, so no byte of another value reaches the disk. A cell that is never assigned is
//! `Assigned::Zero`, and takes no space. Memory: the share of the cells.
#![allow(unsafe_code)]

use std::any::Any;
use std::array::from_fn;
use std::marker::PhantomData;

use ff::Field;
use halo2curves::bn256::Fr;
use spillproof_engine::column::{Cell, Element, Workspace};
use spillproof_plonk::curve::Config;
use spillproof_plonk::{AdviceSource, ConstraintSystem, Domain, ProverCurve, Rounds, Scalar, Witness};

use super::or_panic;
use crate::plonk::Assigned;

/// Limbs of a field element.
const LIMBS: usize = 4;

/// A cell of an advice column: an `Assigned<Fr>`, as words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct AdviceCell([u64; 1 + 2 * LIMBS]);

const _: () = assert!(
    size_of::<AdviceCell>() == size_of::<Assigned<Fr>>()
        && align_of::<AdviceCell>() == align_of::<Assigned<Fr>>()
);

// SAFETY: any words are a value.
unsafe impl Cell for AdviceCell {
    fn has_meaning(&self) -> bool {
        self.0[0] <= 2
    }
}

impl AdviceCell {
    fn new(value: &Assigned<Fr>) -> Self {
        let mut words = [0; 1 + 2 * LIMBS];
        match value {
            Assigned::Zero => {}
            Assigned::Trivial(value) => {
                words[0] = 1;
                words[1..=LIMBS].copy_from_slice(&limbs(value));
            }
            Assigned::Rational(numerator, denominator) => {
                words[0] = 2;
                words[1..=LIMBS].copy_from_slice(&limbs(numerator));
                words[1 + LIMBS..].copy_from_slice(&limbs(denominator));
            }
        }
        Self(words)
    }

    /// The numerator, and the denominator if there is one.
    fn fraction(&self) -> (Scalar, Option<Scalar>) {
        let value = |first: usize| {
            let mut bytes = [0; 8 * LIMBS];
            for (bytes, limb) in bytes.chunks_exact_mut(8).zip(&self.0[first..]) {
                bytes.copy_from_slice(&limb.to_le_bytes());
            }
            Scalar::decode(&bytes)
        };
        (value(1), (self.0[0] == 2).then(|| value(1 + LIMBS)))
    }
}

/// In Montgomery form, lowest first.
fn limbs(value: &Fr) -> [u64; LIMBS] {
    let mut bytes = [0; 8 * LIMBS];
    value.encode(&mut bytes);
    from_fn(|limb| u64::from_le_bytes(from_fn(|byte| bytes[8 * limb + byte])))
}

/// The advice cells of one circuit, all `Assigned::Zero` at first.
pub(crate) struct AdviceCells<F> {
    cells: Cells,
    field: PhantomData<F>,
}

/// Cells of BN254's scalars. What a proof does with them is generic over nothing, so compiled in this crate.
struct Cells(spillproof_plonk::AdviceCells<AdviceCell>);

impl Cells {
    fn new(workspace: &Workspace, cs: &ConstraintSystem, domain: &Domain) -> spillproof_plonk::Result<Self> {
        let cells = spillproof_plonk::AdviceCells::new(workspace, cs, domain, AdviceCell::fraction)?;
        Ok(Self(cells))
    }

    fn assign(&mut self, column: usize, row: usize, value: &Assigned<Fr>) -> *const AdviceCell {
        let assigned = self.0.assign(column, row, AdviceCell::new(value));
        match or_panic(assigned.map_err(Into::into)) {
            Some(address) => address,
            None => panic!("Not enough advice columns or rows: column {column}, row {row}"),
        }
    }

    fn commit_phase(
        &mut self,
        witness: &mut Witness<'_>,
        challenges: &mut [Option<Scalar>],
        rounds: &mut Rounds<'_>,
    ) -> spillproof_plonk::Result<()> {
        Config::commit_phase(witness, &mut self.0, challenges, rounds)
    }
}

impl AdviceCells<Fr> {
    /// Where the columns of a file come from: nothing is assigned any more. Memory: one column at a time, as
    /// far as the budget has room, else a tile of it.
    pub(crate) fn into_source(mut self) -> Box<dyn AdviceSource + Send> {
        self.end_reading();
        Box::new(self.cells.0)
    }
}

impl<F: Field> AdviceCells<F> {
    /// # Errors
    /// If there is no room for them.
    pub(crate) fn new(
        workspace: &Workspace,
        cs: &ConstraintSystem,
        domain: &Domain,
    ) -> spillproof_plonk::Result<Self> {
        Ok(Self {
            cells: Cells::new(workspace, cs, domain)?,
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
        let address = self.cells.assign(column, row, value).cast::<Assigned<F>>();
        // SAFETY: `F` is `Fr`, or the downcast had failed, and the words of an `AdviceCell` are those of an
        // `Assigned<Fr>` (a test compares them). The cell stays where it is while it lives, and holds a value
        // here. That no code reads through the reference after the cell is gone, or while it is assigned
        // once more, is the caller's bargain as it is stock's: synthesis has then returned.
        unsafe { &*address }
    }

    /// Synthesis has returned, so no reference is read any more.
    pub(crate) fn end_reading(&mut self) {
        self.cells.0.end_reading();
    }

    /// Ends a phase of the witness: see [`ProverCurve::commit_phase`].
    ///
    /// # Errors
    /// The engine's, and the protocol's.
    pub(crate) fn commit_phase(
        &mut self,
        witness: &mut Witness<'_>,
        challenges: &mut [Option<Scalar>],
        rounds: &mut Rounds<'_>,
    ) -> spillproof_plonk::Result<()> {
        self.cells.commit_phase(witness, challenges, rounds)
    }
}

#[cfg(test)]
mod tests {
    use super::super::convert::scalar;
    use super::*;

    #[test]
    fn the_words_of_a_cell_are_an_assigned_value() {
        let (one, other) = (Fr::from(7), -Fr::from(3));
        for value in [
            Assigned::Zero,
            Assigned::Trivial(other),
            Assigned::Rational(one, other),
        ] {
            let cell = AdviceCell::new(&value);
            // SAFETY: this is what is tested: words whose first is the number of a variant, and limbs below
            // the modulus.
            let read = unsafe { *std::ptr::from_ref(&cell).cast::<Assigned<Fr>>() };
            assert_eq!(read, value);
            assert_eq!(
                (read.numerator(), read.denominator()),
                (value.numerator(), value.denominator())
            );
            let (numerator, denominator) = cell.fraction();
            assert_eq!(
                (numerator, denominator),
                (
                    scalar(&value.numerator()),
                    value.denominator().as_ref().map(scalar)
                )
            );
            assert!(cell.has_meaning());
        }
        assert!(!AdviceCell([3; 9]).has_meaning());
    }
}
