//! Keys and witnesses of circom and snarkjs: proofs over them are another library's, and damaged ones are
//! refused.

use std::path::Path;

use ark_bls12_381::Bls12_381;
use ark_bn254::{Bn254, Fr};
use ark_ec::AffineRepr;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use spillproof_engine::Error;
use spillproof_engine::column::Workspace;
use spillproof_engine::error::Invalid;
use spillproof_format::iden3::FileKind;
use spillproof_format::native::write_point;
use spillproof_format::{Curve, FormatError, PointFault};
use spillproof_groth16::iden3::{curve_of, import_zkey, read_wtns, read_zkey};
use spillproof_groth16::{PairingCurve, Proof, ProvingKey, prove};

use crate::circom_files;
use crate::common::{on_one_and_two_threads, place};
use crate::proofs::blinding;
use crate::r1cs::{Circuit, Key, Values, text};

const MIB: u64 = 1 << 20;

fn write(dir: &Path, name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, bytes).expect("a file");
    path
}

fn proved<E: PairingCurve>(
    workspace: &Workspace,
    key: &Path,
    witness: &Path,
    random: [E::Scalar; 2],
) -> spillproof_engine::Result<Proof<E>> {
    let key = read_zkey::<E>(workspace, key, &mut |_| ())?;
    let witness = read_wtns::<E>(workspace, witness, &mut |_| ())?;
    prove(&key, &witness, random)
}

fn same_as_another_library<E: PairingCurve>(seed: u64, constraints: usize, public: usize, curve: Curve) {
    let dir = tempfile::tempdir().expect("a folder");
    let circuit = Circuit::<E::Scalar>::random(seed, constraints, public, Values::Full);
    let key = Key::<E>::new(&circuit, seed);
    let random = blinding(seed);
    let expected = key.prove(&circuit, random);
    let zkey = write(dir.path(), "key.zkey", &circom_files::zkey(&circuit, &key));
    let wtns = write(
        dir.path(),
        "witness.wtns",
        &circom_files::wtns::<E>(&circuit.witness),
    );
    let container = dir.path().join("key.spill");
    on_one_and_two_threads(|| {
        for budget_bytes in [3 * MIB, 64 * MIB] {
            let place = place(budget_bytes);
            let workspace = &place.workspace;
            assert_eq!(
                curve_of(workspace, &zkey, FileKind::Zkey).expect("a curve"),
                curve
            );
            assert_eq!(
                curve_of(workspace, &wtns, FileKind::Wtns).expect("a curve"),
                curve
            );
            let proof = proved::<E>(workspace, &zkey, &wtns, random)
                .unwrap_or_else(|error| panic!("{constraints} constraints, {budget_bytes} bytes: {error}"));
            assert!(
                text(&proof) == expected,
                "{constraints} constraints, {budget_bytes} bytes"
            );

            let mut told = Vec::new();
            let imported =
                import_zkey(workspace, &zkey, &container, &mut |now| told.push(now)).expect("imported");
            assert!(told.iter().all(|now| now.done <= now.total) && told.last().is_some());
            let opened = ProvingKey::<E>::open_container(workspace, &container).expect("opened");
            assert_eq!(opened.shape().expect("a shape"), imported.shape);
            assert_eq!((imported.curve, imported.is_without_contribution), (curve, false));
            let witness = read_wtns::<E>(workspace, &wtns, &mut |_| ()).expect("a witness");
            let proof = prove(&opened, &witness, random).expect("a proof");
            assert!(
                text(&proof) == expected,
                "container, {constraints} constraints, {budget_bytes} bytes"
            );
        }
    });
}

#[test]
fn proofs_over_files_are_another_librarys() {
    for (seed, (constraints, public)) in [(1, 0), (100, 3), (100, 700), (3000, 2)].into_iter().enumerate() {
        same_as_another_library::<Bn254>(seed as u64, constraints, public, Curve::Bn254);
    }
    same_as_another_library::<Bls12_381>(9, 200, 1, Curve::Bls12381);
}

#[test]
fn files_that_do_not_fit_are_refused() {
    let (place, dir) = (place(16 * MIB), tempfile::tempdir().expect("a folder"));
    let workspace = &place.workspace;
    let circuit = Circuit::<Fr>::random(2, 60, 2, Values::Full);
    let key = Key::<Bn254>::new(&circuit, 2);
    let (zkey, wtns) = (
        circom_files::zkey(&circuit, &key),
        circom_files::wtns::<Bn254>(&circuit.witness),
    );
    let (key_file, witness_file) = (write(dir.path(), "zkey", &zkey), write(dir.path(), "wtns", &wtns));
    let proved = |key: &Path, witness: &Path| proved::<Bn254>(workspace, key, witness, blinding(1));
    proved(&key_file, &witness_file).expect("a proof");

    assert!(matches!(
        proved(&witness_file, &key_file),
        Err(Error::Format { .. })
    ));
    let over_another_curve = read_wtns::<Bls12_381>(workspace, &witness_file, &mut |_| ());
    assert!(matches!(
        over_another_curve,
        Err(Error::Invalid(Invalid::OtherCurve { .. }))
    ));
    let over_another_curve = read_zkey::<Bls12_381>(workspace, &key_file, &mut |_| ());
    assert!(matches!(
        over_another_curve.err(),
        Some(Error::Invalid(Invalid::OtherCurve { .. }))
    ));

    let of_another_circuit = Circuit::<Fr>::random(3, 61, 2, Values::Full);
    let other = write(
        dir.path(),
        "other",
        &circom_files::wtns::<Bn254>(&of_another_circuit.witness),
    );
    assert!(matches!(
        proved(&key_file, &other),
        Err(Error::Invalid(Invalid::Length { .. }))
    ));
    let mut wrong = circuit.witness.clone();
    wrong[40] += Fr::from(1u64);
    let wrong = write(dir.path(), "wrong", &circom_files::wtns::<Bn254>(&wrong));
    assert!(matches!(
        proved(&key_file, &wrong),
        Err(Error::Invalid(Invalid::NotSatisfied))
    ));

    // No byte of a key or of a witness can be changed so that a wrong proof comes out, or a panic.
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let (mut refused, mut proofs) = (0, 0);
    for (good, is_key) in [(&zkey, true), (&wtns, false)] {
        for at in (0..good.len()).step_by(if is_key { 131 } else { 17 }) {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << (rng.next_u32() % 8);
            let damaged = write(dir.path(), "damaged", &bytes);
            let result = match is_key {
                true => proved(&damaged, &witness_file),
                false => proved(&key_file, &damaged),
            };
            match result {
                // The hash of the circuit; coefficients in rows whose other combination is zero; coefficients
                // and points of signals that are zero, as a third of them is.
                Ok(_) => proofs += 1,
                Err(Error::Format { .. } | Error::Invalid(_)) => refused += 1,
                Err(other) => panic!("byte {at}: {other}"),
            }
        }
        for len in (0..good.len()).step_by(good.len() / 40) {
            let short = write(dir.path(), "short", &good[..len]);
            let result = match is_key {
                true => proved(&short, &witness_file),
                false => proved(&key_file, &short),
            };
            assert!(
                matches!(result, Err(Error::Format { .. })),
                "{len} bytes: {result:?}"
            );
        }
    }
    println!("{refused} files refused, {proofs} proved all the same");
    assert!(proofs < refused / 2, "{refused} refused, {proofs} proved");
}

/// On the curve, but outside of the subgroup of prime order, which a sum shows; the error says where.
#[test]
fn points_outside_of_the_subgroup_are_named() {
    use ark_bls12_381::{Fq, G1Affine};

    let (place, dir) = (place(16 * MIB), tempfile::tempdir().expect("a folder"));
    let circuit = Circuit::<ark_bls12_381::Fr>::random(3, 30, 2, Values::Full);
    let key = Key::<Bls12_381>::new(&circuit, 3);
    let good = circom_files::zkey(&circuit, &key);
    let bytes_of = |point: &G1Affine| {
        let mut bytes = [0; 96];
        write_point(point, &mut bytes);
        bytes
    };
    let stray = (1u64..)
        .filter_map(|x| G1Affine::get_point_from_x_unchecked(Fq::from(x), false))
        .find(|point| !point.is_in_correct_subgroup_assuming_on_curve())
        .expect("most points of the curve");
    for points in [&key.key.a_query, &key.key.l_query, &key.key.h_query] {
        let mut places = points.iter().enumerate().skip(4);
        let (index, point) = places.find(|(_, point)| !point.is_zero()).expect("some are not");
        let point = bytes_of(point);
        let at = good
            .windows(96)
            .position(|window| window == point)
            .expect("in the file");
        let mut bytes = good.clone();
        bytes[at..][..96].copy_from_slice(&bytes_of(&stray));
        let (file, target) = (write(dir.path(), "zkey", &bytes), dir.path().join("container"));
        let refused = import_zkey(&place.workspace, &file, &target, &mut |_| ()).err();
        match refused {
            Some(Error::Format {
                source:
                    FormatError::Point {
                        index: found,
                        offset,
                        fault: PointFault::NotInSubgroup,
                        ..
                    },
                ..
            }) => assert_eq!((found, offset), (index as u64, at as u64)),
            other => panic!("{other:?}"),
        }
        assert!(!target.exists());
    }
}
