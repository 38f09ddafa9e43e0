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

use cudarc::driver::{DriverError, sys::CUresult};

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

/// Codes after which the context answers nothing else (CUDA driver API reference, `CUresult`: "the context cannot be used").
pub(crate) fn is_final(code: CUresult) -> bool {
    use CUresult::{
        CUDA_ERROR_ASSERT, CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_DEINITIALIZED,
        CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_ILLEGAL_INSTRUCTION, CUDA_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_PC,
        CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_NVLINK_UNCORRECTABLE,
    };
    matches!(
        code,
        CUDA_ERROR_ASSERT
            | CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUDA_ERROR_DEINITIALIZED
            | CUDA_ERROR_ECC_UNCORRECTABLE
            | CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUDA_ERROR_ILLEGAL_ADDRESS
            | CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUDA_ERROR_INVALID_PC
            | CUDA_ERROR_LAUNCH_FAILED
            | CUDA_ERROR_LAUNCH_TIMEOUT
            | CUDA_ERROR_MISALIGNED_ADDRESS
            | CUDA_ERROR_NVLINK_UNCORRECTABLE
    )
}

/// What to do about a code, as the end of a message.
pub(crate) fn hint(code: CUresult) -> &'static str {
    match code {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
            "; lower the budget of device memory, or free memory on the device"
        }
        CUresult::CUDA_ERROR_INVALID_IMAGE
        | CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
        | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
            "; the kernels' image is not for this device and driver: compile it anew, with an NVRTC that is no newer than the driver"
        }
        code if is_final(code) => "; the device's context is lost: open the device anew, or work without it",
        _ => "",
    }
}
