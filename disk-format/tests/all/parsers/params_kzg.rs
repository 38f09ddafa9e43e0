//! A `ParamsKZG` file: the layout from any length, then the points of small ones, in every format. What is
//! accepted must encode to the bytes that it came from.

use ark_bn254::{G1Affine, G2Affine, g1};
use spillproof_format::native::read_elements;
use spillproof_format::params_kzg::points::{
    decode_points, decode_to_native, encode_from_native, encode_points,
};
use spillproof_format::params_kzg::{Layout, Region, SerdeFormat};

/// Panics if a parser is wrong on these bytes.
pub fn property(input: &[u8]) {
    if let Some(file_bytes) = input.first_chunk::<8>()
        && let Ok(layout) = Layout::detect(u64::from_le_bytes(*file_bytes), [file_bytes[0]; 4])
    {
        assert_eq!(layout.file_bytes(), u64::from_le_bytes(*file_bytes));
    }
    for format in [SerdeFormat::RawBytes, SerdeFormat::Processed] {
        file(format, input);
    }
    let mut scalars = vec![ark_bn254::Fr::from(0u64); input.len() / 32];
    let _ = read_elements("column", 0, 0, &input[..input.len() / 32 * 32], &mut scalars);
}

/// Takes the input for a file of 2^k points, cut or padded to the nearest length that is one.
fn file(format: SerdeFormat, input: &[u8]) {
    let k = (0..3)
        .rfind(|&k| Layout::new(format, k).is_ok_and(|layout| layout.file_bytes() <= input.len() as u64));
    let Ok(layout) = Layout::new(format, k.unwrap_or(0)) else {
        return;
    };
    let mut bytes = input.to_vec();
    bytes.resize(layout.file_bytes() as usize, 0);
    bytes[..4].copy_from_slice(&layout.encode_k());
    assert!(Layout::detect(layout.file_bytes(), layout.encode_k()).is_ok());
    for region in Region::ALL {
        let count = layout.points(region);
        let at = layout.offset(region) as usize;
        let run = &bytes[at..at + layout.region_bytes(region) as usize];
        let mut again = vec![0; run.len()];
        match region {
            Region::G | Region::GLagrange => {
                let mut points = vec![G1Affine::identity(); count as usize];
                let mut native = vec![0; 64 * count as usize];
                let decoded = decode_points(&layout, region, 0, run, &mut points);
                assert_eq!(
                    decoded,
                    decode_to_native::<g1::Config>(&layout, region, 0, run, &mut native)
                );
                if decoded.is_ok() {
                    encode_points(format, &points, &mut again).expect("lengths fit");
                    assert_eq!(again, run);
                    encode_from_native::<g1::Config>(&layout, region, 0, &native, &mut again)
                        .expect("decoded");
                    assert_eq!(again, run);
                }
            }
            Region::G2 | Region::SG2 => {
                let mut points = [G2Affine::identity()];
                if decode_points(&layout, region, 0, run, &mut points).is_ok() {
                    encode_points(format, &points, &mut again).expect("lengths fit");
                    assert_eq!(again, run);
                }
            }
        }
    }
}
