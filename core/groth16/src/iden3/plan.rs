//! What a proof will take from files on, and the smallest budget in the error of a key that does not fit.

use super::coefficients::rehearse as rehearse_coefficients;
use super::key::Zkey;
use super::witness::rehearse as rehearse_witness;
use crate::{Constraints, Layout, PairingCurve, Place, ProvingKey, Shape, prove};
use ark_ff::Zero;
use spillproof_engine::column::Workspace;
use spillproof_engine::column::runs::Progress;
use spillproof_engine::plan::{Phase, Plan, Rates, smallest_budget_bytes};
use spillproof_engine::{Error, Result};

/// The file that a proving key is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFile {
    /// A container, whose columns are read where they are.
    Container,
    /// A file of circom's tools, whose coefficients are copied before a proof.
    Zkey,
}

/// What a proof will take from files on: [`crate::plan`], and what is copied of the files of key and witness before
/// it.
///
/// # Errors
/// As [`crate::plan`].
pub fn plan_of_files<E: PairingCurve>(
    shape: &Shape,
    key: KeyFile,
    budget_bytes: u64,
    threads: usize,
    rates: &Rates,
) -> Result<Plan> {
    E::plan_of_files(shape, key, budget_bytes, threads, rates)
}

pub(crate) fn plan_of_files_over<E: PairingCurve>(
    shape: &Shape,
    key: KeyFile,
    budget_bytes: u64,
    threads: usize,
    rates: &Rates,
) -> Result<Plan> {
    let dry_run = |workspace: &Workspace| dry_run::<E>(workspace, shape, key);
    Plan::new(&dry_run, budget_bytes, threads, rates)
}

/// The same of one rank's part of a proof ([`crate::prove_over_ranks`]).
///
/// # Errors
/// As [`crate::plan`].
pub fn plan_of_files_over_ranks<E: PairingCurve>(
    shape: &Shape,
    key: KeyFile,
    place: &Place<'_>,
    budget_bytes: u64,
    threads: usize,
) -> Result<Plan> {
    E::plan_of_files_over_ranks(shape, key, place, budget_bytes, threads)
}

pub(crate) fn plan_of_files_of_rank<E: PairingCurve>(
    shape: &Shape,
    key: KeyFile,
    place: &Place<'_>,
    budget_bytes: u64,
    threads: usize,
) -> Result<Plan> {
    let dry_run = |workspace: &Workspace| dry_run_up_to::<E>(workspace, shape, key, Some(place));
    Plan::new(&dry_run, budget_bytes, threads, &Rates::default())
}

/// A proof from files on.
fn dry_run<E: PairingCurve>(workspace: &Workspace, shape: &Shape, file: KeyFile) -> Result<()> {
    dry_run_up_to::<E>(workspace, shape, file, None)
}

/// A proof from files on, or one rank's part of one.
fn dry_run_up_to<E: PairingCurve>(
    workspace: &Workspace,
    shape: &Shape,
    file: KeyFile,
    place: Option<&Place<'_>>,
) -> Result<()> {
    let layout = match file {
        KeyFile::Zkey => Layout::CIRCOM,
        KeyFile::Container => Layout::of_container::<E>(),
    };
    let _digests = workspace.hold(layout.digests_bytes::<E>(shape), "frame digests")?;
    let mut key = ProvingKey::<E>::dry(workspace, shape, layout)?;
    workspace.phase(Phase::Proof)?;
    if file == KeyFile::Zkey {
        key.constraints = rehearse_coefficients(workspace, shape)?;
    }
    let witness = rehearse_witness(workspace, shape.signals)?;
    let random = [E::Scalar::zero(); 2];
    match place {
        None => prove(&key, &witness, random).map(drop),
        Some(place) => place.rehearsed(|place| place.prove(&key, &witness, random, None).map(drop)),
    }
}

impl<E: PairingCurve> Zkey<E> {
    /// [`Self::constraints`] for a proof. Where the budget is too small for them, the error names the smallest
    /// in which a proof from files on works.
    pub fn constraints_of_proof(
        &self,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Constraints<E::Scalar>> {
        self.constraints_or_smallest(progress, &|workspace, shape| {
            dry_run::<E>(workspace, shape, KeyFile::Zkey)
        })
    }

    /// [`Self::constraints`] alone. Where the budget is too small for them, the error names the smallest in
    /// which they are copied.
    pub fn constraints_of_copy(
        &self,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Constraints<E::Scalar>> {
        self.constraints_or_smallest(progress, &|workspace, shape| {
            rehearse_coefficients::<E::Scalar>(workspace, shape).map(drop)
        })
    }

    fn constraints_or_smallest(
        &self,
        progress: &mut (dyn FnMut(Progress) + Send),
        dry_run: &(dyn Fn(&Workspace, &Shape) -> Result<()> + Sync),
    ) -> Result<Constraints<E::Scalar>> {
        let workspace = &self.source.workspace;
        let refusal = match workspace.run(|| self.constraints(progress)) {
            Err(refusal @ Error::OverBudget { .. }) => refusal,
            ended => return ended,
        };
        // Where there is no room to count values either, the refusal says what is missing first.
        let Ok(shape) = workspace.run(|| self.counted_shape(progress)) else {
            return Err(refusal);
        };
        let limit_bytes = workspace.budget.limit_bytes();
        let dry_run = |workspace: &Workspace| dry_run(workspace, &shape);
        match smallest_budget_bytes(&dry_run, workspace.threads())? {
            // Others hold what is missing.
            needed_bytes if needed_bytes <= limit_bytes => Err(refusal),
            needed_bytes => Err(Error::BudgetTooSmall {
                what: format!(
                    "{}, with {} coefficients of {} distinct values,",
                    self.source.path().display(),
                    shape.coefficients,
                    shape.values
                ),
                needed_bytes,
                limit_bytes,
            }),
        }
    }
}
