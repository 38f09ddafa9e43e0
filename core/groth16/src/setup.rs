//! The points of a key from a ceremony's first phase, out of core.
//!
//! With L_i the Lagrange polynomials of the rows and u, v, w the three matrices, a signal s has the points
//! `A = sum u_is L_i`, `B = sum v_is L_i` (in both groups) and
//! `C = sum u_is beta L_i + v_is alpha L_i + w_is L_i`, over a gamma and a delta of one: those of a key to
//! which no one has contributed. The points of the quotient are the Lagrange basis of the coset in the domain
//! of twice the rows.

use ark_ec::short_weierstrass::Affine;
use ark_ff::{AdditiveGroup, Field};

use super::combine::{Source, combine};
use super::{Constraints, Domain, G1Point, G2Point, PairingCurve};
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Draft, Element, Placement, Writer};
use spillproof_engine::error::Invalid;
use spillproof_engine::step;
use spillproof_engine::stream::{Transform, add_multiples, group_ntt, invert};
use spillproof_kernels::curve::{Curve, Point};

/// Indices of the three matrices in the terms of a circuit.
pub(crate) const MATRICES: [u32; 3] = [0, 1, 2];

/// Points of the first phase for the rows of a domain.
pub(crate) struct Powers<E: PairingCurve> {
    pub alpha_g1: Affine<E::G1Config>,
    pub beta_g1: Affine<E::G1Config>,
    pub beta_g2: Affine<E::G2Config>,
    /// L_i.
    pub lagrange_g1: Column<G1Point<E>>,
    /// L_i in the second group.
    pub lagrange_g2: Column<G2Point<E>>,
    /// alpha L_i.
    pub alpha_lagrange_g1: Column<G1Point<E>>,
    /// beta L_i.
    pub beta_lagrange_g1: Column<G1Point<E>>,
}

/// Points of a key, one for each signal.
pub(crate) struct Queries<E: PairingCurve> {
    pub a: Column<G1Point<E>>,
    pub b_g1: Column<G1Point<E>>,
    pub b_g2: Column<G2Point<E>>,
    /// Those of public signals, the constant one included, come first: the verification key's.
    pub c: Column<G1Point<E>>,
}

/// The points of each signal.
///
/// # Errors
/// [`spillproof_engine::Error::BudgetTooSmall`], [`spillproof_engine::Error::OverBudget`]; what reading and
/// writing columns may give.
pub(crate) fn queries<E: PairingCurve>(
    terms: &Constraints<E::Scalar>,
    powers: &Powers<E>,
    signals: u64,
) -> Result<Queries<E>> {
    let workspace = terms.coefficients().workspace();
    let [left, right, output] = MATRICES;
    let g1 = |matrix, points| Source::<E::G1Config> { matrix, points };
    let lagrange = &powers.lagrange_g1;
    let a = {
        let _step = step!(workspace, "points of A");
        combined("A", terms, &[g1(left, lagrange)], signals)?
    };
    let b_g1 = {
        let _step = step!(workspace, "points of B1");
        combined("B1", terms, &[g1(right, lagrange)], signals)?
    };
    let b_g2 = {
        let _step = step!(workspace, "points of B2");
        let points = &powers.lagrange_g2;
        combined(
            "B2",
            terms,
            &[Source::<E::G2Config> {
                matrix: right,
                points,
            }],
            signals,
        )?
    };
    let c = {
        let _step = step!(workspace, "points of C");
        let sources = [
            g1(left, &powers.beta_lagrange_g1),
            g1(right, &powers.alpha_lagrange_g1),
            g1(output, lagrange),
        ];
        combined("C", terms, &sources, signals)?
    };
    Ok(Queries { a, b_g1, b_g2, c })
}

fn combined<P>(
    what: &str,
    terms: &Constraints<P::ScalarField>,
    sources: &[Source<'_, P>],
    signals: u64,
) -> Result<Column<Point<P>>>
where
    P: Curve<ScalarField: Element>,
    Point<P>: Element,
{
    let workspace = terms.coefficients().workspace();
    let draft = Draft::scratch(workspace, what, signals, Placement::Disk)?;
    let mut writer = Writer::new(draft);
    combine(terms, sources, signals, &mut writer)?;
    writer.finish()
}

/// Powers of tau, times a constant, to the Lagrange points of a domain, times the same. `progress` as in
/// [`group_ntt`].
///
/// # Errors
/// Those of [`group_ntt`].
pub(crate) fn lagrange<P: Curve>(
    powers: &Column<Point<P>>,
    log_n: u32,
    domain: &Domain<P::ScalarField>,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Column<Point<P>>>
where
    P::BaseField: Element,
{
    let transform = Transform::inverse(log_n, domain.omega)?;
    group_ntt::<P>(powers, &transform, Placement::Disk, progress)
}

/// The Lagrange points of the coset in the domain of twice the rows, from n powers of tau and the n after
/// them.
///
/// Of 2n rows, those with odd indices. With w the root of order 2n,
/// `L_(2i+1) = 1/2n sum over j < 2n of w^(-(2i+1)j) tau^j`, and as `w^n = -1` that is the inverse transform
/// of `w^-j (tau^j - tau^(j+n)) / 2` over n points.
///
/// # Errors
/// [`Invalid::PowerOfTwo`] for a domain of which there is no such coset; those of [`group_ntt`] and
/// [`add_multiples`].
pub(crate) fn coset_lagrange<P: Curve>(
    [low, high]: [&Column<Point<P>>; 2],
    log_n: u32,
    domain: &Domain<P::ScalarField>,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Column<Point<P>>>
where
    P::BaseField: Element,
{
    if domain.shift.square() != domain.omega {
        return Err(Invalid::PowerOfTwo {
            what: "rows of a domain with a coset",
            given: 1u64.checked_shl(log_n).unwrap_or(u64::MAX),
            log_limit: log_n.saturating_sub(1),
        }
        .into());
    }
    let one = P::ScalarField::ONE;
    let differences = add_multiples::<P>(low, &[(-one, high)], Placement::Disk)?;
    let inverse = Transform::inverse(log_n, domain.omega)?;
    let transform = Transform {
        before: invert("a root of unity", domain.shift)?,
        scale: inverse.scale * invert("two", one.double())?,
        ..inverse
    };
    group_ntt::<P>(&differences, &transform, Placement::Disk, progress)
}
