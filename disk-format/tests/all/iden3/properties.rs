//! No bytes make a parser panic, and what is accepted is written again as the same bytes.

use proptest::prelude::*;
use spillproof_format::Curve;
use spillproof_format::iden3::{FileKind, SCALAR_BYTES, r1cs, write_prefix, wtns};

use super::{Section, file, keys, powers, systems, witnesses};
use crate::read_back::read_back;
use crate::shared::runner;

/// A small file of each kind.
fn small_files() -> [(FileKind, Vec<Section>); 5] {
    [
        (FileKind::Zkey, keys::bn254_key()),
        (FileKind::Wtns, witnesses::witness(Curve::Bn254)),
        (FileKind::R1cs, systems::system()),
        (FileKind::Ptau, powers::powers(Curve::Bn254, true)),
        (FileKind::Ptau, powers::powers(Curve::Bls12381, false)),
    ]
}

#[test]
fn every_flipped_byte_is_refused_or_allowed() {
    for (kind, sections) in small_files() {
        let good = file(kind, &sections);
        assert_eq!(read_back(kind, &good).as_ref(), Ok(&good));
        let mut refused = 0;
        for at in 0..good.len() {
            for mask in [1, 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[at] ^= mask;
                match read_back(kind, &bytes) {
                    Ok(again) => assert!(again == bytes, "{kind:?}, byte {at}, mask {mask}"),
                    Err(_) => refused += 1,
                }
            }
        }
        // Magic, version, number of sections, and the lengths of them all: none of their changes is allowed.
        assert!(refused >= 3 * (12 + 8 * sections.len()), "{kind:?}: {refused}");
    }
}

#[test]
fn files_cut_anywhere_are_refused() {
    for (kind, sections) in small_files() {
        let good = file(kind, &sections);
        for length in 0..good.len() {
            assert!(
                read_back(kind, &good[..length]).is_err(),
                "{kind:?}, {length} bytes"
            );
        }
    }
}

#[test]
fn sections_in_any_order_are_the_same_file() {
    let kinds = prop::sample::select(small_files().to_vec());
    let case = kinds.prop_flat_map(|(kind, mut sections)| {
        sections.push((1000, vec![1, 2, 3, 4]));
        (Just(kind), Just(sections).prop_shuffle())
    });
    runner()
        .run(&case, |(kind, sections)| {
            let bytes = file(kind, &sections);
            prop_assert_eq!(read_back(kind, &bytes), Ok(bytes));
            Ok(())
        })
        .unwrap();
}

#[test]
fn changed_files_are_refused_or_the_same() {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6);
    let kinds = prop::sample::select(small_files().to_vec());
    runner()
        .run(&(kinds, changes), |((kind, sections), changes)| {
            let mut bytes = file(kind, &sections);
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Ok(again) = read_back(kind, &bytes) {
                prop_assert_eq!(again, bytes);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn random_contents_never_panic() {
    let sections = prop::collection::vec((0..16u32, prop::collection::vec(any::<u8>(), 0..200)), 0..8);
    runner()
        .run(
            &(prop::sample::select(&FileKind::ALL[..]), sections),
            |(kind, sections)| {
                let bytes = file(kind, &sections);
                let _ = read_back(kind, &bytes);
                let _ = read_back(kind, &bytes[12..]);
                let mut prefix = Vec::new();
                write_prefix(kind, u32::MAX, &mut prefix);
                prop_assert!(read_back(kind, &prefix).is_err());
                Ok(())
            },
        )
        .unwrap();
}

/// Canonical scalars of both curves.
fn scalar() -> impl Strategy<Value = [u8; SCALAR_BYTES]> {
    any::<[u8; SCALAR_BYTES]>().prop_map(|mut bytes| {
        bytes[SCALAR_BYTES - 1] &= 0x1f;
        bytes
    })
}

#[test]
fn random_witnesses_and_systems_roundtrip() {
    let curve = prop_oneof![Just(Curve::Bn254), Just(Curve::Bls12381)];
    let values = prop::collection::vec(scalar(), 1..20);
    let combination = || prop::collection::vec((0..50u32, scalar()), 0..6);
    let constraints = prop::collection::vec([combination(), combination(), combination()], 0..8);
    runner()
        .run(&(curve, values, constraints), |(curve, values, constraints)| {
            let mut header = Vec::new();
            let count = values.len() as u64;
            wtns::Header { curve, count }.encode(&mut header).unwrap();
            let bytes = file(
                FileKind::Wtns,
                &[(wtns::HEADER, header), (wtns::VALUES, values.concat())],
            );
            prop_assert_eq!(read_back(FileKind::Wtns, &bytes), Ok(bytes));

            let (mut header, mut content) = (Vec::new(), Vec::new());
            r1cs::Header {
                curve,
                wires: 50,
                constraints: constraints.len() as u32,
                ..systems::SYSTEM
            }
            .encode(&mut header);
            for combination in constraints.iter().flatten() {
                r1cs::write_linear_combination(combination, &mut content).unwrap();
            }
            let bytes = file(
                FileKind::R1cs,
                &[(r1cs::CONSTRAINTS, content), (r1cs::HEADER, header)],
            );
            prop_assert_eq!(read_back(FileKind::R1cs, &bytes), Ok(bytes));
            Ok(())
        })
        .unwrap();
}
