//! What the circuits share: how they are made, and where their values come from.
//!
//! Values are not random in any sense that matters to security: they are a hash of `(seed, row, lane)`, so
//! that any row can be had without the rows before it, on any machine, with any number of threads.

use super::dialect::{Fr, FromUniformBytes, Plain};
use super::halo2::plonk::{Circuit, ConstraintSystem};

/// A circuit that is determined by its size and a seed.
pub trait Builtin: Plain + Clone {
    /// The name on the command line.
    const NAME: &'static str;

    /// The smallest `k` at which the circuit fits.
    const K_MIN: u32;

    /// The circuit that fills the usable rows of `2^k`; its witness follows from `seed`. The verifying key
    /// depends on `k` alone.
    fn new(k: u32, seed: u64) -> Self;

    /// The public inputs, one vector per instance column. Computed in one pass over the rows, with constant
    /// memory.
    fn instances(&self) -> Vec<Vec<Fr>>;
}

/// How many of `2^k` rows a circuit may assign: the rest are for blinding.
///
/// Panics if `k` is below [`Builtin::K_MIN`].
pub fn usable_rows<C: Circuit<Fr>>(k: u32) -> usize {
    let mut cs = ConstraintSystem::default();
    C::configure(&mut cs);
    let rows = 1usize << k;
    assert!(
        rows >= cs.minimum_rows(),
        "2^{k} rows do not hold this circuit: it needs {}",
        cs.minimum_rows()
    );
    rows - (cs.blinding_factors() + 1)
}

/// A stream of values for each row.
#[derive(Clone, Copy, Debug)]
pub struct Values {
    seed: u64,
}

impl Values {
    /// Values that follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// 64 bits for a row and a lane (a lane is any number that tells values of one row apart).
    pub fn bits(&self, row: usize, lane: u64) -> u64 {
        mix(mix(self.seed ^ mix(lane)).wrapping_add(row as u64))
    }

    /// A field element for a row and a lane, near uniform.
    pub fn field(&self, row: usize, lane: u64) -> Fr {
        let mut wide = [0u8; 64];
        for (i, limb) in wide.chunks_exact_mut(8).enumerate() {
            limb.copy_from_slice(&self.bits(row, (lane << 8) | (i as u64 + 1)).to_le_bytes());
        }
        Fr::from_uniform_bytes(&wide)
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
