//! One Groth16 proof over several processes under `mpirun`, and plans of it.

use std::path::Path;
use std::process::{Command, Output};

use crate::BINARY;
use crate::runs::{refused, run, succeeds};

/// `mpirun`, where it and a program with MPI are; else a line that says what is missing.
fn launcher() -> Option<&'static str> {
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
fn on_ranks(launcher: &str, ranks: usize, dir: &Path, line: &str) -> Output {
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
    command.output().expect("the launcher runs")
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
        for options in ["", "--share 3,1,0", "--cut rows", "--cut columns"] {
            let line = format!("groth16 prove c.zkey c.wtns p.json public.json --memory 16MiB {options}");
            let proved = on_ranks(launcher, 3, dir, &line);
            let told = String::from_utf8_lossy(&proved.stdout).into_owned();
            assert!(proved.status.success(), "{options}: {proved:?}");
            assert!(
                told.contains("second exchange") && told.contains("rank "),
                "{told}"
            );
            succeeds(
                dir,
                "groth16 verify vkey.json public.json p.json --allow-insecure",
            );
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

#[test]
fn a_plan_over_ranks_says_what_is_sent() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    succeeds(dir, "groth16 example c.zkey c.wtns --k 14");
    let plan = succeeds(dir, "groth16 plan c.zkey --ranks 4 --memory 16MiB --json");
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
    // In a debug build, a step without a phase would panic.
    for cut in ["rows", "columns"] {
        let line = format!("groth16 plan c.zkey --ranks 4 --cut {cut} --memory 16MiB");
        let text = succeeds(dir, &line);
        assert!(text.contains("transforms of rank 0"), "{text}");
    }
    let text = succeeds(dir, "groth16 plan c.zkey --ranks 4 --memory 16MiB --link 1g");
    assert!(
        text.contains("first exchange") && text.contains("more ranks pay up to"),
        "{text}"
    );
    let none = run(dir, "groth16 plan c.zkey --ranks 4 --share 1,1 --memory 16MiB");
    assert_eq!(none.status.code(), Some(2), "{none:?}");
}
