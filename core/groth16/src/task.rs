//! A proof as a task of a session, or one rank's part of one: run dry first, and refused before any work if the budget or the disk is
//! too small.

use std::sync::Arc;

use ark_ff::Zero;

use super::over_ranks::{Kept, Place};
use super::{Layout, PairingCurve, Proof, ProvingKey, Shape, prove};
use spillproof_engine::Result;
use spillproof_engine::checkpoint::Checkpoints;
use spillproof_engine::column::{Column, Workspace};
use spillproof_engine::plan::{self, Phase, Plan, Rates};
use spillproof_engine::session::{Participation, Session};

/// [`prove`], as a task of `session`, to whose files key and witness belong: it waits while others leave too
/// little memory, and is run dry first.
///
/// # Errors
/// As [`prove`]; [`spillproof_engine::Error::BudgetTooSmall`] with the smallest budget that works,
/// [`spillproof_engine::Error::DiskTooSmall`], both before any work;
/// [`spillproof_engine::Error::NestedTask`], [`spillproof_engine::Error::Forked`].
pub fn prove_in<E: PairingCurve>(
    session: &Arc<Session>,
    key: &ProvingKey<E>,
    witness: &Column<E::Scalar>,
    random: [E::Scalar; 2],
) -> Result<Proof<E>> {
    E::prove_in(session, key, witness, random)
}

pub(crate) fn prove_in_over<E: PairingCurve>(
    session: &Arc<Session>,
    key: &ProvingKey<E>,
    witness: &Column<E::Scalar>,
    random: [E::Scalar; 2],
) -> Result<Proof<E>> {
    key.check_whole()?;
    let (shape, layout, threads) = (key.shape()?, Layout::of(key), session.threads());
    let minimum_bytes = move || {
        let dry_run = |workspace: &Workspace| dry_run::<E>(workspace, (&shape, layout));
        plan::smallest_budget_bytes(&dry_run, threads)
    };
    let task = session.admit(Participation::MayTakePart, minimum_bytes)?;
    let dry_run = |workspace: &Workspace| dry_run::<E>(workspace, (&shape, layout));
    plan::rehearse(&task, Phase::Proof, &[&dry_run])?;
    // Its own ledger may be that of a stream.
    prove(key, &witness.in_task(), random)
}

/// [`prove`], by several ranks together: each has a part of the work, of its own session's budget, and returns
/// the same proof, which is that of one rank. All call it with the same key, witness and shares; the random
/// values are those of rank 0. With [checkpoints](Session::checkpoints), each rank keeps what it has done until
/// [`Kept::finish`]: after a crash the same call goes on from there, with the random values of the first run.
///
/// A rank's session may have an [accelerator](Session::accelerator) of its own. Where the proof does not verify and one
/// has taken part, on any rank, all ranks make it again without; a rank whose sums are then others trusts its
/// accelerator no more.
///
/// # Errors
/// As [`prove_in`]; [`spillproof_engine::error::Invalid::Setting`] for a key of libsnark or arkworks;
/// [`spillproof_engine::Error::Ranks`] for what another rank, or a message, does;
/// [`spillproof_engine::Error::Checkpoint`]. An error of one rank is one of all.
pub fn prove_over_ranks<E: PairingCurve>(
    session: &Arc<Session>,
    place: &Place<'_>,
    key: &ProvingKey<E>,
    witness: &Column<E::Scalar>,
    random: [E::Scalar; 2],
) -> Result<(Proof<E>, Kept)> {
    E::prove_over_ranks(session, place, key, witness, random)
}

pub(crate) fn prove_over_ranks_in<E: PairingCurve>(
    session: &Arc<Session>,
    place: &Place<'_>,
    key: &ProvingKey<E>,
    witness: &Column<E::Scalar>,
    random: [E::Scalar; 2],
) -> Result<(Proof<E>, Kept)> {
    let begun = || -> Result<_> {
        key.check_rank(place.ranks.rank(), place.shares)?;
        let (shape, layout, threads) = (key.shape()?, Layout::of(key), session.threads());
        let (ranks, shares) = (place.ranks.rehearsal(), place.shares.clone());
        let checkpoints = session.checkpoints().cloned();
        let minimum_bytes = move || {
            let dry_run = |workspace: &Workspace| {
                let place = Place {
                    ranks: &ranks,
                    shares: &shares,
                };
                dry_run_of_rank::<E>(workspace, (&shape, layout), &place, checkpoints.as_ref())
            };
            plan::smallest_budget_bytes(&dry_run, threads)
        };
        let task = session.admit(Participation::MayTakePart, minimum_bytes)?;
        let dry_run = |workspace: &Workspace| {
            dry_run_of_rank::<E>(workspace, (&shape, layout), place, session.checkpoints())
        };
        plan::rehearse(&task, Phase::Proof, &[&dry_run])?;
        Ok(task)
    };
    let _task = begun().inspect_err(|error| place.ranks.give_up(error))?;
    place.prove(key, witness, random, session.checkpoints())
}

/// The plan of one rank's part of a proof, with a key of circom's tools of this shape. Key and witness are on the
/// disk.
///
/// # Errors
/// [`spillproof_engine::Error::BudgetTooSmall`] with the smallest budget that works.
pub fn plan_over_ranks<E: PairingCurve>(
    shape: &Shape,
    place: &Place<'_>,
    budget_bytes: u64,
    threads: usize,
    rates: &Rates,
) -> Result<Plan> {
    E::plan_over_ranks(shape, place, budget_bytes, threads, rates)
}

pub(crate) fn plan_of_rank<E: PairingCurve>(
    shape: &Shape,
    place: &Place<'_>,
    budget_bytes: u64,
    threads: usize,
    rates: &Rates,
) -> Result<Plan> {
    let dry_run =
        |workspace: &Workspace| dry_run_of_rank::<E>(workspace, (shape, Layout::CIRCOM), place, None);
    Plan::new(&dry_run, budget_bytes, threads, rates)
}

fn dry_run_of_rank<E: PairingCurve>(
    workspace: &Workspace,
    (shape, layout): (&Shape, Layout),
    place: &Place<'_>,
    checkpoints: Option<&Checkpoints>,
) -> Result<()> {
    let _digests = workspace.hold(layout.digests_bytes::<E>(shape, Some(place)), "frame digests")?;
    let key = ProvingKey::<E>::dry_of_rank(workspace, (shape, layout), Some(place))?;
    let witness = key.dry_witness(workspace)?;
    workspace.phase(Phase::Proof)?;
    let random = [E::Scalar::zero(); 2];
    place.rehearsed(|place| place.prove(&key, &witness, random, checkpoints).map(drop))
}

/// What a proof with a key of circom's tools of this shape will take: key and witness are on disk. Of another
/// key, [`ProvingKey::plan`].
///
/// # Errors
/// [`spillproof_engine::Error::BudgetTooSmall`] with the smallest budget that works.
pub fn plan<E: PairingCurve>(
    shape: &Shape,
    budget_bytes: u64,
    threads: usize,
    rates: &Rates,
) -> Result<Plan> {
    E::plan(shape, budget_bytes, threads, rates)
}

pub(crate) fn plan_of_circom<E: PairingCurve>(
    shape: &Shape,
    budget_bytes: u64,
    threads: usize,
    rates: &Rates,
) -> Result<Plan> {
    plan_of::<E>((shape, Layout::CIRCOM), budget_bytes, threads, rates)
}

pub(crate) fn plan_with<E: PairingCurve>(
    key: &ProvingKey<E>,
    budget_bytes: u64,
    threads: usize,
    rates: &Rates,
) -> Result<Plan> {
    key.check_whole()?;
    plan_of::<E>((&key.shape()?, Layout::of(key)), budget_bytes, threads, rates)
}

fn plan_of<E: PairingCurve>(
    (shape, layout): (&Shape, Layout),
    budget_bytes: u64,
    threads: usize,
    rates: &Rates,
) -> Result<Plan> {
    let dry_run = |workspace: &Workspace| dry_run::<E>(workspace, (shape, layout));
    Plan::new(&dry_run, budget_bytes, threads, rates)
}

fn dry_run<E: PairingCurve>(workspace: &Workspace, (shape, layout): (&Shape, Layout)) -> Result<()> {
    let _digests = workspace.hold(layout.digests_bytes::<E>(shape, None), "frame digests")?;
    let key = ProvingKey::<E>::dry(workspace, shape, layout)?;
    let witness = key.dry_witness(workspace)?;
    workspace.phase(Phase::Proof)?;
    prove(&key, &witness, [E::Scalar::zero(); 2])?;
    Ok(())
}
