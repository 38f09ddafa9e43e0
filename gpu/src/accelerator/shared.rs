//! Sums over all idle devices: shares of the points, each with its own ends, which devices take as they
//! become idle (`deal.rs`).
//!
//! A share is summed like a whole job (`sums.rs`), for all vectors. A device that fails gets no more shares,
//! and another one takes its share; if none is left, the processor does the job from the start. Shares begin
//! at frames of the engine's columns, so frames can be read straight into slots.
//!
//! Memory of the host: each device uses an equal part of the budget that is free when the job begins.

use spillproof_engine::accelerator::{Answer, Sums, Totals};
use spillproof_engine::budget::Budget;

use super::deal::{DealtSums, Share, ShareWorker, deal};
use super::rates::Worth;
use super::report::{Book, JobKind};
use super::slots::HostRoom;
use super::stop::Stop;
use super::worth::{JobSize, SMALL};
use super::{GpuAccelerator, IdleDevice, Offload, declined, sums};

/// Shares for each device: more let a slow device leave some to the others, and each share ends with a
/// reduction of all its buckets.
const SHARES_PER_DEVICE: u64 = 4;

/// Sums that devices may share.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharingRequest {
    /// Points of the longest sum.
    pub points: u64,
    /// Shares begin at multiples of it; `None` if the points cannot be read in shares.
    pub step: Option<u64>,
    /// The number of sums.
    pub count: u64,
}

/// Devices that share sums, and the points of a share.
pub(super) struct Sharing<'a> {
    pub idle: Vec<IdleDevice<'a>>,
    pub share_points: u64,
    /// What speaks for a share of one sum.
    pub worth: Worth,
}

impl GpuAccelerator {
    /// The devices that share sums; `None` if fewer than two devices are idle, or there is one share only.
    pub(super) fn sharing(
        &self,
        book: &Book,
        request: SharingRequest,
        budget: &Budget,
    ) -> spillproof_engine::Result<Option<Answer<Sharing<'_>>>> {
        let SharingRequest { points, step, count } = request;
        let Some(step) = step.filter(|_| self.devices.len() > 1) else {
            return Ok(None);
        };
        let idle = (0..self.devices.len()).filter_map(|number| self.idle(number).ok());
        let mut idle: Vec<IdleDevice<'_>> = idle.collect();
        let fewest = match self.offload {
            Offload::Measured => SMALL,
            Offload::Always => 1,
        };
        let shares = SHARES_PER_DEVICE * idle.len().max(1) as u64;
        let share_points = points.div_ceil(shares).max(fewest).next_multiple_of(step.max(1));
        let ([first, _, ..], true) = (&mut idle[..], share_points < points) else {
            return Ok(None);
        };
        // Devices are assumed to be alike: a share must be worth the first one.
        let asked = JobSize::Sum(share_points);
        match asked
            .worth(self.offload, &mut first.device, budget)
            .map_err(Stop::sorted)
        {
            Ok(worth) => Ok(Some(Answer::Done(Sharing {
                idle,
                share_points,
                worth,
            }))),
            Err(Stop::Host(error)) => Err(error),
            Err(Stop::Declined(why)) => Ok(Some(declined(book, why, count))),
            Err(Stop::Device(error)) => {
                let why = first.device.failed(&error);
                book.left(first.number, &why, count);
                Ok(None)
            }
        }
    }

    /// The sums by several devices; `None` if fewer than two are idle, or there is one share only.
    pub(super) fn shared_sums(
        &self,
        job: &Sums<'_>,
        budget: &Budget,
    ) -> spillproof_engine::Result<Option<Answer<Totals>>> {
        let (book, count, points) = (&self.book, job.count(), job.points());
        let step = job.parts.as_ref().map(|parts| parts.step);
        let request = SharingRequest { points, step, count };
        let Sharing {
            mut idle,
            share_points,
            worth,
        } = match self.sharing(book, request, budget)? {
            Some(Answer::Done(sharing)) => sharing,
            Some(Answer::Declined(why)) => return Ok(Some(Answer::Declined(why))),
            None => return Ok(None),
        };
        let Some(parts) = &job.parts else {
            return Ok(None);
        };
        let given_bytes = budget.available_bytes() / idle.len() as u64;
        let weight = sums::weight(job);
        let workers = idle.iter_mut().map(|idle| {
            let (number, device) = (idle.number, &mut *idle.device);
            let on_device = move |share: Share| {
                let room = HostRoom { budget, given_bytes };
                let made = (parts.of)(share.first..share.first + share.points)
                    .map_err(Stop::from)
                    .and_then(|mut part| {
                        let mut worth = worth.times(weight);
                        sums::sum_all(device, &mut part, room, &mut worth)
                    });
                let why = match made.map_err(Stop::sorted) {
                    Err(Stop::Declined(why)) => why,
                    Err(Stop::Device(error)) => device.failed(&error),
                    made => return made,
                };
                book.left(number, &why, count);
                Err(Stop::Declined(why))
            };
            Box::new(on_device) as ShareWorker<'_>
        });
        let DealtSums { sums, points } = match deal(points, share_points, workers.collect()) {
            Ok(dealt) => dealt,
            Err(Stop::Host(error)) => return Err(error),
            Err(Stop::Declined(why)) => return Ok(Some(declined(book, why, count))),
            Err(Stop::Device(error)) => return Ok(Some(declined(book, error.to_string(), count))),
        };
        book.taken(JobKind::Sum, &worth.times(weight));
        book.shared(idle.iter().map(|idle| idle.number).zip(points), count);
        Ok(Some(Answer::Done(sums)))
    }
}
