//! The launches of one transform of several rows: the one place where this folder launches kernels.
#![allow(unsafe_code)]

use super::plan::{ELEMENT_BYTES, LOG_TILE};
use super::tables::{OnDevice, Scale, Step};
use crate::device::Stream;
use crate::error::Result;
use crate::kernels::{Argument, Grid, Kernel};
use crate::vram::DeviceBuffer;

const THREADS_MAX: u32 = 256;
/// 64-bit words of `NttPass` in ntt.cuh.
const PASS_WORDS: usize = 29;

/// Where the rows of a batch are: element i of row y at `i * stride + y * batch`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub stride: u64,
    pub batch: u64,
}

/// What is transformed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'a> {
    pub step: &'a Step,
    pub count: u64,
    /// Of what is there, and of what comes of it.
    pub layouts: [Layout; 2],
    /// Factors before the first pass, and after the last one.
    pub scales: [Option<Scale>; 2],
}

/// Transforms rows, from `arrays[0]` and back to there; `arrays[1]` has as much room.
pub(super) fn transform(
    kernel: &Kernel,
    stream: &Stream,
    tables: &OnDevice<'_>,
    rows: &Rows<'_>,
    arrays: [&DeviceBuffer; 2],
) -> Result<()> {
    let step = rows.step;
    let [mut from, mut to] = arrays;
    let mut log_before = 0;
    let last = step.log_radices.len() - 1;
    for (pass, &log_radix) in step.log_radices.iter().enumerate() {
        let log_columns = (step.log_tile - log_radix).min(step.log_n - log_radix);
        let write = if pass == last {
            rows.layouts[1]
        } else {
            rows.layouts[0]
        };
        let mut words = vec![
            from.memory().at(0, 0)?,
            to.memory().at(0, 0)?,
            rows.layouts[0].stride,
            rows.layouts[0].batch,
            write.stride,
            write.batch,
            step.log_n.into(),
            log_before,
            log_radix.into(),
            log_columns.into(),
        ];
        words.extend(tables.step(step)?);
        words.extend(tables.scale(rows.scales[0].filter(|_| pass == 0))?);
        words.extend(tables.scale(rows.scales[1].filter(|_| pass == last))?);
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let tile = 1u32 << (log_radix + log_columns);
        let grid = Grid {
            blocks: (1 << (step.log_n - log_radix - log_columns), rows.count as u32, 1),
            threads: ((tile / 2).clamp(1, THREADS_MAX), 1, 1),
            shared_bytes: tile * tables.1 as u32,
        };
        // SAFETY: the words are `NttPass` of ntt.cuh; rows fit their arrays in both layouts, and exponents their tables, by `NttPlan`.
        // Arrays, tables and kernel belong to an `Ntt`, whose ring is dropped before them and waits for its stream.
        unsafe { kernel.launch(stream, grid, &[Argument::Bytes(&bytes)]) }?;
        log_before += u64::from(log_radix);
        (from, to) = (to, from);
    }
    if last.is_multiple_of(2) {
        let bytes = rows.count * (tables.1 << step.log_n);
        stream.copy((arrays[0], 0), (arrays[1], 0), bytes)?;
    }
    Ok(())
}

/// Copies `count` rows of 2^`log_length` elements of BN254 from one layout to another: a pass of radix 1.
pub(super) fn laid_out(
    kernel: &Kernel,
    stream: &Stream,
    (log_length, count): (u32, u64),
    (from, from_bytes, from_layout): (&DeviceBuffer, u64, Layout),
    (to, to_bytes, to_layout): (&DeviceBuffer, u64, Layout),
) -> Result<()> {
    let log_columns = LOG_TILE.min(log_length);
    let mut words = vec![
        from.memory().at(from_bytes, 0)?,
        to.memory().at(to_bytes, 0)?,
        from_layout.stride,
        from_layout.batch,
        to_layout.stride,
        to_layout.batch,
        log_length.into(),
        0,
        0,
        log_columns.into(),
    ];
    // No roots, no twiddles, no factors.
    words.resize(PASS_WORDS, 0);
    let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    let grid = Grid {
        blocks: (1 << (log_length - log_columns), count as u32, 1),
        threads: (((1u32 << log_columns) / 2).clamp(1, THREADS_MAX), 1, 1),
        shared_bytes: (1 << log_columns) * ELEMENT_BYTES as u32,
    };
    // SAFETY: as in `transform`; rows fit both buffers, by `DevicesPlan`.
    unsafe { kernel.launch(stream, grid, &[Argument::Bytes(&bytes)]) }
}
