//! Programs of one's own: the drop-ins' examples, which run here, and `spillproof new`, which writes them as
//! packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::BINARY;

/// The systems, with the package that the drop-in stands for, its folder, and the example.
const SYSTEMS: [[&str; 4]; 2] = [
    ["axiom", "halo2-axiom", "halo2-patch/axiom", "axiom_circuit"],
    ["zcash", "halo2_proofs", "halo2-patch/zcash", "zcash_circuit"],
];

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::canonicalize(root).expect("the repository")
}

/// What the command says, which ends well.
pub fn said(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("it runs");
    let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(status.success(), "{command:?}: {stdout}{stderr}");
    stdout + &stderr
}

/// A program with no variables of ours.
fn program(path: impl AsRef<Path>) -> Command {
    let mut command = Command::new(path.as_ref());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SPILLPROOF_") {
            command.env_remove(name);
        }
    }
    command
}

/// An example, which cargo builds with the tests of the workspace, and in no other case.
pub fn example(name: &str) -> Option<Command> {
    let deps = std::env::current_exe().expect("a path");
    let path = deps.with_file_name("../examples").join(name);
    if !path.exists() {
        let is_whole = std::env::var_os("SPILLPROOF_TEST_BINARIES").is_some();
        assert!(!is_whole, "{} is not built", path.display());
        crate::skipped("examples are built by `cargo test --workspace`");
        return None;
    }
    Some(program(path))
}

#[test]
fn the_examples_prove_in_memory_and_within_budgets() {
    for [_, _, _, name] in SYSTEMS {
        let Some(mut in_memory) = example(name) else {
            return;
        };
        let line = "proved in memory and verified: 112 steps, a proof of ";
        let text = said(in_memory.arg("7"));
        assert!(text.starts_with(line), "{text}");
        let bytes = &text[line.len()..];

        let mut in_session = example(name).expect("it is there");
        let text = said(in_session.args(["7", "16MiB"]));
        assert_eq!(
            text,
            format!("proved within a budget and verified: 112 steps, a proof of {bytes}")
        );

        // The same by variables alone, with progress and a page.
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let mut reporting = example(name).expect("it is there");
        reporting.arg("7").current_dir(dir.path()).envs([
            ("SPILLPROOF_MEMORY", "16MiB"),
            ("SPILLPROOF_DIR", "."),
            ("SPILLPROOF_PROGRESS", "1"),
            ("SPILLPROOF_REPORT", "run.html"),
        ]);
        let text = said(&mut reporting);
        assert!(
            text.contains(&format!(
                "proved within a budget and verified: 112 steps, a proof of {bytes}"
            )),
            "{text}"
        );
        assert!(
            text.contains("spillproof: prove: ") && text.contains("\nphase "),
            "{text}"
        );
        let page = fs::read_to_string(dir.path().join("run.html")).expect("the page");
        assert!(page.starts_with("<!doctype html>"));
    }
}

#[test]
fn the_example_of_the_engine_is_accepted_by_arkworks() {
    let Some(mut example) = example("commit_and_open") else {
        return;
    };
    let text = said(example.args(["10", "16MiB"]));
    assert!(
        text.contains("2^10 coefficients") && text.contains("arkworks accepts"),
        "{text}"
    );
}

/// The source is the example's, and cargo takes the drop-in of the repository for the package, by the
/// versions of this workspace.
#[test]
fn new_programs_take_the_drop_in() {
    let dir = tempfile::tempdir().expect("a folder");
    for [system, package, folder, example] in SYSTEMS {
        let mut new = program(BINARY);
        let text = said(
            new.args(["new", system, "--system", system, "--json", "--path"])
                .arg(root())
                .current_dir(dir.path()),
        );
        let outcome: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let drop_in = root().join(folder);
        assert_eq!(outcome["result"]["drop_in"], drop_in.to_str().expect("text"));
        let made = dir.path().join(system);
        for file in outcome["result"]["files"].as_array().expect("files") {
            assert!(made.join(file.as_str().expect("a name")).is_file(), "{file}");
        }
        let source = |path: PathBuf| fs::read_to_string(path).expect("a source");
        let example = drop_in.join("examples").join(example).with_extension("rs");
        assert!(source(made.join("src/main.rs")) == source(example));

        fs::copy(root().join("Cargo.lock"), made.join("Cargo.lock")).expect("a lock file");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut tree = Command::new(cargo);
        tree.args(["tree", "--offline", "--invert", package, "--depth", "1"]);
        let text = said(tree.current_dir(&made));
        let first = text.lines().next().expect("a line");
        assert!(
            first.starts_with(package) && first.contains(&format!("({})", drop_in.display())),
            "{text}"
        );
        assert!(
            text.contains(&format!("{system} v0.1.0")) && !text.contains("warning"),
            "{text}"
        );
    }
}

/// No path of the machine that built the program is in it: one that was moved takes the clone that it or the
/// current folder is in.
#[test]
fn a_moved_program_takes_the_clone_around_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let moved = dir.path().join("spillproof");
    fs::copy(BINARY, &moved).expect("a copy");
    let refused = program(&moved)
        .args(["new", "lost"])
        .current_dir(dir.path())
        .output()
        .expect("it runs");
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{words}");
    assert!(
        words.contains("--path") && !dir.path().join("lost").exists(),
        "{words}"
    );
    // The current folder is in the clone.
    let made = dir.path().join("found");
    let words = said(
        program(&moved)
            .arg("new")
            .arg(&made)
            .current_dir(root().join("docs")),
    );
    let drop_in = root().join("halo2-patch/axiom");
    assert!(words.contains(drop_in.to_str().expect("text")), "{words}");
    let readme = fs::read_to_string(made.join("README.md")).expect("a file");
    assert!(readme.contains("docs/halo2.md"), "{readme}");
    // A clone around the program.
    let clone = dir.path().join("clone");
    let drop_in = clone.join("halo2-patch/axiom");
    fs::create_dir_all(&drop_in).expect("a folder");
    fs::write(drop_in.join("build.rs"), "").expect("a file");
    let inside = clone.join("spillproof");
    fs::rename(&moved, &inside).expect("moved");
    let words = said(program(&inside).args(["new", "near"]).current_dir(dir.path()));
    assert!(words.contains("clone/halo2-patch/axiom"), "{words}");
}
