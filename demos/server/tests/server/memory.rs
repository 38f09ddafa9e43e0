//! The memory of the process, its files and its scratch over many jobs.

use std::fs;

use crate::client::Request;
use crate::fixture::{KEYS, Running, proofs};

const JOBS: usize = 100;
/// Before it is flat: pools, stacks, the allocator's arenas.
const FIRST_JOBS: usize = 30;
/// Other tests of the process run beside this one.
const GROWTH_BYTES_MAX: u64 = 24 << 20;

fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .expect("a size");
    kibibytes.parse::<u64>().expect("a number") << 10
}

#[test]
fn many_jobs_take_no_more_than_few() {
    let server = Running::with("32MiB", |_| ());
    let mut after_first = 0;
    for job in 0..JOBS {
        if job == FIRST_JOBS {
            after_first = resident_bytes();
        }
        let files = &KEYS.all[job % KEYS.all.len()];
        let answer = Request::post(&proofs(files.name), &files.witness).send(server.address);
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let after_all = resident_bytes();
    println!("resident: {after_first} bytes after {FIRST_JOBS} jobs, {after_all} after {JOBS}");
    assert!(
        after_all < after_first + GROWTH_BYTES_MAX,
        "{after_first} {after_all}"
    );
    assert_eq!(
        server.metric("spillproof_jobs_ended_total{state=\"done\"}"),
        JOBS as f64
    );
    server.end();
}
