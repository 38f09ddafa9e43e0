//! Parameters of inner-product commitments as a container: opened in place, saved, and checked.
//!
//! Opening copies nothing: columns are those of the file, whose frames are checked when they are read. Memory
//! of saving and checking: a chunk of points, and one sum.

use std::path::Path;

use ark_ec::short_weierstrass::Affine;
use spillproof_format::ipa::{self as layout, IpaParams};
use spillproof_format::{Curve as CurveId, FormatError, GroupId, Kind, SRS_FRAME_BYTES_DEFAULT, hex, native};

use super::chunks::chunk_points;
use super::ipa::Params;
use super::srs_check::SrsProgress;
use super::weigh::{Challenge, weigh};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Container, ContainerWriter, Draft, Element, Workspace, Writer};
use spillproof_engine::error::Invalid;
use spillproof_engine::stream::leased_kernel;
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::msm::MsmConfig;

/// The number that stands for the curve in a container.
fn curve_id<P: Curve>() -> Result<CurveId> {
    match GroupId::of::<P>() {
        Some(group) if group.degree == 1 => Ok(group.curve),
        _ => Err(Invalid::ProofSystem {
            what: "a container of parameters",
            reason: "the format does not know this curve".to_owned(),
        }
        .into()),
    }
}

impl<P: Curve> Params<P> {
    /// Opens a container. Nothing is copied; each frame is checked when it is read.
    ///
    /// # Errors
    /// Those of [`Container::open`]; [`Error::Format`] if the container holds no such parameters over this
    /// curve, or w or u is no point of it.
    pub fn open_container(workspace: &Workspace, path: &Path) -> Result<Self> {
        let format = |source| Error::Format {
            file: path.to_path_buf(),
            source,
        };
        let container = Container::open(workspace, path)?;
        let header = container.header();
        let found = IpaParams::of(header, curve_id::<P>()?).map_err(format)?;
        let column = |section| {
            container.column::<Point<P>>(section).ok_or_else(|| {
                Error::from(Invalid::ElementBytes {
                    what: path.display().to_string(),
                    given: Point::<P>::BYTES,
                    expected: section.element_bytes() as usize,
                })
            })
        };
        let [mut w, mut u] = [Affine::<P>::identity(); 2];
        for (index, (point, stored)) in [&mut w, &mut u]
            .into_iter()
            .zip(column(found.pair)?.to_vec()?)
            .enumerate()
        {
            let mut bytes = vec![0; Point::<P>::BYTES];
            stored.encode(&mut bytes);
            *point = native::read_point::<P>(&bytes).map_err(|fault| {
                let index = index as u64;
                format(FormatError::Point {
                    what: layout::PAIR_LABEL,
                    index,
                    offset: header.geometry().element_offset(found.pair, index).unwrap_or(0),
                    value: hex(&bytes),
                    fault,
                })
            })?;
        }
        Ok(Self {
            g: column(found.g)?,
            g_lagrange: column(found.g_lagrange)?,
            w,
            u,
        })
    }

    /// Writes a container, which appears under its name when it is whole, and gives its root.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless there are `2^k` points in both bases; [`Error::Io`], [`Error::File`],
    /// [`Error::Damaged`] from storage; [`Error::OverBudget`].
    pub fn save(
        &self,
        workspace: &Workspace,
        path: &Path,
        progress: &mut (dyn FnMut(SrsProgress) + Send),
    ) -> Result<[u8; 32]> {
        workspace.run(|| self.save_in_turn(workspace, path, progress))
    }

    fn save_in_turn(
        &self,
        workspace: &Workspace,
        path: &Path,
        progress: &mut dyn FnMut(SrsProgress),
    ) -> Result<[u8; 32]> {
        let n = self.g.len();
        if !n.is_power_of_two() || self.g_lagrange.len() != n {
            return Err(Invalid::Length {
                what: "points of parameters in the Lagrange basis".into(),
                given: self.g_lagrange.len(),
                expected: n.next_power_of_two(),
            }
            .into());
        }
        let sections = layout::sections(n.ilog2()).map_err(|source| Error::Format {
            file: path.to_path_buf(),
            source,
        })?;
        let writer = ContainerWriter::create(
            workspace,
            path,
            Kind::IpaParams,
            curve_id::<P>()?,
            SRS_FRAME_BYTES_DEFAULT,
            [0; 32],
            &sections,
        )?;
        for (index, (phase, column)) in [("g", &self.g), ("g_lagrange", &self.g_lagrange)]
            .into_iter()
            .enumerate()
        {
            copy::<P>(
                workspace,
                column,
                writer.draft(index)?,
                &mut of_phase(progress, phase, n),
            )?;
        }
        let mut pair = Writer::new(writer.draft::<Point<P>>(2)?);
        pair.push(&[&self.w, &self.u].map(|point| Point::<P>::from_affine::<P>(point)))?;
        pair.finish()?;
        writer.publish()
    }

    /// Checks that `g`, w and u are the generators of a proof system: `pair` is w and u, and `make` fills a
    /// slice with those from an index on.
    ///
    /// # Errors
    /// [`Error::Format`] with [`FormatError::Inconsistent`] for other points; what reading the column may
    /// give.
    pub fn check_generators(
        &self,
        workspace: &Workspace,
        pair: [Affine<P>; 2],
        make: &mut (dyn FnMut(u64, &mut [Point<P>]) + Send),
        progress: &mut (dyn FnMut(SrsProgress) + Send),
    ) -> Result<()> {
        let others = || Error::Format {
            file: self.g.name().into(),
            source: FormatError::Inconsistent {
                what: "other points than the generators of the proof system: relations between them may be known",
                remedy: "make the parameters anew",
            },
        };
        if [self.w, self.u] != pair {
            return Err(others());
        }
        workspace.run(|| {
            let n = self.g.len();
            let chunk = chunk_points(workspace, self.g.frame_elements()).min(n);
            let points = |what| workspace.budget.vec(chunk as usize, Point::<P>::INFINITY, what);
            let (mut stored, mut made) = (points("points being checked")?, points("generators")?);
            let mut reader = self.g.read_ascending(chunk)?;
            let (mut done, mut tell) = (0, of_phase(progress, "generators", n));
            while let Some(region) = reader.next_into(&mut stored)? {
                let len = region.len() as usize;
                make(done, &mut made[..len]);
                if stored[..len] != made[..len] {
                    return Err(others());
                }
                done += region.len();
                tell(done);
            }
            Ok(())
        })
    }

    /// Checks that each point is on the curve, and that `g_lagrange` is the Lagrange form of `g` at the
    /// powers of `omega`, a root of unity of order `2^k`. Every frame of both columns is read.
    ///
    /// # Errors
    /// [`Error::Format`] with [`FormatError::Point`] or [`FormatError::Inconsistent`]; what reading columns
    /// may give.
    pub fn check(
        &self,
        workspace: &Workspace,
        omega: P::ScalarField,
        progress: &mut (dyn FnMut(SrsProgress) + Send),
    ) -> Result<()> {
        workspace.run(|| self.check_in_turn(workspace, omega, progress))
    }

    fn check_in_turn(
        &self,
        workspace: &Workspace,
        omega: P::ScalarField,
        progress: &mut dyn FnMut(SrsProgress),
    ) -> Result<()> {
        let n = self.g.len();
        let challenge = Challenge::random(n.ilog2(), omega);
        let threads = rayon::current_num_threads();
        let config = MsmConfig::choose::<P>(n, 1, threads, workspace.budget.available_bytes() / 2)?;
        let (_msm_bytes, mut msm) = leased_kernel(config, &workspace.budget)?;
        let weights = |first, out: &mut [_]| challenge.monomial(first, out);
        let sum = weigh::<P>(
            workspace,
            &self.g,
            &mut msm,
            weights,
            &mut of_phase(progress, "check g", n),
        )?;
        let weights = |first, out: &mut [_]| challenge.lagrange(first, out);
        let lagrange = weigh::<P>(
            workspace,
            &self.g_lagrange,
            &mut msm,
            weights,
            &mut of_phase(progress, "check g_lagrange", n),
        )?;
        match lagrange.total == sum.total {
            true => Ok(()),
            false => Err(Error::Format {
                file: self.g.name().into(),
                source: FormatError::Inconsistent {
                    what: "g_lagrange is not the Lagrange form of g",
                    remedy: "get the file again from its source",
                },
            }),
        }
    }
}

/// Tells the points done of `n`.
fn of_phase<'p>(
    progress: &'p mut dyn FnMut(SrsProgress),
    phase: &'static str,
    n: u64,
) -> impl FnMut(u64) + 'p {
    move |points| {
        progress(SrsProgress {
            phase,
            points,
            points_total: n,
        });
    }
}

/// Copies a column of points, a chunk at a time.
pub(super) fn copy<P: Curve>(
    workspace: &Workspace,
    from: &Column<Point<P>>,
    to: Draft<Point<P>>,
    progress: &mut dyn FnMut(u64),
) -> Result<Column<Point<P>>> {
    let chunk = chunk_points(workspace, from.frame_elements()).min(from.len());
    let mut points = workspace
        .budget
        .vec(chunk as usize, Point::<P>::INFINITY, "points being copied")?;
    let mut reader = from.read_ascending(chunk)?;
    let mut writer = Writer::new(to);
    let mut done = 0;
    while let Some(region) = reader.next_into(&mut points)? {
        writer.push(&points[..region.len() as usize])?;
        done += region.len();
        progress(done);
    }
    writer.finish()
}
