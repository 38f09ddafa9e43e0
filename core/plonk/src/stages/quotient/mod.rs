//! The quotient polynomial: a numerator, evaluated on cosets, divided by the vanishing polynomial.
//!
//! The quotient h has degree below M n, M = 2^`log_cosets`, and is known by its values on the M cosets
//! `c_t * <omega>`, `c_t = shift * extended_omega^t`, which together are halo2's extended domain. One coset
//! at a time, but for the first step, which is taken for as many at a time as the plan says:
//!
//! 1. Each column of coefficients is read, and goes to the coset by a four-step transform, up to the n2-point
//!    transforms of its rows (`coset`), into a scratch column whose rows are contiguous. Several panels are
//!    on their way at a time (`lanes`).
//! 2. Tile by tile of rows: each column's rows and their halo are read and transformed (`tile`; a rotation by
//!    r is r rows further), the program runs over them, vector by vector, and the quotient's rows are
//!    transformed back and written. The numerator is divided by `c_t^n - 1`, a constant, on the way. Several
//!    stretches of rows are walked along at a time (`walk`). No coset of any column is ever written whole in
//!    evaluated form. This step is offered to an accelerator, coset by coset (`offload`).
//! 3. Columns of the quotient's rows go back to coefficients: `g_t = h mod (X^n - c_t^n)`, of degree below n.
//!
//! With h in pieces of n coefficients, `g_t` is the sum of `c_t^(s n) h_s` over s; `c_t^n = shift^n w^t` with
//! w of order M, so `h_s = shift^(-s n) / M * sum of w^(-s t) g_t` over t: one streaming pass gives the
//! pieces.
//!
//! What comes out is, coefficient by coefficient, what an extended transform gives. All sums are exact, so
//! tile heights and panels don't matter. Memory, reads and writes: [`QuotientPlan`].

mod coset;
mod domain;
mod in_groups;
mod lanes;
mod matrix;
mod offload;
mod plan;
mod shape;
mod tile;
mod walk;

pub use domain::{CosetDomain, Source};
pub use plan::QuotientPlan;
pub use shape::QuotientShape;

use self::domain::inverse;
use self::in_groups::Groups;
use self::matrix::Matrix;
use self::offload::Inputs;
use self::tile::Coset;
use self::walk::{Input, Walks};
use super::constraints::Constraints;
use super::program::Program;
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Draft, Element, Workspace};
use spillproof_engine::error::Invalid;
use spillproof_engine::stream::linear_combinations_in_chunks;
use spillproof_kernels::error::RootOfUnityError;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::ntt::{NttElement, forget_buffers};
use spillproof_kernels::poly::powers;

/// The quotient of `numerator` (a program with one output, whose column i stands for `sources[i]`) by
/// `X^n - 1`, in pieces of n coefficients, lowest first. The best cut that the budget has room for is taken.
///
/// # Errors
/// [`Error::Invalid`] for a program, columns or a domain that do not fit together; [`Error::BudgetTooSmall`]
/// before anything is read, with the smallest budget that works; [`Error::Io`], [`Error::Damaged`].
pub fn quotient<F: KernelField + NttElement<F> + Element>(
    workspace: &Workspace,
    sources: &[Source<'_, F>],
    numerator: &Program<F>,
    domain: &CosetDomain<F>,
) -> Result<Vec<Column<F>>> {
    workspace.run(|| planned(workspace, sources, (numerator, None), domain, None))
}

/// As [`quotient`], of the program of `constraints`. Of few rows, the constraints are taken in groups (`in_groups`), where there is room and there is no accelerator that could take the cosets.
///
/// # Errors
/// As [`quotient`].
pub fn quotient_of_constraints<F: KernelField + NttElement<F> + Element>(
    workspace: &Workspace,
    sources: &[Source<'_, F>],
    (constraints, program): (&Constraints<F>, &Program<F>),
    domain: &CosetDomain<F>,
) -> Result<Vec<Column<F>>> {
    workspace.run(|| planned(workspace, sources, (program, Some(constraints)), domain, None))
}

/// As [`quotient`], with tiles of `tile_rows` rows of the matrix (all of them, if that is more), however much
/// memory there is.
///
/// # Errors
/// As [`quotient`]; [`Error::Invalid`] for tiles of no row.
pub fn quotient_in_tiles<F: KernelField + NttElement<F> + Element>(
    workspace: &Workspace,
    sources: &[Source<'_, F>],
    numerator: &Program<F>,
    domain: &CosetDomain<F>,
    tile_rows: u64,
) -> Result<Vec<Column<F>>> {
    if tile_rows == 0 {
        return Err(Invalid::Empty {
            what: "rows of a tile",
        }
        .into());
    }
    workspace.run(|| planned(workspace, sources, (numerator, None), domain, Some(tile_rows)))
}

fn planned<F: KernelField + NttElement<F> + Element>(
    workspace: &Workspace,
    sources: &[Source<'_, F>],
    (numerator, constraints): (&Program<F>, Option<&Constraints<F>>),
    domain: &CosetDomain<F>,
    tile_rows: Option<u64>,
) -> Result<Vec<Column<F>>> {
    check(sources, numerator, domain)?;
    let shape = QuotientShape::new(sources, numerator, domain);
    let (available, held) = (workspace.budget.available_bytes(), workspace.budget.held_bytes());
    let results = shape.results_in(&workspace.budget);
    // A dry run has no disk.
    let free_disk = workspace.storage.free_bytes().unwrap_or(u64::MAX);
    let plan = QuotientPlan::choose(&shape, available, free_disk, results, tile_rows);
    let groups = constraints.and_then(|constraints| {
        Groups::choose(
            sources,
            constraints,
            (&shape, domain),
            (available, results),
            plan.is_err(),
        )
    });
    if let Some(groups) = groups {
        // An accelerator is offered cosets.
        if workspace.accelerator.is_none() || plan.is_err() {
            return match workspace.is_dry() {
                true => groups.rehearse(workspace, sources, domain),
                false => groups.run(workspace, sources, domain),
            };
        }
    }
    let plan = plan.map_err(|needed| Error::BudgetTooSmall {
        what: format!(
            "the quotient of {} columns of 2^{} beside {held} bytes held",
            shape.read.len(),
            shape.log_n
        ),
        needed_bytes: needed + held,
        limit_bytes: workspace.budget.limit_bytes(),
    })?;
    tracing::debug!(?plan, leased_bytes = plan.leased_bytes(), "quotient");
    if workspace.is_dry() {
        return rehearse(workspace, numerator, &plan);
    }
    let quotient = Quotient {
        matrix: Matrix::new(workspace, &plan, domain.omega)?,
        sources,
        numerator,
        domain,
    };
    let pieces = quotient.run();
    forget_buffers();
    pieces
}

/// The dry run of a quotient that is cut like this.
fn rehearse<F: KernelField + Element>(
    workspace: &Workspace,
    numerator: &Program<F>,
    plan: &QuotientPlan,
) -> Result<Vec<Column<F>>> {
    if let Some(dry_run) = workspace.dry_run() {
        for _ in 0..1u64 << plan.log_cosets() {
            dry_run.offered(plan.offered_coset(), plan.held_on_coset_bytes());
        }
        let _held = workspace.hold(plan.leased_bytes(), WHAT)?;
        dry_run.moved(plan.bytes_read(), plan.bytes_written());
        dry_run.disk_taken(plan.disk_bytes());
        dry_run.disk_freed(plan.disk_bytes());
        workspace.passed(plan.passes(), plan.work(numerator.instructions()));
    }
    let piece = |_| {
        let (n, frame_bytes) = (1 << plan.log_n(), plan.result_frame_bytes() as usize);
        let draft = Draft::scratch_with_frames(workspace, WHAT, n, plan.results, frame_bytes)?;
        // The plan counts it as written.
        draft.finish_unwritten()
    };
    (0..plan.pieces()).map(piece).collect()
}

const WHAT: &str = "quotient";

fn check<F: KernelField + Element>(
    sources: &[Source<'_, F>],
    numerator: &Program<F>,
    domain: &CosetDomain<F>,
) -> Result<()> {
    let CosetDomain {
        log_n, log_cosets, ..
    } = *domain;
    if numerator.outputs() != 1 {
        return Err(Invalid::Length {
            what: "outputs of a numerator".into(),
            given: numerator.outputs() as u64,
            expected: 1,
        }
        .into());
    }
    Invalid::unless_at_most(
        "columns that a numerator reads",
        numerator.columns() as u64,
        sources.len() as u64,
    )?;
    if log_n > 40 || log_cosets > 16 || domain.pieces > 1 << log_cosets {
        return Err(Invalid::QuotientShape {
            pieces: domain.pieces,
            log_n,
            log_cosets,
        }
        .into());
    }
    for (index, source) in sources.iter().enumerate() {
        if let Source::Coefficients(column) = source
            && numerator.rotations(index).is_some()
            && column.len() != 1 << log_n
        {
            return Err(Invalid::Length {
                what: format!("coefficients of column {index}"),
                given: column.len(),
                expected: 1 << log_n,
            }
            .into());
        }
    }
    let primitive = match log_n {
        0 => domain.omega.is_one(),
        _ => domain.omega.pow([1 << (log_n - 1)]) == F::ONE.negated(),
    };
    if !primitive {
        let omega = domain.omega.to_string();
        return Err(RootOfUnityError { omega, log_n }.into());
    }
    if domain.extended_omega.pow([1 << log_cosets]) != domain.omega {
        let extended_omega = domain.extended_omega.to_string();
        return Err(Invalid::ExtendedRoot {
            extended_omega,
            log_cosets,
        }
        .into());
    }
    Ok(())
}

/// For each piece the factors of the remainders of all cosets.
fn factors_of_pieces<F: KernelField>(domain: &CosetDomain<F>) -> Result<Vec<Vec<F>>> {
    let (n, cosets) = (domain.rows(), domain.cosets());
    let shift_inverse = inverse(domain.shift)?.pow([n]);
    let root_inverse = inverse(domain.extended_omega)?.pow([n]);
    let cosets_inverse = inverse(F::from(cosets))?;
    let of_piece = |s: u64| {
        let common = shift_inverse.pow([s]).times(&cosets_inverse);
        let of_coset = |t: u64| root_inverse.pow([s * t]).times(&common);
        (0..cosets).map(of_coset).collect()
    };
    Ok((0..domain.pieces as u64).map(of_piece).collect())
}

struct Quotient<'a, F> {
    matrix: Matrix<'a, F>,
    sources: &'a [Source<'a, F>],
    numerator: &'a Program<F>,
    domain: &'a CosetDomain<F>,
}

impl<F: KernelField + NttElement<F> + Element> Quotient<'_, F> {
    fn run(&self) -> Result<Vec<Column<F>>> {
        let plan = self.matrix.plan;
        let cosets = self.domain.cosets();
        let mut remainders = Vec::with_capacity(cosets as usize);
        let placement = if cosets == 1 { plan.results } else { plan.scratch };
        for first in (0..cosets).step_by(plan.cosets_together() as usize) {
            let shifts: Vec<F> = (first..first + plan.cosets_together())
                .map(|coset| self.domain.shift_of(coset))
                .collect();
            let inputs: Vec<&Column<F>> = self
                .used()
                .filter_map(|(_, _, source)| match source {
                    Source::Coefficients(column) => Some(*column),
                    _ => None,
                })
                .collect();
            let mut take = |rows: &Column<F>, shift: F| {
                remainders.extend(self.matrix.coefficients(rows, inverse(shift)?, placement)?);
                Ok::<_, Error>(())
            };
            let mut done = 0;
            for &shift in &shifts {
                let Some(rows) = self.offered(shift, Inputs::Coefficients(&inputs))? else {
                    break;
                };
                take(&rows, shift)?;
                done += 1;
            }
            let left = &shifts[done..];
            if left.is_empty() {
                continue;
            }
            let transformed = self.matrix.coset_rows(&inputs, left)?;
            for (&shift, transformed) in left.iter().zip(transformed) {
                let quotient_rows = self.on_coset(shift, &transformed)?;
                drop(transformed);
                take(&quotient_rows, shift)?;
            }
        }
        if cosets == 1 {
            remainders.truncate(self.domain.pieces);
            return Ok(remainders);
        }
        if self.domain.pieces == 0 {
            return Ok(Vec::new());
        }
        let factors = factors_of_pieces(self.domain)?;
        let columns: Vec<&Column<F>> = remainders.iter().collect();
        linear_combinations_in_chunks(&columns, &factors, plan.results, plan.chunk)
    }

    /// The columns that the program reads: index, rotations, and what stands for it.
    fn used(&self) -> impl Iterator<Item = (usize, (i32, i32), &Source<'_, F>)> {
        self.sources
            .iter()
            .enumerate()
            .filter_map(|(index, source)| Some((index, self.numerator.rotations(index)?, source)))
    }

    /// The quotient's rows on the coset of `shift` by the accelerator, if it makes them of these inputs.
    fn offered(&self, shift: F, inputs: Inputs<'_, F>) -> Result<Option<Column<F>>> {
        let used: Vec<_> = self.used().collect();
        let on_coset = (shift, self.domain.scale(shift)?);
        offload::on_coset(&self.matrix, self.numerator, &used, inputs, on_coset)
    }

    /// The quotient's rows on the coset of `shift`, twisted for the way back, from the columns' rows there.
    fn on_coset(&self, shift: F, transformed: &[Column<F>]) -> Result<Column<F>> {
        let (matrix, plan) = (&self.matrix, self.matrix.plan);
        let scale = self.domain.scale(shift)?;
        let used: Vec<_> = self.used().collect();
        if let Some(rows) = self.offered(shift, Inputs::Rows(transformed))? {
            return Ok(rows);
        }
        let mut power_table = None;
        if transformed.len() < used.len() {
            let mut table = matrix.vec(plan.row_len(), "powers of a root")?;
            powers(&mut table, &F::ONE, &self.domain.omega.pow([plan.rows()]));
            power_table = Some(table);
        }
        let tables = (&matrix.tables.along, power_table.as_deref().unwrap_or(&[]));
        let coset = Coset::new(self.domain, shift, plan.rows(), tables)?;
        let mut columns = transformed.iter();
        let mut inputs = Vec::with_capacity(used.len());
        for (index, rotations, source) in used {
            let column = match source {
                Source::Coefficients(_) => columns.next(),
                Source::Identity | Source::FirstLagrange => None,
            };
            inputs.push(Input {
                index,
                source: source.rows(),
                column,
                rotations,
            });
        }
        let walks = Walks {
            matrix,
            numerator: self.numerator,
            inputs,
            coset,
            shift_inverse: inverse(shift)?,
            scale,
        };
        walks.take()
    }
}
