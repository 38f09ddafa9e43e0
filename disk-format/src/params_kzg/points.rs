//! Points of `ParamsKZG` files: native, and halo2curves' compressed form.
//!
//! Compressed: x in standard form (not Montgomery), little-endian, c0 then c1 in G2. Both moduli leave the
//! two top bits of the last byte free: bit 7 says infinity (then all other bits are zero), bit 6 is the
//! lowest bit of y (of y's c0 in G2). Decoding takes a square root in the base field, 250 times the work of
//! the raw form.
//!
//! Stricter than halo2curves, which ignores the infinity bit when x is not zero and takes `RawBytes` points
//! that are off the curve: every point is checked to be on its curve, points of G2 to be in the subgroup, and
//! an encoding that no writer makes is refused. What is accepted encodes to the same bytes again.

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ff::{AdditiveGroup, Field, Zero};

use super::{Layout, Region, SerdeFormat};
use crate::element::Element;
use crate::error::{FormatError, PointFault, hex};
use crate::native::{NativeField, check_length, point_bytes, read_point, write_point};

const INFINITY: u8 = 1 << 7;
const ODD: u8 = 1 << 6;

/// Length of a compressed point in bytes.
pub const fn compressed_bytes<P: SWCurveConfig>() -> usize
where
    P::BaseField: NativeField,
{
    P::BaseField::BYTES
}

/// Length of a point in a format, in bytes.
pub const fn format_bytes<P: SWCurveConfig>(format: SerdeFormat) -> usize
where
    P::BaseField: NativeField,
{
    if format.is_compressed() {
        compressed_bytes::<P>()
    } else {
        point_bytes::<P>()
    }
}

/// Writes the compressed form to the first [`compressed_bytes`] bytes of `out`; a shorter `out` gets a
/// prefix. The modulus of the base field must leave two bits of its bytes free, as BN254's does.
pub fn write_compressed<P: SWCurveConfig>(point: &Affine<P>, out: &mut [u8])
where
    P::BaseField: NativeField,
{
    let bytes = compressed_bytes::<P>();
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
        .get_mut(..compressed_bytes::<P>())
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

/// Reads one point in a format, with every check that a file from elsewhere needs: range, curve, subgroup.
///
/// # Errors
/// A [`PointFault`].
pub fn read_checked<P: SWCurveConfig>(format: SerdeFormat, bytes: &[u8]) -> Result<Affine<P>, PointFault>
where
    P::BaseField: NativeField,
{
    let point = if format.is_compressed() {
        read_compressed::<P>(bytes)?
    } else {
        read_point::<P>(bytes)?
    };
    // Curves with cofactor 1 (G1 of BN254, Pallas, Vesta) have no other subgroup.
    if P::COFACTOR != [1] && !point.is_in_correct_subgroup_assuming_on_curve() {
        return Err(PointFault::NotInSubgroup);
    }
    Ok(point)
}

/// Writes one point in a format; a short `out` gets a prefix.
pub fn write_format<P: SWCurveConfig>(format: SerdeFormat, point: &Affine<P>, out: &mut [u8])
where
    P::BaseField: NativeField,
{
    if format.is_compressed() {
        write_compressed(point, out)
    } else {
        write_point(point, out)
    }
}

/// Decodes and checks a run of `count` points of a region: the bytes at
/// [`Layout::run_offset`]`(region, first_index, count)`. Each point goes to `take` with its index in the run,
/// up to the first that is refused.
///
/// # Errors
/// [`FormatError::OutOfRange`], [`FormatError::Length`] when the run is not in the region or the bytes are
/// not that many; [`FormatError::Point`] with index, offset in the file and bytes of the first bad point.
pub fn decode_each<P: SWCurveConfig>(
    layout: &Layout,
    region: Region,
    first_index: u64,
    count: usize,
    bytes: &[u8],
    mut take: impl FnMut(usize, Affine<P>),
) -> Result<(), FormatError>
where
    P::BaseField: NativeField,
{
    let item_bytes = format_bytes::<P>(layout.format());
    check_length("the run of points", count, item_bytes, bytes.len())?;
    let run = Run::new::<P>(layout, region, first_index, count)?;
    for (i, chunk) in bytes.chunks_exact(item_bytes).enumerate() {
        let point = read_checked(layout.format(), chunk).map_err(|fault| run.refuse(i, chunk, fault))?;
        take(i, point);
    }
    Ok(())
}

/// As [`decode_each`], to a slice of as many points.
///
/// # Errors
/// As [`decode_each`].
pub fn decode_points<P: SWCurveConfig>(
    layout: &Layout,
    region: Region,
    first_index: u64,
    bytes: &[u8],
    out: &mut [Affine<P>],
) -> Result<(), FormatError>
where
    P::BaseField: NativeField,
{
    decode_each(layout, region, first_index, out.len(), bytes, |i, point| {
        out[i] = point
    })
}

/// As [`decode_each`], from file bytes straight to native bytes, of which there must be room for as many
/// points. For raw formats it is a check and a copy.
///
/// # Errors
/// As [`decode_each`].
pub fn decode_to_native<P: SWCurveConfig>(
    layout: &Layout,
    region: Region,
    first_index: u64,
    bytes: &[u8],
    out: &mut [u8],
) -> Result<(), FormatError>
where
    P::BaseField: NativeField,
{
    let item_bytes = point_bytes::<P>();
    let count = out.len() / item_bytes;
    check_length("the buffer for native points", count, item_bytes, out.len())?;
    decode_each::<P>(layout, region, first_index, count, bytes, |i, point| {
        write_point(&point, &mut out[i * item_bytes..(i + 1) * item_bytes]);
    })
}

/// Encodes points to `out`, which must have room for exactly these.
///
/// # Errors
/// [`FormatError::Length`].
pub fn encode_points<P: SWCurveConfig>(
    format: SerdeFormat,
    points: &[Affine<P>],
    out: &mut [u8],
) -> Result<(), FormatError>
where
    P::BaseField: NativeField,
{
    let item_bytes = format_bytes::<P>(format);
    check_length("the buffer for points", points.len(), item_bytes, out.len())?;
    for (point, place) in points.iter().zip(out.chunks_exact_mut(item_bytes)) {
        write_format(format, point, place);
    }
    Ok(())
}

/// From native bytes of our own container (checked when they were imported, and by digest since) to file
/// bytes: what an exporter writes. Ranges are checked, the curve is not.
///
/// # Errors
/// [`FormatError::Length`]; [`FormatError::Point`] with the index in the region, and the offset that the
/// point would have in the file.
pub fn encode_from_native<P: SWCurveConfig>(
    layout: &Layout,
    region: Region,
    first_index: u64,
    native: &[u8],
    out: &mut [u8],
) -> Result<(), FormatError>
where
    P::BaseField: NativeField,
{
    let item_bytes = format_bytes::<P>(layout.format());
    let count = native.len() / point_bytes::<P>();
    check_length(
        "the run of native points",
        count,
        point_bytes::<P>(),
        native.len(),
    )?;
    check_length("the buffer for points", count, item_bytes, out.len())?;
    let run = Run::new::<P>(layout, region, first_index, count)?;
    let places = out.chunks_exact_mut(item_bytes);
    for (i, (place, chunk)) in places.zip(native.chunks_exact(point_bytes::<P>())).enumerate() {
        let point =
            crate::native::read_point_trusted::<P>(chunk).map_err(|fault| run.refuse(i, chunk, fault))?;
        write_format(layout.format(), &point, place);
    }
    Ok(())
}

/// Where a run is, for errors.
struct Run {
    region: Region,
    first_index: u64,
    offset: u64,
    item_bytes: u64,
}

impl Run {
    fn new<P: SWCurveConfig>(
        layout: &Layout,
        region: Region,
        first_index: u64,
        count: usize,
    ) -> Result<Self, FormatError>
    where
        P::BaseField: NativeField,
    {
        let offset = layout.run_offset(region, first_index, count as u64)?;
        let item_bytes = format_bytes::<P>(layout.format()) as u64;
        // A region of G1 asked for as G2, or the reverse.
        check_length(
            "a point of this region",
            1,
            layout.point_bytes(region) as usize,
            item_bytes as usize,
        )?;
        Ok(Self {
            region,
            first_index,
            offset,
            item_bytes,
        })
    }

    fn refuse(&self, i: usize, bytes: &[u8], fault: PointFault) -> FormatError {
        FormatError::Point {
            what: self.region.name(),
            index: self.first_index + i as u64,
            offset: self.offset + i as u64 * self.item_bytes,
            fault,
            value: hex(bytes),
        }
    }
}
