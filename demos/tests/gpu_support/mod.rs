//! The program under test, under the fake driver.
#![allow(dead_code)]

use std::io::Write;
use std::process::{Command, Output};

use serde_json::Value;
use spillproof_fake_driver::{Built, build, host_module_image};

use super::BINARY;

/// The fake driver, and the kernels' image in a file; says `SKIPPED` where they can't be compiled.
pub fn fake_device() -> Option<(Built, tempfile::NamedTempFile)> {
    let skipped = |reason: String| {
        // Straight to standard error: the test runner would hide what `println!` says.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {reason}");
    };
    let built = build().map_err(|reason| skipped(reason.to_string())).ok()?;
    let library = spillproof_gpu_host::library()
        .map_err(|reason| skipped(reason.to_string()))
        .ok()?;
    let mut image = tempfile::NamedTempFile::new().unwrap();
    image.write_all(&host_module_image(&library)).unwrap();
    Some((built, image))
}

pub fn under(device: &(Built, tempfile::NamedTempFile)) -> Command {
    let mut command = device.0.command(BINARY);
    command.env("SPILLPROOF_KERNELS_IMAGE", device.1.path());
    command
}

/// The binary under a driver that knows so many devices.
pub fn with_devices(device: &(Built, tempfile::NamedTempFile), count: u64) -> Command {
    let mut command = under(device);
    command.env("FAKE_CUDA_DEVICES", count.to_string());
    command
}

/// The binary under a driver that knows no device.
pub fn without_devices(device: &(Built, tempfile::NamedTempFile)) -> Command {
    with_devices(device, 0)
}

/// What a run that went well wrote as JSON: events of steps come first, one a line; the result is the last of all.
pub fn last_value(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    values.map(|value| value.unwrap()).last().unwrap()
}
