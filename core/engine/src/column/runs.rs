//! Reading arrays of other programs' files from the start to the end.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use spillproof_format::FormatError;

use super::{SEQUENTIAL_BYTES, Workspace};
use crate::Error;
use crate::Result;
use crate::budget::{Budget, Buffer, Lease, PAGE_BYTES};
use crate::storage::{File, Pending, Segment};

/// Runs of an array on their way.
const READ_AHEAD: usize = 2;
/// Runs take at most this part of what the budget has left.
const SHARE: u64 = 16;

/// How far the reading of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The array that is read.
    pub what: &'static str,
    /// Elements of it that were read.
    pub done: u64,
    /// Elements of it.
    pub total: u64,
}

/// A file of another program, read through the page cache: its arrays do not begin where a disk's sectors do.
pub struct ForeignFile {
    workspace: Workspace,
    file: File,
    path: PathBuf,
}

/// A run of an array on its way.
struct Run {
    first: u64,
    count: u64,
    pending: Pending,
}

/// An array of a file.
#[derive(Clone, Copy)]
pub struct Array {
    /// The name of the array, for errors.
    pub what: &'static str,
    /// Offset of its first element in the file, in bytes.
    pub offset: u64,
    /// Elements.
    pub count: u64,
    /// Bytes of an element.
    pub element_bytes: u64,
}

impl Array {
    /// Elements of a run, of what the budget has left.
    pub fn run_elements(&self, budget: &Budget) -> u64 {
        let share_bytes = budget.available_bytes() / SHARE;
        let run_bytes = share_bytes.clamp(PAGE_BYTES as u64, SEQUENTIAL_BYTES as u64);
        (run_bytes / self.element_bytes.max(1)).clamp(1, self.count.max(1))
    }

    /// For a stage's dry run: the buffers of [`ForeignFile::each_run`] until the lease is dropped. The array
    /// counts as read.
    ///
    /// # Errors
    /// [`Error::OverBudget`].
    pub fn rehearse(&self, workspace: &Workspace) -> Result<Lease> {
        let run_elements = self.run_elements(&workspace.budget);
        let run_bytes = (run_elements * self.element_bytes).next_multiple_of(PAGE_BYTES as u64);
        let runs = self.count.div_ceil(run_elements).min(READ_AHEAD as u64);
        if let Some(record) = workspace.dry_run() {
            record.moved(self.count * self.element_bytes, 0);
        }
        workspace.hold(runs * run_bytes, "import")
    }
}

impl ForeignFile {
    /// Opens a file.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn open(workspace: &Workspace, path: &Path) -> Result<Self> {
        Ok(Self {
            workspace: workspace.clone(),
            file: workspace.storage.open_unaligned(path)?,
            path: path.to_path_buf(),
        })
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Length of the file in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.file.len_bytes()
    }

    /// The error of this file.
    pub fn refuse(&self, source: FormatError) -> Error {
        Error::Format {
            file: self.path.clone(),
            source,
        }
    }

    /// A part of at most a few KiB.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Io`], [`Error::OverBudget`].
    pub fn read(&self, offset: u64, bytes: usize) -> Result<Vec<u8>> {
        let buffer = (self.workspace.budget).buffer(bytes.max(PAGE_BYTES), "import")?;
        let buffer = (self.file.read(buffer, [Segment::new(offset, 0, bytes)])).wait()?;
        Ok(buffer[..bytes].to_vec())
    }

    /// A buffer for parts of it.
    ///
    /// # Errors
    /// [`Error::OverBudget`], [`Error::Memory`].
    pub fn buffer(&self, bytes: usize) -> Result<Buffer> {
        self.workspace.budget.buffer_to_fill(bytes, "import")
    }

    /// Elements of a run.
    pub fn run_elements(&self, array: &Array) -> u64 {
        array.run_elements(&self.workspace.budget)
    }

    /// Hands the runs of an array to `each` in order, each with the index of its first element; the next ones
    /// are on their way meanwhile.
    pub fn each_run(
        &self,
        array: &Array,
        progress: &mut dyn FnMut(Progress),
        mut each: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let run_elements = self.run_elements(array);
        let run_bytes = (run_elements * array.element_bytes) as usize;
        let mut next = 0;
        let mut flying: VecDeque<Run> = VecDeque::with_capacity(READ_AHEAD);
        let mut launch = |buffer| {
            let count = run_elements.min(array.count - next);
            let offset = array.offset + next * array.element_bytes;
            let bytes = (count * array.element_bytes) as usize;
            let run = Run {
                first: next,
                count,
                pending: self.file.read(buffer, [Segment::new(offset, 0, bytes)]),
            };
            next += count;
            (run, next < array.count)
        };
        let mut is_more = array.count > 0;
        while is_more && flying.len() < READ_AHEAD {
            let buffer = self.workspace.budget.buffer(run_bytes, "import")?;
            let (run, more) = launch(buffer);
            flying.push_back(run);
            is_more = more;
        }
        while let Some(run) = flying.pop_front() {
            let buffer = run.pending.wait()?;
            each(run.first, &buffer[..(run.count * array.element_bytes) as usize])?;
            progress(Progress {
                what: array.what,
                done: run.first + run.count,
                total: array.count,
            });
            if is_more {
                let (run, more) = launch(buffer);
                flying.push_back(run);
                is_more = more;
            }
        }
        Ok(())
    }
}
