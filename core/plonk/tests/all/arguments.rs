//! Sorting, permuted lookups and grand products over columns against their definitions, on one thread and on
//! two.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{converted, on_one_and_two_threads, place, scalars};
use ark_bn254::Fr;
use ark_ff::{PrimeField, UniformRand};
use proptest::prelude::*;
use proptest::sample::Index;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_engine::Error;
use spillproof_engine::column::Column;
use spillproof_engine::error::Invalid;
use spillproof_plonk::stages::lookup::LeftOvers;
use spillproof_plonk::stages::permutation::{ProductSet, grand_product};
use spillproof_plonk::stages::sort::{sort, sort_as_planned};
use spillproof_plonk::stages::{SortPlan, lookup};
use stock_halo2_axiom::halo2curves::bn256::Fr as Stock;
use stock_halo2_axiom::halo2curves::ff::{BatchInvert, Field as StockField, PrimeField as StockPrimeField};
use stock_halo2_axiom::poly::EvaluationDomain;

const MIB: u64 = 1 << 20;

/// Values from few numbers: with repetitions, small ones and ones of full length.
fn value(number: u16) -> Fr {
    match number % 4 {
        0 => Fr::from(u64::from(number)),
        1 => -Fr::from(u64::from(number)),
        2 => Fr::from(u64::from(number)) * Fr::from(1u64 << 63) * Fr::from(1u64 << 40),
        _ => Fr::from(u64::from(number) << 40),
    }
}

fn sorted(values: &[Fr]) -> Vec<Fr> {
    let mut sorted = values.to_vec();
    sorted.sort_by_key(|value| value.into_bigint());
    sorted
}

/// Runs of 512 values, two of which are merged at a time.
fn finest_plan(len: usize, fan_in: u64) -> SortPlan {
    SortPlan {
        len: len as u64,
        run: 512,
        run_chunk: 512,
        fan_in,
        merge_chunk: 512,
        write_chunk: 512,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_column_sorts_as_a_vector_does(
        numbers in prop::collection::vec(any::<u16>(), 0..7000),
        modulus in prop_oneof![Just(1u16), Just(7), Just(500), Just(u16::MAX)],
        small in any::<bool>(),
        presorted in any::<bool>(),
        fan_in in 2..5u64,
        tail in 0..7usize,
    ) {
        let number = |number: &u16| if small { (number % modulus) & !3 } else { number % modulus };
        let mut values: Vec<Fr> = numbers.iter().map(number).map(value).collect();
        if presorted {
            values = sorted(&values);
        }
        let (len, tail) = (values.len(), scalars(tail, 1));
        let mut wanted = sorted(&values);
        wanted.extend(&tail);
        // What follows the values to be sorted must not matter.
        values.extend(scalars(3, 2));
        on_one_and_two_threads(|| {
            let place = place(2 * MIB);
            let column = place.column(&values);
            let whole = sort(&place.workspace, &column, len as u64, &tail).unwrap();
            assert_eq!(whole.to_vec().unwrap(), wanted);
            let plan = finest_plan(len, fan_in);
            let merged = sort_as_planned(&place.workspace, &column, &plan, &tail).unwrap();
            assert_eq!(merged.to_vec().unwrap(), wanted);
            drop((column, whole, merged));
            place.assert_nothing_held();
        });
    }

    #[test]
    fn permuted_columns_are_the_definition_s(
        table in prop::collection::vec(any::<u16>(), 1..3000),
        picks in prop::collection::vec(any::<Index>(), 3000),
        modulus in prop_oneof![Just(1u16), Just(7), Just(500), Just(u16::MAX)],
        bad in prop::collection::vec((any::<Index>(), any::<u16>()), 0..3),
        tails in (0..7usize, 0..7usize),
    ) {
        let table: Vec<Fr> = table.iter().map(|number| value(number % modulus)).collect();
        let mut input: Vec<Fr> = picks[..table.len()].iter().map(|pick| *pick.get(&table)).collect();
        for (place, number) in &bad {
            let len = input.len();
            input[place.index(len)] = value(*number);
        }
        let rows = table.len();
        let (input_tail, table_tail) = (scalars(tails.0, 3), scalars(tails.1, 4));
        let wanted = |left_overs| {
            let (mut wanted_input, wanted_table) = permuted(&input, &table, left_overs);
            wanted_input.extend(&input_tail);
            (wanted_input, wanted_table.map(|values| [values, table_tail.clone()].concat()))
        };
        let wanted = [LeftOvers::Ascending, LeftOvers::Descending].map(|order| (order, wanted(order)));
        // Rows beyond the usable ones.
        let more = |values: &[Fr], seed| [values, &scalars(5, seed)].concat();
        let (input, table) = (more(&input, 5), more(&table, 6));
        on_one_and_two_threads(|| {
            let place = place(MIB);
            let (input, table) = (place.column(&input), place.column(&table));
            for (left_overs, (wanted_input, wanted_table)) in &wanted {
                let tails = [&input_tail[..], &table_tail[..]];
                let ours = lookup::permute(&place.workspace, &input, &table, rows as u64, tails, *left_overs);
                match (ours, wanted_table) {
                    (Ok((ours_input, ours_table)), Some(wanted_table)) => {
                        assert_eq!(&ours_input.to_vec().unwrap(), wanted_input);
                        assert_eq!(&ours_table.to_vec().unwrap(), wanted_table);
                    }
                    (Err(Error::Invalid(Invalid::NotInTable)), None) => {}
                    (ours, wanted) => panic!("{ours:?} for {wanted:?}"),
                }
            }
            drop((input, table));
            place.assert_nothing_held();
        });
    }
}

/// `(A', S')` from the definition: count what the table has, take a copy of each value that the input has,
/// and deal out what is left. No table in descending order if it lacks a value.
fn permuted(input: &[Fr], table: &[Fr], left_overs: LeftOvers) -> (Vec<Fr>, Option<Vec<Fr>>) {
    let mut lacks = false;
    let mut counts = BTreeMap::new();
    for value in table {
        *counts.entry(value.into_bigint()).or_insert(0usize) += 1;
    }
    for value in input
        .iter()
        .map(|value| value.into_bigint())
        .collect::<BTreeSet<_>>()
    {
        match counts.get_mut(&value) {
            Some(count) => *count -= 1,
            None => lacks = true,
        }
    }
    let left = counts.into_iter();
    let mut left: Vec<_> = left
        .flat_map(|(value, count)| std::iter::repeat_n(value, count))
        .collect();
    if left_overs == LeftOvers::Descending {
        left.reverse();
    }
    let mut left = left.into_iter();
    let (input, mut seen) = (sorted(input), BTreeSet::new());
    let table = input
        .iter()
        .map(|value| {
            let is_new = seen.insert(value.into_bigint());
            let other = if is_new { None } else { left.next() };
            other.map_or(*value, |other| Fr::from_bigint(other).unwrap())
        })
        .collect();
    let refused = lacks && left_overs == LeftOvers::Descending;
    (input, (!refused).then_some(table))
}

#[test]
fn sorts_in_the_smallest_budget_and_not_below() {
    let values = scalars(40_000, 7);
    let wanted = sorted(&values);
    let least = SortPlan::new(40_000, 16 << 10, 0).unwrap_err();
    let place = place(least);
    let column = place.column(&values);
    assert_eq!(place.workspace.budget.held_bytes(), 0);
    let plan = SortPlan::new(40_000, 16 << 10, least).unwrap();
    assert!(plan.rounds() > 2, "{plan:?}");
    let sorted = sort(&place.workspace, &column, 40_000, &[]).unwrap();
    assert_eq!(sorted.to_vec().unwrap(), wanted);
    drop(sorted);
    let _other = place.workspace.budget.lease(1, "something else").unwrap();
    match sort(&place.workspace, &column, 40_000, &[]) {
        Err(Error::BudgetTooSmall {
            needed_bytes,
            limit_bytes,
            ..
        }) => {
            assert_eq!((needed_bytes, limit_bytes), (least + 1, least));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn sorts_in_any_budget_within_it() {
    let values = scalars(70_001, 8);
    let wanted = sorted(&values);
    for budget_bytes in [300 << 10, 700 << 10, MIB, 2 * MIB, 3 * MIB, 16 * MIB] {
        let place = place(budget_bytes);
        let column = place.column(&values);
        let tail = scalars(6, 9);
        let on_disk = sort(&place.workspace, &column, values.len() as u64, &tail).unwrap();
        let ours = on_disk.to_vec().unwrap();
        assert!(
            ours[..values.len()] == wanted && ours[values.len()..] == tail,
            "{budget_bytes}"
        );
        drop((column, on_disk));
        place.assert_nothing_held();
        assert!(place.workspace.budget.peak_bytes() <= budget_bytes);
    }
}

#[test]
fn the_order_is_the_field_s_own_in_every_field() {
    let mut rng = ChaCha20Rng::seed_from_u64(10);
    let mut values: Vec<ark_pallas::Fq> = (0..3000).map(|_| ark_pallas::Fq::rand(&mut rng)).collect();
    let place = place(MIB);
    let column = place.column(&values);
    values.sort();
    let plan = finest_plan(values.len(), 3);
    let ours = sort_as_planned(&place.workspace, &column, &plan, &[]).unwrap();
    assert_eq!(ours.to_vec().unwrap(), values);
}

#[test]
fn what_cannot_be_sorted_is_refused() {
    let place = place(MIB);
    let column = place.column(&scalars(10, 11));
    assert!(matches!(
        sort(&place.workspace, &column, 11, &[]),
        Err(Error::Invalid(_))
    ));
    let broken = SortPlan {
        run: 700,
        ..finest_plan(10, 2)
    };
    assert!(
        sort_as_planned(&place.workspace, &column, &broken, &[]).is_ok(),
        "one run may have any length"
    );
    let large = place.column(&scalars(1000, 11));
    let broken = SortPlan {
        run: 700,
        ..finest_plan(1000, 2)
    };
    let refused = sort_as_planned(&place.workspace, &large, &broken, &[]);
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
}

/// The same limbs in stock's type.
fn to_stock(values: &[Fr]) -> Vec<Stock> {
    values.iter().map(converted).collect()
}

/// `z` from fractions, as `permutation::Argument::commit` and `lookup::Permuted::commit_product` of the stock
/// crate go on once they have them.
fn products(first: Stock, numerators: &[Stock], mut denominators: Vec<Stock>, tail: &[Stock]) -> Vec<Stock> {
    denominators.batch_invert();
    let mut z = vec![first];
    for (numerator, inverse) in numerators.iter().zip(&denominators) {
        z.push(z[z.len() - 1] * numerator * inverse);
    }
    z.truncate(numerators.len() - tail.len());
    z.extend(tail);
    z
}

#[test]
fn the_permutation_s_products_are_halo2_s() {
    for (k, columns, tail, budget_bytes) in [
        (3u32, 1usize, 5usize, MIB),
        (9, 4, 6, MIB),
        (12, 3, 0, 2 * MIB),
        (13, 11, 7, 2 * MIB),
    ] {
        let rows = 1usize << k;
        let mut values: Vec<Vec<Fr>> = (0..columns).map(|j| scalars(rows, j as u64)).collect();
        let sigmas: Vec<Vec<Fr>> = (0..columns).map(|j| scalars(rows, 100 + j as u64)).collect();
        let (challenges, tail) = (scalars(4, 200), scalars(tail, 201));
        let (beta, gamma, first, delta_start) = (challenges[0], challenges[1], challenges[2], challenges[3]);
        if k == 9 {
            // A denominator of zero, and with it every further value.
            values[1][300] = -(beta * sigmas[1][300] + gamma);
        }
        let domain = EvaluationDomain::<Stock>::new(3, k);
        let wanted = {
            let [beta, gamma, delta_start] =
                [beta, gamma, delta_start].map(|value| converted::<Fr, Stock>(&value));
            let mut numerators = vec![Stock::ONE; rows];
            let mut denominators = numerators.clone();
            let mut name = delta_start;
            for (values, sigmas) in values.iter().zip(&sigmas) {
                for (i, (value, sigma)) in to_stock(values).into_iter().zip(to_stock(sigmas)).enumerate() {
                    let omega_i = domain.get_omega().pow_vartime([i as u64]);
                    numerators[i] *= name * omega_i * beta + gamma + value;
                    denominators[i] *= beta * sigma + gamma + value;
                }
                name *= Stock::DELTA;
            }
            products(converted(&first), &numerators, denominators, &to_stock(&tail))
        };
        on_one_and_two_threads(|| {
            let place = place(budget_bytes);
            let on_disk = |all: &[Vec<Fr>]| all.iter().map(|values| place.column(values)).collect::<Vec<_>>();
            let (values, sigmas) = (on_disk(&values), on_disk(&sigmas));
            let set = ProductSet {
                values: values.iter().collect(),
                sigmas: sigmas.iter().collect(),
                beta,
                gamma,
                delta_start,
                delta: converted(&Stock::DELTA),
                omega: converted(&domain.get_omega()),
            };
            let (z, last) = grand_product(&place.workspace, &set, rows as u64, first, &tail).unwrap();
            assert_eq!(z.cast::<Stock>().unwrap().to_vec().unwrap(), wanted, "k = {k}");
            assert_eq!(converted::<Fr, Stock>(&last), wanted[rows - tail.len() - 1]);
            if k == 9 {
                assert_eq!(wanted[301], Stock::ZERO);
            }
            drop(set);
            drop((z, values, sigmas));
            place.assert_nothing_held();
        });
    }
}

#[test]
fn the_lookup_s_products_are_halo2_s() {
    for (rows, tail, zero) in [(8usize, 5usize, None), (4096, 6, Some(77)), (40_000, 0, None)] {
        let [input, table, permuted_input] = [1, 2, 3].map(|seed| scalars(rows, seed));
        let mut permuted_table = scalars(rows, 4);
        let (challenges, tail) = (scalars(2, 5), scalars(tail, 6));
        let (beta, gamma) = (challenges[0], challenges[1]);
        if let Some(row) = zero {
            permuted_table[row] = -gamma;
        }
        let wanted = {
            let [beta, gamma] = [beta, gamma].map(|value| converted::<Fr, Stock>(&value));
            let fractions = |left: &[Fr], right: &[Fr]| -> Vec<Stock> {
                let pairs = to_stock(left).into_iter().zip(to_stock(right));
                pairs
                    .map(|(left, right)| (left + beta) * (right + gamma))
                    .collect()
            };
            let denominators = fractions(&permuted_input, &permuted_table);
            products(
                Stock::ONE,
                &fractions(&input, &table),
                denominators,
                &to_stock(&tail),
            )
        };
        on_one_and_two_threads(|| {
            let place = place(2 * MIB);
            let [a, s, pa, ps] =
                [&input, &table, &permuted_input, &permuted_table].map(|values| place.column(values));
            let z = lookup::product(&place.workspace, &a, &s, &pa, &ps, beta, gamma, &tail).unwrap();
            assert_eq!(
                z.cast::<Stock>().unwrap().to_vec().unwrap(),
                wanted,
                "{rows} rows"
            );
            drop((z, a, s, pa, ps));
            place.assert_nothing_held();
        });
    }
}

#[test]
fn products_that_cannot_be_are_refused() {
    let place = place(MIB);
    let (short, long) = (place.column(&scalars(8, 1)), place.column(&scalars(9, 2)));
    let one = Fr::from(1u64);
    let product = |other: &Column<Fr>, tail: usize| {
        lookup::product(
            &place.workspace,
            &short,
            other,
            &short,
            &short,
            one,
            one,
            &scalars(tail, 3),
        )
    };
    assert!(product(&short, 7).is_ok());
    for refused in [product(&short, 8), product(&short, 9), product(&long, 1)] {
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
    let set = |values, sigmas| ProductSet {
        values,
        sigmas,
        beta: one,
        gamma: one,
        delta_start: one,
        delta: one,
        omega: one,
    };
    let refused = [
        grand_product(&place.workspace, &set(vec![&short], vec![]), 8, one, &[]),
        grand_product(&place.workspace, &set(vec![&short], vec![&long]), 9, one, &[]),
        grand_product(
            &place.workspace,
            &set(vec![&short], vec![&long]),
            8,
            one,
            &scalars(8, 1),
        ),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
    let _held = place.workspace.budget.lease(900 << 10, "something else").unwrap();
    let refused = product(&short, 1);
    assert!(
        matches!(refused, Err(Error::BudgetTooSmall { .. })),
        "{refused:?}"
    );
}
