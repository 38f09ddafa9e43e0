//! What the fuzz targets hold each parser to, here over seeds and some thousand mutations of them.
//!
//! The seed is printed; `SPILLPROOF_TEST_SEED=<seed>` runs the same mutations again. `fuzz/run.sh` looks
//! further.

mod header;
mod iden3;
mod params_kzg;

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use spillproof_format::header::HEADER_BYTES;
use spillproof_format::native::NativeField;
use spillproof_format::params_kzg::points::encode_points;
use spillproof_format::params_kzg::{Dialect, Encoding, Layout, Region};

/// As for the fuzzer.
const INPUT_BYTES_MAX: usize = 8192;

/// A generator, and its seed, which is printed.
fn seeded() -> StdRng {
    let given = std::env::var("SPILLPROOF_TEST_SEED");
    let seed = given
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(rand::random);
    println!("SPILLPROOF_TEST_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

/// Changes some bytes, moves some, cuts the input or makes it longer.
fn mutate(input: &mut Vec<u8>, rng: &mut StdRng) {
    for _ in 0..rng.gen_range(1..=8) {
        let at = rng.gen_range(0..=input.len());
        let behind = input.len() - at;
        match rng.gen_range(0..7) {
            0 if behind > 0 => input[at] ^= 1 << rng.gen_range(0..8),
            1 if behind > 0 => input[at] = [0, 1, 0x7f, 0x80, 0xff][rng.gen_range(0..5)],
            2 if behind > 0 => input[at] = rng.r#gen(),
            3 if behind > 8 => {
                let number = [0, 1, u64::from(u32::MAX), 1 << 40, u64::MAX][rng.gen_range(0..5)];
                input[at..at + 8].copy_from_slice(&number.to_le_bytes());
            }
            4 if behind > 1 => {
                let bytes = rng.gen_range(1..behind.min(64));
                let to = rng.gen_range(0..=input.len() - bytes);
                input.copy_within(at..at + bytes, to);
            }
            5 => {
                let bytes: Vec<u8> = (0..rng.gen_range(1..32)).map(|_| rng.r#gen()).collect();
                input.splice(at..at, bytes);
            }
            _ if rng.gen_ratio(1, 8) => input.truncate(at),
            _ => {}
        }
    }
    input.truncate(INPUT_BYTES_MAX);
}

/// Holds a property over the seeds, over `cases` mutations of them, and over random bytes.
fn holds(property: impl Fn(&[u8]), seeds: &[Vec<u8>], cases: usize) {
    seeds.iter().for_each(|seed| property(seed));
    let mut rng = seeded();
    for case in 0..cases {
        let mut input = match case % 8 {
            0 => (0..rng.gen_range(0..512)).map(|_| rng.r#gen()).collect(),
            _ => seeds[rng.gen_range(0..seeds.len())].clone(),
        };
        mutate(&mut input, &mut rng);
        property(&input);
    }
}

#[test]
fn headers_survive_mutations() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1");
    let mut seeds = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let header = std::fs::read(entry.unwrap().path()).unwrap()[..HEADER_BYTES].to_vec();
        // The layout that the property spreads over a header: fixed fields, then the table of sections.
        seeds.push([&header[..128], &header[256..]].concat());
        seeds.push(header);
    }
    assert!(seeds.len() >= 10, "the fixtures are missing");
    holds(header::property, &seeds, 20_000);
}

/// A file of generators.
fn generators<G1, G2>(layout: &Layout) -> Vec<u8>
where
    G1: SWCurveConfig<BaseField: NativeField>,
    G2: SWCurveConfig<BaseField: NativeField>,
{
    let mut bytes = vec![0; layout.file_bytes() as usize];
    bytes[..4].copy_from_slice(&layout.encode_k());
    for region in Region::ALL {
        let start = layout.offset(region) as usize;
        let out = &mut bytes[start..start + layout.region_bytes(region) as usize];
        let count = layout.points(region) as usize;
        match region {
            Region::G | Region::GLagrange => {
                encode_points(layout.encoding(), &vec![Affine::<G1>::generator(); count], out).unwrap();
            }
            Region::G2 | Region::SG2 => {
                encode_points(layout.encoding(), &[Affine::<G2>::generator()], out).unwrap();
            }
        }
    }
    bytes
}

#[test]
fn params_kzg_survive_mutations() {
    let mut seeds = Vec::new();
    for encoding in Encoding::ALL {
        for k in 0..3 {
            let layout = Layout::new(encoding, k).unwrap();
            seeds.push(match encoding.dialect {
                Dialect::Halo2 => generators::<ark_bn254::g1::Config, ark_bn254::g2::Config>(&layout),
                Dialect::Midnight => {
                    generators::<ark_bls12_381::g1::Config, ark_bls12_381::g2::Config>(&layout)
                }
            });
        }
    }
    holds(params_kzg::property, &seeds, 4_000);
}

#[test]
fn files_of_iden3_survive_mutations() {
    // Kind and curve, then three numbers that say what a small file holds.
    let seeds: Vec<Vec<u8>> = (0..8u8)
        .flat_map(|kind| (0..64u8).map(move |sizes| vec![kind, sizes & 3, sizes >> 2 & 3, sizes >> 4]))
        .collect();
    holds(iden3::property, &seeds, 4_000);
}
