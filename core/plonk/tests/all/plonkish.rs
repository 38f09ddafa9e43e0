//! Programs over columns on disk against the same programs over vectors, row by row.

use crate::common::{place, scalars};
use ark_bn254::Fr;
use ark_ff::AdditiveGroup;
use spillproof_engine::Error;
use spillproof_engine::column::{Column, Placement};
use spillproof_plonk::stages::{Builder, Program, evaluate_rows};

/// Two outputs that ask for three columns of four at rotations from -6 to 5.
fn program() -> Program<Fr> {
    let mut builder = Builder::new();
    let (a, a_before, a_next) = (builder.query(0, 0), builder.query(0, -6), builder.query(0, 1));
    let (b, c) = (builder.query(1, 5), builder.query(3, -2));
    let product = builder.mul(a, b);
    let first = builder.sub(product, a_before);
    let cube = builder.square(c);
    let cube = builder.mul(cube, c);
    let second = builder.fold(&[cube, a_next, first], Fr::from(11u64));
    builder.finish(&[first, second])
}

fn naive(columns: &[Vec<Fr>], rows: usize) -> [Vec<Fr>; 2] {
    let at = |column: usize, row: usize, rotation: i64| {
        columns[column][(row as i64 + rotation).rem_euclid(rows as i64) as usize]
    };
    let first = |i: usize| at(0, i, 0) * at(1, i, 5) - at(0, i, -6);
    let eleven = Fr::from(11u64);
    let second = |i: usize| {
        let c = at(3, i, -2);
        (c * c * c * eleven + at(0, i, 1)) * eleven + first(i)
    };
    [(0..rows).map(first).collect(), (0..rows).map(second).collect()]
}

#[test]
fn rows_wrap_around_whatever_their_number() {
    let place = place(16 << 20);
    let program = program();
    for rows in [1usize, 2, 5, 128, 1000, 1024, 70_000] {
        let values: Vec<Vec<Fr>> = (0..4).map(|i| scalars(rows, i)).collect();
        let columns: Vec<Column<Fr>> = values.iter().map(|values| place.column(values)).collect();
        let columns: Vec<&Column<Fr>> = columns.iter().collect();
        let wanted = naive(&values, rows);
        for placement in [Placement::Disk, Placement::Memory, Placement::Auto] {
            let got = evaluate_rows(&place.workspace, &columns, &program, rows as u64, placement);
            for (got, wanted) in got.expect("evaluated").iter().zip(&wanted) {
                assert!(
                    got.to_vec().expect("readable") == *wanted,
                    "{rows} rows, {placement:?}"
                );
            }
        }
    }
}

#[test]
fn the_smallest_budget_is_named_and_works() {
    let (program, rows) = (program(), 70_000);
    let values: Vec<Vec<Fr>> = (0..4).map(|i| scalars(rows, i)).collect();
    let run = |bytes: u64| {
        let place = place(bytes);
        let columns: Vec<Column<Fr>> = values.iter().map(|values| place.column(values)).collect();
        let held = place.workspace.budget.held_bytes();
        let columns: Vec<&Column<Fr>> = columns.iter().collect();
        let got = evaluate_rows(&place.workspace, &columns, &program, rows as u64, Placement::Disk)?;
        assert!(got[0].to_vec()? == naive(&values, rows)[0]);
        drop(got);
        assert_eq!(place.workspace.budget.held_bytes(), held);
        Ok(place.workspace.budget.peak_bytes())
    };
    let Err(Error::BudgetTooSmall { needed_bytes, .. }) = run(256 << 10) else {
        panic!("256 KiB are enough?");
    };
    let peak = run(needed_bytes).expect("the budget that was named");
    assert!(
        peak <= needed_bytes && peak > needed_bytes / 2,
        "{peak} of {needed_bytes}"
    );
    assert!(matches!(
        run(needed_bytes - 4096),
        Err(Error::BudgetTooSmall { .. })
    ));
}

#[test]
fn columns_that_are_not_there_are_refused() {
    let place = place(1 << 20);
    let short = place.column(&[Fr::ZERO; 7]);
    for columns in [&[][..], &[&short, &short, &short, &short]] {
        let refused = evaluate_rows(&place.workspace, columns, &program(), 8, Placement::Disk);
        assert!(matches!(refused, Err(Error::Invalid(_))));
    }
}
