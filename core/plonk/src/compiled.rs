//! The curves that this crate is compiled for.
//!
//! A generic function is compiled in each crate that calls it for types which that crate knows. Upstream's
//! provers are generic over circuits and transcripts, so each program with a circuit would compile the engine
//! anew: minutes, and megabytes. The functions of [`ProverField`] and [`ProverCurve`] are generic over
//! nothing: they are compiled in this crate, once for each field and curve below. A drop-in calls the engine
//! through them wherever a circuit, a transcript or a scheme of its caller's is a type parameter.

use crate::stages::FixedCells;
use ark_ff::PrimeField;
use spillproof_commit as commit;
use spillproof_commit::CommitCurve;
use spillproof_engine::column::{
    Bundle, BundleKind, BundleWriter, Column, Placement, StreamedBundle, Workspace,
};
use spillproof_engine::compiled;
use spillproof_engine::plan::{Phase, Plan, Rates};
use spillproof_engine::session::Task;
use spillproof_engine::stream::{self, Scalars, Transform};
use spillproof_kernels::curve::{Curve, normalize};
use spillproof_kernels::field::KernelField;

use crate::circuit::ConstraintSystem;
use crate::curve::{PointOf, ScalarOf};
use crate::domain::Domain;
use crate::error::Result;
use crate::input::{self, Values};
use crate::keygen::{Assembly, Commit, KeyCommitments, Keygen, ProvingParts, Replacements};
use crate::openings::Opening;
use crate::outside::{Randomness, Transcript};
use crate::protocol::Book;
use crate::prover::{Committed, Prover};
use crate::rounds::Rounds;
use crate::selectors::SelectorBits;
use crate::witness::{self, AdviceCells, AdviceSource, InstanceColumns, LimbCell, Witness};
use crate::{gwc, ipa, kzg, plan, shplonk};

/// Normalised on the session's threads, too: it is done in parallel.
pub(crate) fn sums<C: Curve>(
    bases: &Column<PointOf<C>>,
    scalars: &[Scalars<'_, ScalarOf<C>>],
) -> spillproof_engine::Result<Vec<PointOf<C>>> {
    bases.workspace().run(|| {
        let sums = stream::msm::<C>(bases, scalars)?;
        Ok(normalize::<C>(&sums))
    })
}

compiled! {
    /// A scalar field of a [`ProverCurve`]. Errors are the engine's: the disk or the budget has no room, or
    /// the disk fails.
    pub trait ProverField: KernelField;
    for {
        #[cfg(feature = "bls12_381")]
        ark_bls12_381::Fr;
        #[cfg(feature = "bn254")]
        ark_bn254::Fr;
        #[cfg(feature = "pasta")]
        ark_pallas::Fr;
        #[cfg(feature = "pasta")]
        ark_vesta::Fr;
    }
    {
        /// A column of `rows` rows with `values` in its first ones, `tail` in its last ones, and 0 between.
        fn padded_column(
            workspace: &Workspace,
            rows: u64,
            values: &dyn Values<Self>,
            tail: &[Self],
        ) -> spillproof_engine::Result<Column<Self>>
            = input::padded_column;
        /// The instance columns of each circuit of a proof.
        fn instance_columns(
            workspace: &Workspace,
            domain: &Domain<Self>,
            circuits: &[Vec<Box<dyn Values<Self> + '_>>],
        ) -> Result<Vec<InstanceColumns<Self>>>
            = witness::instance_columns;
        /// The transform of a column.
        fn transform(column: &Column<Self>, transform: &Transform<Self>) -> spillproof_engine::Result<Column<Self>>
            = |column, transform| stream::ntt(column, transform, Placement::Auto);
        /// Nothing assigned yet, in `rows` rows: [`Assembly`].
        fn assembly(
            workspace: &Workspace,
            rows: u64,
            fixed_columns: usize,
            selectors: usize,
            permuted: Vec<crate::ColumnId>,
        ) -> Result<Assembly<Self>>
            = Assembly::new;
        /// Assigns a fixed cell: its numerator, and its denominator if that is not 1.
        fn assign_fixed(
            cells: &mut FixedCells<Self>,
            column: usize,
            row: u64,
            numerator: Self,
            denominator: Option<Self>,
        ) -> spillproof_engine::Result<()>
            = FixedCells::assign;
        /// Assigns one value to many rows of a fixed column.
        fn fill_fixed(
            cells: &mut FixedCells<Self>,
            column: usize,
            rows: std::ops::Range<u64>,
            numerator: Self,
            denominator: Option<Self>,
        ) -> spillproof_engine::Result<()>
            = FixedCells::fill;
        /// Makes the fixed columns: see [`Replacements`].
        fn finish<'s>(
            assembly: Assembly<Self>,
            workspace: &'s Workspace,
            domain: Domain<Self>,
            blinding_factors: usize,
            compress_selectors: bool,
            columns_of: &mut Replacements<'_, Self>,
        ) -> Result<(Keygen<'s, Self>, Option<SelectorBits>)>
            = Assembly::finish;
        /// Advice cells that are limbs.
        fn limb_cells(
            workspace: &Workspace,
            cs: &ConstraintSystem<Self>,
            domain: &Domain<Self>,
        ) -> Result<AdviceCells<LimbCell, Self>>
            = |workspace, cs, domain| {
                let mut cells = AdviceCells::new(workspace, cs, domain, witness::fraction)?;
                // Their addresses are not given out.
                cells.end_reading();
                Ok(cells)
            };
        /// Assigns an advice cell; without effect if there is no such cell.
        fn assign_limbs(
            cells: &mut AdviceCells<LimbCell, Self>,
            column: usize,
            row: usize,
            value: LimbCell,
        ) -> Result<()>
            = |cells: &mut AdviceCells<_, _>, column, row, value| cells.assign(column, row, value).map(|_| ());
        /// Writes a group of polynomials of a key or a witness: see [`BundleWriter::write`].
        fn write_group(
            bundle: &BundleWriter,
            label: &str,
            polynomials: &mut dyn Iterator<Item = spillproof_engine::Result<Column<Self>>>,
        ) -> spillproof_engine::Result<()>
            = |bundle: &BundleWriter, label, polynomials: &mut dyn Iterator<Item = _>| bundle.write(label, polynomials);
        /// A group of polynomials of a key or a witness: see [`Bundle::group`].
        fn group_of(
            bundle: &Bundle,
            label: &str,
            polynomials: usize,
            rows: u64,
        ) -> spillproof_engine::Result<Vec<Column<Self>>>
            = Bundle::group;
        /// A witness that comes: see [`StreamedBundle::read`].
        fn streamed_bundle(
            workspace: &Workspace,
            name_and_bytes_max: (&std::path::Path, u64),
            kind: BundleKind,
            source: &mut dyn std::io::Read,
        ) -> spillproof_engine::Result<StreamedBundle<Self>>
            = StreamedBundle::read;
    }
}

compiled! {
    /// A curve that provers are compiled for. Its commitments and their parameters are [`CommitCurve`]'s.
    /// Errors are the engine's, the transcript's and the scheme's.
    pub trait ProverCurve: CommitCurve<BaseField: PrimeField, ScalarField: ProverField>;
    for {
        #[cfg(feature = "bls12_381")]
        ark_bls12_381::g1::Config;
        #[cfg(feature = "bn254")]
        ark_bn254::g1::Config;
        #[cfg(feature = "pasta")]
        ark_pallas::PallasConfig;
        #[cfg(feature = "pasta")]
        ark_vesta::VestaConfig;
    }
    {
        /// Makes the rest of a proof. `challenges` are those of the circuit's phases.
        fn prove(
            prover: Prover<'_, '_, Self>,
            circuits: Vec<Committed<ScalarOf<Self>>>,
            challenges: Vec<ScalarOf<Self>>,
        ) -> Result<()>
            = Prover::prove;
        /// Ends a phase: commits to its columns.
        fn commit_columns(
            witness: &mut Witness<'_, ScalarOf<Self>>,
            advice: &mut dyn AdviceSource<ScalarOf<Self>>,
            rounds: &mut Rounds<'_, Self>,
        ) -> Result<()>
            = Witness::commit_columns;
        /// The same of advice cells that are limbs.
        fn commit_limbs(
            witness: &mut Witness<'_, ScalarOf<Self>>,
            advice: &mut AdviceCells<LimbCell, ScalarOf<Self>>,
            rounds: &mut Rounds<'_, Self>,
        ) -> Result<()>
            = |witness: &mut Witness<'_, _>, advice, rounds| witness.commit_columns(advice, rounds);
        /// Draws the challenges of a phase, which have a place each, when all circuits have ended it.
        fn draw_challenges(
            cs: &ConstraintSystem<ScalarOf<Self>>,
            phase: usize,
            challenges: &mut [Option<ScalarOf<Self>>],
            rounds: &mut Rounds<'_, Self>,
        ) -> Result<()>
            = witness::draw_challenges;
        /// Both, of the only circuit that has challenges.
        fn commit_phase(
            witness: &mut Witness<'_, ScalarOf<Self>>,
            advice: &mut dyn AdviceSource<ScalarOf<Self>>,
            challenges: &mut [Option<ScalarOf<Self>>],
            rounds: &mut Rounds<'_, Self>,
        ) -> Result<()>
            = Witness::commit_phase;
        /// Ends all phases without a circuit, if an earlier run has kept them; `false` if it has not.
        fn take_kept(
            witness: &mut Witness<'_, ScalarOf<Self>>,
            challenges: &mut [Option<ScalarOf<Self>>],
            rounds: &mut Rounds<'_, Self>,
        ) -> Result<bool>
            = Witness::take_kept;
        /// Ends a phase without a circuit, if an earlier run has kept it; `false` if it has not. For forks
        /// whose circuits are synthesised anew in each phase.
        fn take_kept_phase(
            witness: &mut Witness<'_, ScalarOf<Self>>,
            rounds: &mut Rounds<'_, Self>,
        ) -> Result<bool>
            = Witness::take_kept_phase;
        /// Absorbs the instances, as the protocol says. Some forks do so for each circuit before its first
        /// phase, some for all circuits before the first one's.
        fn absorb_instances(
            witness: &Witness<'_, ScalarOf<Self>>,
            rounds: &mut Rounds<'_, Self>,
        ) -> Result<()>
            = Witness::absorb_instances;
        /// Commits to what a verifying key holds.
        fn verifying_key(
            keygen: Keygen<'_, ScalarOf<Self>>,
            commit: &mut Commit<'_, ScalarOf<Self>, PointOf<Self>>,
        ) -> Result<KeyCommitments<PointOf<Self>>>
            = Keygen::verifying_key;
        /// Makes the columns of a proving key, and commits to what the verifying key holds if there is none
        /// yet.
        fn proving_key(
            keygen: Keygen<'_, ScalarOf<Self>>,
            commit: Option<&mut Commit<'_, ScalarOf<Self>, PointOf<Self>>>,
        ) -> Result<ProvingParts<ScalarOf<Self>, PointOf<Self>>>
            = Keygen::proving_key;
        /// Writes the proof of an opening by SHPLONK.
        fn open_shplonk(
            workspace: &Workspace,
            bases: &Column<PointOf<Self>>,
            opening: &Opening<'_, ScalarOf<Self>>,
            transcript: &mut dyn Transcript<Self>,
        ) -> Result<()>
            = shplonk::open;
        /// Writes the proof of an opening by GWC.
        fn open_gwc(
            workspace: &Workspace,
            bases: &Column<PointOf<Self>>,
            opening: &Opening<'_, ScalarOf<Self>>,
            transcript: &mut dyn Transcript<Self>,
        ) -> Result<()>
            = gwc::open;
        /// Writes the proof of an opening by the book, with a quotient at its end.
        fn open_book(
            workspace: &Workspace,
            bases: &Column<PointOf<Self>>,
            book: Book,
            opening: &Opening<'_, ScalarOf<Self>>,
            transcript: &mut dyn Transcript<Self>,
        ) -> Result<()>
            = kzg::open;
        /// Writes the proof of an opening by the book, with an inner-product argument at its end.
        fn open_ipa(
            params: &commit::ipa::Params<Self>,
            book: Book,
            opening: &Opening<'_, ScalarOf<Self>>,
            transcript: &mut dyn Transcript<Self>,
            randomness: &mut dyn Randomness<ScalarOf<Self>>,
        ) -> Result<()>
            = ipa::open;
        /// Writes the proof of one polynomial's value at a point, which the transcript has absorbed.
        fn open_one(
            params: &commit::ipa::Params<Self>,
            polynomial: &Column<ScalarOf<Self>>,
            blind: ScalarOf<Self>,
            point: ScalarOf<Self>,
            transcript: &mut dyn Transcript<Self>,
            randomness: &mut dyn Randomness<ScalarOf<Self>>,
        ) -> Result<()>
            = ipa::open_one;
        /// The sums of `scalars[i] * bases[i]`, for many vectors of scalars.
        fn sums(
            bases: &Column<PointOf<Self>>,
            scalars: &[Scalars<'_, ScalarOf<Self>>],
        ) -> spillproof_engine::Result<Vec<PointOf<Self>>>
            = sums::<Self>;
        /// The transform of points.
        fn transform_points(
            column: &Column<PointOf<Self>>,
            transform: &Transform<ScalarOf<Self>>,
        ) -> spillproof_engine::Result<Column<PointOf<Self>>>
            = |column, transform| stream::group_ntt::<Self>(column, transform, Placement::Auto, &mut |_| ());
        /// Runs keys and a proof dry, whose advice cells are limbs, for a task that makes one phase of them.
        fn rehearse_limbs(
            shape: &plan::Shape<ScalarOf<Self>>,
            task: &Task,
            phase: Phase,
        ) -> spillproof_engine::Result<()>
            = |shape: &plan::Shape<_>, task, phase| shape.rehearse::<Self, LimbCell>(task, phase);
        /// The plan of keys and a proof whose advice cells are limbs.
        fn plan_limbs(
            shape: &plan::Shape<ScalarOf<Self>>,
            budget_bytes: u64,
            threads: usize,
            rates: &Rates,
        ) -> spillproof_engine::Result<Plan>
            = |shape: &plan::Shape<_>, budget_bytes, threads, rates| shape.plan::<Self, LimbCell>(budget_bytes, threads, rates);
    }
}
