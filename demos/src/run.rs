//! One run of the binary: a session where one is needed, a recorder, and the result at the end.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use spillproof_engine::Session;
use spillproof_engine::accelerator::Accelerator;
use spillproof_engine::budget::{ByteSize, Limit, format_bytes};
use spillproof_engine::checkpoint::Checkpoints;
use spillproof_engine::session::name_unknown_variables;
pub use spillproof_format::hex;

use crate::args::Global;
use crate::failure::Failure;
use crate::limit;
use crate::report::{Recorder, Report, is_tmpfs, progress, steps, table};

/// `Result` with [`Failure`].
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// A run under way.
pub struct Run {
    /// Options of every command.
    pub global: Global,
    /// Phases and memory.
    pub recorder: Recorder,
}

impl Run {
    /// Starts the recorder.
    pub fn start(global: &Global) -> Self {
        if !global.quiet {
            name_unknown_variables();
        }
        if global.quiet {
            progress::hide();
        } else if global.json {
            steps::print_events();
        }
        Self {
            global: global.clone(),
            recorder: Recorder::start(),
        }
    }

    /// A session of the budget asked for, else of `memory`; the recorder counts what it moves.
    ///
    /// # Errors
    /// The engine's.
    pub fn session(&mut self, memory: ByteSize) -> Result<Arc<Session>> {
        self.session_on(memory, None)
    }

    /// The same, with an accelerator that may do whole jobs instead of the processor.
    ///
    /// # Errors
    /// The engine's.
    pub fn session_on(
        &mut self,
        memory: ByteSize,
        accelerator: Option<Arc<dyn Accelerator>>,
    ) -> Result<Arc<Session>> {
        self.session_with(memory, accelerator, None)
    }

    /// The same, which keeps what proofs have done in `checkpoints`, if there are any.
    ///
    /// # Errors
    /// The engine's.
    pub fn session_with(
        &mut self,
        memory: ByteSize,
        accelerator: Option<Arc<dyn Accelerator>>,
        checkpoints: Option<Checkpoints>,
    ) -> Result<Arc<Session>> {
        let dir = self.global.dir.clone().unwrap_or_else(std::env::temp_dir);
        if !self.global.quiet {
            warn_of_tmpfs(&dir);
        }
        let mut builder = Session::builder()
            .memory(self.budget(memory))
            .dir(dir)
            .backend(self.global.backend.into())
            .threads(self.global.threads)
            .strict_secrets(self.global.strict_secrets);
        if let Some(scratch) = self.global.scratch {
            builder = builder.scratch(scratch);
        }
        if let Some(limit) = self.global.limit {
            if accelerator.is_some() {
                return Err(Failure::Usage(
                    "--limit (SPILLPROOF_LIMIT) with a GPU: the memory of its driver is in no limit; say --memory, or --gpu off".into(),
                ));
            }
            builder = builder.limit(limit);
        }
        if let Some(accelerator) = accelerator {
            builder = builder.accelerator(accelerator);
        }
        if let Some(checkpoints) = checkpoints {
            builder = builder.checkpoints(checkpoints);
        }
        let session = builder.build()?;
        if let Some(limit) = session.limit() {
            self.tell(limit, session.budget().limit_bytes());
        }
        self.recorder.watch(&session);
        Ok(Arc::new(session))
    }

    /// The budget that was asked for; with a limit alone, it is the limit's, whatever the command's default
    /// is.
    fn budget(&self, default: ByteSize) -> ByteSize {
        match (self.global.memory, self.global.limit) {
            (Some(memory), _) => memory,
            (None, Some(_)) => ByteSize::Auto,
            (None, None) => default,
        }
    }

    /// Says what the limit is made of, and where it holds.
    fn tell(&self, limit: &Limit, budget_bytes: u64) {
        limit::set(*limit);
        if self.global.quiet || self.global.json {
            return;
        }
        let size = |bytes: u64| format_bytes(bytes >> 10 << 10);
        eprintln!(
            "limit {}: {} for buffers (the budget), {} for the program's pages, threads and heap; a control group or container with a hard limit \
             of {} or more will do (memory.max, docker run --memory {})",
            size(limit.limit_bytes),
            size(budget_bytes),
            size(limit.beside_bytes),
            size(limit.limit_bytes),
            limit.limit_bytes,
        );
    }

    /// Prints a line, unless the output is JSON.
    pub fn say(&self, text: impl std::fmt::Display) {
        if !self.global.json {
            put(text);
        }
    }

    /// Ends a run that has failed: the table of its phases goes to standard error, unless the output is JSON.
    pub fn fail(self) -> Report {
        let report = self.recorder.finish();
        if !self.global.json && !self.global.quiet && !report.phases.is_empty() {
            // A closed standard error is no error.
            let _closed = writeln!(std::io::stderr(), "{}\n", table::render(&report).trim_end());
        }
        report
    }

    /// Ends the run: JSON with the result and the report, or the table.
    ///
    /// # Errors
    /// If the result is no JSON.
    pub fn finish(self, command: &str, result: &impl Serialize) -> Result<Report> {
        let has_table = !self.global.json && !self.global.quiet;
        let report = self.finish_without_table(command, result)?;
        if has_table && !report.phases.is_empty() {
            put(format_args!("\n{}", table::render(&report).trim_end()));
        }
        Ok(report)
    }

    /// The same, for a command whose own lines are its result.
    ///
    /// # Errors
    /// As there.
    pub fn finish_without_table(self, command: &str, result: &impl Serialize) -> Result<Report> {
        #[derive(Serialize)]
        struct Output<'a, R> {
            command: &'a str,
            result: &'a R,
            report: &'a Report,
        }
        let report = self.recorder.finish();
        if self.global.json {
            let output = Output {
                command,
                result,
                report: &report,
            };
            put(serde_json::to_string_pretty(&output)?);
        }
        Ok(report)
    }
}

/// Starts the threads of rayon's global pool, on which circuits' crates compute without a session: they would
/// panic where the system gives none.
///
/// # Errors
/// [`spillproof_engine::Error::Threads`].
pub fn start_global_threads() -> Result<()> {
    match rayon::ThreadPoolBuilder::new().build_global() {
        // Without a source, the pool was there.
        Err(error) if std::error::Error::source(&error).is_some() => {
            let source = std::io::Error::other(error);
            Err(spillproof_engine::Error::Threads { source }.into())
        }
        _ => Ok(()),
    }
}

/// The first error of standard output.
static UNWRITTEN: OnceLock<std::io::Error> = OnceLock::new();

/// Whether standard output is a file of the command line.
static STDOUT_IS_FILE: AtomicBool = AtomicBool::new(false);

/// From now on, standard output takes a result (`--out -`), and lines go to standard error.
pub fn leave_stdout_to_output() {
    STDOUT_IS_FILE.store(true, Ordering::Relaxed);
}

/// A line on standard output. A closed pipe (`| head`) is not an error; others end the run with one
/// ([`written`]), after its work.
pub fn put(line: impl std::fmt::Display) {
    if STDOUT_IS_FILE.load(Ordering::Relaxed) {
        // As for other lines on standard error, a closed one is no error.
        let _closed = writeln!(std::io::stderr(), "{line}");
    } else if let Err(error) = writeln!(std::io::stdout(), "{line}") {
        let _an_earlier_one_is_kept = UNWRITTEN.set(error);
    }
}

/// Bytes on standard output, which may close before their end.
///
/// # Errors
/// [`Failure::File`].
pub fn put_bytes(bytes: &[u8]) -> Result<()> {
    match std::io::stdout().write_all(bytes) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::file("standard output")(error))
        }
        _ => Ok(()),
    }
}

/// Whether standard output took all lines.
///
/// # Errors
/// [`Failure::File`].
pub fn written() -> Result<()> {
    let flushed = std::io::stdout().flush();
    let failed = UNWRITTEN
        .get()
        .map(|error| error.kind())
        .or(flushed.err().map(|error| error.kind()));
    match failed {
        None | Some(std::io::ErrorKind::BrokenPipe) => Ok(()),
        Some(kind) => Err(Failure::file("standard output")(kind.into())),
    }
}

fn warn_of_tmpfs(dir: &std::path::Path) {
    if is_tmpfs(dir) {
        eprintln!(
            "warning: {} is a tmpfs, which is RAM: point --dir at a disk",
            dir.display()
        );
    }
}
