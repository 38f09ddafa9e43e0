//! Constraint programs on a device: straight-line code, the same for every row, over columns of any length.
//!
//! ```text
//! instructions -> values, cuts, slots (lower) -> text of CUDA -> NVRTC, or the cache -> kernels    compiled
//!              -> four words an instruction   -> spk_program                                       interpreted
//! ```
//!
//! [`ProgramKernels`] compiles a program, or lets the interpreter run it and gives the reason: no compiler, a
//! rejected text, too few steps to be worth a second of compilation, so many that it would take a minute.
//! Both give the same bits, and all other code treats them alike. The text has a kernel for at most 128
//! multiplications, whose field operations are calls. A value that one kernel leaves to the next is in device
//! memory, in a slot that another value uses afterwards ([`Limits`]). The text depends on the shape of a
//! program and not on its constants, so all proofs of a key share it.
//!
//! A program runs over windows of rows that are on the device (`Strips`): the quotient's, see
//! `gpu/src/quotient`.

mod instructions;
mod kernels;
mod launch;
mod lower;
mod strips;
mod text;

pub use instructions::{DeviceProgram, Instruction, Operand, Operation, Query, Target};
pub use kernels::{ProgramKernels, ProgramMethod, compiled_text};
pub use lower::Limits;
pub(crate) use strips::{Addresses, Strips};
