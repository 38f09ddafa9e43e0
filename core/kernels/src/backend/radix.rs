//! The constants of a prime for arithmetic on L limbs of B bits, R = 2^(B L). Little-endian everywhere;
//! computed by the compiler.

/// The bits of a limb, all ones.
pub(super) const fn mask<const B: usize>() -> u64 {
    (1 << B) - 1
}

/// The constants of a prime p of N 64-bit limbs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Radix<const B: usize, const L: usize> {
    /// p.
    pub modulus: [u64; L],
    /// k = -1/p modulo 2^B.
    pub inverse: u64,
    /// (k p + 1) / 2^B: adding m times it is one round of reduction for a lowest limb m.
    pub round: [u64; L],
    /// Limb i of j p at [i][j].
    pub multiples: [[u64; 8]; L],
    /// Bits of p's top limb.
    pub top_bits: u32,
    /// 2^(B - 2 + `top_bits`) / p's top limb, rounded down: its product with a top limb, without the last B -
    /// 2 + `top_bits` bits, is a quotient by p.
    pub quotient: u64,
    /// Limb i of 4 j p at [i][j].
    pub fours: [[u64; 8]; L],
    /// 2^(B - 2 + `top_bits`) / (p's top limb + 1), rounded down: quotients by p as above that are never too
    /// large.
    pub quotient_low: u64,
    /// R - p.
    pub negative: [u64; L],
    /// -1/p modulo R.
    pub inverse_wide: [u64; L],
    /// Whether 63 p < R, rather than 32 p <= R: room for sums between butterflies.
    pub roomy: bool,
}

impl<const B: usize, const L: usize> Radix<B, L> {
    /// In place of the constants of a field that has none.
    pub const UNUSED: Self = Self {
        modulus: [0; L],
        inverse: 0,
        round: [0; L],
        multiples: [[0; 8]; L],
        top_bits: 14,
        quotient: 0,
        fours: [[0; 8]; L],
        quotient_low: 0,
        negative: [0; L],
        inverse_wide: [0; L],
        roomy: false,
    };

    /// The constants for the modulus given in 64-bit limbs, or none if it is out of range: 32 p <= R is what
    /// products need, and quotients are estimated from the top limb, which has to have enough bits for it.
    pub const fn new<const N: usize>(modulus: [u64; N]) -> Option<Self> {
        let p: [u64; L] = to_radix::<B, N, L>(modulus);
        let top_bits = 64 - p[L - 1].leading_zeros();
        if top_bits < 14 || top_bits as usize > B - 5 {
            return None;
        }
        // Newton: each step doubles the bits of 1/p that are right, from 3 on.
        let mut inverse = p[0];
        let mut step = 0;
        while step < 5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(p[0].wrapping_mul(inverse)));
            step += 1;
        }
        let multiples = eight_multiples::<B, L>(&p, 1);
        // Newton again, on all limbs.
        let mut wide = [0; L];
        wide[0] = inverse & mask::<B>();
        let mut bits = B;
        while bits < B * L {
            let two_minus = plus_two::<B, L>(&negated::<B, L>(&multiply_low::<B, L>(&p, &wide)));
            wide = multiply_low::<B, L>(&wide, &two_minus);
            bits *= 2;
        }
        let inverse = inverse.wrapping_neg() & mask::<B>();
        let (low, top) = multiply::<B, L>(&p, inverse, 1);
        let mut round = [0; L];
        let mut limb = 1;
        while limb < L {
            round[limb - 1] = low[limb];
            limb += 1;
        }
        round[L - 1] = top;
        let scale = 1u128 << (B as u32 - 2 + top_bits);
        Some(Self {
            modulus: p,
            inverse,
            round,
            multiples,
            top_bits,
            quotient: (scale / p[L - 1] as u128) as u64,
            fours: eight_multiples::<B, L>(&p, 4),
            quotient_low: (scale / (p[L - 1] as u128 + 1)) as u64,
            negative: negated::<B, L>(&p),
            inverse_wide: negated::<B, L>(&wide),
            roomy: (p[L - 1] + 1) * 63 <= 1 << B,
        })
    }
}

/// Limb i of j times `step` times p at [i][j].
const fn eight_multiples<const B: usize, const L: usize>(p: &[u64; L], step: u64) -> [[u64; 8]; L] {
    let mut multiples = [[0; 8]; L];
    let mut factor = 0;
    while factor < 8 {
        let (product, _) = multiply::<B, L>(p, factor * step, 0);
        let mut limb = 0;
        while limb < L {
            multiples[limb][factor as usize] = product[limb];
            limb += 1;
        }
        factor += 1;
    }
    multiples
}

/// `a * b` modulo R.
pub(super) const fn multiply_low<const B: usize, const L: usize>(a: &[u64; L], b: &[u64; L]) -> [u64; L] {
    let mut product = [0; L];
    let mut sum = 0u128;
    let mut column = 0;
    while column < L {
        let mut i = 0;
        while i <= column {
            sum += a[i] as u128 * b[column - i] as u128;
            i += 1;
        }
        product[column] = sum as u64 & mask::<B>();
        sum >>= B;
        column += 1;
    }
    product
}

/// `-a` modulo R.
const fn negated<const B: usize, const L: usize>(a: &[u64; L]) -> [u64; L] {
    let mut negated = [0; L];
    let mut carry = 1;
    let mut i = 0;
    while i < L {
        let sum = (!a[i] & mask::<B>()) + carry;
        negated[i] = sum & mask::<B>();
        carry = sum >> B;
        i += 1;
    }
    negated
}

/// N 64-bit limbs as L limbs of B bits.
pub(super) const fn to_radix<const B: usize, const N: usize, const L: usize>(limbs: [u64; N]) -> [u64; L] {
    let mut spread = [0; L];
    let mut i = 0;
    while i < L {
        let (word, bit) = (i * B / 64, i * B % 64);
        if word < N {
            spread[i] = limbs[word] >> bit;
            if bit + B > 64 && word + 1 < N {
                spread[i] |= limbs[word + 1] << (64 - bit);
            }
            spread[i] &= mask::<B>();
        }
        i += 1;
    }
    spread
}

/// `limbs * factor + carry`: L limbs and the next.
const fn multiply<const B: usize, const L: usize>(
    limbs: &[u64; L],
    factor: u64,
    carry: u64,
) -> ([u64; L], u64) {
    let mut product = [0; L];
    let mut carry = carry;
    let mut i = 0;
    while i < L {
        let wide = limbs[i] as u128 * factor as u128 + carry as u128;
        product[i] = wide as u64 & mask::<B>();
        carry = (wide >> B) as u64;
        i += 1;
    }
    (product, carry)
}

/// `a + 2` modulo R.
const fn plus_two<const B: usize, const L: usize>(a: &[u64; L]) -> [u64; L] {
    let mut sum = [0; L];
    let mut carry = 2;
    let mut i = 0;
    while i < L {
        sum[i] = (a[i] + carry) & mask::<B>();
        carry = (a[i] + carry) >> B;
        i += 1;
    }
    sum
}
