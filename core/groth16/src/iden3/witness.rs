//! Witnesses.

use std::path::Path;

use ark_ff::Field;
use spillproof_format::iden3::{FileKind, SCALAR_BYTES, SectionWalk, wtns};
use spillproof_format::native::NativeField;
use spillproof_format::{FormatError, hex};

use super::source::Source;
use crate::{PairingCurve, check_curve};
use spillproof_engine::Result;
use spillproof_engine::budget::LeasedVec;
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
        let range = header.values(&source.sections).map_err(refuse)?;
        let array = array(header.count, range.offset);
        let _step = step!(workspace, "copy of the witness");
        let run_values = source.file.run_elements(&array);
        let mut values = Values::<E>::new(workspace, path, &array, run_values)?;
        source
            .file
            .each_run(&array, progress, |first, bytes| values.push(first, bytes))?;
        values.writer.finish()
    })
}

/// The same of a `.wtns` file in memory, which is read where it is. The name is for errors.
///
/// # Errors
/// [`spillproof_engine::Error::Format`] as for [`read_wtns`]; [`spillproof_engine::Error::Io`];
/// [`spillproof_engine::Error::OverBudget`].
pub fn read_wtns_bytes<E: PairingCurve>(
    workspace: &Workspace,
    name: &Path,
    file: &[u8],
) -> Result<Column<E::Scalar>> {
    E::read_wtns_bytes(workspace, name, file)
}

pub(crate) fn read_wtns_bytes_over<E: PairingCurve>(
    workspace: &Workspace,
    name: &Path,
    file: &[u8],
) -> Result<Column<E::Scalar>> {
    let refuse = |source| spillproof_engine::Error::Format {
        file: name.to_owned(),
        source,
    };
    // Sections are inside the file.
    let cut = |offset: u64, bytes: u64| &file[offset as usize..][..bytes as usize];
    let mut walk = SectionWalk::new(FileKind::Wtns, file.len() as u64);
    while let Some((offset, bytes)) = walk.next_read() {
        walk.give(cut(offset, bytes as u64)).map_err(refuse)?;
    }
    let sections = walk.finish().map_err(refuse)?;
    let range = wtns::Header::range(&sections).map_err(refuse)?;
    let header = wtns::Header::parse(&sections, cut(range.offset, range.bytes)).map_err(refuse)?;
    check_curve::<E>(name, header.curve)?;
    let range = header.values(&sections).map_err(refuse)?;
    let array = array(header.count, range.offset);
    workspace.run(|| {
        let _step = step!(workspace, "copy of the witness");
        let run_values = header.count.min(RUN_VALUES as u64);
        let mut values = Values::<E>::new(workspace, name, &array, run_values)?;
        let runs = cut(range.offset, range.bytes).chunks(RUN_VALUES * SCALAR_BYTES);
        for (first, bytes) in (0..).step_by(RUN_VALUES).zip(runs) {
            values.push(first, bytes)?;
        }
        values.writer.finish()
    })
}

/// Values that are decoded at a time, of a file in memory.
const RUN_VALUES: usize = 4 * JOB_VALUES;

/// The values of a witness on their way to a column.
struct Values<'a, E: PairingCurve> {
    file: &'a Path,
    offset: u64,
    tile: LeasedVec<E::Scalar>,
    writer: Writer<E::Scalar>,
}

impl<'a, E: PairingCurve> Values<'a, E> {
    /// For values that come in runs of so many at most.
    fn new(workspace: &Workspace, file: &'a Path, array: &Array, run_values: u64) -> Result<Self> {
        let name = file.display().to_string();
        let zero = E::Scalar::from(0u64);
        Ok(Self {
            file,
            offset: array.offset,
            writer: Writer::scratch(workspace, &name, array.count, Placement::Disk)?,
            tile: workspace.budget.vec(run_values as usize, zero, "witness")?,
        })
    }

    /// The bytes of a run, from the value with the index `first` on.
    fn push(&mut self, first: u64, bytes: &[u8]) -> Result<()> {
        let tile = &mut self.tile[..bytes.len() / SCALAR_BYTES];
        let refuse = |source| spillproof_engine::Error::Format {
            file: self.file.to_owned(),
            source,
        };
        if let Err(at) = decode(bytes, tile) {
            let index = first + at as u64;
            return Err(refuse(FormatError::Element {
                what: "values",
                index,
                offset: self.offset + index * SCALAR_BYTES as u64,
                value: hex(&bytes[at * SCALAR_BYTES..][..SCALAR_BYTES]),
            }));
        }
        if first == 0 && tile.first() != Some(&E::Scalar::ONE) {
            return Err(refuse(FormatError::Field {
                what: "the first value",
                offset: self.offset,
                value: hex(&bytes[..SCALAR_BYTES]),
                remedy: "the first value of a witness is one: the file is no witness, or of another program",
            }));
        }
        self.writer.push(tile)
    }
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
