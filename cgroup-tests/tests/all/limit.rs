//! `--limit` holds: each run is in a control group whose hard limit is exactly that of its command line, page
//! cache counted, and none is killed.
//!
//! A run whose limit leaves less than the smallest budget says so; the table says which.
//!
//! The short list is for each change. The acceptance list is ignored, and runs with
//! `cargo test --release -p spillproof-cgroup-tests --test all limit:: -- --ignored --nocapture`.
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{MIB, alone, binary, spillproof};
use spillproof_cgroup_tests::Outcome;

/// A folder with inputs of all runs, which are made without a limit.
struct Inputs(tempfile::TempDir);

impl Inputs {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"));
        Self(folder.expect("a folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// The file `name`, which `arguments` (with this file in the place of `@`) make if it is not there.
    fn file(&self, name: &str, arguments: &str) -> PathBuf {
        let path = self.path().join(name);
        if !path.exists() {
            let _alone = alone();
            let arguments = self.expand(arguments).replace('@', &path.to_string_lossy());
            let output = Command::new(binary("spillproof"))
                .args(arguments.split_whitespace())
                .env("SPILLPROOF_DIR", env!("CARGO_TARGET_TMPDIR"))
                .output()
                .expect("the binary runs");
            assert!(output.status.success(), "{arguments}: {output:?}");
        }
        path
    }

    /// Names of files, which begin with `%`, as paths.
    fn expand(&self, arguments: &str) -> String {
        arguments.replace('%', &format!("{}/", self.path().display()))
    }

    fn make(&self, k: u32) {
        self.file(&format!("{k}.srs"), &format!("srs gen --k {k} --out @"));
        self.file(&format!("{k}.params"), &format!("srs export %{k}.srs --out @"));
        self.file(
            &format!("z{k}.srs"),
            &format!("srs gen --system zcash --k {k} --out @"),
        );
        self.file(
            &format!("{k}.zkey"),
            &format!("groth16 example @ %{k}.wtns --k {k}"),
        );
        let polynomial = self.path().join(format!("{k}.poly"));
        if !polynomial.exists() {
            let scalars: Vec<u8> = (0..32u32 << k)
                .map(|index| {
                    if index % 32 == 31 {
                        0
                    } else {
                        (index * 7 % 251) as u8
                    }
                })
                .collect();
            std::fs::write(polynomial, scalars).expect("a file");
        }
    }

    /// Runs in a group with the limit of the command line. `None` if no group can be had.
    fn run(&self, limit_mib: u64, arguments: &str) -> Option<Outcome> {
        let arguments = self.expand(arguments);
        spillproof(limit_mib * MIB, &format!("{arguments} --limit {limit_mib}MiB"))
    }
}

/// Runs all; gives how many ended well. A limit may be refused by a run from `refusals_from` on in the list.
fn hold(inputs: &Inputs, runs: &[(u64, String)]) -> Option<usize> {
    let mut done = 0;
    for (limit_mib, arguments) in runs {
        let outcome = inputs.run(*limit_mib, arguments)?;
        assert!(
            !outcome.is_oom_killed() && !outcome.timed_out,
            "killed within {limit_mib} MiB: {arguments}: {outcome:?}"
        );
        match outcome.status.code() {
            Some(0) => done += 1,
            Some(1) if outcome.stderr.contains("flag: --limit") => {
                println!("  refused: {}", outcome.stderr.trim())
            }
            _ => panic!("{limit_mib} MiB: {arguments}: {outcome:?}"),
        }
    }
    Some(done)
}

/// What the program takes beside a budget, in MiB: more in a debug build, whose code is larger.
fn beside_mib() -> u64 {
    let _alone = alone();
    let refused = Command::new(binary("spillproof"))
        .args(["msm", "--log-n", "4", "--limit", "1KiB"])
        .output()
        .expect("the binary runs");
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    let bytes = words
        .windows(2)
        .find(|pair| pair[1] == "bytes" && pair[0] != "1024");
    let bytes: u64 = bytes
        .expect("bytes")
        .first()
        .expect("a number")
        .parse()
        .expect(&text);
    bytes.div_ceil(MIB)
}

#[test]
fn runs_hold_their_limits() {
    let inputs = Inputs::new();
    inputs.make(12);
    let least = beside_mib();
    let runs = [
        (
            least + 14,
            "prove --k 12 --circuit lookups --srs %12.srs --out %p",
        ),
        (least + 20, "prove --k 12 --system zcash --srs %z12.srs --out %z"),
        (least + 14, "groth16 prove %12.zkey %12.wtns %proof %public"),
        (least + 14, "msm --log-n 17"),
        (least + 14, "keygen --k 12 --srs %12.params --out %key --vk %vk"),
        (
            least + 14,
            "verify --k 12 --circuit lookups --srs %12.srs --vk %lookups.vk %p",
        ),
        (least + 14, "srs import %12.params --out %again"),
    ];
    inputs.file(
        "lookups.key",
        "keygen --k 12 --circuit lookups --srs %12.srs --out @ --vk %lookups.vk",
    );
    let runs = runs.map(|(limit_mib, arguments)| (limit_mib, arguments.to_owned()));
    if let Some(done) = hold(&inputs, &runs) {
        assert_eq!(done, runs.len());
    }
}

#[test]
#[ignore = "minutes: cargo test --release -p spillproof-cgroup-tests --test all limit:: -- --ignored --nocapture"]
fn sixty_runs_hold_their_limits() {
    let inputs = Inputs::new();
    let mut runs = Vec::new();
    let least = beside_mib();
    for k in [10, 12, 14, 16] {
        inputs.make(k);
        for more_mib in [8, 24, 96] {
            let limit_mib = least + more_mib + u64::from(k);
            let mut add = |arguments: String| runs.push((limit_mib, arguments));
            for circuit in ["chain", "lookups"] {
                add(format!(
                    "prove --k {k} --circuit {circuit} --srs %{k}.srs --out %p"
                ));
                add(format!(
                    "prove --k {k} --system zcash --circuit {circuit} --srs %z{k}.srs --out %p"
                ));
            }
            if k <= 12 || more_mib == 96 {
                add(format!("prove --k {k} --circuit wide --srs %{k}.params --out %p"));
            }
            add(format!("groth16 prove %{k}.zkey %{k}.wtns %proof %public"));
            add(format!(
                "commit --srs %{k}.srs --polynomial %{k}.poly --open-at 5"
            ));
            if more_mib != 24 {
                add(format!(
                    "keygen --k {k} --circuit lookups --srs %{k}.srs --out %key --vk %vk"
                ));
                add(format!(
                    "verify --k {k} --circuit lookups --srs %{k}.srs --vk %lookups{k}.vk %lookups{k}.proof"
                ));
                add(format!("msm --log-n {}", k + 4));
                add(format!("srs import %{k}.params --out %again"));
                add("srs verify %again".to_owned());
                add(format!("srs gen --system zcash --k {k} --out %zcash"));
            }
        }
        inputs.file(
            &format!("lookups{k}.key"),
            &format!("keygen --k {k} --circuit lookups --srs %{k}.srs --out @ --vk %lookups{k}.vk"),
        );
        inputs.file(
            &format!("lookups{k}.proof"),
            &format!("prove --k {k} --circuit lookups --srs %{k}.srs --out @"),
        );
    }
    println!("{} runs", runs.len());
    if let Some(done) = hold(&inputs, &runs) {
        println!("{done} of {} ended well, none was killed", runs.len());
        assert!(done >= 60);
    }
}
