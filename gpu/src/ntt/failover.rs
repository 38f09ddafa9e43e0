//! A transform over as many of the devices as work: if one fails, those that are left do it, from its start.
//!
//! A transform over k devices ([`super::NttDevices`]) has a part of every element on each of them, so nothing of it outlives one that fails.
//! The next attempt has the largest power of two of those left, where their memory has room for the larger parts; elements are read anew.
//! Transforms are exact, so who made one does not show in the result; [`Participants`] tells. Each attempt has one device fewer at least.
//!
//! Memory: what each attempt's [`DevicesPlan`] leases, for its time.

use super::devices::{DevicesPlan, Failed, NttDevices};
use super::ends::{Ends, ReadElements, WriteElements};
use super::transform::Transform;
use crate::error::{Error, Result};
use crate::kernels::Kernels;
use crate::vram::Vram;

/// A device that may have a part.
#[derive(Debug)]
pub struct Member<'a> {
    /// Its memory, of which a plan may take what is free.
    pub vram: &'a Vram,
    /// Its kernels.
    pub kernels: &'a Kernels,
    /// Its slots.
    pub ends: Ends<'a>,
}

/// Who made a transform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Participants {
    /// Devices, by their places in the caller's order.
    pub devices: Vec<usize>,
    /// Those that failed on the way, and what they said.
    pub stopped: Vec<(usize, String)>,
}

/// Transforms what is in `from` into `to`, both of the whole length; those with most free memory come first.
///
/// # Errors
/// [`Error::Source`], [`Error::Sink`], [`Error::Invalid`]: the job's own. [`Error::TooSmall`] if it fits no devices that there are; if it
/// does not fit those that are left, what the last one to fail said: both leave it to the processor ([`crate::with_fallback`]). What `to`
/// then holds is void.
pub fn over_devices(
    members: Vec<Member<'_>>,
    transform: Transform,
    from: &mut (dyn ReadElements + Send),
    to: &mut (dyn WriteElements + Send),
) -> Result<Participants> {
    let mut members: Vec<(usize, Member<'_>)> = members.into_iter().enumerate().collect();
    members.sort_by_key(|(_, member)| std::cmp::Reverse(member.vram.ledger().free_bytes()));
    let mut stopped = Vec::new();
    let mut last = Error::Invalid {
        what: "transform over devices",
        details: "there are no devices".into(),
    };
    while let Some(log_members) = members.len().checked_ilog2() {
        let log_devices = log_members.min(transform.log_n() / 2);
        let taken = &mut members[..1 << log_devices];
        let plan = match plan(taken, transform.log_n(), log_devices) {
            Ok(plan) => plan,
            // Nobody is left for whom it is small enough.
            Err(error) if stopped.is_empty() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "the devices that are left have no room for a transform");
                return Err(last);
            }
        };
        let Err(failed) = attempt(taken, plan, transform, from, to) else {
            let devices = taken.iter().map(|(place, _)| *place).collect();
            return Ok(Participants { devices, stopped });
        };
        let Failed { mut devices, error } = failed;
        if devices.is_empty() {
            return Err(*error);
        }
        // From the last on, so that places before stay what they are.
        devices.sort_unstable();
        devices.dedup();
        for number in devices.into_iter().rev() {
            let (place, _) = members.remove(number as usize);
            tracing::warn!(device = place, %error, "a device has no part in a transform any more");
            stopped.push((place, error.to_string()));
        }
        last = *error;
    }
    Err(last)
}

fn plan(members: &[(usize, Member<'_>)], log_n: u32, log_devices: u32) -> Result<DevicesPlan> {
    let vram_bytes = members
        .iter()
        .map(|(_, member)| member.vram.ledger().free_bytes());
    let slot_bytes = members.iter().map(|(_, member)| {
        let ends = &member.ends;
        ends.upload.slot_bytes().min(ends.download.slot_bytes())
    });
    let [vram_bytes, slot_bytes] = [vram_bytes.min(), slot_bytes.min()].map(Option::unwrap_or_default);
    DevicesPlan::new(log_n, log_devices, vram_bytes, slot_bytes)
}

fn attempt(
    members: &mut [(usize, Member<'_>)],
    plan: DevicesPlan,
    transform: Transform,
    from: &mut (dyn ReadElements + Send),
    to: &mut (dyn WriteElements + Send),
) -> Result<(), Failed> {
    tracing::debug!(?plan, "transform over devices");
    let devices: Vec<_> = members
        .iter()
        .map(|(_, member)| (member.vram, member.kernels))
        .collect();
    let mut ntt = NttDevices::made(&devices, plan, transform)?;
    let ends = members.iter_mut().map(|(_, member)| Ends {
        upload: &mut *member.ends.upload,
        download: &mut *member.ends.download,
    });
    ntt.run_all(ends.collect(), from, to)
}
