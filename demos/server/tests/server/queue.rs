//! The order of jobs that wait, apart from any server: the file is compiled here once more, since it is not public.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use order::{AHEAD, Queue};

#[path = "../../src/queue.rs"]
mod order;

const SECOND: Duration = Duration::from_secs(1);

fn order_of(works: &[u32]) -> Vec<usize> {
    let mut queue = Queue::default();
    for (job, work) in works.iter().enumerate() {
        queue.push(SECOND * *work, job);
    }
    std::iter::from_fn(|| queue.pop()).collect()
}

#[test]
fn equal_jobs_come_in_their_order_and_larger_ones_pass() {
    assert_eq!(order_of(&[3, 3, 3]), [0, 1, 2]);
    assert_eq!(order_of(&[0, 0, 0]), [0, 1, 2]);
    assert_eq!(order_of(&[1, 1, 4, 2, 4]), [2, 4, 0, 1, 3]);
    assert_eq!(order_of(&[1, 1, 4, 3, 4]), [2, 4, 3, 0, 1]);
    // The longest durations have places, too.
    let mut queue = Queue::default();
    (0..4).for_each(|job| queue.push(Duration::MAX, job));
    queue.push(Duration::ZERO, 4);
    assert_eq!(
        std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4]
    );
}

/// The largest come without end: 12 of them pass a small one, which then has its turn.
#[test]
fn a_small_job_has_its_turn_among_large_ones() {
    let mut queue = Queue::default();
    queue.push(Duration::ZERO, "small");
    let mut passed = 0;
    loop {
        queue.push(SECOND, "large");
        match queue.pop() {
            Some("large") => passed += 1,
            other => break assert_eq!(other, Some("small")),
        }
    }
    assert_eq!(passed, AHEAD);
}

#[test]
fn those_that_leave_are_not_next() {
    let mut queue = Queue::default();
    (0..6).for_each(|job| queue.push(SECOND, job));
    queue.retain(|job| job % 3 == 1);
    assert_eq!(queue.len(), 2);
    assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(1), Some(4), None]);
}

/// What passes a job is never as much work as the module says.
#[test]
fn no_job_is_passed_by_more_than_the_bound() {
    const LARGEST: u64 = 50;
    for seed in 0..20 {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let mut queue = Queue::default();
        // Of each job that waits: its arrival, its work, and the work that passed it.
        let mut waiting: Vec<(u64, u64, u64)> = Vec::new();
        for arrival in 0..2000 {
            let work = match rng.gen_ratio(1, 3) {
                true => LARGEST,
                false => rng.gen_range(0..=LARGEST),
            };
            queue.push(Duration::from_nanos(work), (arrival, work));
            waiting.push((arrival, work, 0));
            while queue.len() > 30 || rng.gen_ratio(2, 5) {
                let Some((next, its_work)) = queue.pop() else {
                    break;
                };
                waiting.retain(|(arrival, ..)| *arrival != next);
                for (arrival, work, passed) in &mut waiting {
                    if *arrival < next {
                        *passed += its_work;
                        let bound = u64::from(AHEAD + 1) * LARGEST;
                        assert!(
                            *work < its_work && *passed < bound,
                            "{arrival} of {work}: {passed}"
                        );
                    }
                }
            }
        }
    }
}

/// Times alone as a load of keys of 2^10 to 2^16 rows has them, in milliseconds.
const SIZES: [u64; 7] = [50, 60, 70, 100, 140, 220, 420];
const ALONE: u64 = SIZES[SIZES.len() - 1];
const CLIENTS: usize = 16;
const JOBS: usize = 1000;

/// Clients that send a job of random size whenever their last one is done, to a server that proves one at a time.
/// Of each size, the times from job to proof, in milliseconds.
fn closed_loop(seed: u64, work_of: impl Fn(u64) -> u64) -> Vec<Vec<u64>> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut queue = Queue::default();
    let mut send = |queue: &mut Queue<(usize, u64)>, now| {
        let size = rng.gen_range(0..SIZES.len());
        queue.push(Duration::from_millis(work_of(SIZES[size])), (size, now));
    };
    (0..CLIENTS).for_each(|_| send(&mut queue, 0));
    let (mut now, mut times) = (0, vec![Vec::new(); SIZES.len()]);
    let mut running = queue.pop();
    for _ in 0..JOBS {
        let (size, since) = running.expect("a client's job");
        now += SIZES[size];
        times[size].push(now - since);
        // The next one begins before the client has its proof.
        running = queue.pop();
        send(&mut queue, now);
    }
    times
}

/// The largest are done within 3 times their time alone, but for where three are there at once; the others wait little
/// longer than in the order of arrival.
#[test]
fn the_largest_among_sixteen_clients() {
    for seed in 0..10 {
        let by_place = closed_loop(seed, |work| work);
        // Without work, places are those of arrival.
        let by_arrival = closed_loop(seed, |_| 0);
        let [within, within_by_arrival] = [&by_place, &by_arrival].map(|times| {
            let times = &times[SIZES.len() - 1];
            let within = times.iter().filter(|time| **time <= 3 * ALONE).count();
            within as f64 / times.len() as f64
        });
        let [longest, longest_by_arrival] =
            [&by_place, &by_arrival].map(|times| times[0].iter().copied().max().expect("a small job"));
        println!(
            "seed {seed}: within 3 times: {within:.3}, by arrival {within_by_arrival:.3}; \
             the smallest take {longest} ms at most, by arrival {longest_by_arrival} ms"
        );
        assert!(within > 0.9 && within_by_arrival < 0.1);
        assert!(longest < 2 * longest_by_arrival);
    }
}
