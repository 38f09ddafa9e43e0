//! What proofs with a key's file will take, by one process or by several ranks.

use std::path::Path;
use std::sync::Arc;

use spillproof_engine::Session;
use spillproof_engine::accelerator::Accelerator;
use spillproof_engine::plan::Plan;
use spillproof_format::Curve;
use spillproof_groth16::iden3::{KeyFile as KeyForm, plan_of_files, plan_of_files_over_ranks};
use spillproof_groth16::{Cut, DealtKey, Place, Shape, Shares, over_curve};
use spillproof_ranks::{Ranks, Settings};

use crate::held::{Form, Held};
use crate::{Error, Result, content};

/// What a proof with a key's file will take in a budget and on a session's threads, the reading of key and
/// witness included, at the rates of a usual machine. Steps name the jobs that the session's accelerator is offered.
/// Shape and curve are those of [`summary_of`](super::summary_of).
///
/// # Errors
/// The engine's.
pub fn plan(
    session: &Session,
    file: &Path,
    (shape, curve): (&Shape, Curve),
    budget_bytes: u64,
) -> Result<Plan> {
    let size = (budget_bytes, session.threads());
    let accelerator = session.workspace().accelerator.as_ref();
    let key = match Form::of(session.workspace(), file)?.0 {
        Form::Dealt => return Err(dealt_alone(curve, session, file)?),
        form => form.plan(),
    };
    Ok(over_curve!(curve, E => plan_of_files::<E>(shape, key, size, accelerator)?))
}

/// The error of a dealt key that one rank alone plans with.
fn dealt_alone(curve: Curve, session: &Session, file: &Path) -> Result<Error> {
    over_curve!(curve, E => {
        let key = Held::<E>::open(session.workspace(), Form::Dealt, file, &mut |_| ())?;
        let refused = key.prover(1).err();
        Ok(refused.unwrap_or_else(|| content(file, "it is no dealt key")))
    })
}

/// The weights that a key is dealt by.
fn weights_of(curve: Curve, session: &Session, file: &Path) -> Result<Vec<u64>> {
    Ok(over_curve!(curve, E => DealtKey::<E>::open(session.workspace(), file)?.weights()))
}

/// What a proof over several ranks will take.
pub struct RanksPlan {
    /// Of each rank.
    pub of_ranks: Vec<Plan>,
    /// Bytes that go from each rank to each in both exchanges: `[r][q]` from r to q.
    pub exchanges: [Vec<Vec<u64>>; 2],
    /// Bytes of a message.
    pub piece_bytes: usize,
}

/// What proofs over several ranks are planned for.
#[derive(Clone, Copy)]
pub struct OverRanks<'a> {
    /// How many ranks.
    pub ranks: usize,
    /// The share of each; none are equal shares.
    pub weights: &'a [u64],
    /// The cut.
    pub cut: Cut,
    /// Bytes of a message.
    pub piece_bytes: usize,
    /// What each rank has beside its processor: its steps then name the jobs that are offered to it.
    pub accelerator: Option<&'a Arc<dyn Accelerator>>,
}

/// What a proof over several ranks with a key of this shape will take of each rank.
///
/// # Errors
/// [`spillproof_engine::Error::BudgetTooSmall`] with the smallest budget that works.
pub fn plan_over_ranks(
    session: &Session,
    file: &Path,
    (shape, curve): (&Shape, Curve),
    over: &OverRanks<'_>,
    budget_bytes: u64,
) -> Result<RanksPlan> {
    let key = Form::of(session.workspace(), file)?.0.plan();
    let OverRanks {
        ranks,
        weights,
        cut,
        piece_bytes,
        accelerator,
    } = *over;
    let default = match key {
        KeyForm::Dealt => weights_of(curve, session, file)?,
        KeyForm::Container | KeyForm::Zkey => Vec::new(),
    };
    // A dealt key's, for as many ranks as it has.
    let default = if default.len() == ranks {
        default
    } else {
        vec![1; ranks]
    };
    let weights = if weights.is_empty() { &default[..] } else { weights };
    let shares = Shares::new(shape, weights, cut)?;
    let settings = Settings {
        piece_bytes,
        ..Settings::default()
    };
    // Ranks with the same shares take the same, but for the first one.
    let mut known: Vec<([u64; 6], usize)> = Vec::new();
    let mut of_ranks: Vec<Plan> = Vec::with_capacity(ranks);
    for rank in 0..ranks {
        let measure = shares.measure(rank);
        let found = known.iter().find(|(known, _)| *known == measure);
        if let Some((_, like)) = found {
            of_ranks.push(of_ranks[*like].clone());
            continue;
        }
        let place = Place {
            ranks: &Ranks::dry_with(rank, ranks, settings.clone()),
            shares: &shares,
        };
        let threads = session.threads();
        let plan = over_curve!(curve, E => {
            plan_of_files_over_ranks::<E>(shape, key, &place, (budget_bytes, threads), accelerator)?
        });
        known.push((measure, rank));
        of_ranks.push(plan);
    }
    Ok(RanksPlan {
        of_ranks,
        exchanges: shares.exchanges(),
        piece_bytes,
    })
}
