//! Scalars to the steps of a double-and-add.
//!
//! One scalar for a whole block: a non-adjacent form of width 5 (digits odd, below 16 in size, one in six
//! positions on average). A scalar for each point: windows of 4 bits whose digits are all odd (Joye and
//! Tunstall, *Exponent recoding and regular exponentiation algorithms*, 2009, section 3.2), so that all
//! points take the same steps.
//!
//! A curve's endomorphism halves scalars (`endomorphism`). Without it a scalar is taken as the integer below
//! r that it is; an even one is made odd by adding 1, and the point is subtracted at the end.
//!
//! Memory: [`Recoding::digit_rows`] bytes a point of a block.

use ark_ff::{Field, PrimeField, Zero};

use super::endomorphism::Endomorphism;
use crate::curve::Curve;

/// Odd multiples in a point's table: 1, 3, ..., 15.
pub(super) const ENTRIES: usize = 8;
/// Slots of a point's table: its odd multiples, and its double.
const SLOTS: usize = ENTRIES + 1;
/// The slot of a point's double, behind the odd multiples.
const DOUBLE: u8 = ENTRIES as u8;
/// Bits of a window.
const WINDOW_BITS: usize = 4;
/// The least power of two that no digit reaches.
const DIGIT_LIMIT: u64 = 2 * ENTRIES as u64;

/// One step on all points of a block.
#[derive(Clone, Copy)]
pub(super) enum Op<'a> {
    /// The block's points become those of an input.
    Read(usize),
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
    fn one(first: u8, digit: i8, endomorphic: bool) -> Self {
        Self::slot(first + digit.unsigned_abs() / 2, digit < 0, endomorphic)
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

/// The steps that fill `entries` slots of a table, whose first slot is `first`.
fn table(program: &mut Vec<Op<'_>>, first: u8, entries: usize) {
    program.push(Op::Save(first));
    if entries > 1 {
        program.extend([
            Op::Double,
            Op::Save(first + DOUBLE),
            Op::Load(Operand::slot(first, false, false)),
        ]);
        for slot in first + 1..first + entries as u8 {
            program.extend([
                Op::Add(Operand::slot(first + DOUBLE, false, false)),
                Op::Save(slot),
            ]);
        }
    }
}

/// The non-adjacent form of a factor, of what is in the table from slot `first` on.
struct Form {
    digits: Vec<i8>,
    first: u8,
    endomorphic: bool,
}

/// The steps from filled tables to the sum of all forms. None if they are all of zero.
fn joint(program: &mut Vec<Op<'_>>, forms: &[Form]) {
    let mut started = false;
    for position in (0..forms.iter().map(|form| form.digits.len()).max().unwrap_or(0)).rev() {
        if started {
            program.push(Op::Double);
        }
        for form in forms {
            let operand = |digit: i8| Operand::one(form.first, digit, form.endomorphic);
            match form.digits.get(position) {
                None | Some(0) => {}
                Some(digit) if started => program.push(Op::Add(operand(*digit))),
                Some(digit) => {
                    program.push(Op::Load(operand(*digit)));
                    started = true;
                }
            }
        }
    }
}

/// Odd multiples that forms use.
fn entries(forms: &[Form]) -> usize {
    let digits = forms.iter().flat_map(|form| &form.digits);
    let largest = digits.map(|digit| digit.unsigned_abs()).max();
    usize::from(largest.unwrap_or(1)).div_ceil(2)
}

/// An integer below 2^256, and its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signed {
    pub(super) magnitude: [u64; 4],
    pub(super) negative: bool,
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

    /// Of windows of 4 bits, lowest digit first, of an odd number below `16^windows`: `put` gets window and
    /// digit.
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
        let mut program = Vec::new();
        let forms = self.forms(scalar, 0);
        table(&mut program, 0, entries(&forms));
        joint(&mut program, &forms);
        program
    }

    /// The steps that add to every point the sum of `scalars[j]` times its counterpart in input j. They share
    /// their doublings.
    pub(super) fn combination(&self, scalars: &[P::ScalarField]) -> Vec<Op<'static>> {
        let mut program = Vec::new();
        let mut all_forms = Vec::new();
        let summand = Self::slots(scalars.len()) as u8 - 1;
        program.push(Op::Save(summand));
        for (input, scalar) in scalars.iter().enumerate().filter(|(_, scalar)| !scalar.is_zero()) {
            let first = (input * SLOTS) as u8;
            let forms = self.forms(scalar, first);
            program.push(Op::Read(input));
            table(&mut program, first, entries(&forms));
            all_forms.extend(forms);
        }
        if all_forms.is_empty() {
            return Vec::new();
        }
        joint(&mut program, &all_forms);
        program.push(Op::Add(Operand::slot(summand, false, false)));
        program
    }

    /// Slots of the tables of a [`Self::combination`] of so many inputs, or of one point's multiples.
    pub(super) fn slots(inputs: usize) -> usize {
        match inputs {
            0 => SLOTS,
            _ => inputs * SLOTS + 1,
        }
    }

    /// Of one scalar, or of both of its halves.
    fn forms(&self, scalar: &P::ScalarField, first: u8) -> Vec<Form> {
        let integer = Self::integer(scalar);
        let form = |(value, endomorphic): (&Signed, bool)| Form {
            digits: value.non_adjacent_form(),
            first,
            endomorphic,
        };
        match &self.endomorphism {
            Some(endomorphism) => {
                let halves = endomorphism.halves(&integer);
                halves.iter().zip([false, true]).map(form).collect()
            }
            None => {
                let whole = Signed {
                    magnitude: integer,
                    negative: false,
                };
                vec![form((&whole, false))]
            }
        }
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
        table(&mut program, 0, ENTRIES);
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

#[cfg(test)]
mod tests {
    use super::super::endomorphism::cube_root_of_unity;
    use super::*;
    use crate::field::KernelField;
    use ark_ec::short_weierstrass::Projective;
    use ark_ec::{CurveGroup, PrimeGroup};
    use ark_ff::{AdditiveGroup, UniformRand};
    use num_bigint::BigUint;
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
