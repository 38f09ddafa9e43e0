//! An accelerator in a session: one over arkworks makes the same keys and proofs, and one that lies makes no
//! wrong proof.
//!
//! What is expected is made without a session, and verified by the unmodified crate.

pub mod arkworks;

use std::sync::Arc;

use halo2_axiom::halo2curves::bn256::{Bn256, Fr, G1Affine};
use halo2_axiom::plonk::{Error, ProvingKey};
use halo2_axiom::poly::commitment::Params;
use halo2_axiom::poly::kzg::commitment::ParamsKZG;
use halo2_axiom::poly::kzg::multiopen::{ProverGWC, ProverSHPLONK};
use halo2_axiom::spillproof::accelerator::Accelerator;
use halo2_axiom::spillproof::{ByteSize, Session, Unverified};
use halo2_axiom::SerdeFormat;

use arkworks::{Arkworks, Quotients};

use crate::drop_in::erased::Listed;
use crate::drop_in::options::{prove_from_advice, Plan, Querying};
use crate::drop_in::phases::Phases;
use crate::drop_in::prove::{self, try_prove_with};
use crate::{drop_in, in_session_of, stock, turn, Bytes, Scheme, SCHEMES};

/// A session that has this accelerator.
fn in_session_with<T>(accelerator: &Arc<Arkworks>, work: impl FnOnce() -> T) -> T {
    let builder = Session::builder()
        .memory(ByteSize::Bytes(16 << 20))
        .accelerator(Arc::clone(accelerator) as Arc<dyn Accelerator>);
    in_session_of(builder, work)
}

fn parameters(k: u32) -> (ParamsKZG<Bn256>, Vec<u8>) {
    let params = prove::params(k);
    let bytes = prove::params_bytes(&params, SerdeFormat::RawBytes);
    (params, bytes)
}

fn read_params(bytes: &[u8]) -> ParamsKZG<Bn256> {
    prove::read_params(bytes, SerdeFormat::RawBytes).unwrap()
}

/// Keys and proofs with and without an accelerator; a proof of one circuit is verified by the unmodified
/// crate, too. Gives the accelerator's quotients.
fn compare<D: Listed, S: stock::erased::Listed>(plan: Plan) -> Quotients {
    let (params, bytes) = parameters(plan.k);
    let expected = plan.run::<D>(&params, &SCHEMES);
    let accelerator = Arkworks::new();
    let made = in_session_with(&accelerator, || plan.run::<D>(&read_params(&bytes), &SCHEMES));
    assert!(
        accelerator.jobs() > 20,
        "{}: {} jobs",
        D::NAME,
        accelerator.jobs()
    );
    for ((made, expected), scheme) in made.iter().zip(&expected).zip(SCHEMES) {
        let context = format!("{}, {scheme:?}, {plan:?}", D::NAME);
        assert!(made == expected, "{context}: something differs");
        let made = Bytes {
            params: &bytes,
            vk: &made.vk,
            proof: &made.proof,
            instances: &made.instances,
        };
        let is_accepted = stock::prove::accepts::<S>(&made, scheme);
        assert_eq!(is_accepted, plan.circuits == 1, "{context}: is accepted by stock");
    }
    let quotients = accelerator.quotients();
    assert!(quotients.count >= 4, "{}: {quotients:?}", D::NAME);
    quotients
}

#[test]
fn an_accelerator_makes_the_same_keys_and_proofs() {
    let _turn = turn(true);
    compare::<drop_in::chain::Chain, stock::chain::Chain>(Plan::plain(6));
    // Up to 2^7 points of a coset are one row: its rotations are points further. Beyond that there are
    // several rows, and tiles.
    let in_one_row = compare::<drop_in::lookups::Lookups, stock::lookups::Lookups>(Plan::plain(7));
    assert!(in_one_row.tiles == [1].into(), "{in_one_row:?}");
    let in_tiles = compare::<drop_in::lookups::Lookups, stock::lookups::Lookups>(Plan::plain(10));
    assert!(in_tiles.tiles.len() > 2, "{in_tiles:?}");
    compare::<drop_in::publics::Publics, stock::publics::Publics>(Plan::plain(6));
    compare::<Phases<2, false>, stock::phases::Phases<2, false>>(Plan::plain(6));
    // Which stock's verifier can't follow (see `session.rs`), and the prover's own verification can.
    compare::<drop_in::lookups::Lookups, stock::lookups::Lookups>(Plan {
        circuits: 2,
        ..Plan::plain(7)
    });
}

#[test]
fn an_accelerator_makes_the_same_proof_of_advice_from_elsewhere() {
    type Ours = drop_in::lookups::Lookups;
    let _turn = turn(true);
    let (params, bytes) = parameters(7);
    let run =
        |params: &_| prove_from_advice(params, &prove::keys::<Ours>(params, 7), prove::circuit::<Ours>(7));
    let expected = run(&params);
    let accelerator = Arkworks::new();
    let made = in_session_with(&accelerator, || run(&read_params(&bytes)));
    assert!(made == expected && accelerator.jobs() > 20);
}

fn try_prove<C: Listed>(
    params: &ParamsKZG<Bn256>,
    pk: &ProvingKey<G1Affine>,
    scheme: Scheme,
    instances: &[Vec<Vec<Fr>>],
) -> Result<Vec<u8>, Error> {
    let circuits = [prove::circuit::<C>(params.k())];
    match scheme {
        Scheme::Shplonk => try_prove_with::<C, ProverSHPLONK<'_, Bn256>>(params, pk, &circuits, instances),
        Scheme::Gwc => try_prove_with::<C, ProverGWC<'_, Bn256>>(params, pk, &circuits, instances),
    }
}

fn instances<C: Listed>(k: u32) -> Vec<Vec<Vec<Fr>>> {
    vec![prove::circuit::<C>(k).instances()]
}

/// Each job of a proof is done wrong once. Whatever that does, no wrong proof comes of it; and the second
/// attempt, with a new transcript, is the processor's, and right.
#[test]
fn an_accelerator_that_lies_makes_no_wrong_proof() {
    type Ours = drop_in::lookups::Lookups;
    let _turn = turn(true);
    let k = 6;
    let (params, bytes) = parameters(k);
    let expected = Plan::plain(k).run::<Ours>(&params, &SCHEMES);
    for (expected, scheme) in expected.iter().zip(SCHEMES) {
        let (mut lie, mut refused) = (0, 0);
        loop {
            let accelerator = Arkworks::new();
            let was_told = in_session_with(&accelerator, || {
                let params = read_params(&bytes);
                let pk = prove::keys::<Ours>(&params, k);
                let before = accelerator.jobs();
                accelerator.lie_after(lie);
                let prove = || try_prove::<Ours>(&params, &pk, scheme, &expected.instances);
                match prove() {
                    Ok(proof) => assert!(
                        proof == expected.proof,
                        "{scheme:?}: job {lie} makes a wrong proof"
                    ),
                    Err(error) => {
                        let unverified = Unverified::of(&error)
                            .unwrap_or_else(|| panic!("{scheme:?}: job {lie}: {error}"));
                        assert!(
                            unverified.jobs > 0 && unverified.jobs_before >= before,
                            "{unverified:?}"
                        );
                        refused += 1;
                        let jobs = accelerator.jobs();
                        assert!(
                            prove().unwrap() == expected.proof,
                            "{scheme:?}: job {lie}, once more"
                        );
                        assert_eq!(
                            accelerator.jobs(),
                            jobs,
                            "an accelerator that lied is asked again"
                        );
                    }
                }
                accelerator.jobs() > before + lie
            });
            if !was_told {
                break;
            }
            lie += 1;
        }
        // What is not seen has no effect: a lie about an element that nobody looks at.
        eprintln!("{scheme:?}: {refused} lies of {lie} refused");
        assert!(
            lie > 20 && refused + 2 >= lie,
            "{scheme:?}: {refused} lies of {lie} refused"
        );
    }
}

/// A key that was made wrong is found by the first proof with it, and by each one after that.
#[test]
fn an_accelerator_that_lies_about_keys_makes_no_wrong_proof() {
    type Ours = drop_in::chain::Chain;
    let _turn = turn(true);
    let k = 6;
    let (params, bytes) = parameters(k);
    let expected = &Plan::plain(k).run::<Ours>(&params, &[Scheme::Shplonk])[0];
    let (mut lie, mut refused) = (0, 0);
    loop {
        let accelerator = Arkworks::new();
        let was_told = in_session_with(&accelerator, || {
            let params = read_params(&bytes);
            accelerator.lie_after(lie);
            let before = accelerator.jobs();
            let pk = prove::keys::<Ours>(&params, k);
            let was_told = accelerator.jobs() > before + lie;
            accelerator.lie_no_more();
            let prove = || try_prove::<Ours>(&params, &pk, Scheme::Shplonk, &expected.instances);
            match prove() {
                Ok(proof) => assert!(proof == expected.proof, "job {lie} makes a wrong proof"),
                Err(error) => {
                    assert!(Unverified::of(&error).unwrap().jobs > 0, "{error}");
                    refused += 1;
                    let error = prove().unwrap_err();
                    let unverified = Unverified::of(&error).unwrap();
                    assert_eq!(unverified.jobs, 0, "{error}");
                    assert!(unverified.to_string().contains("keys"), "{error}");
                }
            }
            was_told
        });
        if !was_told {
            break;
        }
        lie += 1;
    }
    eprintln!("keys: {refused} lies of {lie} refused");
    assert!(lie > 5 && refused + 2 >= lie, "{refused} lies of {lie} refused");
}

/// The same error says so where it is the witness that is wrong: stock would give a proof that nobody
/// accepts.
#[test]
fn a_witness_that_does_not_satisfy_is_told_in_a_session_with_an_accelerator() {
    type Ours = drop_in::chain::Chain;
    let _turn = turn(true);
    let (_, bytes) = parameters(6);
    let accelerator = Arkworks::new();
    in_session_with(&accelerator, || {
        let params = read_params(&bytes);
        let pk = prove::keys::<Ours>(&params, 6);
        let mut wrong = instances::<Ours>(6);
        wrong[0][0][0] += Fr::one();
        for took_part in [true, false] {
            let error = try_prove::<Ours>(&params, &pk, Scheme::Gwc, &wrong).unwrap_err();
            let unverified = Unverified::of(&error).unwrap();
            assert_eq!(unverified.jobs > 0, took_part, "{error}");
            assert!(
                unverified.to_string().contains("does not satisfy the circuit"),
                "{error}"
            );
        }
    });
}

/// Where nobody could verify what an accelerator did, it is not asked: with a multi-opening that is not
/// upstream's, and without a session.
#[test]
fn what_cannot_be_verified_is_the_processors() {
    type Ours = drop_in::publics::Publics;
    let _turn = turn(true);
    let (k, plan) = (6, Plan::plain(6));
    let (params, bytes) = parameters(k);
    let querying = plan.run_querying::<Ours>(&params);
    let usual = &plan.run::<Ours>(&params, &[Scheme::Shplonk])[0];
    let accelerator = Arkworks::new();
    in_session_with(&accelerator, || {
        let params = read_params(&bytes);
        let pk = prove::keys::<Ours>(&params, k);
        let jobs = accelerator.jobs();
        assert!(jobs > 0);
        let circuits = [prove::circuit::<Ours>(k)];
        let made = prove::prove_with::<_, Querying<ProverSHPLONK<'_, Bn256>>>(&params, &pk, &circuits);
        assert!(made == querying.proof);
        {
            let _none = Session::suspend();
            let made = prove::prove(&params, &pk, &circuits, Scheme::Shplonk);
            assert!(made == usual.proof);
        }
        // Nor in the session of another, which has none.
        let dir = tempfile::tempdir().unwrap();
        let other = Session::builder()
            .memory(ByteSize::Bytes(16 << 20))
            .dir(dir.path())
            .build()
            .unwrap();
        {
            let _other = Arc::new(other).install();
            let made = prove::prove(&params, &pk, &circuits, Scheme::Shplonk);
            assert!(made == usual.proof);
        }
        assert_eq!(accelerator.jobs(), jobs);
        let made = prove::prove(&params, &pk, &circuits, Scheme::Shplonk);
        assert!(made == usual.proof && accelerator.jobs() > jobs);
    });
}
