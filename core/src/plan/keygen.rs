//! The steps of keygen, dry.

use super::ledger::{Ledger, SCALAR_BYTES, Sheet, Work, pages};
use super::stages::{Srs, products};
use super::{Phase, Shape};
use crate::Result;
use crate::column::{Placement, READ_BYTES, Residency};
use crate::plonkish::copies::share_bytes_within;
use crate::plonkish::indicator;
use crate::plonkish::selectors::COLUMNS_PER_PASS;

/// A proving key, as far as it holds something.
pub(super) struct Key {
    pub fixed_values: Vec<Sheet>,
    pub fixed_polys: Vec<Sheet>,
    pub sigma_values: Vec<Sheet>,
    pub sigma_polys: Vec<Sheet>,
}

/// What a circuit's synthesis leaves.
struct Made {
    fixed: Vec<Sheet>,
    copies: Copies,
}

/// The arrays of copies.
struct Copies {
    share_bytes: u64,
    blocks: u64,
    file_bytes: u64,
    block_bytes: u64,
    /// Of a column in the array of images.
    column_bytes: u64,
    /// Of images that are in memory, and how many columns of them were read.
    resident: u64,
    read: u64,
    written: u64,
}

/// Bytes that maps read back and write out.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapTraffic {
    pub read: u64,
    pub written: u64,
}

impl Ledger {
    pub fn verifying_key(&mut self, shape: &Shape, srs: &Srs) -> Result<()> {
        self.begin(Phase::VerifyingKey);
        let mut made = self.synthesize_keys(shape)?;
        self.step("sigma");
        for _ in &shape.permuted {
            let sigma = self.sigma(shape, &mut made.copies)?;
            self.commit(&srs.lagrange, &sigma)?;
            self.free(sigma);
        }
        self.step("commit fixed columns");
        self.commit_all(&srs.lagrange, &made.fixed)?;
        made.fixed.into_iter().for_each(|column| self.free(column));
        self.free_copies(&made.copies);
        Ok(())
    }

    pub fn proving_key(&mut self, shape: &Shape, _srs: &Srs) -> Result<Key> {
        self.begin(Phase::ProvingKey);
        let mut made = self.synthesize_keys(shape)?;
        let (mut sigma_values, mut sigma_polys) = (Vec::new(), Vec::new());
        self.step("sigma");
        for _ in &shape.permuted {
            let sigma = self.sigma(shape, &mut made.copies)?;
            sigma_polys.push(self.transform(&sigma)?);
            sigma_values.push(sigma);
        }
        self.free_copies(&made.copies);
        self.step("fixed polynomials");
        let fixed_polys = made
            .fixed
            .iter()
            .map(|column| self.transform(column))
            .collect::<Result<Vec<_>>>()?;
        // Three polynomials that are 1 on some rows; the key keeps them.
        for _ in 0..3 {
            let tile = indicator::TILE_ROWS.min(shape.rows()) * SCALAR_BYTES;
            self.write_column(shape.rows(), Placement::Auto, [0, tile])?;
            self.computed(products(shape.blinding_factors as f64 * shape.rows() as f64));
        }
        Ok(Key {
            fixed_values: made.fixed,
            fixed_polys,
            sigma_values,
            sigma_polys,
        })
    }

    fn synthesize_keys(&mut self, shape: &Shape) -> Result<Made> {
        let rows = shape.rows();
        self.step("synthesize");
        let before = self.held_bytes();
        let maps = shape.fixed + 1;
        let words = rows.div_ceil(64) * shape.selectors as u64 * 8;
        let cells = vec![rows * SCALAR_BYTES; shape.fixed];
        let files = cells.iter().sum::<u64>() + words;
        let share_bytes = Residency::share_bytes_within(self.available_bytes(), maps);
        let traffic = self.maps((share_bytes, share_bytes), maps, cells.into_iter().chain([words]))?;
        self.moved(0, traffic.written);
        let assigned = self.held_bytes() - before;
        let arrays = self.copies(shape)?;
        self.disk(files + arrays.file_bytes);

        self.step("fixed columns");
        self.moved(traffic.read, 0);
        let mut fixed = Vec::with_capacity(shape.all_fixed());
        for _ in 0..shape.fixed {
            fixed.push(self.write_column(rows, Placement::Auto, [0, 0])?);
        }
        for first in (0..shape.selectors).step_by(COLUMNS_PER_PASS) {
            let held = self.held_bytes();
            let columns = (first..shape.selectors.min(first + COLUMNS_PER_PASS))
                .map(|_| self.scalars(rows, Placement::Auto))
                .collect::<Result<Vec<_>>>()?;
            for column in &columns {
                self.hold(column.writer_bytes(self.sequential_chunk(column)))?;
                self.written(column);
            }
            self.release_to(held + columns.iter().map(Sheet::held_bytes).sum::<u64>());
            fixed.extend(columns);
        }
        self.passed(1);
        self.release(assigned);
        self.undisk(files);
        Ok(Made {
            fixed,
            copies: arrays,
        })
    }

    /// A group of maps: its share, and a byte a block. Gives what goes out and comes back if all cells are written in order
    /// and then read once, when the share has shrunk to `kept_bytes`.
    pub fn maps(
        &mut self,
        (share_bytes, kept_bytes): (u64, u64),
        maps: usize,
        bytes: impl Iterator<Item = u64>,
    ) -> Result<MapTraffic> {
        let (block_bytes, least) = Residency::blocks_of(share_bytes, maps);
        if share_bytes < least {
            return Err(self.refused(least));
        }
        self.hold(share_bytes)?;
        let mut all = 0;
        for (slot, bytes) in bytes.enumerate() {
            // Maps of a group are shifted against each other.
            let skew = (block_bytes * slot as u64 / maps as u64) & !4095;
            self.hold((bytes + skew).div_ceil(block_bytes))?;
            all += if bytes > 0 { pages(bytes + skew) } else { 0 };
        }
        let resident = kept_bytes / block_bytes * block_bytes;
        if all <= resident {
            return Ok(MapTraffic {
                read: 0,
                written: all,
            });
        }
        // What did not fit went out, and two windows of reading push out as much again.
        let window = ((READ_BYTES as u64).min(kept_bytes / 8) / block_bytes).max(1) * block_bytes;
        Ok(MapTraffic {
            read: (all - resident + 2 * window + block_bytes).min(all),
            written: all + 2 * block_bytes,
        })
    }

    fn copies(&mut self, shape: &Shape) -> Result<Copies> {
        let cells = shape.permuted.len() as u64 * shape.rows();
        let cell_bytes = if cells > 1 << 31 { 8 } else { 4 };
        let share_bytes = share_bytes_within(self.available_bytes(), 2 * cells * cell_bytes);
        let before = self.held_bytes();
        let array = cells * cell_bytes;
        let traffic = self.maps((share_bytes, share_bytes), 2, [array; 2].into_iter())?;
        let (block_bytes, _) = Residency::blocks_of(share_bytes, 2);
        Ok(Copies {
            share_bytes,
            blocks: self.held_bytes() - before - share_bytes,
            file_bytes: 2 * array,
            block_bytes,
            column_bytes: shape.rows() * cell_bytes,
            // Links have half of what there is, until they go.
            resident: array.min(share_bytes - array.min(share_bytes / 2)),
            read: 0,
            written: traffic.written,
        })
    }

    fn free_copies(&mut self, copies: &Copies) {
        self.release(copies.share_bytes + copies.blocks);
        self.undisk(copies.file_bytes);
    }

    /// One sigma column. The first one gives back most of the copies' share.
    fn sigma(&mut self, shape: &Shape, copies: &mut Copies) -> Result<Sheet> {
        let rows = shape.rows();
        let wanted = Residency::share_bytes_within(self.available_bytes(), 2);
        let shrunk = Residency::shrunk_bytes(copies.share_bytes, 2, wanted);
        self.release(copies.share_bytes - shrunk);
        copies.share_bytes = shrunk;
        if copies.read == 0 {
            self.moved(0, copies.written);
            let images = copies.file_bytes / 2;
            copies.resident = copies.resident.min(shrunk);
            self.moved(images - copies.resident, 0);
        }
        // What two columns share of a block goes out with the first, and comes back with the second.
        let first = copies.read * copies.column_bytes;
        let shared = first % copies.block_bytes;
        if shared > 0 {
            let start = first - shared;
            let end = (start + copies.block_bytes).min(copies.file_bytes / 2);
            self.moved(end - start, 0);
        }
        copies.read += 1;
        let before = self.held_bytes();
        let low_bits = shape.log_n.div_ceil(2);
        let high = pages(rows.div_ceil(1 << low_bits) * SCALAR_BYTES);
        self.hold(pages(SCALAR_BYTES << low_bits) + 2 * high)?;
        let chunk = self.chunk(&[], rows, 1)?;
        let sigma = self.scalars(rows, Placement::Disk)?;
        self.hold(pages(chunk.min(rows) * SCALAR_BYTES) + sigma.writer_bytes(chunk))?;
        self.written(&sigma);
        self.passed(1);
        self.computed(Work {
            products: rows as f64,
            ..Work::default()
        });
        self.release_to(before + sigma.held_bytes());
        Ok(sigma)
    }
}
