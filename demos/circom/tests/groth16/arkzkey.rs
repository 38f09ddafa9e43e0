//! Keys as `ark-zkey` writes them: arkworks' own bytes, of a key and then of the constraints.

use std::path::Path;

use ark_bn254::{Bn254, Fr};
use ark_serialize::{CanonicalSerialize, Compress};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use spillproof_circom::prove::{Key as Opened, import};
use spillproof_engine::Error;
use spillproof_engine::column::Placement;
use spillproof_engine::error::Invalid;
use spillproof_groth16::{arkworks, prove_in};
use spillproof_testing::session;

use crate::circom_files;
use crate::common::column_in;
use crate::proofs::blinding;
use crate::r1cs::{Circuit, Key, Values, text};

const MIB: u64 = 1 << 20;

/// The bytes of a key's file. Some writers leave the third matrix out.
fn arkzkey(circuit: &Circuit<Fr>, key: &Key<Bn254>, compress: Compress, with_c: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.key.serialize_with_mode(&mut bytes, compress).expect("bytes");
    let mut put = |value: &dyn Fn(&mut Vec<u8>)| value(&mut bytes);
    let public = circuit.public + 1;
    let terms = |matrix: &[Vec<(Fr, usize)>]| matrix.iter().map(Vec::len).sum::<usize>();
    let nothing = Vec::new();
    let c = if with_c { &circuit.c } else { &nothing };
    let numbers = [
        public,
        circuit.witness.len() - circuit.public,
        circuit.a.len(),
        terms(&circuit.a),
        terms(&circuit.b),
        terms(c),
    ];
    for number in numbers {
        put(&|bytes| number.serialize_with_mode(bytes, compress).expect("bytes"));
    }
    for matrix in [&circuit.a, &circuit.b, c] {
        put(&|bytes| matrix.serialize_with_mode(bytes, compress).expect("bytes"));
    }
    bytes
}

#[test]
fn keys_of_ark_zkey_prove() {
    for (seed, constraints, public, with_c) in [(1, 1, 0, true), (2, 90, 3, false), (3, 3000, 2, true)] {
        let circuit = Circuit::<Fr>::random(seed, constraints, public, Values::Full);
        let (key, random) = (Key::<Bn254>::new(&circuit, seed), blinding(seed));
        let expected = key.prove(&circuit, random);
        for compress in [Compress::No, Compress::Yes] {
            let (dir, session) = session(16 * MIB, 2);
            let [file, container, wtns] = ["c.arkzkey", "c.key", "c.wtns"].map(|name| dir.path().join(name));
            std::fs::write(&file, arkzkey(&circuit, &key, compress, with_c)).expect("a file");
            std::fs::write(&wtns, circom_files::wtns::<Bn254>(&circuit.witness)).expect("a file");
            let read = arkworks::read_zkey::<Bn254>(session.workspace(), &file, &mut |_| ()).expect("a key");
            let witness = column_in(session.workspace(), &circuit.witness, Placement::Disk);
            let proof = prove_in(&session, &read, &witness, random).expect("a proof");
            assert!(
                text(&proof) == expected,
                "{constraints} constraints, compressed: {}",
                compress == Compress::Yes
            );
            drop((read, witness));
            import(&session, &file, &container, &mut |_| ()).expect("a container");
            for path in [&file, &container] {
                let opened = Opened::open(&session, path, &mut |_| ()).expect("a key");
                assert_eq!(opened.shape().public, public as u64);
                let witness = opened.witness(&session, &wtns, &mut |_| ()).expect("a witness");
                // It verifies, or it would be an error.
                opened.prove(&session, &witness).expect("a proof");
            }
            assert_eq!(session.budget().held_bytes(), 0);
        }
    }
}

/// Cut off at 40 places, longer, and a bit changed at 200: an error that names the file, or the same proof.
#[test]
fn damaged_keys_of_ark_zkey_are_refused() {
    let circuit = Circuit::<Fr>::random(8, 40, 2, Values::Full);
    let (key, random) = (Key::<Bn254>::new(&circuit, 8), blinding(8));
    let expected = key.prove(&circuit, random);
    let seed = rand::random();
    println!("seed {seed}");
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let (dir, session) = session(32 * MIB, 2);
    let path = dir.path().join("key");
    let made = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("a file");
        let key = arkworks::read_zkey::<Bn254>(session.workspace(), Path::new(&path), &mut |_| ())?;
        let witness = column_in(session.workspace(), &circuit.witness, Placement::Disk);
        prove_in(&session, &key, &witness, random)
    };
    for compress in [Compress::No, Compress::Yes] {
        let bytes = arkzkey(&circuit, &key, compress, true);
        assert!(text(&made(&bytes).expect("a proof")) == expected);
        let cuts: Vec<usize> = (0..40).map(|_| rng.next_u64() as usize % bytes.len()).collect();
        for cut in cuts {
            let refused = made(&bytes[..cut]);
            assert!(
                matches!(refused, Err(Error::Format { .. })),
                "cut at {cut}: {refused:?}"
            );
        }
        assert!(matches!(
            made(&[&bytes[..], &[0]].concat()),
            Err(Error::Format { .. })
        ));
        let mut refused = 0;
        for _ in 0..200 {
            let (at, bit) = (rng.next_u64() as usize % bytes.len(), rng.next_u32() % 8);
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            match made(&changed) {
                // Of C, of the number of private variables, or of infinity.
                Ok(proof) => assert!(text(&proof) == expected, "byte {at}, bit {bit}: another proof"),
                Err(Error::Format { file, .. }) => {
                    assert_eq!(file, path);
                    refused += 1;
                }
                Err(Error::Invalid(Invalid::NotSatisfied)) => (),
                Err(other) => panic!("byte {at}, bit {bit}: {other:?}"),
            }
        }
        assert!(refused > 30, "{refused}");
        assert_eq!(session.budget().held_bytes(), 0);
    }
}
