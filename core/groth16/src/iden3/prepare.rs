//! First phases for other uses: prepared for the second phase (snarkjs' `powersoftau prepare phase2`, byte
//! for byte), and as an SRS of ours.

use std::path::Path;

use ark_bn254::{Bn254, g1, g2};
use spillproof_format::iden3::{FileKind, PointRange, ptau};
use spillproof_format::native::point_bytes;

use super::new_file::NewFile;
use super::powers::Ptau;
use super::source::{Source, curve_of};
use crate::{CurveId, Domain, PairingCurve, check_curve, over_curve};
use spillproof_commit::{Srs, SrsProgress, add_lagrange_to};
use spillproof_engine::Result;
use spillproof_engine::column::runs::Progress;
use spillproof_engine::column::{Column, Element, Region, Scratch, Workspace};
use spillproof_engine::error::Invalid;
use spillproof_kernels::curve::{Curve, Point};

/// Sections of a file that is prepared.
const SECTIONS: u32 = 11;

/// Adds the Lagrange bases of 1, 2, 4, ..., `2^power` points to a first phase, in a new `.ptau` file. Gives
/// the power and the curve. Bases that are there are made anew.
///
/// # Errors
/// [`spillproof_engine::Error::Format`] for a file that is damaged or over another curve, or has points off
/// the curve; [`spillproof_engine::Error::File`], [`spillproof_engine::Error::Io`];
/// [`spillproof_engine::Error::BudgetTooSmall`], [`spillproof_engine::Error::OverBudget`]. A file that has
/// the target's name keeps it then.
pub fn prepare_ptau(
    workspace: &Workspace,
    files: [&Path; 2],
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<(u32, CurveId)> {
    let curve = curve_of(workspace, files[0], FileKind::Ptau)?;
    let power = over_curve!(curve, E => prepare_over::<E>(workspace, files, progress)?);
    Ok((power, curve))
}

fn prepare_over<E: PairingCurve>(
    workspace: &Workspace,
    [file, target]: [&Path; 2],
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<u32> {
    // All of it is public.
    let workspace = workspace.clone().with_scratch(Scratch::Plain)?;
    let publish = workspace.storage.publish(target)?;
    workspace.run(|| {
        let phase1 = Ptau::open(Source::open(&workspace, file, FileKind::Ptau)?)?;
        check_curve::<E>(file, phase1.header.curve)?;
        let power = phase1.header.power;
        let mut new = NewFile::new(&workspace, publish, FileKind::Ptau, SECTIONS)?;
        let mut bytes = Vec::new();
        // As snarkjs has it: of this file, whatever file it was cut from.
        let header = ptau::Header {
            ceremony_power: power,
            ..phase1.header
        };
        header.encode(&mut bytes);
        new.section(ptau::HEADER, &bytes)?;
        let layout = &phase1.layout;
        for (id, range) in [
            (ptau::TAU_G1, layout.tau_g1.byte_range()),
            (ptau::TAU_G2, layout.tau_g2.byte_range()),
            (ptau::ALPHA_TAU_G1, layout.alpha_tau_g1.byte_range()),
            (ptau::BETA_TAU_G1, layout.beta_tau_g1.byte_range()),
            (ptau::BETA_G2, layout.beta_g2.byte_range()),
            (ptau::CONTRIBUTIONS, phase1.contributions()?),
        ] {
            new.copy(id, (&phase1.source, range), progress)?;
        }
        let mut bases = Bases {
            phase1: &phase1,
            file: &mut new,
            progress,
        };
        bases.write::<E::G1Config>(ptau::LAGRANGE_G1, &layout.tau_g1, power + 1)?;
        bases.write::<E::G2Config>(ptau::LAGRANGE_G2, &layout.tau_g2, power)?;
        bases.write::<E::G1Config>(ptau::ALPHA_LAGRANGE_G1, &layout.alpha_tau_g1, power)?;
        bases.write::<E::G1Config>(ptau::BETA_LAGRANGE_G1, &layout.beta_tau_g1, power)?;
        new.finish()?;
        Ok(power)
    })
}

/// Sections of Lagrange bases.
struct Bases<'a> {
    phase1: &'a Ptau,
    file: &'a mut NewFile,
    progress: &'a mut (dyn FnMut(Progress) + Send),
}

impl Bases<'_> {
    /// Those of 1, 2, 4, ..., `2^log_max` points.
    fn write<P: Curve<BaseField: Element>>(
        &mut self,
        id: u32,
        powers: &PointRange,
        log_max: u32,
    ) -> Result<()> {
        let total = (2u64 << log_max) - 1;
        self.file.begin(id, total * point_bytes::<P>() as u64)?;
        let mut before = 0;
        for log_n in 0..=log_max {
            let domain = Domain::<P::ScalarField>::of_smallest_non_residue(log_n)?;
            let mut progress = |now: Progress| {
                (self.progress)(Progress {
                    done: before + now.done,
                    total,
                    ..now
                });
            };
            let basis: Column<Point<P>> = self.phase1.lagrange::<P>(powers, log_n, &domain, &mut progress)?;
            self.file.push_elements(&basis, (0, basis.len()), &mut |_| ())?;
            before += 1 << log_n;
        }
        Ok(())
    }
}

/// The first `2^k` powers of tau of a first phase over BN254 as an SRS without a Lagrange basis: they stay in
/// the file, and each is checked whenever it is read. All powers that make a power of two are taken if there
/// is no `k`. That they are powers of one tau is for [`check_srs`](spillproof_commit::check_srs) to say.
///
/// # Errors
/// [`Invalid::SrsSize`] for a `k` above the file's; [`spillproof_engine::Error::Format`] for a damaged file,
/// or one of another curve; [`spillproof_engine::Error::File`], [`spillproof_engine::Error::Io`],
/// [`spillproof_engine::Error::OverBudget`].
pub fn open_ptau(workspace: &Workspace, file: &Path, k: Option<u32>) -> Result<Srs> {
    workspace.run(|| {
        let phase1 = Ptau::open(Source::open(workspace, file, FileKind::Ptau)?)?;
        check_curve::<Bn254>(file, phase1.header.curve)?;
        let limit = phase1.header.power;
        let k = k.unwrap_or(limit);
        if k > limit {
            return Err(Invalid::SrsSize {
                srs: file.display().to_string(),
                k,
                limit,
            }
            .into());
        }
        let layout = &phase1.layout;
        let powers = phase1.part::<g1::Config>(&layout.tau_g1, 0, 1 << k);
        let mut pair = [Point::<g2::Config>::INFINITY; 2];
        phase1
            .part::<g2::Config>(&layout.tau_g2, 0, 2)
            .read(Region::Span { start: 0, len: 2 }, &mut pair)?;
        let pair = pair.map(|point| point.to_affine::<g2::Config>());
        phase1.check_subgroup::<g2::Config>(&PointRange {
            count: 2,
            ..layout.tau_g2
        })?;
        Srs::from_columns(k, Some(powers), None, pair)
    })
}

/// Makes an SRS container of the powers that [`open_ptau`] opens, with the Lagrange basis for halo2's root of
/// unity. Gives k and the root of the container.
///
/// # Errors
/// Those of [`open_ptau`] and [`spillproof_commit::add_lagrange`].
pub fn import_ptau(
    workspace: &Workspace,
    [file, target]: [&Path; 2],
    k: Option<u32>,
    progress: &mut (dyn FnMut(SrsProgress) + Send),
) -> Result<(u32, [u8; 32])> {
    let workspace = workspace.clone().with_scratch(Scratch::Plain)?;
    workspace.run(|| {
        let srs = open_ptau(&workspace, file, k)?;
        let k = srs.k();
        add_lagrange_to(&workspace, (file, srs), target, k, progress)
    })
}
