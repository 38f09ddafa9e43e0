//! Many short columns at a time against one after the other, on several numbers of threads, in much memory and in little.

use crate::common::{columns_on_disk, place};
use ark_bn254::Fr;
use ark_ff::{FftField, Field, UniformRand};
use proptest::prelude::*;
use rand::Rng;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_engine::Error;
use spillproof_engine::column::{Column, Placement};
use spillproof_engine::error::Invalid;
use spillproof_engine::stream::{Transform, ntt};
use spillproof_plonk::stages::lookup::LeftOvers;
use spillproof_plonk::stages::{coefficients, lookup};

fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("threads").install(work)
}

fn values(columns: &[Column<Fr>]) -> Vec<Vec<Fr>> {
    columns.iter().map(|column| column.to_vec().unwrap()).collect()
}

/// Rows of a lookup in a table that has them all.
fn sides(rng: &mut ChaCha20Rng, rows: usize, distinct: u64) -> [Vec<Fr>; 2] {
    let is_small = rng.gen_range(0..2) == 0;
    let entry = |number: u64| match is_small {
        true => Fr::from(number),
        false => -Fr::from(number),
    };
    let table: Vec<u64> = (0..rows as u64).map(|row| row % distinct).collect();
    let input = (0..rows).map(|_| entry(table[rng.gen_range(0..rows)])).collect();
    [input, table.into_iter().map(entry).collect()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn each_column_is_what_it_is_alone(
        seed in 0u64..1 << 60, log_n in 4u32..=10, count in 1usize..40, distinct in 1u64..600, blinding in 1usize..8,
        threads in prop::sample::select(vec![1usize, 2, 5]), budget in prop::sample::select(vec![1u64 << 20, 4 << 20, 64 << 20]),
        descending in any::<bool>(),
    ) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let n = 1usize << log_n;
        let place = place(budget);
        let workspace = &place.workspace;
        let left_overs = match descending {
            true => LeftOvers::Descending,
            false => LeftOvers::Ascending,
        };
        let lookups: Vec<[Vec<Fr>; 2]> = (0..count).map(|_| sides(&mut rng, n, distinct)).collect();
        let columns = columns_on_disk(workspace, &lookups.concat());
        let pairs: Vec<[&Column<Fr>; 2]> = columns.chunks_exact(2).map(|pair| [&pair[0], &pair[1]]).collect();
        let tails: Vec<Vec<Fr>> = (0..2 * count).map(|_| (0..blinding).map(|_| Fr::rand(&mut rng)).collect()).collect();
        let tails: Vec<[&[Fr]; 2]> = tails.chunks_exact(2).map(|pair| [&pair[0][..], &pair[1][..]]).collect();
        let usable = (n - blinding) as u64;
        // Fewer rows than the table has are looked at, so that values of it may be missing.
        let alone = pairs.iter().zip(&tails).map(|([input, table], tails)| {
            lookup::permute(workspace, input, table, usable, *tails, left_overs).map(|(input, table)| [input, table])
        });
        let alone: Result<Vec<_>, _> = alone.collect();
        let together = with_threads(threads, || lookup::permute_all(workspace, &pairs, usable, &tails, left_overs));
        let (alone, together) = match (alone, together) {
            (Ok(alone), Ok(together)) => (alone.concat(), together.concat()),
            (Err(Error::Invalid(Invalid::NotInTable)), Err(Error::Invalid(Invalid::NotInTable))) => return Ok(()),
            (alone, together) => panic!("{alone:?}, and together {together:?}"),
        };
        prop_assert!(values(&alone) == values(&together), "permuted columns");

        let [beta, gamma] = [(); 2].map(|()| Fr::rand(&mut rng));
        let product_tails: Vec<&[Fr]> = tails.iter().map(|tails| tails[0]).collect();
        let all: Vec<[Column<Fr>; 4]> = pairs.iter().zip(alone.chunks_exact(2))
            .map(|([input, table], permuted)| [(*input).clone(), (*table).clone(), permuted[0].clone(), permuted[1].clone()])
            .collect();
        let products: Vec<Column<Fr>> = all.iter().zip(&product_tails)
            .map(|([a, b, c, d], tail)| lookup::product(workspace, a, b, c, d, beta, gamma, tail).unwrap())
            .collect();
        drop(together);
        let together = with_threads(threads, || lookup::product_all(workspace, all, beta, gamma, &product_tails)).unwrap();
        prop_assert!(values(&products) == values(&together), "products");

        let omega = Fr::get_root_of_unity(1 << log_n).unwrap();
        let inverse = Transform {
            scale: Fr::from(n as u64).inverse().unwrap(),
            ..Transform::forward(log_n, omega.inverse().unwrap())
        };
        let transformed: Vec<Column<Fr>> = products.iter().map(|column| ntt(column, &inverse, Placement::Auto).unwrap()).collect();
        let together = with_threads(threads, || coefficients(together, &inverse)).unwrap();
        prop_assert!(values(&transformed) == values(&together), "coefficients");
        drop((columns, alone, products, transformed, together));
        prop_assert_eq!(workspace.budget.held_bytes(), 0);
    }
}
