//! Affine additions that share one inversion, in lanes.
//!
//! An addition or doubling is lambda = numerator / denominator, x3 = lambda^2 - x1 - x2, y3 = lambda (x1 -
//! x3) - y1. A queue of pairs of places is taken [`CAPACITY`] at a time, in groups of as many as there are
//! lanes ([`crate::backend`]). On the way up every lane of every one of the interleaved chains of groups
//! multiplies its denominators up; the chains' products are multiplied together, then the lanes', and one
//! number is inverted. On the way down operands are read again: to keep what was made of them would move
//! three times the bytes. They are read between the rows of products that do not wait for them ([`Beside`]).
//! Cost: 6 multiplications, and a share of an inversion. In an extension denominators are multiplied up as
//! their norms, and inverses are taken from those of the norms: the three products of each denominator are
//! the prime field's.
//!
//! Shift. Coordinates are native, and stay so. In these formulas, large letters are the integers that lanes
//! hold, small ones the values that they stand for; R is native, R 2^s the lanes' own, and a product in lanes
//! of A and B is A B / (R 2^s); h is s / 2 rounded down:
//!
//! - x3 needs lambda^2 R. With MU = lambda R 2^h that is MU^2 / (R 2^s) if s is even, and twice that if s is
//!   odd. y3 needs the product of MU with 2^(s - h) (X1 - X3). So the one price of native data is a shift by
//!   a few bits, and perhaps a doubling.
//! - As MU = N I / (R 2^s) with the numerator N = n R, I = 2^(s + h) R / d = C / D with C = 2^(s + h) R^2.
//! - Prefix products P_k = P_(k-1) D_k / (R 2^s). With V_k = C / P_k: V_k P_(k-1) / (R 2^s) = C / D_k = I,
//!   and V_k D_k / (R 2^s) = C / P_(k-1) = V_(k-1). So whatever is multiplied up, in one chain, across chains
//!   or across lanes, is inverted down by products alone, once the last V is there. P_0 may be anything but
//!   zero: it is the integer 1. The same holds for norms in place of D: conj(D) V / (R 2^s) is C / D if V is
//!   C over the norm D conj(D) / (R 2^s).
//! - The last P is taken for a native element P / R; its scalar inverse holds R^2 / P, and 2^(s + h) times
//!   that is V.
//!
//! Bounds, in multiples of p <= R 2^s / 32, with s at most 4 (or p at most 1 / 2^(s - h + 4) of that), of
//! elements or components (coordinates below 1, or 1 for a negated 0): D, N <= 2; P, V, I < 3; MU < 2.2, in
//! an extension 3.2; MU^2 < 2.2, or 4; x3 = MU^2 - X1 - X2 + 3 in 1 .. 7; 2^(s - h) (X1 - X3 + 1) < 8, its
//! product with MU < 2.6, or 4.2; y3 = that - Y1 + 2 in 1 .. 6.2. If s is odd, p <= R 2^s / 64 and
//! `canonical` takes values up to 12: twice MU^2 < 4.2, or 8; x3 in 1 .. 11; 2^(s - h) (X1 - X3 + 1) < 16.
//! Memory: [`Adder::bytes`].

use std::any::Any;
use std::array::from_fn;
use std::marker::PhantomData;

use ark_ff::Zero;

use crate::backend::{Backend, Beside, CHAINS_MAX, Kernel, Lanes, PrimeKept, PrimeValue, invert};
use crate::curve::{Coordinates, Curve, Point};
use crate::field::CoordinateField;

/// Additions that share an inversion.
const CAPACITY: usize = 4096;

/// Groups whose operands are under way from memory.
const AHEAD: usize = 4;

/// Both operands of an addition, by places whose meaning is the [`Places`]'.
pub type Pair = [u32; 2];

/// What the places of a queue mean. A sum may go where its own first operand is, but where no other operand
/// of the queue is. Where points are signed, bit 0 of a place says that the negation is meant.
pub(super) enum Places<'a, P: Curve> {
    /// Both operands from one slice, sums to another, in the queue's order.
    IntoWork {
        from: &'a [Point<P>],
        to: &'a mut [Point<P>],
        signed: bool,
    },
    /// Points of the second slice to points of the first.
    Joins {
        to: &'a mut [Point<P>],
        from: &'a [Point<P>],
        signed: bool,
    },
    /// Points of one slice to other points of it.
    InPlace(&'a mut [Point<P>]),
}

/// Where the operands on one side of a queue are.
struct Operands<'s, P: Curve> {
    points: &'s [Point<P>],
    signed: bool,
}

impl<'s, P: Curve> Operands<'s, P> {
    #[inline(always)]
    fn new(points: &'s [Point<P>], signed: bool) -> Self {
        Self { points, signed }
    }

    #[inline(always)]
    fn get(&self, place: u32) -> &'s Point<P> {
        &self.points[place as usize >> u32::from(self.signed)]
    }

    /// An operand, negated if its place says so.
    #[inline(always)]
    fn with_sign(&self, place: u32) -> Point<P> {
        let point = self.get(place);
        Coordinates {
            x: point.x,
            y: point.y.signed(self.signed && place & 1 == 1),
        }
    }
}

impl<P: Curve> Places<'_, P> {
    /// The first and the second operands.
    #[inline(always)]
    fn sides(&self) -> [Operands<'_, P>; 2] {
        match self {
            Self::IntoWork { from, signed, .. } => {
                [Operands::new(from, *signed), Operands::new(from, *signed)]
            }
            Self::Joins { to, from, signed } => [Operands::new(to, false), Operands::new(from, *signed)],
            Self::InPlace(points) => [Operands::new(points, false), Operands::new(points, false)],
        }
    }

    /// Both operands, with their signs.
    #[inline(always)]
    fn operands(&self, pair: Pair) -> [Point<P>; 2] {
        let [first, second] = self.sides();
        [first.with_sign(pair[0]), second.with_sign(pair[1])]
    }

    /// Where sums go, and whether the sum of the queue's pair i goes to place i, or to its first operand's.
    #[inline(always)]
    fn targets(&mut self) -> (&mut [Point<P>], bool) {
        match self {
            Self::IntoWork { to, .. } => (to, true),
            Self::Joins { to, .. } | Self::InPlace(to) => (to, false),
        }
    }
}

/// A group of additions, between the way up and the way down.
#[derive(Clone, Copy)]
struct Group<V> {
    /// Norms of the denominators.
    norm: V,
    /// Product of the chain's norms before this one.
    before: V,
    /// Lanes whose first operand is infinity and the second is not.
    empty: u8,
    /// Other lanes in which an x is zero or both are equal.
    special: u8,
}

/// Adds queues of pairs.
pub(super) struct Adder<P: Curve> {
    backend: Backend,
    /// A `Vec` of the backend's groups: which type they are is the backend's.
    groups: Box<dyn Any + Send>,
    curve: PhantomData<fn() -> P>,
}

impl<P: Curve> Adder<P> {
    pub(super) fn new(backend: Backend) -> Self {
        Self {
            backend,
            groups: P::run_new_groups(backend, NewGroups(PhantomData)),
            curve: PhantomData,
        }
    }

    /// Bytes of an adder on any backend.
    pub(super) fn bytes() -> u64 {
        let value_bytes = Backend::lane_bytes_max::<<P::BaseField as CoordinateField>::Prime>();
        // The portable backend has one pair of masks for each addition.
        (CAPACITY * (2 * value_bytes + size_of::<u64>())) as u64
    }

    /// Every pair's sum to its target.
    pub(super) fn add(&mut self, queue: &[Pair], mut places: Places<'_, P>) {
        for (part, queue) in queue.chunks(CAPACITY).enumerate() {
            let add = Add {
                groups: &mut *self.groups,
                start: part * CAPACITY,
                queue,
                places: &mut places,
            };
            P::run_add(self.backend, add);
        }
    }
}

/// Makes room for the groups of [`CAPACITY`] additions.
pub struct NewGroups<P>(PhantomData<P>);

impl<P: Curve> Kernel<P::BaseField> for NewGroups<P> {
    type Output = Box<dyn Any + Send>;

    #[inline(always)]
    fn run<const W: usize, L: Lanes<P::BaseField, W>>(self, _: L) -> Self::Output {
        Box::new(Vec::<Group<PrimeKept<P::BaseField, W, L>>>::with_capacity(
            CAPACITY.div_ceil(W),
        ))
    }
}

/// Sums of a part of a queue that begins at `start`.
pub struct Add<'a, 's, P: Curve> {
    groups: &'a mut (dyn Any + Send),
    start: usize,
    queue: &'a [Pair],
    places: &'a mut Places<'s, P>,
}

impl<P: Curve> Kernel<P::BaseField> for Add<'_, '_, P> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<P::BaseField, W>>(self, lanes: L) {
        let Self {
            groups,
            start,
            queue,
            places,
        } = self;
        let Some(groups) = groups.downcast_mut::<Vec<Group<PrimeKept<P::BaseField, W, L>>>>() else {
            unreachable!("the groups are those of this backend");
        };
        let products = up::<P, W, L>(lanes, queue, places, groups);
        // C / product, for each chain and lane. Not zero: no factor is.
        let shift = <P::BaseField as CoordinateField>::Prime::from(1u64 << (L::SHIFT + L::SHIFT / 2));
        // There is no inverse only if a coordinate is not below the modulus, which no file that was checked
        // holds: then the sums mean nothing.
        let inverses = invert(lanes.prime(), &products, &shift);
        let mut inverses = inverses.unwrap_or([lanes.prime().unit(); CHAINS_MAX]);
        for (number, group) in groups.iter().enumerate().rev() {
            if number >= AHEAD {
                prefetch::<P, W, L>(lanes, chunk::<W>(queue, number - AHEAD), places);
            }
            let inverse = &mut inverses[number % L::CHAINS];
            let pairs = chunk::<W>(queue, number);
            down::<P, W, L>(lanes, group, inverse, pairs, start + number * W, places);
        }
    }
}

/// Up to W pairs.
#[inline(always)]
fn chunk<const W: usize>(queue: &[Pair], number: usize) -> &[Pair] {
    let first = number * W;
    &queue[first..(first + W).min(queue.len())]
}

/// Asks for a group's operands.
#[inline(always)]
fn prefetch<P: Curve, const W: usize, L: Lanes<P::BaseField, W>>(
    lanes: L,
    pairs: &[Pair],
    places: &Places<'_, P>,
) {
    let [first, second] = places.sides();
    for pair in pairs {
        lanes.prefetch(first.get(pair[0]));
        lanes.prefetch(second.get(pair[1]));
    }
}

/// W pairs; where there are fewer, the first again.
#[inline(always)]
fn filled<const W: usize>(pairs: &[Pair]) -> [Pair; W] {
    if let Ok(all) = pairs.try_into() {
        return all;
    }
    let mut all = [pairs[0]; W];
    all[..pairs.len()].copy_from_slice(pairs);
    all
}

/// Both operands of W pairs. Not by `map`, which is called where its closure may panic.
#[inline(always)]
fn both<'s, P: Curve, const W: usize>(
    pairs: &[Pair; W],
    places: &'s Places<'_, P>,
) -> [[&'s Point<P>; W]; 2] {
    let [first, second] = places.sides();
    [
        from_fn(|lane| first.get(pairs[lane][0])),
        from_fn(|lane| second.get(pairs[lane][1])),
    ]
}

/// The lanes whose operand `which` is meant negated.
#[inline(always)]
fn negative<const W: usize>(pairs: &[Pair; W], which: usize) -> u8 {
    let mut mask = 0;
    for (lane, pair) in pairs.iter().enumerate() {
        mask |= ((pair[which] & 1) as u8) << lane;
    }
    mask
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

/// Reads a coordinate of both operands of W additions while a product is made.
struct Read<'a, F: CoordinateField, const W: usize, L: Lanes<F, W>> {
    lanes: L,
    from: [[&'a F; W]; 2],
    native: [Option<L::Native>; 2],
    values: [L::Value; 2],
}

impl<'a, F: CoordinateField, const W: usize, L: Lanes<F, W>> Read<'a, F, W, L> {
    #[inline(always)]
    fn new(lanes: L, first: [&'a F; W], second: [&'a F; W]) -> Self {
        Self {
            lanes,
            from: [first, second],
            native: [None; 2],
            values: [lanes.unit(); 2],
        }
    }
}

impl<F: CoordinateField, const W: usize, L: Lanes<F, W>> Beside for Read<'_, F, W, L> {
    #[inline(always)]
    fn step(&mut self, step: usize, steps: usize) {
        let which = step / (steps / 2);
        match step % (steps / 2) {
            0 => self.native[which] = Some(self.lanes.gather(self.from[which])),
            2 => {
                if let Some(native) = &self.native[which] {
                    self.values[which] = self.lanes.unpack(native);
                }
            }
            _ => {}
        }
    }
}

/// Operands to the norms of denominators, and these to each chain's product, which is made while the next
/// group's operands are read.
#[inline(always)]
fn up<P: Curve, const W: usize, L: Lanes<P::BaseField, W>>(
    lanes: L,
    queue: &[Pair],
    places: &Places<'_, P>,
    groups: &mut Vec<Group<PrimeKept<P::BaseField, W, L>>>,
) -> [PrimeValue<P::BaseField, W, L>; CHAINS_MAX] {
    let prime = lanes.prime();
    prefetch::<P, W, L>(lanes, &queue[..queue.len().min(AHEAD * W)], places);
    let mut products = [prime.unit(); CHAINS_MAX];
    // The product with a group's norms is made while the next group is read. Before the first one there is
    // none.
    let mut last = prime.unit();
    groups.clear();
    for number in 0..queue.len().div_ceil(W) {
        if (number + AHEAD) * W < queue.len() {
            prefetch::<P, W, L>(lanes, chunk::<W>(queue, number + AHEAD), places);
        }
        let pairs = chunk::<W>(queue, number);
        let all = filled::<W>(pairs);
        let [a, b] = both::<P, W>(&all, places);
        let mut x = Read::new(lanes, a.map(|a| &a.x), b.map(|b| &b.x));
        let product = &mut products[(number + L::CHAINS - 1) % L::CHAINS];
        *product = prime.product_beside(product, &last, &mut x);
        let mut denominator = lanes.carried(lanes.difference(&x.values[1], &x.values[0], 1));
        let mut group = Group {
            norm: prime.keep(&last),
            before: prime.keep(&products[number % L::CHAINS]),
            empty: 0,
            special: 0,
        };
        if let [Some(a_x), Some(b_x)] = &x.native {
            let (a_zero, b_zero) = (lanes.zeros(a_x), lanes.zeros(b_x));
            let special_lanes = a_zero | b_zero | lanes.equals(a_x, b_x);
            if special_lanes != 0 {
                if a_zero & !b_zero != 0 {
                    let a_y = lanes.gather(a.map(|a| &a.y));
                    group.empty = a_zero & lanes.zeros(&a_y) & !b_zero;
                }
                group.special = special_lanes & !group.empty;
                replace_denominators::<P, W, L>(lanes, &mut denominator, &group, pairs, places);
            }
        }
        last = lanes.norm(&denominator);
        group.norm = prime.keep(&last);
        groups.push(group);
    }
    let product = &mut products[(groups.len() + L::CHAINS - 1) % L::CHAINS];
    *product = prime.product(product, &last);
    products
}

/// Doublings' denominators to their lanes, 1 to those of sums that need none.
#[inline(always)]
fn replace_denominators<P: Curve, const W: usize, L: Lanes<P::BaseField, W>>(
    lanes: L,
    denominator: &mut L::Value,
    group: &Group<PrimeKept<P::BaseField, W, L>>,
    pairs: &[Pair],
    places: &Places<'_, P>,
) {
    lanes.replace_by_unit(denominator, group.empty | group.special);
    for (lane, pair) in specials(group.special, pairs) {
        let [a, b] = places.operands(*pair);
        if let Err((_, special)) = special::<P>(&a, &b) {
            lanes.replace(denominator, lane, &special);
        }
    }
}

/// A group's sums to their targets, `inverse` from behind the group to before it.
#[inline(always)]
fn down<P: Curve, const W: usize, L: Lanes<P::BaseField, W>>(
    lanes: L,
    group: &Group<PrimeKept<P::BaseField, W, L>>,
    inverse: &mut PrimeValue<P::BaseField, W, L>,
    pairs: &[Pair],
    index: usize,
    places: &mut Places<'_, P>,
) {
    let prime = lanes.prime();
    let all = filled::<W>(pairs);
    let [a, b] = both::<P, W>(&all, places);
    let mut x = Read::new(lanes, a.map(|a| &a.x), b.map(|b| &b.x));
    let mut y = Read::new(lanes, a.map(|a| &a.y), b.map(|b| &b.y));
    let own = prime.product_beside(inverse, &prime.kept(&group.before), &mut y);
    *inverse = prime.product_beside(inverse, &prime.kept(&group.norm), &mut x);
    let ([a_x, b_x], [mut a_y, mut b_y]) = (x.values, y.values);
    let own = {
        // In a prime field nothing of the denominator is used.
        let mut denominator = lanes.carried(lanes.difference(&b_x, &a_x, 1));
        if L::EXTENSION && group.empty | group.special != 0 {
            replace_denominators::<P, W, L>(lanes, &mut denominator, group, pairs, places);
        }
        lanes.over_norm(&denominator, &own)
    };
    let signed = places.sides().map(|side| side.signed);
    if signed[0] {
        a_y = lanes.signed(&a_y, negative(&all, 0));
    }
    if signed[1] {
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
    let mut square = lanes.square(&mu);
    if L::SHIFT % 2 == 1 {
        square = lanes.sum(&square, &square);
    }
    let x = lanes.difference(&square, &lanes.sum(&a_x, &b_x), 3);
    let mut x = lanes.canonical(x);
    let step = lanes.half_shifted(&lanes.difference(&a_x, &x, 1));
    let rise = lanes.product(&step, &mu);
    let mut y = lanes.canonical(lanes.difference(&rise, &a_y, 2));
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

    let (x, y) = (lanes.rows(&x), lanes.rows(&y));
    let (targets, in_order) = places.targets();
    if pairs.len() == W {
        // A loop of fixed length: unrolled, and the vectors stay in registers.
        for (lane, pair) in all.iter().enumerate() {
            let target = &mut targets[if in_order { index + lane } else { pair[0] as usize }];
            lanes.store_row(&x, lane, &mut target.x);
            lanes.store_row(&y, lane, &mut target.y);
        }
    } else {
        for (lane, pair) in pairs.iter().enumerate() {
            let target = &mut targets[if in_order { index + lane } else { pair[0] as usize }];
            lanes.store_row(&x, lane, &mut target.x);
            lanes.store_row(&y, lane, &mut target.y);
        }
    }
}

/// The sum, if it needs no inversion; else both parts of lambda.
#[cold]
#[allow(clippy::type_complexity)]
fn special<P: Curve>(a: &Point<P>, b: &Point<P>) -> Result<Point<P>, (P::BaseField, P::BaseField)> {
    if a.is_infinity() {
        return Ok(*b);
    }
    if b.is_infinity() {
        return Ok(*a);
    }
    if a.x != b.x {
        return Err((b.y.minus(&a.y), b.x.minus(&a.x)));
    }
    if a.y != b.y || a.y.is_zero() {
        return Ok(Point::<P>::INFINITY);
    }
    let square = a.x.squared();
    Err((square.doubled().plus(&square).plus(&P::COEFF_A), a.y.doubled()))
}
