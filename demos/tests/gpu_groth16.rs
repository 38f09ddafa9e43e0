//! `spillproof groth16 prove --gpu`: the binary under the fake driver.

use std::process::Command;

use super::BINARY;
use super::gpu_support::{last_value, under, without_devices};
use serde_json::Value;
use spillproof_fake_driver::FakeDevice;

/// Files of a circuit over a curve, in a folder.
fn groth16_files(folder: &std::path::Path, curve: &str) {
    let made = Command::new(BINARY)
        .current_dir(folder)
        .args([
            "groth16", "example", "-k", "9", "--curve", curve, "c.zkey", "c.wtns",
        ])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let made = Command::new(BINARY)
        .current_dir(folder)
        .args(["groth16", "vkey", "c.zkey", "vkey.json"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
}

/// Proves, verifies without any device, and gives what is said of devices, and standard error.
fn groth16(mut command: Command, folder: &std::path::Path, arguments: &str) -> (Value, String) {
    let output = command
        .current_dir(folder)
        .args("groth16 prove c.zkey c.wtns proof.json public.json --memory 16MiB --json".split(' '))
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let result = last_value(&output);
    let verified = Command::new(BINARY)
        .current_dir(folder)
        .args(["groth16", "verify", "vkey.json", "public.json", "proof.json"])
        .output()
        .unwrap();
    assert!(verified.status.success(), "{arguments}: {verified:?}");
    for file in ["proof.json", "public.json"] {
        std::fs::remove_file(folder.join(file)).unwrap();
    }
    (result["result"]["gpu"].clone(), said)
}

#[test]
fn a_device_takes_part() {
    let Some(device) = FakeDevice::new() else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = folder.path();
    groth16_files(folder, "bn128");
    assert_eq!(groth16(Command::new(BINARY), folder, "").0, Value::Null);
    for (command, arguments, sums, transforms) in [
        // A, B1, C, B2 and H. Three columns there and back.
        (under(&device), "--gpu 0 --offload always", 5, 6),
        (
            under(&device),
            "--gpu 0 --offload always --vram 512KiB --pinned 1MiB",
            5,
            6,
        ),
        // Too small to be worth it: the processor's passes are not cut up for a device that takes none.
        (under(&device), "--gpu auto", 0, 0),
        (without_devices(&device), "--gpu auto", 0, 0),
    ] {
        let (gpu, _) = groth16(command, folder, arguments);
        assert_eq!(gpu["sums"], sums, "{arguments}: {gpu}");
        assert_eq!(gpu["transforms"], transforms, "{arguments}: {gpu}");
    }
    let mut lost = under(&device);
    lost.env("FAKE_CUDA_FAIL", "cuLaunchKernel:90:719:lost");
    let (gpu, _) = groth16(lost, folder, "--gpu 0 --offload always");
    assert!(!gpu["by_the_processor"].as_array().unwrap().is_empty(), "{gpu}");
    // No kernel knows the other curve.
    groth16_files(folder, "bls12381");
    let (gpu, _) = groth16(under(&device), folder, "--gpu 0 --offload always");
    assert_eq!(
        (&gpu["sums"], &gpu["transforms"]),
        (&0.into(), &0.into()),
        "{gpu}"
    );
}

/// A kernel that does nothing and says that it has: what comes of it is found, and made again. Launches of transforms
/// come first; of sums, kernels that only add points, since unsorted orders would be read anywhere.
#[test]
fn what_a_device_computes_wrong_the_processor_makes_again() {
    let Some(device) = FakeDevice::new() else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = folder.path();
    groth16_files(folder, "bn128");
    for launch in [
        "cuLaunchKernel:1",
        "cuLaunchKernel:5",
        // H, then A.
        "spk_msm_accumulate_bn254:1",
        "spk_msm_accumulate_bn254:2",
        "spk_msm_accumulate_bn254_g2:1",
    ] {
        let mut wrong = under(&device);
        wrong.env("FAKE_CUDA_FAIL", format!("{launch}:-1"));
        let (gpu, said) = groth16(wrong, folder, "--gpu 0 --offload always");
        assert!(
            said.contains("the accelerator computed wrong"),
            "{launch}: {said}"
        );
        // The device had said that all was done.
        assert_eq!(
            (&gpu["sums"], &gpu["transforms"]),
            (&5.into(), &6.into()),
            "{gpu}"
        );
    }
    // A wrong witness is reported as such, also where a device sums.
    let mut witness = std::fs::read(folder.join("c.wtns")).unwrap();
    let last = witness.len() - 32;
    witness[last] ^= 1;
    std::fs::write(folder.join("c.wtns"), witness).unwrap();
    let refused = under(&device)
        .current_dir(folder)
        .args(
            "groth16 prove c.zkey c.wtns proof.json public.json --memory 16MiB --gpu 0 --offload always"
                .split(' '),
        )
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("does not satisfy"),
        "{said}"
    );
}

#[test]
fn what_goes_on_from_sums_of_a_device_is_refused() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for (arguments, reason) in [
        ("--gpu 0 --checkpoint d --checkpoint-key k", "--gpu takes no part"),
        ("--vram 1MiB", "no effect without a GPU"),
        ("--offload always", "no effect without a GPU"),
    ] {
        let refused = Command::new(BINARY)
            .current_dir(folder.path())
            .args("groth16 prove c.zkey c.wtns proof.json public.json --memory 16MiB".split(' '))
            .args(arguments.split_whitespace())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(reason), "{said}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
