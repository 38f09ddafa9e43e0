//! Instructions over slices, and running a list of them in eight lanes. One thread, memory: the caller's registers.
//!
//! In lanes, values come in once an instruction that reads a column, and stay in lanes in registers, of five words an element
//! where a column has four. They are in Montgomery form with R = 2^260 there: loading a native value shifts it by four bits,
//! and an output is multiplied by 2^-4.
//!
//! Bounds, for a prime with 63 p < 2^260: every operand and every register is carried and below 16 p. So a product is below
//! `256 p / 63 + 2 p < 7 p` ([`crate::kernels::lanes::field`]); with a summand it is below 23 p, and sums and differences plus 16 p
//! are below 32 p: those are lowered, to less than 5 p.

use crate::kernels::field::KernelField;

/// Where an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// By index of the input.
    Input(usize),
    /// By index of the register.
    Register(usize),
}

/// What is computed.
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
    /// What is computed.
    pub operation: Operation<F>,
    /// Where it goes.
    pub to: Target,
}

/// Elements' room that eight values take in lanes.
pub const SCALARS_PER_EIGHT: usize = 10;

/// Runs `instructions` over the first rows of `inputs` and `outputs`, all of one length, in eight lanes; gives the number of rows
/// done: all but the last few, or none where there are no lanes. `registers` has room for `count` vectors of at least eight
/// values in lanes, [`SCALARS_PER_EIGHT`] each, or nothing is done. What it holds afterwards are no field elements.
pub fn run_in_lanes<F: KernelField>(
    instructions: &[Instruction<F>],
    inputs: &[&[F]],
    outputs: &mut [&mut [F]],
    registers: &mut [F],
    count: usize,
) -> usize {
    #[cfg(target_arch = "x86_64")]
    return lanes::run(instructions, inputs, outputs, registers, count);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (instructions, inputs, outputs, registers, count);
        0
    }
}

#[cfg(target_arch = "x86_64")]
mod lanes {
    use super::{Instruction, Operand, Operation, SCALARS_PER_EIGHT, Target};
    use crate::kernels::field::KernelField;
    use crate::kernels::lanes::field::{Eight, Lanes};
    use crate::kernels::lanes::{Ifma, Kernel};
    use crate::kernels::platform::Platform;

    const LANES: usize = 8;

    struct Block<'a, 'b, 'c, F> {
        lanes: Lanes<F>,
        instructions: &'a [Instruction<F>],
        inputs: &'a [&'b [F]],
        outputs: &'a mut [&'c mut [F]],
        registers: &'a mut [F],
        /// Vectors of eight in a register.
        vectors: usize,
        /// Rows, whole eights, and the first of them.
        rows: std::ops::Range<usize>,
    }

    impl<F: KernelField> Block<'_, '_, '_, F> {
        #[inline(always)]
        fn get(&self, operand: Operand, vector: usize) -> Eight {
            match operand {
                Operand::Input(input) => {
                    let values = &self.inputs[input][self.rows.start + vector * LANES..];
                    self.lanes.unpack_sixteenfold(&self.lanes.gather_run(values))
                }
                Operand::Register(register) => self
                    .lanes
                    .load_words(&self.registers[(register * self.vectors + vector) * SCALARS_PER_EIGHT..]),
            }
        }

        /// Sixteen times a constant: in the form that values have here.
        #[inline(always)]
        fn constant(&self, value: &F) -> Eight {
            self.lanes.splat(&value.times(&F::from(16u64)))
        }
    }

    impl<F: KernelField> Kernel for Block<'_, '_, '_, F> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            let lanes = self.lanes;
            let here = self.rows.len() / LANES;
            let to_native = lanes.splat(&F::ONE);
            for instruction in self.instructions {
                let (a, b, constant) = match instruction.operation {
                    Operation::Sum(a, b) | Operation::Difference(a, b) | Operation::Product(a, b) => {
                        (Some(a), Some(b), F::ZERO)
                    }
                    Operation::ScaledSum(a, constant, b) => (Some(a), Some(b), constant),
                    Operation::Scaled(a, constant)
                    | Operation::Shifted(a, constant)
                    | Operation::Reflected(a, constant) => (Some(a), None, constant),
                    Operation::Square(a)
                    | Operation::Double(a)
                    | Operation::Negated(a)
                    | Operation::Copy(a) => (Some(a), None, F::ZERO),
                    Operation::Constant(constant) => (None, None, constant),
                };
                let constant = self.constant(&constant);
                for vector in 0..here {
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
                            let at = (register * self.vectors + vector) * SCALARS_PER_EIGHT;
                            lanes.store_words(&value, &mut self.registers[at..]);
                        }
                        Target::Output(output) => {
                            let value = lanes.settled(lanes.product(&value, &to_native));
                            let at = self.rows.start + vector * LANES;
                            lanes.store_run(&value, &mut self.outputs[output][at..]);
                        }
                    }
                }
            }
        }
    }

    /// See [`super::run_in_lanes`].
    pub(super) fn run<F: KernelField>(
        instructions: &[Instruction<F>],
        inputs: &[&[F]],
        outputs: &mut [&mut [F]],
        registers: &mut [F],
        count: usize,
    ) -> usize {
        let len = outputs.first().map_or(0, |output| output.len());
        let len = len - len % LANES;
        let vectors = match count {
            0 => len / LANES,
            count => (registers.len() / count / SCALARS_PER_EIGHT).min(len / LANES),
        };
        if Platform::detect() != Platform::Avx512Ifma
            || !F::RADIX_52.is_some_and(|constants| constants.roomy)
            || vectors == 0
        {
            return 0;
        }
        let Some(ifma) = Ifma::detect() else {
            return 0;
        };
        let Some(lanes) = Lanes::new(ifma) else {
            return 0;
        };
        for start in (0..len).step_by(vectors * LANES) {
            ifma.run(Block {
                lanes,
                instructions,
                inputs,
                outputs: &mut *outputs,
                registers: &mut *registers,
                vectors,
                rows: start..len.min(start + vectors * LANES),
            });
        }
        len
    }
}
