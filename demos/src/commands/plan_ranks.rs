//! Plans of a proof over several ranks: what each takes, what they send, and how long it takes over a link.
//!
//! The bytes are those of the ranks' dry runs. Seconds are a model: a phase ends when its slowest rank has
//! ended it; an exchange takes what the link takes, or a rank's disk, or the sums beside it, whichever is
//! the most.

use clap::ValueEnum;
use serde::Serialize;
use spillproof_circom::prove::RanksPlan;
use spillproof_engine::Error;
use spillproof_engine::plan::{Plan, Rates};
use spillproof_ranks::Link;

use crate::args::LinkName;
use crate::failure::Failure;
use crate::report::table::{bytes, bytes_up, duration, grid};
use crate::run::Result;

/// Ranks that are tried.
const RANKS_MAX: usize = 1024;
/// Twice as many ranks pay if they take at most this part of the time.
const PAYS: f64 = 0.9;

/// The steps of each phase. Lists of one phase are worked off at the same time.
const PHASES: [(&str, &[&[&str]]); 5] = [
    (
        "constraints, first pass",
        &[&[
            "copy of coefficients",
            "copy of the witness",
            "constraints",
            "quotient: first pass",
        ]],
    ),
    (
        "first exchange, sums",
        &[&["first exchange"], &["sum over A", "sum over B1"]],
    ),
    (
        "middle pass, or transforms of rank 0",
        &[&["quotient: middle pass", "quotient"]],
    ),
    (
        "second exchange, sums",
        &[&["second exchange"], &["sum over B2", "sum over C"]],
    ),
    (
        "last pass, sum over H, proof",
        &[&["quotient: last pass", "sum over H", "verification"]],
    ),
];

/// One phase.
#[derive(Debug, Clone, Serialize)]
pub struct PhaseSeconds {
    /// Its name.
    pub phase: &'static str,
    /// Seconds of the slowest rank, or of the link.
    pub seconds: f64,
    /// The slowest rank.
    pub slowest: usize,
    /// Seconds of the link, where there is an exchange.
    pub link_seconds: f64,
}

/// How far more ranks pay over a link.
#[derive(Debug, Clone, Serialize)]
pub struct Reach {
    /// The link.
    pub link: &'static str,
    /// Ranks, from 1 in powers of two, and the seconds that they take.
    pub seconds: Vec<(usize, f64)>,
    /// From so many ranks on, twice as many save less than a tenth.
    pub pays_up_to: usize,
}

/// Seconds of each phase over a link.
pub fn phases(plan: &RanksPlan, rates: &Rates, link: &Link) -> Vec<PhaseSeconds> {
    let plans = at(plan, rates);
    debug_assert!(
        plans
            .iter()
            .flat_map(|plan| &plan.steps)
            .all(|step| is_known(step.name)),
        "each step belongs to a phase"
    );
    let mut exchanges = plan.exchanges.iter();
    let mut seconds = Vec::new();
    for (phase, side_by_side) in PHASES {
        let of_rank = |rank: usize| {
            let of_list = |names: &&[&str]| -> f64 {
                let steps = plans[rank].steps.iter().filter(|step| names.contains(&step.name));
                steps.map(|step| step.seconds).sum()
            };
            side_by_side.iter().map(of_list).fold(0.0, f64::max)
        };
        let all = (0..plans.len()).map(|rank| (rank, of_rank(rank)));
        let slowest = all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0));
        let link_seconds = match side_by_side.len() {
            1 => 0.0,
            _ => exchanges
                .next()
                .map_or(0.0, |bytes| link.all_to_all_seconds(bytes, plan.piece_bytes)),
        };
        seconds.push(PhaseSeconds {
            phase,
            seconds: slowest.1.max(link_seconds),
            slowest: slowest.0,
            link_seconds,
        });
    }
    seconds
}

fn is_known(step: &str) -> bool {
    let steps = PHASES.iter().flat_map(|(_, side_by_side)| side_by_side.iter());
    steps.flat_map(|steps| steps.iter()).any(|known| *known == step)
}

/// The plans of the ranks, with seconds at these rates.
pub fn at(plan: &RanksPlan, rates: &Rates) -> Vec<Plan> {
    plan.of_ranks.iter().map(|plan| plan.clone().at(rates)).collect()
}

/// A link, and what it is called.
pub fn link(name: LinkName) -> (&'static str, Link) {
    // Gbit/s in each direction, and a latency that is usual there.
    let (called, gigabits, latency) = match name {
        LinkName::Gigabit => ("1 Gbit/s", 1.0, 100e-6),
        LinkName::TenGigabit => ("10 Gbit/s", 10.0, 50e-6),
        LinkName::HundredGigabit => ("100 Gbit/s", 100.0, 5e-6),
        LinkName::Nvlink => ("NVLink", 3600.0, 2e-6),
    };
    let link = Link {
        latency,
        port_bytes_per_second: gigabits * 1e9 / 8.0,
        switch_bytes_per_second: None,
    };
    (called, link)
}

/// How far more ranks pay, over each of the links. Numbers of ranks for which the budget is too small are left out.
///
/// # Errors
/// Those of `plan`.
pub fn reach(rates: &Rates, plan: impl Fn(usize) -> Result<RanksPlan>) -> Result<Vec<Reach>> {
    let counts = std::iter::successors(Some(1usize), |ranks| (*ranks < RANKS_MAX).then_some(ranks * 2));
    let mut plans: Vec<(usize, RanksPlan)> = Vec::new();
    for ranks in counts {
        match plan(ranks) {
            Ok(plan) => plans.push((ranks, plan)),
            Err(Failure::Engine(Error::BudgetTooSmall { .. })) => {}
            Err(failure) => return Err(failure),
        }
    }
    let mut reaches = Vec::new();
    for name in LinkName::value_variants() {
        let (name, link) = link(*name);
        let total = |plan: &RanksPlan| phases(plan, rates, &link).iter().map(|phase| phase.seconds).sum();
        let seconds: Vec<(usize, f64)> = plans.iter().map(|(ranks, plan)| (*ranks, total(plan))).collect();
        let pays = seconds
            .windows(2)
            .take_while(|pair| pair[1].1 <= PAYS * pair[0].1);
        let least = seconds.first().map_or(1, |(ranks, _)| *ranks);
        let pays_up_to = pays.last().map_or(least, |pair| pair[1].0);
        reaches.push(Reach {
            link: name,
            seconds,
            pays_up_to,
        });
    }
    Ok(reaches)
}

/// The table of ranks, that of phases, and how far more ranks pay.
pub fn text(
    plan: &RanksPlan,
    rates: &Rates,
    phases: &[PhaseSeconds],
    (link, reaches): (&str, &[Reach]),
) -> String {
    let row = |(rank, own): (usize, &Plan)| {
        let sent = |bytes: &Vec<Vec<u64>>| -> u64 {
            let others = bytes[rank].iter().enumerate().filter(|(other, _)| *other != rank);
            others.map(|(_, bytes)| bytes).sum()
        };
        let received = |bytes: &Vec<Vec<u64>>| -> u64 {
            let others = bytes.iter().enumerate().filter(|(other, _)| *other != rank);
            others.map(|(_, bytes)| bytes[rank]).sum()
        };
        [
            rank.to_string(),
            bytes(own.peak_bytes()),
            bytes_up(own.disk_bytes),
            bytes(plan.exchanges.iter().map(sent).sum()),
            bytes(plan.exchanges.iter().map(received).sum()),
            duration(own.of(None).seconds),
        ]
    };
    const ROWS_MAX: usize = 8;
    let plans = at(plan, rates);
    let rows: Vec<_> = plans.iter().enumerate().take(ROWS_MAX).map(row).collect();
    let mut text = grid(
        &["rank", "peak lease", "on disk", "sent", "received", "alone"],
        &rows,
        rows.len(),
    );
    if plan.of_ranks.len() > ROWS_MAX {
        text += &format!("and {} ranks more\n", plan.of_ranks.len() - ROWS_MAX);
    }
    let total: f64 = phases.iter().map(|phase| phase.seconds).sum();
    let row = |phase: &PhaseSeconds| {
        let of_link = match phase.link_seconds > 0.0 {
            true => duration(phase.link_seconds),
            false => "-".to_owned(),
        };
        [
            phase.phase.to_owned(),
            format!("rank {}", phase.slowest),
            of_link,
            duration(phase.seconds),
        ]
    };
    let mut rows: Vec<_> = phases.iter().map(row).collect();
    rows.push(["total".into(), String::new(), String::new(), duration(total)]);
    text += "\n";
    text += &grid(&["phase", "slowest", link, "time"], &rows, rows.len() - 1);
    for Reach {
        link,
        seconds,
        pays_up_to,
    } in reaches
    {
        let shown = seconds
            .iter()
            .map(|(ranks, seconds)| format!("{ranks}: {}", duration(*seconds)));
        let shown: Vec<_> = shown.collect();
        text += &format!(
            "{link}: more ranks pay up to {pays_up_to} ({})\n",
            shown.join(", ")
        );
    }
    text + "times are a model: rates of this machine for each rank, and the link's bandwidth and usual latency"
}
