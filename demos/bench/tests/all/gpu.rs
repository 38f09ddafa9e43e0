//! `spillproof-bench --gpu`: the binary under the fake driver, with kernels compiled for the host.

use std::process::{Command, Output};

use serde_json::Value;
use spillproof_fake_driver::FakeDevice;

use crate::BINARY;

fn under(device: &FakeDevice) -> Command {
    device.command(BINARY)
}

fn without_devices(device: &FakeDevice) -> Command {
    device.command_with(BINARY, 0)
}

/// Measures a device; sizes are small, and rates of a fake device are no rates.
fn bench(mut command: Command, arguments: &str) -> Output {
    command
        .args(["--memory", "16MiB"])
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
    let Some(device) = FakeDevice::new() else { return };
    let asked = "--gpu auto --msm 10 --ntt 13 --vram 256KiB,4MiB --runs 2";
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
        ("NTT 2^13", 256, "parts"),
        ("NTT 2^13", 4096, "whole"),
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
        // Points and scalars, or scalars; a transform in parts crosses twice. Sums come back as a point for
        // each window.
        let (up, back) = match job["way"].as_str().unwrap() {
            "streamed" => (96 << 10, 0),
            "resident" => (32 << 10, 0),
            "whole" => (32 << 13, 32 << 13),
            _ => (64 << 13, 64 << 13),
        };
        assert_eq!(job["to_device_bytes"], up, "{job}");
        assert!(job["from_device_bytes"].as_u64().unwrap() >= back, "{job}");
        assert!(
            job["vram_leased_bytes"].as_u64() <= job["vram_budget_bytes"].as_u64(),
            "{job}"
        );
        assert!((1..=3).contains(&job["hard_syncs"].as_u64().unwrap()), "{job}");
    }
}

#[test]
fn proofs_and_transforms_over_goldilocks_are_measured() {
    let Some(device) = FakeDevice::new() else { return };
    let asked = "--gpu auto --groth16 9 --goldilocks 12,13 --vram 8MiB --runs 1";
    let (result, went_well, said) = bench_result(under(&device), asked);
    assert!(went_well, "{said}");
    let proof = &result["jobs"][0];
    assert_eq!(
        (&proof["what"], &proof["way"], &proof["is_equal"]),
        (&"Groth16 2^9".into(), &"proof".into(), &true.into()),
        "{proof}"
    );
    for name in [
        "seconds",
        "processor_seconds",
        "ratio",
        "bound_seconds",
        "seconds_by_bound",
        "kernel_seconds",
    ] {
        assert!(proof[name].as_f64().unwrap() > 0.0, "{name}: {proof}");
    }
    // Points, scalars, coefficients.
    assert!(
        proof["to_device_bytes"].as_u64().unwrap() > 6 * 32 * 512,
        "{proof}"
    );
    let lines = result["goldilocks"].as_array().unwrap();
    assert_eq!(lines.len(), 2);
    for (line, log_n) in lines.iter().zip([12, 13]) {
        assert_eq!((&line["log_n"], &line["is_equal"]), (&log_n.into(), &true.into()));
        assert_eq!(line["to_device_bytes"], 8 << log_n);
        for name in [
            "device_seconds",
            "seconds",
            "processor_seconds",
            "ratio",
            "copies_bound_seconds",
        ] {
            assert!(line[name].as_f64().unwrap() > 0.0, "{name}: {line}");
        }
    }
}

#[test]
fn a_measurement_says_on_which_device_and_what_did_not_fit() {
    let Some(device) = FakeDevice::new() else { return };
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
        "MSM 2^10 within 144.0 KiB, resident bases: not done by the GPU: an MSM of 1024 points that stay does not fit",
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
    let Some(device) = FakeDevice::new() else { return };
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
    assert!(
        !went_well && said.contains("the GPU does not answer any more"),
        "{said}"
    );
    assert_eq!(result["failures"].as_array().unwrap().len(), 2, "{result}");
    assert!(result["jobs"].as_array().unwrap().len() < 6, "{result}");

    // A pass of a transform that never ran: where the run before has not left what it would have made, the
    // result is another.
    let mut found = 0;
    for nth in 75..79 {
        let many = "--gpu auto --ntt 11 --vram 4MiB --runs 30";
        let (result, went_well, said) = bench_result(failing(&format!("cuLaunchKernel:{nth}:-1")), many);
        assert_eq!(result["jobs"][0]["is_equal"], went_well, "launch {nth}: {result}");
        assert_eq!(
            said.contains("the result differs from that of the processor"),
            !went_well,
            "{said}"
        );
        found += u32::from(!went_well);
    }
    assert!(found > 0, "a test that cannot fail");
}

#[test]
fn without_a_device_there_is_nothing_to_measure() {
    let Some(device) = FakeDevice::new() else { return };
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
