//! From an SRS container to a `ParamsKZG` file, in any of its formats: the bytes that stock `write_custom`
//! gives.
//!
//! The file is written beside, synced and renamed. A `ParamsKZG` file begins with four bytes, so nothing in it
//! is aligned: bytes are packed into aligned buffers.
//!
//! Memory, all leased: that of [`super::srs_stream`], and three write buffers of 1 MiB.

use std::path::Path;

use spillproof_format::Curve as CurveId;
use spillproof_format::params_kzg::SerdeFormat;

use super::compiled::KzgCurve;
use super::srs::opened;
use super::srs_check::SrsProgress;
use spillproof_engine::Result;
use spillproof_engine::column::{Container, Workspace};
use spillproof_engine::storage::Packed;

/// Exports the SRS container `source` as the `ParamsKZG` file `target`, which appears only when it is whole:
/// over BN254 as halo2's forks write it, over BLS12-381 as midnight-proofs does. Gives k.
///
/// # Errors
/// [`Error::Invalid`](spillproof_engine::Error::Invalid) when the SRS lacks one of the bases;
/// [`Error::Format`](spillproof_engine::Error::Format),
/// [`Error::Damaged`](spillproof_engine::Error::Damaged) when it is damaged;
/// [`Error::Io`](spillproof_engine::Error::Io), [`Error::File`](spillproof_engine::Error::File),
/// [`Error::OverBudget`](spillproof_engine::Error::OverBudget).
pub fn export_params_kzg(
    workspace: &Workspace,
    source: &Path,
    target: &Path,
    format: SerdeFormat,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<u32> {
    let container = Container::open(workspace, source)?;
    match container.header().curve() {
        CurveId::Bls12381 => export::<ark_bls12_381::Bls12_381>(&container, target, format, progress),
        _ => export::<ark_bn254::Bn254>(&container, target, format, progress),
    }
}

fn export<E: KzgCurve>(
    container: &Container,
    target: &Path,
    format: SerdeFormat,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<u32> {
    let srs = opened::<E>(container)?;
    // Both are there, or no file is begun.
    let workspace = srs.monomial()?.workspace();
    srs.lagrange()?;
    let publish = workspace.storage.publish(target)?;
    let mut out = Packed::new(&workspace.budget, publish.file().clone())?;
    E::write_params_kzg(&srs, format, &mut out, progress)?;
    out.finish()?;
    publish.commit()?;
    Ok(srs.k())
}
