//! The kernels' curve arithmetic against arkworks: every pair of edges, and random points.

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::UniformRand;
use rand::Rng;

use crate::support::kernels::curves::{
    Bn254, Bn254G2, Curve, Pallas, Point, Sum, Vesta, affine_words, point_of, points, xyzz_words,
};
use crate::support::kernels::{Kernels, input, output, word};
use crate::support::rng;

const BLOCK: usize = 32;

/// Pairs with infinity, equal and opposite points among them.
fn pairs<C: Curve>(rng: &mut impl Rng) -> Vec<(Point<C>, Point<C>)> {
    let p = Sum::<C>::rand(rng).into_affine();
    let double = (p + p).into_affine();
    let edges = [
        Point::<C>::zero(),
        Point::<C>::generator(),
        p,
        -p,
        double,
        -double,
    ];
    let mut all: Vec<_> = edges.iter().flat_map(|a| edges.map(|b| (*a, b))).collect();
    let (a, b) = (points::<C>(500, 20, rng), points::<C>(500, 20, rng));
    all.extend(a.into_iter().zip(b));
    all
}

fn equal_to_arkworks<C: Curve>() {
    let Some(kernels) = Kernels::load() else { return };
    let mut rng = rng(C::NAME);
    let pairs = pairs::<C>(&mut rng);
    let n = pairs.len() as u32;
    let grid = (pairs.len().div_ceil(BLOCK * 2), 1);
    let sums: Vec<_> = pairs.iter().map(|(a, _)| xyzz_words::<C>(a, &mut rng)).collect();

    let added: Vec<_> = pairs.iter().map(|(_, b)| affine_words::<C>(b)).collect();
    let signs: Vec<u32> = (0..n).map(|_| rng.gen_range(0..2)).collect();
    let mut to = sums.clone();
    let name = format!("spk_curve_add_affine_{}", C::NAME);
    kernels.launch(
        &name,
        grid,
        BLOCK,
        0,
        vec![output(&mut to), input(&added), input(&signs), word(n)],
    );
    for (i, (a, b)) in pairs.iter().enumerate() {
        let expected = if signs[i] == 1 { *a - *b } else { *a + *b };
        assert_eq!(
            point_of::<C>(&to[i]),
            expected.into_affine(),
            "{a:?} with {b:?}, sign {}",
            signs[i]
        );
    }

    let added: Vec<_> = pairs.iter().map(|(_, b)| xyzz_words::<C>(b, &mut rng)).collect();
    let mut to = sums.clone();
    let name = format!("spk_curve_add_{}", C::NAME);
    kernels.launch(
        &name,
        grid,
        BLOCK,
        0,
        vec![output(&mut to), input(&added), word(n)],
    );
    for (i, (a, b)) in pairs.iter().enumerate() {
        assert_eq!(point_of::<C>(&to[i]), (*a + *b).into_affine(), "{a:?} with {b:?}");
    }

    let factors: Vec<u32> = (0..n)
        .map(|i| match i % 8 {
            0 => i / 8 % 4,
            1 => u32::MAX,
            _ => rng.r#gen(),
        })
        .collect();
    let mut to = vec![sums[0]; sums.len()];
    let name = format!("spk_curve_times_{}", C::NAME);
    kernels.launch(
        &name,
        grid,
        BLOCK,
        0,
        vec![output(&mut to), input(&sums), input(&factors), word(n)],
    );
    for (i, (a, _)) in pairs.iter().enumerate() {
        let expected = *a * <Point<C> as AffineRepr>::ScalarField::from(factors[i]);
        assert_eq!(
            point_of::<C>(&to[i]),
            expected.into_affine(),
            "{} times {a:?}",
            factors[i]
        );
    }
}

#[test]
fn bn254() {
    equal_to_arkworks::<Bn254>();
}

#[test]
fn bn254_g2() {
    equal_to_arkworks::<Bn254G2>();
}

#[test]
fn pallas() {
    equal_to_arkworks::<Pallas>();
}

#[test]
fn vesta() {
    equal_to_arkworks::<Vesta>();
}
