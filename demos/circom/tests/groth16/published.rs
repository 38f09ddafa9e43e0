//! Keys of public ceremonies: witnesses by their published programs, proofs within a small budget, verified
//! by snarkjs and with the published verification keys. `cargo xtask fixtures DIR` fetches them; the test
//! takes the folder from `SPILLPROOF_TEST_FIXTURES`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde_json::json;
use spillproof_circom::prove::{
    Key, contribute, import, prepare_ptau, prove, setup, truncate_ptau, verify, verify_key, verify_ptau,
};
use spillproof_engine::Session;
use spillproof_groth16::Shape;
use spillproof_groth16::iden3::Origin;

struct Published {
    /// Folder of the packages.
    packages: PathBuf,
    dir: tempfile::TempDir,
    session: Arc<Session>,
}

impl Published {
    fn snarkjs(&self, arguments: &[&Path]) -> String {
        let output = Command::new("node")
            .arg(self.packages.join("snarkjs/build/cli.cjs"))
            .args(arguments)
            .output()
            .expect("node runs snarkjs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The words of a command, and its files.
    fn run(&self, words: &str, files: &[&Path]) -> String {
        let words: Vec<_> = words.split(' ').map(Path::new).collect();
        self.snarkjs(&[&words[..], files].concat())
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

/// Keys are those of snarkjs, byte for byte, before and after a beacon; snarkjs accepts a contribution, and
/// this library one of snarkjs'. The `.ptau` file has the power of the largest circuits: their hash takes
/// bytes behind its last power.
#[test]
#[ignore = "takes 0.5 GB of fetched keys: `cargo xtask fixtures DIR`"]
fn keys_are_those_of_snarkjs() {
    const BEACON: &str = "0102030405060708090a0b0c0d0e0f10";
    let Some(published) = Published::here() else {
        return;
    };
    let (packages, dir, session) = (&published.packages, published.dir.path(), &published.session);
    let ptau = packages.join("react-native-snarkjs/test/plonk_circuit/powersOfTau15_final.ptau");
    let circuits = [
        "react-native-snarkjs/test/plonk_circuit/circuit.r1cs",
        "react-native-snarkjs/test/circuit/circuit.r1cs",
        "@darkforest_eth/snarks/whitelist.r1cs",
        "@reclaimprotocol/circom-symmetric-crypto/resources/chacha20/circuit.r1cs",
    ];
    let is_same = |files: [&Path; 2]| {
        let [ours, theirs] = files.map(|file| std::fs::read(file).unwrap());
        ours == theirs
    };
    for circuit in circuits {
        let r1cs = packages.join(circuit);
        let [ours, theirs, ours_after, theirs_after] =
            ["ours", "theirs", "ours-after", "theirs-after"].map(|name| dir.join(format!("{name}.zkey")));
        let made = setup(session, [&r1cs, &ptau], &ours, &mut |_| ()).unwrap();
        published.run("groth16 setup", &[&r1cs, &ptau, &theirs]);
        assert!(is_same([&ours, &theirs]), "{circuit}: setup");

        let origin = Origin::Beacon {
            value: (1..=16).collect(),
            iterations_log: 10,
        };
        contribute(session, [&ours, &ours_after], Some("last"), &origin, &mut |_| ()).unwrap();
        let beacon = [Path::new(BEACON), Path::new("10"), Path::new("-n=last")];
        published.run("zkey beacon", &[&[&*theirs, &theirs_after][..], &beacon].concat());
        assert!(is_same([&ours_after, &theirs_after]), "{circuit}: beacon");

        let secret = Origin::Entropy(b"some text".to_vec());
        contribute(session, [&theirs_after, &ours], None, &secret, &mut |_| ()).unwrap();
        let said = published.run("zkey verify", &[&r1cs, &ptau, &ours]);
        assert!(said.contains("ZKey Ok!"), "{circuit}: {said}");
        let entropy = [Path::new("-e=text"), Path::new("-n=theirs")];
        published.run("zkey contribute", &[&[&*ours, &theirs][..], &entropy].concat());
        let verified = verify_key(session, [&r1cs, &ptau, &theirs], &mut |_| ()).unwrap();
        let names: Vec<_> = verified
            .contributors
            .iter()
            .map(|one| one.name.as_deref())
            .collect();
        assert_eq!(names, [Some("last"), None, Some("theirs")], "{circuit}");
        println!("{circuit}: 2^{} rows", made.shape.log_domain);
    }
}

/// Powers of tau, prepared by snarkjs and here.
#[test]
#[ignore = "takes 0.5 GB of fetched keys: `cargo xtask fixtures DIR`"]
fn prepared_powers_are_those_of_snarkjs() {
    let Some(published) = Published::here() else {
        return;
    };
    let at = |name: &str| published.dir.path().join(name);
    let (new, raw, ours, theirs) = (at("new.ptau"), at("raw.ptau"), at("ours.ptau"), at("theirs.ptau"));
    let session = &published.session;
    for curve in ["bn128", "bls12381"] {
        published.run(&format!("powersoftau new {curve} 8"), &[&new]);
        let entropy = ["-e=text", "-n=first"].map(Path::new);
        published.run("powersoftau contribute", &[&[&*new, &raw][..], &entropy].concat());
        published.run("powersoftau prepare phase2", &[&raw, &theirs]);
        prepare_ptau(session, [&raw, &ours], &mut |_| ()).unwrap();
        let files = [&ours, &theirs].map(|file| std::fs::read(file).unwrap());
        assert!(files[0] == files[1], "{curve}");
        let verified = verify_ptau(session, &theirs, &mut |_| ()).unwrap();
        assert_eq!((verified.power, verified.is_prepared), (8, true));
        let names: Vec<_> = verified
            .contributors
            .iter()
            .map(|one| one.name.as_deref())
            .collect();
        assert_eq!(names, [Some("first")]);
        published.run("powersoftau truncate", &[&theirs]);
        for power in 1..8 {
            truncate_ptau(session, [&theirs, &ours], power, &mut |_| ()).unwrap();
            let cut = at(&format!("theirs_0{power}.ptau"));
            assert!(
                std::fs::read(&ours).unwrap() == std::fs::read(&cut).unwrap(),
                "{curve}, {power}"
            );
            verify_ptau(session, &cut, &mut |_| ()).unwrap();
        }
    }
    let published_file = "react-native-snarkjs/test/plonk_circuit/powersOfTau15_final.ptau";
    let published_file = published.packages.join(published_file);
    let verified = verify_ptau(session, &published_file, &mut |_| ()).unwrap();
    assert_eq!((verified.power, verified.is_prepared), (15, true));
    assert_eq!(verified.contributors.len(), 1);
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
