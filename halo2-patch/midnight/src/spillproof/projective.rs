//! Projective points of a basis on disk, as a slice: a map of a plain file.
//!
//! A point is three coordinates of 48 bytes, which is how a column has them: no frame of a power of two, or
//! of three times one, holds a whole number of points. Memory: page cache, which the kernel may have back; a
//! chunk of points while the file is written.
#![allow(unsafe_code)]

use std::slice;

use midnight_curves::{Fp, G1Projective};
use spillproof_engine::column::{MappedColumn, Placement, Workspace, Writer};
use spillproof_engine::Result;

/// Bytes of a coordinate.
const COORDINATE_BYTES: usize = 48;
/// Coordinates of a point.
const COORDINATES: usize = 3;

const _: () = assert!(
    size_of::<Fp>() == COORDINATE_BYTES && size_of::<G1Projective>() == COORDINATES * COORDINATE_BYTES
);

/// Takes points, a few at a time.
type Push<'p> = dyn FnMut(&[G1Projective]) -> Result<()> + 'p;

/// See the module.
pub(super) struct Projective {
    coordinates: MappedColumn<[u8; COORDINATE_BYTES]>,
}

impl Projective {
    /// Writes `len` points as `feed` hands them over, and maps them.
    ///
    /// # Errors
    /// Those of `feed`, and where the disk or the budget has no room.
    pub(super) fn write(
        workspace: &Workspace,
        len: u64,
        feed: &mut dyn FnMut(&mut Push<'_>) -> Result<()>,
    ) -> Result<Self> {
        let coordinates = COORDINATES as u64 * len;
        let mut writer = Writer::scratch(workspace, "projective points", coordinates, Placement::Disk)?;
        feed(&mut |points| {
            for point in points {
                // SAFETY: `G1Projective` is `repr(transparent)` over three coordinates, each six limbs of 64
                // bits: plain bytes without padding, 144 as asserted above.
                let bytes =
                    unsafe { &*std::ptr::from_ref(point).cast::<[[u8; COORDINATE_BYTES]; COORDINATES]>() };
                writer.push(bytes)?;
            }
            Ok(())
        })?;
        let coordinates = writer.finish()?.map()?;
        Ok(Self { coordinates })
    }

    /// All points.
    pub(super) fn as_slice(&self) -> &[G1Projective] {
        let bytes = &*self.coordinates;
        // SAFETY: the map begins with a page, so its address is aligned for limbs; each `COORDINATES` of its
        // elements are the bytes of one point, which was written there by `write` and checked since (any
        // limbs are a `G1Projective` as far as memory goes). The slice lives as long as the map.
        unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / COORDINATES) }
    }
}
