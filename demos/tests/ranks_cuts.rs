//! `--cut auto`: the quickest cut, by a plan over a link, with and without devices.

use std::path::Path;
use std::process::Command;

use spillproof_fake_driver::FakeDevice;

use crate::BINARY;
use crate::ranks::{launcher, on_ranks, started, verifies};
use crate::runs::succeeds;
/// What `ranks bench` would write for two ranks over a slow link, whose devices do everything at once.
fn slow_link(dir: &Path, has_devices: bool) {
    let rates = |seconds: f64| {
        format!(
            r#"{{"device_fixed": {seconds}, "device_each": {}, "processor_each": 1e-6}}"#,
            seconds / 1e6
        )
    };
    let gpu = match has_devices {
        true => format!(r#", "gpu": {{"sums": {0}, "transforms": {0}}}"#, rates(1e-6)),
        false => String::new(),
    };
    let rank = |rank: u32| {
        format!(
            r#"{{"rank": {rank}, "host": "a", "threads": 1, "bytes_read": 1e9, "bytes_written": 1e9, "butterflies": 1e8,
               "additions": 1e7, "products": 1e8, "trial": []{gpu}}}"#
        )
    };
    let text = format!(
        r#"{{"link": {{"latency_seconds": 1e-3, "port_bytes_per_second": 1e6}}, "curve": "bn128", "ranks": [{}, {}]}}"#,
        rank(0),
        rank(1)
    );
    std::fs::write(dir.join("slow.json"), text).expect("the link");
}

/// Over a slow link, the one that sends the fewest bytes; where processors take long, the one that shares all work.
#[test]
fn the_quickest_cut_is_taken() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    succeeds(dir, "groth16 example c.zkey c.wtns --k 14");
    let planned = |options: &str| -> serde_json::Value {
        let line = format!("groth16 plan c.zkey --ranks 2 --memory 16MiB {options} --json");
        let plan: serde_json::Value = serde_json::from_str(&succeeds(dir, &line)).expect("JSON");
        plan["result"].clone()
    };
    let seconds = |of: &serde_json::Value| of["seconds"].as_f64().expect("seconds");
    for has_devices in [false, true] {
        slow_link(dir, has_devices);
        let plan = planned("--link slow.json");
        let cuts = plan["cuts"].as_array().expect("all cuts");
        assert!(
            cuts.len() == 4 && cuts.windows(2).all(|pair| seconds(&pair[0]) <= seconds(&pair[1])),
            "{plan}"
        );
        assert_eq!(
            (&plan["cut"], seconds(&plan)),
            (&cuts[0]["cut"], seconds(&cuts[0])),
            "{plan}"
        );
        let said = plan["why"].as_str().expect("why");
        assert_eq!(
            said.contains("devices that ranks bench measured"),
            has_devices,
            "{said}"
        );
        if has_devices {
            assert_eq!(plan["cut"], "steps", "{plan}");
            assert!(
                said.contains("taken is steps, the quickest") && said.contains("go by the host"),
                "{said}"
            );
            // Another one is taken if it is asked for.
            let other = planned("--link slow.json --cut layout");
            assert_eq!(
                (&other["cut"], &other["cuts"][0]["cut"]),
                (&"layout".into(), &"layout".into())
            );
            assert!(seconds(&other) > seconds(&plan), "{other}");
        }
    }
    // No device of this machine is known.
    let plan = planned("--link 10g --gpu auto");
    let said = plan["why"].as_str().expect("why");
    assert!(said.contains("no rates of devices are known"), "{said}");

    let (Some(launcher), Some(device)) = (launcher(), FakeDevice::new()) else {
        return;
    };
    succeeds(dir, "groth16 vkey c.zkey vkey.json");
    for (options, cut) in [
        ("", "layout"),
        ("--link slow.json", "steps"),
        ("--link slow.json --cut rows", "rows"),
        (
            "--link slow.json --checkpoint kept --checkpoint-key key",
            "layout",
        ),
    ] {
        std::fs::write(dir.join("key"), [0x5a; 32]).expect("a key");
        let line = format!("groth16 prove c.zkey c.wtns p.json public.json --memory 16MiB {options} --json");
        let proved = on_ranks(launcher, 2, dir, &line);
        assert!(proved.status.success(), "{options}: {proved:?}");
        let report: serde_json::Value = serde_json::from_slice(&proved.stdout).expect("JSON");
        assert_eq!(report["result"]["cut"], cut, "{options}: {report}");
        verifies(dir);
        std::fs::remove_file(dir.join("p.json")).expect("the proof");
    }
    // Rates of devices are measured, and planned with, here and from the file.
    let with_devices = |mut command: Command| {
        for (name, value) in device.command_with(BINARY, 2).get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        let done = command.output().expect("a command");
        assert!(done.status.success(), "{done:?}");
        done.stdout
    };
    let bench = "ranks bench -k 10 --bytes 64KiB --memory 32MiB --gpu auto --json";
    let bench = with_devices(started(launcher, 2, dir, bench));
    let measured: serde_json::Value = serde_json::from_slice(&bench).expect("JSON");
    for rank in [0, 1] {
        let sums = &measured["result"]["ranks"][rank]["gpu"]["sums"];
        assert!(
            sums["device_each"].as_f64().is_some_and(|each| each > 0.0),
            "{measured}"
        );
    }
    std::fs::write(dir.join("bench.json"), bench).expect("what was measured");
    let plan = planned("--link bench.json");
    assert_eq!(
        plan["gpu"]["said"], "by the rates of devices that ranks bench measured",
        "{plan}"
    );
    let mut here = Command::new(BINARY);
    here.args("groth16 plan c.zkey --ranks 2 --memory 32MiB --gpu all --vram 16MiB".split_whitespace())
        .current_dir(dir)
        .env("SPILLPROOF_DIR", dir);
    let text = String::from_utf8(with_devices(here)).expect("text");
    assert!(
        text.contains("measured now, for each rank") && text.contains("; between 0 and 1: PCIe"),
        "{text}"
    );
}
