//! Instructions over slices, and running a list of them in wide lanes. One thread, memory: the caller's
//! registers.
//!
//! In lanes, values come in once an instruction that reads a column, and stay in lanes in registers, of five
//! words an element where a column has four. They are in the backend's own Montgomery form there: loading a
//! native value shifts it, and an output is multiplied by the native 1, which shifts it back.
//!
//! Bounds, for a prime with 32 p <= R: every operand and every register is carried and below 16 p. A native
//! value that was shifted by s bits is below `2^s p`, and lowered if that is 32 p. So a product is below
//! `256 p / 32 + 2 p = 10 p`; a constant's below 3 p, with a summand below 19 p, and sums and differences plus
//! 16 p are below 32 p: those are lowered, to less than 5 p.

use super::evaluate::Evaluation;
use crate::backend::{WideKernel, WideLanes};
use crate::field::KernelField;

/// Where an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// By index of the input.
    Input(usize),
    /// By index of the register.
    Register(usize),
}

/// A computation.
#[derive(Clone, Copy, Debug)]
pub enum Operation<F> {
    /// `a + b`.
    Sum(Operand, Operand),
    /// `a - b`.
    Difference(Operand, Operand),
    /// `a * b`.
    Product(Operand, Operand),
    /// The first times a constant, plus the second.
    ScaledSum(Operand, F, Operand),
    /// `a * a`.
    Square(Operand),
    /// `2 * a`.
    Double(Operand),
    /// `-a`.
    Negated(Operand),
    /// `a * constant`.
    Scaled(Operand, F),
    /// `a + constant`.
    Shifted(Operand, F),
    /// `constant - a`.
    Reflected(Operand, F),
    /// `a`.
    Copy(Operand),
    /// The constant, in every row.
    Constant(F),
}

/// Where a result goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// By index of the register.
    Register(usize),
    /// By index of the output.
    Output(usize),
}

/// One operation on vectors. A register that it writes is none of its operands'.
#[derive(Clone, Copy, Debug)]
pub struct Instruction<F> {
    /// The computation.
    pub operation: Operation<F>,
    /// Where it goes.
    pub to: Target,
}

/// Elements' room that eight values take in lanes.
pub const SCALARS_PER_EIGHT: usize = 10;

/// Native values that are shifted by no more bits are below the bound of operands as they are.
const SHIFT_MAX: u32 = 4;

/// Runs an evaluation over the first rows; gives the number of rows done: all but the last few, or none where
/// registers have no room for a vector.
pub struct InLanes<'e, 'a, 'b, 'c, F>(pub &'e mut Evaluation<'a, 'b, 'c, F>);

impl<F: KernelField> WideKernel<F> for InLanes<'_, '_, '_, '_, F> {
    type Output = usize;

    #[inline(always)]
    fn run<const W: usize, L: WideLanes<F, W>>(self, lanes: L) -> usize {
        let Evaluation {
            instructions,
            inputs,
            outputs,
            registers,
            register_count,
        } = self.0;
        let len = outputs.first().map_or(0, |output| output.len());
        let len = len - len % W;
        let vectors = match *register_count {
            0 => len / W,
            count => (registers.len() / count / L::SAVED_ELEMENTS).min(len / W),
        };
        if vectors == 0 {
            return 0;
        }
        for start in (0..len).step_by(vectors * W) {
            let mut block = Block {
                lanes,
                inputs,
                outputs,
                registers,
                vectors,
                start,
                here: vectors.min((len - start) / W),
            };
            for instruction in *instructions {
                block.run(instruction);
            }
        }
        len
    }
}

/// Rows whose values fit the registers.
struct Block<'a, 'b, 'c, F, L> {
    lanes: L,
    inputs: &'a [&'b [F]],
    outputs: &'a mut [&'c mut [F]],
    registers: &'a mut [F],
    /// Vectors in a register.
    vectors: usize,
    /// The first row.
    start: usize,
    /// Vectors of rows.
    here: usize,
}

impl<F: KernelField, L> Block<'_, '_, '_, F, L> {
    #[inline(always)]
    fn get<const W: usize>(&self, operand: Operand, vector: usize) -> L::Value
    where
        L: WideLanes<F, W>,
    {
        match operand {
            Operand::Input(input) => {
                let values = &self.inputs[input][self.start + vector * W..];
                let value = self.lanes.load_shifted(&values[..W]);
                match L::SHIFT > SHIFT_MAX {
                    true => self.lanes.sum_lowered(&value, &self.lanes.splat(&F::ZERO)),
                    false => value,
                }
            }
            Operand::Register(register) => {
                let at = (register * self.vectors + vector) * L::SAVED_ELEMENTS;
                self.lanes.restore(&self.registers[at..])
            }
        }
    }

    #[inline(always)]
    fn run<const W: usize>(&mut self, instruction: &Instruction<F>)
    where
        L: WideLanes<F, W>,
    {
        let lanes = self.lanes;
        let to_native = lanes.splat(&F::ONE);
        let (a, b, constant) = match instruction.operation {
            Operation::Sum(a, b) | Operation::Difference(a, b) | Operation::Product(a, b) => {
                (Some(a), Some(b), F::ZERO)
            }
            Operation::ScaledSum(a, constant, b) => (Some(a), Some(b), constant),
            Operation::Scaled(a, constant)
            | Operation::Shifted(a, constant)
            | Operation::Reflected(a, constant) => (Some(a), None, constant),
            Operation::Square(a) | Operation::Double(a) | Operation::Negated(a) | Operation::Copy(a) => {
                (Some(a), None, F::ZERO)
            }
            Operation::Constant(constant) => (None, None, constant),
        };
        // In the form that values have here.
        let constant = lanes.splat(&lanes.shifted(&constant));
        for vector in 0..self.here {
            let a = match a {
                Some(a) => self.get(a, vector),
                None => constant,
            };
            let b = match b {
                Some(b) => self.get(b, vector),
                None => a,
            };
            let value = match instruction.operation {
                Operation::Sum(..) | Operation::Double(_) => lanes.sum_lowered(&a, &b),
                Operation::Shifted(..) => lanes.sum_lowered(&a, &constant),
                Operation::Difference(..) => lanes.difference_lowered(&a, &b),
                Operation::Reflected(..) => lanes.difference_lowered(&constant, &a),
                Operation::Negated(_) => lanes.negative_lowered(&a),
                Operation::Product(..) | Operation::Square(_) => lanes.product(&a, &b),
                Operation::Scaled(..) => lanes.product(&a, &constant),
                Operation::ScaledSum(..) => lanes.sum_lowered(&lanes.product(&a, &constant), &b),
                Operation::Copy(_) | Operation::Constant(_) => a,
            };
            match instruction.to {
                Target::Register(register) => {
                    let at = (register * self.vectors + vector) * L::SAVED_ELEMENTS;
                    lanes.save(&value, &mut self.registers[at..]);
                }
                Target::Output(output) => {
                    let value = lanes.canonical(lanes.product(&value, &to_native));
                    let at = self.start + vector * W;
                    lanes.store(&value, &mut self.outputs[output][at..at + W]);
                }
            }
        }
    }
}
