//! Questions to the CUDA driver. `cudarc` panics where the library is missing, so every path checks that
//! first.
#![allow(unsafe_code)]

use cudarc::driver::sys::CUdevice_P2PAttribute::{
    CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED,
};
use cudarc::driver::sys::CUdevice_attribute::{
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
};
use cudarc::driver::{CudaContext, DriverError, result, sys};

use crate::probed::{Device, Link, NoGpu};

/// The oldest CUDA version whose driver has every function that this crate calls.
const VERSION_MIN: i32 = 12_000;

/// Checks that a driver is installed and new enough.
pub(crate) fn check() -> Result<(), NoGpu> {
    match cuda_version()? {
        VERSION_MIN.. => Ok(()),
        version => Err(NoGpu::OldDriver {
            knows: named(version),
            needed: named(VERSION_MIN),
        }),
    }
}

/// A CUDA version in the form `13.0`.
pub(crate) fn named(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The descriptions of all devices. Makes no context, so takes no device memory.
pub(crate) fn devices() -> Result<Vec<Device>, NoGpu> {
    check()?;
    let count = match CudaContext::device_count() {
        // The driver reports a machine without a device in this way.
        Err(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => 0,
        other => other.map_err(failed("count its devices"))?,
    };
    if count <= 0 {
        return Err(NoGpu::NoDevice);
    }
    (0..count)
        .map(describe)
        .collect::<Result<_, _>>()
        .map_err(failed("describe a device"))
}

/// How the devices of each pair reach each other, the lower number first. Makes no context.
pub(crate) fn links() -> Result<Vec<([usize; 2], Link)>, NoGpu> {
    let count = devices()?.len();
    let pairs = (0..count).flat_map(|from| (from + 1..count).map(move |to| [from, to]));
    let linked = pairs.map(|pair| Ok((pair, link(pair.map(|ordinal| ordinal as i32))?)));
    linked
        .collect::<Result<_, _>>()
        .map_err(failed("say how two devices are linked"))
}

/// The driver does not name the link. Atomic operations on another device's memory are those of NVLink.
fn link([from, to]: [i32; 2]) -> Result<Link, DriverError> {
    let (from, to) = (result::device::get(from)?, result::device::get(to)?);
    let has = |attribute| {
        let mut value = 0;
        // SAFETY: writes one number, which lives until the call is over; the driver gave out both handles.
        let code = unsafe { sys::cuDeviceGetP2PAttribute(&raw mut value, attribute, from, to) };
        code.result().map(|()| value != 0)
    };
    Ok(match has(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED)? {
        false => Link::Host,
        true if has(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)? => Link::NvLink,
        true => Link::Pcie,
    })
}

/// The description of one device.
pub(crate) fn describe_device(ordinal: usize) -> Result<Device, DriverError> {
    describe(i32::try_from(ordinal).unwrap_or(i32::MAX))
}

/// The newest CUDA version that the driver supports: 1000 times the major number, plus 10 times the minor
/// one.
pub(crate) fn cuda_version() -> Result<i32, NoGpu> {
    // SAFETY: loads `libcuda.so` and drops it again; its initialisers are those of the system's driver, which
    // any use of a device runs.
    if !unsafe { sys::is_culib_present() } {
        return Err(NoGpu::NoDriver);
    }
    let mut version = 0;
    // SAFETY: writes one number, which lives until the call is over; the library is there.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }
        .result()
        .map_err(failed("report its version"))?;
    Ok(version)
}

fn describe(ordinal: i32) -> Result<Device, DriverError> {
    let device = result::device::get(ordinal)?;
    // SAFETY: `device` is a handle that the driver gave out for this process; `device_count` has initialised
    // the driver.
    let attribute = |which| unsafe { result::device::get_attribute(device, which) };
    // SAFETY: as above.
    let memory_bytes = unsafe { result::device::total_mem(device) }? as u64;
    Ok(Device {
        ordinal: ordinal.unsigned_abs() as usize,
        name: result::device::get_name(device)?,
        compute_capability: (
            attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?.unsigned_abs(),
        memory_bytes,
        uuid: result::device::get_uuid(device)?.bytes.map(|byte| byte as u8),
    })
}

fn failed(operation: &'static str) -> impl FnOnce(DriverError) -> NoGpu {
    move |error| NoGpu::Driver {
        operation,
        reason: format!("{error:?}"),
    }
}
