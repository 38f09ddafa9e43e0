//! The heap gives back what is freed, and takes few addresses where these are few.
//!
//! glibc takes blocks above a threshold from anonymous maps, and returns them when they are freed; but each
//! time such a block is freed, the threshold grows to its size (32 MiB at most), and the next one of that
//! size comes from the heap, where it stays resident after its end. A prover that allocates and frees tens of
//! MiB per commitment so keeps twice its budget. A threshold that was set by hand does not grow (mallopt(3),
//! M_MMAP_THRESHOLD).
//!
//! Each thread that allocates beside another one gets an arena of its own, which takes 64 MiB of addresses
//! (128 MiB while it is made) and uses few of them. Under a limit on addresses (`ulimit -v`) that would be
//! most of them: there, all threads share one arena (M_ARENA_MAX). A prover allocates little while it
//! computes.
#![allow(unsafe_code)]

#[cfg(all(target_os = "linux", target_env = "gnu"))]
use rustix::process::{Resource, getrlimit};

/// Blocks from here on are maps of their own.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MMAP_THRESHOLD_BYTES: libc::c_int = 256 * 1024;

/// From now on, large blocks that are freed leave the process, and under a limit on addresses threads share
/// an arena; call it before threads are started. Only glibc needs it; elsewhere this does
/// nothing.
pub fn return_freed_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: mallopt may be called at any time by any thread; it changes how later blocks are allocated,
        // no block that is there. 0 means that it was refused, and then all is as before.
        let _may_be_refused = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES) };
        if getrlimit(Resource::As).current.is_some() {
            // SAFETY: as above; arenas that are there stay.
            let _may_be_refused = unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
        }
    }
}
