//! Loops on the threads of the caller's pool.
//!
//! rayon's parallel iterators make some twenty functions of each loop, for each type that it is over. The
//! engine is generic over fields and curves: those functions were half of all in the program of its tests.
//! Here threads take the items of an ordinary iterator in turns, and what starts them is generic over
//! nothing. An item has to be work for a few microseconds at least.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// Items that threads take in turns.
pub struct Shared<I> {
    items: I,
    /// Items that a thread takes at a time.
    run: usize,
}

/// Iterators whose items may be worked on beside each other.
pub trait Parallel: Iterator<Item: Send> + Send + Sized {
    /// To work on them on all threads of the pool.
    fn parallel(self) -> Shared<Self> {
        Shared { items: self, run: 1 }
    }
}

impl<I: Iterator<Item: Send> + Send> Parallel for I {}

impl<I: Iterator<Item: Send> + Send> Shared<I> {
    /// A thread takes so many items at a time, where one is too little work.
    pub fn in_runs_of(mut self, items: usize) -> Self {
        self.run = items.max(1);
        self
    }

    /// Calls `work` for each item.
    pub fn for_each(self, work: impl Fn(I::Item) + Sync) {
        self.for_each_init(|| (), |(), item| work(item));
    }

    /// Calls `work` for each item, with what `init` made for the thread.
    pub fn for_each_init<S>(self, init: impl Fn() -> S + Sync, work: impl Fn(&mut S, I::Item) + Sync) {
        let Self { items, run } = self;
        let runs = items
            .size_hint()
            .1
            .map_or(usize::MAX, |items| items.div_ceil(run));
        let items = Mutex::new(items.fuse());
        on_threads(runs, &|| {
            let mut taken = Vec::new();
            let mut state = None;
            loop {
                // An iterator that panics has no more items.
                match items.lock() {
                    Ok(mut items) => taken.extend(items.by_ref().take(run)),
                    Err(_) => return,
                }
                if taken.is_empty() {
                    return;
                }
                let state = state.get_or_insert_with(&init);
                taken.drain(..).for_each(|item| work(state, item));
            }
        });
    }

    /// What `work` makes of the first item, in the order of the iterator, for which it makes anything.
    pub fn find_map_first<R: Send>(self, work: impl Fn(I::Item) -> Option<R> + Sync) -> Option<R> {
        let found: Mutex<Option<(usize, R)>> = Mutex::new(None);
        let lock = || found.lock().unwrap_or_else(PoisonError::into_inner);
        let Self { items, run } = self;
        let items = items.enumerate();
        Shared { items, run }.for_each(|(place, item)| {
            // Items are taken in order: those before one that was found are on their way.
            if lock().as_ref().is_some_and(|(first, _)| *first < place) {
                return;
            }
            if let Some(made) = work(item) {
                let mut found = lock();
                if found.as_ref().is_none_or(|(first, _)| place < *first) {
                    *found = Some((place, made));
                }
            }
        });
        found
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .map(|(_, made)| made)
    }

    /// Calls `work` for each item until it fails.
    pub fn try_for_each<E: Send>(self, work: impl Fn(I::Item) -> Result<(), E> + Sync) -> Result<(), E> {
        self.find_map_first(|item| work(item).err()).map_or(Ok(()), Err)
    }

    /// What `work` makes of each item, in the order of the iterator.
    pub fn map<R: Send>(self, work: impl Fn(I::Item) -> R + Sync) -> Vec<R>
    where
        I: ExactSizeIterator,
    {
        let Self { items, run } = self;
        let mut made: Vec<Option<R>> = (0..items.len()).map(|_| None).collect();
        let items = items.zip(&mut made);
        Shared { items, run }.for_each(|(item, made)| *made = Some(work(item)));
        made.into_iter().flatten().collect()
    }

    /// The same of work that may fail: then the first error.
    pub fn try_map<R: Send, E: Send>(self, work: impl Fn(I::Item) -> Result<R, E> + Sync) -> Result<Vec<R>, E>
    where
        I: ExactSizeIterator,
    {
        self.map(work).into_iter().collect()
    }
}

/// Calls `work` up to `times` times, on as many threads of the pool as are free. Each call works until
/// nothing is left.
fn on_threads(times: usize, work: &(dyn Fn() + Sync)) {
    let times = times.min(rayon::current_num_threads());
    if times <= 1 {
        return work();
    }
    (0..times).into_par_iter().with_max_len(1).for_each(|_| work());
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_item_is_taken_once_and_results_are_in_order(len in 0..500usize, run in 0..9usize, found in prop::collection::vec(0..600usize, 0..4)) {
            let mut doubled = vec![0; len];
            let calls = AtomicUsize::new(0);
            doubled.iter_mut().enumerate().parallel().in_runs_of(run).for_each_init(Vec::new, |seen: &mut Vec<usize>, (i, to)| {
                assert!(seen.last().is_none_or(|last| *last < i), "a thread takes items in order");
                seen.push(i);
                calls.fetch_add(1, Ordering::Relaxed);
                *to += 2 * i;
            });
            let expected: Vec<usize> = (0..len).map(|i| 2 * i).collect();
            prop_assert_eq!(&doubled, &expected);
            prop_assert_eq!(calls.into_inner(), len);
            prop_assert_eq!((0..len).parallel().in_runs_of(run).map(|i| 2 * i), expected);
            let first = found.iter().copied().filter(|i| *i < len).min();
            prop_assert_eq!((0..len).parallel().in_runs_of(run).find_map_first(|i| found.contains(&i).then_some(i)), first);
            let tried = (0..len).parallel().try_map(|i| if found.contains(&i) { Err(i) } else { Ok(i) });
            prop_assert_eq!(tried.err(), first);
        }
    }

    #[test]
    fn a_panic_comes_through_and_loops_may_be_nested() {
        let sum = AtomicUsize::new(0);
        (0..10).parallel().for_each(|i| {
            (0..10).parallel().for_each(|j| {
                sum.fetch_add(10 * i + j, Ordering::Relaxed);
            });
        });
        assert_eq!(sum.into_inner(), (0..100).sum());
        let panics = || (0..100).parallel().for_each(|i| assert!(i < 50, "item {i}"));
        assert!(std::panic::catch_unwind(panics).is_err());
    }
}
