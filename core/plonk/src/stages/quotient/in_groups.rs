//! The quotient of few rows: constraints in groups, each over as many columns as are in memory whole.
//!
//! Where the columns on a coset do not fit the memory, their rows go to the disk and back, which takes longer than to transform short
//! columns (`docs/measurements/two-cores-short-wide.txt`). The numerator is a sum over constraints, so it is cut into sums over groups of them ([`Constraints::parts`]), and nothing lies between
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

use super::WHAT;
use super::domain::{CosetDomain, Source, inverse};
use super::matrix::Tables;
use super::shape::{QuotientShape, SCALAR_BYTES, halo};
use super::tile::{Coset, NewRow};
use crate::stages::constraints::{Constraints, Parts};
use crate::stages::evaluate::register_scalars;
use crate::stages::program::Program;
use crate::stages::short::whole;
use crate::stages::windows::pages;
use spillproof_engine::Result;
use spillproof_engine::accelerator::RowSource;
use spillproof_engine::budget::LeasedVec;
use spillproof_engine::column::{Column, Draft, Element, Placement, Reader, Workspace, Writer};
use spillproof_engine::dry::Work;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::ntt::{NttElement, columns, each_row, forget_buffers, twist};
use spillproof_kernels::parallel::Parallel;
use spillproof_kernels::poly::{add_scaled, linear_combination, powers};

/// log2 of the most rows: a column of more is larger than a core's cache.
const LOG_ROWS_MAX: u32 = 16;
/// log2 of the values of a row of the matrix, where there are as many: each row is transformed side by side with others.
const LOG_ROW_MAX: u32 = 7;
/// This part of what is available stays free.
const RESERVED_SHARE: u64 = 16;
/// Columns that are in several groups, at most: this part of all.
const AGAIN_SHARE: usize = 4;

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

/// The columns of a group. Columns that come from storage stand before columns that are computed.
struct Group {
    windows: Vec<Window>,
    /// How many come from storage.
    read: usize,
}

impl Group {
    fn new<F: KernelField>(program: &Program<F>, sources: &[Source<'_, F>], log_n1: u32) -> Self {
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
        Self { windows, read }
    }

    /// Rows of all its columns.
    fn rows(&self) -> u64 {
        self.windows.iter().map(|window| window.rows).sum()
    }

    /// The columns that are read.
    fn columns<'a, F>(&self, sources: &[Source<'a, F>]) -> impl Iterator<Item = &'a Column<F>> {
        let of = |window: &Window| match sources[window.column] {
            Source::Coefficients(column) => Some(column),
            Source::Identity | Source::FirstLagrange => None,
        };
        self.windows[..self.read].iter().filter_map(of)
    }
}

/// How a quotient is cut into groups.
pub(super) struct Groups<F> {
    /// The terms of each group.
    programs: Parts<F>,
    groups: Vec<Group>,
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
                let programs = constraints.parts(columns_max, is_read)?;
                let group = |program| Group::new(program, sources, log_n1);
                let groups = Self {
                    groups: programs.iter().map(group).collect(),
                    programs,
                    log_n1,
                    log_n2,
                    results,
                };
                let read: usize = groups.groups.iter().map(|group| group.read).sum();
                if AGAIN_SHARE * read.saturating_sub(columns) > columns && !is_only_way {
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

    /// The most that one of the groups has.
    fn most(&self, of: impl Fn(&Group) -> u64) -> u64 {
        self.groups.iter().map(of).max().unwrap_or(0)
    }

    /// What is leased beside the cosets' sums while groups are computed.
    fn groups_bytes(&self, sources: &[Source<'_, F>]) -> u64 {
        let log_n = self.log_n1 + self.log_n2;
        let frames = |group: &Group| {
            let bytes = |column: &Column<F>| pages(column.region_bytes(whole(column)));
            group.columns(sources).map(bytes).sum::<u64>()
        };
        let coefficients = pages(self.most(|group| group.read as u64) * (SCALAR_BYTES << log_n));
        let values = pages(self.most(Group::rows) * (SCALAR_BYTES << self.log_n2));
        let registers = pages(self.registers().0 as u64 * SCALAR_BYTES);
        let powers = pages(SCALAR_BYTES << self.log_n2);
        coefficients + values + self.most(frames) + registers + powers + self.column_bytes()
    }

    /// Registers of all threads, and of one, in scalars.
    fn registers(&self) -> (usize, usize) {
        let most = self.programs.iter().map(Program::registers).max();
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
        let cosets = domain.cosets();
        let _sums = workspace.hold(cosets * self.column_bytes(), WHAT)?;
        {
            let _groups = workspace.hold(self.groups_bytes(sources), WHAT)?;
            for group in &self.groups {
                group.columns(sources).for_each(Column::count_read);
            }
        }
        let n = domain.rows() as f64;
        let lines = 1 + self.groups.iter().map(|group| group.read).sum::<usize>();
        let instructions: usize = self.programs.iter().map(Program::instructions).sum();
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
        let n = domain.rows();
        let draft = Draft::scratch(workspace, WHAT, n, self.results)?;
        Ok(Writer::in_chunks(draft, n))
    }

    /// The pieces.
    pub fn run(
        &self,
        workspace: &Workspace,
        sources: &[Source<'_, F>],
        domain: &CosetDomain<F>,
    ) -> Result<Vec<Column<F>>> {
        let n = domain.rows() as usize;
        let vec = |len: usize, what| workspace.budget.vec(len, F::ZERO, what);
        let sum = |_| vec(n, "quotient on a coset");
        let mut sums: Vec<LeasedVec<F>> = (0..domain.cosets()).map(sum).collect::<Result<_>>()?;
        let cosets = OnCosets::new(self, domain)?;
        {
            let (registers, part) = self.registers();
            let coefficients = self.most(|group| group.read as u64) as usize * n;
            let mut memory = Memory {
                coefficients: vec(coefficients, "coefficients of a group")?,
                values: vec(
                    (self.most(Group::rows) as usize) << self.log_n2,
                    "rows on a coset",
                )?,
                powers: vec(1 << self.log_n2, "powers of a root")?,
                result: vec(n, "quotient rows")?,
                registers: vec(registers, "program registers")?,
                part,
            };
            powers(&mut memory.powers, &F::ONE, &domain.omega.pow([1 << self.log_n1]));
            let mut coming = readers(self.groups.first(), sources)?;
            for (index, (group, program)) in self.groups.iter().zip(&*self.programs).enumerate() {
                let tiles = memory.coefficients.chunks_exact_mut(n);
                (coming.drain(..).zip(tiles).parallel())
                    .try_for_each(|(mut reader, tile)| reader.next_into(tile).map(drop))?;
                coming = readers(self.groups.get(index + 1), sources)?;
                for (sum, shift) in sums.iter_mut().zip(cosets.shifts()) {
                    cosets.evaluate((group, program), shift, &mut memory)?;
                    add_scaled(sum, &F::ONE, &memory.result);
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
        let mut piece = workspace.budget.vec(domain.rows() as usize, F::ZERO, WHAT)?;
        let made = factors.iter().map(|factors| {
            let remainders = remainders.iter().map(|remainder| &remainder[..]);
            let terms: Vec<(F, &[F])> = factors.iter().copied().zip(remainders).collect();
            linear_combination(&mut piece, &terms);
            let mut writer = self.writer(workspace, domain)?;
            writer.push(&piece)?;
            writer.finish()
        });
        made.collect()
    }
}

/// Readers of a group's columns, which are on their way.
fn readers<F: KernelField + Element>(
    group: Option<&Group>,
    sources: &[Source<'_, F>],
) -> Result<Vec<Reader<F>>> {
    let columns = group.into_iter().flat_map(|group| group.columns(sources));
    columns
        .map(|column| column.reader(std::iter::once(whole(column)), 1))
        .collect()
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

/// The way to the cosets and back.
struct OnCosets<'a, F> {
    domain: &'a CosetDomain<F>,
    tables: Tables<F>,
    n1: usize,
    n2: usize,
}

impl<'a, F: KernelField + NttElement<F> + Element> OnCosets<'a, F> {
    fn new(cut: &Groups<F>, domain: &'a CosetDomain<F>) -> Result<Self> {
        let n1 = 1 << cut.log_n1;
        Ok(Self {
            domain,
            tables: Tables::new((cut.log_n1, cut.log_n2), n1, domain.omega)?,
            n1: n1 as usize,
            n2: 1 << cut.log_n2,
        })
    }

    /// What each coset is shifted by.
    fn shifts(&self) -> impl Iterator<Item = F> + use<'_, 'a, F> {
        (0..self.domain.cosets()).map(|coset| self.domain.shift_of(coset))
    }

    /// The sum of a group's terms in all rows of the coset of `shift`.
    fn evaluate(
        &self,
        (group, program): (&Group, &Program<F>),
        shift: F,
        memory: &mut Memory<F>,
    ) -> Result<()> {
        let (n1, n2) = (self.n1, self.n2);
        let tables = (&self.tables.along, &memory.powers[..]);
        let coset = Coset::new(self.domain, shift, n1 as u64, tables)?;
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

        let inputs = program.queries().iter().filter_map(|&(column, rotation)| {
            let (window, values) = windows.iter().find(|(window, _)| window.column == column)?;
            let first = (window.before as i64 + i64::from(rotation)) as usize * n2;
            Some(&values[first..first + n1 * n2])
        });
        let inputs: Vec<&[F]> = inputs.collect();
        let (result, registers) = (&mut memory.result[..], &mut memory.registers);
        program.evaluate_parallel(&inputs, &mut [result], registers, memory.part);
        Ok(())
    }

    /// A column's rows on the coset of `shift`, `before` of them before the first of the matrix.
    fn to_coset(&self, coefficients: &[F], shift: F, before: usize, rows: &mut [F]) {
        let (n1, n2) = (self.n1, self.n2);
        let panel = &mut rows[before * n2..(before + n1) * n2];
        panel.copy_from_slice(coefficients);
        let leg = self.tables.to_coset(&shift);
        columns(panel, n2, &self.tables.down[0], &leg.before, Some(&leg.twist));
        each_row(panel.chunks_exact_mut(n2).collect(), &self.tables.along);
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
        let back = inverse(shift)?;
        self.tables.along_back.transform(sum);
        let factors = self.tables.twist_back(back, 0, self.domain.scale(shift)?);
        twist(sum, self.n2, &factors);
        let leg = self.tables.to_coefficients(back);
        columns(sum, self.n2, &self.tables.down[1], &leg.before, Some(&leg.twist));
        Ok(())
    }
}
