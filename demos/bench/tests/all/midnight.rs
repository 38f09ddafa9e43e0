//! The proof of a session is that of the unmodified midnight-proofs, byte for byte.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use spillproof_circuits::Kind;
use spillproof_circuits::midnight::dropin::{proof, prover};
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;

use crate::BINARY;

#[test]
fn a_session_makes_the_bytes_of_the_unmodified_prover() {
    let dir = tempfile::tempdir().unwrap();
    for (kind, name) in [(Kind::Chain, "chain"), (Kind::Wide, "wide")] {
        for (k, seed) in [(6, 3), (9, 4)] {
            let line = format!("stock --system midnight --circuit {name} --k {k} --seed {seed} --out stock");
            let output = Command::new(BINARY)
                .args(line.split(' '))
                .current_dir(dir.path())
                .output()
                .unwrap();
            assert!(output.status.success(), "{line}: {output:?}");
            let session = Session::builder()
                .memory(ByteSize::Bytes(16 << 20))
                .dir(dir.path());
            let _current = Arc::new(session.build().unwrap()).install();
            let params = proof::insecure_params(k, 1);
            let key = proof::verifying_key(&params, kind, k).unwrap();
            let key = prover::proving_key(&params, key, kind, k).unwrap();
            // On as many threads of rayon's as that program had.
            let made = prover::prove(&params, &key, kind, k, seed).unwrap();
            assert!(made == fs::read(dir.path().join("stock")).unwrap(), "{line}");
        }
    }
}
