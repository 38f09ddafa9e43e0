//! `spillproof msm --gpu`: the binary under the fake driver, with kernels compiled for the host.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::io::Write;
use std::process::Command;

use serde_json::Value;
use spillproof_fake_driver::{Built, build, host_module_image};

const BINARY: &str = env!("CARGO_BIN_EXE_spillproof");

/// Runs an MSM, and gives its result.
fn msm(mut command: Command, arguments: &str) -> Value {
    let output = command
        .args("msm --json --log-n 11 --memory 8MiB".split(' '))
        .args(arguments.split_whitespace())
        .env("SPILLPROOF_DIR", env!("CARGO_TARGET_TMPDIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut all: Value = serde_json::from_slice(&output.stdout).unwrap();
    all["result"].take()
}

fn by_the_processor() -> Value {
    let result = msm(Command::new(BINARY), "");
    assert_eq!(result["done_by"], Value::Null);
    result
}

/// The fake driver, and the kernels' image in a file; says `SKIPPED` where they can't be compiled.
fn fake_device() -> Option<(Built, tempfile::NamedTempFile)> {
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

fn under(device: &(Built, tempfile::NamedTempFile)) -> Command {
    let mut command = device.0.command(BINARY);
    command.env("SPILLPROOF_KERNELS_IMAGE", device.1.path());
    command
}

#[test]
fn a_device_gives_the_same_point() {
    let Some(device) = fake_device() else { return };
    let expected = by_the_processor();
    for vram in ["auto", "256KiB", "2MiB"] {
        let result = msm(under(&device), &format!("--gpu auto --vram {vram}"));
        assert_eq!(result["done_by"], "the GPU", "{vram}");
        assert_eq!(result["point"], expected["point"], "{vram}");
    }
}

#[test]
fn where_a_device_fails_the_processor_goes_on_and_says_why() {
    let Some(device) = fake_device() else { return };
    let expected = by_the_processor();
    // CUDA_ERROR_LAUNCH_FAILED, in the middle; and memory that is not enough for anything.
    let mut lost = under(&device);
    lost.env("FAKE_CUDA_FAIL", "cuLaunchKernel:7:719:lost");
    for (command, arguments) in [(lost, "--gpu 0"), (under(&device), "--gpu 0 --vram 4KiB")] {
        let result = msm(command, arguments);
        let done_by = result["done_by"].as_str().unwrap();
        assert!(done_by.starts_with("the processor: "), "{done_by}");
        assert_eq!(result["point"], expected["point"]);
    }
}

#[test]
fn without_a_device_auto_says_so_and_a_number_is_refused() {
    let Some(device) = fake_device() else { return };
    let none = || {
        let mut command = under(&device);
        command.env("FAKE_CUDA_DEVICES", "0");
        command
    };
    let result = msm(none(), "--gpu auto");
    let done_by = result["done_by"].as_str().unwrap();
    assert!(done_by.starts_with("the processor: no GPU: "), "{done_by}");
    let refused = none()
        .args(["msm", "--log-n", "4", "--gpu", "0"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("no GPU"),
        "{refused:?}"
    );
}
