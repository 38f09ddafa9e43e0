//! Whole transforms: in device memory, or in two steps if they do not fit the budget of device memory.
//!
//! In two steps the data crosses to the device twice and to the disk once more, through the ends of
//! [`spillproof_engine::accelerator::InSteps`], which gather and scatter the lines of chunks. A panel, of a transform
//! that ranks share, crosses once.

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, Field};
use spillproof_engine::accelerator::{
    Half, Matrix, Panel, ReadElements, ReadWriteElements, Transform, WriteElements,
};
use spillproof_engine::budget::Budget;

use super::device::Device;
use super::rates::{Reads, Worth, seconds};
use super::slots::JobSlots;
use super::stop::Stop;
use crate::ntt::{self, MemoryElements, NttMethod, NttPlan, NttSpec, PanelPlan};

/// The plan of a transform of 2^`log_n` elements.
pub(super) fn plan(device: &mut Device, log_n: u32, budget: &Budget) -> Result<NttPlan, Stop> {
    let slot_bytes = device.slots.slot_bytes_max(budget, true);
    Ok(NttPlan::new(log_n, device.vram_bytes()?, slot_bytes)?)
}

/// The matrix of a transform in two steps; `None` for a whole one.
pub(super) fn matrix(plan: &NttPlan) -> Option<Matrix> {
    match plan.method() {
        NttMethod::InDeviceMemory => None,
        NttMethod::TwoSteps { log_rows } => Some(Matrix {
            log_rows,
            log_columns: plan.log_n() - log_rows,
            log_chunk: plan.chunk_elements().ilog2(),
        }),
    }
}

/// A transform, and how it is cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct NttJob {
    pub plan: NttPlan,
    pub transform: NttSpec,
}

/// Does the whole job. `begun` says how another device that failed has begun it, since the output must be
/// written in one way.
pub(super) fn transform(
    device: &mut Device,
    job: &mut Transform<'_>,
    budget: &Budget,
    begun: &mut Option<bool>,
    worth: &mut Worth,
) -> Result<(), Stop> {
    let transform = spec_of(job)?;
    let plan = plan(device, job.log_n, budget)?;
    let matrix = matrix(&plan);
    let is_whole = matrix.is_none();
    if *begun.get_or_insert(is_whole) != is_whole {
        return Err(Stop::Declined(
            "a device failed at the transform, and the next one lacks the memory to do it in the same way"
                .into(),
        ));
    }
    let mut slots = device.slots.take(budget, plan.slot_bytes(), true)?;
    let planned = NttJob { plan, transform };
    let by_the_processor = match worth.is_asked() {
        true => job.in_steps.disk_seconds(),
        false => 0.0,
    };
    let is_done = match matrix {
        None => {
            let mut no_steps = no_steps_between();
            let ends = Ends {
                from: &mut *job.input,
                between: &mut no_steps,
                to: &mut *job.output,
                first_bytes: 0,
                by_the_processor,
            };
            transform_elements(device, &mut slots, planned, ends, worth)?
        }
        Some(matrix) => {
            let first_bytes = matrix.tile_bytes(budget.available_bytes());
            let mut ends = job.in_steps.ends(matrix)?;
            let ends = Ends {
                from: &mut *ends.input,
                between: &mut *ends.between,
                to: &mut *ends.output,
                first_bytes,
                by_the_processor,
            };
            transform_elements(device, &mut slots, planned, ends, worth)?
        }
    };
    device.slots.keep(slots);
    match is_done {
        true => Ok(()),
        false => Err(Stop::slow_reads("the elements of a transform")),
    }
}

/// The plan of a panel of so many rows and columns.
pub(super) fn plan_of_panel(
    device: &mut Device,
    log_lengths: [u32; 2],
    halves: &[Half],
    budget: &Budget,
) -> Result<PanelPlan, Stop> {
    let slot_bytes = device.slots.slot_bytes_max(budget, true);
    Ok(PanelPlan::new(
        log_lengths,
        halves,
        [device.vram_bytes()?, slot_bytes],
    )?)
}

/// Does a panel. `is_begun` says whether another device has begun it: what that one has written is not read again.
pub(super) fn panel(
    device: &mut Device,
    job: &mut Panel<'_>,
    budget: &Budget,
    is_begun: &mut bool,
) -> Result<(), Stop> {
    if *is_begun {
        return Err(Stop::Declined(
            "a device failed at a panel, of which some is written".into(),
        ));
    }
    let plan = plan_of_panel(device, [job.log_rows, job.log_columns], &job.halves, budget)?;
    let mut slots = device.slots.take(budget, plan.slot_bytes(), true)?;
    let gpu = device.gpu().clone();
    let _turn = gpu.take_turn();
    let ntt = device.panel(plan, &job.halves)?;
    let slots_of_both = slots.both_ways()?;
    *is_begun = true;
    ntt.run(slots_of_both, job.first_column, &mut *job.input, &mut *job.output)?;
    device.slots.keep(slots);
    Ok(())
}

/// The ends of a transform.
pub(super) struct Ends<'e> {
    pub from: &'e mut dyn ReadElements,
    pub between: &'e mut dyn ReadWriteElements,
    pub to: &'e mut dyn WriteElements,
    /// Bytes that are read before the first element comes.
    pub first_bytes: u64,
    /// Seconds in which the disk moves what the processor's own transform moves.
    pub by_the_processor: f64,
}

/// The elements between the steps of a transform that is done as a whole: none.
pub(super) fn no_steps_between() -> MemoryElements {
    MemoryElements::of_bn254(Vec::new())
}

/// Transforms elements by a plan; `false` if it turned out not to be worth it.
pub(super) fn transform_elements(
    device: &mut Device,
    slots: &mut JobSlots,
    job: NttJob,
    ends: Ends<'_>,
    worth: &mut Worth,
) -> Result<bool, Stop> {
    tracing::debug!(plan = ?job.plan, "transform on the device");
    let gpu = device.gpu().clone();
    let is_whole = job.plan.method() == NttMethod::InDeviceMemory;
    let there = match is_whole && device.columns.find(ends.from, job.plan.total_bytes()).is_some() {
        true => {
            // The job may need the memory of the column.
            let _turn = gpu.take_turn();
            device.ntt(job.plan, job.transform)?;
            device.columns.take(ends.from, job.plan.total_bytes())
        }
        false => None,
    };
    let (staged, seconds) = seconds(|| match there {
        Some(_) => Ok(0),
        None => ntt::stage(&job.plan, &mut slots.upload, ends.from),
    });
    // Each step reads all and writes all, before and behind the work of the device.
    let (steps, writing) = match job.plan.method() {
        _ if !worth.is_asked() => (0, 0.0),
        NttMethod::InDeviceMemory => (1, ends.to.disk_seconds_to_write()),
        NttMethod::TwoSteps { .. } => {
            let between = ends.between.disk_seconds_to_write();
            (2, between + ends.to.disk_seconds_to_write())
        }
    };
    let reads = Reads {
        seconds,
        sample_bytes: staged?.max(ends.first_bytes),
        total_bytes: match there {
            Some(_) => 0,
            None => steps * job.plan.total_bytes(),
        },
        writing,
        by_the_processor: ends.by_the_processor,
        is_beside: false,
    };
    if !worth.with_reads(reads) {
        slots.upload.unstage();
        if let Some((id, column)) = there {
            device.columns.keep(id, column);
        }
        return Ok(false);
    }
    let _turn = gpu.take_turn();
    let slots = slots.both_ways()?;
    let ntt = device.ntt(job.plan, job.transform)?;
    match there {
        Some((id, column)) => {
            ntt.transform_from(column.buffer(), slots.download, ends.to)?;
            device.columns.keep(id, column);
        }
        None => ntt.transform(slots, ends.from, ends.between, ends.to)?,
    }
    if is_whole
        && let Some(id) = ends.to.column_id()
        && let Some(mut column) = device.room_for_column(job.plan.total_bytes(), &[])
    {
        let ntt = device.ntt(job.plan, job.transform)?;
        ntt.exchange_elements(column.buffer_mut());
        device.columns.keep(id, column);
    }
    Ok(true)
}

/// The transform in this crate's type: forward, or inverse with 1 / n, on a coset or not.
fn spec_of(job: &Transform<'_>) -> Result<NttSpec, Stop> {
    let Transform {
        log_n,
        omega,
        before,
        after,
        scale,
        ..
    } = *job;
    let inverted = |value: Fr| {
        value
            .inverse()
            .ok_or_else(|| Stop::Declined("the root or the shift of the transform is 0".into()))
    };
    let n = Fr::from(2u64).pow([u64::from(log_n)]);
    let (transform, shift) = if after == Fr::ONE && scale == Fr::ONE {
        (NttSpec::by_root(omega, log_n)?, before)
    } else if before == Fr::ONE && scale * n == Fr::ONE {
        let transform = NttSpec::by_root(inverted(omega)?, log_n)?;
        (transform.inverse(), inverted(after)?)
    } else {
        return Err(Stop::Declined(
            "the transform is neither forward nor inverse".into(),
        ));
    };
    if shift == Fr::ZERO {
        return Err(Stop::Declined(
            "the root or the shift of the transform is 0".into(),
        ));
    }
    if shift == Fr::ONE {
        return Ok(transform);
    }
    Ok(transform.on_coset(shift)?)
}
