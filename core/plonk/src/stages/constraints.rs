//! Constraints that a challenge puts together, as one program, or as several that add up to it.
//!
//! The sum is `c_0 y^(m-1) + c_1 y^(m-2) + .. + c_(m-1)`: Horner's rule, which [`Builder::fold`] takes. A part has
//! some of the terms, with their powers, so the parts add up to the whole.
//!
//! A part is filled constraint by constraint. A column that few constraints read makes those constraints neighbours. The neighbour of the
//! part that brings the fewest new columns comes next; without a neighbour, the first constraint that is left. When the next one would
//! bring too many columns, a new part begins.
//!
//! Memory: for each constraint the numbers of its columns.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::builder::Builder;
use super::program::{Node, Program, Value};
use super::schedule::schedule;
use spillproof_kernels::field::KernelField;

/// A column of so many constraints at most says that they belong together: a selector of all gates does not.
const FEW: usize = 16;

/// Constraints, and the challenge that puts them together.
#[derive(Debug)]
pub struct Constraints<F> {
    builder: Builder<F>,
    values: Vec<Value>,
    challenge: F,
    /// By the most columns of each: dry runs ask for them again and again.
    parts: Mutex<BTreeMap<usize, Option<Parts<F>>>>,
}

/// Programs that add up to the whole.
pub(super) type Parts<F> = Arc<[Program<F>]>;

impl<F: KernelField> Constraints<F> {
    /// Of values of `builder`, the first of which gets the highest power of `challenge`.
    pub fn new(builder: Builder<F>, values: Vec<Value>, challenge: F) -> Self {
        Self {
            builder,
            values,
            challenge,
            parts: Mutex::default(),
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
    /// `read`, which are the same in each call; `None` if one constraint is over more.
    pub(super) fn parts(&self, columns_max: usize, read: impl Fn(usize) -> bool) -> Option<Parts<F>> {
        let mut known = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = known.entry(columns_max);
        parts.or_insert_with(|| self.cut(columns_max, read)).clone()
    }

    fn cut(&self, columns_max: usize, read: impl Fn(usize) -> bool) -> Option<Parts<F>> {
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
    let mut far: BTreeSet<usize> = (0..columns.len()).collect();
    // The group's neighbours, by the number of columns that each would bring.
    let mut near = BTreeSet::new();
    let mut missing: Vec<usize> = columns.iter().map(Vec::len).collect();
    loop {
        let nearest = near.first().copied();
        let Some((brings, item)) = nearest.or_else(|| far.first().map(|item| (missing[*item], *item))) else {
            break;
        };
        if held.len() + brings > columns_max {
            groups.push(std::mem::take(&mut group));
            held.clear();
            far.extend(std::mem::take(&mut near).into_iter().map(|(_, item)| item));
            far.iter().for_each(|item| missing[*item] = columns[*item].len());
            continue;
        }
        if !near.remove(&(brings, item)) {
            far.remove(&item);
        }
        group.push(item);
        for &column in columns[item].iter().filter(|column| held.insert(**column)) {
            let is_shared_by_few = items_of[column].len() <= FEW;
            for &other in &items_of[column] {
                let was_near = near.remove(&(missing[other], other));
                missing[other] -= usize::from(was_near || far.contains(&other));
                if was_near || is_shared_by_few && far.remove(&other) {
                    near.insert((missing[other], other));
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

    /// Gates of a selector, and lookups of one table in what the gates have.
    #[test]
    fn columns_of_many_constraints_do_not_count() {
        let (selector, table) = (0, 1);
        let of_unit = |unit: usize| (2 + 5 * unit)..(2 + 5 * unit + 5);
        let gates = (0..40).map(|unit| [vec![selector], of_unit(unit).take(2).collect()].concat());
        let lookups = (0..40).map(|unit| [vec![table], of_unit(unit).skip(1).collect()].concat());
        let columns: Vec<Vec<usize>> = gates.chain(lookups).collect();
        let groups = groups(&columns, 52);
        assert_eq!(groups.len(), 4, "{groups:?}");
    }

    #[test]
    fn what_shares_columns_is_in_one_group() {
        // Ten chains of three items each, listed by their place in the chain, and an item of each chain's end alone.
        let chains = |place| (0usize..10).map(move |chain| vec![10 * chain + place, 10 * chain + place + 1]);
        let ends = (0usize..10).map(|chain| vec![10 * chain + 3]);
        let columns: Vec<Vec<usize>> = ends.chain((0..3).flat_map(chains)).collect();
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
