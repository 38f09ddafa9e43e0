//! halo2curves' compressed points.
//!
//! x in standard form (not Montgomery), little-endian, c0 then c1 in G2. Both moduli leave the two top bits of
//! the last byte free: bit 7 says infinity (then all other bits are zero), bit 6 is the lowest bit of y (of
//! y's c0 in G2). Decoding takes a square root in the base field, 250 times the work of the raw form.

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ff::{AdditiveGroup, Field, Zero};

use crate::element::Element;
use crate::error::PointFault;
use crate::native::NativeField;

const INFINITY: u8 = 1 << 7;
const ODD: u8 = 1 << 6;

/// Writes the compressed form to the first bytes of `out`, as many as a coordinate has; a shorter `out` gets a
/// prefix. The modulus of the base field must leave two bits of its bytes free, as BN254's does.
pub fn write_compressed<P: SWCurveConfig>(point: &Affine<P>, out: &mut [u8])
where
    P::BaseField: NativeField,
{
    let bytes = P::BaseField::BYTES;
    let (mut x, mut flags) = (P::BaseField::ZERO, INFINITY);
    if let Some((affine_x, y)) = point.xy() {
        x = affine_x;
        flags = if y.is_odd() { ODD } else { 0 };
    }
    x.write_standard(out);
    if let Some(last) = out.get_mut(bytes - 1) {
        *last |= flags;
    }
}

/// Reads the compressed form; what is returned is on the curve.
///
/// # Errors
/// [`PointFault::NotReduced`], also for a wrong number of bytes; [`PointFault::NotOnCurve`] when no point has
/// this x; [`PointFault::Flags`] when infinity comes with an x or a sign, or a y of zero with a sign.
pub fn read_compressed<P: SWCurveConfig>(bytes: &[u8]) -> Result<Affine<P>, PointFault>
where
    P::BaseField: NativeField,
{
    // G2 is the longest.
    let mut x_bytes = [0u8; 64];
    let x_bytes = x_bytes
        .get_mut(..P::BaseField::BYTES)
        .ok_or(PointFault::NotReduced)?;
    if bytes.len() != x_bytes.len() {
        return Err(PointFault::NotReduced);
    }
    x_bytes.copy_from_slice(bytes);
    let mut flags = 0;
    if let Some(last) = x_bytes.last_mut() {
        flags = *last & (INFINITY | ODD);
        *last &= !(INFINITY | ODD);
    }
    let x = P::BaseField::read_standard(x_bytes).ok_or(PointFault::NotReduced)?;
    if flags & INFINITY != 0 {
        return if flags == INFINITY && x.is_zero() {
            Ok(Affine::identity())
        } else {
            Err(PointFault::Flags)
        };
    }
    let y_squared = P::add_b(x.square() * x)
        + if P::COEFF_A.is_zero() {
            P::BaseField::ZERO
        } else {
            P::mul_by_a(x)
        };
    let mut y = y_squared.sqrt().ok_or(PointFault::NotOnCurve)?;
    if y.is_odd() != (flags & ODD != 0) {
        y = -y;
        // Only where c0 is zero (y itself, or in G2) does negation not change the lowest bit.
        if y.is_odd() != (flags & ODD != 0) {
            return Err(PointFault::Flags);
        }
    }
    Ok(Affine::new_unchecked(x, y))
}
