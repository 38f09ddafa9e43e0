//! `spillproof plan`: memory, bytes and seconds of keys and a proof of a built-in circuit, or of a proof with
//! the key of any one, step by step, before the work.

use halo2_axiom::spillproof::Numerator;
use serde::Serialize;
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::plan::{Phase, Plan, Rates};

use super::on_gpu::OnGpu;
use super::plan_on_gpu::{self, OnGpus};
use super::plan_table::{Place, Rung};
use crate::args::{self, Global, Parameters, Shape};
use crate::report::steps;
use crate::run::{Result, Run};
use crate::systems::of_program::{self, Key};
use crate::systems::{self, axiom, params};
use spillproof_circuits::{Kind, Scheme, System};

#[derive(Serialize)]
struct Outcome {
    /// A built-in one.
    circuit: Option<Kind>,
    /// The file of the key that the proof is made with.
    key: Option<String>,
    system: System,
    k: u32,
    scheme: &'static str,
    peak_bytes: u64,
    bytes_read: u64,
    bytes_written: u64,
    seconds: f64,
    rates: Rates,
    plan: Plan,
    /// Plans within other budgets, if they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ladder: Vec<Rung>,
    /// The jobs that GPUs would do, if they were asked for.
    gpu: Option<OnGpus>,
}

/// Prints the plan.
///
/// # Errors
/// The engine's: a budget that is too small, with the smallest that works; of a GPU that was named and cannot
/// be used.
pub fn run(global: &Global, args: &args::Plan) -> Result<()> {
    let built_in = args.key.is_none().then(|| args.built_in.shape()).transpose()?;
    args.on
        .check(built_in.map_or(System::Axiom, |shape| shape.system))?;
    let mut run = Run::start(global);
    let gpu = OnGpu::open(&args.on.gpu, args.on.offload.into())?;
    let session = run.session_on(ByteSize::Auto, gpu.accelerator())?;
    let planned = match &args.key {
        None => Planned::BuiltIn(args.built_in.shape()?),
        Some(path) => {
            let _current = session.install();
            let key = of_program::open_key(&mut run.recorder, path, args.built_in.scheme)?;
            args.on.check(key.system())?;
            Planned::OfProgram(key, args.built_in.scheme)
        }
    };
    // A budget that is too small is refused with the smallest that works, not with the one that measuring
    // takes.
    let plan = planned.plan(&session, session.budget().limit_bytes())?;
    let measured = measured(&session);
    let rates = measured.unwrap_or_default();
    let plan = plan.at(&rates);
    let total = plan.of(None);
    let place = Place::of(&session, args.key.is_some(), measured.is_some());
    let ladder = match args.ladder {
        true => place.climb(&plan, &rates, |budget_bytes| planned.plan(&session, budget_bytes))?,
        false => Vec::new(),
    };
    run.say(match args.ladder {
        true => place.ladder(&ladder),
        false => place.steps(&plan),
    });
    let on_gpus = plan_on_gpu::planned(&gpu, &session, || planned.numerator(), &plan)?;
    if let Some(on_gpus) = &on_gpus {
        run.say(on_gpus.said());
    }
    let outcome = Outcome {
        circuit: built_in.map(|shape| shape.circuit),
        key: args.key.as_ref().map(|path| path.display().to_string()),
        system: planned.system(),
        k: planned.k(),
        scheme: planned.opening(),
        peak_bytes: total.peak_bytes,
        bytes_read: total.bytes_read,
        bytes_written: total.bytes_written,
        seconds: total.seconds,
        rates,
        plan,
        ladder,
        gpu: on_gpus,
    };
    // The opening of a key is no part of the plan.
    run.finish_without_table("plan", &outcome)?;
    Ok(())
}

/// What is planned.
enum Planned {
    /// Keys and a proof of a built-in circuit.
    BuiltIn(Shape),
    /// A proof with a key of a file, by an opening.
    OfProgram(Key, Option<Scheme>),
}

impl Planned {
    fn plan(&self, session: &Session, budget_bytes: u64) -> Result<Plan> {
        match self {
            Self::BuiltIn(shape) => systems::plan(session, shape, budget_bytes),
            Self::OfProgram(key, scheme) => key.plan(session, *scheme, budget_bytes),
        }
    }

    /// What a GPU is offered.
    fn numerator(&self) -> Option<Numerator> {
        match self {
            Self::BuiltIn(shape) => Some(axiom::shape(shape).numerator()),
            Self::OfProgram(key, scheme) => key.numerator(*scheme),
        }
    }

    fn system(&self) -> System {
        match self {
            Self::BuiltIn(shape) => shape.system,
            Self::OfProgram(key, _) => key.system(),
        }
    }

    fn opening(&self) -> &'static str {
        match self {
            Self::BuiltIn(shape) => shape.opening(),
            Self::OfProgram(key, scheme) => key.opening(*scheme),
        }
    }

    fn k(&self) -> u32 {
        match self {
            Self::BuiltIn(shape) => shape.k,
            Self::OfProgram(key, _) => key.k(),
        }
    }
}

/// A proof that is about to be made.
pub struct Awaited<'a> {
    /// Its parameters, for `2^k` rows of a system.
    pub parameters: &'a Parameters,
    /// log2 of its rows.
    pub k: u32,
    /// The system.
    pub system: System,
    /// Whether its keys are made before it.
    pub makes_keys: bool,
}

/// Progress is shown from now on, by the plan's steps at rates that are measured here.
pub fn expect(session: &Session, awaited: &Awaited<'_>, planned: Plan) {
    let rates = measured(session).unwrap_or_default();
    let mut planned = planned.at(&rates);
    if !awaited.makes_keys {
        planned.steps.retain(|step| step.phase == Phase::Proof);
    }
    let seconds = params::seconds(awaited.parameters, awaited.k, awaited.system, &rates);
    steps::expect(Some((systems::PARAMETERS, seconds)), &planned);
}

/// The rates of this machine; `None` where the disk or the budget has no room to measure them, which is no
/// reason not to go on.
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
