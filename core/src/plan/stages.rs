//! Stages of `stream` and `commit`, dry: the same plans, the same leases, the same passes.

use ark_bn254::g1;

use super::Job;
use super::ledger::{Ledger, POINT_BYTES, SCALAR_BYTES, Sheet, Work, pages};
use crate::Result;
use crate::column::{Placement, SCRATCH_FRAME_BYTES};
use crate::commit::multiopen::OpeningPlan;
use crate::kernels::msm::MsmConfig;
use crate::stream::{
    BANDS_BEHIND, COLUMNS_OF_DEPTH_1, InputShape, MsmPlan, NttPlan, Slices, TILES_PER_THREAD, WALK_BUFFERS,
    between_frame_bytes, largest_tile, log_band, workers_within,
};

/// Frames of an SRS.
const SRS_FRAME_BYTES: u64 = crate::commit::SRS_FRAME_BYTES as u64;

/// The points in both bases.
pub(super) struct Srs {
    pub monomial: Sheet,
    pub lagrange: Sheet,
}

impl Ledger {
    /// Parameters that were made before.
    pub fn parameters(&mut self, log_n: u32) -> Result<Srs> {
        let mut points = || self.draft(1 << log_n, POINT_BYTES, Placement::Disk, SRS_FRAME_BYTES);
        Ok(Srs {
            monomial: points()?,
            lagrange: points()?,
        })
    }

    /// A column that is written from start to end, with tiles of these bytes leased before and after its draft.
    pub fn write_column(&mut self, len: u64, placement: Placement, tiles: [u64; 2]) -> Result<Sheet> {
        let before = self.held_bytes();
        self.hold(pages(tiles[0]))?;
        let sheet = self.scalars(len, placement)?;
        self.hold(pages(tiles[1]))?;
        self.hold(sheet.writer_bytes(self.sequential_chunk(&sheet)))?;
        self.written(&sheet);
        self.release_to(before + sheet.held_bytes());
        Ok(sheet)
    }

    /// A commitment: one pass over the points and the scalars.
    pub fn commit(&mut self, bases: &Sheet, scalars: &Sheet) -> Result<()> {
        self.commit_all(bases, &[*scalars])
    }

    /// Commitments to columns of one length: as few passes over the points as the budget allows.
    pub fn commit_all(&mut self, bases: &Sheet, columns: &[Sheet]) -> Result<()> {
        let Some(len) = columns.iter().map(|column| column.len).max() else {
            return Ok(());
        };
        let walk_bytes = |sheet: &Sheet| WALK_BUFFERS * sheet.transfer_bytes(self.sequential_chunk(sheet));
        let frames = columns.iter().map(Sheet::frame_elements);
        let offered = Job::Sums {
            points: len,
            columns: columns.len() as u64,
            step: Some(frames.fold(bases.frame_elements(), u64::max)),
            bases_bytes: walk_bytes(bases),
            scalars_bytes: columns.iter().map(walk_bytes).max().unwrap_or(0),
        };
        self.offered(offered, 0);
        let plan = MsmPlan::new::<g1::Config>(len, columns.len(), columns.len(), self.available_bytes())
            .map_err(|error| self.beside(error))?;
        let (before, chunk) = (self.held_bytes(), plan.chunk());
        let bases = bases.prefix(len);
        let per_pass = plan.columns_per_pass(columns.len());
        let config = plan.config_for(per_pass);
        let readers: u64 = columns
            .iter()
            .take(per_pass)
            .map(|column| pages(chunk * SCALAR_BYTES) + column.reader_bytes(chunk, 2))
            .sum();
        self.hold(
            config.workspace_bytes::<g1::Config>()
                + pages(chunk * POINT_BYTES)
                + bases.reader_bytes(chunk, 2)
                + readers,
        )?;
        for _ in 0..columns.len().div_ceil(per_pass) {
            self.read(&bases, len);
            self.passed(1);
        }
        for column in columns {
            self.read(column, column.len);
            self.computed(additions(plan.config(), len));
        }
        self.release_to(before);
        Ok(())
    }

    /// A transform of scalars; the input stays.
    pub fn transform(&mut self, input: &Sheet) -> Result<Sheet> {
        let log_n = input.len.ilog2();
        self.offered(Job::Transform { log_n }, 0);
        let chunk = self.sequential_chunk(input);
        let shape = InputShape {
            value_bytes: SCALAR_BYTES,
            element_bytes: SCALAR_BYTES,
            frame_elements: input.frame_elements(),
            chunk_bytes: chunk * SCALAR_BYTES,
        };
        let log_tile =
            largest_tile(&shape, log_n, self.available_bytes())?.map_err(|needed| self.refused(needed))?;
        self.computed(Work {
            butterflies: input.len as f64 * f64::from(log_n) / 2.0,
            ..Work::default()
        });
        let before = self.held_bytes();
        let NttPlan::FourStep { log_n1, log_n2, .. } =
            NttPlan::new(log_n, log_tile, SCALAR_BYTES, input.frame_elements())?
        else {
            self.hold(pages(SCALAR_BYTES << log_n))?;
            let tiled = self.held_bytes();
            self.hold(input.reader_bytes(chunk, 2))?;
            self.read(input, input.len);
            self.release_to(tiled);
            let output = self.scalars(input.len, Placement::Auto)?;
            self.hold(output.writer_bytes(self.sequential_chunk(&output)))?;
            self.written(&output);
            self.passed(1);
            self.release_to(before + output.held_bytes());
            return Ok(output);
        };
        self.passed(2);
        let (width1, width2) = (1u64 << (log_tile - log_n1), 1u64 << (log_tile - log_n2));
        let band = 1u64 << log_band(log_tile, SCALAR_BYTES);
        let tile_bytes = SCALAR_BYTES << log_tile;
        let frame_bytes = between_frame_bytes(width1 * width2, band, SCALAR_BYTES);
        let between = self.draft(input.len, SCALAR_BYTES, Placement::Disk, frame_bytes)?;
        let tiled = self.held_bytes();
        // Panels of the input; a run shorter than a frame brings the frame along.
        let (n1, n2, frame) = (1u64 << log_n1, 1u64 << log_n2, input.frame_elements());
        let [slices1, slices2] = Slices::of(log_tile, log_n1, log_n2, SCALAR_BYTES);
        let slice_rows = n1 / slices1.count;
        let per_read = (slice_rows * width1 / width1.max(frame)).max(1);
        let frames = |rows: u64| match width1 < n2 && n2 >= frame {
            true => rows * (width1 / frame).max(1),
            false => (rows * n2).div_ceil(frame),
        };
        self.hold(pages(tile_bytes) + pages(band * SCALAR_BYTES))?;
        self.hold(
            slices1.ahead as u64 * pages(frames(per_read) * input.frame_bytes)
                + BANDS_BEHIND as u64 * pages((band * SCALAR_BYTES).max(frame_bytes)),
        )?;
        let slice = (slice_rows / per_read) * frames(per_read)
            + if slice_rows % per_read > 0 {
                frames(slice_rows % per_read)
            } else {
                0
            };
        let slices = slices1.count * (n2 / width1);
        self.read_bytes(input, slice * slices * input.frame_bytes);
        self.written(&between);
        self.release_to(tiled);
        let output_frame = (width2 * SCALAR_BYTES).clamp(4096, SCRATCH_FRAME_BYTES as u64);
        let output = self.draft(input.len, SCALAR_BYTES, Placement::Auto, output_frame)?;
        let slice_rows = n2 / slices2.count;
        let rows_per_band = (band / width2).clamp(1, slice_rows);
        self.hold(pages(tile_bytes) + between.reader_bytes(slice_rows * width2, slices2.ahead as u64))?;
        self.hold(BANDS_BEHIND as u64 * pages(rows_per_band * width2 * SCALAR_BYTES))?;
        self.read(&between, between.len);
        self.written(&output);
        self.release_to(before + output.held_bytes());
        self.undisk(between.file_bytes());
        Ok(output)
    }

    /// A transform whose input goes when it is done.
    pub fn transform_from(&mut self, input: Sheet) -> Result<Sheet> {
        let output = self.transform(&input)?;
        self.free(input);
        Ok(output)
    }

    /// A sum of columns of one length.
    pub fn linear_combination(&mut self, columns: &[Sheet]) -> Result<Option<Sheet>> {
        // The longest, and of those the last.
        let Some(longest) = columns.last() else {
            return Ok(None);
        };
        let before = self.held_bytes();
        let frame = columns.iter().map(Sheet::frame_elements).max().unwrap_or(1);
        let chunk = (self.sequential_chunk(longest) / (columns.len() as u64).next_power_of_two()).max(frame);
        let readers: u64 = columns.iter().map(|column| column.reader_bytes(chunk, 2)).sum();
        self.hold(readers + 2 * pages(chunk * SCALAR_BYTES))?;
        for column in columns {
            self.read(column, column.len);
        }
        self.passed(1);
        self.computed(products(columns.len() as f64 * longest.len as f64));
        let sum = self.write_column(longest.len, Placement::Auto, [0, 0])?;
        self.release_to(before + sum.held_bytes());
        Ok(Some(sum))
    }

    /// Evaluations of columns, each at so many points, each read once.
    pub fn evaluate(&mut self, columns: &[(Sheet, usize)]) -> Result<()> {
        if columns.is_empty() {
            return Ok(());
        }
        let chunk_min = columns.iter().map(|(column, _)| column.frame_elements()).max();
        let chunk_max = columns
            .iter()
            .map(|(column, _)| self.sequential_chunk(column))
            .max();
        let (workers, chunk) = workers_within(
            self.available_bytes(),
            columns.len(),
            SCALAR_BYTES,
            chunk_min.unwrap_or(1),
            chunk_max.unwrap_or(1),
        );
        let before = self.held_bytes();
        let mut each: Vec<u64> = columns
            .iter()
            .map(|(column, _)| {
                let chunk = chunk.min(column.len.next_power_of_two());
                column.reader_bytes(chunk, 2) + pages(chunk * SCALAR_BYTES)
            })
            .collect();
        each.sort_unstable_by(|a, b| b.cmp(a));
        self.hold(each.iter().take(workers).sum())?;
        for (column, points) in columns {
            self.read(column, column.len);
            self.computed(products(*points as f64 * column.len as f64));
        }
        self.passed(1);
        self.release_to(before);
        Ok(())
    }

    /// One pass of an opening: a sum of `combinations` quotients of `columns`, committed to, and kept if `keep`.
    pub fn open(
        &mut self,
        bases: &Sheet,
        columns: &[Sheet],
        combinations: u64,
        keep: bool,
    ) -> Result<Option<Sheet>> {
        let len = columns.iter().map(|column| column.len).max().unwrap_or(0);
        if len == 0 {
            return Ok(None);
        }
        let frames: Vec<u64> = columns.iter().map(|column| column.frame_bytes).collect();
        let plan = OpeningPlan::within(
            bases.frame_bytes,
            &frames,
            combinations as usize,
            len,
            keep,
            self.available_bytes(),
        )
        .map_err(|error| self.beside(error))?;
        let before = self.held_bytes();
        let (chunk, msm_chunk) = (plan.chunk(), plan.msm_chunk());
        let kept = match keep {
            true => Some(self.scalars(len, Placement::Disk)?),
            false => None,
        };
        self.hold(pages(msm_chunk * SCALAR_BYTES) + pages(combinations * chunk * SCALAR_BYTES))?;
        let depth = if columns.len() < COLUMNS_OF_DEPTH_1 { 2 } else { 1 };
        let tiles = columns
            .len()
            .min(TILES_PER_THREAD * rayon::current_num_threads())
            .max(1) as u64;
        let readers: u64 = columns
            .iter()
            .map(|column| column.reader_bytes(chunk, depth))
            .sum();
        self.hold(readers + pages(tiles * chunk * SCALAR_BYTES))?;
        let bases = bases.prefix(len);
        // The scalars are made in one order only, by what is held by now.
        let offered = Job::Sums {
            points: len,
            columns: 1,
            step: None,
            bases_bytes: WALK_BUFFERS * bases.transfer_bytes(msm_chunk),
            scalars_bytes: 0,
        };
        self.offered(offered, 0);
        self.hold(plan.config().workspace_bytes::<g1::Config>() + pages(msm_chunk * POINT_BYTES))?;
        self.hold(bases.reader_bytes(msm_chunk, 2))?;
        self.read(&bases, len);
        for column in columns {
            self.read(column, column.len);
        }
        if let Some(kept) = &kept {
            self.hold(kept.writer_bytes(msm_chunk))?;
            self.written(kept);
        }
        self.passed(1);
        self.computed(additions(plan.config(), len));
        self.computed(products(
            (columns.len() as u64 + 2 * combinations) as f64 * len as f64,
        ));
        self.release_to(before + kept.map_or(0, |kept| kept.held_bytes()));
        Ok(kept)
    }

    /// A stage's refusal, seen from the whole.
    fn beside(&self, error: crate::Error) -> crate::Error {
        match error {
            crate::Error::BudgetTooSmall { needed_bytes, .. } => self.refused(needed_bytes),
            other => other,
        }
    }
}

/// So many products.
pub(super) fn products(products: f64) -> Work {
    Work {
        products,
        ..Work::default()
    }
}

/// What a sum over `points` points costs; see `kernels::msm`.
pub(super) fn additions(config: &MsmConfig, points: u64) -> Work {
    Work {
        additions: config.cost::<g1::Config>(points),
        ..Work::default()
    }
}
