//! The host's ends of a transform: sources and destinations of elements, pinned slots.

use super::plan::{ELEMENT_BYTES, NttPlan, NttWay};
#[cfg(doc)]
use crate::error::Error;
use crate::error::{BoxedError, Result};
use crate::ring::{Download, Source, Upload};

/// A source of elements, by index and in any order.
pub trait ReadElements {
    /// Fills `into` with the elements from index `first` on, in the form that the kernels read.
    ///
    /// # Errors
    /// Any error of the source; the job ends with [`Error::Source`].
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<(), BoxedError>;
}

/// A destination of elements, by index and in any order.
pub trait WriteElements {
    /// Takes the elements from index `first` on.
    ///
    /// # Errors
    /// Any error of the sink; the job ends with [`Error::Sink`].
    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<(), BoxedError>;
}

/// Elements of BN254, 32 bytes each.
impl ReadElements for Vec<u8> {
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<(), BoxedError> {
        let start = (first * ELEMENT_BYTES) as usize;
        let from = self.get(start..start + into.len()).ok_or("too few elements")?;
        into.copy_from_slice(from);
        Ok(())
    }
}

/// Elements of BN254, 32 bytes each.
impl WriteElements for Vec<u8> {
    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<(), BoxedError> {
        let start = (first * ELEMENT_BYTES) as usize;
        let to = self
            .get_mut(start..start + bytes.len())
            .ok_or("too few elements")?;
        to.copy_from_slice(bytes);
        Ok(())
    }
}

/// The pinned slots of a transform.
#[derive(Debug)]
pub struct Ends<'a> {
    /// Slots to the device.
    pub upload: &'a mut Upload,
    /// Slots from the device.
    pub download: &'a mut Download,
}

/// Fills the slots with the first elements of a transform, before the device is needed; the next run of
/// [`super::Ntt`] with these slots goes on from there. Returns the number of bytes that are staged.
///
/// # Errors
/// Those of [`Upload::stage`].
pub fn stage(plan: &NttPlan, upload: &mut Upload, from: &mut dyn ReadElements) -> Result<u64> {
    upload.stage(&plan.chunking()?, plan.total_bytes(), &mut input(*plan, from))
}

/// The chunks that go to the device first: elements in order, or whole columns of the matrix, gathered row by
/// row.
pub(super) fn input<'a>(plan: NttPlan, from: &'a mut dyn ReadElements) -> impl Source + 'a {
    move |offset: u64, into: &mut [u8]| match plan.way() {
        NttWay::InDeviceMemory => from.read(offset / plan.element_bytes(), into),
        NttWay::TwoSteps { log_rows } => {
            let (rows, columns) = (1u64 << log_rows, 1u64 << (plan.log_n() - log_rows));
            let first = offset / (rows * plan.element_bytes());
            let width = into.len() / rows as usize;
            let mut lines = (0..rows).zip(into.chunks_exact_mut(width));
            lines.try_for_each(|(row, line)| from.read(row * columns + first, line))
        }
    }
}
