//! A transform over several devices that begins again without a device that fails.
//!
//! In a transform over k devices ([`super::NttDevices`]) each device has a part of every element, so a
//! failure of one makes it void. The next attempt uses the largest power of two of the remaining devices, if
//! their memory has room for the larger parts, and reads the elements again. Transforms are exact, so the
//! result does not depend on the devices; [`Participants`] names them. Each attempt has at least one device
//! less.
//!
//! Memory: the [`DevicesPlan`] of each attempt, while it runs.

use super::devices::{DevicesPlan, Failed, NttDevices};
use super::ends::{Ends, ReadElements, WriteElements};
use super::transform::Transform;
use crate::error::{Error, Result, Values};
use crate::kernels::Kernels;
use crate::vram::Vram;

/// A device that can take part.
#[derive(Debug)]
pub struct Member<'a> {
    /// Its budget of device memory, whose free bytes the plan may use.
    pub vram: &'a Vram,
    /// Its kernels.
    pub kernels: &'a Kernels,
    /// Its slots.
    pub ends: Ends<'a>,
}

/// The devices of a transform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Participants {
    /// Devices that made it, by their places in the caller's order.
    pub devices: Vec<usize>,
    /// Devices that failed, with their errors.
    pub stopped: Vec<(usize, String)>,
}

/// Transforms the elements of `from` into `to`, both of the whole length. Devices with the most free memory
/// come first.
///
/// # Errors
/// [`Error::Source`], [`Error::Sink`], [`Error::Invalid`]: errors of the job. [`Error::TooSmall`] if it does
/// not fit the devices; if it does not fit the remaining devices, the error of the last one that failed. Both
/// leave the job to the processor. After an error the content of `to` is void.
pub fn over_devices(
    members: Vec<Member<'_>>,
    transform: Transform,
    from: &mut (dyn ReadElements + Send),
    to: &mut (dyn WriteElements + Send),
) -> Result<Participants> {
    let mut members: Vec<(usize, Member<'_>)> = members.into_iter().enumerate().collect();
    members.sort_by_key(|(_, member)| std::cmp::Reverse(member.vram.ledger().free_bytes()));
    let mut stopped = Vec::new();
    let mut last = Error::from(Values::Empty {
        what: "devices of a transform",
    });
    while let Some(log_members) = members.len().checked_ilog2() {
        let log_devices = log_members.min(transform.log_n() / 2);
        let taken = &mut members[..1 << log_devices];
        let plan = match plan(taken, transform.log_n(), log_devices) {
            Ok(plan) => plan,
            Err(error) if stopped.is_empty() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "the remaining devices have no room for the transform");
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
        // From the last to the first, so that earlier places stay valid.
        devices.sort_unstable();
        devices.dedup();
        for number in devices.into_iter().rev() {
            let (place, _) = members.remove(number as usize);
            tracing::warn!(device = place, %error, "a device failed; the transform begins again without it");
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
