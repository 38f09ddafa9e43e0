//! Field arithmetic without branches, on arkworks' own types.
//!
//! Values are arkworks' `Fp<MontBackend<_, N>, N>`: limbs little-endian, Montgomery form with R = 2^(64 N),
//! so that nothing is converted on the way in or out. arkworks' additions branch on the comparison with p,
//! which the processor can't predict for random values: the versions here do not branch, and are what the
//! inner loops of [`super::msm`], [`super::ntt`] and [`super::poly`] use. Memory: none.
//!
//! The family of traits, each an extension of the one before:
//! - [`NativeField`] (`spillproof-format`): an element as bytes.
//! - [`CoordinateField`]: branchless arithmetic, on one backend or another. Points have their coordinates in
//!   it: primes of 4 limbs (BN254, Pallas, Vesta) and of 6 limbs (BLS12-381), and quadratic extensions of
//!   both (G2).
//! - [`KernelField`]: a prime of 4 limbs, as scalars are. Transforms, polynomials and programs work in it.
//!
//! Bounds: every public value is *canonical*, below p. Between butterflies only, values of fields with 4p <
//! 2^256 may be *lazy*, below 4p (Harvey, *Faster arithmetic for number-theoretic transforms*, 2014,
//! algorithm 4).

mod inverse;
mod limbs;
mod quadratic;

use std::marker::PhantomData;

use ark_ff::{BigInt, Field, Fp, MontBackend, MontConfig, PrimeField, Zero};
pub use spillproof_format::native::NativeField;

use super::backend::{Vectorised, WideVectorised};
use super::compiled::FieldKernels;
use limbs::{Constants, add, multiply_unreduced, select, sub, subtract_once};

/// A field in which points of a curve have their coordinates: branchless arithmetic on canonical values.
///
/// Implemented for arkworks' prime fields of 4 and 6 limbs, and their quadratic extensions.
pub trait CoordinateField: NativeField + Vectorised {
    /// The prime field itself, or the one that this is an extension of.
    type Prime: CoordinateField<Prime = Self::Prime> + PrimeField;
    /// `self + other`.
    fn plus(&self, other: &Self) -> Self;
    /// `self - other`.
    fn minus(&self, other: &Self) -> Self;
    /// `self * other`.
    fn times(&self, other: &Self) -> Self;
    /// `self * self`.
    fn squared(&self) -> Self;
    /// `2 * self`.
    #[inline(always)]
    fn doubled(&self) -> Self {
        self.plus(self)
    }
    /// `-self`.
    #[inline(always)]
    fn negated(&self) -> Self {
        Self::ZERO.minus(self)
    }
    /// `-self` if `negative`, else `self`, without a branch.
    fn signed(&self, negative: bool) -> Self;
    /// `1 / self`, none for zero. With branches on the value.
    fn inverted(&self) -> Option<Self>;
    /// An element of the prime field that is zero for zero only, and with which [`Self::over_norm`] divides:
    /// the element itself, or its norm.
    fn norm(&self) -> Self::Prime;
    /// `1 / self`, for the inverse of [`Self::norm`].
    fn over_norm(&self, inverse_norm: &Self::Prime) -> Self;
}

/// A prime field of four limbs: that of scalars, in which transforms, polynomials and constraint programs
/// work.
///
/// Implemented for the fields of [`FieldKernels`]. Functions with `lazy` in their name take and give lazy
/// values, all others canonical ones.
pub trait KernelField: CoordinateField<Prime = Self> + PrimeField + WideVectorised + FieldKernels {
    /// Whether 4p < 2^256. Else lazy values are canonical ones.
    const LAZY: bool;
    /// The four limbs in Montgomery form, little-endian.
    fn montgomery_limbs(&self) -> &[u64; 4];
    /// The four limbs in Montgomery form, little-endian; they have to stay below p.
    fn montgomery_limbs_mut(&mut self) -> &mut [u64; 4];
    /// `self * factor`, below 2p if `LAZY`, for a lazy `self` and a canonical factor.
    fn lazy_product(&self, factor: &Self) -> Self;
    /// A lazy value, less 2p if it is not below that.
    fn below_two_p(&self) -> Self;
    /// `(low + second, low - second)`, lazy, for a lazy `low`, and `second` below 2p if `LAZY`.
    fn lazy_sum_and_difference(low: &mut Self, high: &mut Self, second: &Self);
    /// A lazy value modulo p.
    fn canonical(&self) -> Self;
}

#[inline(always)]
fn element<T: MontConfig<N>, const N: usize>(limbs: [u64; N]) -> Fp<MontBackend<T, N>, N> {
    Fp(BigInt(limbs), PhantomData)
}

impl<T: MontConfig<N>, const N: usize> CoordinateField for Fp<MontBackend<T, N>, N>
where
    Self: Vectorised,
{
    type Prime = Self;

    #[inline(always)]
    fn plus(&self, other: &Self) -> Self {
        let (sum, carry) = add(&self.0.0, &other.0.0);
        element(subtract_once(&sum, carry, &Constants::<T, N>::P))
    }

    #[inline(always)]
    fn minus(&self, other: &Self) -> Self {
        let (difference, borrow) = sub(&self.0.0, &other.0.0);
        let correction = select(borrow, &Constants::<T, N>::P, &[0; N]);
        element(add(&difference, &correction).0)
    }

    #[inline(always)]
    fn times(&self, other: &Self) -> Self {
        if Constants::<T, N>::SPARE_BIT {
            let product = multiply_unreduced::<T, N>(&self.0.0, &other.0.0);
            element(subtract_once(&product, false, &Constants::<T, N>::P))
        } else {
            *self * other
        }
    }

    #[inline(always)]
    fn squared(&self) -> Self {
        self.times(self)
    }

    #[inline(always)]
    fn signed(&self, negative: bool) -> Self {
        element(select(negative, &self.negated().0.0, &self.0.0))
    }

    fn inverted(&self) -> Option<Self> {
        if !Constants::<T, N>::SPARE_BIT {
            return self.inverse();
        }
        if self.is_zero() {
            return None;
        }
        // Of x R it is 1 / (x R), and has to become R / x.
        let inverse = element(inverse::inverse(
            &self.0.0,
            const { &Constants::<T, N>::P },
            T::INV,
        ));
        let square = element(T::R2.0);
        Some(inverse.times(&square).times(&square))
    }

    #[inline(always)]
    fn norm(&self) -> Self {
        *self
    }

    #[inline(always)]
    fn over_norm(&self, inverse_norm: &Self) -> Self {
        *inverse_norm
    }
}

impl<T: MontConfig<4>> KernelField for Fp<MontBackend<T, 4>, 4>
where
    Self: FieldKernels,
{
    const LAZY: bool = Constants::<T, 4>::LAZY;

    #[inline(always)]
    fn montgomery_limbs(&self) -> &[u64; 4] {
        &self.0.0
    }

    #[inline(always)]
    fn montgomery_limbs_mut(&mut self) -> &mut [u64; 4] {
        &mut self.0.0
    }

    #[inline(always)]
    fn lazy_product(&self, factor: &Self) -> Self {
        if Self::LAZY {
            element(multiply_unreduced::<T, 4>(&self.0.0, &factor.0.0))
        } else {
            self.times(factor)
        }
    }

    #[inline(always)]
    fn below_two_p(&self) -> Self {
        if Self::LAZY {
            element(subtract_once(&self.0.0, false, &Constants::<T, 4>::TWO_P))
        } else {
            *self
        }
    }

    #[inline(always)]
    fn lazy_sum_and_difference(low: &mut Self, high: &mut Self, second: &Self) {
        if Self::LAZY {
            let first = low.below_two_p().0.0;
            *low = element(add(&first, &second.0.0).0);
            *high = element(sub(&add(&first, &Constants::<T, 4>::TWO_P).0, &second.0.0).0);
        } else {
            (*low, *high) = (low.plus(second), low.minus(second));
        }
    }

    #[inline(always)]
    fn canonical(&self) -> Self {
        if Self::LAZY {
            let below_2p = self.below_two_p();
            element(subtract_once(&below_2p.0.0, false, &Constants::<T, 4>::P))
        } else {
            *self
        }
    }
}
