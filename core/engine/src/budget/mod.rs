//! One ledger in bytes. Whoever wants a large piece of memory takes a [`Lease`] on it first, by name; the
//! ledger refuses what would go over the limit, and says who holds the rest. Nothing falls back to "just hold
//! it in memory".
//!
//! What flows in: a limit ([`Budget::new`], or [`ByteSize`] from a user). What flows out: leases, and memory
//! that carries its lease inside: [`Buffer`] (aligned bytes for I/O), [`LeasedVec`] (typed tiles). Both live
//! in anonymous maps of their own, not in the heap: what they take is exact. What they give back is kept for
//! the next of them, but never more of it than makes up for the most that leases took.
//!
//! What is slow to make may be kept between two uses until its memory is needed: [`Spares`]. Several tasks
//! share a ledger by way of [`Account`]s.
//!
//! A lease counts what the kernel would charge: whole pages, and page cache where a map is planned. The few
//! bytes that the program holds besides (queues, names, threads) are watched by [`CountingAlloc`], not
//! leased. [`Limit`] is the budget that a limit on the whole process leaves.
//!
//! Architecture invariant: this room knows no files and no fields.

mod account;
mod alloc;
mod beside;
mod buffer;
mod entropy;
mod heap;
mod idle;
mod leased_vec;
mod lent;
mod limit;
mod pages;
pub mod process;
mod secret;
mod size;
mod spare;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

pub use account::{Account, Entered, Minimum};
pub(crate) use account::{Opening, Turn};
pub use alloc::CountingAlloc;
pub use buffer::Buffer;
pub use entropy::random_bytes;
pub use heap::return_freed_blocks;
pub use leased_vec::LeasedVec;
pub use lent::{Lendable, Lender, Lent};
pub use limit::Limit;
pub use pages::PAGE_BYTES;
pub(crate) use secret::{KEY_BYTES, SecretKey, aes, wipe};
pub use size::{ByteSize, IntoByteSize, ParseSizeError, format_bytes, parse_size};
pub use spare::Spares;

use crate::control;
use crate::error::{Error, Result};
use account::Accounts;
use idle::Idle;
use pages::Pages;
use spare::Keeper;

/// The ledger: a limit in bytes, and who holds how much of it. Clones share one ledger.
///
/// ```
/// use spillproof_engine::budget::Budget;
///
/// let budget = Budget::new(1 << 20);
/// let tile = budget.lease(768 << 10, "tile")?;
/// assert!(budget.lease(512 << 10, "window").is_err());
/// drop(tile);
/// assert!(budget.lease(512 << 10, "window").is_ok());
/// assert_eq!(budget.peak_bytes(), 768 << 10);
/// # Ok::<(), spillproof_engine::Error>(())
/// ```
#[derive(Clone)]
pub struct Budget {
    ledger: Arc<Ledger>,
}

struct Ledger {
    id: u64,
    limit_bytes: u64,
    reserve: Reserve,
    /// The process that made it; none for a dry run, which has no memory and no threads.
    process: Option<u32>,
    state: Mutex<State>,
    /// Serialises reclaiming spare memory: the next lease waits until the first one has its room.
    asking: Mutex<()>,
    /// Tells tasks that wait for their accounts of a change.
    room: Condvar,
    /// How many leases were asked for, and which one a test refuses.
    leases: AtomicU64,
    refused_lease: AtomicU64,
}

#[derive(Default)]
struct State {
    /// All of it.
    held_bytes: u64,
    /// Part of that.
    spare_bytes: u64,
    keepers: Vec<Weak<dyn Keeper>>,
    /// Beside what is held.
    idle: Idle,
    peak_bytes: u64,
    holders: BTreeMap<Cow<'static, str>, Holder>,
    accounts: Accounts,
}

#[derive(Clone, Copy, Default)]
struct Holder {
    held_bytes: u64,
    peak_bytes: u64,
}

/// What columns that may be in memory or on disk leave free. Without a reserve (0) they are in memory if they
/// are a small part of what is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reserve {
    /// Columns of [`Placement::Auto`](crate::column::Placement::Auto).
    pub column_bytes: u64,
    /// Columns of [`Placement::Passing`](crate::column::Placement::Passing).
    pub passing_bytes: u64,
}

impl Reserve {
    /// The same for both.
    pub fn of(bytes: u64) -> Self {
        Self {
            column_bytes: bytes,
            passing_bytes: bytes,
        }
    }

    fn max(self, other: Self) -> Self {
        Self {
            column_bytes: self.column_bytes.max(other.column_bytes),
            passing_bytes: self.passing_bytes.max(other.passing_bytes),
        }
    }
}

/// What one name holds and held at most, all leases of that name together.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LeaseReport {
    /// The name given to [`Budget::lease`].
    pub what: String,
    /// Bytes held now.
    pub held_bytes: u64,
    /// The most bytes held at one time.
    pub peak_bytes: u64,
}

impl Budget {
    /// A ledger of `limit_bytes`.
    pub fn new(limit_bytes: u64) -> Self {
        Self::of_process(limit_bytes, Reserve::default(), Some(std::process::id()))
    }

    /// As [`Self::new`], for a dry run: columns that may be in memory or on disk leave the reserve free.
    pub(crate) fn with_reserve(limit_bytes: u64, reserve: Reserve) -> Self {
        Self::of_process(limit_bytes, reserve, None)
    }

    fn of_process(limit_bytes: u64, reserve: Reserve, process: Option<u32>) -> Self {
        Self {
            ledger: Arc::new(Ledger {
                id: account::next_id(),
                limit_bytes,
                reserve,
                process,
                state: Mutex::default(),
                asking: Mutex::default(),
                room: Condvar::new(),
                leases: AtomicU64::new(0),
                refused_lease: AtomicU64::new(u64::MAX),
            }),
        }
    }

    /// A ledger of the size that a user asked for; `auto` looks at the machine.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `auto` finds neither a cgroup limit nor the available memory.
    pub fn with_size(size: ByteSize) -> Result<Self> {
        Ok(Self::new(size.resolve()?))
    }

    /// A ledger that counts and never refuses.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// How many leases were asked for so far.
    pub fn leases(&self) -> u64 {
        self.ledger.leases.load(Relaxed)
    }

    /// For tests: lease `index`, counted from the first, is refused as if there were no room.
    pub fn refuse_lease(&self, index: u64) {
        self.ledger.refused_lease.store(index, Relaxed);
    }

    /// Takes `bytes` of the budget for ordinary heap memory, until the lease is dropped.
    ///
    /// # Errors
    /// [`Error::OverBudget`] if the limit would be passed; it names the holders, largest first.
    pub fn lease(&self, bytes: u64, what: impl Into<Cow<'static, str>>) -> Result<Lease> {
        self.take(bytes, what.into(), Backing::Heap)
    }

    /// Takes `bytes` of the budget for memory that does not come from the allocator: maps of files, page
    /// cache.
    ///
    /// # Errors
    /// As [`Budget::lease`].
    pub fn lease_map(&self, bytes: u64, what: impl Into<Cow<'static, str>>) -> Result<Lease> {
        self.take(bytes, what.into(), Backing::Map)
    }

    /// A buffer of `bytes`, rounded up to whole pages, zeroed and touched, with its lease inside.
    ///
    /// # Errors
    /// [`Error::OverBudget`]; [`Error::Memory`] if the system has no pages.
    pub fn buffer(&self, bytes: usize, what: impl Into<Cow<'static, str>>) -> Result<Buffer> {
        Buffer::new(self, bytes, what.into(), true)
    }

    /// As [`Self::buffer`], of any content: for a caller that writes every byte before it reads it.
    ///
    /// # Errors
    /// As [`Self::buffer`].
    pub fn buffer_to_fill(&self, bytes: usize, what: impl Into<Cow<'static, str>>) -> Result<Buffer> {
        Buffer::new(self, bytes, what.into(), false)
    }

    /// `len` values, all equal to `fill`, page-aligned, with their lease inside.
    ///
    /// # Errors
    /// As [`Budget::buffer`]; [`Error::Invalid`] if `len` elements do not fit the address space.
    pub fn vec<T: Copy + Send + Sync>(
        &self,
        len: usize,
        fill: T,
        what: impl Into<Cow<'static, str>>,
    ) -> Result<LeasedVec<T>> {
        LeasedVec::new(self, len, fill, what.into())
    }

    /// The limit, less what the task that asks leaves unused; where several tasks share the budget, its
    /// share.
    pub fn limit_bytes(&self) -> u64 {
        let state = self.ledger.state();
        let holder = state.accounts.holder(self.ledger.id);
        let limit_bytes = self.ledger.limit_bytes.min(state.accounts.share_bytes(holder));
        limit_bytes.saturating_sub(state.accounts.unused_bytes(holder))
    }

    /// What is held now, without what is [spare](Self::spare_bytes): the limit less this is what is left.
    pub fn held_bytes(&self) -> u64 {
        self.ledger.state().wanted_bytes()
    }

    /// What is held besides, and given back as soon as its memory is needed: see [`Spares`].
    pub fn spare_bytes(&self) -> u64 {
        self.ledger.state().spare_bytes
    }

    /// The most that was held at one time, what was spare included.
    pub fn peak_bytes(&self) -> u64 {
        self.ledger.state().peak_bytes
    }

    /// Counts the peak anew, from what is held now.
    pub fn restart_peak(&self) {
        let mut state = self.ledger.state();
        state.peak_bytes = state.held_bytes;
        let given_up = state.idle.trim(0);
        drop(state);
        drop(given_up);
    }

    /// What is left for the task that asks, what is spare included.
    pub fn available_bytes(&self) -> u64 {
        self.ledger.available_bytes(&self.ledger.state())
    }

    /// Refuses a process that was forked from the one that made the ledger: the threads that would do the
    /// work are not in it, and a lock may be held by one of them for good.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub(crate) fn check_process(&self) -> Result<()> {
        match self.ledger.process {
            Some(maker) if maker != std::process::id() => Err(Error::Forked { maker }),
            _ => Ok(()),
        }
    }

    /// Per name what is and was held, by peak, largest first.
    pub fn report(&self) -> Vec<LeaseReport> {
        let mut report = self.ledger.state().report();
        report.sort_by_key(|line| std::cmp::Reverse(line.peak_bytes));
        report
    }

    fn take(&self, bytes: u64, what: Cow<'static, str>, backing: Backing) -> Result<Lease> {
        self.take_with_idle(bytes, what, backing).map(|(lease, _)| lease)
    }

    /// A lease, and for pages the idle ones that it may have.
    fn take_with_idle(
        &self,
        bytes: u64,
        what: Cow<'static, str>,
        backing: Backing,
    ) -> Result<(Lease, Option<Pages>)> {
        self.check_process()?;
        control::check()?;
        if self.ledger.leases.fetch_add(1, Relaxed) == self.ledger.refused_lease.load(Relaxed) {
            return Err(self.ledger.refusal(bytes, what));
        }
        let Taken { account, idle } = match self.ledger.try_take(bytes, &what, backing) {
            Some(taken) => taken,
            None => self.take_spare(bytes, &what, backing)?,
        };
        if backing == Backing::Heap {
            alloc::heap_leased(bytes);
        }
        let lease = Lease {
            ledger: self.ledger.clone(),
            what,
            bytes,
            backing,
            account,
            spare: false,
        };
        Ok((lease, idle))
    }

    /// As [`Ledger::try_take`], where spare memory goes first: no lease is refused while there is any.
    // The name is kept, and a clone of most is no allocation.
    #[allow(clippy::ptr_arg)]
    fn take_spare(&self, bytes: u64, what: &Cow<'static, str>, backing: Backing) -> Result<Taken> {
        let _in_turn = self.ledger.asking.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(taken) = self.ledger.try_take(bytes, what, backing) {
                return Ok(taken);
            }
            if !self.give_back_one() {
                return Err(self.ledger.refusal(bytes, what.clone()));
            }
        }
    }

    /// Gives up some spare memory; `false` if there is none.
    fn give_back_one(&self) -> bool {
        let keepers: Vec<_> = {
            let mut state = self.ledger.state();
            state.keepers.retain(|keeper| keeper.strong_count() > 0);
            state.keepers.iter().filter_map(Weak::upgrade).collect()
        };
        keepers.iter().any(|keeper| keeper.give_back_one(&self.ledger))
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("limit_bytes", &self.limit_bytes())
            .field("held_bytes", &self.held_bytes())
            .field("peak_bytes", &self.peak_bytes())
            .finish()
    }
}

impl Ledger {
    /// The state; a panic of another thread cannot leave it half changed, so poison is no matter.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn available_bytes(&self, state: &State) -> u64 {
        let holder = state.accounts.holder(self.id);
        let left_bytes = self.limit_bytes - state.wanted_bytes();
        left_bytes
            .saturating_sub(state.accounts.reserved_bytes(holder))
            .saturating_sub(state.accounts.unused_bytes(holder))
            .min(state.accounts.left_bytes(holder))
    }

    /// Takes `bytes`, if they are free.
    #[allow(clippy::ptr_arg)]
    fn try_take(&self, bytes: u64, what: &Cow<'static, str>, backing: Backing) -> Option<Taken> {
        let mut state = self.state();
        let held_bytes = state.held_bytes.checked_add(bytes);
        let held_bytes = held_bytes.filter(|&held_bytes| held_bytes <= self.limit_bytes)?;
        if bytes > self.available_bytes(&state) {
            return None;
        }
        let account = state.accounts.holder(self.id).charged;
        state.accounts.take(account, bytes);
        state.held_bytes = held_bytes;
        state.peak_bytes = state.peak_bytes.max(held_bytes);
        let holder = state.holders.entry(what.clone()).or_default();
        holder.held_bytes += bytes;
        holder.peak_bytes = holder.peak_bytes.max(holder.held_bytes);
        let idle = match backing {
            Backing::Pages => state.idle.take(bytes as usize),
            Backing::Heap | Backing::Map => None,
        };
        let room_bytes = Idle::room(held_bytes, state.peak_bytes, self.limit_bytes);
        let given_up = state.idle.trim(room_bytes);
        drop(state);
        // Before the lease is used, and outside of the lock.
        drop(given_up);
        Some(Taken { account, idle })
    }

    /// Pages of a lease that is given back next.
    fn leave(&self, pages: Pages, lease: &Lease) {
        let mut state = self.state();
        let held_bytes = state.held_bytes - lease.bytes;
        let room_bytes = Idle::room(held_bytes, state.peak_bytes, self.limit_bytes);
        state.idle.keep(pages);
        let given_up = state.idle.trim(room_bytes);
        drop(state);
        drop(given_up);
    }

    /// Wakes tasks that wait for their accounts.
    fn tell(&self, is_awaited: bool) {
        if is_awaited {
            self.room.notify_all();
        }
    }

    fn refusal(&self, asked_bytes: u64, what: Cow<'static, str>) -> Error {
        let state = self.state();
        // What is left, and is not for this task, is as good as held.
        let left_bytes = self.limit_bytes - state.wanted_bytes();
        let withheld_bytes = left_bytes - self.available_bytes(&state);
        let unused_bytes = state
            .accounts
            .unused_bytes(state.accounts.holder(self.id))
            .min(withheld_bytes);
        let mut holders = state.describe_holders();
        for (why, bytes) in [
            ("reserved for other tasks", withheld_bytes - unused_bytes),
            ("left unused by the task's plan", unused_bytes),
        ] {
            if bytes > 0 {
                holders = format!("{holders}, {why}: {}", format_bytes(bytes));
            }
        }
        Error::OverBudget {
            what: what.into_owned(),
            asked_bytes,
            held_bytes: state.held_bytes.saturating_add(withheld_bytes),
            limit_bytes: self.limit_bytes,
            holders,
        }
    }

    /// Notes who has something spare.
    fn remember(&self, keeper: &Arc<dyn Keeper>) {
        let mut state = self.state();
        let known = |known: &Weak<dyn Keeper>| std::ptr::addr_eq(known.as_ptr(), Arc::as_ptr(keeper));
        if !state.keepers.iter().any(known) {
            state.keepers.push(Arc::downgrade(keeper));
        }
    }
}

impl State {
    /// Held by those who need it.
    fn wanted_bytes(&self) -> u64 {
        self.held_bytes - self.spare_bytes
    }

    fn report(&self) -> Vec<LeaseReport> {
        self.holders
            .iter()
            .map(|(what, holder)| LeaseReport {
                what: what.to_string(),
                held_bytes: holder.held_bytes,
                peak_bytes: holder.peak_bytes,
            })
            .collect()
    }

    fn describe_holders(&self) -> String {
        const HOLDERS_NAMED_MAX: usize = 8;
        let mut held = self.report();
        held.retain(|line| line.held_bytes > 0);
        held.sort_by_key(|line| std::cmp::Reverse(line.held_bytes));
        let mut text: Vec<String> = held
            .iter()
            .take(HOLDERS_NAMED_MAX)
            .map(|line| format!("{}: {}", line.what, format_bytes(line.held_bytes)))
            .collect();
        if held.len() > HOLDERS_NAMED_MAX {
            text.push(format!("and {} more", held.len() - HOLDERS_NAMED_MAX));
        }
        if text.is_empty() {
            "none is held".into()
        } else {
            text.join(", ")
        }
    }
}

/// Where the memory under a lease comes from: decides whether [`CountingAlloc`] will see it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backing {
    Heap,
    Map,
    /// Anonymous maps of the ledger's own, which may be idle ones.
    Pages,
}

/// Bytes that were taken.
struct Taken {
    /// Whose they are.
    account: Option<u64>,
    /// Pages for them.
    idle: Option<Pages>,
}

/// The right to hold a number of bytes, given back on drop.
pub struct Lease {
    ledger: Arc<Ledger>,
    what: Cow<'static, str>,
    bytes: u64,
    backing: Backing,
    account: Option<u64>,
    spare: bool,
}

impl Lease {
    /// How many bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What for.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Gives back all but `bytes`; no effect if it is that small already.
    pub fn shrink_to(&mut self, bytes: u64) {
        let surplus_bytes = self.bytes.saturating_sub(bytes);
        self.give_back(surplus_bytes);
        self.bytes -= surplus_bytes;
    }

    fn becomes_spare(&mut self) {
        self.spare = true;
        let mut state = self.ledger.state();
        state.spare_bytes += self.bytes;
        let is_awaited = state.accounts.give_back(self.account.take(), self.bytes);
        drop(state);
        self.ledger.tell(is_awaited);
    }

    fn is_wanted_again(&mut self) {
        self.spare = false;
        let mut state = self.ledger.state();
        state.spare_bytes -= self.bytes;
        self.account = state.accounts.holder(self.ledger.id).charged;
        state.accounts.take(self.account, self.bytes);
    }

    fn give_back(&self, bytes: u64) {
        let mut state = self.ledger.state();
        debug_assert!(state.held_bytes >= bytes);
        state.held_bytes -= bytes;
        if self.spare {
            state.spare_bytes -= bytes;
        }
        if let Some(holder) = state.holders.get_mut(&self.what) {
            holder.held_bytes -= bytes;
        }
        let is_awaited = state.accounts.give_back(self.account, bytes);
        drop(state);
        self.ledger.tell(is_awaited);
        if self.backing == Backing::Heap {
            alloc::heap_returned(bytes);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("what", &self.what)
            .field("bytes", &self.bytes)
            .finish()
    }
}
