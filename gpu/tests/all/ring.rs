//! The ring under the fake driver: jobs of any shape give the right bytes, within their budgets, under every
//! legal order of the device's work.

use spillproof_fake_driver::{FakeDriver, Order, under};
use spillproof_gpu::ring::{RingJob, Upload};
use spillproof_gpu::trace::{Detail, SpanKind};
use spillproof_gpu::{Caching, Error, Gpu, Pinned, Vram, ring};

use crate::support::ring_jobs::{self, Setup, Sizes, WORD, accumulated, collect, scaled, source_of, words};

const ORDERS: [Order; 4] = [Order::Late, Order::Eager, Order::Random(1), Order::Random(2)];

type Up<'a> = Option<(&'a mut Upload, &'a mut dyn ring::Source)>;
type Back<'a> = Option<(&'a mut ring::Download, &'a mut dyn ring::Sink)>;

fn job<'a>(total_bytes: u64, upload: Up<'a>, download: Back<'a>) -> RingJob<'a> {
    RingJob {
        total_bytes,
        upload,
        arrays: &[],
        download,
    }
}

fn runs_right(driver: &FakeDriver, sizes: &Sizes, order: Order) {
    driver.order(order);
    let case = format!("{sizes:?} {order:?}");
    let input = words(sizes.words, sizes.words ^ sizes.chunk_words);
    let gpu = Gpu::open(0, Detail::Counts).unwrap();
    let mut setup = Setup::new(&gpu, sizes).unwrap();
    // Two jobs through the same ring: the first must not affect the second.
    for _ in 0..2 {
        assert_eq!(setup.transform(&input).unwrap(), scaled(&input), "{case}");
        assert_eq!(setup.sum(&input).unwrap(), accumulated(&input), "{case}");
    }
    assert!(setup.vram.budget().peak_bytes() <= sizes.vram_bytes(), "{case}");
    assert!(driver.peak_bytes(0) <= sizes.vram_bytes(), "{case}");
    assert_eq!(setup.pinned.budget().peak_bytes(), sizes.pinned_bytes(), "{case}");
    drop((setup, gpu));
    driver.assert_clean(&case);
}

#[test]
fn bytes_arrive_through_rings_of_any_shape() {
    under(
        module_path!(),
        "bytes_arrive_through_rings_of_any_shape",
        |driver| {
            let mut case = 0;
            for up_slots in 1..=4 {
                for back_slots in 1..=3 {
                    for buffers in 1..=3 {
                        // Lengths that do not divide, exactly divide, are shorter than a chunk, one word,
                        // none.
                        for (total, chunk_words, first_words) in [
                            (101, 7, 7),
                            (96, 8, 2),
                            (100, 33, 1),
                            (5, 64, 16),
                            (1, 1, 1),
                            (0, 4, 4),
                        ] {
                            let sizes = Sizes {
                                words: total,
                                chunk_words,
                                first_words,
                                up_slots,
                                back_slots,
                                buffers,
                            };
                            driver.reset(1, 1 << 20);
                            runs_right(driver, &sizes, ORDERS[case % ORDERS.len()]);
                            runs_right(driver, &sizes, Order::Late);
                            case += 1;
                        }
                    }
                }
            }
        },
    );
}

/// The budget is a number of bytes: one that holds two chunks of 64 words and a sum, and one that holds a few
/// thousand words.
#[test]
fn a_job_larger_than_device_memory_runs_in_a_few_kilobytes_of_it() {
    under(
        module_path!(),
        "a_job_larger_than_device_memory_runs_in_a_few_kilobytes_of_it",
        |driver| {
            for (device_bytes, chunk_words) in [(1280, 64), (4 << 10, 200), (64 << 10, 2048)] {
                driver.reset(1, device_bytes);
                let sizes = Sizes {
                    first_words: 8,
                    up_slots: 3,
                    ..Sizes::new(20_011, chunk_words)
                };
                assert!(sizes.words * WORD > device_bytes);
                runs_right(driver, &sizes, Order::Late);
                println!(
                    "{} bytes through {} of device memory",
                    sizes.words * WORD,
                    driver.peak_bytes(0)
                );
            }
        },
    );
}

#[test]
fn hard_synchronisations_do_not_grow_with_the_job() {
    under(
        module_path!(),
        "hard_synchronisations_do_not_grow_with_the_job",
        |driver| {
            let counts = |total| {
                driver.reset(1, 1 << 20);
                let sizes = Sizes {
                    up_slots: 3,
                    ..Sizes::new(total, 16)
                };
                let gpu = Gpu::open(0, Detail::Counts).unwrap();
                let mut setup = Setup::new(&gpu, &sizes).unwrap();
                setup.transform(&words(total, 1)).unwrap();
                setup.ring.finish().unwrap();
                let trace = gpu.trace().clone();
                // The trace counts the calls of the driver.
                let asked =
                    driver.calls(Some("cuStreamSynchronize")) + driver.calls(Some("cuCtxSynchronize"));
                assert_eq!(trace.hard_syncs(), asked);
                assert_eq!(
                    trace.total(SpanKind::EventWait).count,
                    driver.calls(Some("cuEventSynchronize"))
                );
                assert_eq!(trace.total(SpanKind::ToDevicePinned).bytes, total * WORD);
                assert_eq!(trace.total(SpanKind::FromDevicePinned).bytes, total * WORD);
                assert_eq!(trace.total(SpanKind::ToDevicePageable).count, 0);
                (
                    trace.total(SpanKind::Kernel).count,
                    trace.hard_syncs(),
                    driver.calls(Some("cuEventCreate")),
                )
            };
            let (short_kernels, short_syncs, short_events) = counts(64);
            let (long_kernels, long_syncs, long_events) = counts(6400);
            assert_eq!((short_kernels, long_kernels), (4, 400));
            assert_eq!((short_syncs, long_syncs), (1, 1));
            assert_eq!(
                short_events, long_events,
                "events are made once for a ring, not for each chunk"
            );
        },
    );
}

#[test]
fn what_is_staged_before_the_device_is_taken_is_not_asked_for_again() {
    under(
        module_path!(),
        "what_is_staged_before_the_device_is_taken_is_not_asked_for_again",
        |driver| {
            for (total, slots, staged_words) in [(100, 3, 48), (30, 3, 30), (100, 1, 16), (0, 2, 0)] {
                let gpu = Gpu::open(0, Detail::Counts).unwrap();
                let kernels = ring_jobs::TestKernels::load(&gpu).unwrap();
                let pool = Pinned::new(1 << 20)
                    .pool(&gpu, slots + 1, 16 * WORD as usize, Caching::Cached, "staging")
                    .unwrap();
                let chunking = ring::Chunking::new(16 * WORD, WORD).unwrap();
                let input = words(total, 3);
                // The source panics if it is asked twice or out of order.
                let mut source = source_of(&input);
                let mut upload = Upload::new(pool.take(slots).unwrap(), gpu.trace()).unwrap();
                let staged = upload.stage(&chunking, total * WORD, &mut source).unwrap();
                assert_eq!(staged, staged_words * WORD);
                assert!(
                    upload.stage(&chunking, total * WORD, &mut source).is_err(),
                    "staged twice"
                );
                assert_eq!(driver.live().device_memory, 0, "staging takes no device memory");
                assert_eq!(driver.calls(Some("cuMemcpyHtoDAsync_v2")), 0);

                let _turn = gpu.take_turn();
                let vram = Vram::new(&gpu, 2 << 10);
                let mut ring = ring::Ring::new(&vram, chunking, 2).unwrap();
                let mut download = ring::Download::new(pool.take(1).unwrap(), gpu.trace()).unwrap();
                let mut out = Vec::new();
                // A job of another length is refused, and what is staged stays.
                let wrong = ring.run_job(
                    job((total + 1) * WORD, Some((&mut upload, &mut source)), None),
                    &mut |_| Ok(()),
                );
                assert!(matches!(wrong, Err(Error::Invalid(_))), "{wrong:?}");
                let mut upload = Upload::new(
                    {
                        drop(upload);
                        pool.take(slots).unwrap()
                    },
                    gpu.trace(),
                )
                .unwrap();
                let mut source = source_of(&input);
                upload.stage(&chunking, total * WORD, &mut source).unwrap();
                let mut sink = collect(&mut out);
                ring.run_job(
                    job(
                        total * WORD,
                        Some((&mut upload, &mut source)),
                        Some((&mut download, &mut sink)),
                    ),
                    &mut |chunk| kernels.scale(&chunk),
                )
                .unwrap();
                drop(sink);
                assert_eq!(ring_jobs::words_of(&out), scaled(&input));
                drop((ring, upload, download, pool, vram, kernels));
                drop(_turn);
                drop(gpu);
                driver.assert_clean("after staging");
                driver.reset(1, 1 << 20);
            }
        },
    );
}

/// A job without a source, whose kernels make the data; and jobs in which the source, the sink or the kernel
/// fails half way.
#[test]
fn a_job_may_have_one_end_and_may_fail() {
    under(module_path!(), "a_job_may_have_one_end_and_may_fail", |driver| {
        let sizes = Sizes::new(200, 16);
        let gpu = Gpu::open(0, Detail::Counts).unwrap();
        let mut setup = Setup::new(&gpu, &sizes).unwrap();
        let input = words(sizes.words, 5);
        let total_bytes = sizes.words * WORD;

        let mut out = Vec::new();
        let mut sink = collect(&mut out);
        let kernels = &setup.kernels;
        setup
            .ring
            .run_job(
                job(total_bytes, None, Some((&mut setup.download, &mut sink))),
                &mut |chunk| {
                    chunk.stream.fill(chunk.buffer, 0)?;
                    kernels.scale(&chunk)
                },
            )
            .unwrap();
        drop(sink);
        assert_eq!(ring_jobs::words_of(&out), (0..sizes.words).collect::<Vec<_>>());

        for failing in 0..13 {
            let mut healthy = source_of(&input);
            let mut asked = 0;
            let mut source = |offset: u64, into: &mut [u8]| {
                asked += 1;
                if asked == failing + 1 {
                    return Err("the disk is gone".into());
                }
                healthy(offset, into)
            };
            let mut given = 0;
            let mut sink = |_: u64, _: &[u8]| {
                given += 1;
                if given == failing {
                    Err("the disk is full".into())
                } else {
                    Ok(())
                }
            };
            let mut launched = 0;
            let failed = setup.ring.run_job(
                job(
                    total_bytes,
                    Some((&mut setup.upload, &mut source)),
                    Some((&mut setup.download, &mut sink)),
                ),
                &mut |chunk| {
                    launched += 1;
                    if launched * 2 == failing {
                        return Err(Error::Unusable { what: "a test" });
                    }
                    setup.kernels.scale(&chunk)
                },
            );
            let error = failed.unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::Source { .. } | Error::Sink { .. } | Error::Unusable { .. }
                ),
                "{error}"
            );
            // The ring works afterwards.
            assert_eq!(
                setup.transform(&input).unwrap(),
                scaled(&input),
                "after failure {failing}"
            );
        }
        let neither = setup.ring.run_job(job(total_bytes, None, None), &mut |_| Ok(()));
        assert!(matches!(neither, Err(Error::Invalid(_))));
        drop((setup, gpu));
        driver.assert_clean("after failing jobs");
    });
}

#[test]
fn a_timeline_has_every_chunk_once() {
    under(module_path!(), "a_timeline_has_every_chunk_once", |driver| {
        let sizes = Sizes::new(160, 16);
        let gpu = Gpu::open(0, Detail::Timeline { spans_max: 1000 }).unwrap();
        let mut setup = Setup::new(&gpu, &sizes).unwrap();
        let input = words(sizes.words, 5);
        assert_eq!(setup.transform(&input).unwrap(), scaled(&input));
        setup.ring.finish().unwrap();
        assert_eq!(
            gpu.trace().hard_syncs(),
            2,
            "one to tie the clocks together, one at the end"
        );
        let spans = gpu.trace().spans();
        let of = |kind| spans.iter().filter(|span| span.kind == kind).collect::<Vec<_>>();
        for kind in [
            SpanKind::Fill,
            SpanKind::ToDevicePinned,
            SpanKind::Kernel,
            SpanKind::FromDevicePinned,
            SpanKind::Drain,
        ] {
            assert_eq!(of(kind).len(), 10, "{kind:?}");
            assert_eq!(gpu.trace().total(kind).timed, 10, "{kind:?}");
        }
        // By the clock, a chunk is filled, copied, computed, copied back and drained, in this order.
        for chunk in 0..10 {
            let starts = [
                SpanKind::Fill,
                SpanKind::ToDevicePinned,
                SpanKind::Kernel,
                SpanKind::FromDevicePinned,
                SpanKind::Drain,
            ]
            .map(|kind| of(kind)[chunk].start_seconds);
            assert!(
                starts.windows(2).all(|pair| pair[0] <= pair[1] + 1e-3),
                "chunk {chunk}: {starts:?}"
            );
        }
        let kernels = gpu.trace().kernels();
        assert_eq!(kernels.len(), 1);
        assert_eq!((&*kernels[0].0, kernels[0].1.timed), ("spk_test_scale", 10));
        println!("{}", gpu.trace().table());

        // Spans beyond the limit are counted and not kept.
        let small = Gpu::open(0, Detail::Timeline { spans_max: 7 }).unwrap();
        let mut setup_small = Setup::new(&small, &sizes).unwrap();
        setup_small.transform(&input).unwrap();
        setup_small.ring.finish().unwrap();
        assert_eq!(small.trace().spans().len(), 7);
        assert_eq!(small.trace().total(SpanKind::Kernel).count, 10);
        drop((setup, setup_small, gpu, small));
        driver.assert_clean("after a timeline");
    });
}

#[test]
fn shapes_and_orders_at_random() {
    under(module_path!(), "shapes_and_orders_at_random", |driver| {
        driver.guard(true);
        // The seed is the number of the case, so a failure names it.
        for seed in 0..300 {
            let drawn = words(6, seed);
            let chunk_words = 1 + drawn[1] % 50;
            let sizes = Sizes {
                words: drawn[0] % 400,
                chunk_words,
                first_words: 1 + drawn[2] % chunk_words,
                up_slots: 1 + (drawn[3] % 4) as usize,
                back_slots: 1 + (drawn[4] % 4) as usize,
                buffers: 1 + (drawn[5] % 4) as usize,
            };
            driver.reset(1, 1 << 20);
            runs_right(driver, &sizes, Order::Random(seed));
        }
    });
}

#[test]
fn four_devices_sum_a_part_each() {
    under(module_path!(), "four_devices_sum_a_part_each", |driver| {
        driver.reset(4, 1 << 16);
        let sizes = Sizes {
            first_words: 8,
            back_slots: 1,
            ..Sizes::new(1000, 24)
        };
        let sum_on = |ordinal: usize| {
            let input = words(sizes.words, ordinal as u64);
            let gpu = Gpu::open(ordinal, Detail::Counts).unwrap();
            let _turn = gpu.take_turn();
            let sum = Setup::new(&gpu, &sizes).unwrap().sum(&input).unwrap();
            assert_eq!(sum, accumulated(&input), "device {ordinal}");
        };
        std::thread::scope(|scope| {
            for worker in 0..8 {
                scope.spawn(move || sum_on(worker % 4));
            }
        });
        driver.assert_clean("after four devices");
    });
}

/// A kernel or a source panics, and the next job uses the same ring.
#[test]
fn a_panic_leaves_the_ring_usable() {
    under(module_path!(), "a_panic_leaves_the_ring_usable", |driver| {
        let sizes = Sizes::new(100, 10);
        let gpu = Gpu::open(0, Detail::Counts).unwrap();
        let mut setup = Setup::new(&gpu, &sizes).unwrap();
        let input = words(sizes.words, 5);
        for panics_at in [1, 4, 10] {
            let mut asked = 0;
            let mut source = source_of(&input);
            let mut out = Vec::new();
            let mut sink = collect(&mut out);
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                setup.ring.run_job(
                    job(
                        sizes.words * WORD,
                        Some((&mut setup.upload, &mut source)),
                        Some((&mut setup.download, &mut sink)),
                    ),
                    &mut |chunk| {
                        asked += 1;
                        assert_ne!(asked, panics_at, "on purpose");
                        setup.kernels.scale(&chunk)
                    },
                )
            }));
            assert!(panicked.is_err());
            drop(sink);
            assert_eq!(
                setup.transform(&input).unwrap(),
                scaled(&input),
                "after a panic at {panics_at}"
            );
        }
        drop((setup, gpu));
        driver.assert_clean("after panics");
    });
}

#[test]
fn handles_may_change_threads() {
    fn both<T: Send + Sync>() {}
    both::<Gpu>();
    both::<spillproof_gpu::Stream>();
    both::<spillproof_gpu::DeviceBuffer>();
    both::<spillproof_gpu::Slot>();
    both::<ring::Ring>();
    both::<Upload>();
    both::<spillproof_gpu::kernels::Kernel>();
    both::<Error>();
}
