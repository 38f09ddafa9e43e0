//! Whether the points of a first phase are powers of one secret.
//!
//! With random weights w_i of 128 bits, the sums of `w_i t_i` and of `w_i t_(i+1)` over an array have the
//! ratio tau if each point is the one before it times tau; a pairing compares that with the ratio of the
//! first powers in the other group. A Lagrange basis and the powers that it is of have equal sums with the
//! weights of [`Challenge`]. Points say nothing about the persons that know tau: the history of contributions
//! does ([`History`]).
//!
//! The largest basis of tau^i is of `2^(p+1)` powers, and a file has one less. The basis of a file that was
//! prepared from these powers lacks the last one, too; that of a file that was cut from a larger prepared one
//! has it. The last power is a sum of the basis, so a pairing compares it with the power before it.

use std::path::Path;

use ark_ec::short_weierstrass::Affine;
use ark_ec::{AffineRepr, CurveGroup};
use spillproof_format::iden3::history::FirstPoints;
use spillproof_format::iden3::{FileKind, PointRange, ptau};
use spillproof_format::{Curve as CurveId, FormatError};

use super::history::{FirstPointsOf, History};
use super::powers::Ptau;
use super::source::{Source, curve_of};
use super::verify::{Contributor, is_same_ratio};
use super::weights::{ChallengeWeights, WeightsFrom};
use crate::{Domain, PairingCurve, check_curve, over_curve};
use spillproof_commit::{Challenge, Weights};
use spillproof_engine::Result;
use spillproof_engine::column::runs::Progress;
use spillproof_engine::column::{Column, Scratch, Workspace};
use spillproof_engine::step;
use spillproof_engine::stream::{ForeignScalars, Scalars, msm};
use spillproof_kernels::curve::{Curve, Point};

/// A first phase that is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedPtau {
    /// Its curve.
    pub curve: CurveId,
    /// log2 of the rows of the largest circuit.
    pub power: u32,
    /// The same of the ceremony that it is of.
    pub ceremony_power: u32,
    /// Whether it has Lagrange bases.
    pub is_prepared: bool,
    /// The contributions, from the first on. The maker of a file that has none may know the secrets.
    pub contributors: Vec<Contributor>,
}

/// Verifies a `.ptau` file: that its points are on their curves, in the subgroups of prime order, and powers
/// of one tau, times one alpha, and times one beta; that its Lagrange bases, if it has them, are those of the
/// powers; and that each contribution follows from those before it, and the powers from the last one. Of a
/// file that was cut from a larger one the first powers are compared with the last contribution, and not the
/// hash of all, which is of more powers than the file has.
///
/// # Errors
/// [`FormatError::Inconsistent`], [`FormatError::Contribution`] and [`FormatError::Point`], in
/// [`spillproof_engine::Error::Format`], for a file that is not right; [`spillproof_engine::Error::File`],
/// [`spillproof_engine::Error::Io`], [`spillproof_engine::Error::OverBudget`],
/// [`spillproof_engine::Error::BudgetTooSmall`].
pub fn verify_ptau(
    workspace: &Workspace,
    file: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<VerifiedPtau> {
    let curve = curve_of(workspace, file, FileKind::Ptau)?;
    over_curve!(curve, E => verify_over::<E>(workspace, file, progress))
}

fn verify_over<E: PairingCurve>(
    workspace: &Workspace,
    file: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<VerifiedPtau> {
    let workspace = workspace.clone().with_scratch(Scratch::Plain)?;
    workspace.run(|| {
        let phase1 = Ptau::open(Source::open(&workspace, file, FileKind::Ptau)?)?;
        check_curve::<E>(file, phase1.header.curve)?;
        let check = Check { phase1: &phase1 };
        let history = History::<E>::read(&phase1)?;
        let first = check.powers::<E>(progress)?;
        let contributors = history.check(&first, progress)?;
        check.bases::<E>(&first, progress)?;
        let header = phase1.header;
        Ok(VerifiedPtau {
            curve: header.curve,
            power: header.power,
            ceremony_power: header.ceremony_power,
            is_prepared: phase1.layout.prepared.is_some(),
            contributors,
        })
    })
}

/// Passes over the arrays of powers: five for subgroups, four for sums.
const PASSES: u64 = 9;

struct Check<'a> {
    phase1: &'a Ptau,
}

impl Check<'_> {
    fn inconsistent(&self, what: &'static str) -> spillproof_engine::Error {
        self.phase1.source.refuse(FormatError::Inconsistent {
            what,
            remedy: "the powers are not those of one secret: do not use the file, and get it again from its source",
        })
    }

    fn powers<E: PairingCurve>(&self, progress: &mut dyn FnMut(Progress)) -> Result<FirstPointsOf<E>> {
        let layout = &self.phase1.layout;
        let mut done = 0;
        let mut tell = |what| {
            progress(Progress {
                what,
                done,
                total: PASSES,
            });
            done += 1;
        };
        for range in [&layout.tau_g1, &layout.alpha_tau_g1, &layout.beta_tau_g1] {
            tell(range.what);
            self.phase1.check_subgroup::<E::G1Config>(range)?;
        }
        for range in [&layout.tau_g2, &layout.beta_g2] {
            tell(range.what);
            self.phase1.check_subgroup::<E::G2Config>(range)?;
        }
        let [one_g1, tau_g1] = self.first_two::<E::G1Config>(&layout.tau_g1)?;
        let [one_g2, tau_g2] = self.first_two::<E::G2Config>(&layout.tau_g2)?;
        if one_g1 != Affine::generator() || one_g2 != Affine::generator() {
            return Err(self.inconsistent("the first power of tau in G1 or in G2 is not the generator"));
        }
        let beta_g2 = self.phase1.first::<E::G2Config>(&layout.beta_g2)?;
        let alpha_g1 = self.phase1.first::<E::G1Config>(&layout.alpha_tau_g1)?;
        let beta_g1 = self.phase1.first::<E::G1Config>(&layout.beta_tau_g1)?;
        if tau_g1.is_zero() || alpha_g1.is_zero() || beta_g1.is_zero() {
            return Err(self.inconsistent("tau, alpha or beta is zero"));
        }
        if !is_same_ratio::<E>([&tau_g1, &one_g1], [&tau_g2, &one_g2]) {
            return Err(self.inconsistent("tau in G1 is another than tau in G2"));
        }
        if !is_same_ratio::<E>([&beta_g1, &one_g1], [&beta_g2, &one_g2]) {
            return Err(self.inconsistent("beta in G1 is another than beta in G2"));
        }
        for range in [&layout.tau_g1, &layout.alpha_tau_g1, &layout.beta_tau_g1] {
            tell(range.what);
            let [low, high] = self.shifted_sums::<E::G1Config>(range)?;
            if !is_same_ratio::<E>([&high, &low], [&tau_g2, &one_g2]) {
                return Err(self.inconsistent(range.what));
            }
        }
        tell(layout.tau_g2.what);
        let [low, high] = self.shifted_sums::<E::G2Config>(&layout.tau_g2)?;
        if !is_same_ratio::<E>([&tau_g1, &one_g1], [&high, &low]) {
            return Err(self.inconsistent(layout.tau_g2.what));
        }
        Ok(FirstPoints {
            tau_g1,
            tau_g2,
            alpha_g1,
            beta_g1,
            beta_g2,
        })
    }

    fn first_two<P: Curve>(&self, range: &PointRange) -> Result<[Affine<P>; 2]> {
        let second = PointRange {
            offset: range.point_offset(1),
            count: range.count - 1,
            ..*range
        };
        Ok([self.phase1.first(range)?, self.phase1.first(&second)?])
    }

    /// The sums of all points but the last, and of all but the first, with the same weights.
    fn shifted_sums<P: Curve>(&self, range: &PointRange) -> Result<[Affine<P>; 2]> {
        let _step = step!(self.phase1.source.workspace, "sums of powers");
        let count = range.count - 1;
        let weights = Weights::<16>::random(0, count);
        let sum = |start| sum::<P>(&self.phase1.part::<P>(range, start, count), &weights);
        Ok([sum(0)?, sum(1)?])
    }

    fn bases<E: PairingCurve>(
        &self,
        first: &FirstPointsOf<E>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        let layout = &self.phase1.layout;
        let Some(prepared) = &layout.prepared else {
            return Ok(());
        };
        for (powers, bases) in [
            (&layout.tau_g1, &prepared.lagrange_g1),
            (&layout.alpha_tau_g1, &prepared.alpha_lagrange_g1),
            (&layout.beta_tau_g1, &prepared.beta_lagrange_g1),
        ] {
            self.bases_of::<E::G1Config>(powers, bases, progress)?;
        }
        self.largest_basis::<E>(first, progress)?;
        self.bases_of::<E::G2Config>(&layout.tau_g2, &prepared.lagrange_g2, progress)
    }

    /// The bases of which the file has all powers.
    fn bases_of<P: Curve>(
        &self,
        powers: &PointRange,
        bases: &PointRange,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        let _step = step!(self.phase1.source.workspace, "sums of bases");
        self.phase1.check_subgroup::<P>(bases)?;
        for log_n in 0..=self.phase1.header.power {
            let basis = self.basis::<P>(bases, log_n)?;
            let powers = basis.sum_of_powers(self, powers)?;
            if basis.sum(Challenge::lagrange)? != powers {
                return Err(self.inconsistent(bases.what));
            }
            progress(Progress {
                what: bases.what,
                done: 2 * basis.points.len() - 1,
                total: bases.count,
            });
        }
        Ok(())
    }

    /// The basis of twice the rows, with the last power or without it.
    fn largest_basis<E: PairingCurve>(
        &self,
        first: &FirstPointsOf<E>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        let (phase1, layout) = (self.phase1, &self.phase1.layout);
        let Some(prepared) = &layout.prepared else {
            return Ok(());
        };
        let bases = &prepared.lagrange_g1;
        let _step = step!(phase1.source.workspace, "sums of bases");
        let basis = self.basis::<E::G1Config>(bases, phase1.header.power + 1)?;
        let powers = basis.sum_of_powers(self, &layout.tau_g1)?;
        // The power that the file lacks counts as infinity there.
        if basis.sum(Challenge::lagrange)? != powers {
            let last = basis.sum(Challenge::lagrange_of_last)?;
            let before = phase1.last::<E::G1Config>(&layout.tau_g1)?;
            let is_next = is_same_ratio::<E>([&last, &before], [&first.tau_g2, &E::G2Affine::generator()]);
            if !is_next || basis.sum(Challenge::lagrange_without_last)? != powers {
                return Err(self.inconsistent(bases.what));
            }
        }
        progress(Progress {
            what: bases.what,
            done: bases.count,
            total: bases.count,
        });
        Ok(())
    }

    fn basis<P: Curve>(&self, bases: &PointRange, log_n: u32) -> Result<Basis<P>> {
        let source = &self.phase1.source;
        let range = ptau::basis(bases, log_n).map_err(|error| source.refuse(error))?;
        let domain = Domain::<P::ScalarField>::of_smallest_non_residue(log_n)?;
        Ok(Basis {
            points: self.phase1.part::<P>(&range, 0, range.count),
            challenge: Challenge::random(log_n, domain.omega),
        })
    }
}

/// A Lagrange basis, and the weights with which it is compared with powers.
struct Basis<P: Curve> {
    points: Column<Point<P>>,
    challenge: Challenge<P::ScalarField>,
}

impl<P: Curve> Basis<P> {
    /// The sum of the basis with these weights of the challenge.
    fn sum(&self, weights: WeightsFrom<P::ScalarField>) -> Result<Affine<P>> {
        let weights = ChallengeWeights {
            challenge: &self.challenge,
            count: self.points.len() as usize,
            weights,
        };
        sum::<P>(&self.points, &weights)
    }

    /// The sum of as many powers as the basis has points; those that the file lacks count as infinity.
    fn sum_of_powers(&self, check: &Check<'_>, powers: &PointRange) -> Result<Affine<P>> {
        let powers = check.phase1.part::<P>(powers, 0, self.points.len());
        let weights = ChallengeWeights {
            challenge: &self.challenge,
            count: powers.len() as usize,
            weights: Challenge::monomial,
        };
        sum::<P>(&powers, &weights)
    }
}

fn sum<P: Curve>(
    points: &Column<Point<P>>,
    weights: &dyn ForeignScalars<P::ScalarField>,
) -> Result<Affine<P>> {
    let sums = msm::<P>(points, &[Scalars::Foreign(weights)])?;
    Ok(sums.first().copied().unwrap_or_default().into_affine())
}
