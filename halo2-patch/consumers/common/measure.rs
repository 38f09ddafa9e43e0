//! What a phase of a program takes, as the kernel sees it.

use std::time::Instant;

/// Runs `work`; says how long it took, of that on processors, and how much of the process was in memory
/// before, and at most.
pub fn phase<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let before = resident_mib("VmRSS");
    // 5: the peak starts anew (proc_pid_clear_refs(5)). Where the kernel can't, it is that of the process so
    // far.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let (start, busy) = (Instant::now(), busy_seconds());
    let result = work();
    println!(
        "{name}: {:.2} s ({:.2} s on processors), {before} MiB before, {} MiB at most",
        start.elapsed().as_secs_f64(),
        busy_seconds() - busy,
        resident_mib("VmHWM")
    );
    result
}

fn resident_mib(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

/// Seconds of all threads, in user and kernel mode (proc_pid_stat(5)), if the kernel counts a hundred ticks a
/// second.
fn busy_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks = fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}
