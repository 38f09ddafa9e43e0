//! Shapes of random circuits, for all crates: `configure` is told nothing, so the shape that a test sets
//! stands in a static.

use std::sync::atomic::{AtomicU64, Ordering};

static SHAPE: AtomicU64 = AtomicU64::new(0);

/// Rotations go this far.
pub const ROTATION: usize = 2;
/// Entries of a table.
pub const ENTRIES: usize = 5;

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

/// Why a proof can't be made.
#[derive(Clone, Copy, Debug)]
pub enum Wrong {
    Witness(Broken),
    /// No instances of the only circuit.
    NoInstances,
    /// No columns of them.
    NoColumns,
    /// As many values in the first column as there are rows.
    TooLong,
}

/// What lookups leave of their tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookups {
    /// There are none.
    None,
    /// One value, many times: then stock's order of distinct values does not matter.
    LeaveOne,
    /// Several, in the order of a hash map.
    LeaveMany,
}

/// A factor of a term: an input at a rotation, or a fixed column in its own row.
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

/// What a constraint gives to its output: a sum.
pub type Sum = Vec<Term>;

/// An instance column, and the rotation at which a gate reads it.
#[derive(Clone, Copy, Debug)]
pub struct Public {
    pub rotation: i32,
    pub is_permuted: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// Advice columns of the first phase; whether each is blinded.
    pub inputs: Vec<bool>,
    pub fixed: usize,
    pub permuted_inputs: usize,
    pub permuted_fixed: usize,
    pub gates: Vec<Sum>,
    /// Constraints of each gate under an additive selector.
    pub trash: Vec<Vec<Sum>>,
    /// Columns of each lookup.
    pub lookups: Vec<usize>,
    /// Whether lookups leave several distinct values of their tables.
    pub leaves_many: bool,
    pub minimum_degree: usize,
    pub publics: Vec<Public>,
    /// How many of them, from the first on, the verifier has as commitments.
    pub committed: usize,
    /// Phases after the first one.
    pub later_phases: usize,
    /// Whether the first query of each kind is in the row itself. Upstream's verifier panics for proofs of
    /// other circuits.
    pub begins_in_its_row: bool,
}

/// What distinguishes shapes beside their numbers.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub seed: u64,
    pub lookups: Lookups,
}

impl Kind {
    /// Circuits that are configured from here on have this shape.
    pub fn set(self) {
        let lookups = match self.lookups {
            Lookups::None => 0,
            Lookups::LeaveOne => 1,
            Lookups::LeaveMany => 2,
        };
        SHAPE.store(self.seed << 2 | lookups, Ordering::SeqCst);
    }
}

impl Shape {
    /// The one that was set. The first is of a circuit without any column.
    pub fn current() -> Self {
        let number = SHAPE.load(Ordering::SeqCst);
        let lookups = number & 3;
        if number >> 2 == 0 {
            let begins_in_its_row = true;
            return Self {
                begins_in_its_row,
                ..Self::default()
            };
        }
        let draw = Values(number >> 2);
        let mut lane = 0;
        let mut below = |bound: usize| {
            lane += 1;
            draw.bits(0, lane) as usize % bound
        };
        let inputs: Vec<bool> = (0..1 + below(4)).map(|_| below(4) > 0).collect();
        let fixed = 1 + below(3);
        let mut degree_max = 0;
        let mut sum = |below: &mut dyn FnMut(usize) -> usize| -> Sum {
            let mut term = || {
                // A selector makes one more.
                let degree = below(5);
                degree_max = degree_max.max(degree + 1);
                let coefficient = 1 + below(5) as u64;
                let mut factor = || {
                    let is_fixed = below(4) == 0;
                    Factor {
                        is_fixed,
                        column: below(if is_fixed { fixed } else { inputs.len() }),
                        rotation: below(2 * ROTATION + 1) as i32 - ROTATION as i32,
                    }
                };
                let factors = (0..degree).map(|_| factor()).collect();
                Term { coefficient, factors }
            };
            (0..2).map(|_| term()).collect()
        };
        let gates = (0..below(3)).map(|_| sum(&mut below)).collect();
        let trash = (0..below(3))
            .map(|_| (0..1 + below(2)).map(|_| sum(&mut below)).collect())
            .collect();
        let publics: Vec<_> = (0..below(4))
            .map(|_| Public {
                rotation: below(2 * ROTATION + 1) as i32 - ROTATION as i32,
                is_permuted: below(2) == 0,
            })
            .collect();
        let committed = match cfg!(feature = "committed-instances") {
            true => below(publics.len() + 1),
            false => 0,
        };
        let widths = (0..1 + below(2)).map(|_| 1 + below(2)).collect();
        Self {
            permuted_inputs: below(inputs.len() + 1),
            inputs,
            fixed,
            permuted_fixed: below(fixed + 1),
            gates,
            trash,
            lookups: if lookups == 0 { Vec::new() } else { widths },
            leaves_many: lookups == 2,
            minimum_degree: degree_max.max(below(7)),
            publics,
            committed,
            later_phases: below(3),
            begins_in_its_row: below(4) > 0,
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
