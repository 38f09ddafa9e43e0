//! The difference of a point and words that are none, as snarkjs computes it.
//!
//! From 2^15 rows on, snarkjs' hash of a circuit takes one power of tau more than a file of the circuit's own
//! power has: the bytes behind the last one, which are the prefix of the next section and the start of its
//! content. They are no point, and their words may be above the modulus p. snarkjs' arithmetic corrects a sum
//! by p once and a difference by p once, in words of R = 2^(64 N), and drops what is carried out of these:
//! for such words the results are not those modulo p. Here are the same steps, in integers.

use ark_ff::{AdditiveGroup, Field, PrimeField};
use num_bigint::BigUint;
use spillproof_format::Element;
use spillproof_format::native::NativeField;

use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::field::CoordinateField;

/// Integers below R that stand for elements in Montgomery form.
struct Words {
    p: BigUint,
    r: BigUint,
    /// -1/p modulo R.
    minus_p_inverse: BigUint,
}

impl Words {
    fn new(p: BigUint, bytes: usize) -> Self {
        let r = BigUint::from(1u32) << (8 * bytes);
        // Newton's iteration doubles the right bits: p is odd.
        let mut inverse = BigUint::from(1u32);
        for _ in 0..usize::BITS - bytes.leading_zeros() + 3 {
            let error = (&r + 2u32 - (&p * &inverse) % &r) % &r;
            inverse = (inverse * error) % &r;
        }
        Self {
            minus_p_inverse: &r - inverse,
            p,
            r,
        }
    }

    /// Less p if there was a carry out of the words, or else if it is not below p.
    fn corrected(&self, value: BigUint) -> BigUint {
        if value >= self.p {
            (value - &self.p) % &self.r
        } else {
            value
        }
    }

    fn add(&self, a: &BigUint, b: &BigUint) -> BigUint {
        self.corrected(a + b)
    }

    fn sub(&self, a: &BigUint, b: &BigUint) -> BigUint {
        if a >= b {
            return a - b;
        }
        (a + &self.r - b + &self.p) % &self.r
    }

    fn mul(&self, a: &BigUint, b: &BigUint) -> BigUint {
        let product = a * b;
        let factor = (&product * &self.minus_p_inverse) % &self.r;
        self.corrected((product + factor * &self.p) / &self.r)
    }

    /// x, y and z of the sum of two points in affine form (Bernstein and Lange, *Explicit-Formulas Database*,
    /// mmadd-2007-bl).
    fn sum(&self, [x1, y1]: [&BigUint; 2], [x2, y2]: [&BigUint; 2]) -> [BigUint; 3] {
        let h = self.sub(x2, x1);
        let slope = self.sub(y2, y1);
        let hh = self.mul(&h, &h);
        let i = self.add(&hh, &hh);
        let i = self.add(&i, &i);
        let j = self.mul(&h, &i);
        let r = self.add(&slope, &slope);
        let v = self.mul(x1, &i);
        let rr = self.mul(&r, &r);
        let v2 = self.add(&v, &v);
        let x3 = self.sub(&self.sub(&rr, &j), &v2);
        let y1_j = self.mul(y1, &j);
        let y1_j = self.add(&y1_j, &y1_j);
        let y3 = self.mul(&self.sub(&v, &x3), &r);
        let y3 = self.sub(&y3, &y1_j);
        [x3, y3, self.add(&h, &h)]
    }
}

/// `behind - point` in the form in which it is hashed: coordinates as integers, big-endian. `behind` has as
/// many bytes as a point, of a curve over a prime field.
pub(super) fn difference<P: Curve>(behind: &[u8], point: &Point<P>) -> Vec<u8> {
    type Prime<P> = <<P as ark_ec::CurveConfig>::BaseField as CoordinateField>::Prime;
    let bytes = Prime::<P>::BYTES;
    let words = Words::new(Prime::<P>::MODULUS.into(), bytes);
    let mut negated = vec![0; Point::<P>::BYTES];
    point.negated().encode(&mut negated);
    let coordinates = |of: &[u8]| {
        let (x, y) = of.split_at(bytes);
        [x, y].map(BigUint::from_bytes_le)
    };
    let ([x1, y1], [x2, y2]) = (coordinates(behind), coordinates(&negated));
    let mut out = negated;
    if behind.iter().all(|byte| *byte == 0) {
        let sides = [x2, y2].map(|value| Prime::<P>::from(value) * radix_inverse::<Prime<P>>());
        write(&sides, &mut out);
        return out;
    }
    let sum = words.sum([&x1, &y1], [&x2, &y2]);
    let [x3, y3, z3] = sum.map(|value| Prime::<P>::from(value) * radix_inverse::<Prime<P>>());
    let inverse = z3.inverse().unwrap_or(Prime::<P>::ZERO);
    let square = inverse.square();
    write(&[x3 * square, y3 * square * inverse], &mut out);
    out
}

/// 1/R.
fn radix_inverse<F: PrimeField + Element>() -> F {
    let radix = F::from(2u64).pow([8 * F::BYTES as u64]);
    // R is a power of two, and p is odd.
    radix.inverse().unwrap_or(F::ZERO)
}

fn write<F: NativeField>(coordinates: &[F; 2], out: &mut [u8]) {
    for (coordinate, out) in coordinates.iter().zip(out.chunks_exact_mut(F::BYTES)) {
        coordinate.write_standard(out);
        out.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bn254::{Fq, G1Affine, g1};
    use ark_ec::{AffineRepr, CurveGroup};

    /// For words that are a point, the difference is that of points.
    #[test]
    fn a_difference_of_points() {
        let g = G1Affine::generator();
        let [low, high] = [3u64, 11].map(|factor| (g * ark_bn254::Fr::from(factor)).into_affine());
        let mut behind = vec![0; 64];
        Point::<g1::Config>::from_affine::<g1::Config>(&high).encode(&mut behind);
        let difference =
            difference::<g1::Config>(&behind, &Point::<g1::Config>::from_affine::<g1::Config>(&low));
        let expected = (high.into_group() - low).into_affine();
        let mut bytes = vec![0; 64];
        write::<Fq>(&[expected.x, expected.y], &mut bytes);
        assert_eq!(difference, bytes);
        let alone =
            super::difference::<g1::Config>(&[0; 64], &Point::<g1::Config>::from_affine::<g1::Config>(&low));
        write::<Fq>(&[low.x, -low.y], &mut bytes);
        assert_eq!(alone, bytes);
    }

    #[test]
    fn words_above_the_modulus_are_corrected_once() {
        let p = BigUint::from(Fq::MODULUS);
        let words = Words::new(p.clone(), 32);
        let one = BigUint::from(1u32);
        let top = &words.r - &one;
        assert_eq!((&words.minus_p_inverse * &p) % &words.r, top);
        assert_eq!(words.add(&top, &top), (&top + &top - &p) % &words.r);
        assert_eq!(words.sub(&BigUint::ZERO, &top), (&p + &one) % &words.r);
        assert_eq!(words.add(&p, &one), one);
        let below = &p - &one;
        assert_eq!(words.sub(&one, &below), BigUint::from(2u32));
    }
}
