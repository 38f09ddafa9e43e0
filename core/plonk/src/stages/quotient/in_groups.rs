//! The quotient of few rows: constraints in groups, each over as many columns as are in memory whole.
//!
//! A column of up to 2^16 coefficients is taken to a coset in less time than its rows on the coset take to the disk and back. The
//! numerator is a sum over constraints, so it is cut into sums over groups of them ([`Constraints::parts`]), and nothing lies between
//! passes: a group's columns are read once; for each coset they are transformed, each by a thread, the group's program runs over all
//! rows, and what it gives is added to the coset's sum. Meanwhile the next group's columns are on their way. In the end the sums are
//! divided by the vanishing polynomial, go back to coefficients, and are put together to pieces, as in [`super`].
//!
//! Rows lie as in a tile of [`super::tile`] that has all rows of the matrix, so a rotation by r is r rows further, and behind the last
//! row come the first ones, rotated by one place.
//!
//! Memory, in bytes, with M cosets and groups of up to g columns that are read and e that are computed, with halos of h rows in all:
//!
//! ```text
//! groups:  32 n * (M + 1 + g) + 32 * n2 * (n1 * (g + e) + h) + frames of a group's columns + registers of all threads
//! pieces:  32 n * (M + 2), and what pieces keep
//! ```

use std::ops::Range;
use std::sync::Arc;

use super::WHAT;
use super::domain::{CosetDomain, Source};
use super::matrix::inverse;
use super::shape::{QuotientShape, SCALAR_BYTES, halo};
use super::tile::{Coset, NewRow};
use crate::stages::constraints::{Constraints, Parts};
use crate::stages::evaluate::register_scalars;
use crate::stages::program::Program;
use spillproof_engine::Result;
use spillproof_engine::accelerator::RowSource;
use spillproof_engine::budget::{LeasedVec, PAGE_BYTES};
use spillproof_engine::column::{Column, Draft, Element, Placement, Reader, Region, Workspace, Writer};
use spillproof_engine::dry::Work;
use spillproof_engine::stream::invert;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::ntt::{
    NttElement, RowTables, Twiddles, Twist, columns, each_row, forget_buffers, twist,
};
use spillproof_kernels::parallel::Parallel;
use spillproof_kernels::poly::powers;

/// log2 of the most rows: of more, a transform leaves a core's cache.
const LOG_ROWS_MAX: u32 = 16;
/// log2 of the values of a row of the matrix, where there are as many: each row is transformed side by side with others.
const LOG_ROW_MAX: u32 = 7;
/// This part of what is available stays free.
const RESERVED_SHARE: u64 = 16;
/// Columns that are in several groups, at most: this part of all.
const AGAIN_SHARE: usize = 4;
/// Values that one core adds at a time.
const ADDED_VALUES: usize = 4096;

fn pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE_BYTES as u64)
}

/// A column of a group, and where its rows lie in the group's values.
struct Window {
    /// The program's name for it.
    column: usize,
    source: RowSource,
    /// Rows before the first of the matrix.
    before: u64,
    /// Those, all of the matrix, and those behind its last.
    rows: u64,
}

/// Constraints, and the columns that they read.
struct Group<F> {
    parts: Parts<F>,
    /// Which of them it is.
    part: usize,
    /// Columns: those that are read first.
    windows: Vec<Window>,
    read: usize,
}

impl<F: KernelField> Group<F> {
    fn new(parts: &Parts<F>, part: usize, sources: &[Source<'_, F>], log_n1: u32) -> Self {
        let program = &parts[part];
        let window = |(column, source): (usize, &Source<'_, F>)| {
            let (first, last) = program.rotations(column)?;
            let around = (first.min(0), last.max(0));
            Some(Window {
                column,
                source: source.rows(),
                before: u64::from(around.0.unsigned_abs()),
                rows: (1 << log_n1) + halo(around),
            })
        };
        let windows = sources.iter().enumerate().filter_map(window);
        let (mut windows, computed): (Vec<_>, Vec<_>) =
            windows.partition(|window| window.source == RowSource::Read);
        let read = windows.len();
        windows.extend(computed);
        Self {
            parts: Arc::clone(parts),
            part,
            windows,
            read,
        }
    }

    fn program(&self) -> &Program<F> {
        &self.parts[self.part]
    }

    /// Rows of all its columns.
    fn rows(&self) -> u64 {
        self.windows.iter().map(|window| window.rows).sum()
    }

    /// The columns that are read.
    fn columns<'a>(&self, sources: &[Source<'a, F>]) -> impl Iterator<Item = &'a Column<F>> {
        let of = |window: &Window| match sources[window.column] {
            Source::Coefficients(column) => Some(column),
            Source::Identity | Source::FirstLagrange => None,
        };
        self.windows[..self.read].iter().filter_map(of)
    }
}

/// How a quotient is cut into groups.
pub(super) struct Groups<F> {
    groups: Vec<Group<F>>,
    log_n1: u32,
    log_n2: u32,
    /// Where the pieces are put.
    results: Placement,
}

impl<F: KernelField + NttElement<F> + Element> Groups<F> {
    /// The groups that fit `available` bytes, if few columns are in several of them, or there is no other way.
    pub fn choose(
        sources: &[Source<'_, F>],
        constraints: &Constraints<F>,
        (shape, domain): (&QuotientShape, &CosetDomain<F>),
        (available, results): (u64, Placement),
        is_only_way: bool,
    ) -> Option<Self> {
        if domain.log_n > LOG_ROWS_MAX || domain.pieces == 0 || constraints.is_empty() {
            return None;
        }
        let log_n2 = domain.log_n.min(LOG_ROW_MAX);
        let log_n1 = domain.log_n - log_n2;
        let roomy_bytes = available - available / RESERVED_SHARE;
        let column_bytes = SCALAR_BYTES << domain.log_n;
        let columns = shape.read.len();
        let is_read = |column: usize| matches!(sources[column], Source::Coefficients(_));
        let mut columns_max = columns.max(1);
        loop {
            // Coefficients, values, and frames on their way.
            if 3 * columns_max as u64 * column_bytes <= roomy_bytes {
                let parts = constraints.parts(columns_max, is_read)?;
                let group = |part| Group::new(&parts, part, sources, log_n1);
                let groups = Self {
                    groups: (0..parts.len()).map(group).collect(),
                    log_n1,
                    log_n2,
                    results,
                };
                let read: usize = groups.groups.iter().map(|group| group.read).sum();
                if AGAIN_SHARE * (read - columns) > columns && !is_only_way {
                    return None;
                }
                if groups.leased_bytes(sources, domain) <= roomy_bytes {
                    return Some(groups);
                }
            }
            if columns_max == 1 {
                return None;
            }
            columns_max -= columns_max.div_ceil(8);
        }
    }

    fn column_bytes(&self) -> u64 {
        pages(SCALAR_BYTES << (self.log_n1 + self.log_n2))
    }

    /// What is leased beside the cosets' sums while groups are computed.
    fn groups_bytes(&self, sources: &[Source<'_, F>]) -> u64 {
        let most = |of: fn(&Group<F>) -> u64| self.groups.iter().map(of).max().unwrap_or(0);
        let frames = |group: &Group<F>| {
            let bytes = |column: &Column<F>| pages(column.region_bytes(whole(column)));
            group.columns(sources).map(bytes).sum::<u64>()
        };
        let coefficients =
            pages(most(|group| group.read as u64) * (SCALAR_BYTES << (self.log_n1 + self.log_n2)));
        let values = pages(most(Group::rows) * (SCALAR_BYTES << self.log_n2));
        let frames = self.groups.iter().map(frames).max().unwrap_or(0);
        let registers = pages(self.registers().0 as u64 * SCALAR_BYTES);
        let powers = pages(SCALAR_BYTES << self.log_n2);
        coefficients + values + frames + registers + powers + self.column_bytes()
    }

    /// Registers of all threads, and of one, in scalars.
    fn registers(&self) -> (usize, usize) {
        let most = self.groups.iter().map(|group| group.program().registers()).max();
        register_scalars(most.unwrap_or(0), rayon::current_num_threads())
    }

    fn leased_bytes(&self, sources: &[Source<'_, F>], domain: &CosetDomain<F>) -> u64 {
        let sums = self.column_bytes() << domain.log_cosets;
        let pieces = match self.results {
            Placement::Memory => domain.pieces as u64,
            _ => 0,
        };
        sums + self.groups_bytes(sources).max((2 + pieces) * self.column_bytes())
    }

    /// The dry run of [`Self::run`].
    pub fn rehearse(
        &self,
        workspace: &Workspace,
        sources: &[Source<'_, F>],
        domain: &CosetDomain<F>,
    ) -> Result<Vec<Column<F>>> {
        let cosets = 1u64 << domain.log_cosets;
        let _sums = workspace.hold(cosets * self.column_bytes(), WHAT)?;
        {
            let _groups = workspace.hold(self.groups_bytes(sources), WHAT)?;
            for group in &self.groups {
                group.columns(sources).for_each(Column::count_read);
            }
        }
        let n = (1u64 << domain.log_n) as f64;
        let lines: usize = 1 + self.groups.iter().map(|group| group.read).sum::<usize>();
        let instructions: usize = self
            .groups
            .iter()
            .map(|group| group.program().instructions())
            .sum();
        let per_coset = Work {
            butterflies: lines as f64 * n * f64::from(domain.log_n) / 2.0,
            ..Work::products((instructions + 2 * lines) as f64 * n)
        };
        for coset in 0..cosets {
            workspace.passed(u64::from(coset == 0), per_coset);
        }
        let _piece = workspace.hold(self.column_bytes(), WHAT)?;
        let piece = |_| self.writer(workspace, domain)?.finish();
        (0..domain.pieces).map(piece).collect()
    }

    fn writer(&self, workspace: &Workspace, domain: &CosetDomain<F>) -> Result<Writer<F>> {
        let n = 1 << domain.log_n;
        Ok(Writer::in_chunks(
            Draft::scratch(workspace, WHAT, n, self.results)?,
            n,
        ))
    }

    /// The pieces.
    pub fn run(
        &self,
        workspace: &Workspace,
        sources: &[Source<'_, F>],
        domain: &CosetDomain<F>,
    ) -> Result<Vec<Column<F>>> {
        let n = 1usize << domain.log_n;
        let vec = |len: usize, what| workspace.budget.vec(len, F::ZERO, what);
        let sum = |_| vec(n, "quotient on a coset");
        let mut sums: Vec<LeasedVec<F>> = (0..1u64 << domain.log_cosets).map(sum).collect::<Result<_>>()?;
        let cosets = OnCosets::new(self, domain)?;
        {
            let most = |of: fn(&Group<F>) -> u64| self.groups.iter().map(of).max().unwrap_or(0) as usize;
            let (registers, part) = self.registers();
            let mut memory = Memory {
                coefficients: vec(
                    most(|group| group.read as u64) << domain.log_n,
                    "coefficients of a group",
                )?,
                values: vec(most(Group::rows) << self.log_n2, "rows on a coset")?,
                powers: vec(1 << self.log_n2, "powers of a root")?,
                result: vec(n, "quotient rows")?,
                registers: vec(registers, "program registers")?,
                part,
            };
            powers(&mut memory.powers, &F::ONE, &domain.omega.pow([1 << self.log_n1]));
            let mut coming = readers(self.groups.first(), sources)?;
            for (index, group) in self.groups.iter().enumerate() {
                let tiles = memory.coefficients.chunks_exact_mut(n);
                (coming.drain(..).zip(tiles).parallel())
                    .try_for_each(|(mut reader, tile)| reader.next_into(tile).map(drop))?;
                coming = readers(self.groups.get(index + 1), sources)?;
                for (sum, shift) in sums.iter_mut().zip(cosets.shifts()) {
                    cosets.evaluate(group, shift, &mut memory)?;
                    add(sum, &memory.result);
                }
            }
        }
        for (sum, shift) in sums.iter_mut().zip(cosets.shifts()) {
            cosets.back(sum, shift)?;
        }
        forget_buffers();
        self.pieces(workspace, domain, &sums)
    }

    /// The pieces, of what is left of the quotient modulo `X^n - c^n` for each coset's c.
    fn pieces(
        &self,
        workspace: &Workspace,
        domain: &CosetDomain<F>,
        remainders: &[LeasedVec<F>],
    ) -> Result<Vec<Column<F>>> {
        let factors = super::factors_of_pieces(domain)?;
        let mut piece = workspace.budget.vec(1 << domain.log_n, F::ZERO, WHAT)?;
        let made = factors.iter().map(|factors| {
            let parts = piece.chunks_mut(ADDED_VALUES).enumerate();
            parts.parallel().for_each(|(part, values)| {
                let from = part * ADDED_VALUES;
                values.fill(F::ZERO);
                for (remainder, factor) in remainders.iter().zip(factors) {
                    let remainder = &remainder[from..from + values.len()];
                    for (value, other) in values.iter_mut().zip(remainder) {
                        *value = value.plus(&other.times(factor));
                    }
                }
            });
            let mut writer = self.writer(workspace, domain)?;
            writer.push(&piece)?;
            writer.finish()
        });
        made.collect()
    }
}

/// All of a column.
fn whole<F: Element>(column: &Column<F>) -> Region {
    Region::Span {
        start: 0,
        len: column.len(),
    }
}

/// Readers of a group's columns, which are on their way.
fn readers<F: KernelField + Element>(
    group: Option<&Group<F>>,
    sources: &[Source<'_, F>],
) -> Result<Vec<Reader<F>>> {
    let columns = group.into_iter().flat_map(|group| group.columns(sources));
    columns
        .map(|column| column.reader(std::iter::once(whole(column)), 1))
        .collect()
}

fn add<F: KernelField>(sum: &mut [F], values: &[F]) {
    let parts = sum.chunks_mut(ADDED_VALUES).zip(values.chunks(ADDED_VALUES));
    parts.parallel().for_each(|(sum, values)| {
        for (sum, value) in sum.iter_mut().zip(values) {
            *sum = sum.plus(value);
        }
    });
}

/// What groups are computed in.
struct Memory<F: Copy> {
    coefficients: LeasedVec<F>,
    values: LeasedVec<F>,
    /// `omega^(n1 * k2)`.
    powers: LeasedVec<F>,
    result: LeasedVec<F>,
    registers: LeasedVec<F>,
    /// Scalars of one thread's registers.
    part: usize,
}

/// The tables of the transforms.
struct OnCosets<'a, F> {
    domain: &'a CosetDomain<F>,
    omega_inverse: F,
    /// n1 points, to the coset and back.
    down: [Twiddles<F>; 2],
    /// n2 points, the same.
    along: Twiddles<F>,
    along_back: RowTables<F>,
    n1: usize,
    n2: usize,
}

impl<'a, F: KernelField + NttElement<F> + Element> OnCosets<'a, F> {
    fn new(cut: &Groups<F>, domain: &'a CosetDomain<F>) -> Result<Self> {
        let omega_inverse = inverse(domain.omega)?;
        let (n1, n2) = (1u64 << cut.log_n1, 1u64 << cut.log_n2);
        Ok(Self {
            domain,
            omega_inverse,
            down: [
                Twiddles::new(cut.log_n1, domain.omega.pow([n2]))?,
                Twiddles::new(cut.log_n1, omega_inverse.pow([n2]))?,
            ],
            along: Twiddles::new(cut.log_n2, domain.omega.pow([n1]))?,
            along_back: RowTables::new(cut.log_n2, omega_inverse.pow([n1]), n1)?,
            n1: n1 as usize,
            n2: n2 as usize,
        })
    }

    fn n(&self) -> u64 {
        1 << self.domain.log_n
    }

    /// What each coset is shifted by.
    fn shifts(&self) -> impl Iterator<Item = F> + use<'_, 'a, F> {
        let cosets = 0..1u64 << self.domain.log_cosets;
        cosets.map(|t| self.domain.shift.times(&self.domain.extended_omega.pow([t])))
    }

    /// The sum of a group's terms in all rows of the coset of `shift`.
    fn evaluate(&self, group: &Group<F>, shift: F, memory: &mut Memory<F>) -> Result<()> {
        let (n1, n2) = (self.n1, self.n2);
        let vanishing = shift.pow([self.n()]).minus(&F::ONE);
        let coset = Coset {
            shift,
            omega: self.domain.omega,
            first_lagrange: vanishing.times(&inverse(F::from(self.n()))?),
            along: &self.along,
            powers: &memory.powers,
            rows: n1 as u64,
        };
        let mut rest = &mut memory.values[..];
        let windows = group.windows.iter().map(|window| {
            let (values, others) = std::mem::take(&mut rest).split_at_mut(window.rows as usize * n2);
            rest = others;
            (window, values)
        });
        let mut windows: Vec<(&Window, &mut [F])> = windows.collect();
        let (read, computed) = windows.split_at_mut(group.read);
        let columns = memory.coefficients.chunks_exact(n1 * n2);
        let columns = read.iter_mut().zip(columns);
        columns.parallel().for_each(|((window, values), coefficients)| {
            self.to_coset(coefficients, shift, window.before as usize, values);
        });
        let rows = computed.iter_mut().flat_map(|(window, values)| {
            let first = -(window.before as i64);
            let source = window.source;
            (values.chunks_exact_mut(n2).zip(first..)).map(move |(values, row)| NewRow {
                values,
                row,
                source,
            })
        });
        let rows: Vec<NewRow<'_, F>> = rows.collect();
        rows.into_iter().parallel().for_each(|row| row.compute(&coset));

        let inputs = group
            .program()
            .queries()
            .iter()
            .filter_map(|&(column, rotation)| {
                let (window, values) = windows.iter().find(|(window, _)| window.column == column)?;
                let first = (window.before as i64 + i64::from(rotation)) as usize * n2;
                Some(&values[first..first + n1 * n2])
            });
        let inputs: Vec<&[F]> = inputs.collect();
        let (result, registers) = (&mut memory.result[..], &mut memory.registers);
        group
            .program()
            .evaluate_parallel(&inputs, &mut [result], registers, memory.part);
        Ok(())
    }

    /// A column's rows on the coset of `shift`, `before` of them before the first of the matrix.
    fn to_coset(&self, coefficients: &[F], shift: F, before: usize, rows: &mut [F]) {
        let (n1, n2) = (self.n1, self.n2);
        let matrix: Range<usize> = before * n2..(before + n1) * n2;
        let panel = &mut rows[matrix.clone()];
        panel.copy_from_slice(coefficients);
        let factors = Twist {
            root: self.domain.omega,
            first_row: 0,
            first_column: 0,
            scale: F::ONE,
            base: shift,
            row: F::ONE,
        };
        columns(panel, n2, &self.down[0], &shift.pow([n2 as u64]), Some(&factors));
        each_row(panel.chunks_exact_mut(n2).collect(), &self.along);
        let around = (0..before).chain(before + n1..rows.len() / n2);
        for at in around {
            let row = at as i64 - before as i64;
            let from = before + row.rem_euclid(n1 as i64) as usize;
            rows.copy_within(from * n2..(from + 1) * n2, at * n2);
            let places = row.div_euclid(n1 as i64).rem_euclid(n2 as i64) as usize;
            rows[at * n2..(at + 1) * n2].rotate_left(places);
        }
    }

    /// A coset's sum, divided by the vanishing polynomial, as coefficients.
    fn back(&self, sum: &mut [F], shift: F) -> Result<()> {
        let vanishing = shift.pow([self.n()]).minus(&F::ONE);
        let n_inverse = inverse(F::from(self.n()))?;
        let back = inverse(shift)?;
        self.along_back.transform(sum);
        let along = Twist {
            root: self.omega_inverse,
            first_row: 0,
            first_column: 0,
            scale: invert("the vanishing polynomial on a coset", vanishing)?.times(&n_inverse),
            base: back,
            row: F::ONE,
        };
        twist(sum, self.n2, &along);
        let down = Twist {
            root: F::ONE,
            scale: F::ONE,
            base: F::ONE,
            row: back.pow([self.n2 as u64]),
            ..along
        };
        columns(sum, self.n2, &self.down[1], &F::ONE, Some(&down));
        Ok(())
    }
}
