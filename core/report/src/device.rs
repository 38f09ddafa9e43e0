//! What crosses to accelerators' devices and back, and how long these are busy: sums that a program's own source says,
//! when a phase or a step begins and ends.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

/// Bytes that crossed to devices and back, and the work that they were given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Bytes that went to devices from page-locked memory of the host.
    pub to_device_bytes: u64,
    /// Bytes that went to devices from other memory: slower, and the host waits.
    pub to_device_pageable_bytes: u64,
    /// Bytes that came back to page-locked memory.
    pub from_device_bytes: u64,
    /// Bytes that came back to other memory.
    pub from_device_pageable_bytes: u64,
    /// Waits of the host for all that a stream or a device had to do.
    pub hard_syncs: u64,
    /// Launches of kernels.
    pub kernels: u64,
}

impl Counts {
    fn with(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            to_device_bytes: of(self.to_device_bytes, other.to_device_bytes),
            to_device_pageable_bytes: of(self.to_device_pageable_bytes, other.to_device_pageable_bytes),
            from_device_bytes: of(self.from_device_bytes, other.from_device_bytes),
            from_device_pageable_bytes: of(self.from_device_pageable_bytes, other.from_device_pageable_bytes),
            hard_syncs: of(self.hard_syncs, other.hard_syncs),
            kernels: of(self.kernels, other.kernels),
        }
    }

    /// Of both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, |a, b| a + b)
    }
}

/// Sums of all devices since they were opened.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct OnDevices {
    /// Devices.
    pub devices: u32,
    /// What they were asked for.
    pub counts: Counts,
    /// Seconds in which a device ran a kernel or a copy, of all devices together.
    pub busy_seconds: f64,
}

/// The same of a phase or a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Crossed {
    /// What devices were asked for.
    #[serde(flatten)]
    pub counts: Counts,
    /// Seconds in which a device ran a kernel or a copy, of all devices together.
    pub busy_seconds: f64,
    /// The other seconds of all devices.
    pub idle_seconds: f64,
}

/// Says the sums so far.
pub type Source = Arc<dyn Fn() -> OnDevices + Send + Sync>;

static SOURCE: Mutex<Option<Source>> = Mutex::new(None);

/// From now on, phases and steps have what this source says; `None`: no more.
pub fn watch(source: Option<Source>) {
    *SOURCE.lock().unwrap_or_else(PoisonError::into_inner) = source;
}

/// The sums so far, if there is a source.
pub(crate) fn so_far() -> Option<OnDevices> {
    let source = SOURCE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    source.map(|source| source())
}

impl Crossed {
    /// Between two moments, so many seconds apart.
    pub(crate) fn between(before: Option<OnDevices>, after: Option<OnDevices>, seconds: f64) -> Option<Self> {
        let (before, after) = (before.unwrap_or_default(), after?);
        let busy_seconds = (after.busy_seconds - before.busy_seconds).max(0.0);
        Some(Self {
            counts: after.counts.with(before.counts, u64::saturating_sub),
            busy_seconds,
            idle_seconds: (seconds * f64::from(after.devices) - busy_seconds).max(0.0),
        })
    }

    /// Of two parts of a run.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            counts: self.counts.plus(other.counts),
            busy_seconds: self.busy_seconds + other.busy_seconds,
            idle_seconds: self.idle_seconds + other.idle_seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_the_difference_of_two_moments() {
        let sums = |to_device_bytes, busy_seconds| OnDevices {
            devices: 2,
            counts: Counts {
                to_device_bytes,
                ..Counts::default()
            },
            busy_seconds,
        };
        let crossed = Crossed::between(Some(sums(10, 1.0)), Some(sums(30, 2.5)), 3.0).unwrap();
        assert_eq!(
            (
                crossed.counts.to_device_bytes,
                crossed.busy_seconds,
                crossed.idle_seconds
            ),
            (20, 1.5, 4.5)
        );
        assert_eq!(crossed.plus(crossed).counts.to_device_bytes, 40);
        // Devices that were opened meanwhile.
        assert_eq!(
            Crossed::between(None, Some(sums(5, 0.5)), 1.0)
                .unwrap()
                .counts
                .to_device_bytes,
            5
        );
        assert_eq!(Crossed::between(Some(sums(5, 0.5)), None, 1.0), None);
    }
}
