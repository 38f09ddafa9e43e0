//! Products in assembly. Each goes through one operand limb by limb: a row multiplies all limbs of the other
//! one by it.
//!
//! Why not by the compiler: sums of products by columns have more operands than there are registers, so that
//! it moves a vector for each multiplication. Here sums stay in registers, operands are read where they are
//! multiplied, and a Montgomery product is a loop of 42 instructions.
//!
//! Conventions of the texts: sums are in registers 0 to 13, 14 holds the factor of a row, 15 a term. Operands
//! and constants are in memory, 32 bytes a limb.
//! Memory: none.
#![allow(unsafe_code)]

use std::arch::asm;
use std::mem::MaybeUninit;

use super::{Limbs, WIDTH};
use crate::backend::lanes::{Factor, LoopPart};
use crate::backend::radix::{Radix, mask};

/// The constants of a prime in all lanes, as the texts read them.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Constants<const L: usize> {
    limb_mask: [u64; WIDTH],
    inverse: [u64; WIDTH],
    round: [[u64; WIDTH]; L],
    modulus: [[u64; WIDTH]; L],
    negative: [[u64; WIDTH]; L],
}

impl<const L: usize> Constants<L> {
    pub(super) const fn new<const B: usize>(radix: &Radix<B, L>) -> Self {
        Self {
            limb_mask: [mask::<B>(); WIDTH],
            inverse: [radix.inverse; WIDTH],
            round: in_all_lanes(&radix.round),
            modulus: in_all_lanes(&radix.modulus),
            negative: in_all_lanes(&radix.negative),
        }
    }
}

const fn in_all_lanes<const L: usize>(limbs: &[u64; L]) -> [[u64; WIDTH]; L] {
    let mut lanes = [[0; WIDTH]; L];
    let mut i = 0;
    while i < L {
        lanes[i] = [limbs[i]; WIDTH];
        i += 1;
    }
    lanes
}

/// Adds the row's factor times limbs of `from` to sums: a sum and a limb each.
macro_rules! add {
    ($from:literal: ($($sum:literal $limb:literal)*)) => {
        concat!($(
            "vpmuludq ymm15, ymm14, ymmword ptr [{", $from, "} + 32 * ", $limb, "]\n",
            "vpaddq ymm", $sum, ", ymm", $sum, ", ymm15\n",
        )*)
    };
}

/// The same for sums that begin with it.
macro_rules! begin {
    ($from:literal: ($($sum:literal $limb:literal)*)) => {
        concat!($("vpmuludq ymm", $sum, ", ymm14, ymmword ptr [{", $from, "} + 32 * ", $limb, "]\n",)*)
    };
}

/// The row's factor: a vector in memory.
macro_rules! load {
    ($from:literal $limb:literal) => {
        concat!("vmovdqa ymm14, ymmword ptr [{", $from, "} + 32 * ", $limb, "]\n")
    };
}

/// The row's factor: a word in memory, which is also half of the next one's.
macro_rules! broadcast {
    ($from:literal $word:literal) => {
        concat!(
            "vpbroadcastq ymm14, qword ptr [{",
            $from,
            "} + 8 * ",
            $word,
            "]\n"
        )
    };
}

/// The row's factor: the other half.
macro_rules! upper {
    () => {
        "vpsrlq ymm14, ymm14, 32\n"
    };
}

/// Carries each sum to the next one, the lower bits of which go to a limb of `to`: a sum, the next one, and
/// the limb each.
macro_rules! carry {
    ($to:literal: ($($sum:literal $next:literal $limb:literal)*)) => {
        concat!($(
            "vpsrlq ymm15, ymm", $sum, ", {bits}\n",
            "vpaddq ymm", $next, ", ymm", $next, ", ymm15\n",
            "vpand ymm15, ymm", $next, ", ymmword ptr [{limb_mask}]\n",
            "vmovdqa ymmword ptr [{", $to, "} + 32 * ", $limb, "], ymm15\n",
        )*)
    };
}

/// The carry of the last sum to the last limb of `to`.
macro_rules! carry_last {
    ($to:literal: ($sum:literal $limb:literal)) => {
        concat!(
            "vpsrlq ymm15, ymm",
            $sum,
            ", {bits}\n",
            "vmovdqa ymmword ptr [{",
            $to,
            "} + 32 * ",
            $limb,
            "], ymm15\n",
        )
    };
}

/// Sums to the limbs of `to`.
macro_rules! store {
    ($to:literal: ($($sum:literal)*)) => {
        concat!($("vmovdqa ymmword ptr [{", $to, "} + 32 * ", $sum, "], ymm", $sum, "\n",)*)
    };
}

/// A text of which nothing is left but what it has written.
macro_rules! text {
    ($($text:tt)*) => {
        asm!(
            $($text)*
            bits = const B,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
            out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack),
        )
    };
}

/// The row's factor twice.
macro_rules! twice {
    () => {
        "vpaddq ymm14, ymm14, ymm14\n"
    };
}

/// A round of reduction, which adds multiples of limbs of `round` to the sums, and moves all of them down by
/// one: a sum and the next one each, and the last.
macro_rules! reduce {
    (($($sum:literal $next:literal)*) $last:literal) => {
        concat!(
            "vpand ymm14, ymm0, ymmword ptr [{limb_mask}]\n",
            "vpsrlq ymm0, ymm0, {bits}\n",
            "vpaddq ymm1, ymm1, ymm0\n",
            $(
                "vpmuludq ymm15, ymm14, ymmword ptr [{round} + 32 * ", $sum, "]\n",
                "vpaddq ymm", $sum, ", ymm", $next, ", ymm15\n",
            )*
            "vpmuludq ymm", $last, ", ymm14, ymmword ptr [{round} + 32 * ", $last, "]\n",
        )
    };
}

/// The last round, as in the textbook, and carries. The lowest sum is then zero but for its carry.
macro_rules! reduce_last {
    ($row:tt $carries:tt $last:tt) => {
        concat!(
            "vpmuludq ymm14, ymm0, ymmword ptr [{inverse}]\n",
            "vpand ymm14, ymm14, ymmword ptr [{limb_mask}]\n",
            add!("modulus": $row),
            carry!("result": $carries),
            carry_last!("result": $last),
        )
    };
}

/// Sums of nothing.
macro_rules! zero {
    (($($sum:literal $limb:literal)*)) => {
        concat!($("vpxor xmm", $sum, ", xmm", $sum, ", xmm", $sum, "\n",)*)
    };
}

/// A sum of Montgomery products of carried values, which is reduced once: carried, below the sum of `a b / R`
/// and 2p.
pub(super) struct SumOfProducts<'a, const K: usize, const L: usize, const B: usize> {
    pub(super) a: [&'a Limbs<L>; K],
    pub(super) b: [&'a Limbs<L>; K],
    pub(super) constants: &'a Constants<L>,
}

/// Its text: the names of factors that rows multiply and of those they come from, lists of limbs for each
/// step, and further operands.
macro_rules! sum_of_products {
    (
        $self:ident, $result:ident, $(($a:literal $b:literal))*, $row:tt, $neighbours:tt, $carries:tt, $last:literal $to_last:literal,
        $($operand:tt)*
    ) => {
        text!(
            zero!($row),
            "2:",
            $(load!($b 0), add!($a: $row),)*
            reduce!($neighbours $last),
            $(concat!("add {", $b, "}, 32"),)*
            "cmp {b}, {end}",
            "jne 2b",
            $(load!($b 0), add!($a: $row),)*
            reduce_last!($row $carries ($last $to_last)),
            a = in(reg) $self.a[0],
            b = inout(reg) $self.b[0] => _,
            end = in(reg) &raw const $self.b[0].0[$last],
            limb_mask = in(reg) &$self.constants.limb_mask,
            inverse = in(reg) &$self.constants.inverse,
            round = in(reg) &$self.constants.round,
            modulus = in(reg) &$self.constants.modulus,
            result = in(reg) $result.as_mut_ptr(),
            $($operand)*
        )
    };
}

/// The lists for 9 limbs, and for 14.
macro_rules! of_limbs {
    ($self:ident, $result:ident, $names:tt, $operands:tt) => {
        if L == 9 {
            of_limbs!(@ $self, $result, $names, $operands,
                (0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8),
                (0 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8),
                (0 1 0 1 2 1 2 3 2 3 4 3 4 5 4 5 6 5 6 7 6 7 8 7), 8 8)
        } else {
            of_limbs!(@ $self, $result, $names, $operands,
                (0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8 9 9 10 10 11 11 12 12 13 13),
                (0 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8 9 9 10 10 11 11 12 12 13),
                (0 1 0 1 2 1 2 3 2 3 4 3 4 5 4 5 6 5 6 7 6 7 8 7 8 9 8 9 10 9 10 11 10 11 12 11 12 13 12), 13 13)
        }
    };
    (
        @ $self:ident, $result:ident, ($($names:tt)*), ($($operands:tt)*), $row:tt, $neighbours:tt, $carries:tt,
        $last:literal $to_last:literal
    ) => {
        sum_of_products!($self, $result, $($names)*, $row, $neighbours, $carries, $last $to_last, $($operands)*)
    };
}

impl<const K: usize, const L: usize, const B: usize> LoopPart for SumOfProducts<'_, K, L, B> {
    type Output = Limbs<L>;

    #[inline(always)]
    fn run(self) -> Limbs<L> {
        const { assert!((K == 1 || K == 2) && (L == 9 || L == 14)) };
        let mut result = MaybeUninit::<Limbs<L>>::uninit();
        // SAFETY: the texts read all limbs of the operands and of the constants, which are vectors or as many
        // words, aligned as such; they write all limbs of the result, and no other memory. They need AVX2,
        // and an [`super::Avx2`] runs them.
        unsafe {
            if K == 1 {
                of_limbs!(self, result, (("a" "b")), ());
            } else {
                of_limbs!(self, result, (("a" "b") ("c" "d")), (
                    c = in(reg) self.a[K - 1],
                    d = inout(reg) self.b[K - 1] => _,
                ));
            }
            result.assume_init()
        }
    }
}

/// The neighbours of [`reduce`] for nine limbs.
macro_rules! reduce_nine {
    () => {
        reduce!((0 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8) 8)
    };
}

/// A Montgomery square, as a sum of products. Of nine limbs, a row begins at its own limb, and counts later
/// ones twice.
pub(super) struct Square<'a, const L: usize, const B: usize> {
    pub(super) a: &'a Limbs<L>,
    pub(super) constants: &'a Constants<L>,
}

impl<const L: usize, const B: usize> LoopPart for Square<'_, L, B> {
    type Output = Limbs<L>;

    #[inline(always)]
    fn run(self) -> Limbs<L> {
        let Self { a, constants } = self;
        if L != 9 {
            let (a, b) = ([a], [a]);
            return SumOfProducts::<1, L, B> { a, b, constants }.run();
        }
        let mut result = MaybeUninit::<Limbs<L>>::uninit();
        // SAFETY: as for sums of products.
        unsafe {
            text!(
                load!("a" 0),
                begin!("a": (0 0)),
                twice!(),
                begin!("a": (1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8)),
                reduce_nine!(),
                load!("a" 1),
                add!("a": (1 1)),
                twice!(),
                add!("a": (2 2 3 3 4 4 5 5 6 6 7 7 8 8)),
                reduce_nine!(),
                load!("a" 2),
                add!("a": (2 2)),
                twice!(),
                add!("a": (3 3 4 4 5 5 6 6 7 7 8 8)),
                reduce_nine!(),
                load!("a" 3),
                add!("a": (3 3)),
                twice!(),
                add!("a": (4 4 5 5 6 6 7 7 8 8)),
                reduce_nine!(),
                load!("a" 4),
                add!("a": (4 4)),
                twice!(),
                add!("a": (5 5 6 6 7 7 8 8)),
                reduce_nine!(),
                load!("a" 5),
                add!("a": (5 5)),
                twice!(),
                add!("a": (6 6 7 7 8 8)),
                reduce_nine!(),
                load!("a" 6),
                add!("a": (6 6)),
                twice!(),
                add!("a": (7 7 8 8)),
                reduce_nine!(),
                load!("a" 7),
                add!("a": (7 7)),
                twice!(),
                add!("a": (8 8)),
                reduce_nine!(),
                load!("a" 8),
                add!("a": (8 8)),
                reduce_last!(
                    (0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8)
                    (0 1 0 1 2 1 2 3 2 3 4 3 4 5 4 5 6 5 6 7 6 7 8 7)
                    (8 8)
                ),
                a = in(reg) a,
                limb_mask = in(reg) &constants.limb_mask,
                inverse = in(reg) &constants.inverse,
                round = in(reg) &constants.round,
                modulus = in(reg) &constants.modulus,
                result = in(reg) result.as_mut_ptr(),
            );
            result.assume_init()
        }
    }
}

/// `a * w` modulo p and modulo 2^261, loose, for carried `a`: see the bounds of `butterfly.rs`. For nine
/// limbs of 29 bits.
pub(super) struct ScaledProduct<'a> {
    pub(super) a: &'a Limbs<9>,
    pub(super) factor: &'a Factor,
    pub(super) constants: &'a Constants<9>,
}

impl LoopPart for ScaledProduct<'_> {
    type Output = Limbs<9>;

    #[inline(always)]
    fn run(self) -> Limbs<9> {
        const B: usize = 29;
        let mut result = MaybeUninit::<Limbs<9>>::uninit();
        // SAFETY: as for sums of products; of the factor, the text reads ten words.
        unsafe {
            text!(
                // The quotient: columns 8 to 16 of the product with the estimate, without the lowest. It
                // waits where the result will be.
                broadcast!("factor" 5),
                begin!("a": (0 8)),
                upper!(),
                add!("a": (0 7)), begin!("a": (1 8)),
                broadcast!("factor" 6),
                add!("a": (0 6 1 7)), begin!("a": (2 8)),
                upper!(),
                add!("a": (0 5 1 6 2 7)), begin!("a": (3 8)),
                broadcast!("factor" 7),
                add!("a": (0 4 1 5 2 6 3 7)), begin!("a": (4 8)),
                upper!(),
                add!("a": (0 3 1 4 2 5 3 6 4 7)), begin!("a": (5 8)),
                broadcast!("factor" 8),
                add!("a": (0 2 1 3 2 4 3 5 4 6 5 7)), begin!("a": (6 8)),
                upper!(),
                add!("a": (0 1 1 2 2 3 3 4 4 5 5 6 6 7)), begin!("a": (7 8)),
                broadcast!("factor" 9),
                add!("a": (0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7)), begin!("a": (8 8)),
                carry!("result": (0 1 0 1 2 1 2 3 2 3 4 3 4 5 4 5 6 5 6 7 6 7 8 7)),
                carry_last!("result": (8 8)),
                // Columns 0 to 8 of the product with the value.
                broadcast!("factor" 0),
                begin!("a": (0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8)),
                upper!(),
                add!("a": (1 0 2 1 3 2 4 3 5 4 6 5 7 6 8 7)),
                broadcast!("factor" 1),
                add!("a": (2 0 3 1 4 2 5 3 6 4 7 5 8 6)),
                upper!(),
                add!("a": (3 0 4 1 5 2 6 3 7 4 8 5)),
                broadcast!("factor" 2),
                add!("a": (4 0 5 1 6 2 7 3 8 4)),
                upper!(),
                add!("a": (5 0 6 1 7 2 8 3)),
                broadcast!("factor" 3),
                add!("a": (6 0 7 1 8 2)),
                upper!(),
                add!("a": (7 0 8 1)),
                broadcast!("factor" 4),
                add!("a": (8 0)),
                // And of the quotient's with -p.
                load!("result" 0),
                add!("negative": (0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8)),
                load!("result" 1),
                add!("negative": (1 0 2 1 3 2 4 3 5 4 6 5 7 6 8 7)),
                load!("result" 2),
                add!("negative": (2 0 3 1 4 2 5 3 6 4 7 5 8 6)),
                load!("result" 3),
                add!("negative": (3 0 4 1 5 2 6 3 7 4 8 5)),
                load!("result" 4),
                add!("negative": (4 0 5 1 6 2 7 3 8 4)),
                load!("result" 5),
                add!("negative": (5 0 6 1 7 2 8 3)),
                load!("result" 6),
                add!("negative": (6 0 7 1 8 2)),
                load!("result" 7),
                add!("negative": (7 0 8 1)),
                load!("result" 8),
                add!("negative": (8 0)),
                store!("result": (0 1 2 3 4 5 6 7 8)),
                a = in(reg) self.a,
                factor = in(reg) self.factor,
                limb_mask = in(reg) &self.constants.limb_mask,
                negative = in(reg) &self.constants.negative,
                result = in(reg) result.as_mut_ptr(),
            );
            result.assume_init()
        }
    }
}
