//! KZG over an SRS on disk against arkworks' `KZG10` and halo2-axiom's `ParamsKZG`.

use ark_bls12_381::Bls12_381;
use ark_bn254::{Bn254, Fr};
use ark_ff::UniformRand;
use ark_poly::univariate::DensePolynomial;
use ark_poly::{DenseUVPolynomial, Polynomial};
use ark_poly_commit::kzg10::{Commitment, KZG10, Powers, Proof, VerifierKey};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_commit::{HALO2_ROOT_OF_UNITY, KzgCurve, Srs, generate, generate_scratch, kzg, omega};
use spillproof_engine::budget::Budget;
use spillproof_engine::column::{Column, Element, Placement, Workspace, Writer};
use spillproof_engine::storage::Storage;
use spillproof_engine::stream::Scalars;
use spillproof_kernels::pairing::PairingGroups;
use stock_halo2_axiom::halo2curves::bn256 as stock;
use stock_halo2_axiom::halo2curves::ff::Field;
use stock_halo2_axiom::poly::EvaluationDomain;
use stock_halo2_axiom::poly::commitment::{Blind, Params, ParamsProver};
use stock_halo2_axiom::poly::kzg::commitment::ParamsKZG;

fn workspace(dir: &tempfile::TempDir) -> Workspace {
    let storage = Storage::builder().dir(dir.path()).build().expect("storage");
    Workspace::new(storage, Budget::new(8 << 20))
}

fn column<F: Element>(workspace: &Workspace, values: &[F]) -> Column<F> {
    let mut writer =
        Writer::scratch(workspace, "polynomial", values.len() as u64, Placement::Disk).expect("room");
    writer.push(values).expect("written");
    writer.finish().expect("written")
}

fn ark_of<A: Element, B: Element>(value: &A) -> B {
    let mut bytes = vec![0; A::BYTES];
    value.encode(&mut bytes);
    B::decode(&bytes)
}

#[test]
fn generated_and_committed_as_halo2_axiom_does() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let workspace = workspace(&dir);
    for k in [1u32, 4, 11] {
        let stock = ParamsKZG::<stock::Bn256>::setup(k, ChaCha20Rng::seed_from_u64(1));
        let secret = stock::Fr::random(ChaCha20Rng::seed_from_u64(1));
        let srs = generate::<Bn254>(
            &workspace,
            &dir.path().join("test.srs"),
            k,
            ark_of(&secret),
            |_| (),
        )
        .expect("SRS");
        let reopened = <Srs>::open_container(&workspace, &dir.path().join("test.srs")).expect("opens");
        assert_eq!(srs.root(), reopened.root());
        let monomial = srs
            .monomial()
            .and_then(|c| c.cast::<stock::G1Affine>()?.to_vec())
            .expect("readable");
        assert!(monomial == stock.get_g());
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        Params::write(&stock, &mut theirs).expect("bytes");
        ours.extend(k.to_le_bytes());
        for column in [srs.monomial(), srs.lagrange()] {
            for point in column.and_then(Column::to_vec).expect("readable") {
                let at = ours.len();
                ours.resize(at + 64, 0);
                point.encode(&mut ours[at..]);
            }
        }
        for point in srs.pair() {
            let at = ours.len();
            ours.resize(at + 128, 0);
            spillproof_format::native::write_point(&point, &mut ours[at..]);
        }
        assert!(ours == theirs, "the bytes of ParamsKZG, k = {k}");

        let domain = EvaluationDomain::<stock::Fr>::new(1, k);
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let values: Vec<Fr> = (0..1 << k).map(|_| Fr::rand(&mut rng)).collect();
        let stock_values: Vec<stock::Fr> = values.iter().map(ark_of).collect();
        let wanted = stock.commit(&domain.coeff_from_vec(stock_values.clone()), Blind::default());
        let wanted_lagrange =
            stock.commit_lagrange(&domain.lagrange_from_vec(stock_values.clone()), Blind::default());
        let on_disk = column(&workspace, &values);
        let ours = kzg::commit(
            &srs,
            &[
                Scalars::Column(&on_disk),
                Scalars::Slice(&values),
                Scalars::Foreign(&stock_values.as_slice()),
            ],
        )
        .expect("committed");
        let lagrange = kzg::commit_lagrange(&srs, &[Scalars::Slice(&values)]).expect("committed");
        let convert = |point: &ark_bn254::G1Affine| -> stock::G1Affine {
            ark_of(&spillproof_commit::G1::from_affine::<ark_bn254::g1::Config>(
                point,
            ))
        };
        assert_eq!(convert(&ours[0]), stock::G1Affine::from(wanted));
        assert_eq!(ours[0], ours[1]);
        assert_eq!(ours[0], ours[2]);
        assert_eq!(convert(&lagrange[0]), stock::G1Affine::from(wanted_lagrange));

        let omega = omega(HALO2_ROOT_OF_UNITY, k - 1).expect("k is small");
        let small = srs.downsize(k - 1, omega).expect("smaller");
        let mut stock = stock;
        stock.downsize(k - 1);
        let lagrange = small
            .lagrange()
            .and_then(|c| c.cast::<stock::G1Affine>()?.to_vec())
            .expect("readable");
        let domain = EvaluationDomain::<stock::Fr>::new(1, k - 1);
        // Stock keeps its Lagrange points private: a unit vector commits to one.
        for (i, point) in lagrange.iter().enumerate().step_by(lagrange.len().div_ceil(5)) {
            let mut unit = domain.empty_lagrange();
            unit[i] = stock::Fr::ONE;
            assert_eq!(
                stock::G1Affine::from(stock.commit_lagrange(&unit, Blind::default())),
                *point
            );
        }
    }
}

#[test]
fn opened_as_arkworks_does_and_accepted_by_its_check() {
    opened_as_arkworks_does::<Bn254>();
    opened_as_arkworks_does::<Bls12_381>();
}

fn opened_as_arkworks_does<E: KzgCurve>() {
    type Polynomial<E> = DensePolynomial<<E as PairingGroups>::Scalar>;
    let dir = tempfile::tempdir().expect("temporary directory");
    let workspace = workspace(&dir);
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let srs = generate_scratch::<E>(&workspace, 12, E::Scalar::rand(&mut rng), |_| ()).expect("SRS");
    let powers_of_g: Vec<_> = srs
        .monomial()
        .and_then(Column::to_vec)
        .expect("readable")
        .iter()
        .map(|point| point.to_affine::<E::G1Config>())
        .collect();
    let powers = Powers::<E> {
        powers_of_g: powers_of_g.into(),
        powers_of_gamma_g: Vec::new().into(),
    };
    let [h, beta_h] = srs.pair();
    let verifier = VerifierKey::<E> {
        g: powers.powers_of_g[0],
        gamma_g: powers.powers_of_g[0],
        h,
        beta_h,
        prepared_h: h.into(),
        prepared_beta_h: beta_h.into(),
    };
    for len in [1usize, 2, 511, 1000, 4096] {
        let coefficients: Vec<_> = (0..len).map(|_| E::Scalar::rand(&mut rng)).collect();
        let polynomial = DensePolynomial::from_coefficients_slice(&coefficients);
        let point = E::Scalar::rand(&mut rng);
        let on_disk = column(&workspace, &coefficients);
        let commitment = kzg::commit(&srs, &[Scalars::Column(&on_disk)]).expect("committed")[0];
        let (theirs, randomness) =
            KZG10::<E, Polynomial<E>>::commit(&powers, &polynomial, None, None).expect("committed");
        assert_eq!(theirs, Commitment(commitment));
        let opening = kzg::open(&srs, &on_disk, point).expect("opened");
        assert_eq!(opening.value, polynomial.evaluate(&point));
        // arkworks keeps `open` to itself; its parts are public.
        let (witness, _) =
            KZG10::<E, Polynomial<E>>::compute_witness_polynomial(&polynomial, point, &randomness)
                .expect("witness");
        let (wanted, _) = KZG10::<E, Polynomial<E>>::commit(&powers, &witness, None, None).expect("proof");
        assert_eq!(opening.proof, wanted.0);
        let proof = Proof {
            w: opening.proof,
            random_v: None,
        };
        let check = |value| KZG10::<E, Polynomial<E>>::check(&verifier, &theirs, point, value, &proof);
        assert!(check(opening.value).expect("checked"));
        assert!(
            !check(opening.value + E::Scalar::from(1u64)).expect("checked"),
            "another value is refused"
        );
        assert!(kzg::check(&srs, &commitment, point, &opening).expect("checked"));
    }
    let one = E::Scalar::from(1u64);
    assert!(kzg::commit(&srs, &[Scalars::Slice(&[one; 4097])]).is_err());
}
