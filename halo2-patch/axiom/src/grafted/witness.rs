//! The witness in a session: synthesis into the phases of `spillproof-plonk`. A child of upstream's
//! `plonk::witness`.

use std::io;
use std::sync::Arc;

use spillproof_engine::checkpoint::{Checkpoint, Terms};
use spillproof_engine::Session;
use spillproof_plonk::curve::Config;
use spillproof_plonk::saved::refused_cell;
use spillproof_plonk::{
    statement, AdviceSource, Blinded, Domain, InstanceColumns, ProverCurve, ProverField, Rounds, SavedError, Scalar, Values,
};
use halo2curves::bn256::{Fr, G1Affine};

use super::*;
use super::super::VerifyingKey;
use crate::spillproof::or_panic;
use crate::spillproof::cells::AdviceCells;
use crate::spillproof::circuit;
use crate::spillproof::convert::{foreign, scalar, Foreign};
use crate::spillproof::protocol::{protocol_of, Callers, Generator};
use crate::spillproof::reproducible;
use crate::spillproof::values::from_column;

/// A proof that has begun: the instances' shape is checked, the verifying key hashed, the instance columns
/// made.
pub(in crate::plonk) struct Begun<'b> {
    pub(in crate::plonk) session: &'b Session,
    pub(in crate::plonk) cs: spillproof_plonk::ConstraintSystem,
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
    pub(in crate::plonk) fn witness(&self, circuit: usize) -> spillproof_plonk::Witness<'_> {
        spillproof_plonk::Witness::new(
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
        let mut committing = Committing { witness, challenges: &mut challenges, rounds };
        let mut cells = AdviceCells::new(begun.session.workspace(), &begun.cs, &begun.domain)?;
        // A circuit may end its phases itself, and is then synthesised once.
        while committing.witness.phase() < phases {
            {
                let phase = committing.witness.phase();
                let _step = spillproof_engine::step!(begun.session.workspace(), "synthesize", phase);
                let mut synthesis = Synthesis {
                    k: begun.domain.log_n,
                    usable_rows: begun.domain.rows() as usize - begun.cs.unusable_rows(),
                    cells: &mut cells,
                    phases: &mut committing,
                    instances,
                };
                let constants = meta.constants.clone();
                let synthesized =
                    ConcreteCircuit::FloorPlanner::synthesize(&mut synthesis, circuit, config.clone(), constants);
                // A panic, as in stock.
                if let Err(error) = synthesized {
                    panic!("{error:?}");
                }
            }
            if committing.witness.phase() < phases {
                cells.end_reading();
                committing.end(&mut cells)?;
            }
        }
        advice.push(committing.witness.into_columns());
    }
    let challenges: Vec<_> = challenges.into_iter().flatten().collect();
    assert_eq!(challenges.len(), meta.num_challenges);
    Ok((advice, challenges))
}

/// The advice of a circuit of one phase, for a file.
///
/// # Errors
/// [`SavedError::Synthesis`] within the error; the engine's.
pub(crate) fn assign<ConcreteCircuit: Circuit<Fr>>(
    session: &Session,
    vk: &VerifyingKey<G1Affine>,
    circuit: &ConcreteCircuit,
    instances: &[&[Fr]],
) -> io::Result<Box<dyn AdviceSource + Send>> {
    let cs = circuit::constraint_system(&vk.cs, vk.cs_degree);
    let domain = circuit::domain(&vk.domain);
    let mut configured = ConstraintSystem::default();
    #[cfg(feature = "circuit-params")]
    let config = ConcreteCircuit::configure_with_params(&mut configured, circuit.params());
    #[cfg(not(feature = "circuit-params"))]
    let config = ConcreteCircuit::configure(&mut configured);
    let mut cells = AdviceCells::new(session.workspace(), &cs, &domain)?;
    let mut saving = Saving::default();
    let _step = spillproof_engine::step!(session.workspace(), "synthesize");
    let mut synthesis = Synthesis {
        k: domain.log_n,
        usable_rows: domain.rows() as usize - cs.unusable_rows(),
        cells: &mut cells,
        phases: &mut saving,
        instances,
    };
    let synthesized = ConcreteCircuit::FloorPlanner::synthesize(
        &mut synthesis,
        circuit,
        config,
        vk.cs.constants.clone(),
    );
    // What was refused explains what failed then.
    let reason = match (saving.refused, synthesized) {
        (None, Ok(())) => return Ok(cells.into_source()),
        (Some(reason), _) => reason,
        (None, Err(error)) => error.to_string(),
    };
    Err(SavedError::Synthesis { reason }.into())
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
    let mut callers = Callers::<Scheme, P, E, _, _>::new(params, rng, transcript);
    let mut rounds = Rounds::new(protocol_of::<Scheme, P>(), &mut callers, None);
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

/// What becomes of the cells of a phase.
trait Phases<F> {
    /// The phase ends.
    fn end(&mut self, cells: &mut AdviceCells<F>) -> spillproof_plonk::Result<()>;
    /// A challenge, if it is drawn.
    fn challenge(&self, index: usize) -> Option<Scalar>;
    /// Takes note of a cell without a value, or in a row that a circuit may not assign; `false` if that is a
    /// panic, as in stock.
    fn refuse(&mut self, _column: usize, _row: usize, _has_value: bool) -> bool {
        false
    }
}

/// A phase's columns are committed to when it ends.
struct Committing<'b, 'c, 'p> {
    witness: spillproof_plonk::Witness<'b>,
    challenges: &'c mut [Option<Scalar>],
    rounds: &'c mut Rounds<'p>,
}

impl<F: Field> Phases<F> for Committing<'_, '_, '_> {
    fn end(&mut self, cells: &mut AdviceCells<F>) -> spillproof_plonk::Result<()> {
        if self.witness.phase() >= 3 {
            panic!("The API only supports 3 phases right now");
        }
        cells.commit_phase(&mut self.witness, self.challenges, self.rounds)
    }

    fn challenge(&self, index: usize) -> Option<Scalar> {
        self.challenges[index]
    }
}

/// Cells are saved when all are assigned.
#[derive(Default)]
struct Saving {
    /// The first cell that cannot be.
    refused: Option<String>,
}

impl<F> Phases<F> for Saving {
    fn end(&mut self, _: &mut AdviceCells<F>) -> spillproof_plonk::Result<()> {
        Ok(())
    }

    fn challenge(&self, _: usize) -> Option<Scalar> {
        None
    }

    fn refuse(&mut self, column: usize, row: usize, has_value: bool) -> bool {
        self.refused.get_or_insert_with(|| refused_cell(column, row, has_value));
        true
    }
}

/// Takes the circuit's assignments.
struct Synthesis<'b, F> {
    k: u32,
    usable_rows: usize,
    cells: &'b mut AdviceCells<F>,
    phases: &'b mut dyn Phases<F>,
    instances: &'b [&'b [F]],
}

impl<F: Field> Assignment<F> for Synthesis<'_, F> {
    spillproof_plonk::nameless!(columns);
    spillproof_plonk::proves!();

    fn assign_fixed(&mut self, _: Column<Fixed>, _: usize, _: Assigned<F>) {}

    fn copy(&mut self, _: Column<Any>, _: usize, _: Column<Any>, _: usize) {}

    fn fill_from_row(&mut self, _: Column<Fixed>, _: usize, _: Value<Assigned<F>>) -> Result<(), Error> {
        Ok(())
    }

    fn assign_advice<'v>(
        &mut self,
        column: Column<Advice>,
        row: usize,
        to: Value<Assigned<F>>,
    ) -> Value<&'v Assigned<F>> {
        let (value, is_usable) = (to.assign(), row < self.usable_rows);
        if (value.is_err() || !is_usable) && self.phases.refuse(column.index(), row, value.is_ok()) {
            return Value::unknown();
        }
        debug_assert!(is_usable, "{:?}", Error::not_enough_rows_available(self.k));
        let Ok(value) = value else {
            panic!("No Value::unknown() in advice column allowed during create_proof");
        };
        Value::known(self.cells.assign(column.index(), row, value))
    }

    fn get_challenge(&self, challenge: Challenge) -> Value<F> {
        match self.phases.challenge(challenge.index()) {
            Some(value) => Value::known(foreign(value)),
            None => Value::unknown(),
        }
    }

    fn next_phase(&mut self) {
        or_panic(self.phases.end(self.cells).map_err(io::Error::from));
    }
}
