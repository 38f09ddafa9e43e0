//! A circuit's shape: its columns, constraints and queries, in this crate's own types. A drop-in converts its
//! fork's constraint system once for each key and each proof.

use crate::curve;

/// A kind of column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Values that belong to the key; selectors have become some of these.
    Fixed,
    /// Values of the witness.
    Advice,
    /// Public values.
    Instance,
}

/// A column by its kind and its number among those of the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnId {
    /// Its kind.
    pub kind: Kind,
    /// Its number.
    pub index: usize,
}

/// A polynomial in the cells of a row and its neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression<F = curve::Scalar> {
    /// A number.
    Constant(F),
    /// A cell: its column, and how many rows further down it is.
    Query(ColumnId, i32),
    /// A challenge, by its number.
    Challenge(usize),
    /// The negative.
    Negated(Box<Self>),
    /// A sum.
    Sum(Box<Self>, Box<Self>),
    /// A product.
    Product(Box<Self>, Box<Self>),
    /// A multiple.
    Scaled(Box<Self>, F),
}

/// A lookup argument: the tuples of the input are among those of the table.
#[derive(Clone, Debug)]
pub struct Lookup<F = curve::Scalar> {
    /// Expressions of the input.
    pub input: Vec<Expression<F>>,
    /// Expressions of the table, as many.
    pub table: Vec<Expression<F>>,
}

/// A trash argument: constraints that hold in the rows where a selector is 1. A column that is committed to
/// takes their folded value in the others.
#[derive(Clone, Debug)]
pub struct Trash<F = curve::Scalar> {
    /// The fixed column of the selector.
    pub selector: usize,
    /// The constraints.
    pub constraints: Vec<Expression<F>>,
}

/// A cell that is opened: the number of its column, and its rotation.
pub type Query = (usize, i32);

/// A constraint system.
#[derive(Clone, Debug)]
pub struct ConstraintSystem<F = curve::Scalar> {
    /// Fixed columns, those that took the place of selectors among them.
    pub fixed_columns: usize,
    /// Instance columns.
    pub instance_columns: usize,
    /// The phase of each advice column.
    pub advice_phases: Vec<usize>,
    /// Advice columns whose last rows are 0, and not random.
    pub unblinded_advice: Vec<usize>,
    /// The phase after which each challenge is drawn.
    pub challenge_phases: Vec<usize>,
    /// The constraints of all gates.
    pub gates: Vec<Expression<F>>,
    /// The lookups.
    pub lookups: Vec<Lookup<F>>,
    /// The trash arguments.
    pub trash: Vec<Trash<F>>,
    /// Columns under the permutation.
    pub permuted: Vec<ColumnId>,
    /// What is opened of fixed columns, in the order of the proof.
    pub fixed_queries: Vec<Query>,
    /// Of advice columns.
    pub advice_queries: Vec<Query>,
    /// Of instance columns, if the scheme opens those.
    pub instance_queries: Vec<Query>,
    /// The degree of the constraints; at least 3 with a permutation.
    pub degree: usize,
    /// Rows at the end of a column that hold random values, less one.
    pub blinding_factors: usize,
}

impl<F> ConstraintSystem<F> {
    /// Advice columns.
    pub fn advice_columns(&self) -> usize {
        self.advice_phases.len()
    }

    /// How many phases a witness is assigned in.
    pub fn phases(&self) -> usize {
        self.advice_phases.iter().max().map_or(1, |last| last + 1)
    }

    /// Columns of one permutation product.
    pub fn permutation_chunk(&self) -> usize {
        self.degree.saturating_sub(2).max(1)
    }

    /// Products of a circuit's permutation.
    pub fn permutation_products(&self) -> usize {
        self.permuted.len().div_ceil(self.permutation_chunk())
    }

    /// Rows of a column that a circuit may not assign: they are random, but for the first of them.
    pub fn unusable_rows(&self) -> usize {
        self.blinding_factors + 1
    }
}
