//! A circuit of any shape over any drop-in: any number of columns of each kind, of lookups and of copies.

use std::sync::{Mutex, PoisonError};

use super::dialect::{Assigned, Fr, assign_advice, constrain_instance, gate, lookup};
use super::halo2::circuit::{Layouter, SimpleFloorPlanner, Value};
use super::halo2::plonk::{
    Advice, Circuit, Column, ConstraintSystem, Error, Expression, Fixed, Instance, Selector, TableColumn,
};
use super::halo2::poly::Rotation;

use crate::smallest::Shape;

/// Values of the table.
const TABLE: u64 = 8;

/// The shape of circuits that are configured: `configure` knows no circuit.
static SHAPE: Mutex<Option<Shape>> = Mutex::new(None);

/// From now on, circuits have this shape.
pub fn set_shape(shape: Shape) {
    *SHAPE.lock().unwrap_or_else(PoisonError::into_inner) = Some(shape);
}

fn shape() -> Shape {
    SHAPE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .expect("a shape")
}

/// The first advice column is zero where the selector is one; the others have small values.
#[derive(Clone)]
pub struct Extreme {
    is_witnessed: bool,
}

impl Extreme {
    pub fn new() -> Self {
        Self { is_witnessed: true }
    }

    /// The value of an advice cell.
    fn value(column: usize, row: usize) -> u64 {
        match column {
            0 => 0,
            _ => (row * column) as u64 % TABLE,
        }
    }

    /// The row of the cell that an instance column has a copy of.
    fn row_of(instance: usize) -> usize {
        instance % shape().rows()
    }

    pub fn instances() -> Vec<Vec<Fr>> {
        let shape = shape();
        let copied = shape.copied();
        let value = |instance| match shape.is_permuted {
            true => vec![Fr::from(Self::value(copied, Self::row_of(instance)))],
            false => Vec::new(),
        };
        (0..shape.instances).map(value).collect()
    }
}

#[derive(Clone)]
pub struct Config {
    advice: Vec<Column<Advice>>,
    fixed: Vec<Column<Fixed>>,
    instances: Vec<Column<Instance>>,
    table: Option<TableColumn>,
    q: Selector,
}

impl Circuit<Fr> for Extreme {
    type Config = Config;
    type FloorPlanner = SimpleFloorPlanner;
    parameters!();

    fn without_witnesses(&self) -> Self {
        Self { is_witnessed: false }
    }

    fn configure(cs: &mut ConstraintSystem<Fr>) -> Config {
        let shape = shape();
        let advice: Vec<_> = (0..shape.advice).map(|_| cs.advice_column()).collect();
        let fixed: Vec<_> = (0..shape.fixed).map(|_| cs.fixed_column()).collect();
        let instances: Vec<_> = (0..shape.instances).map(|_| cs.instance_column()).collect();
        let table = (shape.lookups > 0).then(|| cs.lookup_table_column());
        let q = cs.selector();
        if shape.is_permuted {
            cs.enable_equality(advice[shape.copied()]);
            instances.iter().for_each(|column| cs.enable_equality(*column));
        }
        gate(cs, "zero", |cells| {
            let q = cells.query_selector(q);
            let zero = cells.query_advice(advice[0], Rotation::cur());
            let power = (2..shape.degree).fold(zero.clone(), |power, _| power * zero.clone());
            let of_column = |column: &Column<Advice>| {
                let other = cells.query_advice(*column, Rotation::cur());
                q.clone() * zero.clone() * other
            };
            let mut gates: Vec<Expression<Fr>> = advice[1..].iter().map(of_column).collect();
            gates.push(q.clone() * power);
            gates
        });
        for index in 0..shape.lookups {
            let column = advice[index % advice.len()];
            lookup(cs, "small", |cells| {
                vec![(
                    cells.query_advice(column, Rotation::cur()),
                    table.expect("a table"),
                )]
            });
        }
        Config {
            advice,
            fixed,
            instances,
            table,
            q,
        }
    }

    fn synthesize(&self, config: Config, mut layouter: impl Layouter<Fr>) -> Result<(), Error> {
        let shape = shape();
        if let Some(table) = config.table {
            layouter.assign_table(
                || "table",
                |mut cells| {
                    (0..TABLE).try_for_each(|value| {
                        cells.assign_cell(
                            || "value",
                            table,
                            value as usize,
                            || Value::known(Fr::from(value)),
                        )
                    })
                },
            )?;
        }
        let cells = layouter.assign_region(
            || "rows",
            |mut region| {
                let mut copied = Vec::new();
                for row in 0..shape.rows() {
                    config.q.enable(&mut region, row)?;
                    for (column, of_column) in config.advice.iter().enumerate() {
                        let value = match self.is_witnessed {
                            true => Value::known(Assigned::Trivial(Fr::from(Self::value(column, row)))),
                            false => Value::unknown(),
                        };
                        let cell = assign_advice(&mut region, *of_column, row, value)?;
                        if column == shape.copied() {
                            copied.push(cell);
                        }
                    }
                    for (column, of_column) in config.fixed.iter().enumerate() {
                        let value = Fr::from((row * (column + 1)) as u64);
                        super::dialect::assign_fixed(&mut region, *of_column, row, value)?;
                    }
                }
                Ok(copied)
            },
        )?;
        if shape.is_permuted {
            for (instance, column) in config.instances.iter().enumerate() {
                constrain_instance(&mut layouter, cells[Self::row_of(instance)], *column, 0)?;
            }
        }
        Ok(())
    }
}
