//! Many polynomials, each evaluated at its points in one pass over its coefficients.
//!
//! Each thread has a list of columns, and reads one after the other: while it computes, the next chunks are on their way, of the next
//! column, too, so that short columns do not wait for the disk one by one.
//!
//! Memory, whatever n: three chunks for each thread, of its largest column. Chunks, then the number of threads, shrink where the budget
//! is small.

use super::combinations::distinct;
use crate::Result;
use crate::budget::PAGE_BYTES;
use crate::column::{Column, Element, Reader, Workspace, descending};
use crate::dry::Work;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;
use spillproof_kernels::poly::evaluate_chunk_many;

/// Chunks of a thread on their way.
const CHUNKS_AHEAD: usize = 2;
/// Chunks of a thread: besides, one in work.
const CHUNKS_PER_THREAD: u64 = CHUNKS_AHEAD as u64 + 1;

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
    let (lists, chunk) = match columns.first() {
        None => (Vec::new(), 1),
        Some(column) => lists(column.workspace(), &columns, &points),
    };
    let of_lists = lists.iter().parallel();
    let of_lists = of_lists.map(|list| {
        let of_list = |&place: &usize| (columns[place], &points[place][..]);
        evaluate_in_turn(&list.iter().map(of_list).collect::<Vec<_>>(), chunk)
    });
    let mut values = vec![Vec::new(); columns.len()];
    for (list, of_list) in lists.iter().zip(of_lists) {
        for (&place, of_column) in list.iter().zip(of_list?) {
            values[place] = of_column;
        }
    }
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
    let (lists, chunk) = lists(workspace, columns, points);
    for (column, points) in columns.iter().zip(points) {
        column.count_read();
        workspace.passed(0, Work::products(points.len() as f64 * column.len() as f64));
    }
    workspace.passed(1, Work::default());
    let held_bytes = |list: &Vec<usize>| {
        let of_list = || list.iter().map(|&place| columns[place]);
        let buffer_bytes = of_list().map(|column| column.reader_bytes(chunk_of(column, chunk), 1));
        let chunks = of_list().map(|column| column.len().div_ceil(chunk_of(column, chunk)));
        let ahead = chunks.sum::<u64>().min(CHUNKS_AHEAD as u64);
        let tile_elements = of_list().map(|column| chunk_of(column, chunk)).max().unwrap_or(0);
        let tile_bytes = (tile_elements * F::BYTES as u64).next_multiple_of(PAGE_BYTES as u64);
        buffer_bytes.max().unwrap_or(0) * ahead + tile_bytes
    };
    let _held = workspace.hold(lists.iter().map(held_bytes).sum(), "evaluation")?;
    Ok(())
}

/// The elements of a column that are taken at a time, a power of two.
fn chunk_of<F: Element>(column: &Column<F>, chunk_max: u64) -> u64 {
    chunk_max.min(column.len().next_power_of_two())
}

/// The columns of each thread, and the most elements that one takes at a time.
fn lists<F: KernelField + Element>(
    workspace: &Workspace,
    columns: &[&Column<F>],
    points: &[Vec<F>],
) -> (Vec<Vec<usize>>, u64) {
    let (threads, chunk) = threads(workspace, columns);
    let mut lists = vec![(0, Vec::new()); threads];
    for (place, (column, points)) in columns.iter().zip(points).enumerate() {
        // The one with the least to do.
        if let Some((cost, list)) = lists.iter_mut().min_by_key(|(cost, _)| *cost) {
            *cost += column.len() * (points.len() as u64 + 1);
            list.push(place);
        }
    }
    (lists.into_iter().map(|(_, list)| list).collect(), chunk)
}

/// How many threads read, and their chunk at most, in half of what the budget has left.
fn threads<F: KernelField + Element>(workspace: &Workspace, columns: &[&Column<F>]) -> (usize, u64) {
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
    let mut threads = columns.len().min(rayon::current_num_threads()).max(1);
    let bytes = |threads: usize, chunk: u64| threads as u64 * CHUNKS_PER_THREAD * chunk * F::BYTES as u64;
    while chunk > chunk_min && bytes(threads, chunk) > available {
        chunk /= 2;
    }
    while threads > 1 && bytes(threads, chunk) > available {
        threads -= 1;
    }
    (threads, chunk)
}

/// The values of each column at its points, one column after the other.
fn evaluate_in_turn<F: KernelField + Element>(
    columns: &[(&Column<F>, &[F])],
    chunk_max: u64,
) -> Result<Vec<Vec<F>>> {
    let mut values: Vec<Vec<F>> = columns
        .iter()
        .map(|(_, points)| vec![F::ZERO; points.len()])
        .collect();
    let Some((first, _)) = columns.first() else {
        return Ok(values);
    };
    let chunks: Vec<(u64, u64)> = (columns.iter())
        .map(|(column, _)| (column.len(), chunk_of(column, chunk_max)))
        .collect();
    let tile_elements = chunks.iter().map(|(_, chunk)| *chunk).max().unwrap_or(0);
    let regions = chunks
        .into_iter()
        .enumerate()
        .flat_map(|(place, (len, chunk))| descending(len, chunk).map(move |region| (place, region)));
    let owned = columns.iter().map(|(column, _)| (*column).clone()).collect();
    let mut reader = Reader::in_turn(owned, regions.clone(), CHUNKS_AHEAD)?;
    let budget = &first.workspace().budget;
    let mut tile = budget.vec(tile_elements as usize, F::ZERO, "evaluation")?;
    for (place, _) in regions {
        if let Some(region) = reader.next_into(&mut tile)? {
            evaluate_chunk_many(
                &tile[..region.len() as usize],
                columns[place].1,
                &mut values[place],
            );
        }
    }
    Ok(values)
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
