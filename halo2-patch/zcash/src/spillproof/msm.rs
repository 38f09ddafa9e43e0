//! The scalars of the bases in a verifier's sum, n of them, as what they are made of: the challenges of
//! openings, and a constant.
//!
//! Stock holds them as a vector. An opening's challenges u_1, ..., u_k stand for the vector s with
//!
//! ```text
//! s_i = product over the bits b of i that are set of u_(k - b)
//! ```
//!
//! (The halo2 Book, *Inner product argument*), so k challenges and a factor are enough until the sum is
//! evaluated, which then streams. A vector of a caller's is kept as it is.
//!
//! Memory: the challenges; the vector too where a slice is asked for.

use std::ops::Deref;
use std::sync::OnceLock;

use ff::Field;
use spillproof_engine::stream::ForeignScalars;
use spillproof_kernels::field::KernelField;

use super::convert::scalar;
use crate::arithmetic::parallelize;

/// log2 of the scalars that share the factor of their higher bits.
const LOG_BLOCK: usize = 10;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct BaseScalars<F> {
    len: usize,
    /// Added to the first scalar.
    constant: F,
    openings: Vec<Opening<F>>,
    /// A caller's own, if there are any.
    vector: Vec<F>,
    slice: OnceLock<Vec<F>>,
}

/// A multiple of the scalars of one opening.
#[derive(Clone, Debug)]
struct Opening<F> {
    factor: F,
    challenges: Vec<F>,
}

impl<F: Field> BaseScalars<F> {
    /// `len` zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        Self {
            len,
            constant: F::ZERO,
            openings: Vec::new(),
            vector: Vec::new(),
            slice: OnceLock::new(),
        }
    }

    /// Those of one opening, times `factor`.
    pub(crate) fn of_opening(challenges: &[F], factor: F) -> Self {
        let mut scalars = Self::zeros(1 << challenges.len());
        scalars.add_opening(challenges, factor);
        scalars
    }

    /// Adds to the first one.
    pub(crate) fn add_constant(&mut self, constant: F) {
        self.slice.take();
        self.constant += constant;
    }

    /// Adds those of an opening, times `factor`.
    ///
    /// Panics for another number of them.
    pub(crate) fn add_opening(&mut self, challenges: &[F], factor: F) {
        assert_eq!(1 << challenges.len(), self.len);
        self.slice.take();
        let challenges = challenges.to_vec();
        self.openings.push(Opening { factor, challenges });
    }

    /// Adds a caller's.
    ///
    /// Panics for another number of them.
    pub(crate) fn add_vector(&mut self, vector: &[F]) {
        assert_eq!(vector.len(), self.len);
        self.slice.take();
        if self.vector.is_empty() {
            self.vector = vector.to_vec();
            return;
        }
        self.vector
            .iter_mut()
            .zip(vector)
            .for_each(|(sum, value)| *sum += value);
    }

    /// Adds those of another sum.
    pub(crate) fn add(&mut self, other: &Self) {
        self.add_constant(other.constant);
        for opening in &other.openings {
            self.add_opening(&opening.challenges, opening.factor);
        }
        if !other.vector.is_empty() {
            self.add_vector(&other.vector);
        }
    }

    /// Multiplies all of them.
    pub(crate) fn scale(&mut self, factor: F) {
        self.slice.take();
        self.constant *= factor;
        self.openings
            .iter_mut()
            .for_each(|opening| opening.factor *= factor);
        self.vector.iter_mut().for_each(|value| *value *= factor);
    }

    /// The scalars from `start` on, as many as `out` holds.
    fn values(&self, start: usize, out: &mut [F]) {
        match self.vector.is_empty() {
            true => out.fill(F::ZERO),
            false => out.copy_from_slice(&self.vector[start..start + out.len()]),
        }
        if let (0, Some(first)) = (start, out.first_mut()) {
            *first += self.constant;
        }
        for opening in &self.openings {
            opening.add_to(start, out);
        }
    }
}

impl<F: Field> Opening<F> {
    fn add_to(&self, start: usize, out: &mut [F]) {
        // Of the bits of an index, the lowest first.
        let of_bits: Vec<F> = self.challenges.iter().rev().copied().collect();
        let (low, high) = of_bits.split_at(of_bits.len().min(LOG_BLOCK));
        let block = low.iter().fold(vec![self.factor], |mut block, challenge| {
            block.extend_from_within(..);
            let half = block.len() / 2;
            block[half..].iter_mut().for_each(|value| *value *= challenge);
            block
        });
        let mut at = start;
        let mut left = out;
        while !left.is_empty() {
            let within = at % block.len();
            let now = (block.len() - within).min(left.len());
            let number = at / block.len();
            let is_set = |bit: usize| number >> bit & 1 == 1;
            let above = high.iter().enumerate().filter(|(bit, _)| is_set(*bit));
            let above = above.fold(F::ONE, |product, (_, challenge)| product * challenge);
            let (these, rest) = left.split_at_mut(now);
            for (value, of_block) in these.iter_mut().zip(&block[within..]) {
                *value += *of_block * above;
            }
            (left, at) = (rest, at + now);
        }
    }
}

impl<F: Field> Deref for BaseScalars<F> {
    type Target = [F];

    /// All of them, in memory.
    fn deref(&self) -> &[F] {
        self.slice.get_or_init(|| {
            let mut all = vec![F::ZERO; self.len];
            parallelize(&mut all, |values, start| self.values(start, values));
            all
        })
    }
}

impl<F: Field, G: KernelField> ForeignScalars<G> for BaseScalars<F> {
    fn count(&self) -> usize {
        self.len
    }

    fn fill(&self, start: usize, out: &mut [G]) {
        /// Scalars that are converted at a time.
        const TILE: usize = 1 << LOG_BLOCK;
        parallelize(out, |out, offset| {
            let mut tile = vec![F::ZERO; out.len().min(TILE)];
            for (number, out) in out.chunks_mut(TILE).enumerate() {
                let tile = &mut tile[..out.len()];
                self.values(start + offset + number * TILE, tile);
                out.iter_mut()
                    .zip(&*tile)
                    .for_each(|(out, value)| *out = scalar(value));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use pasta_curves::Fp;
    use proptest::prelude::*;

    use super::*;

    /// From the definition.
    fn naive(challenges: &[Fp], factor: Fp) -> Vec<Fp> {
        let k = challenges.len();
        let product = |index: usize| {
            let set = (0..k).filter(|bit| index >> bit & 1 == 1);
            set.fold(factor, |product, bit| product * challenges[k - 1 - bit])
        };
        (0..1 << k).map(product).collect()
    }

    proptest! {
        #[test]
        fn scalars_are_sums_of_openings(
            k in 1..13usize,
            seeds in prop::collection::vec(2..u64::MAX, 1..4),
            constant in any::<u64>(),
            with_vector in any::<bool>(),
        ) {
            let mut scalars = BaseScalars::<Fp>::zeros(1 << k);
            let mut expected = vec![Fp::ZERO; 1 << k];
            for seed in seeds {
                let challenges: Vec<Fp> = (1..=k as u64).map(|round| Fp::from(seed).pow_vartime([round + 1])).collect();
                let factor = Fp::from(seed >> 7);
                scalars.add_opening(&challenges, factor);
                let opening = naive(&challenges, factor);
                expected.iter_mut().zip(&opening).for_each(|(sum, value)| *sum += value);
                if with_vector {
                    scalars.add_vector(&opening);
                    expected.iter_mut().zip(&opening).for_each(|(sum, value)| *sum += value);
                }
            }
            scalars.add_constant(Fp::from(constant));
            expected[0] += Fp::from(constant);
            scalars.scale(Fp::from(3));
            expected.iter_mut().for_each(|value| *value *= Fp::from(3));
            prop_assert_eq!(&scalars[..], &expected[..]);
            let mut twice = scalars.clone();
            twice.add(&scalars);
            let filled = |scalars: &BaseScalars<Fp>, start, len| {
                let mut out = vec![ark_pallas::Fq::from(0u64); len];
                scalars.fill(start, &mut out);
                out
            };
            let start = (1 << k) / 3;
            let len = (1 << k) - start;
            let doubled: Vec<ark_pallas::Fq> = expected[start..].iter().map(|value| scalar(&value.double())).collect();
            prop_assert_eq!(filled(&twice, start, len), doubled);
        }
    }
}
