//! The containers of version 1 that are kept under `tests/fixtures/v1`: every later build must read them and
//! find the same roots. They are small, and are made from fixed numbers only.
//!
//! - `column.spill`: 300 scalars (0, 1, then i^5 + 3i) in frames of 4096 bytes, three of them, the last one
//!   padded.
//! - `srs_k6.spill`: an SRS for k = 6, with a secret that everyone knows. (The roots of unity of halo2curves
//!   and arkworks are the same up to k = 5: a smaller one would not tell them apart.)
//! - `srs_bls12381_k6.spill`: the same over BLS12-381, in frames of 12288 bytes.
//! - `groth16.spill`: a Groth16 key of the right shape; its points are small multiples of the generators, and
//!   belong to no circuit.
//! - `groth16_dealt.spill`: such a key that is dealt to two ranks; `groth16_share.spill`: the share of the first.
//! - `witness.spill`: a witness for 16 rows: two advice columns, of 10 values each, and one public input.
//! - `ipa_k6.spill`: parameters over Vesta with small multiples of the generator instead of hashes: 2^64 +
//!   i^3 at i, then 3 and 5.
//!
//! `cargo test -p spillproof-format --test all fixtures_v1:: -- --ignored` writes them again; they must not
//! change.

use std::path::PathBuf;

use ark_bn254::{Fr, g1, g2};
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, FftField, Field, PrimeField};
use spillproof_format::native::{NativeField, read_elements, read_point, write_elements, write_points};
use spillproof_format::params_kzg::root_of_unity;
use spillproof_format::*;

const COLUMN_ROOT: &str = "45d703bec2cc57a4ae43572d6decb1b47e758f12ef1848012c894ed7a877a012";
const SRS_ROOT: &str = "ceabb070d36623d001a8b213696ba83a9243e9032348c5180c70a238f05680c8";
const SRS_BLS12381_ROOT: &str = "23a453d178b31cae0db67e334a98fd8c7dcb74e01be3096b3cc23154746b4048";
const IPA_ROOT: &str = "570b3e4bf8ae268da305dc962f92e9139c07c20b723c6402bfc861785448c69f";
const GROTH16_ROOT: &str = "0b348a33b358d90ef2aff8592106f8ef397fadcf030a9fb3332949801bcab9ac";
const DEALT_ROOT: &str = "086945b279f2e9310ba239536344c43aa0c3fce63ea3b33b6908fadf7dd6ae51";
const SHARE_ROOT: &str = "9b69b0bbfdbea19e770c51db5103c96101586fac75b2e3897d06bfdb97551c69";
const WITNESS_ROOT: &str = "65dc4526d82939ec8b067b80d0f50cfa73c448691a4b0c8cabdddc53e57d1deb";
const SECRET: u64 = 1_234_567_890_123_456_789;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/v1")
        .join(name)
}

fn spec(content: Content, basis: Basis, elements: u64, label: &str) -> SectionSpec {
    SectionSpec {
        content,
        basis,
        elements,
        label: Label::new(label).unwrap(),
    }
}

/// Frames, digests, root: a whole container from the native bytes of its sections.
fn seal(mut header: Header, payloads: &[Vec<u8>]) -> Vec<u8> {
    let frame_bytes = header.frame_bytes() as usize;
    let mut file = vec![0; HEADER_BYTES];
    for payload in payloads {
        let end = file.len() + payload.len().next_multiple_of(frame_bytes);
        file.extend(payload);
        file.resize(end, 0);
    }
    assert_eq!(file.len() as u64, header.geometry().digest_table_offset());
    let key = FrameKey::of(&header);
    let digests: Vec<[u8; 32]> = file[HEADER_BYTES..]
        .chunks_exact(frame_bytes)
        .enumerate()
        .map(|(i, frame)| key.digest(i as u64, frame))
        .collect();
    let mut root = RootHasher::new(&header);
    for digest in &digests {
        root.update(digest);
        file.extend(digest);
    }
    header.root = root.finish().unwrap();
    file.resize(header.file_bytes() as usize, 0);
    file[..HEADER_BYTES].copy_from_slice(&header.encode());
    file
}

fn scalars() -> Vec<Fr> {
    (0..300u64)
        .map(|i| {
            if i < 2 {
                Fr::from(i)
            } else {
                Fr::from(i).pow([5]) + Fr::from(3 * i)
            }
        })
        .collect()
}

fn column() -> Vec<u8> {
    let sections = [spec(Content::Scalars, Basis::Lagrange, 300, "column")];
    let header = Header::new(
        Kind::FieldColumn,
        Curve::Bn254,
        4096,
        *b"fixture column 1",
        7,
        &sections,
    )
    .unwrap();
    let mut native = vec![0; 300 * 32];
    write_elements(&scalars(), &mut native).unwrap();
    seal(header, &[native])
}

/// g, g_lagrange, (g2, s·g2) for k = 6.
struct SrsPoints<G1: SWCurveConfig, G2: SWCurveConfig> {
    bases: [Vec<Affine<G1>>; 2],
    pair: [Affine<G2>; 2],
}

impl<F, G1, G2> SrsPoints<G1, G2>
where
    F: PrimeField,
    G1: SWCurveConfig<ScalarField = F, BaseField: NativeField>,
    G2: SWCurveConfig<ScalarField = F, BaseField: NativeField>,
{
    fn new() -> Self {
        let (n, s) = (64u64, F::from(SECRET));
        let times = |scalar: F| (Affine::<G1>::generator() * scalar).into_affine();
        let omega: F = root_of_unity(6).unwrap();
        let vanishing = (s.pow([n]) - F::ONE) / F::from(n);
        let lagrange = |i| {
            let root = omega.pow([i]);
            vanishing * root / (s - root)
        };
        let g2 = Affine::<G2>::generator();
        Self {
            bases: [
                (0..n).map(|i| times(s.pow([i]))).collect(),
                (0..n).map(|i| times(lagrange(i))).collect(),
            ],
            pair: [g2, (g2 * s).into_affine()],
        }
    }

    fn container(&self, curve: Curve, frame_bytes: u32, id: [u8; 16]) -> Vec<u8> {
        let sections = srs::sections(curve, 6, true, true).unwrap();
        let header = Header::new(Kind::Srs, curve, frame_bytes, id, 0, &sections).unwrap();
        let mut native: Vec<_> = (sections.iter())
            .map(|section| {
                vec![0; (section.elements * u64::from(section.content.element_bytes(curve))) as usize]
            })
            .collect();
        for (points, native) in self.bases.iter().zip(&mut native) {
            write_points(points, native).unwrap();
        }
        write_points(&self.pair, &mut native[2]).unwrap();
        seal(header, &native)
    }

    fn read(&self, bytes: &[u8], header: &Header) {
        let element = |section: &Section, i: usize| {
            let at = header.geometry().element_offset(section, i as u64).unwrap() as usize;
            &bytes[at..at + section.element_bytes() as usize]
        };
        let found = srs::Srs::of(header, header.curve()).unwrap();
        assert_eq!(found.k, 6);
        for (section, expected) in [found.monomial, found.lagrange].into_iter().zip(&self.bases) {
            for (i, point) in expected.iter().enumerate() {
                assert_eq!(read_point(element(section.unwrap(), i)), Ok(*point));
            }
        }
        for (i, point) in self.pair.iter().enumerate() {
            assert_eq!(read_point(element(found.pair, i)), Ok(*point));
        }
    }
}

type Bn254Srs = SrsPoints<g1::Config, g2::Config>;
type Bls12381Srs = SrsPoints<ark_bls12_381::g1::Config, ark_bls12_381::g2::Config>;

fn srs() -> Vec<u8> {
    Bn254Srs::new().container(Curve::Bn254, 4096, *b"fixture srs k=6 ")
}

fn srs_bls12381() -> Vec<u8> {
    Bls12381Srs::new().container(Curve::Bls12381, 3 * 4096, *b"fixture srs bls ")
}

/// g, g_lagrange, (w, u) for k = 6 over Vesta.
fn ipa_points() -> [Vec<ark_vesta::Affine>; 3] {
    use ark_vesta::{Affine, Fr};
    let omega = Fr::TWO_ADIC_ROOT_OF_UNITY.pow([1 << (Fr::TWO_ADICITY - 6)]);
    let scalar = |i: u64| Fr::from(1u128 << 64) + Fr::from(i).pow([3]);
    let times = |scalar: Fr| (Affine::generator() * scalar).into_affine();
    let lagrange = |j: u64| {
        let root = omega.inverse().unwrap().pow([j]);
        (0..64u64).map(|i| root.pow([i]) * scalar(i)).sum::<Fr>() / Fr::from(64u64)
    };
    [
        (0..64).map(|i| times(scalar(i))).collect(),
        (0..64).map(|j| times(lagrange(j))).collect(),
        [3u64, 5].map(|i| times(Fr::from(i))).to_vec(),
    ]
}

fn ipa() -> Vec<u8> {
    let sections = ipa::sections(6).unwrap();
    let header = Header::new(
        Kind::IpaParams,
        Curve::Vesta,
        4096,
        *b"fixture ipa k=6 ",
        0,
        &sections,
    )
    .unwrap();
    let native = ipa_points().map(|points| {
        let mut native = vec![0; 64 * points.len()];
        write_points(&points, &mut native).unwrap();
        native
    });
    seal(header, &native)
}

const KEY: groth16::Shape = groth16::Shape {
    signals: 5,
    public: 1,
    log_domain: 2,
    values: 3,
    coefficients: 6,
};

/// The i-th point of the section at `section` is `1000 * section + i + 1` times the generator.
fn key_points<P: SWCurveConfig>(section: usize, count: u64) -> Vec<Affine<P>> {
    let scalar = |i| P::ScalarField::from(1000 * section as u64 + i + 1);
    (0..count)
        .map(|i| (Affine::<P>::generator() * scalar(i)).into_affine())
        .collect()
}

fn key_values() -> [Fr; 3] {
    [Fr::ONE, -Fr::ONE, Fr::from(2u64)]
}

fn key_coefficients() -> Vec<groth16::Coefficient> {
    (0..6)
        .map(|i| groth16::Coefficient {
            row: i / 2,
            signal: i % 5,
            value: i % 3,
            matrix: i % 2,
        })
        .collect()
}

fn key() -> Vec<u8> {
    let sections = groth16::sections(&KEY).unwrap();
    let header = Header::new(
        Kind::Groth16Key,
        Curve::Bn254,
        4096,
        *b"fixture groth16 ",
        0,
        &sections,
    )
    .unwrap();
    let native = key_sections(&header, &key_coefficients());
    seal(header, &native)
}

/// The native bytes of the points, values and coefficients of a Groth16 key, or of a share.
fn key_sections(header: &Header, coefficients: &[groth16::Coefficient]) -> Vec<Vec<u8>> {
    let sections = header.sections().iter().enumerate();
    sections
        .map(|(i, section)| {
            let mut native = vec![0; section.elements as usize * section.element_bytes() as usize];
            match section.content {
                Content::G1 => {
                    write_points::<g1::Config>(&key_points(i, section.elements), &mut native).unwrap()
                }
                Content::G2 => {
                    write_points::<g2::Config>(&key_points(i, section.elements), &mut native).unwrap()
                }
                Content::Scalars => write_elements(&key_values(), &mut native).unwrap(),
                Content::Coefficients => {
                    for (coefficient, bytes) in coefficients.iter().zip(native.chunks_exact_mut(16)) {
                        coefficient.encode(bytes);
                    }
                }
                _ => {}
            }
            native
        })
        .collect()
}

/// Those of rows 0 and 2: column 0 of two rows of two.
fn share_coefficients() -> Vec<groth16::Coefficient> {
    let all = key_coefficients().into_iter();
    all.filter(|coefficient| coefficient.row % 2 == 0).collect()
}

fn share() -> Vec<u8> {
    let shape = dealt([0; 32]).share_shape(0).unwrap();
    let sections = groth16_dealt::share_sections(&shape).unwrap();
    let id = *b"fixture share   ";
    let header = Header::new(Kind::Groth16Share, Curve::Bn254, 4096, id, 0, &sections).unwrap();
    let native = key_sections(&header, &share_coefficients());
    seal(header, &native)
}

/// Five signals and two columns, of which the first rank has three and one. The second rank's share is no fixture.
fn dealt(share_root: [u8; 32]) -> groth16_dealt::Dealt {
    let share = |weight, columns, signals, coefficients, root, name: &str| groth16_dealt::DealtShare {
        weight,
        columns,
        signals,
        values: 3,
        coefficients,
        root,
        name: name.into(),
    };
    groth16_dealt::Dealt {
        log_domain: KEY.log_domain,
        signals: KEY.signals,
        shares: vec![
            share(3, 0..1, 0..3, 4, share_root, "groth16_share.spill"),
            share(2, 1..2, 3..5, 2, [7; 32], "no_fixture.spill"),
        ],
    }
}

fn dealt_key() -> Vec<u8> {
    let root = Header::decode_prefix(&share()).unwrap().root;
    let bytes = dealt(root).encode();
    let sections = groth16_dealt::key_sections(&KEY, bytes.len() as u64).unwrap();
    let id = *b"fixture dealt   ";
    let header = Header::new(Kind::Groth16Dealt, Curve::Bn254, 4096, id, 0, &sections).unwrap();
    let mut native = key_sections(&header, &[]);
    native[3] = bytes;
    seal(header, &native)
}

const WITNESS_ROWS: usize = 16;
const WITNESS_VALUES: u64 = 10;
/// Scalars in a frame.
const FRAME_SCALARS: usize = 128;

/// Version, key, k, columns, the length of the one instance column, and its value.
fn witness_statement() -> Vec<u8> {
    let mut statement = 1u32.to_le_bytes().to_vec();
    statement.extend(0..32u8);
    for number in [4u32, 2, 1] {
        statement.extend(number.to_le_bytes());
    }
    statement.extend(1u64.to_le_bytes());
    statement.push(5);
    statement.resize(statement.len() + 31, 0);
    statement
}

/// Both columns, each from the start of a frame.
fn witness_values() -> Vec<Fr> {
    let mut values = vec![Fr::ZERO; 2 * FRAME_SCALARS];
    for (column, values) in values.chunks_mut(FRAME_SCALARS).enumerate() {
        for (row, value) in (0..WITNESS_VALUES).zip(values) {
            *value = Fr::from(100 * column as u64 + row + 1);
        }
    }
    values
}

fn witness() -> Vec<u8> {
    let (statement, values) = (witness_statement(), witness_values());
    let sections = [
        spec(Content::Bytes, Basis::None, statement.len() as u64, "statement"),
        spec(Content::Scalars, Basis::Lagrange, values.len() as u64, "advice"),
    ];
    let id = *b"fixture witness ";
    let header = Header::new(Kind::Witness, Curve::Bn254, 4096, id, 0, &sections).unwrap();
    let mut native = vec![0; 32 * values.len()];
    write_elements(&values, &mut native).unwrap();
    seal(header, &[statement, native])
}

/// Opens a container in memory as a reader must: length, every digest, root.
fn open(bytes: &[u8]) -> Header {
    let header = Header::decode_prefix(bytes).unwrap();
    let geometry = header.geometry();
    geometry.check_file_bytes(bytes.len() as u64).unwrap();
    let table = &bytes[geometry.digest_table_offset() as usize..];
    let key = FrameKey::of(&header);
    let mut root = RootHasher::new(&header);
    for frame in 0..header.frames() {
        let at = geometry.frame_offset(frame).unwrap() as usize;
        let digest = key.digest(frame, &bytes[at..at + header.frame_bytes() as usize]);
        assert_eq!(digest[..], table[32 * frame as usize..][..32]);
        root.update(&digest);
    }
    root.verify(&header).unwrap();
    geometry
        .check_table_padding(&table[32 * header.frames() as usize..])
        .unwrap();
    header
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
#[ignore = "writes the fixtures; they are kept, and must not change"]
fn regenerate() {
    for (name, bytes) in [
        ("column.spill", column()),
        ("srs_k6.spill", srs()),
        ("srs_bls12381_k6.spill", srs_bls12381()),
        ("ipa_k6.spill", ipa()),
        ("groth16.spill", key()),
        ("groth16_dealt.spill", dealt_key()),
        ("groth16_share.spill", share()),
        ("witness.spill", witness()),
    ] {
        println!("{name} {}", hex(&Header::decode_prefix(&bytes).unwrap().root));
        std::fs::write(fixture(name), bytes).unwrap();
    }
}

#[test]
fn the_column_reads() {
    let bytes = std::fs::read(fixture("column.spill")).unwrap();
    let header = open(&bytes);
    assert_eq!(hex(&header.root), COLUMN_ROOT);
    assert_eq!(
        (header.kind(), header.curve(), header.epoch()),
        (Kind::FieldColumn, Curve::Bn254, 7)
    );
    let section = header.find_label("column").unwrap();
    assert_eq!((section.basis, section.elements), (Basis::Lagrange, 300));
    let at = header.geometry().element_offset(section, 0).unwrap() as usize;
    let mut elements = vec![Fr::ONE; 300];
    read_elements("column", 0, at as u64, &bytes[at..at + 300 * 32], &mut elements).unwrap();
    assert_eq!(elements, scalars());
}

#[test]
fn the_srs_reads() {
    let bytes = std::fs::read(fixture("srs_k6.spill")).unwrap();
    let header = open(&bytes);
    assert_eq!(hex(&header.root), SRS_ROOT);
    assert_eq!((header.kind(), header.curve()), (Kind::Srs, Curve::Bn254));
    Bn254Srs::new().read(&bytes, &header);
}

#[test]
fn the_srs_over_bls12_381_reads() {
    let bytes = std::fs::read(fixture("srs_bls12381_k6.spill")).unwrap();
    let header = open(&bytes);
    assert_eq!(hex(&header.root), SRS_BLS12381_ROOT);
    assert_eq!((header.kind(), header.curve()), (Kind::Srs, Curve::Bls12381));
    Bls12381Srs::new().read(&bytes, &header);
}

#[test]
fn parameters_read() {
    let bytes = std::fs::read(fixture("ipa_k6.spill")).unwrap();
    let header = open(&bytes);
    assert_eq!(hex(&header.root), IPA_ROOT);
    let found = ipa::IpaParams::of(&header, Curve::Vesta).unwrap();
    assert_eq!(found.k, 6);
    for (section, expected) in [found.g, found.g_lagrange, found.pair]
        .into_iter()
        .zip(ipa_points())
    {
        for (i, point) in expected.iter().enumerate() {
            let at = header.geometry().element_offset(section, i as u64).unwrap() as usize;
            assert_eq!(read_point(&bytes[at..at + 64]), Ok(*point));
        }
    }
}

#[test]
fn the_groth16_key_reads() {
    let bytes = std::fs::read(fixture("groth16.spill")).unwrap();
    let header = open(&bytes);
    assert_eq!(hex(&header.root), GROTH16_ROOT);
    let found = groth16::Groth16Key::of(&header).unwrap();
    assert_eq!((found.curve, found.shape), (Curve::Bn254, KEY));
    let element = |section: &Section, i: u64| {
        let at = header.geometry().element_offset(section, i).unwrap() as usize;
        (at as u64, &bytes[at..at + section.element_bytes() as usize])
    };
    for (i, section) in header.sections().iter().enumerate().take(8) {
        let (one, two) = match section.content {
            Content::G1 => (key_points::<g1::Config>(i, section.elements), Vec::new()),
            _ => (Vec::new(), key_points::<g2::Config>(i, section.elements)),
        };
        for (j, point) in (0..).zip(one) {
            assert_eq!(
                read_point(element(section, j).1),
                Ok(point),
                "{} {j}",
                section.label
            );
        }
        for (j, point) in (0..).zip(two) {
            assert_eq!(
                read_point(element(section, j).1),
                Ok(point),
                "{} {j}",
                section.label
            );
        }
    }
    for (j, value) in (0..).zip(key_values()) {
        assert_eq!(Fr::read_native(element(found.values, j).1), Some(value));
    }
    for (j, expected) in (0..).zip(key_coefficients()) {
        let (offset, bytes) = element(found.coefficients, j);
        let coefficient = groth16::Coefficient::decode(bytes);
        assert_eq!(coefficient, expected);
        coefficient.check(j, offset, &found.shape).unwrap();
    }
}

#[test]
fn the_dealt_groth16_key_and_its_share_read() {
    let bytes = std::fs::read(fixture("groth16_dealt.spill")).unwrap();
    let header = open(&bytes);
    assert_eq!(hex(&header.root), DEALT_ROOT);
    let found = groth16_dealt::DealtKey::of(&header).unwrap();
    let at = header.geometry().element_offset(found.dealt, 0).unwrap() as usize;
    let text = &bytes[at..at + found.dealt.elements as usize];
    let read = groth16_dealt::Dealt::decode(text, at as u64).unwrap();
    assert_eq!(read.shape(found.ic.elements - 1), KEY);
    let share = std::fs::read(fixture(&read.shares[0].name)).unwrap();
    let share = open(&share);
    assert_eq!(hex(&share.root), SHARE_ROOT);
    assert_eq!(share.root, read.shares[0].root);
    assert_eq!(read, dealt(share.root));
    let found = groth16_dealt::KeyShare::of(&share, &read.share_shape(0).unwrap()).unwrap();
    assert_eq!(
        (found.a.elements, found.h.elements, found.coefficients.elements),
        (3, 2, 4)
    );
    assert!(groth16_dealt::KeyShare::of(&share, &read.share_shape(1).unwrap()).is_err());
}

#[test]
fn the_witness_reads() {
    let bytes = std::fs::read(fixture("witness.spill")).unwrap();
    let header = open(&bytes);
    assert_eq!(hex(&header.root), WITNESS_ROOT);
    assert_eq!(header.kind(), Kind::Witness);
    let at = |section| header.geometry().element_offset(section, 0).unwrap() as usize;
    let statement = header.find_label("statement").unwrap();
    assert_eq!(bytes[at(statement)..][..88], witness_statement());
    let advice = header.find_label("advice").unwrap();
    let mut values = vec![Fr::ONE; advice.elements as usize];
    let native = &bytes[at(advice)..][..32 * values.len()];
    read_elements("advice", 0, at(advice) as u64, native, &mut values).unwrap();
    assert_eq!(values, witness_values());
    assert!(
        values[WITNESS_VALUES as usize..WITNESS_ROWS]
            .iter()
            .all(|value| *value == Fr::ZERO)
    );
}

#[test]
fn this_build_writes_the_same_bytes() {
    assert!(column() == std::fs::read(fixture("column.spill")).unwrap());
    assert!(srs() == std::fs::read(fixture("srs_k6.spill")).unwrap());
    assert!(srs_bls12381() == std::fs::read(fixture("srs_bls12381_k6.spill")).unwrap());
    assert!(ipa() == std::fs::read(fixture("ipa_k6.spill")).unwrap());
    assert!(key() == std::fs::read(fixture("groth16.spill")).unwrap());
    assert!(dealt_key() == std::fs::read(fixture("groth16_dealt.spill")).unwrap());
    assert!(share() == std::fs::read(fixture("groth16_share.spill")).unwrap());
    assert!(witness() == std::fs::read(fixture("witness.spill")).unwrap());
}
