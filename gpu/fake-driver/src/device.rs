//! A device for whole programs: the fake driver, and the kernels of `gpu/kernels` compiled for the host.

use std::ffi::OsStr;
use std::io::Write as _;
use std::process::Command;

use crate::{Built, build, host_module_image};

/// Devices for programs that are started as children.
#[derive(Debug)]
pub struct FakeDevice {
    driver: Built,
    kernels: tempfile::NamedTempFile,
}

impl FakeDevice {
    /// Where the driver or the kernels cannot be compiled: `None`, and `SKIPPED` with the reason on standard
    /// error.
    ///
    /// # Panics
    /// If the image of the kernels cannot be written.
    pub fn new() -> Option<Self> {
        let made = build().map_err(|reason| reason.to_string()).and_then(|driver| {
            let library = spillproof_gpu_host::library().map_err(|reason| reason.to_string())?;
            Ok((driver, library))
        });
        let (driver, library) = match made {
            Ok(made) => made,
            Err(reason) => {
                // Straight to standard error: the test runner would hide what `println!` says.
                let _ = writeln!(std::io::stderr(), "SKIPPED: {reason}");
                return None;
            }
        };
        let mut kernels = tempfile::NamedTempFile::new().expect("a temporary file");
        kernels
            .write_all(&host_module_image(&library))
            .expect("the kernels' image");
        Some(Self { driver, kernels })
    }

    /// The program under the driver, which knows one device unless `FAKE_CUDA_DEVICES` says otherwise.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.driver.command(program);
        command.env("SPILLPROOF_KERNELS_IMAGE", self.kernels.path());
        command
    }

    /// The program under a driver that knows so many devices.
    pub fn command_with(&self, program: impl AsRef<OsStr>, devices: u64) -> Command {
        let mut command = self.command(program);
        command.env("FAKE_CUDA_DEVICES", devices.to_string());
        command
    }
}
