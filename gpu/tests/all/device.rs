//! Devices, budgets, pools and kernels under the fake driver.

use std::time::Duration;

use spillproof_fake_driver::{Code, Peers, under};
use spillproof_gpu::kernels::{Grid, Kernels};
use spillproof_gpu::ring::{Chunking, Download, Ring, Upload};
use spillproof_gpu::trace::{Detail, SpanKind};
use spillproof_gpu::{Caching, Choice, Error, Gpu, GpuAbsence, Link, NoGpu, Pinned, Vram};

use crate::support::ring_jobs;

#[test]
fn devices_are_counted_and_chosen() {
    under(module_path!(), "devices_are_counted_and_chosen", |driver| {
        driver.reset(0, 1 << 20);
        assert_eq!(spillproof_gpu::probe(), Err(NoGpu::NoDevice));
        let auto = Choice::Auto.open(Detail::Counts).unwrap();
        assert!(matches!(auto, Err(GpuAbsence::None(NoGpu::NoDevice))));
        assert!(Choice::Device(0).open(Detail::Counts).is_err());

        for count in [1, 4] {
            driver.reset(count, 1 << 20);
            let devices = spillproof_gpu::probe().unwrap();
            assert_eq!(devices.len() as u64, count);
            for (ordinal, device) in devices.iter().enumerate() {
                assert_eq!((device.ordinal, device.memory_bytes), (ordinal, 1 << 20));
                assert_eq!(device.compute_capability, (9, 0));
                let Ok(gpu) = Choice::Device(ordinal).open(Detail::Counts).unwrap() else {
                    panic!("a device that was named is an error or a device");
                };
                assert_eq!(gpu.description(), device);
                assert_eq!(gpu.memory_bytes().unwrap(), (1 << 20, 1 << 20));
            }
            let beyond = Choice::Device(count as usize).open(Detail::Counts).unwrap_err();
            assert!(matches!(beyond, Error::NoSuchDevice { .. }));
            assert!(
                beyond.to_string().contains(&format!("this machine has {count}")),
                "{beyond}"
            );
            driver.assert_clean("after opening all devices");
        }
    });
}

#[test]
fn links_between_devices_are_told_apart() {
    under(module_path!(), "links_between_devices_are_told_apart", |driver| {
        driver.reset(1, 1 << 20);
        assert_eq!(spillproof_gpu::links(), Ok(Vec::new()));
        driver.reset(3, 1 << 20);
        driver.peers([0, 1], Peers::WithAtomics);
        driver.peers([0, 2], Peers::None);
        let links = [([0, 1], Link::NvLink), ([0, 2], Link::Host), ([1, 2], Link::Pcie)];
        assert_eq!(spillproof_gpu::links().unwrap(), links);
        let uuids = spillproof_gpu::probe().unwrap();
        assert!(uuids[0].uuid != uuids[1].uuid);
        assert_eq!(Choice::Auto.of_rank(4, 5), Choice::Device(1));
        assert_eq!(Choice::All.of_rank(0, 2), Choice::Devices(vec![0, 2]));
        driver.fail(Some("cuDeviceGetP2PAttribute"), 1, Code::Unknown, false);
        assert!(matches!(spillproof_gpu::links(), Err(NoGpu::Driver { .. })));
    });
}

#[test]
fn a_copy_stays_on_its_device() {
    under(module_path!(), "a_copy_stays_on_its_device", |driver| {
        driver.reset(2, 1 << 16);
        let open = |ordinal| {
            let gpu = Gpu::open(ordinal, Detail::Counts).unwrap();
            let vram = Vram::new(&gpu, 1 << 14);
            let stream = ring_jobs::stream(&gpu);
            let buffers = [(); 2].map(|()| vram.buffer(1000, "traveller").unwrap());
            (buffers, stream, vram, gpu)
        };
        let [([from, to], stream, _vram, gpu), other] = [0, 1].map(open);
        let content: Vec<u8> = (0..1000).map(|i| (i % 251) as u8).collect();
        stream.write((&from, 0), &content).unwrap();
        stream.copy((&to, 0), (&from, 0), 1000).unwrap();
        let mut got = vec![0; 1000];
        stream.read((&to, 0), &mut got).unwrap();
        assert_eq!(got, content);
        assert_eq!(gpu.trace().total(SpanKind::OnDevice).bytes, 1000);
        let refused = [
            stream.copy((&to, 1), (&from, 0), 1000),
            stream.copy((&other.0[0], 0), (&from, 0), 1000),
            stream.copy((&to, 0), (&other.0[0], 0), 1000),
        ];
        for refused in refused {
            assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
        }
        drop((from, to, stream, other, _vram, gpu));
        driver.assert_clean("after copies");
    });
}

#[test]
fn too_little_memory_is_a_refusal_with_figures() {
    under(
        module_path!(),
        "too_little_memory_is_a_refusal_with_figures",
        |driver| {
            driver.reset(1, 8 << 10);
            let gpu = Gpu::open(0, Detail::Counts).unwrap();
            // The budget refuses before the driver is called.
            let vram = Vram::new(&gpu, 4 << 10);
            let allocations = driver.calls(Some("cuMemAlloc_v2"));
            let refusal = Ring::new(&vram, Chunking::new(2048, 8).unwrap(), 3).unwrap_err();
            assert!(refusal.is_memory_short());
            assert!(
                refusal
                    .to_string()
                    .contains("2048 bytes requested for ring, 0 free of a budget of 4096 (held: ring: 4KiB)"),
                "{refusal}"
            );
            assert_eq!(driver.calls(Some("cuMemAlloc_v2")) - allocations, 2);
            assert_eq!(vram.budget().held_bytes(), 0);
            drop(vram);
            // A budget larger than the card: the driver refuses, with the same figures.
            let vram = Vram::new(&gpu, 1 << 30);
            let kept = vram.buffer(6 << 10, "kept").unwrap();
            let refusal = vram.buffer(4 << 10, "tile").unwrap_err();
            assert!(refusal.is_memory_short() && !refusal.is_device_lost());
            assert!(
                refusal
                    .to_string()
                    .contains("the driver refused 4096 bytes of device memory for tile"),
                "{refusal}"
            );
            assert_eq!(vram.budget().held_bytes(), 6 << 10, "a refusal holds nothing");
            assert_eq!(Vram::auto(&gpu).unwrap().budget().limit_bytes(), 2048 - 128);
            assert!(matches!(vram.buffer(0, "none"), Err(Error::Invalid(_))));
            assert!(vram.buffer(u64::MAX, "all").is_err());
            // The job falls back to smaller chunks.
            let mut chunk_bytes = 4096;
            let ring = loop {
                match Ring::new(&vram, Chunking::new(chunk_bytes, 8).unwrap(), 2) {
                    Ok(ring) => break ring,
                    Err(error) => assert!(error.is_memory_short(), "{error}"),
                }
                chunk_bytes /= 2;
            };
            assert_eq!(ring.chunking().chunk_bytes(), 1024);
            drop((ring, kept, vram));

            let pinned = Pinned::new(1000);
            let refusal = pinned.pool(&gpu, 2, 501, Caching::Cached, "slots").unwrap_err();
            assert!(
                refusal
                    .to_string()
                    .starts_with("pinned memory: 1002 bytes requested for slots, 1000 free"),
                "{refusal}"
            );
            driver.fail(Some("cuMemHostAlloc"), 2, Code::OutOfMemory, false);
            let refusal = pinned.pool(&gpu, 2, 500, Caching::Cached, "slots").unwrap_err();
            assert!(matches!(refusal, Error::OutOfMemory { .. }), "{refusal}");
            assert_eq!(pinned.budget().held_bytes(), 0);
            drop(gpu);
            driver.assert_clean("after refusals");
        },
    );
}

#[test]
fn slots_come_back_to_their_pool() {
    under(module_path!(), "slots_come_back_to_their_pool", |driver| {
        let gpu = Gpu::open(0, Detail::Counts).unwrap();
        let pinned = Pinned::new(4096);
        let pool = pinned.pool(&gpu, 3, 1024, Caching::Cached, "slots").unwrap();
        assert_eq!(driver.live().pinned_memory, 3);
        let two = pool.take(2).unwrap();
        assert_eq!(
            pool.take(2).unwrap_err().to_string(),
            "2 pinned slots requested, 1 of 3 are idle: give the pool more slots, or the job fewer"
        );
        let other = std::thread::spawn(move || drop(two));
        other.join().unwrap();
        assert_eq!((pool.idle(), pool.count()), (3, 3));
        // No memory was locked since the pool was made.
        assert_eq!(driver.calls(Some("cuMemHostAlloc")), 3);
        // The host would read write-combined memory very slowly.
        let written = pinned.pool(&gpu, 1, 1024, Caching::WriteCombined, "up").unwrap();
        assert!(Download::new(written.take(1).unwrap(), gpu.trace()).is_err());
        assert!(Upload::new(written.take(1).unwrap(), gpu.trace()).is_ok());
        assert!(Upload::new(Vec::new(), gpu.trace()).is_err());
        assert!(pinned.pool(&gpu, 0, 1024, Caching::Cached, "none").is_err());
        // A pool's memory outlives its handle while a slot is out.
        let last = pool.take(1).unwrap();
        drop(pool);
        assert_eq!(pinned.budget().held_bytes(), 4096);
        drop((last, written));
        assert_eq!(
            (pinned.budget().held_bytes(), pinned.budget().peak_bytes()),
            (0, 4096)
        );
        drop(gpu);
        driver.assert_clean("after pools");
    });
}

#[test]
fn one_job_at_a_time_has_the_device() {
    under(module_path!(), "one_job_at_a_time_has_the_device", |driver| {
        driver.reset(2, 1 << 20);
        let (gpu, again) = (
            Gpu::open(0, Detail::Counts).unwrap(),
            Gpu::open(0, Detail::Counts).unwrap(),
        );
        let other = Gpu::open(1, Detail::Counts).unwrap();
        let turn = gpu.take_turn();
        drop(other.take_turn());
        let (sender, receiver) = std::sync::mpsc::channel();
        let waiter = std::thread::spawn(move || {
            let _turn = again.take_turn();
            sender.send(()).unwrap();
        });
        assert!(
            receiver.recv_timeout(Duration::from_millis(50)).is_err(),
            "the device was taken twice"
        );
        drop(turn);
        receiver.recv_timeout(Duration::from_secs(20)).unwrap();
        waiter.join().unwrap();
        drop((gpu, other));
        driver.assert_clean("after turns");
    });
}

#[test]
fn kernels_are_found_or_missed_by_name() {
    under(module_path!(), "kernels_are_found_or_missed_by_name", |driver| {
        let gpu = Gpu::open(0, Detail::Counts).unwrap();
        let kernels = Kernels::load(&gpu, &spillproof_fake_driver::test_kernels_image()).unwrap();
        kernels.kernel("spk_test_scale").unwrap();
        for missing in ["spk_no_such", "", "a\0b"] {
            assert!(
                matches!(kernels.kernel(missing), Err(Error::NoKernel { .. })),
                "{missing:?}"
            );
        }
        let not_an_image = Kernels::load(&gpu, b"// PTX of another world").unwrap_err();
        assert!(
            not_an_image.to_string().contains("compile it again"),
            "{not_an_image}"
        );
        let kernel = kernels.kernel("spk_test_scale").unwrap();
        drop((kernel, kernels, gpu));
        driver.assert_clean("after kernels");
    });
}

#[test]
fn a_grid_has_a_thread_for_every_element() {
    let blocks = |count, threads| Grid::for_threads(count, threads).map(|grid| grid.blocks.0);
    assert_eq!(blocks(0, 64).unwrap(), 1);
    assert_eq!((blocks(64, 64).unwrap(), blocks(65, 64).unwrap()), (1, 2));
    assert_eq!(blocks(u64::from(i32::MAX as u32), 1).unwrap(), i32::MAX as u32);
    assert!(blocks(u64::from(i32::MAX as u32) + 1, 1).is_err());
    assert!(blocks(1, 0).is_err());
    assert!(blocks(u64::MAX, 1024).is_err());
}
