//! Polynomials as columns of the engine: the scalar's counterpart of `engine.rs`.

use std::any::TypeId;
use std::io;
use std::sync::Arc;

use ::spillproof::column::Column;
use ::spillproof::Session;
use halo2curves::bn256::{Fr, G1Affine};
use halo2curves::CurveAffine;
use spillproof_halo2::{Scalar, StoredValues};

use super::engine::session;
use super::values::{lease_of, Leased, Stored};

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
