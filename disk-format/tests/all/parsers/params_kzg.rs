//! A `ParamsKZG` file: the layout from any length, then the points of small ones, in every encoding. What is
//! accepted must encode to the bytes that it came from.

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use spillproof_format::native::{NativeField, point_bytes, read_elements};
use spillproof_format::params_kzg::points::{
    decode_points, decode_to_native, encode_from_native, encode_points,
};
use spillproof_format::params_kzg::{Dialect, Encoding, Layout, Region, Stated};

/// Panics if a parser is wrong on these bytes.
pub fn property(input: &[u8]) {
    if let Some(file_bytes) = input.first_chunk::<8>()
        && let Ok(layout) = Layout::detect(
            Stated::default(),
            u64::from_le_bytes(*file_bytes),
            [file_bytes[0]; 4],
        )
    {
        assert_eq!(layout.file_bytes(), u64::from_le_bytes(*file_bytes));
    }
    for encoding in Encoding::ALL {
        match encoding.dialect {
            Dialect::Halo2 => file::<ark_bn254::g1::Config, ark_bn254::g2::Config>(encoding, input),
            Dialect::Midnight => {
                file::<ark_bls12_381::g1::Config, ark_bls12_381::g2::Config>(encoding, input);
            }
        }
    }
    let mut scalars = vec![ark_bn254::Fr::from(0u64); input.len() / 32];
    let _ = read_elements("column", 0, 0, &input[..input.len() / 32 * 32], &mut scalars);
}

/// Takes the input for a file of 2^k points, cut or padded to the nearest length that is one.
fn file<G1, G2>(encoding: Encoding, input: &[u8])
where
    G1: SWCurveConfig<BaseField: NativeField>,
    G2: SWCurveConfig<BaseField: NativeField>,
{
    let k = (0..3)
        .rfind(|&k| Layout::new(encoding, k).is_ok_and(|layout| layout.file_bytes() <= input.len() as u64));
    let Ok(layout) = Layout::new(encoding, k.unwrap_or(0)) else {
        return;
    };
    let mut bytes = input.to_vec();
    bytes.resize(layout.file_bytes() as usize, 0);
    bytes[..4].copy_from_slice(&layout.encode_k());
    assert_eq!(
        Layout::detect(Stated::default(), layout.file_bytes(), layout.encode_k()),
        Ok(layout)
    );
    for region in Region::ALL {
        let at = layout.offset(region) as usize;
        let run = &bytes[at..at + layout.region_bytes(region) as usize];
        match region {
            Region::G | Region::GLagrange => stays::<G1>(&layout, region, run),
            Region::G2 | Region::SG2 => stays::<G2>(&layout, region, run),
        }
    }
}

fn stays<P: SWCurveConfig<BaseField: NativeField>>(layout: &Layout, region: Region, run: &[u8]) {
    let count = layout.points(region) as usize;
    let mut again = vec![0; run.len()];
    let mut points = vec![Affine::<P>::zero(); count];
    let mut native = vec![0; point_bytes::<P>() * count];
    let decoded = decode_points(layout, region, 0, run, &mut points);
    assert_eq!(
        decoded,
        decode_to_native::<P>(layout, region, 0, run, &mut native)
    );
    if decoded.is_ok() {
        encode_points(layout.encoding(), &points, &mut again).expect("lengths fit");
        assert_eq!(again, run);
        encode_from_native::<P>(layout, region, 0, &native, &mut again).expect("decoded");
        assert_eq!(again, run);
    }
}
