//! The constraints of the standard arguments as values of a [`Builder`]: permutation, lookup, shuffle, trash.
//!
//! Sources: the halo2 book, *Permutation argument* and *Lookup argument* (zero-knowledge adjustments
//! included); the shuffle argument is the same product over one pair of expressions; the trash argument is
//! midnight-proofs'. n rows, the last
//! `blinding` of which are random; row `n - blinding - 1` is the last that a product reaches. With l_0 and
//! l_last the Lagrange polynomials of rows 0 and that one, and `active` 1 on the rows before it:
//!
//! ```text
//! permutation, sets i of columns v_j with sigma_j (j counts on through the sets):
//!     l_0 (1 - z_0),   l_last (z_last^2 - z_last),   l_0 (z_i - z_(i-1)(omega^last X))  for i > 0,
//!     active (z_i(omega X) prod (v_j + beta sigma_j + gamma) - z_i prod (v_j + beta delta^j X + gamma))  for all i
//! lookup, compressed input a and table s, permuted a' and s':
//!     l_0 (1 - z),   l_last (z^2 - z),
//!     active (z(omega X) (a' + beta) (s' + gamma) - z (a + beta) (s + gamma)),
//!     l_0 (a' - s'),   active (a' - s') (a' - a'(omega^-1 X))
//! shuffle, compressed input a and shuffled b:
//!     l_0 (1 - z),   l_last (z^2 - z),   active (z(omega X) (b + gamma) - z (a + gamma))
//! trash, constraints folded to c, selector q, trash column t:
//!     c - (1 - q) t
//! ```
//!
//! The constraints come in this order, which is halo2's: it decides which power of the challenge each gets in
//! [`Builder::fold`]. Memory: none but the builder's.

use super::builder::Builder;
use super::program::Value;
use spillproof_kernels::field::KernelField;

/// The rows that constraints tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSelectors {
    /// 1 on row 0, else 0.
    pub first: Value,
    /// 1 on the last row that a product reaches.
    pub last: Value,
    /// 1 on the rows before that.
    pub active: Value,
    /// Rotation from row 0 to the last row that a product reaches.
    pub last_rotation: i32,
}

impl RowSelectors {
    /// From `column`, which stands for the Lagrange polynomial of row 0
    /// ([`Source::FirstLagrange`](super::Source::FirstLagrange)): the others are its rotations, so that
    /// nothing more is read or transformed.
    pub fn computed<F: KernelField>(builder: &mut Builder<F>, column: usize, blinding: u32) -> Self {
        let last_rotation = -(blinding as i32) - 1;
        let first = builder.query(column, 0);
        let last = builder.query(column, -last_rotation);
        let blinded = (1..-last_rotation).fold(last, |sum, rotation| {
            let row = builder.query(column, rotation);
            builder.add(sum, row)
        });
        let one = builder.constant(F::ONE);
        Self {
            first,
            last,
            active: builder.sub(one, blinded),
            last_rotation,
        }
    }

    /// From three columns of their own.
    pub fn read<F: KernelField>(builder: &mut Builder<F>, columns: [usize; 3], blinding: u32) -> Self {
        let [first, last, active] = columns.map(|column| builder.query(column, 0));
        Self {
            first,
            last,
            active,
            last_rotation: -(blinding as i32) - 1,
        }
    }

    /// `l_0 (1 - z)`: a product starts at 1.
    fn starts<F: KernelField>(&self, builder: &mut Builder<F>, product: usize) -> Value {
        let z = builder.query(product, 0);
        let one = builder.constant(F::ONE);
        let difference = builder.sub(one, z);
        builder.mul(difference, self.first)
    }

    /// `l_last (z^2 - z)`: a product ends at 1 (or 0).
    fn ends<F: KernelField>(&self, builder: &mut Builder<F>, product: usize) -> Value {
        let z = builder.query(product, 0);
        let square = builder.square(z);
        let difference = builder.sub(square, z);
        builder.mul(difference, self.last)
    }

    /// `active (z(omega X) left - z right)`: a product's step.
    fn steps<F: KernelField>(
        &self,
        builder: &mut Builder<F>,
        product: usize,
        left: &[Value],
        right: &[Value],
    ) -> Value {
        let (z, z_next) = (builder.query(product, 0), builder.query(product, 1));
        let left = left.iter().fold(z_next, |sum, &factor| builder.mul(sum, factor));
        let right = right.iter().fold(z, |sum, &factor| builder.mul(sum, factor));
        let difference = builder.sub(left, right);
        builder.mul(difference, self.active)
    }
}

/// Columns whose permutation is shown by one product.
#[derive(Clone, Debug)]
pub struct PermutationSet {
    /// The column of the product z.
    pub product: usize,
    /// The columns v that are permuted.
    pub values: Vec<Value>,
    /// Where each of their cells goes, as many.
    pub sigmas: Vec<Value>,
}

/// Challenges and constants of a permutation argument.
#[derive(Clone, Copy, Debug)]
pub struct PermutationFactors<F> {
    /// Challenge with the places.
    pub beta: F,
    /// Challenge added to all.
    pub gamma: F,
    /// Tells the columns apart: column j's cells are `delta^j * omega^row`.
    pub delta: F,
}

/// The constraints of a permutation argument over `sets`, in order; none without a set. `identity` stands for
/// X.
pub fn permutation<F: KernelField>(
    builder: &mut Builder<F>,
    rows: &RowSelectors,
    sets: &[PermutationSet],
    identity: Value,
    factors: &PermutationFactors<F>,
) -> Vec<Value> {
    let (Some(first), Some(last)) = (sets.first(), sets.last()) else {
        return Vec::new();
    };
    let mut constraints = vec![
        rows.starts(builder, first.product),
        rows.ends(builder, last.product),
    ];
    for (before, set) in sets.iter().zip(&sets[1..]) {
        let z = builder.query(set.product, 0);
        let carried = builder.query(before.product, rows.last_rotation);
        let difference = builder.sub(z, carried);
        constraints.push(builder.mul(difference, rows.first));
    }
    let mut place = factors.beta;
    for set in sets {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (&value, &sigma) in set.values.iter().zip(&set.sigmas) {
            let gamma = builder.constant(factors.gamma);
            let shifted = builder.add(value, gamma);
            let image = builder.scale(sigma, factors.beta);
            left.push(builder.add(image, shifted));
            let own = builder.scale(identity, place);
            right.push(builder.add(own, shifted));
            place = place.times(&factors.delta);
        }
        constraints.push(rows.steps(builder, set.product, &left, &right));
    }
    constraints
}

/// The columns and expressions of one lookup.
#[derive(Clone, Copy, Debug)]
pub struct Lookup {
    /// The column of the product z.
    pub product: usize,
    /// The column of the permuted input a'.
    pub permuted_input: usize,
    /// The column of the permuted table s'.
    pub permuted_table: usize,
    /// The compressed input a.
    pub input: Value,
    /// The compressed table s.
    pub table: Value,
}

/// The five constraints of a lookup argument.
pub fn lookup<F: KernelField>(
    builder: &mut Builder<F>,
    rows: &RowSelectors,
    lookup: &Lookup,
    beta: F,
    gamma: F,
) -> Vec<Value> {
    let (beta, gamma) = (builder.constant(beta), builder.constant(gamma));
    let input = builder.query(lookup.permuted_input, 0);
    let input_before = builder.query(lookup.permuted_input, -1);
    let table = builder.query(lookup.permuted_table, 0);
    let left = [builder.add(input, beta), builder.add(table, gamma)];
    let right = [builder.add(lookup.input, beta), builder.add(lookup.table, gamma)];
    let difference = builder.sub(input, table);
    let repeated = builder.sub(input, input_before);
    let either = builder.mul(difference, repeated);
    vec![
        rows.starts(builder, lookup.product),
        rows.ends(builder, lookup.product),
        rows.steps(builder, lookup.product, &left, &right),
        builder.mul(difference, rows.first),
        builder.mul(either, rows.active),
    ]
}

/// The columns and expressions of one shuffle.
#[derive(Clone, Copy, Debug)]
pub struct Shuffle {
    /// The column of the product z.
    pub product: usize,
    /// The compressed input a.
    pub input: Value,
    /// The compressed expressions b that the input's rows are to be found in.
    pub shuffled: Value,
}

/// The three constraints of a shuffle argument.
pub fn shuffle<F: KernelField>(
    builder: &mut Builder<F>,
    rows: &RowSelectors,
    shuffle: &Shuffle,
    gamma: F,
) -> Vec<Value> {
    let gamma = builder.constant(gamma);
    let left = [builder.add(shuffle.shuffled, gamma)];
    let right = [builder.add(shuffle.input, gamma)];
    vec![
        rows.starts(builder, shuffle.product),
        rows.ends(builder, shuffle.product),
        rows.steps(builder, shuffle.product, &left, &right),
    ]
}

/// The column and expressions of one trash argument.
#[derive(Clone, Copy, Debug)]
pub struct Trash {
    /// The column t, which takes what the constraints are where they need not hold.
    pub column: usize,
    /// The selector q.
    pub selector: Value,
    /// The folded constraints c.
    pub constraints: Value,
}

/// The constraint of a trash argument.
pub fn trash<F: KernelField>(builder: &mut Builder<F>, trash: &Trash) -> Value {
    let column = builder.query(trash.column, 0);
    let one = builder.constant(F::ONE);
    let is_off = builder.sub(one, trash.selector);
    let thrown = builder.mul(is_off, column);
    builder.sub(trash.constraints, thrown)
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
