//! Options of every command.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};
use spillproof_engine::budget::ByteSize;
use spillproof_engine::column::Scratch;
use spillproof_engine::session::THREADS_MAX;
use spillproof_engine::storage::Backend;
use tracing_subscriber::filter::LevelFilter;

use super::size;
use crate::failure::Failure;

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// The memory budget, which bounds buffers: 512MiB, 2G, auto (nearly all memory: what is available, less
    /// an eighth). The default is auto; of demo 32MiB, of ranks bench 128MiB.
    #[arg(long, global = true, value_name = "SIZE", env = "SPILLPROOF_MEMORY", value_parser = size)]
    pub memory: Option<ByteSize>,
    /// The limit on the whole process, page tables and the program's own pages included, from which the
    /// budget follows: 512MiB, 2G, auto (the hard limit of the control group or container). With --memory,
    /// the smaller budget of the two holds.
    #[arg(long, global = true, value_name = "SIZE", env = "SPILLPROOF_LIMIT", value_parser = size)]
    pub limit: Option<ByteSize>,
    /// The folder of scratch files, preferably on NVMe. Do not use a tmpfs: it is RAM. The default is the
    /// system's folder for temporary files (TMPDIR, else /tmp).
    #[arg(long, global = true, value_name = "DIR", env = "SPILLPROOF_DIR")]
    pub dir: Option<PathBuf>,
    /// Machine-readable results on standard output.
    #[arg(long, global = true)]
    pub json: bool,
    /// Compute threads, 1024 at most; 0 is one for each core.
    #[arg(long, global = true, value_name = "N", default_value = "0", value_parser = threads)]
    pub threads: usize,
    /// How files are read and written.
    #[arg(long, global = true, value_enum, default_value_t = BackendName::Auto)]
    pub backend: BackendName,
    /// How scratch files are written: `sealed`, encrypted with a key that is in memory only, or `plain`, from
    /// which the witness can be read. The default is sealed where the kernel allows it. Files with a name are
    /// never encrypted.
    #[arg(long, global = true, value_name = "sealed|plain", env = "SPILLPROOF_SCRATCH")]
    pub scratch: Option<Scratch>,
    /// Refuse to run where values of a witness may get to a disk in plain: with plain scratch, swap that is
    /// on, or core dumps.
    #[arg(long, global = true, env = "SPILLPROOF_STRICT_SECRETS")]
    pub strict_secrets: bool,
    /// Only the result and errors: no progress, no table, no warnings.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Log the session (-v), the plans of the engine (-vv), everything (-vvv) on standard error; else
    /// SPILLPROOF_LOG says what is logged.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
}

impl Global {
    /// What is logged; `None` leaves it to the environment.
    pub fn level(&self) -> Option<LevelFilter> {
        match (self.quiet, self.verbose) {
            (true, _) => Some(LevelFilter::ERROR),
            (false, 0) => None,
            (false, 1) => Some(LevelFilter::INFO),
            (false, 2) => Some(LevelFilter::DEBUG),
            (false, _) => Some(LevelFilter::TRACE),
        }
    }

    /// Refuses a limit where no session holds it.
    ///
    /// # Errors
    /// [`Failure::Usage`].
    pub fn no_limit(&self, what: &str) -> Result<(), Failure> {
        match self.limit {
            None => Ok(()),
            Some(_) => Err(Failure::Usage(format!(
                "--limit (SPILLPROOF_LIMIT) holds within a session, and {what}: leave it out"
            ))),
        }
    }
}

/// Names of the storage backends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BackendName {
    /// io_uring where the kernel allows it, else pread.
    Auto,
    /// io_uring, or fail.
    Uring,
    /// Threads that read and threads that write.
    Pread,
}

impl From<BackendName> for Backend {
    fn from(name: BackendName) -> Self {
        match name {
            BackendName::Auto => Self::Auto,
            BackendName::Uring => Self::Uring,
            BackendName::Pread => Self::Pread,
        }
    }
}

/// A number of compute threads.
fn threads(text: &str) -> Result<usize, String> {
    let number: usize = text.parse().map_err(|error| format!("{error}"))?;
    match number {
        0..=THREADS_MAX => Ok(number),
        _ => Err(format!("{number} is more than {THREADS_MAX}")),
    }
}
