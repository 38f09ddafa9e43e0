//! Witnesses.

use spillproof_format::iden3::{FileKind, SCALAR_BYTES, wtns};
use spillproof_format::{Curve, FormatError};

use super::{Section, file};
use crate::read_back::{cut, read_witness};

pub fn witness(curve: Curve) -> Vec<Section> {
    let mut header = Vec::new();
    wtns::Header { curve, count: 3 }.encode(&mut header).unwrap();
    let values: Vec<u8> = (1..4).flat_map(|i| [i; SCALAR_BYTES]).collect();
    vec![(wtns::VALUES, values), (wtns::HEADER, header)]
}

#[test]
fn witnesses_read() {
    for curve in [Curve::Bn254, Curve::Bls12381] {
        let bytes = file(FileKind::Wtns, &witness(curve));
        let (header, values) = read_witness(&bytes).unwrap();
        assert_eq!((header.curve, header.count), (curve, 3));
        assert_eq!(cut(&bytes, values)[32..64], [2; 32]);
        for (version, is_read) in [(0, false), (1, true), (2, true), (3, false)] {
            let mut bytes = bytes.clone();
            bytes[4] = version;
            assert_eq!(read_witness(&bytes).is_ok(), is_read, "{version}");
        }
        let count_at = bytes.len() - 4;
        for (value, is_length) in [(2, true), (4, true), (0, false)] {
            let mut bytes = bytes.clone();
            bytes[count_at] = value;
            let error = read_witness(&bytes).unwrap_err();
            assert_eq!(
                matches!(error, FormatError::SectionLength { section: 2, .. }),
                is_length,
                "{error}"
            );
        }
    }
    // The prime of Goldilocks, 2^64 - 2^32 + 1, as circom writes it.
    let mut header = 8u32.to_le_bytes().to_vec();
    header.extend(0xffff_ffff_0000_0001u64.to_le_bytes());
    header.extend(1u32.to_le_bytes());
    let bytes = file(FileKind::Wtns, &[(1, header), (2, vec![0; 8])]);
    let error = read_witness(&bytes).unwrap_err();
    assert!(error.to_string().contains("0xffffffff00000001"), "{error}");
}
