//! Which elements of a column one transfer moves.
//!
//! A region is a list of pieces, each a run of neighbouring elements; a span has one piece, a panel of a
//! row-major matrix one for each row, a window that passes the end of the column two.

use crate::Result;
use crate::error::Invalid;

/// A set of elements, in the order in which they stand in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Elements `start .. start + len`.
    Span {
        /// First element.
        start: u64,
        /// Number of elements.
        len: u64,
    },
    /// Columns `first_column .. first_column + columns` of rows `first_row .. first_row + rows` of the column
    /// seen as a row-major matrix with `row_len` elements a row. In memory: row-major, `columns` elements a
    /// row.
    Panel {
        /// Elements in a row of the matrix.
        row_len: u64,
        /// First row.
        first_row: u64,
        /// Number of rows.
        rows: u64,
        /// First column.
        first_column: u64,
        /// Number of columns.
        columns: u64,
    },
    /// `len` elements from `start` on, going on at element 0 after element `modulus - 1` (a rotation's
    /// window).
    Wrapped {
        /// First element, below `modulus`.
        start: u64,
        /// Number of elements, at most `modulus`.
        len: u64,
        /// Length of the column.
        modulus: u64,
    },
}

/// Neighbouring elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub start: u64,
    pub len: u64,
}

impl Region {
    /// Number of elements.
    pub fn len(&self) -> u64 {
        match *self {
            Region::Span { len, .. } | Region::Wrapped { len, .. } => len,
            Region::Panel { rows, columns, .. } => rows * columns,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The runs of neighbouring elements, in memory order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece> + use<> {
        let (count, first, step, len, wrapped) = match *self {
            Region::Span { start, len } => (1, start, 0, len, 0),
            Region::Panel {
                row_len,
                first_row,
                rows,
                first_column,
                columns,
            } => {
                if columns == row_len {
                    // Whole rows are one run.
                    (1, first_row * row_len, 0, rows * row_len, 0)
                } else {
                    (rows, first_row * row_len + first_column, row_len, columns, 0)
                }
            }
            Region::Wrapped { start, len, modulus } => {
                let head = len.min(modulus - start);
                (1, start, 0, head, len - head)
            }
        };
        (0..count)
            .map(move |i| Piece {
                start: first + i * step,
                len,
            })
            .chain(std::iter::once(Piece {
                start: 0,
                len: wrapped,
            }))
            .filter(|piece| piece.len > 0)
    }

    /// Refuses a region that leaves a column of `column_len` elements.
    pub(crate) fn check(&self, column_len: u64) -> Result<()> {
        let fits = match *self {
            Region::Span { start, len } => start.checked_add(len).is_some_and(|end| end <= column_len),
            Region::Wrapped { start, len, modulus } => {
                modulus == column_len && len <= modulus && (start < modulus || len == 0)
            }
            Region::Panel {
                row_len,
                first_row,
                rows,
                first_column,
                columns,
            } => {
                first_column
                    .checked_add(columns)
                    .is_some_and(|end| end <= row_len)
                    && first_row
                        .checked_add(rows)
                        .and_then(|end| end.checked_mul(row_len))
                        .is_some_and(|end| end <= column_len)
            }
        };
        if fits {
            Ok(())
        } else {
            Err(Invalid::Region {
                region: format!("{self:?}"),
                len: column_len,
            }
            .into())
        }
    }
}

/// Spans of at most `chunk` elements that cover `0 .. len`, upwards.
pub fn ascending(len: u64, chunk: u64) -> impl Iterator<Item = Region> + Clone + Send {
    let chunk = chunk.max(1);
    (0..len.div_ceil(chunk)).map(move |i| span(i, chunk, len))
}

/// The same spans, the last one first: for Horner's rule and division, which run from the highest coefficient
/// down.
pub fn descending(len: u64, chunk: u64) -> impl Iterator<Item = Region> + Clone + Send {
    let chunk = chunk.max(1);
    (0..len.div_ceil(chunk)).rev().map(move |i| span(i, chunk, len))
}

fn span(index: u64, chunk: u64, len: u64) -> Region {
    let start = index * chunk;
    Region::Span {
        start,
        len: chunk.min(len - start),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(region: Region) -> Vec<u64> {
        region.pieces().flat_map(|p| p.start..p.start + p.len).collect()
    }

    #[test]
    fn a_panel_lists_its_rows_and_a_window_wraps() {
        let panel = Region::Panel {
            row_len: 5,
            first_row: 1,
            rows: 2,
            first_column: 2,
            columns: 2,
        };
        assert_eq!(elements(panel), [7, 8, 12, 13]);
        let whole = Region::Panel {
            row_len: 3,
            first_row: 1,
            rows: 2,
            first_column: 0,
            columns: 3,
        };
        assert_eq!(whole.pieces().count(), 1);
        assert_eq!(elements(whole), [3, 4, 5, 6, 7, 8]);
        assert_eq!(
            elements(Region::Wrapped {
                start: 3,
                len: 4,
                modulus: 5
            }),
            [3, 4, 0, 1]
        );
        assert_eq!(elements(Region::Span { start: 9, len: 0 }), [] as [u64; 0]);
    }

    #[test]
    fn spans_cover_every_element_once_in_both_directions() {
        for (len, chunk) in [(0, 4), (1, 4), (4, 4), (9, 4), (9, 1)] {
            let up: Vec<u64> = ascending(len, chunk).flat_map(elements).collect();
            assert_eq!(up, (0..len).collect::<Vec<_>>());
            let mut down: Vec<Region> = descending(len, chunk).collect();
            down.reverse();
            assert_eq!(down, ascending(len, chunk).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_region_outside_the_column_is_refused() {
        assert!(Region::Span { start: 3, len: 2 }.check(4).is_err());
        assert!(
            Region::Span {
                start: u64::MAX,
                len: 2
            }
            .check(4)
            .is_err()
        );
        assert!(
            Region::Wrapped {
                start: 3,
                len: 2,
                modulus: 4
            }
            .check(4)
            .is_ok()
        );
        let panel = Region::Panel {
            row_len: 4,
            first_row: 1,
            rows: 1,
            first_column: 3,
            columns: 2,
        };
        assert!(panel.check(8).is_err());
    }
}
