//! A circuit of a random shape: columns, gates of degree up to 6 at rotations up to 3, copies, and lookups.
//!
//! The shape follows from a number that the test sets ([`set_shape`]), since `configure` is told nothing; the
//! witness from a seed, as for every [`Builtin`]. Inputs are any values (copies of each other here and
//! there); every gate has an output column of its own, `q * (polynomial of inputs - output) = 0`; every
//! lookup has input columns of its own, whose values come from its table.

use std::sync::atomic::{AtomicU64, Ordering};

use super::halo2::circuit::{Layouter, SimpleFloorPlanner, Value};
use super::halo2::halo2curves::bn256::Fr;
use super::halo2::plonk::{
    Advice, Assigned, Circuit, Column, ConstraintSystem, Error, Expression, Fixed, Instance, Selector,
    TableColumn,
};
use super::halo2::poly::Rotation;
use super::rows::{usable_rows, Builtin, Values};

static SHAPE: AtomicU64 = AtomicU64::new(0);

/// Circuits that are configured from here on have this shape.
pub fn set_shape(shape: u64) {
    SHAPE.store(shape, Ordering::SeqCst);
}

/// Rotations go this far.
const ROTATION: usize = 3;

/// A factor of a term: an input or a fixed column, at a rotation.
#[derive(Clone, Copy, Debug)]
struct Factor {
    fixed: bool,
    column: usize,
    rotation: i32,
}

/// `coefficient * product of factors`.
#[derive(Clone, Debug)]
struct Term {
    coefficient: u64,
    factors: Vec<Factor>,
}

#[derive(Clone, Debug)]
struct Shape {
    inputs: usize,
    fixed: usize,
    permuted_inputs: usize,
    permuted_fixed: usize,
    gates: Vec<Vec<Term>>,
    /// Columns of each lookup.
    lookups: Vec<usize>,
    minimum_degree: usize,
    /// Whether there is an instance column.
    public: bool,
}

/// Whether circuits of the current shape have an instance column.
pub fn is_public() -> bool {
    Shape::current().public
}

impl Shape {
    fn current() -> Self {
        let draw = Values::new(SHAPE.load(Ordering::SeqCst));
        let mut lane = 0;
        let mut below = |bound: usize| {
            lane += 1;
            draw.bits(0, lane) as usize % bound
        };
        let (inputs, fixed) = (1 + below(5), 1 + below(3));
        let mut gates = Vec::new();
        let mut degree_max = 0;
        for _ in 0..below(4) {
            let terms = (0..1 + below(4)).map(|_| {
                // The selector makes the sixth.
                let degree = below(6);
                degree_max = degree_max.max(degree + 1);
                let coefficient = 1 + below(5) as u64;
                let factors = (0..degree).map(|_| {
                    let is_fixed = below(4) == 0;
                    let column = below(if is_fixed { fixed } else { inputs });
                    let rotation = below(2 * ROTATION + 1) as i32 - ROTATION as i32;
                    Factor {
                        fixed: is_fixed,
                        column,
                        rotation,
                    }
                });
                Term {
                    coefficient,
                    factors: factors.collect(),
                }
            });
            gates.push(terms.collect());
        }
        Self {
            inputs,
            fixed,
            permuted_inputs: below(inputs + 1),
            permuted_fixed: below(fixed + 1),
            gates,
            lookups: (0..below(3)).map(|_| 1 + below(3)).collect(),
            minimum_degree: degree_max.max(below(7)),
            public: below(2) == 0,
        }
    }
}

/// Columns of [`Random`].
#[derive(Clone, Debug)]
pub struct RandomConfig {
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
    k: u32,
    values: Values,
    witnessed: bool,
}

/// Seed of what belongs to the circuit, not to the witness.
const CIRCUIT: u64 = 0x00c1_2c01;
/// Entries of a table.
const ENTRIES: usize = 9;

/// Where an input's value comes from, if it is a copy: another row above, of a permuted column.
fn copied_from(shape: &Shape, row: usize, column: usize) -> Option<(usize, usize)> {
    let draw = Values::new(CIRCUIT);
    let lane = 100 + column as u64;
    let may = column < shape.permuted_inputs && row > 0 && draw.bits(row, lane).is_multiple_of(3);
    may.then(|| {
        let bits = draw.bits(row, lane + 1000) as usize;
        (bits % row, (bits >> 32) % shape.permuted_inputs)
    })
}

fn fixed_value(row: usize, column: usize) -> Fr {
    Values::new(CIRCUIT).field(row, 200 + column as u64)
}

fn table_value(lookup: usize, column: usize, entry: usize) -> Fr {
    Fr::from((100 * lookup + 10 * column + entry) as u64)
}

impl Random {
    /// Row by row, all inputs.
    fn inputs(&self, shape: &Shape, rows: usize) -> Vec<Vec<Fr>> {
        let mut inputs: Vec<Vec<Fr>> = Vec::with_capacity(rows);
        for row in 0..rows {
            let value = |column| match copied_from(shape, row, column) {
                Some((row, column)) => inputs[row][column],
                None => self.values.field(row, column as u64),
            };
            let values = (0..shape.inputs).map(value).collect();
            inputs.push(values);
        }
        inputs
    }
}

impl Builtin for Random {
    const NAME: &'static str = "random";
    const K_MIN: u32 = 6;

    fn new(k: u32, seed: u64) -> Self {
        Self {
            k,
            values: Values::new(seed),
            witnessed: true,
        }
    }

    fn instances(&self) -> Vec<Vec<Fr>> {
        let shape = Shape::current();
        if !shape.public {
            return Vec::new();
        }
        let inputs = self.inputs(&shape, 1);
        vec![if shape.permuted_inputs > 0 {
            vec![inputs[0][0]]
        } else {
            vec![Fr::from(7)]
        }]
    }
}

impl Circuit<Fr> for Random {
    type Config = RandomConfig;
    type FloorPlanner = SimpleFloorPlanner;
    type Params = ();

    fn without_witnesses(&self) -> Self {
        Self {
            witnessed: false,
            ..self.clone()
        }
    }

    fn configure(cs: &mut ConstraintSystem<Fr>) -> RandomConfig {
        let shape = Shape::current();
        let inputs: Vec<_> = (0..shape.inputs).map(|_| cs.advice_column()).collect();
        let fixed: Vec<_> = (0..shape.fixed).map(|_| cs.fixed_column()).collect();
        let instance = shape.public.then(|| cs.instance_column());
        for column in &inputs[..shape.permuted_inputs] {
            cs.enable_equality(*column);
        }
        for column in &fixed[..shape.permuted_fixed] {
            cs.enable_equality(*column);
        }
        if let Some(instance) = instance {
            cs.enable_equality(instance);
        }
        let (mut outputs, mut simple) = (Vec::new(), Vec::new());
        for terms in &shape.gates {
            let (output, selector) = (cs.advice_column(), cs.selector());
            cs.create_gate("random", |cells| {
                let sum = terms.iter().fold(Expression::Constant(Fr::zero()), |sum, term| {
                    let one = Expression::Constant(Fr::from(term.coefficient));
                    let product = term.factors.iter().fold(one, |product, factor| {
                        let rotation = Rotation(factor.rotation);
                        let cell = if factor.fixed {
                            cells.query_fixed(fixed[factor.column], rotation)
                        } else {
                            cells.query_advice(inputs[factor.column], rotation)
                        };
                        product * cell
                    });
                    sum + product
                });
                let (selector, output) = (
                    cells.query_selector(selector),
                    cells.query_advice(output, Rotation::cur()),
                );
                [selector * (sum - output)]
            });
            outputs.push(output);
            simple.push(selector);
        }
        let mut lookups = Vec::new();
        for &width in &shape.lookups {
            let selector = cs.complex_selector();
            let columns: Vec<_> = (0..width).map(|_| cs.advice_column()).collect();
            let tables: Vec<_> = (0..width).map(|_| cs.lookup_table_column()).collect();
            cs.lookup("random", |cells| {
                let on = cells.query_selector(selector);
                let pairs = columns.iter().zip(&tables);
                // Where it is off, the first entry.
                pairs
                    .enumerate()
                    .map(|(column, (input, table))| {
                        let first = Expression::Constant(table_value(lookups.len(), column, 0));
                        let input = cells.query_advice(*input, Rotation::cur());
                        (first.clone() + on.clone() * (input - first), *table)
                    })
                    .collect()
            });
            lookups.push((selector, columns, tables));
        }
        cs.set_minimum_degree(shape.minimum_degree);
        RandomConfig {
            shape,
            inputs,
            fixed,
            outputs,
            simple,
            lookups,
            instance,
        }
    }

    fn synthesize(&self, config: RandomConfig, mut layouter: impl Layouter<Fr>) -> Result<(), Error> {
        let shape = &config.shape;
        for (lookup, (_, _, tables)) in config.lookups.iter().enumerate() {
            layouter.assign_table(
                || "table",
                |mut table| {
                    for (column, to) in tables.iter().enumerate() {
                        for entry in 0..ENTRIES {
                            let value = || Value::known(table_value(lookup, column, entry));
                            table.assign_cell(|| "entry", *to, entry, value)?;
                        }
                    }
                    Ok(())
                },
            )?;
        }
        let rows = usable_rows::<Self>(self.k);
        let inputs = self.inputs(shape, rows);
        let witness = |value: Fr| {
            if self.witnessed {
                Value::known(Assigned::Trivial(value))
            } else {
                Value::unknown()
            }
        };
        let first = layouter.assign_region(
            || "rows",
            |mut region| {
                let mut cells = Vec::with_capacity(rows);
                for row in 0..rows {
                    let mut in_row = Vec::with_capacity(shape.inputs);
                    for (column, to) in config.inputs.iter().enumerate() {
                        let cell = region
                            .assign_advice(*to, row, witness(inputs[row][column]))
                            .cell();
                        in_row.push(cell);
                    }
                    cells.push(in_row);
                    for (column, _) in config.inputs.iter().enumerate() {
                        if let Some((from_row, from_column)) = copied_from(shape, row, column) {
                            region.constrain_equal(cells[row][column], cells[from_row][from_column]);
                        }
                    }
                    for (column, to) in config.fixed.iter().enumerate() {
                        let value = fixed_value(row, column);
                        let assigned = match row % 4 {
                            0 => Assigned::Rational(value.double(), Fr::from(2)),
                            1 => Assigned::Zero,
                            _ => Assigned::Trivial(value),
                        };
                        region.assign_fixed(*to, row, assigned);
                    }
                }
                let fixed = |row: usize, column| {
                    if row % 4 == 1 {
                        Fr::zero()
                    } else {
                        fixed_value(row, column)
                    }
                };
                for (gate, terms) in shape.gates.iter().enumerate() {
                    for row in (ROTATION..rows - ROTATION).filter(|row| (row + gate) % (gate + 2) != 0) {
                        let at = |factor: &Factor| {
                            let row = (row as i32 + factor.rotation) as usize;
                            if factor.fixed {
                                fixed(row, factor.column)
                            } else {
                                inputs[row][factor.column]
                            }
                        };
                        let product = |term: &Term| {
                            term.factors
                                .iter()
                                .fold(Fr::from(term.coefficient), |product, factor| product * at(factor))
                        };
                        let value = terms.iter().map(product).fold(Fr::zero(), |sum, term| sum + term);
                        region.assign_advice(config.outputs[gate], row, witness(value));
                        config.simple[gate].enable(&mut region, row)?;
                    }
                }
                for (lookup, (selector, columns, _)) in config.lookups.iter().enumerate() {
                    for row in (0..rows).filter(|row| row % 3 != 1) {
                        let entry = self.values.bits(row, 300 + lookup as u64) as usize % ENTRIES;
                        for (column, to) in columns.iter().enumerate() {
                            region.assign_advice(*to, row, witness(table_value(lookup, column, entry)));
                        }
                        selector.enable(&mut region, row)?;
                    }
                }
                Ok(cells[0].first().copied())
            },
        )?;
        if let (Some(cell), Some(instance), true) = (first, config.instance, shape.permuted_inputs > 0) {
            layouter.constrain_instance(cell, instance, 0);
        }
        Ok(())
    }
}
