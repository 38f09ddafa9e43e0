//! Random weights of points, for sums by which many points are checked at once.

use ark_ff::PrimeField;

use crate::parallel::Parallel;
use crate::stream::ForeignScalars;

/// Weights that one thread makes at a time.
const JOB_WEIGHTS: usize = 256;

/// Weights that a random key gives: 16 bytes of a keyed digest of the index.
pub(super) struct Weights {
    key: [u8; 32],
    /// Indices before this one have the weight 0.
    start: u64,
    end: u64,
}

impl Weights {
    /// For the points at `start..end`, and zero for those before them.
    pub fn random(start: u64, end: u64) -> Self {
        Self {
            key: rand::random(),
            start,
            end,
        }
    }
}

impl<F: PrimeField> ForeignScalars<F> for Weights {
    fn count(&self) -> usize {
        self.end as usize
    }

    fn fill(&self, start: usize, out: &mut [F]) {
        let weight = |index: u64| {
            if index < self.start {
                return F::ZERO;
            }
            let digest = blake3::keyed_hash(&self.key, &index.to_le_bytes());
            let half = digest.as_bytes().first_chunk::<16>().copied().unwrap_or_default();
            F::from(u128::from_le_bytes(half))
        };
        out.chunks_mut(JOB_WEIGHTS)
            .enumerate()
            .parallel()
            .for_each(|(job, out)| {
                let first = (start + job * JOB_WEIGHTS) as u64;
                (first..).zip(out).for_each(|(index, out)| *out = weight(index));
            });
    }
}
