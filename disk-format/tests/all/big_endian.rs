//! Points of midnight-proofs' files against arkworks, whose own serialisation of BLS12-381 is the same.
//! (`core/commit/tests/all/midnight.rs` has whole files of the unmodified crate.)

use ark_bls12_381::{Fq, Fq2, G1Affine, G2Affine, g1, g2};
use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ff::{AdditiveGroup, BigInteger, Field, PrimeField, UniformRand};
use ark_serialize::CanonicalSerialize;
use rand::SeedableRng;
use rand::rngs::StdRng;
use spillproof_format::native::{NativeField, point_bytes, write_point};
use spillproof_format::params_kzg::points::*;
use spillproof_format::params_kzg::{Dialect, Encoding, Layout, Region, SerdeFormat};
use spillproof_format::{FormatError, PointFault};

const RAW: Encoding = Encoding::new(Dialect::Midnight, SerdeFormat::RawBytes);
const PROCESSED: Encoding = Encoding::new(Dialect::Midnight, SerdeFormat::Processed);

fn written<P: SWCurveConfig<BaseField: NativeField>>(encoding: Encoding, point: &Affine<P>) -> Vec<u8> {
    let mut bytes = vec![0xaa; encoded_bytes::<P>(encoding)];
    write(encoding, point, &mut bytes);
    bytes
}

fn is_arkworks<P: SWCurveConfig<BaseField: NativeField>>(point: Affine<P>)
where
    Affine<P>: CanonicalSerialize,
{
    let (mut raw, mut processed) = (Vec::new(), Vec::new());
    point.serialize_uncompressed(&mut raw).unwrap();
    point.serialize_compressed(&mut processed).unwrap();
    assert_eq!(written(RAW, &point), raw);
    assert_eq!(written(PROCESSED, &point), processed);
    for check in [Check::Range, Check::Curve, Check::Subgroup] {
        assert_eq!(read(RAW, check, &raw), Ok(point));
        assert_eq!(read(PROCESSED, check, &processed), Ok(point));
    }
    let mut native = vec![0; point_bytes::<P>()];
    write_point(&point, &mut native);
    to_native::<P>(RAW, Check::Range, &mut raw).unwrap();
    assert_eq!(raw, native);
    assert!(
        to_native::<P>(PROCESSED, Check::Range, &mut processed).is_err(),
        "another length"
    );
}

#[test]
fn points_are_written_as_arkworks_writes_them() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    is_arkworks(G1Affine::identity());
    is_arkworks(G2Affine::identity());
    for _ in 0..32 {
        is_arkworks(G1Affine::rand(&mut rng));
        is_arkworks(G2Affine::rand(&mut rng));
    }
    let begin = [0x17, 0xf1, 0xd3, 0xa7];
    assert_eq!(written(RAW, &G1Affine::generator())[..4], begin, "big-endian");
}

/// A point of the curve that is not in the subgroup: the first x whose point is not.
fn outside<P: SWCurveConfig>() -> Affine<P> {
    let mut x = P::BaseField::ZERO;
    loop {
        x += P::BaseField::ONE;
        match Affine::get_point_from_x_unchecked(x, true) {
            Some(point) if !point.is_in_correct_subgroup_assuming_on_curve() => return point,
            _ => {}
        }
    }
}

#[test]
fn points_are_checked_as_far_as_is_asked() {
    fn checked<P: SWCurveConfig<BaseField: NativeField>>() {
        let outside = outside::<P>();
        for encoding in [RAW, PROCESSED] {
            let bytes = written(encoding, &outside);
            assert_eq!(read(encoding, Check::Curve, &bytes), Ok(outside));
            let refused = read::<P>(encoding, Check::Subgroup, &bytes);
            assert_eq!(refused, Err(PointFault::NotInSubgroup));
        }
        let off = Affine::<P>::new_unchecked(P::BaseField::ONE, P::BaseField::ONE);
        let bytes = written(RAW, &off);
        assert_eq!(read(RAW, Check::Range, &bytes), Ok(off));
        assert_eq!(read::<P>(RAW, Check::Curve, &bytes), Err(PointFault::NotOnCurve));
    }
    checked::<g1::Config>();
    checked::<g2::Config>();
}

#[test]
fn encodings_that_no_writer_makes_are_refused() {
    let raw = |change: &dyn Fn(&mut [u8])| {
        let mut bytes = written(RAW, &G1Affine::generator());
        change(&mut bytes);
        read::<g1::Config>(RAW, Check::Range, &bytes)
    };
    assert_eq!(raw(&|b| b[0] |= 0x80), Err(PointFault::Flags), "compressed");
    assert_eq!(raw(&|b| b[0] |= 0x20), Err(PointFault::Flags), "a sign");
    assert_eq!(
        raw(&|b| b[0] |= 0x40),
        Err(PointFault::Flags),
        "infinity with coordinates"
    );
    assert_eq!(
        raw(&|b| b[48] |= 0x20),
        Err(PointFault::NotReduced),
        "a flag at y"
    );
    assert_eq!(
        raw(&|b| b[..48].copy_from_slice(&Fq::MODULUS.to_bytes_be())),
        Err(PointFault::NotReduced),
        "x = p"
    );
    assert_eq!(
        raw(&|b| b[48..].fill(0x1f)),
        Err(PointFault::NotReduced),
        "y above p"
    );
    assert_eq!(
        raw(&|b| b.fill(0)),
        Err(PointFault::NotOnCurve),
        "infinity without its flag"
    );
    let infinity = |first: u8, last: u8| {
        raw(&|b| {
            b.fill(0);
            (b[0], b[95]) = (first, last);
        })
    };
    assert_eq!(infinity(0x40, 0), Ok(G1Affine::identity()));
    assert_eq!(infinity(0x40, 1), Err(PointFault::Flags));
    assert_eq!(infinity(0x41, 0), Err(PointFault::Flags));
    assert_eq!(infinity(0x60, 0), Err(PointFault::Flags));
    assert_eq!(infinity(0xc0, 0), Err(PointFault::Flags));
    let short = read::<g1::Config>(RAW, Check::Range, &written(RAW, &G1Affine::generator())[..95]);
    assert_eq!(short, Err(PointFault::NotReduced));

    let processed = |change: &dyn Fn(&mut [u8])| {
        let mut bytes = written(PROCESSED, &G1Affine::generator());
        change(&mut bytes);
        read::<g1::Config>(PROCESSED, Check::Range, &bytes)
    };
    let generator = G1Affine::generator();
    assert_eq!(processed(&|_| ()), Ok(generator));
    assert_eq!(processed(&|b| b[0] ^= 0x20), Ok(-generator), "the other sign");
    assert_eq!(
        processed(&|b| b[0] ^= 0x80),
        Err(PointFault::Flags),
        "not compressed"
    );
    assert_eq!(
        processed(&|b| b[0] |= 0x40),
        Err(PointFault::Flags),
        "infinity with an x"
    );
    let infinity = |first: u8| {
        processed(&|b| {
            b.fill(0);
            b[0] = first;
        })
    };
    assert_eq!(infinity(0xc0), Ok(G1Affine::identity()));
    assert_eq!(infinity(0xe0), Err(PointFault::Flags), "infinity with a sign");
    assert_eq!(infinity(0x40), Err(PointFault::Flags));
    assert_eq!(
        processed(&|b| {
            b.copy_from_slice(&Fq::MODULUS.to_bytes_be());
            b[0] |= 0x80;
        }),
        Err(PointFault::NotReduced),
        "x = p"
    );
    let without = (1u64..).find(|x| G1Affine::get_ys_from_x_unchecked(Fq::from(*x)).is_none());
    let mut bytes = vec![0; 48];
    bytes[40..].copy_from_slice(&without.unwrap().to_be_bytes());
    bytes[0] |= 0x80;
    assert_eq!(
        read::<g1::Config>(PROCESSED, Check::Range, &bytes),
        Err(PointFault::NotOnCurve)
    );
    // c0 of G2's x comes last.
    let two = written(PROCESSED, &G2Affine::generator());
    let x = Fq2::new(Fq::from_be_bytes_mod_order(&two[48..]), {
        let mut c1 = two[..48].to_vec();
        c1[0] &= 0x1f;
        Fq::from_be_bytes_mod_order(&c1)
    });
    assert_eq!(G2Affine::generator().x, x);
}

#[test]
fn a_run_names_the_bad_point() {
    let layout = Layout::new(RAW, 3).unwrap();
    let points: Vec<G1Affine> = (1..9u64)
        .map(|i| (G1Affine::generator() * ark_bls12_381::Fr::from(i)).into())
        .collect();
    let mut clean = vec![0; 8 * 96];
    encode_points(RAW, &points, &mut clean).unwrap();
    for (byte, fault) in [(5 * 96, PointFault::Flags), (5 * 96 + 90, PointFault::NotOnCurve)] {
        let mut bytes = clean.clone();
        bytes[byte] ^= 0x80;
        let mut out = vec![G1Affine::identity(); 8];
        let error = decode_points(&layout, Region::GLagrange, 0, &bytes, &mut out).unwrap_err();
        let FormatError::Point {
            what,
            index,
            offset,
            fault: found,
            ..
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!((what, index, found), ("g_lagrange", 5, fault));
        assert_eq!(offset, 4 + 8 * 96 + 5 * 96);
    }
    let mut pair = [G2Affine::identity()];
    let outside = written(RAW, &outside::<g2::Config>());
    let error = decode_points(&layout, Region::SG2, 0, &outside, &mut pair).unwrap_err();
    let FormatError::Point {
        what, offset, fault, ..
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!((what, fault), ("s_g2", PointFault::NotInSubgroup));
    assert_eq!(offset, layout.offset(Region::SG2));
}
