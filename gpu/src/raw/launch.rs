//! Modules, their functions, launches.
#![allow(unsafe_code)]

use std::ffi::{CString, c_void};
use std::sync::Arc;

use cudarc::driver::sys::{CUfunction, CUfunction_attribute, CUmodule, CUresult};
use cudarc::driver::{DriverError, result};

use super::{Context, RawStream, failed};
use crate::error::{Error, Result};

/// An image that is loaded into a context.
#[derive(Debug)]
pub(crate) struct Module {
    raw: CUmodule,
    context: Arc<Context>,
}

// SAFETY: a module is a handle; the driver's functions may be called with it from any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// `image`: a cubin, or text of PTX.
    pub(crate) fn load(context: &Arc<Context>, image: &[u8]) -> Result<Arc<Self>> {
        context.bind()?;
        // The text of PTX ends with a zero byte; a cubin carries its length.
        let mut image = image.to_vec();
        image.push(0);
        // SAFETY: the image lives until the call is over, and ends as the driver wants it.
        let raw = unsafe { result::module::load_data(image.as_ptr().cast()) }
            .map_err(failed("load the kernels"))?;
        Ok(Arc::new(Self {
            raw,
            context: context.clone(),
        }))
    }

    pub(crate) fn function(self: &Arc<Self>, name: &str) -> Result<Function> {
        let no_kernel = || Error::NoKernel {
            name: name.to_owned(),
        };
        let symbol = CString::new(name).map_err(|_| no_kernel())?;
        self.context.bind()?;
        // SAFETY: the module is loaded until `drop`.
        match unsafe { result::module::get_function(self.raw, symbol) } {
            Ok(raw) => Ok(Function {
                raw,
                module: self.clone(),
            }),
            Err(DriverError(CUresult::CUDA_ERROR_NOT_FOUND)) => Err(no_kernel()),
            Err(error) => Err(failed("find a kernel")(error)),
        }
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let bound = self.context.bind();
        // SAFETY: loaded once, unloaded once; functions keep the module alive.
        let unloaded = unsafe { result::module::unload(self.raw) };
        self.context.note(bound);
        self.context.note(unloaded.map_err(failed("unload kernels")));
    }
}

/// A kernel in its module.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    raw: CUfunction,
    module: Arc<Module>,
}

// SAFETY: a function is a handle; the driver's functions may be called with it from any thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// A parameter of a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Word32(u32),
    Word64(u64),
    Bytes(&'a [u8]),
}

impl Function {
    /// Allows launches with this much dynamic shared memory; more than 48 KiB a block needs this call.
    pub(crate) fn allow_shared_bytes(&self, bytes: u32) -> Result<()> {
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        let which = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        self.module.context.bind()?;
        // SAFETY: the function is part of a loaded module.
        unsafe { result::function::set_function_attribute(self.raw, which, bytes) }
            .map_err(failed("give a kernel shared memory"))
    }

    /// # Safety
    /// Number, order and sizes of the values must be those of the kernel's parameters, and the memory that
    /// the kernel reads and writes through them must stay allocated until it is done.
    pub(crate) unsafe fn launch(
        &self,
        stream: &RawStream,
        grid: (u32, u32, u32),
        block: (u32, u32, u32),
        shared_bytes: u32,
        values: &mut [Value<'_>],
    ) -> Result<()> {
        self.module.context.bind()?;
        let mut pointers: Vec<*mut c_void> = values
            .iter_mut()
            .map(|value| match value {
                Value::Word32(word) => std::ptr::from_mut(word).cast(),
                Value::Word64(word) => std::ptr::from_mut(word).cast(),
                // The driver copies parameters and does not write to them.
                Value::Bytes(bytes) => bytes.as_ptr().cast_mut().cast(),
            })
            .collect();
        // SAFETY: the pointers are to values that live until the call is over, when the driver has copied
        // them; the rest is the caller's.
        unsafe { result::launch_kernel(self.raw, grid, block, shared_bytes, stream.raw(), &mut pointers) }
            .map_err(failed("launch a kernel"))
    }
}
