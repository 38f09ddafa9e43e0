//! Inner-product openings over both Pasta curves, against zcash's halo2: the same bytes from the same random
//! values.

use std::time::Instant;

use ark_ff::{PrimeField, UniformRand};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_commit::ipa::{Params, TAIL_POINTS};
use spillproof_engine::column::{Element, Placement};
use spillproof_engine::stream::Scalars;
use spillproof_kernels::curve::{Curve, Point};
use stock_halo2_proofs::arithmetic::CurveExt;
use stock_halo2_proofs::pasta::{EpAffine, EqAffine};
use stock_halo2_proofs::poly::commitment::{self as stock, Blind};
use stock_halo2_proofs::poly::{Coeff, Polynomial};

use crate::common::{column_in, place};
use crate::pasta::{Failure, Points, Stock, Talk, our_point, polynomial_of_stock, theirs};

fn proof_by_stock<S: Stock>(
    params: &stock::Params<S>,
    polynomial: &Polynomial<S::ScalarExt, Coeff>,
    blind: S::ScalarExt,
    point: S::ScalarExt,
    seed: u64,
) -> Vec<u8> {
    let mut talk = Talk::<S>::new(seed);
    stock::create_proof(
        params,
        &mut talk.draws,
        &mut talk.transcript,
        polynomial,
        Blind(blind),
        point,
    )
    .expect("a proof");
    talk.transcript.finalize()
}

fn same_proof<S, P>(k: u32, budgets: &[u64])
where
    S: Stock,
    P: Curve<BaseField: PrimeField, ScalarField: Element>,
    Point<P>: Element,
{
    let seed = rand::random();
    println!("k {k}, seed {seed}");
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let points = Points::<S>::new(1 << k);
    let params = points.params();
    let coefficients: Vec<P::ScalarField> = (0..1 << k).map(|_| UniformRand::rand(&mut rng)).collect();
    let (blind, point) = (P::ScalarField::rand(&mut rng), P::ScalarField::rand(&mut rng));

    let polynomial = polynomial_of_stock::<S, P>(k, &coefficients);
    let expected = proof_by_stock(&params, &polynomial, theirs(&blind), theirs(&point), seed);
    let commitment = our_point::<S, P>(
        &params
            .commit(&polynomial, Blind(theirs(&blind)))
            .to_affine_vartime(),
    );

    for &budget_bytes in budgets {
        for placement in [Placement::Auto, Placement::Disk] {
            let place = place(budget_bytes);
            let params = points.ours::<P>(&place.workspace, placement);
            let column = column_in(&place.workspace, &coefficients, placement);
            assert_eq!(
                params.commit(&[Scalars::Column(&column)], &[blind]).unwrap(),
                [commitment]
            );
            let mut talk = Talk::<S>::new(seed);
            params
                .open(&column, blind, point, &mut talk)
                .expect("room for it");
            assert_eq!(
                talk.transcript.finalize(),
                expected,
                "seed {seed}, {budget_bytes} bytes"
            );
            assert!(budget_bytes >= place.workspace.budget.peak_bytes());
        }
    }
}

#[test]
fn openings_in_memory_are_the_stock_provers() {
    for k in [1, 2, 5, 9] {
        same_proof::<EqAffine, ark_vesta::VestaConfig>(k, &[2 << 20]);
        same_proof::<EpAffine, ark_pallas::PallasConfig>(k, &[2 << 20]);
    }
}

#[test]
fn openings_from_disk_are_the_stock_provers() {
    const { assert!(TAIL_POINTS < 1 << 13, "else all of it is in memory") };
    same_proof::<EqAffine, ark_vesta::VestaConfig>(13, &[3 << 20, 8 << 20, 64 << 20]);
    same_proof::<EpAffine, ark_pallas::PallasConfig>(14, &[6 << 20]);
}

#[test]
fn what_does_not_fit_is_refused() {
    type P = ark_vesta::VestaConfig;
    let place = place(2 << 20);
    let params = Points::<EqAffine>::new(8).ours::<P>(&place.workspace, Placement::Auto);
    let column = |len: usize| {
        column_in(
            &place.workspace,
            &vec![ark_vesta::Fr::from(3u64); len],
            Placement::Auto,
        )
    };
    let one = ark_vesta::Fr::from(1u64);
    let open = |params: &Params<P>, len: usize| {
        let opened = params.open(&column(len), one, one, &mut Talk::<EqAffine>::new(1));
        match opened {
            Err(Failure::Engine(error)) => error.to_string(),
            other => unreachable!("{other:?}"),
        }
    };
    let short = open(&params, 4);
    assert!(
        short.contains("coefficients") && short.contains('4') && short.contains('8'),
        "{short}"
    );
    let odd = Params {
        g: params.g.prefix(7).unwrap(),
        ..params.clone()
    };
    let odd = open(&odd, 7);
    assert!(odd.contains("bases") && odd.contains('7'), "{odd}");
    let scalars = column(8);
    let unblinded = params.commit(&[Scalars::Column(&scalars)], &[]).unwrap_err();
    assert!(unblinded.to_string().contains("blinds"), "{unblinded}");
    let long = column(9);
    assert!(params.commit(&[Scalars::Column(&long)], &[one]).is_err());
}

/// Not a check but a figure, of `K` (18) and `MIB` (96):
/// `cargo test --release -p spillproof --test engine ipa::full_size -- --ignored --nocapture`.
#[test]
#[ignore = "takes a minute: a figure, not a check"]
fn full_size() {
    type P = ark_vesta::VestaConfig;
    let variable = |name: &str, default: u32| {
        let value = std::env::var(name).ok();
        value.and_then(|value| value.parse().ok()).unwrap_or(default)
    };
    let (k, mebibytes) = (variable("K", 18), variable("MIB", 96));
    let points = Points::<EqAffine>::new(1 << k);
    let params = points.params();
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let coefficients: Vec<ark_vesta::Fr> = (0..1 << k).map(|_| UniformRand::rand(&mut rng)).collect();
    let (blind, point) = (coefficients[0], coefficients[1]);
    let polynomial = polynomial_of_stock::<EqAffine, P>(k, &coefficients);
    let place = place(u64::from(mebibytes) << 20);
    let ours = points.ours::<P>(&place.workspace, Placement::Disk);
    let column = column_in(&place.workspace, &coefficients, Placement::Disk);
    for _ in 0..2 {
        let began = Instant::now();
        let expected = proof_by_stock(&params, &polynomial, theirs(&blind), theirs(&point), 1);
        let stock_seconds = began.elapsed().as_secs_f64();
        let mut talk = Talk::<EqAffine>::new(1);
        let began = Instant::now();
        ours.open(&column, blind, point, &mut talk).expect("room for it");
        let seconds = began.elapsed().as_secs_f64();
        assert_eq!(talk.transcript.finalize(), expected);
        println!(
            "2^{k} in {mebibytes} MiB: {seconds:.2} s, stock {stock_seconds:.2} s: {:.2}",
            seconds / stock_seconds
        );
    }
}
