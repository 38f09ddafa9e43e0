//! Keys of public ceremonies: witnesses by their published programs, proofs within a small budget, verified by snarkjs and with the published
//! verification keys. `cargo xtask fixtures DIR` fetches them; the test takes the folder from `SPILLPROOF_TEST_FIXTURES`.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde_json::json;
use spillproof::Session;
use spillproof::groth16::Shape;
use spillproof_circom::prove::{Key, import, prove, setup, verify};

struct Published {
    /// Folder of the packages.
    packages: PathBuf,
    dir: tempfile::TempDir,
    session: Arc<Session>,
}

impl Published {
    fn snarkjs(&self, arguments: &[&Path]) -> String {
        let output = Command::new("node")
            .arg(self.packages.join(".bin/snarkjs"))
            .args(arguments)
            .output()
            .expect("node runs snarkjs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A proof from the key's file and from a container; its verification by snarkjs, and by this library.
    fn proves(
        &self,
        name: &str,
        [zkey, program]: [&Path; 2],
        input: &serde_json::Value,
        vkey: Option<&Path>,
    ) -> Shape {
        let at = |ending: &str| self.dir.path().join(format!("{name}.{ending}"));
        let [input_file, wtns, container] = ["input.json", "wtns", "key"].map(at);
        std::fs::write(&input_file, input.to_string()).unwrap();
        let words = ["wtns", "calculate"].map(Path::new);
        self.snarkjs(&[words[0], words[1], program, &input_file, &wtns]);
        let imported = import(&self.session, zkey, &container, &mut |_| ()).unwrap();
        assert!(!imported.is_without_contribution, "{name}");
        let vkey_file = at("vkey.json");
        match vkey {
            Some(published) => _ = std::fs::copy(published, &vkey_file).unwrap(),
            None => {
                let key = Key::open(&self.session, zkey, &mut |_| ()).unwrap();
                std::fs::write(&vkey_file, key.verification_key().unwrap()).unwrap();
            }
        }
        for key in [zkey, &container] {
            let proved = prove(&self.session, key, &wtns, &mut |_| ()).unwrap();
            let files = [
                (at("proof.json"), &proved.proof),
                (at("public.json"), &proved.public),
            ];
            for (file, text) in &files {
                std::fs::write(file, text).unwrap();
            }
            let words = ["groth16", "verify"].map(Path::new);
            let said = self.snarkjs(&[words[0], words[1], &vkey_file, &files[1].0, &files[0].0]);
            assert!(said.contains("OK!"), "{name}: {said}");
            let vkey = std::fs::read(&vkey_file).unwrap();
            let texts = [
                (&*vkey_file, &*vkey),
                (&*files[1].0, &*proved.public),
                (&*files[0].0, &*proved.proof),
            ];
            assert!(verify(&self.session, texts).unwrap().verifies, "{name}");
        }
        imported.shape
    }
}

impl Published {
    /// The packages of `SPILLPROOF_TEST_FIXTURES`, if there are any.
    fn here() -> Option<Self> {
        let Some(fixtures) = std::env::var_os("SPILLPROOF_TEST_FIXTURES") else {
            println!("SKIPPED: SPILLPROOF_TEST_FIXTURES names no folder of `cargo xtask fixtures`");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let session = Session::builder()
            .memory("16MiB")
            .dir(dir.path())
            .build()
            .unwrap();
        Some(Self {
            packages: Path::new(&fixtures).join("node_modules"),
            dir,
            session: Arc::new(session),
        })
    }
}

/// Keys are those of snarkjs, byte for byte. From 2^15 rows on snarkjs' hash of the circuit, the last 64 bytes but four, takes what is behind the
/// last power of a file of that power.
#[test]
#[ignore = "takes 0.5 GB of fetched keys: `cargo xtask fixtures DIR`"]
fn keys_are_those_of_snarkjs() {
    let Some(published) = Published::here() else {
        return;
    };
    let (packages, dir) = (&published.packages, published.dir.path());
    let ptau = packages.join("react-native-snarkjs/test/plonk_circuit/powersOfTau15_final.ptau");
    let circuits = [
        "react-native-snarkjs/test/plonk_circuit/circuit.r1cs",
        "react-native-snarkjs/test/circuit/circuit.r1cs",
        "@darkforest_eth/snarks/whitelist.r1cs",
        "@reclaimprotocol/circom-symmetric-crypto/resources/chacha20/circuit.r1cs",
    ];
    for circuit in circuits {
        let r1cs = packages.join(circuit);
        let [ours, theirs] = ["ours.zkey", "theirs.zkey"].map(|name| dir.join(name));
        let (made, _) = setup(&published.session, [&r1cs, &ptau], &ours, &mut |_| ()).unwrap();
        let words = ["groth16", "setup"].map(Path::new);
        published.snarkjs(&[words[0], words[1], &r1cs, &ptau, &theirs]);
        let [ours, theirs] = [ours, theirs].map(|file| std::fs::read(file).unwrap());
        let same = match made.is_snarkjs_hash {
            true => ours.len(),
            false => ours.len() - 68,
        };
        assert!(
            ours.len() == theirs.len() && ours[..same] == theirs[..same],
            "{circuit}"
        );
        println!(
            "{circuit}: 2^{} rows, {same} of {} bytes",
            made.shape.log_domain,
            ours.len()
        );
    }
}

#[test]
#[ignore = "takes 0.5 GB of fetched keys: `cargo xtask fixtures DIR`"]
fn published_keys_prove() {
    let Some(published) = Published::here() else {
        return;
    };
    let semaphore = published.packages.join("@zk-kit/semaphore-artifacts");
    for depth in 1..=32 {
        let [zkey, program, vkey] =
            ["zkey", "wasm", "json"].map(|ending| semaphore.join(format!("semaphore-{depth}.{ending}")));
        let siblings: Vec<String> = (0..depth)
            .map(|level| if level < 3 { "5" } else { "0" }.to_owned())
            .collect();
        let input = json!({
            "secret": "123456789",
            "merkleProofLength": depth.min(3),
            "merkleProofIndex": 1,
            "merkleProofSiblings": siblings,
            "scope": "7",
            "message": depth.to_string(),
        });
        let shape = published.proves(
            &format!("semaphore-{depth}"),
            [&zkey, &program],
            &input,
            Some(&vkey),
        );
        assert_eq!(shape.public, 4);
    }
    let ciphers = published
        .packages
        .join("@reclaimprotocol/circom-symmetric-crypto/resources");
    for (cipher, key_bits) in [("chacha20", 256), ("aes-128-ctr", 128), ("aes-256-ctr", 256)] {
        let folder = ciphers.join(cipher);
        let bits = |count: usize| -> Vec<u8> { (0..count).map(|bit| (bit % 3 == 0).into()).collect() };
        let input = json!({ "key": bits(key_bits), "nonce": bits(96), "counter": bits(32), "in": bits(512) });
        let files = ["circuit_final.zkey", "circuit.wasm"].map(|name| folder.join(name));
        let shape = published.proves(cipher, [&files[0], &files[1]], &input, None);
        println!("{cipher}: {} signals, 2^{} rows", shape.signals, shape.log_domain);
    }
}
