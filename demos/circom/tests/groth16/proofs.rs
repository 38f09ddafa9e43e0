//! Groth16 proofs: the same as another library's, over keys and witnesses on disk.

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ec::AffineRepr;
use ark_ec::pairing::Pairing;
use ark_ec::short_weierstrass::Affine;
use ark_ff::Field;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_engine::Error;
use spillproof_engine::column::{Column, Placement, Workspace};
use spillproof_engine::error::Invalid;
use spillproof_engine::plan::Rates;
use spillproof_groth16::{
    Coefficient, Constraints, Domain, PairingCurve, ProvingKey, QuotientBasis, VerifyingKey, plan, prove,
    prove_in, verify,
};
use spillproof_kernels::curve::{Curve, Point};
use spillproof_testing::session;

use crate::common::{column_in, place};
use crate::r1cs::{Circuit, Key, Values, text};

const MIB: u64 = 1 << 20;

pub fn blinding<F: Field>(seed: u64) -> [F; 2] {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    [F::rand(&mut rng), F::rand(&mut rng)]
}

fn same_as_another_library<E: PairingCurve>(seed: u64, constraints: usize, public: usize, values: Values) {
    let circuit = Circuit::<E::Scalar>::random(seed, constraints, public, values);
    let key = Key::<E>::new(&circuit, seed);
    let random = blinding(seed);
    let expected = key.prove(&circuit, random);
    for threads in [1, 2] {
        let in_budget = |budget_bytes: u64| {
            let (_dir, session) = session(budget_bytes, threads);
            let key = key_on_disk(session.workspace(), &circuit, &key);
            let witness = column_in(session.workspace(), &circuit.witness, Placement::Disk);
            let shape = key.shape().expect("a shape");
            (shape, prove_in(&session, &key, &witness, random))
        };
        let proved = |budget_bytes: u64| {
            let (shape, proof) = in_budget(budget_bytes);
            let proof = proof.unwrap_or_else(|error| panic!("{shape:?} in {budget_bytes} bytes: {error}"));
            assert!(text(&proof) == expected, "{shape:?} in {budget_bytes} bytes");
            shape
        };
        let shape = proved(64 * MIB);
        let plan = plan::<E>(&shape, 64 * MIB, threads, &Rates::default()).expect("a plan");
        let smallest = plan.smallest_budget_bytes;
        proved(smallest);
        proved(smallest + smallest / 3);
        let (_, refused) = in_budget(smallest - 64 * 1024);
        match refused {
            Err(Error::BudgetTooSmall { needed_bytes, .. }) => {
                assert_eq!(needed_bytes, smallest, "{shape:?}")
            }
            other => panic!("{shape:?}: {other:?}"),
        }
    }
}

/// With a small part of the budget for its columns, a proof writes nothing; and no more in a larger budget than in
/// a smaller one.
#[test]
fn a_proof_with_room_for_its_columns_writes_nothing() {
    let circuit = Circuit::random(17, 5000, 2, Values::Full);
    let key = Key::<Bn254>::new(&circuit, 17);
    let random = blinding(17);
    let expected = key.prove(&circuit, random);
    let mut written = Vec::new();
    for budget_bytes in [2 * MIB, 4 * MIB, 64 * MIB] {
        let (_dir, session) = session(budget_bytes, 2);
        let key = key_on_disk(session.workspace(), &circuit, &key);
        let witness = column_in(session.workspace(), &circuit.witness, Placement::Small);
        let before = session.storage().stats().bytes_written;
        let proof = prove_in(&session, &key, &witness, random).expect("a proof");
        assert!(text(&proof) == expected, "{budget_bytes} bytes");
        written.push(session.storage().stats().bytes_written - before);
        assert!(session.budget().peak_bytes() <= budget_bytes);
    }
    assert!(
        written[0] > 0 && written.is_sorted_by(|less, more| less >= more),
        "{written:?}"
    );
    assert_eq!(written[2], 0);
}

/// The key in columns on disk.
pub fn key_on_disk<E: PairingCurve>(
    workspace: &Workspace,
    circuit: &Circuit<E::Scalar>,
    Key { key, domain }: &Key<E>,
) -> ProvingKey<E> {
    fn points<P: Curve>(workspace: &Workspace, points: &[Affine<P>]) -> Column<Point<P>> {
        let points: Vec<_> = points.iter().map(Point::<P>::from_affine::<P>).collect();
        column_in(workspace, &points, Placement::Disk)
    }
    let mut values = vec![E::Scalar::ONE];
    let mut coefficients = Vec::new();
    let (a, empty) = (circuit.bound_a(), Vec::new());
    for (index, row) in a.iter().enumerate() {
        let b = circuit.b.get(index).unwrap_or(&empty);
        for (matrix, (value, signal)) in
            (row.iter().map(|term| (0, term))).chain(b.iter().map(|term| (1, term)))
        {
            let place = values.iter().position(|other| other == value).unwrap_or_else(|| {
                values.push(*value);
                values.len() - 1
            });
            coefficients.push(Coefficient {
                row: index as u32,
                signal: *signal as u32,
                value: place as u32,
                matrix,
            });
        }
    }
    let mut private = vec![<E as Pairing>::G1Affine::zero(); circuit.public + 1];
    private.extend_from_slice(&key.l_query);
    let disk = Placement::Disk;
    ProvingKey {
        verifying: VerifyingKey {
            alpha_g1: key.vk.alpha_g1,
            beta_g2: key.vk.beta_g2,
            gamma_g2: key.vk.gamma_g2,
            delta_g2: key.vk.delta_g2,
            ic: points(workspace, &key.vk.gamma_abc_g1),
        },
        beta_g1: key.beta_g1,
        delta_g1: key.delta_g1,
        a: points(workspace, &key.a_query),
        b_g1: points(workspace, &key.b_g1_query),
        b_g2: points(workspace, &key.b_g2_query),
        c: points(workspace, &private),
        h: points(workspace, &key.h_query),
        constraints: Constraints::new(
            column_in(workspace, &values, disk),
            column_in(workspace, &coefficients, disk),
        ),
        domain: Domain {
            omega: domain[0],
            shift: domain[1],
        },
        quotient: QuotientBasis::Coset,
        share: None,
    }
}

#[test]
fn proofs_are_another_librarys_over_bn254() {
    for (seed, (constraints, public)) in [(1, 0), (3, 1), (61, 2), (64, 0), (250, 5), (1000, 23), (4000, 3)]
        .into_iter()
        .enumerate()
    {
        same_as_another_library::<Bn254>(seed as u64, constraints, public, Values::Full);
    }
}

#[test]
fn proofs_are_another_librarys_over_bls12_381() {
    for (seed, (constraints, public)) in [(1, 0), (30, 2), (1000, 1)].into_iter().enumerate() {
        same_as_another_library::<Bls12_381>(seed as u64, constraints, public, Values::Full);
    }
}

#[test]
fn witnesses_of_bits_are_proved() {
    same_as_another_library::<Bn254>(7, 3000, 1, Values::Bits);
}

#[test]
fn domains_are_those_of_another_library() {
    fn check<F: spillproof_kernels::field::KernelField>() {
        for log_n in 0..=F::TWO_ADICITY {
            let (omega, shift) = taceo_groth16::groth16_roots_of_unity::<F>(log_n as usize);
            assert_eq!(
                Domain::<F>::of_smallest_non_residue(log_n).expect("a domain"),
                Domain { omega, shift }
            );
        }
        assert!(Domain::<F>::of_smallest_non_residue(F::TWO_ADICITY + 1).is_err());
    }
    check::<ark_bn254::Fr>();
    check::<ark_bls12_381::Fr>();
}

#[test]
fn witnesses_that_do_not_fit_are_refused() {
    let circuit = Circuit::<ark_bn254::Fr>::random(1, 200, 2, Values::Full);
    let key = Key::<Bn254>::new(&circuit, 1);
    let place = place(16 * MIB);
    let key = key_on_disk(&place.workspace, &circuit, &key);
    let proved = |witness: &[ark_bn254::Fr]| prove(&key, &place.column(witness), blinding(1));
    let wrong_at = |index: usize| {
        let mut witness = circuit.witness.clone();
        witness[index] += ark_bn254::Fr::ONE;
        proved(&witness)
    };
    assert!(matches!(
        wrong_at(0),
        Err(Error::Invalid(Invalid::WitnessStart { .. }))
    ));
    for index in [1, 3, 100, 202] {
        assert!(
            matches!(wrong_at(index), Err(Error::Invalid(Invalid::NotSatisfied))),
            "signal {index}"
        );
    }
    let short = proved(&circuit.witness[..200]);
    assert!(matches!(short, Err(Error::Invalid(Invalid::Length { .. }))));
    let proof = proved(&circuit.witness).expect("a proof");
    assert!(verify(&key.verifying, &circuit.witness[1..3], &proof).expect("an answer"));
    let other = [circuit.witness[1], circuit.witness[1]];
    assert!(!verify(&key.verifying, &other, &proof).expect("an answer"));
    assert!(verify(&key.verifying, &circuit.witness[1..4], &proof).is_err());
}
