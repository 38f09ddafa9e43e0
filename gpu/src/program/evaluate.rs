//! A program over all its rows: tiles of columns through a ring, or columns on the device; tiles of outputs
//! come back.

use super::columns::{ReadColumns, Resident, WriteColumns};
use super::engine::Engine;
use super::plan::{Columns, Halo, ProgramPlan};
use super::strips::{Addresses, NEVER_WRAPS, Strips, run_strips};
use crate::buffer::DeviceBuffer;
use crate::error::{BoxedError, Error, Invalid, Result};
use crate::ring::{Chunk, Download, Ring, RingJob, Upload};
use crate::vram::Vram;

/// The device memory and kernels of a program. Runs one evaluation at a time.
#[derive(Debug)]
pub struct Evaluate {
    // The first field: its drop waits for the kernels, and only then may buffers be freed.
    ring: Ring,
    work: ProgramLauncher,
}

#[derive(Debug)]
struct ProgramLauncher {
    engine: Engine,
    plan: ProgramPlan,
    tables: DeviceBuffer,
    places: Places,
    scratch: Option<DeviceBuffer>,
}

/// The places of parts of the tables, in bytes from their start.
#[derive(Debug)]
struct Places {
    instructions: u64,
    /// For each buffer of the ring the places of queries and outputs.
    of_buffers: Vec<[u64; 2]>,
}

impl Evaluate {
    /// Leases the device memory of the plan, and makes the tables.
    ///
    /// # Errors
    /// [`Error::OverBudget`], [`Error::OutOfMemory`], [`Error::Driver`]; [`Error::Invalid`] if the plan is
    /// for another program.
    pub fn new(vram: &Vram, engine: Engine, plan: ProgramPlan) -> Result<Self> {
        let same = ProgramPlan::of_tiles(
            &engine,
            plan.columns(),
            plan.rows(),
            plan.tile_rows(),
            plan.ring_buffers(),
        );
        if same.ok().as_ref() != Some(&plan) {
            return Err(Invalid::OtherPlan {
                plan: format!("{plan:?}"),
                job: "another program or engine".into(),
            }
            .into());
        }
        let tables = vram.buffer(plan.table_bytes(), "program tables")?;
        let scratch = match plan.scratch_bytes() {
            0 => None,
            bytes => Some(vram.buffer(bytes, "program scratch")?),
        };
        let buffers = plan.ring_buffers();
        let ring = if plan.is_streamed() {
            Ring::with_results(vram, plan.input_chunking()?, plan.output_bytes(), buffers)?
        } else {
            Ring::new(vram, plan.output_chunking()?, buffers)?
        };
        let mut work = ProgramLauncher {
            engine,
            plan,
            tables,
            places: Places {
                instructions: 0,
                of_buffers: Vec::new(),
            },
            scratch,
        };
        if work.plan.columns() == Columns::Streamed {
            let content = work.tables(&ring, None)?;
            ring.stream().write((&work.tables, 0), &content)?;
        }
        Ok(Self { ring, work })
    }

    /// The plan.
    pub fn plan(&self) -> &ProgramPlan {
        &self.work.plan
    }

    /// The program and its kernels.
    pub fn engine(&self) -> &Engine {
        &self.work.engine
    }

    /// Runs the program over columns on the host; a program that reads none needs no `upload`. One hard
    /// synchronisation.
    ///
    /// # Errors
    /// [`Error::Source`], [`Error::Sink`], [`Error::Driver`]; [`Error::Invalid`] for slots that are too
    /// short, or a plan for resident columns. After an error nothing is in flight, and the written outputs
    /// are void.
    pub fn run(
        &mut self,
        upload: Option<&mut Upload>,
        download: &mut Download,
        from: &mut dyn ReadColumns,
        to: &mut dyn WriteColumns,
    ) -> Result<()> {
        let plan = &self.work.plan;
        if plan.columns() != Columns::Streamed || upload.is_some() != plan.is_streamed() {
            return Err(Invalid::OtherPlan {
                plan: format!(
                    "{:?} columns, of which the program reads {}",
                    plan.columns(),
                    plan.halos().len()
                ),
                job: format!("{} upload", if upload.is_some() { "an" } else { "no" }),
            }
            .into());
        }
        run_tiles(&mut self.ring, &self.work, upload, from, download, to)
    }

    /// Runs the program over columns on the device. Two hard synchronisations.
    ///
    /// # Errors
    /// As [`Evaluate::run`]; [`Error::Invalid`] for missing columns, or columns of another length.
    pub fn run_over(
        &mut self,
        columns: &Resident,
        download: &mut Download,
        to: &mut dyn WriteColumns,
    ) -> Result<()> {
        if self.work.plan.columns() != Columns::Resident {
            return Err(Invalid::OtherPlan {
                plan: "streamed columns".into(),
                job: "resident columns".into(),
            }
            .into());
        }
        let content = self.work.tables(&self.ring, Some(columns))?;
        self.ring.stream().write((&self.work.tables, 0), &content)?;
        run_tiles(&mut self.ring, &self.work, None, &mut Nothing, download, to)
    }
}

/// The source of a run whose columns are on the device.
struct Nothing;

impl ReadColumns for Nothing {
    fn read(&mut self, column: u32, _: u64, _: &mut [u8]) -> Result<(), BoxedError> {
        Err(format!("column {column} is not on the host").into())
    }
}

fn run_tiles(
    ring: &mut Ring,
    work: &ProgramLauncher,
    upload: Option<&mut Upload>,
    from: &mut dyn ReadColumns,
    download: &mut Download,
    to: &mut dyn WriteColumns,
) -> Result<()> {
    let plan = &work.plan;
    let mut source = |offset: u64, into: &mut [u8]| fill(plan, offset / plan.input_bytes(), into, from);
    let mut sink = |offset: u64, bytes: &[u8]| take(plan, offset / plan.output_bytes(), bytes, to);
    let of_a_tile = if plan.is_streamed() {
        plan.input_bytes()
    } else {
        plan.output_bytes()
    };
    let job = RingJob {
        total_bytes: plan.tiles() * of_a_tile,
        upload: match upload {
            Some(upload) => Some((upload, &mut source)),
            None => None,
        },
        download: Some((download, &mut sink)),
    };
    ring.run(job, &mut |chunk| work.tile(&chunk))?;
    ring.finish()
}

/// Fills a tile: column after column, each with the rows that its rotations reach, which wrap around.
fn fill(
    plan: &ProgramPlan,
    tile: u64,
    into: &mut [u8],
    from: &mut dyn ReadColumns,
) -> Result<(), BoxedError> {
    let element_bytes = plan.element_bytes();
    let (first, count) = rows_of(plan, tile);
    let mut rest = into;
    for halo in plan.halos() {
        let (mut column, others) = rest.split_at_mut(plan.halo_bytes(halo) as usize);
        rest = others;
        // Both are below 2^33, by the plan.
        let mut at = (first as i64 + halo.first).rem_euclid(plan.rows() as i64) as u64;
        let mut left = count + (halo.last - halo.first).unsigned_abs();
        while left > 0 {
            let rows = left.min(plan.rows() - at);
            let (now, later) = column.split_at_mut((rows * element_bytes) as usize);
            from.read(halo.column, at, now)?;
            (column, left, at) = (later, left - rows, 0);
        }
        // The last tile may be shorter; the rest of its buffer is zeros.
        column.fill(0);
    }
    Ok(())
}

fn take(plan: &ProgramPlan, tile: u64, bytes: &[u8], to: &mut dyn WriteColumns) -> Result<(), BoxedError> {
    let element_bytes = plan.element_bytes();
    let (first, count) = rows_of(plan, tile);
    let lines = bytes.chunks_exact((plan.tile_rows() * element_bytes) as usize);
    (0..)
        .zip(lines)
        .try_for_each(|(output, line)| to.write(output, first, &line[..(count * element_bytes) as usize]))
}

/// The first row of a tile, and its number of rows.
fn rows_of(plan: &ProgramPlan, tile: u64) -> (u64, u64) {
    let first = tile * plan.tile_rows();
    (first, plan.tile_rows().min(plan.rows() - first))
}

impl ProgramLauncher {
    /// Constants, instructions, and for each buffer of the ring the addresses of queries and outputs.
    fn tables(&mut self, ring: &Ring, resident: Option<&Resident>) -> Result<Vec<u8>> {
        let (program, plan) = (self.engine.program(), &self.plan);
        let pad = |bytes: &mut Vec<u8>| bytes.resize(bytes.len().next_multiple_of(16), 0);
        let (mut bytes, instructions) = Strips::code(&self.engine);
        self.places.instructions = instructions;
        let starts: Vec<(Halo, u64)> = plan
            .halos()
            .iter()
            .scan(0, |start, halo| {
                let this = *start;
                *start += plan.halo_bytes(halo);
                Some((*halo, this))
            })
            .collect();
        let mut of_buffers = Vec::new();
        for [columns, results] in ring.addresses() {
            let queries = bytes.len() as u64;
            for query in program.queries() {
                let rotation = i64::from(query.rotation);
                let of_tile = starts.iter().find(|(halo, _)| halo.column == query.column);
                let (address, rotation) = match (resident, of_tile) {
                    (Some(resident), _) => {
                        let address = resident.address(query.column, plan.rows(), plan.element_bytes())?;
                        (address, rotation)
                    }
                    // Every column that the program reads has a halo.
                    (None, of_tile) => {
                        of_tile.map_or((0, 0), |(halo, start)| (columns + start, rotation - halo.first))
                    }
                };
                bytes.extend(address.to_le_bytes());
                bytes.extend(rotation.to_le_bytes());
            }
            let outputs = bytes.len() as u64;
            for output in 0..u64::from(program.outputs()) {
                let address = results + output * plan.tile_rows() * plan.element_bytes();
                bytes.extend(address.to_le_bytes());
            }
            pad(&mut bytes);
            of_buffers.push([queries, outputs]);
        }
        self.places.of_buffers = of_buffers;
        Ok(bytes)
    }

    /// Queues a tile.
    fn tile(&self, chunk: &Chunk<'_>) -> Result<()> {
        let plan = &self.plan;
        let (first, count) = rows_of(plan, chunk.piece.index);
        let at = |offset: u64| self.tables.memory().at(offset, 0);
        let Some(&[queries, outputs]) = self.places.of_buffers.get(chunk.place) else {
            return Err(Error::Unusable {
                what: "a constraint program",
            });
        };
        // Streamed rows are numbered from the first of the tile.
        let rows = match plan.columns() {
            Columns::Resident => (plan.rows(), first),
            Columns::Streamed => (NEVER_WRAPS, 0),
        };
        let addresses = Addresses {
            constants: at(0)?,
            instructions: at(self.places.instructions)?,
            queries: at(queries)?,
            outputs: at(outputs)?,
            scratch: self.scratch.as_ref().map_or(0, DeviceBuffer::address),
        };
        run_strips((&self.engine, plan), chunk.stream, addresses, rows, count)
    }
}
