//! Arithmetic of a quadratic extension, c0 + c1 u with u^2 = beta, over the branchless arithmetic of its
//! prime field.
//!
//! Products are Karatsuba's: three of the prime field. The inverse is conj(x) / N(x) with the norm N(x) =
//! c0^2 - beta c1^2, so that many inverses share one inversion in the prime field.

use ark_ff::{QuadExtConfig, QuadExtField};

use super::CoordinateField;
use crate::backend::Vectorised;

impl<P> CoordinateField for QuadExtField<P>
where
    P: QuadExtConfig,
    P::BaseField: CoordinateField<Prime = P::BaseField> + ark_ff::PrimeField,
    Self: Vectorised,
{
    type Prime = P::BaseField;

    #[inline(always)]
    fn plus(&self, other: &Self) -> Self {
        Self::new(self.c0.plus(&other.c0), self.c1.plus(&other.c1))
    }

    #[inline(always)]
    fn minus(&self, other: &Self) -> Self {
        Self::new(self.c0.minus(&other.c0), self.c1.minus(&other.c1))
    }

    #[inline(always)]
    fn times(&self, other: &Self) -> Self {
        let low = self.c0.times(&other.c0);
        let mut high = self.c1.times(&other.c1);
        let both = self.c0.plus(&self.c1).times(&other.c0.plus(&other.c1));
        let c1 = both.minus(&low).minus(&high);
        Self::new(low.plus(P::mul_base_field_by_nonresidue_in_place(&mut high)), c1)
    }

    #[inline(always)]
    fn squared(&self) -> Self {
        // (c0 + c1) (c0 + beta c1) = c0^2 + beta c1^2 + (1 + beta) c0 c1.
        let product = self.c0.times(&self.c1);
        let (mut scaled, mut mixed) = (self.c1, product);
        let sum = self
            .c0
            .plus(P::mul_base_field_by_nonresidue_in_place(&mut scaled));
        let squares = self.c0.plus(&self.c1).times(&sum).minus(&product);
        let c0 = squares.minus(P::mul_base_field_by_nonresidue_in_place(&mut mixed));
        Self::new(c0, product.doubled())
    }

    #[inline(always)]
    fn signed(&self, negative: bool) -> Self {
        Self::new(self.c0.signed(negative), self.c1.signed(negative))
    }

    fn inverted(&self) -> Option<Self> {
        self.norm().inverted().map(|inverse| self.over_norm(&inverse))
    }

    #[inline(always)]
    fn norm(&self) -> P::BaseField {
        let mut square = self.c1.squared();
        self.c0
            .squared()
            .minus(P::mul_base_field_by_nonresidue_in_place(&mut square))
    }

    #[inline(always)]
    fn over_norm(&self, inverse_norm: &P::BaseField) -> Self {
        Self::new(self.c0.times(inverse_norm), self.c1.negated().times(inverse_norm))
    }
}
