//! Double-and-add on a block of affine points, all in step, each step with one inversion for the whole block.
//!
//! A doubling or an addition is `lambda = numerator / denominator`, `x3 = lambda^2 - x1 - x2`,
//! `y3 = lambda (x1 - x3) - y1`. One loop over the block multiplies the denominators up, their product is
//! inverted, a second loop finishes the steps (Montgomery's trick): 7 multiplications for a doubling, 6 for
//! an addition, and a share of an inversion. In an extension the prime field inverts norms of denominators.
//!
//! Special cases. The fast form of a step looks for none: infinity is kept out of it, and a denominator of
//! zero (equal x, or y = 0) shows as a product of zero, before anything was written. Then the step is done
//! again in its checked form, which finds doublings, cancellations and infinity, point by point, by masks.
//! Once a point is infinity, every further step on the block is checked.
//!
//! Values are in the Montgomery form of the lanes ([`crate::backend`]): native ones are multiplied by 2^s on
//! the way in, and divided by it on the way out.
//!
//! Bounds, in multiples of p <= R / 32, of elements or components. Kept coordinates are below 1. Denominators
//! are at most 2, norms, prefix products, inverses below 3. Numerators: of additions at most 2; of doublings
//! below 3 * 2.1 + 1, in an extension 3 + 1. lambda < 2.6, in an extension 3; lambda^2 < 2.3, or 4; less x1 +
//! x2, plus 3: from 1 to 7. x1 - x3 + 1 < 2; its product with lambda below 2.5; less y1 and plus 2: from 1 to
//! 4.5.
//!
//! Memory: [`bytes`].

mod steps;

use std::any::Any;
use std::marker::PhantomData;

use ark_ff::{AdditiveGroup, Field, Zero};

use self::steps::{Add, AddAndSubtract, Double, Load, Step, Store, Taken};
use super::digits::{ENTRIES, Op, Operand, Slots};
use crate::backend::{Backend, CHAINS_MAX, Kernel, Lanes, LoopPart, PrimeKept, PrimeValue, invert};
use crate::curve::{Curve, Point};
use crate::field::CoordinateField;

/// Bytes of the state of a block with tables of so many slots, on any backend.
pub(super) fn bytes<P: Curve>(block: usize, slots: usize) -> u64 {
    let value = Backend::lane_bytes_max::<P::BaseField>();
    let prime = Backend::lane_bytes_max::<<P::BaseField as CoordinateField>::Prime>();
    (block * ((3 + 2 * slots) * value + prime)) as u64
}

/// A block's state: coordinates in groups of as many points as there are lanes, as they wait in memory.
struct State<K, N> {
    points: Vec<[K; 2]>,
    denominators: Vec<K>,
    /// Product of the norms of the chain's denominators before this one.
    before: Vec<N>,
    /// Slot after slot, a point for each of the block in each.
    table: Vec<[K; 2]>,
}

/// Makes the state of blocks. Which type it is is the backend's.
pub struct NewState<P> {
    /// Points of a block at most.
    pub(super) block: usize,
    /// Slots of each point's table.
    pub(super) slots: usize,
    pub(super) curve: PhantomData<P>,
}

impl<P: Curve> Kernel<P::BaseField> for NewState<P> {
    type Output = Box<dyn Any + Send>;

    #[inline(always)]
    fn run<const W: usize, L: Lanes<P::BaseField, W>>(self, lanes: L) -> Self::Output {
        let (groups, unit) = (self.block.div_ceil(W), lanes.keep(&lanes.unit()));
        let prime = lanes.prime();
        Box::new(State {
            points: Vec::with_capacity(groups),
            denominators: vec![unit; groups],
            before: vec![prime.keep(&prime.unit()); groups],
            table: vec![[unit; 2]; self.slots * groups],
        })
    }
}

/// Takes the steps of a program with every point of a block.
pub struct Walk<'a, P: Curve> {
    /// Of [`NewState`].
    pub(super) state: &'a mut (dyn Any + Send),
    pub(super) points: &'a mut [Point<P>],
    /// As many points each, for [`Op::Read`].
    pub(super) inputs: &'a [&'a [Point<P>]],
    /// Some point is infinity: then all steps look for it. Results may be infinity in any case.
    pub(super) has_infinity: bool,
    pub(super) program: &'a [Op<'a>],
    /// What the endomorphism multiplies x by.
    pub(super) beta: &'a P::BaseField,
}

impl<P: Curve> Kernel<P::BaseField> for Walk<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<P::BaseField, W>>(self, lanes: L) {
        let mut ladder = Ladder::<P, W, L>::new(lanes, self.state, self.beta);
        ladder.checked = self.has_infinity;
        ladder.walk(self.points, self.inputs, self.program);
    }
}

/// `(low, high) <- (low + high, low - high)`.
pub struct SumsAndDifferences<'a, P: Curve> {
    /// Of [`NewState`].
    pub(super) state: &'a mut (dyn Any + Send),
    pub(super) low: &'a mut [Point<P>],
    pub(super) high: &'a mut [Point<P>],
}

impl<P: Curve> Kernel<P::BaseField> for SumsAndDifferences<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<P::BaseField, W>>(self, lanes: L) {
        Ladder::<P, W, L>::new(lanes, self.state, &P::BaseField::ONE)
            .sums_and_differences(self.low, self.high);
    }
}

/// A product that is a function of its own.
struct Product<'a, F: CoordinateField, const W: usize, L: Lanes<F, W>> {
    lanes: L,
    a: &'a L::Value,
    b: &'a L::Value,
}

impl<F: CoordinateField, const W: usize, L: Lanes<F, W>> LoopPart for Product<'_, F, W, L> {
    type Output = L::Value;

    #[inline(always)]
    fn run(self) -> L::Value {
        self.lanes.product(self.a, self.b)
    }
}

/// The line through two points.
struct Slope<V> {
    /// Difference of both y.
    rise: V,
    /// Difference of both x, plus p: the denominator.
    run: V,
    run_inverse: V,
}

/// A block under way.
struct Ladder<'a, P: Curve, const W: usize, L: Lanes<P::BaseField, W>> {
    lanes: L,
    state: &'a mut State<L::Kept, PrimeKept<P::BaseField, W, L>>,
    /// The curve's a, unless it is zero.
    a: Option<L::Value>,
    beta: L::Value,
    /// What the native form of an element is multiplied by twice to have it in the lanes' own.
    shift: P::BaseField,
    inverse_scale: <P::BaseField as CoordinateField>::Prime,
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

impl<'a, P: Curve, const W: usize, L: Lanes<P::BaseField, W>> Ladder<'a, P, W, L> {
    #[inline(always)]
    fn new(lanes: L, state: &'a mut (dyn Any + Send), beta: &P::BaseField) -> Self {
        let Some(state) = state.downcast_mut() else {
            unreachable!("the state is that of this backend");
        };
        let shift = lanes.shifted(&P::BaseField::ONE);
        let prime = lanes.prime();
        Self {
            lanes,
            state,
            a: (!P::COEFF_A.is_zero()).then(|| lanes.splat(&lanes.shifted(&P::COEFF_A))),
            beta: lanes.splat(&lanes.shifted(beta)),
            shift,
            inverse_scale: prime.shifted(&prime.shifted(&<P::BaseField as CoordinateField>::Prime::ONE)),
            checked: false,
        }
    }

    #[inline(always)]
    fn walk(&mut self, points: &mut [Point<P>], inputs: &[&[Point<P>]], program: &[Op<'_>]) {
        self.take(Load(points));
        for op in program {
            match op {
                Op::Read(input) => self.take(Load(inputs[*input])),
                Op::Save(slot) => {
                    let len = self.state.points.len();
                    let first = usize::from(*slot) * len;
                    self.state.table[first..first + len].copy_from_slice(&self.state.points);
                }
                Op::Load(operand) => {
                    for group in 0..self.state.points.len() {
                        let point = self.operand(operand, group);
                        self.state.points[group] = self.keep(&point);
                    }
                }
                Op::Double => self.take_in_a_form(self.checked, |checked| Double { checked }),
                Op::Add(operand) => {
                    let checked = self.checked || operand.may_be_absent;
                    self.take_in_a_form(checked, |checked| Add { operand, checked });
                }
            }
        }
        self.take(Store(points));
    }

    #[inline(always)]
    fn sums_and_differences(&mut self, low: &mut [Point<P>], high: &mut [Point<P>]) {
        self.take(Load(low));
        let groups = self.state.points.len();
        self.state.table[..groups].copy_from_slice(&self.state.points);
        self.take(Load(high));
        self.checked = low.iter().chain(high.iter()).any(Point::<P>::is_infinity);
        self.take_in_a_form(self.checked, |checked| AddAndSubtract { checked });
        self.take(Store(high));
        self.state.points.copy_from_slice(&self.state.table[..groups]);
        self.take(Store(low));
    }

    /// Takes a step, as a function of its own.
    #[inline(always)]
    fn take<S: Step<P, W, L>>(&mut self, step: S) -> S::Output {
        let lanes = self.lanes;
        lanes.outlined(Taken { ladder: self, step })
    }

    /// Takes a step in its fast form, or in its checked one where that is asked for or the fast form gives up.
    #[inline(always)]
    fn take_in_a_form<S: Step<P, W, L, Output = bool>>(&mut self, checked: bool, step: impl Fn(bool) -> S) {
        if checked || !self.take(step(false)) {
            self.take(step(true));
        }
    }

    /// A product, which on plain words is a function of its own: inlined in all its places it would be most
    /// of this kernel.
    #[inline(always)]
    fn product(&self, a: &L::Value, b: &L::Value) -> L::Value {
        let lanes = self.lanes;
        match W {
            1 => lanes.outlined(Product::<P::BaseField, W, L> { lanes, a, b }),
            _ => lanes.product(a, b),
        }
    }

    #[inline(always)]
    fn square(&self, a: &L::Value) -> L::Value {
        match W {
            1 => self.product(a, a),
            _ => self.lanes.square(a),
        }
    }

    #[inline(always)]
    fn keep(&self, [x, y]: &[L::Value; 2]) -> [L::Kept; 2] {
        [self.lanes.keep(x), self.lanes.keep(y)]
    }

    #[inline(always)]
    fn kept(&self, [x, y]: &[L::Kept; 2]) -> [L::Value; 2] {
        [self.lanes.kept(x), self.lanes.kept(y)]
    }

    /// A group's point.
    #[inline(always)]
    fn point(&self, group: usize) -> [L::Value; 2] {
        self.kept(&self.state.points[group])
    }

    /// A group's denominator.
    #[inline(always)]
    fn denominator(&self, group: usize) -> L::Value {
        self.lanes.kept(&self.state.denominators[group])
    }

    /// Native elements.
    #[inline(always)]
    fn elements(&self, value: &L::Value) -> [P::BaseField; W] {
        let factor = self.lanes.splat(&P::BaseField::ONE);
        let mut elements = [P::BaseField::ZERO; W];
        self.lanes
            .store(&self.lanes.canonical(self.product(value, &factor)), &mut elements);
        elements
    }

    /// A coordinate of a group's point in a slot.
    #[inline(always)]
    fn entry(&self, slot: u8, group: usize, coordinate: usize) -> L::Value {
        let point = &self.state.table[usize::from(slot) * self.state.points.len() + group];
        self.lanes.kept(&point[coordinate])
    }

    #[inline(always)]
    fn zero(&self) -> L::Value {
        self.lanes.splat(&P::BaseField::ZERO)
    }

    /// A coordinate (0 for x, 1 for y) of a group's operands, and the mask of those that are negated.
    #[inline(always)]
    fn selected(&self, operand: &Operand<'_>, group: usize, coordinate: usize) -> (L::Value, u8) {
        match operand.slots {
            Slots::One { slot, negative } => (
                self.entry(slot, group, coordinate),
                if negative { u8::MAX } else { 0 },
            ),
            Slots::Each(digits) => {
                let first = group * W;
                let digits = &digits[first..(first + W).min(digits.len())];
                let (mut negative, mut uniform) = (0u8, true);
                for (i, digit) in digits.iter().enumerate() {
                    negative |= u8::from(*digit < 0) << i;
                    uniform &= digit.unsigned_abs() == digits[0].unsigned_abs();
                }
                if uniform && digits[0] != 0 {
                    let slot = digits[0].unsigned_abs() / 2;
                    return (self.entry(slot, group, coordinate), negative);
                }
                let mut masks = [0u8; ENTRIES];
                for (i, digit) in digits.iter().enumerate() {
                    if *digit != 0 {
                        masks[usize::from(digit.unsigned_abs() / 2)] |= 1 << i;
                    }
                }
                // Absent operands are infinity: zeros.
                let mut value = self.zero();
                for (slot, mask) in (0..).zip(masks) {
                    value = self
                        .lanes
                        .blend(mask, &self.entry(slot, group, coordinate), &value);
                }
                (value, negative)
            }
        }
    }

    /// Canonical.
    #[inline(always)]
    fn operand_x(&self, operand: &Operand<'_>, group: usize) -> L::Value {
        let (x, _) = self.selected(operand, group, 0);
        if operand.endomorphic {
            self.lanes.canonical(self.product(&x, &self.beta))
        } else {
            x
        }
    }

    /// Loose, at most p.
    #[inline(always)]
    fn operand_y(&self, operand: &Operand<'_>, group: usize) -> L::Value {
        let (y, negative) = self.selected(operand, group, 1);
        self.lanes.signed(&y, negative)
    }

    /// Both coordinates, canonical.
    #[inline(always)]
    fn operand(&self, operand: &Operand<'_>, group: usize) -> [L::Value; 2] {
        let (y, negative) = self.selected(operand, group, 1);
        let point = [self.operand_x(operand, group), y];
        self.negated_where(negative, &point)
    }

    /// Denominator `group` into its chain.
    #[inline(always)]
    fn multiply_up(
        &mut self,
        products: &mut [PrimeValue<P::BaseField, W, L>; CHAINS_MAX],
        group: usize,
        denominator: L::Value,
    ) {
        let product = &mut products[group % L::CHAINS];
        self.state.before[group] = self.lanes.prime().keep(product);
        *product = self
            .lanes
            .prime()
            .product(product, &self.lanes.norm(&denominator));
        self.state.denominators[group] = self.lanes.keep(&denominator);
    }

    #[inline(always)]
    fn inverses(
        &self,
        products: &[PrimeValue<P::BaseField, W, L>; CHAINS_MAX],
    ) -> Option<[PrimeValue<P::BaseField, W, L>; CHAINS_MAX]> {
        invert(self.lanes.prime(), products, &self.inverse_scale)
    }

    /// The inverse of denominator `group`, which leaves its chain.
    #[inline(always)]
    fn own_inverse(
        &self,
        inverses: &mut [PrimeValue<P::BaseField, W, L>; CHAINS_MAX],
        group: usize,
    ) -> L::Value {
        let prime = self.lanes.prime();
        let inverse = &mut inverses[group % L::CHAINS];
        let denominator = self.denominator(group);
        let own = prime.product(inverse, &prime.kept(&self.state.before[group]));
        *inverse = prime.product(inverse, &self.lanes.norm(&denominator));
        self.lanes.over_norm(&denominator, &own)
    }

    /// Slope of a tangent, before its division by 2y: `3 x^2 + a`.
    #[inline(always)]
    fn tangent(&self, x: &L::Value) -> L::Value {
        let lanes = self.lanes;
        let mut square = self.square(x);
        if L::EXTENSION {
            square = lanes.canonical(square);
        }
        let mut sum = lanes.sum(&lanes.sum(&square, &square), &square);
        if let Some(a) = &self.a {
            sum = lanes.sum(&sum, a);
        }
        lanes.carried(sum)
    }

    /// The sum of `(x, y)` and a point on the line of slope `lambda` through it, for both x added up, less
    /// `multiple - 3` times p.
    #[inline(always)]
    fn third(
        &self,
        lambda: &L::Value,
        [x, y]: &[L::Value; 2],
        x_sum: &L::Value,
        multiple: usize,
    ) -> [L::Value; 2] {
        let lanes = self.lanes;
        let x3 = lanes.canonical(lanes.difference(&self.square(lambda), x_sum, multiple));
        let step = lanes.carried(lanes.difference(x, &x3, 1));
        let rise = self.product(lambda, &step);
        [x3, lanes.canonical(lanes.difference(&rise, y, 2))]
    }

    /// Where a canonical value is zero.
    #[inline(always)]
    fn zeros(&self, value: &L::Value) -> u8 {
        self.lanes.same(value, &self.zero())
    }

    /// Canonical, so that zero stays zero.
    #[inline(always)]
    fn negated_where(&self, mask: u8, [x, y]: &[L::Value; 2]) -> [L::Value; 2] {
        let negated = self.lanes.carried(self.lanes.signed(y, mask));
        // p becomes zero.
        [*x, self.lanes.canonical(negated)]
    }

    #[inline(always)]
    fn special(&self, a: &[L::Value; 2], b: &[L::Value; 2]) -> Special {
        let first_is_infinity = self.zeros(&a[0]) & self.zeros(&a[1]);
        let second_is_infinity = self.zeros(&b[0]) & self.zeros(&b[1]) & !first_is_infinity;
        let same_x = self.lanes.same(&a[0], &b[0]) & !first_is_infinity & !second_is_infinity;
        let doubling = same_x & self.lanes.same(&a[1], &b[1]) & !self.zeros(&a[1]);
        Special {
            first_is_infinity,
            second_is_infinity,
            doubling,
            cancels: same_x & !doubling,
        }
    }

    /// 2y for doublings, anything but zero for sums that need none.
    #[inline(always)]
    fn special_denominator(&self, special: &Special, a: &[L::Value; 2], denominator: &L::Value) -> L::Value {
        let lanes = self.lanes;
        let doubled = lanes.carried(lanes.sum(&a[1], &a[1]));
        let mut denominator = lanes.blend(special.doubling, &doubled, denominator);
        let none = special.first_is_infinity | special.second_is_infinity | special.cancels;
        lanes.replace_by_unit(&mut denominator, none);
        denominator
    }

    /// The sum of `a` and the other point of the slope, which is `other` if nothing is known of both: then
    /// the slope's run is [`Self::special_denominator`].
    #[inline(always)]
    fn sum(
        &mut self,
        a: &[L::Value; 2],
        slope: &Slope<L::Value>,
        other: Option<[L::Value; 2]>,
    ) -> [L::Value; 2] {
        let lanes = self.lanes;
        let (mut rise, mut run) = (slope.rise, slope.run);
        // Not by closures: they would be compiled without the lanes' instructions.
        let mut checked = None;
        if let Some(b) = other {
            let special = self.special(a, &b);
            rise = lanes.blend(special.doubling, &self.tangent(&a[0]), &rise);
            // As if it were the difference of both x, plus p.
            let none = lanes.carried(lanes.difference(&a[0], &a[0], 1));
            run = lanes.blend(special.doubling, &none, &run);
            checked = Some((special, b));
        }
        let lambda = self.product(&rise, &slope.run_inverse);
        let x_sum = lanes.sum(&lanes.sum(&a[0], &a[0]), &run);
        let mut sum = self.third(&lambda, a, &x_sum, 4);
        if let Some((special, b)) = &checked {
            sum = self.infinity_where(special.cancels, &sum);
            for i in 0..2 {
                sum[i] = lanes.blend(special.first_is_infinity, &b[i], &sum[i]);
                sum[i] = lanes.blend(special.second_is_infinity, &a[i], &sum[i]);
            }
            self.checked |= self.zeros(&sum[0]) & self.zeros(&sum[1]) != 0;
        }
        sum
    }

    #[inline(always)]
    fn infinity_where(&self, mask: u8, point: &[L::Value; 2]) -> [L::Value; 2] {
        let zero = self.zero();
        [
            self.lanes.blend(mask, &zero, &point[0]),
            self.lanes.blend(mask, &zero, &point[1]),
        ]
    }
}
