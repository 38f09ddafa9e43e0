//! Columns that go from each rank to each: one span of every rank's column to every other rank's.
//!
//! A [`Redeal`] is made, with all that it leases, and then run, on any thread: so a rank may compute
//! meanwhile. Bytes go as they are in frames, whatever the elements are; what is on the way is checked by the
//! messages' digests ([`spillproof_ranks`]). Memory: five pieces, of [`Ranks::piece_bytes`] at most.

use spillproof_format::header::FRAME_BYTES_MIN;
use spillproof_ranks::{Asked, Ranks};

use crate::budget::{LeasedVec, PAGE_BYTES};
use crate::column::{Behind, Column, Draft, Element, Placement, Reader, Region, SharedDraft, Workspace};
use crate::error::{Error, Invalid, Result};

/// Bytes of an element: a scalar.
const BYTES: usize = 32;
/// Writes that are on their way.
const BEHIND: usize = 2;
/// Bytes of a frame of what comes, at most.
const FRAME_BYTES_MAX: u64 = 64 * 1024;
const PIECE: &str = "piece of an exchange";

/// An exchange that is ready to run.
#[must_use = "nothing is exchanged until it is run"]
pub struct Redeal {
    ranks: Ranks,
    /// Bytes for each rank, and of each rank.
    lengths: [Vec<u64>; 2],
    /// What the reader of the column leases.
    reader_bytes: u64,
    end: End,
}

/// What an exchange leaves, and what it takes to make it.
enum End {
    /// Of a dry run: the column that comes.
    Dry(Column<[u8; BYTES]>),
    /// Nothing goes to others or comes from them.
    Own(Column<[u8; BYTES]>),
    Real(Box<Transfer>),
}

/// What an exchange leases.
struct Transfer {
    reader: Reader<[u8; BYTES]>,
    draft: SharedDraft<[u8; BYTES]>,
    part: Draft<[u8; BYTES]>,
    buffers: [LeasedVec<u8>; 2],
}

impl Redeal {
    /// Of `column`, whose spans for the ranks follow each other, `lengths[0]` elements each. What comes of the
    /// ranks, `lengths[1]` elements each, will follow each other, too. Lengths are those of whole frames.
    ///
    /// # Errors
    /// [`Invalid::Length`] for spans that are not those of the column, or of other ranks;
    /// [`Invalid::FrameBytes`] for spans or pieces that are no whole frames; [`Error::OverBudget`].
    pub fn new<E: Element>(ranks: &Ranks, column: &Column<E>, lengths: [Vec<u64>; 2]) -> Result<Self> {
        let column = column.cast::<[u8; BYTES]>()?;
        let workspace = column.workspace();
        let size = ranks.size() as u64;
        Invalid::unless_equal("elements of spans", lengths[0].iter().sum(), column.len())?;
        Invalid::unless_equal("spans for ranks", lengths[0].len() as u64, size)?;
        Invalid::unless_equal("spans of ranks", lengths[1].len() as u64, size)?;
        let is_other = |(rank, len): (usize, &u64)| rank != ranks.rank() && *len > 0;
        if !lengths
            .iter()
            .any(|lengths| lengths.iter().enumerate().any(is_other))
        {
            return Ok(Self {
                ranks: ranks.clone(),
                lengths,
                reader_bytes: 0,
                end: End::Own(column),
            });
        }
        let piece_bytes = ranks.piece_bytes() as u64;
        let lengths = lengths.map(|lengths| {
            lengths
                .into_iter()
                .map(|len| len * BYTES as u64)
                .collect::<Vec<_>>()
        });
        let units = lengths[1].iter().copied().chain([piece_bytes, FRAME_BYTES_MAX]);
        let frame_bytes = 1 << units.map(u64::trailing_zeros).min().unwrap_or(0).min(63);
        if frame_bytes < FRAME_BYTES_MIN {
            return Err(Invalid::FrameBytes {
                frame_bytes: frame_bytes as usize,
                element_bytes: BYTES,
            }
            .into());
        }
        let received = lengths[1].iter().sum::<u64>() / BYTES as u64;
        let draft = Draft::scratch_with_frames(
            workspace,
            "redealt columns",
            received,
            Placement::Disk,
            frame_bytes as usize,
        )?;
        let regions = pieces(ranks, &lengths)?;
        let reader_bytes = regions.iter().map(|region| column.region_bytes(*region)).max();
        let reader_bytes = reader_bytes.unwrap_or(0).max(PAGE_BYTES as u64);
        let end = match workspace.is_dry() {
            true => End::Dry(draft.finish()?),
            false => End::Real(Box::new(Transfer::new(
                ranks,
                &column,
                regions,
                (&lengths[1], draft),
            )?)),
        };
        Ok(Self {
            ranks: ranks.clone(),
            lengths,
            reader_bytes,
            end,
        })
    }

    /// For a dry run: the lease that it holds until it has run.
    ///
    /// # Errors
    /// [`Error::OverBudget`].
    pub fn hold(&self, workspace: &Workspace) -> Result<crate::budget::Lease> {
        if matches!(self.end, End::Own(_)) {
            return workspace.hold(0, PIECE);
        }
        let behind = BEHIND as u64 * longest_piece(&self.ranks, &self.lengths[1]);
        let buffers = 2 * (self.ranks.buffer_bytes() as u64).next_multiple_of(PAGE_BYTES as u64);
        workspace.hold(self.reader_bytes + behind + buffers, PIECE)
    }

    /// Sends and receives all spans; returns what came.
    ///
    /// # Errors
    /// [`Error::Ranks`]; what reading and writing columns may give. The other ranks are told.
    pub fn run<E: Element>(self) -> Result<Column<E>> {
        Ok(self.run_with_sums()?.0)
    }

    /// The same, and checksums of what was sent and of what came, by which two runs are compared; zeros where all of a
    /// column stays.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_with_sums<E: Element>(self) -> Result<(Column<E>, [u64; 2])> {
        let Self {
            ranks, lengths, end, ..
        } = self;
        let [sent, received] = &lengths;
        let mut sums = [0; 2];
        let column = match end {
            End::Own(column) => column,
            End::Dry(column) => {
                ranks.all_to_all::<Error>(
                    sent,
                    received,
                    [&mut [], &mut []],
                    &mut |_, _, _| Ok(()),
                    &mut |_, _, _| Ok(()),
                )?;
                let dry_run = column.workspace().dry_run();
                if let Some(dry_run) = dry_run {
                    dry_run.moved(sent.iter().sum(), 0);
                }
                column
            }
            End::Real(transfer) => {
                let run = transfer.run(&ranks, [sent, received], &mut sums);
                run.inspect_err(|error| ranks.give_up(error))?
            }
        };
        Ok((column.cast()?, sums))
    }
}

impl Transfer {
    fn new(
        ranks: &Ranks,
        column: &Column<[u8; BYTES]>,
        regions: Vec<Region>,
        (received, draft): (&[u64], Draft<[u8; BYTES]>),
    ) -> Result<Self> {
        let budget = &column.workspace().budget;
        let buffer = || budget.vec(ranks.buffer_bytes(), 0u8, PIECE);
        let behind = || budget.buffer_to_fill(longest_piece(ranks, received) as usize, PIECE);
        let draft = draft.share();
        Ok(Self {
            buffers: [buffer()?, buffer()?],
            reader: column.reader(regions.into_iter(), 1)?,
            part: draft.part(Behind::with_buffers(vec![behind()?, behind()?], BEHIND)),
            draft,
        })
    }

    fn run(
        self,
        ranks: &Ranks,
        [sent, received]: [&[u64]; 2],
        [sum_sent, sum_received]: &mut [u64; 2],
    ) -> Result<Column<[u8; BYTES]>> {
        let Self {
            mut reader,
            draft,
            mut part,
            buffers: [mut first, mut second],
        } = self;
        let mut source = |to: usize, offset: u64, bytes: &mut [u8]| -> Result<()> {
            let (elements, _) = bytes.as_chunks_mut::<BYTES>();
            reader.next_into(elements)?;
            *sum_sent = sum_sent.wrapping_add(checksum((to, offset), elements));
            Ok(())
        };
        let starts = starts(received);
        let mut sink = |from: usize, offset: u64, bytes: &[u8]| -> Result<()> {
            let (elements, _) = bytes.as_chunks::<BYTES>();
            *sum_received = sum_received.wrapping_add(checksum((from, offset), elements));
            let region = Region::Span {
                start: (starts[from] + offset) / BYTES as u64,
                len: elements.len() as u64,
            };
            part.write(region, elements)
        };
        ranks.all_to_all(sent, received, [&mut first, &mut second], &mut source, &mut sink)?;
        part.into_behind().landed()?;
        Ok(draft.finish())
    }
}

/// Of a piece at a place of a span: another one if an element is another one, but for one chance in 2^64. It tells faults
/// apart, at the speed of memory, and keeps out no forger.
fn checksum((peer, offset): (usize, u64), elements: &[[u8; BYTES]]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let step = |sum: u64, word: u64| (sum ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let mut lanes = [step(peer as u64, offset); BYTES / 8];
    for element in elements {
        let (words, _) = element.as_chunks::<8>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = step(*lane, u64::from_le_bytes(*word));
        }
    }
    lanes.into_iter().fold(0, step)
}

/// Where the span of each rank begins.
fn starts(lengths: &[u64]) -> Vec<u64> {
    let before = lengths
        .iter()
        .scan(0, |next, bytes| Some(std::mem::replace(next, *next + bytes)));
    before.collect()
}

/// The pieces of a column's spans, in the order in which an exchange asks for them.
fn pieces(ranks: &Ranks, [sent, received]: &[Vec<u64>; 2]) -> Result<Vec<Region>> {
    let starts = starts(sent);
    let piece = |asked: Asked| Region::Span {
        start: (starts[asked.rank] + asked.offset) / BYTES as u64,
        len: (asked.bytes / BYTES) as u64,
    };
    Ok(ranks.all_to_all_order(sent, received)?.map(piece).collect())
}

/// The bytes of the longest piece of spans of so many bytes, in whole pages.
fn longest_piece(ranks: &Ranks, lengths: &[u64]) -> u64 {
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let piece = longest.min(ranks.piece_bytes() as u64).max(1);
    piece.next_multiple_of(PAGE_BYTES as u64)
}

/// The bytes of each rank, few and as many of each, on all ranks. In a dry run, this rank's stand for all.
///
/// # Errors
/// [`Error::Ranks`].
pub fn all_gather(ranks: &Ranks, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
    let gathered = ranks.gather(0, bytes)?;
    let mut all = match gathered {
        Some(parts) if !ranks.is_dry() => parts.concat(),
        _ => vec![0; bytes.len() * ranks.size()],
    };
    ranks.broadcast(0, &mut all)?;
    if ranks.is_dry() {
        return Ok(vec![bytes.to_vec(); ranks.size()]);
    }
    Ok(all.chunks(bytes.len().max(1)).map(<[u8]>::to_vec).collect())
}
