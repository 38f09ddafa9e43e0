//! The arguments of a proof out of core beside the same in memory, in one run:
//! `cargo bench -p spillproof-benches --bench arguments`.
//!
//! 2^20 rows, of four columns, in 64 MiB. Peers: a parallel sort in memory and halo2's way of dealing out the
//! rest of the table; halo2's union of cycles over vectors. What bounds a permuted lookup is the sort of 2^20
//! numbers of 32 bytes, twice; what bounds a product is about six multiplications a row and four a value;
//! what bounds the copies is memory: two arrays of four bytes a cell, of which a quarter of the budget stays
//! in. Copies from anywhere to anywhere are quick only where both fit.
#![allow(clippy::expect_used)]

use std::time::Instant;

use ark_bn254::Fr;
use ark_ff::UniformRand;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;
use spillproof_commit::{HALO2_ROOT_OF_UNITY, omega};
use spillproof_engine::budget::Budget;
use spillproof_engine::column::{Column, Placement, Workspace, Writer};
use spillproof_engine::storage::Storage;
use spillproof_plonk::stages::permutation::{ProductSet, grand_product};
use spillproof_plonk::stages::{Copies, lookup};

const LOG_ROWS: u32 = 20;
const ROWS: u64 = 1 << LOG_ROWS;
const BUDGET_BYTES: u64 = 64 << 20;
const TAIL: usize = 6;

/// (column, row) on both sides.
type Copy = ((usize, u64), (usize, u64));

fn column(workspace: &Workspace, values: &[Fr]) -> Column<Fr> {
    let write = || {
        let mut writer = Writer::scratch(workspace, "input", values.len() as u64, Placement::Disk)?;
        writer.push(values)?;
        writer.finish()
    };
    write().expect("a column")
}

/// Seconds of the fastest of three runs.
fn seconds(mut work: impl FnMut()) -> f64 {
    let run = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    (0..3).map(run).fold(f64::INFINITY, f64::min)
}

fn line(what: &str, ours: f64, peer: &str, theirs: f64) {
    println!(
        "{what:<44} {ours:>8.3} s   {peer:<34} {theirs:>8.3} s   ratio {:.2}",
        ours / theirs
    );
}

fn permute(workspace: &Workspace, what: &str, table: &[Fr], input: &[Fr]) {
    let usable = ROWS - TAIL as u64;
    let tail = vec![Fr::from(1u64); TAIL];
    let (on_disk_input, on_disk_table) = (column(workspace, input), column(workspace, table));
    let ours = seconds(|| {
        lookup::permute(
            workspace,
            &on_disk_input,
            &on_disk_table,
            usable,
            [&tail, &tail],
            lookup::LeftOvers::Ascending,
        )
        .expect("permuted columns");
    });
    let theirs = seconds(|| {
        let (mut input, mut table) = (
            input[..usable as usize].to_vec(),
            table[..usable as usize].to_vec(),
        );
        input.par_sort_unstable();
        table.par_sort_unstable();
        let mut at = 0;
        let mut left = table.iter().enumerate().filter(|&(row, value)| {
            while at < input.len() && input[at] < *value {
                at += 1;
            }
            (row > 0 && table[row - 1] == *value) || at >= input.len() || input[at] != *value
        });
        let permuted: Vec<Fr> = (0..input.len())
            .map(|row| {
                let is_new = row == 0 || input[row - 1] != input[row];
                let other = if is_new { None } else { left.next() };
                other.map_or(input[row], |(_, value)| *value)
            })
            .collect();
        assert_eq!(permuted.len(), input.len());
    });
    line(what, ours, "in memory", theirs);
}

fn main() {
    let storage = Storage::builder()
        .dir(std::env::temp_dir())
        .build()
        .expect("scratch storage");
    let budget = Budget::new(BUDGET_BYTES);
    let workspace = Workspace::new(storage, budget);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let rows = ROWS as usize;
    println!(
        "2^{LOG_ROWS} rows in {} MiB, {} threads",
        BUDGET_BYTES >> 20,
        rayon::current_num_threads()
    );

    let table: Vec<Fr> = (0..rows).map(|_| Fr::rand(&mut rng)).collect();
    let input: Vec<Fr> = (0..rows)
        .map(|_| table[rng.next_u32() as usize % (rows - TAIL)])
        .collect();
    permute(&workspace, "permuted lookup, random values", &table, &input);
    let small = workspace.clone().with_budget(Budget::new(BUDGET_BYTES / 8));
    permute(&small, "the same in an eighth of the memory", &table, &input);
    let table: Vec<Fr> = (0..rows).map(|i| Fr::from((i as u64).min(1 << 16))).collect();
    let input: Vec<Fr> = (0..rows).map(|_| Fr::from(rng.next_u64() % (1 << 16))).collect();
    permute(&workspace, "permuted lookup, a range of 2^16", &table, &input);

    let columns: Vec<Column<Fr>> = (0..3).map(|_| column(&workspace, &table)).collect();
    let set = ProductSet {
        values: columns.iter().collect(),
        sigmas: columns.iter().collect(),
        beta: Fr::rand(&mut rng),
        gamma: Fr::rand(&mut rng),
        delta_start: Fr::from(1u64),
        delta: Fr::from(7u64),
        omega: omega(HALO2_ROOT_OF_UNITY, LOG_ROWS).expect("a root"),
    };
    let product = seconds(|| {
        grand_product(&workspace, &set, ROWS, Fr::from(1u64), &[]).expect("a product");
    });
    println!("{:<44} {product:>8.3} s", "permutation product of three columns");
    let [a, b, c] = [&columns[0], &columns[1], &columns[2]];
    let product = seconds(|| {
        lookup::product(&workspace, a, b, c, a, set.beta, set.gamma, &[]).expect("a product");
    });
    println!("{:<44} {product:>8.3} s", "lookup product");

    let near: &dyn Fn(u64, u64) -> u64 = &|row, _| row.saturating_sub(1);
    let window: &dyn Fn(u64, u64) -> u64 = &|row, random| row.saturating_sub(random % 4096);
    let anywhere: &dyn Fn(u64, u64) -> u64 = &|_, random| random % (1 << 17);
    for (what, log_rows, other) in [
        ("2^21 copies to the row before", 20, near),
        ("2^21 copies to one of 4096 rows before", 20, window),
        ("2^18 copies to rows anywhere in 2^17", 17, anywhere),
    ] {
        let rows = 1u64 << log_rows;
        let copies: Vec<Copy> = (0..2 * rows)
            .map(|i| {
                (
                    ((i % 2) as usize, i / 2),
                    ((i % 3) as usize + 1, other(i / 2, rng.next_u64())),
                )
            })
            .collect();
        let mut sigma = 0.0;
        let ours = seconds(|| {
            let mut assembly = Copies::new(&workspace, 4, rows).expect("files");
            for (left, right) in &copies {
                assembly.copy(*left, *right).expect("a copy");
            }
            let start = Instant::now();
            assembly.sigma(1, set.omega, set.delta).expect("a column");
            sigma = start.elapsed().as_secs_f64();
        });
        let theirs = seconds(|| in_memory(4, rows as usize, &copies));
        line(what, ours - sigma, "the same over vectors", theirs);
        println!("{:<44} {sigma:>8.3} s", "a sigma column of it");
    }
    println!("peak of leases: {} KiB", workspace.budget.peak_bytes() >> 10);
}

fn in_memory(columns: usize, rows: usize, copies: &[Copy]) {
    let index = |(column, row): (usize, u64)| column * rows + row as usize;
    let mut images: Vec<usize> = (0..columns * rows).collect();
    let (mut cycles, mut sizes) = (images.clone(), vec![1usize; images.len()]);
    for (left, right) in copies {
        let (left, right) = (index(*left), index(*right));
        let (mut kept, mut joined) = (cycles[left], cycles[right]);
        if kept == joined {
            continue;
        }
        if sizes[kept] < sizes[joined] {
            (kept, joined) = (joined, kept);
        }
        sizes[kept] += sizes[joined];
        let mut cell = joined;
        loop {
            cycles[cell] = kept;
            cell = images[cell];
            if cell == joined {
                break;
            }
        }
        images.swap(left, right);
    }
    std::hint::black_box(images);
}
