//! `spillproof-bench scaling`: keys and a proof on several numbers of cores, step by step.
//!
//! Of each step: seconds, the speed-up over the first number of cores, and, on the last one, its work
//! (processors' time), the cores that were busy on average, and the shares of its time in which one thread
//! ran or none. `serial` is the part of the step that does not get faster with cores, by Karp and Flatt,
//! *Measuring parallel processor performance* (1990): (1/S - 1/p) / (1 - 1/p) for a speed-up of S on p times
//! as many cores.
//!
//! More cores than the machine has are emulated ([`SlowCores`]); times are then those of real cores: divided
//! by the factor by which the emulated cores are slower.

use std::fs;
use std::thread;

use serde::Serialize;
use spillproof_cgroup_tests::{Refusal, SlowCores};
use spillproof_circuits::{Kind, System};
use spillproof_cli::args::Global;
use spillproof_cli::failure::Failure;
use spillproof_cli::report::progress::Progress;
use spillproof_cli::report::svg::Picture;
use spillproof_cli::report::table::{bytes, grid};
use spillproof_cli::run::{Result, Run};
use spillproof_engine::budget::ByteSize;

use crate::args::Scaling;
use crate::child::{Prover, Statement, Subject};
use crate::median;
use crate::prover::Folder;
use crate::timeline::{Busy, Timeline};

const MEMORY: ByteSize = ByteSize::Bytes(96 << 20);
const EMULATED_CORES: usize = 16;

#[derive(Serialize)]
struct Outcome {
    circuit: Kind,
    k: u32,
    budget_bytes: Option<u64>,
    runs: usize,
    on: Vec<OnCores>,
    /// Numbers of cores that could not be emulated, and why.
    skipped: Vec<String>,
}

/// All runs with one number of cores.
#[derive(Serialize)]
struct OnCores {
    cores: usize,
    emulated: bool,
    steps: Vec<Step>,
}

/// A step, or a whole phase: medians.
#[derive(Debug, Clone, Serialize)]
struct Step {
    phase: String,
    /// Empty for the phase.
    step: String,
    seconds: f64,
    work_seconds: f64,
    none_seconds: f64,
    one_seconds: f64,
}

/// Measures.
///
/// # Errors
/// The engine's and halo2's; [`Failure::Demonstration`] for a child that fails.
pub fn run(global: &Global, args: &Scaling) -> Result<()> {
    if args.runs == 0 {
        return Err(Failure::Usage("--runs must be at least 1".into()));
    }
    let mut run = Run::start(global);
    let session = run.session(MEMORY)?;
    let dir = Folder::new(session.dir())?;
    let (circuit, k) = (args.circuit, args.k);
    let params = match &args.params {
        Some(file) => file.clone(),
        None => dir.params(System::Axiom, k)?,
    };
    let here = thread::available_parallelism().map_or(1, |cores| cores.get());
    let mut cores: Vec<usize> = args.cores.iter().map(|&cores| cores.into()).collect();
    if cores.is_empty() {
        cores = vec![1, here, EMULATED_CORES];
        cores.sort_unstable();
        cores.dedup();
    }
    let budget_bytes = match global.memory.unwrap_or(MEMORY) {
        ByteSize::Auto => None,
        _ => Some(session.budget().limit_bytes()),
    };
    let mut outcome = Outcome {
        circuit,
        k,
        budget_bytes,
        runs: args.runs,
        on: Vec::new(),
        skipped: Vec::new(),
    };
    let mut pictures = Vec::new();
    for cores in cores {
        let statement = Statement {
            global,
            dir: &dir.path,
            params: params.clone(),
            subject: Subject::BuiltIn {
                circuit,
                system: System::Axiom,
                k,
            },
            threads: cores,
        };
        let emulated = cores > here;
        let mut runs = Vec::new();
        for turn in 1..=args.runs {
            let _line = Progress::start(&format!(
                "{circuit:?} 2^{k} on {cores} cores, {turn} of {}",
                args.runs
            ));
            let slow = match emulated.then(|| SlowCores::of(cores)).transpose() {
                Ok(slow) => slow,
                Err(refusal @ Refusal::NoSlowCores(_)) => {
                    outcome.skipped.push(format!("SKIPPED: {refusal}"));
                    break;
                }
                Err(other) => return Err(other.into()),
            };
            let slower = slow.as_ref().map_or(1.0, |slow| 1.0 / slow.share());
            let (report, samples) = statement.sampled(Prover::Ours(budget_bytes), slow)?;
            let unreadable = || Failure::Demonstration("a run's report or samples cannot be read".into());
            let timeline = Timeline::parse(&samples, slower).ok_or_else(unreadable)?;
            let steps = steps(&report, &timeline, slower).ok_or_else(unreadable)?;
            if turn == args.runs {
                let title = format!("{circuit:?}, 2^{k} rows, {cores} cores");
                pictures.extend(picture(&title, &timeline, &steps, cores));
            }
            runs.push(steps);
        }
        if !runs.is_empty() {
            outcome.on.push(OnCores {
                cores,
                emulated,
                steps: medians(&runs),
            });
        }
    }
    run.say(render(&outcome).trim_end());
    if let Some(path) = &args.svg {
        fs::write(path, Picture::stack(pictures)).map_err(Failure::file(path))?;
    }
    run.finish("scaling", &outcome)?;
    Ok(())
}

/// A step of one run, and when it began.
struct Measured {
    step: Step,
    started_seconds: f64,
}

/// Phases and steps of keys and proof, by the report of a run; steps of one name in a phase are one.
fn steps(report: &str, timeline: &Timeline, slower: f64) -> Option<Vec<Measured>> {
    let report: serde_json::Value = serde_json::from_str(report).ok()?;
    let mut all: Vec<Measured> = Vec::new();
    for phase in report["report"]["phases"].as_array()? {
        let phase_name = phase["name"].as_str()?;
        if phase_name == "parameters" {
            continue;
        }
        let steps = phase["steps"].as_array().into_iter().flatten();
        let mut add = |step_name: &str, value: &serde_json::Value| {
            let started_seconds = value["started_seconds"].as_f64()? / slower;
            let seconds = value["seconds"].as_f64()? / slower;
            let busy = timeline.busy(started_seconds, started_seconds + seconds, slower);
            let known =
                (all.iter_mut()).find(|known| known.step.phase == phase_name && known.step.step == step_name);
            match known {
                Some(known) => known.step.add(seconds, &busy),
                None => {
                    let mut step = Step::new(phase_name, step_name);
                    step.add(seconds, &busy);
                    all.push(Measured {
                        step,
                        started_seconds,
                    });
                }
            }
            Some(())
        };
        add("", phase)?;
        for step in steps {
            add(step["name"].as_str()?, step)?;
        }
    }
    Some(all)
}

impl Step {
    fn new(phase: &str, step: &str) -> Self {
        Self {
            phase: phase.to_owned(),
            step: step.to_owned(),
            seconds: 0.0,
            work_seconds: 0.0,
            none_seconds: 0.0,
            one_seconds: 0.0,
        }
    }

    fn add(&mut self, seconds: f64, busy: &Busy) {
        self.seconds += seconds;
        self.work_seconds += busy.work_seconds;
        self.none_seconds += busy.none_seconds;
        self.one_seconds += busy.one_seconds;
    }
}

fn medians(runs: &[Vec<Measured>]) -> Vec<Step> {
    let Some((first, _)) = runs.split_first() else {
        return Vec::new();
    };
    let median_of = |index: usize, of: fn(&Step) -> f64| {
        let values = runs.iter().filter_map(|run| run.get(index));
        median(values.map(|measured| of(&measured.step)).collect())
    };
    let steps = first.iter().enumerate().map(|(index, measured)| Step {
        seconds: median_of(index, |step| step.seconds),
        work_seconds: median_of(index, |step| step.work_seconds),
        none_seconds: median_of(index, |step| step.none_seconds),
        one_seconds: median_of(index, |step| step.one_seconds),
        ..measured.step.clone()
    });
    steps.collect()
}

/// The phase of the proof.
fn picture(title: &str, timeline: &Timeline, steps: &[Measured], cores: usize) -> Option<Picture> {
    let phases = || steps.iter().filter(|measured| measured.step.step.is_empty());
    let (first, last) = (phases().next()?, phases().next_back()?);
    let marks = steps.iter().filter(|measured| !measured.step.step.is_empty());
    let marks: Vec<(String, f64)> = marks
        .map(|measured| (measured.step.step.clone(), measured.started_seconds))
        .collect();
    let span = [first.started_seconds, last.started_seconds + last.step.seconds];
    Some(timeline.picture(title, span, cores as f64, &marks))
}

/// Karp and Flatt's serial part, for a speed-up on so many times as many cores.
fn serial_part(speedup: f64, times_cores: f64) -> f64 {
    ((1.0 / speedup - 1.0 / times_cores) / (1.0 - 1.0 / times_cores)).clamp(0.0, 1.0)
}

fn render(outcome: &Outcome) -> String {
    let budget = outcome.budget_bytes.map_or("all memory".into(), bytes);
    let mut text = format!(
        "{:?}, 2^{} rows, budget {budget}, medians of {} runs\n",
        outcome.circuit, outcome.k, outcome.runs
    );
    let Some((first, _)) = outcome.on.split_first() else {
        return text + &outcome.skipped.join("\n");
    };
    for on in &outcome.on {
        let times_cores = on.cores as f64 / first.cores as f64;
        let emulated = if on.emulated { " (emulated)" } else { "" };
        text.push_str(&format!("\n{} cores{emulated}\n", on.cores));
        let headings = [
            "step",
            "seconds",
            "speed-up",
            "serial",
            "work, s",
            "busy cores",
            "one thread",
            "none",
        ];
        let rows: Vec<[String; 8]> = (on.steps.iter())
            .map(|step| {
                let base = first
                    .steps
                    .iter()
                    .find(|base| base.phase == step.phase && base.step == step.step);
                let speedup = base.map_or(0.0, |base| base.seconds / step.seconds.max(1e-9));
                let share = |seconds: f64| format!("{:.0} %", 100.0 * seconds / step.seconds.max(1e-9));
                let compared = times_cores > 1.0 && speedup > 0.0;
                [
                    match step.step.is_empty() {
                        true => step.phase.clone(),
                        false => format!("  {}", step.step),
                    },
                    format!("{:.3}", step.seconds),
                    if compared {
                        format!("{speedup:.2}")
                    } else {
                        "-".into()
                    },
                    match compared {
                        true => format!("{:.0} %", 100.0 * serial_part(speedup, times_cores)),
                        false => "-".into(),
                    },
                    format!("{:.3}", step.work_seconds),
                    format!("{:.1}", step.work_seconds / step.seconds.max(1e-9)),
                    share(step.one_seconds),
                    share(step.none_seconds),
                ]
            })
            .collect();
        text.push_str(&grid(&headings, &rows, rows.len()));
    }
    text + &outcome.skipped.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_serial_part_by_karp_and_flatt() {
        assert!(serial_part(2.0, 2.0).abs() < 1e-9);
        assert!((serial_part(1.0, 2.0) - 1.0).abs() < 1e-9);
        // A tenth is serial: on 16 cores 1/(0.1 + 0.9/16).
        assert!((serial_part(1.0 / (0.1 + 0.9 / 16.0), 16.0) - 0.1).abs() < 1e-9);
    }

    #[test]
    fn steps_of_a_report_in_real_seconds() {
        let step = |name: &str, started: f64, seconds: f64| serde_json::json!({ "name": name, "started_seconds": started, "seconds": seconds });
        let mut phase = step("prove", 8.0, 16.0);
        phase["steps"] = serde_json::json!([step("quotient", 8.0, 4.0), step("quotient", 16.0, 4.0)]);
        let report = serde_json::json!({ "report": { "phases": [step("parameters", 0.0, 8.0), phase] } });
        let timeline = Timeline::parse("seconds,processor_seconds\n0,0\n8,0\n24,2\n", 8.0).expect("samples");
        let steps = steps(&report.to_string(), &timeline, 8.0).expect("a report");
        let found: Vec<_> = (steps.iter())
            .map(|measured| {
                (
                    measured.step.step.as_str(),
                    measured.step.seconds,
                    measured.started_seconds,
                )
            })
            .collect();
        assert_eq!(found, [("", 2.0, 1.0), ("quotient", 1.0, 1.0)]);
        assert!(
            (steps[0].step.one_seconds - 2.0).abs() < 1e-6,
            "{:?}",
            steps[0].step
        );
        let outcome = Outcome {
            circuit: Kind::Chain,
            k: 8,
            budget_bytes: None,
            runs: 1,
            on: vec![OnCores {
                cores: 16,
                emulated: true,
                steps: medians(&[steps]),
            }],
            skipped: vec!["SKIPPED: why".into()],
        };
        let text = render(&outcome);
        assert!(
            text.contains("16 cores (emulated)")
                && text.contains("  quotient")
                && text.ends_with("SKIPPED: why"),
            "{text}"
        );
    }
}
