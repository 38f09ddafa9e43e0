//! How many distinct values there are, in a fixed number of bytes.
//!
//! Algorithm: of the values' 64-bit hashes the smallest are kept, in a buffer that is sorted when it is full.
//! Where more than half of the buffer is left then, hashes from the middle on wait for the next pass over the
//! values. Two values have the same hash with a probability of `n^2 / 2^65`: below 2^-25 for 2^20 of them.
//!
//! Memory: 8 bytes for each hash in the buffer. Passes: distinct values over half of the buffer.

use spillproof_engine::Result;
use spillproof_engine::budget::{Budget, LeasedVec};

/// Hashes in the buffer: the most, and the least.
const HASHES_MAX: u64 = 1 << 20;
const HASHES_MIN: u64 = 1 << 9;
/// The buffer takes at most this part of what the budget has left.
const SHARE: u64 = 8;

/// Hashes of values, pass after pass.
pub(crate) struct DistinctHashes {
    hashes: LeasedVec<u64>,
    filled: usize,
    /// This pass counts hashes from `low` on, and below `high`, if there is one.
    low: u64,
    high: Option<u64>,
    counted: u64,
}

impl DistinctHashes {
    /// None yet.
    pub fn new(budget: &Budget) -> Result<Self> {
        let hashes =
            (budget.available_bytes() / SHARE / size_of::<u64>() as u64).clamp(HASHES_MIN, HASHES_MAX);
        Self::of_hashes(budget, hashes as usize)
    }

    fn of_hashes(budget: &Budget, hashes: usize) -> Result<Self> {
        Ok(Self {
            hashes: budget.vec(hashes, 0u64, "hashes of values")?,
            filled: 0,
            low: 0,
            high: None,
            counted: 0,
        })
    }

    /// A hash of this pass.
    pub fn push(&mut self, hash: u64) {
        if self.filled == self.hashes.len() {
            self.sort();
            let half = self.hashes.len() / 2;
            if self.filled > half {
                self.high = Some(self.hashes[half]);
                self.filled = half;
            }
        }
        if hash >= self.low && self.high.is_none_or(|high| hash < high) {
            self.hashes[self.filled] = hash;
            self.filled += 1;
        }
    }

    /// The pass ends; whether it was the last one. The next one has to push the same hashes.
    pub fn end_pass(&mut self) -> bool {
        self.sort();
        self.counted += self.filled as u64;
        self.filled = 0;
        match self.high.take() {
            None => true,
            Some(high) => {
                self.low = high;
                false
            }
        }
    }

    /// Distinct hashes of all passes that ended.
    pub fn counted(&self) -> u64 {
        self.counted
    }

    fn sort(&mut self) {
        let hashes = &mut self.hashes[..self.filled];
        hashes.sort_unstable();
        let mut kept = 0;
        for at in 0..hashes.len() {
            if at == 0 || hashes[at] != hashes[kept - 1] {
                hashes[kept] = hashes[at];
                kept += 1;
            }
        }
        self.filled = kept;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    use super::*;

    #[test]
    fn distinct_hashes_are_counted_in_any_number_of_bytes() {
        let seed = rand::random();
        println!("seed {seed}");
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let budget = Budget::new(1 << 20);
        for (pushed, bits, buffer) in [
            (0, 64, 512),
            (5000, 1, 512),
            (5000, 9, 512),
            (5000, 64, 512),
            (5000, 64, 8192),
            (3000, 11, 600),
        ] {
            // The ends of the range are among them.
            let hash = |rng: &mut ChaCha20Rng| match rng.gen_range(0..100) {
                0 => u64::MAX,
                1 => 0,
                _ => rng.r#gen::<u64>() << (64 - bits),
            };
            let hashes: Vec<u64> = (0..pushed).map(|_| hash(&mut rng)).collect();
            let distinct: HashSet<_> = hashes.iter().collect();
            let mut counter = DistinctHashes::of_hashes(&budget, buffer).unwrap();
            let mut passes = 1;
            hashes.iter().for_each(|hash| counter.push(*hash));
            while !counter.end_pass() {
                hashes.iter().for_each(|hash| counter.push(*hash));
                passes += 1;
            }
            let label = format!("{pushed} hashes of {bits} bits");
            assert_eq!(counter.counted(), distinct.len() as u64, "{label}");
            assert!(
                passes <= 2 + 2 * distinct.len() / buffer,
                "{label}: {passes} passes"
            );
        }
    }
}
