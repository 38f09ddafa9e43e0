//! One proof over several ranks, each with an accelerator of its own: the same proof as without, whatever becomes of
//! the devices, and whatever they compute.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ark_bn254::{Bn254, G1Affine};
use ark_ec::AffineRepr;
use spillproof_engine::accelerator::{Accelerator, Answer, Coset, Panel, Sums, Totals, Transform};
use spillproof_engine::budget::{Budget, ByteSize};
use spillproof_engine::checkpoint::{CheckpointKey, Checkpoints};
use spillproof_engine::error::Invalid;
use spillproof_engine::{Error, Result, Session};
use spillproof_fake_driver::{Code, FakeDriver, under_with_kernels};
use spillproof_gpu::Choice;
use spillproof_gpu::accelerator::{GpuAccelerator, Offload, Request};
use spillproof_gpu::trace::SpanKind;
use spillproof_groth16::{Cut, Proof};
use spillproof_ranks::faults::{Fault, FaultPlan, Faulty};
use spillproof_ranks::{PhaseTraffic, Ranks, Transport};

use crate::ranks::{CUTS, MIB, Statement, each_transport, settings, transports};

/// Bytes of a scalar, of a point of G1 and of one of G2.
const BYTES: [u64; 3] = [32, 64, 128];

/// The device of a rank, which makes all sums that fit it.
fn device(ordinal: usize) -> Arc<GpuAccelerator> {
    device_within(ordinal, MIB)
}

/// The same with so much page-locked memory.
fn device_within(ordinal: usize, pinned_bytes: u64) -> Arc<GpuAccelerator> {
    device_of(ordinal, pinned_bytes, Offload::Always)
}

fn device_of(ordinal: usize, pinned_bytes: u64, offload: Offload) -> Arc<GpuAccelerator> {
    let request = Request {
        choice: Choice::Device(ordinal),
        vram: ByteSize::Bytes(16 << 20),
        offload,
        pinned: ByteSize::Bytes(pinned_bytes),
        ..Request::default()
    };
    GpuAccelerator::open(&request)
        .expect("a device")
        .expect("a device")
}

/// What is in the folder of a rank's checkpoint.
fn left(folder: &Path, rank: usize) -> Vec<std::ffi::OsString> {
    let left = std::fs::read_dir(folder.join(rank.to_string())).expect("the folder");
    left.flatten().map(|entry| entry.file_name()).collect()
}

/// The sums and panels of a device, and one of them wrong, if there are so many.
#[derive(Debug)]
struct Wrong {
    device: Arc<GpuAccelerator>,
    wrong: Nth,
    done: AtomicUsize,
}

/// Of all sums, or of all panels.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Nth {
    Sum(usize),
    Panel(usize),
}

impl Wrong {
    fn at(wrong: Nth, device: Arc<GpuAccelerator>) -> Self {
        let done = AtomicUsize::new(0);
        Self { device, wrong, done }
    }
}

impl Accelerator for Wrong {
    fn sums(&self, job: &mut Sums<'_>, budget: &Budget) -> Result<Answer<Totals>> {
        let answer = self.device.sums(job, budget)?;
        Ok(match answer {
            Answer::Done(mut totals) => {
                if let Nth::Sum(wrong) = self.wrong {
                    for total in &mut totals.g1 {
                        if self.done.fetch_add(1, Ordering::Relaxed) == wrong {
                            *total += G1Affine::generator();
                        }
                    }
                }
                Answer::Done(totals)
            }
            declined => declined,
        })
    }

    fn transform(&self, job: &mut Transform<'_>, budget: &Budget) -> Result<Answer<()>> {
        self.device.transform(job, budget)
    }

    /// A wrong one is that of another transform.
    fn panel(&self, job: &mut Panel<'_>, budget: &Budget) -> Result<Answer<()>> {
        if let Nth::Panel(wrong) = self.wrong
            && self.done.fetch_add(1, Ordering::Relaxed) == wrong
        {
            for half in &mut job.halves {
                half.scale += half.scale;
                half.after += half.after;
            }
        }
        self.device.panel(job, budget)
    }

    fn quotient(&self, job: &mut Coset<'_>, budget: &Budget) -> Result<Answer<()>> {
        self.device.quotient(job, budget)
    }
}

/// What a rank returns, and whether it trusts its accelerator.
struct Outcome {
    proof: Result<Proof<Bn254>>,
    traffic: Vec<PhaseTraffic>,
    is_distrusted: bool,
}

impl Outcome {
    /// Bytes of scalars that it has sent.
    fn exchanged_bytes(&self) -> u64 {
        let exchanges = self
            .traffic
            .iter()
            .filter(|phase| phase.name.ends_with("exchange"));
        exchanges.map(|phase| phase.sent_bytes).sum()
    }
}

/// A job of several ranks, each with an accelerator or none, that perhaps keeps what it has done.
fn job(
    statement: &Statement<Bn254>,
    transports: Vec<Arc<dyn Transport>>,
    (weights, cut): (&[u64], Cut),
    kept: Option<&Path>,
    accelerator: &(dyn Fn(usize) -> Option<Arc<dyn Accelerator>> + Sync),
) -> Vec<Outcome> {
    let part = |transport: Arc<dyn Transport>| {
        let rank = transport.rank();
        let dir = tempfile::tempdir().expect("a folder");
        let mut builder = Session::builder()
            .memory(ByteSize::Bytes(32 * MIB))
            .dir(dir.path())
            .threads(1);
        if let Some(accelerator) = accelerator(rank) {
            builder = builder.accelerator(accelerator);
        }
        if let Some(kept) = kept {
            let key = CheckpointKey::from_hex(&"5a".repeat(32)).expect("a key");
            builder = builder.checkpoints(Checkpoints::new(kept.join(rank.to_string()), key));
        }
        let session = Arc::new(builder.build().expect("a session"));
        let (proof, traffic) = match Ranks::new(transport, settings(Duration::from_secs(60))) {
            Ok(ranks) => {
                let random = statement.random_of(&ranks);
                let made = statement.prove_in(&session, &ranks, (weights, cut), random);
                let proof = made.and_then(|(proof, kept)| {
                    kept.finish()?;
                    Ok(proof)
                });
                (proof, ranks.traffic())
            }
            Err(error) => (Err(error.into()), Vec::new()),
        };
        let accelerator = session.accelerator();
        Outcome {
            proof,
            traffic,
            is_distrusted: accelerator.is_some_and(|accelerator| accelerator.is_distrusted()),
        }
    };
    each_transport(transports, part)
}

fn as_accelerator(device: &Arc<GpuAccelerator>) -> Option<Arc<dyn Accelerator>> {
    Some(Arc::clone(device) as Arc<dyn Accelerator>)
}

/// Without violations and leaks.
fn given_back(devices: Vec<Arc<GpuAccelerator>>, driver: &FakeDriver, what: &str) {
    drop(devices);
    driver.assert_clean(what);
}

/// On 1, 2 and 4 devices. Each gets the points and scalars of its rank's share once, and its part of three transforms
/// in each of three passes.
#[test]
fn each_rank_works_on_its_device() {
    under_with_kernels(module_path!(), "each_rank_works_on_its_device", |driver| {
        let statement = Statement::<Bn254>::new(7, 3000);
        let (n, signals) = (1 << 12, statement.circuit.witness.len() as u64);
        for (there, weights) in [
            (1, &[1][..]),
            (1, &[1, 1]),
            (2, &[1, 1]),
            (4, &[2, 1, 1]),
            (4, &[1; 4]),
        ] {
            let what = format!("{there} devices, {weights:?}");
            driver.reset(there, 64 << 20);
            let devices: Vec<_> = (0..weights.len())
                .map(|rank| device(rank % there as usize))
                .collect();
            let of = |rank: usize| as_accelerator(&devices[rank]);
            let outcomes = job(
                &statement,
                transports(weights.len()),
                (weights, Cut::Layout),
                None,
                &of,
            );
            let all: u64 = weights.iter().sum();
            let mut up_bytes = 0;
            for (rank, outcome) in outcomes.into_iter().enumerate() {
                let share = n * weights[rank] / all;
                assert_eq!(
                    outcome.exchanged_bytes(),
                    6 * 32 * (share - share * weights[rank] / all),
                    "{what}"
                );
                assert!(!outcome.is_distrusted);
                statement.check(outcome.proof);
                let report = devices[rank].report();
                // A, B1, C, B2 and H, which is dealt in columns of one width, as panels are.
                assert_eq!(
                    (report.sums(), report.panels(), report.by_the_processor()),
                    (5, 9, 0),
                    "{what}: {report}"
                );
                let trace = devices[rank].gpus()[0].trace();
                let [scalar, g1, _] = BYTES;
                let pinned_bytes = trace.total(SpanKind::ToDevicePinned).bytes;
                // The tables of three passes.
                let tables_bytes = trace.total(SpanKind::ToDevicePageable).bytes;
                assert!(tables_bytes < 20 << 10, "{what}: {tables_bytes}");
                assert!(pinned_bytes >= share * (scalar + g1), "{what}");
                up_bytes += pinned_bytes;
                // Of each panel one, of the tables of a pass one; of sums whose memory panels take, one a stream.
                assert!(trace.hard_syncs() <= 4 + 9 + 3 + 3, "{what}: {}", trace.table());
            }
            // Nothing of H crosses twice, and z once for all four of its sums.
            let [scalar, g1, g2] = BYTES;
            let expected = 9 * n * scalar + n * (scalar + g1) + signals * (scalar + 3 * g1 + g2);
            assert_eq!(up_bytes, expected, "{what}");
            given_back(devices, driver, &what);
        }
    });
}

/// A device is lost in the middle, or fails once: the processor of its rank goes on, and no other rank is told.
#[test]
fn a_rank_whose_device_is_lost_goes_on() {
    under_with_kernels(module_path!(), "a_rank_whose_device_is_lost_goes_on", |driver| {
        let statement = Statement::<Bn254>::new(8, 1000);
        let (mut lost, mut done, mut calls) = (0, 0, 0);
        // At no call in the first turn, which counts them.
        for turn in 0..11 {
            let (is_lost, ordinal) = (turn % 2 == 0, turn as usize / 2 % 2);
            let nth = match turn {
                0 => 0,
                _ => 20 + calls * ((turn - 1) / 2) / 5,
            };
            driver.reset(2, 64 << 20);
            // Chunks of a part of a panel's columns.
            let devices: Vec<_> = (0..2).map(|ordinal| device_within(ordinal, 40 << 10)).collect();
            driver.fail_on(ordinal, nth, Code::LaunchFailed, is_lost);
            let of = |rank: usize| as_accelerator(&devices[rank]);
            let outcomes = job(&statement, transports(2), (&[1, 1], Cut::Layout), None, &of);
            calls = calls.max(driver.calls_on(0));
            for outcome in outcomes {
                assert!(!outcome.is_distrusted);
                statement.check(outcome.proof);
            }
            let [failed, other] = [ordinal, 1 - ordinal].map(|rank| devices[rank].report());
            assert_eq!((other.sums(), other.panels()), (5, 9), "call {nth}: {other}");
            let jobs = failed.sums() + failed.panels() + failed.by_the_processor();
            assert_eq!(jobs, 14, "call {nth}: {failed}");
            lost += u32::from(failed.by_the_processor() > 0);
            done += u32::from(failed.by_the_processor() > 0 && failed.panels() > 0);
            drop(devices);
            assert_eq!(driver.violations(), Vec::<String>::new(), "call {nth}");
        }
        println!("{lost} jobs lost a device, {done} of them after some work");
        assert!(lost > 3 && done > 0);
    });
}

/// The proof does not verify: it is made again by processors, and only the rank that computed wrong distrusts its
/// device. In the other cuts rank 0's device makes the transforms, too.
#[test]
fn a_device_that_computes_wrong_is_found_on_its_rank() {
    under_with_kernels(
        module_path!(),
        "a_device_that_computes_wrong_is_found_on_its_rank",
        |driver| {
            let statement = Statement::<Bn254>::new(9, 1000);
            for cut in CUTS {
                // The fourth sum is that over H, which rank 0 makes alone of so few rows in the other cuts. There are
                // three panels a pass.
                let cases = match cut {
                    Cut::Layout => &[
                        (0, Nth::Sum(0)),
                        (1, Nth::Sum(3)),
                        (0, Nth::Panel(1)),
                        (1, Nth::Panel(4)),
                        (0, Nth::Panel(8)),
                    ][..],
                    Cut::Rows | Cut::Columns | Cut::Steps => &[(1, Nth::Sum(1))],
                };
                for &(wrong_rank, wrong) in cases {
                    let what = format!("{cut:?}, rank {wrong_rank}, {wrong:?}");
                    driver.reset(2, 64 << 20);
                    let devices: Vec<_> = (0..2).map(device).collect();
                    let of = |rank: usize| match rank == wrong_rank {
                        true => {
                            let wrong = Wrong::at(wrong, Arc::clone(&devices[rank]));
                            Some(Arc::new(wrong) as Arc<dyn Accelerator>)
                        }
                        false => as_accelerator(&devices[rank]),
                    };
                    let dir = tempfile::tempdir().expect("a folder");
                    for kept in [None, Some(dir.path())] {
                        if kept.is_some() && !matches!((cut, wrong), (Cut::Layout, Nth::Sum(_))) {
                            continue;
                        }
                        let outcomes = job(&statement, transports(2), (&[1, 1], cut), kept, &of);
                        for (rank, outcome) in outcomes.into_iter().enumerate() {
                            statement.check(outcome.proof);
                            assert_eq!(
                                outcome.is_distrusted,
                                rank == wrong_rank,
                                "{what}: of rank {rank}"
                            );
                            if kept.is_some() {
                                assert_eq!(left(dir.path(), rank), ["used"], "{what}");
                            }
                        }
                    }
                    given_back(devices, driver, &what);
                }
            }
        },
    );
}

/// Rank 0's device makes a wrong quotient, of which other ranks sum, with devices of their own that compute right: a
/// kernel does nothing, and says that it has.
#[test]
fn a_wrong_quotient_is_made_again_by_all() {
    under_with_kernels(
        module_path!(),
        "a_wrong_quotient_is_made_again_by_all",
        |driver| {
            let statement = Statement::<Bn254>::new(12, 3000);
            for launch in [1, 3, 5] {
                driver.reset(2, 64 << 20);
                let devices: Vec<_> = (0..2).map(device).collect();
                // In this cut rank 0 alone transforms.
                driver.fail(Some("spk_ntt_pass_bn254_fr"), launch, Code::Lie, false);
                let of = |rank: usize| as_accelerator(&devices[rank]);
                let dir = tempfile::tempdir().expect("a folder");
                let outcomes = job(
                    &statement,
                    transports(2),
                    (&[1, 1], Cut::Steps),
                    Some(dir.path()),
                    &of,
                );
                assert_eq!(driver.failures(), 1);
                for (rank, outcome) in outcomes.into_iter().enumerate() {
                    assert_eq!(outcome.is_distrusted, rank == 0, "launch {launch}");
                    statement.check(outcome.proof);
                }
                // Six transforms, and its part of H; the second time nothing.
                let [first, other] = [0, 1].map(|rank| devices[rank].report());
                let done = [first.transforms(), first.sums(), other.transforms(), other.sums()];
                assert_eq!(done, [6, 1, 0, 5], "launch {launch}: {first}; {other}");
                given_back(devices, driver, &format!("launch {launch}"));
            }
        },
    );
}

/// The messages of the second of two ranks without devices.
fn messages_of(statement: &Statement<Bn254>, shares: (&[u64], Cut)) -> u64 {
    let plan = FaultPlan::none();
    let mut counted = transports(2);
    counted[1] = Arc::new(Faulty::new(Arc::clone(&counted[1]), plan.clone()));
    for outcome in job(statement, counted, shares, None, &|_| None) {
        statement.check(outcome.proof);
    }
    plan.messages()
}

/// A job ends with wrong sums in a checkpoint, at each of its last messages: the next one, which has no device, finds
/// that they are wrong, and makes the proof of the first random values.
#[test]
fn what_a_checkpoint_has_of_a_device_is_not_trusted() {
    under_with_kernels(
        module_path!(),
        "what_a_checkpoint_has_of_a_device_is_not_trusted",
        |driver| {
            let statement = Statement::<Bn254>::new(10, 300);
            let shares = (&[1, 1][..], Cut::Layout);
            let messages = messages_of(&statement, shares);
            let mut made_again = 0;
            for message in messages.saturating_sub(4)..messages {
                driver.reset(2, 64 << 20);
                let dir = tempfile::tempdir().expect("a folder");
                let devices: Vec<_> = (0..2).map(device).collect();
                let of = |rank: usize| match rank {
                    1 => {
                        let wrong = Wrong::at(Nth::Sum(0), Arc::clone(&devices[1]));
                        Some(Arc::new(wrong) as Arc<dyn Accelerator>)
                    }
                    _ => as_accelerator(&devices[rank]),
                };
                let mut parts = transports(2);
                let flipped = FaultPlan::at(message, Fault::Flipped(1234));
                parts[1] = Arc::new(Faulty::new(Arc::clone(&parts[1]), flipped));
                let ended = job(&statement, parts, shares, Some(dir.path()), &of);
                assert!(ended.iter().any(|outcome| outcome.proof.is_err()));
                // No accelerator, and so none that could be distrusted: the checkpoint says that there was one.
                let outcomes = job(&statement, transports(2), shares, Some(dir.path()), &|_| None);
                let exchanged: u64 = outcomes.iter().map(Outcome::exchanged_bytes).sum();
                for outcome in outcomes {
                    statement.check(outcome.proof);
                }
                made_again += u32::from(exchanged > 0);
                given_back(devices, driver, &format!("message {message}"));
            }
            println!("{made_again} proofs were made again");
            assert!(made_again > 0);
        },
    );
}

/// A rank without a device keeps a sum of what another one's device made wrong. Then that one, with its checkpoint, is
/// gone: the proof is made again all the same.
#[test]
fn what_a_checkpoint_has_of_another_rank_s_device_is_not_trusted() {
    under_with_kernels(
        module_path!(),
        "what_a_checkpoint_has_of_another_rank_s_device_is_not_trusted",
        |driver| {
            let statement = Statement::<Bn254>::new(13, 300);
            let shares = (&[1, 1][..], Cut::Layout);
            let messages = messages_of(&statement, shares);
            for message in messages.saturating_sub(3)..messages {
                driver.reset(1, 64 << 20);
                let dir = tempfile::tempdir().expect("a folder");
                let first = device(0);
                let of = |rank: usize| {
                    let wrong = Wrong::at(Nth::Panel(0), Arc::clone(&first));
                    (rank == 0).then(|| Arc::new(wrong) as Arc<dyn Accelerator>)
                };
                let mut parts = transports(2);
                let flipped = FaultPlan::at(message, Fault::Flipped(1234));
                parts[1] = Arc::new(Faulty::new(Arc::clone(&parts[1]), flipped));
                let ended = job(&statement, parts, shares, Some(dir.path()), &of);
                assert!(ended.iter().any(|outcome| outcome.proof.is_err()));
                std::fs::remove_dir_all(dir.path().join("0")).expect("the folder of rank 0");
                for outcome in job(&statement, transports(2), shares, Some(dir.path()), &|_| None) {
                    statement.check(outcome.proof);
                }
                given_back(vec![first], driver, &format!("message {message}"));
            }
        },
    );
}

/// A witness of another statement is an error on every rank, and no rank distrusts its device. The proof is made again
/// only where a device has taken part, and no checkpoint of that witness stays.
#[test]
fn a_wrong_witness_is_not_a_device_s_fault() {
    under_with_kernels(
        module_path!(),
        "a_wrong_witness_is_not_a_device_s_fault",
        |driver| {
            let statement = Statement::<Bn254>::new(11, 300);
            let mut wrong = Statement::<Bn254>::new(11, 300);
            if let Some(value) = wrong.circuit.witness.last_mut() {
                *value += ark_bn254::Fr::from(1u64);
            }
            // With devices that do all, that leave all to the processor, and without any.
            for (offload, ranks, times) in [
                (Some(Offload::Always), 2, 2),
                (Some(Offload::Measured), 2, 1),
                (None, 4, 1),
            ] {
                let (what, shares) = (format!("{offload:?}"), vec![1; ranks]);
                let prove = |statement, kept, of: &(dyn Fn(usize) -> _ + Sync)| {
                    job(statement, transports(ranks), (&shares, Cut::Layout), kept, of)
                };
                let sent = |outcomes: &[Outcome]| outcomes.iter().map(Outcome::exchanged_bytes).sum::<u64>();
                let once = sent(&prove(&statement, None, &|_| None));
                driver.reset(2, 64 << 20);
                let devices: Vec<_> = offload
                    .into_iter()
                    .flat_map(|offload| (0..ranks).map(move |rank| device_of(rank, MIB, offload)))
                    .collect();
                let of = |rank: usize| devices.get(rank).and_then(as_accelerator);
                let dir = tempfile::tempdir().expect("a folder");
                let outcomes = prove(&wrong, Some(dir.path()), &of);
                assert_eq!(sent(&outcomes), times * once, "{what}");
                for (rank, outcome) in outcomes.into_iter().enumerate() {
                    let is_unsatisfied = matches!(outcome.proof, Err(Error::Invalid(Invalid::NotSatisfied)));
                    assert!(is_unsatisfied, "{what}: {:?}", outcome.proof);
                    assert!(!outcome.is_distrusted, "{what}");
                    assert_eq!(left(dir.path(), rank), ["used"], "{what}");
                }
                for outcome in prove(&statement, Some(dir.path()), &of) {
                    statement.check(outcome.proof);
                }
                given_back(devices, driver, &what);
            }
        },
    );
}
