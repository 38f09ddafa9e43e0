//! The JSON of proofs, public signals and verification keys, in the forms in which programs write it.

use std::path::Path;
use std::sync::Arc;

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use num_bigint::BigUint;
use serde_json::{Value, json};
use spillproof_circom::json::KeyFile;
use spillproof_circom::prove::{Key, prove, verification_key_of, verify};
use spillproof_engine::Session;
use spillproof_format::Curve;
use spillproof_format::iden3::FileKind;
use spillproof_groth16::{PairingCurve, VerifyingKey};

use crate::circom_files;
use crate::r1cs::{self, Circuit, Values};

/// A key, public signals and a proof.
struct Files {
    session: Arc<Session>,
    dir: tempfile::TempDir,
    texts: [Value; 3],
}

const KEY: usize = 0;
const PUBLIC: usize = 1;
const PROOF: usize = 2;

impl Files {
    fn new<E: PairingCurve>(seed: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let session = Session::builder().memory("8MiB").dir(dir.path()).build();
        let session = Arc::new(session.unwrap());
        let circuit = Circuit::<E::Scalar>::random(seed, 20, 2, Values::Full);
        let [zkey, wtns] = ["c.zkey", "c.wtns"].map(|name| dir.path().join(name));
        let key = r1cs::Key::<E>::new(&circuit, seed);
        std::fs::write(&zkey, circom_files::zkey(&circuit, &key)).unwrap();
        std::fs::write(&wtns, circom_files::wtns::<E>(&circuit.witness)).unwrap();
        let proved = prove(&session, &zkey, &wtns, &mut |_| ()).unwrap();
        let key = Key::open(&session, &zkey, &mut |_| ()).unwrap();
        let texts = [key.verification_key().unwrap(), proved.public, proved.proof];
        Self {
            session,
            texts: texts.map(|text| serde_json::from_slice(&text).unwrap()),
            dir,
        }
    }

    /// The curve with which the changed files verify, or why they do not.
    fn verify(&self, change: impl FnOnce(&mut [Value; 3])) -> Result<Curve, String> {
        let mut texts = self.texts.clone();
        change(&mut texts);
        self.verify_texts(&texts.map(|text| text.to_string().into_bytes()))
    }

    fn verify_texts(&self, [key, public, proof]: &[Vec<u8>; 3]) -> Result<Curve, String> {
        let [of_key, of_public, of_proof] = ["key.json", "public.json", "proof.json"].map(Path::new);
        let files = [(of_key, &**key), (of_public, &**public), (of_proof, &**proof)];
        let verified = verify(&self.session, files).map_err(|error| error.to_string())?;
        match verified.verifies {
            true => Ok(verified.curve),
            false => Err("does not verify".into()),
        }
    }
}

/// Replaces each text of digits.
fn each_number(value: &mut Value, map: &impl Fn(&str) -> Value) {
    match value {
        Value::String(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => *value = map(text),
        Value::Array(values) => values.iter_mut().for_each(|value| each_number(value, map)),
        Value::Object(fields) => fields.values_mut().for_each(|value| each_number(value, map)),
        _ => (),
    }
}

fn remove(value: &mut Value, field: &str) {
    assert!(value.as_object_mut().unwrap().remove(field).is_some(), "{field}");
}

/// Points without their last coordinate.
fn affine(value: &mut Value) {
    for (name, value) in value.as_object_mut().unwrap() {
        let Value::Array(list) = value else { continue };
        match name.as_str() {
            "IC" => list
                .iter_mut()
                .for_each(|point| point.as_array_mut().unwrap().truncate(2)),
            _ => list.truncate(2),
        }
    }
}

fn every_clear_form_is_taken<E: PairingCurve>(curve: Curve, names: &[&str]) {
    let files = Files::new::<E>(3);
    assert_eq!(files.verify(|_| ()), Ok(curve));
    for name in names {
        for of in [&[KEY][..], &[PROOF], &[KEY, PROOF]] {
            let renamed = files.verify(|texts| of.iter().for_each(|at| texts[*at]["curve"] = json!(name)));
            assert_eq!(renamed, Ok(curve), "{name} in {of:?}");
        }
    }
    for of in [&[KEY][..], &[PROOF], &[KEY, PROOF]] {
        for field in ["curve", "protocol"] {
            let without = files.verify(|texts| of.iter().for_each(|at| remove(&mut texts[*at], field)));
            assert_eq!(without, Ok(curve), "{field} of {of:?}");
            let null = files.verify(|texts| of.iter().for_each(|at| texts[*at][field] = Value::Null));
            assert_eq!(null, Ok(curve), "{field} of {of:?}");
        }
        let found = files.verify(|texts| of.iter().for_each(|at| affine(&mut texts[*at])));
        assert_eq!(found, Ok(curve), "affine points in {of:?}");
    }
    assert_eq!(
        files.verify(|texts| remove(&mut texts[KEY], "nPublic")),
        Ok(curve)
    );
    let hex = |text: &str| {
        let value: BigUint = text.parse().unwrap();
        json!(format!("{value:#x}"))
    };
    let upper = |text: &str| {
        let value: BigUint = text.parse().unwrap();
        json!(format!("0x0{value:X}"))
    };
    let small = |text: &str| match text.parse::<u64>() {
        Ok(number) => json!(number),
        Err(_) => json!(format!("00{text}")),
    };
    for at in [KEY, PUBLIC, PROOF] {
        assert_eq!(
            files.verify(|texts| each_number(&mut texts[at], &hex)),
            Ok(curve),
            "{at}"
        );
        assert_eq!(
            files.verify(|texts| each_number(&mut texts[at], &upper)),
            Ok(curve),
            "{at}"
        );
        assert_eq!(
            files.verify(|texts| each_number(&mut texts[at], &small)),
            Ok(curve),
            "{at}"
        );
    }
    let padded = files
        .texts
        .clone()
        .map(|text| [text.to_string().as_bytes(), &[0; 9]].concat());
    assert_eq!(files.verify_texts(&padded), Ok(curve));
}

#[test]
fn every_clear_form_is_taken_over_bn254() {
    let names = ["bn128", "BN254", "bn-128", "alt_bn128", "altBN128", "bn_254"];
    every_clear_form_is_taken::<Bn254>(Curve::Bn254, &names);
}

#[test]
fn every_clear_form_is_taken_over_bls12_381() {
    every_clear_form_is_taken::<Bls12_381>(Curve::Bls12381, &["bls12381", "BLS12-381", "bls12_381"]);
}

#[test]
fn what_is_unclear_is_refused_by_name() {
    let files = Files::new::<Bn254>(4);
    let refused = |words: &[&str], change: &dyn Fn(&mut [Value; 3])| {
        let error = files.verify(change).unwrap_err();
        assert!(
            words.iter().all(|word| error.contains(word)),
            "{words:?}: {error}"
        );
    };
    for protocol in ["plonk", "fflonk"] {
        // Of another protocol, other fields are missing, too.
        refused(&["key.json", protocol, "groth16"], &|texts| {
            texts[KEY] = json!({ "protocol": protocol, "curve": "bn128", "nPublic": 2, "power": 6 });
        });
        refused(&["proof.json", protocol, "groth16"], &|texts| {
            texts[PROOF] = json!({ "protocol": protocol, "curve": "bn128", "A": ["1", "2", "1"] });
        });
    }
    for name in ["bn256", "secp256k1", ""] {
        refused(&["key.json", "curve"], &|texts| texts[KEY]["curve"] = json!(name));
        refused(&["proof.json", "curve"], &|texts| {
            texts[PROOF]["curve"] = json!(name)
        });
    }
    refused(&["proof.json", "another curve"], &|texts| {
        texts[PROOF]["curve"] = json!("bls12381")
    });
    refused(&["key.json", "names no curve", "vk_alpha_1"], &|texts| {
        remove(&mut texts[KEY], "curve");
        remove(&mut texts[PROOF], "curve");
        texts[KEY]["vk_alpha_1"] = json!(["0", "1", "0"]);
    });
    refused(&["key.json", "3 points of IC for 3"], &|texts| {
        texts[KEY]["nPublic"] = json!(3)
    });
    refused(&["key.json", "IC"], &|texts| {
        remove(&mut texts[KEY], "nPublic");
        texts[KEY]["IC"] = json!([]);
    });
    let long = "1".repeat(1000);
    let numbers = [
        json!("-1"),
        json!("+1"),
        json!("1_0"),
        json!(""),
        json!("0x"),
        json!("0X1"),
        json!("1.5"),
        json!(-1),
        json!(1.5),
        json!(1e30),
        json!(true),
        json!(long),
        Value::Null,
    ];
    for number in numbers {
        refused(&["public.json", "a number"], &|texts| {
            texts[PUBLIC][0] = number.clone()
        });
        refused(&["proof.json", "a number"], &|texts| {
            texts[PROOF]["pi_a"][0] = number.clone()
        });
    }
    let modulus = "21888242871839275222246405745257275088548364400416034343698204186575808495617";
    refused(&["public.json", "not below the modulus"], &|texts| {
        texts[PUBLIC][0] = json!(modulus)
    });
    refused(&["proof.json", "pi_a", "neither 0 nor 1"], &|texts| {
        texts[PROOF]["pi_a"][2] = json!("2")
    });
    refused(&["proof.json", "pi_c", "1 coordinates"], &|texts| {
        texts[PROOF]["pi_c"] = json!(["1"])
    });
    refused(&["proof.json", "pi_b"], &|texts| {
        remove(&mut texts[PROOF], "pi_b")
    });
    refused(&["does not verify"], &|texts| texts[PUBLIC][0] = json!("0x1"));
}

/// rapidsnark's proofs name no curve.
#[test]
fn a_proof_of_rapidsnark_verifies() {
    let files = Files::new::<Bn254>(5);
    let texts = [
        &include_bytes!("../fixtures/rapidsnark_vk.json")[..],
        include_bytes!("../fixtures/rapidsnark_public.json"),
        include_bytes!("../fixtures/rapidsnark_proof.json"),
    ];
    assert_eq!(files.verify_texts(&texts.map(<[u8]>::to_vec)), Ok(Curve::Bn254));
}

/// A key of snarkjs is written with all of its numbers, the pairing of alpha and beta among them.
#[test]
fn keys_are_written_as_snarkjs_writes_them() {
    let dir = tempfile::tempdir().unwrap();
    let session = Session::builder().memory("8MiB").dir(dir.path()).build().unwrap();
    let name = Path::new("rapidsnark_vk.json");
    let text = include_bytes!("../fixtures/rapidsnark_vk.json");
    let points = KeyFile::parse((name, text))
        .unwrap()
        .points::<Bn254>(name)
        .unwrap();
    let key = VerifyingKey::<Bn254>::in_memory(session.workspace(), points.alpha, points.others, &points.ic);
    let written = KeyFile::text(&key.unwrap(), Curve::Bn254).unwrap();
    let [written, expected] = [&*written, text].map(|text| serde_json::from_slice::<Value>(text).unwrap());
    assert!(expected["vk_alphabeta_12"].is_array());
    assert_eq!(written, expected);
}

/// Section of a `.zkey` file with the points of IC.
const IC: u32 = 3;
/// The coefficients, and the points of sums.
const NOT_NEEDED: std::ops::RangeInclusive<u32> = 4..=9;

/// From the key's file, whose other sections are not read; a point of IC off the curve is found.
fn a_verification_key_needs_header_and_ic<E: PairingCurve>(curve: Curve) {
    let files = Files::new::<E>(5);
    let zkey = files.dir.path().join("c.zkey");
    let exported = || verification_key_of(&files.session, &zkey, &mut |_| ());
    let mut bytes = std::fs::read(&zkey).unwrap();
    for section in NOT_NEEDED {
        let range = circom_files::section(FileKind::Zkey, &bytes, section);
        // The number of coefficients goes with the length of their section.
        let kept = if section == 4 { 4 } else { 0 };
        bytes[range][kept..].fill(0xff);
    }
    std::fs::write(&zkey, &bytes).unwrap();
    let (text, summary) = exported().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), files.texts[KEY]);
    assert_eq!((summary.curve, summary.shape.public), (curve, 2));

    let ic = circom_files::section(FileKind::Zkey, &bytes, IC);
    bytes[ic.end - 1] ^= 1;
    std::fs::write(&zkey, &bytes).unwrap();
    let refused = exported().unwrap_err().to_string();
    assert!(refused.contains("IC") && refused.contains("point 2"), "{refused}");
}

#[test]
fn a_verification_key_needs_header_and_ic_of_a_file() {
    a_verification_key_needs_header_and_ic::<Bn254>(Curve::Bn254);
    a_verification_key_needs_header_and_ic::<Bls12_381>(Curve::Bls12381);
}
