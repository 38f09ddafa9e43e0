//! Witnesses.

use std::path::Path;

use ark_ff::Field;
use spillproof_format::iden3::{FileKind, SCALAR_BYTES, wtns};
use spillproof_format::native::NativeField;
use spillproof_format::{FormatError, hex};

use super::source::Source;
use crate::{PairingCurve, check_curve};
use spillproof_engine::Result;
use spillproof_engine::column::runs::{Array, Progress};
use spillproof_engine::column::{Column, Placement, Workspace, Writer};
use spillproof_engine::step;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;

/// Values that one thread decodes at a time.
const JOB_VALUES: usize = 1024;

/// The values of a `.wtns` file as a scratch column: sealed, if the workspace's are.
///
/// # Errors
/// [`spillproof_engine::Error::Format`] for a file that is no witness over this curve, or holds a value that
/// is not below the modulus; [`spillproof_engine::Error::File`], [`spillproof_engine::Error::Io`];
/// [`spillproof_engine::Error::OverBudget`].
pub fn read_wtns<E: PairingCurve>(
    workspace: &Workspace,
    path: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Column<E::Scalar>> {
    E::read_wtns(workspace, path, progress)
}

pub(crate) fn read_wtns_over<E: PairingCurve>(
    workspace: &Workspace,
    path: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Column<E::Scalar>> {
    workspace.run(|| {
        let source = Source::open(workspace, path, FileKind::Wtns)?;
        let refuse = |error| source.refuse(error);
        let bytes = source.small(wtns::Header::range(&source.sections).map_err(refuse)?)?;
        let header = wtns::Header::parse(&source.sections, &bytes).map_err(refuse)?;
        check_curve::<E>(path, header.curve)?;
        let values = header.values(&source.sections).map_err(refuse)?;
        let array = array(header.count, values.offset);
        let _step = step!(workspace, "copy of the witness");
        let name = path.display().to_string();
        let mut writer = Writer::<E::Scalar>::scratch(workspace, &name, header.count, Placement::Disk)?;
        let zero = E::Scalar::from(0u64);
        let mut tile = (workspace.budget).vec(source.file.run_elements(&array) as usize, zero, "witness")?;
        source.file.each_run(&array, progress, |first, bytes| {
            let tile = &mut tile[..bytes.len() / SCALAR_BYTES];
            let at_element = |index: u64| array.offset + index * SCALAR_BYTES as u64;
            decode(bytes, tile).map_err(|at| {
                let bytes = &bytes[at * SCALAR_BYTES..][..SCALAR_BYTES];
                source.refuse(FormatError::Element {
                    what: "values",
                    index: first + at as u64,
                    offset: at_element(first + at as u64),
                    value: hex(bytes),
                })
            })?;
            if first == 0 && tile.first() != Some(&E::Scalar::ONE) {
                return Err(source.refuse(FormatError::Field {
                    what: "the first value",
                    offset: array.offset,
                    value: hex(&bytes[..SCALAR_BYTES]),
                    remedy: "the first value of a witness is one: the file is no witness, or of another program",
                }));
            }
            writer.push(tile)
        })?;
        writer.finish()
    })
}

/// So many values from an offset on.
fn array(count: u64, offset: u64) -> Array {
    Array {
        what: "witness",
        offset,
        count,
        element_bytes: SCALAR_BYTES as u64,
    }
}

/// A dry run of [`read_wtns`], for so many signals.
pub(crate) fn rehearse<F: KernelField>(workspace: &Workspace, signals: u64) -> Result<Column<F>> {
    let _step = step!(workspace, "copy of the witness");
    let array = array(signals, 0);
    let writer = Writer::scratch(workspace, "witness", signals, Placement::Disk)?;
    let tile = array.run_elements(&workspace.budget);
    let _tile = workspace.hold(tile * size_of::<F>() as u64, "witness")?;
    let _runs = array.rehearse(workspace)?;
    writer.finish()
}

/// Canonical values to native ones; as `Err`, the place of the first that is not below the modulus.
fn decode<F: NativeField>(bytes: &[u8], out: &mut [F]) -> Result<(), usize> {
    let bad = (out.chunks_mut(JOB_VALUES))
        .zip(bytes.chunks(JOB_VALUES * SCALAR_BYTES))
        .enumerate()
        .parallel()
        .find_map_first(|(job, (out, bytes))| {
            for (at, (out, bytes)) in out.iter_mut().zip(bytes.chunks_exact(SCALAR_BYTES)).enumerate() {
                match F::read_standard(bytes) {
                    Some(value) => *out = value,
                    None => return Some(job * JOB_VALUES + at),
                }
            }
            None
        });
    bad.map_or(Ok(()), Err)
}
