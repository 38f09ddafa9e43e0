//! First phases of ceremonies: prepared, verified, and as an SRS. The tests know the secrets.

use std::path::{Path, PathBuf};

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ec::{AffineRepr, CurveGroup};
use spillproof_commit::{Srs, generate_scratch};
use spillproof_engine::Error;
use spillproof_engine::error::Invalid;
use spillproof_format::iden3::{FileKind, ptau};
use spillproof_format::native::point_bytes;
use spillproof_format::{Curve, FormatError};
use spillproof_groth16::PairingCurve;
use spillproof_groth16::iden3::{import_ptau, prepare_ptau, setup, truncate_ptau, verify_ptau};

use crate::circom_files;
use crate::common::{on_one_and_two_threads, place};
use crate::r1cs::{Circuit, Secrets, Values};

const MIB: u64 = 1 << 20;

fn write(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, bytes).expect("a file");
    path
}

fn prepared_files_are_those_of_the_secrets<E: PairingCurve>(powers: &[u32], curve: Curve) {
    let dir = tempfile::tempdir().expect("a folder");
    let target = dir.path().join("prepared.ptau");
    for &power in powers {
        let secrets = Secrets::random(u64::from(power));
        let [raw, prepared] =
            [false, true].map(|is_prepared| circom_files::ptau::<E>(power, &secrets, is_prepared));
        let raw = write(dir.path(), "raw.ptau", &raw);
        on_one_and_two_threads(|| {
            for budget_bytes in [6 * MIB, 64 * MIB] {
                let place = place(budget_bytes);
                let workspace = &place.workspace;
                let found = prepare_ptau(workspace, [&raw, &target], &mut |_| ()).expect("a file");
                assert_eq!(found, (power, curve));
                assert!(std::fs::read(&target).expect("a file") == prepared, "{power}");
                for (file, is_prepared) in [(&raw, false), (&target, true)] {
                    let verified = verify_ptau(workspace, file, &mut |_| ()).expect("a right file");
                    assert_eq!((verified.power, verified.is_prepared), (power, is_prepared));
                    assert_eq!(verified.curve, curve);
                }
                place.assert_nothing_held();
            }
        });
    }
}

#[test]
fn prepared_files_over_bn254_are_those_of_the_secrets() {
    prepared_files_are_those_of_the_secrets::<Bn254>(&[1, 4, 9], Curve::Bn254);
}

#[test]
fn prepared_files_over_bls12_381_are_those_of_the_secrets() {
    prepared_files_are_those_of_the_secrets::<Bls12_381>(&[3, 5], Curve::Bls12381);
}

#[test]
fn points_of_another_secret_are_found_in_every_section() {
    let dir = tempfile::tempdir().expect("a folder");
    let place = place(16 * MIB);
    let [file, other] = [1, 2].map(|seed| circom_files::ptau::<Bn254>(4, &Secrets::random(seed), true));
    let mut at = 12;
    let mut refused = 0;
    while at < file.len() {
        let id = u32::from_le_bytes(*file[at..].first_chunk().expect("an id"));
        let section_bytes = u64::from_le_bytes(*file[at + 4..].first_chunk().expect("a length")) as usize;
        let content = at + 12..at + 12 + section_bytes;
        at = content.end;
        let each = match id {
            ptau::HEADER | ptau::CONTRIBUTIONS => continue,
            ptau::TAU_G2 | ptau::BETA_G2 | ptau::LAGRANGE_G2 => point_bytes::<ark_bn254::g2::Config>(),
            _ => point_bytes::<ark_bn254::g1::Config>(),
        };
        for (number, point) in content.clone().step_by(each).enumerate() {
            // The first power, and the basis of one point, are the generator in both files.
            let mut changed = file.clone();
            changed[point..point + each].copy_from_slice(&other[point..point + each]);
            if changed == file {
                continue;
            }
            let path = write(dir.path(), "changed.ptau", &changed);
            let error = verify_ptau(&place.workspace, &path, &mut |_| ());
            let error = error.expect_err("points of two secrets");
            let is_named = matches!(
                error,
                Error::Format {
                    source: FormatError::Inconsistent { .. },
                    ..
                }
            );
            assert!(is_named, "point {number} of section {id}: {error}");
            refused += 1;
        }
    }
    assert!(refused > 200, "{refused}");
    for cut in [5, 11, 40, 100, file.len() / 2, file.len() - 1] {
        let path = write(dir.path(), "cut.ptau", &file[..cut]);
        let error = verify_ptau(&place.workspace, &path, &mut |_| ()).expect_err("a short file");
        assert!(matches!(error, Error::Format { .. }), "{error}");
        let target = write(dir.path(), "kept.ptau", b"kept");
        assert!(prepare_ptau(&place.workspace, [&path, &target], &mut |_| ()).is_err());
        assert_eq!(std::fs::read(&target).expect("a file"), b"kept");
    }
    place.assert_nothing_held();
}

/// The bytes of the largest Lagrange basis, of twice the rows, in a file.
fn largest_basis(file: &[u8], power: u32) -> std::ops::Range<usize> {
    let section = circom_files::section(FileKind::Ptau, file, ptau::LAGRANGE_G1);
    section.end - (point_bytes::<ark_bn254::g1::Config>() << (power + 1))..section.end
}

/// A file that is cut verifies, whatever its power, and makes the keys of the whole one.
#[test]
fn files_that_were_cut_verify_and_make_the_same_keys() {
    let (dir, place) = (tempfile::tempdir().expect("a folder"), place(16 * MIB));
    let workspace = &place.workspace;
    let circuit = Circuit::<ark_bn254::Fr>::random(11, 20, 2, Values::Full);
    let r1cs = write(dir.path(), "c.r1cs", &circom_files::r1cs::<Bn254>(&circuit));
    for is_prepared in [false, true] {
        let whole = circom_files::ptau::<Bn254>(6, &Secrets::random(11), is_prepared);
        let whole = write(dir.path(), "whole.ptau", &whole);
        let [cut, ours, theirs] = ["cut.ptau", "ours.zkey", "theirs.zkey"].map(|name| dir.path().join(name));
        for power in 1..6 {
            let made = truncate_ptau(workspace, [&whole, &cut], power, &mut |_| ()).expect("a file");
            assert_eq!(
                (made.power, made.ceremony_power, made.is_prepared),
                (power, 6, is_prepared)
            );
            let verified = verify_ptau(workspace, &cut, &mut |_| ()).expect("a right file");
            assert_eq!((verified.power, verified.ceremony_power), (power, 6));
            assert_eq!(verified.is_prepared, is_prepared);
        }
        // Of 2^5 rows, the power of the last cut.
        assert_eq!(circuit.log_domain(), 5);
        setup(workspace, [&r1cs, &whole], &theirs, &mut |_| ()).expect("a key");
        let made = setup(workspace, [&r1cs, &cut], &ours, &mut |_| ()).expect("a key");
        assert_eq!(made.shape.log_domain, 5);
        let [ours, theirs] = [ours, theirs].map(|file| std::fs::read(file).expect("a file"));
        // A cut without the bases lacks the last power of twice the rows.
        assert_eq!(ours == theirs, is_prepared);
        for power in [0, 6, 7, 64] {
            let error = truncate_ptau(workspace, [&whole, &cut], power, &mut |_| ());
            let error = error.expect_err("no such power").to_string();
            assert!(
                error.contains("from 1 to 5") && error.contains("whole.ptau"),
                "{error}"
            );
        }
    }
    place.assert_nothing_held();
}

/// The last power of the largest basis is that of tau, or missing, and nothing else.
#[test]
fn a_largest_basis_with_another_last_power_is_refused() {
    let (dir, place) = (tempfile::tempdir().expect("a folder"), place(16 * MIB));
    let workspace = &place.workspace;
    let power = 3;
    let secrets = Secrets::random(12);
    let larger = circom_files::ptau::<Bn254>(power + 1, &secrets, true);
    let larger = write(dir.path(), "larger.ptau", &larger);
    let own = circom_files::ptau::<Bn254>(power, &secrets, true);
    let path = dir.path().join("cut.ptau");
    truncate_ptau(workspace, [&larger, &path], power, &mut |_| ()).expect("a file");
    let cut = std::fs::read(&path).expect("a file");
    let [with, without] = [&cut, &own]
        .map(|file| circom_files::read_points::<ark_bn254::g1::Config>(&file[largest_basis(file, power)]));
    // With so many times the last power.
    let forged = |times: u64| {
        let points = with.iter().zip(&without).map(|(with, without)| {
            let share = with.into_group() - without;
            (*without + share * ark_bn254::Fr::from(times)).into_affine()
        });
        let points = circom_files::points(&points.collect::<Vec<_>>());
        let mut bytes = cut.clone();
        let range = largest_basis(&bytes, power);
        bytes[range].copy_from_slice(&points);
        write(dir.path(), "forged.ptau", &bytes)
    };
    for (times, is_right) in [(0, true), (1, true), (2, false), (7, false)] {
        let verified = verify_ptau(workspace, &forged(times), &mut |_| ());
        assert_eq!(verified.is_ok(), is_right, "{times}: {verified:?}");
        if let Err(error) = verified {
            let source = matches!(
                error,
                Error::Format {
                    source: FormatError::Inconsistent { .. },
                    ..
                }
            );
            assert!(source, "{error}");
        }
    }
    place.assert_nothing_held();
}

#[test]
fn an_srs_of_a_first_phase_is_that_of_its_tau() {
    let dir = tempfile::tempdir().expect("a folder");
    let secrets = Secrets::random(9);
    let file = circom_files::ptau::<Bn254>(8, &secrets, false);
    let file = write(dir.path(), "powers.ptau", &file);
    let target = dir.path().join("srs");
    for budget_bytes in [6 * MIB, 64 * MIB] {
        let place = place(budget_bytes);
        let workspace = &place.workspace;
        for (k, expected) in [(None, 8), (Some(5), 5), (Some(0), 0)] {
            let (found, root) = import_ptau(workspace, [&file, &target], k, &mut |_| ()).expect("an SRS");
            assert_eq!(found, expected);
            let srs = <Srs>::open_container(workspace, &target).expect("an SRS");
            assert_eq!(srs.root(), Some(root));
            let theirs = generate_scratch::<Bn254>(workspace, expected, secrets.tau, |_| ()).expect("an SRS");
            for basis in [Srs::monomial, Srs::lagrange] {
                let [ours, theirs] =
                    [&srs, &theirs].map(|srs| basis(srs).expect("points").to_vec().expect("points"));
                assert!(ours == theirs, "k = {expected}");
            }
            assert_eq!(srs.pair(), theirs.pair());
        }
        let error =
            import_ptau(workspace, [&file, &target], Some(9), &mut |_| ()).expect_err("too large a k");
        assert!(
            matches!(error, Error::Invalid(Invalid::SrsSize { .. })),
            "{error}"
        );
        place.assert_nothing_held();
    }
    let other = circom_files::ptau::<Bls12_381>(4, &Secrets::random(9), false);
    let other = write(dir.path(), "other.ptau", &other);
    let place = place(16 * MIB);
    let error = import_ptau(&place.workspace, [&other, &target], None, &mut |_| ());
    let error = error.expect_err("another curve");
    assert!(
        matches!(error, Error::Invalid(Invalid::OtherCurve { .. })),
        "{error}"
    );
}
