//! A C program over the functions of rapidsnark, linked to this library, on both curves and in a budget.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use spillproof_circom::example::{Circuit, Values};
use spillproof_circom::prove::{Key, prove, verify};
use spillproof_format::Curve;
use spillproof_testing::skipped;

fn session(dir: &Path) -> std::sync::Arc<spillproof_engine::Session> {
    let builder = spillproof_engine::Session::builder().memory("8MiB").dir(dir);
    std::sync::Arc::new(builder.build().unwrap())
}

/// A circuit's key, witness and verification key.
fn files(dir: &Path, k: u32, curve: Curve) -> [PathBuf; 3] {
    let circuit = Circuit {
        k,
        values: Values::Full,
        seed: 7,
    };
    let paths = ["zkey", "wtns", "json"].map(|ending| dir.join(format!("{k}.{ending}")));
    let [zkey, wtns, vkey] = &paths;
    circuit
        .write_key(curve, &mut File::create(zkey).unwrap())
        .unwrap();
    circuit
        .write_witness(curve, &mut File::create(wtns).unwrap())
        .unwrap();
    let key = Key::open(&session(dir), zkey, &mut |_| ()).unwrap();
    std::fs::write(vkey, key.verification_key().unwrap()).unwrap();
    paths
}

/// The library that was built beside this test.
fn library_folder() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap();
    let found = [folder, folder.parent().unwrap()].map(Path::to_owned);
    let is_there = |folder: &PathBuf| folder.join("libspillproof_circom.so").exists();
    found.into_iter().find(is_there).unwrap()
}

/// The C program, linked to the library; `None` where there is no C compiler.
fn program(dir: &Path) -> Option<PathBuf> {
    let compiler = Command::new("cc").arg("--version").output();
    if !compiler.is_ok_and(|output| output.status.success()) {
        skipped("there is no C compiler");
        return None;
    }
    let (program, library) = (dir.join("program"), library_folder());
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(package.join("include"))
        .arg(package.join("tests/rapidsnark.c"))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&library)
        .arg("-lspillproof_circom")
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    Some(program)
}

/// A run of the C program with the files of a circuit, and the witness of another one.
fn command(program: &Path, dir: &Path, files: [&Path; 4], budget: Option<&str>) -> Command {
    let mut command = Command::new(program);
    command
        .args(files)
        .env("LD_LIBRARY_PATH", library_folder())
        .env("SPILLPROOF_DIR", dir)
        .env_remove("SPILLPROOF_MEMORY");
    command.envs(budget.map(|budget| ("SPILLPROOF_MEMORY", budget)));
    command
}

#[test]
fn a_program_over_rapidsnark_proves() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = program(dir.path()) else {
        return;
    };
    for curve in [Curve::Bn254, Curve::Bls12381] {
        let [zkey, wtns, vkey] = files(dir.path(), 9, curve);
        let [_, other, _] = files(dir.path(), 8, curve);
        let mut budgets = vec![Some("8MiB")];
        budgets.extend((curve == Curve::Bn254).then_some(None));
        for budget in budgets {
            let files = [&*zkey, &wtns, &vkey, &other];
            let output = command(&program, dir.path(), files, budget).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            assert!(String::from_utf8_lossy(&output.stdout).contains("all calls did as expected"));
        }
    }
}

/// The device of the environment takes part, and one that is not there is an error.
#[cfg(feature = "gpu")]
#[test]
fn a_program_over_rapidsnark_has_the_device_that_the_environment_asks_for() {
    let Some(device) = spillproof_fake_driver::FakeDevice::new() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = program(dir.path()) else {
        return;
    };
    let [zkey, wtns, vkey] = files(dir.path(), 8, Curve::Bn254);
    let [_, other, _] = files(dir.path(), 7, Curve::Bn254);
    let run = |gpu: &str| {
        let mut command = command(&program, dir.path(), [&*zkey, &wtns, &vkey, &other], Some("8MiB"));
        let mut folders = vec![library_folder()];
        for (name, value) in device.command(&program).get_envs() {
            match (name.to_str(), value) {
                (Some("LD_LIBRARY_PATH"), Some(more)) => folders.extend(std::env::split_paths(more)),
                (_, Some(value)) => drop(command.env(name, value)),
                (_, None) => drop(command.env_remove(name)),
            }
        }
        command
            .env("LD_LIBRARY_PATH", std::env::join_paths(folders).unwrap())
            .envs([("SPILLPROOF_GPU", gpu), ("SPILLPROOF_OFFLOAD", "always")])
            .output()
            .unwrap()
    };
    let output = run("0");
    assert!(output.status.success(), "{output:?}");
    let output = run("7");
    assert!(!output.status.success());
    let said = [output.stdout, output.stderr].concat();
    assert!(
        String::from_utf8_lossy(&said).contains("there is no GPU 7"),
        "{}",
        String::from_utf8_lossy(&said)
    );
}

/// What stands in an open file of another process, if it is in `dir`. Looked at when it is open here: before,
/// the number may become another file's at any time, as that of a witness that the process reads, or of a pipe,
/// which has no end.
fn content_in(dir: &Path, path: &Path) -> std::io::Result<Vec<u8>> {
    /// `O_NONBLOCK` of Linux.
    const NO_WAIT: i32 = 0o4000;
    let mut file = File::options().read(true).custom_flags(NO_WAIT).open(path)?;
    let target = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let mut bytes = Vec::new();
    if target.starts_with(dir) && file.metadata()?.is_file() {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Which of `needles` stand in a file without a name that a process has open in `dir`.
fn found_in_open_files(process: u32, dir: &Path, needles: [&[u8]; 2]) -> [bool; 2] {
    let mut found = [false; 2];
    let Ok(entries) = std::fs::read_dir(format!("/proc/{process}/fd")) else {
        return found;
    };
    for entry in entries.flatten() {
        if let Ok(bytes) = content_in(dir, &entry.path()) {
            for (found, needle) in found.iter_mut().zip(needles) {
                *found |= bytes.windows(needle.len()).any(|window| window == needle);
            }
        }
    }
    found
}

/// Scratch has the witness sealed, and no copy of it in plain. That of a key in memory is plain: the control.
#[test]
fn no_file_has_the_witness_of_a_buffer_in_plain() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = program(dir.path()) else {
        return;
    };
    let [zkey, wtns, vkey] = files(dir.path(), 10, Curve::Bn254);
    let [_, other, _] = files(dir.path(), 8, Curve::Bn254);
    let scratch = dir.path().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let [key, witness] = [&zkey, &wtns].map(|file| std::fs::read(file).unwrap());
    // Two values in the middle of the witness, and of a point of the key.
    let middle = |bytes: &[u8]| bytes[bytes.len() / 64 * 32..][..64].to_vec();
    let (in_key, in_witness) = (middle(&key), middle(&witness));
    assert!(in_witness.iter().filter(|byte| **byte != 0).count() > 32);
    let files = [&*zkey, &wtns, &vkey, &other];
    let mut command = command(&program, &scratch, files, Some("8MiB"));
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let mut found = [false; 2];
    while child.try_wait().unwrap().is_none() {
        let now = found_in_open_files(child.id(), &scratch, [&in_key, &in_witness]);
        found = [found[0] | now[0], found[1] | now[1]];
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(found, [true, false], "the key, and the witness");
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0);
}

#[test]
fn a_rust_program_proves() {
    let dir = tempfile::tempdir().unwrap();
    let [zkey, wtns, vkey] = files(dir.path(), 8, Curve::Bn254);
    let session = session(dir.path());
    let proved = prove(&session, &zkey, &wtns, &mut |_| ()).unwrap();
    assert_eq!(proved.public_signals, 1);
    let key = std::fs::read(&vkey).unwrap();
    let verified = |public: &[u8], proof: &[u8]| {
        let names = ["key", "public", "proof"].map(Path::new);
        verify(
            &session,
            [(names[0], &key), (names[1], public), (names[2], proof)],
        )
    };
    assert!(verified(&proved.public, &proved.proof).unwrap().verifies);
    assert!(!verified(b"[\"1\"]", &proved.proof).unwrap().verifies);
    assert!(verified(b"[]", &proved.proof).is_err());
}
