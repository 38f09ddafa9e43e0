//! The prover in a session: the rounds of `spillproof-plonk` over upstream's types. A child of upstream's
//! `plonk::prover`.

use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

use ff::PrimeField as _;
use spillproof_kernels::field::KernelField;
use spillproof_engine::plan::Phase;
use spillproof_engine::Session;
use spillproof_plonk::{
    AdviceCells, Committed, Domain, KeyColumns, LimbCell, ProverField, Rounds, Values, Witness,
};

use spillproof_report::environment::{self, CircuitInWords, VERDICT};

use super::*;
use crate::spillproof::bases::of_engine;
use crate::spillproof::circuit;
use crate::spillproof::convert::{scalar, with_engine, Engine, Foreign, Task};
use crate::spillproof::key::KeyInMemory;
use crate::spillproof::plan::{admit, Shape};
use crate::spillproof::protocol::{Callers, PROTOCOL};

/// [`super::create_proof`], in a session.
pub(super) fn create<C, E, R, T, ConcreteCircuit>(
    session: &Arc<Session>,
    params: &Params<C>,
    pk: &ProvingKey<C>,
    circuits: &[ConcreteCircuit],
    instances: &[&[&[C::Scalar]]],
    mut rng: R,
    transcript: &mut T,
) -> Result<(), Error>
where
    C: CurveAffine,
    E: EncodedChallenge<C>,
    R: Rng,
    T: TranscriptWrite<C, E>,
    ConcreteCircuit: Circuit<C::Scalar>,
{
    let proof = Proof {
        session,
        params,
        pk,
        circuits,
        instances,
        rng: &mut rng,
        transcript,
        _marker: PhantomData::<E>,
    };
    with_engine::<C, _>(proof).unwrap_or(Err(Error::Synthesis))
}

struct Proof<'p, C: CurveAffine, E, R, T, ConcreteCircuit> {
    session: &'p Arc<Session>,
    params: &'p Params<C>,
    pk: &'p ProvingKey<C>,
    circuits: &'p [ConcreteCircuit],
    instances: &'p [&'p [&'p [C::Scalar]]],
    rng: &'p mut R,
    transcript: &'p mut T,
    _marker: PhantomData<E>,
}

impl<C, E, R, T, ConcreteCircuit> Task<C> for Proof<'_, C, E, R, T, ConcreteCircuit>
where
    C: CurveAffine,
    E: EncodedChallenge<C>,
    R: Rng,
    T: TranscriptWrite<C, E>,
    ConcreteCircuit: Circuit<C::Scalar>,
{
    type Output = Result<(), Error>;

    fn run<P: Engine>(self) -> Self::Output {
        let Self { session, params, pk, circuits, instances, rng, transcript, .. } = self;
        let meta = &pk.vk.cs;
        let shape_fits = |instance: &&[&[C::Scalar]]| instance.len() == meta.num_instance_columns;
        if circuits.len() != instances.len() || !instances.iter().all(shape_fits) {
            return Err(Error::InvalidInstances);
        }
        let k = params.k;
        let _task = admit::<C, P>(session, Phase::Proof, Shape::new(meta, k, circuits.len()))?;
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
            circuits: circuits.len(),
        };
        environment::fact("circuit", || in_words.to_string());
        environment::fact("verifying key", || repr.as_ref().iter().rev().map(|byte| format!("{byte:02x}")).collect());
        environment::fact(VERDICT, || "not verified: halo2_proofs in a session leaves that to the caller".to_owned());
        let domain: Domain<P::ScalarField> = circuit::domain::<C::Scalar, _>(k, pk.vk.cs_degree);
        assert_eq!(pk.vk.domain.get_omega(), crate::spillproof::convert::foreign(domain.omega), "rows of a key, and of parameters");
        let usable_rows = domain.rows() as usize - cs.unusable_rows();
        if instances.iter().copied().flatten().any(|values| values.len() > usable_rows) {
            return Err(Error::InstanceTooLarge);
        }

        if session.checkpoints().is_some() {
            tracing::warn!("spillproof: no checkpoint is kept of this proof: halo2_proofs has none");
        }
        let workspace = session.workspace();
        let Params { g, g_lagrange, w, u, .. } = params;
        let params = of_engine::<C, P>(workspace, [g, g_lagrange], [w, u])?;
        let mut callers = Callers::<P, C, E, _, _>::new(params, rng, transcript);
        let mut rounds = Rounds::new(PROTOCOL, &mut callers, None);
        let public: Vec<Vec<_>> = instances.iter().map(|columns| values(columns)).collect();
        let instance = P::ScalarField::instance_columns(workspace, &domain, &public)?;
        let mut witnesses: Vec<_> = public
            .iter()
            .zip(&instance)
            .map(|(public, instance)| Witness::new(workspace, &cs, &domain, public, instance))
            .collect();
        // Those of all circuits come before any advice.
        witnesses.iter().try_for_each(|witness| P::absorb_instances(witness, &mut rounds))?;
        let mut unused = ConstraintSystem::default();
        let config = ConcreteCircuit::configure(&mut unused);
        for ((witness, circuit), instances) in witnesses.iter_mut().zip(circuits).zip(instances) {
            let cells = P::ScalarField::limb_cells(workspace, &cs, &domain)?;
            let columns = cs.advice_columns();
            let mut synthesis = Synthesis { k, usable_rows, columns, cells, instances };
            {
                let _step = spillproof_engine::step!(workspace, "synthesize");
                let (config, constants) = (config.clone(), meta.constants.clone());
                ConcreteCircuit::FloorPlanner::synthesize(&mut synthesis, circuit, config, constants)?;
            }
            P::commit_limbs(witness, &mut synthesis.cells, &mut rounds)?;
        }
        let advice: Vec<_> = witnesses.into_iter().map(Witness::into_columns).collect();
        let circuits = instance.into_iter().zip(advice);
        let circuits = circuits.map(|(instance, advice)| Committed { instance, advice }).collect();
        let in_memory;
        let key: &dyn KeyColumns<P::ScalarField> = match pk.spillproof.columns::<P::ScalarField>() {
            Some(columns) => columns,
            None => {
                in_memory = KeyInMemory {
                    workspace,
                    polynomials: [
                        KeyInMemory::slices(&pk.fixed_values),
                        KeyInMemory::slices(&pk.fixed_polys),
                        KeyInMemory::slices(&pk.permutation.permutations),
                        KeyInMemory::slices(&pk.permutation.polys),
                    ],
                };
                &in_memory
            }
        };
        let prover = spillproof_plonk::Prover {
            workspace,
            quotient_tile_rows: session.quotient_tile_rows(),
            cs: &cs,
            domain: &domain,
            key,
            rounds: &mut rounds,
        };
        Ok(P::prove(prover, circuits, Vec::new())?)
    }
}

/// The values of a circuit's instance columns.
fn values<'v, F: Field, G: KernelField>(columns: &[&'v [F]]) -> Vec<Box<dyn Values<G> + 'v>> {
    columns.iter().map(|values| Box::new(Foreign(values)) as Box<dyn Values<G> + 'v>).collect()
}

/// The cell of an assigned value.
fn cell<F: Field, G: KernelField>(value: Assigned<F>) -> LimbCell {
    let limbs = |value: &F| *scalar::<F, G>(value).montgomery_limbs();
    match value.denominator() {
        None => [limbs(&value.numerator()), [0; 4]],
        // As in stock, a fraction whose denominator is zero is zero.
        Some(denominator) if bool::from(denominator.is_zero()) => LimbCell::default(),
        Some(denominator) => [limbs(&value.numerator()), limbs(&denominator)],
    }
}

/// Takes the circuit's assignments.
struct Synthesis<'b, F, G> {
    k: u32,
    usable_rows: usize,
    columns: usize,
    cells: AdviceCells<LimbCell, G>,
    instances: &'b [&'b [F]],
}

impl<F: Field, G: ProverField> Assignment<F> for Synthesis<'_, F, G> {
    spillproof_plonk::nameless!();
    spillproof_plonk::proves!(Assigned);

    fn assign_advice<V, VR, A, AR>(
        &mut self,
        _: A,
        column: Column<Advice>,
        row: usize,
        to: V,
    ) -> Result<(), Error>
    where
        V: FnOnce() -> Value<VR>,
        VR: Into<Assigned<F>>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        if row >= self.usable_rows {
            return Err(Error::not_enough_rows_available(self.k));
        }
        let to = to().into_field().assign()?;
        if column.index() >= self.columns {
            return Err(Error::BoundsFailure);
        }
        G::assign_limbs(&mut self.cells, column.index(), row, cell::<F, G>(to))?;
        Ok(())
    }
}
