//! What keys and a proof of a circuit will take, before any work: leases, passes, bytes read and written, seconds.
//!
//! Algorithm: a dry run. [`Plan::new`] goes through the steps of keygen and of the prover in their order, with a [`Shape`]
//! for a circuit and a ledger for a budget. The ledger knows what a real one would hold at that moment (the digests
//! of live columns, columns that are small enough for memory, the shares of maps), and each step asks the stages' own plans
//! (MSM, transform, sort, quotient, opening) how they will cut their work in what is left, as the stages themselves
//! will. So a plan refuses what they would refuse, and says so before the first byte is read.
//!
//! ```text
//!   mod.rs       what goes in and what comes out
//!   jobs.rs      what the steps offer to a second compute tier
//!   ledger.rs    what is held, and what moves: a budget and a disk without bytes
//!   stages.rs    commitments, transforms, evaluations, openings
//!   arguments.rs lookups, grand products, the quotient
//!   keygen.rs    the steps of keygen
//!   prover.rs    the steps of a proof
//!   rates.rs     how fast this machine is
//! ```
//!
//! Bytes that maps write out and read back (cells of the witness, of fixed columns, of copies) depend on what a circuit assigns,
//! and in which order; here all cells are assigned, once and in order, and all of them copied. A circuit that copies cells
//! far apart with a small budget moves more, one that leaves columns empty less. Seconds are a guess from [`Rates`]: the
//! larger of disk and compute for each step, without the circuit's own synthesis.
//!
//! All of it is as the processor does it. What a second compute tier is offered on the way each step names ([`Offer`]); what a tier makes of
//! that, it says itself.
//!
//! Memory: a few hundred bytes a column.

mod arguments;
mod jobs;
mod keygen;
mod ledger;
mod prover;
mod rates;
mod stages;

use serde::Serialize;

pub use jobs::{Job, Offer};
pub use rates::Rates;

use crate::{Error, Result};
use ledger::Ledger;

/// A circuit, as far as its keys' and proofs' cost goes. Columns are numbered: fixed ones first, then advice, then instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// log2 of the rows.
    pub log_n: u32,
    /// log2 of the number of cosets on which the quotient is evaluated.
    pub log_cosets: u32,
    /// Pieces of the quotient.
    pub pieces: usize,
    /// Columns of advice that each phase assigns, by number among advice columns.
    pub phases: Vec<Vec<usize>>,
    /// Bytes of an assigned advice cell.
    pub advice_cell_bytes: u64,
    /// Fixed columns that a circuit assigns.
    pub fixed: usize,
    /// Selectors; each becomes a fixed column.
    pub selectors: usize,
    /// Instance columns.
    pub instances: usize,
    /// Numbers of the columns under the permutation.
    pub permuted: Vec<usize>,
    /// Columns of a permutation product.
    pub set_len: usize,
    /// Lookups.
    pub lookups: Vec<LookupShape>,
    /// Rows at the end of each product that hold random values; one more is not used.
    pub blinding_factors: u64,
    /// Circuits in one proof.
    pub circuits: usize,
    /// The numerator of the quotient.
    pub numerator: NumeratorShape,
    /// What is opened, and where.
    pub openings: Openings,
}

/// A lookup: what becomes of its input and table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupShape {
    /// The number of the column that each side is, if it is one; the others are computed.
    pub plain: [Option<usize>; 2],
    /// Columns that are read to compute the others, with their smallest and largest rotation.
    pub reads: Vec<(usize, (i32, i32))>,
    /// Registers of that program.
    pub registers: usize,
    /// Its instructions.
    pub instructions: usize,
}

/// The numerator: rotations of what it reads. All circuits of a proof are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumeratorShape {
    /// Smallest and largest rotation of each column that is read as coefficients and is in use.
    pub read: Vec<(i32, i32)>,
    /// Of each that is computed.
    pub computed: Vec<(i32, i32)>,
    /// Registers of the program.
    pub registers: usize,
    /// Its instructions.
    pub instructions: usize,
}

/// The multi-opening argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OpeningScheme {
    /// Two passes over everything.
    Shplonk,
    /// One pass for each point.
    Gwc,
}

/// Which polynomials are opened, and at which rotations of the point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Openings {
    /// How.
    pub scheme: OpeningScheme,
    /// For each fixed column and each advice column (those of one circuit): the rotations, none twice.
    pub columns: Vec<Vec<i32>>,
}

/// What a part of the work belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The verifying key.
    VerifyingKey,
    /// The proving key, from a verifying key.
    ProvingKey,
    /// The proof.
    Proof,
}

impl Phase {
    /// The phase in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::VerifyingKey => "verifying key",
            Self::ProvingKey => "proving key",
            Self::Proof => "prove",
        }
    }
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Where it belongs.
    pub phase: Phase,
    /// Its name, as in the tracing spans of the drop-in.
    pub name: &'static str,
    /// The most bytes of the budget that are held meanwhile.
    pub peak_bytes: u64,
    /// Passes over columns.
    pub passes: u64,
    /// Bytes read from disk.
    pub bytes_read: u64,
    /// Bytes written to disk.
    pub bytes_written: u64,
    /// How long it takes, roughly.
    pub seconds: f64,
    /// What a second compute tier is offered, in the order in which it first is.
    pub offers: Vec<Offer>,
}

/// What keys and a proof will take.
///
/// ```
/// use spillproof::plan::{NumeratorShape, Openings, OpeningScheme, Plan, Rates, Shape};
///
/// // Three advice columns in one gate, nothing else.
/// let shape = Shape {
///     log_n: 16,
///     log_cosets: 1,
///     pieces: 2,
///     phases: vec![vec![0, 1, 2]],
///     advice_cell_bytes: 72,
///     fixed: 1,
///     selectors: 0,
///     instances: 0,
///     permuted: vec![],
///     set_len: 1,
///     lookups: vec![],
///     blinding_factors: 5,
///     circuits: 1,
///     numerator: NumeratorShape { read: vec![(0, 0); 4], computed: vec![], registers: 2, instructions: 5 },
///     openings: Openings { scheme: OpeningScheme::Shplonk, columns: vec![vec![0]; 4] },
/// };
/// let plan = Plan::new(&shape, 64 << 20, 2, &Rates::default())?;
/// assert!(plan.peak_bytes() <= 64 << 20);
/// assert!(plan.smallest_budget_bytes < 16 << 20);
/// assert!(Plan::new(&shape, plan.smallest_budget_bytes / 2, 2, &Rates::default()).is_err());
/// # Ok::<(), spillproof::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The budget that it is for.
    pub budget_bytes: u64,
    /// The smallest budget that works, in whole [`GRAIN_BYTES`].
    pub smallest_budget_bytes: u64,
    /// Compute threads.
    pub threads: usize,
    /// The most that files take at one time, with the parameters and with maps written full.
    pub disk_bytes: u64,
    /// In order.
    pub steps: Vec<Step>,
}

/// Budgets are searched in steps of so many bytes.
pub const GRAIN_BYTES: u64 = 64 << 10;
/// No circuit needs more than this.
const BUDGET_BYTES_MAX: u64 = 1 << 46;

impl Plan {
    /// The plan for keys and a proof within `budget_bytes` on `threads` threads, where only the parameters are there yet.
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`] with the smallest budget that works; [`Error::Invalid`] for a shape that makes no sense.
    pub fn new(shape: &Shape, budget_bytes: u64, threads: usize, rates: &Rates) -> Result<Self> {
        shape.check()?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|error| Error::Invalid {
                what: "compute threads",
                details: error.to_string(),
            })?;
        pool.install(|| {
            let smallest_budget_bytes = smallest_above(shape, 0)?;
            let ledger = match dry_run(shape, budget_bytes) {
                Ok(ledger) => ledger,
                Err(Error::BudgetTooSmall { what, .. }) => {
                    // More memory is not always enough: what is small for it is kept in it.
                    let needed_bytes = match smallest_budget_bytes > budget_bytes {
                        true => smallest_budget_bytes,
                        false => smallest_above(shape, budget_bytes)?,
                    };
                    return Err(Error::BudgetTooSmall {
                        what: format!("{what} of 2^{} rows", shape.log_n),
                        needed_bytes,
                        limit_bytes: budget_bytes,
                    });
                }
                Err(other) => return Err(other),
            };
            Ok(Self {
                budget_bytes,
                smallest_budget_bytes,
                threads: rayon::current_num_threads(),
                disk_bytes: ledger.disk_peak_bytes(),
                steps: ledger.steps(rates),
            })
        })
    }

    /// The most bytes of the budget that are held at one time.
    pub fn peak_bytes(&self) -> u64 {
        self.of(None).peak_bytes
    }

    /// Sums over the steps of one phase, or of all; the peak is the highest.
    pub fn of(&self, phase: Option<Phase>) -> Step {
        let mut total = Step {
            phase: phase.unwrap_or(Phase::Proof),
            name: "total",
            peak_bytes: 0,
            passes: 0,
            bytes_read: 0,
            bytes_written: 0,
            seconds: 0.0,
            offers: Vec::new(),
        };
        let wanted = |step: &&Step| phase.is_none_or(|phase| step.phase == phase);
        for step in self.steps.iter().filter(wanted) {
            total.peak_bytes = total.peak_bytes.max(step.peak_bytes);
            total.passes += step.passes;
            total.bytes_read += step.bytes_read;
            total.bytes_written += step.bytes_written;
            total.seconds += step.seconds;
            step.offers
                .iter()
                .for_each(|offer| jobs::enter(&mut total.offers, *offer));
        }
        total
    }
}

fn dry_run(shape: &Shape, budget_bytes: u64) -> Result<Ledger> {
    let mut ledger = Ledger::new(budget_bytes);
    let srs = ledger.parameters(shape.log_n)?;
    ledger.verifying_key(shape, &srs)?;
    let key = ledger.proving_key(shape, &srs)?;
    ledger.proof(shape, &srs, &key)?;
    Ok(ledger)
}

/// The smallest budget above `budget_bytes` with which a dry run ends well: the first one on the way up, in steps of a 32nd,
/// and then the end of that step.
fn smallest_above(shape: &Shape, budget_bytes: u64) -> Result<u64> {
    let works = |grains: u64| match dry_run(shape, grains * GRAIN_BYTES) {
        Ok(_) => Ok(true),
        Err(Error::BudgetTooSmall { .. }) => Ok(false),
        Err(other) => Err(other),
    };
    let mut below = budget_bytes / GRAIN_BYTES;
    let mut enough = below + 1;
    while !works(enough)? {
        if enough * GRAIN_BYTES > BUDGET_BYTES_MAX {
            return Err(Error::Invalid {
                what: "plan",
                details: format!("no budget up to {BUDGET_BYTES_MAX} bytes works"),
            });
        }
        (below, enough) = (enough, enough + (enough / 32).max(1));
    }
    while below + 1 < enough {
        let middle = below + (enough - below) / 2;
        if works(middle)? {
            enough = middle;
        } else {
            below = middle;
        }
    }
    Ok(enough * GRAIN_BYTES)
}

impl Shape {
    /// Advice columns.
    pub fn advice(&self) -> usize {
        self.phases.iter().map(Vec::len).sum()
    }

    /// Fixed columns, those that took the place of selectors among them.
    pub fn all_fixed(&self) -> usize {
        self.fixed + self.selectors
    }

    fn rows(&self) -> u64 {
        1 << self.log_n
    }

    fn check(&self) -> Result<()> {
        let columns = self.all_fixed() + self.advice() + self.instances;
        let plain = self.lookups.iter().flat_map(|lookup| lookup.plain).flatten();
        let read = self.lookups.iter().flat_map(|lookup| &lookup.reads);
        let used = plain
            .chain(read.map(|(column, _)| *column))
            .chain(self.permuted.iter().copied());
        let advice = |column: &usize| *column < self.advice();
        let fits = (1..=28).contains(&self.log_n)
            && self.log_cosets <= 16
            && self.set_len > 0
            && self.circuits > 0
            && self.blinding_factors + 1 < self.rows()
            && used.max().is_none_or(|column| column < columns)
            && self.phases.iter().flatten().all(advice)
            && self.openings.columns.len() == self.all_fixed() + self.advice();
        if fits {
            return Ok(());
        }
        Err(Error::Invalid {
            what: "shape of a circuit",
            details: format!("{columns} columns of 2^{} rows: {self:?}", self.log_n),
        })
    }
}
