//! The curves of the kernels, and their points as the kernels have them.

use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{Field, Fp256, MontBackend, MontConfig, UniformRand};
use rand::RngCore;

use super::{Words, element, words};

/// A field of four words.
pub type Fp<T> = Fp256<MontBackend<T, 4>>;
/// x, y; zeros for infinity.
pub type AffineWords = [Words; 2];
/// X, Y, ZZ, ZZZ; ZZ = 0 for infinity.
pub type XyzzWords = [Words; 4];

/// A curve that has kernels.
pub trait Curve {
    type Base: MontConfig<4>;
    type Scalar: MontConfig<4>;
    type Config: SWCurveConfig<BaseField = Fp<Self::Base>, ScalarField = Fp<Self::Scalar>>;
    /// As in the kernels' names.
    const NAME: &'static str;
}

pub struct Bn254;
pub struct Pallas;
pub struct Vesta;

impl Curve for Bn254 {
    type Base = ark_bn254::FqConfig;
    type Scalar = ark_bn254::FrConfig;
    type Config = ark_bn254::g1::Config;
    const NAME: &'static str = "bn254";
}

impl Curve for Pallas {
    type Base = ark_pallas::FqConfig;
    type Scalar = ark_pallas::FrConfig;
    type Config = ark_pallas::PallasConfig;
    const NAME: &'static str = "pallas";
}

impl Curve for Vesta {
    type Base = ark_vesta::FqConfig;
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

pub fn affine_words<C: Curve>(point: &Point<C>) -> AffineWords {
    point
        .xy()
        .map_or([[0; 4]; 2], |(x, y)| [words::<C::Base>(&x), words::<C::Base>(&y)])
}

/// The point with a random ZZ.
pub fn xyzz_words<C: Curve>(point: &Point<C>, rng: &mut impl RngCore) -> XyzzWords {
    let t = Fp::<C::Base>::rand(rng);
    let (zz, zzz) = (t.square(), t.square() * t);
    match point.xy() {
        // What X, Y and ZZZ are says nothing there.
        None => [words(&t), words(&zzz), [0; 4], [0; 4]],
        Some((x, y)) => [words(&(x * zz)), words(&(y * zzz)), words(&zz), words(&zzz)],
    }
}

/// The point that coordinates stand for; panics if they stand for none.
pub fn point_of<C: Curve>(at: &XyzzWords) -> Point<C> {
    let [x, y, zz, zzz] = at.map(element::<C::Base>);
    if at[2] == [0; 4] {
        return Point::<C>::zero();
    }
    assert_eq!(zz * zz * zz, zzz * zzz, "ZZ^3 = ZZZ^2");
    let point = Point::<C>::new_unchecked(x / zz, y / zzz);
    assert!(point.is_on_curve());
    point
}
