//! A chain of additions and multiplications, held together by copies.
//!
//! Columns: advice `a b c`, fixed `q_a q_b q_c q_ab constant`, one instance; `a b c` and the instance are
//! permuted. One gate, degree 3: `q_a a + q_b b + q_c c + q_ab a b + constant = 0`.
//!
//! ```text
//! row      a          b                      c
//! 0        fresh      fresh                  a * b
//! 1        = c_0      = b_0                  a + b + 1
//! 2        = c_1      fresh                  a * b
//! ...
//! last     = c_last-1 = b_last-1 or fresh    the public output
//! ```
//!
//! Every eighth `b` is assigned as a fraction, so that the prover's batch inversion has work to do.

use super::dialect::{
    Assigned, Field, Fr, assign_advice, assign_fixed, associated_types, constrain_equal, constrain_instance,
    gate, query_fixed,
};
use super::halo2::circuit::{Cell, Layouter, Value};
use super::halo2::plonk::{Advice, Circuit, Column, ConstraintSystem, Error, Fixed, Instance};
use super::halo2::poly::Rotation;
use super::rows::{Builtin, Values, usable_rows};

/// Columns of [`Chain`].
#[derive(Clone, Debug)]
pub struct ChainConfig {
    advice: [Column<Advice>; 3],
    q_a: Column<Fixed>,
    q_b: Column<Fixed>,
    q_c: Column<Fixed>,
    q_ab: Column<Fixed>,
    constant: Column<Fixed>,
    instance: Column<Instance>,
}

/// The add/mul chain; see the module.
#[derive(Clone, Debug)]
pub struct Chain {
    k: u32,
    values: Values,
    witnessed: bool,
}

/// One row of the chain: what it reads and what comes out.
struct Step {
    a: Fr,
    b: Fr,
    c: Fr,
    multiplies: bool,
    b_is_copied: bool,
}

impl Chain {
    /// The rows, in order, each from the one before it.
    fn steps(&self) -> impl Iterator<Item = Step> {
        let values = self.values;
        let rows = usable_rows::<Self>(self.k);
        let mut previous: Option<Step> = None;
        (0..rows).map(move |row| {
            let multiplies = row % 2 == 0;
            let fresh = |lane| values.field(row, lane);
            let (a, b) = match &previous {
                None => (fresh(0), fresh(1)),
                Some(step) if multiplies => (step.c, fresh(1)),
                Some(step) => (step.c, step.b),
            };
            let c = if multiplies { a * b } else { a + b + Fr::ONE };
            previous = Some(Step {
                a,
                b,
                c,
                multiplies,
                b_is_copied: !multiplies,
            });
            Step {
                a,
                b,
                c,
                multiplies,
                b_is_copied: !multiplies,
            }
        })
    }
}

impl Builtin for Chain {
    const NAME: &'static str = "chain";
    const K_MIN: u32 = 4;

    fn new(k: u32, seed: u64) -> Self {
        Self {
            k,
            values: Values::new(seed),
            witnessed: true,
        }
    }

    fn instances(&self) -> Vec<Vec<Fr>> {
        let output = self.steps().last().map(|step| step.c);
        vec![output.into_iter().collect()]
    }
}

impl Circuit<Fr> for Chain {
    type Config = ChainConfig;
    associated_types!();

    fn without_witnesses(&self) -> Self {
        Self {
            witnessed: false,
            ..self.clone()
        }
    }

    fn configure(cs: &mut ConstraintSystem<Fr>) -> ChainConfig {
        let advice = [(); 3].map(|_| cs.advice_column());
        let [q_a, q_b, q_c, q_ab, constant] = [(); 5].map(|_| cs.fixed_column());
        let instance = cs.instance_column();
        for column in advice {
            cs.enable_equality(column);
        }
        cs.enable_equality(instance);

        gate(cs, "q_a a + q_b b + q_c c + q_ab a b + constant", |cells| {
            let [a, b, c] = advice.map(|column| cells.query_advice(column, Rotation::cur()));
            let [q_a, q_b, q_c, q_ab, constant] =
                [q_a, q_b, q_c, q_ab, constant].map(|column| query_fixed(cells, column));
            vec![q_a * a.clone() + q_b * b.clone() + q_c * c + q_ab * a * b + constant]
        });
        ChainConfig {
            advice,
            q_a,
            q_b,
            q_c,
            q_ab,
            constant,
            instance,
        }
    }

    fn synthesize(&self, config: ChainConfig, mut layouter: impl Layouter<Fr>) -> Result<(), Error> {
        let [column_a, column_b, column_c] = config.advice;
        let output = layouter.assign_region(
            || "chain",
            |mut region| {
                let mut previous: Option<(Cell, Cell)> = None;
                for (row, step) in self.steps().enumerate() {
                    let witness = |value: Assigned<Fr>| {
                        if self.witnessed {
                            Value::known(value)
                        } else {
                            Value::unknown()
                        }
                    };
                    let b_assigned = if row % 8 == 0 {
                        let denominator = self.values.field(row, 2);
                        Assigned::Rational(step.b * denominator, denominator)
                    } else {
                        Assigned::Trivial(step.b)
                    };
                    let a = assign_advice(&mut region, column_a, row, witness(Assigned::Trivial(step.a)))?;
                    let b = assign_advice(&mut region, column_b, row, witness(b_assigned))?;
                    let c = assign_advice(&mut region, column_c, row, witness(Assigned::Trivial(step.c)))?;

                    assign_fixed(&mut region, config.q_c, row, -Fr::ONE)?;
                    if step.multiplies {
                        assign_fixed(&mut region, config.q_ab, row, Fr::ONE)?;
                    } else {
                        assign_fixed(&mut region, config.q_a, row, Fr::ONE)?;
                        assign_fixed(&mut region, config.q_b, row, Fr::ONE)?;
                        assign_fixed(&mut region, config.constant, row, Fr::ONE)?;
                    }
                    if let Some((b_before, c_before)) = previous {
                        constrain_equal(&mut region, a, c_before)?;
                        if step.b_is_copied {
                            constrain_equal(&mut region, b, b_before)?;
                        }
                    }
                    previous = Some((b, c));
                }
                Ok(previous)
            },
        )?;
        if let Some((_, c)) = output {
            constrain_instance(&mut layouter, c, config.instance, 0)?;
        }
        Ok(())
    }
}
