//! Simulations, in the manner of TigerBeetle's VOPR: random circuits in random budgets, over a storage that
//! reorders and delays transfers, and lets some of them fail, lie, get lost or end up elsewhere. All of it
//! follows from a seed. Either the bytes are memory's, or an error of the engine says why; and when the
//! faults stop, the same session makes the right ones. A cell that cannot be read back while a circuit holds
//! its address may end the process with that reason; so simulations run in children.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use halo2_axiom::plonk::{Circuit, ConstraintSystem};
use halo2_axiom::spillproof::{shape, ByteSize, OpeningScheme, Session};
use halo2_axiom::SerdeFormat;
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};
use spillproof_engine::column::Scratch;
use spillproof_engine::plan::Rates;
use spillproof_engine::storage::{Backend, FaultPlan};

use crate::checkpoints::{checkpoints, folders};
use crate::drop_in::prove;
use crate::drop_in::random::{set_shape, Random};
use crate::faults::{attempt, seed};
use crate::watchdog::within;
use crate::{turn, SCHEMES};

/// Set for the child: its first seed, and the milliseconds that it has.
const CHILD: &str = "SPILLPROOF_TEST_SIMULATION";
/// How long the test simulates.
const SECONDS: &str = "SPILLPROOF_TEST_SIMULATION_SECONDS";
const SECONDS_DEFAULT: u64 = 20;
/// Simulations that end so much later hang.
const PATIENCE_SECONDS: u64 = 300;
/// Faults in a million operations.
const RATES: [u32; 5] = [0, 100, 1_000, 10_000, 100_000];

/// One simulation: whether it ended with the right bytes in spite of faults.
fn simulate(seed: u64) -> bool {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut below = |end: u64| rng.next_u64() % end;
    let (circuit_shape, k) = (below(u64::MAX), 5 + below(4) as u32);
    let (circuits, threads) = (1 + (below(5) == 0) as usize, 1 + below(4) as usize);
    let (scheme, rate) = (SCHEMES[below(2) as usize], RATES[below(5) as usize]);
    let scratch = [Scratch::Sealed, Scratch::Plain][below(2) as usize];
    let (share, storage_seed, faults_seed) = (below(64), below(u64::MAX), below(u64::MAX));
    let keeps_rounds = below(3) == 0;

    set_shape(circuit_shape);
    let params = prove::params_bytes(&prove::params(k), SerdeFormat::RawBytes);
    let made = || attempt::<Random>(&params, (k, circuits), scheme);
    let expected = made().unwrap();
    let mut cs = ConstraintSystem::default();
    Random::configure(&mut cs);
    let smallest = [OpeningScheme::Shplonk, OpeningScheme::Gwc].map(|scheme| {
        let shape = shape(&cs, k, circuits, scheme).keeping_rounds(keeps_rounds);
        let planned = shape.plan(1 << 40, threads, &Rates::default());
        planned.unwrap().smallest_budget_bytes
    });
    let smallest = smallest[0].max(smallest[1]);
    let plan = FaultPlan::random(faults_seed, rate);
    let dir = tempfile::tempdir().unwrap();
    let kept = tempfile::tempdir().unwrap();
    let mut builder = Session::builder()
        .dir(dir.path())
        .memory(ByteSize::Bytes(smallest + smallest * share / 32))
        .threads(threads)
        .scratch(scratch)
        .backend(Backend::Simulated(storage_seed))
        .faults(plan.clone());
    if keeps_rounds {
        builder = builder.checkpoints(checkpoints(kept.path()));
    }
    // A fault may meet the session before it is one.
    let Ok(session) = builder.build() else {
        return false;
    };
    let session = Arc::new(session);
    let first = {
        let _current = session.install();
        let first = made();
        assert!(
            first.is_err() || first.as_ref() == Ok(&expected),
            "seed {seed}: a wrong key or proof"
        );
        plan.stop();
        let mut second = made();
        if let (true, Err(error)) = (keeps_rounds, &second) {
            // The disk lied while a column was kept.
            assert!(error.contains("is damaged"), "seed {seed}: {error}");
            folders(kept.path())
                .iter()
                .for_each(|folder| std::fs::remove_dir_all(folder).unwrap());
            second = made();
        }
        assert!(
            second.as_ref() == Ok(&expected),
            "seed {seed}: afterwards {:?}",
            second.err()
        );
        first
    };
    assert_eq!(
        session.budget().held_bytes(),
        0,
        "seed {seed}: {:?}",
        session.budget().report()
    );
    drop(session);
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "seed {seed}: something is left"
    );
    assert_eq!(folders(kept.path()).len(), 0, "seed {seed}: a checkpoint is left");
    first.is_ok()
}

/// Not a test of its own: simulates from a seed on.
#[test]
fn child() {
    let Ok(asked) = std::env::var(CHILD) else {
        return;
    };
    let (first, milliseconds) = asked.split_once(',').unwrap();
    let (first, milliseconds): (u64, u64) = (first.parse().unwrap(), milliseconds.parse().unwrap());
    let _turn = turn(true);
    let (since, mut seed) = (Instant::now(), first);
    while since.elapsed() < Duration::from_millis(milliseconds) {
        println!("seed {seed}");
        println!("ended {}", simulate(seed));
        seed += 1;
    }
}

#[test]
fn simulations_end_with_the_right_bytes_or_a_reason() {
    let seconds = std::env::var(SECONDS)
        .ok()
        .and_then(|seconds| seconds.parse().ok());
    let seconds = seconds.unwrap_or(SECONDS_DEFAULT);
    within(seconds + PATIENCE_SECONDS, "simulations", move || {
        simulate_for(seconds)
    });
}

fn simulate_for(seconds: u64) {
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut next, mut ended, mut right, mut aborted) = (seed() >> 1, 0, 0, 0);
    let program = std::env::current_exe().unwrap();
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        let output = Command::new(&program)
            .args(["simulation::child", "--exact", "--nocapture"])
            .env(CHILD, format!("{next},{}", left.as_millis()))
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let count = |line: &str| said[0].lines().filter(|said| *said == line).count() as u64;
        let (these_right, these_refused) = (count("ended true"), count("ended false"));
        next += these_right + these_refused;
        (ended, right) = (ended + these_right + these_refused, right + these_right);
        if !output.status.success() {
            // The only end without an error: a circuit waited for a cell that is lost.
            assert!(
                said[1].contains("which is on disk and cannot be read back"),
                "SPILLPROOF_TEST_SEED={}: {}",
                next << 1,
                said.concat()
            );
            (next, aborted) = (next + 1, aborted + 1);
        }
    }
    let line =
        format!("simulations: {ended} ended, {right} with the right bytes; {aborted} aborted with a reason");
    println!("{line}");
    assert!(right > 0, "{line}");
}
