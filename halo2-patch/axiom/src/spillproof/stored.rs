//! Values of a session: one value n times, a column, or memory under a lease. None takes memory until a slice
//! is asked for.

use std::io;
use std::sync::{Arc, OnceLock};

use halo2curves::bn256::Fr;
use spillproof_engine::budget::{Budget, Lease, LeasedVec};
use spillproof_engine::column::{Column, Workspace};
use spillproof_plonk::{once, spill, Scalar, StoredValues};

use super::convert::scalar;

/// Takes values, chunk by chunk.
pub(super) type Take<'a, F> = dyn FnMut(&[F]) -> io::Result<()> + 'a;

/// Values that are handed on at a time where they aren't read from a column.
const CHUNK_VALUES: usize = 1 << 14;

/// Values of a session.
pub(super) trait Stored<F>: Send + Sync {
    /// How many.
    fn len(&self) -> usize;
    /// All of them in memory, or mapped; the first call sees to that.
    fn as_slice(&self) -> io::Result<&[F]>;
    /// The first `len`, without a copy where that can be.
    fn prefix(&self, len: usize) -> io::Result<Arc<dyn Stored<F>>>;
    /// A copy in leased memory.
    fn leased(&self) -> io::Result<Arc<dyn Stored<F>>>;
    /// A copy that the caller owns. It is leased only while it is made.
    fn to_vec(&self) -> io::Result<Vec<F>>;
    /// All values in order, in chunks.
    fn for_each_chunk(&self, take: &mut dyn FnMut(&[F]) -> io::Result<()>) -> io::Result<()>;
    /// As a mutable slice, if it is leased memory.
    fn as_mut_slice(&mut self) -> Option<&mut [F]> {
        None
    }
    /// The value, if all are this one.
    fn constant(&self) -> Option<&F> {
        None
    }
    /// The column, if it is one. Its elements are bn256's `Fr`, and so is `F`.
    fn on_disk(&self) -> Option<&OnDisk> {
        None
    }
    /// A column with these values, if one can be made of them without taking it from the caller: the copy is
    /// kept.
    fn spilled(&self) -> Option<io::Result<Column<Scalar>>> {
        None
    }
}

/// One value, `len` times. Takes no memory until someone asks for a slice.
pub(super) struct Constant<F: Copy> {
    value: F,
    len: usize,
    workspace: Workspace,
    slice: OnceLock<LeasedVec<F>>,
    column: OnceLock<Column<Scalar>>,
}

impl<F: Copy + Send + Sync + 'static> Constant<F> {
    pub(super) fn shared(value: F, len: usize, workspace: &Workspace) -> Arc<dyn Stored<F>> {
        Arc::new(Self {
            value,
            len,
            workspace: workspace.clone(),
            slice: OnceLock::new(),
            column: OnceLock::new(),
        })
    }

    fn filled(&self) -> io::Result<LeasedVec<F>> {
        let budget = &self.workspace.budget;
        let values = budget.vec(self.len, self.value, "a constant polynomial as a slice");
        values.map_err(io::Error::other)
    }
}

impl<F: Copy + Send + Sync + 'static> Stored<F> for Constant<F> {
    fn len(&self) -> usize {
        self.len
    }

    fn as_slice(&self) -> io::Result<&[F]> {
        once(&self.slice, || self.filled()).map(|values| &**values)
    }

    fn prefix(&self, len: usize) -> io::Result<Arc<dyn Stored<F>>> {
        Ok(Self::shared(self.value, len, &self.workspace))
    }

    fn leased(&self) -> io::Result<Arc<dyn Stored<F>>> {
        Ok(Leased::shared(self.filled()?, self.value, &self.workspace.budget))
    }

    fn to_vec(&self) -> io::Result<Vec<F>> {
        let _lease = lease_of::<F>(&self.workspace.budget, self.len)?;
        Ok(vec![self.value; self.len])
    }

    fn for_each_chunk(&self, take: &mut dyn FnMut(&[F]) -> io::Result<()>) -> io::Result<()> {
        let chunk = vec![self.value; self.len.min(CHUNK_VALUES)];
        let mut left = self.len;
        while left > 0 {
            let now = left.min(chunk.len());
            take(&chunk[..now])?;
            left -= now;
        }
        Ok(())
    }

    fn constant(&self) -> Option<&F> {
        Some(&self.value)
    }

    fn spilled(&self) -> Option<io::Result<Column<Scalar>>> {
        // Kept: the empty columns of a proof are asked for in several passes.
        let column = once(&self.column, || {
            let feed = &mut |take: &mut Take<'_, F>| self.for_each_chunk(take);
            spill(&self.workspace.of_task(), self.len, scalar, feed).map_err(io::Error::from)
        });
        Some(column.cloned())
    }
}

/// Memory under a lease.
struct Leased<F: Copy> {
    values: LeasedVec<F>,
    /// Any value: copies are filled with it first.
    fill: F,
    budget: Budget,
}

impl<F: Copy + Send + Sync + 'static> Leased<F> {
    fn shared(values: LeasedVec<F>, fill: F, budget: &Budget) -> Arc<dyn Stored<F>> {
        let budget = budget.clone();
        Arc::new(Self { values, fill, budget })
    }
}

impl<F: Copy + Send + Sync + 'static> Stored<F> for Leased<F> {
    fn len(&self) -> usize {
        self.values.len()
    }

    fn as_slice(&self) -> io::Result<&[F]> {
        Ok(&self.values)
    }

    fn prefix(&self, len: usize) -> io::Result<Arc<dyn Stored<F>>> {
        let copy = self.budget.vec(len, self.fill, "a polynomial in memory");
        let mut copy = copy.map_err(io::Error::other)?;
        copy.copy_from_slice(&self.values[..len]);
        Ok(Self::shared(copy, self.fill, &self.budget))
    }

    fn leased(&self) -> io::Result<Arc<dyn Stored<F>>> {
        self.prefix(self.values.len())
    }

    fn to_vec(&self) -> io::Result<Vec<F>> {
        let _lease = lease_of::<F>(&self.budget, self.values.len())?;
        Ok(self.values.to_vec())
    }

    fn for_each_chunk(&self, take: &mut dyn FnMut(&[F]) -> io::Result<()>) -> io::Result<()> {
        take(&self.values)
    }

    fn as_mut_slice(&mut self) -> Option<&mut [F]> {
        Some(&mut self.values)
    }
}

/// The right to hold `len` values while they are copied out.
fn lease_of<F>(budget: &Budget, len: usize) -> io::Result<Lease> {
    let bytes = (len * size_of::<F>()) as u64;
    budget
        .lease(bytes, "a polynomial as a vector")
        .map_err(io::Error::other)
}

/// A polynomial's values in a column.
pub(crate) type OnDisk = StoredValues<Fr>;

/// The values of a column, with values at points that are known already.
pub(super) fn on_disk(
    column: Column<Scalar>,
    evaluations: impl IntoIterator<Item = (Scalar, Scalar)>,
) -> Arc<dyn Stored<Fr>> {
    Arc::new(OnDisk::new(column, evaluations))
}

impl Stored<Fr> for OnDisk {
    fn len(&self) -> usize {
        self.len()
    }

    fn as_slice(&self) -> io::Result<&[Fr]> {
        Ok(self.as_slice()?)
    }

    fn prefix(&self, len: usize) -> io::Result<Arc<dyn Stored<Fr>>> {
        let column = self.column().prefix(len as u64).map_err(io::Error::other)?;
        Ok(on_disk(column, []))
    }

    fn leased(&self) -> io::Result<Arc<dyn Stored<Fr>>> {
        let values = self.leased(Fr::zero())?;
        Ok(Leased::shared(
            values,
            Fr::zero(),
            &self.column().workspace().budget,
        ))
    }

    fn to_vec(&self) -> io::Result<Vec<Fr>> {
        let _lease = lease_of::<Fr>(&self.column().workspace().budget, self.len())?;
        let mut values = vec![Fr::zero(); self.len()];
        self.read_into(&mut values)?;
        Ok(values)
    }

    fn for_each_chunk(&self, take: &mut dyn FnMut(&[Fr]) -> io::Result<()>) -> io::Result<()> {
        Ok(self.for_each_chunk_as(Fr::zero(), take)?)
    }

    fn on_disk(&self) -> Option<&OnDisk> {
        Some(self)
    }
}
