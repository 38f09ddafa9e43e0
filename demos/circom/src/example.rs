//! A rank-1 constraint system of any size with a witness, and an INSECURE key of it, in the files that circom and snarkjs write.
//!
//! The key is made from secrets that a seed gives, in memory and with arkworks' arithmetic: about 1 KiB for each row.

use std::io::{self, Write};

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ec::scalar_mul::BatchMulPreprocessing;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{AdditiveGroup, Field, UniformRand, batch_inversion};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use spillproof::groth16::{Domain, PairingCurve};
use spillproof_format::iden3::{FileKind, SCALAR_BYTES, write_prefix, write_section_prefix, wtns, zkey};
use spillproof_format::native::{NativeField, point_bytes, write_point};
use spillproof_format::{Curve, Element, GroupId};

use crate::prove::over_curve;

/// Public signals.
const PUBLIC: usize = 1;
/// Distinct coefficients besides one and two.
const CONSTANTS: usize = 64;
/// How far back the second signal of a row of bits is: a shift register of 33 bits.
const REGISTER: usize = 33;
/// Points that are in memory at a time.
const CHUNK_POINTS: usize = 1 << 16;

/// The values of a witness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Of full size, as of a Poseidon hash.
    Full,
    /// Zeros and ones, as of SHA-256.
    Bits,
}

/// A circuit that fills a domain: every row makes a signal of signals shortly before it.
#[derive(Debug, Clone, Copy)]
pub struct Circuit {
    /// log2 of the rows of the domain: 4 to 28.
    pub k: u32,
    /// The values of its witness.
    pub values: Values,
    /// Of the witness, the constants and the key's secrets.
    pub seed: u64,
}

/// Up to three terms of a linear combination: (coefficient, signal).
type Row<F> = Vec<(F, usize)>;

impl Circuit {
    /// Constraints.
    #[must_use]
    pub const fn constraints(&self) -> usize {
        (1 << self.k) - 1 - PUBLIC
    }

    /// Signals, the constant one included.
    #[must_use]
    pub const fn signals(&self) -> usize {
        self.first() + self.constraints()
    }

    /// The signal of the first constraint. Those before it are one, and inputs.
    const fn first(&self) -> usize {
        1 + match self.values {
            Values::Full => 2,
            Values::Bits => REGISTER,
        }
    }

    fn rng(&self, stream: u64) -> ChaCha20Rng {
        let mut rng = ChaCha20Rng::seed_from_u64(self.seed);
        rng.set_stream(stream);
        rng
    }

    fn constants<F: Field>(&self) -> Vec<F> {
        let mut rng = self.rng(1);
        (0..CONSTANTS).map(|_| F::rand(&mut rng)).collect()
    }

    /// A row of each of the three matrices: with full values `(s₋₁ + c s₋₂) (s₋₁ − s₋₂) = s₀`, with bits `2 s₋₁ s₋₃₃ = s₋₁ + s₋₃₃ − s₀`.
    fn rows<F: Field>(&self, constraint: usize, constants: &[F]) -> [Row<F>; 3] {
        let new = self.first() + constraint;
        match self.values {
            Values::Full => {
                let constant = constants[constraint % CONSTANTS];
                [
                    vec![(F::ONE, new - 1), (constant, new - 2)],
                    vec![(F::ONE, new - 1), (-F::ONE, new - 2)],
                    vec![(F::ONE, new)],
                ]
            }
            Values::Bits => {
                let (near, far) = (new - 1, new - REGISTER);
                [
                    vec![(F::from(2u64), near)],
                    vec![(F::ONE, far)],
                    vec![(F::ONE, near), (F::ONE, far), (-F::ONE, new)],
                ]
            }
        }
    }

    /// The values of all signals.
    fn witness<F: Field>(&self) -> Vec<F> {
        let (mut rng, constants) = (self.rng(2), self.constants::<F>());
        let mut witness = vec![F::ONE];
        for _ in 1..self.first() {
            witness.push(match self.values {
                Values::Full => F::rand(&mut rng),
                Values::Bits => F::from(rng.next_u32() % 2),
            });
        }
        for constraint in 0..self.constraints() {
            let new = witness.len();
            let (last, constant) = (witness[new - 1], constants[constraint % CONSTANTS]);
            witness.push(match self.values {
                Values::Full => (last + constant * witness[new - 2]) * (last - witness[new - 2]),
                Values::Bits => F::from((last != witness[new - REGISTER]) as u64),
            });
        }
        witness
    }

    /// Writes a `.wtns` file.
    ///
    /// # Errors
    /// Of the file.
    pub fn write_witness(&self, curve: Curve, out: &mut dyn Write) -> io::Result<()> {
        over_curve!(curve, E => self.write_wtns::<E>(out))
    }

    /// Writes a `.zkey` file, which is INSECURE: its secrets are known.
    ///
    /// # Errors
    /// Of the file; of a domain that the field does not have.
    pub fn write_key(&self, curve: Curve, out: &mut dyn Write) -> io::Result<()> {
        over_curve!(curve, E => self.write_zkey::<E>(out))
    }

    fn write_wtns<E: PairingCurve>(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut file = Sections::begin(out, FileKind::Wtns, 2)?;
        let of_file = wtns::Header {
            curve: group::<E::G1Config>()?.curve,
            count: self.signals() as u64,
        };
        let mut header = Vec::new();
        of_file.encode(&mut header).map_err(io::Error::other)?;
        file.section(wtns::HEADER, &header)?;
        file.section_prefix(wtns::VALUES, self.signals() * SCALAR_BYTES)?;
        let mut bytes = [0; SCALAR_BYTES];
        for value in self.witness::<E::Scalar>() {
            value.write_standard(&mut bytes);
            file.out.write_all(&bytes)?;
        }
        Ok(())
    }

    fn write_zkey<E: PairingCurve>(&self, out: &mut dyn Write) -> io::Result<()> {
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
        file.points::<E::G1Config>(zkey::IC, inputs, |scalars| g1.batch_mul(scalars))?;
        let h = {
            let power = tau.pow([2 * n as u64]);
            let scale = inverse(E::Scalar::from(2 * n as u64))? * (power - E::Scalar::ONE) * over_delta;
            lagrange(n, domain.shift, domain.omega, tau, scale)
        };
        file.points::<E::G1Config>(zkey::H, &h, |scalars| g1.batch_mul(scalars))?;
        drop(h);
        file.points::<E::G1Config>(zkey::C, private, |scalars| g1.batch_mul(scalars))?;
        file.points::<E::G1Config>(zkey::A, &a, |scalars| g1.batch_mul(scalars))?;
        file.points::<E::G1Config>(zkey::B1, &b, |scalars| g1.batch_mul(scalars))?;
        file.points::<E::G2Config>(zkey::B2, &b, |scalars| g2.batch_mul(scalars))?;
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

fn group<P: SWCurveConfig>() -> io::Result<GroupId> {
    GroupId::of::<P>().ok_or_else(|| io::Error::other("no curve of these files"))
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

/// A file of sections, whose lengths are known before they are written.
struct Sections<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Sections<'a> {
    fn begin(out: &'a mut dyn Write, kind: FileKind, sections: u32) -> io::Result<Self> {
        let mut prefix = Vec::new();
        write_prefix(kind, sections, &mut prefix);
        out.write_all(&prefix)?;
        Ok(Self { out })
    }

    fn section_prefix(&mut self, id: u32, section_bytes: usize) -> io::Result<()> {
        let mut prefix = Vec::new();
        write_section_prefix(id, section_bytes as u64, &mut prefix);
        self.out.write_all(&prefix)
    }

    fn section(&mut self, id: u32, content: &[u8]) -> io::Result<()> {
        self.section_prefix(id, content.len())?;
        self.out.write_all(content)
    }

    fn points<P: SWCurveConfig<BaseField: NativeField>>(
        &mut self,
        id: u32,
        scalars: &[P::ScalarField],
        multiply: impl Fn(&[P::ScalarField]) -> Vec<Affine<P>>,
    ) -> io::Result<()> {
        let each = point_bytes::<P>();
        self.section_prefix(id, each * scalars.len())?;
        let mut bytes = vec![0; each * CHUNK_POINTS.min(scalars.len())];
        for scalars in scalars.chunks(CHUNK_POINTS) {
            let points = multiply(scalars);
            for (point, out) in points.iter().zip(bytes.chunks_exact_mut(each)) {
                write_point(point, out);
            }
            self.out.write_all(&bytes[..each * points.len()])?;
        }
        Ok(())
    }
}
