//! From monomial points alone to an SRS container with both bases: streamed, checked, published whole or not
//! at all.
//!
//! Files of ceremonies stop at some k, and many hold monomial points only. The first `2^k` of them are an SRS
//! for every smaller k, whose Lagrange points are an inverse group transform away
//! ([`lagrange_from_monomial`]).
//!
//! 1. Monomial points and the pair are copied to a new container. Those of a `ParamsKZG` file are checked
//!    (range, curve equation, subgroup); a container's were when it was made.
//! 2. The transform reads the section and writes a scratch column, which is copied to the section of Lagrange
//!    points.
//! 3. The sections are compared with each other ([`super::srs_check`]), and the file gets its name.
//!
//! Memory, all leased: the transform's, which takes what the budget has left. Disk: scratch of twice the
//! Lagrange points (64 bytes each) while the transform runs.

use std::path::Path;

use ark_bn254::{G2Affine, g1};
use spillproof_format::header::MAGIC;
use spillproof_format::params_kzg::{Region, SerdeFormat, root_of_unity};
use spillproof_format::srs::sections;
use spillproof_format::{Curve, Kind, SRS_FRAME_BYTES_DEFAULT};

use super::ipa_file::copy;
use super::srs::{G1, Srs, lagrange_from_monomial};
use super::srs_check::{SrsProgress, check_srs};
use super::srs_import::{Import, write_pair};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, ContainerWriter, Placement, Workspace};
use spillproof_engine::error::Invalid;
use spillproof_engine::storage::Segment;

/// Makes the container `target` with the first `2^k` monomial points of `source` and their Lagrange form,
/// with halo2's root of unity. `source` is a container or a `ParamsKZG` file (in `format`, or found from the
/// length); all its points are taken if there is no `k`. Gives k and the root of the container. The target
/// appears only when it is whole and checked.
///
/// # Errors
/// [`Error::Invalid`] for a `k` above the source's, or a container without monomial points; [`Error::Format`]
/// for a damaged source, or points that do not belong together; [`Error::Io`], [`Error::File`],
/// [`Error::Damaged`] from storage; [`Error::OverBudget`], [`Error::BudgetTooSmall`].
pub fn add_lagrange(
    workspace: &Workspace,
    source: &Path,
    target: &Path,
    k: Option<u32>,
    format: Option<SerdeFormat>,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<(u32, [u8; 32])> {
    let monomial = Monomial::open(workspace, source, format)?;
    let k = match k {
        Some(k) if k > monomial.k() => {
            return Err(Invalid::SrsSize {
                srs: source.display().to_string(),
                k,
                limit: monomial.k(),
            }
            .into());
        }
        Some(k) => k,
        None => monomial.k(),
    };
    to_container(workspace, (source, monomial), target, k, progress)
}

/// As [`add_lagrange`], for an SRS of at least `2^k` monomial points whose Lagrange points, if it has some,
/// are not read. `source` is for errors.
pub fn add_lagrange_to(
    workspace: &Workspace,
    (source, srs): (&Path, Srs),
    target: &Path,
    k: u32,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<(u32, [u8; 32])> {
    let monomial = Monomial::Srs(Box::new(srs));
    to_container(workspace, (source, monomial), target, k, progress)
}

fn to_container(
    workspace: &Workspace,
    (source, monomial): (&Path, Monomial),
    target: &Path,
    k: u32,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<(u32, [u8; 32])> {
    let refuse = |error| Error::Format {
        file: source.to_path_buf(),
        source: error,
    };
    let omega = root_of_unity(k).map_err(refuse)?;
    let mut writer = ContainerWriter::create(
        workspace,
        target,
        Kind::Srs,
        Curve::Bn254,
        SRS_FRAME_BYTES_DEFAULT,
        [0; 32],
        &sections(k, true, true).map_err(refuse)?,
    )?;
    if let Monomial::Srs(srs) = &monomial
        && srs.is_insecure()
    {
        writer.mark_insecure();
    }
    let g = monomial.points(workspace, &writer, 1 << k, progress)?;
    let pair = monomial.pair(&writer)?;
    drop(monomial);

    let transformed = lagrange_from_monomial(&g, omega, Placement::Disk, &mut |points| {
        progress(SrsProgress {
            phase: Region::GLagrange.name(),
            points,
            points_total: 1 << k,
        });
    })?;
    let g_lagrange = copy::<g1::Config>(workspace, &transformed, writer.draft(1)?, &mut |_| ())?;
    drop(transformed);
    let srs = Srs::from_columns(k, Some(g), Some(g_lagrange), pair)?;
    check_srs(workspace, &srs, progress).map_err(|error| match error {
        // The target has no name yet: parts that do not belong together came from the source.
        Error::Format { source, .. } => refuse(source),
        other => other,
    })?;
    drop(srs);
    Ok((k, writer.publish()?))
}

/// Where the monomial points are.
enum Monomial {
    Srs(Box<Srs>),
    ParamsKzg(Import),
}

impl Monomial {
    fn open(workspace: &Workspace, source: &Path, format: Option<SerdeFormat>) -> Result<Self> {
        let file = workspace.storage.open_unaligned(source)?;
        let mut magic = [0; MAGIC.len()];
        if file.len_bytes() >= magic.len() as u64 {
            let buffer = workspace.budget.buffer(4096, "SRS")?;
            let buffer = file.read(buffer, [Segment::new(0, 0, magic.len())]).wait()?;
            magic.copy_from_slice(&buffer[..MAGIC.len()]);
        }
        if magic != MAGIC {
            return Import::open(workspace, source, file, format).map(Self::ParamsKzg);
        }
        let srs = Srs::open_container(workspace, source)?;
        srs.monomial()?;
        Ok(Self::Srs(Box::new(srs)))
    }

    fn k(&self) -> u32 {
        match self {
            Self::Srs(srs) => srs.k(),
            Self::ParamsKzg(import) => import.k(),
        }
    }

    /// The first `count` points to the section of monomial points.
    fn points(
        &self,
        workspace: &Workspace,
        writer: &ContainerWriter,
        count: u64,
        progress: &mut dyn FnMut(SrsProgress),
    ) -> Result<Column<G1>> {
        match self {
            Self::Srs(srs) => {
                let points = srs.monomial()?.prefix(count)?;
                copy::<g1::Config>(workspace, &points, writer.draft(0)?, &mut |points| {
                    progress(SrsProgress {
                        phase: Region::G.name(),
                        points,
                        points_total: count,
                    });
                })
            }
            Self::ParamsKzg(import) => import.points(writer, 0, Region::G, count, progress),
        }
    }

    fn pair(&self, writer: &ContainerWriter) -> Result<[G2Affine; 2]> {
        match self {
            Self::Srs(srs) => write_pair(writer, 2, srs.pair()),
            Self::ParamsKzg(import) => import.pair(writer, 2),
        }
    }
}
