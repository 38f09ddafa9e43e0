//! Several tasks on one ledger: what each of them may take, so that every one comes to its end.
//!
//! A task (a proof, the making of keys) opens an [`Account`] before its first lease. A task that is alone may
//! take all that is left, and its minimum, the smallest budget in which it works, is not even computed. When
//! a second one comes, it waits until
//!
//! ```text
//!   needed(task)  = its minimum + what it held when it was alone
//!   sum of needed(all tasks, this one too) + what no task holds <= limit
//! ```
//!
//! Then each may take up to its share, `needed + an equal part of the rest`, and keeps no more columns in
//! memory: with all columns on disk, a task works in every budget from its minimum on. Tasks are admitted in
//! the order in which they came. Shares only change between stages: the caller holds the workspace's turn
//! when it opens an account, or is inside of the stage whose turn it is, and then does not wait: it is
//! admitted at once or refused. A task that is alone keeps columns in memory as long as so much stays free as
//! its [dry run](crate::plan::rehearse) said ([`Account::reserve`]), and leaves unused what would make its
//! stages cut their work so that a later one has too little ([`Account::leave_unused`]).
//!
//! A lease belongs to the account of its thread: the one that the thread has [entered](Account::enter), and
//! on threads of the session's pool the one whose turn it is. Leases that outlive their account, and those of
//! no account, count as held by no task.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};

use super::{Budget, Reserve, State};
use crate::control::{self, LOOK_AGAIN};
use crate::error::Result;

/// Computes the smallest budget in which a task works.
pub type Minimum = Box<dyn Fn() -> Result<u64> + Send + Sync>;

/// Where nothing says what later steps need, a column is kept in memory if it takes at most this part of what
/// is left.
const COLUMN_SHARE: u64 = 32;

thread_local! {
    /// Ledger and account that this thread has entered.
    static ENTERED: Cell<Option<(u64, u64)>> = const { Cell::new(None) };
    /// The ledger of the pool that this thread is of.
    static POOL_OF: Cell<Option<u64>> = const { Cell::new(None) };
}

/// An account's number among those of all ledgers; numbers are not used again.
pub(super) fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Relaxed)
}

/// A task's place on the ledger, until it is dropped.
#[derive(Debug)]
pub struct Account {
    budget: Budget,
    id: u64,
}

/// While it lives, leases that this thread takes are the account's.
#[must_use = "the thread leaves the account when this is dropped"]
#[derive(Debug)]
pub struct Entered {
    before: Option<(u64, u64)>,
    /// It is the thread's.
    _not_send: std::marker::PhantomData<*const ()>,
}

/// What is known of a task before it is admitted.
struct Task {
    minimum: Minimum,
    known: OnceLock<u64>,
}

/// The accounts of a ledger.
#[derive(Default)]
pub(super) struct Accounts {
    open: std::collections::BTreeMap<u64, Open>,
    /// Those that wait, in order of arrival.
    queue: std::collections::VecDeque<u64>,
    /// The account whose stage the session's pool works on.
    turn: Option<u64>,
    /// How often something happened that tasks wait for.
    changes: u64,
}

struct Open {
    task: Arc<Task>,
    held_bytes: u64,
    needed_bytes: u64,
    share_bytes: u64,
    reserve: Reserve,
    /// As if the limit were so much lower, while it is alone.
    unused_bytes: u64,
    /// Was not alone at all times.
    has_shared: bool,
    /// Began inside of a stage.
    is_in_turn: bool,
}

/// Whose a lease is, and whose reserve it may take from. They differ for threads that are of no task and no
/// pool, such as those of a device: they work for the stage whose turn it is, but what they take may be
/// anything.
#[derive(Clone, Copy)]
pub(super) struct Holder {
    pub charged: Option<u64>,
    pub entitled: Option<u64>,
}

impl Accounts {
    pub fn holder(&self, ledger: u64) -> Holder {
        let of_thread = ENTERED.get().filter(|(entered, _)| *entered == ledger);
        let of_pool = || POOL_OF.get() == Some(ledger);
        let charged = match of_thread {
            Some((_, account)) => Some(account),
            None if of_pool() => self.turn,
            None => None,
        };
        Holder {
            charged,
            entitled: charged.or(self.turn),
        }
    }

    /// What others need, and do not hold yet.
    pub fn reserved_bytes(&self, holder: Holder) -> u64 {
        let others = self.open.iter().filter(|(id, _)| Some(**id) != holder.entitled);
        others
            .map(|(_, open)| open.needed_bytes.saturating_sub(open.held_bytes))
            .sum()
    }

    /// The most that the holder may hold, and what it holds; none without an account.
    fn share(&self, holder: Holder) -> Option<&Open> {
        self.open.get(&holder.charged?)
    }

    /// What is left of the holder's share.
    pub fn left_bytes(&self, holder: Holder) -> u64 {
        self.share(holder)
            .map_or(u64::MAX, |open| open.share_bytes.saturating_sub(open.held_bytes))
    }

    /// What the holder does not use of the limit.
    pub fn unused_bytes(&self, holder: Holder) -> u64 {
        let alone = self.share(holder).filter(|open| open.share_bytes == u64::MAX);
        alone.map_or(0, |open| open.unused_bytes)
    }

    pub fn share_bytes(&self, holder: Holder) -> u64 {
        self.share(holder).map_or(u64::MAX, |open| open.share_bytes)
    }

    /// What columns that may be in memory or on disk leave free; everything, once several tasks share the
    /// budget.
    pub fn reserve(&self, holder: Holder) -> Reserve {
        let share = self.share(holder);
        share.map_or(Reserve::default(), |open| match open.has_shared {
            true => Reserve::of(u64::MAX),
            false => open.reserve,
        })
    }

    pub fn take(&mut self, account: Option<u64>, bytes: u64) {
        if let Some(open) = account.and_then(|account| self.open.get_mut(&account)) {
            open.held_bytes += bytes;
        }
    }

    /// Whether a task waits for it.
    pub fn give_back(&mut self, account: Option<u64>, bytes: u64) -> bool {
        if let Some(open) = account.and_then(|account| self.open.get_mut(&account)) {
            open.held_bytes = open.held_bytes.saturating_sub(bytes);
        }
        self.changed()
    }

    fn changed(&mut self) -> bool {
        self.changes += 1;
        !self.queue.is_empty()
    }

    fn held_bytes(&self) -> u64 {
        self.open.values().map(|open| open.held_bytes).sum()
    }

    fn needed_bytes(&self) -> u64 {
        let needed = self.open.values().map(|open| open.needed_bytes);
        needed.fold(0, u64::saturating_add)
    }

    /// What each account may take beyond what it needs.
    fn extra_bytes(&self, limit_bytes: u64, wanted_bytes: u64) -> u64 {
        let outside_bytes = wanted_bytes.saturating_sub(self.held_bytes());
        let rest_bytes = limit_bytes
            .saturating_sub(outside_bytes)
            .saturating_sub(self.needed_bytes());
        rest_bytes / self.open.len().max(1) as u64
    }

    /// The share of an account, which is about to begin a stage.
    fn deal(&mut self, account: u64, limit_bytes: u64, wanted_bytes: u64) {
        let extra_bytes = self.extra_bytes(limit_bytes, wanted_bytes);
        let is_alone = self.open.len() == 1;
        if let Some(open) = self.open.get_mut(&account) {
            open.share_bytes = match is_alone {
                true => u64::MAX,
                false => open.needed_bytes.saturating_add(extra_bytes),
            };
        }
    }

    /// Whether a task that begins inside of a stage has to be refused: another one did so, and the thread is
    /// not inside of it. The two would compute at the same time, each with all that is left.
    fn turn_is_taken(&self, entered: Option<u64>) -> bool {
        let in_turn = self.open.iter().rev().find(|(_, open)| open.is_in_turn);
        in_turn.is_some_and(|(id, _)| Some(*id) != entered)
    }

    /// Opens an account, if all can come to their ends then. `None`: a minimum is not known yet.
    fn try_open(&mut self, queued: &Queued, is_in_turn: bool, wanted_bytes: u64) -> Option<bool> {
        let (id, task) = (queued.id, &queued.task);
        let limit_bytes = queued.budget.ledger.limit_bytes;
        let mut needed_bytes = 0;
        if !self.open.is_empty() {
            needed_bytes = *task.known.get()?;
            let mut total_bytes = wanted_bytes
                .saturating_sub(self.held_bytes())
                .saturating_add(needed_bytes);
            for open in self.open.values() {
                total_bytes = total_bytes.saturating_add(open.needed_beside_others()?);
            }
            if total_bytes > limit_bytes {
                return Some(false);
            }
            for open in self.open.values_mut() {
                open.needed_bytes = open.needed_beside_others()?;
                open.has_shared = true;
            }
        }
        let open = Open {
            task: Arc::clone(task),
            held_bytes: 0,
            needed_bytes,
            share_bytes: u64::MAX,
            reserve: Reserve::default(),
            unused_bytes: 0,
            has_shared: !self.open.is_empty(),
            is_in_turn,
        };
        self.open.insert(id, open);
        let all: Vec<u64> = self.open.keys().copied().collect();
        all.into_iter()
            .for_each(|account| self.deal(account, limit_bytes, wanted_bytes));
        Some(true)
    }
}

impl Open {
    /// `None` if its minimum is not known yet.
    fn needed_beside_others(&self) -> Option<u64> {
        match self.has_shared {
            true => Some(self.needed_bytes),
            false => Some(self.held_bytes.saturating_add(*self.task.known.get()?)),
        }
    }
}

/// A task that waits for its account.
pub(crate) struct Queued {
    budget: Budget,
    id: u64,
    task: Arc<Task>,
}

/// What became of an attempt to open an account.
pub(crate) enum Opening {
    Opened(Account),
    /// The room has to come first: [`Queued::wait`]. The number of changes so far.
    NoRoom(u64),
    /// [`Queued::learn_minima`] first.
    MinimaUnknown,
}

impl Budget {
    /// Queues for an account. `minimum` is computed only if the task is not alone.
    pub(crate) fn queue(&self, minimum: Minimum) -> Queued {
        let id = next_id();
        self.ledger.state().accounts.queue.push_back(id);
        Queued {
            budget: self.clone(),
            id,
            task: Arc::new(Task {
                minimum,
                known: OnceLock::new(),
            }),
        }
    }

    /// Whether this thread has entered an account of this ledger.
    pub(crate) fn has_entered(&self) -> bool {
        ENTERED.get().is_some_and(|(ledger, _)| ledger == self.ledger.id)
    }

    /// The account that this thread has entered.
    pub(crate) fn entered(&self) -> Option<u64> {
        let (_, account) = ENTERED.get().filter(|(ledger, _)| *ledger == self.ledger.id)?;
        Some(account)
    }

    /// From now on, until the guard goes, threads of this ledger's pool work for `account`.
    pub(crate) fn begin_turn(&self, account: Option<u64>) -> Turn<'_> {
        let mut state = self.ledger.state();
        let wanted_bytes = state.wanted_bytes();
        let before = std::mem::replace(&mut state.accounts.turn, account);
        if let Some(account) = account {
            state
                .accounts
                .deal(account, self.ledger.limit_bytes, wanted_bytes);
        }
        Turn { budget: self, before }
    }

    /// Marks this thread as one of the pool that works on this ledger's stages.
    pub(crate) fn adopt_thread(&self) {
        POOL_OF.set(Some(self.ledger.id));
    }

    /// Whether a column of `bytes` that may be in memory or on disk
    /// ([`Placement::Auto`](crate::column::Placement::Auto)) is kept in memory: if it leaves the reserve for
    /// later steps, which the dry run of a task has found; without a reserve, if it is a small part of what
    /// is left.
    pub(crate) fn keeps_column(&self, bytes: u64) -> bool {
        bytes <= self.column_room_bytes()
    }

    /// The bytes of the longest column that is kept in memory.
    pub(crate) fn column_room_bytes(&self) -> u64 {
        self.room_bytes(|reserve| reserve.column_bytes)
    }

    /// The same of a column that is read once or twice
    /// ([`Placement::Passing`](crate::column::Placement::Passing)).
    pub(crate) fn keeps_passing(&self, bytes: u64) -> bool {
        bytes <= self.room_bytes(|reserve| reserve.passing_bytes)
    }

    /// The same of a column that has to be small besides
    /// ([`Placement::Small`](crate::column::Placement::Small)).
    pub(crate) fn keeps_small(&self, bytes: u64) -> bool {
        bytes <= self.available_bytes() / COLUMN_SHARE && self.keeps_column(bytes)
    }

    fn room_bytes(&self, reserve_bytes: impl FnOnce(Reserve) -> u64) -> u64 {
        let state = self.ledger.state();
        let holder = state.accounts.holder(self.ledger.id);
        let available_bytes = self.ledger.available_bytes(&state);
        match reserve_bytes(state.accounts.reserve(holder).max(self.ledger.reserve)) {
            0 => available_bytes / COLUMN_SHARE,
            reserve_bytes => available_bytes.saturating_sub(reserve_bytes),
        }
    }
}

impl Queued {
    /// Computes the minima that are not known yet, if any are needed. May take a second.
    pub fn learn_minima(&self) {
        let others: Vec<Arc<Task>> = {
            let state = self.budget.ledger.state();
            state
                .accounts
                .open
                .values()
                .map(|open| Arc::clone(&open.task))
                .collect()
        };
        if !others.is_empty() {
            others.iter().for_each(|task| task.learn());
            self.task.learn();
        }
    }

    /// Opens the account, if it is this task's turn to be admitted and there is room. Stages of other tasks
    /// must not be under way, but for the one that the caller is inside of: then `is_in_turn`, and the task
    /// passes those that wait.
    pub fn try_open(&self, is_in_turn: bool) -> Opening {
        let ledger = &self.budget.ledger;
        let entered = self.budget.entered();
        let mut state = ledger.state();
        let wanted_bytes = state.wanted_bytes();
        let State { accounts, .. } = &mut *state;
        let has_to_wait = match is_in_turn {
            true => accounts.turn_is_taken(entered),
            false => accounts.queue.front() != Some(&self.id),
        };
        if has_to_wait {
            return Opening::NoRoom(accounts.changes);
        }
        match accounts.try_open(self, is_in_turn, wanted_bytes) {
            None => Opening::MinimaUnknown,
            Some(false) => Opening::NoRoom(accounts.changes),
            Some(true) => Opening::Opened(Account {
                budget: self.budget.clone(),
                id: self.id,
            }),
        }
    }

    /// Waits until there were more changes than these; not any longer once the caller is stopped.
    ///
    /// # Errors
    /// [`crate::Error::Stopped`].
    pub fn wait(&self, changes: u64) -> Result<()> {
        let room = &self.budget.ledger.room;
        let mut state: MutexGuard<'_, State> = self.budget.ledger.state();
        while state.accounts.changes == changes {
            control::check()?;
            let woken = room.wait_timeout(state, LOOK_AGAIN);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        let mut state = self.budget.ledger.state();
        state.accounts.queue.retain(|id| *id != self.id);
        let is_awaited = state.accounts.changed();
        drop(state);
        self.budget.ledger.tell(is_awaited);
    }
}

impl Task {
    /// A minimum that cannot be computed is everything: the task has to be alone. It is computed outside of
    /// the lock: a thread of a pool may take on another task's admission meanwhile, which asks the same.
    fn learn(&self) {
        if self.known.get().is_none() {
            let minimum_bytes = (self.minimum)().unwrap_or(u64::MAX);
            self.known.get_or_init(|| minimum_bytes);
        }
    }
}

impl Account {
    /// From now on, columns that may be in memory or on disk leave at least this reserve free.
    pub(crate) fn reserve(&self, reserve: Reserve) {
        let mut state = self.budget.ledger.state();
        if let Some(open) = state.accounts.open.get_mut(&self.id) {
            open.reserve = open.reserve.max(reserve);
        }
    }

    /// From now on, while the task is alone, its stages cut their work as if the limit were lower by `bytes`.
    pub(crate) fn leave_unused(&self, bytes: u64) {
        let mut state = self.budget.ledger.state();
        if let Some(open) = state.accounts.open.get_mut(&self.id) {
            open.unused_bytes = bytes;
        }
    }

    /// Whether it was not alone at all times.
    pub(crate) fn has_shared(&self) -> bool {
        let state = self.budget.ledger.state();
        state
            .accounts
            .open
            .get(&self.id)
            .is_some_and(|open| open.has_shared)
    }

    /// Makes leases of this thread the account's.
    pub fn enter(&self) -> Entered {
        Entered {
            before: ENTERED.replace(Some((self.budget.ledger.id, self.id))),
            _not_send: std::marker::PhantomData,
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let mut state = self.budget.ledger.state();
        state.accounts.open.remove(&self.id);
        let is_awaited = state.accounts.changed();
        // A program that has its proof goes on without the proof's pages.
        let given_up = match state.accounts.open.is_empty() {
            true => state.idle.trim(0),
            false => Vec::new(),
        };
        drop(state);
        drop(given_up);
        self.budget.ledger.tell(is_awaited);
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        ENTERED.set(self.before);
    }
}

/// A stage's turn on the ledger.
#[must_use]
pub(crate) struct Turn<'a> {
    budget: &'a Budget,
    /// The account that the pool worked for before: that of the stage that this one is inside of.
    before: Option<u64>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.budget.ledger.state().accounts.turn = self.before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(budget: &Budget, minimum: u64) -> Option<Account> {
        let queued = budget.queue(Box::new(move || Ok(minimum)));
        queued.learn_minima();
        match queued.try_open(false) {
            Opening::Opened(account) => Some(account),
            Opening::NoRoom(_) => None,
            Opening::MinimaUnknown => panic!("unknown"),
        }
    }

    #[test]
    fn a_task_alone_may_take_everything_and_two_what_leaves_the_other_its_minimum() {
        let budget = Budget::new(1000);
        let keys = budget.lease(100, "keys").unwrap();
        let first = opened(&budget, 200).unwrap();
        let columns = {
            let _first = first.enter();
            assert_eq!((budget.limit_bytes(), budget.available_bytes()), (1000, 900));
            assert!(budget.keeps_column(28) && !budget.keeps_column(29));
            first.reserve(Reserve::of(500));
            assert!(budget.keeps_column(400) && !budget.keeps_column(401));
            assert!(budget.keeps_small(28) && !budget.keeps_small(29));
            let reserve = Reserve {
                column_bytes: 880,
                passing_bytes: 0,
            };
            first.reserve(reserve);
            assert!(budget.keeps_column(20) && !budget.keeps_column(21));
            assert!(budget.keeps_passing(400) && !budget.keeps_passing(401));
            budget.lease(300, "columns").unwrap()
        };
        // 100 + (300 + 200) + 401 > 1000.
        assert!(opened(&budget, 401).is_none());
        let second = opened(&budget, 300).unwrap();
        {
            // 500 and 300 are needed, and 100 are left for both.
            let _first = first.enter();
            assert!(!budget.keeps_column(1));
            assert_eq!((budget.limit_bytes(), budget.available_bytes()), (550, 250));
            let refused = budget.lease(251, "tile").unwrap_err().to_string();
            assert!(refused.contains("other tasks"), "{refused}");
        }
        {
            let _second = second.enter();
            assert_eq!(budget.available_bytes(), 350);
            let _half = budget.lease(350, "tile").unwrap();
            assert!(budget.lease(1, "tile").is_err());
            drop(_half);
        }
        // A lease outside of all tasks may take memory that no task has reserved.
        assert_eq!(budget.available_bytes(), 1000 - 400 - 200 - 300);
        // A lease that outlives its task belongs to no account.
        drop(first);
        drop(keys);
        let _second = second.enter();
        assert_eq!(budget.available_bytes(), 350);
        drop(budget.begin_turn(budget.entered()));
        assert_eq!(budget.available_bytes(), 700);
        drop(columns);
        assert_eq!(budget.available_bytes(), 1000);
        assert!(!budget.keeps_column(1));
    }

    #[test]
    fn a_task_that_leaves_a_part_unused_works_as_with_a_lower_limit_while_it_is_alone() {
        let budget = Budget::new(1000);
        let first = opened(&budget, 200).unwrap();
        let _first = first.enter();
        first.leave_unused(300);
        let _half = budget.lease(500, "tile").unwrap();
        assert_eq!((budget.limit_bytes(), budget.available_bytes()), (700, 200));
        let refused = budget.lease(201, "window").unwrap_err().to_string();
        assert!(
            refused.contains("unused") && !refused.contains("other tasks"),
            "{refused}"
        );
        let second = opened(&budget, 100).unwrap();
        assert_eq!((budget.limit_bytes(), budget.available_bytes()), (800, 300));
        drop(second);
        drop(budget.begin_turn(budget.entered()));
        assert_eq!((budget.limit_bytes(), budget.available_bytes()), (700, 200));
    }

    #[test]
    fn tasks_are_admitted_in_the_order_in_which_they_came() {
        let budget = Budget::new(100);
        let first = opened(&budget, 60).unwrap();
        let large = budget.queue(Box::new(|| Ok(80)));
        let small = budget.queue(Box::new(|| Ok(10)));
        small.learn_minima();
        large.learn_minima();
        let Opening::NoRoom(changes) = small.try_open(false) else {
            panic!("admitted before its time");
        };
        assert!(matches!(large.try_open(false), Opening::NoRoom(_)));
        drop(first);
        small.wait(changes).unwrap();
        let Opening::Opened(account) = large.try_open(false) else {
            panic!("there is room");
        };
        drop(large);
        small.learn_minima();
        assert!(matches!(small.try_open(false), Opening::Opened(_)));
        drop(account);
    }

    #[test]
    fn threads_of_the_pool_take_for_the_task_whose_turn_it_is() {
        let budget = Budget::new(1000);
        let (first, second) = (opened(&budget, 100).unwrap(), opened(&budget, 100).unwrap());
        let account = {
            let _entered = first.enter();
            budget.entered()
        };
        let _turn = budget.begin_turn(account);
        let lease = |adopted: bool| {
            let budget = &budget;
            std::thread::scope(|scope| {
                let thread = scope.spawn(move || {
                    if adopted {
                        budget.adopt_thread();
                    }
                    budget.lease(50, "tile").unwrap()
                });
                thread.join().unwrap()
            })
        };
        let left = || {
            let _entered = first.enter();
            budget.available_bytes()
        };
        let before = left();
        let of_pool = lease(true);
        assert_eq!(left(), before - 50);
        let of_nobody = lease(false);
        assert_eq!(left(), before - 50);
        drop((of_pool, of_nobody, second));
    }
}
