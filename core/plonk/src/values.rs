//! Values of a polynomial on disk, in the types of another library whose elements have the same bytes.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use spillproof_engine::budget::LeasedVec;
use spillproof_engine::column::{Column, Element, MappedColumn, Placement, Plain, Workspace, Writer};
use spillproof_engine::stream;

use crate::bases::for_each_chunk;
use crate::curve::Scalar;
use crate::error::Result;
use crate::once::once;

/// Evaluations that a column remembers, the latest: more than a proof asks of one, and a key outlives many
/// proofs.
const REMEMBERED_MAX: usize = 64;

/// A polynomial's values in a column, as elements `E`. Evaluations are remembered.
///
/// Memory: what the engine leases for a pass; at most `REMEMBERED_MAX` evaluations.
pub struct StoredValues<E: Element> {
    column: Column<Scalar>,
    slice: OnceLock<MappedColumn<E>>,
    /// Points and values, the latest last.
    evaluations: Mutex<VecDeque<(Scalar, Scalar)>>,
}

impl<E: Element + Plain> StoredValues<E> {
    /// The values of a column, with evaluations that are known already.
    pub fn new(column: Column<Scalar>, evaluations: impl IntoIterator<Item = (Scalar, Scalar)>) -> Self {
        Self {
            column,
            slice: OnceLock::new(),
            evaluations: Mutex::new(evaluations.into_iter().collect()),
        }
    }

    /// The column.
    pub fn column(&self) -> &Column<Scalar> {
        &self.column
    }

    /// How many values.
    pub fn len(&self) -> usize {
        self.column.len() as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.column.is_empty()
    }

    /// All of them, mapped; the first call reads them once, to check them.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn as_slice(&self) -> Result<&[E]> {
        once(&self.slice, || Ok(self.column.cast::<E>()?.map()?)).map(|values| &**values)
    }

    /// A copy in leased memory. `fill` is any element.
    ///
    /// # Errors
    /// If they can't be read, or the budget has no room.
    pub fn leased(&self, fill: E) -> Result<LeasedVec<E>> {
        let column = self.column.cast::<E>()?;
        let budget = &column.workspace().budget;
        let mut values = budget.vec(self.len(), fill, "a copy of a polynomial")?;
        self.read_into(&mut values)?;
        Ok(values)
    }

    /// A copy into memory of the caller's, which has as many elements.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn read_into(&self, out: &mut [E]) -> Result<()> {
        let column = self.column.cast::<E>()?;
        let mut reader = column.read_ascending(column.sequential_chunk())?;
        let mut done = 0;
        while let Some(region) = reader.next_into(&mut out[done..])? {
            done += region.len() as usize;
        }
        Ok(())
    }

    /// All values in order and in chunks, as elements of any type with the same bytes. `fill` is any of them.
    ///
    /// # Errors
    /// Those of `take`; if they can't be read.
    pub fn for_each_chunk_as<T: Element>(
        &self,
        fill: T,
        take: &mut dyn FnMut(&[T]) -> io::Result<()>,
    ) -> Result<()> {
        for_each_chunk(&self.column.cast()?, fill, "values being read", take)
    }

    /// The value at `point`, read if it isn't remembered.
    ///
    /// # Errors
    /// If the column can't be read.
    pub fn evaluate(&self, point: Scalar) -> Result<Scalar> {
        if let Some(value) = self.remembered(point) {
            return Ok(value);
        }
        let value = stream::evaluate(&self.column, point)?;
        self.remember(&[point], &[value]);
        Ok(value)
    }

    /// Evaluates each polynomial at its points, each column in one pass, and remembers.
    ///
    /// # Errors
    /// If a column can't be read.
    pub fn evaluate_all(wanted: &[(&Self, Vec<Scalar>)]) -> Result<()> {
        let unknown = |(values, points): &(&Self, Vec<Scalar>)| -> Vec<Scalar> {
            let points = points.iter().copied();
            points
                .filter(|point| values.remembered(*point).is_none())
                .collect()
        };
        let missing: Vec<(&Self, Vec<Scalar>)> = wanted
            .iter()
            .map(|wanted| (wanted.0, unknown(wanted)))
            .filter(|(_, points)| !points.is_empty())
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let queries: Vec<_> = missing
            .iter()
            .map(|(values, points)| (&values.column, points.clone()))
            .collect();
        let evaluations = stream::evaluate_all(&queries)?;
        for ((values, points), evaluations) in missing.iter().zip(evaluations) {
            values.remember(points, &evaluations);
        }
        Ok(())
    }

    fn remembered(&self, point: Scalar) -> Option<Scalar> {
        let evaluations = self.evaluations();
        evaluations
            .iter()
            .find(|(at, _)| *at == point)
            .map(|(_, value)| *value)
    }

    fn remember(&self, points: &[Scalar], values: &[Scalar]) {
        let mut evaluations = self.evaluations();
        evaluations.extend(points.iter().copied().zip(values.iter().copied()));
        let surplus = evaluations.len().saturating_sub(REMEMBERED_MAX);
        evaluations.drain(..surplus);
    }

    fn evaluations(&self) -> MutexGuard<'_, VecDeque<(Scalar, Scalar)>> {
        self.evaluations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes values, a few at a time.
pub type Take<'a, F> = dyn FnMut(&[F]) -> io::Result<()> + 'a;

/// Writes `len` values to a scratch column as `feed` hands them over.
///
/// # Errors
/// Those of `feed`, and where the disk or the budget has no room.
pub fn spill<F>(
    workspace: &Workspace,
    len: usize,
    convert: fn(&F) -> Scalar,
    feed: &mut dyn FnMut(&mut Take<'_, F>) -> io::Result<()>,
) -> Result<Column<Scalar>> {
    /// Values that are converted at a time.
    const TILE: usize = 512;
    let mut tile = Vec::with_capacity(TILE);
    write(workspace, len, &mut |push| {
        feed(&mut |values| {
            for values in values.chunks(TILE) {
                tile.clear();
                tile.extend(values.iter().map(convert));
                push(&tile)?;
            }
            Ok(())
        })
    })
}

/// [`spill`] of our own values: generic over nothing, so compiled in this crate.
fn write(
    workspace: &Workspace,
    len: usize,
    feed: &mut dyn FnMut(&mut Take<'_, Scalar>) -> io::Result<()>,
) -> Result<Column<Scalar>> {
    let mut fed = Ok(());
    let written = workspace.run_here(|| {
        let mut writer = Writer::scratch(workspace, "polynomial", len as u64, Placement::Auto)?;
        fed = feed(&mut |values| writer.push(values).map_err(io::Error::other));
        writer.finish()
    });
    fed?;
    Ok(written?)
}
