//! Openings on any curve.

use ark_ec::short_weierstrass::Projective;
use ark_ec::{CurveGroup, VariableBaseMSM};
use ark_ff::{AdditiveGroup, Field as _, UniformRand};
use ark_poly::DenseUVPolynomial;
use ark_poly::univariate::DensePolynomial;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_commit::{Combination, Keep, divide_and_commit};
use spillproof_engine::column::{Element, Placement};
use spillproof_kernels::curve::{Curve, Point, normalize};

use crate::columns::{column_in, columns_on_disk, place};

/// Against arkworks' polynomials and sums, on points of 64, 96 and 192 bytes.
pub fn openings_are_arkworks<P: Curve<ScalarField: Element>>() {
    let (n, seed) = (1000, 12);
    let place = place(16 << 20);
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let random = |len: usize, rng: &mut ChaCha20Rng| -> Vec<P::ScalarField> {
        (0..len).map(|_| P::ScalarField::rand(rng)).collect()
    };
    let points: Vec<Projective<P>> = (0..n).map(|_| Projective::rand(&mut rng)).collect();
    let points: Vec<Point<P>> = normalize::<P>(&points);
    let bases = column_in(&place.workspace, &points, Placement::Disk);
    let values: Vec<Vec<P::ScalarField>> = [n, n - 3, 1].map(|len| random(len, &mut rng)).into();
    let columns = columns_on_disk(&place.workspace, &values);
    let (factors, roots) = (random(3, &mut rng), random(2, &mut rng));
    let scale = P::ScalarField::rand(&mut rng);
    let combination = Combination {
        terms: factors.iter().copied().zip(&columns).collect(),
        low: random(2, &mut rng),
        roots: roots.clone(),
        scale,
    };
    let mut sum = -DensePolynomial::from_coefficients_slice(&combination.low);
    for (factor, values) in factors.iter().zip(&values) {
        sum += (*factor, &DensePolynomial::from_coefficients_slice(values));
    }
    for root in &roots {
        sum = &sum / &DensePolynomial::from_coefficients_slice(&[-*root, P::ScalarField::ONE]);
    }
    let mut total = (&sum * scale).coeffs;
    let affine: Vec<_> = points.iter().map(|point| point.to_affine::<P>()).collect();
    let expected = Projective::<P>::msm(&affine[..total.len()], &total)
        .expect("as many")
        .into_affine();
    total.resize(n, P::ScalarField::ZERO);
    let opened =
        divide_and_commit::<P>(&place.workspace, &bases, &[combination], Keep::Sum).expect("an opening");
    assert_eq!(opened.commitment, expected, "seed {seed}");
    assert_eq!(
        opened.sum.expect("kept").to_vec().expect("readable"),
        total,
        "seed {seed}"
    );
}
