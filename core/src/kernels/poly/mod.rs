//! Streamed polynomial scans: each takes one chunk of a long vector and a carry, and gives the next carry.
//!
//! Shapes: a polynomial of n coefficients is n scalars, lowest degree first. "From the top" means chunks are visited from the
//! highest to the lowest; each chunk is itself in natural order. All functions run on the rayon pool they are called
//! from, in pieces of [`PIECE`] scalars. Memory: per function, O(n_chunk / PIECE) scalars, plus one piece per thread
//! where it says so.
//!
//! - [`evaluate_chunk`]: Horner, from the top.
//! - [`divide_chunk`]: division by (X - a), from the top (synthetic division; the quotient KZG openings need).
//! - [`prefix_product_chunk`]: exclusive prefix product, from the bottom; [`fraction_product_chunk`]: of fractions (grand
//!   products).
//! - [`invert_chunk`]: batch inversion; zeros stay zero. [`quotients`]: of fractions, most of them whole.
//! - [`add_scaled`], [`linear_combination`], [`add_linear_combination`]: sums of scaled vectors.
//! - [`multiply_permutation_factors`], [`multiply_shifted`], [`gathered_products`]: what grand products are made of.
//! - [`powers`], [`scale_powers`]: geometric sequences.

mod combine;
mod eight;
mod factors;
mod fraction;
mod invert;
mod scan;

pub use combine::{add_linear_combination, add_scaled, linear_combination, powers, scale_powers};
pub use factors::{PermutationChallenges, gathered_products, multiply_permutation_factors, multiply_shifted};
pub use fraction::quotients;
pub use invert::invert_chunk;
pub use scan::{
    divide_chunk, evaluate_chunk, evaluate_chunk_many, fraction_product_chunk, prefix_product_chunk,
};

/// Scalars that one task works on: 32 KiB, so that a piece stays in the first-level cache.
pub const PIECE: usize = 1024;

#[cfg(test)]
mod tests;
