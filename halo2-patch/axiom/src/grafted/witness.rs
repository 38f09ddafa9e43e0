//! The witness in a session: synthesis into the phases of `spillproof-halo2`. A child of upstream's `plonk::witness`.

use std::io;
use std::sync::Arc;

use ::spillproof::checkpoint::{Checkpoint, Terms};
use ::spillproof::Session;
use spillproof_halo2::curve::Config;
use spillproof_halo2::{
    statement, Blinded, Domain, InstanceColumns, ProverCurve, ProverField, Rounds, Scalar, Values,
};

use super::*;
use crate::spillproof::or_panic;
use crate::spillproof::cells::AdviceCells;
use crate::spillproof::circuit;
use crate::spillproof::convert::{foreign, scalar, Foreign};
use crate::spillproof::protocol::{Generator, Outside};
use crate::spillproof::reproducible;
use crate::spillproof::values::from_column;

/// A proof that has begun: the instances' shape is checked, the verifying key hashed, the instance columns made.
pub(in crate::plonk) struct Begun<'b> {
    pub(in crate::plonk) session: &'b Session,
    pub(in crate::plonk) cs: spillproof_halo2::ConstraintSystem,
    pub(in crate::plonk) domain: Domain,
    public: Vec<Vec<Box<dyn Values + 'b>>>,
    pub(in crate::plonk) instance: Vec<InstanceColumns>,
}

impl<'b> Begun<'b> {
    pub(in crate::plonk) fn new<C, E, T>(
        session: &'b Session,
        pk: &ProvingKey<C>,
        circuits: usize,
        instances: &[&[&'b [C::Scalar]]],
        transcript: &mut T,
    ) -> Result<Self, Error>
    where
        C: CurveAffine,
        E: EncodedChallenge<C>,
        T: TranscriptWrite<C, E>,
    {
        let meta = &pk.vk.cs;
        let shape_fits = |instance: &&[&[C::Scalar]]| instance.len() == meta.num_instance_columns;
        if circuits != instances.len() || !instances.iter().all(shape_fits) {
            return Err(Error::InvalidInstances);
        }
        pk.vk.hash_into(transcript)?;
        let domain = circuit::domain(&pk.vk.domain);
        let usable_rows = domain.rows() as usize - (meta.blinding_factors() + 1);
        if instances.iter().copied().flatten().any(|values| values.len() > usable_rows) {
            panic!("Error::InstanceTooLarge");
        }
        let values = |values: &&'b [C::Scalar]| Box::new(Foreign(*values)) as Box<dyn Values + 'b>;
        let public: Vec<Vec<_>> = instances.iter().map(|columns| columns.iter().map(values).collect()).collect();
        Ok(Self {
            session,
            cs: circuit::constraint_system(meta, pk.vk.cs_degree),
            instance: Scalar::instance_columns(session.workspace(), &domain, &public)?,
            domain,
            public,
        })
    }

    /// The proof's checkpoint, if the session keeps any: that of an earlier run, or a new one.
    pub(in crate::plonk) fn checkpoint<P>(
        &self,
        pk: &ProvingKey<impl CurveAffine>,
        rng: &mut impl RngCore,
    ) -> Result<Option<Checkpoint>, Error> {
        let Some(checkpoints) = self.session.checkpoints() else {
            return Ok(None);
        };
        let scheme = std::any::type_name::<P>();
        let terms = Terms {
            statement: statement(scalar(&pk.vk.transcript_repr), &self.domain, scheme, &self.public),
            draws_are_the_callers: reproducible(),
        };
        let workspace = self.session.workspace();
        let entropy = |bytes: &mut [u8; 32]| {
            if !terms.draws_are_the_callers {
                rng.fill_bytes(bytes);
            }
        };
        let checkpoint = checkpoints.begin(workspace, &terms, entropy);
        Ok(Some(checkpoint.map_err(io::Error::other)?))
    }

    /// The witness of a circuit.
    pub(in crate::plonk) fn witness(&self, circuit: usize) -> spillproof_halo2::Witness<'_> {
        spillproof_halo2::Witness::new(
            self.session.workspace(),
            &self.cs,
            &self.domain,
            &self.public[circuit],
            &self.instance[circuit],
        )
    }
}

/// [`super::run_phase1_synthesis`], in a session: each circuit's advice, and the challenges.
pub(in crate::plonk) fn synthesize<C: CurveAffine, ConcreteCircuit: Circuit<C::Scalar>>(
    begun: &Begun<'_>,
    pk: &ProvingKey<C>,
    circuits: &[ConcreteCircuit],
    instances: &[&[&[C::Scalar]]],
    rounds: &mut Rounds<'_>,
) -> Result<(Vec<Vec<Blinded>>, Vec<Scalar>), Error> {
    let meta = &pk.vk.cs;
    let mut configured = ConstraintSystem::default();
    #[cfg(feature = "circuit-params")]
    let config = ConcreteCircuit::configure_with_params(&mut configured, circuits[0].params());
    #[cfg(not(feature = "circuit-params"))]
    let config = ConcreteCircuit::configure(&mut configured);

    let phases = begun.cs.phases();
    // Stock's words: it squeezes a phase's challenges once for each circuit.
    assert!(
        phases == 1 || circuits.len() == 1,
        "New challenge API doesn't work with multiple circuits yet"
    );
    let mut challenges = vec![None; meta.num_challenges];
    let mut advice = Vec::with_capacity(circuits.len());
    for (index, (circuit, instances)) in circuits.iter().zip(instances).enumerate() {
        let mut witness = begun.witness(index);
        Config::absorb_instances(&witness, rounds)?;
        if Config::take_kept(&mut witness, &mut challenges, rounds)? {
            advice.push(witness.into_columns());
            continue;
        }
        let mut synthesis = Synthesis {
            k: begun.domain.log_n,
            usable_rows: begun.domain.rows() as usize - begun.cs.unusable_rows(),
            cells: AdviceCells::new(begun.session.workspace(), &begun.cs, &begun.domain)?,
            witness,
            instances,
            challenges: &mut challenges,
            rounds,
        };
        // A circuit may end its phases itself, and is then synthesised once.
        while synthesis.witness.phase() < phases {
            {
                let phase = synthesis.witness.phase();
                let _step = ::spillproof::step!(begun.session.workspace(), "synthesize", phase);
                let constants = meta.constants.clone();
                let synthesized =
                    ConcreteCircuit::FloorPlanner::synthesize(&mut synthesis, circuit, config.clone(), constants);
                // A panic, as in stock.
                if let Err(error) = synthesized {
                    panic!("{error:?}");
                }
            }
            if synthesis.witness.phase() < phases {
                synthesis.end_phase()?;
            }
        }
        advice.push(synthesis.witness.into_columns());
    }
    let challenges: Vec<_> = challenges.into_iter().flatten().collect();
    assert_eq!(challenges.len(), meta.num_challenges);
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
    let begun = Begun::new(session, pk, circuits.len(), instances, transcript)?;
    let rng = Generator::of(&mut rng, None);
    let mut outside = Outside::<Scheme, P, E, _, _>::new(params, rng, transcript);
    let mut rounds = Rounds::new(&mut outside, None);
    let (advice, challenges) = synthesize(&begun, pk, circuits, instances, &mut rounds)?;
    let instance = begun.instance.into_iter().map(|InstanceColumns { values, polynomials }| InstanceSingle {
        instance_values: values.into_iter().map(from_column).collect(),
        instance_polys: polynomials.into_iter().map(from_column).collect(),
    });
    let advice = advice.into_iter().map(|columns| {
        let columns = columns.into_iter().map(|advice| from_column(advice.column));
        let advice_values: Vec<Polynomial<_, LagrangeCoeff>> = columns.collect();
        let domain = &pk.vk.domain;
        AdviceSingle {
            advice_polys: advice_values.iter().map(|poly| domain.lagrange_to_coeff(poly.clone())).collect(),
            advice_values,
        }
    });
    Ok((instance.collect(), advice.collect(), challenges.into_iter().map(foreign).collect()))
}

/// Takes the circuit's assignments, and commits to a phase's columns when it ends.
struct Synthesis<'b, 'p, F> {
    k: u32,
    usable_rows: usize,
    cells: AdviceCells<F>,
    witness: spillproof_halo2::Witness<'b>,
    instances: &'b [&'b [F]],
    challenges: &'b mut [Option<Scalar>],
    rounds: &'b mut Rounds<'p>,
}

impl<F: Field> Synthesis<'_, '_, F> {
    fn end_phase(&mut self) -> spillproof_halo2::Result<()> {
        if self.witness.phase() >= 3 {
            panic!("The API only supports 3 phases right now");
        }
        self.cells.commit_phase(&mut self.witness, self.challenges, self.rounds)
    }
}

impl<F: Field> Assignment<F> for Synthesis<'_, '_, F> {
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
            return Err(Error::not_enough_rows_available(self.k));
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
            Error::not_enough_rows_available(self.k)
        );
        let Ok(value) = to.assign() else {
            panic!("No Value::unknown() in advice column allowed during create_proof");
        };
        Value::known(self.cells.assign(column.index(), row, value))
    }

    fn get_challenge(&self, challenge: Challenge) -> Value<F> {
        match self.challenges[challenge.index()] {
            Some(value) => Value::known(foreign(value)),
            None => Value::unknown(),
        }
    }

    fn next_phase(&mut self) {
        or_panic(self.end_phase().map_err(io::Error::from));
    }
}
