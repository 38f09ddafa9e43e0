//! The vanishing argument's random polynomial, of which a tile is in memory.

use spillproof_engine::column::{Column, Placement, Workspace, Writer};
use spillproof_kernels::field::KernelField;

use crate::error::Result;
use crate::outside::{RandomPolynomial, Randomness};

/// Coefficients that are drawn at a time.
const DRAWN: u64 = 1 << 13;
/// Those of them that one thread draws.
const DRAWN_BY_A_THREAD: usize = 1 << 9;

/// Draws a polynomial of `coefficients` coefficients; none if it was kept: then only what later draws depend
/// on is drawn.
///
/// # Errors
/// The engine's.
pub(crate) fn polynomial<F: KernelField>(
    workspace: &Workspace,
    coefficients: u64,
    is_kept: bool,
    randomness: &mut (impl Randomness<F> + ?Sized),
) -> Result<Option<Column<F>>> {
    let made = workspace.run_here(|| {
        let mut writer = match is_kept {
            false => Some(Writer::scratch(
                workspace,
                "random polynomial",
                coefficients,
                Placement::Auto,
            )?),
            true => None,
        };
        let drawn = randomness.random_polynomial(coefficients);
        let mut tile = vec![F::ZERO; coefficients.min(DRAWN) as usize];
        let mut left = match (&drawn, is_kept) {
            _ if workspace.is_dry() => 0,
            (RandomPolynomial::OnAnyThread(_), true) => 0,
            _ => coefficients,
        };
        while left > 0 {
            let now = left.min(tile.len() as u64) as usize;
            match drawn {
                RandomPolynomial::OnAnyThread(draw) => {
                    workspace.in_pieces(&mut tile[..now], DRAWN_BY_A_THREAD, draw)?;
                }
                RandomPolynomial::Scalars => tile[..now].fill_with(|| randomness.scalar()),
            }
            if let Some(writer) = &mut writer {
                writer.push(&tile[..now])?;
            }
            left -= now as u64;
        }
        writer.map(Writer::finish).transpose()
    })?;
    Ok(made)
}
