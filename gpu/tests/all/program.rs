//! Constraint programs on a device: generated text, compiled for the host while the test runs, and the
//! interpreter, both under the fake driver, against the CPU tier and the arithmetic of the libraries.

use ark_bn254::Fr;
use p3_goldilocks::Goldilocks;
use rand::Rng;
use spillproof_fake_driver::{Code, FakeDriver, Order};
use spillproof_gpu::kernels::{Cache, Compiler, Kernels, Text};
use spillproof_gpu::program::{Columns, Engine, Limits, ProgramPlan, Way};
use spillproof_gpu::trace::Detail;
use spillproof_gpu::{Error, Gpu, Result};

use crate::support::kernels::program::{Element, Random, Shape};
use crate::support::programs::{Host, SMALL, evaluated, evaluated_over, is_right};
use crate::support::{DoneBy, is_the_drivers, rng, with_fallback, with_kernels};

/// Compiled and interpreted, in several budgets and orders, on the last of `devices`.
fn check<E: Element>(
    driver: &FakeDriver,
    image: &[u8],
    random: &Random<E>,
    limits: &Limits,
    devices: u64,
) -> (u32, u32) {
    let (host, folder) = (Host::new(), tempfile::tempdir().unwrap());
    let cache = Cache::new(folder.path());
    let expected = random.plainly();
    let ordinal = devices as usize - 1;
    let mut shape = (0, 0);
    for compiled in [true, false] {
        let engine = |gpu: &Gpu| -> Result<Engine> {
            let tier = Kernels::load(gpu, image)?;
            if compiled {
                Engine::compiled_by(gpu, &tier, random.program.clone(), (&host, Some(&cache)), limits)
            } else {
                Engine::interpreted(&tier, random.program.clone(), "the test says so")
            }
        };
        driver.reset(devices, 8 << 20);
        let gpu = Gpu::open(ordinal, Detail::Counts).unwrap();
        let made = engine(&gpu).unwrap();
        if let Way::Compiled { kernels, slots, .. } = made.way() {
            shape = (*kernels, *slots);
        } else {
            assert!(!compiled, "{:?}", made.way());
        }
        let rows = random.rows() as u64;
        let Err(Error::TooSmall { smallest_bytes, .. }) =
            ProgramPlan::new(&made, Columns::Streamed, rows, 0, 1 << 20)
        else {
            panic!("no budget is too small");
        };
        assert!(ProgramPlan::new(&made, Columns::Streamed, rows, smallest_bytes - 1, 1 << 20).is_err());
        let plan =
            |vram_bytes| ProgramPlan::new(&made, Columns::Streamed, rows, vram_bytes, 1 << 20).unwrap();
        let plans = [plan(smallest_bytes), plan(smallest_bytes * 3), plan(4 << 20)];
        let over = ProgramPlan::new(
            &made,
            Columns::Resident,
            rows,
            4 << 20,
            40 * random.program.outputs() as u64,
        );
        drop(made);
        drop(gpu);
        for (at, plan) in plans.into_iter().enumerate() {
            driver.order([Order::Late, Order::Random(3), Order::Eager][at]);
            driver.reset(devices, 8 << 20);
            let found = evaluated(ordinal, &engine, random, plan.clone(), 1 + at).unwrap();
            assert!(is_right(&found, &expected), "compiled: {compiled}, {plan:?}");
            assert!(driver.peak_bytes(ordinal) <= plan.vram_bytes(), "{plan:?}");
            driver.assert_clean("after a program");
        }
        driver.order(Order::Late);
        driver.reset(devices, 8 << 20);
        let over = over.unwrap();
        let found = evaluated_over(ordinal, &engine, random, over.clone()).unwrap();
        assert!(is_right(&found, &expected), "compiled: {compiled}, {over:?}");
        driver.assert_clean("after a program over resident columns");
    }
    shape
}

#[test]
fn random_programs_of_bn254() {
    with_kernels(module_path!(), "random_programs_of_bn254", |driver, image| {
        if Host::missing() {
            return;
        }
        driver.guard(true);
        let mut rng = rng("compiled programs");
        for round in 0..5 {
            let shape = Shape {
                rows: [1, 3, 40, 65, 130][round],
                columns: 1 + round,
                registers: rng.gen_range(2..25),
                length: [3, 30, 120, 60, 80][round],
                outputs: 1 + round as u32 % 3,
                rotations: [0, 2, 9, 64, 5][round],
            };
            let random = Random::<Fr>::new(shape, &mut rng);
            assert_eq!(random.plainly(), random.on_the_cpu(), "the oracles differ");
            let (kernels, slots) = check(driver, image, &random, &SMALL, 1 + round as u64 % 2);
            println!("{shape:?}: {kernels} kernels, {slots} slots");
        }
    });
}

#[test]
fn random_programs_of_goldilocks() {
    with_kernels(
        module_path!(),
        "random_programs_of_goldilocks",
        |driver, image| {
            if Host::missing() {
                return;
            }
            let mut rng = rng("compiled programs of Goldilocks");
            for (round, limits) in [SMALL, Limits::default()].iter().enumerate() {
                let shape = Shape {
                    rows: 77 + round,
                    columns: 3,
                    registers: 12,
                    length: 100,
                    outputs: 2,
                    rotations: 7,
                };
                let random = Random::<Goldilocks>::new(shape, &mut rng);
                let (kernels, slots) = check(driver, image, &random, limits, 1);
                assert_eq!(kernels == 1, round == 1);
                println!("{kernels} kernels, {slots} slots");
            }
        },
    );
}

/// So many registers that the interpreter keeps them in device memory; kernels of thirty products.
#[test]
fn a_large_program() {
    with_kernels(module_path!(), "a_large_program", |driver, image| {
        if Host::missing() {
            return;
        }
        let mut rng = rng("a large program");
        let shape = Shape {
            rows: 150,
            columns: 6,
            registers: 60,
            length: 700,
            outputs: 1,
            rotations: 3,
        };
        let random = Random::<Fr>::new(shape, &mut rng);
        let limits = Limits {
            multiplications: 30,
            ..Limits::default()
        };
        let (kernels, slots) = check(driver, image, &random, &limits, 1);
        println!("{kernels} kernels, {slots} slots");
        assert!(kernels > 1 && slots > 0);
    });
}

fn small_random(test: &str) -> Random<Fr> {
    let shape = Shape {
        rows: 33,
        columns: 3,
        registers: 8,
        length: 30,
        outputs: 2,
        rotations: 4,
    };
    Random::new(shape, &mut rng(test))
}

/// Another program of the same shape comes from the cache: constants are not part of the text.
#[test]
fn a_shape_is_compiled_once() {
    with_kernels(module_path!(), "a_shape_is_compiled_once", |driver, image| {
        if Host::missing() {
            return;
        }
        let (host, folder) = (Host::new(), tempfile::tempdir().unwrap());
        let cache = Cache::new(folder.path());
        let mut random = small_random("a shape is compiled once");
        for round in 0..3 {
            driver.reset(1, 4 << 20);
            let engine = |gpu: &Gpu| {
                let tier = Kernels::load(gpu, image)?;
                let program = random.program.clone();
                Engine::compiled_by(gpu, &tier, program, (&host, Some(&cache)), &SMALL)
            };
            let gpu = Gpu::open(0, Detail::Counts).unwrap();
            let plan = ProgramPlan::new(&engine(&gpu).unwrap(), Columns::Streamed, 33, 1 << 20, 1 << 20);
            drop(gpu);
            let found = evaluated(0, &engine, &random, plan.unwrap(), 2).unwrap();
            assert!(is_right(&found, &random.plainly()), "round {round}");
            assert_eq!(host.compiled(), 1, "round {round}");
            random = random.with_other_constants(&mut rng("other constants"));
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
    with_kernels(
        module_path!(),
        "the_interpreter_is_the_fallback",
        |driver, image| {
            let random = small_random("fallback");
            let expected = random.plainly();
            let few = Limits {
                kernels_max: 1,
                ..SMALL
            };
            for (compiler, limits, said) in [
                (Broken(None), SMALL, "I will not"),
                (Broken(Some(b"no image\0".to_vec())), SMALL, "load"),
                // The tier's own kernels do not contain the program.
                (Broken(Some(image.to_vec())), SMALL, "spk_compiled_0"),
                (Broken(None), few, "at most 1"),
                (
                    Broken(None),
                    Limits {
                        steps_min: 1000,
                        ..SMALL
                    },
                    "too few to compile",
                ),
            ] {
                driver.reset(1, 4 << 20);
                let engine = |gpu: &Gpu| {
                    let tier = Kernels::load(gpu, image)?;
                    Engine::compiled_by(gpu, &tier, random.program.clone(), (&compiler, None), &limits)
                };
                let gpu = Gpu::open(0, Detail::Counts).unwrap();
                let made = engine(&gpu).unwrap();
                let Way::Interpreted { why } = made.way() else {
                    panic!("{:?}", made.way());
                };
                assert!(why.contains(said), "{why}");
                let plan = ProgramPlan::new(&made, Columns::Streamed, 33, 1 << 20, 1 << 20).unwrap();
                drop(made);
                drop(gpu);
                let found = evaluated(0, &engine, &random, plan, 2).unwrap();
                assert!(is_right(&found, &expected), "{said}");
                driver.assert_clean(said);
            }
        },
    );
}

/// A sample of the calls of a job fails, one at a time: the result is right on the device or on the
/// processor, and nothing leaks.
#[test]
fn a_failing_device_leaves_the_processor() {
    with_kernels(
        module_path!(),
        "a_failing_device_leaves_the_processor",
        |driver, image| {
            if Host::missing() {
                return;
            }
            let random = small_random("failing");
            let (host, folder) = (Host::new(), tempfile::tempdir().unwrap());
            let cache = Cache::new(folder.path());
            let expected = random.plainly();
            driver.guard(true);
            let engine = |gpu: &Gpu| {
                let tier = Kernels::load(gpu, image)?;
                Engine::compiled_by(gpu, &tier, random.program.clone(), (&host, Some(&cache)), &SMALL)
            };
            driver.reset(1, 1 << 20);
            let gpu = Gpu::open(0, Detail::Counts).unwrap();
            let made = engine(&gpu).unwrap();
            let plan = ProgramPlan::of_tiles(&made, Columns::Streamed, 33, 7, 2).unwrap();
            drop(made);
            drop(gpu);
            driver.reset(1, 1 << 20);
            evaluated(0, &engine, &random, plan.clone(), 2).unwrap();
            let calls = driver.calls(None);
            let (mut by_processor, mut by_device) = (0, 0);
            for (code, lost) in [(Code::OutOfMemory, false), (Code::IllegalAddress, true)] {
                for nth in (1..=calls).step_by((calls / 40).max(1) as usize) {
                    let what = format!("call {nth} of {calls}: {code:?}, lost: {lost}");
                    driver.reset(1, 1 << 20);
                    driver.fail(None, nth, code, lost);
                    let device = || {
                        evaluated(0, &engine, &random, plan.clone(), 2).inspect_err(|error| {
                            // A program whose kernels do not load is interpreted, and the plan is for
                            // compiled kernels.
                            let replanned = matches!(error, Error::Invalid(_));
                            assert!(replanned || is_the_drivers(error), "{what}: {error}");
                        })
                    };
                    let device = || match device() {
                        Err(Error::Invalid(invalid)) => Err(Error::Wrong {
                            what: invalid.to_string(),
                        }),
                        other => other,
                    };
                    let processor =
                        || Ok::<_, Error>(expected.iter().map(|output| bytes_of(output)).collect());
                    let (found, done_by) = with_fallback(device, processor).unwrap();
                    assert!(is_right(&found, &expected), "{what}");
                    match done_by {
                        DoneBy::Device => by_device += 1,
                        DoneBy::Processor { .. } => by_processor += 1,
                    }
                    driver.assert_clean(&what);
                }
            }
            assert!(by_processor > 30, "{by_processor}, {by_device}");
        },
    );
}

fn bytes_of(column: &[Fr]) -> Vec<u8> {
    column.iter().flat_map(Element::bytes).collect()
}

#[test]
fn what_cannot_be_is_refused() {
    with_kernels(module_path!(), "what_cannot_be_is_refused", |driver, image| {
        driver.reset(1, 4 << 20);
        let random = small_random("refused");
        let gpu = Gpu::open(0, Detail::Counts).unwrap();
        let tier = Kernels::load(&gpu, image).unwrap();
        let engine = Engine::interpreted(&tier, random.program.clone(), "").unwrap();
        let reach = random
            .program
            .queries()
            .iter()
            .map(|query| query.rotation.unsigned_abs());
        let rows = u64::from(reach.max().unwrap());
        for (rows, tile, buffers) in [
            (0, 1, 1),
            (rows, 1, 1),
            (33, 0, 1),
            (33, 34, 1),
            (33, 1, 0),
            (1 << 33, 1, 1),
        ] {
            let plan = ProgramPlan::of_tiles(&engine, Columns::Streamed, rows, tile, buffers);
            assert!(matches!(plan, Err(Error::Invalid(_))), "{rows} {tile} {buffers}");
        }
        let refusal = ProgramPlan::new(&engine, Columns::Streamed, 33, 1 << 20, 64).unwrap_err();
        assert!(
            refusal.is_memory_short() && refusal.to_string().contains("a pinned slot"),
            "{refusal}"
        );
        // With or without NVRTC there is an engine.
        assert!(Engine::new(&gpu, &tier, random.program.clone(), None).is_ok());
        let other = small_random("another");
        let plan = ProgramPlan::of_tiles(&engine, Columns::Resident, 33, 3, 1).unwrap();
        let kernels = |gpu: &Gpu| Engine::interpreted(&Kernels::load(gpu, image)?, other.program.clone(), "");
        drop((engine, tier, gpu));
        let refused = evaluated(0, &kernels, &other, plan, 1).unwrap_err();
        assert!(matches!(refused, Error::Invalid(_)), "{refused}");
        driver.assert_clean("after refusals");
    });
}
