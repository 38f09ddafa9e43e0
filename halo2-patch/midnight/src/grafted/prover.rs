//! The prover in a session: the rounds of `spillproof-plonk` over upstream's types. A child of upstream's
//! `plonk::prover`.

use std::io;
use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;
use spillproof_engine::checkpoint::{Checkpoint, Terms};
use spillproof_engine::column::Workspace;
use spillproof_engine::plan::Phase;
use spillproof_engine::Session;
use spillproof_kernels::field::KernelField as _;
use spillproof_plonk::plan::Inputs;
use spillproof_plonk::saved::refused_cell;
use spillproof_plonk::{
    statement, AdviceCells, AdviceSource, Committed, Domain, LimbCell, ProverCurve as _, ProverField as _,
    Rounds, SavedError, StoredAdvice, Values, Witness,
};
use spillproof_report::environment::{self, CircuitInWords};

use super::*;
use crate::spillproof::bridge::Bridge;
use crate::spillproof::circuit;
use crate::spillproof::convert::{foreign, scalar, Foreign, Scalar, P};
use crate::spillproof::key::KeyOf;
use crate::spillproof::plan::{admit, known, Shape};
use crate::spillproof::protocol::{name, protocol, Caller};
use crate::spillproof::reproducible;
use crate::spillproof::verify::Check;

/// What is proved: circuits, and the values of their instance columns. With the feature, the verifier has the
/// first `committed` as commitments.
pub(super) struct Statement<'p, F, ConcreteCircuit> {
    pub(super) circuits: &'p [ConcreteCircuit],
    #[cfg(feature = "committed-instances")]
    pub(super) committed: usize,
    pub(super) instances: &'p [&'p [&'p [F]]],
}

/// The same without the circuits, and where their witnesses come from.
pub(crate) struct Proved<'p, F> {
    circuits: usize,
    committed: usize,
    instances: &'p [&'p [&'p [F]]],
    inputs: Inputs,
}

impl<'p, F> Proved<'p, F> {
    /// One circuit, whose key and witness are in files that are open.
    pub(crate) fn stored(committed: usize, instances: &'p [&'p [&'p [F]]]) -> Self {
        Self { circuits: 1, committed, instances, inputs: Inputs::Stored { held_bytes: 0 } }
    }
}

/// The witnesses of a proof, while their phases are committed to.
struct Phases<'b, 'r> {
    workspace: &'b Workspace,
    cs: &'b spillproof_plonk::ConstraintSystem<Scalar>,
    domain: &'b Domain<Scalar>,
    witnesses: Vec<Witness<'b, Scalar>>,
    /// A place for each.
    challenges: Vec<Option<Scalar>>,
    rounds: &'b mut Rounds<'r, P>,
}

/// [`super::create_proof`], in a session.
pub(super) fn create<F, CS, T, R, ConcreteCircuit>(
    found: &(Arc<Session>, Bridge<F, CS>),
    params: &CS::Parameters,
    pk: &ProvingKey<F, CS>,
    statement: &Statement<'_, F, ConcreteCircuit>,
    mut rng: R,
    transcript: &mut T,
) -> Result<(), Error>
where
    F: WithSmallOrderMulGroup<3>
        + Sampleable<T::Hash>
        + Hashable<T::Hash>
        + Hash
        + Ord
        + FromUniformBytes<64>,
    CS: PolynomialCommitmentScheme<F, Commitment: Hashable<T::Hash>>,
    T: Transcript,
    R: RngCore + CryptoRng,
    ConcreteCircuit: Circuit<F>,
{
    let Statement { circuits, instances, .. } = statement;
    #[cfg(feature = "committed-instances")]
    let committed = statement.committed;
    #[cfg(not(feature = "committed-instances"))]
    let committed = 0;
    let proved = Proved { circuits: circuits.len(), committed, instances, inputs: Inputs::Made };
    let mut synthesize = |phases: &mut Phases<'_, '_>| {
        let mut unused = ConstraintSystem::default();
        #[cfg(feature = "circuit-params")]
        let config = ConcreteCircuit::configure_with_params(&mut unused, circuits[0].params());
        #[cfg(not(feature = "circuit-params"))]
        let config = ConcreteCircuit::configure(&mut unused);
        let Phases { workspace, cs, domain, witnesses, challenges, rounds } = phases;
        for phase in 0..cs.phases() {
            for ((witness, circuit), instances) in witnesses.iter_mut().zip(*circuits).zip(*instances) {
                if P::take_kept_phase(witness, rounds)? {
                    continue;
                }
                let mut synthesis = Synthesis {
                    phase,
                    ..Synthesis::new(workspace, (cs, domain), instances, challenges)?
                };
                {
                    let _step = spillproof_engine::step!(workspace, "synthesize");
                    let (config, constants) = (config.clone(), pk.vk.cs.constants.clone());
                    ConcreteCircuit::FloorPlanner::synthesize(&mut synthesis, circuit, config, constants)?;
                }
                P::commit_limbs(witness, &mut synthesis.cells, rounds)?;
            }
            P::draw_challenges(cs, phase, challenges, rounds)?;
        }
        Ok(())
    };
    prove(found, params, pk, &proved, &mut rng, transcript, &mut synthesize)
}

/// [`super::create_proof`] of one circuit, whose advice was saved: the same draws in the same order, and so
/// the same bytes.
pub(crate) fn create_from_witness<F, CS, T>(
    found: &(Arc<Session>, Bridge<F, CS>),
    params: &CS::Parameters,
    pk: &ProvingKey<F, CS>,
    proved: &Proved<'_, F>,
    mut advice: StoredAdvice<Scalar>,
    rng: &mut dyn RngCore,
    transcript: &mut T,
) -> Result<(), Error>
where
    F: WithSmallOrderMulGroup<3>
        + Sampleable<T::Hash>
        + Hashable<T::Hash>
        + Hash
        + Ord
        + FromUniformBytes<64>,
    CS: PolynomialCommitmentScheme<F, Commitment: Hashable<T::Hash>>,
    T: Transcript,
{
    let mut take = |phases: &mut Phases<'_, '_>| {
        let Phases { witnesses, challenges, rounds, .. } = phases;
        for witness in witnesses {
            P::commit_phase(witness, &mut advice, challenges, rounds)?;
        }
        Ok(())
    };
    prove(found, params, pk, proved, rng, transcript, &mut take)
}

/// A proof, whose advice columns `assign` commits to.
fn prove<F, CS, T>(
    (session, bridge): &(Arc<Session>, Bridge<F, CS>),
    params: &CS::Parameters,
    pk: &ProvingKey<F, CS>,
    proved: &Proved<'_, F>,
    rng: &mut dyn RngCore,
    transcript: &mut T,
    assign: &mut dyn FnMut(&mut Phases<'_, '_>) -> Result<(), Error>,
) -> Result<(), Error>
where
    F: WithSmallOrderMulGroup<3>
        + Sampleable<T::Hash>
        + Hashable<T::Hash>
        + Hash
        + Ord
        + FromUniformBytes<64>,
    CS: PolynomialCommitmentScheme<F, Commitment: Hashable<T::Hash>>,
    T: Transcript,
{
    // Of the caller's pool: the random polynomial depends on them.
    let threads = rayon::current_num_threads();
    let meta = &pk.vk.cs;
    let &Proved { circuits, committed, instances, inputs } = proved;
    let shape_fits = |instance: &&[&[F]]| {
        instance.len() == meta.num_instance_columns && instance.len() >= committed
    };
    if circuits != instances.len() || !instances.iter().all(shape_fits) {
        return Err(Error::InvalidInstances);
    }
    let k = pk.vk.domain.k();
    let shape = Shape::new(known(meta), k)
        .with_circuits(circuits)
        .with_committed_instances(committed)
        .keeping_rounds(session.checkpoints().is_some())
        .with_inputs(inputs);
    let _task = admit(session, Phase::Proof, &shape)?;
    let check = Check { params, vk: &pk.vk, instances, committed, transcript: transcript.clone() }.wanted();
    pk.vk.hash_into(transcript)?;
    let cs = circuit::constraint_system(meta, pk.vk.cs_degree);
    let repr = pk.vk.transcript_repr.to_repr();
    environment::fact("rows", || format!("2^{k}"));
    let in_words = CircuitInWords {
        advice: cs.advice_columns(),
        fixed: cs.fixed_columns,
        instance: cs.instance_columns,
        constraints: cs.gates.len(),
        lookups: cs.lookups.len(),
        permuted: cs.permuted.len(),
        degree: cs.degree,
        circuits,
    };
    environment::fact("circuit", || in_words.to_string());
    environment::fact("verifying key", || {
        repr.as_ref().iter().rev().map(|byte| format!("{byte:02x}")).collect()
    });
    let domain = circuit::domain::<F>(k, pk.vk.cs_degree);
    let usable_rows = domain.rows() as usize - cs.unusable_rows();
    if instances.iter().copied().flatten().any(|values| values.len() > usable_rows) {
        return Err(Error::InstanceTooLarge);
    }
    let workspace = session.workspace();
    let public: Vec<Vec<_>> = instances.iter().map(|columns| values(columns)).collect();
    let of_what = Kept { name: name(committed, threads), key: scalar(&pk.vk.transcript_repr), public: &public };
    let checkpoint = of_what.checkpoint(session, &domain, rng)?;
    let mut seeded = checkpoint.as_ref().and_then(Checkpoint::seed).map(|seed| ChaCha20Rng::from_seed(*seed));
    let rng: &mut dyn RngCore = match &mut seeded {
        Some(seeded) => seeded,
        None => rng,
    };
    let mut outside = Caller::new(session, *bridge, (bridge.params)(params), rng, threads, transcript)?;
    let mut rounds = Rounds::new(protocol(committed), &mut outside, checkpoint);
    let instance = Scalar::instance_columns(workspace, &domain, &public)?;
    let witnesses = public.iter().zip(&instance);
    let witnesses =
        witnesses.map(|(public, instance)| Witness::new(workspace, &cs, &domain, public, instance));
    let mut phases = Phases {
        workspace,
        cs: &cs,
        domain: &domain,
        witnesses: witnesses.collect(),
        challenges: vec![None; cs.challenge_phases.len()],
        rounds: &mut rounds,
    };
    // Those of all circuits come before any advice.
    for witness in &phases.witnesses {
        P::absorb_instances(witness, phases.rounds)?;
    }
    assign(&mut phases)?;
    let Phases { witnesses, challenges, .. } = phases;
    let advice: Vec<_> = witnesses.into_iter().map(Witness::into_columns).collect();
    let circuits = instance.into_iter().zip(advice);
    let circuits = circuits.map(|(instance, advice)| Committed { instance, advice }).collect();
    let key = KeyOf::new(workspace, pk);
    let prover = spillproof_plonk::Prover {
        workspace,
        quotient_tile_rows: session.quotient_tile_rows(),
        cs: &cs,
        domain: &domain,
        key: key.columns(),
        rounds: &mut rounds,
    };
    // Every challenge has a phase, and all phases have ended.
    let challenges = challenges.into_iter().flatten().collect();
    P::prove(prover, circuits, challenges)?;
    let checkpoint = rounds.into_checkpoint();
    let record = outside.into_record();
    let verified = check.map_or(Ok(()), |check| check.verify(session, record));
    // The proof is in the transcript, verified or not, and with it the random values, which no other proof may
    // have.
    if let Some(Err(error)) = checkpoint.map(Checkpoint::finish) {
        tracing::warn!("spillproof: the checkpoint of a proof that is finished stays behind: {error}");
    }
    verified
}

/// What a checkpoint is of.
struct Kept<'k> {
    name: String,
    key: Scalar,
    public: &'k [Vec<Box<dyn Values<Scalar> + 'k>>],
}

impl Kept<'_> {
    /// That of an earlier run, or a new one; none, if the session keeps none.
    fn checkpoint(
        &self,
        session: &Session,
        domain: &Domain<Scalar>,
        rng: &mut dyn RngCore,
    ) -> io::Result<Option<Checkpoint>> {
        let Some(checkpoints) = session.checkpoints() else {
            return Ok(None);
        };
        let terms = Terms {
            statement: statement(self.key, domain, &self.name, self.public),
            draws_are_the_callers: reproducible(),
        };
        let entropy = |bytes: &mut [u8; 32]| {
            if !terms.draws_are_the_callers {
                rng.fill_bytes(bytes);
            }
        };
        checkpoints.begin(session.workspace(), &terms, entropy).map(Some).map_err(io::Error::other)
    }
}

/// The values of a circuit's instance columns.
fn values<'v, F: PrimeField>(columns: &[&'v [F]]) -> Vec<Box<dyn Values<Scalar> + 'v>> {
    columns.iter().map(|values| Box::new(Foreign(values)) as Box<dyn Values<Scalar> + 'v>).collect()
}

/// The cell of an assigned value.
fn cell<F: PrimeField>(value: Rational<F>) -> LimbCell {
    let limbs = |value: &F| *scalar(value).montgomery_limbs();
    match value.denominator() {
        None => [limbs(&value.numerator()), [0; 4]],
        // As in stock, a fraction whose denominator is zero is zero.
        Some(denominator) if bool::from(denominator.is_zero()) => LimbCell::default(),
        Some(denominator) => [limbs(&value.numerator()), limbs(&denominator)],
    }
}

/// The advice of a circuit of one phase, for a file.
///
/// # Errors
/// [`SavedError::Synthesis`] within the error; the engine's.
pub(crate) fn assign<F, CS, ConcreteCircuit>(
    session: &Session,
    vk: &super::super::VerifyingKey<F, CS>,
    circuit: &ConcreteCircuit,
    instances: &[&[F]],
) -> io::Result<Box<dyn AdviceSource<Scalar> + Send>>
where
    F: WithSmallOrderMulGroup<3>,
    CS: PolynomialCommitmentScheme<F>,
    ConcreteCircuit: Circuit<F>,
{
    let cs = circuit::constraint_system(&vk.cs, vk.cs_degree);
    let domain = circuit::domain::<F>(vk.domain.k(), vk.cs_degree);
    let mut unused = ConstraintSystem::default();
    #[cfg(feature = "circuit-params")]
    let config = ConcreteCircuit::configure_with_params(&mut unused, circuit.params());
    #[cfg(not(feature = "circuit-params"))]
    let config = ConcreteCircuit::configure(&mut unused);
    let workspace = session.workspace();
    let mut synthesis = Synthesis::new(workspace, (&cs, &domain), instances, &[])?;
    let _step = spillproof_engine::step!(workspace, "synthesize");
    let constants = vk.cs.constants.clone();
    let synthesized = ConcreteCircuit::FloorPlanner::synthesize(&mut synthesis, circuit, config, constants);
    // What was refused explains what failed then.
    let reason = match (synthesis.refused, synthesized) {
        (None, Ok(())) => return Ok(Box::new(synthesis.cells)),
        (Some(reason), _) => reason,
        (None, Err(Error::Transcript(error))) => return Err(error),
        (None, Err(error)) => error.to_string(),
    };
    Err(SavedError::Synthesis { reason }.into())
}

/// Takes the circuit's assignments of one phase.
struct Synthesis<'b, F> {
    k: u32,
    phase: usize,
    usable_rows: usize,
    columns: usize,
    cells: AdviceCells<LimbCell, Scalar>,
    instances: &'b [&'b [F]],
    challenges: &'b [Option<Scalar>],
    /// The first cell that cannot be assigned.
    refused: Option<String>,
}

impl<'b, F> Synthesis<'b, F> {
    /// Of the first phase.
    fn new(
        workspace: &Workspace,
        (cs, domain): (&spillproof_plonk::ConstraintSystem<Scalar>, &Domain<Scalar>),
        instances: &'b [&'b [F]],
        challenges: &'b [Option<Scalar>],
    ) -> io::Result<Self> {
        Ok(Self {
            k: domain.log_n,
            phase: 0,
            usable_rows: domain.rows() as usize - cs.unusable_rows(),
            columns: cs.advice_columns(),
            cells: Scalar::limb_cells(workspace, cs, domain)?,
            instances,
            challenges,
            refused: None,
        })
    }

    /// Takes note of a cell that cannot be assigned.
    fn refuse(&mut self, column: usize, row: usize, has_value: bool) {
        self.refused.get_or_insert_with(|| refused_cell(column, row, has_value));
    }
}

impl<F: PrimeField> Assignment<F> for Synthesis<'_, F> {
    spillproof_plonk::nameless!(columns);
    spillproof_plonk::proves!(Rational);

    fn get_challenge(&self, challenge: Challenge) -> Value<F> {
        match self.challenges.get(challenge.index()) {
            Some(Some(challenge)) => Value::known(foreign(*challenge)),
            _ => Value::unknown(),
        }
    }

    fn assign_advice<V, VR, A, AR>(
        &mut self,
        _: A,
        column: Column<Advice>,
        row: usize,
        to: V,
    ) -> Result<(), Error>
    where
        V: FnOnce() -> Value<VR>,
        VR: Into<Rational<F>>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        if usize::from(column.column_type().phase()) != self.phase {
            return Ok(());
        }
        if row >= self.usable_rows {
            self.refuse(column.index(), row, true);
            return Err(Error::not_enough_rows_available(self.k));
        }
        let to = to().into_field().assign();
        let to = to.inspect_err(|_| self.refuse(column.index(), row, false))?;
        if column.index() >= self.columns {
            return Err(Error::BoundsFailure);
        }
        Scalar::assign_limbs(&mut self.cells, column.index(), row, cell(to))?;
        Ok(())
    }
}
