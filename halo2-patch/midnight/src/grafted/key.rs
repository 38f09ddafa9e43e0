//! Proving keys that are read in a session. A child of upstream's `plonk`.

use std::io;
use std::sync::Arc;

use spillproof_engine::Session;

use super::*;
use crate::spillproof::circuit;
use crate::spillproof::key::{KeyOnDisk, KeyShape};

/// What [`ProvingKey::write`] wrote, on the session's disk.
///
/// # Errors
/// Those of the reader; of a key that is another circuit's; where the disk or the budget has no room.
pub(super) fn read<F, CS, R, ConcreteCircuit>(
    session: &Arc<Session>,
    reader: &mut R,
    format: SerdeFormat,
    #[cfg(feature = "circuit-params")] params: ConcreteCircuit::Params,
) -> io::Result<ProvingKey<F, CS>>
where
    F: WithSmallOrderMulGroup<3> + FromUniformBytes<64> + SerdeObject,
    CS: PolynomialCommitmentScheme<F>,
    R: io::Read,
    ConcreteCircuit: Circuit<F>,
{
    let vk = VerifyingKey::<F, CS>::read::<R, ConcreteCircuit>(
        reader,
        format,
        #[cfg(feature = "circuit-params")]
        params,
    )?;
    let domain = circuit::domain::<F>(vk.domain.k(), vk.cs_degree);
    let shape = KeyShape {
        rows: vk.n(),
        fixed: vk.cs.num_fixed_columns,
        sigmas: vk.permutation.commitments().len(),
    };
    let to_coefficients = domain.to_coefficients().map_err(io::Error::other)?;
    let columns = KeyOnDisk::read(session, reader, shape, &to_coefficients)?;
    Ok(keygen::spillproof_keygen::on_disk(vk, columns))
}
