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
//! Lagrange points (64 bytes each, 96 over BLS12-381) while the transform runs.

use std::path::Path;

use ark_ec::short_weierstrass::Affine;
use spillproof_format::params_kzg::{Dialect, Region, Stated, root_of_unity};
use spillproof_format::srs::{frame_bytes, sections};
use spillproof_format::{Curve as CurveId, Kind};

use super::compiled::KzgCurve;
use super::ipa_file::copy;
use super::srs::{Srs, curve_id, lagrange_from_monomial, opened};
use super::srs_check::{SrsProgress, check_parts, check_region};
use super::srs_import::{Import, write_pair};
use super::srs_in_place::begins_with_magic;
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Container, ContainerWriter, Placement, Workspace};
use spillproof_engine::error::Invalid;
use spillproof_kernels::pairing::G1Point;

/// Makes the container `target` with the first `2^k` monomial points of `source` and their Lagrange form,
/// with halo2's root of unity. `source` is a container or a `ParamsKZG` file (what is not `stated` of it is
/// found from its length and k), over any curve; all its points are taken if there is no `k`. Gives k and the root of the container. The target
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
    stated: Stated,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<(u32, [u8; 32])> {
    let file = workspace.storage.open_unaligned(source)?;
    if begins_with_magic(workspace, &file)? {
        let container = Container::open(workspace, source)?;
        return match container.header().curve() {
            CurveId::Bls12381 => {
                let srs = opened::<ark_bls12_381::Bls12_381>(&container)?;
                add(
                    workspace,
                    (source, Monomial::Srs(Box::new(srs))),
                    target,
                    k,
                    progress,
                )
            }
            _ => {
                let srs = opened::<ark_bn254::Bn254>(&container)?;
                add(
                    workspace,
                    (source, Monomial::Srs(Box::new(srs))),
                    target,
                    k,
                    progress,
                )
            }
        };
    }
    let import = Import::open(workspace, source, file, stated)?;
    match import.layout().encoding().dialect {
        Dialect::Halo2 => {
            let monomial = Monomial::<ark_bn254::Bn254>::ParamsKzg(import);
            add(workspace, (source, monomial), target, k, progress)
        }
        Dialect::Midnight => {
            let monomial = Monomial::<ark_bls12_381::Bls12_381>::ParamsKzg(import);
            add(workspace, (source, monomial), target, k, progress)
        }
    }
}

fn add<E: KzgCurve>(
    workspace: &Workspace,
    (source, monomial): (&Path, Monomial<E>),
    target: &Path,
    k: Option<u32>,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<(u32, [u8; 32])> {
    if let Monomial::Srs(srs) = &monomial {
        srs.monomial()?;
    }
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
pub fn add_lagrange_to<E: KzgCurve>(
    workspace: &Workspace,
    (source, srs): (&Path, Srs<E>),
    target: &Path,
    k: u32,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<(u32, [u8; 32])> {
    let monomial = Monomial::Srs(Box::new(srs));
    to_container(workspace, (source, monomial), target, k, progress)
}

fn to_container<E: KzgCurve>(
    workspace: &Workspace,
    (source, monomial): (&Path, Monomial<E>),
    target: &Path,
    k: u32,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<(u32, [u8; 32])> {
    let refuse = |error| Error::Format {
        file: source.to_path_buf(),
        source: error,
    };
    let omega = root_of_unity(k).map_err(refuse)?;
    let curve = curve_id::<E>()?;
    let mut writer = ContainerWriter::create(
        workspace,
        target,
        Kind::Srs,
        curve,
        frame_bytes(curve),
        [0; 32],
        &sections(curve, k, true, true).map_err(refuse)?,
    )?;
    if let Monomial::Srs(srs) = &monomial
        && srs.is_insecure()
    {
        writer.mark_insecure();
    }
    let g = monomial.points(workspace, &writer, 1 << k, progress)?;
    let pair = monomial.pair(&writer)?;
    drop(monomial);

    let transformed = lagrange_from_monomial::<E>(&g, omega, Placement::Disk, &mut |points| {
        progress(SrsProgress {
            phase: Region::GLagrange.name(),
            points,
            points_total: 1 << k,
        });
    })?;
    let g_lagrange = copy::<E::G1Config>(workspace, &transformed, writer.draft(1)?, &mut |_| ())?;
    drop(transformed);
    let srs = Srs::<E>::from_columns(k, Some(g), Some(g_lagrange), pair)?;
    // The points of a linear combination are where the points are that it is of.
    workspace
        .run(|| check_parts(workspace, &srs, progress))
        .map_err(|error| match error {
            // The target has no name yet: parts that do not belong together came from the source.
            Error::Format { source, .. } => refuse(source),
            other => other,
        })?;
    drop(srs);
    Ok((k, writer.publish()?))
}

/// Where the monomial points are.
enum Monomial<E: KzgCurve> {
    Srs(Box<Srs<E>>),
    ParamsKzg(Import),
}

impl<E: KzgCurve> Monomial<E> {
    fn k(&self) -> u32 {
        match self {
            Self::Srs(srs) => srs.k(),
            Self::ParamsKzg(import) => import.layout().k(),
        }
    }

    /// The first `count` points to the section of monomial points.
    fn points(
        &self,
        workspace: &Workspace,
        writer: &ContainerWriter,
        count: u64,
        progress: &mut dyn FnMut(SrsProgress),
    ) -> Result<Column<G1Point<E>>> {
        match self {
            Self::Srs(srs) => {
                let points = srs.monomial()?.prefix(count)?;
                let copied = copy::<E::G1Config>(workspace, &points, writer.draft(0)?, &mut |points| {
                    progress(SrsProgress {
                        phase: Region::G.name(),
                        points,
                        points_total: count,
                    });
                })?;
                let place = |index| (index, points.file_offset(index));
                check_region::<E::G1Config>(&copied, Region::G, (points.name().as_ref(), &place))?;
                Ok(copied)
            }
            Self::ParamsKzg(import) => import.points::<E::G1Config>(writer, 0, Region::G, count, progress),
        }
    }

    fn pair(&self, writer: &ContainerWriter) -> Result<[Affine<E::G2Config>; 2]> {
        match self {
            Self::Srs(srs) => write_pair::<E>(writer, 2, srs.pair()),
            Self::ParamsKzg(import) => import.pair::<E>(writer, 2),
        }
    }
}
