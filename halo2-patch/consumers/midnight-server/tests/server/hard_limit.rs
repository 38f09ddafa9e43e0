//! Twenty requests at once under a hard limit of the kernel, in which page cache counts.
//! `SPILLPROOF_TEST_UNDER` is a command that runs another one within such a limit (`systemd-run --scope -p
//! MemoryMax=640M -p MemorySwapMax=0`, say); without it there is no limit, and the test only measures.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::circuits::{self, Circuit};
use super::harness::Server;

const REQUESTS: usize = 20;
/// Memory is flat if a later run takes no more than that beyond an earlier one.
const FLAT_MIB: u64 = 32;

#[test]
#[ignore = "takes minutes; run alone, with a limit"]
fn twenty_requests_at_once_in_half_a_gibibyte() {
    let budget = std::env::var("SPILLPROOF_TEST_BUDGET").unwrap_or_else(|_| "512MiB".to_owned());
    let workers = std::env::var("SPILLPROOF_TEST_WORKERS").unwrap_or_else(|_| "2".to_owned());
    // Keys are made here, and before the clock runs.
    let circuits = [circuits::large(), circuits::middle(), circuits::large()];
    let server = Server::start(&["--memory", &budget, "--num-workers", &workers]);
    let ks = circuits.map(|circuit| circuit.k);
    println!("{REQUESTS} requests, of k = {ks:?} by turns, {workers} workers, {budget}");
    let first = all_are_answered(&server, &circuits, "all stay", &[]);
    let second = all_are_answered(&server, &circuits, "all stay, once more", &[]);
    let third = all_are_answered(&server, &circuits, "four go away", &[0, 1, 4, 6]);
    assert!(
        second.max(third) <= first + FLAT_MIB,
        "{first}, {second}, {third} MiB"
    );
    let proof = server
        .ask("POST", "/prove", &circuits[0].request(1.into()))
        .proof();
    assert!(circuits[0].verifies(&proof, 1.into(), 7.into()));
    println!("at the end: {}", server.wait_until_idle());
    server.terminate();
    let (status, said) = server.end();
    assert_eq!(status, Some(0), "{said}");
}

/// Requests at once, of which some clients go away; the most that is resident while they are answered.
fn all_are_answered(server: &Server, circuits: &[&'static Circuit], name: &str, go_away: &[usize]) -> u64 {
    let start = Instant::now();
    let (answered, is_done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let samples = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let sample = (answered.load(Ordering::Relaxed), server.resident_mib());
                samples.lock().unwrap().push(sample);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        std::thread::scope(|clients| {
            for number in 0..REQUESTS {
                let answered = &answered;
                clients.spawn(move || {
                    let circuit = circuits[number % circuits.len()];
                    let input = (number as u64 + 1).into();
                    let request = server.send("POST", "/prove", &circuit.request(input));
                    if go_away.contains(&number) {
                        std::thread::sleep(Duration::from_millis(500 * number as u64));
                        return drop(request);
                    }
                    let proof = request.answer().proof();
                    assert!(circuit.verifies(&proof, input, 7.into()), "request {number}");
                    answered.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        is_done.store(true, Ordering::Relaxed);
    });
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(answered.into_inner(), REQUESTS - go_away.len());
    let samples = samples.into_inner().unwrap();
    let most = |range: std::ops::Range<usize>| {
        let of_range = samples.iter().filter(|(answered, _)| range.contains(answered));
        of_range.map(|(_, mib)| *mib).max().unwrap_or(0)
    };
    let quarters = [0, 5, 10, 15].map(|first| most(first..first + 5));
    println!("{name}: {seconds:.1} s; most MiB resident, by quarters of the answers: {quarters:?}");
    server.wait_until_idle();
    quarters.into_iter().max().unwrap_or(0)
}
