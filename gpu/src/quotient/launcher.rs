//! The launches over the rows of a coset, in the order of one stream.

use spillproof_engine::accelerator::{Input, Order, RowSource, Run};

use super::plan::{CosetPlan, LOG_BATCH_MAX, halo};
use super::tables::{CosetConstants, TablePlaces, tables};
use crate::buffer::DeviceBuffer;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, Kernels};
use crate::ntt::{
    DeviceTables, ELEMENT_BYTES, Layout, Powers, Route, RowBatch, Rows, Scale, copy_rows, transform_to,
};
use crate::program::{Addresses, ProgramKernels, Strips};
use crate::raw::Event;
use crate::ring::Chunk;
use crate::stream::Stream;
use crate::vram::Vram;

/// The rows of one column on the device.
#[derive(Debug, Clone, Copy)]
struct Window {
    input: Input,
    /// Its first row in the buffer of all windows.
    before: u64,
    halo: u64,
}

/// Rows of a chunk that belong to one input and one tile.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkRows {
    pub rows: u64,
    /// The number of the window.
    window: usize,
    /// Their place in the window, and the number of the first row.
    place: u64,
    first_row: i64,
    /// The tile that these rows complete, if any.
    pub completes: Option<u64>,
}

/// The buffers and kernels of a coset; queues its launches.
#[derive(Debug)]
pub(super) struct CosetLauncher {
    plan: CosetPlan,
    order: Order,
    program: ProgramKernels,
    strips: Strips,
    kernel: Kernel,
    places: TablePlaces,
    tables: DeviceBuffer,
    windows: DeviceBuffer,
    results: DeviceBuffer,
    through: DeviceBuffer,
    scratch: Option<DeviceBuffer>,
    /// All rows of the columns that are read, if the device makes them, and what is between the passes.
    all_rows: Option<DeviceBuffer>,
    between: Option<DeviceBuffer>,
    columns: Vec<Window>,
    /// The columns that are read, in order.
    read: Vec<usize>,
    /// The addresses for each buffer of results.
    addresses: Vec<Addresses>,
    ready: Vec<Event>,
}

impl CosetLauncher {
    pub fn new(
        vram: &Vram,
        kernels: &Kernels,
        program: ProgramKernels,
        plan: CosetPlan,
        constants: CosetConstants,
        stream: &Stream,
    ) -> Result<Self> {
        let kernel = kernels.kernel("spk_ntt_pass_bn254_fr")?;
        let rows = |rows: u64, what: &'static str| vram.buffer(rows * plan.row_bytes(), what);
        let mut before = 0;
        let columns = plan.shape().inputs.iter().map(|&input| {
            let window = Window {
                input,
                before,
                halo: halo(&input),
            };
            before += plan.tile_rows() + window.halo;
            window
        });
        let columns: Vec<Window> = columns.collect();
        let is_read = |&at: &usize| columns[at].input.rows == RowSource::Read;
        let read: Vec<usize> = (0..columns.len()).filter(is_read).collect();
        let rotations = read.iter().map(|&at| columns[at].input.rotations);
        let order = Order::new(rotations, plan.shape().log_rows, plan.log_tile_rows());
        let (content, places) = tables(&plan, constants)?;
        let if_any = |bytes: u64, what: &'static str| match bytes {
            0 => Ok(None),
            bytes => vram.buffer(bytes, what).map(Some),
        };
        let scratch = if_any(plan.scratch_bytes(), "program scratch")?;
        let context = vram.gpu().context();
        let mut work = Self {
            order,
            strips: Strips::new(&program, plan.tile_rows() << plan.shape().log_columns),
            program,
            kernel,
            places,
            tables: vram.buffer(plan.table_bytes(), "tables of a quotient")?,
            windows: rows(plan.window_rows(), "rows on a coset")?,
            results: rows(plan.result_rows(), "quotient rows")?,
            through: rows(plan.through_rows(), "rows between passes")?,
            scratch,
            all_rows: if_any(plan.shape().columns_bytes(), "rows of all columns")?,
            between: if_any(plan.between_bytes(), "columns between passes")?,
            columns,
            read,
            addresses: Vec::new(),
            ready: (0..plan.results())
                .map(|_| Event::between_streams(context))
                .collect::<Result<_>>()?,
            plan,
        };
        let content = work.with_code(content);
        stream.write((&work.tables, 0), &content)?;
        Ok(work)
    }

    /// Appends the program's code to the tables, and sets the addresses.
    fn with_code(&mut self, mut content: Vec<u8>) -> Vec<u8> {
        let table = self.tables.address();
        let constants = table + content.len() as u64;
        let (code, instructions) = Strips::code(&self.program);
        content.extend(code);
        let queries = table + content.len() as u64;
        let n2 = 1i64 << self.plan.shape().log_columns;
        for query in self.program.program().queries() {
            let of_query = |window: &&Window| window.input.column == query.column as usize;
            // Every query has a window: the plan checks it.
            let (before, first) = self
                .columns
                .iter()
                .find(of_query)
                .map_or((0, query.rotation), |window| {
                    (window.before, window.input.rotations.0)
                });
            let address = self.windows.address() + before * self.plan.row_bytes();
            content.extend(address.to_le_bytes());
            let rotation = (i64::from(query.rotation) - i64::from(first)) * n2;
            content.extend(rotation.to_le_bytes());
        }
        for place in 0..self.plan.results() {
            self.addresses.push(Addresses {
                constants,
                instructions: constants + instructions,
                queries,
                outputs: table + content.len() as u64,
                scratch: self.scratch.as_ref().map_or(0, DeviceBuffer::address),
            });
            let address = self.results.address() + place * self.tile_bytes();
            content.extend(address.to_le_bytes());
            content.extend([0; 8]);
        }
        content
    }

    pub fn plan(&self) -> &CosetPlan {
        &self.plan
    }

    pub fn tiles(&self) -> u64 {
        self.order.tiles()
    }

    /// The quotient's rows of a tile: their buffer, their first byte, and the event of their computation.
    pub fn result(&self, tile: u64) -> (&DeviceBuffer, u64, &Event) {
        let place = tile % self.plan.results();
        (
            &self.results,
            place * self.tile_bytes(),
            &self.ready[place as usize],
        )
    }

    /// The next part of a chunk, after `done` of its rows.
    pub fn part(&self, chunk: &Chunk<'_>, done: u64) -> Option<ChunkRows> {
        let row_bytes = self.plan.row_bytes();
        let left = (chunk.piece.bytes / row_bytes)
            .checked_sub(done)
            .filter(|&left| left > 0)?;
        let position = chunk.piece.offset / row_bytes + done;
        let run = self.order.run_at(position)?;
        let (within, window) = (position - run.before, *self.read.get(run.input)?);
        let rows = left.min(run.rows - within).min(self.plan.batch_rows());
        let place = match run.tile {
            0 => within,
            _ => self.columns[window].halo + within,
        };
        let is_last = run.input + 1 == self.read.len() && within + rows == run.rows;
        Some(ChunkRows {
            rows,
            window,
            place,
            first_row: run.first_row + within as i64,
            completes: is_last.then_some(run.tile),
        })
    }

    /// All runs of rows, in order, if the device has them.
    pub fn runs(&self) -> impl Iterator<Item = Run> + use<> {
        self.order.clone().runs()
    }

    /// Queues the copy of coefficients to where the rows of a column will be.
    pub fn receive(
        &self,
        stream: &Stream,
        (column, at): (u64, u64),
        from: (&DeviceBuffer, u64),
        bytes: u64,
    ) -> Result<()> {
        let to = column * self.plan.column_bytes() + at;
        stream.copy((self.all_rows()?, to), from, bytes)
    }

    /// Queues the copy of coefficients that came to a buffer.
    pub fn keep(&self, stream: &Stream, column: u64, to: &DeviceBuffer) -> Result<()> {
        let bytes = self.plan.column_bytes();
        stream.copy((to, 0), (self.all_rows()?, column * bytes), bytes)
    }

    /// Queues the transform of a column to rows: of its coefficients in a buffer, or those that came.
    pub fn to_rows(&self, stream: &Stream, column: u64, from: Option<&DeviceBuffer>) -> Result<()> {
        let wrong = Error::Unusable { what: "a quotient" };
        let (step, shift) = self.places.to_rows.as_ref().ok_or(wrong)?;
        let n2 = 1u64 << self.plan.shape().log_columns;
        let across = Layout { stride: n2, batch: 1 };
        for first in (0..n2).step_by(1 << LOG_BATCH_MAX) {
            let before = Scale {
                powers: *shift,
                exponent: [n2, 0, first, 1],
            };
            let after = Scale {
                powers: self.points()?,
                exponent: [first, 1, 0, 0],
            };
            let batch = RowBatch {
                step,
                count: (n2 - first).min(1 << LOG_BATCH_MAX),
                layouts: [across; 2],
                scales: [Some(before), Some(after)],
            };
            let at = |buffer: &DeviceBuffer, start: u64| buffer.memory().at(start + first * ELEMENT_BYTES, 0);
            let to = at(self.all_rows()?, column * self.plan.column_bytes())?;
            let route = Route {
                from: from.map_or(Ok(to), |from| at(from, 0))?,
                through: self.between.as_ref().map_or(Ok(to), |between| at(between, 0))?,
                to,
            };
            transform_to(&self.kernel, stream, &self.on_device(), &batch, route)?;
        }
        Ok(())
    }

    /// Queues the transform of rows that the device has to their window.
    pub fn arrive_from_all(&self, stream: &Stream, run: Run) -> Result<()> {
        let window = self.read.get(run.input).and_then(|&at| self.columns.get(at));
        let window = window.ok_or(Error::Unusable { what: "a quotient" })?;
        let place = match run.tile {
            0 => window.before,
            _ => window.before + window.halo,
        };
        let n1 = 1u64 << self.plan.shape().log_rows;
        let of_column = run.input as u64 * self.plan.column_bytes();
        for (done, row, rows) in spans(run.first_row, run.rows, n1, self.plan.batch_rows()) {
            let start = of_column + row * self.plan.row_bytes();
            let from = Rows {
                address: self
                    .all_rows()?
                    .memory()
                    .at(start, rows * self.plan.row_bytes())?,
                layout: self.along(),
            };
            self.transform(from, place + done, rows, [None; 2], stream)?;
            self.go_round(place + done, run.first_row + done as i64, rows, stream)?;
        }
        Ok(())
    }

    fn all_rows(&self) -> Result<&DeviceBuffer> {
        self.all_rows
            .as_ref()
            .ok_or(Error::Unusable { what: "a quotient" })
    }

    /// Queues the transform of rows from the chunk to their window.
    pub fn arrive(&self, chunk: &Chunk<'_>, done: u64, part: ChunkRows) -> Result<()> {
        let from = chunk.buffer.memory().at(done * self.plan.row_bytes(), 0)?;
        let (to, rows) = (self.columns[part.window].before + part.place, part.rows);
        self.transform(
            Rows {
                address: from,
                layout: self.along(),
            },
            to,
            rows,
            [None; 2],
            chunk.stream,
        )?;
        self.go_round(to, part.first_row, rows, chunk.stream)
    }

    /// Queues the computation of a tile whose rows have all arrived.
    pub fn compute(&self, stream: &Stream, tile: u64) -> Result<()> {
        for column in &self.columns {
            let tile_rows = self.plan.tile_rows();
            let first = i64::from(column.input.rotations.0);
            let (place, first, rows) = match tile {
                0 => (column.before, first, tile_rows + column.halo),
                _ => {
                    let first = first + (column.halo + tile * tile_rows) as i64;
                    (column.before + column.halo, first, tile_rows)
                }
            };
            match column.input.rows {
                RowSource::Read => {}
                RowSource::Identity => self.identity(place, first, rows, stream)?,
                RowSource::FirstLagrange => self.first_lagrange(place, first, rows, stream)?,
            }
        }
        let place = (tile % self.plan.results()) as usize;
        self.strips.queue(&self.program, stream, self.addresses[place])?;
        self.transform_back(stream, tile)?;
        stream.raw().record(&self.ready[place])?;
        if tile + 1 < self.tiles() {
            self.slide(stream)?;
        }
        Ok(())
    }

    /// Queues rows of X: the points themselves.
    fn identity(&self, place: u64, first: i64, rows: u64, stream: &Stream) -> Result<()> {
        let (log_rows, log_columns) = (self.plan.shape().log_rows, self.plan.shape().log_columns);
        let n = 1u64 << (log_rows + log_columns);
        let tables = self.on_device();
        let nowhere = Layout { stride: 0, batch: 0 };
        for (done, row, rows) in spans(first, rows, n, 1 << LOG_BATCH_MAX) {
            let by = Scale {
                powers: self.points()?,
                exponent: [1 << log_rows, 0, row, 1],
            };
            copy_rows(
                &self.kernel,
                stream,
                &tables,
                (log_columns, rows),
                [
                    Rows {
                        address: tables.at(self.places.shift)?,
                        layout: nowhere,
                    },
                    Rows {
                        address: self.window_at(place + done)?,
                        layout: self.along(),
                    },
                ],
                Some(by),
            )?;
        }
        Ok(())
    }

    /// Queues rows of the first Lagrange polynomial, from the powers of the shift.
    fn first_lagrange(&self, place: u64, first: i64, rows: u64, stream: &Stream) -> Result<()> {
        let log_rows = self.plan.shape().log_rows;
        let address = self.on_device().at(self.places.shift_row)?;
        for (done, row, rows) in spans(first, rows, 1 << log_rows, self.plan.batch_rows()) {
            let before = Scale {
                powers: self.points()?,
                exponent: [row, 1, 0, 0],
            };
            let after = Scale {
                powers: Powers::listed(self.places.lagrange + row, log_rows + 1),
                exponent: [0, 0, 0, 1],
            };
            let from = Rows {
                address,
                layout: Layout { stride: 1, batch: 0 },
            };
            self.transform(from, place + done, rows, [Some(before), Some(after)], stream)?;
            self.go_round(place + done, first + done as i64, rows, stream)?;
        }
        Ok(())
    }

    /// Queues the transform of `count` rows to a place in the windows.
    fn transform(
        &self,
        from: Rows,
        place: u64,
        count: u64,
        scales: [Option<Scale>; 2],
        stream: &Stream,
    ) -> Result<()> {
        let rows = RowBatch {
            step: &self.places.steps[0],
            count,
            layouts: [from.layout, self.along()],
            scales,
        };
        let route = Route {
            from: from.address,
            through: self.through.address(),
            to: self.window_at(place)?,
        };
        transform_to(&self.kernel, stream, &self.on_device(), &rows, route)
    }

    /// Queues the rotation of rows that wrap around the matrix.
    fn go_round(&self, place: u64, first_row: i64, rows: u64, stream: &Stream) -> Result<()> {
        let shape = self.plan.shape();
        let (n1, n2) = (1i64 << shape.log_rows, 1i64 << shape.log_columns);
        let row_bytes = self.plan.row_bytes();
        for (place, row) in (place..place + rows).zip(first_row..) {
            let around_bytes = row.div_euclid(n1).rem_euclid(n2) as u64 * ELEMENT_BYTES;
            if around_bytes == 0 {
                continue;
            }
            let (at, rest_bytes) = (place * row_bytes, row_bytes - around_bytes);
            stream.copy((&self.through, 0), (&self.windows, at), row_bytes)?;
            stream.copy((&self.windows, at), (&self.through, around_bytes), rest_bytes)?;
            stream.copy((&self.windows, at + rest_bytes), (&self.through, 0), around_bytes)?;
        }
        Ok(())
    }

    /// Queues the transform back of the quotient's rows of a tile, in place.
    fn transform_back(&self, stream: &Stream, tile: u64) -> Result<()> {
        let (rows, first_byte, _) = self.result(tile);
        let at = rows.memory().at(first_byte, self.tile_bytes())?;
        let (tile_rows, tables) = (self.plan.tile_rows(), self.on_device());
        let twist = Scale {
            powers: self.places.twist,
            exponent: [tile * tile_rows, 1, 0, 0],
        };
        let batch = RowBatch {
            step: &self.places.steps[1],
            count: tile_rows,
            layouts: [self.along(); 2],
            scales: [None, Some(twist)],
        };
        let route = Route {
            from: at,
            through: self.through.address(),
            to: at,
        };
        transform_to(&self.kernel, stream, &tables, &batch, route)?;
        let shift_back = Scale {
            powers: self.places.shift_back,
            exponent: [1, 0, 0, 0],
        };
        let here = Rows {
            address: at,
            layout: self.along(),
        };
        let size = (self.plan.shape().log_columns, tile_rows);
        copy_rows(&self.kernel, stream, &tables, size, [here; 2], Some(shift_back))
    }

    /// Queues the copies of the rows that the next tile shares to the starts of the windows, in pieces that
    /// do not overlap their destination.
    fn slide(&self, stream: &Stream) -> Result<()> {
        let (tile_rows, row_bytes) = (self.plan.tile_rows(), self.plan.row_bytes());
        for column in &self.columns {
            for first in (0..column.halo).step_by(tile_rows as usize) {
                let rows = tile_rows.min(column.halo - first);
                let to = (column.before + first) * row_bytes;
                let from = to + tile_rows * row_bytes;
                stream.copy((&self.windows, to), (&self.windows, from), rows * row_bytes)?;
            }
        }
        Ok(())
    }

    fn window_at(&self, place: u64) -> Result<u64> {
        self.windows.memory().at(place * self.plan.row_bytes(), 0)
    }

    fn points(&self) -> Result<Powers> {
        self.places.points.ok_or(Error::Unusable { what: "a quotient" })
    }

    /// The layout of contiguous rows.
    fn along(&self) -> Layout {
        Layout {
            stride: 1,
            batch: 1 << self.plan.shape().log_columns,
        }
    }

    fn tile_bytes(&self) -> u64 {
        self.plan.tile_rows() * self.plan.row_bytes()
    }

    fn on_device(&self) -> DeviceTables<'_> {
        DeviceTables::new(&self.tables, ELEMENT_BYTES)
    }
}

/// Splits rows `first ..` into spans of at most `most` rows that do not cross a multiple of `modulus`. A span
/// is the rows before it, its first row modulo `modulus`, and its length.
fn spans(first: i64, rows: u64, modulus: u64, most: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let row = (first + done as i64).rem_euclid(modulus as i64) as u64;
        let here = (rows - done).min(modulus - row).min(most);
        let span = (done, row, here);
        done += here;
        (here > 0).then_some(span)
    })
}
