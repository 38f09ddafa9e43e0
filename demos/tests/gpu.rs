//! `spillproof msm --gpu`, `prove --gpu` and `bench --gpu`: the binary under the fake driver, with kernels compiled for the host. And a
//! program over the drop-in that knows nothing of devices, with the variables that ask for one.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::io::Write;
use std::process::{Command, Output};

use halo2_axiom::spillproof::{Unverified, tier};
use serde_json::Value;
use spillproof_cli::circuits::{Kind, Scheme, dropin};
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

/// The binary under a driver that knows no device.
fn without_devices(device: &(Built, tempfile::NamedTempFile)) -> Command {
    let mut command = under(device);
    command.env("FAKE_CUDA_DEVICES", "0");
    command
}

#[test]
fn without_a_device_auto_says_so_and_a_number_is_refused() {
    let Some(device) = fake_device() else { return };
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

/// Proves, and gives the result and the proof's bytes.
fn prove(mut command: Command, k: u32, arguments: &str) -> (Value, Vec<u8>) {
    let proof = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output = command
        .args([
            "prove",
            "--json",
            "--circuit",
            "lookups",
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
    assert!(output.status.success(), "{output:?}");
    // Events of steps come first, one a line; the result is the last of all.
    let text = String::from_utf8(output.stdout).unwrap();
    let mut all: Value = serde_json::Deserializer::from_str(&text)
        .into_iter::<Value>()
        .map(|value| value.unwrap())
        .last()
        .unwrap();
    let phases = all["report"]["phases"].as_array().unwrap();
    let is_verified = phases.iter().any(|phase| phase["name"] == "verify");
    let gpu = &all["result"]["gpu"];
    let jobs = gpu["sums"].as_u64().unwrap_or(0) + gpu["transforms"].as_u64().unwrap_or(0);
    assert_eq!(
        is_verified,
        jobs > 0,
        "what a device took part in is verified: {gpu}"
    );
    (all["result"]["gpu"].take(), std::fs::read(proof.path()).unwrap())
}

#[test]
fn a_proof_with_a_device_has_the_same_bytes() {
    let Some(device) = fake_device() else { return };
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
    let Some(device) = fake_device() else { return };
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

/// Kernels that are left out without a word: what comes of it is noticed, or no proof is written.
#[test]
fn a_device_that_computes_wrong_makes_no_proof() {
    let Some(device) = fake_device() else { return };
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
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            assert!(std::fs::read(&out).unwrap() == expected, "launch {nth}");
        } else if output.status.code().is_some() {
            assert_eq!(output.status.code(), Some(1), "launch {nth}: {said}");
            assert!(said.contains("it does not verify"), "launch {nth}: {said}");
            assert!(!out.exists(), "launch {nth}");
            refused += 1;
        }
        // Else the kernel after it read an index that nobody wrote: on the host that is the end, a device would answer with an error.
    }
    assert!(refused > 0, "a test that cannot fail");
}

#[test]
fn a_proof_without_a_device_is_the_processors_and_says_why() {
    let Some(device) = fake_device() else { return };
    let (_, expected) = prove(Command::new(BINARY), 8, "");
    let (gpu, proof) = prove(without_devices(&device), 8, "--gpu auto");
    assert!(proof == expected);
    assert!(gpu["said"].as_str().unwrap().starts_with("no GPU: "), "{gpu}");
    // Small sizes stay on the processor unless somebody says otherwise.
    let (gpu, proof) = prove(under(&device), 8, "--gpu auto");
    assert!(proof == expected);
    assert!(gpu["said"].as_str().unwrap().contains("is small"), "{gpu}");
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
const PROOF: &str = "SPILLPROOF_TEST_PROOF";

/// Not a test of its own: a program over the drop-in, which proves in whatever session the variables make.
#[test]
fn program() {
    use dropin::proof;
    let Some(out) = std::env::var_os(PROOF) else {
        return;
    };
    let (kind, k) = (Kind::Lookups, 8);
    let params = proof::insecure_params(k, 1);
    let key = proof::verifying_key(&params, kind, k).unwrap();
    let key = proof::proving_key(&params, key, kind, k).unwrap();
    match proof::prove(&params, &key, kind, k, 2, Scheme::Gwc) {
        Ok(proof) => std::fs::write(out, proof).unwrap(),
        Err(error) => {
            assert!(Unverified::of(&error).is_some(), "{error}");
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
    println!("jobs of a device: {}.", tier::jobs_of_all());
}

/// Runs it, with these variables besides.
fn run_program(mut command: Command, out: &std::path::Path, variables: &[(&str, &str)]) -> Output {
    command
        .args(["program", "--exact", "--nocapture"])
        .env(PROOF, out)
        .env("SPILLPROOF_REPRODUCIBLE", "1")
        .env("SPILLPROOF_DIR", env!("CARGO_TARGET_TMPDIR"))
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

/// This file's program under the fake driver.
fn program_under(device: &(Built, tempfile::NamedTempFile)) -> Command {
    let mut command = device.0.command(std::env::current_exe().unwrap());
    command.env("SPILLPROOF_KERNELS_IMAGE", device.1.path());
    command
}

#[test]
fn a_program_over_the_drop_in_takes_a_device_by_variables() {
    let Some(device) = fake_device() else { return };
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
    // Small jobs, no device, and nobody who asks for one.
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
    let Some(device) = fake_device() else { return };
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
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            assert!(std::fs::read(&out).unwrap() == expected, "launch {nth}");
        } else if output.status.code().is_some() {
            assert_eq!(output.status.code(), Some(1), "launch {nth}: {said}");
            assert!(said.contains("does not verify"), "launch {nth}: {said}");
            assert!(!out.exists(), "launch {nth}");
            refused += 1;
        }
        // Else as above.
    }
    assert!(refused > 0, "a test that cannot fail");
}

/// Measures a device; sizes are small, and rates of a fake device are no rates.
fn bench(mut command: Command, arguments: &str) -> Output {
    command
        .args("bench --memory 16MiB".split(' '))
        .args(arguments.split_whitespace())
        .env("SPILLPROOF_DIR", env!("CARGO_TARGET_TMPDIR"))
        .output()
        .unwrap()
}

/// Its result, and whether it went well; what it said besides.
fn bench_result(command: Command, arguments: &str) -> (Value, bool, String) {
    let output = bench(command, &format!("--json {arguments}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut all: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    (all["result"].take(), output.status.success(), said)
}

#[test]
fn a_device_is_measured_beside_the_processor() {
    let Some(device) = fake_device() else { return };
    let asked = "--gpu auto --msm 10 --ntt 12 --vram 256KiB,4MiB --runs 2";
    let (result, went_well, said) = bench_result(under(&device), asked);
    assert!(went_well, "{said}");
    assert_eq!(result["device"]["name"], "fake device 0");
    assert_eq!(result["device"]["multiprocessors"], 4);
    assert_eq!(result["memory_budget_bytes"], 16 << 20);
    for rate in [
        "fq_products_per_second",
        "fr_products_per_second",
        "wide_products_per_second",
        "wide_products_per_multiprocessor_and_cycle",
        "mixed_additions_per_second",
        "to_device_bytes_per_second",
        "from_device_bytes_per_second",
        "both_ways_bytes_per_second",
    ] {
        assert!(result["rates"][rate].as_f64().unwrap() > 0.0, "{rate}: {result}");
    }
    assert!(result["disk"]["read_bytes_per_second"].as_f64().unwrap() > 0.0);
    let jobs = result["jobs"].as_array().unwrap();
    let made: Vec<(&str, u64, &str)> = jobs
        .iter()
        .map(|job| {
            let text = |name: &str| job[name].as_str().unwrap();
            (
                text("what"),
                job["vram_budget_bytes"].as_u64().unwrap() >> 10,
                text("way"),
            )
        })
        .collect();
    let expected = [
        ("MSM 2^10", 256, "streamed"),
        ("MSM 2^10", 256, "resident"),
        ("MSM 2^10", 4096, "streamed"),
        ("MSM 2^10", 4096, "resident"),
        ("NTT 2^12", 256, "parts"),
        ("NTT 2^12", 4096, "whole"),
    ];
    assert_eq!(made, expected);
    for job in jobs {
        let number = |name: &str| job[name].as_f64().unwrap_or_else(|| panic!("{name}: {job}"));
        if !job["not_measured"].is_null() {
            panic!("{job}");
        }
        assert_eq!(
            (&job["is_equal"], &job["compared_with"]),
            (&Value::Bool(true), &"the processor".into())
        );
        for name in [
            "seconds",
            "processor_seconds",
            "ratio",
            "traced_seconds",
            "kernel_seconds",
            "copy_seconds",
        ] {
            assert!(number(name) > 0.0, "{name}: {job}");
        }
        let bounds = [
            "compute_bound_seconds",
            "copies_bound_seconds",
            "disk_bound_seconds",
        ]
        .map(number);
        let bound = bounds.into_iter().fold(0.0, f64::max);
        assert!(
            bounds.iter().all(|bound| *bound > 0.0) && bound == number("bound_seconds"),
            "{job}"
        );
        assert!(
            (number("seconds_by_bound") - number("seconds") / bound).abs()
                < 1e-6 * number("seconds_by_bound")
        );
        assert!(
            (number("ratio") - number("seconds") / number("processor_seconds")).abs()
                < 1e-9 * number("ratio")
        );
        let shares = ["overlap_share", "overlap_share_of_shorter"].map(number);
        assert!(
            shares.iter().all(|share| (0.0..=1.0 + 1e-9).contains(share)),
            "{job}"
        );
        // Points and scalars, or scalars; a transform in parts crosses twice. Sums come back as a point for each window.
        let (up, back) = match job["way"].as_str().unwrap() {
            "streamed" => (96 << 10, 0),
            "resident" => (32 << 10, 0),
            "whole" => (32 << 12, 32 << 12),
            _ => (64 << 12, 64 << 12),
        };
        assert_eq!(job["to_device_bytes"], up, "{job}");
        assert!(job["from_device_bytes"].as_u64().unwrap() >= back, "{job}");
        assert!(
            job["vram_leased_bytes"].as_u64() <= job["vram_budget_bytes"].as_u64(),
            "{job}"
        );
        assert!((1..=3).contains(&job["hard_syncs"].as_u64().unwrap()), "{job}");
        assert_eq!(
            job["bases_upload_seconds"].is_null(),
            job["way"] != "resident",
            "{job}"
        );
    }
}

#[test]
fn a_measurement_says_on_which_device_and_what_did_not_fit() {
    let Some(device) = fake_device() else { return };
    let picture = tempfile::NamedTempFile::new().unwrap();
    let asked = format!(
        "--gpu 0 --msm 10 --vram 144KiB,1TiB --runs 1 --no-cpu --svg {}",
        picture.path().display()
    );
    let output = bench(under(&device), &asked);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for wanted in [
        "GPU 0: fake device 0 (sm_90, 4 multiprocessors at 1.98 GHz, 64 MiB), CUDA 13.0",
        "\nbeside ",
        "left out: a budget of 1.0 TiB",
        "mixed additions",
        "time / bound",
        "on 0: fake device 0",
        "MSM 2^10 within 144.0 KiB, resident bases: not done by the GPU: an MSM of 1024 points and all its bases does not fit",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(
        std::fs::read_to_string(picture.path())
            .unwrap()
            .starts_with("<svg")
    );
    // Without the processor budgets are compared with each other.
    let (result, went_well, said) = bench_result(
        under(&device),
        "--gpu 0 --ntt 11 --vram 128KiB,4MiB --no-cpu --runs 1",
    );
    assert!(went_well, "{said}");
    let jobs = result["jobs"].as_array().unwrap();
    assert!(
        jobs.iter()
            .all(|job| job["processor_seconds"].is_null() && job["is_equal"] == true),
        "{result}"
    );
    assert_eq!(jobs[1]["compared_with"], "the first budget");
}

#[test]
fn a_measurement_does_not_hide_what_failed() {
    let Some(device) = fake_device() else { return };
    let failing = |what: &str| {
        let mut command = under(&device);
        command.env("FAKE_CUDA_FAIL", what);
        command
    };
    // Rates take some 30 launches, the more the faster the machine; the rest are sums.
    let asked = "--gpu auto --msm 8 --ntt 10 --vram 256KiB,4MiB --runs 1";
    let (result, went_well, said) = bench_result(failing("cuLaunchKernel:75:1"), asked);
    assert!(!went_well, "{result}");
    assert!(
        said.contains("not done by the GPU: the CUDA driver failed"),
        "{said}"
    );
    let jobs = result["jobs"].as_array().unwrap();
    let failed = jobs.iter().filter(|job| !job["not_measured"].is_null());
    assert_eq!((jobs.len(), failed.count()), (6, 1), "{result}");
    assert_eq!(result["failures"].as_array().unwrap().len(), 1, "{result}");

    let (result, went_well, said) = bench_result(failing("cuLaunchKernel:75:719:lost"), asked);
    assert!(!went_well && said.contains("the GPU answers no more"), "{said}");
    assert_eq!(result["failures"].as_array().unwrap().len(), 2, "{result}");
    assert!(result["jobs"].as_array().unwrap().len() < 6, "{result}");

    // A pass of a transform that never ran: where the run before has not left what it would have made, the result is another.
    let mut found = 0;
    for nth in 75..79 {
        let many = "--gpu auto --ntt 11 --vram 4MiB --runs 30";
        let (result, went_well, said) = bench_result(failing(&format!("cuLaunchKernel:{nth}:-1")), many);
        assert_eq!(result["jobs"][0]["is_equal"], went_well, "launch {nth}: {result}");
        assert_eq!(
            said.contains("the result is not that of the processor"),
            !went_well,
            "{said}"
        );
        found += u32::from(!went_well);
    }
    assert!(found > 0, "a test that cannot fail");
}

#[test]
fn without_a_device_there_is_nothing_to_measure() {
    let Some(device) = fake_device() else { return };
    for choice in ["auto", "0"] {
        let output = bench(without_devices(&device), &format!("--gpu {choice}"));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("no GPU: the CUDA driver sees no device"), "{said}");
    }
    for (arguments, said_why) in [
        ("--gpu off", "--gpu off"),
        ("--gpu 0 --vram 1GiB", "no budget of --vram"),
    ] {
        let output = bench(under(&device), arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(said_why),
            "{output:?}"
        );
    }
}
