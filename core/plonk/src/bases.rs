//! Points of an SRS on disk, in the types of another library whose points have the same bytes.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use spillproof_commit::{
    Engine, HALO2_ROOT_OF_UNITY, RAW_G2_BYTES, SRS_FRAME_BYTES, Srs, SrsProgress, check_srs,
    generate_scratch, lagrange_from_monomial, omega,
};
use spillproof_engine::column::{Column, Draft, Element, MappedColumn, Placement, Plain, Workspace, Writer};
use spillproof_engine::stream::Scalars;

use crate::compiled::sums;
use crate::curve::{Config, Point, Scalar};
use crate::error::Result;
use crate::once::once;

/// One basis of an SRS, as points `C`. Reading it as a slice maps its file, which is checked first and takes
/// page cache that the kernel may have back; nothing else does that.
pub struct StoredBasis<C: Element> {
    column: Column<C>,
    first: C,
    all: OnceLock<MappedColumn<C>>,
}

/// A whole SRS on disk.
pub struct StoredSrs<C: Element> {
    /// For `2^k` rows.
    pub k: u32,
    /// `s^i * g`.
    pub monomial: StoredBasis<C>,
    /// `L_i(s) * g`.
    pub lagrange: StoredBasis<C>,
    /// `g2` and `s * g2`.
    pub pair: [[u8; RAW_G2_BYTES]; 2],
}

impl<C: Element + Plain> StoredSrs<C> {
    /// Opens a container in place: its points stay in the file, each frame of which is checked when it is
    /// read. Lagrange points that the file does not have are computed.
    ///
    /// # Errors
    /// If it is no SRS over BN254, or has no monomial points; where the disk or the budget has no room.
    pub fn open(workspace: &Workspace, path: &Path) -> Result<Self> {
        let srs = <Srs>::open_container(workspace, path)?;
        let monomial = StoredBasis::new(srs.monomial()?.cast()?)?;
        let lagrange = match srs.lagrange() {
            Ok(points) => StoredBasis::new(points.cast()?)?,
            Err(_) => monomial.to_lagrange(srs.k())?,
        };
        Ok(Self {
            k: srs.k(),
            monomial,
            lagrange,
            pair: srs.raw_pair(),
        })
    }
}

/// Checks that the parts of an SRS belong together, and each point: see [`check_srs`].
///
/// # Errors
/// Those of [`check_srs`]; a point of the pair that is not in the group.
pub fn check_parts(
    workspace: &Workspace,
    k: u32,
    [monomial, lagrange]: [Column<Point>; 2],
    pair: [[u8; RAW_G2_BYTES]; 2],
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<()> {
    let points = <Srs>::pair_of_native(monomial.name(), &pair)?;
    let srs = <Srs>::from_columns(k, Some(monomial), Some(lagrange), points)?;
    Ok(check_srs(workspace, &srs, progress)?)
}

/// A point whose bytes are zero: infinity.
fn infinity<C: Element>() -> C {
    C::decode(&vec![0; C::BYTES])
}

impl<C: Element + Plain> StoredBasis<C> {
    /// The points of a column.
    ///
    /// # Errors
    /// If the first one can't be read.
    pub fn new(column: Column<C>) -> Result<Self> {
        let first = column.prefix(1)?.to_vec()?;
        Ok(Self {
            column,
            first: first.first().copied().unwrap_or_else(infinity),
            all: OnceLock::new(),
        })
    }

    /// A new column of `len` points, in the place and the frames of an SRS that the engine makes: a plan
    /// takes them for granted.
    ///
    /// # Errors
    /// Where the disk or the budget has no room.
    pub fn writer(workspace: &Workspace, what: &'static str, len: usize) -> Result<Writer<C>> {
        let draft = Draft::scratch_with_frames(workspace, what, len as u64, Placement::Disk, SRS_FRAME_BYTES);
        Ok(Writer::new(draft?))
    }

    /// `s^i * g` and `L_i(s) * g` for `2^k` rows. Insecure: with `s`, proofs can be forged.
    ///
    /// # Errors
    /// Where the disk or the budget has no room.
    pub fn generate(workspace: &Workspace, k: u32, s: Scalar) -> Result<[Self; 2]> {
        let srs = generate_scratch::<Engine>(workspace, k, s, |_| ())?;
        let bases = |column: &Column<Point>| Self::new(column.cast()?);
        Ok([bases(srs.monomial()?)?, bases(srs.lagrange()?)?])
    }

    /// How many points there are.
    pub fn len(&self) -> usize {
        self.column.len() as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.column.is_empty()
    }

    /// The first point.
    pub fn first(&self) -> &C {
        &self.first
    }

    /// All of them, mapped; the first call reads them once, to check them.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn as_slice(&self) -> Result<&[C]> {
        once(&self.all, || Ok(self.column.map()?)).map(|points| &**points)
    }

    /// As the engine's own points, for the task that this thread is inside of.
    ///
    /// # Errors
    /// None in practice: the bytes are the same.
    pub fn points(&self) -> Result<Column<Point>> {
        Ok(self.column.in_task().cast()?)
    }

    /// The first `len`, sharing the file.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn prefix(&self, len: usize) -> Result<Self> {
        Self::new(self.column.prefix(len as u64)?)
    }

    /// Monomial to Lagrange basis, for `2^k` points.
    ///
    /// # Errors
    /// Where the disk or the budget has no room.
    pub fn to_lagrange(&self, k: u32) -> Result<Self> {
        let monomial = self.column.prefix(1 << k)?.cast()?;
        Self::new(
            lagrange_from_monomial::<Engine>(
                &monomial,
                omega(HALO2_ROOT_OF_UNITY, k)?,
                Placement::Auto,
                &mut |_| (),
            )?
            .cast()?,
        )
    }

    /// Hands all points to `take`, in order and in chunks.
    ///
    /// # Errors
    /// Those of `take`; if the points can't be read.
    pub fn for_each_chunk(&self, take: &mut dyn FnMut(&[C]) -> io::Result<()>) -> Result<()> {
        for_each_chunk(&self.column, infinity(), "points being written", take)
    }

    /// The sums of `scalars[i] * self[i]`, for many vectors of scalars in as few passes over the points as
    /// memory allows.
    ///
    /// # Errors
    /// If a column can't be read, or the budget has no room.
    pub fn sums(&self, scalars: &[Scalars<'_, Scalar>]) -> Result<Vec<Point>> {
        Ok(sums::<Config>(&self.points()?, scalars)?)
    }
}

impl<C: Element> std::fmt::Debug for StoredBasis<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredBasis")
            .field("column", &self.column)
            .finish_non_exhaustive()
    }
}

/// Hands a column's elements to `take`, in order and in chunks. `fill` is any element.
pub(crate) fn for_each_chunk<E: Element>(
    column: &Column<E>,
    fill: E,
    what: &'static str,
    take: &mut dyn FnMut(&[E]) -> io::Result<()>,
) -> Result<()> {
    let chunk = column.sequential_chunk();
    let mut elements = column.workspace().budget.vec(chunk as usize, fill, what)?;
    let mut reader = column.read_ascending(chunk)?;
    while let Some(region) = reader.next_into(&mut elements)? {
        take(&elements[..region.len() as usize])?;
    }
    Ok(())
}
