//! The drop-ins against the unmodified crates, in one process, with the same circuits over all four and the
//! same generators: parameters, keys and proofs are equal byte for byte, with a session and without.
//!
//! A proof of the unmodified crate depends on the caller's generator and on the number of threads of the pool
//! in which the prover is called; only where a lookup leaves several distinct values of its table, also on
//! the order of a hash map. There, proofs are compared with the reproducible switch.
//!
//! Features of the drop-in and of the unmodified crate have to be the same:
//! `--features truncated-challenges,stock-midnight-proofs/truncated-challenges`.

// The circuits and the prover are compiled four times, over each crate: that is the point.
#![allow(clippy::duplicate_mod, clippy::unwrap_used)]

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ff::Field as _;
use midnight_proofs::spillproof::{active, ByteSize, CheckpointKey, Checkpoints, Session, SessionBuilder};
use proptest::prelude::*;

mod drop_in_07;
mod drop_in_08;
mod saved;
mod shape;
mod stock_07;
mod stock_08;

use shape::{Broken, Kind, Lookups, Shape, Wrong};

/// The shape belongs to the process: tests take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` in a session of this kind, and sees to it that nothing is left.
fn in_session<T>(builder: SessionBuilder, work: impl FnOnce() -> T) -> T {
    let dir = tempfile::tempdir().unwrap();
    let session = Arc::new(builder.dir(dir.path()).build().unwrap());
    let result = {
        let _current = session.install();
        assert!(active());
        work()
    };
    assert!(!active());
    assert_eq!(session.budget().held_bytes(), 0, "{:?}", session.budget());
    drop(session);
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "something is left on disk"
    );
    result
}

fn of(memory_bytes: u64) -> SessionBuilder {
    Session::builder().memory(ByteSize::Bytes(memory_bytes))
}

/// Sessions that differ in all that must make no difference.
fn sessions() -> [SessionBuilder; 3] {
    [
        of(64 << 20),
        of(16 << 20).threads(1),
        of(24 << 20).quotient_tile_rows(7),
    ]
}

/// A statement, and how it is proved.
#[derive(Clone, Copy, Debug)]
struct Case {
    kind: Kind,
    k: u32,
    circuits: usize,
    seed: u64,
    threads: usize,
}

impl Case {
    /// One circuit, two threads.
    fn simple(kind: Kind, k: u32) -> Self {
        Self {
            kind,
            k,
            circuits: 1,
            seed: 1,
            threads: 2,
        }
    }
}

/// Whether upstream's verifier can accept a proof of upstream's prover. The prover absorbs the instances
/// circuit by circuit, the verifier all commitments of all circuits first; and the verifier takes the first
/// point that is opened for the one at which the quotient is. With truncated challenges, its debug assertions
/// refuse sums of commitments to instances.
fn is_verifiable(case: Case) -> bool {
    let shape = Shape::current();
    let is_one_kind = shape.committed == 0 || shape.committed == shape.publics.len();
    let has_sums = cfg!(feature = "truncated-challenges") && shape.committed > 0;
    shape.begins_in_its_row && !has_sums && (case.circuits == 1 || is_one_kind)
}

/// A key in all formats, and what it says of itself.
#[derive(PartialEq, Eq)]
struct KeyBytes {
    vk: [Vec<u8>; 3],
    pk: [Vec<u8>; 3],
    pinned: String,
    lengths: [usize; 6],
}

/// What one of the crates makes.
struct Made {
    /// In all formats.
    params: [Vec<u8>; 3],
    commitments: Vec<u8>,
    keys: KeyBytes,
    proof: Vec<u8>,
}

impl Made {
    fn assert_same_but_the_proof(&self, other: &Self, case: Case) {
        assert!(self.params == other.params, "parameters of {case:?}");
        assert!(self.commitments == other.commitments, "commitments of {case:?}");
        assert!(
            self.keys.pinned == other.keys.pinned,
            "verifying keys of {case:?}"
        );
        assert_eq!(self.keys.lengths, other.keys.lengths, "{case:?}");
        assert!(self.keys == other.keys, "keys of {case:?}");
    }

    fn assert_same(&self, other: &Self, case: Case) {
        self.assert_same_but_the_proof(other, case);
        assert!(self.proof == other.proof, "proofs of {case:?}");
    }
}

/// Everything of one release: what stock makes is what the drop-in makes, and each takes the other's.
macro_rules! release {
    ($name:ident, $drop_in:ident, $stock:ident) => {
        mod $name {
            use super::*;
            use crate::$drop_in as ours;
            use crate::$stock as stock;

            use ours::midnight::spillproof::{set_reproducible, set_self_verification, Unverified};

            /// Stock's; where its proof is not determined, that of the drop-in with the switch.
            pub fn is_identical(case: Case) {
                case.kind.set();
                let is_determined = case.kind.lookups != Lookups::LeaveMany;
                let expected = stock::prove::made(case);
                let made = ours::prove::made(case);
                made.assert_same_but_the_proof(&expected, case);
                assert!(stock::prove::takes(case, &made, is_determined), "{case:?}");
                assert!(
                    ours::prove::takes(case, &expected, is_determined),
                    "{case:?}"
                );
                set_reproducible(true);
                let ordered = ours::prove::made(case);
                assert!(ours::prove::takes(case, &ordered, true), "{case:?}");
                set_reproducible(false);
                if is_determined {
                    made.assert_same(&expected, case);
                    ordered.assert_same(&expected, case);
                } else {
                    assert!(stock::prove::takes(case, &ordered, false), "{case:?}");
                }
                for (which, builder) in (0..).zip(sessions()) {
                    in_session(builder, || {
                        ours::prove::made(case).assert_same(&ordered, case);
                        let takes = || ours::prove::takes(case, &ordered, true);
                        assert!(case.seed % 3 != which || takes(), "{case:?}");
                    });
                }
            }

            /// Parameters and keys in memory are used in a session; keys on disk are not used without one.
            pub fn crosses(case: Case) {
                case.kind.set();
                let expected = stock::prove::made(case).proof;
                let circuit = &ours::prove::circuits(case)[0];
                let params = ours::prove::params(case.k, case.seed);
                let pk = ours::prove::keys(&params, circuit, case.k).unwrap();
                let made = in_session(of(16 << 20), || ours::prove::prove(&params, &pk, case));
                assert!(made == expected);
                let dir = tempfile::tempdir().unwrap();
                let session = Arc::new(of(16 << 20).dir(dir.path()).build().unwrap());
                let pk = {
                    let _current = session.install();
                    ours::prove::keys(&params, circuit, case.k).unwrap()
                };
                let instances = vec![circuit.instances()];
                let circuits = ours::prove::circuits(case);
                let refused = ours::prove::prove_with(&params, &pk, &circuits, &instances, case);
                let refused = refused.unwrap_err().to_string();
                assert!(refused.contains("made in a session"), "{refused}");
                let _current = session.install();
                assert!(ours::prove::prove(&params, &pk.clone(), case) == expected);
                assert!(format!("{pk:?}").contains("StoredKey(\"disk\")"));
            }

            /// Fewer rows, parts, and points as a slice.
            pub fn parameters(k: u32) {
                let expected = stock::prove::derived(k, 5);
                assert!(ours::prove::derived(k, 5) == expected, "k = {k}");
                for builder in sessions() {
                    in_session(builder, || {
                        assert!(ours::prove::derived(k, 5) == expected, "k = {k}")
                    });
                }
            }

            /// A proof that is cut off after so many of its points and scalars goes on from its checkpoint.
            pub fn goes_on(case: Case, entries: &[usize]) {
                case.kind.set();
                let circuits = ours::prove::circuits(case);
                let instances: Vec<_> = circuits.iter().map(|circuit| circuit.instances()).collect();
                let params = ours::prove::written(&ours::prove::params(case.k, case.seed));
                let keep = |dir: &Path, case: Case, entries| {
                    let key = CheckpointKey::from_hex(&"0f".repeat(32)).unwrap();
                    in_session(of(16 << 20).checkpoints(Checkpoints::new(dir, key)), || {
                        let params = ours::prove::read(&params);
                        let pk = ours::prove::keys(&params, &circuits[0], case.k).unwrap();
                        ours::prove::prove_begun(&params, &pk, &circuits, &instances, case, entries)
                    })
                };
                for is_reproducible in [true, false] {
                    set_reproducible(is_reproducible);
                    for &entries in entries {
                        let dir = tempfile::tempdir().unwrap();
                        let (begun, made) = keep(dir.path(), case, entries);
                        assert!(made.is_err(), "not cut off after {entries}");
                        // With the switch off, all that is drawn comes from the checkpoint.
                        let seed = case.seed + u64::from(!is_reproducible);
                        let (whole, made) = keep(dir.path(), Case { seed, ..case }, usize::MAX);
                        made.unwrap();
                        assert!(whole.starts_with(&begun), "another proof after {entries}");
                        let params = ours::prove::read(&params);
                        if is_reproducible {
                            let pk = ours::prove::keys(&params, &circuits[0], case.k).unwrap();
                            assert!(
                                ours::prove::prove(&params, &pk, case) == whole,
                                "{case:?}, {entries}"
                            );
                        }
                        if is_verifiable(case) {
                            let params = stock::prove::read(&ours::prove::written(&params));
                            let circuits = stock::prove::circuits(case);
                            let pk = stock::prove::keys(&params, &circuits[0], case.k).unwrap();
                            assert!(stock::prove::accepts(
                                &params,
                                pk.get_vk(),
                                &circuits,
                                &whole
                            ));
                        }
                    }
                }
                set_reproducible(false);
            }

            /// A file of parameters, opened where it is.
            pub fn files(k: u32) {
                let params = stock::prove::params(k, 5);
                let written = stock::prove::written(&params);
                let dir = tempfile::tempdir().unwrap();
                let file = dir.path().join("bls_midnight");
                std::fs::write(&file, &written[1]).unwrap();
                let open = || ours::midnight::spillproof::open_params(&file);
                let none = open().unwrap_err().to_string();
                assert!(none.contains("needs a session"), "{none}");
                in_session(of(16 << 20), || {
                    let params = open().unwrap();
                    let check = || ours::midnight::spillproof::check_params(&params, &mut |_| ());
                    check().unwrap();
                    assert!(ours::prove::written(&params) == written);
                    let mut fewer = params.clone();
                    fewer.downsize(k - 1);
                    let mut theirs = stock::prove::params(k, 5);
                    theirs.downsize(k - 1);
                    assert!(ours::prove::written(&fewer) == stock::prove::written(&theirs));
                    ours::midnight::spillproof::check_params(&fewer, &mut |_| ()).unwrap();
                });
                // Another point of the group, in the second place of the second basis.
                let mut wrong = written[1].clone();
                let (head, point) = (4, 96);
                let second = head + point * ((1 << k) + 1);
                wrong.copy_within(head..head + point, second);
                std::fs::write(&file, &wrong).unwrap();
                in_session(of(16 << 20), || {
                    let params = open().unwrap();
                    let refused = ours::midnight::spillproof::check_params(&params, &mut |_| ());
                    let refused = refused.unwrap_err().to_string();
                    assert!(refused.contains("g_lagrange"), "{refused}");
                });
                // Compressed, and of another curve.
                for (bytes, said) in [
                    (&written[0], "only raw points"),
                    (&vec![7; 100], "cannot be 100 bytes long"),
                ] {
                    std::fs::write(&file, bytes).unwrap();
                    let refused = in_session(of(16 << 20), || open().unwrap_err().to_string());
                    assert!(
                        refused.contains(said) && refused.contains("bls_midnight"),
                        "{refused}"
                    );
                }
            }

            /// Another instance than the circuit's: stock makes a proof that does not verify, a session refuses
            /// to return it, unless it is told not to look.
            pub fn does_not_verify(case: Case) {
                case.kind.set();
                let wrong = |mut instances: Vec<Vec<ours::curves::Fq>>| {
                    instances
                        .iter_mut()
                        .flatten()
                        .for_each(|value| *value = value.double());
                    vec![instances]
                };
                let theirs = stock::prove::circuits(case);
                let params = stock::prove::params(case.k, case.seed);
                let pk = stock::prove::keys(&params, &theirs[0], case.k).unwrap();
                let instances = wrong(theirs[0].instances());
                let expected = stock::prove::prove_with(&params, &pk, &theirs, &instances, case).unwrap();
                assert!(!stock::prove::accepts(
                    &params,
                    pk.get_vk(),
                    &theirs,
                    &expected
                ));
                in_session(of(16 << 20), || {
                    let circuits = ours::prove::circuits(case);
                    let params = ours::prove::params(case.k, case.seed);
                    let pk = ours::prove::keys(&params, &circuits[0], case.k).unwrap();
                    let instances = wrong(circuits[0].instances());
                    let prove = || ours::prove::prove_with(&params, &pk, &circuits, &instances, case);
                    let refused = prove().unwrap_err();
                    assert!(Unverified::of(&refused).is_some(), "{refused}");
                    set_self_verification(false);
                    assert!(prove().unwrap() == expected);
                    set_self_verification(true);
                });
            }

            /// What stock and the drop-in say, the latter with a session and without.
            fn said(stock: String, ours: impl Fn() -> String) -> [String; 2] {
                let without = ours();
                assert_eq!(in_session(of(16 << 20), ours), without);
                [stock, without]
            }

            /// Of a proof that can't be made.
            pub fn refusals(case: Case, wrong: Wrong) -> [String; 2] {
                case.kind.set();
                let stock = stock::prove::refusal(case, wrong);
                said(stock, || ours::prove::refusal(case, wrong))
            }

            /// Of keys that can't be made.
            pub fn key_refusals(case: Case) -> [String; 2] {
                case.kind.set();
                said(stock::prove::key_refusal(case), || {
                    ours::prove::key_refusal(case)
                })
            }
        }
    };
}

release!(v07, drop_in_07, stock_07);
release!(v08, drop_in_08, stock_08);

fn is_identical(case: Case) {
    let _turn = turn();
    v08::is_identical(case);
    v07::is_identical(case);
}

/// No column at all: products of no columns, and a quotient of nothing.
#[test]
fn the_empty_circuit() {
    let kind = Kind {
        seed: 0,
        lookups: Lookups::None,
    };
    is_identical(Case {
        circuits: 2,
        ..Case::simple(kind, 4)
    });
}

/// Chunks of the random polynomial, one for each thread: as many, fewer and more than rows.
#[test]
fn threads_of_the_callers_pool() {
    for threads in [1, 2, 3, 7, 40] {
        let kind = Kind {
            seed: 12,
            lookups: Lookups::LeaveOne,
        };
        is_identical(Case {
            threads,
            ..Case::simple(kind, 5)
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn random_circuits(
        seed in 1..1u64 << 32,
        lookups in prop::sample::select(vec![Lookups::None, Lookups::LeaveOne, Lookups::LeaveMany]),
        k in 5..8u32,
        circuits in 1..3usize,
        threads in prop::sample::select(vec![1usize, 2, 3, 7]),
    ) {
        let kind = Kind { seed, lookups };
        is_identical(Case { kind, k, circuits, seed, threads });
    }
}

/// The first kind with this property.
fn kind_with(lookups: Lookups, has: impl Fn(&Shape) -> bool) -> Kind {
    let kinds = (1..1000).map(|seed| Kind { seed, lookups });
    let is_it = |kind: &Kind| {
        kind.set();
        has(&Shape::current())
    };
    kinds.into_iter().find(is_it).unwrap()
}

#[test]
fn keys_in_memory_and_on_disk() {
    let _turn = turn();
    let kind = kind_with(Lookups::LeaveOne, |shape| {
        shape.permuted_inputs > 0 && !shape.trash.is_empty()
    });
    v08::crosses(Case::simple(kind, 6));
    v07::crosses(Case::simple(kind, 6));
}

#[test]
fn parameters() {
    let _turn = turn();
    for k in [0, 1, 5, 8] {
        v08::parameters(k);
        v07::parameters(k);
    }
}

#[test]
fn files_of_parameters() {
    let _turn = turn();
    for k in [1, 6] {
        v08::files(k);
        v07::files(k);
    }
}

/// Of one circuit and of two, of several phases too.
#[test]
fn proofs_go_on() {
    let _turn = turn();
    let kind = kind_with(Lookups::LeaveMany, |shape| {
        shape.later_phases > 0
            && shape.begins_in_its_row
            && shape.permuted_inputs > 0
            && !shape.trash.is_empty()
    });
    for circuits in [1, 2] {
        let case = Case {
            circuits,
            ..Case::simple(kind, 6)
        };
        v08::goes_on(case, &[0, 3, 7, 16, 25]);
        v07::goes_on(case, &[5, 14]);
    }
}

#[test]
fn a_proof_that_does_not_verify_is_not_returned() {
    let _turn = turn();
    let kind = kind_with(Lookups::LeaveOne, |shape| {
        shape.begins_in_its_row && shape.committed == 0 && !shape.publics.is_empty()
    });
    v08::does_not_verify(Case::simple(kind, 6));
    v07::does_not_verify(Case::simple(kind, 6));
}

#[test]
fn errors_of_a_proof_are_stocks() {
    let _turn = turn();
    let kind = kind_with(Lookups::LeaveMany, |shape| shape.publics.len() > 1);
    let case = Case::simple(kind, 6);
    for (wrong, expected) in [
        (Wrong::Witness(Broken::NotInTable), "ConstraintSystemFailure"),
        (Wrong::Witness(Broken::Unassigned), "Synthesis"),
        (
            Wrong::Witness(Broken::BelowTheRows),
            "NotEnoughRowsAvailable { current_k: 6 }",
        ),
        (Wrong::NoInstances, "InvalidInstances"),
        (Wrong::NoColumns, "InvalidInstances"),
        (Wrong::TooLong, "InstanceTooLarge"),
    ] {
        for [theirs, ours] in [v08::refusals(case, wrong), v07::refusals(case, wrong)] {
            assert!(theirs.starts_with(expected), "{theirs}");
            assert_eq!(ours, theirs);
        }
    }
}

#[test]
fn errors_of_keys_are_stocks() {
    let _turn = turn();
    let kind = kind_with(Lookups::LeaveOne, |shape| shape.gates.len() > 1);
    for k in [6, 2] {
        let case = Case::simple(kind, k);
        for [theirs, ours] in [v08::key_refusals(case), v07::key_refusals(case)] {
            assert!(theirs.starts_with("NotEnoughRowsAvailable"), "{theirs}");
            assert_eq!(ours, theirs);
        }
    }
}
