//! The built-in circuits as one type, so that a prover is compiled once for all of them. `configure` is told
//! nothing but the type: within [`Any::scope`] the thread says which circuit it is.

use std::cell::Cell;

use super::chain::Chain;
use super::dialect::{Fr, associated_types, mixed_up};
use super::halo2::circuit::Layouter;
use super::halo2::plonk::{Circuit, ConstraintSystem, Error};
use super::lookups::Lookups;
use super::machine::Machine;
use super::rows::Builtin;
use super::wide::Wide;
use crate::Kind;

thread_local! {
    /// The circuit whose columns [`Any::configure`] makes.
    static CONFIGURED: Cell<Kind> = const { Cell::new(Kind::Chain) };
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

    /// Which one it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Chain(_) => Kind::Chain,
            Self::Wide(_) => Kind::Wide,
            Self::Lookups(_) => Kind::Lookups,
            Self::Machine(_) => Kind::Machine,
        }
    }

    /// See [`Builtin::instances`].
    pub fn instances(&self) -> Vec<Vec<Fr>> {
        match self {
            Self::Chain(circuit) => circuit.instances(),
            Self::Wide(circuit) => circuit.instances(),
            Self::Lookups(circuit) => circuit.instances(),
            Self::Machine(circuit) => circuit.instances(),
        }
    }

    /// Runs `work`, in which [`Any::configure`] on this thread makes the columns of that circuit. halo2
    /// configures on its caller's thread; [`Any::synthesize`] refuses columns of another circuit.
    pub fn scope<T>(kind: Kind, work: impl FnOnce() -> T) -> T {
        /// Restores the kind before, also after a panic.
        struct Restore(Kind);

        impl Drop for Restore {
            fn drop(&mut self) {
                CONFIGURED.set(self.0);
            }
        }

        let _restore = Restore(CONFIGURED.replace(kind));
        work()
    }
}

impl Circuit<Fr> for Any {
    type Config = AnyConfig;
    associated_types!();

    fn without_witnesses(&self) -> Self {
        match self {
            Self::Chain(circuit) => Self::Chain(circuit.without_witnesses()),
            Self::Wide(circuit) => Self::Wide(circuit.without_witnesses()),
            Self::Lookups(circuit) => Self::Lookups(circuit.without_witnesses()),
            Self::Machine(circuit) => Self::Machine(circuit.without_witnesses()),
        }
    }

    fn configure(cs: &mut ConstraintSystem<Fr>) -> AnyConfig {
        match CONFIGURED.get() {
            Kind::Chain => AnyConfig::Chain(Chain::configure(cs)),
            Kind::Wide => AnyConfig::Wide(Box::new(Wide::configure(cs))),
            Kind::Lookups => AnyConfig::Lookups(Lookups::configure(cs)),
            Kind::Machine => AnyConfig::Machine(Machine::configure(cs)),
        }
    }

    fn synthesize(&self, config: AnyConfig, layouter: impl Layouter<Fr>) -> Result<(), Error> {
        match (self, config) {
            (Self::Chain(circuit), AnyConfig::Chain(config)) => circuit.synthesize(config, layouter),
            (Self::Wide(circuit), AnyConfig::Wide(config)) => circuit.synthesize(*config, layouter),
            (Self::Lookups(circuit), AnyConfig::Lookups(config)) => circuit.synthesize(config, layouter),
            (Self::Machine(circuit), AnyConfig::Machine(config)) => circuit.synthesize(config, layouter),
            _ => Err(mixed_up()),
        }
    }
}
