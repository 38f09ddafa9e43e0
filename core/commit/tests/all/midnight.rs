//! SRS files of midnight-proofs, in and out, against the unmodified crate: its bytes, its points, its
//! commitments, and every corruption refused by name.

use std::path::Path;

use ark_bls12_381::{Bls12_381, Fq, Fr, G1Affine, g1, g2};
use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ff::{AdditiveGroup, Field, PrimeField, UniformRand};
use halo2curves::ff::{Field as _, PrimeField as _};
use halo2curves::group::GroupEncoding as _;
use midnight_curves::{Bls12, Fq as StockScalar, G1Projective};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_commit::{
    Srs, add_lagrange, check_srs, from_jacobian, generate, import_params_kzg, kzg, map_jacobian, verify_srs,
};
use spillproof_engine::Error;
use spillproof_engine::budget::Budget;
use spillproof_engine::column::{Column, Container};
use spillproof_engine::stream::Scalars;
use spillproof_format::params_kzg::points::{encoded_bytes, write};
use spillproof_format::params_kzg::{Dialect, Encoding, Layout, Region, SerdeFormat, Stated};
use spillproof_format::{Curve, FormatError, PointFault};
use spillproof_kernels::curve::Jacobian;
use spillproof_kernels::pairing::G1Point;
use stock_midnight_proofs::poly::EvaluationDomain;
use stock_midnight_proofs::poly::commitment::PolynomialCommitmentScheme;
use stock_midnight_proofs::poly::kzg::KZGCommitmentScheme;
use stock_midnight_proofs::poly::kzg::params::ParamsKZG;
use stock_midnight_proofs::utils::SerdeFormat as StockFormat;

use crate::place::Place;

type MidnightSrs = Srs<Bls12_381>;

const FORMATS: [(SerdeFormat, StockFormat); 3] = [
    (SerdeFormat::Processed, StockFormat::Processed),
    (SerdeFormat::RawBytes, StockFormat::RawBytes),
    (SerdeFormat::RawBytesUnchecked, StockFormat::RawBytesUnchecked),
];
const RAW: Encoding = Encoding::new(Dialect::Midnight, SerdeFormat::RawBytes);
const SEED: u64 = 7;

impl Place {
    fn take(&self, source: &Path, stated: Stated) -> Result<MidnightSrs, Error> {
        let target = self.path("imported.srs");
        import_params_kzg(&self.workspace, source, &target, stated, &mut |_| {})?;
        Srs::open_container(&self.workspace, &target)
    }

    fn open(&self, bytes: &[u8]) -> Result<MidnightSrs, Error> {
        Srs::open_params_kzg(&self.workspace, &self.write("in-place", bytes), None)
    }
}

fn params(k: u32) -> ParamsKZG<Bls12> {
    ParamsKZG::unsafe_setup(k, ChaCha8Rng::seed_from_u64(SEED))
}

/// The secret that `unsafe_setup` draws.
fn secret() -> Fr {
    ours(&StockScalar::random(ChaCha8Rng::seed_from_u64(SEED)))
}

fn ours(scalar: &StockScalar) -> Fr {
    Fr::from_le_bytes_mod_order(scalar.to_repr().as_ref())
}

fn theirs(scalar: &Fr) -> StockScalar {
    let mut bytes = [0; 32];
    spillproof_format::native::NativeField::write_standard(scalar, &mut bytes);
    StockScalar::from_repr(bytes).unwrap()
}

fn written(params: &ParamsKZG<Bls12>, format: StockFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    params.write_custom(&mut bytes, format).unwrap();
    bytes
}

fn stock(k: u32, format: StockFormat) -> Vec<u8> {
    written(&params(k), format)
}

/// Raw bytes of a point.
fn raw<P: SWCurveConfig<BaseField: spillproof_format::native::NativeField>>(point: &Affine<P>) -> Vec<u8> {
    let mut bytes = vec![0; encoded_bytes::<P>(RAW)];
    write(RAW, point, &mut bytes);
    bytes
}

/// Compressed bytes of points on disk, as stock writes each.
fn compressed(points: &[G1Affine]) -> Vec<[u8; 48]> {
    let encoding = Encoding::new(Dialect::Midnight, SerdeFormat::Processed);
    let points = points.iter().map(|point| {
        let mut bytes = [0; 48];
        write(encoding, point, &mut bytes);
        bytes
    });
    points.collect()
}

fn points_of(column: &Column<G1Point<Bls12_381>>) -> Vec<G1Affine> {
    let points = column.to_vec().unwrap();
    points
        .iter()
        .map(|point| point.to_affine::<g1::Config>())
        .collect()
}

#[test]
fn import_and_export_give_stocks_bytes_and_stock_reads_them() {
    let place = Place::new();
    // 2^11 points take two frames of a section.
    for k in [0, 1, 2, 6, 11] {
        for (format, stock_format) in FORMATS {
            let bytes = stock(k, stock_format);
            let source = place.write("params", &bytes);
            let target = place.path("x.srs");
            for stated in [
                Stated::default(),
                Stated::of(Dialect::Midnight),
                Stated {
                    dialect: Some(Dialect::Midnight),
                    format: Some(format),
                },
            ] {
                let imported =
                    import_params_kzg(&place.workspace, &source, &target, stated, &mut |_| {}).unwrap();
                let found = imported.encoding;
                assert_eq!((imported.k, found.dialect), (k, Dialect::Midnight));
                assert_eq!(found.format.is_compressed(), format.is_compressed());
                let container = Container::open(&place.workspace, &target).unwrap();
                assert_eq!(container.root(), imported.root);
                assert_eq!(container.header().curve(), Curve::Bls12381);
            }
            assert_eq!(verify_srs(&place.workspace, &target, &mut |_| {}).unwrap(), k);
            for (format, stock_format) in FORMATS {
                let exported = place.export(&target, format).unwrap();
                assert!(exported == stock(k, stock_format), "k = {k}, {format}");
                let read = ParamsKZG::<Bls12>::read_custom(&mut exported.as_slice(), stock_format).unwrap();
                assert_eq!(read.g_lagrange(), params(k).g_lagrange());
                assert_eq!((read.g2(), read.s_g2()), (params(k).g2(), params(k).s_g2()));
            }
        }
    }
    assert_eq!(place.workspace.budget.held_bytes(), 0);
}

#[test]
fn generated_as_stock_generates_and_made_smaller_as_stock_does() {
    let place = Place::new();
    for k in [1, 5, 10] {
        let path = place.path("made.srs");
        let srs = generate::<Bls12_381>(&place.workspace, &path, k, secret(), |_| {}).unwrap();
        assert!(srs.is_insecure());
        assert!(place.export(&path, SerdeFormat::RawBytes).unwrap() == stock(k, StockFormat::RawBytes));
        let mut stock = params(k);
        stock.downsize(k - 1);
        let wanted = written(&stock, StockFormat::RawBytes);
        let omega = spillproof_format::params_kzg::root_of_unity(k - 1).unwrap();
        let mut bytes = Vec::new();
        let smaller = srs.downsize(k - 1, omega).unwrap();
        smaller
            .write_params_kzg(SerdeFormat::RawBytes, &mut bytes)
            .unwrap();
        assert!(bytes == wanted, "k = {k}");
        let target = place.path("smaller.srs");
        let whole = place.write("whole", &written(&params(k), StockFormat::Processed));
        for source in [&path, &whole] {
            let stated = Stated::default();
            add_lagrange(
                &place.workspace,
                source,
                &target,
                Some(k - 1),
                stated,
                &mut |_| {},
            )
            .unwrap();
            assert!(
                place.export(&target, SerdeFormat::RawBytes).unwrap() == wanted,
                "k = {k}"
            );
        }
    }
}

#[test]
fn commitments_are_stocks_in_both_bases() {
    let place = Place::new();
    let k = 8;
    let stock = params(k);
    let bytes = written(&stock, StockFormat::RawBytes);
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<Fr> = (0..1 << k).map(|_| Fr::rand(&mut rng)).collect();
    let domain = EvaluationDomain::<StockScalar>::new(1, k);
    let mut lagrange = domain.empty_lagrange();
    for (to, from) in lagrange.iter_mut().zip(&values) {
        *to = theirs(from);
    }
    let coefficients = domain.lagrange_to_coeff(lagrange.clone());
    let wanted = KZGCommitmentScheme::commit_lagrange(&stock, &lagrange);
    assert_eq!(KZGCommitmentScheme::commit(&stock, &coefficients), wanted);
    let coefficients: Vec<Fr> = coefficients.iter().map(ours).collect();
    let imported = place
        .take(&place.write("params", &bytes), Stated::default())
        .unwrap();
    for srs in [imported, place.open(&bytes).unwrap()] {
        let by_values = kzg::commit_lagrange(&srs, &[Scalars::Slice(&values)]).unwrap();
        let by_coefficients = kzg::commit(&srs, &[Scalars::Slice(&coefficients)]).unwrap();
        assert_eq!(by_values, by_coefficients);
        assert_eq!(compressed(&by_values)[0], stock_bytes(&wanted));
    }
}

fn stock_bytes(point: &G1Projective) -> [u8; 48] {
    let mut bytes = [0; 48];
    bytes.copy_from_slice(point.to_bytes().as_ref());
    bytes
}

#[test]
fn a_raw_file_is_used_where_it_is() {
    let place = Place::new();
    let bytes = stock(11, StockFormat::RawBytes);
    let srs = place.open(&bytes).unwrap();
    let imported = place.take(&place.path("in-place"), Stated::default()).unwrap();
    assert_eq!((srs.k(), srs.pair()), (11, imported.pair()));
    assert_eq!(
        points_of(srs.monomial().unwrap()),
        points_of(imported.monomial().unwrap())
    );
    assert_eq!(
        points_of(srs.lagrange().unwrap()),
        points_of(imported.lagrange().unwrap())
    );
    check_srs(&place.workspace, &srs, &mut |_| {}).unwrap();
    assert_eq!(
        std::fs::read_dir(place.path("scratch")).unwrap().count(),
        0,
        "nothing is copied"
    );
    let mut again = Vec::new();
    srs.write_params_kzg(SerdeFormat::RawBytes, &mut again).unwrap();
    assert!(again == bytes);
    // What cannot be.
    let processed = place.open(&stock(4, StockFormat::Processed)).unwrap_err();
    let of_bn254 = place.write("bn254", &bn254(4));
    let other = MidnightSrs::open_params_kzg(&place.workspace, &of_bn254, None).unwrap_err();
    let other_curve = <Srs>::open_params_kzg(&place.workspace, &place.path("in-place"), None).unwrap_err();
    for error in [processed, other, other_curve] {
        let is_named = matches!(
            &error,
            Error::Format {
                source: FormatError::Field { .. },
                ..
            }
        );
        assert!(is_named, "{error}");
    }
    // And the other dialect.
    let srs = <Srs>::open_params_kzg(&place.workspace, &of_bn254, None).unwrap();
    check_srs(&place.workspace, &srs, &mut |_| {}).unwrap();
    let mut again = Vec::new();
    srs.write_params_kzg(SerdeFormat::RawBytes, &mut again).unwrap();
    assert!(again == bn254(4));
}

/// A raw file of halo2's.
fn bn254(k: u32) -> Vec<u8> {
    let params = stock_halo2_axiom::poly::kzg::commitment::ParamsKZG::<
        stock_halo2_axiom::halo2curves::bn256::Bn256,
    >::setup(k, ChaCha8Rng::seed_from_u64(SEED));
    let mut bytes = Vec::new();
    params
        .write_custom(&mut bytes, stock_halo2_axiom::SerdeFormat::RawBytes)
        .unwrap();
    bytes
}

#[test]
fn bytes_are_read_from_a_reader_and_written_to_a_writer_as_stock_does() {
    let place = Place::new();
    for k in [0, 5, 11] {
        for (format, stock_format) in FORMATS {
            let bytes = [stock(k, stock_format), vec![1, 2, 3]].concat();
            let mut reader = bytes.as_slice();
            let srs = MidnightSrs::read_params_kzg(&place.workspace, &mut reader, format).unwrap();
            assert_eq!(reader, [1, 2, 3], "no byte behind them is read");
            let mut again = Vec::new();
            srs.write_params_kzg(format, &mut again).unwrap();
            assert!(again == bytes[..bytes.len() - 3], "k = {k}, {format}");
        }
    }
    let bytes = stock(5, StockFormat::RawBytes);
    let short = &mut &bytes[..bytes.len() - 1];
    let cut = MidnightSrs::read_params_kzg(&place.workspace, short, SerdeFormat::RawBytes);
    assert!(
        matches!(
            cut,
            Err(Error::File {
                operation: "read",
                ..
            })
        ),
        "{cut:?}"
    );
    let endless = &mut &[33, 0, 0, 0][..];
    let endless = MidnightSrs::read_params_kzg(&place.workspace, endless, SerdeFormat::RawBytes);
    assert!(matches!(endless, Err(Error::Format { .. })), "{endless:?}");
    // Unchecked bytes may have points outside of the subgroup, as stock's reader takes them.
    let mut outside = bytes;
    let layout = Layout::new(RAW, 5).unwrap();
    let at = layout.point_offset(Region::G, 3) as usize;
    outside[at..at + 96].copy_from_slice(&raw(&outside_the_subgroup::<g1::Config>()));
    for (format, stock_format) in FORMATS.into_iter().skip(1) {
        let ours = MidnightSrs::read_params_kzg(&place.workspace, &mut outside.as_slice(), format);
        let theirs = ParamsKZG::<Bls12>::read_custom(&mut outside.as_slice(), stock_format);
        assert_eq!(ours.is_ok(), theirs.is_ok(), "{format}");
        assert_eq!(ours.is_ok(), format == SerdeFormat::RawBytesUnchecked);
    }
    assert_eq!(place.workspace.budget.held_bytes(), 0);
}

#[test]
fn points_in_three_coordinates_are_stocks() {
    let place = Place::new();
    let coordinate = |value: midnight_curves::Fp| Fq::from_le_bytes_mod_order(&value.to_bytes_le());
    for k in [0, 3, 11] {
        let stock = params(k);
        let theirs: Vec<Jacobian<Fq>> = (stock.g_lagrange().iter())
            .map(|point| Jacobian {
                x: coordinate(point.x()),
                y: coordinate(point.y()),
                z: coordinate(point.z()),
            })
            .chain([Jacobian::INFINITY])
            .collect();
        let made = from_jacobian::<Bls12_381>(&place.workspace, "points", &theirs).unwrap();
        let mut wanted: Vec<_> = stock.g_lagrange().iter().map(stock_bytes).collect();
        wanted.push(compressed(&[G1Affine::identity()])[0]);
        assert_eq!(compressed(&points_of(&made)), wanted);
        let slice = map_jacobian::<Bls12_381>(&made).unwrap();
        let back: Vec<G1Affine> = slice
            .iter()
            .map(|point| point.to_projective::<g1::Config>().into())
            .collect();
        assert_eq!(compressed(&back), wanted);
        assert!(slice[..slice.len() - 1].iter().all(|point| point.z == Fq::ONE));
        slice.release();
        assert_eq!(slice[0], Jacobian::from(&made.to_vec().unwrap()[0]));
        // Of a part, and of a file where it is.
        let part = map_jacobian::<Bls12_381>(&made.prefix(1).unwrap()).unwrap();
        assert_eq!(part[..], slice[..1]);
        let srs = place.open(&written(&stock, StockFormat::RawBytes)).unwrap();
        let in_place = map_jacobian::<Bls12_381>(srs.lagrange().unwrap()).unwrap();
        assert_eq!(in_place[..], slice[..slice.len() - 1]);
    }
    let none = from_jacobian::<Bls12_381>(&place.workspace, "points", &[]).unwrap();
    assert!(map_jacobian::<Bls12_381>(&none).unwrap().is_empty());
    assert_eq!(place.workspace.budget.held_bytes(), 0);
}

fn outside_the_subgroup<P: SWCurveConfig>() -> Affine<P> {
    let mut x = P::BaseField::ZERO;
    loop {
        x += P::BaseField::ONE;
        match Affine::get_point_from_x_unchecked(x, true) {
            Some(point) if !point.is_in_correct_subgroup_assuming_on_curve() => return point,
            _ => {}
        }
    }
}

/// The errors of importing a raw file that was changed, and of checking it where it is.
fn refused(k: u32, change: impl FnOnce(&Layout, &mut Vec<u8>)) -> [FormatError; 2] {
    let place = Place::new();
    let mut bytes = stock(k, StockFormat::RawBytes);
    change(&Layout::new(RAW, k).unwrap(), &mut bytes);
    let imported = place.take(&place.write("params", &bytes), Stated::default());
    let in_place = place
        .open(&bytes)
        .and_then(|srs| check_srs(&place.workspace, &srs, &mut |_| {}));
    assert!(!place.path("imported.srs").exists());
    [imported.map(drop), in_place].map(|result| match result.unwrap_err() {
        Error::Format { source, .. } => source,
        other => panic!("{other}"),
    })
}

fn fault_at(k: u32, place: (Region, u64), change: impl FnOnce(&mut [u8])) -> PointFault {
    let (region, index) = place;
    let at = Layout::new(RAW, k).unwrap().point_offset(region, index);
    let [imported, in_place] = refused(k, |_, bytes| change(&mut bytes[at as usize..]));
    let of = |error| match error {
        FormatError::Point {
            index, offset, fault, ..
        } => (index, offset, fault),
        other => panic!("{other}"),
    };
    assert_eq!(of(imported.clone()), of(in_place));
    let FormatError::Point { what, .. } = &imported else {
        panic!("{imported}")
    };
    assert_eq!(*what, region.name());
    let (found_index, offset, fault) = of(imported);
    assert_eq!((found_index, offset), (index, at));
    fault
}

#[test]
fn bad_points_are_refused_with_index_and_offset() {
    for region in [Region::G, Region::GLagrange] {
        assert_eq!(fault_at(6, (region, 33), |b| b[0] |= 0x80), PointFault::Flags);
        assert_eq!(fault_at(6, (region, 63), |b| b[0] |= 0x40), PointFault::Flags);
        assert_eq!(
            fault_at(6, (region, 5), |b| b[48..96].fill(0x1f)),
            PointFault::NotReduced
        );
        let outside = raw(&outside_the_subgroup::<g1::Config>());
        // One by one, and by sums.
        for k in [6, 11] {
            let put = |b: &mut [u8]| b[..96].copy_from_slice(&outside);
            assert_eq!(fault_at(k, (region, 9), put), PointFault::NotInSubgroup);
        }
    }
    let outside = raw(&outside_the_subgroup::<g2::Config>());
    let put = |b: &mut [u8]| b[..192].copy_from_slice(&outside);
    assert_eq!(fault_at(6, (Region::SG2, 0), put), PointFault::NotInSubgroup);
    assert_eq!(
        fault_at(6, (Region::G2, 0), |b| b[100] ^= 1),
        PointFault::NotOnCurve
    );
    let [imported, in_place] = refused(6, |layout, bytes| {
        bytes[layout.point_offset(Region::G, 7) as usize + 90] ^= 1;
    });
    for error in [imported, in_place] {
        let fault = match error {
            FormatError::Point { index: 7, fault, .. } => fault,
            other => panic!("{other}"),
        };
        assert_eq!(fault, PointFault::NotOnCurve);
    }
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let other = raw(&G1Affine::generator());
    for (region, index) in [
        (Region::G, 1),
        (Region::G, 63),
        (Region::GLagrange, 0),
        (Region::GLagrange, 63),
    ] {
        let errors = refused(6, |layout, bytes| {
            let at = layout.point_offset(region, index) as usize;
            bytes[at..at + 96].copy_from_slice(&other);
        });
        for error in errors {
            assert!(matches!(error, FormatError::Inconsistent { .. }), "{error}");
        }
    }
    let infinity = raw(&G1Affine::identity());
    for error in refused(6, |layout, bytes| {
        let at = layout.offset(Region::G) as usize;
        bytes[at..at + 96].copy_from_slice(&infinity);
    }) {
        assert!(matches!(error, FormatError::Inconsistent { .. }), "{error}");
    }
}

#[test]
fn files_that_are_cut_or_longer_are_refused() {
    let changes: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes.truncate(100),
        |bytes| bytes.push(0),
        |bytes| bytes.clear(),
        |bytes| {
            bytes.pop();
        },
    ];
    for change in changes {
        for error in refused(6, |_, bytes| change(bytes)) {
            assert!(matches!(error, FormatError::NoSuchLength { .. }), "{error}");
        }
    }
    for error in refused(6, |_, bytes| bytes[0] = 7) {
        assert!(matches!(error, FormatError::Field { what: "k", .. }), "{error}");
    }
    // What is stated holds.
    let place = Place::new();
    let source = place.write("params", &stock(6, StockFormat::RawBytes));
    for stated in [
        Stated::of(Dialect::Halo2),
        Stated {
            dialect: None,
            format: Some(SerdeFormat::Processed),
        },
    ] {
        let error = place.take(&source, stated).unwrap_err();
        let is_named = matches!(
            &error,
            Error::Format {
                source: FormatError::NoSuchLength { .. },
                ..
            }
        );
        assert!(is_named, "{error}");
    }
}

#[test]
fn a_small_budget_is_enough() {
    let place = Place::new();
    let source = place.write("params", &stock(12, StockFormat::RawBytes));
    let small = place.workspace.clone().with_budget(Budget::new(6 << 20));
    let target = place.path("x.srs");
    import_params_kzg(&small, &source, &target, Stated::default(), &mut |_| {}).unwrap();
    assert!(small.budget.peak_bytes() <= 6 << 20);
    let srs = MidnightSrs::open_params_kzg(&small, &source, None).unwrap();
    check_srs(&small, &srs, &mut |_| {}).unwrap();
    assert_eq!(small.budget.held_bytes(), 0);
}
