//! `spillproof groth16 plan`: what a proof will take, by one process or over several ranks.

use std::path::Path;

use serde::Serialize;
use spillproof_circom::prove::{
    OverRanks, RanksPlan, plan as plan_of, plan_over_ranks as plan_of_ranks, shape_of, summary_of,
};
use spillproof_engine::Session;
use spillproof_engine::accelerator::Answer;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::plan::{Plan, Rates};
use spillproof_format::Curve;
use spillproof_gpu::accelerator::Offload;
use spillproof_groth16::{Cut, Shape};

use super::groth16_key::Key;
use super::on_gpu::{LinkBetween, OnGpu};
use super::plan;
use super::plan_on_gpu::{self, OnGpus};
use super::plan_ranks::{self, CutSeconds, PhaseSeconds, PricedCut, Reach, Speeds};
use super::plan_table::{Place, Rung};
use super::reach_svg;
use crate::args::{Global, LinkOf, OffloadName, PlannedRanks, Sharing};
use crate::failure::Failure;
use crate::link::KnownLink;
use crate::output::Output;
use crate::ranks::{self, Neighbours};
use crate::run::{Result, Run};

#[derive(Serialize)]
struct PlannedOverRanks {
    key: Key,
    cut: String,
    /// All cuts of as many ranks, over the same link.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cuts: Vec<CutSeconds>,
    /// Why it is this cut, and whose seconds these are.
    why: String,
    gpu: Option<Devices>,
    /// Of each rank, or of all of them.
    rates: Speeds,
    ranks: Vec<Plan>,
    /// Bytes from each rank to each in both exchanges; a rank's own stay with it.
    exchanges: [Vec<Vec<u64>>; 2],
    phases: Vec<PhaseSeconds>,
    seconds: f64,
    reach: Vec<Reach>,
}

/// The devices that a plan counts on.
#[derive(Serialize)]
struct Devices {
    said: String,
    /// How devices of this machine reach each other.
    links: Vec<LinkBetween>,
}

/// The speeds of ranks that have devices, and what is said of these: those of the link's file, or one like the first one
/// of `gpu` for each rank. `None` if none was asked for or measured.
fn with_devices(
    speeds: Speeds,
    curve: Curve,
    gpu: &OnGpu,
    session: &Session,
) -> Result<(Speeds, Option<Devices>)> {
    let links = match gpu {
        OnGpu::Accelerator { links, .. } => links.clone(),
        OnGpu::Off | OnGpu::None(_) => Vec::new(),
    };
    let unknown =
        |why: &str| format!("no rates of devices are known ({why}): these are seconds of processors");
    let (speeds, said) = match gpu {
        _ if speeds.accelerator().is_some() => {
            (speeds, "by the rates of devices that ranks bench measured".into())
        }
        OnGpu::Off => return Ok((speeds, None)),
        OnGpu::None(reason) => (speeds, unknown(&reason.to_string())),
        OnGpu::Accelerator { .. } if curve != Curve::Bn254 => {
            (speeds, unknown("sums over BN254 alone are theirs"))
        }
        OnGpu::Accelerator { accelerator, .. } => {
            match session.run(|| accelerator.rates(session.budget()))? {
                Answer::Done(rates) => (
                    speeds.with_devices(rates),
                    "by the rates of the first device here, measured now, for each rank".into(),
                ),
                Answer::Declined(why) => (speeds, unknown(&why)),
            }
        }
    };
    Ok((speeds, Some(Devices { said, links })))
}

/// The cut of a proof with a key, where none was said: the quickest by a plan over the link. Why, too.
///
/// # Errors
/// The engine's, and those of the link's file.
pub fn chosen_cut(
    session: &Session,
    (file, link): (&Path, &LinkOf),
    (ranks, weights): (usize, &[u64]),
    gpu: &OnGpu,
) -> Result<(Cut, String)> {
    let (shape, curve) = shape_of(session, file)?;
    let link = KnownLink::of(link, Some(curve))?;
    let speeds = Speeds::of(&link, curve, || plan::measured(session).unwrap_or_default());
    let (speeds, devices) = with_devices(speeds, curve, gpu, session)?;
    let priced = plan_ranks::priced(None, &speeds, &link.link, |cut| {
        planned(session, file, (&shape, curve), (ranks, weights, cut), &speeds)
    })?;
    let why = plan_ranks::why(None, &priced);
    let said = devices.map_or_else(String::new, |devices| format!("; {}", devices.said));
    Ok((
        priced.first().map_or(Cut::Layout, |first| first.cut),
        format!("{why}{said}"),
    ))
}

/// The plan of a proof by so many ranks of these weights and this cut.
fn planned(
    session: &Session,
    file: &Path,
    shape: (&Shape, Curve),
    (ranks, weights, cut): (usize, &[u64], Cut),
    speeds: &Speeds,
) -> Result<RanksPlan> {
    let budget_bytes = session.budget().limit_bytes();
    let accelerator = speeds.accelerator();
    let over = OverRanks {
        ranks,
        weights,
        cut,
        piece_bytes: ranks::piece_bytes(budget_bytes) as usize,
        accelerator: accelerator.as_ref(),
    };
    Ok(plan_of_ranks(session, file, shape, &over, budget_bytes)?)
}

fn plan_over_ranks(global: &Global, file: &Path, ranks: usize, on: &PlannedRanks) -> Result<()> {
    let Sharing { share, cut } = &on.sharing;
    if !share.is_empty() && share.len() != ranks {
        let shares = share.len();
        return Err(Failure::Usage(format!(
            "--share has {shares} weights, and --ranks is {ranks}"
        )));
    }
    let mut run = Run::start(global);
    let svg = on.svg.as_deref().map(Output::create).transpose()?;
    let alone = Neighbours { rank: 0, ranks: 1 };
    let gpu = OnGpu::open_of_rank(&on.gpu.gpu, Offload::Measured, alone, false)?;
    let session = run.session(ByteSize::Auto)?;
    let summary = summary_of(&session, file)?;
    let (shape, asked) = ((&summary.shape, summary.curve), cut.cut());
    let link = KnownLink::of(&on.link, Some(summary.curve))?;
    let speeds = Speeds::of(&link, summary.curve, || {
        plan::measured(&session).unwrap_or_default()
    });
    let (speeds, devices) = with_devices(speeds, summary.curve, &gpu, &session)?;
    let planned =
        |ranks, weights: &[u64], cut| planned(&session, file, shape, (ranks, weights, cut), &speeds);
    let priced = plan_ranks::priced(asked, &speeds, &link.link, |cut| planned(ranks, share, cut))?;
    let mut why = plan_ranks::why(asked, &priced);
    let cuts = priced.iter().map(|of| CutSeconds {
        cut: plan_ranks::name_of_cut(of.cut),
        seconds: of.seconds(),
    });
    let mut cuts: Vec<_> = cuts.collect();
    let Some(of_cut) = priced.into_iter().next() else {
        unreachable!("a plan, or an error");
    };
    let seconds = of_cut.seconds();
    let PricedCut { cut, plan, phases } = of_cut;
    let reach = plan_ranks::reach(&speeds, &link, |ranks| planned(ranks, &[], cut))?;
    if let Some(svg) = svg {
        let rows = summary.shape.log_domain;
        svg.write(reach_svg::render(
            &format!("a Groth16 proof of 2^{rows} rows"),
            &reach,
        ))?;
    }
    let key = Key::of(file, &summary);
    key.tell(&run);
    run.say(plan_ranks::text(&plan, &speeds, &phases, (&link.called, &reach)));
    if let Some(Devices { said, links }) = &devices {
        why += &format!("; {said}; exchanges go by the host, over {}", link.called);
        let links = links.iter().map(|link| format!("; {link}"));
        why.extend(links);
    }
    match ranks {
        // One rank cuts nothing.
        1 => cuts.clear(),
        _ => run.say(&why),
    }
    let outcome = PlannedOverRanks {
        key,
        cut: plan_ranks::name_of_cut(cut),
        cuts,
        why,
        gpu: devices,
        ranks: plan_ranks::at(&plan, &speeds),
        rates: speeds,
        exchanges: plan.exchanges,
        seconds,
        phases,
        reach,
    };
    run.finish_without_table("groth16 plan", &outcome)?;
    Ok(())
}

#[derive(Serialize)]
struct Planned {
    key: Key,
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

/// Plans a proof with a key, over ranks if some are asked for.
///
/// # Errors
/// The engine's, and those of the user's files.
pub fn plan_key(global: &Global, file: &Path, asks_for_ladder: bool, on: &PlannedRanks) -> Result<()> {
    on.gpu.check_options()?;
    if let Some(ranks) = on.ranks {
        if on.gpu.offload != OffloadName::Measured {
            return Err(Failure::Usage(
                "--offload is for a plan without --ranks: with them, each job counts where it is quicker"
                    .into(),
            ));
        }
        return plan_over_ranks(global, file, ranks as usize, on);
    }
    let mut run = Run::start(global);
    let gpu = OnGpu::open(&on.gpu.gpu, on.gpu.offload.into())?;
    let session = run.session_on(ByteSize::Auto, gpu.accelerator())?;
    let summary = summary_of(&session, file)?;
    let shape = (&summary.shape, summary.curve);
    let planned = |budget_bytes| -> Result<Plan> { Ok(plan_of(&session, file, shape, budget_bytes)?) };
    let plan = planned(session.budget().limit_bytes())?;
    let measured = plan::measured(&session);
    let rates = measured.unwrap_or_default();
    let plan = plan.at(&rates);
    let key = Key::of(file, &summary);
    key.tell(&run);
    let place = Place::of(&session, true, measured.is_some());
    let ladder = match asks_for_ladder {
        true => place.climb(&plan, &rates, planned)?,
        false => Vec::new(),
    };
    run.say(match asks_for_ladder {
        true => place.ladder(&ladder),
        false => place.steps(&plan),
    });
    let on_gpus = plan_on_gpu::planned(&gpu, &session, || None, &plan)?;
    if let Some(on_gpus) = &on_gpus {
        run.say(on_gpus.said());
    }
    let total = plan.of(None);
    let outcome = Planned {
        key,
        peak_bytes: total.peak_bytes,
        bytes_read: total.bytes_read,
        bytes_written: total.bytes_written,
        seconds: total.seconds,
        rates,
        plan,
        ladder,
        gpu: on_gpus,
    };
    run.finish_without_table("groth16 plan", &outcome)?;
    Ok(())
}
