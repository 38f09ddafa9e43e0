//! Proving keys in files of their own: opened in place, they are the keys that were saved.

use std::path::Path;

use halo2_axiom::halo2curves::bn256::G1Affine;
use halo2_axiom::plonk::ProvingKey;
use halo2_axiom::spillproof::{open_proving_key, save_proving_key};
use halo2_axiom::SerdeFormat;

use crate::drop_in::erased::{Any, Listed};
use crate::{drop_in, in_session, turn, Scheme, SESSION_BYTES};

type Circuit = drop_in::lookups::Lookups;

/// Small and large against a frame of 512 scalars.
const SIZES: [u32; 2] = [8, 11];

fn open(path: &Path) -> std::io::Result<ProvingKey<G1Affine>> {
    open_proving_key::<Any>(path, Circuit::WHICH)
}

#[test]
fn a_key_that_was_saved_is_the_key_that_is_opened() {
    let _turn = turn(true);
    for k in SIZES {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("circuit.pk");
        let memory = drop_in::prove::keys::<Circuit>(&drop_in::prove::params(k), k);
        let bytes = memory.to_bytes(SerdeFormat::RawBytes);
        let expected = in_session(SESSION_BYTES, || {
            let params = drop_in::prove::params(k);
            let pk = drop_in::prove::keys::<Circuit>(&params, k);
            let root = save_proving_key(&pk, &path).unwrap();
            assert_ne!(
                root,
                save_proving_key(&memory, &path).unwrap(),
                "every file has a name of its own"
            );
            drop_in::prove::prove(
                &params,
                &pk,
                &[drop_in::prove::circuit::<Circuit>(k)],
                Scheme::Shplonk,
            )
        });
        in_session(SESSION_BYTES, || {
            let params = drop_in::prove::params(k);
            let keys = [open(&path).unwrap(), open(&path).unwrap()];
            for pk in &keys {
                assert!(pk.to_bytes(SerdeFormat::RawBytes) == bytes, "k = {k}");
                let circuit = drop_in::prove::circuit::<Circuit>(k);
                let proof = drop_in::prove::prove(&params, pk, &[circuit], Scheme::Shplonk);
                assert!(proof == expected, "k = {k}: the proof differs");
            }
        });
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}

#[test]
fn what_is_no_key_of_this_circuit_is_refused() {
    let _turn = turn(true);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("circuit.pk");
    let k = 8;
    let pk = drop_in::prove::keys::<Circuit>(&drop_in::prove::params(k), k);
    assert!(
        save_proving_key(&pk, &path).is_err() && open(&path).is_err(),
        "there is no session"
    );
    assert!(!path.exists());
    in_session(SESSION_BYTES, || {
        assert!(save_proving_key(&pk, dir.path().join("nowhere/circuit.pk")).is_err());
        save_proving_key(&pk, &path).unwrap();
        let other = open_proving_key::<Any>(&path, drop_in::chain::Chain::WHICH);
        assert!(other.is_err(), "a key of another circuit");

        let good = std::fs::read(&path).unwrap();
        let damaged = |at: usize| {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, bytes).unwrap();
        };
        // The header, the key's bytes, and the last of the digests' padding.
        for at in [100, 4096 + 10, good.len() - 1] {
            damaged(at);
            assert!(open(&path).is_err(), "byte {at}");
        }
        // A polynomial: found when it is read.
        damaged(good.len() / 2);
        let opened = open(&path).unwrap();
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            opened.to_bytes(SerdeFormat::RawBytes)
        }));
        let payload = read.expect_err("a damaged polynomial was read");
        let error = payload.downcast_ref::<spillproof_engine::Error>();
        assert!(
            matches!(error, Some(spillproof_engine::Error::Damaged { .. })),
            "{error:?}"
        );
        std::fs::write(&path, &good[..good.len() - 4096]).unwrap();
        assert!(open(&path).is_err(), "a truncated file");
        std::fs::write(&path, &good).unwrap();
        assert!(open(&path).is_ok());
    });
}
