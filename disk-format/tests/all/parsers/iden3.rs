//! A file of iden3's container format: the bytes as they come, the bytes behind a right prefix, and a small
//! whole file with some bytes changed. What is accepted must be written again as the bytes that it came from.

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use spillproof_format::Curve;
use spillproof_format::iden3::contributions::{self, Beacon, Contribution, Contributions, HASH_BYTES};
use spillproof_format::iden3::history::{self, History};
use spillproof_format::iden3::{
    ByteRange, FileKind, SCALAR_BYTES, ptau, r1cs, write_prefix, write_section_prefix, wtns, zkey,
};
use spillproof_format::native::NativeField;

use crate::read_back;

/// Panics if a parser is wrong on these bytes.
pub fn property(input: &[u8]) {
    let Some((&choices, rest)) = input.split_first_chunk::<4>() else {
        return;
    };
    let kind = FileKind::ALL[usize::from(choices[0] % 4)];
    check(kind, rest);
    let mut bytes = Vec::new();
    write_prefix(kind, u32::from(choices[1] % 16), &mut bytes);
    bytes.extend(rest);
    check(kind, &bytes);

    let sections = small_file(kind, choices);
    bytes.clear();
    write_prefix(kind, sections.len() as u32, &mut bytes);
    for (id, content) in sections {
        write_section_prefix(id, content.len() as u64, &mut bytes);
        bytes.extend(content);
    }
    read_back::read_back(kind, &bytes).expect("nothing is changed");
    for change in rest.chunks_exact(3).take(16) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
        bytes[at] = change[2];
    }
    check(kind, &bytes);
}

fn check(kind: FileKind, bytes: &[u8]) {
    if let Ok(again) = read_back::read_back(kind, bytes) {
        assert!(again == bytes, "what is accepted is canonical");
    }
    if kind == FileKind::Zkey
        && let Ok(sections) = read_back::walk(kind, bytes)
        && let Ok(range) = contributions::range(&sections)
    {
        let section = read_back::cut(bytes, range);
        stays(
            section,
            contributions_again::<ark_bn254::g1::Config, ark_bn254::g2::Config>,
        );
        stays(
            section,
            contributions_again::<ark_bls12_381::g1::Config, ark_bls12_381::g2::Config>,
        );
    }
    if kind == FileKind::Ptau
        && let Ok(sections) = read_back::walk(kind, bytes)
        && let Ok(range) = history::range(&sections)
    {
        let section = read_back::cut(bytes, range);
        stays(
            section,
            history_again::<ark_bn254::g1::Config, ark_bn254::g2::Config>,
        );
        stays(
            section,
            history_again::<ark_bls12_381::g1::Config, ark_bls12_381::g2::Config>,
        );
    }
}

fn history_again<G1: SWCurveConfig, G2: SWCurveConfig>(section: &[u8]) -> Option<Vec<u8>>
where
    G1::BaseField: NativeField,
    G2::BaseField: NativeField,
{
    let range = ByteRange {
        offset: 0,
        bytes: section.len() as u64,
    };
    let History(list) = History::<Affine<G1>, Affine<G2>>::parse(range, section).ok()?;
    let list: Vec<_> = list.into_iter().map(|(_, contribution)| contribution).collect();
    Some(history_of(&list))
}

fn history_of<G1: SWCurveConfig, G2: SWCurveConfig>(
    list: &[history::Contribution<Affine<G1>, Affine<G2>>],
) -> Vec<u8>
where
    G1::BaseField: NativeField,
    G2::BaseField: NativeField,
{
    let mut bytes = (list.len() as u32).to_le_bytes().to_vec();
    list.iter()
        .for_each(|contribution| contribution.encode(&mut bytes));
    bytes
}

/// So many contributions to a first phase, of generators.
fn generators<G1: SWCurveConfig, G2: SWCurveConfig>(count: u32) -> Vec<u8>
where
    G1::BaseField: NativeField,
    G2::BaseField: NativeField,
{
    let (one, two) = (Affine::<G1>::generator(), Affine::<G2>::generator());
    let proof = history::KnowledgeProof {
        s: one,
        sx: one,
        spx: two,
    };
    let contribution = |number: u32| history::Contribution {
        name: (number > 0).then(|| "contributor".repeat(number as usize)),
        beacon: (number > 1).then(|| Beacon {
            iterations_log: 10,
            value: vec![1; number as usize],
        }),
        after: history::FirstPoints {
            tau_g1: one,
            tau_g2: two,
            alpha_g1: one,
            beta_g1: one,
            beta_g2: two,
        },
        proofs: [proof.clone(), proof.clone(), proof.clone()],
        response: history::HashState {
            block: [1; history::BLOCK_BYTES],
            words: [2; 8],
            hashed_bytes: 3,
            block_bytes: u64::from(number),
        },
        next_challenge: [7; HASH_BYTES],
    };
    history_of(&(0..count).map(contribution).collect::<Vec<_>>())
}

/// What is written of contributions that were read is read and written `again` as the same bytes. (Names that
/// are too long are cut.)
fn stays(section: &[u8], again: impl Fn(&[u8]) -> Option<Vec<u8>>) {
    if let Some(written) = again(section) {
        assert_eq!(again(&written), Some(written));
    }
}

fn contributions_again<G1: SWCurveConfig, G2: SWCurveConfig>(section: &[u8]) -> Option<Vec<u8>>
where
    G1::BaseField: NativeField,
    G2::BaseField: NativeField,
{
    let range = ByteRange {
        offset: 0,
        bytes: section.len() as u64,
    };
    let read = Contributions::<Affine<G1>, Affine<G2>>::parse(range, section).ok()?;
    let list: Vec<_> = read
        .list
        .into_iter()
        .map(|(_, contribution)| contribution)
        .collect();
    Some(section_of(read.circuit_hash, &list))
}

fn section_of<G1: SWCurveConfig, G2: SWCurveConfig>(
    circuit_hash: [u8; HASH_BYTES],
    list: &[Contribution<Affine<G1>, Affine<G2>>],
) -> Vec<u8>
where
    G1::BaseField: NativeField,
    G2::BaseField: NativeField,
{
    let mut bytes = circuit_hash.to_vec();
    bytes.extend((list.len() as u32).to_le_bytes());
    list.iter()
        .for_each(|contribution| contribution.encode(&mut bytes));
    bytes
}

/// The sections of a file that is right.
fn small_file(kind: FileKind, choices: [u8; 4]) -> Vec<(u32, Vec<u8>)> {
    let curve = match choices[0] & 4 {
        0 => Curve::Bn254,
        _ => Curve::Bls12381,
    };
    let [_, first, second, third] = choices.map(|choice| u32::from(choice % 4));
    let mut header = Vec::new();
    match kind {
        FileKind::Zkey if curve == Curve::Bn254 => {
            key::<ark_bn254::g1::Config, ark_bn254::g2::Config>(first, second, third)
        }
        FileKind::Zkey => key::<ark_bls12_381::g1::Config, ark_bls12_381::g2::Config>(first, second, third),
        FileKind::Wtns => {
            let count = u64::from(first) + 1;
            wtns::Header { curve, count }
                .encode(&mut header)
                .expect("few values");
            let values = vec![1; count as usize * SCALAR_BYTES];
            vec![(wtns::VALUES, values), (wtns::HEADER, header)]
        }
        FileKind::R1cs => {
            r1cs::Header {
                curve,
                wires: 4,
                public_outputs: second,
                public_inputs: 3 - second,
                private_inputs: third,
                labels: 9,
                constraints: first,
            }
            .encode(&mut header);
            let mut constraints = Vec::new();
            for i in 0..3 * first {
                let terms = vec![(i % 4, [1; SCALAR_BYTES]); (i % 3) as usize];
                r1cs::write_linear_combination(&terms, &mut constraints).expect("few terms");
            }
            vec![
                (r1cs::CONSTRAINTS, constraints),
                (r1cs::HEADER, header),
                (r1cs::LABELS, vec![0; 4 * 8]),
            ]
        }
        FileKind::Ptau => {
            let power = 1 + first % 3;
            ptau::Header {
                curve,
                power,
                ceremony_power: power + second,
            }
            .encode(&mut header);
            let (g1, points) = (2 * curve.coordinate_bytes() as usize, 1 << power);
            let mut sections = vec![
                (ptau::HEADER, header),
                (ptau::TAU_G1, vec![0; (2 * points - 1) * g1]),
                (ptau::TAU_G2, vec![0; 2 * points * g1]),
                (ptau::ALPHA_TAU_G1, vec![0; points * g1]),
                (ptau::BETA_TAU_G1, vec![0; points * g1]),
                (ptau::BETA_G2, vec![0; 2 * g1]),
                (
                    ptau::CONTRIBUTIONS,
                    match curve {
                        Curve::Bn254 => generators::<ark_bn254::g1::Config, ark_bn254::g2::Config>(second),
                        _ => generators::<ark_bls12_381::g1::Config, ark_bls12_381::g2::Config>(second),
                    },
                ),
            ];
            if third > 1 {
                sections.extend([
                    (ptau::LAGRANGE_G1, vec![0; (4 * points - 1) * g1]),
                    (ptau::LAGRANGE_G2, vec![0; 2 * (2 * points - 1) * g1]),
                    (ptau::ALPHA_LAGRANGE_G1, vec![0; (2 * points - 1) * g1]),
                    (ptau::BETA_LAGRANGE_G1, vec![0; (2 * points - 1) * g1]),
                ]);
            }
            sections
        }
    }
}

/// A key with generators in its header and its contributions; the other points are not read.
fn key<G1: SWCurveConfig, G2: SWCurveConfig>(
    public: u32,
    private: u32,
    coefficients: u32,
) -> Vec<(u32, Vec<u8>)>
where
    G1::BaseField: NativeField,
    G2::BaseField: NativeField,
{
    let (one, two) = (Affine::<G1>::generator(), Affine::<G2>::generator());
    let points = zkey::VerifyingPoints {
        alpha1: one,
        beta1: one,
        beta2: two,
        gamma2: two,
        delta1: one,
        delta2: two,
    };
    let signals = u64::from(public + private + 1);
    let key = zkey::Header::new(signals, u64::from(public), 2, &points).expect("a header");
    let [g1, g2] = key.point_bytes();
    let zeros = |count: u64, element_bytes: u64| vec![0; (count * element_bytes) as usize];
    let mut header = Vec::new();
    key.encode(&mut header);
    let mut records = coefficients.to_le_bytes().to_vec();
    records.resize(4 + coefficients as usize * zkey::COEFFICIENT_BYTES, 0);
    let contribution = |number: u32| Contribution {
        name: (number > 0).then(|| "contributor".repeat(number as usize)),
        beacon: (number > 1).then(|| Beacon {
            iterations_log: 10,
            value: vec![1; number as usize],
        }),
        delta_after: one,
        s: one,
        sx: one,
        spx: two,
        transcript: [7; HASH_BYTES],
    };
    let contributions: Vec<_> = (0..private).map(contribution).collect();
    vec![
        (zkey::PROTOCOL, zkey::GROTH16.to_le_bytes().to_vec()),
        (zkey::HEADER, header),
        (zkey::COEFFICIENTS, records),
        (zkey::IC, zeros(key.public() + 1, g1)),
        (zkey::H, zeros(key.domain(), g1)),
        (zkey::C, zeros(key.private(), g1)),
        (zkey::A, zeros(signals, g1)),
        (zkey::B1, zeros(signals, g1)),
        (zkey::B2, zeros(signals, g2)),
        (zkey::CONTRIBUTIONS, section_of([9; HASH_BYTES], &contributions)),
    ]
}
