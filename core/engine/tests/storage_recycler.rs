//! What scratch files take on disk: one that has gone gives its room to the next, and never is more taken
//! than at one time before.

#![allow(clippy::unwrap_used)]

mod storage_cases;

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng, rngs::StdRng};
use spillproof_engine::budget::Budget;
use spillproof_engine::storage::{FaultPlan, File, PagedMap, Segment};
use storage_cases::{PAGE, cases};

/// What files without a name in `dir` that this process has open take, as the kernel counts it.
fn room_bytes(dir: &Path) -> u64 {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    open.filter(|entry| {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        target.starts_with(dir) && target.to_string_lossy().ends_with("(deleted)")
    })
    .filter_map(|entry| std::fs::metadata(entry.path()).ok())
    .map(|file| file.blocks() * 512)
    .sum()
}

/// The same, once what is closed behind the last file is.
fn room_left_bytes(dir: &Path) -> u64 {
    let begun = Instant::now();
    loop {
        let left_bytes = room_bytes(dir);
        if left_bytes == 0 || begun.elapsed() > Duration::from_secs(20) {
            return left_bytes;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_file_that_has_gone_gives_its_room_to_the_next_of_its_length() {
    const BYTES: u64 = 16 * PAGE as u64;
    for case in cases() {
        let (name, dir) = (&case.name, case.dir.path());
        let storage = case.storage(FaultPlan::none());
        let scratch = |what: &str, bytes: u64| storage.scratch(what, bytes).unwrap();
        let stays = scratch("stays", PAGE as u64);
        let kept = u64::from(stays.is_direct());
        drop(scratch("first", BYTES));
        assert_eq!(room_bytes(dir), PAGE as u64 + kept * BYTES, "{name}");
        let second = scratch("second", BYTES);
        assert_eq!(storage.stats().scratch_reused, kept, "{name}");
        assert_eq!(storage.stats().scratch_made, 3 - kept, "{name}");
        assert_eq!(second.len_bytes(), BYTES, "{name}");
        assert!(second.name().contains("second"), "{name}: {}", second.name());
        drop(second);
        // Another length is another file, and what was kept goes before there is more than there was.
        let other = scratch("other", 2 * PAGE as u64);
        assert_eq!(storage.stats().scratch_reused, kept, "{name}");
        assert_eq!(room_bytes(dir), 3 * PAGE as u64, "{name}");
        drop(other);
        // A file that was cut off is not what it was.
        let cut = scratch("cut", BYTES);
        cut.set_len(0).unwrap();
        drop(cut);
        assert_eq!(room_bytes(dir), PAGE as u64, "{name}");
        // Nothing is kept from a file that stays.
        drop(scratch("third", BYTES));
        drop(storage.publish(dir.join("x")).unwrap());
        assert_eq!(room_bytes(dir), PAGE as u64, "{name}");
        drop(scratch("last", BYTES));
        drop(stays);
        assert_eq!(room_left_bytes(dir), 0, "{name}");
    }
}

#[test]
fn a_file_is_nobody_elses_before_its_last_transfer_is_done() {
    const BYTES: usize = 64 * PAGE;
    let budget = Budget::new(1 << 20);
    for case in cases() {
        let storage = case.storage(FaultPlan::none());
        let _stays = storage.scratch("stays", BYTES as u64).unwrap();
        let whole = || [Segment::new(0, 0, BYTES)];
        let mut reading = None;
        for byte in 0..100 {
            let file = storage.scratch("s", BYTES as u64).unwrap();
            let mut buffer = budget.buffer(BYTES, "b").unwrap();
            buffer.fill(byte);
            let buffer = file.write(buffer, whole()).wait().unwrap();
            let read = file.read(buffer, whole());
            drop(file);
            if let Some((byte, read)) = reading.replace((byte, read)) {
                let buffer = read.wait().unwrap();
                assert!(
                    buffer.iter().all(|&found| found == byte),
                    "{}, file {byte}",
                    case.name
                );
            }
        }
    }
}

#[test]
fn no_more_is_taken_than_was_at_one_time() {
    const STEPS: usize = 300;
    let seed = match std::env::var("SPILLPROOF_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => rand::random(),
    };
    println!("SPILLPROOF_SEED={seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    for case in cases() {
        let storage = case.storage(FaultPlan::none());
        let mut files: Vec<(u64, File)> = Vec::new();
        let mut maps: Vec<(u64, PagedMap)> = Vec::new();
        let mut peak_bytes = 0;
        for step in 0..STEPS {
            match rng.gen_range(0..9) {
                0..=3 => {
                    let bytes = PAGE as u64 * rng.gen_range(1..5);
                    files.push((bytes, storage.scratch("s", bytes).unwrap()));
                }
                4..=6 if !files.is_empty() => {
                    files.swap_remove(rng.gen_range(0..files.len()));
                }
                7 => {
                    let bytes = PAGE * rng.gen_range(1..4);
                    let map = PagedMap::scratch(&storage, "m", 8 * PAGE as u64).unwrap();
                    map.reserve(PAGE..PAGE + bytes).unwrap();
                    maps.push((bytes as u64, map));
                }
                8 if !maps.is_empty() => {
                    maps.swap_remove(rng.gen_range(0..maps.len()));
                }
                _ => {}
            }
            let in_use = files.iter().map(|(bytes, _)| bytes).sum::<u64>()
                + maps.iter().map(|(bytes, _)| bytes).sum::<u64>();
            peak_bytes = peak_bytes.max(in_use);
            let taken = match in_use {
                0 => room_left_bytes(case.dir.path()),
                _ => room_bytes(case.dir.path()),
            };
            let name = &case.name;
            assert!(taken >= in_use, "{name}, step {step}: {taken} of {in_use} bytes");
            assert!(
                taken <= peak_bytes,
                "{name}, step {step}: {taken} bytes, {peak_bytes} at most before"
            );
            assert!(
                in_use > 0 || taken == 0,
                "{name}, step {step}: {taken} bytes are kept"
            );
        }
        let stats = storage.stats();
        println!(
            "{}: {} made, {} reused",
            case.name, stats.scratch_made, stats.scratch_reused
        );
    }
}
