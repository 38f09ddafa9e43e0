//! Keys on disk.

use ark_ec::pairing::PairingOutput;
use ark_ec::short_weierstrass::Affine;
use spillproof_format::geometry::DIGEST_BYTES;
use spillproof_format::groth16_dealt::DEALT_BYTES_MAX;
use spillproof_format::srs::frame_bytes;
use spillproof_format::{FormatError, GroupId, PointFault, hex};

use super::dealt::share_frame_bytes;
use super::{Coefficient, Constraints, G1Point, G2Point, KeyShare, PairingCurve, Place, Shape};
use spillproof_engine::Result;
use spillproof_engine::budget::PAGE_BYTES;
use spillproof_engine::column::{Column, Draft, Element, Placement, SCRATCH_FRAME_BYTES, Workspace, Writer};
use spillproof_engine::error::Invalid;
use spillproof_engine::plan::{Plan, Rates};
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;

/// The part of a key that verifies.
pub struct VerifyingKey<E: PairingCurve> {
    /// alpha in the first group.
    pub alpha_g1: Affine<E::G1Config>,
    /// beta in the second group.
    pub beta_g2: Affine<E::G2Config>,
    /// gamma in the second group.
    pub gamma_g2: Affine<E::G2Config>,
    /// delta in the second group.
    pub delta_g2: Affine<E::G2Config>,
    /// A point for the constant one, and one for each public signal.
    pub ic: Column<G1Point<E>>,
}

/// A key that proves: points and coefficients on disk.
pub struct ProvingKey<E: PairingCurve> {
    /// The part that verifies.
    pub verifying: VerifyingKey<E>,
    /// beta in the first group.
    pub beta_g1: Affine<E::G1Config>,
    /// delta in the first group.
    pub delta_g1: Affine<E::G1Config>,
    /// The left linear combinations at tau: a point for each signal.
    pub a: Column<G1Point<E>>,
    /// The right ones, in the first group: a point for each signal.
    pub b_g1: Column<G1Point<E>>,
    /// The right ones, in the second group: a point for each signal.
    pub b_g2: Column<G2Point<E>>,
    /// A point for each signal, over delta; infinity for the constant one and the public signals.
    pub c: Column<G1Point<E>>,
    /// A point for each row: the basis [`Self::quotient`], over delta.
    pub h: Column<G1Point<E>>,
    /// The coefficients of both matrices.
    pub constraints: Constraints<E::Scalar>,
    /// The rows' domain, and its coset. The tools that make keys do not agree on the roots of BLS12-381.
    pub domain: Domain<E::Scalar>,
    /// The polynomials of [`Self::h`].
    pub quotient: QuotientBasis,
    /// The rank that coefficients, and perhaps points, are those of; `None` for a whole key.
    pub share: Option<KeyShare>,
}

/// The basis that a key has the quotient's points in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotientBasis {
    /// The Lagrange basis of the coset of the domain, where the vanishing polynomial is a constant, which the
    /// points contain: keys of circom's tools.
    Coset,
    /// Powers of X times the vanishing polynomial: keys of libsnark and arkworks. The quotient has one
    /// coefficient less than there are rows; the last point is not used.
    Monomial,
}

/// What the columns of a key are like, beside its sizes.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub quotient: QuotientBasis,
    /// Of a container, whose frames are longer than those of scratch files, or which is a share.
    pub frame_bytes: Option<usize>,
    /// Whether a rank has its own points only.
    pub is_dealt: bool,
}

impl Layout {
    /// That of circom's tools, in scratch files or where these tools have written it.
    pub const CIRCOM: Self = Self {
        quotient: QuotientBasis::Coset,
        frame_bytes: None,
        is_dealt: false,
    };

    /// That of a container over a curve.
    pub fn of_container<E: PairingCurve>() -> Self {
        let curve = GroupId::of::<E::G1Config>().map(|group| group.curve);
        Self {
            frame_bytes: curve.map(|curve| frame_bytes(curve) as usize),
            ..Self::CIRCOM
        }
    }

    /// That of a rank's share of a dealt key over a curve.
    pub fn of_share<E: PairingCurve>() -> Self {
        let curve = GroupId::of::<E::G1Config>().map(|group| group.curve);
        Self {
            frame_bytes: curve.map(|curve| share_frame_bytes(curve) as usize),
            is_dealt: true,
            ..Self::CIRCOM
        }
    }

    /// That of a key.
    pub fn of<E: PairingCurve>(key: &ProvingKey<E>) -> Self {
        let coefficients = key.constraints.coefficients();
        let frame_bytes = coefficients.frame_elements() as usize * Coefficient::BYTES;
        Self {
            quotient: key.quotient,
            is_dealt: key.has_own_points(),
            frame_bytes: (key.has_own_points() || frame_bytes != SCRATCH_FRAME_BYTES).then_some(frame_bytes),
        }
    }

    /// What an open container holds of the budget for the digests of its frames; of a dealt key, what its two do.
    pub fn digests_bytes<E: PairingCurve>(&self, shape: &Shape, place: Option<&Place<'_>>) -> u64 {
        let Some(frame_bytes) = self.frame_bytes else {
            return 0;
        };
        let (g1, g2) = (G1Point::<E>::BYTES as u64, G2Point::<E>::BYTES as u64);
        let common = [(3, g1), (3, g2), (shape.public + 1, g1)];
        let share = place.filter(|_| self.is_dealt);
        let dealt = share.map_or(0, |_| DEALT_BYTES_MAX);
        let [signals, points_of_h] = points(shape, share);
        let columns = [
            (signals, g1),
            (signals, g1),
            (signals, g1),
            (points_of_h, g1),
            (signals, g2),
            (shape.values, E::Scalar::BYTES as u64),
            (shape.coefficients, Coefficient::BYTES as u64),
        ];
        let frames = |(len, bytes): (u64, u64)| (len * bytes).div_ceil(frame_bytes as u64);
        let common: u64 = common.into_iter().map(frames).sum::<u64>() + frames((dealt, 1));
        let columns: u64 = columns.into_iter().map(frames).sum();
        let pages = |frames: u64| (frames * DIGEST_BYTES).next_multiple_of(PAGE_BYTES as u64);
        match share {
            None => (common + columns) * DIGEST_BYTES,
            Some(_) => pages(common) + pages(columns),
        }
    }
}

/// Points of signals and of `h`, of a whole key or of a rank's share.
fn points(shape: &Shape, share: Option<&Place<'_>>) -> [u64; 2] {
    match share {
        None => [shape.signals, 1 << shape.log_domain],
        Some(place) => {
            let share = place.shares.share_shape(place.ranks.rank());
            [share.signals, share.points_of_h]
        }
    }
}

/// Points that one thread checks at a time.
const JOB_POINTS: usize = 256;

/// The powers of a root of unity, and a coset of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain<F> {
    /// A root of unity of the order of the domain.
    pub omega: F,
    /// What begins the coset: a root of `omega`, where the field has one.
    pub shift: F,
}

impl<E: PairingCurve> VerifyingKey<E> {
    /// A key whose points are in memory. `others` are beta, gamma and delta, in the second group.
    ///
    /// # Errors
    /// [`spillproof_engine::Error::OverBudget`].
    pub fn in_memory(
        workspace: &Workspace,
        alpha_g1: Affine<E::G1Config>,
        others: [Affine<E::G2Config>; 3],
        ic: &[Affine<E::G1Config>],
    ) -> Result<Self> {
        E::in_memory(workspace, alpha_g1, others, ic)
    }

    /// Whether gamma and delta are equal, as in a key that no one has contributed to: whoever knows the key
    /// can forge proofs for any public signals.
    pub fn is_without_contribution(&self) -> bool {
        self.gamma_g2 == self.delta_g2
    }

    /// The pairing of alpha and beta, which is the same for all proofs.
    pub fn alpha_beta(&self) -> PairingOutput<E> {
        E::alpha_beta(self)
    }

    /// The points of [`Self::ic`].
    ///
    /// # Errors
    /// What reading columns may give.
    pub fn ic_points(&self) -> Result<Vec<Affine<E::G1Config>>> {
        E::ic_points(self)
    }
}

pub(crate) fn alpha_beta<E: PairingCurve>(key: &VerifyingKey<E>) -> PairingOutput<E> {
    E::pairing(key.alpha_g1, key.beta_g2)
}

impl<E: PairingCurve> ProvingKey<E> {
    /// The key's sizes.
    ///
    /// # Errors
    /// [`Invalid::Length`] for columns that do not belong together, [`Invalid::PowerOfTwo`] for a domain that
    /// is none.
    pub fn shape(&self) -> Result<Shape> {
        E::shape(self)
    }

    /// That all points are on their curves. Points of a container were checked when it was made; those of a
    /// `.zkey` file are read where they are, and the sum over points off the curve is a proof that does not
    /// verify.
    ///
    /// # Errors
    /// [`spillproof_engine::Error::Format`] with the first that is not; what reading columns may give.
    pub fn check_points(&self) -> Result<()> {
        E::check_points(self)
    }

    /// A witness for a dry key in its workspace.
    ///
    /// # Errors
    /// [`Invalid::NotADryRun`] in any other workspace.
    pub(super) fn dry_witness(&self, workspace: &Workspace) -> Result<Column<E::Scalar>> {
        let signals = self
            .share
            .as_ref()
            .map_or(self.a.len(), |share| share.whole().signals);
        Draft::scratch(workspace, "witness", signals, Placement::Disk)?.finish_unwritten()
    }

    /// What a proof with this key will take.
    ///
    /// # Errors
    /// [`spillproof_engine::Error::BudgetTooSmall`] with the smallest budget that works; those of
    /// [`Self::shape`].
    pub fn plan(&self, budget_bytes: u64, threads: usize, rates: &Rates) -> Result<Plan> {
        E::plan_with(self, budget_bytes, threads, rates)
    }

    /// A key of this shape in a dry workspace.
    ///
    /// # Errors
    /// [`Invalid::NotADryRun`] in any other workspace; [`Invalid::PowerOfTwo`] for a domain that the field
    /// does not have.
    pub(super) fn dry(workspace: &Workspace, shape: &Shape, layout: Layout) -> Result<Self> {
        Self::dry_of_rank(workspace, (shape, layout), None)
    }

    /// The same for a rank, whose coefficients the shape counts. In a dealt layout its points are the rank's.
    ///
    /// # Errors
    /// As [`Self::dry`].
    pub(super) fn dry_of_rank(
        workspace: &Workspace,
        (shape, layout): (&Shape, Layout),
        place: Option<&Place<'_>>,
    ) -> Result<Self> {
        let Layout {
            quotient,
            frame_bytes,
            is_dealt,
        } = layout;
        let dealt = place.filter(|_| is_dealt);
        let [signals, points_of_h] = points(shape, dealt);
        let domain = Domain::of_smallest_non_residue(shape.log_domain)?;
        let frames = (workspace, frame_bytes);
        fn column<T: Element>(
            (workspace, frame_bytes): (&Workspace, Option<usize>),
            what: &str,
            len: u64,
        ) -> Result<Column<T>> {
            let draft = match frame_bytes {
                None => Draft::scratch(workspace, what, len, Placement::Disk)?,
                Some(bytes) => Draft::scratch_with_frames(workspace, what, len, Placement::Disk, bytes)?,
            };
            draft.finish_unwritten()
        }
        let g1 = |what, len| column::<G1Point<E>>(frames, what, len);
        Ok(Self {
            verifying: VerifyingKey {
                alpha_g1: Affine::identity(),
                beta_g2: Affine::identity(),
                gamma_g2: Affine::identity(),
                delta_g2: Affine::identity(),
                ic: g1("ic", shape.public + 1)?,
            },
            beta_g1: Affine::identity(),
            delta_g1: Affine::identity(),
            a: g1("a", signals)?,
            b_g1: g1("b_g1", signals)?,
            b_g2: column::<G2Point<E>>(frames, "b_g2", signals)?,
            c: g1("c", signals)?,
            h: g1("h", points_of_h)?,
            constraints: Constraints::new(
                column(frames, "values of coefficients", shape.values)?,
                column(frames, "coefficients", shape.coefficients)?,
            ),
            domain,
            quotient,
            share: dealt.map(|place| KeyShare::of_points(place.shares.clone(), place.ranks.rank(), *shape)),
        })
    }
}

pub(crate) fn shape<E: PairingCurve>(key: &ProvingKey<E>) -> Result<Shape> {
    let share = key.share.as_ref().filter(|share| share.has_own_points());
    let [signals, points_of_h] = share.map_or([key.a.len(), key.h.len()], KeyShare::points);
    let domain = share.map_or(points_of_h, |share| 1 << share.whole().log_domain);
    let log_limit = <E::Scalar as ark_ff::FftField>::TWO_ADICITY;
    if !domain.is_power_of_two() || domain.ilog2() > log_limit {
        return Err(Invalid::PowerOfTwo {
            what: "points of `h` of a key",
            given: domain,
            log_limit,
        }
        .into());
    }
    let lengths = [
        ("a", key.a.len(), signals),
        ("b_g1", key.b_g1.len(), signals),
        ("b_g2", key.b_g2.len(), signals),
        ("c", key.c.len(), signals),
        ("h", key.h.len(), points_of_h),
    ];
    for (column, given, expected) in lengths {
        if given != expected {
            return Err(Invalid::Length {
                what: format!("points of `{column}` of a key"),
                given,
                expected,
            }
            .into());
        }
    }
    let signals = share.map_or(signals, |share| share.whole().signals);
    let public = key.verifying.ic.len().checked_sub(1);
    let Some(public) = public.filter(|public| *public < signals) else {
        return Err(Invalid::OutOfRange {
            what: "points of `ic` of a key".into(),
            start: 1,
            end: key.verifying.ic.len(),
            len: signals,
        }
        .into());
    };
    Ok(Shape {
        signals,
        public,
        log_domain: domain.ilog2(),
        values: key.constraints.values().len(),
        coefficients: key.constraints.len(),
    })
}

pub(crate) fn check_points<E: PairingCurve>(key: &ProvingKey<E>) -> Result<()> {
    let g1 = [
        ("IC", &key.verifying.ic),
        ("A", &key.a),
        ("B1", &key.b_g1),
        ("C", &key.c),
        ("H", &key.h),
    ];
    for (name, points) in g1 {
        check_on_curve::<E::G1Config>(name, points)?;
    }
    check_on_curve::<E::G2Config>("B2", &key.b_g2)
}

pub(crate) fn in_memory<E: PairingCurve>(
    workspace: &Workspace,
    alpha_g1: Affine<E::G1Config>,
    [beta_g2, gamma_g2, delta_g2]: [Affine<E::G2Config>; 3],
    ic: &[Affine<E::G1Config>],
) -> Result<VerifyingKey<E>> {
    let ic: Vec<_> = ic.iter().map(G1Point::<E>::from_affine::<E::G1Config>).collect();
    let mut writer = Writer::scratch(workspace, "IC", ic.len() as u64, Placement::Memory)?;
    writer.push(&ic)?;
    Ok(VerifyingKey {
        alpha_g1,
        beta_g2,
        gamma_g2,
        delta_g2,
        ic: writer.finish()?,
    })
}

pub(crate) fn ic_points<E: PairingCurve>(key: &VerifyingKey<E>) -> Result<Vec<Affine<E::G1Config>>> {
    let ic = key.ic.to_vec()?;
    Ok(ic.iter().map(|point| point.to_affine::<E::G1Config>()).collect())
}

/// Refuses points off the curve.
fn check_on_curve<P: Curve>(name: &'static str, points: &Column<Point<P>>) -> Result<()> {
    let chunk = points.sequential_chunk();
    let budget = &points.workspace().budget;
    let tile = chunk.min(points.len()) as usize;
    let mut tile = budget.vec(tile, Point::<P>::INFINITY, "points being checked")?;
    let mut reader = points.read_ascending(chunk)?;
    let mut first = 0;
    while let Some(region) = reader.next_into(&mut tile)? {
        let tile = &tile[..region.len() as usize];
        let outside = |(job, points): (usize, &[Point<P>])| {
            let at = points.iter().position(|point| !point.is_on_curve::<P>())?;
            Some(job * JOB_POINTS + at)
        };
        let jobs = tile.chunks(JOB_POINTS).enumerate().parallel();
        if let Some(at) = jobs.find_map_first(outside) {
            let mut bytes = vec![0; Point::<P>::BYTES];
            tile[at].encode(&mut bytes);
            let index = first + at as u64;
            return Err(spillproof_engine::Error::Format {
                file: points.name().into(),
                source: FormatError::Point {
                    what: name,
                    index,
                    offset: points.file_offset(index),
                    fault: PointFault::NotOnCurve,
                    value: hex(&bytes),
                },
            });
        }
        first += region.len();
    }
    Ok(())
}

impl<F: KernelField> Domain<F> {
    /// The domain of `2^log_n` rows and its coset as circom's tools choose them: roots are powers of the
    /// smallest number that is no square; the coset begins with the root of twice the order, or, where the
    /// field has no such root, with the number's square.
    ///
    /// # Errors
    /// [`Invalid::PowerOfTwo`] for a domain that the field does not have.
    pub fn of_smallest_non_residue(log_n: u32) -> Result<Self> {
        let Some(above) = F::TWO_ADICITY.checked_sub(log_n) else {
            return Err(Invalid::PowerOfTwo {
                what: "rows of a domain",
                given: 1u64.checked_shl(log_n).unwrap_or(u64::MAX),
                log_limit: F::TWO_ADICITY,
            }
            .into());
        };
        let mut non_residue = F::from(2u64);
        while !non_residue.legendre().is_qnr() {
            non_residue += F::ONE;
        }
        let root = non_residue.pow(F::TRACE);
        let of_order_below_the_largest = |logs: u32| root.pow([1u64 << logs]);
        Ok(Self {
            omega: of_order_below_the_largest(above),
            shift: match above {
                0 => non_residue.square(),
                above => of_order_below_the_largest(above - 1),
            },
        })
    }
}
