//! Sums over all devices that are idle: shares of the points, dealt as devices come for them ([`over_devices`]), each with ends of its own.
//!
//! A share is summed as a whole job is (`sums.rs`), all vectors of it. A device that fails is dealt nothing more, and another one has its
//! share; if none is left, the job is the processor's, from its start. Shares begin where the engine's columns have frames, so that those
//! still land in slots.
//!
//! Memory of the host: each device has an equal part of what the budget has left when the job begins.

use std::ops::AddAssign;

use ark_bn254::G1Projective;
use spillproof::budget::Budget;
use spillproof::tier::{Answer, Sums};

use super::report::Book;
use super::stop::Stop;
use super::worth::{JobSize, SMALL};
use super::{GpuTier, Idle, Offload, declined, sums};
use crate::msm::{Share, ShareWorker, Shared, over_devices};

/// Shares for each device: one that is slower leaves some to the others, and each share ends with a reduction of all its buckets.
const SHARES_PER_DEVICE: u64 = 4;

/// Why sums are the processor's after all.
pub(super) const NOBODY: &str = "no device is left for the sum";

/// Sums of several vectors; of none at first.
#[derive(Debug, Default)]
struct OfVectors(Vec<G1Projective>);

impl AddAssign for OfVectors {
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
    /// Who shares `count` sums of so many points, in shares that begin at multiples of `step`; `None` if there are no two devices now, or no
    /// two shares.
    pub(super) fn sharing(
        &self,
        book: &Book,
        (points, step, count): (u64, Option<u64>, u64),
        budget: &Budget,
    ) -> spillproof::Result<Option<Answer<Sharing<'_>>>> {
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
        // A share is to be worth it for one of them, and they are taken to be alike.
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

    /// The sums by several devices; `None` if there are no two of them now, or no two shares.
    pub(super) fn shared_sums(
        &self,
        job: &Sums<'_>,
        budget: &Budget,
    ) -> spillproof::Result<Option<Answer<Vec<G1Projective>>>> {
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
        let room_bytes = budget.available_bytes() / idle.len() as u64;
        let devices = idle.iter_mut().map(|(number, device)| {
            let (number, device) = (*number, &mut **device);
            let on_device = move |share: Share| {
                let made = (parts.of)(share.first..share.first + share.points)
                    .map_err(Stop::from)
                    .and_then(|mut part| sums::run(device, &mut part, (budget, room_bytes)));
                let why = match made.map_err(Stop::sorted) {
                    Ok(sums) => return Ok(OfVectors(sums)),
                    Err(Stop::Host(error)) => return Err(Stop::Host(error)),
                    Err(Stop::Declined(why)) => why,
                    Err(Stop::Device(error)) => device.failed(&error),
                };
                book.left(number, &why, count);
                Err(Stop::Declined(why))
            };
            Box::new(on_device) as ShareWorker<'_, OfVectors, Stop>
        });
        let nobody = |_| Err(Stop::Declined(NOBODY.to_owned()));
        let made = over_devices(points, share_points, devices.collect(), nobody);
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
