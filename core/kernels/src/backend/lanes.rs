//! The interface of a backend: arithmetic on W elements at a time.
//!
//! Elements come from memory in native form ([`crate::field`]) as a [`Lanes::Native`], are unpacked to a
//! [`Lanes::Value`], and go back when they are canonical. Values are *carried* (operands and results of
//! products) or *loose* (sums and differences); each function says which multiples of p it takes, and a
//! kernel's header keeps the books for p <= R / 32. A backend that works with canonical values throughout
//! does nothing where others carry and reduce.
//!
//! Shift. A backend may have a Montgomery form of its own: with R 2^s in place of the native R, products of
//! native values are too small by 2^s. One operand is then taken *shifted*, 2^s times: when it is unpacked,
//! or, for a constant, once. [`Lanes::SHIFT`] is s.
//!
//! Loops over lanes implement [`Kernel`], with `#[inline(always)]` on `run` and everything below it, since
//! only there the compiler knows the instructions. Closures are not compiled for them: no closure may do
//! arithmetic in lanes.

use super::Backend;
use crate::field::CoordinateField;

/// A loop over lanes.
pub trait Kernel<F: CoordinateField> {
    /// Its result.
    type Output;
    /// The loop. It has to be `#[inline(always)]`.
    fn run<const W: usize, L: Lanes<F, W>>(self, lanes: L) -> Self::Output;
}

/// Code without lanes of its own that calls loops over lanes. It is compiled once, for all backends.
pub trait Once {
    /// Its result.
    type Output;
    /// Runs the code; the loops that it calls are `backend`'s.
    fn run(self, backend: Backend) -> Self::Output;
}

/// A loop over lanes that have more than the arithmetic.
pub trait WideKernel<F: CoordinateField> {
    /// Its result.
    type Output;
    /// The loop. It has to be `#[inline(always)]`.
    fn run<const W: usize, L: WideLanes<F, W>>(self, lanes: L) -> Self::Output;
}

/// A part of a loop. `run` has to be `#[inline(always)]`.
pub trait LoopPart {
    /// Its result.
    type Output;
    /// The part.
    fn run(self) -> Self::Output;
}

/// Work that is done while a product is made. The multiplier is busy then, and a product is longer than the
/// out-of-order window, so that the processor overlaps both only where their instructions are interleaved.
pub trait Beside {
    /// Part `step` of `steps`, which come in order.
    fn step(&mut self, step: usize, steps: usize);
}

impl Beside for () {
    #[inline(always)]
    fn step(&mut self, _: usize, _: usize) {}
}

/// The arithmetic of the field `F`, W elements at a time.
pub trait Lanes<F: CoordinateField, const W: usize>: Copy + Send + 'static {
    /// W elements as they lie in memory.
    type Native: Copy;
    /// W elements.
    type Value: Copy + Send + 'static;
    /// W elements that wait in memory.
    type Kept: Copy + Send + 'static;
    /// W sums of products, before their reduction.
    type Columns: Copy;
    /// W canonical elements on their way to memory.
    type Transposed: Copy;
    /// The lanes of the prime field.
    type Prime: Lanes<F::Prime, W>;
    /// Chains of products side by side that hide a product's latency; at most [`CHAINS_MAX`].
    const CHAINS: usize;
    /// s: see the module's page.
    const SHIFT: u32;
    /// Whether the field is an extension, so that the norm of an element is another one.
    const EXTENSION: bool;
    /// Whether [`Self::Columns`] cost so little beside multiplications that three products in columns are
    /// cheaper than four that are reduced two by two.
    const COLUMNS: bool;

    /// The lanes of the prime field.
    fn prime(self) -> Self::Prime;

    /// Runs a part of a loop as a function of its own: a long one that stands in many places is compiled
    /// once.
    fn outlined<K: LoopPart>(self, part: K) -> K::Output;

    /// Elements from places in any memory.
    fn gather(self, from: [&F; W]) -> Self::Native;
    /// The same integers, carried.
    fn unpack(self, values: &Self::Native) -> Self::Value;
    /// The integers shifted, carried: a product with them is one of native values.
    fn unpack_shifted(self, values: &Self::Native) -> Self::Value;
    /// The same native element in all lanes.
    fn splat(self, value: &F) -> Self::Value;
    /// A carried value on its way to the lanes' own memory.
    fn keep(self, value: &Self::Value) -> Self::Kept;
    /// The reverse of [`Self::keep`].
    fn kept(self, value: &Self::Kept) -> Self::Value;
    /// Canonical values, ready to be stored.
    fn rows(self, value: &Self::Value) -> Self::Transposed;
    /// Row `lane` (below W) to its place in memory.
    fn store_row(self, rows: &Self::Transposed, lane: usize, to: &mut F);
    /// Asks for the cache lines of `value`.
    fn prefetch<T>(self, value: &T);

    /// `a * b`, carried, and other work between: below `a b / R + 2p`. In an extension components of `b` are
    /// below 4p.
    fn product_beside(self, a: &Self::Value, b: &Self::Value, beside: &mut impl Beside) -> Self::Value;
    /// `a * a`, as a product.
    fn square(self, a: &Self::Value) -> Self::Value;
    /// `a[0] * b[0] + a[1] * b[1]` of carried values, carried: below the sum of `a b / R` and 2p.
    #[inline(always)]
    fn two_products(self, a: [&Self::Value; 2], b: [&Self::Value; 2]) -> Self::Value {
        let mut columns = self.no_columns();
        self.add_product(&mut columns, a[0], b[0]);
        self.add_product(&mut columns, a[1], b[1]);
        self.reduced(&columns)
    }
    /// No sum.
    fn no_columns(self) -> Self::Columns;
    /// Adds `a * b`, of carried values. 64 products can be added up.
    fn add_product(self, columns: &mut Self::Columns, a: &Self::Value, b: &Self::Value);
    /// `a - b`.
    fn columns_difference(self, a: &Self::Columns, b: &Self::Columns) -> Self::Columns;
    /// A sum of products, reduced as a product is.
    fn reduced(self, columns: &Self::Columns) -> Self::Value;
    /// The same plus `multiple * p`, for columns whose sum may be negative; the result may not be.
    fn reduced_above(self, columns: &Self::Columns, multiple: usize) -> Self::Value;
    /// `a + b`, loose.
    fn sum(self, a: &Self::Value, b: &Self::Value) -> Self::Value;
    /// `a - b + multiple * p`, loose.
    fn difference(self, a: &Self::Value, b: &Self::Value, multiple: usize) -> Self::Value;
    /// `p - a` in the lanes of `mask`, `a` in the others; loose.
    fn signed(self, a: &Self::Value, mask: u8) -> Self::Value;
    /// `2^h a`, carried, of a loose value that is not negative, where h is half of s, rounded up.
    fn half_shifted(self, a: &Self::Value) -> Self::Value;
    /// A loose value that is not negative, carried.
    fn carried(self, a: Self::Value) -> Self::Value;
    /// A loose value from p to 7p, or a carried one below 7p, modulo p: canonical, carried.
    fn canonical(self, a: Self::Value) -> Self::Value;

    /// The norm of a carried value below 2p, an element of the prime field: see [`CoordinateField::norm`].
    fn norm(self, a: &Self::Value) -> PrimeValue<F, W, Self>;
    /// `1 / a`, for a carried value below 2p and the inverse of its norm.
    fn over_norm(self, a: &Self::Value, inverse: &PrimeValue<F, W, Self>) -> Self::Value;

    /// The lanes that are zero.
    fn zeros(self, a: &Self::Native) -> u8;
    /// The lanes that are equal.
    fn equals(self, a: &Self::Native, b: &Self::Native) -> u8;
    /// The lanes that are equal, of canonical values.
    fn same(self, a: &Self::Value, b: &Self::Value) -> u8;
    /// The integer 1 in all lanes: some element that is not zero.
    fn unit(self) -> Self::Value;
    /// `a` in the lanes of `mask`, `b` in the others.
    fn blend(self, mask: u8, a: &Self::Value, b: &Self::Value) -> Self::Value;
    /// Lanes whose numbers differ by the bit `step` exchanged.
    fn exchanged(self, a: &Self::Value, step: usize) -> Self::Value;

    /// `a * b`, carried.
    #[inline(always)]
    fn product(self, a: &Self::Value, b: &Self::Value) -> Self::Value {
        self.product_beside(a, b, &mut ())
    }

    /// A native constant, shifted.
    #[inline(always)]
    fn shifted(self, value: &F) -> F {
        match Self::SHIFT {
            0 => *value,
            shift => value.times(&F::from(1u64 << shift)),
        }
    }

    /// Up to W neighbouring elements; lanes beyond them hold the first one.
    #[inline(always)]
    fn gather_run(self, from: &[F]) -> Self::Native {
        match from.first_chunk::<W>() {
            Some(run) => self.gather(run.each_ref()),
            None => {
                let mut run = [from[0]; W];
                run[..from.len()].copy_from_slice(from);
                self.gather(run.each_ref())
            }
        }
    }

    /// [`Self::gather_run`], unpacked.
    #[inline(always)]
    fn load(self, from: &[F]) -> Self::Value {
        self.unpack(&self.gather_run(from))
    }

    /// [`Self::gather_run`], unpacked and shifted.
    #[inline(always)]
    fn load_shifted(self, from: &[F]) -> Self::Value {
        self.unpack_shifted(&self.gather_run(from))
    }

    /// Canonical values to places in any memory.
    #[inline(always)]
    fn scatter(self, value: &Self::Value, to: [&mut F; W]) {
        let rows = self.rows(value);
        for (lane, to) in to.into_iter().enumerate() {
            self.store_row(&rows, lane, to);
        }
    }

    /// Canonical values to neighbouring places; those beyond the last place are left out.
    #[inline(always)]
    fn store(self, value: &Self::Value, to: &mut [F]) {
        if let Some(to) = to.first_chunk_mut::<W>() {
            return self.scatter(value, to.each_mut());
        }
        let mut all = [F::ZERO; W];
        self.scatter(value, all.each_mut());
        to.copy_from_slice(&all[..to.len()]);
    }

    /// The native element in lane `lane` replaced.
    #[inline(always)]
    fn replace(self, a: &mut Self::Value, lane: usize, value: &F) {
        *a = self.blend(1 << lane, &self.splat(value), a);
    }

    /// The lanes of `mask` made [`Self::unit`].
    #[inline(always)]
    fn replace_by_unit(self, a: &mut Self::Value, mask: u8) {
        *a = self.blend(mask, &self.unit(), a);
    }
}

/// The most chains that any backend asks for.
pub const CHAINS_MAX: usize = 4;

/// W elements of the prime field.
pub type PrimeValue<F, const W: usize, L> =
    <<L as Lanes<F, W>>::Prime as Lanes<<F as CoordinateField>::Prime, W>>::Value;

/// W elements of the prime field that wait in memory.
pub type PrimeKept<F, const W: usize, L> =
    <<L as Lanes<F, W>>::Prime as Lanes<<F as CoordinateField>::Prime, W>>::Kept;

/// A constant for many products, in a backend's own form.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Factor(pub(super) [u64; 10]);

/// Lanes with room for butterflies, for fields with 63 p < R. Values between layers are carried and below 29
/// p.
pub trait WideLanes<F: CoordinateField, const W: usize>: Lanes<F, W> {
    /// Elements' room that W values take in [`Self::save`].
    const SAVED_ELEMENTS: usize;

    /// A constant for [`Self::scaled`] and for butterflies.
    fn factor(self, value: &F) -> Factor;
    /// `a * factor`, carried, below 11 p.
    fn scaled(self, a: &Self::Value, factor: &Factor) -> Self::Value;
    /// A carried value below 32 p, less a multiple of p: below 5 p, loose, its top limb not negative; or the
    /// value itself, where [`Lanes::canonical`] takes it as it is.
    fn lowered(self, a: &Self::Value) -> Self::Value;
    /// `a + b`, for carried operands whose sum is below 32 p: carried, below 5 p.
    fn sum_lowered(self, a: &Self::Value, b: &Self::Value) -> Self::Value;
    /// `a - b`, for carried operands below 16 p: carried, below 5 p.
    fn difference_lowered(self, a: &Self::Value, b: &Self::Value) -> Self::Value;
    /// `-a`, for a carried operand below 16 p: carried, below 5 p.
    fn negative_lowered(self, a: &Self::Value) -> Self::Value;

    /// One layer of a first group, whose factor is 1: `(low + high, low - high)`.
    fn butterfly_one(self, low: &mut Self::Kept, high: &mut Self::Kept);
    /// Two layers: with `factors[0]`, values 0 and 2, and 1 and 3; then with `factors[1]` 0 and 1, with
    /// `factors[2]` 2 and 3.
    fn two_layers(self, values: [&mut Self::Kept; 4], factors: [&Factor; 3]);
    /// [`Self::two_layers`] of a first group, where all factors but the last are 1.
    fn two_layers_one(self, values: [&mut Self::Kept; 4], factor: &Factor);

    /// A value in the room of [`Self::SAVED_ELEMENTS`] elements, which are none meanwhile.
    fn save(self, value: &Self::Value, to: &mut [F]);
    /// The reverse of [`Self::save`]. Panics if there are fewer elements.
    fn restore(self, from: &[F]) -> Self::Value;

    /// At least `len` values of any content: the buffer that the thread kept, if it did and it is long
    /// enough.
    fn take_buffer(self, len: usize) -> Vec<Self::Kept>;
    /// Keeps a buffer for this thread's next [`Self::take_buffer`], unless it is too large to be kept.
    fn keep_buffer(self, buffer: Vec<Self::Kept>);
}
