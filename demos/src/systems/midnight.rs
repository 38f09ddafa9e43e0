//! midnight-proofs: KZG over BLS12-381.

use std::fs::File;
use std::io;
use std::path::Path;

use ark_bls12_381::Bls12_381;
use midnight_proofs::plonk;
use midnight_proofs::spillproof as of_dropin;
use spillproof_circuits::midnight::{dropin, stock};
use spillproof_engine::Session;
use spillproof_engine::plan::{Plan, Rates};
use spillproof_engine::storage::Packed;
use stock_midnight_proofs::plonk::Error as StockError;

use super::kzg::{self, InSession, Kzg};
use super::{KeyFiles, Prover, Verifier};
use crate::args::{Parameters, Shape, Statement};
use crate::failure::Failure;
use crate::read_once::{ReadOnce, read_whole};
use crate::run::Result;

/// The drop-in, in the current session; without one it is upstream's own code.
pub struct DropIn;
/// The unmodified crate.
pub struct Stock;

impl Kzg for DropIn {
    kzg_of!(dropin, Bls12_381, midnight_proofs::utils::SerdeFormat);
}

impl Kzg for Stock {
    kzg_of!(stock, Bls12_381, stock_midnight_proofs::utils::SerdeFormat);
}

impl InSession for DropIn {
    fn open(path: &Path) -> io::Result<Self::Params> {
        of_dropin::open_params(path)
    }

    fn check(params: &Self::Params) -> io::Result<()> {
        of_dropin::check_params(params, &mut |_| ())
    }
}

/// What the unmodified crate takes of them to verify.
///
/// # Errors
/// As [`Verifier::params`].
pub fn verifier_params_for(parameters: &Parameters, k: u32) -> Result<stock::proof::Params> {
    let Some(path) = &parameters.file else {
        return Ok(stock::proof::insecure_verifier_params(parameters.srs_seed()));
    };
    let (_, [g2, s_g2]) = kzg::raw_verifier_points::<Stock>(path, k)?;
    stock::proof::verifier_params([&g2, &s_g2]).map_err(Failure::file(path))
}

impl Verifier for DropIn {
    const NAME: &'static str = "midnight-proofs 0.8.3 without a session";
    type Error = plonk::Error;
    verifier_of!(dropin);

    fn params(statement: &Statement) -> Result<Self::Params> {
        kzg::params_for::<Self>(&statement.parameters, statement.shape.k)
    }

    /// The prover itself verifies its proof.
    fn failure(doing: &'static str, error: plonk::Error) -> Failure {
        if let Some(unverified) = of_dropin::Unverified::of(&error) {
            return Failure::DoesNotVerify(unverified.to_string());
        }
        match error {
            plonk::Error::Transcript(error) => Failure::drop_in(doing, error),
            other => Failure::halo2(doing)(other),
        }
    }
}

impl Prover for DropIn {
    prover_of!(dropin);

    fn open_proving_key(path: &Path, shape: &Shape) -> Result<Self::ProverKey> {
        let file = File::open(path).map_err(Failure::file(path))?;
        dropin::prover::read_proving_key(&mut ReadOnce::new(file), shape.circuit, shape.k)
            .map_err(|error| Failure::of_file(path, error))
    }
}

/// In midnight-proofs' own bytes, which have no digest.
impl KeyFiles for DropIn {
    fn save_key(
        session: &Session,
        key: &Self::ProverKey,
        _shape: &Shape,
        path: &Path,
    ) -> Result<Option<[u8; 32]>> {
        let publish = session.storage().publish(path)?;
        let mut writer = Packed::new(session.budget(), publish.file().clone())?;
        dropin::prover::write_proving_key(key, &mut writer).map_err(|error| Failure::of_file(path, error))?;
        writer.finish()?;
        publish.commit()?;
        Ok(None)
    }

    fn verifying_key_bytes(key: &Self::ProverKey) -> Vec<u8> {
        dropin::proof::verifying_key_bytes(key.get_vk())
    }
}

impl Verifier for Stock {
    const NAME: &'static str = "midnight-proofs 0.8.3";
    type Error = StockError;
    verifier_of!(stock);

    fn params(statement: &Statement) -> Result<Self::Params> {
        kzg::stock_params_for::<Self>(&statement.parameters, statement.shape.k)
    }

    fn verifier_params(statement: &Statement) -> Result<Self::Params> {
        verifier_params_for(&statement.parameters, statement.shape.k)
    }

    fn open_verifying_key(path: &Path, shape: &Shape) -> Result<Self::VerifierKey> {
        let bytes = read_whole(path)?;
        stock::proof::read_verifying_key(&bytes, shape.circuit, shape.k).map_err(Failure::file(path))
    }

    fn failure(doing: &'static str, error: StockError) -> Failure {
        refusal!(doing, error, StockError)
    }
}

#[cfg(feature = "stock-prover")]
impl Prover for Stock {
    prover_of!(stock);
}

pub(super) fn plan(session: &Session, asked: &Shape, budget_bytes: u64) -> Result<Plan> {
    let cs = dropin::proof::constraint_system(asked.circuit);
    let shape = of_dropin::Shape::new(&cs, asked.k).keeping_rounds(session.checkpoints().is_some());
    Ok(shape.plan(budget_bytes, session.threads(), &Rates::default())?)
}
