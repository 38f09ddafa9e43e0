//! A session, and parameters that it opens.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use ark_bn254::G1Affine;
use spillproof_commit::Scalar;
use spillproof_commit::kzg::{self, Opening};
use spillproof_engine::Result;
use spillproof_engine::budget::IntoByteSize;
use spillproof_engine::column::Scratch;
use spillproof_engine::stream::Scalars;

use crate::Vector;

/// A budget of bytes, a folder for scratch files, and threads. Everything that it makes lives within them.
///
/// It is an [`engine`](crate::engine)'s session, whose methods it has too: the functions of the engine and of
/// [`commit`](crate::commit) take its workspace.
#[derive(Debug)]
pub struct Session(spillproof_engine::Session);

/// The settings of a [`Session`].
#[derive(Debug)]
pub struct SessionBuilder(spillproof_engine::SessionBuilder);

/// An SRS for KZG over BN254, on disk.
///
/// It is the SRS of [`commit`](crate::commit), whose methods it has too.
#[derive(Clone, Debug)]
pub struct Srs(spillproof_commit::Srs);

impl Session {
    /// A session with the default settings: the budget `auto`, the folder of temporary files, a thread for
    /// each core.
    pub fn builder() -> SessionBuilder {
        SessionBuilder(spillproof_engine::Session::builder())
    }

    /// Opens an SRS container. Nothing is copied; each frame is checked when it is read.
    ///
    /// # Errors
    /// Those of [`spillproof_commit::Srs::open_container`].
    pub fn open_srs(&self, path: impl AsRef<Path>) -> Result<Srs> {
        spillproof_commit::Srs::open_container(self.workspace(), path.as_ref()).map(Srs)
    }

    /// Writes scalars to a scratch file. An iterator that does not know its length is written twice.
    ///
    /// # Errors
    /// [`OverBudget`](crate::Error::OverBudget), [`File`](crate::Error::File), [`Io`](crate::Error::Io).
    pub fn column(&self, scalars: impl IntoIterator<Item = Scalar>) -> Result<Vector> {
        Vector::new(self.workspace(), scalars)
    }
}

impl SessionBuilder {
    /// The budget: a [`ByteSize`](crate::ByteSize), or text such as `2GiB`, `512M`, `auto`. Text that is no
    /// size is an error of [`Self::build`].
    pub fn memory(self, memory: impl IntoByteSize) -> Self {
        Self(self.0.memory(memory))
    }

    /// A limit on the resident memory of the whole process, from which the budget follows.
    pub fn limit(self, limit: impl IntoByteSize) -> Self {
        Self(self.0.limit(limit))
    }

    /// The folder for scratch files; preferably on NVMe.
    pub fn dir(self, dir: impl Into<PathBuf>) -> Self {
        Self(self.0.dir(dir))
    }

    /// Number of compute threads; 0 (the default) is one for each core.
    pub fn threads(self, threads: usize) -> Self {
        Self(self.0.threads(threads))
    }

    /// How scratch files are written; sealed by default.
    pub fn scratch(self, scratch: Scratch) -> Self {
        Self(self.0.scratch(scratch))
    }

    /// Makes the session.
    ///
    /// # Errors
    /// Those of [`spillproof_engine::SessionBuilder::build`].
    pub fn build(self) -> Result<Session> {
        self.0.build().map(Session)
    }
}

/// A builder with settings that this one does not show.
impl From<spillproof_engine::SessionBuilder> for SessionBuilder {
    fn from(builder: spillproof_engine::SessionBuilder) -> Self {
        Self(builder)
    }
}

impl Deref for Session {
    type Target = spillproof_engine::Session;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Srs {
    /// Commits to the polynomial with these coefficients, lowest first.
    ///
    /// # Errors
    /// Those of [`kzg::commit`].
    pub fn commit(&self, coefficients: &Vector) -> Result<G1Affine> {
        let commitments = kzg::commit(&self.0, &[Scalars::Column(coefficients.column())])?;
        Ok(commitments.first().copied().unwrap_or_default())
    }

    /// The value at `point` of the polynomial with these coefficients, and the proof of it.
    ///
    /// # Errors
    /// Those of [`kzg::open`].
    pub fn open(&self, coefficients: &Vector, point: Scalar) -> Result<Opening> {
        kzg::open(&self.0, coefficients.column(), point)
    }
}

impl From<spillproof_commit::Srs> for Srs {
    fn from(srs: spillproof_commit::Srs) -> Self {
        Self(srs)
    }
}

impl Deref for Srs {
    type Target = spillproof_commit::Srs;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
