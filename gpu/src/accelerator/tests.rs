//! Jobs whose rates speak for the device, and whose data decides: at the pace of the first slots, the rest is worth
//! waiting for or not. Rates are given, and slow ends sleep for longer than the processor would take.

use std::time::Duration;

use ark_bn254::{Fr, G1Affine, G1Projective, g1};
use ark_ec::VariableBaseMSM;
use ark_ff::{FftField, Field};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use spillproof_engine::accelerator::{
    Accelerator, Answer, Bases, ColumnId, Constraints, Coset, Groups, InSteps, InTiles, Input, Matrix,
    Program, RowSource, Scalars, StepEnds, Sums, TileEnds, Tiles, Transform,
};
use spillproof_engine::budget::{Budget, ByteSize};
use spillproof_kernels::vector::{Instruction, Operand, Operation, Target};

use super::rates::{JobRates, KnownRates};
use super::*;
use crate::accelerator::worth::{bytes_of, points};
use crate::support::with_kernels;
use crate::trace::{Detail, SpanKind};

const N: u64 = 1 << 12;
const PROGRAM: [Instruction<Fr>; 2] = [
    Instruction {
        operation: Operation::Square(Operand::Input(0)),
        to: Target::Register(0),
    },
    Instruction {
        operation: Operation::Product(Operand::Register(0), Operand::Input(0)),
        to: Target::Output(0),
    },
];
const INPUTS: [Input; 1] = [Input {
    column: 0,
    rotations: (0, 0),
    rows: RowSource::Read,
}];

/// A program that takes its column to the third power.
fn program() -> Program<'static> {
    Program {
        queries: &[(0, 0)],
        instructions: &PROGRAM,
        registers: 1,
    }
}

/// An accelerator that knows rates by which the processor takes so many seconds for a job of [`N`] elements, and the
/// device none.
fn accelerator(image: &[u8], processor_seconds: f64) -> GpuAccelerator {
    let gpu = Gpu::open(0, Detail::Counts).unwrap();
    let kernels = Kernels::load(&gpu, image).unwrap();
    let staging = Staging::default();
    let accelerator = GpuAccelerator::over(vec![gpu], ByteSize::Bytes(4 << 20), Offload::Measured, &staging);
    let for_work = |work: f64| {
        Some(JobRates {
            device_fixed: 0.0,
            device_each: 0.0,
            processor_each: processor_seconds / work,
        })
    };
    let known = KnownRates {
        sums: for_work(N as f64),
        transforms: for_work(12.0 * N as f64),
        quotients: for_work(N as f64).map(|rates| {
            let words = quotient::program_of(&program()).unwrap().words();
            (words, INPUTS.to_vec(), rates)
        }),
        constraints: for_work(12.0 * N as f64).map(|rates| (2, rates)),
    };
    locked(&accelerator.devices[0]).knows(kernels, known);
    accelerator
}

fn elements() -> Vec<Fr> {
    (1..=N).map(|i| Fr::from(i).square()).collect()
}

/// Reads from bytes of elements, each part after a pause.
fn slow<'a>(
    bytes: &'a [u8],
    element_bytes: usize,
    pause: Duration,
) -> impl FnMut(u64, &mut [u8]) -> spillproof_engine::Result<()> + 'a {
    move |first, into| {
        std::thread::sleep(pause);
        let start = first as usize * element_bytes % bytes.len();
        into.copy_from_slice(&bytes[start..][..into.len()]);
        Ok(())
    }
}

struct NoSteps;

impl InSteps for NoSteps {
    fn ends(&mut self, _: Matrix) -> spillproof_engine::Result<StepEnds<'_>> {
        unreachable!("the transform fits the device")
    }
}

struct Rows<'a> {
    values: &'a [u8],
    pause: Duration,
    output: &'a mut Vec<u8>,
}

impl InTiles for Rows<'_> {
    fn lease_bytes(&self) -> u64 {
        0
    }

    fn ends(&mut self, _: Tiles) -> spillproof_engine::Result<TileEnds<'_>> {
        Ok(TileEnds {
            input: Box::new(slow(self.values, 32, self.pause)),
            output: Box::new(|_: u64, bytes: &[u8]| {
                self.output.extend_from_slice(bytes);
                Ok(())
            }),
        })
    }
}

/// A sum over points that may stay; whether the device did it, with the right result.
fn sum(accelerator: &GpuAccelerator, budget: &Budget, pause: Duration) -> bool {
    let (points, values) = (points(N), elements());
    let (points_bytes, scalars) = (bytes_of(&points), bytes_of(&values));
    let mut sums = Sums {
        bases: Groups {
            g1: vec![Bases {
                source: Box::new(slow(&points_bytes, 64, pause)),
                id: Some(ColumnId {
                    frames: 1,
                    first_frame: 0,
                }),
            }],
            g2: Vec::new(),
        },
        scalars: vec![Scalars {
            len: N,
            source: Box::new(slow(&scalars, 32, pause)),
        }],
        parts: None,
    };
    match accelerator.sums(&mut sums, budget).unwrap() {
        Answer::Done(found) => {
            let affine: Vec<G1Affine> = points
                .iter()
                .map(|point| point.to_affine::<g1::Config>())
                .collect();
            assert_eq!(found.g1, [G1Projective::msm(&affine, &values).unwrap()]);
            true
        }
        Answer::Declined(why) => {
            assert!(why.contains("at the pace of the first"), "{why}");
            false
        }
    }
}

/// One job of each kind; whether the device did it, with the right result.
fn jobs(accelerator: &GpuAccelerator, budget: &Budget, pause: Duration) -> [bool; 4] {
    let sum = sum(accelerator, budget, pause);
    let values = elements();
    let scalars = bytes_of(&values);
    let mut output = Vec::new();
    let mut transform = Transform {
        log_n: 12,
        omega: Fr::get_root_of_unity(N).unwrap(),
        before: Fr::ONE,
        after: Fr::ONE,
        scale: Fr::ONE,
        input: Box::new(slow(&scalars, 32, pause)),
        output: Box::new(|_: u64, bytes: &[u8]| {
            output.extend_from_slice(bytes);
            Ok(())
        }),
        in_steps: Box::new(NoSteps),
    };
    let answer = accelerator.transform(&mut transform, budget).unwrap();
    drop(transform);
    let transformed = answer == Answer::Done(());
    if transformed {
        let domain = Radix2EvaluationDomain::<Fr>::new(N as usize).unwrap();
        assert!(output == bytes_of(&domain.fft(&values)));
    }
    let mut output = Vec::new();
    let mut coset = Coset {
        log_rows: 6,
        log_columns: 6,
        omega: Fr::get_root_of_unity(N).unwrap(),
        shift: Fr::GENERATOR,
        scale: Fr::ONE,
        program: program(),
        inputs: INPUTS.to_vec(),
        in_tiles: Box::new(Rows {
            values: &scalars,
            pause,
            output: &mut output,
        }),
    };
    let answer = accelerator.quotient(&mut coset, budget).unwrap();
    drop(coset);
    let is_done = answer == Answer::Done(());
    assert_eq!(output.len() as u64, if is_done { 32 * N } else { 0 });
    // Each row of both matrices names its own signal.
    let coefficients = (0..N as u32).flat_map(|row| [[row, row, 0, 0], [row, row, 0, 1]]);
    let coefficients: Vec<u8> = coefficients.flatten().flat_map(u32::to_le_bytes).collect();
    let one = bytes_of(&[Fr::ONE]);
    let vector = |len, bytes, element_bytes, pause| Scalars {
        len,
        source: Box::new(slow(bytes, element_bytes, pause)),
    };
    let mut output = Vec::new();
    let mut constraints = Constraints {
        log_n: 12,
        omega: Fr::get_root_of_unity(N).unwrap(),
        shift: Fr::GENERATOR,
        values: vector(1, &one, 32, Duration::ZERO),
        witness: vector(N, &scalars, 32, Duration::ZERO),
        coefficients: vector(2 * N, &coefficients, 16, pause),
        output: Box::new(|_: u64, bytes: &[u8]| {
            output.extend_from_slice(bytes);
            Ok(())
        }),
        disk_seconds: Box::new(|| 0.0),
    };
    let answer = accelerator.constraints(&mut constraints, budget).unwrap();
    drop(constraints);
    let is_made = answer == Answer::Done(());
    if is_made {
        let domain = Radix2EvaluationDomain::<Fr>::new(N as usize).unwrap();
        let to_coset = |values: &[Fr]| domain.get_coset(Fr::GENERATOR).unwrap().fft(&domain.ifft(values));
        let squares: Vec<Fr> = values.iter().map(Field::square).collect();
        let left = to_coset(&values).into_iter().zip(to_coset(&squares));
        let left: Vec<Fr> = left.map(|(a, c)| a.square() - c).collect();
        assert!(output == bytes_of(&left));
    }
    [sum, transformed, is_done, is_made]
}

#[test]
fn a_job_whose_data_comes_slowly_is_the_processors() {
    with_kernels(
        module_path!(),
        "a_job_whose_data_comes_slowly_is_the_processors",
        |driver, image| {
            driver.reset(1, 64 << 20);
            let budget = Budget::new(64 << 20);
            // The processor takes less than one pause.
            let accelerator = self::accelerator(image, 1e-3);
            assert_eq!(jobs(&accelerator, &budget, Duration::from_millis(20)), [false; 4]);
            let report = accelerator.report();
            assert_eq!(
                (report.by_the_processor(), report.reasons().len()),
                (4, 4),
                "{report}"
            );
            assert!(report.reasons_to_take().is_empty());
            assert_eq!(driver.calls(Some("cuLaunchKernel")), 0);
            // The slots are kept, and nothing of the jobs is left in them.
            assert!(budget.spare_bytes() > 0 && budget.held_bytes() == 0);
            let processor_takes = |seconds: f64| {
                locked(&accelerator.devices[0]).measured.sums = Some(JobRates {
                    device_fixed: 0.0,
                    device_each: 0.0,
                    processor_each: seconds / N as f64,
                });
            };
            // It takes an hour.
            processor_takes(3600.0);
            assert_eq!(
                jobs(&accelerator, &budget, Duration::from_millis(20)),
                [true, false, false, false]
            );
            // Points that stayed are there after a sum that was left to the processor.
            processor_takes(1e-3);
            assert!(!sum(&accelerator, &budget, Duration::from_millis(20)));
            let sent = || {
                let trace = accelerator.gpus[0].trace();
                trace.total(SpanKind::ToDevicePinned).bytes
            };
            let before = sent();
            processor_takes(3600.0);
            assert!(sum(&accelerator, &budget, Duration::ZERO));
            assert_eq!(sent() - before, 32 * N);
            drop(accelerator);
            let accelerator = self::accelerator(image, 1e6);
            assert_eq!(jobs(&accelerator, &budget, Duration::ZERO), [true; 4]);
            let report = accelerator.report();
            assert_eq!(report.by_the_processor(), 0, "{report}");
            let kinds = report.reasons_to_take().iter().map(|(kind, _)| *kind);
            let all = [
                JobKind::Sum,
                JobKind::Transform,
                JobKind::Quotient,
                JobKind::Constraints,
            ];
            assert!(kinds.eq(all), "{report}");
            drop(accelerator);
            assert_eq!((budget.spare_bytes(), budget.held_bytes()), (0, 0));
            driver.assert_clean("slow data");
        },
    );
}
