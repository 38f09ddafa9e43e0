//! Keys and circuits of arkworks: the proofs of its own prover, byte for byte.

use ark_bls12_381::Bls12_381;
use ark_bn254::{Bn254, Fr};
use ark_ff::UniformRand;
use ark_groth16::Groth16;
use ark_relations::gr1cs::{ConstraintSynthesizer, ConstraintSystemRef, LinearCombination, Variable};
use ark_relations::utils::error::SynthesisError;
use ark_serialize::CanonicalSerialize;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use spillproof_engine::Error;
use spillproof_engine::error::Invalid;
use spillproof_engine::plan::Rates;
use spillproof_groth16::PairingCurve;
use spillproof_groth16::arkworks::{CircuitKey, Progress, Reduction};
use spillproof_kernels::field::KernelField;

use crate::proofs::{blinding, session};
use crate::r1cs::{Circuit, Key, Values};

const MIB: u64 = 1 << 20;

/// The circuit for arkworks; without an assignment, for keys.
#[derive(Clone, Copy)]
struct Synthesised<'a, F> {
    circuit: &'a Circuit<F>,
    is_assigned: bool,
}

impl<F: KernelField> ConstraintSynthesizer<F> for Synthesised<'_, F> {
    fn generate_constraints(self, system: ConstraintSystemRef<F>) -> Result<(), SynthesisError> {
        let Self { circuit, is_assigned } = self;
        let value = |signal: usize| {
            let assigned = is_assigned.then_some(circuit.witness[signal]);
            assigned.ok_or(SynthesisError::AssignmentMissing)
        };
        let mut variables = vec![Variable::One];
        for signal in 1..circuit.witness.len() {
            variables.push(if signal <= circuit.public {
                system.new_input_variable(|| value(signal))?
            } else {
                system.new_witness_variable(|| value(signal))?
            });
        }
        let combination = |terms: &[(F, usize)]| {
            let terms = terms.iter().map(|(value, signal)| (*value, variables[*signal]));
            let mut combination = LinearCombination(terms.collect());
            combination.compactify();
            combination
        };
        for (index, ((a, b), c)) in circuit.a.iter().zip(&circuit.b).zip(&circuit.c).enumerate() {
            // Every fourth one through a variable for its left side, which the prover inlines.
            let left = match index % 4 {
                0 => LinearCombination::from(system.new_lc(|| combination(a))?),
                _ => combination(a),
            };
            system.enforce_r1cs_constraint(|| left.clone(), || combination(b), || combination(c))?;
        }
        Ok(())
    }
}

fn unassigned<F>(circuit: &Circuit<F>) -> Synthesised<'_, F> {
    Synthesised {
        circuit,
        is_assigned: false,
    }
}

fn assigned<F>(circuit: &Circuit<F>) -> Synthesised<'_, F> {
    Synthesised {
        circuit,
        is_assigned: true,
    }
}

fn key_of<E: PairingCurve>(circuit: &Circuit<E::Scalar>, seed: u64) -> ark_groth16::ProvingKey<E> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    Groth16::<E>::generate_random_parameters_with_reduction(unassigned(circuit), &mut rng).expect("a key")
}

fn same_as_arkworks<E: PairingCurve>(seed: u64, constraints: usize, public: usize, values: Values) {
    let circuit = Circuit::<E::Scalar>::random(seed, constraints, public, values);
    let key = key_of::<E>(&circuit, seed);
    let [r, s] = blinding(seed);
    let expected =
        Groth16::<E>::create_proof_with_reduction(assigned(&circuit), &key, r, s).expect("a proof");
    for threads in [1, 2] {
        let key_in = |memory_bytes: u64| {
            let (dir, session) = session(memory_bytes, threads);
            let made = CircuitKey::new(&session, &key, unassigned(&circuit), Reduction::Libsnark);
            made.map(|key| (key, dir))
        };
        let proved = |memory_bytes: u64| {
            let (key, _dir) = key_in(memory_bytes).expect("a key on disk");
            let proof = key.prove(assigned(&circuit), [r, s]);
            let smallest = key.plan(64 * MIB, threads, &Rates::default()).expect("a plan");
            (proof, smallest.smallest_budget_bytes)
        };
        let (proof, smallest) = proved(64 * MIB);
        let label = format!("{constraints} constraints, {public} public, {threads} threads");
        assert!(proof.expect("a proof") == expected, "{label}");
        // The many values of larger random circuits take more while they are counted than in a proof; the
        // number that the refusal names is enough.
        if let Err(refused) = key_in(smallest) {
            let Error::BudgetTooSmall { needed_bytes, .. } = refused else {
                panic!("{label}: {refused}");
            };
            let (proof, _) = proved(needed_bytes);
            assert!(
                proof.expect("a proof") == expected,
                "{label}, in {needed_bytes} bytes"
            );
            let less = key_in(needed_bytes - 64 * 1024).map(drop);
            assert!(
                matches!(less, Err(Error::BudgetTooSmall { needed_bytes: again, .. }) if again == needed_bytes)
            );
            continue;
        }
        let (proof, _) = proved(smallest);
        assert!(
            proof.expect("a proof") == expected,
            "{label}, in {smallest} bytes"
        );
        let (proof, _) = proved(smallest - 64 * 1024);
        match proof {
            Err(Error::BudgetTooSmall { needed_bytes, .. }) => assert_eq!(needed_bytes, smallest, "{label}"),
            other => panic!("{label}: {other:?}"),
        }
    }
}

#[test]
fn proofs_are_arkworks_over_bn254() {
    for (seed, (constraints, public)) in [(1, 0), (3, 1), (62, 1), (250, 5), (3000, 3)]
        .into_iter()
        .enumerate()
    {
        same_as_arkworks::<Bn254>(seed as u64, constraints, public, Values::Full);
    }
    same_as_arkworks::<Bn254>(9, 700, 2, Values::Bits);
}

#[test]
fn proofs_are_arkworks_over_bls12_381() {
    for (seed, (constraints, public)) in [(30, 2), (1000, 1)].into_iter().enumerate() {
        same_as_arkworks::<Bls12_381>(seed as u64, constraints, public, Values::Full);
    }
}

/// The roots of BN254 are circom's, too.
#[test]
fn keys_with_circoms_reduction_prove() {
    let circuit = Circuit::<Fr>::random(4, 100, 3, Values::Full);
    let (key, random) = (Key::<Bn254>::new(&circuit, 4), blinding(4));
    let expected = key.prove(&circuit, random);
    let (_dir, session) = session(32 * MIB, 2);
    let on_disk =
        CircuitKey::new(&session, &key.key, unassigned(&circuit), Reduction::Circom).expect("a key");
    let proof = on_disk.prove(assigned(&circuit), random).expect("a proof");
    let text = |point: &dyn std::fmt::Debug| format!("{point:?}").into_bytes();
    assert!([text(&proof.a), text(&proof.b), text(&proof.c)] == expected);
}

#[test]
fn one_key_proves_many_times_and_other_inputs_are_refused() {
    let circuit = Circuit::<Fr>::random(5, 60, 2, Values::Full);
    let key = key_of::<Bn254>(&circuit, 5);
    let (_dir, session) = session(32 * MIB, 2);
    let on_disk = CircuitKey::new(&session, &key, unassigned(&circuit), Reduction::Libsnark).expect("a key");
    for seed in 0..3 {
        let [r, s] = blinding(seed);
        let expected = Groth16::<Bn254>::create_proof_with_reduction(assigned(&circuit), &key, r, s);
        assert!(on_disk.prove(assigned(&circuit), [r, s]).expect("a proof") == expected.expect("a proof"));
    }
    let refusal = on_disk.prove(unassigned(&circuit), blinding(0));
    assert!(
        matches!(&refusal, Err(Error::Invalid(Invalid::ProofSystem { reason, .. })) if reason.contains("assignment")),
        "{refusal:?}"
    );
    let mut wrong = Circuit::<Fr>::random(5, 60, 2, Values::Full);
    wrong.witness[20] = Fr::rand(&mut ChaCha20Rng::seed_from_u64(1));
    let refusal = on_disk.prove(assigned(&wrong), blinding(0));
    assert!(
        matches!(refusal, Err(Error::Invalid(Invalid::NotSatisfied))),
        "{refusal:?}"
    );
    let other = Circuit::<Fr>::random(6, 61, 2, Values::Full);
    let refusal = on_disk.prove(assigned(&other), blinding(0));
    assert!(
        matches!(refusal, Err(Error::Invalid(Invalid::Length { .. }))),
        "{refusal:?}"
    );
    let refusal = CircuitKey::new(&session, &key, unassigned(&other), Reduction::Libsnark).err();
    assert!(
        matches!(refusal, Some(Error::Invalid(Invalid::Length { .. }))),
        "{refusal:?}"
    );
    let refusal = CircuitKey::new(&session, &key, unassigned(&circuit), Reduction::Circom).err();
    assert!(
        matches!(refusal, Some(Error::Invalid(Invalid::Length { .. }))),
        "{refusal:?}"
    );
    drop(on_disk);
    assert_eq!(session.budget().held_bytes(), 0);
}

/// The bytes of a key, not compressed and compressed.
fn serialised<E: PairingCurve>(key: &ark_groth16::ProvingKey<E>) -> [Vec<u8>; 2] {
    let [mut large, mut small] = [Vec::new(), Vec::new()];
    key.serialize_uncompressed(&mut large).expect("bytes");
    key.serialize_compressed(&mut small).expect("bytes");
    [large, small]
}

fn keys_in_files_are_those_in_memory<E: PairingCurve>(seed: u64, constraints: usize, memory_bytes: u64) {
    let circuit = Circuit::<E::Scalar>::random(seed, constraints, 4, Values::Full);
    let key = key_of::<E>(&circuit, seed);
    let random = blinding(seed);
    let expected = {
        let (_dir, session) = session(64 * MIB, 2);
        let key = CircuitKey::new(&session, &key, unassigned(&circuit), Reduction::Libsnark).expect("a key");
        key.prove(assigned(&circuit), random).expect("a proof")
    };
    for bytes in serialised(&key) {
        let (dir, session) = session(memory_bytes, 2);
        let path = dir.path().join("key");
        std::fs::write(&path, &bytes).expect("a file");
        let mut points = 0;
        let mut progress = |now: Progress| points += u64::from(now.done == now.total) * now.total;
        let read = CircuitKey::<E>::read(
            &session,
            &path,
            unassigned(&circuit),
            Reduction::Libsnark,
            &mut progress,
        );
        let read = read.expect("a key");
        assert_eq!(
            points,
            read.key().shape().expect("a shape").signals * 4 - 1 + read.key().h.len()
        );
        assert!(read.prove(assigned(&circuit), random).expect("a proof") == expected);
    }
}

#[test]
fn keys_in_files_prove() {
    keys_in_files_are_those_in_memory::<Bn254>(1, 2000, 8 * MIB);
    keys_in_files_are_those_in_memory::<Bls12_381>(2, 300, 16 * MIB);
}

/// Cut off at 40 places, and a byte changed at 300: an error that names the file, or the same proof.
#[test]
fn damaged_keys_are_refused() {
    let circuit = Circuit::<Fr>::random(8, 40, 2, Values::Full);
    let key = key_of::<Bn254>(&circuit, 8);
    let random = blinding(8);
    let seed = rand::random();
    println!("seed {seed}");
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let (dir, session) = session(32 * MIB, 2);
    let path = dir.path().join("key");
    let made = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("a file");
        let key = CircuitKey::<Bn254>::read(
            &session,
            &path,
            unassigned(&circuit),
            Reduction::Libsnark,
            &mut |_| (),
        )?;
        key.prove(assigned(&circuit), random)
    };
    for bytes in serialised(&key) {
        let expected = made(&bytes).expect("a proof");
        for _ in 0..40 {
            let cut = rng.next_u64() as usize % bytes.len();
            let refusal = made(&bytes[..cut]);
            assert!(
                matches!(refusal, Err(Error::Format { .. })),
                "cut at {cut}: {refusal:?}"
            );
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(matches!(made(&longer), Err(Error::Format { .. })));
        let mut refused = 0;
        for _ in 0..300 {
            let (at, bit) = (rng.next_u64() as usize % bytes.len(), rng.next_u32() % 8);
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            match made(&changed) {
                Ok(proof) => assert!(proof == expected, "byte {at}, bit {bit}: another proof"),
                Err(Error::Format { file, .. }) => {
                    assert_eq!(file, path);
                    refused += 1;
                }
                // On the curve, but another point; or shorter arrays that end where the file does.
                Err(Error::Invalid(
                    Invalid::NotSatisfied | Invalid::Length { .. } | Invalid::PowerOfTwo { .. },
                )) => (),
                Err(other) => panic!("byte {at}, bit {bit}: {other:?}"),
            }
        }
        // A changed x may be another point's, and of a point at infinity only the flags are read.
        assert!(refused > 30, "{refused}");
        assert_eq!(session.budget().held_bytes(), 0);
    }
}
