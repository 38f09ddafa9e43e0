//! A circuit of a [`Shape`]: gates at rotations, copies, fractions, tables and public inputs.

use ff::PrimeField;

use super::halo2::circuit::{Layouter, SimpleFloorPlanner, Value};
use super::halo2::plonk::{
    Advice, Assigned, Circuit, Column, ConstraintSystem, Error, Expression, Fixed, Instance, Selector,
    TableColumn,
};
use super::halo2::poly::Rotation;
use crate::shape::{Broken, Shape, Values, ENTRIES, ROTATION};

/// Columns of a [`Random`].
#[derive(Clone, Debug)]
pub struct Config {
    shape: Shape,
    inputs: Vec<Column<Advice>>,
    fixed: Vec<Column<Fixed>>,
    outputs: Vec<Column<Advice>>,
    simple: Vec<Selector>,
    /// Selector, inputs and tables of each lookup.
    lookups: Vec<(Selector, Vec<Column<Advice>>, Vec<TableColumn>)>,
    instance: Option<Column<Instance>>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Random {
    pub rows: usize,
    pub values: Values,
    pub broken: Broken,
    pub witnessed: bool,
}

fn number<F: PrimeField>(value: u64) -> F {
    F::from(value)
}

impl Random {
    pub fn new(rows: usize, seed: u64) -> Self {
        Self {
            rows,
            values: Values(seed),
            broken: Broken::Nothing,
            witnessed: true,
        }
    }

    /// Values of the instance columns.
    pub fn instances<F: PrimeField>(&self) -> Vec<Vec<F>> {
        let shape = Shape::current();
        match shape.is_public {
            false => Vec::new(),
            true if shape.permuted_inputs > 0 => vec![vec![self.input(&shape, 0, 0), number(5)]],
            true => vec![Vec::new()],
        }
    }

    /// The value of an input, which may be a copy of one in a row above.
    fn input<F: PrimeField>(&self, shape: &Shape, row: usize, column: usize) -> F {
        match shape.copied_from(row, column) {
            Some((row, column)) => self.input(shape, row, column),
            // Small values now and then.
            None if self.values.bits(row, 50 + column as u64).is_multiple_of(4) => {
                number(self.values.bits(row, column as u64) % 3)
            }
            None => {
                let value: F = number(self.values.bits(row, column as u64));
                value.square() + number::<F>(self.values.bits(row, 20 + column as u64))
            }
        }
    }
}

impl<F: PrimeField> Circuit<F> for Random {
    type Config = Config;
    type FloorPlanner = SimpleFloorPlanner;

    fn without_witnesses(&self) -> Self {
        let witnessed = false;
        Self {
            witnessed,
            ..self.clone()
        }
    }

    fn configure(cs: &mut ConstraintSystem<F>) -> Config {
        let shape = Shape::current();
        let inputs: Vec<_> = (0..shape.inputs).map(|_| cs.advice_column()).collect();
        let fixed: Vec<_> = (0..shape.fixed).map(|_| cs.fixed_column()).collect();
        let instance = shape.is_public.then(|| cs.instance_column());
        inputs[..shape.permuted_inputs]
            .iter()
            .for_each(|column| cs.enable_equality(*column));
        fixed[..shape.permuted_fixed]
            .iter()
            .for_each(|column| cs.enable_equality(*column));
        instance.iter().for_each(|column| cs.enable_equality(*column));
        let (mut outputs, mut simple) = (Vec::new(), Vec::new());
        for terms in &shape.gates {
            let (output, selector) = (cs.advice_column(), cs.selector());
            cs.create_gate("random", |cells| {
                let sum = terms.iter().fold(Expression::Constant(F::ZERO), |sum, term| {
                    let one = Expression::Constant(number(term.coefficient));
                    let product = term.factors.iter().fold(one, |product, factor| {
                        let rotation = Rotation(factor.rotation);
                        product
                            * match factor.is_fixed {
                                // Upstream queries fixed columns in their own row only.
                                true => cells.query_fixed(fixed[factor.column]),
                                false => cells.query_advice(inputs[factor.column], rotation),
                            }
                    });
                    sum + product
                });
                let output = cells.query_advice(output, Rotation::cur());
                [cells.query_selector(selector) * (sum - output)]
            });
            outputs.push(output);
            simple.push(selector);
        }
        let mut lookups = Vec::new();
        for (lookup, &width) in shape.lookups.iter().enumerate() {
            let selector = cs.complex_selector();
            let columns: Vec<_> = (0..width).map(|_| cs.advice_column()).collect();
            let tables: Vec<_> = (0..width).map(|_| cs.lookup_table_column()).collect();
            cs.lookup(|cells| {
                let on = cells.query_selector(selector);
                let pairs = columns.iter().zip(&tables).enumerate();
                // Where it is off, the first entry.
                let pair = |(column, (input, table)): (usize, (&Column<Advice>, &TableColumn))| {
                    let first = Expression::Constant(number(Shape::entry(lookup, column, 0)));
                    let input = cells.query_advice(*input, Rotation::cur());
                    (first.clone() + on.clone() * (input - first), *table)
                };
                pairs.map(pair).collect()
            });
            lookups.push((selector, columns, tables));
        }
        cs.set_minimum_degree(shape.minimum_degree);
        Config {
            shape,
            inputs,
            fixed,
            outputs,
            simple,
            lookups,
            instance,
        }
    }

    fn synthesize(&self, config: Config, mut layouter: impl Layouter<F>) -> Result<(), Error> {
        let shape = &config.shape;
        for (lookup, (_, _, tables)) in config.lookups.iter().enumerate() {
            layouter.assign_table(
                || "table",
                |mut table| {
                    for (column, to) in tables.iter().enumerate() {
                        for entry in 0..ENTRIES {
                            let value = || Value::known(number::<F>(Shape::entry(lookup, column, entry)));
                            table.assign_cell(|| "entry", *to, entry, value)?;
                        }
                    }
                    Ok(())
                },
            )?;
        }
        let witness = |value: F, row: usize| {
            let fraction = match row % 5 {
                3 => Assigned::Rational(value.double(), number(2)),
                _ => Assigned::Trivial(value),
            };
            if self.witnessed {
                Value::known(fraction)
            } else {
                Value::unknown()
            }
        };
        let inputs: Vec<Vec<F>> = (0..self.rows)
            .map(|row| {
                (0..shape.inputs)
                    .map(|column| self.input(shape, row, column))
                    .collect()
            })
            .collect();
        let fixed = |row: usize, column: usize| match row % 4 {
            1 => F::ZERO,
            _ => number::<F>(Values(7).bits(row, 200 + column as u64)),
        };
        let first = layouter.assign_region(
            || "rows",
            |mut region| {
                let mut cells = Vec::with_capacity(self.rows);
                for (row, values) in inputs.iter().enumerate() {
                    let mut in_row = Vec::with_capacity(shape.inputs);
                    for (column, to) in config.inputs.iter().enumerate() {
                        let value = match self.broken {
                            Broken::Unassigned if row == 3 => Value::unknown(),
                            _ => witness(values[column], row),
                        };
                        in_row.push(region.assign_advice(|| "input", *to, row, || value)?.cell());
                    }
                    cells.push(in_row);
                    for column in 0..shape.inputs {
                        if let Some((from_row, from_column)) = shape.copied_from(row, column) {
                            region.constrain_equal(cells[row][column], cells[from_row][from_column])?;
                        }
                    }
                    for (column, to) in config.fixed.iter().enumerate() {
                        let value = fixed(row, column);
                        let assigned = match row % 4 {
                            0 => Assigned::Rational(value.double(), number(2)),
                            1 => Assigned::Rational(value + F::ONE, F::ZERO),
                            _ => Assigned::Trivial(value),
                        };
                        region.assign_fixed(|| "fixed", *to, row, || Value::known(assigned))?;
                    }
                }
                for (gate, terms) in shape.gates.iter().enumerate() {
                    for row in (ROTATION..self.rows - ROTATION).filter(|row| (row + gate) % (gate + 2) != 0) {
                        let product = |term: &crate::shape::Term| {
                            term.factors
                                .iter()
                                .fold(number(term.coefficient), |product: F, factor| {
                                    product
                                        * match factor.is_fixed {
                                            true => fixed(row, factor.column),
                                            false => {
                                                inputs[(row as i32 + factor.rotation) as usize][factor.column]
                                            }
                                        }
                                })
                        };
                        let value = terms.iter().map(product).fold(F::ZERO, |sum, term| sum + term);
                        region.assign_advice(
                            || "output",
                            config.outputs[gate],
                            row,
                            || witness(value, row),
                        )?;
                        config.simple[gate].enable(&mut region, row)?;
                    }
                }
                for (lookup, (selector, columns, _)) in config.lookups.iter().enumerate() {
                    for row in (0..self.rows).filter(|row| row % 3 != 1) {
                        let entry = self.values.bits(row, 300 + lookup as u64) as usize % ENTRIES;
                        let entry = match self.broken {
                            Broken::NotInTable if row == 2 => ENTRIES,
                            _ => entry,
                        };
                        for (column, to) in columns.iter().enumerate() {
                            let value = number(Shape::entry(lookup, column, entry));
                            region.assign_advice(|| "entry", *to, row, || witness(value, row))?;
                        }
                        selector.enable(&mut region, row)?;
                    }
                }
                if self.broken == Broken::BelowTheRows {
                    region.assign_advice(|| "below", config.inputs[0], 1 << 12, || witness(F::ONE, 0))?;
                }
                Ok(cells[0].first().copied())
            },
        )?;
        if let (Some(cell), Some(instance), true) = (first, config.instance, shape.permuted_inputs > 0) {
            layouter.constrain_instance(cell, instance, 0)?;
        }
        Ok(())
    }
}
