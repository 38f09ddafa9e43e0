//! Both groups of BN254, and sums in them.

use std::ops::Range;

use ark_bn254::{G1Projective, G2Projective};
use ark_ff::AdditiveGroup;
use serde::Serialize;

/// A group of BN254.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// The first.
    G1,
    /// The second, whose coordinates have two elements of the base field.
    G2,
}

/// What there is for each group; of columns of points those of G1 come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Groups<A, B = A> {
    /// For the first.
    pub g1: A,
    /// For the second.
    pub g2: B,
}

/// Sums: of each column of points in turn, with each vector of scalars.
pub type Totals = Groups<Vec<G1Projective>, Vec<G2Projective>>;

impl Group {
    /// Bytes of a point: x, then y, in elements of 32 bytes; zeros for infinity.
    pub const fn point_bytes(self) -> u64 {
        match self {
            Self::G1 => 64,
            Self::G2 => 128,
        }
    }
}

impl<T> Groups<T> {
    /// That of a group.
    pub fn of(&self, group: Group) -> &T {
        match group {
            Group::G1 => &self.g1,
            Group::G2 => &self.g2,
        }
    }
}

impl<A, B> Groups<Vec<A>, Vec<B>> {
    /// How many there are for each group.
    pub fn counts(&self) -> Groups<u64> {
        Groups {
            g1: self.g1.len() as u64,
            g2: self.g2.len() as u64,
        }
    }
}

impl<T> Groups<Vec<T>> {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.g1.iter().chain(&self.g2)
    }

    /// All of them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.g1.iter_mut().chain(&mut self.g2)
    }
}

impl Totals {
    /// Sums that are all infinity, so many of each group.
    pub fn infinity(count: Groups<u64>) -> Self {
        Self {
            g1: vec![G1Projective::ZERO; count.g1 as usize],
            g2: vec![G2Projective::ZERO; count.g2 as usize],
        }
    }

    /// Adds other sums, each to that of its place.
    pub fn add(&mut self, other: &Self) {
        self.g1
            .iter_mut()
            .zip(&other.g1)
            .for_each(|(sum, part)| *sum += part);
        self.g2
            .iter_mut()
            .zip(&other.g2)
            .for_each(|(sum, part)| *sum += part);
    }
}

/// Numbers of columns of points.
impl Groups<u64> {
    /// The number of all.
    pub fn count(self) -> u64 {
        self.g1.saturating_add(self.g2)
    }

    /// Bytes of a point of each column.
    pub fn point_bytes(self) -> u64 {
        let of = |count: u64, group: Group| count.saturating_mul(group.point_bytes());
        of(self.g1, Group::G1).saturating_add(of(self.g2, Group::G2))
    }

    /// The group of a column.
    pub fn group_of(self, column: u64) -> Group {
        if column < self.g1 { Group::G1 } else { Group::G2 }
    }

    /// The group of each column.
    pub fn each(self) -> impl Iterator<Item = Group> {
        (0..self.count()).map(move |column| self.group_of(column))
    }

    /// The columns of a range.
    #[must_use]
    pub fn range(self, columns: Range<u64>) -> Self {
        let before = |column: u64| column.min(self.count());
        let of_g1 = |column: u64| column.min(self.g1);
        let (start, end) = (before(columns.start), before(columns.end));
        let g1 = of_g1(end).saturating_sub(of_g1(start));
        Self {
            g1,
            g2: end.saturating_sub(start) - g1,
        }
    }
}
