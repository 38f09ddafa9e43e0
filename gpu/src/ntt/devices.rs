//! One transform of BN254 over several devices, each with a part of the data: columns, one exchange between
//! all devices, rows.
//!
//! ```text
//! device d:  columns d -> ring up -> array: passes, times w^(row column)
//!            rows d of every device's array -> other array      (one copy from each device: peer to peer, or through the host)
//!            laid out as whole rows -> array: passes -> ring back
//! ```
//!
//! The matrix is that of [`NttWay::TwoSteps`](super::NttWay). A device has n / k elements twice, its tables,
//! and a ring, so a transform may be larger than the memory of one device. k is a power of two. Data crosses
//! the bus to the host once each way.
//!
//! If a device fails, the transform fails, since each device has a part of every element.
//! [`super::over_devices`] begins again with the remaining devices.

use std::sync::Mutex;

use ark_bn254::Fr;

use super::ends::{Ends, ReadElements, WriteElements};
use super::launcher::NttLauncher;
use super::passes::{Layout, Placed};
use super::plan::{ELEMENT_BYTES, NttPlan, check_length};
use super::tables::Tables;
use super::transform::Transform;
use crate::buffer::{DeviceBuffer, leased_bytes};
use crate::error::{BoxedError, Error, Invalid, Result, Values};
use crate::fit::JobMemory;
use crate::kernels::Kernels;
use crate::lock::locked;
use crate::ring::{Chunking, Ring};
use crate::vram::Vram;

/// The plan of a transform over devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DevicesPlan {
    log_n: u32,
    log_devices: u32,
    chunk_elements: u64,
    ring_buffers: usize,
}

/// The memory and kernels of a transform on all its devices. Runs one transform at a time.
#[derive(Debug)]
pub struct NttDevices {
    plan: DevicesPlan,
    parts: Vec<Part>,
}

/// The failure of a transform, and the devices that caused it: none if the job's own ends did.
#[derive(Debug)]
pub(super) struct Failed {
    /// Their numbers.
    pub devices: Vec<u64>,
    pub error: Box<Error>,
}

impl Failed {
    /// An error of this device, or of the job's ends.
    fn on(device: u64) -> impl FnOnce(Error) -> Self {
        move |error| Self {
            devices: error
                .leaves_the_processor()
                .then_some(device)
                .into_iter()
                .collect(),
            error: Box::new(error),
        }
    }

    /// A mistake that was found before any device began.
    fn before(mistake: impl Into<Error>) -> Self {
        Self {
            devices: Vec::new(),
            error: Box::new(mistake.into()),
        }
    }

    /// The failures of several devices as one: an error of the job comes first, then the error of the first
    /// device.
    fn of(said: impl IntoIterator<Item = Result<(), Self>>) -> Result<(), Self> {
        let mut all: Option<Self> = None;
        for failed in said.into_iter().filter_map(Result::err) {
            match &mut all {
                Some(all) if all.devices.is_empty() => {}
                Some(all) if !failed.devices.is_empty() => all.devices.extend(failed.devices),
                all => *all = Some(failed),
            }
        }
        all.map_or(Ok(()), Err)
    }
}

/// The part of one device.
#[derive(Debug)]
struct Part {
    // The first field: its drop waits for the kernels, and only then may buffers be freed.
    ring: Ring,
    launcher: NttLauncher,
    other: DeviceBuffer,
    number: u64,
}

impl DevicesPlan {
    /// The plan for 2^`log_n` elements over 2^`log_devices` devices with `vram_bytes` each, in chunks that
    /// fit pinned slots of `slot_bytes`.
    ///
    /// # Errors
    /// [`Error::TooSmall`] with the smallest budget of each device; [`Error::Invalid`] for more than 2^28
    /// elements, or more devices than rows.
    pub fn new(log_n: u32, log_devices: u32, vram_bytes: u64, slot_bytes: u64) -> Result<Self> {
        check_length::<Fr>(log_n)?;
        if log_devices > log_n / 2 {
            return Err(Invalid::Devices { log_n, log_devices }.into());
        }
        let with = |lines: u64, ring_buffers| {
            let mut plan = Self {
                log_n,
                log_devices,
                chunk_elements: 0,
                ring_buffers,
            };
            plan.chunk_elements = lines * plan.line();
            plan
        };
        let fits = |plan: &Self| plan.vram_bytes() <= vram_bytes && plan.slot_bytes() <= slot_bytes;
        let least = with(1, 1);
        for ring_buffers in [2, 1] {
            // The lines of a part are its rows; halved until they fit.
            let lines = std::iter::successors(Some(1u64 << (log_n / 2)), |lines| Some(lines / 2));
            let lines = lines.take_while(|&lines| lines > 0);
            if let Some(plan) = lines.map(|lines| with(lines, ring_buffers)).find(fits) {
                return Ok(plan);
            }
        }
        let needed = JobMemory {
            slot_bytes: least.slot_bytes(),
            vram_bytes: least.vram_bytes(),
        };
        let given = JobMemory {
            slot_bytes,
            vram_bytes,
        };
        Err(needed.too_small(format!("a part of a transform of 2^{log_n} elements"), given))
    }

    /// log2 of the number of elements.
    pub fn log_n(&self) -> u32 {
        self.log_n
    }

    /// The number of devices.
    pub fn devices(&self) -> u64 {
        1 << self.log_devices
    }

    /// Bytes of device memory that are leased on each.
    pub fn vram_bytes(&self) -> u64 {
        leased_bytes(self.part().table_bytes())
            + 2 * leased_bytes(self.part_bytes())
            + self.ring_buffers as u64 * leased_bytes(self.slot_bytes())
    }

    /// Bytes that a pinned slot must have, at either end of each device.
    pub fn slot_bytes(&self) -> u64 {
        self.chunk_elements * ELEMENT_BYTES
    }

    fn part(&self) -> NttPlan {
        NttPlan::part(self.log_n, self.log_rows(), 1 << (self.log_n - self.log_devices))
    }

    fn part_bytes(&self) -> u64 {
        ELEMENT_BYTES << (self.log_n - self.log_devices)
    }

    fn log_rows(&self) -> u32 {
        self.log_n / 2
    }

    fn rows(&self) -> u64 {
        1 << self.log_rows()
    }

    fn columns(&self) -> u64 {
        1 << (self.log_n - self.log_rows())
    }

    /// Columns of a device.
    fn line(&self) -> u64 {
        self.columns() >> self.log_devices
    }

    /// Rows of a device; divides its number of columns.
    fn rows_of_each(&self) -> u64 {
        self.rows() >> self.log_devices
    }

    /// Bytes that one device gets from another.
    fn block_bytes(&self) -> u64 {
        self.rows_of_each() * self.line() * ELEMENT_BYTES
    }
}

impl NttDevices {
    /// Leases the device memory of the plan on each device, makes the tables, and enables direct copies
    /// between devices where possible.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a number of devices or a length that differs from the plan; errors of
    /// [`Ntt::new`](super::Ntt::new).
    pub fn new(devices: &[(&Vram, &Kernels)], plan: DevicesPlan, transform: Transform) -> Result<Self> {
        Self::made(devices, plan, transform).map_err(|failed| *failed.error)
    }

    pub(super) fn made(
        devices: &[(&Vram, &Kernels)],
        plan: DevicesPlan,
        transform: Transform,
    ) -> Result<Self, Failed> {
        if devices.len() as u64 != plan.devices() || transform.log_n() != plan.log_n {
            return Err(Failed::before(Invalid::OtherPlan {
                plan: format!("2^{} elements on {} devices", plan.log_n, plan.devices()),
                job: format!("2^{} elements on {} devices", transform.log_n(), devices.len()),
            }));
        }
        for (number, (vram, _)) in (0..).zip(devices) {
            for (other, _) in devices {
                let (ordinal, other_ordinal) = (vram.gpu(), other.gpu());
                if ordinal.description().ordinal != other_ordinal.description().ordinal {
                    // Without direct access copies go through the host.
                    ordinal.enable_peer(other_ordinal).map_err(Failed::on(number))?;
                }
            }
        }
        let parts = (0..).zip(devices);
        let parts = parts.map(|(number, (vram, kernels))| {
            Part::new(number, vram, kernels, plan, transform).map_err(Failed::on(number))
        });
        Ok(Self {
            parts: parts.collect::<Result<_, Failed>>()?,
            plan,
        })
    }

    /// The plan.
    pub fn plan(&self) -> &DevicesPlan {
        &self.plan
    }

    /// Transforms the elements of `from` into `to`, both of the whole length; `ends` are the slots of each
    /// device. One hard synchronisation on each device.
    ///
    /// # Errors
    /// [`Error::Source`], [`Error::Sink`], [`Error::Driver`], [`Error::Invalid`] for slots that are too
    /// short, or a wrong number of ends. After an error nothing is in flight, and the content of `to` is
    /// void.
    pub fn run(
        &mut self,
        ends: Vec<Ends<'_>>,
        from: &mut (dyn ReadElements + Send),
        to: &mut (dyn WriteElements + Send),
    ) -> Result<()> {
        self.run_all(ends, from, to).map_err(|failed| *failed.error)
    }

    pub(super) fn run_all(
        &mut self,
        ends: Vec<Ends<'_>>,
        from: &mut (dyn ReadElements + Send),
        to: &mut (dyn WriteElements + Send),
    ) -> Result<(), Failed> {
        if ends.len() != self.parts.len() {
            return Err(Failed::before(Values::Length {
                what: "ends of the devices of a transform".into(),
                given: ends.len() as u64,
                expected: self.parts.len() as u64,
            }));
        }
        let done = self.run_parts(ends, from, to);
        // Copies between devices run in streams that the other device's ring does not wait for.
        let waited = self.parts.iter_mut();
        let waited = waited.map(|part| part.ring.finish().map_err(Failed::on(part.number)));
        let waited: Vec<_> = waited.collect();
        Failed::of(std::iter::once(done).chain(waited))
    }

    fn run_parts(
        &mut self,
        mut ends: Vec<Ends<'_>>,
        from: &mut (dyn ReadElements + Send),
        to: &mut (dyn WriteElements + Send),
    ) -> Result<(), Failed> {
        let plan = self.plan;
        let from = Mutex::new(from);
        each(&mut self.parts, &mut ends, |part, ends| {
            part.columns(&plan, ends, &from)
        })?;
        self.exchange()?;
        let to = Mutex::new(to);
        each(&mut self.parts, &mut ends, |part, ends| {
            part.rows(&plan, ends, &to)
        })
    }

    /// Queues one copy from each device to each.
    fn exchange(&self) -> Result<(), Failed> {
        self.meet()?;
        let bytes = self.plan.block_bytes();
        for to in &self.parts {
            for from in &self.parts {
                let copied = to.ring.stream().copy(
                    (&to.other, from.number * bytes),
                    (&from.launcher.array, to.number * bytes),
                    bytes,
                );
                copied.map_err(Failed::on(to.number))?;
            }
        }
        // No array is written again before all devices have their part of it.
        self.meet()
    }

    /// Makes every device wait for the queued work of every other one.
    fn meet(&self) -> Result<(), Failed> {
        for part in &self.parts {
            let others = self.parts.iter().filter(|other| other.number != part.number);
            for other in others {
                let mark = other.ring.stream().mark().map_err(Failed::on(other.number))?;
                let waits = part.ring.stream().wait_for_mark(&mark);
                waits.map_err(Failed::on(part.number))?;
            }
        }
        Ok(())
    }
}

/// Runs a step on all devices at once, each on its own thread.
fn each<'e>(
    parts: &mut [Part],
    ends: &mut [Ends<'e>],
    step: impl Fn(&mut Part, &mut Ends<'e>) -> Result<()> + Sync,
) -> Result<(), Failed> {
    let step = &step;
    let done: Vec<Result<(), Failed>> = std::thread::scope(|scope| {
        let pairs = parts.iter_mut().zip(ends);
        let begun = pairs.map(|(part, ends)| {
            let number = part.number;
            let work = move || step(part, ends).map_err(Failed::on(number));
            let thread = std::thread::Builder::new().spawn_scoped(scope, work);
            thread.map_err(|source| Failed::on(number)(Error::NoThread { source }))
        });
        let threads: Vec<_> = begun.collect();
        let joined = threads.into_iter().map(|thread| {
            thread?
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        joined.collect()
    });
    Failed::of(done)
}

impl Part {
    fn new(
        number: u64,
        vram: &Vram,
        kernels: &Kernels,
        plan: DevicesPlan,
        transform: Transform,
    ) -> Result<Self> {
        let of_part = plan.part();
        let kernel = kernels.kernel("spk_ntt_pass_bn254_fr")?;
        let tables = vram.buffer(of_part.table_bytes(), "NTT tables")?;
        let array = || vram.buffer(plan.part_bytes(), "NTT arrays");
        let (array, other) = (array()?, array()?);
        let mut content = Tables::new();
        let launcher = NttLauncher::new(of_part, transform, (kernel, tables, (array, None)), &mut content);
        let chunking = Chunking::new(plan.slot_bytes(), plan.line() * ELEMENT_BYTES)?;
        let ring = Ring::new(vram, chunking, plan.ring_buffers)?;
        ring.stream().write((&launcher.tables, 0), &content.bytes())?;
        Ok(Self {
            ring,
            launcher,
            other,
            number,
        })
    }

    /// Uploads this device's columns, line by line, and transforms them.
    fn columns(
        &mut self,
        plan: &DevicesPlan,
        ends: &mut Ends<'_>,
        from: &Mutex<&mut (dyn ReadElements + Send)>,
    ) -> Result<()> {
        let (line, columns, first) = (plan.line(), plan.columns(), self.number * plan.line());
        let line_bytes = line * ELEMENT_BYTES;
        let mut source = |offset: u64, into: &mut [u8]| -> Result<(), BoxedError> {
            let mut from = locked(from);
            let mut lines = (offset / line_bytes..).zip(into.chunks_exact_mut(line_bytes as usize));
            lines.try_for_each(|(row, into)| from.read(row * columns + first, into))
        };
        let launcher = &self.launcher;
        self.ring.fill_buffer(
            &launcher.array,
            plan.part_bytes(),
            (&mut *ends.upload, &mut source),
        )?;
        let batch = launcher.column_batch(first, line, columns)?;
        launcher.transform(self.ring.stream(), &batch, [&launcher.array, &self.other])
    }

    /// Transforms this device's rows, which are in blocks by their device of origin, and downloads them line
    /// by line.
    fn rows(
        &mut self,
        plan: &DevicesPlan,
        ends: &mut Ends<'_>,
        to: &Mutex<&mut (dyn WriteElements + Send)>,
    ) -> Result<()> {
        let (launcher, stream) = (&self.launcher, self.ring.stream());
        let (line, columns, count) = (plan.line(), plan.columns(), plan.rows_of_each());
        let first = self.number * count;
        for device in 0..plan.devices() {
            let placed = |buffer, offset_bytes, batch| Placed {
                buffer,
                offset_bytes,
                layout: Layout { stride: 1, batch },
            };
            let block = placed(&self.other, device * plan.block_bytes(), line);
            let place = placed(&launcher.array, device * line * ELEMENT_BYTES, columns);
            launcher.lay_out(stream, (line.ilog2(), count), block, place)?;
        }
        let batch = launcher.row_batch(first, count, plan.rows(), columns)?;
        launcher.transform(stream, &batch, [&launcher.array, &self.other])?;

        let line_bytes = count * ELEMENT_BYTES;
        let mut sink = |offset: u64, bytes: &[u8]| -> Result<(), BoxedError> {
            let mut to = locked(to);
            let mut lines = (offset / line_bytes..).zip(bytes.chunks_exact(line_bytes as usize));
            lines.try_for_each(|(column, line)| to.write(column * plan.rows() + first, line))
        };
        let array = (&launcher.array, 0);
        self.ring
            .drain_buffer(array, plan.part_bytes(), (&mut *ends.download, &mut sink))
    }
}

impl Drop for NttDevices {
    fn drop(&mut self) {
        // Another device's stream may read the array of a part. The rings have waited, unless a thread
        // panicked.
        for part in &self.parts {
            let _ = part.ring.stream().synchronize();
        }
    }
}
