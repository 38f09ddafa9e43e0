//! Variables that ask for a device: what they make of a program that knows nothing of it.

use std::process::Command;

use halo2_axiom::spillproof::{active, Session};

use crate::drop_in::prove;

/// Set for the child.
const CHILD: &str = "SPILLPROOF_TEST_CHILD";
const MEMORY: (&str, &str) = ("SPILLPROOF_MEMORY", "16MiB");

/// Not a test of its own: a program, with the variables that its parent has set.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_some() {
        let _ = prove::params(4);
        let active = active();
        let session = Session::current().unwrap_or_else(|error| panic!("{error}"));
        let jobs = session
            .as_ref()
            .and_then(|session| session.accelerator())
            .map_or(0, |accelerator| accelerator.jobs());
        println!("session: {active}, jobs: {jobs}");
    }
}

/// What the program says with these variables, and whether it ends well.
fn program(variables: &[(&str, &str)]) -> (bool, String) {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["environment::child", "--exact", "--nocapture"])
        .env(CHILD, "1")
        .env("SPILLPROOF_DIR", dir.path())
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (output.status.success(), said.concat())
}

fn is_refused(variables: &[(&str, &str)], words: &[&str]) {
    let (is_well, said) = program(variables);
    assert!(!is_well, "{variables:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{variables:?}: {said}");
    }
}

#[test]
fn off_is_a_session_as_without_the_variable() {
    for gpu in [None, Some(("SPILLPROOF_GPU", "off"))] {
        let variables: Vec<_> = [MEMORY].into_iter().chain(gpu).collect();
        let (is_well, said) = program(&variables);
        assert!(is_well && said.contains("session: true, jobs: 0"), "{said}");
        let (is_well, said) = program(&variables[1..]);
        assert!(is_well && said.contains("session: false, jobs: 0"), "{said}");
        let (is_well, said) = program(&[("SPILLPROOF_MEMORY", "")]);
        assert!(is_well && said.contains("session: false, jobs: 0"), "{said}");
    }
}

#[test]
fn a_device_without_a_session_is_refused() {
    is_refused(
        &[("SPILLPROOF_GPU", "auto")],
        &["SPILLPROOF_GPU: `auto`", "set SPILLPROOF_MEMORY too"],
    );
}

#[cfg(not(feature = "gpu"))]
#[test]
fn without_the_feature_a_device_is_refused() {
    for gpu in ["auto", "0", "first"] {
        is_refused(
            &[MEMORY, ("SPILLPROOF_GPU", gpu)],
            &[
                &format!("SPILLPROOF_GPU: `{gpu}`"),
                "built without devices",
                "the feature `gpu`",
            ],
        );
    }
}

#[test]
fn a_bad_value_for_scratch_is_refused_by_name() {
    is_refused(
        &[MEMORY, ("SPILLPROOF_SCRATCH", "open")],
        &["SPILLPROOF_SCRATCH: `open`", "`sealed` or `plain`"],
    );
}

#[cfg(feature = "gpu")]
#[test]
fn bad_values_are_refused_by_name() {
    for (variable, value, remedy) in [
        ("SPILLPROOF_GPU", "first", "say `auto`, `off`, a number"),
        ("SPILLPROOF_GPU", "0,0", "each once"),
        ("SPILLPROOF_GPU", "99", "no GPU"),
        ("SPILLPROOF_VRAM", "two", "is not a size"),
        ("SPILLPROOF_OFFLOAD", "never", "say `measured`"),
        ("SPILLPROOF_PINNED", "much", "is not a size"),
    ] {
        is_refused(
            &[MEMORY, (variable, value)],
            &[&format!("{variable}: `{value}`"), remedy],
        );
    }
}
