//! Keys and circuits of one version of arkworks: the proofs of its own prover, byte for byte.

use super::ark_bls12_381::Bls12_381;
use super::ark_bn254::{Bn254, Fr};
use super::ark_ff::PrimeField;
use super::ark_groth16::{Groth16, Proof, ProvingKey};
use super::ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use super::ark_snark::{CircuitSpecificSetupSNARK, SNARK};
use super::ours::{self, CircomReduction, CircuitKey, Curve};
use super::relations::{ConstraintSynthesizer, ConstraintSystemRef, LinearCombination, Variable};
use super::{SynthesisError, enforce, matrices, new_lc};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use spillproof_arkworks::{Progress, Reduction};
use spillproof_engine::Error;
use spillproof_engine::error::Invalid;
use spillproof_engine::plan::Rates;
use spillproof_groth16::PairingGroups;

use crate::r1cs::{Circuit, Key, Values};
use crate::{MIB, session};

/// Scalars of our own version, in which the test's circuits are.
type Scalar<E> = <<E as Curve>::Engine as PairingGroups>::Scalar;

fn theirs<E: Curve>(value: &Scalar<E>) -> E::ScalarField {
    use ark_ff::{BigInteger as _, PrimeField as _};
    E::ScalarField::from_le_bytes_mod_order(&value.into_bigint().to_bytes_le())
}

fn blinding<F: PrimeField>(seed: u64) -> [F; 2] {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    [F::rand(&mut rng), F::rand(&mut rng)]
}

/// The circuit for arkworks; without an assignment, for keys.
struct Synthesised<'a, E: Curve> {
    circuit: &'a Circuit<Scalar<E>>,
    is_assigned: bool,
}

impl<E: Curve> ConstraintSynthesizer<E::ScalarField> for Synthesised<'_, E> {
    fn generate_constraints(self, system: ConstraintSystemRef<E::ScalarField>) -> Result<(), SynthesisError> {
        let Self { circuit, is_assigned } = self;
        let value = |signal: usize| {
            let assigned = is_assigned.then(|| theirs::<E>(&circuit.witness[signal]));
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
        let combination = |terms: &[(Scalar<E>, usize)]| {
            let terms = terms
                .iter()
                .map(|(value, signal)| (theirs::<E>(value), variables[*signal]));
            let mut combination = LinearCombination(terms.collect());
            combination.compactify();
            combination
        };
        for (index, ((a, b), c)) in circuit.a.iter().zip(&circuit.b).zip(&circuit.c).enumerate() {
            // Every fourth one through a variable for its left side, which the prover inlines.
            let left = match index % 4 {
                0 => LinearCombination::from(new_lc(&system, combination(a))?),
                _ => combination(a),
            };
            enforce(&system, [left, combination(b), combination(c)])?;
        }
        Ok(())
    }
}

fn unassigned<E: Curve>(circuit: &Circuit<Scalar<E>>) -> Synthesised<'_, E> {
    Synthesised {
        circuit,
        is_assigned: false,
    }
}

fn assigned<E: Curve>(circuit: &Circuit<Scalar<E>>) -> Synthesised<'_, E> {
    Synthesised {
        circuit,
        is_assigned: true,
    }
}

fn key_of<E: Curve>(circuit: &Circuit<Scalar<E>>, seed: u64) -> ProvingKey<E> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    Groth16::<E>::generate_random_parameters_with_reduction(unassigned::<E>(circuit), &mut rng)
        .expect("a key")
}

fn same_as_arkworks<E: Curve>(seed: u64, constraints: usize, public: usize, values: Values) {
    let circuit = Circuit::<Scalar<E>>::random(seed, constraints, public, values);
    let key = key_of::<E>(&circuit, seed);
    let [r, s] = blinding(seed);
    let expected =
        Groth16::<E>::create_proof_with_reduction(assigned::<E>(&circuit), &key, r, s).expect("a proof");
    for threads in [1, 2] {
        let key_in = |memory_bytes: u64| {
            let (dir, session) = session(memory_bytes, threads);
            let made = CircuitKey::new(&session, &key, unassigned::<E>(&circuit), Reduction::Libsnark);
            made.map(|key| (key, dir))
        };
        let proved = |memory_bytes: u64| {
            let (key, _dir) = key_in(memory_bytes).expect("a key on disk");
            let proof = key.prove(assigned::<E>(&circuit), [r, s]);
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

/// A proof as text, as the oracle of circom's keys has it.
fn text(proof: &Proof<Bn254>) -> [Vec<u8>; 3] {
    let mut bytes = Vec::new();
    proof.serialize_compressed(&mut bytes).expect("bytes");
    let proof: ::ark_groth16::Proof<::ark_bn254::Bn254> =
        ark_serialize::CanonicalDeserialize::deserialize_compressed(&bytes[..]).expect("a proof");
    let text = |point: &dyn std::fmt::Debug| format!("{point:?}").into_bytes();
    [text(&proof.a), text(&proof.b), text(&proof.c)]
}

/// The roots of BN254 are circom's, too.
#[test]
fn keys_with_circoms_reduction_prove() {
    let circuit = Circuit::<Scalar<Bn254>>::random(4, 100, 3, Values::Full);
    let made = Key::<::ark_bn254::Bn254>::new(&circuit, 4);
    let of_oracle: [Scalar<Bn254>; 2] = {
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        [(); 2].map(|()| ::ark_ff::UniformRand::rand(&mut rng))
    };
    let expected = made.prove(&circuit, of_oracle);
    let random = of_oracle.each_ref().map(theirs::<Bn254>);
    let mut bytes = Vec::new();
    ark_serialize::CanonicalSerialize::serialize_uncompressed(&made.key, &mut bytes).expect("bytes");
    let key = ProvingKey::<Bn254>::deserialize_uncompressed(&bytes[..]).expect("a key");
    let (_dir, session) = session(32 * MIB, 2);
    let on_disk =
        CircuitKey::new(&session, &key, unassigned::<Bn254>(&circuit), Reduction::Circom).expect("a key");
    let proof = on_disk
        .prove(assigned::<Bn254>(&circuit), random)
        .expect("a proof");
    assert!(text(&proof) == expected);
    // As a program over ark-circom proves, with matrices of its own.
    let _current = session.install();
    let side = |matrix: &[Vec<(Scalar<Bn254>, usize)>]| -> Vec<Vec<(Fr, usize)>> {
        let row = |row: &Vec<(Scalar<Bn254>, usize)>| {
            row.iter()
                .map(|(value, at)| (theirs::<Bn254>(value), *at))
                .collect()
        };
        matrix.iter().map(row).collect()
    };
    let public = circuit.public + 1;
    let matrices = matrices([side(&circuit.a), side(&circuit.b)], public);
    let values: Vec<Fr> = circuit.witness.iter().map(theirs::<Bn254>).collect();
    let prove = |values: &[Fr]| {
        ours::Groth16::<Bn254, CircomReduction>::create_proof_with_reduction_and_matrices(
            &key,
            random[0],
            random[1],
            &matrices,
            public,
            circuit.a.len(),
            values,
        )
    };
    assert!(text(&prove(&values).expect("a proof")) == expected);
    let refusal = prove(&values[1..]);
    assert!(
        matches!(refusal, Err(Error::Invalid(Invalid::Length { .. }))),
        "{refusal:?}"
    );
}

/// `a * b = c`, six times, with c as the public value: a program over arkworks, of which one `use` has changed.
#[derive(Clone, Copy)]
struct Product<F> {
    factors: Option<[F; 2]>,
}

impl<F: PrimeField> ConstraintSynthesizer<F> for Product<F> {
    fn generate_constraints(self, system: ConstraintSystemRef<F>) -> Result<(), SynthesisError> {
        let factors = || self.factors.ok_or(SynthesisError::AssignmentMissing);
        let a = system.new_witness_variable(|| Ok(factors()?[0]))?;
        let b = system.new_witness_variable(|| Ok(factors()?[1]))?;
        let c = system.new_input_variable(|| Ok(factors()?[0] * factors()?[1]))?;
        for _ in 0..6 {
            enforce(&system, [a, b, c].map(LinearCombination::from))?;
        }
        Ok(())
    }
}

fn a_program_changes_one_use<E: Curve>() {
    let rng = || ChaCha20Rng::seed_from_u64(17);
    let unknown = Product::<E::ScalarField> { factors: None };
    let (key, vk) = Groth16::<E>::setup(unknown, &mut rng()).expect("keys");
    let (same_key, _) = ours::Groth16::<E>::setup(unknown, &mut rng()).expect("keys");
    assert!(key == same_key);
    let factors: [E::ScalarField; 2] = blinding(3);
    let circuit = Product {
        factors: Some(factors),
    };
    let expected = <Groth16<E> as SNARK<_>>::prove(&key, circuit, &mut rng()).expect("a proof");
    let (_dir, session) = session(32 * MIB, 2);
    {
        let _current = session.install();
        let proof = <ours::Groth16<E> as SNARK<_>>::prove(&key, circuit, &mut rng()).expect("a proof");
        assert!(proof == expected);
        let public = [factors[0] * factors[1]];
        assert!(ours::Groth16::<E>::verify(&vk, &public, &proof).expect("an answer"));
        assert!(!ours::Groth16::<E>::verify(&vk, &factors[..1], &proof).expect("an answer"));
        let refusal = <ours::Groth16<E> as SNARK<_>>::prove(&key, unknown, &mut rng());
        assert!(
            matches!(&refusal, Err(Error::Invalid(Invalid::ProofSystem { .. }))),
            "{refusal:?}"
        );
    }
    assert_eq!(session.budget().held_bytes(), 0);
}

#[test]
fn programs_change_one_use() {
    a_program_changes_one_use::<Bn254>();
    a_program_changes_one_use::<Bls12_381>();
}

#[test]
fn one_key_proves_many_times_and_other_inputs_are_refused() {
    let circuit = Circuit::<Scalar<Bn254>>::random(5, 60, 2, Values::Full);
    let key = key_of::<Bn254>(&circuit, 5);
    let (_dir, session) = session(32 * MIB, 2);
    let on_disk =
        CircuitKey::new(&session, &key, unassigned::<Bn254>(&circuit), Reduction::Libsnark).expect("a key");
    for seed in 0..3 {
        let [r, s] = blinding(seed);
        let expected = Groth16::<Bn254>::create_proof_with_reduction(assigned::<Bn254>(&circuit), &key, r, s);
        assert!(
            on_disk
                .prove(assigned::<Bn254>(&circuit), [r, s])
                .expect("a proof")
                == expected.expect("a proof")
        );
    }
    let refusal = on_disk.prove(unassigned::<Bn254>(&circuit), blinding(0));
    assert!(
        matches!(&refusal, Err(Error::Invalid(Invalid::ProofSystem { reason, .. })) if reason.contains("assignment")),
        "{refusal:?}"
    );
    let mut wrong = Circuit::<Scalar<Bn254>>::random(5, 60, 2, Values::Full);
    wrong.witness[20] = ::ark_ff::UniformRand::rand(&mut ChaCha20Rng::seed_from_u64(1));
    let refusal = on_disk.prove(assigned::<Bn254>(&wrong), blinding(0));
    assert!(
        matches!(refusal, Err(Error::Invalid(Invalid::NotSatisfied))),
        "{refusal:?}"
    );
    let other = Circuit::<Scalar<Bn254>>::random(6, 61, 2, Values::Full);
    let refusal = on_disk.prove(assigned::<Bn254>(&other), blinding(0));
    assert!(
        matches!(refusal, Err(Error::Invalid(Invalid::Length { .. }))),
        "{refusal:?}"
    );
    let refusal = CircuitKey::new(&session, &key, unassigned::<Bn254>(&other), Reduction::Libsnark).err();
    assert!(
        matches!(refusal, Some(Error::Invalid(Invalid::Length { .. }))),
        "{refusal:?}"
    );
    let refusal = CircuitKey::new(&session, &key, unassigned::<Bn254>(&circuit), Reduction::Circom).err();
    assert!(
        matches!(refusal, Some(Error::Invalid(Invalid::Length { .. }))),
        "{refusal:?}"
    );
    drop(on_disk);
    assert_eq!(session.budget().held_bytes(), 0);
}

/// The bytes of a key, not compressed and compressed.
fn serialised<E: Curve>(key: &ProvingKey<E>) -> [Vec<u8>; 2] {
    let [mut large, mut small] = [Vec::new(), Vec::new()];
    key.serialize_uncompressed(&mut large).expect("bytes");
    key.serialize_compressed(&mut small).expect("bytes");
    [large, small]
}

fn keys_in_files_are_those_in_memory<E: Curve>(seed: u64, constraints: usize, memory_bytes: u64) {
    let circuit = Circuit::<Scalar<E>>::random(seed, constraints, 4, Values::Full);
    let key = key_of::<E>(&circuit, seed);
    let random = blinding(seed);
    let expected = {
        let (_dir, session) = session(64 * MIB, 2);
        let key =
            CircuitKey::new(&session, &key, unassigned::<E>(&circuit), Reduction::Libsnark).expect("a key");
        key.prove(assigned::<E>(&circuit), random).expect("a proof")
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
            unassigned::<E>(&circuit),
            Reduction::Libsnark,
            &mut progress,
        );
        let read = read.expect("a key");
        assert_eq!(
            points,
            read.key().shape().expect("a shape").signals * 4 - 1 + read.key().h.len()
        );
        assert!(read.prove(assigned::<E>(&circuit), random).expect("a proof") == expected);
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
    let circuit = Circuit::<Scalar<Bn254>>::random(8, 40, 2, Values::Full);
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
            unassigned::<Bn254>(&circuit),
            Reduction::Libsnark,
            &mut |_| (),
        )?;
        key.prove(assigned::<Bn254>(&circuit), random)
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
