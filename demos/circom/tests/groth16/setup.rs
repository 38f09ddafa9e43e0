//! Keys that are made from circuits and first phases. The tests know the secrets of the first phase, and
//! compute the same keys from these.

use std::path::Path;
use std::sync::Mutex;

use ark_bls12_381::Bls12_381;
use ark_bn254::{Bn254, Fr};
use ark_ff::Field;
use spillproof_engine::Error;
use spillproof_engine::error::Invalid;
use spillproof_format::Curve;
use spillproof_groth16::iden3::{Origin, contribute, read_wtns, read_zkey, setup, verify_zkey};
use spillproof_groth16::{PairingCurve, prove};

use crate::circom_files;
use crate::common::{on_one_and_two_threads, place};
use crate::proofs::blinding;
use crate::r1cs::{Circuit, Key, Secrets, Values, text};

const MIB: u64 = 1 << 20;
/// Of the circuit's hash and the number of contributions.
const CONTRIBUTIONS_BYTES: usize = 68;

fn write(dir: &Path, name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, bytes).expect("a file");
    path
}

fn keys_are_those_of_the_secrets<E: PairingCurve>(
    seed: u64,
    (constraints, public): (usize, usize),
    curve: Curve,
) {
    let dir = tempfile::tempdir().expect("a folder");
    let circuit = Circuit::<E::Scalar>::random(seed, constraints, public, Values::Full);
    let one = E::Scalar::ONE;
    let secrets = Secrets {
        gamma: one,
        delta: one,
        ..Secrets::random(seed)
    };
    let key = Key::<E>::of(&circuit, secrets);
    let expected = circom_files::zkey(&circuit, &key);
    let r1cs = write(dir.path(), "circuit.r1cs", &circom_files::r1cs::<E>(&circuit));
    let wtns = write(
        dir.path(),
        "witness.wtns",
        &circom_files::wtns::<E>(&circuit.witness),
    );
    let target = dir.path().join("key.zkey");
    let hashes = Mutex::new(Vec::new());
    for above in [0, 1] {
        for is_prepared in [false, true] {
            let bytes = circom_files::ptau::<E>(circuit.log_domain() + above, &secrets, is_prepared);
            let ptau = write(dir.path(), "powers.ptau", &bytes);
            on_one_and_two_threads(|| {
                for budget_bytes in [6 * MIB, 64 * MIB] {
                    let place = place(budget_bytes);
                    let workspace = &place.workspace;
                    let made = setup(workspace, [&r1cs, &ptau], &target, &mut |_| ()).expect("a key");
                    assert_eq!(made.curve, curve);
                    hashes.lock().expect("a lock").push(made.circuit_hash);
                    let found = std::fs::read(&target).expect("a file");
                    if above == 1 {
                        let end = found.len() - CONTRIBUTIONS_BYTES;
                        assert!(found[..end] == expected[..end], "{constraints} constraints");
                    }
                    // Without the last power the points of the quotient are others, which prove as well.
                    let key = read_zkey::<E>(workspace, &target, &mut |_| ()).expect("a key");
                    assert_eq!(key.shape().expect("a shape"), made.shape);
                    let witness = read_wtns::<E>(workspace, &wtns, &mut |_| ()).expect("a witness");
                    let random = blinding(seed);
                    let proof = prove(&key, &witness, random).expect("a proof");
                    if above == 1 {
                        let theirs = Key::<E>::of(&circuit, secrets).prove(&circuit, random);
                        assert!(text(&proof) == theirs);
                    }
                }
            });
        }
    }
    let hashes = hashes.into_inner().expect("a lock");
    assert!(hashes.iter().all(|hash| *hash == hashes[0]));
}

#[test]
fn keys_over_bn254_are_those_of_the_secrets() {
    for (seed, sizes) in [(1, 0), (6, 1), (250, 3)].into_iter().enumerate() {
        keys_are_those_of_the_secrets::<Bn254>(seed as u64, sizes, Curve::Bn254);
    }
}

#[test]
fn keys_over_bls12_381_are_those_of_the_secrets() {
    keys_are_those_of_the_secrets::<Bls12_381>(7, (60, 2), Curve::Bls12381);
}

/// Four signals, of which none is public, and nothing that binds them.
fn without_constraints() -> Circuit<Fr> {
    Circuit {
        public: 0,
        a: Vec::new(),
        b: Vec::new(),
        c: Vec::new(),
        witness: [1u64, 5, 6, 7].map(Fr::from).to_vec(),
    }
}

/// The first phase and the key are files of snarkjs (`tests/fixtures`).
#[test]
fn a_circuit_without_constraints_has_the_key_of_snarkjs() {
    let dir = tempfile::tempdir().expect("a folder");
    let circuit = without_constraints();
    let r1cs = write(dir.path(), "c.r1cs", &circom_files::r1cs::<Bn254>(&circuit));
    let wtns = write(
        dir.path(),
        "c.wtns",
        &circom_files::wtns::<Bn254>(&circuit.witness),
    );
    let ptau = write(
        dir.path(),
        "p.ptau",
        include_bytes!("../fixtures/ceremony_bn128.ptau"),
    );
    let [first, second] = ["0.zkey", "1.zkey"].map(|name| dir.path().join(name));
    for budget_bytes in [6 * MIB, 64 * MIB] {
        let place = place(budget_bytes);
        let workspace = &place.workspace;
        let made = setup(workspace, [&r1cs, &ptau], &first, &mut |_| ()).expect("a key");
        assert_eq!((made.shape.log_domain, made.shape.public), (1, 0));
        let expected = include_bytes!("../fixtures/no_constraints.zkey");
        assert!(std::fs::read(&first).expect("a file") == expected);
        let origin = Origin::Entropy(Vec::new());
        contribute(workspace, [&first, &second], None, &origin, &mut |_| ()).expect("a contribution");
        let verified = verify_zkey(workspace, [&r1cs, &ptau, &second], &mut |_| ()).expect("a right key");
        assert_eq!(verified.contributors.len(), 1);
        let key = read_zkey::<Bn254>(workspace, &second, &mut |_| ()).expect("a key");
        let witness = read_wtns::<Bn254>(workspace, &wtns, &mut |_| ()).expect("a witness");
        prove(&key, &witness, blinding(4)).expect("a proof that verifies");
        drop((key, witness));
        place.assert_nothing_held();
    }
}

#[test]
fn files_that_make_no_key_are_refused() {
    let (place, dir) = (place(16 * MIB), tempfile::tempdir().expect("a folder"));
    let workspace = &place.workspace;
    let circuit = Circuit::<Fr>::random(3, 40, 2, Values::Full);
    let secrets = Secrets::random(3);
    let (r1cs, ptau) = (
        circom_files::r1cs::<Bn254>(&circuit),
        circom_files::ptau::<Bn254>(6, &secrets, true),
    );
    let target = dir.path().join("key.zkey");
    std::fs::write(&target, "kept").expect("a file");
    let refused = |r1cs: &[u8], ptau: &[u8], named: &str| {
        let files = [
            write(dir.path(), "c.r1cs", r1cs),
            write(dir.path(), "p.ptau", ptau),
        ];
        let error = setup(workspace, [&files[0], &files[1]], &target, &mut |_| ());
        let error = error.expect_err("no key");
        let is_named = match &error {
            Error::Format { file, .. } => file.ends_with(named),
            Error::Invalid(Invalid::OtherCurve { file, .. }) => file.ends_with(named),
            _ => false,
        };
        assert!(is_named, "{error:?}");
        assert_eq!(std::fs::read(&target).expect("a file"), b"kept");
        place.assert_nothing_held();
    };
    refused(&r1cs, &circom_files::ptau::<Bn254>(5, &secrets, true), "p.ptau");
    refused(
        &r1cs,
        &circom_files::ptau::<Bls12_381>(6, &Secrets::random(4), false),
        "p.ptau",
    );
    // The key is over the circuit's curve.
    let other = Circuit::<ark_bls12_381::Fr>::random(3, 40, 2, Values::Full);
    refused(&circom_files::r1cs::<Bls12_381>(&other), &ptau, "p.ptau");
    refused(&ptau, &r1cs, "c.r1cs");
    for (file, named) in [(&r1cs, "c.r1cs"), (&ptau, "p.ptau")] {
        for cut in [3, 11, 50, 200, file.len() / 2, file.len() - 1] {
            let short = &file[..cut];
            match named {
                "c.r1cs" => refused(short, &ptau, named),
                _ => refused(&r1cs, short, named),
            }
        }
    }
    // A point of the Lagrange basis that is not on the curve.
    let mut damaged = ptau.clone();
    let at = damaged.len() - 500;
    damaged[at] ^= 1;
    refused(&r1cs, &damaged, "p.ptau");
}
