//! How a quotient is cut, and what that takes: memory, and bytes read and written, before any work.
//!
//! Three passes over each coset ([`super`]) share one matrix of `n1` rows and `n2` columns, `n = n1 * n2`:
//! panels of `width` columns on the way to the coset and back, tiles of `tile_rows` rows in between. A
//! panel's runs on disk are `width` scalars, a tile's are whole rows. Few large pieces are better than many
//! small ones; what decides is the memory, of which a panel takes `n1 * width` scalars twice, and a tile
//! `tile_rows` rows twice and its halo for *every* column. So many columns want short rows, and few columns
//! long ones: all splits near `sqrt(n)` are tried.
//!
//! Columns of coefficients are read once for `together` cosets: more of them save reads, and cost bands.
//!
//! Several panels go to the coset side by side, in lanes with a panel each: while one of them waits for the
//! disk, or for the thread that encodes its band, the others keep the threads busy. So do several walks along
//! the rows, each with a tile of its own: the rows around a walk's stretch are read and transformed by it,
//! too. One lane and one walk need least memory.
//!
//! Memory, in bytes, where c columns are read from coefficients in l lanes, e are computed, w walks go side
//! by side, M is the number of cosets, t of them taken together, and d is what a scratch column keeps: its
//! digests, where frames do not carry them. A column in memory keeps its bytes. The first columns that were
//! taken to a coset are in memory, as many as there is room for; where all of them are, and there is room for
//! the rest, so is the rest:
//!
//! ```text
//! to the coset:    (t c + M - t) * d + l * 32 * (2 * n1 + (t > 1) * n1 + bands * band_rows) * width
//! on the coset:    (t c + M - t + 1) * d + w * 32 * n2 * ((2 c + e + 3) * tile_rows + halos) + 32 * n2 + registers of all threads
//! from the coset:  ((t - 1) c + M - t + 2) * d + l * 32 * (2 * n1 + bands * band_rows) * width
//! pieces:          M * d + pieces * d + 32 * chunk * (2 * M + 3 * pieces)
//! ```
//!
//! where a lane has `bands = max(2 t, 14 t / l)` that are being written.

use std::sync::Arc;

use super::shape::{QuotientShape, SCALAR_BYTES};
use crate::stages::evaluate::register_scalars;
use crate::stages::windows::pages;
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::budget::{Budget, PAGE_BYTES};
use spillproof_engine::column::{Placement, SCRATCH_FRAME_BYTES, digests_beside, memory_bytes};
use spillproof_engine::dry::{Job, Work};
use spillproof_engine::stream::linear_combinations_bytes;

/// log2 of the scalars in the smallest frame: of the shortest run that is written.
const LOG_RUN_MIN: u32 = 7;
/// Largest panel in bytes.
const PANEL_BYTES_MAX: u64 = 16 << 20;
/// Largest sum of the panels of all columns in flight.
const PANELS_BYTES_MAX: u64 = 64 << 20;
/// Largest part of a tile that belongs to one column, in bytes.
const TILE_BYTES_MAX: u64 = 1 << 20;

/// Bytes of a band, in which a panel is written.
const BAND_BYTES: u64 = 1 << 20;
/// Bands that a panel has at least, where it has the rows.
const BANDS_OF_PANEL_MIN: u64 = 16;
/// Threads that one lane or one walk keeps busy: with fewer, all of them wait for the disk at the same time,
/// and writes come in bursts.
const THREADS_EACH: usize = 2;
/// Bands of each coset's columns that are being written at most, of all lanes together, while the next panels
/// are transformed.
const BANDS_BEHIND: u64 = 14;
/// The same of one lane, at least.
const BANDS_OF_LANE_MIN: u64 = 2;
/// A transfer costs as much as this many bytes more would.
const TRANSFER_BYTES: u64 = 8 << 10;
/// A tile or panel costs as much as this many bytes more would, for its start and end on all threads.
const STEP_BYTES: u64 = 128 << 10;
/// This part of what is available stays free where that is possible: a quotient writes more files, and in
/// more places, than all else, and what the file system notes about them is in memory too (6 MiB at k = 22),
/// in no lease.
const RESERVED_SHARE: u64 = 16;
/// Weight of the serial part of a lane or a walk, in extra passes over its bytes: few threads are busy while
/// they are read, checked, decoded, encoded, hashed and written.
const ALONE_PASSES: u64 = 6;
/// Rows that are transformed side by side: with fewer, some lanes of vectors do nothing.
const ROWS_SIDE_BY_SIDE: u64 = 8;
/// Most buffers of a draft that are being written.
const WRITE_BUFFERS: u64 = 2;
/// The same of the writer that an accelerator's rows go to.
const TIER_WRITE_BUFFERS: u64 = 3;
/// Scalars of a chunk in the pass that puts the pieces together, at most.
const CHUNK_MAX: u64 = 1 << 15;

/// The cut of a quotient. See the module's page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotientPlan {
    shape: Arc<QuotientShape>,
    /// See [`QuotientShape::halos`]: of columns that are read, and of those that are computed.
    halos: Arc<[Vec<(u64, u64)>; 2]>,
    /// Rows around a stretch of all columns that are read, of all but the first, and so on, down to none.
    halos_from: Arc<[u64]>,
    pub(super) log_n1: u32,
    pub(super) log_n2: u32,
    pub(super) log_width: u32,
    pub(super) tile_rows: u64,
    log_together: u32,
    log_in_flight: u32,
    log_walks: u32,
    /// Scalars in a chunk of the last pass.
    pub(super) chunk: u64,
    /// Number of coset columns kept in memory (the first ones): as many as there is room for.
    in_memory: u64,
    /// Where all else that lies between the passes is put.
    pub(super) scratch: Placement,
    /// Where the pieces are put.
    pub(super) results: Placement,
    threads: usize,
}

impl QuotientPlan {
    /// The plan that costs least among those whose leases fit `available_bytes` less a sixteenth, or if there
    /// is none, all of it; for the threads of the rayon pool that this is called from.
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`] with the smallest number of bytes that works.
    pub fn new(shape: &QuotientShape, available_bytes: u64) -> Result<Self> {
        let results = shape.results_in(&Budget::new(available_bytes));
        Self::choose(shape, available_bytes, u64::MAX, results, None).map_err(|needed_bytes| {
            Error::BudgetTooSmall {
                what: format!(
                    "the quotient of {} columns of 2^{}",
                    shape.read.len(),
                    shape.log_n
                ),
                needed_bytes,
                limit_bytes: available_bytes,
            }
        })
    }

    /// The best plan, with tiles of `tile_rows` if that is given, and the pieces in `results`; else the bytes
    /// that would do. A plan that takes more cosets together takes more of the disk: one that the disk has no
    /// room for is taken only if there is no other.
    pub(super) fn choose(
        shape: &QuotientShape,
        available_bytes: u64,
        free_disk_bytes: u64,
        results: Placement,
        tile_rows: Option<u64>,
    ) -> Result<Self, u64> {
        let roomy_bytes = available_bytes - available_bytes / RESERVED_SHARE;
        let mut needed = u64::MAX;
        // All on disk takes least: where pieces in memory leave too little for the rest, and for the number
        // of bytes that would do.
        for results in [results, Placement::Disk] {
            let mut best = None::<((bool, bool, u64), Self)>;
            needed = u64::MAX;
            for plan in Self::candidates(shape, results, tile_rows) {
                let in_memory = [
                    plan.with_columns_in_memory(roomy_bytes),
                    plan.with_all_in_memory(),
                ];
                for plan in in_memory.into_iter().flatten().chain([plan]) {
                    let bytes = plan.leased_bytes();
                    needed = needed.min(bytes);
                    let is_beyond_disk = plan.disk_bytes() > free_disk_bytes;
                    let cost = (is_beyond_disk, bytes > roomy_bytes, plan.cost());
                    if bytes <= available_bytes && best.as_ref().is_none_or(|(least, _)| cost < *least) {
                        best = Some((cost, plan));
                    }
                }
            }
            if let Some((_, plan)) = best {
                return Ok(plan);
            }
        }
        Err(needed)
    }

    /// With as many columns between the passes in memory as there is room for.
    fn with_columns_in_memory(&self, available_bytes: u64) -> Option<Self> {
        let (bytes, frame_bytes) = (self.column_bytes(), self.frame_bytes());
        let of_column = |placement| self.kept(bytes, frame_bytes, placement);
        let more_bytes = of_column(Placement::Memory).saturating_sub(of_column(self.scratch));
        // Each of them is there once for each coset that it was taken to.
        let more_bytes = more_bytes * self.cosets_together();
        let left_bytes = available_bytes.checked_sub(self.leased_bytes())?;
        let columns = self.shape.read.len() as u64;
        let in_memory = left_bytes.checked_div(more_bytes)?.min(columns);
        (in_memory > 0).then(|| Self {
            in_memory,
            ..self.clone()
        })
    }

    /// With all that lies between the passes in memory.
    fn with_all_in_memory(&self) -> Option<Self> {
        Some(Self {
            in_memory: self.shape.read.len() as u64,
            scratch: Placement::Memory,
            ..self.clone()
        })
    }

    /// All cuts, with what lies between the passes on disk.
    fn candidates(
        shape: &QuotientShape,
        results: Placement,
        forced_rows: Option<u64>,
    ) -> impl Iterator<Item = Self> {
        let (log_n, log_cosets) = (shape.log_n, shape.log_cosets);
        let threads = rayon::current_num_threads();
        let log_most = (threads / THREADS_EACH).max(1).ilog2();
        let columns = shape.read.len().max(1).ilog2();
        let shared = Arc::new(shape.clone());
        let halos = Arc::new([&shape.read, &shape.computed].map(|each| QuotientShape::halos(each.iter())));
        let halos_from: Arc<[u64]> = shape.halos_from().into();
        // One row, where the matrix would have rows below the smallest frame.
        let splits = if log_n <= LOG_RUN_MIN {
            log_n..=log_n
        } else {
            let half = log_n.div_ceil(2);
            half.saturating_sub(3).clamp(LOG_RUN_MIN, log_n - 1)..=(half + 3).clamp(LOG_RUN_MIN, log_n - 1)
        };
        splits
            .flat_map(move |log_n2| {
                let log_n1 = log_n - log_n2;
                (LOG_RUN_MIN.min(log_n2)..=log_n2)
                    .filter(move |log_width| {
                        *log_width == LOG_RUN_MIN.min(log_n2)
                            || SCALAR_BYTES << (log_n1 + log_width) <= PANEL_BYTES_MAX
                    })
                    .flat_map(move |log_width| {
                        let n1 = 1u64 << log_n1;
                        let rows_max = (TILE_BYTES_MAX / (SCALAR_BYTES << log_n2)).clamp(1, n1);
                        let rows = match forced_rows {
                            Some(rows) => vec![rows.clamp(1, n1)],
                            None => (0..=rows_max.ilog2()).map(|log| 1 << log).collect(),
                        };
                        rows.into_iter().flat_map(move |tile_rows| {
                            (0..=log_cosets).map(move |together| (log_width, tile_rows, together))
                        })
                    })
                    .map(move |(log_width, tile_rows, together)| {
                        (log_n1, log_n2, log_width, tile_rows, together)
                    })
            })
            .flat_map(move |cut| {
                let (log_n1, log_n2, log_width, tile_rows, _) = cut;
                let panel_bytes = SCALAR_BYTES << (log_n1 + log_width);
                let log_panels = log_n2 - log_width;
                // A lane for each panel at most, and a walk for each tile.
                let lanes = (0..=log_most).filter(move |lanes| {
                    *lanes == 0 || *lanes <= log_panels + columns && panel_bytes << lanes <= PANELS_BYTES_MAX
                });
                let walks =
                    (0..=log_most).filter(move |walks| *walks == 0 || tile_rows << walks <= 1 << log_n1);
                lanes.flat_map(move |lanes| walks.clone().map(move |walks| (cut, lanes, walks)))
            })
            .map(move |(cut, log_in_flight, log_walks)| {
                let (log_n1, log_n2, log_width, tile_rows, log_together) = cut;
                let plan = Self {
                    shape: Arc::clone(&shared),
                    halos: Arc::clone(&halos),
                    halos_from: Arc::clone(&halos_from),
                    log_n1,
                    log_n2,
                    log_width,
                    tile_rows,
                    log_together,
                    log_in_flight,
                    log_walks,
                    chunk: 0,
                    in_memory: 0,
                    scratch: Placement::Disk,
                    results,
                    threads,
                };
                let frame = SCRATCH_FRAME_BYTES as u64 / SCALAR_BYTES;
                // The largest chunk that does not make the whole larger, and the smallest.
                let mut chunk = CHUNK_MAX;
                while chunk > frame && plan.pieces_bytes(chunk) > plan.passes_bytes() {
                    chunk /= 2;
                }
                Self { chunk, ..plan }
            })
    }

    /// Rows of the matrix.
    pub fn rows(&self) -> u64 {
        1 << self.log_n1
    }

    /// Scalars in a row of the matrix.
    pub fn row_len(&self) -> u64 {
        1 << self.log_n2
    }

    /// Rows of a tile.
    pub fn tile_rows(&self) -> u64 {
        self.tile_rows
    }

    /// Columns of a panel.
    pub fn panel_width(&self) -> u64 {
        1 << self.log_width
    }

    /// Cosets that columns of coefficients are taken to in one pass.
    pub fn cosets_together(&self) -> u64 {
        1 << self.log_together
    }

    /// Panels that are on their way at a time, at most.
    pub fn in_flight(&self) -> u64 {
        1 << self.log_in_flight
    }

    /// Stretches of rows that are walked along at a time.
    pub fn walks(&self) -> u64 {
        1 << self.log_walks
    }

    /// Rows of a stretch.
    pub(super) fn walk_rows(&self) -> u64 {
        self.rows() / self.walks()
    }

    /// Threads that the rows of a walk's tile are shared among.
    pub(super) fn threads_of_walk(&self) -> usize {
        self.threads.div_ceil(1 << self.log_walks)
    }

    /// Panels of a column.
    pub(super) fn panels(&self) -> u64 {
        self.row_len() / self.panel_width()
    }

    /// The most that is leased at one time, with the results.
    pub fn leased_bytes(&self) -> u64 {
        self.passes_bytes().max(self.pieces_bytes(self.chunk))
    }

    /// log2 of the coefficients in a column.
    pub(super) fn log_n(&self) -> u32 {
        self.shape.log_n
    }

    /// log2 of the number of cosets.
    pub(super) fn log_cosets(&self) -> u32 {
        self.shape.log_cosets
    }

    /// Columns of the result.
    pub(super) fn pieces(&self) -> usize {
        self.shape.pieces
    }

    /// The job that an accelerator is offered for each coset.
    pub(super) fn offered_coset(&self) -> Job {
        Job::Coset {
            log_rows: self.log_n1,
            log_columns: self.log_n2,
            columns: (self.shape.read.len() + self.shape.computed.len()) as u64,
            ends_bytes: self.accelerator_ends_bytes(),
        }
    }

    /// Bytes that the columns between the passes take on disk, at most.
    pub(super) fn disk_bytes(&self) -> u64 {
        let cosets = 1u64 << self.shape.log_cosets;
        let others = match self.scratch {
            Placement::Disk => 1 + cosets,
            _ => 0,
        };
        (self.cosets_together() * self.columns_on_disk() + others) * (SCALAR_BYTES << self.shape.log_n)
    }

    /// Where a column that was taken to a coset is put.
    pub(super) fn placement_on_coset(&self, column: usize) -> Placement {
        match (column as u64) < self.in_memory {
            true => Placement::Memory,
            false => self.scratch,
        }
    }

    /// Columns that were taken to a coset and are on disk.
    fn columns_on_disk(&self) -> u64 {
        match self.scratch {
            Placement::Disk => self.shape.read.len() as u64 - self.in_memory,
            _ => 0,
        }
    }

    /// Transforms of all columns to all cosets and back, each with two factors an element (the coset's, the
    /// twist between its passes), and the program on each coset.
    pub(super) fn work(&self, instructions: usize) -> Work {
        let (n, cosets) = (
            (1u64 << self.shape.log_n) as f64,
            (1u64 << self.shape.log_cosets) as f64,
        );
        let lines = (self.shape.read.len() as f64 + 1.0) * cosets;
        Work {
            butterflies: lines * n * f64::from(self.shape.log_n) / 2.0,
            ..Work::products(instructions as f64 * cosets * n + 2.0 * lines * n)
        }
    }

    /// Bytes of a frame of the pieces.
    pub(super) fn result_frame_bytes(&self) -> u64 {
        match self.shape.log_cosets {
            0 => self.frame_bytes(),
            _ => SCRATCH_FRAME_BYTES as u64,
        }
    }

    /// Passes over the columns: to each coset, on it and back, and one that puts the pieces together.
    pub fn passes(&self) -> u64 {
        (2 << self.shape.log_cosets) + self.input_passes() + u64::from(self.shape.log_cosets > 0)
    }

    /// Passes over the columns of coefficients.
    fn input_passes(&self) -> u64 {
        1 << (self.shape.log_cosets - self.log_together)
    }

    /// Bytes read from disk.
    pub fn bytes_read(&self) -> u64 {
        let cosets = 1u64 << self.shape.log_cosets;
        let inputs = self.shape.read_on_disk * self.input_bytes();
        if self.scratch != Placement::Disk {
            return self.input_passes() * inputs;
        }
        let column = self.column_bytes();
        let row_bytes = column >> self.log_n1;
        let halos = self.halos_from.get(self.in_memory as usize).copied().unwrap_or(0);
        let rows = self.columns_on_disk() * self.rows() + self.walks() * halos;
        let combined = if cosets > 1 { cosets * column } else { 0 };
        self.input_passes() * inputs + cosets * (rows * row_bytes + column) + combined
    }

    /// Bytes written to disk.
    pub fn bytes_written(&self) -> u64 {
        let cosets = 1u64 << self.shape.log_cosets;
        let scratch = match self.scratch {
            // The one coset's polynomial is the result.
            Placement::Disk if cosets == 1 => (self.columns_on_disk() + 1) * self.column_bytes(),
            Placement::Disk => cosets * (self.columns_on_disk() + 2) * self.column_bytes(),
            _ => 0,
        };
        let results = match self.results {
            Placement::Disk if cosets == 1 => self.column_bytes(),
            Placement::Disk => self.shape.pieces as u64 * self.result_bytes(),
            _ => 0,
        };
        scratch + results
    }

    /// Bytes of a frame of what lies between the passes.
    pub(super) fn frame_bytes(&self) -> u64 {
        (SCALAR_BYTES << self.log_width).clamp(PAGE_BYTES as u64, SCRATCH_FRAME_BYTES as u64)
    }

    /// Rows of a panel that are written at a time.
    pub(super) fn band_rows(&self) -> u64 {
        let rows = BAND_BYTES / (SCALAR_BYTES << self.log_width);
        rows.min(self.rows() / BANDS_OF_PANEL_MIN).clamp(1, self.rows())
    }

    /// Bytes of the buffer that a band is written from.
    pub(super) fn band_bytes(&self) -> u64 {
        (self.band_rows() * self.panel_width() * SCALAR_BYTES).next_multiple_of(self.frame_bytes())
    }

    /// Bands of a panel.
    fn bands_of_panel(&self) -> u64 {
        self.rows().div_ceil(self.band_rows())
    }

    /// Bands of a lane that are being written at most, where `columns` are taken to `legs` columns each.
    pub(super) fn bands_behind(&self, columns: u64, legs: u64) -> u64 {
        let bands = columns * self.panels() * self.bands_of_panel();
        let share = (BANDS_BEHIND >> self.log_in_flight).max(BANDS_OF_LANE_MIN);
        legs * share.min(bands)
    }

    /// Tiles of a walk that are being written at most.
    pub(super) fn tiles_behind(&self) -> u64 {
        WRITE_BUFFERS.min(self.walk_rows().div_ceil(self.tile_rows))
    }

    /// Rows that all walks together read or compute of columns with these halos.
    fn rows_of_walks(&self, halos: &[(u64, u64)]) -> u64 {
        let rows = |(halo, columns): &(u64, u64)| columns * (self.rows() + self.walks() * halo);
        halos.iter().map(rows).sum()
    }

    /// Rows of a panel that are read at a time from frames of `frame_elements`: a run that is shorter than a
    /// frame brings the whole frame along.
    pub(super) fn rows_per_read(&self, frame_elements: u64) -> u64 {
        let width = self.panel_width();
        (self.rows() * width / width.max(frame_elements)).max(1)
    }

    fn cost(&self) -> u64 {
        let cosets = 1u64 << self.shape.log_cosets;
        let columns = self.shape.read.len() as u64;
        let panels = self.panels();
        let tiles = self.rows().div_ceil(self.tile_rows);
        let row_bytes = SCALAR_BYTES << self.log_n2;
        // A column is read and written in panels, and once more in tiles; the quotient the other way round.
        let transfers = (columns + 2) * panels * self.rows() + (columns + 1) * tiles;
        let first = self.input_passes() * columns * panels * self.rows();
        // Lanes and walks wait side by side.
        let panel = STEP_BYTES + ALONE_PASSES * ((self.rows() * SCALAR_BYTES) << self.log_width);
        let (to, from) = (columns * panels, panels);
        let lanes = to.div_ceil(self.lanes(columns)) + from.div_ceil(self.lanes(1));
        let rows = self.rows_of_walks(&self.halos[0]) + self.rows();
        // Vectors of which not all lanes are used take as long as whole ones.
        let unused = ROWS_SIDE_BY_SIDE.div_ceil(self.tile_rows) - 1;
        let walks = tiles * STEP_BYTES + rows * row_bytes * (ALONE_PASSES + ALONE_PASSES / 2 * unused);
        // The first touch of memory costs about as much as a transfer.
        self.leased_bytes()
            + self.bytes_read()
            + self.bytes_written()
            + cosets * (transfers * TRANSFER_BYTES + lanes * panel + (walks >> self.log_walks))
            + first * TRANSFER_BYTES
    }

    /// Lanes that `columns` go in.
    fn lanes(&self, columns: u64) -> u64 {
        self.in_flight().min(columns * self.panels()).max(1)
    }

    /// Bytes on disk of a column between the passes.
    fn column_bytes(&self) -> u64 {
        (SCALAR_BYTES << self.shape.log_n).next_multiple_of(self.frame_bytes())
    }

    fn result_bytes(&self) -> u64 {
        (SCALAR_BYTES << self.shape.log_n).next_multiple_of(SCRATCH_FRAME_BYTES as u64)
    }

    /// Frames of `frame` scalars that `rows` rows of a panel bring along.
    fn frames_read(&self, rows: u64, frame: u64) -> u64 {
        let (n2, width) = (self.row_len(), self.panel_width());
        if width < n2 && n2 >= frame {
            rows * (width / frame).max(1)
        } else {
            // Whole rows, or several rows a frame.
            (rows * n2).div_ceil(frame)
        }
    }

    /// Bytes read for a pass over the panels of an input column.
    fn input_bytes(&self) -> u64 {
        let frame = self.shape.frame_elements;
        let (n1, n2, width) = (self.rows(), self.row_len(), self.panel_width());
        let per_read = self.rows_per_read(frame);
        let frames = |rows: u64| self.frames_read(rows, frame);
        let (whole, rest) = (n1 / per_read, n1 % per_read);
        let panel = whole * frames(per_read) + if rest > 0 { frames(rest) } else { 0 };
        panel * (n2 / width) * frame * SCALAR_BYTES
    }

    /// What a scratch column holds of the budget.
    fn kept(&self, bytes: u64, frame_bytes: u64, placement: Placement) -> u64 {
        match placement {
            Placement::Memory => memory_bytes(bytes / frame_bytes, frame_bytes),
            _ => digests_beside(self.shape.spare, bytes, frame_bytes),
        }
    }

    fn scratch_kept(&self) -> u64 {
        self.kept(self.column_bytes(), self.frame_bytes(), self.scratch)
    }

    /// The same of all columns that were taken to one coset.
    fn columns_kept(&self) -> u64 {
        let others = self.shape.read.len() as u64 - self.in_memory;
        let in_memory = self.kept(self.column_bytes(), self.frame_bytes(), Placement::Memory);
        self.in_memory * in_memory + others * self.scratch_kept()
    }

    /// The three passes over a coset; the last coset holds most.
    fn passes_bytes(&self) -> u64 {
        let cosets = 1u64 << self.shape.log_cosets;
        let columns = self.shape.read.len() as u64;
        let kept = self.scratch_kept();
        // With one coset, its polynomial is the result.
        let last = if cosets == 1 {
            self.kept(self.column_bytes(), self.frame_bytes(), self.results)
        } else {
            kept
        };
        let lanes = |columns: u64, frame: u64, legs: u64| {
            let tile = pages((SCALAR_BYTES << self.log_width) * self.rows());
            let tiles = if legs > 1 { 2 * tile } else { tile };
            let frames = self.frames_read(self.rows_per_read(frame), frame);
            let raw = pages(frames * frame * SCALAR_BYTES);
            let bands = self.bands_behind(columns, legs) * pages(self.band_bytes());
            self.lanes(columns) * (tiles + raw + bands)
        };
        let together = self.cosets_together();
        let columns_kept = self.columns_kept();
        let to_coset = together * columns_kept
            + (cosets - together) * kept
            + if columns > 0 {
                lanes(columns, self.shape.frame_elements, together)
            } else {
                0
            };
        // On the first coset of the last that are taken together, and on the very last one.
        let columns_from = (together - 1) * columns_kept + (cosets - together + 2) * kept;
        let to_coefficients = if together > 1 {
            columns_from.max(cosets * kept + last)
        } else {
            cosets * kept + last
        };
        let to_coefficients = to_coefficients + lanes(1, self.frame_bytes() / SCALAR_BYTES, 1);
        let on_coset = self.held_on_coset_bytes() + kept + self.tile_bytes();
        to_coset.max(to_coefficients).max(on_coset)
    }

    /// Bytes that are held when the step on a coset begins: columns that were taken to it and to others, and
    /// what came of those before; on the first coset of the last that are taken together, or on the very last
    /// one.
    pub(super) fn held_on_coset_bytes(&self) -> u64 {
        let (cosets, together) = (1u64 << self.shape.log_cosets, self.cosets_together());
        let (columns, kept) = (self.columns_kept(), self.scratch_kept());
        (together * columns + (cosets - together) * kept).max(columns + (cosets - 1) * kept)
    }

    /// Bytes that the ends of that step lease for an accelerator.
    pub(super) fn accelerator_ends_bytes(&self) -> u64 {
        (self.shape.read.len() as u64 + TIER_WRITE_BUFFERS) * self.raw_bytes(self.accelerator_tile_rows())
    }

    /// Rows that are read and written at a time for an accelerator: as many as those of all walks together.
    pub(super) fn accelerator_tile_rows(&self) -> u64 {
        self.tile_rows << self.log_walks
    }

    /// Bytes of a buffer that a tile's rows of a column are read or written with.
    pub(super) fn raw_tile_bytes(&self) -> u64 {
        self.raw_bytes(self.tile_rows)
    }

    fn raw_bytes(&self, rows: u64) -> u64 {
        pages((rows * (SCALAR_BYTES << self.log_n2)).next_multiple_of(self.frame_bytes()))
    }

    fn tile_bytes(&self) -> u64 {
        let row = SCALAR_BYTES << self.log_n2;
        let raw = self.raw_tile_bytes();
        let [read, computed] = &*self.halos;
        let windows = |halos: &[(u64, u64)], raw: u64| -> u64 {
            let windows =
                |(halo, columns): &(u64, u64)| columns * (pages((self.tile_rows + halo) * row) + raw);
            halos.iter().map(windows).sum()
        };
        let powers = if computed.is_empty() { 0 } else { pages(row) };
        let (registers, _) = register_scalars(self.shape.registers, self.threads_of_walk());
        let quotient = pages(self.tile_rows * row) + self.tiles_behind() * raw;
        let walk =
            windows(read, raw) + windows(computed, 0) + quotient + pages(registers as u64 * SCALAR_BYTES);
        (walk << self.log_walks) + powers
    }

    fn pieces_bytes(&self, chunk: u64) -> u64 {
        let cosets = 1u64 << self.shape.log_cosets;
        if cosets == 1 {
            return 0;
        }
        let (pieces, n) = (self.shape.pieces as u64, 1u64 << self.shape.log_n);
        let frame_bytes = SCRATCH_FRAME_BYTES as u64;
        cosets * self.scratch_kept()
            + pieces * self.kept(self.result_bytes(), frame_bytes, self.results)
            + linear_combinations_bytes(cosets, pieces, n, self.frame_bytes(), chunk)
    }
}
