//! `spillproof-bench --gpu`: the rates of a device, and the time of sums and transforms from disk with it,
//! beside the processor's from the same disk in the same run.
//!
//! | file | content |
//! |---|---|
//! | [`goldilocks`] | transforms over Goldilocks, from memory to memory |
//! | [`jobs`] | one sum or transform over columns on disk, or one proof of Groth16 |
//! | [`line`] | one job by a device: figures, bounds, the table |
//!
//! All jobs run in one session: columns are made once for a size, and its accelerator is switched between the
//! device and the processor. A device runs a job once to warm up (kernels are loaded, memory is leased), then
//! `--runs` times, then once more with every copy and kernel timed, which does not count. Results are
//! compared each time. A job that the device left to the processor does not measure the device: the reason is
//! printed, and the run fails.

mod goldilocks;
mod jobs;
mod line;

use std::fs;
use std::sync::Arc;

use serde::Serialize;
use spillproof_engine::Session;
use spillproof_engine::accelerator::Accelerator;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::plan::Rates as HostRates;
use spillproof_engine::storage::IoStats;
use spillproof_gpu::accelerator::{GpuAccelerator, Offload, Staging, kernels};
use spillproof_gpu::measure::{AcceleratorSwitch, Facts, Outcome, Rates};
use spillproof_gpu::msm::{Bases, BasesLocation};
use spillproof_gpu::ntt::NttMethod;
use spillproof_gpu::trace::{Busy, Detail, SpanKind};
use spillproof_gpu::{Choice, Gpu, Vram};

use spillproof_cli::args::Global;
use spillproof_cli::failure::Failure;
use spillproof_cli::report::progress::Progress;
use spillproof_cli::report::svg::Picture;
use spillproof_cli::report::table::{bytes, grid};
use spillproof_cli::run::{Result, Run};

use crate::args::Bench;
use crate::kernels::{disk_seconds, timed};
use crate::{chart, median};
use jobs::{Job, Made, Of};
use line::{Bounds, Line, Measured, Plan, Traced, Way};

const MEMORY: ByteSize = ByteSize::Bytes(256 << 20);
const LOG_SIZES: [u32; 4] = [20, 22, 24, 26];
const LOG_SIZES_OF_GOLDILOCKS: [u32; 4] = [18, 20, 22, 24];
const LOG_SIZES_OF_PROOFS: [u32; 2] = [18, 20];
/// Spans of one traced run. A sum of 2^26 points in 1 GiB has some ten thousand.
const SPANS_MAX: usize = 1 << 18;

#[derive(Serialize)]
struct Results {
    device: Facts,
    /// The system's name of the processor.
    processor: Option<String>,
    runs: usize,
    memory_budget_bytes: u64,
    threads: usize,
    /// Budgets that were asked for and exceed the device's free memory.
    vram_left_out_bytes: Vec<u64>,
    rates: Rates,
    disk: DiskRates,
    jobs: Vec<Line>,
    goldilocks: Vec<goldilocks::Line>,
    failures: Vec<String>,
}

#[derive(Serialize)]
struct DiskRates {
    read_bytes_per_second: f64,
    written_bytes_per_second: f64,
}

/// The device as an accelerator, and how it cuts a job.
struct Maker {
    accelerator: Arc<dyn Accelerator>,
    plan: Box<dyn Fn() -> Option<Plan>>,
}

/// Said of a device that is lost.
const LOST: &str = "the GPU does not answer any more";

/// The parts that measuring a job needs.
struct Bencher<'a> {
    session: &'a Arc<Session>,
    switch: &'a AcceleratorSwitch,
    gpu: &'a Gpu,
    rates: Rates,
    disk: HostRates,
    args: &'a Bench,
}

/// Bytes that moved so far, or in one run.
#[derive(Debug, Clone, Copy, Default)]
struct Moved {
    to_device_bytes: u64,
    from_device_bytes: u64,
    hard_syncs: u64,
    disk: IoStats,
}

impl Moved {
    fn so_far(gpu: &Gpu, session: &Session) -> Self {
        let bytes = |kinds: [SpanKind; 2]| kinds.map(|kind| gpu.trace().total(kind).bytes).iter().sum();
        Self {
            to_device_bytes: bytes([SpanKind::ToDevicePinned, SpanKind::ToDevicePageable]),
            from_device_bytes: bytes([SpanKind::FromDevicePinned, SpanKind::FromDevicePageable]),
            hard_syncs: gpu.trace().hard_syncs(),
            disk: session.storage().stats(),
        }
    }
}

/// Runs the measurement.
///
/// # Errors
/// [`Failure::NoGpu`]; the engine's; after all measurements, [`Failure::Unmeasured`] if a result differs, or
/// the device declined or failed a job.
pub fn run(global: &Global, args: &Bench, choice: &Choice) -> Result<()> {
    let gpu = open(choice)?;
    let facts = Facts::of(&gpu)?;
    let mut args = args.clone();
    if [&args.msm, &args.ntt, &args.groth16, &args.goldilocks]
        .iter()
        .all(|sizes| sizes.is_empty())
    {
        args.msm = LOG_SIZES.to_vec();
        args.ntt = LOG_SIZES.to_vec();
        args.groth16 = LOG_SIZES_OF_PROOFS.to_vec();
        args.goldilocks = LOG_SIZES_OF_GOLDILOCKS.to_vec();
    }
    let mut run = Run::start(global);
    let processor = processor_name();
    run.say(format_args!("GPU {facts}"));
    run.say(format_args!(
        "beside {}",
        processor.as_deref().unwrap_or("a processor of unknown name")
    ));
    let (budgets, left_out) = budgets(&gpu, &args.vram)?;
    for budget_bytes in &left_out {
        run.say(format_args!(
            "left out: a budget of {}, which exceeds the device's free memory",
            bytes(*budget_bytes)
        ));
    }
    let switch = Arc::new(AcceleratorSwitch::default());
    let session = run.session_on(MEMORY, Some(Arc::clone(&switch) as Arc<dyn Accelerator>))?;
    let (rates, disk) = {
        let _progress = Progress::start("rates of the device and of the disk");
        let rates = Rates::measure(&gpu, &kernels(&gpu)?, session.budget())?;
        (rates, session.run(|| HostRates::measure(session.workspace()))?)
    };
    run.say(format_args!("\n{}", rates_table(&rates, &disk).trim_end()));
    let bencher = Bencher {
        session: &session,
        switch: &switch,
        gpu: &gpu,
        rates,
        disk,
        args: &args,
    };
    let (jobs, mut failures) = bencher.all(&budgets)?;
    let mut of_goldilocks = Vec::new();
    if failures.iter().all(|failure| !failure.contains(LOST)) {
        for &log_n in &args.goldilocks {
            let _progress = Progress::start(&format!("Goldilocks 2^{log_n}"));
            match goldilocks::measure(&gpu, &rates, (log_n, args.runs)) {
                Ok(line) => {
                    failures.extend(line.failure());
                    of_goldilocks.push(line);
                }
                Err(error) => failures.push(format!("Goldilocks 2^{log_n}: not done by the GPU: {error}")),
            }
        }
    }
    run.say(format_args!(
        "\nmedians of {} runs within {} of memory on {} threads, on {}: {}\n\n{}",
        args.runs,
        bytes(session.budget().limit_bytes()),
        session.threads(),
        facts.ordinal,
        facts.name,
        line::render(&jobs).trim_end()
    ));
    if !of_goldilocks.is_empty() {
        run.say(format_args!(
            "\n{}",
            goldilocks::render(&of_goldilocks).trim_end()
        ));
    }
    if let Some(path) = &args.svg {
        let picture = chart::ratios("time, by that of the processor", &line::bars(&jobs));
        fs::write(path, Picture::stack(vec![picture])).map_err(Failure::file(path))?;
    }
    let results = Results {
        device: facts,
        processor,
        runs: args.runs,
        memory_budget_bytes: session.budget().limit_bytes(),
        threads: session.threads(),
        vram_left_out_bytes: left_out,
        rates,
        disk: DiskRates {
            read_bytes_per_second: disk.bytes_read,
            written_bytes_per_second: disk.bytes_written,
        },
        jobs,
        goldilocks: of_goldilocks,
        failures,
    };
    run.finish("bench", &results)?;
    if results.failures.is_empty() {
        return Ok(());
    }
    Err(Failure::Unmeasured(results.failures.join("\n")))
}

/// `model name : ..` of the first processor.
fn processor_name() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The rates that bounds are computed from.
fn rates_table(rates: &Rates, disk: &HostRates) -> String {
    let giga = |value: f64, unit: &str| format!("{:.3} G{unit}/s", value / 1e9);
    let cycle = rates.wide_products_per_multiprocessor_and_cycle;
    let of_cycle = cycle.map_or_else(String::new, |rate| {
        format!(", {rate:.1} a cycle and multiprocessor")
    });
    let wide = giga(rates.wide_products_per_second, "");
    let rows = [
        ("products in Fq", giga(rates.fq_products_per_second, "")),
        ("products in Fr", giga(rates.fr_products_per_second, "")),
        ("IMAD.WIDE of these, 120 each", wide + &of_cycle),
        ("mixed additions", giga(rates.mixed_additions_per_second, "")),
        ("pinned to device", giga(rates.to_device_bytes_per_second, "B")),
        ("device to pinned", giga(rates.from_device_bytes_per_second, "B")),
        (
            "both at once, each way",
            giga(rates.both_ways_bytes_per_second, "B"),
        ),
        ("read from disk", giga(disk.bytes_read, "B")),
        ("written to disk", giga(disk.bytes_written, "B")),
    ];
    let rows = rows.map(|(what, rate)| [what.to_owned(), rate]);
    grid(&["measured alone", "rate"], &rows, usize::MAX)
}

fn open(choice: &Choice) -> Result<Gpu> {
    if !matches!(choice, Choice::Auto | Choice::Device(_)) {
        return Err(Failure::Usage(format!(
            "--gpu {choice} does not name one GPU: use auto or a number, or leave --gpu out"
        )));
    }
    let detail = Detail::Timeline { spans_max: SPANS_MAX };
    match choice.open(detail)? {
        Ok(gpu) => {
            gpu.trace().limit_spans(0);
            Ok(gpu)
        }
        Err(reason) => Err(Failure::NoGpu(reason)),
    }
}

/// Budgets that fit the device's free memory, smallest first, and the others.
fn budgets(gpu: &Gpu, asked: &[ByteSize]) -> Result<(Vec<u64>, Vec<u64>)> {
    let mut all = Vec::new();
    for size in asked {
        all.push(match size {
            ByteSize::Bytes(bytes) => *bytes,
            ByteSize::Auto => Vram::auto(gpu)?.budget().limit_bytes(),
        });
    }
    all.sort_unstable();
    all.dedup();
    let (free_bytes, _) = gpu.memory_bytes()?;
    let (budgets, left_out): (Vec<u64>, Vec<u64>) = all.into_iter().partition(|&bytes| bytes <= free_bytes);
    if budgets.is_empty() {
        return Err(Failure::Usage(format!(
            "no budget of --vram fits the device's free memory of {}",
            bytes(free_bytes)
        )));
    }
    Ok((budgets, left_out))
}

impl Bencher<'_> {
    /// Every size in every budget in every way, and the failures.
    fn all(&self, budgets: &[u64]) -> Result<(Vec<Line>, Vec<String>)> {
        let (mut lines, mut failures) = (Vec::new(), Vec::new());
        let sums = self.args.msm.iter().map(|&log_n| (Of::Sum, log_n));
        let transforms = self.args.ntt.iter().map(|&log_n| (Of::Transform, log_n));
        let proofs = self.args.groth16.iter().map(|&log_n| (Of::Proof, log_n));
        for (of, log_n) in sums.chain(transforms).chain(proofs) {
            let job = of.job(self.session, log_n)?;
            let mut expected = None;
            let processor_seconds = match self.args.no_cpu {
                true => None,
                false => Some(self.processor(&job, &mut expected)?),
            };
            for &vram_bytes in budgets {
                for way in of.ways() {
                    let mut line = self.line(&job, (vram_bytes, *way), &mut expected)?;
                    if let Some(measured) = &mut line.measured {
                        measured.beside(processor_seconds);
                    }
                    failures.extend(line.failure());
                    let failed = line.not_measured.is_some() && line.is_failure;
                    lines.push(line);
                    if let Some(lost) = failed.then(|| self.gpu.synchronize().err()).flatten() {
                        failures.push(format!("{LOST}, the rest was not measured: {lost}"));
                        return Ok((lines, failures));
                    }
                }
            }
        }
        Ok((lines, failures))
    }

    /// Seconds of the processor, and its result.
    fn processor(&self, job: &Job, expected: &mut Option<(Made, &'static str)>) -> Result<f64> {
        let _progress = Progress::start(&format!("{}, the processor", job.what()));
        self.switch.set(None);
        let mut times = Vec::new();
        for _ in 0..self.args.runs {
            let (made, seconds) = timed(|| job.run(self.session));
            times.push(seconds);
            *expected = Some((made?, "the processor"));
        }
        Ok(median(times))
    }

    fn line(
        &self,
        job: &Job,
        (vram_bytes, way): (u64, Way),
        expected: &mut Option<(Made, &'static str)>,
    ) -> Result<Line> {
        let name = format!("{}, {}, {}", job.what(), bytes(vram_bytes), way.name());
        let _progress = Progress::start(&name);
        let mut line = Line::new(job.what(), vram_bytes, way);
        let maker = match self.maker(job, vram_bytes, way) {
            Ok(maker) => maker,
            // Bases stay only where device memory is large enough.
            Err(error) => {
                line.is_failure = !error.is_memory_short();
                line.not_measured = Some(error.to_string());
                return Ok(line);
            }
        };
        self.switch.set(Some(Arc::clone(&maker.accelerator)));
        let measured = self.measured(job, &maker, expected);
        self.switch.set(None);
        self.gpu.trace().limit_spans(0);
        match measured? {
            Ok((measured, way)) => {
                line.way = way.unwrap_or(line.way);
                line.measured = Some(measured);
            }
            Err(why) => {
                line.is_failure = true;
                line.not_measured = Some(why);
            }
        }
        Ok(line)
    }

    fn maker(&self, job: &Job, vram_bytes: u64, way: Way) -> spillproof_gpu::Result<Maker> {
        let vram = ByteSize::Bytes(vram_bytes);
        let gpus = vec![self.gpu.clone()];
        let accelerator = GpuAccelerator::over(gpus, vram, Offload::Always, &Staging::default());
        let accelerator = Arc::new(match way {
            Way::Resident => accelerator,
            _ => accelerator.with_bases(BasesLocation::Streamed),
        });
        if way == Way::Resident {
            accelerator.plan_over_bases(job.n(), self.session.budget())?;
        }
        let planner = Arc::clone(&accelerator);
        let plan: Box<dyn Fn(_) -> Option<Plan>> = match job {
            Job::Sum { .. } => Box::new(|(sum, _)| Some(Plan::Sum(sum?))),
            Job::Transform { .. } => Box::new(|(_, transform)| Some(Plan::Transform(transform?))),
            Job::Proof { log_n, witness, .. } => {
                let (log_n, signals) = (*log_n, witness.len());
                Box::new(move |(sum, _)| {
                    let sum = sum?;
                    Some(Plan::Proof { sum, log_n, signals })
                })
            }
        };
        Ok(Maker {
            accelerator,
            plan: Box::new(move || plan(planner.last_plans())),
        })
    }

    /// The figures, and the way that the job took; or why the device did not do it.
    fn measured(
        &self,
        job: &Job,
        maker: &Maker,
        expected: &mut Option<(Made, &'static str)>,
    ) -> Result<std::result::Result<(Measured, Option<Way>), String>> {
        let (mut times, mut is_equal) = (Vec::new(), None);
        let [mut before, mut after] = [Moved::default(); 2];
        for round in 0..=self.args.runs {
            before = Moved::so_far(self.gpu, self.session);
            let (made, seconds) = timed(|| job.run(self.session));
            let made = made?;
            if let Some(why) = self.left_to_the_processor() {
                return Ok(Err(why));
            }
            after = Moved::so_far(self.gpu, self.session);
            // The first one warms up.
            if round > 0 {
                times.push(seconds);
            }
            is_equal = self.compared(made, expected, is_equal)?;
        }
        let Some(plan) = (maker.plan)() else {
            return Ok(Err("the device has no plan of it".into()));
        };
        let bases_bytes = match plan {
            Plan::Sum(plan) if plan.size().location == BasesLocation::Resident => {
                Bases::vram_bytes(plan.size().bases, job.n())
            }
            _ => 0,
        };
        let (made, traced) = self.traced(job)?;
        if let Some(why) = self.left_to_the_processor() {
            return Ok(Err(why));
        }
        is_equal = self.compared(made, expected, is_equal)?;
        let to_device_bytes = after.to_device_bytes - before.to_device_bytes;
        let from_device_bytes = after.from_device_bytes - before.from_device_bytes;
        let (up, back) = (to_device_bytes as f64, from_device_bytes as f64);
        let rates = &self.rates;
        let together = (2.0 * rates.both_ways_bytes_per_second)
            .max(rates.to_device_bytes_per_second)
            .max(rates.from_device_bytes_per_second);
        let bounds = Bounds {
            compute_seconds: plan.compute_seconds(rates),
            copies_seconds: (up / rates.to_device_bytes_per_second)
                .max(back / rates.from_device_bytes_per_second)
                .max((up + back) / together),
            disk_seconds: disk_seconds(&before.disk, &after.disk, &self.disk),
        };
        let seconds = median(times);
        let way = match plan {
            Plan::Transform(plan) => Some(match plan.method() {
                NttMethod::InDeviceMemory => Way::Whole,
                NttMethod::TwoSteps { .. } => Way::Parts,
            }),
            Plan::Sum(plan) => Some(match plan.size().location {
                BasesLocation::Resident => Way::Resident,
                BasesLocation::Streamed => Way::Streamed,
            }),
            Plan::Proof { .. } => None,
        };
        let measured = Measured {
            seconds,
            processor_seconds: None,
            ratio: None,
            is_equal,
            compared_with: expected
                .as_ref()
                .filter(|_| is_equal.is_some())
                .map(|known| known.1),
            bound_seconds: bounds.seconds(),
            bound_by: bounds.by(),
            bounds,
            seconds_by_bound: seconds / bounds.seconds(),
            traced,
            hard_syncs: after.hard_syncs - before.hard_syncs,
            to_device_bytes,
            from_device_bytes,
            read_bytes: after.disk.bytes_read - before.disk.bytes_read,
            written_bytes: after.disk.bytes_written - before.disk.bytes_written,
            vram_leased_bytes: plan.vram_bytes() + bases_bytes,
            window_bits: plan.window_bits(),
        };
        Ok(Ok((measured, way)))
    }

    /// Whether all results so far, this one included, are equal to the expected one. The first result of all
    /// becomes the expected one.
    fn compared(
        &self,
        made: Made,
        expected: &mut Option<(Made, &'static str)>,
        is_equal: Option<bool>,
    ) -> Result<Option<bool>> {
        let Some((expected, _)) = expected else {
            *expected = Some((made, "the first budget"));
            return Ok(is_equal);
        };
        let is_same = made.is_same(expected, self.session)?;
        Ok(Some(is_equal.unwrap_or(true) && is_same))
    }

    /// One more run, every copy and kernel of which is timed.
    fn traced(&self, job: &Job) -> Result<(Made, Option<Traced>)> {
        let trace = self.gpu.trace();
        trace.take_spans();
        trace.limit_spans(SPANS_MAX);
        let (made, seconds) = timed(|| job.run(self.session));
        trace.limit_spans(0);
        let spans = trace.take_spans();
        let is_whole = spans.len() < SPANS_MAX;
        let busy = Busy::of(spans).filter(|_| is_whole);
        Ok((made?, busy.map(|busy| Traced::of(&busy, seconds))))
    }

    fn left_to_the_processor(&self) -> Option<String> {
        match self.switch.take_outcome() {
            Outcome::Done => None,
            Outcome::Declined(why) => Some(why),
            Outcome::NotAsked => Some("the engine did not ask the device".into()),
        }
    }
}
