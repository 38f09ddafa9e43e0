//! Jobs: waiting, asking, stopping, time limits, requests that come again, clients that go.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::client::{Request, answer_of, connect};
use crate::fixture::{KEYS, Running, check, proofs};

#[test]
fn a_job_is_asked_for_and_forgotten() {
    let server = Running::start();
    let job = server.begin("medium");
    server.until("it is done", || server.state(&job) == "done");
    let said = server.get(&job).json();
    check("medium", &said["result"]);
    assert!(said["seconds"]["ran"].as_f64() > Some(0.0), "{said}");
    assert_eq!(Request::delete(&job).send(server.address).status, 204);
    assert_eq!(server.get(&job).code(), "no_such_job");
    assert_eq!(Request::delete(&job).send(server.address).code(), "no_such_job");
    server.end();
}

/// `wait` answers with a job when the time is over, and with the proof when it is there before.
#[test]
fn preferences_to_wait() {
    let server = Running::start();
    let (path, witness) = (proofs("small"), KEYS.witness("small"));
    let post = |prefer: &str| {
        Request::post(&path, witness)
            .with("prefer", prefer)
            .send(server.address)
    };
    let done = post("respond-async, wait=50");
    assert_eq!(done.status, 200, "{done:?}");
    let held = server.hold();
    let waiting = post("wait=0, handling=lenient");
    assert_eq!(waiting.status, 202, "{waiting:?}");
    let job = waiting.header("location").expect("a place").to_owned();
    assert_eq!(waiting.header("preference-applied"), Some("respond-async"));
    drop(held);
    server.until("it goes on without a client", || server.state(&job) == "done");
    server.end();
}

#[test]
fn a_full_queue_and_jobs_that_are_stopped() {
    let server = Running::with("64MiB", |settings| {
        settings.proofs = 1;
        settings.queue = 2;
    });
    let held = server.hold();
    let running = server.begin("small");
    server.until("it is running", || server.state(&running) == "running");
    let waiting = [server.begin("small"), server.begin("medium")];
    assert_eq!(server.state(&waiting[0]), "waiting");
    assert_eq!(server.metric("spillproof_queue_length"), 2.0);
    let refused = Request::post(&proofs("small"), KEYS.witness("small")).send(server.address);
    assert_eq!((refused.status, refused.code().as_str()), (429, "queue_full"));
    let after: u64 = refused
        .header("retry-after")
        .expect("a time")
        .parse()
        .expect("seconds");
    assert!((1..=300).contains(&after));
    // One in the queue ends at once, and leaves its place.
    let stopped = Request::delete(&waiting[0]).send(server.address);
    assert_eq!(
        (stopped.status, &stopped.json()["state"]),
        (202, &"stopped".into())
    );
    assert_eq!(stopped.json()["error"]["code"], "job_stopped");
    let next = server.begin("small");
    // One that waits for its turn in the session does so within moments.
    let since = Instant::now();
    let stopping = Request::delete(&running).send(server.address);
    assert_eq!(stopping.status, 202, "{stopping:?}");
    server.until("it is stopped", || server.state(&running) == "stopped");
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    drop(held);
    server.until("the others are done", || {
        [&waiting[1], &next].iter().all(|job| server.state(job) == "done")
    });
    assert_eq!(
        server.metric("spillproof_jobs_ended_total{state=\"stopped\"}"),
        2.0
    );
    assert_eq!(
        server.metric("spillproof_refusals_total{code=\"queue_full\"}"),
        1.0
    );
    server.end();
}

/// The larger of two jobs that wait is the next one, though it came later.
#[test]
fn a_larger_job_passes_smaller_ones() {
    let server = Running::start();
    let held = server.hold();
    let first = server.begin("small");
    server.until("it is running", || server.state(&first) == "running");
    let [small, medium] = ["small", "medium"].map(|key| server.begin(key));
    // Jobs stand still as long as the turn is held: when one goes, the next one runs, and no other.
    for (gone, next) in [(&first, &medium), (&medium, &small)] {
        assert_eq!(Request::delete(gone).send(server.address).status, 202);
        server.until("it is stopped", || server.state(gone) == "stopped");
        server.until("the next one runs", || {
            [&small, &medium].iter().any(|job| server.state(job) == "running")
        });
        assert_eq!(server.state(next), "running");
    }
    drop(held);
    server.until("it is done", || server.state(&small) == "done");
    server.end();
}

#[test]
fn deadlines_and_time_limits() {
    let server = Running::with("64MiB", |settings| {
        settings.proofs = 1;
        settings.job_timeout = Duration::from_millis(700);
    });
    let held = server.hold();
    let post = |deadline: &str| {
        Request::post(&proofs("small"), KEYS.witness("small"))
            .with("spillproof-deadline", deadline)
            .send(server.address)
    };
    // The first runs, the second waits behind it.
    std::thread::scope(|scope| {
        let running = scope.spawn(|| post("0.3"));
        let waiting = scope.spawn(|| post("0.4"));
        for answer in [running, waiting] {
            let answer = answer.join().expect("an answer");
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (504, "deadline_exceeded")
            );
        }
    });
    let answer = Request::post(&proofs("small"), KEYS.witness("small")).send(server.address);
    assert_eq!((answer.status, answer.code().as_str()), (504, "time_limit"));
    drop(held);
    assert_eq!(post("60").status, 200);
    server.end();
}

#[test]
fn requests_that_come_again() {
    let server = Running::start();
    let (path, witness) = (proofs("medium"), KEYS.witness("medium"));
    let post = |body: &[u8], key: &str| {
        Request::post(&path, body)
            .with("idempotency-key", key)
            .send(server.address)
    };
    let place = |answer: &crate::client::Answer| answer.header("content-location").map(str::to_owned);
    let first = post(witness, "one");
    assert_eq!(first.status, 200, "{first:?}");
    let again = post(witness, "one");
    assert_eq!(
        (again.status, place(&again), &again.body),
        (200, place(&first), &first.body)
    );
    let other_key = post(witness, "two");
    assert_ne!(place(&other_key), place(&first));
    // Proofs are blinded, so that another proof is another text.
    assert_ne!(other_key.body, first.body);
    let mut other = witness.to_vec();
    *other.last_mut().expect("bytes") ^= 1;
    let reused = post(&other, "one");
    assert_eq!(
        (reused.status, reused.code().as_str()),
        (422, "idempotency_key_reused")
    );
    // Of another key of the server, it is another request.
    let elsewhere = Request::post(&proofs("small"), KEYS.witness("small"))
        .with("idempotency-key", "one")
        .send(server.address);
    assert_eq!(elsewhere.status, 200, "{elsewhere:?}");
    // A job that failed is not what the client wants to hear of again.
    for _ in 0..2 {
        assert_eq!(post(&other, "wrong").code(), "witness_unsatisfied");
    }
    assert_eq!(post(witness, "wrong").status, 200);
    // While the first is on its way, nothing is known of its body.
    let request = Request::post(&path, witness).with("idempotency-key", "slow");
    let mut slow = connect(server.address);
    slow.write_all(request.head(server.address).as_bytes())
        .expect("a head");
    server.until("it is on its way", || {
        server.metric("spillproof_jobs{state=\"receiving\"}") == 1.0
    });
    let early = post(witness, "slow");
    assert_eq!(
        (early.status, early.code().as_str()),
        (409, "idempotency_in_progress")
    );
    slow.write_all(witness).expect("a body");
    assert_eq!(answer_of(slow).expect("an answer").status, 200);
    server.end();
}

/// Two requests wait for one job: when one of the clients goes, the other gets its proof.
#[test]
fn a_job_that_two_wait_for() {
    let server = Running::start();
    let path = proofs("small");
    let request = || Request::post(&path, KEYS.witness("small")).with("idempotency-key", "shared");
    let held = server.hold();
    let first = request().begin(server.address);
    server.until("it runs", || {
        server.metric("spillproof_jobs{state=\"running\"}") == 1.0
    });
    let second = request().begin(server.address);
    std::thread::sleep(Duration::from_millis(300));
    drop(first);
    std::thread::sleep(Duration::from_millis(300));
    drop(held);
    assert_eq!(answer_of(second).expect("an answer").status, 200);
    assert_eq!(server.metric("spillproof_jobs_ended_total{state=\"done\"}"), 1.0);
    server.end();
}

#[test]
fn clients_that_go_away() {
    let server = Running::with("64MiB", |settings| settings.proofs = 1);
    let held = server.hold();
    let path = proofs("small");
    let post = || Request::post(&path, KEYS.witness("small"));
    // In the middle of a proof, and in the queue.
    let gone = [post().begin(server.address), post().begin(server.address)];
    server.until("they are there", || {
        server.metric("spillproof_jobs{state=\"running\"}")
            + server.metric("spillproof_jobs{state=\"waiting\"}")
            == 2.0
    });
    // In the middle of a body.
    let mut half = connect(server.address);
    half.write_all(post().head(server.address).as_bytes())
        .expect("a head");
    half.write_all(&KEYS.witness("small")[..100]).expect("a part");
    server.until("it is there", || {
        server.metric("spillproof_jobs{state=\"receiving\"}") == 1.0
    });
    drop((gone, half));
    let ended = || {
        ["stopped", "failed"]
            .map(|state| server.metric(&format!("spillproof_jobs_ended_total{{state=\"{state}\"}}")))
            .iter()
            .sum::<f64>()
    };
    server.until("their jobs end", || ended() == 3.0);
    drop(held);
    assert_eq!(post().send(server.address).status, 200);
    server.end();
}

#[test]
fn results_are_kept_for_a_while() {
    let server = Running::with("64MiB", |settings| settings.keep = Duration::from_millis(400));
    let job = server.begin("small");
    server.until("it is forgotten", || server.get(&job).status == 404);
    assert_eq!(server.metric("spillproof_results_bytes"), 0.0);
    server.end();
}
