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
    type Params = dropin::proof::Params;
    type VerifierKey = dropin::proof::VerifierKey;
    type Error = plonk::Error;

    fn params(statement: &Statement) -> Result<Self::Params> {
        let k = statement.shape.k;
        match &statement.params {
            None => Ok(dropin::proof::insecure_params(k, statement.srs_seed())),
            Some(path) => Self::Params::read(&mut ReadOnce::new(open(path, k)?)).map_err(Failure::file(path)),
        }
    }

    fn verifying_key(params: &Self::Params, shape: &Shape) -> Result<Self::VerifierKey, Self::Error> {
        dropin::proof::verifying_key(params, shape.circuit, shape.k)
    }

    fn verify(
        params: &Self::Params,
        key: &Self::VerifierKey,
        statement: &Statement,
        proofs: &[&[u8]],
    ) -> Result<(), Self::Error> {
        let Shape { k, circuit, .. } = statement.shape;
        let instances = dropin::proof::instances(circuit, k, statement.seed);
        let scheme = statement.shape.scheme();
        proofs
            .iter()
            .try_for_each(|proof| dropin::proof::verify(params, key, &instances, proof, scheme))
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
    type ProverKey = dropin::prover::ProverKey;

    fn proving_key(
        params: &Self::Params,
        key: Self::VerifierKey,
        shape: &Shape,
    ) -> Result<Self::ProverKey, Self::Error> {
        dropin::prover::proving_key(params, key, shape.circuit, shape.k)
    }

    fn verifying(key: &Self::ProverKey) -> &Self::VerifierKey {
        key.get_vk()
    }

    fn prove(
        params: &Self::Params,
        key: &Self::ProverKey,
        statement: &Statement,
    ) -> Result<Vec<u8>, Self::Error> {
        let Shape { k, circuit, .. } = statement.shape;
        let scheme = statement.shape.scheme();
        dropin::prover::prove(params, key, circuit, k, statement.seed, scheme)
    }
}

impl Verifier for Stock {
    const NAME: &'static str = "halo2-axiom 0.5.3";
    type Params = stock::proof::Params;
    type VerifierKey = stock::proof::VerifierKey;
    type Error = stock_halo2_axiom::plonk::Error;

    fn params(statement: &Statement) -> Result<Self::Params> {
        let k = statement.shape.k;
        match &statement.params {
            None => Ok(stock::proof::insecure_params(k, statement.srs_seed())),
            Some(path) => {
                Self::Params::read(&mut BufReader::new(open(path, k)?)).map_err(Failure::file(path))
            }
        }
    }

    fn verifying_key(params: &Self::Params, shape: &Shape) -> Result<Self::VerifierKey, Self::Error> {
        stock::proof::verifying_key(params, shape.circuit, shape.k)
    }

    fn verify(
        params: &Self::Params,
        key: &Self::VerifierKey,
        statement: &Statement,
        proofs: &[&[u8]],
    ) -> Result<(), Self::Error> {
        let Shape { k, circuit, .. } = statement.shape;
        let instances = stock::proof::instances(circuit, k, statement.seed);
        let scheme = statement.shape.scheme();
        proofs
            .iter()
            .try_for_each(|proof| stock::proof::verify(params, key, &instances, proof, scheme))
    }
}

#[cfg(feature = "stock-prover")]
impl Prover for Stock {
    type ProverKey = stock::prover::ProverKey;

    fn proving_key(
        params: &Self::Params,
        key: Self::VerifierKey,
        shape: &Shape,
    ) -> Result<Self::ProverKey, Self::Error> {
        stock::prover::proving_key(params, key, shape.circuit, shape.k)
    }

    fn verifying(key: &Self::ProverKey) -> &Self::VerifierKey {
        key.get_vk()
    }

    fn prove(
        params: &Self::Params,
        key: &Self::ProverKey,
        statement: &Statement,
    ) -> Result<Vec<u8>, Self::Error> {
        let Shape { k, circuit, .. } = statement.shape;
        let scheme = statement.shape.scheme();
        stock::prover::prove(params, key, circuit, k, statement.seed, scheme)
    }
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
