//! Fields and the lanes that they have with the instructions of one processor. Memory: none.

use std::marker::PhantomData;

use ark_ff::{Fp, MontBackend, MontConfig, PrimeField, QuadExtConfig, QuadExtField};

use super::avx2::{self, Avx2};
use super::avx512::{self, Ifma};
use super::lanes::{Kernel, Lanes, LoopPart, WideKernel, WideLanes};
use super::quadratic::Quadratic;
use crate::field::CoordinateField;

/// A field that has lanes with the instructions of several processors.
pub trait Packed: Sized {
    /// Its lanes of AVX2.
    type Four: Lanes<Self, { avx2::WIDTH }>
    where
        Self: CoordinateField;
    /// Its lanes of AVX-512.
    type Eight: Lanes<Self, { avx512::WIDTH }>
    where
        Self: CoordinateField;

    /// Its lanes of AVX2, if its constants are in range.
    fn four(avx2: Avx2) -> Option<Self::Four>
    where
        Self: CoordinateField;

    /// Its lanes of AVX-512, if its constants are in range.
    fn eight(ifma: Ifma) -> Option<Self::Eight>
    where
        Self: CoordinateField;
}

macro_rules! packed {
    ($words:literal words in $limbs:literal limbs of $bits:literal bits in $pairs:literal pairs, or in $eight_limbs:literal) => {
        impl<T: MontConfig<$words>> Packed for Fp<MontBackend<T, $words>, $words> {
            type Four = avx2::Prime<T, $words, $limbs, $pairs, $bits>;
            type Eight = avx512::Prime<T, $words, $eight_limbs>;

            fn four(avx2: Avx2) -> Option<Self::Four> {
                avx2::Prime::new(avx2)
            }

            fn eight(ifma: Ifma) -> Option<Self::Eight> {
                avx512::Prime::new(ifma)
            }
        }
    };
}

packed!(4 words in 9 limbs of 29 bits in 5 pairs, or in 5);
packed!(6 words in 14 limbs of 28 bits in 7 pairs, or in 8);

impl<P> Packed for QuadExtField<P>
where
    P: QuadExtConfig<BaseField: CoordinateField<Prime = P::BaseField> + PrimeField>,
    <P::BaseField as Packed>::Four:
        Lanes<P::BaseField, { avx2::WIDTH }, Prime = <P::BaseField as Packed>::Four>,
    <P::BaseField as Packed>::Eight:
        Lanes<P::BaseField, { avx512::WIDTH }, Prime = <P::BaseField as Packed>::Eight>,
{
    type Four = Quadratic<<P::BaseField as Packed>::Four>;
    type Eight = Quadratic<<P::BaseField as Packed>::Eight>;

    fn four(avx2: Avx2) -> Option<Self::Four> {
        P::BaseField::four(avx2).and_then(Quadratic::over::<P>)
    }

    fn eight(ifma: Ifma) -> Option<Self::Eight> {
        P::BaseField::eight(ifma).and_then(Quadratic::over::<P>)
    }
}

/// A loop and its lanes.
pub(super) struct Loop<F, L, K, const W: usize> {
    lanes: L,
    kernel: K,
    field: PhantomData<F>,
}

impl<F, L, K, const W: usize> Loop<F, L, K, W> {
    pub(super) fn new(lanes: L, kernel: K) -> Self {
        Self {
            lanes,
            kernel,
            field: PhantomData,
        }
    }
}

impl<F: CoordinateField, L: Lanes<F, W>, K: Kernel<F>, const W: usize> LoopPart for Loop<F, L, K, W> {
    type Output = K::Output;

    #[inline(always)]
    fn run(self) -> K::Output {
        self.kernel.run(self.lanes)
    }
}

/// A loop and its wide lanes.
pub(super) struct WideLoop<F, L, K, const W: usize> {
    lanes: L,
    kernel: K,
    field: PhantomData<F>,
}

impl<F, L, K, const W: usize> WideLoop<F, L, K, W> {
    pub(super) fn new(lanes: L, kernel: K) -> Self {
        Self {
            lanes,
            kernel,
            field: PhantomData,
        }
    }
}

impl<F: CoordinateField, L: WideLanes<F, W>, K: WideKernel<F>, const W: usize> LoopPart
    for WideLoop<F, L, K, W>
{
    type Output = K::Output;

    #[inline(always)]
    fn run(self) -> K::Output {
        self.kernel.run(self.lanes)
    }
}
