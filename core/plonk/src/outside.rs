//! What a proof talks to: its transcript, its source of randomness, and its commitment scheme. A drop-in
//! implements them over the types of its fork; a plan brings ones that compute nothing.

use std::io;

use spillproof_commit::Basis;
use spillproof_engine::column::Column;
use spillproof_kernels::curve::Curve;
use spillproof_kernels::field::KernelField;

use crate::curve::{Config, PointOf, Scalar, ScalarOf};
use crate::error::Result;
use crate::openings::Opening;

/// A transcript that a proof is written to.
pub trait Transcript<C: Curve = Config> {
    /// Writes a point to the proof.
    ///
    /// # Errors
    /// The writer's; of a transcript that does not take the point at infinity.
    fn write_point(&mut self, point: &PointOf<C>) -> io::Result<()>;
    /// Writes a scalar to the proof.
    ///
    /// # Errors
    /// The writer's.
    fn write_scalar(&mut self, scalar: ScalarOf<C>) -> io::Result<()>;
    /// Absorbs a point that the verifier knows.
    ///
    /// # Errors
    /// As [`Self::write_point`].
    fn common_point(&mut self, point: &PointOf<C>) -> io::Result<()>;
    /// Absorbs a scalar that the verifier knows.
    ///
    /// # Errors
    /// As [`Self::write_scalar`].
    fn common_scalar(&mut self, scalar: ScalarOf<C>) -> io::Result<()>;
    /// The next challenge.
    fn challenge(&mut self) -> ScalarOf<C>;
}

/// Where random values come from. The order of draws is the protocol's.
pub trait Randomness<F = Scalar> {
    /// The next value of the caller's generator.
    fn scalar(&mut self) -> F;
    /// How the vanishing argument's random polynomial of so many coefficients is made. What is drawn for it
    /// from the caller's generator is drawn now, but for [`RandomPolynomial::Scalars`].
    fn random_polynomial(&mut self, _coefficients: u64) -> RandomPolynomial<F> {
        RandomPolynomial::Scalars
    }
}

/// How the coefficients of a random polynomial are drawn.
#[derive(Clone, Debug)]
pub enum RandomPolynomial<F = Scalar> {
    /// Each is the next value of the caller's generator, in order.
    Scalars,
    /// Any thread draws any of them, from a generator that it has.
    OnAnyThread(fn(&mut [F])),
    /// They are cut in as many chunks as there are seeds, of which the first ones may be longer by one. Each
    /// chunk is drawn in order from a generator with its seed.
    Chunks {
        /// From the caller's generator.
        seeds: Vec<Seed>,
        /// What draws from the generator with a seed.
        generator: fn(&Seed) -> Box<Chunk<F>>,
    },
}

/// The seed of a generator.
pub type Seed = [u8; 32];

/// Draws the next coefficients of a chunk.
pub type Chunk<F> = dyn FnMut(&mut [F]);

/// A column that is committed to, with its blind.
#[derive(Clone, Debug)]
pub struct Blinded<F = Scalar> {
    /// Values or coefficients.
    pub column: Column<F>,
    /// The blind.
    pub blind: F,
}

impl<F: KernelField> Blinded<F> {
    /// A column that is committed to without hiding it: halo2 then takes 1 for the blind.
    pub fn unhidden(column: Column<F>) -> Self {
        let blind = F::ONE;
        Self { column, blind }
    }
}

/// All that a proof talks to.
pub trait Outside<C: Curve = Config>: Randomness<ScalarOf<C>> {
    /// The transcript.
    fn transcript(&mut self) -> &mut dyn Transcript<C>;
    /// Commitments to columns of values, or to polynomials by their coefficients.
    ///
    /// # Errors
    /// Where the columns can't be read, or the budget has no room.
    fn commit(&mut self, basis: Basis, columns: &[Blinded<ScalarOf<C>>]) -> Result<Vec<PointOf<C>>>;
    /// Proves the evaluations.
    ///
    /// # Errors
    /// The scheme's.
    fn open(&mut self, opening: &Opening<'_, ScalarOf<C>>) -> io::Result<()>;
}

impl<C: Curve> dyn Outside<C> + '_ {
    /// Writes points to the proof.
    pub(crate) fn write_points(&mut self, points: &[PointOf<C>]) -> io::Result<()> {
        points
            .iter()
            .try_for_each(|point| self.transcript().write_point(point))
    }
}
