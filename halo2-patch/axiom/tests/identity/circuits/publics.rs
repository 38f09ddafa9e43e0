//! Instances: three columns, one of them queried by a gate at two rotations, one copied from, one empty.

use super::halo2::circuit::{Layouter, SimpleFloorPlanner, Value};
use super::halo2::halo2curves::bn256::Fr;
use super::halo2::plonk::{Advice, Circuit, Column, ConstraintSystem, Error, Fixed, Instance};
use super::halo2::poly::Rotation;
use super::rows::{usable_rows, Builtin, Values};

/// Columns of [`Publics`].
#[derive(Clone, Debug)]
pub struct PublicsConfig {
    a: Column<Advice>,
    q: Column<Fixed>,
    queried: Column<Instance>,
    copied: Column<Instance>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Publics {
    k: u32,
    values: Values,
    witnessed: bool,
}

/// Values that are copied from.
const COPIED: usize = 5;

impl Builtin for Publics {
    const NAME: &'static str = "publics";
    const K_MIN: u32 = 5;

    fn new(k: u32, seed: u64) -> Self {
        Self {
            k,
            values: Values::new(seed),
            witnessed: true,
        }
    }

    /// The first column is as long as it may be.
    fn instances(&self) -> Vec<Vec<Fr>> {
        let column = |lane, rows| (0..rows).map(|row| self.values.field(row, lane)).collect();
        vec![
            column(0, usable_rows::<Self>(self.k)),
            column(1, COPIED),
            Vec::new(),
        ]
    }
}

impl Circuit<Fr> for Publics {
    type Config = PublicsConfig;
    type FloorPlanner = SimpleFloorPlanner;
    type Params = ();

    fn without_witnesses(&self) -> Self {
        Self {
            witnessed: false,
            ..self.clone()
        }
    }

    fn configure(cs: &mut ConstraintSystem<Fr>) -> PublicsConfig {
        let (a, q) = (cs.advice_column(), cs.fixed_column());
        let [queried, copied, _empty] = [(); 3].map(|_| cs.instance_column());
        cs.enable_equality(a);
        cs.enable_equality(copied);
        cs.create_gate("twice the instance, plus the one before", |cells| {
            let (a, q) = (
                cells.query_advice(a, Rotation::cur()),
                cells.query_fixed(q, Rotation::cur()),
            );
            let now = cells.query_instance(queried, Rotation::cur());
            let before = cells.query_instance(queried, Rotation::prev());
            [q * (a - now * Fr::from(2) - before)]
        });
        PublicsConfig {
            a,
            q,
            queried,
            copied,
        }
    }

    fn synthesize(&self, config: PublicsConfig, mut layouter: impl Layouter<Fr>) -> Result<(), Error> {
        let rows = usable_rows::<Self>(self.k);
        layouter.assign_region(
            || "rows",
            |mut region| {
                for row in COPIED..rows {
                    let (now, before) = (self.values.field(row, 0), self.values.field(row - 1, 0));
                    let value = now.double() + before;
                    let witness = if self.witnessed {
                        Value::known(value)
                    } else {
                        Value::unknown()
                    };
                    region.assign_advice(config.a, row, witness);
                    region.assign_fixed(config.q, row, Fr::one());
                    let seen = region.instance_value(config.queried, row)?;
                    seen.map(|seen| assert_eq!(seen, now));
                }
                for row in 0..COPIED {
                    region.assign_advice_from_instance(|| "copied", config.copied, row, config.a, row)?;
                }
                Ok(())
            },
        )
    }
}
