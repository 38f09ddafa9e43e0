//! Selectors to be combined: gates of several degrees, some of whose selectors meet in a row; a complex one
//! in a lookup; one that no gate uses; constants and a table, whose columns are filled and copied from.

use super::halo2::circuit::{Layouter, SimpleFloorPlanner, Value};
use super::halo2::halo2curves::bn256::Fr;
use super::halo2::plonk::{
    Advice, Assigned, Circuit, Column, ConstraintSystem, Error, Instance, Selector, TableColumn,
};
use super::halo2::poly::Rotation;
use super::rows::{usable_rows, Builtin, Values};

/// Simple selectors.
const SIMPLE: usize = 7;

/// Columns and selectors of [`Selected`].
#[derive(Clone, Debug)]
pub struct SelectedConfig {
    a: Column<Advice>,
    powers: [Column<Advice>; 2],
    simple: [Selector; SIMPLE],
    complex: Selector,
    unused: Selector,
    table: TableColumn,
    instance: Column<Instance>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Selected {
    k: u32,
    values: Values,
    witnessed: bool,
}

impl Selected {
    /// Where a simple selector is on: the first three never meet, the others do here and there. The last
    /// never is.
    fn is_on(selector: usize, row: usize) -> bool {
        match selector {
            0..=2 => row % 3 == selector,
            3 => row % 5 == 1,
            4 => row % 7 == 2,
            5 => row % 35 == 3,
            _ => false,
        }
    }
}

impl Builtin for Selected {
    const NAME: &'static str = "selected";
    const K_MIN: u32 = 5;

    fn new(k: u32, seed: u64) -> Self {
        Self {
            k,
            values: Values::new(seed),
            witnessed: true,
        }
    }

    fn instances(&self) -> Vec<Vec<Fr>> {
        vec![vec![Fr::from(self.values.bits(0, 0) % 8)]]
    }
}

impl Circuit<Fr> for Selected {
    type Config = SelectedConfig;
    type FloorPlanner = SimpleFloorPlanner;
    type Params = ();

    fn without_witnesses(&self) -> Self {
        Self {
            witnessed: false,
            ..self.clone()
        }
    }

    fn configure(cs: &mut ConstraintSystem<Fr>) -> SelectedConfig {
        let a = cs.advice_column();
        let powers = [(); 2].map(|_| cs.advice_column());
        let simple: [Selector; SIMPLE] = std::array::from_fn(|_| cs.selector());
        let (complex, unused) = (cs.complex_selector(), cs.selector());
        let table = cs.lookup_table_column();
        let constants = cs.fixed_column();
        let instance = cs.instance_column();
        cs.enable_constant(constants);
        cs.enable_equality(a);
        cs.enable_equality(instance);
        for (index, selector) in simple.into_iter().enumerate() {
            cs.create_gate("power", |cells| {
                let [a, square, cube] =
                    [a, powers[0], powers[1]].map(|column| cells.query_advice(column, Rotation::cur()));
                let selector = cells.query_selector(selector);
                match index % 3 {
                    0 => vec![selector * (a.clone() * a - square)],
                    1 => vec![selector * (a.clone() * a.clone() * a - cube)],
                    _ => vec![
                        selector.clone() * (square * a.clone() - cube),
                        selector * (a.clone() - a),
                    ],
                }
            });
        }
        cs.lookup("small", |cells| {
            let complex = cells.query_selector(complex);
            vec![(complex * cells.query_advice(a, Rotation::cur()), table)]
        });
        SelectedConfig {
            a,
            powers,
            simple,
            complex,
            unused,
            table,
            instance,
        }
    }

    fn synthesize(&self, config: SelectedConfig, mut layouter: impl Layouter<Fr>) -> Result<(), Error> {
        layouter.assign_table(
            || "small",
            |mut table| {
                let known = |entry| Value::known(Fr::from(entry));
                (0..8).try_for_each(|entry| {
                    table.assign_cell(|| "entry", config.table, entry as usize, || known(entry))
                })
            },
        )?;
        // The last usable row is for a constant.
        let rows = usable_rows::<Self>(self.k) - 1;
        let output = layouter.assign_region(
            || "rows",
            |mut region| {
                let mut output = None;
                for row in 0..rows {
                    let value = Fr::from(self.values.bits(row, 0) % 8);
                    let [square, cube] = [value.square(), value.square() * value];
                    for (column, value) in [config.a, config.powers[0], config.powers[1]]
                        .into_iter()
                        .zip([value, square, cube])
                    {
                        let witness = if self.witnessed {
                            Value::known(value)
                        } else {
                            Value::unknown()
                        };
                        let cell = region.assign_advice(column, row, witness).cell();
                        output.get_or_insert(cell);
                    }
                    for (index, selector) in config.simple.iter().enumerate() {
                        if Self::is_on(index, row) {
                            selector.enable(&mut region, row)?;
                        }
                    }
                    if row % 4 == 0 {
                        config.complex.enable(&mut region, row)?;
                    }
                    if row % 9 == 0 {
                        config.unused.enable(&mut region, row)?;
                    }
                }
                // One half, as a fraction, in the column of constants.
                let half = Assigned::Rational(Fr::one(), Fr::from(2));
                region.assign_advice_from_constant(|| "half", config.a, rows, half)?;
                Ok(output)
            },
        )?;
        if let Some(cell) = output {
            layouter.constrain_instance(cell, config.instance, 0);
        }
        Ok(())
    }
}
