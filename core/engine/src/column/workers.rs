//! Where a workspace computes: on the threads of its session, one stage at a time.
//!
//! A stage plans with all that the budget has left, so [`Workspace::run`] lets one caller in after the other.
//! Whoever waits there, waits for stages only, and a stage waits for no other: a stage asks for no turn (from
//! the pool's threads work runs at once), and what a thread outside of the pool does meanwhile, such as that
//! of an accelerator, never needs the pool. A stage that calls into another session, and back from there, is
//! known by the turns that its threads hold ([`turns_held`]), and does not wait for its own. So:
//!
//! - a caller that is a worker of some other rayon pool takes on no other work of that pool while it waits:
//!   that could be the next caller;
//! - what is hashed or converted on other threads than the pool's goes to threads that do nothing else
//!   ([`Workspace::spread`]): the pool's may all be waiting for just these threads, and so may those of
//!   rayon's global pool.
//!
//! A workspace without a session computes wherever its callers are.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::Workspace;
use super::line::Line;
use crate::Error;
use crate::Result;
use crate::accelerator::TaskAccelerator;
use crate::budget::{Account, Minimum, Opening, Turn};
use crate::control::{self, Control};
use spillproof_kernels::parallel::Parallel;

/// The numbers of workers, each of which has given its turn to the work of a thread, or to a caller of it.
type Turns = Vec<u64>;

thread_local! {
    /// The turns that this thread holds without leaving for a pool.
    static HELD_HERE: RefCell<Turns> = const { RefCell::new(Vec::new()) };
    /// The turns that the work of this thread's pool holds; none for a thread of no session's pool.
    static HELD_BY_POOL: RefCell<Option<Arc<Mutex<Turns>>>> = const { RefCell::new(None) };
    /// The workspaces of the tasks that this thread is inside of, the innermost last.
    static TASKS: RefCell<Vec<Workspace>> = const { RefCell::new(Vec::new()) };
}

/// The turns that the work of this thread holds: it must not wait for them.
fn turns_held() -> Turns {
    let mut held = HELD_HERE.with_borrow(Turns::clone);
    HELD_BY_POOL.with_borrow(|of_pool| {
        if let Some(of_pool) = of_pool {
            held.extend(locked(of_pool).iter());
        }
    });
    held
}

fn locked(turns: &Mutex<Turns>) -> MutexGuard<'_, Turns> {
    turns.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While it lives, handles that belong to other workspaces are used in this thread's task
/// ([`Workspace::of_task`]).
#[must_use = "the thread leaves the task when this is dropped"]
#[derive(Debug)]
pub(crate) struct InTask {
    /// It is the thread's, on which guards are dropped in reverse.
    _not_send: PhantomData<*const ()>,
}

impl Drop for InTask {
    fn drop(&mut self) {
        let workspace = TASKS.with_borrow_mut(Vec::pop);
        drop(workspace);
    }
}

/// Threads, and whose turn it is.
#[derive(Debug)]
pub(crate) struct Workers {
    /// Not used again by others.
    id: u64,
    /// None without a session.
    pool: Option<ThreadPool>,
    /// The turns that the work of the pool holds, that of these workers included.
    held_by_pool: Arc<Mutex<Turns>>,
    /// Made when a thread outside of the pool first has much to hash or to convert.
    helpers: OnceLock<ThreadPool>,
    /// The turns that callers of the helpers hold, of all of them together, and that of these workers.
    held_by_helpers: Arc<Mutex<Turns>>,
    line: Line,
}

impl Default for Workers {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Relaxed);
        Self {
            id,
            pool: None,
            held_by_pool: Arc::default(),
            helpers: OnceLock::new(),
            held_by_helpers: Arc::new(Mutex::new(vec![id])),
            line: Line::default(),
        }
    }
}

impl Workers {
    /// Whether this thread is one of those that stages run on, or of the helpers, which wait for no stage.
    fn are_here(&self) -> bool {
        let is_one_of = |pool: &ThreadPool| pool.current_thread_index().is_some();
        match &self.pool {
            Some(pool) => is_one_of(pool) || self.helpers.get().is_some_and(is_one_of),
            None => rayon::current_thread_index().is_some(),
        }
    }

    /// Says, until the guard goes, which turns the work of the pool holds.
    fn pool_holds(&self, turns: Turns) -> PoolHolds<'_> {
        let before = std::mem::replace(&mut *locked(&self.held_by_pool), turns);
        PoolHolds {
            workers: self,
            before,
        }
    }

    /// Says, until the guard goes, that a caller of the helpers holds these turns.
    fn helpers_hold(&self, turns: Turns) -> HelpersHold<'_> {
        locked(&self.held_by_helpers).extend(&turns);
        HelpersHold { workers: self, turns }
    }

    fn helpers(&self) -> Result<&ThreadPool> {
        if let Some(helpers) = self.helpers.get() {
            return Ok(helpers);
        }
        let threads = self.pool.as_ref().map_or(0, ThreadPool::current_num_threads);
        let held_by_helpers = Arc::clone(&self.held_by_helpers);
        let helpers = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("spillproof-helper-{i}"))
            .start_handler(move |_| HELD_BY_POOL.set(Some(Arc::clone(&held_by_helpers))))
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
///
/// # Errors
/// Those of `by`, which then has not called it.
fn called<T: Send>(
    work: impl FnOnce() -> T + Send,
    by: impl FnOnce(&mut Work<'_>) -> Result<()>,
) -> Result<T> {
    let mut work = Some(work);
    let mut given = None;
    by(&mut || given = work.take().map(|work| work()))?;
    match given {
        Some(given) => Ok(given),
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

/// Until it is dropped, this thread holds a turn.
struct Held;

impl Held {
    fn turn_of(workers: &Workers) -> Self {
        HELD_HERE.with_borrow_mut(|held| held.push(workers.id));
        Self
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD_HERE.with_borrow_mut(Turns::pop);
    }
}

/// Until it is dropped, the work of a pool holds turns.
struct PoolHolds<'w> {
    workers: &'w Workers,
    before: Turns,
}

impl Drop for PoolHolds<'_> {
    fn drop(&mut self) {
        *locked(&self.workers.held_by_pool) = std::mem::take(&mut self.before);
    }
}

/// Until it is dropped, a caller of the helpers holds turns.
struct HelpersHold<'w> {
    workers: &'w Workers,
    turns: Turns,
}

impl Drop for HelpersHold<'_> {
    fn drop(&mut self) {
        let mut held = locked(&self.workers.held_by_helpers);
        for turn in &self.turns {
            if let Some(at) = held.iter().rposition(|held| held == turn) {
                held.swap_remove(at);
            }
        }
    }
}

impl Workspace {
    /// With `threads` of its own (0: one for each core), on which stages take turns.
    ///
    /// # Errors
    /// [`Error::Threads`] if they cannot be started.
    pub(crate) fn with_pool(mut self, threads: usize) -> Result<Self> {
        let (budget, mut workers) = (self.budget.clone(), Workers::default());
        let held_by_pool = Arc::clone(&workers.held_by_pool);
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("spillproof-{i}"))
            .start_handler(move |_| {
                budget.adopt_thread();
                HELD_BY_POOL.set(Some(Arc::clone(&held_by_pool)));
            })
            .build()
            .map_err(no_threads)?;
        workers.pool = Some(pool);
        self.workers = Arc::new(workers);
        Ok(self)
    }

    /// Makes the workspace that of this thread's task, until the guard is dropped.
    pub(crate) fn enter_task(&self) -> InTask {
        TASKS.with_borrow_mut(|tasks| tasks.push(self.clone()));
        InTask {
            _not_send: PhantomData,
        }
    }

    /// The workspace of the task that this thread is inside of, else this one. What a task leases is on its
    /// own session's budget, as its admission counted it, whichever session made its keys and parameters.
    #[must_use]
    pub fn of_task(&self) -> Self {
        let of_task = match self.is_dry() {
            true => None,
            false => TASKS.with_borrow(|tasks| tasks.last().cloned()),
        };
        of_task.unwrap_or_else(|| self.clone())
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
    /// Those of `work`; [`Error::Forked`], [`Error::Stopped`].
    pub fn run<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        self.budget.check_process()?;
        control::check()?;
        let control = Control::of_this_thread();
        called(work, |work| self.call_in_turn(control.as_ref(), work))?
    }

    /// As [`Self::run`]; in a process that was forked off, where the caller is.
    pub(crate) fn in_turn<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match called(work, |work| self.call_in_turn(None, work)) {
            Ok(given) => given,
            Err(_) => unreachable!("no one stops the wait for its turn"),
        }
    }

    /// Calls `work`, unless `control` is stopped while it waits for its turn.
    fn call_in_turn(&self, control: Option<&Control>, work: &mut Work<'_>) -> Result<()> {
        if self.budget.check_process().is_err() {
            work();
            return Ok(());
        }
        let Some(pool) = self.workers.pool.as_ref().filter(|_| !self.workers.are_here()) else {
            let _account = self.turn_of_entered_task();
            work();
            return Ok(());
        };
        let mut turns = turns_held();
        let holds_turn = turns.contains(&self.workers.id);
        if holds_turn && !self.holds_turn_here() {
            // A stage of this pool waits for the caller, through another session's pool: all threads of this
            // pool may do so.
            work();
            return Ok(());
        }
        if !holds_turn {
            turns.push(self.workers.id);
        }
        let (account, task_accelerator) = (self.budget.entered(), TaskAccelerator::of_this_thread());
        let controlled = Control::of_this_thread();
        let mut came = Ok(());
        off_other_pools(&mut || {
            let turn = (!holds_turn).then(|| self.workers.line.turn(control));
            let _turn = match turn.transpose() {
                Ok(turn) => turn,
                Err(stopped) => {
                    came = Err(stopped);
                    return;
                }
            };
            let _account = self.budget.begin_turn(account);
            let _holds = self.workers.pool_holds(turns.clone());
            pool.install(|| {
                let _controlled = controlled.as_ref().map(Control::enter);
                let _task_accelerator = task_accelerator.as_ref().map(TaskAccelerator::enter);
                work();
            });
        });
        came
    }

    /// For a stage that begins on a thread of the pool: if that thread has entered a task of its own, the
    /// other threads of the pool work for this task until the guard goes.
    fn turn_of_entered_task(&self) -> Option<Turn<'_>> {
        self.workers.pool.as_ref()?;
        let account = self.budget.entered()?;
        Some(self.budget.begin_turn(Some(account)))
    }

    /// As [`Self::run`], on the caller's thread, for work that cannot leave it: it plans with the budget and
    /// writes columns as values come.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_here<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.budget.check_process()?;
        control::check()?;
        if self.workers.pool.is_none() || self.is_in_turn() {
            let _account = self.turn_of_entered_task();
            return work();
        }
        let _turn = self.workers.line.turn(Control::of_this_thread().as_ref())?;
        let _account = self.budget.begin_turn(self.budget.entered());
        let _held = Held::turn_of(&self.workers);
        work()
    }

    fn holds_turn_here(&self) -> bool {
        HELD_HERE.with_borrow(|held| held.contains(&self.workers.id))
    }

    /// Whether the turn is that of this thread's work, so that waiting for it would never end.
    fn is_in_turn(&self) -> bool {
        self.workers.are_here() || turns_held().contains(&self.workers.id)
    }

    /// Runs `work` where its parallel parts find threads, whatever those of the pool wait for. A stage that
    /// begins in it does not wait for its turn.
    ///
    /// # Errors
    /// [`Error::Forked`], [`Error::Threads`].
    pub fn spread<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        self.budget.check_process()?;
        let turns = turns_held();
        // A caller of another session's pool may be what all helpers wait for.
        let waited_for = turns.contains(&self.workers.id) && !self.holds_turn_here();
        if self.workers.are_here() || waited_for {
            return Ok(work());
        }
        let helpers = self.workers.helpers()?;
        let _holds = self.workers.helpers_hold(turns);
        called(work, |work| {
            off_other_pools(&mut || helpers.install(&mut *work));
            Ok(())
        })
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
    /// thread that is inside of a task, or of a stage, does not wait: the room could be its own, or that of a
    /// task that waits for its turn.
    ///
    /// # Errors
    /// [`Error::NestedTask`], [`Error::Forked`], [`Error::Threads`], [`Error::Stopped`].
    pub(crate) fn admit(&self, minimum: Minimum) -> Result<Account> {
        self.budget.check_process()?;
        let is_in_turn = self.workers.pool.is_some() && self.is_in_turn();
        let queued = self.budget.queue(minimum);
        let control = Control::of_this_thread();
        loop {
            control::check()?;
            let opening = {
                let turn = (!is_in_turn).then(|| self.workers.line.turn(control.as_ref()));
                let _turn = turn.transpose()?;
                queued.try_open(is_in_turn)
            };
            match opening {
                Opening::Opened(account) => return Ok(account),
                Opening::MinimaUnknown => self.spread(|| queued.learn_minima())?,
                Opening::NoRoom(_) if is_in_turn || self.budget.has_entered() => {
                    return Err(Error::NestedTask {
                        limit_bytes: self.budget.limit_bytes(),
                    });
                }
                Opening::NoRoom(changes) => queued.wait(changes)?,
            }
        }
    }
}
