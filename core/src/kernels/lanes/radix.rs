//! A field's constants for arithmetic on five 52-bit limbs, R = 2^260. Little-endian everywhere; computed by the compiler.

pub(crate) const LIMB_BITS: u32 = 52;
pub(crate) const LIMB_MASK: u64 = (1 << LIMB_BITS) - 1;

/// The constants of a prime p with 2^253 < p < 2^255.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub struct Radix52 {
    /// p.
    pub(crate) modulus: [u64; 5],
    /// k = -1/p modulo 2^52.
    pub(crate) inverse: u64,
    /// (k p + 1) / 2^52: adding m times it is one round of reduction for a lowest limb m.
    pub(crate) round: [u64; 5],
    /// Limb i of j p at [i][j].
    pub(crate) multiples: [[u64; 8]; 5],
    /// 2^96 / p's top limb, rounded down: 2^-44 of the upper half of its product with a top limb is a quotient by p.
    pub(crate) quotient: u64,
    /// Limb i of 4 j p at [i][j].
    pub(crate) fours: [[u64; 8]; 5],
    /// 2^96 / (p's top limb + 1), rounded down: quotients by p as above that are never too large.
    pub(crate) quotient_low: u64,
    /// 2^260 - p.
    pub(crate) negative: [u64; 5],
    /// -1/p modulo 2^260.
    pub(crate) inverse_wide: [u64; 5],
    /// Whether 63 p < 2^260: room for butterflies ([`super::field`]).
    pub(crate) roomy: bool,
}

/// A constant w for many products: w itself, and 2^260 w / p rounded down.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub struct Factor {
    pub(crate) value: [u64; 5],
    pub(crate) quotient: [u64; 5],
}

impl Radix52 {
    /// In place of the constants of a field that has none.
    #[cfg(target_arch = "x86_64")]
    pub(crate) const UNUSED: Self = Self {
        modulus: [0; 5],
        inverse: 0,
        round: [0; 5],
        multiples: [[0; 8]; 5],
        quotient: 0,
        fours: [[0; 8]; 5],
        quotient_low: 0,
        negative: [0; 5],
        inverse_wide: [0; 5],
        roomy: false,
    };

    /// The constants for the modulus given in 64-bit limbs, or none if it is out of the range.
    pub const fn new(modulus: [u64; 4]) -> Option<Self> {
        if modulus[3] < 1 << 61 || modulus[3] >= 1 << 63 {
            return None;
        }
        let p = to_radix_52(modulus);
        // Newton: each step doubles the bits of 1/p that are right, from 3 on.
        let mut inverse = p[0];
        let mut step = 0;
        while step < 5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(p[0].wrapping_mul(inverse)));
            step += 1;
        }
        let multiples = eight_multiples(&p, 1);
        // Newton again, on all limbs: 52, 104, 208, 416 bits.
        let mut wide = [inverse & LIMB_MASK, 0, 0, 0, 0];
        let mut step = 0;
        while step < 3 {
            let two_minus = plus_two(&negated(&multiply_low(&p, &wide)));
            wide = multiply_low(&wide, &two_minus);
            step += 1;
        }
        let inverse = inverse.wrapping_neg() & LIMB_MASK;
        let (low, top) = multiply(&p, inverse, 1);
        Some(Self {
            modulus: p,
            inverse,
            round: [low[1], low[2], low[3], low[4], top],
            multiples,
            quotient: ((1u128 << 96) / p[4] as u128) as u64,
            fours: eight_multiples(&p, 4),
            quotient_low: ((1u128 << 96) / (p[4] as u128 + 1)) as u64,
            negative: negated(&p),
            inverse_wide: negated(&wide),
            roomy: modulus[3] <= 1 << 62,
        })
    }

    /// The factor w, given the limbs of w and of 2^260 w modulo p.
    pub(crate) fn factor(&self, value: [u64; 4], shifted: [u64; 4]) -> Factor {
        // 2^260 w less its remainder is a multiple of p; modulo 2^260 it is minus the remainder.
        Factor {
            value: to_radix_52(value),
            quotient: multiply_low(&to_radix_52(shifted), &self.inverse_wide),
        }
    }
}

/// Limb i of j times `step` times p at [i][j].
const fn eight_multiples(p: &[u64; 5], step: u64) -> [[u64; 8]; 5] {
    let mut multiples = [[0; 8]; 5];
    let mut factor = 0;
    while factor < 8 {
        let (product, _) = multiply(p, factor * step, 0);
        let mut limb = 0;
        while limb < 5 {
            multiples[limb][factor as usize] = product[limb];
            limb += 1;
        }
        factor += 1;
    }
    multiples
}

/// `a * b` modulo 2^260.
const fn multiply_low(a: &[u64; 5], b: &[u64; 5]) -> [u64; 5] {
    let mut product = [0; 5];
    let mut sum = 0u128;
    let mut column = 0;
    while column < 5 {
        let mut i = 0;
        while i <= column {
            sum += a[i] as u128 * b[column - i] as u128;
            i += 1;
        }
        product[column] = sum as u64 & LIMB_MASK;
        sum >>= LIMB_BITS;
        column += 1;
    }
    product
}

/// `-a` modulo 2^260.
const fn negated(a: &[u64; 5]) -> [u64; 5] {
    let mut negated = [0; 5];
    let mut carry = 1;
    let mut i = 0;
    while i < 5 {
        let sum = (!a[i] & LIMB_MASK) + carry;
        negated[i] = sum & LIMB_MASK;
        carry = sum >> LIMB_BITS;
        i += 1;
    }
    negated
}

/// Four 64-bit limbs as five 52-bit limbs.
pub(crate) const fn to_radix_52(limbs: [u64; 4]) -> [u64; 5] {
    [
        limbs[0] & LIMB_MASK,
        (limbs[0] >> 52 | limbs[1] << 12) & LIMB_MASK,
        (limbs[1] >> 40 | limbs[2] << 24) & LIMB_MASK,
        (limbs[2] >> 28 | limbs[3] << 36) & LIMB_MASK,
        limbs[3] >> 16,
    ]
}

/// `limbs * factor + carry`: five limbs and the sixth.
const fn multiply(limbs: &[u64; 5], factor: u64, carry: u64) -> ([u64; 5], u64) {
    let mut product = [0; 5];
    let mut carry = carry;
    let mut i = 0;
    while i < 5 {
        let wide = limbs[i] as u128 * factor as u128 + carry as u128;
        product[i] = wide as u64 & LIMB_MASK;
        carry = (wide >> LIMB_BITS) as u64;
        i += 1;
    }
    (product, carry)
}

/// `a + 2` modulo 2^260.
const fn plus_two(a: &[u64; 5]) -> [u64; 5] {
    let mut sum = [0; 5];
    let mut carry = 2;
    let mut i = 0;
    while i < 5 {
        sum[i] = (a[i] + carry) & LIMB_MASK;
        carry = (a[i] + carry) >> LIMB_BITS;
        i += 1;
    }
    sum
}
