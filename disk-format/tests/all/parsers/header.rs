//! Header bytes: as they come, and with magic, version and checksum put right so that the fields behind are
//! reached.

use spillproof_format::header::{HEADER_BYTES, Header, MAGIC, VERSION};

/// Panics if a parser is wrong on these bytes.
pub fn property(input: &[u8]) {
    check(input);
    // Short inputs are spread over the header: the first 128 bytes, then the section table.
    let mut bytes = [0u8; HEADER_BYTES];
    let fixed_bytes = input.len().min(128);
    bytes[..fixed_bytes].copy_from_slice(&input[..fixed_bytes]);
    let table = &input[fixed_bytes..input.len().min(128 + HEADER_BYTES - 32 - 256)];
    bytes[256..256 + table.len()].copy_from_slice(table);
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let checksum = blake3::hash(&bytes[..HEADER_BYTES - 32]);
    bytes[HEADER_BYTES - 32..].copy_from_slice(checksum.as_bytes());
    check(&bytes);
}

fn check(bytes: &[u8]) {
    let Ok(header) = Header::decode_prefix(bytes) else {
        return;
    };
    assert_eq!(
        header.encode()[..],
        bytes[..HEADER_BYTES],
        "what is accepted is canonical"
    );
    let geometry = header.geometry();
    let mut next = 0;
    for section in header.sections() {
        let frames = geometry.section_frames(section);
        assert_eq!(frames.start, next);
        next = frames.end;
        if let Some(last) = section.elements.checked_sub(1) {
            let end = geometry.element_offset(section, last).expect("in range")
                + u64::from(section.element_bytes());
            assert!(end <= geometry.frame_offset(frames.end).expect("in range"));
            assert!(geometry.payload_bytes(frames.end - 1).expect("in range") <= header.frame_bytes());
        }
    }
    assert_eq!(next, header.frames());
    assert_eq!(
        geometry.digest_table_offset() + geometry.digest_table_bytes(),
        header.file_bytes()
    );
}
