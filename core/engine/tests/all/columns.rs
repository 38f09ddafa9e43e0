//! Columns against vectors: what was written comes back, through every region, placement and container.

use std::io::Read;
use std::path::Path;

use ark_bn254::Fr;
use ark_ff::UniformRand;
use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::budget::Budget;
use spillproof_engine::column::{
    Bundle, BundleKind, BundleWriter, Column, Container, ContainerWriter, Draft, Group, Placement, Region,
    STREAM_BYTES, Scratch, SectionSpec, StreamedBundle, Workspace, Writer,
};
use spillproof_engine::error::Invalid;
use spillproof_engine::storage::{Fault, FaultPlan, Storage};
use spillproof_format::{Basis, Content, Curve, Kind, Label};

/// Bytes that come a few at a time.
struct Pieces<'b>(&'b [u8]);

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let piece = out.len().min(777);
        self.0.read(&mut out[..piece])
    }
}

fn workspace(dir: &tempfile::TempDir) -> Workspace {
    let storage = Storage::builder()
        .dir(dir.path())
        .build()
        .expect("storage in a temporary directory");
    Workspace::new(storage, Budget::new(64 << 20))
}

fn scalars(len: usize, seed: u64) -> Vec<Fr> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    (0..len).map(|_| Fr::rand(&mut rng)).collect()
}

fn scratch(workspace: &Workspace, values: &[Fr], placement: Placement) -> Result<Column<Fr>> {
    let mut writer = Writer::scratch(workspace, "test column", values.len() as u64, placement)?;
    // Pieces that don't divide a frame, nor the buffer.
    for piece in values.chunks(1000) {
        writer.push(piece)?;
    }
    writer.finish()
}

#[test]
fn what_was_written_comes_back() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let workspace = workspace(&dir);
    for len in [0, 1, 511, 512, 513, 100_000] {
        let values = scalars(len, len as u64);
        for placement in [Placement::Disk, Placement::Memory, Placement::Auto] {
            let column = scratch(&workspace, &values, placement).expect("column");
            assert_eq!(column.to_vec().expect("readable"), values);
        }
    }
    assert_eq!(workspace.budget.held_bytes(), 0, "every lease was given back");
    assert_eq!(
        std::fs::read_dir(dir.path()).expect("listing").count(),
        0,
        "no scratch is left"
    );
}

fn expected(values: &[Fr], region: Region) -> Vec<Fr> {
    match region {
        Region::Span { start, len } => values[start as usize..(start + len) as usize].to_vec(),
        Region::Wrapped { start, len, modulus } => (0..len)
            .map(|i| values[((start + i) % modulus) as usize])
            .collect(),
        Region::Panel {
            row_len,
            first_row,
            rows,
            first_column,
            columns,
        } => (first_row..first_row + rows)
            .flat_map(|row| (first_column..first_column + columns).map(move |c| row * row_len + c))
            .map(|i| values[i as usize])
            .collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_region_is_the_vector_s(
        seed in any::<u64>(),
        log_rows in 0u32..6,
        row_len in 1u64..700,
        picks in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), 0..3), 1..12),
        in_memory in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().expect("temporary directory");
        let workspace = workspace(&dir);
        let rows = 1u64 << log_rows;
        let len = rows * row_len;
        let values = scalars(len as usize, seed);
        let placement = if in_memory { Placement::Memory } else { Placement::Disk };
        let column = scratch(&workspace, &values, placement).expect("column");
        let regions: Vec<Region> = picks.into_iter().map(|(a, b, c, d, kind)| match kind {
            0 => { let start = a % len; Region::Span { start, len: b % (len - start + 1) } }
            1 => Region::Wrapped { start: a % len, len: b % (len + 1), modulus: len },
            _ => {
                let (first_row, first_column) = (a % rows, b % row_len);
                Region::Panel {
                    row_len,
                    first_row,
                    rows: c % (rows - first_row + 1),
                    first_column,
                    columns: d % (row_len - first_column + 1),
                }
            }
        }).collect();
        let mut reader = column.reader(regions.clone().into_iter(), 2).expect("reader");
        let mut out = vec![Fr::from(0u64); len as usize];
        for region in regions {
            prop_assert_eq!(reader.next_into(&mut out).expect("readable"), Some(region));
            prop_assert_eq!(&out[..region.len() as usize], &expected(&values, region)[..]);
        }
        prop_assert_eq!(reader.next_into(&mut out).expect("end"), None);
    }
}

#[test]
fn a_draft_takes_regions_in_any_order() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let workspace = workspace(&dir);
    let (rows, row_len) = (8u64, 1024u64);
    let values = scalars((rows * row_len) as usize, 3);
    let mut draft = Draft::scratch(&workspace, "panels", rows * row_len, Placement::Disk).expect("draft");
    for first_column in [512, 0] {
        let region = Region::Panel {
            row_len,
            first_row: 0,
            rows,
            first_column,
            columns: 512,
        };
        draft.write(region, &expected(&values, region)).expect("written");
    }
    assert_eq!(
        draft.finish().expect("finished").to_vec().expect("readable"),
        values
    );

    let mut draft = Draft::<Fr>::scratch(&workspace, "misaligned", 2048, Placement::Disk).expect("draft");
    let misaligned = draft.write(Region::Span { start: 1, len: 512 }, &values);
    assert!(
        matches!(misaligned, Err(Error::Invalid(Invalid::InsideFrame { .. }))),
        "{misaligned:?}"
    );
    draft
        .write(
            Region::Span {
                start: 1536,
                len: 512,
            },
            &values,
        )
        .expect("the last frame");
    // A frame that was never written is not mistaken for zeros.
    let column = draft.finish().expect("finished");
    assert!(matches!(column.to_vec(), Err(Error::Damaged { frame: 0, .. })));
}

fn container(workspace: &Workspace, path: &Path, values: &[Fr]) -> Result<[u8; 32]> {
    let spec = |label| SectionSpec {
        content: Content::Scalars,
        basis: Basis::None,
        elements: values.len() as u64,
        label: Label::new(label).expect("a label"),
    };
    let bytes = SectionSpec {
        content: Content::Bytes,
        elements: 5000,
        ..spec("bytes")
    };
    let sections = [spec("first"), spec("second"), bytes];
    let writer = ContainerWriter::create(
        workspace,
        path,
        Kind::FieldColumn,
        Curve::Bn254,
        4096,
        [7; 32],
        &sections,
    )?;
    for index in 0..2 {
        let mut column = Writer::new(writer.draft::<Fr>(index)?);
        column.push(values)?;
        column.finish()?;
    }
    let mut bytes = Writer::new(writer.draft::<[u8; 1]>(2)?);
    bytes.push(&[[7]; 5000])?;
    bytes.finish()?;
    writer.publish()
}

#[test]
fn a_container_opens_and_every_flipped_byte_is_found() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let workspace = workspace(&dir);
    let path = dir.path().join("column.spill");
    let values = scalars(300, 9);
    let root = container(&workspace, &path, &values).expect("container");
    let opened = Container::open(&workspace, &path).expect("opens");
    assert_eq!(opened.root(), root);
    assert_eq!(opened.header().parent, [7; 32]);
    for section in &opened.header().sections()[..2] {
        let column = opened.column::<Fr>(section).expect("scalars");
        assert_eq!(column.to_vec().expect("readable"), values);
    }
    opened.verify(|_| ()).expect("whole");

    let bytes = std::fs::read(&path).expect("bytes");
    // Every 97th byte, and the neighbourhood of every boundary.
    let spots = (0..bytes.len()).filter(|at| at % 97 == 0 || at % 4096 < 2 || at % 4096 > 4093);
    for at in spots {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        std::fs::write(&path, &changed).expect("written");
        let found = Container::open(&workspace, &path).and_then(|opened| opened.verify(|_| ()));
        match found {
            Err(Error::Damaged { offset, .. }) => {
                assert!(
                    (offset..offset + 4096).contains(&(at as u64)),
                    "byte {at} was found at {offset}"
                );
            }
            Err(Error::Format { .. }) => (),
            other => panic!("byte {at}: {other:?}"),
        }
    }
    for len in [0, 100, 4096, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..len]).expect("written");
        let cut = Container::open(&workspace, &path);
        assert!(matches!(cut, Err(Error::Format { .. })), "{len} bytes: {cut:?}");
    }
}

#[test]
fn an_unpublished_container_leaves_nothing() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let workspace = workspace(&dir);
    let path = dir.path().join("column.spill");
    let spec = SectionSpec {
        content: Content::Scalars,
        basis: Basis::None,
        elements: 1000,
        label: Label::new("only").expect("a label"),
    };
    let create = || {
        ContainerWriter::create(
            &workspace,
            &path,
            Kind::FieldColumn,
            Curve::Bn254,
            4096,
            [0; 32],
            &[spec],
        )
    };
    drop(create().expect("started"));
    assert_eq!(std::fs::read_dir(dir.path()).expect("listing").count(), 0);
    // Frames that were never written are refused.
    let unwritten = create().expect("started").publish();
    assert!(
        matches!(unwritten, Err(Error::Invalid(Invalid::UnwrittenFrame { .. }))),
        "{unwritten:?}"
    );
    assert_eq!(std::fs::read_dir(dir.path()).expect("listing").count(), 0);
}

#[test]
fn a_refused_lease_names_who_holds_what() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let storage = Storage::builder().dir(dir.path()).build().expect("storage");
    let workspace = Workspace::new(storage, Budget::new(64 << 10));
    let refused = Draft::<Fr>::scratch(&workspace, "large", 1 << 20, Placement::Memory).err();
    assert!(matches!(refused, Some(Error::OverBudget { .. })), "{refused:?}");
    assert_eq!(workspace.budget.held_bytes(), 0);
}

#[test]
fn a_bundle_gives_back_its_polynomials_in_place() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let workspace = workspace(&dir);
    let path = dir.path().join("bundle");
    for (rows, polynomials) in [(1usize, 3usize), (511, 2), (512, 70), (700, 1), (2048, 5)] {
        let values: Vec<Vec<Fr>> = (0..polynomials)
            .map(|i| scalars(if i == 1 { rows / 2 } else { rows }, i as u64))
            .collect();
        let group = |label, polynomials| Group {
            label,
            lagrange: false,
            polynomials,
        };
        let groups = [group("many", polynomials), group("none", 0), group("one", 1)];
        let bundle = BundleWriter::create(&workspace, &path, 5, rows as u64, &groups).expect("bundle");
        let mut key = bundle.key().expect("key");
        key.push(&[[1], [2], [3], [4], [5]]).expect("bytes");
        key.finish().expect("key");
        let column = |values: &Vec<Fr>| scratch(&workspace, values, Placement::Disk);
        bundle
            .write("many", values.iter().map(column))
            .expect("polynomials");
        bundle
            .write("none", std::iter::empty::<Result<Column<Fr>>>())
            .expect("no polynomials");
        assert!(
            bundle.write("none", [column(&values[0])]).is_err(),
            "not announced"
        );
        bundle.write("one", [column(&values[0])]).expect("a polynomial");
        let root = bundle.publish().expect("published");

        let bundle = Bundle::open(&workspace, &path).expect("opened");
        assert_eq!(bundle.root(), root);
        assert_eq!(
            bundle.key().and_then(|key| key.to_vec()).expect("key"),
            [[1], [2], [3], [4], [5]]
        );
        let many = bundle
            .group::<Fr>("many", polynomials, rows as u64)
            .expect("group");
        for (column, values) in many.iter().zip(&values) {
            let mut expected = values.clone();
            expected.resize(rows, Fr::from(0u64));
            assert_eq!(column.to_vec().expect("readable"), expected);
            assert_eq!(column.map().expect("mapped")[..], expected);
        }
        assert!(
            bundle
                .group::<Fr>("none", 0, rows as u64)
                .expect("no group")
                .is_empty()
        );
        // The same as it comes, in pieces, on a ledger of its own.
        let file = std::fs::read(&path).expect("the file");
        let come = |bytes: &[u8], most: usize| {
            let own = workspace.clone().with_budget(Budget::new(STREAM_BYTES));
            let name = (Path::new("sent"), most as u64);
            let mut source = Pieces(bytes);
            let kind = BundleKind {
                kind: Kind::ProvingKeyBundle,
                curve: Curve::Bn254,
            };
            StreamedBundle::<Fr>::read(&own, name, kind, &mut source)
        };
        let sent = come(&file, file.len()).expect("a bundle");
        let key = sent.bytes("key").expect("the section");
        assert_eq!(key.to_vec().expect("key"), [[1], [2], [3], [4], [5]]);
        let columns = sent.group("many", polynomials, rows as u64).expect("group");
        for (sent, opened) in columns.iter().zip(&many) {
            assert_eq!(
                sent.to_vec().expect("readable"),
                opened.to_vec().expect("readable")
            );
        }
        assert!(sent.group("many", polynomials + 1, rows as u64).is_err());
        assert!(sent.bytes("many").is_none() && sent.group("key", 1, 1).is_err());
        let longer = [&file[..], &[0]].concat();
        for (bytes, most) in [
            (&file[..], file.len() - 1),
            (&file[..file.len() - 1], file.len()),
            (&file[..5000], file.len()),
            (&file[..10], file.len()),
            (&longer[..], longer.len()),
        ] {
            assert!(
                matches!(come(bytes, most), Err(Error::Format { .. })),
                "{}",
                bytes.len()
            );
        }
        for at in [0, 300, 4096, file.len() / 2, file.len() - 4096, file.len() - 1] {
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            assert!(
                matches!(come(&damaged, file.len()), Err(Error::Format { .. })),
                "{at}"
            );
        }
        for wrong in [
            bundle.group::<Fr>("many", polynomials + 1, rows as u64),
            bundle.group("key", 1, 1),
        ] {
            assert!(matches!(wrong, Err(Error::Invalid(_))), "{wrong:?}");
        }
    }
    // Too many, too few, too long.
    let group = [Group {
        label: "two",
        lagrange: true,
        polynomials: 2,
    }];
    for (count, len) in [(3, 10), (1, 10), (2, 11)] {
        let bundle = BundleWriter::create(&workspace, &path, 0, 10, &group).expect("bundle");
        let column = || scratch(&workspace, &scalars(len, 1), Placement::Memory);
        assert!(
            bundle.write("two", (0..count).map(|_| column())).is_err(),
            "{count} of {len}"
        );
    }
    let column = scratch(&workspace, &scalars(1024, 1), Placement::Disk).expect("column");
    assert!(column.part(1, 3).is_err() && column.part(512, 513).is_err());
    assert_eq!(
        column.part(512, 5).expect("part").to_vec().expect("readable"),
        scalars(1024, 1)[512..517]
    );
}

/// Columns in memory move to disk behind their handles and give their memory back, but for one of which a
/// slice is lent.
#[test]
fn columns_in_memory_move_to_disk() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let workspace = workspace(&dir);
    let values = scalars(5000, 3);
    let written = || scratch(&workspace, &values, Placement::Memory).expect("column");
    let (column, lent, unwritten) = (
        written(),
        written(),
        Draft::<Fr>::scratch(&workspace, "unwritten", 512, Placement::Memory),
    );
    let (slice, lent_bytes) = (lent.map().expect("slice"), 5000u64.div_ceil(512) * (16 << 10));
    let unwritten = unwritten.and_then(Draft::finish).expect("column");
    let mut bytes = Writer::<[u8; 8]>::scratch(&workspace, "bytes", 5000, Placement::Memory).expect("writer");
    bytes.push(&[[7; 8]; 5000]).expect("written");
    let bytes = bytes.finish().expect("column");
    let (mut chunk, mut seen) = (vec![Fr::from(0u64); 1024], 0);
    let mut reader = column.read_ascending(1024).expect("reader");
    let held_bytes = workspace.budget.held_bytes();
    workspace.move_columns_to_disk().expect("room on disk");
    // The column's, and the bytes' but for their digests.
    assert!(
        workspace.budget.held_bytes() + lent_bytes + (32 << 10) < held_bytes,
        "{:?}",
        workspace.budget
    );
    while let Some(region) = reader.next_into(&mut chunk).expect("readable") {
        assert_eq!(
            chunk[..region.len() as usize],
            values[seen..seen + region.len() as usize]
        );
        seen += region.len() as usize;
    }
    drop(reader);
    assert_eq!((seen, column.to_vec().expect("readable")), (5000, values.clone()));
    assert_eq!(
        column.prefix(700).expect("prefix").map().expect("slice")[..],
        values[..700]
    );
    assert_eq!(bytes.map().expect("slice")[..], [[7; 8]; 5000]);
    assert!(matches!(unwritten.to_vec(), Err(Error::Damaged { .. })));
    assert_eq!(slice[..], values[..]);

    // Once it is given back, that one moves too, with nothing left behind.
    drop(slice);
    workspace.move_columns_to_disk().expect("room on disk");
    assert_eq!(lent.to_vec().expect("readable"), values);
    drop((column, lent, unwritten, bytes));
    assert_eq!(workspace.budget.held_bytes(), 0);
    assert_eq!(std::fs::read_dir(dir.path()).expect("directory").count(), 0);
}

/// A disk that fails while a column moves there leaves it in memory.
#[test]
fn a_column_that_cannot_move_stays() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for fault in [Fault::Io, Fault::NoSpace] {
        let storage = Storage::builder()
            .dir(dir.path())
            .faults(FaultPlan::always(fault));
        let workspace = Workspace::new(storage.build().expect("storage"), Budget::new(64 << 20));
        let values = scalars(5000, 4);
        let column = scratch(&workspace, &values, Placement::Memory).expect("column");
        let held_bytes = workspace.budget.held_bytes();
        workspace.move_columns_to_disk().expect_err("a disk that fails");
        assert_eq!(workspace.budget.held_bytes(), held_bytes);
        assert_eq!(column.to_vec().expect("readable"), values);
    }
}

/// Lengths that no disk has are errors, whatever file system lets a file be as long as it says.
#[test]
fn columns_that_are_too_long_are_refused() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let plain = workspace(&dir);
    let sealed = workspace(&dir).with_scratch(Scratch::Sealed).expect("a key");
    let dry = Workspace::dry(Budget::new(64 << 20));
    let is_too_long = |result: Result<()>| match result {
        Err(Error::Invalid(Invalid::TooLong { given, limit, .. })) => given > limit,
        other => panic!("{other:?}"),
    };
    for log_len in 48..64 {
        for len in [1u64 << log_len, u64::MAX >> (63 - log_len)] {
            for placement in [Placement::Disk, Placement::Memory, Placement::Auto] {
                let made = |workspace| Draft::<Fr>::scratch(workspace, "scalars", len, placement).map(drop);
                // Points are twice as long.
                assert!(Draft::<[u8; 64]>::scratch(&sealed, "points", len, placement).is_err());
                match len.saturating_mul(32) > i64::MAX as u64 {
                    true => assert!([&plain, &sealed, &dry].map(made).into_iter().all(is_too_long)),
                    // A plain column of that length would try the disk.
                    false => assert!(made(&sealed).is_err(), "{len} scalars, {placement:?}"),
                }
            }
        }
    }
    for workspace in [plain, sealed, dry] {
        assert_eq!(workspace.budget.held_bytes(), 0);
    }
}
