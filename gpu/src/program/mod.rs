//! Constraint programs on a device: straight-line code, the same for every row, over columns of any length.
//!
//! ```text
//! Program (instructions) -> values, cuts, slots (lower) -> text of CUDA -> NVRTC, or the cache -> kernels    compiled
//!                        -> four words an instruction   -> spk_program                                       interpreted
//!
//! tile of columns, with the rows that rotations reach -> ring up -> kernels, strip by strip -> tile of outputs -> ring back
//! ```
//!
//! [`Engine`] compiles a program, or says why the interpreter runs it: no compiler, a text that it refuses, too few steps to be worth a
//! second, too many for a minute. Both compute the same, and everything behind them does not know which it is. The text has a kernel for
//! about 200 multiplications, whose field operations are calls; values that live from one kernel to the next are in device memory, one
//! slot for as many at one time ([`Limits`]). The text depends on a program's shape and not on its constants, so a key's proofs share it.
//!
//! [`ProgramPlan`] cuts rows to tiles by the budget and says what is leased. Columns are on the host ([`Evaluate::run`]) or on the device
//! ([`Resident`], [`Evaluate::run_over`]). Rotations go round.

mod columns;
mod engine;
mod evaluate;
mod instructions;
mod launch;
mod lower;
mod plan;
mod strips;
mod text;

pub use columns::{ReadColumns, Resident, WriteColumns};
pub use engine::{Engine, Way, compiled_text};
pub use evaluate::Evaluate;
pub use instructions::{Instruction, Operand, Operation, Program, ProgramField, Query, Target};
pub use lower::Limits;
pub use plan::{Columns, ProgramPlan};
pub(crate) use strips::{Addresses, Strips};
