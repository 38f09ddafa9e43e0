//! Calls of kernels: their host build directly, or an image through the driver.

use std::ffi::c_void;

pub mod curves;
pub mod msm;
pub mod ntt;
pub mod program;

use ark_ff::{Fp256, MontBackend, MontConfig};
use libloading::Library;
use spillproof_gpu::kernels::Grid;
use spillproof_gpu::{Gpu, Stream, Vram};

use super::skipped;

/// Four 64-bit words in Montgomery form, as the kernels and the files have them.
pub type Words = [u64; 4];

type Launch = unsafe extern "C" fn(u32, u32, u32, u32, u32, u32, usize, *mut *mut c_void);

/// The kernels, compiled for the host, or on a device.
pub enum Kernels {
    /// Called directly.
    Host(Library),
    /// Launched by the driver, which may be the fake one.
    Device(Device),
}

/// A device with the kernels' image.
pub struct Device {
    vram: Vram,
    stream: Stream,
    kernels: spillproof_gpu::kernels::Kernels,
}

/// An argument of a kernel.
pub enum Argument<'a> {
    Word(u32),
    Buffer(Buffer<'a>),
    /// The bytes of a structure, and the buffers whose addresses it holds, by offset in bytes.
    Structure(Vec<u8>, Vec<(usize, Buffer<'a>)>),
}

/// Memory of the host. A device gets a copy, and written bytes are copied back.
pub enum Buffer<'a> {
    In(&'a [u8]),
    InOut(&'a mut [u8]),
}

/// A number.
pub fn word(value: u32) -> Argument<'static> {
    Argument::Word(value)
}

/// A buffer that a kernel reads; a null address if it is empty.
pub fn input<T: Copy>(values: &[T]) -> Argument<'_> {
    // SAFETY: the tests' elements are words without padding.
    Argument::Buffer(Buffer::In(unsafe {
        std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values))
    }))
}

/// A null address.
pub fn none() -> Argument<'static> {
    input::<u32>(&[])
}

/// A buffer that a kernel writes, and may read.
pub fn output<T: Copy>(values: &mut [T]) -> Argument<'_> {
    // SAFETY: as above, and any bits are an element.
    Argument::Buffer(Buffer::InOut(unsafe {
        std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values))
    }))
}

/// A structure by value, with buffers whose addresses are fields at these offsets.
pub fn structure<'a, T: Copy>(value: &T, fields: Vec<(usize, Argument<'a>)>) -> Argument<'a> {
    // SAFETY: as above.
    let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) };
    let fields = fields
        .into_iter()
        .map(|(offset, field)| match field {
            Argument::Buffer(buffer) => (offset, buffer),
            _ => panic!("a field that is no buffer"),
        })
        .collect();
    Argument::Structure(bytes.to_vec(), fields)
}

impl Buffer<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::In(bytes) => bytes,
            Self::InOut(bytes) => bytes,
        }
    }

    fn host_address(&mut self) -> u64 {
        match self {
            Self::In([]) => 0,
            Self::In(bytes) => bytes.as_ptr() as u64,
            Self::InOut(bytes) => bytes.as_mut_ptr() as u64,
        }
    }
}

/// The bytes of each argument, aligned, as a launch copies them.
fn parameters<'a>(
    arguments: &mut [Argument<'a>],
    address: &mut dyn FnMut(&mut Buffer<'a>) -> u64,
) -> Vec<Vec<u64>> {
    let in_words = |bytes: &[u8]| -> Vec<u64> {
        let chunks = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        chunks.collect()
    };
    arguments
        .iter_mut()
        .map(|argument| match argument {
            Argument::Word(word) => vec![u64::from(*word)],
            Argument::Buffer(buffer) => vec![address(buffer)],
            Argument::Structure(bytes, fields) => {
                for (offset, buffer) in fields {
                    bytes[*offset..*offset + 8].copy_from_slice(&address(buffer).to_le_bytes());
                }
                in_words(bytes)
            }
        })
        .collect()
}

impl Device {
    /// Loads an image into a device.
    pub fn new(gpu: &Gpu, image: &[u8], vram_bytes: u64) -> Self {
        Self {
            vram: Vram::new(gpu, vram_bytes),
            stream: gpu.stream().unwrap(),
            kernels: spillproof_gpu::kernels::Kernels::load(gpu, image).unwrap(),
        }
    }

    fn launch(
        &self,
        name: &str,
        grid: (usize, usize),
        block: usize,
        shared_bytes: usize,
        mut arguments: Vec<Argument<'_>>,
    ) {
        let mut held = Vec::new();
        let parameters = parameters(&mut arguments, &mut |buffer| {
            if buffer.bytes().is_empty() {
                return 0;
            }
            let on_device = self.vram.buffer(buffer.bytes().len() as u64, "test").unwrap();
            self.stream.write((&on_device, 0), buffer.bytes()).unwrap();
            let address = on_device.address();
            held.push(on_device);
            address
        });
        let bytes: Vec<Vec<u8>> = parameters
            .iter()
            .map(|words| words.iter().flat_map(|word| word.to_le_bytes()).collect())
            .collect();
        let by_value: Vec<_> = bytes
            .iter()
            .map(|bytes| spillproof_gpu::kernels::Argument::Bytes(bytes))
            .collect();
        let grid = Grid {
            blocks: (grid.0 as u32, grid.1 as u32, 1),
            threads: (block as u32, 1, 1),
            shared_bytes: shared_bytes as u32,
        };
        let kernel = self.kernels.kernel(name).unwrap();
        // SAFETY: the tests give each kernel what it takes; the buffers live until the stream is done.
        unsafe { kernel.launch(&self.stream, grid, &by_value) }.unwrap();
        self.stream.synchronize().unwrap();
        let mut held = held.iter();
        let mut take_back = |buffer: &mut Buffer<'_>| {
            if buffer.bytes().is_empty() {
                return;
            }
            let on_device = held.next().unwrap();
            if let Buffer::InOut(bytes) = buffer {
                self.stream.read((on_device, 0), bytes).unwrap();
            }
        };
        for argument in &mut arguments {
            match argument {
                Argument::Word(_) => {}
                Argument::Buffer(buffer) => take_back(buffer),
                Argument::Structure(_, fields) => fields.iter_mut().for_each(|field| take_back(&mut field.1)),
            }
        }
    }
}

impl Kernels {
    /// Loads the host build; prints `SKIPPED` where it cannot be compiled.
    pub fn load() -> Option<Self> {
        match spillproof_gpu_host::library() {
            Ok(path) => {
                // SAFETY: our own library; loading it fills a list of names and does nothing else.
                Some(Self::Host(unsafe { Library::new(path) }.unwrap()))
            }
            Err(reason) => {
                skipped(&reason);
                None
            }
        }
    }

    fn library(&self) -> &Library {
        match self {
            Self::Host(library) => library,
            Self::Device(_) => panic!("only on the host"),
        }
    }

    /// Names of all kernels.
    pub fn names(&self) -> Vec<String> {
        // SAFETY: the signature is the one that shim.cpp declares; the text lives as long as the library.
        let text = unsafe {
            let names: libloading::Symbol<unsafe extern "C" fn() -> *const std::ffi::c_char> =
                self.library().get("host_spk_names").unwrap();
            std::ffi::CStr::from_ptr(names())
        };
        text.to_str().unwrap().lines().map(str::to_owned).collect()
    }

    /// The first carry chain whose text and whose stand-in differ on random numbers.
    pub fn compare_chains(&self, seed: u64, rounds: u64) -> Option<String> {
        // SAFETY: the signature is the one that interpret.cpp declares; it gives null, or a text that is
        // never freed.
        unsafe {
            let compare: libloading::Symbol<unsafe extern "C" fn(u64, u64) -> *const std::ffi::c_char> =
                self.library().get("host_spk_compare_chains").unwrap();
            let different = compare(seed, rounds);
            (!different.is_null()).then(|| std::ffi::CStr::from_ptr(different).to_string_lossy().into_owned())
        }
    }

    /// Runs a grid to its end.
    pub fn launch(
        &self,
        name: &str,
        grid: (usize, usize),
        block: usize,
        shared_bytes: usize,
        mut arguments: Vec<Argument<'_>>,
    ) {
        let library = match self {
            Self::Host(library) => library,
            Self::Device(device) => return device.launch(name, grid, block, shared_bytes, arguments),
        };
        let mut parameters = parameters(&mut arguments, &mut Buffer::host_address);
        let mut pointers: Vec<*mut c_void> = parameters
            .iter_mut()
            .map(|words| words.as_mut_ptr().cast())
            .collect();
        // SAFETY: the signature is that of every entry; the tests give each kernel what it takes.
        unsafe {
            let entry: libloading::Symbol<Launch> = library.get(format!("host_{name}")).unwrap();
            entry(
                grid.0 as u32,
                grid.1 as u32,
                1,
                block as u32,
                1,
                1,
                shared_bytes,
                pointers.as_mut_ptr(),
            );
        }
    }
}

/// The words of an element in memory.
pub fn words<T: MontConfig<4>>(value: &Fp256<MontBackend<T, 4>>) -> Words {
    value.0.0
}

/// An element from its words in memory.
pub fn element<T: MontConfig<4>>(words: Words) -> Fp256<MontBackend<T, 4>> {
    let mut value = Fp256::default();
    value.0.0 = words;
    value
}
