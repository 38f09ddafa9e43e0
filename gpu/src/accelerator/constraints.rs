//! Quotients of rank-1 constraint systems: beside the points that stay, or not at all, since the processor and single
//! transforms do with less.
//!
//! Memory of the host: slots for both ways. The witness and the quotient stay where there is room.

use std::ops::Range;

use ark_bn254::Fr;
use ark_ff::{Field, Zero};
use spillproof_engine::accelerator::{Arrivals, COEFFICIENT_BYTES, Constraints, Scalars};
use spillproof_engine::budget::{Budget, Lent};

use super::columns::{KeptColumn, column_of};
use super::device::Device;
use super::rates::{Reads, Worth, seconds};
use super::stop::Stop;
use crate::constraints::{ConstraintsPlan, ConstraintsShape, DeviceConstraints};
use crate::error::BoxedError;
use crate::ntt::{ELEMENT_BYTES, NttSpec};
use crate::ring::Source;

/// The lengths of a job.
pub(super) fn shape_of(job: &Constraints<'_>) -> ConstraintsShape {
    ConstraintsShape {
        log_n: job.log_n,
        values: job.values.len,
        signals: job.witness.len,
        coefficients: job.coefficients.len,
    }
}

/// The plan of a job of these lengths.
pub(super) fn plan(
    device: &mut Device,
    shape: ConstraintsShape,
    budget: &Budget,
) -> Result<ConstraintsPlan, Stop> {
    let slot_bytes = device.slots.slot_bytes_max(budget, true);
    let vram_bytes = device.vram_bytes_beside_bases(None)?;
    // No failure: what is kept on the device stays.
    ConstraintsPlan::new(shape, vram_bytes, slot_bytes)
        .map_err(|error| Stop::Declined(device.slots.with_remedy(&error)))
}

/// Makes the quotient of a job, unless it turns out not to be worth it.
pub(super) fn quotient(
    device: &mut Device,
    job: &mut Constraints<'_>,
    budget: &Budget,
    worth: &mut Worth,
) -> Result<(), Stop> {
    let shape = shape_of(job);
    let plan = plan(device, shape, budget)?;
    if shape.values.min(shape.signals).min(shape.coefficients) == 0 || job.shift.is_zero() {
        return Err(Stop::Declined(
            "the constraints are empty, or the shift is 0".into(),
        ));
    }
    let transform = NttSpec::by_root(job.omega, job.log_n)?;
    let shift_back = job.shift.inverse().unwrap_or(Fr::ONE);
    let transforms = [transform.inverse().on_coset(shift_back)?, transform];
    let mut slots = device.slots.take(budget, plan.slot_bytes(), true)?;
    let id = column_of(&*job.witness.source, shape.witness_bytes());
    let there = device.columns.take(&*job.witness.source, shape.witness_bytes());
    let is_there = there.is_some();
    let sections = shape.sections(!is_there);
    let total_bytes = sections[2].end;
    let Constraints {
        values,
        witness,
        coefficients,
        output,
        disk_seconds,
        ..
    } = job;
    let mut feed = Feed {
        vectors: [values, witness, coefficients],
        sections,
    };
    let (staged, seconds) = seconds(|| {
        slots
            .upload
            .stage(&plan.chunking()?, total_bytes, &mut feed)
            .map_err(Stop::from)
    });
    let (writing, by_the_processor) = match worth.is_asked() {
        true => (output.disk_seconds_to_write(), disk_seconds()),
        false => (0.0, 0.0),
    };
    let reads = Reads {
        seconds,
        sample_bytes: staged?,
        total_bytes,
        writing,
        by_the_processor,
        is_beside: true,
    };
    let what = "the coefficients of constraints";
    let mut slots = match device.slots.worth_its_reads(slots, reads, worth, what) {
        Ok(slots) => slots,
        Err(stop) => {
            if let Some((id, witness)) = there {
                device.columns.keep(id, witness);
            }
            return Err(stop);
        }
    };
    tracing::debug!(?plan, is_there, "constraints on the device");
    let gpu = device.gpu().clone();
    let _turn = gpu.take_turn();
    let witness = match there {
        Some((_, witness)) => witness,
        None => device.making_room(|vram, _| KeptColumn::new(vram, shape.witness_bytes()))?,
    };
    let mut system =
        device.making_room(|vram, kernels| DeviceConstraints::new((vram, kernels), plan, transforms))?;
    let is_right = system.run(
        slots.both_ways()?,
        &mut feed,
        (witness.buffer(), is_there),
        &mut **output,
    )?;
    device.slots.keep(slots);
    if let Some(id) = id {
        device.columns.keep(id, witness);
    }
    if !is_right {
        return Err(Stop::Declined(
            "a coefficient is outside of the matrices, or out of order".into(),
        ));
    }
    if let Some(id) = output.column_id() {
        let quotient = KeptColumn::of(system.into_quotient(), &gpu);
        device.columns.keep(id, quotient);
    }
    Ok(())
}

/// What comes to the device: each vector in its section.
struct Feed<'f, 'a> {
    vectors: [&'f mut Scalars<'a>; 3],
    sections: [Range<u64>; 3],
}

impl Source for Feed<'_, '_> {
    fn begin(&mut self, offset: u64, mut into: Lent) -> Result<Arrivals, BoxedError> {
        let (mut arrivals, mut at) = (Arrivals::default(), offset);
        let element_bytes = [ELEMENT_BYTES, ELEMENT_BYTES, COEFFICIENT_BYTES];
        for ((section, vector), bytes) in self.sections.iter().zip(&mut self.vectors).zip(element_bytes) {
            // Between the sections there is nothing.
            let skipped = section.start.saturating_sub(at).min(into.len() as u64);
            into.take_first(skipped as usize).fill(0);
            at += skipped;
            let own = section.end.saturating_sub(at).min(into.len() as u64);
            if own > 0 {
                let first = (at - section.start) / bytes;
                arrivals.append(vector.source.begin(first, into.take_first(own as usize))?);
                at += own;
            }
        }
        Ok(arrivals)
    }
}
