//! The prover in a session: the rounds of `spillproof-plonk` over upstream's types. A child of upstream's
//! `plonk::prover`.

use std::io;
use std::sync::Arc;

use spillproof_engine::checkpoint::Checkpoint;
use spillproof_engine::column::{Column, Workspace};
use spillproof_engine::plan::Phase;
use spillproof_engine::Session;
use spillproof_plonk::curve::Config;
use spillproof_plonk::plan::Inputs;
use spillproof_plonk::{
    AdviceSource, Blinded, Committed, KeyColumns, ProverCurve, ProverField, Rounds, Scalar, StoredAdvice,
};
use spillproof_report::environment::phase;

pub(crate) use super::witness::spillproof_witness::assign;
use super::witness::spillproof_witness::{synthesize, Begun};
use super::*;
use crate::spillproof::convert::Foreign;
use crate::spillproof::engine::prover_session;
use crate::spillproof::error_of;
use crate::spillproof::plan::Work;
use crate::spillproof::protocol::{protocol_of, Callers, Generator};
use crate::spillproof::values::column;
use crate::spillproof::verify::{processor_only, Watch};

/// [`super::create_proof`], in a session.
pub(super) fn create<'params, 'a, Scheme, P, E, R, T, ConcreteCircuit>(
    session: &Arc<Session>,
    params: &'params Scheme::ParamsProver,
    pk: &ProvingKey<Scheme::Curve>,
    circuits: &[ConcreteCircuit],
    instances: &[&[&'a [Scheme::Scalar]]],
    mut rng: R,
    transcript: &mut T,
) -> Result<(), Error>
where
    Scheme: CommitmentScheme,
    P: Prover<'params, Scheme>,
    E: EncodedChallenge<Scheme::Curve>,
    R: RngCore,
    T: TranscriptWrite<Scheme::Curve, E>,
    ConcreteCircuit: Circuit<Scheme::Scalar>,
    Scheme::Scalar: Hash + WithSmallOrderMulGroup<3>,
    Scheme::ParamsProver: Sync,
{
    let (jobs, work) = (pk.vk.selectors.accelerator_jobs(), Work::made(pk.vk.domain.k(), circuits.len()));
    let watch = Watch::begin(session, &pk.vk, jobs, work, P::SPILLPROOF_CHECK.is_some())?;
    let mut recording = watch.recording(transcript);
    let begun = Begun::new(session, pk, circuits.len(), instances, &mut recording)?;
    let checkpoint = begun.checkpoint::<P>(pk, &mut rng)?;
    let rng = Generator::of(&mut rng, checkpoint.as_ref());
    let mut callers = Callers::<Scheme, P, E, _, _>::new(params, rng, &mut recording);
    let mut rounds = Rounds::new(protocol_of::<Scheme, P>(), &mut callers, checkpoint);
    let (advice, challenges) = synthesize(&begun, pk, circuits, instances, &mut rounds)?;
    prove(begun, pk, advice, challenges, &mut rounds)?;
    let checkpoint = rounds.into_checkpoint();
    let verified = watch.verify::<Scheme, T>(P::SPILLPROOF_CHECK, params, &pk.vk, instances, recording);
    finish(checkpoint);
    verified
}

/// One half of [`create_proof`](crate::plonk::create_proof): in the current session, or in memory whatever
/// session there is. The same proof, and the other half is not compiled.
///
/// # Errors
/// Those of `create_proof`; without a session, for its half.
pub fn create_proof_half<'params, 'a, const IN_SESSION: bool, Scheme, P, E, R, T, ConcreteCircuit>(
    params: &'params Scheme::ParamsProver,
    pk: &ProvingKey<Scheme::Curve>,
    circuits: &[ConcreteCircuit],
    instances: &[&[&'a [Scheme::Scalar]]],
    rng: R,
    transcript: &'a mut T,
) -> Result<(), Error>
where
    Scheme: CommitmentScheme<ParamsProver: Sync, Scalar: WithSmallOrderMulGroup<3> + Hash>,
    ConcreteCircuit: Circuit<Scheme::Scalar>,
    T: TranscriptWrite<Scheme::Curve, E>,
    P: Prover<'params, Scheme>,
    E: EncodedChallenge<Scheme::Curve>,
    R: RngCore + 'a,
{
    if const { IN_SESSION } {
        let Some(session) = prover_session::<Scheme::Curve>()? else {
            return Err(io::Error::other("a proof in a session needs one: set SPILLPROOF_MEMORY, or install one").into());
        };
        phase(&session, Phase::Proof, || {
            error_of(|| {
                create::<Scheme, P, E, R, T, ConcreteCircuit>(
                    &session, params, pk, circuits, instances, rng, transcript,
                )
            })
        })
    } else {
        // A session that is asked for and cannot be made is an error here, too.
        prover_session::<Scheme::Curve>()?;
        let _alone = processor_only();
        create_proof_in_memory::<Scheme, P, E, R, T, ConcreteCircuit>(params, pk, circuits, instances, rng, transcript)
    }
}

/// [`super::create_proof_from_advice`], in a session.
pub(super) fn create_from_advice<'params, Scheme, P, E, R, T>(
    session: &Arc<Session>,
    params: &'params Scheme::ParamsProver,
    pk: &ProvingKey<Scheme::Curve>,
    instances: &[&[Scheme::Scalar]],
    advice: witness::AdviceColumns<Scheme::Scalar>,
    rng: R,
    transcript: &mut T,
) -> Result<(), Error>
where
    Scheme: CommitmentScheme,
    P: Prover<'params, Scheme>,
    E: EncodedChallenge<Scheme::Curve>,
    R: RngCore,
    T: TranscriptWrite<Scheme::Curve, E>,
    Scheme::Scalar: Hash + WithSmallOrderMulGroup<3>,
    Scheme::ParamsProver: Sync,
{
    let (meta, rows) = (&pk.vk.cs, params.n() as usize);
    if instances.len() != meta.num_instance_columns {
        return Err(Error::InvalidInstances);
    }
    assert_eq!(
        meta.phases().count(),
        1,
        "create_proof_from_advice: challenges of several phases need synthesis"
    );
    assert_eq!(advice.len(), meta.num_advice_columns, "create_proof_from_advice: advice columns");
    for column in &advice {
        assert_eq!(column.len(), rows, "create_proof_from_advice: rows of an advice column");
    }
    let mut given = Given { columns: advice, usable_rows: rows - (meta.blinding_factors() + 1) };
    let work = Work::made(pk.vk.domain.k(), 1);
    create_from_source::<Scheme, P, E, R, T>((session, work), params, pk, instances, &mut given, rng, transcript)
}

/// [`super::create_proof`] of one circuit, whose advice was saved: the same draws in the same order, and so
/// the same bytes.
pub(crate) fn create_from_witness<'params, Scheme, P, E, R, T>(
    session: &Arc<Session>,
    params: &'params Scheme::ParamsProver,
    pk: &ProvingKey<Scheme::Curve>,
    (instances, mut advice): (&[&[Scheme::Scalar]], StoredAdvice),
    rng: R,
    transcript: &mut T,
) -> Result<(), Error>
where
    Scheme: CommitmentScheme,
    P: Prover<'params, Scheme>,
    E: EncodedChallenge<Scheme::Curve>,
    R: RngCore,
    T: TranscriptWrite<Scheme::Curve, E>,
    Scheme::Scalar: Hash + WithSmallOrderMulGroup<3>,
    Scheme::ParamsProver: Sync,
{
    // The files are open.
    let inputs = Inputs::Stored { held_bytes: 0 };
    let work = Work { k: pk.vk.domain.k(), circuits: 1, inputs };
    create_from_source::<Scheme, P, E, R, T>((session, work), params, pk, instances, &mut advice, rng, transcript)
}

/// A proof of one circuit of one phase, from its advice.
fn create_from_source<'params, Scheme, P, E, R, T>(
    (session, work): (&Arc<Session>, Work),
    params: &'params Scheme::ParamsProver,
    pk: &ProvingKey<Scheme::Curve>,
    instances: &[&[Scheme::Scalar]],
    advice: &mut dyn AdviceSource,
    mut rng: R,
    transcript: &mut T,
) -> Result<(), Error>
where
    Scheme: CommitmentScheme,
    P: Prover<'params, Scheme>,
    E: EncodedChallenge<Scheme::Curve>,
    R: RngCore,
    T: TranscriptWrite<Scheme::Curve, E>,
    Scheme::Scalar: Hash + WithSmallOrderMulGroup<3>,
    Scheme::ParamsProver: Sync,
{
    let jobs = pk.vk.selectors.accelerator_jobs();
    let watch = Watch::begin(session, &pk.vk, jobs, work, P::SPILLPROOF_CHECK.is_some())?;
    let mut recording = watch.recording(transcript);
    let begun = Begun::new(session, pk, 1, &[instances], &mut recording)?;
    let checkpoint = begun.checkpoint::<P>(pk, &mut rng)?;
    let rng = Generator::of(&mut rng, checkpoint.as_ref());
    let mut callers = Callers::<Scheme, P, E, _, _>::new(params, rng, &mut recording);
    let mut rounds = Rounds::new(protocol_of::<Scheme, P>(), &mut callers, checkpoint);
    let mut challenges = vec![None; pk.vk.cs.num_challenges];
    let mut witness = begun.witness(0);
    Config::absorb_instances(&witness, &mut rounds)?;
    Config::commit_phase(&mut witness, advice, &mut challenges, &mut rounds)?;
    let advice = vec![witness.into_columns()];
    let challenges: Vec<_> = challenges.into_iter().flatten().collect();
    assert_eq!(challenges.len(), pk.vk.cs.num_challenges);
    prove(begun, pk, advice, challenges, &mut rounds)?;
    let checkpoint = rounds.into_checkpoint();
    let verified = watch.verify::<Scheme, T>(P::SPILLPROOF_CHECK, params, &pk.vk, &[instances], recording);
    finish(checkpoint);
    verified
}

/// The selectors of a verifying key.
pub(crate) fn selectors_of<C: CurveAffine>(vk: &super::super::VerifyingKey<C>) -> &crate::spillproof::SelectorBits {
    &vk.selectors
}

/// Whether the proof verifies or not, its random values are in a transcript now, and no other may have them.
/// A checkpoint that stays behind makes the same proof, so that is no failure of this one.
fn finish(checkpoint: Option<Checkpoint>) {
    if let Some(Err(error)) = checkpoint.map(Checkpoint::finish) {
        tracing::warn!("spillproof: the checkpoint of a proof that is finished stays behind: {error}");
    }
}

/// From committed advice to the end.
fn prove<C: CurveAffine>(
    begun: Begun<'_>,
    pk: &ProvingKey<C>,
    advice: Vec<Vec<Blinded>>,
    challenges: Vec<Scalar>,
    rounds: &mut Rounds<'_>,
) -> Result<(), Error> {
    let Begun { session, cs, domain, instance, .. } = begun;
    let circuits = instance.into_iter().zip(advice);
    let circuits = circuits.map(|(instance, advice)| Committed { instance, advice }).collect();
    let prover = spillproof_plonk::Prover {
        workspace: session.workspace(),
        quotient_tile_rows: session.quotient_tile_rows(),
        cs: &cs,
        domain: &domain,
        key: &Key(pk),
        rounds,
    };
    Config::prove(prover, circuits, challenges).map_err(Into::into)
}

/// Advice that the caller has already.
struct Given<F> {
    columns: Vec<Vec<F>>,
    usable_rows: usize,
}

impl<F: Field> AdviceSource for Given<F> {
    fn assigned(&mut self) -> spillproof_plonk::Result<()> {
        Ok(())
    }

    fn column(
        &mut self,
        workspace: &Workspace,
        index: usize,
        _: Option<usize>,
        tail: &[Scalar],
    ) -> spillproof_plonk::Result<Column<Scalar>> {
        // The caller's vector goes as soon as its column is written.
        let values = std::mem::take(&mut self.columns[index]);
        let usable = Foreign(&values[..self.usable_rows]);
        Ok(Scalar::padded_column(workspace, values.len() as u64, &usable, tail)?)
    }
}

/// The columns behind a key.
struct Key<'k, C: CurveAffine>(&'k ProvingKey<C>);

impl<C: CurveAffine> KeyColumns for Key<'_, C> {
    fn fixed_values(&self) -> spillproof_plonk::Result<Vec<Column<Scalar>>> {
        columns(&self.0.fixed_values)
    }

    fn fixed_polynomials(&self) -> spillproof_plonk::Result<Vec<Column<Scalar>>> {
        columns(&self.0.fixed_polys)
    }

    fn sigma_values(&self) -> spillproof_plonk::Result<Vec<Column<Scalar>>> {
        columns(self.0.permutation.permutations())
    }

    fn sigma_polynomials(&self) -> spillproof_plonk::Result<Vec<Column<Scalar>>> {
        columns(self.0.permutation.polys())
    }
}

fn columns<F: Field, B>(polys: &[Polynomial<F, B>]) -> spillproof_plonk::Result<Vec<Column<Scalar>>> {
    polys.iter().map(|poly| Ok(column(poly)?)).collect()
}
