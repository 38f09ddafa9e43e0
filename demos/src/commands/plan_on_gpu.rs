//! `--gpu` of `spillproof plan` and `groth16 plan`: which jobs of keys and a proof GPUs would do, how, and in what time.

use halo2_axiom::spillproof::Numerator as PlannedNumerator;
use serde::Serialize;
use spillproof_engine::Session;
use spillproof_engine::plan::{Job, Offer, Phase, Plan};
use spillproof_gpu::accelerator::{CosetProgram, Cut, Executor, GpuAccelerator, JobPlan};
use spillproof_gpu::ntt::NttMethod;
use spillproof_gpu::program::ProgramMethod;

use super::on_gpu::{LinkBetween, OnGpu, Used};
use crate::report::table::{bytes, grid};
use crate::run::Result;

const HEADINGS: [&str; 8] = [
    "jobs",
    "times",
    "by",
    "how",
    "device memory",
    "pinned",
    "GPU, s",
    "processor, s",
];

/// The jobs of GPUs; `used` as after a proof.
#[derive(Debug, Serialize)]
pub struct OnGpus {
    #[serde(flatten)]
    used: Used,
    jobs: Vec<Line>,
}

/// Jobs of one kind and size in one phase.
#[derive(Debug, Serialize)]
struct Line {
    phase: Phase,
    #[serde(flatten)]
    offer: Offer,
    #[serde(flatten)]
    by: Assigned,
    /// Of all jobs of the line, by measured rates.
    gpu_seconds: Option<f64>,
    processor_seconds: Option<f64>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
enum Assigned {
    Gpu {
        /// In the driver's order.
        devices: Vec<usize>,
        #[serde(flatten)]
        how: How,
        vram_bytes: u64,
        pinned_bytes: u64,
    },
    Processor {
        why: String,
    },
}

#[derive(Debug, Serialize)]
#[serde(tag = "way", rename_all = "snake_case")]
enum How {
    /// Points pass `passes` times: once, if they stay for the other sums.
    Streamed {
        columns_per_pass: u64,
        passes: u64,
        share_points: u64,
        chunk_points: u64,
        window_bits: u32,
        /// Sums in G2 that do not fit beside those in G1.
        sums_left: u64,
    },
    Panel {
        chunk_elements: u64,
    },
    Whole {
        chunk_elements: u64,
    },
    TwoSteps {
        log_matrix_rows: u32,
        chunk_elements: u64,
    },
    Compiled {
        tile_rows: u64,
        chunk_rows: u64,
        kernels: u32,
    },
    Interpreted {
        tile_rows: u64,
        chunk_rows: u64,
        why_not_compiled: String,
    },
}

/// The jobs of a plan that the GPUs of the command line would do; `None` if none was asked for. A plan with cosets has a
/// numerator.
///
/// # Errors
/// The engine's.
pub fn planned(
    gpu: &OnGpu,
    session: &Session,
    numerator: impl FnOnce() -> Option<PlannedNumerator>,
    plan: &Plan,
) -> Result<Option<OnGpus>> {
    match gpu {
        OnGpu::Off => Ok(None),
        OnGpu::None(reason) => Ok(Some(OnGpus {
            used: Used::none(reason),
            jobs: Vec::new(),
        })),
        OnGpu::Accelerator { accelerator, links } => {
            on_gpus((accelerator, links), session, numerator().as_ref(), plan).map(Some)
        }
    }
}

fn on_gpus(
    (gpus, links): (&GpuAccelerator, &[LinkBetween]),
    session: &Session,
    numerator: Option<&PlannedNumerator>,
    plan: &Plan,
) -> Result<OnGpus> {
    let (mut phases, mut offers) = (Vec::new(), Vec::new());
    for phase in [Phase::VerifyingKey, Phase::ProvingKey, Phase::Proof] {
        offers.extend(plan.of(Some(phase)).offers);
        phases.resize(offers.len(), phase);
    }
    let numerator = numerator.map(|numerator| CosetProgram {
        program: numerator.program(),
        inputs: numerator.inputs(),
    });
    let planned = session.run(|| gpus.plan(&offers, numerator, session.budget()))?;
    let lines = phases.into_iter().zip(planned.jobs);
    Ok(OnGpus {
        used: Used::of(&planned.report, links),
        jobs: lines.map(|(phase, job)| Line::of(gpus, phase, job)).collect(),
    })
}

impl Line {
    fn of(gpus: &GpuAccelerator, phase: Phase, job: JobPlan) -> Self {
        let JobPlan { offer, by, seconds } = job;
        let ordinal = |number: usize| gpus.gpus().get(number).map(|gpu| gpu.description().ordinal);
        let of_all = |seconds: f64| seconds * offer.count as f64;
        Self {
            phase,
            offer,
            by: match by {
                Executor::Processor { why } => Assigned::Processor { why },
                Executor::Devices {
                    devices,
                    cut,
                    vram_bytes,
                    pinned_bytes,
                } => Assigned::Gpu {
                    devices: devices.into_iter().filter_map(ordinal).collect(),
                    how: How::from(cut),
                    vram_bytes,
                    pinned_bytes,
                },
            },
            gpu_seconds: seconds.map(|seconds| of_all(seconds.device)),
            processor_seconds: seconds.map(|seconds| of_all(seconds.processor)),
        }
    }

    fn cells(&self) -> [String; 8] {
        let job = match self.offer.job {
            Job::Sums {
                points, step: None, ..
            } => format!("an opening's sum of {points} terms"),
            Job::Sums {
                points, columns: 1, ..
            } => format!("a sum of {points} terms"),
            Job::Sums { points, columns, .. } => format!("{columns} sums of {points} terms"),
            Job::Transform { log_n } => format!("a transform of 2^{log_n}"),
            Job::Constraints { log_n, .. } => format!("the quotient of constraints of 2^{log_n}"),
            Job::Panel {
                log_rows,
                log_columns,
                ..
            } => format!("2^{log_columns} columns of 2^{log_rows} of a transform"),
            Job::Coset {
                log_rows,
                log_columns,
                columns,
                ..
            } => format!("a coset of 2^{}, {columns} columns", log_rows + log_columns),
        };
        let none = || "-".to_owned();
        let (by, how, vram, pinned) = match &self.by {
            Assigned::Processor { .. } => ("processor".to_owned(), none(), none(), none()),
            Assigned::Gpu {
                devices,
                how,
                vram_bytes,
                pinned_bytes,
            } => {
                let devices: Vec<String> = devices.iter().map(ToString::to_string).collect();
                let by = format!("GPU {}", devices.join(","));
                (by, how.said(), bytes(*vram_bytes), bytes(*pinned_bytes))
            }
        };
        let seconds = |seconds: Option<f64>| seconds.map_or_else(none, |seconds| format!("{seconds:.3}"));
        [
            format!("  {job}"),
            self.offer.count.to_string(),
            by,
            how,
            vram,
            pinned,
            seconds(self.gpu_seconds),
            seconds(self.processor_seconds),
        ]
    }
}

impl From<Cut> for How {
    fn from(cut: Cut) -> Self {
        match cut {
            Cut::Sums {
                columns,
                passes,
                share_points,
                chunk_points,
                window_bits,
                left,
                ..
            } => Self::Streamed {
                columns_per_pass: columns,
                passes,
                share_points,
                chunk_points,
                window_bits,
                sums_left: left,
            },
            Cut::Panel { chunk_elements } => Self::Panel { chunk_elements },
            Cut::Transform {
                method: NttMethod::InDeviceMemory,
                chunk_elements,
            } => Self::Whole { chunk_elements },
            Cut::Transform {
                method: NttMethod::TwoSteps { log_rows },
                chunk_elements,
            } => Self::TwoSteps {
                log_matrix_rows: log_rows,
                chunk_elements,
            },
            Cut::Constraints { chunk_coefficients } => Self::Whole {
                chunk_elements: chunk_coefficients,
            },
            Cut::Coset {
                tile_rows,
                chunk_rows,
                method: ProgramMethod::Compiled { kernels, .. },
            } => Self::Compiled {
                tile_rows,
                chunk_rows,
                kernels,
            },
            Cut::Coset {
                tile_rows,
                chunk_rows,
                method: ProgramMethod::Interpreted { why },
            } => Self::Interpreted {
                tile_rows,
                chunk_rows,
                why_not_compiled: why,
            },
        }
    }
}

impl How {
    fn said(&self) -> String {
        match self {
            Self::Streamed {
                columns_per_pass,
                passes,
                chunk_points,
                sums_left,
                ..
            } => {
                let often = match passes {
                    1 => "once".to_owned(),
                    passes => format!("{passes} times"),
                };
                let left = match sums_left {
                    0 => String::new(),
                    left => format!("; {left} in G2 by the processor"),
                };
                format!("{columns_per_pass} at a time, points pass {often}; chunks of {chunk_points}{left}")
            }
            Self::Panel { chunk_elements } => format!("chunks of {chunk_elements}"),
            Self::Whole { chunk_elements } => format!("whole; chunks of {chunk_elements}"),
            Self::TwoSteps { chunk_elements, .. } => format!("in two steps; chunks of {chunk_elements}"),
            Self::Compiled { tile_rows, .. } => format!("compiled; tiles of {tile_rows} rows"),
            Self::Interpreted { tile_rows, .. } => format!("interpreted; tiles of {tile_rows} rows"),
        }
    }
}

impl OnGpus {
    /// As text: a table, if there is a GPU, and the sentence that `prove` prints.
    pub fn said(&self) -> String {
        if self.jobs.is_empty() {
            return self.used.said().to_owned();
        }
        let mut rows: Vec<[String; 8]> = Vec::new();
        let mut phase = None;
        for line in &self.jobs {
            if phase != Some(line.phase) {
                phase = Some(line.phase);
                let mut row: [String; 8] = Default::default();
                row[0] = line.phase.name().to_owned();
                rows.push(row);
            }
            rows.push(line.cells());
        }
        let table = grid(&HEADINGS, &rows, rows.len());
        let mut text = format!("\n{table}{}", self.used.said());
        let timed = self
            .jobs
            .iter()
            .filter(|line| matches!(line.by, Assigned::Gpu { .. }));
        let seconds = timed.filter_map(|line| Some((line.gpu_seconds?, line.processor_seconds?)));
        let (gpu, processor) = seconds.fold((0.0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        if processor > 0.0 {
            text.push_str(&format!(
                "\nby rates measured now, these jobs take {gpu:.2} s on the GPUs and {processor:.2} s on the processor"
            ));
        }
        let why = self.jobs.iter().find_map(|line| match &line.by {
            Assigned::Gpu {
                how: How::Interpreted { why_not_compiled, .. },
                ..
            } => Some(why_not_compiled),
            _ => None,
        });
        if let Some(why) = why {
            text.push_str(&format!("\nthe quotient's program is interpreted: {why}"));
        }
        text
    }
}
