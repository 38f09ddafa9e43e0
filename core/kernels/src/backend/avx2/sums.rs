//! Sums of products in columns, before they are reduced. Bounds are those of the room's page. Memory: none.

use std::arch::x86_64::__m256i;

use super::{Avx2, Columns, Limbs};
use crate::backend::lanes::LoopPart;
use crate::backend::limbs::{Words, unrolled};
use crate::backend::radix::mask;

/// log2 of what columns borrow from the next.
const BORROWED_COLUMNS: usize = 50;

/// A product to be added to columns, as a function of its own.
pub(super) struct Add<'a, const L: usize, const B: usize> {
    pub(super) columns: &'a mut Columns<L>,
    pub(super) product: Product<'a, L>,
}

impl<const L: usize, const B: usize> LoopPart for Add<'_, L, B> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { columns, product } = self;
        let avx2 = product.avx2;
        let limb_mask = avx2.word(mask::<B>());
        let mut carry = avx2.word(0);
        let [lower, upper] = &mut columns.0;
        unrolled!(i below L in {
            let column = product.column(i);
            lower[i] = avx2.plus(avx2.plus(lower[i], carry), avx2.and(column, limb_mask));
            carry = avx2.shift_right(column, B);
        });
        unrolled!(i below L in {
            let column = product.column(L + i);
            upper[i] = avx2.plus(avx2.plus(upper[i], carry), avx2.and(column, limb_mask));
            carry = avx2.shift_right(column, B);
        });
        // The last column is a carry alone, and has none.
        let _ = carry;
    }
}

/// A product of two carried values.
#[derive(Clone, Copy)]
pub(super) struct Product<'a, const L: usize> {
    pub(super) avx2: Avx2,
    pub(super) a: &'a Limbs<L>,
    pub(super) b: &'a Limbs<L>,
}

impl<const L: usize> Product<'_, L> {
    #[inline(always)]
    fn column(self, index: usize) -> __m256i {
        let mut sum = self.avx2.word(0);
        unrolled!(i below L in {
            if i <= index && index < L + i {
                let term = self.avx2.product(self.a.0[i], self.b.0[index - i]);
                sum = self.avx2.plus(sum, term);
            }
        });
        sum
    }
}

/// Columns, each of which borrows from the next.
#[derive(Clone, Copy)]
pub(super) struct Borrowing<'a, const L: usize, const B: usize> {
    pub(super) avx2: Avx2,
    pub(super) columns: &'a Columns<L>,
}

impl<const L: usize, const B: usize> Borrowing<'_, L, B> {
    /// Column `index`, not negative, unless the sum is and this is the last one.
    #[inline(always)]
    pub(super) fn column(self, index: usize) -> __m256i {
        let mut borrowed = 0u64;
        if index + 1 < 2 * L {
            borrowed += 1 << BORROWED_COLUMNS;
        }
        if index > 0 {
            borrowed = borrowed.wrapping_sub(1 << (BORROWED_COLUMNS - B));
        }
        self.avx2
            .plus(self.columns.0[index / L][index % L], self.avx2.word(borrowed))
    }
}
