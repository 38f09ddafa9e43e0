//! A first phase cut to fewer powers: snarkjs' `powersoftau truncate`, byte for byte, of one power.
//!
//! All arrays begin with the smaller ones, the sections of Lagrange bases too, so each section is copied from
//! its start. The header goes on to name the ceremony's power. Memory: a few runs of a mebibyte.

use std::path::Path;

use spillproof_format::iden3::{ByteRange, FileKind, PointRange, ptau};

use super::new_file::NewFile;
use super::powers::Ptau;
use super::source::Source;
use crate::CurveId;
use spillproof_engine::Result;
use spillproof_engine::column::Workspace;
use spillproof_engine::column::runs::Progress;
use spillproof_engine::error::Invalid;

/// Sections of a file that was not prepared, and of one that was.
const SECTIONS: [u32; 2] = [7, 11];

/// A first phase that was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated {
    /// Its curve.
    pub curve: CurveId,
    /// log2 of the rows of the largest circuit.
    pub power: u32,
    /// The same of the ceremony.
    pub ceremony_power: u32,
    /// Whether it has Lagrange bases: those of the longer file.
    pub is_prepared: bool,
}

/// Writes a new `.ptau` file with the first powers of one, for circuits of up to `2^power` rows. Points are
/// copied as they are; [`super::verify_ptau`] checks them.
///
/// # Errors
/// [`Invalid::Setting`] for a power of 0, or one that is not below the file's;
/// [`spillproof_engine::Error::Format`] for a file that is damaged; [`spillproof_engine::Error::File`],
/// [`spillproof_engine::Error::Io`], [`spillproof_engine::Error::OverBudget`]. A file that has the target's
/// name keeps it then.
pub fn truncate_ptau(
    workspace: &Workspace,
    files: [&Path; 2],
    power: u32,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Truncated> {
    let [file, target] = files;
    let publish = workspace.storage.publish(target)?;
    workspace.run(|| {
        let phase1 = Ptau::open(Source::open(workspace, file, FileKind::Ptau)?)?;
        let limit = phase1.header.power;
        if power == 0 || power >= limit {
            return Err(Invalid::Setting {
                name: "the power of the shorter file",
                reason: format!(
                    "{power} given, and {} has power {limit}: a power from 1 to {} is possible",
                    file.display(),
                    limit - 1
                ),
            }
            .into());
        }
        let header = ptau::Header {
            power,
            ..phase1.header
        };
        let is_prepared = phase1.layout.prepared.is_some();
        let sections = SECTIONS[usize::from(is_prepared)];
        let mut new = NewFile::new(workspace, publish, FileKind::Ptau, sections)?;
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        new.section(ptau::HEADER, &bytes)?;
        for (id, range) in parts(&phase1, power)? {
            new.copy(id, (&phase1.source, range), progress)?;
        }
        new.finish()?;
        Ok(Truncated {
            curve: header.curve,
            power,
            ceremony_power: header.ceremony_power,
            is_prepared,
        })
    })
}

/// The sections after the header, and the bytes that stay of each.
fn parts(phase1: &Ptau, power: u32) -> Result<Vec<(u32, ByteRange)>> {
    let layout = &phase1.layout;
    let first = |range: &PointRange, count: u64| PointRange { count, ..*range }.byte_range();
    let rows = 1u64 << power;
    let mut parts = vec![
        (ptau::TAU_G1, first(&layout.tau_g1, 2 * rows - 1)),
        (ptau::TAU_G2, first(&layout.tau_g2, rows)),
        (ptau::ALPHA_TAU_G1, first(&layout.alpha_tau_g1, rows)),
        (ptau::BETA_TAU_G1, first(&layout.beta_tau_g1, rows)),
        (ptau::BETA_G2, layout.beta_g2.byte_range()),
        (ptau::CONTRIBUTIONS, phase1.contributions()?),
    ];
    if let Some(prepared) = &layout.prepared {
        parts.extend([
            (ptau::LAGRANGE_G1, first(&prepared.lagrange_g1, 4 * rows - 1)),
            (ptau::LAGRANGE_G2, first(&prepared.lagrange_g2, 2 * rows - 1)),
            (
                ptau::ALPHA_LAGRANGE_G1,
                first(&prepared.alpha_lagrange_g1, 2 * rows - 1),
            ),
            (
                ptau::BETA_LAGRANGE_G1,
                first(&prepared.beta_lagrange_g1, 2 * rows - 1),
            ),
        ]);
    }
    Ok(parts)
}
