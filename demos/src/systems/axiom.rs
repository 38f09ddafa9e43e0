//! halo2-axiom: KZG over BN254.

use std::io::BufReader;
use std::path::Path;

use halo2_axiom::SerdeFormat;
use halo2_axiom::plonk;
use halo2_axiom::poly::commitment::Params as _;
use halo2_axiom::spillproof::{self as of_dropin, OpeningScheme, Unverified, check_params};
use spillproof_circuits::Scheme;
use spillproof_circuits::axiom::{dropin, stock};
use spillproof_engine::Error;
use spillproof_engine::Session;
use spillproof_engine::plan::{Plan, Rates};
use stock_halo2_axiom::poly::commitment::Params as _;

use super::params::{Copied, Kind, VerifierPoints, file_for, is_enough, kind_of, open_kzg};
use super::{Prover, Verifier};
use crate::args::{Parameters, Shape, Statement};
use crate::failure::Failure;
use crate::read_once::{ReadOnce, read_whole};
use crate::run::Result;
use spillproof_format::params_kzg::SerdeFormat as OfFile;
use stock_halo2_axiom::plonk::Error as StockError;

/// The drop-in, in the current session; without one it is upstream's own code.
pub struct DropIn;
/// The unmodified crate.
pub struct Stock;

/// Parameters from a file, cut down to `2^k` rows. Those of a container are used in place, powers of tau get
/// their Lagrange points, and those of a `ParamsKZG` file are checked: its writer, or a disk since then, may
/// have mixed up points.
fn params_of(path: &Path, k: u32) -> Result<dropin::proof::Params> {
    let path = &*file_for(path, k)?;
    let of_file = |error| Failure::of_file(path, error);
    let session = Session::current()?;
    let is_in_session = session.is_some();
    let mut params = match (kind_of(path)?, session) {
        (Kind::Container, Some(_)) => of_dropin::open_params(path).map_err(of_file)?,
        (Kind::PowersOfTau, Some(session)) => {
            let copied = Copied::of(&session, path, k)?;
            of_dropin::open_params(copied.path()).map_err(of_file)?
        }
        (Kind::Container, None) => {
            return Err(Failure::Content {
                file: path.to_owned(),
                details: "a container, which takes a session: leave --no-session out, or `spillproof srs export` it".into(),
            });
        }
        (Kind::PowersOfTau, None) => {
            return Err(Failure::Content {
                file: path.to_owned(),
                details: "powers of tau, which take a session: leave --no-session out, or make a container with `spillproof ptau import` and \
                          export it with `spillproof srs export`"
                    .into(),
            });
        }
        (Kind::Other, _) => {
            let (file, layout) = open_kzg(path, k)?;
            let format = match layout.format() {
                OfFile::Processed => SerdeFormat::Processed,
                OfFile::RawBytes | OfFile::RawBytesUnchecked => SerdeFormat::RawBytes,
            };
            let params = dropin::proof::read_params(&mut ReadOnce::new(file), format).map_err(of_file)?;
            if is_in_session {
                // No plan has this check; without room for it, the proof's own verification finds what it
                // would have.
                match check_params(&params, &mut |_| ()).map_err(of_file) {
                    Err(Failure::Engine(Error::BudgetTooSmall { .. } | Error::OverBudget { .. })) => {}
                    checked => checked?,
                }
            }
            params
        }
    };
    is_enough(path, k, params.k())?;
    if params.k() > k {
        dropin::proof::downsize(&mut params, k);
    }
    Ok(params)
}

/// Parameters for `2^k` rows, from their file or made anew.
///
/// # Errors
/// As [`Verifier::params`].
pub fn params_for(parameters: &Parameters, k: u32) -> Result<dropin::proof::Params> {
    match &parameters.file {
        None => Ok(dropin::proof::insecure_params(k, parameters.srs_seed())),
        Some(path) => params_of(path, k),
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
    let (g, [g2, s_g2]) = VerifierPoints::of(path, k)?.raw();
    stock::proof::verifier_params(k, &g, [&g2, &s_g2]).map_err(Failure::file(path))
}

/// Parameters of the unmodified crate for `2^k` rows, from their file or made anew.
///
/// # Errors
/// As [`Verifier::params`].
pub fn stock_params_for(parameters: &Parameters, k: u32) -> Result<stock::proof::Params> {
    let Some(path) = &parameters.file else {
        return Ok(stock::proof::insecure_params(k, parameters.srs_seed()));
    };
    let path = &*file_for(path, k)?;
    let refused = |kind: &str, remedy: &str| Failure::Content {
        file: path.to_owned(),
        details: format!(
            "{kind}, of which {} cannot make a key: name the key with --vk, or {remedy}",
            Stock::NAME
        ),
    };
    match kind_of(path)? {
        Kind::Container => return Err(refused("a container", "`spillproof srs export` it")),
        Kind::PowersOfTau => {
            let remedy = "`spillproof ptau import` and `spillproof srs export` them";
            return Err(refused("powers of tau", remedy));
        }
        Kind::Other => {}
    }
    let (file, layout) = open_kzg(path, k)?;
    let format = match layout.format() {
        OfFile::Processed => stock_halo2_axiom::SerdeFormat::Processed,
        OfFile::RawBytes | OfFile::RawBytesUnchecked => stock_halo2_axiom::SerdeFormat::RawBytes,
    };
    let mut params =
        stock::proof::read_params(&mut BufReader::new(file), format).map_err(Failure::file(path))?;
    if params.k() > k {
        stock::proof::downsize(&mut params, k);
    }
    Ok(params)
}

impl Verifier for DropIn {
    const NAME: &'static str = "halo2-axiom 0.5.3 without a session";
    type Error = plonk::Error;
    verifier_of!(dropin, scheme);

    fn params(statement: &Statement) -> Result<Self::Params> {
        params_for(&statement.parameters, statement.shape.k)
    }

    /// The prover itself verifies its proof.
    fn failure(doing: &'static str, error: plonk::Error) -> Failure {
        match Unverified::of(&error) {
            Some(unverified) if unverified.jobs + unverified.jobs_before > 0 => {
                Failure::Unverified(unverified.reason.clone())
            }
            Some(unverified) => Failure::DoesNotVerify(unverified.clone()),
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
        let key =
            dropin::saved::open_key(path, shape.circuit).map_err(|error| Failure::of_file(path, error))?;
        match key.get_vk().get_domain().k() {
            found if found == shape.k => Ok(key),
            found => Err(Failure::Content {
                file: path.to_owned(),
                details: format!("a proving key for 2^{found} rows, and --k is {}", shape.k),
            }),
        }
    }
}

impl Verifier for Stock {
    const NAME: &'static str = "halo2-axiom 0.5.3";
    type Error = StockError;
    verifier_of!(stock, scheme);

    fn params(statement: &Statement) -> Result<Self::Params> {
        stock_params_for(&statement.parameters, statement.shape.k)
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

/// The opening as the drop-in names it.
pub(super) fn opening(scheme: Scheme) -> OpeningScheme {
    match scheme {
        Scheme::Shplonk => OpeningScheme::Shplonk,
        Scheme::Gwc => OpeningScheme::Gwc,
    }
}

pub(super) fn plan(session: &Session, asked: &Shape, budget_bytes: u64) -> Result<Plan> {
    let shape = shape(asked).keeping_rounds(session.checkpoints().is_some());
    Ok(shape.plan(budget_bytes, session.threads(), &Rates::default())?)
}
