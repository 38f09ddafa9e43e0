//! Which terms a sum has: which bases and which scalars of two columns belong together, and in which chunks
//! they are read.

use crate::Result;
use crate::budget::PAGE_BYTES;
use crate::column::{Column, Element, Region, SCRATCH_FRAME_BYTES};

/// Scalars in a frame of a scratch column.
const SCALARS_OF_FRAME: u64 = SCRATCH_FRAME_BYTES as u64 / 32;

/// Bases of a column, and the scalars that they are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terms {
    /// Base i and scalar i of a range.
    Range {
        /// The first i.
        start: u64,
        /// How many.
        len: u64,
    },
    /// As many bases as scalars, each from a place of its own on.
    From {
        /// The first base.
        first_base: u64,
        /// The first scalar.
        first_scalar: u64,
        /// How many.
        len: u64,
    },
    /// All scalars, and bases of some columns of a matrix that is stored row by row, as
    /// [`super::DealtTransforms`] leaves its output: group after group of `width` neighbouring columns, each
    /// row by row.
    Panels {
        /// Elements in a row of the matrix.
        row_len: u64,
        /// Rows.
        rows: u64,
        /// The first column.
        first_column: u64,
        /// Columns of a group, a power of two as `rows` is.
        width: u64,
        /// Groups.
        groups: u64,
        /// The first scalar.
        first_scalar: u64,
    },
}

/// What is read for one chunk of terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub bases: Region,
    pub scalars: Region,
}

impl Terms {
    /// The first so many bases and scalars.
    pub fn first(len: u64) -> Self {
        Self::Range { start: 0, len }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        match *self {
            Self::Range { len, .. } | Self::From { len, .. } => len,
            Self::Panels {
                rows, width, groups, ..
            } => rows * width * groups,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first base and the first scalar of terms that are a run: each has the next base and the next scalar. `None`
    /// for other terms.
    pub(super) fn run(&self) -> Option<[u64; 2]> {
        match *self {
            Self::Range { start, .. } => Some([start, start]),
            Self::From {
                first_base,
                first_scalar,
                ..
            } => Some([first_base, first_scalar]),
            Self::Panels {
                row_len,
                width,
                groups: 1,
                first_column: 0,
                first_scalar,
                ..
            } if width == row_len => Some([0, first_scalar]),
            Self::Panels { .. } => None,
        }
    }

    /// Those of a column that has so many scalars, where they are the first ones.
    pub(super) fn within(self, scalars: u64) -> Self {
        match self {
            Self::Range { start: 0, len } => Self::first(len.min(scalars)),
            terms => terms,
        }
    }

    /// How many times their bytes are read of bases in frames of so many, at most.
    pub(super) fn spread(&self, frame_elements: u64) -> u64 {
        match *self {
            Self::Panels { width, row_len, .. } if width < row_len => {
                // A run may begin and end inside of frames.
                let frames = width.div_ceil(frame_elements) + 1;
                (frames * frame_elements).div_ceil(width)
            }
            // A chunk has a frame's elements at least, and begins inside of one; so do its scalars, of which a
            // frame has no more bytes.
            Self::Range { start, .. } if !start.is_multiple_of(frame_elements) => 2,
            Self::From {
                first_base,
                first_scalar,
                ..
            } if !first_base.is_multiple_of(frame_elements)
                || !first_scalar.is_multiple_of(frame_elements.max(SCALARS_OF_FRAME)) =>
            {
                2
            }
            _ => 1,
        }
    }

    /// Chunks of at most `chunk` terms, a power of two.
    pub(super) fn chunks(&self, chunk: u64) -> u64 {
        match *self {
            Self::Range { len, .. } | Self::From { len, .. } => len.div_ceil(chunk),
            Self::Panels {
                rows, width, groups, ..
            } => groups * (rows * width).div_ceil(chunk),
        }
    }

    /// The chunk of an index below their number.
    pub(super) fn chunk(&self, index: u64, chunk: u64) -> Chunk {
        match *self {
            Self::Range { start, len } => {
                let here = chunk.min(len - index * chunk);
                let span = Region::Span {
                    start: start + index * chunk,
                    len: here,
                };
                Chunk {
                    bases: span,
                    scalars: span,
                }
            }
            Self::From {
                first_base,
                first_scalar,
                len,
            } => {
                let (start, len) = (index * chunk, chunk.min(len - index * chunk));
                let from = |first| Region::Span {
                    start: first + start,
                    len,
                };
                Chunk {
                    bases: from(first_base),
                    scalars: from(first_scalar),
                }
            }
            Self::Panels {
                row_len,
                rows,
                first_column,
                width,
                first_scalar,
                ..
            } => {
                let here = chunk.min(rows * width);
                let (group, start) = (
                    index / (rows * width / here),
                    index % (rows * width / here) * here,
                );
                let columns = width.min(here);
                Chunk {
                    bases: Region::Panel {
                        row_len,
                        first_row: start / width,
                        rows: here / columns,
                        first_column: first_column + group * width + start % width,
                        columns,
                    },
                    scalars: Region::Span {
                        start: first_scalar + group * rows * width + start,
                        len: here,
                    },
                }
            }
        }
    }

    /// For a dry run: a column's side of all terms is read once.
    pub(super) fn count_read<E: Element>(&self, column: &Column<E>, side: fn(Chunk) -> Region) -> Result<()> {
        match *self {
            Self::Range { start: 0, len } => column.prefix(len)?.count_read(),
            Self::Range { len, .. } | Self::From { len, .. } => {
                column.count_read_bytes(len * E::BYTES as u64);
            }
            Self::Panels {
                rows, width, groups, ..
            } => {
                let of_group = column.region_bytes(side(self.chunk(0, rows * width)));
                column.count_read_bytes(groups * of_group);
            }
        }
        Ok(())
    }

    /// For a dry run: what readers of one side's chunks lease, `depth` in all.
    pub(super) fn reader_bytes<E: Element>(
        &self,
        column: &Column<E>,
        side: fn(Chunk) -> Region,
        (chunk, depth): (u64, u64),
    ) -> u64 {
        let chunks = self.chunks(chunk);
        let some = [0, 1, chunks.saturating_sub(1)]
            .into_iter()
            .filter(|index| *index < chunks);
        let bytes = some.map(|index| column.region_bytes(side(self.chunk(index, chunk))));
        let most = bytes.max().unwrap_or(0).max(PAGE_BYTES as u64);
        depth.min(chunks) * most.next_multiple_of(PAGE_BYTES as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases_and_scalars_begin_at_places_of_their_own() {
        let terms = Terms::From {
            first_base: 7,
            first_scalar: 1000,
            len: 20,
        };
        assert_eq!((terms.len(), terms.chunks(8)), (20, 3));
        for (index, len) in [(0, 8), (1, 8), (2, 4)] {
            let from = |first| Region::Span {
                start: first + 8 * index,
                len,
            };
            let (bases, scalars) = (from(7), from(1000));
            assert_eq!(terms.chunk(index, 8), Chunk { bases, scalars });
        }
        // Inside of a frame of either side, a chunk reaches into one more.
        let spread = |first_base, first_scalar| {
            let len = 4096;
            Terms::From {
                first_base,
                first_scalar,
                len,
            }
            .spread(256)
        };
        assert_eq!([spread(256, 512), spread(7, 512), spread(256, 256)], [1, 2, 2]);
    }

    #[test]
    fn chunks_of_panels_pair_each_scalar_with_its_base() {
        let terms = Terms::Panels {
            row_len: 40,
            rows: 8,
            first_column: 3,
            width: 4,
            groups: 3,
            first_scalar: 5,
        };
        for chunk in [1, 2, 4, 8, 32, 64] {
            let mut next = 0;
            for index in 0..terms.chunks(chunk) {
                let Chunk { bases, scalars } = terms.chunk(index, chunk);
                assert_eq!(
                    scalars,
                    Region::Span {
                        start: 5 + next,
                        len: bases.len()
                    }
                );
                let places = bases
                    .pieces()
                    .flat_map(|piece| piece.start..piece.start + piece.len);
                for place in places {
                    let (group, at) = (next / 32, next % 32);
                    assert_eq!(place, at / 4 * 40 + 3 + group * 4 + at % 4, "chunk {chunk}");
                    next += 1;
                }
            }
            assert_eq!(next, terms.len());
        }
    }
}
