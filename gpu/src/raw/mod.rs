//! Handles of the driver as owned values: contexts, streams, events, memory, modules. Each function is one
//! call of `cudarc::driver::result`.
//!
//! The safe layer of `cudarc` does not fit a ring: its slices record and wait for events on their own, keep
//! errors of destructors for the next, unrelated call, assert on arguments, and leak memory if an event
//! cannot be made. A ring chooses the events that it waits for, and reports every failure where it happens.
//!
//! Every handle keeps its context alive and is released on drop. Errors of a release go to a list of the
//! context ([`Context::failures`]), since a destructor cannot return them.
//!
//! Architecture invariant: the `unsafe` code of this crate is in this folder, in `driver.rs` and
//! `kernels/nvrtc.rs`, and in the files that launch kernels. The launch of a kernel is the only unsafe
//! function of the interface; [`RawSlot`] owns its memory, which makes asynchronous copies sound.

mod context;
mod event;
mod launch;
mod memory;
mod slot;
mod stream;

use cudarc::driver::DriverError;

pub(crate) use context::Context;
pub(crate) use event::Event;
pub(crate) use launch::{Function, Module, Value};
pub(crate) use memory::{DeviceMemory, HostMemory};
pub(crate) use slot::{RawSlot, SlotCopy};
pub(crate) use stream::RawStream;

use crate::error::Error;

/// Makes the error of a failed call.
pub(crate) fn failed(operation: &'static str) -> impl FnOnce(DriverError) -> Error {
    move |DriverError(code)| Error::Driver { operation, code }
}
