//! Where a workspace computes: on the threads of its session, one stage at a time.
//!
//! A stage plans with all that the budget has left, so [`Workspace::run`] lets one caller in after the other.
//! Whoever waits there, waits for stages only, and a stage waits for no other: a stage asks for no turn (from
//! the pool's threads work runs at once), and what a thread outside of the pool does meanwhile, such as that
//! of an accelerator, never needs the pool. So:
//!
//! - a caller that is a worker of some other rayon pool takes on no other work of that pool while it waits:
//!   that could be the next caller;
//! - what is hashed or converted on other threads than the pool's goes to threads that do nothing else
//!   ([`Workspace::spread`]): the pool's may all be waiting for just these threads, and so may those of
//!   rayon's global pool.
//!
//! A workspace without a session computes wherever its callers are.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::Workspace;
use crate::Error;
use crate::Result;
use crate::accelerator::TaskAccelerator;
use crate::budget::{Account, Minimum, Opening, Turn};
use spillproof_kernels::parallel::Parallel;

thread_local! {
    /// The workers whose turn this thread holds without leaving for their pool.
    static HOLDS_TURN_OF: Cell<*const Workers> = const { Cell::new(std::ptr::null()) };
}

/// Threads, and whose turn it is.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    /// None without a session.
    pool: Option<ThreadPool>,
    /// Made when a thread outside of the pool first has much to hash or to convert.
    helpers: OnceLock<ThreadPool>,
    turn: Mutex<()>,
}

impl Workers {
    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this thread is one of those that stages run on.
    fn are_here(&self) -> bool {
        match &self.pool {
            Some(pool) => pool.current_thread_index().is_some(),
            None => rayon::current_thread_index().is_some(),
        }
    }

    fn helpers(&self) -> Result<&ThreadPool> {
        if let Some(helpers) = self.helpers.get() {
            return Ok(helpers);
        }
        let threads = self.pool.as_ref().map_or(0, ThreadPool::current_num_threads);
        let helpers = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("spillproof-helper-{i}"))
            .build()
            .map_err(no_threads)?;
        Ok(self.helpers.get_or_init(|| helpers))
    }
}

fn no_threads(error: ThreadPoolBuildError) -> Error {
    Error::Threads {
        source: std::io::Error::other(error),
    }
}

/// Work that is called once.
type Work<'w> = dyn FnMut() + Send + 'w;

/// What `work` gives, when `by` has called it: what changes threads is generic over nothing, and so compiled
/// in this crate.
fn called<T: Send>(work: impl FnOnce() -> T + Send, by: impl FnOnce(&mut Work<'_>)) -> T {
    let mut work = Some(work);
    let mut given = None;
    by(&mut || given = work.take().map(|work| work()));
    match given {
        Some(given) => given,
        None => unreachable!("work is called"),
    }
}

/// Runs `work` where a wait takes on no other work: a rayon worker's own thread would.
fn off_other_pools(work: &mut Work<'_>) {
    if rayon::current_thread_index().is_none() {
        return work();
    }
    let work = Mutex::new(work);
    let run = || (work.lock().unwrap_or_else(PoisonError::into_inner))();
    std::thread::scope(|scope| {
        match std::thread::Builder::new().spawn_scoped(scope, run) {
            Ok(thread) => thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // The system gives no thread: it is done here, where a wait may take on other work.
            Err(_) => run(),
        }
    });
}

/// Says, when it is dropped, whose turn the thread held before.
struct Held(*const Workers);

impl Drop for Held {
    fn drop(&mut self) {
        HOLDS_TURN_OF.set(self.0);
    }
}

impl Workspace {
    /// With `threads` of its own (0: one for each core), on which stages take turns.
    ///
    /// # Errors
    /// [`Error::Threads`] if they cannot be started.
    pub(crate) fn with_pool(mut self, threads: usize) -> Result<Self> {
        let budget = self.budget.clone();
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("spillproof-{i}"))
            .start_handler(move |_| budget.adopt_thread())
            .build()
            .map_err(no_threads)?;
        self.workers = Arc::new(Workers {
            pool: Some(pool),
            ..Workers::default()
        });
        Ok(self)
    }

    /// Number of compute threads.
    pub fn threads(&self) -> usize {
        match &self.workers.pool {
            Some(pool) => pool.current_num_threads(),
            None => rayon::current_num_threads(),
        }
    }

    /// Runs a stage on the session's threads when its turn comes: it may plan with all that the budget has
    /// left. On one of these threads it runs at once. Every public function that computes with columns does
    /// this itself.
    ///
    /// # Errors
    /// Those of `work`; [`Error::Forked`].
    pub fn run<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        self.budget.check_process()?;
        self.in_turn(work)
    }

    /// As [`Self::run`]; in a process that was forked off, where the caller is.
    pub(crate) fn in_turn<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        called(work, |work| self.call_in_turn(work))
    }

    fn call_in_turn(&self, work: &mut Work<'_>) {
        if self.budget.check_process().is_err() {
            return work();
        }
        let Some(pool) = self.workers.pool.as_ref().filter(|_| !self.workers.are_here()) else {
            return work();
        };
        let holds_turn = self.holds_turn();
        let (account, task_accelerator) = (self.budget.entered(), TaskAccelerator::of_this_thread());
        off_other_pools(&mut || {
            let _turn = (!holds_turn).then(|| self.begin_turn(account));
            pool.install(|| {
                let _task_accelerator = task_accelerator.as_ref().map(TaskAccelerator::enter);
                work();
            });
        });
    }

    /// As [`Self::run`], on the caller's thread, for work that cannot leave it: it plans with the budget and
    /// writes columns as values come.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_here<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.budget.check_process()?;
        if self.workers.pool.is_none() || self.workers.are_here() || self.holds_turn() {
            return work();
        }
        let _turn = self.begin_turn(self.budget.entered());
        let _held = Held(HOLDS_TURN_OF.replace(Arc::as_ptr(&self.workers)));
        work()
    }

    /// Waits for the turn. It ends on the ledger before another caller can have it: what is first in the pair
    /// is dropped first.
    fn begin_turn(&self, account: Option<u64>) -> (Turn<'_>, MutexGuard<'_, ()>) {
        let turn = self.workers.turn();
        (self.budget.begin_turn(account), turn)
    }

    fn holds_turn(&self) -> bool {
        std::ptr::eq(HOLDS_TURN_OF.get(), Arc::as_ptr(&self.workers))
    }

    /// Runs `work`, which waits for no stage, where its parallel parts find threads, whatever those of the
    /// pool wait for.
    ///
    /// # Errors
    /// [`Error::Forked`], [`Error::Threads`].
    pub fn spread<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        self.budget.check_process()?;
        if self.workers.are_here() {
            return Ok(work());
        }
        let helpers = self.workers.helpers()?;
        Ok(called(work, |work| {
            off_other_pools(&mut || helpers.install(&mut *work))
        }))
    }

    /// Calls `work` for pieces of `values`, each of at most `piece` of them, on all threads.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn in_pieces<T: Send>(
        &self,
        values: &mut [T],
        piece: usize,
        work: impl Fn(&mut [T]) + Sync,
    ) -> Result<()> {
        self.spread(|| values.chunks_mut(piece.max(1)).parallel().for_each(&work))
    }

    /// An account of the budget for a task, when there is room for its minimum beside those of the others. A
    /// thread that is inside of a task already does not wait: the room could be its own.
    ///
    /// # Errors
    /// [`Error::NestedTask`], [`Error::Forked`], [`Error::Threads`].
    pub(crate) fn admit(&self, minimum: Minimum) -> Result<Account> {
        self.budget.check_process()?;
        let queued = self.budget.queue(minimum);
        loop {
            let opening = {
                let _turn = self.workers.turn();
                queued.try_open()
            };
            match opening {
                Opening::Opened(account) => return Ok(account),
                Opening::MinimaUnknown => self.spread(|| queued.learn_minima())?,
                Opening::NoRoom(_) if self.budget.has_entered() => {
                    return Err(Error::NestedTask {
                        limit_bytes: self.budget.limit_bytes(),
                    });
                }
                Opening::NoRoom(changes) => queued.wait(changes),
            }
        }
    }
}
