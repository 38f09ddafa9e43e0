//! A serialised key: the points of the verifying key, then arrays of points, each behind its length in eight
//! bytes. The points' own form is that of arkworks' `CanonicalDeserialize`, compressed or not; which, follows
//! from the lengths.

use std::path::Path;

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::Affine;
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize, Compress, SerializationError, Validate};
use spillproof_format::{FormatError, PointFault, hex};

use super::{Parts, Progress, Reduction, push_infinities};
use crate::PairingCurve;
use spillproof_engine::Result;
use spillproof_engine::column::runs::{Array, ForeignFile};
use spillproof_engine::column::{Column, Placement, Workspace, Writer};
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::parallel::Parallel;

/// Bytes of the length before an array.
const LENGTH_BYTES: u64 = 8;
/// Points that one thread decodes at a time.
const JOB_POINTS: usize = 64;

/// The places of all points.
pub(super) struct Layout {
    /// alpha, beta, delta.
    points_g1: [Array; 3],
    /// beta, gamma, delta.
    points_g2: [Array; 3],
    pub ic: Array,
    pub a: Array,
    pub b_g1: Array,
    pub b_g2: Array,
    pub h: Array,
    pub l: Array,
}

/// A walk through a file, from length to length.
struct Walk<'a> {
    file: &'a ForeignFile,
    offset: u64,
}

impl Walk<'_> {
    fn points(&mut self, what: &'static str, count: u64, element_bytes: u64) -> Array {
        let offset = self.offset;
        self.offset += count * element_bytes;
        Array {
            what,
            offset,
            count,
            element_bytes,
        }
    }

    /// An array behind its length; `None` where the file has no room for it.
    fn array(&mut self, what: &'static str, element_bytes: u64) -> Result<Option<Array>> {
        let (at, first) = (self.offset, self.offset + LENGTH_BYTES);
        let Some(left) = self.file.len_bytes().checked_sub(first) else {
            return Ok(None);
        };
        let length = self.file.read(at, LENGTH_BYTES as usize)?;
        let count = length.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        self.offset = first;
        Ok((count <= left / element_bytes).then(|| self.points(what, count, element_bytes)))
    }
}

impl Layout {
    /// With this form of points, from the file's start on; and where it ends. `None` if the file has no room for it.
    fn of<E: PairingCurve>(file: &ForeignFile, compress: Compress) -> Result<Option<(Self, u64)>> {
        let g1 = E::G1Affine::zero().serialized_size(compress) as u64;
        let g2 = E::G2Affine::zero().serialized_size(compress) as u64;
        let mut walk = Walk { file, offset: 0 };
        let alpha_g1 = walk.points("alpha_g1", 1, g1);
        let points_g2 = ["beta_g2", "gamma_g2", "delta_g2"].map(|what| walk.points(what, 1, g2));
        let Some(ic) = walk.array("gamma_abc_g1", g1)? else {
            return Ok(None);
        };
        let [beta_g1, delta_g1] = ["beta_g1", "delta_g1"].map(|what| walk.points(what, 1, g1));
        let mut arrays = Vec::with_capacity(5);
        for (what, element_bytes) in [
            ("a_query", g1),
            ("b_g1_query", g1),
            ("b_g2_query", g2),
            ("h_query", g1),
            ("l_query", g1),
        ] {
            arrays.extend(walk.array(what, element_bytes)?);
        }
        let [a, b_g1, b_g2, h, l] = arrays[..] else {
            return Ok(None);
        };
        let layout = Self {
            points_g1: [alpha_g1, beta_g1, delta_g1],
            points_g2,
            ic,
            a,
            b_g1,
            b_g2,
            h,
            l,
        };
        Ok(Some((layout, walk.offset)))
    }
}

/// A key at the start of a file: where its points are, and in which form.
pub(super) struct Found {
    pub layout: Layout,
    compress: Compress,
}

impl Found {
    /// The first form of points with which `follows` accepts what stands in the file behind the key: it gets the
    /// key's layout, and the offset.
    pub fn find<E: PairingCurve, T>(
        file: &ForeignFile,
        follows: impl Fn(&Layout, u64) -> Result<Option<T>>,
    ) -> Result<Option<(Self, T)>> {
        for compress in [Compress::No, Compress::Yes] {
            let Some((layout, end)) = Layout::of::<E>(file, compress)? else {
                continue;
            };
            if let Some(behind) = follows(&layout, end)? {
                return Ok(Some((Self { layout, compress }, behind)));
            }
        }
        Ok(None)
    }

    /// The points, in scratch columns.
    pub fn read<E: PairingCurve>(
        self,
        workspace: &Workspace,
        file: &ForeignFile,
        reduction: Reduction,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Parts<E>> {
        let Self { layout, compress } = self;
        let mut reading = Reading {
            workspace,
            file,
            compress,
            progress,
        };
        let [alpha, beta, delta] = layout.points_g1;
        let points_g1 = [
            reading.single(alpha)?,
            reading.single(beta)?,
            reading.single(delta)?,
        ];
        let [beta, gamma, delta] = layout.points_g2;
        let points_g2 = [
            reading.single(beta)?,
            reading.single(gamma)?,
            reading.single(delta)?,
        ];
        Ok(Parts {
            points_g1,
            points_g2,
            ic: reading.column::<E::G1Config>(layout.ic, [0, 0])?,
            a: reading.column::<E::G1Config>(layout.a, [0, 0])?,
            b_g1: reading.column::<E::G1Config>(layout.b_g1, [0, 0])?,
            b_g2: reading.column::<E::G2Config>(layout.b_g2, [0, 0])?,
            c: reading.column::<E::G1Config>(layout.l, [layout.ic.count, 0])?,
            h: reading.column::<E::G1Config>(layout.h, [0, reduction.unused_points()])?,
        })
    }
}

/// The points of a key that is all of a file.
pub(super) fn read<E: PairingCurve>(
    workspace: &Workspace,
    path: &Path,
    reduction: Reduction,
    progress: &mut dyn FnMut(Progress),
) -> Result<Parts<E>> {
    let file = ForeignFile::open(workspace, path)?;
    let ends = |_: &Layout, end| Ok((end == file.len_bytes()).then_some(()));
    let Some((found, ())) = Found::find::<E, ()>(&file, ends)? else {
        return Err(file.refuse(FormatError::Field {
            what: "the length of an array of points",
            offset: 0,
            value: format!("not one that ends a file of {} bytes", file.len_bytes()),
            remedy: "the file is none that `serialize_compressed` or `serialize_uncompressed` of a Groth16 key over this curve has written, or \
                     is cut off",
        }));
    };
    found.read(workspace, &file, reduction, progress)
}

struct Reading<'a> {
    workspace: &'a Workspace,
    file: &'a ForeignFile,
    compress: Compress,
    progress: &'a mut dyn FnMut(Progress),
}

impl Reading<'_> {
    /// A point that is not infinity.
    fn single<P: Curve>(&self, array: Array) -> Result<Affine<P>> {
        let bytes = self.file.read(array.offset, array.element_bytes as usize)?;
        let decoded = decode::<P>(&bytes, self.compress).and_then(|point| match point.is_zero() {
            true => Err(PointFault::Infinity),
            false => Ok(point),
        });
        decoded.map_err(|fault| self.file.refuse(fault_of(&array, 0, &bytes, fault)))
    }

    /// An array of points in a scratch column, between so many points at infinity.
    fn column<P: Curve>(&mut self, array: Array, [before, after]: [u64; 2]) -> Result<Column<Point<P>>> {
        let (file, compress) = (self.file, self.compress);
        let len = before + array.count + after;
        let mut writer = Writer::scratch(self.workspace, array.what, len, Placement::Disk)?;
        push_infinities::<P>(&mut writer, before)?;
        let run_elements = file.run_elements(&array) as usize;
        let mut tile = (self.workspace.budget).vec(run_elements, Point::<P>::INFINITY, "points of a key")?;
        let element_bytes = array.element_bytes as usize;
        file.each_run(&array, self.progress, |first, bytes| {
            let points = &mut tile[..bytes.len() / element_bytes];
            let jobs = (points.chunks_mut(JOB_POINTS))
                .zip(bytes.chunks(JOB_POINTS * element_bytes))
                .enumerate()
                .parallel();
            let bad = jobs.find_map_first(|(job, (points, bytes))| {
                let indices = first + (job * JOB_POINTS) as u64..;
                let places = points.iter_mut().zip(bytes.chunks_exact(element_bytes));
                for (index, (place, bytes)) in indices.zip(places) {
                    match decode::<P>(bytes, compress) {
                        Ok(point) => *place = Point::<P>::from_affine::<P>(&point),
                        Err(fault) => return Some(fault_of(&array, index, bytes, fault)),
                    }
                }
                None
            });
            match bad {
                Some(error) => Err(file.refuse(error)),
                None => writer.push(points),
            }
        })?;
        push_infinities::<P>(&mut writer, after)?;
        writer.finish()
    }
}

/// A point on the curve.
fn decode<P: Curve>(bytes: &[u8], compress: Compress) -> Result<Affine<P>, PointFault> {
    let point = Affine::<P>::deserialize_with_mode(bytes, compress, Validate::No);
    match point {
        Ok(point) if point.is_on_curve() => Ok(point),
        Err(SerializationError::UnexpectedFlags) => Err(PointFault::Flags),
        Err(_) if compress == Compress::No => Err(PointFault::NotReduced),
        Ok(_) | Err(_) => Err(PointFault::NotOnCurve),
    }
}

fn fault_of(array: &Array, index: u64, bytes: &[u8], fault: PointFault) -> FormatError {
    FormatError::Point {
        what: array.what,
        index,
        offset: array.offset + index * array.element_bytes,
        fault,
        value: hex(bytes),
    }
}
