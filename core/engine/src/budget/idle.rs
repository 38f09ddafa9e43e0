//! Pages that buffers have left, for the buffers that come next.
//!
//! Fresh pages are slow: the system clears each of them at its first use, and on a virtual machine may have
//! to get it from its host. A proof makes and drops buffers over and over. So the pages of a dropped buffer
//! stay mapped, joined with idle ones beside them, and the next buffer takes them from the smallest range
//! that is long enough. They are in no lease: [`Idle::trim`] lets them go as soon as leases and idle pages
//! together would pass the most that leases alone took so far, or [`SHARE_MAX`] of the limit. The end of the
//! last task, and of the ledger, lets all of them go.

use std::collections::{BTreeMap, BTreeSet};

use super::pages::Pages;

/// Leases and idle pages together take at most this part of the limit, so that the system has room beside a
/// tight budget.
const SHARE_MAX: (u64, u64) = (7, 8);

/// Idle ranges of pages.
#[derive(Default)]
pub(super) struct Idle {
    /// By the address of their first byte. No two of them touch.
    by_start: BTreeMap<usize, Pages>,
    /// Lengths and first addresses of the same.
    by_bytes: BTreeSet<(usize, usize)>,
    bytes: u64,
}

impl Idle {
    /// The most bytes of idle pages beside `held_bytes` of leases.
    pub fn room(held_bytes: u64, peak_bytes: u64, limit_bytes: u64) -> u64 {
        let (part, whole) = SHARE_MAX;
        let share_bytes = (u128::from(limit_bytes) * u128::from(part) / u128::from(whole)) as u64;
        peak_bytes.min(share_bytes).saturating_sub(held_bytes)
    }

    /// Keeps the pages of a buffer.
    pub fn keep(&mut self, mut pages: Pages) {
        if pages.bytes() == 0 {
            return;
        }
        let before = self.by_start.range(..pages.start()).next_back();
        let before = before.filter(|(_, before)| before.end() == pages.start());
        if let Some(start) = before.map(|(start, _)| *start)
            && let Some(mut before) = self.remove(start)
        {
            before.append(pages);
            pages = before;
        }
        if let Some(behind) = self.remove(pages.end()) {
            pages.append(behind);
        }
        self.bytes += pages.bytes() as u64;
        self.by_bytes.insert((pages.bytes(), pages.start()));
        self.by_start.insert(pages.start(), pages);
    }

    /// `bytes` of any content, of the smallest range that is long enough.
    pub fn take(&mut self, bytes: usize) -> Option<Pages> {
        let (_, start) = *self.by_bytes.range((bytes, 0)..).next()?;
        let mut pages = self.remove(start)?;
        if let Some(rest) = pages.split_off(bytes) {
            self.keep(rest);
        }
        Some(pages)
    }

    /// Gives up pages, of the longest ranges first, until at most `room_bytes` are left.
    pub fn trim(&mut self, room_bytes: u64) -> Vec<Pages> {
        let mut given_up = Vec::new();
        while self.bytes > room_bytes
            && let Some(&(_, start)) = self.by_bytes.last()
            && let Some(mut pages) = self.remove(start)
        {
            // The removed range counts no more.
            let kept_bytes = room_bytes.saturating_sub(self.bytes);
            let kept_bytes = pages.round_down(usize::try_from(kept_bytes).unwrap_or(usize::MAX));
            let surplus = pages.split_off(kept_bytes);
            self.keep(pages);
            given_up.extend(surplus);
        }
        given_up
    }

    fn remove(&mut self, start: usize) -> Option<Pages> {
        let pages = self.by_start.remove(&start)?;
        self.by_bytes.remove(&(pages.bytes(), start));
        self.bytes -= pages.bytes() as u64;
        Some(pages)
    }
}

#[cfg(test)]
mod tests {
    use crate::budget::{Budget, Opening, PAGE_BYTES};

    const PAGE: u64 = PAGE_BYTES as u64;

    fn idle_bytes(budget: &Budget) -> u64 {
        budget.ledger.state().idle.bytes
    }

    #[test]
    fn pages_of_a_dropped_buffer_are_taken_again() {
        let budget = Budget::new(1 << 20);
        let mut buffer = budget.buffer(8 * PAGE_BYTES, "first").unwrap();
        let start = buffer.as_ptr();
        buffer.fill(7);
        drop(buffer);
        assert_eq!((budget.held_bytes(), idle_bytes(&budget)), (0, 8 * PAGE));
        let small = budget.buffer(3 * PAGE_BYTES, "second").unwrap();
        assert_eq!((small.as_ptr(), small.len()), (start, 3 * PAGE_BYTES));
        assert!(small.iter().all(|byte| *byte == 0), "zeroed");
        assert_eq!((budget.held_bytes(), idle_bytes(&budget)), (3 * PAGE, 5 * PAGE));
        let rest = budget.vec(5 * PAGE_BYTES, 1u8, "third").unwrap();
        assert_eq!(rest.as_ptr(), start.wrapping_add(3 * PAGE_BYTES));
        assert!(rest.iter().all(|byte| *byte == 1));
        assert_eq!((idle_bytes(&budget), budget.peak_bytes()), (0, 8 * PAGE));
    }

    #[test]
    fn small_buffers_leave_room_for_a_large_one() {
        let budget = Budget::new(1 << 20);
        drop(budget.buffer(8 * PAGE_BYTES, "large").unwrap());
        let mut small: Vec<_> = (0..8)
            .map(|_| budget.buffer(PAGE_BYTES, "small").unwrap())
            .collect();
        let start = small.iter().map(|buffer| buffer.as_ptr()).min();
        small.iter_mut().for_each(|buffer| buffer.fill(9));
        assert_eq!(idle_bytes(&budget), 0);
        // In any order.
        for index in [3, 0, 4, 2, 1, 0, 1, 0] {
            drop(small.swap_remove(index));
        }
        let large = budget.buffer(8 * PAGE_BYTES, "large").unwrap();
        assert_eq!(Some(large.as_ptr()), start);
        assert!(large.iter().all(|byte| *byte == 0), "zeroed");
        assert_eq!((idle_bytes(&budget), budget.peak_bytes()), (0, 8 * PAGE));
    }

    #[test]
    fn idle_pages_never_raise_the_peak() {
        let budget = Budget::new(100 * PAGE);
        let buffers = [1, 2, 4, 8].map(|pages| budget.buffer(pages * PAGE_BYTES, "buffers").unwrap());
        drop(buffers);
        assert_eq!((idle_bytes(&budget), budget.peak_bytes()), (15 * PAGE, 15 * PAGE));
        // Memory of another kind: idle pages make room.
        let lease = budget.lease(6 * PAGE, "heap").unwrap();
        assert_eq!((idle_bytes(&budget), budget.peak_bytes()), (9 * PAGE, 15 * PAGE));
        let more = budget.lease(10 * PAGE, "heap").unwrap();
        assert_eq!((idle_bytes(&budget), budget.peak_bytes()), (0, 16 * PAGE));
        drop((lease, more));
        let buffer = budget.buffer(8 * PAGE_BYTES, "buffer").unwrap();
        drop(buffer);
        assert_eq!(idle_bytes(&budget), 8 * PAGE);
        budget.restart_peak();
        assert_eq!((idle_bytes(&budget), budget.peak_bytes()), (0, 0));
    }

    #[test]
    fn the_last_task_leaves_no_pages() {
        let budget = Budget::new(1 << 20);
        let queued = budget.queue(Box::new(|| Ok(0)));
        let Opening::Opened(account) = queued.try_open(false) else {
            panic!("alone, and not admitted");
        };
        drop(budget.buffer(8 * PAGE_BYTES, "buffer").unwrap());
        assert_eq!(idle_bytes(&budget), 8 * PAGE);
        drop(account);
        assert_eq!(idle_bytes(&budget), 0);
    }

    #[test]
    fn a_tight_budget_keeps_an_eighth_free() {
        let budget = Budget::new(16 * PAGE);
        drop(budget.buffer(16 * PAGE_BYTES, "all").unwrap());
        assert_eq!(idle_bytes(&budget), 14 * PAGE);
        let halves = [0, 1].map(|_| budget.buffer(8 * PAGE_BYTES, "halves").unwrap());
        assert_eq!(idle_bytes(&budget), 0);
        drop(halves);
        assert_eq!(idle_bytes(&budget), 14 * PAGE);
    }
}
