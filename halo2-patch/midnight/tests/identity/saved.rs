//! Keys and witnesses in files: the proof from them is stock's, byte for byte, and a key is rebuilt from its
//! description over both crates.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::shape::{Broken, Kind, Lookups};
use crate::{in_session, kind_with, of, turn, Case};

/// Functions of one release.
macro_rules! saved {
    ($drop_in:ident, $stock:ident) => {
        use crate::$drop_in as ours;
        use crate::$stock as stock;
        use ours::from_files as files;
        use ours::midnight::spillproof::{KeyFile, SavedError, SavedWitness, Unverified};

        /// From files, and from a witness that is sent, stock's proof.
        pub fn is_identical(case: Case) {
            case.kind.set();
            let expected = stock::prove::made(case);
            let dir = tempfile::tempdir().unwrap();
            let [key, in_memory, witness] = ["key", "memory", "witness"].map(|name| dir.path().join(name));
            let circuit = &ours::prove::circuits(case)[0];
            let params = ours::prove::params(case.k, case.seed);
            let of_memory = ours::prove::keys(&params, circuit, case.k).unwrap();
            assert!(
                files::save_key(&of_memory, circuit, &key).is_err(),
                "there is no session"
            );
            in_session(of(16 << 20), || {
                let pk = ours::prove::keys(&params, circuit, case.k).unwrap();
                let without = ours::midnight::plonk::Circuit::without_witnesses(circuit);
                files::save_key(&pk, &without, &key).unwrap();
                files::save_key(&of_memory, circuit, &in_memory).unwrap();
                files::save(&pk, circuit, &circuit.instances(), &witness).unwrap();
            });
            for builder in [of(16 << 20), of(24 << 20).threads(1)] {
                in_session(builder, || {
                    let params = ours::prove::params(case.k, case.seed);
                    for file in [&key, &in_memory] {
                        let pk = files::open_key(file).unwrap();
                        assert!(
                            ours::prove::key_bytes(&pk) == expected.keys,
                            "{case:?}: the key differs"
                        );
                        let proof = files::prove_file(&params, &pk, &witness, case).unwrap();
                        assert!(proof == expected.proof, "{case:?}: the proof differs");
                        assert!(ours::prove::prove(&params, &pk, case) == proof, "{case:?}");
                        let sent = files::sent(&pk, &fs::read(&witness).unwrap()).unwrap();
                        let proof = files::prove(&params, &pk, &sent, case).unwrap();
                        assert!(
                            proof == expected.proof,
                            "{case:?}: the proof of what was sent differs"
                        );
                    }
                    assert_eq!(KeyFile::open(&key).unwrap().k().unwrap(), case.k);
                    let opened = SavedWitness::open(&witness).unwrap();
                    let instances: Vec<_> = opened.instances().iter().map(|of| of.to_vec()).collect();
                    assert_eq!(instances, circuit.instances());
                    assert_eq!(opened.k(), case.k);
                });
            }
        }

        /// What is no witness of the key, or is damaged.
        pub fn refuses(case: Case, other: Kind) {
            case.kind.set();
            let dir = tempfile::tempdir().unwrap();
            let at = |name: &str| dir.path().join(name);
            let [key, witness, refused, changed] = ["key", "witness", "refused", "changed"].map(at);
            let circuit = &ours::prove::circuits(case)[0];
            in_session(of(16 << 20), || {
                let params = ours::prove::params(case.k, case.seed);
                let pk = ours::prove::keys(&params, circuit, case.k).unwrap();
                files::save_key(&pk, circuit, &key).unwrap();
                files::save(&pk, circuit, &circuit.instances(), &witness).unwrap();
                let mode = fs::metadata(&witness).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600);

                // What cannot be saved, and leaves no file.
                let said = |broken, instances: &[_]| {
                    let mut circuit = circuit.clone();
                    circuit.broken = broken;
                    let error = files::save(&pk, &circuit, instances, &refused).unwrap_err();
                    assert!(!refused.exists());
                    files::saved(&error).to_string()
                };
                let unknown = said(Broken::Unassigned, &circuit.instances());
                assert!(unknown.contains("has no value in row"), "{unknown}");
                let late = said(Broken::BelowTheRows, &circuit.instances());
                assert!(late.contains("belongs to the prover"), "{late}");
                let none = said(Broken::Nothing, &[]);
                assert!(none.contains("0 instance columns"), "{none}");

                // A witness that does not satisfy the circuit.
                let mut wrong = circuit.instances();
                let value = &mut wrong[0][0];
                *value = *value + *value + ours::curves::Fq::from(1);
                files::save(&pk, circuit, &wrong, &at("wrong")).unwrap();
                let unsatisfied = files::prove_file(&params, &pk, &at("wrong"), case).unwrap_err();
                assert!(Unverified::of(&unsatisfied).is_some(), "{unsatisfied}");

                // Files that are none, or are damaged.
                let engines = |error: std::io::Error| {
                    error
                        .downcast::<spillproof_engine::Error>()
                        .unwrap()
                        .to_string()
                };
                let kind = engines(SavedWitness::open(&key).unwrap_err());
                assert!(
                    kind.contains("a Witness over Bls12381 is expected"),
                    "{kind}"
                );
                assert!(engines(KeyFile::open(&witness).unwrap_err())
                    .contains("a ProvingKeyBundle over Bls12381"));
                for file in [&witness, &key] {
                    let bytes = fs::read(file).unwrap();
                    let open = || match file == &key {
                        true => files::open_key(&changed).map(|_| ()),
                        false => SavedWitness::open(&changed).map(|_| ()),
                    };
                    for len in [0, 100, 4096, bytes.len() - 1] {
                        fs::write(&changed, &bytes[..len]).unwrap();
                        let error = open().unwrap_err().to_string();
                        assert!(error.contains("changed"), "{error}");
                    }
                    // The header, the first section, the last column, the digests.
                    for at in [
                        100,
                        4096 + 40,
                        bytes.len() - 4096 - (16 << 10) + 9,
                        bytes.len() - 4096 + 5,
                    ] {
                        let mut bytes = bytes.clone();
                        bytes[at] ^= 1;
                        fs::write(&changed, bytes).unwrap();
                        let error = match file == &key {
                            true => files::open_key(&changed)
                                .and_then(|pk| {
                                    let proof = files::prove_file(&params, &pk, &witness, case);
                                    proof.map_err(files::of_proof)
                                })
                                .unwrap_err(),
                            false => {
                                files::of_proof(files::prove_file(&params, &pk, &changed, case).unwrap_err())
                            }
                        };
                        assert!(error.to_string().contains("changed"), "{at}: {error}");
                        if file == &witness {
                            let bytes = fs::read(&changed).unwrap();
                            assert!(files::sent(&pk, &bytes).is_err(), "{at}");
                        }
                    }
                }

                // Keys and witnesses of another circuit.
                other.set();
                let error = files::save_key(&pk, circuit, &refused).unwrap_err();
                assert!(
                    matches!(files::saved(&error), SavedError::NotOfThisCircuit),
                    "{error}"
                );
                assert!(!refused.exists());
                let error = files::open_key(&key).unwrap_err().to_string();
                assert!(error.contains("belongs to another circuit"), "{error}");
                let others = &ours::prove::circuits(case)[0];
                let pk = ours::prove::keys(&params, others, case.k).unwrap();
                let error = files::of_proof(files::prove_file(&params, &pk, &witness, case).unwrap_err());
                assert!(
                    matches!(files::saved(&error), SavedError::AnotherKey { .. }),
                    "{error}"
                );
                case.kind.set();
            });
        }

        /// Of a circuit with challenges.
        pub fn refuses_challenges(case: Case) {
            case.kind.set();
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("file");
            in_session(of(16 << 20), || {
                let circuit = &ours::prove::circuits(case)[0];
                let params = ours::prove::params(case.k, case.seed);
                let pk = ours::prove::keys(&params, circuit, case.k).unwrap();
                let key = files::save_key(&pk, circuit, &path).unwrap_err();
                let witness = files::save(&pk, circuit, &circuit.instances(), &path).unwrap_err();
                for error in [key, witness] {
                    let refused = matches!(files::saved(&error), SavedError::Challenges { .. });
                    assert!(
                        refused && error.to_string().contains("create_proof"),
                        "{error}"
                    );
                }
                assert!(!path.exists());
            });
        }
    };
}

mod of_08 {
    use super::*;

    saved!(drop_in_08, stock_08);

    /// Those of instance columns.
    fn commitments_are_upstreams(params: &ours::prove::Params, witness: &std::path::Path, case: Case) {
        use ours::midnight::poly::commitment::PolynomialCommitmentScheme as _;
        let witness = SavedWitness::open(witness).unwrap();
        let columns = witness.instances();
        let found = ours::midnight::spillproof::commit_instances(params, &columns).unwrap();
        let commit = |values: &&[ours::curves::Fq]| {
            let domain = ours::midnight::poly::EvaluationDomain::<ours::curves::Fq>::new(3, case.k);
            let mut padded = domain.empty_lagrange();
            let pairs = padded.iter_mut().zip(values.iter());
            pairs.for_each(|(to, value)| *to = *value);
            ours::prove::Scheme::commit_lagrange(params, &padded)
        };
        assert!(found.iter().copied().eq(columns.iter().map(commit)), "{case:?}");
    }

    /// The key from its description, over the drop-in and over stock, which verifies.
    pub fn is_rebuilt(case: Case) {
        case.kind.set();
        let dir = tempfile::tempdir().unwrap();
        let [key, witness] = ["key", "witness"].map(|name| dir.path().join(name));
        let circuit = &ours::prove::circuits(case)[0];
        let (vk, params, proof) = in_session(of(16 << 20), || {
            let params = ours::prove::params(case.k, case.seed);
            let pk = ours::prove::keys(&params, circuit, case.k).unwrap();
            files::save_key(&pk, circuit, &key).unwrap();
            files::save(&pk, circuit, &circuit.instances(), &witness).unwrap();
            let vk = pk.get_vk().to_bytes(ours::prove::FORMATS[1]);
            (
                vk,
                ours::prove::written(&params),
                ours::prove::prove(&params, &pk, case),
            )
        });
        in_session(of(16 << 20), || {
            let file = KeyFile::open(&key).unwrap();
            let description = file.description().unwrap();
            let is_taken = ours::described::check(&description, case.k);
            let rebuilt = file
                .proving_key(ours::described::constraint_system(&description))
                .unwrap();
            assert_eq!(
                ours::described::hash_of(rebuilt.get_vk()),
                description.key,
                "{case:?}"
            );
            let made = files::prove_file(&ours::prove::read(&params), &rebuilt, &witness, case).unwrap();
            assert!(made == proof, "{case:?}: the proof differs");
            let bytes = file.verifying_key_bytes().unwrap();
            assert!(bytes == vk, "{case:?}");
            commitments_are_upstreams(&ours::prove::read(&params), &witness, case);
            for len in [0, 5, bytes.len() - 1] {
                assert!(stock::described::read_verifying_key(&bytes[..len], &description).is_err());
            }
            let Ok(midnight) = is_taken else {
                let begins = crate::shape::Shape::current().begins_in_its_row;
                assert!(!begins || cfg!(feature = "truncated-challenges"), "{is_taken:?}");
                return;
            };
            assert_eq!(
                midnight.committed_instances,
                crate::shape::Shape::current().committed
            );
            let of_stock = stock::described::read_verifying_key(&bytes, &description).unwrap();
            assert_eq!(stock::described::hash_of(&of_stock), description.key, "{case:?}");
            if crate::is_verifiable(case) {
                let circuits = stock::prove::circuits(case);
                let params = stock::prove::read(&params);
                assert!(
                    stock::prove::accepts(&params, &of_stock, &circuits, &proof),
                    "{case:?}"
                );
            }
        });
    }
}

mod of_07 {
    use super::*;

    saved!(drop_in_07, stock_07);

    /// The other release does not make the proofs of a key.
    pub fn is_refused_by_08(case: Case) {
        case.kind.set();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        in_session(of(16 << 20), || {
            let circuit = &ours::prove::circuits(case)[0];
            let params = ours::prove::params(case.k, case.seed);
            let pk = ours::prove::keys(&params, circuit, case.k).unwrap();
            files::save_key(&pk, circuit, &path).unwrap();
            let description = KeyFile::open(&path).unwrap().description().unwrap();
            let refused = crate::drop_in_08::described::check(&description, case.k).unwrap_err();
            assert!(refused.contains("midnight-proofs 0.7"), "{refused}");
        });
    }
}

#[test]
fn proofs_from_files_are_stocks() {
    let _turn = turn();
    let mut kinds: Vec<_> = (1..8).map(|seed| kind(seed, Lookups::LeaveOne)).collect();
    kinds.retain(has_one_phase);
    kinds.push(kind_with(Lookups::LeaveOne, |shape| {
        shape.later_phases == 0
            && shape.committed > 0
            && shape.trash.len() > 1
            && shape.inputs.contains(&false)
    }));
    for (index, kind) in kinds.into_iter().enumerate() {
        let case = Case {
            threads: 1 + index % 3,
            ..Case::simple(kind, 6)
        };
        of_08::is_identical(case);
        of_07::is_identical(case);
    }
}

#[test]
fn keys_are_rebuilt_from_their_descriptions() {
    let _turn = turn();
    for seed in 1..24 {
        let kind = kind(seed, Lookups::LeaveOne);
        if has_one_phase(&kind) {
            of_08::is_rebuilt(Case::simple(kind, 6));
        }
    }
}

#[test]
fn what_is_no_witness_of_the_key_is_refused() {
    let _turn = turn();
    let verifiable = |shape: &crate::shape::Shape| {
        shape.later_phases == 0
            && shape.begins_in_its_row
            && shape.committed == 0
            && !shape.publics.is_empty()
    };
    let kind = kind_with(Lookups::LeaveOne, verifiable);
    let other = kind_with(Lookups::LeaveOne, |shape| {
        verifiable(shape) && shape.trash.len() == 2
    });
    of_08::refuses(Case::simple(kind, 6), other);
    of_07::refuses(Case::simple(kind, 6), other);
    of_07::is_refused_by_08(Case::simple(kind, 6));
}

#[test]
fn circuits_with_challenges_are_refused() {
    let _turn = turn();
    let kind = kind_with(Lookups::LeaveOne, |shape| shape.later_phases > 0);
    of_08::refuses_challenges(Case::simple(kind, 6));
    of_07::refuses_challenges(Case::simple(kind, 6));
}

fn kind(seed: u64, lookups: Lookups) -> Kind {
    Kind { seed, lookups }
}

fn has_one_phase(kind: &Kind) -> bool {
    kind.set();
    crate::shape::Shape::current().later_phases == 0
}
