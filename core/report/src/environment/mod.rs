//! Reports that environment variables ask for, of a program over a drop-in that knows nothing of them.
//!
//! ```text
//!   settings.rs  the variables
//!   page.rs      the file of the page
//!   said.rs      warnings, and what is said before a panic
//!   exit.rs      the end of a process in which they had no effect
//! ```
//!
//! A drop-in calls [`asked`] when it is asked for anything; [`found`] with each session that it finds, or
//! does not find; [`phase`] around its keygen and its prover; and [`expect`] where it knows their plan. The
//! first session starts a [`Recorder`]. Steps come from the engine's tracing spans: without a subscriber of
//! the program's, one is set that sees nothing else; in a subscriber of the program's, the program adds
//! [`steps::layer`].
//!
//! A process reports one phase at a time: a phase that another thread begins meanwhile is not reported, and
//! its steps are shown among those of the phase under way. After a phase that fails, by an error or a panic,
//! the table and the page follow at once.
//! The kernel's mark of the most resident memory (`VmHWM`) is reset where a phase begins.
//!
//! Memory: that of a [`Recorder`], with [`PHASES_MAX`] phases.

mod exit;
mod page;
mod said;
mod settings;

use std::fmt::Display;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

use spillproof_engine::Result;
use spillproof_engine::Session;
use spillproof_engine::error::Invalid;
use spillproof_engine::plan::{Phase, Plan};
use spillproof_engine::session::{DIR_VARIABLE, MEMORY_VARIABLE, name_unknown_variables, variable};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;

use crate::curve::Curve;
use crate::progress::{Progress, say};
use crate::{Begun, Recorder, Report, html, is_tmpfs, machine, steps, table};

pub use exit::asked;
pub use said::{PANICS, raise, warn};
pub use settings::{PROGRESS_VARIABLE, REPORT_VARIABLE};
use settings::{Settings, Style};

/// Older phases are left out of the page.
pub const PHASES_MAX: usize = 256;

/// The reports of this process.
struct State {
    settings: Settings,
    recorder: Recorder,
    /// The thread of the phase under way.
    worker: Option<ThreadId>,
    /// Phases since the last table.
    untold: usize,
    /// Phases that the page leaves out.
    forgotten: usize,
    /// Lines of the page about the last phase, each with a name.
    facts: Vec<(&'static str, String)>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
/// Whether the program reports by itself.
static IS_LEFT_TO_PROGRAM: AtomicBool = AtomicBool::new(false);
/// Whether the process's subscriber is the one that was set here.
static HAS_SET_SUBSCRIBER: AtomicBool = AtomicBool::new(false);

fn state() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program reports by itself: from now on, variables ask for nothing here.
pub fn leave_to_program() {
    IS_LEFT_TO_PROGRAM.store(true, Ordering::Relaxed);
}

/// Whether the program has a subscriber that receives events of all kinds; the one that is set for steps
/// receives no others.
pub fn has_programs_subscriber() -> bool {
    tracing::dispatcher::has_been_set() && !HAS_SET_SUBSCRIBER.load(Ordering::Relaxed)
}

/// A drop-in has found this session, or none. The first session of the process starts the reports that are
/// asked for. `drop_in` is the name of its crate in a program's source, such as `halo2_axiom`.
///
/// # Errors
/// [`Invalid::Setting`], at each call, for a value of [`PROGRESS_VARIABLE`] that is none, and for a file in
/// [`REPORT_VARIABLE`] that cannot be written.
pub fn found(session: Option<&Arc<Session>>, drop_in: &str) -> Result<()> {
    static TAKEN_OVER: OnceLock<Result<(), Invalid>> = OnceLock::new();
    static SAID: Once = Once::new();
    if IS_LEFT_TO_PROGRAM.load(Ordering::Relaxed) {
        return Ok(());
    }
    name_unknown_variables();
    let Some(session) = session else {
        if !SAID.is_completed() && Session::is_left_to_environment() {
            SAID.call_once(|| {
                if let Some(line) = overlooked(|name| variable(name).is_some_and(|value| value != "0")) {
                    say(line);
                }
            });
        }
        return Ok(());
    };
    let taken_over = TAKEN_OVER.get_or_init(|| take_over(session, drop_in));
    Ok(taken_over.clone()?)
}

/// Says which variables have no effect, since there is no session.
fn overlooked(is_set: impl Fn(&str) -> bool) -> Option<String> {
    let set = joined(&[DIR_VARIABLE, PROGRESS_VARIABLE, REPORT_VARIABLE], is_set)?;
    Some(format!(
        "spillproof: {set} set, and {MEMORY_VARIABLE} is not: proofs are made in memory; set {MEMORY_VARIABLE} (`2GiB`, `auto`) for proofs \
         that stream"
    ))
}

/// Those of the variables that are set, with the verb: `A is`, `A and B are`.
fn joined(names: &[&str], is_set: impl Fn(&str) -> bool) -> Option<String> {
    let set: Vec<_> = names.iter().copied().filter(|name| is_set(name)).collect();
    let is = match set.len() {
        0 => return None,
        1 => "is",
        _ => "are",
    };
    Some(format!("{} {is}", set.join(" and ")))
}

fn take_over(session: &Session, drop_in: &str) -> Result<(), Invalid> {
    let settings = Settings::read(variable)?;
    if settings.progress.is_some() {
        say(format_args!(
            "spillproof: proofs stream within {}{}, scratch in {}",
            table::bytes(session.budget().limit_bytes()),
            session.limit().map_or_else(String::new, |limit| format!(
                " (the process within {})",
                table::bytes(limit.limit_bytes)
            )),
            session.dir().display()
        ));
    }
    if session.is_from_environment() {
        warn_of_tmpfs(session.dir());
    }
    if settings.progress.is_none() && settings.page.is_none() {
        return Ok(());
    }
    receive_steps(drop_in);
    match settings.progress {
        Some(Style::Events) => steps::print_events(),
        Some(Style::Text) if !std::io::stderr().is_terminal() => steps::print_lines(),
        _ => {}
    }
    let mut recorder = Recorder::start();
    if session.is_from_environment() {
        recorder.watch(session);
    }
    *state() = Some(State {
        settings,
        recorder,
        worker: None,
        untold: 0,
        forgotten: 0,
        facts: Vec::new(),
    });
    Ok(())
}

fn warn_of_tmpfs(dir: &Path) {
    if is_tmpfs(dir) {
        say(format_args!(
            "spillproof: warning: {} is a tmpfs, which is RAM: name a folder on a disk in {DIR_VARIABLE}",
            dir.display()
        ));
    }
}

/// Sets a subscriber for steps, unless the program has one.
fn receive_steps(drop_in: &str) {
    if steps::has_layer() {
        return;
    }
    let only_steps = Targets::new().with_target(steps::TARGET, LevelFilter::INFO);
    let subscriber = tracing_subscriber::registry().with(steps::layer().with_filter(only_steps));
    match tracing::subscriber::set_global_default(subscriber) {
        Ok(()) => HAS_SET_SUBSCRIBER.store(true, Ordering::Relaxed),
        Err(_) => say(format_args!(
            "spillproof: the program has a tracing subscriber of its own, so steps cannot be shown: add `{drop_in}::spillproof::layer()` to it"
        )),
    }
}

/// Runs `work` as a phase of `session`, if reports are asked for and no other phase is under way. After a
/// proof, and after a phase that fails, the table of the phases since the last one goes to standard error,
/// and the page is written.
///
/// # Errors
/// Those of `work`.
pub fn phase<T, E: Display>(
    session: &Session,
    phase: Phase,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let Some(reported) = Reported::begin(session, phase) else {
        return work();
    };
    let done = work();
    match &done {
        Ok(_) => reported.done(),
        Err(error) => fact(VERDICT, || format!("{} failed: {error}", phase.name())),
    }
    done
}

/// The name of the line that says whether a proof was verified.
pub const VERDICT: &str = "verdict";

/// What a page says of a circuit.
#[derive(Debug, Clone, Copy)]
pub struct CircuitInWords {
    /// Advice columns.
    pub advice: usize,
    /// Fixed columns, those of selectors among them.
    pub fixed: usize,
    /// Instance columns.
    pub instance: usize,
    /// Constraints of all gates.
    pub constraints: usize,
    /// Lookup arguments.
    pub lookups: usize,
    /// Columns under the permutation.
    pub permuted: usize,
    /// The degree of the constraints.
    pub degree: usize,
    /// Circuits in one proof.
    pub circuits: usize,
}

impl Display for CircuitInWords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} advice, {} fixed, {} instance columns; {} constraints of degree {}, {} lookups, {} permuted columns",
            self.advice,
            self.fixed,
            self.instance,
            self.constraints,
            self.degree,
            self.lookups,
            self.permuted
        )?;
        match self.circuits {
            1 => Ok(()),
            circuits => write!(f, "; {circuits} circuits"),
        }
    }
}

/// A line of the page about the phase that this thread is in; a later value of the same name takes its place.
/// It is asked for only where there is a page.
pub fn fact(name: &'static str, value: impl FnOnce() -> String) {
    let mut state = state();
    let mine = state
        .as_mut()
        .filter(|state| state.settings.page.is_some() && state.worker == Some(thread::current().id()));
    let Some(state) = mine else { return };
    state.facts.retain(|(known, _)| *known != name);
    state.facts.push((name, value()));
}

/// The plan of the phase that this thread is in, for its progress; it is asked for only where it is shown. A
/// plan that cannot be made leaves steps without a fraction.
pub fn expect(phase: Phase, plan: impl FnOnce() -> Result<Plan>) {
    let is_wanted = state().as_ref().is_some_and(|state| {
        state.settings.progress.is_some() && state.worker == Some(thread::current().id())
    });
    if !is_wanted {
        return;
    }
    match plan() {
        Ok(mut plan) => {
            plan.steps.retain(|step| step.phase == phase);
            steps::expect(None, &plan);
        }
        Err(error) => tracing::debug!(%error, "no plan of a phase"),
    }
}

/// A phase under way.
struct Reported<'s> {
    session: &'s Session,
    phase: Phase,
    /// Until it is recorded.
    begun: Option<Begun>,
    progress: Progress,
    /// Whether the session may end before the process does.
    unwatches: bool,
}

impl<'s> Reported<'s> {
    fn begin(session: &'s Session, phase: Phase) -> Option<Self> {
        let mut state = state();
        let state = state.as_mut().filter(|state| state.worker.is_none())?;
        state.worker = Some(thread::current().id());
        state.facts.clear();
        state.recorder.watch(session);
        Some(Self {
            session,
            phase,
            progress: match state.settings.progress {
                Some(Style::Text) => Progress::start(phase.name()),
                _ => Progress::hidden(),
            },
            begun: Some(state.recorder.begin(phase.name())),
            unwatches: !session.is_from_environment(),
        })
    }

    /// It ended well.
    fn done(mut self) {
        self.record(Recorder::record, self.phase == Phase::Proof);
    }

    /// Records it, unless it is recorded, and tells of it.
    fn record(&mut self, record: fn(&mut Recorder, Begun), tells: bool) {
        self.end();
        let mut state = state();
        let (Some(state), Some(begun)) = (state.as_mut(), self.begun.take()) else {
            return;
        };
        record(&mut state.recorder, begun);
        state.untold += 1;
        state.forgotten += state.recorder.keep(PHASES_MAX);
        if tells {
            state.tell(self.session);
        }
    }

    fn end(&mut self) {
        if let Some(begun) = &self.begun {
            begun.ended();
        }
        self.progress.clear();
        steps::forget();
    }
}

impl Drop for Reported<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            fact(VERDICT, || format!("{} failed in a panic", self.phase.name()));
        }
        // One that is recorded by now ended well.
        self.record(Recorder::record_failed, true);
        if let Some(state) = state().as_mut() {
            state.worker = None;
            if self.unwatches {
                state.recorder.unwatch();
            }
        }
    }
}

impl State {
    /// Prints the table, and writes the page.
    fn tell(&mut self, session: &Session) {
        let report = self.recorder.report();
        let told = report.phases.len().saturating_sub(self.untold);
        let since = Report {
            phases: report.phases[told..].to_vec(),
            curve: Curve::default(),
            ..report
        };
        say(format_args!("\n{}", table::render(&since).trim_end()));
        self.untold = 0;
        let Some(page) = &self.settings.page else { return };
        let program = std::env::args_os().next().unwrap_or_default();
        let program = Path::new(&program).file_name().unwrap_or_default();
        let title = format!("spillproof: {}", program.to_string_lossy());
        let scratch = format!(
            "{} ({})",
            session.dir().display(),
            session.storage().backend_name()
        );
        let mut facts = machine::facts();
        facts.extend(self.facts.iter().cloned());
        facts.extend([("threads", session.threads().to_string()), ("scratch", scratch)]);
        if self.forgotten > 0 {
            facts.push(("phases that are left out", self.forgotten.to_string()));
        }
        if let Err(error) = page.write(html::render(&report, &title, &facts).as_bytes()) {
            say(format_args!(
                "spillproof: {REPORT_VARIABLE}: the page is not written: {error}"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_without_a_session_are_said() {
        assert_eq!(overlooked(|_| false), None);
        let line = overlooked(|name| name == DIR_VARIABLE).unwrap();
        assert!(
            line.starts_with("spillproof: SPILLPROOF_DIR is set, and SPILLPROOF_MEMORY is not"),
            "{line}"
        );
        let line = overlooked(|name| name != DIR_VARIABLE).unwrap();
        assert!(
            line.contains("SPILLPROOF_PROGRESS and SPILLPROOF_REPORT are set"),
            "{line}"
        );
    }
}
