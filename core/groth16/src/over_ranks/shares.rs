//! What each rank has of a proof: rows and columns of the domain, and signals.

use spillproof_engine::error::Result;
use spillproof_engine::stream::{Deal, bounds as shares};

use crate::Shape;

/// Columns of values that are transformed.
pub(super) const POLYNOMIALS: u64 = 3;
/// Those of them whose parts, of different signals, add up.
const MATRICES: u64 = 2;
pub(super) const SCALAR_BYTES: u64 = 32;

/// How the transforms of a proof are cut over ranks. Sums are dealt out in each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// By the layout of a four-step transform: columns of the domain's matrix, then rows, then columns. Nothing
    /// is gathered.
    #[default]
    Layout,
    /// By rows of the constraint system, whose values rank 0 gathers: it makes all transforms, and deals the
    /// quotient out.
    Rows,
    /// By columns of the constraint system, that is, by signals: rank 0 gathers each rank's part of all rows,
    /// adds the parts up, and goes on as with rows. This is how provers over several GPUs are cut
    /// ("partial witness reduction").
    Columns,
    /// By step: rank 0 evaluates all rows and makes the quotient, the other ranks sum over the witness meanwhile, and
    /// rank 0 deals the quotient out. So two devices are used in plans where one makes transforms and the other one
    /// sums.
    Steps,
}

impl Cut {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Layout, Self::Rows, Self::Columns, Self::Steps];
}

/// What each rank has of a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    pub(super) cut: Cut,
    /// Rows of the domain, in columns of its matrix.
    pub(super) deal: Deal,
    /// Neighbouring rows of the domain, of whose quotient a rank makes the sum: where each rank's begin, and the end.
    pub(super) rows: Vec<u64>,
    /// Neighbouring rows of the domain that a rank evaluates: where each rank's begin, and the end.
    pub(super) evaluated: Vec<u64>,
    /// Signals whose columns a rank evaluates.
    pub(super) columns: Vec<u64>,
    /// Signals whose points a rank sums.
    pub(super) signals: Vec<u64>,
}

/// Neighbouring rows of a rank are a multiple of it, unless one rank has all: whole frames are gathered.
const ROW_GRAIN: u64 = 1 << 11;
/// Points of the longest frame, of a container of BN254.
const SIGNAL_GRAIN: u64 = 1 << 10;
/// The smallest domain of which every rank has columns.
const LOG_DOMAIN_MIN: u32 = 7;

impl Shares {
    /// In proportion to `weights`, one for each rank.
    ///
    /// # Errors
    /// [`Invalid::Zero`](spillproof_engine::error::Invalid::Zero) without a weight above zero.
    pub fn new(shape: &Shape, weights: &[u64], cut: Cut) -> Result<Self> {
        let column_grain = match shape.log_domain < LOG_DOMAIN_MIN {
            true => shape.signals,
            false => 1,
        };
        // Sums begin at a frame's start, unless that would leave ranks without work.
        let signal_grain = match shape.signals / SIGNAL_GRAIN < weights.len() as u64 {
            true => 1,
            false => SIGNAL_GRAIN,
        };
        let rows = shares_of_leader(1 << shape.log_domain, ROW_GRAIN, weights);
        let others = match cut {
            // Unless rank 0 is the only one that works.
            Cut::Steps => (0..weights.len())
                .map(|rank| if rank == 0 { 0 } else { weights[rank] })
                .collect(),
            Cut::Layout | Cut::Rows | Cut::Columns => Vec::new(),
        };
        let of_signals = match others.iter().any(|weight: &u64| *weight > 0) {
            true => &others[..],
            false => weights,
        };
        Ok(Self {
            cut,
            deal: Deal::new(shape.log_domain, weights)?,
            evaluated: match cut {
                Cut::Steps => all_of_leader(1 << shape.log_domain, weights.len()),
                Cut::Layout | Cut::Rows | Cut::Columns => rows.clone(),
            },
            rows,
            columns: shares_of_leader(shape.signals, column_grain, weights),
            signals: shares(shape.signals, signal_grain, of_signals),
        })
    }

    /// Bytes that go from each rank to each in the first exchange, and in the second: `[r][q]` from r to q. Of
    /// what a rank keeps, too.
    pub fn exchanges(&self) -> [Vec<Vec<u64>>; 2] {
        let ranks = 0..self.ranks();
        let scalars = |elements: u64| elements * SCALAR_BYTES;
        match self.cut {
            Cut::Layout => [0, 1].map(|exchange| {
                let of = |rank| self.deal.exchanged(exchange, rank, POLYNOMIALS);
                ranks
                    .clone()
                    .map(|rank| of(rank).into_iter().map(scalars).collect())
                    .collect()
            }),
            Cut::Rows | Cut::Columns | Cut::Steps => {
                let to_first = |rank: usize| {
                    let mut to = vec![0; self.ranks()];
                    to[0] = scalars(self.gathered(rank).iter().sum());
                    to
                };
                let of_first = |rank: usize| match rank {
                    0 => ranks
                        .clone()
                        .map(|rank| scalars(width(&self.rows, rank)))
                        .collect(),
                    _ => vec![0; self.ranks()],
                };
                [
                    ranks.clone().map(to_first).collect(),
                    ranks.clone().map(of_first).collect(),
                ]
            }
        }
    }

    /// The sizes of a rank's shares, and whether it is the first one: ranks with the same measure take the same.
    pub fn measure(&self, rank: usize) -> [u64; 6] {
        [
            self.deal.share_len(rank),
            self.deal.exchanged(1, rank, 1).iter().sum(),
            width(&self.rows, rank),
            width(&self.columns, rank),
            width(&self.signals, rank),
            u64::from(rank == 0),
        ]
    }

    /// Elements of each column that rank 0 gathers of a rank.
    pub(super) fn gathered(&self, rank: usize) -> Vec<u64> {
        match self.cut {
            Cut::Layout => Vec::new(),
            Cut::Rows | Cut::Steps => vec![width(&self.evaluated, rank); POLYNOMIALS as usize],
            Cut::Columns => {
                let n = 1 << self.deal.log_n();
                let has_some = rank == 0 || width(&self.columns, rank) > 0;
                vec![if has_some { n } else { 0 }; MATRICES as usize]
            }
        }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.deal.ranks()
    }
}

/// Shares in grains; rank 0 has all of what is not more than one.
fn shares_of_leader(len: u64, grain: u64, weights: &[u64]) -> Vec<u64> {
    if len > grain {
        return shares(len, grain, weights);
    }
    all_of_leader(len, weights.len())
}

/// Shares of ranks of which rank 0 has all.
fn all_of_leader(len: u64, ranks: usize) -> Vec<u64> {
    let mut bounds = vec![len; ranks + 1];
    bounds[0] = 0;
    bounds
}

/// What a rank has of shares with these bounds.
pub(super) fn width(bounds: &[u64], rank: usize) -> u64 {
    bounds[rank + 1] - bounds[rank]
}
