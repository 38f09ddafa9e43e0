//! Each constraint against its formula, row by row, on columns of noise and on columns that satisfy it.

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, Field, UniformRand};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use super::*;

const ROWS: usize = 16;
const BLINDING: u32 = 5;
/// The row that a product reaches last.
const LAST: usize = ROWS - BLINDING as usize - 1;

fn noise(columns: usize, seed: u64) -> Vec<Vec<Fr>> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    (0..columns)
        .map(|_| (0..ROWS).map(|_| Fr::rand(&mut rng)).collect())
        .collect()
}

fn first_lagrange() -> Vec<Fr> {
    (0..ROWS).map(|row| Fr::from(u64::from(row == 0))).collect()
}

/// Values of all constraints, by constraint and row.
fn evaluate(builder: Builder<Fr>, constraints: &[Value], columns: &[Vec<Fr>]) -> Vec<Vec<Fr>> {
    let program = builder.finish(constraints);
    let inputs: Vec<Vec<Fr>> = program
        .queries()
        .iter()
        .map(|&(column, rotation)| (0..ROWS).map(|row| at(columns, column, row, rotation)).collect())
        .collect();
    let inputs: Vec<&[Fr]> = inputs.iter().map(Vec::as_slice).collect();
    let mut outputs = vec![vec![Fr::ZERO; ROWS]; constraints.len()];
    let mut slices: Vec<&mut [Fr]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    program.evaluate(&inputs, &mut slices, &mut vec![Fr::ZERO; 4 * program.registers()]);
    outputs
}

fn at(columns: &[Vec<Fr>], column: usize, row: usize, rotation: i32) -> Fr {
    columns[column][(row as i32 + rotation).rem_euclid(ROWS as i32) as usize]
}

/// l_0, l_last and active in a row.
fn selectors(row: usize) -> [Fr; 3] {
    [row == 0, row == LAST, row < LAST].map(|holds| Fr::from(u64::from(holds)))
}

#[test]
fn selectors_come_from_one_column_or_three() {
    let mut builder = Builder::new();
    let rows = RowSelectors::computed(&mut builder, 0, BLINDING);
    let read = RowSelectors::read(&mut builder, [1, 2, 3], BLINDING);
    assert_eq!(rows.last_rotation, read.last_rotation);
    let by_row: Vec<[Fr; 3]> = (0..ROWS).map(selectors).collect();
    let mut columns = vec![first_lagrange()];
    columns.extend((0..3).map(|i| by_row.iter().map(|row| row[i]).collect()));
    let values = [
        rows.first,
        rows.last,
        rows.active,
        read.first,
        read.last,
        read.active,
    ];
    let got = evaluate(builder, &values, &columns);
    for (i, got) in got.iter().enumerate() {
        assert_eq!(*got, columns[1 + i % 3]);
    }
}

/// Columns 0: l_0, 1: X, 2..4: products of two sets, 4..7: values, 7..10: sigmas; two columns in the first
/// set.
fn permutation_constraints(builder: &mut Builder<Fr>, factors: &PermutationFactors<Fr>) -> Vec<Value> {
    let rows = RowSelectors::computed(builder, 0, BLINDING);
    let identity = builder.query(1, 0);
    let set = |builder: &mut Builder<Fr>, product, columns: std::ops::Range<usize>| PermutationSet {
        product,
        values: columns.clone().map(|column| builder.query(column, 0)).collect(),
        sigmas: columns.map(|column| builder.query(column + 3, 0)).collect(),
    };
    let sets = [set(builder, 2, 4..6), set(builder, 3, 6..7)];
    assert!(permutation(builder, &rows, &[], identity, factors).is_empty());
    permutation(builder, &rows, &sets, identity, factors)
}

#[test]
fn permutation_is_its_formula() {
    let mut columns = noise(10, 1);
    columns[0] = first_lagrange();
    let [beta, gamma, delta] = [11u64, 22, 33].map(Fr::from);
    let mut builder = Builder::new();
    let constraints = permutation_constraints(&mut builder, &PermutationFactors { beta, gamma, delta });
    let got = evaluate(builder, &constraints, &columns);
    assert_eq!(got.len(), 5);
    for row in 0..ROWS {
        let c = |column: usize| columns[column][row];
        let [first, last, active] = selectors(row);
        let next = |column: usize| at(&columns, column, row, 1);
        let carried = at(&columns, 2, row, -(BLINDING as i32) - 1);
        let left = |i: usize| c(4 + i) + beta * c(7 + i) + gamma;
        let right = |i: u64| c(4 + i as usize) + beta * delta.pow([i]) * c(1) + gamma;
        let wanted = [
            first * (Fr::ONE - c(2)),
            last * (c(3) * c(3) - c(3)),
            first * (c(3) - carried),
            active * (next(2) * left(0) * left(1) - c(2) * right(0) * right(1)),
            active * (next(3) * left(2) - c(3) * right(2)),
        ];
        for (constraint, wanted) in wanted.into_iter().enumerate() {
            assert_eq!(got[constraint][row], wanted, "constraint {constraint}, row {row}");
        }
    }
}

// Rows are walked in several columns at once.
#[allow(clippy::needless_range_loop)]
#[test]
fn a_permutation_that_holds_gives_zeros() {
    let mut columns = noise(10, 2);
    columns[0] = first_lagrange();
    let [beta, gamma, delta] = [11u64, 22, 33].map(Fr::from);
    // Any distinct places do for the products.
    let place = |column: usize, row: usize| delta.pow([column as u64]) * columns[1][row];
    let mut sigmas: Vec<Vec<Fr>> = (0..3)
        .map(|column| (0..ROWS).map(|row| place(column, row)).collect())
        .collect();
    let cycle = [(0, 3), (1, 0), (2, LAST - 1), (0, 7)];
    for (i, &(column, row)) in cycle.iter().enumerate() {
        let (to_column, to_row) = cycle[(i + 1) % cycle.len()];
        sigmas[column][row] = place(to_column, to_row);
    }
    for (column, row) in cycle {
        columns[4 + column][row] = Fr::from(5u64);
    }
    columns.splice(7..10, sigmas);
    let mut z = Fr::ONE;
    for (product, set) in [(2, 0..2), (3, 2..3)] {
        for row in 0..=LAST {
            columns[product][row] = z;
            if row < LAST {
                for i in set.clone() {
                    let (value, sigma) = (columns[4 + i][row], columns[7 + i][row]);
                    z *= value + beta * delta.pow([i as u64]) * columns[1][row] + gamma;
                    z /= value + beta * sigma + gamma;
                }
            }
        }
    }
    let check = |columns: &[Vec<Fr>]| {
        let mut builder = Builder::new();
        let constraints = permutation_constraints(&mut builder, &PermutationFactors { beta, gamma, delta });
        let got = evaluate(builder, &constraints, columns);
        got.iter().flatten().all(|value| *value == Fr::ZERO)
    };
    assert!(check(&columns));
    columns[4][3] += Fr::ONE;
    assert!(!check(&columns));
}

#[test]
fn lookup_is_its_formula() {
    // 0: l_0, 1: z, 2: a', 3: s', 4 and 5: input expressions, 6: table.
    let mut columns = noise(7, 3);
    columns[0] = first_lagrange();
    let [beta, gamma, theta] = [11u64, 22, 33].map(Fr::from);
    let mut builder = Builder::new();
    let rows = RowSelectors::computed(&mut builder, 0, BLINDING);
    let parts = [builder.query(4, 0), builder.query(5, 2)];
    let argument = Lookup {
        product: 1,
        permuted_input: 2,
        permuted_table: 3,
        input: builder.fold(&parts, theta),
        table: builder.query(6, 0),
    };
    let constraints = lookup(&mut builder, &rows, &argument, beta, gamma);
    let got = evaluate(builder, &constraints, &columns);
    for row in 0..ROWS {
        let c = |column: usize| columns[column][row];
        let [first, last, active] = selectors(row);
        let input = c(4) * theta + at(&columns, 5, row, 2);
        let left = at(&columns, 1, row, 1) * (c(2) + beta) * (c(3) + gamma);
        let wanted = [
            first * (Fr::ONE - c(1)),
            last * (c(1) * c(1) - c(1)),
            active * (left - c(1) * (input + beta) * (c(6) + gamma)),
            first * (c(2) - c(3)),
            active * (c(2) - c(3)) * (c(2) - at(&columns, 2, row, -1)),
        ];
        for (constraint, wanted) in wanted.into_iter().enumerate() {
            assert_eq!(got[constraint][row], wanted, "constraint {constraint}, row {row}");
        }
    }
}

#[test]
fn shuffle_is_its_formula_and_holds_for_a_shuffle() {
    // 0: l_0, 1: z, 2: input, 3: shuffled.
    let mut columns = noise(4, 4);
    columns[0] = first_lagrange();
    let gamma = Fr::from(22u64);
    let run = |columns: &[Vec<Fr>]| {
        let mut builder = Builder::new();
        let rows = RowSelectors::computed(&mut builder, 0, BLINDING);
        let argument = Shuffle {
            product: 1,
            input: builder.query(2, 0),
            shuffled: builder.query(3, 0),
        };
        let constraints = shuffle(&mut builder, &rows, &argument, gamma);
        evaluate(builder, &constraints, columns)
    };
    let got = run(&columns);
    for row in 0..ROWS {
        let c = |column: usize| columns[column][row];
        let [first, last, active] = selectors(row);
        let wanted = [
            first * (Fr::ONE - c(1)),
            last * (c(1) * c(1) - c(1)),
            active * (at(&columns, 1, row, 1) * (c(3) + gamma) - c(1) * (c(2) + gamma)),
        ];
        for (constraint, wanted) in wanted.into_iter().enumerate() {
            assert_eq!(got[constraint][row], wanted, "constraint {constraint}, row {row}");
        }
    }
    // The rows backwards.
    let mut z = Fr::ONE;
    for row in 0..LAST {
        columns[3][row] = columns[2][LAST - 1 - row];
        columns[1][row] = z;
        z = z * (columns[2][row] + gamma) / (columns[3][row] + gamma);
    }
    columns[1][LAST] = z;
    assert!(run(&columns).iter().flatten().all(|value| *value == Fr::ZERO));
}

#[test]
fn trash_is_its_formula_and_holds_where_the_column_takes_the_rest() {
    // 0: selector, 1: trash column, 2 and 3: constraints.
    let mut columns = noise(4, 5);
    let challenge = Fr::from(11u64);
    let run = |columns: &[Vec<Fr>]| {
        let mut builder = Builder::new();
        let parts = [builder.query(2, 0), builder.query(3, -1)];
        let argument = Trash {
            column: 1,
            selector: builder.query(0, 0),
            constraints: builder.fold(&parts, challenge),
        };
        let constraint = trash(&mut builder, &argument);
        evaluate(builder, &[constraint], columns).remove(0)
    };
    let folded = |columns: &[Vec<Fr>], row: usize| columns[2][row] * challenge + at(columns, 3, row, -1);
    for (row, got) in run(&columns).into_iter().enumerate() {
        let thrown = (Fr::ONE - columns[0][row]) * columns[1][row];
        assert_eq!(got, folded(&columns, row) - thrown, "row {row}");
    }
    // The constraints hold in row 3 only, where the selector is on.
    columns[2][3] = Fr::ZERO;
    columns[3][2] = Fr::ZERO;
    columns[0] = (0..ROWS).map(|row| Fr::from(u64::from(row == 3))).collect();
    columns[1] = (0..ROWS).map(|row| folded(&columns, row)).collect();
    assert!(run(&columns).iter().all(|value| *value == Fr::ZERO));
    columns[2][3] = Fr::ONE;
    assert!(run(&columns)[3] != Fr::ZERO);
}
