//! What a circuit's keys and a proof of it will take, before any work: the constraint system as the engine's [`Shape`], with
//! the same programs as the prover's.

use std::ops::Range;

use spillproof::plan::{LookupShape, NumeratorShape, OpeningScheme, Openings, Shape};
use spillproof::plonkish::{Builder, Program};
use spillproof::tier::{self, Input, Rows};

use crate::circuit::{ConstraintSystem, Lookup, Query};
use crate::curve::Scalar;
use crate::domain::Domain;
use crate::lower::Lowering;
use crate::numerator::{Challenges, numerator};

/// The shape of proofs of `circuits` circuits. `selectors` of the fixed columns take the place of selectors; an advice cell has
/// `advice_cell_bytes`.
pub fn shape(
    cs: &ConstraintSystem,
    domain: &Domain,
    selectors: usize,
    circuits: usize,
    advice_cell_bytes: u64,
    scheme: OpeningScheme,
) -> Shape {
    let unknown = Challenges::unknown(cs.challenge_phases.len());
    let lowering = Lowering {
        fixed: 0,
        advice: cs.fixed_columns,
        instance: cs.fixed_columns + cs.advice_columns(),
        challenges: &unknown.circuit,
    };
    let phase = |phase| {
        let columns = cs.advice_phases.iter().enumerate();
        columns
            .filter(|(_, of)| **of == phase)
            .map(|(column, _)| column)
            .collect()
    };
    Shape {
        log_n: domain.log_n,
        log_cosets: domain.cosets.log_cosets,
        pieces: domain.cosets.pieces,
        phases: (0..cs.phases()).map(phase).collect(),
        advice_cell_bytes,
        fixed: cs.fixed_columns - selectors,
        selectors,
        instances: cs.instance_columns,
        permuted: cs
            .permuted
            .iter()
            .map(|column| lowering.column(*column))
            .collect(),
        set_len: cs.permutation_chunk(),
        lookups: cs
            .lookups
            .iter()
            .map(|argument| lookup(&lowering, argument, unknown.theta))
            .collect(),
        blinding_factors: cs.blinding_factors as u64,
        circuits,
        numerator: numerator_shape(cs, domain, circuits),
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
    /// That of a proof of `circuits` circuits.
    pub fn new(cs: &ConstraintSystem, domain: &Domain, circuits: usize) -> Self {
        let unknown = Challenges::unknown(cs.challenge_phases.len());
        let (program, columns) = numerator(cs, domain.delta, circuits, &unknown);
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

fn lookup(lowering: &Lowering<'_>, argument: &Lookup, theta: Scalar) -> LookupShape {
    let mut builder = Builder::new();
    let mut outputs = Vec::new();
    let plain = [&argument.input, &argument.table].map(|expressions| {
        let plain = lowering.plain_column(expressions);
        if plain.is_none() {
            outputs.push(lowering.compressed(&mut builder, expressions, theta));
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

fn numerator_shape(cs: &ConstraintSystem, domain: &Domain, circuits: usize) -> NumeratorShape {
    let unknown = Challenges::unknown(cs.challenge_phases.len());
    let (program, all) = numerator(cs, domain.delta, circuits, &unknown);
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
fn rotations(program: &Program<Scalar>, columns: Range<usize>) -> Vec<(usize, (i32, i32))> {
    columns
        .filter_map(|column| Some((column, program.rotations(column)?)))
        .collect()
}

/// Rotations at which fixed and advice columns are opened.
fn openings(cs: &ConstraintSystem) -> Vec<Vec<i32>> {
    let mut columns = vec![Vec::new(); cs.fixed_columns + cs.advice_columns()];
    let mut enter = |first: usize, queries: &[Query]| {
        for (column, at) in queries {
            let rotations: &mut Vec<i32> = &mut columns[first + column];
            if !rotations.contains(at) {
                rotations.push(*at);
            }
        }
    };
    enter(0, &cs.fixed_queries);
    enter(cs.fixed_columns, &cs.advice_queries);
    columns
}
