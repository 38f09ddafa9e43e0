//! Number-theoretic transforms of columns: of scalars; of points in [`super::group_ntt`], which goes the same way over the disk.
//!
//! A column that fits the tile is transformed in memory. A larger one takes Bailey's four steps (*FFTs in external or
//! hierarchical memory*, 1990) in two passes over the disk, cut as [`NttPlan`] says:
//!
//! 1. For each panel of `columns1` columns of the `n1 x n2` matrix: transform its columns, multiply element `(k1, j2)` by
//!    `omega^(k1 * j2)`, and write it in blocks of `columns1 x columns2` elements, transposed, so that pass 2 reads what
//!    it needs as one run.
//! 2. For each group of `columns2` rows `k1`, now columns of an `n2 x columns2` tile: transform the columns, and write
//!    output `k1 + n1 * k2` where it belongs.
//!
//! A tile leaves in slices, and each slice of the next one comes as soon as its place is free: reads and writes go on
//! together, behind the transforms and before them, and there is one tile of values. The larger it is, the longer are the runs
//! on disk. Order is natural on both sides. Memory: one tile of values, half of one of raw bytes ([`Slices`]), a band of values
//! and [`BANDS_BEHIND`] that are being written, each a 32nd of a tile.

use super::ntt_plan::{NttPlan, log_run_min, run_frame_bytes};
use super::offload;
use super::transform::Transform;
use crate::budget::{LeasedVec, PAGE_BYTES};
use crate::column::{
    Column, Draft, Element, Placement, Reader, Region, SCRATCH_FRAME_BYTES, Workspace, Writer, ascending,
};
use crate::dry::Work;
use crate::error::Invalid;
use crate::kernels::field::KernelField;
use crate::kernels::ntt::{
    Domain, NttElement, Twiddles, Twist, columns, forget_buffers, scale_indexed, transpose_block,
};
use crate::{Error, Result};

/// Bands that are being written at most: while the next tile is transformed, the disk has something to do.
const BANDS_BEHIND: usize = 8;
/// A band is this part of a tile.
const LOG_BANDS_PER_TILE: u32 = 5;
/// A tile is read and written in so many slices, where its shape allows it.
const SLICES_MAX: u64 = 4;
/// Frames of what passes between the two passes.
const BETWEEN_FRAME_BYTES_MAX: u64 = 64 * 1024;

/// The arithmetic of a transform's tiles: what stands between reading and writing them.
pub(super) trait Tiles<F>: Sync {
    /// What is transformed.
    type Element: Element;
    /// What the input is padded with.
    const ZERO: Self::Element;

    /// Transforms the columns of a panel: [`crate::kernels::ntt::columns`].
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
/// [`Error::Invalid`] for a root of another order or an input longer than `2^log_n`; [`Error::BudgetTooSmall`] with the
/// smallest budget that works; [`Error::Io`], [`Error::Damaged`].
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
    if let Some(output) = offload::transform(input, transform, placement)? {
        return Ok(output);
    }
    let available_bytes = input.workspace().budget.available_bytes();
    let log_tile = log_tile_within::<F>(input, transform.log_n, available_bytes)?;
    tracing::debug!(log_n = transform.log_n, log_tile, available_bytes, "streamed NTT");
    ntt_in_tiles(input, transform, placement, log_tile)
}

/// Transforms a column of scalars, and what comes of it once more: in memory at once, where a tile takes all of it; else one after the other,
/// and the input is dropped after the first.
///
/// # Errors
/// As [`ntt`]; [`Invalid::Length`] for transforms of different lengths.
pub fn transform_twice<F>(
    input: Column<F>,
    transforms: [&Transform<F>; 2],
    placement: Placement,
) -> Result<Column<F>>
where
    F: KernelField + NttElement<F> + Element,
{
    let workspace = input.workspace().clone();
    workspace.run(|| {
        let [first, second] = transforms;
        if first.log_n != second.log_n {
            return Err(Invalid::Length {
                what: "elements of the second of two transforms".into(),
                given: 1 << second.log_n,
                expected: 1 << first.log_n,
            }
            .into());
        }
        let n = 1u64 << first.log_n;
        Invalid::unless_at_most("elements of a transform", input.len(), n)?;
        // A device takes single transforms.
        let available_bytes = workspace.budget.available_bytes();
        let log_tile = log_tile_within::<F>(&input, first.log_n, available_bytes)?;
        if log_tile < first.log_n || workspace.tier.is_some() {
            let between = ntt_in_turn(&input, first, placement)?;
            drop(input);
            return ntt_in_turn(&between, second, placement);
        }
        match workspace.is_dry() {
            true => {
                let once = rehearse_whole::<F, ScalarTiles>(&input, n, placement)?;
                workspace.passed(0, <ScalarTiles as Tiles<F>>::work_of(n));
                Ok(once)
            }
            false => {
                let output = whole(&ScalarTiles, &input, &transforms, placement);
                forget_buffers();
                output
            }
        }
    })
}

/// What the choice of a tile has to know of a column.
#[derive(Clone, Copy, Debug)]
struct InputShape {
    /// Bytes of an element in memory.
    value_bytes: u64,
    /// Bytes of an element on disk.
    element_bytes: u64,
    /// Elements in a frame.
    frame_elements: u64,
    /// Bytes that are read at a time in order.
    chunk_bytes: u64,
}

/// Bytes leased for a tile of `2^log_tile` values.
fn leased_bytes(plan: NttPlan, log_n: u32, log_tile: u32, input: &InputShape) -> u64 {
    let InputShape {
        value_bytes,
        element_bytes,
        ..
    } = *input;
    match plan {
        NttPlan::Whole => {
            let chunk = input.chunk_bytes;
            (value_bytes << log_n) + 5 * chunk
        }
        NttPlan::FourStep { log_n1, log_n2, .. } => {
            let [first, second] = Slices::of(log_tile, log_n1, log_n2, element_bytes);
            let raw = |slices: Slices| {
                let slice = (1 << log_tile) / slices.count;
                slices.ahead as u64 * element_bytes * slice.max(input.frame_elements)
            };
            let raw = raw(first).max(raw(second));
            let band = 1u64 << log_band(log_tile, element_bytes);
            (value_bytes << log_tile) + raw + band * (value_bytes + BANDS_BEHIND as u64 * element_bytes)
        }
    }
}

fn log_band(log_tile: u32, element_bytes: u64) -> u32 {
    (log_tile - LOG_BANDS_PER_TILE.min(log_tile)).max(log_run_min(element_bytes))
}

fn between_frame_bytes(block: u64, band: u64, element_bytes: u64) -> u64 {
    run_frame_bytes(block.min(band), element_bytes, BETWEEN_FRAME_BYTES_MAX)
}

/// How a tile of one of the passes is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slices {
    /// Slices of a tile.
    count: u64,
    /// Slices on their way.
    ahead: usize,
}

impl Slices {
    /// Those of both passes: whole groups of rows in the first, whole bands in the second.
    fn of(log_tile: u32, log_n1: u32, log_n2: u32, element_bytes: u64) -> [Self; 2] {
        let log_width2 = log_tile - log_n2;
        let log_band_rows = log_band(log_tile, element_bytes).saturating_sub(log_width2);
        let slices = |log_units: u32| {
            let count = SLICES_MAX.min(1 << log_units);
            Self {
                count,
                ahead: if count > 1 { 2 } else { 1 },
            }
        };
        [
            slices(log_n1 - log_width2),
            slices(log_n2.saturating_sub(log_band_rows)),
        ]
    }
}

/// log2 of the largest tile whose leases fit `available` bytes.
pub(super) fn log_tile_within<E: Element>(input: &Column<E>, log_n: u32, available: u64) -> Result<u32> {
    let shape = InputShape {
        value_bytes: size_of::<E>() as u64,
        element_bytes: E::BYTES as u64,
        frame_elements: input.frame_elements(),
        chunk_bytes: input.sequential_chunk() * E::BYTES as u64,
    };
    let held = input.workspace().budget.held_bytes();
    largest_tile(&shape, log_n, available)?.map_err(|needed| Error::BudgetTooSmall {
        what: format!("a transform of 2^{log_n} elements beside {held} bytes held"),
        needed_bytes: needed + held,
        limit_bytes: input.workspace().budget.limit_bytes(),
    })
}

/// As [`log_tile_within`], for a column of this shape; as the inner `Err`, the bytes that would do.
fn largest_tile(shape: &InputShape, log_n: u32, available: u64) -> Result<Result<u32, u64>> {
    let log_min = NttPlan::log_tile_min(log_n, shape.element_bytes);
    let mut needed = u64::MAX;
    for log_tile in (log_min..=log_n).rev() {
        let plan = NttPlan::new(log_n, log_tile, shape.element_bytes, shape.frame_elements)?;
        let bytes = leased_bytes(plan, log_n, log_tile, shape);
        if bytes <= available {
            return Ok(Ok(log_tile));
        }
        needed = needed.min(bytes);
    }
    Ok(Err(needed))
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
    let (element_bytes, is_dry) = (T::Element::BYTES as u64, input.workspace().is_dry());
    match NttPlan::new(transform.log_n, log_tile, element_bytes, input.frame_elements())? {
        NttPlan::Whole if is_dry => rehearse_whole::<F, T>(input, n, placement),
        NttPlan::Whole => whole(tiles, input, &[transform], placement),
        NttPlan::FourStep {
            log_tile,
            log_n1,
            log_n2,
        } => {
            let shape = FourStep {
                tiles,
                transform,
                log_tile,
                log_n1,
                log_n2,
            };
            if is_dry {
                return shape.rehearse(input, placement);
            }
            let between = shape.first_pass(input)?;
            shape.second_pass(&between, placement)
        }
    }
}

/// One transform or several of one length, one after the other, in memory.
fn whole<F: KernelField, T: Tiles<F>>(
    tiles: &T,
    input: &Column<T::Element>,
    transforms: &[&Transform<F>],
    placement: Placement,
) -> Result<Column<T::Element>> {
    let workspace = input.workspace();
    let n = 1usize << transforms.first().map_or(0, |transform| transform.log_n);
    // The first reads are on their way while the tile's pages are touched.
    let mut reader = input.read_ascending(input.sequential_chunk())?;
    let mut tile = workspace.budget.vec(n, T::ZERO, TILE)?;
    let mut filled = 0usize;
    while let Some(region) = reader.next_into(&mut tile[filled..])? {
        filled += region.len() as usize;
    }
    drop(reader);
    for transform in transforms {
        tiles.whole(&mut tile, filled, transform)?;
        filled = n;
    }
    let mut writer = Writer::scratch(workspace, "transform", n as u64, placement)?;
    writer.push(&tile)?;
    writer.finish()
}

/// The dry run of [`whole`], for a transform of `n` elements.
fn rehearse_whole<F, T: Tiles<F>>(
    input: &Column<T::Element>,
    n: u64,
    placement: Placement,
) -> Result<Column<T::Element>> {
    let workspace = input.workspace();
    let _tile = workspace.hold(n * size_of::<T::Element>() as u64, TILE)?;
    {
        let chunk = input.sequential_chunk();
        let _reader = workspace.hold(input.reader_bytes(chunk, 2), TILE)?;
        input.count_read();
    }
    workspace.passed(1, T::work_of(n));
    Writer::scratch(workspace, "transform", n, placement)?.finish()
}

const TILE: &str = "transform tile";
const BETWEEN: &str = "transform, between its passes";

/// One four-step transform.
struct FourStep<'a, F, T> {
    tiles: &'a T,
    transform: &'a Transform<F>,
    log_tile: u32,
    log_n1: u32,
    log_n2: u32,
}

impl<F: KernelField, T: Tiles<F>> FourStep<'_, F, T> {
    /// Bytes of an element on disk.
    const ELEMENT_BYTES: u64 = T::Element::BYTES as u64;

    /// Columns of a panel of pass 1.
    fn columns1(&self) -> u64 {
        1 << (self.log_tile - self.log_n1)
    }

    /// Columns of a panel of pass 2.
    fn columns2(&self) -> u64 {
        1 << (self.log_tile - self.log_n2)
    }

    fn slices(&self) -> [Slices; 2] {
        Slices::of(self.log_tile, self.log_n1, self.log_n2, Self::ELEMENT_BYTES)
    }

    /// The column between the passes.
    fn between(&self, workspace: &Workspace) -> Result<Draft<T::Element>> {
        let band_len = 1u64 << log_band(self.log_tile, Self::ELEMENT_BYTES);
        let block = self.columns1() * self.columns2();
        let frame_bytes = between_frame_bytes(block, band_len, Self::ELEMENT_BYTES) as usize;
        let len = 1u64 << (self.log_n1 + self.log_n2);
        Draft::scratch_with_frames(workspace, BETWEEN, len, Placement::Disk, frame_bytes)
    }

    /// The column that comes out.
    fn output(&self, workspace: &Workspace, placement: Placement) -> Result<Draft<T::Element>> {
        let frame_bytes =
            run_frame_bytes(self.columns2(), Self::ELEMENT_BYTES, SCRATCH_FRAME_BYTES as u64) as usize;
        let len = 1u64 << (self.log_n1 + self.log_n2);
        Draft::scratch_with_frames(workspace, "transform", len, placement, frame_bytes)
    }

    /// Rows of a slice of the second pass's tile, and of a band of it.
    fn rows_of_second_pass(&self) -> (u64, u64) {
        let [_, slices] = self.slices();
        let slice_rows = (1u64 << self.log_n2) / slices.count;
        let rows_per_band = (1u64 << log_band(self.log_tile, Self::ELEMENT_BYTES)) / self.columns2();
        (slice_rows, rows_per_band.clamp(1, slice_rows))
    }

    /// The dry run of both passes.
    fn rehearse(&self, input: &Column<T::Element>, placement: Placement) -> Result<Column<T::Element>> {
        let workspace = input.workspace();
        let (log_n, element_bytes) = (self.log_n1 + self.log_n2, Self::ELEMENT_BYTES);
        let band_bytes = element_bytes << log_band(self.log_tile, element_bytes);
        let tile = || workspace.hold((size_of::<T::Element>() as u64) << self.log_tile, TILE);
        let [first, second] = self.slices();
        workspace.passed(2, T::work((1u64 << log_n) as f64 * f64::from(log_n) / 2.0));

        let between = self.between(workspace)?;
        let frame_bytes = between.frame_elements() * element_bytes;
        let between = {
            let _tiles = (
                tile()?,
                workspace.hold(
                    (size_of::<T::Element>() as u64) * (band_bytes / element_bytes),
                    TILE,
                )?,
            );
            let (read_bytes, all_bytes) = Panels::bytes(self, input, &first);
            let behind = band_bytes.max(frame_bytes).next_multiple_of(PAGE_BYTES as u64);
            let raw = read_bytes.next_multiple_of(PAGE_BYTES as u64) * first.ahead as u64;
            let _raw = workspace.hold(raw + BANDS_BEHIND as u64 * behind, TILE)?;
            input.count_read_bytes(all_bytes);
            between.finish()?
        };
        let output = self.output(workspace, placement)?;
        let (slice_rows, rows_per_band) = self.rows_of_second_pass();
        let width = self.columns2();
        let raw = between.reader_bytes(slice_rows * width, second.ahead as u64);
        let band = (rows_per_band * width * element_bytes).next_multiple_of(PAGE_BYTES as u64);
        let _held = (tile()?, workspace.hold(raw + BANDS_BEHIND as u64 * band, TILE)?);
        between.count_read();
        output.finish()
    }

    fn tile(&self, column: &Column<T::Element>) -> Result<LeasedVec<T::Element>> {
        column.workspace().budget.vec(1 << self.log_tile, T::ZERO, TILE)
    }

    fn first_pass(&self, input: &Column<T::Element>) -> Result<Column<T::Element>> {
        let workspace = input.workspace();
        let (n1, n2) = (1u64 << self.log_n1, 1u64 << self.log_n2);
        let (width, width2) = (self.columns1(), self.columns2());
        let band_len = 1u64 << log_band(self.log_tile, Self::ELEMENT_BYTES);
        let mut between = self.between(workspace)?.with_writes_behind(BANDS_BEHIND);
        let twiddles = Twiddles::new(self.log_n1, self.transform.omega.pow([n2]))?;
        let mut tile = self.tile(input)?;
        let mut band = workspace
            .budget
            .vec(band_len as usize, T::ZERO, "transform band")?;
        let [slices, _] = self.slices();
        let slice_rows = n1 / slices.count;
        let mut panels = Panels::new(self, input, slice_rows, slices.ahead)?;
        for (slice, values) in (0..).zip(tile.chunks_mut((slice_rows * width) as usize)) {
            panels.next_into(0, slice, values)?;
        }
        for panel in 0..n2 / width {
            let twist = Twist {
                root: self.transform.omega,
                first_row: 0,
                first_column: panel * width,
                scale: self.transform.scale,
                base: self.transform.before,
                row: F::ONE,
            };
            let before = self.transform.before.pow([n2]);
            self.tiles
                .columns(&mut tile, width as usize, &twiddles, &before, Some(&twist));
            for (slice, values) in (0..).zip(tile.chunks_mut((slice_rows * width) as usize)) {
                let first_group = slice * slice_rows / width2;
                self.write_blocks(&mut between, values, &mut band, panel, first_group)?;
                panels.next_into(panel + 1, slice, values)?;
            }
        }
        between.finish()
    }

    /// Writes blocks of a panel, transposed: block `group` of the panel has rows `group * columns2 ..` of it, and stands at
    /// `(group * panels + panel) * block` of the column. `tile` begins with block `first_group`.
    fn write_blocks(
        &self,
        between: &mut Draft<T::Element>,
        tile: &[T::Element],
        band: &mut [T::Element],
        panel: u64,
        first_group: u64,
    ) -> Result<()> {
        let (width, width2) = (self.columns1() as usize, self.columns2() as usize);
        let block = width * width2;
        let groups = tile.len() / block;
        let row_len = (width2 as u64) << self.log_n2;
        if block >= band.len() {
            // Several bands a block: each some columns of it.
            let columns_per_band = band.len() / width2;
            for group in 0..groups {
                for first in (0..width).step_by(columns_per_band) {
                    let source = &tile[group * block + first..(group + 1) * block];
                    transpose_block(source, width, width2, columns_per_band, band);
                    let row = first_group + group as u64;
                    let start = row * row_len + panel * block as u64 + (first * width2) as u64;
                    between.write(
                        Region::Span {
                            start,
                            len: band.len() as u64,
                        },
                        band,
                    )?;
                }
            }
        } else {
            let groups_per_band = (band.len() / block).min(groups);
            for first in (0..groups).step_by(groups_per_band) {
                for (i, target) in band.chunks_exact_mut(block).take(groups_per_band).enumerate() {
                    let source = &tile[(first + i) * block..(first + i + 1) * block];
                    transpose_block(source, width, width2, width, target);
                }
                let region = Region::Panel {
                    row_len,
                    first_row: first_group + first as u64,
                    rows: groups_per_band as u64,
                    first_column: panel * block as u64,
                    columns: block as u64,
                };
                between.write(region, band)?;
            }
        }
        Ok(())
    }

    fn second_pass(&self, between: &Column<T::Element>, placement: Placement) -> Result<Column<T::Element>> {
        let workspace = between.workspace();
        let (n1, n2) = (1u64 << self.log_n1, 1u64 << self.log_n2);
        let width = self.columns2();
        let mut output = self
            .output(workspace, placement)?
            .with_writes_behind(BANDS_BEHIND);
        let twiddles = Twiddles::new(self.log_n2, self.transform.omega.pow([n1]))?;
        let mut tile = self.tile(between)?;
        let [_, slices] = self.slices();
        let (slice_rows, rows_per_band) = self.rows_of_second_pass();
        let mut reader = between.reader(ascending(n1 * n2, slice_rows * width), slices.ahead)?;
        for values in tile.chunks_mut((slice_rows * width) as usize) {
            reader.next_into(values)?;
        }
        for group in 0..n1 / width {
            let twist = Twist {
                root: F::ONE,
                first_row: 0,
                first_column: group * width,
                scale: F::ONE,
                base: self.transform.after,
                row: self.transform.after.pow([n1]),
            };
            let twist = (!self.transform.after.is_one()).then_some(&twist);
            self.tiles
                .columns(&mut tile, width as usize, &twiddles, &F::ONE, twist);
            for (slice, values) in (0..).zip(tile.chunks_mut((slice_rows * width) as usize)) {
                let bands = values.chunks((rows_per_band * width) as usize);
                for (first_row, band) in (slice * slice_rows..).step_by(rows_per_band as usize).zip(bands) {
                    let region = Region::Panel {
                        row_len: n1,
                        first_row,
                        rows: rows_per_band,
                        first_column: group * width,
                        columns: width,
                    };
                    output.write(region, band)?;
                }
                reader.next_into(values)?;
            }
        }
        output.finish()
    }
}

/// The panels of pass 1, slice by slice: what the input is too short for is zero.
struct Panels<'a, E> {
    zero: E,
    input: &'a Column<E>,
    reader: Reader<E>,
    row_len: u64,
    width: u64,
    slice_rows: u64,
    rows_per_read: u64,
}

impl<'a, E: Element> Panels<'a, E> {
    fn new<F: KernelField, T: Tiles<F, Element = E>>(
        shape: &FourStep<'_, F, T>,
        input: &'a Column<E>,
        slice_rows: u64,
        ahead: usize,
    ) -> Result<Self> {
        let (n2, width) = (1u64 << shape.log_n2, shape.columns1());
        let slices = (1u64 << shape.log_n1) / slice_rows;
        // Rows that the input has whole.
        let rows = input.len() / n2;
        let rows_per_read = Self::rows_per_read(slice_rows * width, width, input);
        let regions = (0..n2 / width * slices).flat_map(move |slice| {
            let panel = slice / slices;
            let first = (slice % slices * slice_rows).min(rows);
            let end = (first + slice_rows).min(rows);
            (first..end)
                .step_by(rows_per_read as usize)
                .map(move |first_row| Region::Panel {
                    row_len: n2,
                    first_row,
                    rows: rows_per_read.min(end - first_row),
                    first_column: panel * width,
                    columns: width,
                })
        });
        Ok(Self {
            zero: T::ZERO,
            input,
            reader: input.reader(regions, ahead)?,
            row_len: n2,
            width,
            slice_rows,
            rows_per_read,
        })
    }

    /// Rows of a panel that are read at a time: a run shorter than the input's frame brings the whole frame along, and then a slice of
    /// so many elements comes in several reads.
    fn rows_per_read(slice: u64, width: u64, input: &Column<E>) -> u64 {
        (slice / width.max(input.frame_elements())).max(1)
    }

    /// Bytes of the frames of the largest read, and of all reads, of an input of full length.
    fn bytes<F: KernelField, T: Tiles<F, Element = E>>(
        shape: &FourStep<'_, F, T>,
        input: &Column<E>,
        slices: &Slices,
    ) -> (u64, u64) {
        let (n1, n2, width) = (1u64 << shape.log_n1, 1u64 << shape.log_n2, shape.columns1());
        let (frame, slice_rows) = (input.frame_elements(), n1 / slices.count);
        let per_read = Self::rows_per_read(slice_rows * width, width, input);
        let frames = |rows: u64| match width < n2 && n2 >= frame {
            true => rows * (width / frame).max(1),
            false => (rows * n2).div_ceil(frame),
        };
        let rest = slice_rows % per_read;
        let slice = (slice_rows / per_read) * frames(per_read) + if rest > 0 { frames(rest) } else { 0 };
        let frame_bytes = input.transfer_bytes(1);
        (
            frames(per_read) * frame_bytes,
            slice * slices.count * (n2 / width) * frame_bytes,
        )
    }

    /// The slice of a panel; slices come in order. After the last panel there is nothing to do.
    fn next_into(&mut self, panel: u64, slice: u64, values: &mut [E]) -> Result<()> {
        let (row_len, width) = (self.row_len, self.width);
        let first_column = panel * width;
        if first_column >= row_len {
            return Ok(());
        }
        let (rows, ragged) = (self.input.len() / row_len, self.input.len() % row_len);
        let first_row = slice * self.slice_rows;
        let whole = rows.saturating_sub(first_row).min(self.slice_rows);
        let (present, absent) = values.split_at_mut((whole * width) as usize);
        for part in present.chunks_mut((self.rows_per_read * width) as usize) {
            self.reader.next_into(part)?;
        }
        absent.fill(self.zero);
        // What the input has of one more row is read apart.
        let holds_ragged = (first_row..first_row + self.slice_rows).contains(&rows);
        if holds_ragged && ragged > first_column {
            let region = Region::Span {
                start: rows * row_len + first_column,
                len: (ragged - first_column).min(width),
            };
            self.input.read(region, absent)?;
        }
        Ok(())
    }
}
