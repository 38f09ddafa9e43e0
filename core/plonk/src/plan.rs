//! What a circuit's keys and a proof of it will take, before any work: a dry run of keygen and of the prover.
//!
//! The run is that of a proof, over a dry workspace: the same rounds, stages, leases and order. Only what a
//! drop-in brings is replaced: no circuit is synthesised, and the transcript gives any challenges.

use std::io;
use std::sync::Arc;

use crate::stages::Program;
use spillproof_commit as commit;
use spillproof_commit::{Basis, CommitCurve, SRS_FRAME_BYTES};
use spillproof_engine::accelerator::{self, Accelerator, Input, RowSource};
use spillproof_engine::column::{Cell, Column, Draft, Element, Placement, Workspace};
use spillproof_engine::error::Invalid;
use spillproof_engine::plan::{self, DryRunOf, Phase, Plan, Rates};
use spillproof_engine::session::Task;
use spillproof_engine::step;
use spillproof_engine::stream::{Scalars, msm};
use spillproof_format::frame_bytes_for;
use spillproof_kernels::curve::Curve;
use spillproof_kernels::field::KernelField;

use crate::circuit::ConstraintSystem;
use crate::compiled::{ProverCurve, ProverField};
use crate::curve::{PointOf, Scalar, ScalarOf};
use crate::domain::Domain;
use crate::error::{Error, Result};
use crate::input::Values;
use crate::keygen::{Keygen, ProvingColumns};
use crate::numerator::{Challenges, Numerators, circuits_together, numerator};
use crate::openings::Opening;
use crate::outside::{Blinded, Outside, Randomness, Transcript};
use crate::protocol::{Ending, OpeningScheme, Protocol};
use crate::prover::{Committed, Prover};
use crate::rounds::Rounds;
use crate::witness::{AdviceCells, AdviceSource, StoredAdvice, Witness};
use crate::{gwc, ipa, kzg, shplonk};

/// What a plan is of.
#[derive(Clone, Debug)]
pub struct Shape<F = Scalar> {
    /// The circuit, with a fixed column in the place of each selector.
    pub cs: ConstraintSystem<F>,
    /// How many of the fixed columns, the last ones, took the place of selectors.
    pub selectors: usize,
    /// Its rows.
    pub domain: Domain<F>,
    /// Circuits in one proof.
    pub circuits: usize,
    /// How it is proved.
    pub protocol: Protocol,
    /// Whether rounds are kept in a checkpoint.
    pub keeps_rounds: bool,
    /// Where keys and witness come from.
    pub inputs: Inputs,
    /// The accelerator that a plan's jobs are offered to. A rehearsal is beside its session's in any case.
    pub accelerator: Option<Arc<dyn Accelerator>>,
}

/// Where a proof's keys and witness come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inputs {
    /// They are made: keygen, and the circuit's synthesis.
    #[default]
    Made,
    /// They are in files, which are opened in place.
    Stored {
        /// What open files hold of the budget beside the proof, if they are not open yet.
        held_bytes: u64,
    },
}

impl<F: ProverField> Shape<F> {
    /// The plan of keys and a proof within `budget_bytes` on `threads` threads, where only the parameters are
    /// there yet. An advice cell is a `T`, the parameters are points of `C`.
    ///
    /// # Errors
    /// [`BudgetTooSmall`](spillproof_engine::Error::BudgetTooSmall) with the smallest budget that works.
    pub fn plan<C: ProverCurve<ScalarField = F>, T: Cell>(
        &self,
        budget_bytes: u64,
        threads: usize,
        rates: &Rates,
    ) -> spillproof_engine::Result<Plan> {
        self.in_each_way::<C, T, _>(|ways| Plan::of_ways(ways, budget_bytes, threads, rates))
    }

    /// Runs keys and a proof dry, for the task that is to make one `phase` of them.
    ///
    /// # Errors
    /// Those of [`plan::rehearse`].
    pub fn rehearse<C: ProverCurve<ScalarField = F>, T: Cell>(
        &self,
        task: &Task,
        phase: Phase,
    ) -> spillproof_engine::Result<()> {
        self.in_each_way::<C, T, _>(|ways| plan::rehearse(task, phase, ways))
    }

    /// Calls `f` with the dry run of each opening scheme that proofs with the same keys may take, of `self`
    /// first.
    fn in_each_way<C: ProverCurve<ScalarField = F>, T: Cell, U>(
        &self,
        f: impl FnOnce(&[&DryRunOf<'_>]) -> U,
    ) -> U {
        let schemes = self.protocol.opening.of_same_keys().into_iter();
        let of_scheme = |opening| Protocol {
            opening,
            ..self.protocol
        };
        let numerators = Numerators::default();
        let way = |protocol| {
            let numerators = &numerators;
            move |workspace: &Workspace| self.dry_run::<C, T>(protocol, numerators, workspace)
        };
        let ways: Vec<_> = schemes.map(of_scheme).map(way).collect();
        let ways: Vec<&DryRunOf<'_>> = ways.iter().map(|way| way as _).collect();
        f(&ways)
    }

    /// Keys and a proof in a dry workspace.
    fn dry_run<C: ProverCurve<ScalarField = F>, T: Cell>(
        &self,
        protocol: Protocol,
        numerators: &Numerators<F>,
        workspace: &Workspace,
    ) -> spillproof_engine::Result<()> {
        let workspace = workspace.beside(self.accelerator.as_ref());
        match self.run::<C, T>(protocol, numerators, &workspace) {
            Ok(()) => Ok(()),
            Err(Error::Engine(error)) => Err(error),
            // All that fails in a dry run is the workspace.
            Err(Error::Protocol(error) | Error::Opening(error)) => Err(engines(error)),
        }
    }

    fn run<C: ProverCurve<ScalarField = F>, T: Cell>(
        &self,
        protocol: Protocol,
        numerators: &Numerators<F>,
        workspace: &Workspace,
    ) -> Result<()> {
        self.domain.check()?;
        let mut outside = DryOutside::<C>::new(workspace, self, protocol.opening)?;
        let held_bytes = match self.inputs {
            Inputs::Made => 0,
            Inputs::Stored { held_bytes } => held_bytes,
        };
        let _of_files = workspace
            .budget
            .lease(held_bytes, "digests of a key and a witness")?;
        let key = match self.inputs {
            Inputs::Made => self.made_key(workspace, &mut outside)?,
            Inputs::Stored { .. } => self.stored_key(workspace)?,
        };
        workspace.phase(Phase::Proof)?;
        let (cs, domain) = (&self.cs, &self.domain);
        let no_values = || (0..cs.instance_columns).map(|_| Box::new(NoValues) as Box<dyn Values<_>>);
        let public: Vec<Vec<_>> = (0..self.circuits).map(|_| no_values().collect()).collect();
        let instances = F::instance_columns(workspace, domain, &public)?;
        let mut rounds = Rounds::dry(protocol, &mut outside, self.keeps_rounds, numerators);
        let mut challenges = vec![None; cs.challenge_phases.len()];
        let mut advice = Vec::with_capacity(self.circuits);
        for (public, instance) in public.iter().zip(&instances) {
            challenges.fill(None);
            let is_synthesized = self.inputs == Inputs::Made;
            let _step = is_synthesized.then(|| step!(workspace, "synthesize"));
            let mut values: Box<dyn AdviceSource<F>> = match is_synthesized {
                true => {
                    let mut cells = AdviceCells::<T, _>::new(workspace, cs, domain, |_| Default::default())?;
                    cells.end_reading();
                    Box::new(cells)
                }
                false => Box::new(StoredAdvice::new(self.stored(workspace, cs.advice_columns())?)),
            };
            let mut witness = Witness::new(workspace, cs, domain, public, instance);
            C::absorb_instances(&witness, &mut rounds)?;
            while witness.phase() < cs.phases() {
                C::commit_phase(&mut witness, &mut *values, &mut challenges, &mut rounds)?;
            }
            advice.push(witness.into_columns());
        }
        let circuits = instances.into_iter().zip(advice);
        let circuits = circuits.map(|(instance, advice)| Committed { instance, advice });
        let prover = Prover {
            workspace,
            quotient_tile_rows: None,
            cs,
            domain,
            key: &key,
            rounds: &mut rounds,
        };
        let challenges = challenges.into_iter().flatten().collect();
        C::prove(prover, circuits.collect(), challenges)
    }

    fn made_key<C: ProverCurve<ScalarField = F>>(
        &self,
        workspace: &Workspace,
        outside: &mut DryOutside<C>,
    ) -> Result<ProvingColumns<F>> {
        workspace.phase(Phase::VerifyingKey)?;
        let keygen = self.keygen(workspace)?;
        C::verifying_key(keygen, &mut |columns| outside.committed(columns))?;
        workspace.phase(Phase::ProvingKey)?;
        let (key, _) = C::proving_key(self.keygen(workspace)?, None)?;
        Ok(key)
    }

    fn stored_key(&self, workspace: &Workspace) -> Result<ProvingColumns<F>> {
        let (fixed, sigmas) = (self.cs.fixed_columns, self.cs.permuted.len());
        let [first, last, active] = [(); 3].map(|()| self.stored_column(workspace));
        Ok(ProvingColumns {
            fixed_values: self.stored(workspace, fixed)?,
            fixed_polynomials: self.stored(workspace, fixed)?,
            sigma_values: self.stored(workspace, sigmas)?,
            sigma_polynomials: self.stored(workspace, sigmas)?,
            rows: [first?, last?, active?],
        })
    }

    /// Columns of a file.
    fn stored(&self, workspace: &Workspace, columns: usize) -> Result<Vec<Column<F>>> {
        (0..columns).map(|_| self.stored_column(workspace)).collect()
    }

    fn stored_column(&self, workspace: &Workspace) -> Result<Column<F>> {
        let draft = Draft::scratch(workspace, "column of a file", self.domain.rows(), Placement::Disk)?;
        Ok(draft.finish_unwritten()?)
    }

    fn keygen<'s>(&self, workspace: &'s Workspace) -> Result<Keygen<'s, F>> {
        let cs = &self.cs;
        let fixed_columns = cs.fixed_columns - self.selectors;
        let assembly = {
            let _step = step!(workspace, "synthesize");
            let permuted = cs.permuted.clone();
            F::assembly(
                workspace,
                self.domain.rows(),
                fixed_columns,
                self.selectors,
                permuted,
            )?
        };
        let mut one_each = |activations: Vec<Vec<bool>>| {
            let value = |is_on: &bool| F::from(u64::from(*is_on));
            let columns = activations.iter().map(|rows| rows.iter().map(value).collect());
            columns.collect()
        };
        let (domain, blinding_factors) = (self.domain, cs.blinding_factors);
        let made = F::finish(
            assembly,
            workspace,
            domain,
            blinding_factors,
            false,
            &mut one_each,
        );
        made.map(|(keygen, _)| keygen)
    }

    /// The numerator of the quotient of one group of circuits, as a proof offers it to an accelerator; its
    /// challenges are any.
    pub fn numerator(&self) -> Numerator<F> {
        let unknown = Challenges::unknown(self.cs.challenge_phases.len());
        let together = circuits_together(&self.cs, self.circuits);
        let numerator = numerator(&self.cs, self.domain.delta, together, &unknown);
        let (program, columns) = (numerator.program, numerator.columns);
        // X and l_0 come behind the columns, as in the prover.
        let rows = |column: usize| match column.checked_sub(columns) {
            None => RowSource::Read,
            Some(0) => RowSource::Identity,
            Some(_) => RowSource::FirstLagrange,
        };
        let inputs = (0..program.columns()).filter_map(|column| {
            Some(Input {
                column,
                rotations: program.rotations(column)?,
                rows: rows(column),
            })
        });
        Numerator {
            inputs: inputs.collect(),
            program,
        }
    }
}

/// The program of a numerator, and the columns that it reads.
#[derive(Debug)]
pub struct Numerator<F = Scalar> {
    program: Program<F>,
    inputs: Vec<Input>,
}

impl Numerator {
    /// The program, as jobs have it.
    pub fn program(&self) -> accelerator::Program<'_> {
        accelerator::Program {
            queries: self.program.queries(),
            instructions: self.program.code(),
            registers: self.program.registers(),
        }
    }

    /// Each column that it reads.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }
}

/// The engine's error behind an error of a protocol.
fn engines(error: io::Error) -> spillproof_engine::Error {
    match error.downcast() {
        Ok(error) => error,
        Err(error) => Invalid::ProofSystem {
            what: "plan",
            reason: error.to_string(),
        }
        .into(),
    }
}

/// No values: how many there are costs nothing.
struct NoValues;

impl<F> Values<F> for NoValues {
    fn len(&self) -> usize {
        0
    }

    fn fill(&self, _: usize, _: &mut [F]) {}
}

/// A transcript that is not kept, draws of zeros, and parameters that are only there.
struct DryOutside<C: CommitCurve> {
    workspace: Workspace,
    scheme: OpeningScheme,
    monomial: Column<PointOf<C>>,
    lagrange: Column<PointOf<C>>,
    transcript: DryTranscript,
}

impl<C: CommitCurve> DryOutside<C> {
    fn new(workspace: &Workspace, shape: &Shape<ScalarOf<C>>, scheme: OpeningScheme) -> Result<Self> {
        let parameters = || {
            let rows = shape.domain.rows();
            let frame_bytes = frame_bytes_for(PointOf::<C>::BYTES, SRS_FRAME_BYTES);
            let draft =
                Draft::scratch_with_frames(workspace, "parameters", rows, Placement::Disk, frame_bytes)?;
            draft.finish_unwritten()
        };
        Ok(Self {
            workspace: workspace.clone(),
            scheme,
            monomial: parameters()?,
            lagrange: parameters()?,
            transcript: DryTranscript { challenges: 0 },
        })
    }

    fn committed(&self, columns: &[Column<ScalarOf<C>>]) -> Result<Vec<PointOf<C>>> {
        self.sums(&self.lagrange, columns.iter())
    }

    fn sums<'c>(
        &self,
        bases: &Column<PointOf<C>>,
        columns: impl Iterator<Item = &'c Column<ScalarOf<C>>>,
    ) -> Result<Vec<PointOf<C>>> {
        let scalars: Vec<_> = columns.map(Scalars::Column).collect();
        msm::<C>(bases, &scalars)?;
        Ok(vec![PointOf::<C>::INFINITY; scalars.len()])
    }
}

/// Draws of zeros.
struct NoDraws;

impl<F: KernelField> Randomness<F> for NoDraws {
    fn scalar(&mut self) -> F {
        F::ZERO
    }
}

impl<C: CommitCurve> Randomness<ScalarOf<C>> for DryOutside<C> {
    fn scalar(&mut self) -> ScalarOf<C> {
        NoDraws.scalar()
    }
}

impl<C: CommitCurve> Outside<C> for DryOutside<C> {
    fn transcript(&mut self) -> &mut dyn Transcript<C> {
        &mut self.transcript
    }

    fn commit(&mut self, basis: Basis, columns: &[Blinded<ScalarOf<C>>]) -> Result<Vec<PointOf<C>>> {
        let bases = match basis {
            Basis::Lagrange => &self.lagrange,
            Basis::Monomial => &self.monomial,
        };
        self.sums(bases, columns.iter().map(|column| &column.column))
    }

    fn open(&mut self, opening: &Opening<'_, ScalarOf<C>>) -> io::Result<()> {
        let (workspace, bases, transcript) = (&self.workspace, &self.monomial, &mut self.transcript);
        match self.scheme {
            OpeningScheme::Shplonk => shplonk::open::<C>(workspace, bases, opening, transcript)?,
            OpeningScheme::Gwc => gwc::open::<C>(workspace, bases, opening, transcript)?,
            OpeningScheme::Book {
                book,
                ending: Ending::Quotient,
            } => kzg::open::<C>(workspace, bases, book, opening, transcript)?,
            OpeningScheme::Book {
                book,
                ending: Ending::InnerProduct,
            } => {
                let params = commit::ipa::Params {
                    g: bases.clone(),
                    g_lagrange: self.lagrange.clone(),
                    w: C::GENERATOR,
                    u: C::GENERATOR,
                };
                ipa::open::<C>(&params, book, opening, transcript, &mut NoDraws)?;
            }
        }
        Ok(())
    }
}

/// Challenges that differ from each other, and from 0 and 1.
struct DryTranscript {
    challenges: u64,
}

impl<C: Curve> Transcript<C> for DryTranscript {
    fn write_point(&mut self, _: &PointOf<C>) -> io::Result<()> {
        Ok(())
    }

    fn write_scalar(&mut self, _: ScalarOf<C>) -> io::Result<()> {
        Ok(())
    }

    fn common_point(&mut self, _: &PointOf<C>) -> io::Result<()> {
        Ok(())
    }

    fn common_scalar(&mut self, _: ScalarOf<C>) -> io::Result<()> {
        Ok(())
    }

    fn challenge(&mut self) -> ScalarOf<C> {
        self.challenges += 1;
        ScalarOf::<C>::from(0x9e37_79b9_7f4a_7c15 + self.challenges)
    }
}
