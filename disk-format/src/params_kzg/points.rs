//! Points of `ParamsKZG` files, one by one and in runs.
//!
//! Stricter than the programs that write them. halo2curves ignores the infinity bit when x is not zero, and
//! takes `RawBytes` points that are off the curve; midnight-proofs takes `RawBytesUnchecked` points outside of
//! the subgroup. Here every point of a file is checked to be on its curve and in the subgroup ([`Check`]),
//! and an encoding that no writer makes is refused. What is accepted encodes to the same bytes again.

use ark_ec::short_weierstrass::{Affine, SWCurveConfig};

use super::{Dialect, Encoding, Layout, Region, big_endian, halo2};
use crate::element::Element;
use crate::error::{FormatError, PointFault, hex};
use crate::native::{NativeField, check_length, point_bytes, read_point_trusted, write_point};

/// How far a point is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// Coordinates are below the modulus, and flags do not contradict each other. Arithmetic is defined for such
    /// points only.
    Range,
    /// And the point is on the curve.
    Curve,
    /// And in the subgroup of prime order.
    Subgroup,
}

/// Length of a point in bytes.
pub const fn encoded_bytes<P: SWCurveConfig>(encoding: Encoding) -> usize
where
    P::BaseField: NativeField,
{
    if encoding.format.is_compressed() {
        P::BaseField::BYTES
    } else {
        point_bytes::<P>()
    }
}

/// Reads one point. A compressed one is on the curve whatever is asked.
///
/// # Errors
/// A [`PointFault`].
pub fn read<P: SWCurveConfig>(encoding: Encoding, check: Check, bytes: &[u8]) -> Result<Affine<P>, PointFault>
where
    P::BaseField: NativeField,
{
    let is_compressed = encoding.format.is_compressed();
    let point = match (encoding.dialect, is_compressed) {
        (Dialect::Halo2, true) => halo2::read_compressed::<P>(bytes)?,
        (Dialect::Halo2, false) => read_point_trusted::<P>(bytes)?,
        (Dialect::Midnight, true) => big_endian::read_compressed::<P>(bytes)?,
        (Dialect::Midnight, false) => big_endian::read_uncompressed::<P>(bytes)?,
    };
    if !is_compressed && check >= Check::Curve && !point.is_on_curve() {
        return Err(PointFault::NotOnCurve);
    }
    // Curves with cofactor 1 (G1 of BN254) have no other subgroup.
    if check == Check::Subgroup && P::COFACTOR != [1] && !point.is_in_correct_subgroup_assuming_on_curve() {
        return Err(PointFault::NotInSubgroup);
    }
    Ok(point)
}

/// Writes one point to the first [`encoded_bytes`] bytes of `out`, which has room for it.
pub fn write<P: SWCurveConfig>(encoding: Encoding, point: &Affine<P>, out: &mut [u8])
where
    P::BaseField: NativeField,
{
    match (encoding.dialect, encoding.format.is_compressed()) {
        (Dialect::Halo2, true) => halo2::write_compressed(point, out),
        (Dialect::Halo2, false) => write_point(point, out),
        (Dialect::Midnight, true) => big_endian::write_compressed(point, out),
        (Dialect::Midnight, false) => big_endian::write_uncompressed(point, out),
    }
}

/// Brings the bytes of one raw point to the native form, in place: both have the same length. Of the native
/// dialect, it is a check.
///
/// # Errors
/// Those of [`read()`]; [`PointFault::NotReduced`] for a compressed encoding, whose points are shorter.
pub fn to_native<P: SWCurveConfig>(
    encoding: Encoding,
    check: Check,
    bytes: &mut [u8],
) -> Result<(), PointFault>
where
    P::BaseField: NativeField,
{
    if bytes.len() != point_bytes::<P>() {
        return Err(PointFault::NotReduced);
    }
    let point = read::<P>(encoding, check, bytes)?;
    if encoding.dialect != Dialect::Halo2 {
        write_point(&point, bytes);
    }
    Ok(())
}

/// Decodes and checks a run of points of a region: the bytes from
/// [`Layout::run_offset`]`(region, first_index, ..)` on. Each point goes to `take` with its index in the run, up
/// to the first that is refused.
///
/// # Errors
/// [`FormatError::OutOfRange`], [`FormatError::Length`] when the run is not in the region or the bytes are
/// not that many; [`FormatError::Point`] with index, offset in the file and bytes of the first bad point.
pub fn decode_each<P: SWCurveConfig>(
    layout: &Layout,
    region: Region,
    first_index: u64,
    check: Check,
    bytes: &[u8],
    mut take: impl FnMut(usize, Affine<P>),
) -> Result<(), FormatError>
where
    P::BaseField: NativeField,
{
    let item_bytes = encoded_bytes::<P>(layout.encoding());
    let count = bytes.len() / item_bytes;
    check_length("the run of points", count, item_bytes, bytes.len())?;
    let run = Run::new::<P>(layout, region, first_index, count)?;
    for (i, chunk) in bytes.chunks_exact(item_bytes).enumerate() {
        let point = read(layout.encoding(), check, chunk).map_err(|fault| run.refuse(i, chunk, fault))?;
        take(i, point);
    }
    Ok(())
}

/// As [`decode_each`] with every check, to a slice of as many points.
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
    let item_bytes = encoded_bytes::<P>(layout.encoding());
    check_length("the run of points", out.len(), item_bytes, bytes.len())?;
    decode_each(layout, region, first_index, Check::Subgroup, bytes, |i, point| {
        out[i] = point
    })
}

/// As [`decode_points`], from file bytes straight to native bytes, of which there must be room for as many
/// points.
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
    let encoded = encoded_bytes::<P>(layout.encoding());
    check_length("the run of points", count, encoded, bytes.len())?;
    decode_each::<P>(layout, region, first_index, Check::Subgroup, bytes, |i, point| {
        write_point(&point, &mut out[i * item_bytes..(i + 1) * item_bytes]);
    })
}

/// Encodes points to `out`, which must have room for exactly these.
///
/// # Errors
/// [`FormatError::Length`].
pub fn encode_points<P: SWCurveConfig>(
    encoding: Encoding,
    points: &[Affine<P>],
    out: &mut [u8],
) -> Result<(), FormatError>
where
    P::BaseField: NativeField,
{
    let item_bytes = encoded_bytes::<P>(encoding);
    check_length("the buffer for points", points.len(), item_bytes, out.len())?;
    for (point, place) in points.iter().zip(out.chunks_exact_mut(item_bytes)) {
        write(encoding, point, place);
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
    let item_bytes = encoded_bytes::<P>(layout.encoding());
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
        let point = read_point_trusted::<P>(chunk).map_err(|fault| run.refuse(i, chunk, fault))?;
        write(layout.encoding(), &point, place);
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
        let item_bytes = encoded_bytes::<P>(layout.encoding()) as u64;
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
