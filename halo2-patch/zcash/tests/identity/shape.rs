//! Shapes of random circuits, for both crates: `configure` is told nothing, so the shape that a test sets
//! stands in a static.

use std::sync::atomic::{AtomicU64, Ordering};

static SHAPE: AtomicU64 = AtomicU64::new(0);

/// Rotations go this far.
pub const ROTATION: usize = 3;
/// Entries of a table.
pub const ENTRIES: usize = 9;

/// Numbers that follow from a seed.
#[derive(Clone, Copy, Debug)]
pub struct Values(pub u64);

impl Values {
    pub fn bits(self, row: usize, lane: u64) -> u64 {
        // SplitMix64.
        let mut z =
            (self.0 ^ lane.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add((row as u64 + 1) << 32 | lane);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// How a witness is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    Nothing,
    /// A value that the table lacks.
    NotInTable,
    /// A value that is not known.
    Unassigned,
    /// A row that is not there.
    BelowTheRows,
}

/// A factor of a term: an input at a rotation, or a fixed column.
#[derive(Clone, Copy, Debug)]
pub struct Factor {
    pub is_fixed: bool,
    pub column: usize,
    pub rotation: i32,
}

/// `coefficient * product of factors`.
#[derive(Clone, Debug)]
pub struct Term {
    pub coefficient: u64,
    pub factors: Vec<Factor>,
}

#[derive(Clone, Debug)]
pub struct Shape {
    pub inputs: usize,
    pub fixed: usize,
    pub permuted_inputs: usize,
    pub permuted_fixed: usize,
    pub gates: Vec<Vec<Term>>,
    /// Columns of each lookup.
    pub lookups: Vec<usize>,
    pub minimum_degree: usize,
    /// Whether there is an instance column.
    pub is_public: bool,
}

impl Shape {
    /// Circuits that are configured from here on have this shape.
    pub fn set(shape: u64) {
        SHAPE.store(shape, Ordering::SeqCst);
    }

    pub fn current() -> Self {
        let draw = Values(SHAPE.load(Ordering::SeqCst));
        let mut lane = 0;
        let mut below = |bound: usize| {
            lane += 1;
            draw.bits(0, lane) as usize % bound
        };
        let (inputs, fixed) = (1 + below(5), 1 + below(3));
        let mut degree_max = 0;
        let mut term = |below: &mut dyn FnMut(usize) -> usize| {
            // The selector makes the sixth.
            let degree = below(6);
            degree_max = degree_max.max(degree + 1);
            let coefficient = 1 + below(5) as u64;
            let mut factor = || {
                let is_fixed = below(4) == 0;
                Factor {
                    is_fixed,
                    column: below(if is_fixed { fixed } else { inputs }),
                    rotation: below(2 * ROTATION + 1) as i32 - ROTATION as i32,
                }
            };
            let factors = (0..degree).map(|_| factor()).collect();
            Term { coefficient, factors }
        };
        let gates = (0..below(4))
            .map(|_| (0..1 + below(4)).map(|_| term(&mut below)).collect())
            .collect();
        Self {
            inputs,
            fixed,
            permuted_inputs: below(inputs + 1),
            permuted_fixed: below(fixed + 1),
            gates,
            lookups: (0..below(3)).map(|_| 1 + below(3)).collect(),
            minimum_degree: degree_max.max(below(7)),
            is_public: below(2) == 0,
        }
    }

    /// Where an input's value comes from, if it is a copy: another row above, of a permuted column.
    pub fn copied_from(&self, row: usize, column: usize) -> Option<(usize, usize)> {
        let lane = 100 + column as u64;
        let may = column < self.permuted_inputs && row > 0 && Values(11).bits(row, lane).is_multiple_of(3);
        may.then(|| {
            let bits = Values(11).bits(row, lane + 1000) as usize;
            (bits % row, (bits >> 32) % self.permuted_inputs)
        })
    }

    /// An entry of a table.
    pub fn entry(lookup: usize, column: usize, entry: usize) -> u64 {
        (100 * lookup + 10 * column + entry) as u64
    }
}
