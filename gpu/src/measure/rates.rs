//! Rates of a device, each measured alone.
//!
//! Products and additions: chains in registers (`gpu/kernels/rates.cuh`) of as many steps as take
//! [`MEASURED_SECONDS`], the best of [`REPEATS`] launches. Copies: the ring without a kernel, from and to
//! pinned slots, each way alone and both at once. After each launch the results of the first and the last
//! thread are compared with the processor's, since a chain that the compiler cut short measures nothing.

use std::time::Instant;

use ark_bn254::{Fq, FqConfig, Fr, FrConfig, G1Affine, g1};
use ark_ec::CurveGroup;
use ark_ff::{FftField, Field, Fp256, MontBackend, MontConfig};
use serde::Serialize;
use spillproof_engine::accelerator::Group;
use spillproof_engine::budget::Budget;

use super::Facts;
use super::launch::{ChainElements, ChainResults, Chains, threads};
use crate::accelerator::{bytes_of, points};
use crate::kernels::Kernels;
use crate::msm::{POINT_BYTES, SCALAR_BYTES, point, sum_bytes};
use crate::ring::{Chunking, Download, Ring, RingJob, Upload};
use crate::vram::Vram;
use crate::{Caching, Error, Gpu, Pinned, Result};

/// The shortest time that is measured.
const MEASURED_SECONDS: f64 = 0.02;
const REPEATS: usize = 3;
/// Limits of the steps of a chain and the bytes of a copy, for a fast device.
const TIMES_MAX: u32 = 1 << 20;
const COPIED_BYTES_MAX: u64 = 1 << 36;
/// IMAD.WIDE of one product in BN254, as `gpu/tests/all/kernels_nvrtc.rs` counts them.
const WIDE_OF_A_PRODUCT: f64 = 120.0;
/// Chains of a thread in `spk_rate_mul`.
const CHAINS: u64 = 4;
/// Divisible by 1 to 6 and by 8: as many blocks at one time on a multiprocessor give full rounds only.
const BLOCKS_OF_A_MULTIPROCESSOR: u32 = 120;
/// Elements and points from which the chains begin.
const ELEMENTS: u32 = 1024;
const CHUNK_BYTES_MAX: u64 = 16 << 20;
/// Slots at each end, and device buffers.
const SLOTS: usize = 3;

/// The rates of a device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rates {
    /// Products of BN254's base field.
    pub fq_products_per_second: f64,
    /// Products of BN254's scalar field.
    pub fr_products_per_second: f64,
    /// IMAD.WIDE of the faster of the two, at 120 a product.
    pub wide_products_per_second: f64,
    /// The same for each multiprocessor and cycle of the highest clock, if the driver reports that clock.
    pub wide_products_per_multiprocessor_and_cycle: Option<f64>,
    /// Additions of an affine point to an XYZZ one, in BN254's G1.
    pub mixed_additions_per_second: f64,
    /// Copies from pinned slots, alone.
    pub to_device_bytes_per_second: f64,
    /// Copies into pinned slots, alone.
    pub from_device_bytes_per_second: f64,
    /// Copies each way, while as many bytes go the other way.
    pub both_ways_bytes_per_second: f64,
}

impl Rates {
    /// Measures a device with the accelerator's kernels. Leases pinned slots from `budget`: half of its free
    /// bytes, 96 MiB at most.
    ///
    /// # Errors
    /// [`Error::Wrong`] for a wrong result; [`Error::NoKernel`], [`Error::Driver`], [`Error::OutOfMemory`];
    /// [`Error::Host`] if the budget has no room for slots.
    pub fn measure(gpu: &Gpu, kernels: &Kernels, budget: &Budget) -> Result<Self> {
        let _turn = gpu.take_turn();
        let vram = Vram::auto(gpu)?;
        let fq = products::<FqConfig>(&vram, kernels, "spk_rate_mul_bn254_fq", Fq::GENERATOR)?;
        let fr = products::<FrConfig>(&vram, kernels, "spk_rate_mul_bn254_fr", Fr::GENERATOR)?;
        let additions = additions(&vram, kernels)?;
        let [to_device, from_device, both_ways] = copies(&vram, budget)?;
        let facts = Facts::of(gpu)?;
        let wide = WIDE_OF_A_PRODUCT * fq.max(fr);
        let cycles = facts
            .clock_hz
            .map(|clock_hz| clock_hz as f64 * f64::from(facts.multiprocessors));
        Ok(Self {
            fq_products_per_second: fq,
            fr_products_per_second: fr,
            wide_products_per_second: wide,
            wide_products_per_multiprocessor_and_cycle: cycles.map(|cycles| wide / cycles),
            mixed_additions_per_second: additions,
            to_device_bytes_per_second: to_device,
            from_device_bytes_per_second: from_device,
            both_ways_bytes_per_second: both_ways,
        })
    }
}

fn products<C: MontConfig<4>>(
    vram: &Vram,
    kernels: &Kernels,
    name: &str,
    start: Fp256<MontBackend<C, 4>>,
) -> Result<f64> {
    // Powers of a generator, from one whose words are all in use.
    let step = start.pow([0x0dd_ba11]);
    let values: Vec<_> = std::iter::successors(Some(start.pow([0x5eed])), |value| Some(*value * step))
        .take(ELEMENTS as usize)
        .collect();
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.0.0)
        .flat_map(u64::to_le_bytes)
        .collect();
    let expected = |thread: u64, times: u32| {
        let at = |index: u64| values[(index % values.len() as u64) as usize];
        let sum: Fp256<MontBackend<C, 4>> = (0..CHAINS).map(|i| at(CHAINS * thread + i)).sum();
        let product = at(thread).pow([u64::from(times)]) * sum;
        product.0.0.into_iter().flat_map(u64::to_le_bytes).collect()
    };
    let sizes = [SCALAR_BYTES, SCALAR_BYTES];
    let steps = steps_per_second(vram, kernels, name, &bytes, sizes, |thread, times, found| {
        let expected: Vec<u8> = expected(thread, times);
        found == expected
    })?;
    Ok(steps * CHAINS as f64)
}

fn additions(vram: &Vram, kernels: &Kernels) -> Result<f64> {
    let from = points(u64::from(ELEMENTS));
    let affine: Vec<G1Affine> = from.iter().map(|point| point.to_affine()).collect();
    let sizes = [POINT_BYTES, sum_bytes(Group::G1)];
    let name = "spk_rate_add_bn254";
    steps_per_second(
        vram,
        kernels,
        name,
        &bytes_of(&from),
        sizes,
        |thread, times, found| {
            let at = |index: u64| affine[(index % affine.len() as u64) as usize];
            let expected = at(thread) + at(thread + 1) * Fr::from(times);
            point::<g1::Config>(found) == Some(expected.into_affine())
        },
    )
}

/// Steps of all threads in a second, for a kernel with elements and results of these sizes.
fn steps_per_second(
    vram: &Vram,
    kernels: &Kernels,
    name: &str,
    from: &[u8],
    [from_bytes, to_bytes]: [u64; 2],
    is_right: impl Fn(u64, u32, &[u8]) -> bool,
) -> Result<f64> {
    let (gpu, stream) = (vram.gpu(), vram.gpu().stream()?);
    let multiprocessors = gpu.description().multiprocessors.clamp(1, 1 << 12);
    let blocks_max = multiprocessors * BLOCKS_OF_A_MULTIPROCESSOR;
    let source = vram.buffer(from.len() as u64, "chains of operations")?;
    stream.write((&source, 0), from)?;
    let results = vram.buffer(threads(blocks_max) * to_bytes, "results of chains")?;
    let chains = Chains::new(
        stream,
        kernels.kernel(name)?,
        ChainResults {
            buffer: results,
            bytes: to_bytes,
        },
        ChainElements {
            buffer: source,
            bytes: from_bytes,
            count: ELEMENTS,
        },
        blocks_max,
    )?;
    let mut found = vec![0; to_bytes as usize];
    let mut seconds_of = |(blocks, times): (u32, u32)| {
        chains.clear()?;
        let seconds = timed(|| chains.launch(blocks, times))?;
        for thread in [0, threads(blocks) - 1] {
            chains.read(thread * to_bytes, &mut found)?;
            if !is_right(thread, times, &found) {
                return Err(Error::Wrong {
                    what: format!("the result of thread {thread} of {name}, {times} steps"),
                });
            }
        }
        Ok(seconds)
    };
    let mut size = (multiprocessors, 1);
    // A warm-up: the first launch loads the kernel.
    seconds_of(size)?;
    let mut best = seconds_of(size)?;
    // First more blocks until the device is full, then longer chains; a slow device needs fewer blocks.
    while best < MEASURED_SECONDS && size.1 < TIMES_MAX {
        size = match size {
            (blocks, 1) if blocks < blocks_max => ((2 * blocks).min(blocks_max), 1),
            (blocks, times) => (blocks, 2 * times),
        };
        best = seconds_of(size)?;
    }
    for _ in 1..REPEATS {
        best = best.min(seconds_of(size)?);
    }
    Ok(threads(size.0) as f64 * f64::from(size.1) / best)
}

/// Bytes in a second to the device, from it, and each way with both at once.
fn copies(vram: &Vram, budget: &Budget) -> Result<[f64; 3]> {
    let gpu = vram.gpu();
    let slots = 2 * SLOTS as u64;
    let room_bytes = (budget.available_bytes() / 2 / slots).min(CHUNK_BYTES_MAX);
    let chunk_bytes = room_bytes.checked_ilog2().map_or(0, |log| 1u64 << log);
    let _lease = budget.lease_map(slots * chunk_bytes, "rates of copies")?;
    let pool = Pinned::new(slots * chunk_bytes).pool(
        gpu,
        2 * SLOTS,
        chunk_bytes as usize,
        Caching::Cached,
        "rates of copies",
    )?;
    let mut upload = Upload::new(pool.take(SLOTS)?, gpu.trace())?;
    let mut download = Download::new(pool.take(SLOTS)?, gpu.trace())?;
    let mut ring = Ring::new(vram, Chunking::new(chunk_bytes, 1)?, SLOTS)?;
    // The content of the slots does not matter.
    let mut source = |_: u64, _: &mut [u8]| Ok(());
    let mut sink = |_: u64, _: &[u8]| Ok(());
    let mut rates = [0.0; 3];
    for (rate, (up, back)) in rates.iter_mut().zip([(true, false), (false, true), (true, true)]) {
        let mut copy = |total_bytes| {
            let job = RingJob {
                total_bytes,
                upload: up.then_some((&mut upload, &mut source as _)),
                arrays: &[],
                download: back.then_some((&mut download, &mut sink as _)),
            };
            ring.run_job(job, &mut |_| Ok(()))?;
            ring.finish()
        };
        let mut total_bytes = 4 * chunk_bytes;
        copy(total_bytes)?;
        let mut best = timed(|| copy(total_bytes))?;
        while best < MEASURED_SECONDS && total_bytes < COPIED_BYTES_MAX {
            total_bytes *= 2;
            best = timed(|| copy(total_bytes))?;
        }
        for _ in 1..REPEATS {
            best = best.min(timed(|| copy(total_bytes))?);
        }
        *rate = total_bytes as f64 / best;
    }
    Ok(rates)
}

/// The seconds of work that succeeds.
fn timed(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    // Not 0, which would make the rate infinite.
    Ok(start.elapsed().as_secs_f64().max(1e-9))
}
