//! A quotient's pieces, cut anew, against coefficients in memory.

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, Field};
use spillproof_plonk::stages::recut;
use spillproof_testing::seeded;

use crate::common::{columns_on_disk, place, scalars};

/// What stock's prover does: whole coefficients, cut, with the values between moved.
fn cut_in_memory(whole: &[Fr], pieces: usize, tops: &[Fr]) -> Vec<Vec<Fr>> {
    let n = whole.len() / pieces;
    let mut cut: Vec<Vec<Fr>> = whole.chunks(n - 1).take(pieces).map(<[Fr]>::to_vec).collect();
    for (piece, top) in tops.iter().enumerate() {
        cut[piece].push(*top);
        if let Some(next) = cut.get_mut(piece + 1) {
            next[0] -= top;
        }
    }
    cut
}

fn value(coefficients: &[Fr], at: Fr) -> Fr {
    coefficients
        .iter()
        .rev()
        .fold(Fr::ZERO, |sum, next| sum * at + next)
}

#[test]
fn pieces_are_those_of_coefficients_in_memory() {
    let (seed, _) = seeded();
    for (n, pieces) in [
        (2, 2),
        (4, 2),
        (4, 4),
        (8, 3),
        (1 << 7, 1),
        (1 << 13, 4),
        (1 << 14, 8),
    ] {
        for budget_bytes in [1 << 20, 16 << 20] {
            let place = place(budget_bytes);
            let whole = scalars(n * pieces, seed);
            let mut tops = scalars(pieces, seed ^ 1);
            tops[pieces - 1] = Fr::ZERO;
            let of_rows: Vec<Vec<Fr>> = whole.chunks(n).map(<[Fr]>::to_vec).collect();
            let columns = columns_on_disk(&place.workspace, &of_rows);
            let cut = recut(&place.workspace, columns, &tops).unwrap();
            let cut: Vec<Vec<Fr>> = cut.iter().map(|piece| piece.to_vec().unwrap()).collect();
            assert_eq!(
                cut,
                cut_in_memory(&whole, pieces, &tops),
                "seed {seed}, {pieces} pieces of {n}"
            );
            // Their sum is the polynomial, up to its degree.
            let at = scalars(1, seed ^ 2)[0];
            let sum = cut.iter().rev().fold(Fr::ZERO, |sum, piece| {
                sum * at.pow([n as u64 - 1]) + value(piece, at)
            });
            assert_eq!(sum, value(&whole[..pieces * (n - 1)], at), "seed {seed}");
        }
    }
}

#[test]
fn more_pieces_than_coefficients_are_refused() {
    let place = place(1 << 20);
    let columns = columns_on_disk(&place.workspace, &vec![scalars(2, 1); 3]);
    let refused = recut(&place.workspace, columns, &scalars(3, 2)).unwrap_err();
    assert!(refused.to_string().contains("pieces"), "{refused}");
}
