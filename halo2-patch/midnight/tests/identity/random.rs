//! A circuit of a [`Shape`]: gates at rotations, additive selectors, copies, fractions, tables, instance
//! columns, unblinded columns, phases.

use ff::Field;

use super::curves::Fq;
use super::midnight::circuit::{Cell, Layouter, Region, SimpleFloorPlanner, Value};
use super::midnight::plonk::{
    Advice, Challenge, Circuit, Column, ConstraintSystem, Constraints, Error, Expression, FirstPhase, Fixed,
    Instance, SecondPhase, Selector, TableColumn, ThirdPhase, VirtualCells,
};
use super::midnight::poly::Rotation;
use super::midnight::utils::rational::Rational;
use crate::shape::{Broken, Shape, Sum, Values, ENTRIES, ROTATION};

/// Columns of a [`Random`].
#[derive(Clone, Debug)]
pub struct Config {
    shape: Shape,
    inputs: Vec<Column<Advice>>,
    fixed: Vec<Column<Fixed>>,
    /// The output and the selector of each gate.
    gates: Vec<(Column<Advice>, Selector)>,
    /// The outputs and the selector of each gate under an additive selector.
    trash: Vec<(Vec<Column<Advice>>, Selector)>,
    /// Selector, inputs and tables of each lookup.
    lookups: Vec<(Selector, Vec<Column<Advice>>, Vec<TableColumn>)>,
    /// An instance column, the advice column that a gate keeps equal to it, and that gate's selector.
    publics: Vec<(Column<Instance>, Column<Advice>, Selector)>,
    /// A column of a later phase, the challenge before it, and its gate's selector.
    later: Vec<(Column<Advice>, Challenge, Selector)>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Random {
    pub rows: usize,
    pub values: Values,
    pub broken: Broken,
    pub witnessed: bool,
}

fn number(value: u64) -> Fq {
    Fq::from(value)
}

fn expression(
    terms: &Sum,
    cells: &mut VirtualCells<'_, Fq>,
    inputs: &[Column<Advice>],
    fixed: &[Column<Fixed>],
) -> Expression<Fq> {
    terms.iter().fold(Expression::Constant(Fq::ZERO), |sum, term| {
        let one = Expression::Constant(number(term.coefficient));
        sum + term.factors.iter().fold(one, |product, factor| {
            product
                * match factor.is_fixed {
                    true => cells.query_fixed(fixed[factor.column], Rotation::cur()),
                    false => cells.query_advice(inputs[factor.column], Rotation(factor.rotation)),
                }
        })
    })
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

    /// Rows that a circuit of the current shape may assign, of `2^k`; fewer than there are, so that some
    /// stay empty.
    pub fn rows(k: u32) -> usize {
        let mut cs = ConstraintSystem::default();
        Self::configure(&mut cs);
        (1usize << k).saturating_sub(cs.blinding_factors() + 3)
    }

    /// Values of the instance columns.
    pub fn instances(&self) -> Vec<Vec<Fq>> {
        let shape = Shape::current();
        let column = |index: usize| {
            let of_input = self.input(&shape, 0, 0);
            let others = (0..index * 2).map(|row| number(self.values.bits(row, 400 + index as u64)));
            std::iter::once(of_input).chain(others).collect()
        };
        (0..shape.publics.len()).map(column).collect()
    }

    /// The value of an input, which may be a copy of one in a row above.
    fn input(&self, shape: &Shape, row: usize, column: usize) -> Fq {
        match shape.copied_from(row, column) {
            Some((row, column)) => self.input(shape, row, column),
            // Small values now and then.
            None if self.values.bits(row, 50 + column as u64).is_multiple_of(4) => {
                number(self.values.bits(row, column as u64) % 3)
            }
            None => {
                let value = number(self.values.bits(row, column as u64));
                value.square() + number(self.values.bits(row, 20 + column as u64))
            }
        }
    }

    fn fixed(row: usize, column: usize) -> Fq {
        match row % 4 {
            1 => Fq::ZERO,
            _ => number(Values(7).bits(row, 200 + column as u64)),
        }
    }

    fn value(&self, inputs: &[Vec<Fq>], terms: &Sum, row: usize) -> Fq {
        let product = |term: &crate::shape::Term| {
            term.factors
                .iter()
                .fold(number(term.coefficient), |product, factor| {
                    product
                        * match factor.is_fixed {
                            true => Self::fixed(row, factor.column),
                            false => inputs[(row as i32 + factor.rotation) as usize][factor.column],
                        }
                })
        };
        terms.iter().map(product).sum()
    }

    /// What is assigned for a value: a fraction now and then.
    fn witness(&self, value: Fq, row: usize) -> Value<Rational<Fq>> {
        let fraction = match row % 5 {
            3 => Rational::Rational(value.double(), number(2)),
            _ => Rational::Trivial(value),
        };
        match self.witnessed {
            true => Value::known(fraction),
            false => Value::unknown(),
        }
    }

    /// Rows whose neighbours are rows too.
    fn inner_rows(&self) -> std::ops::Range<usize> {
        ROTATION..self.rows.saturating_sub(ROTATION)
    }

    fn assign_inputs(
        &self,
        config: &Config,
        inputs: &[Vec<Fq>],
        region: &mut Region<'_, Fq>,
    ) -> Result<Option<Cell>, Error> {
        let shape = &config.shape;
        let mut cells: Vec<Vec<Cell>> = Vec::with_capacity(self.rows);
        for (row, values) in inputs.iter().enumerate() {
            let mut in_row = Vec::with_capacity(values.len());
            for (to, value) in config.inputs.iter().zip(values) {
                let value = match self.broken {
                    Broken::Unassigned if row == 3 => Value::unknown(),
                    _ => self.witness(*value, row),
                };
                in_row.push(region.assign_advice(|| "input", *to, row, || value)?.cell());
            }
            cells.push(in_row);
            for column in 0..values.len() {
                if let Some((from_row, from_column)) = shape.copied_from(row, column) {
                    region.constrain_equal(cells[row][column], cells[from_row][from_column])?;
                }
            }
            for (column, to) in config.fixed.iter().enumerate() {
                let value = Self::fixed(row, column);
                let assigned = match row % 4 {
                    0 => Rational::Rational(value.double(), number(2)),
                    // A fraction over zero is zero.
                    1 => Rational::Rational(value + Fq::ONE, Fq::ZERO),
                    _ => Rational::Trivial(value),
                };
                region.assign_fixed(|| "fixed", *to, row, || Value::known(assigned))?;
            }
        }
        if let (Broken::BelowTheRows, Some(to)) = (self.broken, config.inputs.first()) {
            region.assign_advice(|| "below", *to, 1 << 12, || self.witness(Fq::ONE, 0))?;
        }
        Ok(cells.first().and_then(|row| row.first().copied()))
    }

    fn assign_outputs(
        &self,
        config: &Config,
        inputs: &[Vec<Fq>],
        region: &mut Region<'_, Fq>,
    ) -> Result<(), Error> {
        for (number, (terms, (output, selector))) in config.shape.gates.iter().zip(&config.gates).enumerate()
        {
            for row in self.inner_rows().filter(|row| (row + number) % (number + 2) != 0) {
                let value = self.witness(self.value(inputs, terms, row), row);
                region.assign_advice(|| "output", *output, row, || value)?;
                selector.enable(region, row)?;
            }
        }
        for (number, (sums, (outputs, selector))) in config.shape.trash.iter().zip(&config.trash).enumerate()
        {
            for row in self.inner_rows() {
                let is_on = (row + number) % 3 == 0;
                for (terms, output) in sums.iter().zip(outputs) {
                    // Where the selector is off, anything: the trash column takes it.
                    let value = match is_on {
                        true => self.value(inputs, terms, row),
                        false => Fq::from(self.values.bits(row, 500)),
                    };
                    let value = self.witness(value, row);
                    region.assign_advice(|| "output", *output, row, || value)?;
                }
                if is_on {
                    selector.enable(region, row)?;
                }
            }
        }
        Ok(())
    }

    fn assign_lookups(&self, config: &Config, region: &mut Region<'_, Fq>) -> Result<(), Error> {
        for (lookup, (selector, columns, _)) in config.lookups.iter().enumerate() {
            for row in 0..self.rows {
                let entry = match config.shape.leaves_many {
                    // Only every other entry, so that several are left.
                    true => 2 * (self.values.bits(row, 300 + lookup as u64) as usize % ENTRIES.div_ceil(2)),
                    // All of them.
                    false => row % ENTRIES,
                };
                let entry = match self.broken {
                    Broken::NotInTable if row == 2 => ENTRIES,
                    _ => entry,
                };
                for (column, to) in columns.iter().enumerate() {
                    let value = self.witness(number(Shape::entry(lookup, column, entry)), row);
                    region.assign_advice(|| "entry", *to, row, || value)?;
                }
                selector.enable(region, row)?;
            }
        }
        Ok(())
    }

    fn assign_publics(&self, config: &Config, region: &mut Region<'_, Fq>) -> Result<(), Error> {
        let instances = self.instances();
        for ((public, values), (_, mirror, selector)) in
            config.shape.publics.iter().zip(&instances).zip(&config.publics)
        {
            for row in self.inner_rows() {
                let value = values.get((row as i32 + public.rotation) as usize);
                let value = self.witness(value.copied().unwrap_or(Fq::ZERO), row);
                region.assign_advice(|| "mirror", *mirror, row, || value)?;
                selector.enable(region, row)?;
            }
        }
        Ok(())
    }

    /// `next = this * challenge + input`.
    fn assign_later(
        &self,
        config: &Config,
        inputs: &[Vec<Fq>],
        challenges: &[Value<Fq>],
        region: &mut Region<'_, Fq>,
    ) -> Result<(), Error> {
        for ((column, _, selector), challenge) in config.later.iter().zip(challenges) {
            let mut running = Value::known(Fq::ZERO);
            for (row, values) in inputs.iter().enumerate() {
                let value = match self.witnessed {
                    true => running,
                    false => Value::unknown(),
                };
                region.assign_advice(|| "running", *column, row, || value)?;
                if row + 1 < inputs.len() {
                    selector.enable(region, row)?;
                }
                running = running
                    .zip(*challenge)
                    .map(|(running, challenge)| running * challenge + values[0]);
            }
        }
        Ok(())
    }
}

impl Circuit<Fq> for Random {
    type Config = Config;
    type FloorPlanner = SimpleFloorPlanner;
    #[cfg(feature = "circuit-params")]
    type Params = ();

    fn without_witnesses(&self) -> Self {
        let witnessed = false;
        Self {
            witnessed,
            ..self.clone()
        }
    }

    fn configure(cs: &mut ConstraintSystem<Fq>) -> Config {
        let shape = Shape::current();
        let inputs: Vec<_> = shape
            .inputs
            .iter()
            .map(|is_blinded| match is_blinded {
                true => cs.advice_column(),
                false => cs.unblinded_advice_column(),
            })
            .collect();
        let fixed: Vec<_> = (0..shape.fixed).map(|_| cs.fixed_column()).collect();
        let instances: Vec<_> = shape.publics.iter().map(|_| cs.instance_column()).collect();
        if let (Some(input), true) = (inputs.first(), shape.begins_in_its_row) {
            cs.create_gate("nothing", |cells| {
                let mut sum = cells.query_advice(*input, Rotation::cur());
                for instance in &instances {
                    sum = sum + cells.query_instance(*instance, Rotation::cur());
                }
                Constraints::without_selector(vec![sum * Fq::ZERO])
            });
        }
        inputs[..shape.permuted_inputs]
            .iter()
            .for_each(|column| cs.enable_equality(*column));
        fixed[..shape.permuted_fixed]
            .iter()
            .for_each(|column| cs.enable_equality(*column));
        let gates = shape.gates.iter().map(|terms| {
            let (output, selector) = (cs.advice_column(), cs.selector());
            cs.create_gate("random", |cells| {
                let sum = expression(terms, cells, &inputs, &fixed);
                let output = cells.query_advice(output, Rotation::cur());
                Constraints::with_selector(selector, vec![("sum", sum - output)])
            });
            (output, selector)
        });
        let gates = gates.collect();
        let trash = shape.trash.iter().map(|sums| {
            let selector = cs.complex_selector();
            let outputs: Vec<_> = sums.iter().map(|_| cs.advice_column()).collect();
            cs.create_gate("additive", |cells| {
                let constraints = sums.iter().zip(&outputs).map(|(terms, output)| {
                    let sum = expression(terms, cells, &inputs, &fixed);
                    ("sum", sum - cells.query_advice(*output, Rotation::cur()))
                });
                let constraints: Vec<_> = constraints.collect();
                Constraints::with_additive_selector(selector, constraints)
            });
            (outputs, selector)
        });
        let trash = trash.collect();
        let mut lookups = Vec::new();
        for (lookup, &width) in shape.lookups.iter().enumerate() {
            let selector = cs.complex_selector();
            let columns: Vec<_> = (0..width).map(|_| cs.advice_column()).collect();
            let tables: Vec<_> = (0..width).map(|_| cs.lookup_table_column()).collect();
            cs.lookup("table", |cells| {
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
        let publics = shape.publics.iter().zip(instances).map(|(public, instance)| {
            let (mirror, selector) = (cs.advice_column(), cs.selector());
            if public.is_permuted {
                cs.enable_equality(instance);
            }
            cs.create_gate("public", |cells| {
                let instance = cells.query_instance(instance, Rotation(public.rotation));
                let mirror = cells.query_advice(mirror, Rotation::cur());
                Constraints::with_selector(selector, vec![("mirror", mirror - instance)])
            });
            (instance, mirror, selector)
        });
        let publics = publics.collect();
        let later = (0..shape.later_phases).map(|phase| {
            let challenge = match phase {
                0 => cs.challenge_usable_after(FirstPhase),
                _ => cs.challenge_usable_after(SecondPhase),
            };
            let column = match phase {
                0 => cs.advice_column_in(SecondPhase),
                _ => cs.unblinded_advice_column_in(ThirdPhase),
            };
            let selector = cs.selector();
            cs.create_gate("running", |cells| {
                let input = cells.query_advice(inputs[0], Rotation::cur());
                let this = cells.query_advice(column, Rotation::cur());
                let next = cells.query_advice(column, Rotation::next());
                let challenge = cells.query_challenge(challenge);
                Constraints::with_selector(selector, vec![("running", this * challenge + input - next)])
            });
            (column, challenge, selector)
        });
        let later = later.collect();
        cs.set_minimum_degree(shape.minimum_degree);
        Config {
            shape,
            inputs,
            fixed,
            gates,
            trash,
            lookups,
            publics,
            later,
        }
    }

    fn synthesize(&self, config: Config, mut layouter: impl Layouter<Fq>) -> Result<(), Error> {
        for (lookup, (_, _, tables)) in config.lookups.iter().enumerate() {
            layouter.assign_table(
                || "table",
                |mut table| {
                    for (column, to) in tables.iter().enumerate() {
                        for entry in 0..ENTRIES {
                            let value = || Value::known(number(Shape::entry(lookup, column, entry)));
                            table.assign_cell(|| "entry", *to, entry, value)?;
                        }
                    }
                    Ok(())
                },
            )?;
        }
        let columns = 0..config.inputs.len();
        let of_row = |row| {
            let column = |column| self.input(&config.shape, row, column);
            columns.clone().map(column).collect()
        };
        let inputs: Vec<Vec<Fq>> = (0..self.rows).map(of_row).collect();
        let challenges: Vec<_> = config
            .later
            .iter()
            .map(|(_, challenge, _)| layouter.get_challenge(*challenge))
            .collect();
        let first = layouter.assign_region(
            || "rows",
            |mut region| {
                let first = self.assign_inputs(&config, &inputs, &mut region)?;
                self.assign_outputs(&config, &inputs, &mut region)?;
                self.assign_lookups(&config, &mut region)?;
                self.assign_publics(&config, &mut region)?;
                self.assign_later(&config, &inputs, &challenges, &mut region)?;
                Ok(first)
            },
        )?;
        let is_permuted = config.shape.permuted_inputs > 0;
        if let (Some(cell), true) = (first, is_permuted) {
            for (public, (instance, ..)) in config.shape.publics.iter().zip(&config.publics) {
                if public.is_permuted {
                    layouter.constrain_instance(cell, *instance, 0)?;
                }
            }
        }
        Ok(())
    }
}
