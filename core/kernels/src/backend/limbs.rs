//! What lanes of every width have in common: vectors of 64-bit words, in which word i of an element is in
//! vector i, and limbs of B bits in such words. Memory: none.
// Limbs are walked by index in several arrays at once.
#![allow(clippy::needless_range_loop)]

use super::radix::mask;

/// The body for each index below a bound, which is at most 14: a loop that is certain to be unrolled,
/// whatever the size of its body.
macro_rules! unrolled {
    ($i:ident below $bound:ident in $body:block) => {
        unrolled!(@ $i $bound $body 0 1 2 3 4 5 6 7 8 9 10 11 12 13)
    };
    (@ $i:ident $bound:ident $body:block $($index:literal)*) => {
        $(if $index < $bound { let $i: usize = $index; $body })*
    };
}
pub(super) use unrolled;

/// A processor's instructions for vectors of words. The value proves that the processor has them.
pub trait Words: Copy {
    /// A vector.
    type Vector: Copy;

    fn word(self, value: u64) -> Self::Vector;
    fn plus(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn minus(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn and(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn or(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// By a number of bits that is known once loops are unrolled.
    fn shift_left(self, a: Self::Vector, bits: usize) -> Self::Vector;
    /// As [`Self::shift_left`]; zeros come in above.
    fn shift_right(self, a: Self::Vector, bits: usize) -> Self::Vector;
    /// Asks for the cache line at an address, which may be any.
    fn prefetch(self, address: *const u8);

    /// Words of elements times 2^shift as limbs of B bits.
    #[inline(always)]
    fn spread<const N: usize, const L: usize, const B: usize>(
        self,
        words: &[Self::Vector; N],
        shift: usize,
    ) -> [Self::Vector; L] {
        let limb_mask = self.word(mask::<B>());
        let mut limbs = [self.word(0); L];
        unrolled!(i below L in {
            let first = (i * B).saturating_sub(shift);
            let (word, bit) = (first / 64, first % 64);
            let bits = ((i + 1) * B).saturating_sub(shift + first);
            if word < N {
                let mut limb = self.shift_right(words[word], bit);
                if bit + bits > 64 && word + 1 < N {
                    limb = self.or(limb, self.shift_left(words[word + 1], 64 - bit));
                }
                // Zeros come in below.
                limb = self.shift_left(limb, B - bits);
                // The last limb of all has no bits above its own.
                if bit + bits < 64 || word + 1 < N {
                    limb = self.and(limb, limb_mask);
                }
                limbs[i] = limb;
            }
        });
        limbs
    }

    /// Limbs below 2^B of values below 2^(64 N) as words.
    #[inline(always)]
    fn packed<const N: usize, const L: usize, const B: usize>(
        self,
        limbs: &[Self::Vector; L],
    ) -> [Self::Vector; N] {
        let mut words = [self.word(0); N];
        for word in 0..N {
            for i in 0..L {
                let (limb_bit, word_bit) = (i * B, word * 64);
                if limb_bit >= word_bit && limb_bit < word_bit + 64 {
                    let part = self.shift_left(limbs[i], limb_bit - word_bit);
                    words[word] = self.or(words[word], part);
                } else if limb_bit < word_bit && limb_bit + B > word_bit {
                    let part = self.shift_right(limbs[i], word_bit - limb_bit);
                    words[word] = self.or(words[word], part);
                }
            }
        }
        words
    }

    /// The same words in all lanes.
    #[inline(always)]
    fn words<const K: usize>(self, values: &[u64; K]) -> [Self::Vector; K] {
        let mut words = [self.word(0); K];
        for i in 0..K {
            words[i] = self.word(values[i]);
        }
        words
    }

    /// Word by word.
    #[inline(always)]
    fn sums<const K: usize>(self, a: &[Self::Vector; K], b: &[Self::Vector; K]) -> [Self::Vector; K] {
        let mut sums = *a;
        for i in 0..K {
            sums[i] = self.plus(a[i], b[i]);
        }
        sums
    }

    /// As [`Self::sums`].
    #[inline(always)]
    fn differences<const K: usize>(self, a: &[Self::Vector; K], b: &[Self::Vector; K]) -> [Self::Vector; K] {
        let mut differences = *a;
        for i in 0..K {
            differences[i] = self.minus(a[i], b[i]);
        }
        differences
    }

    /// Asks for all cache lines of a value.
    #[inline(always)]
    fn prefetch_all<V>(self, value: &V) {
        let first = std::ptr::from_ref(value).cast::<u8>();
        for line in 0..size_of::<V>().div_ceil(64) {
            self.prefetch(first.wrapping_add(64 * line));
        }
    }
}
