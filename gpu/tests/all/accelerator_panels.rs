//! Panels of transforms that ranks share, on one device under the fake driver: random halves beside their formulas.

use std::cell::RefCell;

use ark_bn254::Fr;
use ark_ff::{FftField, Field, UniformRand};
use rand::Rng;
use spillproof_engine::accelerator::{Accelerator, Answer, Half, Panel, ReadElements, WriteElements};
use spillproof_engine::budget::ByteSize;
use spillproof_engine::column::Element;
use spillproof_fake_driver::Code;
use spillproof_gpu::accelerator::{Offload, Request};
use spillproof_gpu::kernels::Kernels;
use spillproof_gpu::ntt::{NttSlots, PanelNtt, PanelPlan};
use spillproof_gpu::ring::{Download, Upload};
use spillproof_gpu::trace::{Detail, SpanKind};
use spillproof_gpu::{Caching, Choice, Error, Gpu, Pinned, Result, Vram};

use crate::sessions::{accelerator, all_is_given_back, name_the_image, open, session};
use crate::support::{rng, with_kernels};

const BYTES: usize = 32;

/// Columns of a matrix, row after row, and what comes of them.
struct Case {
    log_lengths: [u32; 2],
    first_column: u64,
    halves: Vec<Half>,
    elements: Vec<Fr>,
    expected: Vec<Fr>,
}

impl Case {
    fn random(rng: &mut impl Rng) -> Self {
        let (log_rows, log_columns) = (rng.gen_range(0..7), rng.gen_range(0..6));
        let log_n = log_rows + log_columns + rng.gen_range(0..4);
        // Of all columns of the matrix.
        let first_column = rng.gen_range(0..1u64 << (log_n - log_rows - log_columns)) << log_columns;
        let which = [&[false][..], &[true], &[true, false]][rng.gen_range(0..3)];
        let half = |is_second| {
            let mut number = || match rng.gen_range(0..3) {
                0 => Fr::ONE,
                _ => Fr::rand(rng),
            };
            Half {
                log_n,
                omega: Fr::get_root_of_unity(1 << log_n).unwrap(),
                before: number(),
                after: number(),
                scale: number(),
                is_second,
            }
        };
        let halves: Vec<Half> = which.iter().copied().map(half).collect();
        let elements: Vec<Fr> = (0..1 << (log_rows + log_columns))
            .map(|_| Fr::rand(rng))
            .collect();
        let log_lengths = [log_rows, log_columns];
        let made = |elements: Vec<Fr>, half: &Half| made(&elements, log_lengths, first_column, half);
        Self {
            log_lengths,
            first_column,
            expected: halves.iter().fold(elements.clone(), made),
            halves,
            elements,
        }
    }

    fn job<'a>(&self, elements: &'a RefCell<Vec<Fr>>) -> Panel<'a> {
        let [log_rows, log_columns] = self.log_lengths;
        Panel {
            log_rows,
            log_columns,
            first_column: self.first_column,
            halves: self.halves.clone(),
            input: Box::new(End(elements)),
            output: Box::new(End(elements)),
        }
    }
}

/// By the formulas of [`Half`].
fn made(elements: &[Fr], [log_rows, log_columns]: [u32; 2], first_column: u64, half: &Half) -> Vec<Fr> {
    let (r, c) = (1u64 << log_rows, 1u64 << (half.log_n - log_rows));
    let element = |k: u64, at: u64| {
        let j = first_column + at;
        let terms = (0..r).map(|i| {
            let x = elements[((i << log_columns) + at) as usize];
            let shift = match half.is_second {
                true => Fr::ONE,
                false => half.before.pow([c * i + j]),
            };
            x * shift * half.omega.pow([c * i * k])
        });
        let sum: Fr = terms.sum();
        sum * match half.is_second {
            true => half.after.pow([c * k + j]),
            false => half.scale * half.omega.pow([k * j]),
        }
    };
    (0..r)
        .flat_map(|k| (0..1 << log_columns).map(move |at| (k, at)))
        .map(|(k, at)| element(k, at))
        .collect()
}

/// Both ends of a job, in one place.
struct End<'a>(&'a RefCell<Vec<Fr>>);

impl ReadElements for End<'_> {
    fn read(&mut self, first: u64, into: &mut [u8]) -> spillproof_engine::Result<()> {
        let values = self.0.borrow();
        for (value, into) in values[first as usize..].iter().zip(into.chunks_exact_mut(BYTES)) {
            value.encode(into);
        }
        Ok(())
    }
}

impl WriteElements for End<'_> {
    fn write(&mut self, first: u64, bytes: &[u8]) -> spillproof_engine::Result<()> {
        let mut values = self.0.borrow_mut();
        for (value, from) in values[first as usize..].iter_mut().zip(bytes.chunks_exact(BYTES)) {
            *value = Fr::decode(from);
        }
        Ok(())
    }
}

#[test]
fn panels_are_their_formulas() {
    const TEST: &str = "panels_are_their_formulas";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _named = name_the_image(image);
        let mut rng = rng(TEST);
        let (mut done, mut failed) = (0, 0);
        for turn in 0..150 {
            let case = Case::random(&mut rng);
            driver.reset(1, 64 << 20);
            let vram = ByteSize::Bytes(1 << rng.gen_range(12..20));
            let gpu = accelerator(vram, Offload::Always);
            let session = session(None, 1 << rng.gen_range(14..22));
            if turn % 3 == 2 {
                driver.fail(None, rng.gen_range(20..60), Code::LaunchFailed, rng.gen_bool(0.5));
            }
            let mut times = 0;
            for _ in 0..2 {
                let elements = RefCell::new(case.elements.clone());
                let answer = gpu.panel(&mut case.job(&elements), session.budget()).unwrap();
                if let Answer::Done(()) = answer {
                    assert!(
                        elements.into_inner() == case.expected,
                        "turn {turn}: {:?}",
                        case.log_lengths
                    );
                    times += 1;
                }
            }
            done += times;
            failed += driver.failures();
            // Elements cross once for all halves.
            let trace = gpu.gpus()[0].trace();
            if times == 2 && driver.failures() == 0 {
                let bytes = times * (BYTES * case.elements.len()) as u64;
                assert_eq!(trace.total(SpanKind::ToDevicePinned).bytes, bytes);
                assert_eq!(trace.total(SpanKind::FromDevicePinned).bytes, bytes);
                // The tables have one more, and another plan has other tables.
                assert!(trace.hard_syncs() <= 2 * times, "{}", trace.table());
            }
            assert_eq!(gpu.report().panels(), times);
            all_is_given_back(session, gpu, driver, &format!("turn {turn}"));
        }
        println!("{done} panels, {failed} failures");
        assert!(done > 100 && failed > 10);
    });
}

/// A device that fails before anything is written leaves the panel to the next one; behind that, to the rank.
#[test]
fn a_panel_that_was_not_written_goes_to_the_next_device() {
    const TEST: &str = "a_panel_that_was_not_written_goes_to_the_next_device";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _named = name_the_image(image);
        let case = Case::random(&mut rng(TEST));
        for (call, code, is_done) in [
            ("cuMemAlloc_v2", Code::OutOfMemory, true),
            ("cuLaunchKernel", Code::LaunchFailed, false),
        ] {
            driver.reset(2, 64 << 20);
            let gpus = open(&Request {
                choice: Choice::All,
                vram: ByteSize::Bytes(1 << 20),
                offload: Offload::Always,
                ..Request::default()
            });
            let session = session(None, 4 << 20);
            let elements = RefCell::new(case.elements.clone());
            driver.fail(Some(call), 1, code, false);
            let answer = gpus.panel(&mut case.job(&elements), session.budget()).unwrap();
            assert_eq!(driver.failures(), 1, "{call}");
            let report = gpus.report();
            match is_done {
                true => {
                    assert_eq!(answer, Answer::Done(()), "{call}: {report}");
                    assert!(elements.into_inner() == case.expected, "{call}");
                    assert_eq!(report.devices()[1].panels(), 1, "{report}");
                }
                false => {
                    let Answer::Declined(why) = answer else {
                        panic!("{call}: {report}");
                    };
                    assert!(why.contains("of which some is written"), "{why}");
                }
            }
            all_is_given_back(session, gpus, driver, call);
        }
    });
}

/// Panels that are not inside of their transforms are refused before the device computes any address from them.
#[test]
fn panels_outside_of_their_transforms_are_refused() {
    const TEST: &str = "panels_outside_of_their_transforms_are_refused";
    let half = |log_n: u32, is_second| Half {
        log_n,
        omega: Fr::get_root_of_unity(1 << log_n.min(28)).unwrap(),
        before: Fr::GENERATOR,
        after: Fr::GENERATOR,
        scale: Fr::ONE,
        is_second,
    };
    let plan = |lengths, halves: &[Half]| PanelPlan::new(lengths, halves, [1 << 20; 2]);
    let good = [half(8, true), half(8, false)];
    for (lengths, halves) in [
        ([3, 4], &[][..]),
        ([3, 6], &good),
        ([9, 0], &good),
        ([u32::MAX, 1], &good),
        ([0, u32::MAX], &good),
        ([3, 4], &[half(8, true), half(6, false)]),
        ([3, 4], &[half(29, false)]),
        ([3, 4], &[half(u32::MAX, false)]),
    ] {
        let refused = plan(lengths, halves);
        assert!(
            matches!(refused, Err(Error::Invalid(_))),
            "{lengths:?}: {refused:?}"
        );
    }
    with_kernels(module_path!(), TEST, |driver, image| {
        driver.reset(1, 64 << 20);
        let gpu = Gpu::open(0, Detail::Counts).unwrap();
        let (kernels, vram) = (Kernels::load(&gpu, image).unwrap(), Vram::new(&gpu, 1 << 20));
        let plan = plan([3, 4], &good).unwrap();
        // Shorter, longer, more.
        for halves in [
            &[half(6, true), half(6, false)][..],
            &[half(12, true), half(12, false)],
            &[good[0], good[1], good[1]],
            &[],
        ] {
            let refused = PanelNtt::new(&vram, &kernels, plan, halves).map(drop);
            assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
        }
        let mut ntt = PanelNtt::new(&vram, &kernels, plan, &good).unwrap();
        let pinned = Pinned::new(4 * plan.slot_bytes());
        let slots = |what| pinned.pool(&gpu, 2, plan.slot_bytes() as usize, Caching::Cached, what);
        let (up, back) = (slots("up").unwrap(), slots("back").unwrap());
        let mut upload = Upload::new(up.take(2).unwrap(), gpu.trace()).unwrap();
        let mut download = Download::new(back.take(2).unwrap(), gpu.trace()).unwrap();
        let elements = RefCell::new(vec![Fr::ONE; 1 << 7]);
        let mut run = |first_column| -> Result<()> {
            let slots = NttSlots {
                upload: &mut upload,
                download: &mut download,
            };
            ntt.run(slots, first_column, &mut End(&elements), &mut End(&elements))
        };
        // 16 columns of 32.
        for first_column in [17, 32, u64::MAX - 3] {
            let refused = run(first_column);
            assert!(
                matches!(refused, Err(Error::Invalid(_))),
                "{first_column}: {refused:?}"
            );
        }
        run(16).unwrap();
        let found = elements.take();
        let expected = good.iter().fold(vec![Fr::ONE; 1 << 7], |elements, half| {
            made(&elements, [3, 4], 16, half)
        });
        assert!(found == expected);
    });
}
