//! Field elements in packs: one at a time, or eight in lanes. [`super::ladder`] is written once, over [`Packs`].
//!
//! A pack's elements are in a Montgomery form of the implementation's own (R = 2^256 portable, 2^260 in lanes). Bounds are those of
//! [`crate::kernels::lanes::field`], in multiples of p: `product` and `square` take carried values whose product is at most 32,
//! and give less than 3; `sum`, `difference` and `signed` give loose values; `carried` and `settled` end that. The portable
//! implementation keeps every value below p, so that these two have nothing to do. Memory: none.

#[cfg(target_arch = "x86_64")]
pub(super) use lanes::InLanes;

use std::marker::PhantomData;

use crate::kernels::curve::Coordinates;
use crate::kernels::field::KernelField;

/// Independent chains of products: one alone would be bound by the multiplier's latency.
pub(super) const CHAINS: usize = 2;

/// The arithmetic of a field on packs of [`Self::WIDTH`] elements. Bit i of a mask stands for element i.
pub(super) trait Packs<F: KernelField>: Copy {
    /// Elements in a pack, at most 8.
    const WIDTH: usize;
    type Pack: Copy;

    /// x and y of [`Self::WIDTH`] points. Where there are fewer, the first comes again.
    fn load(self, points: &[Coordinates<F>]) -> [Self::Pack; 2];
    /// The reverse, of settled values: as many points as there is room for.
    fn store(self, point: &[Self::Pack; 2], to: &mut [Coordinates<F>]);
    /// The same element everywhere, settled.
    fn splat(self, value: &F) -> Self::Pack;
    /// Any settled value that is not zero.
    fn unit(self) -> Self::Pack;
    fn product(self, a: &Self::Pack, b: &Self::Pack) -> Self::Pack;
    fn square(self, a: &Self::Pack) -> Self::Pack;
    fn sum(self, a: &Self::Pack, b: &Self::Pack) -> Self::Pack;
    /// `a - b + multiple * p`.
    fn difference(self, a: &Self::Pack, b: &Self::Pack, multiple: usize) -> Self::Pack;
    /// `-a` where `mask` says so, else `a`.
    fn signed(self, a: &Self::Pack, mask: u8) -> Self::Pack;
    /// A loose value that is not negative, as the multiplier takes it.
    fn carried(self, a: Self::Pack) -> Self::Pack;
    /// A loose value from p to 7p, below p.
    fn settled(self, a: Self::Pack) -> Self::Pack;
    /// `a` where `mask` says so, else `b`.
    fn blend(self, mask: u8, a: &Self::Pack, b: &Self::Pack) -> Self::Pack;
    /// Where a settled value is zero.
    fn zeros(self, a: &Self::Pack) -> u8;
    /// Where settled values are equal.
    fn equals(self, a: &Self::Pack, b: &Self::Pack) -> u8;
    /// The inverses of each chain's products, with one inversion for all; none if one of them is zero. `invert(P)` times a part
    /// of the product P is the inverse of the rest, in the form that `product` gives and takes.
    fn invert(self, products: &[Self::Pack; CHAINS]) -> Option<[Self::Pack; CHAINS]>;
}

/// One element at a time.
pub(super) struct Portable<F>(PhantomData<F>);

impl<F> Portable<F> {
    pub(super) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<F> Clone for Portable<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Portable<F> {}

impl<F: KernelField> Packs<F> for Portable<F> {
    const WIDTH: usize = 1;
    type Pack = F;

    #[inline(always)]
    fn load(self, points: &[Coordinates<F>]) -> [F; 2] {
        [points[0].x, points[0].y]
    }

    #[inline(always)]
    fn store(self, point: &[F; 2], to: &mut [Coordinates<F>]) {
        let [x, y] = *point;
        to[0] = Coordinates { x, y };
    }

    #[inline(always)]
    fn splat(self, value: &F) -> F {
        *value
    }

    #[inline(always)]
    fn unit(self) -> F {
        F::ONE
    }

    #[inline(always)]
    fn product(self, a: &F, b: &F) -> F {
        a.times(b)
    }

    #[inline(always)]
    fn square(self, a: &F) -> F {
        a.squared()
    }

    #[inline(always)]
    fn sum(self, a: &F, b: &F) -> F {
        a.plus(b)
    }

    #[inline(always)]
    fn difference(self, a: &F, b: &F, _: usize) -> F {
        a.minus(b)
    }

    #[inline(always)]
    fn signed(self, a: &F, mask: u8) -> F {
        a.signed(mask & 1 == 1)
    }

    #[inline(always)]
    fn carried(self, a: F) -> F {
        a
    }

    #[inline(always)]
    fn settled(self, a: F) -> F {
        a
    }

    #[inline(always)]
    fn blend(self, mask: u8, a: &F, b: &F) -> F {
        if mask & 1 == 1 { *a } else { *b }
    }

    #[inline(always)]
    fn zeros(self, a: &F) -> u8 {
        u8::from(a.is_zero())
    }

    #[inline(always)]
    fn equals(self, a: &F, b: &F) -> u8 {
        u8::from(a == b)
    }

    #[inline(always)]
    fn invert(self, products: &[F; CHAINS]) -> Option<[F; CHAINS]> {
        invert_all(products, &F::ONE)
    }
}

/// `scale / value` for each value; none if one is zero.
#[inline(always)]
fn invert_all<F: KernelField, const N: usize>(values: &[F; N], scale: &F) -> Option<[F; N]> {
    let mut inverses = [F::ONE; N];
    let mut product = F::ONE;
    for i in 0..N {
        inverses[i] = product;
        product = product.times(&values[i]);
    }
    let mut inverse = product.inverted()?.times(scale);
    for i in (0..N).rev() {
        inverses[i] = inverses[i].times(&inverse);
        inverse = inverse.times(&values[i]);
    }
    Some(inverses)
}

#[cfg(target_arch = "x86_64")]
mod lanes {
    use super::{CHAINS, Packs, invert_all};
    use crate::kernels::curve::Coordinates;
    use crate::kernels::field::KernelField;
    use crate::kernels::lanes::Ifma;
    use crate::kernels::lanes::field::{Eight, Lanes};

    const LANES: usize = 8;

    /// Eight elements in lanes, R = 2^260.
    pub(in super::super) struct InLanes<F>(Lanes<F>);

    impl<F> Clone for InLanes<F> {
        fn clone(&self) -> Self {
            *self
        }
    }

    impl<F> Copy for InLanes<F> {}

    impl<F: KernelField> InLanes<F> {
        /// The arithmetic, if the field is of the right size.
        pub(in super::super) fn new(ifma: Ifma) -> Option<Self> {
            Lanes::new(ifma).map(Self)
        }

        /// Eight coordinates, `a * 2^256`: times 2^264 over 2^260.
        #[inline(always)]
        fn taken(self, from: [&F; LANES]) -> Eight {
            let lanes = self.0;
            let factor = lanes.splat(&F::from(256u64));
            let product = lanes.product(&lanes.unpack(&lanes.gather(from)), &factor);
            lanes.settled(lanes.shifted(&product, 1))
        }

        /// The reverse: times 2^256 over 2^260.
        #[inline(always)]
        fn given(self, values: &Eight) -> [F; LANES] {
            let lanes = self.0;
            let product = lanes.product(values, &lanes.splat(&F::ONE));
            let mut elements = [F::ZERO; LANES];
            lanes.store_run(&lanes.settled(lanes.shifted(&product, 1)), &mut elements);
            elements
        }
    }

    impl<F: KernelField> Packs<F> for InLanes<F> {
        const WIDTH: usize = LANES;
        type Pack = Eight;

        #[inline(always)]
        fn load(self, points: &[Coordinates<F>]) -> [Eight; 2] {
            let mut all = [&points[0]; LANES];
            for (place, point) in all.iter_mut().zip(points) {
                *place = point;
            }
            let [a, b, c, d, e, f, g, h] = all;
            [
                self.taken([&a.x, &b.x, &c.x, &d.x, &e.x, &f.x, &g.x, &h.x]),
                self.taken([&a.y, &b.y, &c.y, &d.y, &e.y, &f.y, &g.y, &h.y]),
            ]
        }

        #[inline(always)]
        fn store(self, point: &[Eight; 2], to: &mut [Coordinates<F>]) {
            let (x, y) = (self.given(&point[0]), self.given(&point[1]));
            for (lane, point) in to.iter_mut().enumerate().take(LANES) {
                *point = Coordinates {
                    x: x[lane],
                    y: y[lane],
                };
            }
        }

        #[inline(always)]
        fn splat(self, value: &F) -> Eight {
            // 2^260 = 16 * 2^256.
            self.0.splat(&value.times(&F::from(16u64)))
        }

        #[inline(always)]
        fn unit(self) -> Eight {
            self.0.unit()
        }

        #[inline(always)]
        fn product(self, a: &Eight, b: &Eight) -> Eight {
            self.0.product(a, b)
        }

        #[inline(always)]
        fn square(self, a: &Eight) -> Eight {
            self.0.square(a)
        }

        #[inline(always)]
        fn sum(self, a: &Eight, b: &Eight) -> Eight {
            self.0.sum(a, b)
        }

        #[inline(always)]
        fn difference(self, a: &Eight, b: &Eight, multiple: usize) -> Eight {
            self.0.difference(a, b, multiple)
        }

        #[inline(always)]
        fn signed(self, a: &Eight, mask: u8) -> Eight {
            self.0.signed(a, mask)
        }

        #[inline(always)]
        fn carried(self, a: Eight) -> Eight {
            self.0.carried(a)
        }

        #[inline(always)]
        fn settled(self, a: Eight) -> Eight {
            self.0.settled(a)
        }

        #[inline(always)]
        fn blend(self, mask: u8, a: &Eight, b: &Eight) -> Eight {
            self.0.blend(mask, a, b)
        }

        #[inline(always)]
        fn zeros(self, a: &Eight) -> u8 {
            self.0.zeros(&self.0.pack(a))
        }

        #[inline(always)]
        fn equals(self, a: &Eight, b: &Eight) -> u8 {
            self.0.equals(&self.0.pack(a), &self.0.pack(b))
        }

        #[inline(always)]
        fn invert(self, products: &[Eight; CHAINS]) -> Option<[Eight; CHAINS]> {
            let lanes = self.0;
            // Across chains, then across lanes.
            let mut before = [lanes.unit(); CHAINS];
            let mut total = products[0];
            for chain in 1..CHAINS {
                before[chain] = total;
                total = lanes.product(&total, &products[chain]);
            }
            let mut elements = [F::ZERO; LANES];
            lanes.store_run(&lanes.settled(lanes.shifted(&total, 1)), &mut elements);
            // Of an integer P, taken for the native P / 2^256, the native inverse holds 2^512 / P. The inverse V in lanes has
            // V P / 2^260 = 2^260, so it is 256 times that.
            let inverses = invert_all(&elements, &F::from(256u64))?;
            let mut inverse = lanes.unpack(&lanes.gather_run(&inverses));
            let mut all = [inverse; CHAINS];
            for chain in (1..CHAINS).rev() {
                all[chain] = lanes.product(&inverse, &before[chain]);
                inverse = lanes.product(&inverse, &products[chain]);
            }
            all[0] = inverse;
            Some(all)
        }
    }
}
