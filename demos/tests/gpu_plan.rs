//! `spillproof plan --gpu`: the planned jobs of each device are compared with the jobs of a proof, under the
//! fake driver with kernels compiled for the host.

use std::process::{Command, Output};

use super::BINARY;
use super::gpu_support::{last_value, under, with_devices, without_devices};
use serde_json::Value;
use spillproof_fake_driver::FakeDevice;

fn run(mut command: Command, arguments: &str) -> Output {
    command
        .args(arguments.split_whitespace())
        .env("SPILLPROOF_DIR", env!("CARGO_TARGET_TMPDIR"))
        .output()
        .unwrap()
}

/// What it says of GPUs.
fn of_gpus(command: Command, arguments: &str) -> Value {
    let mut all = last_value(&run(command, &format!("{arguments} --json --threads 2")));
    all["result"]["gpu"].take()
}

/// A proof, and what it says of GPUs.
fn proved(command: Command, arguments: &str) -> Value {
    let proof = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    of_gpus(
        command,
        &format!("prove {arguments} --out {}", proof.path().display()),
    )
}

/// Reasons in any order.
fn sorted(reasons: &Value) -> Vec<String> {
    let mut reasons: Vec<String> = (reasons.as_array().unwrap().iter())
        .map(ToString::to_string)
        .collect();
    reasons.sort_unstable();
    reasons
}

fn jobs(planned: &Value) -> &[Value] {
    planned["jobs"].as_array().unwrap()
}

/// Those of a kind that GPUs do.
fn by_gpu<'a>(planned: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let wanted = move |job: &&Value| job["kind"] == kind && job["by"] == "gpu";
    jobs(planned).iter().filter(wanted)
}

#[test]
fn what_is_planned_is_done() {
    let Some(device) = FakeDevice::new() else { return };
    let cases = [
        (
            "--k 8 --memory 16MiB --vram 16KiB",
            "transforms in two steps, and nothing else",
        ),
        ("--k 8 --memory 16MiB --vram 144KiB", "no quotient"),
        ("--k 8 --memory 16MiB --vram 320KiB", "all"),
        ("--k 9 --memory 16MiB --vram 1MiB", "all"),
        (
            "--k 9 --memory 16MiB --pinned 20KiB",
            "slots too short for a row of a quotient",
        ),
        ("--k 8 --memory 2752KiB", "little of the host"),
    ];
    for (arguments, what) in cases {
        let arguments = format!("--circuit lookups --gpu auto --offload always {arguments}");
        let planned = of_gpus(under(&device), &format!("plan {arguments}"));
        let done = proved(under(&device), &arguments);
        let both = format!("{what}, {arguments}:\n{planned:#}\n{done:#}");
        for count in ["sums", "transforms", "quotients", "devices"] {
            assert_eq!(planned[count], done[count], "{count} of {both}");
        }
        let reasons = |of: &Value| sorted(&of["by_the_processor"]);
        assert_eq!(reasons(&planned), reasons(&done), "{both}");
        // The lines say the same as the sums of all.
        let of_kind = |kind: &str| -> u64 {
            let count = |job: &Value| job["count"].as_u64().unwrap() * job["columns"].as_u64().unwrap_or(1);
            by_gpu(&planned, kind).map(count).sum()
        };
        assert_eq!(of_kind("sums"), done["sums"], "{both}");
        assert_eq!(of_kind("transform"), done["transforms"], "{both}");
        for job in jobs(&planned).iter().filter(|job| job["by"] == "gpu") {
            assert!(job["vram_bytes"].as_u64().unwrap() > 0, "{job}");
            assert!(job["pinned_bytes"].as_u64().unwrap() > 0, "{job}");
        }
    }
}

#[test]
fn budgets_say_how_jobs_are_cut() {
    let Some(device) = FakeDevice::new() else { return };
    let plan = |how: &str| {
        let shape = "plan --circuit lookups --k 10 --memory 16MiB --gpu auto --offload always";
        of_gpus(under(&device), &format!("{shape} {how}"))
    };
    let ways = |planned: &Value, kind: &str| -> Vec<String> {
        let mut ways: Vec<String> = by_gpu(planned, kind).map(|job| job["way"].to_string()).collect();
        ways.sort_unstable();
        ways.dedup();
        ways
    };
    let whole = plan("--vram 8MiB");
    assert_eq!(ways(&whole, "transform"), ["\"whole\""], "{whole:#}");
    let tight = plan("--vram 32KiB");
    assert_eq!(ways(&tight, "transform"), ["\"two_steps\""], "{tight:#}");
    // Seven sums at one time, or in turn.
    let passes = |planned: &Value| {
        let of_seven = by_gpu(planned, "sums").find(|job| job["columns"] == 7);
        of_seven.map(|job| {
            (
                job["columns_per_pass"].as_u64().unwrap(),
                job["passes"].as_u64().unwrap(),
            )
        })
    };
    assert_eq!(passes(&whole), Some((7, 1)), "{whole:#}");
    // Points that stay pass once all the same; they have half of the device memory at most.
    let (columns, once) = passes(&plan("--vram 256KiB")).unwrap();
    assert!(columns < 7 && once == 1, "{columns} a pass, {once} with points");
    let (columns, passes) = passes(&plan("--vram 144KiB")).unwrap();
    assert!(columns < 7 && passes > 1, "{columns} a pass, {passes} in all");
    let cosets: Vec<_> = by_gpu(&whole, "coset").collect();
    let [coset] = cosets[..] else {
        panic!("{whole:#}");
    };
    assert_eq!(
        (&coset["count"], &coset["columns"]),
        (&4.into(), &31.into()),
        "{coset:#}"
    );
    assert!(coset["tile_rows"].as_u64().unwrap() > 0, "{coset:#}");
    for (kind, memory) in [("sums", "8MiB"), ("transform", "32KiB"), ("coset", "8MiB")] {
        let limit = if memory == "8MiB" { 8 << 20 } else { 32 << 10 };
        let planned = if memory == "8MiB" { &whole } else { &tight };
        for job in by_gpu(planned, kind) {
            assert!(job["vram_bytes"].as_u64().unwrap() <= limit, "{job:#}");
        }
    }
}

#[test]
fn several_devices_share_what_is_planned() {
    let Some(device) = FakeDevice::new() else { return };
    let arguments = "--circuit lookups --k 11 --memory 16MiB --gpu all --offload always --vram 8MiB";
    let planned = of_gpus(with_devices(&device, 2), &format!("plan {arguments}"));
    let done = proved(with_devices(&device, 2), arguments);
    for count in ["sums", "transforms", "quotients", "by_the_processor"] {
        assert_eq!(planned[count], done[count], "{count}:\n{planned:#}\n{done:#}");
    }
    let shared = by_gpu(&planned, "sums").filter(|job| job["devices"].as_array().unwrap().len() == 2);
    let shared: u64 = shared
        .map(|job| job["count"].as_u64().unwrap() * job["columns"].as_u64().unwrap())
        .sum();
    assert!(shared > 10, "{planned:#}");
    // Which of the two gets more is not foreseen; all of them have been dealt.
    let points = |of: &Value| -> u64 {
        let devices = of["devices"].as_array().unwrap().iter();
        devices.map(|device| device["points"].as_u64().unwrap()).sum()
    };
    assert_eq!(points(&planned), points(&done), "{planned:#}\n{done:#}");
}

#[test]
fn rates_decide_and_are_told() {
    let Some(device) = FakeDevice::new() else { return };
    let small = of_gpus(under(&device), "plan --k 8 --memory 16MiB --gpu auto");
    assert!(jobs(&small).len() > 5, "{small:#}");
    for job in jobs(&small) {
        assert_eq!(job["by"], "processor", "{job:#}");
        assert!(
            job["why"].as_str().unwrap().contains("too small for a device"),
            "{job:#}"
        );
        assert_eq!(job["gpu_seconds"], Value::Null, "{job:#}");
    }
    // A fake device is slower than the processor it runs on.
    let measured = of_gpus(under(&device), "plan --k 12 --memory 64MiB --gpu auto");
    for job in jobs(&measured) {
        assert_eq!(job["by"], "processor", "{job:#}");
        assert!(
            job["why"]
                .as_str()
                .unwrap()
                .ends_with("the processor is faster, by measured rates")
        );
        let (gpu, processor) = (&job["gpu_seconds"], &job["processor_seconds"]);
        assert!(gpu.as_f64().unwrap() >= processor.as_f64().unwrap(), "{job:#}");
        assert!(processor.as_f64().unwrap() > 0.0, "{job:#}");
    }
}

#[test]
fn without_a_device_a_plan_is_the_processors_and_says_why() {
    let Some(device) = FakeDevice::new() else { return };
    let arguments = "plan --k 8 --memory 16MiB";
    let of_none = of_gpus(without_devices(&device), &format!("{arguments} --gpu auto"));
    let done = proved(without_devices(&device), "--k 8 --memory 16MiB --gpu auto");
    assert_eq!((&of_none["said"], jobs(&of_none).len()), (&done["said"], 0));
    assert!(
        of_none["said"].as_str().unwrap().starts_with("no GPU: "),
        "{of_none}"
    );
    assert_eq!(of_gpus(Command::new(BINARY), arguments), Value::Null);
    // For people: the table of always, and then that line, or another table.
    let text = |command: Command, gpu: &str| {
        let output = run(command, &format!("{arguments} {gpu}"));
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let plain = text(Command::new(BINARY), "");
    let without = text(without_devices(&device), "--gpu auto");
    assert!(!plain.contains("GPU") && plain.contains("budget: "), "{plain}");
    assert!(
        without.lines().last().unwrap().starts_with("no GPU: "),
        "{without}"
    );
    assert_eq!(without.lines().count(), plain.lines().count() + 1);
    let with = text(under(&device), "--gpu auto --offload always");
    for said in [
        "GPU 0",
        "a transform of 2^8",
        "device memory",
        "gpu: ",
        " quotients on 0: ",
    ] {
        assert!(with.contains(said), "{said}: {with}");
    }
    let refused = run(without_devices(&device), &format!("{arguments} --gpu 0"));
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let of_proof = run(without_devices(&device), "prove --k 8 --gpu 0 --out /nowhere");
    assert_eq!(refused.stderr, of_proof.stderr);
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("no GPU"),
        "{refused:?}"
    );
}
