//! halo2-axiom: KZG over BN254.

use std::io;
use std::path::{Path, PathBuf};

use ark_bn254::Bn254;
use halo2_axiom::plonk;
use halo2_axiom::spillproof::{self as of_dropin, Unverified};
use spillproof_circuits::axiom::dropin::saved::opening;
use spillproof_circuits::axiom::{dropin, stock};
use spillproof_engine::Session;
use spillproof_engine::plan::{Plan, Rates};
use stock_halo2_axiom::plonk::Error as StockError;

use super::kzg::{self, InSession, Kzg};
use super::{KeyFiles, Prover, Verifier};
use crate::args::{Parameters, Shape, Statement, name_of};
use crate::failure::Failure;
use crate::read_once::read_whole;
use crate::run::Result;

/// The drop-in, in the current session; without one it is upstream's own code.
pub struct DropIn;
/// The unmodified crate.
pub struct Stock;

impl Kzg for DropIn {
    kzg_of!(dropin, Bn254, halo2_axiom::SerdeFormat);
}

impl Kzg for Stock {
    kzg_of!(stock, Bn254, stock_halo2_axiom::SerdeFormat);
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
        return Ok(stock::proof::insecure_verifier_params(k, parameters.srs_seed()));
    };
    let (g, [g2, s_g2]) = kzg::raw_verifier_points::<Stock>(path, k)?;
    stock::proof::verifier_params(k, &g, [&g2, &s_g2]).map_err(Failure::file(path))
}

impl Verifier for DropIn {
    const NAME: &'static str = "halo2-axiom 0.5.3 without a session";
    type Error = plonk::Error;
    verifier_of!(dropin, scheme);

    fn params(statement: &Statement) -> Result<Self::Params> {
        kzg::params_for::<Self>(&statement.parameters, statement.shape.k)
    }

    /// The prover itself verifies its proof.
    fn failure(doing: &'static str, error: plonk::Error) -> Failure {
        match Unverified::of(&error) {
            Some(unverified) if unverified.jobs + unverified.jobs_before > 0 => {
                Failure::Unverified(unverified.reason.clone())
            }
            Some(unverified) => Failure::DoesNotVerify(unverified.to_string()),
            None => match error {
                plonk::Error::Transcript(error) => Failure::drop_in(doing, error),
                other => Failure::halo2(doing)(other),
            },
        }
    }
}

impl Prover for DropIn {
    prover_of!(dropin, scheme);

    fn open_proving_key(path: &Path, shape: &Shape) -> Result<Self::ProverKey> {
        let key = dropin::saved::open_key(path, shape.circuit).map_err(|error| {
            match Failure::of_file(path, error) {
                Failure::File { file, source } if source.kind() == io::ErrorKind::InvalidData => {
                    not_of_circuit(file, &source.to_string(), shape)
                }
                other => other,
            }
        })?;
        match key.get_vk().get_domain().k() {
            found if found == shape.k => Ok(key),
            found => Err(Failure::Content {
                file: path.to_owned(),
                details: format!("a proving key for 2^{found} rows, and --k is {}", shape.k),
            }),
        }
    }
}

/// A key that the drop-in cannot read as one of this circuit. Its reason may begin with the file's name.
fn not_of_circuit(file: PathBuf, reason: &str, shape: &Shape) -> Failure {
    let named = format!("{}: ", file.display());
    let reason = reason.strip_prefix(&named).unwrap_or(reason);
    Failure::Content {
        details: format!("{reason} (--circuit is {})", name_of(&shape.circuit)),
        file,
    }
}

impl KeyFiles for DropIn {
    fn save_key(
        _session: &Session,
        key: &Self::ProverKey,
        shape: &Shape,
        path: &Path,
    ) -> Result<Option<[u8; 32]>> {
        let saved = dropin::saved::save_key(key, shape.circuit, shape.k, path);
        saved.map(Some).map_err(|error| Failure::of_file(path, error))
    }

    fn verifying_key_bytes(key: &Self::ProverKey) -> Vec<u8> {
        dropin::proof::verifying_key_bytes(key.get_vk())
    }
}

impl Verifier for Stock {
    const NAME: &'static str = "halo2-axiom 0.5.3";
    type Error = StockError;
    verifier_of!(stock, scheme);

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
    prover_of!(stock, scheme);
}

/// What proofs of a built-in circuit will take, for a plan.
pub fn shape(shape: &Shape) -> of_dropin::Shape {
    let cs = dropin::proof::constraint_system(shape.circuit);
    of_dropin::shape(&cs, shape.k, 1, opening(shape.scheme()))
}

pub(super) fn plan(session: &Session, asked: &Shape, budget_bytes: u64) -> Result<Plan> {
    let shape = shape(asked).in_session(session);
    Ok(shape.plan(budget_bytes, session.threads(), &Rates::default())?)
}
