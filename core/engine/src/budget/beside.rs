//! What is resident beside the budget, as measured (`VmHWM`, `RssAnon`, `RssFile` of proofs, keys, sums,
//! commitments and files of all systems, 2^10 to 2^17 rows, 1 to 32 threads; the release build maps 35 MiB):
//!
//! - **Pages of the program and its libraries**, as far as they were used: 9 to 18 MiB, a little over a half
//!   of what is mapped at most. A hard limit makes the kernel drop and read them again, but a process that
//!   has too few of them crawls.
//! - **Each compute thread**: its stack, its part of the heap, the threads that carry out transfers for it:
//!   0.14 MiB.
//! - **The heap without leases**, rings and stacks of the other threads: up to 4.5 MiB with two threads. It
//!   does not grow with `2^k`; what a circuit holds while it is synthesised belongs to the circuit, and comes
//!   on top.
//! - **The kernel's own memory** for the process (tables of pages, stacks of threads, files), which a control
//!   group counts: up to 1.5 MiB, and more with more memory: this is what [`margin_bytes`] is for.
//!
//! All constants are above what was measured.

use super::process;

/// The part of the mapped pages of program and libraries that is used.
const PROGRAM_SHARE: (u64, u64) = (5, 8);
/// Where the kernel does not tell what is mapped.
const PROGRAM_BYTES: u64 = 24 << 20;
/// Of a compute thread.
const THREAD_BYTES: u64 = 256 << 10;
/// Of the heap, of stacks and rings.
const HEAP_BYTES: u64 = 7 << 20;
/// The part of the memory that is left to the kernel.
pub(super) const MARGIN_SHARE: u64 = 32;

/// What is left to the kernel of so many bytes.
pub(super) fn margin_bytes(limit_bytes: u64) -> u64 {
    limit_bytes / MARGIN_SHARE
}

/// What is resident of this process beside its leases, without the margin.
pub(super) fn of_process(threads: usize) -> u64 {
    resident_bytes(process::program_bytes(), threads)
}

/// What is resident of a program of so many mapped bytes.
pub(super) fn resident_bytes(program_bytes: Option<u64>, threads: usize) -> u64 {
    let (part, whole) = PROGRAM_SHARE;
    let program_bytes = program_bytes.map_or(PROGRAM_BYTES, |bytes| bytes / whole * part);
    program_bytes + threads as u64 * THREAD_BYTES + HEAP_BYTES
}
