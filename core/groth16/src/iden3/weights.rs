//! Weights of points that follow from a challenge, for sums by which many points are checked at once.

use spillproof_commit::Challenge;
use spillproof_engine::stream::ForeignScalars;
use spillproof_kernels::field::KernelField;

/// A function of [`Challenge`]: the weights from an index on.
pub(super) type WeightsFrom<F> = fn(&Challenge<F>, u64, &mut [F]);

/// Weights that follow from a challenge.
pub(super) struct ChallengeWeights<'a, F> {
    pub challenge: &'a Challenge<F>,
    pub count: usize,
    pub weights: WeightsFrom<F>,
}

impl<F: KernelField> ForeignScalars<F> for ChallengeWeights<'_, F> {
    fn count(&self) -> usize {
        self.count
    }

    fn fill(&self, start: usize, out: &mut [F]) {
        (self.weights)(self.challenge, start as u64, out);
    }
}
