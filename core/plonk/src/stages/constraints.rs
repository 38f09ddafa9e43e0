//! Constraints that a challenge puts together, as one program, or as several that add up to it.
//!
//! The sum is `c_0 y^(m-1) + c_1 y^(m-2) + .. + c_(m-1)`: Horner's rule, which [`Builder::fold`] takes. A part has
//! some of the terms, with their powers, so parts add up to the whole whatever is in which. A part is filled with
//! the constraint that brings the fewest new columns, until the next one would bring too many: what constraints
//! have in common comes to lie in one part.
//!
//! Memory: for each constraint the numbers of its columns.

use std::collections::{BTreeSet, HashSet};

use super::builder::Builder;
use super::program::{Node, Program, Value};
use super::schedule::schedule;
use spillproof_kernels::field::KernelField;

/// Constraints, and the challenge that puts them together.
#[derive(Clone, Debug)]
pub struct Constraints<F> {
    builder: Builder<F>,
    values: Vec<Value>,
    challenge: F,
}

impl<F: KernelField> Constraints<F> {
    /// Of values of `builder`, the first of which gets the highest power of `challenge`.
    pub fn new(builder: Builder<F>, values: Vec<Value>, challenge: F) -> Self {
        Self {
            builder,
            values,
            challenge,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// All of them as one program.
    pub fn program(&self) -> Program<F> {
        let mut builder = self.builder.clone();
        let folded = builder.fold(&self.values, self.challenge);
        builder.finish(&[folded])
    }

    /// As programs that add up to [`Self::program`], each over at most `columns_max` of the columns that are
    /// `read`; `None` if one constraint is over more.
    pub(super) fn parts(&self, columns_max: usize, read: impl Fn(usize) -> bool) -> Option<Vec<Program<F>>> {
        let columns = self.columns(read);
        if columns.iter().any(|columns| columns.len() > columns_max) {
            return None;
        }
        let mut builder = self.builder.clone();
        let groups = groups(&columns, columns_max);
        let sums: Vec<Value> = groups.iter().map(|group| self.sum(&mut builder, group)).collect();
        Some(
            sums.iter()
                .map(|sum| schedule(builder.nodes(), &[*sum]))
                .collect(),
        )
    }

    /// The terms of some constraints, in rising order.
    fn sum(&self, builder: &mut Builder<F>, group: &[usize]) -> Value {
        let mut sum = builder.constant(F::ZERO);
        let mut before = 0;
        for &index in group {
            sum = builder.scale(sum, self.challenge.pow([(index - before) as u64]));
            sum = builder.add(sum, self.values[index]);
            before = index;
        }
        builder.scale(sum, self.challenge.pow([(self.values.len() - 1 - before) as u64]))
    }

    /// The columns of each constraint that are `read`.
    fn columns(&self, read: impl Fn(usize) -> bool) -> Vec<Vec<usize>> {
        let nodes = self.builder.nodes();
        let mut seen_by = vec![usize::MAX; nodes.len()];
        let mut columns = Vec::with_capacity(self.values.len());
        for (constraint, value) in self.values.iter().enumerate() {
            let (mut found, mut open) = (HashSet::new(), vec![*value]);
            while let Some(value) = open.pop() {
                if std::mem::replace(&mut seen_by[value.index()], constraint) == constraint {
                    continue;
                }
                let node = &nodes[value.index()];
                if let Node::Query(column, _) = node
                    && read(*column)
                {
                    found.insert(*column);
                }
                open.extend(node.operands());
            }
            columns.push(found.into_iter().collect());
        }
        columns
    }
}

/// Groups of items, none of which is over more than `columns_max` columns, each in rising order.
fn groups(columns: &[Vec<usize>], columns_max: usize) -> Vec<Vec<usize>> {
    let count = columns.iter().flatten().max().map_or(0, |last| last + 1);
    let mut items_of = vec![Vec::new(); count];
    for (item, columns) in columns.iter().enumerate() {
        columns.iter().for_each(|column| items_of[*column].push(item));
    }
    let (mut groups, mut group) = (Vec::new(), Vec::new());
    let mut held = HashSet::new();
    // How many columns each item that is left would bring, the fewest first.
    let mut missing: Vec<usize> = columns.iter().map(Vec::len).collect();
    let mut left: BTreeSet<(usize, usize)> = (missing.iter().copied()).zip(0..).collect();
    while let Some(&(brings, item)) = left.first() {
        if held.len() + brings > columns_max {
            groups.push(std::mem::take(&mut group));
            held.clear();
            left = left
                .iter()
                .map(|(_, item)| (columns[*item].len(), *item))
                .collect();
            left.iter().for_each(|(brings, item)| missing[*item] = *brings);
            continue;
        }
        left.pop_first();
        group.push(item);
        for &column in columns[item].iter().filter(|column| held.insert(**column)) {
            for &other in &items_of[column] {
                if left.remove(&(missing[other], other)) {
                    missing[other] -= 1;
                    left.insert((missing[other], other));
                }
            }
        }
    }
    groups.push(group);
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_item_is_in_one_group_and_no_group_has_too_many_columns(
            columns in prop::collection::vec(prop::collection::hash_set(0usize..30, 0..6), 0..60), columns_max in 5usize..40,
        ) {
            let columns: Vec<Vec<usize>> = columns.into_iter().map(|columns| columns.into_iter().collect()).collect();
            let groups = groups(&columns, columns_max);
            let mut all: Vec<usize> = groups.concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..columns.len()).collect::<Vec<_>>());
            for group in groups {
                let of_group: HashSet<usize> = group.iter().flat_map(|item| columns[*item].iter().copied()).collect();
                prop_assert!(of_group.len() <= columns_max && group.is_sorted());
            }
        }
    }

    #[test]
    fn what_shares_columns_is_in_one_group() {
        // Ten chains of three items each, listed by their place in the chain.
        let columns: Vec<Vec<usize>> = (0..3)
            .flat_map(|place| (0..10).map(move |chain| vec![10 * chain + place, 10 * chain + place + 1]))
            .collect();
        let groups = groups(&columns, 12);
        assert_eq!(groups.len(), 4, "{groups:?}");
        let read: usize = (groups.iter())
            .map(|group| {
                group
                    .iter()
                    .flat_map(|item| &columns[*item])
                    .collect::<HashSet<_>>()
                    .len()
            })
            .sum();
        assert_eq!(read, 40, "no column is in two groups: {groups:?}");
    }
}
