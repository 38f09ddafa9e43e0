//! The one owner of files and system calls.
//!
//! [`Storage`] is a folder and a backend. It gives [`File`]s: nameless scratch ([`Storage::scratch`]),
//! existing files ([`Storage::open`]), files that appear under their name only when whole
//! ([`Storage::publish`]), and folders of files that are made durable step by step (`Folder`). A file takes
//! an owned [`Buffer`](crate::budget::Buffer) and a list of [`Segment`]s and gives a [`Pending`], from which
//! the buffer comes back:
//!
//! ```text
//!   File::read / File::write  ->  Batch (buffer, segments, faults)  ->  backend: uring | pread threads
//!                                      |                                        |
//!   Pending::wait  <-  buffer or error, when the last segment is done  <--------+
//! ```
//!
//! [`File::read_lent`] reads into memory that is only lent, the slots of an accelerator, and
//! [`File::write_in_place`] writes from there: it returns when the kernel is done with it.
//!
//! What every backend keeps, because it is kept above them: short transfers go on with the rest, EINTR is
//! tried again, any other error is final and typed, a buffer lives until the kernel is done with it even if
//! no thread waits, and the [`FaultPlan`] hits all backends alike.
//!
//! Streams leave no page cache behind: O_DIRECT where the file system takes it, else buffered with
//! RWF_DONTCACHE, else write-out and POSIX_FADV_DONTNEED.
//!
//! Architecture invariant: this room knows no fields, no frames and no digests. Peak memory = the buffers
//! that callers hand in, plus a few hundred bytes a segment in flight.

mod append;
mod bell;
mod direct;
mod fault;
mod file;
mod folder;
mod handle;
mod map;
mod measure;
mod packed;
mod paged;
mod pread;
mod protected;
mod publish;
mod recycler;
mod region;
mod scratch;
mod simulated;
mod transfer;
mod uring;
mod userfault;

/// What `bell.rs` is made of; `tests/bell.rs` puts loom's in its place.
mod sync {
    pub(super) use std::sync::atomic::{AtomicBool, Ordering};
    pub(super) use std::sync::{Mutex, MutexGuard, PoisonError};
}

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::process::{
    DumpableBehavior, Resource, dumpable_behavior, getrlimit, set_dumpable_behavior, setrlimit,
};

pub use append::Append;
pub use fault::{Fault, FaultPlan};
pub use file::File;
pub(crate) use folder::{Folder, Journal, is_inside, read_start};
pub use handle::Segment;
pub use map::FileMap;
pub use packed::Packed;
pub use paged::PagedMap;
pub use publish::Publish;
pub use region::Region;
pub use scratch::check_scratch_folder;
pub use transfer::Pending;

use crate::error::{Error, Result};
use publish::Readers;
use transfer::Batch;

/// Which way transfers go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Backend {
    /// io_uring for direct transfers if the kernel allows it (containers often do not), else threads.
    #[default]
    Auto,
    /// io_uring, or an error. Files that cannot bypass the page cache go through threads all the same.
    Uring,
    /// Threads that call pread and pwrite.
    Pread,
    /// The caller's thread, one transfer after the other: for a few small files.
    Inline,
    /// For tests: one thread, which makes transfers in an order that this seed draws, some of them late.
    Simulated(u64),
}

/// Carries batches out. A batch must be finished, part by part, through [`transfer::Transfer`]; it may not be
/// dropped while the kernel still works on its buffer. Dropping the engine finishes what it was given first.
trait Engine: Send + Sync {
    fn submit(&self, batch: Arc<Batch>);

    /// Whether it is for direct transfers only.
    fn is_ring(&self) -> bool {
        false
    }

    /// What it is called in reports.
    fn name(&self) -> &'static str;
}

/// A folder for scratch files and a way to do transfers. Clones share both.
///
/// ```
/// use spillproof_engine::budget::Budget;
/// use spillproof_engine::storage::{Segment, Storage};
///
/// let storage = Storage::builder().dir(std::env::temp_dir()).build()?;
/// let budget = Budget::new(1 << 20);
/// let file = storage.scratch("example", 0)?;
/// let mut buffer = budget.buffer(8192, "example")?;
/// buffer.fill(7);
/// let buffer = file.write(buffer, vec![Segment::new(0, 0, 8192)]).wait()?;
/// let buffer = file.read(buffer, vec![Segment::new(4096, 0, 4096)]).wait()?;
/// assert_eq!(buffer[0], 7);
/// # Ok::<(), spillproof_engine::Error>(())
/// ```
#[derive(Clone)]
pub struct Storage {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Box<dyn Engine>,
    /// For files that go through the page cache, if `engine` is the ring: made when the first is used.
    cached_engine: Mutex<Option<Arc<pread::Threads>>>,
    scratch: scratch::ScratchDir,
    recycler: Arc<recycler::Recycler>,
    direct: bool,
    faults: FaultPlan,
    counters: Arc<Counters>,
    /// The kernel has refused a caller's memory.
    refuses_in_place: AtomicBool,
    /// Bytes a second, read and written, once they are measured.
    rates: OnceLock<(f64, f64)>,
    /// The process whose threads carry transfers out.
    process: u32,
}

/// What was transferred, and how long callers waited for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct IoStats {
    /// Bytes read from files.
    pub bytes_read: u64,
    /// Bytes written to files.
    pub bytes_written: u64,
    /// Segments read.
    pub reads: u64,
    /// Segments written.
    pub writes: u64,
    /// Bytes that [`File::read_lent`] read into memory that was lent; [`Self::bytes_read`] contains them.
    pub bytes_read_in_place: u64,
    /// Bytes that [`File::write_in_place`] wrote from the caller's memory; [`Self::bytes_written`] contains
    /// them.
    pub bytes_written_in_place: u64,
    /// Scratch files that were made.
    pub scratch_made: u64,
    /// Scratch files that took over the disk blocks of a closed one.
    pub scratch_reused: u64,
    /// How long threads were blocked in [`Pending::wait`] for reads, summed.
    pub read_wait: Duration,
    /// How long threads were blocked in [`Pending::wait`] for writes, summed.
    pub write_wait: Duration,
}

#[derive(Default)]
struct Counters {
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    reads: AtomicU64,
    writes: AtomicU64,
    bytes_read_in_place: AtomicU64,
    bytes_written_in_place: AtomicU64,
    scratch_made: AtomicU64,
    scratch_reused: AtomicU64,
    read_wait_nanos: AtomicU64,
    write_wait_nanos: AtomicU64,
}

/// Settings of a [`Storage`].
#[derive(Clone, Debug)]
#[must_use]
pub struct StorageBuilder {
    dir: PathBuf,
    backend: Backend,
    direct: bool,
    threads: usize,
    faults: FaultPlan,
}

impl StorageBuilder {
    /// Where scratch files go: a folder that is there. The system's folder for temporary files if not set.
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = dir.into();
        self
    }

    /// Which way transfers go; [`Backend::Auto`] if not set.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// Whether to bypass the page cache where the file system takes it; on if not set.
    pub fn direct(mut self, direct: bool) -> Self {
        self.direct = direct;
        self
    }

    /// How many threads ask for transfers: rings are made for as many. One if not set, 0 for one of each
    /// core.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// For tests: operations that fail or lie.
    pub fn faults(mut self, faults: FaultPlan) -> Self {
        self.faults = faults;
        self
    }

    /// Makes the folder if needed, starts the backend.
    ///
    /// # Errors
    /// [`Error::File`] if the folder cannot be made or used, or the backend does not start.
    pub fn build(self) -> Result<Storage> {
        let scratch = scratch::ScratchDir::new(&self.dir)?;
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let threads = match self.threads {
            0 => cores(),
            threads => threads,
        };
        let engine = start(self.backend, threads)?;
        tracing::debug!(dir = %self.dir.display(), backend = engine.name(), direct = self.direct, "storage started");
        Ok(Storage::over(engine, scratch, self.direct, self.faults))
    }
}

fn start(backend: Backend, threads: usize) -> Result<Box<dyn Engine>> {
    match backend {
        Backend::Pread => {}
        Backend::Inline => return Ok(Box::new(pread::Inline)),
        Backend::Simulated(seed) => return Ok(Box::new(simulated::Simulated::start(seed)?)),
        Backend::Uring => return Ok(Box::new(uring::Uring::start(threads)?)),
        Backend::Auto => match uring::Uring::start(threads) {
            Ok(uring) => return Ok(Box::new(uring)),
            Err(error) => tracing::info!(%error, "transfers go through pread and pwrite"),
        },
    }
    Ok(Box::new(pread::Threads::start()?))
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.recycler.settle();
    }
}

impl Inner {
    /// Hands a batch over. The ring takes direct transfers only: through the page cache it is no faster than
    /// threads (each transfer that must wait goes to a kernel thread anyway), and write-out would hold the
    /// ring up.
    fn submit(&self, batch: Arc<Batch>) -> Result<()> {
        if self.process != std::process::id() {
            return Err(Error::Forked { maker: self.process });
        }
        if batch.handle.is_direct() || !self.engine.is_ring() {
            self.engine.submit(batch);
            return Ok(());
        }
        let threads = {
            let mut cached_engine = self.cached_engine.lock().unwrap_or_else(PoisonError::into_inner);
            match &*cached_engine {
                Some(threads) => threads.clone(),
                None => cached_engine.insert(Arc::new(pread::Threads::start()?)).clone(),
            }
        };
        threads.submit(batch);
        Ok(())
    }
}

impl Storage {
    /// Settings to start from.
    pub fn builder() -> StorageBuilder {
        StorageBuilder {
            dir: std::env::temp_dir(),
            backend: Backend::default(),
            direct: true,
            threads: 1,
            faults: FaultPlan::default(),
        }
    }

    /// No folder and no threads, for a dry run: no scratch file can be made.
    pub(crate) fn none() -> Self {
        Self::over(
            Box::new(pread::Inline),
            scratch::ScratchDir::none(),
            false,
            FaultPlan::default(),
        )
    }

    fn over(engine: Box<dyn Engine>, scratch: scratch::ScratchDir, direct: bool, faults: FaultPlan) -> Self {
        Self {
            inner: Arc::new(Inner {
                engine,
                cached_engine: Mutex::default(),
                scratch,
                recycler: recycler::Recycler::new(),
                direct,
                faults,
                counters: Arc::default(),
                refuses_in_place: AtomicBool::new(false),
                rates: OnceLock::new(),
                process: std::process::id(),
            }),
        }
    }

    /// A nameless file, readable and writable, that is gone when its last handle is: after success, error,
    /// panic or a signal alike. It is `bytes_hint` long from the start, with the room reserved where the file
    /// system can; what it holds is undefined then: it may be the room of an earlier one. All of them
    /// together never take more than they did at one time.
    ///
    /// # Errors
    /// [`Error::File`], ENOSPC among them.
    pub fn scratch(&self, what: impl Into<String>, bytes_hint: u64) -> Result<File> {
        self.inner.scratch.create(self, what.into(), bytes_hint, false)
    }

    /// A scratch file that takes its room piece by piece. The thread that drops it does not wait until the
    /// file system has freed that.
    ///
    /// # Errors
    /// As [`Self::scratch`].
    pub(crate) fn scratch_closed_behind(&self, what: impl Into<String>) -> Result<File> {
        self.inner.scratch.create(self, what.into(), 0, true)
    }

    /// Addresses for `bytes` whose pages the caller puts in place, and of which none leaves memory if
    /// `stay_in_memory`; `None` where the kernel does not allow that.
    ///
    /// # Errors
    /// As [`Region::next_fault`], and [`Error::Memory`] without address space.
    pub fn region(&self, what: &str, bytes: u64, stay_in_memory: bool) -> Result<Option<Region>> {
        Region::new(&self.inner.faults, what, bytes, stay_in_memory)
    }

    /// An existing file, to read. Segments must be aligned to [`File::alignment_bytes`].
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<File> {
        file::open(self, path.as_ref(), handle::Access::Aligned)
    }

    /// An existing file of any shape, to read at any offset: goes through the page cache and leaves nothing
    /// in it.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn open_unaligned(&self, path: impl AsRef<Path>) -> Result<File> {
        file::open(self, path.as_ref(), handle::Access::Any)
    }

    /// A new file that gets its name on [`Publish::commit`], whole or not at all; a file that has the name is
    /// replaced then. Mode 0666 less the umask.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn publish(&self, path: impl AsRef<Path>) -> Result<Publish> {
        Publish::new(self, path.as_ref(), Readers::Umask)
    }

    /// Takes a file's name away, if it has one.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn remove(&self, path: impl AsRef<Path>) -> Result<()> {
        publish::remove(path.as_ref(), &self.inner.faults)
    }

    /// The same for a secret: from its making on, with and without a name, only its owner may read the file.
    ///
    /// # Errors
    /// As [`Self::publish`]; [`Error::File`] where the file system has no permissions.
    pub fn publish_private(&self, path: impl AsRef<Path>) -> Result<Publish> {
        Publish::new(self, path.as_ref(), Readers::Owner)
    }

    /// The folder of scratch files.
    pub fn dir(&self) -> &Path {
        self.inner.scratch.path()
    }

    /// The room that the disk under the folder has for scratch files, blocks that closed ones left among it;
    /// `None` where the file system does not tell.
    pub fn free_bytes(&self) -> Option<u64> {
        let free_bytes = free_bytes_of(self.dir())?;
        Some(free_bytes.saturating_add(self.inner.recycler.spare_bytes()))
    }

    /// Whether the disk under the folder has so much room left for the phase `what`. Where the file system
    /// does not tell, it has.
    ///
    /// # Errors
    /// [`Error::DiskTooSmall`].
    pub(crate) fn check_room(&self, what: &'static str, needed_bytes: u64) -> Result<()> {
        let Some(mut free) = self.free_bytes() else {
            return Ok(());
        };
        // What is being closed will be free.
        if needed_bytes > free && self.inner.recycler.settle() {
            free = self.free_bytes().unwrap_or(free);
        }
        if needed_bytes <= free {
            return Ok(());
        }
        Err(Error::DiskTooSmall {
            what,
            dir: self.dir().to_owned(),
            needed_bytes,
            free_bytes: free,
        })
    }

    /// The same for a file of so many bytes that is to be published as `path`, which may be on another disk.
    ///
    /// # Errors
    /// [`Error::File`] of the kind [`StorageFull`](std::io::ErrorKind::StorageFull).
    pub(crate) fn check_room_for(path: &Path, needed_bytes: u64) -> Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        match free_bytes_of(folder.unwrap_or(Path::new("."))) {
            Some(free_bytes) if free_bytes < needed_bytes => Err(Error::File {
                operation: "create",
                file: path.display().to_string(),
                source: std::io::Error::new(
                    std::io::ErrorKind::StorageFull,
                    format!(
                        "it will take {needed_bytes} bytes, and {free_bytes} bytes are left there: free some, or name another place"
                    ),
                ),
            }),
            _ => Ok(()),
        }
    }

    /// The backend at work: `uring` or `pread`.
    pub fn backend_name(&self) -> &'static str {
        self.inner.engine.name()
    }

    /// What was transferred so far.
    pub fn stats(&self) -> IoStats {
        let counters = &self.inner.counters;
        IoStats {
            bytes_read: counters.bytes_read.load(Relaxed),
            bytes_written: counters.bytes_written.load(Relaxed),
            reads: counters.reads.load(Relaxed),
            writes: counters.writes.load(Relaxed),
            bytes_read_in_place: counters.bytes_read_in_place.load(Relaxed),
            bytes_written_in_place: counters.bytes_written_in_place.load(Relaxed),
            scratch_made: counters.scratch_made.load(Relaxed),
            scratch_reused: counters.scratch_reused.load(Relaxed),
            read_wait: Duration::from_nanos(counters.read_wait_nanos.load(Relaxed)),
            write_wait: Duration::from_nanos(counters.write_wait_nanos.load(Relaxed)),
        }
    }
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Storage")
            .field("dir", &self.dir())
            .field("backend", &self.backend_name())
            .field("direct", &self.inner.direct)
            .finish_non_exhaustive()
    }
}

/// Where the kernel says what becomes of core dumps: the pattern of a file's name, or `|` and a program.
const CORE_PATTERN: &str = "/proc/sys/kernel/core_pattern";

/// Lets this process leave no core dump, in which values of a witness could stand. For programs; a library
/// leaves it to them. Where the system hands core dumps to a program, which no limit keeps it from, the
/// process becomes undumpable: other programs of the user's cannot look into it then, debuggers among them.
pub fn forbid_core_dumps() {
    let mut limit = getrlimit(Resource::Core);
    limit.current = Some(0);
    if let Err(errno) = setrlimit(Resource::Core, limit) {
        tracing::debug!(%errno, "core dumps stay as they were");
    }
    if goes_to_a_program(&core_pattern())
        && let Err(errno) = set_dumpable_behavior(DumpableBehavior::NotDumpable)
    {
        tracing::debug!(%errno, "core dumps still go to a program");
    }
}

/// Whether the system may write the memory of this process to a file, or hand it to a program, when it ends
/// by a signal.
pub(crate) fn allows_core_dumps() -> bool {
    let is_dumpable = !matches!(dumpable_behavior(), Ok(DumpableBehavior::NotDumpable));
    core_dumps_go_somewhere(is_dumpable, getrlimit(Resource::Core).current, &core_pattern())
}

/// Unknown, it is taken for a pipe: then no limit is relied on.
fn core_pattern() -> String {
    std::fs::read_to_string(CORE_PATTERN).unwrap_or_else(|_| "|".into())
}

fn goes_to_a_program(core_pattern: &str) -> bool {
    core_pattern.starts_with('|')
}

/// The limit is one on files.
fn core_dumps_go_somewhere(is_dumpable: bool, limit_bytes: Option<u64>, core_pattern: &str) -> bool {
    is_dumpable && (limit_bytes != Some(0) || goes_to_a_program(core_pattern))
}

/// The devices and files that the system may write memory to. Not compressed memory, which is no disk.
pub(crate) fn swap_devices() -> Vec<String> {
    swap_devices_of(&std::fs::read_to_string("/proc/swaps").unwrap_or_default())
}

fn swap_devices_of(table: &str) -> Vec<String> {
    let names = table
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| !name.starts_with("/dev/zram"))
        .map(str::to_owned)
        .collect()
}

/// Allows as many open files as the system lets this process have: each scratch column on disk is one, and
/// the usual limit is 1024.
pub(crate) fn raise_open_files() {
    /// Of a process whose number is not limited.
    const ENOUGH: u64 = 1 << 20;
    let mut limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(ENOUGH);
    if limit.current.is_some_and(|current| current < most) {
        limit.current = Some(most);
        if let Err(errno) = setrlimit(Resource::Nofile, limit) {
            tracing::debug!(%errno, "the number of open files stays as it was");
        }
    }
}

/// The room that is left on the disk of a folder; `None` where the file system does not tell.
fn free_bytes_of(folder: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    // As `df` says it. More may be free, but reserved: for root, or, as some mounts have it, for another user.
    (stat.f_blocks > 0).then(|| stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_limit_on_core_dumps_holds_for_files_only() {
        let go = super::core_dumps_go_somewhere;
        let program = "|/usr/lib/systemd/systemd-coredump %P\n";
        for (is_dumpable, limit_bytes, pattern, expected) in [
            (true, None, "core\n", true),
            (true, Some(4096), "/tmp/core.%p\n", true),
            (true, Some(0), "core\n", false),
            (true, Some(0), program, true),
            (false, None, program, false),
            (false, None, "core\n", false),
        ] {
            assert_eq!(
                go(is_dumpable, limit_bytes, pattern),
                expected,
                "{limit_bytes:?} {pattern}"
            );
        }
    }

    #[test]
    fn swap_is_found_but_for_compressed_memory() {
        let table = "Filename\t\t\tType\t\tSize\tUsed\tPriority\n/swap\\040file   file  8388604 0 -2\n/dev/zram0 partition 1 0 100\n";
        assert_eq!(super::swap_devices_of(table), ["/swap\\040file"]);
        assert!(super::swap_devices_of("Filename\tType\n").is_empty());
        assert!(super::swap_devices_of("").is_empty());
    }
}
