//! The circuits of these tests as one type: an upstream prover takes most of the time that this executable
//! takes to build, and is compiled once for each crate. The parameter of `configure_with_params` says which
//! circuit it is.

use super::chain::Chain;
use super::halo2::circuit::{Layouter, SimpleFloorPlanner};
use super::halo2::halo2curves::bn256::Fr;
use super::halo2::plonk::{Circuit, ConstraintSystem, Error};
use super::lookups::Lookups;
use super::machine::Machine;
use super::phases::Phases;
use super::publics::Publics;
use super::random::Random;
use super::rows::Builtin;
use super::selected::Selected;
use super::wide::Wide;

/// A circuit of these tests.
pub trait Listed: Builtin {
    /// Which one.
    const WHICH: Which;

    /// The same circuit, as provers take it.
    fn erased(self) -> Any;
}

/// Circuits, as provers take them.
pub fn erased<C: Listed>(circuits: &[C]) -> Vec<Any> {
    circuits.iter().cloned().map(Listed::erased).collect()
}

macro_rules! list {
    ($($name:ident: $circuit:ty,)*) => {
        /// Which circuit.
        #[derive(Clone, Copy, Debug)]
        pub enum Which {
            $($name,)*
        }

        /// A circuit.
        pub enum Any {
            $($name($circuit),)*
        }

        /// Its columns.
        #[derive(Clone)]
        pub enum AnyConfig {
            $($name(Box<<$circuit as Circuit<Fr>>::Config>),)*
        }

        $(impl Listed for $circuit {
            const WHICH: Which = Which::$name;

            fn erased(self) -> Any {
                Any::$name(self)
            }
        })*

        impl Circuit<Fr> for Any {
            type Config = AnyConfig;
            type FloorPlanner = SimpleFloorPlanner;
            type Params = Which;

            fn params(&self) -> Which {
                match self {
                    $(Self::$name(_) => Which::$name,)*
                }
            }

            fn without_witnesses(&self) -> Self {
                match self {
                    $(Self::$name(circuit) => Self::$name(circuit.without_witnesses()),)*
                }
            }

            fn configure_with_params(cs: &mut ConstraintSystem<Fr>, which: Which) -> AnyConfig {
                match which {
                    $(Which::$name => AnyConfig::$name(Box::new(<$circuit>::configure(cs))),)*
                }
            }

            fn configure(_: &mut ConstraintSystem<Fr>) -> AnyConfig {
                unreachable!("halo2-axiom configures with parameters")
            }

            fn synthesize(&self, config: AnyConfig, layouter: impl Layouter<Fr>) -> Result<(), Error> {
                match (self, config) {
                    $((Self::$name(circuit), AnyConfig::$name(config)) => circuit.synthesize(*config, layouter),)*
                    _ => panic!("columns of another circuit"),
                }
            }
        }
    };
}

list! {
    Chain: Chain,
    Wide: Wide,
    Lookups: Lookups,
    Machine: Machine,
    Publics: Publics,
    Selected: Selected,
    Random: Random,
    OnePhaseEnded: Phases<1, true>,
    TwoPhases: Phases<2, false>,
    TwoPhasesEnded: Phases<2, true>,
    ThreePhases: Phases<3, false>,
    ThreePhasesEnded: Phases<3, true>,
}

// The macro that makes the list knows no default.
#[allow(clippy::derivable_impls)]
impl Default for Which {
    fn default() -> Self {
        Self::Chain
    }
}
