//! Containers of the parameters of inner-product commitments.

use ark_ec::short_weierstrass::Affine;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{FftField, Field};
use ark_vesta::{Fr, VestaConfig};
use spillproof_commit::ipa::Params;
use spillproof_engine::Error;
use spillproof_engine::column::{Column, Placement, Workspace};
use spillproof_format::FormatError;
use spillproof_kernels::curve::Point;

use crate::common::{column_in, place};

const K: u32 = 11;

fn omega() -> Fr {
    Fr::TWO_ADIC_ROOT_OF_UNITY.pow([1u64 << (Fr::TWO_ADICITY - K)])
}

fn times(scalar: Fr) -> Affine<VestaConfig> {
    (Affine::<VestaConfig>::generator() * scalar).into_affine()
}

fn point(scalar: Fr) -> Point<VestaConfig> {
    Point::<VestaConfig>::from_affine::<VestaConfig>(&times(scalar))
}

/// g[i] = 3^i G, and its Lagrange form in closed form: the sum of (3 / w^j)^i is (3^n - 1) / (3 / w^j - 1),
/// over n.
fn points() -> [Vec<Point<VestaConfig>>; 2] {
    let (three, n) = (Fr::from(3u64), 1u64 << K);
    let numerator = (three.pow([n]) - Fr::ONE) / Fr::from(n);
    let lagrange = |j: u64| numerator / (three / omega().pow([j]) - Fr::ONE);
    [
        (0..n).map(|i| point(three.pow([i]))).collect(),
        (0..n).map(|j| point(lagrange(j))).collect(),
    ]
}

fn column(workspace: &Workspace, points: &[Point<VestaConfig>]) -> Column<Point<VestaConfig>> {
    column_in(workspace, points, Placement::Disk)
}

fn params(workspace: &Workspace, [g, g_lagrange]: &[Vec<Point<VestaConfig>>; 2]) -> Params<VestaConfig> {
    Params {
        g: column(workspace, g),
        g_lagrange: column(workspace, g_lagrange),
        w: times(Fr::from(5u64)),
        u: times(Fr::from(7u64)),
    }
}

/// The reason of an inconsistency.
fn inconsistent(result: spillproof_engine::Result<()>) -> &'static str {
    match result {
        Err(Error::Format {
            source: FormatError::Inconsistent { what, .. },
            ..
        }) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn saved_parameters_are_opened_and_checked() {
    let (place, dir) = (place(8 << 20), tempfile::tempdir().unwrap());
    let workspace = &place.workspace;
    let file = dir.path().join("params.srs");
    let points = points();
    let made = params(workspace, &points);
    let mut told = Vec::new();
    made.save(workspace, &file, &mut |now| told.push((now.phase, now.points)))
        .unwrap();
    assert_eq!(told.last(), Some(&("g_lagrange", 1 << K)));
    let opened = Params::<VestaConfig>::open_container(workspace, &file).unwrap();
    assert_eq!((opened.w, opened.u), (made.w, made.u));
    assert!(opened.g.to_vec().unwrap() == points[0] && opened.g_lagrange.to_vec().unwrap() == points[1]);
    opened.check(workspace, omega(), &mut |_| ()).unwrap();

    let (g, pair) = (&points[0], [made.w, made.u]);
    let mut make = |first: u64, out: &mut [Point<VestaConfig>]| {
        out.copy_from_slice(&g[first as usize..][..out.len()]);
    };
    opened
        .check_generators(workspace, pair, &mut make, &mut |_| ())
        .unwrap();
    let swapped = [made.u, made.w];
    let reason = inconsistent(opened.check_generators(workspace, swapped, &mut make, &mut |_| ()));
    assert!(reason.contains("generators"));
    // A wrong point in each half of the Lagrange form, and in the generators.
    for (which, index) in [(1, 0), (1, (1 << K) - 1), (0, 100)] {
        let mut wrong = points.clone();
        wrong[which][index] = point(Fr::from(11u64));
        let wrong = params(workspace, &wrong);
        let reason = inconsistent(wrong.check(workspace, omega(), &mut |_| ()));
        assert!(reason.contains("Lagrange"));
        let same_generators = wrong.check_generators(workspace, pair, &mut make, &mut |_| ());
        assert_eq!(same_generators.is_ok(), which == 1);
    }
    let mut off_curve = points.clone();
    off_curve[0][9].x = off_curve[0][8].x;
    let refused = params(workspace, &off_curve).check(workspace, omega(), &mut |_| ());
    assert!(
        matches!(
            &refused,
            Err(Error::Format {
                source: FormatError::Point { index: 9, .. },
                ..
            })
        ),
        "{refused:?}"
    );
}

#[test]
fn other_files_are_refused() {
    let (place, dir) = (place(8 << 20), tempfile::tempdir().unwrap());
    let workspace = &place.workspace;
    let file = dir.path().join("params.srs");
    let points = points();
    params(workspace, &points)
        .save(workspace, &file, &mut |_| ())
        .unwrap();
    let of_another_curve = Params::<ark_pallas::PallasConfig>::open_container(workspace, &file).err();
    assert!(
        matches!(of_another_curve, Some(Error::Format { .. })),
        "{of_another_curve:?}"
    );
    let shorter = [points[0].clone(), points[1][1..].to_vec()];
    let refused = params(workspace, &shorter).save(workspace, &dir.path().join("none"), &mut |_| ());
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    assert!(!dir.path().join("none").exists());

    // A flipped byte in the header, in each column, and in the table of digests.
    let good = std::fs::read(&file).unwrap();
    for at in [20, 5000, 4096 + (64 << K) + 77, good.len() - 4096] {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        let found = Params::<VestaConfig>::open_container(workspace, &file)
            .and_then(|params| params.check(workspace, omega(), &mut |_| ()));
        assert!(
            matches!(found, Err(Error::Format { .. } | Error::Damaged { .. })),
            "byte {at}: {found:?}"
        );
    }
}
