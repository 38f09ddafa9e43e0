//! The rates of a device, by which proofs over ranks are planned where the device is not.

use serde::{Deserialize, Serialize};
use spillproof_engine::Result;
use spillproof_engine::accelerator::{Accelerator, Answer, Coset, Sums, Totals, Transform};
use spillproof_engine::budget::Budget;
use spillproof_engine::plan::Job;

use super::rates::{JobRates, Seconds};
use super::worth::{JobSize, PanelSize};
use crate::msm::SumsSize;

/// The rates of a device by which proofs over ranks are planned. As an [`Accelerator`] for dry runs it does no job.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DeviceRates {
    /// Of sums in G1.
    pub sums: JobRates,
    /// Of transforms.
    pub transforms: JobRates,
}

impl DeviceRates {
    /// The seconds of a job whose data is in memory, on a device that has room for all of it; `None` for a job that is
    /// too small for a device, or a quotient, whose rates are those of its program.
    pub fn seconds(&self, job: &Job) -> Option<Seconds> {
        let (size, rates, weight) = match *job {
            Job::Sums {
                points,
                bases,
                columns,
                ..
            } => {
                let size = SumsSize {
                    bases,
                    columns,
                    ..SumsSize::one(points)
                };
                (JobSize::Sum(points), self.sums, size.weight())
            }
            Job::Transform { log_n } => (JobSize::Transform(log_n), self.transforms, 1.0),
            Job::Panel {
                log_n,
                log_rows,
                log_columns,
                halves,
            } => {
                let size = PanelSize {
                    log_n,
                    log_lengths: [log_rows, log_columns],
                    halves,
                };
                (JobSize::Panel(size), self.transforms, 1.0)
            }
            // Constraints are not offered over ranks.
            Job::Coset { .. } | Job::Constraints { .. } => return None,
        };
        (!size.is_small()).then(|| size.seconds_at(rates).times(weight, weight))
    }
}

impl Accelerator for DeviceRates {
    fn sums(&self, _: &mut Sums<'_>, _: &Budget) -> Result<Answer<Totals>> {
        Ok(planned())
    }

    fn transform(&self, _: &mut Transform<'_>, _: &Budget) -> Result<Answer<()>> {
        Ok(planned())
    }

    fn quotient(&self, _: &mut Coset<'_>, _: &Budget) -> Result<Answer<()>> {
        Ok(planned())
    }

    fn would_transform(&self, log_n: u32, _: &Budget) -> bool {
        let seconds = self.seconds(&Job::Transform { log_n });
        seconds.is_some_and(|seconds| seconds.is_less_on_the_device())
    }
}

fn planned<T>() -> Answer<T> {
    Answer::Declined("its jobs are planned".into())
}
