//! A window's buckets to the window's sum, and the windows to the result.
//!
//! With B_b the bucket of digit b + 1, b = high * 2^h + low: the sum of (b + 1) B_b is the sum over low of
//! (low + 1) S_low plus 2^h times the sum over high of high * T_high, where S are the sums of columns and T
//! of rows of the buckets laid out as a matrix. S and T take two batched affine additions a bucket; only
//! their 2^h + 2^(c-1-h) members are summed with weights one by one. Memory: half a window's buckets, in the
//! worker's work array.

use std::ops::DerefMut;

use ark_ec::short_weierstrass::Projective;
use ark_ff::AdditiveGroup;

use crate::curve::{Curve, Point};
use crate::msm::window::Worker;

/// The sum of (i + 1) * buckets[i]. The number of buckets is a power of two.
pub(super) fn window_sum<P: Curve, B: DerefMut<Target = [Point<P>]>>(
    buckets: &[Point<P>],
    worker: &mut Worker<P, B>,
) -> Projective<P> {
    let bits = buckets.len().trailing_zeros();
    let low_bits = bits / 2;
    let width = 1usize << low_bits;

    // Rows: halves onto each other, until one point a row is left, at its start.
    let high_sum = if low_bits == 0 {
        weighted_sum::<P>(buckets.iter().skip(1))
    } else {
        let stride = width / 2;
        let rows = buckets.len() / width;
        let mut half = stride;
        worker.add_from(buckets, rows * half, |i| {
            let place = i / half * width + i % half;
            [place as u32, (place + half) as u32]
        });
        while half > 1 {
            half /= 2;
            worker.add_in_place(rows * half, |i| {
                let place = i / half * stride + i % half;
                [place as u32, (place + half) as u32]
            });
        }
        weighted_sum::<P>(worker.work.iter().step_by(stride).take(rows).skip(1))
    };

    // Columns: the lower half of the rows onto the upper half, until one row is left.
    let low_sum = if buckets.len() == width {
        weighted_sum::<P>(buckets.iter())
    } else {
        let mut count = buckets.len() / 2;
        worker.add_from(buckets, count, |i| [i as u32, (count + i) as u32]);
        while count > width {
            count /= 2;
            worker.add_in_place(count, |i| [i as u32, (count + i) as u32]);
        }
        weighted_sum::<P>(worker.work[..width].iter())
    };

    (0..low_bits).fold(high_sum, |sum, _| sum.double()) + low_sum
}

/// The sum of (i + 1) * points[i].
fn weighted_sum<'a, P: Curve>(points: impl DoubleEndedIterator<Item = &'a Point<P>>) -> Projective<P> {
    let mut running = Projective::<P>::ZERO;
    let mut sum = Projective::<P>::ZERO;
    for point in points.rev() {
        running += point.to_affine::<P>();
        sum += running;
    }
    sum
}

/// The sum of 2^(window_bits * w) * sums[w].
pub(super) fn join_windows<P: Curve>(sums: &[Projective<P>], window_bits: u32) -> Projective<P> {
    sums.iter().rev().fold(Projective::<P>::ZERO, |total, sum| {
        (0..window_bits).fold(total, |total, _| total.double()) + sum
    })
}
