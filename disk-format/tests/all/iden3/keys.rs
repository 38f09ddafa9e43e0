//! Proving keys.

use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{Field, One};
use spillproof_format::iden3::{FileKind, SCALAR_BYTES, zkey};
use spillproof_format::native::{NativeField, point_bytes, write_points};
use spillproof_format::{Curve, Element, FormatError, PointFault};

use super::{Section, file};
use crate::read_back::{cut, read_key};

const SIGNALS: u64 = 5;
const PUBLIC: u64 = 2;

fn times<P: SWCurveConfig>(scalar: u64) -> Affine<P> {
    (Affine::<P>::generator() * P::ScalarField::from(scalar)).into_affine()
}

fn points<P: SWCurveConfig>(count: u64) -> Vec<u8>
where
    P::BaseField: NativeField,
{
    let points: Vec<Affine<P>> = (1..=count).map(times).collect();
    let mut bytes = vec![0; points.len() * point_bytes::<P>()];
    write_points(&points, &mut bytes).unwrap();
    bytes
}

fn verifying_points<G1: SWCurveConfig, G2: SWCurveConfig>() -> zkey::VerifyingPoints<G1, G2> {
    zkey::VerifyingPoints {
        alpha1: times(3),
        beta1: times(4),
        beta2: times(4),
        gamma2: times(1),
        delta1: times(1),
        delta2: times(1),
    }
}

fn coefficients() -> Vec<zkey::Coefficient> {
    (0..7)
        .map(|i| zkey::Coefficient {
            matrix: i % 2,
            constraint: i,
            signal: i % 5,
            value: [i as u8; SCALAR_BYTES],
        })
        .collect()
}

/// The sections of a small key, in the order in which snarkjs writes them.
fn key<G1: SWCurveConfig, G2: SWCurveConfig>() -> Vec<Section>
where
    G1::BaseField: NativeField,
    G2::BaseField: NativeField,
{
    let mut header = Vec::new();
    zkey::Header::new(SIGNALS, PUBLIC, 3, &verifying_points::<G1, G2>())
        .unwrap()
        .encode(&mut header);
    let mut coefficient_bytes = (coefficients().len() as u32).to_le_bytes().to_vec();
    for coefficient in coefficients() {
        let mut bytes = [0; zkey::COEFFICIENT_BYTES];
        coefficient.encode(&mut bytes);
        coefficient_bytes.extend(bytes);
    }
    vec![
        (zkey::PROTOCOL, zkey::GROTH16.to_le_bytes().to_vec()),
        (zkey::HEADER, header),
        (zkey::COEFFICIENTS, coefficient_bytes),
        (zkey::IC, points::<G1>(PUBLIC + 1)),
        (zkey::H, points::<G1>(8)),
        (zkey::C, points::<G1>(SIGNALS - PUBLIC - 1)),
        (zkey::A, points::<G1>(SIGNALS)),
        (zkey::B1, points::<G1>(SIGNALS)),
        (zkey::B2, points::<G2>(SIGNALS)),
        (zkey::CONTRIBUTIONS, vec![7; 68]),
    ]
}

fn a_key_reads<G1: SWCurveConfig, G2: SWCurveConfig>(curve: Curve)
where
    G1::BaseField: NativeField,
    G2::BaseField: NativeField,
{
    let mut sections = key::<G1, G2>();
    for _ in 0..sections.len() {
        // Any order, and a section without a meaning.
        sections.rotate_left(1);
        let mut with_unknown = sections.clone();
        with_unknown.insert(3, (999, vec![1; 5]));
        let bytes = file(FileKind::Zkey, &with_unknown);
        let (header, layout) = read_key(&bytes).unwrap();
        assert_eq!(
            (header.curve(), header.signals(), header.public(), header.domain()),
            (curve, SIGNALS, PUBLIC, 8)
        );
        let found = header.verifying_points::<G1, G2>().unwrap();
        assert_eq!(found, verifying_points());
        assert!(found.is_without_contribution());
        for (range, id) in [
            (layout.ic, zkey::IC),
            (layout.a, zkey::A),
            (layout.b1, zkey::B1),
            (layout.b2, zkey::B2),
            (layout.c, zkey::C),
            (layout.h, zkey::H),
        ] {
            let (_, content) = sections.iter().find(|(other, _)| *other == id).unwrap();
            assert_eq!(cut(&bytes, range.byte_range()), content, "{}", range.what);
            assert_eq!(range.point_offset(range.count), range.byte_range().end());
        }
        let records = cut(&bytes, layout.coefficients.byte_range());
        for (i, (record, expected)) in records
            .chunks_exact(zkey::COEFFICIENT_BYTES)
            .zip(coefficients())
            .enumerate()
        {
            let coefficient = zkey::Coefficient::decode(record);
            assert_eq!(coefficient, expected);
            let offset = layout.coefficients.coefficient_offset(i as u64);
            assert_eq!(coefficient.check(i as u64, offset, &header), Ok(()));
        }
        assert_eq!(layout.coefficients.count, 7);
        assert_eq!(layout.contributions.unwrap().bytes, 68);
    }
}

#[test]
fn keys_of_both_curves_read() {
    a_key_reads::<ark_bn254::g1::Config, ark_bn254::g2::Config>(Curve::Bn254);
    a_key_reads::<ark_bls12_381::g1::Config, ark_bls12_381::g2::Config>(Curve::Bls12381);
}

pub fn bn254_key() -> Vec<Section> {
    key::<ark_bn254::g1::Config, ark_bn254::g2::Config>()
}

/// What is wrong with a key whose section `id` was changed.
fn changed(id: u32, change: impl FnOnce(&mut Vec<u8>)) -> FormatError {
    let mut sections = bn254_key();
    let (_, content) = sections.iter_mut().find(|(other, _)| *other == id).unwrap();
    change(content);
    let bytes = file(FileKind::Zkey, &sections);
    match read_key(&bytes) {
        Err(error) => error,
        Ok((header, _)) => header
            .verifying_points::<ark_bn254::g1::Config, ark_bn254::g2::Config>()
            .unwrap_err(),
    }
}

#[test]
fn other_proof_systems_are_refused_by_name() {
    for (protocol, name) in [(2, "PLONK"), (10, "FFLONK"), (3, "Groth16")] {
        let error = changed(zkey::PROTOCOL, |bytes| bytes[0] = protocol);
        assert!(error.to_string().contains(name), "{error}");
    }
    // A header of PLONK over BLS12-381 is longer than any of Groth16.
    let mut sections = bn254_key();
    sections[0].1[0] = 2;
    sections[1].1.resize(1132, 0);
    let error = read_key(&file(FileKind::Zkey, &sections)).unwrap_err();
    assert!(error.to_string().contains("PLONK"), "{error}");
}

#[test]
fn other_headers_are_refused() {
    let other_prime = changed(zkey::HEADER, |bytes| bytes[4] ^= 1);
    assert!(
        other_prime.to_string().contains("0x30644e72e131"),
        "{other_prime}"
    );
    for (at, value) in [
        // The prime's length, and the scalars' prime.
        (0, 31),
        (0, 255),
        (40, 0),
        // No signals, as many public ones as signals, as many as rows; domains.
        (72, 0),
        (76, 5),
        (80, 1),
        (80, 6),
        (80, 0),
        (83, 32),
    ] {
        let error = changed(zkey::HEADER, |bytes| bytes[at] = value);
        assert!(
            matches!(error, FormatError::Field { .. } | FormatError::Length { .. }),
            "byte {at}: {error}"
        );
    }
    assert!(matches!(
        changed(zkey::HEADER, |bytes| bytes.push(0)),
        FormatError::Length {
            expected_bytes: 660,
            actual_bytes: 661,
            ..
        }
    ));
    assert!(matches!(
        changed(zkey::HEADER, |bytes| bytes.resize(zkey::HEADER_BYTES_MAX + 1, 0)),
        FormatError::SectionLength { section: 2, .. }
    ));
}

#[test]
fn points_of_the_header_are_checked() {
    let off_the_curve = changed(zkey::HEADER, |bytes| bytes[84] ^= 1);
    assert!(
        matches!(
            off_the_curve,
            FormatError::Point {
                what: "alpha1",
                fault: PointFault::NotOnCurve,
                ..
            }
        ),
        "{off_the_curve}"
    );
    // beta2 follows two points of G1.
    let infinity = changed(zkey::HEADER, |bytes| bytes[84 + 128..84 + 256].fill(0));
    let offset = 12 + 12 + 4 + 12 + 84 + 128;
    assert!(
        matches!(infinity, FormatError::Point { what: "beta2", fault: PointFault::Infinity, offset: at, .. } if at == offset),
        "{infinity}"
    );
    // A point of the curve over the extension is rarely in the subgroup: the cofactor is not 1.
    let outside = (1u64..)
        .find_map(|x| {
            let x = ark_bn254::Fq2::new(x.into(), One::one());
            let y = (x.square() * x + <ark_bn254::g2::Config as SWCurveConfig>::COEFF_B).sqrt()?;
            let point = ark_bn254::G2Affine::new_unchecked(x, y);
            (!point.is_in_correct_subgroup_assuming_on_curve()).then_some(point)
        })
        .unwrap();
    let error = changed(zkey::HEADER, |bytes| {
        write_points(&[outside], &mut bytes[84 + 256..84 + 384]).unwrap()
    });
    assert!(
        matches!(
            error,
            FormatError::Point {
                what: "gamma2",
                fault: PointFault::NotInSubgroup,
                ..
            }
        ),
        "{error}"
    );
    let bytes = file(FileKind::Zkey, &bn254_key());
    let (header, _) = read_key(&bytes).unwrap();
    assert!(
        header
            .verifying_points::<ark_bls12_381::g1::Config, ark_bls12_381::g2::Config>()
            .is_err()
    );
    assert!(
        header
            .verifying_points::<ark_bn254::g1::Config, ark_bn254::g1::Config>()
            .is_err()
    );
}

#[test]
fn sections_of_other_lengths_and_missing_ones_are_named() {
    for (i, (id, content)) in bn254_key().into_iter().enumerate() {
        if id == zkey::CONTRIBUTIONS {
            continue;
        }
        let mut sections = bn254_key();
        sections.remove(i);
        let error = read_key(&file(FileKind::Zkey, &sections)).unwrap_err();
        assert!(
            matches!(error, FormatError::MissingSection { section, .. } if section == id),
            "{error}"
        );
        if id != zkey::HEADER {
            let error = changed(id, |bytes| bytes.truncate(content.len() - 1));
            assert!(
                matches!(error, FormatError::SectionLength { section, .. } if section == id),
                "{error}"
            );
        }
    }
    let error = changed(zkey::COEFFICIENTS, |bytes| bytes[0] = 8);
    assert!(error.to_string().contains("section 4 (coefficients)"), "{error}");
    assert!(matches!(
        changed(zkey::COEFFICIENTS, |bytes| bytes.clear()),
        FormatError::SectionLength {
            expected_bytes: 4,
            ..
        }
    ));
}

#[test]
fn coefficients_are_checked() {
    let bytes = file(FileKind::Zkey, &bn254_key());
    let (header, _) = read_key(&bytes).unwrap();
    let good = coefficients()[3];
    for (at, value) in [(0, 2), (4, 8), (8, 5), (43, 0xff)] {
        let mut record = [0; zkey::COEFFICIENT_BYTES];
        good.encode(&mut record);
        record[at] = value;
        let error = zkey::Coefficient::decode(&record)
            .check(3, 1000, &header)
            .unwrap_err();
        match error {
            FormatError::Coefficient { index, offset, .. } => {
                assert_eq!((index, offset), (3, 1000 + at as u64))
            }
            FormatError::Element { index, offset, .. } => assert_eq!((index, offset), (3, 1012)),
            other => panic!("{other}"),
        }
    }
}
