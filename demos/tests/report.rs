//! What environment variables make of a program over a drop-in that knows nothing of them: progress, a table,
//! a page; and which values they refuse. The programs are children of this test.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use spillproof_circuits::{Kind, zcash};
use spillproof_cli::report::is_tmpfs;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::BINARY;
use super::gpu::PROOF;

/// Says what [`program`] does before it proves.
const SUBSCRIBER: &str = "SPILLPROOF_TEST_SUBSCRIBER";

/// Not a test of its own: the program of `gpu.rs`, with a tracing subscriber of its own where its parent
/// wants one.
#[test]
fn program() {
    let subscriber = std::env::var(SUBSCRIBER).unwrap_or_default();
    let registry = tracing_subscriber::registry();
    match subscriber.as_str() {
        "its own" => registry.init(),
        "with the layer" => registry.with(halo2_axiom::spillproof::layer()).init(),
        _ => {}
    }
    super::gpu::program();
}

/// Not a test of its own: a program over zcash's drop-in.
#[test]
fn zcash_program() {
    use zcash::dropin::{proof, prover};
    let Some(out) = std::env::var_os(PROOF) else {
        return;
    };
    let (kind, k) = (Kind::Lookups, 8);
    let params = proof::Params::new(k);
    let key = proof::verifying_key(&params, kind, k).unwrap();
    let key = prover::proving_key(&params, key, kind, k).unwrap();
    std::fs::write(out, prover::prove(&params, &key, kind, k, 2).unwrap()).unwrap();
}

/// Not a test of its own: a program in which a drop-in is, and that asks it for nothing.
#[test]
fn idle_program() {
    halo2_axiom::spillproof::IS_HERE
}

/// A folder, in which programs run.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs a program of this file with these variables and no others of ours.
    fn run(&self, program: &str, variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new(std::env::current_exe().unwrap());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SPILLPROOF_") {
                command.env_remove(name);
            }
        }
        command
            .args([&format!("report::{program}"), "--exact", "--nocapture"])
            .current_dir(self.path())
            .env(PROOF, self.path().join("proof"))
            .env("SPILLPROOF_REPRODUCIBLE", "1")
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    /// What it says on standard error. It has to end well.
    fn said(&self, program: &str, variables: &[(&str, &str)]) -> String {
        let output = self.run(program, variables);
        assert!(output.status.success(), "{variables:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// The page that it wrote, which stands alone.
    fn page(&self) -> String {
        let page = std::fs::read_to_string(self.path().join("run.html")).unwrap();
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
        for fetched in ["src=", "href=", "<script", "<link", "@import", "url("] {
            assert!(!page.contains(fetched), "{fetched}");
        }
        page
    }
}

const MEMORY: (&str, &str) = ("SPILLPROOF_MEMORY", "16MiB");
const DIR: (&str, &str) = ("SPILLPROOF_DIR", ".");
const PAGE: (&str, &str) = ("SPILLPROOF_REPORT", "run.html");

/// The table: its heading, phases and steps, in order.
fn assert_table(said: &str, steps: &[&str]) {
    let table = said.split_once("phase ").expect(said).1;
    assert!(table.lines().next().unwrap().contains(" peak "), "{said}");
    let mut rest = table;
    for row in ["verifying key", "proving key", "prove"]
        .iter()
        .chain(steps)
        .chain(&["total", "budget: 16.0 MiB"])
    {
        rest = rest
            .split_once(&format!("\n{row}"))
            .unwrap_or_else(|| panic!("{row}: {said}"))
            .1;
    }
    assert!(!said.contains('\u{1b}'), "no codes for a terminal: {said}");
}

#[test]
fn a_program_shows_its_steps_and_writes_a_page() {
    let folder = Folder::new();
    for progress in ["1", "auto"] {
        let said = folder.said("program", &[MEMORY, DIR, PAGE, ("SPILLPROOF_PROGRESS", progress)]);
        let begins = "spillproof: proofs stream within 16.0 MiB, scratch in .\n";
        assert!(said.starts_with(begins), "{said}");
        for step in [
            "verifying key: sigma",
            "proving key: sigma",
            "prove: lookups",
            "prove: opening",
        ] {
            assert!(
                said.contains(&format!("\nspillproof: {step} (")),
                "{step}: {said}"
            );
        }
        assert_table(&said, &["  synthesize", "  lookups", "  opening", "  verify"]);
        let page = folder.page();
        for word in [
            "verifying key",
            "proving key",
            "prove",
            "lookups",
            "16.0 MiB",
            "busy cores",
            "<td>rows</td><td>2^8</td>",
            " advice, ",
            "<td>verifying key</td>",
            "BLAKE2b-256 ",
            "<td>verdict</td><td>the proof verifies</td>",
        ] {
            assert!(page.contains(word), "{word}");
        }
        std::fs::remove_file(folder.path().join("run.html")).unwrap();
    }
    // A page alone: no line but those of the table.
    let said = folder.said("program", &[MEMORY, DIR, PAGE]);
    assert!(said.starts_with("\nphase "), "{said}");
    assert_table(&said, &["  lookups"]);
    folder.page();
}

#[test]
fn a_program_gives_events() {
    let folder = Folder::new();
    let said = folder.said("program", &[MEMORY, DIR, ("SPILLPROOF_PROGRESS", "json")]);
    assert_table(&said, &["  lookups"]);
    let events: Vec<Value> = said
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let is = |event: &Value, kind: &str, phase: &str, step: Option<&str>| {
        event["event"] == kind && event["phase"] == phase && event["step"].as_str() == step
    };
    for phase in ["verifying key", "proving key", "prove"] {
        let at = |kind| {
            events
                .iter()
                .position(|event| is(event, kind, phase, None))
                .expect(phase)
        };
        assert!(at("begin") < at("end"), "{said}");
        assert!(events[at("end")]["seconds"].as_f64().unwrap() > 0.0);
    }
    let lookups = events
        .iter()
        .find(|event| is(event, "end", "prove", Some("lookups")));
    let fraction = lookups.expect("a step")["fraction"].as_f64().unwrap();
    assert!(fraction > 0.0 && fraction < 1.0, "{fraction}");
    // The fraction is that of a phase.
    let first = events
        .iter()
        .find(|event| is(event, "begin", "prove", Some("instances")));
    assert!(first.expect("a step")["fraction"].as_f64().unwrap() < 0.2);
}

#[test]
fn zcash_programs_report_too() {
    let folder = Folder::new();
    let said = folder.said(
        "zcash_program",
        &[MEMORY, DIR, PAGE, ("SPILLPROOF_PROGRESS", "1")],
    );
    assert!(said.contains("\nspillproof: prove: opening ("), "{said}");
    assert_table(&said, &["  lookups", "  opening"]);
    let page = folder.page();
    for word in [
        "<td>rows</td><td>2^8</td>",
        " advice, ",
        "<td>verifying key</td>",
        "not verified",
    ] {
        assert!(page.contains(word), "{word}");
    }
}

#[test]
fn a_subscriber_of_the_program_needs_the_layer() {
    let folder = Folder::new();
    let progress = ("SPILLPROOF_PROGRESS", "1");
    let said = folder.said("program", &[MEMORY, DIR, progress, (SUBSCRIBER, "its own")]);
    assert!(
        said.contains("steps cannot be shown: add `halo2_axiom::spillproof::layer()`"),
        "{said}"
    );
    assert_table(&said, &[]);
    assert!(!said.contains("lookups"), "{said}");
    let said = folder.said(
        "program",
        &[MEMORY, DIR, progress, (SUBSCRIBER, "with the layer")],
    );
    assert!(!said.contains("cannot"), "{said}");
    assert_table(&said, &["  lookups"]);
}

#[test]
fn wrong_values_are_refused_by_name() {
    let folder = Folder::new();
    let progress = ("SPILLPROOF_PROGRESS", "yes");
    let nowhere = ("SPILLPROOF_REPORT", "missing/run.html");
    type Case<'c> = (&'c [(&'c str, &'c str)], &'c [&'c str]);
    let cases: [Case<'_>; 6] = [
        (
            &[MEMORY, DIR, progress],
            &["SPILLPROOF_PROGRESS: `yes`: say `1` or `auto`", "`json`", "`0`"],
        ),
        (
            &[MEMORY, DIR, nowhere],
            &["SPILLPROOF_REPORT: `missing/run.html`", "does not exist"],
        ),
        (
            &[MEMORY, DIR, ("SPILLPROOF_REPORT", ".")],
            &["SPILLPROOF_REPORT: `.`: is a folder"],
        ),
        (
            &[MEMORY, ("SPILLPROOF_DIR", "unmounted")],
            &["SPILLPROOF_DIR: `unmounted` is no folder", "mount its disk"],
        ),
        (
            &[("SPILLPROOF_MEMORY", "much"), DIR],
            &["SPILLPROOF_MEMORY: `much` is not a size"],
        ),
        (
            &[("SPILLPROOF_MEMORY", "64KiB"), DIR],
            &["raise the memory budget (SPILLPROOF_MEMORY)"],
        ),
    ];
    for (variables, words) in cases {
        let output = folder.run("program", variables);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{variables:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{variables:?}: {said}");
        }
        assert!(
            !said.contains("--memory") && !said.contains("--dir"),
            "no flags: {said}"
        );
        for made in ["proof", "unmounted", "missing"] {
            assert!(!folder.path().join(made).exists(), "{variables:?}: {made}");
        }
    }
}

#[test]
fn without_a_budget_the_program_proves_in_memory() {
    let folder = Folder::new();
    let proof = || std::fs::read(folder.path().join("proof")).unwrap();
    let line = "SPILLPROOF_DIR is set, and SPILLPROOF_MEMORY is not: proofs are made in memory";
    let said = folder.said("program", &[DIR]);
    assert_eq!(said.matches("spillproof:").count(), 1, "{said}");
    assert!(said.contains(line), "{said}");
    let expected = proof();
    let names = [
        "MEMORY",
        "DIR",
        "PROGRESS",
        "REPORT",
        "SCRATCH",
        "STRICT_SECRETS",
        "GPU",
        "VRAM",
        "PINNED",
        "OFFLOAD",
        "CHECKPOINT",
        "CHECKPOINT_KEY",
        "CHECKPOINT_KEY_FILE",
        "CPU",
        "SELF_VERIFICATION",
    ]
    .map(|name| format!("SPILLPROOF_{name}"));
    let empty: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
    assert_eq!(folder.said("program", &empty), "");
    assert!(proof() == expected);
    // All others are empty: a session as without them.
    let session: Vec<_> = [MEMORY].into_iter().chain(empty[1..].iter().copied()).collect();
    assert_eq!(folder.said("program", &session), "");
    assert!(proof() == expected);
    assert_eq!(
        folder.said("program", &[MEMORY, DIR, ("SPILLPROOF_PROGRESS", "0")]),
        ""
    );
}

/// As where the drop-in is one of two copies of halo2, and the other one proves.
#[test]
fn variables_without_effect_are_said_at_the_end() {
    let folder = Folder::new();
    let said = folder.said("idle_program", &[MEMORY, PAGE]);
    let begins = "spillproof: SPILLPROOF_MEMORY and SPILLPROOF_REPORT are set, without effect";
    assert!(
        said.starts_with(begins) && said.contains("`cargo tree -i halo2-axiom`"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(
        folder.said("idle_program", &[DIR, ("SPILLPROOF_PROGRESS", "0")]),
        ""
    );
    assert_eq!(folder.said("idle_program", &[("SPILLPROOF_MEMORY", "")]), "");
}

#[test]
fn a_tmpfs_is_said() {
    let tmpfs = Path::new("/dev/shm");
    let Ok(dir) = tempfile::tempdir_in(tmpfs) else {
        return super::skipped("no folder in /dev/shm");
    };
    if !is_tmpfs(tmpfs) {
        return super::skipped("/dev/shm is no tmpfs");
    }
    let dir = dir.path().to_str().unwrap();
    let said = Folder::new().said("program", &[MEMORY, ("SPILLPROOF_DIR", dir)]);
    let expected = format!("spillproof: warning: {dir} is a tmpfs");
    assert!(said.starts_with(&expected) && said.lines().count() == 1, "{said}");
}

/// It has flags for its reports.
#[test]
fn the_binary_reports_by_itself() {
    let folder = Folder::new();
    let output = Command::new(BINARY)
        .args("prove --circuit chain --k 6 --memory 16MiB --out proof".split(' '))
        .current_dir(folder.path())
        .envs([PAGE, ("SPILLPROOF_PROGRESS", "json")])
        // Empty ones are not set, also where flags take them.
        .envs(["MEMORY", "DIR", "SCRATCH", "STRICT_SECRETS"].map(|name| (format!("SPILLPROOF_{name}"), "")))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(stdout.matches("\nphase ").count(), 1, "{stdout}");
    assert!(
        !stderr.contains("phase") && !stderr.contains("spillproof:"),
        "{stderr}"
    );
    assert!(!folder.path().join("run.html").exists());
}
