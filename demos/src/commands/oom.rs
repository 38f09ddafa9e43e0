//! `spillproof demo oom`: one MSM three times, each in a process of its own.
//!
//! 1. In memory, in a control group with a hard limit: killed by the kernel. If not, the demonstration fails.
//! 2. Streamed, in a group with the same limit: finishes.
//! 3. In memory, without a limit: the same point.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use spillproof_cgroup_tests::{Group, Outcome as Ended};
use spillproof_engine::budget::ByteSize;

use crate::args::Global;
use crate::failure::Failure;
use crate::report::table::{bytes, grid};
use crate::run::{Result, Run};

/// Memory outside of the budget: code, stacks, the heap of the libraries, and pages of the program's file.
pub const BESIDE_BUDGET_BYTES: u64 = 32 << 20;
const MEMORY_BYTES: u64 = 32 << 20;
const TIMEOUT: Duration = Duration::from_secs(3600);

#[derive(Serialize)]
struct Outcome {
    log_n: u32,
    budget_bytes: u64,
    limit_bytes: u64,
    in_memory_is_killed: bool,
    streamed_peak_bytes: u64,
    streamed_seconds: f64,
    unlimited_peak_bytes: Option<u64>,
    point: String,
}

/// Runs the demo.
///
/// # Errors
/// [`Failure::Group`] without the right to set a limit, [`Failure::Demonstration`] for another outcome.
pub fn run(global: &Global, log_n: u32) -> Result<()> {
    let run = Run::start(global);
    let budget_bytes = global.memory.unwrap_or(ByteSize::Bytes(MEMORY_BYTES)).resolve()?;
    let limit_bytes = budget_bytes + BESIDE_BUDGET_BYTES;
    let program = std::env::current_exe().map_err(Failure::file("/proc/self/exe"))?;
    let input_bytes = 96u64 << log_n;
    run.say(format_args!(
        "an MSM of 2^{log_n} points ({} of points and scalars), under a hard limit of {} (page cache counts, no swap)",
        bytes(input_bytes),
        bytes(limit_bytes)
    ));

    let group = Group::create(limit_bytes)?;
    let log_n_text = log_n.to_string();
    let killed = child(
        &group,
        &program,
        &["msm", "--log-n", &log_n_text, "--in-memory", "--json"],
    )?;
    was_killed(&killed, "the in-memory MSM", limit_bytes, "--log-n")?;
    run.say("1. in memory (halo2-axiom's best_multiexp): killed by the kernel");
    drop(group);

    let group = Group::create(limit_bytes)?;
    let budget = budget_bytes.to_string();
    let mut arguments = vec!["msm", "--log-n", &log_n_text, "--json", "--memory", &budget];
    let dir = global.dir.as_ref().map(|dir| dir.display().to_string());
    if let Some(dir) = &dir {
        arguments.extend(["--dir", dir]);
    }
    let streamed = child(&group, &program, &arguments)?;
    let point = point_of(&streamed, "the streamed MSM")?;
    drop(group);
    run.say("2. streamed from disk: finished");

    let group = Group::create(input_bytes * 8 + (512 << 20))?;
    let unlimited = child(
        &group,
        &program,
        &["msm", "--log-n", &log_n_text, "--in-memory", "--json"],
    )?;
    if point_of(&unlimited, "the unlimited in-memory MSM")? != point {
        return Err(Failure::Different(
            "the streamed MSM and the one in memory".into(),
        ));
    }
    run.say("3. in memory again, without the limit: the same point");
    run.say(format_args!("   {point}\n"));
    run.say(
        grid(
            &["", "limit", "peak", "seconds", "outcome"],
            &[
                row("in memory", Some(limit_bytes), &killed, "killed"),
                row("streamed", Some(limit_bytes), &streamed, "finished"),
                row("in memory", None, &unlimited, "finished, same point"),
            ],
            usize::MAX,
        )
        .trim_end(),
    );

    let outcome = Outcome {
        log_n,
        budget_bytes,
        limit_bytes,
        in_memory_is_killed: true,
        streamed_peak_bytes: streamed.figures.peak_bytes,
        streamed_seconds: streamed.seconds,
        unlimited_peak_bytes: Some(unlimited.figures.peak_bytes),
        point,
    };
    run.finish_without_table("demo oom", &outcome)?;
    Ok(())
}

pub(super) fn row(how: &str, limit_bytes: Option<u64>, ended: &Ended, outcome: &str) -> [String; 5] {
    let limit = limit_bytes.map_or("none".into(), bytes);
    [
        how.into(),
        limit,
        bytes(ended.figures.peak_bytes),
        format!("{:.2}", ended.seconds),
        outcome.into(),
    ]
}

pub(super) fn child(group: &Group, program: &PathBuf, arguments: &[&str]) -> Result<Ended> {
    Ok(group.run(program, arguments, &[], TIMEOUT)?)
}

fn point_of(ended: &Ended, what: &str) -> Result<String> {
    succeeded(ended, what)?;
    let output: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap_or_default();
    let point = output["result"]["point"].as_str().map(ToOwned::to_owned);
    point.ok_or_else(|| Failure::Demonstration(format!("{what} printed no point: {}", ended.stdout.trim())))
}

/// Whether the kernel killed a child that has to be killed for the demonstration to mean something.
pub(super) fn was_killed(ended: &Ended, what: &str, limit_bytes: u64, larger: &str) -> Result<()> {
    if ended.is_oom_killed() {
        return Ok(());
    }
    let how = match ended.status.success() {
        true => "it finished".to_owned(),
        false => format!("{}: {}", ended.status, last_words(ended)),
    };
    Err(Failure::Demonstration(format!(
        "{what} was not killed at {}: take a larger {larger} or a smaller --memory ({how})",
        bytes(limit_bytes)
    )))
}

/// Standard error without the events of progress.
fn last_words(ended: &Ended) -> String {
    let lines = ended.stderr.lines().filter(|line| !line.starts_with('{'));
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Whether a child came to its end.
pub(super) fn succeeded(ended: &Ended, what: &str) -> Result<()> {
    if ended.status.success() {
        return Ok(());
    }
    let killed = if ended.is_oom_killed() {
        ", killed by the kernel"
    } else {
        ""
    };
    Err(Failure::Demonstration(format!(
        "{what} failed ({}{killed}, peak {}): {}",
        ended.status,
        bytes(ended.figures.peak_bytes),
        last_words(ended)
    )))
}
