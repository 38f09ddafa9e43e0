//! Parameters in a session against stock's: the same bytes from every constructor, in every format.

use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha20Rng;

use halo2_axiom::halo2curves::bn256::{Bn256, Fq, Fr, G1Affine};
use halo2_axiom::halo2curves::ff::{Field, PrimeField};
use halo2_axiom::poly::commitment::{Blind, Params, ParamsProver};
use halo2_axiom::poly::kzg::commitment::ParamsKZG;
use halo2_axiom::poly::EvaluationDomain;
use halo2_axiom::spillproof::Session;
use halo2_axiom::SerdeFormat;
use stock_halo2_axiom::poly::commitment::{Params as _, ParamsProver as _};
use stock_halo2_axiom::SerdeFormat as StockFormat;

use crate::{drop_in, in_session, stock, turn, SESSION_BYTES};

const FORMATS: [(SerdeFormat, StockFormat); 3] = [
    (SerdeFormat::Processed, StockFormat::Processed),
    (SerdeFormat::RawBytes, StockFormat::RawBytes),
    (SerdeFormat::RawBytesUnchecked, StockFormat::RawBytesUnchecked),
];

#[test]
fn every_format_is_read_and_written_as_stock_does() {
    let _turn = turn(false);
    for k in [0, 1, 5, 11] {
        let theirs = stock::prove::params(k);
        for (format, stock_format) in FORMATS {
            let bytes = stock::prove::params_bytes(&theirs, stock_format);
            in_session(SESSION_BYTES, || {
                let made = drop_in::prove::params(k);
                assert!(
                    drop_in::prove::params_bytes(&made, format) == bytes,
                    "k = {k}: setup differs"
                );
                let read = drop_in::prove::read_params(&bytes, format).unwrap();
                assert!(
                    drop_in::prove::params_bytes(&read, format) == bytes,
                    "k = {k}: reading differs"
                );
            });
        }
    }
}

/// An SRS container is opened in place, with stock's bytes, also cut down; parameters whose points are in
/// another order are found.
#[test]
fn containers_are_opened_in_place() {
    use halo2_axiom::spillproof::{check_params, open_params};
    let _turn = turn(false);
    let dir = tempfile::tempdir().unwrap();
    let (file, path) = (dir.path().join("params"), dir.path().join("params.srs"));
    let k = 7;
    let mut theirs = stock::prove::params(k);
    let raw = stock::prove::params_bytes(&theirs, StockFormat::RawBytes);
    std::fs::write(&file, &raw).unwrap();
    theirs.downsize(5);
    let smaller = stock::prove::params_bytes(&theirs, StockFormat::RawBytes);
    assert!(open_params(&path).is_err(), "there is no session");
    in_session(SESSION_BYTES, || {
        let session = Session::current().unwrap().unwrap();
        let workspace = session.workspace();
        spillproof_commit::import_params_kzg(workspace, &file, &path, Default::default(), &mut |_| ())
            .unwrap();
        let mut opened = open_params(&path).unwrap();
        assert!(drop_in::prove::params_bytes(&opened, SerdeFormat::RawBytes) == raw);
        check_params(&opened, &mut |_| ()).unwrap();
        opened.downsize(5);
        assert!(drop_in::prove::params_bytes(&opened, SerdeFormat::RawBytes) == smaller);
        check_params(&opened, &mut |_| ()).unwrap();
        assert!(open_params(&file).is_err());
        for (first, second) in [(4, 4 + 64), (4 + (64 << k), 4 + (64 << k) + 64 * 9)] {
            let mut swapped = raw.clone();
            (0..64).for_each(|byte| swapped.swap(first + byte, second + byte));
            let read = drop_in::prove::read_params(&swapped, SerdeFormat::RawBytes).unwrap();
            let error = check_params(&read, &mut |_| ()).unwrap_err();
            assert!(
                error.to_string().contains("belong together") || error.to_string().contains("Lagrange form"),
                "{error}"
            );
        }
    });
}

/// From the smallest room that works on: as many points at a time as fit it, from 128 to all, in chunks that
/// need not divide them. Less is refused with the smallest budget.
#[test]
fn parameters_are_read_in_chunks_that_there_is_room_for() {
    let _turn = turn(false);
    for k in [0, 7, 11] {
        let theirs = stock::prove::params(k);
        for (format, stock_format) in FORMATS {
            let bytes = stock::prove::params_bytes(&theirs, stock_format);
            let read = |left_bytes: u64| {
                in_session(SESSION_BYTES, || {
                    let session = Session::current().unwrap().unwrap();
                    let held_bytes = SESSION_BYTES - left_bytes;
                    let held = session.budget().lease(held_bytes, "somebody else").unwrap();
                    let read = drop_in::prove::read_params(&bytes, format);
                    assert!(session.budget().peak_bytes() <= SESSION_BYTES);
                    drop(held);
                    let read = read.map_err(|error| match error.downcast() {
                        Ok(spillproof_engine::Error::BudgetTooSmall { needed_bytes, .. }) => {
                            needed_bytes - held_bytes
                        }
                        other => panic!("{other:?}"),
                    })?;
                    assert!(
                        drop_in::prove::params_bytes(&read, format) == bytes,
                        "k = {k}, {left_bytes} left"
                    );
                    Ok::<(), u64>(())
                })
            };
            let smallest = read(0).unwrap_err();
            assert_eq!(read(smallest - 1), Err(smallest), "k = {k}");
            // Each step has room for some points more.
            let steps = if k == 11 { 24 } else { 2 };
            for step in 0..=steps {
                read(smallest + step * 17_377).unwrap();
            }
        }
    }
}

#[test]
fn downsizing_and_parts_and_slices_are_stocks() {
    let _turn = turn(false);
    let mut theirs = stock::prove::params(9);
    let (g, g2, s_g2) = (theirs.get_g().to_vec(), theirs.g2(), theirs.s_g2());
    let whole = stock::prove::params_bytes(&theirs, StockFormat::RawBytes);
    theirs.downsize(6);
    let small = stock::prove::params_bytes(&theirs, StockFormat::RawBytes);
    in_session(SESSION_BYTES, || {
        let ours = drop_in::prove::params(9);
        assert_eq!(ours.get_g(), g);
        let from_parts = ours.from_parts(9, g.clone(), None, g2, s_g2);
        assert!(drop_in::prove::params_bytes(&from_parts, SerdeFormat::RawBytes) == whole);
        let mut cut = ours.clone();
        cut.downsize(6);
        assert!(drop_in::prove::params_bytes(&cut, SerdeFormat::RawBytes) == small);
        assert!(
            drop_in::prove::params_bytes(&ours, SerdeFormat::RawBytes) == whole,
            "a clone was changed"
        );
    });
}

#[test]
fn commitments_are_stocks() {
    let _turn = turn(false);
    let k = 10;
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let domain = EvaluationDomain::<Fr>::new(1, k);
    let mut values = domain.empty_lagrange();
    values.iter_mut().for_each(|value| *value = Fr::random(&mut rng));
    let coefficients = domain.lagrange_to_coeff(values.clone());
    let memory = drop_in::prove::params(k);
    let expected = memory.commit(&coefficients, Blind::default());
    assert_eq!(expected, memory.commit_lagrange(&values, Blind::default()));
    in_session(SESSION_BYTES, || {
        let params = drop_in::prove::params(k);
        assert_eq!(params.commit(&coefficients, Blind::default()), expected);
        assert_eq!(params.commit_lagrange(&values, Blind::default()), expected);
        let short = domain.coeff_from_vec(coefficients.to_vec());
        assert_eq!(params.commit(&short, Blind::default()), expected);
        let zero = domain.empty_coeff();
        assert_eq!(
            G1Affine::from(params.commit(&zero, Blind::default())),
            G1Affine::default()
        );
    });
}

#[test]
fn what_is_no_parameter_file_is_an_error() {
    let _turn = turn(false);
    let good = stock::prove::params_bytes(&stock::prove::params(4), StockFormat::RawBytes);
    in_session(SESSION_BYTES, || {
        let read = |bytes: &[u8]| ParamsKZG::<Bn256>::read_custom(&mut &*bytes, SerdeFormat::RawBytes);
        assert!(read(&good).is_ok());
        assert!(read(&good[..good.len() - 1]).is_err(), "a truncated file");
        assert!(read(&[40, 0, 0, 0]).is_err(), "k = 40");
        let mut bad = good.clone();
        bad[4 + 3 * 64] ^= 1;
        assert!(
            read(&bad).unwrap_err().to_string().contains("point 3"),
            "a point off the curve"
        );
        // The format without checks: the modulus added to x.
        let mut unreduced = good.clone();
        // With the carry, one more than the largest: the modulus.
        let mut carry = 1;
        for (byte, added) in unreduced[4 + 5 * 64..][..32].iter_mut().zip((-Fq::ONE).to_repr()) {
            let sum = u16::from(*byte) + u16::from(added) + carry;
            (*byte, carry) = (sum as u8, sum >> 8);
        }
        let read =
            |bytes: &[u8]| ParamsKZG::<Bn256>::read_custom(&mut &*bytes, SerdeFormat::RawBytesUnchecked);
        assert!(read(&good).is_ok());
        assert!(
            read(&unreduced).unwrap_err().to_string().contains("point 5"),
            "a coordinate that is not reduced"
        );
    });
}

#[test]
fn a_slice_larger_than_the_budget_is_a_map() {
    let _turn = turn(false);
    let g = drop_in::prove::params(17).get_g().to_vec();
    in_session(8 << 20, || {
        let params = drop_in::prove::params(17);
        assert!(params.get_g() == g, "8 MiB of points");
    });
}
