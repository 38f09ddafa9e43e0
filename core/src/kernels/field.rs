//! Montgomery arithmetic on four 64-bit limbs, without branches.
//!
//! Algorithm: CIOS multiplication with the "no carry" saving for moduli whose top limb is below 2^62 (Koç, Acar and
//! Kaliski, *Analyzing and Comparing Montgomery Multiplication Algorithms*, 1996, section 5; the saving is due to the
//! gnark team), and lazy butterflies on values below 4p (Harvey, *Faster arithmetic for number-theoretic transforms*,
//! 2014, algorithm 4).
//!
//! Values are arkworks' own `Fp<MontBackend<_, 4>, 4>`: limbs little-endian, Montgomery form with R = 2^256, so that
//! nothing is converted on the way in or out. arkworks' additions branch on the comparison with p, which the processor
//! can't predict for random values: the versions here do not branch, and are what the inner loops of
//! [`super::msm`], [`super::ntt`] and [`super::poly`] use. Memory: none.
//!
//! Bounds: every public value is below p ("settled"). Between butterflies only, values of fields with 4p < 2^256 may lie
//! below 4p ("relaxed"): [`NttElement::butterfly`] takes and leaves relaxed values, [`NttElement::settle`] ends that.

mod inverse;

use std::marker::PhantomData;

use ark_ff::{AdditiveGroup, BigInt, Field, Fp, MontBackend, MontConfig, PrimeField, Zero};

#[cfg(target_arch = "x86_64")]
use super::lanes::Words;
use super::lanes::{Factor, Radix52};
use super::ntt::{NttElement, Twiddles, Twist, eight, strips};

/// A prime field that the kernels can work in: four limbs, Montgomery form, branchless arithmetic.
///
/// Implemented for every `Fp<MontBackend<_, 4>, 4>` of arkworks. All operations take and return settled values (below p)
/// unless they say otherwise.
pub trait KernelField: PrimeField + NttElement<Self> {
    /// Constants for eight lanes ([`super::lanes`]), if the field is of the right size for them.
    const RADIX_52: Option<Radix52>;
    /// The four limbs in Montgomery form, little-endian.
    fn montgomery_limbs(&self) -> &[u64; 4];
    /// The four limbs in Montgomery form, little-endian; they have to stay below p.
    fn montgomery_limbs_mut(&mut self) -> &mut [u64; 4];
    /// `self + other`.
    fn plus(&self, other: &Self) -> Self;
    /// `self - other`.
    fn minus(&self, other: &Self) -> Self;
    /// `self * other`.
    fn times(&self, other: &Self) -> Self;
    /// `self * self`.
    fn squared(&self) -> Self;
    /// `2 * self`.
    fn doubled(&self) -> Self {
        self.plus(self)
    }
    /// `-self`.
    fn negated(&self) -> Self {
        Self::ZERO.minus(self)
    }
    /// `-self` if `negative`, else `self`, without a branch.
    fn signed(&self, negative: bool) -> Self;
    /// `1 / self`, none for zero. With branches on the value.
    fn inverted(&self) -> Option<Self>;
}

type Limbs = [u64; 4];

/// `a + b * c + carry`, as (low, high) words: never overflows.
#[inline(always)]
fn multiply_add(a: u64, b: u64, c: u64, carry: u64) -> (u64, u64) {
    let wide = u128::from(a) + u128::from(b) * u128::from(c) + u128::from(carry);
    (wide as u64, (wide >> 64) as u64)
}

#[inline(always)]
fn add_carry(a: u64, b: u64, carry: bool) -> (u64, bool) {
    let (sum, first) = a.overflowing_add(b);
    let (sum, second) = sum.overflowing_add(u64::from(carry));
    (sum, first | second)
}

#[inline(always)]
fn sub_borrow(a: u64, b: u64, borrow: bool) -> (u64, bool) {
    let (difference, first) = a.overflowing_sub(b);
    let (difference, second) = difference.overflowing_sub(u64::from(borrow));
    (difference, first | second)
}

#[inline(always)]
fn add(a: &Limbs, b: &Limbs) -> (Limbs, bool) {
    let (r0, c) = a[0].overflowing_add(b[0]);
    let (r1, c) = add_carry(a[1], b[1], c);
    let (r2, c) = add_carry(a[2], b[2], c);
    let (r3, c) = add_carry(a[3], b[3], c);
    ([r0, r1, r2, r3], c)
}

#[inline(always)]
fn sub(a: &Limbs, b: &Limbs) -> (Limbs, bool) {
    let (r0, c) = a[0].overflowing_sub(b[0]);
    let (r1, c) = sub_borrow(a[1], b[1], c);
    let (r2, c) = sub_borrow(a[2], b[2], c);
    let (r3, c) = sub_borrow(a[3], b[3], c);
    ([r0, r1, r2, r3], c)
}

/// `a` if `condition`, else `b`.
#[inline(always)]
fn select(condition: bool, a: &Limbs, b: &Limbs) -> Limbs {
    let mask = u64::from(condition).wrapping_neg();
    let pick = |i: usize| b[i] ^ ((a[i] ^ b[i]) & mask);
    [pick(0), pick(1), pick(2), pick(3)]
}

/// `value - modulus` if that is not negative, else `value`. `overflow` is a carry out of `value`.
#[inline(always)]
fn subtract_once(value: &Limbs, overflow: bool, modulus: &Limbs) -> Limbs {
    let (reduced, borrow) = sub(value, modulus);
    select(borrow & !overflow, value, &reduced)
}

/// The constants of a field, computed by the compiler.
struct Constants<T>(PhantomData<T>);

impl<T: MontConfig<4>> Constants<T> {
    const P: Limbs = T::MODULUS.0;
    /// Whether 4p < 2^256, so that relaxed values fit. Else relaxed values are settled ones.
    const LAZY: bool = T::MODULUS.0[3] < 1 << 62;
    /// Whether sums in the CIOS rows stay within one word of carry, and a + b within four words.
    const SPARE_BIT: bool = T::MODULUS.0[3] < u64::MAX >> 1;
    /// 2p, used only where `LAZY`.
    const TWO_P: Limbs = {
        let p = T::MODULUS.0;
        [
            p[0] << 1,
            (p[1] << 1) | (p[0] >> 63),
            (p[2] << 1) | (p[1] >> 63),
            (p[3] << 1) | (p[2] >> 63),
        ]
    };
}

/// `a * b / 2^256` modulo p, below 2p for `b` below p and `a` below 4p (where `LAZY`) or p (else).
#[inline(always)]
fn multiply_unreduced<T: MontConfig<4>>(a: &Limbs, b: &Limbs) -> Limbs {
    #[cfg(target_arch = "x86_64")]
    if let Some(words) = Words::chosen() {
        return words.product(a, b, const { &Constants::<T>::P }, T::INV);
    }
    let p = Constants::<T>::P;
    let mut r = [0u64; 4];
    // One row of CIOS. The top words c1 + c2 can't overflow: p has a spare bit (checked by the caller).
    macro_rules! row {
        ($i:expr) => {{
            let (t, mut c1) = multiply_add(r[0], a[0], b[$i], 0);
            let k = t.wrapping_mul(T::INV);
            let (_, mut c2) = multiply_add(t, k, p[0], 0);
            let (t, c) = multiply_add(r[1], a[1], b[$i], c1);
            c1 = c;
            let (low, c) = multiply_add(t, k, p[1], c2);
            c2 = c;
            r[0] = low;
            let (t, c) = multiply_add(r[2], a[2], b[$i], c1);
            c1 = c;
            let (low, c) = multiply_add(t, k, p[2], c2);
            c2 = c;
            r[1] = low;
            let (t, c) = multiply_add(r[3], a[3], b[$i], c1);
            c1 = c;
            let (low, c) = multiply_add(t, k, p[3], c2);
            r[2] = low;
            r[3] = c1.wrapping_add(c);
        }};
    }
    row!(0);
    row!(1);
    row!(2);
    row!(3);
    r
}

#[inline(always)]
fn element<T: MontConfig<4>>(limbs: Limbs) -> Fp<MontBackend<T, 4>, 4> {
    Fp(BigInt(limbs), PhantomData)
}

impl<T: MontConfig<4>> KernelField for Fp<MontBackend<T, 4>, 4> {
    const RADIX_52: Option<Radix52> = Radix52::new(T::MODULUS.0);

    #[inline(always)]
    fn montgomery_limbs(&self) -> &[u64; 4] {
        &self.0.0
    }

    #[inline(always)]
    fn montgomery_limbs_mut(&mut self) -> &mut [u64; 4] {
        &mut self.0.0
    }

    #[inline(always)]
    fn plus(&self, other: &Self) -> Self {
        let (sum, carry) = add(&self.0.0, &other.0.0);
        element(subtract_once(&sum, carry, &Constants::<T>::P))
    }

    #[inline(always)]
    fn minus(&self, other: &Self) -> Self {
        let (difference, borrow) = sub(&self.0.0, &other.0.0);
        let correction = select(borrow, &Constants::<T>::P, &[0; 4]);
        element(add(&difference, &correction).0)
    }

    #[inline(always)]
    fn times(&self, other: &Self) -> Self {
        if Constants::<T>::SPARE_BIT {
            let product = multiply_unreduced::<T>(&self.0.0, &other.0.0);
            element(subtract_once(&product, false, &Constants::<T>::P))
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
        if !Constants::<T>::SPARE_BIT {
            return self.inverse();
        }
        if self.is_zero() {
            return None;
        }
        // Of x R it is 1 / (x R), and has to become R / x.
        let inverse = element(inverse::inverse(&self.0.0, const { &Constants::<T>::P }, T::INV));
        let square = element(T::R2.0);
        Some(inverse.times(&square).times(&square))
    }
}

impl<T: MontConfig<4>> NttElement<Self> for Fp<MontBackend<T, 4>, 4> {
    const FILL: Self = Self::ZERO;

    #[inline(always)]
    fn butterfly(low: &mut Self, high: &mut Self, factor: &Self) {
        if Constants::<T>::LAZY {
            let product = multiply_unreduced::<T>(&high.0.0, &factor.0.0);
            lazy_sum_and_difference::<T>(low, high, &product);
        } else {
            let product = high.times(factor);
            *high = low.minus(&product);
            *low = low.plus(&product);
        }
    }

    fn butterflies(low: &mut [Self], high: &mut [Self], factor: &Self) {
        let done = if Constants::<T>::LAZY {
            eight::butterflies(low, high, factor)
        } else {
            0
        };
        for (low, high) in low[done..].iter_mut().zip(&mut high[done..]) {
            Self::butterfly(low, high, factor);
        }
    }

    #[inline(always)]
    fn butterfly_one(low: &mut Self, high: &mut Self) {
        if Constants::<T>::LAZY {
            let second = subtract_once(&high.0.0, false, &Constants::<T>::TWO_P);
            lazy_sum_and_difference::<T>(low, high, &second);
        } else {
            let second = *high;
            *high = low.minus(&second);
            *low = low.plus(&second);
        }
    }

    #[inline(always)]
    fn scale(&mut self, factor: &Self) {
        // Relaxed values are below 4p only where LAZY, and then 4p * p / 2^256 + p < 2p.
        *self = self.times(factor);
    }

    fn scale_run(values: &mut [Self], factor: &Self) {
        let done = eight::scale_run(values, factor);
        values[done..].iter_mut().for_each(|value| value.scale(factor));
    }

    fn scale_each(values: &mut [Self], factors: &[Self]) {
        let done = eight::scale_each(values, factors);
        for (value, factor) in values[done..].iter_mut().zip(&factors[done..]) {
            value.scale(factor);
        }
    }

    #[inline(always)]
    fn settle(&mut self) {
        if Constants::<T>::LAZY {
            let below_2p = subtract_once(&self.0.0, false, &Constants::<T>::TWO_P);
            *self = element(subtract_once(&below_2p, false, &Constants::<T>::P));
        }
    }

    fn columns_in_lanes(
        strip: &mut [&mut [Self]],
        first_column: usize,
        twiddles: &Twiddles<Self>,
        before: &[Factor],
        twist: Option<&Twist<Self>>,
    ) -> bool {
        strips::columns(strip, first_column, twiddles, before, twist)
    }

    fn rows_in_lanes(rows: &mut [&mut [Self]], twiddles: &Twiddles<Self>, middle: &[Factor]) -> bool {
        strips::rows(rows, twiddles, middle)
    }
}

/// `(low, high) <- (low + second, low - second + 2p)` for `low` below 4p and `second` below 2p: both results below 4p.
#[inline(always)]
fn lazy_sum_and_difference<T: MontConfig<4>>(
    low: &mut Fp<MontBackend<T, 4>, 4>,
    high: &mut Fp<MontBackend<T, 4>, 4>,
    second: &Limbs,
) {
    let two_p = Constants::<T>::TWO_P;
    let first = subtract_once(&low.0.0, false, &two_p);
    *low = element(add(&first, second).0);
    *high = element(sub(&add(&first, &two_p).0, second).0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    fn against_arkworks<F: KernelField>() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let minus_one = -F::ONE;
        let edges = [
            F::ZERO,
            F::ONE,
            minus_one,
            minus_one.double(),
            F::from(2u64),
            F::ONE / F::from(2u64),
        ];
        let mut values: Vec<F> = edges.to_vec();
        values.extend((0..200).map(|_| F::rand(&mut rng)));
        for a in &values {
            assert_eq!(a.squared(), a.square());
            assert_eq!(a.negated(), -*a);
            assert_eq!(a.doubled(), a.double());
            assert_eq!(a.signed(true), -*a);
            assert_eq!(a.signed(false), *a);
            let mut settled = *a;
            settled.settle();
            assert_eq!(settled, *a);
            for b in &values {
                assert_eq!(a.plus(b), *a + b);
                assert_eq!(a.minus(b), *a - b);
                assert_eq!(a.times(b), *a * b);
            }
        }
    }

    /// Chains of butterflies keep their bounds: values stay right after many layers without settling.
    fn relaxed_chain<F: KernelField>() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(2);
        let minus_one = -F::ONE;
        for start in [minus_one, F::rand(&mut rng), F::ZERO] {
            let (mut low, mut high) = (start, minus_one);
            let (mut want_low, mut want_high) = (low, high);
            for layer in 0..500 {
                let factor = if layer % 3 == 0 {
                    minus_one
                } else {
                    F::rand(&mut rng)
                };
                if layer % 5 == 0 {
                    F::butterfly_one(&mut low, &mut high);
                    (want_low, want_high) = (want_low + want_high, want_low - want_high);
                } else {
                    F::butterfly(&mut low, &mut high, &factor);
                    (want_low, want_high) = (want_low + want_high * factor, want_low - want_high * factor);
                }
                let (mut settled_low, mut settled_high, mut scaled) = (low, high, low);
                settled_low.settle();
                settled_high.settle();
                scaled.scale(&factor);
                assert_eq!((settled_low, settled_high), (want_low, want_high));
                assert_eq!(scaled, want_low * factor);
            }
        }
    }

    /// Runs, which lanes may take, mean what single values mean; after many layers without settling, too.
    fn runs_are_their_elements<F: KernelField>(lazy: bool) {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        let minus_one = -F::ONE;
        let edges = [F::ZERO, F::ONE, minus_one, minus_one.double()];
        for len in [3usize, 8, 17, 64] {
            let mut random = |i: usize| *edges.get(i % 7).unwrap_or(&F::rand(&mut rng));
            let mut low: Vec<F> = (0..len).map(&mut random).collect();
            let mut high: Vec<F> = (0..len).map(|i| random(i + 2)).collect();
            let (mut want_low, mut want_high) = (low.clone(), high.clone());
            for layer in 0..100 {
                let factor = random(layer);
                F::butterflies(&mut low, &mut high, &factor);
                for (low, high) in want_low.iter_mut().zip(&mut want_high) {
                    (*low, *high) = (*low + *high * factor, *low - *high * factor);
                }
                let below = |value: &F| {
                    value.montgomery_limbs()[3] <= F::MODULUS.as_ref()[3] * if lazy { 4 } else { 1 } + 3
                };
                assert!(low.iter().chain(&high).all(below), "relaxed values are below 4p");
                let (mut run, mut each) = (low.clone(), high.clone());
                let factors: Vec<F> = (0..len).map(&mut random).collect();
                F::scale_run(&mut run, &factor);
                F::scale_each(&mut each, &factors);
                for i in 0..len {
                    let (mut settled_low, mut settled_high) = (low[i], high[i]);
                    settled_low.settle();
                    settled_high.settle();
                    assert_eq!((settled_low, settled_high), (want_low[i], want_high[i]));
                    assert_eq!(run[i], want_low[i] * factor);
                    assert_eq!(each[i], want_high[i] * factors[i]);
                }
            }
        }
    }

    #[test]
    fn equal_to_arkworks_on_edges_and_random_values() {
        against_arkworks::<ark_bn254::Fq>();
        against_arkworks::<ark_bn254::Fr>();
        against_arkworks::<ark_pallas::Fq>();
        against_arkworks::<ark_pallas::Fr>();
    }

    #[test]
    fn relaxed_butterflies_never_overflow() {
        relaxed_chain::<ark_bn254::Fr>();
        relaxed_chain::<ark_pallas::Fq>();
    }

    #[test]
    fn runs_of_butterflies_and_products_are_their_elements() {
        runs_are_their_elements::<ark_bn254::Fr>(true);
        runs_are_their_elements::<ark_bn254::Fq>(true);
        runs_are_their_elements::<ark_pallas::Fr>(false);
    }
}
