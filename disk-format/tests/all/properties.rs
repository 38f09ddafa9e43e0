//! Properties over random input: no bytes make a parser panic, and what is accepted encodes to the same
//! bytes.
//!
//! The seed is printed; `PROPTEST_RNG_SEED=<seed>` runs it again, `PROPTEST_CASES=<n>` runs more cases.

use ark_bn254::{Fr, G1Affine, G2Affine, g1, g2};
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use proptest::prelude::*;
use spillproof_format::native::{NativeField, read_elements, read_point, write_elements, write_point};
use spillproof_format::params_kzg::halo2::{read_compressed, write_compressed};
use spillproof_format::params_kzg::points::{Check, decode_points, encode_points, read, write};
use spillproof_format::params_kzg::{Dialect, Encoding, Layout, Region, SerdeFormat, Stated};
use spillproof_format::*;

use crate::shared::runner;

fn section() -> impl Strategy<Value = SectionSpec> {
    let content = prop_oneof![
        Just(Content::Scalars),
        Just(Content::G1),
        Just(Content::G2),
        Just(Content::Bytes),
        Just(Content::Coefficients)
    ];
    let basis = prop_oneof![Just(Basis::None), Just(Basis::Monomial), Just(Basis::Lagrange)];
    let elements = prop_oneof![0..5000u64, 0..1u64 << 50, any::<u64>()];
    (content, basis, elements, "[ -~]{0,16}").prop_map(|(content, basis, elements, label)| SectionSpec {
        content,
        basis,
        elements,
        label: Label::new(&label).unwrap(),
    })
}

fn header() -> impl Strategy<Value = Header> {
    let kind = prop_oneof![
        Just(Kind::FieldColumn),
        Just(Kind::PointColumn),
        Just(Kind::Srs),
        Just(Kind::ProvingKeyBundle),
        Just(Kind::IpaParams),
        Just(Kind::Groth16Key),
        Just(Kind::Witness)
    ];
    let curve = prop_oneof![
        Just(Curve::Bn254),
        Just(Curve::Pallas),
        Just(Curve::Vesta),
        Just(Curve::Bls12381)
    ];
    let sections = prop::collection::vec(section(), 1..8);
    (
        kind,
        curve,
        12..25u32,
        any::<([u8; 16], u64, [u8; 32], [u8; 32])>(),
        sections,
    )
        .prop_filter_map(
            "too long for a container",
            |(kind, curve, log_frame, (file_id, epoch, parent, root), sections)| {
                let by_three = sections
                    .iter()
                    .any(|section| section.content.element_bytes(curve).is_multiple_of(3));
                let frame_bytes = match by_three {
                    // Elements fill such a frame; a frame of another length is refused.
                    true if epoch % 8 != 0 => (1 << log_frame) / 2 * 3,
                    _ => 1 << log_frame,
                };
                let mut header = Header::new(kind, curve, frame_bytes, file_id, epoch, &sections).ok()?;
                header.parent = parent;
                header.root = root;
                Some(header)
            },
        )
}

fn fix_checksum(bytes: &mut [u8; HEADER_BYTES]) {
    let checksum = blake3::hash(&bytes[..HEADER_BYTES - 32]);
    bytes[HEADER_BYTES - 32..].copy_from_slice(checksum.as_bytes());
}

#[test]
fn headers_roundtrip() {
    runner()
        .run(&header(), |header| {
            prop_assert_eq!(Header::decode(&header.encode()), Ok(header));
            Ok(())
        })
        .unwrap();
}

#[test]
fn geometry_covers_the_file_without_gaps() {
    runner()
        .run(&header(), |header| {
            let geometry = header.geometry();
            let mut next = 0;
            for section in header.sections() {
                let frames = geometry.section_frames(section);
                prop_assert_eq!(frames.start, next);
                next = frames.end;
                if section.elements > 0 {
                    let last = frames.end - 1;
                    let padded = u64::from(header.frame_bytes() - geometry.payload_bytes(last).unwrap());
                    let end = geometry.element_offset(section, section.elements - 1).unwrap()
                        + u64::from(section.element_bytes());
                    prop_assert_eq!(end + padded, geometry.frame_offset(frames.end).unwrap());
                }
            }
            prop_assert_eq!(next, geometry.frames());
            prop_assert_eq!(
                geometry.digest_table_offset() + geometry.digest_table_bytes(),
                header.file_bytes()
            );
            prop_assert!(geometry.digest_table_bytes() >= 32 * next && header.file_bytes() % 4096 == 0);
            Ok(())
        })
        .unwrap();
}

#[test]
fn every_flipped_bit_in_any_header_is_refused() {
    runner()
        .run(&(header(), 0..8 * HEADER_BYTES), |(header, bit)| {
            let mut bytes = header.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Header::decode(&bytes).is_err());
            Ok(())
        })
        .unwrap();
}

#[test]
fn forged_headers_never_panic_and_are_canonical() {
    let changes = prop::collection::vec((0..HEADER_BYTES - 32, any::<u8>()), 1..8);
    runner()
        .run(&(header(), changes), |(header, changes)| {
            let mut bytes = header.encode();
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            fix_checksum(&mut bytes);
            if let Ok(accepted) = Header::decode(&bytes) {
                prop_assert_eq!(accepted.encode(), bytes);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn random_bytes_never_panic() {
    runner()
        .run(
            &(prop::collection::vec(any::<u8>(), 0..5000), any::<bool>()),
            |(mut bytes, fix)| {
                if let (true, Some(header)) = (fix, bytes.first_chunk_mut::<HEADER_BYTES>()) {
                    header[..16].copy_from_slice(b"\x89SPILL\r\n\x01\0\0\0\x01\0\0\0");
                    fix_checksum(header);
                }
                let _ = Header::decode_prefix(&bytes);
                let mut scalars = vec![Fr::from(0u64); bytes.len() / 32];
                let _ = read_elements("column", 0, 0, &bytes[..bytes.len() / 32 * 32], &mut scalars);
                Ok(())
            },
        )
        .unwrap();
}

#[test]
fn random_lengths_have_at_most_the_layout_that_gives_them() {
    runner()
        .run(
            &(any::<u64>(), any::<[u8; 4]>(), 0..29u32, 0..3u64),
            |(length, k_bytes, k, off)| {
                let near = (1u64 << (k + 6)) + 131 + off;
                let near_midnight = (3u64 << (k + 5)) + 195 + off;
                for file_bytes in [length, near, near_midnight] {
                    for bytes in [k_bytes, k.to_le_bytes()] {
                        if let Ok(layout) = Layout::detect(Stated::default(), file_bytes, bytes) {
                            prop_assert_eq!(layout.file_bytes(), file_bytes);
                            prop_assert_eq!(layout.encode_k(), bytes);
                        }
                    }
                }
                Ok(())
            },
        )
        .unwrap();
}

/// Whatever is accepted as a point is on the curve, and gives the same bytes again.
fn accepted_is_canonical<P: SWCurveConfig>(encoding: Encoding, bytes: &[u8]) -> Result<(), TestCaseError>
where
    P::BaseField: NativeField,
{
    let Ok(point) = read::<P>(encoding, Check::Subgroup, bytes) else {
        return Ok(());
    };
    prop_assert!(point.is_on_curve() && point.is_in_correct_subgroup_assuming_on_curve());
    let mut again = vec![0; bytes.len()];
    write(encoding, &point, &mut again);
    prop_assert_eq!(again, bytes);
    Ok(())
}

#[test]
fn random_points_are_refused_or_canonical() {
    // Bytes at the top that leave a coordinate a chance to be below the modulus.
    let coordinate = (
        any::<[u8; 32]>(),
        prop_oneof![0..0x31u8, Just(0x80), Just(0x70), any::<u8>()],
    )
        .prop_map(|(mut bytes, top)| {
            bytes[31] = top;
            bytes
        });
    let [raw, processed, midnight_raw, midnight_processed] = Encoding::ALL;
    runner()
        .run(&prop::collection::vec(coordinate, 4), |coordinates| {
            let bytes = coordinates.concat();
            accepted_is_canonical::<g1::Config>(processed, &bytes[..32])?;
            accepted_is_canonical::<g1::Config>(raw, &bytes[..64])?;
            accepted_is_canonical::<g2::Config>(processed, &bytes[..64])?;
            accepted_is_canonical::<g2::Config>(raw, &bytes)?;
            Ok(())
        })
        .unwrap();
    let coordinate = (
        prop::collection::vec(any::<u8>(), 48),
        prop_oneof![
            0..0x1au8,
            0x80..0x9au8,
            0xa0..0xbau8,
            Just(0x40),
            Just(0xc0),
            any::<u8>()
        ],
    )
        .prop_map(|(mut bytes, top)| {
            bytes[0] = top;
            bytes
        });
    runner()
        .run(&prop::collection::vec(coordinate, 4), |coordinates| {
            let bytes = coordinates.concat();
            accepted_is_canonical::<ark_bls12_381::g1::Config>(midnight_processed, &bytes[..48])?;
            accepted_is_canonical::<ark_bls12_381::g1::Config>(midnight_raw, &bytes[..96])?;
            accepted_is_canonical::<ark_bls12_381::g2::Config>(midnight_processed, &bytes[..96])?;
            accepted_is_canonical::<ark_bls12_381::g2::Config>(midnight_raw, &bytes)?;
            Ok(())
        })
        .unwrap();
}

fn multiple<P: SWCurveConfig>(scalar: u64, base: Affine<P>) -> Affine<P> {
    (base * P::ScalarField::from(scalar)).into()
}

#[test]
fn points_and_scalars_roundtrip() {
    runner()
        .run(&(any::<u64>(), any::<[u64; 4]>()), |(scalar, limbs)| {
            let one: G1Affine = multiple(scalar, ark_ec::AffineRepr::generator());
            let two: G2Affine = multiple(scalar, ark_ec::AffineRepr::generator());
            let mut bytes = [0; 128];
            write_point(&one, &mut bytes);
            prop_assert_eq!(read_point(&bytes[..64]), Ok(one));
            write_compressed(&one, &mut bytes);
            prop_assert_eq!(read_compressed(&bytes[..32]), Ok(one));
            write_point(&two, &mut bytes);
            prop_assert_eq!(read_point(&bytes), Ok(two));
            write_compressed(&two, &mut bytes);
            prop_assert_eq!(read_compressed(&bytes[..64]), Ok(two));
            let one: Affine<ark_bls12_381::g1::Config> = multiple(scalar, ark_ec::AffineRepr::generator());
            let two: Affine<ark_bls12_381::g2::Config> = multiple(scalar, ark_ec::AffineRepr::generator());
            let mut long = [0; 192];
            write_point(&one, &mut long);
            prop_assert_eq!(read_point(&long[..96]), Ok(one));
            prop_assert!(read_point::<ark_bls12_381::g1::Config>(&long[..64]).is_err());
            write_point(&two, &mut long);
            prop_assert_eq!(read_point(&long), Ok(two));
            let scalars = limbs.map(Fr::from);
            let mut again = [Fr::from(0u64); 4];
            write_elements(&scalars, &mut bytes).unwrap();
            read_elements("column", 0, 0, &bytes, &mut again).unwrap();
            prop_assert_eq!(scalars, again);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_changed_bit_in_a_run_names_its_point() {
    let layout = Layout::new(Encoding::new(Dialect::Halo2, SerdeFormat::RawBytes), 3).unwrap();
    let points: Vec<G1Affine> = (1..9)
        .map(|i| multiple(i, ark_ec::AffineRepr::generator()))
        .collect();
    let mut clean = vec![0; 8 * 64];
    encode_points(layout.encoding(), &points, &mut clean).unwrap();
    runner()
        .run(&(0..8 * 8 * 64usize), |bit| {
            let mut bytes = clean.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let mut out = vec![G1Affine::identity(); 8];
            let error = decode_points(&layout, Region::GLagrange, 0, &bytes, &mut out).unwrap_err();
            match error {
                FormatError::Point { index, offset, .. } => {
                    prop_assert_eq!(index, bit as u64 / 512);
                    prop_assert_eq!(offset, 4 + 8 * 64 + index * 64);
                }
                other => prop_assert!(false, "{}", other),
            }
            Ok(())
        })
        .unwrap();
}
