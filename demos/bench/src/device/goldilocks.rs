//! Transforms over Goldilocks, whole in device memory, from memory to memory: the device's own time, by its events, and
//! that with the copies both ways and through page-locked slots. Plonky3's, on all threads, are beside them, and say
//! what the result has to be.

use p3_goldilocks::Goldilocks;
use serde::Serialize;
use spillproof_cli::report::table::grid;
use spillproof_gpu::accelerator::kernels;
use spillproof_gpu::measure::Rates;
use spillproof_gpu::ntt::{MemoryElements, Ntt, NttPlan, NttSlots, NttSpec};
use spillproof_gpu::ring::{Download, Upload};
use spillproof_gpu::trace::Busy;
use spillproof_gpu::{Caching, Gpu, Pinned, Result, Vram};

use super::SPANS_MAX;
use crate::kernels::{SEED, timed};
use crate::median;

/// Bytes of an element.
const BYTES: u64 = 8;
/// Slots each way.
const SLOTS: usize = 2;
/// Bytes of a slot, at most.
const SLOT_BYTES_MAX: u64 = 16 << 20;

/// Figures of one size.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    log_n: u32,
    /// Kernels alone, in one run.
    device_seconds: Option<f64>,
    /// From memory to memory, the median.
    seconds: f64,
    /// Plonky3's, the median.
    processor_seconds: f64,
    /// The whole time by the processor's.
    ratio: f64,
    /// Both copies, at the measured rate.
    copies_bound_seconds: f64,
    /// The whole time by that bound.
    seconds_by_bound: f64,
    is_equal: bool,
    to_device_bytes: u64,
    from_device_bytes: u64,
}

impl Line {
    /// The failure, as a sentence.
    pub fn failure(&self) -> Option<String> {
        (!self.is_equal).then(|| {
            format!(
                "Goldilocks 2^{}: the result differs from that of Plonky3; do not trust this GPU or its driver, or report a bug in spillproof",
                self.log_n
            )
        })
    }
}

/// Measures one size, so many runs.
///
/// # Errors
/// The device's.
pub fn measure(gpu: &Gpu, rates: &Rates, (log_n, runs): (u32, usize)) -> Result<Line> {
    let (n, total_bytes) = (1u64 << log_n, BYTES << log_n);
    let values: Vec<u64> = (0..n)
        .map(|index| index.wrapping_mul(SEED | 0x9e37) >> 1)
        .collect();
    let transform = NttSpec::<Goldilocks>::of_field(log_n)?;
    let mut processor_times = Vec::new();
    let mut expected = Vec::new();
    for _ in 0..runs {
        let (made, seconds) = timed(|| transform.by_processor(&values));
        processor_times.push(seconds);
        expected = made?;
    }
    let plan = NttPlan::of::<Goldilocks>(log_n, gpu.memory_bytes()?.0, SLOT_BYTES_MAX.min(total_bytes))?;
    let vram = Vram::new(gpu, plan.vram_bytes());
    let mut ntt = Ntt::new(&vram, &kernels(gpu)?, plan, transform)?;
    let slot_bytes = plan.slot_bytes();
    let pinned = Pinned::new(2 * SLOTS as u64 * slot_bytes);
    let slots = |name| pinned.pool(gpu, SLOTS, slot_bytes as usize, Caching::Cached, name);
    let (up, back) = (slots("upload")?, slots("download")?);
    let mut upload = Upload::new(up.take(SLOTS)?, gpu.trace())?;
    let mut download = Download::new(back.take(SLOTS)?, gpu.trace())?;
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut from = MemoryElements::new(bytes, BYTES);
    let empty = || MemoryElements::new(vec![0; total_bytes as usize], BYTES);
    let (mut between, mut to) = (empty(), empty());
    let mut run = || {
        let slots = NttSlots {
            upload: &mut upload,
            download: &mut download,
        };
        let (made, seconds) = timed(|| ntt.transform(slots, &mut from, &mut between, &mut to));
        made.map(|()| seconds)
    };
    // The first one warms up.
    run()?;
    let times = (0..runs).map(|_| run()).collect::<Result<Vec<_>>>()?;
    let trace = gpu.trace();
    trace.take_spans();
    trace.limit_spans(SPANS_MAX);
    let traced = run();
    trace.limit_spans(0);
    let busy = Busy::of(trace.take_spans());
    traced?;
    let made = to
        .bytes()
        .as_chunks()
        .0
        .iter()
        .map(|bytes| u64::from_le_bytes(*bytes));
    let (seconds, processor_seconds) = (median(times), median(processor_times));
    let copied = total_bytes as f64;
    let copies_bound_seconds =
        copied / rates.to_device_bytes_per_second + copied / rates.from_device_bytes_per_second;
    Ok(Line {
        log_n,
        device_seconds: busy.map(|busy| busy.device_seconds),
        seconds,
        processor_seconds,
        ratio: seconds / processor_seconds,
        copies_bound_seconds,
        seconds_by_bound: seconds / copies_bound_seconds,
        is_equal: made.eq(expected),
        to_device_bytes: total_bytes,
        from_device_bytes: total_bytes,
    })
}

/// The lines as a table.
pub fn render(lines: &[Line]) -> String {
    let headings = [
        "Goldilocks",
        "device, s",
        "with transfers, s",
        "Plonky3, s",
        "ratio",
        "equal",
        "bound by copies, s",
        "time / bound",
    ];
    let rows: Vec<[String; 8]> = lines.iter().map(row).collect();
    grid(&headings, &rows, usize::MAX)
}

fn row(line: &Line) -> [String; 8] {
    let seconds = |seconds: f64| format!("{seconds:.5}");
    [
        format!("NTT 2^{}", line.log_n),
        line.device_seconds.map_or_else(|| "-".to_owned(), seconds),
        seconds(line.seconds),
        seconds(line.processor_seconds),
        format!("{:.3}", line.ratio),
        if line.is_equal { "yes" } else { "NO" }.to_owned(),
        seconds(line.copies_bound_seconds),
        format!("{:.2}", line.seconds_by_bound),
    ]
}
