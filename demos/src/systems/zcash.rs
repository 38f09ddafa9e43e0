//! zcash's halo2_proofs: inner-product commitments over Vesta.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use halo2_proofs::plonk;
use halo2_proofs::spillproof as of_dropin;
use spillproof_circuits::zcash::{dropin, stock};
use spillproof_engine::Session;
use spillproof_engine::plan::{Plan, Rates};
use stock_halo2_proofs::plonk::Error as StockError;

use super::params::{Kind, kind_of};
use super::{Prover, Verifier};
use crate::args::{Shape, Statement};
use crate::failure::Failure;
use crate::read_once::ReadOnce;
use crate::run::Result;

/// The drop-in, in the current session; without one it is upstream's own code.
pub struct DropIn;
/// The unmodified crate.
pub struct Stock;

/// A file as `Params::write` writes it. Stock's reader panics or goes on for long on a file of another
/// length, so that is checked first.
fn open(path: &Path, k: u32) -> Result<File> {
    let expected_bytes = (1 << (k + 6)) + 68;
    let file = File::open(path).map_err(Failure::file(path))?;
    let bytes = file.metadata().map_err(Failure::file(path))?.len();
    if bytes != expected_bytes {
        return Err(Failure::Content {
            file: path.to_owned(),
            details: format!(
                "{bytes} bytes; a file of halo2_proofs' Params for k = {k} has {expected_bytes}"
            ),
        });
    }
    Ok(file)
}

fn refused(path: &Path, k: u32, found: u32) -> Failure {
    Failure::Content {
        file: path.to_owned(),
        details: format!("parameters for k = {found}, and --k is {k}"),
    }
}

impl Verifier for DropIn {
    const NAME: &'static str = "halo2_proofs 0.4.1 without a session";
    type Error = plonk::Error;
    verifier_of!(dropin);

    fn params(statement: &Statement) -> Result<Self::Params> {
        let k = statement.shape.k;
        let Some(path) = &statement.parameters.file else {
            return Ok(dropin::proof::params(k));
        };
        let params = match kind_of(path)? {
            Kind::Container => of_dropin::open_params(path),
            Kind::PowersOfTau | Kind::Other => dropin::proof::read_params(&mut ReadOnce::new(open(path, k)?)),
        };
        let params = params.map_err(|error| Failure::of_file(path, error))?;
        match params.k() {
            found if found == k => Ok(params),
            found => Err(refused(path, k, found)),
        }
    }

    fn failure(doing: &'static str, error: plonk::Error) -> Failure {
        match error {
            plonk::Error::Transcript(error) => Failure::drop_in(doing, error),
            other => Failure::halo2(doing)(other),
        }
    }
}

impl Prover for DropIn {
    prover_of!(dropin);
}

impl Verifier for Stock {
    const NAME: &'static str = "halo2_proofs 0.4.1";
    type Error = StockError;
    verifier_of!(stock);

    fn params(statement: &Statement) -> Result<Self::Params> {
        let k = statement.shape.k;
        let Some(path) = &statement.parameters.file else {
            return Ok(stock::proof::params(k));
        };
        if let Kind::Container = kind_of(path)? {
            return Err(Failure::Content {
                file: path.clone(),
                details: format!(
                    "a container, which {} does not read: `spillproof srs export` writes what it reads",
                    Self::NAME
                ),
            });
        }
        stock::proof::read_params(&mut BufReader::new(open(path, k)?)).map_err(Failure::file(path))
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
    let shape = of_dropin::Shape::<dropin::proof::Curve>::new(&cs, asked.k, 1);
    Ok(shape.plan(budget_bytes, session.threads(), &Rates::default())?)
}
