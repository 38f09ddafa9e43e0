//! The rows of sparse matrices, added up by the kernels from chunks of coefficients, against arkworks.

use ark_bn254::Fr;
use ark_ff::Zero;
use rand::Rng;

use crate::support::kernels::{Kernels, Words, element, input, output, structure, word, words};
use crate::support::rng;
use crate::support::systems::System;

const THREADS: usize = 128;
const RUN: usize = 16;

/// What the kernels make of the coefficients in chunks of so many: the rows, and whether all of them were right.
fn by_kernels(kernels: &Kernels, system: &System, chunk: usize) -> ([Vec<Fr>; 2], bool) {
    let words_of = |values: &[Fr]| -> Vec<Words> { values.iter().map(words).collect() };
    let (values, witness) = (words_of(&system.values), words_of(&system.witness));
    let mut rows = [0; 2].map(|_| vec![[0u64; 4]; 1 << system.log_n]);
    let mut state = [0u32; 2];
    // What is left by others.
    let mut parts = vec![[u64::MAX; 4]; 2 * chunk.div_ceil(RUN)];
    for all in system.coefficients.chunks(chunk) {
        let blocks = all.len().div_ceil(THREADS * RUN);
        for (name, shared_bytes) in [
            ("spk_sparse_runs_bn254_fr", 64 * THREADS),
            ("spk_sparse_join_bn254_fr", 0),
        ] {
            let lengths = [
                1u64 << system.log_n,
                system.witness.len() as u64,
                system.values.len() as u64,
                0,
                0,
                0,
                0,
                0,
                0,
            ];
            let [a, b] = &mut rows;
            let fields = vec![
                (24, input(&values)),
                (32, input(&witness)),
                (40, output(a)),
                (48, output(b)),
                (56, output(&mut parts)),
                (64, output(&mut state)),
            ];
            let arguments = vec![structure(&lengths, fields), input(all), word(all.len() as u32)];
            kernels.launch(name, (blocks, 1), THREADS, shared_bytes, arguments);
        }
    }
    let rows = rows.map(|rows| rows.into_iter().map(element).collect());
    (rows, state[0] == 0)
}

/// Chunks that end inside of runs, blocks and rows, and one of all.
const CHUNKS: [usize; 6] = [1, 15, 16, 999, 4096, 1 << 20];

fn check(kernels: &Kernels, system: &System, what: &str) {
    let expected = system.rows();
    let least = system.coefficients.len() / 200;
    for chunk in CHUNKS.into_iter().filter(|chunk| *chunk >= least) {
        let (rows, is_right) = by_kernels(kernels, system, chunk);
        assert!(is_right && rows == expected, "{what}, chunks of {chunk}");
    }
}

#[test]
fn rows_of_every_length() {
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng("rows_of_every_length");
    for log_n in [0, 1, 5, 8] {
        let signals = rng.gen_range(1..200);
        let few = System::random(&mut rng, (log_n, signals), |rng, _| rng.gen_range(0..5));
        check(&kernels, &few, &format!("few, 2^{log_n}"));
        // Half of the rows are empty, others have several runs.
        let some = System::random(&mut rng, (log_n, signals), |rng, _| {
            rng.gen_range(0..2) * rng.gen_range(0..70)
        });
        check(&kernels, &some, &format!("some, 2^{log_n}"));
    }
}

/// A row that has several whole blocks, at the start, between others, and at the end of all; also as the only one.
#[test]
fn a_row_of_very_many_coefficients() {
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng("a_row_of_very_many_coefficients");
    for long in [0, 3, 7] {
        for others in [0, 2, 40] {
            let length = 3 * THREADS * RUN + rng.gen_range(0..2 * THREADS * RUN);
            let system = System::random(
                &mut rng,
                (3, 50),
                |_, row| if row == long { length } else { others },
            );
            check(&kernels, &system, &format!("row {long} beside {others}"));
        }
    }
}

#[test]
fn zeros_and_one_signal() {
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng("zeros_and_one_signal");
    let mut system = System::random(&mut rng, (6, 1), |rng, _| rng.gen_range(0..40));
    check(&kernels, &system, "one signal");
    system.witness = vec![Fr::zero()];
    check(&kernels, &system, "zero");
}

/// Coefficients outside of the matrices or out of order are found, and nothing is read or written by them.
#[test]
fn wrong_coefficients_are_found() {
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng("wrong_coefficients_are_found");
    let system = System::random(&mut rng, (6, 20), |_, row| 1 + row as usize % 80);
    let last = system.coefficients.len() - 1;
    for at in [0, 1, 15, 16, 17, 2047, 2048, 2049, last, rng.gen_range(0..last)] {
        for (field, value) in [(0, 64), (0, u32::MAX), (1, 20), (2, 7), (3, 2), (3, u32::MAX)] {
            let mut wrong = system.clone();
            wrong.coefficients[at][field] = value;
            for chunk in CHUNKS {
                if chunk >= 16 {
                    let (_, is_right) = by_kernels(&kernels, &wrong, chunk);
                    assert!(!is_right, "{at}, field {field} is {value}, chunks of {chunk}");
                }
            }
        }
        // A row below the one before it, also across chunks.
        if system.coefficients[at][0] > 1 {
            let mut wrong = system.clone();
            wrong.coefficients[at][0] = 0;
            for chunk in [16, 1 << 20] {
                assert!(!by_kernels(&kernels, &wrong, chunk).1, "{at} has a lower row");
            }
        }
    }
}
