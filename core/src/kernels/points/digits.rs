//! Scalars to the steps of a double-and-add.
//!
//! One scalar for a whole block: a non-adjacent form of width 5 (digits odd, below 16 in size, one in six positions on average). A
//! scalar for each point: windows of 4 bits whose digits are all odd (Joye and Tunstall, *Exponent recoding and regular
//! exponentiation algorithms*, 2009, section 3.2), so that all points take the same steps.
//!
//! The endomorphism (Gallant, Lambert and Vanstone, *Faster point multiplication on elliptic curves with efficient endomorphisms*,
//! 2001): on a curve y^2 = x^3 + b of prime order r, (x, y) -> (beta x, y) with beta^3 = 1 multiplies by a lambda with lambda^3 = 1.
//! A scalar s becomes k1 + k2 lambda with k1 and k2 of half its length: less the vector that is closest to (s, 0) in the lattice
//! of all (a, b) with a + b lambda = 0 modulo r. Both halves share the doublings. The lattice has vectors of each parity, so
//! that both halves can be made odd. Curves with a cofactor are left out: outside of the subgroup of order r the
//! endomorphism multiplies by something else.
//!
//! Without the endomorphism a scalar is taken as the integer below r that it is; an even one is made odd by adding 1, and the
//! point is subtracted at the end.
//!
//! Memory: [`Recoding::digit_rows`] bytes a point of a block.

use ark_ec::short_weierstrass::Projective;
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{Field, PrimeField, Zero};
use num_bigint::{BigInt, BigUint, Sign};

use crate::kernels::curve::Curve;

/// Odd multiples in a point's table: 1, 3, ..., 15.
pub(super) const ENTRIES: usize = 8;
/// The slot of a point's double, behind the odd multiples.
const DOUBLE: u8 = ENTRIES as u8;
/// Bits of a window.
const WINDOW_BITS: usize = 4;
/// The least power of two that no digit reaches.
const DIGIT_LIMIT: u64 = 2 * ENTRIES as u64;

/// One step on all points of a block.
#[derive(Clone, Copy)]
pub(super) enum Op<'a> {
    /// The block's points become the operand.
    Load(Operand<'a>),
    /// The operand is added.
    Add(Operand<'a>),
    /// They are doubled.
    Double,
    /// They are copied to a slot of the table.
    Save(u8),
}

/// A point out of each point's own table.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a> {
    pub(super) slots: Slots<'a>,
    /// Whether the endomorphism acts on it.
    pub(super) endomorphic: bool,
    /// Whether some points have none: digits of zero.
    pub(super) may_be_absent: bool,
}

/// Which one.
#[derive(Clone, Copy)]
pub(super) enum Slots<'a> {
    /// The same for all.
    One { slot: u8, negative: bool },
    /// That of an odd digit each.
    Each(&'a [i8]),
}

impl<'a> Operand<'a> {
    fn one(digit: i8, endomorphic: bool) -> Self {
        Self::slot(digit.unsigned_abs() / 2, digit < 0, endomorphic)
    }

    fn slot(slot: u8, negative: bool, endomorphic: bool) -> Self {
        Self {
            slots: Slots::One { slot, negative },
            endomorphic,
            may_be_absent: false,
        }
    }

    fn each(digits: &'a [i8], endomorphic: bool) -> Self {
        Self {
            slots: Slots::Each(digits),
            endomorphic,
            may_be_absent: false,
        }
    }
}

/// The steps that fill `entries` slots of the tables.
fn table(program: &mut Vec<Op<'_>>, entries: usize) {
    program.push(Op::Save(0));
    if entries > 1 {
        program.extend([
            Op::Double,
            Op::Save(DOUBLE),
            Op::Load(Operand::slot(0, false, false)),
        ]);
        for slot in 1..entries as u8 {
            program.extend([Op::Add(Operand::slot(DOUBLE, false, false)), Op::Save(slot)]);
        }
    }
}

/// An integer below 2^256, and its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Signed {
    magnitude: [u64; 4],
    negative: bool,
}

impl Signed {
    fn is_even(&self) -> bool {
        self.magnitude[0] & 1 == 0
    }

    fn sign(&self, digit: i8) -> i8 {
        if self.negative { -digit } else { digit }
    }

    /// Of width 5, lowest digit first.
    fn non_adjacent_form(&self) -> Vec<i8> {
        let mut rest = self.magnitude;
        let mut top = 0u64;
        let mut digits = Vec::with_capacity(257);
        while rest != [0; 4] || top != 0 {
            let mut digit = 0i8;
            if rest[0] & 1 == 1 {
                let low = rest[0] % (2 * DIGIT_LIMIT);
                digit = low as i8;
                if low > DIGIT_LIMIT {
                    digit -= 2 * DIGIT_LIMIT as i8;
                    top += u64::from(add_small(&mut rest, 2 * DIGIT_LIMIT - low));
                } else {
                    rest[0] -= low;
                }
            }
            digits.push(self.sign(digit));
            shift_right(&mut rest, 1);
            rest[3] |= top << 63;
            top >>= 1;
        }
        digits
    }

    /// Of windows of 4 bits, lowest digit first, of an odd number below `16^windows`: `put` gets window and digit.
    fn odd_digits(&self, windows: usize, mut put: impl FnMut(usize, i8)) {
        let mut rest = self.magnitude;
        for window in 0..windows - 1 {
            let digit = (rest[0] % (2 * DIGIT_LIMIT)) as i8 - DIGIT_LIMIT as i8;
            put(window, self.sign(digit));
            // (rest - digit) / 16: the digit's bits are replaced by one above them, which is odd again.
            shift_right(&mut rest, WINDOW_BITS as u32);
            rest[0] |= 1;
        }
        put(windows - 1, self.sign(rest[0] as i8));
    }
}

/// Adds, and says whether there is a carry out.
fn add_small(value: &mut [u64; 4], summand: u64) -> bool {
    let mut carry = summand;
    for limb in value {
        let (sum, overflow) = limb.overflowing_add(carry);
        *limb = sum;
        carry = u64::from(overflow);
    }
    carry == 1
}

fn shift_right(value: &mut [u64; 4], bits: u32) {
    for i in 0..4 {
        let above = if i < 3 { value[i + 1] } else { 0 };
        value[i] = value[i] >> bits | above << (64 - bits);
    }
}

/// How scalars of a curve are recoded.
#[derive(Clone)]
pub(super) struct Recoding<P: Curve> {
    endomorphism: Option<Endomorphism<P>>,
    /// Windows of 4 bits, of each half.
    windows: usize,
}

impl<P: Curve> Recoding<P> {
    /// With the endomorphism, if the curve has one.
    pub(super) fn new() -> Self {
        Self::with(Endomorphism::find())
    }

    fn with(endomorphism: Option<Endomorphism<P>>) -> Self {
        let bits = match &endomorphism {
            Some(endomorphism) => endomorphism.bits as usize,
            None => P::ScalarField::MODULUS_BIT_SIZE as usize,
        };
        Self {
            endomorphism,
            windows: bits.div_ceil(WINDOW_BITS),
        }
    }

    #[cfg(test)]
    pub(super) fn without_endomorphism() -> Self {
        Self::with(None)
    }

    /// What the endomorphism multiplies x by; 1 if there is none.
    pub(super) fn beta(&self) -> P::BaseField {
        self.endomorphism
            .as_ref()
            .map_or(P::BaseField::ONE, |known| known.beta)
    }

    /// Bytes of a point's digits where each has a scalar of its own.
    pub(super) fn digit_rows(&self) -> usize {
        self.windows * self.halves() + usize::from(self.endomorphism.is_none())
    }

    /// The largest [`Self::digit_rows`] of the curve.
    pub(super) fn digit_rows_max() -> usize {
        P::ScalarField::MODULUS_BIT_SIZE as usize / WINDOW_BITS + 4
    }

    fn halves(&self) -> usize {
        1 + usize::from(self.endomorphism.is_some())
    }

    fn integer(scalar: &P::ScalarField) -> [u64; 4] {
        let mut integer = [0; 4];
        integer.copy_from_slice(scalar.into_bigint().as_ref());
        integer
    }

    /// The steps that multiply every point by `scalar`, which is not zero.
    pub(super) fn one(&self, scalar: &P::ScalarField) -> Vec<Op<'static>> {
        let integer = Self::integer(scalar);
        let forms: Vec<Vec<i8>> = match &self.endomorphism {
            Some(endomorphism) => endomorphism
                .halves(&integer)
                .iter()
                .map(Signed::non_adjacent_form)
                .collect(),
            None => {
                let whole = Signed {
                    magnitude: integer,
                    negative: false,
                };
                vec![whole.non_adjacent_form()]
            }
        };
        let largest = forms.iter().flatten().map(|digit| digit.unsigned_abs()).max();
        let mut program = Vec::new();
        table(&mut program, usize::from(largest.unwrap_or(1)).div_ceil(2));
        let mut started = false;
        for position in (0..forms.iter().map(Vec::len).max().unwrap_or(0)).rev() {
            if started {
                program.push(Op::Double);
            }
            for (form, endomorphic) in forms.iter().zip([false, true]) {
                match form.get(position) {
                    None | Some(0) => {}
                    Some(digit) if started => program.push(Op::Add(Operand::one(*digit, endomorphic))),
                    Some(digit) => {
                        program.push(Op::Load(Operand::one(*digit, endomorphic)));
                        started = true;
                    }
                }
            }
        }
        program
    }

    /// The digits of a scalar for each point: row after row, a byte for each point.
    pub(super) fn fill(&self, scalars: &[P::ScalarField], digits: &mut [i8]) {
        let len = scalars.len();
        let mut first = 0;
        while first < len {
            let scalar = &scalars[first];
            let run = scalars[first..]
                .iter()
                .take_while(|other| *other == scalar)
                .count();
            self.fill_run(scalar, len, first..first + run, digits);
            first += run;
        }
    }

    fn fill_run(&self, scalar: &P::ScalarField, len: usize, run: std::ops::Range<usize>, digits: &mut [i8]) {
        let halves = self.halves();
        let mut put = |row: usize, digit: i8| {
            digits[row * len + run.start..row * len + run.end].fill(digit);
        };
        let integer = Self::integer(scalar);
        match &self.endomorphism {
            Some(endomorphism) => {
                for (half, value) in endomorphism.odd_halves(&integer).iter().enumerate() {
                    value.odd_digits(self.windows, |window, digit| put(window * halves + half, digit));
                }
            }
            None => {
                let mut value = Signed {
                    magnitude: integer,
                    negative: false,
                };
                let is_even = value.is_even();
                if is_even {
                    add_small(&mut value.magnitude, 1);
                }
                value.odd_digits(self.windows, &mut put);
                put(self.windows, if is_even { -1 } else { 0 });
            }
        }
    }

    /// The steps for [`Self::fill`]'s digits of a block of `len` points.
    pub(super) fn each<'a>(&self, len: usize, digits: &'a [i8]) -> Vec<Op<'a>> {
        let row = |row: usize| &digits[row * len..][..len];
        let halves = self.halves();
        let mut program = Vec::new();
        table(&mut program, ENTRIES);
        for window in (0..self.windows).rev() {
            let last = window + 1 == self.windows;
            if !last {
                program.extend([Op::Double; WINDOW_BITS]);
            }
            for half in 0..halves {
                let operand = Operand::each(row(window * halves + half), half == 1);
                program.push(if last && half == 0 {
                    Op::Load(operand)
                } else {
                    Op::Add(operand)
                });
            }
        }
        if self.endomorphism.is_none() {
            program.push(Op::Add(Operand {
                may_be_absent: true,
                ..Operand::each(row(self.windows), false)
            }));
        }
        program
    }
}

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
struct Endomorphism<P: Curve> {
    beta: P::BaseField,
    /// A short basis of the lattice.
    basis: [[Wide; 2]; 2],
    /// 2^256 times the coordinates of (1, 0) in that basis, rounded to the nearest: sign, and magnitude.
    coordinates: [(bool, Wide); 2],
    /// Vectors of the lattice by parity: bit 0 for an odd first coordinate, bit 1 for the second.
    parities: [[Wide; 2]; 4],
    /// Bits of a half, made odd or not.
    bits: u64,
}

impl<P: Curve> Endomorphism<P> {
    /// That of a curve of prime order with a = 0 whose fields have cube roots of unity.
    fn find() -> Option<Self> {
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

    fn halves(&self, integer: &[u64; 4]) -> [Signed; 2] {
        self.short(integer).each_ref().map(signed)
    }

    /// Both odd.
    fn odd_halves(&self, integer: &[u64; 4]) -> [Signed; 2] {
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

/// Two short vectors (a, b) with a + b lambda = 0 modulo `order`: from the extended Euclidean algorithm, on both sides of the square root of
/// `order` (Gallant, Lambert and Vanstone, section 4).
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
fn cube_root_of_unity<F: PrimeField>() -> Option<F> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::field::KernelField;
    use ark_ff::{AdditiveGroup, UniformRand};
    use rand_chacha::rand_core::SeedableRng;

    /// The sum of a half's digits, as a scalar.
    fn value<F: KernelField>(digits: &[i8], base: u64) -> F {
        digits.iter().rev().fold(F::ZERO, |sum, digit| {
            sum * F::from(base) + F::from(u64::from(digit.unsigned_abs())).signed(*digit < 0)
        })
    }

    fn recoded<P: Curve>(seed: u64) {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let endomorphism = Endomorphism::<P>::find().expect("a prime order, and a = 0");
        let lambda = [1u64, 2]
            .map(|power| {
                cube_root_of_unity::<P::ScalarField>()
                    .expect("a root")
                    .pow([power])
            })
            .into_iter()
            .find(|lambda| {
                let mut image = Projective::<P>::generator().into_affine();
                image.x *= endomorphism.beta;
                (Projective::<P>::generator() * lambda).into_affine() == image
            })
            .expect("one of both");
        assert!(
            (120..=132).contains(&endomorphism.bits),
            "{} bits",
            endomorphism.bits
        );
        let recoding = Recoding::<P>::new();
        let mut scalars = vec![
            P::ScalarField::ZERO,
            P::ScalarField::ONE,
            -P::ScalarField::ONE,
            lambda,
            -lambda,
        ];
        scalars.extend((0..256).map(|bit| P::ScalarField::from(2u64).pow([bit])));
        scalars.extend((0..2000).map(|_| P::ScalarField::rand(&mut rng)));
        for scalar in scalars {
            let integer = Recoding::<P>::integer(&scalar);
            for odd in [false, true] {
                let halves = match odd {
                    false => endomorphism.halves(&integer),
                    true => endomorphism.odd_halves(&integer),
                };
                let mut sum = P::ScalarField::ZERO;
                for (half, factor) in halves.iter().zip([P::ScalarField::ONE, lambda]) {
                    let limbs: Vec<u32> = half
                        .magnitude
                        .iter()
                        .flat_map(|limb| [*limb as u32, (*limb >> 32) as u32])
                        .collect();
                    assert!(BigUint::new(limbs).bits() <= endomorphism.bits, "seed {seed}");
                    let mut digits = vec![0; recoding.windows];
                    let base = match odd {
                        true => {
                            half.odd_digits(recoding.windows, |window, digit| digits[window] = digit);
                            assert!(
                                digits
                                    .iter()
                                    .all(|digit| digit % 2 != 0 && digit.unsigned_abs() < 16)
                            );
                            16
                        }
                        false => {
                            digits = half.non_adjacent_form();
                            assert!(
                                digits.windows(5).all(|five| five
                                    .iter()
                                    .filter(|digit| **digit != 0)
                                    .count()
                                    <= 1)
                            );
                            2
                        }
                    };
                    sum += value::<P::ScalarField>(&digits, base) * factor;
                }
                assert_eq!(sum, scalar, "seed {seed}");
            }
        }
    }

    #[test]
    fn halves_and_digits_sum_to_the_scalar() {
        recoded::<ark_bn254::g1::Config>(1);
        recoded::<ark_pallas::PallasConfig>(2);
    }

    /// Integers up to 2^256 keep their digits.
    #[test]
    fn the_longest_integers_are_recoded() {
        use ark_bn254::Fr;
        for magnitude in [
            [u64::MAX; 4],
            [1, 0, 0, 1 << 63],
            [1, 0, 0, 0],
            [u64::MAX, 0, u64::MAX, 0],
        ] {
            let number = Signed {
                magnitude,
                negative: true,
            };
            let wanted = -Fr::from(BigUint::from_slice(
                &magnitude
                    .iter()
                    .flat_map(|limb| [*limb as u32, (*limb >> 32) as u32])
                    .collect::<Vec<_>>(),
            ));
            assert_eq!(value::<Fr>(&number.non_adjacent_form(), 2), wanted);
            let mut digits = [0; 64];
            number.odd_digits(64, |window, digit| digits[window] = digit);
            assert_eq!(value::<Fr>(&digits, 16), wanted);
        }
    }
}
