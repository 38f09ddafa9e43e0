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
        let inverse = inverse.wrapping_neg() & LIMB_MASK;
        let mut multiples = [[0; 8]; 5];
        let mut factor = 0;
        while factor < 8 {
            let (product, _) = multiply(&p, factor, 0);
            let mut limb = 0;
            while limb < 5 {
                multiples[limb][factor as usize] = product[limb];
                limb += 1;
            }
            factor += 1;
        }
        let (low, top) = multiply(&p, inverse, 1);
        Some(Self {
            modulus: p,
            inverse,
            round: [low[1], low[2], low[3], low[4], top],
            multiples,
            quotient: ((1u128 << 96) / p[4] as u128) as u64,
        })
    }
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
