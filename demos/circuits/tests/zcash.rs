//! Proofs of the circuits.

use spillproof_circuits::Kind;

use super::system::{proof, prover};

#[test]
fn proofs_hold_and_wrong_inputs_do_not() {
    let k = 7;
    let params = proof::Params::new(k);
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
