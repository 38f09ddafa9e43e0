//! Constraint programs on a device: straight-line code, the same for every row, over columns of any length.
//!
//! ```text
//! Program (instructions) -> values, cuts, slots (lower) -> text of CUDA -> NVRTC, or the cache -> kernels    compiled
//!                        -> four words an instruction   -> spk_program                                       interpreted
//!
//! tile of columns, with the rows that rotations reach -> ring up -> kernels, strip by strip -> tile of outputs -> ring back
//! ```
//!
//! [`Engine`] compiles a program, or lets the interpreter run it and gives the reason: no compiler, a
//! rejected text, too few steps to be worth a second of compilation, so many that it would take a minute.
//! Both give the same bits, and all other code treats them alike. The text has a kernel for at most 128
//! multiplications, whose field operations are calls. A value that one kernel leaves to the next is in device
//! memory, in a slot that another value uses afterwards ([`Limits`]). The text depends on the shape of a
//! program and not on its constants, so all proofs of a key share it.
//!
//! [`ProgramPlan`] cuts the rows into tiles within the budget and gives the bytes that are leased. Columns
//! are on the host ([`Evaluate::run`]) or on the device ([`Resident`], [`Evaluate::run_over`]). Rotations
//! wrap around.

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
