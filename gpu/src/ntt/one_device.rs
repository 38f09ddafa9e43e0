//! A transform on one device: whole in device memory, or in two steps.

use spillproof_engine::accelerator::{Lines, ReadElements, ReadWriteElements, WriteElements};

use super::field::NttField;
use super::launcher::NttLauncher;
use super::plan::{NttMethod, NttPlan};
use super::slots::{Input, NttSlots};
use super::transform::NttSpec;
use crate::buffer::DeviceBuffer;
use crate::error::{BoxedError, Result};
use crate::kernels::Kernels;
use crate::ring::{Chunk, Download, Piece, Ring, RingJob};
use crate::vram::Vram;

/// A device's memory and kernels for one kind of transform. Runs one transform at a time.
#[derive(Debug)]
pub struct Ntt {
    // The first field: its drop waits for the kernels, and only then may buffers be freed.
    ring: Ring,
    launcher: NttLauncher,
    /// All elements; in two steps those of a chunk.
    array: DeviceBuffer,
}

impl Ntt {
    /// Leases the device memory of the plan, and makes the tables.
    ///
    /// # Errors
    /// [`crate::Error::OverBudget`], [`crate::Error::OutOfMemory`], [`crate::Error::NoKernel`],
    /// [`crate::Error::Driver`]; [`crate::Error::Invalid`] if the plan is for another length or field.
    pub fn new<F: NttField>(
        vram: &Vram,
        kernels: &Kernels,
        plan: NttPlan,
        transform: NttSpec<F>,
    ) -> Result<Self> {
        let array = vram.buffer(plan.array_bytes(), "NTT array")?;
        let mut ring = Ring::new(vram, plan.chunking()?, plan.ring_buffers())?;
        let launcher = NttLauncher::new((vram, kernels), plan, transform, ring.stream())?;
        ring.finish()?;
        Ok(Self {
            ring,
            launcher,
            array,
        })
    }

    /// Puts another buffer in place of the one that holds the elements of the last whole transform.
    pub(crate) fn exchange_elements(&mut self, other: &mut DeviceBuffer) {
        if other.bytes() == self.array.bytes() {
            std::mem::swap(&mut self.array, other);
        }
    }

    /// The plan.
    pub fn plan(&self) -> &NttPlan {
        &self.launcher.plan
    }

    /// Transforms the elements of `from` into `to`; a transform in two steps keeps its intermediate elements
    /// in `between`. All three have the whole length.
    ///
    /// # Errors
    /// [`crate::Error::Source`], [`crate::Error::Sink`], [`crate::Error::Driver`], [`crate::Error::Invalid`]
    /// for slots that are too short. After an error nothing is in flight, and the content of `to` is void.
    pub fn transform(
        &mut self,
        slots: NttSlots<'_>,
        from: &mut dyn ReadElements,
        between: &mut dyn ReadWriteElements,
        to: &mut dyn WriteElements,
    ) -> Result<()> {
        match self.launcher.plan.method() {
            NttMethod::InDeviceMemory => self.transform_in_memory(slots, from, to)?,
            NttMethod::TwoSteps { log_rows } => {
                self.transform_in_steps(slots, log_rows, from, between, to)?
            }
        }
        self.ring.finish()
    }

    fn transform_in_memory(
        &mut self,
        slots: NttSlots<'_>,
        from: &mut dyn ReadElements,
        to: &mut dyn WriteElements,
    ) -> Result<()> {
        let (launcher, plan, array) = (&self.launcher, self.launcher.plan, &self.array);
        let total_bytes = plan.total_bytes();
        let mut source = Input { plan, from };
        let job = RingJob {
            total_bytes,
            upload: Some((slots.upload, &mut source)),
            arrays: &[],
            download: None,
        };
        self.ring
            .run_job(job, &mut |chunk| launcher.place(&chunk, array))?;
        self.passes_and_back(slots.download, to)
    }

    /// A whole transform of elements on the device.
    ///
    /// # Errors
    /// As [`Self::transform`].
    pub(crate) fn transform_from(
        &mut self,
        from: &DeviceBuffer,
        download: &mut Download,
        to: &mut dyn WriteElements,
    ) -> Result<()> {
        let chunk = Chunk {
            piece: Piece {
                index: 0,
                offset: 0,
                bytes: self.launcher.plan.total_bytes(),
            },
            buffer: from,
            stream: self.ring.busy_stream(),
        };
        let placed = self.launcher.place(&chunk, &self.array);
        let done = placed
            .and_then(|()| self.passes_and_back(download, to))
            .and_then(|()| self.ring.finish());
        if done.is_err() {
            self.ring.wait_for_all();
        }
        done
    }

    /// The passes of a whole transform, and the way back.
    fn passes_and_back(&mut self, download: &mut Download, to: &mut dyn WriteElements) -> Result<()> {
        let (launcher, plan) = (&self.launcher, self.launcher.plan);
        launcher.whole(self.ring.stream(), &self.array)?;
        let mut sink = |offset: u64, bytes: &[u8]| -> Result<(), BoxedError> {
            Ok(to.write(offset / plan.element_bytes(), bytes)?)
        };
        self.ring
            .drain_buffer((&self.array, 0), plan.total_bytes(), download, &mut sink)
    }

    fn transform_in_steps(
        &mut self,
        slots: NttSlots<'_>,
        log_rows: u32,
        from: &mut dyn ReadElements,
        between: &mut dyn ReadWriteElements,
        to: &mut dyn WriteElements,
    ) -> Result<()> {
        let (launcher, array) = (&self.launcher, &self.array);
        let (rows, columns) = (1u64 << log_rows, 1u64 << (launcher.plan.log_n() - log_rows));
        let total_bytes = launcher.plan.total_bytes();
        let column_bytes = rows * launcher.plan.element_bytes();
        let mut source = Input {
            plan: launcher.plan,
            from,
        };
        let mut sink = |offset: u64, bytes: &[u8]| -> Result<(), BoxedError> {
            let lines = Lines {
                first: offset / column_bytes,
                step: columns,
                count: rows,
            };
            Ok(between.write_lines(lines, bytes)?)
        };
        let job = RingJob {
            total_bytes,
            upload: Some((&mut *slots.upload, &mut source)),
            arrays: &[],
            download: Some((&mut *slots.download, &mut sink)),
        };
        self.ring
            .run_job(job, &mut |chunk| launcher.columns(&chunk, array, [rows, columns]))?;

        // Rows are read one after the other, and written as a chunk of columns.
        let row_bytes = columns * launcher.plan.element_bytes();
        let mut source = |offset: u64, into: &mut [u8]| -> Result<(), BoxedError> {
            Ok(between.read(offset / launcher.plan.element_bytes(), into)?)
        };
        let mut sink = |offset: u64, bytes: &[u8]| -> Result<(), BoxedError> {
            let lines = Lines {
                first: offset / row_bytes,
                step: rows,
                count: columns,
            };
            Ok(to.write_lines(lines, bytes)?)
        };
        let job = RingJob {
            total_bytes,
            upload: Some((slots.upload, &mut source)),
            arrays: &[],
            download: Some((slots.download, &mut sink)),
        };
        self.ring
            .run_job(job, &mut |chunk| launcher.rows(&chunk, array, [rows, columns]))
    }
}
