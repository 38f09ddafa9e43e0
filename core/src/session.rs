//! A session: one budget, one scratch directory, one pool of threads; everything that streams works inside one.
//!
//! A program may hold several; at most one at a time is the process's *current* session, which is what the patched
//! prover asks for. With none, the patched prover is stock.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use crate::budget::{Budget, ByteSize, ParseSizeError, return_freed_blocks};
use crate::column::Workspace;
use crate::storage::{Backend, FaultPlan, Storage};
use crate::tier::{Tier, Watched};
use crate::{Error, Result};

/// The variable that holds the memory budget: `2GiB`, `512M`, `auto`.
pub const MEMORY_VARIABLE: &str = "SPILLPROOF_MEMORY";
/// The variable that holds the directory for scratch files; the system's temporary directory without it.
pub const DIR_VARIABLE: &str = "SPILLPROOF_DIR";

/// The variable that says which devices take part: `auto`, `off` (the default), `all`, or their numbers.
pub const GPU_VARIABLE: &str = "SPILLPROOF_GPU";
/// The variable that holds the budget of each device's memory: `2GiB`, `auto`.
pub const VRAM_VARIABLE: &str = "SPILLPROOF_VRAM";
/// The variable that holds the budget of page-locked memory, through which data goes to the device: `256MiB`, `auto`.
pub const PINNED_VARIABLE: &str = "SPILLPROOF_PINNED";
/// The variable that says which jobs go to the device: `measured`, `always`.
pub const OFFLOAD_VARIABLE: &str = "SPILLPROOF_OFFLOAD";

/// Opens the tier that the environment asks for; `None` if it asks for none, or there is none.
pub type OpenTier = fn() -> Result<Option<Arc<dyn Tier>>>;

/// One budget, one scratch directory, one pool of threads.
pub struct Session {
    workspace: Workspace,
    tier: Option<Arc<Watched>>,
    pool: rayon::ThreadPool,
    turn: Mutex<()>,
    dir: PathBuf,
    quotient_tile_rows: Option<u64>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("budget_bytes", &self.workspace.budget.limit_bytes())
            .field("dir", &self.dir)
            .field("threads", &self.pool.current_num_threads())
            .finish()
    }
}

/// How a [`Session`] is to be made.
#[derive(Clone, Debug)]
pub struct SessionBuilder {
    memory: ByteSize,
    dir: PathBuf,
    backend: Backend,
    direct: bool,
    threads: usize,
    faults: Option<FaultPlan>,
    quotient_tile_rows: Option<u64>,
    tier: Option<Arc<dyn Tier>>,
}

impl Session {
    /// A builder with `memory` = auto, the system's temporary directory, every core.
    pub fn builder() -> SessionBuilder {
        SessionBuilder {
            memory: ByteSize::Auto,
            dir: std::env::temp_dir(),
            backend: Backend::Auto,
            direct: true,
            threads: 0,
            faults: None,
            quotient_tile_rows: None,
            tier: None,
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

    /// The second compute tier, if there is one.
    pub fn tier(&self) -> Option<&Arc<Watched>> {
        self.tier.as_ref()
    }

    /// The scratch directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Number of compute threads.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// The rows of a quotient's tiles, where the session's maker has said so.
    #[doc(hidden)]
    pub fn quotient_tile_rows(&self) -> Option<u64> {
        self.quotient_tile_rows
    }

    /// Runs `work` on the session's threads.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.pool.install(work)
    }

    /// Runs `work` on the session's threads, after whoever else does so: each may plan with all that the budget has left.
    ///
    /// The caller's thread only waits. It takes on no other work meanwhile, as a rayon worker inside [`Self::run`] would:
    /// that work could be the next in line, and wait for its own caller. From a thread of the session, `work` runs at once.
    pub fn run_in_turn<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        if self.pool.current_thread_index().is_some() {
            return work();
        }
        let in_turn = || {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            self.pool.install(work)
        };
        std::thread::scope(|scope| match scope.spawn(in_turn).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    /// Makes this the process's current session until the guard is dropped; the one before it comes back then.
    pub fn install(self: &Arc<Self>) -> SessionGuard {
        let mut current = current_slot().write().unwrap_or_else(PoisonError::into_inner);
        SessionGuard {
            previous: std::mem::replace(&mut *current, Current::Installed(Arc::clone(self))),
        }
    }

    /// Lets the process have no current session until the guard is dropped, whatever the environment says.
    pub fn suspend() -> SessionGuard {
        let mut current = current_slot().write().unwrap_or_else(PoisonError::into_inner);
        SessionGuard {
            previous: std::mem::replace(&mut *current, Current::Suspended),
        }
    }

    /// The process's current session: the one [installed](Self::install), or none while it is
    /// [suspended](Self::suspend); else one made from [`MEMORY_VARIABLE`] and [`DIR_VARIABLE`] at the first call, else none.
    ///
    /// # Errors
    /// Those of [`SessionBuilder::build`], when the variables are set and do not make a session. A budget that was
    /// asked for and cannot be had is never silently ignored, and neither is a device: who calls this knows none.
    pub fn current() -> Result<Option<Arc<Self>>> {
        Self::current_with(no_device)
    }

    /// [`Self::current`], for who knows how to open the device that [`GPU_VARIABLE`] asks for.
    ///
    /// # Errors
    /// As there, and those of `open`.
    pub fn current_with(open: OpenTier) -> Result<Option<Arc<Self>>> {
        match &*current_slot().read().unwrap_or_else(PoisonError::into_inner) {
            Current::Installed(session) => return Ok(Some(Arc::clone(session))),
            Current::Suspended => return Ok(None),
            Current::Environment => {}
        }
        static FROM_ENVIRONMENT: OnceLock<std::result::Result<Option<Arc<Session>>, String>> =
            OnceLock::new();
        let made = FROM_ENVIRONMENT.get_or_init(|| Self::from_environment(open).map_err(|e| e.to_string()));
        match made {
            Ok(session) => Ok(session.clone()),
            Err(details) => Err(Error::Invalid {
                what: "session from the environment",
                details: details.clone(),
            }),
        }
    }

    fn from_environment(open: OpenTier) -> Result<Option<Arc<Self>>> {
        let Some(memory) = std::env::var_os(MEMORY_VARIABLE) else {
            return match device_asked_for() {
                None => Ok(None),
                Some(asked) => Err(Error::Invalid {
                    what: GPU_VARIABLE,
                    details: format!(
                        "`{asked}`: a device takes part in a session only; set {MEMORY_VARIABLE} too (`auto` will do), or say `off`"
                    ),
                }),
            };
        };
        let memory: ByteSize =
            memory
                .to_string_lossy()
                .parse()
                .map_err(|e: ParseSizeError| Error::Invalid {
                    what: MEMORY_VARIABLE,
                    details: e.to_string(),
                })?;
        let mut builder = Self::builder().memory(memory);
        if let Some(dir) = std::env::var_os(DIR_VARIABLE) {
            builder = builder.dir(dir);
        }
        if let Some(tier) = open()? {
            builder = builder.tier(tier);
        }
        let session = Arc::new(builder.build()?);
        tracing::info!(budget_bytes = session.budget().limit_bytes(), dir = %session.dir.display(), "spillproof session");
        Ok(Some(session))
    }
}

impl SessionBuilder {
    /// The budget.
    pub fn memory(mut self, memory: ByteSize) -> Self {
        self.memory = memory;
        self
    }

    /// The directory for scratch files; best on NVMe.
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

    /// Number of compute threads; 0 (the default) is one for each core.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Faults to inject into storage, for tests.
    pub fn faults(mut self, faults: FaultPlan) -> Self {
        self.faults = Some(faults);
        self
    }

    /// Quotients in tiles of so many rows (all of them, if that is more), instead of what fits the budget best, for tests
    /// of the prover: what comes out does not depend on it. The planner knows nothing of it.
    #[doc(hidden)]
    pub fn quotient_tile_rows(mut self, rows: u64) -> Self {
        self.quotient_tile_rows = Some(rows);
        self
    }

    /// Somebody who may do whole jobs (sums, transforms) instead of the processor: results are the same, unless the device behind it
    /// computes wrong. The drop-in's prover verifies what it made in such a session before it returns; verify what you make yourself.
    /// The planner knows nothing of a tier.
    pub fn tier(mut self, tier: Arc<dyn Tier>) -> Self {
        self.tier = Some(tier);
        self
    }

    /// Makes the session. On glibc this also fixes the size from which freed blocks go back to the system at once, for the whole
    /// process ([`crate::budget::return_freed_blocks`]).
    ///
    /// # Errors
    /// [`Error::Io`] if the directory cannot be used, [`Error::Invalid`] if no threads can be started.
    pub fn build(self) -> Result<Session> {
        let mut storage = Storage::builder()
            .dir(&self.dir)
            .backend(self.backend)
            .direct(self.direct);
        if let Some(faults) = self.faults {
            storage = storage.faults(faults);
        }
        let storage = storage.build()?;
        let budget = Budget::new(self.memory.resolve()?);
        return_freed_blocks();
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads)
            .thread_name(|i| format!("spillproof-{i}"))
            .build()
            .map_err(|e| Error::Invalid {
                what: "compute threads",
                details: e.to_string(),
            })?;
        let tier = self.tier.map(Watched::new);
        let mut workspace = Workspace::new(storage, budget);
        workspace.tier = tier.clone().map(|tier| tier as Arc<dyn Tier>);
        Ok(Session {
            workspace,
            tier,
            pool,
            turn: Mutex::new(()),
            dir: self.dir,
            quotient_tile_rows: self.quotient_tile_rows,
        })
    }
}

/// What [`GPU_VARIABLE`] asks for; `None` if that is no device.
fn device_asked_for() -> Option<String> {
    let asked = std::env::var_os(GPU_VARIABLE)?;
    let asked = asked.to_string_lossy();
    (asked != "off").then(|| asked.into_owned())
}

/// For programs that know no devices.
///
/// # Errors
/// If the environment asks for one.
pub fn no_device() -> Result<Option<Arc<dyn Tier>>> {
    match device_asked_for() {
        None => Ok(None),
        Some(asked) => Err(Error::Invalid {
            what: GPU_VARIABLE,
            details: format!(
                "`{asked}`: this program was built without devices; build it with the feature `gpu` of the drop-in `halo2-axiom`, or \
                 say `off`"
            ),
        }),
    }
}

/// Whose turn it is to answer [`Session::current`].
#[derive(Debug)]
enum Current {
    /// The environment's session, if its variables ask for one.
    Environment,
    /// This session.
    Installed(Arc<Session>),
    /// None.
    Suspended,
}

/// Keeps a session current, or none; dropping it brings back what was before.
#[must_use = "what is current changes back when the guard is dropped"]
#[derive(Debug)]
pub struct SessionGuard {
    previous: Current,
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        *current_slot().write().unwrap_or_else(PoisonError::into_inner) =
            std::mem::replace(&mut self.previous, Current::Environment);
    }
}

fn current_slot() -> &'static RwLock<Current> {
    static CURRENT: RwLock<Current> = RwLock::new(Current::Environment);
    &CURRENT
}
