//! An accelerator made of arkworks' arithmetic: sums by its MSM, transforms by the plain recursion, quotients
//! by the formulas of [`accelerator::Coset`], in memory. Any job can be done wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ark_bn254::{g1, Fr as Scalar, G1Affine as Point, G1Projective};
use ark_ec::{AffineRepr, VariableBaseMSM};
use ark_ff::{AdditiveGroup, Field};
use halo2_axiom::spillproof::accelerator::{
    self, Accelerator, Answer, Coset, ReadElements, RowSource, Tiles,
};
use spillproof_commit::G1;
use spillproof_engine::budget::Budget;
use spillproof_engine::column::Element;
use spillproof_kernels::vector::{Operand, Operation, Target};

/// No job.
const NEVER: u64 = u64::MAX;

/// Does every job with arkworks, and one of them wrong.
#[derive(Debug)]
pub struct Arkworks {
    jobs: AtomicU64,
    lies_at: AtomicU64,
    quotients: Mutex<Quotients>,
}

/// How many cosets there were, and in how many tiles.
#[derive(Clone, Debug, Default)]
pub struct Quotients {
    pub count: usize,
    pub tiles: BTreeSet<u64>,
}

impl Arkworks {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            jobs: AtomicU64::new(0),
            lies_at: AtomicU64::new(NEVER),
            quotients: Mutex::default(),
        })
    }

    pub fn jobs(&self) -> u64 {
        self.jobs.load(Ordering::SeqCst)
    }

    pub fn quotients(&self) -> Quotients {
        self.quotients.lock().unwrap().clone()
    }

    /// The job after so many others will be done wrong.
    pub fn lie_after(&self, others: u64) {
        self.lies_at.store(self.jobs() + others, Ordering::SeqCst);
    }

    pub fn lie_no_more(&self) {
        self.lies_at.store(NEVER, Ordering::SeqCst);
    }

    /// Whether the job that begins is to be done wrong.
    fn lies_now(&self) -> bool {
        self.jobs.fetch_add(1, Ordering::SeqCst) == self.lies_at.load(Ordering::SeqCst)
    }

    /// Tiles of 1, 2, 4 and so on rows to all of them, one coset after the other, in chunks that end with
    /// tiles, in their midst or beyond.
    fn next_tiles(&self, job: &Coset<'_>) -> Tiles {
        let mut quotients = self.quotients.lock().unwrap();
        let log_tile_rows = quotients.count as u32 % (job.log_rows + 1);
        quotients.count += 1;
        quotients.tiles.insert(1 << (job.log_rows - log_tile_rows));
        Tiles {
            log_tile_rows,
            chunk_rows: [3, 1, 1 << job.log_rows][quotients.count % 3],
        }
    }
}

fn decoded<E: Element>(bytes: &[u8]) -> Vec<E> {
    bytes.chunks_exact(E::BYTES).map(E::decode).collect()
}

fn read<E: Element>(
    from: &mut dyn ReadElements,
    first: u64,
    count: usize,
) -> spillproof_engine::Result<Vec<E>> {
    let mut bytes = vec![0; count * E::BYTES];
    from.read(first, &mut bytes)?;
    Ok(decoded(&bytes))
}

fn encoded(values: &[Scalar]) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * Scalar::BYTES];
    for (value, out) in values.iter().zip(bytes.chunks_exact_mut(Scalar::BYTES)) {
        value.encode(out);
    }
    bytes
}

/// The plain recursion: even and odd places.
fn transformed(values: &[Scalar], omega: Scalar) -> Vec<Scalar> {
    if values.len() == 1 {
        return values.to_vec();
    }
    let half = values.len() / 2;
    let part = |parity: usize| {
        let part: Vec<_> = values.iter().skip(parity).step_by(2).copied().collect();
        transformed(&part, omega.square())
    };
    let (even, odd) = (part(0), part(1));
    let mut power = Scalar::ONE;
    let mut out = vec![Scalar::default(); values.len()];
    for (i, (even, odd)) in even.into_iter().zip(odd).enumerate() {
        out[i] = even + power * odd;
        out[i + half] = even - power * odd;
        power *= omega;
    }
    out
}

fn times_powers(values: &mut [Scalar], first: Scalar, factor: Scalar) {
    let mut power = first;
    for value in values {
        *value *= power;
        power *= factor;
    }
}

/// A program at one point, of which `query` says what each query is.
fn evaluated(program: &accelerator::Program<'_>, query: impl Fn(usize) -> Scalar) -> Scalar {
    let mut registers = vec![Scalar::ZERO; program.registers];
    let mut output = None;
    for instruction in program.instructions {
        let get = |operand| match operand {
            Operand::Input(number) => query(number),
            Operand::Register(number) => registers[number],
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
            Operation::Shifted(a, summand) => get(a) + summand,
            Operation::Reflected(a, from) => from - get(a),
            Operation::Copy(a) => get(a),
            Operation::Constant(value) => value,
        };
        match instruction.to {
            Target::Register(number) => registers[number] = value,
            Target::Output(_) => output = Some(value),
        }
    }
    output.unwrap()
}

/// The numbers of a coset, apart from where its rows come from and go to.
struct Matrix<'a> {
    log_rows: u32,
    rows: i64,
    row_len: usize,
    omega: Scalar,
    shift: Scalar,
    scale: Scalar,
    program: accelerator::Program<'a>,
    /// Of each query of the program: where its rows are had, which of the inputs that are read it is, and its
    /// rotation.
    queries: Vec<(RowSource, usize, i64)>,
}

/// Values of rows that came, by input and row.
type Values = BTreeMap<(usize, i64), Vec<Scalar>>;

impl<'a> Matrix<'a> {
    fn new(job: &Coset<'a>) -> Self {
        let queries = job.program.queries.iter().map(|&(column, rotation)| {
            let at = job.inputs.iter().position(|input| input.column == column);
            let at = at.unwrap();
            let before = job.inputs[..at].iter();
            let read_before = before.filter(|input| input.rows == RowSource::Read).count();
            (job.inputs[at].rows, read_before, i64::from(rotation))
        });
        Self {
            log_rows: job.log_rows,
            rows: 1 << job.log_rows,
            row_len: 1 << job.log_columns,
            omega: job.omega,
            shift: job.shift,
            scale: job.scale,
            program: job.program,
            queries: queries.collect(),
        }
    }

    /// n1-th power of w.
    fn root(&self) -> Scalar {
        self.omega.pow([self.rows as u64])
    }

    /// Values of a row, which may be one of those that going round the matrix reaches.
    fn values(&self, row: i64, elements: &[Scalar]) -> Vec<Scalar> {
        let mut values = transformed(elements, self.root());
        let rounds = row >> self.log_rows;
        values.rotate_left(rounds.rem_euclid(self.row_len as i64) as usize);
        values
    }

    fn query(&self, number: usize, values: &Values, row: i64, point: usize) -> Scalar {
        let (rows, input, rotation) = self.queries[number];
        let row = row + rotation;
        let n = self.rows * self.row_len as i64;
        let x = || {
            let exponent = row + self.rows * point as i64;
            self.shift * self.omega.pow([exponent.rem_euclid(n) as u64])
        };
        match rows {
            RowSource::Read => values[&(input, row)][point],
            RowSource::Identity => x(),
            RowSource::FirstLagrange => {
                let n = n as u64;
                (self.shift.pow([n]) - Scalar::ONE) / (Scalar::from(n) * (x() - Scalar::ONE))
            }
        }
    }

    /// A row of the quotient.
    fn quotient(&self, values: &Values, row: i64) -> Vec<Scalar> {
        let at_point = |point| evaluated(&self.program, |number| self.query(number, values, row, point));
        let numerator: Vec<Scalar> = (0..self.row_len).map(at_point).collect();
        let mut quotient = transformed(&numerator, self.root().inverse().unwrap());
        let factor = (self.shift * self.omega.pow([row as u64])).inverse().unwrap();
        times_powers(&mut quotient, self.scale, factor);
        quotient
    }
}

impl Accelerator for Arkworks {
    fn sums(
        &self,
        job: &mut accelerator::Sums<'_>,
        _: &Budget,
    ) -> spillproof_engine::Result<Answer<accelerator::Totals>> {
        let mut sums = Vec::new();
        for scalars in &mut job.scalars {
            let len = scalars.len as usize;
            let values: Vec<Scalar> = read(&mut *scalars.source, 0, len)?;
            let points: Vec<G1> = read(&mut *job.bases.g1[0].source, 0, len)?;
            let points: Vec<Point> = points.iter().map(G1::to_affine::<g1::Config>).collect();
            sums.push(G1Projective::msm(&points, &values).unwrap());
        }
        if self.lies_now() {
            sums[0] += Point::generator();
        }
        Ok(Answer::Done(accelerator::Totals {
            g1: sums,
            g2: Vec::new(),
        }))
    }

    fn transform(
        &self,
        job: &mut accelerator::Transform<'_>,
        _: &Budget,
    ) -> spillproof_engine::Result<Answer<()>> {
        let mut values: Vec<Scalar> = read(&mut *job.input, 0, 1 << job.log_n)?;
        times_powers(&mut values, Scalar::ONE, job.before);
        let mut values = transformed(&values, job.omega);
        times_powers(&mut values, job.scale, job.after);
        if self.lies_now() {
            values[1] += Scalar::ONE;
        }
        job.output.write(0, &encoded(&values))?;
        Ok(Answer::Done(()))
    }

    /// Tile by tile: a tile's rows are written as soon as all that it reaches has come.
    fn quotient(&self, job: &mut Coset<'_>, _: &Budget) -> spillproof_engine::Result<Answer<()>> {
        let tiles = self.next_tiles(job);
        let (matrix, order) = (Matrix::new(job), job.order(tiles.log_tile_rows));
        let row_len = matrix.row_len;
        let mut wrong = self.lies_now().then_some(Scalar::ONE);
        let mut ends = job.in_tiles.ends(tiles)?;
        let mut values = Values::new();
        let (mut rows_read, mut tiles_written) = (0, 0);
        loop {
            let whole_tiles = order.run_at(rows_read).map_or(order.tiles(), |run| run.tile);
            for row in tiles_written << tiles.log_tile_rows..whole_tiles << tiles.log_tile_rows {
                let mut quotient = matrix.quotient(&values, row as i64);
                quotient[0] += wrong.take().unwrap_or_default();
                ends.output.write(row * row_len as u64, &encoded(&quotient))?;
            }
            tiles_written = whole_tiles;
            let rows = tiles.chunk_rows.min(order.total_rows() - rows_read);
            if rows == 0 {
                return Ok(Answer::Done(()));
            }
            let chunk: Vec<Scalar> = read(
                &mut *ends.input,
                rows_read * row_len as u64,
                rows as usize * row_len,
            )?;
            for (at, elements) in (rows_read..).zip(chunk.chunks_exact(row_len)) {
                let run = order.run_at(at).unwrap();
                let row = run.first_row + (at - run.before) as i64;
                values.insert((run.input, row), matrix.values(row, elements));
            }
            rows_read += rows;
        }
    }
}
