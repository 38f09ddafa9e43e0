//! Permuted lookup values in ascending order. A child of upstream's `plonk::lookup::prover`.
//!
//! The permuted input `A'` is the input in ascending order. The permuted table `S'` has the input's value
//! wherever that value is new, and in the other rows, in ascending order, what is then left of the table:
//! every further copy of a value, and values that no input has. That is what stock does, but for the order of
//! distinct input values, which there is a `HashMap`'s. Last come random rows, as many and in the order that
//! stock draws them: all of `A'`, then all of `S'`.
//!
//! As in stock, an input that the table lacks is not noticed here: the proof then fails to verify.
//!
//! Shapes: `n` rows, of which the first `n - blinding factors - 1` are permuted. Memory: four columns,
//! `128 * n` bytes.

use super::*;

/// `(A', S')` for compressed expressions `(A, S)`.
pub(super) fn permute_expression_pair<'params, C, P, R>(
    pk: &ProvingKey<C>,
    params: &P,
    domain: &EvaluationDomain<C::Scalar>,
    mut rng: R,
    input: &Polynomial<C::Scalar, LagrangeCoeff>,
    table: &Polynomial<C::Scalar, LagrangeCoeff>,
) -> Result<ExpressionPair<C::Scalar>, Error>
where
    C: CurveAffine,
    P: Params<'params, C>,
    R: RngCore,
{
    let rows = params.n() as usize;
    let usable_rows = rows - (pk.vk.cs.blinding_factors() + 1);
    let (mut input, mut table) = ascending(input[0..usable_rows].to_vec(), table[0..usable_rows].to_vec());
    input.resize_with(rows, || C::Scalar::random(&mut rng));
    table.resize_with(rows, || C::Scalar::random(&mut rng));
    Ok((domain.lagrange_from_vec(input), domain.lagrange_from_vec(table)))
}

/// The usable rows, permuted.
fn ascending<F: Ord + Copy + Send>(mut input: Vec<F>, mut table: Vec<F>) -> (Vec<F>, Vec<F>) {
    sort(&mut input);
    sort(&mut table);
    let mut left = left_over(&input, &table);
    let permuted_table = input
        .iter()
        .enumerate()
        .map(|(row, &value)| {
            let is_new = row == 0 || input[row - 1] != value;
            // With fewer distinct table values than the input needs, nothing may be left: any value is as
            // wrong.
            if is_new { value } else { left.next().unwrap_or(value) }
        })
        .collect();
    drop(left);
    (input, permuted_table)
}

/// In ascending order, what the table has beyond one copy of each value of the input. Both are sorted.
fn left_over<'a, F: Ord + Copy>(input: &'a [F], table: &'a [F]) -> impl Iterator<Item = F> + 'a {
    let mut at = 0;
    table.iter().enumerate().filter_map(move |(row, &value)| {
        while at < input.len() && input[at] < value {
            at += 1;
        }
        let is_copy = row > 0 && table[row - 1] == value;
        let is_wanted = at < input.len() && input[at] == value;
        (is_copy || !is_wanted).then_some(value)
    })
}

fn sort<F: Ord + Send>(values: &mut [F]) {
    #[cfg(feature = "multicore")]
    values.par_sort();
    #[cfg(not(feature = "multicore"))]
    values.sort();
}

#[cfg(test)]
mod tests {
    use super::ascending;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// By counting, straight from the definition.
    fn naive(input: &[u8], table: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let mut counts = BTreeMap::<u8, usize>::new();
        table.iter().for_each(|value| *counts.entry(*value).or_default() += 1);
        let mut sorted = input.to_vec();
        sorted.sort_unstable();
        let distinct: std::collections::BTreeSet<u8> = input.iter().copied().collect();
        distinct.iter().for_each(|value| *counts.get_mut(value).unwrap() -= 1);
        let mut left = counts.into_iter().flat_map(|(value, count)| std::iter::repeat(value).take(count));
        let mut seen = std::collections::BTreeSet::new();
        let permuted = sorted.iter().map(|&v| if seen.insert(v) { v } else { left.next().unwrap() }).collect();
        (sorted, permuted)
    }

    proptest! {
        #[test]
        fn equals_the_definition(table in prop::collection::vec(0..20u8, 1..60), picks in prop::collection::vec(any::<prop::sample::Index>(), 60)) {
            let input: Vec<u8> = picks[..table.len()].iter().map(|pick| *pick.get(&table)).collect();
            let (sorted, permuted) = ascending(input.clone(), table.clone());
            prop_assert_eq!((&sorted, &permuted), (&naive(&input, &table).0, &naive(&input, &table).1));
            let mut same = permuted;
            same.sort_unstable();
            let mut all = table;
            all.sort_unstable();
            prop_assert_eq!(same, all);
        }
    }

    #[test]
    fn an_input_that_the_table_lacks_does_not_panic() {
        assert_eq!(ascending(vec![7, 7, 7], vec![1, 2, 3]), (vec![7, 7, 7], vec![7, 1, 2]));
        assert_eq!(ascending(vec![1, 2, 9], vec![1, 1, 1]).0, vec![1, 2, 9]);
    }
}
