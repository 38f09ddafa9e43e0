//! A new file, section after section.

use spillproof_format::Element;
use spillproof_format::iden3::{ByteRange, FileKind, write_prefix, write_section_prefix};

use super::source::Source;
use spillproof_engine::Result;
use spillproof_engine::column::runs::{Array, Progress};
use spillproof_engine::column::{Column, Region, SEQUENTIAL_BYTES, Workspace};
use spillproof_engine::storage::{Append, Publish};
use spillproof_kernels::parallel::Parallel;

/// Elements that one thread encodes at a time.
const JOB_ELEMENTS: usize = 256;
/// The file's buffer takes at most this part of what the budget has left.
const SHARE: u64 = 16;

/// A file that gets its name when it is whole.
pub(super) struct NewFile(Append);

impl NewFile {
    /// A file of a kind that will have so many sections.
    ///
    /// # Errors
    /// [`spillproof_engine::Error::OverBudget`], [`spillproof_engine::Error::Io`].
    pub fn new(workspace: &Workspace, publish: Publish, kind: FileKind, sections: u32) -> Result<Self> {
        let share_bytes = workspace.budget.available_bytes() / SHARE;
        let buffer_bytes = share_bytes.min(SEQUENTIAL_BYTES as u64) as usize;
        let mut file = Append::new(publish, &workspace.budget, buffer_bytes)?;
        let mut prefix = Vec::new();
        write_prefix(kind, sections, &mut prefix);
        file.push(&prefix)?;
        Ok(Self(file))
    }

    /// A section that is in memory.
    pub fn section(&mut self, id: u32, content: &[u8]) -> Result<()> {
        self.begin(id, content.len() as u64)?;
        self.push(content)
    }

    /// A section whose content is pushed next.
    pub fn begin(&mut self, id: u32, section_bytes: u64) -> Result<()> {
        let mut prefix = Vec::new();
        write_section_prefix(id, section_bytes, &mut prefix);
        self.push(&prefix)
    }

    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.push(bytes)
    }

    /// `len` elements of a column, from `start` on.
    pub fn push_elements<T: Element>(
        &mut self,
        column: &Column<T>,
        (start, len): (u64, u64),
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let mut done = 0;
        each_tile(column, (start, len), |elements, bytes| {
            encode_all(elements, bytes, T::encode);
            done += elements.len() as u64;
            progress(done);
            self.push(bytes)
        })
    }

    /// A section as it is in another file.
    pub fn copy(
        &mut self,
        id: u32,
        (source, range): (&Source, ByteRange),
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        self.begin(id, range.bytes)?;
        let array = Array {
            what: "bytes copied",
            offset: range.offset,
            count: range.bytes,
            element_bytes: 1,
        };
        source
            .file
            .each_run(&array, progress, |_, bytes| self.push(bytes))
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// As [`Publish::commit`].
    pub fn finish(self) -> Result<()> {
        self.0.finish()
    }
}

/// Writes elements, in any form that has as many bytes, on all cores.
pub(super) fn encode_all<T: Element>(values: &[T], bytes: &mut [u8], encode: impl Fn(&T, &mut [u8]) + Sync) {
    (values.chunks(JOB_ELEMENTS))
        .zip(bytes.chunks_mut(JOB_ELEMENTS * T::BYTES))
        .parallel()
        .for_each(|(values, bytes)| {
            for (value, out) in values.iter().zip(bytes.chunks_exact_mut(T::BYTES)) {
                encode(value, out);
            }
        });
}

/// Hands `len` elements from `start` on to `each`, in tiles, with room for their bytes.
pub(super) fn each_tile<T: Element>(
    column: &Column<T>,
    (start, len): (u64, u64),
    mut each: impl FnMut(&mut [T], &mut [u8]) -> Result<()>,
) -> Result<()> {
    let budget = &column.workspace().budget;
    let chunk = column.sequential_chunk();
    let elements = chunk.min(len).max(1) as usize;
    let mut tile = budget.vec(elements, T::decode(&vec![0; T::BYTES]), "elements to write")?;
    let mut bytes = budget.vec(elements * T::BYTES, 0u8, "bytes to write")?;
    let spans = (0..len).step_by(chunk as usize).map(move |first| Region::Span {
        start: start + first,
        len: chunk.min(len - first),
    });
    let mut reader = column.reader(spans, 2)?;
    while let Some(region) = reader.next_into(&mut tile)? {
        let here = region.len() as usize;
        each(&mut tile[..here], &mut bytes[..here * T::BYTES])?;
    }
    Ok(())
}
