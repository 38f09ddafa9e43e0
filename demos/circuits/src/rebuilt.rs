//! The constraint system of a circuit by its description: columns, queries, gates and lookups are made in the
//! order in which the program made them, so that its key is read as the program wrote it, and has the same
//! hash.

use super::dialect::description::{CircuitDescription, ColumnId, Described, Element, Kind, Query};
use super::dialect::{Field, Fr, OTHER_DEGREE, PrimeField, additive_gate, advice_column, gate};
use super::halo2::plonk::{
    Advice, Column, ConstraintSystem, Expression, Fixed, Instance, Selector, VirtualCells,
};
use super::halo2::poly::Rotation;

/// What expressions are made of.
struct Columns {
    fixed: Vec<Column<Fixed>>,
    advice: Vec<Column<Advice>>,
    instance: Vec<Column<Instance>>,
    selectors: Vec<Selector>,
}

/// Cells in the order of the queries.
struct Cells {
    fixed: Vec<Expression<Fr>>,
    advice: Vec<Expression<Fr>>,
    instance: Vec<Expression<Fr>>,
}

/// Makes the circuit's columns and constraints; its advice columns.
pub fn configure(cs: &mut ConstraintSystem<Fr>, of: &CircuitDescription) -> Vec<Column<Advice>> {
    let columns = Columns {
        fixed: (0..of.fixed_columns).map(|_| cs.fixed_column()).collect(),
        advice: (0..of.advice_columns)
            .map(|index| advice_column(cs, !of.unblinded_advice.contains(&index)))
            .collect(),
        instance: (0..of.instance_columns).map(|_| cs.instance_column()).collect(),
        selectors: of
            .simple_selectors
            .iter()
            .map(|is_simple| match is_simple {
                true => cs.selector(),
                false => cs.complex_selector(),
            })
            .collect(),
    };
    // The first gate, lookup or trash argument makes all queries: each has its place before the first expression, or copy,
    // asks for one.
    let mut cells = None;
    for constraints in &of.gates {
        gate(cs, "", |all| {
            let cells = cells.get_or_insert_with(|| columns.query(all, of));
            constraints
                .iter()
                .map(|constraint| columns.expression(cells, constraint))
                .collect::<Vec<_>>()
        });
    }
    for lookup in &of.lookups {
        cs.lookup_any("", |all| {
            let cells = cells.get_or_insert_with(|| columns.query(all, of));
            let both = |(input, table): &(_, _)| {
                (columns.expression(cells, input), columns.expression(cells, table))
            };
            lookup.iter().map(both).collect()
        });
    }
    for argument in &of.trash {
        additive_gate(cs, columns.selectors[argument.selector], |all| {
            let cells = cells.get_or_insert_with(|| columns.query(all, of));
            // Joined, they are the argument's name.
            let names = argument.name.splitn(argument.constraints.len(), '&');
            let constraints = argument.constraints.iter();
            let constraints = constraints.map(|constraint| columns.expression(cells, constraint));
            names.map(str::to_owned).zip(constraints).collect()
        });
    }
    for &ColumnId { kind, index } in &of.permuted {
        match kind {
            Kind::Fixed => cs.enable_equality(columns.fixed[index]),
            Kind::Advice => cs.enable_equality(columns.advice[index]),
            Kind::Instance => cs.enable_equality(columns.instance[index]),
        }
    }
    for column in &of.constants {
        cs.enable_constant(columns.fixed[*column]);
    }
    if let Some(degree) = of.minimum_degree {
        cs.set_minimum_degree(degree);
    }
    columns.advice
}

impl Columns {
    fn query(&self, all: &mut VirtualCells<'_, Fr>, of: &CircuitDescription) -> Cells {
        let at = |rotation: i32| Rotation(rotation);
        let mut query = |(column, rotation): &Query| all.query_fixed(self.fixed[*column], at(*rotation));
        let fixed = of.fixed_queries.iter().map(&mut query).collect();
        let mut query = |(column, rotation): &Query| all.query_advice(self.advice[*column], at(*rotation));
        let advice = of.advice_queries.iter().map(&mut query).collect();
        let mut query =
            |(column, rotation): &Query| all.query_instance(self.instance[*column], at(*rotation));
        let instance = of.instance_queries.iter().map(&mut query).collect();
        Cells {
            fixed,
            advice,
            instance,
        }
    }

    fn expression(&self, cells: &Cells, of: &Described) -> Expression<Fr> {
        let inner = |of: &Described| Box::new(self.expression(cells, of));
        match of {
            Described::Constant(value) => Expression::Constant(field(value)),
            Described::Selector(index) => Expression::Selector(self.selectors[*index]),
            Described::Fixed(query) => cells.fixed[*query].clone(),
            Described::Advice(query) => cells.advice[*query].clone(),
            Described::Instance(query) => cells.instance[*query].clone(),
            Described::Negated(a) => Expression::Negated(inner(a)),
            Described::Sum(a, b) => Expression::Sum(inner(a), inner(b)),
            Described::Product(a, b) => Expression::Product(inner(a), inner(b)),
            Described::Scaled(a, factor) => Expression::Scaled(inner(a), field(factor)),
        }
    }
}

/// A description's elements are below the modulus.
fn field(value: &Element) -> Fr {
    Fr::from_repr(*value).unwrap_or(Fr::ZERO)
}

/// Whether halo2 has a domain for the circuit with `2^k` rows, and constraints of the degree that it had where
/// the key was made.
///
/// # Errors
/// In words.
pub fn check_degree(cs: &ConstraintSystem<Fr>, of: &CircuitDescription, k: u32) -> Result<(), String> {
    let degree = cs.degree();
    if degree != of.degree {
        return Err(format!(
            "the circuit's constraints have the degree {degree} here, and had {} where the key was made: {OTHER_DEGREE}",
            of.degree
        ));
    }
    let pieces = degree.saturating_sub(1).max(1).next_power_of_two();
    if k + pieces.ilog2() > Fr::S {
        return Err(format!(
            "2^{k} rows and constraints of degree {degree}: the field has no domain for the quotient"
        ));
    }
    Ok(())
}
