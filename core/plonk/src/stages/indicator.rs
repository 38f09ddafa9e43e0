//! Polynomials that are 1 on some rows of the domain and 0 on the others, as coefficients.
//!
//! `l_i` has the coefficients `omega^(-i j) / n`. So the sum over the rows `first .. first + count` has, at
//! `X^j`, `s^j * (1 + w^j + .. + w^(j (count - 1))) / n` with `w = omega^-1` and `s = w^first`: one pass that
//! writes, and a few multiplications a coefficient, for the few rows at the end that halo2 keeps for
//! blinding. Memory: a tile and a writer's buffers.

use spillproof_engine::Result;
use spillproof_engine::column::{Column, Element, Placement, Workspace, Writer};
use spillproof_engine::dry::Work;
use spillproof_engine::error::Invalid;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;
use spillproof_kernels::poly::PIECE;

const WHAT: &str = "indicator of rows";
/// Rows of a tile.
const TILE_ROWS: u64 = 32 * PIECE as u64;

/// The polynomial `constant + factor * (l_first + .. + l_(first + count - 1))` over the `2^log_n` powers of
/// `omega`, as `2^log_n` coefficients.
///
/// # Errors
/// [`spillproof_engine::Error::File`], [`spillproof_engine::Error::OverBudget`];
/// [`spillproof_engine::Error::Invalid`] if `omega` is 0.
pub fn indicator<F: KernelField + Element>(
    workspace: &Workspace,
    log_n: u32,
    omega: F,
    rows: std::ops::Range<u64>,
    constant: F,
    factor: F,
) -> Result<Column<F>> {
    workspace.run(|| indicator_in_turn(workspace, log_n, omega, rows, constant, factor))
}

fn indicator_in_turn<F: KernelField + Element>(
    workspace: &Workspace,
    log_n: u32,
    omega: F,
    rows: std::ops::Range<u64>,
    constant: F,
    factor: F,
) -> Result<Column<F>> {
    let n = 1u64 << log_n;
    let count = rows.end.saturating_sub(rows.start);
    let tile_len = TILE_ROWS.min(n) as usize;
    if workspace.is_dry() {
        let column = Writer::scratch(workspace, WHAT, n, Placement::Auto)?;
        let _tile = workspace.hold((tile_len * F::BYTES) as u64, WHAT)?;
        workspace.passed(0, Work::products((count + 2) as f64 * n as f64));
        return column.finish();
    }
    let invalid = || Invalid::Zero {
        what: "a root of unity",
    };
    let back = omega.inverse().ok_or_else(invalid)?;
    let shift = back.pow([rows.start]);
    let scale = factor.times(&F::from(n).inverse().ok_or_else(invalid)?);
    let mut writer = Writer::scratch(workspace, WHAT, n, Placement::Auto)?;
    let mut tile = workspace.budget.vec(tile_len, F::ZERO, WHAT)?;
    for start in (0..n).step_by(tile_len) {
        tile.chunks_mut(PIECE)
            .enumerate()
            .parallel()
            .for_each(|(piece, values)| {
                let at = start + (piece * PIECE) as u64;
                let mut step = back.pow([at]);
                let mut first = shift.pow([at]).times(&scale);
                for value in values {
                    // Horner over the rows.
                    let sum = (1..count).fold(F::ONE, |sum, _| sum.times(&step).plus(&F::ONE));
                    *value = if count == 0 { F::ZERO } else { first.times(&sum) };
                    step = step.times(&back);
                    first = first.times(&shift);
                }
            });
        if start == 0 {
            tile[0] = tile[0].plus(&constant);
        }
        writer.push(&tile)?;
    }
    writer.finish()
}
