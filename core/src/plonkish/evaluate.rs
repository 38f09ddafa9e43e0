//! Running a program: block by block, on one thread or on all.

use rayon::prelude::*;

use super::program::Program;
use crate::kernels::field::KernelField;
use crate::kernels::vector::{self, Instruction, Operand, Operation, SCALARS_PER_EIGHT, Target};

/// Rows of a block, where the caller is free to choose: registers and operands of a few dozen instructions stay in the
/// caches.
pub const BLOCK_ROWS: usize = 256;

impl<F: KernelField> Program<F> {
    /// Computes the outputs, row by row, on this thread.
    ///
    /// `inputs` has one slice for each of [`Self::queries`], `outputs` one for each output, all of one length; `registers`
    /// has room for [`Self::registers`] vectors of a block's length, and so says what a block is: any length does.
    /// Panics if there are too few slices or one is too short, or if the registers do not hold one row.
    pub fn evaluate(&self, inputs: &[&[F]], outputs: &mut [&mut [F]], registers: &mut [F]) {
        assert_eq!(inputs.len(), self.queries.len(), "one input for each query");
        assert_eq!(outputs.len(), self.outputs, "one slice for each output");
        let len = outputs.first().map_or(0, |output| output.len());
        if len == 0 {
            return;
        }
        let block = match self.registers {
            0 => len,
            registers_needed => registers.len() / registers_needed,
        };
        assert!(block > 0, "registers that hold one row");
        let done = vector::run_in_lanes(&self.instructions, inputs, outputs, registers, self.registers);
        for start in (done..len).step_by(block) {
            let rows = start..len.min(start + block);
            for instruction in &self.instructions {
                run(instruction, inputs, outputs, registers, block, rows.clone());
            }
        }
    }

    /// As [`Self::evaluate`], with the rows shared among the parts of `registers`, of `part` scalars each, on the rayon
    /// pool.
    pub(super) fn evaluate_parallel(
        &self,
        inputs: &[&[F]],
        outputs: &mut [&mut [F]],
        registers: &mut [F],
        part: usize,
    ) {
        let len = outputs.first().map_or(0, |output| output.len());
        let parts = registers.len().checked_div(part).unwrap_or(1).max(1);
        let rows = len.div_ceil(parts).next_multiple_of(64);
        let mut jobs = Vec::with_capacity(parts);
        let mut rest: Vec<&mut [F]> = outputs.iter_mut().map(|output| &mut **output).collect();
        let mut registers = registers;
        for start in (0..len).step_by(rows.max(1)) {
            let here = rows.min(len - start);
            let (now, later): (Vec<_>, Vec<_>) =
                rest.into_iter().map(|output| output.split_at_mut(here)).unzip();
            rest = later;
            let (mine, others) = registers.split_at_mut(part.min(registers.len()));
            registers = others;
            jobs.push((start, here, now, mine));
        }
        jobs.into_par_iter()
            .for_each(|(start, rows, mut outputs, registers)| {
                let inputs: Vec<&[F]> = inputs.iter().map(|input| &input[start..start + rows]).collect();
                self.evaluate(&inputs, &mut outputs, registers);
            });
    }
}

/// Registers of all threads together, in scalars, and of one.
pub(crate) fn register_scalars(registers: usize, threads: usize) -> (usize, usize) {
    let part = registers * (BLOCK_ROWS / 8 * SCALARS_PER_EIGHT);
    (part * threads.max(1), part)
}

#[inline(always)]
fn run<F: KernelField>(
    instruction: &Instruction<F>,
    inputs: &[&[F]],
    outputs: &mut [&mut [F]],
    registers: &mut [F],
    block: usize,
    rows: std::ops::Range<usize>,
) {
    let len = rows.len();
    let (before, to, after, register) = match instruction.to {
        Target::Register(register) => {
            let (before, rest) = registers.split_at_mut(register * block);
            let (to, after) = rest.split_at_mut(block);
            (&*before, &mut to[..len], &*after, register)
        }
        Target::Output(output) => (
            &*registers,
            &mut outputs[output][rows.clone()],
            &[][..],
            usize::MAX,
        ),
    };
    let get = |operand: Operand| match operand {
        Operand::Input(input) => &inputs[input][rows.clone()],
        Operand::Register(index) if index < register => &before[index * block..][..len],
        Operand::Register(index) => &after[(index - register - 1) * block..][..len],
    };
    match &instruction.operation {
        Operation::Sum(a, b) => vector::sum(to, get(*a), get(*b)),
        Operation::Difference(a, b) => vector::difference(to, get(*a), get(*b)),
        Operation::Product(a, b) => vector::product(to, get(*a), get(*b)),
        Operation::ScaledSum(a, factor, b) => vector::scaled_sum(to, get(*a), factor, get(*b)),
        Operation::Square(a) => vector::squared(to, get(*a)),
        Operation::Double(a) => vector::doubled(to, get(*a)),
        Operation::Negated(a) => vector::negated(to, get(*a)),
        Operation::Scaled(a, factor) => vector::scaled(to, get(*a), factor),
        Operation::Shifted(a, shift) => vector::shifted(to, get(*a), shift),
        Operation::Reflected(a, constant) => vector::reflected(to, get(*a), constant),
        Operation::Copy(a) => to.copy_from_slice(get(*a)),
        Operation::Constant(value) => to.fill(*value),
    }
}
