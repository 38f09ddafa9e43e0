//! What other programs expect of a command: exit codes, a quiet and a talkative run, results on standard
//! output, completions, a manual page.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::BINARY;

fn run(dir: &Path, line: &str) -> Output {
    let mut command = Command::new(BINARY);
    command.args(line.split_whitespace()).current_dir(dir);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SPILLPROOF_")) {
        command.env_remove(name);
    }
    command.output().expect("the binary runs")
}

/// What a run that ends well prints, and what it says on standard error.
fn done(dir: &Path, line: &str) -> (Vec<u8>, String) {
    let output = run(dir, line);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{line}: {errors}");
    (output.stdout, errors)
}

/// The table of `docs/cli.md`, but for 101: no command line is known that panics, and 130, which
/// `failures.rs` has as the signal that it is.
#[test]
fn exit_codes() {
    let dir = tempfile::tempdir().expect("a folder");
    for (line, code) in [
        ("msm --log-n 4", 0),
        ("--version", 0),
        ("prove --help", 0),
        ("srs inspect nowhere.srs", 1),
        ("prove --k 8 --memory 4KiB --out x", 1),
        ("srs gen --k 0 --out x", 2),
        ("prove --k 8 --out x --report x", 2),
    ] {
        let output = run(dir.path(), line);
        assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
        assert_eq!(code == 0, output.stderr.is_empty(), "{line}: {output:?}");
    }
    let script = "mkdir scratch; \"$0\" prove --circuit chain --k 17 --memory 64MiB --out proof --dir scratch & \
                  until ls -l /proc/$!/fd 2> /dev/null | grep -q scratch/; do sleep 0.02; done; \
                  kill -TERM $!; wait $!; echo $?; rmdir scratch";
    let mut shell = Command::new("sh");
    let ended = shell
        .args(["-c", script, BINARY])
        .current_dir(dir.path())
        .output()
        .expect("a shell");
    assert_eq!(ended.stdout, b"143\n");
    let words = String::from_utf8_lossy(&ended.stderr);
    assert!(
        words.contains("ended by SIGTERM; scratch files are removed"),
        "{words}"
    );
    assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 0);
}

#[test]
fn quiet_and_verbose() {
    let dir = tempfile::tempdir().expect("a folder");
    let sum = |line: &str| done(dir.path(), line);
    let (usual, silence) = sum("msm --log-n 6 --memory 8MiB");
    let usual = String::from_utf8(usual).expect("text");
    assert!(
        usual.starts_with("sum of 2^6 terms") && usual.contains(" peak "),
        "{usual}"
    );
    assert_eq!(silence, "");
    let (quiet, silence) = sum("msm --log-n 6 --memory 8MiB -q");
    assert_eq!(String::from_utf8(quiet).expect("text").lines().count(), 1);
    assert_eq!(silence, "");
    // A warning, which is no error.
    let (_, warned) = sum("msm --log-n 6 --memory 8MiB --dir /dev/shm");
    let (_, silence) = sum("msm --log-n 6 --memory 8MiB --dir /dev/shm --quiet");
    assert!(warned.is_empty() || warned.contains("tmpfs"), "{warned}");
    assert_eq!(silence, "");
    let (_, events) = sum("prove --k 6 --memory 8MiB --out p --json --quiet");
    assert_eq!(events, "");
    let lines = |line: &str| sum(line).1.lines().count();
    let (info, debug, trace) = (
        lines("prove --k 6 --memory 8MiB --out p -v"),
        lines("prove --k 6 --memory 8MiB --out p -vv"),
        lines("prove --k 6 --memory 8MiB --out p --verbose --verbose --verbose"),
    );
    assert!(
        0 < info && info < debug && debug <= trace,
        "{info} {debug} {trace}"
    );
}

#[test]
fn results_on_standard_output() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name);
    let run = |line: &str| done(dir.path(), line);
    for (line, name) in [
        ("prove --k 6 --memory 8MiB --seed 3 --out", "proof"),
        ("srs gen --k 6 --out t.srs", ""),
        ("srs export t.srs --out", "params"),
        ("groth16 example c.zkey c.wtns --k 6", ""),
        ("groth16 vkey c.zkey", "vkey"),
    ] {
        if name.is_empty() {
            run(line);
            continue;
        }
        run(&format!("{line} {name}"));
        let (bytes, said) = run(&format!("{line} -"));
        assert_eq!(bytes, fs::read(at(name)).expect("a file"), "{line}");
        assert!(said.contains('-') && !at("-").exists(), "{said}");
        assert_eq!(run(&format!("{line} - --quiet")).0, bytes, "{line}");
    }
    let (page, _) = run("prove --k 6 --memory 8MiB --out p --report - -q");
    assert!(page.starts_with(b"<!doctype html>") && page.ends_with(b"</html>\n"));
    let left = fs::read_dir(dir.path()).expect("a folder");
    let names = left.map(|entry| entry.expect("an entry").file_name());
    assert!(
        names
            .into_iter()
            .all(|name| !name.to_string_lossy().contains("export"))
    );
}

#[test]
fn openings_are_checked() {
    let dir = tempfile::tempdir().expect("a folder");
    let coefficients: Vec<u8> = (1..=50u8)
        .flat_map(|value| [vec![value], vec![0; 31]].concat())
        .collect();
    fs::write(dir.path().join("poly"), coefficients).expect("a file");
    done(dir.path(), "srs gen --k 6 --out t.srs");
    done(dir.path(), "srs gen --k 6 --seed 2 --out other.srs");
    let commit = "commit --srs t.srs --polynomial poly --open-at 12345 --memory 8MiB";
    let (printed, _) = done(dir.path(), &format!("{commit} --json --out opening.json"));
    fs::write(dir.path().join("printed.json"), &printed).expect("a file");
    for file in ["opening.json", "printed.json"] {
        let (text, _) = done(dir.path(), &format!("open verify --srs t.srs {file} -q"));
        let text = String::from_utf8(text).expect("text");
        let lines: Vec<_> = text.lines().collect();
        assert!(
            lines.len() == 2 && lines[0] == "the opening holds" && lines[1].contains("INSECURE"),
            "{file}: {text}"
        );
        let wrong = run(dir.path(), &format!("open verify --srs other.srs {file}"));
        assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
        assert!(wrong.stdout.is_empty());
    }
    let printed: Value = serde_json::from_slice(&printed).expect("JSON");
    let of = |path: &str| {
        printed
            .pointer(path)
            .and_then(Value::as_str)
            .expect(path)
            .to_owned()
    };
    let [commitment, value, proof] = [
        "/result/commitment",
        "/result/opening/value",
        "/result/opening/proof",
    ]
    .map(of);
    let claim = |point: u32| {
        format!(
            "open verify --srs t.srs --commitment {commitment} --point {point} --value {value} --proof {proof} --json"
        )
    };
    let (json, _) = done(dir.path(), &claim(12345));
    let json: Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(json["result"]["verifies"], true);
    assert_eq!(run(dir.path(), &claim(12346)).status.code(), Some(1));
}

#[test]
fn scripts_and_the_manual_page() {
    let dir = tempfile::tempdir().expect("a folder");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (script, _) = done(dir.path(), &format!("completions {shell}"));
        let script = String::from_utf8(script).expect("text");
        assert!(
            script.contains("spillproof") && script.contains("checkpoint-key"),
            "{shell}"
        );
        let file = dir.path().join(shell);
        fs::write(&file, script).expect("a file");
        let checked = Command::new(shell).arg("-n").arg(&file).output();
        // Shells that this machine has.
        if let Ok(checked) = checked.and_then(|checked| match ["bash", "zsh", "fish"].contains(&shell) {
            true => Ok(checked),
            false => Err(std::io::ErrorKind::Unsupported.into()),
        }) {
            assert!(checked.status.success(), "{shell}: {checked:?}");
        }
    }
    let (page, _) = done(dir.path(), "man");
    let page = String::from_utf8(page).expect("text");
    assert!(page.contains(".SH \"SPILLPROOF PROVE\"") && page.contains("SPILLPROOF_LIMIT"));
}
