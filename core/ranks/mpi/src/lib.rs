//! The ranks of spillproof over MPI: processes that `mpirun`, `mpiexec`, `srun` or an MPIJob started.
//!
//! What flows in: the launcher's environment. What flows out: a [`Transport`](spillproof_ranks::Transport) for
//! [`Ranks::new`](spillproof_ranks::Ranks::new), and one of two ends, `Mpi::finish` after a good one and
//! `Mpi::fail` after an error. Who may use it: a program's `main`. Architecture invariant: no type of MPI
//! leaves this package, and the packages of the workspace are built, tested and shipped without it.
//!
//! MPI sends bytes as they are: who can read the network between ranks can read the witness.
//!
//! ```no_run
//! use std::process::ExitCode;
//! use std::time::Duration;
//! use spillproof_mpi::{Mpi, is_started_by_mpi};
//! use spillproof_ranks::{RankError, Ranks, Settings};
//!
//! fn work(ranks: &Ranks) -> Result<(), RankError> {
//!     ranks.barrier()
//! }
//!
//! fn main() -> ExitCode {
//!     if !is_started_by_mpi() {
//!         return work(&Ranks::alone()).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
//!     }
//!     let mpi = match Mpi::start() {
//!         Ok(mpi) => mpi,
//!         Err(error) => {
//!             eprintln!("{error}");
//!             return ExitCode::FAILURE;
//!         }
//!     };
//!     let ranks = Ranks::new(mpi.transport(), Settings::default());
//!     match ranks.and_then(|ranks| work(&ranks)) {
//!         Ok(()) => mpi.finish().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS),
//!         Err(error) => {
//!             // Each rank prints its own error; the launcher ends the others as soon as one has ended.
//!             eprintln!("{error}");
//!             mpi.fail(1, Duration::from_secs(5))
//!         }
//!     }
//! }
//! ```

#![cfg(feature = "mpi")]

mod control;
mod error;
mod request;
mod transport;

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

pub use error::MpiError;
use ferrompi::ThreadLevel;
use spillproof_ranks::Transport;
pub use spillproof_ranks::{Launched, is_started_by_mpi, launched};
use transport::MpiTransport;

/// How long MPI may take to end: it waits for all ranks.
const FINALIZE_MAX: Duration = Duration::from_secs(60);

/// MPI, from its start to one of its two ends. It stays on the thread that started it; the transport does
/// not.
///
/// Dropped without an end, it leaves MPI as it is: `MPI_Finalize` would wait for ranks that may never come.
pub struct Mpi {
    inner: ManuallyDrop<ferrompi::Mpi>,
    transport: Arc<MpiTransport>,
}

impl Mpi {
    /// Starts MPI, for calls from one thread after the other.
    ///
    /// # Errors
    ///
    /// [`MpiError::Start`] if it cannot be started, or was started before in this process;
    /// [`MpiError::ThreadLevel`] if it takes calls from one thread only.
    pub fn start() -> Result<Self, MpiError> {
        let inner = ferrompi::Mpi::init_thread(ThreadLevel::Serialized)
            .map_err(|source| MpiError::Start { source })?;
        if inner.thread_level() < ThreadLevel::Serialized {
            return Err(MpiError::ThreadLevel {
                level: level_name(inner.thread_level()),
            });
        }
        let transport = Arc::new(MpiTransport::new(inner.world()));
        tracing::debug!(
            rank = transport.rank(),
            size = transport.size(),
            level = level_name(inner.thread_level()),
            "MPI has started"
        );
        Ok(Self {
            inner: ManuallyDrop::new(inner),
            transport,
        })
    }

    /// This process's rank.
    pub fn rank(&self) -> usize {
        self.transport.rank()
    }

    /// How many ranks there are.
    pub fn size(&self) -> usize {
        self.transport.size()
    }

    /// The level of threads that MPI gave, in its own words.
    pub fn thread_level(&self) -> &'static str {
        level_name(self.inner.thread_level())
    }

    /// The library and its release, and the version of the standard.
    pub fn library() -> String {
        let known = |text: ferrompi::Result<String>| text.unwrap_or_else(|_| "MPI".to_owned());
        let library = known(ferrompi::Mpi::library_version());
        // MPICH says how it was built on further lines.
        let release = library.lines().next().unwrap_or_default().trim().to_owned();
        format!(
            "{}, {}",
            known(ferrompi::Mpi::version()),
            release.replace('\t', " ")
        )
    }

    /// The ranks of `MPI_COMM_WORLD`, for [`Ranks::new`](spillproof_ranks::Ranks::new). It is of no use after
    /// an end.
    pub fn transport(&self) -> Arc<dyn Transport> {
        self.transport.clone()
    }

    /// Ends MPI after all ranks came to a good end: their last call was a barrier.
    ///
    /// If MPI has not ended within a minute, since a rank is missing, the process ends with status 1.
    ///
    /// # Errors
    ///
    /// [`MpiError::Unfinished`] if a rank gave up, or a message is still under way. MPI is then left as it
    /// is, and the process has to end with a status other than 0.
    pub fn finish(self) -> Result<(), MpiError> {
        if let Some(reason) = self.transport.unfinished() {
            return Err(MpiError::Unfinished { reason });
        }
        let (ended, ends) = channel::<()>();
        let rank = self.rank();
        let watchdog = std::thread::Builder::new().name("spillproof-mpi".into());
        // Without a thread to spare, it ends without one that watches.
        let _ = watchdog.spawn(move || {
            if ends.recv_timeout(FINALIZE_MAX) == Err(RecvTimeoutError::Timeout) {
                eprintln!("rank {rank}: MPI has not ended within {FINALIZE_MAX:?}: another rank is missing");
                std::process::exit(1);
            }
        });
        drop(ManuallyDrop::into_inner(self.inner));
        drop(ended);
        Ok(())
    }

    /// Ends the process after an error, when this rank has printed it. Other ranks get so long to find an
    /// error of their own, and to print it, since a launcher ends all when one has ended. Then `MPI_Abort`
    /// ends the ranks that hang.
    ///
    /// `status` should not be 0: 0 is taken as 1.
    pub fn fail(self, status: i32, grace: Duration) -> ! {
        let status = if status == 0 { 1 } else { status };
        // The ranks have told theirs before: this is for an error outside of them.
        self.transport
            .give_up_once(&format!("rank {} ended after an error of its own", self.rank()));
        let missing = self.transport.part(grace);
        if missing.is_empty() {
            std::process::exit(status);
        }
        eprintln!(
            "rank {}: ranks {missing:?} did not end within {grace:.1?}: they are ended by MPI_Abort",
            self.rank()
        );
        self.transport.abort(status)
    }
}

fn level_name(level: ThreadLevel) -> &'static str {
    match level {
        ThreadLevel::Single => "MPI_THREAD_SINGLE",
        ThreadLevel::Funneled => "MPI_THREAD_FUNNELED",
        ThreadLevel::Serialized => "MPI_THREAD_SERIALIZED",
        ThreadLevel::Multiple => "MPI_THREAD_MULTIPLE",
    }
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mpi")
            .field("transport", &self.transport)
            .field("thread_level", &self.thread_level())
            .finish_non_exhaustive()
    }
}
