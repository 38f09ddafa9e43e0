//! A coset with a compiled program, built for the host while the test runs, gives the same rows as with the
//! interpreter. `tests/all/tier_quotient.rs` compares the interpreted rows with the processor's.

use ark_bn254::Fr;
use ark_ff::{FftField, Field};
use spillproof_engine::tier::{Input, Order, RowSource};

use super::{CosetPlan, DeviceCoset, Numbers, Shape};
use crate::kernels::Kernels;
use crate::program::{Engine, Way};
use crate::ring::{Download, Upload};
use crate::trace::Detail;
use crate::{BoxedError, Caching, Gpu, Pinned, Vram};

use crate::support::kernels::program::{Random, Shape as Programs};
use crate::support::programs::{Host, SMALL};
use crate::support::{rng, with_kernels};

/// The inputs of the program, one for each column that it reads; two of them are computed.
fn inputs(random: &Random<Fr>) -> Vec<Input> {
    let mut inputs: Vec<Input> = Vec::new();
    for query in random.program.queries() {
        let column = query.column as usize;
        match inputs.iter_mut().find(|input| input.column == column) {
            Some(input) => {
                input.rotations.0 = input.rotations.0.min(query.rotation);
                input.rotations.1 = input.rotations.1.max(query.rotation);
            }
            None => inputs.push(Input {
                column,
                rotations: (query.rotation, query.rotation),
                rows: match column {
                    0 => RowSource::Identity,
                    1 => RowSource::FirstLagrange,
                    _ => RowSource::Read,
                },
            }),
        }
    }
    inputs
}

/// All rows of the output, within `vram_bytes` of device memory.
fn rows(engine: Engine, gpu: &Gpu, kernels: &Kernels, shape: &Shape, vram_bytes: u64) -> Vec<u8> {
    let plan = CosetPlan::new(shape, &engine, vram_bytes, 1 << 14).unwrap();
    let read = shape.inputs.iter().filter(|input| input.rows == RowSource::Read);
    let rotations = read.map(|input| input.rotations);
    let order = Order::new(rotations, shape.log_rows, plan.log_tile_rows());
    let slot_bytes = plan.slot_bytes() as usize;
    let pinned = Pinned::new(4 * plan.slot_bytes());
    let pool = pinned.pool(gpu, 4, slot_bytes, Caching::Cached, "slots").unwrap();
    let mut upload = Upload::new(pool.take(2).unwrap(), gpu.trace()).unwrap();
    let mut download = Download::new(pool.take(2).unwrap(), gpu.trace()).unwrap();
    let numbers = Numbers {
        omega: Fr::get_root_of_unity(1 << (shape.log_rows + shape.log_columns)).unwrap(),
        shift: Fr::GENERATOR,
        scale: Fr::from(7u64).inverse().unwrap(),
    };
    let vram = Vram::new(gpu, plan.vram_bytes());
    let mut on_coset = DeviceCoset::new(&vram, kernels, engine, plan, numbers).unwrap();
    let mut source = |offset: u64, into: &mut [u8]| -> Result<(), BoxedError> {
        for (at, element) in (offset / 32..).zip(into.chunks_exact_mut(32)) {
            let run = order.run_at(at >> shape.log_columns).ok_or("past the last row")?;
            let row = run.first_row + ((at >> shape.log_columns) - run.before) as i64;
            let row = row.rem_euclid(1 << shape.log_rows) as u64;
            let seed =
                ((run.input as u64) << 40) + (row << shape.log_columns) + at % (1 << shape.log_columns);
            // Bytes of a valid element, since the highest ones are zeros.
            element.fill(0);
            element[..8].copy_from_slice(&(seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
        }
        Ok(())
    };
    let mut out = Vec::new();
    let mut sink = |offset: u64, bytes: &[u8]| -> Result<(), BoxedError> {
        assert_eq!(offset, out.len() as u64, "given out of order");
        out.extend_from_slice(bytes);
        Ok(())
    };
    on_coset
        .run((&mut upload, &mut download), &mut source, &mut sink)
        .unwrap();
    out
}

#[test]
fn a_compiled_program_gives_the_rows_of_an_interpreted_one() {
    const TEST: &str = "a_compiled_program_gives_the_rows_of_an_interpreted_one";
    with_kernels(module_path!(), TEST, |driver, image| {
        if Host::missing() {
            return;
        }
        let host = Host::new();
        let mut rng = rng("cosets of compiled programs");
        for length in [30, 90] {
            driver.reset(1, 8 << 20);
            let programs = Programs {
                rows: 64,
                columns: 5,
                registers: 20,
                length,
                outputs: 1,
                rotations: 3,
            };
            let random = Random::<Fr>::new(programs, &mut rng);
            let shape = Shape {
                log_rows: 3,
                log_columns: 3,
                inputs: inputs(&random),
            };
            let gpu = Gpu::open(0, Detail::Counts).unwrap();
            let kernels = Kernels::load(&gpu, image).unwrap();
            let program = || random.program.clone();
            let compiled = Engine::compiled_by(&gpu, &kernels, program(), (&host, None), &SMALL).unwrap();
            let Way::Compiled { kernels: count, .. } = *compiled.way() else {
                panic!("{:?}", compiled.way());
            };
            assert!(count > 1, "{count} kernels");
            let interpreted = Engine::interpreted(&kernels, program(), "the test says so").unwrap();
            let expected = rows(interpreted, &gpu, &kernels, &shape, 8 << 20);
            assert_eq!(expected.len(), 32 * 64);
            let smallest = CosetPlan::new(&shape, &compiled, 0, 1 << 14).unwrap_err();
            let crate::Error::TooSmall { smallest_bytes, .. } = smallest else {
                panic!("{smallest}");
            };
            for vram_bytes in [smallest_bytes, 2 * smallest_bytes, 8 << 20] {
                let found = rows(compiled.clone(), &gpu, &kernels, &shape, vram_bytes);
                assert!(found == expected, "{length} steps in {vram_bytes} bytes");
            }
            drop((compiled, kernels, gpu));
            driver.assert_clean("after cosets");
        }
    });
}
