//! Which jobs are worth a device: the rates by which that is decided.
//!
//! A job of n elements takes the processor `c n` seconds and the device `a + b n`: a to start and to
//! synchronise, b for copies and kernels. `worth.rs` measures one job of each kind at two sizes, and asks.

use spillproof_engine::accelerator::Input;

/// Which jobs go to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Offload {
    /// Jobs that a device does faster than the processor, by rates that are measured at the first job of a
    /// kind.
    #[default]
    Measured,
    /// All jobs that fit a device, however small.
    Always,
}

/// The rates that have been measured on one device.
#[derive(Debug, Default)]
pub(super) struct KnownRates {
    pub sums: Option<JobRates>,
    pub transforms: Option<JobRates>,
    /// Of the last program: its instructions, its inputs, its rates.
    pub quotients: Option<(Vec<[u32; 4]>, Vec<Input>, JobRates)>,
}

/// Seconds of one kind of job, as straight lines: the device takes a fixed time to begin, the processor none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct JobRates {
    pub device_fixed: f64,
    pub device_each: f64,
    pub processor_each: f64,
}

impl JobRates {
    /// The lines through two measured jobs: their work, their seconds on the device, and the seconds of the
    /// large one on the processor.
    pub fn of([small, large]: [f64; 2], device: [f64; 2], processor: f64) -> Self {
        let device_each = ((device[1] - device[0]) / (large - small)).max(0.0);
        Self {
            device_fixed: (device[0] - device_each * small).max(0.0),
            device_each,
            processor_each: processor / large,
        }
    }

    pub fn seconds(&self, work: f64) -> Seconds {
        Seconds {
            device: self.device_fixed + self.device_each * work,
            processor: self.processor_each * work,
        }
    }
}

/// The seconds of a job on a device and on the processor, by measured rates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seconds {
    /// Seconds on a device.
    pub device: f64,
    /// Seconds on the processor.
    pub processor: f64,
}

impl Seconds {
    /// Whether a device is faster.
    pub fn is_less_on_the_device(&self) -> bool {
        self.device < self.processor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_worth_it_from_where_the_lines_cross() {
        // 1 ms to begin, then ten times as fast: equal at 1000 / 0.9.
        let rates = JobRates::of([100.0, 1000.0], [1.01e-3, 1.1e-3], 1e-3);
        assert!((rates.device_fixed - 1e-3).abs() < 1e-9 && (rates.device_each - 1e-7).abs() < 1e-12);
        assert!(rates.seconds(1112.0).is_less_on_the_device());
        assert!(!rates.seconds(1111.0).is_less_on_the_device());
        // A device that seems to become faster with more work is taken as constant.
        assert_eq!(JobRates::of([1.0, 2.0], [2.0, 1.0], 1.0).device_each, 0.0);
    }
}
