//! A wide custom gate: 96 columns that are mixed into the next row at once.
//!
//! Columns: advice `s_0 .. s_95` (the state), fixed `q` (on, except in the last usable row) and `constant`,
//! one instance; `s_0` and the instance are permuted. 96 constraints of degree 5, 192 advice queries (each
//! column at two rotations):
//!
//! ```text
//! q * (s_j(next) - (s_j^2 * s_{j+1}^2 + s_{j+17} + (j + 1) * constant)) = 0        indices mod 96
//! ```
//!
//! Row 0 is fresh; `s_0` of the last row is the public output.

use super::dialect::{
    Assigned, Field, Fr, assign_advice, assign_fixed, associated_types, constrain_instance, gate, query_fixed,
};
use super::halo2::circuit::{Layouter, Value};
use super::halo2::plonk::{Advice, Circuit, Column, ConstraintSystem, Error, Expression, Fixed, Instance};
use super::halo2::poly::Rotation;
use super::rows::{Builtin, Values, usable_rows};

/// Advice columns.
pub const WIDTH: usize = 96;

/// Columns of [`Wide`].
#[derive(Clone, Debug)]
pub struct WideConfig {
    state: [Column<Advice>; WIDTH],
    q: Column<Fixed>,
    constant: Column<Fixed>,
    instance: Column<Instance>,
}

/// The wide gate; see the module.
#[derive(Clone, Debug)]
pub struct Wide {
    k: u32,
    values: Values,
    witnessed: bool,
}

/// Row constants are part of the circuit, so they must not follow the witness' seed.
const CONSTANTS: u64 = 0x005e_ed0f_c0de;

/// The two columns that are mixed into column `j`.
fn neighbours(j: usize) -> (usize, usize) {
    ((j + 1) % WIDTH, (j + 17) % WIDTH)
}

fn mixed(state: &[Fr; WIDTH], constant: Fr) -> [Fr; WIDTH] {
    let mut step = Fr::ZERO;
    std::array::from_fn(|j| {
        let (near, far) = neighbours(j);
        step += constant;
        state[j].square() * state[near].square() + state[far] + step
    })
}

impl Wide {
    /// The state of each row (any, without a witness), and the row's constant.
    fn states(&self) -> impl Iterator<Item = ([Fr; WIDTH], Fr)> {
        let (values, witnessed) = (self.values, self.witnessed);
        let constants = Values::new(CONSTANTS);
        let mut state: [Fr; WIDTH] = std::array::from_fn(|j| values.field(0, j as u64));
        (0..usable_rows::<Self>(self.k)).map(move |row| {
            let constant = constants.field(row, 0);
            let next = if witnessed { mixed(&state, constant) } else { state };
            (std::mem::replace(&mut state, next), constant)
        })
    }
}

impl Builtin for Wide {
    const NAME: &'static str = "wide";
    const K_MIN: u32 = 4;

    fn new(k: u32, seed: u64) -> Self {
        Self {
            k,
            values: Values::new(seed),
            witnessed: true,
        }
    }

    fn instances(&self) -> Vec<Vec<Fr>> {
        let output = self.states().last().map(|(state, _)| state[0]);
        vec![output.into_iter().collect()]
    }
}

impl Circuit<Fr> for Wide {
    type Config = WideConfig;
    associated_types!();

    fn without_witnesses(&self) -> Self {
        Self {
            witnessed: false,
            ..self.clone()
        }
    }

    fn configure(cs: &mut ConstraintSystem<Fr>) -> WideConfig {
        let state: [Column<Advice>; WIDTH] = std::array::from_fn(|_| cs.advice_column());
        let q = cs.fixed_column();
        let constant = cs.fixed_column();
        let instance = cs.instance_column();
        cs.enable_equality(state[0]);
        cs.enable_equality(instance);

        gate(cs, "mix", |cells| {
            let now = state.map(|column| cells.query_advice(column, Rotation::cur()));
            let next = state.map(|column| cells.query_advice(column, Rotation::next()));
            let q = query_fixed(cells, q);
            let constant = query_fixed(cells, constant);
            (0..WIDTH)
                .map(|j| {
                    let (near, far) = neighbours(j);
                    let weight = Expression::Constant(Fr::from(j as u64 + 1));
                    let power = now[j].clone().square() * now[near].clone().square();
                    q.clone() * (next[j].clone() - (power + now[far].clone() + weight * constant.clone()))
                })
                .collect()
        });
        WideConfig {
            state,
            q,
            constant,
            instance,
        }
    }

    fn synthesize(&self, config: WideConfig, mut layouter: impl Layouter<Fr>) -> Result<(), Error> {
        let last_row = usable_rows::<Self>(self.k) - 1;
        let output = layouter.assign_region(
            || "mix",
            |mut region| {
                let mut output = None;
                for (row, (state, constant)) in self.states().enumerate() {
                    for (j, (column, value)) in config.state.iter().zip(state).enumerate() {
                        let value = if self.witnessed {
                            Value::known(Assigned::Trivial(value))
                        } else {
                            Value::unknown()
                        };
                        let cell = assign_advice(&mut region, *column, row, value)?;
                        if j == 0 {
                            output = Some(cell);
                        }
                    }
                    assign_fixed(&mut region, config.constant, row, constant)?;
                    if row != last_row {
                        assign_fixed(&mut region, config.q, row, Fr::ONE)?;
                    }
                }
                Ok(output)
            },
        )?;
        if let Some(cell) = output {
            constrain_instance(&mut layouter, cell, config.instance, 0)?;
        }
        Ok(())
    }
}
