//! Permuted lookup values whose left-overs are in order. A child of upstream's `plonk::lookup::prover`.
//!
//! The permuted input `A'` is the input in ascending order. The permuted table `S'` has the input's value
//! wherever that value is new. The other rows, from the last one up, take what is then left of the table in
//! ascending order: every further copy of a value, and values that no input has. That is what stock does, but
//! for the order of distinct values, which there is a `HashMap`'s. An input that the table lacks is stock's
//! error. Last come random rows, as many and in the order that stock draws them: all of `A'`, then all of
//! `S'`.
//!
//! Shapes: `n` rows, of which the first `n - blinding factors - 1` are permuted. Memory: three columns,
//! `96 * n` bytes.

use super::*;

/// `(A', S')` for compressed expressions `(A, S)`.
pub(super) fn permute_expression_pair<F, CS: PolynomialCommitmentScheme<F>>(
    pk: &ProvingKey<F, CS>,
    domain: &EvaluationDomain<F>,
    rng: &mut impl RngCore,
    input: &Polynomial<F, LagrangeCoeff>,
    table: &Polynomial<F, LagrangeCoeff>,
) -> Result<ExpressionPair<F>, Error>
where
    F: WithSmallOrderMulGroup<3> + Hash + Ord + FromUniformBytes<64>,
{
    let rows = pk.vk.n() as usize;
    let usable_rows = rows - (pk.vk.cs.blinding_factors() + 1);
    let (input, table) = (input[..].to_vec(), table[..].to_vec());
    let ordered = ordered(usable_rows, input, table).ok_or(Error::ConstraintSystemFailure)?;
    let with_random_rows = |mut values: Vec<F>, rng: &mut dyn RngCore| {
        values.resize_with(rows, || F::random(&mut *rng));
        domain.lagrange_from_vec(values)
    };
    let [input, table] = ordered;
    let input = with_random_rows(input, rng);
    Ok((input, with_random_rows(table, rng)))
}

/// The usable rows, permuted; none if the table lacks a value of the input.
fn ordered<F: Ord + Copy>(usable_rows: usize, mut input: Vec<F>, mut table: Vec<F>) -> Option<[Vec<F>; 2]> {
    input.truncate(usable_rows);
    table.truncate(usable_rows);
    input.sort_unstable();
    table.sort_unstable();
    let mut left = Vec::with_capacity(usable_rows);
    let mut unmatched = table.into_iter().peekable();
    let mut permuted = Vec::with_capacity(usable_rows);
    for (row, &value) in input.iter().enumerate() {
        let is_new = row == 0 || input[row - 1] != value;
        permuted.push(is_new.then_some(value));
        if is_new {
            while let Some(smaller) = unmatched.next_if(|of_table| *of_table < value) {
                left.push(smaller);
            }
            unmatched.next_if_eq(&value)?;
        }
    }
    left.extend(unmatched);
    // As many are left as rows are free: the largest comes first.
    let table = permuted.into_iter().map(|value| value.or_else(|| left.pop()));
    let table = table.collect::<Option<Vec<F>>>()?;
    Some([input, table])
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::ordered;

    /// By counting, straight from the definition.
    fn naive(input: &[u8], table: &[u8]) -> [Vec<u8>; 2] {
        let mut counts = BTreeMap::<u8, usize>::new();
        table.iter().for_each(|value| *counts.entry(*value).or_default() += 1);
        let mut sorted = input.to_vec();
        sorted.sort_unstable();
        let distinct: BTreeSet<u8> = input.iter().copied().collect();
        distinct.iter().for_each(|value| *counts.get_mut(value).unwrap() -= 1);
        let left = counts.into_iter().flat_map(|(value, count)| std::iter::repeat_n(value, count));
        let mut seen = BTreeSet::new();
        let mut permuted: Vec<Option<u8>> = sorted.iter().map(|value| seen.insert(*value).then_some(*value)).collect();
        permuted.iter_mut().rev().filter(|row| row.is_none()).zip(left).for_each(|(row, value)| *row = Some(value));
        [sorted, permuted.into_iter().map(Option::unwrap).collect()]
    }

    proptest! {
        #[test]
        fn equals_the_definition(
            table in prop::collection::vec(0..20u8, 1..60),
            picks in prop::collection::vec(any::<prop::sample::Index>(), 60),
        ) {
            let input: Vec<u8> = picks[..table.len()].iter().map(|pick| *pick.get(&table)).collect();
            let [sorted, permuted] = ordered(table.len(), input.clone(), table.clone()).unwrap();
            prop_assert_eq!([sorted, permuted.clone()], naive(&input, &table));
            let mut same = permuted;
            same.sort_unstable();
            let mut all = table;
            all.sort_unstable();
            prop_assert_eq!(same, all);
        }
    }

    #[test]
    fn an_input_that_the_table_lacks_is_noticed() {
        assert!(ordered(3, vec![7, 7, 7], vec![1, 2, 3]).is_none());
        assert!(ordered(3, vec![1, 2, 9], vec![1, 1, 1]).is_none());
        // Below the usable rows nothing is looked at.
        assert_eq!(ordered(1, vec![1, 9], vec![1, 3]), Some([vec![1], vec![1]]));
    }
}
