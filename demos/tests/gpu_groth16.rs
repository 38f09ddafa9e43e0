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
    for (command, arguments, sums, constraints) in [
        // A, B1, C, B2 and H, and the quotient.
        (under(&device), "--gpu 0 --offload always", 5, 1),
        (
            under(&device),
            "--gpu 0 --offload always --vram 512KiB --pinned 1MiB",
            5,
            1,
        ),
        // Too small to be worth it: the processor's passes are not cut up for a device that takes none.
        (under(&device), "--gpu auto", 0, 0),
        (without_devices(&device), "--gpu auto", 0, 0),
    ] {
        let (gpu, _) = groth16(command, folder, arguments);
        assert_eq!(gpu["sums"], sums, "{arguments}: {gpu}");
        assert_eq!(gpu["transforms"], 0, "{arguments}: {gpu}");
        assert_eq!(gpu["constraints"], constraints, "{arguments}: {gpu}");
    }
    // A plan says the same, without a proof.
    let planned = |mut command: Command, arguments: &str| {
        let output = command
            .current_dir(folder)
            .args("groth16 plan c.zkey --memory 16MiB --json".split(' '))
            .args(arguments.split_whitespace())
            .output()
            .unwrap();
        last_value(&output)["result"]["gpu"].clone()
    };
    for arguments in [
        "--gpu 0 --offload always",
        "--gpu 0 --offload always --vram 512KiB --pinned 1MiB",
        "--gpu auto",
    ] {
        let (done, _) = groth16(under(&device), folder, arguments);
        let plan = planned(under(&device), arguments);
        for count in ["sums", "transforms", "constraints", "by_the_processor"] {
            assert_eq!(plan[count], done[count], "{arguments}: {plan:#} {done:#}");
        }
    }
    let none = planned(without_devices(&device), "--gpu auto");
    assert_eq!((&none["sums"], &none["jobs"]), (&0.into(), &Value::Array(vec![])));
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

/// A kernel that does nothing and says that it has: what comes of it is found, and made again. Of sums these are kernels
/// that only add points, since unsorted orders would be read anywhere.
#[test]
fn what_a_device_computes_wrong_the_processor_makes_again() {
    let Some(device) = FakeDevice::new() else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = folder.path();
    groth16_files(folder, "bn128");
    for launch in [
        "spk_sparse_runs_bn254_fr:1",
        "spk_ntt_pass_bn254_fr:5",
        // Buckets of sums over the witness; every other launch is for ones.
        "spk_msm_accumulate_bn254:1",
        "spk_msm_accumulate_bn254:7",
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
            (&gpu["sums"], &gpu["constraints"]),
            (&5.into(), &1.into()),
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

/// All witnesses of a folder are proved with one key: also where a device is lost at the second, and where two other
/// witnesses are wrong.
#[test]
fn a_folder_of_witnesses_is_proved() {
    let Some(device) = FakeDevice::new() else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = folder.path();
    groth16_files(folder, "bn128");
    for made in ["witnesses", "proofs"] {
        std::fs::create_dir(folder.join(made)).unwrap();
    }
    let witness = std::fs::read(folder.join("c.wtns")).unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.join("witnesses").join(name), bytes).unwrap();
    for name in ["one.wtns", "two.wtns", "three.x.wtns"] {
        put(name, &witness);
    }
    put("notes.txt", b"no witness");
    let prove = |mut command: Command| {
        let output = command
            .current_dir(folder)
            .args(
                "groth16 prove c.zkey witnesses proofs proofs --memory 16MiB --json --gpu 0 --offload always"
                    .split(' '),
            )
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let value = values.map(|value| value.unwrap()).last().unwrap()["result"].clone();
        (value, output)
    };
    let all_verify = |names: &[&str]| {
        for name in names {
            let files = [
                format!("proofs/{name}.public.json"),
                format!("proofs/{name}.proof.json"),
            ];
            let verified = Command::new(BINARY)
                .current_dir(folder)
                .args(["groth16", "verify", "vkey.json"])
                .args(&files)
                .output()
                .unwrap();
            assert!(verified.status.success(), "{name}: {verified:?}");
            files
                .iter()
                .for_each(|file| std::fs::remove_file(folder.join(file)).unwrap());
        }
        assert_eq!(std::fs::read_dir(folder.join("proofs")).unwrap().count(), 0);
    };
    let (value, output) = prove(under(&device));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(value["proofs"][1]["witness"], "witnesses/three.x.wtns", "{value}");
    assert_eq!(
        value["proofs"][1]["proof"], "proofs/three.x.proof.json",
        "{value}"
    );
    assert_eq!(value["gpu"]["sums"], 15, "{value}");
    assert_eq!(value["unproved"].as_array().unwrap().len(), 0, "{value}");
    all_verify(&["one", "two", "three.x"]);

    // A device that is lost at the second: a proof has 6 to 8 chunks of scalars.
    let mut lost = under(&device);
    lost.env("FAKE_CUDA_FAIL", "spk_msm_digits_bn254:10:719:lost");
    let (value, output) = prove(lost);
    assert!(output.status.success(), "{output:?}");
    let sums = value["gpu"]["sums"].as_u64().unwrap();
    assert!((5..15).contains(&sums), "{value}");
    assert!(
        !value["gpu"]["by_the_processor"].as_array().unwrap().is_empty(),
        "{value}"
    );
    all_verify(&["one", "two", "three.x"]);

    // Two that are wrong, each in its own way.
    let mut wrong = witness.clone();
    let last = wrong.len() - 32;
    wrong[last] ^= 1;
    put("several.wtns", &wrong);
    put("short.wtns", &witness[..witness.len() - 32]);
    let (value, output) = prove(under(&device));
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("2 of 5 witnesses have no proof")
            && said.contains("several.wtns: ")
            && said.contains("short.wtns: "),
        "{said}"
    );
    assert_eq!(value["proofs"].as_array().unwrap().len(), 3, "{value}");
    let unproved = value["unproved"].as_array().unwrap();
    assert_eq!(unproved.len(), 2, "{value}");
    let reason = unproved[0]["reason"].as_str().unwrap();
    assert!(reason.contains("does not satisfy"), "{value}");
    all_verify(&["one", "two", "three.x"]);
}

#[test]
fn folders_that_cannot_be_proved_are_refused() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = folder.path();
    for made in ["empty", "some"] {
        std::fs::create_dir(folder.join(made)).unwrap();
    }
    std::fs::write(folder.join("some/a.wtns"), b"").unwrap();
    std::fs::write(folder.join("key"), [1; 32]).unwrap();
    for (line, reason) in [
        ("empty some some", "no .wtns file"),
        ("some proof.json some", "PROOF, proof.json, is none"),
        ("some nowhere nowhere", "PROOF, nowhere, is none"),
        ("some some public.json", "PUBLIC, public.json, is none"),
        (
            "some some some --checkpoint kept --checkpoint-key key",
            "--checkpoint keeps one proof",
        ),
        ("some some some --report page.html", "--report tells of one proof"),
    ] {
        let refused = Command::new(BINARY)
            .current_dir(folder)
            .args(["groth16", "prove", "c.zkey"])
            .args(line.split(' '))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(reason), "{line}: {said}");
    }
}

/// Bytes both ways, from which memory, and how long the device was idle: of the run, and of each step.
#[test]
fn what_crosses_is_reported_by_step() {
    let Some(device) = FakeDevice::new() else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = folder.path();
    groth16_files(folder, "bn128");
    let output = under(&device)
        .current_dir(folder)
        .args(
            "groth16 prove c.zkey c.wtns proof.json public.json --memory 16MiB --json --report page.html"
                .split(' '),
        )
        .args(["--gpu", "0", "--offload", "always"])
        .output()
        .unwrap();
    let said = last_value(&output);
    let transfers = &said["result"]["gpu"]["transfers"][0];
    let number = |of: &Value, name: &str| of[name].as_f64().unwrap_or_else(|| panic!("{name}: {of}"));
    let of_key = |name: &str| number(&said["result"]["key"], name);
    let signals = of_key("signals");
    // z with the points of A, B1, C and B2; the quotient with those of H; the coefficients behind a frame for their few values. The quotient
    // comes back, and no other column.
    let (n, scalar, point, frame) = (512.0, 32.0, 64.0, 16384.0);
    let system_bytes = frame + of_key("coefficients") * 16.0;
    let up_bytes = signals * (scalar + 5.0 * point) + n * (scalar + point) + system_bytes;
    assert_eq!(number(transfers, "to_device_bytes"), up_bytes, "{transfers}");
    assert_eq!(number(transfers, "from_device_bytes"), n * scalar, "{transfers}");
    // Tables of transforms, and totals of windows.
    for pageable in ["to_device_pageable_bytes", "from_device_pageable_bytes"] {
        assert!(number(transfers, pageable) < 65536.0, "{transfers}");
    }
    let phases = said["report"]["phases"].as_array().unwrap();
    let prove = phases.iter().find(|phase| phase["name"] == "prove").unwrap();
    let of_phase = &prove["device"];
    for name in ["to_device_bytes", "from_device_bytes", "hard_syncs", "kernels"] {
        // The clocks of host and device were compared before, when it was opened.
        let before = if name == "hard_syncs" { 1.0 } else { 0.0 };
        assert_eq!(
            number(of_phase, name) + before,
            number(transfers, name),
            "{name}: {of_phase}"
        );
        let steps = prove["steps"].as_array().unwrap().iter();
        let of_steps: f64 = steps.map(|step| number(&step["device"], name)).sum();
        assert_eq!(of_steps, number(of_phase, name), "{name}: {prove}");
    }
    let seconds = number(of_phase, "busy_seconds") + number(of_phase, "idle_seconds");
    assert!(number(of_phase, "busy_seconds") > 0.0, "{of_phase}");
    assert!((seconds - number(prove, "seconds")).abs() < 1e-6, "{prove}");
    let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(
        page.contains("<h2>Devices</h2>") && page.contains("sums over A, B1, C and B2"),
        "{page}"
    );
}

/// With a checkpoint the transforms are cut as for ranks, which processors make.
#[test]
fn a_device_takes_part_in_a_proof_that_keeps_a_checkpoint() {
    let Some(device) = FakeDevice::new() else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = folder.path();
    groth16_files(folder, "bn128");
    std::fs::write(folder.join("key"), [0x5a; 32]).unwrap();
    let kept = "--gpu 0 --offload always --checkpoint kept --checkpoint-key key";
    let (gpu, _) = groth16(under(&device), folder, kept);
    assert_eq!(
        (&gpu["sums"], &gpu["transforms"]),
        (&5.into(), &0.into()),
        "{gpu}"
    );
    let left = std::fs::read_dir(folder.join("kept")).unwrap().count();
    assert_eq!(left, 1, "the list of used ones");
}

#[test]
fn options_of_devices_without_a_device_are_refused() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for arguments in ["--vram 1MiB", "--offload always"] {
        let refused = Command::new(BINARY)
            .current_dir(folder.path())
            .args("groth16 prove c.zkey c.wtns proof.json public.json --memory 16MiB".split(' '))
            .args(arguments.split_whitespace())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("no effect without a GPU"), "{said}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
