//! Which jobs are worth a device: the rates by which that is decided.
//!
//! A job of n elements takes the processor `c n` seconds and the device `a + b n`: a to start and to
//! synchronise, b for copies and kernels. `worth.rs` measures one job of each kind at two sizes, with data in memory,
//! and asks. Where the data is, and how fast it is read there, a job shows itself: before it takes the device, its first
//! slots are filled, and the rest is expected at their pace ([`Worth::with_reads`]).

use std::time::Instant;

use serde::{Deserialize, Serialize};
use spillproof_engine::accelerator::Input;
use spillproof_engine::column::side_by_side;

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
    /// Of constraints with so many coefficients a row.
    pub constraints: Option<(u64, JobRates)>,
    /// Of the last program: its instructions, its inputs, its rates.
    pub quotients: Option<(Vec<[u32; 4]>, Vec<Input>, JobRates)>,
}

/// Seconds of one kind of job, as straight lines: the device takes a fixed time to begin, the processor none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct JobRates {
    /// Seconds in which a device begins.
    pub device_fixed: f64,
    /// Seconds of a device for a term of a sum, or for an element and layer of a transform.
    pub device_each: f64,
    /// Seconds of the processor for the same.
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

    pub(super) fn seconds(&self, work: f64) -> Seconds {
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

    /// So many times of each.
    #[must_use]
    pub fn times(self, device: f64, processor: f64) -> Self {
        Self {
            device: self.device * device,
            processor: self.processor * processor,
        }
    }
}

/// What `work` makes, and its seconds.
pub(super) fn seconds<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_secs_f64())
}

/// What speaks for a job on a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Worth {
    /// By measured rates; none if all jobs are wanted.
    seconds: Option<Seconds>,
    /// Seconds in which the job's data is read and written, as far as they are known.
    reading: f64,
}

/// How the data of a job is read and written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reads {
    /// Seconds that filling the first slots took.
    pub seconds: f64,
    /// Bytes that were read meanwhile.
    pub sample_bytes: u64,
    /// Bytes that the whole job reads.
    pub total_bytes: u64,
    /// Seconds in which the disk takes what it writes.
    pub writing: f64,
    /// Seconds in which the disk moves what the processor's own way moves.
    pub by_the_processor: f64,
    /// Whether the device works meanwhile.
    pub is_beside: bool,
}

impl Worth {
    /// Of a job that is wanted whatever it takes.
    pub fn always() -> Self {
        Self {
            seconds: None,
            reading: 0.0,
        }
    }

    /// Of a job with these seconds.
    pub fn of(seconds: Seconds) -> Self {
        Self {
            seconds: Some(seconds),
            reading: 0.0,
        }
    }

    /// Whether it is asked: not if all jobs are wanted.
    pub fn is_asked(&self) -> bool {
        self.seconds.is_some()
    }

    /// The same for a job with this weight.
    #[must_use]
    pub fn times(self, weight: f64) -> Self {
        Self {
            seconds: self.seconds.map(|one| one.times(weight, weight)),
            ..self
        }
    }

    /// Whether the device is still faster with the job's reads, which count from now on.
    pub fn with_reads(&mut self, reads: Reads) -> bool {
        let Some(seconds) = &mut self.seconds else {
            return true;
        };
        let each = reads.seconds / reads.sample_bytes.max(1) as f64;
        self.reading = each * reads.total_bytes as f64 + reads.writing;
        seconds.device = match reads.is_beside {
            true => side_by_side(seconds.device, self.reading),
            false => seconds.device + self.reading,
        };
        seconds.processor = side_by_side(seconds.processor, reads.by_the_processor);
        tracing::debug!(?seconds, ?reads, "a job with its reads");
        seconds.is_less_on_the_device()
    }

    /// Why the device takes the job, if that was asked.
    pub fn why(&self) -> Option<String> {
        let Seconds { device, processor } = self.seconds?;
        let reading = self.reading;
        Some(format!(
            "{device:.3} s, with {reading:.3} of reading and writing, for {processor:.3} by the processor"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quotient of `wide`, 100 columns of 2^18 elements, on the machine of `docs/gpu.md`: 9.15 seconds with the reads
    /// of that time, 4.33 by the processor, whose disk reads 2.2 GB/s and writes 3.3.
    #[test]
    fn reads_decide_whether_a_quotient_is_worth_it() {
        let total_bytes = 100u64 << (18 + 5);
        let (disk, writing) = (total_bytes as f64 / 2.2e9, (1u64 << 23) as f64 / 3.3e9);
        let is_worth_it = |seconds_to_read: f64| {
            let mut worth = Worth::of(Seconds {
                device: 0.4,
                processor: 4.1,
            });
            let is_taken = worth.with_reads(Reads {
                seconds: seconds_to_read / 16.0,
                sample_bytes: total_bytes / 16,
                total_bytes,
                writing,
                by_the_processor: disk + writing,
                is_beside: true,
            });
            (is_taken, worth.why().unwrap())
        };
        let (is_taken, why) = is_worth_it(8.9);
        assert!(!is_taken);
        assert_eq!(
            why,
            "9.103 s, with 8.903 of reading and writing, for 4.292 by the processor"
        );
        assert!(is_worth_it(disk).0 && is_worth_it(4.0).0 && !is_worth_it(4.2).0);
        assert_eq!(Worth::always().why(), None);
    }

    /// Transforms of 2^24 elements there, which the processor makes in two passes: 3.16 seconds in parts, with the reads
    /// of that time, and 0.71 as a whole, for 1.47.
    #[test]
    fn reads_decide_whether_a_transform_is_worth_it() {
        let bytes = (32u64 << 24) as f64;
        let (read, written) = (bytes / 2.2e9, bytes / 3.3e9);
        let is_worth_it = |steps: f64, device: f64, seconds_to_read: f64| {
            Worth::of(Seconds {
                device: steps * device,
                processor: 0.6,
            })
            .with_reads(Reads {
                seconds: seconds_to_read,
                sample_bytes: bytes as u64,
                total_bytes: (steps * bytes) as u64,
                writing: steps * written,
                by_the_processor: 2.0 * (read + written),
                is_beside: false,
            })
        };
        assert!(is_worth_it(1.0, 0.1, read));
        assert!(!is_worth_it(2.0, 0.1, 1.3));
    }

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
