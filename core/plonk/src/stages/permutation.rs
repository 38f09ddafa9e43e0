//! The permutation argument's grand product for one set of columns.
//!
//! With column values `v_j`, images `s_j` under the permutation (`sigma`), and a row's own name
//! `delta^j * omega^i`, `z[i + 1] = z[i] * product over j of (v_j[i] + beta * delta^j * omega^i + gamma) /
//! (v_j[i] + beta * s_j[i] + gamma)` (Gabizon, Williamson, Ciobotaru: *PLONK*, 2019, section 5; halo2's
//! division into sets of columns). The values are those of halo2's `permutation::Argument::commit`.
//!
//! Shapes: columns of `rows` values over the domain of `omega`, in Montgomery form. One ascending pass over
//! all columns and their sigmas, column by column within a piece of a chunk of `c` rows; four multiplications
//! for each value, six for each row. Peak memory: `32 * c * (6 * columns + 5)` bytes.

use super::product::{Factors, running_product};
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Element, Workspace};
use spillproof_engine::error::Invalid;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::poly::{
    PIECE, PermutationChallenges, multiply_permutation_factors, powers_on_one_thread,
};

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

/// `z` of one set: `z[0] = first`, each further value by the formula above, the last `tail.len()` values are
/// `tail`. Also gives `z[rows - tail.len() - 1]`, the next set's first value. A zero denominator inverts to
/// zero, as in stock.
///
/// # Errors
/// [`Invalid::Length`] for columns shorter than `rows`, or another number of sigmas than of values;
/// [`Invalid::Tail`]; [`spillproof_engine::Error::BudgetTooSmall`], [`spillproof_engine::Error::OverBudget`],
/// [`spillproof_engine::Error::Io`], [`spillproof_engine::Error::Damaged`].
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
    let columns: Vec<&Column<F>> = set.values.iter().chain(&set.sigmas).copied().collect();
    let factors = SetFactors {
        challenges: PermutationChallenges {
            beta: set.beta,
            gamma: set.gamma,
            delta: set.delta,
        },
        first_name: set.beta.times(&set.delta_start),
        omega: set.omega,
    };
    running_product(workspace, WHAT, &columns, rows, (first, tail), &factors)
}

/// The fractions of one set.
struct SetFactors<F> {
    challenges: PermutationChallenges<F>,
    /// `beta * delta^j` of the first column: its name in row 0, with beta in it.
    first_name: F,
    omega: F,
}

impl<F: KernelField> Factors<F> for SetFactors<F> {
    fn make(&self, row: u64, columns: &[&[F]], numerators: &mut [F], denominators: &mut [F]) {
        numerators.fill(F::ONE);
        denominators.fill(F::ONE);
        let mut names = [F::ZERO; PIECE];
        let names = &mut names[..numerators.len()];
        powers_on_one_thread(names, self.first_name.times(&self.omega.pow([row])), &self.omega);
        let (values, sigmas) = columns.split_at(columns.len() / 2);
        for (values, sigmas) in values.iter().zip(sigmas) {
            multiply_permutation_factors(&self.challenges, values, sigmas, names, numerators, denominators);
        }
    }
}
