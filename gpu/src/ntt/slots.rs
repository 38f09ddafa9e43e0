//! The host's side of a transform: pinned slots, the order in which elements pass through them, and elements
//! in memory.

use std::ops::Range;

use spillproof_engine::accelerator::{Arrivals, Lines, ReadElements, WriteElements};
use spillproof_engine::budget::Lent;

use super::plan::{ELEMENT_BYTES, NttMethod, NttPlan};
use crate::error::{BoxedError, Result, Values};
use crate::ring::{Download, Source, Upload};

/// The pinned slots of a transform.
#[derive(Debug)]
pub struct NttSlots<'a> {
    /// Slots to the device.
    pub upload: &'a mut Upload,
    /// Slots from the device.
    pub download: &'a mut Download,
}

/// Fills the slots with the first elements of a transform, before the device is needed; the next transform of
/// [`super::Ntt`] with these slots continues from there. Returns the number of staged bytes.
///
/// # Errors
/// Those of [`Upload::stage`].
pub fn stage(plan: &NttPlan, upload: &mut Upload, from: &mut dyn ReadElements) -> Result<u64> {
    let mut source = Input { plan: *plan, from };
    upload.stage(&plan.chunking()?, plan.total_bytes(), &mut source)
}

/// The chunks that go to the device first: elements in order, or whole columns of the matrix, gathered row by
/// row.
pub(super) struct Input<'a> {
    pub plan: NttPlan,
    pub from: &'a mut dyn ReadElements,
}

impl Source for Input<'_> {
    fn begin(&mut self, offset: u64, mut into: Lent) -> Result<Arrivals, BoxedError> {
        let (plan, from) = (self.plan, &mut *self.from);
        match plan.method() {
            NttMethod::InDeviceMemory => Ok(from.begin(offset / plan.element_bytes(), into)?),
            NttMethod::TwoSteps { log_rows } => {
                let (rows, columns) = (1u64 << log_rows, 1u64 << (plan.log_n() - log_rows));
                let lines = Lines {
                    first: offset / (rows * plan.element_bytes()),
                    step: columns,
                    count: rows,
                };
                from.read_lines(lines, &mut into)?;
                Ok(Arrivals::default())
            }
        }
    }
}

/// Elements in memory, as kernels read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryElements {
    bytes: Vec<u8>,
    element_bytes: u64,
}

impl MemoryElements {
    /// Elements of `element_bytes` each.
    pub fn new(bytes: Vec<u8>, element_bytes: u64) -> Self {
        Self { bytes, element_bytes }
    }

    /// Elements of BN254.
    pub fn of_bn254(bytes: Vec<u8>) -> Self {
        Self::new(bytes, ELEMENT_BYTES)
    }

    /// The bytes of all elements.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of elements `first ..`, as many as fit `bytes` bytes.
    fn range(&self, first: u64, bytes: usize) -> Result<Range<usize>, Values> {
        let start = first.saturating_mul(self.element_bytes);
        let end = start.saturating_add(bytes as u64);
        match end <= self.bytes.len() as u64 {
            true => Ok(start as usize..end as usize),
            false => Err(Values::OutOfRange {
                what: "bytes of elements in memory".into(),
                start,
                end,
                len: self.bytes.len() as u64,
            }),
        }
    }
}

impl ReadElements for MemoryElements {
    fn read(&mut self, first: u64, into: &mut [u8]) -> spillproof_engine::Result<()> {
        into.copy_from_slice(&self.bytes[self.range(first, into.len())?]);
        Ok(())
    }
}

impl WriteElements for MemoryElements {
    fn write(&mut self, first: u64, bytes: &[u8]) -> spillproof_engine::Result<()> {
        let range = self.range(first, bytes.len())?;
        self.bytes[range].copy_from_slice(bytes);
        Ok(())
    }
}
