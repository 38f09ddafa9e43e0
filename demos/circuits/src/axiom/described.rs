//! A circuit of a program's own, by the description that it saved beside its key: columns, queries, gates and
//! lookups are made in the order in which the program made them, so that the key is read as the program wrote
//! it, and has the same hash.
//!
//! Nothing is synthesised: the key is in one file, the witness in another.

use std::io;
use std::sync::Arc;

use halo2_axiom::spillproof::CircuitDescription;
use halo2_axiom::spillproof::description::{ColumnId, Described, Element, Kind, Query};

use super::dialect::Fr;
use super::halo2::SerdeFormat;
use super::halo2::circuit::{Layouter, Region, SimpleFloorPlanner, Value};
use super::halo2::halo2curves::bn256::G1Affine;
use super::halo2::halo2curves::ff::{Field, PrimeField};
use super::halo2::plonk::{
    Advice, Circuit, Column, ConstraintSystem, Error, Expression, Fixed, Instance, Selector, VerifyingKey,
    VirtualCells,
};
use super::halo2::poly::Rotation;

/// The largest domain of BN254's scalars.
const TWO_ADICITY: u32 = 28;
/// Bytes of a point of a key.
const POINT_BYTES: usize = 64;

/// A circuit that a description stands for, with a witness if it is to be proved.
#[derive(Clone, Debug)]
pub struct OfProgram {
    of: Arc<CircuitDescription>,
    advice: Vec<Vec<Fr>>,
}

impl OfProgram {
    /// The circuit with the values of its advice columns from the first row on, as far as they are not
    /// blinding.
    pub fn new(of: Arc<CircuitDescription>, advice: Vec<Vec<Fr>>) -> Self {
        Self { of, advice }
    }
}

impl Circuit<Fr> for OfProgram {
    type Config = Vec<Column<Advice>>;
    type FloorPlanner = SimpleFloorPlanner;
    type Params = Option<Arc<CircuitDescription>>;

    fn params(&self) -> Self::Params {
        Some(Arc::clone(&self.of))
    }

    fn without_witnesses(&self) -> Self {
        Self::new(Arc::clone(&self.of), Vec::new())
    }

    fn configure_with_params(cs: &mut ConstraintSystem<Fr>, description: Self::Params) -> Self::Config {
        description.map_or_else(Vec::new, |description| configure(cs, &description))
    }

    fn configure(_: &mut ConstraintSystem<Fr>) -> Self::Config {
        Vec::new()
    }

    fn synthesize(&self, columns: Self::Config, mut layouter: impl Layouter<Fr>) -> Result<(), Error> {
        let assign = |mut region: Region<'_, Fr>| {
            for (column, values) in columns.iter().zip(&self.advice) {
                for (row, value) in values.iter().enumerate() {
                    region.assign_advice(*column, row, Value::known(*value));
                }
            }
            Ok(())
        };
        layouter.assign_region(|| "witness", assign)
    }
}

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
fn configure(cs: &mut ConstraintSystem<Fr>, of: &CircuitDescription) -> Vec<Column<Advice>> {
    let columns = Columns {
        fixed: (0..of.fixed_columns).map(|_| cs.fixed_column()).collect(),
        advice: (0..of.advice_columns).map(|_| cs.advice_column()).collect(),
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
    // The first gate or lookup makes all queries: each has its place before the first expression, or copy,
    // asks for one.
    let mut cells = None;
    for gate in &of.gates {
        cs.create_gate("", |all| {
            let cells = cells.get_or_insert_with(|| columns.query(all, of));
            gate.iter()
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

/// Whether halo2 takes the circuit with `2^k` rows as the program's halo2 did.
///
/// # Errors
/// In words, for a circuit that it would not take.
pub fn check(of: &CircuitDescription, k: u32) -> Result<(), String> {
    let mut cs = ConstraintSystem::default();
    configure(&mut cs, of);
    let degree = cs.degree();
    if degree != of.degree {
        return Err(format!(
            "the circuit's constraints have the degree {degree} here, and had {} where the key was made: set MAX_DEGREE as it was there",
            of.degree
        ));
    }
    let pieces = degree.saturating_sub(1).max(1).next_power_of_two();
    if k + pieces.ilog2() > TWO_ADICITY {
        return Err(format!(
            "2^{k} rows and constraints of degree {degree}: BN254 has no domain for the quotient"
        ));
    }
    let too_high =
        |constraint: &&Expression<Fr>| has_simple_selector(constraint) && constraint.degree() > degree;
    match cs
        .gates()
        .iter()
        .flat_map(|gate| gate.polynomials())
        .find(too_high)
    {
        Some(constraint) => Err(format!(
            "a constraint with a selector has the degree {}, and the circuit has {degree}: no key is of this circuit",
            constraint.degree()
        )),
        None => Ok(()),
    }
}

fn has_simple_selector(constraint: &Expression<Fr>) -> bool {
    constraint.evaluate(
        &|_| false,
        &|selector| selector.is_simple(),
        &|_| false,
        &|_| false,
        &|_| false,
        &|_| false,
        &|a| a,
        &|a, b| a | b,
        &|a, b| a | b,
        &|a, _| a,
    )
}

/// The verifying key of a described circuit, from its bytes.
///
/// # Errors
/// For bytes that are no key of that circuit, and for a circuit that [`check`] refuses.
pub fn read_verifying_key(
    mut bytes: &[u8],
    of: &Arc<CircuitDescription>,
) -> io::Result<VerifyingKey<G1Affine>> {
    let refused = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    let found = bytes.len();
    let expected = Head::of(bytes).and_then(|head| Some((head.k, head.key_bytes(of)?)));
    let k = match expected {
        Some((k, expected)) if expected == found => k,
        _ => {
            return Err(refused(format!(
                "{found} bytes are no verifying key of the circuit of the description"
            )));
        }
    };
    check(of, k).map_err(refused)?;
    VerifyingKey::read::<_, OfProgram>(&mut bytes, SerdeFormat::RawBytes, Some(Arc::clone(of)))
}

/// The hash of a key in hexadecimal digits, as in its description: the same as there, unless the description
/// is of another circuit.
pub fn hash_of(key: &VerifyingKey<G1Affine>) -> Element {
    key.transcript_repr().to_repr()
}

/// The beginning of a verifying key.
struct Head {
    k: u32,
    has_compressed_selectors: bool,
    fixed_columns: usize,
}

impl Head {
    const BYTES: usize = 10;

    fn of(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let k = number(1)?;
        (k <= TWO_ADICITY).then_some(())?;
        Some(Self {
            k,
            has_compressed_selectors: *bytes.get(5)? == 1,
            fixed_columns: number(6)? as usize,
        })
    }

    /// The length of the key.
    fn key_bytes(&self, of: &CircuitDescription) -> Option<usize> {
        let points = self.fixed_columns.checked_add(of.permuted.len())?;
        let selectors = match self.has_compressed_selectors {
            true => of
                .simple_selectors
                .len()
                .checked_mul((1usize << self.k).div_ceil(8))?,
            false => 0,
        };
        points
            .checked_mul(POINT_BYTES)?
            .checked_add(selectors)?
            .checked_add(Self::BYTES)
    }
}
