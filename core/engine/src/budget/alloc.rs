//! A counting allocator: shows what the program holds in the heap besides its leases. Installed by binaries
//! and tests:
//!
//! ```
//! use spillproof_engine::budget::CountingAlloc;
//!
//! #[global_allocator]
//! static HEAP: CountingAlloc = CountingAlloc;
//!
//! let before = CountingAlloc::live_bytes();
//! let kept = vec![0u8; 100_000];
//! assert!(CountingAlloc::live_bytes() >= before + 100_000);
//! drop(kept);
//! ```
//!
//! Buffers, pools and leased vectors are not in the heap, so they are not seen here; heap memory under a
//! plain [`Budget::lease`](super::Budget::lease) is taken off. Counts are bytes asked for, not the
//! allocator's own overhead.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);
static PEAK_BYTES: AtomicI64 = AtomicI64::new(0);
static LEASED_BYTES: AtomicI64 = AtomicI64::new(0);
static OUTSIDE_PEAK_BYTES: AtomicI64 = AtomicI64::new(0);
static ON_EXHAUSTION: OnceLock<extern "C" fn(usize)> = OnceLock::new();

/// The system's allocator, counted. All figures are of the process, and zero if it is not installed.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAlloc;

impl CountingAlloc {
    /// Heap bytes that live now.
    pub fn live_bytes() -> u64 {
        clamp(LIVE_BYTES.load(Relaxed))
    }

    /// The most heap bytes that lived at one time, since the start or [`CountingAlloc::reset_peaks`].
    pub fn peak_bytes() -> u64 {
        clamp(PEAK_BYTES.load(Relaxed))
    }

    /// The most heap bytes that lived at one time above the leases on heap memory: what the budget does not
    /// see.
    pub fn outside_leases_peak_bytes() -> u64 {
        clamp(OUTSIDE_PEAK_BYTES.load(Relaxed))
    }

    /// When the system gives the heap no memory, `tell` is called with the bytes that were asked for, and may
    /// end the process: the standard library would abort it. It should not allocate. Once set, it stays.
    pub fn on_exhaustion(tell: extern "C" fn(usize)) {
        let _was_set = ON_EXHAUSTION.set(tell);
    }

    /// Starts both peaks anew from what lives now.
    pub fn reset_peaks() {
        let live = LIVE_BYTES.load(Relaxed);
        PEAK_BYTES.store(live, Relaxed);
        OUTSIDE_PEAK_BYTES.store(live - LEASED_BYTES.load(Relaxed), Relaxed);
    }
}

/// The heap gets no memory.
#[cold]
fn exhausted(bytes: usize) {
    if let Some(tell) = ON_EXHAUSTION.get() {
        tell(bytes);
    }
}

fn clamp(bytes: i64) -> u64 {
    u64::try_from(bytes).unwrap_or(0)
}

/// A lease on heap memory was taken: allocations under it are expected.
pub(super) fn heap_leased(bytes: u64) {
    LEASED_BYTES.fetch_add(i64::try_from(bytes).unwrap_or(i64::MAX), Relaxed);
}

/// A lease on heap memory was given back.
pub(super) fn heap_returned(bytes: u64) {
    LEASED_BYTES.fetch_sub(i64::try_from(bytes).unwrap_or(i64::MAX), Relaxed);
}

fn grew(bytes: usize) {
    let live = LIVE_BYTES.fetch_add(bytes as i64, Relaxed) + bytes as i64;
    // Loads first: a peak is rarely new, and a shared line that is only read stays with every core.
    if live > PEAK_BYTES.load(Relaxed) {
        PEAK_BYTES.fetch_max(live, Relaxed);
    }
    let outside = live - LEASED_BYTES.load(Relaxed);
    if outside > OUTSIDE_PEAK_BYTES.load(Relaxed) {
        OUTSIDE_PEAK_BYTES.fetch_max(outside, Relaxed);
    }
}

fn shrank(bytes: usize) {
    LIVE_BYTES.fetch_sub(bytes as i64, Relaxed);
}

// SAFETY: every call is handed to `System` unchanged; counting allocates nothing and cannot unwind, nor can
// an `extern "C"` function, which is what is called when memory ends.
unsafe impl GlobalAlloc for CountingAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps `alloc`'s contract, which is `System`'s.
        let start = unsafe { System.alloc(layout) };
        if start.is_null() {
            exhausted(layout.size());
        } else {
            grew(layout.size());
        }
        start
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        let start = unsafe { System.alloc_zeroed(layout) };
        if start.is_null() {
            exhausted(layout.size());
        } else {
            grew(layout.size());
        }
        start
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller got `start` from this allocator, so from `System`, with this layout.
        unsafe { System.dealloc(start, layout) };
        shrank(layout.size());
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        // SAFETY: as in `dealloc`; the caller vouches for `new_bytes`.
        let moved = unsafe { System.realloc(start, layout, new_bytes) };
        if moved.is_null() {
            exhausted(new_bytes);
        } else if new_bytes >= layout.size() {
            grew(new_bytes - layout.size());
        } else {
            shrank(layout.size() - new_bytes);
        }
        moved
    }
}
