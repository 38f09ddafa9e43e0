//! Random constraint programs by the interpreter, against the processor's evaluation of the same expressions
//! and against plain evaluation.

use rand::Rng;

use crate::support::kernels::program::{ProgramShape, Random};
use crate::support::kernels::{Kernels, structure};
use crate::support::rng;

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
    at: u64,
}

struct Launch {
    block: usize,
    blocks: usize,
    in_shared_memory: bool,
}

/// Rows `first .. first + count` by the kernel.
fn on_the_device(
    kernels: &Kernels,
    random: &Random,
    (first, count): (usize, usize),
    launch: &Launch,
) -> Vec<Vec<ark_bn254::Fr>> {
    let queries = random.program.queries().iter().map(|query| Query {
        values: random.columns[query.column as usize].as_ptr(),
        rotation: query.rotation.into(),
    });
    let queries: Vec<_> = queries.collect();
    let mut outputs = vec![vec![ark_bn254::Fr::from(99u64); count]; random.program.outputs() as usize];
    let pointers: Vec<*mut _> = outputs.iter_mut().map(|output| output.as_mut_ptr()).collect();
    let register_words = random.program.registers() as usize * 8 * launch.block;
    let mut registers = vec![u32::MAX; register_words * launch.blocks];
    let instructions = random.program.words();
    let program = Program {
        instructions: instructions.as_ptr(),
        constants: random.constants.as_ptr(),
        queries: queries.as_ptr(),
        outputs: pointers.as_ptr(),
        registers_at: if launch.in_shared_memory {
            std::ptr::null_mut()
        } else {
            registers.as_mut_ptr()
        },
        length: instructions.len() as u64,
        registers: random.program.registers().into(),
        rows: random.columns[0].len() as u64,
        first: first as u64,
        count: count as u64,
        at: 0,
    };
    let shared_bytes = if launch.in_shared_memory {
        register_words * 4
    } else {
        0
    };
    let arguments = vec![structure(&program, vec![])];
    kernels.launch(
        "spk_program_bn254_fr",
        (launch.blocks, 1),
        launch.block,
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
        let shape = ProgramShape {
            rows,
            columns: 4,
            registers,
            length,
            outputs: rng.gen_range(1..4),
            rotations: 9,
        };
        let random = Random::new(shape, &mut rng);
        let (on_the_cpu, plain) = (random.on_the_cpu(), random.plainly());
        for in_shared_memory in [true, false] {
            let launch = Launch {
                block: [1, 32, 96][round % 3],
                blocks: 1 + round % 4,
                in_shared_memory,
            };
            let found = on_the_device(&kernels, &random, (0, rows), &launch);
            for (output, plain) in plain.iter().enumerate() {
                assert_eq!(found[output], *plain, "round {round}, output {output}");
                assert_eq!(
                    found[output], on_the_cpu[output],
                    "round {round}, output {output}, the processor's"
                );
            }
            // Tiles that do not begin at the first row: rotations still wrap around the whole column.
            let tile = rows.div_ceil(3);
            for first in (0..rows).step_by(tile) {
                let count = tile.min(rows - first);
                let found = on_the_device(&kernels, &random, (first, count), &launch);
                for (output, plain) in plain.iter().enumerate() {
                    assert_eq!(found[output], plain[first..first + count], "rows from {first}");
                }
            }
        }
    }
}
