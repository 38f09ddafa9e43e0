//! The jobs that steps offer to an accelerator: the numbers that it decides by. [`crate::accelerator`] has
//! the jobs with their data.

use serde::Serialize;

use crate::accelerator::Groups;

/// A job, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Job {
    /// Sums of the same number of terms.
    Sums {
        /// Terms of each.
        points: u64,
        /// Columns of points.
        bases: Groups<u64>,
        /// Vectors of scalars: each makes a sum with each column of points.
        columns: u64,
        /// Ranges of the points that are had by themselves begin at multiples of so many; none are, if there
        /// is no such number.
        step: Option<u64>,
        /// Bytes that the ends of all points lease.
        bases_bytes: u64,
        /// Bytes that the end of each vector leases.
        scalars_bytes: u64,
    },
    /// A whole transform.
    Transform {
        /// log2 of the elements.
        log_n: u32,
    },
    /// The quotient of a rank-1 constraint system.
    Constraints {
        /// log2 of the rows.
        log_n: u32,
        /// Values of the witness.
        signals: u64,
        /// Coefficients of both matrices.
        coefficients: u64,
        /// Their distinct values.
        values: u64,
        /// Bytes that the ends lease.
        ends_bytes: u64,
    },
    /// A panel of a transform that is dealt to ranks.
    Panel {
        /// log2 of the elements of the whole transform.
        log_n: u32,
        /// log2 of the length of a column.
        log_rows: u32,
        /// log2 of the columns.
        log_columns: u32,
        /// Halves of transforms that are made of each column.
        halves: u32,
    },
    /// A quotient on one coset.
    Coset {
        /// log2 of the matrix's rows.
        log_rows: u32,
        /// log2 of the elements of a row.
        log_columns: u32,
        /// Columns that the program reads, those that are computed among them.
        columns: u64,
        /// Bytes that the ends lease, whatever the tiles.
        ends_bytes: u64,
    },
}

/// How often a step offers a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// What.
    #[serde(flatten)]
    pub job: Job,
    /// How often.
    pub count: u64,
    /// Bytes of the budget that are left when it comes; the fewest, of all times.
    pub available_bytes: u64,
}

/// Offers of one job are one.
pub(crate) fn enter(offers: &mut Vec<Offer>, offer: Offer) {
    match offers.iter_mut().find(|known| known.job == offer.job) {
        Some(known) => {
            known.count += offer.count;
            known.available_bytes = known.available_bytes.min(offer.available_bytes);
        }
        None => offers.push(offer),
    }
}
