//! Kernels of the host's library, called from tests.
#![allow(dead_code)]

use std::ffi::c_void;
use std::io::Write;

pub mod curves;
pub mod msm;

use ark_ff::{Fp256, MontBackend, MontConfig};
use libloading::Library;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

/// Four 64-bit words in Montgomery form, as the kernels and the files have them.
pub type Words = [u64; 4];

type Launch = unsafe extern "C" fn(u32, u32, u32, u32, u32, u32, usize, *mut *mut c_void);

/// The kernels, compiled for the host.
pub struct Kernels {
    library: Library,
}

impl Kernels {
    /// The library; without it says why, and the test is skipped.
    pub fn load() -> Option<Self> {
        match spillproof_gpu_host::library() {
            Ok(path) => {
                // SAFETY: our own library; loading it fills a list of names and does nothing else.
                let library = unsafe { Library::new(path) }.unwrap();
                Some(Self { library })
            }
            Err(reason) => {
                skipped(&reason.to_string());
                None
            }
        }
    }

    /// Names of all kernels.
    pub fn names(&self) -> Vec<String> {
        // SAFETY: the signature is the one that shim.cpp declares; the text lives as long as the library.
        let text = unsafe {
            let names: libloading::Symbol<unsafe extern "C" fn() -> *const std::ffi::c_char> =
                self.library.get("host_spk_names").unwrap();
            std::ffi::CStr::from_ptr(names())
        };
        text.to_str().unwrap().lines().map(str::to_owned).collect()
    }

    /// The first carry chain whose text and whose stand-in differ on random numbers.
    pub fn compare_chains(&self, seed: u64, rounds: u64) -> Option<String> {
        // SAFETY: the signature is the one that interpret.cpp declares; it gives null, or a text that is never freed.
        unsafe {
            let compare: libloading::Symbol<unsafe extern "C" fn(u64, u64) -> *const std::ffi::c_char> =
                self.library.get("host_spk_compare_chains").unwrap();
            let different = compare(seed, rounds);
            (!different.is_null()).then(|| std::ffi::CStr::from_ptr(different).to_string_lossy().into_owned())
        }
    }

    /// Runs a grid to its end. `launch!` makes `args`: what they point to must be what the kernel takes.
    pub fn launch(
        &self,
        name: &str,
        (gx, gy): (usize, usize),
        block: usize,
        shared_bytes: usize,
        args: &mut [*mut c_void],
    ) {
        // SAFETY: the signature is that of every entry; the caller answers for the arguments.
        unsafe {
            let entry: libloading::Symbol<Launch> = self.library.get(format!("host_{name}")).unwrap();
            entry(
                gx as u32,
                gy as u32,
                1,
                block as u32,
                1,
                1,
                shared_bytes,
                args.as_mut_ptr(),
            );
        }
    }
}

/// `launch!(kernels, "spk_x", (gx, gy), block, shared_bytes; a, b, c)`: arguments are what the kernel takes, in its order.
#[macro_export]
macro_rules! launch {
    ($kernels:expr, $name:expr, $grid:expr, $block:expr, $shared:expr; $($argument:expr),+ $(,)?) => {
        $kernels.launch($name, $grid, $block, $shared, &mut [$(std::ptr::from_ref(&$argument).cast_mut().cast()),+])
    };
}

/// Says, past the test runner, that something could not be tested here.
pub fn skipped(reason: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {reason}");
}

/// Random numbers from a seed that is printed, or from the one in `SPILLPROOF_SEED`.
pub fn rng(test: &str) -> ChaCha20Rng {
    let seed = std::env::var("SPILLPROOF_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    println!("{test}: SPILLPROOF_SEED={seed} repeats this run");
    ChaCha20Rng::seed_from_u64(seed)
}

/// As in memory.
pub fn words<T: MontConfig<4>>(value: &Fp256<MontBackend<T, 4>>) -> Words {
    value.0.0
}

/// From memory.
pub fn element<T: MontConfig<4>>(words: Words) -> Fp256<MontBackend<T, 4>> {
    let mut value = Fp256::default();
    value.0.0 = words;
    value
}
