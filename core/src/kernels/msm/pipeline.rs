//! Chunks of a sum on all threads, without a step that all of them wait for.
//!
//! Each thread takes the next job that can be done: to fill a free slot with the next chunk (points, and the digits of each column),
//! or to add a chunk to one window of one column, or to a part of the window's buckets. A window takes chunks in order, one at a
//! time; different windows may be at different chunks, as far as there are slots. So reading, decoding and recoding of later chunks
//! go on beside the additions, and the only serial stretches are the first chunk's filling and the last windows' additions.
//!
//! What a filling computes in parallel is helped by threads that find no job. A thread that helps and meets another of these loops
//! leaves it at once: the loop could wait for the filling that stands below it on the same stack.

use std::cell::Cell;
use std::ops::DerefMut;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use crate::kernels::curve::{Curve, Point};
use crate::kernels::msm::Msm;
use crate::kernels::msm::digits::Digits;
use crate::kernels::msm::window::{Sorted, Worker};

/// How long a thread without a job waits until it looks for something to help with.
const HELP_INTERVAL: Duration = Duration::from_micros(500);

thread_local! {
    /// Whether this thread is in a loop.
    static IS_IN_LOOP: Cell<bool> = const { Cell::new(false) };
}

/// A place for a chunk.
struct Slot<'a, S> {
    buffers: &'a mut S,
    digits: &'a mut [Digits],
}

/// A part of the buckets of one window of one column.
struct Part<'a, P: Curve> {
    column: usize,
    window: usize,
    first_bucket: usize,
    buckets: Mutex<&'a mut [Point<P>]>,
}

#[derive(Clone, Copy, PartialEq)]
enum SlotState {
    Free,
    Filling,
    /// With the number of parts that have not taken it yet.
    Full(usize),
}

/// How far a part is.
#[derive(Clone, Copy)]
struct Progress {
    /// The chunk that it takes next, or takes.
    chunk: usize,
    is_busy: bool,
}

enum Job {
    Fill(usize),
    Add {
        part: usize,
        chunk: usize,
    },
    /// Nothing can be done until another thread has done something.
    Wait,
    /// Nothing is left.
    End,
}

struct State<E> {
    chunks: usize,
    /// Chunks whose filling has begun.
    begun: usize,
    slots: Vec<SlotState>,
    parts: Vec<Progress>,
    /// An error, or a panic (`None`): all threads stop.
    stopped: Option<Option<E>>,
}

impl<E> State<E> {
    fn next_job(&mut self) -> Job {
        if self.stopped.is_some() {
            return Job::End;
        }
        let slots = self.slots.len();
        if self.begun < self.chunks && self.slots[self.begun % slots] == SlotState::Free {
            self.slots[self.begun % slots] = SlotState::Filling;
            self.begun += 1;
            return Job::Fill(self.begun - 1);
        }
        let mut next: Option<(usize, usize)> = None;
        let mut left = false;
        for (part, progress) in self.parts.iter().enumerate() {
            left |= progress.chunk < self.chunks;
            let Progress { chunk, is_busy } = *progress;
            let is_full = chunk < self.begun && matches!(self.slots[chunk % slots], SlotState::Full(_));
            if is_full && !is_busy && next.is_none_or(|(first, _)| chunk < first) {
                next = Some((chunk, part));
            }
        }
        match next {
            Some((chunk, part)) => {
                self.parts[part].is_busy = true;
                Job::Add { part, chunk }
            }
            None if left => Job::Wait,
            None => Job::End,
        }
    }

    fn filled(&mut self, chunk: usize) {
        let slots = self.slots.len();
        self.slots[chunk % slots] = SlotState::Full(self.parts.len());
    }

    fn added(&mut self, part: usize, chunk: usize) {
        let slots = self.slots.len();
        self.parts[part] = Progress {
            chunk: chunk + 1,
            is_busy: false,
        };
        if let SlotState::Full(left) = &mut self.slots[chunk % slots] {
            *left -= 1;
            if *left == 0 {
                self.slots[chunk % slots] = SlotState::Free;
            }
        }
    }
}

struct Shared<E> {
    state: Mutex<State<E>>,
    changed: Condvar,
}

impl<E> Shared<E> {
    fn state(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State<E>)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    fn next_job(&self) -> Job {
        loop {
            let mut state = self.state();
            match state.next_job() {
                Job::Wait => {}
                job => return job,
            }
            drop(state);
            if rayon::yield_now() != Some(rayon::Yield::Executed) {
                state = self.state();
                // Unless something has changed since.
                match state.next_job() {
                    Job::Wait => {}
                    job => return job,
                }
                let waited = self.changed.wait_timeout(state, HELP_INTERVAL);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }
}

/// Marks the thread as being in a loop; a panic in it stops the others.
struct InLoop<'a, E>(&'a Shared<E>);

impl<'a, E> InLoop<'a, E> {
    /// None if the thread is in one.
    fn enter(shared: &'a Shared<E>) -> Option<Self> {
        // Made only then: its drop says that the thread has left.
        (!IS_IN_LOOP.replace(true)).then(|| Self(shared))
    }
}

impl<E> Drop for InLoop<'_, E> {
    fn drop(&mut self) {
        IS_IN_LOOP.set(false);
        if std::thread::panicking() {
            self.0
                .change(|state| state.stopped = state.stopped.take().or(Some(None)));
        }
    }
}

impl<P: Curve, B: DerefMut<Target = [Point<P>]> + Send> Msm<P, B> {
    /// Adds chunks 0 to `chunks` - 1, each of at most a block of bases, to every column's sum, on the rayon pool that this is called from.
    /// `fill` makes a chunk: its points in a slot (where `points` finds them), and each column's digits. There are as many slots as
    /// [`super::MsmConfig::in_chunks`] says.
    ///
    /// # Errors
    /// The first of `fill`; the sums are then worth nothing.
    pub(crate) fn run<S: Send + Sync, E: Send>(
        &mut self,
        chunks: usize,
        slots: &mut [S],
        fill: impl Fn(usize, &mut S, &mut [Digits]) -> Result<(), E> + Sync,
        points: impl Fn(&S) -> &[Point<P>] + Sync,
    ) -> Result<(), E> {
        let config = self.config;
        let (columns, windows) = (config.columns(), config.windows::<P>());
        let part_buckets = config.buckets_per_window() / config.window_parts::<P>();
        let parts: Vec<Part<'_, P>> = (self.buckets.chunks_mut(config.buckets_per_window()).enumerate())
            .flat_map(|(window, buckets)| {
                (buckets.chunks_mut(part_buckets).enumerate()).map(move |(i, buckets)| Part {
                    column: window / windows,
                    window: window % windows,
                    first_bucket: i * part_buckets,
                    buckets: Mutex::new(buckets),
                })
            })
            .collect();
        let shared = Shared {
            state: Mutex::new(State {
                chunks,
                begun: 0,
                slots: vec![SlotState::Free; slots.len()],
                parts: vec![
                    Progress {
                        chunk: 0,
                        is_busy: false
                    };
                    parts.len()
                ],
                stopped: None,
            }),
            changed: Condvar::new(),
        };
        let slots: Vec<RwLock<Slot<'_, S>>> = (slots.iter_mut())
            .zip(self.digits.chunks_mut(columns))
            .map(|(buffers, digits)| RwLock::new(Slot { buffers, digits }))
            .collect();
        let fill_slot = |chunk: usize| {
            let slot = &slots[chunk % slots.len()];
            let mut slot = slot.write().unwrap_or_else(PoisonError::into_inner);
            let Slot { buffers, digits } = &mut *slot;
            fill(chunk, buffers, digits)
        };
        let add = |worker: &mut Worker<P, B>, sorted: &mut Sorted, part: &Part<'_, P>, chunk: usize| {
            let slot = &slots[chunk % slots.len()];
            let slot = slot.read().unwrap_or_else(PoisonError::into_inner);
            let mut buckets = part.buckets.lock().unwrap_or_else(PoisonError::into_inner);
            let len = buckets.len();
            sorted.sort(&slot.digits[part.column], part.window, part.first_bucket, len);
            worker.add(points(slot.buffers), sorted, 0..len, &mut buckets);
        };
        let run_loop = |worker: &mut Worker<P, B>, sorted: &mut Sorted| {
            let Some(_in_loop) = InLoop::enter(&shared) else {
                return;
            };
            loop {
                match shared.next_job() {
                    Job::Fill(chunk) => match fill_slot(chunk) {
                        Ok(()) => shared.change(|state| state.filled(chunk)),
                        Err(error) => shared.change(|state| {
                            state.stopped = state.stopped.take().or(Some(Some(error)));
                        }),
                    },
                    Job::Add { part, chunk } => {
                        add(worker, sorted, &parts[part], chunk);
                        shared.change(|state| state.added(part, chunk));
                    }
                    Job::Wait | Job::End => return,
                }
            }
        };
        rayon::scope(|scope| {
            for (worker, sorted) in self.workers.iter_mut().zip(&mut self.sorted) {
                scope.spawn(|_| run_loop(worker, sorted));
            }
        });
        let state = shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.stopped.flatten().map_or(Ok(()), Err)
    }
}
