//! Keys, constraints and assignments of arkworks, of any of its versions: their bytes are the same.
//!
//! [`read_zkey`] reads a key of circom's that `ark-zkey` has written (`.arkzkey`: so do `rln` and `semaphore-rs`),
//! constraints included. The rest is for `spillproof-arkworks`, which hands over what programs hold in the types of
//! their version.
//!
//! Memory: a few runs of points; up to 256 bytes for each distinct value of the coefficients while a key is made.

mod file;
mod given;
mod zkey;

use std::path::Path;

use ark_ec::short_weierstrass::Affine;

use crate::{Constraints, Domain, G1Point, G2Point, PairingCurve, ProvingKey, QuotientBasis, VerifyingKey};
#[doc(hidden)]
pub use given::{GivenConstraints, GivenKey, GivenPoints};
pub(crate) use given::{parts as given_parts, prove_values, proving_key};
use spillproof_engine::Result;
pub use spillproof_engine::column::runs::Progress;
use spillproof_engine::column::{Column, Workspace, Writer};
use spillproof_kernels::curve::{Curve, Point};
pub use zkey::{import_zkey, is_zkey, read_zkey};
pub(crate) use zkey::{import_zkey_over, read_zkey_over};

/// Points and coefficients that are converted at a time.
const CHUNK: usize = 4096;

/// The polynomials whose sums a key's `h_query` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// `ark_groth16::r1cs_to_qap::LibsnarkReduction`, which `Groth16<E>` has unless told otherwise: multiples
    /// of the vanishing polynomial by powers of X.
    Libsnark,
    /// `CircomReduction` of `ark-circom`: the Lagrange basis of the odd powers of a root of twice the order.
    Circom,
}

impl Reduction {
    /// Rows of the domain that a key has no `h` point for.
    fn unused_points(self) -> u64 {
        match self {
            Self::Libsnark => 1,
            Self::Circom => 0,
        }
    }
}

/// The points of a key. A column has one point for each signal or row; where the key has no point, the column
/// has infinity.
#[doc(hidden)]
pub struct Parts<E: PairingCurve> {
    /// alpha, beta, delta.
    points_g1: [Affine<E::G1Config>; 3],
    /// beta, gamma, delta.
    points_g2: [Affine<E::G2Config>; 3],
    ic: Column<G1Point<E>>,
    a: Column<G1Point<E>>,
    b_g1: Column<G1Point<E>>,
    b_g2: Column<G2Point<E>>,
    c: Column<G1Point<E>>,
    h: Column<G1Point<E>>,
}

impl<E: PairingCurve> Parts<E> {
    /// The key of these points for a circuit's constraints.
    fn into_key(
        self,
        constraints: Constraints<E::Scalar>,
        domain: Domain<E::Scalar>,
        reduction: Reduction,
    ) -> ProvingKey<E> {
        let [alpha_g1, beta_g1, delta_g1] = self.points_g1;
        let [beta_g2, gamma_g2, delta_g2] = self.points_g2;
        ProvingKey {
            verifying: VerifyingKey {
                alpha_g1,
                beta_g2,
                gamma_g2,
                delta_g2,
                ic: self.ic,
            },
            beta_g1,
            delta_g1,
            a: self.a,
            b_g1: self.b_g1,
            b_g2: self.b_g2,
            c: self.c,
            h: self.h,
            constraints,
            domain,
            quotient: match reduction {
                Reduction::Libsnark => QuotientBasis::Monomial,
                Reduction::Circom => QuotientBasis::Coset,
            },
            share: None,
        }
    }
}

pub(crate) fn read_parts<E: PairingCurve>(
    workspace: &Workspace,
    path: &Path,
    reduction: Reduction,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Parts<E>> {
    workspace.run(|| file::read::<E>(workspace, path, reduction, progress))
}

fn push_infinities<P: Curve>(writer: &mut Writer<Point<P>>, count: u64) -> Result<()> {
    (0..count).try_for_each(|_| writer.push(&[Point::<P>::INFINITY]))
}
