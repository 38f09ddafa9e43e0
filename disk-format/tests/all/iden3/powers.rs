//! Powers of tau.

use spillproof_format::iden3::{FileKind, ptau};
use spillproof_format::{Curve, FormatError};

use super::{Section, file};
use crate::read_back::{cut, read_powers};

/// A file for circuits of 2^2 rows whose points are their place in their section.
pub fn powers(curve: Curve, is_prepared: bool) -> Vec<Section> {
    let mut header = Vec::new();
    ptau::Header {
        curve,
        power: 2,
        ceremony_power: 5,
    }
    .encode(&mut header);
    let g1 = 2 * curve.coordinate_bytes() as usize;
    let points = |count: u8, point_bytes: usize| (0..count).flat_map(|i| vec![i; point_bytes]).collect();
    let mut sections = vec![
        (ptau::HEADER, header),
        (ptau::TAU_G1, points(7, g1)),
        (ptau::TAU_G2, points(4, 2 * g1)),
        (ptau::ALPHA_TAU_G1, points(4, g1)),
        (ptau::BETA_TAU_G1, points(4, g1)),
        (ptau::BETA_G2, points(1, 2 * g1)),
        (ptau::CONTRIBUTIONS, vec![0; 4]),
    ];
    if is_prepared {
        sections.extend([
            (ptau::LAGRANGE_G1, points(15, g1)),
            (ptau::LAGRANGE_G2, points(7, 2 * g1)),
            (ptau::ALPHA_LAGRANGE_G1, points(7, g1)),
            (ptau::BETA_LAGRANGE_G1, points(7, g1)),
        ]);
    }
    sections
}

#[test]
fn powers_of_tau_read() {
    for curve in [Curve::Bn254, Curve::Bls12381] {
        let plain = file(FileKind::Ptau, &powers(curve, false));
        let (header, layout) = read_powers(&plain).unwrap();
        assert_eq!((header.curve, header.power, header.ceremony_power), (curve, 2, 5));
        assert_eq!(layout.prepared, None);
        assert_eq!(layout.tau_g1.count, 7);
        let bytes = file(FileKind::Ptau, &powers(curve, true));
        let (_, layout) = read_powers(&bytes).unwrap();
        let prepared = layout.prepared.unwrap();
        for k in 0..4 {
            let basis = ptau::basis(&prepared.lagrange_g1, k).unwrap();
            let first = cut(&bytes, basis.byte_range())[0];
            assert_eq!((u64::from(first), basis.count), ((1 << k) - 1, 1 << k));
        }
        for (bases, k) in [
            (&prepared.lagrange_g1, 4),
            (&prepared.lagrange_g2, 3),
            (&prepared.lagrange_g2, 63),
            (&prepared.lagrange_g2, 64),
        ] {
            assert!(ptau::basis(bases, k).is_err(), "{k}");
        }
        assert_eq!(
            ptau::basis(&prepared.lagrange_g2, 2).unwrap().byte_range().end(),
            prepared.lagrange_g2.byte_range().end()
        );
    }
}

#[test]
fn damaged_powers_of_tau_are_refused() {
    let good = powers(Curve::Bn254, true);
    for (i, (id, _)) in good.iter().enumerate() {
        if *id == ptau::CONTRIBUTIONS {
            continue;
        }
        let mut sections = good.clone();
        sections.remove(i);
        let error = read_powers(&file(FileKind::Ptau, &sections)).unwrap_err();
        assert!(
            matches!(error, FormatError::MissingSection { section, .. } if section == *id),
            "{error}"
        );
        let mut sections = good.clone();
        sections[i].1.push(0);
        let error = read_powers(&file(FileKind::Ptau, &sections)).unwrap_err();
        assert!(
            matches!(error, FormatError::SectionLength { section, .. } if section == *id)
                || matches!(error, FormatError::Length { .. }) && *id == ptau::HEADER,
            "{error}"
        );
    }
    for (at, value) in [(36, 0), (36, 29), (40, 1), (4, 0)] {
        let mut sections = good.clone();
        sections[0].1[at] = value;
        let error = read_powers(&file(FileKind::Ptau, &sections)).unwrap_err();
        assert!(matches!(error, FormatError::Field { .. }), "{error}");
    }
}
