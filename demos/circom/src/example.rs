//! A rank-1 constraint system of any size with a witness, and an INSECURE key and first phase for it, in the
//! files that circom and snarkjs write.
//!
//! Key and first phase are made from secrets that a seed gives, and written as they are made: they take
//! some 100 MiB of memory for any number of rows.

mod key;
mod powers;
mod sections;

use std::collections::VecDeque;
use std::io::{self, Write};

use ark_ec::short_weierstrass::SWCurveConfig;
use ark_ff::Field;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use spillproof_format::iden3::{FileKind, SCALAR_BYTES, r1cs, wtns};
use spillproof_format::native::NativeField;
use spillproof_format::{Curve, GroupId};
use spillproof_groth16::{PairingCurve, over_curve};

use sections::Sections;

/// Public signals.
const PUBLIC: usize = 1;
/// Distinct coefficients besides one and two.
const CONSTANTS: usize = 64;
/// How far back the second signal of a row of bits is: a shift register of 33 bits.
const REGISTER: usize = 33;

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
    /// Of the witness, the constants and the secrets of key and first phase.
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

    /// A row of each of the three matrices: with full values `(s₋₁ + c s₋₂) (s₋₁ − s₋₂) = s₀`, with bits
    /// `2 s₋₁ s₋₃₃ = s₋₁ + s₋₃₃ − s₀`.
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

    /// Calls `each` with the value of each signal, in order.
    fn witness<F: Field>(&self, mut each: impl FnMut(F) -> io::Result<()>) -> io::Result<()> {
        let (mut rng, constants) = (self.rng(2), self.constants::<F>());
        each(F::ONE)?;
        // The last ones, the newest at the end.
        let mut last = VecDeque::with_capacity(REGISTER + 1);
        for _ in 1..self.first() {
            let value = match self.values {
                Values::Full => F::rand(&mut rng),
                Values::Bits => F::from(rng.next_u32() % 2),
            };
            last.push_back(value);
            each(value)?;
        }
        for constraint in 0..self.constraints() {
            let [near, second, far] = [1, 2, last.len()].map(|back| last[last.len() - back]);
            let value = match self.values {
                Values::Full => (near + constants[constraint % CONSTANTS] * second) * (near - second),
                Values::Bits => F::from(near != far),
            };
            last.push_back(value);
            last.pop_front();
            each(value)?;
        }
        Ok(())
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

    /// Writes the `.r1cs` file.
    ///
    /// # Errors
    /// Of the file.
    pub fn write_constraints(&self, curve: Curve, out: &mut dyn Write) -> io::Result<()> {
        over_curve!(curve, E => self.write_r1cs::<E>(out))
    }

    /// Writes a first phase of as many powers as the circuit needs, a `.ptau` file, which is INSECURE: its
    /// secrets are known.
    ///
    /// # Errors
    /// Of the file.
    pub fn write_powers(&self, curve: Curve, out: &mut dyn Write) -> io::Result<()> {
        over_curve!(curve, E => self.write_ptau::<E>(out))
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
        self.witness::<E::Scalar>(|value| {
            value.write_standard(&mut bytes);
            file.out.write_all(&bytes)
        })
    }

    fn write_r1cs<E: PairingCurve>(&self, out: &mut dyn Write) -> io::Result<()> {
        let constants = self.constants::<E::Scalar>();
        let of_file = r1cs::Header {
            curve: group::<E::G1Config>()?.curve,
            // Below 2^29.
            wires: self.signals() as u32,
            public_outputs: 0,
            public_inputs: PUBLIC as u32,
            private_inputs: (self.first() - 1 - PUBLIC) as u32,
            labels: self.signals() as u64,
            constraints: self.constraints() as u32,
        };
        let mut header = Vec::new();
        of_file.encode(&mut header);
        let mut bytes = Vec::new();
        let encode = |constraint: usize, bytes: &mut Vec<u8>| {
            bytes.clear();
            for row in self.rows(constraint, &constants) {
                let terms: Vec<_> = row.into_iter().map(term::<E::Scalar>).collect();
                r1cs::write_linear_combination(&terms, bytes).map_err(io::Error::other)?;
            }
            Ok::<_, io::Error>(())
        };
        // All constraints are of one length.
        encode(0, &mut bytes)?;
        let mut file = Sections::begin(out, FileKind::R1cs, 3)?;
        file.section(r1cs::HEADER, &header)?;
        file.section_prefix(r1cs::CONSTRAINTS, self.constraints() * bytes.len())?;
        for constraint in 0..self.constraints() {
            encode(constraint, &mut bytes)?;
            file.out.write_all(&bytes)?;
        }
        file.section_prefix(r1cs::LABELS, self.signals() * size_of::<u64>())?;
        (0..self.signals() as u64).try_for_each(|label| file.out.write_all(&label.to_le_bytes()))
    }
}

/// A term as a file has it.
fn term<F: NativeField>((coefficient, wire): (F, usize)) -> (u32, [u8; SCALAR_BYTES]) {
    let mut bytes = [0; SCALAR_BYTES];
    coefficient.write_standard(&mut bytes);
    (wire as u32, bytes)
}

fn group<P: SWCurveConfig>() -> io::Result<GroupId> {
    GroupId::of::<P>().ok_or_else(|| io::Error::other("no curve of these files"))
}
