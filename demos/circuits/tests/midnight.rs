//! Proofs of the circuits.

use spillproof_circuits::Kind;

use super::system::{proof, prover};

#[test]
fn proofs_hold_and_wrong_inputs_do_not() {
    let k = 7;
    let params = proof::insecure_params(k, 1);
    for kind in [Kind::Chain, Kind::Wide, Kind::Lookups, Kind::Machine] {
        let key = proof::verifying_key(&params, kind, k).expect("verifying key");
        let key = prover::proving_key(&params, key, kind, k).expect("proving key");
        let proof = prover::prove(&params, &key, kind, k, 9).expect("a proof");
        let verify = |seed, proof: &[u8]| {
            let instances = proof::instances(kind, k, seed);
            proof::verify(&params, key.get_vk(), &instances, proof)
        };
        verify(9, &proof).unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        assert!(verify(10, &proof).is_err(), "{kind:?}");
        let mut damaged = proof.clone();
        *damaged.last_mut().expect("bytes") ^= 1;
        assert!(verify(9, &damaged).is_err(), "{kind:?}");
    }
}

#[test]
fn keys_go_through_bytes() {
    let k = 7;
    let params = proof::insecure_params(k, 1);
    let key = proof::verifying_key(&params, Kind::Lookups, k).expect("verifying key");
    let bytes = proof::verifying_key_bytes(&key);
    let read = proof::read_verifying_key(&bytes, Kind::Lookups, k).expect("the key");
    assert_eq!(proof::verifying_key_bytes(&read), bytes);
    let other = |bytes: &[u8], kind, k| proof::read_verifying_key(bytes, kind, k).is_err();
    assert!(other(&bytes, Kind::Lookups, k + 1) && other(&bytes, Kind::Chain, k));
    assert!(other(&[&bytes[..], &[0]].concat(), Kind::Lookups, k));
    assert!(other(&bytes[..bytes.len() - 1], Kind::Lookups, k) && other(&[], Kind::Lookups, k));

    let key = prover::proving_key(&params, key, Kind::Lookups, k).expect("proving key");
    let mut bytes = Vec::new();
    prover::write_proving_key(&key, &mut bytes).expect("written");
    let read = |mut bytes: &[u8], kind, k| prover::read_proving_key(&mut bytes, kind, k);
    let again = read(&bytes, Kind::Lookups, k).expect("the key");
    let proof = prover::prove(&params, &again, Kind::Lookups, k, 9).expect("a proof");
    let instances = proof::instances(Kind::Lookups, k, 9);
    proof::verify(&params, key.get_vk(), &instances, &proof).expect("it holds");
    let other = |bytes: &[u8], kind, k| read(bytes, kind, k).is_err();
    assert!(other(&bytes, Kind::Lookups, k + 1));
    assert!(other(&[&bytes[..], &[0]].concat(), Kind::Lookups, k) && other(&[], Kind::Lookups, k));
}

/// What the binary verifies with, without the points of parameters.
#[test]
fn a_verifier_takes_the_pair_alone() {
    let k = 6;
    let params = proof::insecure_params(k, 3);
    let key = proof::verifying_key(&params, Kind::Chain, k).expect("verifying key");
    let key = prover::proving_key(&params, key, Kind::Chain, k).expect("proving key");
    let proof = prover::prove(&params, &key, Kind::Chain, k, 9).expect("a proof");
    let instances = proof::instances(Kind::Chain, k, 9);
    let accepts = |seed| {
        let params = proof::insecure_verifier_params(seed);
        proof::verify(&params, key.get_vk(), &instances, &proof).is_ok()
    };
    assert!(accepts(3) && !accepts(4));
}
