//! Random weights of points, for sums by which many points are checked at once.

use ark_ff::PrimeField;
use spillproof_engine::stream::ForeignScalars;
use spillproof_kernels::parallel::Parallel;

/// Weights that one thread makes at a time.
const JOB_WEIGHTS: usize = 256;

/// Weights of so many bytes, at most 16, that a random key gives: a keyed digest has those of neighbouring
/// indices.
#[derive(Debug)]
pub struct Weights<const BYTES: usize> {
    key: [u8; 32],
    /// Indices before this one have the weight 0.
    start: u64,
    end: u64,
}

impl<const BYTES: usize> Weights<BYTES> {
    const PER_DIGEST: u64 = (blake3::OUT_LEN / BYTES) as u64;

    /// For the points at `start..end`, and zero for those before them.
    pub fn random(start: u64, end: u64) -> Self {
        Self {
            key: rand::random(),
            start,
            end,
        }
    }
}

impl<F: PrimeField, const BYTES: usize> ForeignScalars<F> for Weights<BYTES> {
    fn count(&self) -> usize {
        self.end as usize
    }

    fn fill(&self, start: usize, out: &mut [F]) {
        let digest = |index: u64| {
            let place = index / Self::PER_DIGEST;
            blake3::keyed_hash(&self.key, &place.to_le_bytes())
        };
        out.chunks_mut(JOB_WEIGHTS)
            .enumerate()
            .parallel()
            .for_each(|(job, out)| {
                let first = (start + job * JOB_WEIGHTS) as u64;
                let mut bytes = digest(first);
                for (index, out) in (first..).zip(out) {
                    let within = (index % Self::PER_DIGEST) as usize;
                    if within == 0 {
                        bytes = digest(index);
                    }
                    let weight = &bytes.as_bytes()[within * BYTES..][..BYTES];
                    *out = match index < self.start {
                        true => F::ZERO,
                        false => F::from(
                            weight
                                .iter()
                                .rfold(0, |value: u128, byte| value << 8 | u128::from(*byte)),
                        ),
                    };
                }
            });
    }
}
