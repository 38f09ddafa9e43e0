//! A queue's additions in eight lanes.
//!
//! Additions are taken in groups of eight, operands transposed into lanes ([`crate::kernels::lanes::field`]). Every lane of
//! every one of the `CHAINS` interleaved chains of groups multiplies its denominators up; the chains' products are multiplied
//! together, then the lanes', and one number is inverted by scalar code. On the way back operands are read again: to keep
//! what was made of them would move three times the bytes. They are read between the rows of products that do not wait for
//! them ([`Beside`]).
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
//! Y1 + 2 in 1 .. 4.6. Memory: [`EightAdder::ADDITION_BYTES`] an addition.

#[cfg(target_arch = "x86_64")]
pub(super) use lanes::EightAdder;
#[cfg(not(target_arch = "x86_64"))]
pub(super) use none::EightAdder;

#[cfg(target_arch = "x86_64")]
mod lanes {
    use std::ops::Range;

    use super::super::batch::{CAPACITY_IN_LANES, Pair, Places, special};
    use crate::kernels::curve::{Curve, Point};
    use crate::kernels::field::KernelField;
    use crate::kernels::lanes::field::{Beside, Eight, Lanes, Native, STEPS};
    use crate::kernels::lanes::{Ifma, Kernel};

    const LANES: usize = 8;

    /// Chains of products, so that one's latency is hidden behind the others.
    const CHAINS: usize = 2;

    /// Groups whose operands are under way from memory.
    const AHEAD: usize = 4;

    /// Eight additions, between the way up and the way down.
    #[derive(Clone, Copy)]
    struct Group {
        denominator: Eight,
        /// Product of the chain's denominators before this one.
        before: Eight,
        /// Lanes whose first operand is infinity and the second is not.
        empty: u8,
        /// Other lanes in which an x is zero or both are equal.
        special: u8,
    }

    /// What lies between the two ways over a queue.
    pub(in super::super) struct EightAdder<P: Curve> {
        ifma: Ifma,
        lanes: Lanes<P::BaseField>,
        groups: Vec<Group>,
    }

    impl<P: Curve> EightAdder<P> {
        pub(in super::super) const ADDITION_BYTES: usize = size_of::<Group>() / LANES;

        /// Room for [`CAPACITY_IN_LANES`] additions, if the machine and the field have lanes.
        pub(in super::super) fn new() -> Option<Self> {
            let ifma = Ifma::detect()?;
            Some(Self {
                ifma,
                lanes: Lanes::new(ifma)?,
                groups: Vec::with_capacity(CAPACITY_IN_LANES.div_ceil(LANES)),
            })
        }

        /// Sums of a part of the queue, at most [`CAPACITY_IN_LANES`], to their targets.
        pub(in super::super) fn add(
            &mut self,
            queue: &[Pair],
            part: Range<usize>,
            places: &mut impl Places<P>,
        ) {
            let ifma = self.ifma;
            ifma.run(Add {
                adder: self,
                start: part.start,
                queue: &queue[part],
                places,
            });
        }
    }

    struct Add<'a, P: Curve, S> {
        adder: &'a mut EightAdder<P>,
        start: usize,
        queue: &'a [Pair],
        places: &'a mut S,
    }

    impl<P: Curve, S: Places<P>> Kernel for Add<'_, P, S> {
        #[inline(always)]
        fn run(self, ifma: Ifma) {
            let Self {
                adder,
                start,
                queue,
                places,
            } = self;
            let lanes = adder.lanes;
            let products = up::<P, S>(ifma, lanes, queue, places, &mut adder.groups);
            let mut inverses = invert(lanes, &products);
            for (number, group) in adder.groups.iter().enumerate().rev() {
                if number >= AHEAD {
                    prefetch::<P, S>(ifma, chunk(queue, number - AHEAD), places);
                }
                let inverse = &mut inverses[number % CHAINS];
                let index = start + number * LANES;
                down::<P, S>(lanes, group, inverse, chunk(queue, number), index, places);
            }
        }
    }

    /// Up to eight pairs.
    #[inline(always)]
    fn chunk(queue: &[Pair], number: usize) -> &[Pair] {
        let first = number * LANES;
        &queue[first..(first + LANES).min(queue.len())]
    }

    /// Asks for a group's operands.
    #[inline(always)]
    fn prefetch<P: Curve, S: Places<P>>(ifma: Ifma, pairs: &[Pair], places: &S) {
        for pair in pairs {
            ifma.prefetch(places.first(pair[0]));
            ifma.prefetch(places.second(pair[1]));
        }
    }

    /// All eight pairs; where there are fewer, the first again.
    #[inline(always)]
    fn filled(pairs: &[Pair]) -> [Pair; LANES] {
        if let Ok(all) = pairs.try_into() {
            return all;
        }
        let mut all = [pairs[0]; LANES];
        all[..pairs.len()].copy_from_slice(pairs);
        all
    }

    /// The lanes whose operand `which` is meant negated.
    #[inline(always)]
    fn negative(pairs: &[Pair; LANES], which: usize) -> u8 {
        let bit = |lane: usize| ((pairs[lane][which] & 1) as u8) << lane;
        (bit(0) | bit(1)) | (bit(2) | bit(3)) | (bit(4) | bit(5)) | (bit(6) | bit(7))
    }

    /// The pairs in the lanes of `mask`.
    #[inline(always)]
    fn specials(mask: u8, pairs: &[Pair]) -> impl Iterator<Item = (usize, &Pair)> {
        let pairs = if mask == 0 { &[] } else { pairs };
        pairs
            .iter()
            .enumerate()
            .filter(move |(lane, _)| mask >> lane & 1 == 1)
    }

    /// Reads a coordinate of both operands of eight additions while a product is made.
    struct Read<'a, F> {
        lanes: Lanes<F>,
        from: [[&'a F; LANES]; 2],
        native: [Native; 2],
        values: [Eight; 2],
    }

    impl<'a, F: KernelField> Read<'a, F> {
        #[inline(always)]
        fn new(lanes: Lanes<F>, first: [&'a F; LANES], second: [&'a F; LANES]) -> Self {
            Self {
                lanes,
                from: [first, second],
                native: [lanes.no_elements(); 2],
                values: [lanes.unit(); 2],
            }
        }
    }

    impl<F: KernelField> Beside for Read<'_, F> {
        #[inline(always)]
        fn step(&mut self, step: usize) {
            let which = step / (STEPS / 2);
            match step % (STEPS / 2) {
                0 => self.native[which] = self.lanes.gather(self.from[which]),
                2 => self.values[which] = self.lanes.unpack(&self.native[which]),
                _ => {}
            }
        }
    }

    /// Operands to denominators, and these to each chain's product, which is made while the next group's operands are read.
    #[inline(always)]
    fn up<P: Curve, S: Places<P>>(
        ifma: Ifma,
        lanes: Lanes<P::BaseField>,
        queue: &[Pair],
        places: &S,
        groups: &mut Vec<Group>,
    ) -> [Eight; CHAINS] {
        prefetch::<P, S>(ifma, &queue[..queue.len().min(AHEAD * LANES)], places);
        let mut products = [lanes.unit(); CHAINS];
        // The product with a group's denominators is made while the next group is read. Before the first one there is none.
        let mut last = lanes.unit();
        groups.clear();
        for number in 0..queue.len().div_ceil(LANES) {
            if (number + AHEAD) * LANES < queue.len() {
                prefetch::<P, S>(ifma, chunk(queue, number + AHEAD), places);
            }
            let pairs = chunk(queue, number);
            let all = filled(pairs);
            let a: [&Point<P>; LANES] = std::array::from_fn(|lane| places.first(all[lane][0]));
            let b: [&Point<P>; LANES] = std::array::from_fn(|lane| places.second(all[lane][1]));
            let mut x = Read::new(lanes, a.map(|a| &a.x), b.map(|b| &b.x));
            let product = &mut products[(number + CHAINS - 1) % CHAINS];
            *product = lanes.product_beside(product, &last, &mut x);
            let ([a_x, b_x], [a_values, b_values]) = (x.native, x.values);
            let difference = lanes.difference(&b_values, &a_values, 1);
            let mut group = Group {
                denominator: lanes.carried(difference),
                before: products[number % CHAINS],
                empty: 0,
                special: 0,
            };
            let (a_zero, b_zero) = (lanes.zeros(&a_x), lanes.zeros(&b_x));
            let special_lanes = a_zero | b_zero | lanes.equals(&a_x, &b_x);
            if special_lanes != 0 {
                if a_zero & !b_zero != 0 {
                    let a_y = lanes.gather(a.map(|a| &a.y));
                    group.empty = a_zero & lanes.zeros(&a_y) & !b_zero;
                    lanes.replace_by_unit(&mut group.denominator, group.empty);
                }
                group.special = special_lanes & !group.empty;
                if group.special != 0 {
                    replace_denominators::<P, S>(lanes, &mut group, pairs, places);
                }
            }
            last = group.denominator;
            groups.push(group);
        }
        let product = &mut products[(groups.len() + CHAINS - 1) % CHAINS];
        *product = lanes.product(product, &last);
        products
    }

    /// Doublings' denominators to their lanes, 1 to those of sums that need none.
    #[inline(always)]
    fn replace_denominators<P: Curve, S: Places<P>>(
        lanes: Lanes<P::BaseField>,
        group: &mut Group,
        pairs: &[Pair],
        places: &S,
    ) {
        lanes.replace_by_unit(&mut group.denominator, group.special);
        for (lane, pair) in specials(group.special, pairs) {
            let [a, b] = places.operands(*pair);
            if let Err((_, denominator)) = special::<P>(&a, &b) {
                lanes.replace(&mut group.denominator, lane, &denominator);
            }
        }
    }

    /// A group's sums to their targets, `inverse` from behind the group to before it.
    #[inline(always)]
    fn down<P: Curve, S: Places<P>>(
        lanes: Lanes<P::BaseField>,
        group: &Group,
        inverse: &mut Eight,
        pairs: &[Pair],
        index: usize,
        places: &mut S,
    ) {
        let all = filled(pairs);
        let a: [&Point<P>; LANES] = std::array::from_fn(|lane| places.first(all[lane][0]));
        let b: [&Point<P>; LANES] = std::array::from_fn(|lane| places.second(all[lane][1]));
        let mut x = Read::new(lanes, a.map(|a| &a.x), b.map(|b| &b.x));
        let mut y = Read::new(lanes, a.map(|a| &a.y), b.map(|b| &b.y));
        let own = lanes.product_beside(inverse, &group.before, &mut y);
        *inverse = lanes.product_beside(inverse, &group.denominator, &mut x);
        let ([a_x, b_x], [mut a_y, mut b_y]) = (x.values, y.values);
        if S::SIGNED[0] {
            a_y = lanes.signed(&a_y, negative(&all, 0));
        }
        if S::SIGNED[1] {
            b_y = lanes.signed(&b_y, negative(&all, 1));
        }
        let mut numerator = lanes.carried(lanes.difference(&b_y, &a_y, 1));
        for (lane, pair) in specials(group.special, pairs) {
            let [a, b] = places.operands(*pair);
            if let Err((doubling, _)) = special::<P>(&a, &b) {
                lanes.replace(&mut numerator, lane, &doubling);
            }
        }

        let mu = lanes.product(&numerator, &own);
        let x = lanes.difference(&lanes.square(&mu), &lanes.sum(&a_x, &b_x), 3);
        let mut x = lanes.settled(x);
        let step = lanes.quadruple(&lanes.difference(&a_x, &x, 1));
        let rise = lanes.product(&mu, &lanes.carried(step));
        let mut y = lanes.settled(lanes.difference(&rise, &a_y, 2));
        if group.empty != 0 {
            x = lanes.blend(group.empty, &b_x, &x);
            y = lanes.blend(group.empty, &lanes.carried(b_y), &y);
        }
        for (lane, pair) in specials(group.special, pairs) {
            let [a, b] = places.operands(*pair);
            if let Ok(sum) = special::<P>(&a, &b) {
                lanes.replace(&mut x, lane, &sum.x);
                lanes.replace(&mut y, lane, &sum.y);
            }
        }

        let (x, y) = (lanes.rows(&lanes.pack(&x)), lanes.rows(&lanes.pack(&y)));
        if pairs.len() == LANES {
            // A loop of fixed length: unrolled, and the vectors stay in registers.
            for (lane, pair) in all.iter().enumerate() {
                let target = places.target(index + lane, pair[0]);
                lanes.store_row(&x, lane, &mut target.x);
                lanes.store_row(&y, lane, &mut target.y);
            }
        } else {
            for (lane, pair) in pairs.iter().enumerate() {
                let target = places.target(index + lane, pair[0]);
                lanes.store_row(&x, lane, &mut target.x);
                lanes.store_row(&y, lane, &mut target.y);
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
        let inverse = scalars[0].inverted().unwrap_or(F::ZERO).times(&F::from(64u64));

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
    use std::ops::Range;

    use super::super::batch::{Pair, Places};
    use crate::kernels::curve::Curve;

    /// No lanes on this architecture.
    pub(in super::super) struct EightAdder<P: Curve>(Infallible, PhantomData<P>);

    impl<P: Curve> EightAdder<P> {
        pub(in super::super) const ADDITION_BYTES: usize = 0;

        pub(in super::super) fn new() -> Option<Self> {
            None
        }

        pub(in super::super) fn add(&mut self, _: &[Pair], _: Range<usize>, _: &mut impl Places<P>) {
            match self.0 {}
        }
    }
}
