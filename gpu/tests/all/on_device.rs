//! The ring on a real device with NVRTC.

use spillproof_gpu::kernels::{Cache, Nvrtc, Text, image};
use spillproof_gpu::trace::{Detail, SpanKind};
use spillproof_gpu::{Choice, Gpu};

use crate::support::ring_jobs::{DEVICE_TEXT, Setup, Sizes, TestKernels, WORD, accumulated, scaled, words};
use crate::support::skipped;

/// A device and the image of the test kernels for it.
fn device() -> Option<(Gpu, Vec<u8>)> {
    let gpu = match Choice::Auto.open(Detail::Timeline { spans_max: 20_000 }).unwrap() {
        Ok(gpu) => gpu,
        Err(reason) => {
            skipped(&reason);
            return None;
        }
    };
    let nvrtc = match Nvrtc::find() {
        Ok(nvrtc) => nvrtc,
        Err(reason) => {
            skipped(&reason);
            return None;
        }
    };
    let text = Text {
        name: "test_kernels.cu".into(),
        main: DEVICE_TEXT.into(),
        ..Text::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let image = image(&gpu, &text, &nvrtc, Some(&Cache::new(folder.path()))).unwrap();
    Some((gpu, image))
}

#[test]
fn a_ring_on_a_device_gives_what_the_host_gives() {
    let Some((gpu, image)) = device() else { return };
    let _turn = gpu.take_turn();
    for (total, chunk_words, up_slots, back_slots, buffers) in [
        (1_000_003, 65_536, 3, 3, 2),
        (1_000_003, 9_973, 1, 1, 1),
        (100_000, 512, 4, 4, 4),
        (8 << 20, 1 << 20, 3, 3, 3),
    ] {
        let sizes = Sizes {
            words: total,
            chunk_words,
            first_words: chunk_words.div_ceil(8),
            up_slots,
            back_slots,
            buffers,
        };
        let kernels = TestKernels::from_image(&gpu, &image).unwrap();
        let mut setup = Setup::with_kernels(&gpu, &sizes, kernels).unwrap();
        let input = words(total, total);
        assert!(setup.transform(&input).unwrap() == scaled(&input), "{sizes:?}");
        assert_eq!(setup.sum(&input).unwrap(), accumulated(&input), "{sizes:?}");
    }
    assert!(gpu.release_failures().is_empty());
    println!("{}\n{}", gpu.description(), gpu.trace().table());
}

/// The rate of copies through pinned slots, both ways; prints it, and checks only that no bytes are lost.
#[test]
#[ignore = "a measurement: moves 8 GiB over the bus"]
fn bandwidth_of_a_ring() {
    let Some((gpu, image)) = device() else { return };
    let _turn = gpu.take_turn();
    let sizes = Sizes {
        words: 1 << 29,
        chunk_words: 8 << 20,
        first_words: 1 << 20,
        up_slots: 3,
        back_slots: 3,
        buffers: 3,
    };
    let kernels = TestKernels::from_image(&gpu, &image).unwrap();
    let mut setup = Setup::with_kernels(&gpu, &sizes, kernels).unwrap();
    let total_bytes = sizes.words * WORD;
    // The host does little, so that the bus is measured.
    let mut source = |_: u64, into: &mut [u8]| {
        into[0] = 1;
        Ok(())
    };
    let mut seen_bytes = 0;
    let mut sink = |_: u64, bytes: &[u8]| {
        seen_bytes += bytes.len() as u64;
        Ok(())
    };
    let start = std::time::Instant::now();
    setup
        .ring
        .run_job(
            spillproof_gpu::ring::RingJob {
                total_bytes,
                upload: Some((&mut setup.upload, &mut source)),
                arrays: &[],
                download: Some((&mut setup.download, &mut sink)),
            },
            &mut |chunk| setup.kernels.scale(&chunk),
        )
        .unwrap();
    setup.ring.finish().unwrap();
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(seen_bytes, total_bytes);
    assert_eq!(gpu.trace().total(SpanKind::FromDevicePinned).bytes, total_bytes);
    println!(
        "{total_bytes} bytes there and back in {seconds:.3} s: {:.1} GB/s each way\n{}",
        total_bytes as f64 / seconds / 1e9,
        gpu.trace().table()
    );
}
