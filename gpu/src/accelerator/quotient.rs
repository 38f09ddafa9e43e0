//! Cosets of a quotient: the program is compiled once for all cosets, and for all programs of its shape.
//!
//! Memory of the host: [`UPLOAD_SLOTS`] and [`DOWNLOAD_SLOTS`] slots of a chunk, beside the leases of the
//! job's ends. A slot is a power of two, at most a sixth of the bytes that the ends leave. Rows are gathered
//! from many columns, so they are copied into the slots.

use ark_bn254::Fr;
use spillproof_engine::accelerator::{Arrivals, ColumnId, Coset, Input, Program, ReadElements, Tiles};
use spillproof_engine::budget::{Budget, Lent};
use spillproof_kernels::vector;

use super::columns::column_of;
use super::device::Device;
use super::rates::{Reads, Worth, seconds};
use super::slots::{DOWNLOAD_SLOTS, UPLOAD_SLOTS};
use super::stop::Stop;
use crate::error::{BoxedError, Error, Values};
use crate::program::{DeviceProgram, Instruction, Operand, Operation, ProgramKernels, Query, Target};
use crate::quotient::{CosetConstants, CosetPlan, CosetShape, DeviceCoset, InputColumn, element_at};
use crate::ring::Source;

/// The free memory of the host is divided by this, for slots.
const PARTS: u64 = (UPLOAD_SLOTS + DOWNLOAD_SLOTS + 1) as u64;

/// What is read for a job.
const WHAT: &str = "the columns of a quotient";

/// A coset job without its ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct CosetRequest<'a> {
    pub log_rows: u32,
    pub log_columns: u32,
    pub program: Program<'a>,
    pub inputs: &'a [Input],
    /// Bytes that the ends of the job lease.
    pub ends_bytes: u64,
    /// Whether the device gets coefficients, and makes the rows.
    pub of_coefficients: bool,
}

impl<'a> CosetRequest<'a> {
    pub fn of(job: &'a Coset<'_>) -> Self {
        Self {
            log_rows: job.log_rows,
            log_columns: job.log_columns,
            program: job.program,
            inputs: &job.inputs,
            ends_bytes: job.in_tiles.lease_bytes(),
            of_coefficients: false,
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
        of_coefficients: coset.of_coefficients,
    };
    let vram_bytes = device.vram_bytes()?;
    let plan = |vram_bytes| CosetPlan::new(&shape, &kernels, vram_bytes, slot_bytes);
    // Smaller tiles cost less than columns that cross again.
    let plan = match plan(vram_bytes.saturating_sub(shape.columns_bytes())) {
        Err(error) if error.is_memory_short() => plan(vram_bytes)?,
        beside_columns => beside_columns?,
    };
    Ok((kernels, plan))
}

/// What of a job differs from coset to coset.
fn constants_of(job: &Coset<'_>) -> CosetConstants {
    CosetConstants {
        omega: job.omega,
        shift: job.shift,
        scale: job.scale,
    }
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
    let constants = constants_of(job);
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
    let mut slots = device.slots.worth_its_reads(slots, reads, worth, WHAT)?;
    let gpu = device.gpu().clone();
    let _turn = gpu.take_turn();
    let mut on_coset = device.making_room(|vram, kernels| {
        DeviceCoset::new(vram, kernels, program.clone(), plan.clone(), constants)
    })?;
    let ends = slots.both_ways()?;
    on_coset.compute(ends.upload, ends.download, &mut source, &mut sink)?;
    device.slots.keep(slots);
    Ok(())
}

/// The coefficients that come from the host, one column after the other.
struct Coming<'c, 'a> {
    columns: Vec<&'c mut (dyn ReadElements + 'a)>,
    column_bytes: u64,
}

impl Source for Coming<'_, '_> {
    fn begin(&mut self, offset: u64, mut into: Lent) -> Result<Arrivals, BoxedError> {
        let mut arrivals = Arrivals::default();
        let mut offset = offset;
        while !into.is_empty() {
            let (nth, at) = (offset / self.column_bytes, offset % self.column_bytes);
            let bytes = (self.column_bytes - at).min(into.len() as u64);
            let column = self.columns.get_mut(nth as usize);
            let column = column.ok_or("there are fewer columns of coefficients")?;
            arrivals.append(column.begin(element_at(at), into.take_first(bytes as usize))?);
            offset += bytes;
        }
        Ok(arrivals)
    }
}

/// Does the whole job from the coefficients of the inputs that are read. A column that stayed on the device does not
/// cross again. A column that crosses stays if there is room.
pub(super) fn compute_of(
    device: &mut Device,
    job: &mut Coset<'_>,
    inputs: &mut [Box<dyn ReadElements + '_>],
    budget: &Budget,
    worth: &mut Worth,
) -> Result<(), Stop> {
    // Rows need less memory.
    let short = |stop| match stop {
        Stop::Device(error) if error.is_memory_short() => Stop::Declined(error.to_string()),
        stop => stop,
    };
    let request = CosetRequest {
        of_coefficients: true,
        ..CosetRequest::of(job)
    };
    let (program, plan) = plan(device, &request, budget).map_err(short)?;
    if inputs.len() as u64 != plan.shape().columns_read() {
        return Err(Stop::Declined("the coefficients are of other inputs".into()));
    }
    tracing::debug!(?plan, method = ?program.method(), "a quotient of coefficients on the device");
    let constants = constants_of(job);
    let gpu = device.gpu().clone();
    let column_bytes = plan.column_bytes();
    let id_of = |input: &dyn ReadElements| column_of(input, column_bytes);
    let ids: Vec<ColumnId> = inputs.iter().filter_map(|input| id_of(&**input)).collect();
    // Before the job, whose drop waits for copies to them.
    let mut kept = Vec::new();
    let mut on_coset = {
        let _turn = gpu.take_turn();
        let made = device.making_room(|vram, kernels| {
            DeviceCoset::new(vram, kernels, program.clone(), plan.clone(), constants)
        });
        made.map_err(Stop::from).map_err(short)?
    };
    for input in inputs.iter() {
        if let Some(id) = id_of(&**input)
            && device.columns.find(&**input, column_bytes).is_none()
            && kept.iter().all(|(other, _)| *other != id)
            && let Some(column) = device.room_for_column(column_bytes, &ids)
        {
            kept.push((id, column));
        }
    }
    let mut slots = device.slots.take(budget, plan.slot_bytes(), true)?;
    let by_the_processor = match worth.is_asked() {
        true => {
            let reading = inputs.iter().map(|input| input.disk_seconds_to_read());
            reading.sum::<f64>() + job.in_tiles.disk_seconds()
        }
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
    let mut sink = |offset: u64, bytes: &[u8]| {
        ends.output
            .write(element_at(offset), bytes)
            .map_err(BoxedError::from)
    };
    let (mut columns, mut coming) = (Vec::new(), Vec::new());
    let mut room = kept
        .iter()
        .map(|(id, column)| (*id, column.buffer()))
        .collect::<Vec<_>>();
    for input in inputs {
        columns.push(match device.columns.find(&**input, column_bytes) {
            Some(there) => InputColumn::There(there),
            None => {
                let id = id_of(&**input);
                let of_this = room.iter().position(|(of, _)| Some(*of) == id);
                coming.push(&mut **input);
                InputColumn::Comes(of_this.map(|at| room.swap_remove(at).1))
            }
        });
    }
    let (chunking, _) = DeviceCoset::chunking(&plan)?;
    let total_bytes = coming.len() as u64 * column_bytes;
    let mut source = Coming {
        columns: coming,
        column_bytes,
    };
    let (staged, seconds) = seconds(|| match total_bytes {
        0 => Ok(0),
        bytes => slots.upload.stage(&chunking, bytes, &mut source),
    });
    let reads = Reads {
        seconds,
        sample_bytes: staged?,
        total_bytes,
        writing,
        by_the_processor,
        is_beside: true,
    };
    let mut slots = device.slots.worth_its_reads(slots, reads, worth, WHAT)?;
    let turn = gpu.take_turn();
    let ends = slots.both_ways()?;
    on_coset.compute_of(ends.upload, ends.download, (&columns, &mut source), &mut sink)?;
    drop((on_coset, turn));
    for (id, column) in kept {
        device.columns.keep(id, column);
    }
    device.columns.used(&ids);
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
