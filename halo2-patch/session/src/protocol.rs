//! What a proof talks to: its transcript, its source of randomness, and its commitment scheme. A drop-in implements them over
//! the types of its fork; a plan brings ones that compute nothing.

use std::io;

use spillproof::column::Column;

use crate::curve::{Point, Scalar};
use crate::error::Result;
use crate::openings::Opening;

/// A transcript that a proof is written to.
pub trait Transcript {
    /// Writes a point to the proof.
    ///
    /// # Errors
    /// The writer's; of a transcript that does not take the point at infinity.
    fn write_point(&mut self, point: &Point) -> io::Result<()>;
    /// Writes a scalar to the proof.
    ///
    /// # Errors
    /// The writer's.
    fn write_scalar(&mut self, scalar: Scalar) -> io::Result<()>;
    /// Absorbs a point that the verifier knows.
    ///
    /// # Errors
    /// As [`Self::write_point`].
    fn common_point(&mut self, point: &Point) -> io::Result<()>;
    /// Absorbs a scalar that the verifier knows.
    ///
    /// # Errors
    /// As [`Self::write_scalar`].
    fn common_scalar(&mut self, scalar: Scalar) -> io::Result<()>;
    /// The next challenge.
    fn challenge(&mut self) -> Scalar;
}

/// Where random values come from. The order of draws is halo2's.
pub trait Randomness {
    /// The next value of the caller's generator.
    fn scalar(&mut self) -> Scalar;
    /// The next coefficients of the vanishing argument's random polynomial, in order.
    fn random_polynomial(&mut self, coefficients: &mut [Scalar]);
}

/// A column that is committed to, with its blind.
#[derive(Clone, Debug)]
pub struct Blinded {
    /// Values or coefficients.
    pub column: Column<Scalar>,
    /// The blind.
    pub blind: Scalar,
}

impl Blinded {
    /// A column that is committed to without hiding it: halo2 then takes 1 for the blind.
    pub fn unhidden(column: Column<Scalar>) -> Self {
        let blind = Scalar::from(1u64);
        Self { column, blind }
    }
}

/// All that a proof talks to.
pub trait Protocol: Randomness {
    /// The transcript.
    fn transcript(&mut self) -> &mut dyn Transcript;
    /// Whether instance columns are committed to and opened.
    fn opens_instances(&self) -> bool;
    /// Commitments to columns of values.
    ///
    /// # Errors
    /// Where the columns can't be read, or the budget has no room.
    fn commit_lagrange(&mut self, columns: &[Blinded]) -> Result<Vec<Point>>;
    /// Commitments to polynomials by their coefficients.
    ///
    /// # Errors
    /// As [`Self::commit_lagrange`].
    fn commit(&mut self, polynomials: &[Blinded]) -> Result<Vec<Point>>;
    /// Proves the evaluations.
    ///
    /// # Errors
    /// The scheme's.
    fn open(&mut self, opening: &Opening<'_>) -> io::Result<()>;
}
