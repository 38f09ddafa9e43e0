//! The library's front page: vectors, commitments, openings and transforms by their shortest names are
//! arkworks' values.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use ark_bn254::{Fr, G1Affine, G1Projective, G2Affine};
use ark_ec::pairing::Pairing;
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::Field;
use ark_poly::univariate::DensePolynomial;
use ark_poly::{DenseUVPolynomial, EvaluationDomain, Polynomial, Radix2EvaluationDomain};
use spillproof::{Error, Session, Vector};
use spillproof_commit::{Engine, generate};
use spillproof_engine::error::Invalid;
use spillproof_testing::columns::scalars;

const LOG_N: u32 = 12;

fn session(dir: &std::path::Path) -> Session {
    Session::builder()
        .memory("4MiB")
        .dir(dir)
        .build()
        .expect("a session")
}

fn values(vector: &Vector) -> Vec<Fr> {
    let chunks: Vec<_> = vector.chunks().unwrap().map(Result::unwrap).collect();
    chunks.iter().flat_map(|chunk| chunk.iter().copied()).collect()
}

#[test]
fn the_front_page_gives_what_arkworks_gives() {
    let dir = tempfile::tempdir().unwrap();
    let session = session(dir.path());
    let secret = Fr::from(5u64);
    let path = dir.path().join("small.srs");
    generate::<Engine>(session.workspace(), &path, LOG_N, secret, |_| ()).unwrap();
    let srs = session.open_srs(&path).unwrap();

    let coefficients = scalars(1 << LOG_N, 3);
    let p = session.column(coefficients.iter().copied()).unwrap();
    assert_eq!(p.len(), 1 << LOG_N);
    let polynomial = DensePolynomial::from_coefficients_slice(&coefficients);
    let commitment: G1Affine = srs.commit(&p).unwrap();
    assert_eq!(
        commitment,
        (G1Projective::generator() * polynomial.evaluate(&secret)).into_affine()
    );
    let z = Fr::from(77u64);
    let opening = srs.open(&p, z).unwrap();
    assert_eq!(opening.value, polynomial.evaluate(&z));
    // e(commitment - value, g2) = e(proof, s g2 - z g2)
    let left = commitment.into_group() - G1Affine::generator() * opening.value;
    let right = srs.pair()[1].into_group() - G2Affine::generator() * z;
    assert_eq!(
        Engine::pairing(left, G2Affine::generator()),
        Engine::pairing(opening.proof, right)
    );

    let domain = Radix2EvaluationDomain::new(p.len()).unwrap();
    let evals = p.ntt(&domain).unwrap();
    assert_eq!(values(&evals), domain.fft(&coefficients));
    assert_eq!(values(&evals.intt(&domain).unwrap()), coefficients);
    let shift = Fr::from(7u64);
    let coset = domain.get_coset(shift).unwrap();
    let on_coset = p.coset_ntt(&domain, shift).unwrap();
    assert_eq!(values(&on_coset), coset.fft(&coefficients));
    assert_eq!(values(&p.ntt(&coset).unwrap()), coset.fft(&coefficients));
    assert_eq!(
        values(&on_coset.coset_intt(&domain, shift).unwrap()),
        coefficients
    );
    assert!(p.coset_ntt(&domain, Fr::from(0u64)).is_err());
}

#[test]
fn an_iterator_need_not_know_its_length() {
    let dir = tempfile::tempdir().unwrap();
    let session = session(dir.path());
    for len in [0usize, 1, 8191, 8192, 20_000] {
        let all = scalars(2 * len, 9);
        let some = || all.iter().copied().filter(|scalar| scalar.legendre().is_qr());
        let expected: Vec<Fr> = some().collect();
        let vector = session.column(some()).unwrap();
        assert_eq!(
            (vector.len(), vector.is_empty()),
            (expected.len(), expected.is_empty())
        );
        assert_eq!(values(&vector), expected);
    }
}

#[test]
fn text_that_is_no_size_is_an_error_of_the_session() {
    let error = Session::builder()
        .memory("2 parrots")
        .build()
        .expect_err("no size");
    assert!(
        matches!(error, Error::Invalid(Invalid::Setting { .. })),
        "{error}"
    );
    assert!(error.to_string().contains("parrots"), "{error}");
}
