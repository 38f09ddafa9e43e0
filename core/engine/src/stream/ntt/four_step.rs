//! The two passes of a transform that is larger than its tile, and the three of two transforms, one after the
//! other: see [`super`].

use super::combine::{Combine, combine_tiles};
use super::halves::Halves;
use super::panels::{PanelShape, Panels};
use super::plan::{BANDS_BEHIND, Slices, between_frame_bytes, log_band, run_frame_bytes};
use super::{TILE, Tiles};
use crate::Result;
use crate::budget::{LeasedVec, PAGE_BYTES};
use crate::column::{Column, Draft, Element, Placement, Region, SCRATCH_FRAME_BYTES, Workspace, ascending};
use crate::stream::Transform;
use crate::stream::deal::Group;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::ntt::{Twiddles, transpose_block};

const BETWEEN: &str = "transform, between its passes";

/// One four-step transform.
pub(super) struct FourStep<'a, F, T> {
    pub(super) tiles: &'a T,
    pub(super) transform: &'a Transform<F>,
    /// log2 of the elements of a tile of each pass.
    pub(super) log_tiles: [u32; 2],
    /// log2 of the length of each pass's transforms: n1 and n2.
    pub(super) log_lengths: [u32; 2],
}

impl<F: KernelField, T: Tiles<F>> FourStep<'_, F, T> {
    /// Bytes of an element on disk.
    const ELEMENT_BYTES: u64 = T::Element::BYTES as u64;

    /// n1 and n2.
    pub(super) fn lengths(&self) -> [u64; 2] {
        self.log_lengths.map(|log_length| 1 << log_length)
    }

    fn panel_shape(&self, slices: &Slices) -> PanelShape {
        let lengths = self.lengths();
        PanelShape {
            lengths,
            width: self.columns1(),
            slice_rows: lengths[0] / slices.count,
        }
    }

    /// Columns of a panel of pass 1.
    pub(super) fn columns1(&self) -> u64 {
        1 << (self.log_tiles[0] - self.log_lengths[0])
    }

    /// Columns of a panel of pass 2.
    fn columns2(&self) -> u64 {
        1 << (self.log_tiles[1] - self.log_lengths[1])
    }

    fn len(&self) -> u64 {
        1 << self.log_lengths.iter().sum::<u32>()
    }

    fn slices(&self) -> [Slices; 2] {
        Slices::of(self.log_tiles, self.log_lengths, Self::ELEMENT_BYTES)
    }

    /// Elements of a band of pass 1.
    fn band_len(&self) -> u64 {
        1 << log_band(self.log_tiles[0], Self::ELEMENT_BYTES)
    }

    /// The column between the passes.
    fn between(&self, workspace: &Workspace) -> Result<Draft<T::Element>> {
        let block = self.columns1() * self.columns2();
        // No more than a slice of either pass.
        let band = self
            .log_tiles
            .map(|log_tile| log_band(log_tile, Self::ELEMENT_BYTES));
        let frame_bytes = between_frame_bytes(block, 1 << band[0].min(band[1]), Self::ELEMENT_BYTES) as usize;
        Draft::scratch_with_frames(workspace, BETWEEN, self.len(), Placement::Disk, frame_bytes)
    }

    /// The column that comes out.
    fn output(&self, workspace: &Workspace, placement: Placement) -> Result<Draft<T::Element>> {
        let frame_bytes =
            run_frame_bytes(self.columns2(), Self::ELEMENT_BYTES, SCRATCH_FRAME_BYTES as u64) as usize;
        Draft::scratch_with_frames(workspace, "transform", self.len(), placement, frame_bytes)
    }

    /// Rows of a slice of the second pass's tile, and of a band of it.
    fn rows_of_second_pass(&self) -> (u64, u64) {
        let [_, slices] = self.slices();
        let slice_rows = self.lengths()[1] / slices.count;
        let rows_per_band = (1u64 << log_band(self.log_tiles[1], Self::ELEMENT_BYTES)) / self.columns2();
        (slice_rows, rows_per_band.clamp(1, slice_rows))
    }

    fn tile(&self, pass: usize, workspace: &Workspace) -> Result<LeasedVec<T::Element>> {
        workspace.budget.vec(1 << self.log_tiles[pass], T::ZERO, TILE)
    }

    fn halves(&self) -> Halves<'_, F, T> {
        Halves {
            tiles: self.tiles,
            transform: self.transform,
            log_lengths: self.log_lengths,
        }
    }

    /// Transforms a panel of the first pass.
    fn first_columns(&self, tile: &mut [T::Element], panel: u64, twiddles: &Twiddles<F>) {
        let width = self.columns1();
        let start = panel * width;
        self.halves().first(tile, Group { start, width }, twiddles);
    }

    /// Transforms a group of the second pass.
    fn second_columns(&self, tile: &mut [T::Element], group: u64, twiddles: &Twiddles<F>) {
        let width = self.columns2();
        let start = group * width;
        self.halves().second(tile, Group { start, width }, twiddles);
    }

    /// The first pass.
    pub(super) fn first_pass(&self, input: &Column<T::Element>) -> Result<Column<T::Element>> {
        if input.workspace().is_dry() {
            return self.rehearse_first_pass(input);
        }
        let [slices, _] = self.slices();
        let mut panels = Panels::new(self.panel_shape(&slices), T::ZERO, input, slices.ahead)?;
        let twiddles = self.halves().twiddles(0)?;
        self.to_blocks(
            input.workspace(),
            |panel, slice, values| panels.next_into(panel, slice, values),
            |tile, panel| self.first_columns(tile, panel, &twiddles),
        )
    }

    fn rehearse_first_pass(&self, input: &Column<T::Element>) -> Result<Column<T::Element>> {
        let [slices, _] = self.slices();
        let (read_bytes, all_bytes) = Panels::bytes(self.panel_shape(&slices), input);
        let raw_bytes = read_bytes.next_multiple_of(PAGE_BYTES as u64) * slices.ahead as u64;
        let between = self.rehearse_to_blocks(input.workspace(), raw_bytes, self.log_lengths[0])?;
        input.count_read_bytes(all_bytes);
        Ok(between)
    }

    /// The second pass of this transform and the first of `next`, which takes what this one gives. A tile of
    /// rows is a tile of both, since `next` has the lengths of this one in the reverse order.
    pub(super) fn middle_pass(
        &self,
        next: &Self,
        between: &Column<T::Element>,
    ) -> Result<Column<T::Element>> {
        let workspace = between.workspace();
        let [slices, _] = next.slices();
        let slice = (1 << next.log_tiles[0]) / slices.count;
        if workspace.is_dry() {
            let raw_bytes = between.reader_bytes(slice, slices.ahead as u64);
            let log_layers = self.log_lengths[1] + next.log_lengths[0];
            let output = next.rehearse_to_blocks(workspace, raw_bytes, log_layers)?;
            between.count_read();
            return Ok(output);
        }
        let mut reader = between.reader(ascending(between.len(), slice), slices.ahead)?;
        let (twiddles, next_twiddles) = (self.halves().twiddles(1)?, next.halves().twiddles(0)?);
        next.to_blocks(
            workspace,
            |_, _, values| reader.next_into(values).map(drop),
            |tile, group| {
                self.second_columns(tile, group, &twiddles);
                next.first_columns(tile, group, &next_twiddles);
            },
        )
    }

    /// What a first pass writes: `read` fills a slice of a panel, and does nothing after the last panel;
    /// `transform` gets the whole panel.
    fn to_blocks(
        &self,
        workspace: &Workspace,
        mut read: impl FnMut(u64, u64, &mut [T::Element]) -> Result<()>,
        transform: impl Fn(&mut [T::Element], u64),
    ) -> Result<Column<T::Element>> {
        let [n1, n2] = self.lengths();
        let width = self.columns1();
        let mut between = self.between(workspace)?.with_writes_behind(BANDS_BEHIND);
        let mut tile = self.tile(0, workspace)?;
        let mut band = workspace
            .budget
            .vec(self.band_len() as usize, T::ZERO, "transform band")?;
        let [slices, _] = self.slices();
        let slice_rows = n1 / slices.count;
        let slice_len = (slice_rows * width) as usize;
        for (slice, values) in (0..).zip(tile.chunks_mut(slice_len)) {
            read(0, slice, values)?;
        }
        for panel in 0..n2 / width {
            transform(&mut tile, panel);
            for (slice, values) in (0..).zip(tile.chunks_mut(slice_len)) {
                let first_group = slice * slice_rows / self.columns2();
                self.write_blocks(&mut between, values, &mut band, panel, first_group)?;
                read(panel + 1, slice, values)?;
            }
        }
        between.finish()
    }

    /// The dry run of [`Self::to_blocks`], beside readers of so many bytes, with transforms of so many
    /// layers.
    fn rehearse_to_blocks(
        &self,
        workspace: &Workspace,
        raw_bytes: u64,
        log_layers: u32,
    ) -> Result<Column<T::Element>> {
        let value_bytes = size_of::<T::Element>() as u64;
        let between = self.between(workspace)?;
        let frame_bytes = between.frame_elements() * Self::ELEMENT_BYTES;
        let band_bytes = self.band_len() * Self::ELEMENT_BYTES;
        let behind_bytes = band_bytes.max(frame_bytes).next_multiple_of(PAGE_BYTES as u64);
        let _held = (
            workspace.hold(value_bytes << self.log_tiles[0], TILE)?,
            workspace.hold(value_bytes * self.band_len(), TILE)?,
            workspace.hold(raw_bytes + BANDS_BEHIND as u64 * behind_bytes, TILE)?,
        );
        workspace.passed(1, T::work(self.len() as f64 * f64::from(log_layers) / 2.0));
        between.finish()
    }

    /// Writes blocks of a panel, transposed: block `group` of the panel has rows `group * columns2 ..` of it,
    /// and stands at `(group * panels + panel) * block` of the column. `tile` begins with block
    /// `first_group`.
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
        let row_len = (width2 as u64) << self.log_lengths[1];
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

    /// The second pass, of one column or several, of which `combine` leaves in the first what is written.
    pub(super) fn second_pass(
        &self,
        betweens: &[Column<T::Element>],
        combine: &Combine<T::Element>,
        placement: Placement,
    ) -> Result<Column<T::Element>> {
        let [first, ..] = betweens else {
            unreachable!("a column at least");
        };
        let workspace = first.workspace();
        let [n1, n2] = self.lengths();
        let width = self.columns2();
        let [_, slices] = self.slices();
        let (slice_rows, rows_per_band) = self.rows_of_second_pass();
        let slice_len = slice_rows * width;
        let output = self.output(workspace, placement)?;
        if workspace.is_dry() {
            return self.rehearse_second_pass(betweens, output);
        }
        let mut output = output.with_writes_behind(BANDS_BEHIND);
        let twiddles = self.halves().twiddles(1)?;
        let tile = |_: &_| self.tile(1, workspace);
        let mut tiles: Vec<_> = betweens.iter().map(tile).collect::<Result<_>>()?;
        let reader = |between: &Column<_>| between.reader(ascending(n1 * n2, slice_len), slices.ahead);
        let mut readers: Vec<_> = betweens.iter().map(reader).collect::<Result<_>>()?;
        for (reader, tile) in readers.iter_mut().zip(&mut tiles) {
            for values in tile.chunks_mut(slice_len as usize) {
                reader.next_into(values)?;
            }
        }
        for group in 0..n1 / width {
            for tile in &mut tiles {
                self.second_columns(tile, group, &twiddles);
            }
            combine_tiles(&mut tiles, combine);
            for slice in 0..slices.count {
                let place = (slice * slice_len) as usize..((slice + 1) * slice_len) as usize;
                let bands = tiles[0][place.clone()].chunks((rows_per_band * width) as usize);
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
                for (reader, tile) in readers.iter_mut().zip(&mut tiles) {
                    reader.next_into(&mut tile[place.clone()])?;
                }
            }
        }
        output.finish()
    }

    fn rehearse_second_pass(
        &self,
        betweens: &[Column<T::Element>],
        output: Draft<T::Element>,
    ) -> Result<Column<T::Element>> {
        let (slice_rows, rows_per_band) = self.rows_of_second_pass();
        let width = self.columns2();
        let [_, slices] = self.slices();
        let band_bytes = (rows_per_band * width * Self::ELEMENT_BYTES).next_multiple_of(PAGE_BYTES as u64);
        let tile_bytes = (size_of::<T::Element>() as u64) << self.log_tiles[1];
        let mut held_bytes = BANDS_BEHIND as u64 * band_bytes;
        for between in betweens {
            held_bytes += tile_bytes + between.reader_bytes(slice_rows * width, slices.ahead as u64);
        }
        let workspace = betweens[0].workspace();
        let _held = workspace.hold(held_bytes, TILE)?;
        let butterflies = self.len() as f64 * f64::from(self.log_lengths[1]) / 2.0;
        for between in betweens {
            workspace.passed(1, T::work(butterflies));
            between.count_read();
        }
        output.finish()
    }
}
