//! Files as circom and snarkjs write them, of a circuit and its key.

use ark_ec::PrimeGroup;
use ark_ec::scalar_mul::ScalarMul;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ff::{Field, PrimeField};
use spillproof_format::iden3::{
    FileKind, SectionWalk, ptau, r1cs, write_prefix, write_section_prefix, wtns, zkey,
};
use spillproof_format::native::{NativeField, point_bytes, read_point, write_point};
use spillproof_format::{Curve, Element};

use crate::r1cs::{Circuit, Key, Secrets};
use spillproof_groth16::PairingCurve;

/// The curve of a pairing.
fn curve_of<E: PairingCurve>() -> Curve {
    spillproof_format::GroupId::of::<E::G1Config>()
        .expect("a curve of the format")
        .curve
}

/// Points as a file has them.
pub fn points<P: SWCurveConfig<BaseField: NativeField>>(points: &[Affine<P>]) -> Vec<u8> {
    let each = point_bytes::<P>();
    let mut bytes = vec![0; each * points.len()];
    for (point, out) in points.iter().zip(bytes.chunks_exact_mut(each)) {
        write_point(point, out);
    }
    bytes
}

/// The bytes of a section of a file, in the file.
pub fn section(kind: FileKind, bytes: &[u8], id: u32) -> std::ops::Range<usize> {
    let mut walk = SectionWalk::new(kind, bytes.len() as u64);
    while let Some((offset, len)) = walk.next_read() {
        let start = offset as usize;
        walk.give(&bytes[start..start + len]).expect("sections");
    }
    let range = walk.finish().expect("sections").range(id).expect("the section");
    range.offset as usize..range.end() as usize
}

/// The points in the bytes of a file.
pub fn read_points<P: SWCurveConfig<BaseField: NativeField>>(bytes: &[u8]) -> Vec<Affine<P>> {
    let each = point_bytes::<P>();
    let points = bytes.chunks_exact(each).map(|bytes| read_point::<P>(bytes));
    points.collect::<Result<_, _>>().expect("points")
}

/// A `.wtns` file.
pub fn wtns<E: PairingCurve>(witness: &[E::Scalar]) -> Vec<u8> {
    let (mut header, mut values) = (Vec::new(), vec![0; 32 * witness.len()]);
    let of_file = wtns::Header {
        curve: curve_of::<E>(),
        count: witness.len() as u64,
    };
    of_file.encode(&mut header).expect("a header");
    for (value, out) in witness.iter().zip(values.chunks_exact_mut(32)) {
        value.write_standard(out);
    }
    file(
        FileKind::Wtns,
        vec![(wtns::HEADER, header), (wtns::VALUES, values)],
    )
}

/// A `.zkey` file, with its sections in the order in which snarkjs writes them.
pub fn zkey<E: PairingCurve>(circuit: &Circuit<E::Scalar>, Key { key, .. }: &Key<E>) -> Vec<u8> {
    let verifying = zkey::VerifyingPoints::<E::G1Config, E::G2Config> {
        alpha1: key.vk.alpha_g1,
        beta1: key.beta_g1,
        beta2: key.vk.beta_g2,
        gamma2: key.vk.gamma_g2,
        delta1: key.delta_g1,
        delta2: key.vk.delta_g2,
    };
    let (signals, public) = (circuit.witness.len() as u64, circuit.public as u64);
    let header = zkey::Header::new(signals, public, circuit.log_domain(), &verifying).expect("a header");
    let mut header_bytes = Vec::new();
    header.encode(&mut header_bytes);
    let radix = E::Scalar::from(2u64).pow([256]);
    let mut coefficients = Vec::new();
    let a = circuit.bound_a();
    let mut count = 0u32;
    for (constraint, row) in a.iter().enumerate() {
        let b = circuit.b.get(constraint).map_or(&[][..], Vec::as_slice);
        for (matrix, row) in [(0, row.as_slice()), (1, b)] {
            for (value, signal) in row {
                let mut scaled = [0; 32];
                // Twice the radix, as an integer.
                (*value * radix * radix).write_standard(&mut scaled);
                let coefficient = zkey::Coefficient {
                    matrix,
                    constraint: constraint as u32,
                    signal: *signal as u32,
                    value: scaled,
                };
                let mut record = [0; zkey::COEFFICIENT_BYTES];
                coefficient.encode(&mut record);
                coefficients.extend(record);
                count += 1;
            }
        }
    }
    let coefficients = [&count.to_le_bytes()[..], &coefficients].concat();
    file(
        FileKind::Zkey,
        vec![
            (zkey::PROTOCOL, zkey::GROTH16.to_le_bytes().to_vec()),
            (zkey::HEADER, header_bytes),
            (zkey::COEFFICIENTS, coefficients),
            (zkey::IC, points(&key.vk.gamma_abc_g1)),
            (zkey::H, points(&key.h_query)),
            (zkey::C, points(&key.l_query)),
            (zkey::A, points(&key.a_query)),
            (zkey::B1, points(&key.b_g1_query)),
            (zkey::B2, points(&key.b_g2_query)),
            // No contribution: a hash of 64 bytes and their number.
            (zkey::CONTRIBUTIONS, vec![0; 68]),
        ],
    )
}

/// A `.r1cs` file.
pub fn r1cs<E: PairingCurve>(circuit: &Circuit<E::Scalar>) -> Vec<u8> {
    let header = r1cs::Header {
        curve: curve_of::<E>(),
        wires: circuit.witness.len() as u32,
        public_outputs: 0,
        public_inputs: circuit.public as u32,
        private_inputs: 0,
        labels: circuit.witness.len() as u64,
        constraints: circuit.a.len() as u32,
    };
    let (mut header_bytes, mut constraints) = (Vec::new(), Vec::new());
    header.encode(&mut header_bytes);
    for row in 0..circuit.a.len() {
        for matrix in [&circuit.a, &circuit.b, &circuit.c] {
            let terms = matrix[row].iter().map(|(value, signal)| {
                let mut bytes = [0; 32];
                value.write_standard(&mut bytes);
                (*signal as u32, bytes)
            });
            let terms: Vec<_> = terms.collect();
            r1cs::write_linear_combination(&terms, &mut constraints).expect("a combination");
        }
    }
    let labels = (0..circuit.witness.len() as u64)
        .flat_map(u64::to_le_bytes)
        .collect();
    file(
        FileKind::R1cs,
        vec![
            (r1cs::CONSTRAINTS, constraints),
            (r1cs::HEADER, header_bytes),
            (r1cs::LABELS, labels),
        ],
    )
}

/// A `.ptau` file with these secrets, prepared for the second phase or not.
pub fn ptau<E: PairingCurve>(power: u32, secrets: &Secrets<E::Scalar>, is_prepared: bool) -> Vec<u8> {
    let n = 1usize << power;
    let header = ptau::Header {
        curve: curve_of::<E>(),
        power,
        ceremony_power: power,
    };
    let mut header_bytes = Vec::new();
    header.encode(&mut header_bytes);
    let powers: Vec<E::Scalar> =
        std::iter::successors(Some(E::Scalar::ONE), |power| Some(*power * secrets.tau))
            .take(2 * n - 1)
            .collect();
    let times = |factor: E::Scalar, values: &[E::Scalar]| {
        values.iter().map(|value| *value * factor).collect::<Vec<_>>()
    };
    let g1 = |scalars: &[E::Scalar]| points(&E::G1::generator().batch_mul(scalars));
    let g2 = |scalars: &[E::Scalar]| points(&E::G2::generator().batch_mul(scalars));
    let mut sections = vec![
        (ptau::HEADER, header_bytes),
        (ptau::TAU_G1, g1(&powers)),
        (ptau::TAU_G2, g2(&powers[..n])),
        (ptau::ALPHA_TAU_G1, g1(&times(secrets.alpha, &powers[..n]))),
        (ptau::BETA_TAU_G1, g1(&times(secrets.beta, &powers[..n]))),
        (ptau::BETA_G2, g2(&[secrets.beta])),
        (ptau::CONTRIBUTIONS, vec![0; 4]),
    ];
    if is_prepared {
        // The last basis lacks the last power.
        let bases: Vec<Vec<E::Scalar>> = (0..=power + 1).map(|log_n| basis(log_n, &powers)).collect();
        let all = bases.concat();
        let most = bases[..=power as usize].concat();
        sections.extend([
            (ptau::LAGRANGE_G1, g1(&all)),
            (ptau::LAGRANGE_G2, g2(&most)),
            (ptau::ALPHA_LAGRANGE_G1, g1(&times(secrets.alpha, &most))),
            (ptau::BETA_LAGRANGE_G1, g1(&times(secrets.beta, &most))),
        ]);
    }
    file(FileKind::Ptau, sections)
}

/// The Lagrange basis of `2^log_n` points, from the powers of tau. A power that `powers` lacks counts as
/// zero.
fn basis<F: PrimeField>(log_n: u32, powers: &[F]) -> Vec<F> {
    let n = 1usize << log_n;
    let (omega, _) = taceo_groth16::groth16_roots_of_unity::<F>(log_n as usize);
    let inverse = omega.inverse().expect("a root");
    let scale = F::from(n as u64).inverse().expect("not zero");
    let mut steps = Vec::with_capacity(n);
    let mut step = F::ONE;
    for _ in 0..n {
        steps.push(step);
        step *= inverse;
    }
    let term = |i: usize, j: usize| powers.get(j).map_or(F::ZERO, |power| *power * steps[i * j % n]);
    (0..n)
        .map(|i| scale * (0..n).map(|j| term(i, j)).sum::<F>())
        .collect()
}

fn file(kind: FileKind, sections: Vec<(u32, Vec<u8>)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_prefix(kind, sections.len() as u32, &mut bytes);
    for (id, content) in sections {
        write_section_prefix(id, content.len() as u64, &mut bytes);
        bytes.extend(content);
    }
    bytes
}
