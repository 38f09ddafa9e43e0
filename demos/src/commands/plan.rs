//! `spillproof plan`: memory, bytes and seconds of keys and a proof of a built-in circuit, step by step, before the work.

use serde::Serialize;
use spillproof::Session;
use spillproof::budget::ByteSize;
use spillproof::plan::{Plan, Rates, Step};

use super::on_gpu::OnGpu;
use super::plan_on_gpu::{self, OnGpus};
use crate::args::{self, Global, Shape};
use crate::report::steps;
use crate::report::table::{bytes, grid};
use crate::run::{Result, Run};
use crate::systems;
use spillproof_circuits::{Kind, System};

const HEADINGS: [&str; 6] = ["step", "peak lease", "passes", "read", "written", "seconds"];

#[derive(Serialize)]
struct Outcome {
    circuit: Kind,
    system: System,
    k: u32,
    scheme: &'static str,
    peak_bytes: u64,
    bytes_read: u64,
    bytes_written: u64,
    seconds: f64,
    rates: Rates,
    plan: Plan,
    /// The jobs that GPUs would do, if they were asked for.
    gpu: Option<OnGpus>,
}

/// Prints the plan.
///
/// # Errors
/// The engine's: a budget that is too small, with the smallest that works; of a GPU that was named and cannot be used.
pub fn run(global: &Global, args: &args::Plan) -> Result<()> {
    let shape = &args.shape;
    shape.check()?;
    args.on.check(shape.system)?;
    let mut run = Run::start(global);
    let gpu = OnGpu::open(&args.on.gpu, args.on.offload.into())?;
    let session = run.session(ByteSize::Auto)?;
    // A budget that is too small is refused with the smallest that works, not with the one that measuring takes.
    systems::plan(&session, shape, &Rates::default())?;
    let measured = measured(&session);
    let rates = measured.unwrap_or_default();
    let plan = systems::plan(&session, shape, &rates)?;
    let total = plan.of(None);
    run.say(render(&plan, measured.is_some()));
    let on_gpus = plan_on_gpu::planned(&gpu, &session, shape, &plan)?;
    if let Some(on_gpus) = &on_gpus {
        run.say(on_gpus.said());
    }
    let outcome = Outcome {
        circuit: shape.circuit,
        system: shape.system,
        k: shape.k,
        scheme: shape.opening(),
        peak_bytes: total.peak_bytes,
        bytes_read: total.bytes_read,
        bytes_written: total.bytes_written,
        seconds: total.seconds,
        rates,
        plan,
        gpu: on_gpus,
    };
    run.finish("plan", &outcome)?;
    Ok(())
}

/// The plan of a proof: a budget that is too small is refused before the parameters are made. With `is_watched` the plan has
/// measured rates, and progress is shown from now on.
///
/// # Errors
/// As [`run`].
pub fn expect(session: &Session, shape: &Shape, is_watched: bool) -> Result<()> {
    let mut plan = systems::plan(session, shape, &Rates::default())?;
    if is_watched {
        if let Some(rates) = measured(session) {
            plan = systems::plan(session, shape, &rates)?;
        }
        steps::expect(&plan);
    }
    Ok(())
}

/// The rates of this machine; `None` where the disk or the budget has no room to measure them, which is no reason not to go on.
pub fn measured(session: &Session) -> Option<Rates> {
    match session.run(|| Rates::measure(session.workspace())) {
        Ok(rates) => Some(rates),
        Err(error) => {
            tracing::warn!(
                "seconds are those of a usual machine, since this one's rates could not be measured: {error}"
            );
            None
        }
    }
}

/// The plan as a table; whether its seconds follow from rates of this machine.
pub fn render(plan: &Plan, is_measured: bool) -> String {
    let mut rows: Vec<[String; 6]> = Vec::new();
    let mut phase = None;
    for step in &plan.steps {
        if phase != Some(step.phase) {
            phase = Some(step.phase);
            rows.push(cells(step.phase.name(), &plan.of(phase)));
        }
        rows.push(cells(&format!("  {}", step.name), step));
    }
    let rule = rows.len();
    rows.push(cells("total", &plan.of(None)));
    format!(
        "{}budget: {}, the smallest that works: {}; on disk at most: {}\nseconds are estimated from rates {}, without the circuit's own synthesis",
        grid(&HEADINGS, &rows, rule),
        bytes(plan.budget_bytes),
        bytes(plan.smallest_budget_bytes),
        bytes(plan.disk_bytes),
        match is_measured {
            true => "measured now",
            false => "of a usual machine",
        }
    )
}

fn cells(name: &str, step: &Step) -> [String; 6] {
    [
        name.to_owned(),
        bytes(step.peak_bytes),
        step.passes.to_string(),
        bytes(step.bytes_read),
        bytes(step.bytes_written),
        format!("{:.2}", step.seconds),
    ]
}
