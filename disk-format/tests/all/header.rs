//! Headers: what is written is read, and nothing else is.

use spillproof_format::header::{FILE_BYTES_MAX, MAGIC};
use spillproof_format::*;

fn spec(content: Content, basis: Basis, elements: u64, label: &str) -> SectionSpec {
    SectionSpec {
        content,
        basis,
        elements,
        label: Label::new(label).unwrap(),
    }
}

fn srs(k: u32) -> Header {
    let mut header = Header::new(
        Kind::Srs,
        Curve::Bn254,
        4096,
        *b"0123456789abcdef",
        3,
        &[
            spec(Content::G1, Basis::Monomial, 1 << k, "g"),
            spec(Content::G1, Basis::Lagrange, 1 << k, "g_lagrange"),
            spec(Content::G2, Basis::None, 2, "g2,s_g2"),
        ],
    )
    .unwrap();
    header.parent = [7; 32];
    header.root = [9; 32];
    header
}

#[test]
fn roundtrip() {
    let header = srs(10);
    assert_eq!(Header::decode(&header.encode()), Ok(header.clone()));
    assert_eq!(header.find_label("g_lagrange").unwrap().first_frame, 16);
    assert_eq!(header.find(Content::G2, Basis::None).unwrap().first_frame, 32);
}

#[test]
fn geometry() {
    let header = srs(10);
    let geometry = header.geometry();
    assert_eq!(geometry.frames(), 33);
    assert_eq!(geometry.frame_offset(0), Ok(4096));
    assert_eq!(geometry.frame_offset(33), Ok(geometry.digest_table_offset()));
    assert!(geometry.frame_offset(34).is_err());
    assert_eq!(geometry.digest_table_offset(), 4096 * 34);
    assert_eq!(geometry.digest_table_bytes(), 4096);
    assert_eq!(header.file_bytes(), 4096 * 35);
    assert_eq!(geometry.payload_bytes(31), Ok(4096));
    assert_eq!(geometry.payload_bytes(32), Ok(256));
    assert!(geometry.payload_bytes(33).is_err());
    let lagrange = header.find_label("g_lagrange").unwrap();
    assert_eq!(geometry.section_frames(lagrange), 16..32);
    assert_eq!(geometry.element_offset(lagrange, 1), Ok(4096 + 16 * 4096 + 64));
    assert!(geometry.element_offset(lagrange, 1024).is_err());
    assert!(geometry.check_file_bytes(4096 * 35).is_ok());
    assert!(geometry.check_file_bytes(4096 * 35 - 1).is_err());
}

#[test]
fn points_of_bls12_381_fill_frames_of_three_times_a_power_of_two() {
    let sections = [
        spec(Content::G1, Basis::Monomial, 1 << 10, "g"),
        spec(Content::G2, Basis::None, 2, "g2,s_g2"),
        spec(Content::Scalars, Basis::None, 400, "scalars"),
    ];
    let header = |curve, frame_bytes| Header::new(Kind::Srs, curve, frame_bytes, [0; 16], 0, &sections);
    let whole = header(Curve::Bls12381, 12288).unwrap();
    assert_eq!(Header::decode(&whole.encode()), Ok(whole.clone()));
    let geometry = whole.geometry();
    let [g, pair, scalars] = whole.sections() else {
        panic!("three sections")
    };
    assert_eq!(
        (g.element_bytes(), pair.element_bytes(), scalars.element_bytes()),
        (96, 192, 32)
    );
    assert_eq!(geometry.elements_per_frame(g), 128);
    assert_eq!(geometry.section_frames(pair), 8..9);
    assert_eq!(geometry.section_frames(scalars), 9..11);
    assert_eq!(geometry.element_offset(g, 128), Ok(4096 + 12288));
    // Elements do not fill these frames; and frames of other curves are powers of two.
    assert!(header(Curve::Bls12381, 16384).is_err());
    assert!(header(Curve::Bn254, 12288).is_err());
    for frame_bytes in [6144, 3 << 23, 9 * 4096, 0] {
        assert!(!Curve::Bls12381.allows_frames_of(frame_bytes), "{frame_bytes}");
    }
    for (element_bytes, frame_bytes) in [(32, 16384), (64, 16384), (128, 16384), (96, 24576), (192, 24576)] {
        assert_eq!(frame_bytes_for(element_bytes, 16384), frame_bytes);
    }
}

#[test]
fn an_empty_section_has_no_frames() {
    let sections = [
        spec(Content::Scalars, Basis::None, 0, "none"),
        spec(Content::Scalars, Basis::None, 1, "one"),
    ];
    let header = Header::new(Kind::ProvingKeyBundle, Curve::Bn254, 4096, [0; 16], 0, &sections).unwrap();
    assert_eq!(header.frames(), 1);
    assert_eq!(header.geometry().section_of(0).unwrap().label.as_str(), "one");
    assert_eq!(Header::decode(&header.encode()), Ok(header));
}

#[test]
fn every_flipped_bit_is_refused() {
    let bytes = srs(4).encode();
    for bit in 0..8 * HEADER_BYTES {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(Header::decode(&flipped).is_err(), "bit {bit}");
    }
}

/// Changes bytes and makes the checksum fit again: a writer with a fault, or a forger.
fn forged(at: usize, value: &[u8]) -> Result<Header, FormatError> {
    let mut bytes = srs(4).encode();
    bytes[at..at + value.len()].copy_from_slice(value);
    let checksum = blake3::hash(&bytes[..HEADER_BYTES - 32]);
    bytes[HEADER_BYTES - 32..].copy_from_slice(checksum.as_bytes());
    Header::decode(&bytes)
}

#[test]
fn unknown_versions_and_kinds_are_refused_by_name() {
    for (at, value, name) in [
        (8, 2u32.to_le_bytes().to_vec(), "unknown version 2 at offset 8"),
        (12, 99u32.to_le_bytes().to_vec(), "unknown kind 99 at offset 12"),
        (16, 0u32.to_le_bytes().to_vec(), "unknown curve 0 at offset 16"),
        (
            256,
            77u16.to_le_bytes().to_vec(),
            "unknown content of a section 77 at offset 256",
        ),
        (
            258,
            9u16.to_le_bytes().to_vec(),
            "unknown basis of a section 9 at offset 258",
        ),
    ] {
        let message = forged(at, &value).unwrap_err().to_string();
        assert!(message.starts_with(name), "{message}");
    }
}

#[test]
fn forged_fields_are_refused() {
    for (at, value) in [
        (20, 0u32.to_le_bytes().to_vec()),            // frame length
        (20, 12288u32.to_le_bytes().to_vec()),        // not a power of two
        (20, (1u32 << 25).to_le_bytes().to_vec()),    // too long
        (24, 0u32.to_le_bytes().to_vec()),            // no sections
        (24, 65u32.to_le_bytes().to_vec()),           // too many
        (24, u32::MAX.to_le_bytes().to_vec()),        // far too many
        (260, 65u32.to_le_bytes().to_vec()),          // element length
        (264, u64::MAX.to_le_bytes().to_vec()),       // elements
        (264, (1u64 << 42).to_le_bytes().to_vec()),   // elements: 2^48 bytes
        (256 + 48 + 16, 2u64.to_le_bytes().to_vec()), // a gap between sections
        (280, vec![b'g', 0, b'x']),                   // text after the end of a label
        (280, vec![0xff]),                            // not ASCII
        (28, vec![2]),                                // reserved
        (255, vec![1]),                               // reserved
        (4000, vec![1]),                              // reserved
        (256 + 3 * 48, vec![1]),                      // behind the last section
    ] {
        let error = forged(at, &value).unwrap_err();
        assert!(matches!(error, FormatError::Field { .. }), "{at}: {error}");
    }
    assert!(forged(0, &MAGIC).is_ok());
}

#[test]
fn limits_hold_for_writers_too() {
    let long = [spec(Content::Bytes, Basis::None, FILE_BYTES_MAX, "x")];
    assert!(Header::new(Kind::FieldColumn, Curve::Bn254, 4096, [0; 16], 0, &long).is_err());
    let longest = [spec(Content::Bytes, Basis::None, FILE_BYTES_MAX - (1 << 42), "x")];
    let header = Header::new(Kind::FieldColumn, Curve::Bn254, 4096, [0; 16], 0, &longest).unwrap();
    assert!(header.file_bytes() <= FILE_BYTES_MAX);
    assert!(Label::new("seventeen letters").is_err());
    assert!(Label::new("é").is_err());
    assert_eq!(
        Label::new("exactly16letters").unwrap().as_str(),
        "exactly16letters"
    );
    assert!(Header::new(Kind::Srs, Curve::Bn254, 4096, [0; 16], 0, &[]).is_err());
    assert!(Header::new(Kind::Srs, Curve::Bn254, 2048, [0; 16], 0, &longest).is_err());
}

#[test]
fn what_is_not_a_container_says_what_it_is() {
    let error = Header::decode(&[0; HEADER_BYTES]).unwrap_err();
    assert!(matches!(error, FormatError::NotAContainer { .. }));
    assert!(matches!(
        Header::decode_prefix(&[0; 100]),
        Err(FormatError::Length { .. })
    ));
    let mut long = srs(4).encode().to_vec();
    long.push(1);
    assert!(Header::decode_prefix(&long).is_ok());
}

#[test]
fn digests_are_bound_to_file_epoch_and_index() {
    let frame = vec![5u8; 4096];
    let digest = FrameKey::new([1; 16], 0).digest(0, &frame);
    assert_ne!(digest, FrameKey::new([2; 16], 0).digest(0, &frame));
    assert_ne!(digest, FrameKey::new([1; 16], 1).digest(0, &frame));
    assert_ne!(digest, FrameKey::new([1; 16], 0).digest(1, &frame));
    assert_eq!(digest, FrameKey::new([1; 16], 0).digest(0, &frame));
    assert_eq!(format!("{:?}", FrameKey::new([1; 16], 0)), "FrameKey");
}

#[test]
fn the_root_is_over_header_and_digests() {
    let mut header = srs(4);
    let digests = [[1u8; 32], [2; 32], [3; 32]];
    assert_eq!(header.frames(), 3);
    let root = |header: &Header, digests: &[[u8; 32]]| {
        let mut hasher = RootHasher::new(header);
        digests.iter().for_each(|digest| {
            hasher.update(digest);
        });
        hasher.finish()
    };
    let expected = root(&header, &digests).unwrap();
    assert!(root(&header, &digests[..2]).is_err());
    header.root = expected;
    assert_eq!(
        root(&header, &digests),
        Ok(expected),
        "the root does not depend on itself"
    );
    let mut hasher = RootHasher::new(&header);
    digests.iter().for_each(|digest| {
        hasher.update(digest);
    });
    hasher.verify(&header).unwrap();
    header.parent = [8; 32];
    assert_ne!(root(&header, &digests), Ok(expected));
    header.root = [0; 32];
    assert!(matches!(
        hasher.verify(&header),
        Err(FormatError::RootDiffers { .. })
    ));
}

#[test]
fn a_mark_of_known_secrets_is_in_the_checksum() {
    let sections = srs::sections(Curve::Bn254, 4, true, true).unwrap();
    let plain = Header::new(Kind::Srs, Curve::Bn254, 4096, [3; 16], 0, &sections).unwrap();
    let mut marked = plain.clone();
    marked.is_insecure = true;
    let (bytes, of_plain) = (marked.encode(), plain.encode());
    assert_eq!((bytes[28], of_plain[28]), (1, 0));
    assert_ne!(bytes[4064..], of_plain[4064..]);
    let found = Header::decode(&bytes).unwrap();
    assert!(found.is_insecure && found == marked);
    assert!(!Header::decode(&of_plain).unwrap().is_insecure);
}
