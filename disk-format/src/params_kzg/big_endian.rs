//! Points of BLS12-381 as Zcash's protocol writes them (its specification, section 5.4.9.2), and blst and most
//! programs with it.
//!
//! A coordinate is in standard form (not Montgomery), **big-endian**, c1 then c0 in G2. The modulus leaves the
//! three top bits of the first byte free: bit 7 says that only x follows, bit 6 infinity (then all bits below
//! are zero), bit 5, of compressed points, that y is the larger of the two (by c1, then by c0).
//!
//! What is accepted encodes to the same bytes again.

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ff::{AdditiveGroup, Zero};

use crate::element::Element;
use crate::error::PointFault;
use crate::native::NativeField;

const COMPRESSED: u8 = 1 << 7;
const INFINITY: u8 = 1 << 6;
const LARGER: u8 = 1 << 5;
const FLAGS: u8 = COMPRESSED | INFINITY | LARGER;

/// Bytes of a coordinate of G2.
const COORDINATE_BYTES_MAX: usize = 96;

/// Writes both coordinates. Panics if `out` is shorter than they are.
pub fn write_uncompressed<P: SWCurveConfig>(point: &Affine<P>, out: &mut [u8])
where
    P::BaseField: NativeField,
{
    let (x_out, y_out) = out.split_at_mut(P::BaseField::BYTES);
    match point.xy() {
        Some((x, y)) => {
            write_coordinate(&x, x_out);
            write_coordinate(&y, y_out);
        }
        None => {
            x_out.fill(0);
            y_out[..P::BaseField::BYTES].fill(0);
            x_out[0] = INFINITY;
        }
    }
}

/// Writes x and the sign of y. Panics if `out` is shorter than a coordinate.
pub fn write_compressed<P: SWCurveConfig>(point: &Affine<P>, out: &mut [u8])
where
    P::BaseField: NativeField,
{
    match point.xy() {
        Some((x, y)) => {
            write_coordinate(&x, out);
            out[0] |= COMPRESSED | if y > -y { LARGER } else { 0 };
        }
        None => {
            out[..P::BaseField::BYTES].fill(0);
            out[0] = COMPRESSED | INFINITY;
        }
    }
}

/// Reads both coordinates. Ranges are checked; whether the point is on the curve is not.
///
/// # Errors
/// [`PointFault::NotReduced`], also for a wrong number of bytes; [`PointFault::Flags`] for those of a
/// compressed point, and for infinity with coordinates; [`PointFault::NotOnCurve`] for two coordinates of
/// zero, which stand for infinity in the native form.
pub fn read_uncompressed<P: SWCurveConfig>(bytes: &[u8]) -> Result<Affine<P>, PointFault>
where
    P::BaseField: NativeField,
{
    if bytes.len() != 2 * P::BaseField::BYTES {
        return Err(PointFault::NotReduced);
    }
    match flags_of(bytes) {
        0 => {}
        INFINITY => return infinity(bytes),
        _ => return Err(PointFault::Flags),
    }
    let (x, y) = bytes.split_at(P::BaseField::BYTES);
    let x: P::BaseField = read_coordinate(x, 0).ok_or(PointFault::NotReduced)?;
    let y: P::BaseField = read_coordinate(y, 0).ok_or(PointFault::NotReduced)?;
    if x.is_zero() && y.is_zero() {
        return Err(PointFault::NotOnCurve);
    }
    Ok(Affine::new_unchecked(x, y))
}

/// Reads the compressed form, which takes a square root; what is returned is on the curve.
///
/// # Errors
/// [`PointFault::NotReduced`], also for a wrong number of bytes; [`PointFault::NotOnCurve`] when no point has
/// this x; [`PointFault::Flags`] for those of a point with two coordinates, for infinity with an x or a sign,
/// and for a y of zero with a sign.
pub fn read_compressed<P: SWCurveConfig>(bytes: &[u8]) -> Result<Affine<P>, PointFault>
where
    P::BaseField: NativeField,
{
    if bytes.len() != P::BaseField::BYTES {
        return Err(PointFault::NotReduced);
    }
    let is_larger = match flags_of(bytes) {
        flags if flags == COMPRESSED | INFINITY => return infinity(bytes),
        COMPRESSED => false,
        flags if flags == COMPRESSED | LARGER => true,
        _ => return Err(PointFault::Flags),
    };
    let x = read_coordinate(bytes, FLAGS).ok_or(PointFault::NotReduced)?;
    let (smaller, larger) = Affine::<P>::get_ys_from_x_unchecked(x).ok_or(PointFault::NotOnCurve)?;
    if is_larger && smaller == P::BaseField::ZERO {
        return Err(PointFault::Flags);
    }
    Ok(Affine::new_unchecked(x, if is_larger { larger } else { smaller }))
}

fn flags_of(bytes: &[u8]) -> u8 {
    bytes.first().map_or(0, |first| first & FLAGS)
}

/// Infinity, if these bytes have nothing but flags.
fn infinity<P: SWCurveConfig>(bytes: &[u8]) -> Result<Affine<P>, PointFault> {
    let mut rest = bytes.iter().enumerate();
    match rest.all(|(at, byte)| if at == 0 { byte & !FLAGS == 0 } else { *byte == 0 }) {
        true => Ok(Affine::identity()),
        false => Err(PointFault::Flags),
    }
}

fn write_coordinate<F: NativeField>(coordinate: &F, out: &mut [u8]) {
    let out = &mut out[..F::BYTES];
    coordinate.write_standard(out);
    // Of an extension, too: c0 then c1, lowest bytes first, is c1 then c0, highest bytes first, from its end.
    out.reverse();
}

/// Without these bits of its first byte.
fn read_coordinate<F: NativeField>(bytes: &[u8], flags: u8) -> Option<F> {
    let mut little = [0u8; COORDINATE_BYTES_MAX];
    let little = little.get_mut(..F::BYTES)?;
    for (to, from) in little.iter_mut().rev().zip(bytes) {
        *to = *from;
    }
    if let Some(last) = little.last_mut() {
        *last &= !flags;
    }
    F::read_standard(little)
}
