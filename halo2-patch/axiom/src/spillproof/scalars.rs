//! Polynomials as columns of the engine: the scalar's counterpart of `engine.rs`.
//!
//! The engine computes with arkworks' type, halo2 with halo2curves', and the bytes are the same: a column is cast.
//! A slice that a caller asks for is a map of the column's file.
//! Memory: what the engine leases for a pass; at most [`REMEMBERED_MAX`] evaluations a column.

use std::any::TypeId;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ::spillproof::budget::LeasedVec;
use ::spillproof::column::{Column, Element, MappedColumn, Placement, Workspace, Writer};
use ::spillproof::commit::Scalar;
use ::spillproof::stream::{self, Transform};
use ::spillproof::Session;
use halo2curves::bn256::{Fr, G1Affine};
use halo2curves::CurveAffine;

use super::convert::scalar;
use super::engine::session;
use super::values::{column, lease_of, once, Leased, Stored};
use crate::poly::Polynomial;

/// Evaluations that a column remembers, the latest: more than a proof asks of one, and a key outlives many proofs.
const REMEMBERED_MAX: usize = 64;

/// The current session, if the curve is the one that the engine knows.
///
/// # Errors
/// If a session was asked for and can't be made.
pub(crate) fn prover_session<C: CurveAffine + 'static>() -> io::Result<Option<Arc<Session>>> {
    if TypeId::of::<C>() != TypeId::of::<G1Affine>() {
        return Ok(None);
    }
    let session = session()?;
    if let Some(session) = &session {
        super::announce(session);
    }
    Ok(session)
}

/// Takes values, chunk by chunk.
pub(super) type Take<'a, F> = dyn FnMut(&[F]) -> io::Result<()> + 'a;

/// Writes `len` values to a scratch column as `feed` hands them over.
///
/// # Errors
/// Those of `feed`, and where the disk or the budget has no room.
pub(super) fn spill<F: 'static>(
    workspace: &Workspace,
    len: usize,
    feed: &mut dyn FnMut(&mut Take<'_, F>) -> io::Result<()>,
) -> io::Result<Column<Scalar>> {
    /// Values that are converted at a time.
    const TILE: usize = 512;
    let mut fed = Ok(());
    let spilled = workspace.run_here(|| {
        let mut writer = Writer::scratch(workspace, "polynomial", len as u64, Placement::Auto)?;
        let mut tile = Vec::with_capacity(TILE);
        fed = feed(&mut |values| {
            for values in values.chunks(TILE) {
                tile.clear();
                tile.extend(values.iter().map(scalar));
                writer.push(&tile).map_err(io::Error::other)?;
            }
            Ok(())
        });
        writer.finish()
    });
    fed.and_then(|()| spilled.map_err(io::Error::other))
}

/// The transform of a polynomial that is of a session.
///
/// # Errors
/// Where the disk or the budget has no room.
pub(super) fn transformed<F: Copy + 'static, B>(
    poly: &Polynomial<F, B>,
    transform: &Transform<Scalar>,
) -> io::Result<Column<Scalar>> {
    stream::ntt(&column(poly)?, transform, Placement::Auto).map_err(io::Error::other)
}

/// A polynomial's values in a column.
pub(crate) struct OnDisk {
    column: Column<Scalar>,
    slice: OnceLock<MappedColumn<Fr>>,
    /// Points and values, the latest last.
    evaluations: Mutex<VecDeque<(Scalar, Scalar)>>,
}

impl OnDisk {
    pub(super) fn shared(column: Column<Scalar>) -> Arc<dyn Stored<Fr>> {
        Self::evaluated(column, VecDeque::new())
    }

    /// With values at points that are known already.
    pub(super) fn evaluated(
        column: Column<Scalar>,
        evaluations: VecDeque<(Scalar, Scalar)>,
    ) -> Arc<dyn Stored<Fr>> {
        Arc::new(Self {
            column,
            slice: OnceLock::new(),
            evaluations: Mutex::new(evaluations),
        })
    }

    /// The column.
    pub(crate) fn column(&self) -> &Column<Scalar> {
        &self.column
    }

    /// The value at `point`, read if it isn't remembered.
    pub(super) fn evaluate(&self, point: Scalar) -> io::Result<Scalar> {
        if let Some(value) = self.remembered(point) {
            return Ok(value);
        }
        let value = stream::evaluate(&self.column, point).map_err(io::Error::other)?;
        self.remember(&[point], &[value]);
        Ok(value)
    }

    /// Evaluates each polynomial at its points, each column in one pass, and remembers.
    pub(super) fn evaluate_all(wanted: &[(&Self, Vec<Scalar>)]) -> io::Result<()> {
        let unknown = |(on_disk, points): &(&Self, Vec<Scalar>)| -> Vec<Scalar> {
            points
                .iter()
                .copied()
                .filter(|point| on_disk.remembered(*point).is_none())
                .collect()
        };
        let missing: Vec<(&Self, Vec<Scalar>)> = wanted
            .iter()
            .map(|wanted| (wanted.0, unknown(wanted)))
            .filter(|(_, points)| !points.is_empty())
            .collect();
        let queries: Vec<_> = missing
            .iter()
            .map(|(on_disk, points)| (&on_disk.column, points.clone()))
            .collect();
        let values = stream::evaluate_all(&queries);
        for ((on_disk, points), values) in missing.iter().zip(values.map_err(io::Error::other)?) {
            on_disk.remember(points, &values);
        }
        Ok(())
    }

    /// All values in order and in chunks, as elements of another type with the same bytes. `fill` is any of them.
    pub(super) fn for_each_chunk_as<T: Element>(
        &self,
        fill: T,
        take: &mut dyn FnMut(&[T]) -> io::Result<()>,
    ) -> io::Result<()> {
        let column = self.column.cast::<T>().map_err(io::Error::other)?;
        let chunk = column.sequential_chunk();
        let values = column
            .workspace()
            .budget
            .vec(chunk as usize, fill, "values being read");
        let mut values = values.map_err(io::Error::other)?;
        let mut reader = column.read_ascending(chunk).map_err(io::Error::other)?;
        while let Some(region) = reader.next_into(&mut values).map_err(io::Error::other)? {
            take(&values[..region.len() as usize])?;
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

    fn read(&self) -> ::spillproof::Result<LeasedVec<Fr>> {
        let column = self.column.cast::<Fr>()?;
        let budget = &column.workspace().budget;
        let mut values = budget.vec(column.len() as usize, Fr::zero(), "a copy of a polynomial")?;
        read_into(&column, &mut values)?;
        Ok(values)
    }
}

fn read_into(column: &Column<Fr>, out: &mut [Fr]) -> ::spillproof::Result<()> {
    let mut reader = column.read_ascending(column.sequential_chunk())?;
    let mut done = 0;
    while let Some(region) = reader.next_into(&mut out[done..])? {
        done += region.len() as usize;
    }
    Ok(())
}

impl Stored<Fr> for OnDisk {
    fn len(&self) -> usize {
        self.column.len() as usize
    }

    fn as_slice(&self) -> io::Result<&[Fr]> {
        let map = || {
            self.column
                .cast::<Fr>()
                .and_then(|column| column.map())
                .map_err(io::Error::other)
        };
        once(&self.slice, map).map(|values| &**values)
    }

    fn prefix(&self, len: usize) -> io::Result<Arc<dyn Stored<Fr>>> {
        let column = self.column.prefix(len as u64).map_err(io::Error::other)?;
        Ok(Self::shared(column))
    }

    fn leased(&self) -> io::Result<Arc<dyn Stored<Fr>>> {
        let values = self.read().map_err(io::Error::other)?;
        Ok(Leased::shared(
            values,
            Fr::zero(),
            &self.column.workspace().budget,
        ))
    }

    fn to_vec(&self) -> io::Result<Vec<Fr>> {
        let len = self.column.len() as usize;
        let _lease = lease_of::<Fr>(&self.column.workspace().budget, len)?;
        let mut values = vec![Fr::zero(); len];
        let column = self.column.cast().map_err(io::Error::other)?;
        read_into(&column, &mut values).map_err(io::Error::other)?;
        Ok(values)
    }

    fn for_each_chunk(&self, take: &mut dyn FnMut(&[Fr]) -> io::Result<()>) -> io::Result<()> {
        self.for_each_chunk_as(Fr::zero(), take)
    }

    fn on_disk(&self) -> Option<&OnDisk> {
        Some(self)
    }
}
