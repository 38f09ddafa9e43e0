//! Many polynomials in one pass, against halo2-axiom's arithmetic on vectors.

use crate::common::{column_in, columns_on_disk, converted, place};
use crate::openings::openings_are_arkworks;
use ark_bn254::{Fr, g1};
use ark_ff::{AdditiveGroup, Field as _, UniformRand};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_commit::multiopen::plan;
use spillproof_commit::{Combination, G1, Keep, Srs, divide_and_commit, generate_scratch};
use spillproof_engine::Error;
use spillproof_engine::budget::Budget;
use spillproof_engine::column::{Column, Placement, Workspace};
use spillproof_engine::error::Invalid;
use spillproof_engine::stream::evaluate_all;
use stock_halo2_axiom::arithmetic::{best_multiexp, eval_polynomial, kate_division};
use stock_halo2_axiom::halo2curves::bn256 as stock;
use stock_halo2_axiom::halo2curves::ff::Field;

fn scalars(len: usize, rng: &mut ChaCha20Rng) -> Vec<Fr> {
    (0..len).map(|_| Fr::rand(rng)).collect()
}

/// A combination over indices of columns.
struct Wanted {
    terms: Vec<(Fr, usize)>,
    low: Vec<Fr>,
    roots: Vec<Fr>,
    scale: Fr,
}

impl Wanted {
    fn over<'a>(&self, columns: &'a [Column<Fr>]) -> Combination<'a, Fr> {
        Combination {
            terms: self
                .terms
                .iter()
                .map(|&(factor, column)| (factor, &columns[column]))
                .collect(),
            low: self.low.clone(),
            roots: self.roots.clone(),
            scale: self.scale,
        }
    }

    /// The sum of all terms, `len` coefficients.
    fn numerator(&self, values: &[Vec<Fr>], len: usize) -> Vec<stock::Fr> {
        let mut sum = vec![stock::Fr::ZERO; len];
        for &(factor, column) in &self.terms {
            let factor: stock::Fr = converted(&factor);
            for (sum, value) in sum.iter_mut().zip(&values[column]) {
                *sum += factor * converted::<Fr, stock::Fr>(value);
            }
        }
        sum
    }

    /// By stock's division, `len` coefficients.
    fn quotient(&self, values: &[Vec<Fr>], len: usize) -> Vec<stock::Fr> {
        let mut sum = self.numerator(values, len);
        for (sum, low) in sum.iter_mut().zip(&self.low) {
            *sum -= converted::<Fr, stock::Fr>(low);
        }
        for root in &self.roots {
            if sum.len() > 1 {
                sum = kate_division(&sum, converted(root));
            } else {
                sum = Vec::new();
            }
        }
        let scale: stock::Fr = converted(&self.scale);
        sum.iter_mut().for_each(|value| *value *= scale);
        sum.resize(len, stock::Fr::ZERO);
        sum
    }
}

fn expected(wanted: &[Wanted], values: &[Vec<Fr>], len: usize) -> Vec<stock::Fr> {
    let mut total = vec![stock::Fr::ZERO; len];
    for wanted in wanted {
        for (total, value) in total.iter_mut().zip(wanted.quotient(values, len)) {
            *total += value;
        }
    }
    total
}

/// Sets as SHPLONK's: columns at one, two, three and four points; one column in several sets; low parts as
/// long as the set of points.
fn sets(values: &[Vec<Fr>], rng: &mut ChaCha20Rng) -> Vec<Wanted> {
    let points = scalars(4, rng);
    let mut wanted: Vec<Wanted> = (1..=4)
        .map(|roots| Wanted {
            terms: (0..values.len())
                .filter(|column| column % 4 == roots - 1 || *column == 2)
                .map(|column| (Fr::rand(rng), column))
                .collect(),
            low: scalars(roots, rng),
            roots: points[..roots].to_vec(),
            scale: Fr::rand(rng),
        })
        .collect();
    // The same column twice in one combination, and no roots.
    wanted.push(Wanted {
        terms: vec![(Fr::from(3u64), 0), (Fr::rand(rng), 0), (Fr::ZERO, 1)],
        low: Vec::new(),
        roots: Vec::new(),
        scale: Fr::ONE,
    });
    // Only a low part; zero among the roots.
    wanted.push(Wanted {
        terms: Vec::new(),
        low: scalars(values[0].len().min(7), rng),
        roots: vec![Fr::ZERO, points[0], points[0]],
        scale: Fr::rand(rng),
    });
    wanted
}

fn srs(workspace: &Workspace, k: u32) -> (Srs, Vec<stock::G1Affine>) {
    let srs = generate_scratch::<ark_bn254::Bn254>(workspace, k, Fr::from(77u64), |_| ()).expect("SRS");
    let points = srs
        .monomial()
        .and_then(|column| column.cast::<stock::G1Affine>()?.to_vec())
        .expect("points");
    (srs, points)
}

/// The smallest budget that the plan names.
fn smallest_bytes(bases: &Column<G1>, combinations: &[Combination<'_, Fr>], keep: Keep) -> u64 {
    let none = bases.workspace().clone().with_budget(Budget::new(0));
    match plan::<g1::Config>(&none, bases, combinations, keep) {
        Err(Error::BudgetTooSmall { needed_bytes, .. }) => needed_bytes,
        other => panic!("{other:?}"),
    }
}

fn check(k: u32, lens: &[usize], seed: u64) {
    let place = place(64 << 20);
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let (srs, points) = srs(&place.workspace, k);
    let bases = srs.monomial().expect("points");
    let values: Vec<Vec<Fr>> = lens.iter().map(|&len| scalars(len, &mut rng)).collect();
    let columns: Vec<Column<Fr>> = values
        .iter()
        .enumerate()
        .map(|(i, values)| {
            let placement = if i % 3 == 1 {
                Placement::Memory
            } else {
                Placement::Disk
            };
            column_in(&place.workspace, values, placement)
        })
        .collect();
    let wanted = sets(&values, &mut rng);
    // A low part may be longer than all columns.
    let low_lens = wanted.iter().map(|wanted| wanted.low.len());
    let len = low_lens.chain(lens.iter().copied()).max().unwrap_or(0);
    let combinations: Vec<_> = wanted.iter().map(|wanted| wanted.over(&columns)).collect();
    let total = expected(&wanted, &values, len);
    let commitment = stock::G1Affine::from(best_multiexp(&total, &points[..len]));
    let held = place.workspace.budget.held_bytes();
    let smallest = smallest_bytes(bases, &combinations, Keep::SumAndNumerators);
    for available in [place.workspace.budget.available_bytes(), smallest * 2, smallest] {
        // What is left is what the plan sees.
        let rest = place.workspace.budget.available_bytes() - available;
        let taken = place
            .workspace
            .budget
            .lease_map(rest, "others")
            .expect("there is as much");
        for keep in [Keep::Nothing, Keep::Sum, Keep::SumAndNumerators] {
            let plan = plan::<g1::Config>(&place.workspace, bases, &combinations, keep).expect("a plan");
            let opened = divide_and_commit(&place.workspace, bases, &combinations, keep).expect("an opening");
            let affine = G1::from_affine::<g1::Config>(&opened.commitment);
            assert_eq!(converted::<_, stock::G1Affine>(&affine), commitment, "{plan:?}");
            assert_eq!(opened.sum.is_some(), keep != Keep::Nothing);
            let is_kept = |column: &Column<Fr>, values: &[stock::Fr]| {
                assert_eq!(column.len(), len as u64);
                let kept: Vec<stock::Fr> = read_plainly(column).iter().map(converted).collect();
                assert_eq!(kept, values, "{plan:?}");
            };
            opened.sum.iter().for_each(|sum| is_kept(sum, &total));
            assert_eq!(opened.numerators.len(), wanted.len());
            for (wanted, numerator) in wanted.iter().zip(&opened.numerators) {
                let mut columns: Vec<_> = wanted.terms.iter().map(|(_, column)| column).collect();
                columns.sort();
                columns.dedup();
                // With the smallest budget there may be no room for their buffers.
                let may_be_kept = keep == Keep::SumAndNumerators && columns.len() > 2;
                let has_to_be_kept = may_be_kept && available > 2 * smallest;
                assert!(numerator.is_some() || !has_to_be_kept, "{plan:?}");
                assert!(numerator.is_none() || may_be_kept, "{plan:?}");
                let kept = numerator.iter();
                kept.for_each(|kept| is_kept(kept, &wanted.numerator(&values, len)));
            }
        }
        drop(taken);
        assert_eq!(place.workspace.budget.held_bytes(), held);
    }
}

/// In the smallest pieces.
fn read_plainly(column: &Column<Fr>) -> Vec<Fr> {
    let mut out = vec![Fr::ZERO; column.len() as usize];
    let chunk = column.frame_elements();
    let mut reader = column
        .reader(spillproof_engine::column::ascending(column.len(), chunk), 1)
        .expect("a reader");
    for part in out.chunks_mut(chunk as usize) {
        reader.next_into(part).expect("readable");
    }
    out
}

fn on_threads(threads: usize, run: impl FnOnce() + Send) {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("threads")
        .install(run);
}

#[test]
fn quotients_are_stock_s_for_every_size_and_budget() {
    for threads in [1, 2] {
        on_threads(threads, || {
            for k in 4..=12u32 {
                let n = 1usize << k;
                // Whole columns, shorter ones, a single coefficient, lengths that no chunk divides.
                check(k, &[n, n, n, n - 3, 1, n / 2 + 1], u64::from(k));
            }
            check(12, &[2501, 17, 513, 512, 1025], 40);
            check(11, &[1, 1, 1], 41);
        });
    }
}

#[test]
fn many_columns_in_a_small_budget() {
    let place = place(16 << 20);
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    let (srs, points) = srs(&place.workspace, 12);
    let n = 1 << 12;
    let values: Vec<Vec<Fr>> = (0..60).map(|_| scalars(n, &mut rng)).collect();
    let columns = columns_on_disk(&place.workspace, &values);
    let wanted = sets(&values, &mut rng);
    let combinations: Vec<_> = wanted.iter().map(|wanted| wanted.over(&columns)).collect();
    let read = place.workspace.storage.stats().bytes_read;
    let bases = srs.monomial().unwrap();
    let opened = divide_and_commit(&place.workspace, bases, &combinations, Keep::Nothing).expect("opened");
    let read = place.workspace.storage.stats().bytes_read - read;
    assert_eq!(
        read,
        (60 * 32 + 64) * n as u64,
        "every column once, and the points"
    );
    let total = expected(&wanted, &values, n);
    let affine = G1::from_affine::<g1::Config>(&opened.commitment);
    assert_eq!(
        converted::<_, stock::G1Affine>(&affine),
        stock::G1Affine::from(best_multiexp(&total, &points))
    );
    assert!(place.workspace.budget.peak_bytes() <= 16 << 20);
}

#[test]
fn nothing_to_open_and_too_much() {
    let place = place(8 << 20);
    let (srs, _) = srs(&place.workspace, 4);
    let bases = srs.monomial().unwrap();
    let opened = divide_and_commit(&place.workspace, bases, &[], Keep::SumAndNumerators).expect("nothing");
    assert_eq!(opened.commitment, ark_bn254::G1Affine::identity());
    assert!(opened.sum.is_some_and(|sum| sum.is_empty()) && opened.numerators.is_empty());
    let long = column_in(&place.workspace, &[Fr::ONE; 17], Placement::Disk);
    let combination = Combination {
        terms: vec![(Fr::ONE, &long)],
        low: Vec::new(),
        roots: vec![Fr::ONE],
        scale: Fr::ONE,
    };
    let refused =
        divide_and_commit::<g1::Config>(&place.workspace, bases, &[combination], Keep::Nothing).err();
    assert!(
        matches!(refused, Some(Error::Invalid(Invalid::TooLong { .. }))),
        "{refused:?}"
    );
}

#[test]
fn evaluations_are_stock_s_and_read_each_column_once() {
    for (threads, budget_bytes) in [(1, 32 << 20), (2, 32 << 20), (4, 1 << 20)] {
        on_threads(threads, || {
            let place = place(budget_bytes);
            let mut rng = ChaCha20Rng::seed_from_u64(5);
            let lens = [4096usize, 1, 0, 513, 3000, 4096, 20000];
            let values: Vec<Vec<Fr>> = lens.iter().map(|&len| scalars(len, &mut rng)).collect();
            let columns: Vec<_> = values
                .iter()
                .map(|values| column_in(&place.workspace, values, Placement::Disk))
                .collect();
            let shared = Fr::rand(&mut rng);
            let queries: Vec<(&Column<Fr>, Vec<Fr>)> = (0..20)
                .map(|i| {
                    let mut points = scalars(i % 4, &mut rng);
                    points.push(shared);
                    points.push(shared);
                    (&columns[i % lens.len()], points)
                })
                .collect();
            let held = place.workspace.budget.held_bytes();
            let read = place.workspace.storage.stats().bytes_read;
            let results = evaluate_all(&queries).expect("evaluated");
            let read = place.workspace.storage.stats().bytes_read - read;
            let frames: u64 = lens.iter().map(|len| len.div_ceil(512) as u64).sum();
            assert_eq!(read, frames * 16384, "each frame once");
            assert_eq!(results.len(), queries.len());
            for (i, ((_, points), results)) in queries.iter().zip(&results).enumerate() {
                let values: Vec<stock::Fr> = values[i % lens.len()].iter().map(converted).collect();
                for (point, result) in points.iter().zip(results) {
                    assert_eq!(
                        converted::<Fr, stock::Fr>(result),
                        eval_polynomial(&values, converted(point))
                    );
                }
                assert_eq!(points.len(), results.len());
            }
            assert_eq!(place.workspace.budget.held_bytes(), held);
            assert!(evaluate_all::<Fr>(&[]).expect("nothing").is_empty());
        });
    }
}

#[test]
fn openings_are_arkworks_on_two_curves() {
    openings_are_arkworks::<g1::Config>();
    openings_are_arkworks::<ark_pallas::PallasConfig>();
}
