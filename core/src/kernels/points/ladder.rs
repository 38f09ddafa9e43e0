//! Double-and-add on a block of affine points, all in step, each step with one inversion for the whole block.
//!
//! A doubling or an addition is `lambda = numerator / denominator`, `x3 = lambda^2 - x1 - x2`, `y3 = lambda (x1 - x3) - y1`. One loop
//! over the block multiplies the denominators up, their product is inverted, a second loop finishes the steps (Montgomery's
//! trick): 7 multiplications for a doubling, 6 for an addition, and a share of an inversion.
//!
//! Special cases. The fast form of a step looks for none: infinity is kept out of it, and a denominator of zero (equal x, or
//! y = 0) shows as a product of zero, before anything was written. Then the step is done again in its checked form, which finds
//! doublings, cancellations and infinity, point by point, by masks. Once a point is infinity, every further step on the block is checked.
//!
//! Bounds in lanes, in multiples of p. Kept coordinates are below 1. Denominators are at most 2, prefix products and inverses below
//! 3, so an own inverse is below 2.3. Numerators: of additions at most 2, of doublings below 3 * 2.1 + 1 = 7.3. lambda < 2.6,
//! lambda^2 < 2.3; less x1 + x2 (as 2 x1 + denominator: below 3) and plus 4: from 1 to 6.3. x1 - x3 + 1 < 2; its product with lambda
//! below 2.2; less y1 and plus 2: from 1 to 4.2.
//!
//! Memory: [`Ladder::bytes`].

use super::digits::{ENTRIES, Op, Operand, Slots};
use super::packs::{CHAINS, Packs};
use crate::kernels::curve::{Curve, Point};

/// Places in a point's table: its odd multiples, and its double.
const SLOTS: usize = ENTRIES + 1;
/// Where the double is.
pub(super) const DOUBLE: u8 = ENTRIES as u8;

/// A block's state.
pub(super) struct Ladder<P: Curve, A: Packs<P::BaseField>> {
    packs: A,
    /// The curve's a, unless it is zero.
    a: Option<A::Pack>,
    /// A cube root of unity, for operands on which the endomorphism acts.
    beta: A::Pack,
    points: Vec<[A::Pack; 2]>,
    denominators: Vec<A::Pack>,
    /// Product of the chain's denominators before this one.
    before: Vec<A::Pack>,
    /// Slot after slot, a point for each of the block in each.
    table: Vec<[A::Pack; 2]>,
    /// Some point is infinity, or one in the table is.
    checked: bool,
}

/// Where a sum is special.
#[derive(Clone, Copy)]
struct Special {
    /// The first operand is infinity: the sum is the second.
    first_is_infinity: u8,
    /// Only the second operand is: the sum is the first.
    second_is_infinity: u8,
    /// Equal points.
    doubling: u8,
    /// The sum is infinity.
    cancels: u8,
}

impl<P: Curve, A: Packs<P::BaseField>> Ladder<P, A> {
    /// For blocks of up to `block` points.
    pub(super) fn new(packs: A, block: usize, beta: &P::BaseField) -> Self {
        let groups = block.div_ceil(A::WIDTH);
        let unit = packs.unit();
        Self {
            packs,
            a: (P::COEFF_A != P::BaseField::default()).then(|| packs.splat(&P::COEFF_A)),
            beta: packs.splat(beta),
            points: Vec::with_capacity(groups),
            denominators: vec![unit; groups],
            before: vec![unit; groups],
            table: vec![[unit; 2]; SLOTS * groups],
            checked: false,
        }
    }

    /// Bytes for blocks of up to `block` points.
    pub(super) fn bytes(block: usize) -> u64 {
        let groups = block.div_ceil(A::WIDTH);
        (groups * (4 + 2 * SLOTS) * size_of::<A::Pack>()) as u64
    }

    /// Takes the steps of `program` with every point of the block: none may be infinity, results may.
    #[inline(always)]
    pub(super) fn walk(&mut self, points: &mut [Point<P>], program: &[Op<'_>]) {
        self.checked = false;
        self.load(points);
        for op in program {
            match op {
                Op::Save(slot) => {
                    let first = usize::from(*slot) * self.points.len();
                    self.table[first..first + self.points.len()].copy_from_slice(&self.points);
                }
                Op::Load(operand) => {
                    for group in 0..self.points.len() {
                        self.points[group] = self.operand(operand, group);
                    }
                }
                Op::Double => {
                    if self.checked || !self.double::<false>() {
                        self.double::<true>();
                    }
                }
                Op::Add(operand) => {
                    if self.checked || operand.may_be_absent || !self.add::<false>(operand) {
                        self.add::<true>(operand);
                    }
                }
            }
        }
        self.store(points);
    }

    /// `(low, high) <- (low + high, low - high)`.
    #[inline(always)]
    pub(super) fn sums_and_differences(&mut self, low: &mut [Point<P>], high: &mut [Point<P>]) {
        self.load(low);
        let groups = self.points.len();
        self.table[..groups].copy_from_slice(&self.points);
        self.load(high);
        self.checked = low.iter().chain(high.iter()).any(Point::<P>::is_infinity);
        if self.checked || !self.add_and_subtract::<false>() {
            self.add_and_subtract::<true>();
        }
        self.store(high);
        self.points.copy_from_slice(&self.table[..groups]);
        self.store(low);
    }

    #[inline(always)]
    fn load(&mut self, points: &[Point<P>]) {
        self.points.clear();
        for points in points.chunks(A::WIDTH) {
            self.points.push(self.packs.load(points));
        }
    }

    #[inline(always)]
    fn store(&self, points: &mut [Point<P>]) {
        for (group, points) in self.points.iter().zip(points.chunks_mut(A::WIDTH)) {
            self.packs.store(group, points);
        }
    }

    /// A group's point in a slot.
    #[inline(always)]
    fn entry(&self, slot: u8, group: usize) -> &[A::Pack; 2] {
        &self.table[usize::from(slot) * self.points.len() + group]
    }

    /// A coordinate (0 for x, 1 for y) of a group's operands, and the mask of those that are negated.
    #[inline(always)]
    fn selected(&self, operand: &Operand<'_>, group: usize, coordinate: usize) -> (A::Pack, u8) {
        match operand.slots {
            Slots::One { slot, negative } => (
                self.entry(slot, group)[coordinate],
                if negative { u8::MAX } else { 0 },
            ),
            Slots::Each(digits) => {
                let first = group * A::WIDTH;
                let digits = &digits[first..(first + A::WIDTH).min(digits.len())];
                let (mut negative, mut uniform) = (0u8, true);
                for (i, digit) in digits.iter().enumerate() {
                    negative |= u8::from(*digit < 0) << i;
                    uniform &= digit.unsigned_abs() == digits[0].unsigned_abs();
                }
                if uniform && digits[0] != 0 {
                    let slot = digits[0].unsigned_abs() / 2;
                    return (self.entry(slot, group)[coordinate], negative);
                }
                let mut masks = [0u8; ENTRIES];
                for (i, digit) in digits.iter().enumerate() {
                    if *digit != 0 {
                        masks[usize::from(digit.unsigned_abs() / 2)] |= 1 << i;
                    }
                }
                // Absent operands are infinity: zeros.
                let entry = self.entry(0, group)[coordinate];
                let mut value = self.packs.difference(&entry, &entry, 0);
                for (slot, mask) in (0..).zip(masks) {
                    value = self
                        .packs
                        .blend(mask, &self.entry(slot, group)[coordinate], &value);
                }
                (value, negative)
            }
        }
    }

    /// Settled.
    #[inline(always)]
    fn operand_x(&self, operand: &Operand<'_>, group: usize) -> A::Pack {
        let (x, _) = self.selected(operand, group, 0);
        if operand.endomorphic {
            // Below 3, and not negative.
            let product = self.packs.product(&x, &self.beta);
            let zero = self.packs.difference(&x, &x, 0);
            self.packs.settled(self.packs.difference(&product, &zero, 1))
        } else {
            x
        }
    }

    /// Loose, at most p.
    #[inline(always)]
    fn operand_y(&self, operand: &Operand<'_>, group: usize) -> A::Pack {
        let (y, negative) = self.selected(operand, group, 1);
        self.packs.signed(&y, negative)
    }

    /// Both coordinates, settled.
    #[inline(always)]
    fn operand(&self, operand: &Operand<'_>, group: usize) -> [A::Pack; 2] {
        let (y, negative) = self.selected(operand, group, 1);
        let point = [self.operand_x(operand, group), y];
        self.negated_where(negative, &point)
    }

    /// Denominator `group` into its chain.
    #[inline(always)]
    fn multiply_up(&mut self, products: &mut [A::Pack; CHAINS], group: usize, denominator: A::Pack) {
        let product = &mut products[group % CHAINS];
        self.before[group] = *product;
        *product = self.packs.product(product, &denominator);
        self.denominators[group] = denominator;
    }

    /// The inverse of denominator `group`, which leaves its chain.
    #[inline(always)]
    fn own_inverse(&self, inverses: &mut [A::Pack; CHAINS], group: usize) -> A::Pack {
        let inverse = &mut inverses[group % CHAINS];
        let own = self.packs.product(inverse, &self.before[group]);
        *inverse = self.packs.product(inverse, &self.denominators[group]);
        own
    }

    /// Slope of a tangent, before its division by 2y: `3 x^2 + a`.
    #[inline(always)]
    fn tangent(&self, x: &A::Pack) -> A::Pack {
        let packs = self.packs;
        let square = packs.square(x);
        let mut sum = packs.sum(&packs.sum(&square, &square), &square);
        if let Some(a) = &self.a {
            sum = packs.sum(&sum, a);
        }
        packs.carried(sum)
    }

    /// The third point on the line of slope `lambda` through `(x, y)` and a point whose x is `x_sum` less x; negated.
    #[inline(always)]
    fn third(&self, lambda: &A::Pack, [x, y]: &[A::Pack; 2], x_sum: &A::Pack) -> [A::Pack; 2] {
        let packs = self.packs;
        let x3 = packs.settled(packs.difference(&packs.square(lambda), x_sum, 4));
        let step = packs.carried(packs.difference(x, &x3, 1));
        let rise = packs.product(lambda, &step);
        [x3, packs.settled(packs.difference(&rise, y, 2))]
    }

    /// Doubles every point, or says that a denominator is zero and does nothing.
    #[inline(always)]
    fn double<const CHECKED: bool>(&mut self) -> bool {
        let packs = self.packs;
        let mut products = [packs.unit(); CHAINS];
        for group in 0..self.points.len() {
            let y = self.points[group][1];
            let mut denominator = packs.carried(packs.sum(&y, &y));
            if CHECKED {
                denominator = packs.blend(packs.zeros(&y), &packs.unit(), &denominator);
            }
            self.multiply_up(&mut products, group, denominator);
        }
        let Some(mut inverses) = packs.invert(&products) else {
            return false;
        };
        for group in (0..self.points.len()).rev() {
            let own = self.own_inverse(&mut inverses, group);
            let point = self.points[group];
            let lambda = packs.product(&self.tangent(&point[0]), &own);
            let mut double = self.third(&lambda, &point, &packs.sum(&point[0], &point[0]));
            if CHECKED {
                // Infinity, or a point of order two.
                let mask = packs.zeros(&point[1]);
                self.checked |= mask != 0;
                double = self.infinity_where(mask, &double);
            }
            self.points[group] = double;
        }
        true
    }

    /// Adds an operand to every point, or says that a denominator is zero and does nothing.
    #[inline(always)]
    fn add<const CHECKED: bool>(&mut self, operand: &Operand<'_>) -> bool {
        let packs = self.packs;
        let mut products = [packs.unit(); CHAINS];
        for group in 0..self.points.len() {
            let x = self.operand_x(operand, group);
            let mut denominator = packs.carried(packs.difference(&x, &self.points[group][0], 1));
            if CHECKED {
                let other = self.operand(operand, group);
                let special = self.special(&self.points[group], &other);
                denominator = self.special_denominator(&special, &self.points[group], &denominator);
            }
            self.multiply_up(&mut products, group, denominator);
        }
        let Some(mut inverses) = packs.invert(&products) else {
            return false;
        };
        for group in (0..self.points.len()).rev() {
            let own = self.own_inverse(&mut inverses, group);
            let point = self.points[group];
            let y = self.operand_y(operand, group);
            let rise = packs.carried(packs.difference(&y, &point[1], 1));
            self.points[group] = if CHECKED {
                let other = self.operand(operand, group);
                self.checked_sum(&point, &other, &rise, &own)
            } else {
                let lambda = packs.product(&rise, &own);
                let twice = packs.sum(&point[0], &point[0]);
                self.third(&lambda, &point, &packs.sum(&twice, &self.denominators[group]))
            };
        }
        true
    }

    /// Sums to the table's first slot and differences to the points, of the former less the latter; or says that a denominator is
    /// zero and does nothing. Both share a denominator.
    #[inline(always)]
    fn add_and_subtract<const CHECKED: bool>(&mut self) -> bool {
        let packs = self.packs;
        let mut products = [packs.unit(); CHAINS];
        for group in 0..self.points.len() {
            let (low, high) = (self.table[group], self.points[group]);
            let mut denominator = packs.carried(packs.difference(&high[0], &low[0], 1));
            if CHECKED {
                // Of equal and of opposite points: a doubling is either the sum or the difference.
                let mut special = self.special(&low, &high);
                let same_x = special.doubling | special.cancels;
                special.cancels = same_x & packs.zeros(&low[1]);
                special.doubling = same_x & !special.cancels;
                denominator = self.special_denominator(&special, &low, &denominator);
            }
            self.multiply_up(&mut products, group, denominator);
        }
        let Some(mut inverses) = packs.invert(&products) else {
            return false;
        };
        for group in (0..self.points.len()).rev() {
            let own = self.own_inverse(&mut inverses, group);
            let (low, high) = (self.table[group], self.points[group]);
            let negated = packs.signed(&high[1], u8::MAX);
            let rise = packs.carried(packs.difference(&high[1], &low[1], 1));
            let fall = packs.carried(packs.difference(&negated, &low[1], 1));
            if CHECKED {
                let negated = self.negated_where(u8::MAX, &high);
                self.table[group] = self.checked_sum(&low, &high, &rise, &own);
                self.points[group] = self.checked_sum(&low, &negated, &fall, &own);
            } else {
                let twice = packs.sum(&low[0], &low[0]);
                let x_sum = packs.sum(&twice, &self.denominators[group]);
                self.table[group] = self.third(&packs.product(&rise, &own), &low, &x_sum);
                self.points[group] = self.third(&packs.product(&fall, &own), &low, &x_sum);
            }
        }
        true
    }

    /// Settled, so that zero stays zero.
    #[inline(always)]
    fn negated_where(&self, mask: u8, [x, y]: &[A::Pack; 2]) -> [A::Pack; 2] {
        let packs = self.packs;
        [*x, packs.carried(packs.signed(y, mask & !packs.zeros(y)))]
    }

    #[inline(always)]
    fn special(&self, a: &[A::Pack; 2], b: &[A::Pack; 2]) -> Special {
        let packs = self.packs;
        let first_is_infinity = packs.zeros(&a[0]) & packs.zeros(&a[1]);
        let second_is_infinity = packs.zeros(&b[0]) & packs.zeros(&b[1]) & !first_is_infinity;
        let same_x = packs.equals(&a[0], &b[0]) & !first_is_infinity & !second_is_infinity;
        let doubling = same_x & packs.equals(&a[1], &b[1]) & !packs.zeros(&a[1]);
        Special {
            first_is_infinity,
            second_is_infinity,
            doubling,
            cancels: same_x & !doubling,
        }
    }

    /// 2y for doublings, anything but zero for sums that need none.
    #[inline(always)]
    fn special_denominator(&self, special: &Special, a: &[A::Pack; 2], denominator: &A::Pack) -> A::Pack {
        let packs = self.packs;
        let none = special.first_is_infinity | special.second_is_infinity | special.cancels;
        let doubled = packs.carried(packs.sum(&a[1], &a[1]));
        let denominator = packs.blend(special.doubling, &doubled, denominator);
        packs.blend(none, &packs.unit(), &denominator)
    }

    /// A sum of which nothing is known: `rise` is the difference of both y, `own` the inverse of [`Self::special_denominator`].
    #[inline(always)]
    fn checked_sum(
        &mut self,
        a: &[A::Pack; 2],
        b: &[A::Pack; 2],
        rise: &A::Pack,
        own: &A::Pack,
    ) -> [A::Pack; 2] {
        let packs = self.packs;
        let special = self.special(a, b);
        let numerator = packs.blend(special.doubling, &self.tangent(&a[0]), rise);
        let lambda = packs.product(&numerator, own);
        let sum = self.third(&lambda, a, &packs.sum(&a[0], &b[0]));
        let sum = self.infinity_where(special.cancels, &sum);
        let mut chosen = sum;
        for i in 0..2 {
            chosen[i] = packs.blend(special.first_is_infinity, &b[i], &sum[i]);
            chosen[i] = packs.blend(special.second_is_infinity, &a[i], &chosen[i]);
        }
        self.checked |= packs.zeros(&chosen[0]) & packs.zeros(&chosen[1]) != 0;
        chosen
    }

    #[inline(always)]
    fn infinity_where(&self, mask: u8, point: &[A::Pack; 2]) -> [A::Pack; 2] {
        let packs = self.packs;
        let zero = packs.difference(&point[0], &point[0], 0);
        [
            packs.blend(mask, &zero, &point[0]),
            packs.blend(mask, &zero, &point[1]),
        ]
    }
}
