//! The lookup argument's permuted columns and its grand product.
//!
//! Algorithm: the permuted input `A'` is the input in ascending order of the integers that its values stand
//! for. The permuted table `S'` has the input's value wherever that value is new in `A'`, and in the other
//! rows, in the order of [`LeftOvers`], what is then left of the table: every further copy of a value, and
//! values that no input has. Both columns are sorted out of core ([`super::sort`]); three cursors then run
//! through `A'`, through the sorted table, and through `A'` once more for what is left, the last two upwards
//! or downwards. The product is `z[i + 1] = z[i] * (a[i] + beta) * (s[i] + gamma) / ((a'[i] + beta) *
//! (s'[i] + gamma))` from `z[0] = 1` (halo2's lookup argument, *The halo2 Book*, section 3.4).
//!
//! An input that the table lacks is noticed where stock notices it; else the proof fails to verify.
//!
//! Shapes: `usable_rows` rows are permuted, tails follow; Montgomery form in and out. Peak memory: the sort's
//! ([`SortPlan`](super::SortPlan)), then `32 * c * 12` bytes for chunks of `c` elements; the product
//! `32 * c * 17`.

use super::integer::{Integer, to_canonical, to_native};
use super::product::{Factors, READER_BUFFERS, chunk_elements, running_product, running_products_of_short};
use super::short::Short;
use super::sort::{sort, sort_run};
use spillproof_engine::Result;
use spillproof_engine::budget::LeasedVec;
use spillproof_engine::column::{Column, Draft, Element, Placement, Reader, Workspace, Writer};
use spillproof_engine::dry::Work;
use spillproof_engine::error::Invalid;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::poly::multiply_shifted;

/// The order in which what is left of the table goes to the rows of `S'` that have room, the first row first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOvers {
    /// The smallest value first, as in halo2-axiom. An input that the table lacks is not noticed.
    Ascending,
    /// The largest value first, as in zcash's halo2. An input that the table lacks is refused.
    Descending,
}

const PERMUTE: &str = "permuted lookup table";
const PRODUCT: &str = "lookup product";

/// `(A', S')` of the first `usable_rows` rows of the compressed input and table, with their tails.
///
/// # Errors
/// [`Invalid::Region`] if a column has fewer rows, [`Invalid::NotInTable`] for an input that the table lacks,
/// if that is to be noticed; [`spillproof_engine::Error::BudgetTooSmall`],
/// [`spillproof_engine::Error::OverBudget`], [`spillproof_engine::Error::Io`],
/// [`spillproof_engine::Error::Damaged`].
pub fn permute<F: KernelField + Element>(
    workspace: &Workspace,
    input: &Column<F>,
    table: &Column<F>,
    usable_rows: u64,
    [input_tail, table_tail]: [&[F]; 2],
    left_overs: LeftOvers,
) -> Result<(Column<F>, Column<F>)> {
    workspace.run(|| {
        let permuted_input = sort(workspace, input, usable_rows, input_tail)?;
        let sorted_table = sort(workspace, table, usable_rows, &[])?;
        let sorted_input = permuted_input.prefix(usable_rows)?;
        let permuted_table =
            permuted_table(workspace, [&sorted_input, &sorted_table], table_tail, left_overs)?;
        Ok((permuted_input, permuted_table))
    })
}

/// [`permute`] of many lookups, whose `tails` are those of `A'` and `S'`: of several short ones at a time, one by each thread.
///
/// # Errors
/// As [`permute`].
pub fn permute_all<F: KernelField + Element>(
    workspace: &Workspace,
    lookups: &[[&Column<F>; 2]],
    usable_rows: u64,
    tails: &[[&[F]; 2]],
    left_overs: LeftOvers,
) -> Result<Vec<[Column<F>; 2]>> {
    workspace.run(|| {
        if let Some(made) = permute_short(workspace, lookups, usable_rows, tails, left_overs)? {
            return Ok(made);
        }
        let made = lookups.iter().zip(tails).map(|([input, table], tails)| {
            let (input, table) = permute(workspace, input, table, usable_rows, *tails, left_overs)?;
            Ok([input, table])
        });
        made.collect()
    })
}

fn permute_short<F: KernelField + Element>(
    workspace: &Workspace,
    lookups: &[[&Column<F>; 2]],
    usable_rows: u64,
    tails: &[[&[F]; 2]],
    left_overs: LeftOvers,
) -> Result<Option<Vec<[Column<F>; 2]>>> {
    let tail = tails.first().map_or(0, |[tail, _]| tail.len() as u64);
    let columns = lookups.iter().map(|sides| {
        let sides = sides
            .iter()
            .map(|side| side.prefix(usable_rows)?.cast::<Integer>());
        sides.collect::<Result<Vec<_>>>()
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let items: Vec<Vec<_>> = columns.iter().map(|sides| sides.iter().collect()).collect();
    let comparisons = usable_rows as f64 * f64::from(usable_rows.max(2).ilog2());
    let short = Short {
        workspace,
        what: PERMUTE,
        outputs: 2,
        rows: usable_rows + tail,
        placement: Placement::Passing,
        spare: 0,
        work: Work::products(2.0 * comparisons + 4.0 * usable_rows as f64),
    };
    let made = short.take(&items, Integer::ZERO, |item, tiles| {
        let ([input, table], [sorted, permuted]) = (&mut tiles.inputs[..], &mut tiles.outputs[..]) else {
            unreachable!("two columns of two")
        };
        for side in [&mut **input, &mut **table] {
            to_canonical::<F>(side);
            sort_run(side);
        }
        let usable = input.len();
        sorted[..usable].copy_from_slice(input);
        permuted[..usable].copy_from_slice(input);
        let mut left = LeftOver::new(left_overs, InMemory::new(table), InMemory::new(input));
        left.fill(&mut None, &mut permuted[..usable])?;
        left.end()?;
        for (side, tail) in [sorted, permuted].into_iter().zip(tails[item]) {
            let (values, last) = side.split_at_mut(usable);
            to_native::<F>(values);
            last.iter_mut()
                .zip(tail)
                .for_each(|(last, value)| *last = Integer::native(value));
        }
        Ok(())
    })?;
    let Some(made) = made else {
        return Ok(None);
    };
    let pair = |pair: Vec<Column<Integer>>| match &pair[..] {
        [input, table] => Ok([input.cast()?, table.cast()?]),
        _ => unreachable!("two columns of each"),
    };
    made.into_iter().map(pair).collect::<Result<_>>().map(Some)
}

/// `S'` for sorted columns of the same length.
fn permuted_table<F: KernelField + Element>(
    workspace: &Workspace,
    [input, table]: [&Column<F>; 2],
    tail: &[F],
    left_overs: LeftOvers,
) -> Result<Column<F>> {
    let rows = input.len() + tail.len() as u64;
    let chunk = chunk_elements(workspace, PERMUTE, &[input, input, table], 3)?;
    if workspace.is_dry() {
        return rehearse_table(workspace, [input, input, table], rows, chunk);
    }
    let draft = Draft::scratch(workspace, PERMUTE, rows, Placement::Passing)?;
    let mut writer = Writer::<Integer>::in_chunks(draft, chunk);
    let cursor = |column| Cursor::new::<F>(column, chunk, left_overs);
    let mut left = LeftOver::new(left_overs, cursor(table)?, cursor(input)?);
    let mut main = Cursor::new::<F>(input, chunk, LeftOvers::Ascending)?;
    let mut previous = None;
    loop {
        let values = main.chunk();
        if values.is_empty() {
            break;
        }
        left.fill(&mut previous, values)?;
        to_native::<F>(values);
        writer.push(values)?;
        main.refill()?;
    }
    left.end()?;
    let tail: Vec<Integer> = tail.iter().map(Integer::native).collect();
    writer.push(&tail)?;
    writer.finish()?.cast()
}

/// The dry run of [`permuted_table`], which walks over the input twice and the table once.
fn rehearse_table<F: KernelField + Element>(
    workspace: &Workspace,
    walks: [&Column<F>; 3],
    rows: u64,
    chunk: u64,
) -> Result<Column<F>> {
    let draft = Draft::scratch(workspace, PERMUTE, rows, Placement::Passing)?;
    let mut held = Vec::with_capacity(2 * walks.len());
    for walk in walks {
        let reader = workspace.hold(walk.reader_bytes(chunk, READER_BUFFERS), PERMUTE)?;
        held.push(workspace.hold(chunk.min(walk.len()) * F::BYTES as u64, PERMUTE)?);
        // Of one chunk it is done with the first values.
        held.extend((walk.len() > chunk).then_some(reader));
        walk.count_read();
    }
    workspace.passed(1, Work::products(4.0 * rows as f64));
    Writer::in_chunks(draft, chunk).finish()
}

/// A walk over sorted values, one by one.
trait Walk {
    /// The value that it stands at, in the order of `order`; `None` at the end.
    fn head(&self, order: LeftOvers) -> Option<Integer>;
    /// Goes on to the next one.
    fn advance(&mut self) -> Result<()>;
}

/// What the table has beyond one copy of each value of the input. Both are sorted, and walked along in the
/// same order.
struct LeftOver<W> {
    order: LeftOvers,
    table: W,
    input: W,
    previous: Option<Integer>,
}

impl<W: Walk> LeftOver<W> {
    fn new(order: LeftOvers, table: W, input: W) -> Self {
        Self {
            order,
            table,
            input,
            previous: None,
        }
    }

    fn next(&mut self) -> Result<Option<Integer>> {
        while let Some(value) = self.table.head(self.order) {
            let mut wanted = self.input.head(self.order);
            while wanted.is_some_and(|wanted| self.order.precedes(&wanted, &value)) {
                self.input.advance()?;
                wanted = self.input.head(self.order);
            }
            let is_copy = self.previous == Some(value);
            self.previous = Some(value);
            self.table.advance()?;
            if is_copy || wanted != Some(value) {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Makes rows of `S'` of the same rows of `A'`, before which `previous` stands: what is left takes the place of further copies.
    fn fill(&mut self, previous: &mut Option<Integer>, values: &mut [Integer]) -> Result<()> {
        for value in values {
            let is_new = *previous != Some(*value);
            *previous = Some(*value);
            // With fewer distinct values in the table than the input needs, nothing may be left: any value is
            // as wrong.
            if !is_new && let Some(other) = self.next()? {
                *value = other;
            }
        }
        Ok(())
    }

    /// As many values are left as there is room for, unless the table lacks one of the input's.
    fn end(mut self) -> Result<()> {
        match self.order == LeftOvers::Descending && self.next()?.is_some() {
            true => Err(Invalid::NotInTable.into()),
            false => Ok(()),
        }
    }
}

/// A walk over values in memory, which are in ascending order.
struct InMemory<'a> {
    values: &'a [Integer],
    /// Values that it has passed.
    passed: usize,
}

impl<'a> InMemory<'a> {
    fn new(values: &'a [Integer]) -> Self {
        Self { values, passed: 0 }
    }
}

impl Walk for InMemory<'_> {
    fn head(&self, order: LeftOvers) -> Option<Integer> {
        match order {
            LeftOvers::Ascending => self.values.get(self.passed),
            LeftOvers::Descending => self.values.iter().nth_back(self.passed),
        }
        .copied()
    }

    fn advance(&mut self) -> Result<()> {
        self.passed += 1;
        Ok(())
    }
}

impl LeftOvers {
    fn precedes(self, a: &Integer, b: &Integer) -> bool {
        match self {
            Self::Ascending => a < b,
            Self::Descending => a > b,
        }
    }
}

/// A walk over a sorted column, value by value, in canonical form.
struct Cursor {
    order: LeftOvers,
    reader: Reader<Integer>,
    tile: LeasedVec<Integer>,
    at: usize,
    len: usize,
    to_canonical: fn(&mut [Integer]),
}

impl Cursor {
    fn new<F: KernelField + Element>(column: &Column<F>, chunk: u64, order: LeftOvers) -> Result<Self> {
        let tile_len = chunk.min(column.len()) as usize;
        let values = column.cast::<Integer>()?;
        let mut cursor = Self {
            order,
            reader: match order {
                LeftOvers::Ascending => values.read_ascending(chunk)?,
                LeftOvers::Descending => values.read_descending(chunk)?,
            },
            tile: column.workspace().budget.vec(tile_len, Integer::ZERO, PERMUTE)?,
            at: 0,
            len: 0,
            to_canonical: to_canonical::<F>,
        };
        cursor.refill()?;
        Ok(cursor)
    }

    /// What is left of the chunk in memory; empty at the end.
    fn chunk(&mut self) -> &mut [Integer] {
        &mut self.tile[self.at..self.len]
    }

    fn refill(&mut self) -> Result<()> {
        let region = self.reader.next_into(&mut self.tile)?;
        (self.at, self.len) = (0, region.map_or(0, |region| region.len() as usize));
        let values = &mut self.tile[..self.len];
        (self.to_canonical)(values);
        if self.order == LeftOvers::Descending {
            values.reverse();
        }
        Ok(())
    }
}

impl Walk for Cursor {
    fn head(&self, _: LeftOvers) -> Option<Integer> {
        self.tile[..self.len].get(self.at).copied()
    }

    fn advance(&mut self) -> Result<()> {
        self.at += 1;
        if self.at == self.len {
            self.refill()?;
        }
        Ok(())
    }
}

/// The grand product over all rows of the four columns; its last `tail.len()` values are `tail`. A zero
/// denominator inverts to zero, as in stock.
///
/// # Errors
/// [`Invalid::Length`] for columns of different lengths, [`Invalid::Tail`] for a tail that leaves no row;
/// [`spillproof_engine::Error::BudgetTooSmall`], [`spillproof_engine::Error::OverBudget`],
/// [`spillproof_engine::Error::Io`], [`spillproof_engine::Error::Damaged`].
#[allow(clippy::too_many_arguments)]
pub fn product<F: KernelField + Element>(
    workspace: &Workspace,
    input: &Column<F>,
    table: &Column<F>,
    permuted_input: &Column<F>,
    permuted_table: &Column<F>,
    beta: F,
    gamma: F,
    tail: &[F],
) -> Result<Column<F>> {
    let columns = [input, table, permuted_input, permuted_table];
    workspace.run(|| product_in_turn(workspace, columns, beta, gamma, tail))
}

/// [`product`] of many lookups, whose columns are input and table, and both of them permuted, each with its tail: of several short ones
/// at a time, one by each thread.
///
/// # Errors
/// As [`product`].
pub fn product_all<F: KernelField + Element>(
    workspace: &Workspace,
    lookups: Vec<[Column<F>; 4]>,
    beta: F,
    gamma: F,
    tails: &[&[F]],
) -> Result<Vec<Column<F>>> {
    workspace.run(|| {
        let factors = LookupFactors { beta, gamma };
        let items: Vec<Vec<&Column<F>>> = lookups.iter().map(|columns| columns.iter().collect()).collect();
        if let Some(made) = running_products_of_short(workspace, PRODUCT, &items, tails, &factors)? {
            return Ok(made);
        }
        // Each lookup's columns go when its product is there.
        let products = lookups
            .into_iter()
            .zip(tails)
            .map(|(columns, tail)| product_in_turn(workspace, columns.each_ref(), beta, gamma, tail));
        products.collect()
    })
}

fn product_in_turn<F: KernelField + Element>(
    workspace: &Workspace,
    columns: [&Column<F>; 4],
    beta: F,
    gamma: F,
    tail: &[F],
) -> Result<Column<F>> {
    let [input, ..] = columns;
    let rows = input.len();
    if let Some(other) = columns.iter().find(|column| column.len() != rows) {
        return Err(Invalid::Length {
            what: "rows of the columns of a lookup".into(),
            given: other.len(),
            expected: rows,
        }
        .into());
    }
    let factors = LookupFactors { beta, gamma };
    let (product, _) = running_product(workspace, PRODUCT, &columns, rows, (F::ONE, tail), &factors)?;
    Ok(product)
}

/// The fractions of a lookup's product, of input, table and both of them permuted.
struct LookupFactors<F> {
    beta: F,
    gamma: F,
}

impl<F: KernelField> Factors<F> for LookupFactors<F> {
    fn make(&self, _row: u64, columns: &[&[F]], numerators: &mut [F], denominators: &mut [F]) {
        for (sides, out) in columns.chunks(2).zip([numerators, denominators]) {
            multiply_shifted((sides[0], &self.beta), (sides[1], &self.gamma), out);
        }
    }
}
