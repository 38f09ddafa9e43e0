//! A quotient's cosets through the seam to an accelerator, with an accelerator that does them by arkworks'
//! arithmetic from the formulas in the seam's documentation: what it does is taken, what it declines the
//! processor does, with the same result. That the processor's quotients are the extended domain's,
//! `quotient.rs` holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{columns_on_disk, place, scalars};
use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, FftField, Field};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::accelerator::{self, Accelerator, Answer, Coset, RowSource, TileEnds, Tiles};
use spillproof_engine::budget::Budget;
use spillproof_engine::column::{Column, Element, Placement, Workspace};
use spillproof_engine::error::Invalid;
use spillproof_engine::storage::{Fault, FaultPlan, Storage};
use spillproof_kernels::vector::{Operand, Operation, Target};
use spillproof_plonk::stages::{Builder, CosetDomain, Program, Source, quotient, quotient_in_tiles};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// In tiles of 2^(at most the first) rows, which come in chunks of the second.
    Does(u32, u64),
    /// Not at all.
    Declines,
    /// After some rows were read and one written, of nothing.
    StopsInTheMiddle,
    /// Without having written anything.
    SaysSo,
    /// With less than all rows.
    WritesLittle,
    /// With tiles of more rows than there are.
    AsksNonsense,
    /// Rows out of order.
    ReadsOutOfOrder,
}

#[derive(Debug)]
struct Formulas {
    way: Way,
    jobs: AtomicU64,
}

/// Values by rows: input, row, point.
type Values = Vec<std::collections::HashMap<i64, Vec<Fr>>>;

impl Formulas {
    /// All rows that are read, in the order in which they come, as values.
    fn values(job: &Coset<'_>, ends: &mut TileEnds<'_>, tiles: Tiles) -> Result<Values> {
        let (n1, n2) = (1i64 << job.log_rows, 1usize << job.log_columns);
        let order = job.order(tiles.log_tile_rows);
        let root = job.omega.pow([n1 as u64]);
        let points: Vec<Fr> = (0..n2 as u64).map(|k| root.pow([k])).collect();
        let mut values: Values = Vec::new();
        let mut position = 0;
        while position < order.total_rows() {
            let rows = tiles.chunk_rows.min(order.total_rows() - position);
            let mut bytes = vec![0; rows as usize * n2 * 32];
            ends.input.read(position * n2 as u64, &mut bytes)?;
            for (at, row) in (position..).zip(bytes.chunks_exact(n2 * 32)) {
                let run = order.run_at(at).unwrap();
                let row_index = run.first_row + (at - run.before) as i64;
                let row: Vec<Fr> = row.chunks_exact(32).map(Fr::decode).collect();
                let at_point = |x: &Fr| row.iter().rev().fold(Fr::ZERO, |sum, a| sum * x + a);
                let mut of_row: Vec<Fr> = points.iter().map(at_point).collect();
                of_row.rotate_left(row_index.div_euclid(n1).rem_euclid(n2 as i64) as usize);
                values.resize(values.len().max(run.input + 1), Default::default());
                values[run.input].insert(row_index, of_row);
            }
            position += rows;
        }
        Ok(values)
    }

    fn write(job: &Coset<'_>, ends: &mut TileEnds<'_>, values: &Values, rows: i64) -> Result<()> {
        let (n1, n2) = (1i64 << job.log_rows, 1usize << job.log_columns);
        let n = n1 as u64 * n2 as u64;
        let vanishing = job.shift.pow([n]) - Fr::ONE;
        let inverse_n = Fr::from(n).inverse().unwrap();
        let root_inverse = job.omega.pow([n1 as u64]).inverse().unwrap();
        let (omega_inverse, shift_inverse) = (job.omega.inverse().unwrap(), job.shift.inverse().unwrap());
        for r in 0..rows {
            let at_point = |k: usize| {
                let query = |column: usize, rotation: i32| {
                    let row = r + i64::from(rotation);
                    let exponent = (row + n1 * k as i64).rem_euclid(n as i64) as u64;
                    let x = job.shift * job.omega.pow([exponent]);
                    let at = job
                        .inputs
                        .iter()
                        .position(|input| input.column == column)
                        .unwrap();
                    let earlier = &job.inputs[..at];
                    match job.inputs[at].rows {
                        RowSource::Read => {
                            let at = earlier
                                .iter()
                                .filter(|input| input.rows == RowSource::Read)
                                .count();
                            values[at][&row][k]
                        }
                        RowSource::Identity => x,
                        RowSource::FirstLagrange => vanishing * inverse_n * (x - Fr::ONE).inverse().unwrap(),
                    }
                };
                run(&job.program, query)
            };
            let numerator: Vec<Fr> = (0..n2).map(at_point).collect();
            let row_root = omega_inverse.pow([r as u64]);
            let coefficient = |j: usize| {
                let x = root_inverse.pow([j as u64]);
                let sum = numerator
                    .iter()
                    .rev()
                    .fold(Fr::ZERO, |sum, value| sum * x + value);
                job.scale * (shift_inverse * row_root).pow([j as u64]) * sum
            };
            let mut bytes = vec![0; n2 * 32];
            for (j, out) in bytes.chunks_exact_mut(32).enumerate() {
                coefficient(j).encode(out);
            }
            ends.output.write(r as u64 * n2 as u64, &bytes)?;
        }
        Ok(())
    }
}

/// The program at one point.
fn run(program: &accelerator::Program<'_>, query: impl Fn(usize, i32) -> Fr) -> Fr {
    let mut registers = vec![None; program.registers];
    let mut output = None;
    for instruction in program.instructions {
        let get = |operand: Operand| match operand {
            Operand::Input(number) => query(program.queries[number].0, program.queries[number].1),
            Operand::Register(number) => registers[number].expect("written before it is read"),
        };
        let value = match instruction.operation {
            Operation::Sum(a, b) => get(a) + get(b),
            Operation::Difference(a, b) => get(a) - get(b),
            Operation::Product(a, b) => get(a) * get(b),
            Operation::ScaledSum(a, factor, b) => get(a) * factor + get(b),
            Operation::Square(a) => get(a).square(),
            Operation::Double(a) => get(a).double(),
            Operation::Negated(a) => -get(a),
            Operation::Scaled(a, factor) => get(a) * factor,
            Operation::Shifted(a, shift) => get(a) + shift,
            Operation::Reflected(a, constant) => constant - get(a),
            Operation::Copy(a) => get(a),
            Operation::Constant(value) => value,
        };
        match instruction.to {
            Target::Register(number) => registers[number] = Some(value),
            Target::Output(number) => {
                assert_eq!((number, output), (0, None));
                output = Some(value);
            }
        }
    }
    output.unwrap()
}

impl Accelerator for Formulas {
    fn sums(&self, _: &mut accelerator::Sums<'_>, _: &Budget) -> Result<Answer<accelerator::Totals>> {
        panic!("a quotient has no sums")
    }

    fn transform(&self, _: &mut accelerator::Transform<'_>, _: &Budget) -> Result<Answer<()>> {
        panic!("a quotient is one job")
    }

    fn quotient(&self, job: &mut Coset<'_>, budget: &Budget) -> Result<Answer<()>> {
        self.jobs.fetch_add(1, Ordering::Relaxed);
        let tiles = |log_tile_rows: u32, chunk_rows| Tiles {
            log_tile_rows: log_tile_rows.min(job.log_rows),
            chunk_rows,
        };
        let tiles = match self.way {
            Way::Does(log_tile_rows, chunk_rows) => tiles(log_tile_rows, chunk_rows),
            Way::AsksNonsense => Tiles {
                log_tile_rows: job.log_rows + 1,
                chunk_rows: 1,
            },
            _ => tiles(1, 3),
        };
        if self.way == Way::Declines {
            return Ok(Answer::Declined("this test declines".into()));
        }
        let held = budget.held_bytes();
        let lease_bytes = job.in_tiles.lease_bytes();
        // The job's data, apart from its ends.
        let data = Coset {
            in_tiles: Box::new(Nowhere),
            inputs: job.inputs.clone(),
            ..*job
        };
        let mut ends = job.in_tiles.ends(tiles)?;
        let n1 = 1i64 << data.log_rows;
        match self.way {
            Way::StopsInTheMiddle => {
                let rows = data.order(tiles.log_tile_rows).total_rows().min(tiles.chunk_rows);
                ends.input
                    .read(0, &mut vec![0; (rows as usize * 32) << data.log_columns])?;
                ends.output.write(0, &vec![7; 32 << data.log_columns])?;
                return Ok(Answer::Declined("half way".into()));
            }
            Way::SaysSo => return Ok(Answer::Done(())),
            Way::ReadsOutOfOrder => {
                let second = 1 << data.log_columns;
                ends.input.read(second, &mut vec![0; 32 << data.log_columns])?;
            }
            _ => {}
        }
        let values = Self::values(&data, &mut ends, tiles)?;
        let rows = if self.way == Way::WritesLittle { n1 - 1 } else { n1 };
        Self::write(&data, &mut ends, &values, rows)?;
        assert!(budget.held_bytes() - held <= lease_bytes + (1 << 12));
        Ok(Answer::Done(()))
    }
}

struct Nowhere;

impl accelerator::InTiles for Nowhere {
    fn lease_bytes(&self) -> u64 {
        0
    }

    fn ends(&mut self, _: Tiles) -> Result<TileEnds<'_>> {
        panic!("nobody asks")
    }
}

/// A numerator over X, l_0 and so many columns, with rotations that go round.
fn numerator(columns: usize) -> Program<Fr> {
    let mut builder = Builder::new();
    let x = builder.query(0, 0);
    let x_next = builder.query(0, 2);
    let first = builder.query(1, 0);
    let last = builder.query(1, -3);
    let mut parts = vec![builder.mul(first, x), builder.sub(last, x_next)];
    for i in 0..columns {
        let rotation = [0, -1, 5, -9, 1][i % 5];
        let (a, b) = (
            builder.query(2 + i, 0),
            builder.query(2 + (i + 1) % columns, rotation),
        );
        let product = builder.mul(a, b);
        let square = builder.square(product);
        let sum = builder.sub(square, x);
        let scaled = builder.scale(sum, Fr::from(11u64 + i as u64));
        let shift = builder.constant(Fr::from(5u64));
        let shifted = builder.sub(shift, scaled);
        parts.push(builder.mul(shifted, last));
        parts.push(builder.neg(product));
        parts.push(builder.double(a));
    }
    let output = builder.fold(&parts, Fr::from(77u64));
    builder.finish(&[output])
}

fn domain(log_n: u32, log_cosets: u32) -> CosetDomain<Fr> {
    let extended_omega = Fr::get_root_of_unity(1 << (log_n + log_cosets)).unwrap();
    CosetDomain {
        log_n,
        omega: extended_omega.pow([1 << log_cosets]),
        log_cosets,
        extended_omega,
        shift: Fr::GENERATOR,
        pieces: (1 << log_cosets) - usize::from(log_cosets > 1),
    }
}

struct Case {
    columns: Vec<Vec<Fr>>,
    program: Program<Fr>,
    domain: CosetDomain<Fr>,
}

impl Case {
    fn new(log_n: u32, log_cosets: u32, columns: usize) -> Self {
        Self {
            columns: (0..columns as u64)
                .map(|seed| scalars(1 << log_n, seed))
                .collect(),
            program: numerator(columns),
            domain: domain(log_n, log_cosets),
        }
    }

    /// `tile_rows` 0: as the plan says.
    fn run(&self, workspace: &Workspace, tile_rows: u64) -> Result<Vec<Vec<Fr>>> {
        let columns = columns_on_disk(workspace, &self.columns);
        let mut sources = vec![Source::Identity, Source::FirstLagrange];
        sources.extend(columns.iter().map(Source::Coefficients));
        let held = workspace.budget.held_bytes();
        let pieces = match tile_rows {
            0 => quotient(workspace, &sources, &self.program, &self.domain)?,
            rows => quotient_in_tiles(workspace, &sources, &self.program, &self.domain, rows)?,
        };
        let values = pieces.iter().map(Column::to_vec).collect();
        drop(pieces);
        assert_eq!(workspace.budget.held_bytes(), held);
        values
    }

    fn with(&self, workspace: &Workspace, way: Way, tile_rows: u64) -> (Result<Vec<Vec<Fr>>>, u64) {
        let accelerator = Arc::new(Formulas {
            way,
            jobs: AtomicU64::new(0),
        });
        let workspace = workspace
            .clone()
            .with_accelerator(Arc::clone(&accelerator) as Arc<dyn Accelerator>);
        (
            self.run(&workspace, tile_rows),
            accelerator.jobs.load(Ordering::Relaxed),
        )
    }
}

#[test]
fn cosets_are_the_same_whoever_does_them() {
    for (log_n, log_cosets, columns, budget, tile_rows) in [
        (3, 2, 2, 4 << 20, 0),
        (5, 0, 1, 4 << 20, 0),
        (8, 1, 3, 64 << 20, 0),
        (9, 2, 4, 4 << 20, 0),
        (9, 1, 3, 4 << 20, 1),
        (10, 1, 2, 4 << 20, 3),
    ] {
        let place = place(budget);
        let case = Case::new(log_n, log_cosets, columns);
        let expected = case.run(&place.workspace, tile_rows).unwrap();
        for way in [
            Way::Does(0, 1),
            Way::Does(1, 1 << 20),
            Way::Does(9, 5),
            Way::Declines,
            Way::StopsInTheMiddle,
        ] {
            let (found, jobs) = case.with(&place.workspace, way, tile_rows);
            assert!(found.unwrap() == expected, "2^{log_n}, {way:?}");
            assert_eq!(jobs, 1 << log_cosets, "{way:?}");
        }
    }
}

#[test]
fn an_answer_that_cannot_be_is_refused() {
    let place = place(4 << 20);
    let case = Case::new(8, 1, 2);
    for way in [
        Way::SaysSo,
        Way::WritesLittle,
        Way::AsksNonsense,
        Way::ReadsOutOfOrder,
    ] {
        let refused = case.with(&place.workspace, way, 0).0.unwrap_err();
        let Error::Invalid(invalid) = &refused else {
            panic!("{way:?}: {refused}");
        };
        let is_told = match (way, invalid) {
            (Way::SaysSo, Invalid::Unwritten { written, len, .. }) => (*written, *len) == (0, 256),
            (Way::WritesLittle, Invalid::Unwritten { written, len, .. }) => (*written, *len) == (128, 256),
            (Way::AsksNonsense, Invalid::AcceleratorAnswer { .. }) => true,
            (Way::ReadsOutOfOrder, Invalid::AcceleratorElements { .. }) => true,
            _ => false,
        };
        assert!(is_told, "{way:?}: {refused}");
    }
}

/// In the smallest budget that the processor has a plan for, the accelerator's ends find room too.
#[test]
fn the_ends_take_less_than_the_processor() {
    let case = Case::new(10, 1, 3);
    let refused = place(100 << 10);
    let Err(Error::BudgetTooSmall { needed_bytes, .. }) = case.run(&refused.workspace, 0) else {
        panic!("2^10 within 100 KiB");
    };
    let smallest = place(needed_bytes);
    let expected = case.run(&smallest.workspace, 0).unwrap();
    let (found, _) = case.with(&smallest.workspace, Way::Does(2, 4), 0);
    assert!(found.unwrap() == expected);
}

/// What the disk refuses is the job's error, whoever asked for it.
#[test]
fn a_disk_that_fails_is_an_error_through_an_accelerator_too() {
    let case = Case::new(9, 1, 2);
    let dir = tempfile::tempdir().unwrap();
    let within = |budget_bytes: u64, faults: FaultPlan| {
        let storage = Storage::builder().dir(dir.path()).faults(faults).build()?;
        let workspace = Workspace::new(storage, Budget::new(budget_bytes));
        let columns = case.columns.iter().map(|values| {
            let mut writer =
                spillproof_engine::column::Writer::scratch(&workspace, "input", 1 << 9, Placement::Disk)?;
            writer.push(values)?;
            writer.finish()
        });
        let columns: Vec<Column<Fr>> = columns.collect::<Result<_>>()?;
        let mut sources = vec![Source::Identity, Source::FirstLagrange];
        sources.extend(columns.iter().map(Source::Coefficients));
        let workspace = workspace.clone().with_accelerator(Arc::new(Formulas {
            way: Way::Does(1, 2),
            jobs: AtomicU64::new(0),
        }));
        let pieces = quotient_in_tiles(&workspace, &sources, &case.program, &case.domain, 1)?;
        pieces.iter().map(Column::to_vec).collect::<Result<Vec<_>>>()
    };
    // In the smallest budget everything is on disk.
    let Err(Error::BudgetTooSmall { needed_bytes, .. }) = within(100 << 10, FaultPlan::none()) else {
        panic!("2^9 within 100 KiB");
    };
    let run = |faults| within(needed_bytes, faults);
    let plan = FaultPlan::none();
    let expected = run(plan.clone()).unwrap();
    let operations = plan.operations();
    assert!(operations > 40, "{operations}");
    let mut failed = 0;
    for index in (0..operations).step_by((operations / 40) as usize) {
        for fault in [Fault::Io, Fault::FlipByte(77)] {
            match run(FaultPlan::at(index, fault)) {
                Ok(found) => assert!(found == expected, "operation {index}"),
                Err(Error::Io { .. } | Error::File { .. } | Error::Damaged { .. }) => failed += 1,
                Err(other) => panic!("operation {index}: {other}"),
            }
        }
    }
    assert!(failed > 30, "{failed}");
}
