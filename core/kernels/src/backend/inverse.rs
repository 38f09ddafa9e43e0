//! One inversion for many products in lanes (Montgomery's trick). Memory: none.

use super::lanes::{CHAINS_MAX, Lanes, LoopPart};
use crate::field::CoordinateField;

/// For each chain and lane the integer V with V P = `scale` R^2 modulo p, where P is the integer that the
/// chain's product is. With `scale` = 2^(4 h) that is the inverse in the lanes' own Montgomery form. None if
/// a product is zero. A function of its own: it is called once for hundreds of elements, from many loops.
#[inline(always)]
pub(crate) fn invert<F: CoordinateField, const W: usize, L: Lanes<F, W>>(
    lanes: L,
    products: &[L::Value; CHAINS_MAX],
    scale: &F,
) -> Option<[L::Value; CHAINS_MAX]> {
    lanes.outlined(Inversion {
        lanes,
        products,
        scale,
    })
}

struct Inversion<'a, F: CoordinateField, const W: usize, L: Lanes<F, W>> {
    lanes: L,
    products: &'a [L::Value; CHAINS_MAX],
    scale: &'a F,
}

impl<F: CoordinateField, const W: usize, L: Lanes<F, W>> LoopPart for Inversion<'_, F, W, L> {
    type Output = Option<[L::Value; CHAINS_MAX]>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        let Self {
            lanes,
            products,
            scale,
        } = self;
        // Up: across chains, then across lanes, until every lane holds the product of everything.
        let mut before = [lanes.unit(); CHAINS_MAX];
        let mut total = products[0];
        for chain in 1..L::CHAINS {
            before[chain] = total;
            total = lanes.product(&total, &products[chain]);
        }
        let mut neighbours = [total; 3];
        for (bit, neighbour) in neighbours[..W.ilog2() as usize].iter_mut().enumerate() {
            *neighbour = lanes.exchanged(&total, 1 << bit);
            total = lanes.product(&total, neighbour);
        }

        let mut scalars = [F::ZERO; W];
        lanes.store(&lanes.canonical(total), &mut scalars);
        let inverse = scalars[0].inverted()?;
        let mut inverse = lanes.splat(&inverse.times(scale));

        // Down, the same way.
        for neighbour in neighbours[..W.ilog2() as usize].iter().rev() {
            inverse = lanes.product(&inverse, neighbour);
        }
        let mut inverses = [inverse; CHAINS_MAX];
        for chain in (1..L::CHAINS).rev() {
            inverses[chain] = lanes.product(&inverse, &before[chain]);
            inverse = lanes.product(&inverse, &products[chain]);
        }
        inverses[0] = inverse;
        Some(inverses)
    }
}
