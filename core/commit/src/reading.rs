//! How many points of parameters a caller that knows their format reads at a time: as many as the budget has
//! room for.
//!
//! The two columns are on disk, and are filled one after the other. Memory:
//!
//! ```text
//! leased = writer's buffers + points * point_bytes
//! ```

use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::budget::{Budget, Lease};
use spillproof_engine::column::{Element, sequential_bytes, writer_bytes};

use super::chunks::points_frame_bytes;

/// Enough to decode for each thread that it is worth the call; no fewer are read at a time, if there are as
/// many.
const POINTS_MIN: u64 = 128;

/// The lease of points that are being read.
#[derive(Debug)]
pub struct PointsInFlight {
    points: u64,
    _lease: Lease,
}

impl PointsInFlight {
    /// What `budget` has left beside the writer of a column of `T`, for up to `points_max` of its `n` points
    /// at a time, each of which takes `point_bytes` on its way: as it is encoded, as it is decoded, and
    /// whatever else the reader wants.
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`] with the smallest budget that works, what is held now included.
    pub fn new<T: Element>(budget: &Budget, n: u64, point_bytes: u64, points_max: u64) -> Result<Self> {
        let least_points = POINTS_MIN.min(points_max).min(n).max(1);
        let limit_bytes = budget.limit_bytes();
        let held_bytes = limit_bytes.saturating_sub(budget.available_bytes());
        let others_bytes = held_bytes + column_writer_bytes::<T>(n, limit_bytes);
        let points = limit_bytes.saturating_sub(others_bytes) / point_bytes.max(1);
        if points < least_points {
            return Err(Error::BudgetTooSmall {
                what: format!("reading parameters of {n} rows"),
                needed_bytes: smallest_above::<T>(limit_bytes, n, held_bytes + least_points * point_bytes),
                limit_bytes,
            });
        }
        let points = points.min(points_max).min(n);
        Ok(Self {
            points,
            _lease: budget.lease(points * point_bytes, "points being read")?,
        })
    }

    /// Points at a time.
    pub fn points(&self) -> u64 {
        self.points
    }
}

/// What a writer of a column holds.
fn column_writer_bytes<T: Element>(n: u64, limit_bytes: u64) -> u64 {
    let (bytes, frame_bytes) = (n * T::BYTES as u64, points_frame_bytes::<T>());
    let chunk_bytes = sequential_bytes(limit_bytes, frame_bytes) as u64;
    writer_bytes(bytes, chunk_bytes, frame_bytes as u64)
}

/// The smallest budget above this one that has room for columns, writer, and `others_bytes`; a larger budget
/// has a larger writer, too.
fn smallest_above<T: Element>(mut limit_bytes: u64, n: u64, others_bytes: u64) -> u64 {
    loop {
        let needed_bytes = others_bytes + column_writer_bytes::<T>(n, limit_bytes);
        if needed_bytes <= limit_bytes {
            return limit_bytes;
        }
        limit_bytes = needed_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spillproof_kernels::curve::Point;

    /// Encoded, decoded, and once more.
    const POINT_BYTES: u64 = 200;

    fn needed(refused: Result<PointsInFlight>) -> u64 {
        match refused {
            Err(Error::BudgetTooSmall { needed_bytes, .. }) => needed_bytes,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_named_as_the_smallest_works_and_a_byte_less_does_not() {
        the_smallest_works::<crate::G1>();
        the_smallest_works::<Point<ark_bls12_381::g1::Config>>();
    }

    fn the_smallest_works<T: Element>() {
        for log_n in [0, 1, 6, 7, 8, 10, 14, 20, 28] {
            // Held by others: nothing, or so much that the writer's buffers grow on the way to a budget that
            // works.
            for held_bytes in [0, 8 << 20] {
                let in_flight = |limit_bytes| {
                    let budget = Budget::new(limit_bytes);
                    let _held = budget.lease(held_bytes, "others").unwrap();
                    PointsInFlight::new::<T>(&budget, 1 << log_n, POINT_BYTES, 1 << 14)
                };
                let smallest = needed(in_flight(held_bytes));
                assert_eq!(in_flight(smallest).unwrap().points(), POINTS_MIN.min(1 << log_n));
                assert_eq!(needed(in_flight(smallest - 1)), smallest);
            }
        }
    }

    #[test]
    fn more_memory_reads_more_at_a_time_up_to_what_is_asked() {
        let points = |limit_bytes| {
            let budget = Budget::new(limit_bytes);
            let in_flight = PointsInFlight::new::<crate::G1>(&budget, 1 << 20, POINT_BYTES, 1 << 14).unwrap();
            assert_eq!(budget.held_bytes(), in_flight.points() * POINT_BYTES);
            in_flight.points()
        };
        let chunks: Vec<u64> = (1..64).map(|eighths| points(eighths << 18)).collect();
        assert!(chunks.is_sorted() && chunks[0] < chunks[1], "{chunks:?}");
        assert_eq!(*chunks.last().unwrap(), 1 << 14);
    }
}
