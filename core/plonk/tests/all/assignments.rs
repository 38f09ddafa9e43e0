//! What a circuit assigns, and the columns that become of it, against vectors in memory; on small budgets.

use crate::common::place;
use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, FftField, Field, UniformRand};
use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_engine::column::Addressed;
use spillproof_plonk::stages::{FixedCells, Selectors, indicator, witness_column};

fn quotient(numerator: Fr, denominator: Option<Fr>) -> Fr {
    numerator * denominator.map_or(Fr::ONE, |value| value.inverse().unwrap_or(Fr::ZERO))
}

/// What happens to fixed cells.
#[derive(Clone, Debug)]
enum Step {
    Assign(usize, u64, u64, Option<u64>),
    Fill(usize, u64, u64, Option<u64>),
}

fn steps(columns: usize, rows: u64) -> impl Strategy<Value = Vec<Step>> {
    let denominator = || prop::option::weighted(0.3, 0..3u64);
    let assign =
        (0..columns, 0..rows, 0..9u64, denominator()).prop_map(|(c, r, v, d)| Step::Assign(c, r, v, d));
    let fill = (0..columns, 0..rows, 0..9u64, denominator()).prop_map(|(c, r, v, d)| Step::Fill(c, r, v, d));
    prop::collection::vec(prop_oneof![40 => assign, 1 => fill], 0..2000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Fractions wait for each other, and still the last assignment to a cell is the one that stays.
    #[test]
    fn fixed_cells_are_the_last_that_was_assigned(steps in steps(3, 700)) {
        let (columns, rows) = (3, 700);
        let place = place(2 << 20);
        let mut cells = FixedCells::new(&place.workspace, columns, rows).unwrap();
        let mut expected = vec![vec![Fr::ZERO; rows as usize]; columns];
        let field = |value: Option<u64>| value.map(Fr::from);
        for step in steps {
            match step {
                Step::Assign(column, row, numerator, denominator) => {
                    let (numerator, denominator) = (Fr::from(numerator), field(denominator));
                    expected[column][row as usize] = quotient(numerator, denominator);
                    cells.assign(column, row, numerator, denominator).unwrap();
                }
                Step::Fill(column, from, numerator, denominator) => {
                    let (numerator, denominator) = (Fr::from(numerator), field(denominator));
                    expected[column][from as usize..].fill(quotient(numerator, denominator));
                    cells.fill(column, from..rows, numerator, denominator).unwrap();
                }
            }
        }
        let made = cells.into_columns().unwrap();
        for (column, expected) in made.iter().zip(&expected) {
            prop_assert_eq!(&column.to_vec().unwrap(), expected);
        }
    }

    #[test]
    fn selectors_become_columns(
        log_rows in 2u32..9,
        count in 0usize..20,
        density in 1u64..100,
        seed in any::<u64>(),
    ) {
        let rows = 1u64 << log_rows;
        let place = place(2 << 20);
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut selectors = Selectors::new(&place.workspace, count, rows).unwrap();
        let mut on = vec![vec![false; rows as usize]; count];
        for (selector, on) in on.iter_mut().enumerate() {
            for (row, on) in on.iter_mut().enumerate() {
                if u64::rand(&mut rng) % 100 < density {
                    *on = true;
                    selectors.enable(selector, row as u64).unwrap();
                }
            }
        }
        let meet = |i: usize, j: usize| on[i].iter().zip(&on[j]).any(|(i, j)| *i && *j);
        let pairs = (0..count).flat_map(|i| (i + 1..count).map(move |j| (i, j)));
        let conflicts: Vec<_> = pairs.filter(|(i, j)| meet(*i, *j)).collect();
        prop_assert_eq!(selectors.conflicts().unwrap(), conflicts);

        for (selector, on) in on.iter().enumerate() {
            let mut packed = Vec::new();
            selectors.packed(selector, |bytes| { packed.extend_from_slice(bytes); Ok(()) }).unwrap();
            let bits = on.chunks(8).map(|bits| bits.iter().rev().fold(0u8, |byte, on| byte << 1 | u8::from(*on)));
            prop_assert_eq!(packed, bits.collect::<Vec<_>>());
        }

        // Every selector alone, then all odd ones together with values of their own.
        let mut groups: Vec<Vec<(usize, Fr)>> = (0..count).map(|selector| vec![(selector, Fr::ONE)]).collect();
        groups.push((0..count).filter(|i| i % 2 == 1).map(|i| (i, Fr::from(i as u64))).collect());
        let columns = selectors.columns(&groups).unwrap();
        prop_assert_eq!(columns.len(), groups.len());
        for (group, column) in groups.iter().zip(columns) {
            let value = |row: usize| group.iter().filter(|(i, _)| on[*i][row]).map(|(_, value)| *value).sum::<Fr>();
            prop_assert_eq!(column.to_vec().unwrap(), (0..rows as usize).map(value).collect::<Vec<_>>());
        }
    }

    #[test]
    fn witness_columns_are_inverted_and_blinded(log_rows in 0u32..13, tail in 0usize..9, seed in any::<u64>()) {
        let rows = 1u64 << log_rows;
        let place = place(4 << 20);
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        // Numerator, denominator, and whether that counts.
        let mut cells = Addressed::<[Fr; 3]>::zeroed(&place.workspace, "cells", 256 << 10, (1, rows)).unwrap();
        let fraction = |cell: &[Fr; 3]| (cell[0], (cell[2] == Fr::ONE).then_some(cell[1]));
        let mut expected = vec![Fr::ZERO; rows as usize];
        for row in (0..rows).filter(|row| row % 5 != 3) {
            let denominator = if row % 11 == 1 { Fr::ZERO } else { Fr::rand(&mut rng) };
            let cell = [Fr::rand(&mut rng), denominator, Fr::from(row % 2)];
            cells.set(0, row, cell).unwrap();
            let (numerator, denominator) = fraction(&cell);
            expected[row as usize] = quotient(numerator, denominator);
        }
        let tail: Vec<Fr> = (0..tail).map(|_| Fr::rand(&mut rng)).collect();
        let made = witness_column(&place.workspace, (&mut cells, 0, None), fraction, &tail);
        if tail.len() > rows as usize {
            prop_assert!(made.is_err());
        } else {
            let assigned = rows as usize - tail.len();
            expected[assigned..].copy_from_slice(&tail);
            prop_assert_eq!(made.unwrap().to_vec().unwrap(), expected);
        }
    }

    #[test]
    fn indicators_are_one_where_they_should_be(
        log_n in 0u32..13,
        at in any::<(prop::sample::Index, prop::sample::Index)>(),
        constant in 0u64..3,
        factor in 0u64..3,
    ) {
        let n = 1u64 << log_n;
        let place = place(4 << 20);
        let omega = Fr::get_root_of_unity(n).unwrap();
        let (one, other) = (at.0.index(n as usize + 1) as u64, at.1.index(n as usize + 1) as u64);
        // Few rows, as a prover has.
        let rows = one.min(other)..one.max(other).min(one.min(other) + 9);
        let (constant, factor) = (Fr::from(constant), Fr::from(factor));
        let made = indicator(&place.workspace, log_n, omega, rows.clone(), constant, factor).unwrap().to_vec().unwrap();
        prop_assert_eq!(made.len() as u64, n);
        // Inside, at the borders, and some of the rest.
        let around = [rows.start.wrapping_sub(1), rows.start, rows.end.wrapping_sub(1), rows.end, 0, n - 1, n / 3];
        for row in around.into_iter().filter(|row| *row < n) {
            let point = omega.pow([row]);
            let value = made.iter().rev().fold(Fr::ZERO, |sum, coefficient| sum * point + coefficient);
            let expected = constant + if rows.contains(&row) { factor } else { Fr::ZERO };
            prop_assert_eq!(value, expected, "row {} of {}, {:?}", row, n, rows.clone());
        }
    }
}

#[test]
fn what_is_not_there_is_an_error() {
    let place = place(1 << 20);
    let mut cells = FixedCells::<Fr>::new(&place.workspace, 1, 8).unwrap();
    assert!(cells.assign(1, 0, Fr::ONE, None).is_err());
    assert!(cells.assign(0, 8, Fr::ONE, None).is_err());
    assert!(cells.fill(0, 7..9, Fr::ONE, None).is_err());
    let mut selectors = Selectors::new(&place.workspace, 3, 8).unwrap();
    assert!(selectors.enable(3, 0).is_err());
    assert!(selectors.enable(2, 8).is_err());
    assert!(selectors.enable(2, 7).is_ok());

    let mut none = Selectors::new(&place.workspace, 0, 100).unwrap();
    assert!(none.conflicts().unwrap().is_empty());
    let zeros = none.columns::<Fr>(&[vec![]]).unwrap();
    assert_eq!(zeros[0].to_vec().unwrap(), [Fr::ZERO; 100]);
}
