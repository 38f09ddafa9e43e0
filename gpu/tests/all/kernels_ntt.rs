//! NTTs by passes of the kernel, for every way to split them, against arkworks and Plonky3.

use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use p3_dft::{Radix2Dit, TwoAdicSubgroupDft};
use p3_goldilocks::Goldilocks;

use crate::support::kernels::Kernels;
use crate::support::kernels::ntt::{Element, Layout, Scale, Tables, raised, transform};
use crate::support::rng;

/// One row of contiguous elements.
const fn one_row(n: usize) -> Layout {
    Layout {
        rows: 1,
        stride: 1,
        batch: n,
    }
}

/// Splits of 2^k: radices and columns of a tile, as logarithms.
fn splits(k: u32) -> Vec<(Vec<u32>, u32)> {
    let mut all = vec![];
    if k <= 10 {
        all.push((vec![k], 0));
    }
    for radix in [1, 3, 4, 8, 10] {
        if radix < k && (radix > 1 || k < 6) {
            let mut radices = vec![radix; (k / radix) as usize];
            if !k.is_multiple_of(radix) {
                radices.push(k % radix);
            }
            let reversed = radices.iter().rev().copied().collect();
            all.push((radices, 2.min(10 - radix)));
            all.push((reversed, 3.min(11 - radix)));
        }
    }
    all
}

/// Forward and inverse, plain and on a coset; `expected` is the oracle's forward transform.
fn equal_in_every_way<T: Element>(
    sizes: std::ops::RangeInclusive<u32>,
    expected: impl Fn(&[T], T) -> Vec<T>,
) {
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng(T::NAME);
    for k in sizes {
        let n = 1usize << k;
        let values: Vec<T> = (0..n).map(|_| T::random(&mut rng)).collect();
        let root = T::root(k);
        let shift = T::random(&mut rng);
        let on_subgroup: Vec<T> = expected(&values, T::ONE).into_iter().map(T::reduced).collect();
        let on_coset: Vec<T> = expected(&values, shift).into_iter().map(T::reduced).collect();
        let per_n = T::small(n as u64).inverted();
        for (radices, columns) in splits(k) {
            let what = format!("{}: 2^{k} as {radices:?}, tiles of 2^{columns}", T::NAME);
            let run = |values: &[T], root, scales| {
                let mut values = values.to_vec();
                transform(&kernels, &mut values, root, &radices, columns, one_row(n), scales);
                values
            };
            assert_eq!(
                run(&values, root, (Scale::NONE, Scale::NONE)),
                on_subgroup,
                "{what}"
            );
            let coset = Tables::new(shift, k, T::ONE);
            assert_eq!(
                run(&values, root, (coset.scale(1, 0, 0, 0), Scale::NONE)),
                on_coset,
                "{what}, coset"
            );
            let by_n = [per_n.reduced()];
            let divide = Scale {
                low: &by_n,
                ..Scale::NONE
            };
            assert_eq!(
                run(&on_subgroup, root.inverted(), (Scale::NONE, divide)),
                values,
                "{what}, inverse"
            );
            let back = Tables::new(shift.inverted(), k, per_n);
            assert_eq!(
                run(&on_coset, root.inverted(), (Scale::NONE, back.scale(1, 0, 0, 0))),
                values,
                "{what}, inverse on a coset"
            );
        }
    }
}

macro_rules! by_arkworks {
    ($test:ident, $field:ty, $sizes:expr) => {
        #[test]
        fn $test() {
            equal_in_every_way::<$field>($sizes, |values, shift| {
                let domain = Radix2EvaluationDomain::<$field>::new(values.len()).unwrap();
                domain.get_coset(shift).unwrap().fft(values)
            });
        }
    };
}
by_arkworks!(bn254, ark_bn254::Fr, 1..=14);
by_arkworks!(pallas_scalars, ark_pallas::Fr, 1..=9);
by_arkworks!(vesta_scalars, ark_vesta::Fr, 1..=9);

/// 2^18 in two passes and in three.
#[test]
#[ignore = "a minute"]
fn large() {
    equal_in_every_way::<Goldilocks>(18..=18, |values, shift| {
        Radix2Dit::default().coset_dft(values.to_vec(), shift)
    });
}

#[test]
fn goldilocks() {
    equal_in_every_way::<Goldilocks>(1..=14, |values, shift| {
        Radix2Dit::default().coset_dft(values.to_vec(), shift)
    });
}

/// Columns, factors, rows: a transform that is split in two steps, on a coset, its columns in batches.
fn equal_in_two_steps<T: Element>(log_rows: u32, log_row_len: u32, expected: impl Fn(&[T], T) -> Vec<T>) {
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng(T::NAME);
    let (rows, row_len) = (1usize << log_rows, 1usize << log_row_len);
    let n = rows * row_len;
    let root = T::root(log_rows + log_row_len);
    let shift = T::random(&mut rng);
    let values: Vec<T> = (0..n).map(|_| T::random(&mut rng)).collect();
    let twiddles = Tables::new(root, log_rows + log_row_len, T::ONE);
    let coset = Tables::new(shift, log_rows + log_row_len, T::ONE);

    // Columns i2 of the matrix, a few at a time as a piece of their own; then out[k1][i2] gets w^(i2 k1).
    let piece = 8.min(row_len);
    let mut matrix = values.clone();
    for first in (0..row_len).step_by(piece) {
        let mut columns: Vec<T> = (0..rows)
            .flat_map(|row| matrix[row * row_len + first..][..piece].to_vec())
            .collect();
        let layout = Layout {
            rows: piece,
            stride: piece,
            batch: 1,
        };
        let (first64, row_len64) = (first as u64, row_len as u64);
        let scales = (
            coset.scale(row_len64, 0, first64, 1),
            twiddles.scale(first64, 1, 0, 0),
        );
        let radices = [log_rows - 2, 2];
        transform(
            &kernels,
            &mut columns,
            raised(root, row_len64),
            &radices,
            2,
            layout,
            scales,
        );
        for row in 0..rows {
            matrix[row * row_len + first..][..piece].copy_from_slice(&columns[row * piece..][..piece]);
        }
    }
    let layout = Layout {
        rows,
        stride: 1,
        batch: row_len,
    };
    let radices = [2, log_row_len - 2];
    let root_of_rows = raised(root, rows as u64);
    transform(
        &kernels,
        &mut matrix,
        root_of_rows,
        &radices,
        3,
        layout,
        (Scale::NONE, Scale::NONE),
    );
    // X[k1 + rows * k2] is at [k1][k2].
    let found: Vec<T> = (0..n).map(|k| matrix[k % rows * row_len + k / rows]).collect();
    assert_eq!(found, expected(&values, shift), "{}: {rows} x {row_len}", T::NAME);
}

#[test]
fn two_steps() {
    for (log_rows, log_row_len) in [(3, 3), (4, 6), (6, 4)] {
        equal_in_two_steps::<ark_bn254::Fr>(log_rows, log_row_len, |values, shift| {
            let domain = Radix2EvaluationDomain::<ark_bn254::Fr>::new(values.len()).unwrap();
            domain.get_coset(shift).unwrap().fft(values)
        });
        equal_in_two_steps::<Goldilocks>(log_rows, log_row_len, |values, shift| {
            Radix2Dit::default().coset_dft(values.to_vec(), shift)
        });
    }
}
