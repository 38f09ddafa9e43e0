//! Columns of affine points, and multiples of others added to them.
//!
//! Memory: a chunk of every column, its read-ahead and write-behind buffers, and the multiplier's blocks on
//! each thread, in half of what the budget has left; nothing that grows with n.

use rayon::current_num_threads;

use crate::Result;
use crate::budget::PAGE_BYTES;
use crate::column::{Column, Element, Placement, Reader, Writer, ascending};
use crate::dry::Work;
use crate::error::Invalid;
use spillproof_kernels::backend::Backend;
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::points::{BLOCK_POINTS_MIN, Multiplier};

/// Points in a block at most. The tables of more would leave the cache.
const BLOCK_POINTS_MAX: usize = 512;
/// What doublings take, in batched additions, and what a multiple of each other point does.
const COST_OF_DOUBLINGS: f64 = 140.0;
const COST_OF_MULTIPLE: f64 = 60.0;
/// Columns of multiples at most.
const TERMS_MAX: u64 = 16;
/// Chunks of a column that are in memory: decoded, and on their way in.
const CHUNKS_PER_COLUMN: u64 = 3;

/// `points[i] + sum of factor * column[i]`, over columns as long as `points`. Every column is read once, all
/// at the same pace.
///
/// # Errors
/// [`Invalid::Length`] for a column of another length, [`Invalid::TooLong`] for more than 16 columns;
/// [`crate::Error::OverBudget`], [`crate::Error::Io`], [`crate::Error::Damaged`].
pub fn add_multiples<P: Curve>(
    points: &Column<Point<P>>,
    terms: &[(P::ScalarField, &Column<Point<P>>)],
    placement: Placement,
) -> Result<Column<Point<P>>> {
    Invalid::unless_at_most("columns of multiples", terms.len() as u64, TERMS_MAX)?;
    for (_, column) in terms {
        if column.len() != points.len() {
            return Err(Invalid::Length {
                what: format!("points of {}", column.name()),
                given: column.len(),
                expected: points.len(),
            }
            .into());
        }
    }
    points
        .workspace()
        .run(|| add_in_turn::<P>(points, terms, placement))
}

fn add_in_turn<P: Curve>(
    points: &Column<Point<P>>,
    terms: &[(P::ScalarField, &Column<Point<P>>)],
    placement: Placement,
) -> Result<Column<Point<P>>> {
    let (workspace, budget) = (points.workspace(), &points.workspace().budget);
    let mut writer = Writer::scratch(workspace, "points", points.len(), placement)?;
    let columns = || std::iter::once(points).chain(terms.iter().map(|(_, column)| *column));
    let frame = columns().map(Column::frame_elements).max().unwrap_or(1);
    let available_bytes = budget.available_bytes() / 2;
    let Sizes { chunk, block_points } = sizes::<P>(points.len(), frame, terms.len() as u64, available_bytes);
    let kernel_bytes =
        Multiplier::<P>::bytes_for_combinations(current_num_threads(), block_points, terms.len());
    if workspace.is_dry() {
        let tile = (chunk * Point::<P>::BYTES as u64).next_multiple_of(PAGE_BYTES as u64);
        let bytes: u64 = columns().map(|column| tile + column.reader_bytes(chunk, 2)).sum();
        let _held = workspace.hold(bytes + kernel_bytes, "multiples of points")?;
        columns().for_each(|column| column.count_read());
        let each = COST_OF_DOUBLINGS + COST_OF_MULTIPLE * terms.len() as f64;
        workspace.passed(1, Work::additions(each * points.len() as f64));
        return writer.finish();
    }
    let _kernel_bytes = budget.lease(kernel_bytes, "multiples of points")?;
    let multiplier = Multiplier::<P>::for_combinations(Backend::detect(), block_points, terms.len());
    let mut readers: Vec<Reader<Point<P>>> = columns()
        .map(|column| column.read_ascending(chunk))
        .collect::<Result<_>>()?;
    let mut tiles = columns()
        .map(|_| budget.vec(chunk as usize, Point::<P>::INFINITY, "points"))
        .collect::<Result<Vec<_>>>()?;
    let scalars: Vec<P::ScalarField> = terms.iter().map(|(factor, _)| *factor).collect();
    for region in ascending(points.len(), chunk) {
        for (reader, tile) in readers.iter_mut().zip(&mut tiles) {
            reader.next_into(tile)?;
        }
        let here = region.len() as usize;
        if let Some((sum, others)) = tiles.split_first_mut() {
            let others: Vec<&[Point<P>]> = others.iter().map(|tile| &tile[..here]).collect();
            multiplier.combine(&mut sum[..here], &others, &scalars);
            writer.push(&sum[..here])?;
        }
    }
    writer.finish()
}

/// How a pass is cut.
struct Sizes {
    /// Points of a chunk, in whole frames of every column.
    chunk: u64,
    /// Points of the multiplier's blocks.
    block_points: usize,
}

/// The largest sizes within `available_bytes` for `len` points and as many multiples, or the smallest that
/// there are.
fn sizes<P: Curve>(len: u64, frame: u64, terms: u64, available_bytes: u64) -> Sizes {
    let threads = current_num_threads();
    let bytes = |sizes: &Sizes| {
        let Sizes { chunk, block_points } = *sizes;
        Multiplier::<P>::bytes_for_combinations(threads, block_points, terms as usize)
            + (1 + terms) * CHUNKS_PER_COLUMN * chunk * Point::<P>::BYTES as u64
    };
    let chunk = (2 * threads * BLOCK_POINTS_MAX).next_power_of_two() as u64;
    let mut sizes = Sizes {
        chunk: chunk.min(len.next_power_of_two()).max(frame),
        block_points: BLOCK_POINTS_MAX,
    };
    while sizes.chunk > frame && bytes(&sizes) > available_bytes {
        sizes.chunk /= 2;
    }
    while sizes.block_points > BLOCK_POINTS_MIN && bytes(&sizes) > available_bytes {
        sizes.block_points /= 2;
    }
    sizes
}
