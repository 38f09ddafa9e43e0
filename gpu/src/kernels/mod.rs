//! Kernels: from a text, compiled for the device at hand, to something that can be launched.
//!
//! ```text
//! Text --Compiler--> image (cubin) --cache on disk--> Kernels::load --> Kernel::launch
//! ```
//!
//! The compiler is NVRTC, which is asked for at run time; an image that was made elsewhere can be named in `SPILLPROOF_KERNELS_IMAGE`
//! instead (that is also how kernels that were compiled for the host get under the fake driver of the tests). What was compiled is kept
//! under the digest of text, options, architecture and compiler version, so a changed kernel is never taken from the cache.

mod cache;
mod find;
mod nvrtc;
mod tier;

use std::path::PathBuf;
use std::sync::Arc;

pub use cache::Cache;
pub use find::FOLDER_VARIABLE;
pub use nvrtc::Nvrtc;

use crate::buffer::DeviceBuffer;
use crate::device::Gpu;
use crate::error::{Error, Result};
use crate::raw::{Function, Module, Value};
use crate::stream::Stream;
use crate::trace::Trace;

/// Names an image to use instead of compiling.
pub const IMAGE_VARIABLE: &str = "SPILLPROOF_KERNELS_IMAGE";

/// The text of kernels: one main file, and what it includes.
#[derive(Debug, Clone, Default)]
pub struct Text {
    /// The name of the main file, for messages.
    pub name: String,
    /// The main file.
    pub main: String,
    /// Names as the text includes them, and their contents.
    pub headers: Vec<(String, String)>,
    /// Further options of the compiler, `--maxrregcount=128` or the like.
    pub options: Vec<String>,
}

/// What makes images out of texts.
pub trait Compiler {
    /// Name and version: part of the cache's key.
    ///
    /// # Errors
    /// [`Error::NoCompiler`] if it is not there.
    fn version(&self) -> Result<String>;

    /// An image of `text` for a device of this compute capability.
    ///
    /// # Errors
    /// [`Error::Compile`] with the compiler's words.
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

/// The image that the environment names, if it names one.
fn named_image() -> Result<Option<Vec<u8>>> {
    let Some(file) = std::env::var_os(IMAGE_VARIABLE).map(PathBuf::from) else {
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

/// An image in a device's context.
#[derive(Debug, Clone)]
pub struct Kernels {
    module: Arc<Module>,
    trace: Trace,
}

impl Kernels {
    /// Loads an image: a cubin, or text of PTX, which the driver then compiles itself.
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

/// How many blocks of how many threads, and how much shared memory each block has.
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
    /// Enough blocks in a row for `count` threads, at least one.
    ///
    /// # Errors
    /// [`Error::Invalid`] if that is more blocks than a grid has, or the block is empty.
    pub fn for_threads(count: u64, threads_per_block: u32) -> Result<Self> {
        let blocks = count.checked_div(u64::from(threads_per_block)).map(|whole| {
            let rest = count % u64::from(threads_per_block);
            (whole + u64::from(rest > 0)).max(1)
        });
        let blocks = blocks.filter(|&blocks| blocks <= i32::MAX as u64);
        let blocks = blocks
            .and_then(|blocks| u32::try_from(blocks).ok())
            .ok_or_else(|| {
                let details = format!("{count} threads in blocks of {threads_per_block}");
                Error::Invalid {
                    what: "grid",
                    details,
                }
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
    /// An offset in bytes into a buffer.
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
    /// Lets a launch ask for so much dynamic shared memory; above 48 KiB a block it must be asked for, once.
    ///
    /// # Errors
    /// [`Error::Driver`] if the device has less, see [`Gpu::shared_bytes_max`].
    pub fn allow_shared_bytes(&self, bytes: u32) -> Result<()> {
        self.function.allow_shared_bytes(bytes)
    }

    /// Queues the kernel on a stream.
    ///
    /// # Safety
    /// Number, order and sizes of the arguments must be those of the kernel's parameters; the kernel must keep to its buffers; and they,
    /// and this kernel or its [`Kernels`], must live until it has run.
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
