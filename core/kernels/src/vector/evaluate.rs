//! A list of instructions over slices, on one thread: in lanes where there are any, else block by block.

use std::ops::Range;

use super::instruction::InLanes;
use super::{Instruction, Operand, Operation, Target};
use crate::backend::Backend;
use crate::field::KernelField;

/// Instructions, and the rows that they are run over.
pub struct Evaluation<'a, 'b, 'c, F> {
    /// What is done in each row, in order.
    pub instructions: &'a [Instruction<F>],
    /// All of the length of the outputs.
    pub inputs: &'a [&'b [F]],
    /// All of one length.
    pub outputs: &'a mut [&'c mut [F]],
    /// Room for as many vectors of a block's length as there are registers, [`super::SCALARS_PER_EIGHT`]
    /// elements for eight values. Holds no field elements afterwards.
    pub registers: &'a mut [F],
    /// Registers.
    pub register_count: usize,
}

impl<F: KernelField> Evaluation<'_, '_, '_, F> {
    /// Runs all instructions over all rows.
    ///
    /// Panics if an input, an output or a register that is named is not there, if one is too short, or if the
    /// registers do not hold one row.
    pub fn run(mut self, backend: Backend) {
        let len = self.outputs.first().map_or(0, |output| output.len());
        if len == 0 {
            return;
        }
        let block = self
            .registers
            .len()
            .checked_div(self.register_count)
            .unwrap_or(len);
        assert!(block > 0, "registers that hold one row");
        let done = F::run_instructions(backend, InLanes(&mut self)).unwrap_or(0);
        for start in (done..len).step_by(block) {
            let rows = start..len.min(start + block);
            for instruction in self.instructions {
                run(
                    instruction,
                    self.inputs,
                    self.outputs,
                    self.registers,
                    block,
                    rows.clone(),
                );
            }
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
