//! Stages of `plonkish`, dry: lookups, grand products, the quotient.

use super::ledger::{Ledger, SCALAR_BYTES, Sheet, Work, pages};
use super::stages::products;
use super::{Job, LookupShape, Shape};
use crate::Result;
use crate::column::{Placement, SCRATCH_FRAME_BYTES};
use crate::plonkish::evaluate::register_scalars;
use crate::plonkish::product::{PRODUCT_TILES, chunk_bytes_within, digest_bytes};
use crate::plonkish::windows::WindowsShape;
use crate::plonkish::{QuotientPlan, QuotientShape, SortPlan};

impl Ledger {
    /// The sides of a lookup that are no columns yet, evaluated row by row.
    pub fn evaluate_rows(
        &mut self,
        lookup: &LookupShape,
        columns: &[Sheet],
        rows: u64,
    ) -> Result<Vec<Sheet>> {
        let outputs = lookup.plain.iter().filter(|plain| plain.is_none()).count();
        if outputs == 0 {
            return Ok(Vec::new());
        }
        let reads: Vec<(Sheet, i64, u64)> = (lookup.reads.iter())
            .map(|&(column, (first, last))| {
                (
                    columns[column],
                    i64::from(first),
                    (i64::from(last) - i64::from(first)) as u64,
                )
            })
            .collect();
        let shape = WindowsShape {
            rows,
            element_bytes: SCALAR_BYTES,
            windows: reads
                .iter()
                .map(|(column, _, halo)| (*halo, column.frame_elements()))
                .collect(),
            registers: lookup.registers,
            outputs,
        };
        let available = self.available_bytes();
        let needed = |chunk: u64| shape.leased_bytes(chunk, Placement::Auto, available);
        let Some(chunk) = shape.chunks().find(|chunk| needed(*chunk) <= available) else {
            let least = shape.chunks().map(needed).min();
            return Err(self.refused(least.unwrap_or(0)));
        };
        let before = self.held_bytes();
        for (column, first, halo) in &reads {
            let window = Window {
                column,
                rows,
                chunk,
                first: *first,
                halo: *halo,
            };
            let (largest, all) = window.bytes();
            self.hold(pages(largest) + pages((chunk + halo) * SCALAR_BYTES))?;
            self.read_bytes(column, all);
        }
        let mut made = Vec::new();
        for _ in 0..outputs {
            let output = self.draft(rows, SCALAR_BYTES, Placement::Auto, shape.frame_bytes(chunk))?;
            self.hold(pages(chunk * SCALAR_BYTES))?;
            self.written(&output);
            made.push(output);
        }
        let (registers, _) = register_scalars(lookup.registers, rayon::current_num_threads());
        self.hold(pages(registers as u64 * SCALAR_BYTES))?;
        self.hold(made.iter().map(|output| output.writer_bytes(chunk)).sum())?;
        self.passed(1);
        self.computed(products(lookup.instructions as f64 * rows as f64));
        self.release_to(before + made.iter().map(Sheet::held_bytes).sum::<u64>());
        Ok(made)
    }

    /// The permuted columns of a lookup.
    pub fn permute(&mut self, input: &Sheet, table: &Sheet, usable: u64) -> Result<[Sheet; 2]> {
        let rows = input.len;
        let permuted_input = self.sort(input, usable, rows - usable)?;
        let sorted_table = self.sort(table, usable, 0)?;
        let before = self.held_bytes();
        let sorted = permuted_input.prefix(usable);
        let walks = [sorted, sorted, sorted_table];
        let chunk = self.chunk(&walks, rows, 3)?;
        let permuted_table = self.scalars(rows, Placement::Disk)?;
        for walk in &walks {
            self.hold(walk.reader_bytes(chunk, 2) + pages(chunk.min(walk.len) * SCALAR_BYTES))?;
            self.read(walk, walk.len);
        }
        self.hold(permuted_table.writer_bytes(chunk))?;
        self.written(&permuted_table);
        self.passed(1);
        self.computed(products(4.0 * rows as f64));
        self.release_to(before + permuted_table.held_bytes());
        self.free(sorted_table);
        Ok([permuted_input, permuted_table])
    }

    /// The first `len` values in order, and a tail.
    fn sort(&mut self, values: &Sheet, len: u64, tail: u64) -> Result<Sheet> {
        let tail_digests = digest_bytes(tail * SCALAR_BYTES);
        let available = self.available_bytes().saturating_sub(tail_digests);
        let plan = SortPlan::new(len, values.frame_bytes, available)
            .map_err(|needed| self.refused(needed + tail_digests))?;
        let rounds = plan.rounds();
        let before = self.held_bytes();
        let values = values.prefix(len);
        let mut sorted = self.scalars(len + if rounds == 0 { tail } else { 0 }, Placement::Disk)?;
        self.hold(sorted.writer_bytes(plan.run_chunk) + values.reader_bytes(plan.run_chunk, 2))?;
        self.hold(pages(plan.run.min(len) * SCALAR_BYTES))?;
        self.read(&values, len);
        self.written(&sorted);
        self.release_to(before + sorted.held_bytes());
        let mut run = plan.run;
        while run < len && rounds > 0 {
            let longer = run.saturating_mul(plan.fan_in.max(2));
            let merged = self.scalars(len + if longer < len { 0 } else { tail }, Placement::Disk)?;
            let together = len.div_ceil(run).min(plan.fan_in.max(2));
            let chunk = plan.merge_chunk.min(run);
            let one = sorted.prefix(run.min(len)).reader_bytes(chunk, 2);
            self.hold(2 * pages(2 * chunk * together * SCALAR_BYTES) + together * one)?;
            self.hold(merged.writer_bytes(plan.write_chunk))?;
            self.read(&sorted, len);
            self.written(&merged);
            self.release_to(before + sorted.held_bytes() + merged.held_bytes());
            self.free(sorted);
            (sorted, run) = (merged, longer);
        }
        self.passed(1 + u64::from(rounds));
        self.computed(products(len as f64 * f64::from(len.max(2).ilog2())));
        Ok(sorted)
    }

    /// A grand product over columns, with `tiles` chunks of its own.
    pub fn product(&mut self, columns: &[Sheet], rows: u64, tail: u64, tiles: u64) -> Result<Sheet> {
        let chunk = self.chunk(columns, rows, PRODUCT_TILES + tiles)?;
        let before = self.held_bytes();
        let computed = rows - tail;
        for column in columns {
            self.hold(column.prefix(computed).reader_bytes(chunk, 2))?;
            self.read(column, computed);
        }
        self.hold((PRODUCT_TILES + tiles) * pages(chunk.min(computed) * SCALAR_BYTES))?;
        let product = self.scalars(rows, Placement::Disk)?;
        self.hold(product.writer_bytes(chunk))?;
        self.written(&product);
        self.passed(1);
        self.computed(products((2 * columns.len() as u64 + 8) as f64 * rows as f64));
        self.release_to(before + product.held_bytes());
        Ok(product)
    }

    /// Elements of the chunks of a pass that writes a column of `rows`.
    pub fn chunk(&self, columns: &[Sheet], rows: u64, tiles: u64) -> Result<u64> {
        let frame_bytes = columns.iter().map(|column| column.frame_bytes).max().unwrap_or(0);
        let digests = digest_bytes(rows * SCALAR_BYTES);
        chunk_bytes_within(
            self.available_bytes(),
            columns.len() as u64,
            frame_bytes,
            digests,
            tiles,
        )
        .map(|bytes| bytes / SCALAR_BYTES)
        .map_err(|needed| self.refused(needed))
    }

    /// The pieces of the quotient.
    pub fn quotient(&mut self, shape: &Shape, sources: &[Sheet]) -> Result<Vec<Sheet>> {
        let numerator = &shape.numerator;
        let quotient = QuotientShape {
            log_n: shape.log_n,
            log_cosets: shape.log_cosets,
            pieces: shape.pieces,
            read: numerator.read.clone(),
            computed: numerator.computed.clone(),
            registers: numerator.registers,
            frame_elements: sources.iter().map(Sheet::frame_elements).max().unwrap_or(1),
        };
        let plan = match QuotientPlan::new(&quotient, self.available_bytes()) {
            Ok(plan) => plan,
            Err(crate::Error::BudgetTooSmall { needed_bytes, .. }) => return Err(self.refused(needed_bytes)),
            Err(other) => return Err(other),
        };
        for _ in 0..1u64 << shape.log_cosets {
            let offered = Job::Coset {
                log_rows: plan.rows().ilog2(),
                log_columns: plan.row_len().ilog2(),
                columns: (numerator.read.len() + numerator.computed.len()) as u64,
                ends_bytes: plan.tier_ends_bytes(),
            };
            self.offered(offered, plan.held_on_coset_bytes());
        }
        let before = self.held_bytes();
        self.hold(plan.leased_bytes())?;
        let (cosets, rows) = (1u64 << shape.log_cosets, shape.rows());
        // Small columns are in memory, and are read for nothing.
        let in_memory = sources.iter().filter(|source| source.in_memory).count() as u64;
        let input_bytes = (SCALAR_BYTES * rows).next_multiple_of(quotient.frame_elements * SCALAR_BYTES);
        let unread = plan.input_passes() * input_bytes * in_memory.min(numerator.read.len() as u64);
        self.moved(plan.bytes_read().saturating_sub(unread), plan.bytes_written());
        self.passed(plan.passes());
        let columns = plan.cosets_together() * numerator.read.len() as u64;
        let between = (columns + 1 + cosets) * SCALAR_BYTES * rows;
        self.disk(between);
        self.undisk(between);
        let lines = (numerator.read.len() as u64 + 1) * cosets;
        self.computed(Work {
            butterflies: lines as f64 * rows as f64 * f64::from(shape.log_n) / 2.0,
            ..products((numerator.instructions as u64 * cosets * rows) as f64)
        });
        self.release_to(before);
        let placement = if plan.results_on_disk() {
            Placement::Disk
        } else {
            Placement::Memory
        };
        let frame_bytes = if cosets == 1 {
            plan.frame_bytes()
        } else {
            SCRATCH_FRAME_BYTES as u64
        };
        (0..shape.pieces)
            .map(|_| self.draft(rows, SCALAR_BYTES, placement, frame_bytes))
            .collect()
    }
}

/// A window that slides over a column, chunk by chunk.
struct Window<'a> {
    column: &'a Sheet,
    rows: u64,
    chunk: u64,
    first: i64,
    halo: u64,
}

impl Window<'_> {
    /// The largest read, and all of them.
    fn bytes(&self) -> (u64, u64) {
        let chunks = self.rows.div_ceil(self.chunk);
        // All but the first and the last stand alike in their frames, as chunks are whole frames or whole parts of one.
        let seen: Vec<u64> = match chunks {
            0..=64 => (0..chunks).map(|chunk| self.frames(chunk)).collect(),
            _ => vec![self.frames(0), self.frames(chunks / 2), self.frames(chunks - 1)],
        };
        let largest = seen.iter().copied().max().unwrap_or(0);
        let all = match seen[..] {
            [first, middle, last] if chunks > 64 => first + (chunks - 2) * middle + last,
            _ => seen.iter().sum(),
        };
        (largest * self.column.frame_bytes, all * self.column.frame_bytes)
    }

    /// Frames of a chunk's window.
    fn frames(&self, chunk: u64) -> u64 {
        let (at, frame) = (chunk * self.chunk, self.column.frame_elements());
        let start = (at as i64 + self.first).rem_euclid(self.rows as i64) as u64;
        let len = (self.chunk.min(self.rows - at) + self.halo).min(self.rows);
        let head = len.min(self.rows - start);
        let covered = |start: u64, len: u64| match len {
            0 => 0,
            _ => (start + len - 1) / frame - start / frame + 1,
        };
        let both = covered(start, head) + covered(0, len - head);
        // Going round to the frame that it stands in.
        let shared = len > head && (start + head - 1) / frame == 0;
        both - u64::from(shared)
    }
}
