//! What the tests share: the fake driver with the kernels' host build, seeds, bytes, a line for what is
//! skipped. The crate's unit tests use this module too.
#![allow(unsafe_code, dead_code, clippy::unwrap_used)]

pub mod kernels;
pub mod programs;
pub mod ring_jobs;
pub mod systems;

use std::fmt::Display;
use std::io::Write;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_fake_driver::{FakeDriver, host_module_image, under};
use spillproof_gpu::{BoxedError, Error};

/// Prints the reason why a test is skipped, on standard error: the test runner hides the output of tests that
/// pass.
pub fn skipped(reason: &dyn Display) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {reason}");
}

/// Random numbers from a seed that is printed, or from the one in `SPILLPROOF_SEED`.
pub fn rng(test: &str) -> ChaCha20Rng {
    let seed = std::env::var("SPILLPROOF_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    println!("{test}: SPILLPROOF_SEED={seed} repeats this run");
    ChaCha20Rng::seed_from_u64(seed)
}

/// As `spillproof_fake_driver::under`, with the image of the kernels; skipped where either cannot be
/// compiled.
pub fn with_kernels(module: &str, test: &str, body: impl FnOnce(&FakeDriver, &[u8])) {
    match spillproof_gpu_host::library() {
        Ok(library) => under(module, test, |driver| body(driver, &host_module_image(&library))),
        Err(reason) => skipped(&format_args!("{test}: {reason}")),
    }
}

/// The bytes of four words each, as files and kernels have them.
pub fn bytes_of<const N: usize>(elements: impl IntoIterator<Item = [[u64; 4]; N]>) -> Vec<u8> {
    elements
        .into_iter()
        .flatten()
        .flatten()
        .flat_map(u64::to_le_bytes)
        .collect()
}

/// A source over bytes.
pub fn source_of(bytes: &[u8]) -> impl FnMut(u64, &mut [u8]) -> Result<(), BoxedError> + '_ {
    move |offset, into| {
        into.copy_from_slice(&bytes[offset as usize..][..into.len()]);
        Ok(())
    }
}

/// Whether an error is of the kinds that a failing driver may cause.
pub fn is_the_drivers(error: &Error) -> bool {
    matches!(
        error,
        Error::Driver { .. }
            | Error::OutOfMemory { .. }
            | Error::Unusable { .. }
            | Error::NoGpu(_)
            | Error::NoKernel { .. }
    )
}

/// Where a job was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DoneBy {
    Device,
    Processor { why: String, device_is_lost: bool },
}

/// Runs a job on a device, and again on the processor if it fails for a reason of the device.
pub fn with_fallback<T, E: From<Error>>(
    device_work: impl FnOnce() -> Result<T, Error>,
    processor_work: impl FnOnce() -> Result<T, E>,
) -> Result<(T, DoneBy), E> {
    match device_work() {
        Ok(result) => Ok((result, DoneBy::Device)),
        Err(error) if error.leaves_the_processor() => {
            let done_by = DoneBy::Processor {
                why: error.to_string(),
                device_is_lost: error.is_device_lost(),
            };
            Ok((processor_work()?, done_by))
        }
        Err(error) => Err(error.into()),
    }
}
