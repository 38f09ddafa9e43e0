//! The steps that a block of points takes. Memory: none.

use super::{Ladder, Slope};
use crate::backend::{CHAINS_MAX, Lanes, LoopPart};
use crate::curve::{Coordinates, Curve, Point};
use crate::points::digits::Operand;

/// A step of all of a block's points. Each is a function of its own: the passes of the compiler over a
/// function's loops take longer than in proportion to its length.
pub(super) trait Step<P: Curve, const W: usize, L: Lanes<P::BaseField, W>> {
    /// Its result.
    type Output;
    /// Takes the step.
    fn take(self, ladder: &mut Ladder<'_, P, W, L>) -> Self::Output;
}

/// A step, and the block that takes it.
pub(super) struct Taken<'l, 'a, P: Curve, const W: usize, L: Lanes<P::BaseField, W>, S> {
    pub(super) ladder: &'l mut Ladder<'a, P, W, L>,
    pub(super) step: S,
}

impl<P: Curve, const W: usize, L: Lanes<P::BaseField, W>, S: Step<P, W, L>> LoopPart
    for Taken<'_, '_, P, W, L, S>
{
    type Output = S::Output;

    #[inline(always)]
    fn run(self) -> S::Output {
        self.step.take(self.ladder)
    }
}

/// Fills the block with these points.
pub(super) struct Load<'p, P: Curve>(pub(super) &'p [Point<P>]);

impl<P: Curve, const W: usize, L: Lanes<P::BaseField, W>> Step<P, W, L> for Load<'_, P> {
    type Output = ();

    #[inline(always)]
    fn take(self, ladder: &mut Ladder<'_, P, W, L>) {
        let factor = ladder.lanes.splat(&ladder.lanes.shifted(&ladder.shift));
        ladder.state.points.clear();
        for points in self.0.chunks(W) {
            // Lanes beyond the last point hold the first of the group.
            let mut x = [&points[0].x; W];
            let mut y = [&points[0].y; W];
            for (lane, point) in points.iter().enumerate() {
                (x[lane], y[lane]) = (&point.x, &point.y);
            }
            let x = ladder.product(&ladder.lanes.unpack(&ladder.lanes.gather(x)), &factor);
            let y = ladder.product(&ladder.lanes.unpack(&ladder.lanes.gather(y)), &factor);
            let point = [ladder.lanes.canonical(x), ladder.lanes.canonical(y)];
            let point = ladder.keep(&point);
            ladder.state.points.push(point);
        }
    }
}

/// Writes the block's points to these places.
pub(super) struct Store<'p, P: Curve>(pub(super) &'p mut [Point<P>]);

impl<P: Curve, const W: usize, L: Lanes<P::BaseField, W>> Step<P, W, L> for Store<'_, P> {
    type Output = ();

    #[inline(always)]
    fn take(self, ladder: &mut Ladder<'_, P, W, L>) {
        for ([x, y], points) in ladder.state.points.iter().zip(self.0.chunks_mut(W)) {
            let (x, y) = (
                ladder.elements(&ladder.lanes.kept(x)),
                ladder.elements(&ladder.lanes.kept(y)),
            );
            for (lane, point) in points.iter_mut().enumerate() {
                *point = Coordinates {
                    x: x[lane],
                    y: y[lane],
                };
            }
        }
    }
}

/// Doubles every point, or says that a denominator is zero and does nothing.
pub(super) struct Double {
    pub(super) checked: bool,
}

impl<P: Curve, const W: usize, L: Lanes<P::BaseField, W>> Step<P, W, L> for Double {
    type Output = bool;

    #[inline(always)]
    fn take(self, ladder: &mut Ladder<'_, P, W, L>) -> bool {
        let lanes = ladder.lanes;
        let mut products = [lanes.prime().unit(); CHAINS_MAX];
        for group in 0..ladder.state.points.len() {
            let y = lanes.kept(&ladder.state.points[group][1]);
            let mut denominator = lanes.carried(lanes.sum(&y, &y));
            if self.checked {
                lanes.replace_by_unit(&mut denominator, ladder.zeros(&y));
            }
            ladder.multiply_up(&mut products, group, denominator);
        }
        let Some(mut inverses) = ladder.inverses(&products) else {
            return false;
        };
        for group in (0..ladder.state.points.len()).rev() {
            let own = ladder.own_inverse(&mut inverses, group);
            let point = ladder.point(group);
            let lambda = ladder.product(&ladder.tangent(&point[0]), &own);
            let mut double = ladder.third(&lambda, &point, &lanes.sum(&point[0], &point[0]), 3);
            if self.checked {
                // Infinity, or a point of order two.
                let mask = ladder.zeros(&point[1]);
                ladder.checked |= mask != 0;
                double = ladder.infinity_where(mask, &double);
            }
            ladder.state.points[group] = ladder.keep(&double);
        }
        true
    }
}

/// Adds an operand to every point, or says that a denominator is zero and does nothing.
pub(super) struct Add<'o> {
    pub(super) operand: &'o Operand<'o>,
    pub(super) checked: bool,
}

impl<P: Curve, const W: usize, L: Lanes<P::BaseField, W>> Step<P, W, L> for Add<'_> {
    type Output = bool;

    #[inline(always)]
    fn take(self, ladder: &mut Ladder<'_, P, W, L>) -> bool {
        let Self { operand, checked } = self;
        let lanes = ladder.lanes;
        let mut products = [lanes.prime().unit(); CHAINS_MAX];
        for group in 0..ladder.state.points.len() {
            let x = ladder.operand_x(operand, group);
            let point = ladder.point(group);
            let mut denominator = lanes.carried(lanes.difference(&x, &point[0], 1));
            if checked {
                let special = ladder.special(&point, &ladder.operand(operand, group));
                denominator = ladder.special_denominator(&special, &point, &denominator);
            }
            ladder.multiply_up(&mut products, group, denominator);
        }
        let Some(mut inverses) = ladder.inverses(&products) else {
            return false;
        };
        for group in (0..ladder.state.points.len()).rev() {
            let own = ladder.own_inverse(&mut inverses, group);
            let point = ladder.point(group);
            let y = ladder.operand_y(operand, group);
            let slope = Slope {
                rise: lanes.carried(lanes.difference(&y, &point[1], 1)),
                run: ladder.denominator(group),
                run_inverse: own,
            };
            let other = if checked {
                Some(ladder.operand(operand, group))
            } else {
                None
            };
            let sum = ladder.sum(&point, &slope, other);
            ladder.state.points[group] = ladder.keep(&sum);
        }
        true
    }
}

/// Of the table's first slot and the points: sums to the former, differences to the latter; or says that a
/// denominator is zero and does nothing. Both share a denominator.
pub(super) struct AddAndSubtract {
    pub(super) checked: bool,
}

impl<P: Curve, const W: usize, L: Lanes<P::BaseField, W>> Step<P, W, L> for AddAndSubtract {
    type Output = bool;

    #[inline(always)]
    fn take(self, ladder: &mut Ladder<'_, P, W, L>) -> bool {
        let lanes = ladder.lanes;
        let mut products = [lanes.prime().unit(); CHAINS_MAX];
        for group in 0..ladder.state.points.len() {
            let (low, high) = (ladder.kept(&ladder.state.table[group]), ladder.point(group));
            let mut denominator = lanes.carried(lanes.difference(&high[0], &low[0], 1));
            if self.checked {
                // Of equal and of opposite points, a doubling is either the sum or the difference.
                let mut special = ladder.special(&low, &high);
                let same_x = special.doubling | special.cancels;
                special.cancels = same_x & ladder.zeros(&low[1]);
                special.doubling = same_x & !special.cancels;
                denominator = ladder.special_denominator(&special, &low, &denominator);
            }
            ladder.multiply_up(&mut products, group, denominator);
        }
        let Some(mut inverses) = ladder.inverses(&products) else {
            return false;
        };
        for group in (0..ladder.state.points.len()).rev() {
            let own = ladder.own_inverse(&mut inverses, group);
            let (low, high) = (ladder.kept(&ladder.state.table[group]), ladder.point(group));
            let mut results = [low; 2];
            for (result, sign) in results.iter_mut().zip([0, u8::MAX]) {
                let y = lanes.carried(lanes.signed(&high[1], sign));
                let slope = Slope {
                    rise: lanes.carried(lanes.difference(&y, &low[1], 1)),
                    run: ladder.denominator(group),
                    run_inverse: own,
                };
                let other = if self.checked {
                    Some(ladder.negated_where(sign, &high))
                } else {
                    None
                };
                *result = ladder.sum(&low, &slope, other);
            }
            ladder.state.table[group] = ladder.keep(&results[0]);
            ladder.state.points[group] = ladder.keep(&results[1]);
        }
        true
    }
}
