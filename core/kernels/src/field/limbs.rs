//! Integers of N 64-bit limbs, lowest first, without branches, and Montgomery multiplication modulo a prime
//! of that length.
//!
//! Algorithm: CIOS multiplication with the "no carry" saving for moduli with a spare bit (Koç, Acar and
//! Kaliski, *Analyzing and Comparing Montgomery Multiplication Algorithms*, 1996, section 5; the saving is
//! due to the gnark team). Memory: none.

use std::marker::PhantomData;

use ark_ff::MontConfig;

#[cfg(target_arch = "x86_64")]
use crate::backend::Words;

pub(super) type Limbs<const N: usize> = [u64; N];

/// `a + b * c + carry`, as (low, high) words: never overflows.
#[inline(always)]
fn multiply_add(a: u64, b: u64, c: u64, carry: u64) -> (u64, u64) {
    let wide = u128::from(a) + u128::from(b) * u128::from(c) + u128::from(carry);
    (wide as u64, (wide >> 64) as u64)
}

/// `a + b`, and whether a carry is left.
#[inline(always)]
pub(super) fn add<const N: usize>(a: &Limbs<N>, b: &Limbs<N>) -> (Limbs<N>, bool) {
    let mut sum = [0; N];
    let mut carry = false;
    for i in 0..N {
        let (partial, first) = a[i].overflowing_add(b[i]);
        let (total, second) = partial.overflowing_add(u64::from(carry));
        (sum[i], carry) = (total, first | second);
    }
    (sum, carry)
}

/// `a - b`, and whether a borrow is left.
#[inline(always)]
pub(super) fn sub<const N: usize>(a: &Limbs<N>, b: &Limbs<N>) -> (Limbs<N>, bool) {
    let mut difference = [0; N];
    let mut borrow = false;
    for i in 0..N {
        let (partial, first) = a[i].overflowing_sub(b[i]);
        let (total, second) = partial.overflowing_sub(u64::from(borrow));
        (difference[i], borrow) = (total, first | second);
    }
    (difference, borrow)
}

/// `a` if `condition`, else `b`.
#[inline(always)]
pub(super) fn select<const N: usize>(condition: bool, a: &Limbs<N>, b: &Limbs<N>) -> Limbs<N> {
    let mask = u64::from(condition).wrapping_neg();
    let mut selected = [0; N];
    for i in 0..N {
        selected[i] = b[i] ^ ((a[i] ^ b[i]) & mask);
    }
    selected
}

/// `value - modulus` if that is not negative, else `value`. `overflow` is a carry out of `value`.
#[inline(always)]
pub(super) fn subtract_once<const N: usize>(
    value: &Limbs<N>,
    overflow: bool,
    modulus: &Limbs<N>,
) -> Limbs<N> {
    let (reduced, borrow) = sub(value, modulus);
    select(borrow & !overflow, value, &reduced)
}

/// The constants of a prime, computed by the compiler.
pub(super) struct Constants<T, const N: usize>(PhantomData<T>);

impl<T: MontConfig<N>, const N: usize> Constants<T, N> {
    pub(super) const P: Limbs<N> = T::MODULUS.0;
    /// Whether 4p < 2^(64 N), so that lazy values fit. Else every value is canonical.
    pub(super) const LAZY: bool = T::MODULUS.0[N - 1] < 1 << 62;
    /// Whether sums in the CIOS rows stay within one word of carry, and a + b within N words.
    pub(super) const SPARE_BIT: bool = T::MODULUS.0[N - 1] < u64::MAX >> 1;
    /// 2p, used only where `LAZY`.
    pub(super) const TWO_P: Limbs<N> = {
        let mut doubled = [0; N];
        let mut i = 0;
        while i < N {
            let below = if i == 0 { 0 } else { T::MODULUS.0[i - 1] >> 63 };
            doubled[i] = T::MODULUS.0[i] << 1 | below;
            i += 1;
        }
        doubled
    };
}

/// `a * b / 2^(64 N)` modulo p, below 2p for `b` below p and `a` below 4p (where `LAZY`) or p (else). p has a
/// spare bit.
#[inline(always)]
pub(super) fn multiply_unreduced<T: MontConfig<N>, const N: usize>(a: &Limbs<N>, b: &Limbs<N>) -> Limbs<N> {
    #[cfg(target_arch = "x86_64")]
    if let (Some(a), Some(b), Some(p)) = (
        exactly_four(a),
        exactly_four(b),
        exactly_four(const { &Constants::<T, N>::P }),
    ) && let Some(words) = Words::chosen()
    {
        let mut product = [0; N];
        product.copy_from_slice(&words.product(a, b, p, T::INV));
        return product;
    }
    let p = Constants::<T, N>::P;
    let mut r = [0u64; N];
    for &word in b {
        // One row of CIOS. The top words c1 + c2 can't overflow: p has a spare bit.
        let (t, mut c1) = multiply_add(r[0], a[0], word, 0);
        let k = t.wrapping_mul(T::INV);
        let (_, mut c2) = multiply_add(t, k, p[0], 0);
        for j in 1..N {
            let (t, high) = multiply_add(r[j], a[j], word, c1);
            c1 = high;
            (r[j - 1], c2) = multiply_add(t, k, p[j], c2);
        }
        r[N - 1] = c1.wrapping_add(c2);
    }
    r
}

/// The limbs, if there are four.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn exactly_four<const N: usize>(limbs: &Limbs<N>) -> Option<&[u64; 4]> {
    if N == 4 { limbs.first_chunk() } else { None }
}
