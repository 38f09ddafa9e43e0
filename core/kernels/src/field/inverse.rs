//! The inverse of one number modulo an odd prime.
//!
//! Algorithm: Stein's binary GCD, 31 halvings at a time: their effect on both numbers is found from 33
//! leading and 31 trailing bits, and then applied to the whole (Pornin, *Optimized Binary GCD for Modular
//! Inversion*, 2020, algorithm 2). The cofactors are divided by 2^31 modulo p with them, as in a Montgomery
//! reduction, so that no power of two is left at the end, and the loop stops when it is done: time depends on
//! the number. Bounds: p below 2^(64 N - 1), cofactors below p. Memory: none.

use super::limbs::{Limbs, add, sub};

/// Halvings in a round.
const HALVINGS: u32 = 31;
const LOW_MASK: u64 = (1 << HALVINGS) - 1;

/// The factors of both numbers before they are added up and halved; together at most 2^31 in size.
type Factors = [i64; 2];

/// `1 / value` modulo `p`, for `value` from 1 to p - 1 and `minus_inverse` = -1/p modulo 2^64.
pub(super) fn inverse<const N: usize>(value: &Limbs<N>, p: &Limbs<N>, minus_inverse: u64) -> Limbs<N> {
    // value * u = a and value * v = b modulo p.
    let (mut a, mut b) = (*value, *p);
    let (mut u, mut v): (Limbs<N>, Limbs<N>) = ([0; N], [0; N]);
    u[0] = 1;
    while a != [0; N] {
        let [mut for_a, mut for_b] = halvings(&a, &b);
        let halved = (half(&a, &b, &mut for_a), half(&a, &b, &mut for_b));
        (a, b) = halved;
        (u, v) = (
            cofactor(&u, &v, for_a, p, minus_inverse),
            cofactor(&u, &v, for_b, p, minus_inverse),
        );
    }
    v
}

/// The factors of 31 steps of the binary GCD, each of which halves `a`, or the difference of both.
fn halvings<const N: usize>(a: &Limbs<N>, b: &Limbs<N>) -> [Factors; 2] {
    let bits = (0..N).rev().find_map(|i| match a[i] | b[i] {
        0 => None,
        word => Some(64 * i as u32 + 64 - word.leading_zeros()),
    });
    let bits = bits.unwrap_or(0).max(64);
    let (mut a, mut b) = (ends(a, bits), ends(b, bits));
    let (mut f0, mut g0, mut f1, mut g1) = (1i64, 0i64, 0i64, 1i64);
    for _ in 0..HALVINGS {
        let odd = (a & 1).wrapping_neg();
        let swap = odd & u64::from(a < b).wrapping_neg();
        let (d, df, dg) = ((a ^ b) & swap, (f0 ^ f1) & swap as i64, (g0 ^ g1) & swap as i64);
        (a, b) = (a ^ d, b ^ d);
        (f0, f1, g0, g1) = (f0 ^ df, f1 ^ df, g0 ^ dg, g1 ^ dg);
        a = (a.wrapping_sub(b & odd)) >> 1;
        f0 -= f1 & odd as i64;
        g0 -= g1 & odd as i64;
        f1 <<= 1;
        g1 <<= 1;
    }
    [[f0, g0], [f1, g1]]
}

/// The 33 bits below bit `bits` and the lowest 31; everything, for 64 bits.
fn ends<const N: usize>(a: &Limbs<N>, bits: u32) -> u64 {
    let shift = bits - 64;
    let (word, bit) = ((shift / 64) as usize, shift % 64);
    let mut top = a[word] >> bit;
    if bit > 0 {
        top |= a[word + 1] << (64 - bit);
    }
    (top & !LOW_MASK) | (a[0] & LOW_MASK)
}

/// N limbs, and a word above them with the sign.
type Wide<const N: usize> = (Limbs<N>, u64);

/// `a * factors[0] + b * factors[1]`, with a sign.
#[inline(always)]
fn combined<const N: usize>(a: &Limbs<N>, b: &Limbs<N>, [f, g]: Factors) -> Wide<N> {
    let mut sum = [0; N];
    let mut carry = 0i128;
    for i in 0..N {
        carry += i128::from(a[i]) * i128::from(f) + i128::from(b[i]) * i128::from(g);
        sum[i] = carry as u64;
        carry >>= 64;
    }
    (sum, carry as u64)
}

/// Divided by 2^31, of which it is a multiple; the word above N limbs is the sign.
#[inline(always)]
fn shifted<const N: usize>((low, top): &Wide<N>) -> Limbs<N> {
    let mut shifted = [0; N];
    for i in 0..N {
        let above = if i + 1 < N { low[i + 1] } else { *top };
        shifted[i] = low[i] >> HALVINGS | above << (64 - HALVINGS);
    }
    shifted
}

/// The number after a round. If it would be negative, it and its factors change their signs.
fn half<const N: usize>(a: &Limbs<N>, b: &Limbs<N>, factors: &mut Factors) -> Limbs<N> {
    let sum = combined(a, b, *factors);
    let number = shifted(&sum);
    if sum.1 >> 63 == 0 {
        return number;
    }
    *factors = factors.map(|factor| -factor);
    sub(&[0; N], &number).0
}

/// The cofactor after a round: the sum over 2^31, modulo p.
fn cofactor<const N: usize>(
    u: &Limbs<N>,
    v: &Limbs<N>,
    factors: Factors,
    p: &Limbs<N>,
    minus_inverse: u64,
) -> Limbs<N> {
    let mut sum = combined(u, v, factors);
    let multiple = sum.0[0].wrapping_mul(minus_inverse) & LOW_MASK;
    let mut carry = 0u128;
    for (limb, p) in sum.0.iter_mut().zip(p) {
        carry += u128::from(*limb) + u128::from(*p) * u128::from(multiple);
        *limb = carry as u64;
        carry >>= 64;
    }
    sum.1 = sum.1.wrapping_add(carry as u64);
    // From -p to 2 p.
    let number = shifted(&sum);
    if sum.1 >> 63 == 1 {
        return add(&number, p).0;
    }
    match sub(&number, p) {
        (less, false) => less,
        (_, true) => number,
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use ark_ff::PrimeField;

    use crate::field::CoordinateField;

    fn like_arkworks<F: CoordinateField + PrimeField>(seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let check = |value: F| {
            assert_eq!(value.inverted(), value.inverse(), "seed {seed}: {value}");
        };
        check(F::ZERO);
        for small in 1..200u64 {
            check(F::from(small));
            check(-F::from(small));
        }
        let mut power = F::ONE;
        for _ in 0..520 {
            check(power);
            check(-power);
            check(power - F::ONE);
            power.double_in_place();
        }
        // Montgomery limbs of few bits, and of many.
        for shift in 0..F::MODULUS_BIT_SIZE as usize - 4 {
            let mut bytes = vec![0; F::BYTES];
            bytes[shift / 8] = 1 << (shift % 8);
            let value = F::decode(&bytes);
            check(value);
            check(-value);
        }
        for _ in 0..20_000 {
            check(F::rand(&mut rng));
        }
    }

    #[test]
    fn inverses_are_arkworks_s() {
        let seed = std::env::var("SPILLPROOF_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(rand::random);
        println!("SPILLPROOF_SEED={seed}");
        like_arkworks::<ark_bn254::Fr>(seed);
        like_arkworks::<ark_bn254::Fq>(seed);
        like_arkworks::<ark_pallas::Fr>(seed);
        like_arkworks::<ark_pallas::Fq>(seed);
        like_arkworks::<ark_bls12_381::Fq>(seed);
        like_arkworks::<ark_bls12_381::Fr>(seed);
    }
}
