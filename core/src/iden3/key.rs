//! Proving keys.
//!
//! Coefficients have 44 bytes in a file, and most have one of few values: a column of them has 16 bytes each, and the values stand once
//! ([`Dictionary`]).

use std::collections::HashMap;
use std::path::Path;

use rayon::prelude::*;
use spillproof_format::groth16::{frame_bytes, sections};
use spillproof_format::iden3::{FileKind, PointRange, zkey};
use spillproof_format::native::read_point;
use spillproof_format::{Curve as CurveId, Element, FormatError, Kind, hex};

use super::source::{Array, Progress, Source};
use super::subgroup;
use crate::Result;
use crate::budget::{Budget, Lease};
use crate::column::{Column, ContainerWriter, Draft, Placement, Scratch, Workspace, Writer};
use crate::groth16::{
    Coefficient, Constraints, Domain, G1Point, G2Point, PairingCurve, ProvingKey, Shape, VerifyingKey,
    check_curve,
};
use crate::kernels::curve::{Curve, Point};
use crate::kernels::field::KernelField;

/// Elements that one thread decodes at a time.
const JOB_ELEMENTS: usize = 256;
/// Bytes of a value in the dictionary: as a scalar, and twice the place in a table that is half full.
const ENTRY_BYTES: u64 = 128;
/// Values that the dictionary has room for at first.
const ENTRIES_MIN: u64 = 256;

/// A `.zkey` file as scratch columns. All points are checked to be on the curve, but not to be in the subgroup: a proof is verified before it is
/// given to the caller, and [`import_zkey`] checks the subgroup, too.
///
/// # Errors
/// [`crate::Error::Format`] for a file that is no Groth16 key over this curve, or is damaged, with section and offset; [`crate::Error::File`], [`crate::Error::Io`];
/// [`crate::Error::OverBudget`].
pub fn read_zkey<E: PairingCurve>(
    workspace: &Workspace,
    path: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<ProvingKey<E>> {
    // Keys are public.
    let workspace = workspace.clone().with_scratch(Scratch::Plain)?;
    workspace.run(|| {
        let zkey = Zkey::<E>::open(&workspace, path)?;
        let constraints = zkey.constraints(progress)?;
        let shape = zkey.shape(&constraints);
        zkey.read(&shape, &mut ToScratch(&workspace), constraints, progress)
    })
}

/// The sizes of a `.zkey` file's key, all of whose coefficients are read and checked.
///
/// # Errors
/// As [`read_zkey`].
pub fn shape_of_zkey<E: PairingCurve>(
    workspace: &Workspace,
    path: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Shape> {
    let workspace = workspace.clone().with_scratch(Scratch::Plain)?;
    workspace.run(|| {
        let zkey = Zkey::<E>::open(&workspace, path)?;
        Ok(zkey.shape(&zkey.constraints(progress)?))
    })
}

/// A `.zkey` file as a container, which appears under its name when it is whole.
///
/// # Errors
/// As [`read_zkey`]; [`crate::Error::Format`] for points outside of the subgroup.
pub fn import_zkey<E: PairingCurve>(
    workspace: &Workspace,
    path: &Path,
    target: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<ImportedKey> {
    let workspace = workspace.clone().with_scratch(Scratch::Plain)?;
    workspace.run(|| {
        let zkey = Zkey::<E>::open(&workspace, path)?;
        let constraints = zkey.constraints(progress)?;
        let shape = zkey.shape(&constraints);
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
        let key = zkey.read(&shape, &mut writer, constraints, progress)?;
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
    /// Whether gamma and delta are equal, as in a key that no one has contributed to: proofs can be forged with it.
    pub is_without_contribution: bool,
    /// The root of the container: 32 bytes that name it.
    pub root: [u8; 32],
}

/// Where the columns of a key go. Sections are numbered as in a container.
trait Target {
    fn draft<T: Element>(&mut self, section: usize, what: &str, len: u64) -> Result<Draft<T>>;

    /// Coefficients that are in scratch columns.
    fn constraints<F: KernelField>(&mut self, constraints: Constraints<F>) -> Result<Constraints<F>>;
}

struct ToScratch<'a>(&'a Workspace);

impl Target for ToScratch<'_> {
    fn draft<T: Element>(&mut self, _: usize, what: &str, len: u64) -> Result<Draft<T>> {
        Draft::scratch(self.0, what, len, Placement::Disk)
    }

    fn constraints<F: KernelField>(&mut self, constraints: Constraints<F>) -> Result<Constraints<F>> {
        Ok(constraints)
    }
}

struct ToContainer(ContainerWriter);

impl Target for ToContainer {
    fn draft<T: Element>(&mut self, section: usize, _: &str, _: u64) -> Result<Draft<T>> {
        self.0.draft(section)
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
struct Zkey<E: PairingCurve> {
    source: Source,
    curve: CurveId,
    header: zkey::Header,
    layout: zkey::Layout,
    points: zkey::VerifyingPoints<E::G1Config, E::G2Config>,
}

impl<E: PairingCurve> Zkey<E> {
    fn open(workspace: &Workspace, path: &Path) -> Result<Self> {
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
        if points.is_without_contribution() {
            tracing::warn!(
                "{}: gamma and delta are equal, as in a key without a contribution: proofs can be forged with it",
                path.display()
            );
        }
        Ok(Self {
            curve: header.curve(),
            source,
            header,
            layout,
            points,
        })
    }

    fn shape(&self, constraints: &Constraints<E::Scalar>) -> Shape {
        Shape {
            signals: self.header.signals(),
            public: self.header.public(),
            log_domain: self.header.log_domain(),
            values: constraints.values().len(),
            coefficients: constraints.len(),
        }
    }

    /// The coefficients, in scratch columns.
    fn constraints(&self, progress: &mut dyn FnMut(Progress)) -> Result<Constraints<E::Scalar>> {
        let (workspace, range) = (&self.source.workspace, self.layout.coefficients);
        let array = Array {
            what: "coefficients",
            offset: range.offset,
            count: range.count,
            element_bytes: zkey::COEFFICIENT_BYTES as u64,
        };
        let mut dictionary = Dictionary::<E::Scalar>::new(&workspace.budget)?;
        let mut writer =
            Writer::<Coefficient>::scratch(workspace, "coefficients", array.count, Placement::Disk)?;
        let run_elements = self.source.run_elements(&array) as usize;
        let mut tile = (workspace.budget).vec(run_elements, Coefficient::default(), "coefficients")?;
        let mut row_before = 0;
        self.source.each_run(&array, progress, |first, bytes| {
            let tile = &mut tile[..bytes.len() / zkey::COEFFICIENT_BYTES];
            let found = |error| self.source.refuse(error);
            self.decode(first, bytes, tile, &dictionary).map_err(found)?;
            for (index, (out, bytes)) in tile.iter_mut().zip(bytes.chunks_exact(zkey::COEFFICIENT_BYTES)).enumerate() {
                if out.row < row_before {
                    return Err(self.source.refuse(FormatError::Field {
                        what: "the row of a coefficient",
                        offset: range.coefficient_offset(first + index as u64) + 4,
                        value: out.row.to_string(),
                        remedy: "it is below the row before it: keys whose coefficients are not in the order of rows are not read",
                    }));
                }
                row_before = out.row;
                if out.value == UNKNOWN {
                    out.value = dictionary.enter(&zkey::Coefficient::decode(bytes).value)?;
                }
            }
            writer.push(tile)
        })?;
        let coefficients = writer.finish()?;
        let mut values = Writer::scratch(
            workspace,
            "values of coefficients",
            dictionary.values.len() as u64,
            Placement::Disk,
        )?;
        values.push(&dictionary.values)?;
        Ok(Constraints::new(values.finish()?, coefficients))
    }

    /// Checks a run of coefficients and finds their values, as far as the dictionary has them.
    fn decode(
        &self,
        first: u64,
        bytes: &[u8],
        out: &mut [Coefficient],
        dictionary: &Dictionary<E::Scalar>,
    ) -> Result<(), FormatError> {
        let bad = (out.par_chunks_mut(JOB_ELEMENTS))
            .zip(bytes.par_chunks(JOB_ELEMENTS * zkey::COEFFICIENT_BYTES))
            .enumerate()
            .find_map_first(|(job, (out, bytes))| {
                let first = first + (job * JOB_ELEMENTS) as u64;
                let places = out.iter_mut().zip(bytes.chunks_exact(zkey::COEFFICIENT_BYTES));
                for (index, (out, bytes)) in (first..).zip(places) {
                    let found = zkey::Coefficient::decode(bytes);
                    let offset = self.layout.coefficients.coefficient_offset(index);
                    if let Err(error) = found.check(index, offset, &self.header) {
                        return Some(error);
                    }
                    let value = dictionary.places.get(&found.value).copied().unwrap_or(UNKNOWN);
                    *out = Coefficient {
                        row: found.constraint,
                        signal: found.signal,
                        value,
                        matrix: found.matrix,
                    };
                }
                None
            });
        bad.map_or(Ok(()), Err)
    }

    /// All columns.
    fn read(
        &self,
        shape: &Shape,
        target: &mut impl Target,
        constraints: Constraints<E::Scalar>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ProvingKey<E>> {
        let (layout, signals) = (&self.layout, shape.signals);
        let [alpha_g1, beta_g1, delta_g1] = [self.points.alpha1, self.points.beta1, self.points.delta1];
        let [beta_g2, gamma_g2, delta_g2] = [self.points.beta2, self.points.gamma2, self.points.delta2];
        let g1 = [alpha_g1, beta_g1, delta_g1].map(|point| G1Point::<E>::from_affine::<E::G1Config>(&point));
        let g2 = [beta_g2, gamma_g2, delta_g2].map(|point| G2Point::<E>::from_affine::<E::G2Config>(&point));
        write_all(target.draft(0, "g1", 3)?, &g1)?;
        write_all(target.draft(1, "g2", 3)?, &g2)?;
        let mut g1_points =
            |section, range: &PointRange, lead: u64, len: u64| -> Result<Column<G1Point<E>>> {
                let draft = target.draft(section, range.what, len)?;
                self.points::<E::G1Config>(range, lead, draft, progress)
            };
        let ic = g1_points(2, &layout.ic, 0, shape.public + 1)?;
        let a = g1_points(3, &layout.a, 0, signals)?;
        let b_g1 = g1_points(4, &layout.b1, 0, signals)?;
        let c = g1_points(6, &layout.c, shape.public + 1, signals)?;
        let h = g1_points(7, &layout.h, 0, 1 << shape.log_domain)?;
        let draft = target.draft(5, layout.b2.what, signals)?;
        let b_g2 = self.points::<E::G2Config>(&layout.b2, 0, draft, progress)?;
        let constraints = target.constraints(constraints)?;
        Ok(ProvingKey {
            verifying: VerifyingKey {
                alpha_g1,
                beta_g2,
                gamma_g2,
                delta_g2,
                ic,
            },
            beta_g1,
            delta_g1,
            a,
            b_g1,
            b_g2,
            c,
            h,
            constraints,
            domain: Domain::of_smallest_non_residue(shape.log_domain)?,
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
            let offset = |index: u64| range.point_offset(index.saturating_sub(lead));
            subgroup::check::<E::G1Config>(source, points, (range.what, offset))?;
        }
        let offset = |index| layout.b2.point_offset(index);
        subgroup::check::<E::G2Config>(source, &key.b_g2, (layout.b2.what, offset))
    }

    /// An array of points behind `lead` points at infinity.
    fn points<P: Curve>(
        &self,
        range: &PointRange,
        lead: u64,
        draft: Draft<Point<P>>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Column<Point<P>>> {
        let array = Array {
            what: range.what,
            offset: range.offset,
            count: range.count,
            element_bytes: range.point_bytes,
        };
        let budget = &self.source.workspace.budget;
        let run_elements = self.source.run_elements(&array) as usize;
        let mut tile = budget.vec(run_elements, Point::<P>::INFINITY, "points being imported")?;
        let mut writer = Writer::new(draft);
        writer.push_zeros(lead)?;
        self.source.each_run(&array, progress, |first, bytes| {
            let tile = &mut tile[..bytes.len() / Point::<P>::BYTES];
            decode_points::<P>(range, first, bytes, tile).map_err(|error| self.source.refuse(error))?;
            writer.push(tile)
        })?;
        writer.finish()
    }
}

/// Checked points; of several that are none, the first is named.
fn decode_points<P: Curve>(
    range: &PointRange,
    first: u64,
    bytes: &[u8],
    out: &mut [Point<P>],
) -> Result<(), FormatError> {
    let bad = (out.par_chunks_mut(JOB_ELEMENTS))
        .zip(bytes.par_chunks(JOB_ELEMENTS * Point::<P>::BYTES))
        .enumerate()
        .find_map_first(|(job, (out, bytes))| {
            let first = first + (job * JOB_ELEMENTS) as u64;
            for (index, (out, bytes)) in
                (first..).zip(out.iter_mut().zip(bytes.chunks_exact(Point::<P>::BYTES)))
            {
                match read_point::<P>(bytes) {
                    Ok(point) => *out = Point::<P>::from_affine::<P>(&point),
                    Err(fault) => {
                        return Some(FormatError::Point {
                            what: range.what,
                            index,
                            offset: range.point_offset(index),
                            fault,
                            value: hex(bytes),
                        });
                    }
                }
            }
            None
        });
    bad.map_or(Ok(()), Err)
}

fn write_all<T: Element>(draft: Draft<T>, values: &[T]) -> Result<Column<T>> {
    let mut writer = Writer::new(draft);
    writer.push(values)?;
    writer.finish()
}

/// A value that is not in the dictionary yet.
const UNKNOWN: u32 = u32::MAX;

/// The distinct values of coefficients, by their bytes in the file.
struct Dictionary<F> {
    places: HashMap<[u8; 32], u32>,
    values: Vec<F>,
    /// `1 / R`: values stand times R^2 in a file, where scalars in Montgomery form stand times R.
    inverse_radix: F,
    budget: Budget,
    leases: Vec<Lease>,
    room: u64,
}

impl<F: KernelField> Dictionary<F> {
    fn new(budget: &Budget) -> Result<Self> {
        let radix = F::from(2u64).pow([8 * F::BYTES as u64]);
        Ok(Self {
            places: HashMap::new(),
            values: Vec::new(),
            // A power of two is not zero.
            inverse_radix: radix.inverse().unwrap_or(F::ONE),
            leases: vec![budget.lease(ENTRIES_MIN * ENTRY_BYTES, "values of coefficients")?],
            budget: budget.clone(),
            room: ENTRIES_MIN,
        })
    }

    /// The place of a value, which is entered if it is new.
    fn enter(&mut self, bytes: &[u8; 32]) -> Result<u32> {
        if let Some(place) = self.places.get(bytes) {
            return Ok(*place);
        }
        if self.values.len() as u64 == self.room {
            let lease = self
                .budget
                .lease(self.room * ENTRY_BYTES, "values of coefficients")?;
            self.leases.push(lease);
            self.room *= 2;
        }
        // Reduced: it was checked. There are fewer than 2^32 coefficients.
        let value = F::read_native(bytes).unwrap_or(F::ZERO) * self.inverse_radix;
        let place = self.values.len() as u32;
        self.places.insert(*bytes, place);
        self.values.push(value);
        Ok(place)
    }
}
