//! A session: one budget, one scratch directory, one pool of threads; everything that streams works inside
//! one.
//!
//! A program may hold several; at most one at a time is the process's *current* session, which is what the
//! patched prover asks for. With none, the patched prover is stock. A thread that is inside of a task
//! ([`Session::admit`]) keeps the task's session, whatever other threads install.

mod environment;
mod variables;

use std::cell::RefCell;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError, RwLock, Weak};

use crate::Error;
use crate::Result;
use crate::accelerator::{Accelerator, CountedAccelerator, TaskAccelerator, TaskAcceleratorGuard};
use crate::budget::{
    Account, Budget, ByteSize, Entered, IntoByteSize, Limit, PAGE_BYTES, ParseSizeError, random_bytes,
    return_freed_blocks,
};
use crate::checkpoint::Checkpoints;
use crate::column::{InTask, Scratch, Workspace};
use crate::error::Invalid;
use crate::storage::{Backend, FaultPlan, Storage, allows_core_dumps, raise_open_files, swap_devices};

pub use environment::{dir_of_environment, no_device, variable};
pub use variables::name_unknown_variables;

/// The variable that holds the memory budget: `2GiB`, `512M`, `auto`; empty is as if it were not set.
pub const MEMORY_VARIABLE: &str = "SPILLPROOF_MEMORY";
/// The variable that holds the limit on the whole process, which leaves a budget: `512MiB`, or `auto`, the
/// limit of the control group.
pub const LIMIT_VARIABLE: &str = "SPILLPROOF_LIMIT";
/// The variable that holds the directory for scratch files, which has to exist; the system's temporary
/// directory without it.
pub const DIR_VARIABLE: &str = "SPILLPROOF_DIR";

/// The variable that says how scratch files are written: `sealed` (the default), `plain`.
pub const SCRATCH_VARIABLE: &str = "SPILLPROOF_SCRATCH";
/// The variable that, with `1`, refuses a session whose memory the system may write to a disk: see
/// [`SessionBuilder::strict_secrets`].
pub const STRICT_SECRETS_VARIABLE: &str = "SPILLPROOF_STRICT_SECRETS";

/// The variable with which rayon's pools are given a number of threads.
const RAYON_VARIABLE: &str = "RAYON_NUM_THREADS";

/// The variable that says which devices take part: `auto`, `off` (the default), `all`, or their numbers.
pub const GPU_VARIABLE: &str = "SPILLPROOF_GPU";
/// The variable that holds the budget of each device's memory: `2GiB`, `auto`.
pub const VRAM_VARIABLE: &str = "SPILLPROOF_VRAM";
/// The variable that holds the budget of page-locked memory, through which data goes to the device: `256MiB`,
/// `auto`.
pub const PINNED_VARIABLE: &str = "SPILLPROOF_PINNED";
/// The variable that says which jobs go to the device: `measured`, `always`.
pub const OFFLOAD_VARIABLE: &str = "SPILLPROOF_OFFLOAD";

/// The most compute threads of a session: more than any machine has cores today. Thousands on a few cores
/// would spend their time in waiting for each other.
pub const THREADS_MAX: usize = 1024;

/// Opens the accelerator that the environment asks for; `None` if it asks for none, or there is none.
pub type OpenAccelerator = fn() -> Result<Option<Arc<dyn Accelerator>>>;

/// One budget, one scratch directory, one pool of threads.
pub struct Session {
    workspace: Workspace,
    accelerator: Option<Arc<CountedAccelerator>>,
    dir: PathBuf,
    limit: Option<Limit>,
    quotient_tile_rows: Option<u64>,
    checkpoints: Option<Checkpoints>,
    is_from_environment: bool,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("budget_bytes", &self.workspace.budget.limit_bytes())
            .field("dir", &self.dir)
            .field("threads", &self.threads())
            .finish()
    }
}

/// How a [`Session`] is to be made.
#[derive(Clone, Debug)]
pub struct SessionBuilder {
    memory: Result<ByteSize, ParseSizeError>,
    limit: Option<Result<ByteSize, ParseSizeError>>,
    dir: PathBuf,
    backend: Backend,
    direct: bool,
    threads: usize,
    faults: Option<FaultPlan>,
    quotient_tile_rows: Option<u64>,
    accelerator: Option<Arc<dyn Accelerator>>,
    scratch: Option<Scratch>,
    strict_secrets: bool,
    checkpoints: Option<Checkpoints>,
}

impl Session {
    /// A builder with `memory` = auto, the system's temporary directory, every core.
    pub fn builder() -> SessionBuilder {
        SessionBuilder {
            memory: Ok(ByteSize::Auto),
            limit: None,
            dir: std::env::temp_dir(),
            backend: Backend::Auto,
            direct: true,
            threads: 0,
            faults: None,
            quotient_tile_rows: None,
            accelerator: None,
            scratch: None,
            strict_secrets: false,
            checkpoints: None,
        }
    }

    /// Where columns live and what they are charged to.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The ledger.
    pub fn budget(&self) -> &Budget {
        &self.workspace.budget
    }

    /// The files.
    pub fn storage(&self) -> &Storage {
        &self.workspace.storage
    }

    /// The accelerator, if there is one.
    pub fn accelerator(&self) -> Option<&Arc<CountedAccelerator>> {
        self.accelerator.as_ref()
    }

    /// The limit on the whole process, if one was set.
    pub fn limit(&self) -> Option<&Limit> {
        self.limit.as_ref()
    }

    /// The scratch directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Number of compute threads.
    pub fn threads(&self) -> usize {
        self.workspace.threads()
    }

    /// Whether the environment's variables made it, and no call of the program.
    pub fn is_from_environment(&self) -> bool {
        self.is_from_environment
    }

    /// Whether the environment decides if this thread has a session: it is inside of no task, and no session
    /// is installed or suspended.
    pub fn is_left_to_environment() -> bool {
        let installed = installed().read().unwrap_or_else(PoisonError::into_inner);
        installed.is_empty() && PINNED.with_borrow(Vec::is_empty)
    }

    /// Where proofs keep what they need to go on after a crash, if they do.
    pub fn checkpoints(&self) -> Option<&Checkpoints> {
        self.checkpoints.as_ref()
    }

    /// The rows of a quotient's tiles, where the session's maker has said so.
    #[doc(hidden)]
    pub fn quotient_tile_rows(&self) -> Option<u64> {
        self.quotient_tile_rows
    }

    /// Runs `work` on the session's threads, after other tasks that compute there. What computes with columns
    /// goes there by itself; this is for the caller's own arithmetic, or several stages of which none may
    /// come between. A proof needs no `run` around it. Inside of one it is made at once, or refused where it
    /// would have to wait ([`Error::NestedTask`]). `work` must not wait for a thread of its own that calls
    /// this session: that thread would wait for `work`. After a fork `work` runs where it is, and what it
    /// asks of the session is refused.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let pinned = PINNED.with_borrow(|pinned| pinned.last().cloned());
        self.workspace.in_turn(move || {
            let _pinned = pinned.as_ref().map(Self::pin);
            work()
        })
    }

    /// Admits a task (a proof, the making of keys) that takes all of its memory from this session, and makes
    /// the session the thread's until the task is dropped. It waits while others run beside which the budget
    /// has no room for its `minimum_bytes`, the smallest budget in which it works; that is computed only if
    /// there are others.
    ///
    /// # Errors
    /// [`Error::NestedTask`] if it would have to wait for a task that its own thread is inside of, or inside
    /// of [`Self::run`]; [`Error::Forked`].
    pub fn admit(
        self: &Arc<Self>,
        accelerator: Participation,
        minimum_bytes: impl Fn() -> Result<u64> + Send + Sync + 'static,
    ) -> Result<Task> {
        let account = self.workspace.admit(Box::new(minimum_bytes))?;
        let accelerator = self
            .accelerator
            .clone()
            .filter(|_| accelerator == Participation::MayTakePart);
        let task_accelerator = TaskAccelerator::new(accelerator);
        Ok(Task {
            _task_accelerator: task_accelerator.enter(),
            _entered: account.enter(),
            _in_task: self.workspace.enter_task(),
            _pinned: self.pin(),
            task_accelerator,
            account,
            session: Arc::clone(self),
        })
    }

    /// Makes this the current session of this thread, until the guard is dropped, whatever is installed
    /// meanwhile.
    pub fn pin(self: &Arc<Self>) -> Pinned {
        PINNED.with_borrow_mut(|pinned| pinned.push(Arc::clone(self)));
        Pinned {
            _not_send: PhantomData,
        }
    }

    /// Makes this the process's current session until the guard is dropped, or another is installed after it.
    /// Guards may go in any order: current is what was installed last, of what is still there.
    pub fn install(self: &Arc<Self>) -> SessionGuard {
        SessionGuard::new(Some(Arc::clone(self)))
    }

    /// Lets the process have no current session until the guard is dropped, whatever the environment says.
    pub fn suspend() -> SessionGuard {
        SessionGuard::new(None)
    }

    /// The current session: that of the task that this thread is inside of; else the process's, which is the
    /// one [installed](Self::install), or none while it is [suspended](Self::suspend); else one made from
    /// [`MEMORY_VARIABLE`] and [`DIR_VARIABLE`] at the first call, else none.
    ///
    /// # Errors
    /// Those of [`SessionBuilder::build`], when the variables are set and do not make a session. It is an
    /// error if the environment asks for a budget or a device that is not available. This function opens no
    /// device.
    pub fn current() -> Result<Option<Arc<Self>>> {
        Self::current_with(no_device)
    }

    /// [`Self::current`], where `open` opens the device that [`GPU_VARIABLE`] asks for.
    ///
    /// # Errors
    /// As there, and those of `open`.
    pub fn current_with(open: OpenAccelerator) -> Result<Option<Arc<Self>>> {
        if let Some(session) = PINNED.with_borrow(|pinned| pinned.last().cloned()) {
            return Ok(Some(session));
        }
        if let Some((_, installed)) = installed().read().unwrap_or_else(PoisonError::into_inner).last() {
            return Ok(installed.clone());
        }
        static FROM_ENVIRONMENT: OnceLock<std::result::Result<Option<Arc<Session>>, Invalid>> =
            OnceLock::new();
        let made = FROM_ENVIRONMENT.get_or_init(|| {
            Self::from_environment(open).map_err(|error| match error {
                Error::Invalid(invalid) => invalid,
                other => Invalid::Environment {
                    reason: other.to_string(),
                },
            })
        });
        Ok(made.clone()?)
    }

    /// [`Self::current_with`], or else a session of nearly all memory, whose folder is that of [`DIR_VARIABLE`]. All
    /// callers share it; it goes with the last of them.
    ///
    /// # Errors
    /// As there, and those of [`dir_of_environment`].
    pub fn current_or_shared(open: OpenAccelerator) -> Result<Arc<Self>> {
        static SHARED: Mutex<Weak<Session>> = Mutex::new(Weak::new());
        if let Some(session) = Self::current_with(open)? {
            return Ok(session);
        }
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = shared.upgrade() {
            return Ok(session);
        }
        let session = Arc::new(Self::builder().dir(dir_of_environment()?).build()?);
        *shared = Arc::downgrade(&session);
        Ok(session)
    }
}

impl SessionBuilder {
    /// The budget: a [`ByteSize`], or text such as `2GiB`, `512M`, `auto`. Text that is no size is an error
    /// of [`Self::build`].
    pub fn memory(mut self, memory: impl IntoByteSize) -> Self {
        self.memory = memory.into_byte_size();
        self
    }

    /// A limit on the resident memory of the whole process, from which the budget follows ([`Limit`]): a
    /// [`ByteSize`], or text such as `512M`; `auto` is the hard limit of the process's control group. A
    /// budget that is set too ([`Self::memory`]) holds if it is the smaller one. The memory of a device's
    /// driver is not in it.
    pub fn limit(mut self, limit: impl IntoByteSize) -> Self {
        self.limit = Some(limit.into_byte_size());
        self
    }

    /// The directory for scratch files, which has to exist; preferably on NVMe.
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = dir.into();
        self
    }

    /// How files are read and written; [`Backend::Auto`] takes io_uring where the kernel lets it.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// Whether to pass the page cache by where the file system can (the default).
    pub fn direct(mut self, direct: bool) -> Self {
        self.direct = direct;
        self
    }

    /// How scratch files are written; sealed by default. Files with a name (parameters, keys) never are.
    /// Where the kernel allows neither `userfaultfd` nor `memfd_create`, advice that does not fit into memory
    /// is in mapped files, not encrypted, with a warning; if sealed files are asked for here,
    /// [`Self::build`] refuses that.
    pub fn scratch(mut self, scratch: Scratch) -> Self {
        self.scratch = Some(scratch);
        self
    }

    /// Refuses a session in which values of a witness may get to a disk in plain: with plain scratch files,
    /// where the kernel does not allow sealed advice, with swap that is on, or with core dumps allowed.
    /// Without it, swap that is on is a warning.
    pub fn strict_secrets(mut self, strict: bool) -> Self {
        self.strict_secrets = strict;
        self
    }

    /// Lets proofs keep their rounds, sealed, so that after a crash the same proof goes on from there: see
    /// [`crate::checkpoint`]. Without it, nothing of a proof outlives its process.
    pub fn checkpoints(mut self, checkpoints: Checkpoints) -> Self {
        self.checkpoints = Some(checkpoints);
        self
    }

    /// Number of compute threads, [`THREADS_MAX`] at most; 0 (the default) is as many as the variable
    /// `RAYON_NUM_THREADS` says, but no more than that, else one for each core.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Faults to inject into storage, for tests.
    pub fn faults(mut self, faults: FaultPlan) -> Self {
        self.faults = Some(faults);
        self
    }

    /// Quotients in tiles of so many rows (all of them, if that is more), instead of what fits the budget
    /// best, for tests of the prover: what comes out does not depend on it. The planner knows nothing of it.
    #[doc(hidden)]
    pub fn quotient_tile_rows(mut self, rows: u64) -> Self {
        self.quotient_tile_rows = Some(rows);
        self
    }

    /// An accelerator that may take over whole jobs (sums, transforms). The results are the same, unless its
    /// device computes wrong: the drop-in's prover verifies a proof of such a session before it returns it;
    /// verify what you make yourself.
    pub fn accelerator(mut self, accelerator: Arc<dyn Accelerator>) -> Self {
        self.accelerator = Some(accelerator);
        self
    }

    /// Makes the session. On glibc this also fixes the size from which freed blocks go back to the system at
    /// once, for the whole process ([`crate::budget::return_freed_blocks`]).
    ///
    /// # Errors
    /// [`Invalid::NoFolder`] if the directory does not exist, [`Error::File`] if it cannot be used,
    /// [`Error::Threads`] if no threads can be started, [`Invalid::Setting`] for a budget of no bytes and for
    /// too many threads,
    /// [`Error::Unavailable`] for sealed scratch files, or strict secrets, that were asked for and are not
    /// possible here, and where the system gives no random values.
    pub fn build(self) -> Result<Session> {
        let no_size = |name| {
            move |error: ParseSizeError| Invalid::Setting {
                name,
                reason: error.to_string(),
            }
        };
        let threads = threads_of(self.threads)?;
        // Generators that are seeded later have no way to say that the system gives no random values.
        random_bytes(&mut [0])?;
        let memory = self.memory.map_err(no_size("memory budget"))?;
        let limit = self.limit.transpose().map_err(no_size("limit on the process"))?;
        let limit = limit.map(|limit| Limit::new(limit, threads)).transpose()?;
        return_freed_blocks();
        let mut storage = Storage::builder()
            .dir(&self.dir)
            .backend(self.backend)
            .direct(self.direct)
            .threads(threads);
        if let Some(faults) = self.faults {
            storage = storage.faults(faults);
        }
        let storage = storage.build()?;
        let memory_bytes = match (memory, &limit) {
            (ByteSize::Auto, Some(limit)) => limit.budget_bytes,
            (memory, Some(limit)) => memory.resolve()?.min(limit.budget_bytes),
            (memory, None) => memory.resolve()?,
        };
        if memory_bytes == 0 {
            return Err(Invalid::Setting {
                name: "memory budget",
                reason: "0 bytes hold nothing: name a size such as `64MiB`, or `auto`".into(),
            }
            .into());
        }
        let budget = Budget::new(memory_bytes);
        raise_open_files();
        // A folder that takes no files is found here, and not by the first column.
        storage.scratch("first file of a session", PAGE_BYTES as u64)?;
        let accelerator = self.accelerator.map(CountedAccelerator::new);
        check_secrets(self.scratch.unwrap_or_default(), self.strict_secrets)?;
        let is_sealing_asked_for = self.strict_secrets || self.scratch == Some(Scratch::Sealed);
        if is_sealing_asked_for && storage.region("a test", PAGE_BYTES as u64, false)?.is_none() {
            return Err(Error::Unavailable {
                what: "sealed scratch for advice cells (userfaultfd, or memfd_create)",
                source: std::io::ErrorKind::Unsupported.into(),
                remedy: "allow one of these system calls in the container's seccomp profile, or ask for plain scratch",
            });
        }
        let workspace = Workspace::new(storage, budget).with_scratch(self.scratch.unwrap_or_default())?;
        let mut workspace = workspace.with_pool(threads)?;
        workspace.accelerator = accelerator
            .clone()
            .map(|accelerator| accelerator as Arc<dyn Accelerator>);
        Ok(Session {
            workspace,
            accelerator,
            dir: self.dir,
            limit,
            quotient_tile_rows: self.quotient_tile_rows,
            checkpoints: self.checkpoints,
            is_from_environment: false,
        })
    }
}

/// Compute threads; 0 is what the environment says, else one for each core.
pub(crate) fn threads_of(threads: usize) -> Result<usize> {
    if threads > THREADS_MAX {
        return Err(Invalid::Setting {
            name: "number of compute threads",
            reason: format!("{threads}: a session has {THREADS_MAX} at most; 0 is one for each core"),
        }
        .into());
    }
    if threads > 0 {
        return Ok(threads);
    }
    let of_environment = variable(RAYON_VARIABLE).and_then(|text| text.to_str()?.parse::<usize>().ok());
    let wanted = match of_environment {
        None | Some(0) => std::thread::available_parallelism().map_or(1, |cores| cores.get()),
        Some(wanted) => wanted,
    };
    if wanted > THREADS_MAX {
        tracing::warn!("{RAYON_VARIABLE}: of {wanted} compute threads, this session starts {THREADS_MAX}");
    }
    Ok(wanted.min(THREADS_MAX))
}

/// Looks for ways in which values of a witness get to a disk besides scratch files: refuses them, or says
/// them once.
fn check_secrets(scratch: Scratch, strict: bool) -> Result<()> {
    let refuse = |way: String, remedy| {
        Err(Error::Unavailable {
            what: "a session whose witness stays off the disk (strict secrets)",
            source: std::io::Error::other(way),
            remedy,
        })
    };
    let swap = swap_devices().join(", ");
    if strict && scratch == Scratch::Plain {
        return refuse("scratch files are plain".into(), "ask for sealed scratch files");
    }
    if strict && allows_core_dumps() {
        return refuse("core dumps are allowed".into(), "forbid them (ulimit -c 0)");
    }
    if strict && !swap.is_empty() {
        return refuse(format!("swap is on: {swap}"), "turn it off (swapoff)");
    }
    if !swap.is_empty() && scratch == Scratch::Sealed {
        static SAID: Once = Once::new();
        SAID.call_once(|| {
            tracing::warn!(%swap, "swap is on: the system may write values of a witness there; turn it off, or encrypt it");
        });
    }
    Ok(())
}

/// Whether a session's accelerator does jobs of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Participation {
    /// What comes of it will be verified.
    MayTakePart,
    /// Nobody could verify it.
    TakesNoPart,
}

/// A proof, or the making of keys, from its beginning to its end, on one thread: its session is the thread's,
/// its leases are its own, and jobs that an accelerator does for it are counted.
#[must_use = "the task ends when this is dropped"]
#[derive(Debug)]
pub struct Task {
    _task_accelerator: TaskAcceleratorGuard,
    _entered: Entered,
    _in_task: InTask,
    _pinned: Pinned,
    task_accelerator: TaskAccelerator,
    account: Account,
    session: Arc<Session>,
}

impl Task {
    /// Its place on the ledger.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Its session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// How many of its jobs an accelerator did.
    pub fn accelerator_jobs(&self) -> u64 {
        self.task_accelerator.jobs()
    }
}

thread_local! {
    static PINNED: RefCell<Vec<Arc<Session>>> = const { RefCell::new(Vec::new()) };
}

/// Keeps a session the thread's; see [`Session::pin`].
#[must_use = "the session is the thread's until the guard is dropped"]
#[derive(Debug)]
pub struct Pinned {
    /// It is the thread's, on which guards are dropped in reverse.
    _not_send: PhantomData<*const ()>,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let session = PINNED.with_borrow_mut(Vec::pop);
        drop(session);
    }
}

/// Keeps a session current, or none; dropping it brings back what was before.
#[must_use = "what is current changes back when the guard is dropped"]
#[derive(Debug)]
pub struct SessionGuard {
    id: u64,
}

impl SessionGuard {
    fn new(session: Option<Arc<Session>>) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let mut installed = installed().write().unwrap_or_else(PoisonError::into_inner);
        installed.push((id, session));
        Self { id }
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        let mut installed = installed().write().unwrap_or_else(PoisonError::into_inner);
        let at = installed.iter().position(|(id, _)| *id == self.id);
        let removed = at.map(|at| installed.remove(at));
        // A session that ends here ends without the lock.
        drop(installed);
        drop(removed);
    }
}

/// What guards keep current, with their numbers, the latest last: sessions, or none. Without any, it is the
/// environment's.
type Installed = Vec<(u64, Option<Arc<Session>>)>;

fn installed() -> &'static RwLock<Installed> {
    static INSTALLED: RwLock<Installed> = RwLock::new(Vec::new());
    &INSTALLED
}
