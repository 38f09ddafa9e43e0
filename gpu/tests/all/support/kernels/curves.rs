//! The curves of the kernels, and their points as the kernels have them.

use std::fmt::Debug;

use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ec::{AffineRepr, CurveConfig, CurveGroup};
use ark_ff::{Field, Fp256, MontBackend, MontConfig, UniformRand};
use rand::RngCore;

use super::{Words, element, words};

/// A field of four words.
pub type Fp<T> = Fp256<MontBackend<T, 4>>;
/// x, y; zeros for infinity.
pub type AffineWords<C> = [<Base<C> as Coordinate>::Words; 2];
/// X, Y, ZZ, ZZZ; ZZ = 0 for infinity.
pub type XyzzWords<C> = [<Base<C> as Coordinate>::Words; 4];
/// The coordinates of a curve.
pub type Base<C> = <<C as Curve>::Config as CurveConfig>::BaseField;

/// A field of coordinates, in the words of the kernels.
pub trait Coordinate: Field {
    type Words: Copy + PartialEq + Debug;
    const ZEROS: Self::Words;

    fn to_words(&self) -> Self::Words;
    fn of_words(words: &Self::Words) -> Self;
}

impl<T: MontConfig<4>> Coordinate for Fp<T> {
    type Words = Words;
    const ZEROS: Words = [0; 4];

    fn to_words(&self) -> Words {
        words(self)
    }

    fn of_words(words: &Words) -> Self {
        element(*words)
    }
}

impl Coordinate for ark_bn254::Fq2 {
    type Words = [Words; 2];
    const ZEROS: [Words; 2] = [[0; 4]; 2];

    fn to_words(&self) -> [Words; 2] {
        [words(&self.c0), words(&self.c1)]
    }

    fn of_words([c0, c1]: &[Words; 2]) -> Self {
        Self::new(element(*c0), element(*c1))
    }
}

/// A curve that has kernels.
pub trait Curve {
    type Scalar: MontConfig<4>;
    type Config: SWCurveConfig<BaseField: Coordinate, ScalarField = Fp<Self::Scalar>>;
    /// As in the kernels' names.
    const NAME: &'static str;
    /// As in the name of the kernel that makes digits.
    const DIGITS: &'static str = Self::NAME;
}

pub struct Bn254;
pub struct Bn254G2;
pub struct Pallas;
pub struct Vesta;

impl Curve for Bn254 {
    type Scalar = ark_bn254::FrConfig;
    type Config = ark_bn254::g1::Config;
    const NAME: &'static str = "bn254";
}

impl Curve for Bn254G2 {
    type Scalar = ark_bn254::FrConfig;
    type Config = ark_bn254::g2::Config;
    const NAME: &'static str = "bn254_g2";
    const DIGITS: &'static str = "bn254";
}

impl Curve for Pallas {
    type Scalar = ark_pallas::FrConfig;
    type Config = ark_pallas::PallasConfig;
    const NAME: &'static str = "pallas";
}

impl Curve for Vesta {
    type Scalar = ark_vesta::FrConfig;
    type Config = ark_vesta::VestaConfig;
    const NAME: &'static str = "vesta";
}

pub type Point<C> = Affine<<C as Curve>::Config>;
pub type Sum<C> = Projective<<C as Curve>::Config>;

/// Random points, of which about one in `one_infinite` is infinity.
pub fn points<C: Curve>(n: usize, one_infinite: u32, rng: &mut impl RngCore) -> Vec<Point<C>> {
    let step = Sum::<C>::rand(rng);
    let mut next = Sum::<C>::rand(rng);
    let all: Vec<_> = (0..n)
        .map(|_| {
            next += step;
            next
        })
        .collect();
    let mut all = Sum::<C>::normalize_batch(&all);
    for point in &mut all {
        if rng.next_u32().is_multiple_of(one_infinite) {
            *point = Point::<C>::zero();
        }
    }
    all
}

pub fn affine_words<C: Curve>(point: &Point<C>) -> AffineWords<C> {
    let words = point.xy().map(|(x, y)| [x.to_words(), y.to_words()]);
    words.unwrap_or([Base::<C>::ZEROS; 2])
}

/// The point with a random ZZ.
pub fn xyzz_words<C: Curve>(point: &Point<C>, rng: &mut impl RngCore) -> XyzzWords<C> {
    let t = Base::<C>::rand(rng);
    let (zz, zzz) = (t.square(), t.square() * t);
    match point.xy() {
        // What X, Y and ZZZ are says nothing there.
        None => [t.to_words(), zzz.to_words(), Base::<C>::ZEROS, Base::<C>::ZEROS],
        Some((x, y)) => [x * zz, y * zzz, zz, zzz].map(|coordinate| coordinate.to_words()),
    }
}

/// The point that coordinates stand for; panics if they stand for none.
pub fn point_of<C: Curve>(at: &XyzzWords<C>) -> Point<C> {
    let [x, y, zz, zzz] = at.each_ref().map(Base::<C>::of_words);
    if at[2] == Base::<C>::ZEROS {
        return Point::<C>::zero();
    }
    assert_eq!(zz * zz * zz, zzz * zzz, "ZZ^3 = ZZZ^2");
    let point = Point::<C>::new_unchecked(x / zz, y / zzz);
    assert!(point.is_on_curve());
    point
}
