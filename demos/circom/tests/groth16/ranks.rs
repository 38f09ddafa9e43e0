//! One proof over several ranks: the same as another library's, whatever the shares are, and a typed error on
//! every rank, or the right proof, whatever becomes of a message.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::checkpoint::{CheckpointKey, Checkpoints};
use spillproof_engine::column::Placement;
use spillproof_engine::plan::Rates;
use spillproof_engine::{Error, Result, Session};
use spillproof_groth16::{Cut, Kept, PairingCurve, Place, Proof, Shares, plan_over_ranks, prove_over_ranks};
use spillproof_ranks::faults::{Fault, FaultPlan, Faulty};
use spillproof_ranks::{PhaseTraffic, Ranks, Settings, Transport, one_process};
use spillproof_testing::session;

use crate::common::column_in;
use crate::proofs::{blinding, key_on_disk};
use crate::r1cs::{Circuit, Key, Values, text};

pub const MIB: u64 = 1 << 20;
pub const CUTS: [Cut; 4] = Cut::ALL;

/// A circuit with its key, and the other library's proof.
pub struct Statement<E: PairingCurve> {
    pub circuit: Circuit<E::Scalar>,
    pub key: Key<E>,
    pub random: [E::Scalar; 2],
    expected: [Vec<u8>; 3],
}

impl<E: PairingCurve> Statement<E> {
    pub fn new(seed: u64, constraints: usize) -> Self {
        let circuit = Circuit::<E::Scalar>::random(seed, constraints, 2, Values::Full);
        let key = Key::<E>::new(&circuit, seed);
        let random = blinding(seed);
        let expected = key.prove(&circuit, random);
        Self {
            circuit,
            key,
            random,
            expected,
        }
    }

    /// One rank's part.
    fn prove(&self, ranks: &Ranks, weights: &[u64], cut: Cut, memory_bytes: u64) -> Result<Proof<E>> {
        let (_dir, session) = session(memory_bytes, 1);
        let (proof, kept) = self.prove_in(&session, ranks, (weights, cut), self.random_of(ranks))?;
        kept.finish()?;
        Ok(proof)
    }

    pub fn prove_in(
        &self,
        session: &Arc<Session>,
        ranks: &Ranks,
        (weights, cut): (&[u64], Cut),
        random: [E::Scalar; 2],
    ) -> Result<(Proof<E>, Kept)> {
        let key = key_on_disk(session.workspace(), &self.circuit, &self.key);
        let witness = column_in(session.workspace(), &self.circuit.witness, Placement::Disk);
        let shares = Shares::new(&key.shape()?, weights, cut)?;
        let place = Place {
            ranks,
            shares: &shares,
        };
        prove_over_ranks(session, &place, &key, &witness, random)
    }

    /// Those of rank 0 are taken.
    pub fn random_of(&self, ranks: &Ranks) -> [E::Scalar; 2] {
        match ranks.rank() {
            0 => self.random,
            _ => blinding(99),
        }
    }

    pub fn check(&self, proof: Result<Proof<E>>) {
        assert!(text(&proof.expect("a proof")) == self.expected);
    }
}

pub fn settings(timeout: Duration) -> Settings {
    Settings {
        timeout,
        piece_bytes: 64 << 10,
        ..Settings::default()
    }
}

/// What each rank of a proof returns.
fn on_ranks<E: PairingCurve>(
    statement: &Statement<E>,
    transports: Vec<Arc<dyn Transport>>,
    (weights, cut): (&[u64], Cut),
    (memory_bytes, timeout): (u64, Duration),
) -> Vec<Result<Proof<E>>> {
    each_rank(transports, timeout, |ranks| {
        statement.prove(ranks, weights, cut, memory_bytes)
    })
}

/// What `work` returns on each rank, of a thread of its own.
pub fn each_rank<T: Send>(
    transports: Vec<Arc<dyn Transport>>,
    timeout: Duration,
    work: impl Fn(&Ranks) -> Result<T> + Sync,
) -> Vec<Result<T>> {
    each_transport(transports, |transport| {
        work(&Ranks::new(transport, settings(timeout))?)
    })
}

/// What `part` returns for each rank's transport, on a thread of its own.
pub fn each_transport<T: Send>(
    transports: Vec<Arc<dyn Transport>>,
    part: impl Fn(Arc<dyn Transport>) -> T + Sync,
) -> Vec<T> {
    let part = &part;
    std::thread::scope(|scope| {
        let parts: Vec<_> = transports
            .into_iter()
            .map(|transport| scope.spawn(move || part(transport)))
            .collect();
        parts
            .into_iter()
            .map(|part| part.join().expect("no panic"))
            .collect()
    })
}

pub fn transports(size: usize) -> Vec<Arc<dyn Transport>> {
    let ranks = one_process(size).into_iter();
    ranks.map(|rank| Arc::new(rank) as Arc<dyn Transport>).collect()
}

fn same_for_all_shares<E: PairingCurve>(seed: u64) {
    for constraints in [10, 200, 3000, 10_000] {
        let statement = Statement::<E>::new(seed, constraints);
        for weights in [&[1][..], &[1, 1], &[2, 1, 1], &[1; 4], &[4, 1, 1, 0, 1, 1, 3, 1]] {
            for cut in CUTS {
                let within = (32 * MIB, Duration::from_secs(120));
                for proof in on_ranks(&statement, transports(weights.len()), (weights, cut), within) {
                    statement.check(proof);
                }
            }
        }
    }
}

#[test]
fn proofs_over_ranks_are_another_library_s_on_bn254() {
    same_for_all_shares::<Bn254>(1);
}

#[test]
fn proofs_over_ranks_are_another_library_s_on_bls12_381() {
    same_for_all_shares::<Bls12_381>(2);
}

/// In the smallest budget that the plan of each rank names, and with exactly the bytes that it counts.
#[test]
fn a_rank_s_plan_holds() {
    let statement = Statement::<Bn254>::new(3, 12_000);
    for cut in CUTS {
        plan_holds(&statement, &[1, 2, 1], cut);
    }
}

fn plan_holds(statement: &Statement<Bn254>, weights: &[u64], cut: Cut) {
    std::thread::scope(|scope| {
        for transport in transports(weights.len()) {
            scope.spawn(move || {
                let ranks = Ranks::new(transport, settings(Duration::from_secs(120))).expect("ranks");
                let (_dir, session) = session(64 * MIB, 1);
                let key = key_on_disk(session.workspace(), &statement.circuit, &statement.key);
                let shape = key.shape().expect("a shape");
                let shares = Shares::new(&shape, weights, cut).expect("shares");
                let dry = ranks.rehearsal();
                let place = Place {
                    ranks: &dry,
                    shares: &shares,
                };
                let planned = |budget_bytes| {
                    plan_over_ranks::<Bn254>(&shape, &place, budget_bytes, 1, &Rates::default())
                        .expect("a plan")
                };
                let smallest_bytes = planned(64 * MIB).smallest_budget_bytes;
                statement.check(statement.prove(&ranks, weights, cut, smallest_bytes));
                let rank = ranks.rank();
                let exchanged = |bytes: fn(&PhaseTraffic) -> u64| -> u64 {
                    let traffic = ranks.traffic();
                    let exchanges = traffic.iter().filter(|phase| phase.name.ends_with("exchange"));
                    exchanges.map(bytes).sum()
                };
                let planned = |of: &dyn Fn(&[Vec<u64>], usize) -> u64| -> u64 {
                    let others = (0..weights.len()).filter(|other| *other != rank);
                    let both = |other| {
                        shares
                            .exchanges()
                            .iter()
                            .map(|bytes| of(bytes, other))
                            .sum::<u64>()
                    };
                    others.map(both).sum()
                };
                let sent = exchanged(|phase| phase.sent_bytes);
                assert_eq!(
                    sent,
                    planned(&|bytes, other| bytes[rank][other]),
                    "rank {rank}, {cut:?}"
                );
                let received = exchanged(|phase| phase.received_bytes);
                assert_eq!(
                    received,
                    planned(&|bytes, other| bytes[other][rank]),
                    "rank {rank}, {cut:?}"
                );
                // docs/ranks.md: 6 * 32 bytes for each element that goes to another rank, n = 2^14.
                if cut == Cut::Layout {
                    let share = (1u64 << 14) * weights[rank] / 4;
                    assert_eq!(sent, 6 * 32 * (share - share * weights[rank] / 4), "rank {rank}");
                }
            });
        }
    });
}

/// Each message of a small proof is lost, late, doubled, cut or flipped.
#[test]
fn a_message_that_is_not_right_is_an_error_on_every_rank() {
    let statement = Statement::<Bn254>::new(4, 300);
    let weights = [1, 1, 1];
    let within = |seconds| (32 * MIB, Duration::from_secs(seconds));
    let count = |rank: usize| {
        let mut counted = transports(3);
        let plan = FaultPlan::none();
        counted[rank] = Arc::new(Faulty::new(Arc::clone(&counted[rank]), plan.clone()));
        for proof in on_ranks(&statement, counted, (&weights, Cut::Layout), within(60)) {
            statement.check(proof);
        }
        plan.messages()
    };
    for rank in 0..weights.len() {
        for message in 0..count(rank) {
            for fault in [
                Fault::Lost,
                Fault::Doubled,
                Fault::Swapped,
                Fault::Cut(100),
                Fault::Flipped(1234),
            ] {
                let mut parts = transports(3);
                let inner = Arc::clone(&parts[rank]);
                parts[rank] = Arc::new(Faulty::new(inner, FaultPlan::at(message, fault)));
                let outcomes = on_ranks(&statement, parts, (&weights, Cut::Layout), within(2));
                let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
                for outcome in outcomes {
                    match outcome {
                        Ok(proof) => assert!(text(&proof) == statement.expected),
                        Err(Error::Ranks(_)) => {}
                        Err(other) => panic!("rank {rank}, message {message}, {fault:?}: {other}"),
                    }
                }
                // The last message may be doubled: nobody reads the second one. Swapped, it has no other to change places with.
                let goes_unnoticed = matches!(fault, Fault::Doubled | Fault::Swapped);
                assert!(
                    failed > 0 || goes_unnoticed,
                    "rank {rank}, message {message}, {fault:?}"
                );
            }
        }
    }
}

/// One rank's part of a job that keeps what it has done: its proof, and what it sent.
type Part = (Result<Proof<Bn254>>, Vec<PhaseTraffic>);

/// A job whose ranks keep what they have done below `dir`, each in a folder of its own.
fn kept_on_ranks(
    statement: &Statement<Bn254>,
    transports: Vec<Arc<dyn Transport>>,
    (weights, cut): (&[u64], Cut),
    (dir, random): (&Path, [ark_bn254::Fr; 2]),
) -> Vec<Part> {
    let part = |transport: Arc<dyn Transport>| -> Part {
        let kept = dir.join(format!("kept-{}", transport.rank()));
        let key = CheckpointKey::from_hex(&"5a".repeat(32)).expect("a key");
        let session = Session::builder()
            .memory(ByteSize::Bytes(32 * MIB))
            .dir(dir)
            .threads(1)
            .checkpoints(Checkpoints::new(kept, key))
            .build();
        let session = Arc::new(session.expect("a session"));
        match Ranks::new(transport, settings(Duration::from_secs(60))) {
            Ok(ranks) => {
                let made = statement.prove_in(&session, &ranks, (weights, cut), random);
                let proof = made.and_then(|(proof, kept)| {
                    kept.finish()?;
                    Ok(proof)
                });
                (proof, ranks.traffic())
            }
            Err(error) => (Err(error.into()), Vec::new()),
        }
    };
    each_transport(transports, part)
}

/// A job ends at each of its messages, and is started again with other random values; sometimes a rank has lost
/// what it kept.
#[test]
fn a_job_that_is_started_again_makes_the_same_proof() {
    let statement = Statement::<Bn254>::new(5, 3000);
    let weights = [2, 1, 1];
    let (first, second) = (statement.random, blinding(6));
    let of_second = statement.key.prove(&statement.circuit, second);
    for cut in CUTS {
        let plan = FaultPlan::none();
        let mut counted = transports(weights.len());
        counted[1] = Arc::new(Faulty::new(Arc::clone(&counted[1]), plan.clone()));
        let dir = tempfile::tempdir().expect("a folder");
        for (proof, _) in kept_on_ranks(&statement, counted, (&weights, cut), (dir.path(), first)) {
            statement.check(proof);
        }
        let (mut resumed, mut without_exchanges) = (0, 0);
        for message in 0..plan.messages() {
            // At the last message nothing is left to be exchanged.
            let before_last = plan.messages() - 1 - message;
            let dir = tempfile::tempdir().expect("a folder");
            let dir = dir.path();
            let mut begun_with = None;
            for random in [first, second].into_iter().take(1 + before_last as usize % 2) {
                let mut parts = transports(weights.len());
                let flipped = FaultPlan::at(message, Fault::Flipped(1234));
                parts[1] = Arc::new(Faulty::new(Arc::clone(&parts[1]), flipped));
                let ended = kept_on_ranks(&statement, parts, (&weights, cut), (dir, random));
                // While rank 0 has a checkpoint, its random values are those of the run that began it.
                let of_first = std::fs::read_dir(dir.join("kept-0"))
                    .into_iter()
                    .flatten()
                    .flatten();
                let is_kept = of_first.map(|entry| entry.path()).any(|path| path.is_dir());
                begun_with = is_kept.then(|| begun_with.unwrap_or(random));
                let has_failed = ended.iter().any(|(proof, _)| proof.is_err());
                assert!(has_failed || random == second, "{cut:?}, message {message}");
            }
            if before_last % 3 == 1 {
                std::fs::remove_dir_all(dir.join("kept-2")).ok();
            }
            let parts = kept_on_ranks(
                &statement,
                transports(weights.len()),
                (&weights, cut),
                (dir, second),
            );
            let exchanged = |(_, traffic): &Part| -> u64 {
                let exchanges = traffic.iter().filter(|phase| phase.name.ends_with("exchange"));
                exchanges.map(|phase| phase.sent_bytes).sum()
            };
            without_exchanges += u32::from(parts.iter().map(exchanged).sum::<u64>() == 0);
            let is_first = begun_with == Some(first);
            let expected = if is_first { &statement.expected } else { &of_second };
            for (proof, _) in parts {
                assert!(
                    text(&proof.expect("a proof")) == *expected,
                    "{cut:?}, message {message}"
                );
                resumed += u32::from(is_first);
            }
            for rank in 0..weights.len() {
                let left = std::fs::read_dir(dir.join(format!("kept-{rank}"))).expect("the folder");
                let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
                assert_eq!(left, ["used"], "{cut:?}, message {message}, rank {rank}");
            }
        }
        println!(
            "{cut:?}: {} messages, {resumed} proofs of the first run, {without_exchanges} without an exchange",
            plan.messages()
        );
        assert!(resumed > 0 && without_exchanges > 0, "{cut:?}");
    }
}
