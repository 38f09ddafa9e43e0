//! Proving keys.

use std::path::Path;
use std::sync::Arc;

use spillproof_format::groth16::sections;
use spillproof_format::iden3::{FileKind, PointRange, zkey};
use spillproof_format::native::{read_point, read_point_trusted};
use spillproof_format::srs::frame_bytes;
use spillproof_format::{Curve as CurveId, Element, FormatError, Kind, PointFault, hex};

use super::source::{Source, curve_of};
use super::subgroup;
use crate::constraints::Share;
use crate::over_curve;
use crate::{
    Coefficient, Constraints, Domain, G1Point, G2Point, KeyShare, OfRank, PairingCurve, ProvingKey,
    QuotientBasis, Shape, VerifyingKey, check_curve,
};
use spillproof_engine::Result;
use spillproof_engine::column::runs::{Array, Progress};
use spillproof_engine::column::{Column, ContainerWriter, Scratch, Workspace, Writer};
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;

/// Elements that one thread decodes at a time.
const JOB_ELEMENTS: usize = 256;

/// A `.zkey` file: its points are read where they are, its coefficients are copied to scratch. Of points only
/// the range of coordinates is checked when they are read: a proof is verified before it is given to the
/// caller, and if it does not verify, [`ProvingKey::check_points`] looks for a point off the curve.
/// [`import_zkey`] checks curve and subgroup.
///
/// # Errors
/// [`spillproof_engine::Error::Format`] for a file that is no Groth16 key over this curve, or is damaged,
/// with section and offset; [`spillproof_engine::Error::File`], [`spillproof_engine::Error::Io`];
/// [`spillproof_engine::Error::OverBudget`].
pub fn read_zkey<E: PairingCurve>(
    workspace: &Workspace,
    path: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<ProvingKey<E>> {
    E::read_zkey(workspace, path, progress)
}

pub(crate) fn read_zkey_over<E: PairingCurve>(
    workspace: &Workspace,
    path: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<ProvingKey<E>> {
    // Keys are public.
    let workspace = workspace.clone().with_scratch(Scratch::Plain)?;
    let zkey = workspace.run(|| Zkey::<E>::open(&workspace, path))?;
    zkey.warn_without_contribution();
    let constraints = zkey.constraints_of_proof(progress)?;
    workspace.run(|| zkey.read(&mut InPlace, constraints, progress))
}

/// The same for one rank of a proof ([`crate::prove_over_ranks`]): only its coefficients are copied.
///
/// # Errors
/// As [`read_zkey`] and [`OfRank::shares`].
pub fn read_zkey_of_rank<E: PairingCurve>(
    workspace: &Workspace,
    path: &Path,
    of: &OfRank<'_>,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<ProvingKey<E>> {
    E::read_zkey_of_rank(workspace, path, of, progress)
}

pub(crate) fn read_zkey_of_rank_over<E: PairingCurve>(
    workspace: &Workspace,
    path: &Path,
    of: &OfRank<'_>,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<ProvingKey<E>> {
    let workspace = workspace.clone().with_scratch(Scratch::Plain)?;
    let zkey = workspace.run(|| Zkey::<E>::open(&workspace, path))?;
    zkey.warn_without_contribution();
    let shares = of.shares(&zkey.shape())?;
    let constraints = zkey.constraints_of_rank((&shares, of.rank), progress)?;
    let key = workspace.run(|| zkey.read(&mut InPlace, constraints, progress))?;
    Ok(ProvingKey {
        share: Some(KeyShare::of_coefficients(shares, of.rank, zkey.shape())),
        ..key
    })
}

/// The verifying key of a `.zkey` file, and the key's sizes without the distinct values of coefficients. Only
/// the header and the points of IC are read, which are on the curve.
///
/// # Errors
/// As [`read_zkey`]; [`spillproof_engine::Error::Format`] for a point off the curve, when the column of IC is read.
pub fn read_verifying_key<E: PairingCurve>(
    workspace: &Workspace,
    path: &Path,
) -> Result<(VerifyingKey<E>, Shape)> {
    E::read_verifying_key(workspace, path)
}

pub(crate) fn read_verifying_key_over<E: PairingCurve>(
    workspace: &Workspace,
    path: &Path,
) -> Result<(VerifyingKey<E>, Shape)> {
    workspace.run(|| {
        let zkey = Zkey::<E>::open(workspace, path)?;
        let ic = points_in_place::<E::G1Config>(&zkey.source, &zkey.layout.ic, [0, 0], Checked::Curve);
        Ok((zkey.verifying_key(ic), zkey.shape()))
    })
}

/// A `.zkey` file as a container, which appears under its name when it is whole.
///
/// # Errors
/// As [`read_zkey`]; [`spillproof_engine::Error::Format`] for points outside of the subgroup.
pub fn import_zkey(
    workspace: &Workspace,
    path: &Path,
    target: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<ImportedKey> {
    let curve = curve_of(workspace, path, FileKind::Zkey)?;
    over_curve!(curve, E => import_over::<E>(workspace, path, target, progress))
}

fn import_over<E: PairingCurve>(
    workspace: &Workspace,
    path: &Path,
    target: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<ImportedKey> {
    let workspace = workspace.clone().with_scratch(Scratch::Plain)?;
    let zkey = workspace.run(|| Zkey::<E>::open(&workspace, path))?;
    let constraints = zkey.constraints_of_copy(Share::all(&zkey.shape()), progress)?;
    workspace.run(|| {
        let shape = Shape {
            values: constraints.values().len(),
            ..zkey.shape()
        };
        let sections = sections(&shape).map_err(|source| zkey.source.refuse(source))?;
        let mut writer = ToContainer(ContainerWriter::create(
            &workspace,
            target,
            Kind::Groth16Key,
            zkey.curve,
            frame_bytes(zkey.curve),
            [0; 32],
            &sections,
        )?);
        let key = zkey.read(&mut writer, constraints, progress)?;
        zkey.check_subgroups(&key)?;
        let is_without_contribution = zkey.points.is_without_contribution();
        drop(key);
        Ok(ImportedKey {
            shape,
            curve: zkey.curve,
            is_without_contribution,
            root: writer.0.publish()?,
        })
    })
}

/// What was imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportedKey {
    /// Its sizes.
    pub shape: Shape,
    /// Its curve.
    pub curve: CurveId,
    /// Whether gamma and delta are equal, as in a key that no one has contributed to: proofs can be forged
    /// with it.
    pub is_without_contribution: bool,
    /// The root of the container: 32 bytes that name it.
    pub root: [u8; 32],
}

/// Where the columns of a key go. Sections are numbered as in a container.
pub(super) trait Target {
    /// Points that are known by themselves.
    fn few<P: Curve>(&mut self, section: usize, points: &[Point<P>]) -> Result<()>;

    /// An array of points, behind `lead` points at infinity.
    fn points<P: Curve>(
        &mut self,
        section: usize,
        array: (&Source, &PointRange, u64),
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Column<Point<P>>>;

    /// Coefficients that are in scratch columns.
    fn constraints<F: KernelField>(&mut self, constraints: Constraints<F>) -> Result<Constraints<F>>;
}

/// Points stay in the file.
struct InPlace;

impl Target for InPlace {
    fn few<P: Curve>(&mut self, _: usize, _: &[Point<P>]) -> Result<()> {
        Ok(())
    }

    fn points<P: Curve>(
        &mut self,
        _: usize,
        (source, range, lead): (&Source, &PointRange, u64),
        _: &mut dyn FnMut(Progress),
    ) -> Result<Column<Point<P>>> {
        Ok(points_in_place::<P>(source, range, [lead, 0], Checked::Range))
    }

    fn constraints<F: KernelField>(&mut self, constraints: Constraints<F>) -> Result<Constraints<F>> {
        Ok(constraints)
    }
}

pub(crate) struct ToContainer(pub ContainerWriter);

impl ToContainer {
    /// Elements that are in memory.
    pub fn write_points<T: Element>(&mut self, section: usize, points: &[T]) -> Result<()> {
        let mut writer = Writer::new(self.0.draft(section)?);
        writer.push(points)?;
        writer.finish()?;
        Ok(())
    }

    /// A copy of a column.
    pub fn write_column<T: Element>(&mut self, section: usize, column: &Column<T>) -> Result<()> {
        let mut writer = Writer::new(self.0.draft(section)?);
        writer.push_column(column)?;
        writer.finish()?;
        Ok(())
    }
}

impl Target for ToContainer {
    fn few<P: Curve>(&mut self, section: usize, points: &[Point<P>]) -> Result<()> {
        self.write_points(section, points)
    }

    fn points<P: Curve>(
        &mut self,
        section: usize,
        (source, range, lead): (&Source, &PointRange, u64),
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Column<Point<P>>> {
        let array = Array {
            what: range.what,
            offset: range.offset,
            count: range.count,
            element_bytes: range.point_bytes,
        };
        let budget = &source.workspace.budget;
        let run_elements = source.file.run_elements(&array) as usize;
        let mut tile = budget.vec(run_elements, Point::<P>::INFINITY, "points being imported")?;
        let mut writer = Writer::new(self.0.draft(section)?);
        writer.push_zeros(lead)?;
        source.file.each_run(&array, progress, |first, bytes| {
            let tile = &mut tile[..bytes.len() / Point::<P>::BYTES];
            let decoded = decode_points::<P>(range, &|at| first + at, bytes, tile);
            decoded.map_err(|error| source.refuse(error))?;
            writer.push(tile)
        })?;
        writer.finish()
    }

    fn constraints<F: KernelField>(&mut self, constraints: Constraints<F>) -> Result<Constraints<F>> {
        let mut values = Writer::new(self.0.draft::<F>(8)?);
        values.push_column(constraints.values())?;
        let mut coefficients = Writer::new(self.0.draft::<Coefficient>(9)?);
        coefficients.push_column(constraints.coefficients())?;
        Ok(Constraints::new(values.finish()?, coefficients.finish()?))
    }
}

/// A key that is being read.
pub(super) struct Zkey<E: PairingCurve> {
    pub source: Source,
    pub header: zkey::Header,
    pub layout: zkey::Layout,
    pub points: zkey::VerifyingPoints<E::G1Config, E::G2Config>,
    pub curve: CurveId,
}

impl<E: PairingCurve> Zkey<E> {
    pub fn open(workspace: &Workspace, path: &Path) -> Result<Self> {
        let source = Source::open(workspace, path, FileKind::Zkey)?;
        let refuse = |error| source.refuse(error);
        let sections = &source.sections;
        let ranges = zkey::HeaderRanges::of(sections).map_err(refuse)?;
        let (protocol, header) = (source.small(ranges.protocol)?, source.small(ranges.header)?);
        let header = zkey::Header::parse(sections, &protocol, &header).map_err(refuse)?;
        check_curve::<E>(path, header.curve())?;
        let count = source.small(ranges.coefficient_count)?;
        let count = count.first_chunk().copied().unwrap_or_default();
        let layout = zkey::Layout::new(sections, &header, count).map_err(refuse)?;
        let points = header.verifying_points().map_err(refuse)?;
        Ok(Self {
            curve: header.curve(),
            source,
            header,
            layout,
            points,
        })
    }

    /// Offset of the header in the file, in bytes.
    pub fn header_offset(&self) -> Result<u64> {
        let range = self.source.sections.range(zkey::HEADER);
        Ok(range.map_err(|error| self.source.refuse(error))?.offset)
    }

    /// Warns of a key that proofs can be forged with.
    fn warn_without_contribution(&self) {
        if self.points.is_without_contribution() {
            tracing::warn!(
                "{}: gamma and delta are equal, as in a key without a contribution: proofs can be forged with it",
                self.source.path().display()
            );
        }
    }

    /// The key's sizes, but for the distinct values of coefficients, which are not counted.
    pub fn shape(&self) -> Shape {
        Shape {
            signals: self.header.signals(),
            public: self.header.public(),
            log_domain: self.header.log_domain(),
            values: 0,
            coefficients: self.layout.coefficients.count,
        }
    }

    /// The verifying key, with these points of IC.
    fn verifying_key(&self, ic: Column<G1Point<E>>) -> VerifyingKey<E> {
        VerifyingKey {
            alpha_g1: self.points.alpha1,
            beta_g2: self.points.beta2,
            gamma_g2: self.points.gamma2,
            delta_g2: self.points.delta2,
            ic,
        }
    }

    /// The points that are known by themselves.
    pub fn write_few(&self, target: &mut impl Target) -> Result<()> {
        let points = &self.points;
        let g1 = [points.alpha1, points.beta1, points.delta1];
        let g2 = [points.beta2, points.gamma2, points.delta2];
        target.few::<E::G1Config>(
            0,
            &g1.map(|point| G1Point::<E>::from_affine::<E::G1Config>(&point)),
        )?;
        target.few::<E::G2Config>(
            1,
            &g2.map(|point| G2Point::<E>::from_affine::<E::G2Config>(&point)),
        )
    }

    /// All columns.
    fn read(
        &self,
        target: &mut impl Target,
        constraints: Constraints<E::Scalar>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ProvingKey<E>> {
        let layout = &self.layout;
        self.write_few(target)?;
        let mut g1_points = |section, range: &PointRange, lead| -> Result<Column<G1Point<E>>> {
            target.points::<E::G1Config>(section, (&self.source, range, lead), progress)
        };
        let ic = g1_points(2, &layout.ic, 0)?;
        let a = g1_points(3, &layout.a, 0)?;
        let b_g1 = g1_points(4, &layout.b1, 0)?;
        let c = g1_points(6, &layout.c, self.header.public() + 1)?;
        let h = g1_points(7, &layout.h, 0)?;
        let b_g2 = target.points::<E::G2Config>(5, (&self.source, &layout.b2, 0), progress)?;
        let constraints = target.constraints(constraints)?;
        Ok(ProvingKey {
            verifying: self.verifying_key(ic),
            beta_g1: self.points.beta1,
            delta_g1: self.points.delta1,
            a,
            b_g1,
            b_g2,
            c,
            h,
            constraints,
            domain: Domain::of_smallest_non_residue(self.header.log_domain())?,
            quotient: QuotientBasis::Coset,
            share: None,
        })
    }

    /// That all points are in the subgroup of prime order; read back from where they were written.
    fn check_subgroups(&self, key: &ProvingKey<E>) -> Result<()> {
        let (layout, source) = (&self.layout, &self.source);
        let lead = key.c.len() - layout.c.count;
        let arrays = [
            (&key.verifying.ic, &layout.ic, 0),
            (&key.a, &layout.a, 0),
            (&key.b_g1, &layout.b1, 0),
            (&key.c, &layout.c, lead),
            (&key.h, &layout.h, 0),
        ];
        for (points, range, lead) in arrays {
            subgroup::check::<E::G1Config>(source, points, (range, lead))?;
        }
        subgroup::check::<E::G2Config>(source, &key.b_g2, (&layout.b2, 0))
    }
}

/// Checked points, of which `index_of` gives the places in the array; of several that are none, the first is named.
pub(super) fn decode_points<P: Curve>(
    range: &PointRange,
    index_of: &(dyn Fn(u64) -> u64 + Sync),
    bytes: &[u8],
    out: &mut [Point<P>],
) -> Result<(), FormatError> {
    let bad = (out.chunks_mut(JOB_ELEMENTS))
        .zip(bytes.chunks(JOB_ELEMENTS * Point::<P>::BYTES))
        .enumerate()
        .parallel()
        .find_map_first(|(job, (out, bytes))| {
            let places = ((job * JOB_ELEMENTS) as u64..).map(index_of);
            let mut points = places.zip(out.iter_mut().zip(bytes.chunks_exact(Point::<P>::BYTES)));
            let decoded = points.try_for_each(|(index, (out, bytes))| {
                *out = decode_point::<P>(range, index, bytes)?;
                Ok(())
            });
            decoded.err()
        });
    bad.map_or(Ok(()), Err)
}

/// What is checked of a point whenever it is read.
#[derive(Clone, Copy)]
pub(super) enum Checked {
    /// That its coordinates are below the modulus, so that arithmetic can be done with them.
    Range,
    /// That it is on the curve, too.
    Curve,
}

/// Points where they are in a file, with points at infinity before and after them.
pub(super) fn points_in_place<P: Curve>(
    source: &Source,
    range: &PointRange,
    infinities: [u64; 2],
    checked: Checked,
) -> Column<Point<P>> {
    let points = *range;
    let check = move |index, bytes: &mut [u8]| {
        let read = match checked {
            Checked::Range => read_point_trusted::<P>(bytes),
            Checked::Curve => read_point::<P>(bytes),
        };
        read.map(drop)
            .map_err(|fault| fault_of(&points, index, bytes, fault))
    };
    source.column(range, infinities, Arc::new(check))
}

/// The point at `index` of an array: on the curve, or an error.
fn decode_point<P: Curve>(range: &PointRange, index: u64, bytes: &[u8]) -> Result<Point<P>, FormatError> {
    match read_point::<P>(bytes) {
        Ok(point) => Ok(Point::<P>::from_affine::<P>(&point)),
        Err(fault) => Err(fault_of(range, index, bytes, fault)),
    }
}

fn fault_of(range: &PointRange, index: u64, bytes: &[u8], fault: PointFault) -> FormatError {
    FormatError::Point {
        what: range.what,
        index,
        offset: range.point_offset(index),
        fault,
        value: hex(bytes),
    }
}
