//! Contributions to keys, and keys that are not those of their circuit, powers and contributions.

use std::path::{Path, PathBuf};

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ec::CurveGroup;
use ark_ff::Field;
use spillproof_engine::Error;
use spillproof_engine::error::Invalid;
use spillproof_format::iden3::{FileKind, zkey};
use spillproof_format::{Curve, FormatError};
use spillproof_groth16::iden3::{Origin, VerifiedKey, contribute, read_wtns, read_zkey, setup, verify_zkey};
use spillproof_groth16::{PairingCurve, prove};

use crate::circom_files;
use crate::common::{Place, place};
use crate::proofs::blinding;
use crate::r1cs::{Circuit, Secrets, Values};

const MIB: u64 = 1 << 20;
/// The beacon of every test.
const BEACON: [u8; 4] = [1, 2, 3, 4];

struct Ceremony<E: PairingCurve> {
    place: Place,
    dir: tempfile::TempDir,
    circuit: Circuit<E::Scalar>,
}

impl<E: PairingCurve> Ceremony<E> {
    fn new(seed: u64, constraints: usize, budget_bytes: u64) -> Self {
        let circuit = Circuit::<E::Scalar>::random(seed, constraints, 2, Values::Full);
        let ceremony = Self {
            place: place(budget_bytes),
            dir: tempfile::tempdir().expect("a folder"),
            circuit,
        };
        let circuit = &ceremony.circuit;
        let secrets = Secrets::random(seed);
        let powers = circom_files::ptau::<E>(circuit.log_domain() + 1, &secrets, true);
        ceremony.write("circuit.r1cs", &circom_files::r1cs::<E>(circuit));
        ceremony.write("powers.ptau", &powers);
        ceremony.write("witness.wtns", &circom_files::wtns::<E>(&circuit.witness));
        let files = ["circuit.r1cs", "powers.ptau"].map(|name| ceremony.path(name));
        let workspace = &ceremony.place.workspace;
        let target = ceremony.path("0.zkey");
        setup(workspace, [&files[0], &files[1]], &target, &mut |_| ()).expect("a key");
        ceremony
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).expect("a file");
    }

    fn contribute(&self, [key, target]: [&str; 2], name: Option<&str>, origin: &Origin) -> [u8; 64] {
        let (key, target) = (self.path(key), self.path(target));
        let made = contribute(&self.place.workspace, [&key, &target], name, origin, &mut |_| ());
        made.expect("a contribution").hash
    }

    fn verify(&self, key: &str) -> Result<VerifiedKey, Error> {
        self.verify_with("circuit.r1cs", "powers.ptau", &self.path(key))
    }

    fn verify_with(&self, r1cs: &str, ptau: &str, key: &Path) -> Result<VerifiedKey, Error> {
        let (r1cs, ptau) = (self.path(r1cs), self.path(ptau));
        verify_zkey(&self.place.workspace, [&r1cs, &ptau, key], &mut |_| ())
    }

    fn proves(&self, key: &str) {
        let workspace = &self.place.workspace;
        let key = read_zkey::<E>(workspace, &self.path(key), &mut |_| ()).expect("a key");
        let witness = read_wtns::<E>(workspace, &self.path("witness.wtns"), &mut |_| ()).expect("a witness");
        prove(&key, &witness, blinding(5)).expect("a proof that verifies");
    }
}

fn secret(text: &str) -> Origin {
    Origin::Entropy(text.as_bytes().to_vec())
}

fn beacon() -> Origin {
    Origin::Beacon {
        value: BEACON.to_vec(),
        iterations_log: 10,
    }
}

fn a_ceremony<E: PairingCurve>(seed: u64, constraints: usize, curve: Curve) {
    for budget_bytes in [6 * MIB, 64 * MIB] {
        let ceremony = Ceremony::<E>::new(seed, constraints, budget_bytes);
        let first = ceremony.contribute(["0.zkey", "1.zkey"], Some("first"), &secret("some text"));
        let second = ceremony.contribute(["1.zkey", "2.zkey"], None, &secret(""));
        let last = ceremony.contribute(["2.zkey", "3.zkey"], Some("last"), &beacon());
        for (key, hashes) in [
            ("0.zkey", &[][..]),
            ("1.zkey", &[first]),
            ("3.zkey", &[first, second, last]),
        ] {
            let verified = ceremony.verify(key).expect("a key that verifies");
            let found: Vec<[u8; 64]> = verified.contributors.iter().map(|one| one.hash).collect();
            assert_eq!((&found[..], verified.curve), (hashes, curve));
            ceremony.proves(key);
        }
        let verified = ceremony.verify("3.zkey").expect("a key that verifies");
        let names: Vec<_> = verified
            .contributors
            .iter()
            .map(|one| one.name.as_deref())
            .collect();
        assert_eq!(names, [Some("first"), None, Some("last")]);
        // The same text gives another secret.
        let again = ceremony.contribute(["0.zkey", "4.zkey"], Some("first"), &secret("some text"));
        assert_ne!(again, first);
        ceremony.place.assert_nothing_held();
    }
}

#[test]
fn a_ceremony_over_bn254() {
    a_ceremony::<Bn254>(1, 60, Curve::Bn254);
}

#[test]
fn a_ceremony_over_bls12_381() {
    a_ceremony::<Bls12_381>(2, 20, Curve::Bls12381);
}

#[test]
fn every_part_that_was_changed_is_found() {
    let ceremony = Ceremony::<Bn254>::new(3, 20, 16 * MIB);
    ceremony.contribute(["0.zkey", "1.zkey"], Some("first"), &secret(""));
    ceremony.contribute(["1.zkey", "2.zkey"], None, &beacon());
    let key = std::fs::read(ceremony.path("2.zkey")).expect("a file");
    ceremony.verify("2.zkey").expect("a key that verifies");
    // Every byte of a section of points is in a range check, a curve equation, a comparison or a sum; a step
    // that is prime to their lengths.
    let mut found = [0; 2];
    for at in (12..key.len()).step_by(61) {
        let mut changed = key.clone();
        changed[at] ^= 1;
        ceremony.write("changed.zkey", &changed);
        match ceremony.verify("changed.zkey") {
            // Nothing depends on a name.
            Ok(verified) => assert_ne!(verified.contributors[0].name.as_deref(), Some("first"), "{at}"),
            Err(Error::Format {
                source: FormatError::NotDerived { .. },
                ..
            }) => found[0] += 1,
            Err(Error::Format { .. }) => found[1] += 1,
            Err(error) => panic!("{at}: {error}"),
        }
    }
    assert!(found[0] > 10 && found[1] > 10, "{found:?}");
    ceremony.place.assert_nothing_held();
}

/// The points of H, as the inverse transform of n points, and the root of unity of it.
struct PointsOfH {
    points: Vec<ark_bn254::G1Affine>,
    omega: ark_bn254::Fr,
}

impl PointsOfH {
    /// The `index`-th of the points that H is the transform of.
    fn coefficient(&self, index: u64) -> ark_bn254::G1Projective {
        let terms = (0u64..).zip(&self.points);
        terms
            .map(|(at, point)| *point * self.omega.pow([at * index]))
            .sum()
    }

    /// H with so many times the `index`-th point more.
    fn with_more(&self, index: u64, times: ark_bn254::Fr) -> Vec<u8> {
        let scale = times / ark_bn254::Fr::from(self.points.len() as u64);
        let coefficient = self.coefficient(index) * scale;
        let inverse = self.omega.inverse().expect("a root");
        let points = (0u64..).zip(&self.points);
        let points =
            points.map(|(at, point)| (coefficient * inverse.pow([at * index]) + point).into_affine());
        circom_files::points(&points.collect::<Vec<_>>())
    }
}

/// A key that went through `snarkjs zkey import bellman` has all points of H but the last one of the
/// transform.
#[test]
fn the_point_of_h_that_no_quotient_has_is_not_compared() {
    let ceremony = Ceremony::<Bn254>::new(8, 20, 16 * MIB);
    ceremony.contribute(["0.zkey", "1.zkey"], None, &secret(""));
    let key = std::fs::read(ceremony.path("1.zkey")).expect("a file");
    let range = circom_files::section(FileKind::Zkey, &key, zkey::H);
    let log_n = ceremony.circuit.log_domain();
    let (omega, _) = taceo_groth16::groth16_roots_of_unity(log_n as usize);
    let h = PointsOfH {
        points: circom_files::read_points::<ark_bn254::g1::Config>(&key[range.clone()]),
        omega,
    };
    let is_of_h = |error: &Error| {
        let Error::Format { source, .. } = error else {
            return false;
        };
        matches!(source, FormatError::NotDerived { what: "H", .. })
    };
    let last = (1 << log_n) - 1;
    let one = ark_bn254::Fr::from(1u64);
    for (index, times, is_right) in [
        (last, -one, true),
        (last, one, true),
        (0, -one, false),
        (last - 1, one, false),
    ] {
        let mut changed = key.clone();
        changed[range.clone()].copy_from_slice(&h.with_more(index, times));
        assert!(changed != key);
        ceremony.write("changed.zkey", &changed);
        match ceremony.verify("changed.zkey") {
            Ok(_) => {
                assert!(is_right, "{index}");
                ceremony.proves("changed.zkey");
            }
            Err(error) => assert!(!is_right && is_of_h(&error), "{index}: {error}"),
        }
    }
    ceremony.place.assert_nothing_held();
}

#[test]
fn keys_of_other_files_and_histories_are_refused() {
    let ceremony = Ceremony::<Bn254>::new(4, 20, 16 * MIB);
    ceremony.contribute(["0.zkey", "1.zkey"], None, &secret(""));
    ceremony.contribute(["0.zkey", "other.zkey"], None, &secret(""));
    let other_circuit = Circuit::random(5, 20, 2, Values::Full);
    ceremony.write("other.r1cs", &circom_files::r1cs::<Bn254>(&other_circuit));
    let log_domain = ceremony.circuit.log_domain();
    let other_powers = circom_files::ptau::<Bn254>(log_domain + 1, &Secrets::random(6), true);
    ceremony.write("other.ptau", &other_powers);
    let key = ceremony.path("1.zkey");
    for files in [["other.r1cs", "powers.ptau"], ["circuit.r1cs", "other.ptau"]] {
        let error = ceremony
            .verify_with(files[0], files[1], &key)
            .expect_err("a key of other files");
        let is_not_derived = matches!(
            error,
            Error::Format {
                source: FormatError::NotDerived { .. },
                ..
            }
        );
        assert!(is_not_derived, "{error}");
    }
    // The contributions of another key of the same circuit: they are in order, and delta is not what they
    // give.
    let [mut mixed, other] =
        ["1.zkey", "other.zkey"].map(|name| std::fs::read(ceremony.path(name)).expect("a file"));
    let tail = mixed.len() - 500;
    assert_eq!(mixed.len(), other.len());
    mixed[tail..].copy_from_slice(&other[tail..]);
    ceremony.write("mixed.zkey", &mixed);
    assert!(ceremony.verify("mixed.zkey").is_err());
    ceremony.place.assert_nothing_held();
}

#[test]
fn contributions_that_cannot_be_made_are_refused() {
    let ceremony = Ceremony::<Bn254>::new(7, 20, 16 * MIB);
    ceremony.write("kept.zkey", b"kept");
    let (key, target) = (ceremony.path("0.zkey"), ceremony.path("kept.zkey"));
    let with = |value: &[u8], iterations_log| Origin::Beacon {
        value: value.to_vec(),
        iterations_log,
    };
    let long = "x".repeat(65);
    for (name, origin) in [
        (Some(""), secret("")),
        (Some(&*long), secret("")),
        (None, with(&[], 10)),
        (None, with(&[0; 256], 10)),
        (None, with(&BEACON, 9)),
        (None, with(&BEACON, 64)),
    ] {
        let made = contribute(
            &ceremony.place.workspace,
            [&key, &target],
            name,
            &origin,
            &mut |_| (),
        );
        let error = made.expect_err("no contribution");
        assert!(
            matches!(error, Error::Invalid(Invalid::Contribution { .. })),
            "{error}"
        );
    }
    let whole = std::fs::read(&key).expect("a file");
    for cut in [11, 300, whole.len() / 2, whole.len() - 1] {
        ceremony.write("short.zkey", &whole[..cut]);
        let made = contribute(
            &ceremony.place.workspace,
            [&ceremony.path("short.zkey"), &target],
            None,
            &secret(""),
            &mut |_| (),
        );
        let error = made.expect_err("no contribution");
        assert!(matches!(error, Error::Format { .. }), "{error}");
    }
    assert_eq!(std::fs::read(&target).expect("a file"), b"kept");
    ceremony.place.assert_nothing_held();
}
