//! Scalars of half the length, by an endomorphism of the curve.
//!
//! The endomorphism (Gallant, Lambert and Vanstone, *Faster point multiplication on elliptic curves with
//! efficient endomorphisms*, 2001): on a curve y^2 = x^3 + b of prime order r, (x, y) -> (beta x, y) with
//! beta^3 = 1 multiplies by a lambda with lambda^3 = 1. A scalar s becomes k1 + k2 lambda with k1 and k2 of
//! half its length: less the vector that is closest to (s, 0) in the lattice of all (a, b) with a + b
//! lambda = 0 modulo r. Both halves share the doublings. The lattice has vectors of each parity, so that both
//! halves can be made odd. Curves with a cofactor are left out: outside of the subgroup of order r the
//! endomorphism multiplies by something else.

use ark_ec::short_weierstrass::Projective;
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{Field, PrimeField, Zero};
use num_bigint::{BigInt, BigUint, Sign};

use super::digits::Signed;
use crate::curve::Curve;

/// An integer modulo 2^192, in two's complement.
type Wide = [u64; 3];

fn wide(value: &BigInt) -> Wide {
    let modulus = BigInt::from(1) << 192;
    let positive: BigInt = (value % &modulus + &modulus) % &modulus;
    let (_, digits) = positive.to_u64_digits();
    std::array::from_fn(|i| digits.get(i).copied().unwrap_or(0))
}

fn wide_minus(a: &Wide, b: &Wide) -> Wide {
    let mut difference = [0; 3];
    let mut borrow = 0i128;
    for i in 0..3 {
        borrow += i128::from(a[i]) - i128::from(b[i]);
        difference[i] = borrow as u64;
        borrow >>= 64;
    }
    difference
}

fn wide_times(a: &Wide, b: &Wide) -> Wide {
    let mut product = [0u64; 3];
    for i in 0..3 {
        let mut carry = 0u128;
        for j in 0..3 - i {
            carry += u128::from(product[i + j]) + u128::from(a[i]) * u128::from(b[j]);
            product[i + j] = carry as u64;
            carry >>= 64;
        }
    }
    product
}

fn signed(value: &Wide) -> Signed {
    let negative = value[2] >> 63 == 1;
    let [a, b, c] = if negative {
        wide_minus(&[0; 3], value)
    } else {
        *value
    };
    Signed {
        magnitude: [a, b, c, 0],
        negative,
    }
}

/// Multiplication by a cube root of unity that costs one multiplication in the base field.
#[derive(Clone)]
pub(super) struct Endomorphism<P: Curve> {
    pub(super) beta: P::BaseField,
    /// A short basis of the lattice.
    basis: [[Wide; 2]; 2],
    /// 2^256 times the coordinates of (1, 0) in that basis, rounded to the nearest: sign, and magnitude.
    coordinates: [(bool, Wide); 2],
    /// Vectors of the lattice by parity: bit 0 for an odd first coordinate, bit 1 for the second.
    parities: [[Wide; 2]; 4],
    /// Bits of a half, made odd or not.
    pub(super) bits: u64,
}

impl<P: Curve> Endomorphism<P> {
    /// That of a curve of prime order with a = 0 whose fields have cube roots of unity.
    pub(super) fn find() -> Option<Self> {
        if P::COEFF_A != P::BaseField::default() || P::COFACTOR.iter().copied().ne([1]) {
            return None;
        }
        let beta = cube_root_of_unity::<<P::BaseField as Field>::BasePrimeField>()?;
        let beta = P::BaseField::from_base_prime_field(beta);
        let root = cube_root_of_unity::<P::ScalarField>()?;
        let generator = Projective::<P>::generator();
        let mut image = generator.into_affine();
        image.x *= beta;
        // beta goes with one root or with the other.
        let lambda = [root, root.square()]
            .into_iter()
            .find(|lambda| (generator * lambda).into_affine() == image)?;
        Some(Self::new(beta, lambda))
    }

    fn new(beta: P::BaseField, lambda: P::ScalarField) -> Self {
        let unsigned = |limbs: BigUint| BigInt::from_biguint(Sign::Plus, limbs);
        let order = unsigned(P::ScalarField::MODULUS.into());
        let [first, second] = short_basis(&order, &unsigned(lambda.into_bigint().into()));
        let determinant = &first[0] * &second[1] - &first[1] * &second[0];
        let scaled = |numerator: &BigInt| {
            let negative = (numerator.sign() == Sign::Minus) != (determinant.sign() == Sign::Minus);
            let (numerator, divisor) = (numerator.magnitude() << 257, determinant.magnitude() << 1);
            let rounded = (numerator + determinant.magnitude()) / divisor;
            (negative, wide(&unsigned(rounded)))
        };
        // (1, 0) = (b2 * first - b1 * second) / determinant.
        let coordinates = [scaled(&second[1]), scaled(&-&first[1])];

        let zero = [BigInt::from(0), BigInt::from(0)];
        let mut parities: [Option<[BigInt; 2]>; 4] = [Some(zero), None, None, None];
        for (i, j) in [(1i32, 0i32), (0, 1), (1, 1), (1, -1)] {
            let vector: [BigInt; 2] = [0, 1].map(|at: usize| &first[at] * i + &second[at] * j);
            let parity = usize::from(vector[0].bit(0)) + 2 * usize::from(vector[1].bit(0));
            let place = &mut parities[parity];
            if place.as_ref().is_none_or(|known| size(&vector) < size(known)) {
                *place = Some(vector);
            }
        }
        // The determinant is odd, so there is one of each parity.
        let parities = parities.map(Option::unwrap_or_default);
        // Rounding takes off all but half a vector of the basis each, and an eighth for its own error.
        let sum = |at: usize| BigInt::from(first[at].magnitude() + second[at].magnitude());
        let largest = [0, 1].map(|at| {
            let parity = parities.iter().map(|vector| vector[at].magnitude()).max();
            (sum(at) * 5 / 8) + BigInt::from(parity.cloned().unwrap_or_default()) + 1
        });
        Self {
            beta,
            basis: [first, second].map(|vector| vector.each_ref().map(wide)),
            coordinates,
            parities: parities.map(|vector| vector.each_ref().map(wide)),
            bits: size(&largest).bits(),
        }
    }

    /// Halves of an integer below r, in two's complement.
    fn short(&self, integer: &[u64; 4]) -> [Wide; 2] {
        let [a, b, c, _] = *integer;
        let mut halves = [[a, b, c], [0; 3]];
        for (vector, (negative, factor)) in self.basis.iter().zip(&self.coordinates) {
            let rounded = rounded_product(integer, factor);
            let multiple = if *negative {
                wide_minus(&[0; 3], &rounded)
            } else {
                rounded
            };
            for (half, coordinate) in halves.iter_mut().zip(vector) {
                *half = wide_minus(half, &wide_times(&multiple, coordinate));
            }
        }
        halves
    }

    pub(super) fn halves(&self, integer: &[u64; 4]) -> [Signed; 2] {
        self.short(integer).each_ref().map(signed)
    }

    /// Both odd.
    pub(super) fn odd_halves(&self, integer: &[u64; 4]) -> [Signed; 2] {
        let mut halves = self.short(integer);
        let missing = usize::from(halves[0][0] & 1 == 0) + 2 * usize::from(halves[1][0] & 1 == 0);
        for (half, coordinate) in halves.iter_mut().zip(&self.parities[missing]) {
            *half = wide_minus(half, coordinate);
        }
        halves.each_ref().map(signed)
    }
}

/// `(a * b + 2^255) / 2^256`.
fn rounded_product(a: &[u64; 4], b: &Wide) -> Wide {
    let mut product = [0u64; 7];
    product[3] = 1 << 63;
    for i in 0..4 {
        let mut carry = 0u128;
        for j in 0..3 {
            carry += u128::from(product[i + j]) + u128::from(a[i]) * u128::from(b[j]);
            product[i + j] = carry as u64;
            carry >>= 64;
        }
        for limb in &mut product[i + 3..] {
            carry += u128::from(*limb);
            *limb = carry as u64;
            carry >>= 64;
        }
    }
    [product[4], product[5], product[6]]
}

/// The larger coordinate.
fn size(vector: &[BigInt; 2]) -> BigUint {
    vector[0].magnitude().max(vector[1].magnitude()).clone()
}

/// Two short vectors (a, b) with a + b lambda = 0 modulo `order`: from the extended Euclidean algorithm, on
/// both sides of the square root of `order` (Gallant, Lambert and Vanstone, section 4).
fn short_basis(order: &BigInt, lambda: &BigInt) -> [[BigInt; 2]; 2] {
    let root = order.sqrt();
    let (mut before, mut now) = (
        [order.clone(), BigInt::from(0)],
        [lambda.clone(), BigInt::from(-1)],
    );
    let next = |before: &[BigInt; 2], now: &[BigInt; 2]| {
        let quotient = &before[0] / &now[0];
        [0, 1].map(|at| &before[at] - &quotient * &now[at])
    };
    while now[0] >= root {
        let after = next(&before, &now);
        before = std::mem::replace(&mut now, after);
    }
    let after = next(&before, &now);
    let second = if size(&before) <= size(&after) {
        before
    } else {
        after
    };
    [now, second]
}

/// Some primitive one, if the field has any.
pub(super) fn cube_root_of_unity<F: PrimeField>() -> Option<F> {
    let order: BigUint = F::MODULUS.into();
    let (order, three) = (order - 1u32, BigUint::from(3u32));
    if !(&order % &three).is_zero() {
        return None;
    }
    let exponent = (order / three).to_u64_digits();
    (2u64..100)
        .map(|base| F::from(base).pow(&exponent))
        .find(|root| *root != F::ONE)
}
