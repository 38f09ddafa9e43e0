//! Sums over all idle devices: shares of the points, each with its own ends, which devices take as they
//! become idle ([`over_devices`]).
//!
//! A share is summed like a whole job (`sums.rs`), for all vectors. A device that fails gets no more shares,
//! and another one takes its share; if none is left, the processor does the job from the start. Shares begin
//! at frames of the engine's columns, so frames can be read straight into slots.
//!
//! Memory of the host: each device uses an equal part of the budget that is free when the job begins.

use std::ops::AddAssign;

use ark_bn254::G1Projective;
use spillproof_engine::budget::Budget;
use spillproof_engine::tier::{Answer, Sums};

use super::report::Book;
use super::stop::Stop;
use super::worth::{JobSize, SMALL};
use super::{GpuTier, Idle, Offload, declined, sums};
use crate::msm::{Share, ShareWorker, Shared, over_devices};

/// Shares for each device: more let a slow device leave some to the others, and each share ends with a
/// reduction of all its buckets.
const SHARES_PER_DEVICE: u64 = 4;

/// The reason if all devices fail.
pub(super) const ALL_FAILED: &str = "all devices failed at the sum";

/// The sums of several vectors; empty before the first share.
#[derive(Debug, Default)]
struct VectorSums(Vec<G1Projective>);

impl AddAssign for VectorSums {
    fn add_assign(&mut self, other: Self) {
        if self.0.is_empty() {
            self.0 = other.0;
            return;
        }
        for (sum, part) in self.0.iter_mut().zip(other.0) {
            *sum += part;
        }
    }
}

/// Devices that share sums, and the points of a share.
pub(super) struct Sharing<'a> {
    pub idle: Vec<Idle<'a>>,
    pub share_points: u64,
}

impl GpuTier {
    /// The devices that share `count` sums of `points` points, in shares that begin at multiples of `step`;
    /// `None` if fewer than two devices are idle, or there is one share only.
    pub(super) fn sharing(
        &self,
        book: &Book,
        (points, step, count): (u64, Option<u64>, u64),
        budget: &Budget,
    ) -> spillproof_engine::Result<Option<Answer<Sharing<'_>>>> {
        let Some(step) = step.filter(|_| self.devices.len() > 1) else {
            return Ok(None);
        };
        let idle = (0..self.devices.len()).filter_map(|number| self.idle(number).ok());
        let mut idle: Vec<Idle<'_>> = idle.collect();
        let fewest = match self.offload {
            Offload::Measured => SMALL,
            Offload::Always => 1,
        };
        let shares = SHARES_PER_DEVICE * idle.len().max(1) as u64;
        let share_points = points.div_ceil(shares).max(fewest).next_multiple_of(step.max(1));
        let ([(first, device), _, ..], true) = (&mut idle[..], share_points < points) else {
            return Ok(None);
        };
        // Devices are assumed to be alike: a share must be worth the first one.
        let asked = JobSize::Sum(share_points);
        match asked
            .is_worth_it(self.offload, device, budget)
            .map_err(Stop::sorted)
        {
            Ok(()) => Ok(Some(Answer::Done(Sharing { idle, share_points }))),
            Err(Stop::Host(error)) => Err(error),
            Err(Stop::Declined(why)) => Ok(Some(declined(book, why, count))),
            Err(Stop::Device(error)) => {
                let why = device.failed(&error);
                book.left(*first, &why, count);
                Ok(None)
            }
        }
    }

    /// The sums by several devices; `None` if fewer than two are idle, or there is one share only.
    pub(super) fn shared_sums(
        &self,
        job: &Sums<'_>,
        budget: &Budget,
    ) -> spillproof_engine::Result<Option<Answer<Vec<G1Projective>>>> {
        let (book, count) = (&self.book, job.scalars.len() as u64);
        let points = job.scalars.iter().map(|scalars| scalars.len).max().unwrap_or(0);
        let step = job.parts.as_ref().map(|parts| parts.step);
        let Sharing {
            mut idle,
            share_points,
        } = match self.sharing(book, (points, step, count), budget)? {
            Some(Answer::Done(sharing)) => sharing,
            Some(Answer::Declined(why)) => return Ok(Some(Answer::Declined(why))),
            None => return Ok(None),
        };
        let Some(parts) = &job.parts else {
            return Ok(None);
        };
        let given_bytes = budget.available_bytes() / idle.len() as u64;
        let devices = idle.iter_mut().map(|(number, device)| {
            let (number, device) = (*number, &mut **device);
            let on_device = move |share: Share| {
                let made = (parts.of)(share.first..share.first + share.points)
                    .map_err(Stop::from)
                    .and_then(|mut part| sums::run(device, &mut part, (budget, given_bytes)));
                let why = match made.map_err(Stop::sorted) {
                    Ok(sums) => return Ok(VectorSums(sums)),
                    Err(Stop::Host(error)) => return Err(Stop::Host(error)),
                    Err(Stop::Declined(why)) => why,
                    Err(Stop::Device(error)) => device.failed(&error),
                };
                book.left(number, &why, count);
                Err(Stop::Declined(why))
            };
            Box::new(on_device) as ShareWorker<'_, VectorSums, Stop>
        });
        let none_left = |_| Err(Stop::Declined(ALL_FAILED.to_owned()));
        let made = over_devices(points, share_points, devices.collect(), none_left);
        let Shared { sum, devices, .. } = match made {
            Ok(shared) => shared,
            Err(Stop::Host(error)) => return Err(error),
            Err(Stop::Declined(why)) => return Ok(Some(declined(book, why, count))),
            Err(Stop::Device(error)) => return Ok(Some(declined(book, error.to_string(), count))),
        };
        let worked = devices.iter().map(|worked| worked.points);
        book.shared(idle.iter().map(|(number, _)| *number).zip(worked), count);
        Ok(Some(Answer::Done(sum.0)))
    }
}
