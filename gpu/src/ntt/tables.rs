//! Tables of powers for the passes: two tables of about sqrt(n) elements for n powers, w^e = low[e mod 2^l]
//! high[e >> l].

use super::field::NttField;
use super::radices::log_radices;
use crate::buffer::DeviceBuffer;
use crate::error::Result;

/// All tables of a job, one after the other.
#[derive(Debug)]
pub(crate) struct Tables<F> {
    elements: Vec<F>,
}

/// The places of the powers of one number in the tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Powers {
    low: u64,
    high: Option<u64>,
    log_low: u32,
}

impl Powers {
    /// Elements of a list, 2^`log_count` at most, indexed like powers.
    pub fn listed(place: u64, log_count: u32) -> Self {
        Self {
            low: place,
            high: None,
            log_low: log_count,
        }
    }
}

/// The tables of one row's transform.
#[derive(Debug, Clone)]
pub(crate) struct RowTables {
    pub log_n: u32,
    pub log_tile: u32,
    pub log_radices: Vec<u32>,
    pub log_roots: u32,
    roots: u64,
    twiddles: Powers,
}

/// A factor of an element: a power with the exponent (a + b y) i + (c + d y), for element i of row y.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    pub powers: Powers,
    pub exponent: [u64; 4],
}

/// Elements of the tables for 2^`log_count` powers.
pub(crate) fn power_elements(log_count: u32) -> u64 {
    let log_low = log_count.div_ceil(2);
    (1 << log_low) + (1 << (log_count - log_low))
}

/// Elements of the tables of one row's transform.
pub(crate) fn step_elements(log_n: u32, log_tile: u32) -> u64 {
    let log_roots = log_radices(log_n, log_tile).into_iter().max().unwrap_or(0);
    roots_count(log_roots) + power_elements(log_n)
}

/// Elements of the tables of a transform in place.
pub(crate) fn elements_in_place(log_n: u32, log_tile: u32) -> u64 {
    let log_radices = log_radices(log_n, log_tile);
    let log_roots = log_radices.iter().copied().max().unwrap_or(0);
    let log_rows = log_radices.iter().scan(0, |log_row, log_radix| {
        *log_row += log_radix;
        Some(*log_row)
    });
    roots_count(log_roots) + log_rows.map(power_elements).sum::<u64>()
}

fn roots_count(log_roots: u32) -> u64 {
    // At least one: a transform without stages reads none, and a table has an address.
    ((1u64 << log_roots) / 2).max(1)
}

impl<F: NttField> Tables<F> {
    pub fn new() -> Self {
        Self { elements: Vec::new() }
    }

    /// 2^`log_count` powers of `base`, all times `factor`.
    pub fn powers(&mut self, base: F, log_count: u32, factor: F) -> Powers {
        let log_low = log_count.div_ceil(2);
        let low = self.push(base, 1 << log_low, F::UNIT);
        let high = self.push(base.to_the(1 << log_low), 1 << (log_count - log_low), factor);
        Powers {
            low,
            high: Some(high),
            log_low,
        }
    }

    /// A table of one number.
    pub fn constant(&mut self, value: F) -> Powers {
        Powers {
            low: self.push(F::UNIT, 1, value),
            high: None,
            log_low: 0,
        }
    }

    /// The tables of the transform of a row of 2^`log_n`, by a root of that order.
    pub fn step(&mut self, root: F, log_n: u32, log_tile: u32) -> RowTables {
        let log_radices = log_radices(log_n, log_tile);
        let (log_roots, roots) = self.roots(root, log_n, &log_radices);
        RowTables {
            log_n,
            log_tile,
            log_radices,
            log_roots,
            roots,
            twiddles: self.powers(root, log_n, F::UNIT),
        }
    }

    /// The tables of a transform in place: those of each pass as the last one of a row that is as long as the radices up
    /// to its own make it.
    pub fn in_place(&mut self, root: F, log_n: u32, log_tile: u32) -> Vec<RowTables> {
        let log_radices = log_radices(log_n, log_tile);
        let (log_roots, roots) = self.roots(root, log_n, &log_radices);
        let up_to = |pass: usize| {
            let log_radices = log_radices[..=pass].to_vec();
            let log_row = log_radices.iter().sum();
            RowTables {
                log_n: log_row,
                log_tile,
                log_radices,
                log_roots,
                roots,
                twiddles: self.powers(root.to_the(1u64 << (log_n - log_row)), log_row, F::UNIT),
            }
        };
        (0..log_radices.len()).map(up_to).collect()
    }

    /// The roots of a tile's transform, for all radices, and their order.
    fn roots(&mut self, root: F, log_n: u32, log_radices: &[u32]) -> (u32, u64) {
        let log_roots = log_radices.iter().copied().max().unwrap_or(0);
        let of_the_tile = root.to_the(1u64 << (log_n - log_roots));
        let place = self.push(of_the_tile, roots_count(log_roots), F::UNIT);
        (log_roots, place)
    }

    /// `count` powers of `base` times `factor`, one after the other; returns their place.
    pub fn list_powers(&mut self, base: F, count: u64, factor: F) -> u64 {
        self.push(base, count, factor)
    }

    /// A list of elements for [`Powers::listed`]; returns its place.
    pub fn list(&mut self, elements: Vec<F>) -> u64 {
        let place = self.elements.len() as u64;
        self.elements.extend(elements);
        place
    }

    /// The bytes of all tables, elements in Montgomery form.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.elements
            .iter()
            .for_each(|element| element.append_to(&mut bytes));
        bytes
    }

    fn push(&mut self, base: F, count: u64, factor: F) -> u64 {
        let place = self.elements.len() as u64;
        let mut next = factor;
        for _ in 0..count {
            self.elements.push(next);
            next *= base;
        }
        debug_assert!(factor != F::NONE);
        place
    }
}

/// The buffer of the tables on the device, and the bytes of an element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceTables<'a> {
    buffer: &'a DeviceBuffer,
    pub element_bytes: u64,
}

impl<'a> DeviceTables<'a> {
    pub fn new(buffer: &'a DeviceBuffer, element_bytes: u64) -> Self {
        Self {
            buffer,
            element_bytes,
        }
    }

    /// The address of a place.
    pub fn at(&self, place: u64) -> Result<u64> {
        self.buffer
            .memory()
            .at(place * self.element_bytes, self.element_bytes)
    }

    fn powers(&self, powers: Powers) -> Result<[u64; 2]> {
        let high = powers.high.map(|high| self.at(high)).transpose()?;
        Ok([self.at(powers.low)?, high.unwrap_or(0)])
    }

    /// `roots` to `log_twiddle_low` of `NttPass` in ntt.cuh.
    pub fn step(&self, step: &RowTables) -> Result<[u64; 5]> {
        let [low, high] = self.powers(step.twiddles)?;
        Ok([
            self.at(step.roots)?,
            step.log_roots.into(),
            low,
            high,
            step.twiddles.log_low.into(),
        ])
    }

    /// `Scale` in ntt.cuh.
    pub fn scale(&self, scale: Option<Scale>) -> Result<[u64; 7]> {
        let Some(scale) = scale else { return Ok([0; 7]) };
        let [low, high] = self.powers(scale.powers)?;
        let [a, b, c, d] = scale.exponent;
        Ok([low, high, a, b, c, d, scale.powers.log_low.into()])
    }
}
