//! Random constraint programs by the interpreter, against the CPU's evaluation of the same expressions and against their plain
//! meaning.
#![allow(unsafe_code, clippy::unwrap_used)]

mod kernels_support;

use ark_ff::{AdditiveGroup, Field, Fp256, MontBackend, MontConfig, UniformRand};
use kernels_support::{Kernels, rng, structure};
use rand::Rng;
use rand_chacha::ChaCha20Rng;
use spillproof::plonkish::Builder;

const MARK: u32 = 1 << 31;

/// As in program.cuh.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Query<T> {
    values: *const T,
    rotation: i64,
}

/// As in program.cuh; the addresses are the host's.
#[repr(C)]
#[derive(Clone, Copy)]
struct Program<T> {
    instructions: *const [u32; 4],
    constants: *const T,
    queries: *const Query<T>,
    outputs: *const *mut T,
    registers_at: *mut u32,
    length: u64,
    registers: u64,
    rows: u64,
    first: u64,
    count: u64,
}

/// The same expressions three times: as instructions, for the CPU, and as values.
struct Random<F> {
    columns: Vec<Vec<F>>,
    instructions: Vec<[u32; 4]>,
    constants: Vec<F>,
    queries: Vec<(usize, i64)>,
    builder: Builder<F>,
    /// By register: the CPU's value and the values of all rows; none before it is written.
    registers: Vec<Option<(spillproof::plonkish::Value, Vec<F>)>>,
    outputs: Vec<(spillproof::plonkish::Value, Vec<F>)>,
}

type F<T> = Fp256<MontBackend<T, 4>>;
type Made<F> = (spillproof::plonkish::Value, Vec<F>);

impl Random<ark_bn254::Fr> {
    fn new(rows: usize, registers: usize, length: usize, outputs: usize, rng: &mut ChaCha20Rng) -> Self {
        let columns = (0..4)
            .map(|_| (0..rows).map(|_| edge_or_random(rng)).collect())
            .collect();
        let mut random = Self {
            columns,
            instructions: Vec::new(),
            constants: Vec::new(),
            queries: Vec::new(),
            builder: Builder::new(),
            registers: vec![None; registers],
            outputs: Vec::new(),
        };
        for _ in 0..length {
            random.step(None, rng);
        }
        for output in 0..outputs {
            random.step(Some(output), rng);
        }
        random
    }

    /// A register that holds something, or a query.
    fn operand(&mut self, rng: &mut ChaCha20Rng) -> (u32, Made<ark_bn254::Fr>) {
        let written: Vec<usize> = (0..self.registers.len())
            .filter(|&i| self.registers[i].is_some())
            .collect();
        if !written.is_empty() && rng.gen_range(0..3) > 0 {
            let register = written[rng.gen_range(0..written.len())];
            return (register as u32, self.registers[register].clone().unwrap());
        }
        let rows = self.columns[0].len() as i64;
        let column = rng.gen_range(0..self.columns.len());
        let rotation = rng.gen_range(-(rows - 1).min(9)..=(rows - 1).min(9));
        let values = (0..rows)
            .map(|row| self.columns[column][(row + rotation).rem_euclid(rows) as usize])
            .collect();
        self.queries.push((column, rotation));
        let operand = MARK | (self.queries.len() as u32 - 1);
        (operand, (self.builder.query(column, rotation as i32), values))
    }

    fn step(&mut self, output: Option<usize>, rng: &mut ChaCha20Rng) {
        let operation = rng.gen_range(0..12u32);
        let (a, left) = self.operand(rng);
        let (b, right) = self.operand(rng);
        let constant = edge_or_random(rng);
        let number = self.constants.len() as u32;
        self.constants.push(constant);
        let builder = &mut self.builder;
        let (x, y) = (left.0, right.0);
        let fixed = builder.constant(constant);
        let value = match operation {
            0 => builder.add(x, y),
            1 => builder.sub(x, y),
            2 => builder.mul(x, y),
            3 => {
                let scaled = builder.scale(x, constant);
                builder.add(scaled, y)
            }
            4 => builder.square(x),
            5 => builder.double(x),
            6 => builder.neg(x),
            7 => builder.scale(x, constant),
            8 => builder.add(x, fixed),
            9 => builder.sub(fixed, x),
            10 => x,
            _ => fixed,
        };
        let values = left
            .1
            .iter()
            .zip(&right.1)
            .map(|(x, y)| match operation {
                0 => x + y,
                1 => x - y,
                2 => x * y,
                3 => *x * constant + y,
                4 => x.square(),
                5 => x.double(),
                6 => -*x,
                7 => *x * constant,
                8 => *x + constant,
                9 => constant - x,
                10 => *x,
                _ => constant,
            })
            .collect();
        let to = match output {
            Some(output) => {
                self.outputs.push((value, values));
                MARK | output as u32
            }
            None => {
                let register = rng.gen_range(0..self.registers.len());
                self.registers[register] = Some((value, values));
                register as u32
            }
        };
        self.instructions.push([operation | number << 8, to, a, b]);
    }

    /// What the CPU tier makes of it.
    fn on_the_cpu(&self) -> Vec<Vec<ark_bn254::Fr>> {
        let values: Vec<_> = self.outputs.iter().map(|output| output.0).collect();
        let program = self.builder.clone().finish(&values);
        let rows = self.columns[0].len();
        let rotated: Vec<Vec<_>> = program
            .queries()
            .iter()
            .map(|&(column, rotation)| {
                let at = |row: usize| (row as i64 + i64::from(rotation)).rem_euclid(rows as i64) as usize;
                (0..rows).map(|row| self.columns[column][at(row)]).collect()
            })
            .collect();
        let inputs: Vec<&[_]> = rotated.iter().map(|column| &column[..]).collect();
        let mut outputs = vec![vec![ark_bn254::Fr::ZERO; rows]; values.len()];
        let mut slices: Vec<&mut [_]> = outputs.iter_mut().map(|output| &mut output[..]).collect();
        let mut registers = vec![ark_bn254::Fr::ZERO; (rows + 10) * program.registers()];
        program.evaluate(&inputs, &mut slices, &mut registers);
        outputs
    }
}

fn edge_or_random<T: MontConfig<4>>(rng: &mut ChaCha20Rng) -> F<T> {
    match rng.gen_range(0..8) {
        0 => F::ZERO,
        1 => F::ONE,
        2 => -F::<T>::ONE,
        3 => F::from(2u64),
        _ => F::rand(rng),
    }
}

struct Shape {
    block: usize,
    blocks: usize,
    in_shared_memory: bool,
}

/// Rows `first .. first + count` by the kernel.
fn on_the_device(
    kernels: &Kernels,
    random: &Random<ark_bn254::Fr>,
    (first, count): (usize, usize),
    shape: &Shape,
) -> Vec<Vec<ark_bn254::Fr>> {
    let queries: Vec<_> = random
        .queries
        .iter()
        .map(|&(column, rotation)| Query {
            values: random.columns[column].as_ptr(),
            rotation,
        })
        .collect();
    let mut outputs = vec![vec![ark_bn254::Fr::from(99u64); count]; random.outputs.len()];
    let pointers: Vec<*mut _> = outputs.iter_mut().map(|output| output.as_mut_ptr()).collect();
    let register_words = random.registers.len() * 8 * shape.block;
    let mut registers = vec![u32::MAX; register_words * shape.blocks];
    let program = Program {
        instructions: random.instructions.as_ptr(),
        constants: random.constants.as_ptr(),
        queries: queries.as_ptr(),
        outputs: pointers.as_ptr(),
        registers_at: if shape.in_shared_memory {
            std::ptr::null_mut()
        } else {
            registers.as_mut_ptr()
        },
        length: random.instructions.len() as u64,
        registers: random.registers.len() as u64,
        rows: random.columns[0].len() as u64,
        first: first as u64,
        count: count as u64,
    };
    let shared_bytes = if shape.in_shared_memory {
        register_words * 4
    } else {
        0
    };
    let arguments = vec![structure(&program, vec![])];
    kernels.launch(
        "spk_program_bn254_fr",
        (shape.blocks, 1),
        shape.block,
        shared_bytes,
        arguments,
    );
    outputs
}

#[test]
fn random_programs() {
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng("programs");
    for round in 0..60 {
        let rows = [1, 2, 5, 64, 100, 257][round % 6];
        let (registers, length) = (rng.gen_range(1..20), rng.gen_range(1..120));
        let outputs = rng.gen_range(1..4);
        let random = Random::new(rows, registers, length, outputs, &mut rng);
        let on_the_cpu = random.on_the_cpu();
        for in_shared_memory in [true, false] {
            let shape = Shape {
                block: [1, 32, 96][round % 3],
                blocks: 1 + round % 4,
                in_shared_memory,
            };
            let found = on_the_device(&kernels, &random, (0, rows), &shape);
            for (output, (_, plain)) in random.outputs.iter().enumerate() {
                assert_eq!(found[output], *plain, "round {round}, output {output}");
                assert_eq!(
                    found[output], on_the_cpu[output],
                    "round {round}, output {output}, the CPU's"
                );
            }
            // Tiles that do not begin at the first row: rotations still go round the whole column.
            let tile = rows.div_ceil(3);
            for first in (0..rows).step_by(tile) {
                let count = tile.min(rows - first);
                let found = on_the_device(&kernels, &random, (first, count), &shape);
                for (output, (_, plain)) in random.outputs.iter().enumerate() {
                    assert_eq!(found[output], plain[first..first + count], "rows from {first}");
                }
            }
        }
    }
}
