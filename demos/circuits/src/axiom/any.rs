//! The built-in circuits and those of programs as one type: a prover is compiled once for all of them, since
//! provers take most of the time that this crate takes to build. The parameter of `configure_with_params`
//! says which circuit it is.

use std::sync::Arc;

use halo2_axiom::spillproof::CircuitDescription;

use super::builtin;
use super::described::OfProgram;
use super::dialect::{Fr, mixed_up};
use super::halo2::circuit::{Layouter, SimpleFloorPlanner};
use super::halo2::plonk::{Circuit, ConstraintSystem, Error};
use crate::Kind;

/// Which circuit.
#[derive(Clone, Debug)]
pub enum Which {
    /// A built-in one.
    BuiltIn(Kind),
    /// One of a program's own.
    OfProgram(Arc<CircuitDescription>),
}

/// A circuit.
pub enum Any {
    /// See [`super::builtin`].
    BuiltIn(builtin::Any),
    /// See [`super::described`].
    OfProgram(OfProgram),
}

/// Its columns.
#[derive(Clone)]
pub enum AnyConfig {
    /// Of [`Any::BuiltIn`].
    BuiltIn(builtin::AnyConfig),
    /// Of [`Any::OfProgram`].
    OfProgram(<OfProgram as Circuit<Fr>>::Config),
}

impl Any {
    /// See [`Builtin::new`](super::rows::Builtin::new).
    pub fn new(kind: Kind, k: u32, seed: u64) -> Self {
        Self::BuiltIn(builtin::Any::new(kind, k, seed))
    }

    /// See [`Builtin::instances`](super::rows::Builtin::instances). Those of a program's own circuit are in its
    /// witness' file: here it has none.
    pub fn instances(&self) -> Vec<Vec<Fr>> {
        match self {
            Self::BuiltIn(circuit) => circuit.instances(),
            Self::OfProgram(_) => Vec::new(),
        }
    }
}

impl Circuit<Fr> for Any {
    type Config = AnyConfig;
    type FloorPlanner = SimpleFloorPlanner;
    type Params = Option<Which>;

    fn params(&self) -> Option<Which> {
        match self {
            Self::BuiltIn(circuit) => Some(Which::BuiltIn(circuit.kind())),
            Self::OfProgram(circuit) => circuit.params().map(Which::OfProgram),
        }
    }

    fn without_witnesses(&self) -> Self {
        match self {
            Self::BuiltIn(circuit) => Self::BuiltIn(circuit.without_witnesses()),
            Self::OfProgram(circuit) => Self::OfProgram(circuit.without_witnesses()),
        }
    }

    fn configure_with_params(cs: &mut ConstraintSystem<Fr>, which: Option<Which>) -> AnyConfig {
        match which.unwrap_or(Which::BuiltIn(Kind::Chain)) {
            Which::BuiltIn(kind) => {
                AnyConfig::BuiltIn(builtin::Any::scope(kind, || builtin::Any::configure(cs)))
            }
            Which::OfProgram(of) => AnyConfig::OfProgram(OfProgram::configure_with_params(cs, Some(of))),
        }
    }

    fn configure(cs: &mut ConstraintSystem<Fr>) -> AnyConfig {
        Self::configure_with_params(cs, None)
    }

    fn synthesize(&self, config: AnyConfig, layouter: impl Layouter<Fr>) -> Result<(), Error> {
        match (self, config) {
            (Self::BuiltIn(circuit), AnyConfig::BuiltIn(config)) => circuit.synthesize(config, layouter),
            (Self::OfProgram(circuit), AnyConfig::OfProgram(config)) => circuit.synthesize(config, layouter),
            _ => Err(mixed_up()),
        }
    }
}
