//! Cosets of a quotient: the program is compiled once for all cosets, and for all programs of its shape.
//!
//! Memory of the host: [`UPLOAD_SLOTS`] and [`DOWNLOAD_SLOTS`] slots of a chunk, beside the leases of the
//! job's ends. A slot is a power of two, at most a sixth of the bytes that the ends leave. Rows are gathered
//! from many columns, so they are copied into the slots.

use ark_bn254::Fr;
use spillproof_engine::accelerator::{Coset, Input, Program, Tiles};
use spillproof_engine::budget::Budget;
use spillproof_kernels::vector;

use super::device::Device;
use super::rates::{Reads, Worth, seconds};
use super::slots::{DOWNLOAD_SLOTS, UPLOAD_SLOTS};
use super::stop::Stop;
use crate::error::{BoxedError, Error, Values};
use crate::program::{DeviceProgram, Instruction, Operand, Operation, ProgramKernels, Query, Target};
use crate::quotient::{CosetConstants, CosetPlan, CosetShape, DeviceCoset, element_at};

/// The free memory of the host is divided by this, for slots.
const PARTS: u64 = (UPLOAD_SLOTS + DOWNLOAD_SLOTS + 1) as u64;

/// A coset job without its ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct CosetRequest<'a> {
    pub log_rows: u32,
    pub log_columns: u32,
    pub program: Program<'a>,
    pub inputs: &'a [Input],
    /// Bytes that the ends of the job lease.
    pub ends_bytes: u64,
}

impl<'a> CosetRequest<'a> {
    pub fn of(job: &'a Coset<'_>) -> Self {
        Self {
            log_rows: job.log_rows,
            log_columns: job.log_columns,
            program: job.program,
            inputs: &job.inputs,
            ends_bytes: job.in_tiles.lease_bytes(),
        }
    }

    /// log2 of the elements of a column.
    pub fn log_n(&self) -> u32 {
        self.log_rows + self.log_columns
    }
}

/// The plan of a coset, and the kernels of its program, which is compiled now if need be.
pub(super) fn plan(
    device: &mut Device,
    coset: &CosetRequest<'_>,
    budget: &Budget,
) -> Result<(ProgramKernels, CosetPlan), Stop> {
    let kernels = device.program_kernels(program_of(&coset.program)?)?;
    let left_bytes = budget.available_bytes().saturating_sub(coset.ends_bytes);
    let slot_bytes = device.slots.slot_bytes_within(left_bytes / PARTS, true);
    let shape = CosetShape {
        log_rows: coset.log_rows,
        log_columns: coset.log_columns,
        inputs: coset.inputs.to_vec(),
    };
    let plan = CosetPlan::new(&shape, &kernels, device.vram_bytes()?, slot_bytes)?;
    Ok((kernels, plan))
}

/// Does the whole job.
pub(super) fn compute(
    device: &mut Device,
    job: &mut Coset<'_>,
    budget: &Budget,
    worth: &mut Worth,
) -> Result<(), Stop> {
    let (program, plan) = plan(device, &CosetRequest::of(job), budget)?;
    tracing::debug!(?plan, method = ?program.method(), "a quotient on the device");
    let constants = CosetConstants {
        omega: job.omega,
        shift: job.shift,
        scale: job.scale,
    };
    let mut slots = device.slots.take(budget, plan.slot_bytes(), true)?;
    let by_the_processor = match worth.is_asked() {
        true => job.in_tiles.disk_seconds(),
        false => 0.0,
    };
    let mut ends = job.in_tiles.ends(Tiles {
        log_tile_rows: plan.log_tile_rows(),
        chunk_rows: plan.chunk_rows(),
    })?;
    let writing = match worth.is_asked() {
        true => ends.output.disk_seconds_to_write(),
        false => 0.0,
    };
    let mut source = |offset: u64, into: &mut [u8]| {
        ends.input
            .read(element_at(offset), into)
            .map_err(BoxedError::from)
    };
    let mut sink = |offset: u64, bytes: &[u8]| {
        ends.output
            .write(element_at(offset), bytes)
            .map_err(BoxedError::from)
    };
    let (chunking, total_bytes) = DeviceCoset::chunking(&plan)?;
    let (staged, seconds) = seconds(|| slots.upload.stage(&chunking, total_bytes, &mut source));
    let reads = Reads {
        seconds,
        sample_bytes: staged?,
        total_bytes,
        writing,
        by_the_processor,
        is_beside: true,
    };
    if !worth.with_reads(reads) {
        slots.upload.unstage();
        device.slots.keep(slots);
        return Err(Stop::slow_reads("the columns of a quotient"));
    }
    let download = slots.download.as_mut().ok_or(Error::Unusable {
        what: "a job without slots for its download",
    })?;
    let gpu = device.gpu().clone();
    let _turn = gpu.take_turn();
    let mut on_coset = device.making_room(|vram, kernels| {
        DeviceCoset::new(vram, kernels, program.clone(), plan.clone(), constants)
    })?;
    on_coset.compute(&mut slots.upload, download, &mut source, &mut sink)?;
    device.slots.keep(slots);
    Ok(())
}

/// The program in this crate's types. Each use of a constant has a number of its own, so the shape does not
/// depend on which constants are equal.
pub(super) fn program_of(program: &Program<'_>) -> Result<DeviceProgram, Error> {
    let number = |number: usize| {
        u32::try_from(number).map_err(|_| Values::TooLong {
            what: "numbers of a constraint program".into(),
            given: number as u64,
            limit: u64::from(u32::MAX),
        })
    };
    let operand = |operand: vector::Operand| {
        Ok::<Operand, Error>(match operand {
            vector::Operand::Input(index) => Operand::Query(number(index)?),
            vector::Operand::Register(index) => Operand::Register(number(index)?),
        })
    };
    let mut constants = Vec::new();
    let mut constant = |value: &Fr| {
        let index = number(constants.len() / 32)?;
        constants.extend(value.0.0.into_iter().flat_map(u64::to_le_bytes));
        Ok::<u32, Error>(index)
    };
    let mut instructions = Vec::with_capacity(program.instructions.len());
    for instruction in program.instructions {
        use vector::Operation as From;
        let operation = match &instruction.operation {
            From::Sum(a, b) => Operation::Sum(operand(*a)?, operand(*b)?),
            From::Difference(a, b) => Operation::Difference(operand(*a)?, operand(*b)?),
            From::Product(a, b) => Operation::Product(operand(*a)?, operand(*b)?),
            From::ScaledSum(a, factor, b) => {
                Operation::ScaledSum(operand(*a)?, constant(factor)?, operand(*b)?)
            }
            From::Square(a) => Operation::Square(operand(*a)?),
            From::Double(a) => Operation::Double(operand(*a)?),
            From::Negated(a) => Operation::Negated(operand(*a)?),
            From::Scaled(a, factor) => Operation::Scaled(operand(*a)?, constant(factor)?),
            From::Shifted(a, shift) => Operation::Shifted(operand(*a)?, constant(shift)?),
            From::Reflected(a, value) => Operation::Reflected(operand(*a)?, constant(value)?),
            From::Copy(a) => Operation::Copy(operand(*a)?),
            From::Constant(value) => Operation::Constant(constant(value)?),
        };
        let to = match instruction.to {
            vector::Target::Register(index) => Target::Register(number(index)?),
            vector::Target::Output(index) => Target::Output(number(index)?),
        };
        instructions.push(Instruction { operation, to });
    }
    let queries = program.queries.iter().map(|&(column, rotation)| {
        Ok(Query {
            column: number(column)?,
            rotation,
        })
    });
    let queries = queries.collect::<Result<Vec<Query>, Error>>()?;
    DeviceProgram::new(instructions, constants, queries, 1)
}
