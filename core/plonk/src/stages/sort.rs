//! External merge sort of a column, by the integers that its values stand for.
//!
//! Algorithm: runs as long as the lease are sorted in place and written one behind the other into one scratch
//! column, in canonical form (`Integer`); rounds of k-way merges (Knuth, *The Art of Computer Programming* 3,
//! section 5.4.1) make them longer until one is left (`merge`). The last write, of the only run or of the
//! last merge, goes back to Montgomery form. If everything fits the lease there is one run and no merge: one
//! read, one write.
//!
//! Shapes: the first `len` values of the column, ascending, then `tail`. Peak memory: what
//! [`SortPlan::leased_bytes`] says, at most what the budget has left: `32 * run + 5 * chunk` bytes for runs,
//! `fan_in * 6 * chunk + 3 * write_chunk` for merges. On disk: two columns.

use rayon::prelude::*;

use super::integer::{Integer, to_canonical, to_native};
use super::merge::{MERGE_CHUNKS, merge};
use super::product::{READER_BUFFERS, WRITER_BUFFERS, too_small};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::column::{
    Column, Draft, Element, Placement, SCRATCH_FRAME_BYTES, SEQUENTIAL_BYTES, Workspace, Writer, ascending,
};
use spillproof_engine::dry::Work;
use spillproof_engine::error::Invalid;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;

const WHAT: &str = "sort";
const FRAME_BYTES: u64 = SCRATCH_FRAME_BYTES as u64;
const ELEMENT_BYTES: u64 = 32;
/// Values that one thread looks at at a time.
const PIECE: usize = 4096;

/// How a sort is cut, from the bytes that it may take. All lengths are in elements and whole frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortPlan {
    /// Number of values.
    pub len: u64,
    /// Values that are sorted at a time.
    pub run: u64,
    /// Values that the runs' reader and writer move at a time; divides `run`, if there are several.
    pub run_chunk: u64,
    /// Runs that one merge takes together.
    pub fan_in: u64,
    /// Values that each reader of a merge moves at a time.
    pub merge_chunk: u64,
    /// Values that a merge writes at a time.
    pub write_chunk: u64,
}

impl SortPlan {
    /// The plan for `len` values in `available_bytes`; `frame_bytes` is the frame of the column that is read.
    ///
    /// # Errors
    /// As `Err`, the smallest number of bytes that works.
    pub fn new(len: u64, frame_bytes: u64, available_bytes: u64) -> Result<Self, u64> {
        let frame_bytes = frame_bytes.max(FRAME_BYTES);
        let bytes = len * ELEMENT_BYTES;
        let buffers = READER_BUFFERS + WRITER_BUFFERS;
        // The smallest: runs of one frame, merged two by two.
        let least = ((buffers + 1) * frame_bytes).max((2 * MERGE_CHUNKS + WRITER_BUFFERS) * FRAME_BYTES);
        if available_bytes < least {
            return Err(least);
        }
        // A small share for transfers, in powers of two, so that chunks divide runs.
        let share = (available_bytes / 32).clamp(frame_bytes, frame_bytes.max(SEQUENTIAL_BYTES as u64));
        let chunk_bytes = 1u64 << share.ilog2();
        let write_bytes = 1u64
            << (available_bytes / 32)
                .clamp(FRAME_BYTES, SEQUENTIAL_BYTES as u64)
                .ilog2();
        let run_bytes = available_bytes - buffers * chunk_bytes;
        let mut plan = Self {
            len,
            run: run_bytes / chunk_bytes * chunk_bytes / ELEMENT_BYTES,
            run_chunk: chunk_bytes / ELEMENT_BYTES,
            fan_in: 2,
            merge_chunk: FRAME_BYTES / ELEMENT_BYTES,
            write_chunk: write_bytes / ELEMENT_BYTES,
        };
        if bytes.next_multiple_of(FRAME_BYTES) <= run_bytes {
            plan.run = len;
            return Ok(plan);
        }
        // The fewest rounds, then the fewest runs at a time that keep to them, then the longest reads.
        let merge_bytes = available_bytes - WRITER_BUFFERS * write_bytes;
        let fan_in_max = (merge_bytes / (MERGE_CHUNKS * FRAME_BYTES)).max(2);
        let runs = plan.runs();
        let rounds = rounds(runs, fan_in_max);
        let enough = |fan_in: u64| fan_in.checked_pow(rounds).is_none_or(|reach| reach >= runs);
        let root = (runs as f64).powf(1.0 / f64::from(rounds.max(1))) as u64;
        plan.fan_in = root.saturating_sub(1).max(2);
        while plan.fan_in < fan_in_max && !enough(plan.fan_in) {
            plan.fan_in += 1;
        }
        let share = merge_bytes / (MERGE_CHUNKS * plan.fan_in);
        plan.merge_chunk =
            (share.clamp(FRAME_BYTES, SEQUENTIAL_BYTES as u64) / FRAME_BYTES) * FRAME_BYTES / ELEMENT_BYTES;
        Ok(plan)
    }

    /// Sorted runs before the first merge.
    pub fn runs(&self) -> u64 {
        self.len.div_ceil(self.run.max(1))
    }

    /// Merges that each value goes through.
    pub fn rounds(&self) -> u32 {
        rounds(self.runs(), self.fan_in)
    }

    /// The most bytes that are leased at one time.
    pub fn leased_bytes(&self) -> u64 {
        let run = self.run.min(self.len) * ELEMENT_BYTES;
        let buffers = READER_BUFFERS + WRITER_BUFFERS;
        let runs = run.next_multiple_of(4096) + buffers * self.run_chunk * ELEMENT_BYTES;
        if self.runs() <= 1 {
            return runs;
        }
        let merge_chunks = MERGE_CHUNKS * self.fan_in * self.merge_chunk;
        let merges = (merge_chunks + WRITER_BUFFERS * self.write_chunk) * ELEMENT_BYTES;
        runs.max(merges)
    }

    /// Bytes that are read, and as many are written, besides the tail and padding to frames.
    pub fn bytes_moved(&self) -> u64 {
        self.len * ELEMENT_BYTES * (1 + u64::from(self.rounds()))
    }
}

/// How often `runs` can be merged, `fan_in` at a time, until one is left.
fn rounds(mut runs: u64, fan_in: u64) -> u32 {
    let mut rounds = 0;
    while runs > 1 {
        runs = runs.div_ceil(fan_in.max(2));
        rounds += 1;
    }
    rounds
}

/// The first `len` values in ascending order of their integers, then `tail`.
///
/// # Errors
/// [`Error::Invalid`] if there are fewer values, [`Error::BudgetTooSmall`] before anything is read,
/// [`Error::OverBudget`], [`Error::Io`], [`Error::Damaged`].
pub fn sort<F: KernelField + Element>(
    workspace: &Workspace,
    values: &Column<F>,
    len: u64,
    tail: &[F],
) -> Result<Column<F>> {
    workspace.run(|| sort_in_turn(workspace, values, len, tail))
}

fn sort_in_turn<F: KernelField + Element>(
    workspace: &Workspace,
    values: &Column<F>,
    len: u64,
    tail: &[F],
) -> Result<Column<F>> {
    let available_bytes = workspace.budget.available_bytes();
    let frame_bytes = values.frame_elements() * ELEMENT_BYTES;
    let plan = SortPlan::new(len, frame_bytes, available_bytes)
        .map_err(|needed_bytes| too_small(workspace, WHAT, needed_bytes))?;
    sort_as_planned(workspace, values, &plan, tail)
}

/// As [`sort`], with a plan that was made elsewhere.
///
/// # Errors
/// As [`sort`].
pub fn sort_as_planned<F: KernelField + Element>(
    workspace: &Workspace,
    values: &Column<F>,
    plan: &SortPlan,
    tail: &[F],
) -> Result<Column<F>> {
    workspace.run(|| as_planned_in_turn(workspace, values, plan, tail))
}

fn as_planned_in_turn<F: KernelField + Element>(
    workspace: &Workspace,
    values: &Column<F>,
    plan: &SortPlan,
    tail: &[F],
) -> Result<Column<F>> {
    let frame = FRAME_BYTES / ELEMENT_BYTES;
    let chunked = plan.run_chunk > 0 && plan.merge_chunk > 0 && plan.write_chunk > 0;
    if !chunked
        || (plan.runs() > 1 && (!plan.run.is_multiple_of(plan.run_chunk) || !plan.run.is_multiple_of(frame)))
    {
        return Err(Invalid::SortPlan {
            run: plan.run,
            run_chunk: plan.run_chunk,
            merge_chunk: plan.merge_chunk,
            write_chunk: plan.write_chunk,
            frame_elements: frame,
        }
        .into());
    }
    if workspace.is_dry() {
        return rehearse_sort(workspace, &values.prefix(plan.len)?, plan, tail.len() as u64);
    }
    let tail: Vec<Integer> = tail.iter().map(Integer::native).collect();
    // Montgomery limbs, for the time being.
    let values = values.prefix(plan.len)?.cast::<Integer>()?;
    if plan.runs() <= 1 {
        return sort_runs::<F>(workspace, &values, plan, Last::Yes(&tail))?.cast();
    }
    let mut sorted = sort_runs::<F>(workspace, &values, plan, Last::No)?;
    let (mut run, fan_in) = (plan.run, plan.fan_in.max(2));
    while run < plan.len {
        let longer = run.saturating_mul(fan_in);
        let last = if longer < plan.len {
            Last::No
        } else {
            Last::Yes(&tail)
        };
        sorted = merge_round::<F>(workspace, &sorted, run, plan, last)?;
        run = longer;
    }
    sorted.cast()
}

/// The dry run of [`sort_as_planned`].
fn rehearse_sort<F: KernelField + Element>(
    workspace: &Workspace,
    values: &Column<F>,
    plan: &SortPlan,
    tail: u64,
) -> Result<Column<F>> {
    let writer = |len: u64, chunk: u64| {
        let draft = Draft::<F>::scratch(workspace, WHAT, len, Placement::Passing)?;
        Ok::<_, Error>(Writer::in_chunks(draft, chunk))
    };
    let tail_of = |is_last: bool| if is_last { tail } else { 0 };
    let mut sorted = {
        let writer = writer(plan.len + tail_of(plan.runs() <= 1), plan.run_chunk)?;
        let reader = workspace.hold(values.reader_bytes(plan.run_chunk, READER_BUFFERS), WHAT)?;
        let _run = workspace.hold(plan.run.min(plan.len) * ELEMENT_BYTES, WHAT)?;
        values.count_read();
        // The only run is read whole before it is written.
        let _reader = (plan.runs() > 1).then_some(reader);
        writer.finish()?
    };
    let (mut run, fan_in) = (plan.run, plan.fan_in.max(2));
    while run < plan.len && plan.runs() > 1 {
        let longer = run.saturating_mul(fan_in);
        let merged = writer(plan.len + tail_of(longer >= plan.len), plan.write_chunk)?;
        let together = plan.len.div_ceil(run).min(fan_in);
        let chunk = plan.merge_chunk.min(run);
        let one = sorted
            .prefix(run.min(plan.len))?
            .reader_bytes(chunk, READER_BUFFERS);
        let tile = 2 * chunk * together * ELEMENT_BYTES;
        let _tiles = (workspace.hold(tile, WHAT)?, workspace.hold(tile, WHAT)?);
        let _readers = workspace.hold(together * one, WHAT)?;
        sorted.count_read();
        sorted = merged.finish()?;
        run = longer;
    }
    let comparisons = plan.len as f64 * f64::from(plan.len.max(2).ilog2());
    workspace.passed(1 + u64::from(plan.rounds()), Work::products(comparisons));
    Ok(sorted)
}

/// Whether a write is the last one: in Montgomery form, and followed by the tail.
#[derive(Clone, Copy)]
enum Last<'a> {
    No,
    Yes(&'a [Integer]),
}

impl Last<'_> {
    fn writer(self, workspace: &Workspace, plan: &SortPlan, chunk: u64) -> Result<Writer<Integer>> {
        let (what, tail) = match self {
            Last::No => ("sorted runs", 0),
            Last::Yes(tail) => ("sorted values", tail.len() as u64),
        };
        let draft = Draft::scratch(workspace, what, plan.len + tail, Placement::Passing)?;
        Ok(Writer::in_chunks(draft, chunk))
    }

    fn push<F: KernelField>(self, writer: &mut Writer<Integer>, values: &mut [Integer]) -> Result<()> {
        if let Last::Yes(_) = self {
            to_native::<F>(values);
        }
        writer.push(values)
    }

    fn finish(self, mut writer: Writer<Integer>) -> Result<Column<Integer>> {
        if let Last::Yes(tail) = self {
            writer.push(tail)?;
        }
        writer.finish()
    }
}

fn sort_runs<F: KernelField>(
    workspace: &Workspace,
    values: &Column<Integer>,
    plan: &SortPlan,
    last: Last<'_>,
) -> Result<Column<Integer>> {
    let mut writer = last.writer(workspace, plan, plan.run_chunk)?;
    let mut reader = values.read_ascending(plan.run_chunk)?;
    let run_len = plan.run.min(plan.len) as usize;
    let mut tile = workspace.budget.vec(run_len, Integer::ZERO, "run to be sorted")?;
    for region in ascending(plan.len, plan.run) {
        let run = &mut tile[..region.len() as usize];
        for chunk in run.chunks_mut(plan.run_chunk as usize) {
            reader.next_into(chunk)?;
        }
        to_canonical::<F>(run);
        sort_run(run);
        for chunk in run.chunks_mut(plan.run_chunk as usize) {
            last.push::<F>(&mut writer, chunk)?;
        }
    }
    last.finish(writer)
}

/// Sorts integers in memory.
pub(super) fn sort_run(run: &mut [Integer]) {
    // Range checks and tables of small numbers are the common case.
    let is_other = |run: &[Integer]| (!run.iter().all(Integer::is_word)).then_some(());
    if run.chunks(PIECE).parallel().find_map_first(is_other).is_none() {
        run.par_sort_unstable_by_key(|integer| integer.0[3]);
    } else {
        run.par_sort_unstable();
    }
}

/// Merges neighbouring runs of `run` values, `fan_in` at a time.
fn merge_round<F: KernelField>(
    workspace: &Workspace,
    sorted: &Column<Integer>,
    run: u64,
    plan: &SortPlan,
    last: Last<'_>,
) -> Result<Column<Integer>> {
    let mut writer = last.writer(workspace, plan, plan.write_chunk)?;
    for together in ascending(plan.len, run.saturating_mul(plan.fan_in.max(2))) {
        merge(sorted, together, run, plan.merge_chunk, |merged| {
            last.push::<F>(&mut writer, merged)
        })?;
    }
    last.finish(writer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_keeps_to_its_bytes_and_less_than_the_least_is_refused() {
        for len in [0u64, 1, 511, 512, 513, 5000, 1 << 14, 1 << 20, (1 << 24) + 5] {
            for frame_bytes in [16 << 10, 64 << 10] {
                let least = SortPlan::new(len, frame_bytes, 0).unwrap_err();
                assert_eq!(SortPlan::new(len, frame_bytes, least - 1), Err(least));
                let mut available = least;
                while available < 4 << 30 {
                    let plan = SortPlan::new(len, frame_bytes, available).unwrap();
                    assert!(plan.leased_bytes() <= available, "{plan:?} in {available}");
                    assert!(
                        plan.runs() <= 1 || plan.run.is_multiple_of(plan.run_chunk),
                        "{plan:?}"
                    );
                    available += available / 3 + 1;
                }
            }
        }
    }

    #[test]
    fn rounds_shrink_with_the_budget() {
        let plan = |available| SortPlan::new(1 << 24, 16 << 10, available).unwrap();
        assert_eq!(plan(1 << 30).rounds(), 0);
        assert_eq!(plan(128 << 20).rounds(), 1);
        assert!(
            plan(128 << 20).merge_chunk * 32 > 512 << 10,
            "{:?}",
            plan(128 << 20)
        );
        assert!(plan(4 << 20).rounds() > 1);
        assert_eq!(plan(64 << 20).bytes_moved(), 2 * (512 << 20));
    }
}
