//! One job by a device: its figures, its bounds, and the table.

use serde::Serialize;
use spillproof_gpu::measure::Rates;
use spillproof_gpu::msm::MsmPlan;
use spillproof_gpu::ntt::NttPlan;
use spillproof_gpu::trace::Busy;

use spillproof_cli::report::table::{bytes, grid};

/// How data passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Bases and scalars through the ring.
    Streamed,
    /// Bases stay on the device, scalars pass.
    Resident,
    /// A transform in device memory, or in parts if it does not fit.
    Whole,
    /// A transform in two steps, by way of the disk.
    Parts,
    /// All sums and transforms of a proof.
    Proof,
}

impl Way {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Streamed => "streamed",
            Self::Resident => "resident bases",
            Self::Whole => "whole",
            Self::Parts => "in parts",
            Self::Proof => "whole proof",
        }
    }
}

/// How a job was cut.
#[derive(Debug, Clone, Copy)]
pub enum Plan {
    /// A sum.
    Sum(MsmPlan),
    /// A transform.
    Transform(NttPlan),
    /// A proof of Groth16: its last sum, which is that over H.
    Proof {
        /// The sum's.
        sum: MsmPlan,
        /// log2 of the rows.
        log_n: u32,
        /// Terms of the sums over the witness.
        signals: u64,
    },
}

/// Transforms of a proof of Groth16: three columns there and back.
const TRANSFORMS_OF_PROOF: f64 = 6.0;
/// What a sum in G2 takes beside one in G1, by its products.
const G2_BY_G1: f64 = 2.8;

impl Plan {
    /// Device memory that it leases; of a proof, that its last sum does.
    pub fn vram_bytes(&self) -> u64 {
        match self {
            Self::Sum(plan) | Self::Proof { sum: plan, .. } => plan.vram_bytes(),
            Self::Transform(plan) => plan.vram_bytes(),
        }
    }

    /// Bits of a digit of a sum.
    pub fn window_bits(&self) -> Option<u32> {
        match self {
            Self::Sum(plan) | Self::Proof { sum: plan, .. } => Some(plan.shape().window_bits),
            Self::Transform(_) => None,
        }
    }

    /// A mixed addition for each point and window, or n / 2 log n products, at the measured rate. Sorting,
    /// the reduction of buckets, twiddles between passes are not in it. Of a proof: A, B1, C, B2, H and the transforms,
    /// with the windows of the sum over H.
    pub fn compute_seconds(&self, rates: &Rates) -> f64 {
        let additions = |additions: f64| additions / rates.mixed_additions_per_second;
        let transform = |log_n: u32| {
            let log_n = f64::from(log_n);
            log_n * log_n.exp2() / 2.0 / rates.fr_products_per_second
        };
        match self {
            Self::Sum(plan) => additions((plan.points() * plan.windows()) as f64),
            Self::Transform(plan) => transform(plan.log_n()),
            Self::Proof { sum, log_n, signals } => {
                let of_witness = *signals as f64 * (3.0 + G2_BY_G1);
                let of_h = f64::from(*log_n).exp2();
                let windows = sum.windows() as f64;
                additions((of_witness + of_h) * windows) + TRANSFORMS_OF_PROOF * transform(*log_n)
            }
        }
    }
}

/// Lower bounds of a run's time, at the rates measured at the start.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Bounds {
    /// [`Plan::compute_seconds`].
    #[serde(rename = "compute_bound_seconds")]
    pub compute_seconds: f64,
    /// Bytes that crossed to the device and back.
    #[serde(rename = "copies_bound_seconds")]
    pub copies_seconds: f64,
    /// Bytes that were read and written.
    #[serde(rename = "disk_bound_seconds")]
    pub disk_seconds: f64,
}

impl Bounds {
    /// The largest.
    pub fn seconds(&self) -> f64 {
        self.compute_seconds
            .max(self.copies_seconds)
            .max(self.disk_seconds)
    }

    /// Which one that is.
    pub fn by(&self) -> &'static str {
        let seconds = self.seconds();
        if seconds == self.disk_seconds {
            "disk"
        } else if seconds == self.copies_seconds {
            "copies"
        } else {
            "compute"
        }
    }
}

/// Figures from the trace of one run.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Traced {
    traced_seconds: f64,
    kernel_seconds: f64,
    copy_seconds: f64,
    overlap_seconds: f64,
    /// The share of the run's time in which both a copy and a kernel ran.
    overlap_share: f64,
    /// The same as a share of the copies' or the kernels' time, whichever is shorter.
    overlap_share_of_shorter: f64,
}

impl Traced {
    /// From the busy times of a run of so many seconds.
    pub fn of(busy: &Busy, seconds: f64) -> Self {
        let overlap_seconds = busy.overlap_seconds();
        let shorter = busy.device_seconds.min(busy.transfer_seconds);
        Self {
            traced_seconds: seconds,
            kernel_seconds: busy.device_seconds,
            copy_seconds: busy.transfer_seconds,
            overlap_seconds,
            overlap_share: overlap_seconds / seconds,
            overlap_share_of_shorter: if shorter > 0.0 {
                overlap_seconds / shorter
            } else {
                0.0
            },
        }
    }
}

/// Figures of one job by a device.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// The median.
    pub seconds: f64,
    /// The processor's, within the same budget of memory, from the same disk.
    pub processor_seconds: Option<f64>,
    /// The device's by the processor's.
    pub ratio: Option<f64>,
    /// Whether all results equal those of `compared_with`.
    pub is_equal: Option<bool>,
    /// The origin of the expected result.
    pub compared_with: Option<&'static str>,
    /// The largest of the bounds.
    pub bound_seconds: f64,
    /// Which one that is.
    pub bound_by: &'static str,
    /// All of them.
    #[serde(flatten)]
    pub bounds: Bounds,
    /// The time, by the bound.
    pub seconds_by_bound: f64,
    /// `None` if a run has more spans than are kept.
    #[serde(flatten)]
    pub traced: Option<Traced>,
    /// Of one run.
    pub hard_syncs: u64,
    /// Of one run.
    pub to_device_bytes: u64,
    /// Of one run.
    pub from_device_bytes: u64,
    /// From disk, in one run.
    pub read_bytes: u64,
    /// To disk, in one run.
    pub written_bytes: u64,
    /// Of the budget.
    pub vram_leased_bytes: u64,
    /// Of a sum.
    pub window_bits: Option<u32>,
}

impl Measured {
    /// Puts the processor's time beside it.
    pub fn beside(&mut self, processor_seconds: Option<f64>) {
        self.processor_seconds = processor_seconds;
        self.ratio = processor_seconds.map(|seconds| self.seconds / seconds);
    }
}

/// One job in one budget of device memory.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// The job.
    pub what: String,
    /// The budget.
    pub vram_budget_bytes: u64,
    /// How data passed.
    pub way: Way,
    /// Figures, if the device did it.
    #[serde(flatten)]
    pub measured: Option<Measured>,
    /// Why the device did not do it.
    pub not_measured: Option<String>,
    /// Whether that is a failure: bases that do not fit are not one.
    #[serde(skip)]
    pub is_failure: bool,
}

impl Line {
    /// Nothing is measured yet.
    pub fn new(what: String, vram_budget_bytes: u64, way: Way) -> Self {
        Self {
            what,
            vram_budget_bytes,
            way,
            measured: None,
            not_measured: None,
            is_failure: false,
        }
    }

    fn name(&self) -> String {
        let budget = bytes(self.vram_budget_bytes);
        format!("{} within {budget}, {}", self.what, self.way.name())
    }

    /// The failure, as a sentence.
    pub fn failure(&self) -> Option<String> {
        if let Some(why) = self.not_measured.as_ref().filter(|_| self.is_failure) {
            return Some(format!("{}: not done by the GPU: {why}", self.name()));
        }
        let measured = self.measured.as_ref()?;
        (measured.is_equal == Some(false)).then(|| {
            let whose = measured.compared_with.unwrap_or("another run");
            format!(
                "{}: the result differs from that of {whose}; do not trust this GPU or its driver, or report a bug in spillproof",
                self.name()
            )
        })
    }
}

/// The lines as a table, and below it the reasons of lines without figures.
pub fn render(lines: &[Line]) -> String {
    let headings = [
        "",
        "VRAM",
        "how",
        "GPU, s",
        "processor, s",
        "ratio",
        "equal",
        "bound, s",
        "bound by",
        "time / bound",
        "overlap",
        "of shorter",
        "hard syncs",
    ];
    let rows: Vec<[String; 13]> = lines.iter().map(row).collect();
    let mut text = grid(&headings, &rows, usize::MAX);
    for line in lines {
        if let Some(why) = &line.not_measured {
            text.push_str(&format!("{}: not done by the GPU: {why}\n", line.name()));
        }
    }
    text
}

fn row(line: &Line) -> [String; 13] {
    let none = || "-".to_owned();
    let mut cells = std::array::from_fn(|_| none());
    cells[0] = line.what.clone();
    cells[1] = bytes(line.vram_budget_bytes);
    cells[2] = line.way.name().to_owned();
    let Some(measured) = &line.measured else {
        return cells;
    };
    let seconds = |value: Option<f64>| value.map_or_else(none, |value| format!("{value:.3}"));
    let share = |of: fn(&Traced) -> f64| {
        let traced = measured.traced.as_ref();
        traced.map_or_else(none, |traced| format!("{:.0} %", 100.0 * of(traced)))
    };
    cells[3] = seconds(Some(measured.seconds));
    cells[4] = seconds(measured.processor_seconds);
    cells[5] = seconds(measured.ratio);
    cells[6] = match measured.is_equal {
        Some(true) => "yes".into(),
        Some(false) => "NO".into(),
        None => none(),
    };
    cells[7] = format!("{:.4}", measured.bound_seconds);
    cells[8] = measured.bound_by.into();
    cells[9] = format!("{:.2}", measured.seconds_by_bound);
    cells[10] = share(|traced| traced.overlap_share);
    cells[11] = share(|traced| traced.overlap_share_of_shorter);
    cells[12] = measured.hard_syncs.to_string();
    cells
}

/// Names and ratios, where there are any.
pub fn bars(lines: &[Line]) -> Vec<(String, f64)> {
    let ratio = |line: &Line| Some((line.name(), line.measured.as_ref()?.ratio?));
    lines.iter().filter_map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_the_largest_of_three() {
        let bounds = |compute_seconds, copies_seconds, disk_seconds| Bounds {
            compute_seconds,
            copies_seconds,
            disk_seconds,
        };
        let cases = [
            (bounds(3.0, 1.0, 2.0), 3.0, "compute"),
            (bounds(1.0, 3.0, 2.0), 3.0, "copies"),
            (bounds(1.0, 2.0, 3.0), 3.0, "disk"),
        ];
        for (bounds, seconds, by) in cases {
            assert_eq!((bounds.seconds(), bounds.by()), (seconds, by));
        }
    }

    #[test]
    fn an_overlap_is_a_share_of_the_run_and_of_the_shorter_side() {
        let busy = Busy {
            device_seconds: 4.0,
            transfer_seconds: 2.0,
            with_transfer_seconds: 4.5,
        };
        let traced = Traced::of(&busy, 6.0);
        assert_eq!((traced.overlap_seconds, traced.overlap_share), (1.5, 0.25));
        assert_eq!(traced.overlap_share_of_shorter, 0.75);
    }

    #[test]
    fn lines_without_figures_say_why() {
        let mut line = Line::new("MSM 2^20".into(), 1 << 30, Way::Streamed);
        line.not_measured = Some("the device was lost".into());
        assert_eq!(line.failure(), None);
        line.is_failure = true;
        let expected = "MSM 2^20 within 1.0 GiB, streamed: not done by the GPU: the device was lost";
        assert_eq!(line.failure().as_deref(), Some(expected));
        let text = render(&[line]);
        assert!(text.lines().last().unwrap() == expected, "{text}");
        assert!(text.lines().nth(2).unwrap().ends_with('-'), "{text}");
    }
}
