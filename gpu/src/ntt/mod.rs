//! Number-theoretic transforms over BN254's scalar field and (feature `goldilocks`) over Goldilocks, of any
//! length: whole in device memory where they fit the budget, in two steps where they do not.
//!
//! ```text
//! in device memory:  ring up -> array (passes, in place) -> ring back
//! in two steps:      from -> columns: passes, times w^(row column) -> between -> rows: passes -> to
//! panels:            from -> columns: passes of one half or two    -> to
//! ```
//!
//! The passes are those of `gpu/kernels/ntt.cuh`, from natural order to natural order: one for a row that
//! fits a tile of 2^10 elements in shared memory, two (rows by columns) up to 2^20, three up to 2^28, with
//! radices as even as possible. In device memory elements are put into the array in the order in which all passes
//! work in place (`launcher.rs`). In two steps the elements are a matrix of sqrt(n) by sqrt(n), and a chunk is
//! some whole columns, then some whole rows. The host gathers columns with reads of a chunk's width. The last
//! pass writes across the rows, so that results leave with writes of a chunk's height. A transform has one
//! hard synchronisation, and its tables have one.
//!
//! Device memory is leased as [`NttPlan::vram_bytes`] says; the smallest budget for n elements is some rows
//! of sqrt(n).

mod field;
#[cfg(feature = "goldilocks")]
mod goldilocks;
mod launcher;
mod one_device;
mod panel;
mod passes;
mod plan;
mod radices;
mod slots;
mod tables;
mod transform;

pub use field::NttField;
#[cfg(feature = "goldilocks")]
pub use goldilocks::{GoldilocksTransform, HOST_LOG_N_MAX};
pub(crate) use launcher::NttLauncher;
pub use one_device::Ntt;
pub use panel::{PanelNtt, PanelPlan};
pub(crate) use passes::{Layout, Route, RowBatch, Rows, copy_rows, transform_to};
pub use plan::{ELEMENT_BYTES, NttMethod, NttPlan};
pub(crate) use radices::{LOG_TILE, log_radices};
pub use slots::{MemoryElements, NttSlots, stage};
pub(crate) use tables::{DeviceTables, Powers, RowTables, Scale, Tables, power_elements, step_elements};
pub use transform::NttSpec;
