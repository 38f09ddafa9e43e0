//! Transforms under the fake driver, with kernels compiled for the host, in device memory and in two steps,
//! against arkworks and halo2curves.

use ark_bn254::Fr;
use ark_ff::{BigInt, FftField, Field, UniformRand};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use spillproof_engine::accelerator::ReadElements;
use spillproof_engine::error::Invalid;
use spillproof_fake_driver::{Code, FakeDriver, Order};
use spillproof_gpu::kernels::Kernels;
use spillproof_gpu::ntt::{MemoryElements, Ntt, NttMethod, NttPlan, NttSlots, NttSpec};
use spillproof_gpu::ring::{Download, Upload};
use spillproof_gpu::trace::{Detail, SpanKind};
use spillproof_gpu::{Caching, Error, Gpu, Pinned, Result, Vram};

use crate::support::kernels::words;
use crate::support::{DoneBy, bytes_of, is_the_drivers, rng, with_fallback, with_kernels};

fn in_memory(elements: &[Fr]) -> MemoryElements {
    MemoryElements::of_bn254(bytes_of(elements.iter().map(|element| [words(element)])))
}

fn elements(bytes: &[u8]) -> Vec<Fr> {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let element = |bytes: &[u8]| {
        let words = std::array::from_fn(|i| word(&bytes[8 * i..8 * (i + 1)]));
        Fr::new_unchecked(BigInt(words))
    };
    bytes.chunks_exact(32).map(element).collect()
}

/// The whole job, with budgets that are just enough.
fn transformed(
    image: &[u8],
    plan: NttPlan,
    transform: NttSpec,
    slots: usize,
    from: &mut dyn ReadElements,
) -> Result<(Vec<Fr>, Gpu)> {
    let gpu = Gpu::open(0, Detail::Counts)?;
    let kernels = Kernels::load(&gpu, image)?;
    let pinned = Pinned::new(2 * slots as u64 * plan.slot_bytes());
    let slot_bytes = plan.slot_bytes() as usize;
    let up = pinned.pool(&gpu, slots, slot_bytes, Caching::WriteCombined, "up")?;
    let back = pinned.pool(&gpu, slots, slot_bytes, Caching::Cached, "back")?;
    let mut upload = Upload::new(up.take(slots)?, gpu.trace())?;
    let mut download = Download::new(back.take(slots)?, gpu.trace())?;
    let vram = Vram::new(&gpu, plan.vram_bytes());
    let mut ntt = Ntt::new(&vram, &kernels, plan, transform)?;
    assert_eq!(
        vram.budget().held_bytes(),
        plan.vram_bytes(),
        "a plan says what is leased"
    );
    let mut to = MemoryElements::of_bn254(vec![0; 32 << plan.log_n()]);
    let mut between = to.clone();
    let slots = NttSlots {
        upload: &mut upload,
        download: &mut download,
    };
    ntt.transform(slots, from, &mut between, &mut to)?;
    Ok((elements(to.bytes()), gpu))
}

/// Forward, inverse, both on a coset, by arkworks.
pub fn oracles(input: &[Fr], shift: Fr) -> [(NttSpec, Vec<Fr>); 4] {
    let domain = Radix2EvaluationDomain::<Fr>::new(input.len()).unwrap();
    let coset = domain.get_coset(shift).unwrap();
    let forward = NttSpec::forward(input.len().ilog2()).unwrap();
    [
        (forward, domain.fft(input)),
        (forward.inverse(), domain.ifft(input)),
        (forward.on_coset(shift).unwrap(), coset.fft(input)),
        (forward.inverse().on_coset(shift).unwrap(), coset.ifft(input)),
    ]
}

fn check(driver: &FakeDriver, image: &[u8], log_n: u32, plans: &[(NttPlan, usize)], inverses: bool) {
    let mut rng = rng("ntt");
    let input: Vec<Fr> = (0..1 << log_n).map(|_| Fr::rand(&mut rng)).collect();
    let cases = oracles(&input, Fr::rand(&mut rng));
    for &(plan, slots) in plans {
        for (transform, expected) in &cases[..if inverses { 4 } else { 1 }] {
            let what = format!("2^{log_n}, {plan:?}, {transform:?}, {slots} slots");
            driver.reset(1, 64 << 20);
            let (found, gpu) = transformed(image, plan, *transform, slots, &mut in_memory(&input))
                .unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(found == *expected, "{what}");
            // The write of the tables, its end, and the end of the transform.
            assert_eq!(gpu.trace().hard_syncs(), 3, "{what}");
            let times = if plan.method() == NttMethod::InDeviceMemory {
                1
            } else {
                2
            };
            for kind in [SpanKind::ToDevicePinned, SpanKind::FromDevicePinned] {
                assert_eq!(gpu.trace().total(kind).bytes, times * (32 << log_n), "{what}");
            }
            drop(gpu);
            assert!(driver.peak_bytes(0) <= plan.vram_bytes(), "{what}");
            driver.assert_clean(&what);
        }
    }
}

#[test]
fn lengths_and_ways() {
    with_kernels(module_path!(), "lengths_and_ways", |driver, image| {
        for log_n in [0, 1, 2, 5, 9, 11] {
            let large = NttPlan::new(log_n, 8 << 20, 1 << 20).unwrap();
            assert_eq!(large.method(), NttMethod::InDeviceMemory);
            // The smallest budget, and twice that.
            let Error::TooSmall { smallest_bytes, .. } = NttPlan::new(log_n, 0, 1 << 20).unwrap_err() else {
                panic!("no budget is too small");
            };
            let smallest = NttPlan::new(log_n, smallest_bytes, 1 << 20).unwrap();
            let small = NttPlan::new(log_n, 2 * smallest_bytes, 1 << 20).unwrap();
            driver.order(Order::Late);
            check(
                driver,
                image,
                log_n,
                &[(large, 1), (smallest, 2), (small, 3)],
                true,
            );
        }
    });
}

#[test]
fn budgets_of_a_few_kib() {
    with_kernels(module_path!(), "budgets_of_a_few_kib", |driver, image| {
        driver.guard(true);
        let log_n = 12;
        let mut plans = Vec::new();
        for (vram_bytes, slot_bytes, slots) in [
            (20 << 10, 1 << 20, 2),
            (32 << 10, 6 << 10, 1),
            (64 << 10, 1 << 20, 3),
            (400 << 10, 10_000, 2),
        ] {
            let plan = NttPlan::new(log_n, vram_bytes, slot_bytes).unwrap();
            println!("{vram_bytes} bytes: {plan:?}");
            assert!(plan.vram_bytes() <= vram_bytes && plan.slot_bytes() <= slot_bytes);
            plans.push((plan, slots));
        }
        assert!(matches!(plans[0].0.method(), NttMethod::TwoSteps { .. }));
        assert_eq!(plans[3].0.method(), NttMethod::InDeviceMemory);
        for order in [Order::Late, Order::Random(7)] {
            driver.order(order);
            check(driver, image, log_n, &plans, order == Order::Late);
        }
    });
}

/// Rows of two passes.
#[test]
fn two_steps_of_two_passes() {
    with_kernels(module_path!(), "two_steps_of_two_passes", |driver, image| {
        let plan = NttPlan::new(22, 400 << 10, 1 << 20);
        // Too long for the host's kernels: a plan with chunks of whole rows is enough.
        let plan = plan.unwrap();
        assert_eq!(plan.method(), NttMethod::TwoSteps { log_rows: 11 });
        assert_eq!(plan.chunk_elements() % (1 << 11), 0);
        let plan = NttPlan::new(15, 4 << 20, 1 << 20).unwrap();
        check(driver, image, 15, &[(plan, 2)], false);
    });
}

/// Small tiles reach the splits that a real tile has from 2^11 and 2^21 on: two, three and more dimensions,
/// whole and in two steps.
#[test]
fn splits_of_every_kind() {
    with_kernels(module_path!(), "splits_of_every_kind", |driver, image| {
        for (log_n, log_tile, passes) in [(8, 4, 2), (9, 3, 3), (12, 4, 3), (7, 2, 4), (3, 1, 3)] {
            let whole = NttPlan::new(log_n, 8 << 20, 1 << 20)
                .unwrap()
                .with_tile(log_tile)
                .unwrap();
            assert_eq!(
                (whole.method(), whole.passes()),
                (NttMethod::InDeviceMemory, passes)
            );
            let in_steps = NttPlan::new(log_n, 16 << 10, 4 << 10)
                .unwrap()
                .with_tile(log_tile)
                .unwrap();
            check(driver, image, log_n, &[(whole, 2), (in_steps, 2)], log_n < 12);
        }
        let plan = NttPlan::new(8, 1 << 20, 1 << 20).unwrap();
        assert!(plan.with_tile(0).is_err() && plan.with_tile(11).is_err());
    });
}

#[test]
fn the_other_librarys_root() {
    use halo2curves::bn256;
    use halo2curves::ff::{Field as _, PrimeField as _};
    with_kernels(module_path!(), "the_other_librarys_root", |driver, image| {
        let mut rng = rng("halo2curves");
        let log_n = 8;
        let mut root = bn256::Fr::ROOT_OF_UNITY;
        for _ in log_n..bn256::Fr::S {
            root = root.square();
        }
        let to_ark =
            |value: &bn256::Fr| ark_ff::PrimeField::from_le_bytes_mod_order(value.to_repr().as_ref());
        let mut values: Vec<bn256::Fr> = (0..1 << log_n).map(|_| bn256::Fr::random(&mut rng)).collect();
        let input: Vec<Fr> = values.iter().map(to_ark).collect();
        halo2curves::fft::best_fft(&mut values, root, log_n);
        let expected: Vec<Fr> = values.iter().map(to_ark).collect();
        let transform = NttSpec::by_root(to_ark(&root), log_n).unwrap();
        let plan = NttPlan::new(log_n, 1 << 20, 1 << 20).unwrap();
        let (found, gpu) = transformed(image, plan, transform, 2, &mut in_memory(&input)).unwrap();
        assert!(found == expected);
        drop(gpu);
        driver.assert_clean("after halo2curves");
    });
}

#[test]
fn what_cannot_be_is_refused() {
    let root = Fr::get_root_of_unity(8).unwrap();
    assert!(NttSpec::by_root(root, 3).is_ok());
    for (root, log_n) in [(root, 4), (root, 2), (Fr::from(1u64), 1), (root, 0), (root, 29)] {
        assert!(matches!(NttSpec::by_root(root, log_n), Err(Error::Invalid(_))));
    }
    let zero = <Fr as ark_ff::AdditiveGroup>::ZERO;
    assert!(NttSpec::forward(3).unwrap().on_coset(zero).is_err());
    assert!(NttSpec::forward(28).is_ok() && NttSpec::forward(29).is_err());
    assert!(NttSpec::by_root(root.square(), 2).is_ok());
}

/// A read that fails ends the job, in either step.
#[test]
fn a_failing_disk_is_told() {
    struct Failing(u32);
    impl ReadElements for Failing {
        fn read(&mut self, _: u64, into: &mut [u8]) -> spillproof_engine::Result<()> {
            into.fill(0);
            self.0 = self.0.checked_sub(1).ok_or(Invalid::UnknownMemory)?;
            Ok(())
        }
    }
    with_kernels(module_path!(), "a_failing_disk_is_told", |driver, image| {
        let forward = NttSpec::forward(8).unwrap();
        for vram_bytes in [1 << 20, 6 << 10] {
            let plan = NttPlan::new(8, vram_bytes, 1 << 10).unwrap();
            for good in [0, 3] {
                let error = transformed(image, plan, forward, 2, &mut Failing(good)).unwrap_err();
                assert!(matches!(error, Error::Source { .. }), "{error}");
                assert!(!error.leaves_the_processor());
                driver.assert_clean("after a failing disk");
            }
        }
    });
}

/// About forty calls of a job fail, one at a time: the result is right on the device or on the processor, and
/// nothing leaks.
#[test]
fn a_failing_device_leaves_the_processor() {
    with_kernels(
        module_path!(),
        "a_failing_device_leaves_the_processor",
        |driver, image| {
            let mut rng = rng("failing");
            let input: Vec<Fr> = (0..1 << 8).map(|_| Fr::rand(&mut rng)).collect();
            let [(transform, expected), ..] = oracles(&input, Fr::rand(&mut rng));
            driver.guard(true);
            let mut by_processor = 0;
            for vram_bytes in [1 << 20, 6 << 10] {
                let plan = NttPlan::new(8, vram_bytes, 1 << 10).unwrap();
                driver.reset(1, 1 << 20);
                transformed(image, plan, transform, 2, &mut in_memory(&input)).unwrap();
                let calls = driver.calls(None);
                for (code, lost, order) in [
                    (Code::OutOfMemory, false, Order::Late),
                    (Code::IllegalAddress, true, Order::Random(1)),
                ] {
                    driver.order(order);
                    for nth in (1..=calls).step_by((calls / 40).max(1) as usize) {
                        let what = format!("call {nth} of {calls}: {code:?}, lost: {lost}, {plan:?}");
                        driver.reset(1, 1 << 20);
                        driver.fail(None, nth, code, lost);
                        let device = || match transformed(image, plan, transform, 2, &mut in_memory(&input)) {
                            Ok((found, _)) => Ok(found),
                            Err(error) => {
                                assert!(is_the_drivers(&error), "{what}: {error}");
                                Err(error)
                            }
                        };
                        let processor = || {
                            let domain = Radix2EvaluationDomain::<Fr>::new(input.len()).unwrap();
                            Ok::<_, Error>(domain.fft(&input))
                        };
                        let (found, done_by) = with_fallback(device, processor).unwrap();
                        assert!(found == expected, "{what}");
                        by_processor += u32::from(done_by != DoneBy::Device);
                        driver.assert_clean(&what);
                    }
                }
            }
            assert!(by_processor > 50, "{by_processor}");
        },
    );
}
