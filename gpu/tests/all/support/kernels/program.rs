//! Random constraint programs, and what they should give.

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, Field, UniformRand};
use rand::Rng;
use rand_chacha::ChaCha20Rng;
use spillproof_gpu::program::{DeviceProgram, Instruction, Operand, Operation, Query, Target};
use spillproof_plonk::stages::{Builder, Value};

/// At the edges now and then.
fn element(rng: &mut ChaCha20Rng) -> Fr {
    match rng.gen_range(0..8) {
        0 => Fr::ZERO,
        1 => Fr::ONE,
        2 => -Fr::ONE,
        3 => Fr::from(2u64),
        _ => Fr::rand(rng),
    }
}

fn bytes(element: &Fr) -> impl Iterator<Item = u8> {
    super::words(element).into_iter().flat_map(u64::to_le_bytes)
}

/// A program over columns.
pub struct Random {
    pub columns: Vec<Vec<Fr>>,
    pub constants: Vec<Fr>,
    pub program: DeviceProgram,
}

/// What to make one of.
#[derive(Clone, Copy, Debug)]
pub struct ProgramShape {
    pub rows: usize,
    pub columns: usize,
    pub registers: u32,
    pub length: usize,
    pub outputs: u32,
    /// How far queries reach.
    pub rotations: i32,
}

impl Random {
    pub fn new(shape: ProgramShape, rng: &mut ChaCha20Rng) -> Self {
        let column = |rng: &mut ChaCha20Rng| (0..shape.rows).map(|_| element(rng)).collect();
        let columns = (0..shape.columns).map(|_| column(rng)).collect();
        let constants: Vec<Fr> = (0..7).map(|_| element(rng)).collect();
        let (mut queries, mut written, mut instructions) = (Vec::new(), Vec::new(), Vec::new());
        for step in 0..shape.length + shape.outputs as usize {
            let mut operand = |rng: &mut ChaCha20Rng| {
                if !written.is_empty() && rng.gen_range(0..3) > 0 {
                    return Operand::Register(written[rng.gen_range(0..written.len())]);
                }
                let far = shape.rotations.min(shape.rows as i32 - 1);
                let query = Query {
                    column: rng.gen_range(0..shape.columns as u32),
                    rotation: rng.gen_range(-far..=far),
                };
                let known = queries.iter().position(|known| *known == query);
                Operand::Query(known.unwrap_or_else(|| {
                    queries.push(query);
                    queries.len() - 1
                }) as u32)
            };
            let (mut a, b) = (operand(rng), operand(rng));
            // Or little of it would come to anything.
            if let (Some(&last), true) = (written.last(), rng.gen_range(0..4) > 0) {
                a = Operand::Register(last);
            }
            let constant = rng.gen_range(0..constants.len() as u32);
            // Seldom a constant: what came before it is lost.
            let operation = match rng
                .gen_range(0..100u32)
                .checked_sub(1)
                .map_or(11, |number| number % 11)
            {
                0 => Operation::Sum(a, b),
                1 => Operation::Difference(a, b),
                2 => Operation::Product(a, b),
                3 => Operation::ScaledSum(a, constant, b),
                4 => Operation::Square(a),
                5 => Operation::Double(a),
                6 => Operation::Negated(a),
                7 => Operation::Scaled(a, constant),
                8 => Operation::Shifted(a, constant),
                9 => Operation::Reflected(a, constant),
                10 => Operation::Copy(a),
                _ => Operation::Constant(constant),
            };
            let to = match step.checked_sub(shape.length) {
                Some(output) => Target::Output(output as u32),
                None => {
                    let register = rng.gen_range(0..shape.registers);
                    written.push(register);
                    Target::Register(register)
                }
            };
            instructions.push(Instruction { operation, to });
        }
        // All registers go into the first output, or most of the program would be for nothing.
        let first = instructions.len() - shape.outputs as usize;
        if let (Some(&sum), true) = (written.first(), shape.length > 1) {
            let all: std::collections::BTreeSet<u32> = written.iter().copied().collect();
            let folded = all.into_iter().enumerate().map(|(at, register)| Instruction {
                operation: Operation::ScaledSum(
                    Operand::Register(sum),
                    (at % constants.len()) as u32,
                    Operand::Register(register),
                ),
                to: Target::Register(sum),
            });
            instructions.splice(first..first, folded.collect::<Vec<_>>());
            let last = instructions.len() - shape.outputs as usize;
            instructions[last].operation = Operation::Copy(Operand::Register(sum));
        }
        let encoded = constants.iter().flat_map(bytes).collect();
        let program = DeviceProgram::new(instructions, encoded, queries, shape.outputs).unwrap();
        Self {
            columns,
            constants,
            program,
        }
    }

    /// The same instructions over the same columns.
    pub fn with_other_constants(self, rng: &mut ChaCha20Rng) -> Self {
        let constants: Vec<Fr> = self.constants.iter().map(|_| element(rng)).collect();
        let encoded = constants.iter().flat_map(bytes).collect();
        let (instructions, queries) = (
            self.program.instructions().to_vec(),
            self.program.queries().to_vec(),
        );
        let program = DeviceProgram::new(instructions, encoded, queries, self.program.outputs());
        Self {
            constants,
            program: program.unwrap(),
            ..self
        }
    }

    pub fn rows(&self) -> usize {
        self.columns[0].len()
    }

    /// Every row of every output, by the library's own arithmetic.
    pub fn plainly(&self) -> Vec<Vec<Fr>> {
        let rows = (0..self.rows()).map(|row| self.row(row));
        let mut outputs = vec![Vec::new(); self.program.outputs() as usize];
        rows.for_each(|row| {
            outputs
                .iter_mut()
                .zip(row)
                .for_each(|(output, value)| output.push(value))
        });
        outputs
    }

    fn row(&self, row: usize) -> Vec<Fr> {
        let mut registers = vec![None; self.program.registers() as usize];
        let mut outputs = vec![None; self.program.outputs() as usize];
        for instruction in self.program.instructions() {
            let get = |operand: Operand| match operand {
                Operand::Register(number) => registers[number as usize].unwrap(),
                Operand::Query(number) => {
                    let query = self.program.queries()[number as usize];
                    let at = row as i64 + i64::from(query.rotation);
                    self.columns[query.column as usize][at.rem_euclid(self.rows() as i64) as usize]
                }
            };
            let constant = |number: u32| self.constants[number as usize];
            let value: Fr = match instruction.operation {
                Operation::Sum(a, b) => get(a) + get(b),
                Operation::Difference(a, b) => get(a) - get(b),
                Operation::Product(a, b) => get(a) * get(b),
                Operation::ScaledSum(a, c, b) => get(a) * constant(c) + get(b),
                Operation::Square(a) => get(a) * get(a),
                Operation::Double(a) => get(a) + get(a),
                Operation::Negated(a) => -get(a),
                Operation::Scaled(a, c) => get(a) * constant(c),
                Operation::Shifted(a, c) => get(a) + constant(c),
                Operation::Reflected(a, c) => constant(c) - get(a),
                Operation::Copy(a) => get(a),
                Operation::Constant(c) => constant(c),
            };
            match instruction.to {
                Target::Register(number) => registers[number as usize] = Some(value),
                Target::Output(number) => outputs[number as usize] = Some(value),
            }
        }
        outputs.into_iter().map(Option::unwrap).collect()
    }

    /// What the processor makes of the same expressions.
    pub fn on_the_cpu(&self) -> Vec<Vec<Fr>> {
        let mut builder = Builder::new();
        let mut registers: Vec<Option<Value>> = vec![None; self.program.registers() as usize];
        let mut outputs: Vec<Option<Value>> = vec![None; self.program.outputs() as usize];
        for instruction in self.program.instructions() {
            let get = |builder: &mut Builder<Fr>, operand: Operand| match operand {
                Operand::Register(number) => registers[number as usize].unwrap(),
                Operand::Query(number) => {
                    let query = self.program.queries()[number as usize];
                    builder.query(query.column as usize, query.rotation)
                }
            };
            let b = &mut builder;
            let constant = |number: u32| self.constants[number as usize];
            let value = match instruction.operation {
                Operation::Sum(x, y) => {
                    let (x, y) = (get(b, x), get(b, y));
                    b.add(x, y)
                }
                Operation::Difference(x, y) => {
                    let (x, y) = (get(b, x), get(b, y));
                    b.sub(x, y)
                }
                Operation::Product(x, y) => {
                    let (x, y) = (get(b, x), get(b, y));
                    b.mul(x, y)
                }
                Operation::ScaledSum(x, c, y) => {
                    let (x, y) = (get(b, x), get(b, y));
                    let scaled = b.scale(x, constant(c));
                    b.add(scaled, y)
                }
                Operation::Square(x) => {
                    let x = get(b, x);
                    b.square(x)
                }
                Operation::Double(x) => {
                    let x = get(b, x);
                    b.double(x)
                }
                Operation::Negated(x) => {
                    let x = get(b, x);
                    b.neg(x)
                }
                Operation::Scaled(x, c) => {
                    let x = get(b, x);
                    b.scale(x, constant(c))
                }
                Operation::Shifted(x, c) => {
                    let (x, fixed) = (get(b, x), b.constant(constant(c)));
                    b.add(x, fixed)
                }
                Operation::Reflected(x, c) => {
                    let (x, fixed) = (get(b, x), b.constant(constant(c)));
                    b.sub(fixed, x)
                }
                Operation::Copy(x) => get(b, x),
                Operation::Constant(c) => b.constant(constant(c)),
            };
            match instruction.to {
                Target::Register(number) => registers[number as usize] = Some(value),
                Target::Output(number) => outputs[number as usize] = Some(value),
            }
        }
        let values: Vec<Value> = outputs.into_iter().map(Option::unwrap).collect();
        let program = builder.finish(&values);
        let rows = self.rows();
        let rotated = |&(column, rotation): &(usize, i32)| -> Vec<Fr> {
            let at = |row: usize| (row as i64 + i64::from(rotation)).rem_euclid(rows as i64) as usize;
            (0..rows).map(|row| self.columns[column][at(row)]).collect()
        };
        let rotated: Vec<Vec<Fr>> = program.queries().iter().map(rotated).collect();
        let inputs: Vec<&[Fr]> = rotated.iter().map(|column| &column[..]).collect();
        let mut outputs = vec![vec![Fr::ZERO; rows]; values.len()];
        let mut slices: Vec<&mut [Fr]> = outputs.iter_mut().map(|output| &mut output[..]).collect();
        let mut registers = vec![Fr::ZERO; (rows + 10) * program.registers()];
        program.evaluate(&inputs, &mut slices, &mut registers);
        outputs
    }
}
