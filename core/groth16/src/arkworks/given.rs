//! Keys, constraints and assignments that arkworks holds, in types of any of its versions, copied to scratch columns.
//!
//! Memory within the budget: a tile of points; up to 256 bytes for each distinct value of the coefficients, and two
//! buffers of a writer.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use ark_ec::short_weierstrass::Affine;
use ark_ff::FftField;

use super::{CHUNK, Parts, Reduction, push_infinities};
use crate::dictionary::{Dictionary, Form};
use crate::distinct::DistinctHashes;
use crate::{Coefficient, Constraints, Domain, PairingCurve, Proof, ProvingKey, prove_in};
use spillproof_engine::column::{Column, Placement, Workspace, Writer};
use spillproof_engine::error::Invalid;
use spillproof_engine::plan::smallest_budget_bytes;
use spillproof_engine::session::Session;
use spillproof_engine::{Error, Result};
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::field::KernelField;

/// Names of leases and columns.
const COEFFICIENTS: &str = "coefficients";
const VALUES: &str = "values of coefficients";

/// An array of points.
pub struct GivenPoints<'a, P: Curve> {
    /// How many.
    pub len: usize,
    /// The point at an index.
    pub point: Box<dyn Fn(usize) -> Affine<P> + 'a>,
}

impl<'a, P: Curve> GivenPoints<'a, P> {
    /// So many points, each by its index.
    pub fn new(len: usize, point: impl Fn(usize) -> Affine<P> + 'a) -> Self {
        let point = Box::new(point);
        Self { len, point }
    }
}

/// A key.
pub struct GivenKey<'a, E: PairingCurve> {
    /// alpha, beta, delta.
    pub points_g1: [Affine<E::G1Config>; 3],
    /// beta, gamma, delta.
    pub points_g2: [Affine<E::G2Config>; 3],
    /// `gamma_abc_g1`.
    pub ic: GivenPoints<'a, E::G1Config>,
    /// `a_query`.
    pub a: GivenPoints<'a, E::G1Config>,
    /// `b_g1_query`.
    pub b_g1: GivenPoints<'a, E::G1Config>,
    /// `b_g2_query`.
    pub b_g2: GivenPoints<'a, E::G2Config>,
    /// `l_query`.
    pub l: GivenPoints<'a, E::G1Config>,
    /// `h_query`.
    pub h: GivenPoints<'a, E::G1Config>,
}

/// The left and right matrices of a circuit.
pub trait GivenConstraints<F>: Sync {
    /// Constraints.
    fn rows(&self) -> usize;

    /// Variables.
    fn signals(&self) -> usize;

    /// Public variables, the constant one included.
    fn public(&self) -> usize;

    /// Calls `each` with value and variable of each term of a row: of the left matrix (0), or of the right one (1).
    fn terms(&self, matrix: u32, row: usize, each: &mut dyn FnMut(F, usize));
}

/// A key in columns.
pub(crate) fn parts<E: PairingCurve>(
    workspace: &Workspace,
    key: &GivenKey<'_, E>,
    reduction: Reduction,
) -> Result<Parts<E>> {
    Ok(Parts {
        points_g1: key.points_g1,
        points_g2: key.points_g2,
        ic: points(workspace, "ic", [0, 0], &key.ic)?,
        a: points(workspace, "a", [0, 0], &key.a)?,
        b_g1: points(workspace, "b_g1", [0, 0], &key.b_g1)?,
        b_g2: points(workspace, "b_g2", [0, 0], &key.b_g2)?,
        c: points(workspace, "c", [key.ic.len as u64, 0], &key.l)?,
        h: points(workspace, "h", [0, reduction.unused_points()], &key.h)?,
    })
}

/// A key for a circuit.
pub(crate) fn proving_key<E: PairingCurve>(
    workspace: &Workspace,
    parts: Parts<E>,
    constraints: &dyn GivenConstraints<E::Scalar>,
    reduction: Reduction,
) -> Result<ProvingKey<E>> {
    let (signals, public) = (constraints.signals() as u64, constraints.public() as u64);
    let rows = (constraints.rows() as u64 + public).next_power_of_two();
    for (what, given, expected) in [
        ("gamma_abc_g1", parts.ic.len(), public),
        ("a_query", parts.a.len(), signals),
        ("b_g1_query", parts.b_g1.len(), signals),
        ("b_g2_query", parts.b_g2.len(), signals),
        ("l_query", parts.c.len() - parts.ic.len(), signals - public),
        (
            "h_query",
            parts.h.len() - reduction.unused_points(),
            rows - reduction.unused_points(),
        ),
    ] {
        if given != expected {
            return Err(Invalid::Length {
                what: format!("points of `{what}` of a key for this circuit"),
                given,
                expected,
            }
            .into());
        }
    }
    let domain = arkworks_domain(rows)?;
    let constraints = Copied { of: constraints }.constraints_or_smallest(workspace)?;
    Ok(parts.into_key(constraints, domain, reduction))
}

/// The proof of so many values, the constant one first.
pub(crate) fn prove_values<E: PairingCurve>(
    session: &Arc<Session>,
    key: &ProvingKey<E>,
    len: usize,
    value: &dyn Fn(usize) -> E::Scalar,
    random: [E::Scalar; 2],
) -> Result<Proof<E>> {
    let workspace = session.workspace();
    let mut writer = Writer::scratch(
        workspace,
        "assignment",
        len as u64,
        crate::placement_of_copies(workspace),
    )?;
    let mut tile = Vec::with_capacity(CHUNK.min(len));
    for first in (0..len).step_by(CHUNK) {
        tile.clear();
        tile.extend((first..len.min(first + CHUNK)).map(value));
        writer.push(&tile)?;
    }
    prove_in(session, key, &writer.finish()?, random)
}

/// The domain of so many rows, with arkworks' roots of unity.
fn arkworks_domain<F: KernelField>(rows: u64) -> Result<Domain<F>> {
    let omega = F::get_root_of_unity(rows).ok_or(Invalid::PowerOfTwo {
        what: "rows of a circuit",
        given: rows,
        log_limit: F::TWO_ADICITY,
    })?;
    // Any coset does for the monomial basis.
    let shift = F::get_root_of_unity(2 * rows).unwrap_or(<F as FftField>::GENERATOR);
    Ok(Domain { omega, shift })
}

/// So many points at infinity, those of a key, and so many at infinity again.
fn points<P: Curve>(
    workspace: &Workspace,
    what: &str,
    [before, after]: [u64; 2],
    points: &GivenPoints<'_, P>,
) -> Result<Column<Point<P>>> {
    let len = before + points.len as u64 + after;
    let mut writer = Writer::scratch(workspace, what, len, Placement::Disk)?;
    let mut tile = (workspace.budget).vec(CHUNK, Point::<P>::INFINITY, "points of a key")?;
    push_infinities::<P>(&mut writer, before)?;
    for first in (0..points.len).step_by(CHUNK) {
        let indices = first..points.len.min(first + CHUNK);
        let count = indices.len();
        for (place, index) in tile.iter_mut().zip(indices) {
            *place = Point::<P>::from_affine::<P>(&(points.point)(index));
        }
        writer.push(&tile[..count])?;
    }
    push_infinities::<P>(&mut writer, after)?;
    writer.finish()
}

/// Constraints that are copied.
struct Copied<'a, F> {
    of: &'a dyn GivenConstraints<F>,
}

impl<F: KernelField> Copied<'_, F> {
    /// [`Self::constraints`]. Where the budget is too small for them, the error names the smallest in which
    /// they are copied.
    fn constraints_or_smallest(&self, workspace: &Workspace) -> Result<Constraints<F>> {
        let refusal = match self.constraints(workspace) {
            Err(refusal @ Error::OverBudget { .. }) => refusal,
            ended => return ended,
        };
        let Ok(values) = self.count_values(workspace) else {
            return Err(refusal);
        };
        let limit_bytes = workspace.budget.limit_bytes();
        let dry_run = |workspace: &Workspace| self.rehearse(workspace, values);
        match smallest_budget_bytes(&dry_run, workspace.threads())? {
            // Others hold what is missing.
            needed_bytes if needed_bytes <= limit_bytes => Err(refusal),
            needed_bytes => Err(Error::BudgetTooSmall {
                what: format!(
                    "a circuit with {} coefficients of {values} distinct values",
                    self.coefficients()
                ),
                needed_bytes,
                limit_bytes,
            }),
        }
    }

    /// All terms, with the matrix of each.
    fn each_row(&self, each: &mut dyn FnMut(u32, F, usize)) {
        for row in 0..self.of.rows() {
            for matrix in [0, 1] {
                self.of
                    .terms(matrix, row, &mut |value, signal| each(matrix, value, signal));
            }
        }
    }

    fn coefficients(&self) -> u64 {
        let mut count = self.of.public() as u64;
        self.each_row(&mut |_, _, _| count += 1);
        count
    }

    /// The coefficients of both matrices, with the rows that bind the public signals.
    fn constraints(&self, workspace: &Workspace) -> Result<Constraints<F>> {
        let mut dictionary = Dictionary::<F>::new(&workspace.budget, Form::AsInMemory)?;
        let mut writer = Writer::scratch(workspace, COEFFICIENTS, self.coefficients(), Placement::Disk)?;
        let mut row_terms: Vec<Coefficient> = Vec::new();
        let mut bytes = [0; 32];
        let mut coefficient =
            |(row, matrix): (usize, u32), value: &F, signal: usize| -> Result<Coefficient> {
                value.encode(&mut bytes);
                Ok(Coefficient {
                    row: row as u32,
                    signal: signal as u32,
                    value: dictionary.enter(&bytes)?,
                    matrix,
                })
            };
        let rows = self.of.rows();
        for row in 0..rows {
            for matrix in [0, 1] {
                let mut put = Ok(());
                self.of.terms(matrix, row, &mut |value, signal| {
                    if put.is_ok() {
                        put = coefficient((row, matrix), &value, signal).map(|term| row_terms.push(term));
                    }
                });
                put?;
            }
            if row_terms.len() >= CHUNK {
                writer.push(&row_terms)?;
                row_terms.clear();
            }
        }
        for signal in 0..self.of.public() {
            row_terms.push(coefficient((rows + signal, 0), &F::ONE, signal)?);
        }
        writer.push(&row_terms)?;
        let coefficients = writer.finish()?;
        let len = dictionary.values.len() as u64;
        let mut values = Writer::scratch(workspace, VALUES, len, Placement::Disk)?;
        values.push(&dictionary.values)?;
        Ok(Constraints::new(values.finish()?, coefficients))
    }

    /// A dry run of [`Self::constraints`], with so many distinct values.
    fn rehearse(&self, workspace: &Workspace, values: u64) -> Result<()> {
        let _dictionary = workspace.hold(Dictionary::<F>::bytes(values), VALUES)?;
        let len = self.coefficients();
        Writer::<Coefficient>::scratch(workspace, COEFFICIENTS, len, Placement::Disk)?.finish()?;
        Writer::<F>::scratch(workspace, VALUES, values, Placement::Disk)?.finish()?;
        Ok(())
    }

    /// How many distinct values the coefficients have.
    fn count_values(&self, workspace: &Workspace) -> Result<u64> {
        let mut hashes = DistinctHashes::new(&workspace.budget)?;
        let hasher = RandomState::new();
        let mut bytes = [0; 32];
        loop {
            let mut push = |value: F| {
                value.encode(&mut bytes);
                hashes.push(hasher.hash_one(bytes));
            };
            self.each_row(&mut |_, value, _| push(value));
            push(F::ONE);
            if hashes.end_pass() {
                return Ok(hashes.counted());
            }
        }
    }
}
