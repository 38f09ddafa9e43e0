//! A polynomial in pieces of n coefficients, cut anew in pieces of n - 1, each with a coefficient of its own
//! on top.
//!
//! With h the polynomial, piece i becomes `h_i + t_i X^(n - 1) - t_(i - 1)`, where `h_i` has the coefficients
//! of h from `i (n - 1)` on, n - 1 of them: the sum of `X^(i (n - 1))` times the pieces is h. What h has
//! above the last piece is left out.
//!
//! Shapes: d pieces of n coefficients come and go, d at most n. Each piece is read once, from its start; what
//! the next one takes of its end is d coefficients at most. Memory: a tile, and the buffers of a reader and a
//! writer.

use spillproof_engine::Result;
use spillproof_engine::column::{Column, Element, Placement, Region, Workspace, Writer};
use spillproof_engine::error::Invalid;
use spillproof_kernels::field::KernelField;

const WHAT: &str = "piece of a quotient";

/// The pieces, cut anew; each goes when its coefficients are taken. `tops` has the `t_i`, as many as there
/// are pieces.
///
/// # Errors
/// [`Invalid::TooLong`] for more pieces than a piece has coefficients;
/// [`spillproof_engine::Error::OverBudget`], [`spillproof_engine::Error::Io`],
/// [`spillproof_engine::Error::Damaged`].
///
/// Panics for another number of tops than of pieces.
pub fn recut<F: KernelField + Element>(
    workspace: &Workspace,
    pieces: Vec<Column<F>>,
    tops: &[F],
) -> Result<Vec<Column<F>>> {
    assert_eq!(pieces.len(), tops.len(), "one top for each piece");
    workspace.run(|| {
        let n = pieces.first().map_or(0, Column::len);
        Invalid::unless_at_most("pieces of a quotient for its rows", pieces.len() as u64, n)?;
        let (mut carried, mut top_before) = (Vec::new(), F::ZERO);
        let mut cut = Vec::with_capacity(pieces.len());
        for (piece, &top) in pieces.into_iter().zip(tops) {
            if let Some(lowest) = carried.first_mut() {
                *lowest -= top_before;
            }
            let (one, left) = piece_of(workspace, &piece, &carried, top)?;
            cut.push(one);
            (carried, top_before) = (left, top);
        }
        Ok(cut)
    })
}

/// The piece of `carried`, the first coefficients of `piece`, and `top`; and those that are left.
fn piece_of<F: KernelField + Element>(
    workspace: &Workspace,
    piece: &Column<F>,
    carried: &[F],
    top: F,
) -> Result<(Column<F>, Vec<F>)> {
    let n = piece.len();
    let mut left = vec![F::ZERO; carried.len() + 1];
    let start = n.saturating_sub(left.len() as u64);
    let own = piece.prefix(start)?;
    let mut writer = Writer::scratch(workspace, WHAT, n, Placement::Auto)?;
    if workspace.is_dry() {
        let chunk = own.sequential_chunk();
        let _copied = workspace.hold(chunk * F::BYTES as u64 + own.reader_bytes(chunk, 2), WHAT)?;
        piece.count_read();
        return Ok((writer.finish()?, left));
    }
    writer.push(carried)?;
    if !own.is_empty() {
        writer.push_column(&own)?;
    }
    writer.push(&[top])?;
    let region = Region::Span {
        start,
        len: left.len() as u64,
    };
    piece.read(region, &mut left)?;
    Ok((writer.finish()?, left))
}
