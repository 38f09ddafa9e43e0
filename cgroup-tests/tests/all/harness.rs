//! The measuring instrument is measured first: a limit that kills, a peak that is right, a page cache that
//! counts, groups that go.
use std::path::Path;
use std::time::Duration;

use spillproof_cgroup_tests::{
    Group, Outcome, SlowCores, SwapFile, cold, group_or_skip, watched, watched_with,
};

use crate::common::without_the_binary;

const HOG: &str = env!("CARGO_BIN_EXE_memory-hog");
const MIB: u64 = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(60);

fn hog(group: &Group, arguments: &[&str]) -> Outcome {
    group
        .run(HOG, arguments, &[], TIMEOUT)
        .expect("runs and is measured")
}

#[test]
fn a_process_over_the_limit_is_killed() {
    let _instrument = without_the_binary();
    let Some(group) = group_or_skip(32 * MIB) else {
        return;
    };
    let outcome = hog(&group, &["heap", &(64 * MIB).to_string()]);
    assert!(outcome.is_oom_killed(), "{outcome:?}");
    assert_eq!(outcome.stdout, "");
    assert!(outcome.figures.peak_bytes <= group.limit_bytes());
}

#[test]
fn a_process_below_the_limit_is_left_alone_and_its_peak_is_seen() {
    let _instrument = without_the_binary();
    let Some(group) = group_or_skip(64 * MIB) else {
        return;
    };
    let outcome = hog(&group, &["heap", &(32 * MIB).to_string()]);
    assert!(
        outcome.status.success() && !outcome.is_oom_killed(),
        "{outcome:?}"
    );
    assert_eq!(outcome.stdout.trim(), (32 * MIB).to_string());
    let peak_bytes = outcome.figures.peak_bytes;
    assert!((32 * MIB..40 * MIB).contains(&peak_bytes), "peak {peak_bytes}");
}

#[test]
fn a_thread_gets_a_share_of_a_core() {
    let _instrument = without_the_binary();
    let here = std::thread::available_parallelism().expect("a number").get();
    let mut cores = match SlowCores::of(16 * here) {
        Ok(cores) => cores,
        Err(refusal) => {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "SKIPPED: {refusal}");
            return;
        }
    };
    assert_eq!(cores.share(), 1.0 / 16.0);
    // The shell counts, and says how much of a processor's time it used.
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; times";
    let hold = |process| cores.hold(process).expect("its thread can be limited");
    let ended = watched_with("/bin/sh", ["-c", script], &[], TIMEOUT, hold).expect("runs");
    let used = ended
        .stdout
        .lines()
        .next()
        .and_then(|line| line.split('m').nth(1)?.split('s').next()?.parse::<f64>().ok());
    let used = used.expect("minutes and seconds");
    // A few milliseconds at full speed come before the limit.
    assert!(
        ended.seconds > 6.0 * used,
        "{used} s of a processor in {} s",
        ended.seconds
    );
    assert!(SlowCores::of(0).is_err() && SlowCores::of(here * 100_000).is_err());
}

#[test]
fn page_cache_counts_and_is_reclaimed() {
    let _instrument = without_the_binary();
    let Some(group) = group_or_skip(32 * MIB) else {
        return;
    };
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page-cache.bin");
    let outcome = hog(
        &group,
        &[
            "file",
            &(64 * MIB).to_string(),
            path.to_str().expect("a plain path"),
        ],
    );
    cold::evict(&path).expect("the file can leave the page cache");
    std::fs::remove_file(&path).expect("the file is there");
    assert!(outcome.status.success(), "{outcome:?}");
    // The file is twice the limit: the group fills up with it, and nothing is killed.
    assert!(outcome.figures.peak_bytes > 28 * MIB, "{outcome:?}");
    assert_eq!(outcome.figures.oom_kills, 0);
}

#[test]
fn a_program_that_hangs_is_stopped_and_is_no_oom_kill() {
    let _instrument = without_the_binary();
    let Some(group) = group_or_skip(32 * MIB) else {
        return;
    };
    let outcome = group
        .run("sleep", ["60"], &[], Duration::from_millis(200))
        .expect("starts");
    assert!(outcome.timed_out && !outcome.is_oom_killed(), "{outcome:?}");
}

#[test]
fn the_group_is_removed_even_when_something_still_runs_in_it() {
    let _instrument = without_the_binary();
    let Some(group) = group_or_skip(32 * MIB) else {
        return;
    };
    let folder = group.folder().to_owned();
    let background = group
        .run("sh", ["-c", "sleep 60 >/dev/null 2>&1 &"], &[], TIMEOUT)
        .expect("starts");
    assert!(background.status.success());
    assert!(folder.is_dir());
    drop(group);
    assert!(!folder.exists());
}

#[test]
fn the_environment_arrives() {
    let _instrument = without_the_binary();
    let Some(group) = group_or_skip(32 * MIB) else {
        return;
    };
    let outcome = group
        .run("sh", ["-c", "echo $GREETING"], &[("GREETING", "hello")], TIMEOUT)
        .expect("starts");
    assert_eq!(outcome.stdout, "hello\n");
}

#[test]
fn memory_is_seen_from_outside_too() {
    let _instrument = without_the_binary();
    let outcome = watched(HOG, ["heap", &(32 * MIB).to_string()], &[], TIMEOUT).expect("runs");
    assert!(outcome.status.success(), "{outcome:?}");
    assert!((32 * MIB..48 * MIB).contains(&outcome.peak_bytes), "{outcome:?}");
}

#[test]
fn with_a_swap_file_a_process_over_the_limit_goes_on_and_the_file_goes_away() {
    let _instrument = without_the_binary();
    let swap = match SwapFile::on(Path::new(env!("CARGO_TARGET_TMPDIR")), 64 * MIB) {
        Ok(swap) => swap,
        Err(refusal) => return eprintln!("SKIPPED: {refusal}"),
    };
    let file = swap.file().to_owned();
    let group = match Group::with_swap(32 * MIB) {
        Ok(group) => group,
        Err(refusal) => return eprintln!("SKIPPED: {refusal}"),
    };
    let outcome = hog(&group, &["heap", &(48 * MIB).to_string()]);
    assert!(outcome.status.success(), "{outcome:?}");
    drop(swap);
    assert!(!file.exists());
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    assert!(!swaps.contains("spillproof-swap"), "{swaps}");
}
