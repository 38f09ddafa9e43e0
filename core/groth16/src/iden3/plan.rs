//! What a proof will take from files on, and the smallest budget in the error of a key that does not fit.

use std::sync::Arc;

use super::coefficients::rehearse as rehearse_coefficients;
use super::key::Zkey;
use super::witness::rehearse as rehearse_witness;
use crate::constraints::Share;
use crate::{
    Constraints, Layout, PairingCurve, Place, ProvingKey, Shape, Shares, placement_of_copies, prove,
};
use ark_ff::Zero;
use spillproof_engine::accelerator::Accelerator;
use spillproof_engine::column::runs::Progress;
use spillproof_engine::column::{Placement, Workspace};
use spillproof_engine::plan::{Phase, Plan, Rates, smallest_budget_bytes};
use spillproof_engine::{Error, Result};
use spillproof_ranks::{Ranks, Settings};

/// The file that a proving key is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFile {
    /// A container, whose columns are read where they are.
    Container,
    /// A container that is dealt to the ranks: each reads its own share.
    Dealt,
    /// A file of circom's tools, whose coefficients are copied before a proof.
    Zkey,
}

/// What a proof will take from files on: [`crate::plan`], and what is copied of the files of key and witness before
/// it. The plan is for a budget and so many threads, at the rates of a usual machine. Beside an accelerator, steps
/// name the jobs that it is offered.
///
/// # Errors
/// As [`crate::plan`].
pub fn plan_of_files<E: PairingCurve>(
    shape: &Shape,
    key: KeyFile,
    size: (u64, usize),
    accelerator: Option<&Arc<dyn Accelerator>>,
) -> Result<Plan> {
    E::plan_of_files(shape, key, size, accelerator)
}

pub(crate) fn plan_of_files_over<E: PairingCurve>(
    shape: &Shape,
    key: KeyFile,
    (budget_bytes, threads): (u64, usize),
    accelerator: Option<&Arc<dyn Accelerator>>,
) -> Result<Plan> {
    let dry_run = |workspace: &Workspace| dry_run::<E>(&workspace.beside(accelerator), shape, key);
    Plan::new(&dry_run, budget_bytes, threads, &Rates::default())
}

/// The same of one rank's part of a proof ([`crate::prove_over_ranks`]).
///
/// # Errors
/// As [`crate::plan`].
pub fn plan_of_files_over_ranks<E: PairingCurve>(
    shape: &Shape,
    key: KeyFile,
    place: &Place<'_>,
    (budget_bytes, threads): (u64, usize),
    accelerator: Option<&Arc<dyn Accelerator>>,
) -> Result<Plan> {
    E::plan_of_files_over_ranks(shape, key, place, (budget_bytes, threads), accelerator)
}

pub(crate) fn plan_of_files_of_rank<E: PairingCurve>(
    shape: &Shape,
    key: KeyFile,
    place: &Place<'_>,
    (budget_bytes, threads): (u64, usize),
    accelerator: Option<&Arc<dyn Accelerator>>,
) -> Result<Plan> {
    let kept = match key {
        KeyFile::Container => *shape,
        KeyFile::Dealt | KeyFile::Zkey => place.shares.planned(shape, place.ranks.rank()),
    };
    let sizes = Sizes { file: *shape, kept };
    let dry_run =
        |workspace: &Workspace| dry_run_up_to::<E>(&workspace.beside(accelerator), &sizes, key, Some(place));
    Plan::new(&dry_run, budget_bytes, threads, &Rates::default())
}

/// Sizes of a key.
struct Sizes {
    /// In its file.
    file: Shape,
    /// With the coefficients that are kept of it.
    kept: Shape,
}

/// A proof from files on.
fn dry_run<E: PairingCurve>(workspace: &Workspace, shape: &Shape, file: KeyFile) -> Result<()> {
    let sizes = Sizes {
        file: *shape,
        kept: *shape,
    };
    dry_run_up_to::<E>(workspace, &sizes, file, None)
}

/// A proof from files on, or one rank's part of one.
fn dry_run_up_to<E: PairingCurve>(
    workspace: &Workspace,
    sizes: &Sizes,
    file: KeyFile,
    place: Option<&Place<'_>>,
) -> Result<()> {
    let layout = match file {
        KeyFile::Zkey => Layout::CIRCOM,
        KeyFile::Container => Layout::of_container::<E>(),
        KeyFile::Dealt => Layout::of_share::<E>(),
    };
    let Sizes { file: shape, kept } = sizes;
    let _digests = workspace.hold(layout.digests_bytes::<E>(kept, place), "frame digests")?;
    let mut key = ProvingKey::<E>::dry_of_rank(workspace, (kept, layout), place)?;
    workspace.phase(Phase::Proof)?;
    if file == KeyFile::Zkey {
        key.constraints = rehearse_coefficients(workspace, shape, kept)?;
    }
    let witness = rehearse_witness(workspace, shape.signals)?;
    let random = [E::Scalar::zero(); 2];
    match place {
        None => prove(&key, &witness, random).map(drop),
        Some(place) => place.rehearsed(|place| place.prove(&key, &witness, random, None).map(drop)),
    }
}

/// What a message has at least, for the smallest budget of a rank that has not met the others yet.
const PIECE_BYTES_MIN: usize = 64 << 10;

impl<E: PairingCurve> Zkey<E> {
    /// [`Self::constraints`] for a proof. Where the budget is too small for them, the error names the smallest
    /// in which a proof from files on works.
    pub fn constraints_of_proof(
        &self,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Constraints<E::Scalar>> {
        self.constraints_or_smallest(Share::all(&self.shape()), progress, &|workspace, kept| {
            dry_run::<E>(workspace, kept, KeyFile::Zkey)
        })
    }

    /// The same of one rank's part of a proof. The smallest budget is that with the shortest messages.
    pub fn constraints_of_rank(
        &self,
        (shares, rank): (&Shares, usize),
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Constraints<E::Scalar>> {
        let settings = Settings {
            piece_bytes: PIECE_BYTES_MIN,
            ..Settings::default()
        };
        let ranks = Ranks::dry_with(rank, shares.ranks(), settings);
        let (shape, place) = (
            self.shape(),
            Place {
                ranks: &ranks,
                shares,
            },
        );
        self.constraints_or_smallest(shares.evaluated(&shape, rank), progress, &|workspace, kept| {
            let sizes = Sizes {
                file: Shape {
                    values: kept.values,
                    ..shape
                },
                kept: *kept,
            };
            dry_run_up_to::<E>(workspace, &sizes, KeyFile::Zkey, Some(&place))
        })
    }

    /// [`Self::constraints`] alone. Where the budget is too small for them, the error names the smallest in
    /// which they are copied.
    pub fn constraints_of_copy(
        &self,
        share: Share,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Constraints<E::Scalar>> {
        let shape = self.shape();
        self.constraints_or_smallest(share, progress, &|workspace, kept| {
            rehearse_coefficients::<E::Scalar>(workspace, &shape, kept).map(drop)
        })
    }

    fn constraints_or_smallest(
        &self,
        share: Share,
        progress: &mut (dyn FnMut(Progress) + Send),
        dry_run: &(dyn Fn(&Workspace, &Shape) -> Result<()> + Sync),
    ) -> Result<Constraints<E::Scalar>> {
        let workspace = &self.source.workspace;
        let mut refusal = None;
        // What is in memory may be what is missing.
        for placement in [placement_of_copies(workspace), Placement::Disk] {
            match workspace.run(|| self.constraints(share, placement, progress)) {
                Err(error @ Error::OverBudget { .. }) => _ = refusal.get_or_insert(error),
                ended => return ended,
            }
        }
        let Some(refusal) = refusal else {
            unreachable!("refused twice");
        };
        // Where there is no room to count values either, the refusal says what is missing first.
        let Ok(shape) = workspace.run(|| self.counted_shape(share, progress)) else {
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
