//! A quotient on one coset, as a job: rows of columns go in, rows of the quotient come out.
//!
//! n = `2^log_rows * 2^log_columns`, a matrix of n1 rows of n2 elements. Row r of an input is n2 elements
//! `a[j]`; what it stands for is its values at the points `c w^(r + n1 k)`, k < n2:
//!
//! ```text
//! value(r, k) = sum over j < n2 of a[j] * w^(n1 j k)
//! ```
//!
//! With the coefficients f of an input, row r is, for the shift c,
//! `a[j] = w^(r j) * sum over i < n1 of f[i n2 + j] * c^(i n2 + j) * w^(n2 r i)`.
//!
//! The program runs over values. A query's rotation by s is s *rows* further; going round the n1 rows once is
//! going one point further in each row: `value(r + n1, k) = value(r, k + 1 mod n2)`. So row r is asked for
//! any integer r. Row r of the output is
//!
//! ```text
//! b[j] = scale * c^-j * w^(-r j) * sum over k < n2 of numerator(r, k) * w^(-n1 j k)
//! ```
//!
//! with which `scale` = 1 / (n (c^n - 1)) divides by the vanishing polynomial.
//!
//! An accelerator works in tiles of rows. All rows of an input come once, and once more those around the ends
//! that rotations reach: what neighbouring tiles share, the accelerator keeps. In which order, [`Order`]
//! says.

use ark_bn254::Fr;

use super::{ReadElements, WriteElements};
use crate::Result;
use spillproof_kernels::vector::Instruction;

/// One coset.
pub struct Coset<'a> {
    /// log2 of n1, the number of rows.
    pub log_rows: u32,
    /// log2 of n2, the elements of a row.
    pub log_columns: u32,
    /// w, a primitive n-th root of unity.
    pub omega: Fr,
    /// c, what the coset is shifted by. Its n-th power is not 1.
    pub shift: Fr,
    /// What the output is multiplied by.
    pub scale: Fr,
    /// What is computed, with one output.
    pub program: Program<'a>,
    /// What the program reads, each column of its queries once.
    pub inputs: Vec<Input>,
    /// Where rows come from and go to.
    pub in_tiles: Box<dyn InTiles + 'a>,
}

/// A straight-line program, the same for every point.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// What operands that are inputs stand for: a column, by its number, and a rotation.
    pub queries: &'a [(usize, i32)],
    /// In order; a register is written before it is read.
    pub instructions: &'a [Instruction<Fr>],
    /// Registers that they name.
    pub registers: usize,
}

/// A column of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its number in the program's queries.
    pub column: usize,
    /// Its smallest and its largest rotation.
    pub rotations: (i32, i32),
    /// Where its rows are had.
    pub rows: RowSource,
}

/// Where rows are had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSource {
    /// They are read.
    Read,
    /// They are computed: value(r, k) is the point `c w^(r + n1 k)` itself.
    Identity,
    /// They are computed: value(r, k) is `(c^n - 1) / (n (x - 1))` at the point x.
    FirstLagrange,
}

/// How an accelerator takes rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// log2 of a tile's rows; no more than the matrix has.
    pub log_tile_rows: u32,
    /// Rows that are asked for at a time: from a multiple of it on, to the next or to the end.
    pub chunk_rows: u64,
}

/// The ends of a coset in tiles.
pub trait InTiles {
    /// The most that [`Self::ends`] lease, whatever the tiles.
    fn lease_bytes(&self) -> u64;

    /// Leases what is needed, and gives the ends. Asked again it begins anew: what was written is void.
    ///
    /// # Errors
    /// For tiles that are not the matrix's; of the disk or the budget.
    fn ends(&mut self, tiles: Tiles) -> Result<TileEnds<'_>>;

    /// Seconds in which the disk moves what the processor's own step would move.
    fn disk_seconds(&self) -> f64 {
        0.0
    }
}

/// Where rows come from and go to. None is read or written twice.
pub struct TileEnds<'a> {
    /// Rows of all inputs that are read, in the order that [`Coset::order`] says.
    pub input: Box<dyn ReadElements + 'a>,
    /// Rows of the output, from row 0 on.
    pub output: Box<dyn WriteElements + 'a>,
}

impl Coset<'_> {
    /// The order in which rows come in such tiles.
    pub fn order(&self, log_tile_rows: u32) -> Order {
        let read = self.inputs.iter().filter(|input| input.rows == RowSource::Read);
        Order::new(read.map(|input| input.rotations), self.log_rows, log_tile_rows)
    }
}

/// Rows of one input, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which tile they are for.
    pub tile: u64,
    /// Which input, counting those that are read.
    pub input: usize,
    /// The first of them; any integer.
    pub first_row: i64,
    /// How many.
    pub rows: u64,
    /// How many rows of the order come before them.
    pub before: u64,
}

/// The order in which rows are read: tile by tile, of each input in turn. For the first tile, all rows that
/// the tile's points reach with the input's rotations; for each further one, as many new rows as a tile has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Of each input: its first row, the rows that rotations reach beyond a tile, and the rows that come
    /// before it.
    inputs: Vec<(i64, u64, u64)>,
    rows: u64,
    tile_rows: u64,
    first_tile: u64,
}

impl Order {
    /// For inputs with these smallest and largest rotations.
    pub fn new(rotations: impl Iterator<Item = (i32, i32)>, log_rows: u32, log_tile_rows: u32) -> Self {
        let tile_rows = 1u64 << log_tile_rows.min(log_rows);
        let mut first_tile = 0;
        let inputs = rotations.map(|(first, last)| {
            let halo = (i64::from(last) - i64::from(first)).unsigned_abs();
            let before = first_tile;
            first_tile += tile_rows + halo;
            (i64::from(first), halo, before)
        });
        Self {
            inputs: inputs.collect(),
            rows: 1 << log_rows,
            tile_rows,
            first_tile,
        }
    }

    /// Rows in all.
    pub fn total_rows(&self) -> u64 {
        self.first_tile + (self.rows - self.tile_rows) * self.inputs.len() as u64
    }

    /// Tiles.
    pub fn tiles(&self) -> u64 {
        self.rows / self.tile_rows
    }

    /// All runs.
    pub fn runs(self) -> impl Iterator<Item = Run> + Clone + Send {
        let first = self.run_at(0);
        std::iter::successors(first, move |run| self.run_at(run.before + run.rows))
    }

    /// The run that the row at `position` of the order belongs to.
    pub fn run_at(&self, position: u64) -> Option<Run> {
        let inputs = self.inputs.len() as u64;
        if position >= self.total_rows() {
            return None;
        }
        let (tile, input) = match position.checked_sub(self.first_tile) {
            None => {
                let after = self.inputs.partition_point(|input| input.2 <= position);
                (0, after.checked_sub(1)?)
            }
            Some(later) => {
                let run = later / self.tile_rows;
                (1 + run / inputs, (run % inputs) as usize)
            }
        };
        let &(first, halo, before) = self.inputs.get(input)?;
        let tile_rows = self.tile_rows;
        Some(match tile {
            0 => Run {
                tile,
                input,
                first_row: first,
                rows: tile_rows + halo,
                before,
            },
            _ => Run {
                tile,
                input,
                first_row: first + (halo + tile * tile_rows) as i64,
                rows: tile_rows,
                before: self.first_tile + ((tile - 1) * inputs + input as u64) * tile_rows,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_comes_once_and_those_around_the_ends_again() {
        for (rotations, log_rows) in [
            (&[(0, 0)][..], 3),
            (&[(-2, 1), (0, 0), (0, 5)], 4),
            (&[(-9, 9), (1, 1)], 0),
        ] {
            for log_tile_rows in 0..=log_rows {
                let order = Order::new(rotations.iter().copied(), log_rows, log_tile_rows);
                let tile_rows = 1u64 << log_tile_rows;
                let mut found = vec![Vec::new(); rotations.len()];
                let (mut position, mut tile) = (0, 0);
                while let Some(run) = order.run_at(position) {
                    assert_eq!(run.before, position);
                    assert_eq!(order.run_at(position + run.rows - 1), Some(run));
                    assert!(run.tile == tile || (run.tile, run.input) == (tile + 1, 0));
                    tile = run.tile;
                    found[run.input].extend((0..run.rows as i64).map(|row| run.first_row + row));
                    // What the tile's points reach is there.
                    let end = run.tile as i64 * tile_rows as i64 + tile_rows as i64;
                    let last = found[run.input].last().map(|row| row + 1);
                    assert_eq!(last, Some(end + i64::from(rotations[run.input].1)));
                    position += run.rows;
                }
                assert_eq!((position, tile + 1), (order.total_rows(), order.tiles()));
                let runs = order.clone().runs();
                assert!(
                    runs.scan(0, |at, run| {
                        *at += run.rows;
                        Some(run.before + run.rows == *at)
                    })
                    .all(|follows| follows)
                );
                assert_eq!(order.clone().runs().map(|run| run.rows).sum::<u64>(), position);
                for (found, &(first, last)) in found.iter().zip(rotations) {
                    let all = i64::from(first)..(1 << log_rows) + i64::from(last);
                    assert!(found.iter().copied().eq(all));
                }
            }
        }
    }
}
