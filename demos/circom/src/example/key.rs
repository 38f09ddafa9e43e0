//! The key, of secrets that are known.

use std::io::{self, Write};

use ark_ec::scalar_mul::BatchMulPreprocessing;
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{AdditiveGroup, Field, UniformRand, batch_inversion};
use spillproof_format::Element;
use spillproof_format::iden3::{FileKind, SCALAR_BYTES, zkey};
use spillproof_format::native::NativeField;
use spillproof_groth16::{Domain, PairingCurve};

use super::sections::Sections;
use super::{Circuit, PUBLIC};

impl Circuit {
    pub(super) fn write_zkey<E: PairingCurve>(&self, out: &mut dyn Write) -> io::Result<()> {
        let n = 1usize << self.k;
        let mut rng = self.rng(3);
        let mut secret = || E::Scalar::rand(&mut rng);
        let [tau, alpha, beta, gamma, delta] = [secret(), secret(), secret(), secret(), secret()];
        let domain = Domain::<E::Scalar>::of_smallest_non_residue(self.k).map_err(io::Error::other)?;
        let g1 = BatchMulPreprocessing::new(E::G1::generator(), n);
        let g2 = BatchMulPreprocessing::new(E::G2::generator(), n);
        let in_g1 = |scalar| (E::G1::generator() * scalar).into_affine();
        let in_g2 = |scalar| (E::G2::generator() * scalar).into_affine();
        let verifying = zkey::VerifyingPoints::<E::G1Config, E::G2Config> {
            alpha1: in_g1(alpha),
            beta1: in_g1(beta),
            beta2: in_g2(beta),
            gamma2: in_g2(gamma),
            delta1: in_g1(delta),
            delta2: in_g2(delta),
        };
        let header = zkey::Header::new(self.signals() as u64, PUBLIC as u64, self.k, &verifying)
            .map_err(io::Error::other)?;
        let mut header_bytes = Vec::new();
        header.encode(&mut header_bytes);

        let mut file = Sections::begin(out, FileKind::Zkey, 10)?;
        file.section(zkey::PROTOCOL, &zkey::GROTH16.to_le_bytes())?;
        file.section(zkey::HEADER, &header_bytes)?;
        self.write_coefficients::<E>(&mut file)?;

        let zero = E::Scalar::ZERO;
        let mut sums = [
            vec![zero; self.signals()],
            vec![zero; self.signals()],
            vec![zero; self.signals()],
        ];
        {
            let constants = self.constants::<E::Scalar>();
            let power = tau.pow([n as u64]);
            let scale = inverse(E::Scalar::from(n as u64))? * (power - E::Scalar::ONE);
            let lagrange = lagrange(n, E::Scalar::ONE, domain.omega, tau, scale);
            for (constraint, value) in lagrange.iter().enumerate() {
                let Some(binds) = constraint.checked_sub(self.constraints()) else {
                    let rows = self.rows::<E::Scalar>(constraint, &constants);
                    for (sums, row) in sums.iter_mut().zip(rows) {
                        for (coefficient, signal) in row {
                            sums[signal] += coefficient * value;
                        }
                    }
                    continue;
                };
                if binds <= PUBLIC {
                    sums[0][binds] += value;
                }
            }
        }
        let [a, b, mut c] = sums;
        for ((c, a), b) in c.iter_mut().zip(&a).zip(&b) {
            *c += beta * a + alpha * b;
        }
        let (inputs, private) = c.split_at_mut(PUBLIC + 1);
        let (over_gamma, over_delta) = (inverse(gamma)?, inverse(delta)?);
        inputs.iter_mut().for_each(|value| *value *= over_gamma);
        private.iter_mut().for_each(|value| *value *= over_delta);
        file.points_of::<E::G1Config>(zkey::IC, inputs, |scalars| g1.batch_mul(scalars))?;
        let h = {
            let power = tau.pow([2 * n as u64]);
            let scale = inverse(E::Scalar::from(2 * n as u64))? * (power - E::Scalar::ONE) * over_delta;
            lagrange(n, domain.shift, domain.omega, tau, scale)
        };
        file.points_of::<E::G1Config>(zkey::H, &h, |scalars| g1.batch_mul(scalars))?;
        drop(h);
        file.points_of::<E::G1Config>(zkey::C, private, |scalars| g1.batch_mul(scalars))?;
        file.points_of::<E::G1Config>(zkey::A, &a, |scalars| g1.batch_mul(scalars))?;
        file.points_of::<E::G1Config>(zkey::B1, &b, |scalars| g1.batch_mul(scalars))?;
        file.points_of::<E::G2Config>(zkey::B2, &b, |scalars| g2.batch_mul(scalars))?;
        // No contribution: a hash of 64 bytes, and their number.
        file.section(zkey::CONTRIBUTIONS, &[0; 68])
    }

    fn write_coefficients<E: PairingCurve>(&self, file: &mut Sections<'_>) -> io::Result<()> {
        let constants = self.constants::<E::Scalar>();
        let count = |constraint| -> usize {
            let [a, b, _] = self.rows(constraint, &constants);
            a.len() + b.len()
        };
        let count = self.constraints() * count(0) + PUBLIC + 1;
        file.section_prefix(zkey::COEFFICIENTS, 4 + count * zkey::COEFFICIENT_BYTES)?;
        let announced = u32::try_from(count).map_err(io::Error::other)?;
        file.out.write_all(&announced.to_le_bytes())?;
        let radix = E::Scalar::from(2u64).pow([512]);
        let mut write = |matrix, constraint: usize, (coefficient, signal): (E::Scalar, usize)| {
            let mut value = [0; SCALAR_BYTES];
            (coefficient * radix).write_standard(&mut value);
            let mut record = [0; zkey::COEFFICIENT_BYTES];
            let coefficient = zkey::Coefficient {
                matrix,
                // Below 2^28, and the signals below 2^29.
                constraint: constraint as u32,
                signal: signal as u32,
                value,
            };
            coefficient.encode(&mut record);
            file.out.write_all(&record)
        };
        for constraint in 0..self.constraints() {
            let [a, b, _] = self.rows(constraint, &constants);
            for term in a {
                write(0, constraint, term)?;
            }
            for term in b {
                write(1, constraint, term)?;
            }
        }
        for signal in 0..=PUBLIC {
            write(0, self.constraints() + signal, (E::Scalar::ONE, signal))?;
        }
        Ok(())
    }
}

fn inverse<F: Field>(value: F) -> io::Result<F> {
    value
        .inverse()
        .ok_or_else(|| io::Error::other("zero has no inverse"))
}

/// `scale * x_i / (tau - x_i)` for the points `x_i = first * omega^i`.
fn lagrange<F: Field>(n: usize, first: F, omega: F, tau: F, scale: F) -> Vec<F> {
    let points = || std::iter::successors(Some(first), |point| Some(*point * omega)).take(n);
    let mut values: Vec<F> = points().map(|point| tau - point).collect();
    batch_inversion(&mut values);
    values
        .iter_mut()
        .zip(points())
        .for_each(|(value, point)| *value *= scale * point);
    values
}
