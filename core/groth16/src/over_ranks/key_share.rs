//! One rank's share of a key. Its coefficients are the rank's; its points are the rank's (of a dealt key) or all (of a
//! `.zkey`).
//!
//! Coefficients keep the numbers of their rows and signals in the whole key; points of signals and of `h` stand in
//! columns of their own, from the rank's first one on ([`spillproof_format::groth16_dealt`]).

use spillproof_engine::error::{Invalid, Result};
use spillproof_engine::stream::Terms;
use spillproof_format::groth16_dealt::{Dealt, ShareShape};

use super::{Cut, Shares, width};
use crate::constraints::Share;
use crate::{PairingCurve, ProvingKey, Shape};

/// One rank of several, and how a proof is dealt to them.
#[derive(Clone, Copy, Debug)]
pub struct OfRank<'a> {
    /// The rank.
    pub rank: usize,
    /// The weight of each rank.
    pub weights: &'a [u64],
    /// The cut.
    pub cut: Cut,
}

impl OfRank<'_> {
    /// What each rank has of a key of this shape.
    ///
    /// # Errors
    /// As [`Shares::new`]; [`Invalid::Index`] for a rank that is none.
    pub fn shares(&self, shape: &Shape) -> Result<Shares> {
        let ranks = self.weights.len();
        if self.rank >= ranks {
            return Err(Invalid::Index {
                what: "rank",
                index: self.rank as u64,
                count: ranks as u64,
            }
            .into());
        }
        Shares::new(shape, self.weights, self.cut)
    }
}

/// The rank that a key is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyShare {
    rank: usize,
    shares: Shares,
    whole: Shape,
    /// Whether the points are those of the rank, too.
    has_own_points: bool,
}

impl KeyShare {
    /// Of a key with all points, and the coefficients of one rank.
    pub(crate) fn of_coefficients(shares: Shares, rank: usize, whole: Shape) -> Self {
        Self {
            rank,
            shares,
            whole,
            has_own_points: false,
        }
    }

    /// Of a key with the points and the coefficients of one rank.
    pub(crate) fn of_points(shares: Shares, rank: usize, whole: Shape) -> Self {
        Self {
            rank,
            shares,
            whole,
            has_own_points: true,
        }
    }

    /// The whole key's sizes. Distinct values may not have been counted.
    pub fn whole(&self) -> &Shape {
        &self.whole
    }

    /// Whether the points are those of the rank, too.
    pub(crate) fn has_own_points(&self) -> bool {
        self.has_own_points
    }

    /// How many points of signals and of `h` such a key has.
    pub(crate) fn points(&self) -> [u64; 2] {
        let shape = self.shares.share_shape(self.rank);
        [shape.signals, shape.points_of_h]
    }
}

impl<E: PairingCurve> ProvingKey<E> {
    /// Whether its points are those of one rank.
    pub(crate) fn has_own_points(&self) -> bool {
        self.share.as_ref().is_some_and(KeyShare::has_own_points)
    }

    /// That the key is a whole one, for one rank alone.
    pub(crate) fn check_whole(&self) -> Result<()> {
        match &self.share {
            None => Ok(()),
            Some(share) => Err(Invalid::OtherRanks {
                file: self.a.name().to_owned(),
                dealt: share.shares.ranks(),
                given: 1,
            }
            .into()),
        }
    }

    /// That the key is a whole one, or is for this rank of a proof by these shares.
    pub(crate) fn check_rank(&self, rank: usize, shares: &Shares) -> Result<()> {
        let Some(share) = &self.share else {
            return Ok(());
        };
        if share.shares.ranks() != shares.ranks() {
            return Err(Invalid::OtherRanks {
                file: self.a.name().to_owned(),
                dealt: share.shares.ranks(),
                given: shares.ranks(),
            }
            .into());
        }
        let remedy = "open the key for the rank and the shares of the proof";
        let other = |what, dealt, given| {
            Err(Invalid::OtherShares {
                what,
                dealt,
                given,
                remedy,
            }
            .into())
        };
        if share.rank != rank {
            return other(
                "a rank's share of a key",
                format!("rank {}", share.rank),
                format!("rank {rank}"),
            );
        }
        if share.shares.cut != shares.cut {
            return other(
                "the cut of a key",
                format!("{:?}", share.shares.cut),
                format!("{:?}", shares.cut),
            );
        }
        match share.shares == *shares {
            true => Ok(()),
            false => other(
                "the shares of a key",
                format!("{:?}", share.shares.signals),
                format!("{:?}", shares.signals),
            ),
        }
    }

    /// The terms of the sums over a rank's signals: in a dealt key its points begin with the rank's.
    pub(super) fn terms_of_signals(&self, rank: usize, shares: &Shares) -> Terms {
        let (start, len) = (shares.signals[rank], width(&shares.signals, rank));
        match self.has_own_points() {
            false => Terms::Range { start, len },
            true => Terms::From {
                first_base: 0,
                first_scalar: start,
                len,
            },
        }
    }

    /// The length of a row of the matrix that the points of `h` are, and the rank's first column in it.
    pub(super) fn matrix_of_h(&self, rank: usize, shares: &Shares) -> (u64, u64) {
        let columns = shares.deal.columns(rank);
        match self.has_own_points() {
            false => (shares.deal.row_len(), columns.start),
            true => (columns.end - columns.start, 0),
        }
    }
}

impl Shares {
    /// What a rank evaluates of the constraints.
    pub(crate) fn evaluated(&self, shape: &Shape, rank: usize) -> Share {
        match self.cut {
            Cut::Layout => {
                let columns = self.deal.columns(rank);
                Share {
                    row_len: self.deal.row_len(),
                    first_column: columns.start,
                    columns: columns.end - columns.start,
                    ..Share::all(shape)
                }
            }
            Cut::Rows | Cut::Steps => Share::rows(shape, self.evaluated[rank], self.evaluated[rank + 1]),
            Cut::Columns => Share {
                signals: [self.columns[rank], self.columns[rank + 1]],
                ..Share::all(shape)
            },
        }
    }

    /// For plans: the sizes of a key with a rank's coefficients, as if these were spread evenly over what ranks
    /// evaluate. It has all distinct values, or one for each coefficient.
    pub(crate) fn planned(&self, shape: &Shape, rank: usize) -> Shape {
        let part = self.evaluated(shape, rank);
        let (some, all) = match self.cut {
            Cut::Layout | Cut::Rows | Cut::Steps => (part.len(), part.domain),
            Cut::Columns => (part.signals[1] - part.signals[0], shape.signals),
        };
        let coefficients = u128::from(shape.coefficients) * u128::from(some);
        let coefficients = coefficients.div_ceil(u128::from(all.max(1))) as u64;
        Shape {
            coefficients,
            values: shape.values.min(coefficients),
            ..*shape
        }
    }

    /// The sizes of a rank's share of the points, without coefficients.
    pub(crate) fn share_shape(&self, rank: usize) -> ShareShape {
        ShareShape {
            signals: width(&self.signals, rank),
            points_of_h: self.deal.share_len(rank),
            values: 0,
            coefficients: 0,
        }
    }

    /// The columns of the domain's matrix that a rank has, of the rows of how many elements.
    pub(crate) fn columns_of_h(&self, rank: usize) -> (std::ops::Range<u64>, u64) {
        (self.deal.columns(rank), self.deal.row_len())
    }

    /// The signals whose points a rank sums.
    pub(crate) fn signals_of(&self, rank: usize) -> std::ops::Range<u64> {
        self.signals[rank]..self.signals[rank + 1]
    }

    /// Whether a key is dealt by these shares.
    pub(crate) fn are_those_of(&self, dealt: &Dealt) -> bool {
        self.cut == Cut::Layout
            && self.deal.log_n() == dealt.log_domain
            && self.ranks() == dealt.shares.len()
            && dealt.shares.iter().enumerate().all(|(rank, share)| {
                (self.deal.columns(rank), self.signals_of(rank))
                    == (share.columns.clone(), share.signals.clone())
            })
    }
}
