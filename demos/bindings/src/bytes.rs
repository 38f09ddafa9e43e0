//! Scalars and points as bytes.
//!
//! A scalar is 32 bytes: its canonical value, below the modulus of BN254's scalar field, little-endian. A
//! point of G1 is 64 bytes: x, then y, each the canonical value of a coordinate in 32 bytes, little-endian;
//! infinity is all zeros, which is not on the curve. A point of G2 is 128 bytes: x.c0, x.c1, y.c0, y.c1. None
//! of them is in Montgomery form. Memory: nothing is copied; values are converted as the engine takes them.

use ark_bn254::{Fq, Fq2, G1Affine, G2Affine};
use ark_ec::AffineRepr;
use ark_ff::Zero;
use spillproof_commit::Scalar;
use spillproof_engine::stream::ForeignScalars;
use spillproof_format::PointFault;
use spillproof_format::native::NativeField;

use crate::{Error, Result};

/// Bytes of a scalar.
pub const SCALAR_BYTES: usize = 32;
/// Bytes of a point of G1.
pub const POINT_BYTES: usize = 64;
/// Bytes of a point of G2.
pub const G2_BYTES: usize = 128;

/// A scalar.
///
/// # Errors
/// [`Error::Scalar`], [`Error::Bytes`].
pub fn scalar(what: &'static str, bytes: &[u8]) -> Result<Scalar> {
    let values = Scalars::new(what, bytes)?;
    match values.count() {
        1 => Ok(values.at(0)),
        given => Err(Error::Count {
            what,
            given: given as u64,
            expected: 1,
        }),
    }
}

/// The bytes of a scalar.
pub fn of_scalar(value: &Scalar) -> [u8; SCALAR_BYTES] {
    let mut bytes = [0; SCALAR_BYTES];
    value.write_standard(&mut bytes);
    bytes
}

/// A point of G1, which is on the curve; all of its points are in the group.
///
/// # Errors
/// What is wrong with it.
pub fn point(bytes: &[u8; POINT_BYTES]) -> Result<G1Affine, PointFault> {
    let (x, y) = bytes.split_at(POINT_BYTES / 2);
    let [x, y] = [x, y].map(|bytes| Fq::read_standard(bytes).ok_or(PointFault::NotReduced));
    let (x, y) = (x?, y?);
    if x.is_zero() && y.is_zero() {
        return Ok(G1Affine::identity());
    }
    let point = G1Affine::new_unchecked(x, y);
    match point.is_on_curve() {
        true => Ok(point),
        false => Err(PointFault::NotOnCurve),
    }
}

/// The bytes of a point of G1.
pub fn of_point(point: &G1Affine) -> [u8; POINT_BYTES] {
    let mut bytes = [0; POINT_BYTES];
    if let Some((x, y)) = point.xy() {
        let (x_bytes, y_bytes) = bytes.split_at_mut(POINT_BYTES / 2);
        x.write_standard(x_bytes);
        y.write_standard(y_bytes);
    }
    bytes
}

/// The bytes of a point of G2.
pub fn of_g2(point: &G2Affine) -> [u8; G2_BYTES] {
    let mut bytes = [0; G2_BYTES];
    if let Some((x, y)) = point.xy() {
        let (x_bytes, y_bytes) = bytes.split_at_mut(G2_BYTES / 2);
        Fq2::write_standard(&x, x_bytes);
        Fq2::write_standard(&y, y_bytes);
    }
    bytes
}

/// Scalars in the caller's memory, each of which is below the modulus.
#[derive(Clone, Copy, Debug)]
pub struct Scalars<'a>(&'a [[u8; SCALAR_BYTES]]);

impl<'a> Scalars<'a> {
    /// Looks at each of them.
    ///
    /// # Errors
    /// [`Error::Bytes`] for a part of a scalar, [`Error::Scalar`] for one that is not below the modulus.
    pub fn new(what: &'static str, bytes: &'a [u8]) -> Result<Self> {
        let scalars = elements(what, bytes)?;
        match scalars.iter().position(|scalar| !is_below_modulus(scalar)) {
            None => Ok(Self(scalars)),
            Some(index) => Err(Error::Scalar {
                what,
                index: index as u64,
            }),
        }
    }

    fn at(&self, index: usize) -> Scalar {
        self.0.get(index).map(read).unwrap_or_default()
    }

    /// The scalars, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Scalar> + use<'a> {
        self.0.iter().map(read)
    }

    /// The same in pieces of so many.
    pub(crate) fn pieces(&self, count: usize) -> impl Iterator<Item = Self> + use<'a> {
        self.0.chunks(count).map(Self)
    }
}

impl ForeignScalars<Scalar> for Scalars<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn fill(&self, start: usize, out: &mut [Scalar]) {
        for (out, bytes) in out.iter_mut().zip(self.0.get(start..).unwrap_or_default()) {
            *out = read(bytes);
        }
    }
}

/// A scalar that was found to be below the modulus. A caller that changes its buffer meanwhile gets the
/// result for other values.
fn read(bytes: &[u8; SCALAR_BYTES]) -> Scalar {
    Scalar::read_standard(bytes).unwrap_or_default()
}

/// Compares from the highest limb down: nearly always one comparison.
fn is_below_modulus(bytes: &[u8; SCALAR_BYTES]) -> bool {
    let (limbs, _) = bytes.as_chunks::<8>();
    let limbs = limbs.iter().rev().map(|limb| u64::from_le_bytes(*limb));
    limbs.lt(MODULUS_LIMBS.iter().rev().copied())
}

const MODULUS_LIMBS: [u64; 4] = <Scalar as ark_ff::PrimeField>::MODULUS.0;

/// Bytes as elements of `N` of them.
///
/// # Errors
/// [`Error::Bytes`].
pub(crate) fn elements<'a, const N: usize>(what: &'static str, bytes: &'a [u8]) -> Result<&'a [[u8; N]]> {
    match bytes.as_chunks::<N>() {
        (elements, []) => Ok(elements),
        _ => Err(Error::Bytes {
            what,
            bytes: bytes.len(),
            element_bytes: N,
        }),
    }
}

/// Room for elements of `N` bytes, for exactly `count` of them.
///
/// # Errors
/// [`Error::Bytes`], [`Error::Count`].
pub(crate) fn room<'a, const N: usize>(
    what: &'static str,
    bytes: &'a mut [u8],
    count: u64,
) -> Result<&'a mut [[u8; N]]> {
    let len = bytes.len();
    let (elements, rest) = bytes.as_chunks_mut::<N>();
    if !rest.is_empty() {
        return Err(Error::Bytes {
            what,
            bytes: len,
            element_bytes: N,
        });
    }
    if elements.len() as u64 != count {
        return Err(Error::Count {
            what,
            given: elements.len() as u64,
            expected: count,
        });
    }
    Ok(elements)
}
