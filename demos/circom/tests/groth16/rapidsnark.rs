//! A C program over the functions of rapidsnark, linked to this library, on both curves and in a budget.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use spillproof_circom::example::{Circuit, Values};
use spillproof_circom::prove::{Key, prove, verify};
use spillproof_format::Curve;

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

#[test]
fn a_program_over_rapidsnark_proves() {
    let compiler = Command::new("cc").arg("--version").output();
    if !compiler.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: there is no C compiler");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (program, library) = (dir.path().join("program"), library_folder());
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
    for curve in [Curve::Bn254, Curve::Bls12381] {
        let [zkey, wtns, vkey] = files(dir.path(), 9, curve);
        let [_, other, _] = files(dir.path(), 8, curve);
        let mut budgets = vec![Some("8MiB")];
        budgets.extend((curve == Curve::Bn254).then_some(None));
        for budget in budgets {
            let mut command = Command::new(&program);
            command
                .args([&zkey, &wtns, &vkey, &other])
                .env("LD_LIBRARY_PATH", &library)
                .env("SPILLPROOF_DIR", dir.path())
                .env_remove("SPILLPROOF_MEMORY");
            if let Some(budget) = budget {
                command.env("SPILLPROOF_MEMORY", budget);
            }
            let output = command.output().unwrap();
            assert!(output.status.success(), "{output:?}");
            assert!(String::from_utf8_lossy(&output.stdout).contains("all calls did as expected"));
        }
    }
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
