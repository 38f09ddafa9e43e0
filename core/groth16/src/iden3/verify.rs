//! Whether a key is that of a circuit and a first phase, with the contributions that it lists: snarkjs'
//! `zkey verify`.
//!
//! The key before the first contribution is made anew. Everything that contributions leave as it is has to be
//! equal in both. delta follows the contributions one by one. C and H are the initial ones over delta: sums
//! of both with the same random weights are compared in a pairing (with weights of 128 bits, wrong points go
//! unnoticed with a probability of 2^-128).
//!
//! H is the inverse transform of n points, of which the last is of no use: a quotient of n rows has a degree
//! of n - 2 at most. That point depends on the way of the key: it lacks a power if the first phase has no
//! more powers than the circuit has rows, and it is infinity after `snarkjs zkey import bellman`. As in
//! snarkjs it is not compared ([`Challenge::lagrange_without_last`]).

use std::ops::Range;
use std::path::Path;

use ark_ec::short_weierstrass::Affine;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::Zero;
use spillproof_format::FormatError;
use spillproof_format::iden3::contributions::{Beacon, HASH_BYTES};
use spillproof_format::iden3::{FileKind, PointRange};

use super::contribute::{ContributionOf, ContributionsOf, Section, generator_of_beacon, hash_into, hash_of};
use super::key::{Checked, Zkey, points_in_place};
use super::setup::InitialKey;
use super::source::curve_of;
use super::subgroup;
use super::transcript::{Transcript, generator, random_element, random_point};
use super::weights::ChallengeWeights;
use crate::constraints::Share;
use crate::{Coefficient, Constraints, CurveId, Domain, MATRICES, PairingCurve, Shape, over_curve};
use spillproof_commit::{Challenge, Weights};
use spillproof_engine::Result;
use spillproof_engine::budget::LeasedVec;
use spillproof_engine::column::runs::Progress;
use spillproof_engine::column::{Column, Placement, Reader, Region, Scratch, Workspace};
use spillproof_engine::step;
use spillproof_engine::stream::{ForeignScalars, Scalars, msm};
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::field::KernelField;

/// A key that is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedKey {
    /// Its curve.
    pub curve: CurveId,
    /// Its sizes.
    pub shape: Shape,
    /// The hash of its circuit.
    pub circuit_hash: [u8; HASH_BYTES],
    /// The contributions, from the first on. Proofs can be forged with a key that has none.
    pub contributors: Vec<Contributor>,
}

/// One contribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contributor {
    /// The name that the contributor gave.
    pub name: Option<String>,
    /// The beacon, for a contribution of one.
    pub beacon: Option<Beacon>,
    /// The contribution's hash, to be compared with the one that the contributor published.
    pub hash: [u8; HASH_BYTES],
}

/// Verifies a `.zkey` file, the last of `files`, against the `.r1cs` file of its circuit and the `.ptau` file
/// that it was made from.
///
/// # Errors
/// [`FormatError::Contribution`] and [`FormatError::NotDerived`], in [`spillproof_engine::Error::Format`],
/// for a key that is not right; those of [`super::setup`].
pub fn verify_zkey(
    workspace: &Workspace,
    files: [&Path; 3],
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<VerifiedKey> {
    let curve = curve_of(workspace, files[2], FileKind::Zkey)?;
    over_curve!(curve, E => verify_over::<E>(workspace, files, progress))
}

fn verify_over<E: PairingCurve>(
    workspace: &Workspace,
    [r1cs, ptau, key]: [&Path; 3],
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<VerifiedKey> {
    let workspace = workspace.clone().with_scratch(Scratch::Plain)?;
    workspace.run(|| {
        let zkey = Zkey::<E>::open(&workspace, key)?;
        let Section {
            range,
            contributions: section,
            ..
        } = &Section::<E>::read(&zkey)?;
        let chain = Chain { zkey: &zkey, section };
        chain.check(progress)?;
        let initial = InitialKey::<E>::new(&workspace, [r1cs, ptau], progress)?;
        let check = Check {
            zkey: &zkey,
            initial: &initial,
        };
        check.header()?;
        check.equal_parts(progress)?;
        check.divided_parts()?;
        let circuit_hash = initial.circuit_hash()?;
        if circuit_hash != section.circuit_hash {
            return Err(check.not_derived("the bytes of the circuit's hash", range.offset));
        }
        let contributors = section.list.iter().map(|(_, contribution)| Contributor {
            hash: hash_of::<E>(contribution),
            name: contribution.name.clone(),
            beacon: contribution.beacon.clone(),
        });
        Ok(VerifiedKey {
            curve: zkey.header.curve(),
            shape: initial.shape(),
            circuit_hash: section.circuit_hash,
            contributors: contributors.collect(),
        })
    })
}

/// A fault of a contribution.
pub(super) const NOT_A_BEACON: &str = "its beacon has a length or a number of iterations that no beacon has";
/// A fault of a contribution.
pub(super) const NOT_OF_ITS_BEACON: &str = "it does not follow from its beacon";

/// `a / b == c / d` of logarithms.
pub(super) fn is_same_ratio<E: PairingCurve>([a, b]: [&E::G1Affine; 2], [c, d]: [&E::G2Affine; 2]) -> bool {
    E::multi_pairing([*a, (-b.into_group()).into_affine()], [*d, *c]).is_zero()
}

/// The contributions to a key, each on those before it.
struct Chain<'a, E: PairingCurve> {
    zkey: &'a Zkey<E>,
    section: &'a ContributionsOf<E>,
}

impl<E: PairingCurve> Chain<'_, E> {
    fn check(&self, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        let mut transcript = Transcript::new();
        transcript.bytes(&self.section.circuit_hash);
        let mut delta = E::G1Affine::generator();
        for (number, (offset, contribution)) in (1..).zip(&self.section.list) {
            let offset = *offset;
            let fault = one_fault::<E>(contribution, &delta, &transcript);
            let fault = match (fault, &contribution.beacon) {
                (None, Some(beacon)) => beacon_fault::<E>(contribution, beacon, progress)?,
                (fault, _) => fault,
            };
            if let Some(fault) = fault {
                let error = FormatError::Contribution {
                    number,
                    offset,
                    fault,
                };
                return Err(self.zkey.source.refuse(error));
            }
            hash_into::<E>(contribution, &mut transcript);
            delta = contribution.delta_after;
        }
        let points = &self.zkey.points;
        let (g1, g2) = (E::G1Affine::generator(), E::G2Affine::generator());
        if points.delta1 != delta || !is_same_ratio::<E>([&delta, &g1], [&points.delta2, &g2]) {
            return Err(self.zkey.source.refuse(FormatError::NotDerived {
                what: "delta1 and delta2 of the header",
                offset: self.zkey.header_offset()?,
            }));
        }
        Ok(())
    }
}

/// What of a contribution does not follow from the delta and the hash before it.
fn one_fault<E: PairingCurve>(
    contribution: &ContributionOf<E>,
    delta: &E::G1Affine,
    before: &Transcript,
) -> Option<&'static str> {
    let mut transcript = before.clone();
    transcript.point::<E::G1Config>(&contribution.s);
    transcript.point::<E::G1Config>(&contribution.sx);
    if transcript.finish() != contribution.transcript {
        return Some("its hash is not that of the contributions before it");
    }
    let sp: Affine<E::G2Config> = random_point(&mut generator(&contribution.transcript));
    let in_g2 = [&contribution.spx, &sp];
    if !is_same_ratio::<E>([&contribution.sx, &contribution.s], in_g2) {
        return Some("the two parts of its proof are of different secrets");
    }
    if !is_same_ratio::<E>([&contribution.delta_after, delta], in_g2) {
        return Some("its secret is not the one that delta was multiplied by");
    }
    None
}

/// What of a contribution does not follow from its beacon.
fn beacon_fault<E: PairingCurve>(
    contribution: &ContributionOf<E>,
    beacon: &Beacon,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<&'static str>> {
    let mut random = match generator_of_beacon(&beacon.value, beacon.iterations_log, progress) {
        Err(spillproof_engine::Error::Invalid(_)) => {
            return Ok(Some(NOT_A_BEACON));
        }
        random => random?,
    };
    let secret: E::Scalar = random_element(&mut random);
    let s = random_point::<E::G1Config>(&mut random);
    let sx = (s * secret).into_affine();
    Ok(((s, sx) != (contribution.s, contribution.sx)).then_some(NOT_OF_ITS_BEACON))
}

/// A key against the initial one.
struct Check<'a, E: PairingCurve> {
    zkey: &'a Zkey<E>,
    initial: &'a InitialKey<E>,
}

impl<E: PairingCurve> Check<'_, E> {
    fn not_derived(&self, what: &'static str, offset: u64) -> spillproof_engine::Error {
        self.zkey.source.refuse(FormatError::NotDerived { what, offset })
    }

    fn header(&self) -> Result<()> {
        let (header, shape) = (&self.zkey.header, self.initial.shape());
        let offset = self.zkey.header_offset()?;
        let of_file = [header.signals(), header.public(), header.log_domain().into()];
        if of_file != [shape.signals, shape.public, shape.log_domain.into()] {
            return Err(self.not_derived("the numbers of the header", offset));
        }
        let (points, initial) = (&self.zkey.points, &self.initial.verifying);
        let g1 = [points.alpha1, points.beta1] == [initial.alpha1, initial.beta1];
        let g2 = [points.beta2, points.gamma2] == [initial.beta2, initial.gamma2];
        if !(g1 && g2) {
            return Err(self.not_derived("alpha, beta and gamma of the header", offset));
        }
        Ok(())
    }

    /// What contributions leave as it is.
    fn equal_parts(&self, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        let (layout, queries) = (&self.zkey.layout, &self.initial.queries);
        let all = Share::all(&self.zkey.shape());
        let coefficients = self.zkey.constraints(all, Placement::Disk, progress)?;
        if let Some(index) = first_other_coefficient(&coefficients, &self.initial.circuit.terms)? {
            return Err(self.not_derived(
                "the coefficients from the one",
                layout.coefficients.coefficient_offset(index),
            ));
        }
        drop(coefficients);
        let _step = step!(self.zkey.source.workspace, "points that stay");
        self.equal_points::<E::G1Config>(&layout.ic, &queries.c)?;
        self.equal_points::<E::G1Config>(&layout.a, &queries.a)?;
        self.equal_points::<E::G1Config>(&layout.b1, &queries.b_g1)?;
        self.equal_points::<E::G2Config>(&layout.b2, &queries.b_g2)
    }

    fn equal_points<P: Curve>(&self, range: &PointRange, initial: &Column<Point<P>>) -> Result<()> {
        let points = points_in_place::<P>(&self.zkey.source, range, [0, 0], Checked::Range);
        let chunk = points.sequential_chunk().min(initial.sequential_chunk());
        let budget = &points.workspace().budget;
        let tile = || budget.vec(chunk as usize, Point::<P>::INFINITY, "points being compared");
        let (mut here, mut there) = (tile()?, tile()?);
        let count = range.count;
        let regions = || {
            (0..count).step_by(chunk as usize).map(move |start| Region::Span {
                start,
                len: chunk.min(count - start),
            })
        };
        let (mut readers, mut first) = ((points.reader(regions(), 2)?, initial.reader(regions(), 2)?), 0);
        while let Some(region) = readers.0.next_into(&mut here)? {
            readers.1.next_into(&mut there)?;
            let len = region.len() as usize;
            if let Some(at) = (0..len).find(|&at| here[at] != there[at]) {
                return Err(self.not_derived(range.what, range.point_offset(first + at as u64)));
            }
            first += region.len();
        }
        Ok(())
    }

    /// C and H, which are over delta.
    fn divided_parts(&self) -> Result<()> {
        let (layout, initial) = (&self.zkey.layout, self.initial);
        let _step = step!(self.zkey.source.workspace, "points over delta");
        // The initial column of C begins with the points of IC.
        let lead = initial.queries.c.len() - layout.c.count;
        let weights = Weights::<16>::random(lead, initial.queries.c.len());
        self.divided_points(&layout.c, &initial.queries.c, &weights)?;
        let log_n = self.zkey.header.log_domain();
        let domain = Domain::<E::Scalar>::of_smallest_non_residue(log_n)?;
        let weights = ChallengeWeights {
            challenge: &Challenge::random(log_n, domain.omega),
            count: initial.h.len() as usize,
            weights: Challenge::lagrange_without_last,
        };
        self.divided_points(&layout.h, &initial.h, &weights)
    }

    /// Compares points with the last ones of an initial column, by sums with these weights.
    fn divided_points(
        &self,
        range: &PointRange,
        initial: &Column<Point<E::G1Config>>,
        weights: &dyn ForeignScalars<E::Scalar>,
    ) -> Result<()> {
        let (source, lead) = (&self.zkey.source, initial.len() - range.count);
        let points = points_in_place::<E::G1Config>(source, range, [lead, 0], Checked::Curve);
        subgroup::check::<E::G1Config>(source, &points, (range, lead))?;
        let sum = |points| -> Result<E::G1Affine> {
            let sums = msm::<E::G1Config>(points, &[Scalars::Foreign(weights)])?;
            Ok(sums.first().copied().unwrap_or_default().into_affine())
        };
        let (divided, initial) = (sum(&points)?, sum(initial)?);
        let in_g2 = [&self.zkey.points.delta2, &E::G2Affine::generator()];
        if !is_same_ratio::<E>([&initial, &divided], in_g2) {
            return Err(self.not_derived(range.what, range.offset));
        }
        Ok(())
    }
}

/// The coefficients of the left and the right matrix, one after the other.
struct Terms<F: KernelField> {
    values: LeasedVec<F>,
    reader: Reader<Coefficient>,
    tile: LeasedVec<Coefficient>,
    /// Those of the tile that were not given yet.
    rest: Range<usize>,
}

impl<F: KernelField> Terms<F> {
    fn new(constraints: &Constraints<F>) -> Result<Self> {
        let coefficients = constraints.coefficients();
        let budget = &coefficients.workspace().budget;
        let chunk = coefficients.sequential_chunk();
        let len = constraints.values().len();
        let mut values = budget.vec(len as usize, F::ZERO, "values of coefficients")?;
        constraints
            .values()
            .read(Region::Span { start: 0, len }, &mut values)?;
        Ok(Self {
            values,
            reader: coefficients.read_ascending(chunk)?,
            tile: budget.vec(chunk as usize, Coefficient::default(), "coefficients")?,
            rest: 0..0,
        })
    }

    /// Matrix, row, signal and value.
    fn next(&mut self) -> Result<Option<([u32; 3], F)>> {
        loop {
            for at in &mut self.rest {
                let term = self.tile[at];
                if term.matrix != MATRICES[2] {
                    let place = [term.matrix, term.row, term.signal];
                    return Ok(Some((place, self.values[term.value as usize])));
                }
            }
            match self.reader.next_into(&mut self.tile)? {
                None => return Ok(None),
                Some(region) => self.rest = 0..region.len() as usize,
            }
        }
    }
}

/// The index of the first coefficient in which two circuits differ.
fn first_other_coefficient<F: KernelField>(
    some: &Constraints<F>,
    other: &Constraints<F>,
) -> Result<Option<u64>> {
    let (mut some, mut other) = (Terms::new(some)?, Terms::new(other)?);
    for index in 0.. {
        match (some.next()?, other.next()?) {
            (None, None) => break,
            (some, other) if some == other => {}
            _ => return Ok(Some(index)),
        }
    }
    Ok(None)
}
