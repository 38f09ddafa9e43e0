//! Many polynomials, each evaluated at its points in one pass over its coefficients.
//!
//! Memory, whatever n: three chunks for each column that is in work, a column a thread at most. Chunks, then
//! the number of columns in work, shrink where the budget is small.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::combinations::distinct;
use crate::Result;
use crate::budget::PAGE_BYTES;
use crate::column::{Column, Element, Workspace};
use crate::dry::Work;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;
use spillproof_kernels::poly::evaluate_chunk_many;

/// Chunks for each column that is being evaluated: two on their way, one in work.
const CHUNKS_PER_COLUMN: u64 = 3;

/// The values of each polynomial at each of its points. A column that is asked for several times is read
/// once; several columns are in work at a time, so that reading overlaps computing.
///
/// # Errors
/// [`crate::Error::OverBudget`], [`crate::Error::Io`], [`crate::Error::Damaged`].
pub fn evaluate_all<F: KernelField + Element>(queries: &[(&Column<F>, Vec<F>)]) -> Result<Vec<Vec<F>>> {
    match queries.first() {
        Some((column, _)) => column.workspace().run(|| evaluate_all_in_turn(queries)),
        None => Ok(Vec::new()),
    }
}

fn evaluate_all_in_turn<F: KernelField + Element>(queries: &[(&Column<F>, Vec<F>)]) -> Result<Vec<Vec<F>>> {
    let (columns, places) = distinct(queries.iter().map(|(column, _)| *column));
    let mut points: Vec<Vec<F>> = vec![Vec::new(); columns.len()];
    for ((_, wanted), &place) in queries.iter().zip(&places) {
        for point in wanted {
            if !points[place].contains(point) {
                points[place].push(*point);
            }
        }
    }
    if let Some(column) = columns.first()
        && column.workspace().is_dry()
    {
        rehearse(column.workspace(), &columns, &points)?;
        return Ok(queries
            .iter()
            .map(|(_, points)| vec![F::ZERO; points.len()])
            .collect());
    }
    let values: Mutex<Vec<Result<Vec<F>>>> = Mutex::new(columns.iter().map(|_| Ok(Vec::new())).collect());
    let next = AtomicUsize::new(0);
    let work = |chunk_max: u64| {
        loop {
            let column = next.fetch_add(1, Relaxed);
            let (Some(coefficients), Some(points)) = (columns.get(column), points.get(column)) else {
                return;
            };
            let result = evaluate_in_chunks(coefficients, points, chunk_max);
            values.lock().unwrap_or_else(PoisonError::into_inner)[column] = result;
        }
    };
    let (workers, chunk) = match columns.first() {
        None => (0, 1),
        Some(column) => workers(column.workspace(), &columns),
    };
    (0..workers).parallel().for_each(|_| work(chunk));
    let values = values
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    let value = |place: usize, point: &F| {
        let at = points[place].iter().position(|other| other == point);
        at.and_then(|at| values[place].get(at))
            .copied()
            .unwrap_or(F::ZERO)
    };
    Ok(queries
        .iter()
        .zip(&places)
        .map(|((_, wanted), &place)| wanted.iter().map(|point| value(place, point)).collect())
        .collect())
}

/// The dry run of [`evaluate_all`] over distinct columns.
fn rehearse<F: KernelField + Element>(
    workspace: &Workspace,
    columns: &[&Column<F>],
    points: &[Vec<F>],
) -> Result<()> {
    let (workers, chunk) = workers(workspace, columns);
    let element_bytes = F::BYTES as u64;
    let mut each = Vec::with_capacity(columns.len());
    for (column, points) in columns.iter().zip(points) {
        let chunk = chunk.min(column.len().next_power_of_two());
        each.push(
            column.reader_bytes(chunk, 2) + (chunk * element_bytes).next_multiple_of(PAGE_BYTES as u64),
        );
        column.count_read();
        workspace.passed(0, Work::products(points.len() as f64 * column.len() as f64));
    }
    workspace.passed(1, Work::default());
    // The largest together.
    each.sort_unstable_by(|a, b| b.cmp(a));
    let _held = workspace.hold(each.iter().take(workers).sum(), "evaluation")?;
    Ok(())
}

/// How many columns are in work at a time, and their chunk at most, in half of what the budget has left.
fn workers<F: KernelField + Element>(workspace: &Workspace, columns: &[&Column<F>]) -> (usize, u64) {
    let chunk_min = columns
        .iter()
        .map(|column| column.frame_elements())
        .max()
        .unwrap_or(1);
    let chunk_max = columns
        .iter()
        .map(|column| column.sequential_chunk())
        .max()
        .unwrap_or(1);
    let available = workspace.budget.available_bytes() / 2;
    let mut chunk = chunk_max.max(chunk_min);
    let mut workers = columns.len().min(rayon::current_num_threads()).max(1);
    let bytes = |workers: usize, chunk: u64| workers as u64 * CHUNKS_PER_COLUMN * chunk * F::BYTES as u64;
    while chunk > chunk_min && bytes(workers, chunk) > available {
        chunk /= 2;
    }
    while workers > 1 && bytes(workers, chunk) > available {
        workers -= 1;
    }
    (workers, chunk)
}

fn evaluate_in_chunks<F: KernelField + Element>(
    coefficients: &Column<F>,
    points: &[F],
    chunk_max: u64,
) -> Result<Vec<F>> {
    let mut carries = vec![F::ZERO; points.len()];
    if points.is_empty() {
        return Ok(carries);
    }
    let chunk = chunk_max.min(coefficients.len().next_power_of_two());
    let mut reader = coefficients.read_descending(chunk)?;
    let budget = &coefficients.workspace().budget;
    let mut tile = budget.vec(chunk as usize, F::ZERO, "evaluation")?;
    while let Some(region) = reader.next_into(&mut tile)? {
        evaluate_chunk_many(&tile[..region.len() as usize], points, &mut carries);
    }
    Ok(carries)
}

/// The factors of each distinct column, added up, without zeros.
pub fn merged<F: KernelField>(places: &[usize], factors: &[F]) -> Vec<(usize, F)> {
    let mut merged: Vec<(usize, F)> = Vec::new();
    for (&place, factor) in places.iter().zip(factors) {
        match merged.iter_mut().find(|(other, _)| *other == place) {
            Some((_, sum)) => *sum = sum.plus(factor),
            None => merged.push((place, *factor)),
        }
    }
    merged.retain(|(_, factor)| *factor != F::ZERO);
    merged
}
