//! Files of iden3's container format, made here byte by byte, read as a program reads them.
//!
//! `read_back.rs` reads them, and writes them again from what it read; the fuzz target does the same.

mod keys;
mod powers;
mod properties;
mod systems;
mod witnesses;

use spillproof_format::FormatError;
use spillproof_format::iden3::{ByteRange, FileKind, SectionWalk, write_prefix, write_section_prefix};

use crate::read_back::walk;

/// Id and content.
type Section = (u32, Vec<u8>);

/// A file of these sections, in this order.
fn file(kind: FileKind, sections: &[Section]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_prefix(kind, sections.len() as u32, &mut bytes);
    for (id, content) in sections {
        write_section_prefix(*id, content.len() as u64, &mut bytes);
        bytes.extend(content);
    }
    bytes
}

#[test]
fn damaged_containers_are_refused() {
    let sections = [(1, vec![1; 4]), (2, vec![2; 8]), (77, Vec::new())];
    let good = file(FileKind::Zkey, &sections);
    let found = walk(FileKind::Zkey, &good).unwrap();
    assert_eq!(found.range(2).unwrap(), ByteRange { offset: 40, bytes: 8 });
    assert_eq!(found.iter().map(|(id, _)| id).collect::<Vec<_>>(), [1, 2, 77]);
    assert!(
        found
            .range(5)
            .unwrap_err()
            .to_string()
            .contains("section 5 (A points)")
    );
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        walk(FileKind::Zkey, &bytes).unwrap_err()
    };
    for (at, value) in [(0, b'Z'), (8, 0), (8, 65), (11, 1)] {
        let error = refused(&|bytes| bytes[at] = value);
        assert!(matches!(error, FormatError::Field { .. }), "{error}");
    }
    assert!(matches!(
        refused(&|bytes| bytes[4] = 3),
        FormatError::Unknown { offset: 4, .. }
    ));
    assert!(matches!(
        refused(&|bytes| bytes[28] = 1),
        FormatError::DuplicateSection {
            section: 1,
            first_offset: 24,
            offset: 40,
            ..
        }
    ));
    assert!(matches!(
        refused(&|bytes| bytes[8] = 4),
        FormatError::SectionCount {
            announced: 4,
            found: 3,
            ..
        }
    ));
    assert!(matches!(
        refused(&|bytes| bytes[8] = 2),
        FormatError::Length { .. }
    ));
    assert!(matches!(
        refused(&|bytes| bytes.push(0)),
        FormatError::Length { .. }
    ));
    for value in [20, 21, 255] {
        assert!(matches!(
            refused(&|bytes| bytes[32..40].fill(value)),
            FormatError::SectionOverrun { section: 2, .. }
        ));
    }
    assert!(walk(FileKind::Wtns, &good).is_err());
}

#[test]
fn a_walk_takes_what_it_asks_for() {
    let mut walk = SectionWalk::new(FileKind::Wtns, 100);
    assert_eq!(walk.next_read(), Some((0, 12)));
    assert!(walk.give(&[0; 11]).is_err());
    assert!(walk.give(&[0; 24]).is_err());
    assert_eq!(walk.next_read(), Some((0, 12)));
    assert!(SectionWalk::new(FileKind::Wtns, 11).next_read().is_none());
    assert!(SectionWalk::new(FileKind::Wtns, 11).give(&[]).is_err());
    assert!(SectionWalk::new(FileKind::Wtns, 11).finish().is_err());
}
