//! Parameters, commitments, public openings and the verifier's sums, in a session and without.

use ff::{Field as _, FromUniformBytes};
use proptest::prelude::*;

use crate::drop_in::halo2 as ours;
use crate::drop_in::prove::{read_params, written};
use crate::stock::halo2 as stock;
use crate::stock::prove as stock_prove;
use crate::{in_session, of, turn, Draws};

use ours::arithmetic::{CurveAffine, CurveExt as _};
use ours::pasta::{EpAffine, EqAffine};

/// Everything that is public about commitments, made by one of the crates and written as bytes: parameters,
/// commitments, an opening of one polynomial, a multi-opening.
macro_rules! made {
    ($halo2:ident, $C:ty, $k:expr, $seed:expr, $params:expr) => {{
        use $halo2::poly::commitment::{self, Blind, Params};
        use $halo2::poly::multiopen::{self, ProverQuery};
        use $halo2::poly::EvaluationDomain;
        use $halo2::transcript::{Blake2bRead, Blake2bWrite, Challenge255};
        let params: Params<$C> = $params;
        let mut bytes = Vec::new();
        params.write(&mut bytes).unwrap();
        params
            .get_g()
            .iter()
            .for_each(|point| bytes.extend_from_slice(point.to_bytes().as_ref()));
        let domain = EvaluationDomain::<<$C as CurveAffine>::ScalarExt>::new(1, $k);
        let mut rng = Draws::new($seed);
        let mut polynomials = Vec::new();
        for _ in 0..3 {
            let mut values = domain.empty_lagrange();
            values
                .iter_mut()
                .for_each(|value| *value = <$C as CurveAffine>::ScalarExt::random(&mut rng));
            let blind = Blind(<$C as CurveAffine>::ScalarExt::random(&mut rng));
            let commitment = params.commit_lagrange(&values, blind).to_affine_vartime();
            let polynomial = domain.lagrange_to_coeff(values);
            assert_eq!(params.commit(&polynomial, blind).to_affine_vartime(), commitment);
            bytes.extend_from_slice(commitment.to_bytes().as_ref());
            polynomials.push((polynomial, blind, commitment));
        }
        let point = <$C as CurveAffine>::ScalarExt::random(&mut rng);
        let (polynomial, blind, commitment) = &polynomials[0];
        let mut transcript = Blake2bWrite::<_, $C, Challenge255<$C>>::init(Vec::new());
        commitment::create_proof(
            &params,
            Draws::new($seed + 1),
            &mut transcript,
            polynomial,
            *blind,
            point,
        )
        .unwrap();
        let proof = transcript.finalize();
        bytes.extend_from_slice(&proof);
        // As a verifier takes it: by the challenges, and by the folded basis, which is a point of the proof
        // for another verifier.
        let value = $halo2::arithmetic::eval_polynomial(polynomial, point);
        for (value, holds) in [(value, true), (value.double(), false)] {
            let mut transcript = Blake2bRead::<_, $C, Challenge255<$C>>::init(&proof[..]);
            let mut msm = params.empty_msm();
            msm.append_term(<$C as CurveAffine>::ScalarExt::ONE, *commitment);
            let guard = commitment::verify_proof(&params, msm, &mut transcript, point, value).unwrap();
            let folded = guard.compute_g();
            bytes.extend_from_slice(folded.to_bytes().as_ref());
            assert_eq!(guard.clone().use_g(folded).0.eval(), holds);
            let mut sum = guard.clone().use_challenges();
            assert_eq!(sum.clone().eval(), holds);
            let other = guard.use_challenges();
            sum.scale(<$C as CurveAffine>::ScalarExt::from(5));
            sum.add_msm(&other);
            assert_eq!(sum.clone().eval(), holds);
            // A caller's own scalars.
            let ones = vec![<$C as CurveAffine>::ScalarExt::ONE; 1 << $k];
            sum.add_to_g_scalars(&ones);
            assert!(!sum.clone().eval());
            sum.add_to_g_scalars(&vec![-<$C as CurveAffine>::ScalarExt::ONE; 1 << $k]);
            assert_eq!(sum.eval(), holds);
        }
        let at = |index: usize, point| ProverQuery {
            point,
            poly: &polynomials[index].0,
            blind: polynomials[index].1,
        };
        let queries = [(0, point), (1, point.double()), (0, point.double()), (2, point)];
        let queries = queries.iter().map(|(index, point)| at(*index, *point));
        let mut transcript = Blake2bWrite::<_, $C, Challenge255<$C>>::init(Vec::new());
        multiopen::create_proof(&params, Draws::new($seed + 2), &mut transcript, queries).unwrap();
        bytes.extend_from_slice(&transcript.finalize());
        bytes
    }};
}

fn are_identical<C>(k: u32, seed: u64)
where
    C: CurveAffine<ScalarExt: FromUniformBytes<64>>,
{
    let expected = made!(stock, C, k, seed, stock::poly::commitment::Params::<C>::new(k));
    let new = || ours::poly::commitment::Params::<C>::new(k);
    assert!(made!(ours, C, k, seed, new()) == expected, "without a session");
    let stocks = stock_prove::written(&stock::poly::commitment::Params::<C>::new(k));
    for bytes in [4 << 20, 16 << 20] {
        in_session(of(bytes), || {
            assert!(made!(ours, C, k, seed, new()) == expected, "in a session");
            assert!(made!(ours, C, k, seed, read_params(&stocks)) == expected, "read");
        });
    }
    // Parameters from before the session.
    let params = new();
    let made = in_session(of(16 << 20), || made!(ours, C, k, seed, params.clone()));
    assert!(made == expected, "parameters in memory");
    // And from one that has ended.
    let params = in_session(of(16 << 20), || written(&new()));
    assert!(params == stocks);
}

#[test]
fn one_row_and_two() {
    let _turn = turn();
    are_identical::<EqAffine>(1, 7);
    are_identical::<EpAffine>(2, 8);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn parameters_and_openings(seed in 0..u64::MAX - 9, k in 3..10u32, is_vesta in any::<bool>()) {
        let _turn = turn();
        match is_vesta {
            true => are_identical::<EqAffine>(k, seed),
            false => are_identical::<EpAffine>(k, seed),
        }
    }
}

#[test]
fn damaged_parameters_are_refused_with_the_place() {
    let _turn = turn();
    let k = 4;
    let stocks = stock_prove::written(&stock::poly::commitment::Params::<EqAffine>::new(k));
    let refused = |bytes: &[u8]| {
        in_session(of(16 << 20), || {
            let read = ours::poly::commitment::Params::<EqAffine>::read(&mut &bytes[..]);
            read.unwrap_err().to_string()
        })
    };
    let mut bytes = stocks.clone();
    bytes[4 + 3 * 32..][..32].fill(0xff);
    assert!(refused(&bytes).contains("point 3 of g "), "{}", refused(&bytes));
    let mut bytes = stocks.clone();
    bytes[4 + 18 * 32..][..32].fill(0xff);
    assert!(
        refused(&bytes).contains("point 2 of g_lagrange"),
        "{}",
        refused(&bytes)
    );
    let last = stocks.len() - 32;
    let mut bytes = stocks.clone();
    bytes[last..].fill(0xff);
    assert!(refused(&bytes).contains(": u is"), "{}", refused(&bytes));
    let mut bytes = stocks.clone();
    bytes[0] = 40;
    assert!(refused(&bytes).contains("k = 40"), "{}", refused(&bytes));
    assert!(
        refused(&stocks[..last]).contains("fill whole buffer"),
        "{}",
        refused(&stocks[..last])
    );
}

/// Parameters are saved, opened in place and checked; other points than `Params::new`'s are found, wherever
/// they stand.
#[test]
fn containers() {
    use ours::poly::commitment::Params;
    use ours::spillproof::{open_params, save_params, verify_params};
    fn text<T>(result: std::io::Result<T>) -> String {
        result.err().unwrap().to_string()
    }
    fn are_the_same<C: crate::drop_in::prove::Curve>(k: u32) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("params.srs");
        in_session(of(16 << 20), || {
            let made = Params::<C>::new(k);
            save_params(&made, &file, &mut |_| ()).unwrap();
            let opened = open_params::<C>(&file).unwrap();
            assert!(written(&opened) == written(&made));
            verify_params(&opened, &mut |_| ()).unwrap();

            // k, g, g_lagrange, w, u: 32 bytes a point.
            let (good, n) = (written(&made), 1usize << k);
            let point = |index: usize| 4 + 32 * index;
            for (index, other, reason) in [
                (0, 1, "generators"),
                (n - 1, 2, "generators"),
                (n + 1, n, "Lagrange form"),
                (2 * n - 1, 0, "Lagrange form"),
                (2 * n, 2 * n + 1, "generators"),
                (2 * n + 1, 3, "generators"),
            ] {
                let mut bytes = good.clone();
                bytes.copy_within(point(other)..point(other + 1), point(index));
                let wrong = dir.path().join("wrong.srs");
                save_params(&read_params::<C>(&bytes), &wrong, &mut |_| ()).unwrap();
                let opened = open_params::<C>(&wrong).unwrap();
                let refused = text(verify_params(&opened, &mut |_| ()));
                assert!(refused.contains(reason), "point {index}: {refused}");
            }
        });
        assert!(
            text(open_params::<C>(&file)).contains("session"),
            "without a session"
        );
        // In memory, to a file of a session.
        let in_memory = Params::<C>::new(k);
        in_session(of(16 << 20), || {
            verify_params(&in_memory, &mut |_| ()).unwrap();
            save_params(&in_memory, &file, &mut |_| ()).unwrap();
            assert!(written(&open_params::<C>(&file).unwrap()) == written(&in_memory));
        });
    }
    let _turn = turn();
    are_the_same::<EqAffine>(7);
    are_the_same::<EpAffine>(3);
    // Of the other curve, and no container at all.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("params.srs");
    in_session(of(16 << 20), || {
        save_params(&Params::<EqAffine>::new(5), &file, &mut |_| ()).unwrap();
        assert!(text(open_params::<EpAffine>(&file)).contains("curve"));
        std::fs::write(&file, written(&Params::<EqAffine>::new(5))).unwrap();
        assert!(open_params::<EqAffine>(&file).is_err());
    });
}
