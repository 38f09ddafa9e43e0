//! Reports of runs: phases with time, bytes and memory ([`Recorder`]), their steps ([`steps`]), the remaining
//! time ([`forecast`]), the memory over time ([`curve`]), and the same as a table ([`table`]), a picture
//! ([`svg`]), a page ([`html`]) or JSON.
//!
//! A program that knows its phases holds a [`Recorder`]. In any other one, the drop-ins report what the
//! environment asks for ([`environment`]).

#![warn(missing_docs)]

pub mod axis;
pub mod curve;
pub mod device;
pub mod environment;
mod event;
pub mod forecast;
pub mod html;
pub mod machine;
pub mod progress;
pub mod spent;
pub mod steps;
pub mod svg;
pub mod table;
pub mod wear;

use std::cell::OnceCell;
use std::path::Path;
use std::time::Instant;

use serde::ser::{Serialize, SerializeStruct, Serializer};
use spillproof_engine::Session;
use spillproof_engine::storage::Storage;

use curve::{Curve, Sampler};
use device::Crossed;
use progress::Progress;
use spent::Spent;

/// The bound of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// Waiting for the disk took more than half of the time.
    Disk,
    /// It did not, and threads that could run waited for a processor more than half as long as they ran:
    /// other processes, or a control group's quota, had it.
    Others,
    /// Neither: the processors.
    Compute,
}

impl Bound {
    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Others => "other processes",
            Self::Compute => "compute",
        }
    }

    /// The verdict in one word, for a narrow column.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Others => "others",
            Self::Compute => "compute",
        }
    }

    /// The bound of `seconds`.
    fn of(seconds: f64, waited: Waited) -> Self {
        if waited.for_disk * 2.0 > seconds {
            Self::Disk
        } else if waited.for_processor * 2.0 > waited.ran && waited.for_processor > seconds / 10.0 {
            Self::Others
        } else {
            Self::Compute
        }
    }
}

/// Seconds of all threads together.
#[derive(Clone, Copy)]
struct Waited {
    for_disk: f64,
    /// Of threads that could run.
    for_processor: f64,
    /// On a processor.
    ran: f64,
}

/// Follows the name of a phase that failed.
pub const FAILED: &str = " (failed)";

/// One phase of a run.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// From the start of the run to its own.
    pub started_seconds: f64,
    /// From start to end.
    pub seconds: f64,
    /// Bytes that the engine read from files.
    pub bytes_read: u64,
    /// Bytes that the engine wrote to files: they wear a flash disk.
    pub bytes_written: u64,
    /// The most resident memory of the process during the phase.
    pub peak_bytes: u64,
    /// Time of processors, all threads together: over `seconds`, the cores that were busy.
    pub processor_seconds: f64,
    /// How long threads waited for the disk.
    pub waited_seconds: f64,
    /// How long threads that could run waited for a processor, all together; 0 where the kernel does not
    /// count it.
    pub queued_seconds: f64,
    /// The rest of `seconds`, with the processors' time spread over all cores: threads waited for each other
    /// or for the system.
    pub idle_seconds: f64,
    /// Disk, processor or other processes.
    pub bound: Bound,
    /// What crossed to devices and back, where there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<Crossed>,
    /// Its steps, in the order in which they began; one may lie within another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Phase>,
}

impl Phase {
    fn of(
        name: &str,
        [started_seconds, seconds]: [f64; 2],
        [before, after]: [&Spent; 2],
        peak_bytes: u64,
    ) -> Self {
        let processor_seconds = (after.processor - before.processor).as_secs_f64();
        // Threads that have ended are not counted any more.
        let queued_seconds = after.queued.saturating_sub(before.queued).as_secs_f64();
        let device = Crossed::between(before.device, after.device, seconds);
        let (before, after) = (&before.io, &after.io);
        let waited = (after.read_wait - before.read_wait) + (after.write_wait - before.write_wait);
        let idle_seconds = seconds - processor_seconds / cores() - waited.as_secs_f64();
        Self {
            name: name.to_owned(),
            started_seconds,
            seconds,
            bytes_read: after.bytes_read - before.bytes_read,
            bytes_written: after.bytes_written - before.bytes_written,
            peak_bytes,
            processor_seconds,
            waited_seconds: waited.as_secs_f64(),
            queued_seconds,
            idle_seconds: idle_seconds.max(0.0),
            bound: Bound::of(
                seconds,
                Waited {
                    for_disk: waited.as_secs_f64(),
                    for_processor: queued_seconds,
                    ran: processor_seconds,
                },
            ),
            device,
            steps: Vec::new(),
        }
    }
}

/// Whether a folder is on a tmpfs: its files are memory by another name.
pub fn is_tmpfs(dir: &Path) -> bool {
    const TMPFS_MAGIC: i128 = 0x0102_1994;
    // The type of this number differs between machines.
    rustix::fs::statfs(dir).is_ok_and(|file_system| i128::from(file_system.f_type) == TMPFS_MAGIC)
}

fn cores() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64)
}

/// The report of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// In order.
    pub phases: Vec<Phase>,
    /// The budget, if there was one.
    pub budget_bytes: Option<u64>,
    /// The limit on the whole process that the budget follows from, if there was one.
    pub limit_bytes: Option<u64>,
    /// Resident memory over time.
    pub curve: Curve,
}

/// Without the curve.
impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut report = serializer.serialize_struct("Report", 4)?;
        report.serialize_field("phases", &self.phases)?;
        report.serialize_field("budget_bytes", &self.budget_bytes)?;
        report.serialize_field("limit_bytes", &self.limit_bytes)?;
        report.serialize_field("runs_a_day", &wear::runs_a_day(self.total().bytes_written))?;
        report.end()
    }
}

impl Report {
    /// The curve from the beginning of the first phase to the end of the last one.
    pub fn curve_of_phases(&self) -> Curve {
        let (Some(first), Some(last)) = (self.phases.first(), self.phases.last()) else {
            return self.curve.clone();
        };
        self.curve
            .between(first.started_seconds, last.started_seconds + last.seconds)
    }

    /// The phase, and its step, that is under way at a time of [`Self::curve_of_phases`].
    pub(crate) fn at(&self, seconds: f64) -> String {
        let begun = self.phases.first().map_or(0.0, |phase| phase.started_seconds);
        let is_on = |phase: &&Phase| {
            let from = phase.started_seconds - begun;
            (from..from + phase.seconds).contains(&seconds)
        };
        let Some(phase) = self.phases.iter().find(is_on) else {
            return String::new();
        };
        match phase.steps.iter().rev().find(is_on) {
            None => phase.name.clone(),
            Some(step) => format!("{}: {}", phase.name, step.name),
        }
    }

    /// The whole run as one line: sums, and the highest peak.
    pub fn total(&self) -> Phase {
        let sum = |of: fn(&Phase) -> u64| self.phases.iter().map(of).sum();
        let sum_seconds = |of: fn(&Phase) -> f64| self.phases.iter().map(of).sum();
        let seconds: f64 = sum_seconds(|phase| phase.seconds);
        let bound_by = |bound: Bound| -> f64 {
            let bound = self.phases.iter().filter(|phase| phase.bound == bound);
            bound.map(|phase| phase.seconds).sum()
        };
        Phase {
            name: "total".into(),
            started_seconds: 0.0,
            seconds,
            bytes_read: sum(|phase| phase.bytes_read),
            bytes_written: sum(|phase| phase.bytes_written),
            peak_bytes: self
                .phases
                .iter()
                .map(|phase| phase.peak_bytes)
                .max()
                .unwrap_or(0),
            processor_seconds: sum_seconds(|phase| phase.processor_seconds),
            waited_seconds: sum_seconds(|phase| phase.waited_seconds),
            queued_seconds: sum_seconds(|phase| phase.queued_seconds),
            idle_seconds: sum_seconds(|phase| phase.idle_seconds),
            bound: [Bound::Disk, Bound::Others]
                .into_iter()
                .find(|bound| bound_by(*bound) * 2.0 > seconds)
                .unwrap_or(Bound::Compute),
            device: self
                .phases
                .iter()
                .filter_map(|phase| phase.device)
                .reduce(Crossed::plus),
            steps: Vec::new(),
        }
    }
}

/// A phase that has begun.
pub struct Begun {
    name: String,
    before: Spent,
    /// From the start of the run.
    started_seconds: f64,
    started: Instant,
    /// Once it has ended.
    seconds: OnceCell<f64>,
}

impl Begun {
    /// The phase has ended, well or not, unless it had already. Gives its seconds.
    pub fn ended(&self) -> f64 {
        *self.seconds.get_or_init(|| {
            let seconds = self.started.elapsed().as_secs_f64();
            steps::end(seconds);
            seconds
        })
    }
}

/// Records a run, phase by phase.
pub struct Recorder {
    sampler: Sampler,
    phases: Vec<Phase>,
    storage: Option<Storage>,
    budget_bytes: Option<u64>,
    limit_bytes: Option<u64>,
}

impl Recorder {
    /// Starts to sample memory.
    pub fn start() -> Self {
        Self {
            sampler: Sampler::start(),
            phases: Vec::new(),
            storage: None,
            budget_bytes: None,
            limit_bytes: None,
        }
    }

    /// From now on, counts the bytes that this session moves and leases.
    pub fn watch(&mut self, session: &Session) {
        self.storage = Some(session.storage().clone());
        self.sampler.watch(session.storage(), session.budget());
        steps::watch(session.storage());
        self.budget_bytes = Some(session.budget().limit_bytes());
        self.limit_bytes = session.limit().map(|limit| limit.limit_bytes);
    }

    /// Runs `work` as a phase. One that fails is recorded with [`FAILED`] after its name.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn phase<T, E>(&mut self, name: &str, work: impl FnOnce(&Progress) -> Result<T, E>) -> Result<T, E> {
        let progress = Progress::start(name);
        let begun = self.begin(name);
        let result = work(&progress);
        drop(progress);
        match result {
            Ok(_) => self.record(begun),
            Err(_) => self.record_failed(begun),
        }
        result
    }

    /// Begins a phase, for a caller that cannot hold the recorder while it works: as [`Recorder::phase`],
    /// without a line of progress.
    pub fn begin(&self, name: &str) -> Begun {
        let before = self.spent();
        let started_seconds = self.sampler.elapsed_seconds();
        curve::reset_peak();
        steps::begin(name);
        steps::take();
        Begun {
            name: name.to_owned(),
            before,
            started_seconds,
            started: Instant::now(),
            seconds: OnceCell::new(),
        }
    }

    /// Records a phase that has failed.
    pub fn record_failed(&mut self, begun: Begun) {
        begun.ended();
        self.record(Begun {
            name: format!("{}{FAILED}", begun.name),
            ..begun
        });
    }

    /// Records a phase that has ended.
    pub fn record(&mut self, begun: Begun) {
        let seconds = begun.ended();
        let (name, started_seconds) = (&begun.name, begun.started_seconds);
        let after = self.spent();
        let peak_bytes = curve::peak_bytes()
            .unwrap_or(0)
            .max(self.sampler.peak_since(started_seconds));
        let mut phase = Phase::of(
            name,
            [started_seconds, seconds],
            [&begun.before, &after],
            peak_bytes,
        );
        phase.steps = steps::take().iter().map(|step| self.step(step)).collect();
        self.phases.push(phase);
        self.sampler.mark(name, started_seconds);
    }

    fn step(&self, step: &steps::Step) -> Phase {
        let seconds = (step.ended - step.started).as_secs_f64();
        let started_seconds = self.sampler.seconds_at(step.started);
        let peak_bytes = self.sampler.peak_between(step.started, step.ended);
        Phase::of(
            step.name,
            [started_seconds, seconds],
            [&step.before, &step.after],
            peak_bytes,
        )
    }

    /// Seconds of the last phase.
    pub fn last_seconds(&self) -> f64 {
        self.phases.last().map_or(0.0, |phase| phase.seconds)
    }

    /// The report of all phases so far.
    pub fn report(&self) -> Report {
        Report {
            phases: self.phases.clone(),
            budget_bytes: self.budget_bytes,
            limit_bytes: self.limit_bytes,
            curve: self.sampler.curve(),
        }
    }

    /// Removes the oldest phases, so that `count` phases are left at most. Returns the number of removed
    /// phases.
    pub fn keep(&mut self, count: usize) -> usize {
        let surplus = self.phases.len().saturating_sub(count);
        self.phases.drain(..surplus);
        self.sampler.keep_marks(count);
        surplus
    }

    /// Lets the session go that is watched; its budget stays the report's.
    pub fn unwatch(&mut self) {
        self.storage = None;
        self.sampler.unwatch();
        steps::unwatch();
    }

    /// Stops sampling.
    pub fn finish(self) -> Report {
        Report {
            phases: self.phases,
            budget_bytes: self.budget_bytes,
            limit_bytes: self.limit_bytes,
            curve: self.sampler.finish(),
        }
    }

    fn spent(&self) -> Spent {
        Spent::with_queue(self.storage.as_ref().map(Storage::stats).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use spillproof_engine::storage::IoStats;

    use super::*;

    #[test]
    fn a_bound_is_what_most_of_the_time_went_to() {
        let bound = |for_disk: f64, for_processor: f64, ran: f64| {
            Bound::of(
                10.0,
                Waited {
                    for_disk,
                    for_processor,
                    ran,
                },
            )
        };
        assert_eq!(bound(6.0, 9.0, 2.0), Bound::Disk);
        assert_eq!(bound(1.0, 6.0, 9.0), Bound::Others);
        assert_eq!(bound(1.0, 4.0, 9.0), Bound::Compute);
        assert_eq!(bound(0.0, 0.5, 0.1), Bound::Compute, "idle: too little of both");
    }

    #[test]
    fn a_failed_phase_is_recorded_as_one() {
        let mut recorder = Recorder::start();
        assert_eq!(recorder.phase("keys", |_| Ok::<_, ()>(1)), Ok(1));
        assert_eq!(recorder.phase("prove", |_| Err::<(), _>("no")), Err("no"));
        let names: Vec<_> = recorder
            .finish()
            .phases
            .into_iter()
            .map(|phase| phase.name)
            .collect();
        assert_eq!(names, ["keys", "prove (failed)"]);
    }

    /// Three threads for each core: some have to wait.
    #[test]
    fn a_queue_for_processors_is_seen() {
        if Spent::with_queue(IoStats::default()).queued == std::time::Duration::ZERO
            && !Path::new("/proc/self/schedstat").exists()
        {
            eprintln!("SKIPPED: the kernel does not count queues (CONFIG_SCHED_INFO)");
            return;
        }
        let mut recorder = Recorder::start();
        let until = Instant::now() + std::time::Duration::from_secs(1);
        let spinning = |_: &Progress| {
            std::thread::scope(|scope| {
                let threads = 3 * cores() as usize;
                let spawned: Vec<_> = (0..threads)
                    .map(|_| scope.spawn(|| while Instant::now() < until {}))
                    .collect();
                // Counted while they live.
                std::thread::sleep(std::time::Duration::from_millis(300));
                let queued = Spent::with_queue(IoStats::default()).queued;
                drop(spawned);
                Ok::<_, ()>(queued)
            })
        };
        let queued = recorder.phase("spin", spinning).unwrap_or_default();
        assert!(queued > std::time::Duration::from_millis(100), "{queued:?}");
    }
}
