//! The inverse of one number modulo an odd prime.
//!
//! Algorithm: Stein's binary GCD, 31 halvings at a time: what they do to both numbers is found from 33 leading and 31 trailing
//! bits, and then done to the whole (Pornin, *Optimized Binary GCD for Modular Inversion*, 2020, algorithm 2). The cofactors are
//! divided by 2^31 modulo p with them, as in a Montgomery reduction, so that no power of two is left at the end, and the loop
//! stops when it is done: time depends on the number. Bounds: p below 2^255, cofactors below p. Memory: none.

use super::{Limbs, add, sub};

/// Halvings in a round.
const HALVINGS: u32 = 31;
const LOW_MASK: u64 = (1 << HALVINGS) - 1;

/// What both numbers are multiplied with before they are added up and halved; together at most 2^31 in size.
type Factors = [i64; 2];

/// `1 / value` modulo `p`, for `value` from 1 to p - 1 and `minus_inverse` = -1/p modulo 2^64.
pub(super) fn inverse(value: &Limbs, p: &Limbs, minus_inverse: u64) -> Limbs {
    // value * u = a and value * v = b modulo p.
    let (mut a, mut b) = (*value, *p);
    let (mut u, mut v): (Limbs, Limbs) = ([1, 0, 0, 0], [0; 4]);
    while a != [0; 4] {
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
fn halvings(a: &Limbs, b: &Limbs) -> [Factors; 2] {
    let bits = (0..4).rev().find_map(|i| match a[i] | b[i] {
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
fn ends(a: &Limbs, bits: u32) -> u64 {
    let shift = bits - 64;
    let (word, bit) = ((shift / 64) as usize, shift % 64);
    let mut top = a[word] >> bit;
    if bit > 0 {
        top |= a[word + 1] << (64 - bit);
    }
    (top & !LOW_MASK) | (a[0] & LOW_MASK)
}

/// `a * factors[0] + b * factors[1] + more`, 320 bits with a sign.
#[inline(always)]
fn combined(a: &Limbs, b: &Limbs, [f, g]: Factors) -> [u64; 5] {
    let mut sum = [0; 5];
    let mut carry = 0i128;
    for i in 0..4 {
        carry += i128::from(a[i]) * i128::from(f) + i128::from(b[i]) * i128::from(g);
        sum[i] = carry as u64;
        carry >>= 64;
    }
    sum[4] = carry as u64;
    sum
}

/// Divided by 2^31, of which it is a multiple; what is above 256 bits is the sign.
#[inline(always)]
fn shifted(wide: &[u64; 5]) -> Limbs {
    let word = |i: usize| wide[i] >> HALVINGS | wide[i + 1] << (64 - HALVINGS);
    [word(0), word(1), word(2), word(3)]
}

/// The number after a round. If it would be negative, it and its factors change their signs.
fn half(a: &Limbs, b: &Limbs, factors: &mut Factors) -> Limbs {
    let sum = combined(a, b, *factors);
    let number = shifted(&sum);
    if sum[4] >> 63 == 0 {
        return number;
    }
    *factors = factors.map(|factor| -factor);
    sub(&[0; 4], &number).0
}

/// The cofactor after a round: the sum over 2^31, modulo p.
fn cofactor(u: &Limbs, v: &Limbs, factors: Factors, p: &Limbs, minus_inverse: u64) -> Limbs {
    let mut sum = combined(u, v, factors);
    let multiple = sum[0].wrapping_mul(minus_inverse) & LOW_MASK;
    let mut carry = 0u128;
    for i in 0..4 {
        carry += u128::from(sum[i]) + u128::from(p[i]) * u128::from(multiple);
        sum[i] = carry as u64;
        carry >>= 64;
    }
    sum[4] = sum[4].wrapping_add(carry as u64);
    // From -p to 2 p.
    let number = shifted(&sum);
    if sum[4] >> 63 == 1 {
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

    use crate::kernels::field::KernelField;

    fn like_arkworks<F: KernelField>(seed: u64) {
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
        for shift in 0..254 {
            let mut value = F::ZERO;
            value.montgomery_limbs_mut()[shift / 64] = 1 << (shift % 64);
            if shift < 250 {
                check(value);
                check(-value);
            }
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
    }
}
