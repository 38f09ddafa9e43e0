//! Transforms over several devices under the fake driver, with kernels compiled for the host, against
//! arkworks.

use ark_bn254::Fr;
use ark_ff::UniformRand;
use spillproof_fake_driver::{Code, Order};
use spillproof_gpu::kernels::Kernels;
use spillproof_gpu::ntt::{
    DevicesPlan, Ends, Member, NttDevices, Participants, ReadElements, Transform, WriteElements, over_devices,
};
use spillproof_gpu::ring::{Download, Upload};
use spillproof_gpu::trace::{Detail, Kind};
use spillproof_gpu::{BoxedError, Caching, Error, Gpu, Pinned, Result, Vram};

use crate::ntt::oracles;
use crate::support::kernels::words;
use crate::support::{DoneBy, bytes_of, is_the_drivers, rng, with_fallback, with_kernels};

fn bytes(elements: &[Fr]) -> Vec<u8> {
    bytes_of(elements.iter().map(|element| [words(element)]))
}

struct Opened {
    gpu: Gpu,
    vram: Vram,
    kernels: Kernels,
    upload: Upload,
    download: Download,
}

fn open(ordinal: usize, image: &[u8], plan: &DevicesPlan) -> Result<Opened> {
    let gpu = Gpu::open(ordinal, Detail::Counts)?;
    let slot_bytes = plan.slot_bytes() as usize;
    let pinned = Pinned::new(4 * plan.slot_bytes());
    let up = pinned.pool(&gpu, 2, slot_bytes, Caching::WriteCombined, "up")?;
    let back = pinned.pool(&gpu, 2, slot_bytes, Caching::Cached, "back")?;
    Ok(Opened {
        kernels: Kernels::load(&gpu, image)?,
        vram: Vram::new(&gpu, plan.vram_bytes()),
        upload: Upload::new(up.take(2)?, gpu.trace())?,
        download: Download::new(back.take(2)?, gpu.trace())?,
        gpu,
    })
}

/// The whole job, twice, with budgets that are just enough.
fn transformed(
    image: &[u8],
    plan: DevicesPlan,
    transform: Transform,
    from: &mut (dyn ReadElements + Send),
) -> Result<Vec<u8>> {
    let opened = (0..plan.devices() as usize).map(|ordinal| open(ordinal, image, &plan));
    let mut opened: Vec<Opened> = opened.collect::<Result<_>>()?;
    let devices: Vec<_> = opened
        .iter()
        .map(|opened| (&opened.vram, &opened.kernels))
        .collect();
    let mut ntt = NttDevices::new(&devices, plan, transform)?;
    for opened in &opened {
        assert_eq!(
            opened.vram.ledger().held_bytes(),
            plan.vram_bytes(),
            "a plan says what is leased"
        );
    }
    let mut to = vec![0; 32 << plan.log_n()];
    for _ in 0..2 {
        let ends = opened.iter_mut().map(|opened| Ends {
            upload: &mut opened.upload,
            download: &mut opened.download,
        });
        let ends = ends.collect();
        to.fill(0x55);
        ntt.run(ends, from, &mut to)?;
    }
    // Twice each way to the host, and all but a k-th of the data between devices.
    let k = plan.devices();
    let part = (32u64 << plan.log_n()) / k;
    for opened in &opened {
        let total = |kind| opened.gpu.trace().total(kind).bytes;
        assert_eq!(total(Kind::ToDevicePinned), 2 * part);
        assert_eq!(total(Kind::FromDevicePinned), 2 * part);
        assert_eq!(total(Kind::Peer), 2 * (part / k) * (k - 1));
        assert_eq!(
            opened.gpu.trace().hard_syncs(),
            3,
            "one for the tables, one a transform"
        );
    }
    drop(ntt);
    Ok(to)
}

#[test]
fn one_two_and_four_devices() {
    with_kernels(module_path!(), "one_two_and_four_devices", |driver, image| {
        driver.guard(true);
        let mut rng = rng("devices");
        for (log_n, log_devices) in [(0, 0), (2, 1), (5, 0), (5, 2), (8, 1), (9, 2), (12, 2)] {
            let input: Vec<Fr> = (0..1 << log_n).map(|_| Fr::rand(&mut rng)).collect();
            let large = DevicesPlan::new(log_n, log_devices, 8 << 20, 1 << 20).unwrap();
            let Err(Error::TooSmall { smallest_bytes, .. }) =
                DevicesPlan::new(log_n, log_devices, 0, 1 << 20)
            else {
                panic!("no budget is too small");
            };
            assert!(DevicesPlan::new(log_n, log_devices, smallest_bytes - 1, 1 << 20).is_err());
            let smallest = DevicesPlan::new(log_n, log_devices, smallest_bytes, 1 << 20).unwrap();
            let cases = oracles(&input, Fr::rand(&mut rng));
            let cases = if log_n == 12 { &cases[..1] } else { &cases[..] };
            for (at, (transform, expected)) in cases.iter().enumerate() {
                for (plan, order) in [(large, Order::Late), (smallest, Order::Random(at as u64))] {
                    driver.order(order);
                    driver.reset(1 << log_devices, 16 << 20);
                    let found = transformed(image, plan, *transform, &mut bytes(&input)).unwrap();
                    assert!(found == bytes(expected), "2^{log_n}, {plan:?}, {transform:?}");
                    for ordinal in 0..1 << log_devices {
                        assert!(driver.peak_bytes(ordinal) <= plan.vram_bytes(), "{plan:?}");
                    }
                    driver.assert_clean("after devices");
                }
            }
        }
    });
}

#[test]
fn what_cannot_be_is_refused() {
    with_kernels(module_path!(), "what_cannot_be_is_refused", |driver, image| {
        driver.reset(2, 1 << 20);
        assert!(matches!(
            DevicesPlan::new(3, 2, 1 << 20, 1 << 20),
            Err(Error::Invalid(_))
        ));
        assert!(DevicesPlan::new(29, 2, 1 << 40, 1 << 20).is_err());
        let short = DevicesPlan::new(8, 1, 1 << 20, 16).unwrap_err();
        assert!(short.to_string().contains("a pinned slot"), "{short}");
        let plan = DevicesPlan::new(6, 1, 1 << 20, 1 << 20).unwrap();
        let opened = open(0, image, &plan).unwrap();
        let forward = Transform::forward(6).unwrap();
        let alone = NttDevices::new(&[(&opened.vram, &opened.kernels)], plan, forward);
        assert!(matches!(alone, Err(Error::Invalid(_))));
        drop((alone, opened));
        driver.assert_clean("after refusals");
    });
}

/// A read or a write that fails ends the transform on all devices; a call that fails leaves it to the
/// processor.
#[test]
fn failures_end_it_everywhere() {
    struct Failing(u32);
    impl Failing {
        fn next(&mut self) -> Result<(), BoxedError> {
            self.0 = self.0.checked_sub(1).ok_or("the disk is gone")?;
            Ok(())
        }
    }
    impl ReadElements for Failing {
        fn read(&mut self, _: u64, into: &mut [u8]) -> Result<(), BoxedError> {
            into.fill(0);
            self.next()
        }
    }
    impl WriteElements for Failing {
        fn write(&mut self, _: u64, _: &[u8]) -> Result<(), BoxedError> {
            self.next()
        }
    }
    with_kernels(module_path!(), "failures_end_it_everywhere", |driver, image| {
        let mut rng = rng("failing devices");
        let input: Vec<Fr> = (0..1 << 6).map(|_| Fr::rand(&mut rng)).collect();
        let [(transform, expected), ..] = oracles(&input, Fr::rand(&mut rng));
        let plan = DevicesPlan::new(6, 1, 1 << 20, 300).unwrap();
        for good in [0, 5, 9] {
            driver.reset(2, 1 << 20);
            let error = transformed(image, plan, transform, &mut Failing(good)).unwrap_err();
            assert!(matches!(error, Error::Source { .. }), "{error}");
            driver.assert_clean("after a failing disk");
        }
        driver.guard(true);
        driver.reset(2, 1 << 20);
        transformed(image, plan, transform, &mut bytes(&input)).unwrap();
        let calls = driver.calls(None);
        let mut by_processor = 0;
        for (code, lost, order) in [
            (Code::OutOfMemory, false, Order::Late),
            (Code::IllegalAddress, true, Order::Random(1)),
        ] {
            driver.order(order);
            for nth in (1..=calls).step_by((calls / 60).max(1) as usize) {
                let what = format!("call {nth} of {calls}: {code:?}, lost: {lost}");
                driver.reset(2, 1 << 20);
                driver.fail(None, nth, code, lost);
                let device = || {
                    transformed(image, plan, transform, &mut bytes(&input))
                        .inspect_err(|error| assert!(is_the_drivers(error), "{what}: {error}"))
                };
                let processor = || Ok::<_, Error>(bytes(&expected));
                let (found, done_by) = with_fallback(device, processor).unwrap();
                assert!(found == bytes(&expected), "{what}");
                by_processor += u32::from(done_by != DoneBy::Device);
                driver.assert_clean(&what);
            }
        }
        assert!(by_processor > 60, "{by_processor}");
    });
}

/// The devices of a transform that begins again without failed ones.
fn members(opened: &mut [Opened]) -> Vec<Member<'_>> {
    let mut members = Vec::new();
    for opened in opened {
        members.push(Member {
            vram: &opened.vram,
            kernels: &opened.kernels,
            ends: Ends {
                upload: &mut opened.upload,
                download: &mut opened.download,
            },
        });
    }
    members
}

/// 1 of 2, 1 of 4, 2 of 4 devices fail, at calls throughout the transform: the remaining devices begin again,
/// without the processor.
#[test]
fn devices_that_fail_leave_it_to_the_others() {
    const TEST: &str = "devices_that_fail_leave_it_to_the_others";
    with_kernels(module_path!(), TEST, |driver, image| {
        let mut rng = rng("failover");
        let input: Vec<Fr> = (0..1 << 6).map(|_| Fr::rand(&mut rng)).collect();
        let [(transform, expected), ..] = oracles(&input, Fr::rand(&mut rng));
        let expected = bytes(&expected);
        for (devices, failing) in [(2, &[1][..]), (2, &[0]), (4, &[2]), (4, &[0, 1]), (4, &[3, 1])] {
            let left = (devices - failing.len()).ilog2();
            let plan = DevicesPlan::new(6, left, 1 << 20, 600).unwrap();
            let run = |failures: &[(usize, u64)], code, lost| {
                let open = |ordinal| open(ordinal, image, &plan).unwrap();
                let mut opened: Vec<Opened> = (0..devices).map(open).collect();
                let before: Vec<u64> = (0..devices).map(|device| driver.calls_on(device)).collect();
                failures
                    .iter()
                    .for_each(|&(device, nth)| driver.fail_on(device, nth, code, lost));
                let mut to = vec![0x55; expected.len()];
                let dealt = over_devices(members(&mut opened), transform, &mut bytes(&input), &mut to);
                let calls: Vec<u64> = (0..devices)
                    .map(|device| driver.calls_on(device) - before[device])
                    .collect();
                (dealt, to, calls)
            };
            driver.reset(devices as u64, 1 << 20);
            let (dealt, to, calls) = run(&[], Code::Unknown, false);
            assert!(to == expected);
            assert_eq!(
                dealt.unwrap(),
                Participants {
                    devices: (0..devices).collect(),
                    stopped: Vec::new()
                }
            );
            let (mut stopped, mut both) = (0, 0);
            for (code, lost, order) in [
                (Code::OutOfMemory, false, Order::Late),
                (Code::IllegalAddress, true, Order::Late),
                (Code::LaunchFailed, true, Order::Random(7)),
            ] {
                let of_first = calls[failing[0]];
                for nth in (1..=of_first).step_by((of_first / 25).max(1) as usize) {
                    // The second failure comes later, in the same attempt or in the next.
                    let failures: Vec<_> = (0..)
                        .zip(failing)
                        .map(|(i, &device)| (device, nth + i * of_first / 3))
                        .collect();
                    let what =
                        format!("{failures:?} of {devices} after {of_first} calls: {code:?}, lost: {lost}");
                    driver.order(order);
                    driver.reset(devices as u64, 1 << 20);
                    let (dealt, to, _) = run(&failures, code, lost);
                    let dealt = dealt.unwrap_or_else(|e| panic!("{what}: {e}"));
                    assert!(to == expected, "{what}");
                    for (place, why) in &dealt.stopped {
                        assert!(failing.contains(place) && why.contains("driver"), "{what}: {why}");
                        assert!(!dealt.devices.contains(place), "{what}");
                    }
                    assert!(
                        dealt.devices.len().is_power_of_two() && dealt.devices.len() <= devices,
                        "{what}"
                    );
                    stopped += dealt.stopped.len();
                    both += usize::from(dealt.stopped.len() == 2);
                    driver.assert_clean(&what);
                }
            }
            println!("{failing:?} of {devices}: {stopped} devices stopped, {both} times two of them");
            assert!(stopped > 40, "{failing:?} of {devices}: {stopped}");
            assert!(
                failing.len() == 1 || both > 10,
                "{failing:?} of {devices}: {both}"
            );
        }
    });
}

#[test]
fn what_the_others_have_no_room_for_is_the_processors() {
    const TEST: &str = "what_the_others_have_no_room_for_is_the_processors";
    with_kernels(module_path!(), TEST, |driver, image| {
        let mut rng = rng("no room");
        let input: Vec<Fr> = (0..1 << 8).map(|_| Fr::rand(&mut rng)).collect();
        let [(transform, expected), ..] = oracles(&input, Fr::rand(&mut rng));
        // Memory for a quarter of the transform on each, and not for a half.
        let plan = DevicesPlan::new(8, 2, 1 << 20, 600).unwrap();
        driver.reset(4, 1 << 20);
        let mut opened: Vec<Opened> = (0..4)
            .map(|ordinal| open(ordinal, image, &plan).unwrap())
            .collect();
        driver.fail_on(2, 40, Code::IllegalAddress, true);
        let mut to = vec![0; 32 << 8];
        let on_devices = || {
            let mut from = bytes(&input);
            over_devices(members(&mut opened), transform, &mut from, &mut to).map(|_| Vec::new())
        };
        let processor = || Ok::<_, Error>(bytes(&expected));
        let (found, done_by) = with_fallback(on_devices, processor).unwrap();
        assert!(found == bytes(&expected));
        assert!(
            matches!(&done_by, DoneBy::Processor { why, .. } if why.contains("ILLEGAL_ADDRESS")),
            "{done_by:?}"
        );
        // A failing disk is not the fault of a device: there is no second attempt.
        drop(opened);
        driver.assert_clean("no room");
        driver.reset(4, 1 << 20);
        let mut opened: Vec<Opened> = (0..4)
            .map(|ordinal| open(ordinal, image, &plan).unwrap())
            .collect();
        let mut short = bytes(&input[..100]);
        let refused = over_devices(members(&mut opened), transform, &mut short, &mut to).unwrap_err();
        assert!(matches!(refused, Error::Source { .. }), "{refused}");
        let none = over_devices(Vec::new(), transform, &mut short, &mut to).unwrap_err();
        assert!(matches!(none, Error::Invalid(_)), "{none}");
        drop(opened);
        driver.assert_clean("a short input");
    });
}
