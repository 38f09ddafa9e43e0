//! Vectors of scalars of a sum, wherever they are.

use crate::column::{Column, Element};
use spillproof_kernels::parallel::Parallel;

/// Values that one thread converts at a time.
const JOB_VALUES: usize = 1024;

/// One vector of scalars.
#[derive(Clone, Copy)]
pub enum Scalars<'a, F> {
    /// On disk.
    Column(&'a Column<F>),
    /// In the caller's memory.
    Slice(&'a [F]),
    /// In the caller's memory, in another library's type.
    Foreign(&'a dyn ForeignScalars<F>),
}

impl<F: Element> std::fmt::Debug for Scalars<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = match self {
            Self::Column(_) => "Column",
            Self::Slice(_) => "Slice",
            Self::Foreign(_) => "Foreign",
        };
        f.debug_tuple(place).field(&self.len()).finish()
    }
}

/// Scalars of another library, converted a chunk at a time. Every slice of an [`Element`] with the same bytes
/// is one:
///
/// ```
/// use spillproof_commit::Scalar;
/// use spillproof_engine::stream::Scalars;
///
/// // Stands for halo2curves' type: any element of 32 bytes in native form.
/// let theirs: &[[u8; 32]] = &[[0; 32]; 4];
/// let scalars = Scalars::<Scalar>::Foreign(&theirs);
/// assert_eq!(scalars.len(), 4);
/// ```
pub trait ForeignScalars<F>: Sync {
    /// Number of scalars.
    fn count(&self) -> usize;

    /// Scalars `start ..`, as many as `out` holds.
    fn fill(&self, start: usize, out: &mut [F]);
}

impl<F: Element, E: Element> ForeignScalars<F> for &[E] {
    fn count(&self) -> usize {
        self.len()
    }

    fn fill(&self, start: usize, out: &mut [F]) {
        const { assert!(E::BYTES == F::BYTES && E::BYTES <= 64, "the same bytes") };
        out.chunks_mut(JOB_VALUES)
            .zip(self.get(start..).unwrap_or(&[]).chunks(JOB_VALUES))
            .parallel()
            .for_each(|(out, values)| {
                for (out, value) in out.iter_mut().zip(values) {
                    let mut bytes = [0; 64];
                    value.encode(&mut bytes[..E::BYTES]);
                    *out = F::decode(&bytes[..E::BYTES]);
                }
            });
    }
}

impl<F: Element> Scalars<'_, F> {
    /// Number of scalars.
    pub fn len(&self) -> u64 {
        match self {
            Self::Column(column) => column.len(),
            Self::Slice(values) => values.len() as u64,
            Self::Foreign(values) => values.count() as u64,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
