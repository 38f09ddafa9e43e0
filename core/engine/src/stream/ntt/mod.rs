//! Number-theoretic transforms of columns: of scalars; of points in [`super::group_ntt`], which goes the same
//! way over the disk.
//!
//! A column that fits the tile is transformed in memory. A larger one takes Bailey's four steps (*FFTs in
//! external or hierarchical memory*, 1990) in two passes over the disk, cut as [`NttPlan`] says:
//!
//! 1. For each panel of `columns1` columns of the `n1 x n2` matrix: transform its columns, multiply element
//!    `(k1, j2)` by `omega^(k1 * j2)`, and write it in blocks of `columns1 x columns2` elements, transposed,
//!    so that pass 2 reads what it needs as one run.
//! 2. For each group of `columns2` rows `k1`, now columns of an `n2 x columns2` tile: transform the columns,
//!    and write output `k1 + n1 * k2` where it belongs.
//!
//! A tile leaves in slices, and each slice of the next one comes as soon as its place is free: reads and
//! writes go on together, behind the transforms and before them, and there is one tile of values. The larger
//! it is, the longer are the runs on disk. Order is natural on both sides. Memory: one tile of values, half
//! of one of raw bytes (`Slices`), a band of values and `BANDS_BEHIND` that are being written, each a 32nd of
//! a tile.

mod combine;
mod dealt;
mod four_step;
mod halves;
mod panels;
mod plan;
mod twice;
mod whole;

use super::offload;
use super::transform::Transform;
use crate::Error;
use crate::Result;
use crate::column::{Column, Element, Placement};
use crate::dry::Work;
use crate::error::Invalid;
pub use combine::{Combine, combine_columns};
pub use dealt::DealtTransforms;
use four_step::FourStep;
pub use plan::NttPlan;
use plan::{InputShape, largest_tile};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::ntt::{Domain, NttElement, Twiddles, Twist, columns, forget_buffers, scale_indexed};
pub use twice::transform_twice;
use whole::whole;

/// The arithmetic of a transform's tiles: what stands between reading and writing them.
pub(super) trait Tiles<F>: Sync {
    /// What is transformed.
    type Element: Element;
    /// What the input is padded with.
    const ZERO: Self::Element;

    /// Transforms the columns of a panel: [`spillproof_kernels::ntt::columns`].
    fn columns(
        &self,
        panel: &mut [Self::Element],
        width: usize,
        twiddles: &Twiddles<F>,
        before: &F,
        twist: Option<&Twist<F>>,
    );

    /// The whole of a transform, in place. Values from `filled` on are zero.
    fn whole(&self, values: &mut [Self::Element], filled: usize, transform: &Transform<F>) -> Result<()>;

    /// So many butterflies, in the units of a dry run.
    fn work(butterflies: f64) -> Work;

    /// A transform of `n` elements, in the units of a dry run.
    fn work_of(n: u64) -> Work {
        Self::work(n as f64 * f64::from(n.max(1).ilog2()) / 2.0)
    }
}

/// Tiles of scalars.
struct ScalarTiles;

impl<F: KernelField + NttElement<F> + Element> Tiles<F> for ScalarTiles {
    type Element = F;
    const ZERO: F = F::ZERO;

    fn columns(
        &self,
        panel: &mut [F],
        width: usize,
        twiddles: &Twiddles<F>,
        before: &F,
        twist: Option<&Twist<F>>,
    ) {
        columns(panel, width, twiddles, before, twist);
    }

    fn whole(&self, values: &mut [F], filled: usize, transform: &Transform<F>) -> Result<()> {
        let domain = Domain::new(transform.log_n, transform.omega)?;
        if !transform.before.is_one() {
            scale_indexed(&mut values[..filled], filled.max(1), &transform.before, 0, 0);
        }
        domain.forward_scaled(values, transform.scale);
        if !transform.after.is_one() {
            let len = values.len();
            scale_indexed(values, len, &transform.after, 0, 0);
        }
        Ok(())
    }

    fn work(butterflies: f64) -> Work {
        Work::butterflies(butterflies)
    }
}

/// Transforms a column of scalars. The largest tile that the budget has room for is taken.
///
/// # Errors
/// [`Error::Invalid`] for a root of another order or an input longer than `2^log_n`;
/// [`Error::BudgetTooSmall`] with the smallest budget that works; [`Error::Io`], [`Error::Damaged`].
pub fn ntt<F>(input: &Column<F>, transform: &Transform<F>, placement: Placement) -> Result<Column<F>>
where
    F: KernelField + NttElement<F> + Element,
{
    input.workspace().run(|| ntt_in_turn(input, transform, placement))
}

fn ntt_in_turn<F>(input: &Column<F>, transform: &Transform<F>, placement: Placement) -> Result<Column<F>>
where
    F: KernelField + NttElement<F> + Element,
{
    let available_bytes = input.workspace().budget.available_bytes();
    let log_tile = log_tile_within::<F>(input, transform.log_n, available_bytes);
    let is_whole = log_tile
        .as_ref()
        .is_ok_and(|log_tile| *log_tile >= transform.log_n);
    let passes = if is_whole { 1 } else { 2 };
    if let Some(output) = offload::transform(input, transform, placement, passes)? {
        return Ok(output);
    }
    let log_tile = log_tile?;
    tracing::debug!(log_n = transform.log_n, log_tile, available_bytes, "streamed NTT");
    ntt_in_tiles(input, transform, placement, log_tile)
}

/// log2 of the largest tile whose leases fit `available` bytes.
pub(super) fn log_tile_within<E: Element>(input: &Column<E>, log_n: u32, available: u64) -> Result<u32> {
    let shape = InputShape::of([input]);
    let held = input.workspace().budget.held_bytes();
    largest_tile(&shape, log_n, available)?.map_err(|needed| Error::BudgetTooSmall {
        what: format!("a transform of 2^{log_n} elements beside {held} bytes held"),
        needed_bytes: needed + held,
        limit_bytes: input.workspace().budget.limit_bytes(),
    })
}

/// Transforms with a tile of `2^log_tile` elements, however much memory there is.
///
/// # Errors
/// As [`ntt`]; [`Error::Invalid`] for a tile that is too small for two passes.
pub fn ntt_in_tiles<F>(
    input: &Column<F>,
    transform: &Transform<F>,
    placement: Placement,
    log_tile: u32,
) -> Result<Column<F>>
where
    F: KernelField + NttElement<F> + Element,
{
    input.workspace().run(|| {
        let output = in_tiles(&ScalarTiles, input, transform, placement, log_tile);
        if !input.workspace().is_dry() {
            forget_buffers();
        }
        output
    })
}

/// As [`ntt_in_tiles`], of whatever `tiles` transforms.
pub(super) fn in_tiles<F: KernelField, T: Tiles<F>>(
    tiles: &T,
    input: &Column<T::Element>,
    transform: &Transform<F>,
    placement: Placement,
    log_tile: u32,
) -> Result<Column<T::Element>> {
    let n = 1u64 << transform.log_n;
    Invalid::unless_at_most("elements of a transform", input.len(), n)?;
    let plan = NttPlan::new(
        transform.log_n,
        log_tile,
        T::Element::BYTES as u64,
        input.frame_elements(),
    )?;
    // Of one column there is nothing to combine.
    let combine = |_: &mut [T::Element], _: &[&[T::Element]]| ();
    match plan {
        NttPlan::Whole => whole(
            tiles,
            std::slice::from_ref(input),
            &[transform],
            &combine,
            placement,
        ),
        NttPlan::FourStep {
            log_tile,
            log_n1,
            log_n2,
        } => {
            let shape = FourStep {
                tiles,
                transform,
                log_tiles: [log_tile; 2],
                log_lengths: [log_n1, log_n2],
            };
            let between = shape.first_pass(input)?;
            shape.second_pass(&[between], &combine, placement)
        }
    }
}

const TILE: &str = "transform tile";
