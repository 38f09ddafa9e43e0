//! What stays on devices from job to job, under the fake driver: a job that is refused or stopped takes nothing of it, and
//! what is gone or distrusted is freed.

use std::sync::Arc;

use ark_bn254::{Fr, G1Affine, G1Projective, g1};
use ark_ec::VariableBaseMSM;
use ark_ff::{FftField, Field, UniformRand};
use spillproof_commit::G1;
use spillproof_engine::Error;
use spillproof_engine::accelerator::{
    Accelerator, Answer, Bases, ColumnId, Coset, CountedAccelerator, Groups, InSteps, InTiles, Input, Matrix,
    Parts, Program, ReadElements, RowSource, Scalars, StepEnds, Sums, TileEnds, Tiles, Transform,
    WriteElements,
};
use spillproof_engine::budget::{Budget, ByteSize};
use spillproof_engine::column::Element;
use spillproof_engine::control::Control;
use spillproof_gpu::Choice;
use spillproof_gpu::accelerator::{GpuAccelerator, Offload, Request};
use spillproof_gpu::trace::SpanKind;
use spillproof_kernels::vector::{Instruction, Operand, Operation, Target};

use crate::sessions::{accelerator, name_the_image, open};
use crate::support::{rng, with_kernels};

type Result<T> = spillproof_engine::Result<T>;

/// Four shares of [`STEP`] points.
const N: u64 = 2048;
const STEP: u64 = 512;
const LOG_N: u32 = 9;
const BYTES: u64 = 32;
/// What transforms make.
const COLUMN: ColumnId = ColumnId {
    frames: 7,
    first_frame: 0,
};

/// Points, scalars, and their sum by arkworks.
struct Data {
    points: Vec<u8>,
    scalars: Vec<u8>,
    expected: G1Projective,
}

fn bytes_of<E: Element>(values: &[E]) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * E::BYTES];
    for (value, into) in values.iter().zip(bytes.chunks_exact_mut(E::BYTES)) {
        value.encode(into);
    }
    bytes
}

impl Data {
    fn random(test: &str) -> Self {
        let mut rng = rng(test);
        let points: Vec<G1Affine> = (0..N).map(|_| G1Affine::rand(&mut rng)).collect();
        let scalars: Vec<Fr> = (0..N).map(|_| Fr::rand(&mut rng)).collect();
        let encoded: Vec<G1> = points.iter().map(G1::from_affine::<g1::Config>).collect();
        Self {
            points: bytes_of(&encoded),
            scalars: bytes_of(&scalars),
            expected: G1Projective::msm(&points, &scalars).unwrap(),
        }
    }

    /// A sum of the points from `first` on, of which `count` are to be summed. `before_reads` is called before scalars are
    /// read.
    fn sums<'a>(&'a self, first: u64, count: u64, before_reads: impl Fn() -> Result<()> + 'a) -> Sums<'a> {
        let of = move |all: &'a [u8], bytes: u64| {
            move |at: u64, into: &mut [u8]| {
                into.copy_from_slice(&all[((first + at) * bytes) as usize..][..into.len()]);
                Ok(())
            }
        };
        let scalars = of(&self.scalars, BYTES);
        Sums {
            bases: Groups {
                g1: vec![Bases {
                    source: Box::new(of(&self.points, 2 * BYTES)),
                    id: (count == N).then_some(ColumnId {
                        frames: 1,
                        first_frame: 0,
                    }),
                }],
                g2: Vec::new(),
            },
            scalars: vec![Scalars {
                len: count,
                source: Box::new(move |at: u64, into: &mut [u8]| {
                    before_reads()?;
                    scalars(at, into)
                }),
            }],
            parts: None,
        }
    }

    /// The same sum, which devices may share.
    fn shared<'a>(&'a self, before_reads: impl Fn() -> Result<()> + Sync + Copy + 'a) -> Sums<'a> {
        Sums {
            parts: Some(Parts {
                step: STEP,
                of: Box::new(move |range| Ok(self.sums(range.start, range.end - range.start, before_reads))),
            }),
            ..self.sums(0, N, before_reads)
        }
    }

    /// Makes the sum; the bytes that cross.
    fn check(&self, accelerator: &GpuAccelerator, budget: &Budget) -> u64 {
        let before = sent(accelerator);
        let sums = accelerator.sums(&mut self.sums(0, N, || Ok(())), budget);
        let Answer::Done(sums) = sums.unwrap() else {
            panic!("{}", accelerator.report());
        };
        assert_eq!(sums.g1, [self.expected]);
        sent(accelerator) - before
    }
}

/// Bytes that crossed to the first device.
fn sent(accelerator: &GpuAccelerator) -> u64 {
    let trace = accelerator.gpus()[0].trace();
    trace.total(SpanKind::ToDevicePinned).bytes
}

/// Zeros, which are [`COLUMN`].
struct Zeros;

impl ReadElements for Zeros {
    fn read(&mut self, _: u64, into: &mut [u8]) -> Result<()> {
        into.fill(0);
        Ok(())
    }

    fn column(&self) -> Option<(ColumnId, u64)> {
        Some((COLUMN, 1 << LOG_N))
    }
}

impl WriteElements for Zeros {
    fn write(&mut self, _: u64, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn column_id(&self) -> Option<ColumnId> {
        Some(COLUMN)
    }
}

struct NoEnds;

impl InSteps for NoEnds {
    fn ends(&mut self, _: Matrix) -> Result<StepEnds<'_>> {
        unreachable!("no transform has steps")
    }
}

impl InTiles for NoEnds {
    fn lease_bytes(&self) -> u64 {
        0
    }

    fn ends(&mut self, _: Tiles) -> Result<TileEnds<'_>> {
        unreachable!("no quotient is begun")
    }
}

fn root(log_n: u32) -> Fr {
    Fr::get_root_of_unity(1 << log_n).unwrap()
}

/// Transforms [`COLUMN`] into itself, or another column of zeros into it; the bytes that cross.
fn transform(accelerator: &GpuAccelerator, budget: &Budget, is_of_itself: bool) -> u64 {
    let before = sent(accelerator);
    let zeros = |_: u64, into: &mut [u8]| {
        into.fill(0);
        Ok(())
    };
    let input: Box<dyn ReadElements> = match is_of_itself {
        true => Box::new(Zeros),
        false => Box::new(zeros),
    };
    let mut job = Transform {
        log_n: LOG_N,
        omega: root(LOG_N),
        before: Fr::ONE,
        after: Fr::ONE,
        scale: Fr::ONE,
        input,
        output: Box::new(Zeros),
        in_steps: Box::new(NoEnds),
    };
    let answer = accelerator.transform(&mut job, budget).unwrap();
    assert_eq!(answer, Answer::Done(()), "{}", accelerator.report());
    sent(accelerator) - before
}

/// A quotient in rows of 32 MiB, for which a device of a few MiB has no plan.
fn too_large_quotient(accelerator: &GpuAccelerator, budget: &Budget) -> Answer<()> {
    let instructions = [Instruction {
        operation: Operation::Square(Operand::Input(0)),
        to: Target::Output(0),
    }];
    let mut job = Coset {
        log_rows: 8,
        log_columns: 20,
        omega: root(28),
        shift: Fr::GENERATOR,
        scale: Fr::ONE,
        program: Program {
            queries: &[(0, 0)],
            instructions: &instructions,
            registers: 0,
        },
        inputs: vec![Input {
            column: 0,
            rotations: (0, 0),
            rows: RowSource::Read,
        }],
        in_tiles: Box::new(NoEnds),
    };
    accelerator.quotient(&mut job, budget).unwrap()
}

/// Its points and columns stay on the device: neither a stop, nor a host without memory, nor a job for which there is no
/// plan says anything against them.
#[test]
fn what_did_not_begin_takes_nothing_from_the_device() {
    const TEST: &str = "what_did_not_begin_takes_nothing_from_the_device";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        driver.reset(1, 64 << 20);
        let accelerator = accelerator(ByteSize::Bytes(2 << 20), Offload::Always);
        let (data, budget) = (Data::random(TEST), Budget::new(8 << 20));
        assert_eq!(transform(&accelerator, &budget, false), BYTES << LOG_N);
        assert_eq!(data.check(&accelerator, &budget), 3 * BYTES * N);
        let stays = |what: &str| {
            assert_eq!(data.check(&accelerator, &budget), BYTES * N, "{what}");
            assert_eq!(transform(&accelerator, &budget, true), 0, "{what}");
        };
        stays("nothing happened");
        let mut stopped = data.sums(0, N, || Err(Error::Stopped));
        let answer = accelerator.sums(&mut stopped, &budget);
        assert!(matches!(answer, Err(Error::Stopped)), "{answer:?}");
        stays("a sum was stopped");
        let all = budget.lease(budget.available_bytes(), "somebody else").unwrap();
        let answer = accelerator.sums(&mut data.sums(0, N, || Ok(())), &budget);
        assert!(matches!(answer, Ok(Answer::Declined(_))), "{answer:?}");
        drop(all);
        stays("the host had no memory for slots");
        let answer = too_large_quotient(&accelerator, &budget);
        assert!(
            matches!(&answer, Answer::Declined(why) if why.contains("it needs")),
            "{answer:?}"
        );
        stays("a quotient had no plan");
        drop(Arc::into_inner(accelerator).unwrap());
        driver.assert_clean(TEST);
    });
}

/// While several devices share a sum, a column goes, or the sum is stopped.
#[test]
fn a_shared_sum_lets_columns_go_and_is_stopped() {
    const TEST: &str = "a_shared_sum_lets_columns_go_and_is_stopped";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        driver.reset(2, 64 << 20);
        let accelerator = open(&Request {
            choice: Choice::All,
            vram: ByteSize::Bytes(1 << 20),
            offload: Offload::Always,
            ..Request::default()
        });
        let (data, budget) = (Data::random(TEST), Budget::new(8 << 20));
        transform(&accelerator, &budget, false);
        assert_eq!(transform(&accelerator, &budget, true), 0);
        let goes = || {
            accelerator.forget(COLUMN.frames);
            Ok(())
        };
        let answer = accelerator.sums(&mut data.shared(goes), &budget).unwrap();
        let Answer::Done(sums) = answer else {
            panic!("{}", accelerator.report());
        };
        assert_eq!(sums.g1, [data.expected]);
        assert_eq!(accelerator.report().devices()[0].sums(), 0, "it was shared");
        assert_eq!(transform(&accelerator, &budget, true), BYTES << LOG_N);
        let control = Control::new();
        let _entered = control.enter();
        let stops = || {
            control.stop();
            Ok(())
        };
        let answer = accelerator.sums(&mut data.shared(stops), &budget);
        assert!(matches!(answer, Err(Error::Stopped)), "{answer:?}");
        drop(Arc::into_inner(accelerator).unwrap());
        driver.assert_clean(TEST);
    });
}

/// What is distrusted frees its devices: now, or when its job ends.
#[test]
fn a_distrusted_accelerator_keeps_nothing() {
    const TEST: &str = "a_distrusted_accelerator_keeps_nothing";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let data = Data::random(TEST);
        for during_a_job in [false, true] {
            driver.reset(1, 64 << 20);
            let accelerator = accelerator(ByteSize::Bytes(1 << 20), Offload::Always);
            let budget = Budget::new(8 << 20);
            let counted = CountedAccelerator::new(Arc::clone(&accelerator) as Arc<dyn Accelerator>);
            transform(&accelerator, &budget, false);
            data.check(&accelerator, &budget);
            assert!(driver.live().device_memory > 0 && driver.live().pinned_memory > 0);
            match during_a_job {
                false => counted.distrust(),
                true => {
                    let distrusts = || {
                        counted.distrust();
                        Ok(())
                    };
                    let answer = accelerator.sums(&mut data.sums(0, N, distrusts), &budget);
                    assert!(matches!(answer, Ok(Answer::Done(_))), "{answer:?}");
                }
            }
            let live = driver.live();
            assert_eq!(
                (live.device_memory, live.pinned_memory),
                (0, 0),
                "during a job: {during_a_job}"
            );
            assert_eq!(budget.held_bytes(), 0);
            drop(counted);
            drop(Arc::into_inner(accelerator).unwrap());
            driver.assert_clean(TEST);
        }
    });
}
