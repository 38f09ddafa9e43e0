//! `spillproof groth16 plan`: what a proof will take, by one process or over several ranks.

use std::path::Path;

use serde::Serialize;
use spillproof_circom::prove::{
    OverRanks, RanksPlan, plan as plan_of, plan_over_ranks as plan_of_ranks, summary_of,
};
use spillproof_engine::budget::ByteSize;
use spillproof_engine::plan::{Plan, Rates};
use spillproof_groth16::Cut;

use super::groth16_key::Key;
use super::plan;
use super::plan_ranks::{self, CutSeconds, PhaseSeconds, Reach, Speeds};
use super::plan_table::{Place, Rung};
use super::reach_svg;
use crate::args::{Global, PlannedRanks, Sharing};
use crate::failure::Failure;
use crate::link::KnownLink;
use crate::output::Output;
use crate::ranks;
use crate::run::{Result, Run};

#[derive(Serialize)]
struct PlannedOverRanks {
    key: Key,
    cut: String,
    /// All cuts of as many ranks, over the same link.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cuts: Vec<CutSeconds>,
    /// Of each rank, or of all of them.
    rates: Speeds,
    ranks: Vec<Plan>,
    /// Bytes from each rank to each in both exchanges; a rank's own stay with it.
    exchanges: [Vec<Vec<u64>>; 2],
    phases: Vec<PhaseSeconds>,
    seconds: f64,
    reach: Vec<Reach>,
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
    let session = run.session(ByteSize::Auto)?;
    let budget_bytes = session.budget().limit_bytes();
    let summary = summary_of(&session, file)?;
    let shape = (&summary.shape, summary.curve);
    let cut = Cut::from(*cut);
    let planned = |ranks, weights: &[u64], cut| -> Result<RanksPlan> {
        let over = OverRanks {
            ranks,
            weights,
            cut,
            piece_bytes: ranks::piece_bytes(budget_bytes) as usize,
        };
        Ok(plan_of_ranks(&session, file, shape, &over, budget_bytes)?)
    };
    let plan = planned(ranks, share, cut)?;
    let link = KnownLink::of(&on.link, Some(summary.curve))?;
    let speeds = Speeds::of(&link, summary.curve, || {
        plan::measured(&session).unwrap_or_default()
    });
    let phases = plan_ranks::phases(&plan, &speeds, &link.link);
    let reach = plan_ranks::reach(&speeds, &link, |ranks| planned(ranks, &[], cut))?;
    let seconds = |phases: &[PhaseSeconds]| phases.iter().map(|phase| phase.seconds).sum();
    let mut cuts = Vec::new();
    for other in Cut::ALL.into_iter().filter(|_| ranks > 1) {
        let of_cut = match other == cut {
            true => seconds(&phases),
            // One that has no plan, as for a key that is dealt by the layout, is none to choose.
            false => match planned(ranks, share, other) {
                Ok(plan) => seconds(&plan_ranks::phases(&plan, &speeds, &link.link)),
                Err(_) => continue,
            },
        };
        cuts.push(CutSeconds {
            cut: plan_ranks::name_of_cut(other),
            seconds: of_cut,
        });
    }
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
    if let Some(line) = plan_ranks::quickest(&cuts) {
        run.say(line);
    }
    let outcome = PlannedOverRanks {
        key,
        cut: plan_ranks::name_of_cut(cut),
        cuts,
        ranks: plan_ranks::at(&plan, &speeds),
        rates: speeds,
        exchanges: plan.exchanges,
        seconds: seconds(&phases),
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
}

/// Plans a proof with a key, over ranks if some are asked for.
///
/// # Errors
/// The engine's, and those of the user's files.
pub fn plan_key(global: &Global, file: &Path, asks_for_ladder: bool, on: &PlannedRanks) -> Result<()> {
    if let Some(ranks) = on.ranks {
        return plan_over_ranks(global, file, ranks as usize, on);
    }
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
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
    };
    run.finish_without_table("groth16 plan", &outcome)?;
    Ok(())
}
