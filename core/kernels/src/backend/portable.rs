//! One element at a time, in plain Rust: every value is canonical, and its native form is its form. Memory:
//! none.

use super::lanes::{Beside, Lanes, LoopPart};
use crate::field::CoordinateField;

/// The lanes of every processor.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl<F: CoordinateField> Lanes<F, 1> for Portable {
    type Native = F;
    type Value = F;
    type Kept = F;
    type Columns = F;
    type Transposed = F;
    type Prime = Self;
    const CHAINS: usize = 4;
    const SHIFT: u32 = 0;
    const EXTENSION: bool = size_of::<F>() != size_of::<F::Prime>();
    const COLUMNS: bool = false;

    #[inline(always)]
    fn prime(self) -> Self {
        self
    }

    #[inline(never)]
    fn outlined<K: LoopPart>(self, part: K) -> K::Output {
        part.run()
    }

    #[inline(always)]
    fn gather(self, [from]: [&F; 1]) -> F {
        *from
    }

    #[inline(always)]
    fn unpack(self, value: &F) -> F {
        *value
    }

    #[inline(always)]
    fn unpack_shifted(self, value: &F) -> F {
        *value
    }

    #[inline(always)]
    fn splat(self, value: &F) -> F {
        *value
    }

    #[inline(always)]
    fn keep(self, value: &F) -> F {
        *value
    }

    #[inline(always)]
    fn kept(self, value: &F) -> F {
        *value
    }

    #[inline(always)]
    fn rows(self, value: &F) -> F {
        *value
    }

    #[inline(always)]
    fn store_row(self, rows: &F, _: usize, to: &mut F) {
        *to = *rows;
    }

    #[inline(always)]
    fn prefetch<T>(self, _: &T) {}

    #[inline(always)]
    fn product_beside(self, a: &F, b: &F, beside: &mut impl Beside) -> F {
        const STEPS: usize = 10;
        for step in 0..STEPS {
            beside.step(step, STEPS);
        }
        a.times(b)
    }

    #[inline(always)]
    fn square(self, a: &F) -> F {
        a.squared()
    }

    #[inline(always)]
    fn no_columns(self) -> F {
        F::ZERO
    }

    #[inline(always)]
    fn add_product(self, columns: &mut F, a: &F, b: &F) {
        *columns = columns.plus(&a.times(b));
    }

    #[inline(always)]
    fn columns_difference(self, a: &F, b: &F) -> F {
        a.minus(b)
    }

    #[inline(always)]
    fn reduced(self, columns: &F) -> F {
        *columns
    }

    #[inline(always)]
    fn reduced_above(self, columns: &F, _: usize) -> F {
        *columns
    }

    #[inline(always)]
    fn sum(self, a: &F, b: &F) -> F {
        a.plus(b)
    }

    #[inline(always)]
    fn difference(self, a: &F, b: &F, _: usize) -> F {
        a.minus(b)
    }

    #[inline(always)]
    fn signed(self, a: &F, mask: u8) -> F {
        a.signed(mask & 1 == 1)
    }

    #[inline(always)]
    fn half_shifted(self, a: &F) -> F {
        *a
    }

    #[inline(always)]
    fn carried(self, a: F) -> F {
        a
    }

    #[inline(always)]
    fn canonical(self, a: F) -> F {
        a
    }

    #[inline(always)]
    fn norm(self, a: &F) -> F::Prime {
        a.norm()
    }

    #[inline(always)]
    fn over_norm(self, a: &F, inverse: &F::Prime) -> F {
        a.over_norm(inverse)
    }

    #[inline(always)]
    fn zeros(self, a: &F) -> u8 {
        u8::from(a.is_zero())
    }

    #[inline(always)]
    fn equals(self, a: &F, b: &F) -> u8 {
        u8::from(a == b)
    }

    #[inline(always)]
    fn same(self, a: &F, b: &F) -> u8 {
        u8::from(a == b)
    }

    #[inline(always)]
    fn unit(self) -> F {
        F::ONE
    }

    #[inline(always)]
    fn blend(self, mask: u8, a: &F, b: &F) -> F {
        if mask & 1 == 1 { *a } else { *b }
    }

    #[inline(always)]
    fn exchanged(self, a: &F, _: usize) -> F {
        *a
    }
}
