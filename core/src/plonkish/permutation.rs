//! The permutation argument's grand product for one set of columns.
//!
//! With column values `v_j`, images `s_j` under the permutation (`sigma`), and a row's own name `delta^j * omega^i`,
//! `z[i + 1] = z[i] * product over j of (v_j[i] + beta * delta^j * omega^i + gamma) / (v_j[i] + beta * s_j[i] + gamma)`
//! (Gabizon, Williamson, Ciobotaru: *PLONK*, 2019, section 5; halo2's division into sets of columns). The values are those of
//! halo2's `permutation::Argument::commit`.
//!
//! Shapes: columns of `rows` values over the domain of `omega`, in Montgomery form. One ascending pass over all columns and
//! their sigmas, column by column within a chunk of `c` rows; four multiplications for each value, six for each row. Peak
//! memory: `32 * c * (4 * columns + 8)` bytes.

use super::product::{PRODUCT_TILES, chunk_elements, computed_rows, rehearse_product, running_product};
use crate::Result;
use crate::column::{Column, Element, Reader, Region, Workspace};
use crate::error::Invalid;
use crate::kernels::field::KernelField;
use crate::kernels::poly::{PermutationChallenges, multiply_permutation_factors, powers};

const WHAT: &str = "permutation product";

/// Columns whose products one `z` takes together, and the challenges.
#[derive(Clone, Debug)]
pub struct ProductSet<'a, F> {
    /// The columns' values on the domain.
    pub values: Vec<&'a Column<F>>,
    /// For each column, the names of its cells' images.
    pub sigmas: Vec<&'a Column<F>>,
    /// The challenge that multiplies names.
    pub beta: F,
    /// The challenge that is added.
    pub gamma: F,
    /// `delta^j` of the first column.
    pub delta_start: F,
    /// The factor between the names of neighbouring columns.
    pub delta: F,
    /// The factor between the names of neighbouring rows.
    pub omega: F,
}

/// `z` of one set: `z[0] = first`, each further value by the formula above, the last `tail.len()` values are `tail`. Also gives
/// `z[rows - tail.len() - 1]`, the next set's first value. A zero denominator inverts to zero, as in stock.
///
/// # Errors
/// [`Invalid::Length`] for columns shorter than `rows`, or another number of sigmas than of values; [`Invalid::Tail`];
/// [`crate::Error::BudgetTooSmall`], [`crate::Error::OverBudget`], [`crate::Error::Io`], [`crate::Error::Damaged`].
pub fn grand_product<F: KernelField + Element>(
    workspace: &Workspace,
    set: &ProductSet<'_, F>,
    rows: u64,
    first: F,
    tail: &[F],
) -> Result<(Column<F>, F)> {
    workspace.run(|| product_in_turn(workspace, set, rows, first, tail))
}

fn product_in_turn<F: KernelField + Element>(
    workspace: &Workspace,
    set: &ProductSet<'_, F>,
    rows: u64,
    first: F,
    tail: &[F],
) -> Result<(Column<F>, F)> {
    if set.values.len() != set.sigmas.len() {
        return Err(Invalid::Length {
            what: "sigmas of a permutation".into(),
            given: set.sigmas.len() as u64,
            expected: set.values.len() as u64,
        }
        .into());
    }
    let computed = computed_rows(WHAT, rows, tail.len())?;
    let columns: Vec<&Column<F>> = set.values.iter().chain(&set.sigmas).copied().collect();
    // A tile each for values, sigmas and names.
    let chunk = chunk_elements(workspace, WHAT, &columns, PRODUCT_TILES + 3)?;
    if workspace.is_dry() {
        let product = rehearse_product(workspace, WHAT, &columns, (rows, computed, chunk), 3)?;
        return Ok((product, F::ZERO));
    }
    let open = |column: &&Column<F>| column.prefix(computed)?.read_ascending(chunk);
    let mut values: Vec<Reader<F>> = set.values.iter().map(open).collect::<Result<_>>()?;
    let mut sigmas: Vec<Reader<F>> = set.sigmas.iter().map(open).collect::<Result<_>>()?;
    let tile_len = chunk.min(computed) as usize;
    let mut value_tile = workspace.budget.vec(tile_len, F::ZERO, WHAT)?;
    let mut sigma_tile = workspace.budget.vec(tile_len, F::ZERO, WHAT)?;
    let mut name_tile = workspace.budget.vec(tile_len, F::ZERO, WHAT)?;
    let challenges = PermutationChallenges {
        beta: set.beta,
        gamma: set.gamma,
        delta: set.delta,
    };
    // beta * delta^j * omega^row, for the first row of the chunk to come.
    let mut first_name = set.beta.times(&set.delta_start);

    running_product(
        workspace,
        WHAT,
        (rows, chunk),
        first,
        tail,
        |region: Region, numerators, denominators| {
            let len = region.len() as usize;
            numerators.fill(F::ONE);
            denominators.fill(F::ONE);
            let names = &mut name_tile[..len];
            powers(names, &first_name, &set.omega);
            first_name = first_name.times(&set.omega.pow([len as u64]));
            for (values, sigmas) in values.iter_mut().zip(&mut sigmas) {
                values.next_into(&mut value_tile)?;
                sigmas.next_into(&mut sigma_tile)?;
                let (values, sigmas) = (&value_tile[..len], &sigma_tile[..len]);
                multiply_permutation_factors(&challenges, values, sigmas, names, numerators, denominators);
            }
            Ok(())
        },
    )
}
