//! Rank-1 constraint systems.

use spillproof_format::iden3::{FileKind, Matrix, SCALAR_BYTES, r1cs};
use spillproof_format::{Curve, FormatError};

use super::{Section, file};
use crate::read_back::read_system;

pub const SYSTEM: r1cs::Header = r1cs::Header {
    curve: Curve::Bn254,
    wires: 6,
    public_outputs: 1,
    public_inputs: 2,
    private_inputs: 9,
    labels: 1 << 40,
    constraints: 3,
};

/// The terms of three constraints; one linear combination of each is empty.
fn terms() -> Vec<r1cs::Term> {
    let matrices = [Matrix::A, Matrix::B, Matrix::C];
    (0..3u32)
        .flat_map(|constraint| matrices.map(|matrix| (constraint, matrix)))
        .filter(|(constraint, matrix)| *constraint != *matrix as u32)
        .flat_map(|(constraint, matrix)| {
            (0..1 + constraint).map(move |i| r1cs::Term {
                matrix,
                constraint,
                wire: 5 - i,
                value: [i as u8 + 1; SCALAR_BYTES],
            })
        })
        .collect()
}

pub fn system() -> Vec<Section> {
    let (mut header, mut constraints) = (Vec::new(), Vec::new());
    SYSTEM.encode(&mut header);
    for constraint in 0..3 {
        for matrix in [Matrix::A, Matrix::B, Matrix::C] {
            let combination: Vec<_> = terms()
                .iter()
                .filter(|term| (term.constraint, term.matrix) == (constraint, matrix))
                .map(|term| (term.wire, term.value))
                .collect();
            r1cs::write_linear_combination(&combination, &mut constraints).unwrap();
        }
    }
    vec![
        (r1cs::CONSTRAINTS, constraints),
        (r1cs::HEADER, header),
        (r1cs::LABELS, vec![0; 48]),
        (r1cs::CUSTOM_GATES, vec![0; 4]),
    ]
}

#[test]
fn constraint_systems_read_in_pieces_of_any_length() {
    let bytes = file(FileKind::R1cs, &system());
    for piece_bytes in 1..=bytes.len() {
        assert_eq!(
            read_system(&bytes, piece_bytes),
            Ok((SYSTEM, terms())),
            "{piece_bytes}"
        );
    }
    assert_eq!((SYSTEM.public(), SYSTEM.log_domain()), (3, 3));
    let larger = r1cs::Header {
        constraints: 5,
        ..SYSTEM
    };
    assert_eq!(larger.log_domain(), 4, "a row for the constant one");
    for (constraints, public_inputs, log_domain) in [(0, 0, 1), (1, 0, 1), (0, 1, 1), (1, 1, 2), (0, 3, 2)] {
        let small = r1cs::Header {
            public_outputs: 0,
            public_inputs,
            constraints,
            ..SYSTEM
        };
        assert_eq!(small.log_domain(), log_domain, "as snarkjs: {small:?}");
    }
}

#[test]
fn labels_may_be_missing_or_empty() {
    let mut sections = system();
    sections[2].1.clear();
    let empty = file(FileKind::R1cs, &sections);
    sections.remove(2);
    for bytes in [empty, file(FileKind::R1cs, &sections)] {
        assert_eq!(read_system(&bytes, 100), Ok((SYSTEM, terms())));
    }
}

#[test]
fn damaged_constraint_systems_are_refused() {
    let refused = |change: &dyn Fn(&mut Vec<Section>)| {
        let mut sections = system();
        change(&mut sections);
        read_system(&file(FileKind::R1cs, &sections), 7).unwrap_err()
    };
    let gates = refused(&|sections| sections[3].1.push(1));
    assert!(gates.to_string().contains("custom gates"), "{gates}");
    let uses = refused(&|sections| sections.push((r1cs::CUSTOM_GATE_USES, vec![0; 12])));
    assert!(uses.to_string().contains("custom gates"), "{uses}");
    let labels = refused(&|sections| sections[2].1.truncate(40));
    assert!(matches!(
        labels,
        FormatError::SectionLength {
            section: 3,
            expected_bytes: 48,
            ..
        }
    ));
    let short = refused(&|sections| sections[0].1.truncate(35));
    assert!(matches!(
        short,
        FormatError::SectionLength {
            section: 2,
            expected_bytes: 36,
            ..
        }
    ));
    // A of constraint 0 is empty, then B has one term: its number is at 4, its wire at 8, its coefficient
    // at 12.
    let at = |at: u64| 24 + at;
    let terms = refused(&|sections| sections[0].1[7] = 1);
    assert!(
        matches!(terms, FormatError::Field { offset, .. } if offset == at(4)),
        "{terms}"
    );
    let wire = refused(&|sections| sections[0].1[8] = 6);
    assert!(
        matches!(wire, FormatError::Coefficient { what: "wire", index: 0, offset, .. } if offset == at(8)),
        "{wire}"
    );
    let value = refused(&|sections| sections[0].1[43] = 0xff);
    assert!(
        matches!(value, FormatError::Element { index: 0, offset, .. } if offset == at(12)),
        "{value}"
    );
    let rest = refused(&|sections| sections[0].1.push(0));
    assert!(
        matches!(
            rest,
            FormatError::Field {
                what: "end of the last constraint",
                ..
            }
        ),
        "{rest}"
    );
    let constraints_bytes = system()[0].1.len();
    let cut_short = refused(&|sections| sections[0].1.truncate(constraints_bytes - 36));
    assert!(matches!(cut_short, FormatError::Field { .. }), "{cut_short}");
    let fewer = refused(&|sections| sections[1].1[60] = 4);
    assert!(
        matches!(
            fewer,
            FormatError::Field {
                what: "number of whole constraints",
                ..
            }
        ),
        "{fewer}"
    );
    let wires = refused(&|sections| sections[1].1[36] = 3);
    assert!(
        matches!(
            wires,
            FormatError::Field {
                what: "number of wires",
                ..
            }
        ),
        "{wires}"
    );
}
