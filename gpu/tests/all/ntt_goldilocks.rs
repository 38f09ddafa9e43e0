//! Transforms of Goldilocks under the fake driver, with kernels compiled for the host, and by the processor,
//! against Plonky3.

use p3_dft::{NaiveDft, Radix2Bowers, TwoAdicSubgroupDft};
use p3_field::{PrimeCharacteristicRing, PrimeField64, TwoAdicField};
use p3_goldilocks::Goldilocks;
use rand::Rng;
use spillproof_fake_driver::Order;
use spillproof_gpu::kernels::Kernels;
use spillproof_gpu::ntt::{
    GoldilocksTransform, HOST_LOG_N_MAX, MemoryElements, Ntt, NttMethod, NttPlan, NttSlots, NttSpec,
};
use spillproof_gpu::ring::{Download, Upload};
use spillproof_gpu::trace::Detail;
use spillproof_gpu::{Caching, Error, Gpu, Pinned, Result, Vram};

use crate::support::{DoneBy, rng, with_fallback, with_kernels};

type Case = (NttSpec<Goldilocks>, Vec<u64>);

fn values(elements: &[Goldilocks]) -> Vec<u64> {
    elements.iter().map(PrimeField64::as_canonical_u64).collect()
}

/// Forward, inverse, both on a coset, by another implementation of Plonky3 than the processor's.
fn oracles(input: &[u64], shift: Goldilocks) -> [Case; 4] {
    fn by<D: TwoAdicSubgroupDft<Goldilocks>>(dft: D, input: &[u64], shift: Goldilocks) -> [Case; 4] {
        let elements = || {
            input
                .iter()
                .map(|&value| Goldilocks::from_u64(value))
                .collect::<Vec<_>>()
        };
        let forward = NttSpec::<Goldilocks>::of_field(input.len().ilog2()).unwrap();
        [
            (forward, values(&dft.dft(elements()))),
            (forward.inverse(), values(&dft.idft(elements()))),
            (
                forward.on_coset(shift).unwrap(),
                values(&dft.coset_dft(elements(), shift)),
            ),
            (
                forward.inverse().on_coset(shift).unwrap(),
                values(&dft.coset_idft(elements(), shift)),
            ),
        ]
    }
    if input.len() <= 64 {
        by(NaiveDft, input, shift)
    } else {
        by(Radix2Bowers, input, shift)
    }
}

fn random(log_n: u32, test: &str) -> (Vec<u64>, Goldilocks) {
    let mut rng = rng(test);
    let mut element = || match rng.gen_range(0..16) {
        0 => Goldilocks::ORDER_U64 - 1,
        1 => 0,
        _ => rng.gen_range(0..Goldilocks::ORDER_U64),
    };
    (
        (0..1 << log_n).map(|_| element()).collect(),
        Goldilocks::from_u64(element().max(2)),
    )
}

/// The whole job on a device, with budgets that are just enough.
fn on_device(
    image: &[u8],
    plan: NttPlan,
    transform: NttSpec<Goldilocks>,
    input: &[u64],
) -> Result<(Vec<u64>, Gpu)> {
    let gpu = Gpu::open(0, Detail::Timeline { spans_max: 10_000 })?;
    let kernels = Kernels::load(&gpu, image)?;
    let pinned = Pinned::new(4 * plan.slot_bytes());
    let slot_bytes = plan.slot_bytes() as usize;
    let up = pinned.pool(&gpu, 2, slot_bytes, Caching::WriteCombined, "up")?;
    let back = pinned.pool(&gpu, 2, slot_bytes, Caching::Cached, "back")?;
    let mut upload = Upload::new(up.take(2)?, gpu.trace())?;
    let mut download = Download::new(back.take(2)?, gpu.trace())?;
    let vram = Vram::new(&gpu, plan.vram_bytes());
    let mut ntt = Ntt::new(&vram, &kernels, plan, transform)?;
    assert_eq!(
        vram.budget().held_bytes(),
        plan.vram_bytes(),
        "a plan says what is leased"
    );
    let bytes = input.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut from = MemoryElements::new(bytes, 8);
    let (mut between, mut to) = (from.clone(), from.clone());
    let ends = NttSlots {
        upload: &mut upload,
        download: &mut download,
    };
    ntt.transform(ends, &mut from, &mut between, &mut to)?;
    let words = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let found: Vec<u64> = to.bytes().chunks_exact(8).map(words).collect();
    if transform.log_n() > HOST_LOG_N_MAX {
        let mut whole = GoldilocksTransform::new(transform, Some(ntt));
        assert!(whole.is_on_device());
        let mut values = input.to_vec();
        assert!(matches!(
            whole.transform(None, &mut values),
            Err(Error::Invalid(_))
        ));
        assert!(values == input);
        let ends = NttSlots {
            upload: &mut upload,
            download: &mut download,
        };
        whole.transform(Some(ends), &mut values)?;
        assert!(values == found);
    }
    Ok((found, gpu))
}

#[test]
fn lengths_ways_and_budgets() {
    with_kernels(module_path!(), "lengths_ways_and_budgets", |driver, image| {
        driver.guard(true);
        for log_n in [0, 1, 5, 9, 11, 12, 14] {
            let (input, shift) = random(log_n, "goldilocks");
            let Error::TooSmall { smallest_bytes, .. } =
                NttPlan::of::<Goldilocks>(log_n, 0, 1 << 20).unwrap_err()
            else {
                panic!("no budget is too small");
            };
            let plan = |vram_bytes| NttPlan::of::<Goldilocks>(log_n, vram_bytes, 1 << 20).unwrap();
            let plans = [plan(8 << 20), plan(smallest_bytes), plan(2 * smallest_bytes)];
            assert_eq!(plans[0].method(), NttMethod::InDeviceMemory);
            let cases = oracles(&input, shift);
            let cases = if log_n > 12 { &cases[..1] } else { &cases[..] };
            for (at, plan) in plans.into_iter().enumerate() {
                for (transform, expected) in cases {
                    driver.order([Order::Late, Order::Random(2), Order::Eager][at]);
                    driver.reset(1, 16 << 20);
                    let (found, gpu) = on_device(image, plan, *transform, &input).unwrap();
                    assert!(found == *expected, "2^{log_n}, {plan:?}, {transform:?}");
                    let busy = gpu.trace().busy().unwrap();
                    assert!(0.0 < busy.device_seconds && busy.device_seconds < busy.with_transfer_seconds);
                    assert!(gpu.trace().table().contains("device and transfer"));
                    drop(gpu);
                    assert!(driver.peak_bytes(0) <= plan.vram_bytes());
                    driver.assert_clean("after Goldilocks");
                }
            }
        }
    });
}

#[test]
fn small_ones_and_those_without_a_device_by_the_processor() {
    for log_n in [0, 1, 3, 6, 10, 13] {
        let (input, shift) = random(log_n, "goldilocks by the processor");
        for (transform, expected) in oracles(&input, shift) {
            let mut whole = GoldilocksTransform::new(transform, None);
            assert!(!whole.is_on_device());
            let mut found = input.clone();
            whole.transform(None, &mut found).unwrap();
            assert!(found == expected, "2^{log_n}, {transform:?}");
            assert!(whole.transform(None, &mut vec![1; input.len() + 1]).is_err());
        }
    }
    // Only a device uses another root.
    let root = Goldilocks::two_adic_generator(4).cube();
    let other = NttSpec::by_root(root, 4).unwrap();
    assert!(matches!(other.by_processor(&[1; 16]), Err(Error::Invalid(_))));
    assert!(NttSpec::by_root(root, 5).is_err());
    assert!(NttSpec::<Goldilocks>::of_field(30).is_ok() && NttSpec::<Goldilocks>::of_field(31).is_err());
}

/// A device without enough memory leaves the transform to the processor: the same bits.
#[test]
fn a_full_device_leaves_the_processor() {
    with_kernels(
        module_path!(),
        "a_full_device_leaves_the_processor",
        |driver, image| {
            let (input, shift) = random(12, "a full device");
            let [(transform, expected), ..] = oracles(&input, shift);
            let plan = NttPlan::of::<Goldilocks>(12, 1 << 20, 1 << 20).unwrap();
            driver.reset(1, plan.vram_bytes() / 2);
            let device = || Ok(on_device(image, plan, transform, &input)?.0);
            let (found, done_by) = with_fallback(device, || transform.by_processor(&input)).unwrap();
            assert!(found == expected);
            assert!(matches!(done_by, DoneBy::Processor { .. }), "{done_by:?}");
            driver.assert_clean("after a full device");
        },
    );
}
