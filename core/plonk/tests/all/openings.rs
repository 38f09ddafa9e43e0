//! zcash's multi-opening over columns, against zcash's halo2: the same bytes from the same random values.

use std::io;

use ark_ff::{PrimeField, UniformRand};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use spillproof_engine::budget::Budget;
use spillproof_engine::column::{Column, Placement, Workspace, Writer};
use spillproof_engine::storage::Storage;
use spillproof_kernels::curve::Curve;
use spillproof_plonk::curve::{PointOf, ScalarOf};
use spillproof_plonk::{Book, Opening, Powers, ProverCurve, Query, Randomness, Sets, Transcript, Width};
use stock_halo2_proofs::pasta::group::ff as stock_ff;
use stock_halo2_proofs::pasta::{EpAffine, EqAffine};
use stock_halo2_proofs::poly::commitment::Blind;
use stock_halo2_proofs::poly::multiopen::{ProverQuery, create_proof};
use stock_halo2_proofs::transcript::{Blake2bWrite, Challenge255, Transcript as _, TranscriptWrite};

use spillproof_testing::pasta::{Draws, Points, Stock, Talk, ours, polynomial_of_stock, their_point, theirs};

/// zcash's.
const BOOK: Book = Book {
    powers: Powers::Descending,
    sets: Sets::AsNamed,
    width: Width::Whole,
};

struct Written<'t, S: Stock>(&'t mut Blake2bWrite<Vec<u8>, S, Challenge255<S>>);

impl<C: Curve<BaseField: PrimeField>, S: Stock> Transcript<C> for Written<'_, S> {
    fn write_point(&mut self, point: &PointOf<C>) -> io::Result<()> {
        self.0.write_point(their_point::<C, S>(&point.to_affine::<C>()))
    }

    fn write_scalar(&mut self, scalar: ScalarOf<C>) -> io::Result<()> {
        self.0.write_scalar(theirs(&scalar))
    }

    fn common_point(&mut self, point: &PointOf<C>) -> io::Result<()> {
        self.0.common_point(their_point::<C, S>(&point.to_affine::<C>()))
    }

    fn common_scalar(&mut self, scalar: ScalarOf<C>) -> io::Result<()> {
        self.0.common_scalar(theirs(&scalar))
    }

    fn challenge(&mut self) -> ScalarOf<C> {
        ours(&*self.0.squeeze_challenge_scalar::<()>())
    }
}

struct Drawn<'d, S>(&'d mut Draws, std::marker::PhantomData<S>);

impl<F: PrimeField, S: Stock> Randomness<F> for Drawn<'_, S> {
    fn scalar(&mut self) -> F {
        ours(&<S::ScalarExt as stock_ff::Field>::random(&mut *self.0))
    }
}

/// Random polynomials, opened at random ones of three points, in any order.
fn same_proof<S: Stock, C: ProverCurve>(k: u32, polynomials: usize, budgets: &[u64]) {
    let seed = rand::random();
    println!("k {k}, seed {seed}");
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut scalar = || ScalarOf::<C>::rand(&mut rng);
    let values: Vec<Vec<_>> = (0..polynomials)
        .map(|_| (0..1 << k).map(|_| scalar()).collect())
        .collect();
    let blinds: Vec<_> = (0..polynomials).map(|_| scalar()).collect();
    let points = [scalar(), scalar(), scalar()];
    let mut queries: Vec<(usize, usize)> = Vec::new();
    for polynomial in 0..polynomials {
        let at = 1 + rng.next_u32() as usize % 7;
        queries.extend(
            (0..3)
                .filter(|point| at >> point & 1 == 1)
                .map(|point| (polynomial, point)),
        );
    }
    for index in (1..queries.len()).rev() {
        queries.swap(index, rng.next_u32() as usize % (index + 1));
    }

    let bases = Points::<S>::new(1 << k);
    let stock: Vec<_> = values
        .iter()
        .map(|values| polynomial_of_stock::<S, C>(k, values))
        .collect();
    let stock_queries: Vec<_> = queries
        .iter()
        .map(|(polynomial, point)| ProverQuery {
            point: theirs(&points[*point]),
            poly: &stock[*polynomial],
            blind: Blind(theirs(&blinds[*polynomial])),
        })
        .collect();
    let mut talk = Talk::<S>::new(seed);
    create_proof(
        &bases.params(),
        &mut talk.draws,
        &mut talk.transcript,
        stock_queries.iter().cloned(),
    )
    .expect("a proof");
    let expected = talk.transcript.finalize();

    for &budget_bytes in budgets {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::builder().dir(dir.path()).build().unwrap();
        let workspace = Workspace::new(storage, Budget::new(budget_bytes));
        let columns: Vec<Column<ScalarOf<C>>> = values
            .iter()
            .map(|values| {
                let mut writer =
                    Writer::scratch(&workspace, "input", values.len() as u64, Placement::Disk).unwrap();
                writer.push(values).unwrap();
                writer.finish().unwrap()
            })
            .collect();
        let params = bases.ours::<C>(&workspace, Placement::Disk);
        let one = ScalarOf::<C>::from(1u64);
        let opening = Opening {
            polynomials: columns.iter().map(|column| vec![(one, column)]).collect(),
            queries: queries
                .iter()
                .map(|(polynomial, point)| Query {
                    polynomial: *polynomial,
                    point: points[*point],
                    evaluation: ScalarOf::<C>::from(0u64),
                    blind: blinds[*polynomial],
                })
                .collect(),
        };
        let mut talk = Talk::<S>::new(seed);
        let mut draws = Drawn::<S>(&mut talk.draws, std::marker::PhantomData);
        C::open_ipa(
            &params,
            BOOK,
            &opening,
            &mut Written(&mut talk.transcript),
            &mut draws,
        )
        .expect("room for it");
        assert_eq!(
            talk.transcript.finalize(),
            expected,
            "seed {seed}, {budget_bytes} bytes"
        );

        let mut twice = opening.clone();
        twice.queries.push(twice.queries[0]);
        let mut talk = Talk::<S>::new(seed);
        let mut draws = Drawn::<S>(&mut talk.draws, std::marker::PhantomData);
        let refused = C::open_ipa(
            &params,
            BOOK,
            &twice,
            &mut Written(&mut talk.transcript),
            &mut draws,
        );
        assert!(refused.unwrap_err().to_string().contains("mismatching"));
    }
}

#[test]
fn openings_over_columns_are_zcashs() {
    for polynomials in [1, 2, 9] {
        same_proof::<EqAffine, ark_vesta::VestaConfig>(6, polynomials, &[2 << 20, 16 << 20]);
        same_proof::<EpAffine, ark_pallas::PallasConfig>(9, polynomials, &[2 << 20]);
    }
}

#[test]
fn many_polynomials_are_opened_in_a_small_budget() {
    same_proof::<EqAffine, ark_vesta::VestaConfig>(13, 70, &[8 << 20]);
}
