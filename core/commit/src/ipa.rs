//! Inner-product commitments over a column of n points between which no linear relation is known. There is no
//! trusted setup. A proof has 2 log2(n) + 1 points and two scalars.
//!
//! The opening is that of Bowe, Grigg and Hopwood, *Recursive Proof Composition without a Trusted Setup*
//! (2019), section 3, after Bootle, Cerulli, Chaidos, Groth and Petit, *Efficient Zero-Knowledge Arguments
//! for Arithmetic Circuits in the Discrete Log Setting* (2016), with the order of draws and of the transcript
//! that zcash's halo2 has. n = 2^k coefficients p, bases G, a point x:
//!
//! 1. A random polynomial s with s(x) = 0 hides p: p' = xi s + p - p(x), of which the value at x is 0.
//! 2. k rounds halve p', G and b, the powers of x. Round j sends L = <p'_hi, G_lo> + z <p'_hi, b_lo> U + l W
//!    and R likewise with both halves swapped, gets u, and goes on with p'_lo + p'_hi / u, G_lo + u G_hi,
//!    b_lo + u b_hi.
//! 3. The last p' and the blind of all go to the transcript.
//!
//! How it goes over the disk. b is never stored: after rounds with challenges u_1, ..., u_j its i-th entry is
//! x^i (1 + u_1 x^(n/2)) ... (1 + u_j x^(n/2^j)), so inner products with it are values of halves of p' at x.
//! Points are folded in every second round only, four parts to one with shared doublings: in between, sums
//! over points that were not folded are two sums each. That is some 2.7 n terms of sums and n multiples of
//! points in all. The last [`TAIL_POINTS`], or four frames if that is more, are folded in memory.
//!
//! Memory: that of one sum, or of [`spillproof_engine::stream::add_multiples`]; nothing that grows with n.
//! Disk: scratch of two polynomials and of a quarter of G.

use ark_ec::CurveGroup;
use ark_ec::short_weierstrass::{Affine, Projective};
use ark_ff::{AdditiveGroup, Field};

use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::budget::LeasedVec;
use spillproof_engine::column::{Column, Element, Placement, Region, Workspace, Writer};
use spillproof_engine::dry::Work;
use spillproof_engine::error::Invalid;
use spillproof_engine::stream::{
    LeasedMsm, Scalars, add_multiples, evaluate_all, leased_kernel, linear_combination, msm,
};
use spillproof_kernels::backend::Backend;
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::field::{CoordinateField, KernelField};
use spillproof_kernels::msm::MsmConfig;
use spillproof_kernels::points::{BLOCK_POINTS_MIN, Multiplier};
use spillproof_kernels::poly::evaluate_chunk_many;

/// From so many points and coefficients on, down to one, rounds are done in memory.
pub const TAIL_POINTS: u64 = 1 << 12;
/// Bytes of a chunk of random coefficients.
const RANDOM_CHUNK_BYTES: usize = 64 << 10;

/// The bases of commitments: `2^k` points in two bases, and two more points.
#[derive(Clone, Debug)]
pub struct Params<P: Curve> {
    /// For coefficients.
    pub g: Column<Point<P>>,
    /// For values on the domain of `2^k` points: the inverse group transform of `g`.
    pub g_lagrange: Column<Point<P>>,
    /// For blinds.
    pub w: Affine<P>,
    /// For inner products.
    pub u: Affine<P>,
}

/// The transcript and the random values of an opening.
pub trait Conversation<P: Curve> {
    /// An error of the transcript, or of the engine.
    type Error: From<Error>;

    /// The next random value.
    fn random(&mut self) -> P::ScalarField;
    /// Writes a point to the proof.
    ///
    /// # Errors
    /// The writer's; of a transcript that does not take the point at infinity.
    fn write_point(&mut self, point: &Affine<P>) -> Result<(), Self::Error>;
    /// Writes a scalar to the proof.
    ///
    /// # Errors
    /// The writer's.
    fn write_scalar(&mut self, scalar: P::ScalarField) -> Result<(), Self::Error>;
    /// The next challenge.
    fn challenge(&mut self) -> P::ScalarField;
}

/// Why an opening broke off.
#[derive(Debug)]
pub enum Broken {
    /// By an error of the engine.
    Engine(Error),
    /// By an error of the transcript.
    Transcript(std::io::Error),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl From<std::io::Error> for Broken {
    fn from(error: std::io::Error) -> Self {
        Self::Transcript(error)
    }
}

impl<P: Curve> Params<P> {
    /// Commitments `<p, G> + blind W` to polynomials by their coefficients, with one pass over the bases for
    /// as many as memory takes.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a polynomial longer than the bases, or another number of blinds; those of
    /// [`msm`].
    pub fn commit(
        &self,
        polynomials: &[Scalars<'_, P::ScalarField>],
        blinds: &[P::ScalarField],
    ) -> Result<Vec<Affine<P>>> {
        self.commit_over(&self.g, polynomials, blinds)
    }

    /// As [`Self::commit`], to polynomials by their values.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub fn commit_lagrange(
        &self,
        values: &[Scalars<'_, P::ScalarField>],
        blinds: &[P::ScalarField],
    ) -> Result<Vec<Affine<P>>> {
        self.commit_over(&self.g_lagrange, values, blinds)
    }

    fn commit_over(
        &self,
        bases: &Column<Point<P>>,
        vectors: &[Scalars<'_, P::ScalarField>],
        blinds: &[P::ScalarField],
    ) -> Result<Vec<Affine<P>>> {
        if blinds.len() != vectors.len() {
            return Err(Invalid::Length {
                what: "blinds of commitments".into(),
                given: blinds.len() as u64,
                expected: vectors.len() as u64,
            }
            .into());
        }
        let mut sums = msm::<P>(bases, vectors)?;
        for (sum, blind) in sums.iter_mut().zip(blinds) {
            *sum += self.w * blind;
        }
        Ok(Projective::normalize_batch(&sums))
    }

    /// Proves the value at `point` of `polynomial`, which has as many coefficients as there are bases, and
    /// was committed to with `blind`. The transcript has absorbed commitment, point and value.
    ///
    /// # Errors
    /// [`Invalid::Length`] for another number of coefficients, [`Invalid::PowerOfTwo`] for bases that can't
    /// be halved; [`Invalid::ZeroChallenge`] if a challenge is zero; those of the conversation, of sums, and
    /// of the disk.
    pub fn open<C: Conversation<P> + ?Sized>(
        &self,
        polynomial: &Column<P::ScalarField>,
        blind: P::ScalarField,
        point: P::ScalarField,
        conversation: &mut C,
    ) -> Result<(), C::Error> {
        let n = self.g.len();
        if !n.is_power_of_two() {
            let what = "bases of commitments";
            return Err(Error::from(Invalid::PowerOfTwo {
                what,
                given: n,
                log_limit: 63,
            })
            .into());
        }
        if polynomial.len() != n {
            return Err(Error::from(Invalid::Length {
                what: "coefficients of a polynomial that is opened".into(),
                given: polynomial.len(),
                expected: n,
            })
            .into());
        }
        let workspace = self.g.workspace();
        let hidden = self.hide(polynomial, blind, point, conversation)?;
        let mut rounds = Rounds {
            params: self,
            point,
            inner_product_factor: conversation.challenge(),
            of_powers: P::ScalarField::ONE,
            blind: hidden.blind,
        };
        let mut left = Left {
            points: self.g.clone(),
            coefficients: hidden.polynomial,
        };
        while left.has_quarters() {
            left = rounds.two(&left, conversation)?;
        }
        let last = match workspace.is_dry() {
            true => rounds.rehearse_tail(&left)?,
            false => {
                let mut tail = workspace.run(|| Tail::new(&left))?;
                drop(left);
                rounds.tail(workspace, &mut tail, conversation)?;
                tail.coefficients[0]
            }
        };
        conversation.write_scalar(last)?;
        conversation.write_scalar(rounds.blind)
    }

    /// `xi s + p - p(x)` for a random s with `s(x) = 0`, and its blind.
    fn hide<C: Conversation<P> + ?Sized>(
        &self,
        polynomial: &Column<P::ScalarField>,
        blind: P::ScalarField,
        point: P::ScalarField,
        conversation: &mut C,
    ) -> Result<Hidden<P>, C::Error> {
        let workspace = polynomial.workspace();
        let drawn = random_column(workspace, polynomial.len(), || conversation.random())?;
        // s is what was drawn, less its value at x.
        let excess = value_at(point, &drawn)?;
        let s_blind = conversation.random();
        let sums = msm::<P>(&self.g, &[Scalars::Column(&drawn)])?;
        let first = match workspace.is_dry() {
            true => Affine::identity(),
            false => {
                let mut first = [Point::<P>::INFINITY];
                self.g.read(Region::Span { start: 0, len: 1 }, &mut first)?;
                first[0].to_affine::<P>()
            }
        };
        let commitment = sums.iter().sum::<Projective<P>>() - first * excess + self.w * s_blind;
        conversation.write_point(&commitment.into_affine())?;

        let xi = conversation.challenge();
        let value = value_at(point, polynomial)?;
        let mut one = Writer::scratch(workspace, "one", 1, Placement::Memory)?;
        one.push(&[P::ScalarField::ONE])?;
        let one = one.finish()?;
        let terms = [
            (P::ScalarField::ONE, polynomial),
            (xi, &drawn),
            (-(xi * excess + value), &one),
        ];
        Ok(Hidden {
            polynomial: linear_combination(&terms, Placement::Auto)?,
            blind: s_blind * xi + blind,
        })
    }
}

/// A column of values that are drawn one after the other.
fn random_column<F: KernelField + Element>(
    workspace: &Workspace,
    len: u64,
    mut draw: impl FnMut() -> F,
) -> Result<Column<F>> {
    let mut writer = Writer::scratch(workspace, "random polynomial", len, Placement::Auto)?;
    let chunk = RANDOM_CHUNK_BYTES / F::BYTES;
    let mut values = workspace.budget.vec(chunk, F::ZERO, "random polynomial")?;
    if !workspace.is_dry() {
        let mut left = len as usize;
        while left > 0 {
            let values = &mut values[..left.min(chunk)];
            values.fill_with(&mut draw);
            writer.push(values)?;
            left -= values.len();
        }
    }
    writer.finish()
}

/// A polynomial that says nothing of the one that is opened.
struct Hidden<P: Curve> {
    polynomial: Column<P::ScalarField>,
    blind: P::ScalarField,
}

/// What rounds have left.
struct Left<P: Curve> {
    points: Column<Point<P>>,
    coefficients: Column<P::ScalarField>,
}

impl<P: Curve> Left<P> {
    /// Else it is folded in memory.
    fn has_quarters(&self) -> bool {
        let frame = self
            .points
            .frame_elements()
            .max(self.coefficients.frame_elements());
        self.points.len() > TAIL_POINTS && self.points.len() / 4 >= frame
    }

    /// So many quarters of the points.
    fn points(&self, first: u64, quarters: u64) -> Result<Column<Point<P>>> {
        let quarter = self.points.len() / 4;
        self.points.part(first * quarter, quarters * quarter)
    }
}

/// What goes on from round to round.
struct Rounds<'a, P: Curve> {
    params: &'a Params<P>,
    point: P::ScalarField,
    /// z.
    inner_product_factor: P::ScalarField,
    /// What the powers of the point were multiplied by.
    of_powers: P::ScalarField,
    blind: P::ScalarField,
}

/// A round's challenge, and its inverse.
struct Challenge<F> {
    u: F,
    inverse: F,
}

impl<P: Curve> Rounds<'_, P> {
    /// Sends L and R of a round over halves of `half` coefficients: sums over points, and values at the
    /// point, of the low half of the coefficients and of the high one.
    fn send<C: Conversation<P> + ?Sized>(
        &mut self,
        half: u64,
        [left, right]: [Projective<P>; 2],
        [low_value, high_value]: [P::ScalarField; 2],
        conversation: &mut C,
    ) -> Result<Challenge<P::ScalarField>, C::Error> {
        let power = self.point.pow([half]);
        let blinds = [conversation.random(), conversation.random()];
        let values = [self.of_powers * high_value, self.of_powers * power * low_value];
        let mut sums = [left, right];
        for ((sum, value), blind) in sums.iter_mut().zip(values).zip(blinds) {
            *sum += self.params.u * (value * self.inner_product_factor) + self.params.w * blind;
        }
        for point in Projective::normalize_batch(&sums) {
            conversation.write_point(&point)?;
        }
        let u = conversation.challenge();
        let inverse = u.inverse().ok_or_else(|| Error::from(Invalid::ZeroChallenge))?;
        self.of_powers *= P::ScalarField::ONE + u * power;
        self.blind += blinds[0] * inverse + blinds[1] * u;
        Ok(Challenge { u, inverse })
    }

    /// Two rounds, after which a quarter is left.
    fn two<C: Conversation<P> + ?Sized>(
        &mut self,
        parts: &Left<P>,
        conversation: &mut C,
    ) -> Result<Left<P>, C::Error> {
        let quarter = parts.points.len() / 4;
        let [low, high] = halves(&parts.coefficients)?;
        let left = sum(&parts.points(0, 2)?, &high)?;
        let right = sum(&parts.points(2, 2)?, &low)?;
        let first = self.send(
            2 * quarter,
            [left, right],
            values_at(self.point, &low, &high)?,
            conversation,
        )?;

        let [low, high] = halves(&folded(&low, &high, first.inverse)?)?;
        // The points of this round are g[i] + u g[i + 2 quarters].
        let left = sum(&parts.points(0, 1)?, &high)? + sum(&parts.points(2, 1)?, &high)? * first.u;
        let right = sum(&parts.points(1, 1)?, &low)? + sum(&parts.points(3, 1)?, &low)? * first.u;
        let second = self.send(
            quarter,
            [left, right],
            values_at(self.point, &low, &high)?,
            conversation,
        )?;

        let coefficients = folded(&low, &high, second.inverse)?;
        let terms = [
            (second.u, &parts.points(1, 1)?),
            (first.u, &parts.points(2, 1)?),
            (first.u * second.u, &parts.points(3, 1)?),
        ];
        Ok(Left {
            points: add_multiples::<P>(&parts.points(0, 1)?, &terms, Placement::Auto)?,
            coefficients,
        })
    }

    /// All rounds that are left.
    fn tail<C: Conversation<P> + ?Sized>(
        &mut self,
        workspace: &Workspace,
        tail: &mut Tail<P>,
        conversation: &mut C,
    ) -> Result<(), C::Error> {
        while tail.len > 1 {
            let half = tail.len / 2;
            let (sums, values) = workspace.run(|| Ok::<_, Error>(tail.round(self.point)))?;
            let Challenge { u, inverse } = self.send(half as u64, sums, values, conversation)?;
            workspace.run(|| {
                tail.fold(u, inverse);
                Ok::<_, Error>(())
            })?;
        }
        Ok(())
    }

    fn rehearse_tail(&self, left: &Left<P>) -> Result<P::ScalarField> {
        let Left { points, coefficients } = left;
        let workspace = points.workspace();
        let config = Tail::<P>::config(points.len());
        let _held = workspace.hold(Tail::<P>::bytes(points.len()), "opening")?;
        for bytes in [reader_bytes(points), reader_bytes(coefficients)] {
            drop(workspace.hold(bytes, "column reader")?);
        }
        let kernel_bytes = config.workspace_bytes::<P>() + Tail::<P>::multiplier_bytes();
        let _kernel = workspace.hold(kernel_bytes, "opening")?;
        workspace.passed(0, Work::additions(2.0 * config.cost::<P>(points.len())));
        Ok(P::ScalarField::ZERO)
    }
}

fn halves<F: Element>(column: &Column<F>) -> Result<[Column<F>; 2]> {
    let half = column.len() / 2;
    Ok([column.part(0, half)?, column.part(half, half)?])
}

/// `low + factor * high`.
fn folded<F: KernelField>(low: &Column<F>, high: &Column<F>, factor: F) -> Result<Column<F>> {
    linear_combination(&[(F::ONE, low), (factor, high)], Placement::Auto)
}

fn sum<P: Curve>(points: &Column<Point<P>>, scalars: &Column<P::ScalarField>) -> Result<Projective<P>> {
    Ok(msm::<P>(points, &[Scalars::Column(scalars)])?.iter().sum())
}

fn value_at<F: KernelField + Element>(point: F, coefficients: &Column<F>) -> Result<F> {
    let values = evaluate_all(&[(coefficients, vec![point])])?;
    Ok(values.iter().flatten().copied().next().unwrap_or(F::ZERO))
}

/// The values of both at a point, side by side.
fn values_at<F: KernelField + Element>(point: F, low: &Column<F>, high: &Column<F>) -> Result<[F; 2]> {
    let values = evaluate_all(&[(low, vec![point]), (high, vec![point])])?;
    let mut values = values.iter().flatten().copied();
    let mut next = || values.next().unwrap_or(F::ZERO);
    Ok([next(), next()])
}

/// A whole column, frame by frame, into as much memory.
fn read_all<E: Element>(column: &Column<E>, out: &mut [E]) -> Result<()> {
    let mut reader = column.read_ascending(column.frame_elements())?;
    let mut done = 0;
    while let Some(region) = reader.next_into(&mut out[done..])? {
        done += region.len() as usize;
    }
    Ok(())
}

/// What [`read_all`] leases.
fn reader_bytes<E: Element>(column: &Column<E>) -> u64 {
    column.reader_bytes(column.frame_elements(), 2)
}

/// Points and coefficients of the last rounds, in memory.
struct Tail<P: Curve> {
    points: LeasedVec<Point<P>>,
    coefficients: LeasedVec<P::ScalarField>,
    len: usize,
    kernel: LeasedMsm<P>,
    multiplier: Multiplier<P>,
    _leases: [spillproof_engine::budget::Lease; 2],
}

impl<P: Curve> Tail<P> {
    fn config(len: u64) -> MsmConfig {
        let threads = rayon::current_num_threads();
        let block_points = (len / 2).clamp(64, 1 << 10) as usize;
        let window_bits = (block_points.ilog2().saturating_sub(2)).clamp(3, 8);
        MsmConfig::new(window_bits, block_points, 1, threads).in_chunks(2)
    }

    fn multiplier_bytes() -> u64 {
        Multiplier::<P>::bytes_for_combinations(rayon::current_num_threads(), BLOCK_POINTS_MIN, 1)
    }

    /// Of points and coefficients.
    fn bytes(len: u64) -> u64 {
        len * (Point::<P>::BYTES + <P::ScalarField as Element>::BYTES) as u64
    }

    fn new(left: &Left<P>) -> Result<Self> {
        let Left { points, coefficients } = left;
        let (budget, len) = (&points.workspace().budget, points.len());
        let mut in_memory = (
            budget.vec(len as usize, Point::<P>::INFINITY, "opening")?,
            budget.vec(len as usize, P::ScalarField::ZERO, "opening")?,
        );
        // Before the kernel's memory is taken: readers lease some too.
        read_all(points, &mut in_memory.0)?;
        read_all(coefficients, &mut in_memory.1)?;
        let (kernel_bytes, kernel) = leased_kernel(Self::config(len), budget)?;
        Ok(Self {
            points: in_memory.0,
            coefficients: in_memory.1,
            len: len as usize,
            kernel,
            multiplier: Multiplier::for_combinations(Backend::detect(), BLOCK_POINTS_MIN, 1),
            _leases: [kernel_bytes, budget.lease(Self::multiplier_bytes(), "opening")?],
        })
    }

    /// Both sums of a round, and the values of both halves.
    fn round(&mut self, point: P::ScalarField) -> ([Projective<P>; 2], [P::ScalarField; 2]) {
        let half = self.len / 2;
        let (low, high) = self.coefficients[..self.len].split_at(half);
        let (low_points, high_points) = self.points[..self.len].split_at(half);
        let mut sum = |points: &[Point<P>], scalars: &[P::ScalarField]| -> Projective<P> {
            self.kernel.update(points, &[scalars]);
            self.kernel.drain().iter().sum()
        };
        let sums = [sum(low_points, high), sum(high_points, low)];
        let value = |coefficients: &[P::ScalarField]| {
            let mut value = [P::ScalarField::ZERO];
            evaluate_chunk_many(coefficients, &[point], &mut value);
            value[0]
        };
        (sums, [value(low), value(high)])
    }

    fn fold(&mut self, u: P::ScalarField, inverse: P::ScalarField) {
        let half = self.len / 2;
        let (low, high) = self.coefficients[..self.len].split_at_mut(half);
        for (low, high) in low.iter_mut().zip(high) {
            *low = low.plus(&high.times(&inverse));
        }
        let (low, high) = self.points[..self.len].split_at_mut(half);
        self.multiplier.combine(low, &[high], &[u]);
        self.len = half;
    }
}
