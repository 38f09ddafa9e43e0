//! The first phase of a ceremony, of secrets that are known.

use std::io::{self, Write};
use std::iter::successors;
use std::ops::Range;

use ark_ff::{Field, UniformRand};
use spillproof_format::iden3::{FileKind, ptau};
use spillproof_groth16::PairingCurve;

use super::sections::{Sections, multiples};
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
        let g1 = multiples::<E::G1Config>(2 * n);
        let g2 = multiples::<E::G2Config>(n);
        // `first * tau^i`.
        let powers = |first: E::Scalar| {
            move |range: Range<usize>| {
                let first = first * tau.pow([range.start as u64]);
                successors(Some(first), |power| Some(*power * tau))
                    .take(range.len())
                    .collect()
            }
        };
        let one = E::Scalar::ONE;

        let mut file = Sections::begin(out, FileKind::Ptau, 7)?;
        file.section(ptau::HEADER, &header_bytes)?;
        file.points(ptau::TAU_G1, 2 * n - 1, &powers(one), &g1)?;
        file.points(ptau::TAU_G2, n, &powers(one), &g2)?;
        file.points(ptau::ALPHA_TAU_G1, n, &powers(alpha), &g1)?;
        file.points(ptau::BETA_TAU_G1, n, &powers(beta), &g1)?;
        file.points(ptau::BETA_G2, 1, &powers(beta), &g2)?;
        // No contribution: their number.
        file.section(ptau::CONTRIBUTIONS, &[0; 4])
    }
}
