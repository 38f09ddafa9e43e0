//! What a circuit's keys and a proof of it will take in a session, before any work: the constraint system as the engine's
//! [`Shape`], with the same programs as the prover's.

use std::borrow::Cow;

use ::spillproof::commit::Scalar;
use ::spillproof::plan::{LookupShape, NumeratorShape, Openings};
pub use ::spillproof::plan::{OpeningScheme, Plan, Rates, Shape};
use ::spillproof::plonkish::{Builder, Program};
use ::spillproof::tier::{self, Input, Rows};
use ::spillproof::{Result, Session};
use halo2curves::bn256::Fr;

use super::constraints::{numerator, set_len, Challenges, Places};
use super::lower::Lowering;
use crate::plonk::{Assigned, ConstraintSystem, Expression};
use crate::poly::Rotation;

/// What keys and a proof of one circuit of `2^k` rows will take within the budget of `session`, on its threads, where only the
/// parameters are there yet. `cs` is what a circuit's `configure` makes, or what a key holds.
///
/// Rates are measured first, for about a second; [`Plan::new`] takes given ones.
///
/// ```
/// use halo2_axiom::plonk::{ConstraintSystem, Expression};
/// use halo2_axiom::poly::Rotation;
/// use halo2_axiom::halo2curves::bn256::Fr;
/// use halo2_axiom::spillproof::{plan, ByteSize, OpeningScheme, Session};
///
/// let mut cs = ConstraintSystem::<Fr>::default();
/// let bit = cs.advice_column();
/// cs.create_gate("a bit", |cells| {
///     let bit = cells.query_advice(bit, Rotation::cur());
///     vec![bit.clone() * (Expression::Constant(Fr::one()) - bit)]
/// });
/// let session = Session::builder().memory(ByteSize::Bytes(16 << 20)).build()?;
/// let plan = plan(&session, &cs, 12, OpeningScheme::Shplonk)?;
/// assert!(plan.peak_bytes() <= 16 << 20);
/// println!("{} bytes read, {} at least", plan.of(None).bytes_read, plan.smallest_budget_bytes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`BudgetTooSmall`](::spillproof::Error::BudgetTooSmall) with the smallest budget that works; the session's own, where its
/// disk can't be measured.
pub fn plan(session: &Session, cs: &ConstraintSystem<Fr>, k: u32, scheme: OpeningScheme) -> Result<Plan> {
    let rates = Rates::measure(session.workspace())?;
    Plan::new(
        &shape(cs, k, 1, scheme),
        session.budget().limit_bytes(),
        session.threads(),
        &rates,
    )
}

/// The smallest budget in which keys and a proof of `circuits` such circuits can be made, by whichever scheme.
pub(crate) fn minimum_bytes(
    cs: &ConstraintSystem<Fr>,
    k: u32,
    circuits: usize,
    threads: usize,
) -> Result<u64> {
    /// More than any circuit takes.
    const ENOUGH: u64 = 1 << 45;
    [OpeningScheme::Shplonk, OpeningScheme::Gwc]
        .into_iter()
        .try_fold(0, |most, scheme| {
            let shape = shape(cs, k, circuits, scheme);
            let plan = Plan::new(&shape, ENOUGH, threads, &Rates::default())?;
            Ok(plan.smallest_budget_bytes.max(most))
        })
}

/// The shape of proofs of `circuits` circuits of `2^k` rows. Selectors that stand in `cs` still become a column each, as they do
/// in keys without compression; with compression there are fewer, and the proof takes less.
pub fn shape(cs: &ConstraintSystem<Fr>, k: u32, circuits: usize, scheme: OpeningScheme) -> Shape {
    let fixed = cs.num_fixed_columns;
    let (cs, selectors) = without_selectors(cs);
    let cs = &*cs;
    let degree = cs.degree();
    let pieces = degree - 1;
    let lowering = Lowering {
        fixed: 0,
        advice: cs.num_fixed_columns,
        instance: cs.num_fixed_columns + cs.num_advice_columns,
        challenges: &vec![any(1); cs.num_challenges],
    };
    let phases = (0..cs.phases().count())
        .map(|phase| {
            let columns = cs.advice_column_phase().into_iter().enumerate();
            columns
                .filter(|(_, of)| usize::from(*of) == phase)
                .map(|(column, _)| column)
                .collect()
        })
        .collect();
    let permuted = cs.permutation.get_columns();
    Shape {
        log_n: k,
        log_cosets: pieces.next_power_of_two().ilog2(),
        pieces,
        phases,
        advice_cell_bytes: size_of::<Assigned<Fr>>() as u64,
        fixed,
        selectors,
        instances: cs.num_instance_columns,
        permuted: permuted.iter().map(|column| lowering.column(column)).collect(),
        set_len: set_len(degree),
        lookups: cs
            .lookups
            .iter()
            .map(|argument| {
                lookup(
                    &lowering,
                    [&argument.input_expressions, &argument.table_expressions],
                )
            })
            .collect(),
        blinding_factors: cs.blinding_factors() as u64,
        circuits,
        numerator: numerator_shape(cs, circuits),
        openings: Openings {
            scheme,
            columns: openings(cs),
        },
    }
}

/// The numerator of the quotient, as a proof offers it to a second compute tier; its challenges are any.
#[derive(Debug)]
pub struct Numerator {
    program: Program<Scalar>,
    inputs: Vec<Input>,
}

impl Numerator {
    /// That of a proof of `circuits` circuits. Selectors are as in [`shape`].
    pub fn new(cs: &ConstraintSystem<Fr>, circuits: usize) -> Self {
        let (cs, _) = without_selectors(cs);
        let (columns, program) = numerator_of(&cs, circuits);
        // X and l_0 come behind the columns, as in the prover.
        let rows = |column: usize| match column.checked_sub(columns) {
            None => Rows::Read,
            Some(0) => Rows::Identity,
            Some(_) => Rows::FirstLagrange,
        };
        let inputs = rotations(&program, 0..program.columns()).into_iter();
        let inputs = inputs.map(|(column, rotations)| Input {
            column,
            rotations,
            rows: rows(column),
        });
        Self {
            inputs: inputs.collect(),
            program,
        }
    }

    /// The program, as jobs have it.
    pub fn program(&self) -> tier::Program<'_> {
        tier::Program {
            queries: self.program.queries(),
            instructions: self.program.code(),
            registers: self.program.registers(),
        }
    }

    /// Each column that it reads.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }
}

/// With a column for each selector, and how many those are.
fn without_selectors(cs: &ConstraintSystem<Fr>) -> (Cow<'_, ConstraintSystem<Fr>>, usize) {
    if cs.num_selectors == 0 || !cs.selector_map.is_empty() {
        return (Cow::Borrowed(cs), 0);
    }
    let selectors = vec![vec![true]; cs.num_selectors];
    let (replaced, _) = cs.clone().directly_convert_selectors_to_fixed(selectors);
    (Cow::Owned(replaced), cs.num_selectors)
}

/// A challenge is not known before the proof; any value but 0 and 1 gives the same program.
fn any(index: u64) -> Scalar {
    Scalar::from(0x9e37_79b9_7f4a_7c15 + index)
}

fn lookup(lowering: &Lowering<'_>, sides: [&Vec<Expression<Fr>>; 2]) -> LookupShape {
    let mut builder = Builder::new();
    let mut outputs = Vec::new();
    let plain = sides.map(|expressions| {
        let plain = match &expressions[..] {
            [expression] => lowering.plain_column(expression),
            _ => None,
        };
        if plain.is_none() {
            outputs.push(lowering.compressed(&mut builder, expressions, any(2)));
        }
        plain
    });
    let program = builder.finish(&outputs);
    LookupShape {
        plain,
        reads: rotations(&program, 0..program.columns()),
        registers: program.registers(),
        instructions: program.instructions(),
    }
}

/// The numerator's program, and the number of columns without X and `l_0`.
fn numerator_of(cs: &ConstraintSystem<Fr>, circuits: usize) -> (usize, Program<Scalar>) {
    let degree = cs.degree();
    let places = Places::new(cs, degree, circuits);
    let challenges = Challenges {
        challenges: &vec![any(1); cs.num_challenges],
        theta: any(2),
        beta: any(3),
        gamma: any(4),
        y: any(5),
    };
    (places.columns, numerator(cs, degree, &places, &challenges))
}

fn numerator_shape(cs: &ConstraintSystem<Fr>, circuits: usize) -> NumeratorShape {
    let (all, program) = numerator_of(cs, circuits);
    let bounds = |columns| {
        let read = rotations(&program, columns).into_iter();
        read.map(|(_, rotations)| rotations).collect()
    };
    NumeratorShape {
        read: bounds(0..all),
        computed: bounds(all..all + 2),
        registers: program.registers(),
        instructions: program.instructions(),
    }
}

/// The columns that are read, with their smallest and largest rotation.
fn rotations(program: &Program<Scalar>, columns: std::ops::Range<usize>) -> Vec<(usize, (i32, i32))> {
    columns
        .filter_map(|column| Some((column, program.rotations(column)?)))
        .collect()
}

/// Rotations at which fixed and advice columns are opened.
fn openings(cs: &ConstraintSystem<Fr>) -> Vec<Vec<i32>> {
    let mut columns = vec![Vec::new(); cs.num_fixed_columns + cs.num_advice_columns];
    let mut enter = |column: usize, Rotation(at): Rotation| {
        let rotations: &mut Vec<i32> = &mut columns[column];
        if !rotations.contains(&at) {
            rotations.push(at);
        }
    };
    for (column, at) in &cs.fixed_queries {
        enter(column.index(), *at);
    }
    for (column, at) in &cs.advice_queries {
        enter(cs.num_fixed_columns + column.index(), *at);
    }
    columns
}
