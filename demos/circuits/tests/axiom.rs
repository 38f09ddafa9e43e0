//! Shapes of the circuits, and proofs of them.

use spillproof_circuits::{Kind, Scheme};

use super::system::chain::Chain;
use super::system::dialect::Fr;
use super::system::halo2::plonk::ConstraintSystem;
use super::system::lookups::Lookups;
use super::system::rows::Builtin;
use super::system::wide::Wide;
use super::system::{proof, prover};

fn constraint_system<C: Builtin>() -> ConstraintSystem<Fr> {
    let mut cs = ConstraintSystem::default();
    C::configure(&mut cs);
    let selectors = vec![vec![true; 8]; cs.num_selectors()];
    cs.compress_selectors(selectors).0
}

#[test]
fn shapes() {
    let cs = constraint_system::<Chain>();
    assert_eq!(
        (
            cs.num_advice_columns(),
            cs.num_fixed_columns(),
            cs.permutation().get_columns().len()
        ),
        (3, 5, 4)
    );
    assert_eq!(cs.degree(), 3);

    let cs = constraint_system::<Wide>();
    assert_eq!(
        (cs.num_advice_columns(), cs.advice_queries().len(), cs.degree()),
        (96, 192, 5)
    );

    let cs = constraint_system::<Lookups>();
    assert_eq!(
        (
            cs.num_advice_columns(),
            cs.num_fixed_columns(),
            cs.lookups().len()
        ),
        (7, 6, 4)
    );
}

#[test]
fn proofs_hold_and_wrong_inputs_do_not() {
    let k = 7;
    let params = proof::insecure_params(k, 1);
    for kind in [Kind::Chain, Kind::Wide, Kind::Lookups, Kind::Machine] {
        let key = proof::verifying_key(&params, kind, k).expect("verifying key");
        let key = prover::proving_key(&params, key, kind, k).expect("proving key");
        let instances = proof::instances(kind, k, 9);
        for scheme in [Scheme::Shplonk, Scheme::Gwc] {
            let proof = prover::prove(&params, &key, kind, k, 9, scheme).expect("a proof");
            let verify = |instances: &[Vec<Fr>], proof: &[u8]| {
                proof::verify(&params, key.get_vk(), instances, proof, scheme)
            };
            verify(&instances, &proof).unwrap_or_else(|error| panic!("{kind:?} {scheme:?}: {error}"));
            assert!(
                verify(&proof::instances(kind, k, 10), &proof).is_err(),
                "{kind:?} {scheme:?}"
            );
            let mut damaged = proof.clone();
            *damaged.last_mut().expect("bytes") ^= 1;
            assert!(verify(&instances, &damaged).is_err(), "{kind:?} {scheme:?}");
        }
    }
}
