//! Counters, as Prometheus reads them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use spillproof_engine::Session;

use crate::problem::Code;
use crate::state::{Counts, State};

/// What was counted since the start.
#[derive(Default)]
pub(crate) struct Metrics {
    counted: Mutex<Counted>,
}

#[derive(Default)]
struct Counted {
    steps: BTreeMap<&'static str, Sum>,
    refusals: BTreeMap<Code, u64>,
    answers: BTreeMap<u16, u64>,
    ended: BTreeMap<&'static str, u64>,
    waited: Sum,
    ran: Sum,
    witness_bytes: u64,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    seconds: f64,
    count: u64,
}

impl Sum {
    fn add(&mut self, time: Duration) {
        self.seconds += time.as_secs_f64();
        self.count += 1;
    }
}

impl Metrics {
    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn stepped(&self, step: &'static str, time: Duration) {
        self.counted().steps.entry(step).or_default().add(time);
    }

    pub fn answered(&self, status: u16, code: Option<Code>) {
        let mut counted = self.counted();
        *counted.answers.entry(status).or_default() += 1;
        if let Some(code) = code {
            *counted.refusals.entry(code).or_default() += 1;
        }
    }

    /// A job has ended: how long it waited for its turn, and how long it ran, if it did.
    pub fn ended(&self, state: State, waited: Duration, ran: Option<Duration>) {
        let mut counted = self.counted();
        *counted.ended.entry(state.text()).or_default() += 1;
        counted.waited.add(waited);
        if let Some(ran) = ran {
            counted.ran.add(ran);
        }
    }

    pub fn received(&self, witness_bytes: u64) {
        self.counted().witness_bytes += witness_bytes;
    }

    /// Prometheus' text, of this moment.
    pub fn text(&self, session: &Session, counts: &Counts, since: Instant) -> String {
        let mut page = Page::default();
        page.head(
            "spillproof_up_seconds",
            "gauge",
            "Seconds since the server began.",
        );
        page.line("spillproof_up_seconds", "", since.elapsed().as_secs_f64());
        page.head(
            "spillproof_jobs",
            "gauge",
            "Jobs by state, until they are forgotten.",
        );
        for (state, count) in counts.by_state() {
            page.line("spillproof_jobs", &label("state", state), count as f64);
        }
        page.head(
            "spillproof_queue_length",
            "gauge",
            "Jobs that wait, or whose witness is on its way.",
        );
        page.line(
            "spillproof_queue_length",
            "",
            (counts.receiving + counts.waiting) as f64,
        );
        page.head("spillproof_queue_limit", "gauge", "The most of them.");
        page.line("spillproof_queue_limit", "", counts.queue_limit as f64);
        page.head(
            "spillproof_results_bytes",
            "gauge",
            "Bytes of results that are kept.",
        );
        page.line("spillproof_results_bytes", "", counts.results_bytes as f64);
        self.counters(&mut page);
        machine(&mut page, session);
        page.text
    }

    fn counters(&self, page: &mut Page) {
        let counted = self.counted();
        page.head(
            "spillproof_jobs_ended_total",
            "counter",
            "Jobs that ended, by how.",
        );
        for state in [State::Done, State::Failed, State::Stopped] {
            let count = counted.ended.get(state.text()).copied().unwrap_or_default();
            page.line(
                "spillproof_jobs_ended_total",
                &label("state", state.text()),
                count as f64,
            );
        }
        for (name, help, sum) in [
            (
                "spillproof_job_wait_seconds",
                "Seconds that jobs waited.",
                counted.waited,
            ),
            (
                "spillproof_job_run_seconds",
                "Seconds that jobs ran.",
                counted.ran,
            ),
        ] {
            page.head(name, "summary", help);
            page.line(&format!("{name}_sum"), "", sum.seconds);
            page.line(&format!("{name}_count"), "", sum.count as f64);
        }
        page.head(
            "spillproof_step_seconds",
            "summary",
            "Seconds of the steps of jobs.",
        );
        for (step, sum) in &counted.steps {
            page.line("spillproof_step_seconds_sum", &label("step", step), sum.seconds);
            page.line(
                "spillproof_step_seconds_count",
                &label("step", step),
                sum.count as f64,
            );
        }
        page.head(
            "spillproof_refusals_total",
            "counter",
            "Answers that are errors, by their code.",
        );
        for (code, count) in &counted.refusals {
            page.line(
                "spillproof_refusals_total",
                &label("code", code.text()),
                *count as f64,
            );
        }
        page.head("spillproof_answers_total", "counter", "Answers by status.");
        for (status, count) in &counted.answers {
            page.line(
                "spillproof_answers_total",
                &label("status", &status.to_string()),
                *count as f64,
            );
        }
        page.head(
            "spillproof_witness_bytes_total",
            "counter",
            "Bytes of witnesses that came.",
        );
        page.line("spillproof_witness_bytes_total", "", counted.witness_bytes as f64);
    }
}

fn machine(page: &mut Page, session: &Session) {
    let (budget, moved) = (session.budget(), session.storage().stats());
    page.head(
        "spillproof_file_bytes_total",
        "counter",
        "Bytes of files, scratch files included, by direction.",
    );
    page.line(
        "spillproof_file_bytes_total",
        &label("direction", "read"),
        moved.bytes_read as f64,
    );
    page.line(
        "spillproof_file_bytes_total",
        &label("direction", "written"),
        moved.bytes_written as f64,
    );
    page.head(
        "spillproof_budget_bytes",
        "gauge",
        "The budget of memory: its limit, what is held of it, the most that was.",
    );
    for (kind, bytes) in [
        ("limit", budget.limit_bytes()),
        ("held", budget.held_bytes()),
        ("peak", budget.peak_bytes()),
    ] {
        page.line("spillproof_budget_bytes", &label("kind", kind), bytes as f64);
    }
    if let Some(bytes) = resident_bytes() {
        page.head(
            "spillproof_resident_bytes",
            "gauge",
            "Memory of the whole process.",
        );
        page.line("spillproof_resident_bytes", "", bytes as f64);
    }
}

/// Pages of memory that the process has now.
fn resident_bytes() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = pages.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

fn label(name: &str, value: &str) -> String {
    format!("{{{name}=\"{value}\"}}")
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    // Writing to a `String` does not fail.
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _never = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &str, value: f64) {
        let _never = writeln!(self.text, "{name}{labels} {value}");
    }
}
