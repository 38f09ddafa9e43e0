//! Whether a job is worth the device: its seconds on both sides, by rates that are measured at the first job
//! of its kind.
//!
//! One job of [`SMALL`] and one of [`LARGE`] elements give the device's rates, the large one the processor's;
//! both find their data in memory. For transforms the work is n log n. The rates of quotients are measured
//! for each program, with its own columns; those of constraints with as many coefficients a row, and by their transforms.
//!
//! Memory while it measures: the large job's data and the processor's buckets, leased.

use std::fmt;

use ark_bn254::{Fr, G1Affine, G1Projective, g1};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, FftField, Field};
use rayon::prelude::*;
use spillproof_engine::accelerator::{
    COEFFICIENT_BYTES, Constraints, Coset, InTiles, Panel, RowSource, Scalars, TileEnds, Tiles,
};
use spillproof_engine::budget::Budget;
use spillproof_engine::column::Element;
use spillproof_kernels::backend::Backend;
use spillproof_kernels::curve::Point;
use spillproof_kernels::msm::{Msm, MsmConfig};
use spillproof_kernels::ntt::{Domain, Twiddles, each_row};
use spillproof_kernels::vector::{Evaluation, SCALARS_PER_EIGHT};

use super::device::Device;
use super::quotient::CosetRequest;
use super::rates::{JobRates, Offload, Seconds, Worth, seconds};
use super::stop::Stop;
use super::transform::{Ends, NttJob};
use super::{constraints, quotient, sums, transform};
use crate::constraints::ConstraintsShape;
use crate::error::BoxedError;
use crate::msm::{MsmPlan, POINT_BYTES, SCALAR_BYTES};
use crate::ntt::{MemoryElements, NttMethod, NttPlan, NttSpec};

/// log2 of the smaller job that is measured. A smaller job is never worth a device.
const LOG_SMALL: u32 = 12;
/// log2 of the larger job that is measured.
const LOG_LARGE: u32 = 15;
pub(super) const SMALL: u64 = 1 << LOG_SMALL;
const LARGE: u64 = 1 << LOG_LARGE;
/// Distinct values of coefficients that are measured.
const VALUES: u64 = 16;
/// Rows of the processor's registers, as in the engine.
const BLOCK_ROWS: usize = 256;

/// Columns of a transform of 2^`log_n` elements.
#[derive(Debug, Clone, Copy)]
pub(super) struct PanelSize {
    pub log_n: u32,
    /// log2 of the length of a column, and of their number.
    pub log_lengths: [u32; 2],
    pub halves: u32,
}

impl PanelSize {
    pub fn of(job: &Panel<'_>) -> Self {
        Self {
            log_n: job.halves.first().map_or(0, |half| half.log_n),
            log_lengths: [job.log_rows, job.log_columns],
            halves: job.halves.len() as u32,
        }
    }

    fn log_elements(&self) -> u32 {
        self.log_lengths.iter().sum()
    }
}

/// A job, by kind and size.
#[derive(Debug, Clone, Copy)]
pub(super) enum JobSize<'a> {
    /// A sum of this many terms.
    Sum(u64),
    /// A transform of 2^n elements.
    Transform(u32),
    /// A panel of one.
    Panel(PanelSize),
    /// A quotient on a coset.
    Quotient(&'a CosetRequest<'a>),
    /// The quotient of a constraint system.
    Constraints(ConstraintsShape),
}

impl JobSize<'_> {
    /// What speaks for the job. Declines one that is small or that the processor does faster, unless all jobs are
    /// wanted.
    pub fn worth(&self, offload: Offload, device: &mut Device, budget: &Budget) -> Result<Worth, Stop> {
        if offload == Offload::Always {
            return Ok(Worth::always());
        }
        if self.is_small() {
            return Err(Stop::Declined(format!("{self} is too small for a device")));
        }
        let seconds = self.seconds(device, budget)?;
        if seconds.is_less_on_the_device() {
            return Ok(Worth::of(seconds));
        }
        Err(Stop::Declined(format!(
            "{self}: the processor is faster, by measured rates"
        )))
    }

    /// Whether the job is smaller than the measured ones.
    pub fn is_small(&self) -> bool {
        match self {
            Self::Sum(points) => *points < SMALL,
            Self::Transform(log_n) => *log_n < LOG_SMALL,
            Self::Panel(panel) => panel.log_elements() < LOG_SMALL,
            Self::Quotient(coset) => coset.log_n() < LOG_SMALL,
            Self::Constraints(shape) => shape.log_n < LOG_SMALL,
        }
    }

    /// Its seconds, by rates that are measured now if need be.
    pub fn seconds(&self, device: &mut Device, budget: &Budget) -> Result<Seconds, Stop> {
        let rates = self.rates(device, budget)?;
        self.seconds_by(rates, device, budget)
    }

    /// Its seconds, if its rates have been measured.
    pub fn known_seconds(&self, device: &mut Device, budget: &Budget) -> Result<Option<Seconds>, Stop> {
        let rates = self.known(device)?;
        rates
            .map(|rates| self.seconds_by(rates, device, budget))
            .transpose()
    }

    fn seconds_by(&self, mut rates: JobRates, device: &mut Device, budget: &Budget) -> Result<Seconds, Stop> {
        if let Self::Transform(log_n) = *self
            && transform::plan(device, log_n, budget)?.method() != NttMethod::InDeviceMemory
        {
            // All elements cross the bus twice; the processor's own transform passes over the disk as often.
            rates.device_each *= 2.0;
        }
        Ok(self.seconds_at(rates))
    }

    /// Its seconds at these rates, on a device that has room for all of it.
    pub fn seconds_at(&self, rates: JobRates) -> Seconds {
        match *self {
            Self::Sum(points) => rates.seconds(points as f64),
            Self::Transform(log_n) => rates.seconds(transform_work(log_n)),
            // Elements cross once for all halves, as those of a whole transform, which has two.
            Self::Panel(panel) => {
                let work = |layers: u32| f64::from(layers) * (1u64 << panel.log_elements()) as f64;
                Seconds {
                    processor: rates.seconds(work(panel.halves * panel.log_lengths[0])).processor,
                    ..rates.seconds(work(panel.log_n))
                }
            }
            Self::Quotient(coset) => rates.seconds((1u64 << coset.log_n()) as f64),
            Self::Constraints(shape) => rates.seconds(transform_work(shape.log_n)),
        }
    }

    fn known(&self, device: &Device) -> Result<Option<JobRates>, Stop> {
        Ok(match self {
            Self::Sum(_) => device.measured.sums,
            Self::Transform(_) | Self::Panel(_) => device.measured.transforms,
            Self::Quotient(coset) => match &device.measured.quotients {
                Some((words, inputs, rates)) if *inputs == coset.inputs => {
                    (*words == quotient::program_of(&coset.program)?.words()).then_some(*rates)
                }
                _ => None,
            },
            Self::Constraints(shape) => match device.measured.constraints {
                Some((of_a_row, rates)) if of_a_row == coefficients_of_a_row(*shape) => Some(rates),
                _ => None,
            },
        })
    }

    /// Its rates, which are measured now if they were not.
    pub fn rates(&self, device: &mut Device, budget: &Budget) -> Result<JobRates, Stop> {
        match self.known(device)? {
            Some(rates) => Ok(rates),
            None => self.measured(device, budget),
        }
    }

    fn measured(&self, device: &mut Device, budget: &Budget) -> Result<JobRates, Stop> {
        Ok(match self {
            Self::Sum(_) => {
                let rates = measure_sums(device, budget)?;
                *device.measured.sums.insert(rates)
            }
            Self::Transform(_) | Self::Panel(_) => {
                let rates = measure_transforms(device, budget)?;
                *device.measured.transforms.insert(rates)
            }
            Self::Quotient(coset) => {
                let rates = measure_quotients(device, coset, budget)?;
                let words = quotient::program_of(&coset.program)?.words();
                device.measured.quotients = Some((words, coset.inputs.to_vec(), rates));
                rates
            }
            Self::Constraints(shape) => {
                let of_a_row = coefficients_of_a_row(*shape);
                let rates = measure_constraints(device, of_a_row, budget)?;
                device.measured.constraints = Some((of_a_row, rates));
                rates
            }
        })
    }
}

impl fmt::Display for JobSize<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sum(points) => write!(f, "a sum of {points} terms"),
            Self::Transform(log_n) => write!(f, "a transform of 2^{log_n} elements"),
            Self::Panel(panel) => {
                let [log_rows, log_columns] = panel.log_lengths;
                write!(
                    f,
                    "2^{log_columns} columns of 2^{log_rows} elements of a transform"
                )
            }
            Self::Quotient(coset) => {
                let (columns, log_n) = (coset.inputs.len(), coset.log_n());
                write!(f, "a quotient of {columns} columns of 2^{log_n} elements")
            }
            Self::Constraints(shape) => write!(f, "the quotient of constraints of 2^{} rows", shape.log_n),
        }
    }
}

fn transform_work(log_n: u32) -> f64 {
    f64::from(log_n) * (1u64 << log_n) as f64
}

/// Coefficients of a measured system for each of its rows: a power of two, so that few systems are measured, and not more
/// than the memory of a small budget has room for.
fn coefficients_of_a_row(shape: ConstraintsShape) -> u64 {
    (shape.coefficients >> shape.log_n)
        .clamp(1, 16)
        .next_power_of_two()
}

/// Scalars with random-looking bits: powers of a number.
fn scalars(count: u64) -> Vec<Fr> {
    let mut next = Fr::GENERATOR.pow([0x5eed]);
    let step = Fr::GENERATOR.pow([0x0dd_ba11]);
    (0..count)
        .map(|_| {
            next *= step;
            next
        })
        .collect()
}

/// Multiples of the generator.
pub(crate) fn points(count: u64) -> Vec<Point<g1::Config>> {
    let step = G1Affine::generator();
    let mut next = G1Projective::ZERO;
    let multiples: Vec<G1Projective> = (0..count)
        .map(|_| {
            next += step;
            next
        })
        .collect();
    let affine = G1Projective::normalize_batch(&multiples);
    affine
        .iter()
        .map(Point::<g1::Config>::from_affine::<g1::Config>)
        .collect()
}

pub(crate) fn bytes_of<E: Element>(values: &[E]) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * E::BYTES];
    for (value, out) in values.iter().zip(bytes.chunks_exact_mut(E::BYTES)) {
        value.encode(out);
    }
    bytes
}

fn source(bytes: &[u8]) -> impl FnMut(u64, &mut [u8]) -> Result<(), BoxedError> + '_ {
    move |offset, into| {
        let from = bytes
            .get(offset as usize..)
            .and_then(|rest| rest.get(..into.len()));
        into.copy_from_slice(from.ok_or("a read beyond the end of the measured data")?);
        Ok(())
    }
}

fn measure_sums(device: &mut Device, budget: &Budget) -> Result<JobRates, Stop> {
    let threads = rayon::current_num_threads();
    // Fails before any allocation if the device memory is too small.
    MsmPlan::new(
        LARGE,
        device.vram_bytes()?,
        device.slots.slot_bytes_max(budget, false),
    )?;
    // Values, bytes, and the memory that makes the points.
    let data_bytes = LARGE * (2 * (POINT_BYTES + SCALAR_BYTES) + 2 * 96);
    let config = MsmConfig::choose::<g1::Config>(LARGE, 1, threads, budget.available_bytes() / 4)?;
    let _lease = budget.lease(
        data_bytes + config.workspace_bytes::<g1::Config>(),
        "rates of sums",
    )?;
    let (points, scalars) = (points(LARGE), scalars(LARGE));
    let (points_bytes, scalars_bytes) = (bytes_of(&points), bytes_of(&scalars));
    let mut on_device = [0.0; 2];
    for (n, taken) in [SMALL, LARGE].into_iter().zip(&mut on_device) {
        let plan = MsmPlan::new(
            n,
            device.vram_bytes()?,
            device.slots.slot_bytes_max(budget, false),
        )?;
        // The first run compiles kernels, leases device memory and allocates slots, which are kept.
        for _ in 0..2 {
            let (bases, scalars) = (source(&points_bytes), source(&scalars_bytes));
            let (sum, seconds) = seconds(|| {
                let mut slots = device.slots.take(budget, plan.slot_bytes(), false)?;
                let sums = sums::one_pass(device, &mut slots, plan, bases, vec![Box::new(scalars)]);
                sums.inspect(|_| device.slots.keep(slots))
            });
            let _ = sum?;
            *taken = seconds;
        }
    }
    let (_, processor) = seconds(|| {
        let mut kernel = Msm::<g1::Config>::new(config);
        kernel.update(&points, &[&scalars]);
        kernel.finish()
    });
    let rates = JobRates::of([SMALL as f64, LARGE as f64], on_device, processor);
    tracing::debug!(?rates, "rates of sums");
    Ok(rates)
}

fn measure_transforms(device: &mut Device, budget: &Budget) -> Result<JobRates, Stop> {
    let _lease = budget.lease(3 * LARGE * SCALAR_BYTES, "rates of transforms")?;
    let mut values = scalars(LARGE);
    let mut from = MemoryElements::of_bn254(bytes_of(&values));
    let mut to = from.clone();
    let mut on_device = [0.0; 2];
    for (log_n, taken) in [LOG_SMALL, LOG_LARGE].into_iter().zip(&mut on_device) {
        let plan = NttPlan::new(
            log_n,
            device.vram_bytes()?,
            device.slots.slot_bytes_max(budget, true),
        )?;
        if plan.method() != NttMethod::InDeviceMemory {
            return Err(Stop::Declined(format!(
                "the rates of transforms cannot be measured: 2^{log_n} elements do not fit the device memory"
            )));
        }
        let transform = NttSpec::forward(log_n)?;
        for _ in 0..2 {
            let (done, seconds) = seconds(|| {
                let mut slots = device.slots.take(budget, plan.slot_bytes(), true)?;
                let job = NttJob { plan, transform };
                let mut between = transform::no_steps_between();
                let ends = Ends {
                    from: &mut from,
                    between: &mut between,
                    to: &mut to,
                    first_bytes: 0,
                    by_the_processor: 0.0,
                };
                transform::transform_elements(device, &mut slots, job, ends, &mut Worth::always())
                    .inspect(|_| device.slots.keep(slots))
            });
            done?;
            *taken = seconds;
        }
    }
    let domain = Domain::new(LOG_LARGE, Fr::get_root_of_unity(LARGE).unwrap_or(Fr::ONE))?;
    let ((), processor) = seconds(|| domain.forward(&mut values));
    let rates = JobRates::of([LOG_SMALL, LOG_LARGE].map(transform_work), on_device, processor);
    tracing::debug!(?rates, "rates of transforms");
    Ok(rates)
}

/// A coefficient of a measured system: of each row, `of_a_row` of them in turn for both matrices.
fn coefficient(index: u64, of_a_row: u64) -> [u64; 4] {
    let (row, signal) = (index / of_a_row, index * 0x9e37 % SMALL);
    [row, signal, index % VALUES, index % 2]
}

fn measure_constraints(device: &mut Device, of_a_row: u64, budget: &Budget) -> Result<JobRates, Stop> {
    // Scalars, rows and what becomes of them, and coefficients twice.
    let row_bytes = 6 * SCALAR_BYTES + 2 * of_a_row * COEFFICIENT_BYTES;
    let _lease = budget.lease(LARGE * row_bytes, "rates of constraints")?;
    let (values, witness) = (scalars(VALUES), scalars(SMALL));
    let coefficients = (0..LARGE * of_a_row).flat_map(|index| coefficient(index, of_a_row));
    let coefficients: Vec<u8> = coefficients
        .flat_map(|word| (word as u32).to_le_bytes())
        .collect();
    let mut on_device = [0.0; 2];
    for (log_n, taken) in [LOG_SMALL, LOG_LARGE].into_iter().zip(&mut on_device) {
        for _ in 0..2 {
            let vector = |len, bytes: Vec<u8>, element_bytes| Scalars {
                len,
                source: Box::new(MemoryElements::new(bytes, element_bytes)),
            };
            let mut like_it = Constraints {
                log_n,
                omega: Fr::get_root_of_unity(1 << log_n).unwrap_or(Fr::ONE),
                shift: Fr::GENERATOR,
                values: vector(VALUES, bytes_of(&values), SCALAR_BYTES),
                witness: vector(SMALL, bytes_of(&witness), SCALAR_BYTES),
                coefficients: vector(of_a_row << log_n, coefficients.clone(), COEFFICIENT_BYTES),
                output: Box::new(|_: u64, _: &[u8]| Ok(())),
                disk_seconds: Box::new(|| 0.0),
            };
            let (done, seconds) =
                seconds(|| constraints::quotient(device, &mut like_it, budget, &mut Worth::always()));
            done?;
            *taken = seconds;
        }
    }
    let domain = Domain::new(LOG_LARGE, Fr::get_root_of_unity(LARGE).unwrap_or(Fr::ONE))?;
    let ((), processor) = seconds(|| {
        let mut rows = vec![[Fr::ZERO; 2]; LARGE as usize];
        rows.par_iter_mut().enumerate().for_each(|(row, sums)| {
            for index in row as u64 * of_a_row..(row as u64 + 1) * of_a_row {
                let [_, signal, value, matrix] = coefficient(index, of_a_row).map(|word| word as usize);
                sums[matrix] += values[value] * witness[signal];
            }
        });
        let mut column: Vec<Fr> = rows.into_iter().map(|[a, b]| a * b).collect();
        // Each of three there and back.
        (0..6).for_each(|_| domain.forward(&mut column));
    });
    let rates = JobRates::of([LOG_SMALL, LOG_LARGE].map(transform_work), on_device, processor);
    tracing::debug!(?rates, of_a_row, "rates of constraints");
    Ok(rates)
}

/// Ends in memory: every row is the same, and results are dropped.
struct SameRows<'a>(&'a [u8]);

impl InTiles for SameRows<'_> {
    fn lease_bytes(&self) -> u64 {
        0
    }

    fn ends(&mut self, _: Tiles) -> spillproof_engine::Result<TileEnds<'_>> {
        let row = self.0;
        Ok(TileEnds {
            input: Box::new(move |_: u64, into: &mut [u8]| {
                into.chunks_mut(row.len())
                    .for_each(|into| into.copy_from_slice(&row[..into.len()]));
                Ok(())
            }),
            output: Box::new(|_: u64, _: &[u8]| Ok(())),
        })
    }
}

fn measure_quotients(device: &mut Device, job: &CosetRequest<'_>, budget: &Budget) -> Result<JobRates, Stop> {
    let threads = rayon::current_num_threads();
    let register_scalars = job.program.registers * BLOCK_ROWS / 8 * SCALARS_PER_EIGHT;
    let _lease = budget.lease(
        3 * LARGE * SCALAR_BYTES + (threads * register_scalars) as u64 * SCALAR_BYTES,
        "rates of quotients",
    )?;
    let root = |log_n: u32| Fr::get_root_of_unity(1 << log_n).unwrap_or(Fr::ONE);
    let mut values = scalars(LARGE);
    let mut on_device = [0.0; 2];
    for (log_n, taken) in [LOG_SMALL, LOG_LARGE].into_iter().zip(&mut on_device) {
        let log_columns = log_n.div_ceil(2);
        let row = bytes_of(&values[..1 << log_columns]);
        // The first run compiles the program.
        for _ in 0..2 {
            let mut like_it = Coset {
                log_rows: log_n - log_columns,
                log_columns,
                omega: root(log_n),
                shift: Fr::GENERATOR,
                scale: Fr::ONE,
                program: job.program,
                inputs: job.inputs.to_vec(),
                in_tiles: Box::new(SameRows(&row)),
            };
            let (done, seconds) =
                seconds(|| quotient::compute(device, &mut like_it, budget, &mut Worth::always()));
            done?;
            *taken = seconds;
        }
    }
    let log_columns = LOG_LARGE.div_ceil(2);
    let (program, twiddles) = (job.program, Twiddles::new(log_columns, root(log_columns))?);
    let mut result = vec![Fr::ZERO; values.len()];
    let ((), processor) = seconds(|| {
        // The rows of each column forward, and the rows of the quotient back.
        let read = job.inputs.iter().filter(|input| input.rows == RowSource::Read);
        for _ in 0..=read.count() {
            each_row(values.chunks_mut(1 << log_columns).collect(), &twiddles);
        }
        let share = values.len().div_ceil(threads).next_multiple_of(BLOCK_ROWS);
        let shares = values.par_chunks(share).zip(result.par_chunks_mut(share));
        shares.for_each(|(values, result)| {
            let mut registers = vec![Fr::ZERO; register_scalars];
            let inputs = vec![values; program.queries.len()];
            let evaluation = Evaluation {
                instructions: program.instructions,
                inputs: &inputs,
                outputs: &mut [result],
                registers: &mut registers,
                register_count: program.registers,
            };
            evaluation.run(Backend::detect());
        });
    });
    let rates = JobRates::of([SMALL as f64, LARGE as f64], on_device, processor);
    tracing::debug!(?rates, "rates of quotients");
    Ok(rates)
}
