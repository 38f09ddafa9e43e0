//! Handles of the driver as owned values: a context, streams, events, memory, modules. Thin: one call of `cudarc::driver::result` each.
//!
//! Why not `cudarc`'s own safe layer: its slices record and wait for events behind the caller's back, keep errors of destructors for
//! the next call that may be about something else, assert on arguments, and lose memory if an event cannot be made. A ring wants to say
//! itself which event it waits for, and to be told of every failure where it happens.
//!
//! Every handle keeps its context alive. Handles are released on drop; what the driver says against that goes to the context's list
//! ([`Context::failures`]), since a destructor has nobody to tell.
//!
//! Architecture invariant: `unsafe` code of this crate is in this folder, in `driver.rs` and `kernels/nvrtc.rs`, and
//! where whole jobs launch kernels. The only unsafe
//! function that it hands out is the launch of a kernel; asynchronous copies are sound through [`RawSlot`]'s ownership.

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
pub(crate) use slot::RawSlot;
pub(crate) use stream::RawStream;

use crate::error::Error;

/// The error of a call: what was asked, and what the driver said.
pub(crate) fn failed(operation: &'static str) -> impl FnOnce(DriverError) -> Error {
    move |DriverError(code)| Error::Driver { operation, code }
}
