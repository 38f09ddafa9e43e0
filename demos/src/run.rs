//! One run of the binary: a session where one is needed, a recorder, and the result at the end.

use std::io::Write;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use spillproof::budget::ByteSize;
use spillproof::tier::Tier;
use spillproof::{Session, SessionBuilder};
pub use spillproof_format::hex;

use crate::args::Global;
use crate::failure::Failure;
use crate::report::{Recorder, Report, is_tmpfs, steps, table};
use crate::signals;

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
        if global.json {
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

    /// The same, with a tier that may do whole jobs instead of the processor.
    ///
    /// # Errors
    /// The engine's.
    pub fn session_on(&mut self, memory: ByteSize, tier: Option<Arc<dyn Tier>>) -> Result<Arc<Session>> {
        self.session_with(memory, tier, |builder| builder)
    }

    /// The same, with what `set` sets.
    ///
    /// # Errors
    /// The engine's.
    pub fn session_with(
        &mut self,
        memory: ByteSize,
        tier: Option<Arc<dyn Tier>>,
        set: impl FnOnce(SessionBuilder) -> SessionBuilder,
    ) -> Result<Arc<Session>> {
        let dir = self.global.dir.clone().unwrap_or_else(std::env::temp_dir);
        warn_of_tmpfs(&dir);
        signals::expect_folder(&dir);
        let mut builder = Session::builder()
            .memory(self.global.memory.unwrap_or(memory))
            .dir(dir)
            .backend(self.global.backend.into())
            .threads(self.global.threads)
            .strict_secrets(self.global.strict_secrets);
        if let Some(scratch) = self.global.scratch {
            builder = builder.scratch(scratch);
        }
        if let Some(tier) = tier {
            builder = builder.tier(tier);
        }
        let session = set(builder).build()?;
        self.recorder.watch(&session);
        Ok(Arc::new(session))
    }

    /// Prints a line, unless the output is JSON.
    pub fn say(&self, text: impl std::fmt::Display) {
        if !self.global.json {
            put(text);
        }
    }

    /// Ends the run: JSON with the result and the report, or the table.
    ///
    /// # Errors
    /// If the result is no JSON.
    pub fn finish(self, command: &str, result: &impl Serialize) -> Result<Report> {
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
        } else if !report.phases.is_empty() {
            put(format_args!("\n{}", table::render(&report).trim_end()));
        }
        Ok(report)
    }
}

/// The first error of standard output.
static UNWRITTEN: OnceLock<std::io::Error> = OnceLock::new();

/// A line on standard output. A closed pipe (`| head`) is not an error; others end the run with one ([`written`]), after its work.
pub fn put(line: impl std::fmt::Display) {
    if let Err(error) = writeln!(std::io::stdout(), "{line}") {
        let _an_earlier_one_is_kept = UNWRITTEN.set(error);
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
            "warning: {} is a tmpfs, so scratch files are memory: point --dir at a disk",
            dir.display()
        );
    }
}
