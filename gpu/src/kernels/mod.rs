//! Kernels: source text, compiled for the device, loaded, and launched.
//!
//! ```text
//! Text --Compiler--> image (cubin) --cache on disk--> Kernels::load --> Kernel::launch
//! ```
//!
//! The compiler is NVRTC, opened at run time. `SPILLPROOF_KERNELS_IMAGE` names an image that was compiled
//! elsewhere; tests load kernels that were compiled for the host in this way. Compiled images are cached
//! under the digest of text, options, architecture and compiler version, so a changed kernel is never taken
//! from the cache.

mod built_in;
mod cache;
mod find;
mod nvrtc;

use std::path::PathBuf;
use std::sync::Arc;

pub use cache::Cache;
pub use find::FOLDER_VARIABLE;
pub use nvrtc::Nvrtc;

use crate::buffer::DeviceBuffer;
use crate::device::Gpu;
use crate::error::{Error, Invalid, Result};
use crate::raw::{Function, Module, Value};
use crate::stream::Stream;
use crate::trace::Trace;

/// The environment variable that names an image, which replaces the compiler.
pub const IMAGE_VARIABLE: &str = "SPILLPROOF_KERNELS_IMAGE";

/// The source text of kernels: one main file, and the headers that it includes.
#[derive(Debug, Clone, Default)]
pub struct Text {
    /// The name of the main file, for messages.
    pub name: String,
    /// The main file.
    pub main: String,
    /// The names of headers as the text includes them, and their contents.
    pub headers: Vec<(String, String)>,
    /// Further options of the compiler, such as `--maxrregcount=128`.
    pub options: Vec<String>,
}

/// A compiler from texts to images.
pub trait Compiler {
    /// Name and version: part of the cache's key.
    ///
    /// # Errors
    /// [`Error::NoCompiler`] if the compiler is missing.
    fn version(&self) -> Result<String>;

    /// An image of `text` for a device of this compute capability.
    ///
    /// # Errors
    /// [`Error::Compile`] with the compiler's log.
    fn compile(&self, text: &Text, compute_capability: (i32, i32)) -> Result<Vec<u8>>;
}

/// The image for a device: from the file that the environment names, or the cache, or the compiler.
///
/// # Errors
/// [`Error::File`], [`Error::NoCompiler`], [`Error::Compile`].
pub fn image(gpu: &Gpu, text: &Text, compiler: &dyn Compiler, cache: Option<&Cache>) -> Result<Vec<u8>> {
    if let Some(image) = named_image()? {
        return Ok(image);
    }
    let capability = gpu.description().compute_capability;
    match cache {
        Some(cache) => cache.image(text, capability, compiler),
        None => compiler.compile(text, capability),
    }
}

/// The image that the environment names, if any.
fn named_image() -> Result<Option<Vec<u8>>> {
    let Some(file) = spillproof_engine::session::variable(IMAGE_VARIABLE).map(PathBuf::from) else {
        return Ok(None);
    };
    match std::fs::read(&file) {
        Ok(image) => Ok(Some(image)),
        Err(source) => Err(Error::File {
            operation: "read",
            file,
            source,
        }),
    }
}

/// An image that is loaded into the context of a device.
#[derive(Debug, Clone)]
pub struct Kernels {
    module: Arc<Module>,
    trace: Trace,
}

impl Kernels {
    /// Loads an image: a cubin, or the text of PTX, which the driver compiles.
    ///
    /// # Errors
    /// [`Error::Driver`] if it is not for this device.
    pub fn load(gpu: &Gpu, image: &[u8]) -> Result<Self> {
        Ok(Self {
            module: Module::load(gpu.context(), image)?,
            trace: gpu.trace().clone(),
        })
    }

    /// The kernel of this name.
    ///
    /// # Errors
    /// [`Error::NoKernel`].
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        Ok(Kernel {
            name: name.into(),
            function: self.module.function(name)?,
            trace: self.trace.clone(),
        })
    }
}

/// Blocks, threads and shared memory of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Blocks.
    pub blocks: (u32, u32, u32),
    /// Threads in each block; their product is 1024 at most.
    pub threads: (u32, u32, u32),
    /// Dynamic shared memory of each block.
    pub shared_bytes: u32,
}

impl Grid {
    /// Enough blocks in one dimension for `count` threads, at least one.
    ///
    /// # Errors
    /// [`Error::Invalid`] if that is more blocks than a grid can have, or a block is empty.
    pub fn for_threads(count: u64, threads_per_block: u32) -> Result<Self> {
        let blocks = count.checked_div(u64::from(threads_per_block)).map(|whole| {
            let rest = count % u64::from(threads_per_block);
            (whole + u64::from(rest > 0)).max(1)
        });
        let blocks = blocks.filter(|&blocks| blocks <= i32::MAX as u64);
        let blocks = blocks
            .and_then(|blocks| u32::try_from(blocks).ok())
            .ok_or_else(|| Invalid::Size {
                what: "a grid",
                reason: format!(
                    "{count} threads in blocks of {threads_per_block}: a grid has at most 2^31 - 1 blocks"
                ),
            })?;
        Ok(Self {
            blocks: (blocks, 1, 1),
            threads: (threads_per_block, 1, 1),
            shared_bytes: 0,
        })
    }
}

/// A parameter of a kernel.
#[derive(Debug, Clone, Copy)]
pub enum Argument<'a> {
    /// The start of a buffer.
    Buffer(&'a DeviceBuffer),
    /// A buffer from an offset in bytes on.
    BufferAt(&'a DeviceBuffer, u64),
    /// A 32-bit number.
    Word32(u32),
    /// A 64-bit number.
    Word64(u64),
    /// A structure by value, such as a field element in limbs.
    Bytes(&'a [u8]),
}

/// One kernel.
#[derive(Debug, Clone)]
pub struct Kernel {
    name: Arc<str>,
    function: Function,
    trace: Trace,
}

impl Kernel {
    /// Queues the kernel on a stream.
    ///
    /// # Safety
    /// Number, order and sizes of the arguments must match the kernel's parameters. The kernel must not
    /// access memory outside its buffers. The buffers, and this kernel or its [`Kernels`], must live until it
    /// has run.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an offset outside its buffer, [`Error::Driver`].
    #[allow(unsafe_code)]
    pub unsafe fn launch(&self, stream: &Stream, grid: Grid, arguments: &[Argument<'_>]) -> Result<()> {
        let mut values = arguments
            .iter()
            .map(|argument| {
                Ok(match *argument {
                    Argument::Buffer(buffer) => Value::Word64(buffer.memory().at(0, 0)?),
                    Argument::BufferAt(buffer, offset) => Value::Word64(buffer.memory().at(offset, 0)?),
                    Argument::Word32(word) => Value::Word32(word),
                    Argument::Word64(word) => Value::Word64(word),
                    Argument::Bytes(bytes) => Value::Bytes(bytes),
                })
            })
            .collect::<Result<Vec<_>>>()?;
        self.trace.kernel(&self.name, stream.raw(), || {
            // SAFETY: the caller's.
            unsafe {
                self.function.launch(
                    stream.raw(),
                    grid.blocks,
                    grid.threads,
                    grid.shared_bytes,
                    &mut values,
                )
            }
        })
    }
}
