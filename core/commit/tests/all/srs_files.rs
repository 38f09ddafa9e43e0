//! SRS files in and out: the points and bytes of the unmodified halo2-axiom, every corruption refused by
//! name, every fault of the storage either harmless or a typed error, and nothing left behind.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ark_bn254::{Fq, G1Affine, G2Affine};
use ark_ec::AffineRepr;
use ark_ff::{BigInteger, PrimeField};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_commit::{SrsProgress, add_lagrange, import_params_kzg, verify_srs};
use spillproof_engine::Error;
use spillproof_engine::budget::Budget;
use spillproof_engine::column::{Container, ContainerWriter, Workspace, Writer};
use spillproof_engine::error::Invalid;
use spillproof_engine::storage::{Fault, FaultPlan, Storage};
use spillproof_format::native::write_point;
use spillproof_format::params_kzg::{Dialect, Encoding, Layout, Region, SerdeFormat, Stated};
use spillproof_format::{FormatError, PointFault, srs};
use stock_halo2_axiom::SerdeFormat as StockFormat;
use stock_halo2_axiom::halo2curves::bn256::Bn256;
use stock_halo2_axiom::poly::commitment::Params as _;
use stock_halo2_axiom::poly::kzg::commitment::ParamsKZG;

use crate::place::Place;

const FORMATS: [(SerdeFormat, StockFormat); 3] = [
    (SerdeFormat::Processed, StockFormat::Processed),
    (SerdeFormat::RawBytes, StockFormat::RawBytes),
    (SerdeFormat::RawBytesUnchecked, StockFormat::RawBytesUnchecked),
];

const RAW: Encoding = Encoding::new(Dialect::Halo2, SerdeFormat::RawBytes);

impl Place {
    fn import(&self, source: &Path, target: &Path) -> Result<[u8; 32], Error> {
        import_params_kzg(&self.workspace, source, target, Stated::default(), &mut |_| {})
            .map(|imported| imported.root)
    }

    fn verify(&self, path: &Path) -> Result<u32, Error> {
        verify_srs(&self.workspace, path, &mut |_| {})
    }

    /// Names in the folder and in its scratch folder.
    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for dir in [self.dir.path().to_path_buf(), self.path("scratch")] {
            for entry in std::fs::read_dir(dir).unwrap() {
                names.push(entry.unwrap().file_name().into_string().unwrap());
            }
        }
        names.retain(|name| name != "scratch");
        names.sort();
        names
    }
}

fn stock(k: u32, format: StockFormat) -> Vec<u8> {
    let params = ParamsKZG::<Bn256>::setup(k, ChaCha8Rng::seed_from_u64(7));
    let mut bytes = Vec::new();
    params.write_custom(&mut bytes, format).unwrap();
    bytes
}

#[test]
fn import_and_export_give_stocks_bytes() {
    let place = Place::new();
    let target = place.path("x.srs");
    // 2^11 points take two frames of a section.
    for k in [0, 1, 6, 11] {
        for (format, stock_format) in FORMATS {
            let source = place.write("params", &stock(k, stock_format));
            let stated = Stated {
                format: Some(format),
                ..Stated::default()
            };
            let imported =
                import_params_kzg(&place.workspace, &source, &target, stated, &mut |_| {}).unwrap();
            assert_eq!(imported.k, k);
            assert_eq!(imported.encoding, Encoding::new(Dialect::Halo2, format));
            assert_eq!(
                Container::open(&place.workspace, &target).unwrap().root(),
                imported.root
            );
            assert_eq!(place.verify(&target).unwrap(), k);
            for (format, stock_format) in FORMATS {
                assert!(
                    place.export(&target, format).unwrap() == stock(k, stock_format),
                    "k = {k}, {format}"
                );
            }
        }
    }
    assert_eq!(place.workspace.budget.held_bytes(), 0);
    assert_eq!(place.names(), ["exported", "params", "x.srs"]);
}

#[test]
fn the_points_in_the_container_are_stocks() {
    let place = Place::new();
    let bytes = stock(11, StockFormat::RawBytes);
    let source = place.write("params", &bytes);
    place.import(&source, &place.path("x.srs")).unwrap();
    let file = std::fs::read(place.path("x.srs")).unwrap();
    let layout = Layout::new(RAW, 11).unwrap();
    // Native points are the raw bytes.
    for (region, frame) in [(Region::G, 0), (Region::GLagrange, 2), (Region::G2, 4)] {
        let at = layout.offset(region) as usize;
        let len = layout.region_bytes(region) as usize;
        assert!(file[4096 + frame * 65536..][..len] == bytes[at..at + len]);
    }
}

#[test]
fn progress_reaches_every_total() {
    let place = Place::new();
    let source = place.write("params", &stock(11, StockFormat::RawBytes));
    let mut ends = Vec::new();
    let mut progress = |at: SrsProgress| {
        if at.points == at.points_total {
            ends.push(at.phase);
        }
    };
    import_params_kzg(
        &place.workspace,
        &source,
        &place.path("x.srs"),
        Stated::default(),
        &mut progress,
    )
    .unwrap();
    assert_eq!(ends, ["g", "g_lagrange", "check g", "check g_lagrange"]);
}

/// The error of importing a file that was changed; nothing of the target may be left.
fn refused(change: impl FnOnce(&Layout, &mut Vec<u8>)) -> FormatError {
    let place = Place::new();
    let mut bytes = stock(6, StockFormat::RawBytes);
    let layout = Layout::new(RAW, 6).unwrap();
    change(&layout, &mut bytes);
    let source = place.write("params", &bytes);
    let error = place.import(&source, &place.path("x.srs")).unwrap_err();
    assert_eq!(place.names(), ["params"], "{error}");
    match error {
        Error::Format { file, source } => {
            assert!(file.ends_with("params"), "{}", file.display());
            source
        }
        other => panic!("{other}"),
    }
}

fn put(bytes: &mut [u8], layout: &Layout, region: Region, index: u64, point: G1Affine) {
    let at = layout.run_offset(region, index, 1).unwrap() as usize;
    write_point(&point, &mut bytes[at..at + 64]);
}

fn inconsistent(error: FormatError) -> &'static str {
    match error {
        FormatError::Inconsistent { what, .. } => what,
        other => panic!("{other}"),
    }
}

#[test]
fn bad_points_are_refused_with_index_and_offset() {
    let error = refused(|layout, bytes| bytes[layout.offset(Region::G) as usize + 64 * 33] ^= 1);
    let FormatError::Point {
        what,
        index,
        offset,
        fault,
        ..
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!(
        (what, index, offset, fault),
        ("g", 33, 4 + 64 * 33, PointFault::NotOnCurve)
    );
    let error = refused(|layout, bytes| bytes[layout.offset(Region::SG2) as usize + 31] = 0xff);
    let FormatError::Point {
        what, index, fault, ..
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!((what, index, fault), ("s_g2", 0, PointFault::NotReduced));
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let generator = G1Affine::generator();
    // A point of the curve in the wrong place, in each region, at either end and inside.
    for index in [0, 1, 40, 63] {
        let error = refused(|layout, bytes| {
            put(bytes, layout, Region::G, index, (generator + generator).into());
        });
        assert!(inconsistent(error).starts_with("g and s_g2"), "g[{index}]");
        let error = refused(|layout, bytes| put(bytes, layout, Region::GLagrange, index, generator));
        assert!(
            inconsistent(error).starts_with("g_lagrange is not"),
            "g_lagrange[{index}]"
        );
    }
    let swapped = refused(|layout, bytes| {
        let at = layout.offset(Region::GLagrange) as usize;
        let (first, second) = bytes[at..at + 128].split_at_mut(64);
        first.swap_with_slice(second);
    });
    assert!(inconsistent(swapped).starts_with("g_lagrange is not"));
    let other_secret = refused(|layout, bytes| {
        let at = layout.offset(Region::SG2) as usize;
        write_point(&G2Affine::generator(), &mut bytes[at..at + 128]);
    });
    assert!(inconsistent(other_secret).starts_with("g and s_g2"));
    for region in [Region::G2, Region::SG2] {
        let infinity = refused(|layout, bytes| {
            let at = layout.offset(region) as usize;
            bytes[at..at + 128].fill(0);
        });
        assert!(inconsistent(infinity).contains("infinity"));
    }
    // All zero: every point is infinity.
    let nothing = refused(|_, bytes| bytes[4..].fill(0));
    assert!(inconsistent(nothing).contains("infinity"));
}

#[test]
fn other_files_are_refused() {
    assert!(matches!(
        refused(|_, bytes| bytes.truncate(100)),
        FormatError::NoSuchLength { .. }
    ));
    assert!(matches!(
        refused(|_, bytes| bytes.clear()),
        FormatError::NoSuchLength { .. }
    ));
    assert!(matches!(
        refused(|_, bytes| bytes.push(0)),
        FormatError::NoSuchLength { .. }
    ));
    assert!(matches!(
        refused(|_, bytes| bytes[0] = 7),
        FormatError::Field { what: "k", .. }
    ));
    let place = Place::new();
    let missing = place
        .import(&place.path("nothing"), &place.path("x.srs"))
        .unwrap_err();
    assert!(
        matches!(
            missing,
            Error::File {
                operation: "open",
                ..
            }
        ),
        "{missing}"
    );
}

#[test]
fn a_target_that_exists_stays_when_the_import_fails() {
    let place = Place::new();
    let good = place.write("params", &stock(3, StockFormat::RawBytes));
    let target = place.path("x.srs");
    let root = place.import(&good, &target).unwrap();
    let mut bytes = stock(3, StockFormat::RawBytes);
    bytes[10] ^= 1;
    let bad = place.write("bad", &bytes);
    place.import(&bad, &target).unwrap_err();
    assert_eq!(Container::open(&place.workspace, &target).unwrap().root(), root);
}

/// The error of verifying a container whose digests fit, made from a good one with point 9 of each basis
/// changed.
fn deceived(change: impl Fn(&mut [u8; 64])) -> FormatError {
    let place = Place::new();
    let source = place.write("params", &stock(5, StockFormat::RawBytes));
    let good = place.path("good.srs");
    place.import(&source, &good).unwrap();
    let good = Container::open(&place.workspace, &good).unwrap();
    let header = good.header();
    let specs = srs::sections(header.curve(), 5, true, true).unwrap();
    let made = place.path("made.srs");
    let (kind, curve, frame_bytes) = (header.kind(), header.curve(), header.frame_bytes());
    let writer =
        ContainerWriter::create(&place.workspace, &made, kind, curve, frame_bytes, [0; 32], &specs).unwrap();
    for (index, section) in header.sections().iter().enumerate() {
        if let Some(column) = good.column::<[u8; 64]>(section) {
            let mut points = column.to_vec().unwrap();
            change(&mut points[9]);
            let mut out = Writer::new(writer.draft::<[u8; 64]>(index).unwrap());
            out.push(&points).unwrap();
            out.finish().unwrap();
        } else {
            let column = good.column::<[u8; 128]>(section).unwrap();
            let mut out = Writer::new(writer.draft::<[u8; 128]>(index).unwrap());
            out.push(&column.to_vec().unwrap()).unwrap();
            out.finish().unwrap();
        }
    }
    writer.publish().unwrap();
    match place.verify(&made).unwrap_err() {
        Error::Format { source, .. } => source,
        other => panic!("{other}"),
    }
}

#[test]
fn a_container_that_was_made_to_deceive_is_found_by_its_points() {
    let fault_of = |error| match error {
        FormatError::Point { index: 9, fault, .. } => fault,
        other => panic!("{other}"),
    };
    let off_the_curve = deceived(|point| point[32] ^= 1);
    assert_eq!(fault_of(off_the_curve), PointFault::NotOnCurve);
    // The same point of the curve, written with the modulus added to x.
    let unreduced = deceived(|point| {
        let modulus = Fq::MODULUS.to_bytes_le();
        let mut carry = 0;
        for (byte, added) in point[..32].iter_mut().zip(modulus) {
            let sum = u16::from(*byte) + u16::from(added) + carry;
            (*byte, carry) = (sum as u8, sum >> 8);
        }
        assert_eq!(carry, 0);
    });
    assert_eq!(fault_of(unreduced), PointFault::NotReduced);
}

#[test]
fn a_flipped_byte_anywhere_in_an_srs_is_found_and_named() {
    let place = Place::new();
    let source = place.write("params", &stock(4, StockFormat::RawBytes));
    let target = place.path("x.srs");
    place.import(&source, &target).unwrap();
    let clean = std::fs::read(&target).unwrap();
    let frames = 4096..4096 + 3 * 65536;
    // A stride through header, frames and digest table, and every byte where they meet.
    let near = |at: usize, edge: usize| at.abs_diff(edge) < 3;
    let places = (0..clean.len())
        .filter(|&at| at % 211 == 0 || near(at, 128) || near(at, frames.start) || near(at, frames.end));
    let file = std::fs::OpenOptions::new().write(true).open(&target).unwrap();
    for at in places {
        file.write_all_at(&[clean[at] ^ 0x20], at as u64).unwrap();
        match place.verify(&target).unwrap_err() {
            Error::Damaged { frame, offset, .. } => {
                assert!(frames.contains(&at), "byte {at}");
                assert_eq!(frame, (at - 4096) as u64 / 65536);
                assert_eq!(offset, 4096 + frame * 65536);
            }
            Error::Format { file, .. } => {
                assert!(!frames.contains(&at), "byte {at}");
                assert_eq!(file, target);
            }
            other => panic!("byte {at}: {other}"),
        }
        file.write_all_at(&clean[at..=at], at as u64).unwrap();
    }
    place.verify(&target).unwrap();
}

#[test]
fn every_fault_of_the_storage_is_harmless_or_a_typed_error() {
    let bytes = stock(6, StockFormat::RawBytes);
    let counter = FaultPlan::none();
    let place = Place::with(counter.clone());
    let source = place.write("params", &bytes);
    let before = counter.operations();
    place.import(&source, &place.path("x.srs")).unwrap();
    let operations = before..counter.operations();
    assert!(operations.end > before + 10, "{operations:?}");
    let faults = [
        Fault::Io,
        Fault::NoSpace,
        Fault::Interrupted,
        Fault::Short(4096),
        Fault::FlipByte(77),
        Fault::Torn,
        Fault::SwapFrames(4096),
        Fault::Truncate,
    ];
    let (mut harmless, mut typed) = (0, 0);
    for fault in faults {
        for at in operations.clone() {
            let place = Place::with(FaultPlan::at(at, fault));
            let source = place.write("params", &bytes);
            let target = place.path("x.srs");
            let result = place.import(&source, &target);
            let names = place.names();
            match result {
                // What was written after the check (digests, header) may have changed on its way: it does not
                // open.
                Ok(_) => match place.export(&target, SerdeFormat::RawBytes) {
                    Ok(exported) => {
                        assert!(exported == bytes, "{fault:?} at {at}");
                        harmless += 1;
                    }
                    Err(Error::Damaged { .. } | Error::Format { .. }) => typed += 1,
                    Err(other) => panic!("{fault:?} at {at}: {other}"),
                },
                // Only after the rename, when the folder's sync fails, may the file be there: then it is
                // whole.
                Err(_) if names == ["params", "x.srs"] => {
                    assert_eq!(place.verify(&target).unwrap(), 6);
                    typed += 1;
                }
                Err(_) => {
                    assert_eq!(names, ["params"], "{fault:?} at {at}");
                    typed += 1;
                }
            }
            assert_eq!(place.workspace.budget.held_bytes(), 0, "{fault:?} at {at}");
        }
    }
    println!(
        "{} operations, {harmless} faults harmless, {typed} typed errors",
        operations.end - before
    );
    assert!(harmless > 0 && typed > 0);
}

#[test]
fn a_small_budget_is_enough_and_a_tiny_one_refuses() {
    let place = Place::new();
    let source = place.write("params", &stock(12, StockFormat::RawBytes));
    let small = place.workspace.clone().with_budget(Budget::new(4 << 20));
    import_params_kzg(
        &small,
        &source,
        &place.path("x.srs"),
        Stated::default(),
        &mut |_| {},
    )
    .unwrap();
    assert!(small.budget.peak_bytes() <= 4 << 20);
    let tiny = place.workspace.clone().with_budget(Budget::new(64 << 10));
    let error = import_params_kzg(
        &tiny,
        &source,
        &place.path("y.srs"),
        Stated::default(),
        &mut |_| {},
    )
    .unwrap_err();
    assert!(
        matches!(error, Error::OverBudget { .. } | Error::BudgetTooSmall { .. }),
        "{error}"
    );
    assert_eq!(place.names(), ["params", "x.srs"]);
}

/// The child of [`kill_9_leaves_no_part_of_a_file_that_opens`]: imports again and again until it is killed.
#[test]
fn kill_9_child() {
    let Some(dir) = std::env::var_os("SRS_FILES_KILL_9_DIR") else {
        return;
    };
    let dir = PathBuf::from(dir);
    let storage = Storage::builder().dir(dir.join("scratch")).build().unwrap();
    let workspace = Workspace::new(storage, Budget::new(32 << 20));
    for i in 0.. {
        let target = dir.join(format!("{i}.srs"));
        import_params_kzg(
            &workspace,
            &dir.join("params"),
            &target,
            Stated::default(),
            &mut |_| {},
        )
        .unwrap();
    }
}

#[test]
fn kill_9_leaves_no_part_of_a_file_that_opens() {
    let place = Place::new();
    place.write("params", &stock(12, StockFormat::RawBytes));
    let is_srs = |name: &&String| name.ends_with(".srs") && !name.starts_with('.');
    let mut whole = 0;
    for round in 0..10u64 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "srs_files::kill_9_child", "--quiet"])
            .env("SRS_FILES_KILL_9_DIR", place.dir.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // One import at least, or ten seconds; then the rounds end at different points of the next one.
        for _ in 0..1000 {
            std::thread::sleep(std::time::Duration::from_millis(10));
            if place.names().iter().any(|name| is_srs(&name)) {
                break;
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(13 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        // What has its name is whole.
        for name in place.names().iter().filter(is_srs) {
            assert_eq!(place.verify(&place.path(name)).unwrap(), 12);
            std::fs::remove_file(place.path(name)).unwrap();
            whole += 1;
        }
    }
    // A hidden name may be left: of a part of a file, which does not open, or of a whole one that was killed
    // just before its rename.
    for name in place.names().iter().filter(|name| name.starts_with('.')) {
        if Container::open(&place.workspace, &place.path(name)).is_ok() {
            assert_eq!(place.verify(&place.path(name)).unwrap(), 12, "{name}");
        }
    }
    println!("{whole} imports were whole, 10 were killed");
    assert!(
        whole > 0,
        "no import was done before a kill: the test shows nothing"
    );
}

/// The source's Lagrange points are not read: they may be those of a larger k, or missing.
#[test]
fn lagrange_points_are_stocks_for_any_k_from_any_source() {
    let place = Place::new();
    for (format, stock_format) in FORMATS {
        let params = place.write("params", &stock(7, stock_format));
        let container = place.path("x.srs");
        place.import(&params, &container).unwrap();
        for k in [None, Some(7), Some(6), Some(3), Some(0)] {
            for source in [&params, &container] {
                let target = place.path("y.srs");
                let given = Stated {
                    format: (source == &params).then_some(format),
                    ..Stated::default()
                };
                let mut ends = Vec::new();
                let (made, root) = add_lagrange(&place.workspace, source, &target, k, given, &mut |at| {
                    assert!(at.points <= at.points_total);
                    if at.points == at.points_total {
                        ends.push(at.phase);
                    }
                })
                .unwrap();
                assert_eq!(made, k.unwrap_or(7));
                assert_eq!(Container::open(&place.workspace, &target).unwrap().root(), root);
                assert_eq!(place.verify(&target).unwrap(), made);
                ends.dedup();
                if made > 0 {
                    assert_eq!(ends, ["g", "g_lagrange", "check g", "check g_lagrange"]);
                }
                let mut wanted = ParamsKZG::<Bn256>::setup(7, ChaCha8Rng::seed_from_u64(7));
                wanted.downsize(made);
                let mut bytes = Vec::new();
                wanted.write_custom(&mut bytes, StockFormat::RawBytes).unwrap();
                assert!(
                    place.export(&target, SerdeFormat::RawBytes).unwrap() == bytes,
                    "k = {k:?}, {format}"
                );
            }
        }
        let too_large = add_lagrange(
            &place.workspace,
            &container,
            &place.path("z.srs"),
            Some(8),
            Stated::default(),
            &mut |_| (),
        );
        assert!(
            matches!(too_large, Err(Error::Invalid(Invalid::SrsSize { .. }))),
            "{too_large:?}"
        );
    }
    // Bytes that are neither.
    let noise = place.write("noise", &[7; 100]);
    let refused = add_lagrange(
        &place.workspace,
        &noise,
        &place.path("z.srs"),
        None,
        Stated::default(),
        &mut |_| (),
    );
    assert!(matches!(refused, Err(Error::Format { .. })), "{refused:?}");
    assert_eq!(place.workspace.budget.held_bytes(), 0);
    assert_eq!(place.names(), ["exported", "noise", "params", "x.srs", "y.srs"]);
}
