//! Typed sequences on disk.
//!
//! A [`Column`] is a read-only sequence of [`Element`]s in checked frames; a [`Draft`] is one that is being
//! written. What moves is a [`Region`] (a span, a panel of a matrix, a window that wraps around): a
//! [`Reader`] runs through a list of regions with read-ahead, a draft takes regions with write-behind, a
//! [`Writer`] is a draft filled from its start. Files that outlive the process are [`Container`]s of one or
//! more columns.
//!
//! For access that is random by nature, [`Cells`] are arrays that are read and written in any order, within a
//! share of memory. The cells of [`Addressed`] have addresses besides (where the kernel refuses that, they
//! are in a [`Mapped`] under a [`Residency`]). A [`MappedColumn`] is a column as a slice.
//!
//! Memory: `depth + 1` buffers of the largest region for each reader or draft, leased when it is made.
//! Nothing grows with the length of a scratch column of field elements or points; of a container, and of
//! elements that fill their bytes, 32 bytes a frame for digests do.
//!
//! ```
//! use ark_bn254::Fr;
//! use spillproof_engine::budget::Budget;
//! use spillproof_engine::column::{Placement, Region, Workspace, Writer};
//! use spillproof_engine::storage::Storage;
//!
//! let storage = Storage::builder().dir(std::env::temp_dir()).build()?;
//! let workspace = Workspace::new(storage, Budget::new(1 << 20));
//! let squares: Vec<Fr> = (0..4096u64).map(|i| Fr::from(i * i)).collect();
//! let mut writer = Writer::scratch(&workspace, "squares", 4096, Placement::Disk)?;
//! writer.push(&squares)?;
//! let column = writer.finish()?;
//!
//! // All of it, in chunks that are on their way before they are asked for.
//! let chunk = column.sequential_chunk();
//! let mut tile = workspace.budget.vec(chunk as usize, Fr::from(0u64), "tile")?;
//! let (mut reader, mut seen) = (column.read_ascending(chunk)?, 0);
//! while let Some(region) = reader.next_into(&mut tile)? {
//!     let len = region.len() as usize;
//!     assert_eq!(tile[..len], squares[seen..seen + len]);
//!     seen += len;
//! }
//! assert_eq!(seen, 4096);
//!
//! // A window that wraps around: the last element, then the first two.
//! let mut window = [Fr::from(0u64); 3];
//! column.read(Region::Wrapped { start: 4095, len: 3, modulus: 4096 }, &mut window)?;
//! assert_eq!(window, [squares[4095], squares[0], squares[1]]);
//! # Ok::<(), spillproof_engine::Error>(())
//! ```
//!
//! Architecture invariant: nothing in here computes with elements, and nothing outside of [`crate::storage`]
//! makes a system call.

mod addressed;
mod bundle;
mod cells;
mod container;
mod disk;
mod draft;
mod foreign;
mod frames;
mod in_place;
mod kept;
mod line;
mod lookup;
mod mapped;
mod reader;
mod region;
mod residency;
mod residents;
pub mod runs;
mod seal;
mod streamed;
mod tag;
mod view;
mod workers;

pub use addressed::Addressed;
pub use bundle::{Bundle, BundleKind, BundleWriter, Bytes, Group, bundle_bytes};
pub use cells::Cells;
pub use container::{Container, ContainerWriter, SectionSpec};
pub use disk::side_by_side;
pub use draft::{Behind, SharedDraft, digests_beside, digests_bytes, writer_bytes};
pub use draft::{Draft, Writer};
pub use foreign::{Array as ForeignArray, Check as ForeignCheck};
pub use frames::memory_bytes;
pub(crate) use in_place::InPlace;
pub(crate) use kept::{keep, kept, rehearse_keep};
pub use lookup::{Lookup, Share};
pub use mapped::{Cell, Mapped};
pub use reader::{Column, Reader};
pub use region::{Region, ascending, descending};
pub use residency::Residency;
pub use spillproof_format::{Curve, Element, Kind, SpareBits};
pub use streamed::{STREAM_BYTES, StreamedBundle};
pub use view::{MappedColumn, Plain};

use std::sync::Arc;

use crate::Result;
use crate::accelerator::Accelerator;
use crate::budget::{Budget, Lease, PAGE_BYTES, SecretKey};
use crate::control;
use crate::dry::{DryRun, Held, Phase, Work};
use crate::storage::Storage;
use residents::Residents;
pub(crate) use workers::InTask;
use workers::Workers;

/// Where columns live, what their buffers are charged to, and which threads compute with them.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Files.
    pub storage: Storage,
    /// The ledger.
    pub budget: Budget,
    /// The accelerator that may do whole jobs instead of the processor, if there is one.
    pub accelerator: Option<Arc<dyn Accelerator>>,
    dry_run: Option<Arc<DryRun>>,
    sealing: Option<Arc<SecretKey>>,
    workers: Arc<Workers>,
    residents: Arc<Residents>,
}

impl Workspace {
    /// Files and a ledger, without an accelerator. It has no threads of its own: it computes wherever it is
    /// called from, and its callers see to it that not several plan with the same bytes.
    pub fn new(storage: Storage, budget: Budget) -> Self {
        Self {
            storage,
            budget,
            accelerator: None,
            dry_run: None,
            sealing: None,
            workers: Arc::default(),
            residents: Arc::default(),
        }
    }

    /// A ledger without files: stages asked to work here record what they would take, and give columns
    /// without values.
    pub fn dry(budget: Budget) -> Self {
        Self::dry_beside(budget, None)
    }

    /// As [`Self::dry`], where so much is held when a phase begins.
    pub(crate) fn dry_beside(budget: Budget, held: Option<Held>) -> Self {
        let dry_run = Some(Arc::new(DryRun::new(budget.clone(), held)));
        Self {
            dry_run,
            ..Self::new(Storage::none(), budget)
        }
    }

    /// The record, if this is a dry workspace.
    pub fn dry_run(&self) -> Option<&Arc<DryRun>> {
        self.dry_run.as_ref()
    }

    /// Whether stages only record what they would take.
    pub fn is_dry(&self) -> bool {
        self.dry_run.is_some()
    }

    /// A step begins, whose span a real run opens and a dry run leaves: see [`step!`](crate::step).
    #[doc(hidden)]
    pub fn begin_step(&self, name: &'static str, span: impl FnOnce() -> tracing::Span) -> Step {
        if let Some(dry_run) = &self.dry_run {
            dry_run.begin_step(name);
            return Step { _span: None };
        }
        control::begin_step(name);
        Step {
            _span: Some(span().entered()),
        }
    }

    /// The steps that follow belong to `phase`; for the record of a dry run.
    ///
    /// # Errors
    /// Of a dry run: [`crate::Error::OverBudget`], if there is no room for what is held when the phase
    /// begins.
    pub fn phase(&self, phase: Phase) -> Result<()> {
        match &self.dry_run {
            Some(dry_run) => dry_run.begin_phase(phase),
            None => Ok(()),
        }
    }

    /// For a stage's dry run: the lease that it would hold, in whole pages.
    pub fn hold(&self, bytes: u64, what: &'static str) -> Result<Lease> {
        self.budget
            .lease_map(bytes.next_multiple_of(PAGE_BYTES as u64), what)
    }

    /// For a stage's dry run: passes over columns, and what they compute.
    pub fn passed(&self, passes: u64, work: Work) {
        if let Some(dry_run) = &self.dry_run {
            dry_run.passed(passes);
            dry_run.computed(work);
        }
    }

    /// The same files, ledger and threads with an accelerator.
    #[must_use]
    pub fn with_accelerator(self, accelerator: Arc<dyn Accelerator>) -> Self {
        let accelerator = Some(accelerator);
        Self { accelerator, ..self }
    }

    /// The same beside an accelerator, if there is one, for a dry run: what an accelerator is offered is not
    /// done with many columns at a time.
    #[must_use]
    pub fn beside(&self, accelerator: Option<&Arc<dyn Accelerator>>) -> Self {
        match accelerator {
            Some(accelerator) => self.clone().with_accelerator(Arc::clone(accelerator)),
            None => self.clone(),
        }
    }

    /// The same files, ledger and threads, where scratch files are sealed with a new key, or plain. Files
    /// that were made before stay as they are.
    ///
    /// # Errors
    /// [`crate::Error::Memory`] without a page or entropy for a key.
    pub fn with_scratch(self, scratch: Scratch) -> Result<Self> {
        let sealing = match scratch {
            Scratch::Sealed => Some(Arc::new(SecretKey::random()?)),
            Scratch::Plain => None,
        };
        Ok(Self { sealing, ..self })
    }

    /// How scratch files are written.
    pub fn scratch(&self) -> Scratch {
        match self.sealing {
            Some(_) => Scratch::Sealed,
            None => Scratch::Plain,
        }
    }

    pub(super) fn sealing(&self) -> Option<&Arc<SecretKey>> {
        self.sealing.as_ref()
    }

    /// The same files and threads with another ledger.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    /// Bytes that a sequential reader or writer moves at a time: [`SEQUENTIAL_BYTES`], less where the budget
    /// is small, and at least `frame_bytes`.
    fn sequential_bytes(&self, frame_bytes: usize) -> usize {
        sequential_bytes(self.budget.limit_bytes(), frame_bytes)
    }
}

/// A step that is under way: see [`step!`](crate::step).
#[must_use = "the step's span is closed when this is dropped"]
#[derive(Debug)]
pub struct Step {
    _span: Option<tracing::span::EnteredSpan>,
}

/// A step begins: `step!(workspace, "lookups")`, with fields as those of a span behind it. A real run opens a
/// tracing span of the target `spillproof_engine::step` until the value is dropped; a dry run emits no
/// tracing, and begins a step of its record.
#[macro_export]
macro_rules! step {
    ($workspace:expr, $name:literal $($fields:tt)*) => {
        $workspace.begin_step($name, || {
            $crate::column::tracing::info_span!(target: "spillproof::step", $name $($fields)*)
        })
    };
}

#[doc(hidden)]
pub use tracing;

/// Bytes of the largest chunk of a sequential pass within a budget of `limit_bytes`, in whole frames.
pub fn sequential_bytes(limit_bytes: u64, frame_bytes: usize) -> usize {
    let share = usize::try_from(limit_bytes / 64)
        .unwrap_or(usize::MAX)
        .max(frame_bytes);
    // Whole frames, a power of two of them, so that chunks of different columns keep step.
    frame_bytes << (SEQUENTIAL_BYTES.max(frame_bytes).min(share) / frame_bytes).ilog2()
}

/// Bytes of a frame of scratch columns of `E`.
pub(crate) const fn scratch_frame_bytes<E: Element>() -> usize {
    spillproof_format::frame_bytes_for(E::BYTES, SCRATCH_FRAME_BYTES)
}

/// How scratch files are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scratch {
    /// Encrypted and authenticated, with a key that is in memory only.
    #[default]
    Sealed,
    /// As they are, with digests: what a witness was can be read from the disk, also after the files have
    /// gone.
    Plain,
}

impl std::str::FromStr for Scratch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sealed" => Ok(Self::Sealed),
            "plain" => Ok(Self::Plain),
            _ => Err(format!("`{text}`: scratch files are `sealed` or `plain`")),
        }
    }
}

impl std::fmt::Display for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Sealed => "sealed",
            Self::Plain => "plain",
        })
    }
}

/// Where a scratch column is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In a nameless file.
    Disk,
    /// In a leased buffer.
    Memory,
    /// In a leased buffer if that leaves what later steps of the task need, or, outside of a task, takes at
    /// most 1/32 of what the budget has left; else in a nameless file.
    Auto,
    /// As [`Placement::Auto`], for a column that is read once or twice: others spare more of the disk, so
    /// that a task may keep those in memory and these not.
    Passing,
    /// In a leased buffer if that takes at most 1/32 of what the budget has left, and leaves what
    /// [`Placement::Auto`] does; else in a nameless file. A column that is made before its task, of which a
    /// dry run is to know where it will be.
    Small,
}

impl Placement {
    /// Where columns of so many `bytes` together are put now.
    pub fn now(self, budget: &Budget, bytes: u64) -> Self {
        match self {
            Placement::Auto if budget.keeps_column(bytes) => Placement::Memory,
            Placement::Passing if budget.keeps_passing(bytes) => Placement::Memory,
            Placement::Small if budget.keeps_small(bytes) => Placement::Memory,
            Placement::Auto | Placement::Passing | Placement::Small => Placement::Disk,
            chosen => chosen,
        }
    }
}

/// Bytes of a frame of scratch columns: small enough for the panels of a four-step NTT, large enough for the
/// disk. Elements whose length does not divide it get frames of [`spillproof_format::frame_bytes_for`].
pub const SCRATCH_FRAME_BYTES: usize = 16 * 1024;

/// Bytes that a sequential reader or writer moves at a time, where the budget allows.
pub const SEQUENTIAL_BYTES: usize = 1024 * 1024;
