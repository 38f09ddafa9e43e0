//! Containers that pass every digest and are wrong all the same: bytes are changed, then checksum, digests
//! and root are made anew, as who forges a file would. Whatever is done with one ends in a result or a typed
//! error, and an SRS that verifies is the one that it was.

use std::path::Path;

use ark_bls12_381::Bls12_381;
use ark_bn254::{Bn254, Fr};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use spillproof_commit::{G1, KzgCurve, Srs, add_lagrange, export_params_kzg, generate, kzg, verify_srs};
use spillproof_engine::budget::Budget;
use spillproof_engine::column::{Bundle, BundleWriter, Column, Container, Group, Placement, Workspace};
use spillproof_engine::storage::Storage;
use spillproof_engine::stream::{Scalars, Transform, evaluate, msm, ntt};
use spillproof_format::params_kzg::{SerdeFormat, Stated};
use spillproof_format::{Content, FrameKey, HEADER_BYTES, Header, RootHasher};

use crate::common::{column_in, scalars};
use crate::watchdog::within;

const K: u32 = 5;
const ROWS: u64 = 1 << K;
const CHECKSUM_AT: usize = HEADER_BYTES - 32;
/// Files longer than this are not made, whatever a header says.
const FILE_BYTES_MAX: u64 = 4 << 20;
const FORGERIES: u64 = 400;
const PATIENCE_SECONDS: u64 = 600;

/// Makes checksum, digests and root of a changed file anew, as far as its header makes sense.
fn sealed(mut file: Vec<u8>) -> Vec<u8> {
    let checksum = blake3::hash(&file[..CHECKSUM_AT]);
    file[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(checksum.as_bytes());
    let Ok(mut header) = Header::decode_prefix(&file) else {
        return file;
    };
    if header.file_bytes() > FILE_BYTES_MAX {
        return file;
    }
    file.resize(header.file_bytes() as usize, 0);
    let (key, mut root) = (FrameKey::of(&header), RootHasher::new(&header));
    let (frame_bytes, table) = (
        header.frame_bytes() as usize,
        header.geometry().digest_table_offset() as usize,
    );
    for frame in 0..header.frames() {
        let at = HEADER_BYTES + frame as usize * frame_bytes;
        let digest = key.digest(frame, &file[at..at + frame_bytes]);
        file[table + frame as usize * 32..][..32].copy_from_slice(&digest);
        root.update(&digest);
    }
    header.root = root.finish().unwrap();
    file[..HEADER_BYTES].copy_from_slice(&header.encode());
    file
}

/// Changes some bytes: of the header, of the content, or of whole elements.
fn changed(original: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut file = original.to_vec();
    let mut below = |end: usize| rng.next_u64() as usize % end;
    for _ in 0..1 + below(3) {
        match below(4) {
            0 => {
                // A field of the header, or of one of the first sections.
                let at = [8 + below(24), 256 + below(4 * 64)][below(2)];
                file[at] = [0, 1, 2, 0x80, 0xff, below(256) as u8][below(6)];
            }
            1 => {
                let at = HEADER_BYTES + below(file.len() - HEADER_BYTES);
                file[at] ^= 1 << below(8);
            }
            2 => {
                // All ones: above every modulus.
                let at = HEADER_BYTES + 32 * below((file.len() - HEADER_BYTES) / 32);
                file[at..at + 32].fill(0xff);
            }
            _ => {
                // An element in another place: twice the same point, or the point at infinity.
                let places = (original.len() - HEADER_BYTES) / 64;
                let (from, to) = (
                    HEADER_BYTES + 64 * below(places),
                    HEADER_BYTES + 64 * below(places),
                );
                let element = file[from..from + 64].to_vec();
                file[to..to + 64].copy_from_slice(&element);
            }
        }
    }
    sealed(file)
}

struct Place {
    dir: tempfile::TempDir,
    workspace: Workspace,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::builder().dir(dir.path()).build().unwrap();
        let workspace = Workspace::new(storage, Budget::new(16 << 20));
        Self { dir, workspace }
    }

    fn srs<E: KzgCurve>(&self) -> Vec<u8> {
        let path = self.dir.path().join("original.srs");
        generate::<E>(&self.workspace, &path, K, E::Scalar::from(77u64), |_| {}).unwrap();
        std::fs::read(path).unwrap()
    }

    fn bundle(&self) -> Vec<u8> {
        let path = self.dir.path().join("original.bundle");
        let group = Group {
            label: "values",
            lagrange: true,
            polynomials: 2,
        };
        let writer = BundleWriter::create(&self.workspace, &path, 100, ROWS, &[group]).unwrap();
        let mut key = writer.key().unwrap();
        key.push(&[[7]; 100]).unwrap();
        key.finish().unwrap();
        let columns = [1, 2].map(|seed| {
            let values = scalars(ROWS as usize, seed);
            Ok(column_in(&self.workspace, &values, Placement::Disk))
        });
        writer.write("values", columns).unwrap();
        writer.publish().unwrap();
        std::fs::read(path).unwrap()
    }

    fn exported(&self, path: &Path) -> Option<Vec<u8>> {
        let target = self.dir.path().join("exported");
        export_params_kzg(&self.workspace, path, &target, SerdeFormat::RawBytes, &mut |_| {}).ok()?;
        std::fs::read(target).ok()
    }

    /// All that is done with a container of columns, whatever it says that it is.
    fn use_columns(&self, path: &Path) {
        let Ok(container) = Container::open(&self.workspace, path) else {
            return;
        };
        let _checked = container.verify(|_| {});
        for section in container.header().sections() {
            if section.elements > 1 << 16 {
                continue;
            }
            match section.content {
                Content::Scalars => self.use_scalars(container.column::<Fr>(section)),
                Content::G1 => self.use_points(container.column::<G1>(section)),
                _ => {
                    let _ = container.column::<[u8; 1]>(section).map(|column| column.to_vec());
                }
            }
        }
    }

    fn use_scalars(&self, column: Option<Column<Fr>>) {
        let Some(column) = column else { return };
        let _ = evaluate(&column, Fr::from(5u64));
        let domain = Radix2EvaluationDomain::<Fr>::new(column.len() as usize).unwrap();
        let transform = Transform::forward(domain.log_size_of_group, domain.group_gen);
        let _ = ntt(&column, &transform, Placement::Auto).map(|values| values.to_vec());
    }

    fn use_points(&self, column: Option<Column<G1>>) {
        let Some(column) = column else { return };
        let values = scalars(column.len() as usize, 9);
        let factors = column_in(&self.workspace, &values, Placement::Disk);
        let _ = msm::<ark_bn254::g1::Config>(&column, &[Scalars::Column(&factors)]);
    }

    fn use_srs(&self, path: &Path, original: &[u8]) -> bool {
        let verified = verify_srs(&self.workspace, path, &mut |_| {});
        let exported = self.exported(path);
        if let Ok(k) = verified
            && k == K
            && let Some(exported) = exported
        {
            // What is not a point (padding, ids) may differ.
            assert!(exported == original, "another SRS verifies");
        }
        let target = self.dir.path().join("lagrange.srs");
        let _ = add_lagrange(
            &self.workspace,
            path,
            &target,
            None,
            Stated::default(),
            &mut |_| {},
        );
        self.commit_over::<Bn254>(path);
        self.commit_over::<Bls12_381>(path);
        verified.is_ok()
    }

    fn commit_over<E: KzgCurve>(&self, path: &Path) {
        if let Ok(srs) = Srs::<E>::open_container(&self.workspace, path) {
            let values = vec![E::Scalar::from(3u64); srs.n() as usize];
            let _ = kzg::commit_lagrange(&srs, &[Scalars::Slice(&values)]);
        }
    }

    fn use_bundle(&self, path: &Path) {
        let Ok(bundle) = Bundle::open(&self.workspace, path) else {
            return;
        };
        let _ = bundle.key().map(|key| key.to_vec());
        if let Ok(columns) = bundle.group::<Fr>("values", 2, ROWS) {
            columns
                .into_iter()
                .for_each(|column| self.use_scalars(Some(column)));
        }
    }
}

fn forge(seed: u64, count: u64) {
    let place = Place::new();
    let path = place.dir.path().join("forged");
    let originals = [place.srs::<Bn254>(), place.bundle(), place.srs::<Bls12_381>()];
    let exports = originals.each_ref().map(|file| {
        std::fs::write(&path, sealed(file.clone())).unwrap();
        let exported = place.exported(&path);
        if let Some(exported) = &exported {
            assert!(place.use_srs(&path, exported), "a file that was not changed");
        }
        exported.unwrap_or_default()
    });
    let (mut verified, mut opened) = (0, 0);
    for number in 0..count {
        let mut rng = ChaCha8Rng::seed_from_u64(seed.wrapping_add(number));
        let which = (number % 3) as usize;
        let (file, original) = (changed(&originals[which], &mut rng), &exports[which]);
        std::fs::write(&path, file).unwrap();
        opened += u64::from(Container::open(&place.workspace, &path).is_ok());
        place.use_columns(&path);
        verified += u64::from(place.use_srs(&path, original));
        place.use_bundle(&path);
        assert_eq!(place.workspace.budget.held_bytes(), 0, "forgery {number}");
    }
    println!("{count} forged: {opened} open, {verified} verify");
    assert!(opened > 0);
}

#[test]
fn forged_containers_end_in_a_result_or_an_error() {
    let given = std::env::var("SPILLPROOF_TEST_SEED").ok();
    let seed = given
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(rand::random);
    println!("SPILLPROOF_TEST_SEED={seed}");
    within(PATIENCE_SECONDS, "forged containers", move || {
        forge(seed, FORGERIES)
    });
}
