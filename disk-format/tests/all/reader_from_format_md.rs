//! A reader written from `FORMAT.md` alone: it uses nothing of this crate, only BLAKE3. If it breaks, the
//! document and the code have parted.

struct Container {
    kind: u32,
    frame_bytes: usize,
    epoch: u64,
    root: [u8; 32],
    /// (content, basis, element bytes, elements, first frame, label)
    sections: Vec<(u16, u16, usize, usize, usize, String)>,
    frames: usize,
    bytes: Vec<u8>,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The steps of FORMAT.md, "Reading a file", in its order.
fn read(bytes: Vec<u8>) -> Result<Container, &'static str> {
    if bytes.len() < 4096 || bytes[..8] != [0x89, 0x53, 0x50, 0x49, 0x4c, 0x4c, 0x0d, 0x0a] {
        return Err("magic");
    }
    if u32_at(&bytes, 8) != 1 {
        return Err("version");
    }
    if blake3::hash(&bytes[..4064]).as_bytes()[..] != bytes[4064..4096] {
        return Err("checksum");
    }
    let frame_bytes = u32_at(&bytes, 20) as usize;
    let mut sections = Vec::new();
    let mut frames = 0;
    for i in 0..u32_at(&bytes, 24) as usize {
        let at = 256 + 48 * i;
        let (element_bytes, elements) = (u32_at(&bytes, at + 4) as usize, u64_at(&bytes, at + 8) as usize);
        if u64_at(&bytes, at + 16) as usize != frames {
            return Err("first frame");
        }
        let label = bytes[at + 24..at + 40].split(|&byte| byte == 0).next().unwrap();
        let label = String::from_utf8(label.to_vec()).unwrap();
        sections.push((
            u16_at(&bytes, at),
            u16_at(&bytes, at + 2),
            element_bytes,
            elements,
            frames,
            label,
        ));
        frames += elements.div_ceil(frame_bytes / element_bytes);
    }
    let table = 4096 + frames * frame_bytes;
    if bytes.len() != table + (32 * frames).next_multiple_of(4096) {
        return Err("file length");
    }
    let mut key = blake3::Hasher::new_derive_key("spillproof-format 2026-11-20 frame digests v1");
    key.update(&bytes[40..56]).update(&bytes[32..40]);
    let key = *key.finalize().as_bytes();
    for i in 0..frames {
        let at = 4096 + i * frame_bytes;
        let mut frame = bytes[at..at + frame_bytes].to_vec();
        frame.extend((i as u64).to_le_bytes());
        if blake3::keyed_hash(&key, &frame).as_bytes()[..] != bytes[table + 32 * i..][..32] {
            return Err("frame");
        }
    }
    let mut hashed = bytes[..4064].to_vec();
    hashed[96..128].fill(0);
    hashed.extend(&bytes[table..table + 32 * frames]);
    let root = blake3::derive_key("spillproof-format 2026-11-20 container root v1", &hashed);
    if root[..] != bytes[96..128] {
        return Err("root");
    }
    if bytes[table + 32 * frames..].iter().any(|&byte| byte != 0) {
        return Err("padding");
    }
    let (kind, epoch) = (u32_at(&bytes, 12), u64_at(&bytes, 32));
    Ok(Container {
        kind,
        frame_bytes,
        epoch,
        root,
        sections,
        frames,
        bytes,
    })
}

impl Container {
    fn element(&self, section: usize, i: usize) -> &[u8] {
        let (_, _, element_bytes, elements, first_frame, _) = self.sections[section];
        assert!(i < elements);
        &self.bytes[4096 + first_frame * self.frame_bytes + i * element_bytes..][..element_bytes]
    }
}

impl Container {
    /// The content digest, as "Digests and root" has it.
    fn content(&self) -> [u8; 32] {
        let mut hashed = self.bytes[12..20].to_vec();
        for (section, (content, basis, _, elements, _, label)) in self.sections.iter().enumerate() {
            hashed.extend(content.to_le_bytes());
            hashed.extend(basis.to_le_bytes());
            hashed.extend((*elements as u64).to_le_bytes());
            hashed.extend((label.len() as u64).to_le_bytes());
            hashed.extend(label.as_bytes());
            (0..*elements).for_each(|i| hashed.extend(self.element(section, i)));
        }
        blake3::derive_key("spillproof-format 2026-11-26 content v1", &hashed)
    }
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/fixtures/v1/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_column() {
    let file = read(fixture("column.spill")).unwrap();
    assert_eq!(
        (file.kind, file.frame_bytes, file.epoch, file.frames),
        (1, 4096, 7, 3)
    );
    assert_eq!(file.sections, [(1, 2, 32, 300, 0, "column".into())]);
    assert_eq!(hex(file.element(0, 0)), "00".repeat(32));
    // One in Montgomery form is 2^256 mod r: the constant in FORMAT.md.
    assert_eq!(
        hex(file.element(0, 1)),
        "fbffff4f1c3496ac29cd609f9576fc362e4679786fa36e662fdf079ac1770a0e"
    );
    assert!(
        document().contains(&hex(&file.root)),
        "FORMAT.md names the root of the fixture"
    );
}

#[test]
fn the_srs() {
    let file = read(fixture("srs_k6.spill")).unwrap();
    assert_eq!((file.kind, file.frames), (3, 3));
    assert_eq!(
        file.sections,
        [
            (2, 1, 64, 64, 0, "g".into()),
            (2, 2, 64, 64, 1, "g_lagrange".into()),
            (3, 0, 128, 2, 2, "g2,s_g2".into())
        ]
    );
    // The generator (1, 2): 2^256 mod p and 2^257 mod p.
    let generator = file.element(0, 0);
    assert_eq!(
        hex(&generator[..32]),
        "9d0d8fc58d435dd33d0bc7f528eb780a2c4679786fa36e662fdf079ac1770a0e"
    );
    assert_eq!(
        hex(&generator[32..]),
        "3a1b1e8b1b87baa67b168eeb51d6f114588cf2f0de46ddcc5ebe0f3483ef141c"
    );
    assert!(
        document().contains(&hex(&file.root)),
        "FORMAT.md names the root of the fixture"
    );
}

#[test]
fn the_groth16_key() {
    let file = read(fixture("groth16.spill")).unwrap();
    assert_eq!((file.kind, file.frame_bytes, file.frames), (6, 4096, 10));
    let labels = [
        (2, 64, 3, "g1"),
        (3, 128, 3, "g2"),
        (2, 64, 2, "ic"),
        (2, 64, 5, "a"),
        (2, 64, 5, "b_g1"),
        (3, 128, 5, "b_g2"),
        (2, 64, 5, "c"),
        (2, 64, 4, "h"),
        (1, 32, 3, "values"),
        (5, 16, 6, "coefficients"),
    ];
    for (i, (found, (content, element_bytes, elements, label))) in
        file.sections.iter().zip(labels).enumerate()
    {
        assert_eq!(*found, (content, 0, element_bytes, elements, i, label.into()));
    }
    assert_eq!(file.sections.len(), labels.len());
    // Alpha is once the generator (1, 2), as in the SRS.
    assert_eq!(
        file.element(0, 0),
        read(fixture("srs_k6.spill")).unwrap().element(0, 0)
    );
    assert_eq!(
        hex(file.element(8, 0)),
        "fbffff4f1c3496ac29cd609f9576fc362e4679786fa36e662fdf079ac1770a0e"
    );
    for i in 0..6 {
        let record = file.element(9, i);
        let fields = [0, 4, 8, 12].map(|at| u32_at(record, at) as usize);
        assert_eq!(fields, [i / 2, i % 5, i % 3, i % 2]);
    }
    assert!(
        document().contains(&hex(&file.root)),
        "FORMAT.md names the root of the fixture"
    );
}

#[test]
fn the_dealt_groth16_key_names_its_share() {
    let file = read(fixture("groth16_dealt.spill")).unwrap();
    assert_eq!(file.kind, 8);
    let dealt_bytes = file.sections[3].3;
    assert_eq!(
        file.sections[..3],
        [
            (2, 0, 64, 3, 0, "g1".into()),
            (3, 0, 128, 3, 1, "g2".into()),
            (2, 0, 64, 2, 2, "ic".into())
        ]
    );
    assert_eq!(file.sections[3], (4, 0, 1, dealt_bytes, 3, "dealt".into()));
    let dealt: Vec<u8> = (0..dealt_bytes).map(|i| file.element(3, i)[0]).collect();
    let fixed = [0, 4, 8, 12].map(|at| u32_at(&dealt, at));
    assert_eq!((fixed, u64_at(&dealt, 16)), ([1, 1, 2, 2], 5));
    let numbers = [0, 1, 2, 3, 4, 5, 6].map(|i| u64_at(&dealt, 24 + 8 * i));
    assert_eq!(numbers, [3, 0, 1, 0, 3, 3, 4]);
    let share = read(fixture("groth16_share.spill")).unwrap();
    assert_eq!((share.kind, dealt[80..112].to_vec()), (9, share.root.to_vec()));
    let name_bytes = usize::from(u16_at(&dealt, 112));
    assert_eq!(&dealt[114..114 + name_bytes], b"groth16_share.spill");
    // The second share begins behind the name.
    assert_eq!(u64_at(&dealt, 114 + name_bytes), 2);
    let labels = share.sections.iter().map(|section| (&*section.5, section.3));
    let expected = [
        ("a", 3),
        ("b_g1", 3),
        ("b_g2", 3),
        ("c", 3),
        ("h", 2),
        ("values", 3),
        ("coefficients", 4),
    ];
    assert!(labels.eq(expected));
    for file in [file, share] {
        assert!(
            document().contains(&hex(&file.root)),
            "FORMAT.md names the root of the fixture"
        );
    }
}

#[test]
fn the_witness() {
    let file = read(fixture("witness.spill")).unwrap();
    assert_eq!((file.kind, file.frames), (7, 3));
    assert_eq!(
        file.sections,
        [
            (4, 0, 1, 88, 0, "statement".into()),
            (1, 2, 32, 256, 1, "advice".into())
        ]
    );
    let statement: Vec<u8> = (0..88).map(|i| file.element(0, i)[0]).collect();
    let (version, k) = (u32_at(&statement, 0), u32_at(&statement, 36));
    let [advice, instances] = [40, 44].map(|at| u32_at(&statement, at));
    assert_eq!((version, k, advice, instances), (1, 4, 2, 1));
    assert_eq!((u64_at(&statement, 48), statement[56]), (1, 5));
    // A column starts at a frame: of 2^4 rows here, and 128 scalars fill a frame. The first rows are 1
    // and 101.
    let montgomery_one = "fbffff4f1c3496ac29cd609f9576fc362e4679786fa36e662fdf079ac1770a0e";
    assert_eq!(hex(file.element(1, 0)), montgomery_one);
    assert_ne!(hex(file.element(1, 128)), "00".repeat(32));
    assert_eq!(hex(file.element(1, 128 + 10)), "00".repeat(32));
    assert!(
        document().contains(&hex(&file.root)),
        "FORMAT.md names the root of the fixture"
    );
}

/// The one place where this crate is used: both have the same content digest.
#[test]
fn the_content_has_a_digest_of_its_own() {
    for name in [
        "column.spill",
        "srs_k6.spill",
        "groth16.spill",
        "groth16_dealt.spill",
        "groth16_share.spill",
        "witness.spill",
    ] {
        let file = read(fixture(name)).unwrap();
        let header = spillproof_format::Header::decode_prefix(&file.bytes).unwrap();
        let mut hasher = spillproof_format::ContentHasher::new(&header);
        for (number, section) in header.sections().iter().enumerate() {
            hasher.section(section);
            (0..section.elements as usize).for_each(|i| {
                hasher.elements(file.element(number, i));
            });
        }
        assert_eq!(hasher.finish(), file.content(), "{name}");
    }
}

#[test]
fn a_flipped_byte_anywhere_is_found() {
    let bytes = fixture("srs_k6.spill");
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        assert!(read(flipped).is_err(), "byte {at}");
    }
}

fn document() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/FORMAT.md")).unwrap()
}
