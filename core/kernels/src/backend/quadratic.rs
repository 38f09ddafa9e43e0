//! Lanes of a quadratic extension with u^2 = -1, made of the lanes of its prime field.
//!
//! Algorithm: both components of a product are reduced once. Karatsuba: with t0 = a0 b0, t1 = a1 b1 and t2 =
//! (a0 + a1)(b0 + b1) as columns, (a0 + a1 u)(b0 + b1 u) = t0 - t1 + (t2 - t0 - t1) u. Where columns cost too
//! much ([`Lanes::COLUMNS`]), four products: a0 b0 + a1 (4p - b1) and a0 b1 + a1 b0. Squares: (a0 + a1)(a0 -
//! a1) + 2 a0 a1 u.
//!
//! Bounds, in multiples of p <= R / 32, for components of operands below A and B with A B <= 32: t0 - t1 is
//! reduced to more than -1 and less than 3, and p is added; the other component is below 2 A B / 32 + 2 <= 4.
//! The sums of components, A + A and B + B, have to stay below R. By four products, B is at most 4: of a
//! large operand and a small one, kernels take the large one first. Components are below A (B + 4) / 32 + 2,
//! or for p <= R / 64 below A (B + 4) / 64 + 2: at most 4 for A <= 16, and below 5 for a shifted operand and
//! a canonical one. Squares, for A <= 4: the first factor is below 8, the second with 4p added too, so both
//! components are below 4. Norms, for A <= 2: below 8 / 32 + 2 < 3.
//!
//! Products are functions of their own: operands go through memory, which costs little beside three or four
//! products of the prime field.

use ark_ff::{AdditiveGroup, PrimeField, QuadExtConfig, QuadExtField};

use std::marker::PhantomData;

use super::lanes::{Beside, Lanes, LoopPart};
use crate::field::CoordinateField;

/// Lanes of the extension over lanes `L` of the prime field.
#[derive(Clone, Copy)]
pub struct Quadratic<L>(L);

impl<L> Quadratic<L> {
    /// The lanes of the extension by `P`, if u^2 = -1 there.
    pub(super) fn over<P: QuadExtConfig>(base: L) -> Option<Self> {
        (P::NONRESIDUE == -<P::BaseField as ark_ff::Field>::ONE).then_some(Self(base))
    }
}

/// `multiple * p - a`, carried.
#[inline(always)]
fn negated<F: CoordinateField, L: Lanes<F, W>, const W: usize>(
    lanes: L,
    a: &L::Value,
    multiple: usize,
) -> L::Value {
    lanes.carried(lanes.difference(&lanes.splat(&F::ZERO), a, multiple))
}

/// The components of several elements.
#[inline(always)]
fn split<P: QuadExtConfig, const W: usize>(from: [&QuadExtField<P>; W]) -> [[&P::BaseField; W]; 2] {
    [from.map(|element| &element.c0), from.map(|element| &element.c1)]
}

impl<P, L, const W: usize> Lanes<QuadExtField<P>, W> for Quadratic<L>
where
    P: QuadExtConfig<BaseField: CoordinateField<Prime = P::BaseField> + PrimeField>,
    QuadExtField<P>: CoordinateField<Prime = P::BaseField>,
    L: Lanes<P::BaseField, W, Prime = L>,
{
    type Native = [L::Native; 2];
    type Value = [L::Value; 2];
    type Kept = [L::Kept; 2];
    type Columns = [L::Columns; 2];
    type Transposed = [L::Transposed; 2];
    type Prime = L;
    const CHAINS: usize = L::CHAINS;
    const SHIFT: u32 = L::SHIFT;
    const EXTENSION: bool = true;
    const COLUMNS: bool = L::COLUMNS;

    #[inline(always)]
    fn prime(self) -> L {
        self.0
    }

    #[inline(always)]
    fn gather(self, from: [&QuadExtField<P>; W]) -> Self::Native {
        let [c0, c1] = split(from);
        [self.0.gather(c0), self.0.gather(c1)]
    }

    #[inline(always)]
    fn unpack(self, [c0, c1]: &Self::Native) -> Self::Value {
        [self.0.unpack(c0), self.0.unpack(c1)]
    }

    #[inline(always)]
    fn unpack_shifted(self, [c0, c1]: &Self::Native) -> Self::Value {
        [self.0.unpack_shifted(c0), self.0.unpack_shifted(c1)]
    }

    #[inline(always)]
    fn splat(self, value: &QuadExtField<P>) -> Self::Value {
        [self.0.splat(&value.c0), self.0.splat(&value.c1)]
    }

    #[inline(always)]
    fn keep(self, [c0, c1]: &Self::Value) -> Self::Kept {
        [self.0.keep(c0), self.0.keep(c1)]
    }

    #[inline(always)]
    fn kept(self, [c0, c1]: &Self::Kept) -> Self::Value {
        [self.0.kept(c0), self.0.kept(c1)]
    }

    #[inline(always)]
    fn rows(self, [c0, c1]: &Self::Value) -> Self::Transposed {
        [self.0.rows(c0), self.0.rows(c1)]
    }

    #[inline(always)]
    fn store_row(self, [c0, c1]: &Self::Transposed, lane: usize, to: &mut QuadExtField<P>) {
        self.0.store_row(c0, lane, &mut to.c0);
        self.0.store_row(c1, lane, &mut to.c1);
    }

    #[inline(always)]
    fn prefetch<T>(self, value: &T) {
        self.0.prefetch(value);
    }

    #[inline(always)]
    fn product_beside(self, a: &Self::Value, b: &Self::Value, beside: &mut impl Beside) -> Self::Value {
        const STEPS: usize = 10;
        for step in 0..STEPS {
            beside.step(step, STEPS);
        }
        let (lanes, field) = (self, PhantomData::<P>);
        self.0.outlined(Product { lanes, a, b, field })
    }

    #[inline(always)]
    fn square(self, a: &Self::Value) -> Self::Value {
        let (lanes, field) = (self, PhantomData::<P>);
        self.0.outlined(Square { lanes, a, field })
    }

    #[inline(always)]
    fn outlined<K: LoopPart>(self, part: K) -> K::Output {
        self.0.outlined(part)
    }

    #[inline(always)]
    fn no_columns(self) -> Self::Columns {
        [self.0.no_columns(); 2]
    }

    #[inline(always)]
    fn add_product(self, columns: &mut Self::Columns, a: &Self::Value, b: &Self::Value) {
        let base = self.0;
        let a_sum = base.carried(base.sum(&a[0], &a[1]));
        let b_sum = base.carried(base.sum(&b[0], &b[1]));
        let (mut low, mut high, mut mixed) = (base.no_columns(), base.no_columns(), base.no_columns());
        base.add_product(&mut low, &a[0], &b[0]);
        base.add_product(&mut high, &a[1], &b[1]);
        base.add_product(&mut mixed, &a_sum, &b_sum);
        let less = base.columns_difference(&low, &mixed);
        let more = base.columns_difference(&high, &low);
        columns[0] = base.columns_difference(&columns[0], &more);
        columns[1] = base.columns_difference(&base.columns_difference(&columns[1], &less), &high);
    }

    #[inline(always)]
    fn columns_difference(self, a: &Self::Columns, b: &Self::Columns) -> Self::Columns {
        [
            self.0.columns_difference(&a[0], &b[0]),
            self.0.columns_difference(&a[1], &b[1]),
        ]
    }

    #[inline(always)]
    fn reduced(self, columns: &Self::Columns) -> Self::Value {
        self.reduced_above(columns, 1)
    }

    #[inline(always)]
    fn reduced_above(self, [c0, c1]: &Self::Columns, multiple: usize) -> Self::Value {
        [
            self.0.reduced_above(c0, multiple),
            self.0.reduced_above(c1, multiple - 1),
        ]
    }

    #[inline(always)]
    fn sum(self, a: &Self::Value, b: &Self::Value) -> Self::Value {
        [self.0.sum(&a[0], &b[0]), self.0.sum(&a[1], &b[1])]
    }

    #[inline(always)]
    fn difference(self, a: &Self::Value, b: &Self::Value, multiple: usize) -> Self::Value {
        [
            self.0.difference(&a[0], &b[0], multiple),
            self.0.difference(&a[1], &b[1], multiple),
        ]
    }

    #[inline(always)]
    fn signed(self, [c0, c1]: &Self::Value, mask: u8) -> Self::Value {
        [self.0.signed(c0, mask), self.0.signed(c1, mask)]
    }

    #[inline(always)]
    fn half_shifted(self, [c0, c1]: &Self::Value) -> Self::Value {
        [self.0.half_shifted(c0), self.0.half_shifted(c1)]
    }

    #[inline(always)]
    fn carried(self, [c0, c1]: Self::Value) -> Self::Value {
        [self.0.carried(c0), self.0.carried(c1)]
    }

    #[inline(always)]
    fn canonical(self, [c0, c1]: Self::Value) -> Self::Value {
        [self.0.canonical(c0), self.0.canonical(c1)]
    }

    #[inline(always)]
    fn norm(self, [c0, c1]: &Self::Value) -> L::Value {
        self.0.two_products([c0, c1], [c0, c1])
    }

    #[inline(always)]
    fn over_norm(self, [c0, c1]: &Self::Value, inverse: &L::Value) -> Self::Value {
        let base = self.0;
        let negated = negated::<P::BaseField, L, W>(base, c1, 2);
        [base.product(c0, inverse), base.product(&negated, inverse)]
    }

    #[inline(always)]
    fn zeros(self, [c0, c1]: &Self::Native) -> u8 {
        self.0.zeros(c0) & self.0.zeros(c1)
    }

    #[inline(always)]
    fn equals(self, a: &Self::Native, b: &Self::Native) -> u8 {
        self.0.equals(&a[0], &b[0]) & self.0.equals(&a[1], &b[1])
    }

    #[inline(always)]
    fn same(self, a: &Self::Value, b: &Self::Value) -> u8 {
        self.0.same(&a[0], &b[0]) & self.0.same(&a[1], &b[1])
    }

    #[inline(always)]
    fn unit(self) -> Self::Value {
        [self.0.unit(), self.0.splat(&P::BaseField::ZERO)]
    }

    #[inline(always)]
    fn blend(self, mask: u8, a: &Self::Value, b: &Self::Value) -> Self::Value {
        [self.0.blend(mask, &a[0], &b[0]), self.0.blend(mask, &a[1], &b[1])]
    }

    #[inline(always)]
    fn exchanged(self, [c0, c1]: &Self::Value, step: usize) -> Self::Value {
        [self.0.exchanged(c0, step), self.0.exchanged(c1, step)]
    }
}

/// `a * b`.
struct Product<'a, P, L, V, const W: usize> {
    lanes: Quadratic<L>,
    a: &'a [V; 2],
    b: &'a [V; 2],
    field: PhantomData<P>,
}

impl<P, L, const W: usize> LoopPart for Product<'_, P, L, L::Value, W>
where
    P: QuadExtConfig<BaseField: CoordinateField<Prime = P::BaseField> + PrimeField>,
    QuadExtField<P>: CoordinateField<Prime = P::BaseField>,
    L: Lanes<P::BaseField, W, Prime = L>,
{
    type Output = [L::Value; 2];

    #[inline(always)]
    fn run(self) -> Self::Output {
        let Self { lanes, a, b, .. } = self;
        if !L::COLUMNS {
            let negated = negated::<P::BaseField, L, W>(lanes.0, &b[1], 4);
            return [
                lanes.0.two_products([&a[0], &a[1]], [&b[0], &negated]),
                lanes.0.two_products([&a[0], &a[1]], [&b[1], &b[0]]),
            ];
        }
        let mut columns = Lanes::<QuadExtField<P>, W>::no_columns(lanes);
        Lanes::<QuadExtField<P>, W>::add_product(lanes, &mut columns, a, b);
        Lanes::<QuadExtField<P>, W>::reduced_above(lanes, &columns, 1)
    }
}

/// `a * a`.
struct Square<'a, P, L, V, const W: usize> {
    lanes: Quadratic<L>,
    a: &'a [V; 2],
    field: PhantomData<P>,
}

impl<P, L, const W: usize> LoopPart for Square<'_, P, L, L::Value, W>
where
    P: QuadExtConfig<BaseField: CoordinateField<Prime = P::BaseField> + PrimeField>,
    L: Lanes<P::BaseField, W, Prime = L>,
{
    type Output = [L::Value; 2];

    #[inline(always)]
    fn run(self) -> Self::Output {
        let (Quadratic(base), [a0, a1]) = (self.lanes, self.a);
        let sum = base.carried(base.sum(a0, a1));
        let difference = base.carried(base.difference(a0, a1, 4));
        let twice = base.carried(base.sum(a1, a1));
        [base.product(&sum, &difference), base.product(a0, &twice)]
    }
}
