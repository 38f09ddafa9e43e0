//! The memory of the process, its files and its scratch over many jobs.

use std::fs;
use std::process::Command;

use crate::client::Request;
use crate::fixture::{KEYS, Running, proofs};
use crate::saved::SAVED;

const JOBS: usize = 100;
/// Before it is flat: pools, stacks, the allocator's arenas.
const FIRST_JOBS: usize = 30;
const GROWTH_BYTES_MAX: u64 = 16 << 20;

fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .expect("a size");
    kibibytes.parse::<u64>().expect("a number") << 10
}

/// In a process of its own: other tests take memory, too.
#[test]
fn many_jobs_take_no_more_than_few() {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program)
        .args(["--exact", "memory::alone", "--ignored", "--nocapture"])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
#[ignore = "for a process of its own, which another test starts"]
fn alone() {
    let server = Running::with("32MiB", |settings| SAVED.settings(settings));
    let mut witnesses: Vec<_> = KEYS
        .all
        .iter()
        .map(|files| (files.name, &files.witness))
        .collect();
    witnesses.push(("sums", &SAVED.witness));
    let mut after_first = 0;
    for job in 0..JOBS {
        if job == FIRST_JOBS {
            after_first = resident_bytes();
        }
        let (name, witness) = witnesses[job % witnesses.len()];
        let answer = Request::post(&proofs(name), witness).send(server.address);
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
