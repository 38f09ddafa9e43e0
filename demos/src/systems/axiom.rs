//! halo2-axiom: KZG over BN254.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use halo2_axiom::plonk;
use halo2_axiom::poly::commitment::Params as _;
use halo2_axiom::spillproof::{self as of_dropin, OpeningScheme, Unverified};
use spillproof::Session;
use spillproof::plan::{Plan, Rates};
use spillproof_circuits::Scheme;
use spillproof_circuits::axiom::{dropin, stock};
use stock_halo2_axiom::poly::commitment::Params as _;

use super::{Prover, Verifier, open_params};
use crate::args::{Shape, Statement};
use crate::failure::Failure;
use crate::read_once::ReadOnce;
use crate::run::Result;

/// The drop-in, in the current session; without one it is upstream's own code.
pub struct DropIn;
/// The unmodified crate.
pub struct Stock;

/// A `ParamsKZG` file with raw bytes.
fn open(path: &Path, k: u32) -> Result<File> {
    open_params(path, k, "a ParamsKZG file of raw bytes", (1 << (k + 7)) + 260)
}

impl Verifier for DropIn {
    const NAME: &'static str = "halo2-axiom 0.5.3 without a session";
    type Error = plonk::Error;
    verifier_of!(dropin, scheme);

    fn params(statement: &Statement) -> Result<Self::Params> {
        let k = statement.shape.k;
        match &statement.params {
            None => Ok(dropin::proof::insecure_params(k, statement.srs_seed())),
            Some(path) => Self::Params::read(&mut ReadOnce::new(open(path, k)?)).map_err(Failure::file(path)),
        }
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
}

impl Verifier for Stock {
    const NAME: &'static str = "halo2-axiom 0.5.3";
    type Error = stock_halo2_axiom::plonk::Error;
    verifier_of!(stock, scheme);

    fn params(statement: &Statement) -> Result<Self::Params> {
        let k = statement.shape.k;
        match &statement.params {
            None => Ok(stock::proof::insecure_params(k, statement.srs_seed())),
            Some(path) => {
                Self::Params::read(&mut BufReader::new(open(path, k)?)).map_err(Failure::file(path))
            }
        }
    }
}

#[cfg(feature = "stock-prover")]
impl Prover for Stock {
    prover_of!(stock, scheme);
}

/// What proofs of a built-in circuit will take, for a plan.
pub fn shape(shape: &Shape) -> of_dropin::Shape {
    let scheme = match shape.scheme() {
        Scheme::Shplonk => OpeningScheme::Shplonk,
        Scheme::Gwc => OpeningScheme::Gwc,
    };
    of_dropin::shape(
        &dropin::proof::constraint_system(shape.circuit),
        shape.k,
        1,
        scheme,
    )
}

pub(super) fn plan(session: &Session, asked: &Shape, rates: &Rates) -> Result<Plan> {
    let shape = shape(asked).keeping_rounds(session.checkpoints().is_some());
    Ok(shape.plan(session.budget().limit_bytes(), session.threads(), rates)?)
}
