//! Witnesses.

use std::io::Read;
use std::path::Path;

use ark_ff::Field;
use spillproof_format::iden3::{FileKind, SCALAR_BYTES, SectionWalk, wtns};
use spillproof_format::native::NativeField;
use spillproof_format::{FormatError, hex};

use super::source::Source;
use crate::{PairingCurve, check_curve, placement_of_copies};
use spillproof_engine::Result;
use spillproof_engine::budget::{LeasedVec, PAGE_BYTES};
use spillproof_engine::column::runs::{Array, Progress};
use spillproof_engine::column::{Column, Placement, Workspace, Writer};
use spillproof_engine::step;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;

/// Values that one thread decodes at a time.
const JOB_VALUES: usize = 1024;

/// The values of a `.wtns` file as a scratch column: in memory where that is a small part of the budget, else
/// on disk, sealed, if the workspace's are.
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
        let placement = placement_of_copies(workspace);
        let mut values = Values::<E>::new(workspace, path, &array, run_values, placement)?;
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
    E::read_wtns_from(workspace, name, &mut { file })
}

/// The same of a `.wtns` file that is nowhere whole: its pieces are asked for in order, and each is written before the
/// next one is asked for. The name is for errors.
///
/// # Errors
/// As for [`read_wtns_bytes`]; those of `file`.
pub fn read_wtns_from<E: PairingCurve>(
    workspace: &Workspace,
    name: &Path,
    file: &mut dyn WitnessBytes,
) -> Result<Column<E::Scalar>> {
    E::read_wtns_from(workspace, name, file)
}

/// The bytes of a `.wtns` file, wherever they are or are made.
pub trait WitnessBytes {
    /// How many there are.
    fn len_bytes(&self) -> u64;

    /// Fills `out` with the bytes from an offset on. All of them are inside of the file.
    ///
    /// # Errors
    /// What keeps the bytes from coming.
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<()>;
}

impl WitnessBytes for &[u8] {
    fn len_bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<()> {
        out.copy_from_slice(&self[offset as usize..][..out.len()]);
        Ok(())
    }
}

pub(crate) fn read_wtns_from_over<E: PairingCurve>(
    workspace: &Workspace,
    name: &Path,
    file: &mut dyn WitnessBytes,
) -> Result<Column<E::Scalar>> {
    copied::<E>(workspace, name, file, Turns::OfEachPiece)
}

/// Whether what is done with a piece waits for the session's turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turns {
    /// It does: it leases from the ledger of all tasks.
    OfEachPiece,
    /// It is done where the caller is, on a ledger of its own.
    None,
}

impl Turns {
    fn run<T: Send>(self, workspace: &Workspace, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        match self {
            Self::OfEachPiece => workspace.run(work),
            Self::None => work(),
        }
    }
}

fn copied<E: PairingCurve>(
    workspace: &Workspace,
    name: &Path,
    file: &mut dyn WitnessBytes,
    turns: Turns,
) -> Result<Column<E::Scalar>> {
    let refuse = |source| spillproof_engine::Error::Format {
        file: name.to_owned(),
        source,
    };
    let small = |file: &mut dyn WitnessBytes, offset, bytes| {
        let mut part = vec![0; bytes];
        file.read(offset, &mut part).map(|()| part)
    };
    let mut walk = SectionWalk::new(FileKind::Wtns, file.len_bytes());
    while let Some((offset, bytes)) = walk.next_read() {
        walk.give(&small(file, offset, bytes)?).map_err(refuse)?;
    }
    let sections = walk.finish().map_err(refuse)?;
    // At most `HEADER_BYTES_MAX`.
    let range = wtns::Header::range(&sections).map_err(refuse)?;
    let header = small(file, range.offset, range.bytes as usize)?;
    let header = wtns::Header::parse(&sections, &header).map_err(refuse)?;
    check_curve::<E>(name, header.curve)?;
    let range = header.values(&sections).map_err(refuse)?;
    let array = array(header.count, range.offset);
    let _step = step!(workspace, "copy of the witness");
    let (run_values_max, placement) = match turns {
        Turns::OfEachPiece => (RUN_VALUES, placement_of_copies(workspace)),
        Turns::None => (JOB_VALUES, Placement::Disk),
    };
    let run_values = header.count.min(run_values_max as u64);
    let run_bytes = run_values as usize * SCALAR_BYTES;
    let (mut values, mut run) = turns.run(workspace, || {
        let run = workspace.budget.buffer(run_bytes.max(PAGE_BYTES), "witness")?;
        let values = Values::<E>::new(workspace, name, &array, run_values, placement)?;
        Ok((values, run))
    })?;
    // No turn is kept while bytes are waited for: they may come from a thread that is busy for long.
    for first in (0..header.count).step_by(run_values_max) {
        let count = run_values.min(header.count - first);
        let bytes = &mut run[..count as usize * SCALAR_BYTES];
        file.read(range.offset + first * SCALAR_BYTES as u64, bytes)?;
        turns.run(workspace, || values.push(first, bytes))?;
    }
    turns.run(workspace, || values.writer.finish())
}

/// The bytes before the values of a file as circom's tools write it: header first, then values, nothing else.
const PRELUDE_BYTES: usize = 76;

/// Bytes of a `.wtns` file of so many signals, as circom's tools write it.
pub fn wtns_bytes(signals: u64) -> u64 {
    (PRELUDE_BYTES as u64).saturating_add(signals.saturating_mul(SCALAR_BYTES as u64))
}

/// The same of a `.wtns` file of `len_bytes` bytes that comes from its start to its end, such as the body of a
/// request; nothing of it is held but a run of 32 KiB. No turn of the session is taken: while the next bytes are
/// waited for, others compute. So the workspace should have a ledger of its own
/// ([`Workspace::with_budget`]), of at least [`STREAM_BYTES`]: what is leased here is not to be missing in
/// the stage of another task. The name is for errors.
///
/// # Errors
/// [`spillproof_engine::Error::Format`] as for [`read_wtns`], and for a file whose values are not its second
/// section; [`spillproof_engine::Error::File`] for an error of the source, and where it ends early;
/// [`spillproof_engine::Error::Io`]; [`spillproof_engine::Error::OverBudget`].
pub fn read_wtns_stream<E: PairingCurve>(
    workspace: &Workspace,
    name: &Path,
    len_bytes: u64,
    source: &mut (dyn Read + Send),
) -> Result<Column<E::Scalar>> {
    E::read_wtns_stream(workspace, name, len_bytes, source)
}

/// What [`read_wtns_stream`] leases at most: a run, and what a writer has behind it.
pub const STREAM_BYTES: u64 = 256 << 10;

pub(crate) fn read_wtns_stream_over<E: PairingCurve>(
    workspace: &Workspace,
    name: &Path,
    len_bytes: u64,
    source: &mut (dyn Read + Send),
) -> Result<Column<E::Scalar>> {
    let mut file = InOrder {
        name,
        len_bytes,
        source,
        first: Vec::with_capacity(PRELUDE_BYTES),
        next: 0,
    };
    let column = copied::<E>(workspace, name, &mut file, Turns::None)?;
    match file.next == len_bytes {
        true => Ok(column),
        false => Err(file.out_of_order(file.next)),
    }
}

/// A file that comes from its start to its end. What is before the values is looked at more than once, and kept.
struct InOrder<'a> {
    name: &'a Path,
    len_bytes: u64,
    source: &'a mut (dyn Read + Send),
    first: Vec<u8>,
    /// The offset of the next byte that comes.
    next: u64,
}

impl InOrder<'_> {
    fn out_of_order(&self, offset: u64) -> spillproof_engine::Error {
        spillproof_engine::Error::Format {
            file: self.name.to_owned(),
            source: FormatError::Field {
                what: "offset of a section",
                offset,
                value: offset.to_string(),
                remedy: "a witness that is sent has its header first, then its values, and nothing else: write it with circom's or snarkjs' tools",
            },
        }
    }

    fn come(&mut self, bytes: &mut [u8]) -> Result<()> {
        let come = self.source.read_exact(bytes);
        self.next += bytes.len() as u64;
        come.map_err(|source| spillproof_engine::Error::File {
            operation: "read",
            file: self.name.display().to_string(),
            source,
        })
    }
}

impl WitnessBytes for InOrder<'_> {
    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<()> {
        if self.first.is_empty() {
            let mut first = [0; PRELUDE_BYTES];
            let first = &mut first[..self.len_bytes.min(PRELUDE_BYTES as u64) as usize];
            self.come(first)?;
            self.first.extend_from_slice(first);
        }
        let end = offset.saturating_add(out.len() as u64);
        let known = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
        if let Some(known) = known.and_then(|(from, to)| self.first.get(from..to)) {
            out.copy_from_slice(known);
            return Ok(());
        }
        if offset == self.next {
            return self.come(out);
        }
        Err(self.out_of_order(offset))
    }
}

/// Values that are decoded at a time, of a file that is read in pieces.
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
    fn new(
        workspace: &Workspace,
        file: &'a Path,
        array: &Array,
        run_values: u64,
        placement: Placement,
    ) -> Result<Self> {
        let name = file.display().to_string();
        let zero = E::Scalar::from(0u64);
        Ok(Self {
            file,
            offset: array.offset,
            writer: Writer::scratch(workspace, &name, array.count, placement)?,
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
    let writer = Writer::scratch(workspace, "witness", signals, placement_of_copies(workspace))?;
    let tile = array.run_elements(&workspace.budget);
    let _tile = workspace.hold(tile * size_of::<F>() as u64, "witness")?;
    let _runs = array.rehearse(workspace)?;
    writer.finish()
}

/// Canonical values to native ones; as `Err`, the place of the first that is not below the modulus.
fn decode<F: NativeField>(bytes: &[u8], out: &mut [F]) -> Result<(), usize> {
    if out.len() <= JOB_VALUES {
        return decode_job(bytes, out).map_or(Ok(()), Err);
    }
    let bad = (out.chunks_mut(JOB_VALUES))
        .zip(bytes.chunks(JOB_VALUES * SCALAR_BYTES))
        .enumerate()
        .parallel()
        .find_map_first(|(job, (out, bytes))| decode_job(bytes, out).map(|at| job * JOB_VALUES + at));
    bad.map_or(Ok(()), Err)
}

/// The same on this thread; the place of the first that is not below the modulus.
fn decode_job<F: NativeField>(bytes: &[u8], out: &mut [F]) -> Option<usize> {
    for (at, (out, bytes)) in out.iter_mut().zip(bytes.chunks_exact(SCALAR_BYTES)).enumerate() {
        match F::read_standard(bytes) {
            Some(value) => *out = value,
            None => return Some(at),
        }
    }
    None
}
