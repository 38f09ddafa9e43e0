//! The quotient in the basis of the key's `h` points: the second stage of a proof.
//!
//! Where a witness satisfies the constraints, `a * b - c` vanishes on the domain, and its quotient by the domain's vanishing polynomial `X^n - 1` has
//! fewer than n coefficients. On the coset of `shift * omega^i`, where `shift^2 = omega`, that polynomial is the constant -2: so the values of
//! `a * b - c` on the coset determine the quotient, and the `h` points of circom's keys contain the constant. For other keys a transform gives the
//! quotient's coefficients.
//!
//! Algorithm: each of the three columns is taken to its coefficients and from there to the coset: in memory, if a column fits, else in two transforms
//! over the disk. Then one pass multiplies and subtracts, and a transform goes back, if the key has the monomial basis. Memory: that of a
//! transform ([`transform_twice`]).

use super::{Domain, QuotientBasis};
use crate::Result;
use crate::budget::PAGE_BYTES;
use crate::column::{
    Column, Draft, Placement, SCRATCH_FRAME_BYTES, SEQUENTIAL_BYTES, Workspace, Writer, ascending,
};
use crate::dry::Work;
use crate::error::Invalid;
use crate::kernels::field::KernelField;
use crate::kernels::vector;
use crate::parallel::Parallel;
use crate::stream::{Transform, invert, ntt, transform_twice};

/// Values that one thread multiplies at a time.
const JOB_VALUES: usize = 1 << 12;
/// Tiles, and buffers of readers and of the writer.
const BUFFERS: u64 = 3 + 3 * 2 + 2;

/// The scalars that the key's `h` points take, for columns of values on the domain.
///
/// # Errors
/// Those of [`transform_twice`] and [`ntt`], and of reading and writing columns.
pub(super) fn quotient<F: KernelField>(
    values: [Column<F>; 3],
    (log_n, domain): (u32, &Domain<F>),
    basis: QuotientBasis,
) -> Result<Column<F>> {
    let on_coset = on_coset(values, log_n, domain)?;
    match basis {
        QuotientBasis::Coset => Ok(on_coset),
        QuotientBasis::Monomial => {
            let vanishing = domain.shift.pow([1u64 << log_n]) - F::ONE;
            let back = Transform::coset_inverse(log_n, domain.omega, domain.shift)?;
            let to_coefficients = Transform {
                scale: back.scale * invert("the vanishing polynomial on a coset", vanishing)?,
                ..back
            };
            ntt(&on_coset, &to_coefficients, Placement::Disk)
        }
    }
}

/// The values of `a * b - c` on the coset.
fn on_coset<F: KernelField>([a, b, c]: [Column<F>; 3], log_n: u32, domain: &Domain<F>) -> Result<Column<F>> {
    let to_coefficients = Transform {
        after: domain.shift,
        ..Transform::inverse(log_n, domain.omega)?
    };
    let to_values = Transform::forward(log_n, domain.omega);
    let shifted =
        |column: Column<F>| transform_twice(column, [&to_coefficients, &to_values], Placement::Disk);
    let (a, b, c) = (shifted(a)?, shifted(b)?, shifted(c)?);
    product_less(&a, &b, &c)
}

/// `a * b - c`, element by element.
fn product_less<F: KernelField>(a: &Column<F>, b: &Column<F>, c: &Column<F>) -> Result<Column<F>> {
    let workspace = a.workspace();
    let len = a.len();
    Invalid::unless_at_most("values of a quotient", b.len().max(c.len()), len)?;
    let draft = Draft::scratch(workspace, "quotient on the coset", len, Placement::Disk)?;
    let chunk = chunk_within(workspace, &[a, b, c]);
    let writer = Writer::in_chunks(draft, chunk);
    if workspace.is_dry() {
        return rehearse([a, b, c], writer, chunk);
    }
    let mut writer = writer;
    let tile = || {
        workspace
            .budget
            .vec(chunk.min(len) as usize, F::ZERO, "quotient on the coset")
    };
    let mut tiles = [tile()?, tile()?, tile()?];
    let reader = |column: &Column<F>| column.reader(ascending(column.len(), chunk), 2);
    let mut readers = [reader(a)?, reader(b)?, reader(c)?];
    for region in ascending(len, chunk) {
        for (reader, tile) in readers.iter_mut().zip(&mut tiles) {
            reader.next_into(tile)?;
        }
        let here = region.len() as usize;
        let [a, b, c] = &mut tiles;
        (a[..here].chunks_mut(JOB_VALUES))
            .zip(b[..here].chunks_mut(JOB_VALUES))
            .zip(c[..here].chunks(JOB_VALUES))
            .parallel()
            .for_each(|((a, b), c)| {
                let mut product = [F::ZERO; 64];
                for ((a, b), c) in a.chunks_mut(64).zip(b.chunks(64)).zip(c.chunks(64)) {
                    let product = &mut product[..a.len()];
                    vector::product(product, a, b);
                    vector::difference(a, product, c);
                }
            });
        writer.push(&a[..here])?;
    }
    writer.finish()
}

/// Values at a time: what fits half of what the budget has left, a mebibyte at most, a frame at least.
fn chunk_within<F: KernelField>(workspace: &Workspace, columns: &[&Column<F>]) -> u64 {
    let frame_elements = columns.iter().map(|column| column.frame_elements());
    let least = frame_elements.fold((SCRATCH_FRAME_BYTES / F::BYTES) as u64, u64::max);
    let share = workspace.budget.available_bytes() / 2 / BUFFERS / F::BYTES as u64;
    let most = SEQUENTIAL_BYTES as u64 / F::BYTES as u64;
    1 << share.clamp(least, most.max(least)).ilog2()
}

fn rehearse<F: KernelField>(columns: [&Column<F>; 3], writer: Writer<F>, chunk: u64) -> Result<Column<F>> {
    let workspace = columns[0].workspace();
    let len = columns[0].len();
    let tile_bytes = (chunk.min(len) * F::BYTES as u64).next_multiple_of(PAGE_BYTES as u64);
    let readers_bytes: u64 = columns.iter().map(|column| column.reader_bytes(chunk, 2)).sum();
    let _held = workspace.hold(3 * tile_bytes + readers_bytes, "quotient on the coset")?;
    columns.iter().for_each(|column| column.count_read());
    workspace.passed(1, Work::products(len as f64));
    writer.finish()
}
