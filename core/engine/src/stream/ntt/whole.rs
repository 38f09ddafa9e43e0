//! Transforms in memory. Memory: see [`super`].

use std::borrow::Borrow;

use super::combine::{Combine, combine_tiles};
use super::{TILE, Tiles};
use crate::Result;
use crate::budget::LeasedVec;
use crate::column::{Column, Placement, Writer};
use crate::stream::Transform;
use spillproof_kernels::field::KernelField;

/// Takes each of `inputs` through `transforms`, which have one length, one after the other, and writes what
/// `combine` leaves in the first. An input that is owned goes as soon as it has been read.
pub(super) fn whole<F: KernelField, T: Tiles<F>, C: Borrow<Column<T::Element>>>(
    tiles: &T,
    inputs: impl IntoIterator<Item = C>,
    transforms: &[&Transform<F>],
    combine: &Combine<T::Element>,
    placement: Placement,
) -> Result<Column<T::Element>> {
    let mut inputs = inputs.into_iter().peekable();
    let (Some(first), [transform, ..]) = (inputs.peek(), transforms) else {
        unreachable!("an input and a transform at least");
    };
    let (workspace, n) = (first.borrow().workspace().clone(), 1u64 << transform.log_n);
    let workspace = &workspace;
    if workspace.is_dry() {
        let mut held = Vec::new();
        for input in inputs {
            let input = input.borrow();
            let _reader = workspace.hold(input.reader_bytes(input.sequential_chunk(), 2), TILE)?;
            held.push(workspace.hold(n * size_of::<T::Element>() as u64, TILE)?);
            input.count_read();
            for (earlier, _) in transforms.iter().enumerate() {
                workspace.passed(u64::from(earlier == 0), T::work_of(n));
            }
        }
        return Writer::scratch(workspace, "transform", n, placement)?.finish();
    }
    let mut transformed = Vec::new();
    for input in inputs {
        transformed.push(in_memory(tiles, input.borrow(), transforms)?);
    }
    combine_tiles(&mut transformed, combine);
    let mut writer = Writer::scratch(workspace, "transform", n, placement)?;
    writer.push(&transformed[0])?;
    writer.finish()
}

/// A column taken through `transforms`.
fn in_memory<F: KernelField, T: Tiles<F>>(
    tiles: &T,
    input: &Column<T::Element>,
    transforms: &[&Transform<F>],
) -> Result<LeasedVec<T::Element>> {
    let n = 1usize << transforms.first().map_or(0, |transform| transform.log_n);
    // The first reads are on their way while the tile's pages are touched.
    let mut reader = input.read_ascending(input.sequential_chunk())?;
    let mut tile = input.workspace().budget.vec(n, T::ZERO, TILE)?;
    let mut filled = 0usize;
    while let Some(region) = reader.next_into(&mut tile[filled..])? {
        filled += region.len() as usize;
    }
    drop(reader);
    for transform in transforms {
        tiles.whole(&mut tile, filled, transform)?;
        filled = n;
    }
    Ok(tile)
}
