//! The tests of the Python package, over the library that cargo has built beside this test. `test.sh` runs
//! them over a wheel.
#![allow(clippy::expect_used)]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter of `environment.sh`, or the system's, if it has what the package needs.
fn interpreter() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    let candidates = [target.join("python/venv/bin/python"), "python3".into()];
    let fits = |python: &PathBuf| {
        let mut command = Command::new(python);
        command.args(["-c", "import sys, numpy; sys.exit(sys.version_info < (3, 11))"]);
        command.output().is_ok_and(|output| output.status.success())
    };
    candidates.into_iter().find(fits)
}

/// The library: cargo puts it beside this test, or one folder above.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this test has a path");
    let mut folders = test.ancestors().skip(1).take(2);
    let library = folders.find_map(|folder| {
        let library = folder.join("lib_native.so");
        library.exists().then_some(library)
    });
    library.expect("cargo builds the library")
}

/// The package as it is installed.
fn install(folder: &Path) {
    let package = folder.join("spillproof");
    fs::create_dir(&package).expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/spillproof");
    for entry in fs::read_dir(source).expect("the source") {
        let file = entry.expect("a file").path();
        if file.is_file() {
            fs::copy(&file, package.join(file.file_name().expect("a name"))).expect("a copy");
        }
    }
    fs::copy(library(), package.join("_native.abi3.so")).expect("a copy");
}

#[test]
fn the_package_passes_its_tests() {
    let Some(python) = interpreter() else {
        // Straight to standard error: the test runner would hide a printed line.
        let reason = "there is no Python 3.11 with numpy (demos/python/environment.sh makes one)";
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: {reason}: the Python package is not tested"
        );
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    install(folder.path());
    let output = Command::new(python)
        .args(["-m", "unittest", "discover", "--verbose", "--start-directory"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"))
        .env("PYTHONPATH", folder.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(folder.path())
        .output()
        .expect("Python runs");
    let said = String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success(), "{said}");
}
