//! The circuits as one type: a prover is compiled once for all of them, since provers take most of the time
//! that this crate takes to build. The parameter of `configure_with_params` says which circuit it is.

use std::sync::Arc;

use halo2_axiom::spillproof::CircuitDescription;

use super::chain::Chain;
use super::described::OfProgram;
use super::dialect::Fr;
use super::halo2::circuit::{Layouter, SimpleFloorPlanner};
use super::halo2::plonk::{Circuit, ConstraintSystem, Error};
use super::lookups::Lookups;
use super::machine::Machine;
use super::rows::Builtin;
use super::wide::Wide;
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
    /// See [`super::chain`].
    Chain(Chain),
    /// See [`super::wide`].
    Wide(Wide),
    /// See [`super::lookups`].
    Lookups(Lookups),
    /// See [`super::machine`].
    Machine(Machine),
    /// See [`super::described`].
    OfProgram(OfProgram),
}

/// Its columns.
#[derive(Clone)]
pub enum AnyConfig {
    /// Of [`Chain`].
    Chain(<Chain as Circuit<Fr>>::Config),
    /// Of [`Wide`].
    Wide(Box<<Wide as Circuit<Fr>>::Config>),
    /// Of [`Lookups`].
    Lookups(<Lookups as Circuit<Fr>>::Config),
    /// Of [`Machine`].
    Machine(<Machine as Circuit<Fr>>::Config),
    /// Of [`OfProgram`].
    OfProgram(<OfProgram as Circuit<Fr>>::Config),
}

impl Any {
    /// See [`Builtin::new`].
    pub fn new(kind: Kind, k: u32, seed: u64) -> Self {
        match kind {
            Kind::Chain => Self::Chain(Chain::new(k, seed)),
            Kind::Wide => Self::Wide(Wide::new(k, seed)),
            Kind::Lookups => Self::Lookups(Lookups::new(k, seed)),
            Kind::Machine => Self::Machine(Machine::new(k, seed)),
        }
    }

    /// See [`Builtin::instances`]. Those of a program's own circuit are in its witness' file: here it has
    /// none.
    pub fn instances(&self) -> Vec<Vec<Fr>> {
        match self {
            Self::Chain(circuit) => circuit.instances(),
            Self::Wide(circuit) => circuit.instances(),
            Self::Lookups(circuit) => circuit.instances(),
            Self::Machine(circuit) => circuit.instances(),
            Self::OfProgram(_) => Vec::new(),
        }
    }
}

impl Circuit<Fr> for Any {
    type Config = AnyConfig;
    type FloorPlanner = SimpleFloorPlanner;
    type Params = Option<Which>;

    fn params(&self) -> Option<Which> {
        Some(Which::BuiltIn(match self {
            Self::Chain(_) => Kind::Chain,
            Self::Wide(_) => Kind::Wide,
            Self::Lookups(_) => Kind::Lookups,
            Self::Machine(_) => Kind::Machine,
            Self::OfProgram(circuit) => return circuit.params().map(Which::OfProgram),
        }))
    }

    fn without_witnesses(&self) -> Self {
        match self {
            Self::Chain(circuit) => Self::Chain(circuit.without_witnesses()),
            Self::Wide(circuit) => Self::Wide(circuit.without_witnesses()),
            Self::Lookups(circuit) => Self::Lookups(circuit.without_witnesses()),
            Self::Machine(circuit) => Self::Machine(circuit.without_witnesses()),
            Self::OfProgram(circuit) => Self::OfProgram(circuit.without_witnesses()),
        }
    }

    fn configure_with_params(cs: &mut ConstraintSystem<Fr>, which: Option<Which>) -> AnyConfig {
        let kind = match which {
            Some(Which::OfProgram(of)) => {
                return AnyConfig::OfProgram(OfProgram::configure_with_params(cs, Some(of)));
            }
            Some(Which::BuiltIn(kind)) => kind,
            None => Kind::Chain,
        };
        match kind {
            Kind::Chain => AnyConfig::Chain(Chain::configure(cs)),
            Kind::Wide => AnyConfig::Wide(Box::new(Wide::configure(cs))),
            Kind::Lookups => AnyConfig::Lookups(Lookups::configure(cs)),
            Kind::Machine => AnyConfig::Machine(Machine::configure(cs)),
        }
    }

    fn configure(cs: &mut ConstraintSystem<Fr>) -> AnyConfig {
        Self::configure_with_params(cs, None)
    }

    fn synthesize(&self, config: AnyConfig, layouter: impl Layouter<Fr>) -> Result<(), Error> {
        match (self, config) {
            (Self::Chain(circuit), AnyConfig::Chain(config)) => circuit.synthesize(config, layouter),
            (Self::Wide(circuit), AnyConfig::Wide(config)) => circuit.synthesize(*config, layouter),
            (Self::Lookups(circuit), AnyConfig::Lookups(config)) => circuit.synthesize(config, layouter),
            (Self::Machine(circuit), AnyConfig::Machine(config)) => circuit.synthesize(config, layouter),
            (Self::OfProgram(circuit), AnyConfig::OfProgram(config)) => circuit.synthesize(config, layouter),
            // Columns of another circuit: halo2 has no error that says so.
            _ => Err(Error::Synthesis),
        }
    }
}
