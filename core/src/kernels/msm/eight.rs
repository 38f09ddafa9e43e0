//! The batch's additions in eight lanes.
//!
//! Additions are taken in groups of eight, operands transposed into lanes ([`crate::kernels::lanes::field`]). Every lane of
//! every one of the [`CHAINS`] interleaved chains of groups multiplies its denominators up; the chains' products are multiplied
//! together, then the lanes', and one number is inverted by scalar code.
//!
//! Factors. Coordinates are native, x 2^256, and stay so; a product in lanes of A and B is A B 2^-260. In these formulas, large
//! letters are the integers that lanes hold, small ones what they stand for:
//!
//! - Read as if it had R = 2^260, a native coordinate is x' = x / 16. With mu = lambda / 4, lambda = (y2 - y1) / (x2 - x1):
//!   x3' = lambda^2 / 16 - x1' - x2' = mu^2 - x1' - x2' and y3' = lambda (x1' - x3') - y1' = mu 4 (x1' - x3') - y1'. So the
//!   one price of native data is a shift by two bits.
//! - MU = (lambda / 4) 2^260 = lambda 2^258. As MU = N I 2^-260 with the numerator N = n 2^256, I = 2^262 / d = 2^518 / D.
//! - Prefix products P_k = P_(k-1) D_k 2^-260. With V_k = 2^518 / P_k: V_k P_(k-1) 2^-260 = 2^518 / D_k = I, and
//!   V_k D_k 2^-260 = 2^518 / P_(k-1) = V_(k-1). So whatever is multiplied up, in one chain, across chains or across lanes, is
//!   inverted down by products alone, once the last V is there. P_0 may be anything but zero: it is the integer 1.
//! - The last P is taken for a native element P / 2^256; its scalar inverse holds 2^512 / P, and 64 times that is V.
//!
//! Bounds, in multiples of p (products as in `lanes::field`; coordinates below 1, or 1 for a negated 0): D, N <= 2; P, V, I <
//! 3; MU < 2.2; MU^2 < 2.2; x3 = MU^2 - X1 - X2 + 3 in 1 .. 5.2; 4 (X1 - X3 + 1) < 8, its product with MU < 2.6; y3 = that -
//! Y1 + 2 in 1 .. 4.6. Memory: [`EightBatch::ADDITION_BYTES`] an addition.

#[cfg(target_arch = "x86_64")]
pub(super) use lanes::EightBatch;
#[cfg(not(target_arch = "x86_64"))]
pub(super) use none::EightBatch;

#[cfg(target_arch = "x86_64")]
mod lanes {
    use ark_ff::Zero;

    use super::super::batch::{Addition, CAPACITY, Places, Ready, special};
    use crate::kernels::curve::{Coordinates, Curve};
    use crate::kernels::field::KernelField;
    use crate::kernels::lanes::field::{Eight, Lanes};
    use crate::kernels::lanes::{Ifma, Kernel};

    const LANES: usize = 8;

    /// Chains of products, so that one's latency is hidden behind the others.
    const CHAINS: usize = 2;

    /// Additions whose operands are under way from memory.
    const AHEAD: usize = 32;

    /// Eight additions.
    #[derive(Clone, Copy)]
    struct Group {
        numerator: Eight,
        denominator: Eight,
        /// Product of the chain's denominators before this one.
        before: Eight,
        x: Eight,
        y: Eight,
        x_sum: Eight,
        /// The lanes that have a sum to write.
        alive: u8,
    }

    /// What lies between reading a batch's operands and writing its sums.
    pub(in super::super) struct EightBatch<P: Curve> {
        ifma: Ifma,
        lanes: Lanes<P::BaseField>,
        groups: Vec<Group>,
        products: [Eight; CHAINS],
    }

    impl<P: Curve> EightBatch<P> {
        pub(in super::super) const ADDITION_BYTES: usize = size_of::<Group>() / LANES;

        /// Room for a batch, if the machine and the field have lanes.
        pub(in super::super) fn new() -> Option<Self> {
            let ifma = Ifma::detect()?;
            let lanes = Lanes::new(ifma)?;
            Some(Self {
                ifma,
                lanes,
                groups: Vec::with_capacity(CAPACITY.div_ceil(LANES)),
                products: [lanes.unit(); CHAINS],
            })
        }

        /// Reads the operands of all additions; what is a sum already goes to `ready`.
        #[inline(always)]
        pub(in super::super) fn read(
            &mut self,
            queue: &[Addition],
            places: &impl Places<P>,
            ready: &mut Vec<Ready<P::BaseField>>,
        ) {
            let ifma = self.ifma;
            ifma.run(Read {
                batch: self,
                queue,
                places,
                ready,
            });
        }

        /// Writes the other sums.
        #[inline(always)]
        pub(in super::super) fn write(&mut self, queue: &[Addition], places: &mut impl Places<P>) {
            let ifma = self.ifma;
            ifma.run(Write {
                batch: self,
                queue,
                places,
            });
        }
    }

    struct Read<'a, P: Curve, S> {
        batch: &'a mut EightBatch<P>,
        queue: &'a [Addition],
        places: &'a S,
        ready: &'a mut Vec<Ready<P::BaseField>>,
    }

    impl<P: Curve, S: Places<P>> Kernel for Read<'_, P, S> {
        #[inline(always)]
        fn run(self, ifma: Ifma) {
            let prefetch = |additions: &[Addition]| {
                for addition in additions {
                    ifma.prefetch(self.places.read(addition.a).0);
                    ifma.prefetch(self.places.read(addition.b).0);
                }
            };
            prefetch(&self.queue[..self.queue.len().min(AHEAD)]);
            let lanes = self.batch.lanes;
            let mut products = [lanes.unit(); CHAINS];
            self.batch.groups.clear();
            for (number, additions) in self.queue.chunks(LANES).enumerate() {
                let ahead = number * LANES + AHEAD;
                if let Some(additions) = self.queue.get(ahead..(ahead + LANES).min(self.queue.len())) {
                    prefetch(additions);
                }
                let (mut group, special_lanes) = group(lanes, additions, self.places);
                group.alive = u8::MAX >> (LANES - additions.len());
                if special_lanes != 0 {
                    replace_special(
                        lanes,
                        &mut group,
                        special_lanes,
                        additions,
                        self.places,
                        self.ready,
                    );
                }
                let product = &mut products[number % CHAINS];
                group.before = *product;
                *product = lanes.product(product, &group.denominator);
                self.batch.groups.push(group);
            }
            self.batch.products = products;
        }
    }

    /// The operands of up to eight additions, and the lanes in which an x is zero (so infinity's) or both are equal. Lanes
    /// that are left repeat the first addition.
    #[inline(always)]
    fn group<P: Curve, S: Places<P>>(
        lanes: Lanes<P::BaseField>,
        additions: &[Addition],
        places: &S,
    ) -> (Group, u8) {
        let first = additions[0];
        let mut all = [first; LANES];
        all[..additions.len()].copy_from_slice(additions);
        let (mut a, mut b) = ([places.read(first.a).0; LANES], [places.read(first.b).0; LANES]);
        let (mut a_negative, mut b_negative) = (0u8, 0u8);
        for lane in 0..LANES {
            let (point, negative) = places.read(all[lane].a);
            a[lane] = point;
            a_negative |= u8::from(negative) << lane;
            let (point, negative) = places.read(all[lane].b);
            b[lane] = point;
            b_negative |= u8::from(negative) << lane;
        }
        let (a_x, b_x) = (lanes.gather(a.map(|a| &a.x)), lanes.gather(b.map(|b| &b.x)));
        let special_lanes = lanes.zeros(&a_x) | lanes.zeros(&b_x) | lanes.equals(&a_x, &b_x);
        let (a_x, b_x) = (lanes.unpack(&a_x), lanes.unpack(&b_x));
        let a_y = lanes.unpack(&lanes.gather(a.map(|a| &a.y)));
        let b_y = lanes.unpack(&lanes.gather(b.map(|b| &b.y)));
        let (a_y, b_y) = (lanes.signed(&a_y, a_negative), lanes.signed(&b_y, b_negative));
        let group = Group {
            numerator: lanes.carried(lanes.difference(&b_y, &a_y, 1)),
            denominator: lanes.carried(lanes.difference(&b_x, &a_x, 1)),
            before: lanes.unit(),
            x: a_x,
            y: a_y,
            x_sum: lanes.sum(&a_x, &b_x),
            alive: 0,
        };
        (group, special_lanes)
    }

    /// Doublings get their lambda here, sums that need none are done.
    #[inline(always)]
    fn replace_special<P: Curve, S: Places<P>>(
        lanes: Lanes<P::BaseField>,
        group: &mut Group,
        special_lanes: u8,
        additions: &[Addition],
        places: &S,
        ready: &mut Vec<Ready<P::BaseField>>,
    ) {
        for (lane, addition) in additions.iter().enumerate() {
            if special_lanes >> lane & 1 == 0 {
                continue;
            }
            match special::<P>(&places.signed(addition.a), &places.signed(addition.b)) {
                Ok(sum) => {
                    ready.push((addition.target, sum.x, sum.y));
                    group.alive &= !(1 << lane);
                }
                Err((numerator, denominator)) => {
                    lanes.replace(&mut group.numerator, lane, &numerator);
                    lanes.replace(&mut group.denominator, lane, &denominator);
                }
            }
        }
        lanes.replace_by_unit(&mut group.denominator, !group.alive);
    }

    struct Write<'a, P: Curve, S> {
        batch: &'a mut EightBatch<P>,
        queue: &'a [Addition],
        places: &'a mut S,
    }

    impl<P: Curve, S: Places<P>> Kernel for Write<'_, P, S> {
        #[inline(always)]
        fn run(self, _: Ifma) {
            if self.batch.groups.is_empty() {
                return;
            }
            let lanes = self.batch.lanes;
            let mut inverses = invert(lanes, &self.batch.products);
            let zero = P::BaseField::zero();
            let groups = self.queue.chunks(LANES).zip(&self.batch.groups).enumerate();
            for (number, (additions, group)) in groups.rev() {
                let chain = &mut inverses[number % CHAINS];
                let inverse = lanes.product(chain, &group.before);
                *chain = lanes.product(chain, &group.denominator);
                let mu = lanes.product(&group.numerator, &inverse);
                let x = lanes.difference(&lanes.square(&mu), &group.x_sum, 3);
                let x = lanes.settled(x);
                let step = lanes.quadruple(&lanes.difference(&group.x, &x, 1));
                let rise = lanes.product(&mu, &lanes.carried(step));
                let y = lanes.settled(lanes.difference(&rise, &group.y, 2));
                let (mut sum_x, mut sum_y) = ([zero; LANES], [zero; LANES]);
                lanes.scatter(&lanes.pack(&x), &mut sum_x);
                lanes.scatter(&lanes.pack(&y), &mut sum_y);
                for (lane, addition) in additions.iter().enumerate() {
                    if group.alive >> lane & 1 == 1 {
                        let (x, y) = (sum_x[lane], sum_y[lane]);
                        self.places.write(addition.target, Coordinates { x, y });
                    }
                }
            }
        }
    }

    /// 2^518 / product, for each chain and lane.
    #[inline(always)]
    fn invert<F: KernelField>(lanes: Lanes<F>, products: &[Eight; CHAINS]) -> [Eight; CHAINS] {
        // Up: across chains, then across lanes, until every lane holds the product of everything.
        let mut before = [lanes.unit(); CHAINS];
        let mut total = products[0];
        for chain in 1..CHAINS {
            before[chain] = total;
            total = lanes.product(&total, &products[chain]);
        }
        let neighbours = lanes.exchanged(&total, 1);
        let twos = lanes.product(&total, &neighbours);
        let other_twos = lanes.exchanged(&twos, 2);
        let fours = lanes.product(&twos, &other_twos);
        let other_fours = lanes.exchanged(&fours, 4);
        let all = lanes.product(&fours, &other_fours);

        let mut scalars = [F::ZERO; LANES];
        let settled = lanes.settled(lanes.shifted(&all, 1));
        lanes.scatter(&lanes.pack(&settled), &mut scalars);
        // Not zero: no factor is.
        let inverse = scalars[0].inverse().unwrap_or(F::ZERO).times(&F::from(64u64));

        // Down, the same way.
        let inverse = lanes.product(&lanes.splat(&inverse), &other_fours);
        let inverse = lanes.product(&inverse, &other_twos);
        let mut inverse = lanes.product(&inverse, &neighbours);
        let mut inverses = [inverse; CHAINS];
        for chain in (1..CHAINS).rev() {
            inverses[chain] = lanes.product(&inverse, &before[chain]);
            inverse = lanes.product(&inverse, &products[chain]);
        }
        inverses[0] = inverse;
        inverses
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod none {
    use std::convert::Infallible;
    use std::marker::PhantomData;

    use super::super::batch::{Addition, Places, Ready};
    use crate::kernels::curve::Curve;

    /// No lanes on this architecture.
    pub(in super::super) struct EightBatch<P: Curve>(Infallible, PhantomData<P>);

    impl<P: Curve> EightBatch<P> {
        pub(in super::super) const ADDITION_BYTES: usize = 0;

        pub(in super::super) fn new() -> Option<Self> {
            None
        }

        pub(in super::super) fn read(
            &mut self,
            _: &[Addition],
            _: &impl Places<P>,
            _: &mut Vec<Ready<P::BaseField>>,
        ) {
            match self.0 {}
        }

        pub(in super::super) fn write(&mut self, _: &[Addition], _: &mut impl Places<P>) {
            match self.0 {}
        }
    }
}
