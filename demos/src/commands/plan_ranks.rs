//! Plans of a proof over several ranks: what each takes, what they send, and how long it takes over a link.
//!
//! The bytes are those of the ranks' dry runs. Seconds are a model: a phase ends when its slowest rank has
//! ended it; an exchange takes what the link and a rank's disk take, or the sums beside it with one thread less
//! meanwhile, whichever is more. Of a rank with a device a step takes what the device takes for the jobs that it is
//! quicker with, or the disk.

use std::sync::Arc;

use serde::Serialize;
use spillproof_circom::prove::RanksPlan;
use spillproof_engine::Error;
use spillproof_engine::accelerator::Accelerator;
use spillproof_engine::column::side_by_side;
use spillproof_engine::plan::{Plan, Rates, Step};
use spillproof_format::Curve;
use spillproof_gpu::accelerator::DeviceRates;
use spillproof_groth16::Cut;
use spillproof_ranks::Link;

use crate::failure::Failure;
use crate::link::{KnownLink, Speed};
use crate::report::table::{bytes, bytes_up, duration, grid};
use crate::run::Result;
use crate::trial::Trial;

/// Ranks that are tried.
const RANKS_MAX: usize = 1024;
/// Twice as many ranks pay if they take at most this part of the time.
const PAYS: f64 = 0.9;

/// The job of a device that stands for these sums.
const TOGETHER: &str = "sums over A, B1, C and B2";
const OVER_THE_WITNESS: [&str; 4] = ["sum over A", "sum over B1", "sum over C", "sum over B2"];

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
        &[&["first exchange"], &[TOGETHER, "sum over A", "sum over B1"]],
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
    pub link: String,
    /// Ranks, from 1 in powers of two, and the seconds that they take.
    pub seconds: Vec<(usize, f64)>,
    /// From so many ranks on, twice as many save less than a tenth.
    pub pays_up_to: usize,
}

/// Seconds of each phase over a link.
pub fn phases(plan: &RanksPlan, speeds: &Speeds, link: &Link) -> Vec<PhaseSeconds> {
    let plans = at(plan, speeds);
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
        let link_seconds = match side_by_side.len() {
            1 => 0.0,
            _ => exchanges
                .next()
                .map_or(0.0, |bytes| link.all_to_all_seconds(bytes, plan.piece_bytes)),
        };
        let of_rank = |rank: usize| {
            let of_list = |names: &[&str]| -> f64 {
                let steps = plans[rank].steps.iter().filter(|step| names.contains(&step.name));
                steps.map(|step| step.seconds).sum()
            };
            match side_by_side {
                // A piece is read, sent and written in turn, by one of the threads that sum.
                [exchange, sums] => {
                    let moving = of_list(exchange);
                    let threads = plans[rank].threads.max(1) as f64;
                    (link_seconds + moving).max(of_list(sums) + moving / threads)
                }
                lists => lists.iter().map(|names| of_list(names)).sum(),
            }
        };
        let all = (0..plans.len()).map(|rank| (rank, of_rank(rank)));
        let slowest = all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0));
        seconds.push(PhaseSeconds {
            phase,
            seconds: slowest.1,
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

/// The plans of the ranks, with seconds at these speeds.
pub fn at(plan: &RanksPlan, speeds: &Speeds) -> Vec<Plan> {
    let of_rank = |(rank, of_rank): (usize, &Plan)| {
        let speed = speeds.get(rank, plan.of_ranks.len());
        let mut of_rank = of_rank.clone().at(&speed.rates);
        for step in &mut of_rank.steps {
            step.seconds *= speed.trial.factor(step.name);
        }
        if let Some(device) = &speed.gpu {
            on_device(&mut of_rank.steps, &speed.rates, device);
        }
        of_rank
    };
    plan.of_ranks.iter().enumerate().map(of_rank).collect()
}

/// Puts the seconds of a device in the place of a step's, where it is quicker with any of the step's jobs.
fn on_device(steps: &mut [Step], rates: &Rates, device: &DeviceRates) {
    let seconds = |step: &Step| {
        let (mut total, mut is_any) = (0.0, false);
        for offer in &step.offers {
            let Some(one) = device.seconds(&offer.job) else {
                continue;
            };
            is_any |= one.is_less_on_the_device();
            total += offer.count as f64 * one.device.min(one.processor);
        }
        is_any.then_some(total)
    };
    let mut together_disk = None;
    for step in steps.iter_mut() {
        if let Some(seconds) = seconds(step) {
            step.seconds = side_by_side(step.disk_seconds(rates), seconds);
            together_disk = together_disk.or((step.name == TOGETHER).then_some(0.0));
        }
    }
    let Some(mut disk) = together_disk else {
        return;
    };
    for step in steps
        .iter_mut()
        .filter(|step| OVER_THE_WITNESS.contains(&step.name))
    {
        disk += step.disk_seconds(rates);
        step.seconds = 0.0;
    }
    for step in steps.iter_mut().filter(|step| step.name == TOGETHER) {
        step.seconds = side_by_side(disk, step.seconds);
    }
}

/// How fast ranks are: each, as it was measured beside the others; else this machine, for each of them.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Speeds(Vec<Speed>);

impl Speeds {
    /// The speeds that `ranks bench` measured with the link. For a link with a name: the rates of `here`, and the usual
    /// corrections for the curve. Devices do nothing for other curves than BN254.
    pub fn of(link: &KnownLink, curve: Curve, here: impl FnOnce() -> Rates) -> Self {
        let mut speeds = match link.speeds.is_empty() {
            true => vec![Speed {
                rates: here(),
                trial: Trial::usual(curve),
                gpu: None,
            }],
            false => link.speeds.clone(),
        };
        for speed in speeds.iter_mut().filter(|_| curve != Curve::Bn254) {
            speed.gpu = None;
        }
        Self(speeds)
    }

    /// Gives each rank a device with these rates.
    pub fn with_devices(mut self, rates: DeviceRates) -> Self {
        self.0.iter_mut().for_each(|speed| speed.gpu = Some(rates));
        self
    }

    /// What plans are made beside, if each rank has a device.
    pub fn accelerator(&self) -> Option<Arc<dyn Accelerator>> {
        let devices: Option<Vec<DeviceRates>> = self.0.iter().map(|speed| speed.gpu).collect();
        devices?
            .first()
            .map(|rates| Arc::new(*rates) as Arc<dyn Accelerator>)
    }

    /// Of a rank among so many. Where others were measured, the slowest of those stands for each.
    fn get(&self, rank: usize, ranks: usize) -> &Speed {
        let own = (self.0.len() == ranks).then(|| self.0.get(rank)).flatten();
        let slowest = || {
            self.0
                .iter()
                .max_by(|a, b| a.sum_seconds().total_cmp(&b.sum_seconds()))
        };
        own.or_else(slowest).unwrap_or(&self.0[0])
    }
}

impl Speed {
    /// Of an addition of the sums, which are most of a proof.
    fn sum_seconds(&self) -> f64 {
        self.trial.factor("sum over A") / self.rates.additions
    }
}

/// How far more ranks pay, over each link with a name, and over the one that was asked for. Numbers of ranks for
/// which the budget is too small are left out.
///
/// # Errors
/// Those of `plan`.
pub fn reach(
    speeds: &Speeds,
    asked: &KnownLink,
    plan: impl Fn(usize) -> Result<RanksPlan>,
) -> Result<Vec<Reach>> {
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
    let named: Vec<KnownLink> = KnownLink::all().collect();
    let is_named = named.iter().any(|known| known.link == asked.link);
    let asked = (!is_named).then(|| asked.clone());
    for KnownLink { called, link, .. } in named.into_iter().chain(asked) {
        let total = |plan: &RanksPlan| {
            phases(plan, speeds, &link)
                .iter()
                .map(|phase| phase.seconds)
                .sum()
        };
        let seconds: Vec<(usize, f64)> = plans.iter().map(|(ranks, plan)| (*ranks, total(plan))).collect();
        let pays = seconds
            .windows(2)
            .take_while(|pair| pair[1].1 <= PAYS * pair[0].1);
        let least = seconds.first().map_or(1, |(ranks, _)| *ranks);
        let pays_up_to = pays.last().map_or(least, |pair| pair[1].0);
        reaches.push(Reach {
            link: called,
            seconds,
            pays_up_to,
        });
    }
    Ok(reaches)
}

/// The table of ranks, that of phases, and how far more ranks pay.
pub fn text(
    plan: &RanksPlan,
    speeds: &Speeds,
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
    let plans = at(plan, speeds);
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
    text + "times are a model: speeds of the ranks that were measured, else of this machine, and the link's bandwidth and usual latency"
}

/// How long a proof takes by a cut.
#[derive(Serialize)]
pub struct CutSeconds {
    /// As `--cut` has it.
    pub cut: String,
    /// Of all phases.
    pub seconds: f64,
}

/// As `--cut` has it.
pub fn name_of_cut(cut: Cut) -> String {
    format!("{cut:?}").to_lowercase()
}

/// A cut, with its plan and its phases over a link.
pub struct PricedCut {
    /// The cut.
    pub cut: Cut,
    /// The plan.
    pub plan: RanksPlan,
    /// Its phases.
    pub phases: Vec<PhaseSeconds>,
}

impl PricedCut {
    /// Of all phases.
    pub fn seconds(&self) -> f64 {
        self.phases.iter().map(|phase| phase.seconds).sum()
    }
}

/// The cuts that have a plan: for a key that is dealt by the layout there is no other. The one that is `asked` for comes
/// first, or else the quickest; of two that take as long, the first of [`Cut::ALL`].
///
/// # Errors
/// Of the plan of the cut that is asked for, or of the first one if there is no plan of any.
pub fn priced(
    asked: Option<Cut>,
    speeds: &Speeds,
    link: &Link,
    plan: impl Fn(Cut) -> Result<RanksPlan>,
) -> Result<Vec<PricedCut>> {
    let (mut priced, mut first_error) = (Vec::new(), None);
    for cut in Cut::ALL {
        match plan(cut) {
            Ok(plan) => priced.push(PricedCut {
                cut,
                phases: phases(&plan, speeds, link),
                plan,
            }),
            Err(error) if asked == Some(cut) => return Err(error),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    priced.sort_by(|a, b| {
        let is_other = |of: &PricedCut| asked.is_some() && asked != Some(of.cut);
        (is_other(a).cmp(&is_other(b))).then(a.seconds().total_cmp(&b.seconds()))
    });
    match (priced.is_empty(), first_error) {
        (true, Some(error)) => Err(error),
        _ => Ok(priced),
    }
}

/// All cuts beside each other, and which is taken.
pub fn why(asked: Option<Cut>, priced: &[PricedCut]) -> String {
    let times = priced
        .iter()
        .map(|of| format!("{} {}", name_of_cut(of.cut), duration(of.seconds())));
    let times = times.collect::<Vec<_>>().join(", ");
    let quickest = priced.iter().min_by(|a, b| a.seconds().total_cmp(&b.seconds()));
    let quickest = quickest.map_or_else(String::new, |of| name_of_cut(of.cut));
    match asked {
        Some(_) => format!("cuts: {times}; --cut {quickest} is the quickest"),
        None => format!("cuts: {times}; taken is {quickest}, the quickest"),
    }
}
