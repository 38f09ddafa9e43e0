//! The tests of the Node.js package (`test/*.test.js`), over the library that cargo has built beside this test, with
//! snarkjs as the oracle where npm can fetch it.
#![allow(clippy::expect_used)]

use std::env;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use spillproof_circom::example::{Circuit, Values};
use spillproof_format::Curve;
use spillproof_testing::skipped;

/// The first release of Node with all that the package needs, and with its test runner.
const NODE_MIN: u32 = 18;
/// Names a `node` of another processor, and the library for it, which are tested instead.
const OTHER_NODE: &str = "SPILLPROOF_TEST_NODE";
const OTHER_LIBRARY: &str = "SPILLPROOF_TEST_NODE_LIBRARY";
/// Names of tests' folders for what npm fetches.
const ORACLE: &str = "node-oracle";

fn node() -> Command {
    Command::new(env::var_os(OTHER_NODE).unwrap_or_else(|| "node".into()))
}

/// Node's major release.
fn node_release() -> Option<u32> {
    let output = node().arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.trim_start_matches('v').split('.').next()?.parse().ok()
}

/// The library: cargo puts it beside this test, or one folder above.
fn library() -> PathBuf {
    if let Some(library) = env::var_os(OTHER_LIBRARY) {
        return library.into();
    }
    let test = env::current_exe().expect("this test has a path");
    let mut folders = test.ancestors().skip(1).take(2);
    let library = folders.find_map(|folder| {
        let library = folder.join("libspillproof_node.so");
        library.exists().then_some(library)
    });
    library.expect("cargo builds the library")
}

/// Copies the files of a folder, but for other folders.
fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("the source") {
        let file = entry.expect("a file").path();
        if file.is_file() {
            fs::copy(&file, to.join(file.file_name().expect("a name"))).expect("a copy");
        }
    }
}

/// The package as it is installed, with the library in its place, and its tests.
fn install(folder: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = folder.join("node_modules/spillproof");
    copy_files(source, &package);
    copy_files(&source.join("lib"), &package.join("lib"));
    fs::copy(library(), package.join("spillproof.node")).expect("a copy");
    for name in ["test", "test/fixtures"] {
        copy_files(&source.join(name), &folder.join(name));
    }
}

/// Keys and witnesses of example circuits.
fn make_examples(folder: &Path) {
    fs::create_dir(folder).expect("a folder");
    for (k, curve, name) in [
        (8, Curve::Bn254, "bn128"),
        (9, Curve::Bn254, "bn128"),
        (15, Curve::Bn254, "bn128"),
        (8, Curve::Bls12381, "bls12381"),
        (9, Curve::Bls12381, "bls12381"),
    ] {
        let circuit = Circuit {
            k,
            values: Values::Full,
            seed: 7,
        };
        let [zkey, wtns] = ["zkey", "wtns"].map(|ending| folder.join(format!("{name}-{k}.{ending}")));
        let mut zkey = File::create(zkey).expect("a file");
        circuit.write_key(curve, &mut zkey).expect("a key");
        let mut wtns = File::create(wtns).expect("a file");
        circuit.write_witness(curve, &mut wtns).expect("a witness");
    }
}

/// A folder with snarkjs, kept from run to run.
fn oracle() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    let folder = target.join(ORACLE);
    let locks = ["package.json", "package-lock.json"];
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("test/oracle");
    let is_same = |name: &&str| {
        let [here, wanted] = [&folder, &source].map(|folder| fs::read(folder.join(name)).ok());
        here == wanted
    };
    if locks.iter().all(is_same) && folder.join("node_modules/snarkjs").exists() {
        return Some(folder);
    }
    fs::create_dir_all(&folder).ok()?;
    for name in locks {
        fs::copy(source.join(name), folder.join(name)).ok()?;
    }
    let mut npm = Command::new("npm");
    npm.args([
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--fetch-retries=1",
    ]);
    let installed = npm.current_dir(&folder).output();
    if installed.is_ok_and(|output| output.status.success()) {
        return Some(folder);
    }
    // What is half there is fetched again by the next run.
    let _gone = fs::remove_file(folder.join("package-lock.json"));
    None
}

#[test]
fn the_package_passes_its_tests() {
    match node_release() {
        None => return skipped("there is no Node.js: its package is not tested"),
        Some(release) if release < NODE_MIN => {
            return skipped("Node.js is older than 18: its package is not tested");
        }
        Some(_) => {}
    }
    let folder = tempfile::tempdir().expect("a folder");
    install(folder.path());
    let files = folder.path().join("files");
    make_examples(&files);
    let mut tests: Vec<PathBuf> = fs::read_dir(folder.path().join("test"))
        .expect("the tests")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.to_string_lossy().ends_with(".test.js"))
        .collect();
    tests.sort();
    let mut node = node();
    // One file after the other: they measure time.
    node.args(["--test", "--test-concurrency=1", "--test-reporter=spec"])
        .args(&tests)
        .current_dir(folder.path())
        .env("SPILLPROOF_TEST_NODE_FILES", &files);
    for variable in ["SPILLPROOF_MEMORY", "SPILLPROOF_LIMIT", "SPILLPROOF_DIR"] {
        node.env_remove(variable);
    }
    match oracle() {
        Some(oracle) => _ = node.env("SPILLPROOF_TEST_NODE_ORACLE", oracle),
        None => skipped("npm cannot fetch snarkjs: the Node.js package is not compared with it"),
    }
    let output = node.output().expect("Node runs");
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    // Straight to standard error: the test runner would hide printed lines.
    let closing = said.lines().filter(|line| line.starts_with('ℹ'));
    let closing: Vec<_> = closing.map(|line| line.trim_start_matches('ℹ').trim()).collect();
    let _ = writeln!(std::io::stderr(), "Node.js package: {}", closing.join(", "));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
}
