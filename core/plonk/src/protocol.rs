//! What differs between the forks of halo2, as a value that a drop-in hands to the rounds, which are written
//! once.

use crate::draws::Tail;
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
    /// Whether a challenge for trash arguments is drawn after the products of lookups.
    pub trash: bool,
    /// How the quotient is cut in pieces that are committed to.
    pub pieces: Pieces,
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
    /// The first columns as commitments without a blind, which are opened; of each other one its length, and
    /// its values.
    CommittedFirst {
        /// So many columns.
        columns: usize,
    },
}

impl Instances {
    /// Whether a column is committed to and opened.
    pub(crate) fn are_committed(self, column: usize) -> bool {
        match self {
            Self::Values => false,
            Self::Commitments => true,
            Self::CommittedFirst { columns } => column < columns,
        }
    }

    /// Whether the length of a column goes before its values.
    pub(crate) fn have_lengths(self) -> bool {
        matches!(self, Self::CommittedFirst { .. })
    }
}

/// A lookup argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookups {
    /// Input and table, permuted, and their product: [`lookup`](crate::stages::lookup). What is left of the
    /// table goes to its permuted column in this order.
    Permuted(LeftOvers),
}

/// How the quotient is cut in pieces, each of at most as many coefficients as there are rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pieces {
    /// Of as many coefficients as there are rows.
    OfRows,
    /// Of one less. One more is drawn for each piece but the last, added to its top, and taken from the
    /// bottom of the next one, so that their sum is the quotient, and the pieces are random
    /// ([`recut`](crate::stages::recut())).
    OneShort,
}

impl Pieces {
    /// What ends the pieces.
    pub(crate) fn tails(self, pieces: usize) -> Vec<Tail> {
        match self {
            Self::OfRows => vec![Tail::Random(0); pieces],
            Self::OneShort => {
                let mut tails = vec![Tail::Random(1); pieces.saturating_sub(1)];
                tails.push(Tail::Zeros(1));
                tails
            }
        }
    }

    /// The power of X between one piece and the next.
    pub(crate) fn stride(self, rows: u64) -> u64 {
        match self {
            Self::OfRows => rows,
            Self::OneShort => rows - 1,
        }
    }
}

/// Polynomials of a circuit that are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Instance columns, where the verifier has commitments to them.
    Instances,
    /// Advice columns.
    Advice,
    /// Products of the permutation.
    Products,
    /// What belongs to lookups.
    Lookups,
    /// Trash columns.
    Trash,
}

impl Part {
    /// The order of queries in which instances come first.
    pub const INSTANCES_FIRST: [Self; 5] = [
        Self::Instances,
        Self::Advice,
        Self::Products,
        Self::Lookups,
        Self::Trash,
    ];
    /// That in which advice comes first.
    pub const ADVICE_FIRST: [Self; 5] = [
        Self::Advice,
        Self::Instances,
        Self::Products,
        Self::Lookups,
        Self::Trash,
    ];
}

/// The multi-opening argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpeningScheme {
    /// Two passes over everything.
    Shplonk,
    /// One pass for each point.
    Gwc,
    /// The halo2 book's: three passes, and the opening of one polynomial.
    Book {
        /// What it is like before its end.
        book: Book,
        /// How it ends.
        ending: Ending,
    },
}

/// How the last polynomial of an opening by the book is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By an inner-product argument, without a trusted setup.
    InnerProduct,
    /// By a commitment to its quotient.
    Quotient,
}

impl OpeningScheme {
    /// The schemes of proofs with the same keys, this one first.
    pub(crate) fn of_same_keys(self) -> Vec<Self> {
        match self {
            Self::Shplonk => vec![self, Self::Gwc],
            Self::Gwc => vec![self, Self::Shplonk],
            Self::Book { .. } => vec![self],
        }
    }
}

/// What differs between openings by the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Book {
    /// Which power of a challenge each of several polynomials gets.
    pub powers: Powers,
    /// The order of the sets.
    pub sets: Sets,
    /// How much of `x_3`, and of the powers of `x_1` and `x_4`, counts.
    pub width: Width,
}

/// Which power of a challenge each of several polynomials gets. In the last sum, `f` gets the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Powers {
    /// The last one gets 1.
    Descending,
    /// The first one gets 1.
    Ascending,
}

/// The order of the sets of polynomials that are opened at the same points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sets {
    /// That in which queries first name a polynomial of them.
    AsNamed,
    /// Those of fewer points first; of as many, as they are named.
    BySize,
}

/// How much of a challenge counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// All of it.
    Whole,
    /// The lower half of its bits.
    Half,
}
