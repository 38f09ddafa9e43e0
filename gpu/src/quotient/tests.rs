//! Cosets whose programs are compiled for the host while the test runs: the same rows as with the
//! interpreter, which is there for every reason not to compile. `tests/all/accelerator_quotient.rs` compares
//! interpreted rows with the processor's.

use ark_bn254::Fr;
use ark_ff::{FftField, Field};
use spillproof_engine::accelerator::{Input, Order, RowSource};
use spillproof_fake_driver::{Code, FakeDriver};

use super::{CosetConstants, CosetPlan, CosetShape, DeviceCoset};
use crate::kernels::{Cache, Compiler, Kernels, Text};
use crate::program::{Limits, ProgramKernels, ProgramMethod};
use crate::ring::{Download, Upload};
use crate::trace::Detail;
use crate::{BoxedError, Caching, Error, Gpu, Pinned, Result, Vram};

use crate::support::kernels::program::{ProgramShape, Random};
use crate::support::programs::{Host, SMALL};
use crate::support::{is_the_drivers, rng, with_kernels};

const VRAM_BYTES: u64 = 8 << 20;
const SLOT_BYTES: u64 = 1 << 14;

/// A coset of 2^3 rows of 2^3 elements, and the program of its quotient.
struct Case<'a> {
    random: Random,
    shape: CosetShape,
    image: &'a [u8],
}

impl<'a> Case<'a> {
    fn new(test: &str, image: &'a [u8], registers: u32, length: usize) -> Self {
        let programs = ProgramShape {
            rows: 64,
            columns: 5,
            registers,
            length,
            outputs: 1,
            rotations: 3,
        };
        let random = Random::new(programs, &mut rng(test));
        let shape = CosetShape {
            log_rows: 3,
            log_columns: 3,
            inputs: inputs(&random),
            of_coefficients: false,
        };
        Self { random, shape, image }
    }

    fn open(&self) -> Result<(Gpu, Kernels)> {
        let gpu = Gpu::open(0, Detail::Counts)?;
        let kernels = Kernels::load(&gpu, self.image)?;
        Ok((gpu, kernels))
    }

    fn compiled_by(
        &self,
        gpu: &Gpu,
        kernels: &Kernels,
        compiler: &dyn Compiler,
        cache: Option<&Cache>,
        limits: &Limits,
    ) -> Result<ProgramKernels> {
        let program = self.random.program.clone();
        ProgramKernels::compiled_by(gpu, kernels, program, compiler, cache, limits)
    }

    /// The rows by the interpreter.
    fn interpreted(&self, driver: &FakeDriver) -> Vec<u8> {
        driver.reset(1, VRAM_BYTES);
        let (gpu, kernels) = self.open().unwrap();
        let program = self.random.program.clone();
        let program = ProgramKernels::interpreted(&kernels, program, "the test says so").unwrap();
        let rows = self.rows(program, &gpu, &kernels, VRAM_BYTES).unwrap();
        assert_eq!(rows.len(), 32 * 64);
        rows
    }

    /// All rows of the quotient, within `vram_bytes` of device memory.
    fn rows(
        &self,
        program: ProgramKernels,
        gpu: &Gpu,
        kernels: &Kernels,
        vram_bytes: u64,
    ) -> Result<Vec<u8>> {
        let shape = &self.shape;
        let plan = CosetPlan::new(shape, &program, vram_bytes, SLOT_BYTES)?;
        let read = shape.inputs.iter().filter(|input| input.rows == RowSource::Read);
        let rotations = read.map(|input| input.rotations);
        let order = Order::new(rotations, shape.log_rows, plan.log_tile_rows());
        let slot_bytes = plan.slot_bytes() as usize;
        let pinned = Pinned::new(4 * plan.slot_bytes());
        let pool = pinned.pool(gpu, 4, slot_bytes, Caching::Cached, "slots")?;
        let mut upload = Upload::new(pool.take(2)?, gpu.trace())?;
        let mut download = Download::new(pool.take(2)?, gpu.trace())?;
        let constants = CosetConstants {
            omega: Fr::get_root_of_unity(1 << (shape.log_rows + shape.log_columns)).unwrap(),
            shift: Fr::GENERATOR,
            scale: Fr::from(7u64).inverse().unwrap(),
        };
        let vram = Vram::new(gpu, plan.vram_bytes());
        let mut on_coset = DeviceCoset::new(&vram, kernels, program, plan, constants)?;
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
        on_coset.compute(&mut upload, &mut download, &mut source, &mut sink)?;
        Ok(out)
    }
}

/// The inputs of the program, one for each column that it reads; two of them are computed.
fn inputs(random: &Random) -> Vec<Input> {
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

/// The last one has so many registers that the interpreter keeps them in device memory.
#[test]
fn a_compiled_program_gives_the_rows_of_an_interpreted_one() {
    const TEST: &str = "a_compiled_program_gives_the_rows_of_an_interpreted_one";
    with_kernels(module_path!(), TEST, |driver, image| {
        if Host::missing() {
            return;
        }
        let host = Host::new();
        let large = Limits {
            multiplications: 30,
            ..Limits::default()
        };
        for (registers, length, limits) in [(20, 30, SMALL), (20, 90, SMALL), (60, 700, large)] {
            let case = Case::new(TEST, image, registers, length);
            let expected = case.interpreted(driver);
            driver.reset(1, VRAM_BYTES);
            let (gpu, kernels) = case.open().unwrap();
            let compiled = case.compiled_by(&gpu, &kernels, &host, None, &limits).unwrap();
            let ProgramMethod::Compiled {
                kernels: count,
                slots,
                ..
            } = *compiled.method()
            else {
                panic!("{:?}", compiled.method());
            };
            assert!(count > 1 && slots > 0, "{count} kernels, {slots} slots");
            let smallest = CosetPlan::new(&case.shape, &compiled, 0, SLOT_BYTES).unwrap_err();
            let Error::TooSmall { smallest_bytes, .. } = smallest else {
                panic!("{smallest}");
            };
            for vram_bytes in [smallest_bytes, 2 * smallest_bytes, VRAM_BYTES] {
                let found = case.rows(compiled.clone(), &gpu, &kernels, vram_bytes).unwrap();
                assert!(found == expected, "{length} steps in {vram_bytes} bytes");
            }
            drop((compiled, kernels, gpu));
            driver.assert_clean("after cosets");
        }
    });
}

/// Another program of the same shape comes from the cache: constants are not part of the text.
#[test]
fn a_shape_is_compiled_once() {
    const TEST: &str = "a_shape_is_compiled_once";
    with_kernels(module_path!(), TEST, |driver, image| {
        if Host::missing() {
            return;
        }
        let (host, folder) = (Host::new(), tempfile::tempdir().unwrap());
        let cache = Cache::new(folder.path());
        let mut case = Case::new(TEST, image, 8, 30);
        for round in 0..3 {
            let expected = case.interpreted(driver);
            driver.reset(1, VRAM_BYTES);
            let (gpu, kernels) = case.open().unwrap();
            let compiled = case
                .compiled_by(&gpu, &kernels, &host, Some(&cache), &SMALL)
                .unwrap();
            let found = case.rows(compiled, &gpu, &kernels, VRAM_BYTES).unwrap();
            assert!(found == expected, "round {round}");
            assert_eq!(host.compiled(), 1, "round {round}");
            case.random = case.random.with_other_constants(&mut rng("other constants"));
        }
    });
}

/// A compiler that fails, one whose image does not load, programs that are too small or too large: the
/// interpreter runs, with a reason.
#[test]
fn the_interpreter_is_the_fallback() {
    struct Broken(Option<Vec<u8>>);
    impl Compiler for Broken {
        fn version(&self) -> Result<String> {
            Ok("broken".into())
        }

        fn compile(&self, _: &Text, _: (i32, i32)) -> Result<Vec<u8>> {
            let (arch, log) = ("sm_0".to_owned(), "I will not".to_owned());
            self.0.clone().ok_or(Error::Compile { arch, log })
        }
    }
    const TEST: &str = "the_interpreter_is_the_fallback";
    with_kernels(module_path!(), TEST, |driver, image| {
        let case = Case::new(TEST, image, 8, 30);
        let expected = case.interpreted(driver);
        let few = Limits {
            kernels_max: 1,
            ..SMALL
        };
        let many = Limits {
            steps_min: 1000,
            ..SMALL
        };
        for (compiler, limits, reason) in [
            (Broken(None), SMALL, "I will not"),
            (Broken(Some(b"no image\0".to_vec())), SMALL, "load"),
            // The crate's own kernels do not contain the program.
            (Broken(Some(image.to_vec())), SMALL, "spk_compiled_0"),
            (Broken(None), few, "at most 1"),
            (Broken(None), many, "too few to compile"),
        ] {
            driver.reset(1, VRAM_BYTES);
            let (gpu, kernels) = case.open().unwrap();
            let program = case
                .compiled_by(&gpu, &kernels, &compiler, None, &limits)
                .unwrap();
            let ProgramMethod::Interpreted { why } = program.method() else {
                panic!("{:?}", program.method());
            };
            assert!(why.contains(reason), "{why}");
            let found = case.rows(program, &gpu, &kernels, VRAM_BYTES).unwrap();
            assert!(found == expected, "{reason}");
            // With or without NVRTC the program has kernels.
            assert!(ProgramKernels::new(&gpu, &kernels, case.random.program.clone(), None).is_ok());
            drop((kernels, gpu));
            driver.assert_clean(reason);
        }
    });
}

/// A sample of the calls of a compiled coset fails, one at a time: the rows are right, or the error is the
/// driver's, and nothing leaks.
#[test]
fn a_failing_device_gives_right_rows_or_its_error() {
    const TEST: &str = "a_failing_device_gives_right_rows_or_its_error";
    with_kernels(module_path!(), TEST, |driver, image| {
        if Host::missing() {
            return;
        }
        let (host, folder) = (Host::new(), tempfile::tempdir().unwrap());
        let cache = Cache::new(folder.path());
        let case = Case::new(TEST, image, 8, 30);
        let expected = case.interpreted(driver);
        driver.guard(true);
        let rows = || {
            let (gpu, kernels) = case.open()?;
            let compiled = case.compiled_by(&gpu, &kernels, &host, Some(&cache), &SMALL)?;
            case.rows(compiled, &gpu, &kernels, 1 << 20)
        };
        driver.reset(1, 1 << 20);
        assert!(rows().unwrap() == expected);
        let calls = driver.calls(None);
        let mut failures = 0;
        for (code, lost) in [(Code::OutOfMemory, false), (Code::IllegalAddress, true)] {
            for nth in (1..=calls).step_by((calls / 40).max(1) as usize) {
                let what = format!("call {nth} of {calls}: {code:?}, lost: {lost}");
                driver.reset(1, 1 << 20);
                driver.fail(None, nth, code, lost);
                match rows() {
                    Ok(found) => assert!(found == expected, "{what}"),
                    Err(error) => {
                        assert!(is_the_drivers(&error), "{what}: {error}");
                        failures += 1;
                    }
                }
                driver.assert_clean(&what);
            }
        }
        assert!(failures > 30, "{failures}");
    });
}
