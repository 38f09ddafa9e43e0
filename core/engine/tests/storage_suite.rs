//! One suite for all backends: {uring, pread} x {direct, buffered} x {disk, tmpfs}, plain and with short or
//! interrupted transfers, against a twin in memory. Names of files are in `files`.

#![allow(clippy::unwrap_used)]

#[path = "storage_suite/files.rs"]
mod files;
mod storage_cases;

use std::path::{Path, PathBuf};

use rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom};
use spillproof_engine::Error;
use spillproof_engine::budget::Budget;
use spillproof_engine::error::Invalid;
use spillproof_engine::storage::{Fault, FaultPlan, Segment, Storage};
use storage_cases::{Case, PAGE, cases, entries};

/// Segments of random lengths that touch each page of file and buffer at most once, in random order.
fn random_segments(rng: &mut StdRng, file_pages: usize, buffer_pages: usize) -> Vec<Segment> {
    let mut stretches = Vec::new();
    let (mut file_page, mut lengths) = (0, Vec::new());
    let mut room = buffer_pages;
    while room > 0 {
        let pages = rng.gen_range(1..=room.min(9));
        file_page += rng.gen_range(0..=file_pages / 16);
        if file_page + pages > file_pages {
            break;
        }
        stretches.push(file_page);
        lengths.push(pages);
        file_page += pages;
        room -= pages;
    }
    let mut order: Vec<usize> = (0..stretches.len()).collect();
    order.shuffle(rng);
    let mut buffer_page = 0;
    order
        .into_iter()
        .map(|i| {
            let segment = Segment::new(
                (stretches[i] * PAGE) as u64,
                buffer_page * PAGE,
                lengths[i] * PAGE,
            );
            buffer_page += lengths[i];
            segment
        })
        .collect()
}

#[test]
fn random_transfers_equal_the_twin_in_memory() {
    const FILE_PAGES: usize = 256;
    const BUFFER_PAGES: usize = 64;
    for case in cases() {
        for fault in [
            None,
            Some(Fault::Short(1000)),
            Some(Fault::Short(3 * PAGE)),
            Some(Fault::Interrupted),
        ] {
            let plan = fault.map_or_else(FaultPlan::none, FaultPlan::always);
            let storage = case.storage(plan);
            let budget = Budget::new(1 << 20);
            let file = storage.scratch("twin", (FILE_PAGES * PAGE) as u64).unwrap();
            let mut twin = vec![0u8; FILE_PAGES * PAGE];
            let mut rng = StdRng::seed_from_u64(7);
            for round in 0..40 {
                let mut buffer = budget.buffer(BUFFER_PAGES * PAGE, "transfer").unwrap();
                rng.fill(&mut buffer[..]);
                let segments = random_segments(&mut rng, FILE_PAGES, BUFFER_PAGES);
                let before = buffer.to_vec();
                if rng.r#gen() {
                    for s in &segments {
                        let bytes = &before[s.buffer_offset..][..s.bytes];
                        twin[s.file_offset as usize..][..s.bytes].copy_from_slice(bytes);
                    }
                    let buffer = file.write(buffer, segments).wait().unwrap();
                    assert!(
                        buffer[..] == before[..],
                        "{}: a write changed its buffer",
                        case.name
                    );
                } else {
                    let mut expected = before;
                    for s in &segments {
                        let bytes = &twin[s.file_offset as usize..][..s.bytes];
                        expected[s.buffer_offset..][..s.bytes].copy_from_slice(bytes);
                    }
                    let buffer = file.read(buffer, segments).wait().unwrap();
                    assert!(
                        buffer[..] == expected[..],
                        "{} {fault:?} round {round}",
                        case.name
                    );
                }
            }
            assert!(storage.stats().bytes_read > 0 && storage.stats().bytes_written > 0);
            assert_eq!(budget.held_bytes(), 0);
        }
    }
}

#[test]
fn threads_share_a_storage() {
    const THREADS: usize = 6;
    const REGION_PAGES: usize = 300;
    for case in cases() {
        let storage = case.storage(FaultPlan::none());
        let budget = Budget::unlimited();
        let take = || budget.buffer(REGION_PAGES * PAGE, "region").unwrap();
        let file = storage.scratch("shared", 0).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (take, file) = (&take, &file);
                scope.spawn(move || {
                    // Every page alone, many more than the queue is deep.
                    let segments: Vec<_> = (0..REGION_PAGES)
                        .map(|i| Segment::new(((i * THREADS + thread) * PAGE) as u64, i * PAGE, PAGE))
                        .collect();
                    for round in 0..8u8 {
                        let mut buffer = take();
                        for (i, page) in buffer.chunks_mut(PAGE).enumerate() {
                            page.fill(round ^ (i * 7 + thread) as u8);
                        }
                        drop(file.write(buffer, segments.clone()).wait().unwrap());
                        let buffer = file.read(take(), segments.clone()).wait().unwrap();
                        for (i, page) in buffer.chunks(PAGE).enumerate() {
                            assert!(page.iter().all(|&byte| byte == round ^ (i * 7 + thread) as u8));
                        }
                    }
                });
            }
        });
        assert_eq!(budget.held_bytes(), 0, "{}", case.name);
        assert_eq!(file.len_bytes(), (THREADS * REGION_PAGES * PAGE) as u64);
        assert_eq!(storage.stats().reads, (THREADS * REGION_PAGES * 8) as u64);
    }
}

#[test]
fn segments_that_do_not_fit_are_refused() {
    for case in cases() {
        let storage = case.storage(FaultPlan::none());
        let budget = Budget::new(1 << 20);
        let file = storage.scratch("refused", 1 << 16).unwrap();
        for segment in [
            Segment::new(0, 0, 2 * PAGE),
            Segment::new(0, PAGE, PAGE),
            Segment::new(0, usize::MAX, PAGE),
            Segment::new(u64::MAX - 1, 0, PAGE),
            Segment::new(1, 0, PAGE),
            Segment::new(0, 0, 100),
        ] {
            let buffer = budget.buffer(PAGE, "b").unwrap();
            let error = file.read(buffer, [segment]).wait().unwrap_err();
            assert!(matches!(error, Error::Invalid(_)), "{}: {error}", case.name);
        }
        let buffer = budget.buffer(PAGE, "b").unwrap();
        assert_eq!(file.read(buffer, []).wait().unwrap().len(), PAGE, "nothing to do");
        assert_eq!(budget.held_bytes(), 0);
    }
}

#[test]
fn errors_name_file_offset_and_operation() {
    for case in cases() {
        let storage = case.storage(FaultPlan::none());
        let budget = Budget::new(1 << 20);
        let path = case.dir.path().join("short.bin");
        std::fs::write(&path, vec![1u8; 3 * PAGE + 10]).unwrap();
        let file = storage.open(&path).unwrap();
        for (page, what) in [(3u64, "ends"), (8, "ends")] {
            let buffer = budget.buffer(2 * PAGE, "b").unwrap();
            let offset = page * PAGE as u64;
            let error = file
                .read(buffer, [Segment::new(offset, 0, 2 * PAGE)])
                .wait()
                .unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains("short.bin") && text.contains("read") && text.contains(what),
                "{text}"
            );
            assert!(
                matches!(
                    error,
                    Error::Io {
                        operation: "read",
                        ..
                    }
                ),
                "{text}"
            );
        }
        let buffer = budget.buffer(PAGE, "b").unwrap();
        let error = file.write(buffer, [Segment::new(0, 0, PAGE)]).wait().unwrap_err();
        assert!(
            matches!(
                error,
                Error::Io {
                    operation: "write",
                    offset: 0,
                    bytes: 4096,
                    ..
                }
            ),
            "{error}"
        );
        let error = storage.open(case.dir.path().join("absent")).unwrap_err();
        assert!(
            matches!(
                error,
                Error::File {
                    operation: "open",
                    ..
                }
            ),
            "{error}"
        );

        // A file of any shape, at any offset.
        let odd = storage.open_unaligned(&path).unwrap();
        let buffer = budget.buffer(PAGE, "b").unwrap();
        let buffer = odd
            .read(buffer, [Segment::new(3 * PAGE as u64 + 3, 5, 7)])
            .wait()
            .unwrap();
        assert_eq!(buffer[..13], [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0]);
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn dropped_pendings_free_their_buffers_after_the_transfer() {
    const BYTES: usize = 1 << 20;
    for case in cases() {
        let storage = case.storage(FaultPlan::none());
        let budget = Budget::new(BYTES as u64);
        let take = || {
            loop {
                match budget.buffer(BYTES, "one") {
                    Ok(buffer) => break buffer,
                    Err(_) => std::thread::yield_now(),
                }
            }
        };
        let file = storage.scratch("dropped", 0).unwrap();
        let pages = || {
            (0..BYTES / PAGE)
                .map(|i| Segment::new((i * PAGE) as u64, i * PAGE, PAGE))
                .collect::<Vec<_>>()
        };
        for round in 1..=20u8 {
            let mut buffer = take();
            buffer.fill(round);
            drop(file.write(buffer, pages()));
            // Comes back only when the kernel is done with it.
            let mut buffer = take();
            buffer.fill(0xee);
            let buffer = file.read(buffer, pages()).wait().unwrap();
            assert!(
                buffer.iter().all(|&byte| byte == round),
                "{} round {round}",
                case.name
            );
        }
        // The storage goes first: it finishes what it was given.
        let mut buffer = take();
        buffer.fill(99);
        let pending = file.write(buffer, pages());
        drop((file, storage));
        assert!(pending.is_finished());
        assert_eq!(pending.wait().unwrap()[BYTES - 1], 99);
        drop(take());
        assert_eq!(budget.held_bytes(), 0);
    }
}

/// Publishes, reads back, uses scratch: every kind of operation at least once. `Ok(false)` if the bytes
/// differ.
fn scenario(case: &Case, storage: &Storage, budget: &Budget) -> Result<bool, Error> {
    let path = case.dir.path().join("published");
    let mut pages = budget.buffer(4 * PAGE, "pages")?;
    for (i, byte) in pages.iter_mut().enumerate() {
        *byte = (i / 61) as u8;
    }
    let expected = pages.to_vec();
    let segments: Vec<_> = (0..4)
        .map(|i| Segment::new((i * PAGE) as u64, (3 - i) * PAGE, PAGE))
        .collect();
    let scratch = storage.scratch("scratch", 4 * PAGE as u64)?;
    let pages = scratch.write(pages, segments.clone()).wait()?;
    let pages = scratch.read(pages, segments).wait()?;
    let publish = storage.publish(&path)?;
    publish.file().set_len(8 * PAGE as u64)?;
    let mut pages = publish
        .file()
        .write(pages, [Segment::new(0, 0, 4 * PAGE)])
        .wait()?;
    publish.commit()?;
    pages.fill(0);
    let pages = storage
        .open(&path)?
        .read(pages, [Segment::new(0, 0, 4 * PAGE)])
        .wait()?;
    Ok(pages[..] == expected[..])
}

#[test]
fn every_operation_may_fail_in_every_way() {
    for case in cases() {
        let path = case.dir.path().join("published");
        let budget = Budget::new(1 << 20);
        let plan = FaultPlan::none();
        assert!(
            scenario(&case, &case.storage(plan.clone()), &budget).unwrap(),
            "{}",
            case.name
        );
        let operations = plan.operations();
        assert!(operations >= 18, "{operations}");
        let loud = [Fault::Io, Fault::NoSpace];
        let harmless = [Fault::Interrupted, Fault::Short(1), Fault::Short(PAGE)];
        let lies = [
            Fault::FlipByte(77),
            Fault::Torn,
            Fault::SwapFrames(PAGE),
            Fault::SwapFrames(2 * PAGE),
            Fault::Truncate,
        ];
        let (mut lies_seen, mut named_instead) = (0, 0);
        for fault in loud
            .into_iter()
            .chain([Fault::Unsupported])
            .chain(harmless)
            .chain(lies)
        {
            for index in 0..operations {
                let _ = std::fs::remove_file(&path);
                let outcome = scenario(&case, &case.storage(FaultPlan::at(index, fault)), &budget);
                let context = format!("{}: {fault:?} at {index}: {outcome:?}", case.name);
                match outcome {
                    Err(Error::Io { source, .. } | Error::File { source, .. }) => {
                        assert!(!harmless.contains(&fault), "{context}");
                        if loud.contains(&fault) {
                            assert!(source.raw_os_error().is_some(), "{context}");
                        }
                    }
                    Err(_) => panic!("{context}"),
                    Ok(same) => {
                        assert!(!loud.contains(&fault), "{context}");
                        assert!(same || lies.contains(&fault), "{context}");
                        named_instead += u32::from(fault == Fault::Unsupported);
                        lies_seen += u32::from(!same);
                    }
                }
                assert_eq!(budget.held_bytes(), 0, "{context}");
                let left = case.entries();
                assert!(left.is_empty() || left == [path.clone()], "{context}: {left:?}");
                if loud.contains(&fault) && path.exists() {
                    // What has the name is whole.
                    assert_eq!(
                        std::fs::metadata(&path).unwrap().len(),
                        8 * PAGE as u64,
                        "{context}"
                    );
                }
            }
        }
        assert!(lies_seen > 20, "{}: the lying faults did nothing", case.name);
        assert_eq!(
            named_instead, 2,
            "{}: scratch and publish work without O_TMPFILE",
            case.name
        );
        let _ = std::fs::remove_file(&path);
    }
}

/// How many of a file's pages are in the page cache: a read that may not wait succeeds only on those. Asking
/// begins to read the others, so a second answer is worth nothing, and on a busy machine some of them arrive
/// before the kernel looks.
fn cached_pages(path: &Path) -> usize {
    use rustix::io::{ReadWriteFlags, preadv2};
    let file = std::fs::File::open(path).unwrap();
    // No read-ahead: or the check itself would bring pages.
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).unwrap();
    let pages = file.metadata().unwrap().len() / PAGE as u64;
    let mut byte = [0u8];
    (0..pages)
        .filter(|page| {
            let mut to = [std::io::IoSliceMut::new(&mut byte)];
            preadv2(&file, &mut to, page * PAGE as u64, ReadWriteFlags::NOWAIT).is_ok()
        })
        .count()
}

/// The one nameless file of this process in `dir`, by a path that opens it.
fn nameless_file_in(dir: &Path) -> PathBuf {
    std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|fd| std::fs::read_link(fd).is_ok_and(|target| target.starts_with(dir)))
        .unwrap()
}

#[test]
fn streams_leave_no_page_cache_behind() {
    const BYTES: usize = 32 << 20;
    const PIECE: usize = 1 << 20;
    for case in cases()
        .into_iter()
        .filter(|case| !case.dir.path().starts_with("/dev/shm"))
    {
        let storage = case.storage(FaultPlan::none());
        let budget = Budget::new(1 << 20);
        let path = case.dir.path().join("stream");
        let write = || {
            let publish = storage.publish(&path).unwrap();
            let mut buffer = budget.buffer(PIECE, "b").unwrap();
            for i in 0..BYTES / PIECE {
                buffer = publish
                    .file()
                    .write(buffer, [Segment::new((i * PIECE) as u64, 0, PIECE)])
                    .wait()
                    .unwrap();
            }
            publish
        };
        let publish = write();
        let unsynced = cached_pages(&nameless_file_in(case.dir.path()));
        assert!(
            unsynced * PAGE <= 10 << 20,
            "{}: {unsynced} pages wait to be written",
            case.name
        );
        drop(publish);
        write().commit().unwrap();
        let written = cached_pages(&path);
        let control = std::fs::read(&path).unwrap();
        // The kernel may have taken some back meanwhile.
        assert!(
            cached_pages(&path) * PAGE >= control.len() / 8 * 7,
            "the check sees what is cached"
        );
        rustix::fs::fadvise(
            std::fs::File::open(&path).unwrap(),
            0,
            None,
            rustix::fs::Advice::DontNeed,
        )
        .unwrap();
        let file = storage.open(&path).unwrap();
        let mut buffer = budget.buffer(PIECE, "b").unwrap();
        for i in 0..BYTES / PIECE {
            buffer = file
                .read(buffer, [Segment::new((i * PIECE) as u64, 0, PIECE)])
                .wait()
                .unwrap();
        }
        let read = cached_pages(&path);
        eprintln!(
            "{}: {unsynced} pages left by writing, {written} after fsync, {read} by reading",
            case.name
        );
        // A stream that left its pages there would leave all of them.
        for pages in [written, read] {
            assert!(
                pages <= BYTES / PAGE / 8,
                "{}: {written} after fsync, {read} by reading",
                case.name
            );
        }
    }
}

#[test]
fn what_a_crash_left_of_scratch_files_goes() {
    let dir = tempfile::tempdir().unwrap();
    for name in [
        ".spillproof-scratch-123-456",
        ".spillproof-scratch-of-mine",
        "scratch",
    ] {
        std::fs::write(dir.path().join(name), "").unwrap();
    }
    let _storage = Storage::builder().dir(dir.path()).build().unwrap();
    let mut left = entries(dir.path());
    left.sort();
    assert_eq!(
        left,
        [".spillproof-scratch-of-mine", "scratch"].map(|name| dir.path().join(name))
    );
}

#[test]
fn segments_of_a_read_share_no_byte_of_the_buffer() {
    for case in cases() {
        let storage = case.storage(FaultPlan::none());
        let budget = Budget::new(1 << 20);
        let file = storage.scratch("overlap", 4 * PAGE as u64).unwrap();
        let overlapping = [
            Segment::new(0, 2 * PAGE, 2 * PAGE),
            Segment::new(0, PAGE, 2 * PAGE),
        ];
        let buffer = || budget.buffer(4 * PAGE, "b").unwrap();
        match file.read(buffer(), overlapping).wait() {
            Err(Error::Invalid(Invalid::OverlappingSegments { buffer_offset, .. })) => {
                assert_eq!(buffer_offset, 2 * PAGE, "{}", case.name);
            }
            other => panic!("{}: {other:?}", case.name),
        }
        // A buffer may be written to several places.
        assert!(file.write(buffer(), overlapping).wait().is_ok(), "{}", case.name);
    }
}

/// A system that says it has transferred more than it was asked for is not believed.
#[test]
fn counts_beyond_what_was_asked_for_are_errors() {
    for case in cases() {
        let counting = FaultPlan::none();
        drop(
            case.storage(counting.clone())
                .scratch("counted", 4 * PAGE as u64)
                .unwrap(),
        );
        let budget = Budget::unlimited();
        for writes in [true, false] {
            let storage = case.storage(FaultPlan::at(counting.operations(), Fault::Overstated));
            let file = storage.scratch("counted", 4 * PAGE as u64).unwrap();
            let buffer = budget.buffer(4 * PAGE, "transfer").unwrap();
            let segments = vec![Segment::new(0, 0, 2 * PAGE)];
            let pending = match writes {
                true => file.write(buffer, segments),
                false => file.read(buffer, segments),
            };
            match pending.wait() {
                Err(Error::Io {
                    source, offset: 0, ..
                }) => {
                    assert_eq!(source.kind(), std::io::ErrorKind::InvalidData, "{}", case.name)
                }
                other => panic!("{}: {:?}", case.name, other.map(|_| "a transfer")),
            }
        }
    }
}
