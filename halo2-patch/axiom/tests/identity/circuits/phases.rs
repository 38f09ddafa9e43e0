//! Challenges: a first phase's column, folded with a challenge in a second phase, and in a third.
//!
//! Columns: advice `a` (first phase), `folded` (second), `again` (third, if there are these phases), fixed `q`; one
//! instance. Gates: `q (folded(next) - folded c - a)`, and the same of `folded` with the second phase's
//! challenge.
//!
//! A circuit may be synthesised once for each phase, or end its phases itself: then it goes on with the
//! references that it was given in the phase before, and reads them once more after the last one.

use super::halo2::circuit::{Layouter, SimpleFloorPlanner, Value};
use super::halo2::halo2curves::bn256::Fr;
use super::halo2::plonk::{
    Advice, Assigned, Challenge, Circuit, Column, ConstraintSystem, Error, FirstPhase, Fixed, Instance,
    SecondPhase, ThirdPhase,
};
use super::halo2::poly::Rotation;
use super::rows::{usable_rows, Builtin, Values};

/// Columns and challenges of [`Phases`].
#[derive(Clone, Debug)]
pub struct PhasesConfig {
    a: Column<Advice>,
    /// A phase's folded column, of what, and with which challenge.
    folds: Vec<(Column<Advice>, Column<Advice>, Challenge)>,
    q: Column<Fixed>,
    instance: Column<Instance>,
}

/// `PHASES` phases, which it ends itself or not.
#[derive(Clone, Debug)]
pub struct Phases<const PHASES: usize, const ENDS_THEM: bool> {
    k: u32,
    values: Values,
    witnessed: bool,
}

impl<const PHASES: usize, const ENDS_THEM: bool> Builtin for Phases<PHASES, ENDS_THEM> {
    const NAME: &'static str = "phases";
    const K_MIN: u32 = 4;

    fn new(k: u32, seed: u64) -> Self {
        Self {
            k,
            values: Values::new(seed),
            witnessed: true,
        }
    }

    fn instances(&self) -> Vec<Vec<Fr>> {
        vec![vec![self.values.field(0, 0)]]
    }
}

impl<const PHASES: usize, const ENDS_THEM: bool> Circuit<Fr> for Phases<PHASES, ENDS_THEM> {
    type Config = PhasesConfig;
    type FloorPlanner = SimpleFloorPlanner;
    type Params = ();

    fn without_witnesses(&self) -> Self {
        Self {
            witnessed: false,
            ..self.clone()
        }
    }

    fn configure(cs: &mut ConstraintSystem<Fr>) -> PhasesConfig {
        let a = cs.advice_column_in(FirstPhase);
        let mut folds = Vec::new();
        if PHASES > 1 {
            let first = cs.challenge_usable_after(FirstPhase);
            let folded = cs.advice_column_in(SecondPhase);
            folds.push((folded, a, first));
            // Squeezed whether it is used or not.
            let second = cs.challenge_usable_after(SecondPhase);
            if PHASES == 3 {
                folds.push((cs.advice_column_in(ThirdPhase), folded, second));
            }
        }
        let q = cs.fixed_column();
        let instance = cs.instance_column();
        cs.enable_equality(a);
        cs.enable_equality(instance);
        for &(folded, from, challenge) in &folds {
            cs.create_gate("fold", |cells| {
                let (q, from) = (
                    cells.query_fixed(q, Rotation::cur()),
                    cells.query_advice(from, Rotation::cur()),
                );
                let (now, next) = (
                    cells.query_advice(folded, Rotation::cur()),
                    cells.query_advice(folded, Rotation::next()),
                );
                let challenge = cells.query_challenge(challenge);
                [q * (next - now * challenge - from)]
            });
        }
        PhasesConfig {
            a,
            folds,
            q,
            instance,
        }
    }

    fn synthesize(&self, config: PhasesConfig, mut layouter: impl Layouter<Fr>) -> Result<(), Error> {
        let rows = usable_rows::<Self>(self.k);
        let output = layouter.assign_region(
            || "rows",
            |mut region| {
                let mut column: Vec<Value<Assigned<Fr>>> = Vec::new();
                let (mut references, mut output) = (Vec::new(), None);
                for row in 0..rows {
                    let value = self.values.field(row, 0);
                    // Every third as a fraction.
                    let denominator = self.values.field(row, 1);
                    let assigned = match row % 3 {
                        0 => Assigned::Rational(value * denominator, denominator),
                        _ => Assigned::Trivial(value),
                    };
                    let witness = if self.witnessed {
                        Value::known(assigned)
                    } else {
                        Value::unknown()
                    };
                    let cell = region.assign_advice(config.a, row, witness);
                    column.push(cell.value().map(|value| **value));
                    references.push((cell.value().map(|value| *value), witness));
                    output.get_or_insert(cell.cell());
                    if row + 1 != rows {
                        region.assign_fixed(config.q, row, Fr::one());
                    }
                }
                for &(folded, _, challenge) in &config.folds {
                    if ENDS_THEM {
                        region.next_phase();
                    }
                    let challenge = region.get_challenge(challenge);
                    let mut known = false;
                    challenge.map(|_| known = true);
                    if !known {
                        // Not yet: this is keygen, or an earlier phase.
                        break;
                    }
                    let mut sum = Value::known(Assigned::Trivial(Fr::zero()));
                    let mut next_column = Vec::with_capacity(rows);
                    for (row, value) in column.iter().enumerate() {
                        let cell = region.assign_advice(folded, row, sum);
                        next_column.push(cell.value().map(|value| **value));
                        let (evaluated, value) =
                            (sum.map(|sum| sum.evaluate()), value.map(|value| value.evaluate()));
                        sum = (evaluated * challenge + value).map(Assigned::Trivial);
                    }
                    column = next_column;
                }
                if ENDS_THEM {
                    region.next_phase();
                    for (reference, witness) in references {
                        let _ = reference
                            .zip(witness)
                            .map(|(value, witness)| assert_eq!(*value, witness));
                    }
                }
                Ok(output)
            },
        )?;
        if let Some(cell) = output {
            layouter.constrain_instance(cell, config.instance, 0);
        }
        Ok(())
    }
}
