//! `spillproof msm --gpu` and `prove --gpu`: the binary under the fake driver, with kernels compiled for the
//! host; and a program over the drop-in that takes a device by environment variables.

use std::process::{Command, Output};

use super::BINARY;
use super::gpu_support::{last_value, under, with_devices, without_devices};
use halo2_axiom::spillproof::{Session, Unverified};
use serde_json::Value;
use spillproof_circuits::axiom::dropin;
use spillproof_circuits::{Kind, Scheme};
use spillproof_fake_driver::FakeDevice;

/// Runs an MSM, and gives its result.
fn msm(command: Command, arguments: &str) -> Value {
    msm_of(11, command, arguments)
}

fn msm_of(log_n: u32, mut command: Command, arguments: &str) -> Value {
    let output = command
        .args("msm --json --memory 8MiB --log-n".split(' '))
        .arg(log_n.to_string())
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

#[test]
fn a_device_gives_the_same_point() {
    let Some(device) = FakeDevice::new() else { return };
    let expected = by_the_processor();
    for vram in ["auto", "256KiB", "2MiB"] {
        let result = msm(under(&device), &format!("--gpu auto --vram {vram}"));
        assert_eq!(result["done_by"], "the GPU", "{vram}");
        assert_eq!(result["point"], expected["point"], "{vram}");
    }
}

#[test]
fn where_a_device_fails_the_processor_goes_on_and_says_why() {
    let Some(device) = FakeDevice::new() else { return };
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
fn page_locked_memory_is_the_users_to_say() {
    let Some(device) = FakeDevice::new() else { return };
    let expected = by_the_processor();
    for how in [
        "--pinned 20KiB",
        "--pinned 1MiB --write-combined",
        "--write-combined",
    ] {
        let result = msm(under(&device), &format!("--gpu 0 {how}"));
        assert_eq!(result["done_by"], "the GPU", "{how}");
        assert_eq!(result["point"], expected["point"], "{how}");
    }
    for (count, gpu, smallest) in [(1, "0", 20480), (4, "all", 81920), (4, "1,3", 40960)] {
        let refused = with_devices(&device, count)
            .args(["msm", "--log-n", "4", "--pinned", "20479", "--gpu", gpu])
            .output()
            .unwrap();
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        let needed = format!("it needs {smallest} at least");
        assert!(said.contains("pinned memory") && said.contains(&needed), "{said}");
    }
}

#[test]
fn several_devices_give_the_same_point() {
    let Some(device) = FakeDevice::new() else { return };
    let log_n = 13;
    let expected = msm_of(log_n, Command::new(BINARY), "");
    for (gpu, count) in [("all", 2), ("all", 4), ("3,1", 4)] {
        let result = msm_of(log_n, with_devices(&device, count), &format!("--gpu {gpu}"));
        let done_by = result["done_by"].as_str().unwrap();
        assert!(done_by.starts_with("GPUs: gpu: 1 sum on "), "{done_by}");
        assert!(done_by.contains(" points of a sum on "), "{done_by}");
        assert_eq!(result["point"], expected["point"], "{gpu} of {count}");
    }
    // One of them is lost in the middle, by CUDA_ERROR_LAUNCH_FAILED.
    let mut lost = with_devices(&device, 2);
    lost.env("FAKE_CUDA_FAIL_ON", "1:200:719:lost");
    let result = msm_of(log_n, lost, "--gpu all");
    let done_by = result["done_by"].as_str().unwrap();
    assert!(done_by.contains("which left 1 to others: "), "{done_by}");
    assert_eq!(result["point"], expected["point"]);
    let refused = with_devices(&device, 2)
        .args(["msm", "--log-n", "4", "--gpu", "0,2"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("there is no GPU 2"), "{said}");
}

#[test]
fn without_a_device_auto_says_so_and_a_number_is_refused() {
    let Some(device) = FakeDevice::new() else { return };
    let result = msm(without_devices(&device), "--gpu auto");
    let done_by = result["done_by"].as_str().unwrap();
    assert!(done_by.starts_with("the processor: no GPU: "), "{done_by}");
    let refused = without_devices(&device)
        .args(["msm", "--log-n", "4", "--gpu", "0"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("no GPU"),
        "{refused:?}"
    );
}

/// A commitment's sum goes one way over the bases, that of an opening the other, with scalars that are made
/// meanwhile.
#[test]
fn a_device_makes_a_commitment_and_its_opening() {
    let Some(device) = FakeDevice::new() else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (srs, polynomial) = (folder.path().join("10.srs"), folder.path().join("polynomial"));
    // 1000 scalars of 31 bytes; fewer than there are points.
    let bytes = (0..32_000u32).map(|i| if i % 32 == 31 { 0 } else { ((i * i) >> 3) as u8 });
    std::fs::write(&polynomial, bytes.collect::<Vec<u8>>()).unwrap();
    let run = |mut command: Command, arguments: &str| {
        let files = [("--srs", &srs), ("--polynomial", &polynomial)];
        let output = command
            .args("commit --json --memory 8MiB --open-at".split(' '))
            .arg(format!("{:064x}", 0x5eed))
            .args(arguments.split_whitespace())
            .args(
                files
                    .iter()
                    .flat_map(|(name, file)| [name.as_ref(), file.as_os_str()]),
            )
            .env("SPILLPROOF_DIR", folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let mut all: Value = serde_json::from_slice(&output.stdout).unwrap();
        all["result"].take()
    };
    let made = Command::new(BINARY)
        .args("srs gen --k 10 --memory 64MiB --out".split(' '))
        .arg(&srs)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let expected = run(Command::new(BINARY), "");
    assert_eq!(expected["gpu"], Value::Null);
    let mut lost = under(&device);
    lost.env("FAKE_CUDA_FAIL", "cuLaunchKernel:70:719:lost");
    for (command, arguments, by_the_device) in [
        (under(&device), "--gpu auto", Some(2)),
        (under(&device), "--gpu 0 --vram 256KiB", Some(2)),
        (lost, "--gpu 0", None),
        (without_devices(&device), "--gpu auto", Some(0)),
    ] {
        let result = run(command, arguments);
        assert_eq!(result["commitment"], expected["commitment"], "{arguments}");
        assert_eq!(result["opening"], expected["opening"], "{arguments}");
        let sums = result["gpu"]["sums"].as_u64().unwrap();
        assert!(by_the_device.is_none_or(|wanted| sums == wanted), "{result}");
    }
}

#[test]
fn a_driver_that_is_too_old_is_no_driver_and_an_older_one_will_do() {
    let Some(device) = FakeDevice::new() else { return };
    let expected = by_the_processor();
    let of_version = |version: &str| {
        let mut command = under(&device);
        command.env("FAKE_CUDA_VERSION", version);
        msm(command, "--gpu auto")
    };
    let old = of_version("11080");
    let done_by = old["done_by"].as_str().unwrap();
    assert!(
        done_by.contains("knows CUDA 11.8 at most, and 12.0 is needed"),
        "{done_by}"
    );
    let older = of_version("12000");
    assert_eq!(older["done_by"], "the GPU");
    assert!(old["point"] == expected["point"] && older["point"] == expected["point"]);
}

/// A proof that the binary made.
struct Proved {
    /// What it says of devices.
    gpu: Value,
    proof: Vec<u8>,
    /// Of the prover, and of its step that verifies the proof.
    seconds: f64,
    verify_seconds: Option<f64>,
}

/// Proves `lookups`, and gives what is said of devices and the proof's bytes.
fn prove(command: Command, k: u32, arguments: &str) -> (Value, Vec<u8>) {
    let proved = prove_circuit(command, "lookups", k, arguments);
    (proved.gpu, proved.proof)
}

fn prove_circuit(mut command: Command, circuit: &str, k: u32, arguments: &str) -> Proved {
    let proof = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output = command
        .args([
            "prove",
            "--json",
            "--circuit",
            circuit,
            "--memory",
            "16MiB",
            "--k",
        ])
        .arg(k.to_string())
        .arg("--out")
        .arg(proof.path())
        .args(arguments.split_whitespace())
        .env("SPILLPROOF_DIR", env!("CARGO_TARGET_TMPDIR"))
        .output()
        .unwrap();
    let mut all = last_value(&output);
    let named = |all: &Value, name: &str| {
        let mut all = all.as_array().unwrap().iter();
        all.find(|one| one["name"] == name).cloned()
    };
    let phases = &all["report"]["phases"];
    let prover = named(phases, "prove").unwrap();
    let verify_seconds = named(&prover["steps"], "verify").map(|step| step["seconds"].as_f64().unwrap());
    let gpu = &all["result"]["gpu"];
    let jobs = gpu["sums"].as_u64().unwrap_or(0) + gpu["transforms"].as_u64().unwrap_or(0);
    // By the prover, in a step that says what it takes, and where a device took part once more from the
    // proof's bytes.
    assert!(verify_seconds.is_some_and(|seconds| seconds > 0.0));
    assert_eq!(
        named(phases, "verify").is_some(),
        jobs > 0,
        "what a device took part in is verified: {gpu}"
    );
    Proved {
        seconds: prover["seconds"].as_f64().unwrap(),
        verify_seconds,
        gpu: all["result"]["gpu"].take(),
        proof: std::fs::read(proof.path()).unwrap(),
    }
}

/// What it costs to verify a proof that a device took part in, beside the proof by the processor. The device
/// is lost after a few jobs: a fake one would take minutes for the others.
#[test]
#[ignore = "measures: cargo test -p spillproof-cli --test all verification_costs -- --ignored --nocapture"]
fn what_the_verification_costs() {
    let Some(device) = FakeDevice::new() else { return };
    for (circuit, k) in [12, 14, 16]
        .into_iter()
        .flat_map(|k| [("chain", k), ("lookups", k)])
    {
        let (mut proof_seconds, mut verify_seconds) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            let alone = prove_circuit(Command::new(BINARY), circuit, k, "");
            let mut lost = under(&device);
            // Behind the first sum, which takes launches for each window and chunk.
            let launches = 500 << (k - 12);
            lost.env("FAKE_CUDA_FAIL", format!("cuLaunchKernel:{launches}:719:lost"));
            let verified = prove_circuit(lost, circuit, k, "--gpu 0 --offload always");
            assert!(
                verified.proof == alone.proof,
                "{circuit}, k = {k}: {}",
                verified.gpu
            );
            proof_seconds.push(alone.seconds);
            verify_seconds.push(verified.verify_seconds.expect("a device took part"));
        }
        let [proof_seconds, verify_seconds] = [proof_seconds, verify_seconds].map(|mut seconds| {
            seconds.sort_by(f64::total_cmp);
            seconds[seconds.len() / 2]
        });
        println!(
            "{circuit}, k = {k}: the proof {proof_seconds:.3} s, its verification {:.1} ms, {:.4} of it",
            verify_seconds * 1e3,
            verify_seconds / proof_seconds
        );
    }
}

#[test]
fn a_proof_with_a_device_has_the_same_bytes() {
    let Some(device) = FakeDevice::new() else { return };
    let small = ["16KiB", "144KiB", "320KiB", "auto"];
    let cases: [(u32, &[&str]); 3] = [(8, &small), (9, &["1MiB"]), (10, &["8MiB"])];
    for (k, vrams) in cases {
        let (gpu, expected) = prove(Command::new(BINARY), k, "");
        assert_eq!(gpu, Value::Null);
        for &vram in vrams {
            let what = format!("k = {k}, --vram {vram}");
            let (gpu, proof) = prove(
                under(&device),
                k,
                &format!("--gpu auto --offload always --vram {vram}"),
            );
            assert!(proof == expected, "{what}: {gpu}");
            let said = gpu["said"].as_str().unwrap();
            assert!(
                said.starts_with("gpu: ") && said.contains(" on 0: "),
                "{what}: {said}"
            );
            // A quotient has a window for each of its columns; there are four cosets.
            let wanted = match vram {
                "16KiB" | "144KiB" => "a quotient of ",
                _ => ", 4 quotients on 0: ",
            };
            assert!(said.contains(wanted), "{what}: {said}");
            // Were it not for columns that stay, 6.3 MB.
            if vram == "8MiB" {
                let number = |name: &str| gpu["transfers"][0][name].as_u64().unwrap();
                let (up, back) = (number("to_device_bytes"), number("from_device_bytes"));
                assert!(up <= 2 << 20 && back <= 9 << 17, "{what}: {up} {back}");
                assert!(number("hard_syncs") <= 80, "{what}: {gpu:#}");
            }
            // The smallest budget has no room for a sum.
            if vram != "16KiB" {
                assert!(gpu["sums"].as_u64().unwrap() > 10, "{what}: {said}");
                assert!(gpu["transforms"].as_u64().unwrap() > 3, "{what}: {said}");
            }
        }
    }
}

#[test]
fn a_proof_goes_on_with_the_processor_where_the_device_fails() {
    let Some(device) = FakeDevice::new() else { return };
    let k = 8;
    let (_, expected) = prove(Command::new(BINARY), k, "");
    let failing = |what: &str| {
        let mut command = under(&device);
        command.env("FAKE_CUDA_FAIL", what);
        command
    };
    // CUDA_ERROR_INVALID_VALUE once, in the middle of a sum; the rest is the device's again.
    let (gpu, proof) = prove(failing("cuLaunchKernel:200:1"), k, "--gpu auto --offload always");
    assert!(proof == expected, "{gpu}");
    let left = &gpu["by_the_processor"];
    assert!(
        left[0]["why"].as_str().unwrap().contains("driver failed"),
        "{gpu}"
    );
    assert!(
        left[0]["jobs"].as_u64().unwrap() < gpu["sums"].as_u64().unwrap(),
        "{gpu}"
    );
    // CUDA_ERROR_LAUNCH_FAILED, and nothing works from then on.
    let (gpu, proof) = prove(
        failing("cuLaunchKernel:400:719:lost"),
        k,
        "--gpu 0 --offload always",
    );
    assert!(proof == expected, "{gpu}");
    assert!(gpu["sums"].as_u64().unwrap() > 0, "{gpu}");
    assert!(gpu["by_the_processor"][0]["jobs"].as_u64().unwrap() > 5, "{gpu}");
}

/// Whatever the first device is at when it is lost, the other one goes on with it.
#[test]
fn a_proof_goes_on_with_another_device() {
    let Some(device) = FakeDevice::new() else { return };
    let (_, expected) = prove(Command::new(BINARY), 8, "");
    let mut went_on = 0;
    for nth in [900, 3000, 6000, 9000, 12000] {
        let mut lost = with_devices(&device, 2);
        lost.env("FAKE_CUDA_FAIL_ON", format!("0:{nth}:719:lost"));
        let (gpu, proof) = prove(lost, 8, "--gpu 0,1 --offload always");
        assert!(proof == expected, "{nth}: {gpu}");
        assert_eq!(
            gpu["by_the_processor"].as_array().unwrap().len(),
            0,
            "{nth}: {gpu}"
        );
        went_on += gpu["devices"][0]["left_to_others"].as_array().unwrap().len();
    }
    assert!(went_on > 1, "a test that cannot fail");
}

/// 2^11 rows are two shares of the points.
#[test]
fn a_proof_with_several_devices_has_the_same_bytes() {
    let Some(device) = FakeDevice::new() else { return };
    let k = 11;
    let (_, expected) = prove(Command::new(BINARY), k, "");
    let all = "--gpu all --offload always --vram 8MiB";
    let (gpu, proof) = prove(with_devices(&device, 2), k, all);
    assert!(proof == expected, "{gpu}");
    assert_eq!(gpu["by_the_processor"].as_array().unwrap().len(), 0, "{gpu}");
    for of in gpu["devices"].as_array().unwrap() {
        assert!(of["points"].as_u64().unwrap() > 0, "{gpu}");
    }
    // One of four is lost on the way; the others do the rest.
    let mut lost = with_devices(&device, 4);
    lost.env("FAKE_CUDA_FAIL_ON", "0:2500:719:lost");
    let (gpu, proof) = prove(lost, k, all);
    assert!(proof == expected, "{gpu}");
    assert_eq!(gpu["by_the_processor"].as_array().unwrap().len(), 0, "{gpu}");
    let left = |number: usize| gpu["devices"][number]["left_to_others"].as_array().unwrap().len();
    assert_eq!((left(0), left(1), left(2), left(3)), (1, 0, 0, 0), "{gpu}");
}

/// Kernels that are left out without a word: what comes of it is noticed, or no proof is written.
#[test]
fn a_device_that_computes_wrong_makes_no_proof() {
    let Some(device) = FakeDevice::new() else { return };
    let (_, expected) = prove(Command::new(BINARY), 8, "");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut refused = 0;
    for nth in [190, 430, 620, 800, 1200] {
        let out = folder.path().join(nth.to_string());
        let output = under(&device)
            .env("FAKE_CUDA_FAIL", format!("cuLaunchKernel:{nth}:-1"))
            .env("SPILLPROOF_DIR", env!("CARGO_TARGET_TMPDIR"))
            .args("prove --circuit lookups --memory 16MiB --k 8 --gpu 0 --offload always --out".split(' '))
            .arg(&out)
            .output()
            .unwrap();
        refused += u32::from(is_refused(&output, &out, &expected, nth));
    }
    assert!(refused > 0, "a test that cannot fail");
}

/// A run in which the device skipped its kernel number `launch`: the proof is the expected one, or it is
/// refused and not written.
fn is_refused(output: &Output, out: &std::path::Path, expected: &[u8], launch: u32) -> bool {
    if output.status.success() {
        assert!(std::fs::read(out).unwrap() == expected, "launch {launch}");
        return false;
    }
    if output.status.code().is_none() {
        // The next kernel read an index that was never written: on the host that kills the process, a device
        // would return an error.
        return false;
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "launch {launch}: {said}");
    assert!(said.contains("does not verify"), "launch {launch}: {said}");
    assert!(!out.exists(), "launch {launch}");
    true
}

#[test]
fn a_proof_without_a_device_is_the_processors_and_says_why() {
    let Some(device) = FakeDevice::new() else { return };
    let (_, expected) = prove(Command::new(BINARY), 8, "");
    let (gpu, proof) = prove(without_devices(&device), 8, "--gpu auto");
    assert!(proof == expected);
    assert!(gpu["said"].as_str().unwrap().starts_with("no GPU: "), "{gpu}");
    // Small sizes stay on the processor unless `--offload always` is given.
    let (gpu, proof) = prove(under(&device), 8, "--gpu auto");
    assert!(proof == expected);
    assert!(
        gpu["said"].as_str().unwrap().contains("too small for a device"),
        "{gpu}"
    );
    assert_eq!(gpu["sums"], 0, "{gpu}");
    let refused = without_devices(&device)
        .args(["prove", "--k", "8", "--gpu", "0", "--out", "/nowhere"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("no GPU"),
        "{refused:?}"
    );
}

/// Names the file that [`program`] writes its proof to.
pub(super) const PROOF: &str = "SPILLPROOF_TEST_PROOF";

/// Not a test of its own: a program over the drop-in, which proves in whatever session the variables make.
#[test]
pub(super) fn program() {
    use dropin::{proof, prover};
    let Some(out) = std::env::var_os(PROOF) else {
        return;
    };
    let (kind, k) = (Kind::Lookups, 8);
    let params = proof::insecure_params(k, 1);
    let key = proof::verifying_key(&params, kind, k).unwrap();
    let key = prover::proving_key(&params, key, kind, k).unwrap();
    match prover::prove(&params, &key, kind, k, 2, Scheme::Gwc) {
        Ok(proof) => std::fs::write(out, proof).unwrap(),
        Err(error) => {
            assert!(Unverified::of(&error).is_some(), "{error}");
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
    let session = Session::current().unwrap();
    let accelerator = session.as_ref().and_then(|session| session.accelerator());
    println!(
        "jobs of a device: {}.",
        accelerator.map_or(0, |accelerator| accelerator.jobs())
    );
}

/// Runs it, with these variables besides.
fn run_program(mut command: Command, out: &std::path::Path, variables: &[(&str, &str)]) -> Output {
    command
        .args(["gpu::program", "--exact", "--nocapture"])
        .env(PROOF, out)
        .env("SPILLPROOF_REPRODUCIBLE", "1")
        .env("SPILLPROOF_DIR", env!("CARGO_TARGET_TMPDIR"))
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

/// This file's program under the fake driver.
fn program_under(device: &FakeDevice) -> Command {
    device.command(std::env::current_exe().unwrap())
}

#[test]
fn a_program_over_the_drop_in_takes_a_device_by_variables() {
    let Some(device) = FakeDevice::new() else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let out = folder.path().join("proof");
    let proves = |command: Command, variables: &[(&str, &str)]| {
        let output = run_program(command, &out, variables);
        assert!(output.status.success(), "{variables:?}: {output:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        let jobs = said
            .split_once("jobs of a device: ")
            .unwrap()
            .1
            .split('.')
            .next()
            .unwrap();
        (std::fs::read(&out).unwrap(), jobs.parse::<u64>().unwrap())
    };
    let (expected, jobs) = proves(Command::new(std::env::current_exe().unwrap()), &[]);
    assert_eq!(jobs, 0);
    let memory = ("SPILLPROOF_MEMORY", "16MiB");
    let always = ("SPILLPROOF_OFFLOAD", "always");
    for vram in ["144KiB", "auto"] {
        let gpu = [
            memory,
            always,
            ("SPILLPROOF_GPU", "auto"),
            ("SPILLPROOF_VRAM", vram),
        ];
        let (proof, jobs) = proves(program_under(&device), &gpu);
        assert!(proof == expected, "{vram}");
        assert!(jobs > 20, "{vram}: {jobs}");
    }
    // Two of them, through little page-locked memory.
    let two = [
        memory,
        always,
        ("SPILLPROOF_GPU", "all"),
        ("SPILLPROOF_PINNED", "256KiB"),
        ("FAKE_CUDA_DEVICES", "2"),
    ];
    let (proof, jobs) = proves(program_under(&device), &two);
    assert!(proof == expected && jobs > 20, "{jobs}");
    let too_small = [two[0], two[1], two[2], ("SPILLPROOF_PINNED", "8KiB"), two[4]];
    let refused = run_program(program_under(&device), &out, &too_small);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success(), "{said}");
    assert!(said.contains("pinned memory") && said.contains("40960"), "{said}");
    // Small jobs; no device; no variable that asks for one.
    let (proof, jobs) = proves(program_under(&device), &[memory, ("SPILLPROOF_GPU", "0")]);
    assert!(proof == expected && jobs == 0);
    let gpu = [
        memory,
        always,
        ("SPILLPROOF_GPU", "auto"),
        ("FAKE_CUDA_DEVICES", "0"),
    ];
    assert_eq!(proves(program_under(&device), &gpu), (expected.clone(), 0));
    assert_eq!(proves(program_under(&device), &[memory, always]), (expected, 0));
}

#[test]
fn a_device_that_computes_wrong_makes_no_proof_in_a_program_over_the_drop_in() {
    let Some(device) = FakeDevice::new() else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let expected = folder.path().join("expected");
    let made = run_program(Command::new(std::env::current_exe().unwrap()), &expected, &[]);
    assert!(made.status.success(), "{made:?}");
    let expected = std::fs::read(expected).unwrap();
    let mut refused = 0;
    for nth in [190, 430, 620, 800, 1200] {
        let out = folder.path().join(nth.to_string());
        let wrong = format!("cuLaunchKernel:{nth}:-1");
        let variables = [
            ("SPILLPROOF_MEMORY", "16MiB"),
            ("SPILLPROOF_GPU", "0"),
            ("SPILLPROOF_OFFLOAD", "always"),
            ("FAKE_CUDA_FAIL", &wrong),
        ];
        let output = run_program(program_under(&device), &out, &variables);
        refused += u32::from(is_refused(&output, &out, &expected, nth));
    }
    assert!(refused > 0, "a test that cannot fail");
}
