//! Columns that are dealt to ranks, transformed twice, one transform after the other, and combined element by
//! element: [`super::transform_twice`], over [`Deal`]'s shares.
//!
//! Three passes, as over the disk of one rank, with an exchange between them in place of a column: *columns,
//! exchange, rows, exchange, columns*. No rank gathers anything. Each pass transforms groups of its share, and
//! writes what comes of a group in blocks, transposed, one for each group of each rank in the next pass: what
//! a rank will read for one of its groups is one run of each rank's, and what goes from rank to rank is one
//! span ([`Redeal`]). A rank sends `inputs * (n / d) * (1 - 1 / d)` elements in each exchange where all shares
//! are equal.
//!
//! The output is in groups, too: see [`DealtTransforms::output_groups`].
//!
//! An accelerator is offered each tile, as a [`Panel`](crate::accelerator::Panel): ranks need not have the same one, nor
//! any. Of a tile that it has written in part before it failed, the group is read again.
//!
//! Memory: a tile of a group (of each column in the last pass), a band of it and [`BANDS_BEHIND`] that are
//! being written, and [`AHEAD`] reads of a tile's eighth at most, a mebibyte at most; for an exchange, five
//! pieces.

use super::combine::{Combine, combine_tiles};
use super::halves::Halves;
use super::plan::{BANDS_BEHIND, run_frame_bytes};
use super::{ScalarTiles, TILE};
use crate::Result;
use crate::accelerator;
use crate::budget::PAGE_BYTES;
use crate::column::{Column, Draft, Element, Placement, Reader, Region, SCRATCH_FRAME_BYTES, Workspace};
use crate::dry::Work;
use crate::error::{Error, Invalid};
use crate::stream::deal::{Deal, FRAME_MIN, GRAIN, Group, Side, groups, stride_of};
use crate::stream::offload::{Tried, half_of, offer_panel, panel};
use crate::stream::redeal::{Redeal, all_gather};
use crate::stream::transform::Transform;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::ntt::{NttElement, Twiddles, forget_buffers, transpose_block};
use spillproof_ranks::Ranks;

/// Reads of a column that are on their way.
const AHEAD: usize = 2;
/// Elements of a read, at most and, where a tile has them, at least.
const SLICE_MAX: u64 = 1 << 15;
const SLICE_MIN: u64 = 1 << 12;
/// Elements of a band, at most and, where a tile has them, at least.
const BAND_MAX: u64 = 1 << 15;
const BAND_MIN: u64 = 1 << 13;
/// Columns of a group, at most.
const WIDTH_MAX: u64 = 1 << 12;
/// Bytes of a frame of what is exchanged, at most.
const FRAME_BYTES_MAX: u64 = 64 * 1024;

/// Two transforms of dealt columns, whose passes all ranks have agreed on.
pub struct DealtTransforms<'a, F> {
    ranks: &'a Ranks,
    deal: &'a Deal,
    /// The second one has the lengths of the first in the reverse order.
    halves: [Halves<'a, F, ScalarTiles>; 2],
    inputs: u64,
    /// Of the first pass, on this rank.
    first_width: u64,
    /// The widest group of the rows of each rank in the middle pass, and of its columns in the last one.
    widths: [Vec<u64>; 2],
}

impl<'a, F: KernelField + NttElement<F> + Element> DealtTransforms<'a, F> {
    /// Agrees with all ranks on the passes for so many columns, of which this rank's take `available_bytes` at
    /// most.
    ///
    /// # Errors
    /// [`Invalid::Length`] for transforms that do not have the deal's length, or ranks that are not as many as
    /// it has; [`Error::BudgetTooSmall`]; [`Error::Ranks`].
    pub fn agree(
        ranks: &'a Ranks,
        deal: &'a Deal,
        transforms: [&'a Transform<F>; 2],
        inputs: u64,
        available_bytes: u64,
    ) -> Result<Self> {
        let n = 1u64 << deal.log_n();
        for transform in transforms {
            Invalid::unless_equal("elements of a dealt transform", 1 << transform.log_n, n)?;
        }
        Invalid::unless_equal("ranks of a deal", deal.ranks() as u64, ranks.size() as u64)?;
        let [log_n1, log_n2] = deal.log_lengths();
        let halves = |transform, log_lengths| Halves {
            tiles: &ScalarTiles,
            transform,
            log_lengths,
        };
        let width = |side: Side, tiles| {
            let share = deal.share(side, ranks.rank());
            let share_len = share.end - share.start;
            width_within::<F>(share_len, deal.len(side.other()), tiles, available_bytes)
        };
        let own = [width(Side::Rows, 1)?, width(Side::Columns, inputs)?];
        let all = all_gather(ranks, &own.map(u64::to_le_bytes).concat())?;
        let of_ranks = |side: Side| {
            let at = 8 * side as usize;
            let width = |bytes: &Vec<u8>| {
                let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
                bytes.map_or(1, |bytes| u64::from_le_bytes(bytes).max(1))
            };
            all.iter().map(width).collect()
        };
        Ok(Self {
            ranks,
            deal,
            halves: [
                halves(transforms[0], [log_n1, log_n2]),
                halves(transforms[1], [log_n2, log_n1]),
            ],
            inputs,
            first_width: width(Side::Columns, 1)?,
            widths: [of_ranks(Side::Rows), of_ranks(Side::Columns)],
        })
    }

    /// What the order of the exchanged columns depends on: of two transforms of one deal, those with the same are in
    /// the same order.
    pub fn order(&self) -> Vec<u8> {
        let widths = self.widths.iter().flatten();
        widths.flat_map(|width| width.to_le_bytes()).collect()
    }

    /// Bytes of a frame of the inputs, whose runs the first pass reads.
    pub fn input_frame_bytes(&self) -> usize {
        run_frame_bytes(self.first_width, F::BYTES as u64, SCRATCH_FRAME_BYTES as u64) as usize
    }

    /// The groups of this rank's columns that the output is in, one after the other: first column, counted
    /// from the start of its share, and width. In each, rows follow each other: the element of row `i1` and
    /// column `c` of a group stands at `i1 * width + c` of it.
    pub fn output_groups(&self) -> impl Iterator<Item = (u64, u64)> {
        let share = self.share(Side::Columns);
        groups(share.width, self.width(Side::Columns)).map(|group| (group.start, group.width))
    }

    /// The first pass, over this rank's columns, each a matrix of n1 rows, row-major. They are dropped as soon
    /// as they have been read.
    ///
    /// # Errors
    /// [`Invalid::Length`] for other inputs than were agreed on; what reading and writing columns may give.
    pub fn first_pass(&self, inputs: Vec<Column<F>>) -> Result<Redeal> {
        Invalid::unless_equal("columns of a dealt transform", inputs.len() as u64, self.inputs)?;
        let (share, share_len) = (self.share(Side::Columns), self.deal.share_len(self.ranks.rank()));
        for input in &inputs {
            Invalid::unless_equal("elements of a dealt column", input.len(), share_len)?;
        }
        let Some(first) = inputs.first() else {
            return Err(Invalid::Empty {
                what: "columns of a dealt transform",
            }
            .into());
        };
        let mut pass = self.outgoing(Side::Columns, self.first_width, first.workspace())?;
        let halves = [self.half(0, 0)?];
        for (index, input) in (0..).zip(inputs) {
            let regions = |group: Group| panels(self.deal.len(Side::Rows), share.width, group);
            self.to_blocks(&mut pass, (&input, index), &regions, &halves)?;
        }
        self.redeal(pass)
    }

    /// The second half of the first transform and the first of the second, over this rank's rows.
    ///
    /// # Errors
    /// What reading and writing columns may give.
    pub fn middle_pass(&self, incoming: Column<F>) -> Result<Redeal> {
        let mut pass = self.outgoing(Side::Rows, self.width(Side::Rows), incoming.workspace())?;
        let halves = [self.half(0, 1)?, self.half(1, 0)?];
        for index in 0..self.inputs {
            let regions = |group: Group| self.incoming_regions(Side::Rows, index, group);
            self.to_blocks(&mut pass, (&incoming, index), &regions, &halves)?;
        }
        drop(incoming);
        self.redeal(pass)
    }

    /// The second half of the second transform, over this rank's columns, and their combination, in
    /// [groups](Self::output_groups).
    ///
    /// # Errors
    /// What reading and writing columns may give.
    pub fn last_pass(
        &self,
        incoming: &Column<F>,
        combine: &Combine<F>,
        placement: Placement,
    ) -> Result<Column<F>> {
        let workspace = incoming.workspace();
        let (share, width) = (self.share(Side::Columns), self.width(Side::Columns));
        let height = self.deal.len(Side::Rows);
        let tile = Tile::of(height, share.width, width);
        let smallest = groups(share.width, width).last().map_or(1, |group| group.width);
        let frame_bytes = run_frame_bytes(height * smallest, F::BYTES as u64, SCRATCH_FRAME_BYTES as u64);
        let output = Draft::scratch_with_frames(
            workspace,
            "dealt transform",
            height * share.width,
            placement,
            frame_bytes as usize,
        )?;
        let halves = [self.half(1, 1)?];
        if workspace.is_dry() {
            let first = groups(share.width, width).next();
            let regions_of_first = first.map(|group| self.incoming_regions(Side::Columns, 0, group));
            let _held = workspace.hold(
                self.inputs * tile.bytes::<F>()
                    + self.inputs * Self::reads_bytes(incoming, regions_of_first)
                    + tile.behind_bytes::<F>(),
                TILE,
            )?;
            incoming.count_read();
            self.passed(workspace, (height, share.width, width), self.inputs, &halves);
            return output.finish();
        }
        let mut output = output.with_writes_behind(BANDS_BEHIND);
        let regions = |index| move |group| self.incoming_regions(Side::Columns, index, group);
        let (mut tiles, mut readers) = (Vec::new(), Vec::new());
        for index in 0..self.inputs {
            tiles.push(workspace.budget.vec(tile.elements as usize, F::ZERO, TILE)?);
            readers.push(Groups::new(incoming, (share.width, width), regions(index))?);
        }
        for group in groups(share.width, width) {
            let elements = (height * group.width) as usize;
            let mut parts = Vec::with_capacity(tiles.len());
            for (tile, reader) in tiles.iter_mut().zip(&mut readers) {
                let part = &mut tile[..elements];
                self.made(reader, part, (Side::Columns, group), &halves)?;
                parts.push(part);
            }
            combine_tiles(&mut parts, combine);
            let start = height * group.start;
            for (first, band) in (start..)
                .step_by(tile.band as usize)
                .zip(parts[0].chunks(tile.band as usize))
            {
                let len = band.len() as u64;
                output.write(Region::Span { start: first, len }, band)?;
            }
        }
        forget_buffers();
        output.finish()
    }
}

/// What goes from this rank's share of one side to all ranks' shares of the other one, as it is written.
struct Outgoing<F> {
    /// The side of this rank's share.
    side: Side,
    width: u64,
    tile: Tile,
    blocks: Vec<Block>,
    draft: Draft<F>,
}

/// A part of this rank's share: all that one group of one rank will read in the next pass.
struct Block {
    /// The first of its rows in a tile of this pass, and how many.
    rows: Group,
    /// Where it stands, for the first input, and how far apart those of two inputs are.
    start: u64,
    stride: u64,
}

impl<F: KernelField + NttElement<F> + Element> DealtTransforms<'_, F> {
    /// This rank's share of a side.
    fn share(&self, side: Side) -> Group {
        let share = self.deal.share(side, self.ranks.rank());
        Group {
            start: share.start,
            width: share.end - share.start,
        }
    }

    /// The widest group of a side on this rank, in the pass that reads what was exchanged.
    fn width(&self, side: Side) -> u64 {
        self.widths[side as usize][self.ranks.rank()]
    }

    /// A group of this rank's share, by its place in the matrix.
    fn in_matrix(&self, side: Side, group: Group) -> Group {
        Group {
            start: self.share(side).start + group.start,
            width: group.width,
        }
    }

    fn outgoing(&self, side: Side, width: u64, workspace: &Workspace) -> Result<Outgoing<F>> {
        let (share, other) = (self.share(side), side.other());
        let (mut blocks, mut base) = (Vec::new(), 0);
        for (rank, elements) in self
            .deal
            .crossing(side, self.ranks.rank())
            .into_iter()
            .enumerate()
        {
            let theirs = self.deal.share(other, rank);
            let stride = stride_of(elements);
            let block = |group: Group| Block {
                rows: Group {
                    start: theirs.start + group.start,
                    width: group.width,
                },
                start: base + share.width * group.start,
                stride,
            };
            blocks.extend(groups(theirs.end - theirs.start, self.widths[other as usize][rank]).map(block));
            base += self.inputs * stride;
        }
        let tile = Tile::of(self.deal.len(other), share.width, width);
        let runs = groups(share.width, width).flat_map(|group| {
            let rows = blocks.iter().map(|block| block.rows.width);
            rows.map(move |rows| tile.columns_of_band(group.width, rows) * rows)
        });
        let run = runs.min().unwrap_or(FRAME_MIN);
        let frame_bytes = run_frame_bytes(run, F::BYTES as u64, FRAME_BYTES_MAX) as usize;
        let draft =
            Draft::scratch_with_frames(workspace, "dealt columns", base, Placement::Disk, frame_bytes)?;
        Ok(Outgoing {
            side,
            width,
            tile,
            blocks,
            draft: draft.with_writes_behind(BANDS_BEHIND),
        })
    }

    /// The first half of a transform or the second, each of them 0 or 1.
    fn half(&self, transform: usize, index: usize) -> Result<HalfPass<'_, F>> {
        let of = &self.halves[transform];
        Ok(HalfPass {
            of,
            twiddles: of.twiddles(index)?,
            is_second: index == 1,
        })
    }

    /// Reads the next group of a side into a tile, and makes halves of transforms of it.
    fn made(
        &self,
        reader: &mut Groups<'_, F>,
        tile: &mut [F],
        (side, group): (Side, Group),
        halves: &[HalfPass<'_, F>],
    ) -> Result<()> {
        let columns = self.in_matrix(side, group);
        reader.read(tile)?;
        let tried = panel(reader.source.workspace(), tile, columns, &HalfPass::jobs(halves))?;
        if tried == Tried::Void {
            reader.read_again(group, tile)?;
        }
        if tried != Tried::Done {
            halves.iter().for_each(|half| half.make(tile, columns));
        }
        Ok(())
    }

    /// Transforms the groups of one input, and writes them in blocks. `regions` are those of a group in the
    /// order of its tile; `halves` of a transform are made of each.
    fn to_blocks(
        &self,
        outgoing: &mut Outgoing<F>,
        (source, input): (&Column<F>, u64),
        regions: &dyn Fn(Group) -> Vec<Region>,
        halves: &[HalfPass<'_, F>],
    ) -> Result<()> {
        let (workspace, side, width) = (source.workspace(), outgoing.side, outgoing.width);
        let (share, height) = (self.share(side), self.deal.len(side.other()));
        let (tile_len, band_len) = (outgoing.tile.elements as usize, outgoing.tile.band as usize);
        if workspace.is_dry() {
            let reads_bytes = Self::reads_bytes(source, groups(share.width, width).next().map(regions));
            let _held = workspace.hold(
                outgoing.tile.bytes::<F>() + reads_bytes + outgoing.tile.behind_bytes::<F>(),
                TILE,
            )?;
            source.count_read_bytes(source.len() / self.inputs_in(side) * F::BYTES as u64);
            self.passed(workspace, (height, share.width, width), 1, halves);
            return Ok(());
        }
        let mut tile = workspace.budget.vec(tile_len, F::ZERO, TILE)?;
        let mut band = (workspace.budget).vec(band_len.max(FRAME_MIN as usize), F::ZERO, "transform band")?;
        let mut reader = Groups::new(source, (share.width, width), regions)?;
        for group in groups(share.width, width) {
            let tile = &mut tile[..(height * group.width) as usize];
            self.made(&mut reader, tile, (side, group), halves)?;
            for block in &outgoing.blocks {
                let rows = block.rows.width;
                let columns = outgoing.tile.columns_of_band(group.width, rows);
                let source = &tile[(block.rows.start * group.width) as usize..];
                for first in (0..group.width).step_by(columns as usize) {
                    let (source_width, height) = (group.width as usize, rows as usize);
                    let len = columns * rows;
                    transpose_block(
                        &source[first as usize..],
                        source_width,
                        height,
                        columns as usize,
                        &mut band,
                    );
                    // The only block of a matrix that is smaller than a frame.
                    let padded = len.max(block.stride.min(FRAME_MIN));
                    band[len as usize..padded as usize].fill(F::ZERO);
                    let start = block.start + input * block.stride + (group.start + first) * rows;
                    outgoing.draft.write(Region::Span { start, len: padded }, &band)?;
                }
            }
        }
        forget_buffers();
        Ok(())
    }

    /// Columns that one column on the disk holds, before a pass over a side that is not the last.
    fn inputs_in(&self, side: Side) -> u64 {
        match side {
            Side::Columns => 1,
            Side::Rows => self.inputs,
        }
    }

    fn redeal(&self, outgoing: Outgoing<F>) -> Result<Redeal> {
        let (rank, exchange) = (self.ranks.rank(), usize::from(outgoing.side == Side::Rows));
        // What a rank sends here is its share of this side, times this rank's of the other one: as much as this
        // rank would send to it in the other exchange.
        let sent = self.deal.exchanged(exchange, rank, self.inputs);
        let received = self.deal.exchanged(1 - exchange, rank, self.inputs);
        let column = outgoing.draft.finish()?;
        Redeal::new(self.ranks, &column, [sent, received])
    }

    /// Where a group of the share of a side is in what the exchange has brought, in the order of a tile.
    fn incoming_regions(&self, side: Side, input: u64, group: Group) -> Vec<Region> {
        let (mut regions, mut base) = (Vec::new(), 0);
        let tile = Tile::of(
            self.deal.len(side.other()),
            self.share(side).width,
            self.width(side),
        );
        for (rank, elements) in self
            .deal
            .crossing(side, self.ranks.rank())
            .into_iter()
            .enumerate()
        {
            let theirs = self.deal.share(side.other(), rank);
            let (height, stride) = (theirs.end - theirs.start, stride_of(elements));
            let start = base + input * stride + height * group.start;
            let end = start + height * group.width;
            regions.extend(
                (start..end)
                    .step_by(tile.slice as usize)
                    .map(|start| Region::Span {
                        start,
                        len: tile.slice.min(end - start),
                    }),
            );
            base += self.inputs * stride;
        }
        regions
    }

    /// For a dry run: what a reader of a pass leases, whose first group, as wide as any, has these regions.
    fn reads_bytes(source: &Column<F>, regions: Option<Vec<Region>>) -> u64 {
        let regions = regions.unwrap_or_default();
        let most = regions
            .iter()
            .map(|region| source.region_bytes(*region))
            .max()
            .unwrap_or(0);
        (AHEAD.min(regions.len()) as u64 * most).next_multiple_of(PAGE_BYTES as u64)
    }

    /// For a dry run: a pass over columns of this height, in groups of this width, of so many inputs.
    fn passed(
        &self,
        workspace: &Workspace,
        (height, columns, width): (u64, u64, u64),
        inputs: u64,
        halves: &[HalfPass<'_, F>],
    ) {
        let jobs = HalfPass::jobs(halves);
        for group in (0..inputs).flat_map(|_| groups(columns, width)) {
            offer_panel(workspace, height.ilog2(), group.width, &jobs);
        }
        let elements = (columns * height * inputs * halves.len() as u64) as f64;
        workspace.passed(1, Work::butterflies(elements * f64::from(height.ilog2()) / 2.0));
    }
}

/// A half of a transform, with its factors.
struct HalfPass<'a, F> {
    of: &'a Halves<'a, F, ScalarTiles>,
    twiddles: Twiddles<F>,
    is_second: bool,
}

impl<F: KernelField + NttElement<F> + Element> HalfPass<'_, F> {
    fn make(&self, tile: &mut [F], columns: Group) {
        match self.is_second {
            true => self.of.second(tile, columns, &self.twiddles),
            false => self.of.first(tile, columns, &self.twiddles),
        }
    }

    /// Halves as an accelerator makes them; none if it cannot.
    fn jobs(halves: &[Self]) -> Vec<accelerator::Half> {
        let halves = halves
            .iter()
            .map(|half| half_of(half.of.transform, half.is_second));
        halves.collect::<Option<_>>().unwrap_or_default()
    }
}

/// The groups of a share, which are read one after the other.
struct Groups<'a, F: Element> {
    source: &'a Column<F>,
    /// Of the share, and of the widest group.
    widths: (u64, u64),
    /// Those of a group, in the order of its tile.
    regions: Box<dyn Fn(Group) -> Vec<Region> + 'a>,
    reader: Option<Reader<F>>,
}

impl<'a, F: Element> Groups<'a, F> {
    fn new(
        source: &'a Column<F>,
        widths: (u64, u64),
        regions: impl Fn(Group) -> Vec<Region> + 'a,
    ) -> Result<Self> {
        let mut groups = Self {
            source,
            widths,
            regions: Box::new(regions),
            reader: None,
        };
        groups.begin(0)?;
        Ok(groups)
    }

    /// Begins with the group at `start`.
    fn begin(&mut self, start: u64) -> Result<()> {
        // Its buffers are given back first.
        self.reader = None;
        let groups = groups(self.widths.0, self.widths.1).filter(|group| group.start >= start);
        let regions: Vec<Region> = groups.flat_map(&self.regions).collect();
        self.reader = Some(self.source.reader(regions.into_iter(), AHEAD)?);
        Ok(())
    }

    /// The next group, whose regions follow each other in the tile.
    fn read(&mut self, tile: &mut [F]) -> Result<()> {
        let mut filled = 0;
        while filled < tile.len() {
            let next = self
                .reader
                .as_mut()
                .map(|reader| reader.next_into(&mut tile[filled..]));
            let Some(region) = next.transpose()?.flatten() else {
                unreachable!("the regions of a tile fill it");
            };
            filled += region.len() as usize;
        }
        Ok(())
    }

    /// A group that was read before, and then those behind it.
    fn read_again(&mut self, group: Group, tile: &mut [F]) -> Result<()> {
        self.begin(group.start)?;
        self.read(tile)
    }
}

/// How a pass uses its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tile {
    /// Elements of the widest group.
    elements: u64,
    /// Elements that are read at a time, at most.
    slice: u64,
    /// Elements that are written at a time, at most: a power of two.
    band: u64,
}

impl Tile {
    /// Of a pass whose groups have so many rows, over so many columns.
    fn of(height: u64, columns: u64, width: u64) -> Self {
        let elements = height * groups(columns, width).next().map_or(0, |group| group.width);
        Self {
            elements,
            slice: (elements / 8).clamp(SLICE_MIN, SLICE_MAX),
            band: (elements / 32).clamp(BAND_MIN.min(elements.max(1)), BAND_MAX),
        }
    }

    /// Bytes of the tile, in whole pages.
    fn bytes<F: Element>(&self) -> u64 {
        (self.elements * size_of::<F>() as u64).next_multiple_of(PAGE_BYTES as u64)
    }

    /// Bytes of the band in memory, and of the bands that are being written.
    fn behind_bytes<F: Element>(&self) -> u64 {
        let band = self.band.max(FRAME_MIN);
        band * (size_of::<F>() as u64 + BANDS_BEHIND as u64 * F::BYTES as u64)
    }

    /// What a pass with so many tiles leases, at most: a read may begin and end inside of frames.
    fn pass_bytes<F: Element>(&self, tiles: u64) -> u64 {
        let reads_bytes = AHEAD as u64 * 2 * self.slice.min(self.elements.max(FRAME_MIN)) * F::BYTES as u64;
        tiles * (self.bytes::<F>() + reads_bytes) + self.behind_bytes::<F>()
    }

    /// Columns of a group of `width` that are written at a time, in a block that has `rows` of it.
    fn columns_of_band(&self, width: u64, rows: u64) -> u64 {
        (self.band / rows).clamp(1, width)
    }
}

/// The widest groups, of so many columns of `height` rows, with which a pass with so many tiles fits.
fn width_within<F: Element>(columns: u64, height: u64, tiles: u64, available_bytes: u64) -> Result<u64> {
    let widest = columns.next_power_of_two().min(WIDTH_MAX);
    let mut widths = std::iter::successors(Some(widest), |width| (*width > 1).then_some(width / 2));
    let bytes = |width| Tile::of(height, columns, width).pass_bytes::<F>(tiles);
    let narrowest = GRAIN.min(widest);
    let fitting = widths.find(|width| bytes(*width) <= available_bytes || *width == narrowest);
    let width = fitting.unwrap_or(narrowest);
    match bytes(width) {
        needed_bytes if needed_bytes > available_bytes => Err(Error::BudgetTooSmall {
            what: format!("a transform of columns of {height} elements that are dealt to ranks"),
            needed_bytes,
            limit_bytes: available_bytes,
        }),
        _ => Ok(width),
    }
}

/// The regions of a group of columns of a matrix of `rows` rows of `row_len` elements, in the order of a tile.
fn panels(rows: u64, row_len: u64, group: Group) -> Vec<Region> {
    let slice = Tile::of(rows, row_len, group.width).slice;
    let at_a_time = (slice / group.width).max(1);
    let panel = |first_row: u64| Region::Panel {
        row_len,
        first_row,
        rows: at_a_time.min(rows - first_row),
        first_column: group.start,
        columns: group.width,
    };
    (0..rows).step_by(at_a_time as usize).map(panel).collect()
}
