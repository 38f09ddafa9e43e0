//! Streamed polynomial scans: each takes one chunk of a long vector and a carry, and gives the next carry.
//!
//! Shapes: a polynomial of n coefficients is n scalars, lowest degree first. "From the top" means chunks are
//! visited from the highest to the lowest; each chunk is itself in natural order. Functions run on the rayon
//! pool they are called from, in pieces of [`PIECE`] scalars, but for those whose page says one thread.
//! Memory: per function, O(n_chunk / PIECE) scalars, plus one piece per thread where it says so.
//!
//! - [`evaluate_chunk_many`]: Horner, from the top.
//! - [`divide_chunk`]: division by (X - a), from the top (synthetic division; the quotient KZG openings
//!   need).
//! - [`fraction_product_chunk`]: exclusive prefix product of fractions, from the bottom (grand products).
//! - [`invert_chunk`]: batch inversion; zeros stay zero. [`quotients`]: of fractions, most of them whole.
//! - [`add_scaled`], [`linear_combination`], [`add_linear_combination`]: sums of scaled vectors.
//! - [`multiply_permutation_factors`], [`multiply_shifted`], [`gathered_products`]: what grand products are
//!   made of.
//! - [`powers`], [`scale_powers`]: geometric sequences.
//!
//! Bounds of the loops in lanes ([`super::backend`]), in multiples of p <= R / 32 with a shift of at most 16,
//! where a product of a and b is below `a b / 32 + 2`. Horner's sums: a value below 4 times a shifted point
//! below 1, and a coefficient, 2.2 + 1. Running products: a value x times a shifted one is below `x / 2 + 2`,
//! so below 4 throughout. A sum of 64 products of values below 1 that is reduced once: below 64 / 32 + 2 = 4.
//! A permutation's factors: 1 + 1 + 1 and 2.1 + 1 + 1, each times 16, below 4.1. All of that is in reach of
//! `canonical` (7).

mod blocks;
/// For [`crate::compiled`].
pub(crate) mod compiled {
    pub use super::blocks::{
        BlockProducts, BlockValues, Blocks, Divide, Evaluate, PrefixProducts, SuffixProducts,
    };
    pub use super::combine::{AddScaled, Powers};
    pub use super::factors::{Gathered, PermutationFactors, Shifted};
}
mod combine;
mod factors;
mod fraction;
mod invert;
mod scan;

pub use combine::{
    add_linear_combination, add_scaled, linear_combination, powers, powers_on_one_thread, scale_powers,
};
pub use factors::{PermutationChallenges, gathered_products, multiply_permutation_factors, multiply_shifted};
pub use fraction::quotients;
pub use invert::invert_chunk;
pub use scan::{divide_chunk, evaluate_chunk_many, fraction_product_chunk};

/// Scalars that one task works on: 32 KiB, so that a piece stays in the first-level cache.
pub const PIECE: usize = 1024;
