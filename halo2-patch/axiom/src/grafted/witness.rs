//! The witness in a session. A child of upstream's `plonk::witness`.
//!
//! Advice cells go to mapped scratch. At the end of a phase its columns are inverted and written one by one, blinded, and
//! committed to together. Draws are stock's, in stock's order: for each column of the phase its last rows, then for each column its
//! blind. The transcript takes the instances before the first phase's commitments, and gives challenges after each phase's.
//!
//! Memory: what the engine leases, and the last rows of each column of a phase; nothing that grows with `n = 2^k`.

use std::io;
use std::sync::Arc;

use ::spillproof::column::{Placement, Writer};
use ::spillproof::commit::Scalar;
use ::spillproof::Session;

use super::*;
use crate::poly::EvaluationDomain;
use crate::spillproof::bases::or_panic;
use crate::spillproof::cells::AdviceCells;
use crate::spillproof::values::{column, from_column, scalar};

/// Values that are converted at a time.
const TILE: usize = 4096;

/// [`super::build_instance_single`], in a session.
pub(in crate::plonk) fn instance_single<C: CurveAffine>(
    session: &Session,
    domain: &EvaluationDomain<C::Scalar>,
    meta: &ConstraintSystem<C::Scalar>,
    instance: &[&[C::Scalar]],
) -> io::Result<InstanceSingle<C>>
where
    C::Scalar: WithSmallOrderMulGroup<3>,
{
    let rows = 1usize << domain.k();
    let instance_values = instance
        .iter()
        .map(|values| {
            if values.len() > rows - (meta.blinding_factors() + 1) {
                panic!("Error::InstanceTooLarge");
            }
            lagrange_column(session, rows, values, &[])
        })
        .collect::<io::Result<Vec<_>>>()?;
    let instance_polys = instance_values.iter().map(|poly| domain.lagrange_to_coeff(poly.clone())).collect();
    Ok(InstanceSingle { instance_values, instance_polys })
}

/// A column of `rows` rows with `values` in its first ones, `tail` in its last ones, and 0 between.
pub(in crate::plonk) fn lagrange_column<F: Field>(
    session: &Session,
    rows: usize,
    values: &[F],
    tail: &[F],
) -> io::Result<Polynomial<F, LagrangeCoeff>> {
    let write = || {
        let mut writer = Writer::<Scalar>::scratch(session.workspace(), "column", rows as u64, Placement::Auto)?;
        let mut tile = [Scalar::default(); TILE];
        let mut push = |values: &[F]| {
            values.chunks(TILE).try_for_each(|values| {
                for (to, value) in tile.iter_mut().zip(values) {
                    *to = scalar(value);
                }
                writer.push(&tile[..values.len()])
            })
        };
        push(values)?;
        let zeros = [F::ZERO; TILE];
        let mut left = rows - values.len() - tail.len();
        while left > 0 {
            let now = left.min(TILE);
            push(&zeros[..now])?;
            left -= now;
        }
        push(tail)?;
        writer.finish()
    };
    session.workspace().run(write).map(from_column).map_err(io::Error::other)
}

/// Absorbs the instances: their values, or (where the prover queries them) commitments to them.
pub(in crate::plonk) fn absorb_instances<'params, Scheme, P, E, T>(
    params: &Scheme::ParamsProver,
    instances: &[&[Scheme::Scalar]],
    instance_values: &[Polynomial<Scheme::Scalar, LagrangeCoeff>],
    transcript: &mut T,
) where
    Scheme: CommitmentScheme,
    P: Prover<'params, Scheme>,
    E: EncodedChallenge<Scheme::Curve>,
    T: TranscriptWrite<Scheme::Curve, E>,
{
    if P::QUERY_INSTANCE {
        for poly in instance_values {
            let commitment = params.commit_lagrange(poly, Blind::default()).to_affine();
            or_panic(transcript.common_point(commitment));
        }
    } else {
        for value in instances.iter().flat_map(|values| values.iter()) {
            or_panic(transcript.common_scalar(*value));
        }
    }
}

/// Random values for the last rows of `columns` columns, and a blind for each, drawn in stock's order.
pub(in crate::plonk) fn draw<F: Field>(columns: usize, rows: usize, mut rng: impl RngCore) -> (Vec<Vec<F>>, Vec<Blind<F>>) {
    let tails = (0..columns).map(|_| (0..rows).map(|_| F::random(&mut rng)).collect()).collect();
    let blinds = (0..columns).map(|_| Blind(F::random(&mut rng))).collect();
    (tails, blinds)
}

/// [`super::run_phase1_synthesis`], in a session.
pub(in crate::plonk) fn synthesize<'params, 'a, Scheme, P, E, R, T, ConcreteCircuit>(
    session: &Session,
    params: &'params Scheme::ParamsProver,
    pk: &ProvingKey<Scheme::Curve>,
    circuits: &[ConcreteCircuit],
    instances: &[&[&'a [Scheme::Scalar]]],
    instance: &[InstanceSingle<Scheme::Curve>],
    rng: &mut R,
    transcript: &mut T,
) -> Result<(Vec<AdviceCommitted<Scheme::Curve, LagrangeCoeff>>, Vec<Scheme::Scalar>), Error>
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
    let meta = &pk.vk.cs;
    let mut configured = ConstraintSystem::default();
    #[cfg(feature = "circuit-params")]
    let config = ConcreteCircuit::configure_with_params(&mut configured, circuits[0].params());
    #[cfg(not(feature = "circuit-params"))]
    let config = ConcreteCircuit::configure(&mut configured);

    let phases = meta.phases().count();
    // Stock's words: it squeezes a phase's challenges once for each circuit.
    assert!(
        phases == 1 || circuits.len() == 1,
        "New challenge API doesn't work with multiple circuits yet"
    );
    let (column_indices, challenge_indices) = column_and_challenge_indices(meta);
    let mut challenges = HashMap::with_capacity(meta.num_challenges);
    let mut advice = Vec::with_capacity(circuits.len());
    for ((circuit, instances), instance) in circuits.iter().zip(instances).zip(instance) {
        let rows = params.n() as usize;
        let mut witness = Witness::<Scheme, P, E, R, T> {
            session,
            params,
            rows,
            usable_rows: rows - (meta.blinding_factors() + 1),
            phase: 0,
            cells: AdviceCells::new(session.workspace(), meta.num_advice_columns, rows, phases)?,
            instances,
            instance,
            committed: vec![None; meta.num_advice_columns],
            column_indices: &column_indices,
            challenge_indices: &challenge_indices,
            challenges: &mut challenges,
            rng,
            transcript,
            _marker: PhantomData,
        };
        // A circuit may end its phases itself, and is then synthesised once.
        while witness.phase < phases {
            {
                let _span = tracing::info_span!(target: "spillproof::step", "synthesize", phase = witness.phase).entered();
                let constants = meta.constants.clone();
                let synthesized =
                    ConcreteCircuit::FloorPlanner::synthesize(&mut witness, circuit, config.clone(), constants);
                // A panic, as in stock.
                if let Err(error) = synthesized {
                    panic!("{error:?}");
                }
            }
            if witness.phase < phases {
                witness.next_phase();
            }
        }
        let (advice_polys, advice_blinds) = witness.committed.into_iter().flatten().unzip();
        advice.push(AdviceCommitted { advice_polys, advice_blinds });
    }
    assert_eq!(challenges.len(), meta.num_challenges);
    let challenges = (0..meta.num_challenges).map(|index| challenges[&index]).collect();
    Ok((advice, challenges))
}

/// [`super::synthesize_witness`], in a session.
pub(super) fn witness<'params, 'a, Scheme, P, E, R, T, ConcreteCircuit>(
    session: &Arc<Session>,
    params: &'params Scheme::ParamsProver,
    pk: &ProvingKey<Scheme::Curve>,
    circuits: &[ConcreteCircuit],
    instances: &[&[&'a [Scheme::Scalar]]],
    mut rng: R,
    transcript: &mut T,
) -> Result<(Vec<InstanceSingle<Scheme::Curve>>, Vec<AdviceSingle<Scheme::Curve>>, Vec<Scheme::Scalar>), Error>
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
    let _pinned = session.pin();
    let instance = begin(session, pk, circuits.len(), instances, transcript)?;
    let (advice, challenges) = synthesize::<Scheme, P, E, R, T, ConcreteCircuit>(
        session, params, pk, circuits, instances, &instance, &mut rng, transcript,
    )?;
    let domain = &pk.vk.domain;
    let advice = advice
        .into_iter()
        .map(|AdviceCommitted { advice_polys: advice_values, .. }| AdviceSingle {
            advice_polys: advice_values.iter().map(|poly| domain.lagrange_to_coeff(poly.clone())).collect(),
            advice_values,
        })
        .collect();
    Ok((instance, advice, challenges))
}

/// What every proof begins with: the instances' shape is checked, the verifying key hashed, the instance columns made.
pub(in crate::plonk) fn begin<C, E, T>(
    session: &Session,
    pk: &ProvingKey<C>,
    circuits: usize,
    instances: &[&[&[C::Scalar]]],
    transcript: &mut T,
) -> Result<Vec<InstanceSingle<C>>, Error>
where
    C: CurveAffine,
    C::Scalar: WithSmallOrderMulGroup<3>,
    E: EncodedChallenge<C>,
    T: TranscriptWrite<C, E>,
{
    let meta = &pk.vk.cs;
    let shape_fits = |instance: &&[&[C::Scalar]]| instance.len() == meta.num_instance_columns;
    if circuits != instances.len() || !instances.iter().all(shape_fits) {
        return Err(Error::InvalidInstances);
    }
    pk.vk.hash_into(transcript)?;
    let _span = tracing::info_span!(target: "spillproof::step", "instances").entered();
    let columns = instances.iter().map(|instance| instance_single(session, &pk.vk.domain, meta, instance));
    Ok(columns.collect::<io::Result<_>>()?)
}

/// Takes the circuit's assignments, and commits to a phase's columns when it ends.
struct Witness<'params, 'a, 'b, Scheme, P, E, R, T>
where
    Scheme: CommitmentScheme,
{
    session: &'b Session,
    params: &'params Scheme::ParamsProver,
    rows: usize,
    usable_rows: usize,
    phase: usize,
    cells: AdviceCells<Scheme::Scalar>,
    instances: &'b [&'a [Scheme::Scalar]],
    instance: &'b InstanceSingle<Scheme::Curve>,
    /// Of the phases that have ended.
    committed: Vec<Option<(Polynomial<Scheme::Scalar, LagrangeCoeff>, Blind<Scheme::Scalar>)>>,
    column_indices: &'b [Vec<usize>; 3],
    challenge_indices: &'b [Vec<usize>; 3],
    challenges: &'b mut HashMap<usize, Scheme::Scalar>,
    rng: &'b mut R,
    transcript: &'b mut T,
    _marker: PhantomData<(P, E)>,
}

impl<'params, 'a, 'b, F, Scheme, P, E, R, T> Assignment<F> for Witness<'params, 'a, 'b, Scheme, P, E, R, T>
where
    F: Field,
    Scheme: CommitmentScheme<Scalar = F>,
    P: Prover<'params, Scheme>,
    E: EncodedChallenge<Scheme::Curve>,
    R: RngCore,
    T: TranscriptWrite<Scheme::Curve, E>,
{
    fn enter_region<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn exit_region(&mut self) {}

    fn annotate_column<A, AR>(&mut self, _: A, _: Column<Any>)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
    }

    fn push_namespace<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self, _: Option<String>) {}

    fn enable_selector<A, AR>(&mut self, _: A, _: &Selector, _: usize) -> Result<(), Error>
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        Ok(())
    }

    fn assign_fixed(&mut self, _: Column<Fixed>, _: usize, _: Assigned<F>) {}

    fn copy(&mut self, _: Column<Any>, _: usize, _: Column<Any>, _: usize) {}

    fn fill_from_row(&mut self, _: Column<Fixed>, _: usize, _: Value<Assigned<F>>) -> Result<(), Error> {
        Ok(())
    }

    fn query_instance(&self, column: Column<Instance>, row: usize) -> Result<Value<F>, Error> {
        if row >= self.usable_rows {
            return Err(Error::not_enough_rows_available(self.params.k()));
        }
        let value = self.instances.get(column.index()).and_then(|values| values.get(row));
        value.map(|value| Value::known(*value)).ok_or(Error::BoundsFailure)
    }

    fn assign_advice<'v>(
        &mut self,
        column: Column<Advice>,
        row: usize,
        to: Value<Assigned<F>>,
    ) -> Value<&'v Assigned<F>> {
        debug_assert!(
            row < self.usable_rows,
            "{:?}",
            Error::not_enough_rows_available(self.params.k())
        );
        let Ok(value) = to.assign() else {
            panic!("No Value::unknown() in advice column allowed during create_proof");
        };
        Value::known(self.cells.assign(column.index(), row, value))
    }

    fn get_challenge(&self, challenge: Challenge) -> Value<F> {
        match self.challenges.get(&challenge.index()) {
            Some(value) => Value::known(*value),
            None => Value::unknown(),
        }
    }

    fn next_phase(&mut self) {
        let Some(columns) = self.column_indices.get(self.phase) else {
            panic!("The API only supports 3 phases right now");
        };
        let _span = tracing::info_span!(target: "spillproof::step", "commit advice", phase = self.phase, columns = columns.len()).entered();
        or_panic(self.cells.settle());
        if self.phase == 0 {
            absorb_instances::<Scheme, P, E, T>(
                self.params,
                self.instances,
                &self.instance.instance_values,
                self.transcript,
            );
        }
        let (tails, blinds) = draw::<F>(columns.len(), self.rows - self.usable_rows, &mut *self.rng);
        let mut made = Vec::with_capacity(columns.len());
        for (&index, tail) in columns.iter().zip(tails) {
            let tail: Vec<Scalar> = tail.iter().map(scalar).collect();
            let values = self.cells.column(self.session.workspace(), index, &tail);
            made.push(from_column(or_panic(values.map_err(io::Error::other))));
        }
        let blinded: Vec<_> = made.iter().zip(blinds.iter().copied()).collect();
        for commitment in self.params.commit_lagrange_many(&blinded) {
            or_panic(self.transcript.write_point(commitment.to_affine()));
        }
        for ((&index, values), blind) in columns.iter().zip(made).zip(blinds) {
            self.committed[index] = Some((values, blind));
        }
        for &index in &self.challenge_indices[self.phase] {
            let before = self.challenges.insert(index, *self.transcript.squeeze_challenge_scalar::<()>());
            assert!(before.is_none());
        }
        self.phase += 1;
    }
}
