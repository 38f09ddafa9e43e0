//! Sessions, structured reference strings, and what is computed over them: commitments, openings, sums,
//! transforms.
//!
//! Values come as bytes of the caller's, which are read where they are by commitments and sums, and copied to
//! a scratch column by openings and transforms; or as columns. Memory: that of the engine's stages, within
//! the session's budget.

use std::path::{Path, PathBuf};

use ark_ff::FftField;
pub use spillproof_commit::Basis;
use spillproof_commit::kzg;
use spillproof_commit::{Engine, G1, HALO2_ROOT_OF_UNITY, ImportedSrs, Scalar, Srs, generate, omega};
use spillproof_commit::{import_params_kzg, verify_srs};
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::column::{Column, Placement, Workspace};
use spillproof_engine::stream::{self, Transform};
use spillproof_format::params_kzg::{Dialect, Stated};

use crate::bytes::{self, G2_BYTES, POINT_BYTES, SCALAR_BYTES, Scalars};
use crate::column::CallerColumn;
use crate::{Error, Result};

/// What a session is made of.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The memory budget.
    pub memory: ByteSize,
    /// The folder for scratch files; that of `SPILLPROOF_DIR`, or the system's one for temporary files,
    /// without it.
    pub dir: Option<PathBuf>,
    /// Compute threads; 0 is one for each core.
    pub threads: usize,
}

impl Settings {
    /// Makes the session.
    ///
    /// # Errors
    /// The engine's.
    pub fn session(self) -> Result<Session> {
        let dir = match self.dir {
            Some(dir) => dir,
            None => spillproof_engine::session::dir_of_environment()?,
        };
        let builder = Session::builder().memory(self.memory).dir(dir);
        Ok(builder.threads(self.threads).build()?)
    }
}

/// Whose primitive root of unity of order 2^28 the domains of transforms come from. From 2^6 points on they
/// differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Roots {
    /// That of halo2, and of the Lagrange form of an SRS.
    Halo2,
    /// That of arkworks.
    Arkworks,
}

/// The direction of a transform, and its domain.
#[derive(Clone, Copy, Debug)]
pub struct Domain {
    /// log2 of the number of values.
    pub log_n: u32,
    /// Whose root.
    pub roots: Roots,
    /// The coset's shift, not 0; 1 for the subgroup itself.
    pub shift: Scalar,
    /// From values to coefficients instead of from coefficients to values.
    pub is_inverse: bool,
}

/// Values of the caller's.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// In memory.
    Bytes(Scalars<'a>),
    /// On disk.
    Column(&'a Column<Scalar>),
}

/// What an SRS is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrsInfo {
    /// log2 of the number of points.
    pub k: u32,
    /// Whether it has them in monomial form.
    pub has_monomial: bool,
    /// Whether it has them in Lagrange form.
    pub has_lagrange: bool,
    /// The digest that names its file.
    pub root: [u8; 32],
    /// The generator of G2, and the secret times that.
    pub pair: [[u8; G2_BYTES]; 2],
}

/// A polynomial's value at a point, and the proof of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The value.
    pub value: [u8; SCALAR_BYTES],
    /// The proof.
    pub proof: [u8; POINT_BYTES],
}

/// Makes an SRS of `2^k` points from a secret. **Insecure**, for tests: see [`generate`].
///
/// # Errors
/// The engine's.
pub fn generate_srs(session: &Session, path: &Path, k: u32, secret: Scalar) -> Result<()> {
    generate::<Engine>(session.workspace(), path, k, secret, |_| ())?;
    Ok(())
}

/// Imports a `ParamsKZG` file of halo2 over BN254. Every point is checked.
///
/// # Errors
/// The engine's.
pub fn import_srs(session: &Session, source: &Path, target: &Path) -> Result<ImportedSrs> {
    Ok(import_params_kzg(
        session.workspace(),
        source,
        target,
        Stated::of(Dialect::Halo2),
        &mut |_| (),
    )?)
}

/// Reads all of an SRS file, and checks that its parts belong together. Gives `k`.
///
/// # Errors
/// The engine's.
pub fn check_srs(session: &Session, path: &Path) -> Result<u32> {
    Ok(verify_srs(session.workspace(), path, &mut |_| ())?)
}

/// What an SRS is.
pub fn inspect(srs: &Srs) -> SrsInfo {
    SrsInfo {
        k: srs.k(),
        has_monomial: srs.monomial().is_ok(),
        has_lagrange: srs.lagrange().is_ok(),
        root: srs.root().unwrap_or_default(),
        pair: srs.pair().map(|point| bytes::of_g2(&point)),
    }
}

/// Commits to polynomials, with one pass over the SRS for as many as memory takes.
///
/// # Errors
/// The engine's.
pub fn commit(srs: &Srs, basis: Basis, polynomials: &[Values<'_>]) -> Result<Vec<[u8; POINT_BYTES]>> {
    let scalars: Vec<_> = polynomials.iter().map(Values::of_sum).collect();
    let commitments = match basis {
        Basis::Monomial => kzg::commit(srs, &scalars)?,
        Basis::Lagrange => kzg::commit_lagrange(srs, &scalars)?,
    };
    Ok(commitments.iter().map(bytes::of_point).collect())
}

/// Opens a polynomial, given by coefficients, at a point.
///
/// # Errors
/// The engine's.
pub fn open(srs: &Srs, polynomial: &Values<'_>, point: Scalar) -> Result<Opening> {
    let copy;
    let column = match polynomial {
        Values::Column(column) => *column,
        Values::Bytes(scalars) => {
            copy = copied(srs.monomial()?.workspace(), scalars)?;
            &copy
        }
    };
    let opening = kzg::open(srs, column, point)?;
    Ok(Opening {
        value: bytes::of_scalar(&opening.value),
        proof: bytes::of_point(&opening.proof),
    })
}

/// Whether an opening proves that the polynomial behind `commitment` has its value at `point`: one pairing
/// equation.
///
/// # Errors
/// The engine's; [`Error::Point`] or [`Error::Scalar`] for bytes that are none.
pub fn check_opening(
    srs: &Srs,
    commitment: &[u8; POINT_BYTES],
    point: Scalar,
    opening: &Opening,
) -> Result<bool> {
    let of = |what, bytes| {
        bytes::point(bytes).map_err(|fault| Error::Point {
            what,
            index: 0,
            fault,
        })
    };
    let (commitment, proof) = (
        of("the commitment", commitment)?,
        of("the proof", &opening.proof)?,
    );
    let value = bytes::scalar("the value", &opening.value)?;
    Ok(kzg::check(
        srs,
        &commitment,
        point,
        &kzg::Opening { value, proof },
    )?)
}

/// The sum of scalars times points of the caller's. Points are checked and copied to a scratch column.
///
/// # Errors
/// [`Error::Point`], the engine's.
pub fn msm(session: &Session, points: &[u8], scalars: &Values<'_>) -> Result<[u8; POINT_BYTES]> {
    let count = bytes::elements::<POINT_BYTES>("points", points)?.len() as u64;
    let given = scalars.of_sum().len();
    if given != count {
        return Err(Error::Count {
            what: "scalars for the points",
            given,
            expected: count,
        });
    }
    let column = CallerColumn::of_points(session.workspace(), count)?;
    column.push(points)?;
    msm_over(column.full()?, scalars)
}

/// The sum of scalars times points on disk; there may be fewer scalars than points.
///
/// # Errors
/// The engine's.
pub fn msm_over(points: &Column<G1>, scalars: &Values<'_>) -> Result<[u8; POINT_BYTES]> {
    let sums = kzg::commit_over::<Engine>(points, &[scalars.of_sum()])?;
    Ok(bytes::of_point(&sums.first().copied().unwrap_or_default()))
}

/// Transforms a column. A shorter one counts as padded with zeros.
///
/// # Errors
/// The engine's.
pub fn ntt(values: &Column<Scalar>, domain: &Domain) -> Result<Column<Scalar>> {
    Ok(stream::ntt(values, &domain.transform()?, Placement::Disk)?)
}

/// Transforms the caller's values into a column.
///
/// # Errors
/// The engine's.
pub fn ntt_of(session: &Session, values: &Scalars<'_>, domain: &Domain) -> Result<Column<Scalar>> {
    ntt(&copied(session.workspace(), values)?, domain)
}

impl Domain {
    /// Number of values.
    ///
    /// # Errors
    /// The engine's, for more than the field has domains for.
    pub fn values(&self) -> Result<u64> {
        self.omega()?;
        Ok(1 << self.log_n)
    }

    fn omega(&self) -> Result<Scalar> {
        let root = match self.roots {
            Roots::Halo2 => HALO2_ROOT_OF_UNITY,
            Roots::Arkworks => Scalar::TWO_ADIC_ROOT_OF_UNITY,
        };
        Ok(omega(root, self.log_n)?)
    }

    /// The engine's form of it.
    ///
    /// # Errors
    /// The engine's, for more than the field has domains for, and for a shift of 0.
    pub fn transform(&self) -> Result<Transform<Scalar>> {
        let omega = self.omega()?;
        // A shift of 0 is refused in both directions.
        let inverse = Transform::coset_inverse(self.log_n, omega, self.shift)?;
        Ok(match self.is_inverse {
            true => inverse,
            false => Transform::coset_forward(self.log_n, omega, self.shift),
        })
    }
}

impl Values<'_> {
    pub(crate) fn of_sum(&self) -> stream::Scalars<'_, Scalar> {
        match self {
            Self::Bytes(scalars) => stream::Scalars::Foreign(scalars),
            Self::Column(column) => stream::Scalars::Column(column),
        }
    }
}

/// The caller's values as a column.
fn copied(workspace: &Workspace, values: &Scalars<'_>) -> Result<Column<Scalar>> {
    let column = CallerColumn::of_scalars(workspace, values.iter().len() as u64)?;
    column.push_checked(values)?;
    column.full().cloned()
}
