//! The launches of the passes of NTTs.
#![allow(unsafe_code)]

use super::radices::LOG_TILE;
use super::tables::{DeviceTables, RowTables, Scale};
use crate::buffer::DeviceBuffer;
use crate::error::Result;
use crate::kernels::{Argument, Grid, Kernel};
use crate::stream::Stream;

const THREADS_MAX: u32 = 256;
/// 64-bit words of `NttPass` in ntt.cuh.
const PASS_WORDS: usize = 29;

/// The layout of rows: element i of row y is at `i * stride + y * batch`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub stride: u64,
    pub batch: u64,
}

/// Rows that are transformed together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowBatch<'a> {
    pub step: &'a RowTables,
    pub count: u64,
    /// The layouts of the input and of the result.
    pub layouts: [Layout; 2],
    /// Factors before the first pass, and after the last one.
    pub scales: [Option<Scale>; 2],
}

/// Transforms rows from `arrays[0]` back to `arrays[0]`; `arrays[1]` has the same size.
pub(super) fn transform(
    kernel: &Kernel,
    stream: &Stream,
    tables: &DeviceTables<'_>,
    batch: &RowBatch<'_>,
    arrays: [&DeviceBuffer; 2],
) -> Result<()> {
    let step = batch.step;
    let [mut from, mut to] = arrays;
    let last = step.log_radices.len() - 1;
    for pass in 0..=last {
        let write = batch.layouts[usize::from(pass == last)];
        one_pass(
            kernel,
            stream,
            tables,
            batch,
            pass,
            [
                Rows {
                    address: from.memory().at(0, 0)?,
                    layout: batch.layouts[0],
                },
                Rows {
                    address: to.memory().at(0, 0)?,
                    layout: write,
                },
            ],
        )?;
        (from, to) = (to, from);
    }
    if last.is_multiple_of(2) {
        let bytes = batch.count * (tables.element_bytes << step.log_n);
        stream.copy((arrays[0], 0), (arrays[1], 0), bytes)?;
    }
    Ok(())
}

/// Transforms of a grid at most, a power of two.
const ROWS_MAX: u64 = 1 << 15;

/// Runs the last pass of `count` rows that lie one behind the other, in place; a factor behind it only if there is one
/// row.
pub(super) fn last_pass(
    kernel: &Kernel,
    stream: &Stream,
    tables: &DeviceTables<'_>,
    (step, count): (&RowTables, u64),
    after: Option<Scale>,
    array: &DeviceBuffer,
) -> Result<()> {
    let layout = Layout {
        stride: 1,
        batch: 1 << step.log_n,
    };
    let row_bytes = tables.element_bytes << step.log_n;
    for first in (0..count).step_by(ROWS_MAX as usize) {
        let batch = RowBatch {
            step,
            count: ROWS_MAX.min(count - first),
            layouts: [layout; 2],
            scales: [None, after],
        };
        let address = array.memory().at(first * row_bytes, batch.count * row_bytes)?;
        let here = Rows { address, layout };
        let last = step.log_radices.len() - 1;
        one_pass(kernel, stream, tables, &batch, last, [here; 2])?;
    }
    Ok(())
}

/// The addresses of a transform on the device. `to` may be `from` if there are two passes at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    pub from: u64,
    /// As large as `to`; not used if there is one pass.
    pub through: u64,
    pub to: u64,
}

/// Transforms rows along a route. Between the passes rows have the layout of the result.
pub(crate) fn transform_to(
    kernel: &Kernel,
    stream: &Stream,
    tables: &DeviceTables<'_>,
    batch: &RowBatch<'_>,
    route: Route,
) -> Result<()> {
    let last = batch.step.log_radices.len() - 1;
    let (mut from, mut read) = (route.from, batch.layouts[0]);
    for pass in 0..=last {
        let to = if (last - pass).is_multiple_of(2) {
            route.to
        } else {
            route.through
        };
        one_pass(
            kernel,
            stream,
            tables,
            batch,
            pass,
            [
                Rows {
                    address: from,
                    layout: read,
                },
                Rows {
                    address: to,
                    layout: batch.layouts[1],
                },
            ],
        )?;
        (from, read) = (to, batch.layouts[1]);
    }
    Ok(())
}

fn one_pass(
    kernel: &Kernel,
    stream: &Stream,
    tables: &DeviceTables<'_>,
    batch: &RowBatch<'_>,
    pass: usize,
    [from, to]: [Rows; 2],
) -> Result<()> {
    let step = batch.step;
    let (log_radix, last) = (step.log_radices[pass], step.log_radices.len() - 1);
    let log_before: u32 = step.log_radices[..pass].iter().sum();
    let log_columns = (step.log_tile - log_radix).min(step.log_n - log_radix);
    let mut words = vec![
        from.address,
        to.address,
        from.layout.stride,
        from.layout.batch,
        to.layout.stride,
        to.layout.batch,
        step.log_n.into(),
        log_before.into(),
        log_radix.into(),
        log_columns.into(),
    ];
    words.extend(tables.step(step)?);
    words.extend(tables.scale(batch.scales[0].filter(|_| pass == 0))?);
    words.extend(tables.scale(batch.scales[1].filter(|_| pass == last))?);
    let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    let tile = 1u32 << (log_radix + log_columns);
    let grid = Grid {
        blocks: (1 << (step.log_n - log_radix - log_columns), batch.count as u32, 1),
        threads: ((tile / 2).clamp(1, THREADS_MAX), 1, 1),
        shared_bytes: tile * tables.element_bytes as u32,
    };
    // SAFETY: the words are `NttPass` of ntt.cuh. Rows fit their arrays in both layouts, and exponents their
    // tables, by `NttPlan`, `PanelPlan`, or `CosetPlan` of the quotient. Arrays, tables and kernel belong to an
    // `Ntt`, a `PanelNtt` or a `DeviceCoset`, whose rings are dropped before them and wait for their streams.
    unsafe { kernel.launch(stream, grid, &[Argument::Bytes(&bytes)]) }
}

/// Rows of equal length from an address on the device, in a layout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub address: u64,
    pub layout: Layout,
}

/// Copies `count` rows of 2^`log_length` elements, times a factor if there is one: a pass of radix 1. `to` may be
/// `from`.
pub(crate) fn copy_rows(
    kernel: &Kernel,
    stream: &Stream,
    tables: &DeviceTables<'_>,
    (log_length, count): (u32, u64),
    [from, to]: [Rows; 2],
    factor: Option<Scale>,
) -> Result<()> {
    let log_columns = LOG_TILE.min(log_length);
    let mut words = vec![
        from.address,
        to.address,
        from.layout.stride,
        from.layout.batch,
        to.layout.stride,
        to.layout.batch,
        log_length.into(),
        0,
        0,
        log_columns.into(),
    ];
    let (before, after) = (tables.scale(factor)?, tables.scale(None)?);
    // No roots, no twiddles.
    words.resize(PASS_WORDS - before.len() - after.len(), 0);
    words.extend(before);
    words.extend(after);
    let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    let grid = Grid {
        blocks: (1 << (log_length - log_columns), count as u32, 1),
        threads: (((1u32 << log_columns) / 2).clamp(1, THREADS_MAX), 1, 1),
        shared_bytes: (1 << log_columns) * tables.element_bytes as u32,
    };
    // SAFETY: as in `one_pass`; rows fit both places, by `NttPlan` or `CosetPlan`.
    unsafe { kernel.launch(stream, grid, &[Argument::Bytes(&bytes)]) }
}
