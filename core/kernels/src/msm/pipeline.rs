//! Chunks of a sum on all threads, without a step that all of them wait for.
//!
//! Each thread takes the next job that can be done: to fill a free slot with the next chunk (points, and the
//! digits of each column), or to add a chunk to one window of one column, or to a part of the window's
//! buckets. A window takes chunks in order, one at a time; different windows may be at different chunks, as
//! far as there are slots. So reading, decoding and recoding of later chunks go on beside the additions, and
//! the only serial stretches are the first chunk's filling and the last windows' additions. Chunks of which
//! one is made from what the one before left ([`Fillings::InOrder`], as in an opening) are filled by one
//! thread at a time.
//!
//! A thread that finds no job does not wait: it ends, and a job that makes others possible starts threads for
//! them. So a loop that rayon puts on top of a part of a filling, in a thread that waits for another part,
//! never waits for what is below it on its stack; and threads without a job help with parts of fillings.

use std::ops::DerefMut;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use rayon::Scope;

use crate::curve::{Curve, Point};
use crate::msm::Msm;
use crate::msm::config::MsmConfig;
use crate::msm::digits::Digits;
use crate::msm::window::Worker;

/// Which chunks may be filled at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fillings {
    /// As many as there are free slots.
    SideBySide,
    /// One after the other, in the order of the chunks.
    InOrder,
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
    Add { part: usize, chunk: usize },
}

struct State<W, E> {
    chunks: usize,
    fillings: Fillings,
    /// Chunks whose filling has begun.
    begun: usize,
    slots: Vec<SlotState>,
    parts: Vec<Progress>,
    /// The memory of threads that have no job.
    idle: Vec<W>,
    error: Option<E>,
}

impl<W, E> State<W, E> {
    /// Whether the next chunk may be filled.
    fn may_fill(&self) -> bool {
        let is_free = || self.slots[self.begun % self.slots.len()] == SlotState::Free;
        let waits_for_another =
            || self.fillings == Fillings::InOrder && self.slots.contains(&SlotState::Filling);
        self.begun < self.chunks && is_free() && !waits_for_another()
    }

    /// Parts that can take their next chunk, and that chunk.
    fn ready_parts(&self) -> impl Iterator<Item = (usize, usize)> {
        let is_full = |chunk: usize| matches!(self.slots[chunk % self.slots.len()], SlotState::Full(_));
        let parts = self.parts.iter().enumerate();
        parts.filter_map(move |(part, Progress { chunk, is_busy })| {
            (!is_busy && *chunk < self.begun && is_full(*chunk)).then_some((*chunk, part))
        })
    }

    /// A job, if one can be done; the oldest chunk comes first, but for fillings.
    fn take_job(&mut self) -> Option<Job> {
        if self.error.is_some() {
            return None;
        }
        if self.may_fill() {
            let slot = self.begun % self.slots.len();
            self.slots[slot] = SlotState::Filling;
            self.begun += 1;
            return Some(Job::Fill(self.begun - 1));
        }
        let (chunk, part) = self.ready_parts().min()?;
        self.parts[part].is_busy = true;
        Some(Job::Add { part, chunk })
    }

    /// Jobs that can be done now.
    fn ready(&self) -> usize {
        match self.error {
            Some(_) => 0,
            None => usize::from(self.may_fill()) + self.ready_parts().count(),
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

/// What all threads share.
struct Pass<'a, P: Curve, B, S, E, Fill, Points> {
    state: Mutex<State<&'a mut Worker<P, B>, E>>,
    slots: Vec<RwLock<Slot<'a, S>>>,
    parts: Vec<Part<'a, P>>,
    fill: Fill,
    points: Points,
}

impl<'a, P, B, S, E, Fill, Points> Pass<'a, P, B, S, E, Fill, Points>
where
    P: Curve,
    B: DerefMut<Target = [Point<P>]> + Send,
    S: Send + Sync,
    E: Send,
    Fill: Fn(usize, &mut S, &mut [Digits]) -> Result<(), E> + Sync,
    Points: Fn(&S) -> &[Point<P>] + Sync,
{
    fn state(&self) -> MutexGuard<'_, State<&'a mut Worker<P, B>, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts as many threads as have something to do.
    fn start<'s>(&'s self, scope: &Scope<'s>) {
        let started: Vec<&'a mut Worker<P, B>> = {
            let mut state = self.state();
            let count = state.ready().min(state.idle.len());
            let from = state.idle.len() - count;
            state.idle.drain(from..).collect()
        };
        for worker in started {
            scope.spawn(move |scope| self.run(scope, worker));
        }
    }

    /// Does jobs while there are any.
    fn run<'s>(&'s self, scope: &Scope<'s>, worker: &'a mut Worker<P, B>) {
        loop {
            let job = {
                let mut state = self.state();
                match state.take_job() {
                    Some(job) => job,
                    // With the lock that the search had: nothing has become ready since.
                    None => return state.idle.push(worker),
                }
            };
            match job {
                Job::Fill(chunk) => {
                    let filled = self.fill(chunk);
                    let mut state = self.state();
                    match filled {
                        Ok(()) => state.filled(chunk),
                        Err(error) => _ = state.error.get_or_insert(error),
                    }
                }
                Job::Add { part, chunk } => {
                    self.add(worker, &self.parts[part], chunk);
                    self.state().added(part, chunk);
                }
            }
            self.start(scope);
        }
    }

    fn fill(&self, chunk: usize) -> Result<(), E> {
        let slot = &self.slots[chunk % self.slots.len()];
        let mut slot = slot.write().unwrap_or_else(PoisonError::into_inner);
        let Slot { buffers, digits } = &mut *slot;
        (self.fill)(chunk, buffers, digits)
    }

    fn add(&self, worker: &mut Worker<P, B>, part: &Part<'_, P>, chunk: usize) {
        let slot = &self.slots[chunk % self.slots.len()];
        let slot = slot.read().unwrap_or_else(PoisonError::into_inner);
        let mut buckets = part.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let digits = &slot.digits[part.column];
        worker.add(
            (self.points)(slot.buffers),
            (digits, part.window),
            part.first_bucket,
            &mut buckets,
        );
    }
}

impl<P: Curve, B: DerefMut<Target = [Point<P>]> + Send> Msm<P, B> {
    /// Adds chunks 0 to `chunks` - 1, each of at most a block of bases, to every column's sum, on the rayon
    /// pool that this is called from. `fill` makes a chunk: its points in a slot (where `points` finds them),
    /// and each column's digits. There are as many slots as [`MsmConfig::in_chunks`] says.
    ///
    /// # Errors
    /// The first of `fill`; the sums are then worth nothing.
    pub fn run<S: Send + Sync, E: Send>(
        &mut self,
        (chunks, fillings): (usize, Fillings),
        slots: &mut [S],
        fill: impl Fn(usize, &mut S, &mut [Digits]) -> Result<(), E> + Sync,
        points: impl Fn(&S) -> &[Point<P>] + Sync,
    ) -> Result<(), E> {
        let config = self.config;
        let idle = self.workers.iter_mut().collect();
        let parts = parts(&config, &mut self.buckets);
        let progress = Progress {
            chunk: 0,
            is_busy: false,
        };
        let pass = Pass {
            state: Mutex::new(State {
                chunks,
                fillings,
                begun: 0,
                slots: vec![SlotState::Free; slots.len()],
                parts: vec![progress; parts.len()],
                idle,
                error: None,
            }),
            slots: (slots.iter_mut())
                .zip(self.digits.chunks_mut(config.columns()))
                .map(|(buffers, digits)| RwLock::new(Slot { buffers, digits }))
                .collect(),
            parts,
            fill,
            points,
        };
        rayon::scope(|scope| pass.start(scope));
        let state = pass.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.error.map_or(Ok(()), Err)
    }
}

/// The parts of all columns' windows.
fn parts<'a, P: Curve>(config: &MsmConfig, buckets: &'a mut [Point<P>]) -> Vec<Part<'a, P>> {
    let windows = config.windows::<P>();
    let part_buckets = config.buckets_per_window() / config.window_parts::<P>();
    let windows_buckets = buckets.chunks_mut(config.buckets_per_window()).enumerate();
    windows_buckets
        .flat_map(|(window, buckets)| {
            (buckets.chunks_mut(part_buckets).enumerate()).map(move |(i, buckets)| Part {
                column: window / windows,
                window: window % windows,
                first_bucket: i * part_buckets,
                buckets: Mutex::new(buckets),
            })
        })
        .collect()
}
