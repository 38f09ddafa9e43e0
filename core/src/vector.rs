//! Scalars on disk, with arkworks' types at both ends. Each method is one call of a stage. Memory: that of
//! the stage, within the session's budget; a chunk of [`Vector::chunks`] carries its lease.

use ark_ff::AdditiveGroup;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use spillproof_commit::Scalar;
use spillproof_engine::Result;
use spillproof_engine::budget::LeasedVec;
use spillproof_engine::column::{Column, Placement, Reader, Region, Workspace, Writer};
use spillproof_engine::error::Invalid;
use spillproof_engine::stream::{Transform, ntt};

/// Scalars that are collected before a vector's length is known.
const PIECE: usize = 1 << 13;

/// Scalars of BN254 on disk: coefficients or values. Clones share them; the last one frees their room.
#[derive(Clone, Debug)]
pub struct Vector(Column<Scalar>);

impl Vector {
    /// Writes scalars to a scratch file. An iterator that does not know its length is written twice.
    pub(crate) fn new(workspace: &Workspace, scalars: impl IntoIterator<Item = Scalar>) -> Result<Self> {
        let scalars = scalars.into_iter();
        match scalars.size_hint() {
            (len, Some(most)) if len == most => write(workspace, len, scalars),
            _ => Self::of_unknown_length(workspace, scalars),
        }
    }

    fn of_unknown_length(workspace: &Workspace, mut scalars: impl Iterator<Item = Scalar>) -> Result<Self> {
        let mut pieces = Vec::new();
        loop {
            let piece: Vec<Scalar> = scalars.by_ref().take(PIECE).collect();
            if piece.is_empty() {
                break;
            }
            pieces.push(write(workspace, piece.len(), piece.into_iter())?);
        }
        let len: usize = pieces.iter().map(Vector::len).sum();
        let mut writer = Writer::scratch(workspace, "vector", len as u64, Placement::Disk)?;
        for piece in pieces {
            writer.push(&piece.0.to_vec()?)?;
        }
        writer.finish().map(Self)
    }

    /// Number of scalars.
    pub fn len(&self) -> usize {
        self.0.len() as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The column, for the functions of the other modules.
    pub fn column(&self) -> &Column<Scalar> {
        &self.0
    }

    /// Coefficients to values on `domain`, a subgroup or a coset of it. A shorter vector counts as padded
    /// with zeros.
    ///
    /// # Errors
    /// [`Invalid::TooLong`] for a vector longer than the domain; those of [`ntt()`].
    pub fn ntt(&self, domain: &Radix2EvaluationDomain<Scalar>) -> Result<Self> {
        let log_n = domain.size().ilog2();
        self.transformed(&Transform::coset_forward(
            log_n,
            domain.group_gen(),
            domain.coset_offset(),
        ))
    }

    /// Values on `domain`, a subgroup or a coset of it, to coefficients.
    ///
    /// # Errors
    /// As [`Self::ntt`]; [`Invalid::Zero`] for a coset of shift 0.
    pub fn intt(&self, domain: &Radix2EvaluationDomain<Scalar>) -> Result<Self> {
        let log_n = domain.size().ilog2();
        self.transformed(&Transform::coset_inverse(
            log_n,
            domain.group_gen(),
            domain.coset_offset(),
        )?)
    }

    /// Coefficients to values on the coset `shift * domain`.
    ///
    /// # Errors
    /// As [`Self::ntt`]; [`Invalid::Zero`] for a shift of 0.
    pub fn coset_ntt(&self, domain: &Radix2EvaluationDomain<Scalar>, shift: Scalar) -> Result<Self> {
        self.ntt(&coset(domain, shift)?)
    }

    /// Values on the coset `shift * domain` to coefficients.
    ///
    /// # Errors
    /// As [`Self::coset_ntt`].
    pub fn coset_intt(&self, domain: &Radix2EvaluationDomain<Scalar>, shift: Scalar) -> Result<Self> {
        self.intt(&coset(domain, shift)?)
    }

    fn transformed(&self, transform: &Transform<Scalar>) -> Result<Self> {
        ntt(&self.0, transform, Placement::Disk).map(Self)
    }

    /// All scalars in order, a chunk at a time, the next ones on their way.
    ///
    /// # Errors
    /// [`OverBudget`](crate::Error::OverBudget). Each chunk is an error where its frames are damaged, or
    /// cannot be read.
    pub fn chunks(&self) -> Result<Chunks> {
        let chunk = self.0.sequential_chunk();
        Ok(Chunks {
            reader: self.0.read_ascending(chunk)?,
            workspace: self.0.workspace().clone(),
            left: self.0.len(),
            chunk,
        })
    }
}

fn coset(domain: &Radix2EvaluationDomain<Scalar>, shift: Scalar) -> Result<Radix2EvaluationDomain<Scalar>> {
    domain.get_coset(shift * domain.coset_offset()).ok_or_else(|| {
        Invalid::Zero {
            what: "the shift of a coset",
        }
        .into()
    })
}

/// The chunks of a [`Vector`].
pub struct Chunks {
    reader: Reader<Scalar>,
    workspace: Workspace,
    left: u64,
    chunk: u64,
}

impl Iterator for Chunks {
    type Item = Result<LeasedVec<Scalar>>;

    fn next(&mut self) -> Option<Self::Item> {
        let len = self.left.min(self.chunk);
        self.left -= len;
        let read = || {
            let mut chunk = self
                .workspace
                .budget
                .vec(len as usize, Scalar::ZERO, "chunk of a vector")?;
            let region = self.reader.next_into(&mut chunk)?;
            debug_assert_eq!(region.map(|region: Region| region.len()), Some(len));
            Ok(chunk)
        };
        (len > 0).then(read)
    }
}

impl std::fmt::Debug for Chunks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chunks")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

/// Writes `len` scalars.
fn write(workspace: &Workspace, len: usize, mut scalars: impl Iterator<Item = Scalar>) -> Result<Vector> {
    let mut writer = Writer::scratch(workspace, "vector", len as u64, Placement::Disk)?;
    let mut piece = Vec::with_capacity(PIECE.min(len));
    loop {
        piece.clear();
        piece.extend(scalars.by_ref().take(PIECE));
        if piece.is_empty() {
            return writer.finish().map(Vector);
        }
        writer.push(&piece)?;
    }
}
