//! `ParamsKZG` files against the unmodified halo2-axiom: the same points from its bytes, the same bytes from
//! its points.

use ark_bn254::{Fq, Fq2, G1Affine, G2Affine, g1, g2};
use ark_ec::AffineRepr;
use ark_ff::{Field, PrimeField, UniformRand};
use rand::SeedableRng;
use rand::rngs::StdRng;
use spillproof_format::native::{read_point, write_point};
use spillproof_format::params_kzg::halo2::{read_compressed, write_compressed};
use spillproof_format::params_kzg::points::*;
use spillproof_format::params_kzg::{Dialect, Encoding, Layout, Region, SerdeFormat, Stated};
use spillproof_format::{FormatError, PointFault};
use stock_halo2_axiom::SerdeFormat as StockFormat;
use stock_halo2_axiom::halo2curves::bn256::{self, Bn256};
use stock_halo2_axiom::halo2curves::group::GroupEncoding;
use stock_halo2_axiom::halo2curves::serde::SerdeObject;
use stock_halo2_axiom::poly::kzg::commitment::ParamsKZG;

const FORMATS: [(SerdeFormat, StockFormat); 3] = [
    (SerdeFormat::Processed, StockFormat::Processed),
    (SerdeFormat::RawBytes, StockFormat::RawBytes),
    (SerdeFormat::RawBytesUnchecked, StockFormat::RawBytesUnchecked),
];

const RAW: Encoding = halo2(SerdeFormat::RawBytes);

const fn halo2(format: SerdeFormat) -> Encoding {
    Encoding::new(Dialect::Halo2, format)
}

/// The layout that length and k show.
fn detect(bytes: &[u8]) -> Layout {
    Layout::detect(
        Stated::default(),
        bytes.len() as u64,
        *bytes.first_chunk().unwrap(),
    )
    .unwrap()
}

fn stock_file(k: u32, format: StockFormat) -> Vec<u8> {
    let params = ParamsKZG::<Bn256>::setup(k, StdRng::seed_from_u64(u64::from(k)));
    let mut bytes = Vec::new();
    params.write_custom(&mut bytes, format).unwrap();
    bytes
}

/// Decodes a whole file by runs of `run` points; returns the points of G1, and g2, s_g2.
fn decode_file(
    layout: &Layout,
    bytes: &[u8],
    run: u64,
) -> Result<(Vec<G1Affine>, [G2Affine; 2]), FormatError> {
    layout.check_k(*bytes.first_chunk().unwrap())?;
    let mut g1 = Vec::new();
    for region in [Region::G, Region::GLagrange] {
        let mut first = 0;
        while first < layout.points(region) {
            let count = run.min(layout.points(region) - first);
            let at = layout.run_offset(region, first, count)? as usize;
            let run_bytes = &bytes[at..at + (count * layout.point_bytes(region)) as usize];
            let mut points = vec![G1Affine::identity(); count as usize];
            decode_points(layout, region, first, run_bytes, &mut points)?;
            let mut native = vec![0; 64 * count as usize];
            decode_to_native::<g1::Config>(layout, region, first, run_bytes, &mut native)?;
            let mut again = vec![0; run_bytes.len()];
            encode_from_native::<g1::Config>(layout, region, first, &native, &mut again)?;
            assert_eq!(again, run_bytes);
            g1.extend(points);
            first += count;
        }
    }
    let mut pair = [G2Affine::identity(); 2];
    for (region, place) in [Region::G2, Region::SG2]
        .into_iter()
        .zip(pair.chunks_exact_mut(1))
    {
        let at = layout.offset(region) as usize;
        decode_points(
            layout,
            region,
            0,
            &bytes[at..at + layout.point_bytes(region) as usize],
            place,
        )?;
    }
    Ok((g1, pair))
}

#[test]
fn stock_files_decode_and_encode_back() {
    for k in [0, 1, 5] {
        // Oracle: stock's own raw bytes of what stock read.
        let (raw, raw_pair) = decode_file(
            &Layout::new(RAW, k).unwrap(),
            &stock_file(k, StockFormat::RawBytes),
            7,
        )
        .unwrap();
        for (format, stock_format) in FORMATS {
            let bytes = stock_file(k, stock_format);
            let layout = Layout::from_file_bytes(halo2(format), bytes.len() as u64).unwrap();
            assert_eq!(layout.k(), k);
            assert_eq!(detect(&bytes).format().is_compressed(), format.is_compressed());
            for run in [1, 7, 64] {
                let (g1, pair) = decode_file(&layout, &bytes, run).unwrap();
                assert_eq!(g1, raw);
                assert_eq!(pair, raw_pair);
                let mut encoded = vec![0; bytes.len()];
                encoded[..4].copy_from_slice(&layout.encode_k());
                let g2_at = layout.offset(Region::G2) as usize;
                encode_points(halo2(format), &g1, &mut encoded[4..g2_at]).unwrap();
                encode_points(halo2(format), &pair, &mut encoded[g2_at..]).unwrap();
                assert_eq!(encoded, bytes, "{format}");
            }
        }
    }
}

#[test]
fn single_points_match_halo2curves() {
    let mut rng = StdRng::seed_from_u64(5);
    for i in 0..64 {
        let one = if i == 0 {
            G1Affine::identity()
        } else {
            G1Affine::rand(&mut rng)
        };
        let two = if i == 0 {
            G2Affine::identity()
        } else {
            G2Affine::rand(&mut rng)
        };
        let (mut native, mut ours) = ([0u8; 128], [0u8; 64]);
        write_point(&one, &mut native[..64]);
        write_compressed(&one, &mut ours[..32]);
        let theirs = bn256::G1Affine::from_raw_bytes(&native[..64]).unwrap();
        assert_eq!(theirs.to_bytes().as_ref(), &ours[..32]);
        assert_eq!(read_compressed(&ours[..32]), Ok(one));
        write_point(&two, &mut native);
        write_compressed(&two, &mut ours);
        let theirs = bn256::G2Affine::from_raw_bytes(&native).unwrap();
        assert_eq!(theirs.to_bytes().as_ref(), &ours);
        assert_eq!(read_compressed(&ours), Ok(two));
    }
}

#[test]
fn each_corruption_is_named() {
    let bytes = stock_file(4, StockFormat::RawBytes);
    let layout = detect(&bytes);
    let fault = |at: u64, change: &dyn Fn(&mut [u8])| {
        let mut bytes = bytes.clone();
        change(&mut bytes[at as usize..]);
        match decode_file(&layout, &bytes, 5).unwrap_err() {
            FormatError::Point {
                what,
                index,
                offset,
                fault,
                value,
            } => {
                assert!(!value.is_empty());
                (what, index, offset, fault)
            }
            other => panic!("{other}"),
        }
    };
    let g7 = layout.offset(Region::G) + 7 * 64;
    let l9 = layout.offset(Region::GLagrange) + 9 * 64;
    let s_g2 = layout.offset(Region::SG2);
    assert_eq!(fault(g7, &|b| b[5] ^= 1), ("g", 7, g7, PointFault::NotOnCurve));
    assert_eq!(
        fault(l9, &|b| b[63] = 0xff),
        ("g_lagrange", 9, l9, PointFault::NotReduced)
    );
    assert_eq!(
        fault(s_g2, &|b| b[0] ^= 1),
        ("s_g2", 0, s_g2, PointFault::NotOnCurve)
    );
    assert_eq!(
        fault(s_g2, &|b| write_point(&outside_the_subgroup(), b)),
        ("s_g2", 0, s_g2, PointFault::NotInSubgroup)
    );
    let mut other_k = bytes.clone();
    other_k[0] ^= 1;
    assert!(matches!(
        decode_file(&layout, &other_k, 5),
        Err(FormatError::Field { what: "k", .. })
    ));
}

#[test]
fn stock_takes_points_off_the_curve_that_we_refuse() {
    let mut bytes = stock_file(2, StockFormat::RawBytes);
    bytes[4 + 5] ^= 1;
    assert!(ParamsKZG::<Bn256>::read_custom(&mut bytes.as_slice(), StockFormat::RawBytes).is_ok());
    let layout = detect(&bytes);
    assert!(decode_file(&layout, &bytes, 4).is_err());
}

/// A point of the twist that is not in G2: the first x whose point is not.
fn outside_the_subgroup() -> G2Affine {
    (1u64..)
        .filter_map(|i| G2Affine::get_point_from_x_unchecked(Fq2::new(Fq::from(i), Fq::ONE), true))
        .find(|point| !point.is_in_correct_subgroup_assuming_on_curve())
        .unwrap()
}

#[test]
fn compressed_forms_that_no_writer_makes_are_refused() {
    let refused = |bytes: &[u8]| read_compressed::<g1::Config>(bytes).unwrap_err();
    let mut bytes = [0u8; 32];
    write_compressed(&G1Affine::generator(), &mut bytes);
    bytes[31] |= 0x80;
    assert_eq!(refused(&bytes), PointFault::Flags, "infinity with an x");
    let mut infinity = [0u8; 32];
    infinity[31] = 0xc0;
    assert_eq!(refused(&infinity), PointFault::Flags, "infinity with a sign");
    assert_eq!(refused(&[0xff; 31]), PointFault::NotReduced, "length");
    let mut modulus = [0u8; 32];
    for (limb, chunk) in Fq::MODULUS.0.iter().zip(modulus.chunks_exact_mut(8)) {
        chunk.copy_from_slice(&limb.to_le_bytes());
    }
    assert_eq!(refused(&modulus), PointFault::NotReduced, "x = p");
    // x = 0: y^2 = 3 has no root in Fq of BN254.
    assert_eq!(refused(&[0; 32]), PointFault::NotOnCurve);
    let mut two = [0u8; 64];
    write_compressed(&outside_the_subgroup(), &mut two);
    assert!(read_compressed::<g2::Config>(&two).is_ok());
    assert_eq!(
        read::<g2::Config>(halo2(SerdeFormat::Processed), Check::Subgroup, &two),
        Err(PointFault::NotInSubgroup)
    );
}

#[test]
fn mismatched_runs_are_refused() {
    let layout = Layout::new(RAW, 2).unwrap();
    let mut points = vec![G1Affine::identity(); 4];
    assert!(decode_points(&layout, Region::G, 0, &[0; 255], &mut points).is_err());
    assert!(decode_points(&layout, Region::G, 1, &[0; 256], &mut points).is_err());
    assert!(
        decode_points(&layout, Region::G2, 0, &[0; 64], &mut points[..1]).is_err(),
        "G2 read as G1"
    );
    assert!(
        decode_points(&layout, Region::G, 0, &[0; 256], &mut points).is_ok(),
        "infinity is a point"
    );
    assert!(encode_points(halo2(SerdeFormat::Processed), &points, &mut [0; 127]).is_err());
    assert_eq!(read_point::<g1::Config>(&[0; 64]), Ok(G1Affine::identity()));
}
