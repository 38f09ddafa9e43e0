//! A rank's sums, in the order in which they are made.

use ark_ec::short_weierstrass::Projective;

use super::super::PairingCurve;
use super::super::proof::Sums;

/// The sums beside the first exchange.
pub struct FirstSums<E: PairingCurve> {
    pub a: Projective<E::G1Config>,
    pub b_g1: Projective<E::G1Config>,
}

/// The sums beside the second exchange.
pub struct SecondSums<E: PairingCurve> {
    pub b_g2: Projective<E::G2Config>,
    pub c: Projective<E::G1Config>,
}

/// What of the sums beside the second exchange is made before it.
pub struct MadeSums<E: PairingCurve> {
    pub b_g2: Option<Projective<E::G2Config>>,
    pub c: Option<Projective<E::G1Config>>,
}

impl<E: PairingCurve> Sums<E> {
    /// Of what was made beside both exchanges, and the sum over H.
    pub(super) fn of(first: FirstSums<E>, second: SecondSums<E>, h: Projective<E::G1Config>) -> Self {
        Self {
            a: first.a,
            b_g1: first.b_g1,
            b_g2: second.b_g2,
            c: second.c,
            h,
        }
    }

    /// Whether those over the witness are the same points.
    pub(super) fn equal_over_witness(&self, other: &Self) -> bool {
        let g1 = |sums: &Self| [sums.a, sums.b_g1, sums.c];
        g1(self) == g1(other) && self.b_g2 == other.b_g2
    }
}
