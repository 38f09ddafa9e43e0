//! One Groth16 proof over several processes under `mpirun`, and plans of it.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use spillproof_fake_driver::FakeDevice;

use crate::BINARY;
use crate::runs::{refused, run, succeeds};

/// A job that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// `mpirun`, where it and a program with MPI are; else a line that says what is missing.
pub fn launcher() -> Option<&'static str> {
    if !cfg!(feature = "mpi") {
        spillproof_testing::skipped("the program was built without MPI (--features mpi)");
        return None;
    }
    let found = ["mpiexec", "mpirun"].into_iter().find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    });
    if found.is_none() {
        spillproof_testing::skipped("no mpiexec and no mpirun is installed");
    }
    found
}

/// The command line on so many ranks.
pub fn on_ranks(launcher: &str, ranks: usize, dir: &Path, line: &str) -> Output {
    started(launcher, ranks, dir, line)
        .output()
        .expect("the launcher runs")
}

pub fn started(launcher: &str, ranks: usize, dir: &Path, line: &str) -> Command {
    let mut command = Command::new(launcher);
    let is_open_mpi = Command::new(launcher)
        .arg("--version")
        .output()
        .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("Open MPI"));
    if is_open_mpi {
        command.arg("--oversubscribe");
    }
    command
        .args(["-n", &ranks.to_string(), BINARY])
        .args(line.split_whitespace())
        .current_dir(dir)
        .env_remove("SPILLPROOF_MEMORY")
        .env("SPILLPROOF_DIR", dir)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

/// The proof that rank 0 has written.
pub fn verifies(dir: &Path) {
    succeeds(
        dir,
        "groth16 verify vkey.json public.json p.json --allow-insecure",
    );
}

#[test]
fn ranks_under_mpirun_make_a_proof_that_verifies() {
    let Some(launcher) = launcher() else {
        return;
    };
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    for curve in ["bn128", "bls12381"] {
        succeeds(
            dir,
            &format!("groth16 example c.zkey c.wtns --k 11 --curve {curve}"),
        );
        succeeds(dir, "groth16 vkey c.zkey vkey.json");
        for options in ["", "--share 3,1,0", "--cut rows", "--cut columns", "--cut steps"] {
            let line = format!("groth16 prove c.zkey c.wtns p.json public.json --memory 16MiB {options}");
            let proved = on_ranks(launcher, 3, dir, &line);
            let told = String::from_utf8_lossy(&proved.stdout).into_owned();
            assert!(proved.status.success(), "{options}: {proved:?}");
            assert!(
                told.contains("second exchange") && told.contains("rank "),
                "{told}"
            );
            verifies(dir);
            std::fs::remove_file(dir.join("p.json")).expect("the proof");
        }
    }
    let json = on_ranks(
        launcher,
        2,
        dir,
        "groth16 prove c.zkey c.wtns p.json public.json --memory 16MiB --json",
    );
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON of one rank");
    assert_eq!(
        report["result"]["ranks"].as_array().map(Vec::len),
        Some(2),
        "{report}"
    );
}

/// A device for each rank, one for several, and more than ranks.
#[test]
fn each_rank_has_a_device() {
    let (Some(launcher), Some(device)) = (launcher(), FakeDevice::new()) else {
        return;
    };
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    succeeds(dir, "groth16 example c.zkey c.wtns --k 11");
    succeeds(dir, "groth16 vkey c.zkey vkey.json");
    let line = |options: &str| {
        format!("groth16 prove c.zkey c.wtns p.json public.json --memory 16MiB --offload always {options}")
    };
    let under = |ranks: usize, devices: u64, options: &str| {
        let mut command = started(launcher, ranks, dir, &line(options));
        // The launcher itself needs no driver.
        for (name, value) in device.command_with(BINARY, devices).get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command
    };
    for (ranks, devices, options, expected) in [
        (
            2,
            2,
            "--gpu auto --json",
            &[&["0: fake device 0"][..], &["1: fake device 1"]][..],
        ),
        (
            2,
            1,
            "--gpu auto --vram 4MiB --json",
            &[&["0: fake device 0"], &["0: fake device 0"]],
        ),
        (
            2,
            4,
            "--gpu all --json",
            &[&["0: fake", "2: fake"], &["1: fake", "3: fake"]],
        ),
        (
            2,
            4,
            "--gpu 3,1 --checkpoint kept --checkpoint-key key --json",
            &[&["3: fake"], &["1: fake"]],
        ),
    ] {
        std::fs::write(dir.join("key"), [0x5a; 32]).expect("a key");
        let proved = under(ranks, devices, options).output().expect("a job");
        assert!(proved.status.success(), "{options}: {proved:?}");
        verifies(dir);
        std::fs::remove_file(dir.join("p.json")).expect("the proof");
        let report: serde_json::Value = serde_json::from_slice(&proved.stdout).expect("JSON");
        for (rank, names) in expected.iter().enumerate() {
            let gpu = &report["result"]["ranks"][rank]["gpu"];
            assert_eq!(
                (&gpu["sums"], &gpu["transforms"], &gpu["panels"]),
                (&5.into(), &0.into(), &9.into()),
                "{gpu}"
            );
            let devices = gpu["devices"].as_array().expect("a list");
            let found = devices
                .iter()
                .map(|device| device["device"].as_str().unwrap_or_default());
            assert!(
                devices.len() == names.len()
                    && found.zip(*names).all(|(found, name)| found.starts_with(name)),
                "{options}: {gpu}"
            );
        }
    }
    let told = under(2, 2, "--gpu auto").output().expect("a job");
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(
        told.contains("rank 1: gpu: 5 sums, 9 panels on 1: fake device 1")
            && told.contains("; between 0 and 1: PCIe"),
        "{told}"
    );
    std::fs::remove_file(dir.join("p.json")).expect("the proof");
    let refused = under(3, 2, "--gpu auto").output().expect("a job");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("ranks 0 and 2 share a GPU"),
        "{said}"
    );
    // The first rank's device is lost in its sums.
    let mut lost = under(2, 2, "--gpu auto");
    lost.env("FAKE_CUDA_FAIL_ON", "0:60:719:lost");
    let lost = lost.output().expect("a job");
    assert!(lost.status.success(), "{lost:?}");
    verifies(dir);
}

#[test]
fn a_rank_that_fails_is_a_failure_of_all() {
    let Some(launcher) = launcher() else {
        return;
    };
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    succeeds(dir, "groth16 example c.zkey c.wtns --k 8");
    // Wrong for every rank; too small for each; the proof's folder is missing, which rank 0 alone sees.
    for (line, word) in [
        (
            "groth16 prove c.zkey none.wtns p.json public.json --memory 16MiB",
            "none.wtns",
        ),
        (
            "groth16 prove c.zkey c.wtns p.json public.json --memory 64KiB",
            "--memory",
        ),
        (
            "groth16 prove c.zkey c.wtns nowhere/p.json public.json --memory 16MiB",
            "nowhere",
        ),
        ("groth16 prove c.zkey c.wtns p.json public.json", "--memory"),
        (
            "groth16 prove c.zkey c.wtns p.json public.json --memory 16MiB --share 1,1",
            "--share",
        ),
    ] {
        let failed = on_ranks(launcher, 3, dir, line);
        let said = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert!(!failed.status.success(), "{line}: {failed:?}");
        assert!(said.contains(word), "{line}: {said}");
        assert!(!dir.join("p.json").exists(), "{line}");
    }
    let left: Vec<_> = std::fs::read_dir(dir)
        .expect("the folder")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

/// The process of a rank of a job in `dir`, once it is there.
fn process_of(rank: usize, dir: &Path) -> Option<u32> {
    let dir = dir.canonicalize().ok()?;
    let is_rank = |pid: u32| {
        let read = |name: &str| std::fs::read_link(format!("/proc/{pid}/{name}")).ok();
        if read("cwd")? != dir || read("exe")? != Path::new(BINARY).canonicalize().ok()? {
            return None;
        }
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let of_rank = ["PMI_RANK", "OMPI_COMM_WORLD_RANK"].map(|name| format!("{name}={rank}"));
        let mut variables = environment.split(|byte| *byte == 0);
        variables
            .any(|variable| of_rank.iter().any(|of_rank| of_rank.as_bytes() == variable))
            .then_some(pid)
    };
    let entries = std::fs::read_dir("/proc").ok()?;
    let mut pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.find_map(is_rank)
}

/// Bytes that all ranks have written into the logs of their checkpoints.
fn log_bytes(dir: &Path) -> u64 {
    let folders = std::fs::read_dir(dir.join("kept"))
        .into_iter()
        .flatten()
        .flatten();
    let logs = folders.filter_map(|folder| std::fs::metadata(folder.path().join("log")).ok());
    logs.map(|log| log.len()).sum()
}

/// A rank is killed each time that the ranks have kept more, until a job comes to its end.
#[test]
fn a_job_whose_ranks_are_killed_goes_on_to_the_same_proof() {
    const LINE: &str = "groth16 prove c.zkey c.wtns p.json public.json --memory 16MiB --dir scratch --checkpoint kept \
                        --checkpoint-key key --rank-timeout 60";
    let Some(launcher) = launcher() else {
        return;
    };
    let (mut kills, mut compared) = (0, 0);
    for victim in 0..3 {
        let dir = tempfile::tempdir().expect("a folder");
        let dir = dir.path();
        succeeds(dir, "groth16 example c.zkey c.wtns --k 13");
        std::fs::create_dir(dir.join("scratch")).expect("a folder");
        std::fs::write(dir.join("key"), [0x5a; 32]).expect("a key");
        let copy = |from: &str, to: &str| {
            let copied = Command::new("cp")
                .args(["-r", from, to])
                .current_dir(dir)
                .status();
            assert!(copied.expect("cp runs").success());
        };
        loop {
            let before = log_bytes(dir);
            let mut job = started(launcher, 3, dir, LINE);
            let mut job = job
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("a job");
            let since = Instant::now();
            let status = loop {
                if let Some(status) = job.try_wait().expect("a child") {
                    break status;
                }
                assert!(since.elapsed() < PATIENCE, "rank {victim}: the job hangs");
                if log_bytes(dir) > before
                    && let Some(pid) = process_of(victim, dir)
                {
                    let kill = Command::new("kill").args(["-9", &pid.to_string()]).status();
                    kills += u32::from(kill.expect("kill runs").success());
                    break job.wait().expect("an end");
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            let scratch = std::fs::read_dir(dir.join("scratch")).expect("a folder");
            assert_eq!(scratch.count(), 0, "rank {victim}: scratch files are left");
            if status.success() {
                let left = std::fs::read_dir(dir.join("kept")).expect("the folder").count();
                assert_eq!(left, 1, "rank {victim}: a checkpoint is left");
            }
            // It may have been killed between the end of the proof and that of the process, or with one file named.
            if ["p.json", "public.json"]
                .iter()
                .all(|file| dir.join(file).exists())
            {
                break;
            }
            assert!(!status.success(), "rank {victim}: no proof");
            std::fs::remove_dir_all(dir.join("copy")).ok();
            copy("kept", "copy");
        }
        succeeds(dir, "groth16 vkey c.zkey vkey.json");
        verifies(dir);
        // From the last kill on, once more. Where rank 0 had kept a sum, it had kept the random values before.
        let proof = std::fs::read(dir.join("p.json")).expect("a proof");
        if dir.join("copy").exists() {
            std::fs::remove_dir_all(dir.join("kept")).expect("the folder");
            copy("copy", "kept");
            let again = on_ranks(launcher, 3, dir, LINE);
            assert!(again.status.success(), "{again:?}");
            let told = String::from_utf8_lossy(&again.stdout).into_owned();
            if told.contains("of its checkpoint") {
                let again = std::fs::read(dir.join("p.json")).expect("a proof");
                assert!(again == proof, "rank {victim}: another proof");
                compared += 1;
            }
        }
    }
    println!("{kills} ranks were killed, {compared} proofs were made twice");
    assert!(kills > 0 && compared > 0, "all jobs ended before");
}

/// Names in a folder.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("the folder").flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_key_is_dealt_to_ranks_that_prove_with_it() {
    let Some(launcher) = launcher() else {
        return;
    };
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    for curve in ["bn128", "bls12381"] {
        succeeds(
            dir,
            &format!("groth16 example c.zkey c.wtns --k 11 --curve {curve}"),
        );
        succeeds(dir, "groth16 vkey c.zkey vkey.json");
        for share in ["", "--share 2,1,1,1"] {
            let line = format!("groth16 import c.zkey --out c.key --memory 16MiB {share}");
            let imported = on_ranks(launcher, 4, dir, &line);
            let told = String::from_utf8_lossy(&imported.stdout).into_owned();
            assert!(
                imported.status.success() && told.contains("4 ranks"),
                "{imported:?}"
            );
            let shares = names(dir).into_iter().filter(|name| name.ends_with("-of-4"));
            assert_eq!(shares.count(), 4, "{:?}", names(dir));
            let line = "groth16 prove c.key c.wtns p.json public.json --memory 16MiB";
            let proved = on_ranks(launcher, 4, dir, line);
            assert!(proved.status.success(), "{share}: {proved:?}");
            verifies(dir);
            std::fs::remove_file(dir.join("p.json")).expect("the proof");
        }
        // The key alone says what is public of it.
        succeeds(dir, "groth16 vkey c.key dealt.json");
        let [whole, dealt] =
            ["vkey.json", "dealt.json"].map(|name| std::fs::read(dir.join(name)).expect("a file"));
        assert!(whole == dealt);
        let told = succeeds(dir, "groth16 inspect c.key");
        assert!(told.contains("2^11 rows"), "{told}");
        let plan = succeeds(dir, "groth16 plan c.key --ranks 4 --memory 16MiB");
        assert!(plan.contains("second exchange"), "{plan}");
        for line in [
            "groth16 plan c.key --memory 16MiB",
            "groth16 prove c.key c.wtns p.json public.json --memory 16MiB",
        ] {
            let alone = refused(dir, line, 1);
            assert!(
                alone.contains("c.key") && alone.contains("mpirun -n 4"),
                "{line}: {alone}"
            );
        }
    }
    let before = names(dir);
    let share = before
        .iter()
        .find(|name| name.ends_with(".1-of-4"))
        .expect("a share")
        .clone();
    for (ranks, line, word) in [
        (
            2,
            "groth16 prove c.key c.wtns p.json public.json --memory 16MiB",
            "mpirun -n 4",
        ),
        (
            4,
            "groth16 prove c.key c.wtns p.json public.json --memory 16MiB --share 1,1,1,5",
            "shares",
        ),
        (
            4,
            "groth16 prove c.key c.wtns p.json public.json --memory 16MiB --cut rows",
            "cut",
        ),
        (
            4,
            "groth16 import c.zkey --out c.key --memory 16MiB --cut rows",
            "--cut",
        ),
        (4, "groth16 import c.wtns --out c.key --memory 16MiB", "c.wtns"),
        (
            4,
            "groth16 import c.zkey --out nowhere/c.key --memory 16MiB",
            "nowhere",
        ),
        (4, "groth16 import c.zkey --out c.key --memory 32KiB", "--memory"),
    ] {
        let failed = on_ranks(launcher, ranks, dir, line);
        let said = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert!(!failed.status.success() && said.contains(word), "{line}: {said}");
        assert_eq!(names(dir), before, "{line}");
    }
    std::fs::remove_file(dir.join(&share)).expect("a share");
    let line = "groth16 prove c.key c.wtns p.json public.json --memory 16MiB --rank-timeout 20";
    let missing = on_ranks(launcher, 4, dir, line);
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(!missing.status.success() && said.contains(&share), "{said}");
}

#[test]
fn a_program_on_its_own_says_what_ranks_need() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    succeeds(dir, "groth16 example c.zkey c.wtns --k 9");
    let alone = refused(
        dir,
        "groth16 prove c.zkey c.wtns p.json public.json --share 1,1,1",
        2,
    );
    assert!(alone.contains("mpirun -n 3"), "{alone}");
    // As one of several, without MPI.
    if !cfg!(feature = "mpi") {
        let output = Command::new(BINARY)
            .args([
                "groth16",
                "prove",
                "c.zkey",
                "c.wtns",
                "p.json",
                "public.json",
                "--memory",
                "16MiB",
            ])
            .current_dir(dir)
            .envs([("PMI_RANK", "1"), ("PMI_SIZE", "4")])
            .output()
            .expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--features mpi"), "{said}");
    }
}

/// A slow link of a file: what is measured over it is about that link, and a plan takes what was measured.
#[test]
fn the_link_between_ranks_is_measured_at_its_pace() {
    let Some(launcher) = launcher() else {
        return;
    };
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let (latency, port) = (1e-3, 4e6);
    let slow = format!(r#"{{"link": {{"latency_seconds": {latency}, "port_bytes_per_second": {port}}}}}"#);
    std::fs::write(dir.join("slow.json"), slow).expect("the link");
    let line = "ranks bench -k 10 --bytes 256KiB --memory 16MiB --pace slow.json";
    let told = on_ranks(launcher, 2, dir, line);
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(
        told.contains("latency of a message") && told.contains("butterflies"),
        "{told}"
    );
    let printed = on_ranks(launcher, 2, dir, &format!("{line} --json"));
    let measured: serde_json::Value = serde_json::from_slice(&printed.stdout).expect("JSON of one rank");
    let figure = |name: &str| measured["result"]["link"][name].as_f64().expect("a number");
    let measured_port = figure("port_bytes_per_second");
    assert!(
        measured_port < 1.05 * port && measured_port > 0.2 * port,
        "{measured}"
    );
    assert!(figure("latency_seconds") >= latency, "{measured}");
    assert_eq!(
        measured["result"]["ranks"].as_array().map(Vec::len),
        Some(2),
        "{measured}"
    );

    std::fs::write(dir.join("bench.json"), &printed.stdout).expect("what was measured");
    succeeds(dir, "groth16 example c.zkey c.wtns --k 11");
    let plan = succeeds(
        dir,
        "groth16 plan c.zkey --ranks 2 --memory 16MiB --link bench.json --svg reach.svg --json",
    );
    let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
    assert_eq!(
        plan["result"]["reach"].as_array().map(Vec::len),
        Some(5),
        "{plan}"
    );
    assert_eq!(plan["result"]["reach"][4]["link"], "bench.json");
    let picture = std::fs::read_to_string(dir.join("reach.svg")).expect("the picture");
    assert_eq!(picture.matches("<polyline").count(), 5, "{picture}");
    assert_eq!(
        plan["result"]["rates"][1]["additions"], measured["result"]["ranks"][1]["additions"],
        "{plan}"
    );

    // 2 * 3 * 32 * 2^11 / 4 bytes of each rank, in messages.
    let line = "groth16 prove c.zkey c.wtns p.json public.json --memory 16MiB --pace slow.json --json";
    let proved = on_ranks(launcher, 2, dir, line);
    let report: serde_json::Value = serde_json::from_slice(&proved.stdout).expect("JSON of one rank");
    let seconds = |rank: usize| {
        let phases = report["result"]["ranks"][rank]["phases"]
            .as_array()
            .expect("phases");
        let exchanges = phases.iter().filter(|phase| {
            phase["phase"]
                .as_str()
                .is_some_and(|name| name.ends_with("exchange"))
        });
        exchanges
            .filter_map(|phase| phase["seconds"].as_f64())
            .sum::<f64>()
    };
    for rank in [0, 1] {
        assert!(seconds(rank) > f64::from((6 * 32) << 11) / 4.0 / port, "{report}");
    }

    let none = on_ranks(
        launcher,
        2,
        dir,
        "groth16 prove c.zkey c.wtns p.json public.json --memory 16MiB --pace bench.zip",
    );
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(!none.status.success() && said.contains("bench.zip"), "{said}");
}

#[test]
fn links_are_for_several_ranks() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let alone = refused(dir, "ranks bench", 2);
    assert!(alone.contains("mpirun -n 2 spillproof ranks bench"), "{alone}");
    let alone = refused(
        dir,
        "groth16 prove c.zkey c.wtns p.json public.json --pace 10g",
        2,
    );
    assert!(alone.contains("--pace 10g"), "{alone}");
    let none = refused(dir, "groth16 plan c.zkey --ranks 4 --link 25g", 2);
    assert!(none.contains("no link is called \"25g\""), "{none}");
    succeeds(dir, "groth16 example c.zkey c.wtns --k 9");
    std::fs::write(dir.join("link.json"), "{}").expect("a file");
    let plan = "groth16 plan c.zkey --ranks 4 --memory 16MiB --link";
    let wrong = refused(dir, &format!("{plan} link.json"), 1);
    assert!(wrong.contains("ranks bench --json"), "{wrong}");
    let missing = refused(dir, &format!("{plan} nowhere.json"), 1);
    assert!(missing.contains("nowhere.json"), "{missing}");
}

#[test]
fn a_plan_over_ranks_says_what_is_sent() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    succeeds(dir, "groth16 example c.zkey c.wtns --k 14");
    let plan = succeeds(
        dir,
        "groth16 plan c.zkey --ranks 4 --memory 16MiB --cut layout --json",
    );
    let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
    let exchanges = &plan["result"]["exchanges"];
    let mut sent = 0;
    for exchange in 0..2 {
        for other in [0, 1, 3] {
            sent += exchanges[exchange][2][other].as_u64().expect("bytes");
        }
    }
    // docs/ranks.md.
    assert_eq!(sent, 6 * 32 * (1 << 14) / 4 * 3 / 4);
    assert_eq!(plan["result"]["reach"].as_array().map(Vec::len), Some(4));
    let cuts = plan["result"]["cuts"].as_array().expect("all cuts");
    assert!(
        cuts.len() == 4 && cuts[0]["seconds"] == plan["result"]["seconds"],
        "{cuts:?}"
    );
    // In a debug build, a step without a phase would panic.
    for cut in ["rows", "columns", "steps"] {
        let line = format!("groth16 plan c.zkey --ranks 4 --cut {cut} --memory 16MiB");
        let text = succeeds(dir, &line);
        assert!(
            text.contains("transforms of rank 0") && text.contains("is the quickest"),
            "{text}"
        );
    }
    let text = succeeds(dir, "groth16 plan c.zkey --ranks 4 --memory 16MiB --link 1g");
    assert!(
        text.contains("first exchange") && text.contains("more ranks pay up to"),
        "{text}"
    );
    let none = run(dir, "groth16 plan c.zkey --ranks 4 --share 1,1 --memory 16MiB");
    assert_eq!(none.status.code(), Some(2), "{none:?}");
    let none = run(
        dir,
        "groth16 plan c.zkey --ranks 4 --gpu auto --offload always --memory 16MiB",
    );
    assert_eq!(none.status.code(), Some(2), "{none:?}");
}
