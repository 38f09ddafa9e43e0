//! The first phase of a ceremony, of secrets that are known.

use std::io::{self, Write};
use std::iter::successors;

use ark_ec::PrimeGroup;
use ark_ec::scalar_mul::BatchMulPreprocessing;
use ark_ff::UniformRand;
use spillproof_format::iden3::{FileKind, ptau};
use spillproof_groth16::PairingCurve;

use super::sections::Sections;
use super::{Circuit, group};

impl Circuit {
    pub(super) fn write_ptau<E: PairingCurve>(&self, out: &mut dyn Write) -> io::Result<()> {
        let n = 1usize << self.k;
        let mut rng = self.rng(4);
        let mut secret = || E::Scalar::rand(&mut rng);
        let [tau, alpha, beta] = [secret(), secret(), secret()];
        let header = ptau::Header {
            curve: group::<E::G1Config>()?.curve,
            power: self.k,
            ceremony_power: self.k,
        };
        let mut header_bytes = Vec::new();
        header.encode(&mut header_bytes);
        let g1 = BatchMulPreprocessing::new(E::G1::generator(), 2 * n);
        let g2 = BatchMulPreprocessing::new(E::G2::generator(), n);
        let in_g1 = |scalars: &[E::Scalar]| g1.batch_mul(scalars);
        let in_g2 = |scalars: &[E::Scalar]| g2.batch_mul(scalars);
        // `first * tau^i`.
        let powers = |first, count| successors(Some(first), |power| Some(*power * tau)).take(count);
        let one = E::Scalar::from(1u64);

        let mut file = Sections::begin(out, FileKind::Ptau, 7)?;
        file.section(ptau::HEADER, &header_bytes)?;
        file.points::<E::G1Config>(ptau::TAU_G1, 2 * n - 1, powers(one, 2 * n - 1), in_g1)?;
        file.points::<E::G2Config>(ptau::TAU_G2, n, powers(one, n), in_g2)?;
        file.points::<E::G1Config>(ptau::ALPHA_TAU_G1, n, powers(alpha, n), in_g1)?;
        file.points::<E::G1Config>(ptau::BETA_TAU_G1, n, powers(beta, n), in_g1)?;
        file.points::<E::G2Config>(ptau::BETA_G2, 1, powers(beta, 1), in_g2)?;
        // No contribution: their number.
        file.section(ptau::CONTRIBUTIONS, &[0; 4])
    }
}
