//! What differs between the forks of halo2, as a value that a drop-in hands to the rounds, which are written
//! once.

use crate::openings::OpeningScheme;
use crate::order::Part;
use crate::stages::lookup::LeftOvers;

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Whether each commitment has a blind, which is drawn in its round.
    pub blinds: bool,
    /// How the verifier gets to know the instances.
    pub instances: Instances,
    /// The lookup argument.
    pub lookups: Lookups,
    /// The order in which a circuit's polynomials come in the multi-opening.
    pub queries: &'static [Part],
    /// The multi-opening.
    pub opening: OpeningScheme,
}

/// How the verifier gets to know the instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instances {
    /// As values.
    Values,
    /// As commitments without a blind, which are opened.
    Commitments,
}

impl Instances {
    /// Whether a column is committed to and opened.
    pub(crate) fn are_committed(self, _column: usize) -> bool {
        match self {
            Self::Values => false,
            Self::Commitments => true,
        }
    }
}

/// A lookup argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookups {
    /// Input and table, permuted, and their product: [`lookup`](crate::stages::lookup). What is left of the
    /// table goes to its permuted column in this order.
    Permuted(LeftOvers),
}
