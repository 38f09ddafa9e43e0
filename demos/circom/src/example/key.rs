//! The key, of secrets that are known.

use std::io::{self, Write};
use std::iter::successors;
use std::ops::Range;

use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{Field, UniformRand, batch_inversion};
use spillproof_format::Element;
use spillproof_format::iden3::{FileKind, SCALAR_BYTES, zkey};
use spillproof_format::native::NativeField;
use spillproof_groth16::{Domain, PairingCurve};

use super::sections::{Sections, multiples};
use super::{Circuit, PUBLIC, REGISTER};

impl Circuit {
    pub(super) fn write_zkey<E: PairingCurve>(&self, out: &mut dyn Write) -> io::Result<()> {
        let n = 1usize << self.k;
        let mut rng = self.rng(3);
        let mut secret = || E::Scalar::rand(&mut rng);
        let [tau, alpha, beta, gamma, delta] = [secret(), secret(), secret(), secret(), secret()];
        let domain = Domain::<E::Scalar>::of_smallest_non_residue(self.k).map_err(io::Error::other)?;
        let g1 = multiples::<E::G1Config>(n);
        let g2 = multiples::<E::G2Config>(n);
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

        let power = tau.pow([n as u64]);
        let rows = Lagrange {
            first: E::Scalar::ONE,
            omega: domain.omega,
            tau,
            scale: inverse(E::Scalar::from(n as u64))? * (power - E::Scalar::ONE),
        };
        let (over_gamma, over_delta) = (inverse(gamma)?, inverse(delta)?);
        let odd = Lagrange {
            first: domain.shift,
            scale: inverse(E::Scalar::from(2 * n as u64))? * (power.square() - E::Scalar::ONE) * over_delta,
            ..rows
        };
        let constants = self.constants();
        let a = |signals| {
            let [a, ..] = self.sums(signals, &constants, &rows);
            a
        };
        let b = |signals| {
            let [_, b, _] = self.sums(signals, &constants, &rows);
            b
        };
        let all = |signals: Range<usize>, over: E::Scalar| {
            let [a, b, mut c] = self.sums(signals, &constants, &rows);
            for ((c, a), b) in c.iter_mut().zip(&a).zip(&b) {
                *c = (*c + beta * a + alpha * b) * over;
            }
            c
        };
        let (inputs, signals) = (PUBLIC + 1, self.signals());
        let private = |range: Range<usize>| all(range.start + inputs..range.end + inputs, over_delta);
        file.points(zkey::IC, inputs, &|range| all(range, over_gamma), &g1)?;
        file.points(zkey::H, n, &|range| odd.values(range), &g1)?;
        file.points(zkey::C, signals - inputs, &private, &g1)?;
        file.points(zkey::A, signals, &a, &g1)?;
        file.points(zkey::B1, signals, &b, &g1)?;
        file.points(zkey::B2, signals, &b, &g2)?;
        // No contribution: a hash of 64 bytes, and their number.
        file.section(zkey::CONTRIBUTIONS, &[0; 68])
    }

    /// What the rows of each of the three matrices give these signals: the sums of their coefficients times the Lagrange
    /// polynomials of the rows, at the secret.
    fn sums<F: Field>(&self, signals: Range<usize>, constants: &[F], lagrange: &Lagrange<F>) -> [Vec<F>; 3] {
        let mut sums = [(); 3].map(|()| vec![F::ZERO; signals.len()]);
        let mut add = |matrix: usize, signal: usize, value: F| {
            if signals.contains(&signal) {
                sums[matrix][signal - signals.start] += value;
            }
        };
        // The row that makes a signal is the first that has it.
        let [start, end] = [signals.start, signals.end + REGISTER]
            .map(|signal| signal.saturating_sub(self.first()).min(self.constraints()));
        for (constraint, value) in (start..end).zip(lagrange.values(start..end)) {
            for (matrix, row) in self.rows(constraint, constants).into_iter().enumerate() {
                for (coefficient, signal) in row {
                    add(matrix, signal, coefficient * value);
                }
            }
        }
        // Rows of their own bind the public signals.
        if signals.start <= PUBLIC {
            let binding = lagrange.values(self.constraints()..self.constraints() + PUBLIC + 1);
            for (signal, value) in binding.into_iter().enumerate() {
                add(0, signal, value);
            }
        }
        sums
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

/// Lagrange polynomials at `tau`: `scale * x_i / (tau - x_i)` for the points `x_i = first * omega^i`.
#[derive(Clone, Copy)]
struct Lagrange<F> {
    first: F,
    omega: F,
    tau: F,
    scale: F,
}

impl<F: Field> Lagrange<F> {
    fn values(&self, range: Range<usize>) -> Vec<F> {
        let first = self.first * self.omega.pow([range.start as u64]);
        let points = || successors(Some(first), |point| Some(*point * self.omega)).take(range.len());
        let mut values: Vec<F> = points().map(|point| self.tau - point).collect();
        batch_inversion(&mut values);
        values
            .iter_mut()
            .zip(points())
            .for_each(|(value, point)| *value *= self.scale * point);
        values
    }
}
