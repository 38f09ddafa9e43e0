//! A list of instructions over slices, on one thread: in lanes where there are any, else block by block.

use std::ops::Range;

use super::{Instruction, Operand, Operation, Target, run_in_lanes};
use crate::kernels::backend::Backend;
use crate::kernels::field::KernelField;

/// Runs `instructions` over all rows of `inputs` and `outputs`, all of one length. `registers` has room for `count` vectors of a block's
/// length, [`super::SCALARS_PER_EIGHT`] elements for eight values; it holds no field elements afterwards.
///
/// Panics if an input, an output or a register that is named is not there, if one is too short, or if the registers do not hold one row.
pub fn evaluate<F: KernelField>(
    instructions: &[Instruction<F>],
    inputs: &[&[F]],
    outputs: &mut [&mut [F]],
    registers: &mut [F],
    count: usize,
) {
    evaluate_on(Backend::detect(), instructions, inputs, outputs, registers, count);
}

/// As [`evaluate`], on this backend.
pub(super) fn evaluate_on<F: KernelField>(
    backend: Backend,
    instructions: &[Instruction<F>],
    inputs: &[&[F]],
    outputs: &mut [&mut [F]],
    registers: &mut [F],
    count: usize,
) {
    let len = outputs.first().map_or(0, |output| output.len());
    if len == 0 {
        return;
    }
    let block = registers.len().checked_div(count).unwrap_or(len);
    assert!(block > 0, "registers that hold one row");
    let done = run_in_lanes(backend, instructions, inputs, outputs, registers, count);
    for start in (done..len).step_by(block) {
        let rows = start..len.min(start + block);
        for instruction in instructions {
            run(instruction, inputs, outputs, registers, block, rows.clone());
        }
    }
}

#[inline(always)]
fn run<F: KernelField>(
    instruction: &Instruction<F>,
    inputs: &[&[F]],
    outputs: &mut [&mut [F]],
    registers: &mut [F],
    block: usize,
    rows: Range<usize>,
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
        Operation::Sum(a, b) => super::sum(to, get(*a), get(*b)),
        Operation::Difference(a, b) => super::difference(to, get(*a), get(*b)),
        Operation::Product(a, b) => super::product(to, get(*a), get(*b)),
        Operation::ScaledSum(a, factor, b) => super::scaled_sum(to, get(*a), factor, get(*b)),
        Operation::Square(a) => super::squared(to, get(*a)),
        Operation::Double(a) => super::doubled(to, get(*a)),
        Operation::Negated(a) => super::negated(to, get(*a)),
        Operation::Scaled(a, factor) => super::scaled(to, get(*a), factor),
        Operation::Shifted(a, shift) => super::shifted(to, get(*a), shift),
        Operation::Reflected(a, constant) => super::reflected(to, get(*a), constant),
        Operation::Copy(a) => to.copy_from_slice(get(*a)),
        Operation::Constant(value) => to.fill(*value),
    }
}
