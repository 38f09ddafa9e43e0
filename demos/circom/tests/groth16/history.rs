//! Histories of first phases: those of snarkjs verify, and changed ones are refused. `tests/fixtures` says
//! how the files were made.

use std::path::PathBuf;

use spillproof_engine::Error;
use spillproof_format::iden3::history::BLOCK_BYTES;
use spillproof_format::iden3::{
    ByteRange, FileKind, PointRange, SectionWalk, Sections, ptau, write_prefix, write_section_prefix,
};
use spillproof_format::{Curve, FormatError};
use spillproof_groth16::iden3::{VerifiedPtau, prepare_ptau, truncate_ptau, verify_ptau};

use crate::common::{Place, place};

const MIB: u64 = 1 << 20;
const BN254: &[u8] = include_bytes!("../fixtures/ceremony_bn128.ptau");
const BLS12_381: &[u8] = include_bytes!("../fixtures/ceremony_bls12381.ptau");
/// The same, prepared and cut by snarkjs.
const BN254_CUT: &[u8] = include_bytes!("../fixtures/ceremony_bn128_cut.ptau");
const BLS12_381_CUT: &[u8] = include_bytes!("../fixtures/ceremony_bls12381_cut.ptau");
/// The hashes of the responses, as `snarkjs powersoftau verify` prints them.
const BN254_HASHES: [&str; 3] = [
    "aab1f200510b6ec62113c517db6aadabd943eb777fca5b0d1f60602bddcf2b9a2a386f9072922146c1ed9cf1b67376078da5150d25531d8e7d2da28189526be4",
    "aeb2aac8e168313c7077964bff0f11a77d685bccb3b909ed31b2e6694a188673ce444ff8687c61a7e9f6aa3d3738586b4baf5e7dcaba6115518a533855d3ee57",
    "75c993e7a2d8a4ce23404c2b0335699d3d82e45e9cb8bb1901535d7cc0b136c3ec1f28c139c71a012e3e8d0f94fcc34ce00c62a305e373cb9e53938ecdd0db6f",
];
const BLS12_381_HASHES: [&str; 3] = [
    "778b6e8a6ce5f04f00cf896bde329e3c74b224eccd28508e80b1e364e61856b568850453016747d8f9039d16171997b952344927a038dc2f767e1cadddeea29b",
    "bfa8fd2b20795297370be0c2a5fe737fe8cd3dea188faff7d843e4b886f8ad0df87452796486250823364ad474083484612fedf9b796c1cf7aa5643acc3f4a2b",
    "01bc39f90a723e2bdc4af3f9580d99641a632d35d8fcfc8955e95b2fd12e94633ec9e21a3d1f6bada4a0d7cda7ae7399e32a8e395b5dc73aef26633442f82a2f",
];

struct Case {
    place: Place,
    dir: tempfile::TempDir,
}

impl Case {
    fn new(budget_bytes: u64) -> Self {
        Self {
            place: place(budget_bytes),
            dir: tempfile::tempdir().expect("a folder"),
        }
    }

    fn write(&self, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join("powers.ptau");
        std::fs::write(&path, bytes).expect("a file");
        path
    }

    fn verify(&self, bytes: &[u8]) -> Result<VerifiedPtau, Error> {
        verify_ptau(&self.place.workspace, &self.write(bytes), &mut |_| ())
    }

    /// The contribution that is refused, and the error.
    fn refused(&self, bytes: &[u8]) -> (u64, String) {
        let error = self.verify(bytes).expect_err("a history that was changed");
        let text = error.to_string();
        match error {
            Error::Format {
                source: FormatError::Contribution { number, .. },
                ..
            } => (number, text),
            _ => panic!("{text}"),
        }
    }
}

fn sections(bytes: &[u8]) -> Sections {
    let mut walk = SectionWalk::new(FileKind::Ptau, bytes.len() as u64);
    while let Some((offset, len)) = walk.next_read() {
        let start = offset as usize;
        walk.give(&bytes[start..start + len]).expect("sections");
    }
    walk.finish().expect("sections")
}

fn cut(bytes: &[u8], range: ByteRange) -> &[u8] {
    &bytes[range.offset as usize..range.end() as usize]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn history_is_that_of_snarkjs(file: &[u8], hashes: [&str; 3], curve: Curve) {
    for budget_bytes in [6 * MIB, 64 * MIB] {
        let case = Case::new(budget_bytes);
        let path = case.write(file);
        let prepared = case.dir.path().join("prepared.ptau");
        prepare_ptau(&case.place.workspace, [&path, &prepared], &mut |_| ()).expect("a file");
        let prepared = std::fs::read(prepared).expect("a file");
        for (bytes, is_prepared) in [(file, false), (&prepared, true)] {
            let verified = case.verify(bytes).expect("a history that follows");
            assert_eq!((verified.power, verified.is_prepared), (2, is_prepared));
            assert_eq!(verified.curve, curve);
            let contributors = &verified.contributors;
            let found: Vec<String> = contributors.iter().map(|one| hex(&one.hash)).collect();
            assert_eq!(found, hashes);
            let names: Vec<_> = contributors.iter().map(|one| one.name.as_deref()).collect();
            assert_eq!(names, [Some("first"), None, Some("last")]);
            let beacons: Vec<_> = contributors.iter().map(|one| one.beacon.as_ref()).collect();
            let [None, None, Some(beacon)] = beacons[..] else {
                panic!("{beacons:?}");
            };
            assert_eq!(
                (beacon.iterations_log, &beacon.value[..]),
                (10, &[1, 2, 3, 4, 5, 6, 7, 8][..])
            );
        }
        case.place.assert_nothing_held();
    }
}

#[test]
fn a_history_over_bn254_is_that_of_snarkjs() {
    history_is_that_of_snarkjs(BN254, BN254_HASHES, Curve::Bn254);
}

#[test]
fn a_history_over_bls12_381_is_that_of_snarkjs() {
    history_is_that_of_snarkjs(BLS12_381, BLS12_381_HASHES, Curve::Bls12381);
}

#[test]
fn files_that_snarkjs_cut_verify_and_are_cut_the_same() {
    for (file, cut, hashes) in [
        (BN254, BN254_CUT, BN254_HASHES),
        (BLS12_381, BLS12_381_CUT, BLS12_381_HASHES),
    ] {
        let case = Case::new(16 * MIB);
        let workspace = &case.place.workspace;
        let [prepared, ours] = ["prepared.ptau", "ours.ptau"].map(|name| case.dir.path().join(name));
        prepare_ptau(workspace, [&case.write(file), &prepared], &mut |_| ()).expect("a file");
        truncate_ptau(workspace, [&prepared, &ours], 1, &mut |_| ()).expect("a file");
        assert!(std::fs::read(&ours).expect("a file") == cut);
        let verified = case.verify(cut).expect("a right file");
        assert_eq!(
            (verified.power, verified.ceremony_power, verified.is_prepared),
            (1, 2, true)
        );
        let contributors = &verified.contributors;
        let found: Vec<String> = contributors.iter().map(|one| hex(&one.hash)).collect();
        assert_eq!(found, hashes);
        case.place.assert_nothing_held();
    }
}

/// The bytes of each contribution over BN254, in the file.
fn contributions() -> [std::ops::Range<usize>; 3] {
    let range = sections(BN254).range(ptau::CONTRIBUTIONS).expect("a history");
    // Without the parameters, whose length is the last number.
    let fixed = POINTS_BYTES + STATE_BYTES + 64 + 8;
    let mut start = range.offset as usize + 4;
    [(); 3].map(|()| {
        let length: [u8; 4] = *BN254[start + fixed - 4..].first_chunk().expect("a length");
        let end = start + fixed + u32::from_le_bytes(length) as usize;
        let contribution = start..end;
        start = end;
        contribution
    })
}

/// Bytes of the points of a contribution over BN254, and of the state of a hash.
const POINTS_BYTES: usize = 9 * 64 + 5 * 128;
const STATE_BYTES: usize = 216;

#[test]
fn a_byte_that_was_changed_is_found_or_changes_what_is_printed() {
    let case = Case::new(16 * MIB);
    let right = case.verify(BN254).expect("a history that follows");
    let mut refused = 0;
    for (number, contribution) in (1..).zip(contributions()) {
        for at in contribution.clone().step_by(23) {
            let mut changed = BN254.to_vec();
            changed[at] ^= 1;
            let found = case.verify(&changed);
            let in_state = (at - contribution.start).checked_sub(POINTS_BYTES);
            let in_state = in_state.filter(|at| *at < STATE_BYTES);
            // Behind the bytes that wait in the block.
            let state = contribution.start + POINTS_BYTES;
            let waiting: [u8; 8] = *BN254[state + 200..].first_chunk().expect("a number");
            let is_unused =
                |at| (u64::from_le_bytes(waiting) as usize..BLOCK_BYTES).contains(&at) || at >= 208;
            match found {
                Err(error) => {
                    assert!(matches!(error, Error::Format { .. }), "{at}: {error}");
                    refused += 1;
                }
                Ok(found) if in_state.is_some_and(is_unused) => assert_eq!(found, right, "{at}"),
                Ok(found) => {
                    // A response before the last one is hashed from points that are in no file: its
                    // contributor compares the hash that is printed.
                    let is_printed = in_state.is_some() && number < 3;
                    let is_name = at > contribution.start + POINTS_BYTES + STATE_BYTES + 64;
                    assert!(is_printed || is_name, "byte {at} of contribution {number}");
                    assert_ne!(found, right, "{at}");
                }
            }
        }
    }
    assert!(refused > 150, "{refused}");
    case.place.assert_nothing_held();
}

/// The file with another history and another header.
fn with_history(file: &[u8], history: &[u8], header: ptau::Header) -> Vec<u8> {
    let of_file = sections(file);
    let layout = ptau::Layout::new(&of_file, &header_of(file)).expect("a file");
    let n = 1 << header.power;
    let mut header_bytes = Vec::new();
    header.encode(&mut header_bytes);
    let first = |range: PointRange, count: usize| {
        cut(file, range.byte_range())[..count * range.point_bytes as usize].to_vec()
    };
    let all = [
        (ptau::HEADER, header_bytes),
        (ptau::TAU_G1, first(layout.tau_g1, 2 * n - 1)),
        (ptau::TAU_G2, first(layout.tau_g2, n)),
        (ptau::ALPHA_TAU_G1, first(layout.alpha_tau_g1, n)),
        (ptau::BETA_TAU_G1, first(layout.beta_tau_g1, n)),
        (ptau::BETA_G2, first(layout.beta_g2, 1)),
        (ptau::CONTRIBUTIONS, history.to_vec()),
    ];
    let mut bytes = Vec::new();
    write_prefix(FileKind::Ptau, all.len() as u32, &mut bytes);
    for (id, content) in all {
        write_section_prefix(id, content.len() as u64, &mut bytes);
        bytes.extend(content);
    }
    bytes
}

fn header_of(file: &[u8]) -> ptau::Header {
    let of_file = sections(file);
    let range = ptau::Header::range(&of_file).expect("a header");
    ptau::Header::parse(&of_file, cut(file, range)).expect("a header")
}

#[test]
fn contributions_that_are_missing_moved_or_of_another_ceremony_are_refused() {
    let case = Case::new(16 * MIB);
    let header = header_of(BN254);
    let [first, second, last] = contributions().map(|range| &BN254[range]);
    let with = |list: &[&[u8]], header| {
        let count = (list.len() as u32).to_le_bytes();
        with_history(BN254, &[&count[..], &list.concat()].concat(), header)
    };
    assert!(case.verify(&with(&[first, second, last], header)).is_ok());
    for (list, number, words) in [
        (&[first, second][..], 2, "another than after the last"),
        (&[second, last], 1, "first challenge"),
        (&[first, last], 2, "challenge before"),
        (&[second, first, last], 1, "first challenge"),
        (&[first, second, last, last], 4, "challenge before"),
    ] {
        let (found, text) = case.refused(&with(list, header));
        assert!(found == number && text.contains(words), "{number}: {text}");
    }
    // The last byte is one of the beacon.
    let mut other_beacon = last.to_vec();
    *other_beacon.last_mut().expect("a beacon") ^= 1;
    let (found, text) = case.refused(&with(&[first, second, &other_beacon], header));
    assert!(found == 3 && text.contains("beacon"), "{text}");
    // A shorter file of the same ceremony, and the same one that claims to be of a smaller ceremony.
    let shorter = ptau::Header { power: 1, ..header };
    let verified = case.verify(&with(&[first, second, last], shorter));
    let verified = verified.expect("a history that follows");
    assert_eq!(
        (
            verified.power,
            verified.ceremony_power,
            verified.contributors.len()
        ),
        (1, 2, 3)
    );
    let smaller = ptau::Header {
        ceremony_power: 1,
        ..shorter
    };
    let (found, text) = case.refused(&with(&[first, second, last], smaller));
    assert!(found == 1 && text.contains("a file that was cut"), "{text}");
    // A ceremony whose first challenge would take hours, and more.
    for ceremony_power in [29, 64, u32::MAX] {
        let header = ptau::Header {
            ceremony_power,
            ..header
        };
        let error = case.verify(&with(&[first, second, last], header));
        let error = error.expect_err("a large ceremony").to_string();
        assert!(error.contains("ceremony's rows"), "{error}");
    }
    // No contribution at all: the points are right, and their maker may know the secrets.
    let verified = case.verify(&with(&[], header)).expect("right points");
    assert!(verified.contributors.is_empty());
    case.place.assert_nothing_held();
}
