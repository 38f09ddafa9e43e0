//! What the tests of whole jobs share: the tier's kernels, compiled for the host, as a module of the fake driver.
#![allow(dead_code)]

use std::io::Write;

use spillproof_fake_driver::{FakeDriver, host_module_image, under};
use spillproof_gpu::{BoxedError, Error};

/// As `spillproof_fake_driver::under`, with the image of the kernels; says `SKIPPED` where either cannot be compiled.
pub fn with_kernels(module: &str, test: &str, body: impl FnOnce(&FakeDriver, &[u8])) {
    match spillproof_gpu_host::library() {
        Ok(library) => under(module, test, |driver| body(driver, &host_module_image(&library))),
        Err(reason) => {
            // Straight to standard error: the test runner would hide what `println!` says.
            let _ = std::io::stderr().write_all(format!("SKIPPED: {test}: {reason}\n").as_bytes());
        }
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
